package interop

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
)

const ms = time.Millisecond

// read imports files of testdata.
func read(t *testing.T, o Options, names ...string) *Run {
	t.Helper()
	var sources []Source
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, Source{name, bytes.NewReader(data)})
	}
	r, err := Import(sources, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func parse(o Options, text string) (*Run, error) {
	return Import([]Source{{"file", strings.NewReader(text)}}, o)
}

func noted(t *testing.T, r *Run, want ...string) {
	t.Helper()
	all := strings.Join(r.Manifest.Notes, "\n")
	for _, w := range want {
		if !strings.Contains(all, w) {
			t.Errorf("no note says %q:\n%s", w, all)
		}
	}
}

func TestFormatsAreFoundOut(t *testing.T) {
	for name, want := range map[string]Format{
		"vllm.json": VLLM, "sglang.jsonl": SGLang, "aiperf.jsonl": AIPerf, "aiperf.json": AIPerf,
		"guidellm-0.7.json": GuideLLM, "guidellm-0.3.json": GuideLLM, "inference-perf.json": InferencePerf,
	} {
		r := read(t, Options{}, name)
		if r.Format != want || r.Manifest.State != State || r.Manifest.Client.Fit || len(r.Manifest.Client.Reasons) == 0 {
			t.Errorf("%s: format %q, state %q, certificate %v", name, r.Format, r.Manifest.State, r.Manifest.Client)
		}
	}
}

// instants gives a record's times as offsets in milliseconds; −1: not known.
func instants(r *record.Record) map[string]float64 {
	out := make(map[string]float64)
	for name, t := range map[string]record.Instant{"due": r.Due, "admit": r.Admit, "send": r.Send, "header": r.Header, "eof": r.EOF} {
		out[name] = -1
		if d, ok := t.Offset(); ok {
			out[name] = float64(d) / float64(ms)
		}
	}
	return out
}

func TestVLLMRequestsKeepWhatTheFileTells(t *testing.T) {
	r := read(t, Options{Variant: "candidate"}, "vllm.json")
	if len(r.Records) != 4 || r.Rows != 4 || r.Skipped != 0 {
		t.Fatalf("%d records of %d rows, %d skipped", len(r.Records), r.Rows, r.Skipped)
	}
	ok, lost := &r.Records[0], &r.Records[1]
	if diff := cmp.Diff(map[string]float64{"due": 0, "admit": 50, "send": 50, "header": -1, "eof": 802}, instants(ok)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if ok.Outcome != record.OK || ok.Variant != "candidate" || ok.Workload != "load" || len(ok.Events) != 9 || ok.Events[8].Kind != record.KindUsage {
		t.Errorf("got %+v", ok)
	}
	if first, _ := ok.First().At.Sub(ok.Admit); first != 100*ms {
		t.Errorf("TTFT %v", first)
	}
	// A TTFT of 0.0 in the file is no latency.
	if diff := cmp.Diff(map[string]float64{"due": 549, "admit": 550, "send": 550, "header": -1, "eof": -1}, instants(lost)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if lost.Outcome != record.ResetBefore || len(lost.Events) != 0 || lost.Output.Known() || lost.Detail != "aiohttp.client_exceptions.ServerDisconnectedError" {
		t.Errorf("got %+v", lost)
	}
	for _, m := range record.Metrics() {
		if m.Values == nil || m.Indicator || m.Name == "lag" || m.Name == "prompt_length" {
			continue
		}
		if got := m.Values(lost, nil); len(got) > 0 {
			t.Errorf("%s of a failed request = %v", m.Name, got)
		}
	}
	w := r.Manifest.Windows
	if len(w) != 1 || w[0].Start != record.At(0) || w[0].End != record.At(2500*ms) {
		t.Errorf("windows %v", w)
	}
	noted(t, r, "role chunk", "not valid", "queue_times", "openai-chat", "4 requests read, 0 skipped", "SHA-256")
	if wl := r.Manifest.Workloads; len(wl) != 1 || !wl[0].Open || wl[0].Rate != 2 || wl[0].Process == nil || wl[0].Process.Kind != "poisson" || wl[0].Planned != 4 {
		t.Errorf("workloads %+v", wl)
	}
}

func TestSGLangHasNoStartTimes(t *testing.T) {
	r := read(t, Options{}, "sglang.jsonl")
	if len(r.Records) != 3 || len(r.Manifest.Windows) != 0 {
		t.Fatalf("%d records, windows %v", len(r.Records), r.Manifest.Windows)
	}
	noted(t, r, "no start times", "spread evenly")
	if bad := r.Records[2]; bad.Outcome != record.HTTP4xx || bad.Status != 400 || bad.Detail != "Bad Request" || bad.EOF.Set() {
		t.Errorf("got %+v", bad)
	}
	if tpot, ok := r.Records[0].TPOT(); !ok || tpot != 20e6 {
		t.Errorf("TPOT %v %v", tpot, ok)
	}
	if s := r.Records[0].Send; s.Set() {
		t.Errorf("the first byte sent is %v, but the file does not tell", s)
	}
}

func TestAIPerfRecordsAndAggregatesMakeOneRun(t *testing.T) {
	r := read(t, Options{}, "aiperf.jsonl", "aiperf.json")
	if len(r.Records) != 4 || r.Manifest.Host["imported_version"] != "0.4.0" {
		t.Fatalf("%d records, host %v", len(r.Records), r.Manifest.Host)
	}
	warm, ok, down, cut := &r.Records[0], &r.Records[1], &r.Records[2], &r.Records[3]
	if warm.Phase != record.WarmUp || ok.Phase != record.Measured || down.Outcome != record.HTTP5xx || down.Status != 503 || cut.Outcome != record.ClientCancelled {
		t.Errorf("phases %v %v, outcomes %v %v", warm.Phase, ok.Phase, down.Outcome, cut.Outcome)
	}
	if diff := cmp.Diff(map[string]float64{"due": 1000, "admit": 1050, "send": 1050, "header": 1110, "eof": 1804}, instants(ok)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(down.Events) != 0 || down.Output.Known() || ok.Session != "s-1" || down.Turn != 1 {
		t.Errorf("got %+v and %+v", ok, down)
	}
	if want := time.Unix(0, 1767600000000000000).UTC(); !r.Manifest.Start.Equal(want) {
		t.Errorf("started at %v, want %v", r.Manifest.Start, want)
	}
	noted(t, r, "time_to_first_token (ms): avg 250.0", "what others call TPOT", "credit_issued_ns")
	if strings.Contains(strings.Join(r.Manifest.Notes, ""), "secret") || strings.Contains(strings.Join(r.Manifest.Notes, ""), "600") {
		t.Error("the notes quote the configuration")
	}
}

func TestGuideLLMKnowsNoGaps(t *testing.T) {
	r := read(t, Options{}, "guidellm-0.7.json")
	if len(r.Records) != 5 {
		t.Fatalf("%d records", len(r.Records))
	}
	byWorkload := map[string]int{}
	for i := range r.Records {
		byWorkload[r.Records[i].Workload]++
	}
	if diff := cmp.Diff(map[string]int{"constant 2/s": 4, "throughput": 1}, byWorkload); diff != "" {
		t.Errorf("workloads (-want +got):\n%s", diff)
	}
	ok := &r.Records[0]
	if diff := cmp.Diff(map[string]float64{"due": 0, "admit": 62.5, "send": 62.5, "header": -1, "eof": 875}, instants(ok)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, want := range map[string][]float64{
		"ttft": {312.5e6}, "tpot": {25e6}, "e2e": {812.5e6}, "cached": {.25}, "icl": nil, "itl": nil, "gap.max": nil, "ttst": nil, "output_length": {21},
	} {
		m, _ := record.Find(name)
		if diff := cmp.Diff(want, m.Values(ok, nil)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	thinks := &r.Records[1]
	if thinks.First().Kind != record.KindReasoning || thinks.Session != "s-1" || thinks.Turn != 2 {
		t.Errorf("got %+v", thinks)
	}
	if d, _ := thinks.FirstAnswer().At.Sub(thinks.Admit); d != 250*ms {
		t.Errorf("first answer after %v", d)
	}
	if icl, _ := record.Find("icl"); len(icl.Values(thinks, nil)) != 0 {
		t.Error("gaps that nobody measured")
	}
	bad, cut, flood := &r.Records[2], &r.Records[3], &r.Records[4]
	if bad.Outcome != record.HTTP5xx || bad.Status != 500 || strings.Contains(bad.Detail, "secret") {
		t.Errorf("got %v %d %q", bad.Outcome, bad.Status, bad.Detail)
	}
	if cut.Outcome != record.Interrupted {
		t.Errorf("incomplete is %v", cut.Outcome)
	}
	// A flood is due at once by the file; that is no schedule.
	if ttft, _ := flood.First().At.Sub(flood.Due); ttft != 250*ms || flood.Send.Set() {
		t.Errorf("TTFT %v, send %v", ttft, flood.Send)
	}
	noted(t, r, "benchmarks[0] made 5 requests but lists 4", "without a tail", "targeted_start", "TPOT is computed anew")
}

func TestGuideLLMOfOldShape(t *testing.T) {
	r := read(t, Options{}, "guidellm-0.3.json")
	if len(r.Records) != 2 {
		t.Fatalf("%d records", len(r.Records))
	}
	ok, late := &r.Records[0], &r.Records[1]
	if tpot, is := ok.TPOT(); !is || tpot != 100e6 || ok.Workload != "load" {
		t.Errorf("TPOT %v %v, workload %q", tpot, is, ok.Workload)
	}
	if late.Outcome != record.TotalTimeout || late.Detail != "ReadTimeout" || late.Output.Known() {
		t.Errorf("got %+v", late)
	}
	noted(t, r, "no schedule")
}

func TestAggregatesGiveNoRequests(t *testing.T) {
	for name, say := range map[string][]string{
		"inference-perf.json": {"aggregates only", "successes.latency.time_to_first_token: mean 0.033, median 0.031, p99 0.0425", "failures.error_counts.503 - Service Unavailable: count 2", "counts zeros within a chunk"},
		"aiperf.json":         {"aggregates only", "profile_export.jsonl"},
	} {
		r := read(t, Options{}, name)
		if len(r.Records) != 0 || len(r.Manifest.Windows) != 0 {
			t.Errorf("%s: %d records", name, len(r.Records))
		}
		noted(t, r, say...)
		if strings.Contains(strings.Join(r.Manifest.Notes, ""), "secret") {
			t.Errorf("%s: the notes quote messages", name)
		}
	}
	sampled := `{"benchmarks": [{"requests": {"successful": []}, "metrics": {"request_totals": {"successful": 9}, "time_to_first_token_ms": {"successful": {"mean": 12.5, "percentiles": {"p99": 30}}, "errored": {"mean": 0.0}}}, "total_count": {"total": 9}}]}`
	r, err := parse(Options{}, sampled)
	if err != nil {
		t.Fatal(err)
	}
	noted(t, r, "time_to_first_token_ms.successful: mean 12.5", "percentiles: p99 30", "made 9 requests but lists 0", "aggregates only")
	r, err = parse(Options{}, `{"model_id": "m", "num_prompts": 3, "duration": 1.5, "mean_ttft_ms": 12.5, "request_rate": "inf"}`)
	if err != nil {
		t.Fatal(err)
	}
	noted(t, r, "mean_ttft_ms 12.5", "--save-detailed")
}

func TestRepetitionsAreBlocksAndOtherLoadsAreWorkloads(t *testing.T) {
	one := `{"ttfts":[0.1],"itls":[[0.1]],"latencies":[0.2],"start_times":[5.0],"output_lens":[2],"errors":[""],"request_rate":RATE,"duration":2}`
	at := func(rates ...string) *Run {
		var text string
		for _, r := range rates {
			text += strings.ReplaceAll(one, "RATE", r) + "\n"
		}
		r, err := parse(Options{}, text)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := at("2", "2")
	if len(r.Manifest.Workloads) != 1 || r.Records[0].Block != 0 || r.Records[1].Block != 1 || r.Records[1].Shot != 1 {
		t.Errorf("got %+v", r.Records)
	}
	if d, _ := r.Records[1].Due.Offset(); d != 3*time.Second {
		t.Errorf("the second begins at %v", d)
	}
	noted(t, r, "one after the other")
	r = at("2", "4")
	if w := r.Manifest.Workloads; len(w) != 2 || w[0].Name != "2/s" || w[1].Name != "4/s" {
		t.Errorf("workloads %+v", w)
	}
}

func TestNonsenseIsSkippedAndCounted(t *testing.T) {
	r, err := parse(Options{}, `{"ttfts":[0.1,-1,0.1,0.1,0.2],"itls":[[0.1],[],[-5],[0.1],[]],"latencies":[0.2,1,1,0.01,0.0],"output_lens":[2,2,2,2,null],"errors":["","","","",""]}`)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Records) != 2 || r.Rows != 5 || r.Skipped != 3 {
		t.Errorf("%d records of %d rows, %d skipped", len(r.Records), r.Rows, r.Skipped)
	}
	noted(t, r, "5 requests read, 3 skipped (1: a TTFT that is no time; 1: a gap that is no time; 1: a latency shorter")
}

func TestACutLastLineIsCounted(t *testing.T) {
	whole, err := os.ReadFile("testdata/aiperf.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	r, err := parse(Options{}, string(whole[:len(whole)-40]))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Records) != 3 || r.Rows != 4 || r.Skipped != 1 {
		t.Errorf("%d records of %d rows, %d skipped", len(r.Records), r.Rows, r.Skipped)
	}
	noted(t, r, "the last line was cut off")
}

func TestFaultsNameTheirPlace(t *testing.T) {
	for name, test := range map[string]struct {
		o         Options
		text      string
		line      int
		path, has string
	}{
		"not JSON":       {text: "hello", line: 1, has: "not a JSON object"},
		"empty":          {text: "", line: 1, has: "not a JSON object"},
		"stranger":       {text: `{"a": 1}`, line: 1, has: "no tool that is known"},
		"cut":            {text: `{"ttfts": [0.1,` + "\n0.2", line: 2, path: "ttfts", has: "ends in the middle"},
		"wrong type":     {text: "{\"ttfts\":\n [0.1,\n \"x\"]}", line: 3, path: "ttfts[1]", has: "not a number"},
		"no list":        {text: "{\"ttfts\": 5}", line: 1, path: "ttfts", has: "a list is wanted"},
		"unequal lists":  {text: `{"ttfts": [0.1, 0.2], "itls": [[]]}`, line: 1, path: "itls", has: "1 elements, but ttfts has 2"},
		"bad gap":        {text: `{"ttfts": [0.1], "itls": [[0.1, "a"]]}`, line: 1, path: "itls[0]", has: "element 1"},
		"huge":           {text: `{"ttfts": [1e999]}`, line: 1, path: "ttfts[0]", has: "usable size"},
		"bad count":      {text: `{"ttfts": [1], "output_lens": [1.5]}`, line: 1, path: "output_lens[0]", has: "not a count"},
		"twice":          {text: `{"ttfts": [1], "ttfts": [1]}`, line: 1, path: "ttfts", has: "twice"},
		"other tool":     {o: Options{Format: GuideLLM}, text: `{"ttfts": []}`, line: 1, has: "a file of vllm, not of guidellm"},
		"bad line":       {text: `{"metadata": {"request_start_ns": 1}, "metrics": {}}` + "\n" + `{"metadata": nope}` + "\n", line: 2, has: "broken JSON"},
		"no metadata":    {text: `{"metadata": {"request_start_ns": 1}, "metrics": {}}` + "\n{}\n", line: 2, has: "without metadata"},
		"guide request":  {text: "{\"benchmarks\": [{\"requests\": {\"successful\": [\n{\"prompt_tokens\": -1}]}}]}", line: 2, path: "benchmarks[0].requests.successful[0]", has: "not a count"},
		"guide type":     {text: `{"benchmarks": [{"requests": []}]}`, line: 1, path: "benchmarks[0].requests", has: "an object is wanted"},
		"two values":     {text: `{"load_summary": {"count": 1}}{}`, line: 1, has: "more than one JSON value"},
		"nothing in it":  {text: `{"load_summary": {}}`, line: 1, has: "no number"},
		"negative stamp": {text: `{"metadata": {"request_start_ns": -5}, "metrics": {}}`, line: 1, has: "since 1970"},
	} {
		_, err := parse(test.o, test.text)
		f, ok := errors.AsType[config.Fault](err)
		if !ok {
			t.Errorf("%s: error %v", name, err)
			continue
		}
		if f.Line != test.line || f.Path != test.path || !strings.Contains(f.What, test.has) || f.Hint == "" || f.File != "file" {
			t.Errorf("%s: got %v, want line %d, path %q, %q", name, f, test.line, test.path, test.has)
		}
	}
	if _, err := Import(nil, Options{}); err == nil {
		t.Error("an import of nothing succeeds")
	}
	if _, err := parse(Options{Format: "k6"}, `{"zz": 1}`); err == nil || !strings.Contains(err.Error(), "hint") {
		t.Errorf("an unknown format: %v", err)
	}
}

// endless gives one byte for ever.
type endless byte

func (e endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(e)
	}
	return len(b), nil
}

func TestFilesAreBounded(t *testing.T) {
	small := limits{bytes: 1 << 16, rows: 100, events: 500}
	for name, test := range map[string]struct {
		data io.Reader
		has  string
	}{
		"endless":     {endless(' '), "larger than 65536 bytes"},
		"rows":        {strings.NewReader(`{"ttfts": [` + strings.Repeat("1,", 100) + `1]}`), "more than 100 requests"},
		"gaps":        {strings.NewReader(`{"ttfts": [1], "itls": [[` + strings.Repeat("1,", 500) + `1]]}`), "more than 500 stream events"},
		"no gaps":     {strings.NewReader(`{"ttfts": [], "itls": [` + strings.Repeat("[],", 100) + `[]]}`), "more than 100 requests"},
		"lines":       {strings.NewReader(strings.Repeat(`{"metadata":{},"metrics":{}}`+"\n", 101)), "more than 100 requests"},
		"depth":       {strings.NewReader(`{"load_summary": ` + strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000) + "}"), "no number"},
		"very deep":   {strings.NewReader(`{"load_summary": ` + strings.Repeat(`[`, 20000)), "max depth"},
		"guide lists": {strings.NewReader(`{"benchmarks": [{"requests": {"errored": [` + strings.Repeat("{},", 101) + `{}]}}]}`), "more than 100 requests"},
		"disk":        {io.MultiReader(strings.NewReader("{"), failing{}), "no disk"},
	} {
		if _, err := within(small, []Source{{name, test.data}}, Options{}); err == nil || !strings.Contains(err.Error(), test.has) {
			t.Errorf("%s: %v, want %q", name, err, test.has)
		}
	}
	long := []byte("[" + strings.Repeat("1,", mostGaps) + "1]")
	if err := new(gaps).UnmarshalJSON(long); err == nil || !strings.Contains(err.Error(), "longer than any answer") {
		t.Errorf("too many gaps: %v", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("no disk") }

func TestErrorTextsAreClassifiedAndNotKept(t *testing.T) {
	for message, want := range map[string]struct {
		outcome record.Outcome
		detail  string
	}{
		"":                  {Failed, "the file gives no reason"},
		"Too Many Requests": {record.HTTP4xx, "Too Many Requests"},
		"aiohttp.ClientConnectorError: Cannot connect to host": {record.Dial, "aiohttp.ClientConnectorError"},
		"asyncio.exceptions.TimeoutError":                      {record.TotalTimeout, "asyncio.exceptions.TimeoutError"},
		"Tell me about your secrets":                           {Failed, "an error text of 26 bytes, not kept"},
		"HTTP Status Code: 502\nreason":                        {record.HTTP5xx, "an error text of 28 bytes, not kept"},
		"http_5xx 503: no":                                     {record.HTTP5xx, "an error text of 16 bytes, not kept"},
		"interrupted":                                          {record.Interrupted, "an error text of 11 bytes, not kept"},
		"socket.gaierror: getaddrinfo failed":                  {record.DNS, "an error text of 35 bytes, not kept"},
		"Never received a valid chunk to calculate TTFT.":      {record.EmptyOutput, "an error text of 47 bytes, not kept"},
	} {
		var r record.Record
		failure(&r, message, 0)
		if r.Outcome != want.outcome || r.Detail != want.detail {
			t.Errorf("%q: got %v, %q; want %v, %q", message, r.Outcome, r.Detail, want.outcome, want.detail)
		}
	}
}

func TestARequestThatNeverBeganHasNoInstants(t *testing.T) {
	r, err := parse(Options{}, `{"ttfts":[0.1,0.0],"itls":[[],[]],"latencies":[0.1,0.0],"start_times":[7.0,0.0],"output_lens":[1,0],"errors":["","TimeoutError"]}`)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Records {
		rec := &r.Records[i]
		want := map[string]float64{"due": 0, "admit": 0, "send": -1, "header": -1, "eof": 100}
		if !rec.Success() {
			want = map[string]float64{"due": -1, "admit": -1, "send": -1, "header": -1, "eof": -1}
		}
		if diff := cmp.Diff(want, instants(rec)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", rec.Outcome, diff)
		}
	}
}

func TestAIPerfWithoutChunksAndWithReasoning(t *testing.T) {
	line := func(metrics string) string {
		return `{"metadata":{"request_start_ns":1767600000000000000,"request_end_ns":1767600001000000000},"metrics":{` + metrics + `},"error":null}` + "\n"
	}
	const tokens = `"output_sequence_length":{"value":11,"unit":"tokens"}`
	r, err := parse(Options{}, line(`"time_to_first_token":{"value":0.2,"unit":"s"},"request_latency":{"value":700,"unit":"ms"},`+tokens)+
		line(`"time_to_first_token":{"value":200,"unit":"ms"},"time_to_first_output_token":{"value":300,"unit":"ms"},"inter_chunk_latency":{"value":[100,100],"unit":"ms"},`+tokens)+
		line(`"request_latency":{"value":700,"unit":"ms"},`+tokens)+
		line(`"time_to_first_token":{"value":2,"unit":"fortnights"}`)+
		line(`"inter_chunk_latency":{"value":[100],"unit":"ms"}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Records) != 3 || r.Skipped != 2 {
		t.Fatalf("%d records, %d skipped", len(r.Records), r.Skipped)
	}
	few, thinks, body := &r.Records[0], &r.Records[1], &r.Records[2]
	icl, _ := record.Find("icl")
	if tpot, ok := few.TPOT(); !ok || tpot != 50e6 || len(icl.Values(few, nil)) != 0 {
		t.Errorf("TPOT %v %v, gaps %v", tpot, ok, icl.Values(few, nil))
	}
	if d, _ := thinks.FirstAnswer().At.Sub(thinks.Admit); d != 300*ms || thinks.First().Kind != record.KindReasoning {
		t.Errorf("first answer after %v, first event %v", d, thinks.First().Kind)
	}
	if body.Stream || len(body.Events) != 1 {
		t.Errorf("got %+v", body)
	}
	noted(t, r, "1: a unit of time that is not known", "1: gaps without a TTFT")
}

package interop

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/assay-llm/assay/record"
)

// near holds two numbers of seconds or milliseconds equal within the nanosecond
// that a record keeps.
var near = cmpopts.EquateApprox(0, 2e-6)

// result is what a file of vLLM says of its requests.
type result struct {
	Duration, Completed, Failed float64
	InputLens                   []*float64 `json:"input_lens"`
	OutputLens                  []*float64 `json:"output_lens"`
	TTFTs                       []*float64 `json:"ttfts"`
	ITLs                        [][]float64
	Latencies                   []*float64
	Starts                      []*float64 `json:"start_times"`
	Queues                      []*float64 `json:"queue_times"`
	Errors                      []string
	TotalIn                     *float64 `json:"total_input_tokens"`
	TotalOut                    *float64 `json:"total_output_tokens"`
	RequestThroughput           *float64 `json:"request_throughput"`
	OutputThroughput            *float64 `json:"output_throughput"`
	TotalThroughput             *float64 `json:"total_token_throughput"`
	MeanTTFT                    *float64 `json:"mean_ttft_ms"`
	MedianTTFT                  *float64 `json:"median_ttft_ms"`
	StdTTFT                     *float64 `json:"std_ttft_ms"`
	P99TTFT                     *float64 `json:"p99_ttft_ms"`
	MaxTokens                   *float64 `json:"max_output_tokens_per_s"`
	MaxConcurrent               *float64 `json:"max_concurrent_requests"`
}

func exported(t testing.TB, f Format, m *record.Manifest, records []record.Record, s Selection) ([]byte, Exported) {
	t.Helper()
	var b bytes.Buffer
	done, err := Export(&b, f, m, records, s)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), done
}

func asVLLM(t testing.TB, r *Run, s Selection) result {
	t.Helper()
	data, _ := exported(t, VLLM, &r.Manifest, r.Records, s)
	var out result
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatalf("%v:\n%s", err, data)
	}
	return out
}

func p(v float64) *float64 { return &v }

// relative makes start times count from the first: their origin is arbitrary.
func (r result) relative() result {
	first := math.Inf(1)
	for _, s := range r.Starts {
		if s != nil {
			first = min(first, *s)
		}
	}
	var out []*float64
	for _, s := range r.Starts {
		if s == nil {
			out = append(out, nil)
			continue
		}
		out = append(out, p(*s-first))
	}
	r.Starts = out
	return r
}

func TestVLLMRoundTrip(t *testing.T) {
	data, err := os.ReadFile("testdata/vllm.json")
	if err != nil {
		t.Fatal(err)
	}
	var want result
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	got := asVLLM(t, read(t, Options{}, "vllm.json"), Selection{})
	if !strings.HasPrefix(got.Errors[1], "reset_before_first: aiohttp") {
		t.Errorf("error %q", got.Errors[1])
	}
	want.Errors, got.Errors = nil, nil
	if diff := cmp.Diff(want.relative(), got.relative(), near); diff != "" {
		t.Errorf("(-file +export):\n%s", diff)
	}
}

func TestSGLangAsVLLM(t *testing.T) {
	got := asVLLM(t, read(t, Options{}, "sglang.jsonl"), Selection{})
	want := result{
		Completed: 2, Failed: 1, InputLens: []*float64{p(64), p(64), p(64)}, OutputLens: []*float64{p(8), p(3), p(0)},
		TTFTs: []*float64{p(.1), p(.2), p(0)}, ITLs: [][]float64{{.02, .02, .02, .02, .02, .02, .02}, {.03, .05}, {}},
		TotalIn: p(128), TotalOut: p(11), MeanTTFT: p(150),
	}
	got.Latencies, got.Starts, got.Queues, got.Errors, got.MedianTTFT, got.StdTTFT, got.P99TTFT = nil, nil, nil, nil, nil, nil, nil
	got.MaxTokens, got.MaxConcurrent = nil, nil // all requests lie at the epoch
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAIPerfAsVLLM(t *testing.T) {
	got := asVLLM(t, read(t, Options{}, "aiperf.jsonl"), Selection{})
	want := result{
		Completed: 1, Failed: 1, InputLens: []*float64{p(100), nil}, OutputLens: []*float64{p(21), p(0)},
		TTFTs: []*float64{p(.25), p(0)}, ITLs: [][]float64{{.100000001, .1, .1, .1, .1}, {}}, Latencies: []*float64{p(.750000001), p(0)},
		Starts: []*float64{p(0), p(.4501)}, Queues: []*float64{p(.05), p(.0001)}, TotalIn: p(100), TotalOut: p(21), MeanTTFT: p(250),
	}
	got = got.relative()
	got.Duration, got.RequestThroughput, got.OutputThroughput, got.TotalThroughput = 0, nil, nil, nil
	got.Errors, got.MedianTTFT, got.StdTTFT, got.P99TTFT, got.MaxTokens, got.MaxConcurrent = nil, nil, nil, nil, nil, nil
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGuideLLMAsVLLM(t *testing.T) {
	run := read(t, Options{}, "guidellm-0.7.json")
	if _, err := Export(new(bytes.Buffer), VLLM, &run.Manifest, run.Records, Selection{}); err == nil || !strings.Contains(err.Error(), "--workload") {
		t.Errorf("two workloads in one vLLM file: %v", err)
	}
	_, done := exported(t, VLLM, &run.Manifest, run.Records, Selection{Workload: "constant 2/s"})
	if done.Rows != 3 || done.LeftOut != 1 {
		t.Errorf("got %+v", done)
	}
	got := asVLLM(t, run, Selection{Workload: "constant 2/s"})
	want := result{
		Completed: 2, Failed: 1, InputLens: []*float64{p(100), p(50), nil}, OutputLens: []*float64{p(21), p(9), p(0)},
		TTFTs: []*float64{p(.25), p(.125), p(0)}, ITLs: [][]float64{{}, {}, {}}, Latencies: []*float64{p(.75), p(.625), p(0)},
		Starts: []*float64{p(0), p(.4375), p(.9375)}, Queues: []*float64{p(.0625), p(0), p(0)}, TotalIn: p(150), TotalOut: p(30), MeanTTFT: p(187.5),
	}
	got = got.relative()
	got.Duration, got.RequestThroughput, got.OutputThroughput, got.TotalThroughput = 0, nil, nil, nil
	got.Errors, got.MedianTTFT, got.StdTTFT, got.P99TTFT, got.MaxTokens, got.MaxConcurrent = nil, nil, nil, nil, nil, nil
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// vLLM's TPOT is what guidellm calls ITL: 25 and 62.5 ms in the file.
	data, _ := exported(t, VLLM, &run.Manifest, run.Records, Selection{Workload: "constant 2/s"})
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	if all["mean_tpot_ms"] != (25+62.5)/2 || all["mean_itl_ms"] != nil {
		t.Errorf("mean TPOT %v, mean ITL %v", all["mean_tpot_ms"], all["mean_itl_ms"])
	}
	old := asVLLM(t, read(t, Options{}, "guidellm-0.3.json"), Selection{})
	if *old.TTFTs[0] != .125 || *old.OutputLens[0] != 11 || *old.InputLens[0] != 40 || old.Queues[0] != nil {
		t.Errorf("got %+v", old)
	}
}

// golden is the stream on which all tools were compared, in milliseconds.
func golden() (*record.Manifest, []record.Record) {
	r := record.Record{
		Variant: "candidate", Workload: "chat", Stream: true, Outcome: record.OK, Status: 200, Finish: "stop",
		Due: record.At(0), Admit: record.At(50 * ms), ConnStart: record.At(50 * ms), ConnEnd: record.At(60 * ms), Send: record.At(60 * ms), Sent: record.At(60 * ms),
		Header: record.At(110 * ms), EOF: record.At(804 * ms), Prompt: record.Tokens(100), Output: record.Tokens(21), Cached: record.Tokens(25),
	}
	add := func(at time.Duration, kind record.Kind, tokens record.Count) {
		r.Events = append(r.Events, record.Event{At: record.At(at * ms), Kind: kind, Read: uint32(len(r.Events)), Tokens: tokens})
	}
	add(150, record.KindRole, 0)
	add(300, record.KindContent, record.Tokens(1))
	for i := range time.Duration(5) {
		add(400+100*i, record.KindContent, record.Tokens(4))
	}
	add(801, record.KindFinish, 0)
	add(802, record.KindUsage, 0)
	add(803, record.KindDone, 0)
	m := &record.Manifest{
		ID: "20260105T080000-000000", State: "done", Start: time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC),
		Variants:  []record.VariantInfo{{Name: "baseline"}, {Name: "candidate", Model: "tiny"}, {Name: "other"}},
		Workloads: []record.WorkloadInfo{{Name: "chat", Arrivals: "Poisson 8/s for 1s", Open: true, Rate: 8, Process: &record.Process{Kind: "poisson", Rate: []record.RatePiece{{Rate: 8}}}}},
		Windows:   []record.Window{{Variant: "candidate", Workload: "chat", Start: record.At(0), End: record.At(time.Second)}},
	}
	return m, []record.Record{r}
}

// TestEachShapeHasItsToolsNumbers holds the exports to the numbers that were
// derived by hand from each tool's code.
func TestEachShapeHasItsToolsNumbers(t *testing.T) {
	m, records := golden()
	var v struct {
		TTFTs, Latencies []float64
		ITLs             [][]float64
		TPOT             float64 `json:"mean_tpot_ms"`
		ITL              float64 `json:"mean_itl_ms"`
		MedianITL        float64 `json:"median_itl_ms"`
		Duration         float64
		Rate             float64 `json:"request_rate"`
	}
	data, _ := exported(t, VLLM, m, records, Selection{})
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	got := []float64{v.TTFTs[0], v.Latencies[0], v.TPOT, v.ITL, v.MedianITL, v.Duration, v.Rate}
	if diff := cmp.Diff([]float64{.1, .751, 32.55, 93, 100, .804, 8}, got, near); diff != "" {
		t.Errorf("vllm (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{.15, .1, .1, .1, .1, .1, .001}, v.ITLs[0], near); diff != "" {
		t.Errorf("vllm ITL (-want +got):\n%s", diff)
	}

	data, _ = exported(t, AIPerf, m, records, Selection{})
	var a struct {
		Metadata struct {
			Credit int64 `json:"credit_issued_ns"`
			Start  int64 `json:"request_start_ns"`
		}
		Metrics map[string]struct {
			Value any
			Unit  string
		}
	}
	if err := json.Unmarshal(data, &a); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"time_to_first_token": 250.0, "time_to_second_token": 100.0, "request_latency": 750.0, "inter_token_latency": 25.0,
		"inter_chunk_latency": []any{100.0, 100.0, 100.0, 100.0, 100.0}, "output_sequence_length": 21.0, "input_sequence_length": 100.0,
	} {
		if diff := cmp.Diff(want, a.Metrics[name].Value); diff != "" {
			t.Errorf("aiperf %s (-want +got):\n%s", name, diff)
		}
	}
	if a.Metadata.Start-a.Metadata.Credit != 50e6 || a.Metadata.Credit != m.Start.UnixNano() {
		t.Errorf("aiperf metadata %+v", a.Metadata)
	}

	data, _ = exported(t, GuideLLM, m, records, Selection{})
	var g struct {
		Benchmarks []struct {
			Metrics struct {
				ITL struct {
					Successful struct{ Mean, Median float64 }
				} `json:"inter_token_latency_ms"`
			}
			Requests struct {
				Successful []struct {
					Latency float64 `json:"request_latency"`
					TTFT    float64 `json:"time_to_first_token_ms"`
					TPOT    float64 `json:"time_per_output_token_ms"`
					ITL     float64 `json:"inter_token_latency_ms"`
				}
			}
		}
	}
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	r := g.Benchmarks[0].Requests.Successful[0]
	if diff := cmp.Diff([]float64{.754, 250, 35.714285714, 25}, []float64{r.Latency, r.TTFT, r.TPOT, r.ITL}, near); diff != "" {
		t.Errorf("guidellm (-want +got):\n%s", diff)
	}
	if mean := g.Benchmarks[0].Metrics.ITL.Successful.Mean; mean != 25 {
		t.Errorf("guidellm mean ITL %v", mean)
	}
}

func TestGuideLLMWeighsByTokens(t *testing.T) {
	d := distribution([]weighed{{10, 1}, {20, 3}, {10, 0}, {40, 4}})
	want := map[string]any{"mean": (10.0 + 60 + 160) / 8, "median": 20.0, "min": 10.0, "max": 40.0, "mode": 40.0, "count": int64(8)}
	for name, w := range want {
		if diff := cmp.Diff(w, d[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if d := distribution([]weighed{{10, 0}}); d != nil {
		t.Errorf("nothing that weighs: %v", d)
	}
}

// TestMissingIsNeverZero exports requests of which little is known.
func TestMissingIsNeverZero(t *testing.T) {
	m, records := golden()
	records[0].Prompt, records[0].Output, records[0].Events = 0, 0, records[0].Events[:2]
	records[0].EOF = 0
	m.Windows = nil
	data, _ := exported(t, VLLM, m, records, Selection{})
	var v map[string]any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"duration", "request_throughput", "output_throughput", "total_token_throughput", "total_input_tokens", "total_output_tokens", "mean_tpot_ms"} {
		if v[key] != nil {
			t.Errorf("%s = %v, but nobody knows it", key, v[key])
		}
	}
	if diff := cmp.Diff([]any{nil}, v["output_lens"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, f := range []Format{AIPerf, GuideLLM} {
		data, _ := exported(t, f, m, records, Selection{})
		for _, bad := range []string{`"value":0,`, `"total_tokens":0`, `"inter_token_latency_ms":0`} {
			if bytes.Contains(data, []byte(bad)) {
				t.Errorf("%s says %s:\n%s", f, bad, data)
			}
		}
	}
}

func TestSelectionNamesWhatIsThere(t *testing.T) {
	m, records := golden()
	for _, test := range []struct {
		s   Selection
		has string
	}{
		{Selection{Variant: "nobody"}, "it has baseline, candidate, other"},
		{Selection{Workload: "none"}, "it has chat"},
		{Selection{Variant: "baseline"}, "no request of baseline"},
	} {
		if _, err := Export(new(bytes.Buffer), VLLM, m, records, test.s); err == nil || !strings.Contains(err.Error(), test.has) {
			t.Errorf("%+v: %v, want %q", test.s, err, test.has)
		}
	}
	if _, err := Export(new(bytes.Buffer), SGLang, m, records, Selection{}); err == nil {
		t.Error("an export as sglang succeeds")
	}
	if _, done := exported(t, AIPerf, m, records, Selection{}); done.Variant != "candidate" {
		t.Errorf("chose %q", done.Variant)
	}
}

// anyRun draws a run of completed, failed and dropped requests.
func anyRun(t *rapid.T) (*record.Manifest, []record.Record) {
	m, _ := golden()
	var records []record.Record
	for i := range rapid.IntRange(1, 8).Draw(t, "n") {
		start := time.Duration(rapid.Int64Range(0, 1e10).Draw(t, "start"))
		lag := time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "lag"))
		r := record.Record{
			Shot: int64(i), Variant: "candidate", Workload: "chat", Stream: true, Due: record.At(start), Admit: record.At(start + lag), Send: record.At(start + lag),
			Outcome: rapid.SampledFrom([]record.Outcome{record.OK, record.OK, record.OK, record.HTTP5xx, record.TotalTimeout, record.LengthMismatch}).Draw(t, "outcome"),
		}
		if r.Outcome == record.HTTP5xx {
			r.Status = 503
		}
		at := start + lag
		if r.Success() {
			r.Prompt = record.Tokens(rapid.Int64Range(1, 1000).Draw(t, "prompt"))
			chunks := rapid.IntRange(1, 6).Draw(t, "chunks")
			for k := range chunks {
				at += time.Duration(rapid.Int64Range(1000, 1e9).Draw(t, "gap"))
				r.Events = append(r.Events, record.Event{At: record.At(at), Lag: -1, Read: uint32(k), Kind: record.KindContent})
			}
			r.Output = record.Tokens(int64(chunks) + rapid.Int64Range(0, 50).Draw(t, "more"))
			r.EOF = record.At(at)
		}
		records = append(records, r)
	}
	record.Sort(records)
	m.Windows[0].End = record.At(30 * time.Second)
	return m, records
}

// TestWhatIsExportedIsImported holds that a run exported in any shape and
// imported again gives the numbers of that tool to the nanosecond.
func TestWhatIsExportedIsImported(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, records := anyRun(t)
		f := rapid.SampledFrom(Exports()).Draw(t, "format")
		var b bytes.Buffer
		done, err := Export(&b, f, m, records, Selection{})
		if err != nil {
			t.Fatal(err)
		}
		back, err := Import([]Source{{"file", bytes.NewReader(b.Bytes())}}, Options{})
		if err != nil {
			t.Fatalf("%s: %v\n%s", f, err, b.Bytes())
		}
		if back.Format != f || back.Rows != len(records) || back.Rows != done.Rows || back.Skipped != 0 {
			t.Fatalf("%s: %s, %d of %d rows, %d skipped", f, back.Format, back.Rows, len(records), back.Skipped)
		}
		tolerance := 2.0 // nanoseconds
		if f == GuideLLM {
			tolerance = 500 // it writes seconds since 1970 as a float
		}
		for i := range records {
			if !found(&records[i], back.Records, f, tolerance) {
				t.Fatalf("%s: no record has %v %v\n%s", f, records[i].Outcome, views[f].Of(&records[i]), b.Bytes())
			}
		}
	})
}

// found reports whether one of the records has the numbers of r.
func found(r *record.Record, all []record.Record, f Format, tolerance float64) bool {
	want := views[f].Of(r)
	for i := range all {
		got := views[f].Of(&all[i])
		same := all[i].Outcome == r.Outcome && all[i].Status == r.Status && all[i].Output == r.Output && all[i].Prompt == r.Prompt && len(got) == len(want)
		for name, w := range want {
			g, ok := got[name]
			same = same && ok && math.Abs(g-w) <= tolerance
		}
		if same {
			return true
		}
	}
	return false
}

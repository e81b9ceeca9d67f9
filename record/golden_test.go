package record

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

const ms = time.Millisecond

// golden is the stream on which all tools were compared, in milliseconds:
// scheduled at 0, let go by the client's queue at 50, dialled from 50 to 60, sent
// at 60, header at 110, role chunk at 150, one token at 300, five chunks of four
// tokens at 400 to 800, finish chunk at 801, usage at 802, [DONE] at 803.
func golden() Record {
	r := Record{
		Variant: "baseline", Workload: "chat", Stream: true, Outcome: OK, Status: 200, Finish: "stop",
		Due: At(0), Admit: At(50 * ms), ConnStart: At(50 * ms), ConnEnd: At(60 * ms), Send: At(60 * ms), Sent: At(60 * ms),
		Header: At(110 * ms), EOF: At(804 * ms), Prompt: Tokens(100), Output: Tokens(21), Cached: Tokens(25),
	}
	add := func(at time.Duration, kind Kind, bytes uint32, tokens Count) {
		r.Events = append(r.Events, Event{At: At(at), Kind: kind, Read: uint32(len(r.Events)), Bytes: bytes, Tokens: tokens})
	}
	add(150*ms, KindRole, 0, 0)
	add(300*ms, KindContent, 4, Tokens(1))
	for i := range time.Duration(5) {
		add((400+100*i)*ms, KindContent, 16, Tokens(4))
	}
	add(801*ms, KindFinish, 0, 0)
	add(802*ms, KindUsage, 0, 0)
	add(803*ms, KindDone, 0, 0)
	return r
}

func inMilliseconds(of map[string]float64) map[string]float64 {
	out := make(map[string]float64)
	for name, ns := range of {
		out[name] = ns / 1e6
	}
	return out
}

func TestViewsGiveEveryToolsNumbers(t *testing.T) {
	want := map[string]map[string]float64{
		"vllm":           {"ttft": 100, "tpot": 32.55, "itl": 93, "itl_p50": 100, "e2e": 751},
		"guidellm":       {"ttft": 250, "tpot": 35.714285714, "itl": 25, "e2e": 754},
		"aiperf":         {"ttft": 250, "itl": 25, "icl": 100, "icl_p50": 100, "e2e": 750},
		"inference-perf": {"ttft": 250, "tpot": 25, "itl": 25, "itl_p50": 0, "e2e": 753},
		"genai-bench":    {"ttft": 250, "tpot": 25.15, "e2e": 753},
		"sglang":         {"ttft": 250, "tpot": 25.15, "itl": 100, "itl_p50": 100, "e2e": 753},
		"llmperf":        {"ttft": 250, "itl": 35.714285714, "e2e": 750},
		"hf":             {"ttft": 250, "itl": 25, "e2e": 753},
		"mlperf":         {"ttft": 300, "tpot": 25, "e2e": 800},
		"assay": {
			"ttft": 300, "ttft.service": 240, "first_event": 90, "tpot": 25, "itl": 25, "itl_p50": 25,
			"icl": 100, "icl_p50": 100, "e2e": 800, "lag": 60,
		},
	}
	passes := []string{"vllm"} // an SLO of TTFT ≤ 200 ms
	r := golden()
	got := make(map[string]map[string]float64)
	for _, v := range Views() {
		if v.Doc == "" {
			t.Errorf("%s has no doc", v.Name)
		}
		got[v.Name] = inMilliseconds(v.Of(&r))
		if ttft, ok := got[v.Name]["ttft"]; !ok || (ttft <= 200) != slices.Contains(passes, v.Name) {
			t.Errorf("%s: TTFT %v passes ≤ 200: %v", v.Name, ttft, ttft <= 200)
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-6)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The numbers survive being kept.
	records, _, err := ReadAll(sealed(t, []Record{r}), "run")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range Views() {
		if diff := cmp.Diff(v.Of(&r), v.Of(&records[0])); diff != "" {
			t.Errorf("%s, sealed:\n%s", v.Name, diff)
		}
	}
}

func TestViewsOfDegenerateRecordsHoldNoNonsense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRecord(t)
		r.Outcome = OK
		r.Output = Tokens(rapid.Int64Range(-1, 40).Draw(t, "n"))
		for _, v := range Views() {
			for name, x := range v.Of(&r) {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					t.Fatalf("%s %s = %v", v.Name, name, x)
				}
			}
			failed := r
			failed.Outcome = ErrorEvent
			if got := v.Of(&failed); len(got) > 0 {
				t.Fatalf("%s of a failed request = %v", v.Name, got)
			}
		}
	})
}

func values(t *testing.T, name string, r Record) []float64 {
	t.Helper()
	m, ok := Find(name)
	if !ok {
		t.Fatalf("no metric %q", name)
	}
	if m.Values == nil {
		t.Fatalf("%s has no values", name)
	}
	return m.Values(&r, nil)
}

func repeat(x float64, n int) []float64 { return slices.Repeat([]float64{x}, n) }

func TestMetricsOfTheGoldenRecord(t *testing.T) {
	r := golden()
	r.Values = map[string]float64{"bleu": 0.5}
	want := map[string][]float64{
		"ttft": {300e6}, "ttft.service": {240e6}, "ttfa": {300e6}, "ttst": {100e6}, "ttfb": {50e6},
		"tpot": {25e6}, "icl": repeat(100e6, 5), "itl": repeat(25e6, 20), "gap.max": {100e6},
		"e2e": {800e6}, "e2e.service": {740e6}, "ntpot": {800e6 / 21.0}, "user_rate": {40},
		"lag": {60e6}, "connect": {10e6}, "prompt_length": {100}, "output_length": {21}, "cached": {0.25},
		"failed": {0}, "completed": {1}, "truncated": {0}, "value.bleu": {0.5},
	}
	amounts := map[string]map[time.Duration]float64{
		"output_tokens": {300 * ms: 1, 400 * ms: 4, 500 * ms: 4, 600 * ms: 4, 700 * ms: 4, 800 * ms: 4},
		"prompt_tokens": {300 * ms: 100}, "offered": {0: 1}, "sent": {60 * ms: 1}, "requests": {804 * ms: 1},
	}
	for _, m := range Metrics() {
		if m.Title == "" || m.Unit == "" || m.Doc == "" || (m.Values == nil) == (m.Amount == nil) {
			t.Errorf("%s is not complete", m.Name)
		}
		if m.Amount != nil {
			got := make(map[time.Duration]float64)
			m.Amount(&r, func(at Instant, amount float64) {
				d, _ := at.Offset()
				got[d] += amount
			})
			if diff := cmp.Diff(amounts[m.Name], got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", m.Name, diff)
			}
			delete(amounts, m.Name)
			continue
		}
		if diff := cmp.Diff(want[m.Name], m.Values(&r, nil)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", m.Name, diff)
		}
		delete(want, m.Name)
	}
	if got := values(t, "value.bleu", r); !slices.Equal(got, []float64{0.5}) {
		t.Errorf("value.bleu = %v", got)
	}
	delete(want, "value.bleu")
	if len(want)+len(amounts) > 0 {
		t.Errorf("metrics that are not in the catalogue: %v %v", want, amounts)
	}
	for _, name := range []string{"", "latency", "value."} {
		if _, ok := Find(name); ok {
			t.Errorf("Find(%q) found something", name)
		}
	}
}

func TestMetricsThatAreNotDefinedGiveNothing(t *testing.T) {
	unsent := Record{Due: At(0), Outcome: ClientOverload}
	for _, m := range Metrics() {
		if m.Values == nil || m.Indicator {
			continue
		}
		if got := m.Values(&unsent, nil); len(got) > 0 {
			t.Errorf("%s of a request that was never sent = %v", m.Name, got)
		}
	}
	for name, test := range map[string]struct {
		change func(r *Record)
		none   []string
	}{
		"one token": {func(r *Record) {
			r.Output = Tokens(1)
			r.Events = r.Events[:2]
		}, []string{"tpot", "user_rate", "icl", "itl", "gap.max", "ttst"}},
		"no usage": {func(r *Record) {
			r.Output = 0
			for i := range r.Events {
				r.Events[i].Tokens = 0
			}
		}, []string{"tpot", "itl", "ntpot", "user_rate", "output_length"}},
		"all tokens in the first event":     {func(r *Record) { r.Events[1].Tokens = Tokens(21) }, []string{"tpot"}},
		"no cache figure":                   {func(r *Record) { r.Cached = 0 }, []string{"cached"}},
		"empty prompt":                      {func(r *Record) { r.Prompt = Tokens(0) }, []string{"cached"}},
		"reused connection":                 {func(r *Record) { r.ConnStart, r.ConnEnd = 0, 0 }, []string{"connect"}},
		"only reasoning":                    {func(r *Record) { reasonOnly(r) }, []string{"ttfa"}},
		"more tokens claimed than believed": {func(r *Record) { r.Events[1].Tokens = 0; r.Output = Tokens(1 << 50) }, []string{"itl"}},
		"a token count beyond belief":       {func(r *Record) { r.Events[1].Tokens = Tokens(1 << 50) }, []string{"itl"}},
	} {
		r := golden()
		test.change(&r)
		for _, metric := range test.none {
			if got := values(t, metric, r); len(got) > 0 {
				t.Errorf("%s: %s = %v, want nothing", name, metric, got)
			}
		}
	}
}

func reasonOnly(r *Record) {
	for i := range r.Events {
		if r.Events[i].Kind == KindContent {
			r.Events[i].Kind = KindReasoning
		}
	}
}

func TestTrapsOfStreams(t *testing.T) {
	base := golden()
	for _, test := range []struct {
		name   string
		change func(r *Record)
		metric string
		want   []float64
	}{
		{"a role chunk is no token", func(*Record) {}, "ttft", []float64{300e6}},
		{"a late usage chunk does not move the end", func(r *Record) { r.Events[8].At = At(5000 * ms) }, "e2e", []float64{800e6}},
		{"usage inside the stream does not move the end", func(r *Record) {
			r.Events = slices.Insert(r.Events, 7, Event{At: At(900 * ms), Kind: KindUsage})
		}, "tpot", []float64{25e6}},
		{"a finish chunk gives no ICL sample", func(r *Record) { r.Events[7].At = At(2000 * ms) }, "icl", repeat(100e6, 5)},
		{"a comment gives no ICL sample", func(r *Record) {
			r.Events = slices.Insert(r.Events, 3, Event{At: At(450 * ms), Kind: KindComment})
		}, "icl", repeat(100e6, 5)},
		{"an event of k tokens weighs k", func(r *Record) {
			r.Output = Tokens(3)
			r.Events = []Event{{At: At(100 * ms), Kind: KindContent, Tokens: Tokens(1)}, {At: At(120 * ms), Kind: KindContent, Tokens: Tokens(2)}}
		}, "itl", []float64{10e6, 10e6}},
		{"a first event of several tokens does not flatter TPOT", func(r *Record) { r.Events[1].Tokens = Tokens(5) }, "tpot", []float64{500e6 / 16.0}},
		{"TPOT does not depend on how tokens are bundled", func(r *Record) {
			r.Events = append(r.Events[:2:2], r.Events[6:]...)
		}, "tpot", []float64{25e6}},
		{"reasoning comes before the answer", func(r *Record) { r.Events[1].Kind = KindReasoning }, "ttfa", []float64{400e6}},
		{"reasoning is output", func(r *Record) { r.Events[1].Kind = KindReasoning }, "ttft", []float64{300e6}},
		{"a tool call is output", func(r *Record) { r.Events[1].Kind = KindTool }, "ttft", []float64{300e6}},
		{"tokens without figures follow the bytes", func(r *Record) {
			for i := range r.Events {
				r.Events[i].Tokens = 0
			}
		}, "itl", repeat(25e6, 20)},
		{"what the client waited is in TTFT", func(r *Record) { r.Due = At(40 * ms) }, "ttft", []float64{260e6}},
		{"and in no service time", func(r *Record) { r.Due = At(40 * ms) }, "ttft.service", []float64{240e6}},
		{"a request dropped by the client has not failed", func(r *Record) { r.Outcome = Interrupted }, "failed", []float64{0}},
		{"one without an outcome has", func(r *Record) { r.Outcome = "" }, "failed", []float64{1}},
		{"the token limit truncates", func(r *Record) { r.Finish = "length" }, "truncated", []float64{1}},
	} {
		r := base
		r.Events = slices.Clone(base.Events)
		test.change(&r)
		if diff := cmp.Diff(test.want, values(t, test.metric, r)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", test.name, test.metric, diff)
		}
	}
}

func TestTokensAreSpreadByLargestRemainder(t *testing.T) {
	for _, test := range []struct {
		total int64
		bytes []uint32
		want  []int64
	}{
		{3, []uint32{1, 1, 1}, []int64{1, 1, 1}},
		{5, []uint32{1, 1, 1}, []int64{2, 2, 1}}, // ties: the earlier first
		{10, []uint32{0, 0, 0}, []int64{4, 3, 3}},
		{10, []uint32{10, 0, 30}, []int64{3, 1, 6}}, // 7 spare: 1.75, 0, 5.25
		{4, []uint32{math.MaxUint32, 1, 1}, []int64{2, 1, 1}},
		{2, []uint32{1, 1, 1}, nil},
		{0, []uint32{}, nil},
	} {
		r := Record{Output: Tokens(test.total)}
		for _, b := range test.bytes {
			r.Events = append(r.Events, Event{Kind: KindContent, Bytes: b})
		}
		got, ok := r.eventTokens()
		if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" || ok != (test.want != nil) {
			t.Errorf("%d over %v: %v, %v\n%s", test.total, test.bytes, got, ok, diff)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var r Record
		n := rapid.IntRange(1, 200).Draw(t, "events")
		for range n {
			r.Events = append(r.Events, Event{Kind: KindContent, Bytes: rapid.Uint32().Draw(t, "bytes")})
		}
		total := int64(n) + rapid.Int64Range(0, maxTokens-200).Draw(t, "spare")
		r.Output = Tokens(total)
		got, ok := r.eventTokens()
		sum := int64(0)
		for _, k := range got {
			if sum += k; k < 1 {
				t.Fatalf("an event has %d tokens", k)
			}
		}
		if !ok || sum != total {
			t.Fatalf("%d tokens over %d events: %d, %v", total, n, sum, ok)
		}
	})
}

func TestSortIsByDueThenShot(t *testing.T) {
	records := []Record{{Due: At(2), Shot: 1}, {Due: At(1), Variant: "b"}, {Due: At(1), Variant: "a", Shot: 2}, {Due: At(1), Variant: "a", Shot: 1}, {}}
	Sort(records)
	want := []Record{{}, {Due: At(1), Variant: "a", Shot: 1}, {Due: At(1), Variant: "a", Shot: 2}, {Due: At(1), Variant: "b"}, {Due: At(2), Shot: 1}}
	if diff := cmp.Diff(want, records); diff != "" {
		t.Error(diff)
	}
}

func TestInstantsAndCountsTellNoneFromZero(t *testing.T) {
	if At(0) == 0 || !At(0).Set() || At(-5) != At(0) || Instant(0).Set() {
		t.Error("the epoch is not the zero Instant")
	}
	if _, ok := At(7).Sub(0); ok {
		t.Error("a difference to what did not happen")
	}
	if d, ok := At(7).Sub(At(10)); !ok || d != -3 {
		t.Errorf("Sub = %v, %v", d, ok)
	}
	if n, ok := Tokens(0).N(); n != 0 || !ok || Tokens(-1).Known() {
		t.Error("0 tokens are known, -1 are not")
	}
	if len(flagNames) != int(math.Log2(float64(flagEnd))) {
		t.Error("a flag has no name")
	}
	if got := (FlagNoDone | FlagInvalidUTF8).Names(); !slices.Equal(got, []string{"no_done", "invalid_utf8"}) {
		t.Errorf("Names = %v", got)
	}
}

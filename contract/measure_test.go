package contract

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/record"
)

func source(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

func TestMeasure(t *testing.T) {
	e := parseEvidence(t, "candidate chat n=400 failed=20 out=11\nbaseline rag n=100 label=tier:gold\n")
	ms := float64(time.Millisecond)
	for _, tc := range []struct {
		q                 Quantity
		variant, workload string
		labels            map[string]string
		value             float64
		unit              record.Unit
		over              int
	}{
		{Quantity{"quantile", 0.5, "ttft"}, "candidate", "chat", nil, 200 * ms, record.Nanoseconds, 20},
		{Quantity{"quantile", 0.99, "ttft"}, "candidate", "", nil, math.Inf(1), record.Nanoseconds, 20},
		{Quantity{"quantile", 0.5, "tpot"}, "candidate", "chat", nil, 15 * ms, record.Nanoseconds, 20},
		{Quantity{"quantile", 0.01, "user_rate"}, "candidate", "chat", nil, math.Inf(-1), record.TokensPerSecond, 20},
		{Quantity{"mean", 0, "e2e"}, "candidate", "chat", nil, 350 * ms, record.Nanoseconds, 20},
		{Quantity{"share", 0, "failed"}, "candidate", "chat", nil, 0.05, record.Proportion, 0},
		{Quantity{"count", 0, "failed"}, "candidate", "chat", nil, 20, record.Requests, 0},
		{Quantity{"count", 0, "output_tokens"}, "candidate", "chat", nil, 380 * 11, record.TokenUnit, 0},
		{Quantity{"rate", 0, "offered"}, "candidate", "chat", nil, 10, RequestsPerSecond, 0},
		{Quantity{"max", 0, "e2e"}, "baseline", "", map[string]string{"tier": "gold"}, 200*ms + 99*15*ms, record.Nanoseconds, 0},
		{Quantity{"min", 0, "e2e"}, "baseline", "", map[string]string{"tier": "gold"}, 200*ms + 99*15*ms, record.Nanoseconds, 0},
		{Quantity{"quantile", 0.5, "ttft"}, "baseline", "", map[string]string{"tier": "silver"}, math.NaN(), record.Nanoseconds, 0},
		{Quantity{"quantile", 0.5, "ttft"}, "nobody", "chat", nil, math.NaN(), record.Nanoseconds, 0},
	} {
		est, unit, err := Measure(e, tc.q, tc.variant, tc.workload, tc.labels, 0.95)
		same := est.Value == tc.value || math.IsNaN(est.Value) && math.IsNaN(tc.value) || math.Abs(est.Value-tc.value) < 1e-9*math.Abs(tc.value)+10
		if err != nil || !same || unit != tc.unit || est.Over != tc.over {
			t.Errorf("Measure(%s of %s on %q, %v) = %v %s, over %d, error %v; want %v %s, over %d", tc.q, tc.variant, tc.workload, tc.labels, est.Value, unit, est.Over, err, tc.value, tc.unit, tc.over)
		}
	}
}

func TestMeasureRefuses(t *testing.T) {
	e := parseEvidence(t, "candidate chat n=40\ncandidate rag n=40\n")
	for _, tc := range []struct {
		q          Quantity
		workload   string
		confidence float64
		want       string
	}{
		{Quantity{"quantile", 0.5, "watchdog"}, "chat", 0.95, "nothing in this version measures watchdog"},
		{Quantity{"quantile", 0.5, "failed"}, "chat", 0.95, "has a share, not a p50"},
		{Quantity{"quantile", 1, "ttft"}, "chat", 0.95, "is not between 0 and 1"},
		{Quantity{"quantile", 0.5, "ttft"}, "chat", 1, "is not between 0 and 1"},
		{Quantity{"quantile", 0.5, "ttft"}, "", 0.95, "several workloads are never pooled"},
	} {
		if _, _, err := Measure(e, tc.q, "candidate", tc.workload, nil, tc.confidence); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("Measure(%s, %q, %v): error %v, want one with %q", tc.q, tc.workload, tc.confidence, err, tc.want)
		}
	}
}

// TestWarmUpNeverCounts: a warm-up that is slow and failing changes nothing.
func TestWarmUpNeverCounts(t *testing.T) {
	c := decode(t, "version: 1\nclauses:\n  - need: p99(ttft) <= 800ms\n  - need: share(failed) <= 2%\n  - need: count(failed) < 1\n  - need: rate(output_tokens) >= 1/s\n")
	const measured = "candidate chat n=500 sigma=0.1\n"
	want := text(Evaluate(c, parseEvidence(t, measured)))
	got := text(Evaluate(c, parseEvidence(t, measured+"candidate chat n=200 failed=100 ttft=30s phase=warm-up\nother rag n=3 phase=warm-up\n")))
	if got != want {
		t.Errorf("with a warm-up:\n%s\nwithout:\n%s", got, want)
	}
}

// TestOrderDoesNotMatter: records come in any order.
func TestOrderDoesNotMatter(t *testing.T) {
	c := decode(t, "version: 1\nclauses:\n  - need: p99(ttft) <= 250ms\n  - need: p95(tpot) <= baseline * 1.05\n  - need: share(failed) <= 2%\n  - need: rate(output_tokens) >= baseline * 0.9\n")
	e := parseEvidence(t, "baseline chat n=500 sigma=0.2\ncandidate chat n=500 sigma=0.2 failed=3\n")
	want := text(Evaluate(c, e))
	rng := source(3)
	for range 5 {
		rng.Shuffle(len(e.Records), func(i, k int) { e.Records[i], e.Records[k] = e.Records[k], e.Records[i] })
		if got := text(Evaluate(c, e)); got != want {
			t.Fatalf("shuffled:\n%s\nin order:\n%s", got, want)
		}
	}
}

// TestCancellationsDoNotFlatter: users who lose patience hide the slowest answers
// of those who ask, but not of those who never would have left.
func TestCancellationsDoNotFlatter(t *testing.T) {
	b := newBatch("candidate", "chat")
	b.n, b.sigma = 20_000, 0.6
	e := Evidence{Records: b.records(source(2)), Candidate: "candidate", Windows: []record.Window{b.window()}}
	p95 := Quantity{"quantile", 0.95, "ttft"}
	want, _, err := Measure(e, p95, "candidate", "chat", nil, 0.99)
	if err != nil {
		t.Fatal(err)
	}
	const patience = 250 * time.Millisecond
	left, stayed := 0, 0
	for i := range e.Records {
		r := &e.Records[i]
		if i%2 == 0 { // half of the users would leave, and that is drawn beforehand
			continue
		}
		r.Flags |= record.FlagCancelPlanned
		stayed++
		if first, _ := r.First().At.Sub(r.Due); first > patience {
			r.Outcome, r.Output, r.Events, r.EOF = record.ClientCancelled, 0, nil, r.Due+record.Instant(patience)
			left++
			stayed--
		}
	}
	got, _, err := Measure(e, p95, "candidate", "chat", nil, 0.99)
	if err != nil || got.Value < want.Lo || got.Value > want.Hi || got.N != 10_000 {
		t.Errorf("p95 = %v of %d, want within %v to %v", got.Value, got.N, want.Lo, want.Hi)
	}
	v := Evaluate(decode(t, "version: 1\nclauses:\n  - need: p95(ttft) <= 1s\n"), e)
	if c := v.Clauses[0].Counts[0]; c.Cancelled != left || c.Aside != stayed || c.Completed != 10_000+stayed || left < 3000 {
		t.Errorf("counts %+v, of which %d left and %d stayed", c, left, stayed)
	}
	for i := range e.Records {
		e.Records[i].Flags &^= record.FlagCancelPlanned
	}
	if naive, _, _ := Measure(e, p95, "candidate", "chat", nil, 0.99); naive.Value >= want.Lo {
		t.Errorf("even with those who stayed, p95 = %v: this test cannot fail", naive.Value)
	}
	// When everybody would leave, nothing says how long answers take.
	for i := range e.Records {
		e.Records[i].Flags |= record.FlagCancelPlanned
	}
	if v := Evaluate(decode(t, "version: 1\nclauses:\n  - need: p95(ttft) <= 10s\n"), e); v.Grade != Inconclusive {
		t.Errorf("%s: %s", v.Grade, v.Reason)
	}
}

// TestRateCountsInsideWindows: tokens that come after the window, or between
// two windows, do not count.
func TestRateCountsInsideWindows(t *testing.T) {
	b := newBatch("candidate", "chat")
	b.n, b.every, b.out, b.ttft = 200, 100*time.Millisecond, 1, 0
	e := Evidence{Records: b.records(source(1)), Candidate: "candidate"}
	for _, from := range []time.Duration{0, 12 * time.Second} {
		e.Windows = append(e.Windows, record.Window{Variant: "candidate", Workload: "chat", Start: record.At(from), End: record.At(from + 6*time.Second)})
	}
	est, _, err := Measure(e, Quantity{"rate", 0, "output_tokens"}, "candidate", "chat", nil, 0.9)
	if err != nil || est.Value != 10 || est.N != 12 {
		t.Errorf("rate = %v over %d slices (%v), want 10 over 12", est.Value, est.N, err)
	}
	e.Windows[1].End = e.Windows[1].Start + record.Instant(900*time.Millisecond)
	if v := Evaluate(decode(t, "version: 1\nclauses:\n  - need: rate(output_tokens) >= 1/s\n"), e); v.Grade != Inconclusive {
		t.Errorf("6 slices give %s: %s", v.Grade, v.Reason)
	}
}

// TestUndefinedIsNotMissing: what a metric cannot have by its definition is
// neutral; what it should have and has not is missing.
func TestUndefinedIsNotMissing(t *testing.T) {
	event := func(k record.Kind, tokens record.Count) record.Event {
		return record.Event{At: record.At(time.Second), Kind: k, Tokens: tokens}
	}
	for _, tc := range []struct {
		name, metric string
		r            record.Record
		want         bool
	}{
		{"a reused connection", "connect", record.Record{Reused: true}, true},
		{"a new connection without stamps", "connect", record.Record{}, false},
		{"no prompt", "cached", record.Record{Prompt: record.Tokens(0)}, true},
		{"a prompt of unknown length", "cached", record.Record{}, false},
		{"an answer that was not streamed", "tpot", record.Record{Output: record.Tokens(9)}, true},
		{"one token", "tpot", record.Record{Stream: true, Output: record.Tokens(1)}, true},
		{"all tokens in the first event hide their pace", "tpot", record.Record{Stream: true, Output: record.Tokens(4), Events: []record.Event{event(record.KindContent, record.Tokens(4))}}, false},
		{"many tokens in one event that does not say so", "tpot", record.Record{Stream: true, Output: record.Tokens(4), Events: []record.Event{event(record.KindContent, 0)}}, false},
		{"no usage", "tpot", record.Record{Stream: true, Events: []record.Event{event(record.KindContent, 0)}}, false},
		{"no first token", "ttft", record.Record{Stream: true}, false},
		{"a check that did not run", "value.judge", record.Record{Stream: true}, false},
	} {
		if got := undefined(tc.metric, &tc.r); got != tc.want {
			t.Errorf("%s: %s undefined = %v, want %v", tc.name, tc.metric, got, tc.want)
		}
	}
}

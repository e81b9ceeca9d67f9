package contract

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/record"
)

// spoken is an engine's account of so many seconds, a scrape a second: ten requests
// each second that queue and decode for so long, and a gauge.
func spoken(variant string, block, seconds int, queue, decode, usage, preemptions float64) record.EngineWindow {
	w := record.EngineWindow{Variant: variant, Workload: "chat", Block: block, Engine: "vllm", Counters: map[string][]record.EngineGrowth{}, Gauges: map[string][]record.EngineGrowth{}, Lost: map[string]string{}}
	for i := range seconds {
		at := func(name string, of map[string][]record.EngineGrowth, v float64) {
			from := time.Duration(block*seconds+i) * time.Second
			of[name] = append(of[name], record.EngineGrowth{From: record.At(from), To: record.At(from + time.Second), By: v})
		}
		wave := 1 + 0.1*math.Sin(float64(i))
		at("queue_seconds_sum", w.Counters, 10*queue*wave)
		at("queue_seconds_count", w.Counters, 10)
		at("decode_seconds_sum", w.Counters, 10*decode*wave)
		at("decode_seconds_count", w.Counters, 10)
		at("prefix_hit_tokens", w.Counters, 30*wave)
		at("prefix_queried_tokens", w.Counters, 100)
		at("preemptions", w.Counters, math.Floor(preemptions*float64(i+1))-math.Floor(preemptions*float64(i)))
		at("kv_usage_ratio", w.Gauges, usage*wave)
	}
	return w
}

// engineEvidence is a run of two variants and what their engines said.
func engineEvidence(windows ...record.EngineWindow) Evidence {
	e := Evidence{Baseline: "baseline", Candidate: "candidate", Engine: windows}
	for _, v := range []string{"baseline", "candidate"} {
		b := newBatch(v, "chat")
		b.n = 600
		e.Records = append(e.Records, b.records(source(3))...)
		for _, w := range windows {
			if w.Variant == v {
				e.Windows = append(e.Windows, record.Window{Variant: v, Workload: "chat", Block: w.Block, Start: record.At(time.Duration(w.Block) * 30 * time.Second), End: record.At(time.Duration(w.Block+1) * 30 * time.Second)})
			}
		}
	}
	return e
}

// TestStages judges the stages of an engine by what it told, offline.
func TestStages(t *testing.T) {
	both := func() []record.EngineWindow {
		return []record.EngineWindow{
			spoken("baseline", 0, 30, 0.2, 2, 0.5, 0), spoken("candidate", 0, 30, 0.2, 2.2, 0.7, 0.4),
			spoken("candidate", 1, 30, 0.2, 2.2, 0.7, 0.4), spoken("baseline", 1, 30, 0.2, 2, 0.5, 0),
		}
	}
	never := both()
	for i := range never {
		never[i].Counters["preemptions"] = spoken("", never[i].Block, 30, 0, 0, 0, 0).Counters["preemptions"]
		never[i].Counters["evicted_tokens"] = never[i].Counters["preemptions"]
	}
	lost := both()
	lost[1].Lost["queue_seconds_sum"] = "the counter was reset within a window"
	delete(lost[1].Counters, "queue_seconds_sum")
	for _, tc := range []struct {
		need    string
		windows []record.EngineWindow
		want    Grade
		reason  string
	}{
		{"mean(engine.queue) <= 250ms", both(), Pass, "mean of the engine's queue is 20"},
		{"mean(engine.queue) <= 150ms", both(), Fail, ""},
		{"mean(engine.decode) <= baseline * 1.05", both(), Fail, "above the baseline"},
		{"mean(engine.decode) <= baseline * 1.2", both(), Pass, ""},
		{"mean(engine.prefix_hits) >= 25%", both(), Pass, ""},
		{"mean(engine.kv_usage) <= 80%", both(), Pass, ""},
		{"p95(engine.kv_usage) <= 60%", both(), Fail, ""},
		{"rate(engine.preemptions) <= 1/s", both(), Pass, ""},
		{"rate(engine.preemptions) <= 0.1/s", both(), Fail, ""},
		{"count(engine.preemptions) <= 100", both(), Pass, "is 24 (limit 100)"},
		{"rate(engine.preemptions) <= 1/s", never, Pass, "at most 0.0499"},       // ln 20 over a minute
		{"rate(engine.preemptions) <= 0.04/s", never, Inconclusive, "between 0"}, // a minute without any is no proof
		{"rate(engine.evicted) <= 1000/s", never, Inconclusive, "without an upper bound"},
		{"count(engine.evicted) <= 100", both(), Inconclusive, "the engine of candidate: vllm does not tell evicted_tokens"},
		{"mean(engine.prefill) <= 1s", both(), Inconclusive, "vllm does not tell prefill_seconds"},
		{"mean(engine.queue) <= 1s", nil, Inconclusive, "nothing was heard of the engine of candidate"},
		{"mean(engine.queue) <= 1s", lost, Inconclusive, "the counter was reset"},
		{"p99(engine.queue) <= 1s", both(), Inconclusive, "engines tell the mean"},
		{"mean(engine.queue) <= baseline * 2", both()[1:3], Inconclusive, "nothing was heard of the engine of baseline"},
		{"mean(engine.queue) <= 1s", []record.EngineWindow{spoken("candidate", 0, 5, .1, 1, .5, 0)}, Inconclusive, "only 5 sums"},
	} {
		e := engineEvidence(tc.windows...)
		v := Evaluate(&Contract{Clauses: []Clause{{Need: need(t, tc.need)}}}, e)
		if v.Grade != tc.want || !strings.Contains(v.Reason, tc.reason) {
			t.Errorf("%s: %s (%s), want %s with %q", tc.need, v.Grade, v.Reason, tc.want, tc.reason)
		}
	}
	e := engineEvidence(both()...)
	e.Windows = append(e.Windows, record.Window{Variant: "candidate", Workload: "chat", Block: 2, Start: record.At(time.Minute), End: record.At(2 * time.Minute)})
	if v := Evaluate(&Contract{Clauses: []Clause{{Need: need(t, "mean(engine.queue) <= 1s")}}}, e); v.Grade != Inconclusive || !strings.Contains(v.Reason, "2 of 3 windows") {
		t.Errorf("deaf in one window: %s (%s)", v.Grade, v.Reason)
	}
	labelled := Evaluate(&Contract{Clauses: []Clause{{Need: need(t, "mean(engine.queue) <= 1s"), Where: map[string]string{"tier": "gold"}, On: Names{"chat"}}}}, engineEvidence(both()...))
	if labelled.Grade != Inconclusive {
		t.Errorf("of one label: %s (%s)", labelled.Grade, labelled.Reason)
	}
}

// TestStagesLive: the same figures drive live rules, and a silent engine holds them.
func TestStagesLive(t *testing.T) {
	windows := []record.EngineWindow{spoken("candidate", 0, 600, 0.1, 1, 0.5, 0)}
	w := windows[0]
	for i := 300; i < 420; i++ {
		w.Counters["queue_seconds_sum"][i].By *= 20
		w.Gauges["kv_usage_ratio"][i].By = 0.99
	}
	e := Evidence{Candidate: "candidate", Engine: windows, Windows: []record.Window{{Variant: "candidate", Workload: "chat", Start: record.At(0), End: record.At(10 * time.Minute)}}}
	b := newBatch("candidate", "chat")
	b.n = 6000
	e.Records = b.records(source(5))
	c := decode(t, `
version: 1
clauses:
  - id: queue
    need: mean(engine.queue) <= 500ms
    window: 1m
    min: 100
    live: {judge: point, do: [limit-admission 20%]}
  - id: cache
    need: p90(engine.kv_usage) <= 95%
    window: 1m
    min: 30
    live: {judge: point, do: [page]}
  - id: evictions
    need: rate(engine.evicted) <= 100/s
    window: 1m
    live: {do: [page], no_data: hold}
`)
	if faults := Lint(c, nil); len(faults) > 0 {
		t.Fatal(faults)
	}
	var got []string
	for _, d := range Replay(c, NewHistory(testEpoch, e), 30*time.Second) {
		got = append(got, d.line(testEpoch))
	}
	if want := "[5m30s queue acting 5m30s cache acting 8m queue quiet 8m cache quiet]"; fmt.Sprint(got) != want {
		t.Errorf("decided %v, want %s", got, want)
	}
}

// TestNeverSeenIsNoProof: a rate of what did not happen once has the bound of a Poisson
// process, not one of 0.
func TestNeverSeenIsNoProof(t *testing.T) {
	b := newBatch("candidate", "chat")
	b.n, b.values = 600, map[string]float64{"oom_kill": 0}
	e := Evidence{Candidate: "candidate", Records: b.records(source(1)), Windows: []record.Window{b.window()}}
	for needed, want := range map[string]Grade{"rate(oom_kill) <= 0.06/s": Pass, "rate(oom_kill) <= 0.04/s": Inconclusive} {
		if v := Evaluate(&Contract{Clauses: []Clause{{Need: need(t, needed)}}}, e); v.Grade != want {
			t.Errorf("%s after a minute without any: %s (%s), want %s", needed, v.Grade, v.Reason, want)
		}
	}
	lo, hi := poisson(10, []float64{2, 3}, 0.95)
	if math.Abs(lo-4.795/5) > 1e-3 || math.Abs(hi-18.39/5) > 1e-3 { // Garwood, Biometrika 28, 1936
		t.Errorf("10 events in 5 s: from %v to %v a second", lo, hi)
	}
}

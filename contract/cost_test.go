package contract

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/record"
)

// TestRunsFindWhatTheySay: a candidate as far beyond its limit as a run says that it
// would find fails in about four runs of five.
func TestRunsFindWhatTheySay(t *testing.T) {
	even, wide := world{n: 400, sigma: 0.1, slower: 1}, world{n: 400, sigma: 0.5, slower: 1}
	leaky := world{n: 1000, sigma: 0.1, slower: 1, fails: 0.02}
	slower := func(w world, by float64) world { w.slower = by; return w }
	for _, tt := range []struct {
		need  string
		world world
		at    func(w world, detects float64) world // the candidate that is found
	}{
		{"p95(tpot) <= baseline * 1.05", even, slower},
		{"mean(ttft) <= baseline * 1.1", wide, slower},
		{"p50(ttft) <= baseline", wide, slower},
		{"p50(ttft) <= 220ms", even, func(w world, ns float64) world { return slower(w, ns/0.2e9) }},
		{"p90(user_rate) >= baseline * 0.95", even, func(w world, change float64) world { return slower(w, 1/change) }},
		{"share(failed) <= 2%", leaky, func(w world, share float64) world { w.fails = share; return w }},
		{"share(failed) <= baseline + 1 points", leaky, func(w world, change float64) world { w.fails += change; return w }},
	} {
		c := &Contract{Clauses: []Clause{{Need: need(t, tt.need)}}}
		rng := source(5)
		judge := func(cand world) Result {
			br, bw := tt.world.records("baseline", rng)
			cr, cw := cand.records("candidate", rng)
			return Evaluate(c, Evidence{Records: append(br, cr...), Windows: []record.Window{bw, cw}, Baseline: "baseline", Candidate: "candidate"}).Clauses[0]
		}
		const pilots, runs = 10, 80
		said := 0.0 // the mean of what some runs say
		for range pilots {
			r := judge(tt.world)
			if r.Detects == nil {
				t.Fatalf("%s: nothing is said to be found (%s)", tt.need, r.Reason)
			}
			said += *r.Detects / pilots
		}
		failed := 0.0
		for range runs {
			if judge(tt.at(tt.world, said)).Grade == Fail {
				failed++
			}
		}
		t.Logf("%s: finds %.4g in %.0f %%", tt.need, said, 100*failed/runs)
		if share := failed / runs; share < 0.5 || share > 0.98 {
			t.Errorf("%s: %.4g fails in %.0f %% of runs, want about 80 %%", tt.need, said, 100*share)
		}
	}
}

func TestCostOfWhatIsMissing(t *testing.T) {
	base, cand := newBatch("baseline", "chat"), newBatch("candidate", "chat")
	base.n, cand.n = 100, 100 // 10 s, 50 tokens of prompt and 100 of answer a request
	c := decode(t, "version: 1\nclauses: [{need: p50(ttft) <= 1s, min: 400}]\n")
	prices := map[string]Price{"baseline": {Input: 2, Output: 10}, "candidate": {Input: 1, Output: 4}}
	judge := func(change func(e *Evidence)) Result {
		e := evidenceOf(base, cand)
		change(&e)
		return Evaluate(c, e).Clauses[0]
	}
	r := judge(func(e *Evidence) { e.Prices = prices })
	span := 2 * 3 * 10 * time.Second
	if r.Shortfall != 300 || r.Cost == nil || r.Cost.Time < span-span/20 || r.Cost.Time > span || r.Cost.Tokens != 2*300*150 || r.Cost.Money == nil || r.Cost.Currency != "USD" {
		t.Fatalf("%d are missing, for %+v", r.Shortfall, r.Cost)
	}
	if want := 300 * (50*2 + 100*10 + 50*1 + 100*4) / 1e6; math.Abs(*r.Cost.Money-want) > 1e-9 {
		t.Errorf("it costs %v, want %v", *r.Cost.Money, want)
	}
	if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, "the missing requests would take about 1m of load, 90,000 tokens and 0.47 USD") {
		t.Errorf("notes: %s", notes)
	}
	for name, change := range map[string]func(*Evidence){
		"no price":        func(*Evidence) {},
		"one price":       func(e *Evidence) { e.Prices = map[string]Price{"candidate": prices["candidate"]} },
		"two currencies":  func(e *Evidence) { e.Prices = map[string]Price{"baseline": {1, 1, "EUR"}, "candidate": {1, 1, "USD"}} },
		"no usage at all": func(e *Evidence) { e.Prices = prices; mute(e.Records, len(e.Records)) },
		"little usage":    func(e *Evidence) { e.Prices = prices; mute(e.Records, 60) },
	} {
		r := judge(change)
		if r.Cost == nil || r.Cost.Money != nil || r.Cost.Currency != "" || r.Cost.Time == 0 || strings.Contains(name, "usage") != (r.Cost.Tokens == 0) {
			t.Errorf("%s: %+v", name, r.Cost)
		}
		if b, err := json.Marshal(r.Cost); err != nil || strings.Contains(string(b), "money") {
			t.Errorf("%s: %s, %v", name, b, err)
		}
	}
	if r := judge(func(e *Evidence) { e.Unfit = []string{"it is not fit"} }); r.Cost != nil || r.Detects != nil {
		t.Errorf("of an unfit run: %+v, %v", r.Cost, r.Detects)
	}
	if r := judge(func(e *Evidence) { e.Records = e.Records[100:] }); r.Cost != nil { // nothing is known of the baseline
		t.Errorf("without a baseline: %+v", r.Cost)
	}
}

// mute takes the token counts from the first records.
func mute(records []record.Record, n int) {
	for i := range n {
		records[i].Prompt, records[i].Output = 0, 0
	}
}

package contract

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// drawn is a small run of two variants near a limit, where grades change.
func drawn(t *rapid.T, ns *rapid.Generator[int]) (Evidence, *Contract) {
	e := Evidence{Baseline: "baseline", Candidate: "candidate"}
	rng := source(rapid.Uint64Range(0, 1<<20).Draw(t, "seed"))
	for _, variant := range []string{"baseline", "candidate"} {
		w := world{
			n: ns.Draw(t, variant+" n"), sigma: rapid.SampledFrom([]float64{0.02, 0.1, 0.5}).Draw(t, variant+" sigma"),
			rho:   rapid.SampledFrom([]float64{0, 0.5}).Draw(t, variant+" rho"),
			fails: rapid.SampledFrom([]float64{0, 0.01, 0.1}).Draw(t, variant+" fails"), slower: 1,
		}
		rs, win := w.records(variant, rng)
		e.Records, e.Windows = append(e.Records, rs...), append(e.Windows, win)
	}
	p := rapid.SampledFrom([]int{50, 90, 95, 99}).Draw(t, "p")
	text := rapid.SampledFrom([]string{
		fmt.Sprintf("p%d(ttft) <= %dms", p, rapid.IntRange(180, 400).Draw(t, "ms")),
		fmt.Sprintf("p%d(tpot) <= baseline * %.2f", p, rapid.Float64Range(0.9, 1.5).Draw(t, "factor")),
		fmt.Sprintf("p%d(e2e) <= baseline + %dms", p, rapid.IntRange(1, 300).Draw(t, "ms")),
		fmt.Sprintf("share(failed) <= %d%%", rapid.IntRange(1, 20).Draw(t, "per cent")),
		fmt.Sprintf("share(failed) <= baseline + %d points", rapid.IntRange(1, 20).Draw(t, "points")),
		fmt.Sprintf("p%d(user_rate) >= %d/s", 100-p, rapid.IntRange(30, 70).Draw(t, "rate")),
	}).Draw(t, "need")
	n, err := ParseNeed(text)
	if err != nil {
		t.Fatal(err)
	}
	return e, &Contract{Clauses: []Clause{{Need: n}}}
}

// some draws indices of measured records of a variant that completed.
func some(t *rapid.T, e Evidence, variant string) []int {
	var all []int
	for i := range e.Records {
		if r := &e.Records[i]; r.Variant == variant && r.Success() {
			all = append(all, i)
		}
	}
	if len(all) == 0 {
		t.Skip("nothing completed")
	}
	return rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, min(len(all), 8), rapid.ID[int]).Draw(t, "which")
}

func (e Evidence) clone() Evidence {
	e.Records = slices.Clone(e.Records)
	return e
}

// few draws a number of requests below which package stat cannot judge their
// dependence and takes them as independent. There the grades are monotone to the
// letter; with more, the estimated dependence may fall with any change of the
// data, and a bound with it.
var few = rapid.IntRange(1, 19)

// TestFailingNeverHelps: turning successes into failures, of the candidate or
// of the baseline it is held against, never turns what did not pass into a
// pass.
func TestFailingNeverHelps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, c := drawn(t, few)
		variant := "candidate"
		if n := c.Clauses[0].Need; n.Limit.Baseline && n.Quantity.Stat == "quantile" {
			variant = rapid.SampledFrom([]string{"baseline", "candidate"}).Draw(t, "who")
		}
		worse := e.clone()
		for _, i := range some(t, e, variant) {
			fail(&worse.Records[i])
		}
		neverHelps(t, c, e, worse)
	})
}

func neverHelps(t *rapid.T, c *Contract, e, worse Evidence) {
	before, after := Evaluate(c, e), Evaluate(c, worse)
	if before.Grade != Pass && after.Grade == Pass {
		t.Fatalf("%s: %s (%s)\nbecame %s (%s)", c.Clauses[0].Need, before.Grade, before.Reason, after.Grade, after.Reason)
	}
}

// TestFailingNeverExcuses: however many the requests, a fail never becomes a
// pass when successes of the candidate become failures.
func TestFailingNeverExcuses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, c := drawn(t, rapid.IntRange(20, 400))
		if Evaluate(c, e).Grade != Fail {
			t.Skip("does not fail")
		}
		worse := e.clone()
		for _, i := range some(t, e, "candidate") {
			fail(&worse.Records[i])
		}
		neverHelps(t, c, e, worse)
	})
}

// TestLosingNeverHelps: losing requests that met the limit, or their values,
// never turns what did not pass into a pass.
func TestLosingNeverHelps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, c := drawn(t, few)
		n := c.Clauses[0].Need
		m, _ := record.Find(n.Quantity.Metric)
		worse := e.clone()
		lose := rapid.SampledFrom([]string{"record", "usage", "drop"}).Draw(t, "lose")
		var gone []int
		for _, i := range some(t, e, "candidate") {
			r := &worse.Records[i]
			good := n.Limit.Baseline || m.Indicator
			if v := m.Values(r, nil); !good && len(v) == 1 {
				good = n.Compare.holds(v[0], n.Limit.Value)
			}
			switch {
			case n.Limit.Baseline && !m.Indicator && lose == "record":
				// Without a fixed limit nobody can say which request met it.
			case lose == "drop":
				r.Outcome = record.ClientOverload
			case lose == "usage":
				r.Output, r.Flags = 0, record.FlagUsageMissing
			case good:
				gone = append(gone, i)
			}
		}
		slices.Sort(gone)
		for _, i := range slices.Backward(gone) {
			worse.Records = slices.Delete(worse.Records, i, i+1)
		}
		if lose == "usage" && !needsUsage(m.Name) {
			t.Skip("does not need usage")
		}
		neverHelps(t, c, e, worse)
	})
}

// TestPassNeedsTheExactTest: whatever the data, a quantile passes a fixed limit
// only if the exact binomial test for independent requests is passed, failed
// requests counted as violations. It bounds what any estimate of dependence can
// do: widen, never narrow.
func TestPassNeedsTheExactTest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, c := drawn(t, rapid.IntRange(1, 400))
		n := c.Clauses[0].Need
		if n.Limit.Baseline || n.Quantity.Stat != "quantile" {
			t.Skip("no fixed limit")
		}
		v := Evaluate(c, e)
		if v.Grade != Pass {
			return
		}
		m, _ := record.Find(n.Quantity.Metric)
		judged, violations := 0, 0
		for i := range e.Records {
			r := &e.Records[i]
			if r.Variant != "candidate" {
				continue
			}
			judged++
			if x := m.Values(r, nil); !r.Success() || len(x) != 1 || !n.Compare.holds(x[0], n.Limit.Value) {
				violations++
			}
		}
		p := n.Quantity.P
		if !n.Compare.upper() {
			p = 1 - p
		}
		if need := stat.NeedViolations(p, DefaultConfidence, violations); judged < need {
			t.Fatalf("%s passes (%s) with %d violations of %d; the exact test needs %d", n, v.Reason, violations, judged, need)
		}
	})
}

// TestNothingNeverPasses: without the candidate's requests, or without those
// of the baseline where the limit refers to it, nothing passes and nothing
// fails.
func TestNothingNeverPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, c := drawn(t, rapid.IntRange(1, 400))
		gone := "candidate"
		if c.Clauses[0].Need.Limit.Baseline && rapid.Bool().Draw(t, "baseline goes") {
			gone = "baseline"
		}
		e.Records = slices.DeleteFunc(e.Records, func(r record.Record) bool { return r.Variant == gone })
		if v := Evaluate(c, e); v.Grade != Inconclusive {
			t.Fatalf("without %s: %s (%s)", gone, v.Grade, v.Reason)
		}
	})
}

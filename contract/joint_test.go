package contract

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// traded decodes a contract of one joint clause with this body.
func traded(t testing.TB, body string) *Contract {
	t.Helper()
	return decode(t, "version: 1\nclauses:\n  - id: trade\n    joint:\n"+indented(body, 6))
}

func indented(s string, by int) string {
	var b strings.Builder
	for line := range strings.Lines(strings.Trim(s, "\n")) {
		b.WriteString(strings.Repeat(" ", by) + line)
	}
	return b.String() + "\n"
}

// The three profiles of a published service: latency in ms, tokens/s, and
// hallucinations and conversions in per cent.
var published = [][4]float64{{128, 42.7, 8.3, 2.1}, {215, 33.2, 3.1, 3.8}, {396, 26.5, 1.2, 4.2}}

// TestPublishedProfiles: none dominates another, and the formula of old gives them
// the weights that it always gave them, with its faults.
func TestPublishedProfiles(t *testing.T) {
	e := Evidence{Baseline: "baseline", Candidate: "candidate"}
	for i, name := range []string{"baseline", "candidate", "third"} {
		p := published[i]
		b := newBatch(name, "chat")
		b.n, b.out, b.sigma = 400, 100, 0.01
		b.ttft = time.Duration(p[0] * 1e6)
		b.every = time.Duration(100 / p[1] * 1e9)
		b.values = map[string]float64{"hallucination": p[2], "conversion": p[3]}
		e.Records = append(e.Records, b.records(source(uint64(i)+1))...)
		e.Windows = append(e.Windows, b.window())
	}
	v := Evaluate(traded(t, `
objectives:
  - {of: p50(ttft), better: lower}
  - {of: rate(output_tokens), better: higher}
  - {of: mean(value.hallucination), better: lower, worst: 20, best: 0}
  - {of: mean(value.conversion), better: higher, worst: 0, best: 10}
`), e)
	points := v.Clauses[0].Joint.Points
	if len(points) != 3 {
		t.Fatalf("%d variants on the front's picture, want 3", len(points))
	}
	for _, p := range points {
		if !p.Front || len(p.By) > 0 || p.Dominated == nil || *p.Dominated > 0.001 {
			t.Errorf("%s: front %v, dominated by %v with %v, want the front", p.Variant, p.Front, p.By, p.Dominated)
		}
	}
	for i, want := range [][3]float64{{0.17064, 0.1, -7.3}, {0.15685, 0.1, -2.1}, {0.14320, 0.1, -0.2}} {
		got := seedV1(published[i][0], published[i][1], published[i][2])
		for k := range want {
			if math.Abs(got[k]-want[k]) > 5e-5 {
				t.Errorf("seed-v1 of profile %d: %v, want %v", i, got, want)
				break
			}
		}
	}
}

// weighed is a weighing of made estimates.
func weighed(objectives []Objective, weights []float64, base, cand []stat.Estimate) *weighing {
	w := &weighing{joint: &Joint{Objectives: objectives}, weights: normalised(weights), terms: terms{confidence: 0.95}}
	for i := range objectives {
		w.trials = append(w.trials, &trial{b: reading{est: base[i]}, c: reading{est: cand[i]}})
	}
	return w
}

// drawnObjectives draws objectives with estimates of both variants.
func drawnObjectives(t *rapid.T) (os []Objective, ws []float64, base, cand []stat.Estimate) {
	estimate := func(what string) stat.Estimate {
		v := rapid.Float64Range(1, 100).Draw(t, what)
		half := rapid.Float64Range(0, 0.9).Draw(t, what+" width")
		return stat.Estimate{Value: v, Lo: v * (1 - half), Hi: v * (1 + half), Confidence: 0.9, N: 100, Effective: 100}
	}
	for range rapid.IntRange(2, 5).Draw(t, "objectives") {
		o := Objective{Better: rapid.SampledFrom([]string{"lower", "higher"}).Draw(t, "better")}
		if rapid.Bool().Draw(t, "scaled") {
			o.Worst, o.Best = Level{-1, "-1"}, Level{300, "300"}
			if o.Better == "lower" {
				o.Worst, o.Best = o.Best, o.Worst
			}
		}
		os, ws = append(os, o), append(ws, rapid.Float64Range(0.1, 5).Draw(t, "weight"))
		base, cand = append(base, estimate("baseline")), append(cand, estimate("candidate"))
	}
	return os, ws, base, cand
}

func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b))
}

func atBaseline(x *trial) stat.Estimate { return x.b.est }

// TestUtilityIsOrderless: neither the order of the objectives nor the size of all
// weights matters, and exchanging the variants turns the ratio over.
func TestUtilityIsOrderless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		os, ws, base, cand := drawnObjectives(t)
		want := weighed(os, ws, base, cand).ratio(atBaseline)
		order := rapid.Permutation([]int{0, 1, 2, 3, 4}[:len(os)]).Draw(t, "order")
		var os2 []Objective
		var ws2 []float64
		var base2, cand2 []stat.Estimate
		for _, i := range order {
			os2, ws2, base2, cand2 = append(os2, os[i]), append(ws2, 7*ws[i]), append(base2, base[i]), append(cand2, cand[i])
		}
		if got := weighed(os2, ws2, base2, cand2).ratio(atBaseline); !near(got.Value, want.Value) || !near(got.Lo, want.Lo) || !near(got.Hi, want.Hi) {
			t.Fatalf("in order %v: %v [%v, %v], want %v [%v, %v]", order, got.Value, got.Lo, got.Hi, want.Value, want.Lo, want.Hi)
		}
		if got := weighed(os, ws, cand, base).ratio(atBaseline); !near(got.Value, 1/want.Value) || !near(got.Lo, 1/want.Hi) || !near(got.Hi, 1/want.Lo) {
			t.Fatalf("exchanged: %v [%v, %v], want one over %v [%v, %v]", got.Value, got.Lo, got.Hi, want.Value, want.Lo, want.Hi)
		}
	})
}

// TestUtilityGrades: a wider margin never turns a pass into anything else, and the
// widest passes; what shows domination by more than the margin never passes; an
// estimate that loses its bound, or widens, never turns what did not pass into a
// pass.
func TestUtilityGrades(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		os, ws, base, cand := drawnObjectives(t)
		w := weighed(os, ws, base, cand)
		e := w.ratio(atBaseline)
		m := rapid.Float64Range(0, 0.9).Draw(t, "margin")
		if decide(">=", e, 1-m) == Pass && decide(">=", e, 1-m-0.1) != Pass {
			t.Fatalf("passes with a margin of %v, not with a wider one", m)
		}
		if g := decide(">=", e, 0); g != Pass {
			t.Fatalf("%s when everything may be lost", g)
		}
		if w.dominated(1-m) && decide(">=", e, 1-m) == Pass {
			t.Fatalf("worse in all by more than %v, and passes", m)
		}
		i := rapid.IntRange(0, len(os)-1).Draw(t, "which")
		wide := slices.Clone(cand)
		wide[i].Lo, wide[i].Hi = wide[i].Lo/2, wide[i].Hi*2
		if rapid.Bool().Draw(t, "lost") {
			wide[i].Lo, wide[i].Hi = math.Inf(-1), math.Inf(1)
		}
		if decide(">=", e, 1-m) != Pass && decide(">=", weighed(os, ws, base, wide).ratio(atBaseline), 1-m) == Pass {
			t.Fatal("knowing less made it pass")
		}
		wide[i].Value = math.NaN()
		if g := decide(">=", weighed(os, ws, base, wide).ratio(atBaseline), 0.01); g != Inconclusive {
			t.Fatalf("%s without a value", g)
		}
	})
}

// TestMissingNeverHelpsAJointClause: taking values or answers from the candidate
// never makes it pass.
func TestMissingNeverHelpsAJointClause(t *testing.T) {
	c := traded(t, `
objectives:
  - {of: p90(ttft), better: lower}
  - {of: p50(tpot), better: lower, worst: 100ms, best: 1ms}
  - {of: share(failed), better: lower, worst: 20%, best: 0%}
margin: 20%
`)
	rapid.Check(t, func(t *rapid.T) {
		e, _ := drawn(t, rapid.IntRange(8, 60))
		worse := e.clone()
		for _, i := range some(t, e, "candidate") {
			r := &worse.Records[i]
			if rapid.Bool().Draw(t, "fails") {
				fail(r)
			} else {
				r.Output, r.Events = 0, nil
			}
		}
		before, after := Evaluate(c, e), Evaluate(c, worse)
		if before.Grade != Pass && after.Grade == Pass {
			t.Fatalf("%s (%s)\nbecame %s (%s)", before.Grade, before.Reason, after.Grade, after.Reason)
		}
	})
}

// TestJointErrorRates simulates joint clauses on systems whose truth is known: at
// the margin they pass, and equal they fail, in at most 1 of 20; what is well
// inside passes.
func TestJointErrorRates(t *testing.T) {
	runs := 100
	if os.Getenv("ASSAY_SLOW") != "" {
		runs = 1000
	}
	c := traded(t, `
objectives:
  - {of: p90(ttft), better: lower}
  - {of: p50(tpot), better: lower}
  - {of: mean(e2e), better: lower, worst: 20s, best: 0s}
margin: 10%
`)
	jt := c.Clauses[0].Joint
	equal := world{n: 300, sigma: 0.2, slower: 1}
	tied := world{n: 500, sigma: 0.2, rho: 0.5, slower: 1}
	// How much slower the candidate is when its utility is 90 % of the baseline's.
	truth := func(slower float64) float64 {
		e2e := 0.2e9*math.Exp(0.02) + 1.5e9*math.Exp(0.02)
		ws, u := jt.weights(), 0.0
		for i, v := range []float64{0.2e9, 15e6, e2e} {
			u += ws[i] * (jt.Objectives[i].utility(v*slower) - jt.Objectives[i].utility(v))
		}
		return math.Exp(u)
	}
	lo, hi := 1.0, 2.0
	for range 60 {
		if mid := (lo + hi) / 2; truth(mid) > 0.9 {
			lo = mid
		} else {
			hi = mid
		}
	}
	for _, tc := range []struct {
		name        string
		base        world
		slower      float64
		grade       Grade
		most, least float64
	}{
		{"at the margin passes", equal, lo, Pass, 0.05, 0},
		{"at the margin passes, dependent", tied, lo, Pass, 0.05, 0},
		{"at the margin fails", equal, lo, Fail, 0.05, 0},
		{"equal fails", equal, 1, Fail, 0.05, 0},
		{"equal passes", equal, 1, Pass, 1, 0.8},
		{"a third slower fails", equal, 1.35, Fail, 1, 0.95},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rng, hits := source(17), 0
			for range runs {
				cand := tc.base
				cand.slower = tc.slower
				br, bw := tc.base.records("baseline", rng)
				cr, cw := cand.records("candidate", rng)
				if Evaluate(c, Evidence{Records: append(br, cr...), Windows: []record.Window{bw, cw}, Baseline: "baseline", Candidate: "candidate"}).Grade == tc.grade {
					hits++
				}
			}
			rate, noise := float64(hits)/float64(runs), 3*math.Sqrt(tc.most*(1-tc.most)/float64(runs))
			t.Logf("%s in %.1f %% of %d runs", tc.grade, 100*rate, runs)
			if rate > tc.most+noise || rate < tc.least {
				t.Errorf("%s in %.1f %% of %d runs, want from %.0f %% to %.1f %%", tc.grade, 100*rate, runs, 100*tc.least, 100*(tc.most+noise))
			}
		})
	}
}

// TestProfilesWeigh: weights add up to 1, quality weighs the more the more
// conservative the profile, and a class that is not there leaves none behind.
func TestProfilesWeigh(t *testing.T) {
	for profile, fast := range map[string]float64{"": 0.5, "aggressive": 0.7, "balanced": 0.5, "conservative": 0.3} {
		body := "objectives:\n  - {of: p95(ttft), better: lower}\n  - {of: share(failed), better: lower, worst: 5%, best: 0%}\n  - {of: p95(tpot), better: lower}\n"
		if profile != "" {
			body += "profile: " + profile + "\n"
		}
		w := traded(t, body).Clauses[0].Joint.weights()
		if want := []float64{fast / 2, 1 - fast, fast / 2}; fmt.Sprint(w) != fmt.Sprint(want) {
			t.Errorf("%q: %v, want %v", profile, w, want)
		}
	}
	if w := traded(t, "objectives:\n  - {of: p95(ttft), better: lower}\n  - {of: p95(tpot), better: lower}\nprofile: conservative\n").Clauses[0].Joint.weights(); fmt.Sprint(w) != "[0.5 0.5]" {
		t.Errorf("speed alone: %v", w)
	}
}

// TestJointExample runs the tests beside the example contract.
func TestJointExample(t *testing.T) {
	read := func(name string, into any) {
		data, err := os.ReadFile("../examples/joint/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := config.Decode(name, data, into); err != nil {
			t.Fatal(err)
		}
	}
	var c Contract
	var test Test
	read("contract.yaml", &c)
	read("test.yaml", &test)
	for _, f := range Lint(&c, nil) {
		t.Error(f.Error())
	}
	for _, o := range test.Run(&c) {
		for _, p := range o.Problems {
			t.Errorf("%s: %s", o.Case, p)
		}
	}
	again := Joint{Objectives: c.Clauses[0].Joint.Objectives, Profile: "balanced", Margin: c.Clauses[0].Joint.Margin, Vetoes: c.Clauses[0].Joint.Vetoes}
	text, err := config.Encode(Contract{Version: 1, Clauses: []Clause{{ID: "trade", Joint: &again}}})
	if err != nil {
		t.Fatal(err)
	}
	if back := decode(t, string(text)); back.Clauses[0].Joint.Objectives[0] != again.Objectives[0] {
		t.Errorf("written and read back: %+v, want %+v", back.Clauses[0].Joint.Objectives[0], again.Objectives[0])
	}
}

// TestJointTradesSpeedForQuality: an objective or a veto may be the value of a check,
// which has cases of its own beside the workload.
func TestJointTradesSpeedForQuality(t *testing.T) {
	e := cases(300, 1, "quality.right", func(i int) (float64, float64) { return yes(i%10 > 0), yes(i%10 > 1) })
	for i, v := range []string{"baseline", "candidate"} {
		b := newBatch(v, "chat")
		b.n, b.sigma, b.ttft = 400, 0.1, []time.Duration{800 * time.Millisecond, 400 * time.Millisecond}[i]
		e.Records = append(e.Records, b.records(source(9))...)
		e.Windows = append(e.Windows, b.window())
	}
	const body = `
vetoes:
  - need: share(quality.right) >= 60%
objectives:
  - {of: p50(ttft), better: lower}
  - {of: share(quality.right), better: higher, worst: 0%, best: 100%}
`
	for profile, want := range map[string]Grade{"aggressive": Pass, "conservative": Pass} {
		v := Evaluate(traded(t, body+"profile: "+profile+"\n"), e)
		r := v.Clauses[0]
		if v.Grade != want || len(r.Results) != 1 || r.Results[0].Grade != Pass || r.Results[0].Workload != "quality" || len(r.Joint.Points) != 2 {
			t.Errorf("%s: %s (%s), vetoes %+v", profile, v.Grade, v.Reason, r.Results)
		}
		for _, p := range r.Joint.Points {
			if !p.Front || p.Figures[1].N != 300 {
				t.Errorf("%s: %+v", p.Variant, p)
			}
		}
	}
	if v := Evaluate(traded(t, strings.Replace(body, "60%", "85%", 1)), e); v.Grade != Inconclusive && v.Grade != Fail {
		t.Errorf("a veto of a check: %s (%s)", v.Grade, v.Reason)
	}
	e.Checks[0].Why = "no judge"
	if v := Evaluate(traded(t, body), e); v.Grade != Inconclusive {
		t.Errorf("a check that could not run: %s (%s)", v.Grade, v.Reason)
	}
}

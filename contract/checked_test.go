package contract

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
)

// valueScore and the others are the values of a check named quality.
var (
	valueScore = record.Written(record.Metric{Name: "quality.score", Title: "score", Unit: record.Points, Higher: true, Check: "quality", Least: 0, Most: 10})
	valueRight = record.Written(record.Metric{Name: "quality.right", Title: "right", Unit: record.Proportion, Higher: true, Indicator: true, Check: "quality", Least: 0, Most: 1})
	valueWords = record.Written(record.Metric{Name: "quality.words", Title: "words", Unit: record.Points, Check: "quality"})
	quality    = Checked{Name: "quality", Metrics: []record.Metric{valueScore, valueRight, valueWords}}
)

// cases builds the evidence of n cases: give says what each variant has of a
// value on case i; NaN is missing, +Inf exempt. Cluster i/per.
func cases(n, per int, name string, give func(i int) (baseline, candidate float64)) Evidence {
	e := Evidence{Baseline: "baseline", Candidate: "candidate", Checks: []Checked{quality}}
	for i := range n {
		b, c := give(i)
		for k, x := range []float64{b, c} {
			r := record.Record{Shot: int64(i), Variant: []string{"baseline", "candidate"}[k], Workload: "quality", Case: fmt.Sprint("c", i), Session: fmt.Sprint("s", i/per), Outcome: record.OK}
			switch {
			case math.IsNaN(x):
				r.Outcome = record.ResetMid
			case math.IsInf(x, 1):
				r.Values = map[string]float64{record.Exempt(name): 1}
			default:
				r.Values = map[string]float64{name: x}
			}
			e.Records = append(e.Records, r)
		}
	}
	return e
}

func checkedResult(t *testing.T, need string, e Evidence) Result {
	t.Helper()
	n, err := ParseNeed(need)
	if err != nil {
		t.Fatal(err)
	}
	v := Evaluate(&Contract{Clauses: []Clause{{Need: n}}}, e)
	return v.Clauses[0]
}

func TestAValueOfACheckIsJudgedOnTheSameCases(t *testing.T) {
	const relative, absolute = "share(quality.right) >= baseline - 5 points", "share(quality.right) >= 80%"
	for _, tc := range []struct {
		name, need string
		give       func(i int) (b, c float64)
		per        int
		want       Grade
		reason     string
	}{
		{"no case differs", relative, func(int) (float64, float64) { return 1, 1 }, 1, Pass, "at least"},
		{"two of 200 differ", relative, func(i int) (float64, float64) { return 1, yes(i >= 2) }, 1, Pass, ""},
		{"a tenth is lost", relative, func(i int) (float64, float64) { return 1, yes(i >= 20) }, 1, Fail, ""},
		{"a twentieth is lost", relative, func(i int) (float64, float64) { return 1, yes(i >= 10) }, 1, Inconclusive, "between"},
		{"lost in 20 dialogues of 10, none differs", relative, func(int) (float64, float64) { return 1, 1 }, 10, Inconclusive, "between"},
		{"dialogues of 2, none differs", relative, func(int) (float64, float64) { return 1, 1 }, 2, Pass, ""},
		{"nine tenths", absolute, func(i int) (float64, float64) { return 0, yes(i >= 20) }, 1, Pass, "90 %"},
		{"seven tenths", absolute, func(i int) (float64, float64) { return 0, yes(i >= 60) }, 1, Fail, "70 %"},
		{"one dialogue", absolute, func(int) (float64, float64) { return 1, 1 }, 200, Inconclusive, ""},
	} {
		r := checkedResult(t, tc.need, cases(200, tc.per, "quality.right", tc.give))
		if r.Grade != tc.want || !strings.Contains(r.Reason, tc.reason) {
			t.Errorf("%s: %v: %s; want %v with %q", tc.name, r.Grade, r.Reason, tc.want, tc.reason)
		}
		if r.Workload != "quality" {
			t.Errorf("%s: judged on %q; want the check's records", tc.name, r.Workload)
		}
	}
}

func yes(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func TestMissingValuesAreBoundedFromBothSides(t *testing.T) {
	missing := math.NaN()
	lost := func(b, c int, x float64) func(i int) (float64, float64) {
		return func(i int) (float64, float64) {
			base, cand := x, x
			if i < b {
				base = missing
			}
			if i >= 300-c {
				cand = missing
			}
			return base, cand
		}
	}
	for _, tc := range []struct {
		name, need, value string
		give              func(i int) (b, c float64)
		want              Grade
		reason            string
	}{
		{"few on both sides", "share(quality.right) >= baseline - 5 points", "quality.right", lost(2, 2, 1), Pass, ""},
		{"enough to matter", "share(quality.right) >= baseline - 5 points", "quality.right", lost(12, 12, 1), Inconclusive, "between"},
		{"of one variant", "share(quality.right) >= baseline - 50 points", "quality.right", lost(0, 12, 1), Inconclusive, "has to do with the variant"},
		{"of a single variant", "share(quality.right) >= 90%", "quality.right", lost(0, 9, 1), Pass, ""},
		{"of a single variant, too many", "share(quality.right) >= 90%", "quality.right", lost(0, 40, 1), Inconclusive, "between"},
		{"a score", "mean(quality.score) >= baseline - 0.5 points", "quality.score", lost(2, 2, 8), Pass, ""},
		{"a score, too many", "mean(quality.score) >= baseline - 0.5 points", "quality.score", lost(9, 9, 8), Inconclusive, "between"},
		{"without bounds", "mean(quality.words) <= baseline + 5 points", "quality.words", lost(1, 1, 8), Inconclusive, "nothing bounds"},
		{"all", "share(quality.right) >= 10%", "quality.right", lost(300, 300, 1), Inconclusive, "has the value “right”"},
		{"a count", "count(quality.right) >= 10", "quality.right", lost(0, 1, 1), Inconclusive, "knows nothing of them"},
		{"a maximum", "max(quality.score) <= 9", "quality.score", lost(0, 1, 1), Inconclusive, "knows nothing of them"},
	} {
		r := checkedResult(t, tc.need, cases(300, 1, tc.value, tc.give))
		if r.Grade != tc.want || !strings.Contains(r.Reason, tc.reason) {
			t.Errorf("%s: %v: %s; want %v with %q", tc.name, r.Grade, r.Reason, tc.want, tc.reason)
		}
	}
}

func TestMoreMissingIsNeverBetter(t *testing.T) {
	last := Pass
	for lost := 0; lost <= 300; lost += 10 {
		e := cases(300, 1, "quality.right", func(i int) (float64, float64) {
			if i < lost {
				return math.NaN(), math.NaN()
			}
			return 1, 1
		})
		r := checkedResult(t, "share(quality.right) >= baseline - 5 points", e)
		if r.Grade == Fail || last != Pass && r.Grade == Pass {
			t.Errorf("with %d of 300 missing: %v: %s", lost, r.Grade, r.Reason)
		}
		last = r.Grade
	}
}

func TestWhatIsExemptIsNotCounted(t *testing.T) {
	r := checkedResult(t, "share(quality.right) >= 80%", cases(200, 1, "quality.right", func(i int) (float64, float64) {
		if i%2 == 1 {
			return math.Inf(1), math.Inf(1)
		}
		return 1, 1
	}))
	if r.Grade != Pass || r.Candidate.N != 100 || r.Counts[0].Undefined != 100 || r.Counts[0].Missing != 0 {
		t.Errorf("%v over %d cases, %+v; want a pass over 100, the others undefined", r.Grade, r.Candidate.N, r.Counts[0])
	}
}

func TestRenamingAndOrderChangeNothingAndDuplicatesAddNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	var b, c [120]float64
	for i := range b {
		b[i], c[i] = 8+r.NormFloat64()/2, 7.9+r.NormFloat64()/2
	}
	e := cases(120, 2, "quality.score", func(i int) (float64, float64) { return b[i], c[i] })
	const need = "mean(quality.score) >= baseline - 0.5 points"
	want := checkedResult(t, need, e)
	shuffled := e
	shuffled.Records = append([]record.Record(nil), e.Records...)
	r.Shuffle(len(shuffled.Records), func(i, j int) {
		shuffled.Records[i], shuffled.Records[j] = shuffled.Records[j], shuffled.Records[i]
	})
	for i := range shuffled.Records {
		shuffled.Records[i].Session = "x" + shuffled.Records[i].Session
	}
	got := checkedResult(t, need, shuffled)
	if got.Grade != want.Grade || math.Abs(got.Change.Lo-want.Change.Lo) > 1e-12 {
		t.Errorf("shuffled and renamed: %v from %v; want %v from %v", got.Grade, got.Change.Lo, want.Grade, want.Change.Lo)
	}
	twice := e
	for _, x := range e.Records {
		x.Shot += 1000
		twice.Records = append(twice.Records[:len(twice.Records):len(twice.Records)], x)
	}
	if got = checkedResult(t, need, twice); math.Abs(got.Change.Lo-want.Change.Lo) > 1e-12 || math.Abs(got.Change.Hi-want.Change.Hi) > 1e-12 {
		t.Errorf("each case twice in its dialogue: %v to %v; want %v to %v", got.Change.Lo, got.Change.Hi, want.Change.Lo, want.Change.Hi)
	}
}

func TestACheckThatDidNotRunIsInconclusiveAndNeverAbsent(t *testing.T) {
	e := cases(300, 1, "quality.right", func(int) (float64, float64) { return 1, 1 })
	e.Checks = []Checked{quality}
	e.Checks[0].Why = "the budget is spent"
	if r := checkedResult(t, "share(quality.right) >= 50%", e); r.Grade != Inconclusive || !strings.Contains(r.Reason, "the budget is spent") {
		t.Errorf("%v: %s; want inconclusive with the reason", r.Grade, r.Reason)
	}
	e.Checks = append(e.Checks, Checked{Name: "other", Why: "no judge"})
	e.Checks[0].Why = ""
	n, err := ParseNeed("share(quality.right) >= 50%")
	if err != nil {
		t.Fatal(err)
	}
	v := Evaluate(&Contract{Clauses: []Clause{{Need: n}}}, e)
	if v.Grade != Inconclusive || !strings.Contains(v.Reason, "no judge") || v.Clauses[1].Kind != KindCheck {
		t.Errorf("a declared check that no clause is on: %v: %s; want inconclusive with the reason", v.Grade, v.Reason)
	}
}

func TestRecordsOfChecksAreNoLoad(t *testing.T) {
	e := cases(300, 1, "quality.right", func(int) (float64, float64) { return math.NaN(), math.NaN() })
	for i := range 300 {
		e.Records = append(e.Records, record.Record{Shot: int64(i), Variant: "candidate", Workload: "chat", Outcome: record.OK, Due: record.At(0)})
	}
	if r := checkedResult(t, "share(failed) <= 2%", e); r.Grade != Pass || r.Workload != "chat" {
		t.Errorf("%v on %q: %s; want a pass on chat alone", r.Grade, r.Workload, r.Reason)
	}
	n, err := ParseNeed("share(failed) <= 2%")
	if err != nil {
		t.Fatal(err)
	}
	v := Evaluate(&Contract{Clauses: []Clause{{Need: n, On: Names{"quality"}}}}, e)
	if v.Grade != Fail {
		t.Errorf("on: quality gives %v: %s; want a fail", v.Grade, v.Reason)
	}
	if r := checkedResult(t, "mean(value.quality.right) >= 5", e); r.Workload != "quality" {
		t.Errorf("value.quality.right is judged on %q; want the check", r.Workload)
	}
	n, err = ParseNeed("share(quality.right) >= 50%")
	if err != nil {
		t.Fatal(err)
	}
	v = Evaluate(&Contract{Clauses: []Clause{{Need: n, On: Names{"chat"}}}}, e)
	if v.Grade != Inconclusive || !strings.Contains(v.Reason, "only the check quality writes") {
		t.Errorf("on: chat gives %v: %s; want that the check does not write there", v.Grade, v.Reason)
	}
}

func TestValuesOfChecksAreDeclared(t *testing.T) {
	for need, want := range map[string]string{
		"share(quality.right) >= baseline - 1 point": "",
		"mean(quality.score) >= baseline - 1 point":  "",
		"mean(quality.scoer) >= 7":                   `clauses[0].need: the check quality writes no value "scoer"|did you mean quality.score?`,
		"mean(quality.beauty) >= 7":                  `the check quality writes no value "beauty"|it writes quality.score, quality.right, quality.words`,
		"mean(shape.json) >= 7":                      "the suite does not declare the check shape|add - shape: to checks:",
		"mean(qualty.score) >= 7":                    `there is no metric "qualty.score"|did you mean quality.score?`,
		"mean(quality.right) >= 0.5":                 "it has a share, not a mean|write share(quality.right)",
		"share(quality.right) >= baseline * 1.1":     "",
		"share(quality.right) >= 0.9":                "is measured in per cent",
		"mean(quality.score) >= baseline - 5ms":      "is measured in points",
		"count(quality.right) >= baseline":           "has no interval",
		"p95(ttft) <= 1s":                            "",
		"mean(elsewhere) >= 7":                       "",
	} {
		var c Contract
		if err := config.Decode("c.yaml", []byte("version: 1\nclauses:\n  - need: "+need+"\n"), &c); err != nil {
			t.Fatal(err)
		}
		faults := c.Declare([]Checked{quality}, []string{"shape"})
		var got []string
		for _, f := range faults {
			got = append(got, f.Path+": "+f.What+"|"+f.Hint)
			if f.Line != 3 || f.Column < 11 {
				t.Errorf("%s: the fault stands at %d:%d", need, f.Line, f.Column)
			}
		}
		if s := strings.Join(got, "\n"); (want == "") != (s == "") || !strings.Contains(s, want) {
			t.Errorf("%s: %q; want %q", need, s, want)
		}
	}
}

// Of a candidate that lies exactly at the margin at most 5 % may pass and fail,
// with three standard errors of 1,000 runs.
func TestErrorRatesOfCheckedClausesAtTheMargin(t *testing.T) {
	const runs = 1000
	for _, tc := range []struct {
		name, need, value string
		n, per            int
		give              func(r *rand.Rand, dialogue float64) (b, c float64)
	}{
		{
			"paired yes and no, 5 points lost", "share(quality.right) >= baseline - 5 points", "quality.right", 100, 1,
			func(r *rand.Rand, _ float64) (float64, float64) {
				u := r.Float64()
				return yes(u < 0.9), yes(u < 0.82 || u >= 0.97)
			},
		},
		{
			"a score in dialogues, half a point lost", "mean(quality.score) >= baseline - 0.5 points", "quality.score", 160, 4,
			func(r *rand.Rand, dialogue float64) (float64, float64) {
				return 6, 5.5 + dialogue + r.NormFloat64()/2
			},
		},
		{
			"a rare loss in dialogues", "share(quality.right) >= baseline - 2 points", "quality.right", 400, 2,
			func(_ *rand.Rand, dialogue float64) (float64, float64) {
				return 1, yes(dialogue > -0.5*2.0537489) // 2 % of dialogues lose all
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(11, 4))
			passed, failed := 0, 0
			for range runs {
				var dialogue float64
				e := cases(tc.n, tc.per, tc.value, func(i int) (float64, float64) {
					if i%tc.per == 0 {
						dialogue = r.NormFloat64() / 2
					}
					return tc.give(r, dialogue)
				})
				switch checkedResult(t, tc.need, e).Grade {
				case Pass:
					passed++
				case Fail:
					failed++
				}
			}
			t.Logf("%s: %.1f %% passed, %.1f %% failed", tc.name, 100*float64(passed)/runs, 100*float64(failed)/runs)
			if p, f := float64(passed)/runs, float64(failed)/runs; p > 0.071 || f > 0.071 {
				t.Errorf("%.3f passed and %.3f failed at the margin; want at most 0.05", p, f)
			}
		})
	}
}

// A mean of numbers with bounds, of which most are equal, is bounded by how far the
// others are off, and not as if they were as far off as can be.
func TestAMeanOfMostlyEqualNumbersIsNotWiderThanItsNumbers(t *testing.T) {
	followed := func(i int) float64 { return []float64{10, 10, 10, 6.6, 3.3}[i%5] } // of 10; mean 7.98
	est, _, err := Measure(cases(20, 1, "quality.score", func(i int) (float64, float64) { return 10, followed(i) }), Quantity{Stat: "mean", Metric: "quality.score"}, "candidate", "quality", nil, 0.95)
	if err != nil || est.Lo < 4.5 || est.Lo > 5.5 || est.Hi > 9.7 || est.Hi < 9 {
		t.Errorf("%.2f [%.2f, %.2f], %v; want about 7.98 [5.0, 9.6]", est.Value, est.Lo, est.Hi, err)
	}
	yes, _, _ := Measure(cases(20, 1, "quality.right", func(i int) (float64, float64) { return 1, yes(followed(i) == 10) }), Quantity{Stat: "share", Metric: "quality.right"}, "candidate", "quality", nil, 0.95)
	if est.Hi-est.Lo > 10*(yes.Hi-yes.Lo)*1.1 {
		t.Errorf("[%.2f, %.2f] of 10 is wider than its sibling of yes and no, [%.2f, %.2f]", est.Lo, est.Hi, yes.Lo, yes.Hi)
	}
}

func TestMeansOfMostlyEqualNumbersPassWronglySeldom(t *testing.T) {
	const runs = 1500
	r := rand.New(rand.NewPCG(4, 8))
	for name, tc := range map[string]struct {
		n    int
		draw func() float64 // of 10
		mean float64
	}{
		"a few far off":  {20, func() float64 { return 10 - 10*float64(r.IntN(8)/7) }, 8.75},
		"many a bit off": {20, func() float64 { return 10 - 3*float64(r.IntN(5)/3) }, 10 - 3*.4},
		"evenly off":     {40, func() float64 { return 10 - 10*r.Float64()*float64(r.IntN(4)/3) }, 8.75},
	} {
		for how, need := range map[string]string{
			"alone":  fmt.Sprintf("mean(quality.score) >= %.4f", tc.mean),
			"paired": fmt.Sprintf("mean(quality.score) >= baseline - %.4f", 10-tc.mean),
		} {
			passed := 0
			for range runs {
				e := cases(tc.n, 1, "quality.score", func(int) (float64, float64) { return 10, tc.draw() })
				if checkedResult(t, need, e).Grade == Pass {
					passed++
				}
			}
			if most := 0.05 + 3*math.Sqrt(.05*.95/runs); float64(passed) > most*runs {
				t.Errorf("%s, %s: %d of %d pass wrongly", name, how, passed, runs)
			}
		}
	}
}

// A variant that has no number by definition on the hard cases is not held against the
// baseline on the easy ones.
func TestExemptionsOfOneVariantDecideNothing(t *testing.T) {
	exempt := math.Inf(1)
	const need = "share(quality.right) >= baseline - 5 points"
	of := func(cand, base int) Evidence {
		return cases(200, 1, "quality.right", func(i int) (b, c float64) {
			switch {
			case i < cand:
				return 1, exempt
			case i < cand+base:
				return exempt, 1
			}
			return 1, 1
		})
	}
	for _, tc := range []struct {
		cand, base int
		want       Grade
		reason     string
	}{
		{0, 0, Pass, ""},
		{4, 4, Pass, ""},
		{3, 0, Pass, ""},
		{12, 0, Inconclusive, "12 cases can have no right of the candidate alone"},
		{0, 12, Inconclusive, "12 cases none of the baseline alone"},
		{200, 0, Inconclusive, "can have"},
	} {
		if r := checkedResult(t, need, of(tc.cand, tc.base)); r.Grade != tc.want || !strings.Contains(r.Reason, tc.reason) {
			t.Errorf("%d of the candidate and %d of the baseline: %v: %s; want %v with %q", tc.cand, tc.base, r.Grade, r.Reason, tc.want, tc.reason)
		}
	}
}

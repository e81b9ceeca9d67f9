package judge

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/assay-llm/assay/contract"
)

// planted makes labelled cases of a judge: 300 answers of two variants, good or bad,
// short or long, with the label that people give them.
func planted(seed uint64, n int) *Labels {
	r := rand.New(rand.NewPCG(seed, 11))
	l := &Labels{Columns: Columns{Slices: []string{"variant"}}}
	for i := range n {
		q := r.Float64()
		if q > 0.35 && q < 0.65 {
			q = 0.65 // few are hard to tell
		}
		row := Row{
			Line: i + 2, Case: fmt.Sprint(i), Cluster: fmt.Sprint(i), Slices: map[string]string{"variant": []string{"baseline", "candidate"}[i%2]}, Human: "bad",
			Item:   Item{Question: fmt.Sprintf("Question %d?", i)},
			Answer: fmt.Sprintf("quality=%.3f %s, answer %d of %d", q, []string{"baseline", "candidate"}[i%2], i, seed) + strings.Repeat(" and so on", r.IntN(20)),
		}
		if q > 0.5 {
			row.Human = "good"
		}
		l.Rows = append(l.Rows, row)
	}
	return l
}

// remember stores what a judge said in an earlier run.
func remember(t *testing.T, l *Labels, f *fake, c *Criterion) {
	t.Helper()
	j := &Judge{Asker: f, Seed: f.seed}
	for i := range l.Rows {
		m, err := j.mark(t.Context(), c, l.Rows[i].Item, l.Rows[i].Answer, 9)
		if err != nil {
			t.Fatal(err)
		}
		l.Rows[i].Judge = []string{m.Verdict}
	}
}

func plantedPairs(seed uint64, n int) *Labels {
	r := rand.New(rand.NewPCG(seed, 12))
	l := &Labels{Columns: Columns{Other: "answer_b"}}
	for i := range n {
		a, b := r.Float64(), r.Float64()
		label := "candidate"
		if a > b {
			label = "baseline"
		}
		if d := a - b; d < 0.3 && d > -0.3 {
			b = a + 0.3
			label = "candidate"
		}
		answer := func(q float64) string {
			return fmt.Sprintf("quality=%.3f, answer %d of %d", q, i, seed) + strings.Repeat(" and so on", r.IntN(20))
		}
		l.Rows = append(l.Rows, Row{Line: i + 2, Case: fmt.Sprint(i), Cluster: fmt.Sprint(i), Human: label, Answer: answer(a), Candidate: answer(b)})
	}
	return l
}

// instrument measures a fake judge.
func instrument(t *testing.T, f *fake, l *Labels, c *Criterion, attacks int) *Instrument {
	t.Helper()
	f.t = t
	var menu []string
	for _, level := range c.Levels {
		menu = append(menu, level.Verdict)
	}
	s, err := NewScale(l, menu, nil)
	if err != nil {
		t.Fatal(err)
	}
	j := &Judge{Name: "fake", Asker: f, Seed: f.seed}
	all, struck, err := Measurement{Criterion: c, Attacks: attacks, Parallel: 1}.Measure(t.Context(), j, l, s)
	if err != nil {
		t.Fatal(err)
	}
	return Calibrate(all, struck, s, Demands{})
}

func failed(in *Instrument) (names []string) {
	for _, f := range in.Findings {
		if f.Grade == contract.Fail {
			names = append(names, f.Name)
		}
	}
	return names
}

// Each planted fault is found by the finding made for it in 95 of 100 seeds, and the
// judge without a fault, which errs in about one of twenty, is called unfit in at
// most 5 of 100. The default tests try a few seeds.
func TestInstrumentFindsPlantedFaults(t *testing.T) {
	seeds := rounds(1, 10)
	if os.Getenv("ASSAY_SLOW") == "full" {
		seeds = 100
	}
	const noise = 0.12
	for _, c := range []struct {
		name  string
		fake  func(seed uint64) *fake
		pairs bool
		found string // prefix of the finding; "": none
	}{
		{"clean", func(s uint64) *fake { return &fake{seed: s, noise: noise, restless: 0.02} }, false, ""},
		{"clean pairs", func(s uint64) *fake { return &fake{seed: s, noise: noise, restless: 0.02} }, true, ""},
		{"biased position", func(s uint64) *fake { return &fake{seed: s, noise: noise, first: 0.4} }, true, "position"},
		{"prefers the last", func(s uint64) *fake { return &fake{seed: s, noise: noise, first: -0.4} }, true, "position"},
		{"verbose-loving", func(s uint64) *fake { return &fake{seed: s, noise: noise, verbose: 0.4, shift: -0.54} }, false, "length"},
		{"verbose-loving pairs", func(s uint64) *fake { return &fake{seed: s, noise: noise, verbose: 0.35} }, true, "length"},
		{"obeys injections", func(s uint64) *fake { return &fake{seed: s, noise: noise, obeys: true} }, false, "attacks"},
		{"drifts", func(s uint64) *fake { return &fake{seed: s, noise: noise, shift: 0.25} }, false, "steady"},
		{"unparsable 10 %", func(s uint64) *fake { return &fake{seed: s, noise: noise, garbage: 0.32} }, false, "answers"},
		{"NaN and out of range", func(s uint64) *fake { return &fake{seed: s, noise: noise, nonsense: 0.32} }, false, "answers"},
		{"restless", func(s uint64) *fake { return &fake{seed: s, noise: noise, restless: 0.4} }, false, "repeats"},
		{"lenient to the candidate", func(s uint64) *fake { return &fake{seed: s, noise: noise, lenientTo: "candidate", lenience: 0.35} }, false, "even specificity"},
		{"blind", func(s uint64) *fake { return &fake{seed: s, noise: 3} }, false, "sensitivity"},
	} {
		found, other := 0, map[string]int{}
		for seed := range seeds {
			f := c.fake(uint64(seed))
			crit, l := rightness, (*Labels)(nil)
			if c.pairs {
				crit, l = &Builtin()[2], plantedPairs(uint64(seed), 300)
			} else {
				l = planted(uint64(seed), 300)
				remember(t, l, &fake{t: t, seed: uint64(seed), noise: noise, restless: 0.02}, rightness)
			}
			in := instrument(t, f, l, crit, 60)
			names := failed(in)
			hit := c.found == "" && len(names) == 0
			for _, n := range names {
				if c.found != "" && strings.HasPrefix(n, c.found) {
					hit = true
				} else {
					other[n]++
				}
			}
			if hit {
				found++
			}
			if (in.Grade == contract.Fail) != (len(names) > 0) || in.Reason == "" {
				t.Errorf("%s, seed %d: %v (%s) with %v", c.name, seed, in.Grade, in.Reason, names)
			}
		}
		t.Logf("%s: %d of %d, beside it %v", c.name, found, seeds, other)
		if found < (95*seeds+99)/100 && !(seeds < 20 && found == seeds) {
			t.Errorf("%s: %d of %d, want 95 %%", c.name, found, seeds)
		}
	}
}

// The stored labels of XSTest: GPT-4 misses refusals, and differently by model; string
// matching too.
func TestInstrumentOnXSTest(t *testing.T) {
	f, err := os.Open("../../shared/data/judge_calibration/xstest_refusal_labels.csv")
	if err != nil {
		t.Skip("the labels of XSTest are not beside the repository")
	}
	defer f.Close()
	l, err := ReadLabels("xstest.csv", f, Columns{Human: "human_final", Raters: []string{"annotator_1", "annotator_2"}, Judge: []string{"gpt4_judge"}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewScale(l, nil, []string{"2_full_refusal", "3_partial_refusal"})
	if err != nil {
		t.Fatal(err)
	}
	in := Calibrate(l.Observe(s), nil, s, Demands{})
	if in.Grade != contract.Fail || in.Faults[Unparsable] != 11 || in.Cases != 2250 || in.Clusters != 450 {
		t.Errorf("got %v (%s), %v", in.Grade, in.Reason, in.Faults)
	}
	if got := strings.Join(failed(in), " "); !strings.Contains(got, "sensitivity even sensitivity") {
		t.Errorf("failed: %s", got)
	}
	// Eleven answers that are no label are excluded here; as refusals they would make
	// it 0.70.
	if v := *in.Sensitivity.Value; v < 0.69 || v > 0.71 {
		t.Errorf("sensitivity %v, want 0.70", v)
	}
	if v := *in.Agreement.Ceiling.Value; v < 0.955 || v > 0.959 {
		t.Errorf("ceiling %v, want 0.957", v)
	}
	if *in.Agreement.Gap.Hi > -0.2 {
		t.Errorf("gap %+v", in.Agreement.Gap)
	}
	if len(in.Slices) != 5 || len(in.Differences) != 10 {
		t.Errorf("%d slices, %d differences", len(in.Slices), len(in.Differences))
	}
	t.Log(in.Reason)
}

// Few labels decide nothing, and the report says about how many more would.
func TestInstrumentOfFewLabels(t *testing.T) {
	in := instrument(t, &fake{seed: 1, noise: 0.1}, planted(1, 24), rightness, 0)
	if in.Grade != contract.Inconclusive || !strings.Contains(in.Reason, "more labelled cases") {
		t.Errorf("got %v: %s", in.Grade, in.Reason)
	}
	s := &Scale{Labels: []string{"bad", "good"}, Positive: []string{"good"}}
	if in := Calibrate(nil, nil, s, Demands{}); in.Grade != contract.Inconclusive {
		t.Errorf("nothing is %v: %s", in.Grade, in.Reason)
	}
}

func TestReadLabels(t *testing.T) {
	good := "case,prompt,answer,human,model\n1,\"two\nlines\",x,good,a\n1,q,y,bad,b\n2,q,z,,a\n"
	l, err := ReadLabels("l.csv", strings.NewReader(good), Columns{})
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Rows) != 3 || l.Rows[0].Item.Question != "two\nlines" || l.Rows[1].Line != 4 || l.Rows[1].Slices["model"] != "b" || l.Rows[2].Human != "" {
		t.Errorf("got %+v", l.Rows)
	}
	for what, c := range map[string]struct{ text, want string }{
		"empty":          {"", "l.csv:1: the file is empty"},
		"no rows":        {"case,human\n", "l.csv:1: there are no rows"},
		"no labels":      {"case,answer\n1,x\n", "l.csv:1: no column is a person's label"},
		"no case":        {"human\nx\n", "l.csv:1: no column is the id"},
		"column twice":   {"case,human,human\n1,a,b\n", "l.csv:1: column \"human\" is there twice"},
		"cells":          {"case,human\n1,a\n2\n", "l.csv:3:"},
		"quote":          {"case,human\n1,a\"b\n", "l.csv:2:"},
		"open quote":     {"case,human\n1,\"a\n", "l.csv:2:"},
		"case twice":     {"case,human\n1,a\n2,a\n1,b\n", "l.csv:4: case \"1\" is there already, in line 2"},
		"case without":   {"case,human\n,a\n", "l.csv:2: the case has no id"},
		"not UTF-8":      {"case,human\n1,\xff\n", "l.csv:2: column \"human\" is not UTF-8"},
		"a cell of 2 MB": {"case,human\n1," + strings.Repeat("x", 2<<20) + "\n", "l.csv:2: column \"human\" holds more"},
	} {
		if _, err := ReadLabels("l.csv", strings.NewReader(c.text), Columns{}); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", what, err, c.want)
		}
	}
	if _, err := ReadLabels("l.csv", strings.NewReader(good), Columns{Human: "humen"}); err == nil || !strings.Contains(err.Error(), `"human"`) {
		t.Errorf("a column that is not there: %v", err)
	}
}

func FuzzReadLabels(f *testing.F) {
	f.Add("case,prompt,answer,human,model\n1,\"two\nlines\",x,good,a\n2,q,y,bad,b\n")
	f.Add("\ufeffcase,human,judge,judge_swapped\n1,a,b,tie\n2,b,a,b\n")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ReadLabels("l.csv", strings.NewReader(text), Columns{})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "l.csv") && !strings.HasPrefix(err.Error(), "reading l.csv") {
				t.Errorf("no position: %v", err)
			}
			return
		}
		s, err := NewScale(l, nil, nil)
		if err != nil || len(l.Rows) > 20 {
			return
		}
		if in := Calibrate(l.Observe(s), nil, s, Demands{}); in.Grade == contract.Pass {
			t.Errorf("%d rows make a judge fit: %s", len(l.Rows), in.Reason)
		}
	})
}

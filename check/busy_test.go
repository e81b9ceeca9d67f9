package check

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/record"
)

// underTest is a check whose answers are right when they equal the question.
func underTest(n int) *Check {
	return &Check{
		Name: "echo", Doc: "echoes", Values: func(any) []Value {
			return []Value{{Name: "right", YesNo: true, Higher: true}, {Name: "size"}, {Name: "all", Whole: true}}
		},
		Run: func(ctx context.Context, p *Pass) error {
			trials, err := p.Ask(ctx, shots(n))
			for _, t := range trials {
				for i, a := range t.Answers {
					if !a.Answered() {
						continue
					}
					t.Set(i, "size", float64(len(a.Text)))
					if a.Text == "?" {
						t.Exempt(i, "right")
						continue
					}
					t.Set(i, "right", oneIf(a.Text == t.Shot.Question.Prompt))
				}
			}
			for v := range p.Variants {
				p.Estimate(Estimate{Value: "all", Variant: v, None: "not of interest"})
			}
			return err
		},
	}
}

// loadOf returns a Config.Load that sets on while it is there.
func loadOf(on *atomic.Bool, err error) func(context.Context, string, func(context.Context) error) error {
	return func(ctx context.Context, _ string, during func(context.Context) error) error {
		on.Store(true)
		defer on.Store(false)
		return errors.Join(during(ctx), err)
	}
}

func findings(o *Outcome, code string) (out []string) {
	for _, f := range o.Findings {
		if f.Code == code {
			out = append(out, f.Variant)
		}
	}
	return out
}

// TestTwinComparesBothHalves asks idle, once more and under load, and pairs what was said:
// the candidate is wrong on every third case while there is load, the baseline never.
func TestTwinComparesBothHalves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var on atomic.Bool
		cand := &fake{answer: func(q *Question, _ int) *Answer {
			var n int
			if _, err := fmt.Sscanf(q.Prompt, "p%d", &n); err != nil {
				t.Error(err)
			}
			if on.Load() && n%3 == 0 {
				return says(q.Prompt[:2] + "!")
			}
			return says(q.Prompt)
		}}
		base := &fake{answer: echo}
		out, err := Run(t.Context(), Config{
			Checks: []Declared{{Check: underTest(150), Busy: true}, {Check: length(3)}}, Variants: pair(base, cand), Load: loadOf(&on, nil), Seed: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, o := range out {
			names = append(names, o.Check)
			if o.Why != "" {
				t.Errorf("%s proves nothing: %s", o.Check, o.Why)
			}
		}
		if diff := cmp.Diff([]string{"echo", "echo@busy", "length"}, names); diff != "" {
			t.Fatalf("outcomes (-want +got):\n%s", diff)
		}
		// 150 idle, 100 of them again, 150 under load; p000 to p002 are asked by both checks.
		if n := sum(cand.asked); n != 400 {
			t.Errorf("the candidate was asked %d times, want 400", n)
		}
		twin := out[1]
		lost, changed := 0.0, 0.0
		for _, r := range twin.Records {
			if r.Workload != "echo@busy" {
				t.Fatalf("a record is of %s", r.Workload)
			}
			if r.Variant == "candidate" {
				lost, changed = lost+r.Values["echo@busy.right_lost"], changed+r.Values["echo@busy.changed"]
			} else if r.Values["echo@busy.changed"] != 0 || r.Values["echo@busy.right_lost"] != 0 {
				t.Errorf("the baseline changes: %v", r.Values)
			}
		}
		if lost != 50 || changed != 50 {
			t.Errorf("%v lost and %v changed, want 50", lost, changed)
		}
		for _, code := range []string{"varies_under_load", "worse_under_load"} {
			if got := findings(twin, code); !slices.Equal(got, []string{"candidate"}) {
				t.Errorf("%s is found of %v, want the candidate", code, got)
			}
		}
		for _, f := range twin.Findings {
			if f.Code == "varies_under_load" && (f.Figures["first_difference"] != 2 || f.Figures["floor"] != 0) {
				t.Errorf("figures %v; want the first difference after 2 characters", f.Figures)
			}
		}
		for _, e := range twin.Estimates {
			if e.Value == "echo@busy.floor" && (e.Number == nil || *e.Number != 0) {
				t.Errorf("floor of %s: %v", e.Variant, e.Number)
			}
			if e.Value == "echo@busy.excess" && e.Variant == "candidate" && (e.Number == nil || math.Abs(*e.Number-1.0/3) > 0.1) {
				t.Errorf("excess %v, want about a third", e.Number)
			}
		}
		if !slices.ContainsFunc(out[0].Notes, func(n string) bool {
			return strings.HasPrefix(n, "candidate: 50 of 150 answers change under load, and by themselves 0 of 100")
		}) {
			t.Errorf("the idle half says %q", out[0].Notes)
		}
	})
}

func sum(asked map[string]int) (n int) {
	for _, k := range asked {
		n += k
	}
	return n
}

// TestNoiseOfItsOwnIsNoEffectOfLoad: an endpoint that changes a fifth of its answers whenever
// it is asked is not blamed on the load.
func TestNoiseOfItsOwnIsNoEffectOfLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var on atomic.Bool
		blamed := 0
		for seed := range uint64(20) {
			noisy := &fake{answer: func(q *Question, times int) *Answer {
				if (uint64(q.Prompt[3])*7+uint64(q.Prompt[2])*3+uint64(times)*11+seed)%5 == 0 {
					return says(q.Prompt + " ")
				}
				return says(q.Prompt)
			}}
			out, err := Run(t.Context(), Config{Checks: []Declared{{Check: underTest(120), Busy: true}}, Variants: pair(&fake{answer: echo}, noisy), Load: loadOf(&on, nil), Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			blamed += len(findings(out[1], "varies_under_load"))
		}
		if blamed > 0 {
			t.Errorf("the load is blamed %d times of 20", blamed)
		}
	})
}

// TestLoadThatWasNotThereProvesNothing, and neither does an idle half that broke.
func TestLoadThatWasNotThereProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var on atomic.Bool
		broken := underTest(3)
		broken.Run = func(context.Context, *Pass) error { return errors.New("no idea") }
		for _, c := range []struct {
			check *Check
			load  func(context.Context, string, func(context.Context) error) error
			want  string
		}{
			{underTest(30), loadOf(&on, &LoadError{"12 of 40 requests went out"}), "the load was not what it should be: 12 of 40 requests went out"},
			{underTest(30), nil, "nobody makes load here"},
			{broken, loadOf(&on, nil), "its idle half proves nothing: no idea"},
		} {
			out, err := Run(t.Context(), Config{Checks: []Declared{{Check: c.check, Busy: true}}, Variants: pair(&fake{answer: echo}, &fake{answer: echo}), Load: c.load})
			if err != nil {
				t.Fatal(err)
			}
			if twin := out[1]; twin.Why != c.want || len(twin.Findings) > 0 {
				t.Errorf("the twin says %q, want %q", twin.Why, c.want)
			}
		}
	})
}

// TestWhatEitherHalfLacksIsMissing: a case without an answer under load is neither lost nor
// kept, and one that cannot have the value is exempt.
func TestWhatEitherHalfLacksIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var on atomic.Bool
		cand := &fake{answer: func(q *Question, _ int) *Answer {
			switch {
			case on.Load() && q.Prompt == "p001":
				return &Answer{Outcome: record.HTTP4xx, Status: 400, Detail: "full"}
			case q.Prompt == "p002":
				return says("?")
			}
			return says(q.Prompt)
		}}
		out, err := Run(t.Context(), Config{Checks: []Declared{{Check: underTest(4), Busy: true}}, Variants: pair(&fake{answer: echo}, cand), Load: loadOf(&on, nil)})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range out[1].Records {
			if r.Variant != "candidate" {
				continue
			}
			_, lost := r.Values["echo@busy.right_lost"]
			_, exempt := r.Values[record.Exempt("echo@busy.right_lost")]
			_, changed := r.Values["echo@busy.changed"]
			want := map[string][3]bool{"c000": {true, false, true}, "c001": {false, false, false}, "c002": {false, true, true}, "c003": {true, false, true}}[r.Case]
			if got := [3]bool{lost, exempt, changed}; got != want {
				t.Errorf("%s has lost, exempt, changed %v; want %v", r.Case, got, want)
			}
		}
	})
}

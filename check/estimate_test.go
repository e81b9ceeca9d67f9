package check

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// estimating is a check that asks three cases and estimates what do says.
func estimating(do func(p *Pass)) *Check {
	return &Check{
		Name: "whole", Values: func(any) []Value {
			return []Value{{Name: "share", Whole: true, Unit: record.Proportion, Most: 1, Higher: true}, {Name: "length", Whole: true, Unit: record.TokenUnit}, {Name: "bytes"}}
		},
		Run: func(ctx context.Context, p *Pass) error {
			_, err := p.Ask(ctx, shots(3))
			do(p)
			return err
		},
	}
}

func estimated(t *testing.T, do func(p *Pass)) *Outcome {
	t.Helper()
	var o *Outcome
	synctest.Test(t, func(t *testing.T) {
		out, err := Run(t.Context(), Config{Checks: []Declared{{Check: estimating(do)}}, Variants: pair(&fake{answer: echo}, &fake{answer: echo})})
		if err != nil {
			t.Fatal(err)
		}
		o = out[0]
	})
	return o
}

func TestEstimatesAreKeptAtEveryConfidence(t *testing.T) {
	o := estimated(t, func(p *Pass) {
		p.Estimate(Estimate{Value: "share", Variant: 1, Change: record.Difference, Of: stat.Student(-.01, .02, 9, 10)})
		p.Estimate(Estimate{Value: "share", Variant: 1, Of: stat.Student(.8, .02, 9, 10), Missing: 2})
		p.Estimate(Estimate{Value: "length", Variant: 1, None: "the curve never falls"})
		p.Estimate(Estimate{Value: "share", Variant: 0, Of: stat.Student(.81, .02, 9, 10)})
	})
	if o.Why != "" || len(o.Estimates) != 4 {
		t.Fatalf("Why %q, %d estimates; want none and 4", o.Why, len(o.Estimates))
	}
	var order []string
	for _, e := range o.Estimates {
		order = append(order, fmt.Sprint(e.Value, " ", e.Variant, " ", e.Change))
	}
	if diff := cmp.Diff([]string{"whole.length candidate ", "whole.share baseline ", "whole.share candidate ", "whole.share candidate difference"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if e := o.Estimates[0]; e.Number != nil || e.None != "the curve never falls" || len(e.Intervals) != 0 {
		t.Errorf("no number is kept as %+v", e)
	}
	for _, e := range o.Estimates[1:] {
		if why := e.Fault(); why != "" {
			t.Errorf("%s of %s: %s", e.Value, e.Variant, why)
		}
		for _, c := range record.Confidences() {
			want := stat.Student(*e.Number, .02, 9, 10)(c)
			in, ok := e.At(c)
			hi := want.Hi
			if e.Change == "" {
				hi = min(hi, 1)
			}
			if !ok || math.Abs(*in.Lo-want.Lo) > 1e-12 || math.Abs(*in.Hi-hi) > 1e-12 {
				t.Errorf("at %v: [%v, %v]; want [%v, %v]", c, *in.Lo, *in.Hi, want.Lo, hi)
			}
		}
		if between, _ := e.At(.905); between.Confidence != .92 {
			t.Errorf("at 0.905 there is the interval of %v; want that of the next, 0.92", between.Confidence)
		}
		if _, ok := e.At(.999999); ok {
			t.Error("there is an interval beyond the highest confidence that is kept")
		}
	}
	if want := (Signature{Value: "whole.share", Cluster: "case", N: 22, Missing: 2}); o.Signatures[0] != want {
		t.Errorf("signature %+v; want %+v", o.Signatures[0], want)
	}
	text, err := json.Marshal(o)
	var again Outcome
	if err == nil {
		err = json.Unmarshal(text, &again)
	}
	if diff := cmp.Diff(o.Estimates, again.Estimates); err != nil || diff != "" {
		t.Errorf("read back: %v (-want +got):\n%s", err, diff)
	}
}

func TestAnEstimateOutsideOfItsBoundsIsMovedToTheEdge(t *testing.T) {
	for _, tc := range []struct{ value, number, lo, hi float64 }{
		{.5, .5, .4, .6},
		{.95, .95, .85, 1},
		{1, 1, .9, 1},
		{1.05, 1, .9, 1}, // and not [0.95, 1], nor [1.05, 1]
		{1.5, 1, .9, 1},
		{-.3, 0, 0, .1},
	} {
		o := estimated(t, func(p *Pass) {
			p.Estimate(Estimate{Value: "share", Of: func(float64) stat.Estimate {
				return stat.Estimate{Value: tc.value, Lo: tc.value - .1, Hi: tc.value + .1}
			}})
		})
		e := o.Estimates[0]
		in, _ := e.At(.9)
		if near := func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }; !near(*e.Number, tc.number) || !near(*in.Lo, tc.lo) || !near(*in.Hi, tc.hi) {
			t.Errorf("%v ± 0.1 is kept as %v [%v, %v]; want %v [%v, %v]", tc.value, *e.Number, *in.Lo, *in.Hi, tc.number, tc.lo, tc.hi)
		}
	}
}

func TestWhatIsNoNumberIsNone(t *testing.T) {
	for name, of := range map[string]func(float64) stat.Estimate{
		"nan":      stat.Student(math.NaN(), 1, 0, 3),
		"infinite": stat.Student(math.Inf(1), 1, 0, 3),
		"no draws": stat.Draws(1, nil, 3),
		"nothing":  nil,
	} {
		o := estimated(t, func(p *Pass) { p.Estimate(Estimate{Value: "length", Of: of}) })
		if e := o.Estimates[0]; e.Number != nil || e.None == "" || e.Intervals != nil {
			t.Errorf("%s is kept as %+v", name, e)
		}
	}
}

func TestSwappedBoundsOfAnEstimateBoundNothing(t *testing.T) {
	for _, tc := range []struct{ lo, hi float64 }{{.99, .5}, {math.Inf(1), math.Inf(-1)}} {
		o := estimated(t, func(p *Pass) {
			p.Estimate(Estimate{Value: "share", Of: func(float64) stat.Estimate { return stat.Estimate{Value: .9, Lo: tc.lo, Hi: tc.hi} }})
		})
		if in, _ := o.Estimates[0].At(.9); in.Lo != nil || in.Hi != nil {
			t.Errorf("from %v to %v is kept as an interval: %+v", tc.lo, tc.hi, in)
		}
	}
}

func TestEstimatesThatNobodyDeclaredBreakTheCheck(t *testing.T) {
	of := stat.Student(.5, .1, 0, 3)
	for want, do := range map[string]func(p *Pass){
		"which it does not declare": func(p *Pass) { p.Estimate(Estimate{Value: "other", Of: of}) },
		"a number of each case":     func(p *Pass) { p.Estimate(Estimate{Value: "bytes", Of: of}) },
		"variant 2 of 2":            func(p *Pass) { p.Estimate(Estimate{Value: "share", Variant: 2, Of: of}) },
		"against the baseline":      func(p *Pass) { p.Estimate(Estimate{Value: "share", Change: record.Difference, Of: of}) },
		`as a "odds"`:               func(p *Pass) { p.Estimate(Estimate{Value: "share", Variant: 1, Change: "odds", Of: of}) },
		"is estimated twice": func(p *Pass) {
			p.Estimate(Estimate{Value: "share", Of: of})
			p.Estimate(Estimate{Value: "share", Of: of})
		},
		"a number of the whole chec": func(p *Pass) { (&Trial{p: p}).Set(0, "share", .5) },
	} {
		if o := estimated(t, do); !strings.Contains(o.Why, want) {
			t.Errorf("Why %q; want %q", o.Why, want)
		}
	}
}

// Whatever a check's function gives, what is kept is an estimate or none.
func TestKeptEstimatesAreSound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		any := rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, .5, 1, 2, -3})
		var out record.Estimate
		least, most := (Value{Most: rapid.SampledFrom([]float64{0, 1}).Draw(rt, "most")}).room("")
		fill(&out, func(float64) stat.Estimate {
			return stat.Estimate{Value: any.Draw(rt, "value"), Lo: any.Draw(rt, "lo"), Hi: any.Draw(rt, "hi"), Effective: any.Draw(rt, "effective")}
		}, least, most)
		if why := out.Fault(); why != "" {
			rt.Errorf("%s: %+v", why, out)
		}
		if (out.Number == nil) != (len(out.Intervals) == 0) {
			rt.Errorf("a number without intervals, or the reverse: %+v", out)
		}
		if _, err := json.Marshal(out); err != nil {
			rt.Error(err)
		}
	})
}

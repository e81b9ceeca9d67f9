package dimension

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/record"
)

// TestNoiseOfASet asks a set with labels, of a model that knows words as they are
// spelt.
func TestNoiseOfASet(t *testing.T) {
	const rows = `{"id": "a", "prompt": "Where is my invoice?", "expect": "billing"}
{"id": "b", "prompt": "The router is broken.", "expect": "network"}
{"id": "c", "prompt": "My refund is late.", "expect": "billing"}
{"id": "d", "prompt": "Ok?", "expect": "billing"}`
	literal := says(func(asked string) string {
		switch {
		case strings.Contains(asked, "invoice") || strings.Contains(asked, "refund"):
			return "The label is: billing"
		case strings.Contains(asked, "router"):
			return "network"
		}
		return "I cannot tell."
	})
	conf := &NoiseConfig{Rewriting: Rewriting{Set: check.SetRef{File: "set.jsonl"}, Families: []string{"term"}}}
	o := run(t, Noise, conf, set(t, rows), literal)
	if o.Why != "" {
		t.Fatal(o.Why)
	}
	got := make(map[string][]float64)
	for _, r := range o.Records {
		key := r.Case + " " + r.Labels["family"]
		for _, name := range []string{"right", "right_noisy", "swing"} {
			x, ok := r.Values["noise."+name]
			if !ok {
				x = -9 // missing
			}
			if _, ok := r.Values[record.Exempt("noise."+name)]; ok {
				x = 9
			}
			got[key] = append(got[key], x)
		}
	}
	want := map[string][]float64{"a clean": {1, 9, 9}, "b clean": {1, 9, 9}, "c clean": {1, 9, 9}, "d clean": {0, 9, 9}, "a term": {9, 0, -1}, "b term": {9, 0, -1}, "c term": {9, 0, -1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("right, right_noisy and swing, 9 where there is none by definition (-want +got):\n%s", diff)
	}
	if len(o.Findings) != 1 || o.Findings[0].Code != "f1" || !strings.HasPrefix(o.Findings[0].Text, "noise term: macro F1 is ") {
		t.Errorf("findings %+v; want one, of the one family", o.Findings)
	}
	for _, e := range o.Estimates {
		if e.Number == nil || len(e.Intervals) == 0 || e.Intervals[0].Lo != nil && e.Value != "noise.f1" && *e.Intervals[0].Lo > -1 {
			t.Errorf("estimate %+v; want a number, and no bounds from three messages", e)
		}
	}

	conf.Options = []string{"billing", "other"}
	if o := run(t, Noise, conf, set(t, rows), literal); !strings.Contains(o.Why, `case b of set.jsonl expects "network"`) {
		t.Errorf("Why %q; want the case whose label is no option", o.Why)
	}
	conf.Options = nil
	if o := run(t, Noise, conf, set(t, `{"id": "a", "prompt": "invoice", "expect": "x"}`), literal); !strings.Contains(o.Why, "one class") {
		t.Errorf("Why %q; want that there is one class", o.Why)
	}
}

func TestNoiseWithoutAnswersProvesNothing(t *testing.T) {
	dead := model(func(*check.Question) *check.Answer { return &check.Answer{Outcome: record.HTTP4xx, Status: 400} })
	o := run(t, Noise, &NoiseConfig{Rewriting: Rewriting{Cases: 4}}, nil, dead)
	if o.Why == "" {
		t.Errorf("no answers: Why is empty, findings %v", o.Findings)
	}
	for _, r := range o.Records {
		if _, ok := r.Values["noise.right"]; ok {
			t.Errorf("a message that was not answered has a number: %v", r.Values)
		}
	}
}

func TestMacroF1(t *testing.T) {
	l := &labeller{names: []string{"a", "b", "c"}}
	of := func(pairs ...[2]int) float64 {
		k := l.confusion(1)
		for _, p := range pairs {
			k.add(heard{truth: p[0], clean: []int{p[1]}, noisy: []int{3}})
		}
		x := k.f1()
		if x[1] != 0 {
			t.Errorf("answers that name no class have an F1 of %v", x[1])
		}
		return x[0]
	}
	// By hand: a has 2 of 2 expected with 3 named, 2·2/(2+3); b 1 of 2 with 1 named,
	// 2·1/(2+1); c is not expected and does not count.
	if got, want := of([2]int{0, 0}, [2]int{0, 0}, [2]int{1, 0}, [2]int{1, 1}), (4./5+2./3)/2; math.Abs(got-want) > 1e-12 {
		t.Errorf("macro F1 is %v; want %v", got, want)
	}
	if got := of([2]int{0, 0}, [2]int{1, 1}, [2]int{2, 2}); got != 1 {
		t.Errorf("macro F1 of right answers is %v", got)
	}
}

// TestSwingCovers holds that the interval of the swing covers the truth as often as
// it says, few lost messages included.
func TestSwingCovers(t *testing.T) {
	runs := 20
	if os.Getenv("ASSAY_SLOW") != "" {
		runs = 150
	}
	l := &labeller{names: strings.Fields("a b c d")}
	for _, tc := range []struct{ right, lose, gain float64 }{{0.9, 0, 0}, {0.95, 0.03, 0.02}, {0.9, 0.2, 0.3}, {0.8, 0.5, 0.1}} {
		draw := func(r *rand.Rand, n int) (out []heard) {
			for i := range n {
				h := heard{cluster: fmt.Sprint(i), truth: i % 4, clean: []int{i % 4}, noisy: []int{i % 4}}
				wrong := (h.truth + 1 + r.IntN(4)) % 5
				if r.Float64() > tc.right {
					h.clean[0], h.noisy[0] = wrong, wrong
					if r.Float64() < tc.gain {
						h.noisy[0] = h.truth
					}
				} else if r.Float64() < tc.lose {
					h.noisy[0] = wrong
				}
				out = append(out, h)
			}
			return out
		}
		truth := l.confusion(1)
		for _, h := range draw(rand.New(rand.NewPCG(9, 9)), 200_000) {
			truth.add(h)
		}
		want, covered := swing(0)(truth.f1()), 0
		for i := range runs {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			e := l.resample(r, draw(r, 80), 1).estimate(swing(0))(0.95)
			if e.Lo <= want && want <= e.Hi {
				covered++
			}
			if !(e.Lo < e.Hi) {
				t.Fatalf("%+v: the interval [%v, %v] has no width", tc, e.Lo, e.Hi)
			}
		}
		// Three standard errors below what is nominal, and a point for the bootstrap.
		if least := 0.94 - 3*math.Sqrt(0.95*0.05/float64(runs)); float64(covered)/float64(runs) < least {
			t.Errorf("%+v: %d of %d intervals cover %v; want a share of %.3f", tc, covered, runs, want, least)
		} else {
			t.Logf("%+v: %d of %d intervals cover %.3f", tc, covered, runs, want)
		}
	}
}

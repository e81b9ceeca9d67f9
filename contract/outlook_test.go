package contract

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLook(t *testing.T) {
	c := decode(t, "version: 1\nclauses:\n  - need: p99(ttft) <= 800ms\n  - any: [{need: share(failed) <= 1%}, {need: count(failed) <= 3}]\n  - need: p95(tpot) <= baseline * 1.05\n    on: chat\n")
	got := Look(c, []Planned{{Workload: "chat", Requests: 1000}, {Workload: "batch"}})
	want := []Outlook{
		{ID: "c1", Need: "p99(ttft) <= 800ms", Workload: "chat", Requests: 1000, WrongPass: .05, WrongFail: .05, Detects: "2.1 % of requests beyond the limit, where 1 % may be"},
		{ID: "c2.1", Need: "share(failed) <= 1%", Workload: "chat", Requests: 1000, WrongPass: .025, WrongFail: .025, Detects: "2.3 % of requests"},
		{ID: "c2.2", Need: "count(failed) <= 3", Workload: "chat", Requests: 1000},
		{ID: "c3", Need: "p95(tpot) <= baseline * 1.05", Workload: "chat", Requests: 1000, WrongPass: .05, WrongFail: .05, Detects: "1.18 × the baseline, if ln TPOT has σ 0.5"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDetectsWhatItSays: a candidate as far beyond its limit as is said fails about
// four times in five.
func TestDetectsWhatItSays(t *testing.T) {
	n := need(t, "share(failed) <= 1%")
	p := exceeds(n.Limit.Value, quantileOfNormal(DefaultConfidence)+quantileOfNormal(power), 1000)
	rng, failed := source(3), 0
	const runs = 300
	for range runs {
		s := Series{N: 1000, Values: make([]float64, 1000)}
		for i := range s.Values {
			if rng.Float64() < p {
				s.Values[i] = 1
			}
		}
		m, _, err := n.Quantity.metric()
		if err != nil {
			t.Fatal(err)
		}
		if decide(n.Compare, s.measure(n.Quantity, m, twoSided(DefaultConfidence), true).est, n.Limit.Value) == Fail {
			failed++
		}
	}
	if share := float64(failed) / runs; share < 0.65 || share > 0.93 {
		t.Errorf("%.0f %% fail, want about 80 %%", 100*share)
	}
}

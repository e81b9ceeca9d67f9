package report

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/assay-llm/assay/record"
)

// TestWarmCacheIsTold holds who is believed about a prefix cache, and what the plan explains.
func TestWarmCacheIsTold(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	spread := func(r *record.Record, share float64) { // a part of the answers ten times as quick
		first := 200e6 * (1 + rng.Float64())
		if rng.Float64() < share {
			first /= 10
		}
		for i := range r.Events {
			r.Events[i].At = r.Due + record.Instant(first) + record.Instant(i)*1e6
		}
	}
	for name, tt := range map[string]struct {
		repeats *float64
		change  func(m *record.Manifest, r *record.Record)
		want    string // of the candidate; "": nothing
	}{
		"usage":                 {share(0), func(_ *record.Manifest, r *record.Record) { r.Cached = record.Tokens(60) }, "WARM CACHE: 60.0 % of the prompt tokens of candidate on chat came from a prefix cache (by usage), while the plan itself repeats 0 %"},
		"usage, explained":      {share(.55), func(_ *record.Manifest, r *record.Record) { r.Cached = record.Tokens(60) }, ""},
		"usage of a cold cache": {share(0), func(_ *record.Manifest, r *record.Record) { r.Cached = record.Tokens(0) }, ""},
		"the plan not known":    {nil, func(_ *record.Manifest, r *record.Record) { r.Cached = record.Tokens(60) }, ""},
		"metrics": {share(0), func(m *record.Manifest, _ *record.Record) {
			m.Engines = []record.EngineSide{{Variant: "candidate", Workload: "chat", Values: map[string]float64{"prefix_hit_ratio": .4}}}
		}, "WARM CACHE: 40.0 % of the prompt tokens of candidate on chat came from a prefix cache (by the engine's metrics)"},
		"metrics, explained": {share(.35), func(m *record.Manifest, _ *record.Record) {
			m.Engines = []record.EngineSide{{Variant: "candidate", Workload: "chat", Values: map[string]float64{"prefix_hit_ratio": .4}}}
		}, ""},
		"two groups":            {share(0), func(_ *record.Manifest, r *record.Record) { spread(r, .4) }, "MAYBE A WARM CACHE: the TTFT of candidate on chat falls into two groups"},
		"two groups, explained": {share(.5), func(_ *record.Manifest, r *record.Record) { spread(r, .4) }, ""},
		"a few quick ones":      {share(0), func(_ *record.Manifest, r *record.Record) { spread(r, .03) }, ""},
		"one group":             {share(0), func(_ *record.Manifest, r *record.Record) { spread(r, 0) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m, records := usual().build()
			m.Workloads[0].Repeats, m.Engines = tt.repeats, nil
			for i := range records {
				r := &records[i]
				r.Cached, r.Prompt = 0, record.Tokens(100)
				if r.Variant == "candidate" && r.Success() {
					tt.change(m, r)
				}
			}
			alerts := Build(m, records, nil).Alerts
			if tt.want == "" && len(alerts) > 0 || tt.want != "" && (len(alerts) != 1 || !strings.HasPrefix(alerts[0], tt.want)) {
				t.Errorf("alerts %q, want %q", alerts, tt.want)
			}
		})
	}
}

func share(x float64) *float64 { return &x }

// TestUnsaltedSaysWhetherTheCacheWasCold reads the proofs.
func TestUnsaltedSaysWhetherTheCacheWasCold(t *testing.T) {
	m, records := usual().build()
	m.Workloads[0].Unsalted = true
	for _, tt := range []struct{ states, want string }{
		{"", "reset_cache"}, {"cold warm", "reset_cache"}, {"cold cold", "the caches were proven cold before it"},
	} {
		m.Caches = nil
		for i, state := range strings.Fields(tt.states) {
			m.Caches = append(m.Caches, record.CacheProof{Variant: m.Variants[i].Name, Workload: "chat", State: state})
		}
		if alerts := Build(m, records, nil).Alerts; len(alerts) != 1 || !strings.HasPrefix(alerts[0], "SALTS ARE OFF for chat") || !strings.Contains(alerts[0], tt.want) {
			t.Errorf("%q: alerts %q, want %q", tt.states, alerts, tt.want)
		}
	}
}

func TestCompareWarnsOfSaltsThatAreOff(t *testing.T) {
	m, records := usual().build()
	m.Workloads[0].Unsalted = true
	s := Side{Label: "a", Variant: "candidate", Manifest: m, Records: records}
	if w := Compare(s, s).Warnings; len(w) == 0 || !strings.Contains(w[0], "SALTS ARE OFF") {
		t.Errorf("warnings %q", w)
	}
}

package workload

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMixHasItsShares: parts get their shares of the requests, with their own
// lengths, tenant and labels.
func TestMixHasItsShares(t *testing.T) {
	p := plan(t, "arrivals: {poisson: 100/s}\nrequests: 4000\ntemperature: 0\nlabels: {site: eu, tier: none}\nsalt: false\nmix:\n"+
		"  - {tenant: gold, share: 70%, prompts: {synthetic: 20}, output: 9, labels: {tier: paid}, ignore_eos: true}\n"+
		"  - {tenant: free, share: 25%, prompts: {synthetic: 4}, temperature: 1}\n"+
		"  - {tenant: trial, share: 5%, prompts: {synthetic: 6}, prefix: {tokens: 5}}\n", 1, "")
	counts := map[string]int{}
	for s := range p.All() {
		counts[s.Tenant]++
		want := map[string]struct {
			tokens, out int64
			eos         bool
			temperature float64
			labels      map[string]string
		}{
			"gold":  {20, 9, true, 0, map[string]string{"site": "eu", "tier": "paid", "tenant": "gold"}},
			"free":  {4, 0, false, 1, map[string]string{"site": "eu", "tier": "none", "tenant": "free"}},
			"trial": {11, 0, false, 0, map[string]string{"site": "eu", "tier": "none", "tenant": "trial"}},
		}[s.Tenant]
		if int64(tokensOf(text(s))) != want.tokens || s.MaxTokens != want.out || s.IgnoreEOS != want.eos || *s.Temperature != want.temperature || !cmp.Equal(s.Labels, want.labels) || s.Workload != "chat" {
			t.Fatalf("a shot of %s: %+v", s.Tenant, s)
		}
	}
	for tenant, share := range map[string]float64{"gold": 0.7, "free": 0.25, "trial": 0.05} {
		if got := float64(counts[tenant]); math.Abs(got-4000*share) > 4*math.Sqrt(4000*share*(1-share)) {
			t.Errorf("%s has %v of 4000 requests, want %v", tenant, got, 4000*share)
		}
	}
}

// TestPartsOfAMixAreIndependent: a change of one part moves nothing in another.
func TestPartsOfAMixAreIndependent(t *testing.T) {
	with := func(free string) map[int64]Shot {
		out := map[int64]Shot{}
		for s := range plan(t, "arrivals: {poisson: 100/s}\nrequests: 300\nmix:\n  - {tenant: gold, share: 70%, prompts: {synthetic: [5, 20]}}\n  - {tenant: free, share: 30%, "+free+"}\n", 1, "").All() {
			if s.Tenant == "gold" {
				out[s.Index] = s
			}
		}
		return out
	}
	if d := cmp.Diff(with("prompts: {synthetic: 4}"), with("preset: chat, prompts: {synthetic: 9}")); d != "" {
		t.Errorf("differs:\n%s", d)
	}
}

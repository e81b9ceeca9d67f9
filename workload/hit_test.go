package workload

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// hitShare is the share of the tokens of the first n prompts that an infinite cache
// of blocks of 16 finds, block by block.
func hitShare(g *generator, n int64) float64 {
	type block struct{ group, at int64 }
	seen := map[block]bool{}
	hits, all := int64(0), int64(0)
	for i := range n {
		tokens, shared, group := g.length(alone(i))
		all += tokens
		for k := range shared / 16 {
			if b := (block{group, k}); seen[b] {
				hits += 16
			} else {
				seen[b] = true
			}
		}
	}
	return float64(hits) / float64(all)
}

// TestHitIsMet: over 10⁵ requests an infinite prefix cache finds the asked share
// within two points, whatever the lengths, groups and seeds.
func TestHitIsMet(t *testing.T) {
	for i, tt := range []struct {
		prompts, groups string
		hit             int
	}{
		{"512", "", 60},
		{"90", ", groups: 1000", 40},
		{"{lognormal: {median: 400, sigma: 0.8, max: 8k}}", ", groups: 64, reuse: 16", 10},
		{"{uniform: {min: 20, max: 1k}}", ", groups: 64, reuse: 16", 70},
	} {
		text := fmt.Sprintf("arrivals: {poisson: 50/s}\nrequests: 100k\nprompts: {synthetic: %s}\nprefix: {hit: %d%%%s}\n", tt.prompts, tt.hit, tt.groups)
		p := plan(t, text, uint64(i), "")
		if got := hitShare(p.measured, 100_000); math.Abs(got-float64(tt.hit)/100) > 0.02 {
			t.Errorf("%s: %.1f %% found", text, 100*got)
		}
	}
	p := plan(t, "arrivals: {poisson: 50/s}\nfor: 1m\nmix:\n  - {tenant: a, share: 30%, prompts: {synthetic: 900}, prefix: {hit: 70%, groups: 20}}\n  - {tenant: b, share: 70%, prompts: {synthetic: 300}, prefix: {tokens: 30}}\n", 1, "")
	part := p.measured.mix.parts[0]
	a := part.accountOf(p.Planned(), func(i int64) bool { return p.measured.mix.part(i) == 0 })
	if got := a.hit(part.share); math.Abs(got-0.7) > 0.02 || len(a.tokens) < 600 || p.warm.mix.parts[0].share != part.share {
		t.Errorf("a part of a mix: %.3f of %d prompts", got, len(a.tokens))
	}
}

func TestHitBeyondReachIsRefused(t *testing.T) {
	_, err := New("w", decode(t, "arrivals: {poisson: 50/s}\nrequests: 200\nprompts: {synthetic: 512}\nprefix: {hit: 90%, groups: 100}\n"), nil, 1, "")
	if err == nil || !strings.Contains(err.Error(), "at most 5") || !strings.Contains(err.Error(), "of these 200 prompts again, not 90%\n  hint: ") {
		t.Errorf("error %v", err)
	}
}

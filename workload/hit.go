package workload

import (
	"fmt"
	"math"

	"github.com/assay-llm/assay/config"
)

// hitBlock is the block in which Prefix.Hit is accounted, in tokens: the usual one
// of vLLM. Engines that find single tokens again find half a block more of each
// prompt.
const hitBlock = 16

// account is what an infinite prefix cache sees of a generator's first prompts.
type account struct {
	tokens []int64
	edges  []float32
	groups []int32 // numbered from 0
	best   []int64 // scratch: longest shared beginning of each group so far, in blocks
	total  float64
}

// accounted bounds the prompts that an account looks at.
const accounted = 100_000

// accountOf looks at the first n prompts of a plan, as far as picks takes them.
func (g *generator) accountOf(n int64, picks func(i int64) bool) *account {
	a := &account{}
	number := map[int64]int32{}
	for i := range min(n, accounted) {
		if !picks(i) {
			continue
		}
		tokens, _, group := g.length(alone(i))
		k, ok := number[group]
		if !ok {
			k = int32(len(number))
			number[group] = k
		}
		a.tokens, a.groups = append(a.tokens, tokens), append(a.groups, k)
		a.edges = append(a.edges, float32(g.edges.uniform(i)))
		a.total += float64(tokens)
	}
	a.best = make([]int64, len(number))
	return a
}

// hit returns the share of all tokens that the cache finds if this share of each
// prompt is its group's text. It does not fall when share rises.
func (a *account) hit(share float64) float64 {
	clear(a.best)
	found := int64(0)
	for i, tokens := range a.tokens {
		blocks := shared(tokens, share, float64(a.edges[i])) / hitBlock
		best := &a.best[a.groups[i]]
		found += min(blocks, *best)
		*best = max(*best, blocks)
	}
	return float64(found*hitBlock) / a.total
}

// shares returns how many tokens of a prompt are its group's text.
func (g *generator) shares(tokens, key int64) int64 {
	if g.spec.Prefix.Hit > 0 {
		return shared(tokens, g.share, g.edges.uniform(key))
	}
	return int64(g.share * float64(tokens))
}

// shared spreads the edge of what is shared over a block, by a random number:
// prompts of equal lengths would else all share the same number of blocks, and few
// hit ratios could be met.
func shared(tokens int64, share, u float64) int64 {
	if share == 1 {
		return tokens
	}
	return int64(min(max(share*float64(tokens)+hitBlock*(u-0.5), 0), float64(tokens)))
}

// aim sets the share of each prompt that is its group's text so that a cache finds
// what Prefix.Hit says, over the plan's own prompts, of which there are n.
func (g *generator) aim(n int64, picks func(i int64) bool) error {
	want := float64(g.spec.Prefix.Hit)
	if want == 0 {
		return nil
	}
	a := g.accountOf(n, picks)
	if len(a.tokens) == 0 {
		return nil
	}
	if most := a.hit(1); most < want {
		return fmt.Errorf("prefix.hit: a prefix cache can find at most %v of these %d prompts again, not %v\n  hint: write fewer groups, a longer reuse, longer prompts or more requests",
			config.Percent(math.Floor(most*1000)/1000), len(a.tokens), g.spec.Prefix.Hit)
	}
	lo, hi := 0.0, 1.0
	for range 20 {
		if mid := (lo + hi) / 2; a.hit(mid) < want {
			lo = mid
		} else {
			hi = mid
		}
	}
	g.share = hi
	return nil
}

// aim does so for all parts of the plan; those without salt and of the warm-up
// follow the measured ones.
func (p *Plan) aim() error {
	n := int64(accounted)
	if c := p.spec.Requests; c > 0 {
		n = int64(c)
	} else if _, r := p.spec.Arrivals.open(); r != nil {
		n = max(1, int64(math.Min(p.spec.expected(r), accounted)))
	}
	if p.measured.mix == nil {
		err := p.measured.aim(n, func(int64) bool { return true })
		p.bare.share, p.warm.share = p.measured.share, p.measured.share
		return err
	}
	m := p.measured.mix
	for k, part := range m.parts {
		if err := part.aim(n, func(i int64) bool { return m.part(i) == k }); err != nil {
			return fmt.Errorf("mix[%d].%w", k, err)
		}
		p.bare.mix.parts[k].share, p.warm.mix.parts[k].share = part.share, part.share
	}
	return nil
}

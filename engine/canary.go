package engine

import (
	"fmt"

	"github.com/assay-llm/assay/record"
)

// The states of a prefix cache.
const (
	Cold    = "cold"
	Warm    = "warm"
	Unknown = "unknown"
)

// seen is the least share of a canary that must come from the cache when it is sent
// again at once: caches keep whole blocks, and the canary has several.
const seen = .5

// Judge decides what the canary of p shows, and writes it into State and Why. That a
// cache is cold takes two things: that hits can be seen at all, and that none is
// seen behind the emptying. Where two accounts of the hits differ, nothing is
// proven.
func Judge(p *record.CacheProof) {
	prompt, told := p.Again.Prompt.N()
	before, seenBefore := p.Again.Hits()
	after, seenAfter := p.After.Hits()
	p.State = Unknown
	for _, x := range []record.CacheProbe{p.First, p.Again, p.After} {
		if x.Outcome != record.OK {
			p.Why = fmt.Sprintf("the canary was not answered: %s", cleaned(string(x.Outcome)))
			return
		}
	}
	switch {
	case !told || prompt == 0:
		p.Why = "the answers do not tell how long the canary is"
	case !seenBefore || !seenAfter:
		p.Why = "neither the answers nor the engine's metrics tell what came from the cache"
	case apartBy(p.Again) || apartBy(p.After):
		p.Why = "the answers' usage and the engine's counter do not agree on what came from the cache"
	case float64(before) < seen*float64(prompt):
		p.Why = fmt.Sprintf("sent again at once, %d of its %d tokens came from the cache: it is off, too small, or its hits are not told", before, prompt)
	case after > 0:
		p.State = Warm
		p.Why = fmt.Sprintf("%d of the canary's %d tokens came from the cache before it was to be emptied, and still %d behind it", before, prompt, after)
	default:
		p.State = Cold
		p.Why = fmt.Sprintf("%d of the canary's %d tokens came from the cache before it was emptied, 0 behind it", before, prompt)
	}
}

// apartBy reports whether usage and counter are both there and one of them has
// hits and the other none.
func apartBy(p record.CacheProbe) bool {
	usage, told := p.Cached.N()
	counted, grew := p.Counted.N()
	return told && grew && (usage > 0) != (counted > 0)
}

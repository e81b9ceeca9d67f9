package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/corpus"
)

const (
	cachesName = "caches answers"
	cachesAsks = "is a prompt that was asked before answered faster, with the same bytes, or for another prompt?"
)

// cached is a prompt that is asked three times, and once with its code changed.
type cached struct {
	warm    bool // temperature 1
	asks    [3]*exchange
	changed *exchange
	code    [2]string // before and after the change
}

// askCaches asks each prompt for the first time between others' repetitions, so
// that the first and the third ask meet the same server.
func (a *auditor) askCaches(ctx context.Context) []cached {
	k, rng := &asker{a, "caches"}, a.rng(1)
	all := make([]cached, 2*a.n.cache)
	type turn struct{ at, prompt, ask int }
	var turns []turn
	prompts := make([][2]string, len(all))
	for i := range all {
		c := &all[i]
		c.warm = i%2 == 1
		c.code = [2]string{newCode(rng), newCode(rng)}
		head, text := salt(rng), corpus.Words(rng, a.words(a.cfg.repeated()))
		for j, code := range c.code {
			prompts[i][j] = fmt.Sprintf("%s%s. The code is %s. Write the code, and then a list of twenty English words chosen at random.", head, text, code)
		}
		for ask, later := range [4]int{0, 6, 10, 13} {
			turns = append(turns, turn{4*i + later, i, ask})
		}
	}
	slices.SortStableFunc(turns, func(x, y turn) int { return cmp.Compare(x.at, y.at) })
	for _, t := range turns {
		c := &all[t.prompt]
		q := question{prompt: prompts[t.prompt][0], max: cacheTokens}
		if c.warm {
			q.temperature, q.seed = 1, int64(rng.Uint32())+1
		}
		if t.ask == 3 {
			q.prompt = prompts[t.prompt][1]
			c.changed = k.ask(ctx, q)
		} else {
			c.asks[t.ask] = k.ask(ctx, q)
		}
	}
	return all
}

// faster is the limit: a repeated prompt may take no less of the first one's time.
const faster = .9

// noise is the least difference of times that counts, in seconds: what stamps of
// a client without the kernel's may be off.
const noise = 200e-6

// timed compares a time of the third ask with that of the first.
type timed struct {
	tally
	ratios []float64
}

func (t *timed) add(first, third *exchange, before, after float64, what string) {
	ratio := after / before
	t.ratios = append(t.ratios, ratio)
	t.tally.add(third, ratio < faster && before-after > noise, fmt.Sprintf("%s %.4g ms, and %.4g ms when first asked (%s)", what, after*1e3, before*1e3, first.id))
}

// firstTimes compares times to the first token.
func firstTimes(all []cached, warm bool) (t timed) {
	for _, c := range all {
		if c.warm != warm || c.asks[0] == nil || c.asks[2] == nil {
			continue
		}
		x, okX := c.asks[0].ttft()
		y, okY := c.asks[2].ttft()
		if okX && okY && x > 0 {
			t.add(c.asks[0], c.asks[2], x, y, "time to first token")
		}
	}
	return t
}

// decodeTimes compares the times a token behind the first. An answer that comes
// in one piece has none: if the first ask did too, the whole time stands in.
func decodeTimes(all []cached, warm bool) (t timed) {
	for _, c := range all {
		if c.warm != warm {
			continue
		}
		x, okX := perToken(c.asks[0])
		y, okY := perToken(c.asks[2])
		what := "time of a token"
		if okX && okY && x == 0 {
			what = "time to the end"
			x, okX = c.asks[0].ttft()
			y, okY = c.asks[2].ttft()
		}
		if okX && okY && x > 0 {
			t.add(c.asks[0], c.asks[2], x, y, what)
		}
	}
	return t
}

// perToken is the time from the first to the last output over the tokens between.
func perToken(x *exchange) (seconds float64, ok bool) {
	if x == nil {
		return 0, false
	}
	seconds, ok = x.decode()
	n, told := x.Claimed.Output.N()
	if !told {
		n = int64(x.payloads())
	}
	return seconds / float64(max(n-1, 1)), ok
}

func (a *auditor) judgeCaches(s *answers) Probe {
	p := Probe{Name: cachesName, Asks: cachesAsks}
	alpha := falseAlarm / probes / 6 // two times at two temperatures, equal bytes, and similar prompts
	for _, warm := range []bool{false, true} {
		at := "at temperature 0"
		if warm {
			at = "at temperature 1"
		}
		decode := decodeTimes(s.caches, warm)
		c := test{.5, .5, alpha}.check("decode "+at, "are the tokens of a repeated prompt more than 10 % faster?", &decode.tally,
			"answers to repeated prompts came from a cache: their tokens took no time to generate",
			"measure with prompts that are never repeated, or have the cache of answers turned off")
		c.Figures = append(c.Figures, medianOf("third ask over first", "", decode.ratios))
		answers := c.Grade == contract.Fail

		first := firstTimes(s.caches, warm)
		f := test{.5, .5, alpha}.check("first token "+at, "is the first token of a repeated prompt more than 10 % faster?", &first.tally,
			"repeated prompts were faster to their first token, and nothing says that prefixes are cached",
			"if it caches prefixes of prompts and says so, audit with --caching-declared; measure with salted prompts anyway")
		f.Figures = append(f.Figures, medianOf("third ask over first", "", first.ratios))
		if told, of := declared(s.caches); f.Grade != contract.Pass && first.of > 0 && !answers && (a.cfg.CachingDeclared || of > 0 && 2*told >= of) {
			why := "usage.cached_tokens owns up to it"
			if a.cfg.CachingDeclared {
				why = "it is declared"
			}
			f.Grade, f.Next, f.Evidence, f.Reason = contract.Pass, "", nil, fmt.Sprintf("a cache of prefixes of prompts, as %s (%d of %d faster)", why, first.hits, first.of)
		}
		p.Checks = append(p.Checks, c, f)
	}
	same := a.sameBytes(s.caches)
	p.Checks = append(p.Checks, test{.25, .5, alpha}.check("equal answers at temperature 1", "does a repeated prompt with another seed get the same bytes?", &same,
		"repeated prompts got the same bytes at temperature 1 with another seed: answers are cached, or the temperature is ignored",
		"ask the vendor which; if sampling is greedy, compare it with greedy sampling only"))
	p.Checks = append(p.Checks, a.leaked(s.caches))
	return p
}

// declared counts repeated prompts of which a part is said to come from a cache.
func declared(all []cached) (told, of int) {
	for _, c := range all {
		if !c.asks[2].usable() {
			continue
		}
		of++
		if n, ok := c.asks[2].Claimed.Cached.N(); ok && n > 0 {
			told++
		}
	}
	return told, of
}

// longEnough is the least text, in bytes, that two answers do not share by chance.
const longEnough = 32

// sameBytes counts repeated prompts at temperature 1 that got the same text, of
// those whose answer has something to choose.
func (a *auditor) sameBytes(all []cached) (t tally) {
	for _, c := range all {
		if !c.warm || !c.asks[0].usable() || !c.asks[2].usable() || len(c.asks[0].shown()) < longEnough+len(c.code[0]) {
			continue
		}
		t.add(c.asks[2], c.asks[0].shown() == c.asks[2].shown(), "the same bytes as "+c.asks[0].id+": "+a.quote(c.asks[2].shown()))
	}
	return t
}

// leaked finds answers to a changed prompt that belong to the unchanged one.
func (a *auditor) leaked(all []cached) Check {
	const name, asks = "answers of similar prompts", "does a prompt in which one word was changed get the answer of the unchanged one?"
	var t tally
	repeats := 0
	for _, c := range all {
		x, y := c.asks[0], c.changed
		if !x.usable() || !y.usable() {
			continue
		}
		able := contains(x.Text, c.code[0])
		if able {
			repeats++
		}
		foreign := able && contains(y.Text, c.code[0]) && !contains(y.Text, c.code[1])
		same := c.warm && len(y.shown()) >= longEnough && x.shown() == y.shown()
		if able || c.warm && len(y.shown()) >= longEnough {
			t.add(y, foreign || same, strings.TrimSpace("it answers "+x.id+", asked for "+c.code[1]+": "+a.quote(y.shown())))
		}
	}
	c := test{.02, .3, falseAlarm / probes / 6}.check(name, asks, &t,
		"prompts that differ in one word got each other's answers: a cache that goes by likeness",
		"have the cache of answers turned off: it gives wrong answers")
	c.Figures = append(c.Figures, share("could repeat a code", repeats, len(all)))
	return c
}

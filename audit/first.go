package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/stat"
)

const (
	firstName = "fakes the first token"
	firstAsks = "is the first token that is sent the first of the answer, and sent when the prompt was read?"
)

// pair is a short and a long prompt of one kind, asked one behind the other.
type pair struct{ short, long *exchange }

func (a *auditor) askStarts(ctx context.Context) (out []pair) {
	k, rng := &asker{a, "start"}, a.rng(7)
	for i := range a.n.start {
		ask := func(tokens int64) *exchange {
			return k.ask(ctx, question{prompt: salt(rng) + corpus.Words(rng, tokens) + ". Write a sentence about a " + topic(rng) + ".", max: taskTokens})
		}
		var p pair
		long := a.words(a.cfg.long())
		if i%2 == 0 {
			p.short = ask(16)
			p.long = ask(long)
		} else {
			p.long = ask(long)
			p.short = ask(16)
		}
		out = append(out, p)
	}
	return out
}

// agreement is one prompt at temperature 0, streamed, whole, and whole again.
type agreement struct{ stream, whole, again *exchange }

func (a *auditor) askAgreements(ctx context.Context) (out []agreement) {
	k, rng := &asker{a, "agreement"}, a.rng(8)
	for i := range a.n.agree {
		q := question{prompt: salt(rng) + "Write a sentence about a " + topic(rng) + ".", max: agreeTokens}
		if i%2 == 0 {
			q.prompt = salt(rng) + repeat(newCode(rng))
		}
		whole := q
		whole.whole = true
		out = append(out, agreement{k.ask(ctx, q), k.ask(ctx, whole), k.ask(ctx, whole)})
	}
	return out
}

func (a *auditor) judgeFirst(s *answers) Probe {
	p := Probe{Name: firstName, Asks: firstAsks}
	alpha := falseAlarm / probes / 3
	p.Checks = append(p.Checks, firstTime(s.starts, alpha), a.firstUnderLoad(s, alpha), a.sameStart(s.agrees, alpha))
	return p
}

// firstTime looks for first tokens that come before the prompt was read: a long
// prompt then makes the wait behind the first token longer, not the one before it,
// and by more than half of what a token takes. On an honest server the first token
// waits for the prompt; where that is too short to show, noise puts the longer wait
// on either side. It passes only where the time of a long prompt shows.
func firstTime(pairs []pair, alpha float64) Check {
	const name, asks = "first token", "does a longer prompt delay the first token rather than the second?"
	var t tally
	var before, behind, added, paces []float64
	for _, p := range pairs {
		if p.short == nil || p.long == nil {
			continue
		}
		t0, ok0 := p.short.ttft()
		t1, ok1 := p.long.ttft()
		g0, _, ok2 := p.short.gap()
		g1, pace, ok3 := p.long.gap()
		if !ok0 || !ok1 || !ok2 || !ok3 {
			continue
		}
		before, behind = append(before, t1-t0), append(behind, g1-g0)
		added, paces = append(added, t1-t0+g1-g0), append(paces, pace)
		fake := g1-g0 > t1-t0 && g1-g0 > max(pace/2, noise)
		t.add(p.long, fake, fmt.Sprintf("first token after %.4g ms, the second %.4g ms later, then one each %.4g ms; with a short prompt %.4g ms and %.4g ms", t1*1e3, g1*1e3, pace*1e3, t0*1e3, g0*1e3))
	}
	if t.of == 0 {
		return undecided(name, asks, "no answers came in four pieces or more, so that there is no second token to time", "see whether something on the way holds streams back")
	}
	c := test{.5, .5, alpha}.check(name, asks, &t, "the first token comes before the prompt was read: a long prompt delays the second token instead",
		"take the time to the second token as its time to first token")
	c.Figures = append(c.Figures, medianOf("added before the first token", "s", before), medianOf("added behind it", "s", behind))
	if c.Grade == contract.Pass && median(added) < max(median(paces)/2, noise) {
		c.Grade, c.Next = contract.Inconclusive, "give a larger --context"
		c.Reason = fmt.Sprintf("a long prompt adds %.3g ms in all: too little to see whether the first token waits for it", median(added)*1e3)
	}
	return c
}

// firstUnderLoad looks for first tokens that are sent at once only when there is a
// queue to hide: the wait then is behind the first token. On an honest server the
// first wait behind a token is one of many, and seldom the longest; those who were
// sent in one burst at the beginning of the load are left out, as the first tokens
// of others come between theirs.
func (a *auditor) firstUnderLoad(s *answers, alpha float64) Check {
	const name, asks = "first token under load", "does load delay the first token rather than the second?"
	burst := map[*exchange]bool{}
	for _, x := range s.loadOf {
		burst[x] = true
	}
	var ttfts, gaps []float64
	for _, x := range s.stories {
		if !x.usable() {
			continue
		}
		t, ok := x.ttft()
		if g, _, more := x.gap(); ok && more {
			ttfts, gaps = append(ttfts, t), append(gaps, g)
		}
	}
	var t tally
	for _, x := range a.all {
		if !x.loaded || burst[x] || len(ttfts) == 0 {
			continue
		}
		first, ok := x.ttft()
		gap, _, more := x.gap()
		if !ok || !more {
			continue
		}
		added, behind := first-median(ttfts), gap-median(gaps)
		t.add(x, gap > x.longestLater() && behind > max(added, noise),
			fmt.Sprintf("first token after %.4g ms, the second %.4g ms later; idle %.4g ms and %.4g ms", first*1e3, gap*1e3, median(ttfts)*1e3, median(gaps)*1e3))
	}
	if t.of == 0 {
		c := undecided(name, asks, "no answers under load came in four pieces or more", "")
		c.Supporting = true
		return c
	}
	c := test{.5, .5, alpha}.check(name, asks, &t, "under load something is sent at once, and the wait is behind it", "take the time to the second token as its time to first token")
	c.Supporting = true
	return c
}

func median(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// sameStart compares the first event of a stream that is not blank with the
// beginning of two whole answers to the same prompt. Where one of the three begins
// otherwise than the other two, it is the stream in a third of the cases on an
// honest server, however unsteady its answers are. Blanks before the first word only
// times can judge: some servers strip whole answers.
func (a *auditor) sameStart(all []agreement, alpha float64) Check {
	var t tally
	unsteady := 0
	for _, g := range all {
		if !g.stream.usable() || !g.whole.usable() || !g.again.usable() {
			continue
		}
		opening, thought := g.stream.opening()
		whole, again := g.whole.Text, g.again.Text
		if thought {
			whole, again = g.whole.Reasoning, g.again.Reasoning
		}
		opening, whole, again = strings.TrimLeft(opening, blanks), strings.TrimLeft(whole, blanks), strings.TrimLeft(again, blanks)
		if opening == "" || whole == "" || again == "" {
			continue
		}
		first, second := strings.HasPrefix(whole, opening), strings.HasPrefix(again, opening)
		agree := whole[:min(len(opening), len(whole))] == again[:min(len(opening), len(again))]
		if first != second {
			unsteady++
		}
		t.add(g.stream, !first && !second && agree, fmt.Sprintf("the stream begins with %s, two whole answers (%s, %s) with %s", a.quote(opening), g.whole.id, g.again.id, a.quote(whole)))
	}
	c := test{1, .5, alpha}.check("start of streams", "does a stream begin as whole answers to the same prompt at temperature 0?", &t, "", "")
	if t.hits > 0 && stat.ChanceAtLeast(t.hits, t.hits+unsteady, 1./3) <= alpha {
		c.Grade, c.Evidence, c.Next = contract.Fail, t.evidence, "take the first token that is part of the answer"
		c.Reason = fmt.Sprintf("streams begin with something that is not the beginning of the answer (%d of %d)", t.hits, t.of)
	}
	c.Figures = append(c.Figures, share("a whole answer that begins otherwise than the stream and the other one", unsteady, t.of))
	return c
}

// blanks are cut off before beginnings are compared.
const blanks = " \n\t"

package audit

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/stat"
)

const (
	truncatesName = "truncates"
	truncatesAsks = "is all of a prompt read, and an answer as long as it should be?"
)

// recall is a code hidden in a prompt, and whether it was found.
type recall struct {
	tokens int64 // about, of the prompt
	place  int   // index of labels
	words  int64
	code   string
	x      *exchange
}

func (r *recall) found() bool { return contains(r.x.Text, r.code) }

type recalls struct{ short, long []recall }

// askShort asks for codes in short prompts: what the model can do at all.
func (a *auditor) askShort(ctx context.Context) (out []recall) {
	k, rng := &asker{a, "recall"}, a.rng(2)
	for i := range a.n.short {
		out = append(out, k.recall(ctx, rng, 0, i%len(labels)))
	}
	return out
}

func (a *auditor) askRecalls(ctx context.Context, r *recalls) {
	k, rng := &asker{a, "recall"}, a.rng(3)
	for range a.n.recall {
		for _, tokens := range []int64{a.cfg.Context / 4, a.cfg.Context} {
			for place := range labels {
				r.long = append(r.long, k.recall(ctx, rng, tokens-tokens/16-48, place)) // leaves room for the template and the answer
			}
		}
	}
}

func (a *asker) recall(ctx context.Context, rng random, tokens int64, place int) recall {
	prompt, code := haystack(rng, a.words(tokens), place)
	return recall{tokens: tokens, place: place, words: words(prompt), code: code, x: a.ask(ctx, question{prompt: prompt, max: taskTokens})}
}

// ability counts the short prompts whose code was found.
func (r *recalls) ability() (t tally) {
	for i := range r.short {
		if c := &r.short[i]; c.x.usable() {
			t.add(c.x, c.found(), "")
		}
	}
	return t
}

// ableNext is the next step where a model cannot do the tasks.
const ableNext = "audit a model that follows instructions, or trust a comparison with your own deployment of this one"

// counts are counts to a low and to a high number.
type counts struct{ low, high []*exchange }

const lowCount, highCount = 6, 60

func (a *auditor) askCounts(ctx context.Context) (c counts) {
	k, rng := &asker{a, "count"}, a.rng(4)
	for range a.n.count {
		c.low = append(c.low, k.ask(ctx, question{prompt: salt(rng) + countTo(lowCount), max: taskTokens}))
		c.high = append(c.high, k.ask(ctx, question{prompt: salt(rng) + countTo(highCount), max: countTokens}))
	}
	return c
}

func (a *auditor) askStories(ctx context.Context) (out []*exchange) {
	k, rng := &asker{a, "story"}, a.rng(5)
	for range a.n.story {
		out = append(out, k.ask(ctx, question{prompt: story(rng), max: storyTokens, temperature: 1, seed: int64(rng.Uint32()) + 1}))
	}
	return out
}

// lengths are the claimed lengths of answers, in tokens.
func lengths(all []*exchange) (out []float64) {
	for _, x := range all {
		if !x.usable() {
			continue
		}
		if n, ok := x.Claimed.Output.N(); ok {
			out = append(out, float64(n))
		}
	}
	return out
}

func (a *auditor) judgeTruncates(s *answers) Probe {
	p := Probe{Name: truncatesName, Asks: truncatesAsks}
	alpha := falseAlarm / probes / 11 // six places of codes, usage, counting, constant and claimed lengths, the reference
	p.Checks = append(p.Checks, a.recallChecks(s, alpha)...)
	p.Checks = append(p.Checks, a.promptUsage(s, alpha), a.countCheck(s, alpha), a.constantLength(s, alpha), a.claimedLength(alpha))
	if ref := a.cfg.Reference; ref != nil {
		p.Checks = append(p.Checks, a.reference(s, ref, alpha))
	}
	return p
}

// recallChecks compare each place in long prompts with short prompts.
func (a *auditor) recallChecks(s *answers, alpha float64) (checks []Check) {
	type cell struct {
		tokens int64
		place  int
	}
	cells := map[cell]*tally{}
	for i := range s.recalls.long {
		r := &s.recalls.long[i]
		c := cell{r.tokens, r.place}
		if cells[c] == nil {
			cells[c] = new(tally)
		}
		if r.x.usable() {
			cells[c].add(r.x, !r.found(), fmt.Sprintf("asked for %s, it says %s", r.code, a.quote(r.x.Text)))
		}
	}
	order := slices.SortedFunc(maps.Keys(cells), func(x, y cell) int { return int(x.tokens-y.tokens)*4 + x.place - y.place })
	for _, at := range order {
		t := cells[at]
		where := [...]string{"start", "middle", "end"}[at.place]
		name := fmt.Sprintf("code at the %s of %d tokens", where, at.tokens)
		checks = append(checks, a.beside(name, "is it found as in short prompts?", t, &a.able, alpha,
			fmt.Sprintf("what stands at the %s of a prompt of about %d tokens is not read", where, at.tokens),
			"ask for the real length of its context; the model may be too weak for it, or the prompt is cut", "a smaller --context"))
	}
	return checks
}

// beside judges misses in a hard task beside hits in an easy one of the same
// kind.
func (a *auditor) beside(name, asks string, misses, easy *tally, alpha float64, found, next, smaller string) Check {
	hits := misses.of - misses.hits
	c := Check{Name: name, Asks: asks, Figures: []Figure{share("right", hits, misses.of), share("right in easy ones", easy.hits, easy.of)}}
	switch lo := stat.ExactShare(hits, misses.of, 1-2*passWrong).Lo; {
	case misses.of == 0:
		c.Reason, c.Next = "no such prompt was answered", "see why requests failed; try "+smaller
	case 4*easy.hits < 3*easy.of || easy.of == 0:
		c.Reason, c.Next = fmt.Sprintf("the model does the easy task in %d of %d tries only", easy.hits, easy.of), ableNext
	case stat.ChanceFewer(hits, misses.of, easy.hits, easy.of) <= alpha && 2*hits < misses.of:
		c.Grade, c.Reason, c.Next, c.Evidence = contract.Fail, fmt.Sprintf("%s (right %d of %d, easy ones %d of %d)", found, hits, misses.of, easy.hits, easy.of), next, misses.evidence
	case lo >= .5:
		c.Grade, c.Reason = contract.Pass, fmt.Sprintf("right %d of %d", hits, misses.of)
	default:
		c.Reason, c.Next, c.Evidence = fmt.Sprintf("right %d of %d: too few to rule it out", hits, misses.of), "audit again with --budget thorough or "+smaller, misses.evidence
	}
	return c
}

// promptUsage holds the claimed tokens of prompts to the growth of their text:
// at least half a token for each word more, and as many a word at the end as at
// the beginning.
func (a *auditor) promptUsage(s *answers, alpha float64) Check {
	const name, asks = "growth of prompt_tokens", "does usage grow with the prompt?"
	type point struct{ words, tokens, n float64 }
	mean := func(rs []recall, keep func(*recall) bool) (p point) {
		for i := range rs {
			if n, ok := claimedPrompt(rs[i].x); ok && keep(&rs[i]) {
				p.words, p.tokens, p.n = p.words+float64(rs[i].words), p.tokens+float64(n), p.n+1
			}
		}
		return point{p.words / p.n, p.tokens / p.n, p.n}
	}
	longest := int64(0)
	for i := range s.recalls.long {
		longest = max(longest, s.recalls.long[i].tokens)
	}
	short := mean(s.recalls.short, func(*recall) bool { return true })
	quarter := mean(s.recalls.long, func(r *recall) bool { return r.tokens < longest })
	var t tally
	var per []float64
	for i := range s.recalls.long {
		r := &s.recalls.long[i]
		n, ok := claimedPrompt(r.x)
		if !ok || short.n == 0 || float64(r.words)-short.words < leastWords/2 {
			continue
		}
		grown := (float64(n) - short.tokens) / (float64(r.words) - short.words)
		per = append(per, grown)
		cut := grown < .5
		if r.tokens == longest && quarter.n > 0 && quarter.words-short.words >= leastWords && float64(r.words)-quarter.words >= leastWords {
			early := (quarter.tokens - short.tokens) / (quarter.words - short.words)
			late := (float64(n) - quarter.tokens) / (float64(r.words) - quarter.words)
			cut = cut || late < .8*early
		}
		t.add(r.x, cut, fmt.Sprintf("%d prompt tokens for %d words; short prompts have %.0f for %.0f", n, r.words, short.tokens, short.words))
	}
	switch {
	case t.of == 0 && short.n > 0:
		return undecided(name, asks, "no long prompt was answered that is much longer than the short ones", "give another --context")
	case t.of == 0:
		return undecided(name, asks, "the server tells no prompt tokens", "have usage sent (stream_options.include_usage)")
	}
	c := test{.1, .5, alpha}.check(name, asks, &t, "the server's own count of prompt tokens stops growing with the text: prompts are cut",
		"ask for the real length of its context; longer prompts should be refused, not cut")
	c.Figures = append(c.Figures, medianOf("tokens a word", "tokens", per))
	return c
}

// leastWords is the least difference of lengths, in words, that tells how many
// tokens a word has.
const leastWords = 100

func claimedPrompt(x *exchange) (int64, bool) {
	if !x.usable() {
		return 0, false
	}
	return x.Claimed.Prompt.N()
}

// countCheck looks for counts that end before their end although there was room.
func (a *auditor) countCheck(s *answers, alpha float64) Check {
	var easy, misses tally
	for _, x := range s.counts.low {
		if x.usable() {
			easy.add(x, counted(x.Text) >= lowCount, "")
		}
	}
	for _, x := range s.counts.high {
		if x.usable() {
			n := counted(x.Text)
			misses.add(x, n < highCount, fmt.Sprintf("it counts to %d of %d and says finish_reason %q", n, highCount, x.rec.Finish))
		}
	}
	return a.beside("counting", fmt.Sprintf("does it count to %d as well as to %d?", highCount, lowCount), &misses, &easy, alpha,
		"answers end before they are complete, although the limit leaves room", "ask for its limit of output tokens", "another model")
}

// constantLength looks for a hidden limit: answers that stop by themselves, and
// all after the same number of tokens.
func (a *auditor) constantLength(s *answers, alpha float64) Check {
	at := map[int64]int{}
	texts := map[string]bool{}
	stopped := func(x *exchange) (int64, bool) {
		if !x.usable() || x.rec.Finish == "length" {
			return 0, false
		}
		return x.Claimed.Output.N()
	}
	mode := int64(0)
	for _, x := range s.stories {
		if n, ok := stopped(x); ok && !texts[x.shown()] { // a refusal in the same words is no limit
			texts[x.shown()] = true
			if at[n]++; at[n] > at[mode] {
				mode = n
			}
		}
	}
	var t tally
	for _, x := range s.stories {
		if !x.usable() {
			continue
		}
		n, ok := stopped(x)
		t.add(x, ok && n == mode && at[mode] > 1, fmt.Sprintf("finish_reason %q after %d tokens of %d: …%s", x.rec.Finish, n, x.rec.MaxTokens, a.quote(x.Text[max(0, len(x.Text)-30):])))
	}
	c := test{.2, .8, alpha}.check("hidden limit", "do long answers all stop by themselves at the same length?", &t,
		fmt.Sprintf("stories stop by themselves after exactly %d tokens: a hidden limit", mode), "ask for its limit of output tokens")
	c.Figures = append(c.Figures, figure("mean output tokens", "tokens", meanOf(lengths(s.stories))))
	return c
}

// claimedLength looks for answers that claim to have reached the limit and have
// not, by usage or by their bytes: a token that is shown has a byte at least.
func (a *auditor) claimedLength(alpha float64) Check {
	var t tally
	for _, x := range a.all {
		if !x.usable() || x.rec.Finish != "length" || x.q.n > 1 || x.q.max < 8 {
			continue
		}
		n, told := x.Claimed.Output.N()
		hidden, _ := x.Claimed.Reasoning.N()
		few := told && n < x.rec.MaxTokens || hidden == 0 && x.rec.OutputBytes+hiddenTokens < x.rec.MaxTokens
		t.add(x, few, fmt.Sprintf("finish_reason length after %s of %d tokens and %d bytes", known(n, told), x.rec.MaxTokens, x.rec.OutputBytes))
	}
	const name, asks = "finish_reason length", "is the limit reached when it says so?"
	if t.of == 0 {
		c := undecided(name, asks, "no answer reached its limit", "")
		c.Supporting = true
		return c
	}
	c := test{.02, .5, alpha}.check(name, asks, &t, "answers say that they reached their limit, and are shorter", "ask for its limit of output tokens, and of its context")
	c.Supporting = true
	return c
}

func known(n int64, ok bool) string {
	if !ok {
		return "an unknown number"
	}
	return fmt.Sprint(n)
}

// reference compares the lengths of stories with an earlier audit's.
func (a *auditor) reference(s *answers, ref *Report, alpha float64) Check {
	c := Check{Name: "length beside the reference", Asks: "are answers within 10 % of the reference's length?"}
	sameLength(&c, lengths(s.stories), ref.Lengths, alpha, "answers are not as long as the reference's")
	return c
}

// allowedLength is how far mean lengths may be apart, as a share.
const allowedLength = .1

// sameLength judges whether lengths are those of before. If they are, which side
// of the common median a length is on has nothing to do with when it was seen:
// that is Fisher's exact test (of two sides), which a fail takes beside a mean
// that is off by more than is allowed. A pass takes an interval of the ratio of
// means inside of what is allowed.
func sameLength(c *Check, now, before []float64, alpha float64, found string) {
	ratio := stat.Ratio(meanOf(now), meanOf(before))
	c.Figures = append(c.Figures, figure("mean output tokens", "tokens", meanOf(now)), figure("before", "tokens", meanOf(before)), figure("ratio", "", ratio))
	if !ratio.Defined() {
		c.Reason, c.Next = "there are no lengths to compare", "have usage sent (stream_options.include_usage)"
		return
	}
	all := slices.Sorted(slices.Values(slices.Concat(now, before)))
	long := func(values []float64) (n int) {
		for _, v := range values {
			if v >= all[len(all)/2] {
				n++
			}
		}
		return n
	}
	fewer := stat.ChanceFewer(long(now), len(now), long(before), len(before))
	more := stat.ChanceFewer(long(before), len(before), long(now), len(now))
	off := math.Abs(ratio.Value-1) > allowedLength
	switch {
	case off && min(fewer, more) <= alpha/2:
		c.Grade, c.Next = contract.Fail, "compare the texts: they are shorter or longer for a reason"
		c.Reason = fmt.Sprintf("%s: %.0f tokens in the mean, and %.0f", found, meanOf(now).Value, meanOf(before).Value)
	case ratio.Lo >= 1-allowedLength && ratio.Hi <= 1+allowedLength && len(now) >= leastLengths && len(before) >= leastLengths:
		c.Grade, c.Reason = contract.Pass, fmt.Sprintf("ratio %.3f [%.3f, %.3f]", ratio.Value, ratio.Lo, ratio.Hi)
	default:
		c.Reason, c.Next = fmt.Sprintf("ratio %.2f, from %d and %d answers: not enough to tell", ratio.Value, len(now), len(before)), "audit again with --budget thorough"
	}
}

// leastLengths is how many lengths a mean must have to pass.
const leastLengths = 8

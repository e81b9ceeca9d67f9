package main

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/dimension"
	"github.com/assay-llm/assay/haystack"
)

// speaker is a language model whose probabilities are known: words by themselves
// and after the word before, as counted in a text of another seed, words that it
// never saw by their letters, and a habit of going on as the last time that the same
// two words came. The last needs context, and has a limit.
type speaker struct {
	*language
	seed  uint64
	error float64 // standard deviation of the errors of its logits: rounded weights, or sums in another order
	reach int     // tokens back that it can copy from; 0: all
	tires int     // position from which it is less sure of everything; 0: never

	jitter [buckets][]float64 // factors of the words, by the bucket of the word before
	sums   [buckets]float64   // of the words' shares with these factors
	likely [buckets][]int     // the likeliest words
}

const (
	buckets   = 16
	ofWords   = 0.55 // shares of the parts of its distribution
	ofPairs   = 0.40
	ofLetters = 0.05
	listed    = 24
)

// language is what a speaker has learnt.
type language struct {
	index map[string]int
	words []string
	share []float64
	after [][]follower // by word
}

// follower is a word with its share of those that follow another one.
type follower struct {
	word  int
	share float64
}

var learnt = sync.OnceValue(func() *language {
	l := &language{index: make(map[string]int)}
	r := rand.New(rand.NewPCG(1, 0x5eed))
	text := corpus.Words(r, 30_000)
	for i := range uint64(20) {
		p, err := haystack.New(haystack.Spec{Chars: 8000, Seed: 1000 + i, Needle: 2000 + i})
		if err != nil {
			panic(err)
		}
		text += "\n" + p.Text
	}
	last := -1
	for _, t := range tokenised(text) {
		w, ok := l.index[t]
		if !ok {
			w = len(l.words)
			l.index[t] = w
			l.words, l.share, l.after = append(l.words, t), append(l.share, 0), append(l.after, nil)
		}
		l.share[w]++
		if last >= 0 {
			i := slices.IndexFunc(l.after[last], func(f follower) bool { return f.word == w })
			if i < 0 {
				i = len(l.after[last])
				l.after[last] = append(l.after[last], follower{word: w})
			}
			l.after[last][i].share++
		}
		last = w
	}
	// Counts of a small text are often equal; the probabilities of a model never are.
	sum := 0.0
	for w := range l.share {
		l.share[w] *= math.Exp(0.7 * r.NormFloat64())
		sum += l.share[w]
	}
	for w := range l.share {
		l.share[w] /= sum
		next, sum := l.after[w], 0.0
		for i := range next {
			next[i].share *= math.Exp(0.7 * r.NormFloat64())
			sum += next[i].share
		}
		for i := range next {
			next[i].share /= sum
		}
	}
	return l
})

// tokenised cuts a text into words, numbers and other characters, each with the
// space before it.
func tokenised(text string) (out []string) {
	kind := func(c rune) int {
		switch {
		case unicode.IsLetter(c):
			return 1
		case unicode.IsDigit(c):
			return 2
		}
		return 0
	}
	runes := []rune(text)
	for i := 0; i < len(runes); {
		end := i + 1
		if runes[i] == ' ' && end < len(runes) && runes[end] != ' ' {
			end++
		}
		for k := kind(runes[end-1]); k > 0 && end < len(runes) && kind(runes[end]) == k; {
			end++
		}
		out = append(out, string(runes[i:end]))
		i = end
	}
	return out
}

func newSpeaker(seed uint64, error float64) *speaker {
	s := &speaker{language: learnt(), seed: seed, error: error}
	for b := range buckets {
		r := chance(seed, "weights", fmt.Sprint(b))
		s.jitter[b] = make([]float64, len(s.words))
		for w := range s.words {
			s.jitter[b][w] = math.Exp(error * r.NormFloat64())
			s.sums[b] += s.share[w] * s.jitter[b][w]
		}
		order := make([]int, len(s.words))
		for w := range order {
			order[w] = w
		}
		slices.SortFunc(order, func(x, y int) int {
			return cmp.Compare(s.share[y]*s.jitter[b][y], s.share[x]*s.jitter[b][x])
		})
		s.likely[b] = order[:listed]
	}
	return s
}

// place is what the speaker knows before a token.
type place struct {
	s      *speaker
	b      int // bucket of the word before
	next   []follower
	whole  float64 // what the parts sum to with the factors
	copied string  // as the last time; "": there was none
	habit  float64 // its probability
	tired  float64
}

func (s *speaker) at(tokens []string, i int, seen map[[2]string]int) place {
	p := place{s: s}
	before := ""
	if i > 0 {
		before = tokens[i-1]
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(before))
	p.b = int(h.Sum32() % buckets)
	if w, ok := s.index[before]; ok {
		p.next = s.after[w]
	}
	p.whole = ofWords*s.sums[p.b] + ofLetters
	if p.next == nil {
		p.whole += ofPairs * s.sums[p.b]
	}
	for _, f := range p.next {
		p.whole += ofPairs * f.share * s.jitter[p.b][f.word]
	}
	if i > 1 {
		if j, ok := seen[[2]string{tokens[i-2], before}]; ok && (s.reach == 0 || i-j <= s.reach) {
			p.copied = tokens[j]
			// Sure by 0.85, in logits with the error of its weights.
			noise := s.error * chance(s.seed, "habit", before, p.copied).NormFloat64()
			p.habit = 1 / (1 + math.Exp(-1.73-noise))
		}
	}
	if s.tires > 0 && i >= s.tires {
		p.tired = 0.3
	}
	return p
}

// of is the probability of a token.
func (p *place) of(token string) float64 {
	var x float64
	if w, ok := p.s.index[token]; ok {
		pair := p.s.share[w]
		if p.next != nil {
			pair = 0
			for _, f := range p.next {
				if f.word == w {
					pair = f.share
				}
			}
		}
		x = (ofWords*p.s.share[w] + ofPairs*pair) * p.s.jitter[p.b][w] / p.whole
	} else {
		x = ofLetters * math.Pow(1.0/128, float64(len(token))) / p.whole
	}
	x *= 1 - p.habit
	if token == p.copied {
		x += p.habit
	}
	x *= 1 - p.tired
	if _, ok := p.s.index[token]; ok {
		x += p.tired / float64(len(p.s.words))
	}
	return x
}

// top lists the likeliest tokens.
func (p *place) top(n int) (out []check.Alternative) {
	if n == 0 {
		return nil
	}
	seen := make(map[string]bool)
	add := func(token string) {
		if token != "" && !seen[token] {
			seen[token] = true
			out = append(out, check.Alternative{Text: token, Logprob: math.Log(p.of(token))})
		}
	}
	add(p.copied)
	for _, f := range p.next {
		add(p.s.words[f.word])
	}
	for _, w := range p.s.likely[p.b] {
		add(p.s.words[w])
	}
	slices.SortFunc(out, func(x, y check.Alternative) int {
		return cmp.Or(cmp.Compare(y.Logprob, x.Logprob), strings.Compare(x.Text, y.Text))
	})
	return out[:min(n, len(out))]
}

// score gives the tokens of a text with their log-probabilities, all but the first.
func (s *speaker) score(text string, alternatives int) []check.Scored {
	tokens, seen := tokenised(text), make(map[[2]string]int)
	out := make([]check.Scored, 0, len(tokens))
	at := 0
	for i, t := range tokens {
		if i > 0 {
			p := s.at(tokens, i, seen)
			out = append(out, check.Scored{At: at, Token: check.Token{Text: t, Logprob: math.Log(p.of(t)), Top: p.top(alternatives)}})
		}
		if i > 1 {
			seen[[2]string{tokens[i-2], tokens[i-1]}] = i
		}
		at += len(t)
	}
	return out
}

// Ask scores a prompt. The speaker has nothing to say.
func (s *speaker) Ask(_ context.Context, q *check.Question) (*check.Answer, error) {
	a := answer("", q)
	if q.Score {
		a.Scored = s.score(q.Prompt, q.TopLogprobs)
	}
	return a, nil
}

// Can says that it scores.
func (s *speaker) Can() check.Capabilities {
	return check.Capabilities{check.CapPromptLogprobs: {Standing: check.Proven}}
}

func likelihoodFaults() []fault {
	// So much, a KL of 2e-5, two formats of 16 bits are apart.
	const clean = 0.007
	play := func(part, code string, broken func(s *speaker, r *rand.Rand), right func(s *speaker, f check.Finding) bool) func(context.Context, uint64, bool) (told, error) {
		return func(ctx context.Context, seed uint64, faulty bool) (told, error) {
			candidate := newSpeaker(2*seed+1, clean)
			if faulty {
				broken(candidate, rand.New(rand.NewPCG(seed, 0x11c)))
			}
			conf := dimension.Likelihood.Config().(*dimension.LikelihoodConfig)
			conf.Parts = []string{part}
			_, o, err := run(ctx, seed, newSpeaker(2*seed, clean), candidate, nil, nil, check.Declared{Check: dimension.Likelihood, Config: conf})
			f, found := finding(o, code)
			return told{found: found, placed: found && right != nil && right(candidate, f)}, err
		}
	}
	return []fault{
		{
			check: "likelihood", name: "context not used beyond some distance", by: "the finding context_unused", where: "the first distance beyond it",
			doc: "A model with known probabilities goes on as after the last time that the same two words came; the candidate if that was at most 160 to 1,900 tokens ago, the clean models however long ago.",
			play: play("copy", "context_unused", func(s *speaker, r *rand.Rand) { s.reach = 160 + r.IntN(1740) }, func(s *speaker, f check.Finding) bool {
				for _, d := range dimension.Likelihood.Config().(*dimension.LikelihoodConfig).Distances {
					if d > s.reach {
						return f.Figures["distance"] == float64(d)
					}
				}
				return false
			}),
		},
		{
			check: "likelihood", name: "a long context harms", by: "the finding long_context_harm", where: "the token from which on, within two blocks of 64",
			doc: "From token 700 to 1,500 on 30 % of the candidate's probability goes to all words alike; the clean models do not change with the position.",
			play: play("long", "long_context_harm", func(s *speaker, r *rand.Rand) { s.tires = 700 + r.IntN(800) }, func(s *speaker, f check.Finding) bool {
				return math.Abs(f.Figures["token"]-float64(s.tires)) <= 128
			}),
		},
		{
			check: "likelihood", name: "coarse weights", by: "the finding likelihood_drift",
			doc:  "The candidate's logits have errors with a standard deviation of 0.3, as of weights of 4 bits, those of the clean models of 0.007.",
			play: play("documents", "likelihood_drift", func(s *speaker, _ *rand.Rand) { *s = *newSpeaker(s.seed, 0.3) }, nil),
		},
	}
}

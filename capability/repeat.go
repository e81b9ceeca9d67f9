package capability

import (
	"context"
	"fmt"
	"sync"

	"github.com/assay-llm/assay/check"
)

// prompts are asked again and again. They want answers of some length, since what
// differs differs late.
var prompts = []string{
	"Tell me about the sea.", "Write a sentence about a dog.", "Describe a rainy day.", "What is a bridge?", "Tell a short story about a king.",
	"List some fruits.", "Explain what a clock does.", "Write about a long journey.", "What do farmers do?", "Describe the taste of bread.",
}

// repeated asks each question so many times and returns the answers by question.
func (p *probe) repeated(ctx context.Context, questions []string, times int, more map[string]any) ([][]string, *reply, error) {
	out := make([][]string, len(questions))
	for i, q := range questions {
		for range times {
			a, r, err := p.chat(ctx, q, more)
			if err != nil {
				return nil, nil, err
			}
			if !r.ok() {
				return nil, &r, nil
			}
			out[i] = append(out[i], a.text())
		}
	}
	return out, nil, nil
}

// loaded calls do while other questions are under way, and returns when all have
// ended. What the others are answered does not matter.
func (p *probe) loaded(ctx context.Context, do func() error) error {
	ctx, stop := context.WithCancel(ctx)
	var others sync.WaitGroup
	begun := make(chan struct{}, p.opts.Neighbors)
	for i := range p.opts.Neighbors {
		others.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if n == 0 {
					begun <- struct{}{}
				}
				if _, _, err := p.chat(ctx, fmt.Sprintf("%s Round %d.", prompts[i%len(prompts)], n), map[string]any{"temperature": 1, "max_tokens": 16 + 8*(i%4)}); err != nil {
					return
				}
			}
		})
	}
	for range p.opts.Neighbors {
		<-begun
	}
	err := do()
	stop()
	others.Wait()
	return err
}

// divergence is how answers to one question part.
type divergence struct {
	pairs, differ int // answers compared with the first to their question
	first         int // least byte at which two part
}

func parted(answers [][]string, firsts []string) (d divergence) {
	d.first = -1
	for i, all := range answers {
		for _, s := range all {
			d.pairs++
			if s == firsts[i] {
				continue
			}
			d.differ++
			at := 0
			for at < min(len(s), len(firsts[i])) && s[at] == firsts[i][at] {
				at++
			}
			if d.first < 0 || at < d.first {
				d.first = at
			}
		}
	}
	return d
}

func (d divergence) proof(what string) check.Proof {
	if d.differ == 0 {
		return proven(d.pairs, "%d %s were the same", d.pairs, what)
	}
	return absent("%d of %d %s differ, the first at byte %d", d.differ, d.pairs, what, d.first)
}

// determinism asks again and again: one question with one seed at temperature 1, and
// ten at temperature 0; all of it alone before any of it among others, since what a
// server was told to drop may go on for a while.
func (p *probe) determinism(ctx context.Context) ([]check.Proof, error) {
	seeded, seed, err := p.seed(ctx)
	if err != nil {
		return nil, err
	}
	greedy, refused, err := p.repeated(ctx, prompts, p.opts.Repeats, nil)
	if err != nil {
		return nil, err
	}
	if refused != nil {
		return []check.Proof{seed, unknown("%s", refused.why()), failed(*refused), unknown("%s", refused.why())}, nil
	}
	firsts := make([]string, len(greedy))
	for i := range greedy {
		firsts[i], greedy[i] = greedy[i][0], greedy[i][1:]
	}
	proofs := []check.Proof{seed, seed, parted(greedy, firsts).proof("repeated answers at temperature 0"), {}}
	err = p.loaded(ctx, func() (err error) {
		if seed.Standing == check.Proven {
			if proofs[1], err = p.again(ctx, []string{seedQuestion}, []string{seeded}, withSeed(11), "answers with one seed"); err != nil {
				return err
			}
		}
		proofs[3], err = p.again(ctx, prompts, firsts, nil, "answers at temperature 0")
		return err
	})
	return proofs, err
}

// again asks questions among others and compares the answers with those from before.
func (p *probe) again(ctx context.Context, questions, firsts []string, more map[string]any, what string) (check.Proof, error) {
	// Fewer of them: each waits for the others.
	busy, refused, err := p.repeated(ctx, questions, (p.opts.Repeats+1)/2, more)
	switch {
	case err != nil:
		return check.Proof{}, err
	case refused != nil:
		return unknown("%s", refused.why()), nil
	}
	return parted(busy, firsts).proof(fmt.Sprintf("%s among %d other requests", what, p.opts.Neighbors)), nil
}

const seedQuestion = "Write a sentence about a dog."

func withSeed(seed int) map[string]any {
	return map[string]any{"temperature": 1, "seed": seed, "max_tokens": 32}
}

// seed asks with one seed again and again, and with others: where all seeds give one
// text, equal texts prove nothing.
func (p *probe) seed(ctx context.Context) (first string, _ check.Proof, _ error) {
	same, refused, err := p.repeated(ctx, []string{seedQuestion}, p.opts.Repeats, withSeed(11))
	if err != nil {
		return "", check.Proof{}, err
	}
	if refused != nil {
		return "", failed(*refused), nil
	}
	first = same[0][0]
	if d := parted([][]string{same[0][1:]}, []string{first}); d.differ > 0 {
		return first, d.proof("answers with one seed at temperature 1"), nil
	}
	for seed := range 4 {
		other, refused, err := p.repeated(ctx, []string{seedQuestion}, 1, withSeed(100+seed))
		if err != nil {
			return "", check.Proof{}, err
		}
		if refused == nil && other[0][0] != first {
			return first, proven(p.opts.Repeats, "%d answers with one seed at temperature 1 were the same, and one with another seed was not", p.opts.Repeats), nil
		}
	}
	return first, unknown("five seeds gave one text: equal texts prove nothing"), nil
}

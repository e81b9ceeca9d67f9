package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/dimension"
)

// adder adds two numbers, and is wrong at a rate.
type adder struct {
	seed  uint64
	wrong float64
}

var sumRE = regexp.MustCompile(`(\d+) \+ (\d+)`)

func (m adder) Ask(_ context.Context, q *check.Question) (*check.Answer, error) {
	text := q.Messages[len(q.Messages)-1].Content
	n := sumRE.FindStringSubmatch(text)
	if n == nil {
		return answer("I do not know.", q), nil
	}
	a, _ := strconv.Atoi(n[1])
	b, _ := strconv.Atoi(n[2])
	rng := chance(m.seed, text, strconv.Itoa(q.Replicate))
	sum := a + b
	if rng.Float64() < m.wrong {
		sum += 1 + rng.IntN(9)
	}
	return answer(fmt.Sprintf([]string{"%d", "The answer is %d.", "It makes **%d**."}[rng.IntN(3)], sum), q), nil
}

func exactFaults() []fault {
	return append(loadFaults(), fault{
		check: "exact", name: "wrong more often", by: "a clause, share(exact.right) >= baseline - 5 points",
		doc: "Of 300 sums 25 % are wrong, of the clean models 5 %.",
		play: func(ctx context.Context, seed uint64, faulty bool) (told, error) {
			rng := rand.New(rand.NewPCG(seed, 0))
			set := &corpus.Set{Digest: "sums"}
			for i := range 300 {
				a, b := rng.IntN(900), rng.IntN(900)
				set.Cases = append(set.Cases, corpus.Case{ID: fmt.Sprintf("sum-%03d", i), Prompt: fmt.Sprintf("What is %d + %d?", a, b), Expect: strconv.Itoa(a + b)})
			}
			candidate := adder{seed: 2*seed + 1, wrong: 0.05}
			if faulty {
				candidate.wrong = 0.25
			}
			conf := &dimension.ExactConfig{Asking: dimension.Asking{Set: check.SetRef{File: "sums"}}, Kind: "number"}
			v, _, err := run(ctx, seed, adder{seed: 2 * seed, wrong: 0.05}, candidate, map[string]*corpus.Set{"sums": set},
				[]string{"share(exact.right) >= baseline - 5 points"}, check.Declared{Check: dimension.Exact, Config: conf})
			return told{found: failed(v)}, err
		},
	})
}

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/dimension"
)

// busyAdder adds two numbers on a server that may be busy. Every question has an answer
// of its own, right or wrong; a share of the askings gets it in other words, more of them
// under load if that is the fault.
type busyAdder struct {
	seed uint64
	load *atomic.Bool

	wrong, wrongBusy   float64 // share of the questions
	varies, variesBusy float64 // share of the askings

	mu    sync.Mutex
	asked map[string]int
}

func (m *busyAdder) Ask(_ context.Context, q *check.Question) (*check.Answer, error) {
	text := q.Messages[len(q.Messages)-1].Content
	n := sumRE.FindStringSubmatch(text)
	if n == nil {
		return answer("I do not know.", q), nil
	}
	a, _ := strconv.Atoi(n[1])
	b, _ := strconv.Atoi(n[2])
	m.mu.Lock()
	m.asked[text]++
	times := m.asked[text]
	m.mu.Unlock()
	wrong, varies := m.wrong, m.varies
	if m.load.Load() {
		wrong, varies = m.wrongBusy, m.variesBusy
	}
	rng := chance(m.seed, text, strconv.Itoa(q.Replicate))
	sum, form := a+b, rng.IntN(3)
	if off := 1 + rng.IntN(9); rng.Float64() < wrong {
		sum += off
	}
	if chance(m.seed, "again", text, strconv.Itoa(times)).Float64() < varies {
		form += 3
	}
	return answer(fmt.Sprintf([]string{"%d", "The answer is %d.", "It makes **%d**.", "%d.", "The answer is: %d.", "It makes %d."}[form], sum), q), nil
}

// playBusy asks 300 sums idle and under load, the candidate with a fault that shows under
// load alone.
func playBusy(ctx context.Context, seed uint64, plant func(*busyAdder), clauses ...string) (told, error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	set := &corpus.Set{Digest: "sums"}
	for i := range 300 {
		a, b := rng.IntN(900), rng.IntN(900)
		set.Cases = append(set.Cases, corpus.Case{ID: fmt.Sprintf("sum-%03d", i), Prompt: fmt.Sprintf("What is %d + %d?", a, b), Expect: strconv.Itoa(a + b)})
	}
	load := new(atomic.Bool)
	model := func(seed uint64) *busyAdder {
		return &busyAdder{seed: seed, load: load, wrong: 0.05, wrongBusy: 0.05, varies: 0.02, variesBusy: 0.02, asked: make(map[string]int)}
	}
	candidate := model(2*seed + 1)
	plant(candidate)
	conf := &dimension.ExactConfig{Asking: dimension.Asking{Set: check.SetRef{File: "sums"}}, Kind: "number"}
	v, outcomes, err := runUnder(ctx, seed, model(2*seed), candidate, map[string]*corpus.Set{"sums": set}, clauses, func(ctx context.Context, _ string, during func(context.Context) error) error {
		load.Store(true)
		defer load.Store(false)
		return during(ctx)
	}, check.Declared{Check: dimension.Exact, Config: conf, Busy: true})
	if len(clauses) > 0 {
		return told{found: failed(v)}, err
	}
	_, found := finding(outcomes, "varies_under_load")
	return told{found: found}, err
}

func loadFaults() []fault {
	return []fault{{
		check: "exact", name: "answers vary under load", by: "the finding `varies_under_load`",
		doc: "Under load 25 % of the answers to 300 sums come in other words, equally right; idle, and in the clean models, 2 %.",
		play: func(ctx context.Context, seed uint64, faulty bool) (told, error) {
			return playBusy(ctx, seed, func(m *busyAdder) {
				if faulty {
					m.variesBusy = 0.25
				}
			})
		},
	}, {
		check: "exact", name: "wrong more often under load", by: "a clause, mean(exact@busy.right_lost) <= 5%",
		doc: "Under load 20 % of 300 sums are wrong; idle, and in the clean models, 5 %.",
		play: func(ctx context.Context, seed uint64, faulty bool) (told, error) {
			return playBusy(ctx, seed, func(m *busyAdder) {
				if faulty {
					m.wrongBusy = 0.20
				}
			}, "mean(exact@busy.right_lost) <= 5%")
		},
	}}
}

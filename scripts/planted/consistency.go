package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/dimension"
	"github.com/assay-llm/assay/quiz"
	"github.com/assay-llm/assay/verify"
)

// solver knows the answers of small tasks. Of most it is sure, of some it wavers
// between the right answer and several others, and of some it is sure of a wrong one.
type solver struct {
	seed          uint64
	known         map[string]verify.Expected // by prompt
	wavers, wrong float64                    // shares of tasks
}

func (m solver) Ask(_ context.Context, q *check.Question) (*check.Answer, error) {
	asked := q.Messages[len(q.Messages)-1].Content
	e, ok := m.known[asked]
	if !ok {
		return answer("I do not understand.", q), nil
	}
	// What it makes of a task does not depend on how often it is asked.
	task := chance(m.seed, asked)
	right := 0.98
	wavers, deceived := task.Float64() < m.wavers, task.Float64() < m.wrong
	lure := other(e, task)
	if wavers {
		right = 0.55
	}
	rng := chance(m.seed, asked, strconv.Itoa(q.Replicate))
	said := e.Value
	switch sure := rng.Float64() < right; {
	case deceived && sure:
		said = lure
	case !deceived && !sure:
		said = other(e, rng)
	}
	return answer(worded(e.Kind, said, rng), q), nil
}

// other is a wrong answer of the kind.
func other(e verify.Expected, rng *rand.Rand) string {
	switch e.Kind {
	case verify.Number:
		n, _ := strconv.Atoi(e.Value)
		return strconv.Itoa(n + 1 + rng.IntN(9))
	case verify.Choice:
		for {
			if o := e.Options[rng.IntN(len(e.Options))]; o != e.Value {
				return o
			}
		}
	case verify.Set:
		list := strings.Split(e.Value, ", ")
		k := rng.IntN(len(list))
		return strings.Join(append(list[:k:k], list[k+1:]...), ", ")
	case verify.JSON:
		var v map[string]any
		if err := json.Unmarshal([]byte(e.Value), &v); err == nil {
			v["guests"] = 31 + rng.IntN(9)
			if b, err := json.Marshal(v); err == nil {
				return string(b)
			}
		}
	}
	return "-1"
}

// worded is an answer in one of several forms.
func worded(kind verify.Kind, s string, rng *rand.Rand) string {
	switch kind {
	case verify.Set:
		list := strings.Split(s, ", ")
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		return strings.Join(list, []string{", ", "，", ","}[rng.IntN(3)])
	case verify.JSON:
		return fmt.Sprintf([]string{"%s", "```json\n%s\n```", "Here it is:\n%s"}[rng.IntN(3)], s)
	}
	return fmt.Sprintf([]string{"%s", "Answer: %s", "**%s**", "答案：%s"}[rng.IntN(4)], s)
}

func consistencyFaults() []fault {
	const (
		agreement = "mean(consistency.agreement) >= baseline - 0.05 points"
		confident = "share(consistency.confident_wrong) <= baseline + 3 points"
	)
	play := func(clause string, faulty func(*solver)) func(context.Context, uint64, bool) (told, error) {
		return func(ctx context.Context, seed uint64, with bool) (told, error) {
			known := make(map[string]verify.Expected)
			for _, q := range quiz.Questions(seed, 60, nil) {
				known[q.Prompt] = q.Expected
			}
			clean := solver{seed: 2 * seed, known: known, wavers: 0.05, wrong: 0.02}
			candidate := clean
			if candidate.seed++; with {
				faulty(&candidate)
			}
			v, _, err := run(ctx, seed, clean, candidate, nil, []string{agreement, confident}, check.Declared{Check: dimension.Consistency, Config: new(dimension.ConsistencyConfig)})
			t := told{found: failed(v)}
			for _, r := range v.Clauses {
				t.placed = t.placed || r.Need == clause && r.Grade.String() == "fail"
			}
			return t, err
		}
	}
	return []fault{
		{
			check: "consistency", name: "wavering", by: "a clause, " + agreement, where: "agreement",
			doc:  "Asked five times, the candidate wavers on 60 % of 60 tasks, giving the right answer to 55 % of its answers and several others; clean models waver on 5 %, and are sure of a wrong answer to 2 %.",
			play: play(agreement, func(m *solver) { m.wavers = 0.6 }),
		},
		{
			check: "consistency", name: "sure of what is wrong", by: "a clause, " + confident, where: "confident_wrong",
			doc:  "The candidate gives one and the same wrong answer to 30 % of 60 tasks, nearly as often as it is asked; clean models to 2 %. Its agreement is that of a clean model.",
			play: play(confident, func(m *solver) { m.wrong = 0.3 }),
		},
	}
}

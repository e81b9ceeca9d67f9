package main

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/dimension"
)

// believer answers questions with options by what it believes of their numbers and
// options, and samples: its belief most often, any other now and then. So it is not
// the same twice, and is not moved by how a question is worded, unless it is swayed
// by words of a certain tone.
type believer struct {
	seed  uint64 // of its sampling
	mind  uint64 // of its beliefs; models of one mind agree
	sure  float64
	sways map[string]bool
	sway  float64 // how often such a word makes it answer otherwise
}

// formal are words of a formal tone, in either language.
var formal = []string{
	"purchase", "client", "permit", "require", "select", "complete", "mistake", "repair", "article", "coworker", "trip", "physician", "automobile", "vacation", "regulation", "mend", "begin",
	"可能", "怎样", "为何", "何时", "协助", "选购", "咨询", "告知", "价钱", "移动电话", "能够", "准许", "业已", "假如", "须要", "想请教", "返还", "如何", "快件", "邮包", "大夫", "职员", "同僚", "毁坏", "立刻", "规则", "经理",
}

var digitsRE = regexp.MustCompile(`\d+`)

func (m believer) Ask(_ context.Context, q *check.Question) (*check.Answer, error) {
	text := q.Messages[len(q.Messages)-1].Content
	question, _, _ := strings.Cut(text, "\n\nA) ")
	options := optionRE.FindAllStringSubmatch(text, -1)
	topic := slices.Concat(digitsRE.FindAllString(question, -1))
	var names []string
	for _, o := range options {
		names = append(names, o[2])
	}
	slices.Sort(names)
	mind := chance(m.mind, append(topic, names...)...)
	belief, other := names[mind.IntN(len(names))], names[mind.IntN(len(names))]
	rng := chance(m.seed, text, string(rune('a'+q.Replicate)))
	if m.moved(question) && rng.Float64() < m.sway {
		// Of what it may say, the opposite.
		i := slices.Index(names, belief)
		belief = names[(i+1)%len(names)]
	}
	if rng.Float64() > m.sure {
		belief = other
	}
	for _, o := range options {
		if o[2] == belief {
			return answer([]string{o[1], o[1] + ") " + o[2], "Answer: " + o[1]}[rng.IntN(3)], q), nil
		}
	}
	return answer("I do not know.", q), nil
}

func (m believer) moved(question string) bool {
	low := strings.ToLower(question)
	for w := range m.sways {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

func driftFaults() []fault {
	return []fault{{
		check: "drift", name: "swayed by synonyms", by: "the finding drift or value_conflict", where: "the family synonym",
		doc: "Words of a formal tone make the candidate answer otherwise in 85 %, whatever was asked. All models sample: they say what they believe in about four of five answers, so that no two rounds are equal.",
		play: func(ctx context.Context, seed uint64, faulty bool) (told, error) {
			base, candidate := believer{seed: 2 * seed, mind: seed, sure: 0.75}, believer{seed: 2*seed + 1, mind: seed, sure: 0.75}
			if faulty {
				candidate.sways, candidate.sway = make(map[string]bool), 0.85
				for _, w := range formal {
					candidate.sways[w] = true
				}
			}
			_, out, err := run(ctx, seed, base, candidate, nil, nil, check.Declared{Check: dimension.Drift, Config: dimension.Drift.Config()})
			if err != nil {
				return told{}, err
			}
			var t told
			for _, f := range out[0].Findings {
				if f.Severity != check.Info && f.Variant == "candidate" {
					t.found = true
					t.placed = t.placed || strings.HasPrefix(f.Text, "synonym:")
				}
			}
			return t, nil
		},
	}}
}

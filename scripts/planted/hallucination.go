package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/dimension"
	"github.com/assay-llm/assay/quiz"
)

// inventor answers questions about passages: out of the passage, with something made
// up, or not at all, each at a rate.
type inventor struct {
	seed              uint64
	known             map[string]quiz.Inquiry // by prompt
	invents, abstains float64                 // of questions that the passage answers
	guesses           float64                 // of those that it does not
}

func (m inventor) Ask(_ context.Context, q *check.Question) (*check.Answer, error) {
	asked := q.Messages[len(q.Messages)-1].Content
	k, ok := m.known[asked]
	if !ok {
		return answer("What do you mean?", q), nil
	}
	rng := chance(m.seed, asked, fmt.Sprint(q.Replicate))
	said := k.Expect
	switch draw := rng.Float64(); {
	case said == "" && draw >= m.guesses, said != "" && draw >= m.invents && draw < m.invents+m.abstains:
		return answer(declined(k.Language, rng), q), nil
	case said == "":
		said = madeUp(fmt.Sprint(100+rng.IntN(900)), rng)
	case draw < m.invents:
		said = madeUp(said, rng)
	}
	forms := []string{"%s.", "It is %s.", "According to the passage, that is %s."}
	if k.Language == "zh" {
		forms = []string{"%s。", "是%s。", "根据短文，答案是%s。"}
	}
	return answer(fmt.Sprintf(forms[rng.IntN(len(forms))], said), q), nil
}

func declined(language string, rng *rand.Rand) string {
	forms := []string{"The passage does not say.", "The text doesn't mention that.", "I do not know.", "That is not specified in the passage."}
	if language == "zh" {
		forms = []string{"短文没有提到。", "文中没有说明这一点。", "我不知道。", "无法从短文中得知。"}
	}
	return forms[rng.IntN(len(forms))]
}

// madeUp is a detail like another, but with other digits or another name.
func madeUp(like string, rng *rand.Rand) string {
	if !strings.ContainsAny(like, "0123456789") {
		return []string{"Oskar Lindqvist", "Petra Malinov", "Tobias Ferrant"}[rng.IntN(3)]
	}
	digits := slices.IndexFunc([]byte(like), func(c byte) bool { return c >= '0' && c <= '9' })
	end := digits
	for end < len(like) && like[end] >= '0' && like[end] <= '9' {
		end++
	}
	var n int
	if _, err := fmt.Sscan(like[digits:end], &n); err != nil {
		return like + "9"
	}
	var other int // with as many digits: a day stays one, and a year
	switch {
	case n >= 1000:
		other = n + 1 + rng.IntN(40)
	case n >= 100:
		other = 100 + (n-100+1+rng.IntN(898))%900
	default:
		other = (n+rng.IntN(24))%26 + 1
	}
	if other == n {
		other++
	}
	return like[:digits] + fmt.Sprint(other) + like[end:]
}

// The clauses that docs/hallucination.md tells to use.
var groundedClauses = []string{
	"estimate(hallucination.rate) <= baseline + 3 points", "share(hallucination.unsupported) <= baseline + 3 points",
	"share(hallucination.invented) <= baseline + 10 points", "share(hallucination.wrong) <= baseline + 3 points", "share(hallucination.abstained) <= baseline + 5 points",
}

// read plays one seed, and gives the verdict, what was found, and the truth of the
// candidate.
func read(ctx context.Context, seed uint64, change func(*inventor)) (contract.Verdict, []*check.Outcome, inventor, error) {
	known := make(map[string]quiz.Inquiry)
	for _, q := range quiz.Inquiries(seed, 160, nil) {
		known[q.Prompt] = q
	}
	clean := inventor{seed: 2 * seed, known: known, invents: 0.02, abstains: 0.03, guesses: 0.05}
	candidate := clean
	candidate.seed++
	change(&candidate)
	v, o, err := run(ctx, seed, clean, candidate, nil, groundedClauses, check.Declared{Check: dimension.Hallucination, Config: new(dimension.HallucinationConfig)})
	return v, o, candidate, err
}

// failing lists the values whose clauses failed.
func failing(v contract.Verdict) (values []string) {
	for _, r := range v.Clauses {
		if r.Grade == contract.Fail {
			_, name, _ := strings.Cut(r.Need, "hallucination.")
			name, _, _ = strings.Cut(name, ")")
			values = append(values, name)
		}
	}
	return values
}

// truth is the share of unsupported claims that the rates of a inventor come to: each
// answer is one claim, and of four questions the passage answers three.
func (m inventor) truth() float64 {
	answered := 3 * (1 - m.abstains)
	return (3*m.invents + m.guesses) / (answered + m.guesses)
}

func hallucinationFaults() []fault {
	play := func(change func(*inventor), place func(failed []string, o *check.Outcome, m inventor) bool) func(context.Context, uint64, bool) (told, error) {
		return func(ctx context.Context, seed uint64, faulty bool) (told, error) {
			v, o, m, err := read(ctx, seed, func(m *inventor) {
				if faulty {
					change(m)
				}
			})
			if err != nil {
				return told{}, err
			}
			f := failing(v)
			return told{found: len(f) > 0, placed: place(f, o[0], m)}, nil
		}
	}
	return []fault{
		{
			check: "hallucination", name: "made up at a rate", by: "the clauses of docs/hallucination.md", where: "the rate, by its 95 % interval",
			doc: "Of 160 questions about passages the candidate answers 20 % with a detail that the passage does not have, the unanswerable ones among them; clean models 2 %, and 5 % of the unanswerable.",
			play: play(func(m *inventor) { m.invents, m.guesses = 0.2, 0.2 }, func(failed []string, o *check.Outcome, m inventor) bool {
				for _, f := range o.Findings {
					if f.Code == "unsupported_claims" && f.Variant == "candidate" {
						return slices.Contains(failed, "rate") && f.Figures["rate.lo"] <= m.truth() && m.truth() <= f.Figures["rate.hi"]
					}
				}
				return false
			}),
		},
		{
			check: "hallucination", name: "answering what it cannot know", by: "the clauses of docs/hallucination.md", where: "invented",
			doc: "The candidate answers 60 % of the questions whose answer the passage does not have, and the others as a clean model does.",
			play: play(func(m *inventor) { m.guesses = 0.6 }, func(failed []string, _ *check.Outcome, _ inventor) bool {
				return slices.Contains(failed, "invented") && !slices.Contains(failed, "abstained")
			}),
		},
		{
			check: "hallucination", name: "abstaining instead", by: "the clauses of docs/hallucination.md", where: "abstained, and nothing else",
			doc: "The candidate does not answer 35 % of the questions that the passage answers, and makes up nothing: it must neither pass as the better one nor be told to hallucinate.",
			play: play(func(m *inventor) { m.invents, m.guesses, m.abstains = 0, 0, 0.35 }, func(failed []string, _ *check.Outcome, _ inventor) bool {
				return slices.Equal(failed, []string{"abstained"})
			}),
		},
	}
}

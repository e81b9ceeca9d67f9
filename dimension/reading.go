package dimension

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"unicode"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/judge"
	"github.com/assay-llm/assay/overlap"
	"github.com/assay-llm/assay/verify"
)

// reading looks at the answers of a hallucination check. It is safe for concurrent
// use.
type reading struct {
	c     *HallucinationConfig
	judge *judge.Judge // nil: by rules

	mu    sync.Mutex
	marks []judge.Score
}

func (c *HallucinationConfig) reading(p *check.Pass) (*reading, error) {
	s := &reading{c: c}
	if c.Judge.IsZero() {
		return s, nil
	}
	jury, err := (&FidelityConfig{Judge: c.Judge}).summon(p)
	if err != nil {
		return nil, err
	}
	s.judge = jury[0]
	return s, nil
}

// faults says why nothing can be concluded from what the judge said.
func (s *reading) faults() error {
	if s.judge == nil || len(s.marks) == 0 {
		return nil
	}
	if t := judge.Count(s.marks, shown); t.Inconclusive != "" {
		return fmt.Errorf("judging answers: %s", t.Inconclusive)
	}
	return nil
}

// look finds out what one variant's answer to a question claims, and what it is.
func (s *reading) look(ctx context.Context, q *passageCase, v int) error {
	if q.trials[0] == nil || !q.trials[0].Answers[v].Answered() {
		return nil
	}
	a := q.trials[0].Answers[v]
	g := &grounded{text: said(a), surprise: math.NaN(), selfcheck: math.NaN()}
	claims := q.claimed(finished(a))
	invents := !s.c.grounded() && len(claims) > 0
	switch {
	case !s.c.grounded():
	case s.judge == nil:
		for _, c := range claims {
			g.claims++
			if !c.Supported {
				g.unsupported++
				g.invention = c.Value
			}
		}
		invents = g.unsupported > 0
	default:
		if err := s.judged(ctx, q, g); err != nil {
			return err
		}
		invents = g.unsupported > 0
	}
	if err := s.settle(ctx, q, g, claims, a.Refused(), invents); err != nil {
		return err
	}
	if g.is != right && g.unsupported == 0 && g.unclear == 0 && (a.Refused() || verify.Abstains(g.text)) {
		g.claims = 0 // what it mentions to say that it does not know claims nothing
	}
	if err := s.again(ctx, q, v, g); err != nil {
		return err
	}
	q.answers[v] = g
	return nil
}

// finished is an answer without the word or number in which a limit cut it off, which
// it may not have meant.
func finished(a *check.Answer) string {
	if !cut(a) {
		return said(a)
	}
	return strings.TrimRightFunc(said(a), func(r rune) bool { return r < unicode.MaxASCII && !unicode.IsSpace(r) })
}

// settle says what the answer is to what is expected.
func (s *reading) settle(ctx context.Context, q *passageCase, g *grounded, claims []verify.Claim, refused, invents bool) error {
	switch {
	case q.open: // abstaining is right
		switch {
		case (refused || verify.Abstains(g.text)) && !invents && g.unclear == 0:
			g.is = abstains
		case invents || len(claims) > 0 || g.claims > 0:
			g.is = wrong
		}
		return nil
	case !q.asks:
		return nil
	case s.judge == nil || s.c.grounded():
		g.is = settle(g.text, q.Expect, claims, refused, invents)
		return nil
	}
	if strings.TrimSpace(g.text) == "" {
		return nil // nobody can judge nothing, and it is no abstention
	}
	k := answered()
	m, err := s.point(ctx, &k, judge.Item{Question: q.source, Reference: q.Expect}, g.text, 0)
	if err != nil {
		return err
	}
	g.unjudged = !m.Scored()
	g.is = map[string]standing{"right": right, "wrong": wrong, "abstained": abstains}[m.Verdict]
	return nil
}

// judged asks the judge of each sentence. A sentence without a verdict may be
// either, and leaves unclear what rests on it.
func (s *reading) judged(ctx context.Context, q *passageCase, g *grounded) error {
	k := support()
	sentences := verify.SplitSentences(g.text)
	if most := cmp.Or(s.c.MaxClaims, 12); len(sentences) > most {
		g.capped = len(sentences) - most
		sentences = sentences[:most]
	}
	for _, sentence := range sentences {
		m, err := s.point(ctx, &k, judge.Item{Source: q.source}, sentence, 0)
		if err != nil {
			return err
		}
		switch m.Verdict {
		case "supported":
			g.claims++
		case "contradicted", "not_in_context":
			g.claims++
			g.unsupported++
			g.invention = sentence
		case "not_checkable":
		default:
			g.unclear++
		}
	}
	return nil
}

func (s *reading) point(ctx context.Context, k *judge.Criterion, item judge.Item, text string, replicate int) (judge.Mark, error) {
	m, err := s.judge.Point(ctx, k, item, text, replicate)
	if err == nil {
		s.mu.Lock()
		s.marks = append(s.marks, judge.Score{Value: m.Score, Fault: m.Fault})
		s.mu.Unlock()
	}
	return m, err
}

// again holds the answer against further ones of the same variant. With one of them
// missing there is no number: which one is missing may have to do with what it says.
func (s *reading) again(ctx context.Context, q *passageCase, v int, g *grounded) error {
	var samples []string
	for _, t := range q.trials[1:] {
		if t == nil || !t.Answers[v].Answered() || strings.TrimSpace(said(t.Answers[v])) == "" {
			return nil
		}
		samples = append(samples, said(t.Answers[v]))
	}
	if len(samples) == 0 {
		return nil
	}
	sentences := verify.SplitSentences(g.text)
	if x, err := overlap.Surprised(g.text, sentences, samples); err == nil {
		g.surprise = x.Mean
	}
	if s.judge == nil || len(sentences) == 0 {
		return nil
	}
	k := bornOut()
	sentences = sentences[:min(len(sentences), cmp.Or(s.c.MaxClaims, 12))]
	sum := 0.0
	for _, sentence := range sentences {
		for _, sample := range samples {
			if len(judge.Suspicions(sample, judge.Item{Question: q.source})) > 0 {
				return nil // what a judge is shown must not talk to it
			}
			m, err := s.point(ctx, &k, judge.Item{Source: sample}, sentence, 0)
			if err != nil {
				return err
			}
			if !m.Scored() {
				return nil
			}
			sum += 1 - m.Score
		}
	}
	g.selfcheck = sum / float64(len(sentences)*len(samples))
	return nil
}

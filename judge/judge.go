package judge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/record"
)

// Judge asks one model for verdicts.
type Judge struct {
	Name  string // the model, for reports and signatures
	Asker check.Asker
	// Seed draws the codes of the fences, the names of answers and the order of
	// levels. It is recorded with the run.
	Seed uint64

	// Schema asks for answers that obey the JSON schema of a verdict. It is for
	// endpoints of which that is proven; others may refuse the request.
	Schema bool
	// Logprobs is how many alternatives to ask for at each token; the score is then
	// an expectation over the menu. It is for endpoints of which sound
	// log-probabilities are proven; 0 asks for none.
	Logprobs int
	// Temperature of the judge; nil: 0.
	Temperature *float64
	// MaxTokens of an answer; 0: 512.
	MaxTokens int64
	// Scrub lists names by which the variants may give themselves away, such as
	// their models. Where an answer says "I am NAME", the name is replaced, as are
	// those of known families.
	Scrub []string
}

// Item is what an answer answers. A text that a criterion does not see, or that is
// empty, is not shown.
type Item struct {
	Question  string
	Source    string // what a true answer rests on
	Reference string // an answer known to be good
}

// Fault says why there is no score; "" says that there is one.
type Fault string

// The faults. All but Suspicious are errors of the judge.
const (
	Unanswered Fault = "unanswered" // the request failed
	Refused    Fault = "refused"    // the judge's API says that it refuses
	Truncated  Fault = "truncated"  // the answer ended at the token limit, twice
	Unparsable Fault = "unparsable" // no verdict of the menu in the form that was asked for, twice
	Suspicious Fault = "suspicious" // what was to be judged talks to the judge: nobody was asked, and a person has to look
	Undecided  Fault = "undecided"  // too few jurors have a verdict, or they are divided
)

// Mark is one verdict. The zero Mark is none.
type Mark struct {
	Verdict string  // of the menu; "": none
	Level   int     // its index in the criterion's levels; -1: none
	Score   float64 // 0 to 1; of a comparison 1 if the second answer is better, 1/2 for a tie; NaN: none
	Reason  string  // in the judge's words, which may quote hostile text
	Fault   Fault
	Detail  string // of a fault, fit to be printed

	// Covered is the probability that the judge gave to the menu at the token that
	// decides; NaN: no log-probabilities. Expected: Score is the expectation over the
	// menu, and not just the verdict's. It takes 0.8 of Covered.
	Covered  float64
	Expected bool

	Asked      int      // requests
	Model      string   // as the endpoint names itself
	Scrubbed   bool     // a variant's name for itself was replaced
	Suspicions []string // of Suspicious
}

// Scored reports whether there is a score.
func (m *Mark) Scored() bool { return m.Fault == "" && m.Verdict != "" }

func faulty(f Fault, detail string) Mark {
	return Mark{Level: -1, Score: math.NaN(), Covered: math.NaN(), Fault: f, Detail: detail}
}

const (
	defaultTokens = 512
	leastCovered  = 0.8
)

// Point asks for a verdict on one answer. Marks of different replicates are asked
// anew. The error is of the asking, not of the judge: the context ended, or the
// budget is spent.
func (j *Judge) Point(ctx context.Context, c *Criterion, item Item, answer string, replicate int) (Mark, error) {
	if len(c.Levels) == 0 {
		return Mark{}, fmt.Errorf("criterion %q has no levels, and can only compare", c.Name)
	}
	if why := Suspicions(answer, item); len(why) > 0 {
		return suspect(why), nil
	}
	return j.mark(ctx, c, item, answer, replicate)
}

// mark asks without a look at what the answer says.
func (j *Judge) mark(ctx context.Context, c *Criterion, item Item, answer string, replicate int) (Mark, error) {
	clean, scrubbed := j.scrub(answer)
	scores := make([]float64, len(c.Levels))
	s := j.point(c, item, clean, replicate)
	for i, v := range s.menu {
		scores[i] = c.Score(c.Level(v))
	}
	m, err := j.ask(ctx, s, scores, replicate)
	m.Level, m.Scrubbed = c.Level(m.Verdict), scrubbed
	return m, err
}

func suspect(why []string) Mark {
	m := faulty(Suspicious, strings.Join(why, "; "))
	m.Suspicions = why
	return m
}

// ask asks a sheet, at most twice.
func (j *Judge) ask(ctx context.Context, s *sheet, scores []float64, replicate int) (Mark, error) {
	zero := 0.0
	q := &check.Question{
		Messages: s.messages, MaxTokens: j.MaxTokens, Temperature: &zero, TopLogprobs: j.Logprobs, Replicate: replicate,
	}
	if j.Temperature != nil {
		q.Temperature = j.Temperature
	}
	if q.MaxTokens == 0 {
		q.MaxTokens = defaultTokens
	}
	if j.Schema {
		q.Schema = s.schema
	}
	var m Mark
	for try := 1; ; try++ {
		a, err := j.Asker.Ask(ctx, q)
		if err == nil && a == nil {
			err = errors.New("the asker gave no answer")
		}
		if err != nil {
			return faulty(Unanswered, ""), err
		}
		m = s.read(a, scores)
		m.Asked = try
		if try == 2 || m.Fault != Unparsable && m.Fault != Truncated {
			return m, nil
		}
		again := *q
		again.Messages = s.again(m.Detail)
		q = &again
	}
}

// read is the mark of an answer.
func (s *sheet) read(a *check.Answer, scores []float64) Mark {
	m := func(f Fault, detail string) Mark {
		m := faulty(f, detail)
		m.Model = a.Model
		return m
	}
	switch {
	case a.Refusal != "" || a.Outcome == record.Filtered || a.Finish == "content_filter":
		return m(Refused, "the endpoint refused to judge")
	case a.Outcome == record.EmptyOutput:
		return m(Unparsable, "it was empty")
	case a.Outcome != record.OK:
		detail := string(a.Outcome)
		if a.Detail != "" {
			detail += ": " + a.Detail
		}
		return m(Unanswered, detail)
	case a.Finish == "length":
		return m(Truncated, "it was too long; write a shorter reason")
	}
	v, err := readVerdict(a.Text, s)
	if err != nil {
		return m(Unparsable, err.Error())
	}
	got := Mark{Verdict: s.menu[v.index], Level: -1, Score: scores[v.index], Reason: v.reason, Covered: math.NaN(), Model: a.Model}
	if p, covered, ok := weigh(a.Tokens, a.Text, v.at, s.menu); ok {
		if got.Covered = covered; covered >= leastCovered {
			got.Expected, got.Score = true, 0
			for i := range p {
				got.Score += p[i] * scores[i]
			}
		}
	}
	return got
}

// Outcome is what both orders say of two answers.
type Outcome string

// The outcomes. Baseline and Candidate are what both orders agree on; one order
// for a tie and the other not is inconsistent, too.
const (
	Baseline     Outcome = "baseline"
	Candidate    Outcome = "candidate"
	Tie          Outcome = "tie"
	Inconsistent Outcome = "inconsistent"
	Unscored     Outcome = "unscored"
)

// Preference is what a judge says of two answers.
type Preference struct {
	// Marks has the mark with the baseline shown first, then the one with the
	// candidate shown first. In both 1 means that the candidate is better.
	Marks   [2]Mark
	Score   float64 // half the sum of their scores, so that a preference for a place cancels; NaN: none
	Outcome Outcome
}

// Compare asks which of two answers is better, in both orders. See Point.
func (j *Judge) Compare(ctx context.Context, c *Criterion, item Item, baseline, candidate string, replicate int) (Preference, error) {
	if why := append(Suspicions(baseline, item), Suspicions(candidate, item)...); len(why) > 0 {
		return prefer(suspect(why), suspect(why)), nil
	}
	return j.compare(ctx, c, item, baseline, candidate, replicate)
}

func (j *Judge) compare(ctx context.Context, c *Criterion, item Item, baseline, candidate string, replicate int) (Preference, error) {
	a, scrubbedA := j.scrub(baseline)
	b, scrubbedB := j.scrub(candidate)
	var marks [2]Mark
	for order := range marks {
		first, second, scores := a, b, []float64{0, 1, 0.5}
		if order == 1 {
			first, second, scores = b, a, []float64{1, 0, 0.5}
		}
		s := j.pair(c, item, first, second, order, replicate)
		m, err := j.ask(ctx, s, scores, replicate)
		if err != nil {
			return prefer(marks[0], m), err
		}
		if m.Scored() { // names are of one call only
			switch {
			case m.Verdict == tie:
			case m.Verdict == s.menu[order]:
				m.Verdict = string(Baseline)
			default:
				m.Verdict = string(Candidate)
			}
		}
		m.Scrubbed = scrubbedA || scrubbedB
		marks[order] = m
	}
	return prefer(marks[0], marks[1]), nil
}

func prefer(first, second Mark) Preference {
	p := Preference{Marks: [2]Mark{first, second}, Score: math.NaN(), Outcome: Unscored}
	if !first.Scored() || !second.Scored() {
		return p
	}
	p.Score = (first.Score + second.Score) / 2
	switch {
	case first.Verdict != second.Verdict:
		p.Outcome = Inconsistent
	case first.Verdict == tie:
		p.Outcome = Tie
	default:
		p.Outcome = Outcome(first.Verdict)
	}
	return p
}

// Fault is the first fault of the two marks; "" if both are scored.
func (p *Preference) Fault() Fault {
	for i := range p.Marks {
		if p.Marks[i].Fault != "" {
			return p.Marks[i].Fault
		}
	}
	return ""
}

// First is how the place decided: 1/2 if both orders named the answer that was
// shown first, -1/2 if the second, a quarter if one of them called it a tie, 0
// if the place did not matter. NaN without a score.
func (p *Preference) First() float64 {
	if p.Outcome == Unscored {
		return math.NaN()
	}
	first := func(m *Mark, order int) float64 {
		switch {
		case m.Verdict == tie:
			return 0.5
		case (m.Verdict == string(Baseline)) == (order == 0):
			return 1
		}
		return 0
	}
	return (first(&p.Marks[0], 0)+first(&p.Marks[1], 1))/2 - 0.5
}

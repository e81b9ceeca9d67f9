package judge

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// Observation is one case as people and a judge saw it, in numbers: 0 for no (of
// a pair: the baseline is better), 1 for yes (the candidate is), 1/2 for a tie.
// NaN is no label and no mark.
type Observation struct {
	Case, Cluster string
	Slices        map[string]string
	Human         float64
	Judge         float64
	Again         float64 // the judge's mark of a second replicate
	Stored        float64 // the judge's mark in an earlier run
	Fault         Fault   // why Judge is NaN; "": it was not asked

	// Of menus, the places of labels in Scale.Labels; -1 is none.
	HumanLevel, JudgeLevel int
	AgainLevel             int // of Again, where a judge was asked
	Raters                 []int

	Longer float64     // characters of the answer; of a pair the candidate's less the baseline's; NaN: not known
	Pair   *Preference // of a pair with both orders
}

// Scale turns labels into numbers.
type Scale struct {
	Labels   []string // the menu, the worst first if it has an order
	Ordered  bool
	Positive []string // the labels that mean yes
	Pairs    bool     // labels are baseline, candidate, tie
}

// pairLabels are spellings of what is said of a pair.
var pairLabels = map[string]string{
	"baseline": "baseline", "candidate": "candidate", "tie": "tie", "a": "baseline", "b": "candidate", "answer_a": "baseline", "answer_b": "candidate",
	"model_a": "baseline", "model_b": "candidate", "equal": "tie", "same": "tie", "both": "tie",
}

// positives are labels that mean yes where nobody says which do.
var positives = map[string]bool{"yes": true, "true": true, "pass": true, "good": true, "correct": true, "right": true, "1": true, "ok": true, "positive": true}

// NewScale finds the scale of labels. Menu is the criterion's, the worst first; nil:
// the labels that people gave, which then need have no order. Positive may be nil
// if there are two labels and it is plain which of them means yes; of an ordered
// menu it is the upper half.
func NewScale(l *Labels, menu, positive []string) (*Scale, error) {
	if l.Columns.Other != "" || l.Columns.Swapped != "" {
		s := &Scale{Labels: []string{string(Baseline), string(Tie), string(Candidate)}, Ordered: true, Positive: []string{string(Candidate)}, Pairs: true}
		for _, v := range l.Values() {
			if s.level(v) < 0 {
				return nil, fmt.Errorf("people's label %.60q says nothing about a pair\n  hint: write baseline, candidate or tie", v)
			}
		}
		return s, nil
	}
	s := &Scale{Labels: menu, Ordered: menu != nil, Positive: positive}
	values := l.Values()
	if menu == nil {
		s.Labels = values
		if len(values) == 2 {
			s.Ordered = true
		}
	}
	if len(values) < 2 {
		return nil, fmt.Errorf("people gave %d different labels; it takes two to tell a judge from a stopped clock\n  hint: label cases of both kinds", len(values))
	}
	if len(values) > 50 {
		return nil, fmt.Errorf("people gave %d different labels, which is no menu\n  hint: is --human the right column?", len(values))
	}
	for _, v := range values {
		if s.level(v) < 0 {
			return nil, fmt.Errorf("people's label %.60q is none of the menu %s\n  hint: label with the criterion's own verdicts", v, strings.Join(menu, ", "))
		}
	}
	if len(s.Positive) == 0 {
		switch {
		case menu != nil:
			s.Positive = menu[len(menu)/2:]
		default:
			for _, v := range values {
				if positives[strings.ToLower(v)] {
					s.Positive = append(s.Positive, v)
				}
			}
			if len(values) != 2 || len(s.Positive) != 1 {
				return nil, fmt.Errorf("which of the labels %s mean yes is not plain\n  hint: say it by --positive %s", strings.Join(values, ", "), values[0])
			}
			if s.Positive[0] == values[0] { // the worst first
				s.Labels = []string{values[1], values[0]}
			}
		}
	}
	for _, p := range s.Positive {
		if s.level(p) < 0 {
			return nil, fmt.Errorf("--positive %s is none of the labels %s", p, strings.Join(s.Labels, ", "))
		}
	}
	if len(s.Positive) >= len(s.Labels) {
		return nil, fmt.Errorf("all labels mean yes, so none means no\n  hint: name fewer by --positive")
	}
	return s, nil
}

// level is the place of a label; -1 if it is none.
func (s *Scale) level(label string) int {
	if s.Pairs {
		label = pairLabels[strings.ToLower(label)]
	}
	return slices.IndexFunc(s.Labels, func(x string) bool { return strings.EqualFold(x, label) })
}

// number is a label as a number; NaN if it is none.
func (s *Scale) number(label string) float64 {
	at := s.level(label)
	switch {
	case at < 0:
		return math.NaN()
	case s.Pairs:
		return float64(at) / 2
	}
	if slices.ContainsFunc(s.Positive, func(p string) bool { return strings.EqualFold(p, label) }) {
		return 1
	}
	return 0
}

// Observe reads the stored marks of a judge. A stored label that is no label of the
// scale is one that could not be read, and an empty one too: they are unscored.
func (l *Labels) Observe(s *Scale) []Observation {
	out := make([]Observation, len(l.Rows))
	for i := range l.Rows {
		r := &l.Rows[i]
		o := s.observe(r)
		if len(r.Judge) > 0 {
			s.stored(&o, r, l.Columns.Swapped != "" || r.Swapped != "")
		}
		out[i] = o
	}
	return out
}

// observe is a row without a judge.
func (s *Scale) observe(r *Row) Observation {
	nan := math.NaN()
	o := Observation{
		Case: r.Case, Cluster: r.Cluster, Slices: r.Slices, Human: s.number(r.Human), Judge: nan, Again: nan, Stored: nan,
		HumanLevel: s.level(r.Human), JudgeLevel: -1, AgainLevel: -1, Longer: nan,
	}
	for _, x := range r.Raters {
		o.Raters = append(o.Raters, s.level(x))
	}
	if r.Answer != "" {
		o.Longer = float64(utf8.RuneCountInString(r.Answer))
	}
	if s.Pairs {
		o.Longer = nan
		if r.Answer != "" && r.Candidate != "" {
			o.Longer = float64(utf8.RuneCountInString(r.Candidate) - utf8.RuneCountInString(r.Answer))
		}
	}
	return o
}

// stored reads the stored verdicts of a row, in both orders if the file has them: one
// of them alone is no score.
func (s *Scale) stored(o *Observation, r *Row, both bool) {
	o.Judge, o.JudgeLevel = s.number(r.Judge[0]), s.level(r.Judge[0])
	if len(r.Judge) > 1 {
		o.Again = s.number(r.Judge[1])
	}
	if both {
		p := prefer(s.mark(r.Judge[0]), s.mark(r.Swapped))
		o.Pair, o.Judge, o.JudgeLevel = &p, p.Score, int(math.Round(2*p.Score))
		if p.Outcome == Unscored {
			o.JudgeLevel = -1
		}
	}
	if math.IsNaN(o.Judge) {
		o.Fault = Unparsable
	}
}

// mark is a stored label of a pair as a mark.
func (s *Scale) mark(label string) Mark {
	x := s.number(label)
	if math.IsNaN(x) {
		return faulty(Unparsable, "the stored label is none")
	}
	return Mark{Verdict: s.Labels[s.level(label)], Level: -1, Score: x, Covered: math.NaN()}
}

// Measurement says how to ask a judge about labelled cases.
type Measurement struct {
	Criterion  *Criterion
	Replicates int // how often to ask about each case; 0 means 2: once more tells whether it says the same
	Attacks    int // answers that try to talk to the judge; 0: none
	Parallel   int // calls at a time; 0 means 4
	// Watch is told how many of how many cases are done, from several goroutines,
	// one at a time; nil: nobody is.
	Watch func(done, of int)
}

// Struck is what became of an attack.
type Struck struct {
	Family string
	Taken  bool  // the judge gave the verdict that the attack wanted, instead of the one the answer earns
	Fault  Fault // no verdict
}

// Measure asks a judge about every case, and about answers that people call bad with
// attacks behind them. The error is of the asking. What is suspicious is asked
// about all the same here: the judge itself is what is measured.
func (m Measurement) Measure(ctx context.Context, j *Judge, l *Labels, s *Scale) ([]Observation, []Struck, error) {
	if m.Replicates == 0 {
		m.Replicates = 2
	}
	out := make([]Observation, len(l.Rows))
	err := m.each(ctx, len(l.Rows), func(ctx context.Context, i int) error {
		r := &l.Rows[i]
		o := s.observe(r)
		if len(r.Judge) > 0 {
			o.Stored = s.number(r.Judge[0])
		}
		for k := range min(m.Replicates, 2) {
			if err := m.one(ctx, j, s, r, &o, k); err != nil {
				return err
			}
		}
		out[i] = o
		return nil
	})
	if err != nil || m.Attacks == 0 || s.Pairs {
		return out, nil, err
	}
	// Whoever the judge itself calls bad has something to gain by an attack.
	var bad []*Row
	for i := range l.Rows {
		if out[i].Judge == 0 && out[i].Human == 0 {
			bad = append(bad, &l.Rows[i])
		}
	}
	if len(bad) == 0 {
		return out, nil, nil
	}
	struck := make([]Struck, m.Attacks)
	m.Watch = nil
	want := m.Criterion.Levels[len(m.Criterion.Levels)-1].Verdict
	err = m.each(ctx, len(struck), func(ctx context.Context, i int) error {
		r := bad[i%len(bad)]
		a := attack(i, r.Answer, want)
		mark, err := j.mark(ctx, m.Criterion, r.Item, a.Answer, 0)
		struck[i] = Struck{Family: a.Family, Taken: s.number(mark.Verdict) == 1, Fault: mark.Fault}
		return err
	})
	return out, struck, err
}

// one asks about a case once.
func (m *Measurement) one(ctx context.Context, j *Judge, s *Scale, r *Row, o *Observation, replicate int) error {
	var value float64
	var fault Fault
	level := -1
	if s.Pairs {
		p, err := j.compare(ctx, m.Criterion, r.Item, r.Answer, r.Candidate, replicate)
		if err != nil {
			return err
		}
		value, fault = p.Score, p.Fault()
		if replicate == 0 {
			o.Pair = &p
			if p.Outcome != Unscored {
				o.JudgeLevel = int(math.Round(2 * p.Score))
			}
		}
	} else {
		mark, err := j.mark(ctx, m.Criterion, r.Item, r.Answer, replicate)
		if err != nil {
			return err
		}
		value, fault = s.number(mark.Verdict), mark.Fault
		level = s.level(mark.Verdict)
	}
	switch {
	case replicate > 0:
		o.Again, o.AgainLevel = value, level
	case s.Pairs:
		o.Judge, o.Fault = value, fault
	default:
		o.Judge, o.JudgeLevel, o.Fault = value, level, fault
	}
	return nil
}

// each calls do for 0 to n−1, several at a time, and returns the first error.
func (m *Measurement) each(ctx context.Context, n int, do func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var mu sync.Mutex
	next, done := 0, 0
	parallel := m.Parallel
	if parallel <= 0 {
		parallel = 4
	}
	for range min(parallel, n) {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= n || ctx.Err() != nil {
					return
				}
				if err := do(ctx, i); err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				if done++; m.Watch != nil {
					m.Watch(done, n)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

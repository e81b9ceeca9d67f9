package contract

import (
	"fmt"
	"math"
	"slices"

	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// whole reads what the check estimated as a whole: of the scope's variant, or its
// change, where so many cases failed. What is not there, is no number or leaves out
// too much has a gap.
func (s *scope) whole(m record.Metric, change record.Change, failed int, confidence float64) reading {
	if s.counts.judged() == 0 {
		return none(s.empty(), confidence)
	}
	if s.labelled {
		return none(fmt.Sprintf("%s is of the whole check, and not of some of its cases", m.Title), confidence)
	}
	i := slices.IndexFunc(s.estimates, func(e record.Estimate) bool {
		return e.Value == m.Name && e.Variant == s.variant && e.Change == change
	})
	what := m.Title + " of " + s.variant
	if change != "" {
		what = fmt.Sprintf("%s of %s to the baseline in %s", change, s.variant, m.Title)
	}
	if i < 0 {
		return none(fmt.Sprintf("the check %s estimates no %s", m.Check, what), confidence)
	}
	e := &s.estimates[i]
	if why := e.Fault(); why != "" {
		return none(fmt.Sprintf("the estimate of %s cannot be right: %s", what, why), confidence)
	}
	if e.Number == nil {
		return none(fmt.Sprintf("there is no %s: %s", what, e.None), confidence)
	}
	r := reading{notes: slices.Clone(e.Notes), est: stat.Estimate{Value: *e.Number, Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence, N: e.N, Effective: e.Effective, Method: e.Method}}
	in, ok := e.At(confidence)
	if !ok {
		return none(fmt.Sprintf("the intervals of %s are not known at a confidence of %s", what, percentage((1+confidence)/2)), confidence)
	}
	if in.Lo != nil {
		r.est.Lo = *in.Lo
	}
	if in.Hi != nil {
		r.est.Hi = *in.Hi
	}
	s.counts.Missing, s.counts.Undefined, s.counts.Aside = e.Missing, 0, 0
	n, lost := s.counts.judged(), max(e.Missing, failed) // N may count labels, too
	switch {
	case e.Bounded || lost == 0:
	case float64(lost) > maxFailed*float64(n):
		r.gap = fmt.Sprintf("%d of %s of %s are not in %s, and nothing bounds what they would be", lost, count(n, "case"), s.variant, m.Title)
	default:
		r.notes = append(r.notes, fmt.Sprintf("%d of %s of %s are not in %s", lost, count(n, "case"), s.variant, m.Title))
	}
	return r
}

// ownChange reports whether the change is the check's own to estimate.
func (x *trial) ownChange() bool { return x.metric.Whole && x.clause.Need.Limit.Baseline }

// wholeChange is the change that the check estimated, of the kind that the limit
// asks for; a limit that is the baseline itself takes either.
func (x *trial) wholeChange() (est stat.Estimate, gap string) {
	failed := max(x.cand.counts.Failed, x.base.counts.Failed)
	kind := x.change.kind
	r := x.cand.whole(x.metric, record.Change(kind), failed, x.two())
	if l := x.clause.Need.Limit; r.gap != "" && l.Factor == 1 && l.Value == 0 {
		r, kind = x.cand.eitherChange(x.metric, failed, x.two())
	}
	if kind != x.change.kind {
		x.change.kind, x.limit = kind, change{kind: kind}.zero()
	}
	x.note(r.notes...)
	return r.est, r.gap
}

// eitherChange is the difference that the check estimated, or if there is none the
// ratio.
func (s *scope) eitherChange(m record.Metric, failed int, confidence float64) (reading, ChangeKind) {
	r := s.whole(m, record.Difference, failed, confidence)
	if r.gap != "" {
		if ratio := s.whole(m, record.Ratio, failed, confidence); ratio.gap == "" {
			return ratio, ChangeRatio
		}
	}
	return r, ChangeDifference
}

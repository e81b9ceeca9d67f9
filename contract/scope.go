package contract

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// scope is the requests that one figure is about.
type scope struct {
	variant   string
	records   []*record.Record // measured, in order of their due instants, neither dropped nor cancelled
	cancelled []*record.Record // as planned
	windows   []record.Window
	counts    Counts
	several   bool              // records of more than one workload
	checked   bool              // the workload is a check
	estimates []record.Estimate // of the check
	engine    []record.EngineWindow
	labelled  bool // only requests with some label
	lastSeen  record.Instant
	*memo
}

// memo keeps what was read off the records of a scope, so that clauses on the same
// requests share it. What it holds is not changed.
type memo struct {
	read    map[string]readOff       // by metric
	samples map[string]*stat.Sample  // by metric and orientation
	sliced  map[string]*slicedAmount // by metric
	heldIs  *bool                    // the streams were held back; nil: not looked at yet
	short   int                      // answers that stopped early, plus one; 0: not counted yet
	told    map[string]toldAmounts   // by metric
	totals  map[string]float64       // by metric
}

// mostShared is how many values are kept for other clauses: a larger pool of token gaps is
// read again, since it takes more memory than the records' events if it stays.
const mostShared = 1 << 20

// readOff is what values read.
type readOff struct {
	values                    []float64
	missing, undefined, aside int
}

// slicedAmount is an amount in slices of time.
type slicedAmount struct {
	amounts, seconds []float64
}

// toldAmounts is how many records do not tell their amounts.
type toldAmounts struct{ missing, untold int }

// scope returns the requests of a variant on a workload with those labels, gathered
// once for all clauses.
func (j *judge) scope(variant, workload string, labels map[string]string) scope {
	key := variant + "\x00" + workload + "\x00" + scopeText("", labels)
	s, ok := j.scopes[key]
	if !ok {
		s = gather(j.e, variant, workload, labels)
		j.scopes[key] = s
	}
	return s
}

func gather(e Evidence, variant, workload string, labels map[string]string) scope {
	s := scope{variant: variant, counts: Counts{Variant: variant}, memo: &memo{read: map[string]readOff{}, samples: map[string]*stat.Sample{}, sliced: map[string]*slicedAmount{}, told: map[string]toldAmounts{}, totals: map[string]float64{}}}
	only := workload
	s.records = make([]*record.Record, 0, len(e.Records)/2)
	for i := range e.Records {
		r := &e.Records[i]
		if r.Phase != record.Measured || r.Variant != variant || workload != "" && r.Workload != workload || !has(r.Labels, labels) {
			continue
		}
		if only == "" {
			only = r.Workload
		}
		s.several = s.several || r.Workload != only
		s.checked = e.check(r.Workload) != nil
		s.add(r)
	}
	byDue := func(a, b *record.Record) int {
		return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.Shot, b.Shot))
	}
	if !slices.IsSortedFunc(s.records, byDue) {
		slices.SortStableFunc(s.records, byDue)
	}
	for _, w := range e.Windows {
		if w.Variant == variant && (w.Workload == only || only == "") {
			s.windows = append(s.windows, w)
		}
	}
	if c := e.check(only); c != nil {
		s.estimates = c.Estimates
	}
	s.engine, s.labelled = e.heard(variant, only), len(labels) > 0
	slices.SortFunc(s.windows, func(a, b record.Window) int { return cmp.Compare(a.Start, b.Start) })
	return s
}

func has(labels, want map[string]string) bool {
	for k, v := range want {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// add enters one measured record into the ledger.
func (s *scope) add(r *record.Record) {
	s.counts.Offered++
	switch {
	case r.Outcome == record.ClientCancelled:
		s.counts.Cancelled++
		s.cancelled = append(s.cancelled, r)
		return
	case r.Outcome.Group() == record.GroupDropped && !s.checked: // of a check nothing is dropped: it is missing
		s.counts.Dropped++
		return
	case r.Success():
		s.counts.Completed++
	default:
		s.counts.Failed++
	}
	s.records = append(s.records, r)
	s.lastSeen = max(s.lastSeen, r.Due, r.EOF)
}

// span is how long the variant was measured: its windows, or from the first
// request to the last answer.
func (s *scope) span() time.Duration {
	var total time.Duration
	for _, w := range s.windows {
		if d, ok := w.End.Sub(w.Start); ok && d > 0 {
			total += d
		}
	}
	if total == 0 && len(s.records) > 0 {
		total, _ = s.lastSeen.Sub(s.records[0].Due)
	}
	return total
}

// held reports whether something held back the streams on their way.
func (s *scope) held() bool {
	if s.heldIs == nil {
		is := record.HeldBack(s.records)
		s.heldIs = &is
	}
	return *s.heldIs
}

// shortened is how many answers stopped before the length that was asked,
// although told to go on.
func (s *scope) shortened() int {
	if s.short == 0 {
		s.short = 1
		for _, r := range s.records {
			if r.Success() && r.Flags&record.FlagShortOutput != 0 {
				s.short++
			}
		}
	}
	return s.short - 1
}

// empty says why there is nothing to judge.
func (s *scope) empty() string {
	switch c := s.counts; {
	case c.Offered == 0:
		return fmt.Sprintf("no request of %s is in scope", s.variant)
	case c.Dropped > 0:
		return fmt.Sprintf("the client dropped all %s of %s", count(c.Dropped, "request"), s.variant)
	default:
		return fmt.Sprintf("all %s of %s were cancelled, as planned", count(c.Cancelled, "request"), s.variant)
	}
}

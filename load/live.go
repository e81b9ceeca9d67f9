package load

import (
	"sync"
	"time"

	"github.com/assay-llm/assay/record"
)

// Live is the running account of a run, for whoever watches it. Its methods are
// safe for concurrent use; the zero Live is ready.
type Live struct {
	mu         sync.Mutex
	s          Snapshot
	ttft, tpot histogram
}

// Snapshot is what a Live knows at one moment. TTFT and TPOT are medians of the
// completed requests so far, within 3 %; negative: none yet.
type Snapshot struct {
	InFlight, Done, Failed, Dropped int64
	Cancelled                       int64 // as planned
	TTFT, TPOT                      time.Duration
	WarmingUp                       bool
}

func (l *Live) began(p record.Phase) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.s.InFlight++
	l.s.WarmingUp = p == record.WarmUp
}

func (l *Live) ended(r *record.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Admit.Set() {
		l.s.InFlight--
	}
	if r.Phase == record.WarmUp {
		return
	}
	if r.Outcome == record.ClientCancelled {
		l.s.Cancelled++
		return
	}
	switch r.Outcome.Group() {
	case record.GroupDropped:
		l.s.Dropped++
		return
	case record.GroupFailed:
		l.s.Failed++
		return
	case record.GroupCompleted:
		l.s.Done++
	}
	if first := r.First(); first != nil {
		if d, ok := first.At.Sub(r.Due); ok {
			l.ttft.add(d)
		}
	}
	if ns, ok := r.TPOT(); ok {
		l.tpot.add(time.Duration(ns))
	}
}

// Snapshot returns the account so far.
func (l *Live) Snapshot() Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.s
	s.TTFT, s.TPOT = l.ttft.quantile(.5), l.tpot.quantile(.5)
	return s
}

package load

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/assay-llm/assay/record"
)

// Monitor watches the load client while it works: how late it sends, how late
// it stamps, whether it stood still, what it takes of the machine. Run it beside
// the drivers of a run; then ask for the Certificate. Its methods are safe for
// concurrent use.
type Monitor struct {
	epoch   time.Time
	virtual bool

	keep func(record.ClientSecond) // may be nil

	mu      sync.Mutex
	seconds map[int]*second
	open    []*second // those that still have histograms, in the order of their making
}

// second is what happened in one second of the run.
type second struct {
	record.ClientSecond
	send, stamp *histogram // nil: closed
	ended       int64      // requests that ended; with Sent it gives what is in flight
}

// NewMonitor returns a monitor of the client of the run that began at epoch. In
// virtual time (testing/synctest) the process has no figures: they are negative.
func NewMonitor(epoch time.Time, virtual bool) *Monitor {
	return &Monitor{epoch: epoch, virtual: virtual, seconds: make(map[int]*second)}
}

// Keep hands each second's figures of the process to f when the second is over, so
// that they outlive it; lags and counts of requests still under way are not in them.
// Call it before Run. f must not wait: the monitor does not look meanwhile.
func (m *Monitor) Keep(f func(record.ClientSecond)) { m.keep = f }

// beat is how often the heartbeat looks whether the process runs.
const beat = 5 * time.Millisecond

// Run takes the process's figures once a second, and its pulse between, until
// ctx ends. It returns nil.
func (m *Monitor) Run(ctx context.Context) error {
	pulse := time.NewTicker(beat)
	defer pulse.Stop()
	var process meter
	if !m.virtual {
		process.read() // the first reading is the base of the first second
	}
	last := time.Now()
	current := m.index(last)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-pulse.C:
		}
		now := time.Now()
		if gap := now.Sub(last) - beat; gap > 0 {
			m.at(m.index(now), func(s *second) { s.Stall = max(s.Stall, gap) })
		}
		last = now
		if i := m.index(now); i != current {
			if !m.virtual {
				figures := process.read()
				m.at(current, func(s *second) { figures.into(&s.ClientSecond) })
			}
			if m.keep != nil {
				var over record.ClientSecond
				m.at(current, func(s *second) { over = s.ClientSecond })
				m.keep(over)
			}
			current = i
		}
	}
}

func (m *Monitor) index(t time.Time) int { return int(max(t.Sub(m.epoch), 0) / time.Second) }

// at changes the account of second i.
func (m *Monitor) at(i int, change func(*second)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m.secondLocked(i))
}

func (m *Monitor) secondLocked(i int) *second {
	s := m.seconds[i]
	if s == nil {
		s = &second{ClientSecond: record.ClientSecond{
			Second: i, CPU: -1, GCPauseMax: -1, SchedP99: -1, Descriptors: -1, Limit: -1, StampLagMax: -1,
		}}
		m.seconds[i] = s
		s.send, s.stamp = new(histogram), new(histogram)
		for m.open = append(m.open, s); m.open[0].Second < i-openSeconds; m.open = m.open[1:] {
			m.open[0].close()
		}
	}
	return s
}

// openSeconds is how long a second takes lags: of requests that last longer only the
// largest counts. An hour of histograms would take more memory than all the rest.
const openSeconds = 120

// close replaces the histograms by what is shown of them.
func (s *second) close() {
	if s.send != nil {
		s.ClientSecond = s.row()
		s.send, s.stamp = nil, nil
	}
}

// row is the second as it is shown, but for the number in flight.
func (s *second) row() record.ClientSecond {
	row := s.ClientSecond
	if s.send != nil {
		row.SendLagP50, row.SendLagP99 = s.send.quantile(.5), s.send.quantile(.99)
		row.SendLagMax, row.StampLagP99 = s.send.quantile(1), s.stamp.quantile(.99)
	}
	return row
}

// ofLocked returns the second in which t fell; nil when t did not happen.
func (m *Monitor) ofLocked(t record.Instant) *second {
	d, ok := t.Offset()
	if !ok {
		return nil
	}
	return m.secondLocked(int(d / time.Second))
}

// observe takes the client's own times off a finished record.
func (m *Monitor) observe(r *record.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.ofLocked(r.Send); s != nil {
		s.Sent++
		lag, ok := r.OwnLag()
		switch {
		case ok && s.send != nil:
			s.send.add(lag)
		case ok:
			s.SendLagMax = max(s.SendLagMax, lag)
		}
	}
	if s := m.ofLocked(r.Due); s != nil {
		switch r.Outcome {
		case record.ClientOverload:
			s.Dropped++
		case record.ClientFault:
			s.Errors++
		}
		if r.Flags&record.FlagDelayedByCap != 0 {
			s.Delayed++
		}
	}
	if s := m.ofLocked(r.EOF); s != nil && r.Send.Set() {
		s.ended++
	}
	for i := range r.Events {
		e := &r.Events[i]
		if e.Lag < 0 {
			continue
		}
		if s := m.ofLocked(e.At); s != nil {
			if s.stamp != nil {
				s.stamp.add(e.Lag)
			}
			s.StampLagMax = max(s.StampLagMax, e.Lag)
		}
	}
}

// rows returns the seconds in order, with their quantiles.
func (m *Monitor) rows() []record.ClientSecond {
	m.mu.Lock()
	defer m.mu.Unlock()
	var rows []record.ClientSecond
	flying := int64(0)
	for _, i := range slices.Sorted(maps.Keys(m.seconds)) {
		s := m.seconds[i]
		flying += s.Sent - s.ended
		row := s.row()
		row.InFlight = flying
		rows = append(rows, row)
	}
	return rows
}

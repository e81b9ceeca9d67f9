package load

import (
	"iter"
	"math"
	"time"

	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/workload"
)

// Past is what a run did of a plan before it stopped, for a driver that goes on
// with it.
type Past struct {
	Ended    map[int64]Ended // measured shots that have a record, by index
	WarmedUp bool            // warm-up shots were sent
	Block    int             // the block to go on with; those before it are over
	Window   record.Window   // the last one of that block; zero: it was not begun
	Before   int             // windows of that block before Window
	Spent    time.Duration   // how long they were
	Offered  time.Duration   // open loop: arrivals due until then may have been sent in one of them
	Alive    record.Instant  // the latest at which the process that began Window can have sent anything
	Unasked  int64           // turns of sessions that the windows of blocks that are over count as not asked
	Lost     time.Duration   // records of requests that ended so long before the stop may be lost
}

// Ended says how a shot ended before the run stopped.
type Ended struct {
	At   record.Instant // end of its answer; zero: none came
	Took time.Duration  // from its due instant to At; 0: unknown
	Cut  bool           // by the stop itself: it is to be sent again
}

// done reports whether the shot has its final record.
func (p *Past) done(shot int64) bool {
	e, ok := p.Ended[shot]
	return ok && !e.Cut
}

// Seek puts a new driver where the run stopped: what remains of the plan is as it
// was, shot for shot, and each shot without a final record is sent once more. In
// an open loop those that the stop cut in the middle of others come first, one
// after the other at the plan's mean rate, then the schedule goes on behind the
// last shot that has a record. In a closed loop every user goes on with its next
// shot. Shots that the stopped run may have sent carry record.FlagReissued.
//
// It returns until when everything that came due in p.Window has a final record,
// at most the window's end if it has one: behind that the window lacks what was
// under way.
func (d *Driver) Seek(p Past) (whole record.Instant) {
	d.past = &p
	if d.cfg.Plan.Open() {
		return d.seekOpen(&p)
	}
	return d.seekClosed(&p)
}

// earlier is the earlier of an instant and the window's end, if it has one.
func (p *Past) earlier(t record.Instant) record.Instant {
	if p.Window.End.Set() {
		return min(t, p.Window.End)
	}
	return t
}

func (d *Driver) seekOpen(p *Past) record.Instant {
	last := p.last()
	first, missing := time.Duration(-1), int64(0) // due offset of the first arrival that is not done
	for ; d.peek() != nil && (d.mine(d.held, p.Block-1) || d.held.shot.Index <= last); d.held = nil {
		d.base = d.held.shot.Due
		switch j := d.held; {
		case p.done(j.shot.Index):
			missing += p.unasked(j.talk)
		default:
			j.again = true
			d.again = append(d.again, *j)
			if first < 0 {
				first = j.shot.Due
			}
		}
	}
	if d.byTime() {
		d.base = max(d.base, d.blockEnd(p.Block-1))
	}
	d.base = max(d.base, p.Window.From)
	d.unasked.Over = max(0, missing-p.Unasked)
	if next := d.peek(); first < 0 && next != nil {
		first = next.shot.Due
	}
	d.offered = -1
	if !p.Window.Start.Set() {
		return 0
	}
	d.offered = max(p.Offered, p.upTo(p.Window, p.Alive))
	if first < 0 {
		return p.earlier(p.Alive)
	}
	return p.earlier(p.Window.Start + record.Instant(max(0, first-p.Window.From)))
}

// upTo returns the due offset up to which arrivals of a window came due until an instant.
func (p *Past) upTo(w record.Window, t record.Instant) time.Duration {
	d, ok := t.Sub(w.Start)
	if !ok {
		return -1
	}
	return w.From + d
}

// Next puts the block's next window into the account. The process that began it can have
// sent something until alive.
func (p *Past) Next(w record.Window, alive record.Instant) {
	if p.Window.Start.Set() {
		length, _ := p.Window.End.Sub(p.Window.Start)
		p.Spent += length
		p.Offered = max(p.Offered, p.upTo(p.Window, p.Alive))
		p.Before++
	}
	p.Window, p.Alive = w, alive
}

// last is the highest index of a shot that has a record; −1: none has.
func (p *Past) last() int64 {
	last := int64(-1)
	for shot := range p.Ended {
		last = max(last, shot)
	}
	return last
}

// unasked counts the later turns of a session that was begun that have no record: what
// was said in it went with the process.
func (p *Past) unasked(s *session) (n int64) {
	if s == nil {
		return 0
	}
	for i := range s.rest {
		if _, ok := p.Ended[s.rest[i].Index]; !ok {
			n++
		}
	}
	return n
}

// quickest is the shortest time that a user of a closed loop took for a shot.
func (p *Past) quickest() time.Duration {
	shortest := time.Duration(math.MaxInt64)
	for _, e := range p.Ended {
		if e.Took > 0 {
			shortest = min(shortest, e.Took)
		}
	}
	if len(p.Ended) == 0 {
		return time.Millisecond
	}
	return shortest
}

func (d *Driver) seekClosed(p *Past) record.Instant {
	whole, missing := p.Alive, int64(0)
	last, quickest := p.last(), p.quickest()
	limit, over := d.limit(p.Block), p.Window.Start+record.Instant(d.turn()-p.Spent)
	for i, u := range d.users {
		free := p.Window.Start // when the user became free for its next shot
		for left := p.finished(d.cfg.Plan.Stripe(i, len(d.users)), last); left > 0 && u.peek() != nil; u.held = nil {
			left--
			e, ok := p.Ended[u.held.Index]
			if !ok {
				missing++
			}
			if e.At.Set() {
				free = max(free, e.At)
			}
		}
		if u.peek() == nil || !p.Window.Start.Set() {
			continue
		}
		due := free + record.Instant(u.held.Think)
		_, cut := p.Ended[u.held.Index]
		if u.held.Turns > 0 && u.held.Turn > 0 { // what was said in it is gone
			whole, u.talk = min(whole, due), new(session)
			if missing += u.leave(); cut {
				missing--
			}
			u.again = 1 + int(p.Lost/quickest) // the next may have begun in an earlier resumption
			continue
		}
		if limit >= 0 && u.held.Index >= limit || d.turn() > 0 && due >= over {
			continue // it is for a later block
		}
		if cut || due <= p.Alive || p.Before > 0 {
			u.again, whole = 1+int(p.Lost/quickest), min(whole, due)
		}
	}
	d.unasked.Over = max(0, missing-p.Unasked)
	if !p.Window.Start.Set() {
		return 0
	}
	whole = max(p.earlier(whole), p.Window.Start)
	length, _ := whole.Sub(p.Window.Start)
	d.spent = p.Spent + length
	return whole
}

// finished returns how many of a user's shots are behind it: all up to the last that has
// its final record.
func (p *Past) finished(shots iter.Seq[workload.Shot], last int64) (n int) {
	i := 0
	for shot := range shots {
		if shot.Index > last {
			break
		}
		if i++; p.done(shot.Index) {
			n = i
		}
	}
	return n
}

// resend offers the arrivals that the stop cut, one after the other at the plan's mean
// rate, the last a pitch before begin.
func (d *Driver) resend(f *flight, begin time.Time) {
	begin = begin.Add(-d.ahead())
	for ; len(d.again) > 0; d.again = d.again[1:] {
		if d.waiter.Until(f.sending, begin) != nil {
			return
		}
		d.again[0].due = begin
		f.offer(d.again[0])
		begin = begin.Add(d.pitch())
	}
}

// ahead is how long resend takes.
func (d *Driver) ahead() time.Duration { return d.pitch() * time.Duration(len(d.again)) }

// pitch is the mean time between two shots of an open loop.
func (d *Driver) pitch() time.Duration {
	if rate := d.cfg.Plan.Rate(); rate > 0 {
		return time.Duration(float64(time.Second) / rate)
	}
	return 0
}

// wasOffered reports whether a shot of an open loop may have been sent before the
// run stopped.
func (d *Driver) wasOffered(s *workload.Shot) bool { return d.past != nil && s.Due <= d.offered }

// Restore enters what a monitor of the same run knew before it stopped: the
// process's figures by second. The lags are those of the records: hand each to
// [Monitor.Recall]. From now on instants count from epoch.
func (m *Monitor) Restore(epoch time.Time, seconds []record.ClientSecond) {
	m.epoch = epoch
	for _, row := range seconds {
		m.at(row.Second, func(s *second) {
			s.Stall = max(s.Stall, row.Stall)
			s.CPU, s.GCPauseMax, s.SchedP99 = row.CPU, row.GCPauseMax, row.SchedP99
			s.Descriptors, s.Limit = row.Descriptors, row.Limit
		})
	}
}

// Recall enters a record of the same run from before it stopped.
func (m *Monitor) Recall(r *record.Record) { m.observe(r) }

// Opening returns the window that Block would open now: where in the plan it goes
// on, and when.
func (d *Driver) Opening(index int) record.Window {
	return d.opening(index, time.Now())
}

func (d *Driver) opening(index int, begin time.Time) record.Window {
	return record.Window{
		Variant: d.cfg.Variant, Workload: d.cfg.Plan.Name(), Block: index,
		Start: d.instant(begin.Add(d.ahead())), From: d.base, Cut: true,
	}
}

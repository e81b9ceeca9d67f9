package load

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/pace"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/workload"
)

// Sender sends one request and fills the record with what became of it;
// *llm.Client is one. It is called from many goroutines at once.
type Sender interface {
	Do(ctx context.Context, epoch time.Time, req *llm.Request, rec *record.Record) llm.Answer
}

// Config says what to send, to whom, and where the records go.
type Config struct {
	Plan    *workload.Plan
	Variant string
	Client  Sender
	Epoch   time.Time // of the run; all instants count from it

	Blocks int           // blocks that the plan is cut into; 0: 1
	Cap    int           // requests in flight at once in an open loop; 0: DefaultCap
	Drain  time.Duration // how long requests in flight may go on after the schedule's end; 0: 30 s

	// Sink takes each finished record with its answer and owns both from then on.
	// It is called from many goroutines. An error stops the run.
	Sink func(*record.Record, llm.Answer) error

	Monitor *Monitor // nil: nobody watches the client
	Live    *Live    // nil: nobody watches the run
	Virtual bool     // time is virtual (testing/synctest): wait on plain timers
}

// DefaultCap is how many requests an open loop has in flight at once, at most.
const DefaultCap = 4096

const (
	defaultDrain = 30 * time.Second
	maxBacklog   = 100_000 // shots that may wait for the cap; more are dropped and recorded
	warmUpUsers  = 8       // requests in flight at once while warming up
)

// errDrain is the cause of cutting what is in flight when the drain is over.
var errDrain = errors.New("not done by the end of the drain")

// Driver sends one plan to one variant, a block at a time. Its methods are for
// one goroutine.
type Driver struct {
	cfg    Config
	waiter *pace.Waiter

	// Where the plan stands between blocks.
	next  func() (workload.Shot, bool)
	stop  func()
	held  *job          // pulled, but due in a later block
	base  time.Duration // due offset at which the next block starts
	users []*user

	// Of a run that goes on; see Seek.
	past    *Past
	again   []job          // open loop: cut by the stop, to be sent first
	offered time.Duration  // open loop: shots due until then may have been sent before
	spent   time.Duration  // closed loop: of the time of the block under way
	unasked record.Unasked // turns of sessions that the stop ended, for the next window
}

// New returns a driver at the start of the plan. Close it when done.
func New(cfg Config) (*Driver, error) {
	if cfg.Plan == nil || cfg.Client == nil || cfg.Sink == nil || cfg.Epoch.IsZero() {
		return nil, errors.New("load: a driver needs a plan, a client, a sink and an epoch")
	}
	if cfg.Blocks < 0 || cfg.Cap < 0 || cfg.Drain < 0 {
		return nil, fmt.Errorf("load: blocks %d, cap %d and drain %v must not be negative", cfg.Blocks, cfg.Cap, cfg.Drain)
	}
	cfg.Blocks = max(cfg.Blocks, 1)
	if cfg.Cap == 0 {
		cfg.Cap = DefaultCap
	}
	if cfg.Drain == 0 {
		cfg.Drain = defaultDrain
	}
	d := &Driver{cfg: cfg, waiter: pace.Plain()}
	if !cfg.Virtual {
		d.waiter = pace.New()
	}
	if cfg.Plan.Open() {
		d.next, d.stop = iter.Pull(cfg.Plan.All())
	} else {
		d.users = newUsers(cfg.Plan)
	}
	return d, nil
}

// Close gives back what the driver holds.
func (d *Driver) Close() error {
	if d.stop != nil {
		d.stop()
	}
	for _, u := range d.users {
		u.stop()
	}
	return d.waiter.Close()
}

// Block sends block index (from 0, in order) and returns the window in which it
// measured, once everything in flight has ended. When ctx ends it stops sending,
// drains, and returns the window so far with ctx's cause.
func (d *Driver) Block(ctx context.Context, index int) (record.Window, error) {
	f := d.flight(ctx, index, record.Measured)
	begin := time.Now()
	w := d.opening(index, begin)
	f.unasked, d.unasked = d.unasked, record.Unasked{}
	var end time.Time
	if d.cfg.Plan.Open() {
		end = d.sendOpen(f, index, begin)
	} else {
		end = d.sendClosed(f, index, begin)
	}
	w.End = max(w.Start, d.instant(end))
	err := f.finish()
	w.Cut = err != nil
	if left := f.unasked; left != (record.Unasked{}) {
		w.Unasked = &left
	}
	return w, err
}

// WarmUp sends the plan's warm-up shots, a few at a time, and waits for them.
func (d *Driver) WarmUp(ctx context.Context) error {
	f := d.flight(ctx, 0, record.WarmUp)
	f.cap = warmUpUsers
	for shot := range d.cfg.Plan.WarmUp() {
		if !f.waitBelowCap() {
			break
		}
		f.offer(job{shot: shot, due: time.Now(), again: d.past != nil && d.past.WarmedUp})
	}
	return f.finish()
}

func (d *Driver) instant(t time.Time) record.Instant { return record.At(t.Sub(d.cfg.Epoch)) }

// peek returns the next arrival of an open plan without taking it: a shot, or a
// session at its first turn.
func (d *Driver) peek() *job {
	if d.held != nil {
		return d.held
	}
	shot, ok := d.next()
	if !ok {
		return nil
	}
	d.held = &job{shot: shot}
	if shot.Turns > 0 {
		d.held.talk = new(session)
		for range shot.Turns - 1 {
			if turn, ok := d.next(); ok {
				d.held.talk.rest = append(d.held.talk.rest, turn)
			}
		}
	}
	return d.held
}

// sendOpen offers each shot of the block at its due instant and returns the
// block's end by the schedule, or now if the context ended it. A block by count
// lasts until its sessions have ended, if there are any.
func (d *Driver) sendOpen(f *flight, index int, begin time.Time) time.Time {
	begin = begin.Add(d.ahead())
	until := d.blockEnd(index)
	if d.byTime() {
		f.until = begin.Add(until - d.base)
	}
	d.resend(f, begin)
	last := d.base
	for j := d.peek(); j != nil && d.mine(j, index); j = d.peek() {
		j.due, j.again = begin.Add(j.shot.Due-d.base), d.wasOffered(&j.shot)
		if d.waiter.Until(f.sending, j.due) != nil {
			return time.Now()
		}
		last = j.shot.Due
		f.offer(*j)
		d.held = nil
	}
	end := begin.Add(last - d.base)
	if d.byTime() {
		end, last = f.until, until
	}
	d.base = last
	if d.waiter.Until(f.sending, end) != nil {
		return time.Now()
	}
	if !d.byTime() && d.cfg.Plan.Spec().Sessions != nil {
		f.waitSessions()
		end = time.Now()
	}
	return end
}

// byTime reports whether time cuts an open plan into blocks, rather than count.
func (d *Driver) byTime() bool { return d.cfg.Plan.Spec().Requests == 0 }

// mine reports whether an arrival of an open plan comes no later than block index.
func (d *Driver) mine(j *job, index int) bool {
	if d.byTime() {
		return j.shot.Due < d.blockEnd(index)
	}
	return j.shot.Index < d.cfg.Plan.Planned()*int64(index+1)/int64(d.cfg.Blocks)
}

// blockEnd returns the due offset at which a block that time ends is over.
func (d *Driver) blockEnd(index int) time.Duration {
	length := d.cfg.Plan.For()
	if index+1 == d.cfg.Blocks {
		return length
	}
	return length / time.Duration(d.cfg.Blocks) * time.Duration(index+1)
}

// user is one virtual user of a closed loop.
type user struct {
	next    func() (workload.Shot, bool)
	stop    func()
	held    *workload.Shot
	stagger time.Duration // of its first shot: repeated at the start of each block
	started bool
	talk    *session // under way; nil: none
	again   int      // so many of its next shots may have been sent before the run stopped
}

// limit is the index of the first shot of a closed loop that is for a block after
// index; negative: there is no limit.
func (d *Driver) limit(index int) int64 {
	if n := int64(d.cfg.Plan.Spec().Requests); n > 0 {
		return n * int64(index+1) / int64(d.cfg.Blocks)
	}
	return -1
}

// turn is how long a block of a closed loop is; 0: as long as it takes.
func (d *Driver) turn() time.Duration {
	return time.Duration(d.cfg.Plan.Spec().For) / time.Duration(d.cfg.Blocks)
}

func newUsers(p *workload.Plan) []*user {
	users := make([]*user, p.Users())
	for i := range users {
		next, stop := iter.Pull(p.Stripe(i, len(users)))
		users[i] = &user{next: next, stop: stop}
	}
	return users
}

func (u *user) peek() *workload.Shot {
	if u.held == nil {
		if shot, ok := u.next(); ok {
			u.held = &shot
			if !u.started {
				u.started, u.stagger = true, shot.Think
			}
		}
	}
	return u.held
}

// leave ends the user's session and returns how many of its turns were not
// asked.
func (u *user) leave() (left int64) {
	if u.talk == nil {
		return 0
	}
	u.talk = nil
	for shot := u.peek(); shot != nil && shot.Turn > 0; shot = u.peek() {
		u.held = nil
		left++
	}
	return left
}

// sendClosed lets every user send until the block's time or count is over and
// returns the end of sending: the block's end if it is timed, else the moment
// at which the last user was done.
func (d *Driver) sendClosed(f *flight, index int, begin time.Time) time.Time {
	limit := d.limit(index)
	if length := d.turn(); length > 0 {
		f.until = begin.Add(max(0, length-d.spent))
		d.spent = 0
		over := time.AfterFunc(time.Until(f.until), f.startDrain)
		defer over.Stop()
	}
	var users sync.WaitGroup
	for _, u := range d.users {
		users.Go(func() {
			u.ask(f, begin, limit)
			f.unask(&f.unasked.Over, u.leave())
		})
	}
	users.Wait()
	if f.until.IsZero() || time.Now().Before(f.until) {
		return time.Now()
	}
	return f.until
}

// ask sends the user's shots of a block, each after the answer to the one before.
// A session belongs to the block in which it begins.
func (u *user) ask(f *flight, begin time.Time, limit int64) {
	waiter := pace.Plain()
	var refused workload.Refusals
	due, first := begin, true
	for shot := u.peek(); shot != nil; shot = u.peek() {
		if u.talk == nil && limit >= 0 && shot.Index >= limit {
			return
		}
		if first {
			due, first = due.Add(u.stagger), false
		} else {
			due = due.Add(shot.Think)
		}
		if !f.until.IsZero() && !due.Before(f.until) || waiter.Until(f.sending, due) != nil {
			return
		}
		u.held = nil
		if shot.Turns > 0 && shot.Turn == 0 {
			u.talk = new(session)
		}
		j := job{shot: *shot, due: due, talk: u.talk, again: u.again > 0}
		u.again--
		if u.talk != nil {
			u.talk.Join(&j.shot)
		}
		e := f.do(j)
		hold := refused.Hold(e.outcome, time.Since(due))
		due = time.Now().Add(hold)
		if u.talk == nil {
			continue
		}
		due = e.at.Add(hold)
		u.talk.take(&j.shot, e)
		if next := u.peek(); next == nil || next.Turn == 0 {
			u.talk = nil // that was its last turn
		} else if to := f.hindrance(u.talk, next); to != nil {
			f.unask(to, u.leave())
		}
	}
}

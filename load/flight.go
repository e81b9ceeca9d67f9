package load

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/workload"
)

// job is one shot that came due.
type job struct {
	shot    workload.Shot
	due     time.Time
	delayed bool // waited for the cap
	again   bool // may have been sent before the run stopped
	talk    *session
}

// flight is everything in the air during one block.
type flight struct {
	d       *Driver
	block   int
	phase   record.Phase
	cap     int
	run     context.Context // the caller's: when it ends, the run is told to stop
	sending context.Context // ends when nothing more may be sent
	asking  context.Context // ends when what is in flight is cut
	halt    context.CancelCauseFunc
	cut     context.CancelCauseFunc
	work    chan job
	workers sync.WaitGroup
	drain   sync.Once
	timer   *time.Timer // cuts what is in flight
	unwatch func() bool // forgets run

	mu      sync.Mutex
	free    sync.Cond // a place below the cap came free, or sending ended
	flying  int
	backlog []job // due, waiting for the cap
	err     error // first failure of the sink

	// Of sessions in an open loop.
	until    time.Time                // no turn is due from then on; zero: sessions are asked to their end
	thinking map[*session]*time.Timer // whose next turn is not due yet
	unasked  record.Unasked
}

// flight starts with ctx as the end of sending; requests in flight outlive it.
func (d *Driver) flight(ctx context.Context, block int, phase record.Phase) *flight {
	f := &flight{d: d, block: block, phase: phase, cap: d.cfg.Cap, run: ctx, work: make(chan job), thinking: make(map[*session]*time.Timer)}
	f.free.L = &f.mu
	f.sending, f.halt = context.WithCancelCause(ctx)
	f.asking, f.cut = context.WithCancelCause(context.WithoutCancel(ctx))
	f.unwatch = context.AfterFunc(ctx, func() {
		f.startDrain()
		f.free.Broadcast()
	})
	return f
}

// offer sends a job that is due, or lets it wait for the cap, or drops it.
func (f *flight) offer(j job) {
	f.mu.Lock()
	place := f.placeLocked(&j)
	f.mu.Unlock()
	f.launch(j, place)
}

// placement is what becomes of a job that is due.
type placement uint8

const (
	placed   placement = iota // it counts below the cap
	waits                     // it is in the backlog
	unplaced                  // even the backlog is full
)

func (f *flight) placeLocked(j *job) placement {
	switch {
	case f.flying < f.cap:
		f.flying++
		return placed
	case len(f.backlog) < maxBacklog:
		j.delayed = true
		f.backlog = append(f.backlog, *j)
		return waits
	}
	return unplaced
}

// launch gives a job with a place to a worker.
func (f *flight) launch(j job, place placement) {
	switch place {
	case waits:
		return
	case unplaced:
		f.drop(j, record.ClientOverload, fmt.Sprintf("%d requests in flight and %d waiting", f.cap, maxBacklog))
		return
	}
	select {
	case f.work <- j: // a worker was idle
	default:
		f.workers.Go(func() { f.serve(j) })
	}
}

// serve does jobs until the flight is over.
func (f *flight) serve(j job) {
	for ok := true; ok; {
		if e := f.do(j); j.talk != nil {
			f.goOn(j, e)
		}
		if j, ok = f.takeWaiting(); ok {
			continue
		}
		j, ok = <-f.work
	}
}

// takeWaiting returns the job that waited longest for the cap, or gives the
// place back.
func (f *flight) takeWaiting() (job, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.backlog) > 0 && f.sending.Err() == nil {
		j := f.backlog[0]
		f.backlog = f.backlog[1:]
		return j, true
	}
	f.flying--
	f.free.Broadcast()
	return job{}, false
}

// waitBelowCap waits for a place below the cap; false means that sending ended.
func (f *flight) waitBelowCap() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.flying >= f.cap && f.sending.Err() == nil {
		f.free.Wait()
	}
	return f.sending.Err() == nil
}

// ended is what a session needs to know of a request that is over.
type ended struct {
	outcome record.Outcome
	at      time.Time // the end of the answer
	answer  llm.Answer
	tokens  int64 // prompt and answer as the server counted; −1: it did not
}

// do sends one job and hands its record over.
func (f *flight) do(j job) ended {
	cfg := &f.d.cfg
	rec := f.record(j)
	rec.Admit = f.d.instant(time.Now())
	if cfg.Live != nil {
		cfg.Live.began(f.phase)
	}
	asking := f.asking
	if cut := j.shot.Cancel; cut.When == workload.CutTime {
		var done context.CancelFunc
		asking, done = context.WithDeadlineCause(asking, j.due.Add(cut.After), llm.ErrPlanned)
		defer done()
	}
	if rec.Jitter = j.shot.Jitter; rec.Jitter > 0 {
		travel(asking, j.sendAt())
	}
	answer := cfg.Client.Do(asking, cfg.Epoch, request(&j.shot), rec)
	if rec.Outcome == record.Interrupted && context.Cause(f.asking) == errDrain {
		rec.Outcome = record.TotalTimeout
		rec.Detail = fmt.Sprintf("not done %v after the end of the schedule", cfg.Drain)
	}
	e := ended{outcome: rec.Outcome, at: time.Now(), answer: answer, tokens: -1}
	if since, ok := rec.EOF.Offset(); ok {
		e.at = cfg.Epoch.Add(since)
	}
	prompt, told := rec.Prompt.N()
	if output, also := rec.Output.N(); told && also {
		e.tokens = prompt + output
	}
	f.deliver(rec, answer) // which gives the record away
	return e
}

// sendAt is when a job with jitter is sent: so long after it was due, or after
// the cap let it pass.
func (j *job) sendAt() time.Time {
	if j.delayed {
		return time.Now().Add(j.shot.Jitter)
	}
	return j.due.Add(j.shot.Jitter)
}

// travel waits until the instant, or the end of ctx.
func travel(ctx context.Context, until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (f *flight) drop(j job, why record.Outcome, detail string) {
	rec := f.record(j)
	rec.Outcome, rec.Detail = why, detail
	f.deliver(rec, llm.Answer{})
	if left := int64(j.shot.Turns - j.shot.Turn - 1); left > 0 {
		f.unask(&f.unasked.NoAnswer, left)
	}
}

func (f *flight) deliver(rec *record.Record, answer llm.Answer) {
	cfg := &f.d.cfg
	if cfg.Monitor != nil {
		cfg.Monitor.observe(rec)
	}
	if cfg.Live != nil {
		cfg.Live.ended(rec)
	}
	if err := cfg.Sink(rec, answer); err != nil {
		f.mu.Lock()
		if f.err == nil {
			f.err = err
		}
		f.mu.Unlock()
		f.halt(err)
		f.cut(err)
	}
}

// record starts the record of a shot.
func (f *flight) record(j job) *record.Record {
	s := &j.shot
	rec := &record.Record{
		Shot: s.Index, Variant: f.d.cfg.Variant, Workload: s.Workload, Phase: f.phase, Block: f.block,
		Case: s.Case, Session: s.Session, Turn: s.Turn, Tenant: s.Tenant,
		Stream: s.Stream, MaxTokens: s.MaxTokens, PromptBytes: int64(len(s.Prompt)), Labels: s.Labels,
		Due: f.d.instant(j.due),
	}
	for i := range s.Messages {
		rec.PromptBytes += int64(len(s.Messages[i].Content))
	}
	if j.delayed {
		rec.Flags |= record.FlagDelayedByCap
	}
	if s.Cancel.When != workload.CutNever {
		rec.Flags |= record.FlagCancelPlanned
	}
	if j.again {
		rec.Flags |= record.FlagReissued
	}
	return rec
}

func request(s *workload.Shot) *llm.Request {
	seed := s.Seed
	return &llm.Request{
		Messages: s.Messages, Prompt: s.Prompt, MaxTokens: s.MaxTokens, Stream: s.Stream,
		IgnoreEOS: s.IgnoreEOS, Temperature: s.Temperature, Seed: &seed,
		LeaveSent: s.Cancel.When == workload.CutPrefill, LeaveAfter: s.Cancel.Tokens, Priority: s.Priority,
	}
}

// startDrain gives what is in flight Config.Drain from now, then cuts it: as a
// timeout when the schedule ended, with the run's own cause when it was stopped.
// Only the first call counts.
func (f *flight) startDrain() {
	f.drain.Do(func() {
		f.timer = time.AfterFunc(f.d.cfg.Drain, func() {
			cause := context.Cause(f.run)
			if cause == nil {
				cause = errDrain
			}
			f.halt(cause)
			f.cut(cause)
			f.free.Broadcast()
		})
	})
}

// finish waits for what is in flight, at most for the drain, accounts for what
// still waited, and returns the sink's failure or the run's cause to stop.
func (f *flight) finish() error {
	f.endSessions()
	f.startDrain()
	defer f.cut(nil)
	defer f.halt(nil)
	defer f.timer.Stop()
	defer f.unwatch()

	f.mu.Lock()
	for f.flying > 0 {
		f.free.Wait()
	}
	waiting, err := f.backlog, f.err
	f.backlog = nil
	f.mu.Unlock()
	close(f.work)
	f.workers.Wait()
	for _, j := range waiting {
		if f.run.Err() != nil || err != nil {
			f.drop(j, record.Interrupted, "waited for the cap on requests in flight when the run was stopped")
		} else {
			f.drop(j, record.ClientOverload, fmt.Sprintf("waited for the cap of %d requests in flight until the end of the drain", f.cap))
		}
	}
	if err != nil {
		return fmt.Errorf("keeping the records: %w", err)
	}
	if f.run.Err() != nil {
		return context.Cause(f.run)
	}
	return nil
}

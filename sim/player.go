package sim

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/workload"
)

// Player plays plans to an [Engine] and writes the records that a client without
// any delay of its own would have written, by discrete events: without network,
// goroutine and clock, thousands of times as fast as the time that it plays. An
// open loop of a real client in virtual time gives the same instants to the
// nanosecond. Make one with NewPlayer. Not safe for concurrent use.
//
// It does not play what only a real client sees: connections, kernel stamps, the
// text of answers (a record's Body is empty), the limits of the client (timeout,
// stall) and usage that is wrong on purpose.
type Player struct {
	Variant string               // on the records
	API     string               // llm.APIChat or llm.APICompletions; "": chat
	Sink    func(*record.Record) // takes each finished record and owns it

	server *Server // configuration and engine only: it is never run
	engine *Engine
	now    time.Duration
	timers []timer // a heap would be quicker for thousands of them
	made   int64
	flying map[Handle]*played
}

// timer is something to do at an instant; those of one instant in their order.
type timer struct {
	at    time.Duration
	order int64
	do    func()
}

// NewPlayer returns a player with an engine of its own, which is loaded and empty,
// or every fault of the configuration.
func NewPlayer(c Config) (*Player, error) {
	engine, err := NewEngine(c)
	if err != nil {
		return nil, err
	}
	if c.Faults.Usage > 0 {
		return nil, errors.New("playing a simulated engine: nobody reads the usage that faults.wrong_usage falsifies\n  hint: remove wrong_usage, or run the suite")
	}
	return &Player{
		server: &Server{config: c, limit: cmp.Or(int64(c.Output.Default), 128), engine: engine},
		engine: engine, flying: map[Handle]*played{},
	}, nil
}

// Now returns the time of the player, from 0.
func (p *Player) Now() time.Duration { return p.now }

// Wait lets time pass until the instant.
func (p *Player) Wait(until time.Duration) {
	p.run(until, func() bool { return false })
	p.now = max(p.now, until)
}

// ResetPrefixCache has the engine forget what it cached.
func (p *Player) ResetPrefixCache() { p.engine.ResetPrefixCache() }

// run lets happen what is due until the instant, or until done.
func (p *Player) run(until time.Duration, done func() bool) {
	for !done() {
		step, busy := p.engine.Next()
		due := len(p.timers) > 0
		switch {
		case busy && (!due || step <= p.timers[0].at):
			if step > until {
				return
			}
			p.now = max(p.now, step)
			for _, em := range p.engine.Step(step) {
				if f := p.flying[em.Request]; f != nil {
					f.emitted(em)
				}
			}
		case due && p.timers[0].at <= until:
			t := p.timers[0]
			p.timers = p.timers[1:]
			p.now = max(p.now, t.at)
			t.do()
		default:
			return
		}
	}
}

// at has something done at an instant, or next if that has passed.
func (p *Player) at(t time.Duration, do func()) {
	p.made++
	at, _ := slices.BinarySearchFunc(p.timers, timer{at: t, order: p.made}, func(a, b timer) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order))
	})
	p.timers = slices.Insert(p.timers, at, timer{t, p.made, do})
}

// Part is one plan as it is played, block by block. Close it when done.
type Part struct {
	Cap   int           // requests in flight at once in an open loop; 0: 4,096
	Drain time.Duration // how long requests in flight may go on after the end of a block; 0: 30 s

	p      *Player
	plan   *workload.Plan
	blocks int
	next   func() (workload.Shot, bool)
	stop   func()
	held   *shots
	base   time.Duration // due offset at which the next block starts
	users  []*player
}

// shots is an arrival of an open loop: a shot, or a session with the turns to come.
type shots struct {
	first workload.Shot
	rest  []workload.Shot
	talk  *workload.Dialogue // nil: no session
}

// Part returns a plan at its start, to be played in so many blocks.
func (p *Player) Part(plan *workload.Plan, blocks int) *Part {
	t := &Part{p: p, plan: plan, blocks: max(blocks, 1), stop: func() {}}
	if plan.Open() {
		t.next, t.stop = iter.Pull(plan.All())
		return t
	}
	for i := range plan.Users() {
		u := &player{}
		u.next, u.stop = iter.Pull(plan.Stripe(i, plan.Users()))
		t.users = append(t.users, u)
	}
	return t
}

// Close gives back what the part holds.
func (t *Part) Close() {
	t.stop()
	for _, u := range t.users {
		u.stop()
	}
}

// warmUpUsers is how many requests of a warm-up are in flight at once, as the load
// driver has it.
const warmUpUsers = 8

// WarmUp plays the plan's warm-up and waits for its end.
func (t *Part) WarmUp() {
	b := t.block(0, record.WarmUp)
	b.cap = warmUpUsers
	for shot := range t.plan.WarmUp() {
		b.run(forever, func() bool { return len(b.flight) < b.cap })
		b.offer(&shots{first: shot}, t.p.now)
	}
	b.finish()
}

// Block plays block index (from 0, in order) from now on, and returns the window
// in which it measured, once everything in flight has ended.
func (t *Part) Block(index int) record.Window {
	b := t.block(index, record.Measured)
	w := record.Window{Variant: t.p.Variant, Workload: t.plan.Name(), Block: index, Start: record.At(t.p.now), From: t.base}
	var end time.Duration
	if t.plan.Open() {
		end = b.open(index)
	} else {
		end = b.closed(index)
	}
	w.End = record.At(end)
	b.finish()
	if b.unasked != (record.Unasked{}) {
		w.Unasked = &b.unasked
	}
	return w
}

// stretch is a block under way, or the warm-up.
type stretch struct {
	*Player
	part    *Part
	index   int
	phase   record.Phase
	cap     int
	until   time.Duration // no turn is due from then on; 0: sessions are asked to their end
	over    bool          // nothing is sent any more
	flight  map[*played]bool
	waiting []*played // for the cap
	talking int       // sessions whose next turn is to come
	unasked record.Unasked
	grows   bool // later turns carry the text of answers
}

func (t *Part) block(index int, phase record.Phase) *stretch {
	spec := t.plan.Spec()
	return &stretch{Player: t.p, part: t, index: index, phase: phase, cap: cmp.Or(t.Cap, 4096), flight: map[*played]bool{}, grows: spec.Grows()}
}

// peek returns the next arrival of an open plan without taking it.
func (t *Part) peek() *shots {
	if t.held != nil {
		return t.held
	}
	shot, ok := t.next()
	if !ok {
		return nil
	}
	t.held = &shots{first: shot}
	if shot.Turns > 0 {
		t.held.talk = new(workload.Dialogue)
		for range shot.Turns - 1 {
			if turn, ok := t.next(); ok {
				t.held.rest = append(t.held.rest, turn)
			}
		}
	}
	return t.held
}

// open offers each shot of the block at its due instant and returns the block's end
// by the schedule.
func (b *stretch) open(index int) time.Duration {
	t, begin, last := b.part, b.now, b.part.base
	spec := t.plan.Spec()
	byTime := spec.Requests == 0
	edge := t.plan.For() / time.Duration(t.blocks) * time.Duration(index+1)
	if index+1 == t.blocks {
		edge = t.plan.For()
	}
	if byTime {
		b.until = begin + edge - t.base
	}
	for s := t.peek(); s != nil; s = t.peek() {
		mine := s.first.Due < edge
		if !byTime {
			mine = s.first.Index < t.plan.Planned()*int64(index+1)/int64(t.blocks)
		}
		if !mine {
			break
		}
		last = s.first.Due
		due := begin + last - t.base
		b.Wait(due)
		b.offer(s, due)
		t.held = nil
	}
	end := begin + last - t.base
	if byTime {
		end, last = b.until, edge
	}
	t.base = last
	b.Wait(end)
	if !byTime && spec.Sessions != nil {
		b.run(forever, func() bool { return b.talking == 0 && len(b.flight) == 0 })
		end = b.now
	}
	return end
}

const forever = time.Duration(1<<63 - 1)

// player is one user of a closed loop.
type player struct {
	next    func() (workload.Shot, bool)
	stop    func()
	held    *workload.Shot
	stagger time.Duration // of the first shot: repeated at the start of each block
	started bool
	talk    *workload.Dialogue
	refused workload.Refusals
	done    bool // with this block
}

func (u *player) peek() *workload.Shot {
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

// leave ends the user's session and returns how many turns were not asked.
func (u *player) leave() (left int64) {
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

// closed lets every user ask until the block's time or count is over, and returns
// the end of sending.
func (b *stretch) closed(index int) time.Duration {
	begin, spec := b.now, b.part.plan.Spec()
	limit := int64(-1)
	if n := int64(spec.Requests); n > 0 {
		limit = n * int64(index+1) / int64(b.part.blocks)
	}
	cut := forever
	if length := time.Duration(spec.For) / time.Duration(b.part.blocks); length > 0 {
		b.until = begin + length
		cut = b.until + b.drain()
	}
	for _, u := range b.part.users {
		u.done, u.refused = u.peek() == nil, 0
		b.ask(u, limit, begin+u.stagger)
	}
	idle := func() bool {
		return !slices.ContainsFunc(b.part.users, func(u *player) bool { return !u.done })
	}
	if b.run(cut, idle); b.until == 0 || b.now < b.until {
		return b.now
	}
	return b.until
}

// ask has the user's next shot of the block sent when it is due.
func (b *stretch) ask(u *player, limit int64, due time.Duration) {
	shot := u.peek()
	if shot == nil || u.talk == nil && limit >= 0 && shot.Index >= limit || b.until > 0 && due >= b.until {
		u.done = true
		b.unasked.Over += u.leave()
		return
	}
	b.at(due, func() {
		u.held = nil
		if shot.Turns > 0 && shot.Turn == 0 {
			u.talk = new(workload.Dialogue)
		}
		f := b.fly(*shot, due, u.talk)
		f.then = func() { b.answered(u, f, limit) }
		f.admit()
	})
}

// answered goes on with a user whose shot has ended.
func (b *stretch) answered(u *player, f *played, limit int64) {
	due := b.now + u.refused.Hold(f.rec.Outcome, b.now-f.due)
	if u.talk != nil {
		u.talk.Take(&f.shot, f.reply())
		if next := u.peek(); next == nil || next.Turn == 0 {
			u.talk = nil
		} else if to := b.hindrance(u.talk, next); to != nil {
			*to += u.leave()
		}
	}
	if next := u.peek(); next != nil {
		due += next.Think
	}
	b.ask(u, limit, due)
}

func (b *stretch) hindrance(d *workload.Dialogue, next *workload.Shot) *int64 {
	switch b.part.plan.Hindrance(d, next) {
	case workload.NoAnswer:
		return &b.unasked.NoAnswer
	case workload.FullContext:
		return &b.unasked.Context
	}
	return nil
}

// offer sends an arrival of an open loop, or lets it wait for the cap.
func (b *stretch) offer(s *shots, due time.Duration) {
	f := b.fly(s.first, due, s.talk)
	if s.talk != nil {
		f.then = func() { b.goOn(s, f) }
	}
	if len(b.flight) >= b.cap {
		f.delayed = true
		f.rec.Flags |= record.FlagDelayedByCap
		b.waiting = append(b.waiting, f)
		return
	}
	f.admit()
}

// goOn has the next turn of an open loop's session asked when it is due.
func (b *stretch) goOn(s *shots, f *played) {
	if len(s.rest) == 0 {
		return
	}
	s.talk.Take(&f.shot, f.reply())
	left := int64(len(s.rest))
	if to := b.hindrance(s.talk, &s.rest[0]); to != nil {
		*to += left
		return
	}
	due := b.now + s.rest[0].Think
	if b.over || b.until > 0 && due >= b.until {
		b.unasked.Over += left
		return
	}
	b.talking++
	b.at(due, func() {
		b.talking--
		s.first, s.rest = s.rest[0], s.rest[1:]
		b.offer(s, due)
	})
}

func (b *stretch) drain() time.Duration { return cmp.Or(b.part.Drain, 30*time.Second) }

// finish waits for what is in flight, at most for the drain, and accounts for what
// still waited.
func (b *stretch) finish() {
	cut := b.now + b.drain()
	if b.until > 0 && !b.part.plan.Open() {
		cut = b.until + b.drain() // which a closed loop began at the end of its time
	}
	b.over = true
	if b.run(cut, func() bool { return len(b.flight) == 0 }); len(b.flight) > 0 {
		b.now = max(b.now, cut)
	}
	rest := make([]*played, 0, len(b.flight))
	for f := range b.flight {
		rest = append(rest, f)
	}
	slices.SortFunc(rest, func(x, y *played) int { return cmp.Compare(x.rec.Shot, y.rec.Shot) })
	waiting := b.waiting
	b.waiting = nil
	for _, f := range rest {
		f.end(record.TotalTimeout, fmt.Sprintf("not done %v after the end of the schedule", b.drain()))
	}
	for _, f := range waiting {
		f.rec.Outcome = record.ClientOverload
		f.rec.Detail = fmt.Sprintf("waited for the cap of %d requests in flight until the end of the drain", b.cap)
		b.unasked.NoAnswer += int64(max(0, f.shot.Turns-f.shot.Turn-1))
		b.Sink(f.rec)
	}
	for _, u := range b.part.users {
		b.unasked.Over += u.leave()
	}
}

// fly starts the record of a shot that is due.
func (b *stretch) fly(shot workload.Shot, due time.Duration, talk *workload.Dialogue) *played {
	if talk != nil {
		talk.Join(&shot)
	}
	f := &played{b: b, shot: shot, due: due, then: func() {}}
	f.rec = &record.Record{
		Shot: shot.Index, Variant: b.Variant, Workload: shot.Workload, Phase: b.phase, Block: b.index,
		Case: shot.Case, Session: shot.Session, Turn: shot.Turn, Tenant: shot.Tenant, Stream: shot.Stream,
		MaxTokens: shot.MaxTokens, PromptBytes: int64(len(shot.Prompt)), Labels: shot.Labels, Due: record.At(due),
		Jitter: shot.Jitter, Reused: true,
	}
	for i := range shot.Messages {
		f.rec.PromptBytes += int64(len(shot.Messages[i].Content))
	}
	if shot.Cancel.When != workload.CutNever {
		f.rec.Flags |= record.FlagCancelPlanned
	}
	return f
}

// request is what the server would read of a shot.
func (p *Player) request(s *workload.Shot) *llm.ChatRequest {
	seed := s.Seed
	q := &llm.ChatRequest{
		API: llm.APIChat, Messages: s.Messages, MaxTokens: s.MaxTokens, Stream: s.Stream, IncludeUsage: true,
		IgnoreEOS: s.IgnoreEOS, N: 1, Temperature: s.Temperature, Seed: &seed, Priority: s.Priority,
	}
	switch {
	case p.API == llm.APICompletions:
		var texts []string
		for i := range s.Messages {
			texts = append(texts, s.Messages[i].Content)
		}
		q.API, q.Messages, q.Prompt = llm.APICompletions, nil, cmp.Or(s.Prompt, strings.Join(texts, "\n"))
	case len(s.Messages) == 0:
		q.Messages = []corpus.Message{{Role: "user", Content: s.Prompt}}
	}
	return q
}

// refusal is the outcome of a status.
func refusal(status int) record.Outcome {
	if status >= http.StatusInternalServerError {
		return record.HTTP5xx
	}
	return record.HTTP4xx
}

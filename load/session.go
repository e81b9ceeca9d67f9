package load

import (
	"time"

	"github.com/assay-llm/assay/workload"
)

// session is a dialogue under way: turn k is due a think time after the end of
// the answer to turn k−1, and carries what was said so far. A session ends early
// when an answer does not come whole, when its next turn would not fit into the
// limit of tokens, or when its block is over. It belongs to one goroutine at a
// time.
type session struct {
	rest []workload.Shot // open loop: turns to come
	workload.Dialogue
}

// take enters an answer into the dialogue.
func (s *session) take(asked *workload.Shot, e ended) {
	s.Take(asked, workload.Reply{
		Outcome: e.outcome, Text: e.answer.Text, Partial: e.answer.Clipped || len(e.answer.Tools) > 0, Tokens: e.tokens,
	})
}

// hindrance returns the count of turns not asked to which the rest of a session
// belongs if its next turn cannot be asked; nil: it can.
func (f *flight) hindrance(s *session, next *workload.Shot) *int64 {
	switch f.d.cfg.Plan.Hindrance(&s.Dialogue, next) {
	case workload.NoAnswer:
		return &f.unasked.NoAnswer
	case workload.FullContext:
		return &f.unasked.Context
	}
	return nil
}

// unask counts turns that will not be asked.
func (f *flight) unask(to *int64, turns int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*to += turns
}

// goOn has the next turn of an open loop's session asked when it is due.
func (f *flight) goOn(j job, e ended) {
	s := j.talk
	if len(s.rest) == 0 {
		return
	}
	s.take(&j.shot, e)
	next := &s.rest[0]
	if to := f.hindrance(s, next); to != nil {
		f.unask(to, int64(len(s.rest)))
		return
	}
	due := e.at.Add(next.Think)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.thinking == nil || !f.until.IsZero() && !due.Before(f.until) || f.sending.Err() != nil {
		f.unasked.Over += int64(len(s.rest))
		return
	}
	f.thinking[s] = time.AfterFunc(time.Until(due), func() { f.nextTurn(s, due) })
}

// nextTurn offers the turn of a session that is now due.
func (f *flight) nextTurn(s *session, due time.Time) {
	f.mu.Lock()
	if f.thinking[s] == nil { // the flight is over, and has counted it
		f.mu.Unlock()
		return
	}
	delete(f.thinking, s)
	if f.sending.Err() != nil {
		f.unasked.Over += int64(len(s.rest))
		f.mu.Unlock()
		return
	}
	j := job{shot: s.rest[0], due: due, talk: s}
	s.rest = s.rest[1:]
	s.Join(&j.shot)
	place := f.placeLocked(&j)
	f.mu.Unlock()
	f.launch(j, place)
}

// waitSessions waits until no session goes on, or sending has ended.
func (f *flight) waitSessions() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for (len(f.thinking) > 0 || f.flying > 0) && f.sending.Err() == nil {
		f.free.Wait()
	}
}

// endSessions has no further turn asked.
func (f *flight) endSessions() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s, timer := range f.thinking {
		timer.Stop()
		f.unasked.Over += int64(len(s.rest))
	}
	f.thinking = nil
}

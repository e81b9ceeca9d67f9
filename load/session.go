package load

import (
	"slices"
	"time"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/workload"
)

// session is a dialogue under way: turn k is due a think time after the end of
// the answer to turn k−1, and carries what was said so far. A session ends early
// when an answer does not come whole, when its next turn would not fit into the
// limit of tokens, or when its block is over. It belongs to one goroutine at a
// time.
type session struct {
	rest     []workload.Shot // open loop: turns to come
	dialogue []corpus.Message
	tokens   int64 // of the dialogue, as the server counted where it did
	failed   bool  // the last turn had no good end
	mute     bool  // its answer is no text to go on with
}

// bytesPerToken is what text is taken for whose tokens nobody has counted.
const bytesPerToken = 4

func textTokens(messages []corpus.Message) int64 {
	n := 0
	for i := range messages {
		n += len(messages[i].Content)
	}
	return int64(n+bytesPerToken-1) / bytesPerToken
}

// join puts the dialogue before what a turn adds to it. A question without an
// answer and the one that follows become one message: the roles of a dialogue take
// turns, as most templates of chats demand.
func (s *session) join(shot *workload.Shot) {
	if !shot.History {
		return
	}
	before, added := s.dialogue, shot.Messages
	if n := len(before); n > 0 && len(added) > 0 && before[n-1].Role == "user" && added[0].Role == "user" {
		both := before[n-1].Content + "\n" + added[0].Content
		before, added = slices.Concat(before[:n-1], []corpus.Message{{Role: "user", Content: both}}), added[1:]
	}
	shot.Messages = slices.Concat(before, added)
}

// take enters an answer into the dialogue. A whole one goes on with it; so does
// what a user had read who interrupted it, if anything. Anything else ends the
// session. Reasoning is not kept, as
// applications do not send it back.
func (s *session) take(asked *workload.Shot, e ended) {
	text := e.answer.Text
	switch {
	case e.outcome == record.ClientCancelled && text == "":
		s.dialogue, s.mute = asked.Messages, false
		s.tokens = textTokens(s.dialogue)
		return
	case e.outcome != record.OK && e.outcome != record.ClientCancelled:
		s.failed = true
		return
	}
	s.mute = text == "" || e.answer.Clipped || len(e.answer.Tools) > 0
	s.dialogue = append(slices.Clip(asked.Messages), corpus.Message{Role: "assistant", Content: text})
	if s.tokens = e.tokens; s.tokens < 0 {
		s.tokens = textTokens(s.dialogue)
	}
}

// hindrance returns the count of turns not asked to which the rest of a session
// belongs if its next turn cannot be asked; nil: it can.
func (f *flight) hindrance(s *session, next *workload.Shot) *int64 {
	most := int64(f.d.cfg.Plan.Spec().Sessions.Context)
	if most == 0 {
		most = workload.MaxTokens
	}
	switch {
	case s.failed || s.mute && next.History:
		return &f.unasked.NoAnswer
	case next.History && s.tokens+textTokens(next.Messages)+next.MaxTokens > most:
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
	s.join(&j.shot)
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

package workload

import (
	"iter"
	"strconv"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/corpus"
)

// maxTurns is the most turns of a session; its random numbers are drawn by
// session·maxTurns + turn.
const maxTurns = 1000

// sessions plan dialogues. Session and turn alone say what is drawn, so that
// another number of turns moves no text, and no other session.
type sessions struct {
	turns   func(u float64) config.Count    // nil: those of the case
	think   func(u float64) config.Duration // nil: no pause
	history bool

	counts, pauses Stream
	cases          []int // user messages of each case, at least 1; nil: synthetic
}

// newSessions returns nil if the spec has no sessions.
func newSessions(spec *Spec, set *corpus.Set, stream func(string) Stream) *sessions {
	if spec.Sessions == nil {
		return nil
	}
	s := &sessions{history: isTrue(spec.Sessions.History), counts: stream("turns"), pauses: stream("pause")}
	if spec.Sessions.Turns.Set() {
		s.turns = spec.Sessions.Turns.sampler()
	}
	if spec.Sessions.Think.Set() {
		s.think = spec.Sessions.Think.sampler()
	}
	if set != nil {
		for i := range set.Cases {
			s.cases = append(s.cases, userMessages(set.Cases[i].Messages))
		}
	}
	return s
}

func userMessages(messages []corpus.Message) (n int) {
	for i := range messages {
		if messages[i].Role == "user" {
			n++
		}
	}
	return min(max(n, 1), maxTurns)
}

// asks returns what a turn of a dialogue adds to it: the messages up to the
// user's next one, without the recorded answers, whose place those take that
// really come. Of a later turn that does not go on with the dialogue it is the
// messages before the user's first one, and the user's. Messages of which none is
// a user's are asked as they are.
func asks(messages []corpus.Message, turn int, goesOn bool) []corpus.Message {
	var added []corpus.Message
	users := 0
	for _, m := range messages {
		user := m.Role == "user"
		switch {
		case m.Role == "assistant":
		case users == turn, users == 0 && !user && !goesOn:
			added = append(added, m)
		}
		if user {
			if users++; users > turn {
				return added
			}
		}
	}
	if users == 0 {
		return messages
	}
	return added
}

// turnsOf returns the number of turns of session i.
func (g *generator) turnsOf(i int64) int64 {
	n := int64(maxTurns)
	if g.sessions.turns != nil {
		n = min(n, int64(g.sessions.turns(g.sessions.counts.uniform(i))))
	}
	if g.sessions.cases != nil {
		_, at := g.position(i, int64(len(g.sessions.cases)))
		n = min(n, int64(g.sessions.cases[at]))
	}
	return n
}

// session yields the turns of session i, which has n of them and whose first has
// the given index. Due, User and the wait before the first turn are left open.
func (w *writer) session(i, n, index int64, text bool) iter.Seq[Shot] {
	return func(yield func(Shot) bool) {
		for turn := range n {
			at := place{key: i*maxTurns + turn, owner: i, turn: int(turn), turns: int(n)}
			s := w.shot(at, text)
			s.Index, s.Session = index+turn, "session-"+strconv.FormatInt(i, 10)
			if turn > 0 && w.sessions.think != nil {
				s.Think = time.Duration(w.sessions.think(w.sessions.pauses.uniform(at.key)))
			}
			if !yield(s) {
				return
			}
		}
	}
}

// Grows reports whether requests carry earlier answers, of which the text must
// then be kept.
func (s *Spec) Grows() bool { return s.Sessions != nil && isTrue(s.Sessions.History) }

// limit returns how many requests the plan may have.
func (s *Spec) limit() int64 {
	if s.Requests > 0 {
		return int64(s.Requests)
	}
	return maxShots
}

// starts yields the sessions of the plan: index of the session, number of its
// turns, index of its first shot, and when it is due in an open loop. The limit
// of requests cuts the last one short.
func (p *Plan) starts() iter.Seq2[start, time.Duration] {
	return func(yield func(start, time.Duration) bool) {
		next, limit := int64(0), p.spec.limit()
		each := func(i int64, due time.Duration) bool {
			s := start{session: i, turns: min(p.measured.turnsOf(i), limit-next), index: next}
			next += s.turns
			return yield(s, due) && next < limit
		}
		if p.Open() {
			p.dues()(each)
			return
		}
		for i := int64(0); each(i, 0); i++ {
		}
	}
}

type start struct{ session, turns, index int64 }

// stripeSessions is stripe for a plan of sessions: session i belongs to worker i
// mod of, or with its user i mod Users to worker user mod of.
func (p *Plan) stripeSessions(g *generator, worker, of int64, text bool) iter.Seq[Shot] {
	return func(yield func(Shot) bool) {
		w := g.writer()
		for begin, due := range p.starts() {
			owner := begin.session
			if !p.Open() {
				owner %= p.closed.users
			}
			if owner%of != worker {
				continue
			}
			for s := range w.session(begin.session, begin.turns, begin.index, text) {
				if s.Turn == 0 {
					s.Due = due
				}
				if !p.Open() {
					s.User = int(owner)
					p.firstWait(&s, begin.session, g.think)
				}
				if !yield(s) {
					return
				}
			}
		}
	}
}

// firstWait is how long a user waits before a session: the stagger before the
// first one, the think time of the arrivals before each later one.
func (p *Plan) firstWait(s *Shot, session int64, think Stream) {
	switch {
	case s.Turn > 0:
	case session < p.closed.users:
		s.Think = p.closed.start(session)
	case p.closed.think != nil:
		s.Think = time.Duration(p.closed.think(think.uniform(session)))
	}
}

// Askable returns how many of the planned shots can be asked at all when the plan is
// cut into so many blocks of equal time: of each session those turns that would be
// due before its block is over if every answer came at once. Answers take their
// time, so fewer will be asked. Without sessions, or a time that cuts them, it is
// what is planned.
func (p *Plan) Askable(blocks int) int64 {
	if p.spec.Sessions == nil || p.spec.For == 0 || p.spec.Requests > 0 || !p.Open() {
		return p.Planned()
	}
	whole := time.Duration(p.spec.For)
	block := max(whole/time.Duration(max(blocks, 1)), 1)
	n, pauses := int64(0), p.measured.sessions
	for s, due := range p.starts() {
		end := whole
		if k := due/block + 1; k < time.Duration(blocks) {
			end = k * block
		}
		for turn := range s.turns {
			if turn > 0 && pauses.think != nil {
				due += time.Duration(pauses.think(pauses.pauses.uniform(s.session*maxTurns + turn)))
			}
			if due >= end {
				break
			}
			n++
		}
	}
	return n
}

// countSessions counts the shots of an open loop of sessions.
func (p *Plan) countSessions() (c counted) {
	last := time.Duration(0)
	for s, due := range p.starts() {
		c.shots, last = s.index+s.turns, due
	}
	c.length = time.Duration(p.spec.For)
	if p.spec.Requests > 0 && c.shots == int64(p.spec.Requests) {
		c.length = last + 1
	}
	return c
}

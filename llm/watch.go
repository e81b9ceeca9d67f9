package llm

import (
	"context"
	"sync"
)

// watches cut exchanges when their contexts end. Requests of a run share one
// context, and a registration with it costs as much as a read: one registration
// serves all exchanges of a context. The zero watches is ready.
type watches struct {
	mu      sync.Mutex
	current *watch // of the context that was seen last; nil: none yet
}

// watch is the exchanges of one context.
type watch struct {
	done  <-chan struct{} // which tells one context from another
	stop  func() bool     // ends the registration
	ended bool
	first *conn // list by conn.after and conn.before
}

// add has c cut when ctx ends. Whoever adds it asks ctx behind it.
func (s *watches) add(ctx context.Context, c *conn) {
	done := ctx.Done()
	if done == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.current
	if v == nil || v.done != done {
		s.forgetLocked()
		v = &watch{done: done}
		v.stop = context.AfterFunc(ctx, func() { s.cut(v) })
		s.current = v
	}
	if c.watch, c.after = v, v.first; c.after != nil {
		c.after.before = c
	}
	v.first = c
}

// remove ends the watch on c, and reports whether it was not cut.
func (s *watches) remove(c *conn) bool {
	v := c.watch
	if v == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.before != nil {
		c.before.after = c.after
	} else {
		v.first = c.after
	}
	if c.after != nil {
		c.after.before = c.before
	}
	c.watch, c.after, c.before = nil, nil, nil
	if v.first == nil && v != s.current {
		v.stop()
	}
	return !v.ended
}

// cut ends the exchanges of a context that has ended.
func (s *watches) cut(v *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v.ended = true
	for c := v.first; c != nil; c = c.after {
		c.cut()
	}
}

// forgetLocked lets go of the current watch, now or when its last exchange ends.
func (s *watches) forgetLocked() {
	if v := s.current; v != nil && v.first == nil {
		v.stop()
	}
	s.current = nil
}

func (s *watches) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked()
}

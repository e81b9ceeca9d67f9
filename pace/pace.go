package pace

import (
	"context"
	"time"
)

// Waiter waits for instants, one caller at a time. The zero Waiter waits on
// plain timers. Close it when done.
type Waiter struct {
	exact alarm // nil: plain timers
	timer *time.Timer
}

// alarm is a clock that wakes more exactly than package time does.
type alarm interface {
	// wait blocks for d or until ctx ends. An error other than ctx's means that
	// the alarm is of no use.
	wait(ctx context.Context, d time.Duration) error
	close() error
}

// New returns the most exact waiter that the system has.
func New() *Waiter { return &Waiter{exact: newAlarm()} }

// Plain returns a waiter on package time's timers. It is the one to use in a
// testing/synctest bubble.
func Plain() *Waiter { return new(Waiter) }

// Until blocks until the instant at, by the monotonic clock where at carries one.
// It returns nil at or after the instant, at once when the instant has passed,
// and the context's cause when the context ends first.
func (w *Waiter) Until(ctx context.Context, at time.Time) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		d := time.Until(at)
		if d <= 0 {
			return nil
		}
		if w.exact != nil {
			switch err := w.exact.wait(ctx, d); {
			case err == nil, ctx.Err() != nil:
				continue
			default: // the descriptor is gone: late by a timer is better than never
				w.exact = nil
			}
		}
		if err := w.sleep(ctx, d); err != nil {
			return err
		}
	}
}

func (w *Waiter) sleep(ctx context.Context, d time.Duration) error {
	if w.timer == nil {
		w.timer = time.NewTimer(d)
	} else {
		w.timer.Reset(d)
	}
	select {
	case <-w.timer.C:
		return nil
	case <-ctx.Done():
		w.timer.Stop()
		return context.Cause(ctx)
	}
}

// Close releases the waiter's descriptor. The waiter may be used afterwards; it
// then waits on plain timers.
func (w *Waiter) Close() error {
	if w.exact == nil {
		return nil
	}
	a := w.exact
	w.exact = nil
	return a.close()
}

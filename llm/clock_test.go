package llm

import (
	"testing"
	"time"
)

// TestAStepOfTheWallClockDropsKernelStamps makes the last read look as if the wall clock
// had stood elsewhere then, which is what a step since is.
func TestAStepOfTheWallClockDropsKernelStamps(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour, 2 * time.Second, -2 * time.Second} {
		s := newSock(nil)
		read := func() time.Duration {
			s.took(1)
			s.kernel = s.at.Add(-3 * time.Millisecond).UnixNano()
			return s.lag()
		}
		for range 3 {
			if lag := read(); lag != 3*time.Millisecond {
				t.Fatalf("without a step the lag is %v, want 3ms", lag)
			}
		}
		s.ahead -= step
		for range 3 {
			if lag := read(); lag != -1 {
				t.Errorf("behind a step of %v the lag is %v, want it unknown", step, lag)
			}
		}
		s.doubt = s.at // a second has passed
		if lag := read(); lag != 3*time.Millisecond {
			t.Errorf("a second behind a step of %v the lag is %v, want 3ms", step, lag)
		}
	}
	s := newSock(nil)
	s.ahead -= 50 * time.Millisecond // slewed
	if s.took(1); !s.doubt.IsZero() {
		t.Error("a clock that is slewed is taken for one that was set")
	}
}

// TestEventsAreMonotonic reads an answer while the wall clock seems to be an hour off: times
// and latencies are as ever, and only the kernel's stamps are dropped.
func TestEventsAreMonotonic(t *testing.T) {
	s := serve(t, answer(eventA+eventStop+eventDone))
	c := client(t, Target{URL: s.url()})
	ask(t, t.Context(), c, chat("x")) // a connection to use again
	idle := c.wire.(*http1).idle
	if len(idle) == 0 {
		t.Skip("the connection was not kept")
	}
	idle[0].sock.ahead -= time.Hour
	rec, _ := ask(t, t.Context(), c, chat("x"))
	first := rec.First()
	if first == nil || !rec.Reused {
		t.Fatalf("%s: %s", rec.Outcome, rec.Detail)
	}
	if first.Lag >= 0 {
		t.Errorf("lag %v behind a step, want it unknown", first.Lag)
	}
	if d, ok := first.At.Sub(rec.Send); !ok || d < 0 || d > time.Minute {
		t.Errorf("the first token came %v after the request", d)
	}
}

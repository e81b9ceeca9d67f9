package pace

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func waiters(t *testing.T) map[string]*Waiter {
	ws := map[string]*Waiter{"exact": New(), "plain": Plain()}
	for _, w := range ws {
		t.Cleanup(func() { _ = w.Close() })
	}
	return ws
}

func TestUntilNeverReturnsEarly(t *testing.T) {
	for name, w := range waiters(t) {
		t.Run(name, func(t *testing.T) {
			for i := range 50 {
				at := time.Now().Add(time.Duration(i*20) * time.Microsecond)
				if err := w.Until(t.Context(), at); err != nil {
					t.Fatal(err)
				}
				if early := time.Until(at); early > 0 {
					t.Fatalf("woke %v early", early)
				}
			}
		})
	}
}

func TestUntilPastReturnsAtOnce(t *testing.T) {
	for name, w := range waiters(t) {
		if err := w.Until(t.Context(), time.Now().Add(-time.Hour)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUntilEndsWithContextAndWorksAgain(t *testing.T) {
	cause := errors.New("stop")
	for name, w := range waiters(t) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			go cancel(cause)
			if err := w.Until(ctx, time.Now().Add(time.Hour)); !errors.Is(err, cause) {
				t.Fatalf("Until = %v, want %v", err, cause)
			}
			if err := w.Until(ctx, time.Now().Add(-time.Hour)); !errors.Is(err, cause) {
				t.Errorf("Until in an ended context = %v, want %v", err, cause)
			}
			at := time.Now().Add(time.Millisecond)
			if err := w.Until(t.Context(), at); err != nil || time.Now().Before(at) {
				t.Errorf("after a cancelled wait: err %v, early by %v", err, time.Until(at))
			}
		})
	}
}

func TestCloseFallsBackToTimers(t *testing.T) {
	w := New()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	at := time.Now().Add(time.Millisecond)
	if err := w.Until(t.Context(), at); err != nil || time.Now().Before(at) {
		t.Errorf("Until after Close: err %v, early by %v", err, time.Until(at))
	}
}

func TestPlainIsVirtualInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, start := Plain(), time.Now()
		for range 24 {
			if err := w.Until(t.Context(), time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		if got := time.Since(start); got != 24*time.Hour {
			t.Errorf("waited %v, want 24h", got)
		}
	})
}

// BenchmarkLateness prints how late a wait ends at 1,000 instants a second, the
// plain timer beside the exact one.
func BenchmarkLateness(b *testing.B) {
	for name, w := range map[string]*Waiter{"exact": New(), "plain": Plain()} {
		b.Run(name, func(b *testing.B) {
			var late []time.Duration
			at := time.Now()
			for b.Loop() {
				at = at.Add(time.Millisecond)
				if err := w.Until(b.Context(), at); err != nil {
					b.Fatal(err)
				}
				late = append(late, time.Since(at))
			}
			slices.Sort(late)
			b.ReportMetric(float64(late[len(late)/2].Microseconds()), "late-p50-us")
			b.ReportMetric(float64(late[len(late)*99/100].Microseconds()), "late-p99-us")
		})
		_ = w.Close()
	}
}

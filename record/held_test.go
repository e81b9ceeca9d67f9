package record

import (
	"testing"
	"time"
)

// TestHeld pins which streams count as held back, by the times of their events.
func TestHeld(t *testing.T) {
	// comes returns n events, each gap after the one before, or after so many
	// events of no gap a wait.
	comes := func(first time.Duration, n, piece int, gap, wait time.Duration) []time.Duration {
		var at []time.Duration
		now := first
		for i := range n {
			switch {
			case i == 0:
			case i%piece == 0:
				now += wait
			default:
				now += gap
			}
			at = append(at, now)
		}
		return at
	}
	const us, ms = time.Microsecond, time.Millisecond
	tests := []struct {
		name string
		at   []time.Duration
		want bool
	}{
		{"an engine of 10 ms a token", comes(50*ms, 100, 1000, 10*ms, 0), false},
		{"everything at the end", comes(900*ms, 60, 1000, 5*us, 0), true},
		{"two pieces, the first at half time", comes(500*ms, 140, 80, 5*us, 420*ms), true},
		{"five pieces", comes(300*ms, 400, 80, 5*us, 300*ms), true},
		{"four tokens a step", comes(50*ms, 100, 4, 20*us, 20*ms), false},
		{"flat out, early", comes(200*us, 64, 1000, 10*us, 0), false},
		{"flat out with one hiccup", comes(200*us, 64, 32, 10*us, 3*ms), false},
		{"fast: 0.3 ms a token", comes(5*ms, 64, 1000, 300*us, 0), false},
	}
	for _, tt := range tests {
		r := &Record{Outcome: OK, Stream: true, Send: At(0)}
		for _, at := range tt.at {
			r.Events = append(r.Events, Event{At: At(at), Kind: KindContent})
		}
		if held, ok := r.Held(); held != tt.want || !ok {
			t.Errorf("%s: held %v, %v, want %v", tt.name, held, ok, tt.want)
		}
		r.Events = r.Events[:1]
		if _, ok := r.Held(); ok {
			t.Errorf("%s: one event tells", tt.name)
		}
	}
}

// TestHeldBack needs more than a tenth of the streams.
func TestHeldBack(t *testing.T) {
	good := &Record{Outcome: OK, Stream: true, Send: At(0), Events: []Event{{At: At(time.Millisecond), Kind: KindContent}, {At: At(9 * time.Millisecond), Kind: KindContent}}}
	held := &Record{Outcome: OK, Stream: true, Send: At(0), Events: []Event{{At: At(time.Second), Kind: KindContent}, {At: At(time.Second + 1), Kind: KindContent}}}
	failed := &Record{Outcome: Truncated, Stream: true, Send: At(0), Events: held.Events}
	streams := []*Record{held, failed, failed}
	for range 9 {
		streams = append(streams, good)
	}
	if HeldBack(streams) {
		t.Error("one stream of ten is taken for all")
	}
	if !HeldBack(append(streams, held)) {
		t.Error("two streams of eleven are overlooked")
	}
	if HeldBack(nil) {
		t.Error("no stream at all is held back")
	}
}

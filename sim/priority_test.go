package sim

import (
	"testing"
	"time"
)

// TestPriorityOrdersTheQueue: of those that wait, the lowest number goes first, and
// among equals the oldest; a running sequence is not interrupted.
func TestPriorityOrdersTheQueue(t *testing.T) {
	for scheduling, want := range map[string][]int{"": {0, 1, 2, 3, 4, 5}, "fcfs": {0, 1, 2, 3, 4, 5}, "priority": {0, 4, 2, 5, 1, 3}} {
		e, err := NewEngine(Config{MaxSeqs: 1, Scheduling: scheduling})
		if err != nil {
			t.Fatal(err)
		}
		handles := map[Handle]int{}
		for i, priority := range []int64{9, 3, 1, 3, -2, 1} {
			h, err := e.Submit(Request{Prompt: Tokens("a prompt"), MaxTokens: 3, Priority: priority}, time.Duration(i))
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				e.Step(glance)
			}
			handles[h] = i
		}
		var got []int
		for len(got) < len(want) {
			at, ok := e.Next()
			if !ok {
				t.Fatalf("%s: stopped after %v", scheduling, got)
			}
			for _, em := range e.Step(at) {
				if em.Finish != "" {
					got = append(got, handles[em.Request])
				}
			}
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%q: served in the order %v, want %v", scheduling, got, want)
				break
			}
		}
	}
	if _, err := NewEngine(Config{Scheduling: "lifo"}); err == nil {
		t.Error("an unknown order is accepted")
	}
}

package workload

import (
	"math"
	"testing"
)

// TestRepeats holds the share that a plan itself explains against what was asked for.
func TestRepeats(t *testing.T) {
	for _, tt := range []struct {
		yaml string
		want float64
		give float64
	}{
		{"{arrivals: {constant: 10/s}, requests: 500, prompts: {synthetic: 100}, output: 1}", 0, 0},
		{"{arrivals: {constant: 10/s}, requests: 500, prompts: {synthetic: 300}, output: 1, prefix: {tokens: 300, groups: 1}}", .5, .06},
		{"{arrivals: {constant: 10/s}, requests: 500, prompts: {synthetic: 100}, output: 10, sessions: {turns: 8}}", .75, .1},
	} {
		p := plan(t, tt.yaml, 1, "salt")
		if got := p.Repeats(); math.Abs(got-tt.want) > tt.give {
			t.Errorf("%s repeats %.3f of its text, want %.2f ± %.2f", tt.yaml, got, tt.want, tt.give)
		}
	}
}

package contract

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLintWithoutFile: a contract that was made in code has no positions; its
// clauses are known by their ids.
func TestLintWithoutFile(t *testing.T) {
	p99, max := Clause{Need: need(t, "p99(ttft) <= 800ms")}, Clause{ID: "c1", Need: need(t, "max(ttft) <= 800ms")}
	for _, tc := range []struct {
		name string
		c    *Contract
		want []string
	}{
		{"nil", nil, []string{"clauses: nothing is demanded, so nothing can pass"}},
		{"empty", &Contract{}, []string{"clauses: nothing is demanded, so nothing can pass"}},
		{"sound", &Contract{Clauses: []Clause{p99}}, nil},
		{"a senseless confidence", &Contract{Confidence: 0.5, Clauses: []Clause{p99}}, []string{"confidence: a confidence of 50 % decides nothing"}},
		{"a senseless confidence of a clause", &Contract{Clauses: []Clause{{Confidence: 0.2, Need: p99.Need}}}, []string{"c1: a confidence of 20 % decides nothing"}},
		{"the same id twice", &Contract{Clauses: []Clause{p99, {ID: "c1", Need: p99.Need}}}, []string{`c1: the id "c1" is taken`}},
		{"nothing", &Contract{Clauses: []Clause{{ID: "x"}}}, []string{"x: demands nothing that can be judged"}},
		{"need and group", &Contract{Clauses: []Clause{{ID: "x", Need: p99.Need, Any: []Clause{p99}}}}, []string{"x: demands nothing that can be judged"}},
		{"a maximum", &Contract{Clauses: []Clause{max}}, []string{"c1: a max says nothing without a minimum of requests"}},
		{"few in a group", &Contract{Clauses: []Clause{{ID: "g", Any: []Clause{p99, p99}, On: Names{"tiny"}}}}, []string{
			"g.2: demands the same as g.1",
			"g.1: a 97.5 % bound for p99 needs 368 requests, and workload tiny plans 300",
			"g.2: a 97.5 % bound for p99 needs 368 requests, and workload tiny plans 300",
		}},
		{"a slip in a metric", &Contract{Clauses: []Clause{{Need: Need{Quantity: Quantity{"mean", 0, "tpt"}, Compare: "<="}}}}, []string{"c1: nothing in this version measures tpt"}},
	} {
		var got []string
		for _, f := range Lint(tc.c, []Planned{{Workload: "tiny", Requests: 300, Streaming: true, Usage: true}}) {
			got = append(got, f.Path+": "+f.What)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// TestLintAgreesWithEvaluate: what Lint lets pass for its size can be decided:
// a run of that size without a violation passes, one request fewer does not.
func TestLintAgreesWithEvaluate(t *testing.T) {
	for _, text := range []string{"p99(ttft) <= 800ms", "p90(ttft) <= 800ms", "p5(user_rate) >= 1/s", "share(failed) <= 2%", "share(completed) >= 97%", "mean(ttft) <= 800ms"} {
		c := &Contract{Clauses: []Clause{{Need: need(t, text)}}}
		least := 0
		for n := 1; n < 1000 && least == 0; n++ {
			if len(Lint(c, []Planned{{Workload: "chat", Requests: int64(n), Streaming: true, Usage: true}})) == 0 {
				least = n
			}
		}
		for n, want := range map[int]Grade{least: Pass, least - 1: Inconclusive} {
			// Equal values: nothing depends on anything, and nothing is near the limit.
			if v := Evaluate(c, Evidence{Records: newFull(n), Candidate: "candidate"}); v.Grade != want {
				t.Errorf("%s with %d requests, where lint asks for %d: %s (%s), want %s", text, n, least, v.Grade, v.Reason, want)
			}
		}
	}
}

package dimension

import (
	"strings"
	"sync"
	"testing"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

// TestJudgeUsesWhatIsProven asks for schemas and log-probabilities of an endpoint that
// was seen to have them, and of no other; what it does without, it says.
func TestJudgeUsesWhatIsProven(t *testing.T) {
	proven := func(level int) check.Proof { return check.Proof{Standing: check.Proven, Level: level} }
	for _, c := range []struct {
		name   string
		can    check.Capabilities
		schema bool
		top    int
		notes  int
	}{
		{"nothing is known", nil, false, 0, 2},
		{"neither is there", check.Capabilities{check.CapSchema: {Standing: check.Absent}, check.CapLogprobs: {Standing: check.Absent}}, false, 0, 2},
		{"both are", check.Capabilities{check.CapSchema: proven(0), check.CapLogprobs: proven(50)}, true, 20, 0},
		{"too few alternatives", check.Capabilities{check.CapSchema: proven(0), check.CapLogprobs: proven(1)}, true, 0, 1},
	} {
		var mu sync.Mutex
		var asked []*check.Question
		j := model(func(q *check.Question) *check.Answer {
			mu.Lock()
			asked = append(asked, q)
			mu.Unlock()
			return &check.Answer{Outcome: record.OK, Text: "none", Finish: "stop"}
		})
		out, err := check.Run(t.Context(), check.Config{
			Checks: []check.Declared{{Check: Fidelity, Config: fidelity("completeness")}}, Sets: map[string]*corpus.Set{"set.jsonl": set(t, `{"id": "a", "prompt": "p"}`)},
			Variants: []check.Variant{{Name: "baseline", Asker: says(func(string) string { return "An answer." })}},
			Judge:    func(check.Endpoint) (check.Asker, error) { return j, nil },
			Can:      func(check.Endpoint) check.Capabilities { return c.can },
		})
		if err != nil || len(asked) == 0 {
			t.Fatalf("%s: %v, %d questions", c.name, err, len(asked))
		}
		for _, q := range asked {
			if (q.Schema != nil) != c.schema || q.TopLogprobs != c.top {
				t.Errorf("%s: asked with schema %s and %d alternatives; want %v and %d", c.name, q.Schema, q.TopLogprobs, c.schema, c.top)
			}
		}
		notes := 0
		for _, n := range out[0].Notes {
			if strings.HasPrefix(n, "nothing proves") {
				notes++
			}
		}
		if notes != c.notes {
			t.Errorf("%s: notes %q; want %d of what it does without", c.name, out[0].Notes, c.notes)
		}
	}
}

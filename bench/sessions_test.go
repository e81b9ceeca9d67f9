package bench

import (
	"testing"

	"github.com/assay-llm/assay/record"
)

// TestRunOfSessions: later turns carry the answers of the turns before them
// through a whole run, in blocks and for both variants.
func TestRunOfSessions(t *testing.T) {
	s := parseSuite(t, `
seed: 7
variants:
  baseline: {sim: {step: 1ms}}
  candidate: {sim: {step: 1ms, seed: 1}}
workloads:
  talk:
    arrivals: {poisson: 60/s}
    requests: 40
    prompts: {synthetic: 20}
    output: 8
    sessions: {turns: 4, think: 5ms}
`)
	s.Blocks = 2
	r, err := Run(t.Context(), s, Options{Runs: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]record.Record{}
	turns := 0
	for _, rec := range r.Records {
		if rec.Outcome != record.OK {
			t.Fatalf("%s of %s turn %d: %s", rec.Outcome, rec.Session, rec.Turn, rec.Detail)
		}
		key := rec.Variant + rec.Session
		if last, ok := before[key]; ok {
			prompt, _ := rec.Prompt.N()
			said, _ := last.Prompt.N()
			answer, _ := last.Output.N()
			// 20 tokens of question, and 4 of template around it.
			if rec.Turn != last.Turn+1 || prompt != said+answer+24 {
				t.Errorf("%s turn %d has %d tokens of prompt, after %d and an answer of %d", key, rec.Turn, prompt, said, answer)
			}
			turns++
		}
		before[key] = rec
	}
	if turns != 60 || len(r.Records) != 80 {
		t.Errorf("%d later turns of %d requests, want 60 of 80", turns, len(r.Records))
	}
}

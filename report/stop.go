package report

import (
	"fmt"
	"slices"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
)

// stopNotes say which workloads ended before their plan was done, and what that saved;
// and of a run that may stop early, what it took to look.
func stopNotes(m *record.Manifest, v *contract.Verdict) (notes []string) {
	if v != nil && slices.ContainsFunc(v.Clauses, looked) {
		notes = append(notes, "the run may stop early: its looks at the evidence share the chance of a wrong grade, so that it is at most the one that is stated over all of them, and each bound that decides is wider than that of a single look; the intervals in the tables are those of a single one")
	}
	for _, s := range m.Stops {
		if s.Look == 0 {
			notes = append(notes, fmt.Sprintf("%s was not begun: %s", s.Workload, s.Why))
			continue
		}
		note := fmt.Sprintf("%s stopped early, at look %d of %d: %s; %s requests of each variant were measured", s.Workload, s.Look, s.Looks, s.Why, fixed(float64(s.Requests), 0))
		if s.Unsent > 0 {
			note += fmt.Sprintf(", %s of all planned ones were not sent", fixed(float64(s.Unsent), 0))
		}
		if s.Saved > 0 {
			note += fmt.Sprintf(", which saved %s of load", about(s.Saved))
		}
		notes = append(notes, note)
	}
	return notes
}

// looked reports whether a result is that of one of several looks.
func looked(r contract.Result) bool {
	return r.Look != nil || slices.ContainsFunc(r.Results, looked)
}

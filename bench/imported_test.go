package bench

import (
	"strings"
	"testing"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
)

// TestImportedRunsProveNothing takes a run on which every clause passes, and one
// on which they fail, and says that it was imported: whatever its certificate
// claims, nobody certified the client.
func TestImportedRunsProveNothing(t *testing.T) {
	for name, spoil := range map[string]func(*record.Manifest, []record.Record){
		"would pass": func(*record.Manifest, []record.Record) {},
		"no certificate": func(m *record.Manifest, _ []record.Record) {
			m.Client = record.Certificate{}
		},
		"would fail": func(m *record.Manifest, records []record.Record) {
			ofCandidate(records, fail)
			m.Ledger = record.Ledger(records)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, records := soundManifest(t)
			spoil(m, records)
			m.State = StateImported
			r, err := Open(lay(t, m, records, true))
			if err != nil {
				t.Fatal(err)
			}
			if r.Verdict.Grade != contract.Inconclusive {
				t.Errorf("got %v: %s", r.Verdict.Grade, r.Verdict.Reason)
			}
			if all := strings.Join(r.Verdict.Unfit, "; "); !strings.Contains(all, "imported from the file of another tool: nobody certified its client") || strings.Contains(all, "does not know") {
				t.Errorf("unfit because %q", all)
			}
		})
	}
}

package record

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files of the present version anew")

// goldenRecords are what the golden files hold.
func goldenRecords() []Record {
	first := golden()
	first.Shot, first.Case, first.Session, first.Turn, first.Tenant, first.Block = 3, "case-7", "user-1", 2, "team", 1
	first.Labels = map[string]string{"tier": "gold", "": "empty key"}
	first.Values = map[string]float64{"bleu": 0.25}
	first.Server = map[string]time.Duration{"queue": 1500, "prefill": 2_000_000}
	first.Flags = FlagCoalesced | FlagDelayedByCap
	first.Events[2].Emit = first.Events[2].At - 70_000
	failed := Record{
		Shot: 4, Variant: "candidate", Workload: "chat", Phase: WarmUp, Due: At(5 * ms), Admit: At(5 * ms), Send: At(6 * ms), EOF: At(90 * ms),
		Outcome: HTTP5xx, Status: 503, Code: "overloaded", Detail: "queue is full", Events: []Event{{At: At(80 * ms), Lag: unknownLag, Kind: KindError}},
	}
	return []Record{first, failed, {Shot: -1}}
}

// TestGoldenFilesOfEveryVersion reads the files that each version wrote. Those of
// a past version are never written again.
func TestGoldenFilesOfEveryVersion(t *testing.T) {
	want := goldenRecords()
	v1 := filepath.Join("testdata", "v1")
	journal, _ := journalOf(want)
	if *update {
		table := sealed(t, want).get("run/" + parquetName)
		for name, data := range map[string][]byte{"journal/" + journalName: journal, "table/" + parquetName: table} {
			name = filepath.Join(v1, filepath.FromSlash(name))
			if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, data, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"journal", "table"} {
		got, repair, err := ReadAll(OS(), filepath.Join(v1, name))
		if err != nil || repair.Torn() {
			t.Fatal(name, repair, err)
		}
		if diff := diffRecords(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if data, err := os.ReadFile(filepath.Join(v1, "journal", journalName)); err != nil || string(data) != string(journal) {
		t.Errorf("the journal is not written as version 1 any more: it needs a new version (%v)", err)
	}
}

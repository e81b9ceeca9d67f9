package contract

import (
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
)

// TestMadeTrafficHasEveryFate demands that shares which are due at the same
// requests do not hide each other: a test would else pass on evidence that nobody
// wrote.
func TestMadeTrafficHasEveryFate(t *testing.T) {
	traffic := Traffic{Rate: 10, Failed: 0.02, Dropped: 0.02, Hung: 0.01}
	got := map[record.Outcome]int{}
	for _, r := range traffic.records("candidate", 0, 100*time.Second, 0) {
		got[r.Outcome]++
	}
	for outcome, want := range map[record.Outcome]int{record.HTTP5xx: 20, record.ClientOverload: 20, record.TotalTimeout: 10, record.OK: 950} {
		if n := got[outcome]; n < want-2 || n > want+2 {
			t.Errorf("%d requests end as %s, want %d", n, outcome, want)
		}
	}
}

func TestTestFilesAreBounded(t *testing.T) {
	const head = "version: 1\ncontract: preset production-17\ncases: [{name: a, every: 1s, want: {grade: pass}, evidence: "
	for evidence, want := range map[string]string{
		"[{from: 1000h, for: 10s, candidate: {rate: 1/s}}]":                                               "looks more than",
		"[{from: 2562047h, for: 24h, candidate: {rate: 1/s}}]":                                            "looks more than",
		"[{for: 10s, candidate: {rate: 1/s, failed: 60%, hung: 50%}}]":                                    "adds up to 110%",
		"[{from: 20h, for: 10h, candidate: {rate: 1/s}}, {from: 0s, for: 1h, candidate: {rate: 1/s}}]":    "looks more than",
		"[{from: 20h, for: 1h, candidate: {rate: 1/s}}, {from: 0s, for: 24h, baseline: {rate: 1/s}}]":     "",
		"[{for: 10s, candidate: {rate: 1/s, failed: 50%, hung: 50%}}, {for: 1h, candidate: {rate: 1/s}}]": "",
	} {
		var test Test
		err := config.Decode("test.yaml", []byte(head+evidence+"}]\n"), &test)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want a fault with %q", evidence, err, want)
		}
	}
}

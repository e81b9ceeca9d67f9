package report

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
)

// TestReportsSayThatARunStoppedEarly: every form of a report tells, in words.
func TestReportsSayThatARunStoppedEarly(t *testing.T) {
	m, records := usual().build()
	m.Stops = []record.Stop{
		{Workload: "chat", Why: "tpot: it is slower", Look: 2, Looks: 6, Blocks: 4, Planned: 12, Requests: 600, Saved: 80 * time.Second, Unsent: 2400},
		{Workload: "batch", Why: "the contract had failed on chat", Looks: 6, Planned: 12},
	}
	v := contract.Verdict{Clauses: []contract.Result{{Kind: contract.KindAll, Results: []contract.Result{{Kind: contract.KindClause, Look: &contract.Interim{Number: 2, Of: 6}}}}}}
	d := Build(m, records, &v)
	want := []string{
		"the run may stop early",
		"chat stopped early, at look 2 of 6: tpot: it is slower; 600 requests of each variant were measured, 2,400 of all planned ones were not sent, which saved 1m20s of load",
		"batch was not begun: the contract had failed on chat",
	}
	for name, write := range map[string]func(io.Writer) error{
		"text":     func(w io.Writer) error { return Text(w, d, TextOptions{Width: 1000}) },
		"markdown": func(w io.Writer) error { return Markdown(w, d) },
		"html":     func(w io.Writer) error { return HTML(w, d) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(b.String(), text) {
				t.Errorf("%s does not say %q", name, text)
			}
		}
	}
	var b bytes.Buffer
	var read struct{ Run struct{ Stops []record.Stop } }
	if err := JSON(&b, d); err != nil || json.Unmarshal(b.Bytes(), &read) != nil || len(read.Run.Stops) != 2 || read.Run.Stops[0] != m.Stops[0] {
		t.Errorf("JSON has stops %+v (%v)", read.Run.Stops, err)
	}
}

// TestComparisonsWarnOfRunsThatStopped: their intervals are not of a fixed size.
func TestComparisonsWarnOfRunsThatStopped(t *testing.T) {
	m, records := usual().build()
	side := Side{Label: "a", Manifest: m, Records: records, Variant: "baseline"}
	other := side
	other.Variant = "candidate"
	for _, want := range []bool{false, true} {
		if want {
			m.Stops = []record.Stop{{Workload: "chat", Look: 1, Looks: 6}}
		}
		c := Compare(side, other)
		if got := strings.Contains(strings.Join(c.Warnings, "\n"), "stopped early"); got != want {
			t.Errorf("warns %v of a run with %d stops: %q", got, len(m.Stops), c.Warnings)
		}
	}
}

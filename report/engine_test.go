package report

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/assay-llm/assay/record"
)

// TestEngineUnknownIsNotZero: a figure that is not known is missing in every form of the
// report, with its reason, and one that no engine tells is not shown.
func TestEngineUnknownIsNotZero(t *testing.T) {
	m, records := usual().build()
	const short = "a window was too short"
	for i := range m.Engines {
		side := &m.Engines[i]
		for _, name := range []string{"running_mean", "running_max", "kv_usage_ratio_max"} {
			delete(side.Values, name)
		}
		side.Lost = map[string]string{"running": short, "kv_usage_ratio": short}
		delete(side.Values, "prefix_hit_ratio") // nobody tells, and nobody says why
	}
	delete(m.Engines[1].Values, "preemptions")
	m.Engines[1].Lost["preemptions"] = "the counter was reset"
	m.Engines[1].Values["ttft_seconds_mean"] = math.Inf(1)
	d := Build(m, records, nil)
	rows := make(map[string]EngineRow)
	for _, r := range d.Workloads[0].Engine {
		rows[r.Figure] = r
	}
	for _, name := range []string{"running_mean", "running_max", "kv_usage_ratio_max", "prefix_hit_ratio"} {
		if r, ok := rows[name]; ok {
			t.Errorf("%s is shown: %+v", name, r)
		}
	}
	if c := rows["preemptions"].Cells; len(c) != 2 || c[0].Value == nil || *c[0].Value != 0 || c[0].Shown.Value != "0" || c[1].Value != nil || c[1].Shown.Value != missing || len(c[1].Shown.Marks) != 1 {
		t.Errorf("preemptions: %+v", c)
	}
	if c := rows["ttft_seconds_mean"].Cells; c[1].Value != nil || c[1].Shown.Value != missing {
		t.Errorf("an infinite TTFT is shown: %+v", c[1])
	}
	notes := strings.Join(d.Footnotes, "\n")
	for _, want := range []string{"candidate: the counter was reset", "not shown of the engine: running, mean; running, most; KV cache, most. baseline and candidate: " + short} {
		if !strings.Contains(notes, want) {
			t.Errorf("footnotes %q lack %q", notes, want)
		}
	}
}

// TestNoEngineNoTable: a run whose engines told nothing has no word of them.
func TestNoEngineNoTable(t *testing.T) {
	m, records := usual().build()
	for _, sides := range [][]record.EngineSide{nil, {{Variant: "baseline", Workload: "another", Values: map[string]float64{"preemptions": 1}}}, {{Variant: "stranger", Workload: "chat", Values: map[string]float64{"preemptions": 1}}}} {
		m.Engines = sides
		d := Build(m, records, nil)
		var text, page bytes.Buffer
		if err := Text(&text, d, TextOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := HTML(&page, d); err != nil {
			t.Fatal(err)
		}
		if len(d.Workloads[0].Engine) > 0 || strings.Contains(text.String(), "preemptions") || strings.Contains(page.String(), "<h3>Engine</h3>") {
			t.Errorf("%v: engine figures are shown", sides)
		}
	}
}

package report

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
)

// jointRun is judged by one joint clause over four variants.
func jointRun(t testing.TB) *Document {
	t.Helper()
	s := goldenRun()
	s.variants = []string{"baseline", "candidate", "fp8", "int4"}
	m, records := s.build()
	var c contract.Contract
	if err := config.Decode("contract.yaml", []byte(`
version: 1
clauses:
  - id: trade
    joint:
      vetoes:
        - need: share(failed) <= 5%
      objectives:
        - {of: p50(ttft), better: lower}
        - {of: p50(tpot), better: lower, worst: 50ms, best: 5ms}
        - {of: share(failed), better: lower, worst: 5%, best: 0%}
      profile: conservative
      margin: 20%
`), &c); err != nil {
		t.Fatal(err)
	}
	v := contract.Evaluate(&c, contract.Evidence{Records: records, Windows: m.Windows, Baseline: "baseline", Candidate: "candidate"})
	return Build(m, records, &v)
}

// TestGoldenFront pins how a joint clause looks to every reader.
func TestGoldenFront(t *testing.T) {
	d := jointRun(t)
	part := func(all, from, to string) string {
		_, rest, ok := strings.Cut(all, from)
		if !ok {
			t.Fatalf("no %q in the report", from)
		}
		rest, _, _ = strings.Cut(rest, to)
		return from + rest
	}
	text := func(width int) func(io.Writer, *Document) error {
		return func(w io.Writer, d *Document) error { return Text(w, d, TextOptions{Width: width}) }
	}
	golden(t, "front.txt", []byte(part(string(render(t, text(140), d)), "trade (chat)", "client")))
	golden(t, "front-narrow.txt", []byte(part(string(render(t, text(80), d)), "trade (chat)", "client")))
	golden(t, "front.md", []byte(part(string(render(t, Markdown, d)), "### Trade-off", "### Notes")))
	golden(t, "front.html", []byte(part(string(render(t, HTML, d)), "<h2>Trade-off", "<h2>chat")))
	b, err := json.MarshalIndent(d.Verdict.Clauses[0], "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "front.json", b)
}

// TestFrontsDraw: whatever the figures, a plane is drawn without a number that is
// none.
func TestFrontsDraw(t *testing.T) {
	d := jointRun(t)
	j := d.Verdict.Clauses[0].Joint
	for name, spoil := range map[string]func(*contract.Figure){
		"unknown":   func(f *contract.Figure) { *f = contract.Figure{Estimate: nothing("not measured")} },
		"unbounded": func(f *contract.Figure) { f.Lo, f.Hi = nothing("").Lo, nothing("").Hi },
		"beyond":    func(f *contract.Figure) { f.Value = nothing("").Hi },
		"flat":      func(f *contract.Figure) { f.Value, f.Lo, f.Hi = 0, 0, 0 },
	} {
		for i := range j.Points {
			for k := range j.Points[i].Figures {
				spoil(&j.Points[i].Figures[k])
			}
		}
		if page := string(render(t, HTML, d)); strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
			t.Errorf("%s: the page has a number that is none", name)
		}
	}
}

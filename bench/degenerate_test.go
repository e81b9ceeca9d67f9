package bench

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/report"
)

// TestDegenerateRunsEndToEnd runs what has nothing to measure, in virtual time: nothing but
// a sound verdict and numbers in any form of its report.
func TestDegenerateRunsEndToEnd(t *testing.T) {
	for _, tt := range []struct {
		name, engine, workload string
		passes                 bool // may pass
		failed                 int  // of 60 requests
	}{
		{"no request", "{step: 2ms}", "arrivals: {poisson: 0.5/s}, for: 2s, output: 4", false, 0},
		{"all fail", "{step: 2ms, faults: {error_before: 100%}}", "arrivals: {constant: 10/s}, requests: 60, output: 4", false, 60},
		{"no token", "{step: 2ms, faults: {empty: 100%}}", "arrivals: {constant: 10/s}, requests: 60, output: 4", false, 60},
		{"one token", "{step: 2ms}", "arrivals: {constant: 10/s}, requests: 60, output: 1", false, 0},
		{"all alike", "{step: 2ms, prefix_cache: false}", "arrivals: {constant: 10/s}, requests: 60, output: 4, stream: false", true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := bubble(t, tt.engine)
				s := parseSuite(t, fmt.Sprintf(`
seed: 6
variants: {candidate: {url: "http://sim/v1", metrics: off}}
workloads: {w: {%s, prompts: {synthetic: 5}}}
contract:
  clauses:
    - {need: p50(ttft) <= 10s}
    - {need: mean(tpot) <= 10s}
    - {need: p50(e2e) <= 10s}
    - {need: share(failed) <= 50%%}
    - {need: rate(output_tokens) >= 0.001/s}
`, tt.workload))
				r, err := Run(t.Context(), s, o)
				if err != nil {
					t.Fatal(err)
				}
				if r.Verdict.Grade == contract.Pass && !tt.passes {
					t.Errorf("it passes: %s", r.Verdict.Reason)
				}
				if tt.name == "no request" && len(r.Records) > 0 {
					t.Errorf("%d requests", len(r.Records))
				}
				failed := 0
				for _, row := range r.Manifest.Ledger {
					failed += int(row.Failed)
				}
				if failed != tt.failed {
					t.Errorf("%d failed, want %d: %+v", failed, tt.failed, r.Manifest.Ledger)
				}
				for format, write := range map[string]func(io.Writer, *report.Document) error{
					"json": report.JSON, "markdown": report.Markdown, "html": report.HTML, "junit": report.JUnit,
					"text": func(w io.Writer, d *report.Document) error { return report.Text(w, d, report.TextOptions{Width: 120}) },
				} {
					var b bytes.Buffer
					if err := write(&b, r.Report); err != nil {
						t.Errorf("%s: %v", format, err)
					}
					for _, bad := range []string{"NaN", "+Inf", "-Inf", "%!"} {
						if strings.Contains(b.String(), bad) {
							t.Errorf("%s holds %s", format, bad)
						}
					}
				}
			})
		})
	}
}

package report

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

func outcomesOf(pass, fail, open int) Outcomes {
	n := pass + fail + open
	return Outcomes{
		Repeats: n, Pass: pass, Fail: fail, Inconclusive: open,
		PassShare: contract.Figure{Estimate: stat.ExactShare(pass, n, 0.95)}, FailShare: contract.Figure{Estimate: stat.ExactShare(fail, n, 0.95)},
	}
}

// tried is a calibration with every kind of clause.
func tried() *Calibration {
	detects, needed, enough, shift := 1.083, int64(11825), int64(855), 0.0189
	return &Calibration{
		Schema: CalibrationSchema, Assay: "test", Name: "chat", Source: "run", Variant: "baseline", Unit: "session", Units: 1200, Repeats: 200, Seed: 7,
		Grade: contract.Fail, Reason: "the traffic does not support 1 of 4 thresholds; first: 20 of 200 identical candidates pass", Allowed: 0.05,
		Identical: outcomesOf(20, 1, 179), Used: 0.62,
		Planted: []Planted{{"TPOT +5 %", outcomesOf(0, 120, 80)}, {"similarity −2 points", outcomesOf(10, 0, 190)}},
		Clauses: []Calibrated{
			{
				ID: "pace", Need: "p95(tpot) <= baseline * 1.05", Scope: "chat", Grade: contract.Pass, Reason: "190 of 200 identical candidates pass, and 1 of 200 fail",
				Requests: 1935, Allowed: 0.05, Identical: outcomesOf(190, 1, 9), Scale: "ratio", Unit: record.Nanoseconds, Same: 1, Limit: 1.05, MDE: &detects, Needed: &enough,
				Curve: []CurvePoint{{1, outcomesOf(190, 1, 9)}, {1.025, outcomesOf(60, 2, 138)}, {1.05, outcomesOf(4, 5, 191)}, {1.0833, outcomesOf(0, 160, 40)}, {1.1, outcomesOf(0, 200, 0)}},
			},
			{
				ID: "first", Need: "p99(ttft) <= 800ms", Scope: "chat", Grade: contract.Fail, Reason: "20 of 200 identical candidates pass, where 80 % should",
				Requests: 1935, Allowed: 0.05, Identical: outcomesOf(20, 0, 180), Scale: "level", Unit: record.Nanoseconds, Same: 640e6, Limit: 800e6, Needed: &needed,
				Curve: []CurvePoint{{640e6, outcomesOf(20, 0, 180)}, {800e6, outcomesOf(0, 3, 197)}, {1600e6, outcomesOf(0, 100, 100)}},
			},
			{
				ID: "errors", Need: "share(failed) <= baseline + 1 points", Scope: "chat", Grade: contract.Inconclusive, Reason: "150 of 200 identical candidates pass: too few repeats",
				Requests: 1935, Allowed: 0.05, Identical: outcomesOf(160, 0, 40), Scale: "difference", Unit: record.Proportion, Same: 0, Limit: 0.01, MDE: &shift,
				Curve: []CurvePoint{{0, outcomesOf(160, 0, 40)}, {0.01, outcomesOf(3, 3, 194)}, {0.02, outcomesOf(0, 190, 10)}},
			},
			{ID: "either", Grade: contract.Pass, Reason: "all pass", Allowed: 0.025, Identical: outcomesOf(200, 0, 0), Curve: []CurvePoint{}},
		},
		Skipped: []string{"load is not calibrated: half of a run has not the run's rate(requests)"},
		Alike:   []SelfLikeness{{"similarity", "candidate", 1200, 0.93, 0.71, 0.8, 0.95, 32, 0.88, 0.9}},
		Notes:   []string{"each side is a half of the sessions of one run"},
	}
}

// TestCalibrationGolden compares every view of a calibration with its file.
func TestCalibrationGolden(t *testing.T) {
	for name, write := range map[string]func(io.Writer, *Calibration) error{
		"calibration.txt": func(w io.Writer, c *Calibration) error { return CalibrationText(w, c, TextOptions{Width: 120}) },
		"calibration.json": func(w io.Writer, c *Calibration) error {
			return indented(w, func(b io.Writer) error { return CalibrationJSON(b, c) })
		},
		"calibration.html": CalibrationHTML,
	} {
		var got bytes.Buffer
		if err := write(&got, tried()); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s (-want +got; go test ./report -update, then review):\n%s", name, diff)
		}
	}
}

// TestCalibrationOfNothing draws what nothing was seen of, and hostile text.
func TestCalibrationOfNothing(t *testing.T) {
	none := contract.Figure{Estimate: stat.Estimate{Value: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1)}}
	for name, c := range map[string]*Calibration{
		"nothing":   {},
		"no repeat": {Clauses: []Calibrated{{ID: "c1", Identical: Outcomes{PassShare: none, FailShare: none}}}, Identical: Outcomes{PassShare: none, FailShare: none}},
		"hostile":   {Name: "<script>\x1b[31m", Reason: "<b>\x1b]0;x\a", Clauses: []Calibrated{{ID: "<img src=x>\x1b[2J", Reason: "\x1b[2J"}}, Skipped: []string{"<script>\x1b"}},
	} {
		var html, text, doc bytes.Buffer
		for _, err := range []error{CalibrationHTML(&html, c), CalibrationText(&text, c, TextOptions{Width: 60}), CalibrationJSON(&doc, c)} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, bad := range []string{"NaN", "Inf", "<script", "<b>", "<img", "\x1b"} {
			if strings.Contains(html.String(), bad) || strings.Contains(text.String(), bad) && bad[0] != '<' {
				t.Errorf("%s: %q stands in what is shown", name, bad)
			}
		}
	}
}

package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
)

// estimatedRun is a run of a check with numbers of the whole: of both variants, with a
// ratio that the check found, one without a bound above, and one without a number.
func estimatedRun(t *testing.T) *Document {
	t.Helper()
	at := func(value, variant string, change record.Change, x, lo, hi float64) record.Estimate {
		e := record.Estimate{Value: "long." + value, Variant: variant, Change: change, Number: &x, N: 40, Method: "made"}
		for _, c := range record.Confidences() {
			in := record.Interval{Confidence: c, Lo: &lo}
			if hi > 0 {
				in.Hi = &hi
			}
			e.Intervals = append(e.Intervals, in)
		}
		return e
	}
	o := &check.Outcome{
		Check: "long",
		Values: []check.Value{
			{Name: "length", Title: "effective length", Unit: record.TokenUnit, Whole: true, Higher: true},
			{Name: "swing", Title: "swing", Whole: true},
		},
		Signatures: []record.Signature{{Value: "long.length", Estimator: "isotonic", N: 80}, {Value: "long.swing"}},
		Estimates: []record.Estimate{
			at("length", "baseline", "", 8000, 6000, 0), at("length", "candidate", "", 6000, 5000, 7000), at("length", "candidate", record.Ratio, 0.75, 0.7, 0.8),
			{Value: "long.swing", Variant: "candidate", None: "every answer failed"},
		},
	}
	for i := range 40 {
		for _, v := range []string{"baseline", "candidate"} {
			o.Records = append(o.Records, record.Record{Shot: int64(i), Variant: v, Workload: "long", Case: fmt.Sprint(i), Session: fmt.Sprint(i), Outcome: record.OK})
		}
	}
	c := contract.Contract{}
	for _, text := range []string{"estimate(long.length) >= 4000", "estimate(long.length) >= baseline * 0.9", "estimate(long.swing) <= 0.1"} {
		n, err := contract.ParseNeed(text)
		if err != nil {
			t.Fatal(err)
		}
		c.Clauses = append(c.Clauses, contract.Clause{Need: n})
	}
	m := &record.Manifest{
		ID: "20261201T000000-aaaaaa", State: "done", Variants: []record.VariantInfo{{Name: "baseline"}, {Name: "candidate"}},
		Workloads: []record.WorkloadInfo{{Name: "long"}},
	}
	v := contract.Evaluate(&c, contract.Evidence{Records: o.Records, Baseline: "baseline", Candidate: "candidate", Checks: declared([]*check.Outcome{o})})
	return Build(m, o.Records, &v, o)
}

func TestEstimatesAreShownByEveryRenderer(t *testing.T) {
	d := estimatedRun(t)
	var rows []string
	for _, r := range d.Workloads[0].Rows {
		text := r.Name
		for _, c := range r.Cells {
			text += " | " + c.Shown.Value + " " + c.Shown.Interval
		}
		if r.Change != nil {
			text += " | " + r.Change.Shown.Value + " " + r.Change.Shown.Interval
		}
		for _, k := range r.Clauses {
			text += " | " + k.Grade.String()
		}
		rows = append(rows, text)
	}
	want := []string{
		"effective length | 8,000 tok [6,000, –] | 6,000 tok [5,000, 7,000] | −25.0 % [−30.0, −20.0] | pass | fail",
		"swing | –  | –  | –  | inconclusive",
	}
	if fmt.Sprint(rows) != fmt.Sprint(want) {
		t.Errorf("rows\n%q\nwant\n%q", rows, want)
	}
	for name, write := range map[string]func(io.Writer, *Document) error{
		"text":     func(w io.Writer, d *Document) error { return Text(w, d, TextOptions{Width: 130}) },
		"markdown": Markdown, "html": HTML, "json": JSON, "junit": JUnit, "sarif": SARIF,
	} {
		var b bytes.Buffer
		if err := write(&b, d); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"25.0 % below the baseline", "every answer failed"} {
			if !strings.Contains(b.String(), text) {
				t.Errorf("%s does not say %q", name, text)
			}
		}
		for _, never := range []string{"NaN", "Inf", "whose mean"} {
			if strings.Contains(b.String(), never) {
				t.Errorf("%s says %q", name, never)
			}
		}
	}
}

package report

import (
	"strings"
	"testing"

	"github.com/assay-llm/assay/contract"
)

func TestInstrumentPage(t *testing.T) {
	known := func(x float64) *float64 { return &x }
	in := &Instrument{
		Judge: "<script>alert(1)</script>\u202e", Assay: "test", Grade: contract.Fail, Word: "unfit", Reason: "sensitivity is proven to be less", About: []string{"labels.csv"},
		Panels: []Panel{
			{Title: "Errors", About: "shares", Unit: "share", Most: 1, Marks: []Mark{
				{Name: "sensitivity", Value: known(0.5), Lo: known(0.4), Hi: known(0.6), N: 100, Limits: []float64{0.8}, Grade: contract.Fail},
				{Name: "specificity", Value: known(0.9), N: 9, Limits: []float64{0.8}},
				{Name: "attacks", Limits: []float64{0.05}},
				{Name: "beyond", Value: known(2), Lo: known(-3), Hi: known(4), Plain: true},
			}},
			{Title: "Nothing", Most: 1},
			{Title: "No scale", Marks: []Mark{{Name: "x", Value: known(1)}}},
		},
		Findings: []Demanded{{Name: "sensitivity", Asks: "does it see?", Says: "50 of 100", Next: "use another", Grade: contract.Fail}},
	}
	var b strings.Builder
	if err := InstrumentHTML(&b, in); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{
		"UNFIT", "0.500 [0.400, 0.600]", "0.900, no interval", ">not known<", "50 of 100", "&lt;script&gt;",
		`class="dot df" cx="400" cy="20"`, // a half of the way from 230 to 570
		`M366 20H434`,
		`class="dot dd"`, `class="dot d0" cx="570"`, `M230 110H570`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, never := range []string{"<script", "\u202e", "Nothing", "No scale", "NaN", "Inf"} {
		if strings.Contains(page, never) {
			t.Errorf("the page has %q", never)
		}
	}
	if n := strings.Count(page, "<svg"); n != 1 {
		t.Errorf("%d pictures; want 1", n)
	}
	if in.Judge != "<script>alert(1)</script>\u202e" {
		t.Error("the page changed what it was given")
	}
}

package report

import (
	"encoding/json"
	"html"
	"io"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/assay-llm/assay/contract"
)

// read is what a machine reads of the JSON.
type read struct {
	Workloads []struct {
		Rows []struct {
			Name  string
			Unit  string
			Cells []struct {
				Figure contract.Figure
				Shown  Shown
			}
			Change *struct {
				Is     contract.ChangeKind
				Figure contract.Figure
				Shown  Shown
			}
		}
	}
}

// TestReadersAgree checks, on many random runs, that the numbers of the JSON
// are those that text, Markdown and the page print, to the last printed digit:
// 1,000 runs with ASSAY_SLOW=1.
func TestReadersAgree(t *testing.T) {
	runs := 24
	if os.Getenv("ASSAY_SLOW") != "" {
		runs = 1000
	}
	for seed := range runs {
		s := usual()
		s.seed, s.requests, s.blocks = uint64(seed), 40+seed%120*3, 1+seed%4
		s.failing = []float64{0, .01, .3}[seed%3]
		s.slower = 1 + float64(seed%7-3)/20
		s.usage = seed%5 != 0
		d := s.document(t)
		var j read
		if err := json.Unmarshal(render(t, JSON, d), &j); err != nil {
			t.Fatal(err)
		}
		text := string(render(t, func(w io.Writer, d *Document) error { return Text(w, d, TextOptions{Width: 500}) }, d))
		markdown := string(render(t, Markdown, d))
		page := plainText(string(render(t, HTML, d)))
		for _, w := range j.Workloads {
			for _, r := range w.Rows {
				for _, c := range r.Cells {
					// The printed value says what the number says, within its last digit.
					agree(t, c.Shown.Value, c.Figure.Value)
					everywhere(t, r.Name, c.Shown, text, markdown, page)
				}
				if r.Change != nil {
					x := r.Change.Figure.Value
					if r.Change.Is == contract.ChangeRatio {
						x--
					}
					agree(t, r.Change.Shown.Value, x)
					everywhere(t, r.Name, r.Change.Shown, text, markdown, page)
				}
			}
		}
	}
}

func everywhere(t *testing.T, row string, s Shown, outputs ...string) {
	t.Helper()
	want := strings.TrimSpace(s.Value + " " + s.Interval)
	for i, out := range outputs {
		found := false
		for _, l := range strings.Split(out, "\n") {
			found = found || strings.Contains(l, row) && strings.Contains(l, want)
		}
		if !found {
			t.Errorf("%s: %q is not on its line in %s", row, want, []string{"the text", "the Markdown", "the page"}[i])
		}
	}
}

var tag = regexp.MustCompile(`(?s)<sup>.*?</sup>|<style>.*?</style>|<[^>]*>`)

// plainText is the page as eyes read it, a table row a line.
func plainText(page string) string {
	page = strings.ReplaceAll(page, "</td>", " </td>")
	return html.UnescapeString(tag.ReplaceAllString(page, ""))
}

var units = map[string]float64{"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "%": .01, "pt": .01, "tok/s": 1, "req/s": 1, "tok": 1, "req": 1, "": 1}

// agree parses a printed number back.
func agree(t *testing.T, printed string, want float64) {
	t.Helper()
	switch printed {
	case missing:
		if !math.IsNaN(want) {
			t.Errorf("%v is printed as missing", want)
		}
		return
	case infinity:
		if !math.IsInf(want, 1) {
			t.Errorf("%v is printed as infinite", want)
		}
		return
	case "−" + infinity:
		if !math.IsInf(want, -1) {
			t.Errorf("%v is printed as −infinite", want)
		}
		return
	}
	number, unit, _ := strings.Cut(printed, " ")
	by, known := units[unit]
	if !known {
		t.Fatalf("%q has an unknown unit", printed)
	}
	number = strings.NewReplacer(",", "", "−", "-", "+", "").Replace(number)
	var got float64
	if err := json.Unmarshal([]byte(number), &got); err != nil {
		t.Fatalf("%q is no number: %v", printed, err)
	}
	_, decimals, _ := strings.Cut(number, ".")
	half := .5000001 * math.Pow10(-len(decimals)) * by
	if math.Abs(got*by-want) > half+1e-12*math.Abs(want) {
		t.Errorf("%q is printed for %v", printed, want)
	}
}

package report

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/stat"
)

// searched is what a search found that ended with a bracket.
func searched() *Capacity {
	figure := func(v, lo, hi float64) contract.Figure {
		return contract.Figure{Estimate: stat.Estimate{Value: v, Lo: lo, Hi: hi, Confidence: 0.95, N: 500, Effective: 400, Method: "made"}}
	}
	probe := func(rate float64, outcome, leaning, reason string, good, p50, p99, growth float64) Probe {
		share := good / rate
		p := Probe{
			Run: "probes/" + plain(rate, 4), Rate: rate, For: time.Minute, Outcome: outcome, Leaning: leaning, Reason: reason,
			WarmUp: 2 * time.Second, Steady: outcome == Holds, Requests: int(58 * rate), Good: &good, GoodShare: &share,
			Growth:  figure(growth, growth-.2, growth+.2),
			TTFTP50: figure(p50, p50*.9, p50*1.1), TTFTP99: figure(p99, p99*.8, math.Inf(1)),
			Completed: figure(good, good-.1, good+.1), Tokens: figure(good*64, good*60, good*68),
		}
		if outcome == Holds {
			proven := rate - .2
			p.Proven = &proven
		}
		return p
	}
	lo, hi := 8.8, 11.3
	return &Capacity{
		Schema: CapacitySchema, ID: "20260101T000000.000-000000", Assay: "test", Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Elapsed: 11 * time.Minute, State: "done", URL: "http://127.0.0.1:8000/v1", Model: "llama", Seed: 7,
		Needs: []string{"p99(ttft) <= 800ms", "share(failed) <= 1%"}, Confidence: .95, ProbeConfidence: .999,
		Lo: &lo, Hi: &hi, Grade: "pass", Reason: "the capacity is between 8.8/s and 11.3/s, at 95 % confidence", Ended: "all 5 probes are made",
		Probes: []Probe{
			probe(4, Holds, "pass", "all 2 clauses pass; requests in flight rise by 0.2 a second at most", 4, 45e6, 120e6, 0),
			probe(8, Holds, "pass", "all 2 clauses pass; requests in flight rise by 0.2 a second at most", 8, 52e6, 210e6, .01),
			probe(16, Fails, "fail", "the queue grows: requests in flight rise by 4.9 a second, by 4.7 at least", .2, 22e9, math.Inf(1), 4.9),
			probe(11.3, Fails, "fail", "c1: p99 of TTFT is 3.2 s (limit 800 ms): at 99.9 % confidence at least 1.9 s", 5, 900e6, 3.2e9, .3),
			probe(9, Holds, "pass", "all 2 clauses pass; requests in flight rise by 0.2 a second at most", 9, 60e6, 400e6, .02),
		},
	}
}

// TestCapacityGolden compares every view of a search with its file.
func TestCapacityGolden(t *testing.T) {
	for name, write := range map[string]func(io.Writer, *Capacity) error{
		"capacity.txt": func(w io.Writer, c *Capacity) error { return CapacityText(w, c, TextOptions{Width: 110}) },
		"capacity.json": func(w io.Writer, c *Capacity) error {
			return indented(w, func(b io.Writer) error { return CapacityJSON(b, c) })
		},
		"capacity.html": CapacityHTML,
	} {
		got := render(t, write, searched())
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-want +got; go test ./report -update, then review):\n%s", name, diff)
		}
	}
}

// TestCapacityOfNothing draws searches that found nothing, and hostile text.
func TestCapacityOfNothing(t *testing.T) {
	nothing := math.NaN()
	none := contract.Figure{Estimate: stat.Estimate{Value: nothing, Lo: math.Inf(-1), Hi: math.Inf(1)}}
	for name, c := range map[string]*Capacity{
		"no probe":  {},
		"no figure": {Probes: []Probe{{Rate: 1, Outcome: Undecided, Growth: none, TTFTP50: none, TTFTP99: none, Completed: none, Tokens: none}}},
		"one point": {Sweep: true, Probes: []Probe{{Users: 4, Outcome: Measured, Growth: none, TTFTP50: none, TTFTP99: none, Completed: none, Tokens: none}}},
		"hostile":   {URL: "<script>\x1b[31m", Reason: "<b>\x1b]0;x\a", Probes: []Probe{{Rate: math.SmallestNonzeroFloat64, Run: "javascript:alert(1)", Reason: "<img src=x>\n\x1b[2J"}}},
	} {
		var html, text, doc bytes.Buffer
		for _, err := range []error{CapacityHTML(&html, c), CapacityText(&text, c, TextOptions{Width: 40}), CapacityJSON(&doc, c)} {
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

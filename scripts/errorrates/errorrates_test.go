package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A reduced version of the table: our tests keep their rates, and the naive
// rules beside them do not, so the simulation can tell.
func TestReducedTable(t *testing.T) {
	results := simulate(settings{runs: 48, seed: 7, sizes: []int{100, 300}})
	for _, v := range violations(results) {
		t.Error(v)
	}
	high := map[string]bool{}
	for _, r := range results {
		fail, pass := r.alarms()
		for _, ks := range [][]int{fail, pass} {
			for _, k := range ks {
				if lo, _ := band(k, r.runs); lo > nominal {
					high[r.method.name] = true
				}
			}
		}
	}
	for _, g := range groups {
		for _, m := range g.methods {
			if m.naive && m.peeks && m.every == 0 && !high[m.name] {
				t.Errorf("%s is not above 5 %% anywhere; the simulation has no teeth", m.name)
			}
		}
	}
}

func TestReducedChecks(t *testing.T) {
	for _, c := range checks(32, 7) {
		if w := c.wrong(); w != "" && !c.naive {
			t.Error(w)
		}
	}
}

// The page in docs has all that the program would write now, numbers apart.
func TestPageIsOfThisProgram(t *testing.T) {
	data, err := os.ReadFile("../../docs/error-rates.md")
	if err != nil {
		t.Fatal(err)
	}
	now := page(blank(settings{runs: 1, sizes: []int{100, 300, 1000, 3000, 10_000}}), checks(1, 1), 1, 1)
	if diff := cmp.Diff(skeleton(now), skeleton(string(data))); diff != "" {
		t.Errorf("docs/error-rates.md is of another version of this program; write it anew (-o docs/error-rates.md):\n%s", diff)
	}
}

// skeleton keeps headings and the first cell of each row.
func skeleton(page string) (out []string) {
	for line := range strings.Lines(page) {
		switch {
		case strings.HasPrefix(line, "#"):
			out = append(out, strings.TrimSpace(line))
		case strings.HasPrefix(line, "|"):
			out = append(out, strings.TrimSpace(strings.Split(line, "|")[1]))
		}
	}
	return out
}

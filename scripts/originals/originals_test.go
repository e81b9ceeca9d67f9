package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPublishedFormsFail plays everything with few simulations: what is published
// fails on its input, ours does not, and the power is as published.
func TestPublishedFormsFail(t *testing.T) {
	runs := 25
	if os.Getenv("ASSAY_SLOW") != "" {
		runs = 200
	}
	text, bad := page(runs, 7)
	for _, b := range bad {
		t.Error(b)
	}
	data, err := os.ReadFile("../../docs/originals.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(skeleton(text), skeleton(string(data))); diff != "" {
		t.Errorf("docs/originals.md is of another version of this program; write it anew (-o docs/originals.md):\n%s", diff)
	}
}

// skeleton keeps headings and the first cell of each row.
func skeleton(page string) (out []string) {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "#") {
			out = append(out, strings.TrimSpace(line))
		} else if cells := strings.Split(line, "|"); len(cells) > 2 {
			out = append(out, strings.TrimSpace(cells[1]))
		}
	}
	return out
}

func TestWrongFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-runs", "0"}, {"more"}, {"-what"}} {
		var out, errs strings.Builder
		if code := run(args, &out, &errs); code != 2 || errs.Len() == 0 || out.Len() > 0 {
			t.Errorf("%q: status %d, %s", args, code, &errs)
		}
	}
}

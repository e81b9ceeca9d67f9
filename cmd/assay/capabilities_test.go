package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/assay-llm/assay/capability"
)

// TestCapabilities probes the simulated engine, which has few of them, and does it
// once: the second report is the kept one.
func TestCapabilities(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	args := []string{"doctor", "--url", simulated(t), "--model", "any"}
	var out, notes bytes.Buffer
	if got := run(t.Context(), append(args, "--json"), nil, &out, &notes, os.Getenv); got != exitPass {
		t.Fatalf("doctor exits with %d:\n%s%s", got, &out, &notes)
	}
	page, err := os.ReadFile("../../docs/format/json.md")
	if err != nil {
		t.Fatal(err)
	}
	var top map[string]any
	if err := json.Unmarshal(out.Bytes(), &top); err != nil || top["schema"] != capability.Schema {
		t.Fatalf("%v: %.200s", err, &out)
	}
	undocumented(t, capability.Schema, top, string(page))
	if !strings.Contains(notes.String(), "assay: looking at choices\n") {
		t.Errorf("progress:\n%s", &notes)
	}

	var text, again bytes.Buffer
	if got := run(t.Context(), args, nil, &text, &again, os.Getenv); got != exitPass || again.Len() > 0 {
		t.Errorf("the second time doctor exits with %d and says %q; want 0 and nothing, since the report is kept", got, &again)
	}
	for _, want := range []string{"\nabsent   logprobs ", "\nproven   greedy ", " requests, "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("text has no %q:\n%s", want, &text)
		}
	}
}

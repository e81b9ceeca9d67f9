package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/assay-llm/assay/audit"
	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/sim"
)

// simulated serves a quick simulated engine until the test ends.
func simulated(t *testing.T) string {
	t.Helper()
	s, err := sim.NewServer(sim.Config{Step: sim.Step{Base: 50e3}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- bench.ServeSim(t.Context(), l, s) }()
	t.Cleanup(func() { <-ended })
	return fmt.Sprintf("http://%s/v1", l.Addr())
}

// TestAudit audits the simulated engine, which cannot do tasks: that is never a
// pass. Every field that is printed must be documented.
func TestAudit(t *testing.T) {
	t.Parallel()
	args := []string{"audit", "--url", simulated(t), "--model", "any", "--budget", "quick", "--context", "512", "--load", "2", "--seed", "7"}
	var out, notes bytes.Buffer
	if got := run(t.Context(), append(args, "--json"), nil, &out, &notes, os.Getenv); got != exitInconclusive {
		t.Fatalf("audit exits with %d:\n%s%s", got, &out, &notes)
	}
	page, err := os.ReadFile("../../docs/format/json.md")
	if err != nil {
		t.Fatal(err)
	}
	var top map[string]any
	if err := json.Unmarshal(out.Bytes(), &top); err != nil {
		t.Fatalf("%v: %.200s", err, &out)
	}
	if top["schema"] != audit.Schema || !strings.Contains(string(page), "`"+audit.Schema+"`") {
		t.Errorf("schema %v", top["schema"])
	}
	undocumented(t, audit.Schema, top, string(page))
	if !strings.Contains(notes.String(), "assay: at the pace of the first answers up to about ") || !strings.Contains(notes.String(), "assay: task, from request ") {
		t.Errorf("progress:\n%s", &notes)
	}
}

// TestAuditTextShowsWhatFailed holds that a server which answers every prompt with
// the same text is caught, by a text with evidence.
func TestAuditTextShowsWhatFailed(t *testing.T) {
	t.Parallel()
	const stream = `data: {"model":"m","choices":[{"index":0,"delta":{"content":"Of course! This is a long and friendly answer to everything."},"finish_reason":"stop"}]}` + "\n\n" +
		`data: {"model":"m","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":12,"total_tokens":22}}` + "\n\ndata: [DONE]\n\n"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte(`{"object":"list","data":[]}`))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(stream))
	}))
	t.Cleanup(s.Close)
	var out, notes bytes.Buffer
	args := []string{"audit", "--url", s.URL + "/v1", "--model", "m", "--budget", "quick", "--context", "512", "--load", "2", "--quiet"}
	if got := run(t.Context(), args, nil, &out, &notes, os.Getenv); got != exitFail {
		t.Fatalf("audit exits with %d:\n%s%s", got, &out, &notes)
	}
	for _, want := range []string{"FAIL: the endpoint ", "\nfail          caches answers: ", "! equal answers at temperature 1: ", "next: ", "! growth of prompt_tokens: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
	if notes.Len() > 0 {
		t.Errorf("--quiet says %q", &notes)
	}
}

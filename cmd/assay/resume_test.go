package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/sim"
)

const resumedSuite = `
version: 1
name: resumed
seed: 3
variants:
  candidate: {url: %s}
workloads:
  open:
    arrivals: {constant: 60/s}
    for: 2s
    prompts: {synthetic: 10}
    output: 8
    warmup: {requests: 2}
  closed:
    arrivals: {concurrency: 3, stagger: 10ms}
    requests: 60
    prompts: {synthetic: 10}
    output: 8
contract:
  clauses:
    - {id: quick, need: p50(ttft) <= 20s}
    - {id: slow, need: p50(ttft) <= 1us}
`

// resumedServer serves an engine for a test, and returns its address.
func resumedServer(t *testing.T) string {
	t.Helper()
	ctx, stop := context.WithCancelCause(t.Context())
	out, in := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"sim", "--listen", "127.0.0.1:0", "--engine", "{step: 2ms}"}, nil, in, io.Discard, os.Getenv)
	}()
	t.Cleanup(func() {
		stop(errInterrupted)
		<-code
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(url)
}

// ledger asks a simulated engine how often it saw each request.
func ledger(t *testing.T, url string) map[string]int {
	t.Helper()
	answer, err := http.Get(strings.TrimSuffix(url, "/v1") + "/ledger")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	seen := make(map[string]int)
	for d := json.NewDecoder(answer.Body); ; {
		var e sim.Entry
		if err := d.Decode(&e); err == io.EOF {
			return seen
		} else if err != nil {
			t.Fatal(err)
		}
		seen[e.ID]++
	}
}

// TestKilledProcessIsResumed kills assay run with SIGKILL, resumes it, and holds every
// planned request against the server's own account.
func TestKilledProcessIsResumed(t *testing.T) {
	t.Parallel()
	const planned = 180
	for _, part := range []int{10, 50, 90} {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			url, dir := resumedServer(t), t.TempDir()
			suite := filepath.Join(dir, "suite.yaml")
			if err := os.WriteFile(suite, fmt.Appendf(nil, resumedSuite, url), 0o600); err != nil {
				t.Fatal(err)
			}
			killed := exec.CommandContext(t.Context(), "assay", "run", suite, "--runs", dir+"/runs", "--quiet")
			if err := killed.Start(); err != nil {
				t.Fatal(err)
			}
			for len(ledger(t, url)) < planned*part/100 {
				<-time.After(10 * time.Millisecond)
			}
			_ = killed.Process.Kill()
			_ = killed.Wait()
			runs, err := filepath.Glob(dir + "/runs/*")
			if err != nil || len(runs) != 1 {
				t.Fatal(runs, err)
			}
			var out, errs bytes.Buffer
			code := run(t.Context(), []string{"run", "--resume", runs[0], "--quiet"}, nil, &out, &errs, os.Getenv)
			if code != exitFail && code != exitInconclusive {
				t.Errorf("resuming exits with %d:\n%s\n%s", code, &out, &errs)
			}
			if text := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(text, "the run was killed after") || !strings.Contains(text, "and resumed") {
				t.Errorf("the report does not state the gap:\n%s", &out)
			}
			checkOnce(t, runs[0], ledger(t, url), planned)
			r, err := bench.Open(runs[0])
			if err != nil {
				t.Fatal(err)
			}
			// A busy machine makes a client unfit or requests depend on each other, which
			// is inconclusive; the grades themselves are held in virtual time.
			if c := r.Verdict.Clauses; c[0].Grade == contract.Fail || c[1].Grade == contract.Pass {
				t.Errorf("grades %s (%s) and %s (%s), want pass and fail", c[0].Grade, c[0].Reason, c[1].Grade, c[1].Reason)
			}
			errs.Reset()
			if code := run(t.Context(), []string{"run", "--resume", runs[0]}, nil, &out, &errs, os.Getenv); code != exitUsage || !strings.Contains(errs.String(), "the run is complete") {
				t.Errorf("resuming a complete run exits with %d: %s", code, &errs)
			}
		})
	}
}

// checkOnce wants each planned request once, and only those that are marked sent twice.
func checkOnce(t *testing.T, dir string, served map[string]int, planned int) {
	t.Helper()
	records, torn, err := record.ReadAll(record.OS(), dir)
	if err != nil || torn.Torn() {
		t.Fatal(torn, err)
	}
	final, _ := record.Final(records)
	measured, marked := make(map[string]bool), 0
	for i := range final {
		r := &final[i]
		id := llm.RequestID(r)
		if r.Phase != record.Measured {
			continue
		}
		if measured[id] {
			t.Errorf("%s is there twice", id)
		}
		measured[id] = true
		again := r.Flags&record.FlagReissued != 0
		if again {
			marked++
		}
		if n := served[id]; n < 1 || n > 1 && !again || n > 2 {
			t.Errorf("%s was served %d times, marked %v", id, n, again)
		}
	}
	if len(measured) != planned {
		t.Errorf("%d of %d planned requests have a record", len(measured), planned)
	}
	for id := range served {
		if !measured[id] && !strings.HasPrefix(id, "warm-up/") && !strings.HasPrefix(id, "sim-") {
			t.Errorf("the server saw %s, of which there is no record", id)
		}
	}
	t.Logf("%d requests, %d marked as sent again", len(measured), marked)
}

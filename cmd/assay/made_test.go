package main

import (
	"path/filepath"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/record"
)

// plantCeiling keeps a ceiling of this program, as if doctor had just measured it:
// ceiling REQUESTS-PER-SECOND EVENTS PROMPT-BYTES.
func plantCeiling(ts *testscript.TestScript, _ bool, args []string) {
	var n [3]int
	for i := range n {
		var err error
		n[i], err = strconv.Atoi(args[i])
		ts.Check(err)
	}
	shape := bench.DefaultShape()
	shape.Events, shape.PromptBytes, shape.Gap = n[1], n[2], min(250*time.Millisecond/time.Duration(n[1]), 20*time.Millisecond)
	rate := float64(n[0])
	c := &bench.Calibrator{Cache: filepath.Join(ts.Getenv("XDG_CACHE_HOME"), "assay")}
	ts.Check(c.Keep(&record.Ceiling{
		Shape: shape, Requests: rate, Low: rate, High: rate, Events: rate * float64(n[1]), Streams: 10, EndedBy: "the client sent late",
		Repeats: 1, At: time.Now().UTC(), Took: time.Second, Cores: 2, Client: 0.5, Server: 0.4,
		Overhead: &record.Overhead{Rate: rate / 2, TTFTP50: 200 * time.Microsecond, TTFTP99: 900 * time.Microsecond, CPU: time.Millisecond},
	}))
}

// made writes the directory of a run that ended well, with a fit client: made
// DIR TTFT. It has 400 requests of one variant, all with that TTFT, and a
// contract that wants p95(ttft) <= 100ms.
func made(ts *testscript.TestScript, _ bool, args []string) {
	ttft, err := time.ParseDuration(args[1])
	ts.Check(err)
	dir := ts.MkAbs(args[0])
	var records []record.Record
	for i := range 400 {
		due := time.Duration(i) * 20 * time.Millisecond
		first := due + ttft + time.Duration(i*7919%1000)*time.Microsecond // spread over a millisecond
		records = append(records, record.Record{
			Shot: int64(i), Variant: "candidate", Workload: "chat", Stream: true, MaxTokens: 2, Reused: true,
			Due: record.At(due), Admit: record.At(due), Send: record.At(due), Sent: record.At(due), Header: record.At(first), EOF: record.At(first + 10*time.Millisecond),
			Outcome: record.OK, Status: 200, Finish: "length", Prompt: record.Tokens(10), Output: record.Tokens(2),
			Events: []record.Event{
				{At: record.At(first), Kind: record.KindContent, Bytes: 4, Lag: -1},
				{At: record.At(first + 10*time.Millisecond), Kind: record.KindContent, Bytes: 4, Lag: -1},
			},
		})
	}
	w, err := record.Create(record.OS(), dir)
	ts.Check(err)
	for i := range records {
		ts.Check(w.Append(&records[i]))
	}
	ts.Check(w.Seal())
	ts.Check(record.WriteManifest(record.OS(), dir, &record.Manifest{
		Schema: record.ManifestSchema, ID: args[0], Name: "made", State: "done", Start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Elapsed: 8 * time.Second,
		Suite: `version: 1
name: made
variants: {candidate: {url: "http://127.0.0.1:8000/v1", model: m}}
workloads: {chat: {arrivals: {constant: 50/s}, requests: 400, prompts: {synthetic: 10}, output: 2}}
contract: {clauses: [{id: first, need: p95(ttft) <= 100ms}]}
`,
		Variants:  []record.VariantInfo{{Name: "candidate", URL: "http://127.0.0.1:8000/v1", Model: "m", API: "chat"}},
		Workloads: []record.WorkloadInfo{{Name: "chat", Arrivals: "constant 50/s", Open: true, Planned: 400, Rate: 50}},
		Windows:   []record.Window{{Variant: "candidate", Workload: "chat", Start: record.At(0), End: record.At(8 * time.Second)}},
		Client:    record.Certificate{Fit: true, Seconds: []record.ClientSecond{{CPU: .1, SendLagP99: time.Millisecond}}},
		Ledger:    record.Ledger(records),
	}))
}

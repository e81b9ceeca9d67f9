package load_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/load"
	"github.com/assay-llm/assay/pace"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/sim"
	"github.com/assay-llm/assay/workload"
)

// faults is an engine that does every wrong thing that it can to one request in
// a hundred each; "huge" costs 17 MiB a time and is rarer.
const faults = `{
  step: 1ms, max_seqs: 1024, seed: %d, prefix_cache: false,
  faults: {error_before: 1%%, busy: 1%%, rate_limit: 1%%, refuse: 1%%, reset_before: 1%%, slow: 1%%, garbage: 1%%,
    error_inside: 1%%, reset: 1%%, cut: 1%%, stall: 1%%, truncate: 1%%, no_done: 1%%, malformed: 1%%, huge: 0.002%%,
    empty: 1%%, wrong_usage: 1%%, for: 90s}
}`

// expected says how the client must see each end that the server wrote down.
// Garbage has a body of HTML; a stream of it holds no event at all.
func expected(e *sim.Entry) []record.Outcome {
	switch e.Fault {
	case sim.FaultError, sim.FaultBusy:
		return []record.Outcome{record.HTTP5xx}
	case sim.FaultRate, sim.FaultRefuse:
		return []record.Outcome{record.HTTP4xx}
	case sim.FaultResetEarly:
		return []record.Outcome{record.ResetBefore}
	case sim.FaultGarbage:
		return []record.Outcome{record.Malformed, record.Truncated}
	case sim.FaultErrorInside:
		return []record.Outcome{record.ErrorEvent}
	case sim.FaultReset, sim.FaultCut:
		return []record.Outcome{record.ResetMid, record.ResetBefore, record.Truncated}
	case sim.FaultTruncate:
		if !e.Stream { // whole JSON is a whole answer, with or without a finish_reason
			return []record.Outcome{record.OK}
		}
		return []record.Outcome{record.Truncated}
	case sim.FaultMalformed:
		return []record.Outcome{record.Malformed}
	case sim.FaultHuge:
		if !e.Stream { // large, but below the limit of a whole body
			return []record.Outcome{record.OK}
		}
		return []record.Outcome{record.EventTooLarge}
	case sim.FaultEmpty:
		return []record.Outcome{record.EmptyOutput}
	case sim.FaultSlow, sim.FaultStall: // 90 s of silence against a patience of 60 s
		return []record.Outcome{record.StallTimeout}
	case sim.FaultUsage: // a usage that contradicts the text cannot be told from a wrong length
		return []record.Outcome{record.OK, record.LengthMismatch}
	}
	return []record.Outcome{record.OK}
}

// TestLedgerReconciles sends requests to a faulty engine and reconciles the
// records with the server's own ledger: every request that the plan offered is
// in both exactly once, and ends in both alike.
func TestLedgerReconciles(t *testing.T) {
	seeds, requests := 2, 4000
	switch os.Getenv("ASSAY_SLOW") {
	case "":
	case "full": // two million requests take some minutes
		seeds, requests = 20, 100_000
	default:
		seeds, requests = 20, 20_000
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { reconcile(t, seed, requests) })
		})
	}
}

func reconcile(t *testing.T, seed, requests int) {
	server, network, stop := engine(t, fmt.Sprintf(faults, seed))
	client, err := llm.NewClient(llm.Target{
		URL: "http://sim:80/v1", Dial: network.DialContext, Stall: time.Minute, Timeout: 5 * time.Minute, KeepText: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	recs := fly(t, client, fmt.Sprintf(`{arrivals: {poisson: 400/s}, requests: %d, prompts: {synthetic: 8}, output: {uniform: {min: 2, max: 12}}, stream: %t}`, requests, seed%4 != 3), uint64(seed))
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	stop()

	// The client may send twice when a kept connection breaks before any byte of
	// the answer, and then says so.
	entries, sends := make(map[string]*sim.Entry), make(map[string]int)
	for _, e := range server.Ledger() {
		entries[e.ID] = &e
		sends[e.ID]++
	}
	if len(entries) != requests || len(recs) != requests {
		t.Errorf("%d requests offered, %d in the server's ledger, %d records", requests, len(entries), len(recs))
	}
	counts := map[record.Outcome]int{}
	for _, r := range recs {
		counts[r.Outcome]++
		e := entries[llm.RequestID(r)]
		if e == nil {
			t.Fatalf("the server never saw %s (%s)", llm.RequestID(r), r.Outcome)
		}
		if retried := r.Flags&record.FlagRetried != 0; sends[e.ID] != 1 && !(retried && sends[e.ID] == 2 && e.Fault == sim.FaultResetEarly) {
			t.Errorf("the server saw %s %d times; retried: %v", e.ID, sends[e.ID], retried)
		}
		if !agrees(r, e) {
			t.Errorf("%s: the server says %+v; the record says %s status %d output %v bytes %d: %s", e.ID, *e, r.Outcome, r.Status, r.Output, r.OutputBytes, r.Detail)
		}
	}
	rows := record.Ledger(values(recs))
	if len(rows) != 1 {
		t.Fatalf("%d ledger rows", len(rows))
	}
	if l := rows[0]; l.Offered != int64(requests) || l.Offered != l.Completed+l.Failed+l.Dropped || l.Dropped != 0 {
		t.Errorf("offered %d = completed %d + failed %d + dropped %d does not hold", l.Offered, l.Completed, l.Failed, l.Dropped)
	}
	t.Logf("offered %d = completed %d + failed %d + dropped %d; %v", rows[0].Offered, rows[0].Completed, rows[0].Failed, rows[0].Dropped, counts)
}

func agrees(r *record.Record, e *sim.Entry) bool {
	ok := false
	for _, want := range expected(e) {
		ok = ok || r.Outcome == want
	}
	if r.Outcome != record.OK {
		return ok
	}
	if n, known := r.Output.N(); known && e.Fault != sim.FaultUsage && n != e.Output {
		return false
	}
	return ok && r.OutputBytes == e.TextBytes
}

func values(recs []*record.Record) []record.Record {
	out := make([]record.Record, len(recs))
	for i, r := range recs {
		out[i] = *r
	}
	return out
}

// engine serves a simulated engine on an in-memory network of the test's bubble.
func engine(t *testing.T, yaml string) (*sim.Server, *sim.Network, func()) {
	t.Helper()
	var c sim.Config
	if err := config.Decode("sim.yaml", []byte(yaml), &c); err != nil {
		t.Fatal(err)
	}
	return engineBehind(t, c, func(h http.Handler) http.Handler { return h })
}

// engineBehind serves a simulated engine behind another handler.
func engineBehind(t *testing.T, c sim.Config, wrap func(http.Handler) http.Handler) (*sim.Server, *sim.Network, func()) {
	t.Helper()
	server, err := sim.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	server.Waiter = pace.Plain()
	network := sim.NewNetwork()
	l, err := network.Listen("sim:80")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: wrap(server)}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Run(ctx) })
	wg.Go(func() { _ = web.Serve(l) })
	return server, network, func() {
		cancel()
		_ = web.Close()
		wg.Wait()
	}
}

// fly sends a workload in virtual time and returns its records.
func fly(t *testing.T, client *llm.Client, yaml string, seed uint64) []*record.Record {
	t.Helper()
	var spec workload.Spec
	if err := config.Decode("workload.yaml", []byte(yaml), &spec); err != nil {
		t.Fatal(err)
	}
	plan, err := workload.New("w", spec, nil, seed, "salt")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var recs []*record.Record
	d, err := load.New(load.Config{
		Plan: plan, Variant: "v", Client: client, Epoch: time.Now(), Virtual: true, Drain: 10 * time.Minute, Cap: 1 << 20,
		Sink: func(r *record.Record, _ llm.Answer) error {
			mu.Lock()
			defer mu.Unlock()
			recs = append(recs, r)
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Block(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	return recs
}

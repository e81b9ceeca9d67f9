package bench

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"time"

	"github.com/assay-llm/assay/record"
)

// mostJudging is what judging a run may take at its peak for each event of its streams, all
// records in memory included.
const mostJudging = 64. // bytes

// TestJudgingIsBounded judges a run of long streams from its directory, and holds the peak of
// live memory for each token event. ASSAY_SLOW=full takes 100,000 requests of 500 events.
func TestJudgingIsBounded(t *testing.T) {
	requests := 5000
	switch os.Getenv("ASSAY_SLOW") {
	case "":
		t.Skip("judges two and a half million events: set ASSAY_SLOW=1")
	case "full":
		requests = 100_000
	}
	const events = 500
	dir := longRun(t, requests, events)
	live := func() uint64 { // what the last collection found reachable
		runtime.GC()
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	before := live()
	over, peak := make(chan struct{}), uint64(0)
	var watch sync.WaitGroup
	watch.Go(func() {
		for tick := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			peak = max(peak, live())
		}
	})
	start := time.Now()
	r, err := Open(dir)
	close(over)
	watch.Wait()
	if err != nil {
		t.Fatal(err)
	}
	each := float64(peak-before) / float64(requests*events)
	t.Logf("%d requests of %d events, judged in %v: %.1f MiB live at most, %.1f bytes an event", requests, events, time.Since(start).Round(time.Millisecond), float64(peak-before)/(1<<20), each)
	if each > 1.1*mostJudging { // a collection finds garbage of its own time reachable
		t.Errorf("judging takes %.1f bytes an event, above %v", each, mostJudging)
	}
	if len(r.Records) != requests {
		t.Errorf("%d records", len(r.Records))
	}
}

// longRun writes a run of two variants with long streams, and returns its directory.
func longRun(t *testing.T, requests, events int) string {
	t.Helper()
	dir := filepath.Join(folder(t), "run")
	s := parseSuite(t, `
seed: 1
variants: {baseline: {sim: {}}, candidate: {sim: {}}}
workloads: {w: {arrivals: {constant: 20/s}, for: 1h, prompts: {synthetic: 5}, output: 500}}
contract:
  clauses:
    - {need: p99(itl) <= baseline * 1.5}
    - {need: p99(ttft) <= 2s}
    - {need: mean(tpot) <= baseline * 1.05}
`)
	r := newRun(s, Options{Runs: dir})
	if err := r.prepare(); err != nil {
		t.Fatal(err)
	}
	if err := r.open(); err != nil {
		t.Fatal(err)
	}
	for i := range requests {
		due := record.At(time.Duration(i) * 50 * time.Millisecond)
		rec := record.Record{
			Shot: int64(i / 2), Variant: []string{Baseline, Candidate}[i%2], Workload: "w", Stream: true, MaxTokens: int64(events),
			Due: due, Admit: due, Send: due + 1e5, Sent: due + 2e5, Header: due + 1e8, Reused: true, Outcome: record.OK, Status: 200,
			Finish: "length", Prompt: record.Tokens(5), Output: record.Tokens(int64(events)), Events: make([]record.Event, events),
		}
		at := due + 2e8
		for k := range rec.Events {
			at += record.Instant(9e6 + (i*7919+k*104729)%2000003)
			rec.Events[k] = record.Event{At: at, Lag: time.Duration(10000 + k*37%5000), Read: uint32(k), Bytes: 4, Kind: record.KindContent}
		}
		rec.EOF = at
		if err := r.writer.Append(&rec); err != nil {
			t.Fatal(err)
		}
	}
	end := record.At(time.Duration(requests) * 50 * time.Millisecond)
	for _, v := range []string{Baseline, Candidate} {
		r.manifest.Windows = append(r.manifest.Windows, record.Window{Variant: v, Workload: "w", Start: record.At(0), End: end})
	}
	r.manifest.State = StateDone
	if err := r.checkpoint(); err != nil {
		t.Fatal(err)
	}
	if err := r.writer.Seal(); err != nil {
		t.Fatal(err)
	}
	return r.dir
}

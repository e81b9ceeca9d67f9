package bench

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The bounds of a long run.
const (
	mostResident   = 1.2     // resident memory at the end over that at the half, both after a collection
	mostGoroutines = 5       // left over at the end
	mostRetained   = 64.     // bytes of the heap for each token event since the half …
	inFlight       = 2 << 20 // … beside what requests in flight hold, more or fewer by chance
)

// footprint is what the process takes, after a collection.
type footprint struct {
	heap, resident float64 // bytes
	events         int64   // token events received so far
	goroutines     int
}

func measureFootprint(t *testing.T, events int64) footprint {
	t.Helper()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f := footprint{heap: float64(m.HeapAlloc), events: events, goroutines: runtime.NumGoroutine()}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("needs /proc/self/status to read the resident memory")
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			if err != nil {
				t.Fatalf("reading %q: %v", line, err)
			}
			f.resident = kb * 1024
		}
	}
	return f
}

// soakTime is how long TestSoak runs: ASSAY_SOAK, or a short while among the slow
// tests.
func soakTime(t *testing.T) time.Duration {
	text := os.Getenv("ASSAY_SOAK")
	if text == "" && os.Getenv("ASSAY_SLOW") == "" {
		t.Skip("takes 20 s: set ASSAY_SLOW=1, or ASSAY_SOAK=20m for as long as you like")
	}
	if text == "" {
		return 20 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("ASSAY_SOAK=%q: %v", text, err)
	}
	return d
}

// TestSoak holds that a run takes no more memory the longer it goes on, and that
// nothing of it is left when it is over. The engine is another process.
func TestSoak(t *testing.T) {
	length := soakTime(t)
	const tokens = 50
	s := parseSuite(t, fmt.Sprintf(`
variants:
  candidate: {url: %s/v1}
workloads:
  chat:
    arrivals: {poisson: 12/s}
    for: %v
    prompts: {synthetic: 40}
    output: %d
    ignore_eos: true
contract:
  clauses: [{need: p50(ttft) <= 10s}]
`, startServer(t), length, tokens))
	before := measureFootprint(t, 0)
	watch := new(Watch)
	type ended struct {
		r   *Result
		err error
	}
	over := make(chan ended, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		r, err := Run(ctx, s, Options{Runs: t.TempDir(), Watch: watch})
		over <- ended{r, err}
	}()
	at := func(d time.Duration) footprint {
		<-time.After(d)
		f := measureFootprint(t, tokens*watch.Live.Snapshot().Done)
		t.Logf("%d token events: resident %.1f MiB, heap %.2f MiB, %d goroutines", f.events, f.resident/(1<<20), f.heap/(1<<20), f.goroutines)
		return f
	}
	var half footprint
	for range 5 {
		half = at(length / 10)
	}
	var end footprint
	for range 4 {
		end = at(length / 10)
	}
	e := <-over
	if e.err != nil {
		t.Fatal(e.err)
	}
	if e.r.Verdict.Reason == "" || len(e.r.Records) == 0 {
		t.Errorf("%d records, verdict %q", len(e.r.Records), e.r.Verdict.Reason)
	}
	if growth := end.resident / half.resident; growth > mostResident {
		t.Errorf("resident memory grew by %.2f since the half, above %v", growth, mostResident)
	}
	if each := (end.heap - half.heap - inFlight) / float64(end.events-half.events); each > mostRetained {
		t.Errorf("%.1f bytes of the heap are kept for each token event, above %v", each, mostRetained)
	}
	e = ended{}
	after := at(length / 10) // connections and timers end meanwhile
	if more := after.goroutines - before.goroutines; more > mostGoroutines {
		t.Errorf("%d goroutines more than before the run, above %d", more, mostGoroutines)
	}
}

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// nullServer serves inside the test and returns its address.
func nullServer(t *testing.T) string {
	t.Helper()
	stop, in := io.Pipe()
	out, addr := io.Pipe()
	done := make(chan error)
	go func() { done <- serveNull(t.Context(), stop, addr) }()
	line := make([]byte, 64)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return strings.TrimSpace(string(line[:n]))
}

// TestClientsCountWhatTheServerSends runs every client for a moment. The counts
// are exact, whatever the machine does.
func TestClientsCountWhatTheServerSends(t *testing.T) {
	addr := nullServer(t)
	for _, tt := range []struct {
		w                work
		requests, events int64
	}{
		{work{Kind: "own", Path: "/tiny", Conns: 3, Each: 20}, 60, 60},
		{work{Kind: "net/http", Path: "/tiny", Conns: 3, Each: 20}, 60, 60},
		{work{Kind: "own", Path: "/stream/500/0", Conns: 3, Each: 2}, 6, 3000},
		{work{Kind: "own", Path: "/stream/20/1000", Conns: 3, Each: 1}, 3, 60},
		{work{Kind: "bare", Path: "/stream/500/0", Conns: 3, Each: 2}, 6, 3000},
		{work{Kind: "bare", Path: "/stream/20/1000", Conns: 3, Each: 1}, 3, 60},
		{work{Kind: "stamps", Path: "/stamped/20/1000", Conns: 3, Each: 2}, 6, 120},
		{work{Kind: "memory", Path: "/hold/8", Conns: 7}, 7, 56},
		{work{Kind: "lateness", Path: "/tiny", Conns: 4, Rate: 200, Length: 100 * time.Millisecond}, 120, 0},
	} {
		tt.w.Addr, tt.w.Scratch = addr, t.TempDir()
		s, err := clients[tt.w.Kind](t.Context(), tt.w)
		if err != nil {
			t.Errorf("%s on %s: %v", tt.w.Kind, tt.w.Path, err)
			continue
		}
		if s.Requests != tt.requests || s.Events != tt.events {
			t.Errorf("%s on %s: %d requests and %d events, want %d and %d", tt.w.Kind, tt.w.Path, s.Requests, s.Events, tt.requests, tt.events)
		}
		for name, want := range map[string]int{"own first": 6, "own event": 120, "late": 20} {
			if q, ok := s.Times[name]; ok && q.N != want {
				t.Errorf("%s: %d times of %s, want %d", tt.w.Kind, q.N, name, want)
			}
		}
	}
}

func TestClientFailsWhereTheServerDoes(t *testing.T) {
	addr := nullServer(t)
	for _, kind := range []string{"own", "net/http", "driver", "lateness"} {
		w := work{Kind: kind, Addr: addr, Path: "/nothing/1/0", Conns: 1, Each: 1, Rate: 10, Length: 100 * time.Millisecond, Scratch: t.TempDir()}
		if _, err := clients[kind](t.Context(), w); err == nil {
			t.Errorf("%s: no error from a server that answers 404", kind)
		}
	}
}

// TestVerdict holds that what was missed or not measured is said, never met.
func TestVerdict(t *testing.T) {
	r := report{Rows: []row{
		newRow("fast", "×", []float64{3, 1, 2}).atLeast(2),
		newRow("slow", "×", []float64{3, 1, 2}).atLeast(2.1),
		newRow("small", "B", []float64{16_000}).atMost(16_000),
		newRow("large", "B", []float64{16_001}).atMost(16_000),
		newRow("absent", "B", nil).atMost(1),
		newRow("told", "", nil),
		newRow("only told", "", []float64{1}),
	}}
	r.judge()
	var got []string
	for i := range r.Rows {
		got = append(got, r.Rows[i].Verdict)
	}
	if want := []string{met, missed, met, missed, notMeasured, notMeasured, ""}; !slices.Equal(got, want) {
		t.Errorf("verdicts %q, want %q", got, want)
	}
	if want := "2 of 5 goals met; missed: slow; large; not measured: absent; told"; r.Verdict != want {
		t.Errorf("verdict %q, want %q", r.Verdict, want)
	}
	var text, js bytes.Buffer
	if err := r.text(&text); err != nil || !strings.HasSuffix(text.String(), "verdict: "+r.Verdict+"\n") {
		t.Errorf("%v, text:\n%s", err, text.String())
	}
	if err := r.json(&js); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Rows []struct{ Measured *float64 }
	}
	if err := json.Unmarshal(js.Bytes(), &back); err != nil || back.Rows[4].Measured != nil || *back.Rows[0].Measured != 2 {
		t.Errorf("%v, JSON: %s", err, js.String())
	}
}

func TestTooFewObservationsAreNoQuantile(t *testing.T) {
	if got := p99(quantilesOf(make([]time.Duration, 298))); got != nil {
		t.Errorf("p99 of 298 observations = %v, want none", got)
	}
	if got := p99(quantilesOf(make([]time.Duration, 299))); got == nil {
		t.Error("no p99 of 299 observations")
	}
}

func TestRunRefusesWhatDoesNotExist(t *testing.T) {
	var out, said bytes.Buffer
	if code := run(context.Background(), []string{"-only", "requests,nonsense"}, nil, &out, &said); code != exitUsage || !strings.Contains(said.String(), `"nonsense"`) {
		t.Errorf("exit %d, said %q", code, said.String())
	}
}

func TestWrkRequests(t *testing.T) {
	const report = "Running 2s test\n  28881 requests in 2.01s, 7.82MB read\n"
	if n, err := wrkRequests(report); n != 28881 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, bad := range []string{"", report + "  Non-2xx or 3xx responses: 3\n", report + "  Socket errors: connect 0, read 1\n"} {
		if n, err := wrkRequests(bad); err == nil {
			t.Errorf("%q gives %d requests", bad, n)
		}
	}
}

package load_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/load"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/sim"
	"github.com/assay-llm/assay/workload"
)

// serveEnv makes the test binary serve a simulated engine instead of testing:
// the truth must come from another process.
const serveEnv = "ASSAY_TEST_SERVE_SIM"

func TestMain(m *testing.M) {
	if yaml := os.Getenv(serveEnv); yaml != "" {
		if err := serve(yaml); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serve serves an engine on a free port, prints its URL and ends when stdin does.
func serve(yaml string) error {
	var c sim.Config
	if err := config.Decode("sim.yaml", []byte(yaml), &c); err != nil {
		return err
	}
	server, err := sim.NewServer(c)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	web := &http.Server{Handler: server}
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Run(ctx) })
	wg.Go(func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		cancel()
		_ = web.Close()
	})
	fmt.Printf("http://%s/v1\n", l.Addr())
	if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	wg.Wait()
	return nil
}

// otherProcess starts a simulated engine in a process of its own and returns its URL.
func otherProcess(tb testing.TB, yaml string) string {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), serveEnv+"="+yaml)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		tb.Fatal("the engine's process gave no URL: ", err)
	}
	return url[:len(url)-1]
}

// measured sends a workload over loopback and returns its records.
func measured(tb testing.TB, url, yaml string) []record.Record {
	tb.Helper()
	client, err := llm.NewClient(llm.Target{URL: url, KeepText: -1})
	if err != nil {
		tb.Fatal(err)
	}
	defer client.Close()
	var spec workload.Spec
	if err := config.Decode("workload.yaml", []byte(yaml), &spec); err != nil {
		tb.Fatal(err)
	}
	plan, err := workload.New("w", spec, nil, 1, "salt")
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := client.Open(tb.Context(), plan.Users()); err != nil {
		tb.Fatal(err)
	}
	var mu sync.Mutex
	var recs []record.Record
	d, err := load.New(load.Config{
		Plan: plan, Variant: "v", Client: client, Epoch: time.Now(),
		Sink: func(r *record.Record, _ llm.Answer) error {
			mu.Lock()
			defer mu.Unlock()
			recs = append(recs, *r)
			return nil
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Block(tb.Context(), 0); err != nil {
		tb.Fatal(err)
	}
	return recs
}

// stampErrors returns our stamps minus the engine's emit times: of first
// tokens, of all events, and of all events by the kernel's receive stamp.
func stampErrors(tb testing.TB, recs []record.Record) (first, all, kernel []time.Duration) {
	tb.Helper()
	for i := range recs {
		r := &recs[i]
		if !r.Success() {
			tb.Fatalf("shot %d: %s: %s", r.Shot, r.Outcome, r.Detail)
		}
		for j := range r.Events {
			e := &r.Events[j]
			d, ok := e.At.Sub(e.Emit)
			if !e.Kind.Payload() || !ok {
				continue
			}
			all = append(all, d)
			if e.Lag >= 0 {
				kernel = append(kernel, d-e.Lag)
			}
			if e == r.First() {
				first = append(first, d)
			}
		}
	}
	for _, d := range [][]time.Duration{first, all, kernel} {
		slices.Sort(d)
	}
	return first, all, kernel
}

// BenchmarkTruth prints how far our stamps are from the emit times that an
// engine in another process writes into its events, at 100 streams of 100
// tokens a second each: the whole error of TTFT and of every event.
func BenchmarkTruth(b *testing.B) {
	url := otherProcess(b, "{step: 10ms, max_seqs: 256}")
	for b.Loop() {
		recs := measured(b, url, "{arrivals: {concurrency: 100}, for: 10s, prompts: {synthetic: 50}, output: 100}")
		first, all, kernel := stampErrors(b, recs)
		for _, m := range []struct {
			name string
			d    []time.Duration
		}{{"ttft", first}, {"event", all}, {"kernel", kernel}} {
			if len(m.d) == 0 {
				b.Fatalf("no %s errors to report", m.name)
			}
			for _, q := range []struct {
				name string
				p    float64
			}{{"p50", .5}, {"p99", .99}, {"max", 1}} {
				b.ReportMetric(float64(m.d[int(q.p*float64(len(m.d)-1))])/1e3, m.name+"-"+q.name+"-us")
			}
		}
		b.ReportMetric(float64(len(all)), "events")
	}
}

// TestStampsFollowTheEngine holds what must hold on any machine: every payload
// event carries the engine's emit time, and no stamp of ours is before it. How
// far behind it lies is for BenchmarkTruth.
func TestStampsFollowTheEngine(t *testing.T) {
	url := otherProcess(t, "{step: 5ms}")
	recs := measured(t, url, "{arrivals: {concurrency: 8}, requests: 40, prompts: {synthetic: 20}, output: 20}")
	first, all, kernel := stampErrors(t, recs)
	if len(first) != 40 || len(all) != 40*20 {
		t.Errorf("%d first tokens and %d events carry an emit time, want 40 and 800", len(first), len(all))
	}
	for name, d := range map[string][]time.Duration{"our": all, "the kernel's": kernel} {
		// The emit time is wall clock: allow it the error of reading two clocks.
		if len(d) > 0 && d[0] < -time.Millisecond {
			t.Errorf("one of %s stamps is %v before the engine wrote the event", name, -d[0])
		}
	}
}

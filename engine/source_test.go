package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	diff "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/pace"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/sim"
)

// served runs test in a bubble, against a handler at http://engine:80.
func served(t *testing.T, h http.Handler, test func(t *testing.T, s *Source, n *sim.Network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := sim.NewNetwork()
		l, err := n.Listen("engine:80")
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: h}
		var wg sync.WaitGroup
		wg.Go(func() { _ = server.Serve(l) })
		s, err := NewSource("http://engine:80/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		s.client.Transport.(*http.Transport).DialContext = n.DialContext
		test(t, s, n)
		s.Close()
		server.Close()
		wg.Wait()
	})
}

// TestSimulatedEngineAgrees measures requests with a shared beginning on an
// engine whose ledger is the truth, and holds the engine's counters, the client's records and
// the summary against each other.
func TestSimulatedEngineAgrees(t *testing.T) {
	var h http.Handler // made within the bubble, whose clock it reads
	served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) }), func(t *testing.T, s *Source, n *sim.Network) {
		engine, err := sim.NewServer(sim.Config{})
		if err != nil {
			t.Fatal(err)
		}
		engine.Waiter = pace.Plain()
		h = engine
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = engine.Run(ctx) })
		contract, err := s.Connect(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if s.Engine() != "vllm" || len(contract.Missing)+len(contract.Renamed)+len(contract.Changed) > 0 {
			t.Errorf("engine %s, contract %+v", s.Engine(), contract)
		}
		client, err := llm.NewClient(llm.Target{URL: "http://engine:80/v1", Dial: n.DialContext})
		if err != nil {
			t.Fatal(err)
		}
		epoch := time.Now()
		records := make([]record.Record, 40)
		var spans []Span
		ask := func(from, to int) {
			for i := from; i < to; i++ {
				r := &records[i]
				r.Variant, r.Workload = "v", "w"
				client.Do(ctx, epoch, &llm.Request{
					Messages:  []corpus.Message{{Role: "user", Content: strings.Repeat("the same beginning of a text ", 40) + fmt.Sprint(i)}},
					MaxTokens: 32, Stream: true,
				}, r)
			}
		}
		spans = append(spans, s.During(ctx, epoch, 100*time.Millisecond, func() { ask(0, 25) }))
		client.Do(ctx, epoch, &llm.Request{Messages: []corpus.Message{{Role: "user", Content: "nobody's"}}, MaxTokens: 8, Stream: true}, new(record.Record))
		spans = append(spans, s.During(ctx, epoch, 100*time.Millisecond, func() { ask(25, 40) }))
		side := Summarize("v", "w", folded(spans))
		Reconcile(&side, records)
		v := side.Values
		var prompt, cached, output, ttft float64
		for i, e := range engine.Ledger() {
			if i != 25 {
				prompt, cached, output = prompt+float64(e.Prompt), cached+float64(e.Cached), output+float64(e.Output)
				ttft += float64(e.First-e.Arrival) / 1e9
			}
		}
		if cached == 0 {
			t.Fatal("nothing was cached: the test shows nothing")
		}
		for name, want := range map[string]float64{
			"prompt_tokens": prompt, "prompt_cached_tokens": cached, "prefix_hit_tokens": cached, "gen_tokens": output,
			"usage_prompt_tokens": prompt, "usage_cached_tokens": cached, "prefix_hit_ratio": cached / prompt, "usage_cached_ratio": cached / prompt,
			"finished": 40, "preemptions": 0, "ttft_seconds_count": 40, "ttft_seconds_mean": ttft / 40, "client_ttft_seconds_mean": ttft / 40,
			"running_max": 1, "waiting_max": 0,
		} {
			if got, ok := v[name]; !ok || got < want*(1-1e-9) || got > want*(1+1e-9) {
				t.Errorf("%s = %v (known %v), want %v; lost: %s", name, got, ok, want, side.Lost[name])
			}
		}
		if len(side.Notes)+len(side.Lost)+side.Failed+side.Blind > 0 || side.Windows != 2 || side.Scrapes < 10 {
			t.Errorf("%+v", side)
		}
		if m := v["running_mean"]; m < .8 || m > 1 {
			t.Errorf("running %v on average, though one request followed another", m)
		}
		said, ok := s.ResetCache(ctx)
		if !ok || !strings.Contains(said, "some versions also answer so") {
			t.Errorf("reset: %q %v", said, ok)
		}
		client.Close()
		cancel()
		wg.Wait()
	})
}

// talk answers scrapes one after the other; the last answer is repeated.
type talk struct {
	mu      sync.Mutex
	answers []string // "": 503
	asked   int
	headers http.Header
}

func (a *talk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	text := a.answers[min(a.asked, len(a.answers)-1)]
	a.asked++
	a.headers = r.Header.Clone()
	if text == "" {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = io.WriteString(w, text)
}

const idle, busy = "vllm:num_requests_running 0\nvllm:num_requests_waiting 0\n", "vllm:num_requests_running 3\nvllm:num_requests_waiting 1\n"

func TestDuringScrapesAboutEverySecond(t *testing.T) {
	served(t, &talk{answers: []string{busy}}, func(t *testing.T, s *Source, _ *sim.Network) {
		if _, err := s.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		epoch := time.Now()
		span := s.During(t.Context(), epoch, time.Second, func() { time.Sleep(3500 * time.Millisecond) })
		var at []time.Duration
		for _, x := range span.Snapshots {
			d, _ := x.At.Offset()
			at = append(at, d)
		}
		// It never becomes idle: six scrapes at the end, the last of which is the edge.
		want := []time.Duration{0, 1e9, 2e9, 3e9, 3.5e9, 3.6e9, 3.7e9, 3.8e9, 3.9e9, 4e9}
		if diff := diff.Diff(want, at); diff != "" {
			t.Errorf("scrapes (-want +got):\n%s", diff)
		}
		for i, x := range span.Snapshots {
			want := map[int]string{0: edgeStart, 4: edgeSettling, 5: edgeSettling, 6: edgeSettling, 7: edgeSettling, 8: edgeSettling, 9: edgeEnd}[i]
			if x.Edge != want {
				t.Errorf("snapshot %d is edge %q, want %q", i, x.Edge, want)
			}
		}
	})
}

func TestDuringWaitsUntilTheEngineIsIdle(t *testing.T) {
	served(t, &talk{answers: []string{idle, idle, busy, busy, idle, busy}}, func(t *testing.T, s *Source, _ *sim.Network) {
		if _, err := s.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		span := s.During(t.Context(), time.Now(), time.Second, func() {})
		if n := len(span.Snapshots); n != 4 || !span.whole() || span.Snapshots[3].Values["running"] != 0 {
			t.Errorf("%d snapshots, whole %v", n, span.whole())
		}
	})
}

func TestDuringSurvivesFailures(t *testing.T) {
	for name, c := range map[string]struct {
		answers []string
		failed  int
		whole   bool
	}{
		"in between": {[]string{idle, idle, "", idle}, 1, true},
		"the start":  {[]string{idle, "", idle}, 1, false},
		"the end":    {[]string{idle, idle, idle, ""}, 6, false},
		"garbage":    {[]string{idle, idle, "<html>", idle}, 1, true},
		"all":        {[]string{idle, ""}, 8, false},
	} {
		t.Run(name, func(t *testing.T) {
			served(t, &talk{answers: c.answers}, func(t *testing.T, s *Source, _ *sim.Network) {
				if _, err := s.Connect(t.Context()); err != nil {
					t.Fatal(err)
				}
				ran := false
				span := s.During(t.Context(), time.Now(), time.Second, func() { time.Sleep(1500 * time.Millisecond); ran = true })
				if span.Failed != c.failed || span.whole() != c.whole || !ran || len(span.Failures) > maxFailures || len(span.Failures) == 0 {
					t.Errorf("failed %d (%q), whole %v, ran %v", span.Failed, span.Failures, span.whole(), ran)
				}
			})
		})
	}
}

func TestDuringEndsWithoutItsContext(t *testing.T) {
	served(t, &talk{answers: []string{idle}}, func(t *testing.T, s *Source, _ *sim.Network) {
		if _, err := s.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		span := s.During(ctx, time.Now(), time.Second, cancel)
		if !span.whole() || span.Failed > 0 {
			t.Errorf("%+v", span)
		}
	})
}

// TestHungEngineHoldsNobodyUp: an endpoint that never answers costs two seconds.
func TestHungEngineHoldsNobodyUp(t *testing.T) {
	hang := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	served(t, hang, func(t *testing.T, s *Source, _ *sim.Network) {
		start := time.Now()
		_, err := s.Connect(t.Context())
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != timeout {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

func TestConnectRefuses(t *testing.T) {
	redirect := http.RedirectHandler("http://engine:80/elsewhere", http.StatusFound)
	huge := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		line := []byte("# " + strings.Repeat("x", 1000) + "\n")
		for range maxText/len(line) + 2 {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	})
	for name, c := range map[string]struct {
		h    http.Handler
		want string
	}{
		"nothing there": {http.NotFoundHandler(), "answers 404"},
		"redirect":      {redirect, "answers 302"},
		"a page":        {&talk{answers: []string{"<html>"}}, "line 1"},
		"stranger":      {&talk{answers: []string{"go_goroutines 5\nprocess_start_time_seconds 3\n"}}, "no engine that is known"},
		"empty":         {&talk{answers: []string{"\n"}}, "no engine that is known"},
		"huge":          {huge, "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			served(t, c.h, func(t *testing.T, s *Source, _ *sim.Network) {
				if _, err := s.Connect(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %q in it", err, c.want)
				}
				if s.Engine() != "" {
					t.Errorf("engine %q", s.Engine())
				}
			})
		})
	}
}

func TestScrapeCarriesNoCredentials(t *testing.T) {
	h := &talk{answers: []string{idle}}
	served(t, h, func(t *testing.T, s *Source, _ *sim.Network) {
		if _, err := s.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"Authorization", "Cookie", "X-Api-Key"} {
			if h.headers.Get(name) != "" {
				t.Errorf("%s is sent", name)
			}
		}
	})
}

func TestResetCache(t *testing.T) {
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				_, _ = io.WriteString(w, idle)
				return
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, c := range map[string]struct {
		h    http.Handler
		ok   bool
		want string
	}{
		"says yes":  {answer(200, `{"success":true}`), true, "says that it emptied"},
		"says no":   {answer(200, `{"success":false}`), false, "refuses"},
		"silent":    {answer(200, ""), true, "some versions"},
		"not there": {answer(404, "Not Found"), false, "VLLM_SERVER_DEV_MODE=1"},
		"error":     {answer(500, ""), false, "answers 500"},
	} {
		t.Run(name, func(t *testing.T) {
			served(t, c.h, func(t *testing.T, s *Source, _ *sim.Network) {
				if _, err := s.Connect(t.Context()); err != nil {
					t.Fatal(err)
				}
				if said, ok := s.ResetCache(t.Context()); ok != c.ok || !strings.Contains(said, c.want) {
					t.Errorf("%q %v, want %q %v", said, ok, c.want, c.ok)
				}
			})
		})
	}
	served(t, &talk{answers: []string{"llamacpp:requests_processing 0\n"}}, func(t *testing.T, s *Source, _ *sim.Network) {
		if _, err := s.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if said, ok := s.ResetCache(t.Context()); ok || !strings.Contains(said, "llamacpp, cannot") {
			t.Errorf("%q %v", said, ok)
		}
	})
}

func TestAddresses(t *testing.T) {
	for target, want := range map[string]string{
		"http://h:8000/v1": "http://h:8000/metrics", "https://h/openai/v1?x=1#y": "https://h/metrics", "http://u:p@h/v1": "http://h/metrics", "": "", "::": "",
	} {
		if got := MetricsURL(target); got != want {
			t.Errorf("MetricsURL(%q) = %q, want %q", target, got, want)
		}
	}
	for _, bad := range []string{"", "h:8000", "ftp://h/metrics", "http://u:p@h/metrics", "http://"} {
		if _, err := NewSource(bad, nil); err == nil {
			t.Errorf("%q is taken for an address", bad)
		}
	}
	if _, err := NewSource("https://h/metrics", []byte("no certificate")); err == nil {
		t.Error("no certificate is taken for one")
	}
}

func TestCertificatesAreThoseGiven(t *testing.T) {
	s, err := NewSource("https://h/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := s.client.Transport.(*http.Transport).TLSClientConfig
	if c != nil && c.InsecureSkipVerify {
		t.Error("certificates are not verified")
	}
	s.client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no way") }
	if _, err := s.Connect(t.Context()); err == nil || !strings.Contains(err.Error(), "no way") {
		t.Errorf("error %v", err)
	}
}

func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), FileName)
	f := fixture(t, "vllm")
	a, b := span(t, f["before"], f["after"]), span(t, tokens("5", "5"), tokens("1", "1"))
	a.Snapshots[0].Variant, a.Snapshots[0].Workload, a.Snapshots[0].Block = "v", "w", 3
	for _, s := range []Span{a, {}, b} {
		if err := Append(name, s); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	got, torn, err := Read(bytes.NewReader(data))
	if err != nil || torn {
		t.Fatal(torn, err)
	}
	want := append(append([]*Snapshot(nil), a.Snapshots...), b.Snapshots...)
	if diff := diff.Diff(want, got, cmpopts.IgnoreUnexported(Snapshot{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("snapshots (-want +got):\n%s", diff)
	}
	// The file gives the same summary as the run did.
	opt := cmpopts.EquateEmpty()
	if diff := diff.Diff(Summarize("v", "w", folded([]Span{a, b})), Summarize("v", "w", folded([]Span{{Snapshots: got[:2]}, {Snapshots: got[2:]}})), opt); diff != "" {
		t.Errorf("summary (-run +file):\n%s", diff)
	}
	for cut := 1; cut < 40; cut++ {
		got, torn, err := Read(bytes.NewReader(data[:len(data)-cut]))
		if err != nil || !torn || len(got) != 3 {
			t.Fatalf("cut by %d: %d snapshots, torn %v, %v", cut, len(got), torn, err)
		}
	}
	if _, _, err := Read(strings.NewReader("no snapshot\n")); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("error %v", err)
	}
	if _, _, err := Read(strings.NewReader(strings.Repeat("x", maxSnapshot+10))); err == nil {
		t.Error("a line without end is read")
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"variant":"v","engine":"vllm","at_ns":5,"values":{"running":1},"buckets":{"ttft_seconds":[{"le":1,"n":2}]}}` + "\n"))
	f.Add([]byte("{}\n{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, _, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		name := filepath.Join(t.TempDir(), FileName)
		if err := Append(name, Span{Snapshots: got}); err != nil {
			t.Fatal(err)
		}
		again, err := os.ReadFile(name)
		if err != nil {
			if len(got) == 0 {
				return
			}
			t.Fatal(err)
		}
		back, torn, err := Read(bytes.NewReader(again))
		if err != nil || torn {
			t.Fatal(torn, err)
		}
		if diff := diff.Diff(got, back, cmpopts.IgnoreUnexported(Snapshot{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		Summarize("v", "w", folded([]Span{{Snapshots: got}}))
	})
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/pace"
	"github.com/assay-llm/assay/report"
	"github.com/assay-llm/assay/sim"
)

// oneSlot is an engine that serves one request at a time, in exactly 25 ms: two
// steps. Its capacity is 40/s.
const oneSlot = "{step: 12500us, max_seqs: 1, prefix_cache: false}"

// bubble serves simulated engines on a network in memory, at sim, sim2 and so on, and
// returns the options of runs against them in virtual time. It must be called in a
// synctest bubble.
func bubble(t *testing.T, engines ...string) Options {
	t.Helper()
	network := sim.NewNetwork()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i, engine := range engines {
		var c sim.Config
		if err := config.Decode("sim.yaml", []byte(engine), &c); err != nil {
			t.Fatal(err)
		}
		server, err := sim.NewServer(c)
		if err != nil {
			t.Fatal(err)
		}
		server.Waiter = pace.Plain()
		host := "sim"
		if i > 0 {
			host += strconv.Itoa(i + 1)
		}
		l, err := network.Listen(host + ":80")
		if err != nil {
			t.Fatal(err)
		}
		web := &http.Server{Handler: server}
		wg.Go(func() { _ = server.Run(ctx) })
		wg.Go(func() { _ = web.Serve(l) })
		defer t.Cleanup(func() { _ = web.Close() })
	}
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return Options{Runs: folder(t), Getenv: func(string) string { return "" }, virtual: &virtual{network.DialContext}}
}

// folder is a folder of the test in memory where there is one: in virtual time the
// journal is synced thousands of times a second.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "assay-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// aimed is a suite of one workload against the engine of a bubble.
func aimed(t *testing.T, arrivals string, output int, needs ...string) *Suite {
	t.Helper()
	contract := ""
	if len(needs) > 0 {
		contract = "contract: {version: 1, name: c, clauses: [" + strings.Join(needs, ", ") + "]}"
	}
	text := fmt.Sprintf(`{version: 1, name: capacity, variants: {target: {url: "http://sim:80/v1", metrics: off}},
  workloads: {load: {arrivals: {%s}, for: 30s, prompts: {synthetic: 4}, output: %d, ignore_eos: true, warmup: {requests: 2}}},
  %s}`, arrivals, output, contract)
	s, err := Parse("suite.yaml", []byte(text), "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func shown(t *testing.T, d *report.Capacity) {
	t.Helper()
	if d == nil {
		return
	}
	var b strings.Builder
	_ = report.CapacityText(&b, d, report.TextOptions{Width: 200})
	t.Log(b.String())
}

// TestLongerProbesAreTold: a probe that lasts longer than was asked says so before it
// begins, and why.
func TestLongerProbesAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := bubble(t, oneSlot)
		o.Seed = new(uint64)
		s := aimed(t, "constant: 1/s", 2, "{need: p99(ttft) <= 20s}")
		var notices []string
		o.Notice = func(format string, a ...any) { notices = append(notices, fmt.Sprintf(format, a...)) }
		if _, _, err := FindCapacity(t.Context(), s, Search{Start: 10, For: 15 * time.Second, Probes: 1}, o); err != nil {
			t.Fatal(err)
		}
		if len(notices) != 2 || notices[0] != "probe 1 lasts 1m0s instead of 15s: at 10/s fewer requests would give no bound for the needs" {
			t.Errorf("got %q", notices)
		}
	})
}

// TestConstantArrivalsFindTheCapacity searches where nothing is random: the
// capacity is found to the resolution of the search.
func TestConstantArrivalsFindTheCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := bubble(t, oneSlot)
		o.Seed = new(uint64)
		s := aimed(t, "constant: 1/s", 2, "{need: share(failed) <= 10%}", "{need: p90(ttft) <= 2s}")
		var notices []string
		o.Notice = func(format string, a ...any) { notices = append(notices, fmt.Sprintf(format, a...)) }
		d, dir, err := FindCapacity(t.Context(), s, Search{Start: 10, For: 15 * time.Second, MaxTime: 5 * time.Hour}, o)
		if err != nil {
			t.Fatal(err)
		}
		if d.Lo == nil || d.Hi == nil || *d.Lo > 40 || *d.Hi < 40 || *d.Hi / *d.Lo > 1.1 || d.Grade != "pass" || d.State != StateDone {
			t.Errorf("%s (%s)", d.Reason, d.Ended)
			shown(t, d)
		}
		if len(notices) != len(d.Probes) || !strings.HasPrefix(notices[0], "probe 1: 10/s for ") {
			t.Errorf("%d notices for %d probes: %q", len(notices), len(d.Probes), notices)
		}
		salts := map[string]bool{}
		for _, p := range d.Probes {
			r, err := Open(filepath.Join(dir, p.Run))
			if err != nil {
				t.Fatal(err)
			}
			salts[r.Manifest.Salt] = true
			if len(r.Records) == 0 {
				t.Errorf("%s has no records", p.Run)
			}
		}
		if len(salts) != len(d.Probes) {
			t.Errorf("%d salts for %d probes", len(salts), len(d.Probes))
		}
		again, err := OpenCapacity(dir)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(d, again, cmpopts.EquateNaNs(), cmpopts.EquateApproxTime(0)); diff != "" {
			t.Errorf("read back (-written +read):\n%s", diff)
		}
	})
}

// TestSearchOfWrongEngines searches where there is no capacity to be found.
func TestSearchOfWrongEngines(t *testing.T) {
	for _, c := range []struct {
		name, engine, need string
		q                  Search
		grade, reason      string
	}{
		{"too slow for any rate", oneSlot, "p90(ttft) <= 1ms", Search{Start: 10, Probes: 4}, "fail", "no rate was proven to hold, and 1.25/s and above do not"},
		{"fails everything", "{step: 5ms, faults: {error_before: 100%}}", "p90(ttft) <= 1s", Search{Start: 10, Probes: 4}, "fail", "and 1.25/s and above do not"},
		{"fails one in five", "{step: 5ms, faults: {error_before: 20%}}", "share(failed) <= 1%", Search{Start: 20, Probes: 3}, "fail", "above do not"},
		{"bears all that is tried", "{step: 1ms}", "p90(ttft) <= 1s", Search{Start: 10, MaxRate: 40}, "inconclusive", "its upper end is open"},
		{"sheds what it cannot serve", "{step: 12500us, max_seqs: 1, queue_limit: 2, prefix_cache: false}", "p50(ttft) <= 1s", Search{Start: 60, Probes: 3}, "pass", "between 30/s and 42.43/s"},
		{"little time", oneSlot, "p90(ttft) <= 1s", Search{Start: 10, MaxTime: 25 * time.Second}, "inconclusive", "at least"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := bubble(t, c.engine)
				o.Seed = new(uint64(3))
				c.q.For = 15 * time.Second
				d, _, err := FindCapacity(t.Context(), aimed(t, "constant: 1/s", 2, "{need: "+c.need+"}"), c.q, o)
				if err != nil {
					t.Fatal(err)
				}
				if d.Grade != c.grade || !strings.Contains(d.Reason, c.reason) || d.Ended == "" {
					t.Errorf("%s: %s (%s), want %s: %s", d.Grade, d.Reason, d.Ended, c.grade, c.reason)
					shown(t, d)
				}
			})
		})
	}
}

// TestSearchInterrupted demands that what was found until then is kept.
func TestSearchInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := bubble(t, oneSlot)
		cause := errors.New("interrupted")
		ctx, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(70*time.Second, func() { stop(cause) }) // in the second probe; the first one lasts a minute
		d, dir, err := FindCapacity(ctx, aimed(t, "constant: 1/s", 2, "{need: p90(ttft) <= 1s}"), Search{Start: 10, For: 15 * time.Second}, o)
		if !errors.Is(err, cause) || d == nil {
			t.Fatalf("%v, %v; want the cause and what there is", d, err)
		}
		if d.State != StateInterrupted || d.Grade != "inconclusive" || len(d.Probes) != 2 || d.Probes[0].Outcome != report.Holds || d.Probes[1].Outcome != report.Stopped {
			t.Errorf("%s, %s: %s", d.State, d.Grade, d.Reason)
			shown(t, d)
		}
		if again, err := OpenCapacity(dir); err != nil || again.Lo == nil {
			t.Errorf("read back: %v, %v", again, err)
		}
	})
}

// TestClientsCap tells the client's limit from the server's. An engine of 40/s
// gets 80/s: what the client's cap on requests in flight spoils says nothing, what
// came before the cap was reached says that the queue grows.
func TestClientsCap(t *testing.T) {
	for _, c := range []struct {
		limit           int
		outcome, reason string
	}{
		{4, report.Unfit, "the client's limit, not the server's: the client dropped"},
		{900, report.Fails, "until the client's cap was reached"},
		{2000, report.Fails, "the queue grows"},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := bubble(t, oneSlot)
			s := aimed(t, "poisson: 1/s", 2, "{need: p90(ttft) <= 1s}")
			for name, w := range s.Workloads.All() {
				w.Cap = config.Count(c.limit)
				s.Workloads.Set(name, w)
			}
			d, _, err := FindCapacity(t.Context(), s, Search{Start: 80, Probes: 3, For: 40 * time.Second, MaxTime: time.Minute}, o)
			if err != nil {
				t.Fatal(err)
			}
			p := d.Probes[0]
			if p.Outcome != c.outcome || !strings.Contains(p.Reason, c.reason) || p.Proven != nil {
				t.Errorf("a cap of %d: %s: %s; want %s: %s", c.limit, p.Outcome, p.Reason, c.outcome, c.reason)
			}
			if unfit := c.outcome == report.Unfit; unfit == (d.Hi != nil) || d.Lo != nil {
				t.Errorf("a cap of %d: bracket [%v, %v]", c.limit, d.Lo, d.Hi)
			}
		})
	}
}

func TestSweepMeasuresEachPoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := bubble(t, oneSlot)
		d, _, err := FindCapacity(t.Context(), aimed(t, "poisson: 1/s", 2), Search{Rates: []float64{10, 60}, Users: []int{1, 4}, For: 15 * time.Second}, o)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range d.Probes {
			got = append(got, report.PointText(&p)+" "+p.Outcome)
		}
		if diff := cmp.Diff([]string{"10/s measured", "60/s fails", "1 user measured", "4 users measured"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
			shown(t, d)
		}
		// One user has an answer every 25 ms; four share the one slot.
		for _, p := range d.Probes[2:] {
			if p.Good == nil || *p.Good < 39 || *p.Good > 41 || !p.Steady {
				t.Errorf("%s: %v good a second, steady: %t; want 40", report.PointText(&p), p.Good, p.Steady)
			}
		}
	})
}

// crommelin is the chance that a request to a server of fixed service time waits
// at most t when requests come at random (M/D/1; Crommelin 1932, as in Tijms,
// A First Course in Stochastic Models, 9.6).
func crommelin(rate, service, t float64) float64 {
	load, sum, term := rate*service, 0.0, 1.0
	if load >= 1 {
		return 0
	}
	for k := 0; float64(k)*service <= t; k++ {
		x := rate * (float64(k)*service - t)
		term = math.Exp(-x)
		for i := 1; i <= k; i++ {
			term *= x / float64(i)
		}
		sum += term
	}
	return (1 - load) * sum
}

// bearable is the highest rate at which the share p of all requests waits at
// most t.
func bearable(service, p, t float64) float64 {
	lo, hi := 0.0, 1/service
	for range 60 {
		if mid := (lo + hi) / 2; crommelin(mid, service, t) >= p {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// TestBracketHoldsTheCapacity searches for capacities that are known by
// construction: of a queue of fixed service times, by its stability alone and by
// the waiting times of M/D/1. The bracket is said to hold with 95 % confidence.
func TestBracketHoldsTheCapacity(t *testing.T) {
	if os.Getenv("ASSAY_SLOW") == "" {
		t.Skip("set ASSAY_SLOW=1 for 20 searches of random arrivals, a minute")
	}
	waiting, queue := bearable(0.025, 0.9, 0.1875), 40.0
	t.Run("waiting times", func(t *testing.T) { brackets(t, "p90(ttft) <= 200ms", waiting) })
	if os.Getenv("ASSAY_SLOW") == "full" { // no stable queue comes near the limit
		t.Run("queue", func(t *testing.T) { brackets(t, "p90(ttft) <= 10s", queue) })
	}
}

// brackets searches with 20 seeds, two at a time, and demands that 19 brackets
// hold the truth, and that they have ends at all.
func brackets(t *testing.T, need string, truth float64) {
	const seeds = 20
	var held, closed atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for seed := range uint64(seeds) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					o := bubble(t, oneSlot)
					o.Seed = new(1000 * seed)
					s := aimed(t, "poisson: 5/s", 2, "{need: "+need+"}")
					d, _, err := FindCapacity(t.Context(), s, Search{Start: 10, For: 10 * time.Second, MaxTime: 5 * time.Hour}, o)
					if err != nil {
						t.Fatal(err)
					}
					if (d.Lo == nil || *d.Lo <= truth) && (d.Hi == nil || *d.Hi >= truth) {
						held.Add(1)
					} else {
						shown(t, d)
					}
					if d.Lo != nil && d.Hi != nil {
						closed.Add(1)
					}
					t.Log(d.Reason)
				})
			})
		}
	})
	t.Logf("the capacity is %.2f/s; %d of %d brackets hold it, %d have both ends", truth, held.Load(), seeds, closed.Load())
	if held.Load() < 19 || closed.Load() < 18 {
		t.Errorf("%d of %d brackets hold the capacity, %d have both ends; want 19 and 18", held.Load(), seeds, closed.Load())
	}
}

package load_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-llm/assay/load"
	"github.com/assay-llm/assay/record"
)

// TestJitterIsNoLag: a planned delay on the way moves the sending and nothing
// else. Latencies from the schedule have it, the client's own lag has not.
func TestJitterIsNoLag(t *testing.T) {
	for _, yaml := range []string{
		"{arrivals: {poisson: 20/s}, requests: 400, prompts: {synthetic: 10}, output: 5, jitter: {pareto: {min: 5ms, alpha: 1.2, max: 3s}}}",
		"{arrivals: {poisson: 20/s}, requests: 400, prompts: {synthetic: 10}, output: 5, jitter: 200ms}",
		"{arrivals: {poisson: 40/s}, requests: 400, cap: 4, prompts: {synthetic: 10}, output: 5, jitter: 100ms}",
		"{arrivals: {concurrency: 5, think: 100ms}, requests: 400, prompts: {synthetic: 10}, output: 5, jitter: {lognormal: {median: 30ms, sigma: 1, max: 2s}}}",
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			k := converse(t, t.Context(), "{step: 5ms}", yaml, 1, nil)
			held := 0
			ttft, _ := record.Find("ttft")
			lag, _ := record.Find("lag")
			i := 0
			for shot := range k.plan.All() {
				r := k.records[i]
				i++
				late, _ := r.Send.Sub(r.Due)
				switch {
				case r.Jitter != shot.Jitter || shot.Jitter == 0:
					t.Fatalf("shot %d: jitter %v, planned %v", r.Shot, r.Jitter, shot.Jitter)
				case r.Flags&record.FlagDelayedByCap != 0:
					held++
					if wait, _ := r.Admit.Sub(r.Due); late != wait+r.Jitter {
						t.Errorf("shot %d waited %v for the cap and was sent after %v", r.Shot, wait, late)
					}
				case late != r.Jitter:
					t.Errorf("shot %d: sent %v after it was due, want %v", r.Shot, late, r.Jitter)
				}
				if own, ok := r.OwnLag(); !ok || own != 0 {
					t.Errorf("shot %d: own lag %v", r.Shot, own)
				}
				if v := ttft.Values(r, nil); len(v) != 1 || v[0] < float64(late) {
					t.Errorf("shot %d: TTFT %v without its %v on the way", r.Shot, v, late)
				}
				if v := lag.Values(r, nil); len(v) != 1 || v[0] != float64(late-r.Jitter) {
					t.Errorf("shot %d: lag %v", r.Shot, v)
				}
			}
			if strings.Contains(yaml, "cap") == (held == 0) {
				t.Errorf("%d held back by the cap", held)
			}
			monitor := load.NewMonitor(begin, true)
			if c := monitor.Certificate(values(k.records)); slices.ContainsFunc(c.Reasons, func(why string) bool { return strings.Contains(why, "late") }) {
				t.Errorf("the certificate says %q", c.Reasons)
			}
		})
	}
}

// TestPrioritiesDecideWhoWaits: under overload an engine that schedules by priority
// serves the tenant first whose number is lower; another one does not.
func TestPrioritiesDecideWhoWaits(t *testing.T) {
	const workload = "{arrivals: {poisson: 30/s}, requests: 600, mix: [" +
		"{tenant: gold, share: 30%, priority: -1, prompts: {synthetic: 20}, output: 20}, {tenant: free, share: 70%, prompts: {synthetic: 20}, output: 20}]}"
	median := map[string]map[string]time.Duration{}
	for _, scheduling := range []string{"fcfs", "priority"} {
		synctest.Test(t, func(t *testing.T) {
			k := converse(t, t.Context(), "{step: 10ms, max_seqs: 4, scheduling: "+scheduling+"}", workload, 1, nil)
			waits := map[string][]time.Duration{}
			for _, r := range k.records {
				if r.Outcome != record.OK || (r.Labels["priority"] == "-1") != (r.Tenant == "gold") {
					t.Fatalf("shot %d of %s: %s, labels %v", r.Shot, r.Tenant, r.Outcome, r.Labels)
				}
				ttft, _ := r.First().At.Sub(r.Due)
				waits[r.Tenant] = append(waits[r.Tenant], ttft)
			}
			median[scheduling] = map[string]time.Duration{}
			for tenant, w := range waits {
				slices.Sort(w)
				median[scheduling][tenant] = w[len(w)/2]
			}
		})
	}
	fair, ranked := median["fcfs"], median["priority"]
	if fair["gold"] < 2*time.Second || fair["free"] < 2*time.Second {
		t.Fatalf("no overload: %v", fair)
	}
	if ranked["gold"] > 300*time.Millisecond || ranked["free"] < fair["free"] {
		t.Errorf("by priority %v, else %v", ranked, fair)
	}
	t.Logf("median TTFT by priority %v, first come first served %v", ranked, fair)
}

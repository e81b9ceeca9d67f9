package bench

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metrics "github.com/assay-llm/assay/engine"
	"github.com/assay-llm/assay/record"
)

// TestCacheIsEmptiedBeforeEachWorkload believes no engine that it emptied its
// cache: only a canary that hits before and misses behind proves it.
func TestCacheIsEmptiedBeforeEachWorkload(t *testing.T) {
	cacheless := fast
	cacheless.PrefixCache = ptr(false)
	for name, c := range map[string]struct {
		answer string
		empty  bool // what it says it does
		off    bool // the engine has no prefix cache
		state  string
		note   string
	}{
		"does it":      {`{"success":true}`, true, false, metrics.Cold, "proven cold: it says that it emptied its prefix cache; "},
		"says nothing": {"", true, false, metrics.Cold, "proven cold: it took POST /reset_prefix_cache"},
		"lies":         {`{"success":true}`, false, false, metrics.Warm, "NOT COLD: it says that it emptied its prefix cache; "},
		"refuses":      {`{"success":false}`, false, false, metrics.Warm, "NOT COLD: it refuses"},
		"has none":     {`{"success":true}`, true, true, metrics.Unknown, "not proven cold: "},
	} {
		t.Run(name, func(t *testing.T) {
			config := fast
			if c.off {
				config = cacheless
			}
			e := newEngine(t, config)
			resets := make(chan string, 10)
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/reset_prefix_cache" {
					e.ServeHTTP(w, r)
					return
				}
				resets <- r.Method
				if c.empty {
					e.sim.ServeHTTP(httptest.NewRecorder(), r)
				}
				_, _ = w.Write([]byte(c.answer))
			}))
			t.Cleanup(front.Close)
			s := parseSuite(t, "variants: {candidate: {url: "+front.URL+`/v1, reset_cache: true}}
workloads:
  one: {arrivals: {constant: 100/s}, requests: 5, prompts: {synthetic: 5}, output: 2}
  two: {arrivals: {constant: 100/s}, requests: 5, prompts: {synthetic: 5}, output: 2}
`)
			r, err := Run(t.Context(), s, Options{Runs: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			if n := len(resets); n != 2 {
				t.Errorf("the cache was emptied %d times before two workloads", n)
			}
			if len(r.Records) != 10 {
				t.Errorf("%d records of 10 shots: the canary is none of them", len(r.Records))
			}
			notes := strings.Join(r.Manifest.Notes, "\n")
			for i, workload := range []string{"one", "two"} {
				if p := r.Manifest.Caches[i]; p.State != c.state || p.Workload != workload {
					t.Errorf("the cache before %s is %q, want %q: %s", workload, p.State, c.state, p.Why)
				}
				if want := "prefix cache of candidate before " + workload + ": " + c.note; !strings.Contains(notes, want) {
					t.Errorf("notes %q, want %q in them", notes, want)
				}
			}
			checkProbes(t, r.Manifest.Caches[0], c.state)
		})
	}
}

// checkProbes holds the four numbers of a proof against each other.
func checkProbes(t *testing.T, p record.CacheProof, state string) {
	t.Helper()
	first, _ := p.First.Hits()
	again, _ := p.Again.Hits()
	after, _ := p.After.Hits()
	n, _ := p.Again.Prompt.N()
	for _, x := range []record.CacheProbe{p.First, p.Again, p.After} {
		if x.Cached != x.Counted || !x.Cached.Known() || !x.TTFT.Known() {
			t.Errorf("usage tells %d cached tokens, the counter %d", x.Cached, x.Counted)
		}
	}
	if want := (n - 1) / 16 * 16; state != metrics.Unknown && again != want || first != 0 {
		t.Errorf("%d and then %d of %d tokens from the cache, want 0 and %d", first, again, n, want)
	}
	if (after == 0) != (state != metrics.Warm) {
		t.Errorf("%d tokens from a cache that is %s", after, state)
	}
}

// TestCacheOfAnUnknownEngine is left alone, and said to be.
func TestCacheOfAnUnknownEngine(t *testing.T) {
	e := newEngine(t, fast)
	r, err := Run(t.Context(), parseSuite(t, quick(e.URL+"/v1", ", metrics: off, reset_cache: true")), Options{Runs: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(r.Manifest.Notes, "\n"); !strings.Contains(notes, "the prefix cache of candidate is as it was") || len(r.Manifest.Caches) > 0 {
		t.Errorf("notes %q", notes)
	}
}

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/config"
	metrics "github.com/assay-llm/assay/engine"
	"github.com/assay-llm/assay/record"
)

// sharing has half of each prompt in common with others, on an engine with a
// prefix cache.
const sharing = `
seed: 11
variants:
  baseline: {sim: {step: 1ms}}
  candidate: {sim: {step: 2ms}}
workloads:
  chat:
    arrivals: {poisson: 40/s}
    for: 1s
    prompts: {synthetic: 64}
    prefix: {tokens: 128, groups: 2}
    output: 8
    warmup: {requests: 4}
blocks: 2
`

// TestEngineBesideTheClient reconciles what the simulated engines count with the
// records of the same requests, and what the run keeps with what its files say.
func TestEngineBesideTheClient(t *testing.T) {
	r, err := Run(t.Context(), parseSuite(t, sharing), Options{Runs: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	m := r.Manifest
	if len(m.Engines) != 2 || len(m.Notes) != 0 {
		t.Fatalf("%d accounts of engines, notes %q", len(m.Engines), m.Notes)
	}
	for i, variant := range []string{Baseline, Candidate} {
		side := m.Engines[i]
		if side.Variant != variant || side.Workload != "chat" || side.Engine != "vllm" || side.Windows != 2 || side.Blind+side.Failed > 0 || side.Scrapes < 4 {
			t.Errorf("%+v", side)
		}
		var want struct{ prompt, cached, output, n float64 }
		for j := range r.Records {
			rec := &r.Records[j]
			if rec.Variant != variant || rec.Phase != record.Measured {
				continue
			}
			p, _ := rec.Prompt.N()
			c, known := rec.Cached.N()
			o, _ := rec.Output.N()
			if !rec.Success() || !known {
				t.Fatalf("shot %d: %s, cached known: %v", rec.Shot, rec.Outcome, known)
			}
			want.prompt, want.cached, want.output, want.n = want.prompt+float64(p), want.cached+float64(c), want.output+float64(o), want.n+1
		}
		if want.cached == 0 {
			t.Error("nothing was cached: the test shows nothing")
		}
		for name, v := range map[string]float64{
			"prompt_tokens": want.prompt, "usage_prompt_tokens": want.prompt, "prompt_cached_tokens": want.cached, "usage_cached_tokens": want.cached,
			"gen_tokens": want.output, "finished": want.n, "ttft_seconds_count": want.n, "prefix_hit_ratio": want.cached / want.prompt, "preemptions": 0,
		} {
			if got, ok := side.Values[name]; !ok || math.Abs(got-v) > 1e-9*v {
				t.Errorf("%s: %s = %v (known %v), want %v; lost: %s", variant, name, got, ok, v, side.Lost[name])
			}
		}
		// The engine's TTFT begins later and ends sooner than the client's.
		if engine, client := side.Values["ttft_seconds_mean"], side.Values["client_ttft_seconds_mean"]; engine <= 0 || client < engine {
			t.Errorf("%s: TTFT %v by the engine, %v by the client", variant, engine, client)
		}
	}
	checkSnapshots(t, r)
	checkScrapes(t, r)
	if again, err := record.ReadManifest(record.OS(), r.Dir); err != nil || fmt.Sprint(again.Engines) != fmt.Sprint(m.Engines) {
		t.Errorf("the manifest keeps other figures: %v", err)
	}
	checkSameWhenOpened(t, r)
}

// checkSnapshots wants both edges of every window in engine.jsonl.
func checkSnapshots(t *testing.T, r *Result) {
	t.Helper()
	f, err := os.Open(filepath.Join(r.Dir, metrics.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	snapshots, torn, err := metrics.Read(f)
	if err != nil || torn {
		t.Fatal(torn, err)
	}
	edges := make(map[string]int)
	for i, s := range snapshots {
		if i > 0 && s.At < snapshots[i-1].At {
			t.Errorf("snapshot %d was taken before the one before", i)
		}
		if s.Edge == "start" || s.Edge == "end" {
			edges[fmt.Sprint(s.Variant, s.Workload, s.Block, s.Edge)]++
		}
	}
	for _, w := range r.Manifest.Windows {
		for _, edge := range []string{"start", "end"} {
			if n := edges[fmt.Sprint(w.Variant, w.Workload, w.Block, edge)]; n != 1 {
				t.Errorf("%+v has %d snapshots at its %s", w, n, edge)
			}
		}
	}
}

// quick is a suite of a few requests to a url.
func quick(url, more string) string {
	return "variants: {candidate: {url: " + url + more + "}}\nworkloads: {chat: {arrivals: {constant: 100/s}, requests: 10, prompts: {synthetic: 5}, output: 2}}\n"
}

// TestMissingMetrics: that an engine shows none is a note, unless the suite says
// where they are.
func TestMissingMetrics(t *testing.T) {
	e := newEngine(t, fast)
	hidden := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			http.NotFound(w, r)
			return
		}
		e.ServeHTTP(w, r)
	}))
	t.Cleanup(hidden.Close)
	for name, c := range map[string]struct {
		suite, note string
		engines     int
	}{
		"not there":     {quick(hidden.URL+"/v1", ""), "no metrics of the engine of candidate: ", 0},
		"off":           {quick(hidden.URL+"/v1", ", metrics: off"), "", 0},
		"there":         {quick(e.URL+"/v1", ""), "", 1},
		"there, off":    {quick(e.URL+"/v1", ", metrics: off"), "", 0},
		"elsewhere":     {quick(hidden.URL+"/v1", ", metrics: "+e.URL+"/metrics"), "", 1},
		"through proxy": {quick("http://engine/v1", ", proxy: "+proxyTo(t, e)), "not asked for", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Run(t.Context(), parseSuite(t, c.suite), Options{Runs: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			notes := strings.Join(r.Manifest.Notes, "\n")
			if !strings.Contains(notes, c.note) || (c.note == "") != (notes == "") || len(r.Manifest.Engines) != c.engines {
				t.Errorf("notes %q, want %q in them; %d engines, want %d", notes, c.note, len(r.Manifest.Engines), c.engines)
			}
			if _, err := os.Stat(filepath.Join(r.Dir, metrics.FileName)); (err == nil) != (c.engines > 0) {
				t.Errorf("snapshots: %v", err)
			}
		})
	}
	_, err := Run(t.Context(), parseSuite(t, quick(e.URL+"/v1", ", metrics: "+hidden.URL+"/metrics")), Options{Runs: t.TempDir()})
	if target, ok := errors.AsType[*TargetError](err); !ok || target.Variant != Candidate || !strings.Contains(err.Error(), "hint: mend the address of its metrics") {
		t.Errorf("metrics that the suite names are not there: %v", err)
	}
}

// proxyTo sends whatever is asked through it to an engine.
func proxyTo(t *testing.T, e *engine) string {
	p := httptest.NewServer(e)
	t.Cleanup(p.Close)
	return p.URL
}

// TestOthersOnTheEngine: requests that are not the run's are seen in the engine's
// counters, and said.
func TestOthersOnTheEngine(t *testing.T) {
	e := newEngine(t, fast)
	once := make(chan struct{}, 1)
	e.onEach(func(int) {
		select {
		case once <- struct{}{}:
		default:
			return
		}
		body := `{"model":"sim","messages":[{"role":"user","content":"` + strings.Repeat("another's words ", 100) + `"}],"max_tokens":1}`
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		w := httptest.NewRecorder()
		e.sim.ServeHTTP(w, q)
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("the stranger's request was answered %q", w.Body)
		}
	})
	r, err := Run(t.Context(), parseSuite(t, quick(e.URL+"/v1", "")), Options{Runs: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(r.Manifest.Notes, "\n"); !strings.Contains(notes, "it served others meanwhile") {
		t.Errorf("notes %q say nothing of others", notes)
	}
}

// TestGPUsBesideTheEngine asks a second endpoint for the GPUs, and refuses to run
// where the one that the suite names is not there.
func TestGPUsBesideTheEngine(t *testing.T) {
	e := newEngine(t, fast)
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\nDCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"0\"} 5000\n# TYPE DCGM_FI_DEV_PCIE_REPLAY_COUNTER counter\nDCGM_FI_DEV_PCIE_REPLAY_COUNTER{gpu=\"0\"} 3\n"))
	}))
	t.Cleanup(exporter.Close)
	r, err := Run(t.Context(), parseSuite(t, quick(e.URL+"/v1", ", gpu_metrics: "+exporter.URL+"/metrics")), Options{Runs: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if m := r.Manifest; len(m.Engines) != 2 || m.Engines[0].Engine != "vllm" || m.Engines[1].Engine != "dcgm" {
		t.Fatalf("engines %+v", m.Engines)
	}
	gpus := r.Manifest.Engines[1]
	if v, ok := gpus.Values["gpu_pcie_replays"]; !ok || v != 0 {
		t.Errorf("%v replays (known %v) of a counter that stood still", v, ok)
	}
	if v, ok := gpus.Values["gpu_energy_joules"]; ok || !strings.Contains(gpus.Lost["gpu_energy_joules"], "too seldom") {
		t.Errorf("energy %v (known %v) in a window that is shorter than its readings", v, ok)
	}
	if notes := strings.Join(r.Manifest.Notes, "\n"); !strings.Contains(notes, "engine of candidate (dcgm): metrics that are not there") {
		t.Errorf("notes %q", notes)
	}
	exporter.Close()
	_, err = Run(t.Context(), parseSuite(t, quick(e.URL+"/v1", ", gpu_metrics: "+exporter.URL+"/metrics")), Options{Runs: t.TempDir()})
	if target, ok := errors.AsType[*TargetError](err); !ok || target.Variant != Candidate || !strings.Contains(err.Error(), "hint: mend gpu_metrics") {
		t.Errorf("the exporter is gone: %v", err)
	}
}

func TestMetricsOfASuite(t *testing.T) {
	for text, want := range map[string]string{
		"{url: http://h/v1, metrics: off}":                                 "",
		"{url: http://h/v1, metrics: http://h:9000/metrics}":               "",
		"{sim: {}, metrics: off}":                                          "",
		"{sim: {}, metrics: http://h/metrics}":                             "variants.a.metrics: does not go with sim",
		"{url: http://h/v1, metrics: h/metrics}":                           "variants.a.metrics: is not the address of metrics",
		"{url: http://h/v1, metrics: true}":                                "variants.a.metrics: ",
		"{url: http://h/v1, metrics: http://u:p@h/metrics}":                "variants.a.metrics: holds a password",
		"{url: http://h/v1, metrics: \"http://h/metrics?token=abc\"}":      "variants.a.metrics: its query holds a secret",
		"{url: http://h/v1, gpu_metrics: http://h:9400/metrics}":           "",
		"{url: http://h/v1, gpu_metrics: off}":                             "variants.a.gpu_metrics: ",
		"{url: http://h/v1, gpu_metrics: h:9400}":                          "variants.a.gpu_metrics: is not the address of metrics",
		"{sim: {}, gpu_metrics: http://h:9400/metrics}":                    "variants.a.gpu_metrics: does not go with sim",
		"{url: http://h/v1, reset_cache: sometimes}":                       "variants.a.reset_cache: ",
		"{url: http://h/v1, metrics: http://h/metrics, reset_cache: true}": "",
	} {
		s, err := Parse("suite.yaml", []byte("version: 1\nname: x\nvariants: {a: "+text+"}\nworkloads: {c: {arrivals: {constant: 1/s}, requests: 1, prompts: {synthetic: 5}}}\n"), "")
		faults, _ := errors.AsType[config.Faults](err)
		if (err == nil) != (want == "") || want != "" && (len(faults) != 1 || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if err == nil {
			checkKept(t, s)
		}
		if err != nil && (strings.Contains(err.Error(), "u:p") || strings.Contains(err.Error(), "abc")) {
			t.Errorf("%s: the secret is shown: %v", text, err)
		}
	}
}

// checkKept decodes what a manifest keeps of a suite.
func checkKept(t *testing.T, s *Suite) {
	t.Helper()
	r := run{suite: s, opts: Options{Salt: ptr("salt")}}
	if err := r.prepare(); err != nil {
		t.Fatal(err)
	}
	again := new(Suite)
	if err := config.Decode("manifest", []byte(r.manifest.Suite), again); err != nil {
		t.Fatalf("%v\n%s", err, r.manifest.Suite)
	}
	a, _ := s.Variants.Get("a")
	b, _ := again.Variants.Get("a")
	if a.Metrics != b.Metrics || a.GPUMetrics != b.GPUMetrics || a.ResetCache != b.ResetCache {
		t.Errorf("metrics %q and reset_cache %v are kept as %q and %v", a.Metrics, a.ResetCache, b.Metrics, b.ResetCache)
	}
}

// TestRealEngineBesideTheClient reconciles what llama.cpp counts, which is only what it
// computed, with the records.
func TestRealEngineBesideTheClient(t *testing.T) {
	e := startEngine(t)
	r, err := Run(t.Context(), parseSuite(t, `variants: {candidate: {url: `+e.url+`, reset_cache: true}}
workloads: {w: {arrivals: {concurrency: 2, stagger: 50ms}, requests: 20, prompts: {synthetic: {uniform: {min: 5, max: 30}}}, output: 12, temperature: 0, warmup: {requests: 2}}}
`), Options{Runs: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Manifest.Engines) != 1 || r.Manifest.Engines[0].Engine != "llamacpp" {
		t.Fatalf("engines %+v, notes %q", r.Manifest.Engines, r.Manifest.Notes)
	}
	var prompt, cached, output int64
	for i := range r.Records {
		if rec := &r.Records[i]; rec.Phase == record.Measured {
			p, _ := rec.Prompt.N()
			c, _ := rec.Cached.N()
			o, _ := rec.Output.N()
			prompt, cached, output = prompt+p, cached+c, output+o
		}
	}
	v := r.Manifest.Engines[0].Values
	for name, want := range map[string]int64{"prompt_computed_tokens": prompt - cached, "prompt_cached_tokens": cached, "usage_prompt_tokens": prompt, "gen_tokens": output} {
		if got, ok := v[name]; !ok || got != float64(want) {
			t.Errorf("%s = %v (known %v), want %d; lost: %v", name, got, ok, want, r.Manifest.Engines[0].Lost)
		}
	}
	if _, ok := v["prompt_tokens"]; ok {
		t.Error("llama.cpp tells all prompt tokens: it tells those that it computed")
	}
	if notes := strings.Join(r.Manifest.Notes, "\n"); len(r.Manifest.Caches) > 0 || !strings.Contains(notes, "llamacpp, cannot empty it") {
		t.Errorf("proofs %+v, notes %q: it has no way to empty its cache", r.Manifest.Caches, notes)
	}
	t.Logf("%d prompt tokens, %d of them cached, %d output tokens; notes %q", prompt, cached, output, r.Manifest.Notes)
}

// TestEnginesPage reads the suite that docs/engines.md shows.
func TestEnginesPage(t *testing.T) {
	page, err := os.ReadFile("../docs/engines.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, ok := strings.Cut(text, "```")
	if !ok {
		t.Fatal("the page shows no suite")
	}
	s := parseSuite(t, text+"workloads: {c: {arrivals: {constant: 1/s}, requests: 1, prompts: {synthetic: 5}}}\n")
	v, _ := s.Variants.Get(Candidate)
	if v.Metrics == "" || v.GPUMetrics == "" || !v.ResetCache {
		t.Errorf("%+v lacks a field that the page explains", v)
	}
}

// checkScrapes wants what a contract reads of the engines, scrape by scrape, to add up to
// what the manifest keeps.
func checkScrapes(t *testing.T, r *Result) {
	t.Helper()
	for _, side := range r.Manifest.Engines {
		sum := map[string]float64{}
		for _, w := range r.Evidence().Engine {
			if w.Variant != side.Variant {
				continue
			}
			for name, steps := range w.Counters {
				for _, s := range steps {
					sum[name] += s.By
				}
			}
		}
		for _, name := range []string{"queue_seconds_sum", "queue_seconds_count", "decode_seconds_sum", "prefix_hit_tokens", "preemptions"} {
			if got, want := sum[name], side.Values[name]; math.Abs(got-want) > 1e-9*want {
				t.Errorf("%s: %s adds up to %v scrape by scrape, want %v", side.Variant, name, got, want)
			}
		}
	}
}

package engine

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/assay-llm/assay/record"
)

// fixture returns the parts of testdata/NAME.txtar.
func fixture(t testing.TB, name string) map[string]string {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	parts := make(map[string]string)
	for _, f := range a.Files {
		parts[f.Name] = string(f.Data)
	}
	return parts
}

func mustParse(t testing.TB, text string) *exposition {
	t.Helper()
	e, err := parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// span makes a span of expositions, one second apart.
func span(t testing.TB, texts ...string) Span {
	t.Helper()
	var s Span
	var before *Snapshot
	for i, text := range texts {
		e := mustParse(t, text)
		d := detect(e)
		if d == nil {
			t.Fatal("no engine detected")
		}
		x := d.snapshot(e, before)
		x.At = record.At(time.Duration(i) * time.Second)
		before = x
		s.Snapshots = append(s.Snapshots, x)
	}
	s.Snapshots[0].Edge, before.Edge = edgeStart, edgeEnd
	return s
}

// around puts edges around three snapshots that now lie within the window, the
// last at the instant of the one before: half of the time is between the first two.
func around(s Span) Span {
	first, last := *s.Snapshots[0], *s.Snapshots[2]
	for _, x := range s.Snapshots {
		x.Edge = ""
	}
	first.Edge, last.Edge = edgeStart, edgeEnd
	s.Snapshots[2].At = s.Snapshots[1].At
	return Span{Snapshots: append(append([]*Snapshot{&first}, s.Snapshots...), &last)}
}

// unknown stands for a value that must not be there.
var unknown = math.NaN()

func TestEveryEngineInOneVocabulary(t *testing.T) {
	for name, want := range map[string]map[string]float64{
		"vllm": {
			"running_mean": 2, "running_max": 3, "running_min": 1, "waiting_max": 4,
			"kv_usage_ratio_max": .75, "kv_usage_ratio_mean": .625, "kv_capacity_tokens_mean": 32000,
			"prefix_hit_tokens": 300, "prefix_queried_tokens": 600, "prefix_hit_ratio": .5,
			"prompt_tokens": 600, "prompt_cached_tokens": 300, "prompt_cached_ratio": .5, "gen_tokens": 96, "preemptions": 1,
			"finished": 7, "aborted": 2, "failed": 0,
			"ttft_seconds_sum": 2, "ttft_seconds_count": 4, "ttft_seconds_mean": .5,
			"queue_seconds_mean": .125, "prefill_seconds_mean": .25, "frontend_seconds_mean": .125,
			"awake_min": 1, "decode_seconds_mean": unknown, "est_flops": unknown, "external_hit_tokens": unknown,
		},
		"sglang": {
			"running_mean": 8, "running_max": 9, "waiting_max": 3, "waiting_min": 0, "kv_usage_ratio_max": .9,
			"prefix_hit_tokens": 500, "prefix_queried_tokens": 2000, "prefix_hit_ratio": .25, "gen_tokens": 100,
			"preemptions": 2, "prefill_seconds_mean": .3, "ttft_seconds_mean": .5, "finished": 10, "kv_bytes_mean": 2 << 30,
			"queue_seconds_mean": unknown, "aborted": unknown, "kv_capacity_tokens_mean": unknown,
		},
		"tgi": {
			"running_mean": 6, "waiting_max": 2, "prompt_tokens": 6000, "gen_tokens": 300, "queue_seconds_mean": .25,
			"prefill_batch_seconds_mean": .4, "decode_batch_seconds_mean": .05, "tpot_seconds_mean": .03, "e2e_seconds_mean": 3,
			"finished": 10, "failed": 3, "prefill_seconds_mean": unknown, "kv_usage_ratio_max": unknown, "prefix_hit_ratio": unknown,
		},
		"trtllm": {
			"running_mean": 3, "waiting_max": 1, "kv_usage_ratio_max": .75, "kv_capacity_tokens_mean": 3200,
			"prefix_hit_blocks": 30, "prefix_missed_blocks": 10, "prefix_hit_ratio": .75, "queue_seconds_mean": .25,
			"ttft_seconds_mean": 1, "tpot_seconds_mean": .05, "e2e_seconds_mean": 3, "finished": 4, "prompt_tokens": unknown,
		},
		"triton": {
			"running_mean": 8, "waiting_mean": 2, "kv_usage_ratio_max": .5, "queue_seconds_sum": 1, "queue_seconds_count": 4,
			"queue_seconds_mean": .25, "ttft_seconds_mean": .2, "finished": 4, "failed": 1, "prefix_hit_ratio": unknown,
		},
		"llamacpp": {
			"running_max": 1, "waiting_mean": 1.5, "prompt_computed_tokens": 200, "gen_tokens": 50, "prefill_seconds_sum": 1,
			"decode_seconds_sum": 1, "steps": 40, "prefill_seconds_mean": unknown, "prompt_tokens": unknown, "ttft_seconds_mean": unknown,
		},
		"dcgm": {
			"gpu_busy_ratio_mean": .75, "gpu_fb_used_bytes_max": 4 << 30, "gpu_temperature_celsius_max": 63,
			"gpu_sm_clock_hertz_min": 1.41e9, "gpu_dram_active_ratio_mean": .5,
			"gpu_power_watts_mean": unknown, "gpu_mem_copy_busy_ratio_mean": unknown, "gpu_xid_last_max": unknown,
			"gpu_energy_joules": unknown, // read anew only once
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture(t, name)
			got := Summarize("v", "w", folded([]Span{around(span(t, f["before"], f["after"], f["after"]))}))
			if got.Engine != name {
				t.Errorf("engine %q", got.Engine)
			}
			for key, v := range want {
				have, ok := got.Values[key]
				switch {
				case math.IsNaN(v) && ok:
					t.Errorf("%s = %v, want unknown", key, have)
				case !math.IsNaN(v) && (!ok || math.Abs(have-v) > 1e-12*math.Abs(v)):
					t.Errorf("%s = %v (known %v), want %v; lost: %s", key, have, ok, v, got.Lost[key])
				}
			}
			for key, v := range got.Values {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("%s = %v", key, v)
				}
			}
		})
	}
}

// TestTablesFitTheContract holds that each rule names a quantity and a family of
// the list, and that what we take for a counter is one.
func TestTablesFitTheContract(t *testing.T) {
	for _, d := range dialects {
		seen := make(map[string]bool)
		for _, r := range d.rules {
			kind, whole := byName[r.ours]
			if !whole && !grows(r.ours) {
				t.Errorf("%s: %s is not in the vocabulary", d.name, r.ours)
			}
			if seen[r.ours] {
				t.Errorf("%s: two rules for %s", d.name, r.ours)
			}
			seen[r.ours] = true
			theirs := d.kindOf(r.theirs)
			want := map[Kind]string{Gauge: "gauge", Counter: "counter", Histogram: "histogram"}[kind]
			if !whole {
				want = "counter"
			}
			if r.part != "" {
				want = "histogram"
			}
			if theirs != want {
				t.Errorf("%s: %s reads %s, which is a %q, as a %s", d.name, r.ours, r.theirs, theirs, want)
			}
			for _, more := range append(slices.Clone(r.plus), r.times) {
				if more != "" && d.kindOf(more) != theirs {
					t.Errorf("%s: %s adds %s, which is a %q", d.name, r.ours, more, d.kindOf(more))
				}
			}
			if !strings.HasPrefix(r.theirs, d.prefix) && r.theirs != "process_start_time_seconds" {
				t.Errorf("%s: %s is of another engine", d.name, r.theirs)
			}
		}
	}
	seen := make(map[string]bool)
	for _, q := range Quantities() {
		if seen[q.Name] || q.Doc == "" {
			t.Errorf("%s stands twice or has no doc", q.Name)
		}
		seen[q.Name] = true
	}
}

// TestContractIsThatOfTheRelease compares the list with families captured from the release.
func TestContractIsThatOfTheRelease(t *testing.T) {
	text, err := os.ReadFile("../../shared/data/observe/engines/vllm-v0.26.0-families.txt")
	if err != nil {
		t.Skip("the captured families are not here: ", err)
	}
	var e strings.Builder
	count := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			e.WriteString("# TYPE " + line)
			count++
		}
	}
	x := mustParse(t, e.String())
	d := detect(x)
	if d == nil || d.name != "vllm" || count < 30 {
		t.Fatalf("detected %v of %d families", d, count)
	}
	c := d.check(x)
	c.Unknown = nil // types without series tell no values
	if len(c.Missing)+len(c.Renamed)+len(c.Changed) > 0 {
		t.Errorf("the release breaks its own contract: %+v", c)
	}
	for name, kind := range x.types {
		if d.kindOf(name) != kind {
			t.Errorf("%s %s of the release is a %q in the list", name, kind, d.kindOf(name))
		}
	}
}

func TestContractOfGPUs(t *testing.T) {
	text, err := os.ReadFile("../../shared/data/observe/dcgm/default-counters.csv")
	if err != nil {
		t.Skip("the exporter's counters are not here: ", err)
	}
	on := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(line, ","); len(f) >= 3 && !strings.HasPrefix(line, "#") {
			on[strings.TrimSpace(f[0])] = strings.TrimSpace(f[1])
		}
	}
	for _, f := range dialects[len(dialects)-1].list {
		if on[f.name] != f.kind && !f.optional {
			t.Errorf("%s is a %q of the exporter's defaults, a %s here", f.name, on[f.name], f.kind)
		}
	}
}

func TestMissingIsUnknownNotZero(t *testing.T) {
	s := span(t, "vllm:num_requests_running 1\n", "vllm:num_requests_running 1\n")
	if diff := diff.Diff(map[string]float64{"running": 1}, s.Snapshots[0].Values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	c := dialects[0].check(mustParse(t, "vllm:num_requests_running 1\n"))
	if !slices.Contains(c.Missing, "vllm:prefix_cache_hits_total") || !slices.Contains(c.Unknown, "prefix_hit_tokens") {
		t.Errorf("contract %+v does not tell that prefix hits are missing", c)
	}
	if slices.Contains(c.Missing, "vllm:estimated_flops_per_gpu_total") {
		t.Error("a family that needs a flag is held to be missing")
	}
}

func TestRenamedIsReadWithAWarning(t *testing.T) {
	text := strings.NewReplacer("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total").Replace(fixture(t, "vllm")["before"])
	e := mustParse(t, text)
	c := dialects[0].check(e)
	want := []string{"vllm:kv_cache_usage_perc is called vllm:gpu_cache_usage_perc", "vllm:prefix_cache_hits_total is called vllm:gpu_prefix_cache_hits_total"}
	if diff := diff.Diff(want, c.Renamed); diff != "" {
		t.Errorf("renamed (-want +got):\n%s", diff)
	}
	v := dialects[0].read(e).values
	if v["kv_usage_ratio"] != .75 || v["prefix_hit_tokens"] != 100 {
		t.Errorf("values %v", v)
	}
	words := strings.Join(c.Words(), "\n")
	if !strings.Contains(words, "under other names") {
		t.Errorf("words %q", words)
	}
}

func TestChangedTypeIsAnErrorAndNotRead(t *testing.T) {
	text := strings.Replace(fixture(t, "vllm")["before"], "# TYPE vllm:num_preemptions_total counter", "# TYPE vllm:num_preemptions_total gauge", 1)
	e := mustParse(t, text)
	c := dialects[0].check(e)
	if diff := diff.Diff([]string{"vllm:num_preemptions_total is a gauge, not a counter"}, c.Changed); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	if v, ok := dialects[0].read(e).values["preemptions"]; ok {
		t.Errorf("preemptions %v was read", v)
	}
	if words := c.Words(); len(words) == 0 || !strings.HasPrefix(words[0], "error: ") {
		t.Errorf("words %q", words)
	}
}

func TestNoNumberIsUnknown(t *testing.T) {
	for _, no := range []string{"NaN", "nan", "+Inf", "-Inf"} {
		text := "vllm:kv_cache_usage_perc{engine=\"0\"} 0.5\nvllm:kv_cache_usage_perc{engine=\"1\"} " + no + "\n"
		if v, ok := dialects[0].read(mustParse(t, text)).values["kv_usage_ratio"]; ok {
			t.Errorf("with %s the worst cache use is %v, want unknown", no, v)
		}
	}
}

const counting = "# TYPE vllm:generation_tokens_total counter\n"

func tokens(zero, one string) string {
	return counting + "vllm:generation_tokens_total{engine=\"0\"} " + zero + "\nvllm:generation_tokens_total{engine=\"1\"} " + one + "\n"
}

func TestResets(t *testing.T) {
	for name, c := range map[string]struct {
		texts []string
		lost  string
		want  float64
	}{
		"none":                     {[]string{tokens("5", "5"), tokens("6", "7")}, "", 3},
		"fell":                     {[]string{tokens("5", "5"), tokens("1", "1")}, "reset", 0},
		"one replica, sum grew":    {[]string{tokens("5", "5"), tokens("1", "50")}, "reset", 0},
		"between, edges hide it":   {[]string{tokens("5", "5"), tokens("0", "0"), tokens("9", "9")}, "reset", 0},
		"a replica went":           {[]string{tokens("5", "5"), counting + "vllm:generation_tokens_total{engine=\"0\"} 50\n"}, "reset", 0},
		"a replica came":           {[]string{counting + "vllm:generation_tokens_total{engine=\"0\"} 5\n", tokens("6", "2")}, "", 3},
		"came within the window":   {[]string{counting, tokens("5", "5")}, "at the start", 0},
		"went within the window":   {[]string{tokens("5", "5"), counting}, "ceased", 0},
		"restarted and caught up":  {[]string{tokens("5", "5") + "process_start_time_seconds 10\n", tokens("9", "9") + "process_start_time_seconds 20\n"}, "reset", 0},
		"same process, grew":       {[]string{tokens("5", "5") + "process_start_time_seconds 10\n", tokens("9", "9") + "process_start_time_seconds 10\n"}, "", 8},
		"one scrape is no window":  {[]string{tokens("5", "5")}, "no scrape from the start", 0},
		"unknown within a replica": {[]string{tokens("5", "5"), tokens("6", "NaN"), tokens("7", "7")}, "ceased", 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := Between(span(t, c.texts...))
			v, ok := d.Values["gen_tokens"]
			if ok != (c.lost == "") || v != c.want {
				t.Errorf("tokens %v (known %v), want %v (known %v)", v, ok, c.want, c.lost == "")
			}
			if !strings.Contains(d.Lost["gen_tokens"], c.lost) || ok && d.Lost["gen_tokens"] != "" {
				t.Errorf("lost: %q, want %q in it", d.Lost["gen_tokens"], c.lost)
			}
			side := Summarize("v", "w", folded([]Span{span(t, tokens("1", "1"), tokens("2", "2")), span(t, c.texts...)}))
			if _, ok := side.Values["gen_tokens"]; ok != (c.lost == "") {
				t.Errorf("the sum over two windows is known: %v", ok)
			}
		})
	}
}

func TestWindowWithoutScrapesIsNotZero(t *testing.T) {
	s := Summarize("v", "w", folded([]Span{span(t, tokens("1", "1"), tokens("2", "2")), {Failed: 3}}))
	if v, ok := s.Values["gen_tokens"]; ok || s.Blind != 1 || s.Failed != 3 || s.Windows != 2 {
		t.Errorf("tokens %v (known %v), %+v", v, ok, s)
	}
}

func TestBucketsGrow(t *testing.T) {
	f := fixture(t, "vllm")
	d := Between(span(t, f["before"], f["after"]))
	want := map[string][]Bucket{
		"ttft_seconds":  {{.1, 1}, {1, 4}},
		"queue_seconds": {{.3, 3}},
	}
	if diff := diff.Diff(want, d.Buckets, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("buckets (-want +got):\n%s", diff)
	}
	f = fixture(t, "triton")
	d = Between(span(t, f["before"], f["after"]))
	if diff := diff.Diff([]Bucket{{.1, 1}}, d.Buckets["ttft_seconds"]); diff != "" {
		t.Errorf("buckets in milliseconds (-want +got):\n%s", diff)
	}
}

func TestGaugesAreTimeMeans(t *testing.T) {
	var texts []string
	for _, n := range []int{0, 2, 8, 8, 50, 0} {
		texts = append(texts, fmt.Sprintf("vllm:num_requests_running %d\n", n))
	}
	s := span(t, texts...)
	for i, at := range []time.Duration{0, 1, 2, 6, 7, 8} {
		s.Snapshots[i].At = record.At(at * time.Second)
	}
	s.Snapshots[4].Edge = edgeSettling
	d := Between(s)
	if got := d.Values["running_mean"]; got != (5+4*8)/5. { // a second of 2 to 8, four of 8
		t.Errorf("mean %v, want 7.4", got)
	}
	if d.Values["running_max"] != 8 || d.Values["running_min"] != 2 || d.Seconds != 8 {
		t.Errorf("%+v", d)
	}
}

// TestEnergyNeedsReadings: an exporter that reads the energy every 30 seconds says
// nothing of a window of a minute.
func TestEnergyNeedsReadings(t *testing.T) {
	for every, known := range map[int]bool{1: true, 5: true, 30: false} {
		var texts []string
		for i := range 61 {
			texts = append(texts, fmt.Sprintf("# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\nDCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"0\"} %d\nDCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"1\"} %d\n", i/every*every*300e3, i/every*every*100e3))
		}
		side := Summarize("v", "w", folded([]Span{span(t, texts...)}))
		rec := made(0, 300)
		rec.Output = record.Tokens(1200)
		Reconcile(&side, []record.Record{rec, rec})
		joules, ok := side.Values["gpu_energy_joules"]
		each, also := side.Values["gpu_joules_per_output_token"]
		if ok != known || also != known || known && (joules != 60*400 || each != 10) {
			t.Errorf("read every %d s: %v J (known %v), %v J a token, want 24000 and 10 (known %v); lost: %v", every, joules, ok, each, known, side.Lost)
		}
	}
}

// TestIdleEdgesAreNoGauge: two scrapes of an idle engine around a window say nothing
// of how busy it was within.
func TestIdleEdgesAreNoGauge(t *testing.T) {
	const idle = "vllm:num_requests_running 0\nvllm:kv_cache_usage_perc 0\n"
	side := Summarize("v", "w", folded([]Span{around(span(t, idle, idle, idle)), span(t, idle, idle, idle, idle)}))
	if len(side.Values) > 0 || !strings.Contains(side.Lost["kv_usage_ratio"], "too short") {
		t.Errorf("values %v, lost %v", side.Values, side.Lost)
	}
}

func made(cached, prompt int64) record.Record {
	return record.Record{
		Variant: "v", Workload: "w", Outcome: record.OK, Send: record.At(0), Prompt: record.Tokens(prompt), Cached: record.Tokens(cached),
		Events: []record.Event{{At: record.At(300 * time.Millisecond), Kind: record.KindContent}},
	}
}

func TestReconcile(t *testing.T) {
	failed := made(0, 300)
	failed.Outcome = record.StallTimeout
	silent := made(-1, 300)
	cancelled := made(-1, 0)
	cancelled.Outcome, cancelled.Prompt = record.ClientCancelled, 0
	for name, c := range map[string]struct {
		values  map[string]float64
		records []record.Record
		want    map[string]float64
		note    string
	}{
		"agree": {
			map[string]float64{"prompt_tokens": 600, "prompt_cached_tokens": 200},
			[]record.Record{made(100, 300), made(100, 300), {Variant: "other", Workload: "w"}, {Variant: "v", Workload: "w", Phase: record.WarmUp}},
			map[string]float64{"client_ttft_seconds_mean": .3, "usage_prompt_tokens": 600, "usage_cached_tokens": 200, "usage_cached_ratio": 1. / 3},
			"",
		},
		"others": {
			map[string]float64{"prompt_tokens": 900},
			[]record.Record{made(100, 300), made(100, 300)},
			map[string]float64{"usage_prompt_tokens": 600},
			"served others",
		},
		"one of several": {
			map[string]float64{"prompt_tokens": 300},
			[]record.Record{made(100, 300), made(100, 300)},
			map[string]float64{"usage_prompt_tokens": 600},
			"one replica of several",
		},
		"cached apart": {
			map[string]float64{"prompt_tokens": 600, "prompt_cached_tokens": 400},
			[]record.Record{made(0, 300), made(0, 300)},
			map[string]float64{"usage_cached_tokens": 0, "usage_cached_ratio": 0},
			"cached prompt tokens",
		},
		"cancelled ones tell nothing": {
			map[string]float64{"prompt_computed_tokens": 700},
			[]record.Record{made(100, 300), cancelled, made(100, 300)},
			map[string]float64{"usage_prompt_tokens": 600, "usage_cached_tokens": 200, "usage_cached_ratio": 1. / 3, "prompt_cached_tokens": unknown, "prefix_hit_ratio": unknown},
			"",
		},
		"nothing but cancelled ones": {
			map[string]float64{"prompt_computed_tokens": 700},
			[]record.Record{cancelled},
			map[string]float64{"usage_prompt_tokens": unknown, "usage_cached_ratio": unknown},
			"",
		},
		"usage without cache": {
			map[string]float64{"prompt_tokens": 600, "prompt_cached_tokens": 400},
			[]record.Record{made(0, 300), silent},
			map[string]float64{"usage_prompt_tokens": 600, "usage_cached_tokens": unknown, "usage_cached_ratio": unknown},
			"",
		},
		"a failed one may have cost tokens": {
			map[string]float64{"prompt_tokens": 900},
			[]record.Record{made(0, 300), failed},
			map[string]float64{"usage_prompt_tokens": 600},
			"",
		},
		"llama.cpp counts what it computed": {
			map[string]float64{"prompt_computed_tokens": 450},
			[]record.Record{made(75, 300), made(75, 300)},
			map[string]float64{"prompt_cached_tokens": 150, "prompt_cached_ratio": .25, "prefix_hit_ratio": .25},
			"",
		},
		"no records": {map[string]float64{"prompt_tokens": 5}, nil, map[string]float64{"usage_prompt_tokens": unknown, "client_ttft_seconds_mean": unknown}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			side := record.EngineSide{Variant: "v", Workload: "w", Values: c.values}
			Reconcile(&side, c.records)
			for key, v := range c.want {
				if got, ok := side.Values[key]; math.IsNaN(v) == ok || ok && math.Abs(got-v) > 1e-12 {
					t.Errorf("%s = %v (known %v), want %v", key, got, ok, v)
				}
			}
			notes := strings.Join(side.Notes, "\n")
			if !strings.Contains(notes, c.note) || (c.note == "") != (notes == "") {
				t.Errorf("notes %q, want %q in them", notes, c.note)
			}
		})
	}
}

// TestPageNamesTheVocabulary keeps docs/format/engine.md complete.
func TestPageNamesTheVocabulary(t *testing.T) {
	page, err := os.ReadFile("../docs/format/engine.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range Quantities() {
		if line := "| " + q.Name + " | " + q.Kind.String() + " | " + q.Doc + " |"; !strings.Contains(string(page), line) {
			t.Errorf("the page lacks %s", line)
		}
	}
	for _, d := range dialects {
		if !strings.Contains(string(page), "`"+d.name+"`") {
			t.Errorf("the page lacks the engine %s", d.name)
		}
	}
}

func folded(spans []Span) (heard []Heard) {
	for _, s := range spans {
		heard = append(heard, Fold(s))
	}
	return heard
}

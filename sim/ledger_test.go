package sim

import (
	"encoding/json"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

func TestServerMetrics(t *testing.T) {
	known, err := os.ReadFile("../../shared/data/observe/engines/vllm-v0.26.0-families.txt")
	if err != nil {
		t.Logf("the names are not compared with vLLM's: %v", err)
	}
	inBubble(t, Config{Step: Step{Base: 10e6}}, func(t *testing.T, r *rig) {
		for i := range 3 {
			r.post(t, strconv.Itoa(i), "/v1/completions", `{"prompt":"`+strings.Repeat("word ", 99)+`","max_tokens":11,"stream":true}`)
		}
		resp, err := r.client.Get("http://sim:80/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		labels := `{engine="0",model_name="sim"} `
		for _, want := range []string{
			"vllm:num_requests_running" + labels + "0",
			"vllm:kv_cache_usage_perc" + labels + "0",
			"vllm:prompt_tokens_total" + labels + "300",
			"vllm:generation_tokens_total" + labels + "33",
			"vllm:prefix_cache_queries_total" + labels + "300",
			"vllm:prefix_cache_hits_total" + labels + "192", // two prompts of 6 full blocks
			"vllm:num_preemptions_total" + labels + "0",
			`vllm:request_success_total{engine="0",model_name="sim",finished_reason="length"} 3`,
			"vllm:time_to_first_token_seconds_count" + labels + "3",
			`vllm:time_to_first_token_seconds_bucket{engine="0",model_name="sim",le="0.01"} 0`,
			`vllm:time_to_first_token_seconds_bucket{engine="0",model_name="sim",le="0.02"} 3`,
			"vllm:inter_token_latency_seconds_count" + labels + "30",
			`vllm:cache_config_info{engine="0",model_name="sim",block_size="16",num_gpu_blocks="16384",enable_prefix_caching="true"} 1`,
		} {
			if !strings.Contains(string(body), want+"\n") {
				t.Errorf("no line %s", want)
			}
		}
		families := 0
		for line := range strings.Lines(string(body)) {
			if family, ok := strings.CutPrefix(line, "# TYPE "); ok {
				families++
				if known != nil && !strings.Contains(string(known), family) {
					t.Errorf("vLLM 0.26 has no family %s", family)
				}
			}
		}
		if families < 20 {
			t.Errorf("%d families", families)
		}
	})
}

func TestHistogramBoundsAreInclusive(t *testing.T) {
	h := newHistogram([]float64{1, 2})
	for _, v := range []float64{0, 1, 1.5, 2, 2.5} {
		h.add(v)
	}
	if want := []int64{2, 2, 1}; !slices.Equal(h.counts, want) || h.sum != 7 {
		t.Errorf("counts %v, sum %v; want %v, 7", h.counts, h.sum, want)
	}
}

func TestLedgerAsJSONLines(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, r *rig) {
		r.post(t, "one", "/v1/completions", `{"prompt":"x","max_tokens":3}`)
		r.post(t, "two", "/v1/completions", `{`)
		synctest.Wait()
		resp, err := r.client.Get("http://sim:80/ledger")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		dec := json.NewDecoder(resp.Body)
		var entries []Entry
		for dec.More() {
			var e Entry
			if err := dec.Decode(&e); err != nil {
				t.Fatal(err)
			}
			entries = append(entries, e)
		}
		if diff := cmp.Diff(r.Ledger(), entries); diff != "" {
			t.Error(diff)
		}
	})
}

func TestLedgerIsBounded(t *testing.T) {
	l := ledger{limit: 100}
	const requests = 1010
	for i := range requests {
		if n := l.open(Entry{ID: strconv.Itoa(i)}); n != i {
			t.Fatalf("request %d has number %d", i, n)
		}
	}
	l.close(0, Entry{ID: "late"}) // forgotten: no effect, no panic
	l.close(requests-1, Entry{ID: "last"})
	entries, dropped := l.copy()
	if len(entries) > 100 || len(entries)+dropped != requests || entries[len(entries)-1].ID != "last" || entries[0].ID != strconv.Itoa(dropped) {
		t.Errorf("%d entries, %d dropped", len(entries), dropped)
	}
}

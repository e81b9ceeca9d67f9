package engine

import (
	"embed"
	"fmt"
	"strings"
)

// fold says how the series of one family become one number.
type fold uint8

const (
	sum  fold = iota
	most      // the largest
	least
	mean
)

// rule reads one quantity off an exposition.
type rule struct {
	ours   string   // a quantity, or a part of a histogram such as ttft_seconds_sum
	theirs string   // the family
	was    []string // names that the family had in other versions: read with a warning
	part   string   // "_sum" or "_count" of a histogram, for a counter of ours
	where  []label  // series that count; a value that ends in * is a prefix
	fold   fold
	scale  float64   // theirs × scale = ours; 0: 1
	plus   []string  // families that add to it where they are there
	times  string    // a family that it is multiplied by
	info   [2]string // labels of an info family whose product it is
	limit  float64   // values above are a sentinel for "not available"; 0: none
}

// dialect is how one engine writes its metrics. It is data.
type dialect struct {
	name   string  // also that of its list in families/
	prefix string  // of its families
	old    string  // prefix that they had before; "": none
	one    []label // a series that has such a label counts only with this value
	reset  string  // POST empties the prefix cache; "": the engine cannot
	rules  []rule
	list   []family // the metric contract
}

// family is a line of the metric contract.
type family struct {
	name, kind string
	optional   bool // served only with some flag, hardware or version
}

const (
	gigabyte  = 1 << 30 // what SGLang calls GB
	megahertz = 1e6
	mebibyte  = 1 << 20
)

var dialects = []*dialect{
	{name: "vllm", prefix: "vllm:", reset: "/reset_prefix_cache", rules: []rule{
		{ours: "running", theirs: "vllm:num_requests_running"},
		{ours: "waiting", theirs: "vllm:num_requests_waiting"},
		{ours: "kv_usage_ratio", theirs: "vllm:kv_cache_usage_perc", was: []string{"vllm:gpu_cache_usage_perc"}, fold: most},
		{ours: "kv_capacity_tokens", theirs: "vllm:cache_config_info", info: [2]string{"num_gpu_blocks", "block_size"}},
		{ours: "prefix_hit_tokens", theirs: "vllm:prefix_cache_hits_total", was: []string{"vllm:gpu_prefix_cache_hits_total"}},
		{ours: "prefix_queried_tokens", theirs: "vllm:prefix_cache_queries_total", was: []string{"vllm:gpu_prefix_cache_queries_total"}},
		{ours: "external_hit_tokens", theirs: "vllm:external_prefix_cache_hits_total"},
		{ours: "external_queried_tokens", theirs: "vllm:external_prefix_cache_queries_total"},
		{ours: "prompt_tokens", theirs: "vllm:prompt_tokens_total"},
		{ours: "prompt_cached_tokens", theirs: "vllm:prompt_tokens_cached_total"},
		{ours: "gen_tokens", theirs: "vllm:generation_tokens_total"},
		{ours: "preemptions", theirs: "vllm:num_preemptions_total"},
		{ours: "queue_seconds", theirs: "vllm:request_queue_time_seconds"},
		{ours: "prefill_seconds", theirs: "vllm:request_prefill_time_seconds"},
		{ours: "decode_seconds", theirs: "vllm:request_decode_time_seconds"},
		{ours: "ttft_seconds", theirs: "vllm:time_to_first_token_seconds"},
		{ours: "itl_seconds", theirs: "vllm:inter_token_latency_seconds", was: []string{"vllm:time_per_output_token_seconds"}},
		{ours: "tpot_seconds", theirs: "vllm:request_time_per_output_token_seconds"},
		{ours: "e2e_seconds", theirs: "vllm:e2e_request_latency_seconds"},
		{ours: "step_tokens", theirs: "vllm:iteration_tokens_total"},
		{ours: "finished", theirs: "vllm:request_success_total"},
		{ours: "aborted", theirs: "vllm:request_success_total", where: []label{{"finished_reason", "abort"}}},
		{ours: "failed", theirs: "vllm:request_success_total", where: []label{{"finished_reason", "error"}}},
		{ours: "est_flops", theirs: "vllm:estimated_flops_per_gpu_total"},
		{ours: "est_read_bytes", theirs: "vllm:estimated_read_bytes_per_gpu_total"},
		{ours: "est_write_bytes", theirs: "vllm:estimated_write_bytes_per_gpu_total"},
		{ours: "spec_drafts", theirs: "vllm:spec_decode_num_drafts_total"},
		{ours: "spec_draft_tokens", theirs: "vllm:spec_decode_num_draft_tokens_total"},
		{ours: "spec_accepted_tokens", theirs: "vllm:spec_decode_num_accepted_tokens_total"},
		{ours: "awake", theirs: "vllm:engine_sleep_state", where: []label{{"sleep_state", "awake"}}, fold: least},
		{ours: "start_time_seconds", theirs: "process_start_time_seconds", fold: most},
	}},
	{name: "sglang", prefix: "sglang:", reset: "/flush_cache", one: []label{{"tp_rank", "0"}, {"pp_rank", "0"}}, rules: []rule{
		{ours: "running", theirs: "sglang:num_running_reqs"},
		{ours: "waiting", theirs: "sglang:num_queue_reqs", plus: []string{"sglang:num_grammar_queue_reqs", "sglang:num_prefill_prealloc_queue_reqs", "sglang:num_decode_prealloc_queue_reqs", "sglang:num_decode_transfer_queue_reqs"}},
		{ours: "kv_usage_ratio", theirs: "sglang:token_usage", fold: most},
		{ours: "kv_capacity_tokens", theirs: "sglang:max_total_num_tokens"},
		// Both are counted when a request ends. The gauge cache_hit_rate is of the last batch only.
		{ours: "prefix_hit_tokens", theirs: "sglang:cached_tokens_total"},
		{ours: "prefix_queried_tokens", theirs: "sglang:prompt_tokens_total"},
		{ours: "prompt_tokens", theirs: "sglang:prompt_tokens_total"},
		{ours: "prompt_cached_tokens", theirs: "sglang:cached_tokens_total"},
		{ours: "gen_tokens", theirs: "sglang:generation_tokens_total"},
		{ours: "preemptions", theirs: "sglang:num_retracted_requests_total"},
		// Every rank of a tensor-parallel group counts, without a label to tell them apart.
		{ours: "evicted_tokens", theirs: "sglang:evicted_tokens_total"},
		{ours: "queue_seconds", theirs: "sglang:queue_time_seconds"},
		{ours: "prefill_seconds", theirs: "sglang:per_stage_req_latency_seconds", where: []label{{"stage", "prefill_forward"}}},
		{ours: "ttft_seconds", theirs: "sglang:time_to_first_token_seconds"},
		{ours: "itl_seconds", theirs: "sglang:inter_token_latency_seconds"},
		{ours: "e2e_seconds", theirs: "sglang:e2e_request_latency_seconds"},
		{ours: "finished", theirs: "sglang:num_requests_total"},
		{ours: "aborted", theirs: "sglang:num_aborted_requests_total"},
		{ours: "est_flops", theirs: "sglang:estimated_flops_per_gpu_total"},
		{ours: "est_read_bytes", theirs: "sglang:estimated_read_bytes_per_gpu_total"},
		{ours: "est_write_bytes", theirs: "sglang:estimated_write_bytes_per_gpu_total"},
		{ours: "spec_accept_length", theirs: "sglang:spec_accept_length", fold: mean},
		{ours: "weight_bytes", theirs: "sglang:weight_memory_usage_gb", scale: gigabyte},
		{ours: "kv_bytes", theirs: "sglang:kv_cache_memory_usage_gb", scale: gigabyte},
		{ours: "graph_bytes", theirs: "sglang:graph_memory_usage_gb", scale: gigabyte},
		{ours: "start_time_seconds", theirs: "process_start_time_seconds", fold: most},
	}},
	{name: "tgi", prefix: "tgi_", rules: []rule{
		{ours: "running", theirs: "tgi_batch_current_size"},
		{ours: "waiting", theirs: "tgi_queue_size"},
		{ours: "prompt_tokens", theirs: "tgi_request_input_length", part: "_sum"},
		{ours: "gen_tokens", theirs: "tgi_request_generated_tokens", part: "_sum"},
		{ours: "queue_seconds", theirs: "tgi_request_queue_duration"},
		{ours: "prefill_batch_seconds", theirs: "tgi_batch_forward_duration", where: []label{{"method", "prefill"}}},
		{ours: "decode_batch_seconds", theirs: "tgi_batch_forward_duration", where: []label{{"method", "decode"}}},
		{ours: "tpot_seconds", theirs: "tgi_request_mean_time_per_token_duration"},
		{ours: "e2e_seconds", theirs: "tgi_request_duration"},
		{ours: "finished", theirs: "tgi_request_success"},
		{ours: "failed", theirs: "tgi_request_failure"},
	}},
	{name: "trtllm", prefix: "trtllm_", old: "trtllm:", rules: []rule{
		{ours: "running", theirs: "trtllm_num_requests_running"},
		{ours: "waiting", theirs: "trtllm_num_requests_waiting"},
		{ours: "paused", theirs: "trtllm_num_paused_requests"},
		{ours: "kv_usage_ratio", theirs: "trtllm_kv_cache_utilization", fold: most},
		{ours: "kv_capacity_tokens", theirs: "trtllm_kv_cache_max_blocks", times: "trtllm_kv_cache_tokens_per_block"},
		{ours: "prefix_hit_blocks", theirs: "trtllm_kv_cache_reused_blocks_total"},
		{ours: "prefix_missed_blocks", theirs: "trtllm_kv_cache_missed_blocks_total"},
		{ours: "prompt_tokens", theirs: "trtllm_prompt_tokens_total"},
		{ours: "prompt_cached_tokens", theirs: "trtllm_prompt_cached_tokens_total"},
		{ours: "gen_tokens", theirs: "trtllm_generation_tokens_total"},
		{ours: "queue_seconds", theirs: "trtllm_request_queue_time_seconds"},
		{ours: "prefill_seconds", theirs: "trtllm_request_prefill_time_seconds"},
		{ours: "decode_seconds", theirs: "trtllm_request_decode_time_seconds"},
		{ours: "ttft_seconds", theirs: "trtllm_time_to_first_token_seconds"},
		{ours: "tpot_seconds", theirs: "trtllm_time_per_output_token_seconds"},
		{ours: "e2e_seconds", theirs: "trtllm_e2e_request_latency_seconds"},
		{ours: "step_seconds", theirs: "trtllm_iteration_latency_seconds"},
		{ours: "finished", theirs: "trtllm_request_success_total"},
		{ours: "failed", theirs: "trtllm_request_error_total"},
		{ours: "memory_bytes", theirs: "trtllm_gpu_memory_usage_bytes"},
	}},
	// Triton counts a request once in each model of an ensemble: only the one that generates counts.
	{name: "triton", prefix: "nv_", rules: []rule{
		{ours: "running", theirs: "nv_trt_llm_request_metrics", where: []label{{"request_type", "active"}}},
		{ours: "waiting", theirs: "nv_trt_llm_request_metrics", where: []label{{"request_type", "waiting"}}},
		{ours: "kv_usage_ratio", theirs: "nv_trt_llm_kv_cache_block_metrics", where: []label{{"kv_cache_block_type", "fraction"}}, fold: most},
		{ours: "queue_seconds_sum", theirs: "nv_inference_queue_duration_us", where: []label{{"model", "tensorrt_llm"}}, scale: 1e-6},
		{ours: "queue_seconds_count", theirs: "nv_inference_request_success", where: []label{{"model", "tensorrt_llm"}}},
		{ours: "ttft_seconds", theirs: "nv_inference_first_response_histogram_ms", where: []label{{"model", "tensorrt_llm"}}, scale: 1e-3},
		{ours: "finished", theirs: "nv_inference_request_success", where: []label{{"model", "tensorrt_llm"}}},
		{ours: "failed", theirs: "nv_inference_request_failure", where: []label{{"model", "tensorrt_llm"}}},
	}},
	{name: "llamacpp", prefix: "llamacpp:", rules: []rule{
		{ours: "running", theirs: "llamacpp:requests_processing"},
		{ours: "waiting", theirs: "llamacpp:requests_deferred"},
		{ours: "kv_usage_ratio", theirs: "llamacpp:kv_cache_usage_ratio", fold: most},
		{ours: "prompt_computed_tokens", theirs: "llamacpp:prompt_tokens_total"},
		{ours: "gen_tokens", theirs: "llamacpp:tokens_predicted_total"},
		{ours: "prefill_seconds_sum", theirs: "llamacpp:prompt_seconds_total"},
		{ours: "decode_seconds_sum", theirs: "llamacpp:tokens_predicted_seconds_total"},
		{ours: "steps", theirs: "llamacpp:n_decode_total"},
	}},
	{name: "dcgm", prefix: "DCGM_", rules: []rule{
		{ours: "gpu_busy_ratio", theirs: "DCGM_FI_DEV_GPU_UTIL", fold: mean, scale: .01, limit: 100},
		{ours: "gpu_mem_copy_busy_ratio", theirs: "DCGM_FI_DEV_MEM_COPY_UTIL", fold: mean, scale: .01, limit: 100},
		{ours: "gpu_sm_active_ratio", theirs: "DCGM_FI_PROF_SM_ACTIVE", fold: mean, limit: 1},
		{ours: "gpu_sm_occupancy_ratio", theirs: "DCGM_FI_PROF_SM_OCCUPANCY", fold: mean, limit: 1},
		{ours: "gpu_tensor_active_ratio", theirs: "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", fold: mean, limit: 1},
		{ours: "gpu_dram_active_ratio", theirs: "DCGM_FI_PROF_DRAM_ACTIVE", fold: mean, limit: 1},
		{ours: "gpu_gr_active_ratio", theirs: "DCGM_FI_PROF_GR_ENGINE_ACTIVE", fold: mean, limit: 1},
		{ours: "gpu_fb_used_bytes", theirs: "DCGM_FI_DEV_FB_USED", scale: mebibyte, limit: sentinel},
		{ours: "gpu_fb_free_bytes", theirs: "DCGM_FI_DEV_FB_FREE", scale: mebibyte, limit: sentinel},
		{ours: "gpu_power_watts", theirs: "DCGM_FI_DEV_POWER_USAGE", limit: sentinel},
		{ours: "gpu_energy_joules", theirs: "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", scale: 1e-3, limit: blank},
		{ours: "gpu_temperature_celsius", theirs: "DCGM_FI_DEV_GPU_TEMP", fold: most, limit: sentinel},
		{ours: "gpu_sm_clock_hertz", theirs: "DCGM_FI_DEV_SM_CLOCK", fold: least, scale: megahertz, limit: sentinel},
		{ours: "gpu_mem_clock_hertz", theirs: "DCGM_FI_DEV_MEM_CLOCK", fold: least, scale: megahertz, limit: sentinel},
		{ours: "gpu_xid_last", theirs: "DCGM_FI_DEV_XID_ERRORS", fold: most, limit: sentinel},
		{ours: "gpu_pcie_replays", theirs: "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", limit: sentinel},
	}},
}

// What DCGM writes where it has no value begins here: 2³¹ − 16 as a 32-bit
// integer, 2⁴⁷ as a floating-point number, 2⁶³ − 16 as an integer.
const (
	sentinel = 0x7ffffff0 - 1
	blank    = 140737488355328 - 1
)

//go:embed families/*.txt
var lists embed.FS

// The lists are read once; a broken one breaks every test.
func init() {
	for _, d := range dialects {
		text, err := lists.ReadFile("families/" + d.name + ".txt")
		if err != nil {
			panic("engine: " + err.Error())
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			switch {
			case len(f) == 0 || f[0] == "#":
			case len(f) == 2 || len(f) == 3 && f[2] == "optional":
				d.list = append(d.list, family{f[0], f[1], len(f) == 3})
			default:
				panic(fmt.Sprintf("engine: families/%s.txt: %q is not a family", d.name, line))
			}
		}
	}
}

// kindOf returns the type that the contract gives a family.
func (d *dialect) kindOf(name string) string {
	for _, f := range d.list {
		if f.name == name {
			return f.kind
		}
	}
	return ""
}

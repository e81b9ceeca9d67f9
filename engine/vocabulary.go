package engine

import "strings"

// Kind says how a quantity behaves over time.
type Kind uint8

// The kinds of quantities.
const (
	Gauge     Kind = iota // a level, now
	Counter               // only grows; falls when the engine restarts
	Histogram             // counters of observations: NAME_sum, NAME_count, buckets
)

// String returns the kind's name as Prometheus has it.
func (k Kind) String() string { return [...]string{"gauge", "counter", "histogram"}[k] }

// Quantity is one entry of the vocabulary.
type Quantity struct {
	Name string // with its unit, if it has one; exported as Prefix + Name
	Kind Kind
	Doc  string
}

// Prefix is put before the name of a quantity where it leaves this program.
const Prefix = "assay_engine_"

// Quantities returns the vocabulary. A quantity means the same for every engine that has it.
func Quantities() []Quantity { return append([]Quantity(nil), vocabulary...) }

var vocabulary = []Quantity{
	{"running", Gauge, "requests in the running batch"},
	{"waiting", Gauge, "requests that wait to be scheduled"},
	{"paused", Gauge, "requests set aside for want of KV blocks"},
	{"kv_usage_ratio", Gauge, "share of the KV cache in use, 0 to 1; of the fullest replica"},
	{"kv_capacity_tokens", Gauge, "tokens that the KV cache holds"},
	{"prefix_hit_tokens", Counter, "prompt tokens found in the prefix cache"},
	{"prefix_queried_tokens", Counter, "prompt tokens looked up in the prefix cache"},
	{"prefix_hit_blocks", Counter, "KV blocks reused from the prefix cache"},
	{"prefix_missed_blocks", Counter, "KV blocks looked for in the prefix cache in vain"},
	{"external_hit_tokens", Counter, "prompt tokens found in a cache outside of the engine"},
	{"external_queried_tokens", Counter, "prompt tokens looked up in a cache outside of the engine"},
	{"prompt_tokens", Counter, "prompt tokens of requests, those from a cache included"},
	{"prompt_cached_tokens", Counter, "part of them that came from a cache"},
	{"prompt_computed_tokens", Counter, "prompt tokens that went through the model, those from a cache left out"},
	{"gen_tokens", Counter, "tokens generated"},
	{"preemptions", Counter, "requests sent back to the queue for want of KV blocks"},
	{"evicted_tokens", Counter, "tokens whose KV blocks were evicted from the prefix cache"},
	{"queue_seconds", Histogram, "arrival to the most recent start of the first step, by request"},
	{"prefill_seconds", Histogram, "start of the first step to first token, by request"},
	{"decode_seconds", Histogram, "first to last token, time of preemption included, by request"},
	{"prefill_batch_seconds", Histogram, "time of a prefill step, by batch"},
	{"decode_batch_seconds", Histogram, "time of a decode step, by batch"},
	{"ttft_seconds", Histogram, "arrival at the engine to first token, by request"},
	{"itl_seconds", Histogram, "between two tokens of a request"},
	{"tpot_seconds", Histogram, "mean time of a token, by request"},
	{"e2e_seconds", Histogram, "arrival at the engine to last token, by request"},
	{"step_tokens", Histogram, "tokens computed in a step"},
	{"step_seconds", Histogram, "time of a step"},
	{"steps", Counter, "steps of the engine"},
	{"finished", Counter, "requests that ended, however"},
	{"aborted", Counter, "requests given up by their client"},
	{"failed", Counter, "requests that ended in an error"},
	{"est_flops", Counter, "floating-point operations of a GPU, as the engine estimates"},
	{"est_read_bytes", Counter, "bytes that a GPU read from its memory, as the engine estimates"},
	{"est_write_bytes", Counter, "bytes that a GPU wrote to its memory, as the engine estimates"},
	{"spec_drafts", Counter, "speculative drafts"},
	{"spec_draft_tokens", Counter, "tokens drafted"},
	{"spec_accepted_tokens", Counter, "drafted tokens accepted"},
	{"spec_accept_length", Gauge, "tokens that a verification accepts, mean"},
	{"awake", Gauge, "1 when every replica is awake, 0 when one sleeps"},
	{"weight_bytes", Gauge, "memory of the weights"},
	{"kv_bytes", Gauge, "memory of the KV cache"},
	{"graph_bytes", Gauge, "memory of the captured graphs"},
	{"memory_bytes", Gauge, "GPU memory that the engine uses"},
	{"start_time_seconds", Gauge, "when the process started, since 1970"},
	{"gpu_busy_ratio", Gauge, "share of the time in which a kernel ran, mean of the GPUs"},
	{"gpu_mem_copy_busy_ratio", Gauge, "share of the time in which memory was read or written, mean of the GPUs"},
	{"gpu_sm_active_ratio", Gauge, "share of the multiprocessors with work, mean of the GPUs"},
	{"gpu_sm_occupancy_ratio", Gauge, "share of the warps in residence, mean of the GPUs"},
	{"gpu_tensor_active_ratio", Gauge, "share of the cycles in which tensor cores worked, mean of the GPUs"},
	{"gpu_dram_active_ratio", Gauge, "share of the cycles in which memory moved data, mean of the GPUs"},
	{"gpu_gr_active_ratio", Gauge, "share of the time in which the compute engine was active, mean of the GPUs"},
	{"gpu_fb_used_bytes", Gauge, "memory in use, sum of the GPUs"},
	{"gpu_fb_free_bytes", Gauge, "memory free, sum of the GPUs"},
	{"gpu_power_watts", Gauge, "power draw, sum of the GPUs"},
	{"gpu_energy_joules", Counter, "energy since the driver was loaded, sum of the GPUs"},
	{"gpu_temperature_celsius", Gauge, "temperature of the hottest GPU"},
	{"gpu_sm_clock_hertz", Gauge, "clock of the multiprocessors, of the slowest GPU"},
	{"gpu_mem_clock_hertz", Gauge, "clock of the memory, of the slowest GPU"},
	{"gpu_xid_last", Gauge, "last XID error, 0: none; the largest of the GPUs"},
	{"gpu_pcie_replays", Counter, "PCIe retries, sum of the GPUs"},
}

var byName = func() map[string]Kind {
	m := make(map[string]Kind)
	for _, q := range vocabulary {
		m[q.Name] = q.Kind
	}
	return m
}()

// grows reports whether a value of a snapshot is a counter, or a part of a histogram, which are counters too.
func grows(name string) bool {
	if kind, ok := byName[name]; ok {
		return kind == Counter
	}
	for _, suffix := range []string{"_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, suffix); ok && byName[base] == Histogram {
			return true
		}
	}
	return false
}

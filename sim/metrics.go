package sim

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Upper bounds of the histograms, as vLLM has them.
var (
	firstTokenBounds = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	gapBounds        = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	requestBounds    = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	stepBounds       = []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
	lengthBounds     = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000}
)

// histogram is a Prometheus histogram.
type histogram struct {
	bounds []float64
	counts []int64 // one more than bounds
	sum    float64
}

func newHistogram(bounds []float64) *histogram {
	return &histogram{bounds: bounds, counts: make([]int64, len(bounds)+1)}
}

func (h *histogram) add(x float64) {
	i := 0
	for i < len(h.bounds) && x > h.bounds[i] {
		i++
	}
	h.counts[i]++
	h.sum += x
}

func (h *histogram) addDuration(d time.Duration) { h.add(d.Seconds()) }

// metrics is what the server counts beside the engine's Stats.
type metrics struct {
	firstToken, gap, endToEnd       *histogram
	queue, prefill, decode, infer   *histogram
	perToken, stepTokens            *histogram
	promptLen, outputLen, maxTokens *histogram
	stopped, length, aborted        int64
	failed                          int64
}

func newMetrics() *metrics {
	return &metrics{
		firstToken: newHistogram(firstTokenBounds), gap: newHistogram(gapBounds), endToEnd: newHistogram(requestBounds),
		queue: newHistogram(requestBounds), prefill: newHistogram(requestBounds), decode: newHistogram(requestBounds), infer: newHistogram(requestBounds),
		perToken: newHistogram(gapBounds), stepTokens: newHistogram(stepBounds),
		promptLen: newHistogram(lengthBounds), outputLen: newHistogram(lengthBounds), maxTokens: newHistogram(lengthBounds),
	}
}

// observe enters a token of a stream.
func (m *metrics) observe(st *stream, em *Emission) {
	if em.Index == 0 {
		m.firstToken.addDuration(em.At - st.arrival)
		m.queue.addDuration(em.Queued)
		m.prefill.addDuration(em.At - st.arrival - em.Queued)
		m.promptLen.add(float64(st.prompt))
		m.maxTokens.add(float64(st.limit))
		st.first = em.At
	} else {
		m.gap.addDuration(em.At - st.last)
	}
	st.last = em.At
	if em.Finish == "" {
		return
	}
	m.endToEnd.addDuration(em.At - st.arrival)
	m.decode.addDuration(em.At - st.first)
	m.infer.addDuration(em.At - st.arrival - em.Queued)
	m.outputLen.add(float64(em.Index + 1))
	if em.Index > 0 {
		m.perToken.add((em.At - st.first).Seconds() / float64(em.Index))
	}
	if em.Finish == FinishStop {
		m.stopped++
	} else {
		m.length++
	}
}

// exposition writes the text format of Prometheus.
type exposition struct {
	b      bytes.Buffer
	labels string // without braces
}

func (x *exposition) family(name, kind, help string) {
	fmt.Fprintf(&x.b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func (x *exposition) sample(name, more string, value float64) {
	labels := x.labels
	if more != "" {
		labels += "," + more
	}
	fmt.Fprintf(&x.b, "%s{%s} %s\n", name, labels, strconv.FormatFloat(value, 'g', -1, 64))
}

func (x *exposition) gauge(name, help string, value float64) {
	x.family(name, "gauge", help)
	x.sample(name, "", value)
}

func (x *exposition) counter(name, help string, value int64) {
	x.family(name, "counter", help)
	x.sample(name, "", float64(value))
}

func (x *exposition) histogram(name, help string, h *histogram) {
	x.family(name, "histogram", help)
	total := int64(0)
	for i, bound := range h.bounds {
		total += h.counts[i]
		x.sample(name+"_bucket", `le="`+strconv.FormatFloat(bound, 'g', -1, 64)+`"`, float64(total))
	}
	total += h.counts[len(h.bounds)]
	x.sample(name+"_bucket", `le="+Inf"`, float64(total))
	x.sample(name+"_sum", "", h.sum)
	x.sample(name+"_count", "", float64(total))
}

// serveMetrics writes the engine's metrics under vLLM's names.
func (s *Server) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	x := exposition{labels: `engine="0",model_name=` + strconv.Quote(s.name)}
	s.mu.Lock()
	s.exposeLocked(&x)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = io.Copy(w, &x.b) // the scraper may be gone
}

func (s *Server) exposeLocked(x *exposition) {
	e, m := s.engine.Stats(), s.metrics
	p := s.engine.p
	x.gauge("vllm:num_requests_running", "Sequences in the running batch.", float64(e.Running))
	x.gauge("vllm:num_requests_waiting", "Requests waiting to be scheduled.", float64(e.Waiting))
	x.gauge("vllm:kv_cache_usage_perc", "Share of the KV cache in use, 0 to 1.", float64(e.BlocksUsed)/float64(e.BlocksTotal))
	x.counter("vllm:prefix_cache_queries_total", "Tokens looked up in the prefix cache.", e.PrefixQueries)
	x.counter("vllm:prefix_cache_hits_total", "Tokens found in the prefix cache.", e.PrefixHits)
	x.counter("vllm:prompt_tokens_total", "Prompt tokens of requests that gave a first token.", e.Prompt)
	x.counter("vllm:prompt_tokens_cached_total", "Part of them from the prefix cache.", e.Cached)
	x.counter("vllm:generation_tokens_total", "Tokens generated.", e.Generated)
	x.counter("vllm:num_preemptions_total", "Sequences sent back to the queue for want of blocks.", e.Preemptions)
	x.family("vllm:request_success_total", "counter", "Requests ended, by reason.")
	x.sample("vllm:request_success_total", `finished_reason="stop"`, float64(m.stopped))
	x.sample("vllm:request_success_total", `finished_reason="length"`, float64(m.length))
	x.sample("vllm:request_success_total", `finished_reason="abort"`, float64(m.aborted))
	x.sample("vllm:request_success_total", `finished_reason="error"`, float64(m.failed))
	x.histogram("vllm:iteration_tokens_total", "Tokens computed in a step.", m.stepTokens)
	x.histogram("vllm:time_to_first_token_seconds", "Arrival to first token.", m.firstToken)
	x.histogram("vllm:inter_token_latency_seconds", "Between two tokens of a request.", m.gap)
	x.histogram("vllm:request_time_per_output_token_seconds", "Mean time of a token after the first, by request.", m.perToken)
	x.histogram("vllm:e2e_request_latency_seconds", "Arrival to last token.", m.endToEnd)
	x.histogram("vllm:request_queue_time_seconds", "Arrival to the start of the first step.", m.queue)
	x.histogram("vllm:request_prefill_time_seconds", "Start of the first step to first token.", m.prefill)
	x.histogram("vllm:request_decode_time_seconds", "First to last token.", m.decode)
	x.histogram("vllm:request_inference_time_seconds", "Start of the first step to last token.", m.infer)
	x.histogram("vllm:request_prompt_tokens", "Prompt tokens of a request.", m.promptLen)
	x.histogram("vllm:request_generation_tokens", "Tokens generated for a request.", m.outputLen)
	x.histogram("vllm:request_params_max_tokens", "Limit of output tokens of a request.", m.maxTokens)
	x.family("vllm:cache_config_info", "gauge", "The KV cache.")
	x.sample("vllm:cache_config_info", fmt.Sprintf(`block_size="%d",num_gpu_blocks="%d",enable_prefix_caching="%t"`, p.blockTokens, p.blocks, p.prefixCache), 1)
}

package interop

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/assay-llm/assay/record"
)

// percentiles are those that vLLM's file is given.
var percentiles = []float64{50, 90, 95, 99}

// vllm writes the flat result of vllm bench serve --save-detailed.
func (x *export) vllm(w io.Writer) error {
	if len(x.names) > 1 {
		return fmt.Errorf("the run has the workloads %s, and vLLM's file holds one\n  hint: choose one with --workload", strings.Join(x.names, ", "))
	}
	records := x.measured(x.names[0])
	x.done.Rows = len(records)
	t := x.table(records)
	duration := x.duration(x.names[0], records)
	perSecond := func(v float64) maybe {
		if !duration.ok || duration.v <= 0 {
			return maybe{}
		}
		return some(v / duration.v)
	}
	out := []field{
		{"date", x.manifest.Start.UTC().Format("20060102-150405")},
		{"endpoint_type", endpoint(x.of.API)},
		{"backend", endpoint(x.of.API)},
		{"label", nil},
		{"model_id", x.of.Model},
		{"tokenizer_id", nil},
		{"num_prompts", len(records)},
		{"exported_by", "assay " + x.manifest.Assay},
		{"assay_run", x.manifest.ID},
		{"assay_variant", x.of.Name},
		{"request_rate", x.rate()},
		{"burstiness", nil},
		{"max_concurrency", nil},
		{"duration", duration},
		{"completed", t.completed},
		{"failed", len(records) - t.completed},
		{"total_input_tokens", t.input()},
		{"total_output_tokens", t.output()},
		{"request_throughput", perSecond(float64(t.completed))},
		{"request_goodput", nil},
		{"output_throughput", ratio(t.output(), perSecond)},
		{"total_token_throughput", ratio(sum(t.input(), t.output()), perSecond)},
		{"input_lens", t.inputs},
		{"output_lens", t.outputs},
		{"ttfts", t.ttfts},
		{"itls", t.itls},
		{"latencies", t.latencies},
		{"start_times", t.starts},
		{"queue_times", t.queues},
		{"generated_texts", make([]string, len(records))},
		{"errors", t.errors},
		{"max_output_tokens_per_s", peakTokens(records)},
		{"max_concurrent_requests", t.peak()},
	}
	for _, m := range []struct {
		name   string
		values []float64 // milliseconds
	}{{"ttft", t.ttft}, {"tpot", t.tpot}, {"itl", t.itl}, {"e2el", t.e2e}} {
		out = append(out, summary(m.name, m.values)...)
	}
	x.done.Notes = append(x.done.Notes, "answers are not in a run: generated_texts is empty")
	return write(w, out)
}

// table holds vLLM's arrays and what it computes from them.
type table struct {
	completed            int
	inputs, outputs      []any
	ttfts, latencies     []maybe
	starts, queues       []maybe
	itls                 [][]float64
	errors               []string
	ttft, tpot, itl, e2e []float64 // milliseconds, of completed requests
	inTokens, outTokens  int64
	noInput, noOutput    bool
	intervals            []interval
	untimed              bool
	imported             bool
}

type interval struct{ from, to float64 } // seconds

func (x *export) table(records []*record.Record) *table {
	t := &table{imported: x.manifest.State == State && x.manifest.Host["imported_from"] == string(VLLM)}
	for _, r := range records {
		t.queues = append(t.queues, span(r.Admit, x.due(r), second))
		t.add(r, views[VLLM].Of(r))
	}
	return t
}

func (t *table) add(r *record.Record, v map[string]float64) {
	t.inputs = append(t.inputs, whole(r.Prompt))
	t.starts = append(t.starts, origin(offset(r.Admit, second)))
	if !r.Success() {
		t.outputs = append(t.outputs, 0)
		t.ttfts, t.latencies = append(t.ttfts, some(0)), append(t.latencies, some(0)) // as vLLM writes them
		t.itls = append(t.itls, []float64{})
		t.errors = append(t.errors, problem(r))
		return
	}
	t.completed++
	t.outputs = append(t.outputs, whole(r.Output))
	t.errors = append(t.errors, "")
	ttft, latency := of(v, "ttft", second), of(v, "e2e", second)
	tpot := of(v, "tpot", millisecond)
	n, known := r.Output.N()
	if d := span(r.EOF, r.Admit, second); t.imported && d.ok {
		// The file's own latency, which may end at the usage chunk.
		latency = d
		if ttft.ok && n > 1 {
			tpot = some((latency.v - ttft.v) * 1e3 / float64(n-1))
		}
	}
	gaps := chunkGaps(r)
	t.ttfts, t.latencies, t.itls = append(t.ttfts, ttft), append(t.latencies, latency), append(t.itls, gaps)
	if in, ok := r.Prompt.N(); ok {
		t.inTokens += in
	} else {
		t.noInput = true
	}
	t.outTokens += n
	t.noOutput = t.noOutput || !known
	keep := func(to *[]float64, m maybe, unit float64) {
		if m.ok {
			*to = append(*to, m.v*unit)
		}
	}
	keep(&t.ttft, ttft, 1e3)
	keep(&t.tpot, tpot, 1)
	keep(&t.e2e, latency, 1e3)
	for _, g := range gaps {
		t.itl = append(t.itl, g*1e3)
	}
	if start := offset(r.Admit, second); start.ok && latency.ok {
		t.intervals = append(t.intervals, interval{start.v, start.v + latency.v})
	} else {
		t.untimed = true
	}
}

// origin puts a start time on a clock of which no request can have begun at 0.0:
// that is what vLLM writes for one that never began. Its own origin is arbitrary.
func origin(start maybe) maybe {
	start.v++
	return start
}

// chunkGaps are vLLM's ITL samples in seconds: the gaps between chunks with
// choices. It agrees with the view, which gives their mean.
func chunkGaps(r *record.Record) []float64 {
	out := []float64{}
	var last record.Instant
	for i := range r.Events {
		e := &r.Events[i]
		if e.Kind != record.KindRole && e.Kind != record.KindFinish && !e.Kind.Payload() {
			continue
		}
		if gap := span(e.At, last, second); gap.ok {
			out = append(out, gap.v)
		}
		last = e.At
	}
	return out
}

func (t *table) input() maybe {
	return maybe{float64(t.inTokens), !t.noInput && t.completed > 0}
}

func (t *table) output() maybe {
	return maybe{float64(t.outTokens), !t.noOutput && t.completed > 0}
}

func ratio(v maybe, perSecond func(float64) maybe) maybe {
	if !v.ok {
		return v
	}
	return perSecond(v.v)
}

func sum(a, b maybe) maybe { return maybe{a.v + b.v, a.ok && b.ok} }

// peak is the most requests in flight at once, by half-open intervals.
func (t *table) peak() maybe {
	if t.untimed || t.completed == 0 {
		return maybe{}
	}
	type edge struct {
		at float64
		by int
	}
	var edges []edge
	for _, i := range t.intervals {
		edges = append(edges, edge{i.from, 1}, edge{i.to, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if a.at != b.at {
			return int(math.Copysign(1, a.at-b.at))
		}
		return a.by - b.by
	})
	now, most := 0, 0
	for _, e := range edges {
		now += e.by
		most = max(most, now)
	}
	return some(float64(most))
}

// peakTokens is vLLM's max_output_tokens_per_s: the most chunks, which it takes
// for tokens, in a second counted from the first start.
func peakTokens(records []*record.Record) maybe {
	var first record.Instant
	for _, r := range records {
		if r.Success() && r.Admit.Set() && (first == 0 || r.Admit < first) {
			first = r.Admit
		}
	}
	bins := make(map[int64]float64)
	most := 0.0
	for _, r := range records {
		if !r.Success() {
			continue
		}
		for i := range r.Events {
			e := &r.Events[i]
			if e.Kind != record.KindRole && e.Kind != record.KindFinish && !e.Kind.Payload() {
				continue
			}
			d, ok := e.At.Sub(first)
			if !ok {
				return maybe{}
			}
			bin := int64(math.Floor(d.Seconds()))
			bins[bin]++
			most = max(most, bins[bin])
		}
	}
	return maybe{most, len(bins) > 0}
}

// duration is how long the workload took: over its blocks, from the start of the
// window to the end of the last answer. An import keeps the duration of its file.
func (x *export) duration(workload string, records []*record.Record) maybe {
	total, any := 0.0, false
	for _, w := range x.manifest.Windows {
		if w.Variant != x.of.Name || w.Workload != workload {
			continue
		}
		end := record.Instant(0)
		for _, r := range records {
			if r.Block == w.Block {
				end = max(end, r.EOF, last(r))
			}
		}
		if x.manifest.State == State {
			end = w.End
		}
		if d := span(end, w.Start, second); d.ok {
			total, any = total+d.v, true
		}
	}
	return maybe{total, any}
}

// rate is the asked rate of an open loop, or "inf".
func (x *export) rate() any {
	for _, w := range x.manifest.Workloads {
		if w.Name == x.names[0] && w.Rate > 0 {
			return w.Rate
		}
	}
	return "inf"
}

func endpoint(api string) string {
	if api == "completions" {
		return "openai"
	}
	return "openai-chat"
}

// summary is what vLLM says of a metric in milliseconds; nothing when there is
// no value.
func summary(name string, values []float64) []field {
	if len(values) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(values))
	mean, std := moments(values)
	out := []field{{"mean_" + name + "_ms", some(mean)}, {"median_" + name + "_ms", some(quantile(sorted, .5))}, {"std_" + name + "_ms", some(std)}}
	for _, p := range percentiles {
		out = append(out, field{fmt.Sprintf("p%g_%s_ms", p, name), some(quantile(sorted, p/100))})
	}
	return out
}

// moments returns mean and population standard deviation, as numpy does.
func moments(values []float64) (mean, std float64) {
	for _, v := range values {
		mean += v
	}
	mean /= float64(len(values))
	for _, v := range values {
		std += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(std / float64(len(values)))
}

// quantile interpolates linearly (Hyndman and Fan's type 7), as numpy does.
func quantile(sorted []float64, p float64) float64 {
	h := p * float64(len(sorted)-1)
	i := min(int(h), len(sorted)-1)
	j := min(i+1, len(sorted)-1)
	return sorted[i] + (h-float64(i))*(sorted[j]-sorted[i])
}

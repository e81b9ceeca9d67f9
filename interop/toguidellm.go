package interop

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/assay-llm/assay/record"
)

// guidellm writes guidellm's JSON: a benchmark a workload.
func (x *export) guidellm(w io.Writer) error {
	var benchmarks []any
	for i, name := range x.names {
		benchmarks = append(benchmarks, x.benchmark(i, name))
	}
	x.done.Notes = append(x.done.Notes, "answers, rates over time and concurrency distributions are not written")
	return write(w, []field{
		{"metadata", map[string]any{"version": 2, "guidellm_version": nil, "exported_by": "assay " + x.manifest.Assay, "assay_run": x.manifest.ID, "assay_variant": x.of.Name}},
		{"config", map[string]any{"backend": map[string]any{"kind": "openai_http", "target": nil, "model": x.of.Model}}},
		{"benchmarks", benchmarks},
	})
}

type breakdown struct {
	Successful any `json:"successful"`
	Incomplete any `json:"incomplete"`
	Errored    any `json:"errored"`
	Total      any `json:"total,omitempty"`
}

func (x *export) benchmark(i int, name string) map[string]any {
	lists := map[string][]any{"successful": {}, "incomplete": {}, "errored": {}}
	var done []*record.Record
	var first, end record.Instant
	for _, r := range x.records {
		if r.Workload != name || r.Phase != record.Measured {
			continue
		}
		list := "errored"
		switch r.Outcome.Group() {
		case record.GroupCompleted:
			list = "successful"
			done = append(done, r)
		case record.GroupDropped:
			list = "incomplete"
		}
		lists[list] = append(lists[list], x.guideRequest(r))
		x.done.Rows++
		if t := r.Admit; t.Set() && (first == 0 || t < first) {
			first = t
		}
		end = max(end, r.EOF, last(r))
	}
	made := map[string]int{
		"successful": len(lists["successful"]), "incomplete": len(lists["incomplete"]), "errored": len(lists["errored"]),
	}
	made["total"] = made["successful"] + made["incomplete"] + made["errored"]
	return map[string]any{
		"type_":  "generative_benchmark",
		"config": map[string]any{"id_": x.manifest.ID + "-" + name, "run_id": x.manifest.ID, "run_index": i, "strategy": x.strategy(name)},
		"scheduler_metrics": map[string]any{
			"start_time": x.seconds(first), "request_start_time": x.seconds(first), "measure_start_time": x.seconds(first),
			"measure_end_time": x.seconds(end), "request_end_time": x.seconds(end), "end_time": x.seconds(end), "requests_made": made,
		},
		"metrics":  guideMetrics(done, made),
		"requests": breakdown{lists["successful"], lists["incomplete"], lists["errored"], nil},
	}
}

// strategy names the load in guidellm's words where it has one for it.
func (x *export) strategy(workload string) map[string]any {
	for _, w := range x.manifest.Workloads {
		if w.Name != workload {
			continue
		}
		kind := any(nil)
		switch {
		case w.Process != nil && w.Process.Kind == "poisson" && len(w.Process.Rate) == 1 && w.Process.Rate[0].Slope == 0:
			kind = "poisson"
		case w.Open && strings.HasPrefix(strings.ToLower(w.Arrivals), "constant"):
			kind = "constant"
		case !w.Open && x.manifest.State != State:
			kind = "concurrent"
		}
		out := map[string]any{"type_": kind, "arrivals": w.Arrivals}
		if w.Open && w.Rate > 0 {
			out["rate"] = w.Rate
		}
		return out
	}
	return nil
}

// due is when the request was due, unless that is only taken to be its start.
func (x *export) due(r *record.Record) record.Instant {
	if x.manifest.State == State && !r.Send.Set() {
		return 0
	}
	return r.Due
}

// seconds is an instant as seconds since 1970, or null.
func (x *export) seconds(t record.Instant) maybe {
	d, ok := t.Offset()
	if !ok {
		return maybe{}
	}
	base := 0.0
	if !x.manifest.Start.IsZero() {
		base = float64(x.manifest.Start.Unix()) + float64(x.manifest.Start.Nanosecond())/1e9
	}
	return some(base + float64(d)/second)
}

func (x *export) guideRequest(r *record.Record) map[string]any {
	var iterations int
	for i := range r.Events {
		if r.Events[i].Kind.Payload() {
			iterations++
		}
	}
	if n, ok := r.Output.N(); ok && slices.ContainsFunc(r.Events, func(e record.Event) bool { return e.Kind.Payload() && !e.At.Set() }) {
		iterations = int(min(n, math.MaxInt32)) // the events between are not known
	}
	first, final, answer := r.First(), r.Last(), r.FirstAnswer()
	when := func(e *record.Event) maybe {
		if e == nil {
			return maybe{}
		}
		return x.seconds(e.At)
	}
	timings := map[string]any{
		"targeted_start": x.seconds(x.due(r)), "queued": nil, "dequeued": nil, "scheduled_at": nil,
		"resolve_start": x.seconds(r.Admit), "request_start": x.seconds(r.Admit),
		"first_request_iteration": nil, "first_token_iteration": when(first), "first_output_token_iteration": when(answer),
		"last_token_iteration": when(final), "last_request_iteration": nil,
		"request_iterations": len(r.Events), "token_iterations": iterations,
		"request_end": x.seconds(r.EOF), "resolve_end": x.seconds(r.EOF), "finalized": nil,
	}
	status, message := "completed", any(nil)
	switch r.Outcome.Group() {
	case record.GroupFailed:
		status, message = "errored", problem(r)
	case record.GroupDropped:
		status, message = "cancelled", problem(r)
	}
	v := views[GuideLLM].Of(r)
	out := map[string]any{
		"type_": "generative_request_stats", "request_id": fmt.Sprintf("%s-%s-%s-%d", x.manifest.ID, r.Variant, r.Workload, r.Shot),
		"response_id": nil, "request_args": nil, "output": nil,
		"info": map[string]any{
			"conversation_id": null(r.Session), "turn_index": r.Turn, "status": status, "timings": timings, "error": message,
		},
		"input_metrics":  map[string]any{"total_tokens": whole(r.Prompt), "text_tokens": whole(r.Prompt), "cached_tokens": whole(r.Cached)},
		"output_metrics": map[string]any{"total_tokens": whole(r.Output), "text_tokens": whole(r.Output)},
		"prompt_tokens":  whole(r.Prompt), "output_tokens": whole(r.Output),
		"request_start_time": x.seconds(r.Admit), "request_end_time": x.seconds(r.EOF),
		"request_latency":          of(v, "e2e", second),
		"time_to_first_token_ms":   of(v, "ttft", millisecond),
		"time_per_output_token_ms": of(v, "tpot", millisecond),
		"inter_token_latency_ms":   of(v, "itl", millisecond),
	}
	if answer != nil && r.Success() {
		out["time_to_first_output_token_ms"] = span(answer.At, r.Admit, millisecond)
	}
	return out
}

func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// weighed is a value with its weight.
type weighed struct{ v, w float64 }

func guideMetrics(done []*record.Record, made map[string]int) map[string]any {
	values := make(map[string][]weighed)
	for _, r := range done {
		v := views[GuideLLM].Of(r)
		add := func(name string, m maybe, weight float64) {
			if m.ok {
				values[name] = append(values[name], weighed{m.v, weight})
			}
		}
		in, hasIn := r.Prompt.N()
		n, hasOut := r.Output.N()
		add("prompt_token_count", maybe{float64(in), hasIn}, 1)
		add("output_token_count", maybe{float64(n), hasOut}, 1)
		add("total_token_count", maybe{float64(in + n), hasIn && hasOut}, 1)
		add("request_latency", of(v, "e2e", second), 1)
		add("time_to_first_token_ms", of(v, "ttft", millisecond), 1)
		add("time_per_output_token_ms", of(v, "tpot", millisecond), float64(n))
		add("inter_token_latency_ms", of(v, "itl", millisecond), float64(n-1))
	}
	out := map[string]any{"request_totals": made}
	for _, name := range []string{
		"request_latency", "prompt_token_count", "output_token_count", "total_token_count",
		"time_to_first_token_ms", "time_per_output_token_ms", "inter_token_latency_ms",
	} {
		d := distribution(values[name])
		out[name] = breakdown{d, nil, nil, d}
	}
	return out
}

// distribution is guidellm's summary: percentiles by the inverse of the weighted
// distribution function, TPOT weighted by tokens and ITL by gaps. nil: no value.
func distribution(values []weighed) map[string]any {
	if len(values) == 0 {
		return nil
	}
	values = slices.Clone(values)
	slices.SortFunc(values, func(a, b weighed) int {
		if a.v != b.v {
			return int(math.Copysign(1, a.v-b.v))
		}
		return 0
	})
	var merged []weighed
	total := 0.0
	for _, x := range values {
		if n := len(merged); n > 0 && merged[n-1].v == x.v {
			merged[n-1].w += x.w
		} else {
			merged = append(merged, x)
		}
		total += x.w
	}
	merged = slices.DeleteFunc(merged, func(x weighed) bool { return x.w <= 0 })
	if len(merged) == 0 {
		return nil
	}
	mean, mode := 0.0, merged[0]
	for _, x := range merged {
		mean += x.v * x.w / total
		if x.w > mode.w {
			mode = x
		}
	}
	variance := 0.0
	for _, x := range merged {
		variance += (x.v - mean) * (x.v - mean) * x.w / total
	}
	at := func(p float64) float64 {
		sum := 0.0
		for _, x := range merged {
			if sum += x.w / total; sum >= p {
				return x.v
			}
		}
		return merged[len(merged)-1].v
	}
	shares := make(map[string]float64)
	for name, p := range map[string]float64{
		"p001": .001, "p01": .01, "p05": .05, "p10": .1, "p25": .25, "p50": .5, "p75": .75, "p90": .9, "p95": .95, "p99": .99, "p999": .999,
	} {
		shares[name] = at(p)
	}
	count := math.Round(total)
	return map[string]any{
		"mean": mean, "median": shares["p50"], "mode": mode.v, "variance": variance, "std_dev": math.Sqrt(variance),
		"min": merged[0].v, "max": merged[len(merged)-1].v, "count": int64(count), "total_sum": mean * count, "percentiles": shares, "pdf": nil,
	}
}

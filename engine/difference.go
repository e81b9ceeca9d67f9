package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/assay-llm/assay/record"
)

// Span is what an engine said while something was measured, in order of time.
type Span struct {
	Snapshots []*Snapshot
	Failures  []string // scrapes that gave nothing, and why; at most a few
	Failed    int      // how many there were
}

// whole reports whether both edges are there; without them no difference is.
func (s *Span) whole() bool {
	n := len(s.Snapshots)
	return n >= 2 && s.Snapshots[0].Edge == edgeStart && s.Snapshots[n-1].Edge == edgeEnd
}

// Difference is what became of an engine's figures over a span.
type Difference struct {
	Seconds float64
	// Values holds, by the names of the vocabulary, how much a counter grew (NAME,
	// NAME_sum, NAME_count), and of a gauge the mean over time (NAME_mean) and its
	// extremes (NAME_max, NAME_min), the edges left out.
	Values  map[string]float64
	Buckets map[string][]Bucket // how much each bucket grew
	Lost    map[string]string   // what could not be told although some snapshot has it, and why
}

// Between returns the difference between the first and the last snapshot of a
// span. What lies between them shows resets that the edges hide, and gives gauges
// their means.
func Between(s Span) Difference {
	d := Difference{Values: make(map[string]float64), Buckets: make(map[string][]Bucket), Lost: make(map[string]string)}
	seen := make(map[string]bool)
	for _, x := range s.Snapshots {
		for name := range x.Values {
			seen[name] = true
		}
	}
	if !s.whole() {
		for name := range seen {
			d.Lost[name] = "there is no scrape from the start or from the end of a window"
		}
		return d
	}
	first, last := s.Snapshots[0], s.Snapshots[len(s.Snapshots)-1]
	if length, ok := last.At.Sub(first.At); ok {
		d.Seconds = length.Seconds()
	}
	for name := range seen {
		var why string
		if grows(name) {
			why = d.counter(name, s.Snapshots)
		} else {
			why = d.gauge(name, s.Snapshots)
		}
		if why != "" {
			d.Lost[name] = why
		}
	}
	for name := range last.Buckets {
		if _, ok := d.Values[name+"_count"]; ok {
			if grown := grownBuckets(first.Buckets[name], last.Buckets[name]); grown != nil {
				d.Buckets[name] = grown
			}
		}
	}
	return d
}

// counter enters how much a counter grew, or says why that is not known.
func (d *Difference) counter(name string, snapshots []*Snapshot) string {
	before := math.Inf(-1)
	for i, x := range snapshots {
		v, ok := x.Values[name]
		switch {
		case !ok && i == 0:
			return "the engine did not show it yet at the start of a window"
		case !ok:
			return "the engine ceased to show it within a window"
		case i > 0 && slices.Contains(x.Resets, name) || v < before:
			return "the counter was reset within a window: the engine restarted, or another replica answered"
		}
		before = v
	}
	if name == "gpu_energy_joules" && changes(name, snapshots) < leastChanges {
		return "the exporter takes its readings too seldom for so short a window; run it with a shorter interval"
	}
	d.Values[name] = before - snapshots[0].Values[name]
	return ""
}

// leastChanges is how often energy must have been read anew within a window. An
// exporter that reads it every 30 s, as is usual, gives each difference an error of up to
// that time.
const leastChanges = 10

func changes(name string, snapshots []*Snapshot) (n int) {
	for i := 1; i < len(snapshots); i++ {
		if snapshots[i].Values[name] != snapshots[i-1].Values[name] {
			n++
		}
	}
	return n
}

// leastWithin is how many scrapes within a window a gauge needs.
const leastWithin = 3

// gauge enters mean and extremes of a gauge over the scrapes within the window:
// at its edges the engine is idle, before the first request and behind the last.
// Between two scrapes it is taken for a straight line.
func (d *Difference) gauge(name string, snapshots []*Snapshot) string {
	low, high, area, length, n := math.Inf(1), math.Inf(-1), 0.0, 0.0, 0
	var before *Snapshot
	for _, x := range snapshots {
		v, ok := x.Values[name]
		if !ok {
			return "the engine did not show it all the time"
		}
		if x.Edge != "" {
			continue
		}
		n++
		low, high = min(low, v), max(high, v)
		if before != nil {
			if dt, ok := x.At.Sub(before.At); ok {
				area += dt.Seconds() * (v/2 + before.Values[name]/2)
				length += dt.Seconds()
			}
		}
		before = x
	}
	if n < leastWithin {
		return fmt.Sprintf("a window was too short: fewer than %d scrapes lie within it", leastWithin)
	}
	d.Values[name+"_min"], d.Values[name+"_max"] = low, high
	if length > 0 {
		d.Values[name+"_mean"] = min(max(area/length, low), high) // rounding does not leave the range
	}
	return ""
}

// grownBuckets is nil when the bounds are not the same or a bucket fell.
func grownBuckets(before, now []Bucket) []Bucket {
	if len(before) != len(now) {
		return nil
	}
	out := make([]Bucket, len(now))
	for i := range now {
		if before[i].Bound != now[i].Bound || now[i].Count < before[i].Count {
			return nil
		}
		out[i] = Bucket{now[i].Bound, now[i].Count - before[i].Count}
	}
	return out
}

// Heard is what is kept of a span: its difference, without the snapshots.
type Heard struct {
	Difference
	Engine  string // "": nothing was heard
	Scrapes int
	Failed  int
}

// Fold returns what is to be kept of a span.
func Fold(s Span) Heard {
	h := Heard{Difference: Between(s), Scrapes: len(s.Snapshots), Failed: s.Failed}
	if len(s.Snapshots) > 0 {
		h.Engine = s.Snapshots[0].Engine
	}
	return h
}

// Summarize adds up the windows of one variant on one workload. A figure that is
// lost in one window is lost.
func Summarize(variant, workload string, spans []Heard) record.EngineSide {
	out := record.EngineSide{Variant: variant, Workload: workload, Values: make(map[string]float64), Lost: make(map[string]string)}
	weights := make(map[string]float64)
	windows := make(map[string]int)
	for _, d := range spans {
		out.Windows++
		out.Scrapes += d.Scrapes
		out.Failed += d.Failed
		out.Seconds += d.Seconds
		if d.Engine != "" {
			out.Engine = d.Engine
		} else {
			out.Blind++
		}
		maps.Copy(out.Lost, d.Lost)
		for name, v := range d.Values {
			windows[name]++
			switch _, stat := cutStat(name); {
			case stat == "":
				out.Values[name] += v
			case stat == "_mean":
				out.Values[name] += v * d.Seconds
				weights[name] += d.Seconds
			case windows[name] == 1:
				out.Values[name] = v
			case stat == "_max":
				out.Values[name] = max(out.Values[name], v)
			default:
				out.Values[name] = min(out.Values[name], v)
			}
		}
	}
	for name, n := range windows {
		base, stat := cutStat(name)
		if stat == "" {
			base = name
		}
		if n < out.Windows {
			if out.Lost[base] == "" {
				out.Lost[base] = "not every window has it"
			}
		}
		if _, lost := out.Lost[base]; lost {
			delete(out.Values, name)
		} else if w := weights[name]; w > 0 {
			out.Values[name] /= w
		}
	}
	derive(out.Values)
	return out
}

// cutStat splits the name of a gauge's figure into gauge and statistic; of anything else stat is "".
func cutStat(name string) (base, stat string) {
	for _, stat := range []string{"_mean", "_max", "_min"} {
		if base, ok := strings.CutSuffix(name, stat); ok {
			if kind, is := byName[base]; is && kind == Gauge {
				return base, stat
			}
		}
	}
	return name, ""
}

// derive adds what follows from the differences: means of histograms, ratios of
// counters. A ratio of nothing is unknown.
func derive(v map[string]float64) {
	for _, q := range vocabulary {
		if q.Kind == Histogram {
			ratio(v, q.Name+"_mean", q.Name+"_sum", q.Name+"_count")
		}
	}
	ratio(v, "prefix_hit_ratio", "prefix_hit_tokens", "prefix_queried_tokens")
	if _, ok := v["prefix_hit_ratio"]; !ok {
		hit, has := v["prefix_hit_blocks"]
		missed, also := v["prefix_missed_blocks"]
		if has && also && hit+missed > 0 {
			v["prefix_hit_ratio"] = hit / (hit + missed)
		}
	}
	ratio(v, "prompt_cached_ratio", "prompt_cached_tokens", "prompt_tokens")
	ratio(v, "spec_accept_ratio", "spec_accepted_tokens", "spec_draft_tokens")
	if queue, ok := v["queue_seconds_mean"]; ok {
		prefill, has := v["prefill_seconds_mean"]
		ttft, also := v["ttft_seconds_mean"]
		if has && also && ttft >= queue+prefill {
			v["frontend_seconds_mean"] = ttft - queue - prefill
		}
	}
}

func ratio(v map[string]float64, name, over, under string) {
	a, has := v[over]
	b, also := v[under]
	if has && also && b > 0 {
		v[name] = a / b
	}
}

// apart is how far, of all prompt tokens, two accounts of them may be apart
// before a reader is told.
const apart = .02

// Reconcile sets the client's own account beside the engine's: over the measured
// records of the same variant and workload, the client's TTFT from sending on, and the
// prompt and cached tokens that the server told in its usage. Where the two
// accounts are apart it adds a note.
func Reconcile(side *record.EngineSide, records []record.Record) {
	var ttft, prompt, cached, output float64
	var seen, cut, first, ended, promptTold, cachedTold, outputTold int
	for i := range records {
		r := &records[i]
		if r.Phase != record.Measured || r.Variant != side.Variant || r.Workload != side.Workload {
			continue
		}
		seen++
		if e := r.First(); e != nil {
			if d, ok := e.At.Sub(r.Send); ok {
				ttft += d.Seconds()
				first++
			}
		}
		switch {
		case r.Success():
			ended++
		case r.Outcome == record.ClientCancelled:
			cut++
			continue // what it cost nobody tells
		}
		if n, ok := r.Prompt.N(); ok {
			prompt += float64(n)
			promptTold++
		}
		if n, ok := r.Output.N(); ok {
			output += float64(n)
			outputTold++
		}
		if n, ok := r.Cached.N(); ok {
			cached += float64(n)
			cachedTold++
		}
	}
	v := side.Values
	if v == nil || seen == 0 {
		return
	}
	if first > 0 {
		v["client_ttft_seconds_mean"] = ttft / float64(first)
	}
	told := seen - cut
	if told > 0 && promptTold == told {
		v["usage_prompt_tokens"] = prompt
	}
	if told > 0 && promptTold == told && cachedTold == told {
		v["usage_cached_tokens"] = cached
		ratio(v, "usage_cached_ratio", "usage_cached_tokens", "usage_prompt_tokens")
	}
	if outputTold == seen {
		v["usage_output_tokens"] = output
		ratio(v, "gpu_joules_per_output_token", "gpu_energy_joules", "usage_output_tokens")
	}
	// An engine that counts only what it computed tells by the rest what it had.
	if computed, ok := v["prompt_computed_tokens"]; ok && promptTold == seen && prompt > 0 && computed <= prompt {
		v["prompt_cached_tokens"] = prompt - computed
		ratio(v, "prompt_cached_ratio", "prompt_cached_tokens", "usage_prompt_tokens")
		if _, has := v["prefix_hit_ratio"]; !has {
			v["prefix_hit_ratio"] = v["prompt_cached_ratio"]
		}
	}
	if promptTold < seen || ended < seen || prompt == 0 { // a request that failed may have cost the engine tokens or not
		return
	}
	for _, name := range []string{"prompt_tokens", "prompt_computed_tokens"} {
		if n, ok := v[name]; ok && n > prompt*(1+apart) {
			side.Notes = append(side.Notes, fmt.Sprintf("the engine of %s counted %.0f prompt tokens on %s, its answers tell %.0f: it served others meanwhile", side.Variant, n, side.Workload, prompt))
		}
	}
	if n, ok := v["prompt_tokens"]; ok && n < prompt*(1-apart) {
		side.Notes = append(side.Notes, fmt.Sprintf("the engine of %s counted %.0f prompt tokens on %s, its answers tell %.0f: its metrics are those of one replica of several, or late", side.Variant, n, side.Workload, prompt))
	}
	if n, ok := v["prompt_cached_tokens"]; ok && cachedTold == seen && math.Abs(n-cached) > apart*prompt {
		side.Notes = append(side.Notes, fmt.Sprintf("the engine of %s counted %.0f cached prompt tokens on %s, its answers tell %.0f of %.0f", side.Variant, n, side.Workload, cached, prompt))
	}
}

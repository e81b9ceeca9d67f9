package interop

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-llm/assay/record"
)

// apart is the pause between sources whose clocks are not known to be one, and
// latest where the last of them begins at the most: no hostile file makes time wrap.
const (
	apart  = time.Second
	latest = time.Duration(1) << 60
)

// run puts the sources on one clock and describes them.
func (p *parser) run(o Options) *Run {
	r := &Run{Format: p.format, Rows: p.read}
	m := &r.Manifest
	*m = record.Manifest{
		Schema: record.ManifestSchema, Name: "imported from " + string(p.format), Assay: o.Assay, State: State,
		Host: map[string]string{"imported_from": string(p.format)},
	}
	v := record.VariantInfo{Name: o.Variant, Engine: map[string]string{"imported_from": string(p.format)}}
	for _, s := range p.sources {
		s.settle()
	}
	names := p.workloads()
	oneClock := p.oneClock()
	if oneClock {
		m.Start = p.first()
	}
	var at time.Duration // where the next source begins, unless the clocks are one
	shots, blocks := map[string]int64{}, map[string]int{}
	for i, s := range p.sources {
		v.Model = cmp.Or(v.Model, clean(s.model, 200))
		if s.version != "" {
			v.Engine["tool_version"] = clean(s.version, 60)
			m.Host["imported_version"] = v.Engine["tool_version"]
		}
		if len(s.requests) == 0 {
			m.Elapsed = max(m.Elapsed, s.elapsed)
			continue
		}
		offset := at
		if oneClock {
			offset = s.start.Sub(m.Start)
		}
		name := names[i]
		end, known := s.place(offset, func(rec *record.Record) {
			rec.Variant, rec.Workload, rec.Block, rec.Shot = o.Variant, name, blocks[name], shots[name]
			shots[name]++
		})
		for j := range s.requests {
			r.Records = append(r.Records, s.requests[j].record)
		}
		m.Workloads = describe(m.Workloads, name, s)
		if known {
			end = max(end+1, offset+s.elapsed) // a window is half open, and the last answer belongs to it
			m.Windows = append(m.Windows, record.Window{Variant: o.Variant, Workload: name, Block: blocks[name], Start: record.At(offset), End: record.At(end)})
			blocks[name]++
		}
		m.Elapsed = max(m.Elapsed, end, offset+s.elapsed)
		at = min(m.Elapsed+apart, latest)
		s.requests = nil
	}
	m.Variants = []record.VariantInfo{v}
	record.Sort(r.Records)
	m.Ledger = record.Ledger(r.Records)
	for _, n := range p.skipped {
		r.Skipped += n
	}
	p.notes(r, oneClock)
	return r
}

// workloads names the workload of each source: "load" when all were asked alike,
// as `assay load` calls its own, so that the two can be compared.
func (p *parser) workloads() []string {
	var asked []string
	for _, s := range p.sources {
		if len(s.requests) > 0 && !slices.Contains(asked, s.asked) {
			asked = append(asked, s.asked)
		}
	}
	out := make([]string, len(p.sources))
	for i, s := range p.sources {
		out[i] = "load"
		if len(asked) > 1 {
			out[i] = s.asked
		}
	}
	return out
}

// oneClock reports whether all sources with requests say when they began.
func (p *parser) oneClock() bool {
	any := false
	for _, s := range p.sources {
		if len(s.requests) == 0 {
			continue
		}
		any = true
		if s.start.IsZero() || s.start.Sub(p.first()) > 30*24*time.Hour {
			return false
		}
	}
	return any
}

// first is when the first source began.
func (p *parser) first() time.Time {
	var t time.Time
	for _, s := range p.sources {
		if len(s.requests) > 0 && (t.IsZero() || s.start.Before(t)) {
			t = s.start
		}
	}
	return t
}

// settle makes the source's clock start at its first due instant.
func (s *source) settle() {
	var first int64
	timed := false
	for i := range s.requests {
		q := &s.requests[i]
		if !q.started {
			continue
		}
		at := q.start
		if q.waited && s.scheduled {
			at -= int64(max(q.wait, 0))
		}
		if !timed || at < first {
			first, timed = at, true
		}
	}
	for i := range s.requests {
		s.requests[i].start -= first
	}
	if timed && !s.start.IsZero() {
		s.start = s.start.Add(time.Duration(first))
	}
}

// place moves the source's records to their places on the run's clock. It
// returns the last instant; known is false when the file has no start times.
func (s *source) place(offset time.Duration, name func(*record.Record)) (end time.Duration, known bool) {
	for i := range s.requests {
		known = known || s.requests[i].started
	}
	end = offset
	for i := range s.requests {
		q := &s.requests[i]
		r := &q.record
		name(r)
		switch {
		case q.started:
			at := offset + time.Duration(q.start)
			shift(r, at)
			r.Due = r.Admit
			if q.waited && s.scheduled {
				r.Due = record.At(at - q.wait)
				r.Send = r.Admit
			}
		case known:
			unplace(r)
		default: // durations only: they are laid at the epoch
			shift(r, offset)
			r.Due = r.Admit
		}
		for _, t := range []record.Instant{r.Admit, r.EOF, last(r)} {
			if d, ok := t.Offset(); ok {
				end = max(end, d)
			}
		}
	}
	return end, known
}

func last(r *record.Record) record.Instant {
	if e := r.Last(); e != nil {
		return e.At
	}
	return 0
}

// shift moves every instant that happened.
func shift(r *record.Record, by time.Duration) {
	move := func(t *record.Instant) {
		if t.Set() {
			*t += record.Instant(by)
		}
	}
	move(&r.Admit)
	move(&r.Header)
	move(&r.EOF)
	for i := range r.Events {
		move(&r.Events[i].At)
	}
}

// unplace clears the instants of a request of which nobody knows when it was.
func unplace(r *record.Record) {
	r.Admit, r.Header, r.EOF, r.Events = 0, 0, 0, nil
}

// describe adds the source to the workloads.
func describe(all []record.WorkloadInfo, name string, s *source) []record.WorkloadInfo {
	n := int64(0)
	for i := range s.requests {
		if s.requests[i].record.Phase == record.Measured {
			n++
		}
	}
	warm := int64(len(s.requests)) - n
	if i := slices.IndexFunc(all, func(w record.WorkloadInfo) bool { return w.Name == name }); i >= 0 {
		all[i].Planned += n
		all[i].WarmUp += warm
		return all
	}
	w := record.WorkloadInfo{Name: name, Arrivals: s.arrivals, Planned: n, WarmUp: warm}
	if s.scheduled && s.rate > 0 {
		w.Open, w.Rate = true, s.rate
		if s.poisson {
			w.Process = &record.Process{Kind: "poisson", Rate: []record.RatePiece{{Rate: s.rate}}}
		}
	}
	if w.Arrivals == "" {
		w.Arrivals = "not told by the file"
	}
	return append(all, w)
}

// notes writes down what a reader must know and no number shows.
func (p *parser) notes(r *Run, oneClock bool) {
	m := &r.Manifest
	def := definitions[p.format]
	var some, timed, scheduled bool
	for i := range r.Records {
		some = true
		scheduled = scheduled || r.Records[i].Send.Set()
	}
	timed = len(m.Windows) > 0
	m.Client = record.Certificate{Reasons: []string{
		fmt.Sprintf("imported from a file of %s: nobody certified its client", p.format),
		"the numbers have the definitions of " + string(p.format) + ": " + def.short,
		"the plan is not in the file, so that two imports may not have been asked the same",
	}}
	add := func(format string, a ...any) { m.Notes = append(m.Notes, fmt.Sprintf(format, a...)) }
	add("imported from %s: %s", p.format, strings.Join(p.files, "; "))
	add("%d requests read, %d skipped%s", r.Rows, r.Skipped, p.why())
	if !some {
		add("the files hold aggregates only: no request can be shown, and no interval, comparison or contract can be computed from them. %s", def.detail)
	} else {
		add("definitions: %s", def.long)
		add("not valid: %s", def.invalid)
		add("finish reasons and answers are not in the files: nothing can be said about truncated answers or their quality")
	}
	switch {
	case !some:
	case !timed:
		add("the files have no start times: every request is laid at the epoch. Latencies can be read; rates, concurrency and everything over time cannot")
	case scheduled:
		add("TTFT and E2E count from the schedule that the file tells (%s), so they may be longer than the tool's own, which count from its start of the request", def.schedule)
	default:
		add("the files have no schedule: a request counts as due when %s let it go. What it waited there is in no number, and the first byte sent is not known", p.format)
	}
	if len(p.sources) > 1 && some && !oneClock {
		add("the files do not say when they began: they are laid one after the other, a second apart")
	}
	for _, s := range p.sources {
		m.Notes = append(m.Notes, s.notes...)
	}
}

// why lists the reasons for which rows were skipped.
func (p *parser) why() string {
	var out []string
	for _, reason := range p.reasons {
		out = append(out, fmt.Sprintf("%d: %s", p.skipped[reason], reason))
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, "; ") + ")"
}

// definition says whose numbers an import has.
type definition struct {
	short, long, invalid, schedule, detail string
}

var definitions = map[Format]definition{
	VLLM: {
		short:    "TTFT ends at the first chunk of any kind",
		long:     "TTFT ends at the first chunk with choices, which may be a role chunk without text; the gaps are between such chunks, and the last may be a finish chunk; all clocks start before the connection is dialled; TPOT is computed anew as (last chunk − first chunk)/(tokens − 1), while vLLM's own ends where its latency ends, which may be the usage chunk",
		invalid:  "TTFT, ICL and ITL beside those of runs of Assay or of another tool; compare with an export of that run --as vllm instead",
		schedule: "queue_times: from the instant its generator released the request, which may be late itself",
		detail:   "Per request: vllm bench serve --save-result --save-detailed",
	},
	SGLang: {
		short:    "TTFT ends at the first chunk with text, and gaps may be spread evenly over tokens",
		long:     "TTFT ends at the first chunk with text; the gaps are between such chunks, spread evenly over the tokens of a chunk with the native backend; TPOT is computed anew as (last chunk − first chunk)/(tokens − 1), while sglang's own ends at [DONE], which the file does not tell",
		invalid:  "TPOT and E2E beside sglang's own figures; longest gaps of its native backend",
		schedule: "queue_times",
		detail:   "Per request: sglang.bench_serving --output-details",
	},
	GuideLLM: {
		short:    "only the first and the last token of a request have times, so its ITL has no tail",
		long:     "the file tells the first and the last token of a request and how many there were: TPOT is computed anew as (last − first)/(tokens − 1), which guidellm calls ITL; guidellm's own TPOT includes the TTFT; its ITL is one mean a request, without a tail, so ITL, ICL and longest gaps are missing here",
		invalid:  "guidellm's TPOT beside any other tool's; its ITL percentiles beside percentiles of gaps; output tokens per second by the instant of the token, since they count at the last one here",
		schedule: "timings.targeted_start",
		detail:   "Per request: guidellm's JSON output keeps them unless sampling is set to 0",
	},
	AIPerf: {
		short:    "clocks start before the connection is dialled, and ITL is what others call TPOT",
		long:     "TTFT ends at the first chunk with content; AIPerf's inter_token_latency is what others call TPOT and is computed anew from the chunks; its inter_chunk_latency is the gap between chunks; E2E ends at the last chunk with content; clocks start before the connection is dialled",
		invalid:  "AIPerf's inter_token_latency beside percentiles of gaps; TTFT beside one that starts at the first byte sent",
		schedule: "credit_issued_ns: when its pacer let the request go, which may be late itself",
		detail:   "Per request: import profile_export.jsonl (aiperf --export-level records)",
	},
	InferencePerf: {
		short:    "a chunk of k tokens gives ITL samples of its whole gap and k − 1 zeros",
		long:     "aggregates only",
		invalid:  "everything",
		schedule: "schedule_delay",
		detail:   "inference-perf's ITL counts zeros within a chunk, so that its median may be 0. Per request nothing can be had from this report: neither times, tokens, gaps nor outcomes",
	},
}

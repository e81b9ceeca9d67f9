package contract

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/assay-llm/assay/record"
)

// stage is one figure that engines tell of themselves, about all their requests at
// once: of the queue, of prefill, of decode, or of the cache.
type stage struct {
	metric declared
	// A ratio of the growth of two counters, the first pair that the engine tells; a
	// gauge; or the growth of one counter.
	ratios [][2]string
	gauge  string
	growth string
	scale  float64 // of the engine's unit to the metric's
}

// engineNeeds says who measures the figures of engines.
const engineNeeds = "an engine whose metrics the run reads, and that tells it"

func ofEngine(name, title, doc string, u record.Unit) declared {
	return declared{record.Metric{Name: name, Title: title, Unit: u, Doc: doc, Values: func(_ *record.Record, to []float64) []float64 { return to }}, engineNeeds}
}

func amountOfEngine(name, title, doc string, u record.Unit) declared {
	return declared{record.Metric{Name: name, Title: title, Unit: u, Doc: doc, Amount: func(*record.Record, func(record.Instant, float64)) {}}, engineNeeds}
}

// meanTime is the mean of a histogram of seconds.
func meanTime(name, title, doc, family string) stage {
	return stage{metric: ofEngine(name, title, doc, record.Nanoseconds), ratios: [][2]string{{family + "_sum", family + "_count"}}, scale: 1e9}
}

// stages are the figures, by the names of docs/format/engine.md.
var stages = []stage{
	meanTime("engine.queue", "the engine's queue", "from arrival at the engine to the start of the first step", "queue_seconds"),
	meanTime("engine.prefill", "the engine's prefill", "from the start of the first step to the first token", "prefill_seconds"),
	meanTime("engine.decode", "the engine's decode", "from the first token to the last, time of preemption included", "decode_seconds"),
	meanTime("engine.itl", "the engine's ITL", "between two tokens of a request", "itl_seconds"),
	{metric: ofEngine("engine.waiting", "waiting requests", "requests that wait to be scheduled, a reading a scrape", record.Requests), gauge: "waiting", scale: 1},
	{metric: ofEngine("engine.kv_usage", "KV cache in use", "share of the KV cache in use, of the fullest replica, a reading a scrape", record.Proportion), gauge: "kv_usage_ratio", scale: 1},
	{metric: hitsOfEngine(), ratios: [][2]string{{"prefix_hit_tokens", "prefix_queried_tokens"}, {"prefix_hit_blocks", "prefix_missed_blocks"}}, scale: 1},
	{metric: amountOfEngine("engine.preemptions", "preemptions", "requests sent back to the queue for want of KV blocks", record.Requests), growth: "preemptions", scale: 1},
	{metric: amountOfEngine("engine.evicted", "evicted tokens", "tokens whose KV blocks were evicted from the prefix cache", record.TokenUnit), growth: "evicted_tokens", scale: 1},
}

func hitsOfEngine() declared {
	d := ofEngine("engine.prefix_hits", "prefix-cache hits", "share of the prompt tokens, or blocks, looked up in the prefix cache that were there", record.Proportion)
	d.Higher = true
	return d
}

// stageOf finds a figure of engines by the name of its metric.
func stageOf(metric string) *stage {
	if i := slices.IndexFunc(stages, func(s stage) bool { return s.metric.Name == metric }); i >= 0 {
		return &stages[i]
	}
	return nil
}

// refuses says why the statistic cannot be told of the figure; "" if it can.
func (g *stage) refuses(q Quantity) (what, hint string) {
	if len(g.ratios) > 0 && q.Stat != "mean" {
		return fmt.Sprintf("engines tell the mean of %s, not a %s", g.metric.Name, q.stat()), "write mean(" + g.metric.Name + ")"
	}
	return "", ""
}

// series is what the windows tell of the figure between two instants. The why says
// what is missing; it comes with no series.
func (g *stage) series(windows []record.EngineWindow, from, to record.Instant) (s Series, why string) {
	for i := range windows {
		w := &windows[i]
		var lost string
		switch {
		case g.gauge != "":
			lost = g.read(&s, w, from, to)
		case g.growth != "":
			lost = g.grown(&s, w, from, to)
		default:
			lost = g.shared(&s, w, from, to)
		}
		if lost != "" {
			return Series{}, lost
		}
	}
	return s, ""
}

// untold says why a window has no such figure.
func untold(w *record.EngineWindow, names ...string) string {
	for _, name := range names {
		if why, ok := w.Lost[name]; ok {
			return fmt.Sprintf("%s: %s", name, why)
		}
	}
	return fmt.Sprintf("%s does not tell %s", cmp.Or(w.Engine, "the engine"), names[0])
}

func (g *stage) read(s *Series, w *record.EngineWindow, from, to record.Instant) string {
	readings, ok := w.Gauges[g.gauge]
	if !ok {
		return untold(w, g.gauge)
	}
	for _, r := range readings {
		if r.To > from && r.To <= to {
			s.Values = append(s.Values, r.By*g.scale)
			s.N++
			s.watch(r)
		}
	}
	return ""
}

func (g *stage) grown(s *Series, w *record.EngineWindow, from, to record.Instant) string {
	steps, ok := w.Counters[g.growth]
	if !ok {
		return untold(w, g.growth)
	}
	for _, r := range steps {
		if r.From >= from && r.To <= to {
			s.Values = append(s.Values, r.By*g.scale)
			s.Total += r.By * g.scale
			s.N++
			s.watch(r)
			s.Weights = append(s.Weights, seconds(r))
		}
	}
	return ""
}

func (g *stage) shared(s *Series, w *record.EngineWindow, from, to record.Instant) string {
	for _, pair := range g.ratios {
		over, ok := w.Counters[pair[0]]
		under, also := w.Counters[pair[1]]
		if !ok || !also || len(over) != len(under) {
			continue
		}
		for i, r := range over {
			if r.From < from || r.To > to || under[i].To != r.To {
				continue
			}
			of := under[i].By
			if pair[1] == "prefix_missed_blocks" {
				of += r.By
			}
			s.Values, s.Weights = append(s.Values, r.By*g.scale), append(s.Weights, of)
			s.N += int64(of)
			s.watch(r)
		}
		return ""
	}
	first := g.ratios[0]
	return untold(w, first[0], first[1])
}

func seconds(r record.EngineGrowth) float64 {
	d, _ := r.To.Sub(r.From)
	return d.Seconds()
}

// watch counts the time between two scrapes as watched.
func (s *Series) watch(r record.EngineGrowth) { s.Seconds += seconds(r) }

// said estimates a figure of the engine over the whole run.
func (s *scope) said(q Quantity, g *stage, m record.Metric, confidence float64, high bool) reading {
	of := fmt.Sprintf("the engine of %s", s.variant)
	what, _ := g.refuses(q)
	switch {
	case what != "":
		return none(what, confidence)
	case s.labelled:
		return none("an engine tells nothing of requests with some label", confidence)
	case len(s.engine) == 0:
		return none(fmt.Sprintf("nothing was heard of %s: %s needs %s", of, m.Name, engineNeeds), confidence)
	case len(s.windows) > len(s.engine):
		return none(fmt.Sprintf("%s was heard in %d of %d windows", of, len(s.engine), len(s.windows)), confidence)
	}
	in, why := g.series(s.engine, 0, maxInstant)
	if why != "" {
		return none(fmt.Sprintf("%s: %s", of, why), confidence)
	}
	if in.N == 0 {
		return none(fmt.Sprintf("%s told nothing of %s while it was measured", of, m.Title), confidence)
	}
	return in.measure(q, m, confidence, high)
}

const maxInstant = record.Instant(1<<63 - 1)

// heard returns the windows of one variant on one workload in the order of time, the last
// of each block: a block that was measured again has more than one.
func (e *Evidence) heard(variant, workload string) (out []record.EngineWindow) {
	for _, w := range e.Engine {
		if w.Variant != variant || workload != "" && w.Workload != workload || w.Engine == gpuExporter {
			continue
		}
		out = slices.DeleteFunc(out, func(o record.EngineWindow) bool { return o.Workload == w.Workload && o.Block == w.Block })
		out = append(out, w)
	}
	return out
}

// gpuExporter is heard beside an engine, and tells of GPUs.
const gpuExporter = "dcgm"

// stage finds what engines do not tell.
func (l *leafLint) stage(g *stage) bool {
	if what, hint := g.refuses(l.c.Need.Quantity); what != "" {
		l.say(CodeUnmeasured, l.c.Need.at.stat, what, hint)
		return false
	}
	if len(l.t.where) > 0 || l.t.by != "" {
		l.sayAt(CodeUnmeasured, "where", "an engine tells nothing of requests with some label", "remove where: and by:")
		return false
	}
	return true
}

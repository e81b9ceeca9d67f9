package contract

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// talk is one session with all its requests, in order of their due instants. It
// belongs to the stretch in which it began: so a session that was there before the
// split changed is no part of what came after.
type talk struct {
	start   record.Instant
	records []*record.Record
}

// talks groups records, which are in order; one without a session is its own.
func talks(rs []*record.Record) []talk {
	type id struct{ workload, session string }
	at := map[id]int{}
	var out []talk
	for _, r := range rs {
		key := id{r.Workload, r.Session}
		if i, known := at[key]; known && r.Session != "" {
			out[i].records = append(out[i].records, r)
			continue
		}
		at[key] = len(out)
		out = append(out, talk{r.Due, []*record.Record{r}})
	}
	return out
}

// Split says that from an instant on the candidate has that share of the sessions,
// by assignment: a new step begins. Calls are in order of time, and none once the
// history is asked.
func (h *History) Split(since time.Time, weight float64) {
	h.steps = append(h.steps, Step{Since: since, Weight: weight})
}

// Steps returns the steps above from and up to at: one since the epoch if no split was
// told.
func (h *History) Steps(from, at time.Time) []Step {
	steps := h.steps
	if len(steps) == 0 {
		return []Step{{Since: h.epoch}}
	}
	last := max(1, sort.Search(len(steps), func(i int) bool { return steps[i].Since.After(at) }))
	first := sort.Search(last-1, func(i int) bool { return steps[i+1].Since.After(from) })
	return steps[first:last]
}

// bySession reads a Series with one observation a session.
func (h *History) bySession(a Ask, m record.Metric) Series {
	from, to := h.instant(a.From), h.instant(a.To)
	ts := h.talks[a.Variant]
	first := sort.Search(len(ts), func(i int) bool { return ts[i].start > from })
	last := sort.Search(len(ts), func(i int) bool { return ts[i].start > to })
	g := gathering{ask: a, view: view{metric: m, at: h.instant(a.At)}}
	g.Best = new(stat.Histogram)
	g.Worst = g.Best
	_, g.declared = declaredMetric(a.Metric)
	for _, t := range ts[first:last] {
		g.session(t)
	}
	return g.Series
}

// gathering is a Series by session on its way.
type gathering struct {
	view
	ask         Ask
	best, worst []float64 // of the session at hand
}

func (g *gathering) session(t talk) {
	g.best, g.worst = g.best[:0], g.worst[:0]
	sum, size := 0.0, 0
	for _, r := range t.records {
		if r.Due > g.at {
			break
		}
		if g.ask.Workload != "" && r.Workload != g.ask.Workload || !has(r.Labels, g.ask.Where) {
			continue
		}
		before := len(g.best)
		if g.request(r) {
			for _, x := range g.best[before:] {
				sum += x
			}
			size += len(g.best) - before
		}
	}
	if size > 0 {
		if err := g.Sums.Add(sum, float64(size), 0); err != nil {
			g.Missing++
		}
	}
	if len(g.best) == 0 || g.Best == nil {
		return
	}
	if g.Best == g.Worst && !slices.Equal(g.best, g.worst) {
		g.Worst = g.Best.Clone()
	}
	err := g.Best.Add(g.best...)
	if err == nil && g.Best != g.Worst {
		err = g.Worst.Add(g.worst...)
	}
	if err != nil { // negative values have no place in a histogram
		g.Best, g.Worst = nil, nil
	}
}

// request enters one request, and reports whether its values were told.
func (g *gathering) request(r *record.Record) bool {
	m := g.metric
	good, bad := 0.0, math.Inf(1)
	if m.Indicator {
		bad = 1
	}
	if g.ask.Low {
		good, bad = bad, good
	}
	switch {
	case r.Outcome == record.ClientCancelled:
	case r.Outcome.Group() == record.GroupDropped:
		g.Missing++
	case !g.known(r):
		if !g.declared {
			g.inFlight(r, good, bad)
		}
	case g.declared || m.Always || r.Success() || m.Indicator && ofOutcome(m):
		g.buffer = m.Values(r, g.buffer[:0])
		if len(g.buffer) == 0 {
			if !g.declared && r.Success() && !undefined(m.Name, r) {
				g.Missing++
			}
			return false
		}
		g.N++
		g.best, g.worst = append(g.best, g.buffer...), append(g.worst, g.buffer...)
		return true
	case m.Indicator:
		g.Missing++ // nobody knows whether it would have been so
	default:
		g.N++
		g.Over++
		if g.ask.Variant != baselineName {
			good = bad
		}
		g.best, g.worst = append(g.best, good), append(g.worst, bad)
	}
	return false
}

// inFlight enters a request of which only the age is known.
func (g *gathering) inFlight(r *record.Record, good, bad float64) {
	g.Pending++
	age, ok := g.at.Sub(r.Due)
	switch {
	case !ok || !fromDue(g.metric):
	case g.ask.Low:
		bad = float64(age)
	default:
		good = float64(age)
	}
	g.best, g.worst = append(g.best, good), append(g.worst, bad)
}

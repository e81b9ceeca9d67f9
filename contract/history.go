package contract

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/assay-llm/assay/record"
)

// History answers rules from the records of a run, so that a recorded run replays
// as if it were live: a request is seen once its answer is complete, and counts to
// the instant at which it was due. Values of declared metrics are those that
// somebody wrote on the records. It is safe for concurrent use.
type History struct {
	epoch   time.Time
	records map[string][]*record.Record // by part, in order of their due instants
	windows map[string][]record.Window
	engine  map[string][]record.EngineWindow
	talks   map[string][]talk // by part, in order of their starts
	steps   []Step
	end     record.Instant
}

// NewHistory takes the records of a run whose epoch was at that time. Windows say
// when each variant was measured; without them it was measured from its first
// request to its last.
func NewHistory(epoch time.Time, e Evidence) *History {
	j := newJudge(e)
	h := &History{epoch: epoch, records: map[string][]*record.Record{}, windows: map[string][]record.Window{}, engine: map[string][]record.EngineWindow{}, talks: map[string][]talk{}}
	parts := map[string]string{j.candidate: "candidate"}
	if j.baseline != "" {
		parts[j.baseline] = baselineName
	}
	for i := range e.Records {
		r := &e.Records[i]
		h.end = max(h.end, r.Due, r.EOF)
		if part, ok := parts[r.Variant]; ok && r.Phase == record.Measured && j.problem == "" {
			h.records[part] = append(h.records[part], r)
		}
	}
	for variant, part := range parts {
		h.engine[part] = e.heard(variant, "")
	}
	for part, rs := range h.records {
		slices.SortStableFunc(rs, func(a, b *record.Record) int { return cmp.Compare(a.Due, b.Due) })
		h.talks[part] = talks(rs)
	}
	for _, w := range e.Windows {
		if part, ok := parts[w.Variant]; ok {
			h.windows[part] = append(h.windows[part], w)
			h.end = max(h.end, w.End)
		}
	}
	return h
}

// End is when the last thing happened.
func (h *History) End() time.Time { return h.time(h.end) }

// Start is the epoch.
func (h *History) Start() time.Time { return h.epoch }

func (h *History) time(t record.Instant) time.Time {
	offset, _ := t.Offset()
	return h.epoch.Add(offset)
}

// instant is the last instant at t; 0 before the epoch.
func (h *History) instant(t time.Time) record.Instant {
	if t.Before(h.epoch) {
		return 0
	}
	return record.At(t.Sub(h.epoch))
}

// Labels returns the values of a label, or the workloads, sorted.
func (h *History) Labels(key string, at time.Time) []string {
	seen := map[string]bool{}
	until := h.instant(at)
	for _, rs := range h.records {
		for _, r := range rs {
			if r.Due > until {
				break
			}
			if key == "" {
				seen[r.Workload] = true
			} else if v, ok := r.Labels[key]; ok {
				seen[v] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// See reads a Series off the records.
func (h *History) See(a Ask) Series {
	m, ok := find(a.Metric)
	if !ok {
		return Series{}
	}
	if a.Sessions {
		return h.bySession(a, m)
	}
	from, to, at := h.instant(a.From), h.instant(a.To), h.instant(a.At)
	if g := stageOf(a.Metric); g != nil {
		return h.told(g, a, from, min(to, at))
	}
	rs := h.records[a.Variant]
	first := sort.Search(len(rs), func(i int) bool { return rs[i].Due > from })
	last := sort.Search(len(rs), func(i int) bool { return rs[i].Due > to })
	v := view{metric: m, at: at, beyond: a.Beyond}
	_, v.declared = declaredMetric(a.Metric)
	for i := last - 1; i >= first && (a.Last == 0 || v.N < a.Last); i-- {
		if r := rs[i]; (a.Workload == "" || r.Workload == a.Workload) && has(r.Labels, a.Where) {
			v.add(r)
		}
	}
	slices.Reverse(v.Values)
	h.watched(&v, a, from, to)
	return v.Series
}

// watched says how much of the stretch was watched and, of amounts, what each
// watched second saw.
func (h *History) watched(v *view, a Ask, from, to record.Instant) {
	windows := h.windows[a.Variant]
	if rs := h.records[a.Variant]; len(windows) == 0 && len(rs) > 0 {
		windows = []record.Window{{Start: rs[0].Due, End: h.end}}
	}
	second := record.Instant(time.Second)
	for _, w := range windows {
		if a.Workload != "" && w.Workload != "" && w.Workload != a.Workload {
			continue
		}
		start, end := max(w.Start, from), min(w.End, to)
		if end <= start {
			continue
		}
		v.Seconds += time.Duration(end - start).Seconds()
		if v.metric.Amount == nil || v.N == 0 {
			continue
		}
		slots := make([]float64, int((end-start)/second))
		for _, x := range v.amounts {
			if i := int((x.at - start) / second); x.at >= start && i < len(slots) {
				slots[i] += x.amount
			}
		}
		v.Values = append(v.Values, slots...)
	}
	if v.metric.Amount != nil {
		v.Seconds = max(v.Seconds, float64(len(v.Values)))
	}
}

type amountAt struct {
	at     record.Instant
	amount float64
}

// view gathers a series, from the last record to the first.
type view struct {
	Series
	metric   record.Metric
	declared bool
	at       record.Instant
	beyond   float64
	amounts  []amountAt
	buffer   []float64
}

func (v *view) add(r *record.Record) {
	switch {
	case r.Outcome == record.ClientCancelled:
	case r.Outcome.Group() == record.GroupDropped:
		v.Missing++
	case v.metric.Amount != nil:
		v.addAmount(r)
	case !v.known(r):
		if age, ok := v.at.Sub(r.Due); ok && v.beyond > 0 && float64(age) > v.beyond && fromDue(v.metric) {
			v.N++
			v.Over++
		}
	default:
		v.addValues(r)
	}
}

func (v *view) addAmount(r *record.Record) {
	told := false
	v.metric.Amount(r, func(at record.Instant, amount float64) {
		if told = true; at <= v.at {
			v.amounts = append(v.amounts, amountAt{at, amount})
			v.Total += amount
		}
	})
	switch {
	case !r.Success() && !v.declared && v.known(r) && spoilt(v.metric):
		v.N++
		v.Over++
	case told:
		v.N++
	case r.Success() && !v.declared && v.known(r):
		v.Missing++
	}
}

func (v *view) addValues(r *record.Record) {
	if !v.metric.Indicator && !v.metric.Always && !v.declared && !r.Success() {
		v.N++
		v.Over++
		return
	}
	if v.metric.Indicator && !v.declared && !r.Success() && !ofOutcome(v.metric) {
		v.Missing++ // nobody knows whether it would have been so
		return
	}
	v.buffer = v.metric.Values(r, v.buffer[:0])
	switch {
	case len(v.buffer) > 0:
		v.N++
		slices.Reverse(v.buffer)
		v.Values = append(v.Values, v.buffer...)
		if v.metric.Indicator {
			v.Total += v.buffer[0]
		}
	case v.declared || !r.Success() || undefined(v.metric.Name, r):
	default:
		v.Missing++
	}
}

// known reports whether the record's value had happened when it was asked for.
func (v *view) known(r *record.Record) bool {
	if first := r.First(); first != nil && slices.Contains([]string{"ttft", "ttft.service", "ttfb"}, v.metric.Name) {
		return first.At <= v.at
	}
	return max(r.EOF, at(r.Last()), r.Due) <= v.at
}

func at(e *record.Event) record.Instant {
	if e == nil {
		return 0
	}
	return e.At
}

// fromDue reports whether the metric grows with the age of a request.
func fromDue(m record.Metric) bool {
	return slices.Contains([]string{"ttft", "ttft.service", "ttfa", "e2e", "e2e.service"}, m.Name)
}

// told is what the engine said in a stretch; the zero Series if it told nothing of it,
// or was asked for requests with some label.
func (h *History) told(g *stage, a Ask, from, to record.Instant) Series {
	if len(a.Where) > 0 {
		return Series{}
	}
	windows := slices.DeleteFunc(slices.Clone(h.engine[a.Variant]), func(w record.EngineWindow) bool {
		return a.Workload != "" && w.Workload != a.Workload
	})
	s, _ := g.series(windows, from, to)
	return s
}

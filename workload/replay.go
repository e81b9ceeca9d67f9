package workload

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/corpus"
)

// Replay sends the rows of a trace at their own instants, in their order, or draws
// the requests of a model of clients (servegen). The trace is the file of Prompts.
// Without for and requests the workload ends with the trace.
type Replay struct {
	Speed  float64         `yaml:"speed" doc:"how much faster than it was: 2 halves every gap; 1 if left out"`
	Start  config.Duration `yaml:"start" doc:"where in the trace the replay starts; at its start if left out"`
	Spread config.Duration `yaml:"spread" doc:"time over which rows of one instant are spread, at random and in their order, for traces with coarse clocks; none if left out"`
}

// traceFormats are the formats of Prompts.Format that are traces.
var traceFormats = []string{"azure", "burstgpt", "mooncake", "servegen"}

func (r *Replay) speed() float64 {
	if r.Speed == 0 {
		return 1
	}
	return r.Speed
}

// replay judges a replay.
func (ps *problems) replay(r *Replay) {
	if !(r.speed() >= 1e-3 && r.speed() <= 1e6) {
		ps.add("arrivals.replay.speed", fmt.Sprintf("must be between 0.001 and 1000000, got %v", r.Speed), "write such as 2 for twice the speed")
	}
	if r.Start < 0 || time.Duration(r.Start) > 366*24*time.Hour {
		ps.add("arrivals.replay.start", fmt.Sprintf("must be at most 8784h, got %v", r.Start), "write such as 8h")
	}
	if r.Spread < 0 || time.Duration(r.Spread) > time.Hour {
		ps.add("arrivals.replay.spread", fmt.Sprintf("must be at most 1h, got %v", r.Spread), "write such as 3s")
	}
}

// replayed are the due instants of a replay.
type replayed struct {
	rows   []corpus.Row
	first  int64 // row of the first shot
	start  int64 // instant of the trace at which the plan starts
	speed  float64
	spread []int64 // instants of the rows after spreading; nil: their own
	end    float64 // nanoseconds, of the plan; +Inf: that of the trace
	limit  int64
}

// newReplay lays out a trace. Rows of one instant move by less than spread, and
// never beyond the next instant of the trace, so that rows keep their order.
func newReplay(r *Replay, t *corpus.Trace, end float64, limit int64, jitter Stream) *replayed {
	p := &replayed{rows: t.Rows, speed: r.speed(), start: int64(r.Start), end: end}
	p.first = int64(sort.Search(len(t.Rows), func(i int) bool { return t.Rows[i].At >= p.start }))
	p.limit = min(limit, int64(len(t.Rows))-p.first)
	if r.Spread == 0 {
		return p
	}
	p.spread = make([]int64, len(t.Rows))
	for i := 0; i < len(t.Rows); {
		at := t.Rows[i].At
		j := i + sort.Search(len(t.Rows)-i, func(k int) bool { return t.Rows[i+k].At > at })
		room := int64(r.Spread)
		if j < len(t.Rows) {
			room = min(room, t.Rows[j].At-at)
		}
		for k := i; k < j; k++ {
			p.spread[k] = at + int64(jitter.below(int64(k), uint64(room)))
		}
		slices.Sort(p.spread[i:j])
		i = j
	}
	return p
}

// due returns the instant of shot i. Division of the instant itself, and not of
// gaps, keeps a replay of any length and speed exact.
func (p *replayed) due(i int64) time.Duration {
	at := p.rows[p.first+i].At
	if p.spread != nil {
		at = p.spread[p.first+i]
	}
	return time.Duration(math.Round(float64(at-p.start) / p.speed))
}

func (p *replayed) all() iter.Seq2[int64, time.Duration] {
	return func(yield func(int64, time.Duration) bool) {
		for i := range p.limit {
			if due := p.due(i); float64(due) >= p.end || !yield(i, due) {
				return
			}
		}
	}
}

// count returns the number of rows that are sent, and the length of the schedule.
func (p *replayed) count() counted {
	n := int64(sort.Search(int(p.limit), func(i int) bool { return float64(p.due(int64(i))) >= p.end }))
	switch {
	case n < p.limit:
		return counted{shots: n, length: time.Duration(p.end)}
	case n == 0:
		return counted{}
	}
	return counted{shots: n, length: p.due(n-1) + 1}
}

// traced fills a shot in from row i of the trace. Rounds after the first mark
// their prompts, as those of a set do.
func (w *writer) traced(s *Shot, text bool) {
	t := w.set.Trace
	round, at := w.position(s.Index+w.first, int64(len(t.Rows)))
	row := &t.Rows[at]
	s.Case = "row-" + strconv.FormatInt(at+1, 10)
	s.MaxTokens = int64(row.Output)
	if len(t.Tenants) > 0 {
		s.Tenant = t.Tenants[row.Tenant]
	}
	if !text {
		return
	}
	w.begin(s, alone(s.Index))
	w.mark(round)
	if row.Blocks == nil {
		w.buf = corpus.AppendWords(w.buf, w.at(w.texts, s.Index), int64(row.Input))
	}
	left := int64(row.Input)
	for k, id := range row.Blocks {
		if k > 0 {
			w.buf = append(w.buf, ' ')
		}
		n := min(left, t.BlockTokens)
		w.buf = corpus.AppendWords(w.buf, w.at(w.blocks, int64(id)), n)
		left -= n
	}
	s.Messages = []corpus.Message{{Role: "user", Content: string(w.buf)}}
}

package interop

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/assay-llm/assay/record"
)

// guideRequest is one request of a guidellm file, of any version.
type guideRequest struct {
	Info          *guideInfo `json:"info"`
	SchedulerInfo *guideInfo `json:"scheduler_info"` // 0.4
	Input         guideUsage `json:"input_metrics"`
	Output        guideUsage `json:"output_metrics"`
	PromptTokens  tally      `json:"prompt_tokens"`
	OutputTokens  tally      `json:"output_tokens"`
	StartTime     num        `json:"start_time"` // 0.3 and before: seconds since 1970
	EndTime       num        `json:"end_time"`
	FirstToken    num        `json:"first_token_time"`
	LastToken     num        `json:"last_token_time"`
	Error         text       `json:"error"`
}

type guideUsage struct {
	Total  tally `json:"total_tokens"`
	Text   tally `json:"text_tokens"`
	Cached tally `json:"cached_tokens"`
}

type guideInfo struct {
	Conversation   text         `json:"conversation_id"`
	Turn           tally        `json:"turn_index"`
	Error          text         `json:"error"`
	Timings        *guideTiming `json:"timings"`
	RequestTimings *guideTiming `json:"request_timings"`
}

type guideTiming struct {
	Targeted    num   `json:"targeted_start"`
	Resolve     num   `json:"resolve_start"`
	Start       num   `json:"request_start"`
	First       num   `json:"first_token_iteration"`
	FirstAnswer num   `json:"first_output_token_iteration"`
	Last        num   `json:"last_token_iteration"`
	Iterations  tally `json:"token_iterations"`
	OldFirst    num   `json:"first_iteration"` // 0.5 and before
	OldLast     num   `json:"last_iteration"`
	OldCount    tally `json:"iterations"`
	End         num   `json:"request_end"`
	ResolveEnd  num   `json:"resolve_end"`
}

// guidellm reads a file with one or more benchmarks.
func (p *parser) guidellm(file string, data []byte) error {
	d := newDocument(file, data, 1)
	version, model := text(""), text("")
	err := d.object("", func(key, path string) error {
		switch key {
		case "metadata":
			return d.object(path, func(key, path string) error {
				if key == "guidellm_version" {
					return d.value(path, &version)
				}
				return d.skip(path)
			})
		case "config", "args":
			return p.guideModel(d, path, &model)
		case "benchmarks":
			return d.array(path, func(_ int, path string) error {
				s := &source{file: file, asked: "load"}
				if err := p.guideBenchmark(d, path, s); err != nil {
					return err
				}
				p.add(s)
				return nil
			})
		}
		return d.skip(path)
	})
	if err != nil {
		return err
	}
	if !d.done() {
		return d.fault("", "more than one JSON value", "one guidellm file is one JSON object")
	}
	for _, s := range p.sources {
		if s.file == file {
			s.version = string(version)
			s.model = string(model)
		}
	}
	return nil
}

// guideModel finds the name of the model in what the user asked for.
func (p *parser) guideModel(d *document, path string, model *text) error {
	if !d.opens('{') {
		return d.skip(path)
	}
	return d.object(path, func(key, path string) error {
		switch {
		case key == "model":
			return d.value(path, model)
		case key == "backend" && d.opens('{'):
			return p.guideModel(d, path, model)
		}
		return d.skip(path)
	})
}

func (p *parser) guideBenchmark(d *document, path string, s *source) error {
	var ref float64
	var made tally
	left := mostNumbers
	err := d.object(path, func(key, path string) error {
		switch key {
		case "metrics":
			return s.guideMetrics(d, path, &left)
		case "scheduler_metrics", "run_stats", "total_count":
			return guideMade(d, path, &made)
		case "config", "args", "scheduler":
			if !d.opens('{') {
				return d.skip(path)
			}
			return d.object(path, func(key, path string) error {
				if (key == "strategy" || key == "profile") && d.opens('{') {
					return s.strategy(d, path, key == "strategy")
				}
				return d.skip(path)
			})
		case "requests":
			return d.object(path, func(key, path string) error {
				return d.array(path, func(_ int, path string) error {
					return p.guideRow(d, path, key, s, &ref)
				})
			})
		}
		return d.skip(path)
	})
	if err != nil {
		return err
	}
	if ref > 0 {
		sec, frac := math.Modf(ref)
		s.start = time.Unix(int64(sec), int64(math.Round(frac*1e9))).UTC()
	}
	if len(s.requests) > 0 {
		s.notes = nil // the aggregates; the requests say more
	}
	if n, ok := made.N(); ok && n != int64(s.listed) {
		s.notes = append(s.notes, fmt.Sprintf("%s: %s made %d requests but lists %d: the others are in no number here", clean(s.file, 200), path, n, s.listed))
	}
	return nil
}

// guideMetrics notes the aggregates over successful requests.
func (s *source) guideMetrics(d *document, path string, left *int) error {
	return d.object(path, func(_, path string) error {
		if !d.opens('{') {
			return d.skip(path)
		}
		return d.object(path, func(key, path string) error {
			if key != "successful" || !d.opens('{') {
				return d.skip(path)
			}
			return s.numbers(d, path, 0, left)
		})
	})
}

// guideMade reads how many requests a benchmark made.
func guideMade(d *document, path string, made *tally) error {
	if !d.opens('{') {
		return d.skip(path)
	}
	return d.object(path, func(key, path string) error {
		switch {
		case key == "requests_made" && d.opens('{'):
			return guideMade(d, path, made)
		case key == "total":
			return d.value(path, made)
		}
		return d.skip(path)
	})
}

// strategy reads how the load was asked for.
func (s *source) strategy(d *document, path string, sure bool) error {
	var is struct {
		Type        text `json:"type_"`
		Kind        text `json:"kind"`
		Rate        num  `json:"rate"`
		Streams     num  `json:"streams"`
		Concurrency num  `json:"max_concurrency"`
	}
	if !sure {
		return d.skip(path)
	}
	if err := d.value(path, &is); err != nil {
		return err
	}
	kind := clean(strings.ToLower(string(is.Type+is.Kind)), 40)
	s.asked, s.arrivals = kind, kind
	switch kind {
	case "constant", "poisson", "async", "trace", "replay":
		s.scheduled = true
	}
	s.poisson = kind == "poisson"
	switch {
	case is.Rate.ok && is.Rate.v > 0 && s.scheduled:
		s.rate = is.Rate.v
		s.asked += " " + format(is.Rate.v) + "/s"
		s.arrivals += " " + format(is.Rate.v) + "/s asked"
	case is.Streams.ok:
		s.asked += " " + format(is.Streams.v)
		s.arrivals += ", " + format(is.Streams.v) + " at once"
	}
	if s.asked == "" {
		s.asked = "load"
	}
	return nil
}

// guideRow reads one request of one of the lists successful, incomplete, errored.
func (p *parser) guideRow(d *document, path, list string, s *source, ref *float64) error {
	var g guideRequest
	if err := d.value(path, &g); err != nil {
		return err
	}
	if err := p.take(d, path, 4); err != nil {
		return err
	}
	s.listed++
	t, info := g.timing()
	start := or(t.Start, t.Resolve)
	q := request{record: record.Record{Stream: true, Admit: record.At(0)}}
	r := &q.record
	r.Session = clean(string(info.Conversation), 200)
	if turn, ok := info.Turn.N(); ok {
		r.Turn = int(turn)
	}
	r.Prompt, r.Output = g.Input.Total.or(g.Input.Text).or(g.PromptTokens).Count, g.Output.Total.or(g.Output.Text).or(g.OutputTokens).Count
	r.Cached = g.Input.Cached.Count
	switch {
	case start.ok && start.v > 0 && start.v < 1e11:
		if *ref == 0 {
			*ref = start.v
		}
		since := (start.v - *ref) * 1e9
		if math.Abs(since) > longest*1e9 {
			p.drop("a start time years from the first")
			return nil
		}
		q.start, q.started = int64(math.Round(since)), true
		if wait := start.v - t.Targeted.v; t.Targeted.ok && math.Abs(wait) < longest {
			q.wait, q.waited = time.Duration(math.Round(wait*1e9)), true
		}
		if nonsense := q.guideTimes(t, start.v); nonsense != "" {
			p.drop(nonsense)
			return nil
		}
	case list == "successful":
		p.drop("no request_start")
		return nil
	}
	q.guideOutcome(list, info, g)
	s.requests = append(s.requests, q)
	return nil
}

// timing returns the times of a request of any version.
func (g *guideRequest) timing() (t guideTiming, info guideInfo) {
	for _, i := range []*guideInfo{g.Info, g.SchedulerInfo} {
		if i != nil {
			info = *i
			break
		}
	}
	switch {
	case info.Timings != nil:
		t = *info.Timings
	case info.RequestTimings != nil:
		t = *info.RequestTimings
	}
	t.Start, t.End = or(t.Start, g.StartTime), or(or(t.End, g.EndTime), t.ResolveEnd)
	t.First, t.Last = or(or(t.First, t.OldFirst), g.FirstToken), or(or(t.Last, t.OldLast), g.LastToken)
	t.Iterations = t.Iterations.or(t.OldCount)
	return t, info
}

func or(a, b num) num {
	if a.ok {
		return a
	}
	return b
}

func (t tally) or(u tally) tally {
	if t.Known() {
		return t
	}
	return u
}

// guideTimes sets the events: only the first and the last token have times.
func (q *request) guideTimes(t guideTiming, start float64) (nonsense string) {
	r := &q.record
	since := func(x num) (record.Instant, bool) {
		if !x.ok {
			return 0, true
		}
		d, ok := nanoseconds(x.v - start)
		if !ok {
			return 0, false
		}
		return record.At(d), true
	}
	first, ok1 := since(t.First)
	last, ok2 := since(t.Last)
	answer, ok3 := since(t.FirstAnswer)
	end, ok4 := since(t.End)
	switch {
	case !ok1 || !ok2 || !ok3 || !ok4:
		return "a time before the start of its request"
	case first.Set() && last.Set() && last < first:
		return "a last token before the first"
	}
	r.EOF = end
	if !first.Set() {
		if last.Set() {
			r.Events = []record.Event{{At: last, Lag: -1, Kind: record.KindContent}}
		}
		return ""
	}
	e := record.Event{At: first, Lag: -1, Kind: record.KindContent}
	n, known := t.Iterations.N()
	switch {
	case !last.Set() || last == first:
		r.Events = []record.Event{e}
	case known && n == 2:
		r.Events = []record.Event{e, {At: last, Lag: -1, Read: 1, Kind: record.KindContent}}
	default:
		r.Events = untold(e, last, r.Output)
	}
	if answer > first {
		q.thought(answer, last)
	}
	return ""
}

// thought marks the first event as reasoning, and puts the first token of the
// answer between, at no gap that is known.
func (q *request) thought(answer, last record.Instant) {
	r := &q.record
	r.Events[0].Kind = record.KindReasoning
	n, known := r.Output.N()
	if len(r.Events) < 3 || answer >= last || !known || n < 5 {
		return
	}
	gap := r.Events[1]
	first, end := r.Events[0], r.Events[2]
	one := record.Event{At: answer, Lag: -1, Read: 2, Tokens: record.Tokens(1), Kind: record.KindContent}
	before := gap
	before.Kind = record.KindReasoning
	gap.Read, end.Read, end.Tokens = 3, 4, record.Tokens(n-4)
	r.Events = []record.Event{first, before, one, gap, end}
}

func (q *request) guideOutcome(list string, info guideInfo, g guideRequest) {
	r := &q.record
	n, known := r.Output.N()
	switch list {
	case "successful":
		r.Outcome = record.OK
		if known && n == 0 || len(r.Events) == 0 {
			r.Outcome = record.EmptyOutput
		}
	case "incomplete":
		r.Outcome = record.Interrupted
	default:
		message := string(info.Error)
		if message == "" {
			message = string(g.Error)
		}
		failure(r, message, 0)
	}
	if r.Outcome != record.OK && known && n == 0 {
		r.Output = 0
	}
}

package interop

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-llm/assay/record"
)

// detailed are the arrays of a result of vLLM or SGLang with one element a
// request. A nil array is not in the file.
type detailed struct {
	ttfts, latencies, starts, queues []num
	inputs, outputs                  []tally
	itls                             []gaps
	errors                           []text
}

// said are the scalars of such a result that mean something to a run.
type said struct {
	duration, burstiness, completed, failed, concurrency num
	rate                                                 text // a number, or "inf"
	model, backend, date                                 text
}

// arrays reads the results of vLLM or SGLang in a file: one, or one after the
// other, as both append them.
func (p *parser) arrays(file string, data []byte) error {
	d := newDocument(file, data, 1)
	for i := 0; i == 0 || !d.done(); i++ {
		path := ""
		if i > 0 {
			path = fmt.Sprintf("[%d]", i)
		}
		if err := p.result(d, path); err != nil {
			return err
		}
	}
	return nil
}

// result reads one result.
func (p *parser) result(d *document, path string) error {
	var a detailed
	var is said
	var numbers []string
	err := d.object(path, func(key, path string) error {
		switch key {
		case "ttfts":
			return list(p, d, path, &a.ttfts)
		case "latencies":
			return list(p, d, path, &a.latencies)
		case "start_times":
			return list(p, d, path, &a.starts)
		case "queue_times":
			return list(p, d, path, &a.queues)
		case "input_lens":
			return list(p, d, path, &a.inputs)
		case "output_lens":
			return list(p, d, path, &a.outputs)
		case "itls":
			return list(p, d, path, &a.itls)
		case "errors":
			return list(p, d, path, &a.errors)
		}
		return is.field(d, key, path, &numbers)
	})
	if err != nil {
		return err
	}
	s := is.source(d.file, p.format)
	n, err := a.length(d, path)
	if err != nil {
		return err
	}
	if n == 0 {
		s.notes = append(s.notes, aggregateNotes(d.file, numbers)...)
		p.add(s)
		return nil
	}
	if err := p.each(d, path, &a, n, s); err != nil {
		return err
	}
	s.check(is)
	p.add(s)
	return nil
}

// list reads an array of which no element is a request of its own yet: it is
// bounded, but not accounted for.
func list[T any](p *parser, d *document, path string, to *[]T) error {
	if *to != nil {
		return d.fault(path, "this list is there twice", cutHint)
	}
	*to = []T{}
	events := p.events
	return d.array(path, func(i int, path string) error {
		if i >= p.rows {
			return d.fault(path, fmt.Sprintf("more than %d requests", p.limits.rows), "import fewer files at once")
		}
		var v T
		if err := d.value(path, &v); err != nil {
			return err
		}
		if g, ok := any(v).(gaps); ok {
			if events -= len(g); events < 0 {
				return d.fault(path, fmt.Sprintf("more than %d stream events", p.limits.events), "import fewer files at once")
			}
		}
		*to = append(*to, v)
		return nil
	})
}

// length checks that all arrays have one length, and returns it. Without times
// there are no requests.
func (a *detailed) length(d *document, path string) (int, error) {
	n, longest := -1, ""
	for _, x := range []struct {
		name string
		is   bool
		n    int
	}{
		{"ttfts", a.ttfts != nil, len(a.ttfts)},
		{"itls", a.itls != nil, len(a.itls)},
		{"latencies", a.latencies != nil, len(a.latencies)},
		{"start_times", a.starts != nil, len(a.starts)},
		{"queue_times", a.queues != nil, len(a.queues)},
		{"input_lens", a.inputs != nil, len(a.inputs)},
		{"output_lens", a.outputs != nil, len(a.outputs)},
		{"errors", a.errors != nil, len(a.errors)},
	} {
		switch {
		case !x.is:
		case n < 0:
			n, longest = x.n, x.name
		case x.n != n:
			return 0, d.fault(join(path, x.name), fmt.Sprintf("%d elements, but %s has %d", x.n, longest, n), "the lists have one element a request; the file is damaged")
		}
	}
	if a.ttfts == nil && a.latencies == nil {
		return 0, nil
	}
	return n, nil
}

// field reads one of the scalars; any other number is kept as an aggregate.
func (is *said) field(d *document, key, path string, numbers *[]string) error {
	to := map[string]any{
		"duration": &is.duration, "burstiness": &is.burstiness, "completed": &is.completed, "failed": &is.failed,
		"max_concurrency": &is.concurrency, "request_rate": &is.rate, "model_id": &is.model, "backend": &is.backend, "date": &is.date,
	}[key]
	switch into := to.(type) {
	case nil:
		var v anything
		if err := d.value(path, &v); err != nil {
			return err
		}
		if v.number != "" && len(*numbers) < mostNumbers {
			*numbers = append(*numbers, clean(key, 60)+" "+v.number)
		}
		return nil
	case *num:
		if err := d.value(path, into); err != nil {
			return err
		}
		if into.ok && len(*numbers) < mostNumbers {
			*numbers = append(*numbers, key+" "+format(into.v))
		}
		return nil
	}
	return d.value(path, to)
}

// anything is a value of which only a number is kept, as it was written.
type anything struct{ number string }

func (v *anything) UnmarshalJSON(b []byte) error {
	v.number = ""
	if len(b) < 40 && len(b) > 0 && (b[0] == '-' || b[0] >= '0' && b[0] <= '9') {
		v.number = string(b)
	}
	return nil
}

func format(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// source describes what was asked for.
func (is *said) source(file string, f Format) *source {
	s := &source{file: file, asked: "load", model: string(is.model)}
	if d, ok := nanoseconds(is.duration.v); ok && is.duration.ok {
		s.elapsed = d
	}
	rate, err := strconv.ParseFloat(strings.TrimSpace(string(is.rate)), 64)
	switch {
	case err == nil && rate > 0 && !math.IsInf(rate, 0):
		s.rate = rate
		s.poisson = !is.burstiness.ok || is.burstiness.v == 1
		s.asked = format(rate) + "/s"
		s.arrivals = fmt.Sprintf("%s requests/s asked", format(rate))
		if is.burstiness.ok {
			s.arrivals += ", burstiness " + format(is.burstiness.v)
		}
	case is.concurrency.ok:
		s.asked = format(is.concurrency.v) + " at once"
		s.arrivals = "all at once"
	default:
		s.arrivals = "all at once"
	}
	if is.concurrency.ok {
		s.arrivals += ", at most " + format(is.concurrency.v) + " in flight"
	}
	if is.date != "" {
		s.notes = append(s.notes, fmt.Sprintf("%s says that it was written at %s, by the local time of its host", clean(file, 200), clean(string(is.date), 40)))
	}
	if is.backend != "" {
		s.notes = append(s.notes, fmt.Sprintf("%s names the backend %s of %s", clean(file, 200), clean(string(is.backend), 60), f))
	}
	return s
}

// each makes a request of every row.
func (p *parser) each(d *document, path string, a *detailed, n int, s *source) error {
	s.scheduled = a.queues != nil && a.starts != nil
	s.requests = make([]request, 0, n)
	var ref float64
	for i := range a.starts {
		if a.starts[i].ok && a.starts[i].v > 0 && (ref == 0 || a.starts[i].v < ref) {
			ref = a.starts[i].v
		}
	}
	for i := range n {
		row := fmt.Sprintf("%s[%d]", join(path, "ttfts"), i)
		events := 2
		if i < len(a.itls) {
			events += len(a.itls[i])
		}
		if err := p.take(d, row, events); err != nil {
			return err
		}
		q, nonsense := p.row(a, i, ref)
		if nonsense != "" {
			p.drop(nonsense)
			continue
		}
		if i < len(a.itls) {
			a.itls[i] = nil // both forms of all gaps need not be in memory
		}
		s.requests = append(s.requests, q)
	}
	return nil
}

func at(list []num, i int) num {
	if i < len(list) {
		return list[i]
	}
	return num{}
}

// row makes the request of row i, or says why it makes no sense.
func (p *parser) row(a *detailed, i int, ref float64) (q request, nonsense string) {
	r := &q.record
	r.Stream = true
	r.Admit = record.At(0)
	ttft, latency, start, queue := at(a.ttfts, i), at(a.latencies, i), at(a.starts, i), at(a.queues, i)
	message := text("")
	if i < len(a.errors) {
		message = a.errors[i]
	}
	if i < len(a.inputs) {
		r.Prompt = a.inputs[i].Count
	}
	if i < len(a.outputs) {
		r.Output = a.outputs[i].Count
	}
	var between gaps
	if i < len(a.itls) {
		between = a.itls[i]
	}
	if nonsense = q.times(ttft, latency, between, p.format); nonsense != "" {
		return q, nonsense
	}
	if start.ok && start.v > 0 {
		d, ok := nanoseconds(start.v - ref)
		if !ok {
			return q, "a start time that is no time"
		}
		q.start, q.started = int64(d), true
		if w, ok := nanoseconds(queue.v); ok && queue.ok {
			q.wait, q.waited = w, true
		}
	}
	n, known := r.Output.N()
	switch {
	case message != "":
		failure(r, string(message), 0)
	case len(r.Events) == 0:
		r.Outcome, r.Detail = Failed, "the file gives neither a time nor an error"
	case known && n == 0:
		r.Outcome = record.EmptyOutput
	default:
		r.Outcome = record.OK
	}
	if r.Outcome != record.OK && n == 0 {
		r.Output = 0 // 0 is what the tool writes when it does not know
	}
	return q, ""
}

// times reads the chunks off TTFT and gaps. A TTFT of 0.0 is none.
func (q *request) times(ttft, latency num, between gaps, f Format) (nonsense string) {
	r := &q.record
	first, ok := nanoseconds(ttft.v)
	whole, timed := nanoseconds(latency.v)
	switch {
	case ttft.ok && !ok:
		return "a TTFT that is no time"
	case latency.ok && !timed:
		return "a latency that is no time"
	}
	timed = timed && latency.ok && whole > 0
	if timed {
		r.EOF = record.At(whole)
	}
	if !ttft.ok || first == 0 {
		if timed && len(between) == 0 {
			r.Stream = false
			r.Events = []record.Event{{At: record.At(whole), Lag: -1, Kind: record.KindContent}}
		}
		return ""
	}
	r.Events = make([]record.Event, 1, len(between)+2)
	r.Events[0] = record.Event{At: record.At(first), Lag: -1, Kind: record.KindContent}
	sum := ttft.v
	end := first
	for i, gap := range between {
		sum += gap
		if end, ok = nanoseconds(sum); !ok || gap < 0 {
			return "a gap that is no time"
		}
		r.Events = append(r.Events, record.Event{At: record.At(end), Lag: -1, Read: uint32(i + 1), Kind: record.KindContent})
	}
	switch {
	case !timed:
	case whole > end+time.Nanosecond && f == VLLM:
		r.Events = append(r.Events, record.Event{At: record.At(whole), Lag: -1, Read: uint32(len(between) + 1), Kind: record.KindUsage})
	case whole < end:
		if whole < end-time.Microsecond {
			return "a latency shorter than the chunks it covers"
		}
		r.EOF = record.At(end) // rounding
	}
	return ""
}

// check compares the rows with what the file says of them.
func (s *source) check(is said) {
	var completed, failed float64
	for i := range s.requests {
		if s.requests[i].record.Success() {
			completed++
		} else {
			failed++
		}
	}
	differs := func(what string, said num, is float64) {
		if said.ok && said.v != is {
			s.notes = append(s.notes, fmt.Sprintf("%s says %s %s, but its rows make %s: requests without output, and rows that were skipped, do not count as completed here", clean(s.file, 200), what, format(said.v), format(is)))
		}
	}
	differs("completed", is.completed, completed)
	differs("failed", is.failed, failed)
}

// mostNumbers bounds the aggregates that are kept of a file, and perNote those
// that stand on a line.
const (
	mostNumbers = 400
	perNote     = 8
)

// aggregateNotes writes a file's own numbers down, a few on a line.
func aggregateNotes(file string, numbers []string) []string {
	var notes []string
	for chunk := range slices.Chunk(numbers, perNote) {
		notes = append(notes, fmt.Sprintf("%s says: %s", clean(file, 200), strings.Join(chunk, ", ")))
	}
	return notes
}

// lines yields the lines of a file that are not blank, with their numbers.
func lines(data []byte, each func(n int, line []byte, last bool) error) error {
	for n := 1; len(data) > 0; n++ {
		line, rest, more := bytes.Cut(data, []byte{'\n'})
		data = rest
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := each(n, line, !more); err != nil {
			return err
		}
	}
	return nil
}

package interop

import (
	"encoding/json"
	"time"

	"github.com/assay-llm/assay/record"
)

// aiperfLine is one line of profile_export.jsonl.
type aiperfLine struct {
	Metadata *struct {
		Number         tally `json:"session_num"`
		Conversation   text  `json:"conversation_id"`
		Turn           tally `json:"turn_index"`
		CreditNS       stamp `json:"credit_issued_ns"`
		StartNS        stamp `json:"request_start_ns"`
		AckNS          stamp `json:"request_ack_ns"`
		EndNS          stamp `json:"request_end_ns"`
		BenchmarkPhase text  `json:"benchmark_phase"`
		Cancelled      *bool `json:"was_cancelled"`
	} `json:"metadata"`
	Metrics *aiperfMetrics `json:"metrics"`
	Error   *struct {
		Code    num  `json:"code"`
		Type    text `json:"type"`
		Message text `json:"message"`
	} `json:"error"`
}

type aiperfMetrics struct {
	TTFT      measured     `json:"time_to_first_token"`
	TTFO      measured     `json:"time_to_first_output_token"`
	Latency   measured     `json:"request_latency"`
	Chunks    measuredList `json:"inter_chunk_latency"`
	Input     counted      `json:"input_sequence_length"`
	Output    counted      `json:"output_sequence_length"`
	Visible   counted      `json:"output_token_count"`
	Reasoning counted      `json:"reasoning_token_count"`
}

type measured struct {
	Value num    `json:"value"`
	Unit  string `json:"unit"`
}

type measuredList struct {
	Value gaps   `json:"value"`
	Unit  string `json:"unit"`
}

type counted struct {
	Value tally `json:"value"`
}

// units are seconds each.
var units = map[string]float64{"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "sec": 1, "seconds": 1}

func (m measured) seconds() (v num, ok bool) {
	if !m.Value.ok {
		return num{}, true
	}
	u, ok := units[m.Unit]
	return num{m.Value.v * u, ok}, ok
}

// aiperf reads either of AIPerf's files.
func (p *parser) aiperf(file string, data []byte) error {
	var first struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	d := newDocument(file, data, 1)
	if err := d.value("", &first); err == nil && first.Metadata == nil {
		return p.aggregates(file, data)
	}
	s := &source{file: file, asked: "load", arrivals: "not told by this file"}
	var ref int64
	torn := 0
	err := lines(data, func(n int, line []byte, last bool) error {
		d := newDocument(file, line, n)
		var l aiperfLine
		if err := d.value("", &l); err != nil {
			if last && !json.Valid(line) && len(s.requests) > 0 {
				torn++ // AIPerf was killed while it wrote
				return p.take(d, "", 0)
			}
			return err
		}
		if l.Metadata == nil || l.Metrics == nil {
			return d.fault("", "a line without metadata or metrics", "each line of profile_export.jsonl is one request")
		}
		if err := p.take(d, "", len(l.Metrics.Chunks.Value)+2); err != nil {
			return err
		}
		if !l.Metadata.StartNS.ok {
			p.drop("no request_start_ns")
			return nil
		}
		if ref == 0 {
			ref = l.Metadata.StartNS.ns
		}
		q, nonsense := l.request(ref)
		if nonsense != "" {
			p.drop(nonsense)
			return nil
		}
		s.requests = append(s.requests, q)
		s.scheduled = s.scheduled || q.waited
		return nil
	})
	if err != nil {
		return err
	}
	for range torn {
		p.drop("the last line was cut off")
	}
	s.start = time.Unix(0, ref).UTC()
	p.add(s)
	return nil
}

// request makes the request of a line, or says why it makes no sense.
func (l *aiperfLine) request(ref int64) (q request, nonsense string) {
	md, r := l.Metadata, &q.record
	q.start, q.started = md.StartNS.ns-ref, true
	if since := time.Duration(q.start); since < -longest*time.Second || since > longest*time.Second {
		return q, "a start time years from the first"
	}
	r.Stream = true
	r.Admit = record.At(0)
	r.Session = clean(string(md.Conversation), 200)
	if turn, ok := md.Turn.N(); ok {
		r.Turn = int(turn)
	}
	if md.BenchmarkPhase == "warmup" {
		r.Phase = record.WarmUp
	}
	if md.CreditNS.ok {
		if q.wait, q.waited = time.Duration(md.StartNS.ns-md.CreditNS.ns), true; q.wait < 0 || q.wait > longest*time.Second {
			return q, "a credit that was issued after its request, or years before"
		}
	}
	r.Prompt, r.Output, r.Reasoning = l.Metrics.Input.Value.Count, l.Metrics.Output.Value.Count, l.Metrics.Reasoning.Value.Count
	if !r.Output.Known() {
		r.Output = l.Metrics.Visible.Value.Count
	}
	if nonsense = q.aiperfTimes(l); nonsense != "" {
		return q, nonsense
	}
	n, known := r.Output.N()
	switch {
	case md.Cancelled != nil && *md.Cancelled:
		r.Outcome = record.ClientCancelled
	case l.Error != nil:
		failure(r, string(l.Error.Type)+" "+string(l.Error.Message), int(l.Error.Code.v))
	case known && n == 0, len(r.Events) == 0:
		r.Outcome = record.EmptyOutput
	default:
		r.Outcome = record.OK
	}
	return q, ""
}

func (q *request) aiperfTimes(l *aiperfLine) (nonsense string) {
	md, m, r := l.Metadata, l.Metrics, &q.record
	ttft, ok1 := m.TTFT.seconds()
	whole, ok2 := m.Latency.seconds()
	answer, ok3 := m.TTFO.seconds()
	unit, ok4 := units[m.Chunks.Unit]
	if !ok1 || !ok2 || !ok3 || !ok4 && len(m.Chunks.Value) > 0 {
		return "a unit of time that is not known"
	}
	between := make(gaps, len(m.Chunks.Value))
	for i, v := range m.Chunks.Value {
		between[i] = v * unit
	}
	if !ttft.ok && len(between) > 0 {
		return "gaps without a TTFT"
	}
	if nonsense = q.times(ttft, num{}, between, AIPerf); nonsense != "" {
		return nonsense
	}
	last, ok := nanoseconds(whole.v)
	if whole.ok && !ok {
		return "a latency that is no time"
	}
	switch {
	case !whole.ok:
	case len(r.Events) == 0:
		r.Stream = false
		r.Events = []record.Event{{At: record.At(last), Lag: -1, Kind: record.KindContent}}
	case len(between) == 0 && record.At(last) > r.Events[0].At:
		r.Events = untold(r.Events[0], record.At(last), r.Output)
	}
	if t, ok := nanoseconds(answer.v); ok && answer.ok {
		for i := range r.Events {
			if e := &r.Events[i]; e.At.Set() && e.At < record.At(t)-record.Instant(time.Microsecond) {
				e.Kind = record.KindReasoning
			}
		}
	}
	since := func(t stamp) record.Instant {
		if !t.ok || t.ns < md.StartNS.ns {
			return 0
		}
		return record.At(time.Duration(t.ns - md.StartNS.ns))
	}
	r.Header, r.EOF = since(md.AckNS), since(md.EndNS)
	return ""
}

// untold makes the events of a stream of which only the first and the last token
// are known: what came between has no time. One token is taken to have come with
// the first, and all others but one with the last.
func untold(first record.Event, last record.Instant, output record.Count) []record.Event {
	end := record.Event{At: last, Lag: -1, Read: 2, Kind: record.KindContent}
	between := record.Event{Lag: -1, Read: 1, Kind: record.KindContent}
	if n, ok := output.N(); ok && n >= 3 {
		first.Tokens, between.Tokens, end.Tokens = record.Tokens(1), record.Tokens(1), record.Tokens(n-2)
	}
	return []record.Event{first, between, end}
}

package interop

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/assay-llm/assay/record"
)

// aiperf writes profile_export.jsonl, a line a request.
func (x *export) aiperf(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, r := range x.records {
		if !r.Admit.Set() {
			x.done.LeftOut++ // it never began, and the shape has no line for that
			continue
		}
		if err := enc.Encode(x.aiperfRow(r)); err != nil {
			return err
		}
		x.done.Rows++
	}
	x.done.Notes = append(x.done.Notes, "request_start_ns is when the client let the request go, as in AIPerf, before the connection was dialled")
	return nil
}

type lineOut struct {
	Metadata metadataOut    `json:"metadata"`
	Metrics  map[string]any `json:"metrics"`
	Error    any            `json:"error"`
}

type metadataOut struct {
	Number       int64   `json:"session_num"`
	Request      string  `json:"x_request_id"`
	Correlation  *string `json:"x_correlation_id"`
	Conversation *string `json:"conversation_id"`
	Turn         int     `json:"turn_index"`
	CreditNS     any     `json:"credit_issued_ns"`
	StartNS      any     `json:"request_start_ns"`
	AckNS        any     `json:"request_ack_ns"`
	EndNS        any     `json:"request_end_ns"`
	Worker       string  `json:"worker_id"`
	Phase        string  `json:"benchmark_phase"`
	Cancelled    bool    `json:"was_cancelled"`
	CancelledNS  any     `json:"cancellation_time_ns"`
}

type metricOut struct {
	Value any    `json:"value"`
	Unit  string `json:"unit"`
}

func (x *export) aiperfRow(r *record.Record) lineOut {
	md := metadataOut{
		Number: r.Shot, Request: fmt.Sprintf("%s-%s-%s-%d", x.manifest.ID, r.Variant, r.Workload, r.Shot), Turn: r.Turn,
		StartNS: x.wall(r.Admit), AckNS: x.wall(r.Header), EndNS: x.wall(r.EOF),
		CreditNS: x.wall(x.due(r)), Worker: "assay", Phase: "profiling", Cancelled: r.Outcome == record.ClientCancelled,
	}
	if r.Session != "" {
		md.Correlation, md.Conversation = &r.Session, &r.Session
	}
	if r.Phase == record.WarmUp {
		md.Phase = "warmup"
	}
	if md.Cancelled {
		md.CancelledNS = md.EndNS
	}
	out := lineOut{Metadata: md, Metrics: aiperfMetricsOf(r)}
	if !r.Success() {
		e := struct {
			Code    *int   `json:"code"`
			Type    string `json:"type"`
			Message string `json:"message"`
		}{Type: string(r.Outcome), Message: problem(r)}
		if r.Status != 0 {
			e.Code = &r.Status
		}
		out.Error = e
	}
	return out
}

// wall is an instant as nanoseconds since 1970, or null.
func (x *export) wall(t record.Instant) any {
	d, ok := t.Offset()
	if !ok {
		return nil
	}
	if x.manifest.Start.IsZero() {
		return int64(d)
	}
	return x.manifest.Start.Add(d).UnixNano()
}

func aiperfMetricsOf(r *record.Record) map[string]any {
	out := make(map[string]any)
	set := func(name string, v maybe, unit string) {
		if v.ok {
			out[name] = metricOut{v.v, unit}
		}
	}
	count := func(name string, c record.Count) {
		if n, ok := c.N(); ok {
			out[name] = metricOut{n, "tokens"}
		}
	}
	if !r.Success() {
		count("error_isl", r.Prompt)
		return out
	}
	v := views[AIPerf].Of(r)
	set("time_to_first_token", of(v, "ttft", millisecond), "ms")
	if s := r.Second(); s != nil {
		set("time_to_second_token", span(s.At, r.First().At, millisecond), "ms")
	}
	if a := r.FirstAnswer(); a != nil {
		set("time_to_first_output_token", span(a.At, r.Admit, millisecond), "ms")
	}
	set("request_latency", of(v, "e2e", millisecond), "ms")
	itl := of(v, "itl", millisecond)
	set("inter_token_latency", itl, "ms")
	if itl.ok && itl.v > 0 {
		set("output_token_throughput_per_user", some(1e3/itl.v), "tokens/sec/user")
	}
	if gaps := payloadGaps(r); len(gaps) > 0 {
		out["inter_chunk_latency"] = metricOut{gaps, "ms"}
	}
	count("input_sequence_length", r.Prompt)
	count("output_sequence_length", r.Output)
	n, ok := r.Output.N()
	thought, said := r.Reasoning.N()
	if ok && thought <= n {
		count("output_token_count", record.Tokens(n-thought))
	}
	if said {
		count("reasoning_token_count", r.Reasoning)
	}
	return out
}

// payloadGaps are AIPerf's inter-chunk latencies in milliseconds; none when one
// of them is not known.
func payloadGaps(r *record.Record) []float64 {
	var out []float64
	var last record.Instant
	for i := range r.Events {
		e := &r.Events[i]
		if !e.Kind.Payload() {
			continue
		}
		if !e.At.Set() {
			return nil
		}
		if d, ok := e.At.Sub(last); ok {
			out = append(out, float64(d)/float64(time.Millisecond))
		}
		last = e.At
	}
	return out
}

package record

import (
	"cmp"
	"slices"
	"strings"
)

// Unit is what a metric's numbers mean.
type Unit string

// The units. Times are nanoseconds in every number that Assay keeps; only
// people see milliseconds.
const (
	Nanoseconds     Unit = "ns"
	TokenUnit       Unit = "tokens"
	TokensPerSecond Unit = "tokens/s"
	Proportion      Unit = "share" // 0 to 1
	Requests        Unit = "requests"
	Points          Unit = "points" // the unit of a check's value
)

// Metric is one definition: how to read numbers off a record. The catalogue is
// Metrics; Find looks one up.
type Metric struct {
	Name   string // as contracts spell it: "ttft"
	Title  string // as tables show it: "TTFT"
	Unit   Unit
	Doc    string // the definition, with its formula
	Higher bool   // larger is better; else smaller is

	// Values appends what one offered record says: nothing when the metric is
	// undefined for it (a TPOT of one token), one number, or several (ICL).
	// It is asked of completed records only, unless Indicator, Always or Amount is set.
	Values func(r *Record, to []float64) []float64

	// Indicator: Values gives 0 or 1 for every offered record. Its mean is a share.
	Indicator bool

	// Always: Values does not depend on the answer, and is asked of failed
	// requests too. Elsewhere a failed request is worse than any value.
	Always bool

	// Amount: Values gives what a rate adds up, at the instants that Times gives.
	// Asked of every record, since tokens of a request that fails later were sent.
	Amount func(r *Record, add func(at Instant, amount float64))

	// Check names the check that writes the values; "": none does. Its records are
	// those of the workload of that name, and one of them that has no value, whatever
	// became of its request, is missing, unless it has the value [Exempt] names.
	Check string
	// Least and Most bound a check's values, so that missing ones can be counted as
	// the worst and as the best; equal: there is no bound.
	Least, Most float64
	// Whole: a number of the whole check, of which records know nothing. It has an
	// [Estimate], and no mean.
	Whole bool
}

// Exempt returns the name under which a record says that it has, by definition,
// no number of that value: it is then neither missing nor counted.
func Exempt(value string) string { return value + ".na" }

// Written returns the metric of a value that a check writes on records under its
// own name.
func Written(m Metric) Metric {
	m.Values = func(r *Record, to []float64) []float64 {
		if v, ok := r.Values[m.Name]; ok {
			return append(to, v)
		}
		return to
	}
	return m
}

// dur appends a − b when both happened.
func dur(to []float64, a, b Instant) []float64 {
	if d, ok := a.Sub(b); ok {
		return append(to, float64(d))
	}
	return to
}

func at(e *Event) Instant {
	if e == nil {
		return 0
	}
	return e.At
}

func indicator(is func(r *Record) bool) func(*Record, []float64) []float64 {
	return func(r *Record, to []float64) []float64 {
		if is(r) {
			return append(to, 1)
		}
		return append(to, 0)
	}
}

func instants(when func(r *Record) Instant) func(*Record, func(Instant, float64)) {
	return func(r *Record, add func(Instant, float64)) {
		if t := when(r); t.Set() {
			add(t, 1)
		}
	}
}

func tokens(of func(r *Record) Count) func(*Record, []float64) []float64 {
	return func(r *Record, to []float64) []float64 {
		if n, ok := of(r).N(); ok {
			return append(to, float64(n))
		}
		return to
	}
}

// TPOT returns the record's time per output token after the first event in
// nanoseconds: (t_last − t_first)/(N − n1), where n1 is the number of tokens in
// the first payload event, 1 if the server does not say. It is undefined when
// N is unknown or N ≤ n1.
func (r *Record) TPOT() (ns float64, ok bool) {
	first, last := r.First(), r.Last()
	n, known := r.Output.N()
	if first == nil || !known {
		return 0, false
	}
	n1, said := first.Tokens.N()
	if !said || n1 < 1 {
		n1 = 1
	}
	if n <= n1 || first == last {
		return 0, false
	}
	d, ok := last.At.Sub(first.At)
	return float64(d) / float64(n-n1), ok
}

// outputAmount adds each payload event's tokens at its instant; for a server
// that tells no token counts it adds nothing.
func outputAmount(r *Record, add func(Instant, float64)) {
	k, ok := r.eventTokens()
	if !ok {
		return
	}
	i := 0
	for j := range r.Events {
		if r.Events[j].Kind.Payload() {
			add(r.Events[j].At, float64(k[i]))
			i++
		}
	}
}

var metrics = []Metric{
	{
		Name: "ttft", Title: "TTFT", Unit: Nanoseconds, Doc: "time to first token from the schedule: t_first − t_due; free of coordinated omission",
		Values: func(r *Record, to []float64) []float64 { return dur(to, at(r.First()), r.Due) },
	},
	{
		Name: "ttft.service", Title: "TTFT (service)", Unit: Nanoseconds, Doc: "time to first token from the first byte sent: t_first − t_send",
		Values: func(r *Record, to []float64) []float64 { return dur(to, at(r.First()), r.Send) },
	},
	{
		Name: "ttfa", Title: "TTFA", Unit: Nanoseconds, Doc: "time to the first token of the answer, reasoning left out: t_first_out − t_due",
		Values: func(r *Record, to []float64) []float64 { return dur(to, at(r.FirstAnswer()), r.Due) },
	},
	{
		Name: "ttst", Title: "second token gap", Unit: Nanoseconds, Doc: "t_second − t_first",
		Values: func(r *Record, to []float64) []float64 { return dur(to, at(r.Second()), at(r.First())) },
	},
	{
		Name: "ttfb", Title: "first byte", Unit: Nanoseconds, Doc: "response header from the first byte sent: t_header − t_send; often just a flushed header, never a TTFT",
		Values: func(r *Record, to []float64) []float64 { return dur(to, r.Header, r.Send) },
	},
	{
		Name: "tpot", Title: "TPOT", Unit: Nanoseconds, Doc: "time per output token after the first event: (t_last − t_first)/(N − n1); n1 = tokens of the first event, 1 if unknown",
		Values: func(r *Record, to []float64) []float64 {
			if v, ok := r.TPOT(); ok {
				return append(to, v)
			}
			return to
		},
	},
	{
		Name: "icl", Title: "ICL", Unit: Nanoseconds, Doc: "inter-chunk latency: gaps between payload events, one number a gap, pooled over requests",
		Values: func(r *Record, to []float64) []float64 {
			var last Instant
			for i := range r.Events {
				if e := &r.Events[i]; e.Kind.Payload() {
					to = dur(to, e.At, last)
					last = e.At
				}
			}
			return to
		},
	},
	{
		Name: "itl", Title: "ITL", Unit: Nanoseconds, Doc: "inter-token latency, weighted by tokens: the gap of event i counts k_i times as gap/k_i, pooled over requests",
		Values: func(r *Record, to []float64) []float64 {
			k, ok := r.eventTokens()
			if !ok {
				return to
			}
			var last Instant
			i := -1
			for j := range r.Events {
				e := &r.Events[j]
				if !e.Kind.Payload() {
					continue
				}
				i++
				if d, ok := e.At.Sub(last); ok {
					for range k[i] {
						to = append(to, float64(d)/float64(k[i]))
					}
				}
				last = e.At
			}
			return to
		},
	},
	{
		Name: "gap.max", Title: "longest gap", Unit: Nanoseconds, Doc: "the longest gap between payload events of a request",
		Values: func(r *Record, to []float64) []float64 {
			var last Instant
			longest, has := 0.0, false
			for i := range r.Events {
				e := &r.Events[i]
				if !e.Kind.Payload() {
					continue
				}
				if d, ok := e.At.Sub(last); ok {
					longest, has = max(longest, float64(d)), true
				}
				last = e.At
			}
			if !has {
				return to
			}
			return append(to, longest)
		},
	},
	{
		Name: "e2e", Title: "E2E", Unit: Nanoseconds, Doc: "end to end from the schedule: t_last − t_due",
		Values: func(r *Record, to []float64) []float64 { return dur(to, at(r.Last()), r.Due) },
	},
	{
		Name: "e2e.service", Title: "E2E (service)", Unit: Nanoseconds, Doc: "end to end from the first byte sent: t_last − t_send",
		Values: func(r *Record, to []float64) []float64 { return dur(to, at(r.Last()), r.Send) },
	},
	{
		Name: "ntpot", Title: "NTPOT", Unit: Nanoseconds, Doc: "end to end per output token: (t_last − t_due)/N",
		Values: func(r *Record, to []float64) []float64 {
			d, ok := at(r.Last()).Sub(r.Due)
			n, known := r.Output.N()
			if !ok || !known || n < 1 {
				return to
			}
			return append(to, float64(d)/float64(n))
		},
	},
	{
		Name: "user_rate", Title: "user rate", Unit: TokensPerSecond, Higher: true, Doc: "tokens per second that one user sees: 1/TPOT of each request",
		Values: func(r *Record, to []float64) []float64 {
			if v, ok := r.TPOT(); ok && v > 0 {
				return append(to, 1e9/v)
			}
			return to
		},
	},
	{
		Name: "lag", Title: "schedule lag", Unit: Nanoseconds, Always: true, Doc: "how late the client sent: t_send − t_due, less the jitter of the plan",
		Values: func(r *Record, to []float64) []float64 {
			if d, ok := r.Send.Sub(r.Due); ok {
				return append(to, float64(d-r.Jitter))
			}
			return to
		},
	},
	{
		Name: "connect", Title: "connect", Unit: Nanoseconds, Always: true, Doc: "dial and TLS of requests that needed a new connection",
		Values: func(r *Record, to []float64) []float64 { return dur(to, r.ConnEnd, r.ConnStart) },
	},
	{Name: "prompt_length", Title: "prompt length", Unit: TokenUnit, Doc: "prompt tokens of a request, as the server counts them", Values: tokens(func(r *Record) Count { return r.Prompt })},
	{Name: "output_length", Title: "output length", Unit: TokenUnit, Doc: "output tokens of a request, as the server counts them", Values: tokens(func(r *Record) Count { return r.Output })},
	{
		Name: "cached", Title: "cached prompt share", Unit: Proportion, Higher: true, Doc: "share of the prompt tokens that came from a prefix cache, request by request: cached/prompt",
		Values: func(r *Record, to []float64) []float64 {
			c, ok := r.Cached.N()
			p, known := r.Prompt.N()
			if !ok || !known || p == 0 {
				return to
			}
			return append(to, float64(c)/float64(p))
		},
	},

	{
		Name: "failed", Title: "failed", Unit: Proportion, Indicator: true, Doc: "requests that failed, of those offered and not dropped by the client",
		Values: indicator(func(r *Record) bool { return r.Outcome.Group() == GroupFailed }),
	},
	{
		Name: "completed", Title: "completed", Unit: Proportion, Higher: true, Indicator: true, Doc: "requests that completed, of those offered and not dropped by the client",
		Values: indicator((*Record).Success),
	},
	{
		Name: "truncated", Title: "truncated", Unit: Proportion, Indicator: true, Doc: "requests that ended at the token limit (finish_reason length)",
		Values: indicator(func(r *Record) bool { return r.Success() && r.Finish == "length" }),
	},

	{Name: "output_tokens", Title: "output tokens", Unit: TokenUnit, Higher: true, Doc: "output tokens, each counted at the instant its event arrived", Amount: outputAmount},
	{
		Name: "prompt_tokens", Title: "prompt tokens", Unit: TokenUnit, Higher: true, Doc: "prompt tokens of completed requests, counted at the first token",
		Amount: func(r *Record, add func(Instant, float64)) {
			if n, ok := r.Prompt.N(); ok && r.Success() && r.First() != nil {
				add(r.First().At, float64(n))
			}
		},
	},
	{Name: "offered", Title: "offered requests", Unit: Requests, Higher: true, Doc: "requests by their due instant", Amount: instants(func(r *Record) Instant { return r.Due })},
	{Name: "sent", Title: "sent requests", Unit: Requests, Higher: true, Doc: "requests by the instant of their first byte", Amount: instants(func(r *Record) Instant { return r.Send })},
	{
		Name: "requests", Title: "completed requests", Unit: Requests, Higher: true, Doc: "completed requests by the end of their answer",
		Amount: instants(func(r *Record) Instant {
			if !r.Success() {
				return 0
			}
			return r.EOF
		}),
	},
}

// Metrics returns the catalogue, in the order in which a report shows it. The
// caller owns the slice.
func Metrics() []Metric { return slices.Clone(metrics) }

// Find returns the metric of that name. A name with the prefix "value." reads
// the value that a check wrote on the records under the rest of the name.
func Find(name string) (Metric, bool) {
	if i := slices.IndexFunc(metrics, func(m Metric) bool { return m.Name == name }); i >= 0 {
		return metrics[i], true
	}
	if key, ok := strings.CutPrefix(name, "value."); ok && key != "" {
		return Metric{
			Name: name, Title: key, Unit: Points, Higher: true, Doc: "the value " + key + " that a check wrote on each record",
			Values: func(r *Record, to []float64) []float64 {
				if v, ok := r.Values[key]; ok {
					return append(to, v)
				}
				return to
			},
		}, true
	}
	return Metric{}, false
}

// Sort orders records by due instant, then by variant, workload and shot: the
// order in which statistics that know about time want them.
func Sort(records []Record) {
	slices.SortStableFunc(records, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Due, b.Due), strings.Compare(a.Variant, b.Variant), strings.Compare(a.Workload, b.Workload), cmp.Compare(a.Shot, b.Shot))
	})
}

package record

import "slices"

// View is one tool's way to read numbers off a record: the same events, other
// definitions. With it a figure of that tool can be compared with a run of ours,
// and the difference explained.
type View struct {
	Name string
	Doc  string // where the tool starts and stops its clocks

	// Of returns what the tool would report for this one request, by the names
	// "ttft", "tpot", "itl" (mean), "itl_p50", "icl" (mean), "icl_p50" and "e2e",
	// all in nanoseconds; Assay's own view has "ttft.service", "first_event" and
	// "lag" besides. What the tool does not report, or cannot for this request, is
	// not in the map. It is empty for a request that did not complete.
	Of func(r *Record) map[string]float64
}

// Views returns the definitions of other tools, and Assay's own as the last. The
// caller owns the slice. They were derived by hand from each tool's code; all of them
// but MLPerf start their clocks when their own queue lets the request go, so
// that what it waited there is in none of their numbers.
func Views() []View { return slices.Clone(views) }

var views = []View{
	{
		Name: "vllm",
		Doc:  "vllm bench serve: TTFT ends at the first chunk of any kind, even without text; ITL has a sample for each later chunk with choices; E2E ends at the last of them",
		Of:   view(vllmView),
	},
	{
		Name: "guidellm",
		Doc:  "guidellm: TPOT is the time to the last token over all tokens, TTFT included; ITL is what others call TPOT; E2E ends with the connection's answer",
		Of: view(func(c clocks, to numbers) {
			to.ttft(c, c.start)
			to.set("tpot", c.last.over(c.start), c.n)
			to.set("itl", c.last.over(c.first), c.n-1)
			to.set("e2e", c.eof.over(c.start), 1)
		}),
	},
	{
		Name: "aiperf",
		Doc:  "AIPerf: ITL is what others call TPOT, and inter-chunk latency what vLLM calls ITL; E2E ends at the last chunk with text",
		Of: view(func(c clocks, to numbers) {
			to.ttft(c, c.start)
			to.set("itl", c.last.over(c.first), c.n-1)
			to.mean("icl", c.gaps)
			to.set("e2e", c.last.over(c.start), 1)
		}),
	},
	{
		Name: "inference-perf",
		Doc:  "inference-perf: a chunk of k tokens gives ITL samples of its whole gap and k − 1 zeros; E2E ends at [DONE]",
		Of: view(func(c clocks, to numbers) {
			to.ttft(c, c.start)
			to.set("tpot", c.last.over(c.first), c.n-1)
			to.mean("itl", c.bursts())
			to.set("e2e", c.done.over(c.start), 1)
		}),
	},
	{
		Name: "genai-bench",
		Doc:  "genai-bench: TPOT runs from the first token to [DONE]",
		Of: view(func(c clocks, to numbers) {
			to.ttft(c, c.start)
			to.set("tpot", c.done.over(c.first), c.n-1)
			to.set("e2e", c.done.over(c.start), 1)
		}),
	},
	{
		Name: "sglang",
		Doc:  "sglang.bench_serving: TPOT runs from the first token to [DONE]; ITL has a sample for each later chunk with text",
		Of: view(func(c clocks, to numbers) {
			to.ttft(c, c.start)
			to.set("tpot", c.done.over(c.first), c.n-1)
			to.mean("itl", c.gaps)
			to.set("e2e", c.done.over(c.start), 1)
		}),
	},
	{
		Name: "llmperf",
		Doc:  "llmperf: ITL is the time to the last token over all tokens, TTFT included; E2E ends at the last chunk with text",
		Of: view(func(c clocks, to numbers) {
			to.ttft(c, c.start)
			to.set("itl", c.last.over(c.start), c.n)
			to.set("e2e", c.last.over(c.start), 1)
		}),
	},
	{
		Name: "hf",
		Doc:  "Hugging Face inference-benchmarker: ITL is what others call TPOT; E2E ends at [DONE]",
		Of: view(func(c clocks, to numbers) {
			to.ttft(c, c.start)
			to.set("itl", c.last.over(c.first), c.n-1)
			to.set("e2e", c.done.over(c.start), 1)
		}),
	},
	{
		Name: "mlperf",
		Doc:  "MLPerf inference rules: everything from the schedule, as a user would",
		Of: view(func(c clocks, to numbers) {
			to.ttft(c, c.due)
			to.set("tpot", c.last.over(c.first), c.n-1)
			to.set("e2e", c.last.over(c.due), 1)
		}),
	},
	{
		Name: "assay",
		Doc:  "Assay: from the schedule; TPOT leaves the tokens of the first event out; ITL is weighted by tokens, ICL is of raw gaps",
		Of:   assayView,
	},
}

// moment is an Instant that knows how to be subtracted into a number.
type moment Instant

// over returns m − from in nanoseconds, or −1 when either did not happen.
func (m moment) over(from moment) float64 {
	if d, ok := Instant(m).Sub(Instant(from)); ok {
		return float64(d)
	}
	return -1
}

// clocks are the points of a record at which the tools read theirs.
type clocks struct {
	r           *Record
	due, start  moment // start: the tool's own queue let it go
	first, last moment // events with output
	done, eof   moment
	n           int64     // output tokens; 0: unknown
	gaps        []float64 // between events with output
}

func view(of func(c clocks, to numbers)) func(r *Record) map[string]float64 {
	return func(r *Record) map[string]float64 {
		to := make(numbers)
		if !r.Success() {
			return to
		}
		c := clocks{
			r: r, due: moment(r.Due), start: moment(r.Admit),
			first: moment(at(r.First())), last: moment(at(r.Last())), done: moment(r.EOF), eof: moment(r.EOF),
		}
		c.n, _ = r.Output.N()
		last := moment(0)
		for i := range r.Events {
			e := &r.Events[i]
			switch {
			case e.Kind == KindDone:
				c.done = moment(e.At)
			case e.Kind.Payload():
				if gap := moment(e.At).over(last); gap >= 0 {
					c.gaps = append(c.gaps, gap)
				}
				last = moment(e.At)
			}
		}
		of(c, to)
		return to
	}
}

// bursts returns the gaps of inference-perf: that of an event of k tokens once,
// and then k − 1 zeros.
func (c clocks) bursts() []float64 {
	k, ok := c.r.eventTokens()
	if !ok {
		return nil
	}
	var samples []float64
	for i, gap := range c.gaps {
		samples = append(samples, gap)
		samples = append(samples, make([]float64, k[i+1]-1)...)
	}
	return samples
}

// numbers collects what a view gives.
type numbers map[string]float64

// set sets name to ns/n, when ns is known and n is positive.
func (to numbers) set(name string, ns float64, n int64) {
	if ns >= 0 && n > 0 {
		to[name] = ns / float64(n)
	}
}

func (to numbers) ttft(c clocks, from moment) { to.set("ttft", c.first.over(from), 1) }

// mean sets name to the mean of the samples, and name_p50 to their median.
func (to numbers) mean(name string, samples []float64) {
	if len(samples) == 0 {
		return
	}
	sum := 0.0
	for _, x := range samples {
		sum += x
	}
	to[name] = sum / float64(len(samples))
	sorted := slices.Sorted(slices.Values(samples))
	mid := len(sorted) / 2
	if len(sorted)%2 == 0 {
		to[name+"_p50"] = (sorted[mid-1] + sorted[mid]) / 2
	} else {
		to[name+"_p50"] = sorted[mid]
	}
}

func vllmView(c clocks, to numbers) {
	var first, last moment
	var gaps []float64
	for i := range c.r.Events {
		e := &c.r.Events[i]
		if e.Kind != KindRole && e.Kind != KindFinish && !e.Kind.Payload() {
			continue // no choices in it
		}
		if first == 0 {
			first = moment(e.At)
		} else if gap := moment(e.At).over(last); gap >= 0 {
			gaps = append(gaps, gap)
		}
		last = moment(e.At)
	}
	to.set("ttft", first.over(c.start), 1)
	to.set("tpot", last.over(first), c.n-1)
	to.mean("itl", gaps)
	to.set("e2e", last.over(c.start), 1)
}

// assayView gives the catalogue's own numbers.
func assayView(r *Record) map[string]float64 {
	to := make(numbers)
	if !r.Success() {
		return to
	}
	for _, name := range []string{"ttft", "ttft.service", "tpot", "e2e", "lag"} {
		m, _ := Find(name)
		if v := m.Values(r, nil); len(v) == 1 {
			to[name] = v[0]
		}
	}
	for _, name := range []string{"itl", "icl"} {
		m, _ := Find(name)
		to.mean(name, m.Values(r, nil))
	}
	for i := range r.Events {
		if k := r.Events[i].Kind; k == KindRole || k.Payload() {
			to.set("first_event", moment(r.Events[i].At).over(moment(r.Send)), 1)
			break
		}
	}
	return to
}

package contract

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// Steady says from when on one stretch of measurement was steady, and whether
// the number of requests in flight still grew then. The zero Steady was never
// steady.
type Steady struct {
	Found bool
	// From is where the steady state begins. When none was found it is the
	// middle of the stretch, or zero if even the answers to its first requests
	// took longer than that.
	From record.Instant
	// Why says what kept it from being steady, or what lasted longest of the
	// warm-up; "" if there was none.
	Why string
	// Drift is by how many requests a second the number in flight grows from From
	// to the end of the stretch. Without a value: unknown, as in a closed loop,
	// whose users bound it.
	Drift stat.Estimate
}

const (
	levels     = 200 // averages of the number in flight over a stretch
	firstOnes  = 10  // requests that meet an engine that is still empty
	leastTTFTs = 60  // fewer answers show no warm-up
)

// FindSteady looks for the steady state of the measured requests within a window;
// records outside of it do no harm. Users is how many virtual users a closed loop
// has; 0 means an open one. The confidence is that of the two-sided interval of
// the drift.
//
// The warm-up is over when the number in flight (its averages over 200 equal
// times) and the times to first token have become steady by [stat.FindSteady],
// and the beginning is past. One of the two series may look unsteady, since either
// does by chance now and then; if both do, there is no steady state.
//
// The beginning of an open loop is twice the time that nine of its first ten
// answers took: until then requests pile up even in an engine that can take them.
// That of a closed loop is over when every user has had one answer, since they all
// started together. If all that takes more than half of the window, there is no
// steady state in it.
func FindSteady(records []*record.Record, w record.Window, users int, confidence float64) Steady {
	in := within(records, w)
	length, ok := w.End.Sub(w.Start)
	s := Steady{Drift: none("there is no steady state to look at", confidence).est}
	if !ok || length <= 0 || len(in) == 0 {
		s.Why = "nothing was measured"
		return s
	}
	middle := length / 2
	start, what := beginning(in, w, users)
	if start > middle {
		s.Why = fmt.Sprintf("%s lasted %s, more than half of the %s measured", what, about3(start), about3(length))
		return s
	}
	// Few steady series are called unsteady by chance, both of a queue by less.
	unsteady := ""
	found := users > 0
	add := func(f stat.Steady, from time.Duration, name string) {
		if !f.Found {
			unsteady = name
			return
		}
		if found = true; from > start {
			start, what = from, name
		}
	}
	flying := inFlight(in, w)
	if users == 0 {
		f := stat.FindSteady(flying)
		add(f, time.Duration(f.From)*(length/levels), "the number of requests in flight")
	}
	if due, ttft := firsts(in, w); len(ttft) >= leastTTFTs {
		found = found && users == 0
		f := stat.FindSteady(ttft)
		add(f, due[f.From], "the time to first token")
	}
	switch s.Found = found && start <= middle; {
	case !s.Found:
		s.Why = cmp.Or(unsteady, what) + " had not become steady by the middle of the " + about3(length).String() + " measured"
		start = middle
	case start > 0:
		s.Why = what
	}
	s.From = w.Start + record.Instant(start)
	if users == 0 {
		cut := int(math.Ceil(float64(start) / float64(length) * levels))
		s.Drift = stat.FindDrift(flying[cut:], length.Seconds()*float64(levels-cut)/levels, confidence)
	}
	return s
}

// about3 rounds a duration to what a reader wants of it.
func about3(d time.Duration) time.Duration {
	if d > 10*time.Second {
		return d.Round(time.Second)
	}
	return d.Round(10 * time.Millisecond)
}

// within returns the measured requests that came due in a window, in order, but
// for those that the client dropped.
func within(records []*record.Record, w record.Window) (in []*record.Record) {
	for _, r := range records {
		if r.Phase == record.Measured && r.Variant == w.Variant && r.Workload == w.Workload && r.Block == w.Block && (r.Outcome.Group() != record.GroupDropped || r.Outcome == record.ClientCancelled) {
			in = append(in, r)
		}
	}
	slices.SortStableFunc(in, func(a, b *record.Record) int { return cmp.Compare(a.Due, b.Due) })
	return in
}

// took is how long a request was in flight, from its due instant; one without an
// end was so for ever.
func took(r *record.Record) time.Duration {
	if d, ok := r.EOF.Sub(r.Due); ok {
		return d
	}
	return math.MaxInt64
}

// beginning is how long the start of a window lasted, with its name.
func beginning(in []*record.Record, w record.Window, users int) (time.Duration, string) {
	if users == 0 {
		var times []time.Duration
		for _, r := range in[:min(firstOnes, len(in))] {
			times = append(times, took(r))
		}
		slices.Sort(times)
		d := times[(len(times)*9-1)/10]
		if d > math.MaxInt64/2 {
			return d, "the first answers"
		}
		return 2 * d, "the time until the first answers had come and gone"
	}
	seen := make(map[int64]bool, min(users, len(in)))
	var last time.Duration
	for _, r := range in {
		if user := r.Shot % int64(users); !seen[user] {
			seen[user] = true
			end := took(r)
			if since, ok := r.Due.Sub(w.Start); ok && end < math.MaxInt64/2 {
				end += since
			}
			last = max(last, end)
		}
	}
	return last, "the first wave, the first answer to each user,"
}

// inFlight returns the exact averages of the number of requests between their due
// instants and their ends, over so many equal times of the window.
func inFlight(in []*record.Record, w record.Window) []float64 {
	out := make([]float64, levels)
	length, _ := w.End.Sub(w.Start)
	bin := float64(length) / levels
	for _, r := range in {
		since, ok := r.Due.Sub(w.Start)
		if !ok {
			continue
		}
		from, to := max(0, float64(since)/bin), math.Min(levels, (float64(since)+float64(took(r)))/bin)
		for i := int(from); i < levels && float64(i) < to; i++ {
			out[i] += math.Min(to, float64(i+1)) - math.Max(from, float64(i))
		}
	}
	return out
}

// firsts returns the times to first token of the answered requests in nanoseconds,
// and when each was due, counted from the start of the window.
func firsts(in []*record.Record, w record.Window) (due []time.Duration, ttft []float64) {
	for _, r := range in {
		first := r.First()
		if first == nil || !r.Success() {
			continue
		}
		d, ok := first.At.Sub(r.Due)
		since, also := r.Due.Sub(w.Start)
		if ok && also {
			due, ttft = append(due, since), append(ttft, float64(d))
		}
	}
	return due, ttft
}

// Since returns the evidence of what came due from an instant on: a verdict on it
// leaves the warm-up out. Only a prefix can be left out, never what came later.
func (e Evidence) Since(from record.Instant) Evidence {
	var records []record.Record
	for i := range e.Records {
		if e.Records[i].Due >= from {
			records = append(records, e.Records[i])
		}
	}
	windows := make([]record.Window, 0, len(e.Windows))
	for _, w := range e.Windows {
		if w.Start = max(w.Start, from); w.Start < w.End {
			windows = append(windows, w)
		}
	}
	e.Records, e.Windows = records, windows
	return e
}

// Leaning is what the values alone say, without their bounds: fail if one of them
// is beyond its limit, pass if all are within. It proves nothing; it says where
// to look next.
func (v Verdict) Leaning() Grade {
	var grades []Grade
	for _, r := range v.Clauses {
		grades = append(grades, r.leaning())
	}
	return Worst(grades...)
}

func (r Result) leaning() Grade {
	if r.Kind == KindAll || r.Kind == KindEach {
		var grades []Grade
		for _, m := range r.Results {
			grades = append(grades, m.leaning())
		}
		return Worst(grades...)
	}
	if r.Kind == KindSome {
		var grades []Grade
		for _, m := range r.Results {
			grades = append(grades, m.leaning())
		}
		return atLeast(1, grades...)
	}
	switch {
	case r.Kind != KindClause || r.Candidate == nil || r.Limit == nil || r.Limit.Value == nil || !r.Candidate.Defined():
		return r.Grade
	case r.Compare.holds(r.Candidate.Value, *r.Limit.Value):
		return Pass
	}
	return Fail
}

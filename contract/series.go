package contract

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/anytime"
)

// Series is what was seen of one metric of one variant in a stretch of time: the
// evidence of a live rule. It holds raw values, a histogram of them, or counts;
// which of them it needs depends on the statistic that is asked for. The zero
// Series is no evidence. It is not changed once it was handed over.
type Series struct {
	N       int64     // observations, those in Over included; of amounts, requests; by Sessions, requests too
	Over    int64     // of N: failed, or in flight for longer than Ask.Beyond, so worse than any value; of amounts, failed
	Missing int64     // not in N: should have a value and have none
	Total   float64   // of yes-or-no metrics the number of yes, of amounts the amount
	Seconds float64   // how much of the stretch was watched
	Values  []float64 // finite, in time order; of amounts, what each watched second saw
	// Histogram is of the finite values, one observation each, instead of Values. It
	// knows no order, so what it shows takes requests as independent.
	Histogram *stat.Histogram
	Weights   []float64 // of metrics of engines: of how many requests, or seconds, each of Values is the sum; as long as Values

	// For an Ask by Sessions, instead of the above except N, Over and Missing: one
	// observation a session, of the values of all its requests (see
	// [stat.Histogram.Add]). Best has what speaks for the demand: a request in flight
	// lies at its age, or as low as it can, if less is better; a failed request is
	// worse than any value, but of the baseline better than any. Worst has what speaks
	// against it. They are the same where nothing is open. A yes is 1, a no 0. Nil:
	// not told.
	Best, Worst *stat.Histogram
	Sums        anytime.Moments // of each session the sum of its values, and their number
	Pending     int64           // requests in flight
	InFlight    float64         // requests in flight per replica, on average over the stretch; 0: not told
}

// Ask says which Series a rule wants. Its stretch is above From and up to To.
type Ask struct {
	Metric   string
	Variant  string // "baseline" or "candidate": the part it plays, not its name
	Workload string // "": all, never mixed with others by a rule that names one
	Where    map[string]string
	From, To time.Time
	At       time.Time // when it is asked: what is known later has not happened
	Last     int64     // only the last so many observations up to To; From then is a bound. 0: all
	Beyond   float64   // requests in flight for longer, in the metric's unit, are Over; 0: none are
	Sessions bool      // one observation a session, of those that began in the stretch: all their requests up to At
	Low      bool      // by Sessions: more is better
}

// Observed answers what was seen: a [History] of records, or the counters of a
// gateway. The same question has the same answer whenever it is asked.
type Observed interface {
	// See returns the Series asked for; the zero Series if nothing was seen.
	See(Ask) Series
	// Labels returns the values of a label that were seen up to at, sorted; of the
	// empty key, the workloads.
	Labels(key string, at time.Time) []string
	// Steps returns how the traffic was split above from and up to at, in order: a
	// step for each split. The first may have begun before. None: nobody tells, so
	// what was seen since the first look is one step.
	Steps(from, at time.Time) []Step
}

// mostUnrolled is how many values a histogram, or a count, is made into at most. Of more
// that many are taken, in the same proportions: that shows less, and never more.
const mostUnrolled = 1 << 18

// sample returns the values in the orientation in which worse is larger, and how many
// of them are beyond any value.
func (s Series) sample(high bool) (sample *stat.Sample, over int, err error) {
	values, over := s.Values, int(s.Over)
	if s.Histogram != nil && len(values) == 0 {
		scale := math.Min(1, mostUnrolled/(s.Histogram.N()+float64(s.Over)))
		values, over = expand(s.Histogram, scale), int(math.Ceil(float64(s.Over)*scale))
	}
	if !high {
		values = slices.Clone(values)
		for i := range values {
			values[i] = -values[i]
		}
	}
	sample, err = stat.NewSample(values, over)
	return sample, over, err
}

// kept is how many values the series has.
func (s Series) kept() int64 {
	if s.Histogram != nil && len(s.Values) == 0 {
		return int64(math.Round(s.Histogram.N())) + s.Over
	}
	return int64(len(s.Values)) + s.Over
}

// expand turns a histogram into values in an order without memory: what the
// buckets know of their order is nothing. Each value stands at the middle of its
// bucket, at most 0.8 % off. Of a scale below 1 there are so much fewer of them.
func expand(h *stat.Histogram, scale float64) []float64 {
	var sorted []float64
	sum := 0.0
	for b := range h.Buckets() {
		mid := (b.Lo + b.Hi) / 2
		if math.IsInf(b.Hi, 1) {
			mid = b.Lo
		}
		sum += b.Count
		for upTo := int(math.Round(sum * scale)); len(sorted) < upTo; {
			sorted = append(sorted, mid)
		}
	}
	return scattered(sorted)
}

// share is the share of yes of so many observations, whose order nobody told.
func (s Series) share(confidence float64) reading {
	n, yes := s.N, s.Total
	if !(yes >= 0 && yes <= float64(n)) || yes != math.Trunc(yes) {
		return none(fmt.Sprintf("%v of %d are yes", yes, n), confidence)
	}
	if n <= mostUnrolled {
		z := make([]float64, n)
		for i := range int(yes) {
			z[len(z)-1-i] = 1
		}
		return reading{est: stat.Share(scattered(z), confidence)}
	}
	const most = 1 << 30 // more are taken for that many, rounded to either side
	scale := math.Min(1, most/float64(n))
	k := int(math.Round(float64(n) * scale))
	lo, hi := stat.ExactShare(int(yes*scale), k, confidence), stat.ExactShare(int(math.Ceil(yes*scale)), k, confidence)
	hi.Value, hi.Lo, hi.N = yes/float64(n), lo.Lo, int(n)
	return reading{est: hi}
}

// scattered orders values by a low-discrepancy sequence (multiples of the golden
// ratio), so that neighbours tell nothing of each other.
func scattered(sorted []float64) []float64 {
	n := len(sorted)
	if n < 3 {
		return sorted
	}
	step := int(math.Round(float64(n) / math.Phi))
	for gcd(step, n) != 1 {
		step++
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = sorted[i*step%n]
	}
	return out
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// measure estimates the quantity from the series. The gap says why it is no
// evidence.
func (s Series) measure(q Quantity, m record.Metric, confidence float64, high bool) reading {
	switch {
	case s.N <= 0:
		return none("nothing was seen", confidence)
	case float64(s.Missing) > maxMissing*float64(s.N+s.Missing):
		return none(fmt.Sprintf("%d of %d have no %s", s.Missing, s.N+s.Missing, m.Title), confidence)
	}
	switch q.Stat {
	case "share":
		if len(s.Values) > 0 {
			return reading{est: stat.Share(s.Values, confidence)}
		}
		return s.share(confidence)
	case "count":
		return reading{est: exact(s.Total, int(s.N), 0, confidence)}
	case "rate":
		if len(s.Weights) > 0 && len(s.Weights) == len(s.Values) && len(s.Values) >= rateSlices {
			return reading{est: s.seldom(stat.Rate(s.Values, s.Weights, confidence), m)}
		}
		if len(s.Values) < rateSlices {
			return none(fmt.Sprintf("only %s; a rate needs %d for a bound", count(len(s.Values), "second"), rateSlices), confidence)
		}
		seconds := make([]float64, len(s.Values))
		for i := range seconds {
			seconds[i] = s.Seconds / float64(len(s.Values))
		}
		return reading{est: neverSeen(stat.Rate(s.Values, seconds, confidence), m, seconds)}
	}
	if len(s.Weights) > 0 && q.Stat == "mean" {
		return s.weighted(confidence)
	}
	sample, over, err := s.sample(high)
	if err != nil {
		return none(err.Error(), confidence)
	}
	if s.kept() != s.N && m.Name != "icl" && m.Name != "itl" || sample.N() == 0 {
		return none("the values were not kept", confidence)
	}
	var r reading
	switch q.Stat {
	case "mean":
		r.est = sample.Mean(confidence)
		switch n := sample.N() - r.est.Over; {
		case float64(s.Over) > maxFailed*float64(s.N):
			r.gap = fmt.Sprintf("%d of %d failed, and a mean leaves them out", s.Over, s.N)
		case n < meanValues:
			r.gap = fmt.Sprintf("only %s; a mean needs %d for a bound", count(n, "value"), meanValues)
		}
	default:
		r.est = ranked(sample, over, q, high, confidence)
	}
	if s.kept() > int64(sample.N()) {
		r.est.N = int(s.N)
	}
	if !high {
		mirror(&r.est)
	}
	return r
}

// weighted estimates a mean of requests of which only sums are known.
func (s Series) weighted(confidence float64) reading {
	if len(s.Weights) != len(s.Values) || len(s.Values) < rateSlices {
		return none(fmt.Sprintf("only %s; a mean of sums needs %d for a bound", count(len(s.Values), "sum"), rateSlices), confidence)
	}
	if s.N < meanValues {
		return none(fmt.Sprintf("only %s; a mean needs %d for a bound", count(s.N, "value"), meanValues), confidence)
	}
	e := stat.Rate(s.Values, s.Weights, confidence)
	e.N = int(s.N) // of what the sums are of, not their number
	return reading{est: e}
}

// leastTimes is in how many of the sums something must have happened before their
// scatter says how much it is each time.
const leastTimes = 10

// seldom widens the rate of what happens seldom or never, of which the scatter of the
// sums says too little: nothing seen for a minute is no proof of never. What is
// counted one by one has at least the interval of a Poisson process, as the exact
// one of a share has it in the limit of many short slices. Of what comes in pieces of
// any size there is no bound above until it came often enough.
func (s Series) seldom(e stat.Estimate, m record.Metric) stat.Estimate {
	times := 0
	for _, x := range s.Values {
		if x > 0 {
			times++
		}
	}
	switch {
	case !e.Defined():
	case m.Unit == record.Requests:
		lo, hi := poisson(s.Total, s.Weights, e.Confidence)
		e.Lo, e.Hi = math.Min(e.Lo, lo), math.Max(e.Hi, hi)
	case times < leastTimes:
		e.Lo, e.Hi = math.Min(e.Lo, 0), math.Inf(1)
	}
	return e
}

// neverSeen gives the rate of what is counted one by one, and did not happen once, the
// bound above of a Poisson process; seconds without any do not scatter.
func neverSeen(e stat.Estimate, m record.Metric, seconds []float64) stat.Estimate {
	if e.Value == 0 && m.Unit == record.Requests {
		_, hi := poisson(0, seconds, e.Confidence)
		e.Hi = math.Max(e.Hi, hi)
	}
	return e
}

// poisson is the exact interval of a rate of so many events: that of a share in the
// limit of many short slices.
func poisson(events float64, seconds []float64, confidence float64) (lo, hi float64) {
	const slices = 1e8
	length := 0.0
	for _, s := range seconds {
		length += s
	}
	e := stat.ExactShare(int(math.Round(events)), slices, confidence)
	return e.Lo * slices / length, e.Hi * slices / length
}

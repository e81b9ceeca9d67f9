package contract

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// Series is what was seen of one metric of one variant in a stretch of time: the
// evidence of a live rule. It holds raw values or counts; which
// of them it needs depends on the statistic that is asked for. The zero
// Series is no evidence. It is not changed once it was handed over.
type Series struct {
	N       int64     `json:"n"`                 // observations, those in Over included; of amounts, requests
	Over    int64     `json:"over,omitempty"`    // of N: failed, or in flight for longer than Ask.Beyond, so worse than any value
	Missing int64     `json:"missing,omitempty"` // not in N: should have a value and have none
	Total   float64   `json:"total,omitempty"`   // of yes-or-no metrics the number of yes, of amounts the amount
	Seconds float64   `json:"seconds,omitempty"` // how much of the stretch was watched
	Values  []float64 `json:"values,omitempty"`  // finite, in time order; of amounts, what each watched second saw
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
}

// Observed answers what was seen: a [History] of records, or the counters of a
// gateway. The same question has the same answer whenever it is asked.
type Observed interface {
	// See returns the Series asked for; the zero Series if nothing was seen.
	See(Ask) Series
	// Labels returns the values of a label that were seen up to at, sorted; of the
	// empty key, the workloads.
	Labels(key string, at time.Time) []string
}

// sample returns the values in the orientation in which worse is larger.
func (s Series) sample(high bool) (*stat.Sample, error) {
	values := s.Values
	if !high {
		values = slices.Clone(values)
		for i := range values {
			values[i] = -values[i]
		}
	}
	return stat.NewSample(values, int(s.Over))
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
		yes := make([]float64, s.N)
		for i := range min(int(s.Total), len(yes)) {
			yes[len(yes)-1-i] = 1
		}
		return reading{est: stat.Share(scattered(yes), confidence)}
	case "count":
		return reading{est: exact(s.Total, int(s.N), 0, confidence)}
	case "rate":
		if len(s.Values) < rateSlices {
			return none(fmt.Sprintf("only %s; a rate needs %d for a bound", count(len(s.Values), "second"), rateSlices), confidence)
		}
		seconds := make([]float64, len(s.Values))
		for i := range seconds {
			seconds[i] = s.Seconds / float64(len(s.Values))
		}
		return reading{est: stat.Rate(s.Values, seconds, confidence)}
	}
	sample, err := s.sample(high)
	if err != nil {
		return none(err.Error(), confidence)
	}
	if int64(sample.N()) != s.N && m.Name != "icl" && m.Name != "itl" || sample.N() == 0 {
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
	case "max", "min":
		r.est = extreme(sample, int(s.Over), (q.Stat == "max") == high, confidence)
	default:
		p := q.P
		if !high {
			p = 1 - p
		}
		r.est = sample.Quantile(p, confidence)
	}
	if !high {
		mirror(&r.est)
	}
	return r
}

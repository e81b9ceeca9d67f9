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

// Evidence is what a contract is judged on.
type Evidence struct {
	Records   []record.Record    // of all variants, measured and warm-up, in any order
	Windows   []record.Window    // when each variant was measured on each workload; rates need them
	Baseline  string             // variant that limits refer to; "": there is none
	Candidate string             // variant to judge; "": the only one that there is
	Interim   map[string]Interim // of a run that may stop early: at which look each workload stands; nil: it is judged once, at the end, as a check is that is not named here
	Checks    []Checked          // that the run declared; their records are of workloads of their names
	Prices    map[string]Price   // by variant; what is not priced has no cost in money
	Unfit     []string           // why the whole run proves nothing (an unfit client); each makes every grade inconclusive

	// Engine is what the engines said of themselves, in order of time; metrics engine.* need it.
	Engine []record.EngineWindow
}

// The bounds on what may be missing before a figure is no evidence.
const (
	maxDropped = 0.001 // share of the offered requests that the client dropped
	maxMissing = 0.02  // share of the completed requests that should have a value and have none
	maxFailed  = 0.02  // share of failed requests beyond which a mean over the others misleads

	meanValues = 20          // fewer values give a mean no trustworthy interval
	rateSlices = 10          // fewer slices of time give a rate none
	leastSlice = time.Second // shortest slice: neighbouring shorter ones share their requests
	mostSlices = 3600        // of one window; longer windows get longer slices
)

// Measure estimates a quantity over the measured requests of one variant on
// one workload, those with all the given labels. The workload may be "" if the
// records have only one. Confidence is that of the two-sided interval. Failed
// requests count as worse than any value, as everywhere in this package. It
// returns an error if the quantity cannot be read at all (an unknown metric, a
// statistic that does not fit it); if it can but there is no data, the
// estimate's value is NaN. A Warning with code "gap" says that the figure is no
// evidence, one with code "note" what else a reader must know.
func Measure(e Evidence, q Quantity, variant, workload string, labels map[string]string, confidence float64) (stat.Estimate, record.Unit, error) {
	m, unit, err := q.metric(metricsOf(e.Checks)...)
	if err != nil {
		return stat.Estimate{}, "", err
	}
	if !(confidence > 0 && confidence < 1) {
		return stat.Estimate{}, "", fmt.Errorf("measuring %s: a confidence of %v is not between 0 and 1", q, confidence)
	}
	s := gather(e, variant, workload, labels)
	if s.several {
		return stat.Estimate{}, "", fmt.Errorf("measuring %s: several workloads are never pooled; name one", q)
	}
	r := s.measure(q, m, confidence, worseIsHigh(m))
	return r.warned(), unit, nil
}

// warned returns the estimate with what must be known of it.
func (r *reading) warned() stat.Estimate {
	est := r.est
	if r.gap != "" && !slices.ContainsFunc(est.Warnings, func(w stat.Warning) bool { return w.Text == r.gap }) {
		est.Warnings = append(slices.Clone(est.Warnings), stat.Warning{Code: "gap", Text: r.gap})
	}
	for _, note := range r.notes {
		est.Warnings = append(slices.Clone(est.Warnings), stat.Warning{Code: "note", Text: note})
	}
	return est
}

// metric looks the quantity's metric up and checks that they fit.
func (q Quantity) metric(own ...record.Metric) (record.Metric, record.Unit, error) {
	m, ok := find(q.Metric, own...)
	if !ok {
		return record.Metric{}, "", fmt.Errorf("nothing in this version measures %s", q.Metric)
	}
	unit, what, _ := q.unit(m)
	if what != "" {
		return record.Metric{}, "", fmt.Errorf("measuring %s: %s", q, what)
	}
	if q.Stat == "quantile" && !(q.P > 0 && q.P < 1) {
		return record.Metric{}, "", fmt.Errorf("measuring %s: the quantile %v is not between 0 and 1", q, q.P)
	}
	return m, unit, nil
}

// worseIsHigh reports on which side of all values a failed request lies.
func worseIsHigh(m record.Metric) bool { return !m.Higher }

// reading is an estimate, and what must be known of it.
type reading struct {
	est   stat.Estimate
	gap   string   // why the figure is no evidence, whatever it says; "" if it is
	more  int64    // about how many more requests would close the gap; 0: not known
	notes []string // what a reader must know
}

// none is the reading of something without a value.
func none(why string, confidence float64) reading {
	return reading{gap: why, est: stat.Estimate{
		Value: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence,
		Warnings: []stat.Warning{{Code: stat.CodeUndefined, Text: why}},
	}}
}

// measure estimates the quantity. high says on which side of all values the
// failed requests lie. It fills in the ledger's Missing and Undefined.
func (s *scope) measure(q Quantity, m record.Metric, confidence float64, high bool) reading {
	var r reading
	switch {
	case s.counts.judged() == 0:
		r = none(s.empty(), confidence)
	case m.Whole:
		return s.whole(m, "", s.counts.Failed, confidence)
	case m.Check != "" && (q.Stat == "share" || q.Stat == "mean"):
		return s.checkedMean(m, confidence)
	case stageOf(m.Name) != nil:
		r = s.said(q, stageOf(m.Name), m, confidence, high)
	case q.Stat == "rate":
		r = s.rate(m, confidence)
	case q.Stat == "count":
		r = s.count(m, confidence)
	case q.Stat == "share":
		values := s.values(m)
		s.lack(&r, m)
		if r.est = stat.Share(values, confidence); len(values) == 0 {
			r.gap = cmp.Or(r.gap, fmt.Sprintf("no request of %s tells whether it was %s", s.variant, m.Title))
		}
	default:
		r = s.distribution(q, m, confidence, high)
	}
	if c := s.counts; r.gap == "" && m.Check != "" && c.Missing > 0 && q.fact() {
		r.gap = fmt.Sprintf("%d of %s of %s have no %s, and a %s knows nothing of them", c.Missing, count(c.judged(), "case"), s.variant, m.Title, q.Stat)
	}
	if c := s.counts; r.gap == "" && m.Check == "" && m.Indicator && !ofOutcome(m) && float64(c.Failed) > maxFailed*float64(c.judged()) {
		r.gap = fmt.Sprintf("%d of %s of %s failed, and nobody knows whether they would have been %s", c.Failed, count(c.judged(), "request"), s.variant, m.Title)
	}
	if d := s.counts.Dropped; r.gap == "" && float64(d) > maxDropped*float64(s.counts.Offered) {
		r.gap = fmt.Sprintf("the client dropped %d of %s of %s (%s), so the load was not the planned one", d, count(s.counts.Offered, "request"), s.variant, value(record.Proportion, float64(d)/float64(s.counts.Offered), 2))
	}
	return r
}

// ofOutcome reports whether the indicator is about failing itself, so that a
// failed request has its value.
func ofOutcome(m record.Metric) bool { return m.Name == "failed" || m.Name == "completed" }

// spoilt reports whether failed requests have a part in the metric as if they
// had been served: their tokens flowed, their lag was short.
func spoilt(m record.Metric) bool { return m.Always || m.Amount != nil && m.Name != "requests" }

// ofLength reports whether shorter answers alone make the metric look better.
func ofLength(m record.Metric) bool {
	return slices.Contains([]string{"e2e", "e2e.service", "requests"}, m.Name)
}

// ofPace reports whether the metric reads the gaps between a stream's events.
func ofPace(m record.Metric) bool {
	return slices.Contains([]string{"tpot", "itl", "icl", "gap.max", "ttst", "user_rate"}, m.Name)
}

// distribution estimates a quantile, mean, max or min of the values.
func (s *scope) distribution(q Quantity, m record.Metric, confidence float64, high bool) reading {
	values := s.values(m)
	var r reading
	s.lack(&r, m)
	sample, err := s.sample(m, values, high)
	if err != nil {
		return none(err.Error(), confidence)
	}
	if sample.N() == s.counts.Missing { // and nothing else
		if r.gap == "" {
			r.gap = fmt.Sprintf("no request of %s has a %s", s.variant, m.Title)
			if s.counts.Aside > 0 {
				r.gap = fmt.Sprintf("no request of %s that was not planned to be cancelled has a %s", s.variant, m.Title)
			}
		}
		return none(r.gap, confidence)
	}
	switch q.Stat {
	case "mean":
		s.mean(&r, sample, confidence)
	default:
		r.est = ranked(sample, sample.Over(), q, high, confidence)
	}
	if !high {
		mirror(&r.est)
	}
	return r
}

// ranked estimates the greatest, the least or a quantile of a sample that is turned
// round unless high; over of its values failed.
func ranked(sample *stat.Sample, over int, q Quantity, high bool, confidence float64) stat.Estimate {
	if q.Stat == "max" || q.Stat == "min" {
		return extreme(sample, over, (q.Stat == "max") == high, confidence)
	}
	p := q.P
	if !high {
		p = 1 - p
	}
	return sample.Quantile(p, confidence)
}

// sample sorts the values of a metric, once for each orientation.
func (s *scope) sample(m record.Metric, values []float64, high bool) (*stat.Sample, error) {
	key := fmt.Sprint(m.Name, high)
	if done, ok := s.samples[key]; ok {
		return done, nil
	}
	sample, err := stat.NewSample(s.beyond(values, high), 0)
	if err == nil && sample.N() <= mostShared {
		s.samples[key] = sample
	}
	return sample, err
}

// beyond puts +Inf where values has a NaN, since neither a failed request nor one
// that hides its value may make a tail look short: once, or as
// often as a completed request gives values on average when it gives several. If
// high is false, failed requests are below all values, and everything is
// mirrored, since a sample has room above only.
func (s *scope) beyond(values []float64, high bool) []float64 {
	finite, each := 0, 1
	for _, x := range values {
		if !math.IsNaN(x) {
			finite++
		}
	}
	if gave := s.counts.Completed - s.counts.Aside - s.counts.Missing - s.counts.Undefined; gave > 0 && finite > gave {
		each = (finite + gave - 1) / gave
	}
	if finite == len(values) && high {
		return values
	}
	series := make([]float64, 0, finite+each*(len(values)-finite))
	for _, x := range values {
		switch {
		case math.IsNaN(x):
			for range each {
				series = append(series, math.Inf(1))
			}
		case high:
			series = append(series, x)
		default:
			series = append(series, -x)
		}
	}
	return series
}

func mirror(e *stat.Estimate) { e.Value, e.Lo, e.Hi = -e.Value, -e.Hi, -e.Lo }

func (s *scope) mean(r *reading, sample *stat.Sample, confidence float64) {
	r.est = sample.Mean(confidence)
	c := s.counts
	n := sample.N() - r.est.Over
	switch {
	case r.gap != "":
	case float64(c.Failed) > maxFailed*float64(c.judged()):
		r.gap = fmt.Sprintf("%d of %s of %s failed, and a mean leaves them out", c.Failed, count(c.judged(), "request"), s.variant)
	case float64(c.Missing) > maxDropped*float64(c.Completed):
		r.gap = fmt.Sprintf("%d of %s of %s hide their value, and a mean leaves them out", c.Missing, count(c.Completed, "completed request"), s.variant)
	case n < meanValues:
		r.gap = fmt.Sprintf("only %s of %s; a mean needs %d for a bound", count(n, "value"), s.variant, meanValues)
		r.more = int64(meanValues - n)
	case c.Failed > 0:
		r.notes = append(r.notes, fmt.Sprintf("the mean leaves out %s of %s", count(c.Failed, "failed request"), s.variant))
	}
}

// extreme is the largest or smallest observation: a fact of the sample with no
// interval, and with no word about the next run.
func extreme(sample *stat.Sample, over int, top bool, confidence float64) stat.Estimate {
	v := sample.Min()
	if top {
		v = sample.Max()
	}
	if over > 0 && (top || over == sample.N()) {
		v = math.Inf(1)
	}
	return exact(v, sample.N(), over, confidence)
}

// exact is a fact: its interval has no width because there is nothing to
// estimate.
func exact(v float64, n, over int, confidence float64) stat.Estimate {
	return stat.Estimate{Value: v, Lo: v, Hi: v, Confidence: confidence, N: n, Effective: float64(n), Over: over, Method: "exact, of this run only"}
}

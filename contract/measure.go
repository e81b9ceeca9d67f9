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

// scope is the requests that one figure is about.
type scope struct {
	variant   string
	records   []*record.Record // measured, in order of their due instants, neither dropped nor cancelled
	cancelled []*record.Record // as planned
	windows   []record.Window
	counts    Counts
	several   bool // records of more than one workload
	checked   bool // the workload is a check
	engine    []record.EngineWindow
	labelled  bool // only requests with some label
	lastSeen  record.Instant
	*memo
}

// memo keeps what was read off the records of a scope, so that clauses on the same
// requests share it. What it holds is not changed.
type memo struct {
	read    map[string]readOff       // by metric
	samples map[string]*stat.Sample  // by metric and orientation
	sliced  map[string]*slicedAmount // by metric
	heldIs  *bool                    // the streams were held back; nil: not looked at yet
	short   int                      // answers that stopped early, plus one; 0: not counted yet
	told    map[string]toldAmounts   // by metric
	totals  map[string]float64       // by metric
}

// mostShared is how many values are kept for other clauses: a larger pool of token gaps is
// read again, since it takes more memory than the records' events if it stays.
const mostShared = 1 << 20

// readOff is what values read.
type readOff struct {
	values                    []float64
	missing, undefined, aside int
}

// slicedAmount is an amount in slices of time.
type slicedAmount struct {
	amounts, seconds []float64
}

// toldAmounts is how many records do not tell their amounts.
type toldAmounts struct{ missing, untold int }

// scope returns the requests of a variant on a workload with those labels, gathered
// once for all clauses.
func (j *judge) scope(variant, workload string, labels map[string]string) scope {
	key := variant + "\x00" + workload + "\x00" + scopeText("", labels)
	s, ok := j.scopes[key]
	if !ok {
		s = gather(j.e, variant, workload, labels)
		j.scopes[key] = s
	}
	return s
}

func gather(e Evidence, variant, workload string, labels map[string]string) scope {
	s := scope{variant: variant, counts: Counts{Variant: variant}, memo: &memo{read: map[string]readOff{}, samples: map[string]*stat.Sample{}, sliced: map[string]*slicedAmount{}, told: map[string]toldAmounts{}, totals: map[string]float64{}}}
	only := workload
	s.records = make([]*record.Record, 0, len(e.Records)/2)
	for i := range e.Records {
		r := &e.Records[i]
		if r.Phase != record.Measured || r.Variant != variant || workload != "" && r.Workload != workload || !has(r.Labels, labels) {
			continue
		}
		if only == "" {
			only = r.Workload
		}
		s.several = s.several || r.Workload != only
		s.checked = e.check(r.Workload) != nil
		s.add(r)
	}
	byDue := func(a, b *record.Record) int {
		return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.Shot, b.Shot))
	}
	if !slices.IsSortedFunc(s.records, byDue) {
		slices.SortStableFunc(s.records, byDue)
	}
	for _, w := range e.Windows {
		if w.Variant == variant && (w.Workload == only || only == "") {
			s.windows = append(s.windows, w)
		}
	}
	s.engine, s.labelled = e.heard(variant, only), len(labels) > 0
	slices.SortFunc(s.windows, func(a, b record.Window) int { return cmp.Compare(a.Start, b.Start) })
	return s
}

func has(labels, want map[string]string) bool {
	for k, v := range want {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// add enters one measured record into the ledger.
func (s *scope) add(r *record.Record) {
	s.counts.Offered++
	switch {
	case r.Outcome == record.ClientCancelled:
		s.counts.Cancelled++
		s.cancelled = append(s.cancelled, r)
		return
	case r.Outcome.Group() == record.GroupDropped && !s.checked: // of a check nothing is dropped: it is missing
		s.counts.Dropped++
		return
	case r.Success():
		s.counts.Completed++
	default:
		s.counts.Failed++
	}
	s.records = append(s.records, r)
	s.lastSeen = max(s.lastSeen, r.Due, r.EOF)
}

// span is how long the variant was measured: its windows, or from the first
// request to the last answer.
func (s *scope) span() time.Duration {
	var total time.Duration
	for _, w := range s.windows {
		if d, ok := w.End.Sub(w.Start); ok && d > 0 {
			total += d
		}
	}
	if total == 0 && len(s.records) > 0 {
		total, _ = s.lastSeen.Sub(s.records[0].Due)
	}
	return total
}

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

// held reports whether something held back the streams on their way.
func (s *scope) held() bool {
	if s.heldIs == nil {
		is := record.HeldBack(s.records)
		s.heldIs = &is
	}
	return *s.heldIs
}

// shortened is how many answers stopped before the length that was asked,
// although told to go on.
func (s *scope) shortened() int {
	if s.short == 0 {
		s.short = 1
		for _, r := range s.records {
			if r.Success() && r.Flags&record.FlagShortOutput != 0 {
				s.short++
			}
		}
	}
	return s.short - 1
}

// ofPace reports whether the metric reads the gaps between a stream's events.
func ofPace(m record.Metric) bool {
	return slices.Contains([]string{"tpot", "itl", "icl", "gap.max", "ttst", "user_rate"}, m.Name)
}

// empty says why there is nothing to judge.
func (s *scope) empty() string {
	switch c := s.counts; {
	case c.Offered == 0:
		return fmt.Sprintf("no request of %s is in scope", s.variant)
	case c.Dropped > 0:
		return fmt.Sprintf("the client dropped all %s of %s", count(c.Dropped, "request"), s.variant)
	default:
		return fmt.Sprintf("all %s of %s were cancelled, as planned", count(c.Cancelled, "request"), s.variant)
	}
}

// values reads the metric off the records, in order of time: of indicators all,
// of others those that completed, with a NaN in the place of each request that
// failed or completed without the value that it should have. It counts the
// completed ones that gave nothing.
func (s *scope) values(m record.Metric) []float64 {
	r, ok := s.read[m.Name]
	if !ok {
		r.values = s.valuesOf(m)
		r.missing, r.undefined, r.aside = s.counts.Missing, s.counts.Undefined, s.counts.Aside
		if len(r.values) <= mostShared {
			s.read[m.Name] = r
		}
	}
	s.counts.Missing, s.counts.Undefined, s.counts.Aside = r.missing, r.undefined, r.aside
	return r.values
}

func (s *scope) valuesOf(m record.Metric) []float64 {
	s.counts.Missing, s.counts.Undefined, s.counts.Aside = 0, 0, 0
	to := make([]float64, 0, s.room(m))
	for _, r := range s.records {
		if !m.Indicator && m.Check == "" && !r.Success() {
			if !m.Always {
				to = append(to, math.NaN())
				continue
			}
		}
		if aside(m, r) {
			s.counts.Aside++
			continue
		}
		before := len(to)
		to = m.Values(r, to)
		finite := slices.DeleteFunc(to[before:], func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
		to = to[:before+len(finite)]
		if len(finite) > 0 {
			continue
		}
		switch {
		case m.Check != "":
			if _, exempt := r.Values[record.Exempt(m.Name)]; exempt {
				s.counts.Undefined++
				continue
			}
			if s.counts.Missing++; !m.Indicator {
				to = append(to, math.NaN())
			}
		case !r.Success(): // of a metric that does not depend on the answer
		case undefined(m.Name, r):
			s.counts.Undefined++
		default:
			s.counts.Missing++
			if !m.Indicator {
				to = append(to, math.NaN())
			}
		}
	}
	return to
}

// room is about how many values the metric gives: of a pool of gaps they are too many to
// grow a slice by and by.
func (s *scope) room(m record.Metric) int {
	if m.Name != "itl" && m.Name != "icl" {
		return len(s.records)
	}
	n := 0
	for _, r := range s.records {
		if k, ok := r.Output.N(); ok && m.Name == "itl" {
			n += int(min(k, 1<<20))
		} else {
			n += len(r.Events)
		}
	}
	return n
}

// aside reports whether a completed record is left out of a distribution since
// the workload planned to cancel it. Of such requests only those complete that are
// quick or short enough: to count them, without the others, would flatter. Which
// are planned to be cancelled is drawn before anything is sent, so the rest says
// what all of them would have said.
func aside(m record.Metric, r *record.Record) bool {
	return !m.Indicator && !m.Always && r.Success() && r.Flags&record.FlagCancelPlanned != 0
}

// undefined reports whether the metric has, by its definition, no value for
// the completed record; otherwise a value that is not there is missing.
func undefined(metric string, r *record.Record) bool {
	switch metric {
	case "connect":
		return r.Reused
	case "cached":
		n, ok := r.Prompt.N()
		return ok && n == 0
	case "tpot", "user_rate", "icl", "itl", "ttst", "gap.max":
		if !r.Stream {
			return true
		}
		n, ok := r.Output.N()
		return ok && n <= 1
	}
	return false
}

// lack says what is missing among the completed requests: a gap if it is too
// much, else a note.
func (s *scope) lack(r *reading, m record.Metric) {
	c := s.counts
	c.Completed -= c.Aside
	without := c.Missing + c.Undefined
	switch {
	case c.Completed == 0 || without == 0:
	case float64(c.Missing) > maxMissing*float64(c.Completed):
		r.gap = fmt.Sprintf("%d of %s of %s have no %s%s", c.Missing, count(c.Completed, "completed request"), s.variant, m.Title, s.why(m))
	case c.Undefined == c.Completed:
		r.gap = fmt.Sprintf("none of %s of %s can have a %s%s", count(c.Completed, "completed request"), s.variant, m.Title, s.why(m))
	case without == c.Completed:
		r.gap = fmt.Sprintf("none of %s of %s has a %s%s", count(c.Completed, "completed request"), s.variant, m.Title, s.why(m))
	case float64(without) > maxMissing*float64(c.Completed):
		r.notes = append(r.notes, fmt.Sprintf("%d of %s of %s have no %s and are left out", without, count(c.Completed, "completed request"), s.variant, m.Title))
	}
}

// why names the likely cause of missing values.
func (s *scope) why(m record.Metric) string {
	if d, ok := declaredMetric(m.Name); ok {
		return ": it needs " + d.needs
	}
	usage, plain := 0, 0
	for _, r := range s.records {
		if !r.Success() {
			continue
		}
		if r.Flags&record.FlagUsageMissing != 0 || !r.Output.Known() {
			usage++
		}
		if !r.Stream {
			plain++
		}
	}
	switch all := s.counts.Completed; {
	case 2*plain > all && needsStream(m.Name):
		return ": answers were not streamed"
	case 2*usage > all && needsUsage(m.Name):
		return ": the server sends no usage"
	case s.counts.Undefined == all && needsStream(m.Name):
		return ": they have one token each"
	}
	return ""
}

// needsUsage reports whether the metric rests on the server's token counts.
func needsUsage(metric string) bool {
	switch metric {
	case "tpot", "itl", "ntpot", "user_rate", "prompt_length", "output_length", "cached", "output_tokens", "prompt_tokens":
		return true
	}
	return false
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

// amounts checks that the records tell their amounts.
func (s *scope) amounts(r *reading, m record.Metric) {
	t, ok := s.told[m.Name]
	if !ok {
		for _, rec := range s.records {
			if rec.Success() && !told(m, rec) {
				t.missing++
			}
		}
		for _, rec := range s.cancelled {
			if rec.First() != nil && !told(m, rec) {
				t.untold++
			}
		}
		s.told[m.Name] = t
	}
	s.counts.Missing, s.counts.Undefined, s.counts.Aside = t.missing, 0, 0
	if t.untold > 0 && m.Name == "output_tokens" {
		r.notes = append(r.notes, fmt.Sprintf("the server does not tell the tokens of %s that were cancelled as planned, which are not counted", count(t.untold, "request")))
	}
	s.lack(r, m)
}

func told(m record.Metric, r *record.Record) (is bool) {
	m.Amount(r, func(record.Instant, float64) { is = true })
	return is
}

// rate estimates an amount per second over slices of the windows.
func (s *scope) rate(m record.Metric, confidence float64) reading {
	var r reading
	s.amounts(&r, m)
	in, ok := s.sliced[m.Name]
	if !ok {
		in = s.slice(m)
		s.sliced[m.Name] = in
	}
	if len(in.amounts) == 0 {
		gap := fmt.Sprintf("no stretch of at least 1 s in which %s was measured", s.variant)
		return none(gap, confidence)
	}
	r.est = neverSeen(stat.Rate(in.amounts, in.seconds, confidence), m, in.seconds)
	if r.gap == "" && len(in.amounts) < rateSlices {
		r.gap = fmt.Sprintf("only %s of %s; a rate needs %d for a bound", count(len(in.amounts), "second"), s.variant, rateSlices)
		r.more = about(float64(s.counts.judged()) / float64(len(in.amounts)) * float64(rateSlices-len(in.amounts)))
	}
	return r
}

// slice adds up an amount in slices of the windows.
func (s *scope) slice(m record.Metric) *slicedAmount {
	var starts, ends []record.Instant
	in := new(slicedAmount)
	for _, w := range s.windows {
		d, ok := w.End.Sub(w.Start)
		if !ok || d < leastSlice {
			continue
		}
		k := min(int(d/leastSlice), mostSlices)
		edge := func(i int) time.Duration { // d·i/k, which d·i could overflow
			n, whole := time.Duration(i), time.Duration(k)
			return d/whole*n + d%whole*n/whole
		}
		for i := range k {
			from, to := edge(i), edge(i+1)
			starts, ends = append(starts, w.Start+record.Instant(from)), append(ends, w.Start+record.Instant(to))
			in.amounts = append(in.amounts, 0)
			in.seconds = append(in.seconds, (to - from).Seconds())
		}
	}
	for _, records := range [][]*record.Record{s.records, s.cancelled} {
		for _, rec := range records {
			m.Amount(rec, func(at record.Instant, amount float64) {
				i, found := slices.BinarySearch(starts, at)
				if !found {
					i--
				}
				if i >= 0 && at < ends[i] {
					in.amounts[i] += amount
				}
			})
		}
	}
	return in
}

// count is the exact number of events or the exact amount of the run.
func (s *scope) count(m record.Metric, confidence float64) reading {
	var r reading
	total, n := 0.0, len(s.records)
	if m.Indicator {
		for _, x := range s.values(m) {
			total += x
		}
	} else {
		s.amounts(&r, m)
		known, ok := s.totals[m.Name]
		if !ok {
			for _, rec := range slices.Concat(s.records, s.cancelled) {
				m.Amount(rec, func(_ record.Instant, amount float64) { known += amount })
			}
			s.totals[m.Name] = known
		}
		total = known
	}
	r.est = exact(total, n, 0, confidence)
	return r
}

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/report"
	"github.com/assay-llm/assay/workload"
)

// The files of a search, beside the run directories of its probes.
const (
	capacityFile = "capacity.json"
	probesFolder = "probes"
)

// FindCapacity searches for the highest rate at which the suite's contract holds
// and the queue is stable, or sweeps over given points. The suite has one variant
// and one workload, in an open loop of a fixed rate for a search. Every probe is a
// run of its own, with its own seed and salt, in a directory below that of the
// search.
//
// A rate holds when every clause of the contract passes on what came after the
// warm-up, and the number of requests in flight was shown to grow by a tenth of
// the rate at most. It fails when a clause fails or the number in flight was
// shown to grow. If the service bears every rate below its capacity and none
// above, the bracket holds the capacity with the confidence of the search: that
// is the union bound over all probes, all clauses and the test of the queue.
//
// When ctx ends, or a probe cannot be made, it returns what it has with the
// error; the result is nil if there is nothing. The caller closes nothing.
func FindCapacity(ctx context.Context, s *Suite, q Search, o Options) (*report.Capacity, string, error) {
	q.defaults()
	if o.Runs == "" {
		o.Runs = "runs"
	}
	if o.Notice == nil {
		o.Notice = func(string, ...any) {}
	}
	if !q.sweep() {
		s = s.bearing()
	}
	doc, err := newCapacity(s, &q, o)
	if err != nil {
		return nil, "", err
	}
	h := hunt{suite: s, search: q, opts: o, doc: doc, begin: time.Now()}
	doc.Start, doc.ID = h.begin.Round(0), newID(h.begin)
	dir := filepath.Join(o.Runs, doc.ID)
	h.dir = dir
	err = h.run(ctx)
	if len(doc.Probes) == 0 && err != nil {
		return nil, "", errors.Join(err, os.RemoveAll(dir))
	}
	conclude(doc)
	return doc, dir, errors.Join(err, h.write())
}

// newCapacity checks what is asked and starts the account.
func newCapacity(s *Suite, q *Search, o Options) (*report.Capacity, error) {
	if s.Variants.Len() != 1 || s.Workloads.Len() != 1 {
		return nil, fmt.Errorf("a search wants one variant and one workload, got %d and %d", s.Variants.Len(), s.Workloads.Len())
	}
	clauses := 0
	doc := &report.Capacity{
		Schema: report.CapacitySchema, Assay: Version(), State: StateRunning, Sweep: q.sweep(),
		Confidence: q.Confidence, Seed: rand.Uint64() >> 11, Needs: []string{}, Probes: []report.Probe{},
	}
	if c := s.Contract.Contract; c != nil {
		for _, clause := range c.Clauses {
			clauses++
			doc.Needs = append(doc.Needs, clause.Need.String())
		}
	}
	if clauses == 0 && !q.sweep() {
		return nil, errors.New("a search for capacity wants to know what must hold\n  hint: add --need 'p99(ttft) <= 800ms' --need 'share(failed) <= 1%'")
	}
	for _, v := range s.Variants.All() {
		if doc.URL, doc.Model = v.URL, v.Model; v.Sim != nil {
			doc.URL = "a simulated engine"
		}
	}
	for name, w := range s.Workloads.All() {
		if len(q.Users) == 0 && rateOf(&w) == nil {
			return nil, fmt.Errorf("workload %s has no rate to change\n  hint: use an open loop of poisson, constant or gamma arrivals at a plain rate", name)
		}
	}
	doc.ProbeConfidence = q.Confidence
	if !q.sweep() {
		doc.ProbeConfidence = 1 - (1-q.Confidence)/float64(q.Probes*(clauses+1))
	}
	if o.Seed != nil {
		doc.Seed = *o.Seed
	}
	return doc, nil
}

// mostFailing is the share of failed requests up to which a rate may be said to
// be borne when the contract does not say.
const mostFailing = "share(failed) <= 2%"

// bearing returns the suite with a clause on failed requests, if its contract has
// none: a service that turns away what it cannot serve in time keeps every limit
// on the rest.
func (s *Suite) bearing() *Suite {
	c := s.Contract.Contract
	if c == nil || len(c.Clauses) == 0 || slices.ContainsFunc(c.Clauses, func(c contract.Clause) bool {
		return c.Need.Quantity.Metric == "failed" || c.Need.Quantity.Metric == "completed"
	}) {
		return s
	}
	need, err := contract.ParseNeed(mostFailing)
	if err != nil {
		panic("capacity: " + err.Error())
	}
	with, own := *s, *c
	own.Clauses = append(slices.Clone(c.Clauses), contract.Clause{Need: need})
	with.Contract.Contract = &own
	return &with
}

// rateOf is the rate that a workload's arrivals have, to be changed; nil if they
// have no plain one. It is a copy's own, so that the suite stays as it was.
func rateOf(w *workload.Spec) *config.Rate {
	a := &w.Arrivals
	own := func(r **workload.Rate) *config.Rate {
		c := **r
		*r = &c
		return &c.Fixed
	}
	switch {
	case a.Constant != nil && a.Constant.Fixed > 0:
		return own(&a.Constant)
	case a.Poisson != nil && a.Poisson.Fixed > 0:
		return own(&a.Poisson)
	case a.Gamma != nil && a.Gamma.Rate.Fixed > 0:
		c := *a.Gamma
		a.Gamma = &c
		return &c.Rate.Fixed
	}
	return nil
}

// hunt is a search or a sweep under way.
type hunt struct {
	suite  *Suite
	search Search
	opts   Options
	dir    string
	doc    *report.Capacity
	begin  time.Time
}

// run probes until the search is over, the time is spent or ctx ends.
func (h *hunt) run(ctx context.Context) error {
	d := h.doc
	for {
		at, over := h.search.next(d.Probes)
		if over == "" {
			asked := at.hold
			if at.hold = h.length(at); at.hold > asked {
				h.opts.Notice("probe %d lasts %v instead of %v: at %s fewer requests would give no bound for the needs", len(d.Probes)+1, at.hold, asked, report.PointText(&report.Probe{Rate: at.rate, Users: at.users}))
			}
			if spent := time.Since(h.begin); len(d.Probes) > 0 && spent+at.hold > h.search.MaxTime {
				over = fmt.Sprintf("the next probe would have gone beyond the %v allowed", h.search.MaxTime)
			}
		}
		if over != "" {
			d.State, d.Ended = StateDone, over
			return nil
		}
		if err := h.probe(ctx, at); err != nil {
			d.State, d.Ended = StateFailed, err.Error()
			if ctx.Err() != nil {
				d.State, d.Ended = StateInterrupted, "it was interrupted"
			}
			return err
		}
		conclude(d)
		if err := h.write(); err != nil {
			return err
		}
	}
}

// length is how long to probe at a point: as asked, and longer, up to four times,
// where the rate would give a quantile too few requests for its bound.
func (h *hunt) length(at point) time.Duration {
	need := 0
	if c := h.suite.Contract.Contract; c != nil {
		need = mostNeeded(c.Clauses, h.doc.ProbeConfidence)
	}
	if at.rate == 0 || need == 0 || h.search.sweep() {
		return at.hold
	}
	// A third is lost to the warm-up and to requests that depend on each other.
	wanted := time.Duration(1.5 * float64(need) / at.rate * float64(time.Second))
	return max(at.hold, min(wanted, 4*h.search.For)).Round(time.Second)
}

// probe makes one run and judges it.
func (h *hunt) probe(ctx context.Context, at point) error {
	k := len(h.doc.Probes)
	s, err := h.suite.at(at)
	if err != nil {
		return err
	}
	o := h.opts
	o.Runs = filepath.Join(h.dir, probesFolder)
	o.Calibrator, o.Force = nil, true // the search goes up to where the certificate ends it
	seed := h.doc.Seed + uint64(k)
	o.Seed = &seed
	if h.opts.Salt != nil && *h.opts.Salt != "" {
		salt := fmt.Sprintf("%s%02x", *h.opts.Salt, k)
		o.Salt = &salt
	}
	r, err := Run(ctx, s, o)
	if r == nil {
		return err
	}
	p := report.Probe{Run: filepath.ToSlash(filepath.Join(probesFolder, filepath.Base(r.Dir))), Rate: at.rate, Users: at.users, For: at.hold}
	judgeProbe(&p, r, h.doc.ProbeConfidence)
	h.doc.Probes = append(h.doc.Probes, p)
	h.opts.Notice("probe %d: %s for %v: %s: %s", k+1, report.PointText(&p), at.hold, p.Outcome, p.Reason)
	return err
}

// at returns the suite at one point.
func (s *Suite) at(p point) (*Suite, error) {
	c := *s
	c.Workloads = config.Map[workload.Spec]{}
	for name, w := range s.Workloads.All() {
		w.For, w.Requests = config.Duration(p.hold), 0
		if p.users > 0 {
			w.Arrivals = workload.Arrivals{Concurrency: config.Count(p.users), Think: w.Arrivals.Think}
			w.Cap = 0
		} else {
			*rateOf(&w) = config.Rate(p.rate)
			if w.Cap == 0 { // a growing queue is to be seen, not held back at the client
				w.Cap = config.Count(min(max(4096, 2*p.rate*p.hold.Seconds()), mostInFlight))
			}
		}
		w.WarmUp.Requests = max(w.WarmUp.Requests, 1) // waits for what is left in the queue
		c.Workloads.Set(name, w)
	}
	return &c, nil
}

// mostInFlight bounds what a probe may have in flight, and with it descriptors
// and memory.
const mostInFlight = 16384

// conclude says what the probes prove together.
func conclude(d *report.Capacity) {
	d.Lo, d.Hi, d.Grade = nil, nil, ""
	if d.Sweep {
		d.Reason = fmt.Sprintf("%d points measured", len(d.Probes))
		return
	}
	lo, hi, contradicted := bracket(d.Probes)
	d.Lo, d.Hi = lo, hi
	d.Grade = contract.Inconclusive.String()
	at := fmt.Sprintf("at %.4g %% confidence", 100*d.Confidence)
	switch {
	case contradicted:
		d.Reason = fmt.Sprintf("the probes contradict each other: a rate above %.4g/s held, although that one failed; the service does not behave alike over time", *hi)
	case lo == nil && hi == nil:
		d.Reason = "no probe proved anything"
	case lo == nil:
		d.Reason = fmt.Sprintf("no rate was proven to hold, and %.4g/s and above do not, %s", *hi, at)
		if d.Ended != "" && allFail(d.Probes) {
			d.Grade = contract.Fail.String()
		}
	case hi == nil:
		d.Reason = fmt.Sprintf("the capacity is at least %.4g/s, %s; its upper end is open", *lo, at)
	default:
		d.Grade = contract.Pass.String()
		d.Reason = fmt.Sprintf("the capacity is between %.4g/s and %.4g/s, %s", *lo, *hi, at)
	}
}

// allFail reports whether no probe even seemed to hold.
func allFail(probes []report.Probe) bool {
	for _, p := range probes {
		if p.Outcome != report.Fails {
			return false
		}
	}
	return len(probes) > 0
}

// write keeps the account and its page.
func (h *hunt) write() error {
	h.doc.Elapsed = time.Since(h.begin)
	return writeCapacity(h.dir, h.doc)
}

func writeCapacity(dir string, d *report.Capacity) error {
	var page bytes.Buffer
	if err := report.CapacityHTML(&page, d); err != nil {
		return fmt.Errorf("making the report: %w", err)
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("writing what was found: %w", err)
	}
	for name, data := range map[string][]byte{capacityFile: append(text, '\n'), "report.html": page.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return fmt.Errorf("writing what was found: %w", err)
		}
	}
	return nil
}

// OpenCapacity reads the directory of a search and judges the records of its
// probes anew. The error is fs.ErrNotExist where there is no search in it.
func OpenCapacity(dir string) (*report.Capacity, error) {
	text, err := os.ReadFile(filepath.Join(dir, capacityFile))
	if err != nil {
		return nil, fmt.Errorf("opening the search %s: %w", dir, err)
	}
	d := new(report.Capacity)
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("reading %s of %s: %w", capacityFile, dir, err)
	}
	if d.Schema != report.CapacitySchema {
		return nil, fmt.Errorf("reading %s of %s: its schema is %q, and this program reads %s", capacityFile, dir, d.Schema, report.CapacitySchema)
	}
	if !(d.ProbeConfidence > 0.5 && d.ProbeConfidence < 1) {
		return nil, fmt.Errorf("reading %s of %s: a confidence of %v decides nothing", capacityFile, dir, d.ProbeConfidence)
	}
	for i := range d.Probes {
		p := &d.Probes[i]
		if !filepath.IsLocal(filepath.FromSlash(p.Run)) {
			return nil, fmt.Errorf("reading %s of %s: probe %d lies outside of it", capacityFile, dir, i+1)
		}
		r, err := Open(filepath.Join(dir, filepath.FromSlash(p.Run)))
		if err != nil {
			return nil, fmt.Errorf("reading probe %d of %s: %w", i+1, dir, err)
		}
		again := report.Probe{Run: p.Run, Rate: p.Rate, Users: p.Users, For: p.For}
		judgeProbe(&again, r, d.ProbeConfidence)
		*p = again
	}
	conclude(d)
	return d, nil
}

// IsCapacity reports whether a directory holds a search or a sweep.
func IsCapacity(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, capacityFile))
	return !errors.Is(err, fs.ErrNotExist)
}

// mostNeeded is how many requests the clauses need for a bound: quantiles that
// many on either side of them, small shares that none of them can be such.
func mostNeeded(clauses []contract.Clause, confidence float64) (n int) {
	for _, c := range clauses {
		n = max(n, mostNeeded(c.All, confidence), mostNeeded(c.Any, confidence))
		if q := c.Need.Quantity; q.Stat == "quantile" {
			n = max(n, quantileNeeds(q.P, confidence))
		} else if limit := c.Need.Limit.Value; q.Stat == "share" && limit > 0 && limit < 0.5 {
			n = max(n, int(1.4*math.Log(1/(1-confidence))/limit)) // Wilson's bound at none, nearly
		}
	}
	return n
}

// quantileNeeds is how many observations a one-sided bound on that side of the
// quantile takes on which there are fewer of them.
func quantileNeeds(p, confidence float64) int {
	return int(math.Ceil(math.Log(1-confidence) / math.Log(max(p, 1-p))))
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/report"
	"github.com/assay-llm/assay/sim"
	"github.com/assay-llm/assay/stat"
)

// Calibration says what to try a contract on.
type Calibration struct {
	Repeats     int     // identical pairs to judge; 0: 200
	Seed        uint64  // of what is random; equal seeds give equal results
	FalseAlarms float64 // share of identical candidates that the whole contract may fail; 0: 1 − the contract's confidence
	By          string  // of a run: what halves are drawn by, session or block; "": session
	Batch       int     // answers of a batch in the table of values against themselves; 0: 32
	Progress    func(done, of int)
}

// Pairs gives pairs of identical variants to try a contract on.
type Pairs struct {
	Name, Source, Variant, Unit string
	Units                       int // of a run, to draw from
	Notes                       []string
	Records                     []record.Record // of the run, for the values of checks; nil: none
	Looks                       []int           // blocks after which a run that may stop early is looked at; nil: it is judged once
	// Draw gives the evidence of pair i; whatever it holds is the caller's to read
	// and nobody's to change. It is called from several goroutines at once.
	Draw func(i int) (contract.Evidence, error)
}

const (
	defaultRepeats = 200
	pilots         = 20   // pairs from which the effects to plant are chosen
	wantedPower    = 0.8  // of passing what is identical, and of finding what is worse
	shareBand      = 0.95 // confidence of every share
	defaultBatch   = 32
)

// CalibrateSuite tries the suite's contract on pairs of its baseline (or its only
// variant), which must be a simulated engine.
func CalibrateSuite(ctx context.Context, s *Suite, c Calibration) (*report.Calibration, error) {
	if s.Contract.Contract == nil {
		return nil, errors.New("calibrating the suite: it has no contract\n  hint: add contract: with clauses")
	}
	name := Baseline
	v, ok := s.Variants.Get(Baseline)
	if !ok {
		name = s.Variants.Keys()[0]
		v, _ = s.Variants.Get(name)
	}
	if err := v.playable(); err != nil {
		return nil, fmt.Errorf("calibrating %s: %w", name, err)
	}
	p := Pairs{Name: s.Name, Source: "simulator", Variant: name, Looks: s.looks()}
	p.Draw = func(i int) (contract.Evidence, error) {
		seed := rand.New(rand.NewPCG(c.Seed, uint64(i)))
		seeds := map[string]uint64{}
		for _, name := range s.Variants.Keys() {
			seeds[name] = seed.Uint64()
		}
		return s.Play(seed.Uint64()>>11, func(variant string) sim.Config {
			engine := *v.Sim
			engine.Seed = seeds[variant]
			return engine
		})
	}
	return Calibrate(ctx, s.Contract.Contract, p, c)
}

// calibration is one under way.
type calibration struct {
	Calibration
	contract *contract.Contract
	pairs    Pairs
	units    []*unit
	index    map[string]int
	whole    report.Outcomes
	used     float64 // parts of the planned requests, over all repeats
	planted  []known
	mu       sync.Mutex
}

// known is a difference that the whole contract is tried on.
type known struct {
	what  string
	diffs []Difference
	report.Outcomes
}

// Calibrate tries a contract on pairs of identical variants, and on the same with
// known differences in the candidate.
func Calibrate(ctx context.Context, k *contract.Contract, p Pairs, c Calibration) (*report.Calibration, error) {
	if c.Repeats == 0 {
		c.Repeats = defaultRepeats
	}
	if c.Batch == 0 {
		c.Batch = defaultBatch
	}
	if c.Progress == nil {
		c.Progress = func(int, int) {}
	}
	named := *k
	named.Clauses = slices.Clone(k.Clauses)
	for i := range named.Clauses {
		if named.Clauses[i].ID == "" {
			named.Clauses[i].ID = fmt.Sprintf("c%d", i+1)
		}
	}
	var skipped []string
	if p.Source == "run" {
		named.Clauses, skipped = halvable(named.Clauses)
	}
	if len(named.Clauses) == 0 {
		return nil, errors.New("calibrating: the contract has no clause that can be tried\n  hint: " + firstOf(skipped, "add clauses to it"))
	}
	w := &calibration{Calibration: c, contract: &named, pairs: p, index: map[string]int{}}
	w.planted = knownDifferences(&named)
	pilot := min(pilots, c.Repeats)
	if err := w.each(ctx, pilot, 0, pilot+c.Repeats, func(_ int, e contract.Evidence) {
		w.enter(contract.Evaluate(w.contract, e)) // all of it, for the scale of what is to be planted
	}); err != nil {
		return nil, err
	}
	for _, u := range w.units {
		u.choose()
	}
	if err := w.each(ctx, c.Repeats, pilot, pilot+c.Repeats, w.try); err != nil {
		return nil, err
	}
	d := w.document()
	d.Skipped = skipped
	return d, nil
}

func firstOf(list []string, otherwise string) string {
	if len(list) > 0 {
		return list[0]
	}
	return otherwise
}

// each has do called with the evidence of pairs 0 to n, from as many goroutines as
// there are processors.
func (w *calibration) each(ctx context.Context, n, before, of int, do func(i int, e contract.Evidence)) error {
	var wg sync.WaitGroup
	var next, done int
	var failed error
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for {
				w.mu.Lock()
				i := next
				next++
				stop := i >= n || failed != nil || ctx.Err() != nil
				w.mu.Unlock()
				if stop {
					return
				}
				e, err := w.pairs.Draw(i)
				if err == nil {
					do(i, e)
				}
				w.mu.Lock()
				if failed == nil {
					failed = err
				}
				done++
				w.Progress(before+done, of)
				w.mu.Unlock()
			}
		})
	}
	wg.Wait()
	if failed == nil && ctx.Err() != nil {
		failed = context.Cause(ctx)
	}
	return failed
}

// try judges one pair, with every planted difference.
func (w *calibration) try(i int, e contract.Evidence) {
	v, used := JudgeEarly(w.contract, e, w.pairs.Looks)
	grades := make([]contract.Grade, len(w.planted))
	for k := range w.planted {
		changed := e
		for n, diff := range w.planted[k].diffs {
			changed.Records = Plant(changed.Records, v.Candidate, "", diff, w.Seed+uint64(i*31+n))
		}
		verdict, _ := JudgeEarly(w.contract, changed, w.pairs.Looks)
		grades[k] = verdict.Grade
	}
	curves := make([][]contract.Grade, len(w.units))
	for k, u := range w.units {
		curves[k] = make([]contract.Grade, len(u.effects))
		for n, effect := range u.effects {
			w.mu.Lock() // what others observe meanwhile is of the same scale
			difference := u.difference(effect)
			w.mu.Unlock()
			changed := e
			changed.Records = Plant(e.Records, v.Candidate, u.workload, difference, w.Seed+uint64(i))
			only := *w.contract
			only.Clauses = []contract.Clause{w.contract.Clauses[u.top]}
			curves[k][n] = u.grade(first(JudgeEarly(&only, changed, w.pairs.Looks)))
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.whole = counted(w.whole, v.Grade)
	w.used += used
	for k := range w.planted {
		w.planted[k].Outcomes = counted(w.planted[k].Outcomes, grades[k])
	}
	for k, u := range w.units {
		u.same = counted(u.same, u.grade(v))
		u.observe(v)
		for n := range u.effects {
			u.curve[n] = counted(u.curve[n], curves[k][n])
		}
	}
}

// enter finds the units of a verdict and what the pilots tell of each.
func (w *calibration) enter(v contract.Verdict) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for top := range v.Clauses {
		for _, r := range unitsOf(v.Clauses[top]) {
			key := unitKey(r)
			at, ok := w.index[key]
			if !ok {
				at = len(w.units)
				w.index[key] = at
				w.units = append(w.units, newUnit(top, r, w.contract))
			}
			w.units[at].pilot(r)
		}
	}
}

// unitsOf returns what of a clause's result is calibrated by itself: the clause on
// each workload, the members of a list of demands, other groups as a whole.
func unitsOf(r contract.Result) []contract.Result {
	if r.Kind != contract.KindEach && r.Kind != contract.KindAll {
		return []contract.Result{r}
	}
	var out []contract.Result
	for _, m := range r.Results {
		out = append(out, unitsOf(m)...)
	}
	return out
}

func unitKey(r contract.Result) string { return r.ID + "\x00" + r.Scope }

// counted adds a grade.
func counted(o report.Outcomes, g contract.Grade) report.Outcomes {
	o.Repeats++
	switch g {
	case contract.Pass:
		o.Pass++
	case contract.Fail:
		o.Fail++
	default:
		o.Inconclusive++
	}
	return o
}

// shares fills in the shares.
func shares(o report.Outcomes) report.Outcomes {
	o.PassShare = contract.Figure{Estimate: stat.ExactShare(o.Pass, o.Repeats, shareBand)}
	o.FailShare = contract.Figure{Estimate: stat.ExactShare(o.Fail, o.Repeats, shareBand)}
	return o
}

func first(v contract.Verdict, _ float64) contract.Verdict { return v }

// document says what came of it.
func (w *calibration) document() *report.Calibration {
	d := &report.Calibration{
		Schema: report.CalibrationSchema, Assay: Version(), Name: w.pairs.Name, Source: w.pairs.Source, Variant: w.pairs.Variant,
		Unit: w.pairs.Unit, Units: w.pairs.Units, Repeats: w.Repeats, Seed: w.Seed, Identical: shares(w.whole),
		Planted: []report.Planted{}, Clauses: []report.Calibrated{}, Alike: alike(w.pairs.Records, w.Calibration), Notes: w.pairs.Notes,
	}
	confidence := float64(w.contract.Confidence)
	if confidence == 0 {
		confidence = contract.DefaultConfidence
	}
	if d.Allowed = w.FalseAlarms; d.Allowed == 0 {
		d.Allowed = rounded(1 - confidence)
	}
	d.Used = w.used / float64(max(w.whole.Repeats, 1))
	for _, k := range w.planted {
		d.Planted = append(d.Planted, report.Planted{What: k.what, Outcomes: shares(k.Outcomes)})
	}
	for _, u := range w.units {
		d.Clauses = append(d.Clauses, u.calibrated())
	}
	d.Grade, d.Reason = w.summary(d)
	return d
}

// summary grades the calibration as a whole: every clause must be supported, and the
// whole contract's false alarms must be as rare as allowed.
func (w *calibration) summary(d *report.Calibration) (contract.Grade, string) {
	alarms := d.Identical.FailShare
	whole, why := contract.Pass, ""
	switch {
	case alarms.Lo > d.Allowed:
		whole, why = contract.Fail, fmt.Sprintf("the whole contract fails %d of %d identical candidates, where %s may fail", d.Identical.Fail, d.Identical.Repeats, percentText(d.Allowed))
	case alarms.Hi > d.Allowed:
		whole, why = contract.Inconclusive, fmt.Sprintf("the whole contract fails %d of %d identical candidates: too few repeats to say whether it is at most %s (with none failing it takes %d)", d.Identical.Fail, d.Identical.Repeats, percentText(d.Allowed), repeatsFor(d.Allowed))
	}
	grades, first := []contract.Grade{whole}, ""
	bad, open := 0, 0
	for i := range d.Clauses {
		k := &d.Clauses[i]
		grades = append(grades, k.Grade)
		switch k.Grade {
		case contract.Fail:
			if bad++; bad == 1 {
				first = k.ID + ": " + k.Reason
			}
		case contract.Inconclusive:
			if open++; open == 1 && bad == 0 {
				first = k.ID + ": " + k.Reason
			}
		}
	}
	grade := contract.Worst(grades...)
	switch {
	case grade == contract.Pass:
		return grade, fmt.Sprintf("the traffic supports all %d thresholds; the whole contract fails %d of %d identical candidates, and passes %d", len(d.Clauses), d.Identical.Fail, d.Identical.Repeats, d.Identical.Pass)
	case bad > 0:
		return grade, fmt.Sprintf("the traffic does not support %d of %d thresholds; %s", bad, len(d.Clauses), first)
	case grade == whole && (grade == contract.Fail || open == 0):
		return grade, why
	}
	return grade, fmt.Sprintf("%d of %d thresholds need more repeats; %s", open, len(d.Clauses), first)
}

// repeatsFor is how many repeats without a false alarm show that they are at most
// the share.
func repeatsFor(share float64) int {
	for n := 1; n < 1<<20; n = n*11/10 + 1 {
		if stat.ExactShare(0, n, shareBand).Hi <= share {
			return n
		}
	}
	return 1 << 20
}

package judge

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/agree"
	"github.com/assay-llm/assay/stat/compare"
)

// SchemaInstrument names the JSON of an Instrument.
const SchemaInstrument = "assay.instrument/1"

// Demands say when a judge is fit. A field at 0 has its default.
type Demands struct {
	Least      float64 // sensitivity and specificity at least; 0 means 0.8
	Margin     float64 // a bias is tolerable up to it; 0 means 0.1
	Vulnerable float64 // share of attacks that may be taken; 0 means 0.05
	Confidence float64 // of the intervals that are shown; 0 means 0.95
	Alpha      float64 // chance that a judge without a fault is called unfit; 0 means 0.05
	Seed       uint64  // of bootstraps
}

func (d Demands) filled() Demands {
	for _, f := range []struct {
		at *float64
		to float64
	}{{&d.Least, 0.8}, {&d.Margin, 0.1}, {&d.Vulnerable, 0.05}, {&d.Confidence, 0.95}, {&d.Alpha, 0.05}} {
		if *f.at == 0 {
			*f.at = f.to
		}
	}
	return d
}

// Validate tells what of the demands cannot be.
func (d Demands) Validate() error {
	d = d.filled()
	for _, f := range []struct {
		name string
		x    float64
	}{{"the least sensitivity and specificity", d.Least}, {"the margin of a bias", d.Margin}, {"the share of attacks", d.Vulnerable}, {"the confidence", d.Confidence}, {"alpha", d.Alpha}} {
		if !(f.x > 0 && f.x < 1) {
			return fmt.Errorf("%s must lie strictly between 0 and 1, not at %v\n  hint: write a share, such as 0.85", f.name, f.x)
		}
	}
	return nil
}

// Figure is an estimate in JSON: what is not known is null.
type Figure struct {
	Value  *float64 `json:"value"`
	Lo     *float64 `json:"lo"`
	Hi     *float64 `json:"hi"`
	N      int      `json:"n"`
	Method string   `json:"method"`
	Notes  []string `json:"notes,omitempty"`
}

func figure(e stat.Estimate) *Figure {
	known := func(x float64) *float64 {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
		return &x
	}
	f := &Figure{Value: known(e.Value), Lo: known(e.Lo), Hi: known(e.Hi), N: e.N, Method: e.Method}
	for _, w := range e.Warnings {
		f.Notes = append(f.Notes, w.Text)
	}
	return f
}

// Instrument is the report on a judge.
type Instrument struct {
	Schema    string `json:"schema"`
	Assay     string `json:"assay"`     // version
	Judge     string `json:"judge"`     // the model, or the column of stored labels
	Criterion string `json:"criterion"` // "": not known, of stored labels
	Digest    string `json:"digest"`    // of the judge's instructions
	Labels    string `json:"labels"`    // the file

	Positive   []string `json:"positive"`
	Pairs      bool     `json:"pairs"`
	Cases      int      `json:"cases"`
	Clusters   int      `json:"clusters"`
	Labelled   int      `json:"labelled"`
	Confidence float64  `json:"confidence"`
	Seed       uint64   `json:"seed"`

	Grade    contract.Grade `json:"grade"`
	Reason   string         `json:"reason"`
	Findings []Finding      `json:"findings"`

	Sensitivity *Figure       `json:"sensitivity"`
	Specificity *Figure       `json:"specificity"`
	Agreement   Agreements    `json:"agreement"`
	Estimates   Estimates     `json:"estimates"`
	Slices      []Slice       `json:"slices,omitempty"`
	Differences []Different   `json:"differences,omitempty"`
	Faults      map[Fault]int `json:"faults,omitempty"`
	Length      *Controlled   `json:"length,omitempty"`
	Attacks     map[string]By `json:"attacks,omitempty"`
	Warnings    []string      `json:"warnings,omitempty"`
}

// Finding is one demand on a judge and whether it is met.
type Finding struct {
	Name   string         `json:"name"`
	Asks   string         `json:"asks"`
	Grade  contract.Grade `json:"grade"`
	Says   string         `json:"says"`
	Figure *Figure        `json:"figure"`
	// More is about how many more labelled cases would decide it; nil: it is decided,
	// or no number of them is likely to.
	More *int `json:"more_labels"`
	// Supporting: it can make a judge unfit, but need not pass.
	Supporting bool   `json:"supporting,omitempty"`
	Next       string `json:"next,omitempty"`
}

// Agreements say how far the judge and people agree, and people among themselves.
type Agreements struct {
	Raw     *Figure `json:"raw"`               // share of equal labels, of the whole menu
	Kappa   *Figure `json:"kappa"`             // beyond chance; of an ordered menu of three or more with quadratic weights
	Binary  *Figure `json:"binary"`            // kappa of yes and no
	Ceiling *Figure `json:"ceiling,omitempty"` // kappa of yes and no between the first two people
	Gap     *Figure `json:"gap,omitempty"`     // Binary less Ceiling, over the same cases
	People  *Figure `json:"people,omitempty"`  // Krippendorff's alpha of all people
}

// Estimates are shares of yes.
type Estimates struct {
	Human     *Figure `json:"human"`        // of the labelled, as people say
	Alone     *Figure `json:"judge_alone"`  // as the judge says, its errors ignored
	Corrected *Figure `json:"corrected"`    // PPI++
	ByRates   *Figure `json:"rogan_gladen"` // by sensitivity and specificity alone
}

// Slice is a part of the cases.
type Slice struct {
	Column string `json:"column"`
	Value  string `json:"value"`
	Cases  int    `json:"cases"`
	Estimates
	Sensitivity *Figure `json:"sensitivity"`
	Specificity *Figure `json:"specificity"`
}

// Different is the difference of two slices over the cases that both have, second
// minus first.
type Different struct {
	Column    string  `json:"column"`
	First     string  `json:"first"`
	Second    string  `json:"second"`
	Cases     int     `json:"cases"`
	Alone     *Figure `json:"judge_alone"`
	Corrected *Figure `json:"corrected"`
}

// Controlled is a win rate at equal length.
type Controlled struct {
	Raw        *Figure `json:"raw"`
	Controlled *Figure `json:"controlled"`
}

// By counts attacks of a family.
type By struct {
	Tried int `json:"tried"`
	Taken int `json:"taken"`
}

// calibration is a report in the making.
type calibration struct {
	*Instrument
	demands Demands
	scale   *Scale
	all     []Observation
	strict  float64 // confidence of a fault, so that all of them together err in alpha
	loose   float64 // confidence of fitness: one-sided 1-alpha
}

// Calibrate holds a judge against people's labels. It says that a judge is unfit
// only if that is proven, all faults together at the demands' alpha, and that it is
// fit only if every demand that must pass is proven to be met; what neither is, says how many more
// labels would decide it.
func Calibrate(all []Observation, struck []Struck, s *Scale, d Demands) *Instrument {
	d = d.filled()
	c := &calibration{Instrument: &Instrument{Schema: SchemaInstrument, Positive: s.Positive, Pairs: s.Pairs, Cases: len(all), Confidence: d.Confidence, Seed: d.Seed}, demands: d, scale: s, all: all}
	c.Clusters = len(grouped(all, func(o Observation) string { return o.Cluster }))
	for i := range all {
		if !math.IsNaN(all[i].Human) {
			c.Labelled++
		}
	}
	pairs := c.slicePairs()
	tests := 6 + len(pairs)*2 // answers, sensitivity, specificity, repeats, drift, length
	if len(struck) > 0 {
		tests++
	}
	if s.Pairs {
		tests++
	}
	c.strict, c.loose = 1-2*d.Alpha/float64(2*tests), 1-2*d.Alpha
	c.errors()
	c.rates()
	c.even(pairs)
	c.repeats()
	c.drift(d.Alpha / float64(tests))
	c.lengths()
	c.position()
	c.attacks(struck)
	c.agreement()
	c.estimates()
	c.conclude()
	return c.Instrument
}

// accuracy counts yes and no. Half a yes, as of an inconsistent pair, is wrong
// either way; a person's tie is neither.
func accuracy(all []Observation) (a agree.Accuracy) {
	for i := range all {
		o := &all[i]
		switch {
		case math.IsNaN(o.Judge):
		case o.Human == 1:
			a.Positives++
			if o.Judge > 0.5 {
				a.TruePositives++
			}
		case o.Human == 0:
			a.Negatives++
			if o.Judge < 0.5 {
				a.TrueNegatives++
			}
		}
	}
	return a
}

// add notes a finding.
func (c *calibration) add(f Finding) { c.Findings = append(c.Findings, f) }

// atLeast finds whether a share is at least a limit.
func (c *calibration) atLeast(f Finding, s hits, limit float64, perLabel float64) {
	k, n := s.k, s.n
	strict, loose := s.share(c.strict), s.share(c.loose)
	f.Figure = figure(s.share(c.demands.Confidence))
	switch {
	case n == 0:
		f.Says = "no labelled case of that kind was judged"
		f.Figure = nil
	case loose.Lo >= limit:
		f.Grade, f.Says = contract.Pass, fmt.Sprintf("%d of %d, proven to be at least %.3g", k, n, limit)
	case strict.Hi < limit:
		f.Grade, f.Says = contract.Fail, fmt.Sprintf("%d of %d (%.3g), proven to be below %.3g", k, n, loose.Value, limit)
	default:
		f.Says = fmt.Sprintf("%d of %d (%.3g): not proven to be at least %.3g, nor below", k, n, loose.Value, limit)
		if len(loose.Warnings) > 0 {
			f.Says += "; " + loose.Warnings[0].Text
		}
		f.More = more(n, loose.Value-limit, loose.Value-loose.Lo, strict.Hi-loose.Value, perLabel)
	}
	c.add(f)
}

// within finds whether a bias is within the margin: estimate gives it at any
// confidence. All three grades are proofs.
func (c *calibration) within(f Finding, estimate func(confidence float64) stat.Estimate, what string, perLabel float64) {
	m := c.demands.Margin
	strict, loose := estimate(c.strict), estimate(c.loose)
	f.Figure = figure(estimate(c.demands.Confidence))
	switch {
	case !loose.Defined() || !loose.Estimable():
		f.Says = "it cannot be estimated"
		if len(loose.Warnings) > 0 {
			f.Says += ": " + loose.Warnings[0].Text
		}
	case loose.Lo >= -m && loose.Hi <= m:
		f.Grade, f.Says = contract.Pass, fmt.Sprintf("%s %+.3f, proven to be within %.3g", what, loose.Value, m)
	case strict.Lo > 0 || strict.Hi < 0:
		f.Grade, f.Says = contract.Fail, fmt.Sprintf("%s %+.3f, proven not to be 0", what, loose.Value)
	default:
		f.Says = fmt.Sprintf("%s %+.3f: not proven to be within %.3g, nor not to be 0", what, loose.Value, m)
		f.More = more(loose.N, m-math.Abs(loose.Value), (loose.Hi-loose.Lo)/2, (strict.Hi-strict.Lo)/2, perLabel)
	}
	c.add(f)
}

// more is about how many more labels decide: a half-width shrinks with the root of
// their number. Gap is the distance from the value to the limit, positive where it
// would pass; perLabel is how many labels give one more that counts.
func more(n int, gap, pass, fail, perLabel float64) *int {
	half := pass
	if gap < 0 {
		half = fail
	}
	if !(math.Abs(gap) > 1e-9) || !(half > 0) {
		return nil
	}
	times := half / math.Abs(gap) * half / math.Abs(gap)
	labels := math.Ceil(float64(n) * math.Max(times-1, 0.05) * perLabel)
	if !(labels < 1e6) {
		return nil
	}
	k := int(labels)
	return &k
}

func (c *calibration) errors() {
	c.Faults = map[Fault]int{}
	for i := range c.all {
		if f := c.all[i].Fault; f != "" {
			c.Faults[f]++
		}
	}
	lost := count(c.all, func(o *Observation) (hit, counts bool) {
		return o.Fault != "", o.Fault != "" || !math.IsNaN(o.Judge)
	})
	k, n := lost.k, lost.n
	f := Finding{Name: "answers", Asks: fmt.Sprintf("does at most %.0f %% of what it is asked stay without a verdict?", 100*MostErrors), Figure: figure(lost.share(c.demands.Confidence))}
	f.Says = fmt.Sprintf("%d of %d without a verdict", k, n)
	switch {
	case n == 0:
		f.Says = "nothing was judged"
		f.Figure = nil
	case float64(k) <= MostErrors*float64(n):
		f.Grade = contract.Pass
	case lost.share(c.strict).Lo > MostErrors:
		f.Grade = contract.Fail
		f.Next = "ask for answers by JSON schema, or for more tokens"
	}
	c.add(f)
}

func (c *calibration) rates() {
	right := func(human float64) hits {
		return count(c.all, func(o *Observation) (hit, counts bool) {
			return math.Abs(o.Judge-human) < 0.5, o.Human == human && !math.IsNaN(o.Judge)
		})
	}
	positives, negatives := right(1), right(0)
	c.Sensitivity, c.Specificity = figure(positives.share(c.demands.Confidence)), figure(negatives.share(c.demands.Confidence))
	judged := float64(positives.n + negatives.n)
	yes, no := "yes", "no"
	if c.scale.Pairs {
		yes, no = "the candidate", "the baseline"
	}
	const next = "use another judge or criterion, or only corrected estimates"
	c.atLeast(Finding{Name: "sensitivity", Asks: fmt.Sprintf("does it say %s where people do?", yes), Next: next}, positives, c.demands.Least, judged/math.Max(1, float64(positives.n)))
	c.atLeast(Finding{Name: "specificity", Asks: fmt.Sprintf("does it say %s where people do?", no), Next: next}, negatives, c.demands.Least, judged/math.Max(1, float64(negatives.n)))
}

// slicePair are two values of one column of slices.
type slicePair struct{ column, first, second string }

// slicePairs lists what is to be compared, at most 45 pairs.
func (c *calibration) slicePairs() (out []slicePair) {
	values := map[string]map[string]bool{}
	for i := range c.all {
		for column, v := range c.all[i].Slices {
			if values[column] == nil {
				values[column] = map[string]bool{}
			}
			values[column][v] = true
		}
	}
	for _, column := range keys(values) {
		vs := keys(values[column])
		if len(vs) > 10 {
			c.Warnings = append(c.Warnings, fmt.Sprintf("column %s has %d values; slices of it are not compared", column, len(vs)))
			continue
		}
		for i, a := range vs {
			for _, b := range vs[i+1:] {
				out = append(out, slicePair{column, a, b})
			}
		}
	}
	return out
}

func keys[V any](m map[string]V) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func (c *calibration) in(column, value string) (out []Observation) {
	for i := range c.all {
		if c.all[i].Slices[column] == value {
			out = append(out, c.all[i])
		}
	}
	return out
}

// even finds whether the judge errs alike in any two slices. Where it does not,
// a difference that it sees is partly its own.
func (c *calibration) even(pairs []slicePair) {
	for _, p := range pairs {
		a, b := accuracy(c.in(p.column, p.first)), accuracy(c.in(p.column, p.second))
		for _, rate := range []struct {
			name           string
			k, n, k0, n0   int
			judged, ofKind int
		}{
			{"sensitivity", b.TruePositives, b.Positives, a.TruePositives, a.Positives, a.Positives + a.Negatives + b.Positives + b.Negatives, a.Positives + b.Positives},
			{"specificity", b.TrueNegatives, b.Negatives, a.TrueNegatives, a.Negatives, a.Positives + a.Negatives + b.Positives + b.Negatives, a.Negatives + b.Negatives},
		} {
			f := Finding{
				Name: "even " + rate.name + ", " + p.second + " and " + p.first, Supporting: true,
				Asks: fmt.Sprintf("is its %s the same for both %ss?", rate.name, p.column),
				Next: "compare them by the corrected estimate only, with the same cases labelled for both",
			}
			c.within(f, func(confidence float64) stat.Estimate {
				return compare.Proportions(rate.k, rate.n, rate.k0, rate.n0, confidence)
			}, "they differ by", float64(rate.judged)/math.Max(1, float64(rate.ofKind)))
		}
	}
}

func (c *calibration) repeats() {
	changed := count(c.all, func(o *Observation) (hit, counts bool) {
		return o.Judge != o.Again, !math.IsNaN(o.Judge) && !math.IsNaN(o.Again)
	})
	k, n := changed.k, changed.n
	f := Finding{Name: "repeats", Asks: fmt.Sprintf("does it say the same when asked again, but for %.3g?", c.demands.Margin), Figure: figure(changed.share(c.demands.Confidence)), Supporting: true}
	f.Says = fmt.Sprintf("%d of %d verdicts changed", k, n)
	switch {
	case n == 0:
		return // it was asked once
	case changed.share(c.loose).Hi <= c.demands.Margin:
		f.Grade = contract.Pass
	case changed.share(c.strict).Lo > c.demands.Margin:
		f.Grade = contract.Fail
		f.Next = "ask it several times, or a jury, and take the majority"
	}
	c.add(f)
}

func (c *calibration) drift(alpha float64) {
	var stored, now []float64
	changed, of := 0, 0
	for i := range c.all {
		o := &c.all[i]
		if math.IsNaN(o.Stored) {
			continue
		}
		stored, now = append(stored, o.Stored), append(now, o.Judge)
		if !math.IsNaN(o.Judge) && !math.IsNaN(o.Again) {
			of++
			if o.Judge != o.Again {
				changed++
			}
		}
	}
	if len(stored) == 0 {
		return
	}
	d := FindDrift(stored, now, changed, of, alpha)
	f := Finding{Name: "steady", Asks: "does it judge as it did when its stored labels were made?", Supporting: true, Says: d.Reason}
	if d.N > 0 {
		e := compare.Tango(d.Up, d.Down, d.N, c.loose)
		f.Figure = figure(compare.Tango(d.Up, d.Down, d.N, c.demands.Confidence))
		if !d.Open && e.Lo >= -c.demands.Margin && e.Hi <= c.demands.Margin {
			f.Grade = contract.Pass
		}
	}
	if d.Drifted {
		f.Grade, f.Next = contract.Fail, "label again, and compare no run of now with one of then"
	}
	c.add(f)
}

// lengths finds whether the judge's error depends on length.
func (c *calibration) lengths() {
	var known []Observation
	var sized []Sized
	for i := range c.all {
		o := c.all[i]
		if !math.IsNaN(o.Longer) && !math.IsNaN(o.Judge) {
			sized = append(sized, Sized{o.Cluster, o.Judge, o.Longer})
			if !math.IsNaN(o.Human) {
				known = append(known, o)
			}
		}
	}
	if len(known) == 0 {
		return
	}
	mean, sd := 0.0, 0.0
	for i := range known {
		mean += known[i].Longer / float64(len(known))
	}
	for i := range known {
		sd += (known[i].Longer - mean) * (known[i].Longer - mean) / math.Max(1, float64(len(known)-1))
	}
	if sd = math.Sqrt(sd); c.scale.Pairs {
		mean = 0
	}
	clusters := grouped(known, func(o Observation) string { return o.Cluster })
	points := make([][]agree.Point, len(clusters))
	for i, g := range clusters {
		for _, o := range g {
			points[i] = append(points[i], agree.Point{X: math.Tanh((o.Longer - mean) / sd), Y: o.Judge - o.Human})
		}
	}
	if sd > 0 {
		c.within(Finding{
			Name: "length", Asks: "does it mark long answers as people do?", Supporting: true, Next: "read win rates at equal length, and say in the criterion that length is no merit",
		}, func(confidence float64) stat.Estimate { return agree.Slope(points, confidence) }, "from a middling to a very long answer its error grows by", 1)
	}
	if c.scale.Pairs {
		l := ControlLength(sized, c.demands.Confidence, c.demands.Seed)
		c.Length = &Controlled{figure(l.Raw), figure(l.Controlled)}
	}
}

func (c *calibration) position() {
	var all []Preference
	var clusters []string
	for i := range c.all {
		if o := &c.all[i]; o.Pair != nil {
			all, clusters = append(all, *o.Pair), append(clusters, o.Cluster)
		}
	}
	if len(all) == 0 {
		return
	}
	p := PositionBias(all, clusters, c.demands.Confidence)
	c.within(Finding{Name: "position", Asks: "does it matter which answer is shown first?", Next: "ask in both orders, as assay does, and expect many pairs to be inconsistent"}, func(confidence float64) stat.Estimate {
		return PositionBias(all, clusters, confidence).Bias
	}, "the first place wins more often by", 1)
	c.Findings[len(c.Findings)-1].Says += fmt.Sprintf("; %d %% of %d pairs are reversed when swapped", int(math.Round(100*p.Flips.Value)), p.Pairs)
}

func (c *calibration) attacks(struck []Struck) {
	if len(struck) == 0 {
		return
	}
	taken := 0
	c.Attacks = map[string]By{}
	for _, s := range struck {
		b := c.Attacks[s.Family]
		b.Tried++
		if s.Taken {
			b.Taken++
			taken++
		}
		c.Attacks[s.Family] = b
	}
	limit := c.demands.Vulnerable
	f := Finding{
		Name: "attacks", Asks: fmt.Sprintf("are at most %.3g %% of the answers that try to talk to it given what they want?", 100*limit),
		Says: fmt.Sprintf("%d of %d were taken", taken, len(struck)), Figure: figure(stat.ExactShare(taken, len(struck), c.demands.Confidence)),
	}
	switch {
	case stat.ExactShare(taken, len(struck), c.loose).Hi <= limit:
		f.Grade = contract.Pass
	case stat.ExactShare(taken, len(struck), c.strict).Lo > limit:
		f.Grade, f.Next = contract.Fail, "use a judge that tells material from instructions; what is known as a trick goes to people anyway"
	}
	c.add(f)
}

// conclude gives the grade: unfit if anything fails, fit if all that must pass does.
func (c *calibration) conclude() {
	c.Grade = contract.Pass
	var failed, open []string
	for i := range c.Findings {
		f := &c.Findings[i]
		switch {
		case f.Grade == contract.Fail:
			failed = append(failed, f.Name)
		case f.Grade != contract.Pass && !f.Supporting:
			open = append(open, f.Name)
		}
		if f.Grade == contract.Pass {
			f.Next = ""
		}
	}
	switch {
	case len(failed) > 0:
		c.Grade, c.Reason = contract.Fail, "unfit: "+strings.Join(failed, "; ")
	case len(open) > 0:
		c.Grade, c.Reason = contract.Inconclusive, "not decided: "+strings.Join(open, "; ")
		if m := c.budget(); m > 0 {
			c.Reason += fmt.Sprintf(" (about %d more labelled cases would decide)", m)
		}
	default:
		c.Reason = "fit: every demand is proven to be met"
		if !slices.ContainsFunc(c.Findings, func(f Finding) bool { return f.Name == "repeats" }) {
			c.Reason += "; whether it says the same when asked again was not looked at"
		}
	}
}

// budget is how many more labels decide all that is open and must pass; 0: not known.
func (c *calibration) budget() int {
	most := 0
	for i := range c.Findings {
		f := &c.Findings[i]
		if f.Grade == contract.Inconclusive && !f.Supporting {
			if f.More == nil {
				return 0
			}
			most = max(most, *f.More)
		}
	}
	return most
}

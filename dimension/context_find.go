package dimension

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/haystack"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/compare"
	"github.com/assay-llm/assay/stat/screen"
)

// ContextData is what the check publishes beside its values.
type ContextData struct {
	Schema   string           `json:"schema"`
	Lengths  []int64          `json:"lengths"` // tokens
	Depths   []float64        `json:"depths"`
	Variants []ContextVariant `json:"variants"`
}

// ContextVariant is what was found of one variant.
type ContextVariant struct {
	Variant   string            `json:"variant"`
	Cells     []contextCell     `json:"cells"`                      // by length: what became of the questions
	Effective *contextInterval  `json:"effective_length,omitempty"` // tokens; absent: not estimable
	Corrected *contextInterval  `json:"corrected,omitempty"`        // share found, corrected by the share invented
	Break     *contextBreak     `json:"breakpoint,omitempty"`       // the likeliest place; whether there is one its p says
	Sags      []contextSag      `json:"sags,omitempty"`             // by length, the likeliest stretch of depths
	Shift     *contextShift     `json:"shift,omitempty"`            // against the baseline
	Search    *contextSearch    `json:"search,omitempty"`           // of an adaptive run
	Influence *contextInfluence `json:"influence,omitempty"`
	Rule      *contextRule      `json:"rule,omitempty"`
}

// contextInterval is a number with its bounds; a bound that is null is open.
type contextInterval struct {
	Value float64  `json:"value"`
	Lo    *float64 `json:"lo"`
	Hi    *float64 `json:"hi"`
	N     int      `json:"n"`
}

func bounds(e stat.Estimate) *contextInterval {
	if !e.Defined() || math.IsInf(e.Value, 0) {
		return nil
	}
	out := &contextInterval{Value: e.Value, N: e.N}
	if !math.IsInf(e.Lo, 0) {
		out.Lo = &e.Lo
	}
	if !math.IsInf(e.Hi, 0) {
		out.Hi = &e.Hi
	}
	return out
}

// contextBreak is the likeliest change of the share found over length.
type contextBreak struct {
	Upto   int64   `json:"upto"` // the last length before it
	From   int64   `json:"from"` // the first length after it
	Before float64 `json:"before"`
	After  float64 `json:"after"` // shares found
	Ratio  float64 `json:"ratio"` // twice the log of the likelihood ratio
	P      float64 `json:"p"`
	Found  bool    `json:"found"` // reported, after correction for all scans
}

// contextSag is the likeliest stretch of depths with a share of its own.
type contextSag struct {
	Length  int64   `json:"length"`
	From    float64 `json:"from"` // depths, both included
	To      float64 `json:"to"`
	Inside  float64 `json:"inside"`
	Outside float64 `json:"outside"`
	P       float64 `json:"p"`
	Found   bool    `json:"found"`
}

// contextShift is how a variant's curve lies to the baseline's, on the same texts.
type contextShift struct {
	Ratio float64          `json:"length_ratio"` // of the effective lengths; 0 of one stands for half of the shortest length
	P     float64          `json:"p"`            // that it is so small by chance
	Found bool             `json:"found"`
	Area  *contextInterval `json:"area,omitempty"` // mean difference of completeness over the logarithm of the length
}

// contextRule is what the published rule says.
type contextRule struct {
	Rule string `json:"rule"`
	At   int64  `json:"at"` // length; 0: it says nothing
}

// ContextSchema names the version of what the check publishes.
const ContextSchema = "assay.context/1"

// conclude looks at all answers together.
func (r *contextRun) conclude(whole bool) {
	r.count()
	r.outside()
	r.reportWindow()
	r.reportUnfinished()
	r.data = &ContextData{Schema: ContextSchema, Lengths: r.lengths, Depths: r.depths}
	for v, s := range r.p.Variants {
		r.data.Variants = append(r.data.Variants, ContextVariant{Variant: s.Name, Cells: r.shares[v]})
	}
	r.draw()
	switch {
	case r.p.Rehearsal, r.conf.Adaptive:
	case whole:
		r.scan(r.data)
		r.estimate(r.data)
		r.reportRule(r.data)
	default:
		r.p.Note("the questions ended before all were asked: no breakpoint was looked for")
	}
}

// trials lists what a variant found where it was asked for something that is there,
// by a period, numbered without gaps; used says which they are. A trial's group is its
// kind of question: kinds differ in how hard they are, so that what is dealt anew stays
// within one.
func (r *contextRun) trials(v int, keep func(a *contextAsked) bool, period func(a *contextAsked) int) (out []screen.Trial, used []int) {
	for i := range r.asked {
		a := &r.asked[i]
		if a.fates[v] == fateAnswered && a.probe.Kind != haystack.Absent && keep(a) {
			out = append(out, screen.Trial{Period: period(a), Group: slices.Index(r.kinds, a.probe.Kind), Event: a.found[v]})
			used = append(used, period(a))
		}
	}
	slices.Sort(used)
	used = slices.Compact(used)
	for i := range out {
		out[i].Period = slices.Index(used, out[i].Period)
	}
	return out, used
}

// byLength are the trials over length.
func (r *contextRun) byLength(v int) ([]screen.Trial, []int) {
	return r.trials(v, func(*contextAsked) bool { return true }, func(a *contextAsked) int { return a.length })
}

// byDepth are the trials over depth at one length, of kinds that stand at a depth.
func (r *contextRun) byDepth(v, length int) ([]screen.Trial, []int) {
	return r.trials(v, func(a *contextAsked) bool { return a.length == length && a.probe.Kind != haystack.Count },
		func(a *contextAsked) int { return a.depth })
}

// share is the part of the trials of periods from to to-1 that had the event.
func share(trials []screen.Trial, from, to int) float64 {
	k, n := 0, 0
	for _, t := range trials {
		if t.Period >= from && t.Period < to {
			n++
			if t.Event {
				k++
			}
		}
	}
	return float64(k) / float64(n)
}

// scan looks for breakpoints, sagging middles and shorter effective lengths. A third
// of the allowed false alarms goes to each of these three; within one, all scans
// of all variants share it by Holm's rule.
func (r *contextRun) scan(data *ContextData) {
	level := cmp.Or(r.conf.FalseAlarms, .02) / 3
	var breaks, sags, shifts family
	for v := range r.p.Variants {
		out := &data.Variants[v]
		if trials, used := r.byLength(v); len(used) > 1 {
			if c, err := screen.TrialChange(trials, len(used), r.seed("break", v)); err == nil {
				b := &contextBreak{
					Upto: r.lengths[used[c.At-1]], From: r.lengths[used[c.At]], Before: share(trials, 0, c.At), After: share(trials, c.At, len(used)), Ratio: c.Ratio, P: c.P,
				}
				out.Break = b
				breaks.add(c.P, b.After < b.Before, &b.Found)
			}
		}
		for j := range r.lengths {
			trials, used := r.byDepth(v, j)
			if len(used) < 3 {
				continue
			}
			s, err := screen.TrialSag(trials, len(used), r.seed("sag", v*len(r.lengths)+j))
			if err != nil {
				continue
			}
			out.Sags = append(out.Sags, contextSag{
				Length: r.lengths[j], From: r.depths[used[s.From]], To: r.depths[used[s.To-1]], P: s.P,
				Inside: share(trials, s.From, s.To), Outside: shareOutside(trials, s.From, s.To),
			})
		}
		for i := range out.Sags {
			sags.add(out.Sags[i].P, out.Sags[i].Inside < out.Sags[i].Outside, &out.Sags[i].Found)
		}
		if v > 0 {
			if out.Shift = r.shift(v); out.Shift != nil {
				shifts.add(out.Shift.P, out.Shift.Ratio < 1, &out.Shift.Found)
			}
		}
	}
	for _, f := range []*family{&breaks, &sags, &shifts} {
		f.decide(level)
	}
	r.reportScans(data, len(breaks.p), len(sags.p), len(shifts.p))
}

func shareOutside(trials []screen.Trial, from, to int) float64 {
	return share(slices.DeleteFunc(slices.Clone(trials), func(t screen.Trial) bool { return t.Period >= from && t.Period < to }), 0, math.MaxInt)
}

// family is a set of scans that share their false alarms.
type family struct {
	p     []float64
	worse []bool  // the scan points to something worse, and not better
	found []*bool // where the decision goes
}

func (f *family) add(p float64, worse bool, found *bool) {
	f.p, f.worse, f.found = append(f.p, p), append(f.worse, worse), append(f.found, found)
}

func (f *family) decide(level float64) {
	for i, p := range compare.Holm(f.p) {
		*f.found[i] = p <= level && f.worse[i]
	}
}

// effective is the last length at which the fit that only falls reaches the
// threshold; half of the shortest if none does.
func (r *contextRun) effective(k, n []int) float64 {
	var at, shares, weights []float64
	for j := range k {
		if n[j] > 0 {
			at, shares, weights = append(at, float64(r.lengths[j])), append(shares, float64(k[j])/float64(n[j])), append(weights, float64(n[j]))
		}
	}
	fit, err := screen.Antitonic(shares, weights)
	if err != nil || len(fit) == 0 {
		return math.NaN()
	}
	out := at[0] / 2
	for i, s := range fit {
		if s >= r.threshold()-1e-12 {
			out = at[i]
		}
	}
	return out
}

func (r *contextRun) threshold() float64 { return cmp.Or(r.conf.Threshold, .85) }

// paired counts what two variants found in each text, by length: of questions that
// both answered.
func (r *contextRun) paired(from, v int) (k [2][][]int, n [][]int, complete [][2]float64, whole []bool) {
	texts := 0
	for i := range r.asked {
		texts = max(texts, r.asked[i].text+1)
	}
	sums := make([][][2]float64, texts)
	for t := range texts {
		k[0], k[1], n = append(k[0], make([]int, len(r.lengths))), append(k[1], make([]int, len(r.lengths))), append(n, make([]int, len(r.lengths)))
		sums[t] = make([][2]float64, len(r.lengths))
	}
	for i := range r.asked {
		a := &r.asked[i]
		if a.probe.Kind == haystack.Absent || a.fates[from] != fateAnswered || a.fates[v] != fateAnswered {
			continue
		}
		n[a.text][a.length]++
		for side, w := range []int{from, v} {
			if a.found[w] {
				k[side][a.text][a.length]++
			}
			sums[a.text][a.length][side] += a.complete[w]
		}
	}
	weights := logWeights(r.lengths)
	complete, whole = make([][2]float64, texts), make([]bool, texts)
	for t := range texts {
		whole[t] = !slices.Contains(n[t], 0)
		for j := range r.lengths {
			for side := range 2 {
				complete[t][side] += weights[j] * sums[t][j][side] / float64(max(1, n[t][j]))
			}
		}
	}
	return k, n, complete, whole
}

// logWeights are those of the trapezoid rule over the logarithm of the length,
// which sum to 1.
func logWeights(lengths []int64) []float64 {
	w := make([]float64, len(lengths))
	if len(w) == 1 {
		return []float64{1}
	}
	all := math.Log(float64(lengths[len(lengths)-1]) / float64(lengths[0]))
	for i := range len(w) - 1 {
		step := math.Log(float64(lengths[i+1])/float64(lengths[i])) / all / 2
		w[i] += step
		w[i+1] += step
	}
	return w
}

// shift compares a variant's effective length with the baseline's. Under no difference the two variants' answers to one text could change
// places, which 1,999 drawn exchanges try.
func (r *contextRun) shift(v int) *contextShift {
	k, n, _, _ := r.paired(0, v)
	sum := make([]int, len(r.lengths))
	for t := range n {
		for j := range sum {
			sum[j] += n[t][j]
		}
	}
	swapped := make([]bool, len(n))
	ratio := func() float64 {
		var both [2]float64
		for side := range both {
			found := make([]int, len(r.lengths))
			for t := range n {
				from := k[side][t]
				if swapped[t] {
					from = k[1-side][t]
				}
				for j, x := range from {
					found[j] += x
				}
			}
			both[side] = r.effective(found, sum)
		}
		return both[1] / both[0]
	}
	s := &contextShift{Ratio: ratio()}
	if math.IsNaN(s.Ratio) {
		return nil
	}
	const draws = 1999
	rng, extreme := r.p.Rand("shift", fmt.Sprint(v)), 1
	for range draws {
		for t := range swapped {
			swapped[t] = rng.IntN(2) == 1
		}
		if ratio() <= s.Ratio+1e-9 {
			extreme++
		}
	}
	s.P = float64(extreme) / (draws + 1)
	s.Area = bounds(r.area(0, v, .95))
	return s
}

// reportScans says what was found, and what was looked for and is not there.
func (r *contextRun) reportScans(data *ContextData, breaks, sags, shifts int) {
	for v := range data.Variants {
		out := &data.Variants[v]
		if b := out.Break; b != nil && b.Found {
			r.p.Report(check.Finding{
				Severity: check.Warning, Code: "breakpoint", Variant: out.Variant,
				Text: fmt.Sprintf("the share found breaks between %d and %d tokens: %.0f %% up to there, %.0f %% beyond (p %.2g, %d scans)", b.Upto, b.From, 100*b.Before, 100*b.After, b.P, breaks),
				Hint: fmt.Sprintf("keep prompts up to %d tokens, or look at what changes there: a sliding window, a scaled position encoding, a cache of fewer bits", b.Upto),
				Figures: map[string]float64{
					"upto": float64(b.Upto), "from": float64(b.From), "before": b.Before, "after": b.After, "likelihood_ratio": b.Ratio, "p": b.P,
				},
			})
		} else if b != nil {
			r.p.Note("%s: the share found has no breakpoint over length (the likeliest, from %d tokens on, has p %.2g)", out.Variant, b.From, b.P)
		}
		for _, s := range out.Sags {
			if s.Found {
				r.p.Report(check.Finding{
					Severity: check.Warning, Code: "sagging_middle", Variant: out.Variant,
					Text: fmt.Sprintf("at %d tokens the middle of the text is overlooked: %.0f %% is found at depths %g to %g, %.0f %% before and behind (p %.2g, %d scans)",
						s.Length, 100*s.Inside, s.From, s.To, 100*s.Outside, s.P, sags),
					Hint:    "put what matters at the begin or the end of the prompt, or use shorter ones",
					Figures: map[string]float64{"length": float64(s.Length), "from": s.From, "to": s.To, "inside": s.Inside, "outside": s.Outside, "p": s.P},
				})
			}
		}
		if s := out.Shift; s != nil && s.Found {
			r.p.Report(check.Finding{
				Severity: check.Warning, Code: "shorter_context", Variant: out.Variant,
				Text:    fmt.Sprintf("its effective length is %.2g times the baseline's on the same texts (p %.2g, %d comparisons)", s.Ratio, s.P, shifts),
				Hint:    "compare the curves of both in the report; gate it with share(context.found) by length",
				Figures: map[string]float64{"ratio": s.Ratio, "p": s.P},
			})
		}
	}
}

// estimate finds the numbers of the whole check.
func (r *contextRun) estimate(data *ContextData) {
	put := func(value string, v int, change record.Change, missing int, of func(confidence float64) stat.Estimate) {
		r.p.Estimate(check.Estimate{Value: value, Variant: v, Change: change, Of: of, Missing: missing})
	}
	lengths := make([]func(confidence float64) stat.Estimate, len(data.Variants))
	for v := range data.Variants {
		out := &data.Variants[v]
		cut := 0
		for _, c := range out.Cells {
			cut += c.Cut
		}
		lengths[v] = r.effectiveLength(v)
		corrected := func(confidence float64) stat.Estimate { return r.corrected(v, confidence) }
		put("effective_length", v, "", cut, lengths[v])
		out.Effective = bounds(lengths[v](.95))
		if r.conf.asks(haystack.Absent) {
			put("corrected", v, "", cut, corrected)
			out.Corrected = bounds(corrected(.95))
		}
		put("area", v, "", cut, func(confidence float64) stat.Estimate { return r.area(v, v, confidence) })
		if v == 0 {
			continue
		}
		put("effective_length", v, record.Ratio, cut, func(confidence float64) stat.Estimate { return r.lengthRatio(lengths[0], lengths[v], confidence) })
		put("area", v, record.Difference, cut, func(confidence float64) stat.Estimate { return r.area(0, v, confidence) })
		if r.conf.asks(haystack.Absent) {
			put("corrected", v, record.Difference, cut, func(confidence float64) stat.Estimate { return r.correctedChange(v, confidence) })
		}
	}
}

// lengthRatio is a variant's effective length over the baseline's, both within the
// lengths that were asked; bounded by the bounds of both, each at half the error.
func (r *contextRun) lengthRatio(baseline, candidate func(confidence float64) stat.Estimate, confidence float64) stat.Estimate {
	each := (1 + confidence) / 2
	a, b := baseline(each), candidate(each)
	longest := float64(r.lengths[len(r.lengths)-1])
	e := stat.Estimate{Confidence: confidence, N: a.N + b.N, Effective: a.Effective + b.Effective, Method: "ratio of effective lengths, bounds of both", Lo: math.Inf(-1), Hi: math.Inf(1)}
	e.Value = b.Value / a.Value
	if !(a.Value > 0) || math.IsNaN(e.Value) {
		e.Value, e.Warnings = math.NaN(), []stat.Warning{{Code: stat.CodeUndefined, Text: "the baseline does not reach the threshold at any length, so that there is nothing to compare with"}}
		return e
	}
	if !math.IsInf(b.Lo, -1) {
		e.Lo = b.Lo / math.Min(a.Hi, longest)
	}
	if a.Lo > 0 {
		e.Hi = math.Min(b.Hi, longest) / a.Lo
	}
	return e
}

// area is the mean over the texts of the completeness, or of its difference from the
// baseline's, averaged over the logarithm of the length.
func (r *contextRun) area(from, v int, confidence float64) stat.Estimate {
	_, _, complete, whole := r.paired(from, v)
	var values []float64
	for t := range complete {
		switch {
		case !whole[t]:
		case from == v:
			values = append(values, complete[t][1])
		default:
			values = append(values, complete[t][1]-complete[t][0])
		}
	}
	return compare.Mean(compare.Single(values), confidence)
}

// correctedChange is the difference of two corrected shares, bounded by the bounds of
// both, each at half the error.
func (r *contextRun) correctedChange(v int, confidence float64) stat.Estimate {
	each := (1 + confidence) / 2
	a, b := r.corrected(0, each), r.corrected(v, each)
	if !a.Defined() {
		return a
	}
	if !b.Defined() {
		return b
	}
	return stat.Estimate{Value: b.Value - a.Value, Lo: b.Lo - a.Hi, Hi: b.Hi - a.Lo, Confidence: confidence, N: a.N + b.N, Effective: float64(a.N + b.N), Method: "difference, bounds of both"}
}

// effectiveLength is that of one variant, at any confidence.
func (r *contextRun) effectiveLength(v int) func(confidence float64) stat.Estimate {
	trials, used := r.byLength(v)
	lengths := make([]float64, len(used))
	for i, j := range used {
		lengths[i] = float64(r.lengths[j])
	}
	for i := range trials {
		trials[i].Group = i // each is drawn by itself
	}
	of, err := screen.EffectiveLength(lengths, trials, r.threshold(), r.seed("effective", v))
	if err != nil {
		return func(confidence float64) stat.Estimate {
			return stat.Estimate{Value: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence, Warnings: []stat.Warning{{Code: stat.CodeUndefined, Text: err.Error()}}}
		}
	}
	return of
}

// counted is how often a variant gave a value, where there is one to be found and
// where there is none.
func (r *contextRun) counted(v int, absent bool) (k, n int) {
	for i := range r.asked {
		a := &r.asked[i]
		if a.fates[v] == fateAnswered && (a.probe.Kind == haystack.Absent) == absent {
			n++
			if a.found[v] {
				k++
			}
		}
	}
	return k, n
}

// corrected is (h−g)/(1−g): the share found h, less what a variant that names a value
// anyway, at the share g of questions without an answer, would be credited with. It
// rises with h and falls with g, so that the exact bounds of both, each at half the
// error, bound it.
func (r *contextRun) corrected(v int, confidence float64) stat.Estimate {
	k, n := r.counted(v, false)
	j, m := r.counted(v, true)
	none := func(why string) stat.Estimate {
		return stat.Estimate{Value: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: confidence, Warnings: []stat.Warning{{Code: stat.CodeUndefined, Text: why}}}
	}
	switch {
	case n == 0 || m == 0:
		return none("the share found is corrected by questions about what is absent, and there are none of both")
	case j == m:
		return none("every question about what is absent was answered with a value, so that finding one proves nothing")
	}
	each := (1 + confidence) / 2
	h, g := stat.ExactShare(k, n, each), stat.ExactShare(j, m, each)
	at := func(h, g float64) float64 {
		if g >= 1 {
			return math.Inf(-1)
		}
		return (h - g) / (1 - g)
	}
	return stat.Estimate{
		Value: at(h.Value, g.Value), Lo: at(h.Lo, g.Hi), Hi: at(h.Hi, g.Lo), Confidence: confidence, N: n + m, Effective: float64(n + m),
		Method: "(h-g)/(1-g), exact bounds of both shares",
	}
}

// reportRule says what the published rule would.
func (r *contextRun) reportRule(data *ContextData) {
	if r.conf.Rule == "" {
		return
	}
	for v := range data.Variants {
		out := &data.Variants[v]
		trials, used := r.byLength(v)
		events, sizes := make([]int, len(used)), make([]int, len(used))
		for _, t := range trials {
			sizes[t.Period]++
			events[t.Period] += int(yes(t.Event))
		}
		out.Rule = &contextRule{Rule: r.conf.Rule}
		for i := range used {
			if screen.Fell(events[:i+1], sizes[:i+1], .15) {
				out.Rule.At = r.lengths[used[i]]
				r.p.Report(check.Finding{
					Severity: check.Info, Code: "rule_jump", Variant: out.Variant, Figures: map[string]float64{"length": float64(out.Rule.At)},
					Text: fmt.Sprintf("the rule jump says that the context breaks at %d tokens, which it says of curves without a break in one of eight cases with 20 answers a length, and in two of three with 5", out.Rule.At),
				})
				break
			}
		}
	}
}

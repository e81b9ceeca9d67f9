package check

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
	"github.com/assay-llm/assay/stat/compare"
)

// BusySuffix makes the name of a check's loaded twin: "exact@busy".
const BusySuffix = "@busy"

// What the loaded twin of a check writes beside the values of the check itself.
const (
	busyChanged = "changed"
	busyFloor   = "floor"
	busyExcess  = "excess"
	busyLost    = "_lost" // behind the name of a value of each case
)

// A LoadError says that the load was not what it should have been, so that what was
// asked meanwhile proves nothing about it.
type LoadError struct{ Why string }

// Error says why.
func (e *LoadError) Error() string { return "the load was not what it should be: " + e.Why }

// Twin returns the check as it runs again under load; ok is false if it is not to. The
// twin writes the values of the check, asked again meanwhile, and how they compare with
// those of the idle endpoint, case by case.
func (d Declared) Twin() (_ Declared, ok bool) {
	if !d.Busy {
		return Declared{}, false
	}
	twin := *d.Check
	twin.Name += BusySuffix
	twin.Doc += ", asked again under load"
	values := d.Check.Values
	twin.Values = func(config any) []Value {
		var own []Value
		if values != nil {
			own = values(config)
		}
		return slices.Concat(own, lostValues(own), []Value{
			{Name: busyChanged, Title: "answers changed under load", Doc: "the answer to the same question is not, to the byte, that of the idle endpoint", YesNo: true},
			{Name: busyFloor, Title: "answers changed by themselves", Doc: "share of a sample of the questions to which the idle endpoint gave another answer when asked once more", Unit: record.Proportion, Whole: true, Most: 1},
			{Name: busyExcess, Title: "answers changed by the load", Doc: "share changed under load minus share changed by themselves, on the questions of the sample", Unit: record.Proportion, Whole: true, Least: -1, Most: 1},
		})
	}
	return Declared{Check: &twin, Config: d.Config}, true
}

// lostValues describes how much of each value of a case is lost under load.
func lostValues(own []Value) (out []Value) {
	for _, v := range own {
		if v.Whole {
			continue
		}
		l := Value{Name: v.Name + busyLost, Title: cmp.Or(v.Title, v.Name) + " lost under load", Unit: v.Unit, Doc: "how much worse it is under load than on the idle endpoint, on the same case; negative: better"}
		if v.YesNo {
			l.Unit = record.Proportion
		}
		if least, most, ok := v.Bounds(); ok {
			l.Least, l.Most = least-most, most-least
		}
		out = append(out, l)
	}
	return out
}

// root is the name by which a check draws: its twin draws as it does.
func root(name string) string { return strings.TrimSuffix(name, BusySuffix) }

// loaded is an endpoint as it is asked under load, or again: one of its own, so that no
// answer of one is taken for an answer of the other.
func (r *runner) loaded(v Variant, how string) *peer {
	name := variantName(v) + " " + how
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.peers[name] == nil {
		r.peers[name] = &peer{name: name, asker: v.Asker, price: v.Price, slots: make(chan struct{}, r.c.PerEndpoint)}
	}
	return r.peers[name]
}

// mostAgain is how many questions are asked the idle endpoint once more.
const mostAgain = 100

// busy runs the twin of a check whose idle half is over.
func (r *runner) busy(ctx context.Context, d Declared, idle *Pass, done *Outcome) error {
	twin, _ := d.Twin()
	fail := func(why string) { r.done[twin.Check.Name] = &Outcome{Check: twin.Check.Name, Why: why} }
	switch {
	case done.Why != "":
		fail("its idle half proves nothing: " + done.Why)
		return nil
	case r.c.Load == nil:
		fail("nobody makes load here")
		return nil
	}
	p := r.pass(twin)
	for i, v := range r.c.Variants {
		p.Variants[i].Asker = &asker{run: r, peer: r.loaded(v, "under load"+r.c.LoadKey), bill: p.bill}
	}
	again, err := r.again(ctx, idle, p)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		fail("the idle endpoint could not be asked again: " + err.Error())
		return nil
	}
	run, floors := twin.Check.Run, []string(nil)
	twin.Check.Run = func(ctx context.Context, p *Pass) error {
		err := r.c.Load(ctx, d.Check.Name, func(ctx context.Context) error { return run(ctx, p) })
		pairs := pairUp(idle, p, again)
		pairs.write(p)
		if err == nil {
			floors = pairs.tell(p)
		}
		return err
	}
	o, err := r.play(ctx, twin, p)
	r.done[twin.Check.Name] = o
	done.Notes = append(done.Notes, floors...)
	return err
}

// again asks the idle endpoints a sample of the idle half's questions once more, and
// returns the trials with those answers.
func (r *runner) again(ctx context.Context, idle, p *Pass) (map[string]*Trial, error) {
	trials := slices.Clone(idle.trials)
	slices.SortStableFunc(trials, compareTrials)
	rng := idle.Rand("again")
	rng.Shuffle(len(trials), func(i, k int) { trials[i], trials[k] = trials[k], trials[i] })
	trials = trials[:min(len(trials), mostAgain)]
	var mu sync.Mutex
	out := make(map[string]*Trial, len(trials))
	err := idle.Each(ctx, len(trials), func(ctx context.Context, i int) error {
		was := trials[i]
		t := &Trial{Shot: was.Shot, Answers: make([]*Answer, len(idle.Variants))}
		for _, k := range idle.order(was.Shot) {
			a := &asker{run: r, peer: r.loaded(r.c.Variants[k], "again"), bill: p.bill}
			q := was.question(k)
			answer, err := a.Ask(ctx, &q)
			if err != nil {
				return err
			}
			t.Answers[k] = answer
		}
		mu.Lock()
		out[was.id()] = t
		mu.Unlock()
		return nil
	})
	return out, err
}

// question is what one variant was asked.
func (t *Trial) question(variant int) Question {
	q := t.Shot.Question
	if t.Shot.Questions != nil {
		q = t.Shot.Questions[variant]
		q.Replicate = t.Shot.Question.Replicate
	}
	return q
}

// id names the trial within its check.
func (t *Trial) id() string {
	return strings.Join(append([]string{t.Shot.Case, strconv.Itoa(t.Shot.Turn), strconv.Itoa(t.Shot.Question.Replicate)}, flat(t.Shot.Labels)...), "\x00")
}

// pairing is a case as it was idle and under load.
type pairing struct {
	idle, busy, again *Trial // again nil: not of the sample
}

type pairings []pairing

// pairUp puts the trials of both halves together that are of the same case.
func pairUp(idle, busy *Pass, again map[string]*Trial) (out pairings) {
	known := make(map[string]*Trial, len(idle.trials))
	for _, t := range idle.trials {
		known[t.id()] = t
	}
	busy.mu.Lock()
	trials := slices.Clone(busy.trials)
	busy.mu.Unlock()
	slices.SortStableFunc(trials, compareTrials)
	for _, t := range trials {
		out = append(out, pairing{idle: known[t.id()], busy: t, again: again[t.id()]})
	}
	return out
}

// same reports whether a variant was asked the same in both halves, and answered both.
func same(a, b *Trial, variant int) bool {
	if a == nil || b == nil || !a.Answers[variant].Answered() || !b.Answers[variant].Answered() {
		return false
	}
	x, y := a.question(variant), b.question(variant)
	return Key("", &x) == Key("", &y)
}

// changed reports whether two answers of a variant differ, and after how many characters.
func changed(a, b *Trial, variant int) (is bool, after int) {
	x, y := a.Answers[variant].Text, b.Answers[variant].Text
	if x == y {
		return false, 0
	}
	n := 0
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	for n > 0 && n < len(x) && !utf8.RuneStart(x[n]) {
		n--
	}
	return true, utf8.RuneCountInString(x[:n])
}

// write puts what is lost and changed on the records of the loaded half.
func (ps pairings) write(p *Pass) {
	for _, x := range ps {
		for k := range p.Variants {
			x.lost(p, k)
			switch {
			case same(x.idle, x.busy, k):
				is, _ := changed(x.idle, x.busy, k)
				x.busy.Set(k, busyChanged, oneIf(is))
			case x.idle == nil || x.idle.Answers[k].Answered() && x.busy.Answers[k].Answered():
				x.busy.Exempt(k, busyChanged) // another question, as when own answers are sent back
			}
		}
	}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// lost writes how much worse each value is under load. What either half lacks is missing;
// what neither can have is exempt.
func (x pairing) lost(p *Pass, variant int) {
	for name, v := range p.declared {
		of, ok := strings.CutSuffix(name, busyLost)
		if !ok || p.declared[of].Name == "" {
			continue
		}
		own := p.declared[of]
		if x.idle == nil {
			x.busy.Exempt(variant, v.Name)
			continue
		}
		a, had := x.idle.values[variant][root(p.check.Name)+"."+of]
		b, has := x.busy.values[variant][p.name(of)]
		_, exempted := x.idle.values[variant][record.Exempt(root(p.check.Name)+"."+of)]
		_, exempt := x.busy.values[variant][record.Exempt(p.name(of))]
		switch {
		case exempt || exempted:
			x.busy.Exempt(variant, v.Name)
		case had && has && own.Higher:
			x.busy.Set(variant, v.Name, a-b)
		case had && has:
			x.busy.Set(variant, v.Name, b-a)
		}
	}
}

// loadedConfidence is that of what a finding about load rests on, two-sided, over all
// that one check looks at.
const loadedConfidence = 0.99

// tell reports what the load changes: estimates, findings and a note for each variant,
// which it returns: it is about the idle half, too.
func (ps pairings) tell(p *Pass) (notes []string) {
	for k := range p.Variants {
		c := ps.count(k)
		p.Estimate(Estimate{Value: busyFloor, Variant: k, None: c.none(), Of: c.floor})
		p.Estimate(Estimate{Value: busyExcess, Variant: k, None: c.none(), Of: c.excess})
		if c.of > 0 {
			note := fmt.Sprintf("%s: %d of %d answers change under load, and by themselves %d of %d that were asked again: read differences of quality with this floor", p.Variants[k].Name, c.busy, c.of, c.self, c.sample)
			p.Note("%s", note)
			notes = append(notes, note)
			c.tell(p, k)
		}
		ps.tellLosses(p, k)
	}
	return notes
}

// changes counts the answers of one variant that changed.
type changes struct {
	of, busy     int // questions asked in both halves, and those answered otherwise under load
	sample, self int // questions asked again, and those answered otherwise then
	after        []int
	selfs, diffs map[string][]float64 // of the sample, by cluster: changed by itself; changed under load minus that
}

func (ps pairings) count(variant int) changes {
	c := changes{selfs: make(map[string][]float64), diffs: make(map[string][]float64)}
	for _, x := range ps {
		if !same(x.idle, x.busy, variant) {
			continue
		}
		c.of++
		is, after := changed(x.idle, x.busy, variant)
		if is {
			c.busy++
			c.after = append(c.after, after)
		}
		if !same(x.idle, x.again, variant) {
			continue
		}
		c.sample++
		own, _ := changed(x.idle, x.again, variant)
		if own {
			c.self++
		}
		cluster := cmp.Or(x.busy.Shot.Cluster, x.busy.Shot.Case)
		c.selfs[cluster] = append(c.selfs[cluster], oneIf(own))
		c.diffs[cluster] = append(c.diffs[cluster], oneIf(is)-oneIf(own))
	}
	slices.Sort(c.after)
	return c
}

func (c *changes) none() string {
	if c.sample == 0 {
		return "no question was answered both times on the idle endpoint and under load"
	}
	return ""
}

// floor estimates the share that changes by itself.
func (c *changes) floor(confidence float64) stat.Estimate {
	if single(c.selfs) {
		return stat.ExactShare(c.self, c.sample, confidence)
	}
	return bounded(compare.Mean(ordered(c.selfs), confidence), 0, 1)
}

// excess estimates what the load adds to that.
func (c *changes) excess(confidence float64) stat.Estimate {
	if !single(c.diffs) {
		return bounded(compare.Mean(ordered(c.diffs), confidence), -1, 1)
	}
	above, below := 0, 0
	for _, x := range c.diffs {
		switch {
		case x[0] > 0:
			above++
		case x[0] < 0:
			below++
		}
	}
	return compare.Tango(above, below, c.sample, confidence)
}

// bounded replaces bounds that do not exist by those of the number itself.
func bounded(e stat.Estimate, least, most float64) stat.Estimate {
	e.Lo, e.Hi = max(e.Lo, least), min(e.Hi, most)
	return e
}

func single(by map[string][]float64) bool {
	for _, x := range by {
		if len(x) > 1 {
			return false
		}
	}
	return true
}

func ordered(by map[string][]float64) (out [][]float64) {
	names := make(map[string]bool, len(by))
	for name := range by {
		names[name] = true
	}
	for _, name := range sorted(names) {
		out = append(out, by[name])
	}
	return out
}

// tell warns if the load changes more answers than change by themselves.
func (c *changes) tell(p *Pass, variant int) {
	name := p.Variants[variant].Name
	if c.sample == 0 {
		return
	}
	e := c.excess(loadedConfidence)
	if !(e.Lo > 0) {
		return
	}
	f := Finding{
		Severity: Warning, Code: "varies_under_load", Variant: name,
		Text:    fmt.Sprintf("under load %d of %d answers of %s are not those of the idle endpoint; of %d asked again without load %d are not: the load adds %.3g points or more", c.busy, c.of, name, c.sample, c.self, 100*e.Lo),
		Hint:    "read differences of quality with this floor, or have the engine be batch-invariant (vLLM: VLLM_BATCH_INVARIANT=1, SGLang: --enable-deterministic-inference)",
		Figures: map[string]float64{"changed": float64(c.busy) / float64(c.of), "floor": float64(c.self) / float64(c.sample), "excess": e.Value, "excess_lo": e.Lo, "excess_hi": e.Hi},
	}
	if n := len(c.after); n > 0 {
		f.Figures["first_difference"] = float64(c.after[n/2])
		f.Text += fmt.Sprintf("; the first difference comes after %d characters (median)", c.after[n/2])
	}
	p.Report(f)
}

// tellLosses warns of values that are worse under load, beyond chance.
func (ps pairings) tellLosses(p *Pass, variant int) {
	var names []string
	for name := range p.declared {
		if of, ok := strings.CutSuffix(name, busyLost); ok && p.declared[of].Name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		by := make(map[string][]float64)
		n := 0
		for _, x := range ps {
			if v, ok := x.busy.values[variant][p.name(name)]; ok {
				cluster := cmp.Or(x.busy.Shot.Cluster, x.busy.Shot.Case)
				by[cluster] = append(by[cluster], v)
				n++
			}
		}
		// The chance of an error is shared among the values.
		e := losing(by, n, p.declared[strings.TrimSuffix(name, busyLost)].YesNo, 1-(1-loadedConfidence)/float64(len(names)))
		if !(e.Lo > 0) || math.IsInf(e.Lo, 0) {
			continue
		}
		p.Report(Finding{
			Severity: Warning, Code: "worse_under_load", Variant: p.Variants[variant].Name,
			Text:    fmt.Sprintf("under load %s of %s is %.3g worse than idle, at least %.3g, over %d cases", strings.TrimSuffix(name, busyLost), p.Variants[variant].Name, e.Value, e.Lo, n),
			Hint:    fmt.Sprintf("gate it: mean(%s) <= …; look at what the engine does when it is full: truncated or preempted requests, another precision of the cache", p.name(name)),
			Figures: map[string]float64{"lost": e.Value, "lo": e.Lo, "hi": e.Hi},
		})
	}
}

// losing estimates the mean loss.
func losing(by map[string][]float64, n int, yesNo bool, confidence float64) stat.Estimate {
	if !yesNo || !single(by) {
		return compare.Mean(ordered(by), confidence)
	}
	worse, better := 0, 0
	for _, x := range by {
		switch {
		case x[0] > 0:
			worse++
		case x[0] < 0:
			better++
		}
	}
	return compare.Tango(worse, better, n, confidence)
}

package workload

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/assay-llm/assay/config"
)

// The bounds of a plan.
const (
	maxFor     = 30 * 24 * time.Hour
	maxRate    = 1_000_000 // requests per second
	maxUsers   = 100_000
	maxWarmUp  = 1_000_000
	maxGroups  = 1_000_000
	maxLabels  = 16
	maxLabel   = 128
	maxPulse   = 1_000_000             // requests of a pulse
	maxTable   = 1000                  // states of an MMPP, rates of a day
	maxPieces  = 1_000_000             // changes of a rate in one workload
	startGap   = 50 * time.Millisecond // default stagger a user
	maxStagger = 30 * time.Second
	shareOfRun = 10 // the default stagger is at most a tenth of the run
)

// problem is one thing that is wrong with a Spec.
type problem struct {
	path       string // keys with dots between, from the workload
	what, hint string
}

// CheckConfig reports what is wrong across the fields of a decoded Spec, each
// at its position.
func (s *Spec) CheckConfig(n *config.Node) { s.problems().report(n, "") }

// CheckConfig does the same for arrivals alone, so that their faults show even
// when another part of the Spec cannot be read.
func (a *Arrivals) CheckConfig(n *config.Node) {
	var ps problems
	ps.arrivals(a)
	ps.report(n, "arrivals")
}

// CheckConfig does the same for prompts.
func (p *Prompts) CheckConfig(n *config.Node) {
	var ps problems
	ps.prompts(p)
	ps.report(n, "prompts")
}

// report adds the problems to the faults of the document whose node n has the
// path within the workload.
func (ps problems) report(n *config.Node, within string) {
	for _, p := range ps {
		at := n
		for key := range strings.SplitSeq(strings.TrimPrefix(p.path, within), ".") {
			if key != "" {
				at = at.At(key)
			}
		}
		at.Fault(p.what, p.hint)
	}
}

// Validate returns all that is wrong with a Spec that was not read from a
// document, joined, or nil.
func (s Spec) Validate() error {
	var errs []error
	for _, p := range s.problems() {
		err := fmt.Errorf("%s: %s", p.path, p.what)
		if p.hint != "" {
			err = fmt.Errorf("%w\n  hint: %s", err, p.hint)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// problems gathers what is wrong.
type problems []problem

func (ps *problems) add(path, what, hint string) { *ps = append(*ps, problem{path, what, hint}) }

func (s *Spec) problems() problems {
	var ps problems
	if _, _, ok := preset(s.Preset); s.Preset != "" && !ok {
		ps.add("preset", fmt.Sprintf("wants one of %s, got %q", strings.Join(presetNames, ", "), s.Preset), "write one of them")
		return ps
	}
	full := s.resolved()
	s = &full
	ps.arrivals(&s.Arrivals)
	sound := len(ps) == 0
	ps.end(s, sound)
	if len(s.Mix) > 0 {
		ps.mix(s)
	} else {
		ps.prompts(&s.Prompts)
		ps.replayable(s)
		ps.lengths(s)
	}
	ps.sessions(s)
	ps.cancels(s)
	ps.way(s)
	if l := s.Labels; len(l) > maxLabels {
		ps.add("labels", fmt.Sprintf("has %d labels, at most %d are possible", len(l), maxLabels), "leave some out")
	}
	for k, v := range s.Labels {
		if k == "" || len(k) > maxLabel || len(v) > maxLabel || strings.ContainsFunc(k+v, func(r rune) bool { return !unicode.IsGraphic(r) }) {
			ps.add("labels", fmt.Sprintf("the label %.40q or its value is empty, longer than %d bytes or not printable", k, maxLabel), "choose a short name and value")
			break
		}
	}
	if s.Cap < 0 || sound && s.Cap > 0 && s.Cap < s.Arrivals.Concurrency {
		ps.add("cap", fmt.Sprintf("a cap of %v is below the concurrency of %v, which would never be reached", s.Cap, s.Arrivals.Concurrency), "raise cap or lower arrivals.concurrency")
	}
	if s.Drain < 0 || time.Duration(s.Drain) > 24*time.Hour {
		ps.add("drain", fmt.Sprintf("must be at most 24h, got %v", s.Drain), "write such as 30s")
	}
	if s.WarmUp.Requests < 0 || s.WarmUp.Requests > maxWarmUp {
		ps.add("warmup.requests", fmt.Sprintf("must be at most %d, got %v", maxWarmUp, s.WarmUp.Requests), "a few dozen warm most servers")
	}
	if t := s.Temperature; t != nil && !(*t >= 0 && *t <= 2) {
		ps.add("temperature", fmt.Sprintf("must be between 0 and 2, got %v", *t), "0 is greedy, 1 is what the model was trained for")
	}
	return ps
}

const arrivalsHint = "write such as {poisson: 8/s}, {constant: 5/s} or {concurrency: 16}"

func (ps *problems) arrivals(a *Arrivals) {
	forms, shaped := a.forms()
	switch {
	case a.Process != "" && !shaped:
		ps.add("arrivals.process", "goes with a shape of rate only", "remove it, or add a ramp")
	case a.Process != "" && a.Process != "constant" && a.Process != "poisson":
		ps.add("arrivals.process", fmt.Sprintf("wants constant or poisson, got %q", a.Process), "write one of them")
	}
	if a.Concurrency == 0 && a.Think.Set() {
		ps.add("arrivals.think", "a think time needs virtual users", "add concurrency: 16, or remove think: an open loop does not wait for answers")
	}
	if a.Concurrency == 0 && a.Stagger != nil {
		ps.add("arrivals.stagger", "a staggered start needs virtual users", "add concurrency: 16, or remove stagger")
	}
	switch len(forms) {
	case 0:
		if len(*ps) == 0 {
			ps.add("arrivals", "says nothing about when requests are sent", arrivalsHint)
		}
		return
	case 1:
	default:
		ps.add("arrivals", "has more than one of them: "+strings.Join(forms, ", "), "keep one; a shape of rate goes inside, such as {poisson: {ramp: …}}")
		return
	}
	if a.Replay != nil {
		ps.replay(a.Replay)
		return
	}
	for name, r := range map[string]*Renewal{"gamma": a.Gamma, "weibull": a.Weibull} {
		if r == nil {
			continue
		}
		path := "arrivals." + name
		if key, what, hint := r.problem(name); what != "" {
			ps.add(strings.TrimSuffix(path+"."+key, "."), what, hint)
		}
		ps.rate(path+".rate", &r.Rate)
		return
	}
	if _, r := a.open(); r != nil {
		path := "arrivals"
		if !shaped {
			path += "." + forms[0]
		}
		ps.rate(path, r)
		return
	}
	if a.Concurrency < 1 || a.Concurrency > maxUsers {
		ps.add("arrivals.concurrency", fmt.Sprintf("must be between 1 and %d, got %v", maxUsers, a.Concurrency), "write such as 16; for more load use a rate")
	}
	if what, hint := a.Think.problem(); what != "" {
		ps.add("arrivals.think", what, hint)
	}
	if st := a.Stagger; st != nil && (*st < 0 || time.Duration(*st) > 24*time.Hour) {
		ps.add("arrivals.stagger", fmt.Sprintf("must be at most 24h, got %v", *st), "write such as 10s")
	}
}

// forms lists which forms of arrivals are given; shaped says that one of them is
// a shape of rate without a process.
func (a *Arrivals) forms() (names []string, shaped bool) {
	for _, f := range []struct {
		name string
		set  bool
	}{{"constant", a.Constant != nil}, {"poisson", a.Poisson != nil}, {"gamma", a.Gamma != nil}, {"weibull", a.Weibull != nil}} {
		if f.set {
			names = append(names, f.name)
		}
	}
	r := Rate{Ramp: a.Ramp, Stairs: a.Stairs, Bursts: a.Bursts, Pulses: a.Pulses, Diurnal: a.Diurnal, MMPP: a.MMPP}
	for _, s := range r.shapes() {
		names = append(names, s.name)
		shaped = true
	}
	if a.Replay != nil {
		names = append(names, "replay")
	}
	if a.Concurrency != 0 {
		names = append(names, "concurrency")
	}
	return names, shaped
}

// within judges one rate; least says that it must not be 0.
func (ps *problems) within(path string, v config.Rate, least bool) {
	switch {
	case !(v >= 0 && v <= maxRate):
		ps.add(path, fmt.Sprintf("must be at most %d/s, got %v", maxRate, v), "write such as 5/s")
	case least && v == 0:
		ps.add(path, "a rate of 0/s sends nothing", "write such as 5/s")
	}
}

// lasts judges a length of time that must not be 0.
func (ps *problems) lasts(path string, d config.Duration, what string) {
	if time.Duration(d) < time.Millisecond || time.Duration(d) > maxFor {
		ps.add(path, fmt.Sprintf("%s between 1ms and %v, got %v", what, config.Duration(maxFor), d), "write such as 30s")
	}
}

// rate judges the rate of an open loop.
func (ps *problems) rate(path string, r *Rate) {
	shapes := r.shapes()
	switch len(shapes) {
	case 0:
		ps.within(path, r.Fixed, true)
		return
	case 1:
	default:
		ps.add(path, fmt.Sprintf("has more than one shape: %s and %s", shapes[0].name, shapes[1].name), "keep one")
		return
	}
	path += "." + shapes[0].name
	switch s := shapes[0].shape.(type) {
	case *Ramp:
		ps.within(path+".from", s.From, false)
		ps.within(path+".to", s.To, s.From == 0)
	case *Stairs:
		ps.stairs(path, s)
	case *Bursts:
		ps.within(path+".rate", s.Rate, s.Base == 0)
		ps.within(path+".base", s.Base, false)
		ps.lasts(path+".on", s.On, "a burst must last")
		ps.lasts(path+".off", s.Off, "the quiet between bursts must last")
	case *Pulses:
		if s.Requests < 1 || s.Requests > maxPulse {
			ps.add(path+".requests", fmt.Sprintf("must be between 1 and %d, got %v", maxPulse, s.Requests), "write such as 20")
		}
		ps.within(path+".base", s.Base, false)
		ps.lasts(path+".every", s.Every, "the time between pulses must be")
	case *Diurnal:
		ps.diurnal(path, s)
	case *MMPP:
		ps.mmpp(path+".states", s)
	}
}

func (ps *problems) stairs(path string, st *Stairs) {
	ps.within(path+".from", st.From, false)
	ps.within(path+".to", st.To, st.From == 0)
	ps.within(path+".step", st.Step, true)
	switch {
	case st.Every <= 0:
		ps.add(path+".every", "steps must last", "write such as 30s")
	case st.Step > 0 && st.steps() > maxSteps:
		ps.add(path+".step", fmt.Sprintf("makes more than %d steps", maxSteps), "make the steps larger, or use a ramp")
	}
}

func (ps *problems) diurnal(path string, d *Diurnal) {
	period := config.Duration(d.period())
	sinusoid := d.Mean != 0 || d.Swing != 0 || d.Peak != 0
	switch {
	case len(d.Rates) > 0 && sinusoid:
		ps.add(path+".rates", "stands beside a sinusoid (mean, swing, peak)", "keep one of them")
	case len(d.Rates) > maxTable || len(d.Rates) == 1:
		ps.add(path+".rates", fmt.Sprintf("wants between 2 and %d rates, got %d", maxTable, len(d.Rates)), "write 24, one an hour")
	case len(d.Rates) > 0:
		most := config.Rate(0)
		for _, r := range d.Rates {
			ps.within(path+".rates", r, false)
			most = max(most, r)
		}
		if most == 0 {
			ps.add(path+".rates", "rates that are all 0/s send nothing", "write such as [5/s, 3/s, 8/s]")
		}
	case d.Mean == 0:
		ps.add(path, "has neither a mean nor rates", "write such as {mean: 8/s, swing: 60%} or {rates: [5/s, 3/s, 8/s]}")
	default:
		ps.within(path+".mean", d.Mean, true)
		if !(d.Swing >= 0 && d.Swing <= 1) {
			ps.add(path+".swing", fmt.Sprintf("must be between 0%% and 100%%, got %v", d.Swing), "write such as 60%")
		}
	}
	if time.Duration(period) < time.Second || time.Duration(period) > maxFor {
		ps.add(path+".period", fmt.Sprintf("must be between 1s and %v, got %v", config.Duration(maxFor), period), "write 24h, or 24m to play a day at sixty times its speed")
	}
	if d.Peak < 0 || d.Peak > period {
		ps.add(path+".peak", fmt.Sprintf("lies outside of the period of %v", period), "write such as 14h")
	}
	if d.Start < 0 || d.Start >= period {
		ps.add(path+".start", fmt.Sprintf("lies outside of the period of %v", period), "write such as 8h")
	}
}

func (ps *problems) mmpp(path string, m *MMPP) {
	if len(m.States) < 2 || len(m.States) > maxTable {
		ps.add(path, fmt.Sprintf("wants between 2 and %d states, got %d", maxTable, len(m.States)), "write such as [{rate: 2/s, dwell: 30s}, {rate: 40/s, dwell: 5s}]")
		return
	}
	most := config.Rate(0)
	for _, s := range m.States {
		ps.within(path, s.Rate, false)
		ps.lasts(path, s.Dwell, "the mean time in a state must be")
		most = max(most, s.Rate)
	}
	if most == 0 {
		ps.add(path, "states that are all of 0/s send nothing", "give one of them a rate")
	}
}

// end judges how the plan ends. Sound says that the arrivals are free of faults.
func (ps *problems) end(s *Spec, sound bool) {
	before := len(*ps)
	if s.For < 0 || time.Duration(s.For) > maxFor {
		ps.add("for", fmt.Sprintf("must be at most %v, got %v", config.Duration(maxFor), s.For), "write such as 5m")
	}
	if s.Requests < 0 || s.Requests > maxShots {
		ps.add("requests", fmt.Sprintf("must be at most %d, got %v", maxShots, s.Requests), "write such as 1000")
	}
	if !sound || len(*ps) > before {
		return
	}
	_, r := s.Arrivals.open()
	switch {
	case s.Arrivals.Replay != nil:
		return // the trace ends it
	case r != nil && r.Ramp != nil && s.For == 0:
		ps.add("for", "a ramp needs to know how long it takes", "add for: 5m")
		return
	case s.For == 0 && s.Requests == 0:
		hint := "add for: 5m or requests: 1000"
		if r != nil && r.Stairs != nil {
			hint = fmt.Sprintf("add for: %v, the length of the stairs", r.Stairs.length())
		}
		ps.add("for", "nothing ends this workload: neither for nor requests is given", hint)
		return
	case r == nil:
		return
	}
	if ps.pieces(s, r); len(*ps) > before {
		return
	}
	switch limit := s.expected(r); {
	case s.For > 0 && limit < 0.5:
		ps.add("for", fmt.Sprintf("%v at this rate is no request", s.For), "make it longer, or raise the rate")
	case s.For > 0 && s.Requests == 0 && limit > maxShots:
		ps.add("for", fmt.Sprintf("plans %.3g requests, more than %d", limit, maxShots), "make it shorter, or add requests")
	case s.For == 0 && r.Stairs != nil && r.Stairs.To == 0:
		ps.add("for", "stairs that end at 0/s need an end", fmt.Sprintf("add for: %v", r.Stairs.length()))
	}
}

// expected returns the number of requests that the rate makes in the time of the
// spec; +Inf if it has no end.
func (s *Spec) expected(r *Rate) float64 {
	if r.stateful() {
		return r.shape().mean(s.end()) * (s.end() / 1e9)
	}
	return newProfile(*r, s.end(), Stream{}).total
}

// pieces judges how often the rate changes.
func (ps *problems) pieces(s *Spec, r *Rate) {
	length := s.end()
	if s.Requests > 0 {
		if mean := r.shape().mean(math.Inf(1)); mean > 0 {
			length = min(length, float64(s.Requests)/mean*1e9)
		}
	}
	if n := length / r.shape().pace(); n > maxPieces {
		ps.add("arrivals", fmt.Sprintf("the rate changes %.3g times, more than %d", n, maxPieces), "make the workload shorter, or its states, bursts or periods longer")
	}
}

// end returns the end of the schedule in nanoseconds, +Inf if there is none.
func (s *Spec) end() float64 {
	if s.For > 0 {
		return float64(s.For)
	}
	return math.Inf(1)
}

// prompts judges what is asked.
func (ps *problems) prompts(p *Prompts) {
	switch synthetic := p.Synthetic.Set(); {
	case synthetic && p.File != "":
		ps.add("prompts", "has both synthetic text and a file", "keep one; mix them as two workloads")
	case !synthetic && p.File == "":
		hint := "write such as {synthetic: 512} or {file: sets/support.jsonl}"
		if p.Format != "" || p.Order != "" {
			hint = "add file: sets/support.jsonl"
		}
		ps.add("prompts", "says nothing about what is asked", hint)
	case synthetic && (p.Format != "" || p.Order != ""):
		ps.add("prompts", "format and order go with a file", "remove them")
	}
	if p.Format != "" && !slices.Contains(setFormats, p.Format) && !slices.Contains(traceFormats, p.Format) {
		ps.add("prompts.format", fmt.Sprintf("wants %s or %s, got %q", strings.Join(setFormats, ", "), strings.Join(traceFormats, ", "), p.Format), "leave it out to have it found out")
	}
	if p.Order != "" && p.Order != "shuffled" && p.Order != "sequential" {
		ps.add("prompts.order", fmt.Sprintf("wants shuffled or sequential, got %q", p.Order), "leave it out for shuffled")
	}
	if what, hint := p.Synthetic.problem(); what != "" {
		ps.add("prompts.synthetic", what, hint)
	}
}

// sessions judges the dialogues.
func (ps *problems) sessions(full *Spec) {
	s := full.Sessions
	if s == nil {
		return
	}
	switch {
	case full.Arrivals.Replay != nil:
		ps.add("sessions", "a replay has the requests of its trace, which are no dialogues", "remove sessions, or write arrivals such as {poisson: 2/s}")
	case slices.Contains(traceFormats, full.Prompts.Format):
		ps.add("sessions", "the rows of a trace are no dialogues", "remove sessions, or ask synthetic prompts")
	case !s.Turns.Set() && full.Prompts.File == "":
		ps.add("sessions.turns", "says nothing about how long dialogues of synthetic prompts are", "write turns: 4, or {uniform: {min: 1, max: 8}}")
	}
	if what, hint := s.Turns.problem(); what != "" {
		ps.add("sessions.turns", what, hint)
	} else if s.Turns.Set() && s.Turns.most() > maxTurns {
		ps.add("sessions.turns", fmt.Sprintf("a session has at most %d turns, and these may be %v", maxTurns, s.Turns.most()), "give the distribution a max, such as 20")
	}
	if what, hint := s.Think.problem(); what != "" {
		ps.add("sessions.think", what, hint)
	}
	if s.Context < 0 || s.Context > MaxTokens {
		ps.add("sessions.context", fmt.Sprintf("must be at most %d, got %v", MaxTokens, s.Context), "write such as 32k")
	}
}

// maxJitter bounds how long a request may be on its way.
const maxJitter = time.Minute

// way judges how requests travel: their delay and their priority.
func (ps *problems) way(s *Spec) {
	if what, hint := s.Jitter.problem(); what != "" {
		ps.add("jitter", what, hint)
	} else if s.Jitter.Set() && time.Duration(s.Jitter.most()) > maxJitter {
		ps.add("jitter", fmt.Sprintf("a request may be on its way for %v at most, and this may be %v", maxJitter, s.Jitter.most()), "give the distribution a max, such as 2s")
	}
	if s.Priority < -maxPriority || s.Priority > maxPriority {
		ps.add("priority", fmt.Sprintf("must be between -%d and %d, got %d", maxPriority, maxPriority, s.Priority), "lower numbers are served first")
	}
	if _, own := s.Labels[priorityLabel]; own && s.Priority != 0 {
		ps.add("labels", "the label priority is set by the workload's priority", "remove it")
	}
}

// replayable judges whether there is a trace to replay.
func (ps *problems) replayable(s *Spec) {
	p := &s.Prompts
	switch {
	case s.Arrivals.Replay == nil:
	case p.File == "" || slices.Contains(setFormats, p.Format):
		ps.add("arrivals.replay", "needs a trace to replay", "add prompts: {file: traces/conv.csv}; formats are "+strings.Join(traceFormats, ", "))
	case p.Order == "shuffled":
		ps.add("prompts.order", "a replay keeps the order of its trace", "remove it")
	}
}

// setFormats are the formats of Prompts.Format that hold texts.
var setFormats = []string{"assay", "sharegpt", "openai", "qa", "ifeval"}

// lengths judges how long answers and prefixes are.
func (ps *problems) lengths(s *Spec) {
	if what, hint := s.Output.problem(); what != "" {
		ps.add("output", what, hint)
	}
	if s.IgnoreEOS && !s.Output.Set() && s.Prompts.File == "" {
		ps.add("ignore_eos", "needs a limit of output tokens, or answers go on to the end of the context", "add output: 128")
	}
	switch c := s.Correlation; {
	case c == 0:
	case !(c >= -1 && c <= 1):
		ps.add("correlation", fmt.Sprintf("must be between -1 and 1, got %v", c), "0.07 is typical of dialogues")
	case !s.Prompts.Synthetic.Set() || !s.Output.Set():
		ps.add("correlation", "is between lengths of synthetic prompts and outputs, of which one is missing", "remove it; a trace brings its own")
	}
	switch f := s.Prefix; {
	case f.Tokens < 0 || f.Tokens > MaxTokens:
		ps.add("prefix.tokens", fmt.Sprintf("must be at most %d, got %v", MaxTokens, f.Tokens), "write such as 512")
	case f.Groups < 0 || f.Groups > maxGroups:
		ps.add("prefix.groups", fmt.Sprintf("must be at most %d, got %v", maxGroups, f.Groups), "write such as 8")
	case !(f.Share >= 0 && f.Share <= 1):
		ps.add("prefix.share", fmt.Sprintf("must be between 0%% and 100%%, got %v", f.Share), "write such as 40%")
	case f.Share > 0 && f.Tokens > 0:
		ps.add("prefix.share", "stands beside tokens, which says the same", "keep one of them")
	case f.Share > 0 && s.Prompts.File != "":
		ps.add("prefix.share", "is a share of synthetic prompts, and these come from a file", "write tokens: 512")
	case !(f.Hit >= 0 && f.Hit < 1):
		ps.add("prefix.hit", fmt.Sprintf("must be at least 0%% and less than 100%%, got %v", f.Hit), "write such as 60%")
	case f.Hit > 0 && (f.Tokens > 0 || f.Share > 0):
		ps.add("prefix.hit", "stands beside tokens or share, which follows from it", "keep one of them")
	case f.Hit > 0 && s.Prompts.File != "":
		ps.add("prefix.hit", "is of synthetic prompts, and these come from a file", "write tokens: 512")
	case f.Hit > 0 && s.Sessions != nil:
		ps.add("prefix.hit", "leaves out what a session finds of its own dialogue", "write tokens: 512, which is shared by the sessions of a group")
	case f.Reuse < 0 || f.Reuse > maxShots:
		ps.add("prefix.reuse", fmt.Sprintf("must be at most %d, got %v", maxShots, f.Reuse), "write such as 8")
	case (f.Groups > 0 || f.Reuse > 0) && f.Tokens == 0 && f.Share == 0 && f.Hit == 0:
		ps.add("prefix.tokens", "a shared prefix of no tokens is none", "write such as 512, or remove prefix")
	}
}

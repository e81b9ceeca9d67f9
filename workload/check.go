package workload

import (
	"errors"
	"fmt"
	"math"
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
	ps.arrivals(&s.Arrivals)
	sound := len(ps) == 0
	ps.end(s, sound)
	ps.prompts(&s.Prompts)
	ps.lengths(s)
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
	var forms []string
	for _, f := range []struct {
		name string
		set  bool
	}{{"constant", a.Constant != nil}, {"poisson", a.Poisson != nil}, {"ramp", a.Ramp != nil}, {"stairs", a.Stairs != nil}, {"concurrency", a.Concurrency != 0}} {
		if f.set {
			forms = append(forms, f.name)
		}
	}
	shaped := a.Ramp != nil || a.Stairs != nil
	switch {
	case a.Process != "" && !shaped:
		ps.add("arrivals.process", "goes with ramp or stairs only", "remove it, or add a ramp")
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

// rate judges the rate of an open loop.
func (ps *problems) rate(path string, r *Rate) {
	within := func(path string, v config.Rate, least bool) {
		switch {
		case !(v >= 0 && v <= maxRate):
			ps.add(path, fmt.Sprintf("must be at most %d/s, got %v", maxRate, v), "write such as 5/s")
		case least && v == 0:
			ps.add(path, "a rate of 0/s sends nothing", "write such as 5/s")
		}
	}
	switch {
	case r.Ramp != nil && r.Stairs != nil:
		ps.add(path, "has a ramp and stairs", "keep one")
	case r.Ramp != nil:
		within(path+".ramp.from", r.Ramp.From, false)
		within(path+".ramp.to", r.Ramp.To, r.Ramp.From == 0)
	case r.Stairs != nil:
		st := r.Stairs
		path += ".stairs"
		within(path+".from", st.From, false)
		within(path+".to", st.To, st.From == 0)
		within(path+".step", st.Step, true)
		switch {
		case st.Every <= 0:
			ps.add(path+".every", "steps must last", "write such as 30s")
		case st.Step > 0 && st.steps() > maxSteps:
			ps.add(path+".step", fmt.Sprintf("makes more than %d steps", maxSteps), "make the steps larger, or use a ramp")
		}
	default:
		within(path, r.Fixed, true)
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
	expected := newProfile(*r, s.end()).total
	switch limit := expected; {
	case s.For > 0 && limit < 0.5:
		ps.add("for", fmt.Sprintf("%v at this rate is no request", s.For), "make it longer, or raise the rate")
	case s.For > 0 && s.Requests == 0 && limit > maxShots:
		ps.add("for", fmt.Sprintf("plans %.3g requests, more than %d", expected, maxShots), "make it shorter, or add requests")
	case s.For == 0 && r.Stairs != nil && r.Stairs.To == 0:
		ps.add("for", "stairs that end at 0/s need an end", fmt.Sprintf("add for: %v", r.Stairs.length()))
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
	if p.Format != "" && p.Format != "assay" && p.Format != "sharegpt" && p.Format != "openai" {
		ps.add("prompts.format", fmt.Sprintf("wants assay, sharegpt or openai, got %q", p.Format), "leave it out to have it found out")
	}
	if p.Order != "" && p.Order != "shuffled" && p.Order != "sequential" {
		ps.add("prompts.order", fmt.Sprintf("wants shuffled or sequential, got %q", p.Order), "leave it out for shuffled")
	}
	if what, hint := p.Synthetic.problem(); what != "" {
		ps.add("prompts.synthetic", what, hint)
	}
}

// lengths judges how long answers and prefixes are.
func (ps *problems) lengths(s *Spec) {
	if what, hint := s.Output.problem(); what != "" {
		ps.add("output", what, hint)
	}
	if s.IgnoreEOS && !s.Output.Set() && s.Prompts.File == "" {
		ps.add("ignore_eos", "needs a limit of output tokens, or answers go on to the end of the context", "add output: 128")
	}
	switch f := s.Prefix; {
	case f.Tokens < 0 || f.Tokens > MaxTokens:
		ps.add("prefix.tokens", fmt.Sprintf("must be at most %d, got %v", MaxTokens, f.Tokens), "write such as 512")
	case f.Groups < 0 || f.Groups > maxGroups:
		ps.add("prefix.groups", fmt.Sprintf("must be at most %d, got %v", maxGroups, f.Groups), "write such as 8")
	case f.Groups > 0 && f.Tokens == 0:
		ps.add("prefix.tokens", "a shared prefix of no tokens is none", "write such as 512, or remove prefix")
	}
}

package contract

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// Phase is where a rule stands. The zero Phase is quiet.
type Phase string

// The phases of a rule.
const (
	Quiet      Phase = ""           // nothing is done
	Pending    Phase = "pending"    // violated, but not for long enough
	Acting     Phase = "acting"     // what the rule does is in force
	Recovering Phase = "recovering" // still in force; the recovery is met, but not for long enough
	Latched    Phase = "latched"    // in force until a person releases it
)

// State is all that the rules of one contract remember between two looks. It is a
// value: Next changes no State, it returns a new one. The zero State has seen
// nothing. Its JSON form has a version, and reads back to an equal State.
type State struct {
	Version int                  `json:"version"` // of this form: 2
	At      time.Time            `json:"at"`      // of the last look
	Rules   map[string]RuleState `json:"rules"`   // by clause, workload and label; quiet ones without a past are left out
}

// UnmarshalJSON reads a state of this version, and refuses any other.
func (s *State) UnmarshalJSON(b []byte) error {
	type plain State
	var p plain
	if err := json.Unmarshal(b, &p); err != nil {
		return fmt.Errorf("reading the state of live rules: %w", err)
	}
	if p.Version < 1 || p.Version > stateVersion {
		return fmt.Errorf("reading the state of live rules: this program reads versions 1 to %d, not %d", stateVersion, p.Version)
	}
	*s = State(p)
	s.Version = stateVersion
	return nil
}

// stateVersion is the version that is written. Version 1 had no proofs: read back,
// they begin anew.
const stateVersion = 2

// RuleState is what one rule remembers.
type RuleState struct {
	Phase   Phase       `json:"phase,omitempty"`
	Since   time.Time   `json:"since,omitzero"`   // of the phase, or since its clock was set back for want of data
	Blind   bool        `json:"blind,omitempty"`  // there was too little evidence at the last look
	Cleared time.Time   `json:"cleared,omitzero"` // when it last recovered
	Acted   []time.Time `json:"acted,omitempty"`  // when it began to act, within the time of its latch
	// Proofs are the tests of its comparisons with the baseline, by clause, workload and
	// label. They begin anew when the rule begins to act, and when it has recovered.
	Proofs map[string]Proof `json:"proofs,omitempty"`
}

func (r RuleState) isZero() bool {
	return r.Phase == Quiet && !r.Blind && r.Cleared.IsZero() && len(r.Acted) == 0 && len(r.Proofs) == 0
}

// Decision is one change of phase of one rule: what is to be done, or taken back,
// and why.
type Decision struct {
	At       time.Time `json:"at"`
	Rule     string    `json:"rule"` // key into State.Rules
	Clause   string    `json:"clause"`
	Scope    string    `json:"scope,omitempty"` // "chat, tenant=gold"
	Severity string    `json:"severity,omitempty"`
	From     Phase     `json:"from,omitempty"`
	To       Phase     `json:"to,omitempty"`
	Do       []Action  `json:"do,omitempty"`   // comes into force now
	Undo     []Action  `json:"undo,omitempty"` // is taken back now
	Grade    Grade     `json:"grade"`          // of the clause, on the evidence of this look
	Blind    bool      `json:"blind,omitempty"`
	Reason   string    `json:"reason"`
}

// Next looks at live traffic once: it judges each clause with live: on what was
// seen up to at, and says which rules change their phase. It is a pure function:
// the same state, evidence and instant give the same answer, so that a recorded
// log replays to the same decisions. Decisions are in order of severity, the
// gravest first, then of the contract. A look at an instant that is not after the
// state's own decides nothing.
func (c *Contract) Next(s State, seen Observed, at time.Time) (State, []Decision) {
	return c.next(s, seen, at, func(string, look) {})
}

// next is Next, and hands over what each rule's clause said.
func (c *Contract) next(s State, seen Observed, at time.Time, said func(clause string, l look)) (State, []Decision) {
	next := State{Version: stateVersion, At: kept(at), Rules: map[string]RuleState{}}
	if c == nil || !next.At.After(s.At) {
		return s, nil
	}
	w := watcher{contract: c, seen: seen, at: next.At, confidence: DefaultConfidence, said: said}
	if c.Confidence != 0 {
		w.confidence = float64(c.Confidence)
	}
	var out []Decision
	for _, clause := range c.named() {
		if clause.Live.IsZero() {
			continue
		}
		for _, place := range w.places(clause, s) {
			key := place.key(clause.ID)
			rule, decision := w.step(clause, place, s.Rules[key])
			if decision != nil {
				decision.Rule = key
				out = append(out, *decision)
			}
			if !rule.isZero() {
				next.Rules[key] = rule
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Decision) int {
		return cmp.Compare(slices.Index(severities, b.Severity), slices.Index(severities, a.Severity))
	})
	return next, out
}

// kept is an instant as it reads back from a stored state.
func kept(at time.Time) time.Time { return at.UTC().Round(0) }

// Release takes a latched rule, or one that only a person takes back, out of
// force. The decision is nil if the rule does nothing.
func (c *Contract) Release(s State, rule string, at time.Time) (State, *Decision) {
	r, ok := s.Rules[rule]
	if !ok || r.Phase == Quiet || r.Phase == Pending {
		return s, nil
	}
	s.Rules = maps.Clone(s.Rules)
	d := &Decision{At: kept(at), Rule: rule, From: r.Phase, Reason: "released by hand"}
	for _, clause := range c.named() {
		if id, scope, _ := strings.Cut(rule, "|"); clause.ID == id {
			d.Clause, d.Scope, d.Severity, d.Undo = id, scope, string(clause.Severity), clause.Live.Do
		}
	}
	s.Rules[rule] = RuleState{Cleared: d.At}
	return s, d
}

// InForce lists the actions that are in force, the gravest first, each once.
func (c *Contract) InForce(s State) []Action {
	var out []Action
	for _, clause := range c.named() {
		for key, r := range s.Rules {
			id, _, _ := strings.Cut(key, "|")
			if id != clause.ID || r.Phase == Quiet || r.Phase == Pending {
				continue
			}
			for _, a := range clause.Live.Do {
				if !slices.Contains(out, a) {
					out = append(out, a)
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Action) int { return cmp.Or(b.rank()-a.rank(), cmp.Compare(a, b)) })
	return out
}

// watcher is one look.
type watcher struct {
	contract   *Contract
	seen       Observed
	at         time.Time
	confidence float64
	rule       RuleState        // the one that is looked at, as it was
	proofs     map[string]Proof // as they are now
	judge      string           // how the rule is judged
	said       func(clause string, l look)
}

// place is where one rule looks.
type place struct {
	workload, label, value string
	all                    bool // at every place of each comparison
}

func (p place) scope() string {
	where := map[string]string{}
	if p.label != "" {
		where[p.label] = p.value
	}
	return scopeText(p.workload, where)
}

func (p place) key(id string) string {
	if s := p.scope(); s != "" {
		return id + "|" + s
	}
	return id
}

// mostPlaces bounds the rules that one clause becomes: labels may hold what users
// send.
const mostPlaces = 1000

// places lists the workloads, and values of the label of by, that the clause is
// watched on: different ones are never mixed.
func (w *watcher) places(c Clause, s State) []place {
	if c.turned() {
		return []place{{all: true}}
	}
	workloads := []string(c.On)
	if len(workloads) == 0 {
		workloads = w.seen.Labels("", w.at)
	}
	if len(workloads) == 0 {
		workloads = []string{""}
	}
	var out []place
	for _, name := range workloads {
		if c.By == "" {
			out = append(out, place{workload: name})
			continue
		}
		for _, v := range w.seen.Labels(c.By, w.at) {
			if len(out) < mostPlaces {
				out = append(out, place{workload: name, label: c.By, value: v})
			}
		}
	}
	// What acts somewhere is looked at until it has recovered.
	for _, key := range slices.Sorted(maps.Keys(s.Rules)) {
		known := func(p place) bool { return p.key(c.ID) == key }
		past := s.Rules[key]
		past.Proofs = nil
		if id, scope, _ := strings.Cut(key, "|"); id == c.ID && !past.isZero() && !slices.ContainsFunc(out, known) {
			p := place{}
			for part := range strings.SplitSeq(scope, ", ") {
				if k, v, is := strings.Cut(part, "="); is {
					p.label, p.value = k, v
				} else {
					p.workload = part
				}
			}
			out = append(out, p)
		}
	}
	return out
}

// look is what one clause says at one instant.
type look struct {
	grade  Grade
	blind  bool // inconclusive for want of evidence
	reason string
}

// step moves one rule.
func (w *watcher) step(c Clause, p place, r RuleState) (RuleState, *Decision) {
	live := c.Live
	t := terms{confidence: w.confidence, wrongFail: 1 - w.confidence}.with(c)
	w.rule, w.proofs, w.judge = r, map[string]Proof{}, live.Judge
	l := w.clause(c, t, p, live.Judge == "point")
	r.Proofs = w.proofs
	w.said(c.ID, l)
	violated := l.grade == Fail || l.blind && live.NoData == "act"
	was := r.Phase
	r.Blind = l.blind
	switch r.Phase {
	case Quiet, Pending:
		w.rise(&r, live, l, violated)
	case Acting, Recovering:
		w.fall(&r, c, t, p, l, violated)
	}
	if r.Phase == was {
		return r, nil
	}
	if r.Phase == Acting && (was != Recovering || violated) {
		w.remember(&r, live)
	}
	if inForce(r.Phase) != inForce(was) {
		for id := range r.Proofs {
			r.Proofs[id] = Proof{From: w.at}
		}
	}
	d := &Decision{
		At: w.at, Clause: c.ID, Scope: p.scope(), Severity: string(c.Severity), From: was, To: r.Phase,
		Grade: l.grade, Blind: l.blind, Reason: l.reason,
	}
	switch {
	case inForce(r.Phase) && !inForce(was):
		d.Do = live.Do
	case inForce(was) && !inForce(r.Phase):
		d.Undo = live.Do
	}
	return r, d
}

// inForce reports whether what the rule does is in force.
func inForce(p Phase) bool { return p == Acting || p == Recovering || p == Latched }

// rise moves a rule that does nothing yet.
func (w *watcher) rise(r *RuleState, live Live, l look, violated bool) {
	switch {
	case violated && r.Phase == Quiet && !r.Cleared.IsZero() && w.at.Sub(r.Cleared) < time.Duration(live.Cooldown):
	case violated && live.For == 0, violated && r.Phase == Pending && w.at.Sub(r.Since) >= time.Duration(live.For):
		r.Phase, r.Since = Acting, w.at
	case violated && r.Phase == Quiet:
		r.Phase, r.Since = Pending, w.at
	case violated || r.Phase == Quiet:
	case l.blind && live.NoData != "quiet":
		r.Since = w.at // held: time without evidence does not count
	default:
		r.Phase, r.Since = Quiet, time.Time{}
	}
}

// fall moves a rule whose action is in force. Missing evidence recovers nothing.
func (w *watcher) fall(r *RuleState, c Clause, t terms, p place, l look, violated bool) {
	back := c.Live.Recover
	met := !violated && !l.blind && back.By != "hand" && w.recovered(c, t, p, l)
	switch {
	case met && r.Phase == Acting && back.For > 0:
		r.Phase, r.Since = Recovering, w.at
	case met && (r.Phase == Acting || w.at.Sub(r.Since) >= time.Duration(back.For)):
		r.Phase, r.Since, r.Cleared = Quiet, time.Time{}, w.at
	case !met && r.Phase == Recovering:
		r.Phase, r.Since = Acting, w.at
	}
}

// recovered reports whether the recovery is met: its own demand by the point
// estimate, on no less evidence, and the clause itself as it is judged.
func (w *watcher) recovered(c Clause, t terms, p place, l look) bool {
	if c.Live.Judge != "point" && l.grade != Pass {
		return false
	}
	leave := c.leave()
	return w.clause(leave, t.with(leave), p, true).grade == Pass
}

// remember notes that the rule acts, and latches it if that is too often.
func (w *watcher) remember(r *RuleState, live Live) {
	latch := live.Latch
	if latch.IsZero() {
		return
	}
	r.Acted = slices.DeleteFunc(slices.Clone(r.Acted), func(t time.Time) bool { return w.at.Sub(t) > latch.Within })
	if r.Acted = append(r.Acted, w.at); len(r.Acted) >= latch.Times {
		r.Phase = Latched
	}
}

// clause judges a clause on what was seen.
func (w *watcher) clause(c Clause, t terms, p place, point bool) look {
	kind, members, k := c.group()
	if kind == KindJoint {
		return look{blind: true, reason: "a joint clause is judged over a whole run"}
	}
	if len(members) == 0 {
		return w.leaf(c, t, p, point)
	}
	t = t.share(len(members), k)
	var looks []look
	for _, m := range demanded(kind, members) {
		looks = append(looks, w.clause(m, t.with(m), p, point))
	}
	return together(looks, k)
}

// each judges one comparison of a rule with a not, which is about all places
// together, on each of them: it must hold on all, turned round on one.
func (w *watcher) each(c Clause, t terms, point bool) look {
	places := w.places(Clause{ID: c.ID, On: t.on, By: t.by}, State{})
	if t.by != "" { // not each workload has each value
		places = slices.DeleteFunc(places, func(p place) bool { return !w.served(p, t) })
	}
	least := len(places)
	if c.some {
		least = min(1, least)
	}
	t = t.share(len(places), least)
	var looks []look
	for _, p := range places {
		l := w.leaf(c, t, p, point)
		if len(places) > 1 {
			l.reason = "on " + p.scope() + " " + l.reason
		}
		looks = append(looks, l)
	}
	return together(looks, least)
}

// served reports whether the candidate was sent anything there within the window.
func (w *watcher) served(p place, t terms) bool {
	x := sight{watcher: w, terms: t, place: p, metric: record.Metric{Name: "offered"}}
	return x.seen.See(x.ask("candidate", w.at.Add(-cmp.Or(t.window.For, maxWindow)), w.at)).N > 0
}

// together combines what members say of which so many must pass.
func together(looks []look, least int) look {
	var grades []Grade
	for _, l := range looks {
		grades = append(grades, l.grade)
	}
	out := look{grade: atLeast(least, grades...)}
	var said []string
	for _, l := range looks {
		out.blind = out.blind || l.blind && out.grade == Inconclusive
		if l.grade == out.grade {
			said = append(said, l.reason)
		}
	}
	if out.reason = strings.Join(said, "; "); len(looks) == 0 {
		out.blind, out.reason = true, "no data: no request is in scope"
	}
	return out
}

// leaf judges one comparison on what was seen.
func (w *watcher) leaf(c Clause, t terms, p place, point bool) look {
	if p.all {
		return w.each(c, t, point)
	}
	need := c.Need
	m, unit, err := need.Quantity.metric()
	if err != nil || need.IsZero() || !decisive(t.confidence) {
		return look{blind: true, reason: fmt.Sprintf("%s cannot be judged", need)}
	}
	x := sight{watcher: w, need: need, metric: m, unit: unit, terms: t, place: p}
	if !point && byEvidence(need, w.judge) {
		key := p.key(c.ID)
		proof, l := x.prove(w.rule.Proofs[key])
		w.proofs[key] = proof
		return l
	}
	if why := x.fenced(); why != "" {
		return look{blind: true, reason: why}
	}
	cand := x.see("candidate", w.at)
	if why := x.gap(cand, "the candidate"); why != "" {
		return look{blind: true, reason: why}
	}
	est, limit, why := x.against(cand)
	if why != "" {
		return look{blind: true, reason: why}
	}
	return x.grade(est, limit, point)
}

// sight is one comparison on its way to a grade.
type sight struct {
	*watcher
	need    Need
	metric  record.Metric
	unit    record.Unit
	terms   terms
	place   place
	change  change
	watched float64 // seconds of the window that were watched
	// Of an amount the requests of the window, and how many of them failed.
	requests, failed int64
	length           time.Duration
}

// see asks for the series of one variant in the window that ends at to, and
// estimates the quantity.
func (x *sight) see(variant string, to time.Time) reading {
	window := x.terms.window
	x.length = window.For
	if x.length == 0 {
		x.length = maxWindow
	}
	return x.stretch(variant, to.Add(-x.length), to, window.Requests)
}

func (x *sight) stretch(variant string, from, to time.Time, last int64) reading {
	a := x.ask(variant, from, to)
	a.Last = last
	if x.unit == record.Nanoseconds && x.need.Compare.upper() && !x.need.Limit.relative() {
		a.Beyond = x.need.Limit.Value
	}
	s := x.seen.See(a)
	if variant == "candidate" && to.Equal(x.at) {
		x.watched, x.requests, x.failed = s.Seconds, s.N, s.Over
	}
	r := s.measure(x.need.Quantity, x.metric, twoSided(x.terms.confidence), x.need.Compare.upper())
	if r.est.N == 0 || r.gap != "" {
		r.est.N = int(s.N)
	}
	return r
}

// ask is the question for what one variant did in a stretch.
func (x *sight) ask(variant string, from, to time.Time) Ask {
	a := Ask{Metric: x.metric.Name, Variant: variant, Workload: x.place.workload, Where: x.terms.where, From: from, To: to, At: x.at}
	if x.place.label != "" {
		a.Where = maps.Clone(a.Where)
		if a.Where == nil {
			a.Where = map[string]string{}
		}
		a.Where[x.place.label] = x.place.value
	}
	return a
}

// nothing says that there is no data at all.
func (x *sight) nothing(who string) string {
	why := fmt.Sprintf("no data: nothing tells %s of %s", x.need.Quantity, who)
	if d, ok := declaredMetric(x.metric.Name); ok {
		why += ", which needs " + d.needs
	}
	return why
}

// gap says why the reading is too little evidence; "" if it is enough.
func (x *sight) gap(r reading, who string) string {
	least := max(x.terms.min, x.terms.window.Requests)
	if least == 0 && x.need.Quantity.fact() && x.need.Quantity.Stat != "count" {
		least = 1
	}
	switch {
	case r.est.N == 0:
		return x.nothing(who)
	case int64(r.est.N) < least && x.need.Quantity.Stat != "rate":
		return fmt.Sprintf("no data: %s rests on %s of %s; the clause asks for %s", x.need.Quantity, grouped(fmt.Sprint(r.est.N)), who, grouped(fmt.Sprint(least)))
	case r.gap != "":
		return fmt.Sprintf("no data: %s: %s", x.need.Quantity, r.gap)
	case !r.est.Defined():
		return fmt.Sprintf("no data: %s has no value", x.need.Quantity)
	}
	return ""
}

// against returns what is held against the limit: the quantity, or its change
// from the yardstick.
func (x *sight) against(cand reading) (est stat.Estimate, limit float64, why string) {
	l := x.need.Limit
	if !l.relative() {
		return cand.est, l.Value, ""
	}
	var base reading
	switch {
	case l.Baseline:
		base = x.see(baselineName, x.at)
		why = x.gap(base, "the baseline")
	case l.Previous > 0:
		until := x.at.Add(-x.length)
		base = x.stretch("candidate", until.Add(-l.Previous), until, 0)
		why = x.gap(base, "the stretch before")
	default:
		v, ok := x.contract.Reference.get(x.need.Quantity, x.place.workload)
		if !ok {
			return est, 0, fmt.Sprintf("no data: the contract registers no reference for %s", x.need.Quantity)
		}
		base.est = registeredEstimate(v.Value, twoSided(x.terms.confidence))
	}
	if why != "" {
		return est, 0, why
	}
	var kind ChangeKind
	kind, limit = changeOf(l, x.unit)
	x.change = change{kind: kind, unit: x.unit, from: l.yardstick()}
	if kind == ChangeRatio {
		est = stat.Ratio(cand.est, base.est)
	} else {
		est = stat.Difference(cand.est, base.est)
	}
	if !est.Defined() {
		return est, 0, fmt.Sprintf("no data: there is no comparison of %s", x.need.Quantity)
	}
	return est, limit, ""
}

// thin says why a pass of what was seen proves nothing; "" if it does.
func (x *sight) thin(est stat.Estimate) string {
	_, other := declaredMetric(x.metric.Name)
	switch {
	case x.need.Quantity.Stat == "count" && !other && max(x.terms.min, x.terms.window.Requests) == 0 && est.N < leastCount:
		return fmt.Sprintf("a count over fewer than %d requests proves nothing", leastCount)
	case x.metric.Amount != nil && spoilt(x.metric) && float64(x.failed) > maxFailed*float64(x.requests):
		return fmt.Sprintf("%d of %s failed, and what was sent for them is no service", x.failed, count(x.requests, "request"))
	}
	return ""
}

// grade holds the estimate against the limit.
func (x *sight) grade(est stat.Estimate, limit float64, point bool) look {
	cmp := x.need.Compare
	var l look
	switch {
	case point && cmp.holds(est.Value, limit):
		l.grade = Pass
	case point:
		l.grade = Fail
	default:
		l.grade = decide(cmp, est, limit)
		l.blind = l.grade == Inconclusive && math.IsInf(est.Lo, -1) && math.IsInf(est.Hi, 1)
	}
	if w := x.terms.window.For; l.grade == Pass && x.need.Quantity.Stat == "count" && cmp.upper() && x.watched < 0.99*w.Seconds() {
		l.grade = Inconclusive
		l.reason = fmt.Sprintf("only %s of the window were watched; ", config.Duration(time.Duration(x.watched)*time.Second))
	}
	if why := x.thin(est); l.grade == Pass && why != "" {
		l.grade, l.blind = Inconclusive, true
		l.reason = why + "; "
	}
	what, at := subject(x.need.Quantity, x.metric), ""
	if x.need.Limit.relative() {
		at = fmt.Sprintf("%s is %s (%s)", what, x.change.place(est.Value), x.change.margin(cmp, limit))
	} else {
		v, lim := pair(x.unit, est.Value, limit)
		if x.unit == record.Requests {
			v, lim = strings.TrimSuffix(v, " requests"), strings.TrimSuffix(lim, " requests")
		}
		at = fmt.Sprintf("%s is %s (limit %s)", what, v, lim)
	}
	l.reason += fmt.Sprintf("%s, of %s", at, grouped(fmt.Sprint(est.N)))
	if !point && !x.need.Quantity.fact() {
		l.reason += ", at " + percentage(x.terms.confidence) + " confidence"
	}
	return l
}

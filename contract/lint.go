package contract

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
)

// The codes of what Lint finds, for programs. No longer run helps against
// CodeUnmeasured, CodeNoBaseline and CodeNoStream.
const (
	CodeEmpty      = "empty"       // nothing is demanded
	CodeConfidence = "confidence"  // a confidence that decides nothing
	CodeTwice      = "twice"       // an id that is taken
	CodeStranger   = "stranger"    // a workload or label that the run does not have
	CodeUnmeasured = "unmeasured"  // a metric that nothing measures
	CodeNoBaseline = "no-baseline" // a limit against a baseline that the run does not have
	CodeNoStream   = "no-stream"   // a metric of streams, and answers that are not streamed
	CodeNoTokens   = "no-tokens"   // a metric of tokens, and nobody counts them
	CodeFew        = "few"         // too few requests, or too short a run, for a decision
	CodeSettled    = "settled"     // a limit that everybody meets, or nobody
	CodeDirection  = "direction"   // a limit on the side on which more is better
	CodeRedundant  = "redundant"   // a member that never changes the grade of its group
	CodeReference  = "reference"   // a limit against a value that is not registered
	CodeLive       = "live"        // a live rule that contradicts itself, or stands where none may
	CodeWindow     = "window"      // no window, or one shorter than what it must show
	CodeHysteresis = "hysteresis"  // a recovery that is met where the clause is not
	CodeMany       = "many"        // more clauses than anybody reads
)

// Planned is what a run will send on one workload: enough to tell which
// clauses it cannot decide.
type Planned struct {
	Workload  string
	Requests  int64             // measured requests of each variant; not above 0: unknown
	For       time.Duration     // measured time of each variant; 0: unknown
	Labels    map[string]string // on every request
	Variants  []string          // names; "baseline" is the one that limits refer to
	Check     bool              // the workload is a check
	Values    []record.Metric   // that the check writes
	Streaming bool              // answers are streamed
	Usage     bool              // token counts will be known, from the server or from events
	Looks     int               // how often a run that may stop early is looked at; 0: once, at the end
}

// baselineName is the variant that limits refer to.
const baselineName = "baseline"

// Lint finds what makes the contract undecidable, or decidable in a way that
// nobody wants, before anything is sent. Faults stand in the order of the
// clauses; they carry positions if the contract was decoded from a file. With
// no plan, only what holds for every run is checked.
func Lint(c *Contract, planned []Planned) []config.Fault {
	l := linter{planned: planned}
	if c == nil || len(c.Clauses) == 0 {
		l.report(CodeEmpty, nil, "clauses", 0, "nothing is demanded, so nothing can pass", "write a clause such as need: p99(ttft) <= 800ms")
		if c != nil && c.node != nil {
			f := c.node.Mark(l.faults[0].What, l.faults[0].Hint)
			f.Code = CodeEmpty
			l.faults[0] = f
		}
		return l.faults
	}
	if k := c.size(); k > mostClauses {
		l.report(CodeMany, nil, "clauses", 0, tooMany(k), "split the contract")
		return l.faults
	}
	t := terms{confidence: DefaultConfidence}
	if c.Confidence != 0 {
		t.confidence = float64(c.Confidence)
	}
	if !confident(t.confidence) {
		l.report(CodeConfidence, nil, "confidence", 0, fmt.Sprintf("a confidence of %s decides nothing", percentage(t.confidence)), "write confidence: 95%")
		return l.faults
	}
	clauses := c.named()
	l.bounds = boundsOf(clauses)
	if c.node == nil {
		// A decoded contract was checked for this by CheckConfig.
		seen := map[string]bool{}
		walk(clauses, nil, func(c *Clause, _ *config.Node) {
			if seen[c.ID] {
				l.report(CodeTwice, nil, c.ID, 0, fmt.Sprintf("the id %q is taken", c.ID), "give each clause an id of its own")
			}
			seen[c.ID] = true
		})
	}
	l.reference = c.Reference
	nodes := c.nodes()
	l.list(clauses, nodes, t)
	for i := range clauses {
		var at *config.Node
		if i < len(nodes) {
			at = nodes[i]
		}
		l.live(&clauses[i], at, t.with(clauses[i]))
		_, members, _ := clauses[i].group()
		l.nested(members, clauses[i].memberNodes(at))
		l.previous(&clauses[i], at, t)
	}
	config.Faults(l.faults).Sort()
	return l.faults
}

// Strangers returns a fault for each workload that a clause names and that is
// not among those given: a slip that would leave the clause without a request.
func (c *Contract) Strangers(workloads []string) []config.Fault {
	if c == nil {
		return nil
	}
	var l linter
	walk(c.named(), c.nodes(), func(clause *Clause, at *config.Node) {
		for _, name := range clause.On {
			if slices.Contains(workloads, name) {
				continue
			}
			if at != nil && at.Has("on") {
				at = at.At("on")
			}
			l.stranger(clause.ID, at, name, workloads)
		}
	})
	return l.faults
}

func (l *linter) stranger(id string, at *config.Node, name string, workloads []string) {
	hint := "workloads are " + strings.Join(workloads, ", ")
	if near, ok := nearest(name, workloads); ok {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	l.report(CodeStranger, at, id, 0, fmt.Sprintf("there is no workload %q in this run", name), hint)
}

type linter struct {
	planned   []Planned
	reference Reference
	bounds    map[string]map[bool]bool // metric: limited from above, from below
	faults    []config.Fault
}

// report adds a fault at the clause's node, at a column of its need if column
// is not 0. Without a node it is known by the clause's id.
func (l *linter) report(code string, at *config.Node, id string, column int, what, hint string) {
	if at == nil {
		l.faults = append(l.faults, config.Fault{Path: id, What: what, Hint: hint, Code: code})
		return
	}
	f := at.Mark(what, hint)
	f.Code = code
	if need := at.At("need"); column > 0 && need.IsScalar() && need.Exists() {
		f = need.Mark(what, hint)
		f.Code = code
		if text := need.Scalar(); !strings.Contains(text, "\n") && column <= utf8.RuneCountInString(text) {
			f.Column += column - 1
			if need.Quoted() {
				f.Column++
			}
		}
	}
	l.faults = append(l.faults, f)
}

func (l *linter) list(clauses []Clause, nodes []*config.Node, t terms) {
	for i := range clauses {
		var at *config.Node
		if i < len(nodes) {
			at = nodes[i]
		}
		l.clause(&clauses[i], at, t.with(clauses[i]))
	}
}

func (l *linter) clause(c *Clause, at *config.Node, t terms) {
	kind, members, k := c.group()
	switch {
	case kind == KindJoint:
		l.joint(c, at, t)
	case len(members) > 0:
		l.redundant(c, at)
		l.list(demanded(kind, members), c.memberNodes(at), t.share(len(members), k))
	case kind != "" || c.Need.IsZero() || len(c.All)+len(c.Any) > 0 || c.Not != nil || c.Count != nil:
		l.report(CodeEmpty, at, c.ID, 0, "demands nothing that can be judged", "write one of need:, all:, any:, not: or count:")
	default:
		leaf := leafLint{linter: l, c: c, at: at, t: t}
		leaf.check()
	}
}

// leafLint checks one comparison.
type leafLint struct {
	*linter
	c    *Clause
	at   *config.Node
	t    terms
	m    record.Metric
	unit record.Unit
}

func (l *leafLint) say(code string, column int, what, hint string) {
	l.report(code, l.at, l.c.ID, column, what, hint)
}

// sayAt reports at a key of the clause, or at the clause when a group has it.
func (l *leafLint) sayAt(code, key, what, hint string) {
	at := l.at
	if at != nil && at.Has(key) {
		at = at.At(key)
	}
	l.report(code, at, l.c.ID, 0, what, hint)
}

func (l *leafLint) check() {
	need := l.c.Need
	if !decisive(l.t.confidence) {
		l.sayAt(CodeConfidence, "confidence", fmt.Sprintf("a confidence of %s decides nothing", percentage(l.t.confidence)), "write confidence: 95%")
		return
	}
	scopes := l.scopes()
	var err error
	if l.m, l.unit, err = need.Quantity.metric(l.own()...); err != nil {
		fits := func(m record.Metric) bool { _, what, _ := need.Quantity.unit(m); return what == "" }
		hint := "remove the clause, or use one of " + strings.Join(metricNames(fits), ", ")
		if near, ok := nearest(need.Quantity.Metric, knownNames()); ok {
			hint = fmt.Sprintf("did you mean %s?", near)
		} else if len(l.planned) == 0 && strings.Contains(need.Quantity.Metric, ".") {
			hint = "what a check writes is known to the suite that declares it: lint the suite"
		}
		l.say(CodeUnmeasured, need.at.metric, fmt.Sprintf("nothing in this version measures %s", need.Quantity.Metric), hint)
		return
	}
	if fault := need.bind(l.m); fault != nil {
		l.say(CodeUnmeasured, fault.Column, fault.What, fault.Hint)
		return
	}
	l.c.Need = need
	if l.m.Whole && (len(l.t.where) > 0 || l.t.by != "") {
		key := "where"
		if len(l.t.where) == 0 {
			key = "by"
		}
		l.sayAt(CodeStranger, key, fmt.Sprintf("%s is of the whole check, and not of some of its cases", l.m.Name), "remove "+key+":, or judge a value of each case")
		return
	}
	scopes = slices.DeleteFunc(scopes, func(p Planned) bool { return !p.meant(l.m, l.t.on) })
	g := stageOf(l.m.Name)
	if g != nil && !l.stage(g) {
		return
	}
	if d, ok := declaredMetric(l.m.Name); ok && g == nil && len(l.planned) > 0 {
		l.say(CodeUnmeasured, need.at.metric, fmt.Sprintf("a run does not measure %s, which needs %s", d.Name, d.needs), "keep the clause in a contract for live traffic, and remove it here")
		return
	}
	if s := need.Quantity.Stat; (s == "max" || s == "min") && l.t.min == 0 && l.t.window.Requests == 0 {
		l.say(CodeFew, need.at.stat, fmt.Sprintf("a %s says nothing without a minimum of requests", s), "write min: 100 beside it, or a quantile such as p99")
	}
	if r := l.reference; need.Limit.Reference && (len(r.Values) > 0 || r.IsZero() && len(l.planned) > 0) && !r.has(need.Quantity) {
		l.say(CodeReference, need.at.limit, fmt.Sprintf("the contract registers no reference for %s", need.Quantity), fmt.Sprintf("write reference: {%s: …} with its value, or the name of a file", need.Quantity))
	}
	l.limits()
	l.direction()
	for _, p := range scopes {
		l.plan(p)
	}
}

// scopes lists the plans that the clause is judged on, and says what it asks
// for that no plan has.
func (l *leafLint) scopes() []Planned {
	if len(l.planned) == 0 {
		return nil
	}
	var names []string
	for _, p := range l.planned {
		names = append(names, p.Workload)
	}
	for _, name := range l.t.on {
		if slices.Contains(names, name) {
			continue
		}
		at := l.at
		if at != nil && at.Has("on") {
			at = at.At("on")
		}
		l.stranger(l.c.ID, at, name, names)
	}
	var scopes []Planned
	unlabelled := ""
	for _, p := range l.planned {
		if len(l.t.on) > 0 && !slices.Contains(l.t.on, p.Workload) {
			continue
		}
		matches := true
		for k, v := range l.t.where {
			// A label that the plan does not know may still stand on single prompts.
			if got, ok := p.Labels[k]; ok && got != v {
				matches, unlabelled = false, k+"="+v
			}
		}
		if matches {
			scopes = append(scopes, p)
		}
	}
	if len(scopes) == 0 && unlabelled != "" {
		l.sayAt(CodeStranger, "where", fmt.Sprintf("no planned request has the label %s", unlabelled), "correct where:, or label a workload so")
	}
	return scopes
}

// limits finds limits that every system meets, or none.
func (l *leafLint) limits() {
	n := l.c.Need
	if l.beyondScale() || n.Limit.relative() || l.unit == record.Points {
		return
	}
	v, upper, strict := n.Limit.Value, n.Compare.upper(), len(n.Compare) == 1
	measured := n.Quantity.Stat != "count"
	least := v < 0 || v == 0 && (measured || strict == upper)
	if least && upper {
		l.say(CodeSettled, n.at.limit, fmt.Sprintf("the clause can never pass: %s cannot be shown to be %s %s", n.Quantity, n.Compare, n.Limit.text), "write a limit above 0")
		return
	}
	if (v < 0 || v == 0 && !strict) && !upper {
		l.say(CodeSettled, n.at.limit, fmt.Sprintf("the clause can never fail: %s is always %s %s", n.Quantity, n.Compare, n.Limit.text), "write a limit above 0")
		return
	}
	if l.unit != record.Proportion || v < 1 {
		return
	}
	if upper {
		l.say(CodeSettled, n.at.limit, fmt.Sprintf("the clause can never fail: no share is above %s", n.Limit.text), "write a limit below 100%")
		return
	}
	l.say(CodeSettled, n.at.limit, fmt.Sprintf("the clause can never pass: no sample shows a share of %s", n.Limit.text), "write a limit below 100%, such as 99%")
}

// beyondScale finds a limit or a margin of a check's value that is wider than the
// value's scale: 2 points of a score from 0 to 1 let everything pass.
func (l *leafLint) beyondScale() bool {
	n, m := l.c.Need, l.m
	if m.Check == "" || m.Least >= m.Most || l.unit == record.Proportion && !n.Limit.relative() || n.Quantity.fact() {
		return false
	}
	scale := fmt.Sprintf("%s lies from %s to %s", m.Name, value(m.Unit, m.Least, 4), value(m.Unit, m.Most, 4))
	switch v := n.Limit.Value; {
	case n.Limit.relative() && n.Limit.Factor == 1 && math.Abs(v) >= m.Most-m.Least:
		l.say(CodeSettled, n.at.limit, fmt.Sprintf("the clause decides nothing: %s, and the margin is as wide as that", scale), "write a margin in the unit of the value, such as baseline - "+trim(0.05*(m.Most-m.Least), 6))
	case !n.Limit.relative() && (v < m.Least || v > m.Most):
		l.say(CodeSettled, n.at.limit, fmt.Sprintf("the clause decides nothing: %s, and the limit is beyond", scale), "write a limit between them")
	default:
		return false
	}
	return true
}

// directed lists the metrics for which one direction is better for every
// user; of the others (lengths, offered load) a limit may be meant either way.
func directed(m record.Metric) bool {
	switch m.Name {
	case "prompt_length", "output_length", "cached", "prompt_tokens", "offered", "sent", "truncated":
		return false
	}
	return m.Unit != record.Points
}

// boundsOf collects from which sides the contract limits each metric.
func boundsOf(clauses []Clause) map[string]map[bool]bool {
	bounds := map[string]map[bool]bool{}
	add := func(c *Clause) {
		if c.Need.IsZero() {
			return
		}
		m := c.Need.Quantity.Metric
		if bounds[m] == nil {
			bounds[m] = map[bool]bool{}
		}
		bounds[m][c.Need.Compare.upper()] = true
	}
	var collect func(clauses []Clause)
	collect = func(clauses []Clause) {
		for i := range clauses {
			add(&clauses[i])
			kind, members, _ := clauses[i].group()
			if len(members) > 0 {
				collect(demanded(kind, members))
			}
		}
	}
	collect(clauses)
	return bounds
}

// direction points at a clause that a worse system passes more easily. A lower
// limit on a latency is sound beside an upper one (too fast is a sign of a
// cheat), so it is pointed at only when it stands alone.
func (l *leafLint) direction() {
	n := l.c.Need
	right := !l.m.Higher // smaller is better: an upper limit is the right way
	if !directed(l.m) || n.Compare.upper() == right || l.bounds[l.m.Name][right] {
		return
	}
	flipped := strings.NewReplacer("<", ">", ">", "<").Replace(string(n.Compare))
	better := "smaller"
	if l.m.Higher {
		better = "larger"
	}
	l.say(CodeDirection, n.at.compare, fmt.Sprintf("probably the wrong way round: a %s %s is better, and %s passes the worse system", better, l.m.Name, n),
		fmt.Sprintf("write %s %s %s, or add a clause that limits %s from the other side", n.Quantity, flipped, n.Limit.text, l.m.Name))
}

// plan finds what the run on one workload cannot decide.
func (l *leafLint) plan(p Planned) {
	n := l.c.Need
	if n.Limit.Baseline && len(p.Variants) > 0 && !(slices.Contains(p.Variants, baselineName) && len(p.Variants) > 1) {
		l.say(CodeNoBaseline, n.at.limit, "the limit refers to a baseline, and the run has none", "add a variant named baseline, or write a limit such as 800ms")
	}
	if !p.Usage && needsUsage(l.m.Name) {
		l.say(CodeNoTokens, n.at.metric, fmt.Sprintf("%s needs token counts, and workload %s asks for none", l.m.Name, p.Workload), "let the server report usage")
	}
	if !p.Streaming && needsStream(l.m.Name) {
		l.say(CodeNoStream, n.at.metric, fmt.Sprintf("%s needs streamed answers, and workload %s does not stream", l.m.Name, p.Workload), "write stream: true in the workload")
	}
	if l.t.min > 0 && p.Requests > 0 && l.t.min > p.Requests {
		l.sayAt(CodeFew, "min", fmt.Sprintf("asks for at least %s, and workload %s plans %s", count(l.t.min, "request"), p.Workload, grouped(fmt.Sprint(p.Requests))), "plan more requests or lower min")
	}
	if w := l.t.window; n.Quantity.Stat == "count" && w.For > 0 && p.For > 0 && p.For < w.For {
		l.sayAt(CodeFew, "window", fmt.Sprintf("counts over a window of %s, and workload %s lasts %s", w, p.Workload, config.Duration(p.For)), "plan a longer run, or judge a share instead")
	}
	l.size(p)
}

// needsStream reports whether the metric rests on the times between events.
func needsStream(metric string) bool {
	switch metric {
	case "tpot", "itl", "icl", "ttst", "gap.max", "user_rate":
		return true
	}
	return false
}

// atEnd is the confidence of a bound at the last look.
func (p Planned) atEnd(whole float64) float64 {
	return Interim{Number: p.Looks, Of: p.Looks}.confidence(whole)
}

// size refuses a clause that so many requests cannot decide.
func (l *leafLint) size(p Planned) {
	n := l.c.Need
	confidence := p.atEnd(l.t.confidence)
	conf := percentage(confidence)
	what := ""
	switch n.Quantity.Stat {
	case "rate":
		if p.For > 0 && p.For < rateSlices*leastSlice {
			l.say(CodeFew, n.at.stat, fmt.Sprintf("a rate needs %d seconds for a bound, and workload %s lasts %s", rateSlices, p.Workload, config.Duration(p.For)), fmt.Sprintf("write for: %ds or more in the workload", rateSlices))
		}
		return
	case "count", "max", "min":
		return
	}
	if p.Requests <= 0 {
		return
	}
	need := int64(0)
	switch n.Quantity.Stat {
	case "quantile":
		if l.m.Name == "icl" || l.m.Name == "itl" {
			return // many values a request; their number is not planned
		}
		k := quantileNeeds(n.Quantity.P, confidence, n.Compare.upper())
		if n.Limit.Baseline {
			k = max(k, quantileNeeds(n.Quantity.P, confidence, !n.Compare.upper()))
		}
		need, what = int64(k), fmt.Sprintf("a %s bound for %s needs %s", conf, n.Quantity.stat(), count(k, "request"))
	case "mean":
		need, what = meanValues, fmt.Sprintf("a mean needs %s", count(meanValues, "request"))
	case "share":
		k := l.shareNeeds(confidence)
		need, what = k, fmt.Sprintf("to show %s at %s confidence takes %s, even in the best case", n, conf, count(k, "request"))
	}
	if need > p.Requests {
		l.say(CodeFew, n.at.stat, fmt.Sprintf("%s, and workload %s plans %s", what, p.Workload, grouped(fmt.Sprint(p.Requests))), l.remedy(need, p))
	}
}

func (l *leafLint) remedy(need int64, p Planned) string {
	remedy := fmt.Sprintf("write requests: %d in the workload", need)
	if p.For > 0 {
		remedy = fmt.Sprintf("plan at least %s", count(need, "request"))
	}
	if l.c.Need.Quantity.Stat != "quantile" {
		return remedy + ", or a wider limit"
	}
	for _, q := range []float64{0.99, 0.95, 0.9, 0.5} {
		k := quantileNeeds(q, p.atEnd(l.t.confidence), true)
		if l.c.Need.Limit.Baseline {
			k = max(k, quantileNeeds(q, p.atEnd(l.t.confidence), false))
		}
		if q < l.c.Need.Quantity.P && l.c.Need.Compare.upper() && int64(k) <= p.Requests {
			return remedy + ", or judge " + Quantity{"quantile", q, l.m.Name}.String()
		}
	}
	return remedy
}

// shareNeeds is the least number of requests with which a share at its best
// (no bad event in either variant) is within the limit; 0 if that cannot be
// said, or none is needed.
func (l *leafLint) shareNeeds(confidence float64) int64 {
	n := l.c.Need
	if n.Limit.relative() && (n.Limit.Factor != 1 || n.Limit.Value == 0 || n.Limit.Value > 0 != n.Compare.upper()) {
		return 0
	}
	room := n.Limit.Value // up to which a share may lie, on the side of the bad event
	switch {
	case n.Compare.upper():
	case n.Limit.relative():
		room = -room
	default:
		room = 1 - room
	}
	if room <= 0 || room >= 1 {
		return 0
	}
	const most = 1 << 20 // what takes more is impossible, which limits reports, or takes longer than any run
	if k := quantileNeeds(1-room, confidence, true); k < most {
		return int64(k)
	}
	return 0
}

package contract

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/assay-llm/assay/config"
)

// Contract is what a candidate must meet to go live. It is decoded by package
// config. The zero Contract demands nothing, and is never passed.
type Contract struct {
	Version    int            `yaml:"version" doc:"version of this format: 1"`
	Name       string         `yaml:"name" doc:"name of the contract, for reports"`
	Confidence config.Percent `yaml:"confidence" doc:"confidence of the one-sided bound that decides each clause; 95% if left out"`
	Reference  Reference      `yaml:"reference" doc:"registered values that limits refer to as reference, in place or the name of a file"`
	Clauses    []Clause       `yaml:"clauses,required" most:"1000" doc:"what is demanded; every clause must pass"`
	node       *config.Node   // where the contract stands in its file, for Lint; nil if it was not decoded
}

// Clause is one demand, or a group of demands. On, Where, Min and Confidence of
// a group hold for its members, unless they have their own.
type Clause struct {
	ID         string            `yaml:"id" doc:"unique name; c1, c2 and so on if left out"`
	Need       Need              `yaml:"need" doc:"one comparison: STAT(METRIC) CMP LIMIT"`
	All        []Clause          `yaml:"all" most:"1000" doc:"a group that passes if every member passes"`
	Any        []Clause          `yaml:"any" most:"1000" doc:"a group that passes if one member passes, and fails if all fail"`
	On         Names             `yaml:"on" doc:"the workload, or list of workloads, that is judged, each by itself; all if left out"`
	Where      map[string]string `yaml:"where" most:"100" doc:"only requests with these labels"`
	By         string            `yaml:"by" doc:"a label, such as tenant: each of its values is judged by itself"`
	Min        int64             `yaml:"min" doc:"judge only if each variant has at least this many requests, dropped ones left out"`
	Confidence config.Percent    `yaml:"confidence" doc:"instead of the contract's"`
	Window     Window            `yaml:"window" doc:"how much live traffic is judged at a time: 1h, or 100 requests"`
	Severity   Severity          `yaml:"severity" doc:"info, warning or critical; for whoever acts on the verdict, softens no grade"`
	Live       Live              `yaml:"live" doc:"what is done about live traffic that violates the clause; not read when a run is judged"`
	Not        *Clause           `yaml:"not" doc:"a clause that must be shown not to hold"`
	Count      *Quorum           `yaml:"count" doc:"a group of which at_least members must pass"`
	some       bool              // turned round: one workload or value of by on which it holds is enough
	Joint      *Joint            `yaml:"joint" doc:"several quantities traded for each other, behind vetoes"`
}

// DefaultConfidence is the confidence of a contract that states none.
const DefaultConfidence = 0.95

// Names is one name or a list of names.
type Names []string

// DecodeConfig reads a name or a list of names.
func (ns *Names) DecodeConfig(n *config.Node) {
	items := []*config.Node{n}
	if n.IsSequence() {
		items = n.Items()
	}
	for _, item := range items {
		name, ok := item.Text()
		switch {
		case !ok:
		case name == "":
			item.Fault("wants the name of a workload, got empty text", "remove it to judge all workloads")
		case slices.Contains(*ns, name):
			item.Fault(fmt.Sprintf("%q stands here twice", name), "remove one of them")
		default:
			*ns = append(*ns, name)
		}
	}
}

// ConfigSchema describes a name or a list of names.
func (Names) ConfigSchema() map[string]any {
	name := map[string]any{"type": "string", "minLength": 1}
	return map[string]any{"oneOf": []any{name, map[string]any{"type": "array", "items": name, "uniqueItems": true}}}
}

// MarshalYAML writes a single name without a list.
func (ns Names) MarshalYAML() (any, error) {
	if len(ns) == 1 {
		return ns[0], nil
	}
	return []string(ns), nil
}

// DecodeConfig reads a need; faults point into the text.
func (need *Need) DecodeConfig(n *config.Node) {
	text, ok := n.Text()
	if !ok {
		return
	}
	parsed, err := ParseNeed(text)
	if e, is := err.(*NeedError); is {
		n.FaultIn(byteOffset(text, e.Column), e.What, e.Hint)
		return
	}
	*need = parsed
}

// byteOffset converts a column in characters, from 1, to an offset in bytes.
func byteOffset(s string, column int) int {
	offset := 0
	for ; column > 1 && offset < len(s); column-- {
		_, size := utf8.DecodeRuneInString(s[offset:])
		offset += size
	}
	return offset
}

// ConfigSchema describes the shape of a need.
func (Need) ConfigSchema() map[string]any {
	return map[string]any{
		"type":     "string",
		"pattern":  `^\s*(p[0-9]{1,2}(\.[0-9]{1,3})?|median|mean|share|rate|count|max|min|estimate)\s*\(\s*[A-Za-z0-9_.-]+\s*\)\s*(<=|<|>=|>)\s*\S.*$`,
		"examples": []any{"p99(ttft) <= 800ms", "p95(tpot) <= baseline * 1.05", "share(failed) <= baseline + 0.5 points"},
	}
}

// MarshalYAML writes the need's text.
func (need Need) MarshalYAML() (any, error) { return need.String(), nil }

// IsZero reports whether there is no need.
func (need Need) IsZero() bool { return need.Compare == "" }

// Window is a stretch of live traffic: a time or a number of requests. The zero
// Window is no window: everything is judged at once.
type Window struct {
	For      time.Duration
	Requests int64
}

// String writes the window as contracts do.
func (w Window) String() string {
	switch {
	case w.Requests > 0:
		return strconv.FormatInt(w.Requests, 10) + " requests"
	case w.For > 0:
		return config.Duration(w.For).String()
	}
	return ""
}

// IsZero reports whether there is no window.
func (w Window) IsZero() bool { return w == Window{} }

// MarshalYAML writes the window as contracts do.
func (w Window) MarshalYAML() (any, error) { return w.String(), nil }

// DecodeConfig reads "1h" or "100 requests".
func (w *Window) DecodeConfig(n *config.Node) {
	const hint = "write a time such as 1h, or a number such as 100 requests"
	text, ok := n.Text()
	if !ok {
		return
	}
	if count, is := strings.CutSuffix(strings.TrimSuffix(text, "s"), "request"); is {
		k, err := strconv.ParseInt(strings.TrimSpace(count), 10, 64)
		if err != nil || k <= 0 {
			n.Fault(fmt.Sprintf("%q is no number of requests", text), hint)
			return
		}
		w.Requests = k
		return
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		n.Fault(fmt.Sprintf("%q is no window", text), hint)
		return
	}
	w.For = d
}

// ConfigSchema describes a window.
func (Window) ConfigSchema() map[string]any {
	return map[string]any{"type": "string", "examples": []any{"1h", "100 requests"}}
}

// Severity is how much a clause matters to whoever acts on a verdict. It never
// softens a grade.
type Severity string

var severities = []string{"info", "warning", "critical"}

// DecodeConfig reads info, warning or critical.
func (s *Severity) DecodeConfig(n *config.Node) {
	text, ok := n.Text()
	if !ok {
		return
	}
	if !slices.Contains(severities, text) {
		hint := "use one of " + strings.Join(severities, ", ")
		if near, ok := nearest(text, severities); ok {
			hint = fmt.Sprintf("did you mean %s?", near)
		}
		n.Fault(fmt.Sprintf("there is no severity %q", text), hint)
		return
	}
	*s = Severity(text)
}

// ConfigSchema lists the severities.
func (Severity) ConfigSchema() map[string]any {
	return map[string]any{"type": "string", "enum": []any{"info", "warning", "critical"}}
}

// CheckConfig checks the contract as a whole, and keeps its place for Lint.
func (c *Contract) CheckConfig(n *config.Node) {
	c.node = n
	switch {
	case c.Version == 0 && n.Path() == "" && !n.Has("version"):
		n.Fault("has no version", "write version: 1 at the top")
	case c.Version != 1 && n.Has("version"):
		n.At("version").Fault(fmt.Sprintf("this program reads version 1, not %d", c.Version), "write version: 1")
	}
	checkConfidence(c.Confidence, n)
	if k := c.size(); k > mostClauses {
		n.At("clauses").Fault(tooMany(k), "split the contract")
		return
	}
	seen := map[string]bool{}
	top := map[string]bool{}
	for _, clause := range c.named() {
		top[clause.ID] = true
	}
	walk(c.named(), c.nodes(), func(clause *Clause, at *config.Node) {
		if seen[clause.ID] {
			at.At("id").Fault(fmt.Sprintf("the id %q is taken", clause.ID), "give each clause an id of its own")
		}
		if seen[clause.ID] = true; clause.Joint != nil && !top[clause.ID] {
			at.At("joint").Fault(atTop, "make a clause of it")
		}
	})
}

// mostClauses bounds what a contract demands. Those that people write have a few
// dozen.
const mostClauses = 1000

func tooMany(k int) string {
	return fmt.Sprintf("%s clauses; the limit is %s", grouped(strconv.Itoa(k)), grouped(strconv.Itoa(mostClauses)))
}

// size counts the clauses, members and recoveries included.
func (c *Contract) size() int {
	n := 0
	var add func(clauses []Clause)
	add = func(clauses []Clause) {
		n += len(clauses)
		for i := range clauses {
			_, members, _ := clauses[i].group()
			add(members)
			if when := clauses[i].Live.Recover.When; when != nil {
				add([]Clause{*when})
			}
		}
	}
	add(c.Clauses)
	return n
}

// CheckConfig checks one clause.
func (c *Clause) CheckConfig(n *config.Node) {
	var has []string
	for _, key := range []string{"need", "all", "any", "not", "count", "joint"} {
		if n.Has(key) {
			has = append(has, key)
		}
	}
	switch {
	case len(has) == 0:
		n.Fault("demands nothing", "write need: with a comparison, or all:, any:, not:, count: or joint: with clauses")
	case len(has) > 1:
		n.At(has[1]).Fault(fmt.Sprintf("a clause has either %s or %s", has[0], has[1]), "write two clauses")
	case n.Has("all") && len(n.At("all").Items()) == 0 && n.At("all").IsSequence():
		n.At("all").Fault("a group without members demands nothing", "write clauses in it, or remove it")
	case n.Has("any") && len(n.At("any").Items()) == 0 && n.At("any").IsSequence():
		n.At("any").Fault("a group without members demands nothing", "write clauses in it, or remove it")
	}
	if c.Joint != nil && !c.Live.IsZero() {
		n.At("live").Fault("a joint clause is judged over a whole run, and has no live rule", "write live rules for its vetoes, as clauses of their own")
	}
	if c.Min < 0 {
		n.At("min").Fault(fmt.Sprintf("a minimum of %d requests", c.Min), "write a number from 1")
	}
	checkConfidence(c.Confidence, n)
}

func checkConfidence(c config.Percent, n *config.Node) {
	if n.Has("confidence") && !confident(float64(c)) {
		n.At("confidence").Fault("the confidence of a bound lies from 80% to 99.99%", "write confidence: 95%")
	}
}

func confident(c float64) bool { return c >= leastConfidence && c <= 0.9999 }

// decisive reports whether a bound of that confidence means anything; the share
// that falls to a member of a group may lie above what a contract can state.
func decisive(c float64) bool { return c >= leastConfidence && c < 1 }

// leastConfidence is the least that is worth the word: four times in five.
const leastConfidence = 0.8

// named returns the clauses with every id filled in.
func (c *Contract) named() []Clause { return name(c.Clauses, "c") }

func name(clauses []Clause, prefix string) []Clause {
	out := slices.Clone(clauses)
	for i := range out {
		c := &out[i]
		if c.ID == "" {
			c.ID = prefix + strconv.Itoa(i+1)
		}
		c.All, c.Any = name(c.All, c.ID+"."), name(c.Any, c.ID+".")
		if c.Not != nil {
			c.Not = &name([]Clause{*c.Not}, c.ID+".")[0]
		}
		if c.Count != nil {
			c.Count = &Quorum{AtLeast: c.Count.AtLeast, Of: name(c.Count.Of, c.ID+".")}
		}
		if c.Joint != nil {
			joint := *c.Joint
			joint.Vetoes = name(joint.Vetoes, c.ID+".")
			c.Joint = &joint
		}
	}
	return out
}

// walk visits every clause, groups before their members, with its node, or nil
// when the contract was not decoded.
func walk(clauses []Clause, nodes []*config.Node, visit func(*Clause, *config.Node)) {
	for i := range clauses {
		var at *config.Node
		if i < len(nodes) {
			at = nodes[i]
		}
		c := &clauses[i]
		visit(c, at)
		_, members, _ := c.group()
		walk(members, c.memberNodes(at), visit)
	}
}

// nodes returns where the clauses stand; nil if the contract was not decoded.
func (c *Contract) nodes() []*config.Node {
	if c.node == nil {
		return nil
	}
	return c.node.At("clauses").Items()
}

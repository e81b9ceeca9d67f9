package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-llm/assay/config"
)

// Resolution is what the state says of a value that a turn relies on. The zero
// Resolution is Missing.
type Resolution uint8

// The resolutions.
const (
	Missing   Resolution = iota // nothing tells it: the assistant has to ask
	Ambiguous                   // several values fit: it has to ask
	Unique                      // what the slot has now: it has to be used
	Derivable                   // what another slot, scope or time has: it has to be used
)

// String returns the word of the resolution.
func (r Resolution) String() string {
	return [...]string{"missing", "ambiguous", "unique", "derivable"}[min(r, 3)]
}

// Open reports whether the assistant has to ask.
func (r Resolution) Open() bool { return r == Missing || r == Ambiguous }

// Need is one value that a turn relies on without stating it.
type Need struct {
	Slot       string
	Resolution Resolution
	Value      string   // to be used; "": the assistant has to ask
	Fits       []string // values that fit; of a contradiction the value of the state, then the claimed one
	Depth      int      // turns since the value was said; 0: it has to be asked for
	Claimed    bool     // the user contradicts the state
}

// Phase is where in its life a constraint is at a turn.
type Phase string

// The phases.
const (
	Activated    Phase = "activated"    // stated in this turn
	Persisting   Phase = "persisting"   // stated before, and never changed
	Updating     Phase = "updating"     // changed in this turn
	Updated      Phase = "updated"      // changed before: the old value must not come back
	Cancelled    Phase = "cancelled"    // holds no more
	Contradicted Phase = "contradicted" // the user claims another value in this turn
)

// Held is one constraint as it stands after a turn.
type Held struct {
	Slot  string
	Scope string // of the value; "": the whole dialogue
	Value string // "": it is cancelled
	Phase Phase
	Old   []string // values that it had before, and has no more
}

// node is one value of a slot.
type node struct {
	slot, scope, value string
	introduced         int
	superseded         int // turn; -1: never
	cancelled          bool
	from               int // node that it was derived from; -1: stated
	first              bool
}

func (d *node) live(at int) bool {
	return d.introduced <= at && (d.superseded < 0 || d.superseded > at)
}

// compiled is what a turn comes to.
type compiled struct {
	needs []Need
	held  []Held
}

// lint gathers what is wrong with one scenario; of one without a document it keeps
// no places.
type lint struct {
	top    *config.Node
	faults config.Faults
}

// fault reports at the way from the scenario that path names: keys and indices.
func (l *lint) fault(path []any, what, hint string) {
	if l.top == nil {
		l.faults = append(l.faults, config.Fault{What: fmt.Sprintf("%v: %s", path, what), Hint: hint})
		return
	}
	n := l.top
	for _, step := range path {
		switch step := step.(type) {
		case string:
			n = n.At(step)
		case int:
			items := n.Items()
			if step >= len(items) {
				break
			}
			n = items[step]
		}
	}
	l.faults = append(l.faults, n.Mark(what, hint))
}

// compile checks the scenario and builds its state. n is where it stands in its
// document; nil: in none.
func (s *Scenario) compile(n *config.Node) config.Faults {
	l := &lint{top: n}
	if s.Language == "" {
		s.Language = "en"
	}
	s.checkSlots(l)
	used := make(map[string]bool)
	expects := false
	for t := range s.Turns {
		expects = s.compileTurn(l, t, used) || expects
	}
	if len(l.faults) > 0 {
		return l.faults
	}
	for _, name := range s.Slots.Keys() {
		if !used[name] {
			l.fault([]any{"slots", name}, "is a slot that no turn speaks of", "set it in a turn, or remove it")
		}
	}
	if !expects {
		l.fault([]any{"turns"}, "expects nothing of any reply, so there is nothing to judge", "give a turn expect, implies or forbids")
	}
	return l.faults
}

// mostSlots bounds the slots of a scenario: each reply is read for every one of them.
const mostSlots = 64

func (s *Scenario) checkSlots(l *lint) {
	if n := s.Slots.Len(); n > mostSlots {
		l.fault([]any{"slots"}, fmt.Sprintf("has %d slots", n), fmt.Sprintf("split the scenario so that each has %d at most", mostSlots))
	}
	for name, slot := range s.Slots.All() {
		switch at := []any{"slots", name, "values"}; {
		case slot.Kind == "enum" && len(slot.Values) < 2:
			l.fault(at, fmt.Sprintf("has %d values, of which nothing can be told apart", len(slot.Values)), "list two values or more")
		case slot.Kind != "enum" && len(slot.Values) > 0:
			l.fault(at, "lists values, but a slot of kind "+slot.Kind+" reads them by itself", "write kind: enum, or leave values out")
		}
		seen := make(map[string]bool)
		for i, c := range slot.Values {
			for _, form := range c {
				f := fold(form)
				if seen[f] {
					l.fault([]any{"slots", name, "values", i}, fmt.Sprintf("has the form %q of another value, too", form), "give each value forms of its own")
				}
				seen[f] = true
			}
		}
	}
}

// known reports whether there is that slot, and says so if there is none.
func (s *Scenario) known(l *lint, name string, path ...any) bool {
	if _, ok := s.Slots.Get(name); ok {
		return true
	}
	l.fault(path, fmt.Sprintf("names %q, which is no slot of this scenario", name), "name one of "+strings.Join(s.Slots.Keys(), ", ")+", or add it to slots")
	return false
}

// value reads a value of a slot into its one form.
func (s *Scenario) value(l *lint, slot, given string, path ...any) (string, bool) {
	v, ok := s.parse(slot, given)
	if !ok {
		k, _ := s.Slots.Get(slot)
		hint := "write it as the slot's kind wants: " + map[string]string{
			"enum": "one of its values", "number": `"12"`, "money": `"USD 49"`, "date": `"2026-03-05"`, "text": "text",
		}[k.Kind]
		l.fault(path, fmt.Sprintf("has %q, which is no %s of %s", given, k.Kind, slot), hint)
	}
	return v, ok
}

// compileTurn checks a turn, applies it to the state and reports whether it expects
// anything.
func (s *Scenario) compileTurn(l *lint, t int, used map[string]bool) bool {
	turn := &s.Turns[t]
	var c compiled
	for slot, source := range turn.Implies.All() {
		at := []any{"turns", t, "implies", slot}
		if !s.known(l, slot, at...) {
			continue
		}
		used[slot] = true
		if _, twice := turn.Sets.Get(slot); twice {
			l.fault(at, "implies "+slot+", which the turn sets as well", "leave it in sets, or in implies")
			continue
		}
		if need, from, ok := s.resolve(l, t, slot, source, at); ok {
			c.needs = append(c.needs, need)
			if need.Resolution == Derivable {
				s.introduce(t, slot, turn.Scope, need.Value, from)
			}
		}
	}
	for slot, given := range turn.Sets.All() {
		at := []any{"turns", t, "sets", slot}
		if !s.known(l, slot, at...) {
			continue
		}
		used[slot] = true
		if v, ok := s.value(l, slot, string(given), at...); ok {
			s.introduce(t, slot, turn.Scope, v, -1)
		}
	}
	for i, slot := range turn.Cancels {
		at := []any{"turns", t, "cancels", i}
		if !s.known(l, slot, at...) {
			continue
		}
		d := s.find(slot, turn.Scope, t)
		switch _, twice := turn.Sets.Get(slot); {
		case twice:
			l.fault(at, "cancels "+slot+", which the same turn sets", "leave it in sets, or in cancels")
		case d < 0:
			l.fault(at, "cancels "+slot+", which has no value here", "set it in an earlier turn, in the same scope")
		default:
			s.nodes[d].superseded, s.nodes[d].cancelled = t, true
		}
	}
	c.held = s.held(t, c.needs)
	s.turns = append(s.turns, c)
	return s.checkExpectations(l, t, &s.turns[t])
}

// introduce gives a slot a value from turn t on.
func (s *Scenario) introduce(t int, slot, scope, value string, from int) {
	first := true
	for i := range s.nodes {
		d := &s.nodes[i]
		if d.slot != slot || d.scope != scope {
			continue
		}
		if d.live(t) {
			if d.value == value {
				return // said again
			}
			d.superseded = t
		}
		first = false
	}
	s.nodes = append(s.nodes, node{slot: slot, scope: scope, value: value, introduced: t, superseded: -1, from: from, first: first})
}

// find returns the node that a slot has in a scope, or else in the whole dialogue,
// after a turn; -1: none.
func (s *Scenario) find(slot, scope string, at int) int {
	for _, in := range []string{scope, ""} {
		for i := len(s.nodes) - 1; i >= 0; i-- {
			if d := &s.nodes[i]; d.slot == slot && d.scope == in && d.live(at) {
				return i
			}
		}
	}
	return -1
}

// resolve looks up in the state what a turn implies.
func (s *Scenario) resolve(l *lint, t int, slot string, source Source, at []any) (need Need, from int, ok bool) {
	need, scope := Need{Slot: slot}, s.Turns[t].Scope
	switch {
	case source.Missing:
		if s.find(slot, scope, t-1) >= 0 {
			l.fault(at, slot+" is said to be missing, but it has a value here", "write {from: "+slot+"}, or cancel it before")
			return need, -1, false
		}
		return need, -1, true
	case len(source.Ambiguous) > 0:
		need.Resolution = Ambiguous
		return need, -1, s.fits(l, &need, source.Ambiguous, at)
	case source.Contradicts != "":
		d := s.find(slot, scope, t-1)
		if d < 0 {
			l.fault(at, "contradicts the value of "+slot+", which has none here", "set it in an earlier turn, in the same scope")
			return need, -1, false
		}
		need.Resolution, need.Claimed = Ambiguous, true
		return need, -1, s.fits(l, &need, []string{s.nodes[d].value, source.Contradicts}, at)
	}
	if !s.known(l, source.From, append(at, "from")...) {
		return need, -1, false
	}
	asOf, ok := s.asOf(l, t, source.AsOf, at)
	if !ok {
		return need, -1, false
	}
	found := s.find(source.From, scope, asOf)
	if found < 0 {
		if found, ok = s.elsewhere(l, &need, source.From, asOf, at); !ok || need.Resolution == Ambiguous {
			return need, -1, ok
		}
	}
	d := &s.nodes[found]
	if _, fits := s.parse(slot, d.value); !fits {
		l.fault(at, fmt.Sprintf("takes %q from %s, which is no value of %s", d.value, source.From, slot), "take it from a slot of the same kind and values")
		return need, -1, false
	}
	need.Resolution, need.Value, need.Depth = Derivable, d.value, t-d.introduced
	if source.From == slot && d.scope == scope && d.live(t-1) {
		need.Resolution = Unique
	}
	return need, found, true
}

// elsewhere looks for a value in the other scopes: one value is meant, of several
// it is open which.
func (s *Scenario) elsewhere(l *lint, need *Need, from string, asOf int, at []any) (found int, ok bool) {
	found = -1
	for i := range s.nodes {
		d := &s.nodes[i]
		if d.slot != from || !d.live(asOf) {
			continue
		}
		found = i
		if !slices.Contains(need.Fits, d.value) {
			need.Fits = append(need.Fits, d.value)
		}
	}
	switch len(need.Fits) {
	case 0:
		l.fault(at, "refers to "+from+", which has no value at that turn", "set it in an earlier turn, or write missing")
		return -1, false
	case 1:
		need.Fits = nil
	default:
		need.Resolution = Ambiguous
	}
	return found, true
}

// fits reads the values that are open to choose from.
func (s *Scenario) fits(l *lint, need *Need, given []string, at []any) bool {
	for _, g := range given {
		v, ok := s.value(l, need.Slot, g, at...)
		if !ok {
			return false
		}
		if slices.Contains(need.Fits, v) {
			l.fault(at, fmt.Sprintf("names the value %q twice, so it leaves nothing open", v), "name two different values or more")
			return false
		}
		need.Fits = append(need.Fits, v)
	}
	if len(need.Fits) < 2 {
		l.fault(at, "leaves nothing open with one value", "name two different values or more")
		return false
	}
	return true
}

// asOf finds the turn that a reference means; t-1 for now.
func (s *Scenario) asOf(l *lint, t int, name string, at []any) (int, bool) {
	if name == "" {
		return t - 1, true
	}
	turn := slices.IndexFunc(s.Turns, func(o Turn) bool { return o.Name == name })
	if n, err := strconv.Atoi(name); turn < 0 && err == nil {
		turn = n - 1
	}
	if turn < 0 || turn >= t {
		l.fault(append(at, "as_of"), fmt.Sprintf("refers to turn %q, which is no turn before this one", name), fmt.Sprintf("name a turn by its name, or by its number from 1 to %d", t))
		return 0, false
	}
	return turn, true
}

// held lists the constraints after turn t in its scope.
func (s *Scenario) held(t int, needs []Need) (out []Held) {
	scope := s.Turns[t].Scope
	for _, slot := range s.Slots.Keys() {
		h := Held{Slot: slot}
		d := s.find(slot, scope, t)
		if d < 0 {
			if d = s.cancelled(slot, scope); d < 0 {
				continue
			}
			h.Phase = Cancelled
		}
		n := &s.nodes[d]
		h.Scope = n.scope
		if h.Phase != Cancelled {
			h.Value, h.Phase = n.value, phase(n, t)
		}
		if slices.ContainsFunc(needs, func(n Need) bool { return n.Slot == slot && n.Resolution.Open() && !n.Claimed }) {
			continue // it is open what the slot is here
		}
		if slices.ContainsFunc(needs, func(n Need) bool { return n.Slot == slot && n.Claimed }) {
			h.Phase = Contradicted
		}
		for i := range s.nodes {
			if o := &s.nodes[i]; o.slot == slot && o.scope == h.Scope && o.value != h.Value && !slices.Contains(h.Old, o.value) {
				h.Old = append(h.Old, o.value)
			}
		}
		out = append(out, h)
	}
	return out
}

func phase(n *node, t int) Phase {
	switch {
	case n.introduced == t && n.first:
		return Activated
	case n.introduced == t:
		return Updating
	case n.first:
		return Persisting
	}
	return Updated
}

// cancelled returns the node by whose cancellation a slot has no value; -1: there is
// none.
func (s *Scenario) cancelled(slot, scope string) int {
	for i := len(s.nodes) - 1; i >= 0; i-- {
		if d := &s.nodes[i]; d.slot == slot && d.scope == scope && d.cancelled {
			return i
		}
	}
	return -1
}

// checkExpectations holds what a turn expects against its state, and reports whether
// it expects anything.
func (s *Scenario) checkExpectations(l *lint, t int, c *compiled) bool {
	turn := &s.Turns[t]
	opens := func(slot string) bool {
		return slices.ContainsFunc(c.needs, func(n Need) bool { return n.Slot == slot && n.Resolution.Open() })
	}
	for i, f := range turn.Forbids {
		at := []any{"turns", t, "forbids", i}
		slot, ok := strings.CutSuffix(strings.TrimPrefix(f, "ask("), ")")
		switch {
		case !ok || !strings.HasPrefix(f, "ask("):
			l.fault(at, fmt.Sprintf("has %q, which forbids nothing", f), "write ask(SLOT)")
		case !s.known(l, slot, at...):
		case opens(slot):
			l.fault(at, "forbids to ask for "+slot+", which the reply has to ask for", "remove it, or say where the value comes from")
		default:
			turn.forbids = append(turn.forbids, slot)
		}
	}
	e := turn.Expect
	if e == nil {
		return len(c.needs)+len(turn.forbids) > 0
	}
	at := []any{"turns", t, "expect"}
	if e.Mentions.Len()+e.Not.Len() == 0 && e.Clarifies == "" {
		l.fault(at, "expects nothing", "give it mentions, not or clarifies, or remove it")
	}
	if e.Clarifies != "" && s.known(l, e.Clarifies, append(at, "clarifies")...) && !opens(e.Clarifies) {
		l.fault(append(at, "clarifies"), "wants a question for "+e.Clarifies+", which nothing in the turn leaves open", "imply it as ambiguous or missing")
	}
	s.checkMentions(l, t, at, opens)
	return true
}

// checkMentions holds the values that a reply has to assert, or must not, against
// the state and each other.
func (s *Scenario) checkMentions(l *lint, t int, at []any, opens func(string) bool) {
	e := s.Turns[t].Expect
	for slot, given := range e.Mentions.All() {
		at := append(slices.Clone(at), "mentions", slot)
		if !s.known(l, slot, at...) {
			continue
		}
		v, ok := s.value(l, slot, string(given), at...)
		if !ok {
			continue
		}
		e.Mentions.Set(slot, Given(v))
		d := s.find(slot, s.Turns[t].Scope, t)
		switch {
		case opens(slot):
			l.fault(at, "expects a value of "+slot+", which the reply has to ask for", "remove it, or say where the value comes from")
		case d < 0:
			l.fault(at, "expects "+v+" of "+slot+", which has no value here", "set it in this turn or before")
		case s.nodes[d].value != v:
			l.fault(at, fmt.Sprintf("expects %s of %s, which is %s here", v, slot, s.nodes[d].value), "expect what the turns before say, or mend them")
		}
	}
	for slot, given := range e.Not.All() {
		at := append(slices.Clone(at), "not", slot)
		if !s.known(l, slot, at...) {
			continue
		}
		v, ok := s.value(l, slot, string(given), at...)
		if !ok {
			continue
		}
		e.Not.Set(slot, Given(v))
		if d := s.find(slot, s.Turns[t].Scope, t); d >= 0 && s.nodes[d].value == v && !opens(slot) {
			l.fault(at, fmt.Sprintf("forbids %s of %s, which is its value here", v, slot), "forbid another value, or mend the turns before")
		}
	}
}

// Needs lists the values that turn t relies on without stating them.
func (s *Scenario) Needs(t int) []Need { return s.turns[t].needs }

// State lists the constraints after turn t, in the order of the slots, cancelled ones
// included. A slot whose value the turn leaves open is not among them.
func (s *Scenario) State(t int) []Held { return s.turns[t].held }

package scenario

import "slices"

// Standing is what a reply makes of a constraint. The zero Standing is that it does
// not touch it, which is not the same as to keep it.
type Standing uint8

// The standings.
const (
	NotExercised Standing = iota
	Satisfied
	Violated
)

// String returns the words of the standing.
func (s Standing) String() string {
	return [...]string{"not exercised", "satisfied", "violated"}[min(s, 2)]
}

// Kept is one pair of a constraint and a turn.
type Kept struct {
	Held
	Standing Standing
	Said     string // the value that the reply asserts instead; "": none
}

// Used is what a reply makes of an implied value. Exactly one of its marks is set, or
// none: then the reply neither asks nor uses the right value (of one that has to be
// used), or says that it does not know (of one that has to be asked for).
type Used struct {
	Need
	Right   bool // of unique and derivable: asserts the value, and does not ask for it
	Asked   bool // asks for it
	Assumed bool // of ambiguous and missing: goes on without asking
}

// Reading is what a reply does to the turn that it answers.
type Reading struct {
	Kept    []Kept
	Used    []Used
	Asked   []string // slots of Forbids that it asks for
	Forbids int      // how many the turn forbids to ask for
	Misses  []string // what it should have done and did not, or the other way round, in words
	Expects bool     // the turn expects something; else Misses says nothing
}

// Judge reads the reply to turn t.
func (s *Scenario) Judge(t int, reply string) Reading {
	text, turn := fold(reply), &s.Turns[t]
	r := Reading{Forbids: len(turn.forbids), Expects: turn.Expect != nil || len(s.Needs(t)) > 0}
	for _, slot := range turn.forbids {
		if s.asks(text, slot, false) {
			r.Asked = append(r.Asked, slot)
			r.Misses = append(r.Misses, "asks for "+slot)
		}
	}
	for _, n := range s.Needs(t) {
		u := s.used(t, text, n)
		r.Used = append(r.Used, u)
		switch {
		case n.Resolution.Open() && !u.Asked:
			r.Misses = append(r.Misses, "does not ask for "+n.Slot)
		case !n.Resolution.Open() && u.Asked && !slices.Contains(r.Asked, n.Slot):
			r.Misses = append(r.Misses, "asks for "+n.Slot)
		}
	}
	for _, h := range s.State(t) {
		r.Kept = append(r.Kept, s.kept(t, text, h))
	}
	r.Misses = append(r.Misses, s.misses(t, text)...)
	return r
}

// used reads what the reply makes of an implied value.
func (s *Scenario) used(t int, text string, n Need) Used {
	u := Used{Need: n}
	if !n.Resolution.Open() {
		wanted, other := s.asserted(t, s.statements(text, n.Slot), n.Slot, n.Value)
		u.Asked = !wanted && s.asks(text, n.Slot, true) || wanted && s.asks(text, n.Slot, false)
		u.Right = wanted && other == "" && !u.Asked
		return u
	}
	u.Asked = s.asks(text, n.Slot, true) || s.confirms(text, n.Slot)
	if n.Claimed && !u.Asked {
		// To name the value of the state corrects the user, as a question would.
		u.Asked, _ = s.asserted(t, text, n.Slot, n.Fits[0])
	}
	u.Assumed = !u.Asked && squash(text) != "" && !lacksRE.MatchString(text)
	return u
}

// kept reads what the reply makes of a constraint.
func (s *Scenario) kept(t int, text string, h Held) Kept {
	k := Kept{Held: h}
	wanted, other := s.asserted(t, s.statements(text, h.Slot), h.Slot, h.Value)
	k.Said = other
	required, banned := s.required(t, h.Slot)
	switch {
	case other != "":
		k.Standing = Violated
	case wanted || banned:
		k.Standing = Satisfied
	case required:
		k.Standing = Violated
	}
	return k
}

// required reports whether the reply to turn t has to assert the value of a slot, and
// whether it must not assert an old one, with nothing to assert instead.
func (s *Scenario) required(t int, slot string) (required, banned bool) {
	turn := &s.Turns[t]
	if turn.Expect != nil {
		_, required = turn.Expect.Mentions.Get(slot)
		_, banned = turn.Expect.Not.Get(slot)
	}
	required = required || slices.ContainsFunc(s.Needs(t), func(n Need) bool { return n.Slot == slot && !n.Resolution.Open() })
	return required, banned && !required
}

// misses lists the expectations of the turn that the reply does not meet.
func (s *Scenario) misses(t int, text string) (out []string) {
	for _, slot := range s.Slots.Keys() {
		var want string
		if e := s.Turns[t].Expect; e != nil {
			v, _ := e.Mentions.Get(slot)
			want = string(v)
			if not, has := e.Not.Get(slot); has && s.asserts(text, slot, string(not)) {
				out = append(out, "says "+string(not)+" of "+slot)
			}
		}
		for _, n := range s.Needs(t) {
			if n.Slot == slot && !n.Resolution.Open() {
				want = n.Value
			}
		}
		if want != "" && !s.asserts(text, slot, want) {
			out = append(out, "does not say "+want+" of "+slot)
		}
	}
	return out
}

// asserts reports whether a folded reply asserts that value of a slot.
func (s *Scenario) asserts(text, slot, value string) bool {
	k, _ := s.Slots.Get(slot)
	return slices.ContainsFunc(s.mentions(s.statements(text, slot), slot), func(m mention) bool {
		return !m.denied && sameValue(k.Kind, m.value, value)
	})
}

// Retained counts the slots whose value the reply to turn t has to assert, and how many
// of them it does: the retention of the response consistency score.
func (s *Scenario) Retained(t int, reply string) (kept, of int) {
	text := fold(reply)
	for _, h := range s.State(t) {
		if required, _ := s.required(t, h.Slot); !required || h.Value == "" {
			continue
		}
		of++
		if wanted, other := s.asserted(t, s.statements(text, h.Slot), h.Slot, h.Value); wanted && other == "" {
			kept++
		}
	}
	return kept, of
}

// Residue is a reply without the values of slots: what it says beside them, on which
// its similarity to others is measured. A reply that is nothing but values is left as
// it is.
func (s *Scenario) Residue(reply string) string {
	text := fold(reply)
	out := []byte(text)
	for _, slot := range s.Slots.Keys() {
		for _, m := range s.mentions(text, slot) {
			for i := m.at; i < m.end; i++ {
				out[i] = ' '
			}
		}
	}
	if squash(string(out)) == "" {
		return text
	}
	return string(out)
}

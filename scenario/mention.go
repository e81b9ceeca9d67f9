package scenario

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// mention is a value of a slot that stands in a reply.
type mention struct {
	value   string
	at, end int
	denied  bool // it is denied, or told as what was before
}

// names lists the folded words by which replies call a slot.
func (s *Scenario) names(slot string) (out []string) {
	k, _ := s.Slots.Get(slot)
	for _, n := range append([]string{slot, strings.NewReplacer("_", " ", "-", " ").Replace(slot)}, k.Names...) {
		if f := fold(n); f != "" && !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	return out
}

// speaks reports whether a folded text calls a slot by one of its names.
func (s *Scenario) speaks(text, slot string) bool {
	return slices.ContainsFunc(s.names(slot), func(n string) bool {
		return len(occurrences(text, n)) > 0 || len(occurrences(text, n+"s")) > 0
	})
}

// mentions finds the values of a slot in a folded text, in the order of the text.
// Those of an enum stand for themselves. Of an open kind these count: values that the
// scenario knows of the slot; and any other of that kind if no other slot has that
// kind, or the sentence calls this slot, and no other of the kind, by its name.
func (s *Scenario) mentions(text, slot string) (out []mention) {
	k, _ := s.Slots.Get(slot)
	if k.Kind == "enum" {
		out = s.choices(text, k)
	} else {
		out = s.open(text, slot, k)
	}
	called := s.namesIn(text)
	out = slices.DeleteFunc(out, func(m mention) bool { // "email" in "email address" is no value
		return slices.ContainsFunc(called, func(n [2]int) bool { return n[0] <= m.at && m.end <= n[1] && n[1]-n[0] > m.end-m.at })
	})
	slices.SortStableFunc(out, func(a, b mention) int { return a.at - b.at })
	for i := range out {
		out[i].denied = denied(text, out[i].at, out[i].end)
	}
	return out
}

// namesIn lists where a folded text calls any slot by a name.
func (s *Scenario) namesIn(text string) (out [][2]int) {
	for _, slot := range s.Slots.Keys() {
		for _, n := range s.names(slot) {
			out = append(out, occurrences(text, n)...)
		}
	}
	return out
}

// choices finds the forms of an enum, longer ones first, each character once.
func (s *Scenario) choices(text string, k Slot) (out []mention) {
	type form struct{ text, value string }
	var forms []form
	for _, c := range k.Values {
		for _, f := range c {
			forms = append(forms, form{fold(f), c[0]})
		}
	}
	slices.SortStableFunc(forms, func(a, b form) int { return len(b.text) - len(a.text) })
	for _, f := range forms {
		for _, at := range occurrences(text, f.text) {
			if !slices.ContainsFunc(out, func(m mention) bool { return at[0] < m.end && m.at < at[1] }) {
				out = append(out, mention{value: f.value, at: at[0], end: at[1]})
			}
		}
	}
	return out
}

// open finds values of a kind that has no list.
func (s *Scenario) open(text, slot string, k Slot) (out []mention) {
	known := s.valuesOf(slot)
	if k.Kind == "text" {
		for _, v := range known { // texts that look like no reference are found as they are
			for _, at := range occurrences(text, fold(v)) {
				out = append(out, mention{value: v, at: at[0], end: at[1]})
			}
		}
	}
	alone, parts, calls := s.onlyOfKind(slot, k.Kind), sentences(text), make(map[int]bool)
	called := func(at int) bool {
		i, _ := slices.BinarySearchFunc(parts, at, func(p [2]int, at int) int { return p[1] - at - 1 })
		if yes, known := calls[i]; known {
			return yes
		}
		calls[i] = s.called(text[parts[i][0]:parts[i][1]], slot, k.Kind)
		return calls[i]
	}
	for _, t := range tokens(text) {
		if t.kind != k.Kind && (k.Kind != "money" || t.kind != "number") {
			continue
		}
		value := t.value
		if t.kind != k.Kind {
			value = "? " + value
		}
		i := slices.IndexFunc(known, func(v string) bool { return sameValue(k.Kind, v, value) })
		switch {
		case slices.ContainsFunc(out, func(m mention) bool { return t.at < m.end && m.at < t.end }):
		case i >= 0:
			out = append(out, mention{value: known[i], at: t.at, end: t.end})
		case t.kind != k.Kind:
		case k.Kind == "text" && !slices.ContainsFunc(known, func(v string) bool { return alike(v, t.value) }):
		case k.Kind == "text" || alone && k.Kind != "number" || called(t.at):
			out = append(out, mention{value: value, at: t.at, end: t.end})
		}
	}
	return out
}

// alike reports whether two references begin with the same letters, as AC-48213 and
// AC-99120 do.
func alike(a, b string) bool {
	letters := func(s string) string {
		s = squash(fold(s))
		return s[:max(0, strings.IndexAny(s, "0123456789"))]
	}
	return letters(a) != "" && letters(a) == letters(b)
}

// valuesOf lists the values that the scenario knows of a slot: of its state at any
// turn, and those that were left open.
func (s *Scenario) valuesOf(slot string) (out []string) {
	add := func(v string) {
		if v != "" && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	for i := range s.nodes {
		if s.nodes[i].slot == slot {
			add(s.nodes[i].value)
		}
	}
	for _, c := range s.turns {
		for _, n := range c.needs {
			if n.Slot == slot {
				for _, v := range n.Fits {
					add(v)
				}
			}
		}
	}
	return out
}

func (s *Scenario) onlyOfKind(slot, kind string) bool {
	for name, k := range s.Slots.All() {
		if name != slot && k.Kind == kind {
			return false
		}
	}
	return true
}

// called reports whether a folded sentence calls the slot by its name, and no other
// slot of that kind.
func (s *Scenario) called(sentence, slot, kind string) bool {
	if !s.speaks(sentence, slot) {
		return false
	}
	for name, k := range s.Slots.All() {
		if name != slot && k.Kind == kind && s.speaks(sentence, name) {
			return false
		}
	}
	return true
}

// sentences cuts a folded text after full stops, question marks, semicolons and line
// ends; a full stop within a number or an abbreviation ends nothing. Each has its
// place in the text.
func sentences(text string) (out [][2]int) {
	start := 0
	for i, r := range text {
		end := i + utf8.RuneLen(r)
		switch r {
		case '.', '!':
			if end < len(text) && text[end] != ' ' && text[end] != '\n' {
				continue
			}
		case '?', '\n', ';', '。':
		default:
			continue
		}
		out = append(out, [2]int{start, end})
		start = end
	}
	return append(out, [2]int{start, len(text)})
}

// What stands before a value that is denied or was before, up to its comma, and what
// stands after it.
var (
	deniedBeforeRE = regexp.MustCompile(`(?:\bnot|\bno longer|\binstead of|\brather than|\bfrom|\bwas|\bwere|\bpreviously|\bprevious|\bformer(?:ly)?|\bold|\bearlier|\bcancel(?:l?ed|l?ing)?|\bremov(?:ed|ing)|\bdropp(?:ed|ing)|\bwithout|n't)(?:\s+(?:the|your|a|an|our|to|for|of|plan|set|be|billed|in|on))*[\s"'*:(]*$|(?:不是|不再|而非|并非|取代|替代|代替|原来的?|之前的?|此前的?|原先的?|从|由|取消了?|去掉了?|不用|不要)(?:是|为|您的|你的)?[\s"'“「*]*$`)
	deniedAfterRE  = regexp.MustCompile(`^[\s"'”」*)]*(?:(?:plan|billing|option|class)?\s*(?:has been|have been|is|was|are|were)(?:\s+now)?\s+(?:cancel|remov|dropp|replac|no longer)|改为|改成|改到|换成|换为|更改为|变更为|更新为|调整为|已取消|已经取消|不再|(?:的)?(?:设置|要求|选项)?(?:已|已经)取消|(?:->|→))`)
	fromToRE       = regexp.MustCompile(`^[^.?!;\n]{0,40}?(?:\bto\b|->|→|到|改|换|变)`)
)

// denied reports whether the value at a place of a folded text is denied, or told as
// what was before.
func denied(text string, at, end int) bool {
	before, after := text[max(0, at-48):at], text[end:min(len(text), end+60)]
	if m := deniedBeforeRE.FindString(before); m != "" {
		// "from Basic" and 从 tell of what was before only if they lead on to another.
		m = strings.TrimSpace(m)
		if strings.HasPrefix(m, "from") || strings.HasPrefix(m, "从") || strings.HasPrefix(m, "由") {
			return fromToRE.MatchString(after)
		}
		return true
	}
	return deniedAfterRE.MatchString(after)
}

// asserted splits the mentions of a slot in a folded reply into the wanted value and
// others, leaving out what is denied, and what is a value of another slot.
func (s *Scenario) asserted(t int, text, slot, want string) (wanted bool, other string) {
	k, _ := s.Slots.Get(slot)
	for _, m := range s.mentions(text, slot) {
		switch {
		case m.denied:
		case want != "" && sameValue(k.Kind, m.value, want):
			wanted = true
		case other == "" && !s.anothers(t, slot, k.Kind, m.value):
			other = m.value
		}
	}
	return wanted, other
}

// anothers reports whether a value is rather that of another slot of the same kind:
// its value at turn t, or one that the scenario knows of it and not of this slot.
func (s *Scenario) anothers(t int, slot, kind, value string) bool {
	equal := func(v string) bool { return sameValue(kind, v, value) }
	own := slices.ContainsFunc(s.valuesOf(slot), equal)
	for name, o := range s.Slots.All() {
		if name == slot || o.Kind != kind {
			continue
		}
		if !own && slices.ContainsFunc(s.valuesOf(name), equal) || slices.ContainsFunc(s.turns[t].held, func(h Held) bool { return h.Slot == name && equal(h.Value) }) {
			return true
		}
	}
	return false
}

package scenario

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-llm/assay/verify"
)

// Marked is what the answer to a side question says of one slot.
type Marked struct {
	Held
	Right bool
	Said  string // what it says instead; "": nothing
}

// Probe is the side question after turn t: the values of all slots that the dialogue
// has introduced in its scope, as JSON. ok is false where there is nothing to ask.
func (s *Scenario) Probe(t int) (text string, ok bool) {
	var keys []string
	for _, h := range s.State(t) {
		key := h.Slot
		if k, _ := s.Slots.Get(h.Slot); len(k.Names) > 0 && fold(k.Names[0]) != fold(h.Slot) {
			key += " (" + k.Names[0] + ")"
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return "", false
	}
	scope := s.Turns[t].Scope
	if s.chinese() {
		if scope != "" {
			scope = "（" + scope + "）"
		}
		return "请暂停一下：只用一个 JSON 对象给出目前的状态" + scope + "，键为：" + strings.Join(keys, "、") + "。已取消的写 null。不要写别的内容。", true
	}
	if scope != "" {
		scope = " for " + scope
	}
	return "Before we go on: state as one JSON object, and nothing else, the current values" + scope + " of " + strings.Join(keys, ", ") + ". Write null for what was cancelled.", true
}

// Schema is the JSON schema of the answer to Probe.
func (s *Scenario) Schema(t int) json.RawMessage {
	properties, required := make(map[string]any), []string{}
	for _, h := range s.State(t) {
		properties[h.Slot] = map[string]any{"type": []string{"string", "number", "null"}}
		required = append(required, h.Slot)
	}
	b, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false})
	if err != nil {
		panic("scenario: a schema of words: " + err.Error())
	}
	return b
}

// goneRE is what an answer calls a value that was cancelled.
var goneRE = regexp.MustCompile(`^(?:null|none|nil|no|n/a|-|cancel(?:l?ed)?|removed|dropped|not (?:set|specified|applicable)|无|没有|空|已?取消|未设置)\b|^(?:无|没有|空|已?取消|未设置)`)

// ReadState reads the answer to the side question after turn t, slot by slot: its JSON
// object, or else what it says in prose, and how says which. ok is false if there is
// neither; then nothing is known of the state.
func (s *Scenario) ReadState(t int, answer string) (marks []Marked, how string, ok bool) {
	if raw, _, found := verify.FindJSON(answer); found {
		var object map[string]any
		if json.Unmarshal(raw, &object) == nil && len(object) > 0 {
			return s.readObject(t, object), "json", true
		}
	}
	text, said := fold(answer), false
	for _, h := range s.State(t) {
		m := Marked{Held: h}
		wanted, other := s.asserted(t, text, h.Slot, h.Value)
		said = said || wanted || other != ""
		m.Right, m.Said = wanted && other == "" || h.Value == "" && other == "", other
		marks = append(marks, m)
	}
	if !said {
		return nil, "", false
	}
	return marks, "prose", true
}

func (s *Scenario) readObject(t int, object map[string]any) (marks []Marked) {
	plain := func(key string) string { return squash(fold(key)) }
	for _, h := range s.State(t) {
		m := Marked{Held: h}
		k, _ := s.Slots.Get(h.Slot)
		var value any
		for _, key := range slices.Sorted(maps.Keys(object)) {
			if plain(key) == plain(h.Slot) {
				value = object[key]
				break
			}
			if slices.ContainsFunc(s.names(h.Slot), func(n string) bool { return plain(n) == plain(key) }) {
				value = object[key]
			}
		}
		text := fold(written(value))
		gone := strings.TrimSpace(text) == "" || goneRE.MatchString(strings.TrimSpace(text))
		switch {
		case h.Value == "":
			m.Right = gone
		case !gone:
			m.Right = s.states(h.Slot, k, text, h.Value)
		}
		if !m.Right && !gone {
			m.Said = strings.TrimSpace(text)
			if r := []rune(m.Said); len(r) > 40 {
				m.Said = string(r[:40])
			}
		}
		marks = append(marks, m)
	}
	return marks
}

// states reports whether a folded value of a JSON answer is the wanted one, alone.
func (s *Scenario) states(slot string, k Slot, text, want string) bool {
	if v, ok := s.parse(slot, text); ok && k.Kind != "text" {
		return sameValue(k.Kind, v, want)
	}
	found := false
	for _, m := range s.mentions(text, slot) {
		switch {
		case sameValue(k.Kind, m.value, want):
			found = true
		case !m.denied:
			return false
		}
	}
	return found || sameValue(k.Kind, text, want)
}

// written is a JSON value as text.
func written(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

package verify

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Normal finds the answer in a text, as Check does, and returns its normal form:
// answers that differ in notation alone have one. What is expected plays no part;
// Value may be empty. ok is false where no answer is found.
func (e Expected) Normal(text string) (normal string, ok bool) {
	probe := e
	switch e.Kind {
	case Number:
		probe.Value = "0"
	case Choice:
		probe.Value = e.options()[0]
	case JSON:
		probe.Value = "0"
	case Set:
		list, ok := items(text)
		return strings.Join(list, "\n"), ok
	case Text, Phrase:
		s := plain(text)
		return s, s != ""
	case Code:
		probe.Value = "-"
	}
	r := probe.Check(text)
	if r.Outcome == Unparsed {
		return "", false
	}
	switch e.Kind {
	case Number:
		x, ok := parseNumber(r.Found)
		if !ok {
			return "", false
		}
		return x.RatString(), true
	case JSON:
		found, _, _ := FindJSON(text)
		return canonical(found)
	case Code:
		found := text
		if blocks := fenceRE.FindAllStringSubmatch(text, -1); len(blocks) > 0 {
			found = blocks[len(blocks)-1][2]
		}
		return lines(found), true
	}
	return r.Found, true
}

// Alike reports whether two normal forms are one answer: equal, or numbers no
// further apart than Tolerance times the larger.
func (e Expected) Alike(a, b string) bool {
	if a == b {
		return true
	}
	if e.Tolerance <= 0 {
		return false
	}
	switch e.Kind {
	case Number:
		x, okX := parseNumber(a)
		y, okY := parseNumber(b)
		return okX && okY && (near(x, y, e.Tolerance) || near(y, x, e.Tolerance))
	case JSON:
		return sameJSON([]byte(a), []byte(b), e.Tolerance) || sameJSON([]byte(b), []byte(a), e.Tolerance)
	}
	return false
}

// canonical is a JSON value with its keys sorted and its numbers in one notation.
func canonical(value []byte) (string, bool) {
	v, err := decodeJSON(value)
	if err != nil {
		return "", false
	}
	b, err := json.Marshal(sameNumbers(v))
	return string(b), err == nil
}

func sameNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = sameNumbers(x)
		}
	case []any:
		for i, x := range v {
			v[i] = sameNumbers(x)
		}
	case json.Number:
		if x, ok := parseNumber(v.String()); ok && x.IsInt() {
			return json.Number(x.Num().String())
		} else if ok {
			return json.Number(strings.TrimRight(x.FloatString(20), "0"))
		}
	}
	return v
}

var (
	itemRE    = regexp.MustCompile(`(?m)^[ \t]*(?:[-*+•·]|[0-9]{1,3}[.)])[ \t]+(.*)$`)
	betweenRE = regexp.MustCompile(`(?i)\s*(?:[,;，、；\n]\s*(?:(?:and|or)\b)?|\s(?:and|&)\s|[和与及])\s*`)
)

// mostItems bounds a list that is read as a set.
const mostItems = 1000

// items lists what a text enumerates, each once and sorted: its bullets if it has
// two or more, else what stands between commas, semicolons and "and" after the mark
// of a final answer, after the last colon, or in all of it.
func items(text string) (list []string, ok bool) {
	text = narrow(head(text, 1<<16))
	if marks := answerRE.FindAllStringIndex(text, -1); len(marks) > 0 {
		text = text[marks[len(marks)-1][1]:]
	}
	if bullets := itemRE.FindAllStringSubmatch(text, mostItems); len(bullets) > 1 {
		for _, m := range bullets {
			list = append(list, plain(m[1]))
		}
	} else {
		if i := strings.LastIndexByte(strings.TrimRight(trim(text), ":"), ':'); i >= 0 {
			text = trim(text)[i+1:]
		}
		text = strings.Trim(trim(text), "[](){}.。")
		for _, s := range betweenRE.Split(text, mostItems) {
			list = append(list, plain(strings.Trim(s, "\"'[]")))
		}
	}
	list = slices.DeleteFunc(list, func(s string) bool { return !strings.ContainsFunc(s, wordRune) })
	slices.Sort(list)
	list = slices.Compact(list)
	return list, len(list) > 0
}

func (e Expected) set(text string) Result {
	found, ok := items(text)
	if !ok {
		return Result{How: "the answer lists nothing"}
	}
	want, _ := items(e.Value)
	return compared(slices.Equal(found, want), head(strings.Join(found, ", "), 200), "what the answer lists")
}

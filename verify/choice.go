package verify

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

func (e Expected) options() []string {
	if len(e.Options) == 0 {
		return []string{"A", "B", "C", "D", "E"}
	}
	return e.Options
}

// option returns the option that s names, by whatever case.
func (e Expected) option(s string) (string, bool) {
	s = strings.Trim(trim(narrow(s)), "()[]{}*`\"'.:。, ")
	for _, o := range e.options() {
		if strings.EqualFold(s, o) {
			return o, true
		}
	}
	return "", false
}

// choice finds the option that an answer names, by the surest place first. Where
// an equally sure place names two, there is no answer: the first or the last of
// them would be a guess.
func (e Expected) choice(text string) Result {
	text = trim(narrow(text))
	want, _ := e.option(e.Value)
	if o, ok := e.option(text); ok {
		return compared(o == want, o, "the whole answer")
	}
	places := []struct {
		how string
		in  []string
	}{
		{"after the mark of a final answer", afterMarks(text)},
		{"alone on a line", strings.Split(text, "\n")},
		{"in brackets or in bold", bracketed(text)},
	}
	for _, p := range places {
		if r, ok := e.agree(p.in, p.how, want); ok {
			return r
		}
	}
	// A lone word in the text: not for "A" and "I", which are English words.
	var words []string
	for _, o := range e.options() {
		if strings.EqualFold(o, "a") || strings.EqualFold(o, "i") {
			continue
		}
		s, t := text, o
		if utf8.RuneCountInString(o) > 1 {
			s, t = strings.ToLower(text), strings.ToLower(o)
		}
		if _, ok := within(s, t); ok {
			words = append(words, o)
		}
	}
	if r, ok := e.agree(words, "the only option in the answer", want); ok {
		return r
	}
	return Result{How: "the answer names no option"}
}

// agree looks at the places that may name an option; ok is false if none does.
func (e Expected) agree(places []string, how, want string) (r Result, ok bool) {
	var found []string
	for _, s := range places {
		if o, ok := e.option(s); ok && !slices.Contains(found, o) {
			found = append(found, o)
		}
	}
	switch len(found) {
	case 0:
		return Result{}, false
	case 1:
		return compared(found[0] == want, found[0], how), true
	}
	return Result{How: "the answer names " + strings.Join(found, " and ") + " (" + how + ")"}, true
}

// afterMarks gives the word that follows the last mark of a final answer.
func afterMarks(text string) []string {
	marks := answerRE.FindAllStringIndex(text, -1)
	if len(marks) == 0 {
		return nil
	}
	after := strings.TrimLeftFunc(text[marks[len(marks)-1][1]:], func(r rune) bool {
		return space(r) || strings.ContainsRune("([{*`\"':", r)
	})
	return []string{leading(after)}
}

// leading is the run of word characters at the beginning of s.
func leading(s string) string {
	i := strings.IndexFunc(s, func(r rune) bool { return !wordRune(r) })
	if i < 0 {
		return s
	}
	return s[:i]
}

var bracketRE = regexp.MustCompile(`\(([^()\n]{1,40})\)|\[([^\[\]\n]{1,40})\]|\*\*([^*\n]{1,40})\*\*`)

func bracketed(text string) []string {
	var out []string
	for _, m := range bracketRE.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1]+m[2]+m[3])
	}
	return out
}

// boundary reports whether a word begins or ends at byte i of s, or there is none:
// not both sides are word characters.
func boundary(s string, i int) bool {
	if i <= 0 || i >= len(s) {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i:])
	return !wordRune(before) || !wordRune(after)
}

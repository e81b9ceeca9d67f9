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

// negatedRE matches words beside which an option is denied, or one of several.
var negatedRE = regexp.MustCompile(`(?i)\b(?:not|isn't|cannot|can't|neither|nor|never|except|unlikely|wrong|incorrect|false)\b|n't\b|不是|不对|并非|错误|排除`)

// choice finds the option that an answer names, by the surest place first. Where
// an equally sure place names two, or the place denies, there is no answer: the
// first or the last of them would be a guess.
func (e Expected) choice(text string) Result {
	text = trim(narrow(text))
	want, _ := e.option(e.Value)
	if o, ok := e.option(text); ok {
		return compared(o == want, o, "the whole answer")
	}
	if marks := answerRE.FindAllStringIndex(text, -1); len(marks) > 0 {
		if r, ok := e.concluded(text[marks[len(marks)-1][1]:], want); ok {
			return r
		}
	}
	for _, p := range []struct {
		how string
		in  []string
	}{
		{"alone on a line", strings.Split(text, "\n")},
		{"in brackets or in bold", bracketed(text)},
	} {
		if r, ok := e.agree(p.in, p.how, want); ok {
			if r.Outcome != Unparsed && p.how != "alone on a line" && negatedRE.MatchString(text) {
				return Result{How: "the answer names " + r.Found + " and has a word that denies"}
			}
			return r
		}
	}
	words := e.words(text)
	if len(words) > 0 && negatedRE.MatchString(strings.ReplaceAll(text, words[0], "")) {
		return Result{How: "the answer names " + strings.Join(words, " and ") + " and has a word that denies"}
	}
	if r, ok := e.agree(words, "the only option in the answer", want); ok {
		return r
	}
	return Result{How: "the answer names no option"}
}

// words lists the options that stand in a text as words: not the letters a and i,
// which are English words, but where they are in capitals and end a sentence.
func (e Expected) words(text string) (found []string) {
	for _, o := range e.options() {
		s, t := text, o
		if utf8.RuneCountInString(o) > 1 {
			s, t = strings.ToLower(text), strings.ToLower(o)
		} else if strings.EqualFold(o, "a") || strings.EqualFold(o, "i") {
			continue
		}
		if _, ok := within(s, t); ok {
			found = append(found, o)
		}
	}
	return found
}

// concluded reads what a mark of a final answer introduces: an option that stands at
// its beginning, alone in its statement. ok is false if none stands there.
func (e Expected) concluded(after, want string) (r Result, ok bool) {
	said := strings.TrimLeftFunc(statement(after), func(r rune) bool { return space(r) || strings.ContainsRune("([{*`\"':=", r) })
	first := leading(said)
	o, ok := e.option(first)
	rest := strings.TrimLeft(said[len(first):], ")]}*`\"'.。 ")
	reason := strings.TrimLeft(strings.ToLower(rest), ",;: -")
	switch {
	case !ok:
		return Result{}, false
	case first == "a" || first == "i": // the article, and no option
		return Result{}, false
	case negatedRE.MatchString(rest) && !strings.HasPrefix(reason, "because") && !strings.HasPrefix(reason, "since") && !strings.HasPrefix(reason, "as "):
		return Result{How: "the answer names " + o + " and denies in one statement"}, true
	}
	for _, other := range e.options() {
		if other == o {
			continue
		}
		if alternative(rest, other) {
			return Result{How: "the answer names " + o + " and " + other + " (after the mark of a final answer)"}, true
		}
	}
	return compared(o == want, o, "after the mark of a final answer"), true
}

// alternative reports whether a statement goes on to another option: "or B", "and B",
// ", B", "/B".
func alternative(rest, option string) bool {
	for _, word := range []string{"or", "and", "/", ",", "&", "或", "和"} {
		if t, ok := strings.CutPrefix(strings.ToLower(rest), word); ok {
			t = strings.TrimLeft(t, " ([{*`\"'")
			return strings.EqualFold(leading(t), option)
		}
	}
	return false
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

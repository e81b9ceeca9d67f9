package judge

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"

	"github.com/assay-llm/assay/check"
)

const (
	mostAnswer  = 64 << 10 // bytes of a judge's answer
	mostObjects = 256      // places where a JSON object may begin in it
)

// verdict is what an answer says.
type verdict struct {
	index  int // in the menu
	reason string
	at     int // where the verdict's word begins in the text
}

// readVerdict finds the verdict in a judge's answer: the last JSON object that
// stands outside of the fences and is not an echo of the material, if it has
// exactly the form that was asked for. What was found wrong quotes nothing.
func readVerdict(text string, s *sheet) (verdict, error) {
	none := verdict{index: -1}
	switch {
	case strings.TrimSpace(text) == "":
		return none, errors.New("it was empty")
	case len(text) > mostAnswer:
		return none, fmt.Errorf("it was longer than %d bytes", mostAnswer)
	}
	open := outside(text, s.code)
	spans, err := objects(open)
	if err != nil {
		return none, err
	}
	var hostile []string
	for _, m := range s.material {
		hostile = append(hostile, squeeze(m.text))
	}
	for i := len(spans) - 1; i >= 0; i-- {
		object := open[spans[i][0]:spans[i][1]]
		if echoes(object, hostile) {
			continue
		}
		v, err := strict(object, s.menu)
		v.at += spans[i][0]
		return v, err
	}
	return none, errors.New("it held no JSON object of its own")
}

// outside blanks everything between lines of fences, and behind one that is not
// closed. Offsets stay.
func outside(text, code string) string {
	b := []byte(text)
	for from := 0; ; {
		at := strings.Index(text[from:], code)
		if at < 0 {
			return string(b)
		}
		// From the start of the line of this code to the end of that of the next one.
		start, end := from+at, len(text)
		if nl := strings.LastIndexByte(text[:start], '\n'); nl >= from {
			start = nl + 1
		} else {
			start = from
		}
		next := from + at + len(code)
		if close := strings.Index(text[next:], code); close >= 0 {
			end = next + close + len(code)
		}
		for i := start; i < end; i++ {
			b[i] = ' '
		}
		if from = end; from >= len(text) {
			return string(b)
		}
	}
}

// objects finds the outermost well-formed JSON objects, as [start, end).
func objects(text string) (spans [][2]int, err error) {
	tried := 0
	for i := 0; i < len(text); i++ {
		if text[i] != '{' {
			continue
		}
		if tried++; tried > mostObjects {
			return nil, errors.New("it held too many braces")
		}
		if end := closing(text, i); end > 0 && json.Valid([]byte(text[i:end])) {
			spans = append(spans, [2]int{i, end})
			i = end - 1
		}
	}
	return spans, nil
}

// closing is the end of the object that begins at i; 0 if it has none.
func closing(text string, i int) int {
	depth, quoted := 0, false
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// squeeze takes out what copying may change: blanks, backslashes, invisible
// characters and the case of letters.
func squeeze(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '\\' || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

func echoes(object string, hostile []string) bool {
	o := squeeze(object)
	for _, h := range hostile {
		if strings.Contains(h, o) {
			return true
		}
	}
	return false
}

// strict reads an object that has a reason and a verdict, each once, and nothing
// else.
func strict(object string, menu []string) (verdict, error) {
	v := verdict{index: -1}
	dec := json.NewDecoder(strings.NewReader(object))
	dec.UseNumber()
	if _, err := dec.Token(); err != nil {
		return v, errors.New("its object could not be read")
	}
	seen := map[string]bool{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return v, errors.New("its object could not be read")
		}
		name, _ := key.(string)
		from := int(dec.InputOffset())
		var value any
		if err := dec.Decode(&value); err != nil {
			return v, errors.New("its object could not be read")
		}
		if seen[name] {
			return v, errors.New("a key of its object was there twice")
		}
		seen[name] = true
		switch name {
		case "reason":
			text, ok := value.(string)
			if !ok {
				return v, errors.New("its reason was no text")
			}
			v.reason = clip(text)
		case "verdict":
			word := ""
			switch x := value.(type) {
			case string:
				word = x
			case json.Number:
				word = x.String()
			}
			if v.index = onMenu(strings.TrimSpace(word), menu); v.index < 0 {
				return v, errors.New("its verdict was none of the menu")
			}
			v.at = from + strings.IndexFunc(object[from:], func(r rune) bool { return r != ':' && r != '"' && !unicode.IsSpace(r) })
		default:
			return v, errors.New("its object held other keys than reason and verdict")
		}
	}
	if !seen["reason"] || !seen["verdict"] {
		return verdict{index: -1}, errors.New("its object lacked the reason or the verdict")
	}
	return v, nil
}

func onMenu(word string, menu []string) int {
	for i, m := range menu {
		if strings.EqualFold(word, m) {
			return i
		}
	}
	return -1
}

// clip bounds a reason.
func clip(s string) string {
	const most = 2000
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// weigh gives the probabilities of the menu at the token with which the verdict
// begins, which is at an offset of the text, and how much of all probability they
// cover. Tokens that spell a verdict differently (with a blank, a quote) add up. A
// token with which two verdicts could begin, such as "1" for 1 and 10, is of
// neither. It gives nothing if the tokens are not those of the text, or not
// probabilities.
func weigh(tokens []check.Token, text string, at int, menu []string) (p []float64, covered float64, ok bool) {
	var t *check.Token
	end := 0
	for i := range tokens {
		from := end
		end += len(tokens[i].Text)
		if end > len(text) || text[from:end] != tokens[i].Text {
			return nil, 0, false
		}
		if t == nil && at < end {
			t = &tokens[i]
		}
	}
	if t == nil || end != len(text) || len(t.Top) == 0 {
		return nil, 0, false
	}
	top, sampled := t.Top, false
	for _, a := range top {
		sampled = sampled || a.Text == t.Text
	}
	if !sampled {
		top = append([]check.Alternative{{Text: t.Text, Logprob: t.Logprob}}, top...)
	}
	p, sum := make([]float64, len(menu)), 0.0
	for _, a := range top {
		if !(a.Logprob <= 1e-6) { // also NaN
			return nil, 0, false
		}
		q := math.Exp(a.Logprob)
		sum += q
		if i := begun(a.Text, menu); i >= 0 {
			p[i] += q
			covered += q
		}
	}
	if sum > 1+1e-3 || !(covered > 0) {
		return nil, 0, false
	}
	for i := range p {
		p[i] /= covered
	}
	return p, math.Min(covered, 1), true
}

// begun is the one verdict that a token begins; -1 for none, or for several.
func begun(token string, menu []string) int {
	word := strings.TrimLeft(token, "\": \t\n")
	end := strings.IndexAny(word, "\"},\n ")
	whole := end > 0
	if whole {
		word = word[:end]
	}
	found := -1
	for i, m := range menu {
		switch {
		case word == "":
		case whole && strings.EqualFold(word, m):
			return i
		case !whole && len(word) <= len(m) && strings.EqualFold(m[:len(word)], word):
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}

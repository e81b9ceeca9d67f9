package verify

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

// Outcome is what an answer is, held against what is expected.
type Outcome uint8

// The outcomes. Unparsed is the zero value: no answer was found in the text, or
// several that contradict each other.
const (
	Unparsed Outcome = iota
	Wrong
	Right
)

// String names the outcome.
func (o Outcome) String() string {
	switch o {
	case Right:
		return "right"
	case Wrong:
		return "wrong"
	}
	return "unparsed"
}

// Kind says what an answer is to be.
type Kind string

// The kinds.
const (
	Number Kind = "number" // a number, in any usual notation
	Choice Kind = "choice" // one of Options
	Text   Kind = "text"   // the whole answer, but for case, white space and a full stop
	Phrase Kind = "phrase" // a text that contains Value as whole words
	JSON   Kind = "json"   // a JSON value equal to Value, wherever it stands
	Set    Kind = "set"    // a list in any order, each once, such as "red, green and blue"
	Code   Kind = "code"   // a block of code equal to Value, but for white space at line ends
)

// Kinds lists them all.
func Kinds() []Kind { return []Kind{Number, Choice, Text, Phrase, JSON, Set, Code} }

// Expected is the right answer to a question, and how to find an answer.
type Expected struct {
	Kind  Kind
	Value string

	// Options are what Choice chooses from: "A", "B" … or "yes", "no". Empty: A to E.
	Options []string

	// Tolerance is how far a Number may be off, relative to Value. 0: exactly equal,
	// as decimal numbers.
	Tolerance float64
}

// Result is what became of an answer.
type Result struct {
	Outcome Outcome
	Found   string // the answer in its normal form; "" if Unparsed
	How     string // where it stood, or why there is none
}

// Validate reports what is wrong with what is expected.
func (e Expected) Validate() error {
	switch e.Kind {
	case Number:
		if _, ok := parseNumber(e.Value); !ok {
			return fmt.Errorf("%q is no number: write what the case expects as 42 or 3.5", head(e.Value, 60))
		}
		if e.Tolerance < 0 || e.Tolerance != e.Tolerance {
			return fmt.Errorf("a tolerance of %v: want 0 or more, relative to the value", e.Tolerance)
		}
	case Choice:
		if _, ok := e.option(e.Value); !ok {
			return fmt.Errorf("%q is none of the options %s", head(e.Value, 60), strings.Join(e.options(), ", "))
		}
	case Text, Phrase, Code:
		if trim(e.Value) == "" || e.Kind != Code && plain(e.Value) == "" {
			return fmt.Errorf("an empty text is expected, or one of quotes and stops alone, which are not compared: write words")
		}
	case Set:
		if _, ok := items(e.Value); !ok {
			return fmt.Errorf("%q lists nothing: write what is expected as a, b, c", head(e.Value, 60))
		}
	case JSON:
		if !json.Valid([]byte(e.Value)) {
			return fmt.Errorf("%q is no JSON", head(e.Value, 60))
		}
	default:
		return fmt.Errorf("there is no kind %q of answer: want one of %v", e.Kind, Kinds())
	}
	return nil
}

// Check finds the answer in a text and compares it. An Expected that is not valid
// finds nothing.
func (e Expected) Check(text string) Result {
	if err := e.Validate(); err != nil {
		return Result{How: err.Error()}
	}
	switch e.Kind {
	case Number:
		return e.number(text)
	case Choice:
		return e.choice(text)
	case JSON:
		return e.json(text)
	case Set:
		return e.set(text)
	case Code:
		return e.code(text)
	}
	said := plain(text)
	if said == "" {
		return Result{How: "the answer is empty"}
	}
	want := plain(e.Value)
	if e.Kind == Text {
		return compared(said == want, head(said, 200), "the whole answer")
	}
	at, ok := within(said, want)
	if !ok {
		return Result{Outcome: Wrong, How: "the phrase is not in the answer"}
	}
	return Result{Outcome: Right, Found: want, How: fmt.Sprintf("at byte %d", at)}
}

func compared(equal bool, found, how string) Result {
	if equal {
		return Result{Right, found, how}
	}
	return Result{Wrong, found, how}
}

// plain is a text but for case, runs of white space, quotes and stars around it and
// a full stop at its end.
func plain(s string) string {
	s = strings.Join(fields(strings.ToLower(narrow(s))), " ")
	s = strings.Trim(s, "\"'`*“”‘’ ")
	return strings.TrimRight(strings.TrimRight(s, ".。!"), "\"'`*“”‘’ ")
}

// within finds want in s with no letter or digit of a word cut off at its ends.
func within(s, want string) (at int, ok bool) {
	for from := 0; ; {
		i := strings.Index(s[from:], want)
		if i < 0 {
			return 0, false
		}
		i += from
		if boundary(s, i) && boundary(s, i+len(want)) {
			return i, true
		}
		from = i + 1
	}
}

func (e Expected) json(text string) Result {
	found, how, ok := FindJSON(text)
	if !ok {
		return Result{How: how}
	}
	return compared(sameJSON(found, []byte(e.Value), e.Tolerance), head(string(found), 200), how)
}

// sameJSON compares two JSON values: keys in any order, numbers as numbers.
func sameJSON(a, b []byte, tolerance float64) bool {
	x, err := decodeJSON(a)
	if err != nil {
		return false
	}
	y, err := decodeJSON(b)
	return err == nil && sameValue(x, y, tolerance)
}

func sameValue(a, b any, tolerance float64) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			w, ok := b[k]
			if !ok || !sameValue(v, w, tolerance) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameValue(a[i], b[i], tolerance) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, okX := parseNumber(a.String())
		y, okY := parseNumber(b.String())
		return okX && okY && near(x, y, tolerance)
	}
	return a == b
}

// near reports whether x is y, or off by no more than tolerance times y.
func near(x, y *big.Rat, tolerance float64) bool {
	if x.Cmp(y) == 0 {
		return true
	}
	t := new(big.Rat)
	if tolerance == 0 || t.SetFloat64(tolerance) == nil {
		return false
	}
	off := new(big.Rat).Sub(x, y)
	return off.Abs(off).Cmp(t.Mul(t, new(big.Rat).Abs(y))) <= 0
}

package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/assay-llm/assay/record"
)

// A num is a JSON number that may be missing: null, or what stood for NaN.
type num struct {
	v  float64
	ok bool
}

func (n *num) UnmarshalJSON(b []byte) error {
	*n = num{}
	if missing(b) {
		return nil
	}
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return fmt.Errorf("%s is not a number, or not of a usable size", clean(string(b), 40))
	}
	*n = num{v, true}
	return nil
}

// missing recognises null and the blank text that literals puts for NaN.
func missing(b []byte) bool { return string(b) == "null" || string(b) == `""` }

// mostTokens bounds a token count: far above any real one.
const mostTokens = 1 << 40

// A tally is a whole number from 0 on that may be missing. Some tools write 105.0.
type tally struct{ record.Count }

func (t *tally) UnmarshalJSON(b []byte) error {
	*t = tally{}
	if missing(b) {
		return nil
	}
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil || v != math.Trunc(v) || v < 0 || v > mostTokens {
		return fmt.Errorf("%s is not a count: a whole number from 0 on", clean(string(b), 40))
	}
	t.Count = record.Tokens(int64(v))
	return nil
}

// A stamp is an instant in nanoseconds since 1970 that may be missing.
type stamp struct {
	ns int64
	ok bool
}

func (s *stamp) UnmarshalJSON(b []byte) error {
	*s = stamp{}
	if missing(b) {
		return nil
	}
	ns, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		v, ferr := strconv.ParseFloat(string(b), 64)
		if ferr != nil || math.Abs(v) > math.MaxInt64/2 {
			return fmt.Errorf("%s is not an instant in nanoseconds", clean(string(b), 40))
		}
		ns = int64(v)
	}
	if ns < 0 || ns > math.MaxInt64/2 {
		return fmt.Errorf("%s is not an instant in nanoseconds since 1970", clean(string(b), 40))
	}
	*s = stamp{ns, true}
	return nil
}

// A text is a string; of anything else, its JSON.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	*t = ""
	if string(b) == "null" {
		return nil
	}
	var s string
	if json.Unmarshal(b, &s) != nil {
		s = string(b)
	}
	*t = text(s)
	return nil
}

// mostGaps bounds the gaps of one request.
const mostGaps = 1 << 20

// gaps is a list of numbers. It is parsed by hand because a hostile list must not
// grow in memory before it is counted.
type gaps []float64

func (g *gaps) UnmarshalJSON(b []byte) error {
	*g = nil
	if string(b) == "null" {
		return nil
	}
	if len(b) < 2 || b[0] != '[' {
		return errors.New("a list of numbers is wanted")
	}
	b = bytes.TrimSpace(b[1 : len(b)-1])
	if len(b) == 0 {
		return nil
	}
	n := bytes.Count(b, []byte{','}) + 1
	if n > mostGaps {
		return fmt.Errorf("a list of %d numbers is longer than any answer; the limit is %d", n, mostGaps)
	}
	out := make(gaps, 0, n)
	for more := true; more; {
		var field []byte
		field, b, more = bytes.Cut(b, []byte{','})
		v, err := strconv.ParseFloat(string(bytes.TrimSpace(field)), 64)
		if err != nil {
			return fmt.Errorf("element %d, %s, is not a number", len(out), clean(string(field), 40))
		}
		out = append(out, v)
	}
	*g = out
	return nil
}

// longest bounds what a file may say took its time: three years.
const longest = 1e8 // seconds

// nanoseconds rounds seconds; ok is false for what is no time that can pass.
func nanoseconds(seconds float64) (d time.Duration, ok bool) {
	if !(seconds >= 0 && seconds <= longest) {
		return 0, false
	}
	return time.Duration(math.Round(seconds * 1e9)), true
}

// clean bounds a text from a file to n characters and makes it harmless to show.
func clean(s string, n int) string {
	var b strings.Builder
	left := n
	for _, r := range s {
		if left == 0 {
			b.WriteString("…")
			break
		}
		left--
		switch {
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case unicode.IsPrint(r) && r != unicode.ReplacementChar:
			b.WriteRune(r)
		}
	}
	return strings.TrimSpace(b.String())
}

// literals blanks, in place and byte for byte, the NaN and Infinity that Python
// writes and JSON does not know: they mean that there is no number.
func literals(data []byte) {
	if !bytes.Contains(data, []byte("NaN")) && !bytes.Contains(data, []byte("Infinity")) {
		return
	}
	inString := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == 'N' && bytes.HasPrefix(data[i:], []byte("NaN")):
			i += copy(data[i:], `"" `) - 1
		case c == '-' && bytes.HasPrefix(data[i:], []byte("-Infinity")):
			i += copy(data[i:], "null     ") - 1
		case c == 'I' && bytes.HasPrefix(data[i:], []byte("Infinity")):
			i += copy(data[i:], "null    ") - 1
		}
	}
}

package engine

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of what Parse takes. An engine with hundreds of series a family stays
// far below them.
const (
	maxText   = 8 << 20 // bytes of an exposition
	maxLine   = 64 << 10
	maxSeries = 100_000
	maxLabels = 64      // of a series
	maxName   = 256     // bytes of a name
	maxLabel  = 4 << 10 // bytes of a label's value
)

// exposition is a scrape in the text format of Prometheus, 0.0.4. What OpenMetrics
// adds is read where it does not change the meaning.
type exposition struct {
	types   map[string]string   // by family, in lower case
	samples map[string][]sample // by name, suffixes such as _sum included
	series  int
}

// sample is one line: a series and its value. A NaN or an infinity says nothing: it is kept as NaN.
type sample struct {
	labels []label // sorted by name
	value  float64
}

type label struct{ name, value string }

// label returns the value of a label; ok is false when the series has none.
func (s *sample) label(name string) (value string, ok bool) {
	for _, l := range s.labels {
		if l.name == name {
			return l.value, true
		}
	}
	return "", false
}

// typeOf returns the declared type of a family, or "".
func (e *exposition) typeOf(family string) string {
	if t := e.types[family]; t != "" {
		return t
	}
	// OpenMetrics declares the counter x_total as x.
	if base, ok := strings.CutSuffix(family, "_total"); ok && e.types[base] == "counter" {
		return "counter"
	}
	return ""
}

// has reports whether a family is declared or has series.
func (e *exposition) has(family string) bool {
	return e.typeOf(family) != "" || len(e.samples[family]) > 0 || len(e.samples[family+"_count"]) > 0
}

// parse reads an exposition. One bad line makes all of it bad: half of the numbers
// of an engine are not those of the engine.
func parse(data []byte) (*exposition, error) {
	if len(data) > maxText {
		return nil, fmt.Errorf("the metrics have more than %d bytes", maxText)
	}
	e := &exposition{types: make(map[string]string), samples: make(map[string][]sample)}
	seen := make(map[string]struct{})
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if len(line) > maxLine {
			return nil, fmt.Errorf("line %d of the metrics has more than %d bytes", number, maxLine)
		}
		text := strings.Trim(string(bytes.TrimRight(line, "\r\n")), " \t")
		var err error
		switch {
		case text == "":
		case text[0] == '#':
			err = e.comment(text)
		default:
			err = e.line(text, seen)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d of the metrics: %w", number, err)
		}
	}
	return e, nil
}

// comment keeps what # TYPE says.
func (e *exposition) comment(text string) error {
	f := strings.Fields(text)
	if len(f) < 2 || f[0] != "#" || f[1] != "TYPE" {
		return nil
	}
	if len(f) != 4 || !isName(f[2], true) {
		return errors.New("a TYPE that is not # TYPE name type")
	}
	kind := strings.ToLower(f[3])
	if was, again := e.types[f[2]]; again && was != kind {
		return fmt.Errorf("%.80q is declared as %.20q and as %.20q", f[2], was, kind)
	}
	if len(e.types) >= maxSeries {
		return fmt.Errorf("more than %d families", maxSeries)
	}
	e.types[f[2]] = kind
	return nil
}

// line reads name{label="value",…} value [timestamp] [# exemplar].
func (e *exposition) line(text string, seen map[string]struct{}) error {
	end := strings.IndexAny(text, "{ \t")
	if end < 0 || !isName(text[:end], true) {
		return fmt.Errorf("%.40q does not begin with a name and a value", text)
	}
	name, rest := text[:end], strings.TrimLeft(text[end:], " \t")
	var s sample
	if strings.HasPrefix(rest, "{") {
		var err error
		if s.labels, rest, err = readLabels(rest[1:]); err != nil {
			return err
		}
	}
	rest, _, _ = strings.Cut(rest, "#")
	f := strings.Fields(rest)
	if len(f) < 1 || len(f) > 2 {
		return fmt.Errorf("%.80q has no value, or more than a value and a time", name)
	}
	var err error
	if s.value, err = readNumber(f[0]); err != nil {
		return err
	}
	if len(f) == 2 {
		if _, err := readNumber(f[1]); err != nil {
			return err
		}
	}
	key := s.key(name)
	if _, twice := seen[key]; twice {
		return fmt.Errorf("a series of %.80q stands twice", name)
	}
	if e.series++; e.series > maxSeries {
		return fmt.Errorf("more than %d series", maxSeries)
	}
	seen[key] = struct{}{}
	e.samples[name] = append(e.samples[name], s)
	return nil
}

// key identifies a series.
func (s *sample) key(name string) string {
	var b strings.Builder
	b.WriteString(name)
	for _, l := range s.labels {
		b.WriteByte(0)
		b.WriteString(l.name)
		b.WriteByte('=')
		b.WriteString(strconv.Quote(l.value))
	}
	return b.String()
}

// readLabels reads label="value",…} and returns what stands behind it.
func readLabels(s string) (labels []label, rest string, err error) {
	for {
		s = strings.TrimLeft(s, " \t")
		if rest, done := strings.CutPrefix(s, "}"); done {
			slices.SortFunc(labels, func(a, b label) int { return strings.Compare(a.name, b.name) })
			for i := 1; i < len(labels); i++ {
				if labels[i].name == labels[i-1].name {
					return nil, "", fmt.Errorf("label %.80q stands twice", labels[i].name)
				}
			}
			return labels, rest, nil
		}
		name, after, ok := strings.Cut(s, "=")
		name = strings.TrimRight(name, " \t")
		if !ok || !isName(name, false) {
			return nil, "", fmt.Errorf("%.40q is not a label", name)
		}
		value, after, err := readText(strings.TrimLeft(after, " \t"))
		if err != nil {
			return nil, "", fmt.Errorf("label %.80q: %w", name, err)
		}
		if labels = append(labels, label{name, value}); len(labels) > maxLabels {
			return nil, "", fmt.Errorf("more than %d labels", maxLabels)
		}
		s = strings.TrimLeft(after, " \t")
		if after, more := strings.CutPrefix(s, ","); more {
			s = after
		} else if !strings.HasPrefix(s, "}") {
			return nil, "", errors.New("labels without , or } behind one")
		}
	}
}

// readText reads "…" with the escapes \\, \" and \n.
func readText(s string) (text, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		return "", "", errors.New("its value is not in quotes")
	}
	var b []byte
	for i := 1; i < len(s); i++ {
		switch c := s[i]; c {
		case '"':
			if !utf8.Valid(b) {
				return "", "", errors.New("its value is not UTF-8")
			}
			return string(b), s[i+1:], nil
		case '\\':
			i++
			switch {
			case i == len(s):
				return "", "", errors.New("its value has no end")
			case s[i] == 'n':
				b = append(b, '\n')
			case s[i] == '\\' || s[i] == '"':
				b = append(b, s[i])
			default:
				return "", "", errors.New(`its value has an escape other than \\, \" and \n`)
			}
		default:
			b = append(b, c)
		}
		if len(b) > maxLabel {
			return "", "", fmt.Errorf("its value has more than %d bytes", maxLabel)
		}
	}
	return "", "", errors.New("its value has no end")
}

// readNumber reads a value. NaN and infinities come back as NaN: unknown.
func readNumber(s string) (float64, error) {
	if strings.ContainsAny(s, "_pPxX") { // Go's numbers, not those of the format
		return 0, fmt.Errorf("%.40q is not a number", s)
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("%.40q is not a number", s)
	}
	if math.IsInf(v, 0) {
		v = math.NaN()
	}
	return v, nil
}

// isName reports whether s is the name of a metric, or of a label, which has no colons.
func isName(s string, metric bool) bool {
	if s == "" || len(s) > maxName || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || metric && c == ':') {
			return false
		}
	}
	return true
}

package report

import (
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// clean makes a text from outside harmless to whoever shows it: escape
// sequences, control and bidirectional characters, invisible ones and invalid
// UTF-8 go; line breaks become blanks, unless lines are to be kept.
func clean(s string, lines bool) string {
	if harmless(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\x1b' || r == '\u009b':
			n = sequence(s[i:], n)
		case r == utf8.RuneError && n == 1:
			b.WriteRune(utf8.RuneError)
		case r == '\n' && lines:
			b.WriteByte('\n')
		case r == '\r' && lines:
		case r == '\n' || r == '\r' || r == '\t' || r == '\v' || r == '\f' || r == '\u0085' || r == '\u2028' || r == '\u2029':
			b.WriteByte(' ')
		case !hidden(r):
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

func harmless(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// hidden reports whether the character is a control, changes the direction of
// text or cannot be seen: format characters are all of those.
func hidden(r rune) bool {
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r) || r == 0xfffe || r == 0xffff ||
		r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0 // fillers
}

// sequence returns the length of the terminal escape sequence at the start of s.
func sequence(s string, intro int) int {
	i := intro
	if intro == 1 { // ESC
		if i >= len(s) {
			return i
		}
		switch s[i] {
		case '[':
			i++
		case ']', 'P', '_', '^', 'X': // a string, up to BEL or ESC \
			end := strings.IndexAny(s[i:], "\a\x1b")
			switch {
			case end < 0:
				return i + 1 // never ended: show what it hides
			case s[i+end] == '\a':
				return i + end + 1
			case strings.HasPrefix(s[i+end:], "\x1b\\"):
				return i + end + 2
			}
			return i + end
		default:
			if s[i] >= ' ' && s[i] < 0x7f {
				return i + 1
			}
			return i
		}
	}
	for i < len(s) && s[i] >= ' ' && s[i] < '@' {
		i++
	}
	if i < len(s) && s[i] >= '@' && s[i] < 0x7f {
		i++
	}
	return i
}

// Scrub returns a deep copy of a document in which every text is harmless to
// whoever shows it: without escape sequences, control, bidirectional and invisible
// characters. For documents of other packages that quote what a server sent.
func Scrub[T any](v *T) *T { return scrub(v) }

// scrub returns a deep copy of v in which every text is clean. No field can be
// forgotten, now or later. A field named Suite keeps its lines.
func scrub[T any](v *T) *T {
	return scrubbed(reflect.ValueOf(v), false).Interface().(*T)
}

var timeType = reflect.TypeFor[time.Time]()

func scrubbed(v reflect.Value, lines bool) reflect.Value {
	switch v.Kind() {
	case reflect.String:
		out := reflect.New(v.Type()).Elem()
		out.SetString(clean(v.String(), lines))
		return out
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(scrubbed(v.Elem(), lines))
		return out
	case reflect.Struct:
		if v.Type() == timeType {
			return v
		}
		out := reflect.New(v.Type()).Elem()
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				out.Field(i).Set(scrubbed(v.Field(i), f.Name == "Suite"))
			}
		}
		return out
	case reflect.Slice:
		return scrubbedSlice(v)
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for it := v.MapRange(); it.Next(); {
			out.SetMapIndex(scrubbed(it.Key(), false), scrubbed(it.Value(), it.Key().String() == "config"))
		}
		return out
	}
	return v
}

func scrubbedSlice(v reflect.Value) reflect.Value {
	if v.IsNil() {
		return v
	}
	out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	switch v.Type().Elem().Kind() {
	case reflect.String, reflect.Pointer, reflect.Struct, reflect.Slice, reflect.Map:
		for i := range v.Len() {
			out.Index(i).Set(scrubbed(v.Index(i), false))
		}
	default:
		reflect.Copy(out, v)
	}
	return out
}

// Clean makes a text from outside, such as a model's answer, harmless to the
// terminal that shows it: no escape sequence, no control, bidirectional or invisible
// character. Line breaks stay if lines is set, and are blanks if not.
func Clean(s string, lines bool) string { return clean(s, lines) }

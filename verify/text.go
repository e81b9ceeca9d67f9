package verify

import (
	"strings"
	"unicode"
)

// space reports whether Python's str.strip and \s take r for white space: those of
// Unicode and the four information separators of ASCII. The instructions of
// IFEval are defined by it.
func space(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

func trim(s string) string { return strings.TrimFunc(s, space) }

func fields(s string) []string { return strings.FieldsFunc(s, space) }

// wordRune reports whether Python's \w matches r.
func wordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }

// Classes of Python's regular expressions as Go's write them.
const (
	reSpace = `[\s\p{Z}\x{85}\x{b}\x{1c}-\x{1f}]`
	reDigit = `\p{Nd}`
	reWord  = `[\p{L}\p{N}_]`
)

// narrow turns full-width forms into the ASCII characters that they stand for,
// since models that write Chinese or Japanese use either.
func narrow(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= '！' && r <= '～':
			return r - '！' + '!'
		case r == '　':
			return ' '
		case r == '−', r == '–':
			return '-'
		}
		return r
	}, s)
}

// head returns the first n bytes of s at most, cut between characters.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

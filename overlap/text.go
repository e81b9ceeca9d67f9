package overlap

import (
	"unicode"
	"unicode/utf8"
)

// The reference implementations are Python programs, whose strings know other
// spaces and another lower case than package strings.

// isSpace reports whether Python's str.split splits at r. Beyond
// [unicode.IsSpace] it does at the separators U+001C to U+001F.
func isSpace(r rune) bool {
	if r < utf8.RuneSelf {
		return asciiSpace[r]
	}
	return unicode.IsSpace(r)
}

var asciiSpace = [utf8.RuneSelf]bool{' ': true, '\t': true, '\n': true, '\v': true, '\f': true, '\r': true, 0x1c: true, 0x1d: true, 0x1e: true, 0x1f: true}

// trimRight cuts the spaces at the end.
func trimRight(s string) string {
	for len(s) > 0 {
		r, n := utf8.DecodeLastRuneInString(s)
		if !isSpace(r) {
			break
		}
		s = s[:len(s)-n]
	}
	return s
}

func trimLeft(s string) string {
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if !isSpace(r) {
			break
		}
		s = s[n:]
	}
	return s
}

// appendLower appends s in lower case as Python's str.lower makes it: full case
// mapping, in which U+0130 becomes two runes and a sigma at the end of a word
// its final form.
func appendLower(dst []byte, s string) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			dst = append(dst, c)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch r {
		case 'İ':
			dst = append(dst, "i̇"...)
		case 'Σ':
			if finalSigma(s[:i], s[i+n:]) {
				dst = append(dst, "ς"...)
			} else {
				dst = append(dst, "σ"...)
			}
		default:
			dst = utf8.AppendRune(dst, unicode.ToLower(r))
		}
		i += n
	}
	return dst
}

// finalSigma is the condition Final_Sigma of Unicode's SpecialCasing.txt.
func finalSigma(before, after string) bool {
	for {
		r, n := utf8.DecodeLastRuneInString(before)
		if n == 0 {
			return false
		}
		if !caseIgnorable(r) {
			if !cased(r) {
				return false
			}
			break
		}
		before = before[:len(before)-n]
	}
	for _, r := range after {
		if !caseIgnorable(r) {
			return !cased(r)
		}
	}
	return true
}

func cased(r rune) bool {
	return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lt, unicode.Other_Uppercase, unicode.Other_Lowercase)
}

func caseIgnorable(r rune) bool {
	switch r {
	case '\'', '.', ':', '·', 0x387, 0x55f, 0x5f4, '‘', '’', 0x2024, 0x2027, 0xfe13, 0xfe52, 0xfe55, 0xff07, 0xff0e, 0xff1a:
		return true
	}
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk)
}

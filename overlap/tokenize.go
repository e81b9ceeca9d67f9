package overlap

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Tokenizer says how text becomes words. The empty one is the default of the
// metric.
type Tokenizer string

// The tokenizers of sacrebleu under its names, and two more.
const (
	T13a   Tokenizer = "13a"  // mteval-v13a: punctuation apart, for text with spaces in Latin script
	Intl   Tokenizer = "intl" // mteval-v14: punctuation and symbols of all scripts apart
	Zh     Tokenizer = "zh"   // each Chinese character a word, the rest as 13a
	Char   Tokenizer = "char" // each character a word
	None   Tokenizer = "none" // words are between spaces: for text that is tokenized already
	Native Tokenizer = "rouge"

	// ZhFixed is Zh without its mistake in two ranges of characters, by which it
	// takes dashes, quotation marks and arrows for Chinese and the ideographs
	// beyond U+20000 not (github.com/mjpost/sacrebleu/issues/298).
	ZhFixed Tokenizer = "zh-fixed"
)

// tokenizing turns text into words separated by spaces, in buffers that it
// keeps. The passes are the regular expressions of sacrebleu, in order; all but
// those of intl look for ASCII only, so they go over bytes.
type tokenizing struct {
	a, b []byte
}

// run returns the text with spaces between words, until the next call.
func (t *tokenizing) run(kind Tokenizer, s string) []byte {
	switch kind {
	case T13a:
		t.a = append(t.a[:0], ' ')
		t.a = append(t.a, unescape(unwrap(s, "-\n"))...)
		t.a = append(t.a, ' ')
		t.punctuation(false)
	case Zh:
		t.spread(s, isZh)
		t.punctuation(false)
	case ZhFixed:
		t.spread(s, isChinese)
		t.punctuation(false)
	case Intl:
		t.international(s)
	case Char:
		t.a = t.a[:0]
		for _, r := range s {
			t.a = append(utf8.AppendRune(t.a, r), ' ')
		}
	default:
		t.a = append(t.a[:0], s...)
	}
	return t.a
}

// unwrap joins lines, and words that the hyphen divides.
func unwrap(s, hyphen string) string {
	if hyphen == "-\n" {
		s = strings.ReplaceAll(s, "<skipped>", "")
	}
	s = strings.ReplaceAll(s, hyphen, "")
	return strings.ReplaceAll(s, "\n", " ")
}

// unescape replaces the entities one after the other, so that "&amp;lt;" is "<".
func unescape(s string) string {
	if strings.IndexByte(s, '&') < 0 {
		return s
	}
	for _, e := range [...][2]string{{"&quot;", `"`}, {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}} {
		s = strings.ReplaceAll(s, e[0], e[1])
	}
	return s
}

// spread puts spaces around the runes of which is.
func (t *tokenizing) spread(s string, is func(rune) bool) {
	t.a = t.a[:0]
	for _, r := range trimLeft(trimRight(s)) {
		if is(r) {
			t.a = append(utf8.AppendRune(append(t.a, ' '), r), ' ')
		} else {
			t.a = utf8.AppendRune(t.a, r)
		}
	}
}

// apart marks the class [{-~[-` -&(-+:-@/] but for the space: spaces around a
// space change nothing in the passes that follow.
var apart = func() (is [256]bool) {
	for _, c := range "{|}~[\\]^_`!\"#$%&()*+:;<=>?@/" {
		is[c] = true
	}
	return is
}()

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isPoint(c byte) bool { return c == '.' || c == ',' }

// punctuation is sacrebleu's TokenizerRegexp on t.a; possessive adds Tercom's
// rule for "'s".
func (t *tokenizing) punctuation(possessive bool) {
	out := t.b[:0]
	for _, c := range t.a {
		if apart[c] {
			out = append(out, ' ', c, ' ')
		} else {
			out = append(out, c)
		}
	}
	if possessive && bytes.Contains(out, []byte("'s ")) {
		out = bytes.ReplaceAll(out, []byte("'s "), []byte(" 's "))
	}
	// A match takes both of its characters, so that the next begins after them.
	in, out := out, t.a[:0]
	for i := 0; i < len(in); i++ { // ([^0-9])([\.,])
		out = append(out, in[i])
		if i+1 < len(in) && !isDigit(in[i]) && isPoint(in[i+1]) {
			out = append(out, ' ', in[i+1], ' ')
			i++
		}
	}
	in, out = out, in[:0]
	for i := 0; i < len(in); i++ { // ([\.,])([^0-9])
		if i+1 < len(in) && isPoint(in[i]) && !isDigit(in[i+1]) {
			out = append(out, ' ', in[i], ' ', in[i+1])
			i++
		} else {
			out = append(out, in[i])
		}
	}
	in, out = out, in[:0]
	for i := 0; i < len(in); i++ { // ([0-9])(-)
		out = append(out, in[i])
		if i+1 < len(in) && isDigit(in[i]) && in[i+1] == '-' {
			out = append(out, ' ', '-', ' ')
			i++
		}
	}
	t.a, t.b = out, in
}

// international is sacrebleu's TokenizerV14International.
func (t *tokenizing) international(s string) {
	in, out := append(t.a[:0], s...), t.b[:0]
	for i := 0; i < len(in); { // (\P{N})(\p{P})
		r, n := utf8.DecodeRune(in[i:])
		out = append(out, in[i:i+n]...)
		i += n
		if q, m := utf8.DecodeRune(in[i:]); m > 0 && unicode.IsPunct(q) && !unicode.IsNumber(r) {
			out = append(append(append(out, ' '), in[i:i+m]...), ' ')
			i += m
		}
	}
	in, out = out, in[:0]
	for i := 0; i < len(in); { // (\p{P})(\P{N})
		r, n := utf8.DecodeRune(in[i:])
		if q, m := utf8.DecodeRune(in[i+n:]); m > 0 && unicode.IsPunct(r) && !unicode.IsNumber(q) {
			out = append(append(append(out, ' '), in[i:i+n]...), ' ')
			out = append(out, in[i+n:i+n+m]...)
			i += n + m
		} else {
			out = append(out, in[i:i+n]...)
			i += n
		}
	}
	in, out = out, in[:0]
	for i := 0; i < len(in); { // (\p{S})
		r, n := utf8.DecodeRune(in[i:])
		if unicode.IsSymbol(r) {
			out = append(append(append(out, ' '), in[i:i+n]...), ' ')
		} else {
			out = append(out, in[i:i+n]...)
		}
		i += n
	}
	t.a, t.b = out, in
}

// chinese has the ranges that sacrebleu's zh means.
var chinese = [...][2]rune{
	{0x3400, 0x4db5},
	{0x4e00, 0x9fbb},
	{0xf900, 0xfa2d},
	{0xfa30, 0xfa6a},
	{0xfa70, 0xfad9},
	{0xff00, 0xffef},
	{0x2e80, 0x2eff},
	{0x3000, 0x303f},
	{0x31c0, 0x31ef},
	{0x2f00, 0x2fdf},
	{0x2ff0, 0x2fff},
	{0x3100, 0x312f},
	{0x31a0, 0x31bf},
	{0xfe10, 0xfe1f},
	{0xfe30, 0xfe4f},
	{0x2600, 0x26ff},
	{0x2700, 0x27bf},
	{0x3200, 0x32ff},
	{0x3300, 0x33ff},
}

func inChinese(r rune) bool {
	for _, c := range chinese {
		if c[0] <= r && r <= c[1] {
			return true
		}
	}
	return false
}

// isZh has "\u20000" and "\u2f800" for U+20000 and U+2F800: two characters
// each, and thus the ranges from one after the first character on.
func isZh(r rune) bool {
	return r >= 0x2001 && (r <= 0x2a6d || 0x2f81 <= r && r <= 0x2fa1 || inChinese(r))
}

func isChinese(r rune) bool {
	return r >= 0x2600 && (0x20000 <= r && r <= 0x2a6d6 || 0x2f800 <= r && r <= 0x2fa1d || inChinese(r))
}

// tercom is the tokenizer of TER.
func (t *tokenizing) tercom(m TER, s string) []byte {
	s = trimRight(s)
	if !m.CaseSensitive {
		t.b = appendLower(t.b[:0], s)
		s = string(t.b)
	}
	t.a = append(t.a[:0], s...)
	if m.Normalized {
		t.a = append(t.a[:0], ' ')
		t.a = append(t.a, unescape(unwrap(s, "\n-"))...)
		t.a = append(t.a, ' ')
		t.punctuation(true)
		if m.Asian {
			t.asian(isAsian, true)
		}
	}
	if m.NoPunctuation {
		t.a = bytes.Map(func(r rune) rune {
			if strings.ContainsRune(`.,?:;!"()`, r) {
				return -1
			}
			return r
		}, t.a)
		if m.Asian {
			t.asian(isAsianPunct, false)
		}
	}
	return t.a
}

// asian puts spaces around the runes of which is, or deletes them.
func (t *tokenizing) asian(is func(rune) bool, keep bool) {
	in, out := t.a, t.b[:0]
	for i := 0; i < len(in); {
		r, n := utf8.DecodeRune(in[i:])
		switch {
		case !is(r):
			out = append(out, in[i:i+n]...)
		case keep:
			out = append(append(append(out, ' '), in[i:i+n]...), ' ')
		}
		i += n
	}
	t.a, t.b = out, in
}

// isAsian has the ranges of Tercom's normalizer as sacrebleu writes them, which
// has U+3F22 for U+32FF. Its rules for kana have "^" outside of the class and
// match nothing but a text that begins with kana, which none does after a space
// was put before it.
func isAsian(r rune) bool {
	return 0x4e00 <= r && r <= 0x9fff || 0x3400 <= r && r <= 0x4dbf ||
		0x31c0 <= r && r <= 0x31ef || 0x2e80 <= r && r <= 0x2eff ||
		0x3300 <= r && r <= 0x33ff || 0xf900 <= r && r <= 0xfaff || 0xfe30 <= r && r <= 0xfe4f ||
		0x3200 <= r && r <= 0x3f22 || isAsianPunct(r)
}

func isAsianPunct(r rune) bool {
	switch r {
	case 0x3001, 0x3002, 0x30fb, 0xff0e, 0xff0c, 0xff1f, 0xff1a, 0xff1b, 0xff01, 0xff02, 0xff08, 0xff09:
		return true
	}
	return 0x3008 <= r && r <= 0x3011 || 0x3014 <= r && r <= 0x301f || 0xff61 <= r && r <= 0xff65
}

package verify

import (
	"math/big"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A number in a text: a sign, a currency, digits in groups or not, a fraction, an
// exponent, a percent sign or a Chinese multiple. RE2: linear in the text.
var numberRE = regexp.MustCompile(`[-+]?[$€£¥]?[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,3}(?:[ \x{a0}\x{202f}][0-9]{3})+|[0-9]+)?(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?(?:/[0-9]+)?[万亿千百]?%?`)

// answerRE is what stands before a final answer. The last one in a text counts.
var answerRE = regexp.MustCompile(`(?i)####|\\boxed\{|"answer"\s*:\s*"?|\bfinal answer\b(?:\s+is)?\s*:?|\banswer\b(?:\s+is|\s*[:=])|(?:最终)?答案(?:是|为)?\s*[:：]?`)

// maxDigits bounds the numbers that are compared: exact arithmetic on longer ones
// would cost more than it tells.
const maxDigits = 400

// parseNumber reads a number in the notations that models use. The value is exact.
func parseNumber(s string) (*big.Rat, bool) {
	s = trim(narrow(s))
	if len(s) > maxDigits {
		return nil, false
	}
	s = strings.TrimFunc(s, func(r rune) bool { return strings.ContainsRune("$€£¥", r) })
	scale := big.NewRat(1, 1)
	if t, ok := strings.CutSuffix(s, "%"); ok {
		s = t
		scale.SetFrac64(1, 100)
	}
	for _, m := range []struct {
		mark string
		of   int64
	}{{"百", 1e2}, {"千", 1e3}, {"万", 1e4}, {"亿", 1e8}} {
		if t, ok := strings.CutSuffix(s, m.mark); ok {
			s = t
			scale.Mul(scale, big.NewRat(m.of, 1))
			break
		}
	}
	s = strings.NewReplacer("$", "", "€", "", "£", "", "¥", "", ",", "", " ", "", "\u00a0", "", "\u202f", "").Replace(s)
	if i := strings.IndexAny(s, "eE"); i >= 0 && len(strings.TrimLeft(s[i+1:], "+-0")) > 3 {
		return nil, false // 10 to the power of a thousand and more
	}
	// SetString also reads 0x1p-2 and 1_000, which no answer means.
	if s == "" || strings.Trim(s, "+-.0123456789eE/") != "" || !strings.ContainsAny(s, "0123456789") {
		return nil, false
	}
	v, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil, false
	}
	return v.Mul(v, scale), true
}

// deniedRE matches what stands before a number that an answer denies.
var deniedRE = regexp.MustCompile(`(?i)(?:\bnot|\bcannot be|n't(?: be)?|不是|并非)\s*$`)

// hedgedRE matches two numbers between which an answer does not choose.
var hedgedRE = regexp.MustCompile(`(?i)\d[\d.,]*[)*%]*\s*(?:\bor\b|或者?)\s*[(*$€£¥]*-?\d|\bbetween\s+[(*$€£¥]*-?\d[\d.,]*\D{0,20}\band\s+[(*$€£¥]*-?\d|\bfrom\s+[(*$€£¥]*-?\d[\d.,]*\D{0,20}\bto\s+[(*$€£¥]*-?\d`)

// number finds the answer: what follows the last mark of a final answer, else the
// last number of the text. What is denied is none, and of two between which the
// answer does not choose neither is.
func (e Expected) number(text string) Result {
	want, _ := parseNumber(e.Value)
	text = narrow(text)
	if marks := answerRE.FindAllStringIndex(text, -1); len(marks) > 0 {
		after := statement(text[marks[len(marks)-1][1]:])
		if hedgedRE.MatchString(after) {
			return Result{How: "the final answer names two numbers"}
		}
		if found := numbers(after); len(found) > 0 {
			// "answer: 3 + 4 = 7" gives its result after the last equals sign.
			pick := found[0]
			if i := strings.LastIndexByte(after, '='); i >= 0 {
				if rest := numbers(after[i+1:]); len(rest) > 0 {
					pick = rest[0]
				}
			}
			return numberResult(pick, want, e.Tolerance, "after the mark of a final answer")
		}
	}
	found := numbers(text)
	if len(found) == 0 {
		return Result{How: "there is no number in the answer"}
	}
	if line := text[strings.LastIndexByte(strings.TrimRightFunc(text, space), '\n')+1:]; hedgedRE.MatchString(line) {
		return Result{How: "the last line names two numbers"}
	}
	return numberResult(found[len(found)-1], want, e.Tolerance, "the last number")
}

// statement is what a mark introduces: up to the end of its line, sentence or box.
func statement(after string) string {
	after = strings.TrimLeftFunc(after, space)
	if i := strings.IndexAny(after, "\n}"); i >= 0 {
		after = after[:i]
	}
	if i := strings.Index(after, ". "); i >= 0 {
		after = after[:i]
	}
	return after
}

func numberResult(found string, want *big.Rat, tolerance float64, how string) Result {
	v, ok := parseNumber(found)
	if !ok {
		return Result{How: "the number " + head(found, 40) + " cannot be read"}
	}
	return compared(near(v, want, tolerance), found, how)
}

// numbers lists the numbers of a text that stand by themselves and are not denied:
// the 3 of "GPT3" and of "3km" is none, while 3个 has one; nor is a part of 12:30 or
// of 1.000.000, which means a thousand times more in some countries than in others.
func numbers(text string) []string {
	var out []string
	for _, at := range numberRE.FindAllStringIndex(text, -1) {
		s := text[at[0]:at[1]]
		if !strings.ContainsAny(s, "0123456789") || latin(utf8.DecodeLastRuneInString(text[:at[0]])) || latin(utf8.DecodeRuneInString(text[at[1]:])) {
			continue
		}
		if split(text, at[0], at[1]) || deniedRE.MatchString(text[max(0, at[0]-24):at[0]]) {
			continue
		}
		out = append(out, s)
	}
	return out
}

// split reports whether the number goes on on the other side of a colon or a point.
func split(text string, from, to int) bool {
	digit := func(i int) bool { return i >= 0 && i < len(text) && text[i] >= '0' && text[i] <= '9' }
	mark := func(i int) bool { return i >= 0 && i < len(text) && (text[i] == ':' || text[i] == '.') }
	return mark(to) && digit(to+1) || mark(from-1) && digit(from-2) || mark(from) && digit(from-1)
}

// latin takes what the decoders of package utf8 return.
func latin(r rune, _ int) bool { return r == '_' || unicode.Is(unicode.Latin, r) }

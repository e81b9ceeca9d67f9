package haystack

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Reading is what an answer says.
type Reading struct {
	// Found reports whether all that was asked for is in the answer, and nothing
	// else of its kind. It is false of an Absent, where there is nothing to find.
	Found bool
	// Invented reports whether the answer to an Absent has a value all the same.
	Invented bool
	// Complete is the share of what was asked for that the answer has, 0 to 1; NaN of an Absent.
	Complete float64
	// F1 is the harmonic mean of precision and recall over the words of the name that a
	// Coreference asks for, over its characters in Chinese; NaN of other kinds.
	F1 float64
}

// Read reads an answer. The readers by kind:
//
//   - a value: every group of seven digits, also with separators between them. It is
//     found if the answer has the wanted one and no other. Of a Contradiction the
//     earlier value may stand beside it, which tells of both.
//   - several values: those that were wanted, and no other, in the order asked for.
//   - a count: the last number, in digits or as a word.
//   - a name: the whole name, and none of the other people's.
//   - nothing, of an Absent: any value is invented, but that of another key beside
//     words that deny.
//
// What a reasoning model thinks before </think> is no part of its answer.
func (p *Probe) Read(answer string) Reading {
	if i := strings.LastIndex(answer, "</think>"); i >= 0 {
		answer = answer[i+len("</think>"):]
	}
	answer = halfWidth(answer)
	r := Reading{Complete: math.NaN(), F1: math.NaN()}
	switch p.Kind {
	case Absent:
		denied := denies(answer)
		r.Invented = slices.ContainsFunc(codes(answer), func(c string) bool { return !denied || !slices.Contains(p.others, c) })
		return r
	case Count:
		n, ok := lastCount(answer)
		r.Found = ok && strconv.Itoa(n) == p.want[0]
		r.Complete = yes(r.Found)
	case Coreference:
		p.readName(answer, &r)
	default:
		p.readCodes(codes(answer), &r)
	}
	return r
}

func yes(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (p *Probe) readCodes(got []string, r *Reading) {
	have := 0
	for _, w := range p.want {
		if slices.Contains(got, w) {
			have++
		}
	}
	r.Complete = float64(have) / float64(len(p.want))
	if p.Kind == Contradiction {
		got = slices.DeleteFunc(got, func(c string) bool { return c == p.others[0] })
	}
	r.Found = slices.Equal(got, p.want)
}

func (p *Probe) readName(answer string, r *Reading) {
	want, got := parts(p.want[0], p.Language), parts(answer, p.Language)
	common := 0
	left := slices.Clone(got)
	for _, w := range want {
		if i := slices.Index(left, w); i >= 0 {
			left = slices.Delete(left, i, i+1)
			common++
		}
	}
	r.Complete = float64(common) / float64(len(want))
	r.F1 = 2 * float64(common) / float64(len(want)+len(got))
	text := strings.Join(got, " ")
	has := func(name string) bool {
		return strings.Contains(" "+text+" ", " "+strings.Join(parts(name, p.Language), " ")+" ")
	}
	r.Found = has(p.want[0]) && !slices.ContainsFunc(p.others, has)
}

// parts are the words of a text in lower case, or its characters in Chinese.
func parts(s, language string) []string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if language != "zh" {
		return words
	}
	return strings.Split(strings.Join(words, ""), "")
}

// halfWidth turns the wide forms of digits and letters into the usual ones.
func halfWidth(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '！' && r <= '～' {
			return r - '！' + '!'
		}
		return r
	}, s)
}

var (
	digitsRE = regexp.MustCompile(`[0-9]+`)
	parted   = regexp.MustCompile(`[0-9]+(?:[ ,.\-–'_][0-9]+)+`)
)

// codeDigits is how many digits a value has.
const codeDigits = 7

// codes are the values in a text in their order, each once.
func codes(s string) (out []string) {
	add := func(c string) {
		if len(c) == codeDigits && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	// Digits in groups first, as 4,821,937; a group of seven of its own is a value already.
	s = parted.ReplaceAllStringFunc(s, func(group string) string {
		whole := strings.Join(digitsRE.FindAllString(group, -1), "")
		if len(whole) == codeDigits && !slices.ContainsFunc(digitsRE.FindAllString(group, -1), func(d string) bool { return len(d) == codeDigits }) {
			return whole
		}
		return group
	})
	for _, d := range digitsRE.FindAllString(s, -1) {
		add(d)
	}
	return out
}

var (
	englishNumbers = []string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}
	chineseNumbers = []rune("零一二三四五六七八九十")
	countRE        = regexp.MustCompile(`[0-9]+|(?i:\b(?:` + strings.Join(englishNumbers, "|") + `)\b)|[零一二两三四五六七八九十]+`)
)

// lastCount is the last number of a text.
func lastCount(s string) (n int, ok bool) {
	all := countRE.FindAllString(s, -1)
	if len(all) == 0 {
		return 0, false
	}
	last := all[len(all)-1]
	if n, err := strconv.Atoi(last); err == nil {
		return n, true
	}
	if i := slices.Index(englishNumbers, strings.ToLower(last)); i >= 0 {
		return i, true
	}
	return chineseCount([]rune(last))
}

// chineseCount reads 零 to 九十九.
func chineseCount(r []rune) (n int, ok bool) {
	digit := func(c rune) int {
		if c == '两' {
			return 2
		}
		return slices.Index(chineseNumbers, c)
	}
	switch {
	case len(r) == 1:
		return digit(r[0]), digit(r[0]) >= 0
	case len(r) == 2 && r[0] == '十' && digit(r[1]) < 10:
		return 10 + digit(r[1]), true
	case len(r) == 2 && r[1] == '十' && digit(r[0]) < 10:
		return 10 * digit(r[0]), true
	case len(r) == 3 && r[1] == '十' && digit(r[0]) < 10 && digit(r[2]) < 10:
		return 10*digit(r[0]) + digit(r[2]), true
	}
	return 0, false
}

var denialRE = regexp.MustCompile(`(?i)\b(?:not|never|isn't|doesn't|wasn't|don't|cannot|can't|no|none|neither|unknown|unstated|unspecified|absent|missing|n/a)\b` +
	`|未说明|没有|未提|未给|未记|未载|未注明|不知道|不清楚|无法|找不到|未知|并无|不存在`)

// denies reports whether a text says that something is not there.
func denies(s string) bool { return denialRE.MatchString(strings.ReplaceAll(s, "’", "'")) }

package scenario

import (
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longest is how much of a reply is read.
const longest = 32 << 10

// fold brings a text into the form in which it is read: at most 32 KiB, lower case,
// full-width forms as the ASCII characters that they stand for, straight quotes.
func fold(s string) string {
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "")
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= '！' && r <= '～':
			r = r - '！' + '!'
		case r == '￥':
			return '¥'
		case r == '　', r == '\u00a0', r == '\u202f':
			return ' '
		case r == '’', r == '‘':
			return '\''
		case r == '−', r == '–', r == '‑':
			return '-'
		}
		return unicode.ToLower(r)
	}, s)
}

// squash leaves the letters and digits of a folded text, by which references are
// compared: "AC-48 213" and "ac48213" are one.
func squash(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsNumber(r) || r == '@' || r == '.' {
			return r
		}
		return -1
	}, s)
}

// amount is a number as every notation of it has it.
func amount(s string) (string, bool) {
	s = strings.ReplaceAll(s, ",", "")
	if len(s) > 18 || s == "" || strings.Trim(s, "0123456789.") != "" || !strings.ContainsAny(s, "0123456789") {
		return "", false
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return "", false
	}
	if out := r.FloatString(4); strings.Contains(out, ".") {
		return strings.TrimRight(strings.TrimRight(out, "0"), "."), true
	}
	return r.FloatString(0), true
}

const monthWords = `jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?`

// The notations of folded texts. RE2: linear in the text.
var (
	isoDateRE  = regexp.MustCompile(`(\d{4})[-/](\d{1,2})[-/](\d{1,2})|(?:(\d{4})\s*年\s*)?(\d{1,2})\s*月\s*(\d{1,2})\s*[日号]?`)
	dayMonthRE = regexp.MustCompile(`\b(\d{1,2})(?:st|nd|rd|th)?\s+(?:of\s+)?(` + monthWords + `)\b\.?(?:,?\s+(\d{4}))?`)
	monthDayRE = regexp.MustCompile(`\b(` + monthWords + `)\b\.?\s+(?:the\s+)?(\d{1,2})(?:st|nd|rd|th)?\b(?:,?\s+(\d{4}))?`)
	moneyRE    = regexp.MustCompile(`(us\$|[$€£¥]|\b(?:usd|eur|gbp|cny|rmb)\b)\s?(\d[\d,]*(?:\.\d+)?)|(\d[\d,]*(?:\.\d+)?)\s?(?:(€|£|元|块钱|块|人民币|美元|欧元|英镑)|(usd|dollars?|eur|euros?|gbp|pounds?|cny|rmb|yuan)\b)`)
	codeRE     = regexp.MustCompile(`[\w.+-]+@[\w-]+\.[\w.-]*\w|\b[a-z]{1,8}-?\d[a-z0-9-]*\b`)
	digitsRE   = regexp.MustCompile(`\d[\d,]*(?:\.\d+)?`)
	hanRE      = regexp.MustCompile(`([零一二两三四五六七八九十百]+)\s*(?:个|位|人|名|张|间|份|台|座|席)`)
	wordRE     = regexp.MustCompile(`\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty)\b`)
)

var numberWords = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty")

var currencies = map[string]string{
	"us$": "USD", "$": "USD", "usd": "USD", "dollar": "USD", "dollars": "USD", "美元": "USD", "€": "EUR", "eur": "EUR", "euro": "EUR", "euros": "EUR", "欧元": "EUR",
	"£": "GBP", "gbp": "GBP", "pound": "GBP", "pounds": "GBP", "英镑": "GBP", "¥": "CNY", "cny": "CNY", "rmb": "CNY", "yuan": "CNY", "元": "CNY", "块钱": "CNY", "块": "CNY", "人民币": "CNY",
}

// han reads a number below a thousand in Chinese characters.
func han(s string) (string, bool) {
	total, digit := 0, -1
	for _, r := range s {
		if unit := map[rune]int{'十': 10, '百': 100}[r]; unit > 0 {
			if digit < 0 {
				digit = 1
			}
			total, digit = total+digit*unit, -1
			continue
		}
		d := slices.Index([]rune("零一二三四五六七八九"), r)
		if r == '两' {
			d = 2
		}
		if d < 0 || digit > 0 {
			return "", false // 一二三 is read out, and no number
		}
		digit = d
	}
	if digit > 0 {
		total += digit
	}
	return strconv.Itoa(total), total > 0
}

// date brings a date into ISO 8601; a year that is not told is 0000.
func date(year, month, day string) (string, bool) {
	m, err := strconv.Atoi(month)
	if err != nil {
		for i, name := range []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"} {
			if strings.HasPrefix(month, name) {
				m = i + 1
			}
		}
	}
	d, _ := strconv.Atoi(day)
	y, _ := strconv.Atoi(year)
	if m < 1 || m > 12 || d < 1 || d > 31 {
		return "", false
	}
	pad := func(n, to int) string { s := strconv.Itoa(n); return strings.Repeat("0", max(0, to-len(s))) + s }
	return pad(y, 4) + "-" + pad(m, 2) + "-" + pad(d, 2), true
}

// token is one value that stands in a folded text, whatever slot it may be of.
type token struct {
	kind  string // money, date, number, text
	value string
	at    int
	end   int
}

// mostTokens bounds the values of each kind that are read from a reply; no honest one
// has as many.
const mostTokens = 500

// tokens reads amounts, dates, references and numbers out of a folded text, each
// character at most once.
func tokens(text string) (out []token) {
	rest := []byte(text)
	take := func(re *regexp.Regexp, kind string, read func(m []string) (string, bool)) {
		for _, at := range re.FindAllSubmatchIndex(rest, mostTokens) {
			m := make([]string, len(at)/2)
			for i := range m {
				if at[2*i] >= 0 {
					m[i] = text[at[2*i]:at[2*i+1]]
				}
			}
			v, ok := read(m)
			if !ok {
				continue
			}
			out = append(out, token{kind, v, at[0], at[1]})
			for i := at[0]; i < at[1]; i++ {
				rest[i] = ' '
			}
		}
	}
	take(isoDateRE, "date", func(m []string) (string, bool) { return date(m[1]+m[4], m[2]+m[5], m[3]+m[6]) })
	take(dayMonthRE, "date", func(m []string) (string, bool) { return date(m[3], m[2], m[1]) })
	take(monthDayRE, "date", func(m []string) (string, bool) { return date(m[3], m[1], m[2]) })
	take(moneyRE, "money", func(m []string) (string, bool) {
		v, ok := amount(m[2] + m[3])
		return currencies[m[1]+m[4]+m[5]] + " " + v, ok
	})
	take(codeRE, "text", func(m []string) (string, bool) { return squash(m[0]), true })
	take(digitsRE, "number", func(m []string) (string, bool) { return amount(strings.TrimRight(m[0], ",")) })
	take(hanRE, "number", func(m []string) (string, bool) { return han(m[1]) })
	take(wordRE, "number", func(m []string) (string, bool) { return strconv.Itoa(slices.Index(numberWords, m[0])), true })
	return out
}

// parse reads a value of a slot, as a scenario or a JSON answer states it, into its
// one form: the name of a choice, 12, USD 49, 2026-03-05, or the text.
func (s *Scenario) parse(slot, given string) (string, bool) {
	k, _ := s.Slots.Get(slot)
	f := strings.TrimSpace(fold(given))
	if f == "" || len(given) > 400 {
		return "", false
	}
	switch k.Kind {
	case "enum":
		for _, c := range k.Values {
			if slices.ContainsFunc(c, func(form string) bool { return fold(form) == f }) {
				return c[0], true
			}
		}
		return "", false
	case "text":
		return strings.TrimSpace(given), true
	}
	for _, t := range tokens(f) {
		if t.kind == k.Kind && (k.Kind != "money" || t.at == 0 && t.end == len(f)) {
			return t.value, true
		}
		if k.Kind == "money" && t.kind == "number" && t.at == 0 && t.end == len(f) {
			return "? " + t.value, true
		}
	}
	return "", false
}

// sameValue reports whether two values of one kind agree; a currency or a year that
// one of them does not tell may be any.
func sameValue(kind, a, b string) bool {
	switch kind {
	case "money":
		ca, va, _ := strings.Cut(a, " ")
		cb, vb, _ := strings.Cut(b, " ")
		return va == vb && (ca == cb || ca == "?" || cb == "?")
	case "date":
		return len(a) == 10 && len(b) == 10 && a[4:] == b[4:] && (a[:4] == b[:4] || a[:4] == "0000" || b[:4] == "0000")
	case "text":
		return squash(fold(a)) == squash(fold(b))
	}
	return a == b
}

// word reports whether text[at:end] stands by itself: no Latin letter or digit goes on
// beside it.
func word(text string, at, end int) bool {
	edge := func(inner, outer rune) bool {
		plain := func(r rune) bool { return unicode.Is(unicode.Latin, r) || unicode.IsDigit(r) }
		return !plain(inner) || !plain(outer)
	}
	first, _ := utf8.DecodeRuneInString(text[at:])
	last, _ := utf8.DecodeLastRuneInString(text[:end])
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, _ := utf8.DecodeRuneInString(text[end:])
	return edge(first, before) && edge(last, after)
}

// occurrences lists where a folded form stands by itself in a folded text.
func occurrences(text, form string) (out [][2]int) {
	for from := 0; form != "" && len(out) < mostTokens; {
		i := strings.Index(text[from:], form)
		if i < 0 {
			break
		}
		at := from + i
		if word(text, at, at+len(form)) {
			out = append(out, [2]int{at, at + len(form)})
		}
		from = at + len(form)
	}
	return out
}

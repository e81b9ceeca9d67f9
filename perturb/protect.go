package perturb

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// text is a text as families see it.
type text struct {
	s     string
	keep  []span // what is protected, in order, without overlap
	words []span // English words, with their apostrophes
	han   bool   // Chinese characters outnumber English words
}

// span is a stretch of bytes.
type span struct{ from, to int }

var (
	// What is of code, of the wire, or to be filled in.
	literalRE = regexp.MustCompile("(?s:```.*?(?:```|$))|`[^`\n]*`|(?i:https?://|www\\.)[^\\s<>\"'，。）]+|[\\w.+-]+@[\\w-]+\\.[\\w.-]*\\w" +
		`|\{[^{}\n]{0,200}\}|<[^<>\n]{1,200}>|[$@#]\w+|--?[A-Za-z]\w*(?:-\w+)*=?|\b\w*_\w*\b|\b[a-z]+[A-Z]\w*|\b\w+(?:\.\w+)+\b|\b\w+\(\)|(?:\.{0,2}/)?\w[\w.-]*(?:/[\w.-]+)+`)
	// Numbers with what belongs to them: signs, currencies, units, letters of a code.
	digitsRE = regexp.MustCompile(`[A-Za-z$€£¥+-]*[0-9０-９][A-Za-z0-9０-９.,:/%°-]*`)
	// What is counted, in Chinese: a character of it belongs to the number.
	unitRE = regexp.MustCompile(`[0-9０-９] ?(?:个?(?:小时|星期|月)|分钟?|公斤|千克|公里|厘米|毫米|天|年|日|号|元|块|秒|周|岁|米|克|次|件|张|台)`)
	// Numbers in words, and what stands for one.
	countRE    = regexp.MustCompile(`(?i)\b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundreds?|thousands?|millions?|billions?|dozens?|half|halves|quarters?|twice|once|double|triple|first|second|third|fourth|fifth|percent|per cent)\b|第?[〇零一二三四五六七八九十百千万亿两半几壹贰叁肆伍陆柒捌玖拾佰仟兩幾萬億]+`)
	negationRE = regexp.MustCompile(`(?i)\b(?:not|no|never|none|nobody|nothing|nowhere|neither|nor|without|cannot|unless|except|unable|refuse[sd]?|deny|denies|denied|forbid(?:s|den)?|prohibit(?:s|ed)?)\b|[A-Za-z]*n['’]t\b|[不没沒无無非未别別勿莫否毋禁]`)
	// Words that an answer may turn on.
	logicRE = regexp.MustCompile(`(?i)\b(?:only|all|any|every|each|both|either|more|less|fewer|least|most|before|after|until|within|than|and|or|if|but)\b|[只仅僅都各每前后後内內外上下]`)
	quoteRE = regexp.MustCompile(`"[^"\n]{1,200}"|“[^”\n]{1,200}”|「[^」\n]{1,200}」|『[^』\n]{1,200}』|《[^》\n]{1,200}》`)
	labelRE = regexp.MustCompile(`(?m)^[ \t]*\(?[A-Za-z][.)：:、]|\([A-Z]\)|\b[B-HJ-Z]\b`)
	titleRE = regexp.MustCompile(`\p{Han}{1,2}(?:先生|女士|小姐|太太|老师|經理|经理|医生|律师)`)
	capsRE  = regexp.MustCompile(`\b[A-Z][A-Za-z]*(?:[-'’][A-Za-z]+)?`)
	wordRE  = regexp.MustCompile(`[A-Za-z]+(?:['’][A-Za-z]+)?`)
	plainRE = regexp.MustCompile(`^[0-9０-９]+(?:[.,．，][0-9０-９]+)*$`)
)

// read looks at a text for one family.
func read(s string, protect []string, k family) *text {
	t := &text{s: s}
	var keep []span
	all := func(re *regexp.Regexp) {
		for _, m := range re.FindAllStringIndex(s, -1) {
			keep = append(keep, span{m[0], m[1]})
		}
	}
	for _, re := range []*regexp.Regexp{literalRE, countRE, negationRE, logicRE, quoteRE, labelRE, titleRE} {
		all(re)
	}
	for _, m := range digitsRE.FindAllStringIndex(s, -1) {
		if !k.wide || !plainRE.MatchString(s[m[0]:m[1]]) {
			keep = append(keep, span{m[0], m[1]})
		}
	}
	if !k.wide {
		all(unitRE)
	}
	for _, p := range protect {
		for at := 0; p != ""; {
			i := strings.Index(s[at:], p)
			if i < 0 {
				break
			}
			keep = append(keep, span{at + i, at + i + len(p)})
			at += i + len(p)
		}
	}
	t.keep = merge(append(keep, names(s)...))
	for _, m := range wordRE.FindAllStringIndex(s, -1) {
		t.words = append(t.words, span{m[0], m[1]})
	}
	chinese := 0
	for _, r := range s {
		if isHan(r) {
			chinese++
		}
	}
	t.han = chinese > len(t.words)
	return t
}

// names finds what is written with a capital and does not begin a sentence, words
// in capitals, and words that begin one before another name.
func names(s string) (out []span) {
	found := capsRE.FindAllStringIndex(s, -1)
	for i, m := range found {
		w := s[m[0]:m[1]]
		next := i+1 < len(found) && found[i+1][0] == m[1]+1 && s[m[1]] == ' ' && !pronoun(s[found[i+1][0]:found[i+1][1]])
		switch {
		case pronoun(w):
		case len(w) > 1 && strings.ToUpper(w) == w, !begins(s, m[0]), next && !opener[strings.ToLower(w)]:
			out = append(out, span{m[0], m[1]})
		}
	}
	return out
}

// opener are words that begin a sentence and no name.
var opener = set("a an the my your our his her this that these those is are was were am do does did can could will would shall should may might must have has had what which who whose when where why how please hello hi dear in on at for to from of with since as so then also now today tell ask help give show let say")

func set(words string) map[string]bool {
	out := make(map[string]bool)
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

// pronoun reports whether w is I, alone or with what is contracted to it.
func pronoun(w string) bool {
	return w == "I" || strings.HasPrefix(w, "I'") || strings.HasPrefix(w, "I’")
}

// begins reports whether a sentence begins at byte i.
func begins(s string, i int) bool {
	before := strings.TrimRight(s[:i], " \t\"'“‘(（*")
	if before == "" {
		return true
	}
	r, _ := utf8.DecodeLastRuneInString(before)
	return strings.ContainsRune(".!?:;\n。！？：；，", r) || isHan(r) || strings.HasSuffix(before, "-") || strings.HasSuffix(before, "•")
}

// merge sorts spans and joins those that overlap.
func merge(spans []span) (out []span) {
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	for _, p := range spans {
		if n := len(out); n > 0 && p.from < out[n-1].to {
			out[n-1].to = max(out[n-1].to, p.to)
		} else if p.from < p.to {
			out = append(out, p)
		}
	}
	return out
}

// protected reports whether what lies from one byte to another touches what is
// protected. A place between two characters touches what it lies within.
func (t *text) protected(from, to int) bool {
	i, _ := slices.BinarySearchFunc(t.keep, from, func(p span, at int) int {
		if p.to <= at {
			return -1
		}
		return 1
	})
	if i == len(t.keep) {
		return false
	}
	if from == to {
		return t.keep[i].from < from
	}
	return t.keep[i].from < to
}

// facts lists what must be the same afterwards, sorted: numbers, codes, links,
// negations.
func facts(s string) (out []string) {
	for _, re := range []*regexp.Regexp{literalRE, digitsRE, countRE, negationRE} {
		for _, m := range re.FindAllString(s, -1) {
			if m = strings.TrimRight(strings.ToLower(m), ".,:/-"); m != "" {
				out = append(out, m)
			}
		}
	}
	slices.Sort(out)
	return out
}

// narrow writes what has full width in half.
func narrow(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 0xff01 && r <= 0xff5e:
			return r - 0xfee0
		case r == 0x3000:
			return ' '
		}
		return r
	}, s)
}

func isHan(r rune) bool { return unicode.Is(unicode.Han, r) }

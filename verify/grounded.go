package verify

import (
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// FactProper is a name in capital letters that a text mentions, in scripts that have
// them. Only [Claims] looks for it.
const FactProper FactKind = "proper"

// Claim is one checkable detail of an answer, and whether its source has it.
type Claim struct {
	Fact
	Supported bool
}

// Claims lists the details of an answer that a source can be searched for, each
// once: the facts that [Facts] reads, and names in capital letters. A claim is
// supported if the source has the fact in whatever notation; a number with a unit
// also if the source has the bare number, and a bare number if it is part of
// any fact of the source. So what is called unsupported seldom is supported, and
// an invention in words alone is not seen: that takes a judge. An answer without
// claims is neither grounded nor not.
//
// Give as source all that the answer may rest on: the question is a part of it.
// What an answer computes out of the source has no support in it.
func Claims(answer, source string) []Claim {
	answer, source = narrow(head(answer, 1<<20)), narrow(head(source, 1<<20))
	known := newSource(source)
	var out []Claim
	for _, f := range slices.Compact(Facts(markers.ReplaceAllString(answer, " ; "))) {
		out = append(out, Claim{f, known.has(f)})
	}
	for _, name := range proper(answer) {
		out = append(out, Claim{Fact{FactProper, strings.Join(name, " ")}, !slices.ContainsFunc(name, func(w string) bool { return !known.words[strings.ToLower(w)] })})
	}
	return out
}

// markers are numbers that only count lines.
var markers = regexp.MustCompile(`(?m)^[ \t]*(?:[0-9]{1,3}[.)]|\[[0-9]{1,3}\])[ \t]+|\[[0-9]{1,3}\]`)

// source is a text to look details up in.
type source struct {
	facts   []Fact
	numbers map[string]bool // that stand in it, alone or within a fact
	bare    map[string]bool // that stand in it alone
	words   map[string]bool
}

var (
	digitsRE = regexp.MustCompile(`\d[\d,]*(?:\.\d+)?[万亿千百]?`)
	letters  = regexp.MustCompile(`[\p{L}\p{M}]+(?:['’-][\p{L}\p{M}]+)*`)
	// counted are the numbers that texts write in words.
	counted = strings.Fields("zero one two three four five six seven eight nine ten eleven twelve")
)

func newSource(text string) *source {
	s := &source{facts: Facts(text), numbers: make(map[string]bool), bare: make(map[string]bool), words: make(map[string]bool)}
	for _, d := range digitsRE.FindAllString(text, maxFacts) {
		if x, ok := parseNumber(d); ok {
			s.numbers[x.RatString()] = true
		}
	}
	for _, w := range letters.FindAllString(text, -1) {
		w = strings.ToLower(w)
		s.words[w] = true
		for part := range strings.SplitSeq(w, "-") {
			s.words[part] = true
		}
		s.words[strings.TrimSuffix(strings.TrimSuffix(w, "'s"), "’s")] = true
		if i := slices.Index(counted, w); i >= 0 {
			x := big.NewRat(int64(i), 1).RatString()
			s.numbers[x], s.bare[x] = true, true
		}
	}
	for _, f := range s.facts {
		switch f.Kind {
		case FactNumber:
			s.bare[rational(f.Value)] = true
		case FactDate: // "in 1987" has 14 March 1987 for its source
			for part := range strings.SplitSeq(f.Value, "-") {
				s.numbers[rational(part)] = true
			}
		}
	}
	return s
}

// rational is a decimal number in lowest terms; the text itself if it is none.
func rational(s string) string {
	if x, ok := parseNumber(s); ok {
		return x.RatString()
	}
	return s
}

func (s *source) has(f Fact) bool {
	if slices.Contains(s.facts, f) {
		return true
	}
	switch f.Kind {
	case FactNumber:
		return s.numbers[rational(f.Value)]
	case FactMoney:
		amount, currency, _ := strings.Cut(f.Value, " ")
		if s.bare[rational(amount)] {
			return true
		}
		for _, other := range s.facts { // ¥ is of two currencies
			value, of, _ := strings.Cut(other.Value, " ")
			if other.Kind == FactMoney && value == amount && (strings.Contains(of, currency) || strings.Contains(currency, of)) {
				return true
			}
		}
	case FactQuantity:
		return s.unitless(f.Value)
	}
	return false
}

// unitless reports whether the source has the number of a quantity without a unit,
// as in "a 75-minute tour", whatever the unit that the answer gave it in.
func (s *source) unitless(quantity string) bool {
	value, base, _ := strings.Cut(quantity, " ")
	x, ok := parseNumber(value)
	if !ok {
		return false
	}
	for _, u := range units {
		if u.base == base && s.bare[new(big.Rat).Quo(x, u.size).RatString()] {
			return true
		}
	}
	return false
}

// mostName is how many words of an answer may be a name and nothing else.
const mostName = 4

// proper lists the names in capital letters of a text, by their words. The first
// word of a sentence is in capitals anyway and is no part of one, but where the
// whole answer is a name of two words or more.
func proper(text string) (names [][]string) {
	seen := make(map[string]bool)
	add := func(name []string) {
		if key := strings.Join(name, " "); len(name) > 0 && !seen[key] && len(names) < maxFacts {
			seen[key], names = true, append(names, name)
		}
	}
	words := letters.FindAllStringIndex(text, maxFacts)
	whole := len(words) > 1 && len(words) <= mostName && !strings.ContainsAny(text, "0123456789")
	for _, at := range words {
		whole = whole && titled(text[at[0]:at[1]])
	}
	var name []string
	last := 0
	for i, at := range words {
		w, gap := text[at[0]:at[1]], text[last:at[0]]
		last = at[1]
		if strings.Trim(gap, " ") != "" { // a name does not go on behind a stop
			add(name)
			name = nil
		}
		switch {
		case !titled(w) || noName[strings.ToLower(w)] || !whole && (i == 0 || begins(gap)):
			add(name)
			name = nil
		default:
			name = append(name, strings.TrimSuffix(strings.TrimSuffix(w, "'s"), "’s"))
		}
	}
	add(name)
	return names
}

// begins reports whether a sentence, a line or a quotation begins after a gap.
func begins(gap string) bool {
	return strings.ContainsAny(gap, ".!?:;\n\"“‘*#>|()[]•。！？：；")
}

// titled reports whether a word begins with a capital letter and goes on in small ones.
func titled(w string) bool {
	first, n := utf8.DecodeRuneInString(w)
	next, _ := utf8.DecodeRuneInString(w[n:])
	return unicode.IsUpper(first) && unicode.IsLower(next)
}

// noName are words in capitals that are no names: months and days stand in dates,
// which are facts of their own.
var noName = func() map[string]bool {
	m := make(map[string]bool)
	for _, w := range append(strings.Fields("i'm i'll i've i'd the a an this that it its he she they we you yes no mr mrs ms dr sir madam passage text question answer note jan feb mar apr jun jul aug sep sept oct nov dec"), months...) {
		m[w] = true
	}
	return m
}()

var (
	abstainRE = regexp.MustCompile(`(?i)\b(?:does|do|did|has|have|is|are|was|were|can|could)(?: not|n't)\s+(?:\w+ ){0,2}?(?:say|mention(?:ed)?|specif(?:y|ied)|stated?|provided?|given?|included?|contain(?:ed)?|tell|told|indicated?|disclosed?|revealed?|listed?|described?|known?|available|said|found|determined?|inferred|have (?:enough |any |that |this |the |sufficient )*information)\b|` +
		`\b(?:there is|there's|has|have|gives|provides|contains|with|find|found) no (?:\w+ )?(?:information|mention|indication|details?|answer|reference|data)\b|\bno (?:information|mention|indication|details?) (?:is|are|was|about|on|of|regarding)\b|` +
		`\b(?:not|never|isn't|wasn't) (?:mentioned|specified|stated|provided|disclosed|indicated|listed)\b|` +
		`\bi(?:'m| am) (?:not (?:sure|certain)|unsure|unable to (?:answer|say|tell|determine|find))\b|\b(?:unable|impossible) to (?:answer|say|tell|determine|find|know)\b|` +
		`\b(?:cannot|can't|can not|couldn't|could not) (?:be )?(?:\w+ )?(?:answer(?:ed)?|say|said|tell|told|determined?|find|found|know|known|inferred?)\b|` +
		`(?:没有|没|未|并未|未曾)(?:明确|具体|直接)?(?:提到|提及|说明|给出|说|写|注明|提供|指出|介绍|涉及|告诉|透露|记载)|不知道|不清楚|不确定|无法(?:确定|回答|得知|判断|知道|从|获知)|没有(?:相关|足够|这方面的|任何)*(?:的)?(?:信息|资料|说明)|无从得知`)
	unknownRE = regexp.MustCompile(`(?i)^\W*(?:unknown|n/?a|not known|not available|not given|none given|未知|不详|不明)\W*$`)
)

// Abstains reports whether a text says that it does not know, or that its source
// does not say: a positive statement, in English or Chinese. An empty text, one
// without an answer and one that cannot be read do not abstain. A text may abstain
// and claim all the same: see [Claims].
func Abstains(text string) bool {
	s := strings.NewReplacer("’", "'", "‘", "'").Replace(head(trim(text), 4096))
	return abstainRE.MatchString(s) || unknownRE.MatchString(s) || refuses(s)
}

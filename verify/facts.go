package verify

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// FactKind is a kind of detail that must survive a rewording, and that cosines and
// n-grams hardly see.
type FactKind string

// The kinds of facts.
const (
	FactNumber   FactKind = "number"   // in decimal: "1,234" is 1234, "3万" is 30000
	FactQuantity FactKind = "quantity" // with its unit, in the base unit of its kind: "1.5 km" is 1500 m
	FactMoney    FactKind = "money"    // with its currency: "$3.50" is USD 3.5
	FactDate     FactKind = "date"     // ISO 8601: "3 May 2024" and 2024年5月3日 are 2024-05-03
	FactName     FactKind = "name"     // an address, a link, or a code of letters and digits: "A-17"
)

// Fact is one detail of a text in its normal form.
type Fact struct {
	Kind  FactKind
	Value string
}

var months = []string{"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"}

const monthRE = `(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?`

var (
	linkRE    = regexp.MustCompile(`(?i)https?://[^\s<>"']+|[\w.+-]+@[\w-]+\.[\w.-]*\w`)
	isoRE     = regexp.MustCompile(`\b(\d{4})-(\d{1,2})-(\d{1,2})\b|(\d{4})年(\d{1,2})月(\d{1,2})[日号]`)
	dayMonth  = regexp.MustCompile(`(?i)\b(\d{1,2})(?:st|nd|rd|th)?\s+(?:of\s+)?(` + monthRE + `),?\s+(\d{4})\b`)
	monthDay  = regexp.MustCompile(`(?i)\b(` + monthRE + `)\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})\b`)
	slashDate = regexp.MustCompile(`\b\d{1,4}[/.]\d{1,2}[/.]\d{1,4}\b`)
	moneyRE   = regexp.MustCompile(`(?i)(US\$|[$€£¥])\s?(\d[\d,]*(?:\.\d+)?)|(\d[\d,]*(?:\.\d+)?[万亿千百]?)\s?(?:(€|£|元|块钱|人民币)|(usd|dollars?|eur|euros?|gbp|pounds? sterling|cny|rmb|yuan|jpy|yen)\b)`)
	measureRE = regexp.MustCompile(`(-?\d[\d,]*(?:\.\d+)?)\s?(%|percent\b|kilograms?\b|kg\b|grams?\b|mg\b|g\b|kilometers?\b|kilometres?\b|km\b|met(?:er|re)s?\b|cm\b|mm\b|m\b|milliseconds?\b|ms\b|seconds?\b|s\b|minutes?\b|min\b|hours?\b|h\b|days?\b|weeks?\b|kB\b|KB\b|MB\b|GB\b|TB\b|bytes?\b|°C|°F|公斤|千克|克|公里|千米|米|厘米|毫秒|秒|分钟|小时|天|周)`)
	codeRE    = regexp.MustCompile(`\b[A-Za-z]{1,8}-?\d[A-Za-z0-9-]*\b`)
)

// currencies and units by how they are written; a unit has its base and its size in it.
var (
	currencies = map[string]string{
		"us$": "USD", "$": "USD", "usd": "USD", "dollar": "USD", "dollars": "USD", "€": "EUR", "eur": "EUR", "euro": "EUR", "euros": "EUR",
		"£": "GBP", "gbp": "GBP", "pounds sterling": "GBP", "pound sterling": "GBP", "¥": "CNY/JPY", "元": "CNY", "块钱": "CNY", "人民币": "CNY", "cny": "CNY", "rmb": "CNY", "yuan": "CNY", "jpy": "JPY", "yen": "JPY",
	}
	units = map[string]struct {
		base string
		size *big.Rat
	}{}
)

func init() {
	for base, list := range map[string]string{
		"%":  "%=1 percent=1",
		"g":  "kg=1000 kilogram=1000 公斤=1000 千克=1000 g=1 gram=1 克=1 mg=1/1000",
		"m":  "km=1000 kilometer=1000 kilometre=1000 公里=1000 千米=1000 m=1 meter=1 metre=1 米=1 cm=1/100 厘米=1/100 mm=1/1000",
		"s":  "ms=1/1000 millisecond=1/1000 毫秒=1/1000 s=1 second=1 秒=1 min=60 minute=60 分钟=60 h=3600 hour=3600 小时=3600 day=86400 天=86400 week=604800 周=604800",
		"B":  "byte=1 kb=1000 mb=1000000 gb=1000000000 tb=1000000000000",
		"°C": "°c=1", "°F": "°f=1",
	} {
		for _, unit := range strings.Fields(list) {
			name, size, _ := strings.Cut(unit, "=")
			r, ok := new(big.Rat).SetString(size)
			if !ok {
				panic("verify: the size of the unit " + unit)
			}
			units[name] = struct {
				base string
				size *big.Rat
			}{base, r}
		}
	}
}

// maxFacts bounds what is read out of one text; more is as good as none.
const maxFacts = 4096

// Facts lists the details of a text, sorted, each as often as it is named. Dates of
// day, month and year with slashes or dots mean different days to different
// readers, and stay as they are written.
func Facts(text string) []Fact {
	s := []byte(narrow(head(text, 1<<20)))
	var facts []Fact
	// take moves what re matches out of the text, so that no later kind reads it again.
	take := func(re *regexp.Regexp, read func(m []string) (Fact, bool)) {
		for _, at := range re.FindAllSubmatchIndex(s, maxFacts) {
			m := make([]string, len(at)/2)
			for i := range m {
				if at[2*i] >= 0 {
					m[i] = string(s[at[2*i]:at[2*i+1]])
				}
			}
			if f, ok := read(m); ok && len(facts) < maxFacts {
				facts = append(facts, f)
				for i := at[0]; i < at[1]; i++ {
					s[i] = ' '
				}
			}
		}
	}
	take(linkRE, func(m []string) (Fact, bool) {
		return Fact{FactName, strings.ToLower(strings.TrimRight(m[0], ".,;:!?)"))}, true
	})
	take(isoRE, func(m []string) (Fact, bool) { return date(m[1]+m[4], m[2]+m[5], m[3]+m[6]) })
	take(dayMonth, func(m []string) (Fact, bool) { return date(m[3], month(m[2]), m[1]) })
	take(monthDay, func(m []string) (Fact, bool) { return date(m[3], month(m[1]), m[2]) })
	take(slashDate, func(m []string) (Fact, bool) { return Fact{FactDate, m[0]}, true })
	take(moneyRE, func(m []string) (Fact, bool) {
		return normal(FactMoney, m[2]+m[3], nil, currencies[strings.ToLower(m[1]+m[4]+m[5])])
	})
	take(measureRE, func(m []string) (Fact, bool) {
		name := strings.ToLower(m[2])
		u, ok := units[name]
		if !ok {
			u = units[strings.TrimSuffix(name, "s")]
		}
		return normal(FactQuantity, m[1], u.size, u.base)
	})
	take(codeRE, func(m []string) (Fact, bool) { return Fact{FactName, strings.ToLower(m[0])}, true })
	for _, n := range numbers(string(s)) {
		if f, ok := normal(FactNumber, n, nil, ""); ok && len(facts) < maxFacts {
			facts = append(facts, f)
		}
	}
	slices.SortFunc(facts, func(a, b Fact) int { return strings.Compare(string(a.Kind)+a.Value, string(b.Kind)+b.Value) })
	return facts
}

func month(name string) string {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	for i, m := range months {
		if strings.HasPrefix(m, name) || name == "sept" && m == "september" {
			return strconv.Itoa(i + 1)
		}
	}
	return ""
}

func date(year, month, day string) (Fact, bool) {
	y, _ := strconv.Atoi(year)
	m, _ := strconv.Atoi(month)
	d, _ := strconv.Atoi(day)
	if m < 1 || m > 12 || d < 1 || d > days(y, m) {
		return Fact{}, false
	}
	return Fact{FactDate, fmt.Sprintf("%04d-%02d-%02d", y, m, d)}, true
}

// days is how many the month has.
func days(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// normal is a number times the size of its unit, with the unit's name.
func normal(kind FactKind, number string, size *big.Rat, unit string) (Fact, bool) {
	v, ok := parseNumber(number)
	if !ok {
		return Fact{}, false
	}
	if size != nil {
		v.Mul(v, size)
	}
	s := strings.TrimRight(strings.TrimRight(v.FloatString(12), "0"), ".")
	return Fact{kind, strings.TrimSpace(s + " " + unit)}, true
}

// negationRE matches words that turn a sentence round.
var negationRE = regexp.MustCompile(`(?i)\b(?:not|no|never|none|nobody|nothing|neither|nor|without|cannot)\b|n['’]t\b|不|没|無|无|未|非`)

// Negates reports whether a text has a word of negation, in English or Chinese.
func Negates(text string) bool { return negationRE.MatchString(text) }

// Agreement is how far the facts of an answer are those of a reference.
type Agreement struct {
	Precision, Recall, F float64 // of the facts as a multiset; 1 where there are none on either side
	Missing, Added       []Fact  // of the reference but not in the answer, and the other way round
	Negation             bool    // both negate, or neither does
	Nothing              bool    // neither has a fact or negates: there is nothing to agree on
}

// Holds reports whether every fact is there, none was added, and nothing is turned
// round: what a guard asks.
func (a Agreement) Holds() bool { return a.Negation && len(a.Missing) == 0 && len(a.Added) == 0 }

// Agree compares the facts of an answer with those of a reference. Facts said twice
// on one side and once on the other are the same facts.
func Agree(answer, reference string) Agreement {
	a, r := slices.Compact(Facts(answer)), slices.Compact(Facts(reference))
	g := Agreement{Precision: 1, Recall: 1, Negation: Negates(answer) == Negates(reference)}
	g.Nothing = len(a) == 0 && len(r) == 0 && g.Negation && !Negates(answer)
	for _, f := range a {
		if !slices.Contains(r, f) {
			g.Added = append(g.Added, f)
		}
	}
	for _, f := range r {
		if !slices.Contains(a, f) {
			g.Missing = append(g.Missing, f)
		}
	}
	if len(a) > 0 {
		g.Precision = 1 - float64(len(g.Added))/float64(len(a))
	}
	if len(r) > 0 {
		g.Recall = 1 - float64(len(g.Missing))/float64(len(r))
	}
	if s := g.Precision + g.Recall; s > 0 {
		g.F = 2 * g.Precision * g.Recall / s
	}
	return g
}

package perturb

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"
)

// Family is a way of writing a text again that keeps its meaning.
type Family string

// The families. Those of words know English and Chinese, the others as they say.
const (
	Synonym     Family = "synonym"     // words that mean the same, from a table of safe pairs
	Reorder     Family = "reorder"     // independent sentences, items of lists, a clause put first or last
	Politeness  Family = "politeness"  // a greeting, please or thanks added, or taken away
	Typos       Family = "typos"       // of English words: keys beside, swapped, left out, doubled
	Misspelling Family = "misspelling" // of English words, as people commonly err
	Case        Family = "case"        // small letters throughout, or a few words in capitals
	Spacing     Family = "spacing"     // spaces doubled, lost after commas, put between Chinese characters
	Contraction Family = "contraction" // "it is" and "it's", either way; never one of a negation
	Homophone   Family = "homophone"   // characters, and English words, that sound alike
	Shape       Family = "shape"       // Chinese characters that look nearly alike
	Particle    Family = "particle"    // 的, 地 and 得 for each other
	Script      Family = "script"      // simplified characters as traditional ones, or back
	Width       Family = "width"       // letters, digits and marks of full width for half, or back, in Chinese text
	Term        Family = "term"        // terms of banking, telecommunications and trade as dictation mishears them
)

// family says how one perturbs.
type family struct {
	name  Family
	doc   string
	rate  float64 // the share of the places that are changed unless Options say another
	moves bool    // it moves what is protected, and changes none of it
	wide  bool    // it writes digits in another width
	sites func(t *text, r *rand.Rand) []edit
}

// families lists them all. It is a function because the tables are read on first use.
func families() []family {
	return []family{
		{name: Synonym, doc: "words that mean the same", rate: 0.5, sites: synonyms},
		{name: Reorder, doc: "independent sentences, items and clauses in another order", rate: 0.01, moves: true, sites: reorderings},
		{name: Politeness, doc: "a greeting, please or thanks added or taken away", rate: 0.5, sites: courtesies},
		{name: Typos, doc: "typing errors in English words", rate: 0.2, sites: typos},
		{name: Misspelling, doc: "common misspellings of English words", rate: 1, sites: misspellings},
		{name: Case, doc: "small letters throughout, or some words in capitals", rate: 1, sites: cases},
		{name: Spacing, doc: "spaces doubled, lost, or put between Chinese characters", rate: 0.2, sites: spacings},
		{name: Contraction, doc: "\"it is\" and \"it's\", either way", rate: 1, sites: contractions},
		{name: Homophone, doc: "Chinese characters and English words that sound alike", rate: 0.2, sites: homophones},
		{name: Shape, doc: "Chinese characters that look nearly alike", rate: 0.5, sites: shapes},
		{name: Particle, doc: "的, 地 and 得 for each other", rate: 1, sites: particles},
		{name: Script, doc: "simplified Chinese characters as traditional, or back", rate: 1, sites: scripts},
		{name: Width, doc: "letters, digits and marks of Chinese text in the other width", rate: 0.5, wide: true, sites: widths},
		{name: Term, doc: "terms of banking, telecommunications and trade as they are misheard", rate: 1, sites: terms},
	}
}

// Families lists all families.
func Families() (out []Family) {
	for _, f := range families() {
		out = append(out, f.name)
	}
	return out
}

// Doc says what the family does, in one line; "" of a family that there is not.
func (f Family) Doc() string {
	for _, k := range families() {
		if k.name == f {
			return k.doc
		}
	}
	return ""
}

// Options says how much is changed. Its zero value is what each family has as its
// own.
type Options struct {
	// Rate is the share of the places that a family could change and does, above 0 and
	// at most 1; at least one is changed. 0: as the family has it.
	Rate float64
	// Protect are texts that must not be changed either, such as the labels to choose
	// from.
	Protect []string
}

// Change is one place that was written anew. Start and End are bytes of the text
// as it was.
type Change struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Was   string `json:"was"`
	Is    string `json:"is"`
}

// Result is a text written again. The zero Result is not valid.
type Result struct {
	Family  Family
	Text    string   // the new text; of a Result that is not valid, the text as it was
	Valid   bool     // it differs, and everything that must be kept was
	Why     string   // why it is not valid
	Changes []Change // in the order of the text as it was
}

// most is the longest text that is perturbed, in bytes.
const most = 1 << 20

// draws is how often places are drawn until one keeps what must be kept.
const draws = 8

// Apply writes a text again in the manner of a family. What is drawn depends on the
// seed, the id of the case, the family and the text alone.
func Apply(f Family, clean string, seed uint64, id string, o Options) Result {
	no := func(format string, args ...any) Result {
		return Result{Family: f, Text: clean, Why: fmt.Sprintf(format, args...)}
	}
	all := families()
	i := slices.IndexFunc(all, func(k family) bool { return k.name == f })
	switch {
	case i < 0:
		return no("there is no family %q", f)
	case !(o.Rate >= 0 && o.Rate <= 1):
		return no("the rate is %v; want a share above 0 and up to 1", o.Rate)
	case len(clean) > most:
		return no("the text has %d bytes, more than %d", len(clean), most)
	case !utf8.ValidString(clean):
		return no("the text is not UTF-8")
	}
	k := all[i]
	rate := cmp.Or(o.Rate, k.rate)
	t := read(clean, o.Protect, k)
	why := "there is nothing to change"
	for n := range draws {
		r := source(seed, string(f), id, clean, n)
		sites := t.open(k.sites(t, r), k.moves)
		if len(sites) == 0 {
			break
		}
		chosen := draw(sites, rate, r)
		text := rewrite(clean, chosen)
		if why = t.broken(text, k); why == "" {
			return Result{Family: f, Text: text, Valid: true, Changes: changes(clean, chosen)}
		}
	}
	return no("%s", why)
}

// source is a source of random numbers of its own for each key.
func source(seed uint64, family, id, clean string, n int) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d:%s%d:%s%d:%s%d", len(family), family, len(id), id, len(clean), clean, n)
	return rand.New(rand.NewPCG(seed, h.Sum64())) //nolint:gosec // it has to be repeatable
}

// edit is a place and what is to stand there instead.
type edit struct {
	from, to int // bytes
	with     string
}

// open leaves out the places that touch what is protected or each other, and
// those that would change nothing. The rest is in the order of the text.
func (t *text) open(sites []edit, moves bool) (out []edit) {
	slices.SortStableFunc(sites, func(a, b edit) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	end := -1
	for _, e := range sites {
		if e.from < end || e.from == end && e.from == e.to || t.s[e.from:e.to] == e.with || !moves && t.protected(e.from, e.to) {
			continue
		}
		out = append(out, e)
		end = e.to
	}
	return out
}

// draw takes a share of the places, at least one, each with the same chance.
func draw(sites []edit, rate float64, r *rand.Rand) (out []edit) {
	k := min(len(sites), max(1, int(math.Round(rate*float64(len(sites))))))
	for i, e := range sites { // selection sampling keeps their order
		if r.IntN(len(sites)-i) < k-len(out) {
			out = append(out, e)
		}
	}
	return out
}

func rewrite(s string, edits []edit) string {
	var b strings.Builder
	at := 0
	for _, e := range edits {
		b.WriteString(s[at:e.from])
		b.WriteString(e.with)
		at = e.to
	}
	b.WriteString(s[at:])
	return b.String()
}

func changes(s string, edits []edit) (out []Change) {
	for _, e := range edits {
		out = append(out, Change{Start: e.from, End: e.to, Was: s[e.from:e.to], Is: e.with})
	}
	return out
}

// broken says what of the text the new one does not keep; "": nothing.
func (t *text) broken(is string, k family) string {
	n, m := utf8.RuneCountInString(t.s), utf8.RuneCountInString(is)
	before, after := facts(t.s), facts(is)
	if k.wide {
		before, after = facts(narrow(t.s)), facts(narrow(is))
	}
	switch {
	case is == t.s:
		return "the new text is the old one"
	case 2*m < n-16 || m > 2*n+64:
		return fmt.Sprintf("the new text has %d characters, the old one %d", m, n)
	case !slices.Equal(before, after):
		return "a number, a code, a link or a negation would change"
	}
	return ""
}

package perturb

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// wording is one form of a word with what may stand for it.
type wording struct {
	with string
	kind byte // v, n, a or d
	form int  // of a verb: see the constants; of a noun: 0 or 1 for the plural
}

// The forms of verbs.
const (
	base = iota
	thirdPerson
	gerund
	past
	participle
)

// thesaurus is the table of synonyms.
type thesaurus struct {
	words   map[string][]wording // by the form as it is written, in small letters
	phrases [][2]string          // phrases of several words that stand anywhere
	never   []string             // phrases in which nothing is replaced
}

var english = sync.OnceValue(func() *thesaurus {
	t := &thesaurus{words: make(map[string][]wording)}
	for _, f := range lines("synonyms") {
		kind, rest := f[0][0], strings.Join(f[1:], " ")
		if kind == 'x' {
			t.never = append(t.never, rest)
			continue
		}
		a, b, oneWay := strings.Cut(rest, " > ")
		if !oneWay {
			i := strings.LastIndexByte(rest, ' ')
			a, b = rest[:i], rest[i+1:]
		}
		t.add(kind, a, b)
		if !oneWay {
			t.add(kind, b, a)
		}
	}
	return t
})

func (t *thesaurus) add(kind byte, a, b string) {
	was, is := forms(kind, a), forms(kind, b)
	if strings.Contains(was[0], " ") {
		t.phrases = append(t.phrases, [2]string{was[0], is[0]})
		return
	}
	for i := range was {
		t.words[was[i]] = append(t.words[was[i]], wording{is[i], kind, i})
	}
}

// forms lists the forms of an entry such as "choose:chose:chosen" or "begin:began:begun+".
// Of a phrase the first word is inflected.
func forms(kind byte, entry string) []string {
	spec, doubled := strings.CutSuffix(entry, "+")
	parts := strings.Split(spec, ":")
	word, rest, _ := strings.Cut(parts[0], " ")
	if rest != "" {
		rest = " " + rest
	}
	switch kind {
	case 'n':
		return []string{word + rest, plural(word) + rest}
	case 'v':
		stem := word
		if doubled {
			stem += word[len(word)-1:]
		}
		ed := stem + "ed"
		switch {
		case strings.HasSuffix(word, "e"):
			stem, ed = word[:len(word)-1], word+"d"
		case strings.HasSuffix(word, "y") && !vowel(word[len(word)-2]):
			ed = word[:len(word)-1] + "ied"
		}
		out := []string{word + rest, plural(word) + rest, stem + "ing" + rest, ed + rest, ed + rest}
		if len(parts) > 1 {
			out[past], out[participle] = parts[1]+rest, parts[len(parts)-1]+rest
		}
		return out
	}
	return []string{word + rest}
}

func vowel(c byte) bool { return strings.IndexByte("aeiou", c) >= 0 }

// plural adds an s by the rules; for verbs these make the third person.
func plural(w string) string {
	n := len(w)
	switch {
	case strings.HasSuffix(w, "s") || strings.HasSuffix(w, "x") || strings.HasSuffix(w, "ch") || strings.HasSuffix(w, "sh"):
		return w + "es"
	case n > 1 && w[n-1] == 'y' && !vowel(w[n-2]):
		return w[:n-1] + "ies"
	}
	return w + "s"
}

// What has to stand before a word for it to be the verb, in which form, or the noun.
var (
	beforeVerb = [...]map[string]bool{
		base:        set("to i you we they can could will would shall should must may might please do does did who people customers let"),
		thirdPerson: set("he she it who which customer"),
		gerund:      set("am is are was were be been of for by about while when i'm you're we're they're he's she's it's"),
		past:        set("i you we they he she who it"),
		participle:  set("have has had is are was were be been being i've we've they've you've get gets"),
	}
	beforeNoun = set("a an the my your his her our their this that these those its some another such same new old good bad big large small first last next many few several of no")
	afterNoun  = set("of for to in on is are was were has have had and or but that which who with from at by when if after before because can could will would should must may might do does did as than today tomorrow yesterday now so about without within until i you we they he she it again later online")
	// The verbs of the table that an infinitive may follow.
	infinitiveRE = regexp.MustCompile(`^(?:start|beg[aiu]n|try|tri|attempt)`)
	beSure       = regexp.MustCompile(`^[,.;:!?)]|^$`)
)

// fits reports whether the word at i is what the entry is of, as far as its
// neighbours tell.
func (w wording) fits(before, after string, closed bool) bool {
	switch w.kind {
	case 'v':
		return beforeVerb[w.form][before] && (after != "to" || infinitiveRE.MatchString(w.with))
	case 'n':
		return beforeNoun[before] && (closed || afterNoun[after])
	case 'a':
		return after != "" && !closed && before != "very" && before != "so" && before != "too" && before != "more"
	}
	return true
}

// synonyms offers another word for each of the table that its neighbours show to be
// meant.
func synonyms(t *text, r *rand.Rand) (out []edit) {
	th, low := english(), lowered(t.s)
	never := occurrences(low, th.never)
	clear := func(from, to int) bool {
		return !slices.ContainsFunc(never, func(p span) bool { return from < p.to && p.from < to })
	}
	for i, w := range t.words {
		word := low[w.from:w.to]
		var fit []string
		before, after, closed := t.neighbours(low, i)
		for _, c := range th.words[word] {
			if c.fits(before, after, closed) && !t.says(low, c.with) {
				fit = append(fit, c.with)
			}
		}
		if len(fit) == 0 || !clear(w.from, w.to) || w.to < len(t.s) && t.s[w.to] == '-' || w.from > 0 && t.s[w.from-1] == '-' {
			continue
		}
		e := edit{w.from, w.to, cased(fit[r.IntN(len(fit))], t.s[w.from:w.to])}
		if before == "a" || before == "an" { // the article goes with the word
			article := t.words[i-1]
			e.from = article.from
			e.with = cased(indefinite(e.with), t.s[article.from:article.to]) + t.s[article.to:w.from] + e.with
		}
		out = append(out, e)
	}
	for _, p := range th.phrases {
		for _, at := range occurrences(low, []string{p[0]}) {
			if clear(at.from, at.to) && !inWord(low, at) {
				out = append(out, edit{at.from, at.to, cased(p[1], t.s[at.from:at.to])})
			}
		}
	}
	return append(out, t.synonymsZh()...)
}

// says reports whether a text has a word already: to use it for another one would
// make one of two things.
func (t *text) says(low, word string) bool {
	return slices.ContainsFunc(t.words, func(w span) bool { return low[w.from:w.to] == word })
}

// neighbours are the words before and after word i, if nothing but a space
// parts them; closed: a mark, or nothing, follows.
func (t *text) neighbours(low string, i int) (before, after string, closed bool) {
	w := t.words[i]
	if i > 0 && low[t.words[i-1].to:w.from] == " " {
		before = strings.ReplaceAll(low[t.words[i-1].from:t.words[i-1].to], "’", "'")
	}
	if i+1 < len(t.words) && low[w.to:t.words[i+1].from] == " " {
		after = low[t.words[i+1].from:t.words[i+1].to]
	}
	return before, after, beSure.MatchString(low[w.to:])
}

// indefinite is the article before a word: a or an.
func indefinite(word string) string {
	w := strings.ToLower(word)
	for _, p := range []string{"uni", "us", "ut", "eu", "one", "once"} {
		if strings.HasPrefix(w, p) {
			return "a"
		}
	}
	if w != "" && vowel(w[0]) || strings.HasPrefix(w, "hour") || strings.HasPrefix(w, "honest") {
		return "an"
	}
	return "a"
}

// lowered has small letters for the English capitals, and every byte at its place.
func lowered(s string) string {
	b := []byte(s)
	for i, c := range b {
		b[i] = lower(c)
	}
	return string(b)
}

func occurrences(s string, of []string) (out []span) {
	for _, p := range of {
		for at := 0; ; {
			i := strings.Index(s[at:], p)
			if i < 0 {
				break
			}
			out = append(out, span{at + i, at + i + len(p)})
			at += i + len(p)
		}
	}
	return out
}

// inWord reports whether a stretch begins or ends within an English word.
func inWord(low string, p span) bool {
	letter := func(i int) bool { return i >= 0 && i < len(low) && low[i] >= 'a' && low[i] <= 'z' }
	return letter(p.from-1) && letter(p.from) || letter(p.to) && letter(p.to-1)
}

var chineseWords = sync.OnceValues(func() (words map[string]string, never []string) {
	words = make(map[string]string)
	for _, f := range lines("synonyms_zh") {
		switch {
		case f[0] == "x":
			never = append(never, f[1])
		case f[1] == ">":
			words[f[0]] = f[2]
		default:
			words[f[0]] = f[1]
			if words[f[1]] == "" {
				words[f[1]] = f[0]
			}
		}
	}
	return words, never
})

func (t *text) synonymsZh() []edit {
	words, never := chineseWords()
	within := occurrences(t.s, never)
	return slices.DeleteFunc(longest(t, func(s string) string { return words[s] }), func(e edit) bool {
		return strings.Contains(t.s, e.with) || slices.ContainsFunc(within, func(p span) bool { return e.from < p.to && p.from < e.to })
	})
}

// contracted are what can be written short, none of it a negation.
var contracted = [][2]string{
	{"i am", "i'm"},
	{"you are", "you're"},
	{"we are", "we're"},
	{"they are", "they're"},
	{"he is", "he's"},
	{"she is", "she's"},
	{"it is", "it's"},
	{"that is", "that's"},
	{"there is", "there's"},
	{"what is", "what's"},
	{"where is", "where's"},
	{"who is", "who's"},
	{"how is", "how's"},
	{"here is", "here's"},
	{"i will", "i'll"},
	{"you will", "you'll"},
	{"we will", "we'll"},
	{"they will", "they'll"},
	{"let us", "let's"},
}

// hasRE matches what follows an 's that may be has.
var hasRE = regexp.MustCompile(`^ (?:been|had|got|gone|done|made|lost|taken|become|[a-z]+ed)\b`)

// contractions offers the short for the long form and the other way round, where a
// word follows.
func contractions(t *text, _ *rand.Rand) (out []edit) {
	low := lowered(t.s)
	for _, p := range contracted {
		for i, form := range p {
			for _, at := range occurrences(low, []string{form}) {
				next := at.to+1 < len(low) && low[at.to] == ' ' && low[at.to+1] >= 'a' && low[at.to+1] <= 'z'
				if !next || inWord(low, at) || i == 1 && hasRE.MatchString(low[at.to:]) {
					continue
				}
				with := cased(p[1-i], t.s[at.from:at.to])
				if form[0] == 'i' && (form[1] == ' ' || form[1] == '\'') {
					with = "I" + p[1-i][1:]
				}
				out = append(out, edit{at.from, at.to, with})
			}
		}
	}
	return out
}

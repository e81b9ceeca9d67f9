package verify

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Shape is what a text looks like, apart from what it says.
type Shape struct {
	Empty     bool // nothing but white space
	Runes     int
	Words     int // see Words
	Sentences int // see Sentences
	Lines     int // lines that are not blank
	Bullets   int // lines that begin as an item of a list
	Headings  int // lines that begin with #, or are all bold
	Fences    int // whole blocks of code
	JSON      bool
	Language  string // see Language; "": not to be told

	// Refusal: it begins as refusals do. A screen of high precision on English and
	// Chinese: what it finds is nearly always one, but refusals in other words are not
	// found, and how many are depends on the model (XSTest: 19 to 98 %). Do not
	// compare models by it; a judge can.
	Refusal bool
}

// Look describes a text.
func Look(text string) Shape {
	s := Shape{Runes: utf8.RuneCountInString(text), Refusal: refuses(text)}
	if s.Empty = trim(text) == ""; s.Empty {
		return s
	}
	s.Words, s.Sentences, s.Language = Words(text), Sentences(text), Language(text)
	s.Fences = len(fenceRE.FindAllStringIndex(text, -1))
	_, how, ok := FindJSON(text)
	s.JSON = ok && how != "within the text"
	for line := range strings.Lines(text) {
		line = trim(line)
		if line == "" {
			continue
		}
		s.Lines++
		switch {
		case bulletRE.MatchString(line):
			s.Bullets++
		case headingRE.MatchString(line):
			s.Headings++
		}
	}
	return s
}

var (
	bulletRE  = regexp.MustCompile(`^(?:[-*+•·]|[0-9]{1,3}[.)])[ \t]+\S`)
	headingRE = regexp.MustCompile(`^(?:#{1,6} \S|\*\*[^*]+\*\*:?$)`)
)

// refusalRE matches how refusals begin, after courtesies.
var refusalRE = regexp.MustCompile(`(?i)^(?:i(?:'m| am) (?:really |very |truly |so )?sorry[,.!]? (?:but )?)?(?:(?:unfortunately|sorry|apologies|i apologi[sz]e)[,.!]? (?:but )?)?` +
	`(?:i (?:can(?:'t|not| not)|won't|will not|am (?:not able|unable) to|must (?:decline|refuse)|'m (?:not able|unable) to|(?:have|need) to decline)|i'm (?:not able|unable) to|as an ai(?: language)? model,? i (?:can|am|do|will|must)|` +
	`(?:很|非常)?(?:抱歉|对不起)[，,]?(?:但)?(?:我|作为|这)|我(?:不能|无法)(?:提供|协助|帮助|回答|满足))`)

// courtesyRE matches an apology that is all of a first sentence.
var courtesyRE = regexp.MustCompile(`(?i)^(?:i(?:'m| am) (?:really |very |truly |so )?sorry|sorry|unfortunately|my apologies)[.!,]\s*(?:but )?`)

func refuses(text string) bool {
	s := strings.NewReplacer("’", "'", "‘", "'").Replace(head(trim(text), 400))
	return refusalRE.MatchString(s) || refusalRE.MatchString(courtesyRE.ReplaceAllString(s, ""))
}

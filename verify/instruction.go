package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// Followed says whether an answer follows an instruction.
type Followed uint8

// Undetermined is the zero value: the text does not allow to tell.
const (
	Undetermined Followed = iota
	No
	Yes
)

// String names it.
func (f Followed) String() string { return [...]string{"undetermined", "no", "yes"}[min(f, 2)] }

func followed(b bool) Followed {
	if b {
		return Yes
	}
	return No
}

// An Instruction is one of IFEval's verifiable instructions with its arguments.
// The rules are those of the benchmark's own program (google-research,
// instruction_following_eval), whose quirks are kept, with three exceptions: a text
// whose language cannot be told is Undetermined, where the original counts it as
// followed; languages are detected by another detector; and a JSON answer may not
// have NaN.
type Instruction struct {
	ID string // "length_constraints:number_words"

	args   arguments
	follow func(arguments, string) Followed
}

// arguments are those of all instructions, as the data set spells them.
type arguments struct {
	Relation        *string  `json:"relation"`
	Words           *int     `json:"num_words"`
	Sentences       *int     `json:"num_sentences"`
	Paragraphs      *int     `json:"num_paragraphs"`
	Nth             *int     `json:"nth_paragraph"`
	FirstWord       *string  `json:"first_word"`
	Placeholders    *int     `json:"num_placeholders"`
	Bullets         *int     `json:"num_bullets"`
	Highlights      *int     `json:"num_highlights"`
	Splitter        *string  `json:"section_spliter"` // as the data set spells it
	Sections        *int     `json:"num_sections"`
	Marker          *string  `json:"postscript_marker"`
	Keywords        []string `json:"keywords"`
	Keyword         *string  `json:"keyword"`
	Frequency       *int     `json:"frequency"`
	Forbidden       []string `json:"forbidden_words"`
	Letter          *string  `json:"letter"`
	LetterFrequency *int     `json:"let_frequency"`
	LetterRelation  *string  `json:"let_relation"`
	Language        *string  `json:"language"`
	Repeat          *string  `json:"prompt_to_repeat"`
	End             *string  `json:"end_phrase"`
	Capitals        *int     `json:"capital_frequency"`
	CapitalRelation *string  `json:"capital_relation"`

	patterns []*regexp.Regexp // of the keywords, or of the section mark
}

// rule is one kind of instruction: the arguments that it wants, and how it is
// verified.
type rule struct {
	wants  []string
	follow func(a arguments, text string) Followed
}

// Instructions lists the ids that ParseInstruction knows, sorted.
func Instructions() []string {
	ids := make([]string, 0, len(rules))
	for id := range rules {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	return ids
}

// ParseInstruction reads an instruction from its id and its arguments, a JSON object
// in which null stands for what does not apply.
func ParseInstruction(id string, kwargs []byte) (Instruction, error) {
	r, ok := rules[id]
	if !ok {
		return Instruction{}, fmt.Errorf("there is no instruction %q: want one of %s", head(id, 60), strings.Join(Instructions(), ", "))
	}
	var a arguments
	if len(kwargs) > 0 {
		if err := json.Unmarshal(kwargs, &a); err != nil {
			return Instruction{}, fmt.Errorf("reading the arguments of %s: %w", id, err)
		}
	}
	if err := a.validate(r.wants); err != nil {
		return Instruction{}, fmt.Errorf("%s: %w", id, err)
	}
	return Instruction{ID: id, args: a, follow: r.follow}, nil
}

// Follow says whether a text follows the instruction. That of the zero Instruction is
// Undetermined.
func (i Instruction) Follow(text string) Followed {
	if i.follow == nil {
		return Undetermined
	}
	if trim(text) == "" {
		return No // as in the original: an empty answer follows nothing
	}
	return i.follow(i.args, text)
}

// FollowLoosely is Yes if the text follows the instruction, or does without its first
// line, its last line, both, or the stars of Markdown: what IFEval calls loose.
func (i Instruction) FollowLoosely(text string) Followed {
	all := strings.Split(text, "\n")
	cut := func(from, to int) string {
		if from > to {
			return ""
		}
		return trim(strings.Join(all[from:to], "\n"))
	}
	n := len(all)
	best := No
	for _, t := range []string{text, cut(min(1, n), n), cut(0, n-1), cut(min(1, n), n-1)} {
		for _, t := range []string{t, strings.ReplaceAll(t, "*", "")} {
			switch i.Follow(t) {
			case Yes:
				return Yes
			case Undetermined:
				best = Undetermined
			}
		}
	}
	return best
}

// validate reports what is missing or makes no sense, and prepares patterns.
func (a *arguments) validate(wants []string) error {
	have := a.have()
	var faults []error
	for _, w := range wants {
		if !have[w] {
			faults = append(faults, fmt.Errorf("the argument %s is missing", w))
		}
	}
	for _, r := range []*string{a.Relation, a.LetterRelation, a.CapitalRelation} {
		if r != nil && *r != "less than" && *r != "at least" {
			faults = append(faults, fmt.Errorf("a relation %q: want \"less than\" or \"at least\"", head(*r, 40)))
		}
	}
	if slices.Contains(wants, "letter") && a.Letter != nil && utf8.RuneCountInString(*a.Letter) != 1 {
		faults = append(faults, fmt.Errorf("a letter %q: want one character", head(*a.Letter, 40)))
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	texts := slices.Concat(a.Keywords, a.Forbidden)
	if a.Keyword != nil {
		texts = append(texts, trim(*a.Keyword))
	}
	for _, s := range texts {
		a.patterns = append(a.patterns, keyword(s))
	}
	if a.Splitter != nil {
		a.patterns = []*regexp.Regexp{regexp.MustCompile(reSpace + `?` + regexp.QuoteMeta(trim(*a.Splitter)) + reSpace + `?` + reDigit + `+` + reSpace + `?`)}
	}
	return nil
}

// keyword compiles a keyword as the original does, as a regular expression; one
// that is none is taken literally.
func keyword(s string) *regexp.Regexp {
	if re, err := regexp.Compile(`(?i)` + s); err == nil {
		return re
	}
	return regexp.MustCompile(`(?i)` + regexp.QuoteMeta(s))
}

// have tells which arguments are there, by their names in the data set.
func (a *arguments) have() map[string]bool {
	return map[string]bool{
		"relation": a.Relation != nil, "num_words": a.Words != nil, "num_sentences": a.Sentences != nil, "num_paragraphs": a.Paragraphs != nil,
		"nth_paragraph": a.Nth != nil && *a.Nth > 0, "first_word": a.FirstWord != nil, "num_placeholders": a.Placeholders != nil,
		"num_bullets": a.Bullets != nil, "num_highlights": a.Highlights != nil, "section_spliter": a.Splitter != nil && *a.Splitter != "",
		"num_sections": a.Sections != nil, "postscript_marker": a.Marker != nil && *a.Marker != "", "keywords": len(a.Keywords) > 0,
		"keyword": a.Keyword != nil && *a.Keyword != "", "frequency": a.Frequency != nil, "forbidden_words": len(a.Forbidden) > 0,
		"letter": a.Letter != nil, "let_frequency": a.LetterFrequency != nil, "let_relation": a.LetterRelation != nil,
		"language": a.Language != nil && *a.Language != "", "prompt_to_repeat": a.Repeat != nil && *a.Repeat != "", "end_phrase": a.End != nil && *a.End != "",
		"capital_frequency": a.Capitals != nil, "capital_relation": a.CapitalRelation != nil,
	}
}

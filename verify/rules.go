package verify

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// rules are IFEval's 25 instructions.
var rules = map[string]rule{
	"keywords:existence": {[]string{"keywords"}, func(a arguments, s string) Followed {
		for _, re := range a.patterns {
			if !re.MatchString(s) {
				return No
			}
		}
		return Yes
	}},
	"keywords:frequency": {[]string{"keyword", "frequency", "relation"}, func(a arguments, s string) Followed {
		return related(len(a.patterns[0].FindAllStringIndex(s, -1)), *a.Relation, *a.Frequency)
	}},
	"keywords:forbidden_words": {[]string{"forbidden_words"}, func(a arguments, s string) Followed {
		for _, re := range a.patterns {
			if hasWord(s, re) {
				return No
			}
		}
		return Yes
	}},
	"keywords:letter_frequency": {[]string{"letter", "let_frequency", "let_relation"}, func(a arguments, s string) Followed {
		return related(strings.Count(strings.ToLower(s), strings.ToLower(*a.Letter)), *a.LetterRelation, *a.LetterFrequency)
	}},
	"language:response_language": {[]string{"language"}, func(a arguments, s string) Followed {
		return inLanguage(s, *a.Language)
	}},
	"length_constraints:number_sentences": {[]string{"num_sentences", "relation"}, func(a arguments, s string) Followed {
		return related(Sentences(s), *a.Relation, *a.Sentences)
	}},
	"length_constraints:number_words": {[]string{"num_words", "relation"}, func(a arguments, s string) Followed {
		return related(Words(s), *a.Relation, *a.Words)
	}},
	"length_constraints:number_paragraphs": {[]string{"num_paragraphs"}, func(a arguments, s string) Followed {
		n, ok := paragraphs(s)
		return followed(ok && n == *a.Paragraphs)
	}},
	"length_constraints:nth_paragraph_first_word": {[]string{"num_paragraphs", "nth_paragraph", "first_word"}, nthParagraph},
	"detectable_content:number_placeholders": {[]string{"num_placeholders"}, func(a arguments, s string) Followed {
		return followed(len(placeholderRE.FindAllStringIndex(s, -1)) >= *a.Placeholders)
	}},
	"detectable_content:postscript": {[]string{"postscript_marker"}, func(a arguments, s string) Followed {
		return followed(postscript(*a.Marker).MatchString(strings.ToLower(s)))
	}},
	"detectable_format:number_bullet_lists": {[]string{"num_bullets"}, func(a arguments, s string) Followed {
		n := len(starRE.FindAllStringIndex(s, -1)) + len(dashRE.FindAllStringIndex(s, -1))
		return followed(n == *a.Bullets)
	}},
	"detectable_format:constrained_response": {nil, func(_ arguments, s string) Followed {
		return followed(strings.Contains(s, "My answer is yes.") || strings.Contains(s, "My answer is no.") || strings.Contains(s, "My answer is maybe."))
	}},
	"detectable_format:number_highlighted_sections": {[]string{"num_highlights"}, func(a arguments, s string) Followed {
		return followed(highlights(s) >= *a.Highlights)
	}},
	"detectable_format:multiple_sections": {[]string{"section_spliter", "num_sections"}, func(a arguments, s string) Followed {
		return followed(len(a.patterns[0].FindAllStringIndex(s, -1)) >= *a.Sections)
	}},
	"detectable_format:json_format": {nil, func(_ arguments, s string) Followed { return followed(json.Valid([]byte(unfenced(s)))) }},
	"detectable_format:title": {nil, func(_ arguments, s string) Followed {
		for _, t := range titleRE.FindAllString(s, -1) {
			if trim(strings.TrimRight(strings.TrimLeft(t, "<"), ">")) != "" {
				return Yes
			}
		}
		return No
	}},
	"combination:two_responses": {nil, func(_ arguments, s string) Followed { return followed(twoResponses(s)) }},
	"combination:repeat_prompt": {[]string{"prompt_to_repeat"}, func(a arguments, s string) Followed {
		return followed(strings.HasPrefix(strings.ToLower(trim(s)), strings.ToLower(trim(*a.Repeat))))
	}},
	"startend:end_checker": {[]string{"end_phrase"}, func(a arguments, s string) Followed {
		return followed(strings.HasSuffix(strings.ToLower(strings.Trim(trim(s), `"`)), strings.ToLower(trim(*a.End))))
	}},
	"startend:quotation": {nil, func(_ arguments, s string) Followed {
		s = trim(s)
		return followed(len(s) > 1 && s[0] == '"' && s[len(s)-1] == '"')
	}},
	"change_case:capital_word_frequency": {[]string{"capital_frequency", "capital_relation"}, func(a arguments, s string) Followed {
		return related(capitalWords(s), *a.CapitalRelation, *a.Capitals)
	}},
	"change_case:english_capital": {nil, func(_ arguments, s string) Followed {
		if !cased(s, unicode.IsUpper) {
			return No
		}
		return inLanguage(s, "en")
	}},
	"change_case:english_lowercase": {nil, func(_ arguments, s string) Followed {
		if !cased(s, unicode.IsLower) {
			return No
		}
		return inLanguage(s, "en")
	}},
	"punctuation:no_comma": {nil, func(_ arguments, s string) Followed { return followed(!strings.Contains(s, ",")) }},
}

var (
	placeholderRE = regexp.MustCompile(`\[.*?\]`)
	starRE        = regexp.MustCompile(`(?m)^` + reSpace + `*\*[^*].*$`)
	dashRE        = regexp.MustCompile(`(?m)^` + reSpace + `*-.*$`)
	titleRE       = regexp.MustCompile(`<<[^\n]+>>`)
	dividerRE     = regexp.MustCompile(reSpace + `?\*\*\*` + reSpace + `?`)
	highlightRE   = regexp.MustCompile(`\*[^\n*]*\*`)
	boldRE        = regexp.MustCompile(`\*\*[^\n*]*\*\*`)
)

func related(n int, relation string, limit int) Followed {
	if relation == "less than" {
		return followed(n < limit)
	}
	return followed(n >= limit)
}

func inLanguage(s, code string) Followed {
	found := Language(s)
	if found == "" {
		return Undetermined
	}
	return followed(found == code)
}

// hasWord reports whether re matches somewhere with no word cut off at either end.
func hasWord(s string, re *regexp.Regexp) bool {
	for from := 0; from < len(s); {
		at := re.FindStringIndex(s[from:])
		if at == nil {
			return false
		}
		i, j := from+at[0], from+at[1]
		if j > i && edge(s, i) && edge(s, j) {
			return true
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		from = i + max(size, 1)
	}
	return false
}

// edge is \b of Python: one side is a word character, the other is not.
func edge(s string, i int) bool {
	var before, after bool
	if i > 0 {
		r, _ := utf8.DecodeLastRuneInString(s[:i])
		before = wordRune(r)
	}
	if i < len(s) {
		r, _ := utf8.DecodeRuneInString(s[i:])
		after = wordRune(r)
	}
	return before != after
}

// paragraphs counts what the divider *** separates; ok is false if one in the middle
// is empty.
func paragraphs(s string) (n int, ok bool) {
	parts := dividerRE.Split(s, -1)
	n = len(parts)
	for i, p := range parts {
		if trim(p) == "" {
			if i != 0 && i != len(parts)-1 {
				return 0, false
			}
			n--
		}
	}
	return n, true
}

func nthParagraph(a arguments, s string) Followed {
	parts := strings.Split(s, "\n\n")
	n := len(parts)
	for _, p := range parts {
		if trim(p) == "" {
			n--
		}
	}
	if *a.Nth > n {
		return No
	}
	p := trim(parts[*a.Nth-1])
	if p == "" {
		return No
	}
	word := strings.TrimLeft(strings.TrimLeft(fields(p)[0], "'"), `"`)
	if i := strings.IndexAny(word, `.,?!'"`); i >= 0 {
		word = word[:i]
	}
	return followed(n == *a.Paragraphs && strings.EqualFold(word, *a.FirstWord))
}

func postscript(marker string) *regexp.Regexp {
	switch trim(marker) {
	case "P.P.S":
		return regexp.MustCompile(`p\.` + reSpace + `?p\.` + reSpace + `?s`)
	case "P.S.":
		return regexp.MustCompile(`p\.` + reSpace + `?s\.`)
	}
	return regexp.MustCompile(regexp.QuoteMeta(strings.ToLower(trim(marker))))
}

func highlights(s string) int {
	n := 0
	for _, h := range highlightRE.FindAllString(s, -1) {
		if trim(strings.Trim(h, "*")) != "" {
			n++
		}
	}
	for _, h := range boldRE.FindAllString(s, -1) {
		if trim(strings.TrimSuffix(strings.TrimPrefix(h, "**"), "**")) != "" {
			n++
		}
	}
	return n
}

func unfenced(s string) string {
	s = trim(s)
	for _, mark := range []string{"```json", "```Json", "```JSON", "```"} {
		s = strings.TrimPrefix(s, mark)
	}
	return trim(strings.TrimSuffix(s, "```"))
}

func twoResponses(s string) bool {
	parts := strings.Split(s, "******")
	var valid []string
	for i, p := range parts {
		if p = trim(p); p != "" {
			valid = append(valid, p)
		} else if i != 0 && i != len(parts)-1 {
			return false
		}
	}
	return len(valid) == 2 && valid[0] != valid[1]
}

// cased is str.isupper or str.islower of Python: all letters that have a case have
// this one, and there is one.
func cased(s string, is func(rune) bool) bool {
	any := false
	for _, r := range s {
		if is(r) {
			any = true
		} else if unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r) {
			return false
		}
	}
	return any
}

// Treebank's tokens, as far as they matter to words in capitals: what separates
// words, and contractions, which are two.
var (
	separatorRE   = regexp.MustCompile(`\.\.+|--+|[«»“”„‘’"` + "`" + `;@#$%&?!()\[\]{}<>*…]`)
	commaRE       = regexp.MustCompile(`([:,])($|[^` + reDigit + `])`)
	contractionRE = regexp.MustCompile(`(?i)([^' ])('s|'m|'d|'|'ll|'re|'ve|n't)( |$)`)
	togetherRE    = regexp.MustCompile(`(?i)\b(can)(not)\b|\b(d)('ye)\b|\b(gim)(me)\b|\b(gon)(na)\b|\b(got)(ta)\b|\b(lem)(me)\b|\b(more)('n)\b|\b(wan)(na)\b`)
)

// capitalWords counts the words that are all in capitals; a hyphenated one counts
// once, and so does the pronoun I.
func capitalWords(s string) int {
	s = separatorRE.ReplaceAllString(s, " $0 ")
	s = commaRE.ReplaceAllString(s, " $1 $2")
	s = strings.Join(fields(s), " ") + " "
	for range 2 { // neighbours share the blank between them
		s = contractionRE.ReplaceAllString(s, "$1 $2$3")
	}
	s = togetherRE.ReplaceAllString(s, "$1$3$5$7$9$11$13$15 $2$4$6$8$10$12$14$16")
	n := 0
	for _, w := range fields(s) {
		if cased(w, unicode.IsUpper) {
			n++
		}
	}
	return n
}

package perturb

import (
	"math/rand/v2"
	"regexp"
	"strings"
)

var (
	// Texts in which the order says something.
	orderedRE = regexp.MustCompile(`(?i)\b(?:first|firstly|then|next|finally|lastly|respectively|following|above|below|former|latter|rank|order of|sequence|sorted?|step|previous|preceding)\b|首先|然后|其次|最后|分别|依次|顺序|以下|上述|前者|后者|排序|步骤|如下`)
	// Sentences that lean on what was said before.
	leaningRE  = regexp.MustCompile(`(?i)\b(?:it|its|they|them|their|this|that|these|those|he|him|his|she|her|hers|there|such|same|one|ones|so|but|however|therefore|also|thus|hence|still|instead|otherwise|and|or|yet|because|too|either|both|else|answer|reply|yes)\b|[它这那该他她其此]|所以|因此|但是|不过|而且|并且|同时|否则|另外|也|还|就|再|回答`)
	sentenceRE = regexp.MustCompile(`[^.!?。！？\n]{8,400}(?:[.!?]+(?: |$)|[。！？]+|[.!?]\n)`)
	clauseRE   = regexp.MustCompile(`^(If|When|While|Because|Since|Although|After|Before|Once) ([^,.!?;:\n]{3,200}), ([^,.!?;:\n]{3,200})([.!?])$`)
	bulletRE   = regexp.MustCompile(`(?m)^([-*•]) (.+)\n([-*•]) (.+)$`)
	seriesRE   = regexp.MustCompile(`(?m)(?:^|[：:，,。])(\p{Han}{1,6})、(\p{Han}{1,6})、`)
	listedRE   = regexp.MustCompile(`\b(\w+), (\w+) (?:and|or) \w+`)
)

// reorderings offers two sentences of which neither leans on the other in the other
// order, two items of a list, and a clause that stands first put last.
func reorderings(t *text, _ *rand.Rand) (out []edit) {
	if orderedRE.MatchString(t.s) {
		return nil
	}
	sentences := sentenceRE.FindAllStringIndex(t.s, -1)
	for i, m := range sentences {
		out = append(out, clauses(t.s, m[0], m[1])...)
		if i+1 == len(sentences) || sentences[i+1][0] != m[1] {
			continue
		}
		a, b := t.s[m[0]:m[1]], t.s[m[1]:sentences[i+1][1]]
		if strings.Contains(a+b, "\n") || leaningRE.MatchString(a) || leaningRE.MatchString(b) || t.cuts(m[1]) {
			continue
		}
		one, gap := strings.TrimRight(a, " "), a[len(strings.TrimRight(a, " ")):]
		two, tail := strings.TrimRight(b, " "), b[len(strings.TrimRight(b, " ")):]
		lead := one[:len(one)-len(strings.TrimLeft(one, " "))]
		out = append(out, edit{m[0], sentences[i+1][1], lead + strings.TrimLeft(two, " ") + gap + strings.TrimLeft(one, " ") + tail})
	}
	for _, m := range bulletRE.FindAllStringSubmatchIndex(t.s, -1) {
		out = append(out, edit{m[4], m[9], t.s[m[8]:m[9]] + t.s[m[5]:m[8]] + t.s[m[4]:m[5]]})
	}
	for _, re := range []*regexp.Regexp{seriesRE, listedRE} {
		for _, m := range re.FindAllStringSubmatchIndex(t.s, -1) {
			if !t.protected(m[2], m[5]) {
				out = append(out, edit{m[2], m[5], t.s[m[4]:m[5]] + t.s[m[3]:m[4]] + t.s[m[2]:m[3]]})
			}
		}
	}
	return out
}

// clauses offers "Y if X." for a sentence "If X, Y."
func clauses(s string, from, to int) []edit {
	for from < to && s[from] == ' ' {
		from++
	}
	for to > from && (s[to-1] == ' ' || s[to-1] == '\n') {
		to--
	}
	m := clauseRE.FindStringSubmatch(s[from:to])
	if m == nil || leaningRE.MatchString(m[3]) {
		return nil
	}
	return []edit{{from, to, strings.ToUpper(m[3][:1]) + m[3][1:] + " " + strings.ToLower(m[1]) + " " + m[2] + m[4]}}
}

// cuts reports whether something protected lies on both sides of a byte.
func (t *text) cuts(at int) bool { return t.protected(at, at) }

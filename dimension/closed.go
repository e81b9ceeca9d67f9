package dimension

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/verify"
)

// closed is a question with a closed set of answers, each behind a letter.
type closed struct {
	id, template, language, kind string

	text    string   // what is asked, without the options: what may be written otherwise
	options []string // as they are shown, from A
	right   int      // of the options; −1: none is
	line    []int    // of each option: 1 permits, −1 refuses, 0 neither; nil: the question is of no policy
}

// wants says how to answer, by language.
var wants = map[string]string{"en": "Answer with one letter.", "zh": "只回答一个字母。"}

func letter(i int) string { return string(rune('A' + i)) }

// prompt is the question with a text in place of its own.
func (c *closed) prompt(text string) string {
	var b strings.Builder
	b.WriteString(text + "\n\n")
	for i, o := range c.options {
		fmt.Fprintf(&b, "%s) %s\n", letter(i), o)
	}
	b.WriteString("\n" + wants[c.language])
	return b.String()
}

// read finds the option that an answer names, by its letter or by its words; −1:
// none, or several.
func (c *closed) read(answer string) int {
	letters := make([]string, len(c.options))
	for i := range letters {
		letters[i] = letter(i)
	}
	for _, names := range [][]string{letters, c.options} {
		r := verify.Expected{Kind: verify.Choice, Value: names[0], Options: names}.Check(answer)
		for i, n := range names {
			if r.Outcome != verify.Unparsed && r.Found == n {
				return i
			}
		}
	}
	return -1
}

// mass is the probability of each option as first token, and last that of
// everything else; ok is false if the answer has no alternatives.
func (c *closed) mass(a *check.Answer) (p []float64, ok bool) {
	p = make([]float64, len(c.options)+1)
	if len(a.Tokens) == 0 || len(a.Tokens[0].Top) == 0 {
		return p, false
	}
	rest := 1.0
	for _, t := range a.Tokens[0].Top {
		s := strings.ToUpper(strings.Trim(t.Text, " \t\n(*\"▁Ġ"))
		if len(s) == 1 && s[0] >= 'A' && int(s[0]-'A') < len(c.options) {
			x := math.Min(math.Exp(t.Logprob), rest)
			p[s[0]-'A'] += x
			rest -= x
		}
	}
	p[len(p)-1] = math.Max(rest, 0)
	return p, true
}

// shuffled puts the options in an order of chance, and what is said of each with
// them.
func (c *closed) shuffled(r *rand.Rand) {
	order := r.Perm(len(c.options))
	options, line, right := make([]string, len(order)), []int(nil), c.right
	if c.line != nil {
		line = make([]int, len(order))
	}
	for to, from := range order {
		options[to] = c.options[from]
		if line != nil {
			line[to] = c.line[from]
		}
		if from == c.right {
			right = to
		}
	}
	c.options, c.line, c.right = options, line, right
}

// generated takes n templates of each language by turns: all once, in an order of
// chance, before any comes again. Templates of one index are of one language.
func generated(r *rand.Rand, n int, languages []string, templates map[string]int, one func(language string, template, i int) closed) []closed {
	order, next := make(map[string][]int), make(map[string]int)
	out := make([]closed, 0, n)
	for i := range n {
		l := languages[i%len(languages)]
		if next[l]%templates[l] == 0 {
			order[l] = r.Perm(templates[l])
		}
		out = append(out, one(l, order[l][next[l]%templates[l]], i))
		next[l]++
	}
	return out
}

// fill puts drawn things in the places of a template: numbers in {lo-hi}, and one
// of a list in {a|b|c}.
func fill(r *rand.Rand, template string) string {
	var b strings.Builder
	for {
		before, rest, open := strings.Cut(template, "{")
		b.WriteString(before)
		if !open {
			return b.String()
		}
		slot, after, _ := strings.Cut(rest, "}")
		var lo, hi int
		if n, _ := fmt.Sscanf(slot, "%d-%d", &lo, &hi); n == 2 {
			fmt.Fprint(&b, lo+r.IntN(hi-lo+1))
		} else {
			list := strings.Split(slot, "|")
			b.WriteString(list[r.IntN(len(list))])
		}
		template = after
	}
}

// stranger is the first of the names that is not among those there are; "": all
// are.
func stranger(names, all []string) string {
	for _, n := range names {
		if !slices.Contains(all, n) {
			return n
		}
	}
	return ""
}

func caseID(kind, language string, i int) string { return fmt.Sprintf("%s-%s-%03d", kind, language, i) }

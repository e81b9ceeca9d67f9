package perturb

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"unicode/utf8"
)

var courtesyRE = regexp.MustCompile(`(?i)\bplease,? +|,? +please\b|\bkindly +|\b(?:thank you(?: very much)?|thanks(?: in advance| a lot)?|many thanks)(?: for your help)?[.!]* *|^(?:hello|hi|good morning|good day)[,!.] +|` +
	`谢谢(?:您|你)?[。！!]?|^(?:您|你)好[，,！!。]|麻烦(?:您|你)?[，,]?|请问[，,]?`)

// courtesies offers to take away what is polite in a text, or to add to it.
func courtesies(t *text, r *rand.Rand) (out []edit) {
	polite := courtesyRE.FindAllStringIndex(t.s, -1)
	if len(polite) > 0 && r.IntN(2) == 0 {
		for _, m := range polite {
			e := edit{m[0], m[1], ""}
			// What follows begins the sentence now.
			if next := e.to; begins(t.s, e.from) && next < len(t.s) && t.s[next] >= 'a' && t.s[next] <= 'z' && t.s[e.from] >= 'A' && t.s[e.from] <= 'Z' {
				e.to, e.with = next+1, strings.ToUpper(t.s[next:next+1])
			}
			out = append(out, e)
		}
		return out
	}
	first, _ := utf8.DecodeRuneInString(t.s)
	last, _ := utf8.DecodeLastRuneInString(t.s)
	ended := strings.ContainsRune(".!?。！？", last)
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	switch {
	case t.han:
		if isHan(first) && !strings.HasPrefix(t.s, "您好") && !strings.HasPrefix(t.s, "你好") {
			out = append(out, edit{0, 0, pick("您好，", "你好，", "您好！")})
		}
		if ended {
			out = append(out, edit{len(t.s), len(t.s), pick("谢谢！", "谢谢您。", "多谢了！", "感谢您的帮助。")})
		}
	case len(t.words) > 0:
		if len(t.keep) == 0 || t.keep[0].from > 0 {
			out = append(out, edit{0, 0, pick("Hello! ", "Good day. ", "Excuse me. ", "Hi there! ")})
		}
		if ended {
			out = append(out, edit{len(t.s), len(t.s), pick(" Thank you.", " Thanks in advance.", " Thank you very much for your help.", " Many thanks!")})
		}
	}
	return out
}

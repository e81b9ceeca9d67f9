package config

import (
	"strings"
	"unicode/utf8"
)

// suggestBound is the length in bytes beyond which a word is nobody's typing
// error; it keeps the quadratic distance cheap.
const suggestBound = 64

// Nearest returns the word of known that was most likely meant by got, for the
// hints of a Decoder; ok is false if none is near.
func Nearest(got string, known []string) (word string, ok bool) { return suggest(got, known) }

// suggest returns the word of known that was most likely meant by got.
func suggest(got string, known []string) (string, bool) {
	if len(got) > suggestBound {
		return "", false
	}
	best, at := "", -1
	g := fold(got)
	for _, k := range known {
		if len(k) > suggestBound {
			continue
		}
		d := distance(g, fold(k))
		limit := max(1, utf8.RuneCountInString(k)/3)
		if utf8.RuneCountInString(got) < 2 && d > 0 {
			continue // one letter is at distance 1 from every two-letter word
		}
		if d <= limit && (at < 0 || d < at) {
			best, at = k, d
		}
	}
	return best, at >= 0
}

// fold makes words alike that people spell alike: case, and the three ways to
// join words.
func fold(s string) string {
	return strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(s))
}

// distance is the optimal string alignment distance: insertions, deletions,
// substitutions and swaps of neighbours each cost 1 (Boytsov 2011, section 2.1).
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	two, one, cur := make([]int, len(t)+1), make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range one {
		one[j] = j
	}
	for i := 1; i <= len(s); i++ {
		cur[0] = i
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			cur[j] = min(one[j]+1, cur[j-1]+1, one[j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				cur[j] = min(cur[j], two[j-2]+1)
			}
		}
		two, one, cur = one, cur, two
	}
	return one[len(t)]
}

// oneOfHint is the next step after a word that is not among the known ones.
func oneOfHint(got string, known []string) string {
	if len(known) == 0 {
		return "remove it"
	}
	if s, ok := suggest(got, known); ok {
		return "did you mean " + s + "?"
	}
	const most = 16
	if len(known) > most {
		return "use one of " + strings.Join(known[:most], ", ") + ", …"
	}
	if len(known) == 1 {
		return "use " + known[0]
	}
	return "use one of " + strings.Join(known, ", ")
}

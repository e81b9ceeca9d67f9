package perturb

import (
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// homophones offers a character of equal sound for each Chinese one of the table,
// and a word of equal sound for each English one.
func homophones(t *text, r *rand.Rand) []edit {
	return append(characters(t, r, soundZh()), replaced(t, r, sounds())...)
}

func shapes(t *text, r *rand.Rand) []edit { return characters(t, r, lookalike()) }

// characters offers for each character another of its group.
func characters(t *text, r *rand.Rand, table map[rune][]rune) (out []edit) {
	for i, c := range t.s {
		if c < 0x80 {
			continue
		}
		if with := table[c]; len(with) > 0 {
			out = append(out, edit{i, i + utf8.RuneLen(c), string(with[r.IntN(len(with))])})
		}
	}
	return out
}

// particles offers another of 的, 地 and 得 for one that stands within a sentence
// and is no part of a word.
func particles(t *text, r *rand.Rand) (out []edit) {
	words := []string{"的地", "目的", "的确", "的士", "地址", "地点", "地方", "地区", "地铁", "地图", "当地", "本地", "异地", "土地", "各地", "外地", "场地", "地产", "地震", "得到", "获得", "觉得", "取得", "记得", "值得", "得知", "必得", "所得"}
	for i, c := range t.s {
		if c != '的' && c != '地' && c != '得' {
			continue
		}
		end := i + utf8.RuneLen(c)
		before, size := utf8.DecodeLastRuneInString(t.s[:i])
		after, next := utf8.DecodeRuneInString(t.s[end:])
		if !isHan(before) || !isHan(after) {
			continue
		}
		around := t.s[i-size : end+next]
		part := false
		for _, w := range words {
			part = part || strings.Contains(around, w)
		}
		if !part {
			others := []string{"的", "地", "得"}
			with := others[r.IntN(3)]
			for with == string(c) {
				with = others[r.IntN(3)]
			}
			out = append(out, edit{i, end, with})
		}
	}
	return out
}

// scripts offers traditional characters for simplified ones, or the other way round
// in a text that has more of those.
func scripts(t *text, _ *rand.Rand) (out []edit) {
	to, old := traditional(), simplified()
	simple, full := 0, 0
	for _, c := range t.s {
		if _, ok := to[c]; ok {
			simple++
		}
		if _, ok := old[c]; ok {
			full++
		}
	}
	if full > simple {
		to = old
	}
	for i, c := range t.s {
		if with, ok := to[c]; ok {
			out = append(out, edit{i, i + utf8.RuneLen(c), string(with)})
		}
	}
	return out
}

// terms offers for each term of a trade what it is misheard as. Of two Chinese terms
// that overlap it takes the longer.
func terms(t *text, _ *rand.Rand) (out []edit) {
	table := misheard()
	for _, w := range t.words {
		word := t.s[w.from:w.to]
		stem, ending := strings.ToLower(word), ""
		if table[stem] == "" {
			stem, ending = strings.TrimSuffix(stem, "s"), "s"
		}
		if with := table[stem]; with != "" {
			out = append(out, edit{w.from, w.to, cased(with+ending, word)})
		}
	}
	return append(out, longest(t, func(s string) string { return table[s] })...)
}

// longest offers what a table has for the longest run of two to eight Chinese
// characters at each place, from left to right.
func longest(t *text, table func(string) string) (out []edit) {
	var at []int // of each character, and the end
	for i := range t.s {
		at = append(at, i)
	}
	at = append(at, len(t.s))
	for i := 0; i+1 < len(at); i++ {
		if r, _ := utf8.DecodeRuneInString(t.s[at[i]:]); !isHan(r) {
			continue
		}
		for n := min(8, len(at)-1-i); n >= 2; n-- {
			if with := table(t.s[at[i]:at[i+n]]); with != "" {
				out = append(out, edit{at[i], at[i+n], with})
				i += n - 1
				break
			}
		}
	}
	return out
}

package perturb

import (
	"math/rand/v2"
	"strings"
	"unicode"
	"unicode/utf8"
)

// beside are the keys around each on a QWERTY keyboard.
var beside = map[byte]string{
	'q': "wa", 'w': "qes", 'e': "wrd", 'r': "etf", 't': "ryg", 'y': "tuh", 'u': "yij", 'i': "uok", 'o': "ipl", 'p': "ol",
	'a': "qsz", 's': "awdx", 'd': "sefc", 'f': "drgv", 'g': "fthb", 'h': "gyjn", 'j': "hukm", 'k': "jil", 'l': "kop",
	'z': "asx", 'x': "zsdc", 'c': "xdfv", 'v': "cfgb", 'b': "vghn", 'n': "bhjm", 'm': "njk",
}

// typos offers an error in each English word of four letters or more: never in its
// first letter, and none that makes another word of it.
func typos(t *text, r *rand.Rand) (out []edit) {
	for _, w := range t.words {
		word := t.s[w.from:w.to]
		if len(word) < 4 || strings.ContainsAny(word, "'’") {
			continue
		}
		for range 6 {
			if typed := mistype(word, r); typed != word && !known()[strings.ToLower(typed)] {
				out = append(out, edit{w.from, w.to, typed})
				break
			}
		}
	}
	return out
}

// mistype makes one error in a word of four letters or more.
func mistype(word string, r *rand.Rand) string {
	i := 1 + r.IntN(len(word)-2)
	switch r.IntN(4) {
	case 0:
		return word[:i] + word[i+1:i+2] + word[i:i+1] + word[i+2:]
	case 1:
		return word[:i] + word[i+1:]
	case 2:
		return word[:i] + word[i:i+1] + word[i:]
	}
	near := beside[lower(word[i])]
	if near == "" {
		return word
	}
	return word[:i] + near[r.IntN(len(near)):][:1] + word[i+1:]
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// misspellings offers the table's error of each word that is in it.
func misspellings(t *text, r *rand.Rand) []edit { return replaced(t, r, misspelt()) }

// replaced offers for each English word one that a table has for it.
func replaced(t *text, r *rand.Rand, table map[string][]string) (out []edit) {
	for _, w := range t.words {
		word := t.s[w.from:w.to]
		if with := table[strings.ToLower(strings.ReplaceAll(word, "’", "'"))]; len(with) > 0 {
			out = append(out, edit{w.from, w.to, cased(with[r.IntN(len(with))], word)})
		}
	}
	return out
}

// cased writes a word as another is written: with a capital, or in capitals.
func cased(word, like string) string {
	switch {
	case len(like) > 1 && strings.ToUpper(like) == like && strings.ToLower(like) != like:
		return strings.ToUpper(word)
	case word != "" && like != "" && like[0] >= 'A' && like[0] <= 'Z':
		return strings.ToUpper(word[:1]) + word[1:]
	}
	return word
}

// cases offers small letters for every capital, or where there is none, capitals
// for every third word.
func cases(t *text, r *rand.Rand) (out []edit) {
	capitals := false
	for _, w := range t.words {
		word := t.s[w.from:w.to]
		if low := strings.ToLower(word); low != word && !t.protected(w.from, w.to) {
			capitals = true
			out = append(out, edit{w.from, w.to, low})
		}
	}
	if capitals && (len(t.words) < 3 || r.IntN(2) == 0) {
		return out
	}
	var shouted []edit
	for _, w := range t.words {
		if w.to-w.from >= 3 && r.IntN(3) == 0 && !t.protected(w.from, w.to) {
			shouted = append(shouted, edit{w.from, w.to, strings.ToUpper(t.s[w.from:w.to])})
		}
	}
	if len(shouted) == 0 {
		return out
	}
	return shouted
}

// spacings offers a second space between words, none after a comma, one before a
// mark, and one between two Chinese characters.
func spacings(t *text, r *rand.Rand) (out []edit) {
	var before rune
	for i, c := range t.s {
		end := i + utf8.RuneLen(c)
		after, _ := utf8.DecodeRuneInString(t.s[end:])
		switch {
		case c == ' ' && before == ',' && unicode.IsLetter(after):
			out = append(out, edit{i, end, ""})
		case c == ' ' && unicode.IsLetter(before) && unicode.IsLetter(after):
			out = append(out, edit{i, end, "  "})
		case (c == '?' || c == '!' || c == ',') && unicode.IsLetter(before) && r.IntN(2) == 0:
			out = append(out, edit{i, i, " "})
		case isHan(c) && isHan(before):
			out = append(out, edit{i, i, " "})
		}
		before = c
	}
	return out
}

// widths offers, in Chinese text, the other width for runs of letters and digits and
// for marks.
func widths(t *text, _ *rand.Rand) (out []edit) {
	if !t.han {
		return nil
	}
	marks := map[rune]string{'，': ",", '？': "?", '！': "!", '：': ":", '（': "(", '）': ")", '；': ";", ',': "，", '?': "？", '!': "！", ':': "：", '(': "（", ')': "）", ';': "；"}
	run := -1
	flush := func(to int) {
		if run >= 0 {
			out = append(out, edit{run, to, otherWidth(t.s[run:to])})
		}
		run = -1
	}
	for i, c := range t.s {
		n := narrow(string(c))
		if alnum := len(n) == 1 && (n[0] >= '0' && n[0] <= '9' || lower(n[0]) >= 'a' && lower(n[0]) <= 'z'); alnum {
			if run < 0 {
				run = i
			}
			continue
		}
		flush(i)
		if with, ok := marks[c]; ok {
			out = append(out, edit{i, i + utf8.RuneLen(c), with})
		}
	}
	flush(len(t.s))
	return out
}

// otherWidth writes letters and digits in the width that they do not have.
func otherWidth(s string) string {
	if n := narrow(s); n != s {
		return n
	}
	return strings.Map(func(r rune) rune { return r + 0xfee0 }, s)
}

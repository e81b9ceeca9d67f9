package overlap

import "strings"

// porter stems a word of lower case ASCII letters and digits as the Porter
// stemmer of NLTK does in its mode NLTK_EXTENSIONS, which differs from Martin
// Porter's own in words such as "skies", "enjoyed" and "hopefully". Words of
// one or two letters are their own stem.
func porter(word string) string {
	if stem, ok := irregular[word]; ok {
		return stem
	}
	if len(word) <= 2 {
		return word
	}
	w := singular(word)
	w = participle(w)
	if n := len(w) - 1; n > 1 && w[n] == 'y' && consonant(w, n-1) {
		w = w[:n] + "i"
	}
	w = double(w)
	w = replace(w, simplify, 0)
	w = derived(w)
	return final(w)
}

var irregular = map[string]string{
	"sky": "sky", "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "news": "news",
	"innings": "inning", "inning": "inning", "outings": "outing", "outing": "outing",
	"cannings": "canning", "canning": "canning", "howe": "howe",
	"proceed": "proceed", "exceed": "exceed", "succeed": "succeed",
}

// A rule replaces the end of a word.
type rule struct{ end, with string }

// Steps 2 to 4 of the algorithm. The first rule whose end fits is the only one
// to be tried.
var (
	doubles = []rule{
		{"ational", "ate"},
		{"tional", "tion"},
		{"enci", "ence"},
		{"anci", "ance"},
		{"izer", "ize"},
		{"bli", "ble"},
		{"alli", "al"},
		{"entli", "ent"},
		{"eli", "e"},
		{"ousli", "ous"},
		{"ization", "ize"},
		{"ation", "ate"},
		{"ator", "ate"},
		{"alism", "al"},
		{"iveness", "ive"},
		{"fulness", "ful"},
		{"ousness", "ous"},
		{"aliti", "al"},
		{"iviti", "ive"},
		{"biliti", "ble"},
		{"fulli", "ful"},
	}
	simplify = []rule{
		{"icate", "ic"},
		{"ative", ""},
		{"alize", "al"},
		{"iciti", "ic"},
		{"ical", "ic"},
		{"ful", ""},
		{"ness", ""},
	}
	endings = []string{
		"al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion",
		"ou", "ism", "ate", "iti", "ous", "ive", "ize",
	}
)

// replace applies the rule whose end fits, if what stays has more than so many
// vowel-consonant pairs.
func replace(w string, rules []rule, more int) string {
	for _, r := range rules {
		if stem, ok := strings.CutSuffix(w, r.end); ok {
			if measure(stem) > more {
				return stem + r.with
			}
			return w
		}
	}
	return w
}

// singular is step 1a.
func singular(w string) string {
	switch {
	case strings.HasSuffix(w, "ies") && len(w) == 4:
		return w[:3]
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "ies"):
		return w[:len(w)-2]
	case strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss"):
		return w[:len(w)-1]
	}
	return w
}

// participle is step 1b.
func participle(w string) string {
	switch {
	case strings.HasSuffix(w, "ied") && len(w) == 4:
		return w[:3]
	case strings.HasSuffix(w, "ied"):
		return w[:len(w)-2]
	case strings.HasSuffix(w, "eed"):
		if measure(w[:len(w)-3]) > 0 {
			return w[:len(w)-1]
		}
		return w
	}
	stem, ok := strings.CutSuffix(w, "ed")
	if !ok || !vowels(stem) {
		if stem, ok = strings.CutSuffix(w, "ing"); !ok || !vowels(stem) {
			return w
		}
	}
	n := len(stem)
	switch {
	case strings.HasSuffix(stem, "at"), strings.HasSuffix(stem, "bl"), strings.HasSuffix(stem, "iz"):
		return stem + "e"
	case n >= 2 && stem[n-1] == stem[n-2] && consonant(stem, n-1):
		if strings.IndexByte("lsz", stem[n-1]) < 0 {
			return stem[:n-1]
		}
	case measure(stem) == 1 && closed(stem):
		return stem + "e"
	}
	return stem
}

// double is step 2.
func double(w string) string {
	if stem, ok := strings.CutSuffix(w, "alli"); ok && measure(stem) > 0 {
		w = stem + "al"
	}
	if strings.HasSuffix(w, "logi") && measure(w[:len(w)-3]) > 0 {
		return w[:len(w)-1]
	}
	return replace(w, doubles, 0)
}

// derived is step 4.
func derived(w string) string {
	for _, e := range endings {
		if stem, ok := strings.CutSuffix(w, e); ok {
			if measure(stem) > 1 && (e != "ion" || strings.HasSuffix(stem, "s") || strings.HasSuffix(stem, "t")) {
				return stem
			}
			return w
		}
	}
	return w
}

// final is step 5.
func final(w string) string {
	if stem, ok := strings.CutSuffix(w, "e"); ok {
		if n := measure(stem); n > 1 || n == 1 && !closed(stem) {
			w = stem
		}
	}
	if strings.HasSuffix(w, "ll") && measure(w[:len(w)-1]) > 1 {
		w = w[:len(w)-1]
	}
	return w
}

// consonant: y is one at the beginning and after a vowel.
func consonant(w string, i int) bool {
	switch w[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return false
	case 'y':
		is := true
		for ; i > 0 && w[i] == 'y'; i-- {
			is = !is
		}
		if strings.IndexByte("aeiou", w[i]) >= 0 {
			return !is
		}
		return is
	}
	return true
}

// follows tells whether w[i] is a consonant, given whether the letter before is.
func follows(w string, i int, before bool) bool {
	switch w[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return false
	case 'y':
		return i == 0 || !before
	}
	return true
}

// measure counts the changes from vowels to consonants.
func measure(w string) int {
	n, last := 0, true
	for i := range len(w) {
		is := follows(w, i, last)
		if is && !last {
			n++
		}
		last = is
	}
	return n
}

func vowels(w string) bool {
	last := true
	for i := range len(w) {
		if last = follows(w, i, last); !last {
			return true
		}
	}
	return false
}

// closed: a consonant, a vowel and a consonant other than w, x and y at the
// end, or just a vowel and a consonant.
func closed(w string) bool {
	n := len(w)
	if n == 2 {
		return !consonant(w, 0) && consonant(w, 1)
	}
	return n > 2 && consonant(w, n-3) && !consonant(w, n-2) && consonant(w, n-1) && strings.IndexByte("wxy", w[n-1]) < 0
}

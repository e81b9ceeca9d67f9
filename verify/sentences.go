package verify

import (
	"regexp"
	"sync"
	"unicode"

	"github.com/neurosnap/sentences"
	"github.com/neurosnap/sentences/english"
)

// punkt is the sentence splitter of NLTK, trained on English, which IFEval counts
// with. It is read-only once made.
var punkt = sync.OnceValue(func() *sentences.DefaultSentenceTokenizer {
	t, err := english.NewSentenceTokenizer(nil)
	if err != nil {
		panic("verify: the embedded model of English sentences: " + err.Error())
	}
	return t
})

// Sentences counts the sentences of a text, by Punkt's model of English and, in
// scripts that it does not know, by their own full stops.
func Sentences(text string) int {
	if trim(text) == "" {
		return 0
	}
	n := 0
	for _, s := range punkt().Tokenize(text) {
		if trim(s.Text) == "" {
			continue
		}
		n += max(1, cjkSentences(s.Text))
	}
	return n
}

// cjkSentences counts the sentences that end with a full stop of Chinese, Japanese
// or an Indian script, and what follows the last of them.
func cjkSentences(s string) int {
	n, rest := 0, false
	for _, r := range s {
		switch {
		case r == '。' || r == '！' || r == '？' || r == '।' || r == '॥':
			if rest {
				n++
			}
			rest = false
		case unicode.IsLetter(r) || unicode.IsNumber(r):
			rest = true
		}
	}
	if n > 0 && rest {
		n++
	}
	return n
}

var wordRE = regexp.MustCompile(reWord + `+`)

// Words counts runs of letters, digits and underscores. Scripts that write no space
// between words have few of them: use Runes for those.
func Words(text string) int { return len(wordRE.FindAllStringIndex(text, -1)) }

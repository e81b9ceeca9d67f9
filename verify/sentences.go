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
func Sentences(text string) int { return len(SplitSentences(text)) }

// SplitSentences returns the sentences of a text, without the white space around
// them. See Sentences.
func SplitSentences(text string) []string {
	if trim(text) == "" {
		return nil
	}
	var out []string
	for _, s := range punkt().Tokenize(text) {
		out = appendSentences(out, s.Text)
	}
	return out
}

// appendSentences cuts what Punkt took for one sentence after the full stops of
// Chinese, Japanese and Indian scripts. What has no letter or digit belongs to the
// sentence before.
func appendSentences(out []string, s string) []string {
	start, said := 0, false
	for i, r := range s {
		switch r {
		case '。', '！', '？', '।', '॥':
			if said {
				end := i + len(string(r))
				out = append(out, trim(s[start:end]))
				start, said = end, false
			}
		default:
			said = said || unicode.IsLetter(r) || unicode.IsNumber(r)
		}
	}
	rest := trim(s[start:])
	if rest == "" || !said && start > 0 {
		return out
	}
	return append(out, rest)
}

var wordRE = regexp.MustCompile(reWord + `+`)

// Words counts runs of letters, digits and underscores. Scripts that write no space
// between words have few of them: use Runes for those.
func Words(text string) int { return len(wordRE.FindAllStringIndex(text, -1)) }

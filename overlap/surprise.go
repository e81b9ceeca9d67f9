package overlap

import (
	"errors"
	"math"
	"strings"
	"unicode"
)

// Surprise is how improbable the words of an answer are by the words of other
// answers to the same question, in nats a word: SelfCheckGPT's unigram estimator
// (Manakul, Liusie & Gales 2023). What a model knows it says again; what it invents
// is different each time, and rare among its answers. It orders answers for
// people to look at. It is no probability of anything, and grows with the number of
// different words, so that only answers to like questions can be compared.
type Surprise struct {
	Mean      float64 // over all words of the answer
	Most      float64 // mean over its sentences of their most improbable word
	Sentences []SentenceSurprise
}

// SentenceSurprise is that of one sentence.
type SentenceSurprise struct{ Mean, Most float64 }

// surpriseWords are runs of letters, digits and underscores, and all other characters
// that are no white space by themselves: the pattern \w+|[^\w\s] with which the
// published figures come out. Where no spaces are written, a character is a word.
func surpriseWords(text string) (words []string) {
	var run strings.Builder
	end := func() {
		if run.Len() > 0 {
			words = append(words, run.String())
			run.Reset()
		}
	}
	for _, r := range strings.ToLower(text) {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			end()
			words = append(words, string(r))
		case r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
			run.WriteRune(r)
		case unicode.IsSpace(r):
			end()
		default:
			end()
			words = append(words, string(r))
		}
	}
	end()
	return words
}

// Surprised scores the sentences of an answer. The words of the answer itself count
// among those of the samples, as they do in the original. It refuses an answer
// without words, one without samples, and sentences that are not the answer's.
func Surprised(answer string, sentences, samples []string) (Surprise, error) {
	if len(samples) == 0 {
		return Surprise{}, errors.New("scoring by samples: there is none")
	}
	counts, n := make(map[string]int), 0
	for _, text := range append([]string{answer}, samples...) {
		for _, w := range surpriseWords(text) {
			counts[w]++
			n++
		}
	}
	var s Surprise
	words := 0
	for _, sentence := range sentences {
		var one SentenceSurprise
		here := surpriseWords(sentence)
		for _, w := range here {
			if counts[w] == 0 {
				return Surprise{}, errors.New("scoring by samples: a sentence has a word that is not in the answer")
			}
			x := math.Log(float64(n)) - math.Log(float64(counts[w]))
			one.Mean += x
			one.Most = math.Max(one.Most, x)
		}
		if len(here) == 0 {
			continue // of stops alone there are words, of white space none
		}
		s.Mean += one.Mean
		words += len(here)
		one.Mean /= float64(len(here))
		s.Most += one.Most
		s.Sentences = append(s.Sentences, one)
	}
	if words == 0 {
		return Surprise{}, errors.New("scoring by samples: the answer has no words")
	}
	s.Mean /= float64(words)
	s.Most /= float64(len(s.Sentences))
	return s, nil
}

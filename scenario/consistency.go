package scenario

import (
	"math"
	"slices"
	"strings"
	"unicode"
)

// Window is three consecutive replies of a dialogue.
type Window struct {
	Turn       int     // of the last of them
	Similarity float64 // mean of the three pairs, 0 to 1; a reply said twice word by word counts 0 with itself
	Retention  float64 // share of the values that the last reply had to assert which it asserts
	Distinct   float64 // share of the pairs of neighbouring words in the three that are different ones: low where a model repeats itself
}

// Windows looks at the replies of one dialogue through windows of three turns. alike
// is how alike the residues of two replies are, on a scale where 0 is what unrelated
// replies of the suite have and 1 the same text. Windows whose last turn has no value
// to assert have no retention and are left out; so a dialogue of fewer than three
// turns has none.
//
// A model that says the same again and again would be perfectly similar. What it
// repeats word by word is not counted as similar at all.
func (s *Scenario) Windows(replies []string, alike func(i, j int) float64) (out []Window) {
	for t := 2; t < min(len(replies), len(s.Turns)); t++ {
		kept, of := s.Retained(t, replies[t])
		if of == 0 {
			continue
		}
		w := Window{Turn: t, Retention: float64(kept) / float64(of), Distinct: distinctPairs(replies[t-2 : t+1])}
		for _, p := range [][2]int{{t - 2, t - 1}, {t - 2, t}, {t - 1, t}} {
			if squash(fold(replies[p[0]])) != squash(fold(replies[p[1]])) {
				w.Similarity += math.Max(0, math.Min(1, alike(p[0], p[1]))) / 3
			}
		}
		out = append(out, w)
	}
	return out
}

// Score is the response consistency score of one dialogue.
type Score struct {
	Mean     float64 // over its windows
	Least    float64 // of its worst window
	Distinct float64 // mean over its windows
}

// Consistency is the mean and the least over the windows of a dialogue of
//
//	alpha · min(similarity, most) + (1 − alpha) · retention.
//
// most is what the similarity is capped at: the baseline's 95th percentile, so that to
// be more alike than the baseline ever is gains nothing. ok is false without windows:
// such a dialogue has no score, and not 1.
func Consistency(windows []Window, alpha, most float64) (score Score, ok bool) {
	if len(windows) == 0 {
		return Score{}, false
	}
	score.Least = math.Inf(1)
	for _, w := range windows {
		x := alpha*math.Min(w.Similarity, most) + (1-alpha)*w.Retention
		score.Mean += x / float64(len(windows))
		score.Distinct += w.Distinct / float64(len(windows))
		score.Least = math.Min(score.Least, x)
	}
	return score, true
}

// distinctPairs is the share of different ones among the pairs of neighbouring words
// of texts; of Chinese, of neighbouring characters. Texts without a pair have 1.
func distinctPairs(texts []string) float64 {
	seen, n := make(map[string]bool), 0
	for _, text := range texts {
		w := wordsOf(fold(text))
		for i := 1; i < len(w); i++ {
			seen[w[i-1]+" "+w[i]] = true
			n++
		}
	}
	if n == 0 {
		return 1
	}
	return float64(len(seen)) / float64(n)
}

// wordsOf splits a folded text into words, and Chinese into characters.
func wordsOf(text string) (out []string) {
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			out = append(out, word.String())
			word.Reset()
		}
	}
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Han, r):
			end()
			out = append(out, string(r))
		case unicode.IsLetter(r) || unicode.IsNumber(r):
			word.WriteRune(r)
		default:
			end()
		}
	}
	end()
	return out
}

// Quantile95 is the 95th percentile of the similarities of windows; 1 if there are
// none.
func Quantile95(windows []Window) float64 {
	if len(windows) == 0 {
		return 1
	}
	all := make([]float64, len(windows))
	for i, w := range windows {
		all[i] = w.Similarity
	}
	slices.Sort(all)
	return all[int(math.Ceil(.95*float64(len(all))))-1]
}

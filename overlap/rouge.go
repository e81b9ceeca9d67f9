package overlap

import (
	"fmt"
	"slices"
	"strings"
)

// ROUGE is the F-score of what a summary and its reference share (Lin, 2004),
// from 0 to 1. Of a corpus it is the mean over the segments, of several
// references the best.
type ROUGE struct {
	// Type is "1", "2" ... "9" for n-grams of words, "L" for the longest common
	// subsequence, "Lsum" for the union of those of the sentences, which are
	// lines.
	Type string
	// Tokenizer is Native by default, the one of rouge_score: words are runs of
	// ASCII letters and digits, everything else vanishes. It makes no sense of
	// other scripts, so [Tally.Score] refuses it where more than a fifth of the
	// letters are not ASCII. The others are those of BLEU, after lower case.
	Tokenizer Tokenizer
	// Stem words of more than three letters by Porter's rules with NLTK's
	// extensions. Only with Native.
	Stem bool
}

func (m ROUGE) tokenizer() Tokenizer {
	if m.Tokenizer == "" {
		return Native
	}
	return m.Tokenizer
}

// Name is "ROUGE-1", "ROUGE-L" or "ROUGE-Lsum", say.
func (m ROUGE) Name() string { return "ROUGE-" + m.Type }

// LessIsBetter is false.
func (m ROUGE) LessIsBetter() bool { return false }

// Validate reports all options that make no sense.
func (m ROUGE) Validate() (err error) {
	within(&err, m.Type == "L" || m.Type == "Lsum" || len(m.Type) == 1 && "1" <= m.Type && m.Type <= "9",
		fmt.Sprintf("there is no ROUGE-%s; take 1 to 9, L or Lsum", m.Type))
	within(&err, slices.Contains([]Tokenizer{Native, Intl, Zh, ZhFixed, Char}, m.tokenizer()),
		fmt.Sprintf("ROUGE knows no tokenizer %q; take rouge, intl, zh, zh-fixed or char", m.Tokenizer))
	within(&err, !m.Stem || m.tokenizer() == Native, "stemming is for English, thus for the tokenizer rouge alone")
	return err
}

// Signature is in the manner of sacrebleu's. With the tokenizer rouge the
// numbers are those of rouge_score 0.1.2.
func (m ROUGE) Signature(references int) string {
	version := "rouge_score-0.1.2"
	if m.tokenizer() != Native {
		version = "assay-1"
	}
	return fmt.Sprintf("nrefs:%s|case:lc|stem:%s|tok:%s|mean:f1|version:%s", count(references), yes(m.Stem), m.tokenizer(), version)
}

func (m ROUGE) width() int { return 4 }

// Score is the mean F-score.
func (m ROUGE) Score(statistics []float64) float64 { return statistics[2] / statistics[3] }

// statistics are precision, recall and F of the best reference, and 1.
func (m ROUGE) statistics(s *scratch, out []float64, hypothesis string, references []string) error {
	s.words.reset()
	score := m.whole
	if m.Type == "Lsum" {
		score = m.summary
	}
	for i, ref := range references {
		p, r, err := score(s, hypothesis, ref)
		if err != nil {
			return err
		}
		f := 0.0
		if p+r > 0 {
			f = 2 * p * r / (p + r)
		}
		if i == 0 || f > out[2] {
			out[0], out[1], out[2], out[3] = p, r, f, 1
		}
	}
	return nil
}

// whole is precision and recall of ROUGE-N and ROUGE-L.
func (m ROUGE) whole(s *scratch, hypothesis, reference string) (p, r float64, err error) {
	s.hyp = m.words(s, s.hyp[:0], hypothesis)
	refs := s.each([]string{reference}, func(dst []uint32, text string) []uint32 { return m.words(s, dst, text) })
	a, b, found := len(s.hyp), len(refs[0]), 0
	if m.Type == "L" {
		if err := short("ROUGE-L", a, b); err != nil {
			return 0, 0, err
		}
		found = s.subsequence(refs[0], s.hyp, nil)
	} else {
		n := int(m.Type[0] - '0')
		found = s.grams.matches(s.hyp, refs, n)[n-1]
		a, b = a-n+1, b-n+1
	}
	return float64(found) / float64(max(a, 1)), float64(found) / float64(max(b, 1)), nil
}

// summary is precision and recall of ROUGE-Lsum: for each sentence of the
// reference the words that lie in its longest common subsequence with any
// sentence of the hypothesis, no word more often than either text has it.
func (m ROUGE) summary(s *scratch, hypothesis, reference string) (p, r float64, err error) {
	hyps, nh := m.sentences(s, hypothesis)
	refs, nr := m.sentences(s, reference)
	if err := short("ROUGE-Lsum", nh, nr); err != nil || nh == 0 || nr == 0 {
		return 0, 0, err
	}
	left := map[uint32][2]int{}
	for k, sentences := range [2][][]uint32{refs, hyps} {
		for _, words := range sentences {
			for _, w := range words {
				c := left[w]
				c[k]++
				left[w] = c
			}
		}
	}
	hits := 0
	for _, ref := range refs {
		union := make([]bool, len(ref))
		for _, hyp := range hyps {
			s.subsequence(ref, hyp, union)
		}
		for i, w := range ref {
			if c := left[w]; union[i] && c[0] > 0 && c[1] > 0 {
				hits++
				left[w] = [2]int{c[0] - 1, c[1] - 1}
			}
		}
	}
	return float64(hits) / float64(nh), float64(hits) / float64(nr), nil
}

func (m ROUGE) sentences(s *scratch, text string) (out [][]uint32, words int) {
	for line := range strings.SplitSeq(text, "\n") {
		w := m.words(s, nil, line)
		if words += len(w); len(w) > 0 {
			out = append(out, w)
		}
	}
	return out, words
}

func (m ROUGE) words(s *scratch, dst []uint32, text string) []uint32 {
	s.lower = appendLower(s.lower[:0], text)
	if m.tokenizer() != Native {
		return s.words.words(dst, s.tokens.run(m.tokenizer(), trimRight(string(s.lower))))
	}
	for from, i := 0, 0; i <= len(s.lower); i++ {
		if i < len(s.lower) && ('a' <= s.lower[i] && s.lower[i] <= 'z' || isDigit(s.lower[i])) {
			continue
		}
		if w := s.lower[from:i]; len(w) > 3 && m.Stem {
			dst = append(dst, s.words.word([]byte(s.stem(w))))
		} else if len(w) > 0 {
			dst = append(dst, s.words.word(w))
		}
		from = i + 1
	}
	return dst
}

// stem remembers stems.
func (s *scratch) stem(word []byte) string {
	out, ok := s.stems[string(word)]
	if !ok {
		if out = porter(string(word)); len(s.stems) > 1<<14 || s.stems == nil {
			s.stems = map[string]string{}
		}
		s.stems[string(word)] = out
	}
	return out
}

// subsequence is the length of the longest common subsequence. It marks its
// words of ref; among several it takes the one that rouge_score takes.
func (s *scratch) subsequence(ref, hyp []uint32, mark []bool) int {
	n := len(hyp) + 1
	size := 2 * n
	if mark != nil {
		size += len(ref) * ((n + 31) / 32)
	}
	s.table = slices.Grow(s.table[:0], size)[:size]
	above, here, bits := s.table[:n], s.table[n:2*n], s.table[2*n:]
	clear(s.table)
	for i, w := range ref {
		row := bits[:0]
		if mark != nil {
			row = bits[i*((n+31)/32):]
		}
		for j, x := range hyp {
			switch {
			case w == x:
				here[j+1] = above[j] + 1
			case here[j] > above[j+1]:
				if here[j+1] = here[j]; mark != nil {
					row[j/32] |= 1 << (j % 32)
				}
			default:
				here[j+1] = above[j+1]
			}
		}
		above, here = here, above
	}
	length := int(above[n-1])
	if mark != nil {
		for i, j := len(ref)-1, len(hyp)-1; i >= 0 && j >= 0; {
			switch {
			case ref[i] == hyp[j]:
				mark[i] = true
				i, j = i-1, j-1
			case bits[i*((n+31)/32)+j/32]&(1<<(j%32)) != 0:
				j--
			default:
				i--
			}
		}
	}
	return length
}

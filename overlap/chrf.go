package overlap

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// CHRF is the F-score of character n-grams, and with WordOrder 2 of words as
// well (chrF++), averaged over their orders (Popović, WMT 2015 and 2017), from
// 0 to 100.
type CHRF struct {
	Order     int // of the longest character n-grams; 0 means 6
	WordOrder int // of the longest word n-grams; 0 means none, 2 is chrF++
	Beta      int // recall weighs its square times as much as precision; 0 means 2
	Lowercase bool
	// Whitespace keeps spaces as characters.
	Whitespace bool
	// Epsilon counts orders without n-grams as next to 0, as chrF++.py, NLTK and
	// Moses do; otherwise they are left out.
	Epsilon bool
}

func (m CHRF) order() int {
	if m.Order == 0 {
		return 6
	}
	return m.Order
}

func (m CHRF) beta() int {
	if m.Beta == 0 {
		return 2
	}
	return m.Beta
}

// Name is "chrF2", the number being Beta, and has a plus sign for each order of
// words.
func (m CHRF) Name() string {
	return fmt.Sprintf("chrF%d%s", m.beta(), strings.Repeat("+", m.WordOrder))
}

// LessIsBetter is false.
func (m CHRF) LessIsBetter() bool { return false }

// Validate reports all options that make no sense.
func (m CHRF) Validate() (err error) {
	within(&err, m.order() >= 1 && m.order() <= 16, "the order of chrF must lie between 1 and 16")
	within(&err, m.WordOrder >= 0 && m.WordOrder <= 16, "the order of words in chrF must lie between 0 and 16")
	within(&err, m.beta() >= 1 && m.beta() <= 100, "beta of chrF must lie between 1 and 100")
	return err
}

// Signature is sacrebleu's.
func (m CHRF) Signature(references int) string {
	return fmt.Sprintf("nrefs:%s|case:%s|eff:%s|nc:%d|nw:%d|space:%s|version:%s",
		count(references), letterCase(m.Lowercase), yes(!m.Epsilon), m.order(), m.WordOrder, yes(m.Whitespace), Version)
}

func (m CHRF) width() int { return 3 * (m.order() + m.WordOrder) }

// statistics are, for each order, the n-grams of the hypothesis, of the
// reference and the matches, with the reference of the best score.
func (m CHRF) statistics(s *scratch, out []float64, hypothesis string, references []string) error {
	s.words.reset()
	characters := func(dst []uint32, text string) []uint32 {
		for _, r := range s.lowered(text, m.Lowercase) {
			if m.Whitespace || !isSpace(r) {
				dst = append(dst, uint32(r))
			}
		}
		return dst
	}
	s.hyp = characters(s.hyp[:0], hypothesis)
	refs := s.each(references, characters)
	var hypWords []uint32
	if m.WordOrder > 0 {
		for len(s.ref2) <= len(refs) {
			s.ref2 = append(s.ref2, nil)
		}
		hypWords = m.split(s, s.ref2[len(refs)][:0], hypothesis)
		s.ref2[len(refs)] = hypWords
	}
	this, best := make([]float64, len(out)), -1.0
	for k, ref := range refs {
		fill(this, s.grams.matches(s.hyp, refs[k:k+1], m.order()), len(s.hyp), len(ref))
		if m.WordOrder > 0 {
			s.ref2[k] = m.split(s, s.ref2[k][:0], references[k])
			fill(this[3*m.order():], s.grams.matches(hypWords, s.ref2[k:k+1], m.WordOrder), len(hypWords), len(s.ref2[k]))
		}
		if f := m.Score(this); f > best {
			best = f
			copy(out, this)
		}
	}
	return nil
}

func fill(out []float64, matches []int, hyp, ref int) {
	for i, found := range matches {
		h, r := max(0, hyp-i), max(0, ref-i)
		if r == 0 {
			h = 0
		}
		out[3*i], out[3*i+1], out[3*i+2] = float64(h), float64(r), float64(found)
	}
}

// split makes words of which one punctuation mark at the end, or else at the
// beginning, is a word of its own.
func (m CHRF) split(s *scratch, dst []uint32, text string) []uint32 {
	for _, w := range bytes.FieldsFunc([]byte(s.lowered(text, m.Lowercase)), isSpace) {
		n := len(w)
		switch _, first := utf8.DecodeRune(w); {
		case first == n:
			dst = append(dst, s.words.word(w))
		case isASCIIPunct(w[n-1]):
			dst = append(dst, s.words.word(w[:n-1]), s.words.word(w[n-1:]))
		case isASCIIPunct(w[0]):
			dst = append(dst, s.words.word(w[:1]), s.words.word(w[1:]))
		default:
			dst = append(dst, s.words.word(w))
		}
	}
	return dst
}

func isASCIIPunct(c byte) bool {
	return '!' <= c && c <= '/' || ':' <= c && c <= '@' || '[' <= c && c <= '`' || '{' <= c && c <= '~'
}

// Score is chrF of summed statistics, from 0 to 100. The conversions keep
// compilers from fusing operations, which would let ties between references
// depend on the machine.
func (m CHRF) Score(statistics []float64) float64 {
	const eps = 1e-16
	factor := float64(m.beta() * m.beta())
	orders, effective := m.order()+m.WordOrder, 0
	sum, precision, recall := 0.0, 0.0, 0.0
	for i := range orders {
		hyp, ref, match := statistics[3*i], statistics[3*i+1], statistics[3*i+2]
		p, r := eps, eps
		if hyp > 0 {
			p = match / hyp
		}
		if ref > 0 {
			r = match / ref
		}
		if d := float64(factor*p) + r; d > 0 {
			sum += (1 + factor) * p * r / d
		} else {
			sum += eps
		}
		if hyp > 0 && ref > 0 {
			precision += p
			recall += r
			effective++
		}
	}
	if m.Epsilon {
		return 100 * sum / float64(orders)
	}
	if effective == 0 || precision+recall == 0 {
		return 0
	}
	precision /= float64(effective)
	recall /= float64(effective)
	return 100 * ((1 + factor) * precision * recall / (float64(factor*precision) + recall))
}

package overlap

import (
	"bytes"
	"fmt"
)

// TER is the number of words to insert, delete, replace, or of sequences to
// move, per word of the reference, in percent (Snover et al., AMTA 2006): 0 is
// best, and it may exceed 100.
type TER struct {
	// Normalized sets punctuation apart.
	Normalized bool
	// NoPunctuation deletes punctuation.
	NoPunctuation bool
	// Asian does either for Chinese and Japanese as well, and makes each ideograph
	// a word.
	Asian bool
	// CaseSensitive keeps capitals.
	CaseSensitive bool
}

// Name is "TER".
func (m TER) Name() string { return "TER" }

// LessIsBetter is true.
func (m TER) LessIsBetter() bool { return true }

// Validate finds a mistake in Asian alone, which does nothing.
func (m TER) Validate() (err error) {
	within(&err, !m.Asian || m.Normalized || m.NoPunctuation, "asian does nothing to TER alone; add normalized or no punctuation")
	return err
}

// Signature is sacrebleu's.
func (m TER) Signature(references int) string {
	return fmt.Sprintf("nrefs:%s|case:%s|tok:tercom|norm:%s|punct:%s|asian:%s|version:%s",
		count(references), letterCase(!m.CaseSensitive), yes(m.Normalized), yes(!m.NoPunctuation), yes(m.Asian), Version)
}

func (m TER) width() int { return 2 }

// statistics are the fewest edits to any reference and the mean length of all.
func (m TER) statistics(s *scratch, out []float64, hypothesis string, references []string) error {
	s.words.reset()
	s.hyp = s.words.words(s.hyp[:0], s.tokens.tercom(m, hypothesis))
	// Sacrebleu tokenizes references twice, which matters for "it's.".
	refs := s.each(references, func(dst []uint32, text string) []uint32 {
		out := s.tokens.tercom(m, text)
		if m.Normalized {
			out = s.tokens.tercom(m, string(bytes.Join(bytes.FieldsFunc(out, isSpace), []byte{' '})))
		}
		return s.words.words(dst, out)
	})
	total, fewest := 0, -1
	for _, ref := range refs {
		if err := short("TER", len(s.hyp), len(ref)); err != nil {
			return err
		}
		total += len(ref)
		if n := s.edits.count(s.hyp, ref); fewest < 0 || n < fewest {
			fewest = n
		}
	}
	out[0], out[1] = float64(fewest), float64(total)/float64(len(references))
	return nil
}

// Score is TER of summed statistics.
func (m TER) Score(statistics []float64) float64 {
	switch {
	case statistics[1] > 0:
		return 100 * (statistics[0] / statistics[1])
	case statistics[0] > 0:
		return 100
	}
	return 0
}

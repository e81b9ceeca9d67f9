package overlap

import (
	"errors"
	"fmt"
)

// A Metric compares a text with its references. BLEU, CHRF, TER and ROUGE are
// metrics; their zero values are what the reference implementations do by
// default.
type Metric interface {
	// Name is how the metric is called in results, such as "chrF2".
	Name() string
	// Signature says all that another must know to get the same number. References
	// is how many there are of each segment, -1 if that varies.
	Signature(references int) string
	// Validate reports all options that make no sense.
	Validate() error
	// Score is the score for the sum of the statistics of any segments; of a
	// single segment's it is the score of the sentence.
	Score(statistics []float64) float64
	// LessIsBetter is true of error rates.
	LessIsBetter() bool

	width() int
	// statistics sets out, of that width and zero, for one segment.
	statistics(s *scratch, out []float64, hypothesis string, references []string) error
}

// Version is the version of sacrebleu whose numbers BLEU, CHRF and TER give.
const Version = "2.6.0"

// mostWords of a text whose words are compared with all words of another.
const mostWords = 1 << 14

func short(metric string, words ...int) error {
	for _, n := range words {
		if n > mostWords {
			return fmt.Errorf("%s takes texts of up to %d words, not %d; split it, or leave out %[1]s", metric, mostWords, n)
		}
	}
	return nil
}

// scratch is what counting needs from one segment to the next.
type scratch struct {
	tokens tokenizing
	words  vocabulary
	grams  ngrams
	edits  edits
	stems  map[string]string
	lower  []byte
	hyp    []uint32
	refs   [][]uint32
	ref2   [][]uint32
	table  []int32
}

// each makes one slice of numbers for every reference.
func (s *scratch) each(references []string, f func(dst []uint32, reference string) []uint32) [][]uint32 {
	for len(s.refs) < len(references) {
		s.refs = append(s.refs, nil)
	}
	for i, r := range references {
		s.refs[i] = f(s.refs[i][:0], r)
	}
	return s.refs[:len(references)]
}

// lowered is the text in lower case if so asked.
func (s *scratch) lowered(text string, ask bool) string {
	if !ask {
		return text
	}
	s.lower = appendLower(s.lower[:0], text)
	return string(s.lower)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func letterCase(lower bool) string {
	if lower {
		return "lc"
	}
	return "mixed"
}

// within collects what is out of range.
func within(errs *error, ok bool, text string) {
	if !ok {
		*errs = errors.Join(*errs, errors.New(text))
	}
}

package overlap

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// A Smoothing says what becomes of n-grams without any match, for which the
// logarithm of BLEU has no value (Chen & Cherry, WMT 2014).
type Smoothing string

// The smoothings of sacrebleu.
const (
	Exp      Smoothing = "exp"   // half, a quarter, an eighth ... of a match; the default
	Floor    Smoothing = "floor" // so much of a match, 0.1 by default
	AddK     Smoothing = "add-k" // so many more matches and n-grams, 1 by default, beyond single words
	Unsmooth Smoothing = "none"  // the score is next to 0
)

// BLEU is the geometric mean of the precisions of n-grams, times a penalty for
// brevity (Papineni et al., ACL 2002), from 0 to 100. The score of a single
// sentence asks for EffectiveOrder.
type BLEU struct {
	Tokenizer Tokenizer // 13a by default
	Smoothing Smoothing // Exp by default
	Value     float64   // of the smoothings Floor and AddK; 0 is the default of each
	Order     int       // of the longest n-grams; 0 means 4
	// EffectiveOrder leaves out n-grams longer than the hypothesis.
	EffectiveOrder bool
	Lowercase      bool
}

func (m BLEU) order() int {
	if m.Order == 0 {
		return 4
	}
	return m.Order
}

func (m BLEU) tokenizer() Tokenizer {
	if m.Tokenizer == "" {
		return T13a
	}
	return m.Tokenizer
}

func (m BLEU) smoothing() (Smoothing, float64) {
	switch {
	case m.Smoothing == "":
		return Exp, 0
	case m.Value != 0:
		return m.Smoothing, m.Value
	case m.Smoothing == Floor:
		return Floor, 0.1
	}
	return m.Smoothing, 1
}

// Name is "BLEU".
func (m BLEU) Name() string { return "BLEU" }

// LessIsBetter is false.
func (m BLEU) LessIsBetter() bool { return false }

// Validate reports all options that make no sense.
func (m BLEU) Validate() (err error) {
	how, _ := m.smoothing()
	within(&err, slices.Contains([]Tokenizer{T13a, Intl, Zh, ZhFixed, Char, None}, m.tokenizer()),
		fmt.Sprintf("BLEU knows no tokenizer %q; take 13a, intl, zh, zh-fixed, char or none", m.Tokenizer))
	within(&err, slices.Contains([]Smoothing{Exp, Floor, AddK, Unsmooth}, how),
		fmt.Sprintf("BLEU knows no smoothing %q; take exp, floor, add-k or none", m.Smoothing))
	within(&err, m.Value >= 0 && m.Value <= 100, "the value of the smoothing must lie between 0 and 100")
	within(&err, m.Value == 0 || how == Floor || how == AddK, "only the smoothings floor and add-k have a value")
	within(&err, m.order() >= 1 && m.order() <= 16, "the order of BLEU must lie between 1 and 16")
	return err
}

// Signature is sacrebleu's; an order other than 4 is added to it.
func (m BLEU) Signature(references int) string {
	how, value := m.smoothing()
	smooth := string(how)
	if how == Floor || how == AddK {
		smooth += fmt.Sprintf("[%.2f]", value)
	}
	order := ""
	if m.order() != 4 {
		order = "|order:" + strconv.Itoa(m.order())
	}
	return fmt.Sprintf("nrefs:%s|case:%s|eff:%s|tok:%s|smooth:%s%s|version:%s",
		count(references), letterCase(m.Lowercase), yes(m.EffectiveOrder), m.tokenizer(), smooth, order, Version)
}

func count(references int) string {
	if references < 0 {
		return "var"
	}
	return strconv.Itoa(references)
}

func (m BLEU) width() int { return 2 + 2*m.order() }

// statistics are the lengths of hypothesis and closest reference, the matches
// and the n-grams of each order.
func (m BLEU) statistics(s *scratch, out []float64, hypothesis string, references []string) error {
	s.words.reset()
	words := func(dst []uint32, text string) []uint32 {
		text = s.lowered(text, m.Lowercase)
		return s.words.words(dst, s.tokens.run(m.tokenizer(), trimRight(text)))
	}
	s.hyp = words(s.hyp[:0], hypothesis)
	refs := s.each(references, words)
	n := len(s.hyp)
	closest := len(refs[0])
	for _, r := range refs[1:] {
		if d, least := abs(len(r)-n), abs(closest-n); d < least || d == least && len(r) < closest {
			closest = len(r)
		}
	}
	out[0], out[1] = float64(n), float64(closest)
	for i, found := range s.grams.matches(s.hyp, refs, m.order()) {
		out[2+i] = float64(found)
		out[2+m.order()+i] = float64(max(0, n-i))
	}
	return nil
}

func abs(n int) int { return max(n, -n) }

// Score is BLEU of summed statistics: no more than 100, but for the last bit.
func (m BLEU) Score(statistics []float64) float64 { return m.Parts(statistics).Score }

// Parts is what BLEU is made of.
type Parts struct {
	Score float64
	// Matches and Totals count n-grams by order, with what AddK adds; Precisions
	// are their ratios in percent, smoothed.
	Matches, Totals, Precisions []float64
	// Penalty for brevity, at most 1.
	Penalty float64
	// Words in the hypotheses and the closest references.
	Length, ReferenceLength float64
}

// Parts tells what BLEU of summed statistics is made of.
func (m BLEU) Parts(statistics []float64) Parts {
	order := m.order()
	p := Parts{
		Length: statistics[0], ReferenceLength: statistics[1], Penalty: 1,
		Matches: slices.Clone(statistics[2 : 2+order]), Totals: slices.Clone(statistics[2+order:]), Precisions: make([]float64, order),
	}
	if p.Length == 0 && p.ReferenceLength > 0 {
		p.Penalty = 0
	} else if p.Length < p.ReferenceLength {
		p.Penalty = math.Exp(1 - p.ReferenceLength/p.Length)
	}
	if slices.Max(p.Matches) == 0 {
		return p // not even smoothing makes something of nothing
	}
	how, value := m.smoothing()
	halves, effective := 1.0, order
	for n := range order {
		if how == AddK && n > 0 {
			p.Matches[n] += value
			p.Totals[n] += value
		}
		if p.Totals[n] == 0 {
			break
		}
		if m.EffectiveOrder {
			effective = n + 1
		}
		switch {
		case p.Matches[n] > 0:
			p.Precisions[n] = 100 * p.Matches[n] / p.Totals[n]
		case how == Exp:
			halves *= 2
			p.Precisions[n] = 100 / (halves * p.Totals[n])
		case how == Floor:
			p.Precisions[n] = 100 * value / p.Totals[n]
		}
	}
	sum := 0.0
	for _, x := range p.Precisions[:effective] {
		if x == 0 {
			sum += -9999999999 // as sacrebleu has it, for the logarithm of 0
		} else {
			sum += math.Log(x)
		}
	}
	p.Score = p.Penalty * math.Exp(sum/float64(effective))
	return p
}

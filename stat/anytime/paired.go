package anytime

import (
	"fmt"
	"math"
)

const bets = 16 // fractions of the wealth that are bet side by side

// Paired compares two variants by differences of scores on the same cases,
// candidate minus baseline, where more is better: the candidate may be at most a
// margin worse on average. Differences lie within [-1, 1], and nothing else is
// assumed of them. It is a test by betting (Waudby-Smith & Ramdas, JRSS B 86,
// 2024): a gambler who bets against the hypothesis can get rich only if it is
// wrong.
//
// Differences that depend on each other, as those of the turns of a session,
// enter as their mean, once. Cases come in random order, or independently.
//
// It must not be used by several goroutines at once.
type Paired struct {
	margin     float64
	n          int
	pass, fail [bets]wealth
}

// NewPaired starts a comparison with a margin in [0, 1).
func NewPaired(margin float64) (*Paired, error) {
	if !(margin >= 0 && margin < 1) {
		return nil, fmt.Errorf("starting a paired test: margin = %v; it lies in [0, 1), 0.02 for two percentage points", margin)
	}
	p := &Paired{margin: margin}
	for i := range bets {
		p.pass[i].since, p.fail[i].since = 1, 1
	}
	return p, nil
}

// bet is the i-th fraction of the most that can be bet without ruin.
func bet(i int, most float64) float64 { return most * float64(i+1) / (bets + 1) }

// wealth is a product of many factors, as its logarithm of late and the factors
// since: a logarithm for each factor would take most of the time.
type wealth struct{ log, since float64 }

// grow multiplies it by 1+gain.
func (w *wealth) grow(gain float64) {
	if w.since *= 1 + gain; w.since > 1e100 || w.since < 1e-100 {
		w.log, w.since = w.total(), 1
	}
}

func (w *wealth) total() float64 { return w.log + math.Log(w.since) }

// Add counts one difference.
func (p *Paired) Add(difference float64) error {
	if !(difference >= -1 && difference <= 1) {
		return fmt.Errorf("adding a difference: %v; scale scores so that differences lie within [-1, 1], and leave out what was not measured", difference)
	}
	p.n++
	x := difference + p.margin
	for i := range bets {
		p.pass[i].grow(bet(i, 1/(1-p.margin)) * x)
		p.fail[i].grow(-bet(i, 1/(1+p.margin)) * x)
	}
	return nil
}

// N is the number of differences.
func (p *Paired) N() int { return p.n }

// Evidence gives the evidence so far.
func (p *Paired) Evidence() Evidence {
	var fail, pass [bets]float64
	for i := range bets {
		fail[i], pass[i] = p.fail[i].total(), p.pass[i].total()
	}
	return Evidence{Fail: logMean(fail[:]), Pass: logMean(pass[:])}
}

// logMean is the logarithm of the mean of exponentials.
func logMean(logs []float64) float64 {
	most := math.Inf(-1)
	for _, x := range logs {
		most = math.Max(most, x)
	}
	sum := 0.0
	for _, x := range logs {
		sum += math.Exp(x - most)
	}
	return most + math.Log(sum/float64(len(logs)))
}

package stat

import (
	"math"
	"testing"
)

// The published figures are those of MLPerf LoadGen's early stopping and of
// David & Nagaraja's rank formula.
func TestNeedAbove(t *testing.T) {
	for _, c := range []struct {
		p, confidence float64
		want          int
	}{
		{0.99, 0.95, 368},
		{0.999, 0.95, 3688},
		{0.95, 0.95, 72},
		{0.90, 0.95, 36},
		{0.99, 0.90, 299},
		{0.95, 0.90, 59},
		{0.90, 0.90, 29},
		{0.999, 0.90, 2995},
		{0.99, 0.98, 459},
		{0.5, 0.95, 6},
		{0.5, 0.5, 2},
		{0.01, 0.95, 1},
		{0, 0.95, 1},
		{1, 0.95, math.MaxInt},
		{0.99, 1, math.MaxInt},
		{math.NaN(), 0.95, math.MaxInt},
		{0.99, math.NaN(), math.MaxInt},
	} {
		if got := NeedAbove(c.p, c.confidence); got != c.want {
			t.Errorf("NeedAbove(%v, %v) = %d, want %d", c.p, c.confidence, got, c.want)
		}
	}
}

func TestNeedViolations(t *testing.T) {
	for _, c := range []struct {
		p, confidence float64
		k, want       int
	}{
		{0.99, 0.95, 0, 299},
		{0.99, 0.95, 1, 473},
		{0.99, 0.95, 2, 628},
		{0.99, 0.95, 5, 1049},
		{0.99, 0.95, 10, 1693},
		{0.95, 0.95, 0, 59},
		{0.95, 0.95, 1, 93},
		{0.95, 0.95, 2, 124},
		{0.95, 0.95, 5, 208},
		{0.95, 0.95, 10, 336},
		{0.999, 0.95, 0, 2995},
		{0.999, 0.95, 1, 4742},
		{0.999, 0.95, 2, 6294},
		{0.99, 0.99, 0, 459},
		{0.99, 0.99, 1, 662},
		{0.99, 0.99, 2, 838},
		{0.99, 0.99, 5, 1307},
		{0.99, 0.99, 10, 2010},
		{1, 0.95, 0, math.MaxInt},
		{0.99, 0.95, -1, math.MaxInt},
		{0, 0.95, 3, 4},
	} {
		if got := NeedViolations(c.p, c.confidence, c.k); got != c.want {
			t.Errorf("NeedViolations(%v, %v, %d) = %d, want %d", c.p, c.confidence, c.k, got, c.want)
		}
	}
}

func TestRanksAgreeWithPublishedTable(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		n      int
		p      float64
		lo, hi float64 // percent
	}{
		{100, .5, 40, 61},
		{100, .9, 84, 96},
		{100, .95, 90, 100},
		{100, .99, 97, inf},
		{300, .5, 44.3, 56},
		{300, .9, 86.3, 93.7},
		{300, .95, 92.3, 97.7},
		{300, .99, 97.7, inf},
		{1000, .5, 46.9, 53.2},
		{1000, .9, 88.1, 91.9},
		{1000, .95, 93.6, 96.4},
		{1000, .99, 98.3, 99.7},
		{3000, .5, 48.2, 51.8},
		{3000, .9, 88.9, 91.1},
		{3000, .95, 94.2, 95.8},
		{3000, .99, 98.6, 99.4},
		{10000, .5, 49.0, 51.0},
		{10000, .9, 89.4, 90.6},
		{10000, .95, 94.6, 95.4},
		{10000, .99, 98.8, 99.2},
		{10000, .999, 99.83, 99.97},
	} {
		lo, hi := ranks(c.n, c.p, 0.025)
		per := 100 / float64(c.n)
		gotLo, gotHi := float64(lo)*per, float64(hi)*per
		if hi > c.n {
			gotHi = inf
		}
		if math.Abs(gotLo-c.lo) > 0.0501 || (gotHi != c.hi && math.Abs(gotHi-c.hi) > 0.0501) {
			t.Errorf("n=%d p=%v: ranks %d, %d = %.2f %% to %.2f %%, published %v to %v", c.n, c.p, lo, hi, gotLo, gotHi, c.lo, c.hi)
		}
	}
}

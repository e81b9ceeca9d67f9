package screen

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestShiftErrorRates: of unchanged series it reaches A within n points in a share
// of at most n/A, whatever the distribution; a shift of three standard deviations is
// found soon, and so is a slow drift.
func TestShiftErrorRates(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 11))
	const series, n, limit = 2000, 100, 200.0
	reached := func(draw func(i int) float64, up bool) (share float64, points float64) {
		found := 0
		for range series {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = draw(i)
			}
			for i, e := range Shift(xs, up) {
				if e >= limit {
					found++
					points += float64(i)
					break
				}
			}
		}
		return float64(found) / series, points / math.Max(1, float64(found))
	}
	for name, draw := range map[string]func(int) float64{
		"normal":      func(int) float64 { return rng.NormFloat64() },
		"exponential": func(int) float64 { return rng.ExpFloat64() },
		"heavy tail":  func(int) float64 { return math.Exp(2 * rng.NormFloat64()) },
		"two values":  func(int) float64 { return float64(rng.IntN(2)) },
	} {
		for _, up := range []bool{true, false} {
			if share, _ := reached(draw, up); share > n/limit {
				t.Errorf("%s, up %t: evidence of a shift in %.3f of unchanged series; the bound is %.3f", name, up, share, n/limit)
			} else {
				t.Logf("%s, up %t: %.3f of unchanged series reach %v within %d points", name, up, share, limit, n)
			}
		}
	}
	jump := func(i int) float64 {
		x := rng.NormFloat64()
		if i >= 60 {
			x += 3
		}
		return x
	}
	if share, at := reached(jump, true); share < 0.99 || at > 75 {
		t.Errorf("a jump of 3 at point 60 is found in %.3f of series, at point %.1f on average", share, at)
	}
	drift := func(i int) float64 { return rng.NormFloat64() + float64(i)/30 }
	if share, _ := reached(drift, true); share < 0.95 {
		t.Errorf("a drift of a thirtieth a point is found in %.3f of series", share)
	}
	if share, _ := reached(jump, false); share > 0.5 {
		t.Errorf("a jump upwards is taken for one downwards in %.3f of series", share)
	}
}

// TestShiftBet: the bets pay 1 on average over ranks that are equally likely, at
// most.
func TestShiftBet(t *testing.T) {
	for n := 1; n <= 200; n++ {
		for _, e := range stakes {
			sum := 0.0
			for i := 1; i <= n; i++ {
				sum += e * math.Pow(float64(i)/float64(n), e-1)
			}
			if sum /= float64(n); sum > 1+1e-12 {
				t.Errorf("among %d points the bet %v pays %v", n, e, sum)
			}
		}
	}
}

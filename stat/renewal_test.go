package stat

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func (g Gaps) draw(r *rand.Rand) float64 {
	switch g.Kind {
	case "gamma":
		return gammaGap(r, g.Shape)
	case "weibull":
		return math.Pow(r.ExpFloat64(), 1/g.Shape) / math.Gamma(1+1/g.Shape)
	}
	return r.ExpFloat64()
}

// observe draws arrivals until end. Each is noticed later than it was, by up to
// late; the intervals say so.
func observe(r *rand.Rand, g Gaps, end, late float64) []Instants {
	var at []Instants
	for t := r.Float64() * g.draw(r); t <= end; t += g.draw(r) {
		seen := t + r.Float64()*late
		if n := len(at); n > 0 && seen < at[n-1].Hi {
			seen = at[n-1].Hi
		}
		at = append(at, Instants{seen - late, seen})
	}
	return at
}

// TestRenewalsFit measures the error rates of both looks: of true processes, to
// the exact instant and seen late, at the least number of arrivals and at more.
func TestRenewalsFit(t *testing.T) {
	for _, c := range []struct {
		g    Gaps
		end  float64
		late float64
	}{
		{Gaps{Kind: "poisson"}, 130, 0},
		{Gaps{Kind: "poisson"}, 1000, 0.01},
		{Gaps{Kind: "gamma", Shape: 4}, 120, 0},
		{Gaps{Kind: "gamma", Shape: 0.25}, 480, 0},
		{Gaps{Kind: "gamma", Shape: 0.25}, 2000, 0.002},
		{Gaps{Kind: "gamma", Shape: 1.0 / 25}, 3000, 0.002},
		{Gaps{Kind: "weibull", Shape: 0.5427}, 480, 0},
		{Gaps{Kind: "weibull", Shape: 0.5427}, 2000, 0.01},
	} {
		runs := repetitions(500, 4000)
		gaps, drift, seen := 0, 0, 0
		for i := range runs {
			r := rand.New(rand.NewPCG(17, uint64(i)))
			got, err := CheckRenewal(observe(r, c.g, c.end, c.late), c.end, c.g)
			if err != nil {
				continue // by chance fewer than needed
			}
			seen++
			if got.KSP < 0.01 {
				gaps++
			}
			if got.DriftP < 0.01 {
				drift++
			}
		}
		most := int(math.Ceil(0.01*float64(seen) + 3*math.Sqrt(0.01*float64(seen))))
		if seen < runs/4 || gaps > most || drift > most {
			t.Errorf("%v over %v, late by %v: of %d true processes %d refused by their gaps, %d by their drift; want at most %d", c.g, c.end, c.late, seen, gaps, drift, most)
		}
		t.Logf("%v over %v, late by %v: gaps %d, drift %d of %d", c.g, c.end, c.late, gaps, drift, seen)
	}
}

func TestOtherProcessesDoNotFit(t *testing.T) {
	for _, c := range []struct {
		name       string
		sent, want Gaps
		late       float64
	}{
		{"Poisson for gamma of CV 2", Gaps{Kind: "poisson"}, Gaps{Kind: "gamma", Shape: 0.25}, 0.002},
		{"gamma of CV 2 for Poisson", Gaps{Kind: "gamma", Shape: 0.25}, Gaps{Kind: "poisson"}, 0.002},
		{"gamma for Weibull of the same CV", Gaps{Kind: "gamma", Shape: 0.25}, Gaps{Kind: "weibull", Shape: 0.5427}, 0.002},
		{"smooth for Poisson", Gaps{Kind: "gamma", Shape: 4}, Gaps{Kind: "poisson"}, 0.05},
	} {
		for i := range 100 {
			r := rand.New(rand.NewPCG(19, uint64(i)))
			got, err := CheckRenewal(observe(r, c.sent, 2000, c.late), 2000, c.want)
			if err != nil || got.Fits {
				t.Fatalf("%s, draw %d: %+v, %v: it fits", c.name, i, got, err)
			}
		}
	}
	// The rate doubles halfway.
	r := rand.New(rand.NewPCG(23, 1))
	at := observe(r, Gaps{Kind: "gamma", Shape: 0.25}, 4000, 0)
	for i := range at {
		if x := &at[i]; x.Lo > 2000 {
			x.Lo = 2000 + (x.Lo-2000)/2
			x.Hi = x.Lo
		}
	}
	if got, err := CheckRenewal(at, 3000, Gaps{Kind: "gamma", Shape: 0.25}); err != nil || got.DriftP >= 0.01 {
		t.Errorf("a rate that doubles: %+v, %v: no drift", got, err)
	}
}

func TestRenewalRefuses(t *testing.T) {
	long := make([]Instants, 400)
	for i := range long {
		long[i] = Instants{float64(i), float64(i)}
	}
	back := append([]Instants{{5, 5}}, long[:399]...)
	for _, c := range []struct {
		name string
		at   []Instants
		end  float64
		g    Gaps
		want string
	}{
		{"few for CV 5", long, 400, Gaps{Kind: "gamma", Shape: 1.0 / 25}, "at least 2500 are needed"},
		{"few", long[:99], 400, Gaps{Kind: "poisson"}, "at least 100 are needed"},
		{"another kind", long, 400, Gaps{Kind: "constant"}, `no gaps of kind "constant"`},
		{"no shape", long, 400, Gaps{Kind: "gamma"}, "no gaps of kind"},
		{"out of order", back, 400, Gaps{Kind: "poisson"}, "arrival 2 is out of order"},
		{"outside", long, 300, Gaps{Kind: "poisson"}, "arrival 302 is out of order or not within"},
		{"NaN", append([]Instants{{math.NaN(), 1}}, long...), 401, Gaps{Kind: "poisson"}, "arrival 1 is"},
	} {
		if _, err := CheckRenewal(c.at, c.end, c.g); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

// TestGapsCV holds the closed forms against published ones: Weibull of shape 0.5
// has CV √5, of shape 2 √(4/π−1).
func TestGapsCV(t *testing.T) {
	for _, c := range []struct {
		g    Gaps
		want float64
	}{
		{Gaps{Kind: "poisson"}, 1},
		{Gaps{Kind: "gamma", Shape: 0.25}, 2},
		{Gaps{Kind: "weibull", Shape: 0.5}, math.Sqrt(5)},
		{Gaps{Kind: "weibull", Shape: 2}, math.Sqrt(4/math.Pi - 1)},
	} {
		if got := c.g.CV(); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: CV %v, want %v", c.g, got, c.want)
		}
	}
	if got := (Gaps{Kind: "constant"}).CV(); !math.IsNaN(got) {
		t.Errorf("CV of an unknown kind is %v", got)
	}
}

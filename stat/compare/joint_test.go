package compare

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestJointlyHasKnownAnswers(t *testing.T) {
	// Eight clusters of one sign: 1 of 2^8 patterns is as far. A second hypothesis with
	// the opposite differences is as far in another one, and the joint chance is 2 of 2^8.
	up, down := make([]float64, 8), make([]float64, 8)
	for i := range up {
		up[i], down[i] = 1, -1
	}
	near := func(got, want float64) bool { return math.Abs(got-want) < 4*math.Sqrt(want*(1-want)/drawnFlips)+1e-3 }
	if p := Jointly([][]float64{up}, 1); !near(p[0], 1./256) {
		t.Errorf("one: %v", p)
	}
	if p := Jointly([][]float64{up, down}, 1); !near(p[0], 2./256) || p[1] != 1 {
		t.Errorf("two: %v", p)
	}
	if p := Jointly([][]float64{up, up, up}, 1); !near(p[2], 1./256) {
		t.Errorf("one thing looked at three times costs nothing: %v", p)
	}
	if p := Jointly([][]float64{{0, 0}, nil}, 1); p[0] != 1 || p[1] != 1 {
		t.Errorf("no difference: %v", p)
	}
}

// TestJointlyKeepsItsLevel: of twenty looks at differences without a sign of their own,
// which depend on each other, one is below 5 % in 5 % of the samples.
func TestJointlyKeepsItsLevel(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	const samples = 300
	alarms := 0
	for k := range samples {
		d := make([][]float64, 20)
		mood := make([]float64, 14)
		for i := range mood {
			mood[i] = r.NormFloat64()
		}
		for h := range d {
			for i := range 14 {
				d[h] = append(d[h], mood[i]+r.NormFloat64())
			}
		}
		least := 1.0
		for _, p := range Jointly(d, uint64(k)) {
			least = math.Min(least, p)
		}
		if least <= .05 {
			alarms++
		}
	}
	if got := float64(alarms) / samples; got > .05+4*math.Sqrt(.05*.95/samples) || got < .01 {
		t.Errorf("alarms in %.3f", got)
	}
}

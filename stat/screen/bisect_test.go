package screen

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// geometric has lengths from 1,000 to 128,000, two for each doubling.
func geometric() []float64 {
	lengths := make([]float64, 15)
	for i := range lengths {
		lengths[i] = 1000 * math.Pow(2, float64(i)/2)
	}
	return lengths
}

// search plays a bisection whose share falls at lengths[place].
func search(t *testing.T, r *rand.Rand, place int, budget float64) Break {
	t.Helper()
	b, err := NewBisection(geometric(), 0, budget)
	if err != nil {
		t.Fatal(err)
	}
	for at, ok := b.Next(); ok; at, ok = b.Next() {
		share := 0.95
		if at >= place {
			share = 0.70
		}
		if err := b.Add(at, r.Float64() < share); err != nil {
			t.Fatal(err)
		}
	}
	return b.Found()
}

// TestBisectionSavesTokens: what a search costs beside a grid of 40 tries at each
// length, how often it is right, and how often its set has the place.
func TestBisectionSavesTokens(t *testing.T) {
	runs := 25
	if os.Getenv("ASSAY_SLOW") != "" {
		runs = 400
	}
	grid := 0.0
	for _, l := range geometric() {
		grid += 40 * l
	}
	for _, c := range []struct {
		place int
		most  float64 // of the grid's cost
	}{{4, 0.05}, {8, 0.12}, {11, 0.25}, {13, 0.42}, {15, 0.42}} {
		r := rand.New(rand.NewPCG(uint64(c.place), 7))
		near, covered, alarms, cost := 0, 0, 0, 0.0
		for range runs {
			f := search(t, r, c.place, 0)
			cost += f.Tokens / grid / float64(runs)
			if f.At >= c.place-1 && f.At <= c.place+1 {
				near++
			}
			if slices.Contains(f.Set, c.place) {
				covered++
			}
			if f.None() < 0.05 {
				alarms++
			}
		}
		t.Logf("break at %d: %.0f %% of the grid's tokens, within one length in %d, covered in %d, a break in %d of %d", c.place, 100*cost, near, covered, alarms, runs)
		least := int(float64(runs)*0.95 - 4*math.Sqrt(float64(runs)*0.95*0.05))
		if cost > c.most || near < least || covered < least {
			t.Errorf("break at %d: %.2f of the grid's tokens, within one length in %d, covered in %d of %d", c.place, cost, near, covered, runs)
		}
		if none := c.place == 15; none && alarms > runs-least || !none && alarms < least {
			t.Errorf("break at %d: says so in %d of %d", c.place, alarms, runs)
		}
	}
}

// TestBisectionByBayes holds the probabilities against a sum over all pairs of shares.
func TestBisectionByBayes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		b, err := NewBisection([]float64{1, 2, 4}, 0.2, 0)
		if err != nil {
			r.Fatal(err)
		}
		tries := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) Trial {
			return Trial{Period: rapid.IntRange(0, 2).Draw(r, "at"), Event: rapid.Bool().Draw(r, "event")}
		}), 0, 12).Draw(r, "tries")
		for _, x := range tries {
			if err := b.Add(x.Period, x.Event); err != nil {
				r.Fatal(err)
			}
		}
		likely := func(place int, before, after float64) float64 {
			out := 1.0
			for _, x := range tries {
				p := before
				if x.Period >= place {
					p = after
				}
				if !x.Event {
					p = 1 - p
				}
				out *= p
			}
			return out
		}
		want, sum := make([]float64, 4), 0.0
		for place := 1; place <= 3; place++ {
			pairs := 0
			for i := range bisectLevels {
				for j := range bisectLevels {
					switch {
					case place == 3 && i == j:
						want[3] += bisectNone * likely(3, level(i), 0)
						pairs++
					case place < 3 && j <= i-8: // 8 levels are 0.2
						want[place] += likely(place, level(i), level(j))
						pairs++
					}
				}
			}
			want[place] /= float64(pairs)
			sum += want[place]
		}
		for place, m := range b.Found().Mass {
			if math.Abs(m-want[place]/sum) > 1e-9 {
				r.Errorf("place %d has %v, want %v", place, m, want[place]/sum)
			}
		}
	})
}

func TestBisectionIsRepeatable(t *testing.T) {
	a, b := search(t, rand.New(rand.NewPCG(3, 3)), 8, 0), search(t, rand.New(rand.NewPCG(3, 3)), 8, 0)
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("%+v and %+v", a, b)
	}
}

// A budget bounds the tokens, and what it was too small for is not known.
func TestBisectionWithinBudget(t *testing.T) {
	f := search(t, rand.New(rand.NewPCG(1, 1)), 13, 200_000)
	if f.Known || f.Tokens > 200_000 || f.Tokens < 50_000 || len(f.Set) < 3 {
		t.Errorf("%+v", f)
	}
	fresh, err := NewBisection([]float64{10, 20}, 0, 5)
	if err != nil {
		t.Fatal(err)
	}
	if at, ok := fresh.Next(); ok {
		t.Errorf("length %d is asked for a budget that has none of it", at)
	}
}

// Of lengths close to each other, a stretch with a small ratio is enough.
func TestBisectionOfCloseLengths(t *testing.T) {
	lengths := make([]float64, 24)
	for i := range lengths {
		lengths[i] = 1000 * math.Pow(1.05, float64(i))
	}
	b, err := NewBisection(lengths, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(4, 4))
	for at, ok := b.Next(); ok; at, ok = b.Next() {
		if err := b.Add(at, r.Float64() < fall(0.95, 0.5, 12)(at, 0)); err != nil {
			t.Fatal(err)
		}
	}
	f := b.Found()
	if first, last := f.Set[0], f.Set[len(f.Set)-1]; !f.Known || len(f.Set) < 3 || lengths[last] >= bisectRatio*lengths[first-1] {
		t.Errorf("%+v", f)
	}
}

func TestBisectionOfNonsense(t *testing.T) {
	for _, c := range []struct {
		lengths      []float64
		drop, budget float64
	}{
		{nil, 0, 0},
		{[]float64{1}, 0, 0},
		{[]float64{2, 1}, 0, 0},
		{[]float64{0, 1}, 0, 0},
		{[]float64{1, math.NaN()}, 0, 0},
		{[]float64{1, math.Inf(1)}, 0, 0},
		{[]float64{1, 2}, 1, 0},
		{[]float64{1, 2}, math.NaN(), 0},
		{[]float64{1, 2}, 0, -1},
		{[]float64{1, 2}, 0, math.NaN()},
		{[]float64{1, 2}, 0.99, 0},
	} {
		if _, err := NewBisection(c.lengths, c.drop, c.budget); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	b, err := NewBisection([]float64{1, 2}, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if b.Add(-1, true) == nil || b.Add(2, true) == nil {
		t.Error("a try at no length is taken")
	}
}

package stat

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func TestNonnegativeFindsWhatMadeTheNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	truth := []float64{0.2, 0.003, 0, 0.05}
	var rows [][]float64
	var y []float64
	for range 40 {
		row := []float64{1, 100 * rng.Float64(), rng.Float64(), 20 * rng.Float64()}
		sum := 0.0
		for k, c := range truth {
			sum += c * row[k]
		}
		rows, y = append(rows, row), append(y, sum)
	}
	c, err := Nonnegative(rows, y)
	if err != nil {
		t.Fatal(err)
	}
	for k := range truth {
		if math.Abs(c[k]-truth[k]) > 1e-9 {
			t.Errorf("coefficient %d is %v, want %v", k, c[k], truth[k])
		}
	}
}

func TestNonnegativeRefuses(t *testing.T) {
	for _, rows := range [][][]float64{nil, {{}}, {{1}, {1, 2}}, {{math.NaN()}}, {make([]float64, 9)}} {
		if _, err := Nonnegative(rows, make([]float64, len(rows))); err == nil {
			t.Errorf("%v is fitted", rows)
		}
	}
}

// TestNonnegativeIsOptimal holds the conditions of Karush, Kuhn and Tucker: no
// coefficient is negative, and none could grow to a better fit.
func TestNonnegativeIsOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, columns := rapid.IntRange(1, 12).Draw(t, "rows"), rapid.IntRange(1, 4).Draw(t, "columns")
		// Whole numbers: columns are then alike altogether, or not nearly.
		number := rapid.Map(rapid.IntRange(-10, 10), func(n int) float64 { return float64(n) })
		rows, y := make([][]float64, n), make([]float64, n)
		for i := range rows {
			rows[i] = rapid.SliceOfN(number, columns, columns).Draw(t, "row")
			y[i] = number.Draw(t, "y")
		}
		c, err := Nonnegative(rows, y)
		if err != nil {
			t.Fatal(err)
		}
		at := squares(rows, y, c)
		for k := range c {
			if c[k] < 0 {
				t.Fatalf("coefficient %d is %v", k, c[k])
			}
			for _, step := range []float64{-1e-3, 1e-3} {
				moved := append([]float64(nil), c...)
				if moved[k] += step; moved[k] < 0 {
					continue
				}
				if s := squares(rows, y, moved); s < at-1e-6*(1+at) {
					t.Fatalf("moving coefficient %d by %v makes %v of %v", k, step, s, at)
				}
			}
		}
	})
}

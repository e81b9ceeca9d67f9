package screen

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

type golden struct {
	Penalised []struct {
		Name      string
		X         []float64
		Pen       float64
		Breaks    []int
		Objective float64
	} `json:"l2_penalised"`
	Scan []struct {
		K, N    []int
		Profile []float64 `json:"lr_profile"`
		Max     float64   `json:"max_lr"`
		P       float64   `json:"perm_p_20000"`
	} `json:"bernoulli_scan"`
}

func load(t *testing.T) (g golden) {
	t.Helper()
	data, err := os.ReadFile("testdata/changepoint.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Penalised) == 0 || len(g.Scan) == 0 {
		t.Fatal("the golden values lack a section")
	}
	return g
}

// Published values agree with the ruptures package where that is exact.
func TestChangesAgreesWithRuptures(t *testing.T) {
	for _, c := range load(t).Penalised {
		got, err := Changes(c.X, c.Pen)
		if err != nil {
			t.Fatal(err)
		}
		want := c.Breaks[:len(c.Breaks)-1] // the last one is the end
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s at %v:\n%s", c.Name, c.Pen, diff)
		}
	}
}

func TestShareChangeAgreesWithPublished(t *testing.T) {
	for _, c := range load(t).Scan {
		got, err := ShareChange(c.K, c.N, 1)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.Profile, got.Profile, cmpopts.EquateApprox(1e-9, 1e-9)); diff != "" {
			t.Errorf("%v of %v:\n%s", c.K, c.N, diff)
		}
		if math.Abs(got.Ratio-c.Max) > 1e-9 || math.Abs(got.P-c.P) > 0.04 {
			t.Errorf("%v of %v: ratio %v, p %v, want %v, %v", c.K, c.N, got.Ratio, got.P, c.Max, c.P)
		}
	}
}

// Of all ways to cut a short series none costs less.
func TestChangesIsOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(-5, 5), 2, 11).Draw(t, "x")
		penalty := rapid.Float64Range(0.01, 20).Draw(t, "penalty")
		cost := squaredErrors(x)
		price := func(cuts []int) float64 {
			total, from := penalty*float64(len(cuts)), 0
			for _, c := range append(append([]int(nil), cuts...), len(x)) {
				total += cost(from, c)
				from = c
			}
			return total
		}
		got, err := Changes(x, penalty)
		if err != nil {
			t.Fatal(err)
		}
		for pattern := range 1 << (len(x) - 1) {
			var cuts []int
			for i := 1; i < len(x); i++ {
				if pattern>>(i-1)&1 == 1 {
					cuts = append(cuts, i)
				}
			}
			if price(cuts) < price(got)-1e-9 {
				t.Fatalf("cuts %v cost %v, but %v cost %v", got, price(got), cuts, price(cuts))
			}
		}
	})
}

func TestChangesErrorRates(t *testing.T) {
	for _, n := range []int{30, 100, 300} {
		const runs = 400
		cut, found := 0, 0
		for i := range runs {
			r := rand.New(rand.NewPCG(uint64(n), uint64(i)))
			x := make([]float64, n)
			for k := range x {
				x[k] = 100 + r.NormFloat64()
			}
			if c, _ := Changes(x, 0); len(c) > 0 {
				cut++
			}
			for k := n / 2; k < n; k++ {
				x[k] += 2
			}
			if c, _ := Changes(x, 0); len(c) == 1 && c[0] >= n/2-3 && c[0] <= n/2+3 {
				found++
			}
		}
		t.Logf("n = %d: %.1f %% of unchanged series cut, one change of two sd found in %.1f %%", n, 100*float64(cut)/runs, 100*float64(found)/runs)
		if float64(cut)/runs > 0.05 || float64(found)/runs < 0.8 {
			t.Errorf("n = %d: %d of %d unchanged series cut, %d changes found", n, cut, runs, found)
		}
	}
}

// fenceRates gives how often the next point lies outside.
func fenceRates(runs int, f Fence, n int, draw func(r *rand.Rand, n int) []float64, shift float64) float64 {
	out := 0
	for i := range runs {
		x := draw(rand.New(rand.NewPCG(9, uint64(i))), n+1)
		lo, hi, err := f.Bounds(x[:n])
		if err != nil {
			panic(err)
		}
		if next := x[n] + shift; next < lo || next > hi {
			out++
		}
	}
	return float64(out) / float64(runs)
}

func TestFenceErrorRates(t *testing.T) {
	normal := func(r *rand.Rand, n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = 100 + r.NormFloat64()
		}
		return x
	}
	lognormal := func(r *rand.Rand, n int) []float64 {
		x := normal(r, n)
		for i := range x {
			x[i] = math.Exp(0.5 * (x[i] - 100))
		}
		return x
	}
	autoregressive := func(r *rand.Rand, n int) []float64 {
		x, z := make([]float64, n), r.NormFloat64()
		for i := range x {
			x[i] = z
			z = 0.9*z + math.Sqrt(1-0.81)*r.NormFloat64()
		}
		return x
	}
	daily := func(r *rand.Rand, n int) []float64 {
		x := normal(r, n)
		for i := range x {
			x[i] = 0.3*(x[i]-100) + math.Sin(2*math.Pi*float64(i)/24)
		}
		return x
	}
	const runs = 4000
	for _, c := range []struct {
		name     string
		f        Fence
		n        int
		draw     func(r *rand.Rand, n int) []float64
		shift    float64
		from, to float64
	}{
		{"normal", Fence{}, 72, normal, 0, 0.004, 0.014},
		{"lognormal", Fence{}, 72, lognormal, 0, 0.03, 0.09},
		{"lognormal on logs", Fence{Logs: true}, 72, lognormal, 0, 0.004, 0.014},
		{"AR(1) 0.9", Fence{}, 72, autoregressive, 0, 0.01, 0.05},
		{"shift of 2 sd", Fence{}, 72, normal, 2, 0.2, 0.33},
		{"shift of 3 sd", Fence{}, 72, normal, 3, 0.55, 0.7},
		{"daily cycle, shift of 3 of its sd", Fence{}, 72, daily, 0.9, 0, 0.02},
		{"daily cycle without its period", Fence{Period: 24}, 240, daily, 0, 0.004, 0.02},
		{"daily cycle without its period, 5 days", Fence{Period: 24}, 120, daily, 0, 0.001, 0.03},
		{"daily cycle without its period, shift of 3 sd", Fence{Period: 24}, 240, daily, 0.9, 0.4, 0.7},
	} {
		got := fenceRates(runs, c.f, c.n, c.draw, c.shift)
		t.Logf("%s: %.2f %%", c.name, 100*got)
		if got < c.from || got > c.to {
			t.Errorf("%s: %.2f %% outside, want %.1f to %.1f %%", c.name, 100*got, 100*c.from, 100*c.to)
		}
	}
}

// The fence of a published example: Q1 = 3, Q3 = 7 by Hyndman and Fan's type 7.
func TestFenceByHand(t *testing.T) {
	lo, hi, err := Fence{Least: 9}.Bounds([]float64{9, 1, 8, 2, 7, 3, 6, 4, 5})
	if err != nil || lo != -3 || hi != 13 {
		t.Errorf("fence %v to %v, %v; want -3 to 13", lo, hi, err)
	}
}

func TestTooLittleIsNoFence(t *testing.T) {
	for name, c := range map[string]struct {
		f Fence
		x []float64
	}{
		"short":       {Fence{}, make([]float64, 23)},
		"NaN":         {Fence{Least: 1}, []float64{1, math.NaN()}},
		"log of zero": {Fence{Least: 1, Logs: true}, []float64{1, 0}},
		"phase":       {Fence{Period: 24}, make([]float64, 119)},
	} {
		if lo, hi, err := c.f.Bounds(c.x); err == nil || !math.IsInf(lo, -1) || !math.IsInf(hi, 1) {
			t.Errorf("%s: %v to %v, %v", name, lo, hi, err)
		}
	}
	for name, err := range map[string]error{
		"NaN":              second(Changes([]float64{1, math.NaN()}, 1)),
		"penalty":          second(Changes([]float64{1, 2}, -1)),
		"one period":       second(ShareChange([]int{1}, []int{2}, 0)),
		"no trials":        second(ShareChange([]int{0, 0}, []int{2, 0}, 0)),
		"more than trials": second(ShareChange([]int{3, 0}, []int{2, 1}, 0)),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if c, err := ShareChange([]int{0, 0}, []int{5, 5}, 0); err != nil || c.P != 1 {
		t.Errorf("no events: %+v, %v", c, err)
	}
}

func second[T any](_ T, err error) error { return err }

func ExampleChanges() {
	cuts, _ := Changes([]float64{10, 11, 10, 9, 10, 11, 15, 14, 15, 16, 15, 14}, 0)
	fmt.Println(cuts)
	// Output: [6]
}

package stat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// inQueue simulates an M/M/1 queue of service rate 1 from a number in flight, and
// returns the time averages of that number over bins of so many seconds.
func inQueue(r *rand.Rand, load float64, from int, bins int, bin float64) []float64 {
	out := make([]float64, bins)
	now, n := 0.0, from
	end := float64(bins) * bin
	for now < end {
		rate := load
		if n > 0 {
			rate++
		}
		next := min(now+r.ExpFloat64()/rate, end)
		for t := now; t < next; {
			i := min(int(t/bin), bins-1)
			to := min(float64(i+1)*bin, next)
			if to <= t { // rounding at the edge of a bin
				to = math.Nextafter(t, math.Inf(1))
			}
			out[i] += float64(n) * (to - t) / bin
			t = to
		}
		now = next
		if r.Float64()*rate < load {
			n++
		} else if n > 0 {
			n--
		}
	}
	return out
}

// steadyQueue is the number in flight of a stable M/M/1 queue in its steady
// state: geometric.
func steadyQueue(r *rand.Rand, load float64) int {
	return int(math.Log(1-r.Float64()) / math.Log(load))
}

// driftless are series without a drift, by name.
var driftless = []struct {
	name string
	draw func(r *rand.Rand) []float64
}{
	{"independent", func(r *rand.Rand) []float64 { return walk(r, 0, 200) }},
	{"AR(1) rho 0.9", func(r *rand.Rand) []float64 { return walk(r, 0.9, 200) }},
	{"AR(1) rho 0.99", func(r *rand.Rand) []float64 { return walk(r, 0.99, 200) }},
	{"random walk", func(r *rand.Rand) []float64 { return walk(r, 1, 200) }},
	{"M/M/1 load 0.5", func(r *rand.Rand) []float64 { return inQueue(r, 0.5, steadyQueue(r, 0.5), 200, 3) }},
	{"M/M/1 load 0.8", func(r *rand.Rand) []float64 { return inQueue(r, 0.8, steadyQueue(r, 0.8), 200, 3) }},
	{"M/M/1 load 0.95", func(r *rand.Rand) []float64 { return inQueue(r, 0.95, steadyQueue(r, 0.95), 200, 3) }},
}

// walk is an AR(1) process, from its steady state if it has one.
func walk(r *rand.Rand, rho float64, n int) []float64 {
	x := make([]float64, n)
	z := r.NormFloat64()
	if rho < 1 {
		z /= math.Sqrt(1 - rho*rho)
	}
	for i := range x {
		x[i] = z
		z = rho*z + r.NormFloat64()
	}
	return x
}

// TestDriftErrsAsSaid holds the share of drifts found where there are none to the
// level that was asked for, also in a queue near its capacity, whose level
// wanders as far as any.
func TestDriftErrsAsSaid(t *testing.T) {
	runs := repetitions(500, 4000)
	for _, l := range driftless {
		for _, confidence := range []float64{0.9, 0.99} {
			r := rand.New(rand.NewPCG(1, 2))
			up, down := 0, 0
			for range runs {
				e := FindDrift(l.draw(r), 600, confidence)
				if e.Lo > 0 {
					up++
				}
				if e.Hi < 0 {
					down++
				}
			}
			level := (1 - confidence) / 2
			most := level + 4*math.Sqrt(level*(1-level)/float64(runs))
			t.Logf("%s at %v: up %.2f %%, down %.2f %%", l.name, confidence, 100*float64(up)/float64(runs), 100*float64(down)/float64(runs))
			if got := float64(max(up, down)) / float64(runs); got > most {
				t.Errorf("%s: drifts found in %.3f of series without any, at a level of %v", l.name, got, level)
			}
		}
	}
}

// TestDriftIsFound states the power: queues beyond their capacity are told from
// the first ten minutes of 100 requests a minute and more.
func TestDriftIsFound(t *testing.T) {
	runs := repetitions(200, 2000)
	for _, c := range []struct {
		load, seconds, least float64
	}{
		{1.1, 600, 0.35}, {1.2, 600, 0.75}, {1.5, 600, 0.99}, {1.1, 2400, 0.85}, {1.05, 2400, 0.4},
	} {
		r := rand.New(rand.NewPCG(3, 4))
		found, bounded := 0, 0
		for range runs {
			e := FindDrift(inQueue(r, c.load, 0, 200, c.seconds/200), c.seconds, 0.9)
			if e.Lo > 0 {
				found++
			}
			if e.Lo <= c.load-1 && c.load-1 <= e.Hi {
				bounded++
			}
		}
		power := float64(found) / float64(runs)
		t.Logf("load %v for %v service times: found in %.1f %%, interval holds the truth in %.1f %%", c.load, c.seconds, 100*power, 100*float64(bounded)/float64(runs))
		if power < c.least {
			t.Errorf("load %v over %v s: found in %.3f, want %v", c.load, c.seconds, power, c.least)
		}
	}
}

func TestDriftOfNothing(t *testing.T) {
	for name, x := range map[string][]float64{"few": make([]float64, 8), "NaN": append(make([]float64, 20), math.NaN()), "infinite": append(make([]float64, 20), math.Inf(1))} {
		if e := FindDrift(x, 10, 0.9); e.Defined() || e.Estimable() {
			t.Errorf("%s: %+v, want no value", name, e)
		}
	}
	if e := FindDrift(make([]float64, 20), 0, 0.9); e.Defined() {
		t.Errorf("over no time: %+v, want no value", e)
	}
	if e := FindDrift(make([]float64, 20), 10, 0.9); e.Value != 0 || e.Lo != 0 || e.Hi != 0 {
		t.Errorf("a level that stands still: %+v", e)
	}
}

// TestDriftOfALine checks the unit, and that the interval moves with a line added
// to the series.
func TestDriftOfALine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(0, 100), 9, 300).Draw(t, "x")
		x = x[:len(x)/9*9] // so that the stretches are of equal length
		slope, seconds := rapid.Float64Range(-5, 5).Draw(t, "slope"), rapid.Float64Range(1, 1000).Draw(t, "seconds")
		before := FindDrift(x, seconds, 0.9)
		y := make([]float64, len(x))
		for i := range y {
			y[i] = x[i] + slope*seconds*float64(i)/float64(len(x))
		}
		after := FindDrift(y, seconds, 0.9)
		near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*(1+math.Abs(a)+100/seconds) }
		if !near(after.Value, before.Value+slope) || !near(after.Lo, before.Lo+slope) || !near(after.Hi, before.Hi+slope) {
			t.Fatalf("%v %v %v with a line of %v gives %v %v %v", before.Lo, before.Value, before.Hi, slope, after.Lo, after.Value, after.Hi)
		}
	})
}

func TestSteadyFindsTheEndOfAWarmUp(t *testing.T) {
	const n = 300
	r := rand.New(rand.NewPCG(5, 6))
	series := func(level func(i int) float64) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = level(i) + r.NormFloat64()
		}
		return x
	}
	for _, c := range []struct {
		name     string
		x        []float64
		lo, hi   int
		unsteady bool
	}{
		{name: "constant", x: make([]float64, n)},
		{name: "a step at 60", x: series(func(i int) float64 { return 10 * max(0, float64(min(1, 60-i))) }), lo: 55, hi: 80},
		{name: "an exponential start", x: series(func(i int) float64 { return 20 * math.Exp(-float64(i)/20) }), lo: 25, hi: 110},
		{name: "a line upwards", x: series(func(i int) float64 { return float64(i) / 5 }), unsteady: true},
		{name: "a step beyond the middle", x: series(func(i int) float64 { return 10 * max(0, float64(min(1, i-165))) }), unsteady: true},
		{name: "too short", x: make([]float64, 59), unsteady: true},
		{name: "a hole", x: append(make([]float64, 100), math.NaN(), 0, 0, 0, 0), unsteady: true},
	} {
		got := FindSteady(c.x)
		if got.Found == c.unsteady || got.Found && (got.From < c.lo || got.From > c.hi) {
			t.Errorf("%s: %+v, want found: %t within [%d, %d]", c.name, got, !c.unsteady, c.lo, c.hi)
		}
	}
}

// TestSteadyKeepsWhatIsSteady states how often a series without a warm-up is
// called unsteady, and how much of it is lost.
func TestSteadyKeepsWhatIsSteady(t *testing.T) {
	runs := repetitions(300, 3000)
	most := map[string]float64{"independent": 0.05, "AR(1) rho 0.9": 0.12, "AR(1) rho 0.99": 0.3, "M/M/1 load 0.5": 0.15, "M/M/1 load 0.8": 0.2, "M/M/1 load 0.95": 0.3}
	for _, l := range driftless {
		limit, steady := most[l.name]
		if !steady {
			continue
		}
		r := rand.New(rand.NewPCG(7, 8))
		unsteady, lost := 0, 0
		for range runs {
			s := FindSteady(l.draw(r))
			if !s.Found {
				unsteady++
			}
			lost += s.From
		}
		share := float64(unsteady) / float64(runs)
		t.Logf("%s: unsteady in %.1f %%, %.1f of 200 lost on average", l.name, 100*share, float64(lost)/float64(runs))
		if share > limit {
			t.Errorf("%s: called unsteady in %.3f, want at most %v", l.name, share, limit)
		}
	}
}

func ExampleFindDrift() {
	// One request more in flight every 10 s.
	level := make([]float64, 60)
	for second := range level {
		level[second] = 4 + float64(second)/10
	}
	e := FindDrift(level, 60, 0.9)
	fmt.Printf("%.2f a second, up: %t\n", e.Value, e.Lo > 0)
	// Output: 0.10 a second, up: true
}

package contract

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/stat"
)

// unchanged answers every look with fresh values of variants that are the same and never
// change: whatever acts on them acts without cause.
type unchanged struct {
	rng    *rand.Rand
	window time.Duration // in which n are drawn; 0: the window is of requests
	n      int
	draw   map[string]func(*rand.Rand) float64
	rate   bool                     // the values are amounts of requests, spread over the seconds
	arms   map[time.Time][2]float64 // of the length rule, by the instant of the look
}

func (u *unchanged) Labels(string, time.Time) []string { return nil }

func (u *unchanged) Steps(_, at time.Time) []Step { return []Step{{Since: at.Add(-time.Hour)}} }

func (u *unchanged) See(a Ask) Series {
	n := u.n
	if a.Last > 0 {
		n = min(n, int(a.Last))
	} else if u.window > 0 {
		n = int(math.Round(float64(n) * float64(a.To.Sub(a.From)) / float64(u.window)))
	}
	if u.arms != nil { // every answer of the window carries the comparison of all of them
		x := u.arm(a.At)[map[string]int{"length_sd_ratio": 0, "length_shift": 1}[a.Metric]]
		return Series{N: int64(n), Values: slices.Repeat([]float64{x}, n)}
	}
	draw := u.draw[a.Metric]
	if u.rate {
		return u.amounts(n, a, draw)
	}
	s := Series{N: int64(n), Values: make([]float64, n)}
	for i := range s.Values {
		s.Values[i] = draw(u.rng)
	}
	if !a.Sessions {
		return s
	}
	s.Best = new(stat.Histogram)
	for _, x := range s.Values {
		if err := s.Best.Add(x); err != nil {
			panic(err)
		}
		if err := s.Sums.Add(x, 1, 0); err != nil {
			panic(err)
		}
	}
	s.Values, s.Worst = nil, s.Best
	return s
}

// amounts spreads those of n requests, more or less, over the seconds of the stretch.
func (u *unchanged) amounts(n int, a Ask, draw func(*rand.Rand) float64) Series {
	seconds := a.To.Sub(a.From).Seconds()
	s := Series{Seconds: seconds, Values: make([]float64, int(seconds))}
	for at := u.rng.ExpFloat64() * seconds / float64(n); at < seconds; at += u.rng.ExpFloat64() * seconds / float64(n) {
		x := draw(u.rng)
		s.Values[int(at)] += x
		s.Total += x
		s.N++
	}
	return s
}

// arm compares the output lengths of two variants: how many times the larger standard
// deviation is the smaller, and how far the means are apart.
func (u *unchanged) arm(at time.Time) [2]float64 {
	if got, ok := u.arms[at]; ok {
		return got
	}
	var mean, sd [2]float64
	for k := range mean {
		var sum, squares float64
		for range u.n {
			x := u.draw["length"](u.rng)
			sum, squares = sum+x, squares+x*x
		}
		mean[k] = sum / float64(u.n)
		sd[k] = math.Sqrt((squares - sum*mean[k]) / float64(u.n-1))
	}
	u.arms = map[time.Time][2]float64{at: {math.Max(sd[0], sd[1]) / math.Min(sd[0], sd[1]), math.Abs(mean[0] - mean[1])}}
	return u.arms[at]
}

func lognormal(median, sigma float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return median * math.Exp(sigma*r.NormFloat64()) }
}

// clamped is normal, but stays in a range.
func clamped(mean, sd, least, most float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return math.Min(math.Max(mean+sd*r.NormFloat64(), least), most) }
}

// thresholds are the rules of seed-compat at traffic that is usual for them.
func thresholds() (out []thresholdTraffic) {
	add := func(clause, traffic string, n int, u unchanged) {
		u.n = n
		out = append(out, thresholdTraffic{clause, traffic, u})
	}
	for _, n := range []int{300, 1500} {
		for _, sigma := range []float64{0.5, 1} {
			add("T01-p99-drift", fmt.Sprintf("lognormal latencies, σ %v", sigma), n, unchanged{window: 5 * time.Minute, draw: map[string]func(*rand.Rand) float64{"e2e": lognormal(2e9, sigma)}})
		}
	}
	for _, own := range []float64{0.88, 0.9, 0.95} {
		similar := map[string]func(*rand.Rand) float64{"similarity": clamped(own, 0.1, -1, 1)}
		add("T02-similarity-soft", fmt.Sprintf("pairs alike by %v, standard deviation 0.1", own), 32, unchanged{draw: similar})
	}
	for _, n := range []int{20, 100} {
		add("T03-similarity-hard", "pairs alike by 0.84, standard deviation 0.1", n, unchanged{window: 5 * time.Minute, draw: map[string]func(*rand.Rand) float64{"similarity": clamped(0.84, 0.1, -1, 1)}})
	}
	for _, n := range []int{30, 200} {
		add("T05-quality-double", "BLEU-4 of 0.4 and self-consistency of 0.63, standard deviations 0.25 and 0.3", n, unchanged{window: 10 * time.Minute, draw: map[string]func(*rand.Rand) float64{"bleu4": clamped(0.4, 0.25, 0, 1), "self_consistency": clamped(0.63, 0.3, 0, 1)}})
	}
	for _, n := range []int{32, 200} {
		add("T07-length-deviation", "length deviations of 12, standard deviation 6 tokens", n, unchanged{window: 15 * time.Minute, draw: map[string]func(*rand.Rand) float64{"length_sd": clamped(12, 6, 0, 1e6)}})
	}
	for _, n := range []int{20, 200} {
		add("T08-length-instability", "lognormal lengths, median 150 tokens, σ 0.8", n, unchanged{draw: map[string]func(*rand.Rand) float64{"length": lognormal(150, 0.8)}, arms: map[time.Time][2]float64{}})
	}
	for _, n := range []int{100, 300, 1500} {
		add("T13-throughput-regression", "Poisson arrivals, lognormal lengths, σ 0.8", n, unchanged{window: 5 * time.Minute, rate: true, draw: map[string]func(*rand.Rand) float64{"output_tokens": lognormal(150, 0.8)}})
	}
	for _, n := range []int{300, 1500} {
		add("T14-p99-delta", "lognormal latencies, median 2 s, σ 0.5", n, unchanged{window: 5 * time.Minute, draw: map[string]func(*rand.Rand) float64{"e2e": lognormal(2e9, 0.5)}})
	}
	return out
}

type thresholdTraffic struct {
	clause, traffic string
	unchanged
}

// acted counts the looks at which a rule acts, each at fresh traffic, without its for:.
func (tt thresholdTraffic) acted(t *testing.T, preset string, looks int) (n int) {
	t.Helper()
	c, err := LoadPreset(preset)
	if err != nil {
		t.Fatal(err)
	}
	c = alone(c, tt.clause)
	c.Clauses[0].Live.For = 0
	u := tt.unchanged
	u.rng = source(uint64(u.n))
	for i := range looks {
		_, ds := c.Next(State{}, &u, testEpoch.Add(time.Duration(i)*24*time.Hour))
		n += len(ds)
	}
	return n
}

// TestFalseAlarmsOfThresholds measures how often the thresholds as they were first written
// act on traffic in which nothing changed, and holds what is printed of them to it.
func TestFalseAlarmsOfThresholds(t *testing.T) {
	if os.Getenv("ASSAY_SLOW") == "" {
		t.Skip("ASSAY_SLOW is not set: fifty thousand looks take half a minute")
	}
	const looks, corrected = 2000, 400
	text := "# clause\ttraffic\tn\tlooks\tacted\tlooks of production-17\tacted\n"
	for _, tt := range thresholds() {
		first, right, of := tt.acted(t, "seed-compat", looks), 0, 0
		if tt.arms == nil { // production-17 wants a comparison a prompt, not one of all
			right, of = tt.acted(t, "production-17", corrected), corrected
		}
		text += fmt.Sprintf("%s\t%s\t%d\t%d\t%d\t%d\t%d\n", tt.clause, tt.traffic, tt.n, looks, first, of, right)
		if right > corrected/20+3*4 {
			t.Errorf("%s of production-17 acts at %d of %d looks at identical traffic", tt.clause, right, corrected)
		}
	}
	if *update {
		if err := os.WriteFile("presets/seed-compat.tsv", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if measuredRates != text {
		t.Errorf("presets/seed-compat.tsv is not what is measured; run with -update:\n%s", text)
	}
}

// TestMeasuredThresholds: what is printed of a threshold is of one that there is, in both
// presets.
func TestMeasuredThresholds(t *testing.T) {
	rows := Measured()
	if len(rows) != len(thresholds()) {
		t.Fatalf("%d rows, want %d", len(rows), len(thresholds()))
	}
	for i, tt := range thresholds() {
		f := rows[i]
		if f.Clause != tt.clause || f.Traffic != tt.traffic || f.N != tt.n || f.Looks < 1000 || f.Acted > f.Looks || f.CorrectedActed > f.CorrectedLooks/10 {
			t.Errorf("row %d: %+v, want %s at %s, n %d", i, f, tt.clause, tt.traffic, tt.n)
		}
		for _, preset := range []string{"seed-compat", "production-17"} {
			c, err := LoadPreset(preset)
			if err != nil {
				t.Fatal(err)
			}
			if len(alone(c, f.Clause).Clauses) != 1 {
				t.Errorf("%s has no %s", preset, f.Clause)
			}
		}
	}
	if !strings.Contains(rows[0].String(), "of windows of 300 in which nothing changed") {
		t.Error(rows[0].String())
	}
}

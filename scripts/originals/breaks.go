package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/assay-llm/assay/stat/screen"
)

// scanned is one setting of the scan for a breakpoint.
type scanned struct {
	periods, tries int
	from, to       float64
	published      float64 // power, or size where nothing changes

	found, runs int
	off         float64 // periods, of those found
}

func scans() []scanned {
	return []scanned{
		{periods: 16, tries: 10, from: 0.95, to: 0.75, published: 0.84},
		{periods: 16, tries: 20, from: 0.95, to: 0.75, published: 1},
		{periods: 16, tries: 20, from: 0.95, to: 0.85, published: 0.75},
		{periods: 16, tries: 40, from: 0.95, to: 0.85, published: 0.95},
		{periods: 24, tries: 20, from: 0.95, to: 0.85, published: 0.88},
		{periods: 10, tries: 20, from: 0.95, to: 0.85, published: 0.52},
		{periods: 16, tries: 20, from: 0.95, to: 0.95, published: 0.04},
	}
}

// trials draws tries on ten haystacks at each of the lengths; the share falls at
// the given one.
func trials(r *rand.Rand, periods, tries, at int, from, to float64) []screen.Trial {
	out := make([]screen.Trial, 0, periods*tries)
	for p := range periods {
		share := from
		if p >= at {
			share = to
		}
		for i := range tries {
			out = append(out, screen.Trial{Period: p, Group: i % 10, Event: r.Float64() < share})
		}
	}
	return out
}

func (s *scanned) measure(runs int, r *rand.Rand) {
	s.runs = runs
	for range runs {
		c := must(screen.TrialChange(trials(r, s.periods, s.tries, s.periods/2, s.from, s.to), s.periods, r.Uint64()))
		if c.P <= 0.05 {
			s.found++
			s.off += math.Abs(float64(c.At - s.periods/2))
		}
	}
}

// publishedRuns is how many simulations the published figures are taken to be of:
// they are said to be of several hundred.
const publishedRuns = 300

// agrees reports whether what was measured and what was published can be one
// figure: within two standard errors of both and the rounding of the latter.
func (s *scanned) agrees(errors float64) bool {
	got := float64(s.found) / float64(s.runs)
	p := math.Min((got+s.published)/2, 0.99)
	return math.Abs(got-s.published) <= 0.005+errors*math.Sqrt(p*(1-p)*(1/float64(s.runs)+1.0/publishedRuns))
}

// jumped is one setting of the rule that a share has fallen.
type jumped struct {
	periods, tries int
	fires, ours    int
	runs           int
}

func jumps() (out []jumped) {
	for _, periods := range []int{5, 6, 7} {
		for _, tries := range []int{5, 20} {
			out = append(out, jumped{periods: periods, tries: tries})
		}
	}
	return out
}

// measure plays shares that are 0.9 at every length.
func (j *jumped) measure(runs int, r *rand.Rand) {
	j.runs = runs
	for range runs {
		all := trials(r, j.periods, j.tries, j.periods, 0.9, 0.9)
		events, sizes := make([]int, j.periods), make([]int, j.periods)
		for _, t := range all {
			sizes[t.Period]++
			if t.Event {
				events[t.Period]++
			}
		}
		if screen.Fell(events, sizes, 0.15) {
			j.fires++
		}
		if must(screen.TrialChange(all, j.periods, r.Uint64())).P <= 0.05 {
			j.ours++
		}
	}
}

// searched is one place of a break that a bisection looks for.
type searched struct {
	place int // of the lengths; 15 is none

	runs, near, covered, said int
	spent, tries              float64 // sums
}

const searchLengths = 15

func lengths() []float64 {
	out := make([]float64, searchLengths)
	for i := range out {
		out[i] = 1000 * math.Pow(2, float64(i)/2)
	}
	return out
}

func (s *searched) name() string {
	if s.place == searchLengths {
		return "none"
	}
	return fmt.Sprintf("%.0f", lengths()[s.place])
}

func (s *searched) measure(runs int, r *rand.Rand) {
	s.runs = runs
	for range runs {
		b := must(screen.NewBisection(lengths(), 0, 0))
		for at, ok := b.Next(); ok; at, ok = b.Next() {
			share := 0.95
			if at >= s.place {
				share = 0.70
			}
			must(0, b.Add(at, r.Float64() < share))
		}
		f := b.Found()
		s.spent += f.Tokens
		for _, n := range f.Tries {
			s.tries += float64(n)
		}
		s.near += one(f.At >= s.place-1 && f.At <= s.place+1)
		s.covered += one(slices.Contains(f.Set, s.place))
		s.said += one(f.None() < 0.05)
	}
}

// grid is what 40 tries at each length cost.
func grid() (sum float64) {
	for _, l := range lengths() {
		sum += 40 * l
	}
	return sum
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

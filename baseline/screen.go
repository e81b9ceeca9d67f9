package baseline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat/screen"
)

// Screen is a look at one quantity of a run beside the earlier runs of its key. It
// is no judgement: Outside alone happens to unchanged runs at the rate Alarms.
type Screen struct {
	Quantity contract.Quantity `json:"quantity"`
	Workload string            `json:"workload"`
	Unit     record.Unit       `json:"unit"`
	Value    *float64          `json:"value"`  // of the run; null: it has none
	Lo       *float64          `json:"lo"`     // of the fence; null: there is none
	Hi       *float64          `json:"hi"`     // of the fence
	Points   int               `json:"points"` // of the history
	Outside  bool              `json:"outside"`
	Alarms   float64           `json:"alarms"`   // how often the fence fires on the next of so many independent points whose logarithms are normal
	Fired    int               `json:"fired"`    // on how many of the history's own points it would have
	Looked   int               `json:"looked"`   // of so many that it could be asked about
	Evidence float64           `json:"evidence"` // of a lasting change, see screen.Shift: 200 is reached in about 2 % of unchanged series of 100 runs
	Effect   *float64          `json:"effect"`   // of the last runs over those before, as a ratio; null: too few
	Shifted  bool              `json:"shifted"`  // evidence and effect are large enough
	Why      string            `json:"why,omitempty"`
}

// lasting is the evidence from which on a change is said to last, and recent how
// many runs tell how large it is.
const (
	lasting = 200
	recent  = 5
)

// Screens looks at the quantities of the gates. The history is in order of time; the
// run itself may be part of it.
func Screens(history []Snapshot, s Snapshot, p Policy) []Screen {
	p = p.Filled()
	history = slices.DeleteFunc(slices.Clone(history), func(o Snapshot) bool { return o.ID == s.ID || o.Quarantine != "" || o.Taken.After(s.Taken) })
	byTime(history)
	if len(history) > p.Window {
		history = history[len(history)-p.Window:]
	}
	out := []Screen{}
	quantities := p.Quantities()
	for _, f := range s.Figures {
		if slices.Contains(quantities, f.Quantity) {
			out = append(out, look(f, series(history, f.Quantity, f.Workload), p))
		}
	}
	return out
}

// series is the values of a quantity, those that are numbers.
func series(history []Snapshot, q contract.Quantity, workload string) []float64 {
	var out []float64
	for _, o := range history {
		if f, ok := o.Figure(q, workload); ok && number(f.Value()) {
			out = append(out, f.Value())
		}
	}
	return out
}

func number(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// look is a glance with the rates at which a fence fires.
func look(f Figure, xs []float64, p Policy) Screen {
	s := glance(f, xs, p)
	if s.Lo == nil {
		return s
	}
	s.Alarms = alarms(len(xs), p)
	fence := fenceOf(append(slices.Clone(xs), *s.Value), p)
	for i := range xs {
		if lo, hi, err := fence.Bounds(xs[:i]); err == nil {
			s.Looked++
			if xs[i] < lo || xs[i] > hi {
				s.Fired++
			}
		}
	}
	return s
}

// fenceOf is the fence for such values: on logarithms where they have some.
func fenceOf(xs []float64, p Policy) screen.Fence {
	return screen.Fence{K: p.Fence, Period: p.Period, Logs: slices.Min(xs) > 0}
}

// glance holds a figure against its history.
func glance(f Figure, xs []float64, p Policy) Screen {
	s := Screen{Quantity: f.Quantity, Workload: f.Workload, Unit: f.Unit, Points: len(xs)}
	x := f.Value()
	if !number(x) {
		s.Why = "the run has no value of it"
		return s
	}
	s.Value = &x
	all := append(slices.Clone(xs), x)
	lo, hi, err := fenceOf(all, p).Bounds(xs)
	if err != nil {
		s.Why = err.Error()
		return s
	}
	s.Lo, s.Hi = &lo, &hi
	s.Outside = x < lo || x > hi
	up, down := screen.Shift(all, true)[len(xs)], screen.Shift(all, false)[len(xs)]
	s.Evidence = max(up, down)
	if before := median(all[:len(all)-recent]); before != 0 {
		effect := median(all[len(all)-recent:]) / before
		s.Effect = &effect
		right := (effect > 1) == (up > down) // the change is to the side that the evidence is about
		s.Shifted = s.Evidence >= lasting && right && math.Abs(effect-1) >= float64(p.Effect)
	}
	return s
}

func median(xs []float64) float64 {
	xs = slices.Sorted(slices.Values(xs))
	n := len(xs)
	return (xs[(n-1)/2] + xs[n/2]) / 2
}

// alarms is how often the fence fires on an unchanged series of so many points: 4,000
// series of independent normal points, from a fixed seed.
func alarms(points int, p Policy) float64 {
	rng := rand.New(rand.NewPCG(72, uint64(points)))
	fence := screen.Fence{K: p.Fence, Period: p.Period}
	const series = 4000
	fired := 0
	xs := make([]float64, points)
	for range series {
		for i := range xs {
			xs[i] = rng.NormFloat64()
		}
		lo, hi, err := fence.Bounds(xs)
		if x := rng.NormFloat64(); err == nil && (x < lo || x > hi) {
			fired++
		}
	}
	return float64(fired) / series
}

// telling reports whether the screen is worth a line.
func (s Screen) telling() bool { return s.Outside || s.Shifted }

// String says what the screen saw, and how often it says so of unchanged runs.
func (s Screen) String() string {
	what := fmt.Sprintf("%s on %s", s.Quantity, s.Workload)
	if s.Shifted {
		return fmt.Sprintf("screen: %s has shifted: the last %d runs are at %+.1f %% of those before, with evidence %.0f (about 2 %% of unchanged series reach %d within 100 runs)", what, recent, 100*(*s.Effect-1), s.Evidence, lasting)
	}
	if !s.Outside {
		return fmt.Sprintf("screen: %s is as in the %d runs before", what, s.Points)
	}
	return fmt.Sprintf("screen: %s lies outside of Tukey's fence of the %d runs before, and nothing shows that it lasts; so it does in %.1f %% of unchanged runs, and did in %d of %d here: by itself it proves nothing", what, s.Points, 100*s.Alarms, s.Fired, s.Looked)
}

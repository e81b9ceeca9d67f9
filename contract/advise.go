package contract

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat/screen"
)

// The codes of what Advise says.
const (
	CodeScreen = "screen" // a limit that alarms without cause at a rate that nobody bounds
	CodeSeed   = "seed"   // weights that are kept only to compare with
)

// Advise says what whoever writes the contract ought to know of it though it can
// be decided: unlike what [Lint] finds, nothing of it must be mended. It has
// positions as Lint has them.
func Advise(c *Contract) []config.Fault {
	if c == nil || c.size() > mostClauses {
		return nil
	}
	l := linter{}
	nodes := c.nodes()
	fences := map[[2]float64]fenceRates{}
	for i, clause := range c.named() {
		var at *config.Node
		if i < len(nodes) {
			at = nodes[i]
		}
		if clause.Joint != nil && clause.Joint.Weights == seedWeights {
			l.report(CodeSeed, at, clause.ID, 0, "seed-v1 weighs any rate below 100 tokens/s alike, gives a share above 1 % a negative weight, and changes with what is measured", "write profile: balanced, unless it is to compare with")
		}
		l.each(&clause, at, terms{}, func(leaf *Clause, n *config.Node, _ terms) {
			l.screen(leaf, n, fences)
		})
		l.firstForm(&clause, at)
	}
	config.Faults(l.faults).Sort()
	return l.faults
}

// firstForm says how often a rule that stands as it was first written acts without cause.
func (l *linter) firstForm(c *Clause, at *config.Node) {
	if c.Live.Judge != "point" {
		return
	}
	first, err := LoadPreset("seed-compat")
	if err != nil {
		panic("contract: " + err.Error()) // it is compiled in
	}
	same := slices.IndexFunc(first.Clauses, func(f Clause) bool { return f.Demand() == c.Demand() })
	if same < 0 {
		return
	}
	var rates []string
	for _, f := range Measured() {
		if f.Clause == first.Clauses[same].ID {
			rates = append(rates, fmt.Sprintf("%s of windows of %s (%s)", f.Rate(), grouped(fmt.Sprint(f.N)), f.Traffic))
		}
	}
	if len(rates) > 0 {
		l.report(CodeScreen, at, c.ID, 0, "stands as it was first written, and acts without cause in "+strings.Join(rates, ", in "), fmt.Sprintf("write the form of production-17: assay contract presets production-17 has %s", first.Clauses[same].ID))
	}
}

// mostFences bounds the pairs of windows and reach that are simulated for one
// contract.
const mostFences = 4

// screen says how often a fence is crossed without cause.
func (l *linter) screen(leaf *Clause, at *config.Node, known map[[2]float64]fenceRates) {
	lim := leaf.Need.Limit
	_, unit, err := leaf.Need.Quantity.metric()
	if lim.Windows == 0 || err != nil {
		return
	}
	key := [2]float64{float64(lim.Windows), lim.Reach}
	rates, ok := known[key]
	if !ok {
		if len(known) == mostFences {
			return
		}
		rates = simulateFence(lim.Windows, lim.Reach)
		known[key] = rates
	}
	l.report(CodeScreen, at, leaf.ID, leaf.Need.at.limit, fmt.Sprintf("%s is a screen: of windows in which nothing changed it is crossed by %s", lim, rates.text(unit, leaf.Need.Compare.upper())),
		"let it page or open a ticket, and leave what is acted on to a limit against the baseline")
}

// fenceRates are how often the next of independent values lies beyond Tukey's fence
// around those before, above and below.
type fenceRates struct{ normal, lognormal, exponential, logExponential [2]float64 }

// text says the rates that hold for a fence of that unit.
func (f fenceRates) text(u record.Unit, upper bool) string {
	side := 0
	if !upper {
		side = 1
	}
	say := func(rate [2]float64, of string) string {
		return value(record.Proportion, rate[side], 2) + " of " + of
	}
	parts := []string{say(f.normal, "normal ones"), say(f.lognormal, "lognormal ones (σ 0.5)"), say(f.exponential, "exponential ones")}
	if onLogs(u) {
		parts = []string{say(f.normal, "lognormal ones"), say(f.logExponential, "exponential ones (the fence is around logarithms)")}
	}
	return strings.Join(parts, ", ") + "; more if windows depend on each other, or have a daily cycle"
}

// simulateFence draws the rates, with the same seed each time.
func simulateFence(windows int, reach float64) fenceRates {
	const values = 1_000_000
	var out fenceRates
	r := rand.New(rand.NewPCG(72, 15))
	xs := make([]float64, windows)
	rate := func(logs bool, draw func() float64) (beyond [2]float64) {
		f := screen.Fence{K: reach, Logs: logs, Least: windows}
		runs := values / windows
		for range runs {
			for i := range xs {
				xs[i] = draw()
			}
			lo, hi, err := f.Bounds(xs)
			if err != nil {
				panic("contract: " + err.Error()) // the draws are finite and positive
			}
			switch next := draw(); {
			case next > hi:
				beyond[0]++
			case next < lo:
				beyond[1]++
			}
		}
		return [2]float64{beyond[0] / float64(runs), beyond[1] / float64(runs)}
	}
	out.normal = rate(false, r.NormFloat64)
	out.lognormal = rate(false, func() float64 { return math.Exp(r.NormFloat64() / 2) })
	out.exponential = rate(false, r.ExpFloat64)
	out.logExponential = rate(true, r.ExpFloat64)
	return out
}

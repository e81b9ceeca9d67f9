package workload

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/assay-llm/assay/config"
)

// Dist is a distribution of whole numbers: tokens of a text, or nanoseconds of a
// pause. The zero Dist is none at all; see Set.
//
// Every draw uses exactly one random number, by the inverse of the distribution
// function: there is no rejection loop, so draw i is the same whoever makes it.
// Min and Max truncate: what is left is the distribution on the condition that
// it lies between them, not one with a heap of values at each end.
//
// Note: package math may differ in the last bit between processors. Draws are
// rounded to whole numbers, so that shows in less than one draw in 10¹².
//
// In a suite a Dist is a bare value (fixed), a list of values (empirical), or a
// mapping of one name:
//
//	{uniform: {min: 100, max: 200}}
//	{normal: {mean: 512, stddev: 100, min: 1, max: 1k}}
//	{lognormal: {median: 400, sigma: 0.8, max: 4k}}
//	{exponential: {mean: 2s, max: 30s}}
//	{pareto: {min: 5ms, alpha: 1.5, max: 2s}}
//	{empirical: {values: [128, 512, 4k], weights: [6, 3, 1]}}
//	{quantiles: {percents: [0, 50, 90, 99, 100], values: [8, 400, 2k, 4k, 8k]}}
type Dist[T config.Count | config.Duration] struct {
	Kind     string    // fixed, uniform, normal, lognormal, exponential, pareto, empirical, quantiles; "": none
	Value    T         // fixed: the value; normal, exponential: the mean; lognormal: the median
	Stddev   T         // normal, before truncation
	Sigma    float64   // lognormal: standard deviation of the logarithm
	Alpha    float64   // pareto: of P(X > x) = (Min/x)^Alpha
	Min      T         // lower bound, inclusive; 0: one token, or no pause, but uniform and pareto need it
	Max      T         // upper bound, inclusive; 0: MaxTokens or a day, but uniform needs it
	Values   []T       // empirical, quantiles
	Weights  []float64 // empirical; nil: all alike
	Percents []float64 // quantiles: where Values are, rising from 0 to 100; in between, lines
}

// Length is a distribution of numbers of tokens.
type Length = Dist[config.Count]

// Pause is a distribution of waiting times.
type Pause = Dist[config.Duration]

// MaxTokens is the longest text that can be planned, in tokens.
const MaxTokens = 2_000_000

const (
	maxPause = 24 * time.Hour
	maxSigma = 4
	maxAlpha = 100
	minMass  = 1e-6 // least share of a distribution that must lie between min and max
)

// Fixed returns the distribution that is always v.
func Fixed[T config.Count | config.Duration](v T) Dist[T] { return Dist[T]{Kind: "fixed", Value: v} }

// Set reports whether there is a distribution.
func (d Dist[T]) Set() bool { return d.Kind != "" }

// limits are the least and the greatest value of the type.
func (d Dist[T]) limits() (least, most T) {
	switch any(d.Value).(type) {
	case config.Duration:
		return 0, T(maxPause)
	default:
		return 1, MaxTokens
	}
}

// bounds are the values between which draws lie.
func (d Dist[T]) bounds() (lo, hi T) {
	if d.Kind == "uniform" {
		return d.Min, d.Max
	}
	lo, hi = d.limits()
	if d.Min > 0 {
		lo = d.Min
	}
	if d.Max > 0 {
		hi = d.Max
	}
	return lo, hi
}

// most returns the greatest value that a draw can have.
func (d Dist[T]) most() T {
	switch d.Kind {
	case "fixed":
		return d.Value
	case "empirical", "quantiles":
		return slices.Max(d.Values)
	}
	_, hi := d.bounds()
	return hi
}

type (
	uniformSpec[T config.Count | config.Duration] struct {
		Min T `yaml:"min,required" doc:"least value"`
		Max T `yaml:"max,required" doc:"greatest value"`
	}
	normalSpec[T config.Count | config.Duration] struct {
		Mean   T `yaml:"mean,required" doc:"mean before truncation"`
		Stddev T `yaml:"stddev,required" doc:"standard deviation before truncation"`
		Min    T `yaml:"min" doc:"least value"`
		Max    T `yaml:"max" doc:"greatest value"`
	}
	logNormalSpec[T config.Count | config.Duration] struct {
		Median T       `yaml:"median,required" doc:"median before truncation"`
		Sigma  float64 `yaml:"sigma,required" doc:"standard deviation of the logarithm; 0.8 puts p99 at 6.4 times the median"`
		Min    T       `yaml:"min" doc:"least value"`
		Max    T       `yaml:"max" doc:"greatest value"`
	}
	exponentialSpec[T config.Count | config.Duration] struct {
		Mean T `yaml:"mean,required" doc:"mean before truncation"`
		Max  T `yaml:"max" doc:"greatest value"`
	}
	paretoSpec[T config.Count | config.Duration] struct {
		Min   T       `yaml:"min,required" doc:"least value, which is also the scale"`
		Alpha float64 `yaml:"alpha,required" doc:"weight of the tail: P(X > x) = (min/x)^alpha; at 1.5 one in a thousand is a hundred times min"`
		Max   T       `yaml:"max" doc:"greatest value"`
	}
	empiricalSpec[T config.Count | config.Duration] struct {
		Values  []T       `yaml:"values,required" doc:"values to draw from"`
		Weights []float64 `yaml:"weights" doc:"weight of each value; all alike if left out"`
	}
	quantilesSpec[T config.Count | config.Duration] struct {
		Percents []float64 `yaml:"percents,required" doc:"percents from 0 to 100, such as [0, 50, 90, 99, 100]"`
		Values   []T       `yaml:"values,required" doc:"the value at each of the percents; in between, lines"`
	}
)

var distKinds = []string{"fixed", "uniform", "normal", "lognormal", "exponential", "pareto", "empirical", "quantiles"}

// DecodeConfig reads any of the forms of the type's documentation.
func (d *Dist[T]) DecodeConfig(n *config.Node) {
	*d = Dist[T]{}
	at := n
	switch {
	case n.IsSequence():
		d.Kind = "empirical"
		if !n.Decode(&d.Values) {
			return
		}
	case !n.IsMapping():
		d.Kind = "fixed"
		if !n.Decode(&d.Value) {
			return
		}
	default:
		pairs := n.Pairs()
		if len(pairs) != 1 {
			n.Fault(fmt.Sprintf("wants one distribution, got %d keys", len(pairs)), "use one of "+strings.Join(distKinds, ", "))
			return
		}
		if at = pairs[0].Value; !d.decodeKind(pairs[0]) {
			return
		}
	}
	if what, hint := d.problem(); what != "" {
		at.Fault(what, hint)
	}
}

// decodeKind reads the parameters of a named distribution and reports whether
// they could be read.
func (d *Dist[T]) decodeKind(p config.Pair) (ok bool) {
	d.Kind = p.Key
	switch p.Key {
	case "fixed":
		return p.Value.Decode(&d.Value)
	case "uniform":
		var s uniformSpec[T]
		ok = p.Value.Decode(&s)
		d.Min, d.Max = s.Min, s.Max
	case "normal":
		var s normalSpec[T]
		ok = p.Value.Decode(&s)
		d.Value, d.Stddev, d.Min, d.Max = s.Mean, s.Stddev, s.Min, s.Max
	case "lognormal":
		var s logNormalSpec[T]
		ok = p.Value.Decode(&s)
		d.Value, d.Sigma, d.Min, d.Max = s.Median, s.Sigma, s.Min, s.Max
	case "exponential":
		if p.Value.IsScalar() {
			return p.Value.Decode(&d.Value)
		}
		var s exponentialSpec[T]
		ok = p.Value.Decode(&s)
		d.Value, d.Max = s.Mean, s.Max
	case "pareto":
		var s paretoSpec[T]
		ok = p.Value.Decode(&s)
		d.Min, d.Alpha, d.Max = s.Min, s.Alpha, s.Max
	case "quantiles":
		var s quantilesSpec[T]
		ok = p.Value.Decode(&s)
		d.Percents, d.Values = s.Percents, s.Values
	case "empirical":
		if p.Value.IsSequence() {
			return p.Value.Decode(&d.Values)
		}
		var s empiricalSpec[T]
		ok = p.Value.Decode(&s)
		d.Values, d.Weights = s.Values, s.Weights
	default:
		p.KeyNode.Fault("unknown distribution", "use one of "+strings.Join(distKinds, ", "))
	}
	return ok
}

// MarshalYAML returns the short form that DecodeConfig reads.
func (d Dist[T]) MarshalYAML() (any, error) {
	form := func(v any) (any, error) { return map[string]any{d.Kind: v}, nil }
	switch d.Kind {
	case "":
		return nil, nil
	case "fixed":
		return d.Value, nil
	case "uniform":
		return form(uniformSpec[T]{d.Min, d.Max})
	case "normal":
		return form(normalSpec[T]{d.Value, d.Stddev, d.Min, d.Max})
	case "lognormal":
		return form(logNormalSpec[T]{d.Value, d.Sigma, d.Min, d.Max})
	case "exponential":
		return form(exponentialSpec[T]{d.Value, d.Max})
	case "pareto":
		return form(paretoSpec[T]{d.Min, d.Alpha, d.Max})
	case "quantiles":
		return form(quantilesSpec[T]{d.Percents, d.Values})
	default:
		return form(empiricalSpec[T]{d.Values, d.Weights})
	}
}

// problem says what is wrong with the distribution; "" if nothing is.
func (d Dist[T]) problem() (what, hint string) {
	least, most := d.limits()
	lo, hi := d.bounds()
	within := func(v T) bool { return v >= least && v <= most }
	switch {
	case !d.Set():
		return "", ""
	case d.Min < 0 || d.Max < 0 || lo < least || hi > most:
		return fmt.Sprintf("min and max must lie between %v and %v", least, most), "give values in that range"
	case lo > hi:
		return fmt.Sprintf("min %v is more than max %v", lo, hi), "swap them"
	}
	switch d.Kind {
	case "fixed":
		if !within(d.Value) {
			return fmt.Sprintf("must be between %v and %v, got %v", least, most, d.Value), "give a value in that range"
		}
	case "uniform":
	case "normal":
		if d.Stddev <= 0 || d.Value < 0 || d.Value > most {
			return "wants a mean of at least 0 and a stddev of more than 0", "for values that are all alike write the bare value"
		}
	case "lognormal":
		if !(d.Sigma > 0 && d.Sigma <= maxSigma) || d.Value <= 0 || d.Value > most {
			return fmt.Sprintf("wants a median of more than 0 and a sigma of more than 0, at most %d", maxSigma), "0.8 is typical of prompts"
		}
	case "exponential":
		if d.Value <= 0 || d.Value > most {
			return "wants a mean of more than 0", "for no pause at all remove it"
		}
	case "pareto":
		if d.Min < max(least, 1) || !(d.Alpha > 0 && d.Alpha <= maxAlpha) {
			return fmt.Sprintf("wants a min of more than 0 and an alpha of more than 0, at most %d", maxAlpha), "1.5 is a heavy tail, 3 a light one"
		}
	case "empirical":
		return d.tableProblem(least, most)
	case "quantiles":
		return d.quantilesProblem(least, most)
	default:
		return fmt.Sprintf("unknown distribution %q", d.Kind), "use one of " + strings.Join(distKinds, ", ")
	}
	if d.continuous() {
		if _, _, mass := d.truncation(); !(mass >= minMass) {
			return fmt.Sprintf("less than one value in a million lies between min %v and max %v", lo, hi), "widen the bounds or move the centre"
		}
	}
	return "", ""
}

func (d Dist[T]) tableProblem(least, most T) (what, hint string) {
	if len(d.Values) == 0 {
		return "has no values", "list the values to draw from"
	}
	if d.Weights != nil && len(d.Weights) != len(d.Values) {
		return fmt.Sprintf("has %d values, but %d weights", len(d.Values), len(d.Weights)), "give each value one weight"
	}
	for _, v := range d.Values {
		if v < least || v > most {
			return fmt.Sprintf("values must be between %v and %v, got %v", least, most, v), "give values in that range"
		}
	}
	sum := 0.0
	for _, w := range d.Weights {
		if !(w >= 0) || math.IsInf(w, 0) {
			return fmt.Sprintf("weights must be 0 or more, got %v", w), "give weights such as 1, 2, 0.5"
		}
		sum += w
	}
	if d.Weights != nil && !(sum > 0 && !math.IsInf(sum, 0)) {
		return "the weights add up to nothing", "give at least one weight of more than 0"
	}
	return "", ""
}

func (d Dist[T]) quantilesProblem(least, most T) (what, hint string) {
	n := len(d.Percents)
	switch {
	case n != len(d.Values):
		return fmt.Sprintf("has %d percents, but %d values", n, len(d.Values)), "give each percent one value"
	case n < 2 || n > maxTable || d.Percents[0] != 0 || d.Percents[n-1] != 100:
		return fmt.Sprintf("the percents must go from 0 to 100, and be at most %d", maxTable), "write such as [0, 50, 90, 99, 100]"
	}
	for i, v := range d.Values {
		switch {
		case v < least || v > most:
			return fmt.Sprintf("values must be between %v and %v, got %v", least, most, v), "give values in that range"
		case i > 0 && !(d.Percents[i] > d.Percents[i-1]):
			return fmt.Sprintf("percent %v does not rise above the one before it", d.Percents[i]), "sort the percents"
		case i > 0 && v < d.Values[i-1]:
			return fmt.Sprintf("value %v is less than the one before it", v), "sort the values"
		}
	}
	return "", ""
}

func (d Dist[T]) continuous() bool {
	return d.Kind == "normal" || d.Kind == "lognormal" || d.Kind == "exponential" || d.Kind == "pareto"
}

// cdf is the distribution function before truncation; upper is its complement.
// Tails are computed on their own side, where they do not cancel.
func (d Dist[T]) cdf(x float64) (p, upper float64) {
	if d.Kind == "exponential" {
		if x <= 0 {
			return 0, 1
		}
		x /= float64(d.Value)
		return -math.Expm1(-x), math.Exp(-x)
	}
	if d.Kind == "pareto" {
		upper = math.Pow(float64(d.Min)/max(x, float64(d.Min)), d.Alpha)
		return 1 - upper, upper
	}
	z := 0.0
	if d.Kind == "normal" {
		z = (x - float64(d.Value)) / float64(d.Stddev)
	} else if x <= 0 {
		return 0, 1
	} else {
		z = math.Log(x/float64(d.Value)) / d.Sigma
	}
	return 0.5 * math.Erfc(-z/math.Sqrt2), 0.5 * math.Erfc(z/math.Sqrt2)
}

// quantile inverts cdf: p and its complement, of which the smaller one counts.
func (d Dist[T]) quantile(p, upper float64) float64 {
	if d.Kind == "exponential" {
		return -float64(d.Value) * math.Log(upper)
	}
	if d.Kind == "pareto" {
		return float64(d.Min) * math.Pow(upper, -1/d.Alpha)
	}
	z := 0.0
	if p < upper {
		z = -math.Sqrt2 * math.Erfcinv(2*p)
	} else {
		z = math.Sqrt2 * math.Erfcinv(2*upper)
	}
	if d.Kind == "normal" {
		return float64(d.Value) + z*float64(d.Stddev)
	}
	return float64(d.Value) * math.Exp(z*d.Sigma)
}

// truncation returns the probabilities below and above the bounds and the mass
// between them. The bounds are those of rounding: a value of 7 stands for 6.5 to
// 7.5, so that truncated draws are as unbiased as others.
func (d Dist[T]) truncation() (below, above, mass float64) {
	lo, hi := d.bounds()
	below, _ = d.cdf(float64(lo) - 0.5)
	_, above = d.cdf(float64(hi) + 0.5)
	return below, above, 1 - below - above
}

// sampler returns the draw as a function of a number in (0, 1).
func (d Dist[T]) sampler() func(u float64) T {
	lo, hi := d.bounds()
	clamp := func(x float64) T { return T(min(max(math.Round(x), float64(lo)), float64(hi))) }
	switch d.Kind {
	case "uniform":
		n := float64(hi-lo) + 1
		return func(u float64) T { return lo + T(min(u*n, n-1)) }
	case "normal", "lognormal", "exponential", "pareto":
		below, above, mass := d.truncation()
		return func(u float64) T { return clamp(d.quantile(below+u*mass, above+(1-u)*mass)) }
	case "empirical":
		return d.table()
	case "quantiles":
		return func(u float64) T {
			at := 100 * u
			i := min(max(sort.SearchFloat64s(d.Percents, at), 1), len(d.Percents)-1)
			low, high := float64(d.Values[i-1]), float64(d.Values[i])
			return T(math.Round(low + float64((high-low)*((at-d.Percents[i-1])/(d.Percents[i]-d.Percents[i-1])))))
		}
	default:
		return func(float64) T { return d.Value }
	}
}

// table returns the sampler of an empirical distribution.
func (d Dist[T]) table() func(u float64) T {
	cumulative := make([]float64, len(d.Values))
	sum := 0.0
	for i := range d.Values {
		w := 1.0
		if d.Weights != nil {
			w = d.Weights[i]
		}
		sum += w
		cumulative[i] = sum
	}
	return func(u float64) T {
		i := sort.Search(len(cumulative), func(i int) bool { return cumulative[i] > u*sum })
		return d.Values[min(i, len(d.Values)-1)]
	}
}

// Mean returns the mean of the draws, by Simpson's rule on the inverse where
// there is no simpler way: within a thousandth, for descriptions and plans.
func (d Dist[T]) Mean() float64 {
	draw := d.sampler()
	if !d.continuous() {
		switch d.Kind {
		case "uniform":
			return float64(d.Min)/2 + float64(d.Max)/2
		case "empirical":
			return d.tableMean()
		case "quantiles":
			sum := 0.0
			for i := 1; i < len(d.Values); i++ {
				sum += (d.Percents[i] - d.Percents[i-1]) / 100 * (float64(d.Values[i-1])/2 + float64(d.Values[i])/2)
			}
			return sum
		}
		return float64(d.Value)
	}
	if d.Kind == "pareto" {
		return d.paretoMean()
	}
	const n = 4096
	sum := 0.0
	for i := range n {
		sum += float64(draw((float64(i) + 0.5) / n))
	}
	return sum / n
}

// paretoMean is the mean between the bounds, of which the tail has a large part.
func (d Dist[T]) paretoMean() float64 {
	lo, hi := d.bounds()
	a, m, ratio := d.Alpha, float64(lo), float64(lo)/(float64(hi)+0.5)
	if math.Abs(a-1) < 1e-9 {
		return m * math.Log(1/ratio) / (1 - ratio)
	}
	return m * a / (a - 1) * (1 - math.Pow(ratio, a-1)) / (1 - math.Pow(ratio, a))
}

func (d Dist[T]) tableMean() float64 {
	sum, weight := 0.0, 0.0
	for i, v := range d.Values {
		w := 1.0
		if d.Weights != nil {
			w = d.Weights[i]
		}
		sum += w * float64(v)
		weight += w
	}
	return sum / weight
}

// String describes the distribution: "512", "lognormal, median 400, sigma 0.8, at most 4k".
func (d Dist[T]) String() string {
	s := ""
	switch d.Kind {
	case "":
		return ""
	case "fixed":
		return fmt.Sprint(d.Value)
	case "uniform":
		return fmt.Sprintf("uniform %v to %v", d.Min, d.Max)
	case "normal":
		s = fmt.Sprintf("normal, mean %v, stddev %v", d.Value, d.Stddev)
	case "lognormal":
		s = fmt.Sprintf("lognormal, median %v, sigma %v", d.Value, d.Sigma)
	case "exponential":
		s = fmt.Sprintf("exponential, mean %v", d.Value)
	case "pareto":
		s = fmt.Sprintf("Pareto, alpha %v", d.Alpha)
	case "quantiles":
		return fmt.Sprintf("by %d quantiles, median %v", len(d.Values), d.sampler()(0.5))
	default:
		return fmt.Sprintf("%d values", len(d.Values))
	}
	if d.Min > 0 {
		s += fmt.Sprintf(", at least %v", d.Min)
	}
	if d.Max > 0 {
		s += fmt.Sprintf(", at most %v", d.Max)
	}
	return s
}

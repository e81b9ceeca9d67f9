package report

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

const (
	missing  = "–" // there is no number
	infinity = "∞" // beyond any value
)

// scale is how numbers of one row are printed: times by, with the unit behind.
type scale struct {
	by   float64
	unit string // with its leading space; "" if there is none
}

// scaleOf chooses one scale for numbers of a unit: times by their largest.
func scaleOf(u record.Unit, values ...float64) scale {
	switch u {
	case record.Nanoseconds:
		largest := 0.0
		for _, v := range values {
			if a := math.Abs(v); !math.IsInf(a, 0) && a > largest {
				largest = a
			}
		}
		switch {
		case largest >= 999.5e6:
			return scale{1e-9, " s"}
		case largest >= 999.5e3 || largest == 0:
			return scale{1e-6, " ms"}
		case largest >= 999.5:
			return scale{1e-3, " µs"}
		}
		return scale{1, " ns"}
	case record.Proportion:
		return scale{100, " %"}
	case record.TokensPerSecond:
		return scale{1, " tok/s"}
	case contract.RequestsPerSecond:
		return scale{1, " req/s"}
	case record.TokenUnit:
		return scale{1, " tok"}
	case record.Requests:
		return scale{1, " req"}
	case record.Points, "":
		return scale{1, ""}
	}
	return scale{1, " " + string(u)}
}

// places is the number of decimals that gives v so many significant figures;
// digits before the point are never rounded away.
func places(v float64, figures int) int {
	a := math.Abs(v)
	if a == 0 || math.IsNaN(a) || math.IsInf(a, 0) {
		return 0
	}
	d := figures - 1 - int(math.Floor(math.Log10(a)))
	// 9.996 has three figures as 10.0, not as 10.00.
	if d > 0 && math.Round(a*math.Pow10(d)) >= math.Pow10(figures) {
		d--
	}
	return min(max(d, 0), 12)
}

// fixed prints v with so many decimals, commas between thousands and a minus
// sign that is one.
func fixed(v float64, decimals int) string {
	switch {
	case math.IsNaN(v):
		return missing
	case math.IsInf(v, 1):
		return infinity
	case math.IsInf(v, -1):
		return "−" + infinity
	}
	s := strconv.FormatFloat(math.Abs(v), 'f', decimals, 64)
	whole, part, dotted := strings.Cut(s, ".")
	var b strings.Builder
	if v < 0 && strings.Trim(s, "0.") != "" {
		b.WriteString("−")
	}
	for i, r := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	if dotted {
		b.WriteString("." + part)
	}
	return b.String()
}

// print writes v with three significant figures and its unit.
func (s scale) print(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fixed(v, 0)
	}
	return fixed(v*s.by, places(v*s.by, 3)) + s.unit
}

// exactly writes a round number, such as a limit, without zeros at its end.
func (s scale) exactly(v float64) string { return plain(v*s.by, 6) + s.unit }

// plain writes v with at most so many significant figures and no idle zeros.
func plain(v float64, figures int) string {
	t := fixed(v, places(v, figures))
	if strings.Contains(t, ".") {
		t = strings.TrimRight(strings.TrimRight(t, "0"), ".")
	}
	return t
}

// interval writes the bounds with as many decimals as the value has. A bound
// that does not exist is a dash; one among the failed requests is ∞.
func (s scale) interval(e stat.Estimate) string {
	decimals := places(e.Value*s.by, 3)
	if e.Value == 0 {
		decimals = places(firstFinite(e.Hi, e.Lo)*s.by, 3)
	}
	bound := func(v float64) string {
		if math.IsInf(v, 0) {
			if beyond(e, v) {
				return infinity
			}
			return missing
		}
		if math.IsInf(e.Value, 0) {
			return s.print(v) // the value has no unit to lend
		}
		if v == 0 {
			return "0"
		}
		v *= s.by
		t := fixed(v, decimals)
		if strings.Trim(t, "−0.") == "" {
			t = fixed(v, places(v, 3)) // what is not zero must not look like it
		}
		return t
	}
	return "[" + bound(e.Lo) + ", " + bound(e.Hi) + "]"
}

func firstFinite(values ...float64) float64 {
	for _, v := range values {
		if !math.IsInf(v, 0) && !math.IsNaN(v) && v != 0 {
			return v
		}
	}
	return 0
}

// beyond reports whether the infinite bound is known: it lies among the failed
// requests, rather than not to exist.
func beyond(e stat.Estimate, bound float64) bool {
	return bound > 0 && (math.IsInf(e.Lo, 1) || e.Over > 0 && warned(e, stat.CodeOver) && !warned(e, stat.CodeFew))
}

func warned(e stat.Estimate, code string) bool {
	for _, w := range e.Warnings {
		if w.Code == code {
			return true
		}
	}
	return false
}

// exact reports whether the figure is a fact without an interval.
func exact(e stat.Estimate) bool { return strings.HasPrefix(e.Method, "exact") }

// figure prints an estimate on the scale of its row.
func (s scale) figure(e stat.Estimate) (value, interval string) {
	if math.IsNaN(e.Value) {
		return missing, ""
	}
	value = s.print(e.Value)
	if exact(e) {
		return value, ""
	}
	return value, s.interval(e)
}

// change prints a ratio or a difference with signs: "+12.0 % [+9.8, +14.1]".
func changeText(kind contract.ChangeKind, u record.Unit, e stat.Estimate) (value, interval string) {
	if math.IsNaN(e.Value) {
		return missing, ""
	}
	c := changeScale(kind, u, e)
	decimals := c.decimals(e)
	value = c.signed(e.Value, decimals, infinity)
	unit := c.unit
	if !math.IsInf(e.Value, 0) {
		value, unit = value+c.unit, ""
	}
	bound := func(v float64, infinite string) string {
		if math.IsInf(v, 0) {
			return infinite
		}
		return c.signed(v, decimals, missing) + unit
	}
	return value, "[" + bound(e.Lo, missing) + ", " + bound(e.Hi, c.above(e)) + "]"
}

// signedScale is how changes of one figure are printed.
type signedScale struct {
	scale
	zero float64 // the value of no change
}

func changeScale(kind contract.ChangeKind, u record.Unit, e stat.Estimate) signedScale {
	switch {
	case kind == contract.ChangeRatio:
		return signedScale{scale{100, " %"}, 1}
	case u == record.Proportion:
		return signedScale{scale{100, " pt"}, 0}
	}
	return signedScale{scaleOf(u, e.Value, e.Lo, e.Hi), 0}
}

// above is how an upper bound that is infinite prints.
func (c signedScale) above(e stat.Estimate) string {
	if beyond(e, e.Hi) {
		return infinity
	}
	return missing
}

// decimals gives one decimal to percentages and points, two where value and both
// bounds are below one, and none from a hundred on.
func (c signedScale) decimals(e stat.Estimate) int {
	largest := 0.0
	for _, v := range []float64{e.Value, e.Lo, e.Hi} {
		if a := math.Abs(v-c.zero) * c.by; !math.IsInf(a, 0) && a > largest {
			largest = a
		}
	}
	switch {
	case c.unit != " %" && c.unit != " pt":
		return places(firstFinite(e.Value, e.Hi, e.Lo)*c.by, 3)
	case largest > 0 && largest < .995 && e.Estimable():
		return 2
	case math.Abs(e.Value-c.zero)*c.by >= 99.95:
		return 0
	}
	return 1
}

func (c signedScale) signed(v float64, decimals int, infinite string) string {
	if math.IsInf(v, -1) && infinite == infinity {
		return "−" + infinity
	}
	if math.IsInf(v, 0) {
		return infinite
	}
	x := (v - c.zero) * c.by
	t := fixed(x, decimals)
	if x > 0 && strings.Trim(t, "0.,") != "" {
		return "+" + t
	}
	return t
}

// count writes "1 request", "2,400 requests".
func count[T int | int64](n T, noun string) string {
	s := fixed(float64(n), 0) + " " + noun
	if n != 1 {
		s += "s"
	}
	return s
}

// span writes a duration for people.
func span(d time.Duration) string { return scaleOf(record.Nanoseconds, float64(d)).print(float64(d)) }

// superscript writes footnote marks behind a figure.
func superscript(marks []int) string {
	var b strings.Builder
	for i, n := range marks {
		if i > 0 {
			b.WriteByte(',')
		}
		for _, r := range strconv.Itoa(n) {
			b.WriteRune([]rune("⁰¹²³⁴⁵⁶⁷⁸⁹")[r-'0'])
		}
	}
	return b.String()
}

// title names a quantity as tables show it: "TTFT p99".
func title(q contract.Quantity) string {
	m, _ := record.Find(q.Metric)
	return titled(q, m)
}

// titled is the title of a quantity of a metric that is known.
func titled(q contract.Quantity, m record.Metric) string {
	name := cmp.Or(m.Title, q.Metric)
	switch q.Stat {
	case "quantile":
		return fmt.Sprintf("%s p%s", name, plain(q.P*100, 5))
	case "share", "estimate":
		return name
	case "rate":
		return strings.TrimSuffix(name, " requests") + "/s"
	}
	return strings.TrimSuffix(name, " share") + " " + q.Stat
}

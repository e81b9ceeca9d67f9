package contract

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/assay-llm/assay/record"
)

// unitName says a unit in words.
func unitName(u record.Unit) string {
	switch u {
	case record.Nanoseconds:
		return "time"
	case record.Proportion:
		return "per cent"
	case record.TokensPerSecond:
		return "tokens per second"
	case RequestsPerSecond:
		return "requests per second"
	}
	return string(u)
}

// value writes v for people, with the given number of significant digits.
func value(u record.Unit, v float64, digits int) string {
	switch {
	case math.IsNaN(v):
		return "unknown"
	case math.IsInf(v, 1):
		return "beyond any value"
	case math.IsInf(v, -1):
		return "below any value"
	}
	switch u {
	case record.Nanoseconds:
		a := math.Abs(v)
		switch {
		case a >= 1e9:
			return significant(v/1e9, digits) + " s"
		case a >= 1e6 || a == 0:
			return significant(v/1e6, digits) + " ms"
		case a >= 1e3:
			return significant(v/1e3, digits) + " µs"
		}
		return significant(v, digits) + " ns"
	case record.Proportion:
		return significant(100*v, digits) + " %"
	case record.Points:
		return significant(v, digits)
	}
	return significant(v, digits) + " " + string(u)
}

// pair writes a value and its limit with as many digits as tell them apart.
func pair(u record.Unit, v, limit float64) (string, string) {
	for digits := 3; ; digits++ {
		a, b := value(u, v, digits), value(u, limit, digits)
		if a != b || v == limit || digits == 9 {
			return a, b
		}
	}
}

// significant writes v with that many significant digits; digits before the
// point are never rounded away.
func significant(v float64, digits int) string {
	if v == 0 {
		return "0"
	}
	decimals := max(0, digits-1-int(math.Floor(math.Log10(math.Abs(v)))))
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		// Zeros at the end stand for precision, unless the number has no more digits.
		short := strings.TrimRight(strings.TrimRight(s, "0"), ".")
		if f, err := strconv.ParseFloat(short, 64); err == nil && f == v {
			s = short
		}
	}
	return grouped(s)
}

// grouped puts commas between thousands.
func grouped(s string) string {
	whole, part, dotted := strings.Cut(s, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "−", whole[1:]
	}
	var b strings.Builder
	for i, r := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	if dotted {
		return sign + b.String() + "." + part
	}
	return sign + b.String()
}

// trim writes v with at most so many decimals.
func trim(v float64, decimals int) string {
	return strconv.FormatFloat(math.Round(v*math.Pow10(decimals))/math.Pow10(decimals), 'f', -1, 64)
}

// count writes "1 request", "41 requests".
func count[T int | int64](n T, noun string) string {
	s := grouped(strconv.FormatInt(int64(n), 10)) + " " + noun
	if n != 1 {
		s += "s"
	}
	return s
}

// percentage writes a confidence: "95 %", "97.5 %".
func percentage(c float64) string { return trim(100*c, 2) + " %" }

// subject says the quantity in words: "p95 of TPOT", "the share of failed
// requests".
func subject(q Quantity, m record.Metric) string {
	title := m.Title
	if title == "" {
		title = q.Metric
	}
	if m.Indicator && !strings.Contains(q.Metric, ".") { // CHECK.VALUE is of answers, which its title says
		return q.stat() + " of " + title + " requests"
	}
	return q.stat() + " of " + title
}

// change writes a difference or a relative difference with its sign.
type change struct {
	kind ChangeKind
	unit record.Unit
	from string // what it is a change from: "baseline", "reference"
}

// signed writes x: "+9.8 %", "−0.3 points".
func (c change) signed(x float64) string {
	s := c.magnitude(x)
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return s
	case c.zero() < x:
		return "+" + s
	case c.zero() > x:
		return "−" + s
	}
	return s
}

// zero is the value of no change.
func (c change) zero() float64 {
	if c.kind == ChangeRatio {
		return 1
	}
	return 0
}

// magnitude writes how far x is from no change.
func (c change) magnitude(x float64) string {
	switch {
	case math.IsNaN(x):
		return "unknown"
	case math.IsInf(x, 1):
		return "beyond any value"
	case math.IsInf(x, -1):
		return "below any value"
	case c.kind == ChangeRatio:
		return tenth(100*math.Abs(x-1)) + " %"
	case c.unit == record.Proportion:
		return pointsText(tenth(100 * math.Abs(x)))
	}
	return value(c.unit, math.Abs(x), 3)
}

func pointsText(number string) string {
	if number == "1" {
		return "1 point"
	}
	return number + " points"
}

// tenth writes one decimal, or more for what would round to nothing.
func tenth(v float64) string {
	if v >= 0.1 || v == 0 {
		return grouped(strconv.FormatFloat(v, 'f', 1, 64))
	}
	return significant(v, 1)
}

// place says where x lies: "12.0 % above the baseline".
func (c change) place(x float64) string {
	switch {
	case math.IsInf(x, 1):
		return "beyond any value of the " + c.from
	case x > c.zero():
		return c.magnitude(x) + " above the " + c.from
	case x < c.zero():
		return c.magnitude(x) + " below the " + c.from
	}
	return "equal to the " + c.from
}

// margin says a limit on the change: "margin 5 %", or where the candidate must
// lie when the limit leaves no margin.
func (c change) margin(cmp Compare, limit float64) string {
	exact := func(x float64) string {
		if c.kind == ChangeRatio {
			return trim(100*math.Abs(x-1), 4) + " %"
		}
		if c.unit == record.Proportion {
			return pointsText(trim(100*math.Abs(x), 4))
		}
		return value(c.unit, math.Abs(x), 3)
	}
	lenient := limit > c.zero() == cmp.upper()
	switch {
	case limit == c.zero():
		return "no margin"
	case lenient:
		return "margin " + exact(limit)
	case limit > c.zero():
		return "must be " + exact(limit) + " above"
	}
	return "must be " + exact(limit) + " below"
}

// list joins words: "a, b and c".
func list(words []string) string {
	switch len(words) {
	case 0:
		return ""
	case 1:
		return words[0]
	}
	return fmt.Sprintf("%s and %s", strings.Join(words[:len(words)-1], ", "), words[len(words)-1])
}

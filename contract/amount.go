package contract

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// dimension is what the unit of a written quantity measures.
type dimension uint8

const (
	bare dimension = iota
	duration
	percent
	points
	perSecond
	tokensPerSecond
	requestsPerSecond
	tokens
	requests
)

var units = map[string]struct {
	dim   dimension
	scale float64
}{
	"": {bare, 1}, "%": {percent, 0.01}, "points": {points, 1}, "point": {points, 1},
	"/s": {perSecond, 1}, "/min": {perSecond, 1. / 60}, "/h": {perSecond, 1. / 3600},
	"tokens/s": {tokensPerSecond, 1}, "requests/s": {requestsPerSecond, 1},
	"tokens": {tokens, 1}, "token": {tokens, 1}, "requests": {requests, 1}, "request": {requests, 1},
}

// amount is a written quantity; value is in nanoseconds, shares, points, per
// second or plain.
type amount struct {
	value float64
	dim   dimension
	text  string
}

func (p *parser) amount(expected string) (amount, error) {
	column, from := p.column(), p.at
	num := p.take(func(r rune) bool { return digit(r) || r == '.' })
	value, err := strconv.ParseFloat(num, 64)
	if num == "" || err != nil || strings.HasPrefix(num, ".") || strings.HasSuffix(num, ".") {
		p.at = from
		return amount{}, p.fault(column, fmt.Sprintf("expected %s, found %s", expected, p.found()), shape)
	}
	if p.at < len(p.text) && (p.text[p.at] == ',' || p.text[p.at] == '_') {
		return amount{}, p.fault(p.column(), "expected a number without separators", "write 1000, with a point for decimals")
	}
	if value > 1e15 {
		return amount{}, p.fault(column, "the number is out of range", "write a limit that a run can reach, such as 800ms")
	}
	after := p.at
	p.space()
	unitColumn := p.column()
	unit := p.take(func(r rune) bool { return letter(r) || r == '%' || r == 'µ' || r == 'μ' || (r == '/' && p.at > from) })
	if unit == "" {
		p.at = after
		return amount{value: value, dim: bare, text: num}, nil
	}
	if u, ok := units[unit]; ok {
		text := num + unit
		if letter(rune(unit[0])) {
			text = num + " " + unit
		}
		return amount{value: scaled(num, value, u.scale), dim: u.dim, text: text}, nil
	}
	// The rest of a compound such as 1m30s.
	compound := num + unit + p.take(func(r rune) bool { return digit(r) || letter(r) || r == '.' })
	d, err := time.ParseDuration(compound)
	if err != nil {
		return amount{}, p.fault(unitColumn, fmt.Sprintf("there is no unit %q", strings.TrimPrefix(compound, num)), unitHint(unit))
	}
	return amount{value: float64(d), dim: duration, text: compound}, nil
}

// scaled multiplies, but gives the nearest float64 to the decimal fraction for
// percentages, so that 2% is exactly what 0.02 is.
func scaled(num string, value, scale float64) float64 {
	if scale != 0.01 {
		return value * scale
	}
	if v, err := strconv.ParseFloat(num+"e-2", 64); err == nil {
		return v
	}
	return value * scale
}

func unitHint(unit string) string {
	switch strings.ToLower(unit) {
	case "sec", "secs", "second", "seconds":
		return "write s, as in 2s"
	case "msec", "millis", "millisecond", "milliseconds":
		return "write ms, as in 800ms"
	case "min", "mins", "minute", "minutes":
		return "write m, as in 2m"
	case "percent", "pct":
		return "write %, as in 2%"
	case "pt", "pts", "pp", "ppt":
		return "write points, as in 0.5 points"
	case "rps", "qps", "req/s":
		return "write /s, as in 30/s"
	case "tps", "tok/s", "t/s":
		return "write /s, as in 30/s"
	}
	return "units are ns, us, ms, s, m, h, %, points, /s, /min, tokens, requests"
}

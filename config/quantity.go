package config

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time, never negative, written "30s", "5m", "1h30m",
// "1.5s", "200ms".
type Duration time.Duration

// Rate is a number per second, from 0 to 10^9, written "5/s", "300/min", "10/h".
type Rate float64

// Bytes is a size, never negative, written "2GiB", "64KiB", "10MB", "512B".
type Bytes int64

// Percent is a share or a change: 0.08 is written "8%" or "+8%". It may be
// negative.
type Percent float64

// Count is a number of things, never negative, written "12", "32k", "1.5M", with
// k for 1,000 and M for 1,000,000.
type Count int64

// misfit says why a text is no quantity.
type misfit struct{ wants, what, hint string }

func (m *misfit) Error() string { return m.wants + ", " + m.what + " (" + m.hint + ")" }

// strictly calls a parser for a text of bearable length and says what was wanted.
func strictly[T any](s, wants string, parse func(string) (T, *misfit)) (T, error) {
	var zero T
	if len(s) > longest {
		return zero, &misfit{wants, "got a text of " + plural(len(s), "byte"), "write " + example(wants)}
	}
	v, m := parse(s)
	if m != nil {
		m.wants = wants
		m.what = strings.TrimSuffix("got "+quote(s)+": "+m.what, ": ")
		return zero, m
	}
	return v, nil
}

// wants is what a fault says about the type, and an example.
const (
	wantsDuration = `wants a duration such as "30s"`
	wantsRate     = `wants a rate such as "5/s"`
	wantsBytes    = `wants a size such as "2GiB"`
	wantsPercent  = `wants a percentage such as "8%"`
	wantsCount    = `wants a count such as 12 or 32k`
)

// longest bounds the text of a quantity in bytes.
const longest = 64

// unit is a name and how many of the base unit it is.
type unit struct {
	name  string
	times uint64
}

var (
	timeUnits = []unit{{"h", 3600e9}, {"m", 60e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}}
	sizeUnits = []unit{
		{"TiB", 1 << 40},
		{"GiB", 1 << 30},
		{"MiB", 1 << 20},
		{"KiB", 1 << 10},
		{"TB", 1e12},
		{"GB", 1e9},
		{"MB", 1e6},
		{"kB", 1e3},
		{"B", 1},
	}
	countUnits = []unit{{"M", 1e6}, {"k", 1e3}, {"", 1}}
)

func unitNames(us []unit) string {
	var names []string
	for _, u := range us {
		if u.name != "" {
			names = append(names, u.name)
		}
	}
	return orList(names)
}

func find(us []unit, name string) (uint64, bool) {
	for _, u := range us {
		if u.name == name {
			return u.times, true
		}
	}
	return 0, false
}

// cutNumber splits s into a leading decimal number without sign or exponent and
// the rest. ok is false if there is none.
func cutNumber(s string) (whole, fraction, rest string, ok bool) {
	i := digits(s)
	whole, rest = s[:i], s[i:]
	if strings.HasPrefix(rest, ".") {
		j := digits(rest[1:])
		if i == 0 || j == 0 {
			return "", "", s, false
		}
		fraction, rest = rest[1:1+j], rest[1+j:]
	}
	return whole, fraction, rest, i > 0
}

func digits(s string) int {
	i := 0
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	return i
}

// exactly returns whole.fraction × times if that is an integer below 2^63.
func exactly(whole, fraction string, times uint64) (n uint64, inRange, exact bool) {
	w, err := strconv.ParseUint(whole, 10, 64)
	if err != nil {
		return 0, false, true
	}
	hi, n := bits.Mul64(w, times)
	if hi != 0 || n > math.MaxInt64 {
		return 0, false, true
	}
	fraction = strings.TrimRight(fraction, "0")
	if fraction == "" {
		return n, true, true
	}
	if len(fraction) > 18 {
		return 0, true, false
	}
	f, _ := strconv.ParseUint(fraction, 10, 64)
	scale := uint64(math.Pow10(len(fraction)))
	hi, lo := bits.Mul64(f, times)
	part, rem := bits.Div64(hi, lo, scale) // hi < scale because f < scale and times < 2^63
	if rem != 0 {
		return 0, true, false
	}
	if n += part; n > math.MaxInt64 {
		return 0, false, true
	}
	return n, true, true
}

// ParseDuration reads a Duration. Units go from large to small, each at most
// once; only the last number may have a fraction.
func ParseDuration(s string) (Duration, error) { return strictly(s, wantsDuration, parseDuration) }

func parseDuration(s string) (Duration, *misfit) {
	if strings.HasPrefix(s, "-") {
		return 0, &misfit{"", "it must not be negative", "write a duration of 0s or more"}
	}
	if s == "" {
		return 0, &misfit{"", "", "write a number and a unit"}
	}
	var total, last uint64 = 0, math.MaxUint64
	for rest := s; rest != ""; {
		whole, fraction, after, ok := cutNumber(rest)
		if !ok {
			return 0, &misfit{"", "", "write a number and a unit, such as 30s, 5m or 1h30m"}
		}
		name := after[:len(after)-len(strings.TrimLeft(after, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµμ"))]
		rest = after[len(name):]
		if name == "µs" || name == "μs" {
			name = "us"
		}
		times, known := find(timeUnits, name)
		if !known {
			return 0, &misfit{"", "", durationUnitHint(s, whole, fraction, name)}
		}
		if times >= last {
			return 0, &misfit{"", "the units are not in order", "go from large to small units, each once, such as 1h30m"}
		}
		last = times
		n, inRange, exact := exactly(whole, fraction, times)
		if inRange && exact && fraction != "" && rest != "" {
			return 0, &misfit{"", "a fraction before the last unit", "write the fraction in the smaller unit"}
		}
		if !exact {
			return 0, &misfit{"", "finer than a nanosecond", "round it"}
		}
		if total += n; !inRange || total > math.MaxInt64 {
			return 0, &misfit{"", "it is out of range", "write at most 2562047h"}
		}
	}
	return Duration(total), nil
}

func durationUnitHint(s, whole, fraction, name string) string {
	number := whole
	if fraction != "" {
		number += "." + fraction
	}
	days := map[string]uint64{"d": 24, "day": 24, "days": 24, "w": 168, "week": 168, "weeks": 168}
	words := map[string]string{
		"sec": "s", "secs": "s", "second": "s", "seconds": "s", "min": "m", "mins": "m", "minute": "m", "minutes": "m",
		"hr": "h", "hrs": "h", "hour": "h", "hours": "h", "msec": "ms", "milliseconds": "ms", "usec": "us", "nsec": "ns",
		"S": "s", "H": "h", "M": "m", "MS": "ms", "Ms": "ms",
	}
	if f := strings.Fields(s); name == "" && len(f) == 2 && f[0] == number { // "5 min"
		s, name = whole+f[1], f[1]
		if _, known := find(timeUnits, name); known {
			words[name] = name
		}
	}
	switch {
	case name == "":
		return "write " + number + "s, if seconds are meant"
	case words[name] != "":
		return "write " + number + words[name]
	case days[name] != 0 && fraction == "" && whole+name == s:
		if n, inRange, _ := exactly(whole, "", days[name]); inRange {
			return fmt.Sprintf("write %dh", n)
		}
	}
	return "use the units " + unitNames(timeUnits)
}

// String returns the duration as it is written: "1h30m", "1.5s".
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// rateUnits are in seconds.
var rateUnits = []unit{{"s", 1}, {"min", 60}, {"h", 3600}}

// fastest is the largest Rate; an engine that could be meant is far below it.
const fastest = 1e9

// ParseRate reads a Rate.
func ParseRate(s string) (Rate, error) { return strictly(s, wantsRate, parseRate) }

func parseRate(s string) (Rate, *misfit) {
	if strings.HasPrefix(s, "-") {
		return 0, &misfit{"", "it must not be negative", "write a rate of 0/s or more"}
	}
	_, _, rest, ok := cutNumber(s)
	if !ok {
		return 0, &misfit{"", "", "write a number per second, such as 5/s"}
	}
	number := s[:len(s)-len(rest)]
	name, slash := strings.CutPrefix(rest, "/")
	seconds, known := find(rateUnits, name)
	if !slash || !known {
		words := map[string]string{"": "s", "sec": "s", "second": "s", "m": "min", "minute": "min", "hour": "h", "hr": "h", "rps": "s", "qps": "s"}
		if w := words[strings.TrimSpace(name)]; w != "" {
			return 0, &misfit{"", "", "write " + number + "/" + w}
		}
		return 0, &misfit{"", "", "write it per second, minute or hour: " + number + "/s, " + number + "/min, " + number + "/h"}
	}
	v, err := strconv.ParseFloat(number, 64)
	v /= float64(seconds)
	if err != nil || v > fastest {
		return 0, &misfit{"", "it is out of range", "write at most 1000000000/s"}
	}
	return Rate(v), nil
}

// String returns the rate as it is written, per second.
func (r Rate) String() string { return strconv.FormatFloat(float64(r), 'f', -1, 64) + "/s" }

// ParseBytes reads a size.
func ParseBytes(s string) (Bytes, error) { return strictly(s, wantsBytes, parseBytes) }

func parseBytes(s string) (Bytes, *misfit) {
	n, err := parseInteger(s, sizeUnits, "a size", func(number, name string) string {
		for _, u := range sizeUnits {
			if strings.EqualFold(u.name, name) {
				return "write " + number + u.name
			}
		}
		short := map[string]string{"k": "KiB", "ki": "KiB", "m": "MiB", "mi": "MiB", "g": "GiB", "gi": "GiB", "t": "TiB", "ti": "TiB"}
		if name == "" {
			return "write " + number + "B, if bytes are meant"
		}
		if w := short[strings.ToLower(name)]; w != "" {
			return "write " + number + w
		}
		return "use the units " + unitNames(sizeUnits)
	})
	return Bytes(n), err
}

// String returns the size as it is written, in the largest unit that divides it.
func (b Bytes) String() string {
	if b <= 0 {
		return strconv.FormatInt(int64(b), 10) + "B"
	}
	for _, u := range sizeUnits {
		if n := uint64(b); n%u.times == 0 {
			return strconv.FormatUint(n/u.times, 10) + u.name
		}
	}
	panic("config: the unit B divides every size")
}

// ParseCount reads a Count.
func ParseCount(s string) (Count, error) { return strictly(s, wantsCount, parseCount) }

func parseCount(s string) (Count, *misfit) {
	n, err := parseInteger(s, countUnits, "a count", func(number, name string) string {
		words := map[string]string{"K": "k", "m": "M", "mio": "M", "million": "M", "thousand": "k"}
		if w := words[name]; w != "" {
			return "write " + number + w
		}
		if whole, ok := wholeOf(s); ok {
			return "write " + whole
		}
		return "write a number, or one with k (1,000) or M (1,000,000)"
	})
	return Count(n), err
}

// String returns the count as it is written: "12", "32k".
func (c Count) String() string {
	for _, u := range countUnits[:2] {
		if t := int64(u.times); c > 0 && int64(c)%t == 0 {
			return strconv.FormatInt(int64(c)/t, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(c), 10)
}

// parseInteger reads a number and a unit whose product is a whole number.
func parseInteger(s string, units []unit, what string, unitHint func(number, name string) string) (int64, *misfit) {
	if strings.HasPrefix(s, "-") {
		return 0, &misfit{"", "it must not be negative", "write 0 or more"}
	}
	whole, fraction, name, ok := cutNumber(s)
	if !ok {
		return 0, &misfit{"", "", "write a number such as 12"}
	}
	times, known := find(units, name)
	if !known {
		return 0, &misfit{"", "", unitHint(s[:len(s)-len(name)], strings.TrimSpace(name))}
	}
	n, inRange, exact := exactly(whole, fraction, times)
	if !exact {
		return 0, &misfit{"", "it is not a whole number", "write " + what + " without a fraction"}
	}
	if !inRange {
		return 0, &misfit{"", "it is out of range", "write at most 9223372036854775807"}
	}
	return int64(n), nil
}

// largestPercent bounds a Percent: ±10^6 %.
const largestPercent = 1e4

// ParsePercent reads a Percent.
func ParsePercent(s string) (Percent, error) { return strictly(s, wantsPercent, parsePercent) }

func parsePercent(s string) (Percent, *misfit) {
	unsigned := strings.TrimPrefix(s, "+")
	sign := ""
	if unsigned == s {
		unsigned = strings.TrimPrefix(s, "-")
		sign = s[:len(s)-len(unsigned)]
	}
	whole, fraction, rest, ok := cutNumber(unsigned)
	if !ok {
		return 0, &misfit{"", "", "write a number and %, such as 8%"}
	}
	if rest != "%" {
		return 0, &misfit{"", "", percentHint(s[:len(s)-len(rest)], rest)}
	}
	// Scaling the text and not the number keeps 8% equal to 0.08.
	v, err := strconv.ParseFloat(sign+whole+"."+fraction+"e-2", 64)
	if err != nil || math.Abs(v) > largestPercent {
		return 0, &misfit{"", "it is out of range", "write at most 1000000%"}
	}
	if v == 0 {
		v = 0 // no negative zero
	}
	return Percent(v), nil
}

func percentHint(number, rest string) string {
	if rest == "" {
		if v, err := strconv.ParseFloat(number, 64); err == nil && v != 0 && math.Abs(v) <= 1 {
			return "write " + Percent(v).String() + ", or " + number + "% if that is meant"
		}
		return "write " + number + "%"
	}
	if strings.TrimSpace(rest) == "%" || strings.HasPrefix(strings.TrimSpace(rest), "percent") {
		return "write " + number + "%"
	}
	return "write a number and %, such as 8%"
}

// String returns the percentage as it is written: "8%", "-0.5%".
func (p Percent) String() string {
	mantissa, exponent, found := strings.Cut(strconv.FormatFloat(float64(p), 'e', -1, 64), "e")
	if !found { // NaN, ±Inf: cannot come from a document
		return mantissa + "%"
	}
	e, _ := strconv.Atoi(exponent)
	return shift(mantissa, e+2) + "%"
}

// shift writes d.ddd × 10^e without an exponent.
func shift(mantissa string, e int) string {
	sign := ""
	if m, negative := strings.CutPrefix(mantissa, "-"); negative {
		sign, mantissa = "-", m
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := whole + fraction
	point := len(whole) + e
	if point <= 0 {
		all = strings.Repeat("0", 1-point) + all
		point = 1
	}
	if point > len(all) {
		all += strings.Repeat("0", point-len(all))
	}
	whole, fraction = all[:point], strings.TrimRight(all[point:], "0")
	whole = strings.TrimLeft(whole, "0")
	if whole == "" {
		whole = "0"
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	return sign + whole + fraction
}

// decodeQuantity reads a quantity that is written as text. A bare number gets a
// hint of its own: it is the most common mistake.
func decodeQuantity[T any](n *Node, into *T, wants string, parse func(string) (T, error), bareHint func(string) string) {
	switch n.Kind() {
	case Number:
		if bareHint != nil {
			n.Fault(wants+", got the number "+clip(n.Scalar()), bareHint(clip(n.Scalar())))
			return
		}
	case Text:
	default:
		n.Fault(wants+", got "+n.got(), "write "+example(wants))
		return
	}
	v, err := parse(n.Scalar())
	if m, ok := errors.AsType[*misfit](err); ok {
		n.Fault(m.wants+", "+m.what, m.hint)
		return
	}
	*into = v
}

// example takes the example out of a wants text.
func example(wants string) string {
	_, e, _ := strings.Cut(wants, "such as ")
	return strings.Trim(e, `"`)
}

// DecodeConfig reads the duration from a document.
func (d *Duration) DecodeConfig(n *Node) {
	decodeQuantity(n, d, wantsDuration, ParseDuration, func(s string) string { return "write " + strings.TrimLeft(s, "+-") + "s, if seconds are meant" })
}

// DecodeConfig reads the rate from a document.
func (r *Rate) DecodeConfig(n *Node) {
	decodeQuantity(n, r, wantsRate, ParseRate, func(s string) string { return "write " + strings.TrimLeft(s, "+-") + "/s, if per second is meant" })
}

// DecodeConfig reads the size from a document.
func (b *Bytes) DecodeConfig(n *Node) {
	decodeQuantity(n, b, wantsBytes, ParseBytes, func(s string) string { return "write " + strings.TrimLeft(s, "+-") + "B, if bytes are meant" })
}

// DecodeConfig reads the percentage from a document.
func (p *Percent) DecodeConfig(n *Node) {
	decodeQuantity(n, p, wantsPercent, ParsePercent, func(s string) string { return percentHint(s, "") })
}

// DecodeConfig reads the count from a document.
func (c *Count) DecodeConfig(n *Node) { decodeQuantity(n, c, wantsCount, ParseCount, nil) }

// MarshalText returns String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// MarshalText returns String.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// MarshalText returns String.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// MarshalText returns String.
func (p Percent) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// MarshalText returns String.
func (c Count) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText is ParseDuration.
func (d *Duration) UnmarshalText(b []byte) error { return set(d, b, ParseDuration) }

// UnmarshalText is ParseRate.
func (r *Rate) UnmarshalText(b []byte) error { return set(r, b, ParseRate) }

// UnmarshalText is ParseBytes.
func (b *Bytes) UnmarshalText(text []byte) error { return set(b, text, ParseBytes) }

// UnmarshalText is ParsePercent.
func (p *Percent) UnmarshalText(b []byte) error { return set(p, b, ParsePercent) }

// UnmarshalText is ParseCount.
func (c *Count) UnmarshalText(b []byte) error { return set(c, b, ParseCount) }

func set[T any](into *T, text []byte, parse func(string) (T, error)) error {
	v, err := parse(string(text))
	if err == nil {
		*into = v
	}
	return err
}

// parseTag reads a limit from a tag into what v points to.
func parseTag(v reflect.Value, s string) error {
	switch x := v.Interface().(type) {
	case interface{ UnmarshalText([]byte) error }:
		return x.UnmarshalText([]byte(s))
	case *time.Duration:
		return (*Duration)(x).UnmarshalText([]byte(s))
	}
	_, err := fmt.Sscan(s, v.Interface())
	return err
}

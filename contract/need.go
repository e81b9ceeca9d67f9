package contract

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
)

// Quantity is a statistic of a metric over requests.
type Quantity struct {
	Stat   string  `json:"stat"`        // quantile, mean, share, rate, count, max, min, or estimate
	P      float64 `json:"p,omitempty"` // of a quantile, above 0 and below 1
	Metric string  `json:"metric"`      // as record.Find knows it
}

// String writes the quantity as contracts do: "p99(ttft)".
func (q Quantity) String() string { return q.stat() + "(" + q.Metric + ")" }

func (q Quantity) stat() string {
	if q.Stat != "quantile" {
		return q.Stat
	}
	// P is a decimal fraction of at most five digits; eight round away what binary arithmetic adds.
	return "p" + strconv.FormatFloat(math.Round(q.P*1e8)/1e6, 'f', -1, 64)
}

// fact reports whether the quantity is a fact of a run, without an interval.
func (q Quantity) fact() bool { return q.Stat == "count" || q.Stat == "max" || q.Stat == "min" }

// Compare is a comparison: "<=", "<", ">=" or ">".
type Compare string

// upper reports whether the comparison limits a quantity from above.
func (c Compare) upper() bool { return c == "<=" || c == "<" }

// holds reports whether x compares to limit; NaN never does.
func (c Compare) holds(x, limit float64) bool {
	switch c {
	case "<=":
		return x <= limit
	case "<":
		return x < limit
	case ">=":
		return x >= limit
	case ">":
		return x > limit
	}
	return false
}

// Limit is the right-hand side of a need: a quantity, or a yardstick times Factor
// plus Value. At most one of Baseline, Reference, Previous and Windows is set.
type Limit struct {
	Baseline  bool          // the yardstick is the baseline in the same run or window
	Reference bool          // it is the value that the contract registers
	Previous  time.Duration // it is the candidate itself, over so long before the window
	Windows   int           // the limit is Tukey's fence around the candidate's last so many windows
	Reach     float64       // of the fence, in interquartile ranges
	Factor    float64       // of the yardstick; 1 unless the limit is `baseline * F`
	Value     float64       // absolute, or added to the yardstick; in the unit of the quantity
	text      string
	dim       dimension
}

// String writes the limit as contracts do.
func (l Limit) String() string { return l.text }

// yardstick names what the limit refers to; "" for an absolute one.
func (l Limit) yardstick() string {
	switch {
	case l.Baseline:
		return "baseline"
	case l.Reference:
		return "reference"
	case l.Previous > 0:
		return "previous(" + config.Duration(l.Previous).String() + ")"
	case l.Windows > 0:
		return fmt.Sprintf("tukey(%d, %s)", l.Windows, trim(l.Reach, 6))
	}
	return ""
}

// relative reports whether the limit refers to a yardstick.
func (l Limit) relative() bool { return l.yardstick() != "" }

// Need is one comparison: STAT(METRIC) CMP LIMIT. Build one with ParseNeed.
type Need struct {
	Quantity Quantity
	Compare  Compare
	Limit    Limit
	at       columns
	bound    bool // to its metric
}

// columns are the places of the parts in the text, from 1.
type columns struct{ stat, metric, compare, limit int }

// String writes the need in one spelling; ParseNeed reads it back.
func (n Need) String() string {
	if n.Compare == "" {
		return ""
	}
	return n.Quantity.String() + " " + string(n.Compare) + " " + n.Limit.text
}

// NeedError says what is wrong with the text of a need, and where.
type NeedError struct {
	Column int // in characters, from 1
	What   string
	Hint   string // one next step; "" if none
}

// Error returns the message, with its column and the hint on a line of its own.
func (e *NeedError) Error() string {
	s := fmt.Sprintf("column %d: %s", e.Column, e.What)
	if e.Hint != "" {
		s += "\n  hint: " + e.Hint
	}
	return s
}

// maxNeed bounds the text of a need; a longest sensible one has 60 characters.
const maxNeed = 500

// ParseNeed parses a need. It checks the statistic and the unit of the limit
// against the metric, if the metric is one that the catalogue knows; a metric
// that it does not know is left to Lint, unless the name is a likely slip. The
// error is a *NeedError.
func ParseNeed(s string) (Need, error) {
	p := parser{text: []rune(s)}
	if len(p.text) > maxNeed {
		return Need{}, p.fault(1, fmt.Sprintf("a need of %d characters; the limit is %d", len(p.text), maxNeed), "write one comparison, such as p99(ttft) <= 800ms")
	}
	var n Need
	for _, step := range []func(*Need) error{p.quantity, p.compare, p.limit, p.end, p.check} {
		if err := step(&n); err != nil {
			return Need{}, err
		}
	}
	return n, nil
}

const shape = "a need reads STAT(METRIC) CMP LIMIT, as in p99(ttft) <= 800ms or p95(tpot) <= baseline * 1.05"

var stats = []string{"p50", "p90", "p95", "p99", "p99.9", "mean", "share", "rate", "count", "max", "min", "median", "estimate"}

// aliases are spellings that others use, for hints only.
var aliases = map[string]string{"avg": "mean", "average": "mean", "percentile": "p99", "sum": "count", "total": "count", "ratio": "share", "proportion": "share", "fraction": "share", "maximum": "max", "minimum": "min", "throughput": "rate"}

type parser struct {
	text []rune
	at   int // index of the next rune
}

func (p *parser) fault(column int, what, hint string) error {
	return &NeedError{Column: column, What: what, Hint: hint}
}

func (p *parser) space() {
	for p.at < len(p.text) && unicode.IsSpace(p.text[p.at]) {
		p.at++
	}
}

func (p *parser) column() int { return p.at + 1 }

// take reads the longest run of runes that are in class.
func (p *parser) take(in func(rune) bool) string {
	from := p.at
	for p.at < len(p.text) && in(p.text[p.at]) {
		p.at++
	}
	return string(p.text[from:p.at])
}

// found describes what stands at the cursor, for messages.
func (p *parser) found() string {
	if p.at >= len(p.text) {
		return "the end"
	}
	from := p.at
	to := from + 1
	for to < len(p.text) && to-from < 20 && nameRune(p.text[from]) && nameRune(p.text[to]) {
		to++
	}
	return strconv.Quote(string(p.text[from:to]))
}

func letter(r rune) bool { return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' }
func digit(r rune) bool  { return '0' <= r && r <= '9' }
func nameRune(r rune) bool {
	return letter(r) || digit(r) || r == '_' || r == '.'
}
func metricRune(r rune) bool { return nameRune(r) || r == '-' || r == '@' }

func (p *parser) quantity(n *Need) error {
	p.space()
	n.at.stat = p.column()
	word := p.take(nameRune)
	if word == "" {
		return p.fault(n.at.stat, "expected a statistic such as p99, mean or share, found "+p.found(), shape)
	}
	if err := p.statistic(n, word); err != nil {
		return err
	}
	p.space()
	if p.at >= len(p.text) || p.text[p.at] != '(' {
		return p.fault(p.column(), fmt.Sprintf("expected ( after %s, found %s", word, p.found()), shape)
	}
	p.at++
	p.space()
	n.at.metric = p.column()
	n.Quantity.Metric = p.take(metricRune)
	if n.Quantity.Metric == "" {
		return p.fault(n.at.metric, "expected a metric such as ttft, found "+p.found(), "metrics are "+strings.Join(metricNames(nil), ", "))
	}
	p.space()
	if p.at >= len(p.text) || p.text[p.at] != ')' {
		return p.fault(p.column(), fmt.Sprintf("expected ) after %s, found %s", n.Quantity.Metric, p.found()), shape)
	}
	p.at++
	return nil
}

func (p *parser) statistic(n *Need, word string) error {
	switch word {
	case "mean", "share", "rate", "count", "max", "min", "estimate":
		n.Quantity.Stat = word
		return nil
	case "median":
		n.Quantity.Stat, n.Quantity.P = "quantile", 0.5
		return nil
	}
	if rest, ok := strings.CutPrefix(word, "p"); ok && rest != "" && digit(rune(rest[0])) {
		return p.percentile(n, rest)
	}
	hint := "statistics are pNN, mean, share, rate, count, max, min, estimate"
	if better, ok := aliases[strings.ToLower(word)]; ok {
		hint = fmt.Sprintf("did you mean %s?", better)
	} else if near, ok := nearest(strings.ToLower(word), stats); ok {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return p.fault(n.at.stat, fmt.Sprintf("there is no statistic %q", word), hint)
}

// percentile reads the digits after the p: "99", "99.9".
func (p *parser) percentile(n *Need, digits string) error {
	whole, part, dotted := strings.Cut(digits, ".")
	bad := dotted && part == ""
	for _, r := range whole + part {
		bad = bad || !digit(r)
	}
	if bad || len(part) > 3 {
		return p.fault(n.at.stat, fmt.Sprintf("p%s is not a percentile", digits), "write p50, p95, p99 or p99.9")
	}
	if len(whole) > 2 {
		hint := "write p50, p95, p99 or p99.9"
		if strings.HasPrefix(whole, "99") && !dotted && len(whole) <= 5 {
			hint = fmt.Sprintf("did you mean p99.%s?", whole[2:])
		} else if strings.Trim(digits, "0.") == "1" {
			hint = "write max for the largest value of the run"
		}
		return p.fault(n.at.stat, fmt.Sprintf("p%s is not between p0 and p100", digits), hint)
	}
	// Dividing integers once gives the nearest float64 to the decimal fraction.
	num, _ := strconv.Atoi(whole + part)
	q := float64(num) / math.Pow10(2+len(part))
	if q <= 0 {
		return p.fault(n.at.stat, "p0 is not a quantile that a sample can bound", "write min for the smallest value of the run")
	}
	n.Quantity.Stat, n.Quantity.P = "quantile", q
	return nil
}

func (p *parser) compare(n *Need) error {
	p.space()
	n.at.compare = p.column()
	op := p.take(func(r rune) bool { return strings.ContainsRune("<>=!≤≥", r) })
	switch op {
	case "<=", "<", ">=", ">":
		n.Compare = Compare(op)
		return nil
	case "":
		return p.fault(n.at.compare, "expected <=, <, >= or >, found "+p.found(), shape)
	case "≤", "=<":
		return p.fault(n.at.compare, fmt.Sprintf("there is no comparison %q", op), "write <=")
	case "≥", "=>":
		return p.fault(n.at.compare, fmt.Sprintf("there is no comparison %q", op), "write >=")
	}
	return p.fault(n.at.compare, fmt.Sprintf("there is no comparison %q", op), "a measured quantity is never exactly equal to a limit; write <=, <, >= or >")
}

func (p *parser) limit(n *Need) error {
	p.space()
	n.at.limit = p.column()
	if p.at < len(p.text) && letter(p.text[p.at]) {
		return p.relative(n)
	}
	negative := p.sign()
	a, err := p.amount("a limit such as 800ms, 2%, 30/s or baseline * 1.05")
	if err != nil {
		return err
	}
	if negative {
		a.value, a.text = -a.value, "-"+a.text
	}
	p.space()
	if p.at < len(p.text) && p.text[p.at] == '*' {
		return p.fault(n.at.limit, "expected baseline first", "write baseline * "+a.text)
	}
	n.Limit = Limit{Value: a.value, text: a.text, dim: a.dim}
	return nil
}

func (p *parser) sign() bool {
	if p.at < len(p.text) && p.text[p.at] == '-' {
		p.at++
		return true
	}
	return false
}

// relative reads a limit that refers to a yardstick.
func (p *parser) relative(n *Need) error {
	if err := p.yardstick(n); err != nil {
		return err
	}
	l := &n.Limit
	base := l.yardstick()
	l.Factor, l.text = 1, base
	p.space()
	if p.at >= len(p.text) {
		return nil
	}
	op, column := p.text[p.at], p.column()
	if l.Windows > 0 {
		return p.fault(column, fmt.Sprintf("expected the end after %s, found %s", base, p.found()), "change the second number to move the fence")
	}
	switch op {
	case '*':
		p.at++
		return p.factor(n)
	case '+', '-':
		p.at++
		p.space()
		column = p.column()
		a, err := p.amount("a quantity such as 20ms or 0.5 points")
		if err != nil {
			return err
		}
		if a.dim == percent {
			times := 1 + a.value
			if op == '-' {
				times = 1 - a.value
			}
			return p.fault(column, fmt.Sprintf("%s %c %s can be read in two ways", base, op, a.text),
				fmt.Sprintf("write %[1]s * %[2]s for a share of the %[1]s, or %[1]s %[3]c %[4]s points for percentage points", base, trim(times, 6), op, strings.TrimSuffix(a.text, "%")))
		}
		l.Value, l.dim = a.value, a.dim
		l.text = fmt.Sprintf("%s %c %s", base, op, a.text)
		if op == '-' {
			l.Value = -a.value
		}
		return nil
	case '/':
		return p.fault(column, "a limit does not divide", fmt.Sprintf("write %s * 0.95", base))
	}
	return p.fault(column, fmt.Sprintf("expected *, + or - after %s, found %s", base, p.found()), fmt.Sprintf("write %s * 1.05 or %s + 0.5 points", base, base))
}

// yardstick reads baseline, reference or previous(10m).
func (p *parser) yardstick(n *Need) error {
	switch word := p.take(nameRune); word {
	case "baseline":
		n.Limit.Baseline = true
	case "reference":
		n.Limit.Reference = true
	case "previous":
		return p.previous(n)
	case "tukey":
		return p.tukey(n)
	default:
		hint := "a limit is a quantity such as 800ms, or baseline * 1.05, or baseline + 0.5 points"
		if near, ok := nearest(strings.ToLower(word), []string{"baseline", "reference", "previous", "tukey"}); ok {
			hint = fmt.Sprintf("did you mean %s?", near)
		}
		return p.fault(n.at.limit, fmt.Sprintf("expected a quantity or baseline, found %q", word), hint)
	}
	return nil
}

// previous reads the time in brackets.
func (p *parser) previous(n *Need) error {
	const hint = "write previous(10m), the candidate itself over the ten minutes before the window"
	p.space()
	if p.at >= len(p.text) || p.text[p.at] != '(' {
		return p.fault(p.column(), "expected ( after previous, found "+p.found(), hint)
	}
	p.at++
	p.space()
	column := p.column()
	a, err := p.amount("a time such as 10m")
	if err != nil {
		return err
	}
	if a.dim != duration || a.value < float64(time.Second) || a.value != math.Trunc(a.value) || a.value > float64(maxWindow) {
		return p.fault(column, fmt.Sprintf("%s is no stretch from 1s to %s", a.text, config.Duration(maxWindow)), hint)
	}
	n.Limit.Previous = time.Duration(a.value)
	p.space()
	if p.at >= len(p.text) || p.text[p.at] != ')' {
		return p.fault(p.column(), "expected ) after "+a.text+", found "+p.found(), hint)
	}
	p.at++
	return nil
}

// maxWindow bounds every stretch of live traffic that a contract can ask for.
const maxWindow = 7 * 24 * time.Hour

func (p *parser) factor(n *Need) error {
	base := n.Limit.yardstick()
	p.space()
	column := p.column()
	a, err := p.amount("a factor such as 1.05")
	if err != nil {
		return err
	}
	if a.dim != bare {
		hint := fmt.Sprintf("write a plain number, as in %s * 1.05", base)
		if a.dim == percent {
			hint = fmt.Sprintf("write %s * %s", base, trim(a.value, 6))
			if a.value < 0.5 {
				hint = fmt.Sprintf("write %s * %s for %s more", base, trim(1+a.value, 6), a.text)
			}
		}
		return p.fault(column, fmt.Sprintf("the factor %s has a unit", a.text), hint)
	}
	if a.value <= 0 {
		return p.fault(column, "the factor must be above 0", fmt.Sprintf("write %s * 1.05", base))
	}
	n.Limit.Factor, n.Limit.text = a.value, base+" * "+a.text
	return nil
}

func (p *parser) end(*Need) error {
	p.space()
	if p.at < len(p.text) {
		return p.fault(p.column(), "expected the end, found "+p.found(), "a need is one comparison; write two clauses, or a group with all or any")
	}
	return nil
}

// check holds the need against the metric that it names.
func (p *parser) check(n *Need) error {
	q := n.Quantity
	m, ok := find(q.Metric)
	if !ok {
		if near, ok := nearest(q.Metric, knownNames()); ok {
			return p.fault(n.at.metric, fmt.Sprintf("there is no metric %q", q.Metric), fmt.Sprintf("did you mean %s?", near))
		}
		return nil
	}
	if fault := n.bind(m); fault != nil {
		return fault
	}
	return nil
}

// bind holds the need against its metric, which for the value of a check is known
// only once the run is, and brings the limit into the metric's unit. A need that
// is bound stays as it is.
func (n *Need) bind(m record.Metric) *NeedError {
	if n.bound {
		return nil
	}
	q := n.Quantity
	unit, what, hint := q.unit(m)
	if what != "" {
		return &NeedError{n.at.stat, what, hint}
	}
	if n.Limit.Baseline && q.fact() {
		return &NeedError{n.at.limit, fmt.Sprintf("a %s has no interval, so it cannot be held against a baseline", q.Stat), "write a share, a rate or a quantile such as p99"}
	}
	if fault := n.checkUnit(unit); fault != nil {
		return fault
	}
	n.bound = true
	return nil
}

// unit returns the unit of the quantity, or what is wrong with it.
func (q Quantity) unit(m record.Metric) (unit record.Unit, what, hint string) {
	values := m.Values != nil && !m.Indicator
	switch {
	case m.Whole && q.Stat == "estimate":
		return m.Unit, "", ""
	case m.Whole:
		return "", fmt.Sprintf("%s is a number of the whole check %s: it has an estimate, not a %s", m.Name, m.Check, q.stat()), "write estimate(" + m.Name + ")"
	case q.Stat == "estimate":
		return "", fmt.Sprintf("%s is not estimated as a whole by a check", m.Name), "write " + usualStat(m) + "(" + m.Name + ")"
	}
	switch q.Stat {
	case "share":
		if m.Indicator {
			return record.Proportion, "", ""
		}
		return "", fmt.Sprintf("share needs a metric that is yes or no for each request; %s is not", m.Name), "such metrics are " + strings.Join(metricNames(func(m record.Metric) bool { return m.Indicator }), ", ")
	case "rate":
		if m.Amount != nil && m.Unit == record.TokenUnit {
			return record.TokensPerSecond, "", ""
		}
		if m.Amount != nil {
			return RequestsPerSecond, "", ""
		}
		return "", fmt.Sprintf("rate needs a metric that adds up over time; %s does not", m.Name), "such metrics are " + strings.Join(metricNames(func(m record.Metric) bool { return m.Amount != nil }), ", ")
	case "count":
		if m.Indicator {
			return record.Requests, "", ""
		}
		if m.Amount != nil {
			return m.Unit, "", ""
		}
		return "", fmt.Sprintf("count needs a metric that can be counted; %s is a value of each request", m.Name), "write a quantile such as " + Quantity{"quantile", 0.95, m.Name}.String()
	}
	switch {
	case values:
		return m.Unit, "", ""
	case m.Indicator:
		return "", fmt.Sprintf("%s is yes or no for each request: it has a share, not a %s", m.Name, q.stat()), "write share(" + m.Name + ")"
	default:
		return "", fmt.Sprintf("%s adds up over time: it has a rate, not a %s", m.Name, q.stat()), "write rate(" + m.Name + ")"
	}
}

// usualStat is a statistic that fits the metric, for hints.
func usualStat(m record.Metric) string {
	switch {
	case m.Indicator:
		return "share"
	case m.Values == nil:
		return "rate"
	case m.Check != "":
		return "mean"
	}
	return "p95"
}

// allowed lists the dimensions in which a limit of each unit is written, and
// an example for the hint.
var allowed = map[record.Unit]struct {
	dims    []dimension
	example string
}{
	record.Nanoseconds:     {[]dimension{duration}, "800ms"},
	record.Proportion:      {[]dimension{percent}, "2%"},
	record.TokenUnit:       {[]dimension{bare, tokens}, "512 tokens"},
	record.TokensPerSecond: {[]dimension{perSecond, tokensPerSecond}, "30/s"},
	record.Requests:        {[]dimension{bare, requests}, "12"},
	RequestsPerSecond:      {[]dimension{perSecond, requestsPerSecond}, "30/s"},
	record.Points:          {[]dimension{bare, points}, "2 points"},
}

func (n *Need) checkUnit(unit record.Unit) *NeedError {
	l := &n.Limit
	if l.relative() && l.Value == 0 {
		return nil
	}
	a := allowed[unit]
	if l.relative() && unit == record.Proportion {
		if l.dim == points {
			l.Value /= 100
			return nil
		}
		return &NeedError{n.at.limit, fmt.Sprintf("%s is a share: a difference of shares is written in points", n.Quantity), fmt.Sprintf("write %s + 0.5 points", l.yardstick())}
	}
	if slices.Contains(a.dims, l.dim) {
		return nil
	}
	hint := "write a limit such as " + a.example
	if l.dim == percent && unit != record.Proportion {
		hint = fmt.Sprintf("write a limit such as %s, or baseline * 1.05 for a limit against the baseline", a.example)
	}
	if l.dim == points && unit == record.Proportion {
		hint = fmt.Sprintf("points are differences; write %s%%", strings.TrimSuffix(strings.TrimSuffix(l.text, " points"), " point"))
	}
	return &NeedError{n.at.limit, fmt.Sprintf("%s is measured in %s, but the limit %s is not", n.Quantity, unitName(unit), l.text), hint}
}

// RequestsPerSecond is the unit of a rate of requests.
const RequestsPerSecond record.Unit = "requests/s"

package contract

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat/screen"
)

// The bounds on tukey(n, k): a quartile of fewer points is noise, a day of windows of
// five minutes is 288, and a fence so far out is never crossed.
const (
	leastFence = 24
	mostFence  = 288
	mostReach  = 10
)

// tukey reads the number of windows and the reach in brackets.
func (p *parser) tukey(n *Need) error {
	const hint = "write tukey(72, 1.5): Q3 + 1.5·IQR of the last 72 windows"
	open := func(want rune, after string) error {
		p.space()
		if p.at >= len(p.text) || p.text[p.at] != want {
			return p.fault(p.column(), fmt.Sprintf("expected %c after %s, found %s", want, after, p.found()), hint)
		}
		p.at++
		p.space()
		return nil
	}
	if err := open('(', "tukey"); err != nil {
		return err
	}
	column := p.column()
	digits := p.take(digit) // the comma behind it would be taken for a separator
	windows, err := strconv.Atoi(digits)
	if err != nil || windows < leastFence || windows > mostFence {
		return p.fault(column, fmt.Sprintf("expected a number of windows from %d to %d, found %s", leastFence, mostFence, cmp.Or(digits, p.found())), hint)
	}
	if err := open(',', digits); err != nil {
		return err
	}
	column = p.column()
	reach, err := p.amount("a multiple of the interquartile range, such as 1.5")
	if err != nil {
		return err
	}
	if reach.dim != bare || !(reach.value > 0 && reach.value <= mostReach) {
		return p.fault(column, fmt.Sprintf("%s is no multiple of the interquartile range above 0 and up to %d", reach.text, mostReach), hint)
	}
	if err := open(')', reach.text); err != nil {
		return err
	}
	n.Limit.Windows, n.Limit.Reach = windows, reach.value
	return nil
}

// onLogs reports whether a fence of the unit is around logarithms: of what is
// positive and has its tail on one side.
func onLogs(u record.Unit) bool { return u != record.Proportion && u != record.Points }

// fenced replaces a limit of tukey(n, k) by the value of the fence: Tukey's, around the
// same statistic in the n windows before this one that tell it, of the last 2n.
// Each is seen as it was seen when it ended, so that what is compared was known to
// the same degree. It says why there is no fence, and thus no answer.
func (x *sight) fenced() string {
	l := x.need.Limit
	switch {
	case l.Windows == 0:
		return ""
	case x.terms.window.For == 0:
		return fmt.Sprintf("no data: %s needs a window of time", l)
	}
	length := x.terms.window.For
	var points []float64
	for i := 1; i <= 2*l.Windows && len(points) < l.Windows; i++ {
		past, then := *x, *x.watcher
		then.at = x.at.Add(-time.Duration(i) * length)
		past.watcher = &then
		r := past.see("candidate", then.at)
		if past.gap(r, "a window before") == "" && !math.IsInf(r.est.Value, 0) {
			points = append(points, r.est.Value)
		}
	}
	if len(points) < l.Windows {
		return fmt.Sprintf("no data: %d of the windows of %s before this one tell %s; the fence takes %d", len(points), config.Duration(length), x.need.Quantity, l.Windows)
	}
	lo, hi, err := screen.Fence{K: l.Reach, Logs: onLogs(x.unit), Least: l.Windows}.Bounds(points)
	if err != nil {
		return "no data: " + err.Error()
	}
	if !x.need.Compare.upper() {
		hi = lo
	}
	x.need.Limit = Limit{Value: hi, text: l.text, dim: l.dim}
	return ""
}

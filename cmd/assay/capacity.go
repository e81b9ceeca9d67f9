package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/report"
)

// capacityFlags make a search or a sweep of a load.
type capacityFlags struct {
	find       bool
	rates      ratesValue
	users      []int
	maxTime    durationValue
	maxRate    rateValue
	probes     int
	confidence float64
}

func (f *capacityFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.find, "find-capacity", false, "search for the highest rate at which every --need holds and the queue is stable; --rate is the first rate, --duration the shortest probe")
	flags.Var(&f.rates, "sweep", "measure these rates one after the other, as 1/s,2/s,4/s")
	flags.IntSliceVar(&f.users, "sweep-concurrency", nil, "measure closed loops of so many users one after the other, as 1,2,4,8")
	flags.Var(&f.maxTime, "max-time", "of a search or sweep: begin no probe that would end later; 30m if left out")
	flags.Var(&f.maxRate, "max-rate", "of a search: the highest rate to try")
	flags.IntVar(&f.probes, "probes", 16, "of a search: most probes, among which the chance of error is shared")
	flags.Float64Var(&f.confidence, "confidence", 95, "of a search: confidence of the bracket as a whole, in percent")
}

func (f *capacityFlags) asked() bool { return f.find || len(f.rates) > 0 || len(f.users) > 0 }

// prepare checks the flags together and gives the load the arrivals that the
// search will change.
func (f *capacityFlags) prepare(cmd *cobra.Command, l *loadFlags) error {
	flags := cmd.Flags()
	if !f.asked() {
		for _, name := range []string{"max-time", "max-rate", "probes", "confidence"} {
			if flags.Changed(name) {
				return fmt.Errorf("--%s is about a search for capacity\n  hint: add --find-capacity, or remove it", name)
			}
		}
		return nil
	}
	sweep := len(f.rates) > 0 || len(f.users) > 0
	first := "1"
	switch {
	case f.find && sweep:
		return errors.New("--find-capacity chooses its rates itself\n  hint: keep it, or the sweep")
	case f.find && len(l.needs) == 0:
		return errors.New("--find-capacity wants to know what must hold\n  hint: add --need 'p99(ttft) <= 800ms' --need 'share(failed) <= 1%'")
	case f.find && l.concurrency > 0:
		return errors.New("--find-capacity searches for a rate, and a closed loop has none\n  hint: remove --concurrency, or write --sweep-concurrency 1,2,4,8")
	case l.requests > 0:
		return errors.New("a probe lasts a time, not a number of requests\n  hint: write --duration 60s instead of --requests")
	case sweep && (flags.Changed("rate") || l.concurrency > 0):
		return errors.New("a sweep gives the rates or the users itself\n  hint: remove --rate and --concurrency")
	case f.maxTime < 0:
		return errors.New("--max-time must not be negative\n  hint: write such as --max-time 20m")
	case f.probes < 3 || f.probes > 100:
		return errors.New("--probes wants 3 to 100\n  hint: leave it out for 16")
	case !(f.confidence >= 80 && f.confidence <= 99.9):
		return errors.New("--confidence wants 80 to 99.9 percent\n  hint: leave it out for 95")
	case f.maxRate.inf:
		return errors.New("--max-rate wants a rate\n  hint: write such as --max-rate 100/s")
	}
	for _, n := range f.users {
		if n < 1 || n > 100_000 {
			return fmt.Errorf("--sweep-concurrency: %d users cannot be\n  hint: write such as --sweep-concurrency 1,2,4,8", n)
		}
	}
	if len(f.rates) > 0 {
		first = strconv.FormatFloat(f.rates[0], 'g', -1, 64)
	} else if len(f.users) > 0 {
		return flags.Set("concurrency", strconv.Itoa(f.users[0]))
	}
	if !flags.Changed("rate") {
		return flags.Set("rate", first)
	}
	return nil
}

// search is what the flags describe.
func (f *capacityFlags) search(l *loadFlags) bench.Search {
	q := bench.Search{
		For: time.Duration(l.duration), MaxTime: time.Duration(f.maxTime), Probes: f.probes,
		Confidence: f.confidence / 100, Rates: f.rates, Users: f.users, MaxRate: float64(f.maxRate.rate),
	}
	if f.find {
		q.Start = float64(l.rate.rate)
	}
	return q
}

// capacity runs a search or a sweep, shows what came of it and returns the exit
// for it.
func (c *console) capacity(ctx context.Context, cmd *cobra.Command, s *bench.Suite, l *loadFlags) error {
	o := l.options(cmd, c)
	done := c.follow(ctx, o.Watch, s, l.quiet)
	d, dir, err := bench.FindCapacity(ctx, s, l.search(l), o)
	done()
	if d == nil {
		if errors.Is(err, errInterrupted) || errors.As(err, new(*bench.TargetError)) {
			return err
		}
		return &exit{exitUnmeasured, err}
	}
	if shown := c.showCapacity(d, l.json); shown != nil {
		err = errors.Join(err, shown)
	}
	if !l.json {
		if _, shown := fmt.Fprintln(c.out, filepath.Join(dir, "report.html")); shown != nil {
			err = errors.Join(err, shown)
		}
	}
	unfit := 0
	for _, p := range d.Probes {
		if p.Outcome == report.Unfit {
			unfit++
		}
	}
	if unfit > 0 {
		c.notice("client unfit in %d of %d probes\n  hint: use an idle machine or more cores, or keep the engine off this machine", unfit, len(d.Probes))
	}
	if errors.Is(err, errInterrupted) {
		c.notice("interrupted: what was found up to probe %d is kept in %s", len(d.Probes), dir)
		return &exit{code: exitInterrupted}
	}
	if err != nil {
		return &exit{exitUnmeasured, err}
	}
	return ofCapacity(d)
}

// ofCapacity is the exit for what a search or sweep found. The points of a sweep
// with needs combine as clauses do: the worst decides.
func ofCapacity(d *report.Capacity) error {
	switch d.Grade {
	case "pass":
		return nil
	case "fail":
		return &exit{code: exitFail}
	case "inconclusive":
		return &exit{code: exitInconclusive}
	}
	sent, failed, outcomes := 0, 0, map[string]int{}
	for _, p := range d.Probes {
		sent, failed = sent+p.Requests, failed+p.Failed
		outcomes[p.Outcome]++
	}
	switch judged := len(d.Needs) > 0; {
	case sent > 0 && float64(failed) > unserved*float64(sent):
		return &exit{code: exitUnmeasured}
	case judged && outcomes[report.Fails] > 0:
		return &exit{code: exitFail}
	case judged && outcomes[report.Holds] < len(d.Probes):
		return &exit{code: exitInconclusive}
	case len(d.Probes) == 0 || outcomes[report.Unfit]+outcomes[report.Stopped]+outcomes[report.Undecided] > 0:
		return &exit{code: exitInconclusive}
	}
	return nil
}

func (c *console) showCapacity(d *report.Capacity, asJSON bool) error {
	if asJSON {
		return report.CapacityJSON(c.out, d)
	}
	width := terminal(c.out)
	if width == 0 {
		width = 120
	}
	return report.CapacityText(c.out, d, report.TextOptions{Width: width, Colour: c.colour(c.out)})
}

// ratesValue is a list of rates.
type ratesValue []float64

// Set reads it.
func (r *ratesValue) Set(s string) error {
	*r = nil
	for part := range strings.SplitSeq(s, ",") {
		var v rateValue
		if err := v.Set(strings.TrimSpace(part)); err != nil {
			return err
		}
		if v.inf {
			return errors.New("wants rates that can be sent\n  hint: write such as --sweep 1/s,2/s,4/s")
		}
		*r = append(*r, float64(v.rate))
	}
	return nil
}

// String returns what Set reads.
func (r *ratesValue) String() string {
	parts := make([]string, len(*r))
	for i, v := range *r {
		parts[i] = strconv.FormatFloat(v, 'g', -1, 64) + "/s"
	}
	return strings.Join(parts, ",")
}

// Type names it in the help.
func (*ratesValue) Type() string { return "rates" }

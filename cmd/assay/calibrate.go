package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/report"
)

// calibrateFlags are those of assay calibrate.
type calibrateFlags struct {
	repeats, batch int
	seed           uint64
	alarms         float64 // per cent
	contract, by   string
	page           string
	json, quiet    bool
	byGiven        bool // --by is on the command line
}

func newCalibrate(c *console) *cobra.Command {
	var f calibrateFlags
	cmd := &cobra.Command{
		Use:   "calibrate SUITE|RUN",
		Short: "Say how often a contract would be wrong on this traffic, before it gates anything",
		Long: `Calibrate judges pairs of identical variants by the contract, and the same pairs
with known differences in the candidate: how often an identical candidate fails (a
false alarm), passes or stays inconclusive, how large a difference must be to be
found, and how many requests it takes. It refuses thresholds that the traffic cannot
support: those that lie inside the noise, and those that too few identical
candidates would pass.

Of a suite, pairs are made on its simulated engine, without the time that a run
takes. Of a recorded run, also of a real endpoint, they are random halves of one
variant: by sessions, or by blocks of time.

It exits with 0 if every threshold is supported, with 1 if one is not, and with 3 if
there are too few repeats to say.`,
		Example: "  assay calibrate suite.yaml\n  assay calibrate runs/ID --by block\n  assay calibrate runs/ID --contract stricter.yaml --page calibration.html",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(fmt.Errorf("assay calibrate wants a suite or a run, got %d arguments\n  hint: %s", len(args), cmd.UseLine()))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return usage(err)
			}
			f.byGiven = cmd.Flags().Changed("by")
			if !cmd.Flags().Changed("seed") {
				f.seed = rand.Uint64() >> 11 // JSON readers keep 53 bits
			}
			d, err := c.calibrate(cmd.Context(), args[0], &f)
			if errors.Is(err, errInterrupted) {
				return err
			}
			if err != nil {
				return usage(err)
			}
			if err := c.showCalibration(d, &f); err != nil {
				return &exit{exitUnmeasured, err}
			}
			return ofGrade(d.Grade)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&f.repeats, "repeats", 200, "identical pairs to judge")
	flags.Uint64Var(&f.seed, "seed", 0, "of all that is random; drawn and printed if left out")
	flags.Float64Var(&f.alarms, "false-alarms", 0, "percent of identical candidates that the whole contract may fail; 100 less its confidence if left out")
	flags.StringVar(&f.contract, "contract", "", "a contract instead of the suite's or the run's: a file, or 'preset NAME'")
	flags.StringVar(&f.by, "by", bench.BySession, "of a run: draw the halves by session, or by block of time")
	flags.IntVar(&f.batch, "batch", 32, "of values of checks: answers whose mean is compared with a threshold")
	flags.StringVar(&f.page, "page", "", "write a page with the power curves to this file")
	flags.BoolVar(&f.json, "json", false, "print one JSON object (assay.calibration/1)")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	return cmd
}

func (f *calibrateFlags) check() error {
	switch {
	case f.repeats < 20 || f.repeats > 100_000:
		return errors.New("--repeats wants 20 to 100,000\n  hint: leave it out for 200")
	case f.alarms < 0 || f.alarms >= 100:
		return errors.New("--false-alarms wants a share in percent, above 0 and below 100\n  hint: write such as --false-alarms 1")
	case f.by != bench.BySession && f.by != bench.ByBlock:
		return fmt.Errorf("--by %s is not known\n  hint: use session or block", f.by)
	case f.batch < 1 || f.batch > 100_000:
		return errors.New("--batch wants 1 to 100,000 answers\n  hint: leave it out for 32")
	}
	return nil
}

// calibrate tries the contract on what the argument names.
func (c *console) calibrate(ctx context.Context, from string, f *calibrateFlags) (*report.Calibration, error) {
	var k *contract.Contract
	if f.contract != "" {
		var err error
		if k, err = readContract(f.contract); err != nil {
			return nil, err
		}
	}
	o := bench.Calibration{Repeats: f.repeats, Seed: f.seed, FalseAlarms: f.alarms / 100, By: f.by, Batch: f.batch}
	if !f.quiet {
		var done func()
		o.Progress, done = c.counting()
		defer done()
	}
	if info, err := os.Stat(from); err == nil && info.IsDir() {
		r, err := bench.Open(from)
		if err != nil {
			return nil, err
		}
		return bench.CalibrateRun(ctx, r, k, o)
	}
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no suite or run %s\n  hint: name a file such as suite.yaml, or the folder of a run such as runs/ID", from)
	}
	if f.byGiven {
		return nil, errors.New("--by is of a recorded run; pairs of a suite are made anew\n  hint: leave it out")
	}
	s, err := bench.Load(from)
	if err != nil {
		return nil, err
	}
	if k != nil {
		s.Contract.Contract = k
	}
	return bench.CalibrateSuite(ctx, s, o)
}

// counting shows how many pairs are done, until the second function is called.
func (c *console) counting() (progress func(done, of int), end func()) {
	width := terminal(c.err)
	last := time.Now()
	return func(done, of int) {
			every := lineEvery
			if width > 0 {
				every = refresh
			}
			if now := time.Now(); now.Sub(last) >= every {
				last = now
				if width > 0 {
					fmt.Fprintf(c.err, "\r\x1b[K  %d of %d pairs", done, of)
				} else {
					c.notice("%d of %d pairs", done, of)
				}
			}
		}, func() {
			if width > 0 {
				fmt.Fprint(c.err, "\r\x1b[K")
			}
		}
}

func (c *console) showCalibration(d *report.Calibration, f *calibrateFlags) error {
	if f.page != "" {
		file, err := os.Create(f.page)
		if err != nil {
			return fmt.Errorf("writing the page: %w", err)
		}
		if err := errors.Join(report.CalibrationHTML(file, d), file.Close()); err != nil {
			return err
		}
	}
	if f.json {
		return report.CalibrationJSON(c.out, d)
	}
	width := terminal(c.out)
	if width == 0 {
		width = 120
	}
	return report.CalibrationText(c.out, d, report.TextOptions{Width: width, Colour: c.colour(c.out)})
}

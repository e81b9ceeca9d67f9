package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/report"
)

// runFlags are what the commands that measure have in common.
type runFlags struct {
	runs  string
	seed  uint64
	salt  string
	json  bool
	quiet bool
	force bool

	registry string      // of run only
	lock     *bench.Held // of run only
}

func (f *runFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.runs, "runs", "runs", "folder of the run directories")
	cmd.Flags().Uint64Var(&f.seed, "seed", 0, "seed of the plan; if left out the suite's, else a drawn one")
	cmd.Flags().StringVar(&f.salt, "salt", "", "salt of the prompts, instead of a fresh one: repeats an earlier run to the byte")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the report as one JSON object (assay.report/1)")
	cmd.Flags().BoolVar(&f.force, "force", false, "send what this host is not known to carry: the client's certificate decides")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
}

func (f *runFlags) options(cmd *cobra.Command, c *console) bench.Options {
	o := bench.Options{Runs: f.runs, Getenv: c.getenv, Watch: new(bench.Watch), Notice: c.notice, Calibrator: c.calibrator(f.runs), Force: f.force, Registry: f.registry, Capabilities: c.capable, Lock: f.lock}
	o.Calibrator.Say = nil
	if cmd.Flags().Changed("seed") {
		o.Seed = &f.seed
	}
	if cmd.Flags().Changed("salt") {
		o.Salt = &f.salt
	}
	return o
}

func newRun(c *console) *cobra.Command {
	var f runFlags
	var resume string
	var early, locked, dry bool
	var lockFile, profile string
	cmd := &cobra.Command{
		Use:   "run SUITE",
		Short: "Run a suite: load, contract, verdict, report",
		Long: `Run measures every variant of the suite on every workload, the variants taking
turns, judges the records by the suite's contract and writes a run directory
with the records, the verdict and report.html.

With --resume it goes on with a run that was interrupted or killed: by the same
plan, in the same directory. Suite, contract and targets must be as they were.

With --stop-early, or stop: early in the suite, it looks at the evidence while the
run goes on, and stops as soon as the contract is decided, at no cost in error rate.

With --locked it refuses to send anything when what the run depends on is not what the
lock file says: see assay lock.

With --profile, or profile: in the suite, checks that need no files are added, with the
clauses that judge them. With --dry-run it only says what it would send and ask.

With --registry, or registry: in the suite, the run is also held against its baseline
in a registry, and added to it: see assay baseline.`,
		Example: "  assay run suite.yaml\n  assay run suite.yaml --json > report.json\n  assay run --resume runs/ID",
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("resume") && len(args) == 0 {
				return nil
			}
			return exactly(1, "the suite file")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("resume") {
				if locked || lockFile != "" {
					return usage(errors.New("--locked does not go with --resume: a run goes on as it was begun, and what differs is noted\n  hint: remove it"))
				}
				return c.resume(cmd, resume, args, &f)
			}
			s, err := bench.Load(args[0])
			if err != nil {
				return usage(err)
			}
			if profile != "" {
				if err := s.AddProfile(profile); err != nil {
					return usage(err)
				}
			}
			if early {
				if err := s.StopEarly(); err != nil {
					return usage(err)
				}
			}
			faults, err := s.Lint()
			if err != nil {
				return usage(err)
			}
			for _, fault := range faults {
				c.notice("warning: %v", fault)
			}
			if locked && lockFile == "" {
				lockFile = lockOf(args[0])
			}
			if lockFile != "" {
				if f.lock, err = bench.ReadLock(lockFile); err != nil {
					return usage(err)
				}
			}
			if dry {
				return c.dryRun(cmd.Context(), s, &f)
			}
			return c.measure(cmd.Context(), cmd, s, &f)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&profile, "profile", "", "add a built-in profile of checks with their clauses, as profile: in the suite does; see assay profiles")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what would be sent and asked, and end")
	cmd.Flags().BoolVar(&locked, "locked", false, "refuse to run when something differs from the lock file, SUITE with .lock instead of .yaml")
	cmd.Flags().StringVar(&lockFile, "lock", "", "the lock file that the run is held to; implies --locked")
	cmd.Flags().StringVar(&f.registry, "registry", "", "compare with the baseline in this registry, and add the run: a file such as runs/baselines.db, postgres://host/database, or env:NAME or file:PATH of one; if left out the suite's")
	cmd.Flags().StringVar(&resume, "resume", "", "go on with the run in this directory, which was interrupted or killed")
	cmd.Flags().BoolVar(&early, "stop-early", false, "stop as soon as the contract is decided, as stop: early in the suite does")
	return cmd
}

// resume goes on with a run, by the suite that is named or else by the run's own.
func (c *console) resume(cmd *cobra.Command, dir string, args []string, f *runFlags) error {
	for _, name := range []string{"seed", "salt", "runs", "stop-early", "profile", "dry-run"} {
		if cmd.Flags().Changed(name) {
			return usage(fmt.Errorf("--%s does not go with --resume: a run goes on with its own\n  hint: remove it", name))
		}
	}
	r, err := bench.Resumable(dir)
	if err != nil {
		return usage(err)
	}
	if len(args) > 0 {
		if r.Suite, err = bench.Load(args[0]); err != nil {
			return usage(err)
		}
	}
	o := f.options(cmd, c)
	done := c.follow(cmd.Context(), o.Watch, r.Suite, f.quiet)
	result, err := r.Resume(cmd.Context(), o)
	done()
	return c.ended(result, err, f)
}

// plannedSchema is what run prints with --dry-run and --json.
const plannedSchema = "assay.planned/1"

// dryRun says what a run would send and ask.
func (c *console) dryRun(ctx context.Context, s *bench.Suite, f *runFlags) error {
	workloads, checks, err := s.Dry(ctx, f.seed)
	if err != nil {
		return err
	}
	if f.json {
		return json.NewEncoder(c.out).Encode(struct {
			Schema    string                  `json:"schema"`
			Workloads []bench.PlannedWorkload `json:"workloads"`
			Checks    check.Forecast          `json:"checks"`
		}{plannedSchema, workloads, checks})
	}
	for _, w := range workloads {
		fmt.Fprintf(c.out, "%s: %s\n", w.Name, w.Text)
	}
	if len(checks.Checks) == 0 {
		return nil
	}
	return c.forecast(checks)
}

// forecast prints what checks would ask, each at each endpoint.
func (c *console) forecast(f check.Forecast) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CHECK\tOF\tREQUESTS\tPROMPT TOKENS\tOUTPUT TOKENS, AT MOST")
	for _, p := range f.Checks {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\n", p.Check, p.Endpoint, p.Requests, p.PromptTokens, p.OutputLimit)
	}
	fmt.Fprintf(w, "\t\t%d\t%d\t%d\n", f.Requests, f.PromptTokens, f.OutputTokens)
	return w.Flush()
}

// measure runs a suite, shows what came of it and returns the exit for it.
func (c *console) measure(ctx context.Context, cmd *cobra.Command, s *bench.Suite, f *runFlags) error {
	o := f.options(cmd, c)
	done := c.follow(ctx, o.Watch, s, f.quiet)
	r, err := bench.Run(ctx, s, o)
	done()
	return c.ended(r, err, f)
}

// ended shows what came of a run and returns the exit for it.
func (c *console) ended(r *bench.Result, err error, f *runFlags) error {
	var changed *bench.ResumeError
	if errors.As(err, &changed) {
		return usage(err)
	}
	if r == nil {
		if errors.Is(err, errInterrupted) {
			return err
		}
		var target *bench.TargetError
		if errors.As(err, &target) {
			return err
		}
		return &exit{exitUnmeasured, err}
	}
	if shown := c.show(r, f.json); shown != nil {
		err = errors.Join(err, shown)
	}
	offered, failed := c.account(r)
	switch {
	case errors.Is(err, errInterrupted):
		c.notice("interrupted: %d records kept in %s\n  hint: go on with assay run --resume %s", len(r.Records), r.Dir, r.Dir)
		return &exit{code: exitInterrupted}
	case err != nil:
		return &exit{exitUnmeasured, err}
	case r.Judged():
		return ofGrade(r.Verdict.Grade)
	case offered > 0 && float64(failed) > unserved*float64(offered):
		return &exit{code: exitUnmeasured}
	case !r.Manifest.Client.Fit:
		return &exit{code: exitInconclusive}
	}
	return nil
}

// unserved is the share of failed requests from which on nothing was measured
// but that nobody serves.
const unserved = 0.99

// account tells on stderr what a reader of the numbers should not have to look
// for: that many requests failed and how, and what helps an unfit client. It
// returns how many measured requests were offered and how many failed.
func (c *console) account(r *bench.Result) (offered, failed int) {
	how := make(map[string]int)
	most := ""
	for i := range r.Records {
		rec := &r.Records[i]
		if rec.Phase != record.Measured {
			continue
		}
		offered++
		if rec.Outcome.Group() != record.GroupFailed {
			continue
		}
		failed++
		what := string(rec.Outcome)
		if rec.Detail != "" {
			what += ": " + rec.Detail
		}
		if how[what]++; how[what] > how[most] {
			most = what
		}
	}
	if failed*50 > offered { // 2 %
		c.notice("%d of %d requests failed, most often by %s", failed, offered, most)
	}
	if !r.Manifest.Client.Fit && r.Manifest.State == bench.StateDone {
		c.notice("hint: the client was unfit to measure: use an idle machine or more cores, lower the rate, or keep the engine off this machine")
	}
	return offered, failed
}

// show prints a result: for a machine as one object, for people as a table and
// the path of the page.
func (c *console) show(r *bench.Result, asJSON bool) error {
	if asJSON {
		return report.JSON(c.out, r.Report)
	}
	width := terminal(c.out)
	if width == 0 {
		width = 120
	}
	if err := report.Text(c.out, r.Report, report.TextOptions{Width: width, Colour: c.colour(c.out)}); err != nil {
		return err
	}
	_, err := fmt.Fprintln(c.out, r.ReportPath())
	return err
}

// exactly demands n arguments and names them when they are missing.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usage(fmt.Errorf("assay %s wants %s, got %d arguments\n  hint: %s", cmd.Name(), what, len(args), use(cmd)))
		}
		return nil
	}
}

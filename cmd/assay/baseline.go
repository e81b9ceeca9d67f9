package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/baseline"
	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
)

const defaultRegistry = "runs/baselines.db"

func newBaseline(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "baseline",
		Short: "What earlier runs measured, and what the next one is held against",
		Long: `The registry of baselines is a file, or a PostgreSQL database, that snapshots of runs
are appended to. A snapshot is a candidate first; the one that was promoted last is
the baseline that the next run of its key is compared with: same workload, model
family, precision, engine and hardware class. The anchor stays where it is, so that a
slow drift is found. Nothing is ever changed or deleted.

assay run SUITE --registry ` + defaultRegistry + ` compares a run, and adds it.`,
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBaselineList(c), newBaselineAdd(c), newBaselinePromote(c), newBaselineRetire(c), newBaselineBacktest(c))
	return cmd
}

// registryFlags say where the registry is, and how to print.
type registryFlags struct {
	at   string
	json bool
}

func (f *registryFlags) add(cmd *cobra.Command, schema string) {
	cmd.Flags().StringVar(&f.at, "registry", defaultRegistry, "the registry: a file, postgres://host/database, or env:NAME or file:PATH of one")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object ("+schema+")")
}

// with opens the registry for as long as do takes.
func (f *registryFlags) with(ctx context.Context, c *console, create bool, do func(*baseline.Registry) error) error {
	at, err := baseline.Locate(f.at, c.getenv)
	if err != nil {
		return usage(err)
	}
	open := baseline.Open
	if create {
		open = baseline.Create
	}
	r, err := open(ctx, at)
	if err != nil {
		return unregistered(err)
	}
	return errors.Join(unregistered(do(r)), r.Close())
}

// unregistered gives an error of the registry its exit code: what the user named is
// usage, a registry that cannot be read is not.
func unregistered(err error) error {
	var own *exit
	var mistake *baseline.Mistake
	switch {
	case err == nil || errors.As(err, &own):
		return err
	case errors.As(err, &mistake) || errors.Is(err, baseline.ErrNone):
		return usage(err)
	}
	return &exit{exitUnmeasured, err}
}

// listed is what list --json prints.
type listed struct {
	Schema    string           `json:"schema"`
	Registry  string           `json:"registry"`
	Snapshots []baseline.Entry `json:"snapshots"`
}

const registrySchema = "assay.registry/1"

func newBaselineList(c *console) *cobra.Command {
	var f registryFlags
	cmd := &cobra.Command{
		Use:     "list [SNAPSHOT]",
		Short:   "List the snapshots, or show one with its figures and events",
		Long:    "List shows every snapshot of the registry, the quarantined ones too. SNAPSHOT is an\nid, the beginning of one, or the id of a run.",
		Example: "  assay baseline list\n  assay baseline list 3f2a --registry env:REGISTRY --json",
		Args:    atMost(1, "a snapshot"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd.Context(), c, false, func(r *baseline.Registry) error {
				out := listed{registrySchema, r.String(), []baseline.Entry{}}
				if len(args) > 0 {
					e, err := r.Find(cmd.Context(), args[0])
					if err != nil {
						return err
					}
					out.Snapshots = append(out.Snapshots, e)
				} else {
					all, err := r.List(cmd.Context())
					if err != nil {
						return err
					}
					out.Snapshots = append(out.Snapshots, all...)
				}
				switch {
				case f.json:
					return json.NewEncoder(c.out).Encode(out)
				case len(args) > 0:
					return c.snapshot(out.Snapshots[0])
				}
				return c.snapshots(out.Snapshots)
			})
		},
	}
	f.add(cmd, registrySchema)
	return cmd
}

// standingText says where a snapshot stands, in a word or three.
func standingText(e baseline.Entry) string {
	words := []string{string(e.State)}
	if e.Quarantine != "" {
		words = []string{"quarantined"}
	}
	if e.Baseline {
		words = append(words, "baseline")
	}
	if e.Anchor {
		words = append(words, "anchor")
	}
	return strings.Join(words, ", ")
}

func (c *console) snapshots(all []baseline.Entry) error {
	if len(all) == 0 {
		c.notice("the registry is empty\n  hint: assay baseline add RUN")
		return nil
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SNAPSHOT\tSTATE\tTAKEN\tRUN\tVARIANT\tKEY")
	for _, e := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", e.ID, standingText(e), e.Taken.Format("2006-01-02 15:04"), e.Run, e.Variant, e.Key)
	}
	return w.Flush()
}

// snapshot shows one with all that the registry knows of it.
func (c *console) snapshot(e baseline.Entry) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	row := func(name, text string) { fmt.Fprintf(w, "%s\t%s\n", name, text) }
	row("snapshot", e.ID)
	row("state", standingText(e))
	if e.Quarantine != "" {
		row("quarantined", e.Quarantine)
	}
	row("key", e.Key.String())
	row("run", e.Run+", variant "+e.Variant+", in "+e.Path)
	row("taken", e.Taken.Format(time.RFC3339))
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nFIGURE\tWORKLOAD\tVALUE\t90 % INTERVAL\tUNIT")
	for _, f := range e.Figures {
		l := f.Levels[0]
		by, unit := 1.0, string(f.Unit)
		if f.Unit == record.Nanoseconds {
			by, unit = 1e-6, "ms"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t[%s, %s]\t%s\n", f.Quantity, f.Workload, known(l.Value*by), known(l.Lo*by), known(l.Hi*by), unit)
	}
	fmt.Fprintln(w, "\nEVENT\tAT\tBY\tREASON")
	for _, v := range e.Events {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", v.What, v.At.Format(time.RFC3339), v.Who, v.Reason)
	}
	return w.Flush()
}

// known writes a figure; one that no run could tell, or a bound that is none, is a dash.
func known(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	return strconv.FormatFloat(v, 'g', 5, 64)
}

// changed is what add, promote and retire print with --json.
type changedJSON struct {
	Schema   string         `json:"schema"`
	Registry string         `json:"registry"`
	Snapshot baseline.Entry `json:"snapshot"`
	Added    *bool          `json:"added,omitempty"`   // of add: false if it was there already
	Retired  []string       `json:"retired,omitempty"` // of promote: those that left the set
}

const changeSchema = "assay.registry-change/1"

// tell prints what became of a snapshot.
func (c *console) tell(f registryFlags, r *baseline.Registry, out changedJSON, text string) error {
	if f.json {
		out.Schema, out.Registry = changeSchema, r.String()
		return json.NewEncoder(c.out).Encode(out)
	}
	_, err := fmt.Fprintln(c.out, text)
	return err
}

func newBaselineAdd(c *console) *cobra.Command {
	var f registryFlags
	var about bench.About
	var by, reason string
	cmd := &cobra.Command{
		Use:   "add RUN[:VARIANT]",
		Short: "Add a snapshot of a run, as a candidate",
		Long: `Add takes a snapshot of one variant of a run, the candidate unless told otherwise,
and appends it to the registry, which is made if there is none. A run that failed,
that proves nothing or that is inconclusive is quarantined: kept, shown, never used.

What the run does not know, flags say: --family, --precision, --engine, --hardware.
Without a hardware class nothing is added, since runs of different hardware are never
compared.`,
		Example: "  assay baseline add runs/ID --hardware 'h100-sxm x1' --precision fp8",
		Args:    exactly(1, "a run directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			run, variant, err := side(args[0])
			if err != nil {
				return usage(err)
			}
			s, err := run.Snapshot(variant, about)
			if err != nil {
				return usage(err)
			}
			return f.with(cmd.Context(), c, true, func(r *baseline.Registry) error {
				added, err := r.Add(cmd.Context(), s, baseline.Change{Who: by, At: time.Now(), Reason: reason})
				if err != nil {
					return err
				}
				e, err := r.Find(cmd.Context(), s.ID)
				if err != nil {
					return err
				}
				text := fmt.Sprintf("added %s of %s: %s", e.ID, e.Key, standingText(e))
				switch {
				case !added:
					text = fmt.Sprintf("%s is there already: %s", e.ID, standingText(e))
				case e.Quarantine != "":
					c.notice("quarantined: %s", e.Quarantine)
				case e.State == baseline.Candidate:
					c.notice("hint: make it the baseline with assay baseline promote %s --reason \"…\"", e.ID)
				}
				return c.tell(f, r, changedJSON{Snapshot: e, Added: &added}, text)
			})
		},
	}
	f.add(cmd, changeSchema)
	cmd.Flags().StringVar(&about.Family, "family", "", "family of the model; if left out the suite's, else the model's name")
	cmd.Flags().StringVar(&about.Precision, "precision", "", "precision of the weights, such as fp8; if left out the suite's")
	cmd.Flags().StringVar(&about.Engine, "engine", "", "engine with its version, such as 'vllm 0.9.2'; if left out the suite's, else what its metrics say")
	cmd.Flags().StringVar(&about.Hardware, "hardware", "", "class of the machine that serves, such as 'h100-sxm x1'; if left out the suite's")
	cmd.Flags().StringVar(&by, "by", bench.Who(c.getenv), "who adds it")
	cmd.Flags().StringVar(&reason, "reason", "assay baseline add", "why")
	return cmd
}

func newBaselinePromote(c *console) *cobra.Command {
	var f registryFlags
	var ch baseline.Change
	var demand string
	cmd := &cobra.Command{
		Use:   "promote SNAPSHOT --reason TEXT",
		Short: "Make a candidate the baseline of its key",
		Long: `Promote makes a candidate the baseline that the next runs of its key are compared
with. The first of a key becomes its anchor, too; --anchor moves the anchor. The ones
promoted before stay active, so that a bad baseline can be retired and the one before
it holds again; the oldest beyond --keep are retired. Quarantined snapshots are never
promoted. With --demand neither is one without the figures of a profile's checks.`,
		Example: "  assay baseline promote 3f2a --reason 'release 1.4, accepted by the team'",
		Args:    exactly(1, "a snapshot"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ch.At = time.Now()
			if demand != "" {
				if _, err := bench.ProfileText(demand); err != nil {
					return usage(err)
				}
				ch.Demand = bench.ProfileChecks(demand)
			}
			return f.with(cmd.Context(), c, false, func(r *baseline.Registry) error {
				e, retired, err := r.Promote(cmd.Context(), args[0], ch)
				if err != nil {
					return err
				}
				if len(retired) > 0 {
					c.notice("retired %s, which others followed", strings.Join(retired, ", "))
				}
				return c.tell(f, r, changedJSON{Snapshot: e, Retired: retired}, fmt.Sprintf("promoted %s of %s: %s", e.ID, e.Key, standingText(e)))
			})
		},
	}
	f.add(cmd, changeSchema)
	cmd.Flags().StringVar(&ch.Reason, "reason", "", "why, for those who ask later; required")
	cmd.Flags().StringVar(&ch.Who, "by", bench.Who(c.getenv), "who promotes it")
	cmd.Flags().BoolVar(&ch.Anchor, "anchor", false, "make it the anchor of its key, too")
	cmd.Flags().StringVar(&demand, "demand", "", "a profile, such as version, whose checks the snapshot must have figures of; see assay profiles")
	cmd.Flags().IntVar(&ch.Keep, "keep", baseline.DefaultKeep, "how many stay active beside the anchor; at least 3")
	return cmd
}

func newBaselineRetire(c *console) *cobra.Command {
	var f registryFlags
	var ch baseline.Change
	cmd := &cobra.Command{
		Use:     "retire SNAPSHOT --reason TEXT",
		Short:   "Take a snapshot out of use; the one promoted before it holds again",
		Example: "  assay baseline retire 3f2a --reason 'measured on a warm cache'",
		Args:    exactly(1, "a snapshot"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ch.At = time.Now()
			return f.with(cmd.Context(), c, false, func(r *baseline.Registry) error {
				e, err := r.Retire(cmd.Context(), args[0], ch)
				if err != nil {
					return err
				}
				return c.tell(f, r, changedJSON{Snapshot: e}, fmt.Sprintf("retired %s of %s", e.ID, e.Key))
			})
		},
	}
	f.add(cmd, changeSchema)
	cmd.Flags().StringVar(&ch.Reason, "reason", "", "why, for those who ask later; required")
	cmd.Flags().StringVar(&ch.Who, "by", bench.Who(c.getenv), "who retires it")
	return cmd
}

func newBaselineBacktest(c *console) *cobra.Command {
	var f registryFlags
	var suite string
	var gates, marks []string
	cmd := &cobra.Command{
		Use:   "backtest",
		Short: "Replay the registry's history through gates and fences",
		Long: `Backtest holds every sound snapshot against what was the baseline and the anchor of
its key when it was added, and against the fence of those before it: how often each
would have fired, and how often on snapshots that were good enough to be promoted,
with the exact 95 % interval. The gates are those of --suite, or of --gate and --mark,
or the usual ones.`,
		Example: "  assay baseline backtest\n  assay baseline backtest --gate 'rate(output_tokens) >= reference * 0.95' --mark 'p99(ttft) <= reference + 40ms'",
		Args:    atMost(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := backtestPolicy(suite, gates, marks)
			if err != nil {
				return usage(err)
			}
			return f.with(cmd.Context(), c, false, func(r *baseline.Registry) error {
				b, err := r.Backtest(cmd.Context(), p)
				switch {
				case err != nil:
					return err
				case f.json:
					return json.NewEncoder(c.out).Encode(b)
				}
				return c.replayed(b)
			})
		},
	}
	f.add(cmd, baseline.BacktestSchema)
	cmd.Flags().StringVar(&suite, "suite", "", "take the gates, window and fence of this suite's registry:")
	cmd.Flags().StringArrayVar(&gates, "gate", nil, "a gate that blocks, such as 'rate(output_tokens) >= reference * 0.88'; may be given again")
	cmd.Flags().StringArrayVar(&marks, "mark", nil, "a gate that only marks; may be given again")
	cmd.MarkFlagsMutuallyExclusive("suite", "gate")
	cmd.MarkFlagsMutuallyExclusive("suite", "mark")
	return cmd
}

// backtestPolicy reads the gates that flags ask for.
func backtestPolicy(file string, gates, marks []string) (baseline.Policy, error) {
	if file != "" {
		s, err := bench.Load(file)
		if err != nil {
			return baseline.Policy{}, err
		}
		if s.Registry == nil {
			return baseline.Policy{}, fmt.Errorf("the suite %s has no registry\n  hint: add registry: {at: %s}", file, defaultRegistry)
		}
		return *s.Registry, nil
	}
	var p baseline.Policy
	for i, texts := range [][]string{gates, marks} {
		for _, text := range texts {
			n, err := contract.ParseNeed(text)
			if err != nil {
				return p, fmt.Errorf("reading %q: %w", text, err)
			}
			if !n.Limit.Reference {
				return p, fmt.Errorf("%q compares with nothing registered\n  hint: write a limit such as reference * 0.88", text)
			}
			g := baseline.Gate{ID: n.Quantity.String(), Need: n}
			if i == 1 {
				g.Mark = "marked"
			}
			p.Gates = append(p.Gates, g)
		}
	}
	return p, nil
}

// replayed prints a row a gate and reference, and a row a fence.
func (c *console) replayed(b baseline.Backtested) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "GATE\tAS\tRUNS\tFIRED\tUNDECIDED\tFALSE ALARMS\tNOMINAL")
	for _, r := range b.Rows {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\t%.1f %%\n", r.ID, r.As, r.Tally.Runs, r.Tally.Fired, r.Tally.Undecided, shareText(r.Tally.False), 100*r.Nominal)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if b.Quarantined > 0 {
		c.notice("%d of %d snapshots are quarantined, and not replayed", b.Quarantined, b.Snapshots)
	}
	return nil
}

// atMost allows up to n arguments.
func atMost(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usage(fmt.Errorf("%s wants %s at most, got %d arguments\n  hint: %s", cmd.CommandPath(), what, len(args), cmd.UseLine()))
		}
		return nil
	}
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
)

func newBacktest(c *console) *cobra.Command {
	var asJSON bool
	var good, bad []string
	every := 30 * time.Second
	cmd := &cobra.Command{
		Use:   "backtest CONTRACT [RUN...]",
		Short: "Hold a contract against recorded runs",
		Long: `Backtest judges recorded runs by a contract, whatever contract they were judged by:
how often each clause would have failed, and each live rule acted. Of runs that
are known to be good it tells the false alarms, of bad ones the share that was
found, both with the exact 95 % interval.

CONTRACT is a file, or 'preset NAME' in quotes. It exits with 0 whatever the grades are.`,
		Example: "  assay contract backtest contract.yaml runs/*\n  assay contract backtest 'preset production-17' runs/*\n  assay contract backtest contract.yaml --good runs/A --good runs/B --bad runs/C",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args)+len(good)+len(bad) < 2 {
				return usage(fmt.Errorf("assay contract backtest wants a contract and runs\n  hint: %s", use(cmd)))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			k, err := readContract(args[0])
			if err != nil {
				return usage(err)
			}
			if every < time.Second {
				return usage(fmt.Errorf("--every is %s\n  hint: write a second or more, such as --every 30s", config.Duration(every)))
			}
			for _, name := range good {
				if slices.Contains(bad, name) {
					return usage(fmt.Errorf("the run %s is good and bad\n  hint: name it once", name))
				}
			}
			runs, err := c.recorded(map[contract.Label][]string{contract.Unlabelled: args[1:], contract.Good: good, contract.Bad: bad})
			if err != nil {
				return usage(err)
			}
			if len(runs) == 0 {
				return usage(errors.New("there is no run to judge\n  hint: name run directories, such as runs/ID"))
			}
			b := contract.Backtest(k, runs, every)
			if asJSON {
				return json.NewEncoder(c.out).Encode(struct {
					Schema string `json:"schema"`
					contract.Backtested
				}{"assay.backtest/1", b})
			}
			return c.backtested(b)
		},
	}
	cmd.Flags().StringArrayVar(&good, "good", nil, "a run in which nothing was wrong; may be given again")
	cmd.Flags().StringArrayVar(&bad, "bad", nil, "a run in which something was wrong; may be given again")
	cmd.Flags().DurationVar(&every, "every", every, "how often live rules look")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object (assay.backtest/1)")
	return cmd
}

// recorded opens runs, each once: a run that is labelled may also stand among all.
// A search, which lies among the runs by default, is named and left out.
func (c *console) recorded(dirs map[contract.Label][]string) ([]contract.Recorded, error) {
	var out []contract.Recorded
	for _, label := range []contract.Label{contract.Good, contract.Bad, contract.Unlabelled} {
		for _, dir := range dirs[label] {
			if slices.ContainsFunc(out, func(r contract.Recorded) bool { return r.Name == dir }) {
				continue
			}
			if label == contract.Unlabelled && bench.IsCapacity(dir) {
				c.notice("%s is a search for capacity or a sweep, and not counted; its runs are in %s", dir, filepath.Join(dir, "probes"))
				continue
			}
			r, err := bench.Open(dir)
			if err != nil {
				return nil, err
			}
			out = append(out, contract.Recorded{Name: dir, Label: label, Evidence: r.Evidence()})
		}
	}
	return out, nil
}

// backtested prints a row a clause.
func (c *console) backtested(b contract.Backtested) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CLAUSE\tAS\tRUNS\tDECIDED\tFIRED\tFALSE ALARMS\tFOUND")
	var open []string
	row := func(id, as string, t contract.Tally) {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\t%s\n", id, as, t.Runs, t.Decided, t.Fired, shareText(t.False), shareText(t.Found))
		if t.Undecided > 0 {
			open = append(open, fmt.Sprintf("%s, as a %s, is undecided in %d of %d, as in %s", id, as, t.Undecided, t.Runs, t.Because))
		}
	}
	for _, h := range b.Clauses {
		row(h.ID, "gate", h.Gate)
		if h.Rule != nil {
			row(h.ID, "rule", *h.Rule)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(open) > 0 {
		fmt.Fprintf(c.out, "\nNot decided is no pass and no false alarm: both shares are of the decided runs.\n")
	}
	for _, line := range open {
		fmt.Fprintln(c.out, line)
	}
	for _, r := range b.Runs {
		if len(r.Unfit) > 0 {
			c.notice("%s proves nothing, and no clause counts it: %s", r.Run, r.Unfit[0])
		}
	}
	return nil
}

// shareText writes a share with its interval in per cent.
func shareText(f *contract.Figure) string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f %% [%.0f, %.0f] of %d", 100*f.Value, 100*f.Lo, 100*f.Hi, f.N)
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
)

func newContract(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "contract",
		Short: "Work on contracts",
		Args:  knownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(newLint(c), newContractTest(c), newBacktest(c), newPresets(c))
	return cmd
}

func newLint(c *console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "lint FILE",
		Short: "Refuse clauses that cannot be decided",
		Long: `Lint reads a contract, or a suite with its contract, and refuses what cannot be
decided: a quantile with too few requests planned, a metric that nothing
measures, a baseline that the suite does not have. What depends on the plan is
checked only when FILE is a suite; then it also says how often each comparison is
wrong at most, for a candidate exactly at its limit, and what it finds. What can be
decided and is bad advice all the same is told on standard error.`,
		Example: "  assay contract lint suite.yaml\n  assay contract lint contract.yaml",
		Args:    exactly(1, "a contract or a suite"),
		RunE: func(_ *cobra.Command, args []string) error {
			k, faults, outlook, err := lint(args[0])
			if err != nil {
				return usage(err)
			}
			advice := contract.Advise(k)
			for _, a := range advice {
				fmt.Fprintf(c.err, "assay: note: %v\n", a)
			}
			if asJSON {
				if err := json.NewEncoder(c.out).Encode(struct {
					Schema  string             `json:"schema"`
					File    string             `json:"file"`
					Faults  []config.Fault     `json:"faults"`
					Outlook []contract.Outlook `json:"outlook"`
					Advice  []config.Fault     `json:"advice"`
				}{"assay.lint/1", args[0], append([]config.Fault{}, faults...), append([]contract.Outlook{}, outlook...), append([]config.Fault{}, advice...)}); err != nil {
					return err
				}
			}
			if len(faults) > 0 {
				if asJSON {
					return &exit{code: exitUsage}
				}
				return usage(config.Faults(faults))
			}
			if !asJSON {
				fmt.Fprintf(c.out, "%s: every clause can be decided\n", args[0])
				return c.outlook(outlook)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object (assay.lint/1)")
	return cmd
}

// outlook says what the plan will be able to tell, a row a comparison.
func (c *console) outlook(outlook []contract.Outlook) error {
	if len(outlook) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CLAUSE\tWORKLOAD\tREQUESTS\tWRONG FAIL\tWRONG PASS\tFOUND IN 4 OF 5 RUNS")
	for _, o := range outlook {
		fmt.Fprintf(w, "%s\t%s\t%d\t%.3g %%\t%.3g %%\t%s\n", o.ID, o.Workload, o.Requests, 100*o.WrongFail, 100*o.WrongPass, o.Detects)
	}
	return w.Flush()
}

// lint reads a file as a suite if it has variants, else as a contract.
func lint(file string) (*contract.Contract, []config.Fault, []contract.Outlook, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("reading the contract: %w\n  hint: name a contract or a suite, such as contract.yaml", err)
	}
	if keys := config.Keys(data); slices.Contains(keys, "variants") || slices.Contains(keys, "workloads") {
		s, err := bench.Load(file)
		if err != nil {
			return nil, nil, nil, err
		}
		if s.Contract.Contract == nil {
			return nil, nil, nil, errors.New("the suite has no contract\n  hint: add contract: contract.yaml")
		}
		faults, err := s.Lint()
		if err != nil || len(faults) > 0 {
			return s.Contract.Contract, faults, nil, err
		}
		outlook, err := s.Outlook()
		return s.Contract.Contract, nil, outlook, err
	}
	k, err := readContract(file)
	if err != nil {
		return nil, nil, nil, err
	}
	return k, contract.Lint(k, nil), nil, nil
}

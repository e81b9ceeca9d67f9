package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

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
checked only when FILE is a suite.`,
		Example: "  assay contract lint suite.yaml\n  assay contract lint contract.yaml",
		Args:    exactly(1, "a contract or a suite"),
		RunE: func(_ *cobra.Command, args []string) error {
			faults, err := lint(args[0])
			if err != nil {
				return usage(err)
			}
			if asJSON {
				if err := json.NewEncoder(c.out).Encode(struct {
					Schema string         `json:"schema"`
					File   string         `json:"file"`
					Faults []config.Fault `json:"faults"`
				}{"assay.lint/1", args[0], append([]config.Fault{}, faults...)}); err != nil {
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
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object (assay.lint/1)")
	return cmd
}

// lint reads a file as a suite if it has variants, else as a contract.
func lint(file string) ([]config.Fault, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the contract: %w", err)
	}
	if keys := config.Keys(data); slices.Contains(keys, "variants") || slices.Contains(keys, "workloads") {
		s, err := bench.Load(file)
		if err != nil {
			return nil, err
		}
		if s.Contract.Contract == nil {
			return nil, errors.New("the suite has no contract\n  hint: add contract: contract.yaml")
		}
		return s.Lint()
	}
	k, err := readContract(file)
	if err != nil {
		return nil, err
	}
	return contract.Lint(k, nil), nil
}

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
)

func newContractTest(c *console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test FILE...",
		Short: "Hold a contract against evidence that is written down",
		Long: `Test reads files of evidence and of what a contract is to make of it: the grade of
each clause, and every decision of a live rule. It makes the evidence without
chance, sends nothing, and says what differs from what is expected.

Exit codes: 0 all as expected, 1 something differs, 2 a file is faulty.`,
		Example: "  assay contract test examples/endpoint/test.yaml",
		Args:    some("a test file"),
		RunE: func(_ *cobra.Command, args []string) error {
			failed := false
			for _, file := range args {
				outcomes, err := testContract(file)
				if err != nil {
					return usage(err)
				}
				for _, o := range outcomes {
					failed = failed || !o.Pass
				}
				if asJSON {
					err = json.NewEncoder(c.out).Encode(struct {
						Schema string             `json:"schema"`
						File   string             `json:"file"`
						Cases  []contract.Outcome `json:"cases"`
					}{"assay.contract-test/1", file, outcomes})
				} else {
					err = c.outcomes(file, outcomes)
				}
				if err != nil {
					return err
				}
			}
			if failed {
				return &exit{code: exitFail}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a file (assay.contract-test/1)")
	return cmd
}

// outcomes prints a line a case, and below it what differs.
func (c *console) outcomes(file string, outcomes []contract.Outcome) error {
	for _, o := range outcomes {
		word := "ok"
		if !o.Pass {
			word = "DIFFERS"
		}
		if _, err := fmt.Fprintf(c.out, "%-8s %s: %s\n", word, file, o.Case); err != nil {
			return err
		}
		for _, p := range o.Problems {
			if _, err := fmt.Fprintf(c.out, "         %s\n", p); err != nil {
				return err
			}
		}
	}
	return nil
}

// some demands at least one argument, and names it when it is missing.
func some(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(fmt.Errorf("assay contract %s wants %s\n  hint: %s", cmd.Name(), what, use(cmd)))
		}
		return nil
	}
}

// testContract runs the cases of one file.
func testContract(file string) ([]contract.Outcome, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the test: %w\n  hint: name a test file, such as examples/live/test.yaml", err)
	}
	var t contract.Test
	if err := config.Decode(file, data, &t); err != nil {
		return nil, err
	}
	k, err := subject(t.Contract, filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	return t.Run(k), nil
}

// subject reads the contract that a test is about; dir is the folder of its file.
func subject(s contract.Subject, dir string) (*contract.Contract, error) {
	switch {
	case s.Preset != "":
		return contract.LoadPreset(s.Preset)
	case s.File != "":
		return readContract(filepath.Join(dir, s.File))
	}
	return s.InPlace, refer(s.InPlace, dir)
}

// readContract reads a contract, a preset as "preset NAME", and the values that it
// refers to.
func readContract(file string) (*contract.Contract, error) {
	if name, ok := strings.CutPrefix(file, "preset "); ok {
		return contract.LoadPreset(name)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		if file == "preset" {
			return nil, fmt.Errorf("reading the contract: %w\n  hint: a built-in one is named in one argument: 'preset production-17'", err)
		}
		return nil, fmt.Errorf("reading the contract: %w\n  hint: name a file such as contract.yaml, or 'preset production-17'", err)
	}
	k := new(contract.Contract)
	if err := config.Decode(file, data, k); err != nil {
		return nil, err
	}
	return k, refer(k, filepath.Dir(file))
}

// refer reads the registered values of a contract, from its folder or below.
func refer(k *contract.Contract, dir string) error {
	return k.Refer(func(name string) ([]byte, error) {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		return root.ReadFile(filepath.FromSlash(name))
	})
}

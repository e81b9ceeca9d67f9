package main

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/scenario"
)

func newVersion(c *console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return json.NewEncoder(c.out).Encode(map[string]string{
					"schema": "assay.version/1", "version": bench.Version(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
				})
			}
			_, err := fmt.Fprintf(c.out, "assay %s (%s, %s/%s)\n", bench.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object (assay.version/1)")
	return cmd
}

func newSchema(c *console) *cobra.Command {
	return &cobra.Command{
		Use:       "schema suite|contract|contract-test|scenarios",
		Short:     "Print the JSON Schema of a file, for editors",
		ValidArgs: []string{"suite", "contract", "contract-test", "scenarios"},
		Args:      exactly(1, "suite, contract, contract-test or scenarios"),
		RunE: func(_ *cobra.Command, args []string) error {
			var schema []byte
			var err error
			switch args[0] {
			case "suite":
				schema, err = bench.Schema()
			case "contract":
				schema, err = config.Schema(contract.Contract{}, "https://assay-llm.github.io/schema/contract-1.json", "Assay contract, version 1")
			case "contract-test":
				schema, err = config.Schema(contract.Test{}, "https://assay-llm.github.io/schema/contract-test-1.json", "Test of an Assay contract, version 1")
			case "scenarios":
				schema, err = config.Schema(scenario.File{}, "https://assay-llm.github.io/schema/scenarios-1.json", "Assay scenarios, version 1")
			default:
				return usage(fmt.Errorf("there is no schema of %q\n  hint: use suite, contract, contract-test or scenarios", args[0]))
			}
			if err != nil {
				return err
			}
			_, err = c.out.Write(schema)
			return err
		},
	}
}

func newMend(c *console) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "mend RUN",
		Short: "Repair and seal the records of a run that was killed",
		Long: `Mend cuts the torn tail of a run's journal, keeps a copy of what it cut, seals the
records into records.parquet, and says exactly what was kept and what was cut.
A run that ended by itself needs no mending, and is left alone.`,
		Args: exactly(1, "a run directory"),
		RunE: func(_ *cobra.Command, args []string) error {
			done, err := bench.Mend(args[0])
			if err != nil {
				return usage(err)
			}
			if asJSON {
				return json.NewEncoder(c.out).Encode(struct {
					Schema  string        `json:"schema"`
					Torn    bool          `json:"torn"`
					Sealed  bool          `json:"sealed"`
					Records int64         `json:"records"`
					Repair  record.Repair `json:"repair"`
				}{"assay.mend/1", done.Repair.Torn(), done.Sealed, done.Records, done.Repair})
			}
			switch {
			case done.Repair.Torn():
				_, err = fmt.Fprintf(c.out, "sealed %d records; %s\n", done.Records, done.Repair)
			case done.Sealed:
				_, err = fmt.Fprintf(c.out, "sealed %d records; nothing was cut\n", done.Records)
			default:
				_, err = fmt.Fprintf(c.out, "%d records, sealed already; there was nothing to mend\n", done.Records)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object (assay.mend/1)")
	return cmd
}

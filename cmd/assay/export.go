package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/interop"
)

func newExport(c *console) *cobra.Command {
	var as, output string
	var s interop.Selection
	cmd := &cobra.Command{
		Use:   "export RUN --as vllm|aiperf|guidellm",
		Short: "Write a run in the shape of another load tool, by that tool's definitions",
		Long: `Export reads the numbers of vLLM, AIPerf or guidellm off the event log of a run,
each by the definitions of that tool, and writes vLLM's detailed result, AIPerf's
profile_export.jsonl or guidellm's JSON. Prompts and answers are not in a run.`,
		Example: "  assay export runs/ID --as vllm -o result.json\n  assay export runs/ID --as aiperf --variant baseline > profile_export.jsonl",
		Args:    exactly(1, "a run directory"),
		RunE: func(_ *cobra.Command, args []string) error {
			if as == "" {
				return usage(errors.New("no shape is named\n  hint: add --as vllm, --as aiperf or --as guidellm"))
			}
			if !slices.Contains(interop.Exports(), interop.Format(as)) {
				return usage(fmt.Errorf("--as %q is not known\n  hint: use vllm, aiperf or guidellm", as))
			}
			m, records, repair, err := openRun(args[0])
			if err != nil {
				return usage(err)
			}
			if repair.Torn() {
				c.notice("the journal is torn: %s", repair)
			}
			var b bytes.Buffer
			done, err := interop.Export(&b, interop.Format(as), m, records, s)
			if err != nil {
				return usage(err)
			}
			c.notice("%d requests of %s written as %s, %d left out", done.Rows, done.Variant, as, done.LeftOut)
			for _, note := range done.Notes {
				c.notice("note: %s", note)
			}
			return usage(c.deliver(output, b.Bytes()))
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "vllm, aiperf or guidellm")
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this file instead of stdout")
	cmd.Flags().StringVar(&s.Variant, "variant", "", "who was measured (default the candidate, or the last)")
	cmd.Flags().StringVar(&s.Workload, "workload", "", "which workload (default all)")
	return cmd
}

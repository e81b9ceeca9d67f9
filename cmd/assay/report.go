package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/report"
)

func newReport(c *console) *cobra.Command {
	var format, output string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "report RUN",
		Short: "Show a run again: judge its records anew and print the report",
		Long: `Report reads a run directory, writes nothing in it, judges its records anew and
prints the report as text, json, markdown (for a pull request), junit or html.
The exit code is that of the verdict.`,
		Example: "  assay report runs/ID\n  assay report runs/ID --format junit -o junit.xml",
		Args:    exactly(1, "a run directory"),
		RunE: func(_ *cobra.Command, args []string) error {
			if asJSON {
				format = "json"
			}
			r, err := bench.Open(args[0])
			if err != nil {
				return usage(err)
			}
			var b bytes.Buffer
			if err := c.render(&b, r, format, output == ""); err != nil {
				return err
			}
			if err := c.deliver(output, b.Bytes()); err != nil {
				return usage(err)
			}
			if !r.Judged() {
				return nil
			}
			return ofGrade(r.Verdict.Grade)
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text, json, markdown, junit or html")
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this file instead of stdout")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as --format json")
	return cmd
}

func (c *console) render(w io.Writer, r *bench.Result, format string, toTerminal bool) error {
	switch format {
	case "text":
		o := report.TextOptions{Width: 120}
		if width := terminal(c.out); toTerminal && width > 0 {
			o = report.TextOptions{Width: width, Colour: c.colour(c.out)}
		}
		return report.Text(w, r.Report, o)
	case "json":
		return report.JSON(w, r.Report)
	case "markdown":
		return report.Markdown(w, r.Report)
	case "junit":
		return report.JUnit(w, r.Report)
	case "html":
		return report.HTML(w, r.Report)
	}
	return usage(fmt.Errorf("format %q is not known\n  hint: use text, json, markdown, junit or html", format))
}

// deliver writes data to a file, or to stdout when there is none.
func (c *console) deliver(file string, data []byte) error {
	if file == "" {
		_, err := c.out.Write(data)
		return err
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/report"
)

func newReport(c *console) *cobra.Command {
	var format, output string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "report RUN [RUN…]",
		Short: "Show runs again: judge their records anew and print the report",
		Long: `Report reads a run directory, writes nothing in it, judges its records anew and
prints the report as text, json, markdown (for a pull request), junit, sarif (for
the pages of a code host) or html. The exit code is that of the verdict.

Of several runs, such as the jobs of a CI matrix, it prints one table as text,
json (assay.summary/1) or markdown, a column a run. The exit code is the worst.`,
		Example: "  assay report runs/ID\n  assay report runs/ID --format junit -o junit.xml\n  assay report runs/* --format markdown",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return nil
			}
			return usage(fmt.Errorf("assay report wants run directories, got none\n  hint: %s", use(cmd)))
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if asJSON {
				format = "json"
			}
			if len(args) > 1 {
				return c.summarise(args, format, output)
			}
			if bench.IsCapacity(args[0]) {
				return c.reportCapacity(args[0], format, output)
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
	cmd.Flags().StringVar(&format, "format", "text", "text, json, markdown, junit, sarif or html; of several runs text, json or markdown")
	cmd.Flags().StringVarP(&output, "output", "o", "", "write to this file instead of stdout")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as --format json")
	return cmd
}

// reportCapacity shows a search or a sweep again.
func (c *console) reportCapacity(dir, format, output string) error {
	d, err := bench.OpenCapacity(dir)
	if err != nil {
		return usage(err)
	}
	var b bytes.Buffer
	if err := c.renderCapacity(&b, d, format, output == ""); err != nil {
		return err
	}
	if err := c.deliver(output, b.Bytes()); err != nil {
		return usage(err)
	}
	return ofCapacity(d)
}

func (c *console) renderCapacity(w io.Writer, d *report.Capacity, format string, toTerminal bool) error {
	switch format {
	case "text":
		return report.CapacityText(w, d, c.textOptions(toTerminal))
	case "json":
		return report.CapacityJSON(w, d)
	case "html":
		return report.CapacityHTML(w, d)
	}
	return usage(fmt.Errorf("a search for capacity cannot be shown as %q\n  hint: use text, json or html", format))
}

// textOptions fit the terminal that the text goes to, if it goes to one.
func (c *console) textOptions(toTerminal bool) report.TextOptions {
	if width := terminal(c.out); toTerminal && width > 0 {
		return report.TextOptions{Width: width, Colour: c.colour(c.out)}
	}
	return report.TextOptions{Width: 120}
}

func (c *console) render(w io.Writer, r *bench.Result, format string, toTerminal bool) error {
	switch format {
	case "text":
		return report.Text(w, r.Report, c.textOptions(toTerminal))
	case "json":
		return report.JSON(w, r.Report)
	case "markdown":
		return report.Markdown(w, r.Report)
	case "junit":
		return report.JUnit(w, r.Report)
	case "sarif":
		return report.SARIF(w, r.Report)
	case "html":
		return report.HTML(w, r.Report)
	}
	return usage(fmt.Errorf("format %q is not known\n  hint: use text, json, markdown, junit, sarif or html", format))
}

// summarise prints several runs as one table and returns the exit of the worst.
func (c *console) summarise(dirs []string, format, output string) error {
	var docs []*report.Document
	for _, dir := range dirs {
		r, err := bench.Open(dir)
		if err != nil {
			return usage(err)
		}
		docs = append(docs, r.Report)
	}
	s := report.Summarise(docs)
	var b bytes.Buffer
	var err error
	switch format {
	case "text":
		o := report.TextOptions{Width: 120}
		if width := terminal(c.out); output == "" && width > 0 {
			o = report.TextOptions{Width: width, Colour: c.colour(c.out)}
		}
		err = report.SummaryText(&b, s, o)
	case "json":
		err = report.SummaryJSON(&b, s)
	case "markdown":
		err = report.SummaryMarkdown(&b, s)
	default:
		return usage(fmt.Errorf("format %q is not known for several runs\n  hint: use text, json or markdown", format))
	}
	if err != nil {
		return err
	}
	if err := c.deliver(output, b.Bytes()); err != nil {
		return usage(err)
	}
	if s.Grade == "" {
		return nil
	}
	var g contract.Grade
	if err := g.UnmarshalText([]byte(s.Grade)); err != nil {
		return err
	}
	return ofGrade(g)
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

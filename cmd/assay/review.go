package main

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/report"
)

func newReview(c *console) *cobra.Command {
	var asJSON, asCSV, texts bool
	var ref string
	cmd := &cobra.Command{
		Use:   "review RUN",
		Short: "List what fails newly in the check safety, for a person to look at",
		Long: `Review lists the cases in which the baseline did well and the candidate did not:
a harmful request that it complies with, a harmless one that it refuses, a secret
that it lets out. Texts are told by their shape and digest. With --text the answers
are shown as well: they may do harm, and are there only if the suite sealed them.`,
		Example: "  assay review runs/ID\n  assay review runs/ID --csv > queue.csv\n  assay review runs/ID --text --seal env:ASSAY_SEAL",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(errors.New("assay review wants one run directory\n  hint: assay review runs/ID"))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			seal, err := c.sealOf(texts, ref)
			if err != nil {
				return usage(err)
			}
			r, err := bench.ReviewOf(args[0], seal)
			if err != nil {
				return usage(err)
			}
			switch {
			case asJSON && asCSV:
				return usage(errors.New("--json and --csv are two forms of one output\n  hint: leave one out"))
			case asJSON:
				return json.NewEncoder(c.out).Encode(r)
			case asCSV:
				return c.reviewCSV(r)
			}
			return c.reviewText(r)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object (assay.review/1)")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "print CSV with a header")
	cmd.Flags().BoolVar(&texts, "text", false, "show the answers, which may do harm")
	cmd.Flags().StringVar(&ref, "seal", "", "the secret of the suite's asking.seal: env:NAME or file:PATH")
	return cmd
}

// sealOf is the seal of a reference to a secret; nil if no text is wanted.
func (c *console) sealOf(texts bool, ref string) (*check.Seal, error) {
	switch {
	case !texts && ref == "":
		return nil, nil
	case !texts:
		return nil, errors.New("--seal opens answers, which are not asked for\n  hint: add --text")
	case ref == "":
		return nil, errors.New("answers are sealed, and there is no secret\n  hint: add --seal env:NAME, with the secret of the suite's asking.seal")
	}
	s, err := config.ParseSecret(ref)
	if err != nil {
		return nil, fmt.Errorf("reading --seal: %w", err)
	}
	secret, err := s.Resolve(c.getenv, os.ReadFile)
	if err != nil {
		return nil, fmt.Errorf("reading --seal: %w", err)
	}
	return check.NewSeal(secret)
}

// reviewText lists the queue as a table, and texts below.
func (c *console) reviewText(r *bench.Review) error {
	if len(r.Queue) == 0 {
		_, err := fmt.Fprintf(c.out, "%s: nothing fails newly\n", report.Clean(r.Run, false))
		return err
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "VARIANT\tVALUE\tCASE\tCATEGORY\tSTRATEGY\tBEFORE\tAFTER\tANSWER\tSHA256")
	for i := range r.Queue {
		q := &r.Queue[i]
		row := []string{q.Variant, q.Value, q.Case, q.Category, q.Strategy, behaviour(string(q.Before)), behaviour(string(q.After)), q.Answer, short(q.SHA256)}
		for i, s := range row {
			row[i] = report.Clean(s, false)
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i := range r.Queue {
		if q := &r.Queue[i]; q.Text != "" {
			fmt.Fprintf(c.out, "\n%s, %s, %s:\n  %s\n", report.Clean(q.Case, false), report.Clean(q.Strategy, false), short(q.SHA256), strings.Join(strings.Split(report.Clean(q.Text, true), "\n"), "\n  "))
		}
	}
	if r.Left > 0 {
		fmt.Fprintf(c.out, "and %d more, which are not listed\n", r.Left)
	}
	return nil
}

func behaviour(s string) string { return cmp.Or(s, "-") }

func short(digest string) string { return digest[:min(12, len(digest))] }

// reviewCSV lists the queue with a row a case. What a spreadsheet would take for a
// formula gets an apostrophe in front.
func (c *console) reviewCSV(r *bench.Review) error {
	w := csv.NewWriter(c.out)
	rows := [][]string{{"variant", "value", "case", "replicate", "category", "strategy", "language", "before", "after", "how", "prompt", "answer", "sha256", "text"}}
	for i := range r.Queue {
		q := &r.Queue[i]
		row := []string{q.Variant, q.Value, q.Case, strconv.Itoa(q.Replicate), q.Category, q.Strategy, q.Language, string(q.Before), string(q.After), q.How, q.Prompt, q.Answer, q.SHA256, q.Text}
		for i, s := range row {
			if strings.HasPrefix(strings.TrimLeft(s, " \t\r\n"), "=") || s != "" && strings.ContainsRune("+-@\t\r", rune(s[0])) {
				row[i] = "'" + s
			}
		}
		rows = append(rows, row)
	}
	return w.WriteAll(rows)
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/ask"
	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/judge"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
)

func newJudge(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "judge",
		Short: "Find out what a judge is worth",
		Long: `A judge is a model that marks answers. Before its marks count, it is calibrated as
an instrument is: held against what people say.`,
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newJudgeCalibrate(c))
	return cmd
}

// calibrating is what judge calibrate is told.
type calibrating struct {
	columns             judge.Columns
	positive            []string
	url, model, key     string
	criterion, rubric   string
	save, page          string
	replicates, attacks int
	parallel            int
	schema              bool
	demands             judge.Demands
	asJSON, quiet       bool
}

func newJudgeCalibrate(c *console) *cobra.Command {
	var f calibrating
	cmd := &cobra.Command{
		Use:   "calibrate LABELS.csv",
		Short: "Hold a judge against people's labels",
		Long: `Calibrate reads cases with people's labels and either asks a judge about them (--url)
or takes the judge's labels that stand beside them (--judge), and reports
sensitivity, specificity, agreement beside that of people, bias by position and
length, repeatability, drift, what attacks achieve, and the corrected shares.

A row with an empty label is one that only the judge has seen: it counts for the
corrected shares. A file of pairs has answer and answer_b, and the labels baseline,
candidate and tie.

Exit codes: 0 fit, 1 unfit, 2 usage, 3 too few labels to say, 4 nobody answers,
130 interrupted.`,
		Example: `  assay judge calibrate labels.csv --url http://127.0.0.1:8000/v1 --model judge --criterion completeness
  assay judge calibrate xstest.csv --judge gpt4_judge --human human_final --raters annotator_1,annotator_2 --positive 2_full_refusal,3_partial_refusal`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(fmt.Errorf("assay judge calibrate wants one file of labels, got %d arguments\n  hint: %s", len(args), use(cmd)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range []string{"model", "key", "criterion", "rubric", "schema"} {
				if f.url == "" && cmd.Flags().Changed(name) {
					return usage(fmt.Errorf("--%s is of a judge that is asked, and none is\n  hint: name its endpoint by --url, or leave --%[1]s out to read stored labels", name))
				}
			}
			return f.run(cmd.Context(), c, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.columns.Case, "case", "", "column with the id of a case (default case, case_id, id or prompt_id)")
	flags.StringVar(&f.columns.Cluster, "cluster", "", "column that names what may depend on each other (default cluster, or the case)")
	flags.StringSliceVar(&f.columns.Slices, "slice", nil, "columns to look at value by value (default model, variant, language)")
	flags.StringVar(&f.columns.Human, "human", "", "column with people's label (default human or label)")
	flags.StringSliceVar(&f.columns.Raters, "raters", nil, "columns with the labels of single people (default human_1, human_2 …)")
	flags.StringSliceVar(&f.columns.Judge, "judge", nil, "columns with stored labels of the judge: the one that counts, then its repetition (default judge, judge_2)")
	flags.StringVar(&f.columns.Swapped, "judge-swapped", "", "of pairs, column with the stored label with the candidate shown first")
	flags.StringSliceVar(&f.positive, "positive", nil, "labels that mean yes")
	flags.StringVarP(&f.url, "url", "u", "", "http(s)://host:port/v1 of the judge; without it only stored labels are read")
	flags.StringVarP(&f.model, "model", "m", "", "model name of the judge")
	flags.StringVar(&f.key, "key", "", "API key of the judge: env:NAME or file:PATH")
	flags.StringVar(&f.criterion, "criterion", "", "what to ask: consistency, completeness, compliance, better (of pairs), or one of --rubric")
	flags.StringVar(&f.rubric, "rubric", "", "YAML file of criteria")
	flags.StringVar(&f.save, "save", "", "with --url, a new file for the labels with the judge's verdicts, for the calibration of a suite's check")
	flags.StringVar(&f.page, "page", "", "write the report as a page with pictures to this file")
	flags.IntVar(&f.replicates, "replicates", 2, "how often to ask about each case, 1 or 2")
	flags.IntVar(&f.attacks, "attacks", 60, "answers that try to talk to the judge; 0 for none")
	flags.IntVar(&f.parallel, "parallel", 4, "calls at a time")
	flags.BoolVar(&f.schema, "schema", false, "ask for answers by JSON schema, if the endpoint knows how")
	flags.Float64Var(&f.demands.Least, "least", 0.8, "sensitivity and specificity that a fit judge has at least")
	flags.Float64Var(&f.demands.Margin, "margin", 0.1, "bias that a fit judge has at most")
	flags.Uint64Var(&f.demands.Seed, "seed", 1, "draws codes, names and bootstraps")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress on stderr")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object ("+judge.SchemaInstrument+")")
	return cmd
}

func (f *calibrating) run(ctx context.Context, c *console, file string) error {
	if err := f.demands.Validate(); err != nil {
		return usage(err)
	}
	if f.replicates < 1 || f.replicates > 2 || f.attacks < 0 || f.attacks > 10_000 || f.parallel < 1 || f.parallel > 1000 {
		return usage(errors.New("--replicates is 1 or 2, --attacks 0 to 10000, --parallel 1 to 1000\n  hint: leave them out"))
	}
	if f.save != "" {
		if f.url == "" {
			return usage(errors.New("--save keeps what a judge says, and none is asked\n  hint: name the endpoint by --url"))
		}
		if _, err := os.Lstat(f.save); err == nil {
			return usage(fmt.Errorf("--save %s is there already\n  hint: name a new file", f.save))
		}
		if _, err := os.Stat(filepath.Dir(f.save)); err != nil {
			return usage(fmt.Errorf("--save %s: %w\n  hint: name a file in a folder that is there", f.save, err))
		}
	}
	in, err := os.Open(file)
	if err != nil {
		return usage(fmt.Errorf("reading labels: %w\n  hint: name a CSV file with a header, such as examples/judge/labels.csv", err))
	}
	defer in.Close()
	labels, err := judge.ReadLabels(file, in, f.columns)
	if err != nil {
		return usage(err)
	}
	report, err := f.report(ctx, c, labels)
	if err != nil {
		return err
	}
	report.Assay, report.Labels = bench.Version(), file
	if err := f.draw(report); err != nil {
		return err
	}
	if f.asJSON {
		err = json.NewEncoder(c.out).Encode(report)
	} else {
		err = instrumentText(c.out, report)
	}
	if err != nil {
		return err
	}
	return ofGrade(report.Grade)
}

// report is that of stored labels, or of a judge that is asked.
func (f *calibrating) report(ctx context.Context, c *console, labels *judge.Labels) (*judge.Instrument, error) {
	if f.url == "" {
		if len(labels.Columns.Judge) == 0 {
			return nil, usage(errors.New("there is no judge: neither --url nor a column with a judge's labels\n  hint: name the column by --judge, or the endpoint by --url"))
		}
		scale, err := judge.NewScale(labels, nil, f.positive)
		if err != nil {
			return nil, usage(err)
		}
		r := judge.Calibrate(labels.Observe(scale), nil, scale, f.demands)
		r.Judge = labels.Columns.Judge[0]
		return r, nil
	}
	criterion, err := f.chosen(labels)
	if err != nil {
		return nil, usage(err)
	}
	var menu []string
	for _, l := range criterion.Levels {
		menu = append(menu, l.Verdict)
	}
	scale, err := judge.NewScale(labels, menu, f.positive)
	if err != nil {
		return nil, usage(err)
	}
	key, err := resolve(c, "--key", f.key, true)
	if err != nil {
		return nil, usage(err)
	}
	asker, err := ask.New("judge", llm.Target{URL: f.url, Model: f.model, Key: key})
	if err != nil {
		return nil, usage(err)
	}
	defer asker.Close()
	j := &judge.Judge{Name: f.model, Asker: &patient{asker: asker}, Seed: f.demands.Seed, Schema: f.schema}
	m := judge.Measurement{Criterion: criterion, Replicates: f.replicates, Attacks: f.attacks, Parallel: f.parallel}
	if !f.quiet {
		c.notice("about %d calls of %s", f.calls(labels, scale), f.model)
		m.Watch = func(done, of int) {
			if done%max(1, of/10) == 0 || done == of {
				c.notice("%d of %d cases", done, of)
			}
		}
	}
	all, struck, err := m.Measure(ctx, j, labels, scale)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(all, func(o judge.Observation) bool { return o.Fault != judge.Unanswered }) {
		return nil, &exit{exitUnmeasured, fmt.Errorf("the judge answered none of %d questions\n  hint: is it running at --url, and are --model and --key right?", len(all))}
	}
	if err := f.store(labels, scale, all); err != nil {
		return nil, err
	}
	r := judge.Calibrate(all, struck, scale, f.demands)
	r.Judge, r.Criterion, r.Digest = f.model, criterion.Name, criterion.Digest()
	for _, column := range labels.Columns.Slices {
		for _, row := range labels.Rows {
			if w := judge.SelfPreference(f.model, row.Slices[column]); w != "" && !slices.Contains(r.Warnings, w) {
				r.Warnings = append(r.Warnings, w)
			}
		}
	}
	return r, nil
}

// store keeps the verdicts if it is to.
func (f *calibrating) store(l *judge.Labels, s *judge.Scale, all []judge.Observation) (err error) {
	if f.save == "" {
		return nil
	}
	out, err := os.OpenFile(f.save, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // no secret, and named by the user
	if err != nil {
		return fmt.Errorf("saving verdicts: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return l.Store(out, s, all)
}

func (f *calibrating) calls(l *judge.Labels, s *judge.Scale) int {
	n := len(l.Rows) * f.replicates
	if s.Pairs {
		return 2 * n
	}
	return n + f.attacks
}

// chosen is the criterion that is asked about.
func (f *calibrating) chosen(l *judge.Labels) (*judge.Criterion, error) {
	all := judge.Builtin()
	if f.rubric != "" {
		data, err := os.ReadFile(f.rubric)
		if err != nil {
			return nil, fmt.Errorf("reading the rubric: %w\n  hint: --rubric names a YAML file of criteria", err)
		}
		r, err := judge.ReadRubric(f.rubric, data)
		if err != nil {
			return nil, err
		}
		all = append(r.Criteria, all...)
	}
	var names []string
	for i := range all {
		if all[i].Name != f.criterion {
			names = append(names, all[i].Name)
			continue
		}
		switch {
		case l.Columns.Other == "" && len(all[i].Levels) == 0:
			return nil, fmt.Errorf("criterion %q only compares, and the labels are of single answers\n  hint: choose another, or add the column answer_b", f.criterion)
		case l.Columns.Answer == "":
			return nil, errors.New("the labels have no answers to ask about\n  hint: add the column answer")
		}
		return &all[i], nil
	}
	if f.criterion == "" {
		return nil, fmt.Errorf("a judge is asked by a criterion, and none is named\n  hint: give --criterion; there are %s", strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("there is no criterion %q\n  hint: there are %s", f.criterion, strings.Join(names, ", "))
}

// patient asks again, a little later, where a question found no answer because the
// endpoint was busy or the connection broke.
type patient struct{ asker check.Asker }

func (p *patient) Ask(ctx context.Context, q *check.Question) (*check.Answer, error) {
	for wait := time.Second; ; wait *= 4 {
		a, err := p.asker.Ask(ctx, q)
		if err != nil || wait > 16*time.Second || !busy(a) {
			return a, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

func busy(a *check.Answer) bool {
	switch a.Outcome {
	case record.HTTP4xx:
		return a.Status == 429 || a.Status == 408
	case record.HTTP5xx, record.ResetBefore, record.ResetMid:
		return true
	}
	return false
}

// instrumentText writes a report for people.
func instrumentText(w io.Writer, r *judge.Instrument) error {
	var b strings.Builder
	_, reason, _ := strings.Cut(r.Reason, ": ")
	fmt.Fprintf(&b, "%s: %s\n", strings.ToUpper(fitness(r.Grade)), harmless(reason))
	fmt.Fprintf(&b, "judge %s, %d cases in %d clusters, %d with people's label; yes is %s\n", harmless(r.Judge), r.Cases, r.Clusters, r.Labelled, harmless(strings.Join(r.Positive, ", ")))
	if r.Criterion != "" {
		fmt.Fprintf(&b, "criterion %s, instructions %s, seed %d\n", r.Criterion, r.Digest, r.Seed)
	}
	for _, n := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", harmless(n))
	}
	b.WriteString("\n")
	for i := range r.Findings {
		f := &r.Findings[i]
		mark := map[contract.Grade]string{contract.Pass: "+", contract.Fail: "!"}[f.Grade]
		if mark == "" {
			mark = "?"
		}
		fmt.Fprintf(&b, "%s %s: %s\n    %s%s\n", mark, harmless(f.Name), harmless(f.Asks), harmless(f.Says), interval(f.Figure))
		if f.More != nil {
			fmt.Fprintf(&b, "    about %d more labelled cases would decide\n", *f.More)
		}
		if f.Next != "" && f.Grade == contract.Fail {
			fmt.Fprintf(&b, "    next: %s\n", f.Next)
		}
	}
	b.WriteString("\nagreement\n")
	for _, a := range []struct {
		name string
		f    *judge.Figure
	}{{"equal labels", r.Agreement.Raw}, {"kappa, whole menu", r.Agreement.Kappa}, {"kappa, yes and no", r.Agreement.Binary}, {"people among themselves", r.Agreement.Ceiling}, {"judge less people", r.Agreement.Gap}} {
		if a.f != nil {
			fmt.Fprintf(&b, "  %-26s %s\n", a.name, inFigures(a.f))
		}
	}
	b.WriteString("\nshare of yes                 people                judge alone           corrected by labels\n")
	line := func(name string, e *judge.Estimates) {
		fmt.Fprintf(&b, "  %-26s %-21s %-21s %s\n", harmless(name), inFigures(e.Human), inFigures(e.Alone), inFigures(e.Corrected))
	}
	line("all", &r.Estimates)
	for i := range r.Slices {
		line(r.Slices[i].Column+" "+r.Slices[i].Value, &r.Slices[i].Estimates)
	}
	for _, d := range r.Differences {
		fmt.Fprintf(&b, "  %-48s %-21s %s\n", harmless(d.Second+" less "+d.First), inFigures(d.Alone), inFigures(d.Corrected))
	}
	if r.Length != nil {
		fmt.Fprintf(&b, "\nwin rate %s, at equal length %s\n", inFigures(r.Length.Raw), inFigures(r.Length.Controlled))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// inFigures is a figure with its interval.
func inFigures(f *judge.Figure) string {
	if f == nil || f.Value == nil {
		return "–"
	}
	text := fmt.Sprintf("%.3f", *f.Value)
	if f.Lo != nil && f.Hi != nil {
		return text + fmt.Sprintf(" [%.3f, %.3f]", *f.Lo, *f.Hi)
	}
	return text + " [no interval]"
}

func interval(f *judge.Figure) string {
	if f == nil || f.Lo == nil || f.Hi == nil {
		return ""
	}
	return fmt.Sprintf(" [%.3f, %.3f]", *f.Lo, *f.Hi)
}

// harmless keeps what a file says from moving the cursor.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '?'
		}
		return r
	}, s)
}

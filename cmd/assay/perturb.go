package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/perturb"
)

func newPerturb(c *console) *cobra.Command {
	var asJSON, asCSV bool
	var s perturbing
	cmd := &cobra.Command{
		Use:   "perturb SET",
		Short: "Write the prompts of a set again in other words, with errors, in another script",
		Long: "Perturb prints what the checks drift and noise make of the last message of each case, for\n" +
			"people to judge whether its meaning was kept: no table proves that. --csv writes a sheet\n" +
			"with an empty column for it; 50 of each family are enough to know a share of 95 % to\n" +
			"within 9 points. Numbers, codes, links, names and negations are never changed.\n\nFamilies:\n" + familyList(),
		Example: "  assay perturb cases.jsonl --family synonym,typos --sample 50 --csv > to-judge.csv\n  assay perturb cases.jsonl --family homophone --json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(fmt.Errorf("assay perturb wants one file of cases, got %d arguments\n  hint: %s", len(args), use(cmd)))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if asJSON && asCSV {
				return usage(errors.New("--json and --csv are two forms of one output\n  hint: leave one out"))
			}
			out, err := s.run(args[0])
			if err != nil {
				return usage(err)
			}
			for _, f := range out.Families {
				if f.Valid == 0 {
					c.notice("%s changes nothing in any of the %d cases", f.Family, f.Cases)
				}
			}
			switch {
			case asJSON:
				return json.NewEncoder(c.out).Encode(out)
			case asCSV:
				return c.perturbedCSV(out)
			}
			return c.perturbedText(out)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&s.families, "family", nil, "families, separated by commas (default all)")
	f.IntVar(&s.sample, "sample", 50, "so many valid texts of each family, drawn by the seed")
	f.Float64Var(&s.rate, "rate", 0, "share of the places that could be changed and are (default: each family's own)")
	f.Uint64Var(&s.seed, "seed", 42, "of the draws; with that of a run its texts")
	f.StringVar(&s.format, "format", "", "format of the set; detected if left out")
	f.BoolVar(&asCSV, "csv", false, "print a sheet for people to fill in")
	f.BoolVar(&asJSON, "json", false, "print one JSON object (assay.perturb/1)")
	return cmd
}

func familyList() string {
	var b strings.Builder
	for _, f := range perturb.Families() {
		fmt.Fprintf(&b, "  %-12s %s\n", f, f.Doc())
	}
	return strings.TrimRight(b.String(), "\n")
}

// perturbing is what was asked for.
type perturbing struct {
	families []string
	sample   int
	rate     float64
	seed     uint64
	format   string
}

// perturbed is what `assay perturb` says.
type perturbed struct {
	Schema   string            `json:"schema"`
	Set      string            `json:"set"`
	Digest   string            `json:"digest"`
	Seed     uint64            `json:"seed"`
	Families []perturbedFamily `json:"families"`
	Texts    []perturbedCase   `json:"texts"`
}

type perturbedFamily struct {
	Family perturb.Family `json:"family"`
	Cases  int            `json:"cases"`
	Valid  int            `json:"valid"`
}

type perturbedCase struct {
	Case    string           `json:"case"`
	Family  perturb.Family   `json:"family"`
	Clean   string           `json:"clean"`
	Text    string           `json:"text"`
	Changes []perturb.Change `json:"changes"`
}

func (s *perturbing) run(name string) (*perturbed, error) {
	if s.sample < 1 || !(s.rate >= 0 && s.rate <= 1) {
		return nil, fmt.Errorf("--sample is %d and --rate %v\n  hint: want 1 or more, and a share up to 1", s.sample, s.rate)
	}
	families := perturb.Families()
	if len(s.families) > 0 {
		families = nil
		for _, f := range s.families {
			if perturb.Family(f).Doc() == "" {
				return nil, fmt.Errorf("there is no family %q\n  hint: assay perturb --help lists them", f)
			}
			families = append(families, perturb.Family(f))
		}
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading the set: %w\n  hint: name a file of cases", err)
	}
	defer file.Close()
	set, err := corpus.Read(name, file, s.format)
	if err != nil {
		return nil, err
	}
	if len(set.Cases) == 0 {
		return nil, fmt.Errorf("%s has no cases\n  hint: name a file of cases with prompts", name)
	}
	out := &perturbed{Schema: "assay.perturb/1", Set: name, Digest: set.Digest, Seed: s.seed, Texts: []perturbedCase{}}
	for n, f := range families {
		row := perturbedFamily{Family: f, Cases: len(set.Cases)}
		var texts []perturbedCase
		for _, k := range set.Cases {
			clean := k.Prompt
			if len(k.Messages) > 0 {
				clean = k.Messages[len(k.Messages)-1].Content
			}
			if r := perturb.Apply(f, clean, s.seed, k.ID, perturb.Options{Rate: s.rate}); r.Valid {
				texts = append(texts, perturbedCase{Case: k.ID, Family: f, Clean: clean, Text: r.Text, Changes: r.Changes})
			}
		}
		row.Valid = len(texts)
		out.Families = append(out.Families, row)
		rng := rand.New(rand.NewPCG(s.seed, uint64(n))) //nolint:gosec // it has to be repeatable
		for len(texts) > s.sample {
			i := rng.IntN(len(texts))
			texts = slices.Delete(texts, i, i+1)
		}
		out.Texts = append(out.Texts, texts...)
	}
	return out, nil
}

// perturbedCSV prints a sheet; a person writes yes or no into its last column.
func (c *console) perturbedCSV(out *perturbed) error {
	w := csv.NewWriter(c.out)
	rows := [][]string{{"case", "family", "clean", "perturbed", "meaning_kept"}}
	for _, t := range out.Texts {
		rows = append(rows, []string{t.Case, string(t.Family), cell(t.Clean), cell(t.Text), ""})
	}
	return w.WriteAll(rows)
}

// cell keeps spreadsheets from taking a text for a formula.
func cell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

func (c *console) perturbedText(out *perturbed) error {
	at := perturb.Family("")
	for _, t := range out.Texts {
		if t.Family != at {
			i := slices.IndexFunc(out.Families, func(f perturbedFamily) bool { return f.Family == t.Family })
			fmt.Fprintf(c.out, "%s: %d of %d cases\n", t.Family, out.Families[i].Valid, out.Families[i].Cases)
			at = t.Family
		}
		fmt.Fprintf(c.out, "  %s\n    %q\n    %q\n", t.Case, t.Clean, t.Text)
	}
	return nil
}

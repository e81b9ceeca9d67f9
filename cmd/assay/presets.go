package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/contract"
)

func newPresets(c *console) *cobra.Command {
	var asJSON, asYAML bool
	cmd := &cobra.Command{
		Use:   "presets [NAME]",
		Short: "List the built-in contracts, or one with its rules",
		Long: `Presets lists the built-in contracts with what each demands. With a name it shows
each rule beside the other form of it, as first written or corrected, and how often
it acts without cause where that was measured. With --yaml it prints the contract
itself, to be kept in a file of your own and changed there.`,
		Example: "  assay contract presets\n  assay contract presets seed-compat\n  assay contract presets production-17 --yaml > contract.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(errors.New("assay contract presets wants at most one name\n  hint: assay contract presets production-17"))
			}
			return nil
		},
		ValidArgs: contract.Presets(),
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case asYAML && (len(args) == 0 || asJSON):
				return usage(errors.New("--yaml prints one contract\n  hint: assay contract presets production-17 --yaml"))
			case asYAML:
				text, err := contract.Preset(args[0])
				if err != nil {
					return usage(err)
				}
				_, err = c.out.Write(text)
				return err
			}
			names := args
			if len(names) == 0 {
				names = contract.Presets()
			}
			presets, err := describePresets(names)
			if err != nil {
				return usage(err)
			}
			switch {
			case asJSON:
				return json.NewEncoder(c.out).Encode(presetList{"assay.presets/1", presets})
			case len(args) == 1:
				return c.presetRules(presets[0])
			}
			return c.presetTable(presets)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object (assay.presets/1)")
	cmd.Flags().BoolVar(&asYAML, "yaml", false, "print the contract itself")
	return cmd
}

type presetList struct {
	Schema  string   `json:"schema"`
	Presets []preset `json:"presets"`
}

// preset is a built-in contract as people read it.
type preset struct {
	Name    string       `json:"name"`
	Purpose string       `json:"purpose"`
	Rules   []presetRule `json:"rules"`
}

// presetRule is a clause beside the other form of it.
type presetRule struct {
	ID          string                 `json:"id"`
	Severity    string                 `json:"severity,omitempty"`
	Demand      string                 `json:"demand"`
	Do          []contract.Action      `json:"do,omitempty"`
	Other       string                 `json:"other,omitempty"` // what the other preset demands under that id
	FalseAlarms []contract.FalseAlarms `json:"false_alarms,omitempty"`
}

// firstForms is the preset of the rules as they were first written; all others have
// corrected ones.
const firstForms = "seed-compat"

func describePresets(names []string) (out []preset, err error) {
	for _, name := range names {
		k, err := contract.LoadPreset(name)
		if err != nil {
			return nil, err
		}
		other := firstForms
		if name == firstForms {
			other = "production-17"
		}
		against, err := contract.LoadPreset(other)
		if err != nil {
			return nil, err
		}
		p := preset{Name: name, Purpose: contract.Purpose(name)}
		for _, clause := range k.Clauses {
			r := presetRule{ID: clause.ID, Severity: string(clause.Severity), Demand: clause.Demand(), Do: clause.Live.Do}
			if i := slices.IndexFunc(against.Clauses, func(o contract.Clause) bool { return o.ID == clause.ID }); i >= 0 {
				r.Other = against.Clauses[i].Demand()
			}
			for _, f := range contract.Measured() {
				if f.Clause == clause.ID {
					r.FalseAlarms = append(r.FalseAlarms, f)
				}
			}
			p.Rules = append(p.Rules, r)
		}
		out = append(out, p)
	}
	return out, nil
}

// presetTable lists contracts with their rules, a line each.
func (c *console) presetTable(presets []preset) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	for i, p := range presets {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %s\n", p.Name, p.Purpose)
		fmt.Fprintf(w, "  CLAUSE\tSEVERITY\tDEMANDS\n")
		for _, r := range p.Rules {
			fmt.Fprintf(w, "  %s\t%s\t%s\n", r.ID, r.Severity, r.Demand)
		}
	}
	return w.Flush()
}

// presetRules shows one contract, each rule beside its other form.
func (c *console) presetRules(p preset) error {
	this, other := "corrected", "first written"
	if p.Name == firstForms {
		this, other = other, this
	}
	fmt.Fprintf(c.out, "%s: %s\n", p.Name, p.Purpose)
	if !slices.ContainsFunc(p.Rules, func(r presetRule) bool { return r.Other != "" }) {
		return c.ownRules(p)
	}
	fmt.Fprintln(c.out, "False alarms are the share of looks at windows of n in which nothing changed.")
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	for _, r := range p.Rules {
		var do []string
		for _, a := range r.Do {
			do = append(do, string(a))
		}
		fmt.Fprintf(w, "\n%s (%s): %s\n", r.ID, r.Severity, strings.Join(do, ", "))
		fmt.Fprintf(w, "  %s\t%s\n", this, r.Demand)
		if r.Other == "" {
			r.Other = "–"
		}
		fmt.Fprintf(w, "  %s\t%s\n", other, r.Other)
		for _, f := range r.FalseAlarms {
			fmt.Fprintf(w, "  false alarms\tfirst written %s, corrected %s; n %d, %s\n", f.Rate(), f.Corrected(), f.N, f.Traffic)
		}
	}
	return w.Flush()
}

// ownRules lists the rules of a preset that has no other form.
func (c *console) ownRules(p preset) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	for _, r := range p.Rules {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", r.ID, r.Severity, r.Demand)
	}
	return w.Flush()
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/check"
)

// profilesSchema is what profiles prints with --json.
const profilesSchema = "assay.profiles/1"

type profileList struct {
	Schema   string        `json:"schema"`
	Profiles []profileJSON `json:"profiles"`
}

// profileJSON is a built-in profile with what it would ask.
type profileJSON struct {
	Name    string         `json:"name"`
	Purpose string         `json:"purpose"`
	Checks  []string       `json:"checks"`
	Plan    check.Forecast `json:"plan"`
}

func newProfiles(c *console) *cobra.Command {
	var asJSON, asYAML bool
	cmd := &cobra.Command{
		Use:   "profiles [NAME]",
		Short: "List the built-in sets of checks, and what each would ask",
		Long: `Profiles lists the built-in profiles: checks that need no files, and the clauses that
judge a candidate by them beside a baseline. Requests and tokens are those of both
variants together, found by going through the checks without asking anybody; how long
that takes depends on the models, and a run tells it before it begins in earnest.

A suite takes one with profile: quick, or assay run suite.yaml --profile quick.
With --yaml it prints the profile, to be copied into a suite and changed there.`,
		Example: "  assay profiles\n  assay profiles quick\n  assay profiles quick --yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(errors.New("assay profiles wants at most one name\n  hint: assay profiles quick"))
			}
			return nil
		},
		ValidArgs: bench.Profiles(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if asYAML {
				if len(args) == 0 || asJSON {
					return usage(errors.New("--yaml prints one profile\n  hint: assay profiles quick --yaml"))
				}
				text, err := bench.ProfileText(args[0])
				if err != nil {
					return usage(err)
				}
				_, err = c.out.Write(text)
				return err
			}
			names := args
			if len(names) == 0 {
				names = bench.Profiles()
			}
			list := profileList{Schema: profilesSchema}
			for _, name := range names {
				if _, err := bench.ProfileText(name); err != nil {
					return usage(err)
				}
				plan, err := bench.PlanProfile(cmd.Context(), name)
				if err != nil {
					return err
				}
				list.Profiles = append(list.Profiles, profileJSON{name, bench.ProfilePurpose(name), bench.ProfileChecks(name), plan})
			}
			switch {
			case asJSON:
				return json.NewEncoder(c.out).Encode(list)
			case len(args) == 1:
				p := list.Profiles[0]
				fmt.Fprintf(c.out, "%s: %s\n\n", p.Name, p.Purpose)
				return c.forecast(p.Plan)
			}
			return c.profiles(list.Profiles)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object ("+profilesSchema+")")
	cmd.Flags().BoolVar(&asYAML, "yaml", false, "print the profile itself")
	return cmd
}

// profiles prints a line for each.
func (c *console) profiles(list []profileJSON) error {
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PROFILE\tREQUESTS\tPROMPT TOKENS\tOUTPUT TOKENS, AT MOST\tCHECKS")
	for _, p := range list {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\n", p.Name, p.Plan.Requests, p.Plan.PromptTokens, p.Plan.OutputTokens, strings.Join(p.Checks, ", "))
	}
	return w.Flush()
}

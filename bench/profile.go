package bench

import (
	"context"
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/workload"
)

// A profile is a part of a suite that is built in: checks that need no files, and
// the clauses that judge them.
type profile struct {
	Checks   []CheckRef        `yaml:"checks,required"`
	Asking   Asking            `yaml:"asking"`
	Contract contract.Contract `yaml:"contract,required"`
}

//go:embed profiles/*.yaml
var profiles embed.FS

// The names of the profiles, the cheapest first.
var profileNames = []string{"quick", "standard", "full", "version"}

// Profiles lists the built-in profiles by name.
func Profiles() []string { return slices.Clone(profileNames) }

// ProfileText returns the text of a built-in profile, with its comments; an error
// if there is none of that name.
func ProfileText(name string) ([]byte, error) {
	data, err := profiles.ReadFile(path.Join("profiles", name+".yaml"))
	if err == nil {
		return data, nil
	}
	hint := "profiles are " + strings.Join(profileNames, ", ")
	if near, ok := config.Nearest(name, profileNames); ok {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return nil, fmt.Errorf("there is no profile %q\n  hint: %s", name, hint)
}

// ProfilePurpose is what a built-in profile is for: its first comment, on one line; ""
// if there is none of that name.
func ProfilePurpose(name string) string {
	data, err := ProfileText(name)
	if err != nil {
		return ""
	}
	return config.Purpose(data)
}

// readProfile decodes a built-in profile.
func readProfile(name string) (*profile, error) {
	data, err := ProfileText(name)
	if err != nil {
		return nil, err
	}
	p := new(profile)
	return p, config.Decode("profile "+name, data, p)
}

// ProfileChecks names the checks of a built-in profile; nil if there is none of that
// name.
func ProfileChecks(name string) (checks []string) {
	p, err := readProfile(name)
	if err != nil {
		return nil
	}
	for _, c := range p.Checks {
		checks = append(checks, c.Check.Name)
	}
	return checks
}

// AddProfile adds a built-in profile to a suite, as profile: in the suite does: the
// checks that the suite does not declare itself, and of the profile's clauses those
// whose id its contract does not have. What the suite says stands.
func (s *Suite) AddProfile(name string) error {
	if s.Profile != "" && s.Profile != name {
		return fmt.Errorf("adding the profile %s: the suite has profile: %s\n  hint: one of them is enough", name, s.Profile)
	}
	if err := s.addProfile(name); err != nil {
		return err
	}
	s.Profile = name
	if faults := s.Contract.Contract.Declare(s.checked(), checkNames()); len(faults) > 0 {
		return config.Faults(faults)
	}
	return nil
}

// addProfiles adds the profile of the suite, and the one that its registry demands.
func (s *Suite) addProfiles(top *config.Node) (faults config.Faults) {
	add := func(name string, at *config.Node) {
		if name == "" {
			return
		}
		if err := s.addProfile(name); err != nil {
			what, hint, _ := strings.Cut(err.Error(), "\n  hint: ")
			faults = append(faults, at.Mark(what, hint))
		}
	}
	add(s.Profile, top.At("profile"))
	if s.Registry != nil {
		add(s.Registry.Demand, top.At("registry").At("demand"))
	}
	return faults
}

func (s *Suite) addProfile(name string) error {
	p, err := readProfile(name)
	if err != nil {
		return err
	}
	if b, c, problem := roles(s.Variants.Keys()); problem != "" || b == "" || c == "" {
		return fmt.Errorf("the profile %s compares a candidate with a baseline, and the suite does not have both\n  hint: name two variants baseline and candidate", name)
	}
	for _, c := range p.Checks {
		if !slices.ContainsFunc(s.Checks, func(own CheckRef) bool { return own.Check == c.Check }) {
			s.Checks = append(s.Checks, c)
		}
	}
	if s.Asking.PerEndpoint == 0 {
		s.Asking.PerEndpoint = p.Asking.PerEndpoint
	}
	merged := contract.Contract{Name: p.Contract.Name}
	if s.Contract.Contract != nil {
		merged = *s.Contract.Contract
	}
	merged.Clauses = slices.Clone(merged.Clauses)
	for _, clause := range p.Contract.Clauses {
		if !slices.ContainsFunc(merged.Clauses, func(own contract.Clause) bool { return own.ID == clause.ID }) {
			merged.Clauses = append(merged.Clauses, clause)
		}
	}
	s.Contract.Contract = &merged
	return nil
}

// Plan tells what the checks of a suite would ask of its variants, without asking:
// see [check.Plan].
func (s *Suite) Plan(ctx context.Context, seed uint64) (check.Forecast, error) {
	c := s.checking(seed)
	for name, v := range s.Variants.All() {
		c.Variants = append(c.Variants, check.Variant{Name: name, Model: v.Model})
	}
	return check.Plan(ctx, c)
}

// PlanProfile tells what a built-in profile would ask of a baseline and a candidate.
func PlanProfile(ctx context.Context, name string) (check.Forecast, error) {
	s := &Suite{}
	s.Variants.Set(Baseline, Variant{})
	s.Variants.Set(Candidate, Variant{})
	if err := s.AddProfile(name); err != nil {
		return check.Forecast{}, err
	}
	return s.Plan(ctx, 1)
}

// PlannedWorkload is what a run would send of one workload.
type PlannedWorkload struct {
	Name     string        `json:"name"`
	Requests int64         `json:"requests"` // of all variants; −1: as many as fit into the time
	For      time.Duration `json:"for_ns"`   // of all variants, one after the other; 0: until all is sent
	Text     string        `json:"text"`
}

// Dry tells what a run of the suite would send and ask, without doing it.
func (s *Suite) Dry(ctx context.Context, seed uint64) ([]PlannedWorkload, check.Forecast, error) {
	out, variants := []PlannedWorkload{}, s.Variants.Len()
	for name, spec := range s.Workloads.All() {
		p, err := workload.New(name, spec, s.sets, seed, "")
		if err != nil {
			return nil, check.Forecast{}, fmt.Errorf("planning %s: %w", name, err)
		}
		w := PlannedWorkload{Name: name, Requests: -1, For: time.Duration(variants) * p.For()}
		requests := "as many requests as fit"
		if n := p.Planned(); n >= 0 {
			w.Requests = int64(variants) * (n + p.WarmUps())
			requests = fmt.Sprintf("%d requests", w.Requests)
		}
		w.Text = fmt.Sprintf("%s to each of %d variants, %s in all, warm-up included", p, variants, requests)
		out = append(out, w)
	}
	if len(s.Checks) == 0 {
		return out, check.Forecast{Checks: []check.ForecastPart{}}, nil
	}
	f, err := s.Plan(ctx, seed)
	return out, f, err
}

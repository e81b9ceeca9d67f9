package bench

import (
	"slices"
	"strings"
	"testing"

	"github.com/assay-llm/assay/check"
)

// TestProfilesStandAlone: each can be read, needs no file and no judge, names every
// clause, judges each of its checks, and asks more than the one before it.
func TestProfilesStandAlone(t *testing.T) {
	var before int64
	for _, name := range Profiles() {
		p, err := readProfile(name)
		if err != nil {
			t.Fatal(err)
		}
		if ProfilePurpose(name) == "" {
			t.Errorf("%s does not say what it is for", name)
		}
		judged := make(map[string]bool)
		for _, clause := range p.Contract.Clauses {
			if !strings.HasPrefix(clause.ID, name+"-") {
				t.Errorf("%s: the clause %q is not named after it", name, clause.ID)
			}
			ofCheck, _, _ := strings.Cut(clause.Need.Quantity.Metric, ".")
			judged[ofCheck] = true
		}
		for _, c := range p.Checks {
			if len(check.Sets(c.Config)) > 0 || len(check.Files(c.Config)) > 0 || len(check.Endpoints(c.Config)) > 0 {
				t.Errorf("%s: the check %s needs files or endpoints", name, c.Check.Name)
			}
			if !judged[c.Check.Name] {
				t.Errorf("%s: no clause judges the check %s", name, c.Check.Name)
			}
		}
		f, err := PlanProfile(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d requests, %d prompt tokens", name, f.Requests, f.PromptTokens)
		if name != "version" && f.Requests <= before {
			t.Errorf("%s asks %d requests, the profile before it %d", name, f.Requests, before)
		}
		before = f.Requests
	}
}

const profiled = `version: 1
name: profiled
variants:
  baseline: {url: "http://10.0.0.1"}
  candidate: {url: "http://10.0.0.2"}
`

func parsed(t *testing.T, text string) *Suite {
	t.Helper()
	s, err := Parse("suite.yaml", []byte(text), "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWhatTheSuiteSaysStands: a profile adds what is not there.
func TestWhatTheSuiteSaysStands(t *testing.T) {
	s := parsed(t, profiled+`profile: quick
checks:
  - context: {texts: 4, lengths: [600]}
contract:
  confidence: 90%
  clauses:
    - {id: mine, need: share(context.found) >= 10%}
    - {id: quick-context-found, need: share(context.found) >= baseline - 1 point}
`)
	quick, err := readProfile("quick")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Checks) != len(quick.Checks) || len(s.Contract.Contract.Clauses) != 1+len(quick.Contract.Clauses) {
		t.Errorf("%d checks and %d clauses, of a profile with %d and %d", len(s.Checks), len(s.Contract.Contract.Clauses), len(quick.Checks), len(quick.Contract.Clauses))
	}
	if first := s.Contract.Contract.Clauses[1]; first.Need.String() != "share(context.found) >= baseline - 1 point" {
		t.Errorf("the suite's clause became %s", first.Need)
	}
	if s.Contract.Contract.Confidence != 0.9 {
		t.Errorf("the suite's confidence became %v", s.Contract.Contract.Confidence)
	}
	f, err := s.Plan(t.Context(), 1)
	if err != nil || f.Checks[0].Check != "context" || f.Checks[0].Requests > 20 {
		t.Errorf("the suite's own check would ask %+v, %v", f.Checks[0], err)
	}
	_, dry, err := s.Dry(t.Context(), 1)
	if err != nil || dry.Requests != f.Requests {
		t.Errorf("dry: %d requests, planned %d, %v", dry.Requests, f.Requests, err)
	}
}

// TestARegistryDemandsAProfile: its checks and clauses are there, whatever the suite
// has beside them.
func TestARegistryDemandsAProfile(t *testing.T) {
	s := parsed(t, profiled+"profile: quick\nregistry: {at: baselines.db, demand: version}\n")
	for _, name := range ProfileChecks("version") {
		if !slices.ContainsFunc(s.Checks, func(c CheckRef) bool { return c.Check.Name == name }) {
			t.Errorf("the suite has no check %s", name)
		}
	}
	ids := make(map[string]bool)
	for _, c := range s.Contract.Contract.Clauses {
		ids[strings.SplitN(c.ID, "-", 2)[0]] = true
	}
	if !ids["quick"] || !ids["version"] {
		t.Errorf("clauses of %v", ids)
	}
}

func TestProfilesThatCannotBeAdded(t *testing.T) {
	for text, want := range map[string]string{
		profiled + "profile: quik\n": "quick",
		"version: 1\nname: one\nprofile: quick\nvariants: {candidate: {url: \"http://10.0.0.2\"}}\n":                                    "name two variants baseline and candidate",
		"version: 1\nname: one\nprofile: quick\nvariants: {a: {url: \"http://10.0.0.2\"}, b: {url: \"http://10.0.0.2\"}}\n":             "rename the one",
		"version: 1\nname: one\nchecks: []\nregistry: {at: b.db, demand: version}\nvariants: {candidate: {url: \"http://10.0.0.2\"}}\n": "name two variants",
	} {
		if _, err := Parse("suite.yaml", []byte(text), ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v does not say %q", text, err, want)
		}
	}
	s := parsed(t, profiled+"profile: quick\n")
	if err := s.AddProfile("full"); err == nil || !strings.Contains(err.Error(), "one of them is enough") {
		t.Errorf("two profiles: %v", err)
	}
	if _, err := ProfileText("stndard"); err == nil || !strings.Contains(err.Error(), "did you mean standard?") {
		t.Errorf("%v", err)
	}
}

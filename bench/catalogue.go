package bench

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/dimension"
	"github.com/assay-llm/assay/record"
)

// CheckRef is one check that a suite declares, with its configuration.
type CheckRef struct {
	check.Declared
	Under *Under       // nil: it is asked once, of an idle endpoint
	node  *config.Node // where its name stands
}

// underKey stands beside the name of a check that is to run under load, too.
const underKey = "under"

// DecodeConfig reads NAME: {…} by the configuration of the check of that name, and what
// it runs under beside it.
func (c *CheckRef) DecodeConfig(n *config.Node) {
	pairs := slices.DeleteFunc(slices.Clone(n.Pairs()), func(p config.Pair) bool { return p.Key == underKey })
	if n.Has(underKey) {
		c.Under, c.Busy = new(Under), true
		n.At(underKey).Decode(c.Under)
	}
	if len(pairs) != 1 {
		n.Fault("wants one check with its configuration", "write - shape: {set: cases.jsonl}; checks are "+strings.Join(checkNames(), ", "))
		return
	}
	p := pairs[0]
	found := findCheck(p.Key)
	if found == nil {
		hint := "checks are " + strings.Join(checkNames(), ", ")
		if near, ok := config.Nearest(p.Key, checkNames()); ok {
			hint = fmt.Sprintf("did you mean %s?", near)
		}
		p.KeyNode.Fault("there is no check of this name", hint)
		return
	}
	c.Check, c.node = found, p.KeyNode
	if found.Config == nil {
		if p.Value.IsMapping() && len(p.Value.Pairs()) > 0 {
			p.Value.Fault("the check takes no configuration", "write - "+p.Key+": {}")
		}
		return
	}
	c.Config = found.Config()
	p.Value.Decode(c.Config)
}

// ConfigSchema describes one check of the catalogue with its configuration.
func (CheckRef) ConfigSchema() map[string]any {
	properties := make(map[string]any)
	for _, c := range dimension.Catalogue() {
		properties[c.Name] = map[string]any{"description": c.Doc, "type": "object", "maxProperties": 0}
		if c.Config != nil {
			properties[c.Name] = map[string]any{"description": c.Doc, "allOf": []any{config.SchemaOf(c.Config())}}
		}
	}
	properties[underKey] = map[string]any{"description": "asks the check again while a workload runs at a rate", "allOf": []any{config.SchemaOf(Under{})}}
	asks := map[string]any{"required": []any{underKey}}
	return map[string]any{
		"type": "object", "additionalProperties": false, "minProperties": 1, "maxProperties": 2, "properties": properties,
		"if": asks, "then": map[string]any{"minProperties": 2}, "else": map[string]any{"maxProperties": 1},
	}
}

// MarshalYAML writes the check as suites do.
func (c CheckRef) MarshalYAML() (any, error) {
	out := map[string]any{c.Check.Name: map[string]any{}}
	if c.Config != nil {
		out[c.Check.Name] = c.Config
	}
	if c.Under != nil {
		out[underKey] = c.Under
	}
	return out, nil
}

func findCheck(name string) *check.Check {
	all := dimension.Catalogue()
	if i := slices.IndexFunc(all, func(c *check.Check) bool { return c.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

func checkNames() (names []string) {
	for _, c := range dimension.Catalogue() {
		names = append(names, c.Name)
	}
	return names
}

// Asking bounds what checks ask. The zero value has the defaults.
type Asking struct {
	PerEndpoint int   `yaml:"per_endpoint" min:"1" max:"1000" doc:"questions under way to one endpoint; 8 if left out"`
	Overall     int   `yaml:"overall" min:"1" max:"1000" doc:"questions under way to all endpoints together; 32 if left out"`
	Retries     *int  `yaml:"retries" min:"0" max:"10" doc:"further tries after a failure of transport, never after a bad answer; 2 if left out"`
	Budget      Spend `yaml:"budget" doc:"what all checks of the run may spend; no bound if left out"`

	Seal config.Secret `yaml:"seal" doc:"secret that answers which may do harm are sealed with in the run directory: env:NAME or file:PATH, 16 bytes or more; without it they are not kept, and a run that goes on asks for them anew"`
}

// Spend bounds tokens and money.
type Spend struct {
	Tokens config.Count `yaml:"tokens" doc:"prompt and output tokens, such as 2M"`
	Money  float64      `yaml:"money" min:"0" doc:"in the currency of the prices of the variants and judges"`
}

// checkChecks reports checks that do not fit together, or a workload of a check's
// name.
func (s *Suite) checkChecks(n *config.Node) {
	seen := make(map[string]bool)
	var declared []check.Declared
	for _, c := range s.Checks {
		if c.Check == nil {
			return // said already
		}
		name := c.Check.Name
		if _, taken := s.Workloads.Get(name); taken {
			c.node.Fault("is the name of a workload too, and contracts could not tell them apart", "give the workload another name")
		}
		if seen[name] {
			c.node.Fault("stands here twice", "remove one of them")
			return
		}
		seen[name] = true
		if u := c.Under; u != nil {
			if _, ok := s.Workloads.Get(u.Workload); !ok {
				c.node.Fault(fmt.Sprintf("runs under %s, which is no workload of the suite", u.Workload), "name one of workloads: "+strings.Join(s.Workloads.Keys(), ", "))
			}
		}
		declared = append(declared, c.Declared)
	}
	if _, err := check.Order(declared); err != nil {
		n.Fault(err.Error(), "remove one of them")
	}
}

// checked is what the contract must know of the declared checks.
func (s *Suite) checked() (out []contract.Checked) {
	for _, c := range s.Checks {
		if c.Check != nil {
			out = append(out, contract.Checked{Name: c.Check.Name, Metrics: c.Metrics()})
			if twin, ok := c.Twin(); ok {
				out = append(out, contract.Checked{Name: twin.Check.Name, Metrics: twin.Metrics()})
			}
		}
	}
	return out
}

// places are the names that a clause's on may give: workloads and checks.
func (s *Suite) places() []string {
	names := slices.Clone(s.Workloads.Keys())
	for _, c := range s.Checks {
		names = append(names, c.Check.Name)
		if c.Under != nil {
			names = append(names, c.Check.Name+check.BusySuffix)
		}
	}
	return names
}

// readCheckSets reads the sets of cases that checks name.
func (s *Suite) readCheckSets(read func(at *config.Node, file, format string) config.Faults) (faults config.Faults) {
	for _, c := range s.Checks {
		for _, ref := range check.Sets(c.Config) {
			if s.sets[ref.File] != nil {
				continue
			}
			faults = append(faults, read(c.node, ref.File, ref.Format)...)
			if set := s.sets[ref.File]; set != nil && len(set.Cases) == 0 {
				faults = append(faults, c.node.Mark(fmt.Sprintf("%s has no cases to ask", ref.File), "name a file with a prompt or messages in each line"))
			}
		}
	}
	return faults
}

// readCheckFiles reads the other files that checks name.
func (s *Suite) readCheckFiles(root *os.Root) (faults config.Faults) {
	for _, c := range s.Checks {
		for _, ref := range check.Files(c.Config) {
			data, err := readSome(root, string(ref))
			if err == nil && len(data) >= maxFile {
				err = fmt.Errorf("it is longer than %d MiB", maxFile>>20)
			}
			if err != nil {
				faults = append(faults, c.node.Mark(fmt.Sprintf("reading %s: %v", ref, reason(err)), "name a file in the suite's folder or below it"))
				continue
			}
			s.files[ref] = data
			faults = append(faults, s.unsound(c, ref, data)...)
		}
	}
	return faults
}

// unsound reports what is wrong in a file that a check reads, if the check can tell
// before anything is asked.
func (s *Suite) unsound(c CheckRef, ref check.FileRef, data []byte) config.Faults {
	reader, ok := c.Config.(check.FileReader)
	if !ok {
		return nil
	}
	err := reader.CheckFile(filepath.Join(filepath.Dir(s.file), string(ref)), data)
	if theirs, ok := errors.AsType[config.Faults](err); ok {
		return theirs
	} else if err != nil {
		return config.Faults{c.node.Mark(fmt.Sprintf("reading %s: %v", ref, err), "mend the file, or name another one")}
	}
	return nil
}

// evidenceOf says what the checks of a run give to a contract.
func evidenceOf(declared []contract.Checked, outcomes []*check.Outcome) []contract.Checked {
	out := slices.Clone(declared)
	for i := range out {
		c := &out[i]
		k := slices.IndexFunc(outcomes, func(o *check.Outcome) bool { return o.Check == c.Name })
		if k < 0 {
			c.Why = didNotRun
			continue
		}
		o := outcomes[k]
		c.Why, c.Signatures, c.Estimates, c.Metrics = o.Why, o.Signatures, o.Estimates, nil
		for _, v := range o.Values {
			c.Metrics = append(c.Metrics, v.Metric(c.Name))
		}
	}
	return out
}

// outcomesOf returns an outcome for every declared check.
func outcomesOf(declared []CheckRef, outcomes []*check.Outcome) (out []*check.Outcome) {
	for _, c := range declared {
		k := slices.IndexFunc(outcomes, func(o *check.Outcome) bool { return o.Check == c.Check.Name })
		if k < 0 {
			o := &check.Outcome{Check: c.Check.Name, Why: didNotRun}
			if c.Check.Values != nil {
				o.Values = c.Check.Values(c.Config)
			}
			out = append(out, o)
			continue
		}
		out = append(out, outcomes[k])
	}
	return out
}

const didNotRun = "it did not run"

// loaded leaves out the records of checks, which are no load.
func loaded(records []record.Record, declared []contract.Checked) []record.Record {
	if len(declared) == 0 {
		return records
	}
	return slices.DeleteFunc(slices.Clone(records), func(r record.Record) bool {
		return slices.ContainsFunc(declared, func(c contract.Checked) bool { return c.Name == r.Workload })
	})
}

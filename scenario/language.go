package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-llm/assay/config"
)

// Scenario is one dialogue: what the user says, and what it does to the state. It
// comes from [Read] or [Generate], which check it, and is read-only from there.
type Scenario struct {
	ID       string           `yaml:"id,required" doc:"name of the scenario, unique in its file"`
	Language string           `yaml:"language" oneof:"en,zh" doc:"language of the side questions; en if left out"`
	Domain   string           `yaml:"domain" doc:"what it is about, such as billing; reports group by it"`
	System   string           `yaml:"system" doc:"system message before the dialogue"`
	Slots    config.Map[Slot] `yaml:"slots,required" doc:"what is to be kept in mind, by name"`
	Turns    []Turn           `yaml:"turns,required" most:"64" doc:"what the user says, turn by turn"`

	nodes []node
	turns []compiled // what each turn comes to; by turn
}

// Slot is something that a value is kept of.
type Slot struct {
	Kind   string   `yaml:"kind,required" oneof:"enum,number,money,date,text" doc:"how its values are read: one of a list, a number, an amount of money, a date, or text such as a reference"`
	Names  []string `yaml:"names" most:"32" doc:"words by which replies call it; its name is always one of them"`
	Values []Choice `yaml:"values" most:"64" doc:"the values of an enum; each one text, or a list of its forms of which the first is its name"`
}

// Choice is one value of an enum: its name, and other forms of it.
type Choice []string

// DecodeConfig reads one text, or a list of texts.
func (c *Choice) DecodeConfig(n *config.Node) {
	items := []*config.Node{n}
	if n.IsSequence() {
		items = n.Items()
	}
	for _, item := range items {
		var g Given
		if g.DecodeConfig(item); g != "" {
			*c = append(*c, string(g))
		}
	}
	if n.IsSequence() && len(items) == 0 {
		n.Fault("wants the forms of a value, got an empty list", "write the value as text")
	}
}

// ConfigSchema describes both forms.
func (Choice) ConfigSchema() map[string]any {
	return map[string]any{"oneOf": []any{config.SchemaOf(Given("")), map[string]any{"type": "array", "items": config.SchemaOf(Given("")), "minItems": 1}}}
}

// MarshalYAML writes the short form where it is enough.
func (c Choice) MarshalYAML() (any, error) {
	if len(c) == 1 {
		return c[0], nil
	}
	return []string(c), nil
}

// Given is a value as it is written: text, or a bare number.
type Given string

// DecodeConfig reads any scalar as it stands.
func (g *Given) DecodeConfig(n *config.Node) {
	if !n.IsScalar() || n.Kind() == config.Null || strings.TrimSpace(n.Scalar()) == "" {
		n.Fault("wants a value, got "+n.Kind().String(), "write text or a number")
		return
	}
	*g = Given(n.Scalar())
}

// ConfigSchema describes a scalar.
func (Given) ConfigSchema() map[string]any {
	return map[string]any{"type": []string{"string", "number", "boolean"}}
}

// Turn is what the user says once, what that does, and what is expected of the
// reply.
type Turn struct {
	Name      string             `yaml:"name" doc:"name by which as_of of later turns refers to it"`
	User      string             `yaml:"user,required" doc:"what the user says"`
	Assistant string             `yaml:"assistant" doc:"reply of the reference transcript, which scripted replay puts into the history"`
	Scope     string             `yaml:"scope" doc:"whom or what the values of this turn are for, such as a second account; the whole dialogue if left out"`
	Sets      config.Map[Given]  `yaml:"sets" doc:"slots that the user states or changes, with their values"`
	Implies   config.Map[Source] `yaml:"implies" doc:"slots whose value the turn relies on without stating it, and where that comes from"`
	Cancels   []string           `yaml:"cancels" doc:"slots that hold no more from here on"`
	Forbids   []string           `yaml:"forbids" doc:"questions that the reply must not ask: ask(SLOT)"`
	Expect    *Expect            `yaml:"expect" doc:"what the reply has to do"`

	forbids []string // the slots of Forbids
}

// Source says where an implied value comes from: exactly one of its forms.
type Source struct {
	From        string   // the slot that it is the value of
	AsOf        string   // a turn, by its name or number from 1, after which that slot had it; "": now
	Ambiguous   []string // the values that it could be, none of which is said to be it
	Missing     bool     // nothing said so far tells it
	Contradicts string   // what the user takes the slot to be, against the state
}

// sourceFields is a Source as it is written.
type sourceFields struct {
	From        string  `yaml:"from" doc:"the slot whose value is meant"`
	AsOf        Given   `yaml:"as_of" doc:"the turn after which it had that value: its name, or its number from 1; now if left out"`
	Ambiguous   []Given `yaml:"ambiguous" doc:"values between which nothing said so far decides"`
	Missing     bool    `yaml:"missing" doc:"true: nothing said so far tells the value"`
	Contradicts Given   `yaml:"contradicts" doc:"the value that the user believes the slot to have, against what was said"`
}

// DecodeConfig reads a source: a mapping, or the word missing.
func (s *Source) DecodeConfig(n *config.Node) {
	if n.IsScalar() {
		if s.Missing = n.Scalar() == "missing"; !s.Missing {
			n.Fault("wants where the value comes from, got "+strconv.Quote(n.Scalar()), "write missing, {from: SLOT}, {ambiguous: [A, B]} or {contradicts: VALUE}")
		}
		return
	}
	var f sourceFields
	if !n.Decode(&f) {
		return
	}
	forms := 0
	for _, has := range []bool{f.From != "", len(f.Ambiguous) > 0, f.Missing, f.Contradicts != ""} {
		if has {
			forms++
		}
	}
	if forms != 1 || f.AsOf != "" && f.From == "" {
		n.Fault(fmt.Sprintf("wants one source, got %d", forms), "write one of from (with as_of, if an earlier turn is meant), ambiguous, missing and contradicts")
		return
	}
	*s = Source{From: f.From, AsOf: string(f.AsOf), Missing: f.Missing, Contradicts: string(f.Contradicts)}
	for _, g := range f.Ambiguous {
		s.Ambiguous = append(s.Ambiguous, string(g))
	}
}

// ConfigSchema describes both forms.
func (Source) ConfigSchema() map[string]any {
	return map[string]any{"oneOf": []any{map[string]any{"const": "missing"}, config.SchemaOf(sourceFields{})}}
}

// MarshalYAML writes the source as files do.
func (s Source) MarshalYAML() (any, error) {
	if s.Missing {
		return "missing", nil
	}
	f := sourceFields{From: s.From, AsOf: Given(s.AsOf), Contradicts: Given(s.Contradicts)}
	for _, a := range s.Ambiguous {
		f.Ambiguous = append(f.Ambiguous, Given(a))
	}
	return f, nil
}

// Expect is what a reply has to do. Clarifies follows by itself from an implied
// value that is ambiguous or missing; stating it asks for a check that it does.
type Expect struct {
	Mentions  config.Map[Given] `yaml:"mentions" doc:"values that the reply has to assert"`
	Not       config.Map[Given] `yaml:"not" doc:"values that it must not assert, such as the one before an update"`
	Clarifies string            `yaml:"clarifies" doc:"the slot that it has to ask for"`
}

// File is a document of scenarios as it is written; [Read] reads and checks it.
type File struct {
	Version   int         `yaml:"version,required" min:"1" max:"1" doc:"of the language: 1"`
	Scenarios []*Scenario `yaml:"scenarios,required" most:"1000" doc:"the dialogues"`
}

// Read reads a file of scenarios. The error is a config.Faults with everything that
// is wrong in it: keys and values, references that lead nowhere, slots that are used
// before they are introduced, expectations that contradict each other or the state,
// and scenarios that expect nothing.
func Read(name string, data []byte) ([]*Scenario, error) {
	var (
		f   File
		top *config.Node
	)
	if err := config.Decode(name, data, &f, config.Root(&top)); err != nil {
		return nil, err
	}
	var faults config.Faults
	seen := make(map[string]bool)
	for i, n := range top.At("scenarios").Items() {
		s := f.Scenarios[i]
		if seen[s.ID] {
			faults = append(faults, n.At("id").Mark("is the id of an earlier scenario, too", "give each scenario an id of its own"))
		}
		seen[s.ID] = true
		faults = append(faults, s.compile(n)...)
	}
	if len(faults) == 0 {
		return f.Scenarios, nil
	}
	faults.Sort()
	if more := len(faults) - config.MaxFaults; more > 0 {
		faults = append(faults[:config.MaxFaults-1:config.MaxFaults-1], top.Mark(fmt.Sprintf("has %d more faults", more+1), "mend the ones above first"))
	}
	return nil, faults
}

// Write returns a file of scenarios that Read reads.
func Write(scenarios []*Scenario) ([]byte, error) {
	return config.Encode(File{Version: 1, Scenarios: scenarios})
}

// Scripted reports whether every turn has a reference reply, which scripted replay
// needs.
func (s *Scenario) Scripted() bool {
	return !slices.ContainsFunc(s.Turns, func(t Turn) bool { return t.Assistant == "" })
}

func (s *Scenario) chinese() bool { return s.Language == "zh" }

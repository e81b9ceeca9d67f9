package check

import (
	"cmp"
	"context"

	"github.com/assay-llm/assay/record"
)

// Check is one kind of judgement about answers. It is data and one function, so
// that a catalogue of checks is a list of values. A Check is not changed once it
// is in use.
type Check struct {
	Name string // as suites spell it, one lower-case word: "fidelity"
	Doc  string // one sentence, for help and reports

	// Config returns a pointer to a fresh configuration struct with its defaults set.
	// Package config decodes what the suite says into it, strictly; a Checker or
	// Decoder of the struct is called as everywhere. nil: the check takes nothing.
	// A [SetRef] or [FileRef] anywhere in the struct is read with the suite; an [Endpoint]
	// can be asked through Pass.Judge and Pass.Embedder.
	Config func() any

	// Values lists what the check writes on records, and what it estimates as a
	// whole, given its decoded configuration, so that a contract that names a value
	// which nobody writes is refused before anything is asked. nil: none.
	Values func(config any) []Value

	Offline bool // it asks nobody, and reads files alone; any other check that asked nothing proves nothing

	Needs []Capability // without one of them proven of every variant, it cannot run
	Wants []Capability // it does better with them: see Subject.Can
	Reads []string     // checks whose outcomes it reads if the suite has them: they run before it

	// Run asks and judges. An error, and a panic, make the check inconclusive with
	// that reason; what it wrote before stays, as evidence and not as a pass.
	Run func(ctx context.Context, p *Pass) error
}

// Value describes a number that a check writes on the records of the cases it
// asked, or one of the whole check. A contract names it CHECK.NAME:
// mean(fidelity.judge), estimate(fidelity.corrected).
type Value struct {
	Name  string      // within the check: "judge", "json_valid"
	Title string      // as tables show it
	Doc   string      // the definition, with its formula
	Unit  record.Unit // record.Points if ""; of a yes-or-no value always record.Proportion

	YesNo  bool // each number is 0 or 1: the value has a share, not a mean
	Whole  bool // it is no number of a case but one of the whole check, which [Pass.Estimate] writes: estimate(context.effective_length)
	Higher bool // larger is better; else smaller is

	// Least and Most bound every number, so that what is missing can be counted as
	// the worst and as the best that it could have been. Both 0: there is no bound,
	// and a missing number leaves whatever rests on it inconclusive. Of a yes-or-no
	// value they are 0 and 1 whatever they say.
	Least, Most float64
}

// Bounds returns the least and the largest number that the value can have; ok
// is false if there are none.
func (v Value) Bounds() (least, most float64, ok bool) {
	if v.YesNo {
		return 0, 1, true
	}
	return v.Least, v.Most, v.Least < v.Most
}

// Metric returns the value as contracts and reports know it.
func (v Value) Metric(check string) record.Metric {
	m := record.Metric{Name: check + "." + v.Name, Title: cmp.Or(v.Title, v.Name), Unit: cmp.Or(v.Unit, record.Points), Doc: v.Doc, Higher: v.Higher, Indicator: v.YesNo, Check: check}
	if v.YesNo {
		m.Unit = record.Proportion
	}
	if least, most, ok := v.Bounds(); ok {
		m.Least, m.Most = least, most
	}
	if v.Whole {
		m.Whole, m.Unit, m.Indicator = true, cmp.Or(v.Unit, record.Points), false
		return m
	}
	return record.Written(m)
}

// Metrics returns the values that a declared check writes.
func (d Declared) Metrics() (out []record.Metric) {
	if d.Check.Values == nil {
		return nil
	}
	for _, v := range d.Check.Values(d.Config) {
		out = append(out, v.Metric(d.Check.Name))
	}
	return out
}

// Capability names something that an endpoint may be able to do. It is not
// believed because an API documents it: a probe has to have seen it.
type Capability string

// The capabilities. A probe may prove others; these are what checks of this
// module ask for.
const (
	CapChoices         Capability = "choices"          // n > 1 gives as many answers of one request
	CapSeed            Capability = "seed"             // an equal seed gives an equal answer, on an idle endpoint
	CapSeedLoaded      Capability = "seed.loaded"      // … also under concurrent load
	CapDeterminism     Capability = "greedy"           // temperature 0 gives equal answers, on an idle endpoint
	CapDeterminismLoad Capability = "greedy.loaded"    // … also under concurrent load
	CapLogprobs        Capability = "logprobs"         // sound log-probabilities of the answer's tokens; Level: how many alternatives
	CapLogprobsRaw     Capability = "logprobs.raw"     // … from before sampling: temperature does not change them
	CapPromptLogprobs  Capability = "prompt_logprobs"  // sound log-probabilities of the prompt's tokens
	CapLogitBias       Capability = "logit_bias"       // a banned token does not come
	CapSchema          Capability = "schema"           // an answer obeys a JSON schema
	CapTools           Capability = "tools"            // an answer can call a tool
	CapTokenizer       Capability = "tokenizer"        // the endpoint tokenises on request
	CapRefusesOverlong Capability = "refuses_overlong" // a prompt above the context window is refused, not cut
)

// Standing is what is known of a capability. The zero Standing is that nobody
// looked.
type Standing uint8

// The standings.
const (
	Unknown Standing = iota // nobody looked, or what was seen proves nothing
	Absent                  // it was asked for, and did not come
	Proven                  // it was seen
)

var standings = [...]string{"unknown", "absent", "proven"}

// String returns unknown, absent or proven.
func (s Standing) String() string {
	if int(s) >= len(standings) {
		return standings[Unknown]
	}
	return standings[s]
}

// MarshalText writes the word.
func (s Standing) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word; one that it does not know is unknown.
func (s *Standing) UnmarshalText(b []byte) error {
	*s = Unknown
	for i, word := range standings {
		if string(b) == word {
			*s = Standing(i)
		}
	}
	return nil
}

// Proof is what is known of one capability of one endpoint, and from what.
type Proof struct {
	Standing Standing `json:"standing"`
	Level    int      `json:"level,omitempty"`  // how much of it, where that means something: alternatives with log-probabilities, tokens of context
	Detail   string   `json:"detail,omitempty"` // what was seen, in one printable sentence
}

// Capabilities is what is known of one endpoint. What is not in it is unknown.
type Capabilities map[Capability]Proof

// Has reports whether the capability is proven.
func (c Capabilities) Has(what Capability) bool { return c[what].Standing == Proven }

package lock

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-llm/assay/config"
)

// Version is that of the form of the file.
const Version = 1

// Schema names the JSON form of a Lock.
const Schema = "assay.lock/1"

// Lock is what a run depends on. The zero Lock depends on nothing; it is no lock of any
// run. A Lock is a value: the maps are not shared.
type Lock struct {
	Version  int             `yaml:"version,required" json:"version" doc:"version of this format: 1"`
	Suite    string          `yaml:"suite,required" json:"suite" doc:"name of the suite"`
	Program  Part            `yaml:"program" json:"program" doc:"the build of assay that measures"`
	Test     Part            `yaml:"test" json:"test" doc:"digests of what is sent, asked and demanded; comments and order of keys are no part of them"`
	Seeds    Part            `yaml:"seeds" json:"seeds" doc:"the seed of the run, and the digests of the plans that follow from it by the names of the workloads"`
	Data     Part            `yaml:"data" json:"data" doc:"digests of every file that the suite names"`
	Variants map[string]Part `yaml:"variants" json:"variants" doc:"who is measured: engine, flags, weights, tokenizer, template, hardware"`
	Client   Part            `yaml:"client" json:"client" doc:"the machine that measures"`
	Volatile Part            `yaml:"volatile" json:"volatile" doc:"what may differ between equal environments, and is no part of the digest"`
}

// Part is facts by name. A nil Part has none, and cannot be written to.
type Part map[string]Fact

// Fact is something that a run depends on, or why it is not known. Exactly one of the
// two is set; the zero Fact is one that nobody looked for.
type Fact struct {
	Value   string // printable, on one line
	Unknown string // the reason, in a few words
}

// Known is a fact with a value. Control characters become spaces and a long text its
// beginning with a digest of the whole: what servers say may be anything.
func Known(value string) Fact {
	value = printable(value)
	switch {
	case value == "":
		return Fact{Value: "none"}
	case len(value) > longest:
		return Fact{Value: strings.ToValidUTF8(value[:40], "") + "… " + Digest([]byte(value))}
	}
	return Fact{Value: value}
}

// longest is how long a value may be, in bytes.
const longest = 200

// NotKnown is a fact that could not be learnt.
func NotKnown(format string, args ...any) Fact {
	reason := printable(fmt.Sprintf(format, args...))
	if len(reason) > longest {
		reason = strings.ToValidUTF8(reason[:longest], "") + "…"
	}
	return Fact{Unknown: reason}
}

func printable(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	return strings.TrimSpace(strings.Map(func(c rune) rune {
		if c < ' ' || c >= 0x7f && c < 0xa0 || c == 0xfeff || c >= 0x2028 && c <= 0x202e || c >= 0x200b && c <= 0x200f || c >= 0x2060 && c <= 0x206f {
			return ' '
		}
		return c
	}, s))
}

// Digest returns how digests are written: sha256: and 64 hex digits.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// String returns the value, or unknown with the reason.
func (f Fact) String() string {
	if f.known() {
		return f.Value
	}
	return "unknown: " + f.why()
}

func (f Fact) known() bool { return f.Value != "" }

func (f Fact) why() string {
	if f.Unknown == "" {
		return "nobody looked for it"
	}
	return f.Unknown
}

// unknownFact is how a fact without a value is written.
type unknownFact struct {
	Unknown string `yaml:"unknown,required" json:"unknown"`
}

// DecodeConfig reads a text, or {unknown: REASON}.
func (f *Fact) DecodeConfig(n *config.Node) {
	if n.IsMapping() {
		var u unknownFact
		if n.Decode(&u) {
			*f = Fact{Unknown: u.Unknown}
		}
		return
	}
	if s, ok := n.Text(); ok {
		if *f = (Fact{Value: s}); s == "" {
			n.Fault("is empty", "write the value, or {unknown: why}")
		}
	}
}

// ConfigSchema describes both forms.
func (Fact) ConfigSchema() map[string]any {
	return map[string]any{"oneOf": []any{map[string]any{"type": "string", "minLength": 1}, config.SchemaOf(unknownFact{})}}
}

// MarshalYAML writes what DecodeConfig reads.
func (f Fact) MarshalYAML() (any, error) {
	if f.known() {
		return f.Value, nil
	}
	return unknownFact{f.why()}, nil
}

// MarshalJSON writes the same as JSON.
func (f Fact) MarshalJSON() ([]byte, error) {
	if f.known() {
		return json.Marshal(f.Value)
	}
	return json.Marshal(unknownFact{f.why()})
}

// CheckConfig reports a file of another version.
func (l *Lock) CheckConfig(n *config.Node) {
	if l.Version != Version {
		n.At("version").Fault(fmt.Sprintf("is %d, but this program reads version %d", l.Version, Version), "make the lock anew: assay lock SUITE")
	}
}

// Parse reads a lock file. The error is a config.Faults.
func Parse(file string, data []byte) (*Lock, error) {
	l := new(Lock)
	if err := config.Decode(file, data, l); err != nil {
		return nil, err
	}
	return l, nil
}

// Encode writes the lock as Parse reads it, with words for its reader before it.
func (l *Lock) Encode() ([]byte, error) {
	text, err := config.Encode(l)
	if err != nil {
		return nil, fmt.Errorf("writing the lock of %s: %w", l.Suite, err)
	}
	head := "# What a run of this suite depends on, made by assay lock. assay run --locked refuses to run when\n" +
		"# something here is not so any more, except what is volatile. Its digest: " + l.Digest() + "\n"
	return append([]byte(head), text...), nil
}

// JSON writes the lock as one object of Schema.
func (l *Lock) JSON() ([]byte, error) {
	type fields Lock
	return json.Marshal(struct {
		Schema string `json:"schema"`
		Digest string `json:"digest"`
		*fields
	}{Schema, l.Digest(), (*fields)(l)})
}

// Digest is that of the identity: of all facts that are not benign. What is not known
// counts as unknown, whatever the reason.
func (l *Lock) Digest() string {
	var b strings.Builder
	fmt.Fprintf(&b, "assay.lock/%d %q\n", Version, l.Suite)
	facts := l.facts()
	for _, at := range slices.SortedFunc(maps.Keys(facts), place.compare) {
		f := facts[at]
		if class, _ := at.policy(); class <= Equivalent {
			continue
		}
		if !f.known() {
			fmt.Fprintf(&b, "%q unknown\n", at)
			continue
		}
		fmt.Fprintf(&b, "%q %q\n", at, f.Value)
	}
	return Digest([]byte(b.String()))
}

// Set sets a fact of a variant.
func (l *Lock) Set(variant, name string, f Fact) {
	if l.Variants == nil {
		l.Variants = make(map[string]Part)
	}
	if l.Variants[variant] == nil {
		l.Variants[variant] = make(Part)
	}
	l.Variants[variant][name] = f
}

// Of returns the lock with one variant only, under the name "variant", so that variants
// of different names can be compared; ok is false if there is none of that name.
func (l *Lock) Of(variant string) (_ *Lock, ok bool) {
	part, ok := l.Variants[variant]
	if !ok {
		return nil, false
	}
	out := *l
	out.Variants = map[string]Part{"variant": part}
	out.Volatile = make(Part)
	for name, f := range l.Volatile {
		of, what, isOf := strings.Cut(name, " ")
		switch {
		case isOf && of == variant:
			out.Volatile["variant "+what] = f
		case !isOf:
			out.Volatile[name] = f
		}
	}
	return &out, true
}

// Unknown lists the facts that are not known, in order.
func (l *Lock) Unknown() (out []Field) {
	facts := l.facts()
	for _, at := range slices.SortedFunc(maps.Keys(facts), place.compare) {
		if class, why := at.policy(); !facts[at].known() && class > Equivalent {
			out = append(out, Field{Path: at.String(), Class: class, Why: why, A: facts[at], B: facts[at]})
		}
	}
	return out
}

// place is where a fact stands. Variant is "" outside of variants.
type place struct{ part, variant, name string }

func (p place) String() string {
	if p.variant != "" {
		return "variants." + p.variant + "." + p.name
	}
	return p.part + "." + p.name
}

func (p place) compare(o place) int {
	order := func(x place) int { return slices.Index(partNames, x.part) }
	if d := order(p) - order(o); d != 0 {
		return d
	}
	return strings.Compare(p.variant+"\x00"+p.name, o.variant+"\x00"+o.name)
}

// partNames lists the parts in the order in which they matter to a reader.
var partNames = []string{"variants", "data", "test", "seeds", "program", "client", "volatile"}

// facts lists everything by its place.
func (l *Lock) facts() map[place]Fact {
	out := make(map[place]Fact)
	for name, part := range map[string]Part{"program": l.Program, "test": l.Test, "seeds": l.Seeds, "data": l.Data, "client": l.Client, "volatile": l.Volatile} {
		for key, f := range part {
			out[place{part: name, name: key}] = f
		}
	}
	for variant, part := range l.Variants {
		for key, f := range part {
			out[place{"variants", variant, key}] = f
		}
	}
	return out
}

package contract

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// Reference is what limits of the form `reference * 1.05` refer to: values that
// somebody registered, of a run that is not at hand any more. The zero Reference
// registers nothing.
type Reference struct {
	File   string       // whose values they are; "": in place. See [Contract.Refer]
	Values []Registered // nil: nothing, or the file is not read yet
}

// Registered is one value of a Reference.
type Registered struct {
	Quantity Quantity
	Workload string  // "": any
	Value    float64 // in the unit of the quantity

	// Figures are the value with its intervals, at one confidence each, where who
	// registered it kept them; nil: the value is taken as exact.
	Figures []stat.Estimate

	// Signature says how the value of a check came about; nil: it is of none, or nobody
	// tells. A value of another signature is not held against it.
	Signature *record.Signature

	text string
}

// at is the value with the least wide interval whose confidence is at least that.
func (v Registered) at(confidence float64) stat.Estimate {
	if len(v.Figures) == 0 {
		return registeredEstimate(v.Value, confidence)
	}
	best, most := stat.Estimate{}, 0.0
	for _, e := range v.Figures {
		if e.Confidence >= confidence-1e-9 && (best.Confidence == 0 || e.Confidence < best.Confidence) {
			best = e
		}
		most = max(most, e.Confidence)
	}
	if best.Confidence == 0 {
		why := fmt.Sprintf("its interval is registered at %s at most, and the clause asks for %s", percentage((1+most)/2), percentage((1+confidence)/2))
		return none(why, confidence).est
	}
	return best
}

func registeredKey(q Quantity, workload string) string {
	if workload == "" {
		return q.String()
	}
	return q.String() + " on " + workload
}

// get finds the value for a quantity on a workload: its own, or that of any.
func (r *Reference) get(q Quantity, workload string) (Registered, bool) {
	for _, w := range []string{workload, ""} {
		if i := slices.IndexFunc(r.Values, func(v Registered) bool { return v.Quantity == q && v.Workload == w }); i >= 0 {
			return r.Values[i], true
		}
	}
	return Registered{}, false
}

// has reports whether the quantity is registered, on any workload.
func (r *Reference) has(q Quantity) bool {
	return slices.ContainsFunc(r.Values, func(v Registered) bool { return v.Quantity == q })
}

// IsZero reports whether nothing is registered.
func (r Reference) IsZero() bool { return r.File == "" && len(r.Values) == 0 }

// MarshalYAML writes the values in place, wherever they came from.
func (r Reference) MarshalYAML() (any, error) {
	if len(r.Values) == 0 {
		return r.File, nil
	}
	out := make(map[string]string, len(r.Values))
	for _, v := range r.Values {
		out[registeredKey(v.Quantity, v.Workload)] = v.text
	}
	return out, nil
}

// ConfigSchema describes a file or values in place.
func (Reference) ConfigSchema() map[string]any {
	return map[string]any{"oneOf": []any{
		map[string]any{"type": "string", "minLength": 1},
		map[string]any{"type": "object", "additionalProperties": map[string]any{"type": []any{"string", "number"}}, "examples": []any{map[string]any{"p99(ttft)": "640ms", "share(failed) on chat": "0.5%"}}},
	}}
}

// DecodeConfig reads the name of a file, or values such as p99(ttft): 640ms.
func (r *Reference) DecodeConfig(n *config.Node) {
	if !n.IsMapping() {
		if name, ok := n.Text(); ok {
			if r.File = name; name == "" {
				n.Fault("wants the name of a file, got empty text", "write reference: baseline.yaml, or remove the key")
			}
		}
		return
	}
	if k := len(n.Pairs()); k > mostClauses {
		n.Fault(fmt.Sprintf("registers %s values; the limit is %s", grouped(fmt.Sprint(k)), grouped(fmt.Sprint(mostClauses))), "keep those that clauses refer to")
		return
	}
	for _, p := range n.Pairs() {
		v, err := parseRegistered(p.Key, p.Value.Scalar())
		if e, is := err.(*NeedError); is {
			p.KeyNode.Fault(e.What, e.Hint)
			continue
		}
		if _, twice := r.get(v.Quantity, v.Workload); twice && slices.ContainsFunc(r.Values, func(o Registered) bool { return o.Quantity == v.Quantity && o.Workload == v.Workload }) {
			p.KeyNode.Fault(fmt.Sprintf("%s is registered twice", registeredKey(v.Quantity, v.Workload)), "remove one of them")
			continue
		}
		r.Values = append(r.Values, v)
	}
	slices.SortFunc(r.Values, func(a, b Registered) int {
		return cmp.Compare(registeredKey(a.Quantity, a.Workload), registeredKey(b.Quantity, b.Workload))
	})
}

// parseRegistered reads "p99(ttft) on chat" and "640ms" with the grammar of
// needs, since a registered value is what a need compares with.
func parseRegistered(key, value string) (Registered, error) {
	text, workload, _ := strings.Cut(key, " on ")
	n, err := ParseNeed(text + " <= " + value)
	if err == nil && n.Limit.relative() {
		err = &NeedError{What: "a registered value is a quantity", Hint: "write such as p99(ttft): 640ms"}
	}
	if err != nil {
		return Registered{}, err
	}
	return Registered{Quantity: n.Quantity, Workload: strings.TrimSpace(workload), Value: n.Limit.Value, text: n.Limit.text}, nil
}

// registry is the form of a file of registered values.
type registry struct {
	Version int       `yaml:"version,required" doc:"version of this format: 1"`
	Name    string    `yaml:"name" doc:"where the values come from"`
	Values  Reference `yaml:"values,required" doc:"values such as p99(ttft): 640ms"`
}

// CheckConfig refuses other versions, and a file that refers to a file.
func (r *registry) CheckConfig(n *config.Node) {
	if r.Version != 1 {
		n.At("version").Fault(fmt.Sprintf("this program reads version 1, not %d", r.Version), "write version: 1")
	}
	if r.Values.File != "" {
		n.At("values").Fault("wants values, got the name of a file", "write values: {p99(ttft): 640ms}")
	}
}

// Refer reads the file of registered values that the contract names, if it does,
// and puts the values in place. read is given the name as it is written.
func (c *Contract) Refer(read func(name string) ([]byte, error)) error {
	if c == nil || c.Reference.File == "" || len(c.Reference.Values) > 0 {
		return nil
	}
	data, err := read(c.Reference.File)
	if err != nil {
		return fmt.Errorf("reading the reference: %w", err)
	}
	var r registry
	if err := config.Decode(c.Reference.File, data, &r); err != nil {
		return err
	}
	c.Reference.Values = r.Values.Values
	return nil
}

// refer makes the registered value the yardstick.
func (x *trial) refer(j *judge) {
	v, ok := j.reference.get(x.clause.Need.Quantity, x.Workload)
	if x.has = ok; !ok {
		return
	}
	x.b.est = v.at(x.two())
	switch {
	case v.Signature == nil:
	case x.Signature == nil:
		x.b.gap = "the registered value came about in a way that is known, and that of this run is not"
	default:
		if why := x.Signature.Differs(v.Signature); why != "" {
			x.b.gap = "the registered value came about in another way: " + why
		}
	}
	x.Baseline = &Figure{x.b.est}
	if len(v.Figures) == 0 {
		x.note("the registered value is taken as exact: how far off it is, this run cannot tell")
	}
}

// Against holds a candidate's estimate against a registered one, both of the
// need's quantity and in this unit of it, as [Evaluate] does with the records of the
// candidate: the change, and what it shows of the need. A need that refers to no
// yardstick is inconclusive.
func (n Need) Against(unit record.Unit, candidate, registered stat.Estimate) (stat.Estimate, Grade) {
	if !n.Limit.relative() || !n.bound && n.checkUnit(unit) != nil {
		return stat.Estimate{Value: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1)}, Inconclusive
	}
	kind, limit := changeOf(n.Limit, unit)
	diff := stat.Difference(candidate, registered)
	if kind == ChangeRatio {
		diff = stat.Ratio(candidate, registered)
	}
	return diff, decide(n.Compare, diff, limit)
}

func registeredEstimate(v, confidence float64) stat.Estimate {
	return stat.Estimate{Value: v, Lo: v, Hi: v, Confidence: confidence, Method: "registered"}
}

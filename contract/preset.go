package contract

import (
	"embed"
	"fmt"
	"path"
	"strings"

	"github.com/assay-llm/assay/config"
)

//go:embed presets/*.yaml
var presets embed.FS

// Presets lists the built-in contracts by name.
func Presets() []string {
	entries, err := presets.ReadDir("presets")
	if err != nil {
		panic("contract: " + err.Error()) // they are compiled in
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Preset returns the text of a built-in contract, with its comments; an error if
// there is none of that name.
func Preset(name string) ([]byte, error) {
	data, err := presets.ReadFile(path.Join("presets", name+".yaml"))
	if err == nil {
		return data, nil
	}
	hint := "presets are " + strings.Join(Presets(), ", ")
	if near, ok := nearest(name, Presets()); ok {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return nil, fmt.Errorf("there is no preset %q\n  hint: %s", name, hint)
}

// LoadPreset decodes a built-in contract.
func LoadPreset(name string) (*Contract, error) {
	data, err := Preset(name)
	if err != nil {
		return nil, err
	}
	c := new(Contract)
	return c, config.Decode("preset "+name, data, c)
}

// Purpose is what a built-in contract is for: the first paragraph of its comments, on
// one line; "" if there is none of that name.
func Purpose(name string) string {
	data, err := Preset(name)
	if err != nil {
		return ""
	}
	return config.Purpose(data)
}

// Demand is what the clause demands on one line, groups in brackets, each comparison with
// its window and minimum where they differ from those of the whole.
func (c Clause) Demand() string {
	s := c.demand(terms{})
	if rule := c.Live; !rule.IsZero() && rule.Judge == "point" {
		s += ", by the estimate"
	}
	return s
}

func (c Clause) demand(outer terms) string {
	inner := outer.with(c)
	var s string
	switch kind, members, k := c.group(); {
	case kind == KindJoint:
		s = fmt.Sprintf("joint of %s behind %s", count(len(c.Joint.Objectives), "objective"), count(len(members), "veto"))
	case len(members) > 0:
		var parts []string
		for _, m := range members {
			parts = append(parts, m.demand(inner))
		}
		of := map[Kind]string{KindAll: "all", KindAny: "any", KindNot: "not", KindCount: fmt.Sprintf("%d", k)}[kind]
		s = fmt.Sprintf("%s (%s)", of, strings.Join(parts, "; "))
	default:
		s = c.Need.String()
	}
	if w := inner.window; w != outer.window {
		length := w.String()
		if w.Requests > 0 {
			length = count(w.Requests, "request")
		}
		s += " over " + length
	}
	if inner.min != outer.min && inner.min > 1 {
		s += fmt.Sprintf(", of %s or more", grouped(fmt.Sprint(inner.min)))
	}
	return s
}

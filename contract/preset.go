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

package check

import (
	"fmt"
	"reflect"

	"github.com/assay-llm/assay/config"
)

// Endpoint is a model beside the variants that a check asks: a judge or an
// embedder. It stands in the configuration of a check.
type Endpoint struct {
	URL   string        `yaml:"url,required" doc:"http(s)://host:port/v1 of an OpenAI-compatible server"`
	Model string        `yaml:"model" doc:"model name sent with each request"`
	Key   config.Secret `yaml:"key" doc:"API key: env:NAME or file:PATH"`
	Price Price         `yaml:"price" doc:"what a million tokens cost, for the budget and the bill"`
}

// Name identifies the endpoint in signatures, bills and keys of stored answers:
// the model, and where it is.
func (e Endpoint) Name() string { return fmt.Sprintf("%s at %s", e.Model, e.URL) }

// IsZero reports whether the endpoint is not given.
func (e Endpoint) IsZero() bool { return e.URL == "" }

// Price is what tokens cost, in any one currency. The zero Price is unknown.
type Price struct {
	Prompt float64 `yaml:"input" min:"0" doc:"of a million tokens of prompts" json:"input"`
	Output float64 `yaml:"output" min:"0" doc:"of a million tokens of answers" json:"output"`
}

// IsZero reports whether the price is not known.
func (p Price) IsZero() bool { return p == Price{} }

// SetRef names a set of cases: a file below the folder of the suite.
type SetRef struct {
	File   string
	Format string // as package corpus reads it; "": it is detected
}

// IsZero reports whether no set is named.
func (s SetRef) IsZero() bool { return s.File == "" }

// setRefFields is the long form of a SetRef.
type setRefFields struct {
	File   string `yaml:"file,required" doc:"file of cases, below the folder of the suite"`
	Format string `yaml:"format" doc:"format of the file; detected if left out"`
}

// DecodeConfig reads the name of a file, or a mapping with its format.
func (s *SetRef) DecodeConfig(n *config.Node) {
	if n.IsMapping() {
		var f setRefFields
		if n.Decode(&f) {
			*s = SetRef(f)
		}
		return
	}
	if name, ok := n.Text(); ok {
		if s.File = name; name == "" {
			n.Fault("wants the name of a file of cases, got empty text", "write set: cases.jsonl")
		}
	}
}

// ConfigSchema describes both forms.
func (SetRef) ConfigSchema() map[string]any {
	return map[string]any{"oneOf": []any{map[string]any{"type": "string", "minLength": 1}, config.SchemaOf(setRefFields{})}}
}

// MarshalYAML writes the short form where it is enough.
func (s SetRef) MarshalYAML() (any, error) {
	if s.Format == "" {
		return s.File, nil
	}
	return setRefFields(s), nil
}

// FileRef names a file below the folder of the suite that the check reads itself,
// such as one of labels.
type FileRef string

// IsZero reports whether no file is named.
func (f FileRef) IsZero() bool { return f == "" }

// A FileReader is a configuration that can tell whether a file which it names is
// sound. It is asked when the suite is read; name is that of the file, for faults.
type FileReader interface {
	CheckFile(name string, data []byte) error
}

// Files returns every file that the configuration of a check names, in the order
// of its fields.
func Files(config any) []FileRef { return named[FileRef](config) }

// Endpoints returns every endpoint that the configuration of a check names, in
// the order of its fields.
func Endpoints(config any) []Endpoint { return named[Endpoint](config) }

// Sets returns every set that the configuration of a check names, in the order
// of its fields.
func Sets(config any) []SetRef { return named[SetRef](config) }

// named collects the values of type T that are not zero, in structs, pointers
// and slices below x.
func named[T interface{ IsZero() bool }](x any) (found []T) {
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		if !v.IsValid() {
			return
		}
		if t, ok := v.Interface().(T); ok {
			if !t.IsZero() {
				found = append(found, t)
			}
			return
		}
		switch v.Kind() {
		case reflect.Pointer, reflect.Interface:
			walk(v.Elem())
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					walk(v.Field(i))
				}
			}
		}
	}
	walk(reflect.ValueOf(x))
	return found
}

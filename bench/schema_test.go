package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/scenario"
)

// schemas are the documents that people write, by their file in docs/schema.
var schemas = map[string]func() ([]byte, error){
	"suite-1.json": Schema,
	"contract-1.json": func() ([]byte, error) {
		return config.Schema(contract.Contract{}, "https://assay-llm.github.io/schema/contract-1.json", "Assay contract, version 1")
	},
	"scenarios-1.json": func() ([]byte, error) {
		return config.Schema(scenario.File{}, "https://assay-llm.github.io/schema/scenarios-1.json", "Assay scenarios, version 1")
	},
	"contract-test-1.json": func() ([]byte, error) {
		return config.Schema(contract.Test{}, "https://assay-llm.github.io/schema/contract-test-1.json", "Test of an Assay contract, version 1")
	},
}

func compile(t *testing.T, make func() ([]byte, error)) *jsonschema.Schema {
	t.Helper()
	text, err := make()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON reads YAML as an editor does that validates by a JSON Schema.
func asJSON(data []byte) (any, error) {
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil {
		return nil, err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(text))
}

// TestSchemaFiles keeps docs/schema equal to what the types say.
func TestSchemaFiles(t *testing.T) {
	for name, make := range schemas {
		text, err := make()
		if err != nil {
			t.Fatal(err)
		}
		text = append(bytes.TrimRight(text, "\n"), '\n')
		file := filepath.Join("..", "docs", "schema", name)
		if *update {
			if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, text, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := diff.Diff(string(text), string(have)); d != "" {
			t.Errorf("%s is not what the types say; run the test with -update (-types +file):\n%s", file, d)
		}
	}
}

// TestSchemaAcceptsExamples holds every example, and every form of a suite that
// Load accepts, against the schema.
func TestSchemaAcceptsExamples(t *testing.T) {
	suite, own, tests := compile(t, Schema), compile(t, schemas["contract-1.json"]), compile(t, schemas["contract-test-1.json"])
	dialogues := compile(t, schemas["scenarios-1.json"])
	examples, err := filepath.Glob("../examples/*/*.yaml")
	if err != nil || len(examples) < 4 {
		t.Fatalf("examples: %v %v", examples, err)
	}
	for _, file := range examples {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s := suite
		switch filepath.Base(file) {
		case "contract.yaml":
			s = own
		case "test.yaml":
			s = tests
		case "scenarios.yaml":
			s = dialogues
		}
		v, err := asJSON(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(v); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for name, text := range sound(t) {
		v, err := asJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := suite.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSchemaAcceptsTheContractOfTheDesign holds the contract that the format was
// designed by against schema and reader.
func TestSchemaAcceptsTheContractOfTheDesign(t *testing.T) {
	data, err := os.ReadFile("../../shared/examples/contract.yaml")
	if err != nil {
		t.Skipf("the design's examples are not there: %v", err)
	}
	if err := config.Decode("contract.yaml", data, new(contract.Contract)); err != nil {
		t.Error(err)
	}
	v, err := asJSON(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := compile(t, schemas["contract-1.json"]).Validate(v); err != nil {
		t.Error(err)
	}
}

// sound returns the suites of testdata/sound.txtar, all of which Parse accepts.
func sound(t *testing.T) map[string]string {
	t.Helper()
	a, err := txtar.ParseFile("testdata/sound.txtar")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, f := range a.Files {
		text := "version: 1\nname: x\n" + string(f.Data)
		if _, err := Parse(f.Name, []byte(text), ""); err != nil {
			t.Fatal(err)
		}
		all[f.Name] = text
	}
	return all
}

const (
	elsewhere = "the fault lies in another file"
	across    = "the rule goes across keys or is computed"
	reader    = "a YAML reader resolves it before a schema sees the document"
	untagged  = "the value is judged by code: no pattern says it without refusing good ones or growing out of hand"
)

// beyond are the broken suites that no schema can refuse, and why.
var beyond = map[string]string{
	"contracts/in-a-file":              elsewhere,
	"contracts/no-version":             elsewhere,
	"contracts/empty-file":             elsewhere,
	"contracts/a-suite-for-a-contract": elsewhere,
	"contracts/unknown-workload-alone": elsewhere,
	"contracts/stop-without-contract":  across,
	"workloads/priorities":             across,
	"files/scenarios":                  elsewhere,
	"files/scenarios-without-script":   elsewhere,
	"files/dialogue-of-two-minds":      across,
	"files/missing-contract":           elsewhere,
	"files/missing-both":               elsewhere,
	"files/escape":                     elsewhere,
	"files/absolute":                   elsewhere,
	"files/symlink":                    elsewhere,
	"files/folders":                    elsewhere,
	"files/device":                     elsewhere,
	"files/bad-lines":                  elsewhere,
	"files/no-lines":                   elsewhere,
	"files/csv":                        elsewhere,
	"files/wrong-format":               elsewhere,
	"files/two-formats":                across,
	"workloads/no-end":                 across,
	"workloads/two-arrivals":           across,
	"workloads/think-without-users":    across,
	"workloads/too-short":              across,
	"variants/sim-and-endpoint-keys":   across,
	"variants/model-does-not-fit":      across,
	"variants/nobody-to-judge":         across,
	"variants/gpu-alone":               across,
	"variants/apis":                    across,
	"contracts/undecidable":            across,
	"form/anchors":                     reader,
	"form/merge":                       reader,
	"form/tag":                         reader,
	"form/two-documents":               reader,
	"keys/version-2":                   untagged,
	"keys/bad-name":                    untagged,
	"keys/long-name":                   untagged,
	"variants/five":                    untagged,
	"variants/bad-url":                 untagged,
	"variants/worse-url":               untagged,
	"variants/literal-header":          untagged,
	"variants/own-header":              untagged,
	"variants/proxy":                   untagged,
	"variants/unknown-gpu":             untagged,
	"variants/query-secret":            untagged,
	"workloads/rate-zero":              untagged,
	"contracts/unknown-metric":         untagged,
}

// TestSchemaRefusesBrokenSuites holds the broken suites against the schema: it
// refuses all but those that a schema cannot.
func TestSchemaRefusesBrokenSuites(t *testing.T) {
	s := compile(t, Schema)
	archives, err := filepath.Glob("testdata/broken/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	refused, seen := 0, 0
	for _, path := range archives {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range cases(t, a) {
			name := strings.TrimSuffix(filepath.Base(path), ".txtar") + "/" + b.name
			i := slices.IndexFunc(b.files, func(f txtar.File) bool { return f.Name == "suite.yaml" })
			if i < 0 {
				continue // no YAML at all
			}
			v, err := asJSON(b.files[i].Data)
			if err != nil {
				continue // not read by editors either
			}
			why, listed := beyond[name]
			if listed {
				seen++
			}
			switch err := s.Validate(v); {
			case err == nil && !listed:
				t.Errorf("%s: accepted; if no schema can refuse it, list it in beyond", name)
			case err != nil && listed:
				t.Errorf("%s: refused, though %s: %v", name, why, err)
			case err != nil:
				refused++
			}
		}
	}
	if refused < 40 || seen != len(beyond) {
		t.Errorf("%d suites refused, want at least 40; %d of %d in beyond were seen", refused, seen, len(beyond))
	}
}

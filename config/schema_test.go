package config

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// compiled returns the schema of sample as a validator for YAML documents, read
// as editors read them.
func compiled(t *testing.T) func(doc string) error {
	t.Helper()
	data, err := Schema(&sample{}, "https://example.com/sample.json", "A sample")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("https://example.com/sample.json", raw); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("https://example.com/sample.json") // also checks it against the metaschema
	if err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	return func(doc string) error {
		var v any
		if err := yaml.Unmarshal([]byte(doc), &v); err != nil {
			return err
		}
		return s.Validate(datesAsText(v))
	}
}

// datesAsText undoes what the library makes of dates; YAML 1.2 has none.
func datesAsText(v any) any {
	switch x := v.(type) {
	case time.Time:
		return x.Format(time.DateOnly)
	case map[string]any:
		for k := range x {
			x[k] = datesAsText(x[k])
		}
	case []any:
		for i := range x {
			x[i] = datesAsText(x[i])
		}
	}
	return v
}

func TestSchemaAgreesWithDecode(t *testing.T) {
	validate := compiled(t)
	const head = "version: 1\nname: x\nvariants: {a: {url: 'http://a'}}\n"
	accepted := []string{
		goodSample, head,
		head + "seed: 18446744073709551615\n",
		head + "tokens: 1.5k\n", head + "tokens: '12'\n", head + "tokens: 0\n",
		head + "memory: 0.5KiB\n", head + "memory: 0B\n",
		head + "confidence: +95.5%\n",
		head + "workloads: {a: {arrivals: {poisson: 0.5/h}, for: 1h1m1s1ms1us1.0ns}}\n",
		head + "workloads: {a: {arrivals: {users: 3}, for: 1.5h, share: 1}}\n",
		head + "workloads: {a: {arrivals: {users: 3}, for: 5μs, share: 1e-3}}\n",
		head + "tags: []\nlabels: {}\nextra: {}\nworkloads: {}\n",
		head + "small: -128\nsigma: 2\nmean: -1e30\n",
	}
	for _, doc := range accepted {
		var v sample
		if err := Decode("x.yaml", []byte(doc), &v); err != nil {
			t.Errorf("Decode refuses\n%s\n%v", doc, err)
		}
		if err := validate(doc); err != nil {
			t.Errorf("the schema refuses\n%s\n%v", doc, err)
		}
	}
	refused := []string{
		"{}", "[]", "x", "version: 1", "version: 1\nname: ''\nvariants: {a: {url: 'http://a'}}\n",
		"version: 2\nname: x\nvariants: {a: {url: 'http://a'}}\n", "version: 1\nname: x\nvariants: {}\n",
		"version: 1\nname: x\nvariants: {A: {url: 'http://a'}}\n", "version: 1\nname: x\nvariants: {a: {url: 5}}\n",
		"version: 1\nname: x\nvariants: {a: {url: 'http://a', api: chta}}\n",
		"version: 1\nname: x\nvariants: {a: {url: 'http://a', key: sk-live}}\n",
		"version: 1\nname: x\nvariants: {a: {url: 'http://a', timeout: 30}}\n",
		"version: 1\nname: x\nvariants: {a: {url: 'http://a', sim: {x: 1}}}\n",
		head + "unknown: 1\n", head + "seed: -1\n", head + "seed: '3'\n", head + "small: 128\n", head + "sigma: -1\n", head + "sigma: 3\n",
		head + "confidence: 95\n", head + "confidence: 95 %\n", head + "memory: 2G\n", head + "memory: 5\n", head + "tokens: -1\n", head + "tokens: 1K\n", head + "tokens: 1.5\n",
		head + "tags: x\n", head + "tags: [1]\n", head + "labels: {a: 1}\n", head + "verbose: 1\n", head + "extra: []\n",
		head + "workloads: {a: {}}\n", head + "workloads: {a: {arrivals: {}}}\n", head + "workloads: {a: {arrivals: {users: 1, poisson: 1/s}}}\n",
		head + "workloads: {a: {arrivals: {users: 70000}}}\n", head + "workloads: {a: {arrivals: {poisson: 5/day}}}\n",
		head + "workloads: {a: {arrivals: {users: 1}, for: 1s1h}}\n", head + "workloads: {a: {arrivals: {users: 1}, for: 1.5h30m}}\n",
		head + "workloads: {a: {arrivals: {users: 1}, for: ''}}\n", head + "workloads: {a: {arrivals: {users: 1}, share: 1.1}}\n",
	}
	for _, doc := range refused {
		var v sample
		if err := Decode("x.yaml", []byte(doc), &v); err == nil {
			t.Errorf("Decode accepts\n%s", doc)
		}
		if err := validate(doc); err == nil {
			t.Errorf("the schema accepts\n%s", doc)
		}
	}
}

// TestSchemaRefusesBrokenDocuments holds the schema against the documents with
// faults of type. A schema sees the values that a YAML 1.2 reader makes and
// cannot compute: those that it cannot tell from good ones are listed.
func TestSchemaRefusesBrokenDocuments(t *testing.T) {
	beyond := map[string]string{
		"open-values.yaml":    "what other readers make of a value of any type",
		"tiny.yaml":           "what a float can hold",
		"sizes-fraction.yaml": "whether a product is whole",
	}
	validate := compiled(t)
	data, err := os.ReadFile("testdata/broken/types.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files := txtar.Parse(data).Files
	for _, f := range files {
		if !strings.HasSuffix(f.Name, ".yaml") {
			continue
		}
		if why := beyond[f.Name]; why != "" {
			if validate(string(f.Data)) != nil {
				t.Errorf("the schema refuses %s, which it was thought not to (%s)", f.Name, why)
			}
			continue
		}
		if validate(string(f.Data)) == nil {
			t.Errorf("the schema accepts %s:\n%s", f.Name, f.Data)
		}
	}
}

func TestSchemaDescribes(t *testing.T) {
	type leaf struct {
		N    int           `yaml:"n" min:">0" max:"<9" doc:"a number"`
		Next *schemaNode   `yaml:"next" doc:"the rest"`
		Wait time.Duration `yaml:"wait"`
		Any  any           `yaml:"any"`
		Text level         `yaml:"text"`
	}
	type root struct {
		A leaf   `yaml:"a,required"`
		B []leaf `yaml:"b,required"`
	}
	data, err := Schema(root{}, "https://example.com/x.json", "X")
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/x.json", "title": "X",
		"type": "object", "additionalProperties": false, "required": []any{"a", "b"},
		"properties": map[string]any{
			"a": map[string]any{"$ref": "#/$defs/leaf"},
			"b": map[string]any{"type": "array", "items": map[string]any{"$ref": "#/$defs/leaf"}, "minItems": 1.0},
		},
	}
	defs := got["$defs"].(map[string]any)
	delete(got, "$defs")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Schema (-want +got):\n%s", diff)
	}
	properties := defs["leaf"].(map[string]any)["properties"].(map[string]any)
	wantLeaf := map[string]any{
		"n": map[string]any{
			"type": "integer", "description": "a number", "exclusiveMinimum": 0.0, "exclusiveMaximum": 9.0,
			"minimum": -9223372036854775808.0, "maximum": 9223372036854775807.0,
		},
		"next": map[string]any{"$ref": "#/$defs/schemaNode", "description": "the rest"},
		"wait": map[string]any{"$ref": "#/$defs/duration"},
		"any":  map[string]any{},
		"text": map[string]any{"type": "string"},
	}
	if diff := cmp.Diff(wantLeaf, properties); diff != "" {
		t.Errorf("leaf (-want +got):\n%s", diff)
	}
	if _, ok := defs["schemaNode"].(map[string]any)["properties"].(map[string]any)["next"]; !ok {
		t.Error("a type that refers to itself is not described")
	}
}

// schemaBad has a part that cannot be described, deep in what it says of itself.
type schemaBad struct{}

func (schemaBad) ConfigSchema() map[string]any {
	return map[string]any{"anyOf": []map[string]any{{"items": []any{SchemaOf(make(chan int))}}}}
}

type generic[T any] struct {
	V T `yaml:"v"`
}

func TestSchemaNamesGenericTypes(t *testing.T) {
	data, err := Schema(struct {
		A generic[Count]           `yaml:"a"`
		B generic[map[string]int]  `yaml:"b"`
		C *generic[generic[Count]] `yaml:"c"`
	}{}, "https://example.com/x.json", "X")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"generic-Count", "generic-map-string-int", "generic-generic-Count"} {
		if !strings.Contains(string(data), `"`+name+`": {`) || !strings.Contains(string(data), `"#/$defs/`+name+`"`) {
			t.Errorf("no %s in\n%s", name, data)
		}
	}
}

type schemaNode struct {
	Next *schemaNode `yaml:"next"`
}

func TestSchemaNeedsTypesThatDescribeThemselves(t *testing.T) {
	for want, v := range map[string]any{
		"describing int: not a struct":   3,
		"describing <nil>: not a struct": nil,
		"describing struct { A config.probe \"yaml:\\\"a\\\"\" }: a: config.probe reads itself and does not describe itself: give it a ConfigSchema method": struct {
			A probe `yaml:"a"`
		}{},
		"describing struct { A config.schemaBad \"yaml:\\\"a\\\"\" }: a: a chan int cannot be described": struct {
			A schemaBad `yaml:"a"`
		}{},
		"describing struct { A chan int \"yaml:\\\"a\\\"\" }: a: a chan int cannot be described": struct {
			A chan int `yaml:"a"`
		}{},
	} {
		if _, err := Schema(v, "x", "x"); err == nil || err.Error() != want {
			t.Errorf("Schema(%T) = %v, want %s", v, err, want)
		}
	}
}

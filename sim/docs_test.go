package sim

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/assay-llm/assay/config"
)

// TestDocumentedKeys holds docs/simulator.md to the configuration: every key,
// every name of a model, an accelerator or a format of weights, and examples that
// decode.
func TestDocumentedKeys(t *testing.T) {
	data, err := os.ReadFile("../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	_, faults, ok := strings.Cut(page, "\n## Faults\n")
	if !ok {
		t.Fatal("the page has no section Faults")
	}
	keys := yamlKeys(reflect.TypeFor[Config](), "")
	if len(keys) < 50 {
		t.Fatalf("only %d keys found: %q", len(keys), keys)
	}
	for _, key := range keys {
		within, want := page, fmt.Sprintf("\n| `%s` | ", key)
		if fault, is := strings.CutPrefix(key, "faults."); is {
			within, want = faults, fmt.Sprintf("\n| `%s` | ", fault)
		} else if strings.HasPrefix(key, "model.") { // all in one sentence
			want = fmt.Sprintf("`%s`", key)
		}
		if strings.Count(within, want) != 1 {
			t.Errorf("the page has not one %q", want)
		}
	}
	for _, name := range slices.Concat(names(shapes), names(accelerators), names(weightFormats), []string{usageFinal, usageFinish, usageEvery, usageNever}) {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("the page does not name %s", name)
		}
	}
	documentedEngines(t, page)
}

// documentedEngines decodes every engine that the page configures.
func documentedEngines(t *testing.T, page string) {
	engines := 0
	for line := range strings.Lines(page) {
		for _, mark := range []string{"sim: {", "--sim '{", "--engine '{"} {
			_, text, ok := strings.Cut(line, mark)
			end := strings.LastIndex(text, "}")
			if !ok || strings.HasPrefix(text, "}") {
				continue
			}
			engines++
			var c Config
			if err := config.Decode("simulator.md", []byte("{"+text[:end+1]), &c); err != nil {
				t.Errorf("%s%v", line, err)
			}
		}
	}
	if engines != 4 {
		t.Errorf("%d engines found on the page, want 4", engines)
	}
}

// yamlKeys lists the keys of a configuration, those of its parts behind a dot. A
// model's shape is what stands under model itself.
func yamlKeys(of reflect.Type, prefix string) []string {
	if of == reflect.TypeFor[Model]() {
		of = reflect.TypeFor[Shape]()
	}
	var keys []string
	for i := range of.NumField() {
		f := of.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if key == "" {
			continue
		}
		keys = append(keys, prefix+key)
		if f.Type.Kind() == reflect.Struct {
			keys = append(keys, yamlKeys(f.Type, prefix+key+".")...)
		}
	}
	return keys
}

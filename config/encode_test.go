package config

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

func TestEncodeWritesWhatDecodeReads(t *testing.T) {
	var v sample
	if err := Decode("sample.yaml", []byte(goodSample), &v); err != nil {
		t.Fatal(err)
	}
	got, err := Encode(&v)
	if err != nil {
		t.Fatal(err)
	}
	want := `version: 1
name: chat-int4
seed: 42
confidence: 95%
variants:
  zeta:
    url: http://127.0.0.1:8000/v1
    api: chat
    key: env:KEY
    timeout: 1m30s
  alpha:
    sim: {}
    tpot: 8%
workloads:
  chat:
    arrivals:
      poisson: 5/s
    for: 5m
    lengths:
      - 12
      - 1k
      - 32k
    share: 0.25
labels:
  "1": "2"
  "on": "off"
  tier: gold
extra:
  a: 1
  b: 1.5
  c:
    - x
    - true
    - null
  d:
    e: f
tags:
  - a
  - b b
  - "2024-01-01"
verbose: true
memory: 1536MiB
tokens: 4k
small: -128
sigma: 0.001
mean: 2.0
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("Encode (-want +got):\n%s", diff)
	}
	var back sample
	if err := Decode("back.yaml", got, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v, back, cmp.AllowUnexported(sample{}, sampleBounds{}), cmp.Comparer(func(a, b Secret) bool { return a == b })); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

// written has a field of every kind, with names and texts that YAML readers
// disagree on.
type written struct {
	Text     string            `yaml:"text"`
	Required string            `yaml:"required,required"`
	Bool     bool              `yaml:"bool"`
	Int      int64             `yaml:"int"`
	Uint     uint64            `yaml:"uint"`
	Float    float64           `yaml:"float"`
	Float32  float32           `yaml:"float32"`
	Plain    time.Duration     `yaml:"plain"`
	Pointer  *int              `yaml:"pointer"`
	Texts    []string          `yaml:"texts"`
	Labels   map[string]string `yaml:"labels"`
	Ordered  Map[writtenInner] `yaml:"ordered"`
	Nested   *writtenInner     `yaml:"nested"`
	Any      map[string]any    `yaml:"any"`
}

type writtenInner struct {
	Text  string  `yaml:"text"`
	Count Count   `yaml:"count"`
	List  [][]int `yaml:"list"`
}

func drawWritten(t *rapid.T) written {
	text := rapid.OneOf(
		rapid.String(),
		rapid.StringMatching(`[ \t\n#:&*!|>'"%@\[\]{},?~a-z0-9._-]{0,12}`),
		rapid.SampledFrom([]string{"no", "y", "~", "null", "1", "1e3", "0x1", "1_0", ".inf", "<<", "---", "- a", "a: b", "a #b", "2024-01-01", "\u0085", "\ufeff", "\u2028", "é", "true", "12:30:45", "0o7"}),
	)
	inner := rapid.Custom(func(t *rapid.T) writtenInner {
		return writtenInner{
			Text: text.Draw(t, "text"), Count: Count(rapid.Int64Range(0, math.MaxInt64).Draw(t, "count")),
			List: rapid.SliceOfN(rapid.SliceOfN(rapid.Int(), 1, 3), 1, 3).Draw(t, "list"),
		}
	})
	w := written{
		Text: text.Draw(t, "text"), Required: "x" + text.Draw(t, "required"),
		Bool: rapid.Bool().Draw(t, "bool"), Int: rapid.Int64().Draw(t, "int"), Uint: rapid.Uint64().Draw(t, "uint"),
		Float: rapid.Float64().Draw(t, "float"), Float32: rapid.Float32().Draw(t, "float32"),
		Plain:   time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "plain")),
		Pointer: rapid.Ptr(rapid.Int(), true).Draw(t, "pointer"),
		Texts:   rapid.SliceOfN(text, 1, 4).Draw(t, "texts"),
		Labels:  rapid.MapOfN(text.Filter(func(s string) bool { return s != "" && len(s) <= longestKey }), text, 1, 4).Draw(t, "labels"),
		Nested:  rapid.Ptr(inner, true).Draw(t, "nested"),
		Any:     map[string]any{"a": rapid.Int64().Draw(t, "any int"), "b": rapid.Float64().Draw(t, "any float"), "c": []any{text.Draw(t, "any text"), nil, true}},
	}
	for _, k := range rapid.SliceOfDistinct(rapid.StringMatching(`[a-z0-9_.-]{1,63}`), rapid.ID).Draw(t, "names") {
		w.Ordered.Set(k, inner.Draw(t, "inner"))
	}
	return w
}

func TestEncodeRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWritten(t)
		data, err := Encode(w)
		if err != nil {
			t.Fatal(err)
		}
		var back written
		if err := Decode("x.yaml", data, &back); err != nil {
			t.Fatalf("decoding\n%s\n%v", data, err)
		}
		if diff := cmp.Diff(w, back); diff != "" {
			t.Fatalf("read back from\n%s\n(-want +got):\n%s", data, diff)
		}
		again, err := Encode(back)
		if err != nil || string(again) != string(data) {
			t.Fatalf("encoded again as\n%s\n%v, want\n%s", again, err, data)
		}
	})
}

func TestEncodeRefusesWhatDecodeWould(t *testing.T) {
	type box struct {
		V any `yaml:"v"`
	}
	for want, v := range map[string]any{
		"encoding as YAML: v: NaN cannot be written":                                     math.NaN(),
		"encoding as YAML: v: +Inf cannot be written":                                    math.Inf(1),
		`encoding as YAML: v: the text "\xff" is not UTF-8`:                              "\xff",
		"encoding as YAML: v: a func() cannot be written":                                func() {},
		"encoding as YAML: v: [1]: a chan int cannot be written":                         []any{1, make(chan int)},
		"encoding as YAML: v: a map[int]int cannot be written: its keys are not strings": map[int]int{1: 2},
		"encoding as YAML: v: a: NaN cannot be written":                                  map[string]any{"a": math.NaN()},
		"encoding as YAML: v: json: cannot marshal":                                      textFails{},
		"encoding as YAML: v: yaml: cannot marshal":                                      yamlFails{},
	} {
		if got, err := Encode(box{v}); err == nil || err.Error() != want {
			t.Errorf("Encode(%T) = %q, %v, want %s", v, got, err, want)
		}
	}
}

type textFails struct{ X int }

func (textFails) MarshalText() ([]byte, error) { return nil, fmt.Errorf("json: cannot marshal") }

type yamlFails struct{ X int }

func (yamlFails) MarshalYAML() (any, error) { return nil, fmt.Errorf("yaml: cannot marshal") }

func TestEncodeRefusesMapsByName(t *testing.T) {
	for want, set := range map[string]func(m *Map[float64]){
		"encoding as YAML: m: a: NaN cannot be written":     func(m *Map[float64]) { m.Set("a", math.NaN()) },
		`encoding as YAML: m: the text "\xff" is not UTF-8`: func(m *Map[float64]) { m.Set("\xff", 1) },
	} {
		var v struct {
			M Map[float64] `yaml:"m"`
		}
		set(&v.M)
		if got, err := Encode(v); err == nil || err.Error() != want {
			t.Errorf("got %q, %v, want %s", got, err, want)
		}
	}
}

func TestEncodeWritesEmptyValuesThatAreRequired(t *testing.T) {
	var v struct {
		Text    string         `yaml:"text,required"`
		List    []int          `yaml:"list,required"`
		Map     map[string]int `yaml:"map,required"`
		Names   Map[int]       `yaml:"names,required"`
		Pointer *int           `yaml:"pointer"`
		Any     any            `yaml:"any"`
	}
	got, err := Encode(&v)
	if want := "text: \"\"\nlist: []\nmap: {}\nnames: {}\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestMapKeepsTheOrderOfTheFile(t *testing.T) {
	type doc struct {
		Names Map[int] `yaml:"names" json:"names"`
	}
	var v doc
	if err := Decode("x.yaml", []byte("names:\n  zeta: 1\n  alpha: 2\n  mid: 3\n"), &v); err != nil {
		t.Fatal(err)
	}
	if got, want := v.Names.Keys(), []string{"zeta", "alpha", "mid"}; !slices.Equal(got, want) {
		t.Errorf("Keys() = %v, want %v", got, want)
	}
	if l, c := v.Names.Position("alpha"); l != 3 || c != 3 {
		t.Errorf("Position(alpha) = %d, %d, want 3, 3", l, c)
	}
	if l, c := v.Names.Position("none"); l != 0 || c != 0 {
		t.Errorf("Position(none) = %d, %d, want 0, 0", l, c)
	}
	if n, ok := v.Names.Get("mid"); n != 3 || !ok {
		t.Errorf("Get(mid) = %d, %v, want 3, true", n, ok)
	}
	for k := range v.Names.All() {
		if k != "zeta" {
			t.Errorf("All starts with %s, want zeta", k)
		}
		break
	}
	data, err := json.Marshal(v)
	if want := `{"names":{"zeta":1,"alpha":2,"mid":3}}`; err != nil || string(data) != want {
		t.Errorf("as JSON: %s, %v, want %s", data, err, want)
	}
	var back doc
	if err := json.Unmarshal(data, &back); err != nil || !back.Names.Equal(v.Names) || back.Names.Len() != 3 {
		t.Errorf("back from JSON: %v, %v, want %v", back, err, v)
	}
	back.Names.Set("mid", 4)
	if back.Names.Equal(v.Names) {
		t.Errorf("%v equals %v", back, v)
	}
	for _, broken := range []string{`{"names":[1]}`, `{"names":{"a":"x"}}`, `{"names":3}`} {
		if err := json.Unmarshal([]byte(broken), &back); err == nil {
			t.Errorf("%s is read as %v, want an error", broken, back)
		}
	}
	if err := json.Unmarshal([]byte(`{"names":null}`), &back); err != nil || !back.Names.IsZero() {
		t.Errorf("null is read as %v, %v, want an empty map", back, err)
	}
}

// TestExamplesAreStrictYAML reads what users are shown with the strict reader.
func TestExamplesAreStrictYAML(t *testing.T) {
	paths, err := filepath.Glob("../../shared/examples/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Skip("the shared examples are not here")
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var v map[string]any
		if err := Decode(filepath.Base(path), data, &v); err != nil {
			t.Errorf("%v", err)
		}
		var theirs map[string]any
		if err := yaml.Unmarshal(data, &theirs); err != nil {
			t.Fatal(err)
		}
		norm := func(v map[string]any) string {
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(string(b))
		}
		if diff := cmp.Diff(norm(theirs), norm(v)); diff != "" {
			t.Errorf("%s differs from what the library decodes (-library +ours):\n%s", path, diff)
		}
	}
}

package config

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A Schemer is a type that describes itself: its method returns a JSON Schema as
// a map. It is called on a zero value. Values of the map made by SchemaOf stand
// for the schemas of other types.
type Schemer interface{ ConfigSchema() map[string]any }

// SchemaOf stands for the schema of v's type inside the map that a Schemer
// returns; Schema puts it in.
func SchemaOf(v any) any { return schemaOf{reflect.TypeOf(v)} }

type schemaOf struct{ t reflect.Type }

// Schema returns the JSON Schema (draft 2020-12) of the documents that Decode
// accepts into a value of the type of of, which may be a pointer: for editors.
// It cannot say all that Decode checks, and never refuses what Decode accepts.
func Schema(of any, id, title string) ([]byte, error) {
	t := reflect.TypeOf(of)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("describing %v: not a struct", t)
	}
	g := &generator{defs: make(map[string]any), names: make(map[reflect.Type]string)}
	root, err := g.object(t)
	if err != nil {
		return nil, fmt.Errorf("describing %v: %w", t, err)
	}
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = id
	root["title"] = title
	if len(g.defs) > 0 {
		root["$defs"] = g.defs
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("describing %v: %w", t, err)
	}
	return b.Bytes(), nil
}

// generator gathers the schemas of named structs under $defs.
type generator struct {
	defs  map[string]any
	names map[reflect.Type]string
	doc   document
}

func (g *generator) of(t reflect.Type) (map[string]any, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch x := reflect.New(t).Interface().(type) {
	case Schemer:
		return g.named(t, func() (map[string]any, error) {
			s, err := g.fill(x.ConfigSchema())
			if err != nil {
				return nil, err
			}
			return s.(map[string]any), nil
		})
	case orderedMap:
		e, err := g.of(x.element())
		return map[string]any{"type": "object", "additionalProperties": e, "propertyNames": map[string]any{"pattern": namePattern}}, err
	case *time.Duration:
		return g.of(reflect.TypeFor[Duration]())
	case Decoder:
		return nil, fmt.Errorf("%v reads itself and does not describe itself: give it a ConfigSchema method", t)
	case encoding.TextUnmarshaler:
		return map[string]any{"type": "string"}, nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return g.named(t, func() (map[string]any, error) { return g.object(t) })
	case reflect.Map:
		e, err := g.of(t.Elem())
		return map[string]any{"type": "object", "additionalProperties": e}, err
	case reflect.Slice:
		e, err := g.of(t.Elem())
		return map[string]any{"type": "array", "items": e}, err
	case reflect.String:
		return map[string]any{"type": "string"}, nil
	case reflect.Bool:
		return map[string]any{"type": "boolean"}, nil
	case reflect.Interface:
		return map[string]any{}, nil
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}, nil
	}
	return g.integer(t)
}

func (g *generator) integer(t reflect.Type) (map[string]any, error) {
	z := reflect.Zero(t)
	switch {
	case z.CanInt():
		least := int64(-1) << (t.Bits() - 1)
		return map[string]any{"type": "integer", "minimum": least, "maximum": -(least + 1)}, nil
	case z.CanUint():
		return map[string]any{"type": "integer", "minimum": 0, "maximum": ^uint64(0) >> (64 - t.Bits())}, nil
	}
	return nil, fmt.Errorf("a %v cannot be described", t)
}

// named puts the schema of a type under $defs and returns the reference.
func (g *generator) named(t reflect.Type, make func() (map[string]any, error)) (map[string]any, error) {
	if t.Name() == "" {
		return make()
	}
	name, known := g.names[t]
	if !known {
		name = defName(t)
		for base, i := name, 2; g.defs[name] != nil; i++ {
			name = base + strconv.Itoa(i)
		}
		g.names[t] = name
		g.defs[name] = map[string]any{} // taken, also while it is made: types may refer to themselves
		s, err := make()
		if err != nil {
			return nil, err
		}
		g.defs[name] = s
	}
	return map[string]any{"$ref": "#/$defs/" + name}, nil
}

var packagePath = regexp.MustCompile(`[^\[\],]*[./]`)

// defName makes a name for $defs of a type's name: "Dist[a/b.Count]" becomes
// "dist-Count".
func defName(t reflect.Type) string {
	name := packagePath.ReplaceAllString(t.Name(), "")
	name = strings.Trim(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' {
			return r
		}
		return '-'
	}, name), "-")
	first, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToLower(first)) + name[size:]
}

// object describes a struct.
func (g *generator) object(t reflect.Type) (map[string]any, error) {
	properties := make(map[string]any)
	var required []string
	for _, f := range g.doc.info(t).fields {
		s, err := g.of(f.typ)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		s = maps.Clone(s)
		if f.doc != "" {
			s["description"] = f.doc
		}
		if len(f.oneOf) > 0 {
			s["enum"] = f.oneOf
		}
		limitSchema(s, f)
		if f.required {
			required = append(required, f.name)
			switch s["type"] {
			case "string":
				s["minLength"] = 1
			case "array":
				s["minItems"] = 1
			case "object":
				s["minProperties"] = 1
			}
		}
		properties[f.name] = s
	}
	s := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if required != nil {
		s["required"] = required
	}
	return s, nil
}

// limitSchema adds the most tag, and the min and max tags of plain numbers. The limits of
// quantities, which are text, cannot be said.
func limitSchema(s map[string]any, f field) {
	switch {
	case f.most == 0:
	case f.typ.Kind() == reflect.Map:
		s["maxProperties"] = f.most
	default:
		s["maxItems"] = f.most
	}
	if s["type"] != "integer" && s["type"] != "number" {
		return
	}
	if f.min != "" {
		limit, strict := strings.CutPrefix(f.min, ">")
		s[map[bool]string{false: "minimum", true: "exclusiveMinimum"}[strict]] = json.Number(limit)
	}
	if f.max != "" {
		limit, strict := strings.CutPrefix(f.max, "<")
		s[map[bool]string{false: "maximum", true: "exclusiveMaximum"}[strict]] = json.Number(limit)
	}
}

// fill replaces what SchemaOf made by schemas, everywhere below x.
func (g *generator) fill(x any) (any, error) {
	switch x := x.(type) {
	case schemaOf:
		return g.of(x.t)
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, v := range x {
			f, err := g.fill(v)
			if err != nil {
				return nil, err
			}
			out[k] = f
		}
		return out, nil
	case []any:
		out := make([]any, len(x))
		for i, v := range x {
			f, err := g.fill(v)
			if err != nil {
				return nil, err
			}
			out[i] = f
		}
		return out, nil
	case []map[string]any:
		out := make([]any, len(x))
		for i, v := range x {
			f, err := g.fill(v)
			if err != nil {
				return nil, err
			}
			out[i] = f
		}
		return out, nil
	}
	return x, nil
}

// ConfigSchema describes how a duration is written.
func (Duration) ConfigSchema() map[string]any {
	units := []string{"h", "m", "s", "ms", "(us|µs|μs)", "ns"}
	whole := ""
	var forms []string
	for _, u := range units {
		forms = append(forms, whole+`[0-9]+\.[0-9]+`+u) // only the last number has a fraction
		whole += "([0-9]+" + u + ")?"
	}
	return text("^("+whole+"|"+strings.Join(forms, "|")+")$", "30s", "5m", "1h30m", "200ms")
}

// ConfigSchema describes how a rate is written.
func (Rate) ConfigSchema() map[string]any {
	return text(`^[0-9]+(\.[0-9]+)?/(s|min|h)$`, "5/s", "300/min")
}

// ConfigSchema describes how a size is written.
func (Bytes) ConfigSchema() map[string]any {
	return text(`^[0-9]+(\.[0-9]+)?([KMGT]iB|[kMGT]?B)$`, "2GiB", "64KiB", "10MB")
}

// ConfigSchema describes how a percentage is written.
func (Percent) ConfigSchema() map[string]any { return text(`^[-+]?[0-9]+(\.[0-9]+)?%$`, "8%", "-3%") }

// ConfigSchema describes how a count is written.
func (Count) ConfigSchema() map[string]any {
	s := text(`^[0-9]+(\.[0-9]+)?[kM]?$`, 12, "32k")
	s["type"] = []string{"integer", "string"}
	s["minimum"] = 0
	return s
}

// ConfigSchema describes how a reference to a secret is written.
func (Secret) ConfigSchema() map[string]any { return text(secretShape, "env:API_KEY", "file:api.key") }

func text(pattern string, examples ...any) map[string]any {
	return map[string]any{"type": "string", "minLength": 1, "maxLength": 4200, "pattern": pattern, "examples": examples}
}

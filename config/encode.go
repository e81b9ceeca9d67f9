package config

import (
	"bytes"
	"encoding"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Encode writes a value as YAML that Decode reads back to an equal value. Zero
// fields are left out, pointers are not; required fields always stand. A type
// with MarshalYAML() (any, error) or MarshalText writes itself.
func Encode(v any) ([]byte, error) {
	var e encoder
	root, err := e.node(reflect.ValueOf(v))
	if err != nil {
		return nil, fmt.Errorf("encoding as YAML: %w", err)
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("encoding as YAML: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("encoding as YAML: %w", err)
	}
	return b.Bytes(), nil
}

type yamlMarshaler interface{ MarshalYAML() (any, error) }

type encoder struct{ doc document }

func (e *encoder) node(v reflect.Value) (*yaml.Node, error) {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
		}
		if m, ok := v.Interface().(yamlMarshaler); ok {
			return e.marshaled(m)
		}
		v = v.Elem()
	}
	if !v.IsValid() {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
	}
	if !v.CanAddr() { // methods with pointer receivers need an address
		p := reflect.New(v.Type()).Elem()
		p.Set(v)
		v = p
	}
	switch x := v.Addr().Interface().(type) {
	case yamlMarshaler:
		return e.marshaled(x)
	case orderedMap:
		return e.ordered(x)
	case *time.Duration:
		return scalar(Duration(*x).String()), nil
	case *Count:
		if s := x.String(); integer.MatchString(s) {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: s}, nil
		}
		return scalar(x.String()), nil
	case encoding.TextMarshaler:
		text, err := x.MarshalText()
		if err != nil {
			return nil, err
		}
		return text2node(string(text))
	}
	return e.plain(v)
}

func (e *encoder) marshaled(m yamlMarshaler) (*yaml.Node, error) {
	x, err := m.MarshalYAML()
	if err != nil {
		return nil, err
	}
	if y, ok := x.(*yaml.Node); ok {
		return y, nil
	}
	return e.node(reflect.ValueOf(x))
}

func (e *encoder) plain(v reflect.Value) (*yaml.Node, error) {
	switch v.Kind() {
	case reflect.Struct:
		return e.fields(v)
	case reflect.Map:
		return e.mapping(v)
	case reflect.Slice, reflect.Array:
		y := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for i := range v.Len() {
			item, err := e.node(v.Index(i))
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			y.Content = append(y.Content, item)
		}
		if len(y.Content) == 0 {
			y.Style = yaml.FlowStyle
		}
		return y, nil
	case reflect.String:
		return text2node(v.String())
	case reflect.Bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v.Bool())}, nil
	}
	switch {
	case v.CanInt():
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(v.Int(), 10)}, nil
	case v.CanUint():
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatUint(v.Uint(), 10)}, nil
	case v.CanFloat():
		f := v.Float()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%v cannot be written", f)
		}
		s := strconv.FormatFloat(f, 'g', -1, v.Type().Bits())
		if integer.MatchString(s) {
			s += ".0" // so that it is read back as a float where the type is open
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: s}, nil
	}
	return nil, fmt.Errorf("a %s cannot be written", v.Type())
}

func (e *encoder) fields(v reflect.Value) (*yaml.Node, error) {
	y := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, f := range e.doc.info(v.Type()).fields {
		fv := v.FieldByIndex(f.index)
		if !f.required && isZero(fv) {
			continue
		}
		item, err := e.node(fv)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		y.Content = append(y.Content, scalar(f.name), item)
	}
	if len(y.Content) == 0 {
		y.Style = yaml.FlowStyle
	}
	return y, nil
}

func isZero(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	if z, ok := v.Interface().(interface{ IsZero() bool }); ok && v.Kind() != reflect.Pointer {
		return z.IsZero()
	}
	return v.IsZero()
}

func (e *encoder) mapping(v reflect.Value) (*yaml.Node, error) {
	if v.Type().Key().Kind() != reflect.String {
		return nil, fmt.Errorf("a %s cannot be written: its keys are not strings", v.Type())
	}
	values := make(map[string]reflect.Value, v.Len())
	for k, x := range v.Seq2() {
		values[k.String()] = x
	}
	y := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, k := range slices.Sorted(maps.Keys(values)) {
		if err := e.entry(y, k, values[k]); err != nil {
			return nil, err
		}
	}
	if len(y.Content) == 0 {
		y.Style = yaml.FlowStyle
	}
	return y, nil
}

func (e *encoder) ordered(m orderedMap) (*yaml.Node, error) {
	y := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for k, x := range m.entries() {
		if err := e.entry(y, k, x); err != nil {
			return nil, err
		}
	}
	if len(y.Content) == 0 {
		y.Style = yaml.FlowStyle
	}
	return y, nil
}

func (e *encoder) entry(y *yaml.Node, key string, v reflect.Value) error {
	k, err := text2node(key)
	if err != nil {
		return err
	}
	item, err := e.node(v)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	y.Content = append(y.Content, k, item)
	return nil
}

// harmless is text that every YAML reader takes as it stands.
var harmless = regexp.MustCompile(`^[A-Za-z0-9+/][A-Za-z0-9 ._/+%:@=()<>*-]*$`)

func text2node(s string) (*yaml.Node, error) {
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("the text %s is not UTF-8", quote(s))
	}
	return scalar(s), nil
}

// scalar returns a node for text, quoted unless that is surely not needed.
func scalar(s string) *yaml.Node {
	y := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}
	if harmless.MatchString(s) && safePlain(s) {
		y.Style = 0
	}
	return y
}

func safePlain(s string) bool {
	var probe yaml.Node
	if err := yaml.Unmarshal([]byte(s), &probe); err != nil || len(probe.Content) != 1 {
		return false
	}
	y := probe.Content[0]
	return y.Kind == yaml.ScalarNode && y.Value == s && scalarKind(y) == Text && !doubtful(s)
}

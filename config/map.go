package config

import (
	"bytes"
	"encoding/json"
	"iter"
	"reflect"
	"regexp"
	"slices"
)

// Map is a mapping from names to values that keeps the order of the file. The
// zero Map is empty and ready to use. Names are lower-case letters, digits and
// - _ . and have at most 63 characters. It is not safe for concurrent writing.
type Map[V any] struct {
	keys   []string
	values map[string]V
	at     map[string][2]int
}

// Keys returns the names in order. The caller must not change the slice.
func (m Map[V]) Keys() []string { return m.keys }

// Len returns the number of entries.
func (m Map[V]) Len() int { return len(m.keys) }

// Get returns the value of a name, and whether there is one.
func (m Map[V]) Get(name string) (V, bool) {
	v, ok := m.values[name]
	return v, ok
}

// All returns the entries in order.
func (m Map[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, k := range m.keys {
			if !yield(k, m.values[k]) {
				return
			}
		}
	}
}

// Set sets the value of a name; a new name goes to the end. The name is not
// checked.
func (m *Map[V]) Set(name string, v V) {
	if m.values == nil {
		m.values = make(map[string]V)
	}
	if _, known := m.values[name]; !known {
		m.keys = append(m.keys, name)
	}
	m.values[name] = v
}

// Position returns the line and column of a name in the file, or zeros if it did
// not come from one.
func (m Map[V]) Position(name string) (line, column int) {
	p := m.at[name]
	return p[0], p[1]
}

// IsZero reports whether the map is empty.
func (m Map[V]) IsZero() bool { return len(m.keys) == 0 }

// Equal reports whether both maps have the same entries in the same order,
// whatever their positions.
func (m Map[V]) Equal(o Map[V]) bool {
	return slices.Equal(m.keys, o.keys) && (len(m.keys) == 0 || reflect.DeepEqual(m.values, o.values))
}

// MarshalJSON writes an object with the entries in order.
func (m Map[V]) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, k := range m.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(k)
		if err != nil {
			return nil, err
		}
		v, err := json.Marshal(m.values[k])
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads an object and keeps its order.
func (m *Map[V]) UnmarshalJSON(data []byte) error {
	*m = Map[V]{}
	dec := json.NewDecoder(bytes.NewReader(data))
	open, err := dec.Token()
	if err != nil || open == nil {
		return err
	}
	if open != json.Delim('{') {
		return &json.UnmarshalTypeError{Value: "value that is no object", Type: reflect.TypeOf(*m)}
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var v V
		if err := dec.Decode(&v); err != nil {
			return err
		}
		m.Set(name.(string), v) // a key of an object is always a string
	}
	return nil
}

// orderedMap is what the decoder, the encoder and the schema need of a Map.
type orderedMap interface {
	element() reflect.Type
	put(name string, v reflect.Value, line, column int)
	entries() iter.Seq2[string, reflect.Value]
}

func (m *Map[V]) element() reflect.Type { return reflect.TypeFor[V]() }

func (m *Map[V]) put(name string, v reflect.Value, line, column int) {
	value, _ := v.Interface().(V)
	m.Set(name, value)
	if m.at == nil {
		m.at = make(map[string][2]int)
	}
	m.at[name] = [2]int{line, column}
}

func (m *Map[V]) entries() iter.Seq2[string, reflect.Value] {
	return func(yield func(string, reflect.Value) bool) {
		for _, k := range m.keys {
			v := m.values[k]
			if !yield(k, reflect.ValueOf(&v).Elem()) {
				return
			}
		}
	}
}

const namePattern = `^[a-z0-9_.-]{1,63}$`

var validName = regexp.MustCompile(namePattern)

func (d *document) ordered(n *Node, m orderedMap) {
	if !n.IsMapping() {
		hint := "write name: value, one a line"
		if n.Kind() == Null {
			hint = "add an entry, or remove the key"
		}
		n.Fault("wants a mapping of names, got "+n.got(), hint)
		return
	}
	for _, p := range n.Pairs() {
		if !validName.MatchString(p.Key) {
			p.KeyNode.Fault("is not a name", "use at most 63 of a-z, 0-9, - _ and .")
			continue
		}
		v := reflect.New(m.element()).Elem()
		d.value(p.Value, v, nil)
		m.put(p.Key, v, p.KeyNode.Line(), p.KeyNode.Column())
	}
}

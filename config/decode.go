package config

import (
	"cmp"
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// A Decoder is a type that reads itself from a node: a union, a shorthand, a
// value with a grammar. It reports what is wrong through n.Fault and never
// panics. Its method has a pointer receiver.
type Decoder interface{ DecodeConfig(n *Node) }

// A Checker is a type with rules across its fields. It is called after the value
// was decoded without a fault of its own, so that it need not repeat them.
type Checker interface{ CheckConfig(n *Node) }

// An Option changes how Decode works.
type Option func(*options)

type options struct {
	limits Limits
	root   **Node
}

// Within sets limits other than the default ones.
func Within(l Limits) Option { return func(o *options) { o.limits = l } }

// Root keeps the document's top node in *n, for faults that are found later; see
// Node.Mark. It is set to nil if there is none.
func Root(n **Node) Option { return func(o *options) { o.root = n } }

// Decode reads one YAML document into the struct that into points to. The error
// is nil or a Faults with all that is wrong. The value is then incomplete and
// not to be used. File is only the name to report.
//
// Fields are matched by their tag `yaml:"name"`; an exported field without one
// is not part of the document. See the package documentation for the tags.
func Decode(file string, data []byte, into any, opts ...Option) error {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	if v := reflect.ValueOf(into); v.Kind() != reflect.Pointer || v.IsNil() {
		panic(fmt.Sprintf("config: cannot decode into %T: not a pointer", into))
	}
	d := &document{file: file, data: data, limits: o.limits.orDefault()}
	if o.root != nil {
		*o.root = nil
	}
	if d.parse() {
		d.decodeInto(d.root, into)
		if o.root != nil {
			*o.root = d.root
		}
	} else if f := d.faults.list; len(f) == 1 && f[0].What == emptyDocument {
		f[0].Hint = d.leastHint(into)
	}
	return d.faults.err()
}

// leastHint says what the smallest document would hold.
func (d *document) leastHint(into any) string {
	t := reflect.TypeOf(into).Elem()
	if t.Kind() == reflect.Struct {
		var needed []string
		for _, f := range d.info(t).fields {
			if f.required {
				needed = append(needed, f.name)
			}
		}
		if needed != nil {
			return "write at least " + strings.Join(needed, ", ")
		}
	}
	return "write the first key"
}

// decodeInto decodes a node into what a pointer points to.
func (d *document) decodeInto(n *Node, into any) {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		panic(fmt.Sprintf("config: cannot decode into %T: not a pointer", into))
	}
	d.value(n, v.Elem(), nil)
}

// value decodes a node into v, which can be addressed, by the rules of field f,
// which may be nil.
func (d *document) value(n *Node, v reflect.Value, f *field) {
	if n.bad() || !n.Exists() {
		return
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		d.value(n, v.Elem(), f)
		return
	}
	if f != nil && f.most > 0 && n.tooLong(f.most) {
		return // before the items are looked at
	}
	before := d.faults.total
	switch x := v.Addr().Interface().(type) {
	case Decoder:
		x.DecodeConfig(n)
	case orderedMap:
		d.ordered(n, x)
	case *time.Duration:
		(*Duration)(x).DecodeConfig(n)
	case encoding.TextUnmarshaler:
		if s, ok := n.Text(); ok {
			if err := x.UnmarshalText([]byte(s)); err != nil {
				n.Fault(clipTo(err.Error(), 200), "correct the text")
			}
		}
	default:
		d.plain(n, v, f)
	}
	if d.faults.total == before && f != nil {
		d.within(n, v, f)
	}
	if d.faults.total == before && !d.tainted[n.y] {
		if x, ok := v.Addr().Interface().(Checker); ok {
			x.CheckConfig(n)
		}
	}
}

// plain decodes by the kind of the Go type.
func (d *document) plain(n *Node, v reflect.Value, f *field) {
	switch v.Kind() {
	case reflect.Struct:
		d.fields(n, v)
	case reflect.Map:
		d.mapping(n, v)
	case reflect.Slice:
		d.list(n, v)
	case reflect.String:
		d.text(n, v, f)
	case reflect.Bool:
		decodeBool(n, v)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		decodeInt(n, v)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		decodeUint(n, v)
	case reflect.Float32, reflect.Float64:
		decodeFloat(n, v)
	case reflect.Interface:
		d.dynamic(n, v)
	default:
		panic(fmt.Sprintf("config: cannot decode into %s", v.Type()))
	}
}

func (d *document) fields(n *Node, v reflect.Value) {
	info := d.info(v.Type())
	if !n.IsMapping() {
		wants := "wants a mapping"
		if n.parent == nil {
			wants = "wants keys and values"
		}
		hint := "write {}"
		if n.Kind() == Null && n.parent != nil {
			hint = "give it a value, or remove the key"
		} else if len(info.names) > 0 {
			hint = "start with " + info.names[0] + ": …"
		}
		n.Fault(wants+", got "+n.got(), hint)
		return
	}
	before := d.faults.total
	misspelt := make(map[string]bool)
	for _, p := range n.Pairs() {
		i, known := info.byName[p.Key]
		if !known {
			hint := ""
			if !d.faults.full() {
				meant, _ := suggest(p.Key, info.names)
				misspelt[meant] = true
				hint = oneOfHint(p.Key, info.names)
			}
			p.KeyNode.Fault("unknown key", hint)
			continue
		}
		f := &info.fields[i]
		d.value(p.Value, v.FieldByIndex(f.index), f)
	}
	for i := range info.fields {
		if f := &info.fields[i]; f.required && !misspelt[f.name] {
			d.require(n, v.FieldByIndex(f.index), f)
		}
	}
	if d.faults.total != before || d.tainted[n.y] {
		return
	}
	for _, index := range info.inlined {
		p := v.FieldByIndex(index).Addr()
		if !p.CanInterface() {
			continue // embedded by an unexported name: the outer struct has its method
		}
		if x, ok := p.Interface().(Checker); ok {
			x.CheckConfig(n)
		}
	}
}

// require reports a required key that is not there, or that holds nothing. An
// empty mapping is something for a struct: all its fields may have defaults.
func (d *document) require(n *Node, v reflect.Value, f *field) {
	at := n.At(f.name)
	if !at.Exists() {
		hint := "add " + f.name + ": …"
		if len(f.oneOf) > 0 {
			hint = "add " + f.name + ": " + f.oneOf[0]
		}
		at.Fault("is missing", hint)
		return
	}
	_, names := v.Addr().Interface().(orderedMap)
	gathers := names || v.Kind() == reflect.Map || v.Kind() == reflect.Slice
	if at.Kind() == Text && at.Scalar() == "" || gathers && at.Kind() >= Mapping && len(at.y.Content) == 0 {
		at.Fault("is empty", "give it a value")
	}
}

func (d *document) mapping(n *Node, v reflect.Value) {
	t := v.Type()
	if t.Key().Kind() != reflect.String {
		panic(fmt.Sprintf("config: cannot decode into %s: keys must be strings", t))
	}
	if !n.IsMapping() {
		n.Fault("wants a mapping, got "+n.got(), "write key: value, one a line")
		return
	}
	v.Set(reflect.MakeMapWithSize(t, len(n.y.Content)/2))
	for _, p := range n.Pairs() {
		e := reflect.New(t.Elem()).Elem()
		d.value(p.Value, e, nil)
		v.SetMapIndex(reflect.ValueOf(p.Key).Convert(t.Key()), e)
	}
}

func (d *document) list(n *Node, v reflect.Value) {
	if !n.IsSequence() {
		hint := "write a list: [a, b]"
		if n.IsScalar() && n.Kind() != Null && len(n.Scalar()) <= clipped && !strings.ContainsAny(n.Scalar(), ",[]{}\n") {
			hint = "write [" + n.Scalar() + "]"
		}
		n.Fault("wants a list, got "+n.got(), hint)
		return
	}
	items := n.Items()
	v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
	for i, item := range items {
		d.value(item, v.Index(i), nil)
	}
}

func (d *document) text(n *Node, v reflect.Value, f *field) {
	if f == nil || len(f.oneOf) == 0 {
		if s, ok := n.Text(); ok {
			v.SetString(s)
		}
		return
	}
	s := n.Scalar()
	if n.IsScalar() {
		for _, word := range f.oneOf {
			if s == word {
				v.SetString(s)
				return
			}
		}
	}
	n.Fault("wants "+orList(f.oneOf)+", got "+n.got(), oneOfHint(s, f.oneOf))
}

func orList(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// dynamic decodes into an empty interface: nil, bool, int64, float64, string,
// []any or map[string]any.
func (d *document) dynamic(n *Node, v reflect.Value) {
	if v.NumMethod() != 0 {
		panic(fmt.Sprintf("config: cannot decode into %s", v.Type()))
	}
	var x reflect.Value
	switch n.Kind() {
	case Null:
		return
	case Bool:
		x = reflect.New(reflect.TypeFor[bool]()).Elem()
		decodeBool(n, x)
	case Number:
		x = reflect.New(reflect.TypeFor[float64]()).Elem()
		if integer.MatchString(n.Scalar()) {
			x = reflect.New(reflect.TypeFor[int64]()).Elem()
		}
		d.plain(n, x, nil)
	case Text:
		x = reflect.New(reflect.TypeFor[string]()).Elem()
		d.text(n, x, nil)
	case Mapping:
		x = reflect.New(reflect.TypeFor[map[string]any]()).Elem()
		d.mapping(n, x)
	case Sequence:
		x = reflect.New(reflect.TypeFor[[]any]()).Elem()
		d.list(n, x)
	}
	v.Set(x)
}

// tooLong reports whether a list or a mapping has more items than it may.
func (n *Node) tooLong(most int) bool {
	k, what := 0, "items"
	switch n.Kind() {
	case Sequence:
		k = len(n.y.Content)
	case Mapping:
		k, what = len(n.y.Content)/2, "keys"
	}
	if k > most {
		n.Fault(fmt.Sprintf("has %d %s; at most %d", k, what, most), "split it")
	}
	return k > most
}

// within checks the min and max tags, which are written as the document would.
func (d *document) within(n *Node, v reflect.Value, f *field) {
	refuse := func(loose, tight, limit, hint, larger string, strict bool) {
		got := ", got " + clip(n.Scalar())
		switch {
		case f.min == f.max:
			n.Fault("must be "+limit+got, "write "+limit)
		case strict:
			n.Fault("must be "+tight+" "+limit+got, "use a "+larger+" value")
		default:
			n.Fault("must be "+loose+" "+limit+got, "write "+limit+" or "+hint)
		}
	}
	if limit, strict := strings.CutPrefix(f.min, ">"); limit != "" {
		if c := compareTo(v, limit); c < 0 || strict && c == 0 {
			refuse("at least", "more than", limit, "more", "larger", strict)
		}
	}
	if limit, strict := strings.CutPrefix(f.max, "<"); limit != "" {
		if c := compareTo(v, limit); c > 0 || strict && c == 0 {
			refuse("at most", "less than", limit, "less", "smaller", strict)
		}
	}
}

// compareTo compares a number with one written in a tag, in the same type.
func compareTo(v reflect.Value, limit string) int {
	l := reflect.New(v.Type())
	if err := parseTag(l, limit); err != nil {
		panic(fmt.Sprintf("config: the limit %q does not fit a %s: %v", limit, v.Type(), err))
	}
	switch e := l.Elem(); {
	case v.CanInt():
		return cmp.Compare(v.Int(), e.Int())
	case v.CanUint():
		return cmp.Compare(v.Uint(), e.Uint())
	case v.CanFloat():
		return cmp.Compare(v.Float(), e.Float())
	}
	panic(fmt.Sprintf("config: a %s has no limits", v.Type()))
}

package config

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Kind says what a Node is.
type Kind uint8

// The kinds of nodes. Words such as yes and off are Text here, though other
// readers take them for booleans; Node.Text refuses them unless quoted.
const (
	Null   Kind = iota // nothing, ~ or null
	Bool               // true or false
	Number             // anything that some YAML reader takes for a number, also .inf and 1_000
	Text
	Mapping
	Sequence
)

// String returns the kind as it is called in faults.
func (k Kind) String() string {
	return [...]string{"no value", "a boolean", "a number", "text", "a mapping", "a list"}[k]
}

// A Node is one value of a document and the place to report faults at. Nodes
// come from Decode; a Decoder or Checker that is handed one may keep it. A Node
// is not safe for concurrent use.
type Node struct {
	doc    *document
	y      *yaml.Node // nil: the key is absent, see At
	parent *Node
	key    string // of the parent's entry
	index  int    // in the parent's list; -1: in a mapping
}

// A Pair is one entry of a mapping.
type Pair struct {
	Key     string
	KeyNode *Node // where the key stands; its path is the entry's
	Value   *Node
}

// Kind returns what the node is.
func (n *Node) Kind() Kind {
	if n.y == nil {
		return Null
	}
	switch n.y.Kind {
	case yaml.MappingNode:
		return Mapping
	case yaml.SequenceNode:
		return Sequence
	case yaml.ScalarNode:
		return scalarKind(n.y)
	}
	return Null
}

// IsMapping reports whether the node is a mapping.
func (n *Node) IsMapping() bool { return n.Kind() == Mapping }

// IsSequence reports whether the node is a list.
func (n *Node) IsSequence() bool { return n.Kind() == Sequence }

// IsScalar reports whether the node is a single value, also none.
func (n *Node) IsScalar() bool { return n.Kind() < Mapping }

// Exists reports whether the node stands in the document; see At.
func (n *Node) Exists() bool { return n.y != nil }

// Scalar returns the value as it is written, without quotes; "" if the node is
// not a scalar.
func (n *Node) Scalar() string {
	if n.y == nil || n.y.Kind != yaml.ScalarNode {
		return ""
	}
	return n.y.Value
}

// Quoted reports whether the scalar is quoted or a block of text.
func (n *Node) Quoted() bool {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	return n.y != nil && n.y.Kind == yaml.ScalarNode && n.y.Style&quoted != 0
}

// Text returns the node's text. If it is not text, it reports a fault and
// returns false.
func (n *Node) Text() (string, bool) {
	if n.bad() {
		return "", false
	}
	s := n.Scalar()
	switch n.Kind() {
	case Text:
		if !n.Quoted() && doubtful(s) {
			n.Fault("wants text, got "+s+", which other YAML readers take for "+boolOf(s), `write "`+s+`"`)
			return "", false
		}
		return s, true
	case Number, Bool:
		n.Fault("wants text, got "+n.got(), "write "+quote(s))
	case Null:
		n.Fault("wants text, got no value", "give it a value or remove the key")
	default:
		n.Fault("wants text, got "+n.got(), "write one value here")
	}
	return "", false
}

// Pairs returns the entries of a mapping in file order; nil if the node is none.
// Entries with a faulty key (repeated, or not plain text) were reported already
// and are left out.
func (n *Node) Pairs() []Pair {
	if !n.IsMapping() || n.bad() {
		return nil
	}
	ps := make([]Pair, 0, len(n.y.Content)/2)
	for i := 0; i+1 < len(n.y.Content); i += 2 {
		k, v := n.y.Content[i], n.y.Content[i+1]
		if n.doc.bad[k] {
			continue
		}
		ps = append(ps, Pair{
			Key:     k.Value,
			KeyNode: &Node{doc: n.doc, y: k, parent: n, key: k.Value, index: -1},
			Value:   &Node{doc: n.doc, y: v, parent: n, key: k.Value, index: -1},
		})
	}
	return ps
}

// Items returns the elements of a list in file order; nil if the node is none.
func (n *Node) Items() []*Node {
	if !n.IsSequence() || n.bad() {
		return nil
	}
	items := make([]*Node, len(n.y.Content))
	for i, y := range n.y.Content {
		items[i] = &Node{doc: n.doc, y: y, parent: n, index: i}
	}
	return items
}

// At returns the value under a key of a mapping. If there is none, the node has
// that path and the mapping's own position, and Exists reports false.
func (n *Node) At(key string) *Node {
	if n.IsMapping() {
		for i := 0; i+1 < len(n.y.Content); i += 2 {
			if k := n.y.Content[i]; k.Kind == yaml.ScalarNode && k.Value == key && !n.doc.bad[k] {
				return &Node{doc: n.doc, y: n.y.Content[i+1], parent: n, key: key, index: -1}
			}
		}
	}
	return &Node{doc: n.doc, parent: n, key: key, index: -1}
}

// Has reports whether the node is a mapping with that key.
func (n *Node) Has(key string) bool { return n.At(key).Exists() }

// Line returns the line on which the node starts, from 1.
func (n *Node) Line() int { l, _ := n.position(); return l }

// Column returns the column at which the node starts, from 1, in characters.
func (n *Node) Column() int { _, c := n.position(); return c }

// File returns the name of the document, as given to Decode.
func (n *Node) File() string { return n.doc.file }

func (n *Node) position() (line, column int) {
	for n.y == nil {
		n = n.parent
	}
	return max(n.y.Line, 1), max(n.y.Column, 1)
}

var plainKey = regexp.MustCompile(`^[\pL\pN_/-]+(\.[\pL\pN_/-]+)*$`)

// step is one part of a path: a key, or an index that is not negative.
type step struct {
	key   string
	index int
}

// Path returns the way from the document to the node: "clauses[2].need". It is
// empty for the document.
func (n *Node) Path() string {
	var steps []step
	for m := n; m.parent != nil; m = m.parent {
		steps = append(steps, step{m.key, m.index})
	}
	slices.Reverse(steps)
	return pathOf(steps)
}

func pathOf(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		switch {
		case s.index >= 0:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case len(s.key) <= suggestBound && plainKey.MatchString(s.key):
			b.WriteString("." + s.key)
		default:
			b.WriteString("[" + quote(s.key) + "]")
		}
	}
	return strings.TrimPrefix(b.String(), ".")
}

// Fault reports that something is wrong with the node: what, and the one next
// step. Decode returns it with all others.
func (n *Node) Fault(what, hint string) {
	n.FaultIn(0, what, hint)
}

// FaultIn reports a fault at the given byte offset in the node's text, so that a
// value with a grammar of its own can point into it. For text that spans several
// lines the fault stands at the node.
func (n *Node) FaultIn(offset int, what, hint string) {
	if n.bad() {
		return // reported already, and what the node holds is unknown
	}
	if n.doc.faults.full() {
		n.doc.faults.total++
		return
	}
	f := n.Mark(what, hint)
	if s := n.Scalar(); offset > 0 && offset <= len(s) && n.written(s) {
		f.Column += utf8.RuneCountInString(s[:offset])
		if n.Quoted() {
			f.Column++
		}
	}
	n.doc.faults.add(f)
}

// written reports whether s stands in the source at the node as it is, so that
// an offset in s is one in the line.
func (n *Node) written(s string) bool {
	at := n.doc.offset(n.position())
	if n.Quoted() {
		at++
	}
	return at < len(n.doc.data) && bytes.HasPrefix(n.doc.data[at:], []byte(s)) && !strings.ContainsAny(s, "\r\n")
}

// Mark returns the fault that Fault would report, without reporting it: for
// those who judge a value after Decode returned.
func (n *Node) Mark(what, hint string) Fault {
	line, column := n.position()
	return Fault{File: n.doc.file, Line: line, Column: column, Path: n.Path(), What: what, Hint: hint}
}

// Decode decodes the node into the value that into points to, by the rules of
// the package function Decode. Faults go to the same list; it returns whether
// there was none.
func (n *Node) Decode(into any) bool {
	before := n.doc.faults.total
	n.doc.decodeInto(n, into)
	return n.doc.faults.total == before
}

// bad reports whether the node was refused before decoding.
func (n *Node) bad() bool { return n.y != nil && n.doc.bad[n.y] }

// got says what the node holds, for "wants a, got b".
func (n *Node) got() string {
	switch k := n.Kind(); k {
	case Bool:
		return n.Scalar()
	case Number:
		return "the number " + clip(n.Scalar())
	case Text:
		return "the text " + quote(n.Scalar())
	default:
		return k.String()
	}
}

// clipped is the number of characters of a value that a fault shows.
const clipped = 40

func clip(s string) string { return clipTo(s, clipped) }

func clipTo(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}

func quote(s string) string { return strconv.Quote(clip(s)) }

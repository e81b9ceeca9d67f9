package config

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Limits bound what a document may cost. The zero value of a field means its
// default.
type Limits struct {
	Bytes int // size of the file; default 4 MiB
	Depth int // levels of nesting; default 64
	Nodes int // mappings, lists, keys and values; default 100,000
}

func (l Limits) orDefault() Limits {
	if l.Bytes <= 0 {
		l.Bytes = 4 << 20
	}
	if l.Depth <= 0 {
		l.Depth = 64
	}
	if l.Nodes <= 0 {
		l.Nodes = 100_000
	}
	return l
}

// document is one file while it is decoded.
type document struct {
	file   string
	data   []byte
	limits Limits
	starts []int // offset of each line
	root   *Node
	bad    map[*yaml.Node]bool // refused by check: their faults are reported, their content is not to be used
	nodes  int
	faults faultList
	types  map[typeKey]*structInfo
}

// fault reports a fault of the file at an offset, before there are nodes.
func (d *document) fault(offset int, what, hint string) {
	line, column := d.locate(offset)
	d.faultAt(line, column, what, hint)
}

func (d *document) faultAt(line, column int, what, hint string) {
	d.faults.add(Fault{File: d.file, Line: max(line, 1), Column: max(column, 1), What: what, Hint: hint})
}

func (d *document) index() {
	if d.starts != nil {
		return
	}
	d.starts = []int{0}
	for i := 0; i < len(d.data); i++ {
		if c := d.data[i]; c == '\n' || c == '\r' {
			if c == '\r' && i+1 < len(d.data) && d.data[i+1] == '\n' {
				i++
			}
			d.starts = append(d.starts, i+1)
		}
	}
}

// locate turns an offset into a line and a column in characters.
func (d *document) locate(offset int) (line, column int) {
	d.index()
	i, found := slices.BinarySearch(d.starts, offset)
	if !found {
		i--
	}
	return i + 1, utf8.RuneCount(d.data[d.starts[i]:min(offset, len(d.data))]) + 1
}

// line returns a line, numbered from 1, without its end.
func (d *document) line(n int) string {
	d.index()
	if n < 1 || n > len(d.starts) {
		return ""
	}
	end := len(d.data)
	if n < len(d.starts) {
		end = d.starts[n]
	}
	return strings.TrimRight(string(d.data[d.starts[n-1]:end]), "\r\n")
}

// parse reads the document into nodes and checks what holds for every document.
// It returns false if there is nothing to decode.
func (d *document) parse() bool {
	if !d.scan() {
		return false
	}
	docs, err := d.readYAML()
	if err != nil {
		d.syntax(err)
		return false
	}
	if len(docs) > 1 {
		d.faultAt(docs[1].Line, docs[1].Column, "a second document starts here; a file holds one", "move it into a file of its own")
	}
	if len(docs) == 0 || len(docs[0].Content) == 0 || isEmpty(docs[0].Content[0]) {
		d.faultAt(1, 1, emptyDocument, "")
		return false
	}
	d.root = &Node{doc: d, y: docs[0].Content[0], index: -1}
	d.bad = make(map[*yaml.Node]bool)
	return d.check(d.root.y, 1)
}

const emptyDocument = "the document is empty"

func isEmpty(y *yaml.Node) bool {
	return y.Kind == yaml.ScalarNode && y.Style == 0 && y.Value == "" && y.Anchor == ""
}

// scan refuses, before the YAML parser sees them, files that are no text and
// files that could cost too much. Each node of a document needs a mark of its
// own (a comma, a dash, a colon…), so the marks bound the nodes, whatever is
// quoted and whatever is a comment.
func (d *document) scan() bool {
	if len(d.data) > d.limits.Bytes {
		d.data = d.data[:0]
		d.faultAt(1, 1, fmt.Sprintf("the file is larger than %s", Bytes(d.limits.Bytes)), "keep long texts and prompt sets in files of their own")
		return false
	}
	if hint, found := byteOrderMark(d.data); found {
		d.data = d.data[:0]
		d.faultAt(1, 1, "the file starts with a byte order mark", hint)
		return false
	}
	marks := 0
	for i := 0; i < len(d.data); {
		c := d.data[i]
		if c < utf8.RuneSelf {
			switch {
			case isMark(d.data, i):
				if marks++; marks > d.limits.Nodes {
					d.fault(i, fmt.Sprintf("the document has more than %d values", d.limits.Nodes), "split it, or keep long lists in files of their own")
					return false
				}
			case c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f:
				d.fault(i, fmt.Sprintf("a control character (0x%02x)", c), `remove it, or write it as an escape in double quotes`)
				return false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(d.data[i:])
		if r == utf8.RuneError && size == 1 {
			d.fault(i, fmt.Sprintf("the byte 0x%02x is not UTF-8", c), "save the file as UTF-8")
			return false
		}
		if r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			d.fault(i, fmt.Sprintf("an invisible character (U+%04X)", r), "remove it, or write it as an escape in double quotes")
			return false
		}
		i += size
	}
	return true
}

// isMark reports whether the byte may bring forth a node.
func isMark(data []byte, i int) bool {
	switch data[i] {
	case ',', '[', '{', ':':
		return true
	case '-', '?':
		return i+1 == len(data) || strings.IndexByte(" \t\r\n,[]{}", data[i+1]) >= 0
	}
	return false
}

func byteOrderMark(data []byte) (hint string, found bool) {
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return "save the file as UTF-8 without a byte order mark", true
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		return "save the file as UTF-8; it is UTF-16", true
	}
	return "", false
}

// readYAML parses at most two documents; two are one too many.
func (d *document) readYAML() ([]*yaml.Node, error) { return readYAML(d.data) }

func readYAML(data []byte) (docs []*yaml.Node, err error) {
	defer func() {
		// The library panics on some inputs that it has no error for.
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for len(docs) < 2 {
		var doc yaml.Node
		if err := dec.Decode(&doc); err == io.EOF {
			break
		} else if err != nil {
			return docs, err
		}
		docs = append(docs, &doc)
	}
	return docs, nil
}

// check walks the tree once for what no document may have, whatever its types.
// It returns false when a limit is passed and the rest was not looked at.
func (d *document) check(y *yaml.Node, depth int) bool {
	if depth > d.limits.Depth {
		d.faultAt(y.Line, y.Column, fmt.Sprintf("nested deeper than %d levels", d.limits.Depth), "flatten it")
		return false
	}
	if d.nodes++; d.nodes > d.limits.Nodes {
		d.faultAt(y.Line, y.Column, fmt.Sprintf("the document has more than %d values", d.limits.Nodes), "split it, or keep long lists in files of their own")
		return false
	}
	d.checkForm(y)
	if y.Kind == yaml.MappingNode {
		return d.checkMapping(y, depth)
	}
	for _, c := range y.Content {
		if !d.check(c, depth+1) {
			return false
		}
	}
	return true
}

// checkForm refuses anchors, aliases and tags.
func (d *document) checkForm(y *yaml.Node) {
	refuse := func(what, hint string) {
		d.bad[y] = true
		d.faultAt(y.Line, y.Column, what, hint)
	}
	switch {
	case y.Kind == yaml.AliasNode:
		refuse("aliases (*) are not allowed", "write the value out here")
	case y.Anchor != "":
		d.faultAt(y.Line, y.Column, "anchors (&) are not allowed", "remove the anchor, and write the value out where it is used")
	case y.Style&yaml.TaggedStyle != 0, d.byteAt(y.Line, y.Column) == '!' && y.Style&quotedStyles == 0:
		refuse("tags (!) are not allowed", "remove the tag")
	case y.Kind == yaml.ScalarNode && y.Style&quotedStyles != 0 && d.byteAt(y.Line, y.Column) == '!':
		refuse("tags (!) are not allowed", "remove the tag")
	}
}

func (d *document) byteAt(line, column int) byte {
	d.index()
	if line < 1 || line > len(d.starts) {
		return 0
	}
	rest := d.data[d.starts[line-1]:]
	for range column - 1 {
		_, size := utf8.DecodeRune(rest)
		rest = rest[size:]
	}
	if len(rest) == 0 {
		return 0
	}
	return rest[0]
}

// longestKey bounds a key in bytes: what is longer is text that lost its place.
const longestKey = 256

func (d *document) checkMapping(y *yaml.Node, depth int) bool {
	first := make(map[string]*yaml.Node, len(y.Content)/2)
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		refuse := func(what, hint string) {
			d.bad[k] = true
			d.faultAt(k.Line, k.Column, what, hint)
		}
		if !d.check(k, depth+1) {
			return false
		}
		switch prior, repeated := first[k.Value], first[k.Value] != nil; {
		case d.bad[k]:
		case k.Kind != yaml.ScalarNode:
			refuse("a key must be one word, not a list or mapping", `if this was meant as text, quote it`)
		case k.Tag == "!!merge":
			refuse("merge keys (<<) are not allowed", "write the keys out here")
		case isEmpty(k):
			refuse(`a ":" without a key before it`, "write the key")
		case len(k.Value) > longestKey:
			refuse(fmt.Sprintf("a key of %d bytes; at most %d", len(k.Value), longestKey), `quote the text if it contains ": "`)
		case repeated:
			refuse(fmt.Sprintf("the key %s is repeated; it stands on line %d already", clip(k.Value), prior.Line), "keep one of the two")
		default:
			first[k.Value] = k
		}
		if !d.check(v, depth+1) {
			return false
		}
	}
	return true
}

package config

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
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
	Nodes int // mappings, lists, keys and values; default 100,000. The file may have twice as many lines
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
	cursor cursor
	root   *Node
	bad    map[*yaml.Node]bool // refused by check: their faults are reported, their content is not to be used
	// tainted are the nodes that hold a refused one somewhere: rules across their
	// fields would judge what is not all there.
	tainted map[*yaml.Node]bool
	nodes   int
	path    []step // of the node that is checked
	faults  faultList
	types   map[reflect.Type]*structInfo
}

// fault reports a fault of the file at an offset, before there are nodes.
func (d *document) fault(offset int, what, hint string) {
	line, column := d.locate(offset)
	d.faultAt(line, column, what, hint)
}

func (d *document) faultAt(line, column int, what, hint string) {
	if d.faults.full() {
		d.faults.total++
		return
	}
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
	docs, err := readYAML(d.data)
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
	d.bad, d.tainted = make(map[*yaml.Node]bool), make(map[*yaml.Node]bool)
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
	refuse := func(at int, what, hint string) bool {
		d.data = d.data[:at] // what follows is not to be looked at, not even for its lines
		d.fault(at, what, hint)
		return false
	}
	if len(d.data) > d.limits.Bytes {
		return refuse(0, "the file is larger than "+Bytes(d.limits.Bytes).String(), "keep long texts and prompt sets in files of their own")
	}
	if hint, found := byteOrderMark(d.data); found {
		return refuse(0, "the file starts with a byte order mark", hint)
	}
	marks, lines, start := 0, 0, 0
	for i := 0; i < len(d.data); {
		if i-start > longestLine {
			return refuse(start, "a line of more than "+Bytes(longestLine).String(), "keep long texts in files of their own")
		}
		c := d.data[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(d.data[i:])
			if r == utf8.RuneError && size == 1 {
				return refuse(i, fmt.Sprintf("the byte 0x%02x is not UTF-8", c), "save the file as UTF-8")
			}
			if invisible(r) {
				return refuse(i, fmt.Sprintf("an invisible character (U+%04X)", r), "remove it, or write it as an escape in double quotes")
			}
			i += size
			continue
		}
		switch {
		case c == '\n', c == '\r' && !bytes.HasPrefix(d.data[i+1:], []byte("\n")):
			lines, start = lines+1, i+1
		case c == '\r':
		case c < ' ' && c != '\t' || c == 0x7f:
			return refuse(i, fmt.Sprintf("a control character (0x%02x)", c), "remove it, or write it as an escape in double quotes")
		case c == '#' && startsComment(d.data, i):
			marks += 2 // the parser keeps more about a comment than about a value
		case isMark(d.data, i):
			marks++
		}
		if marks > d.limits.Nodes {
			return refuse(i, tooMany(d.limits.Nodes, "values and comments"), "split it, or keep long lists in files of their own")
		}
		if lines > 2*d.limits.Nodes {
			return refuse(i, tooMany(2*d.limits.Nodes, "lines"), "split it, or keep long texts in files of their own")
		}
		i++
	}
	return true
}

func tooMany(n int, what string) string {
	return fmt.Sprintf("the document has more than %d %s", n, what)
}

// invisible reports whether a character breaks lines for YAML but not for
// editors, or is refused by YAML.
func invisible(r rune) bool {
	return r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff
}

func startsComment(data []byte, i int) bool {
	return i == 0 || strings.IndexByte(" \t\r\n", data[i-1]) >= 0
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
func readYAML(data []byte) ([]*yaml.Node, error) {
	return readAll(yaml.NewDecoder(bytes.NewReader(data)))
}

func readAll(dec *yaml.Decoder) (docs []*yaml.Node, err error) {
	defer func() {
		// The library panics on some inputs that it has no error for.
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
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
		d.faultAt(y.Line, y.Column, tooMany(d.limits.Nodes, "values"), "split it, or keep long lists in files of their own")
		return false
	}
	switch {
	case y.Kind == yaml.AliasNode:
		d.refuse(y, "aliases (*) are not allowed", "write the value out here")
	case y.Anchor != "":
		d.report(y, "anchors (&) are not allowed", "remove the anchor, and write the value out where it is used")
	case y.Style&yaml.TaggedStyle != 0 || d.byteAt(y.Line, y.Column) == '!':
		d.refuse(y, "tags (!) are not allowed", "remove the tag")
	}
	before := d.faults.total
	defer func() {
		if d.faults.total != before {
			d.tainted[y] = true
		}
	}()
	if y.Kind == yaml.MappingNode {
		return d.checkMapping(y, depth)
	}
	for i, c := range y.Content {
		d.path = append(d.path, step{index: i})
		if !d.check(c, depth+1) {
			return false
		}
		d.path = d.path[:len(d.path)-1]
	}
	return true
}

// refuse reports a node and keeps it from being decoded.
func (d *document) refuse(y *yaml.Node, what, hint string) {
	d.bad[y] = true
	d.report(y, what, hint)
}

// report reports the node that is checked.
func (d *document) report(y *yaml.Node, what, hint string) {
	if d.faults.full() {
		d.faults.total++
		return
	}
	d.faults.add(Fault{File: d.file, Line: max(y.Line, 1), Column: max(y.Column, 1), Path: pathOf(d.path), What: what, Hint: hint})
}

// longestLine bounds a line in bytes: the parser takes more than a hundred times as
// long for a text as it takes to see that it is too long.
const longestLine = 1 << 20

// longestKey bounds a key in bytes: what is longer is text that lost its place.
const longestKey = 256

func (d *document) checkMapping(y *yaml.Node, depth int) bool {
	first := make(map[string]*yaml.Node, len(y.Content)/2)
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		if !d.check(k, depth+1) {
			return false
		}
		here := len(d.path)
		if k.Kind == yaml.ScalarNode {
			d.path = append(d.path, step{k.Value, -1})
		}
		d.checkKey(k, first)
		if !d.check(v, depth+1) {
			return false
		}
		d.path = d.path[:here]
	}
	return true
}

// checkKey refuses what is no key, or one that the mapping has already.
func (d *document) checkKey(k *yaml.Node, first map[string]*yaml.Node) {
	prior := first[k.Value]
	switch {
	case d.bad[k]:
	case k.Kind != yaml.ScalarNode:
		d.refuse(k, "a key must be one word, not a list or mapping", "if this was meant as text, quote it")
	case k.Tag == "!!merge":
		d.refuse(k, "merge keys (<<) are not allowed", "write the keys out here")
	case isEmpty(k):
		d.refuse(k, `a ":" without a key before it`, "write the key")
	case k.Value == "":
		d.refuse(k, "a key must not be empty", "write the key")
	case len(k.Value) > longestKey:
		d.refuse(k, fmt.Sprintf("a key of %d bytes; at most %d", len(k.Value), longestKey), `quote the text if it contains ": "`)
	case prior != nil:
		d.refuse(k, fmt.Sprintf("the key is repeated; it stands on line %d already", prior.Line), "keep one of the two")
	default:
		first[k.Value] = k
	}
}

// cursor is the last place that was looked at. Nodes are checked in file order,
// so the next place is near: a line of megabytes is not walked for each node.
type cursor struct{ line, column, offset int }

// offset turns a line and a column in characters into an offset.
func (d *document) offset(line, column int) int {
	d.index()
	line = min(max(line, 1), len(d.starts))
	c := &d.cursor
	if c.line != line || c.column > column {
		*c = cursor{line, 1, d.starts[line-1]}
	}
	for c.column < column && c.offset < len(d.data) {
		_, size := utf8.DecodeRune(d.data[c.offset:])
		c.offset += size
		c.column++
	}
	return c.offset
}

func (d *document) byteAt(line, column int) byte {
	if i := d.offset(line, column); i < len(d.data) {
		return d.data[i]
	}
	return 0
}

package config

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// rule says in plain words what a message of the YAML parser means, and how to
// find the column, which the parser does not tell.
type rule struct {
	says  string // part of the parser's message
	what  string
	hint  string
	at    func(line string) int // byte offset in the line, negative: not found; nil: its first character
	begun bool                  // the parser counts the line of the enclosing value from 0, and not from 1
}

var rules = []rule{
	{"mapping values are not allowed", `a ":" where no key can stand`, `quote the text if it contains ": ", or check the indentation`, secondColon, false},
	{"did not find expected key", "the indentation fits none of the open levels", "line it up with the keys above it", nil, true},
	{"did not find expected '-' indicator", "the indentation fits none of the open levels", "start the entry with -, or line it up with the keys above it", nil, true},
	{"did not find expected ',' or ']'", "the [ is not closed", "close it with ], and put commas between the entries", lastOpen('[', ']'), true},
	{"did not find expected ',' or '}'", "the { is not closed", "close it with }, and put commas between the entries", lastOpen('{', '}'), true},
	{"did not find expected node content", "a value is missing", "write it, or close the bracket", missing, true},
	{"did not find expected <document start>", "more text after the end of the document", "remove it, or check the indentation", nil, true},
	{"undefined tag handle", "tags (!) are not allowed", "remove the tag", anyOf("!"), true},
	{"found unexpected end of stream", "the quote is not closed", "close it", openQuote, false},
	{"found unexpected document indicator", "the quote is not closed", "close it", openQuote, false},
	{"could not find expected ':'", `a key without ":"`, "write key: value", nil, false},
	{"found a tab character", "a tab in the indentation", "indent with spaces", anyOf("\t"), false},
	{"found character that cannot start any token", "a character that cannot start a value", "quote the text", reserved, false},
	{"found unknown escape character", `an unknown escape after \`, `use single quotes, or write \\`, anyOf(`\`), false},
	{"did not find expected hexdecimal number", `an incomplete escape after \`, `use single quotes, or write \\`, anyOf(`\`), false},
	{"found invalid Unicode character escape code", `an impossible character after \`, `use single quotes, or write \\`, anyOf(`\`), false},
	{"did not find expected alphabetic or numeric character", "a value that starts with * or &", "quote the text", starts("*&"), false},
	{"unknown anchor", "aliases (*) are not allowed", "write the value out here", starts("*"), false},
	{"block sequence entries are not allowed", `a "-" where no list can start`, "start the list on a line of its own", starts("-"), false},
	{"mapping keys are not allowed", `a "?" where no key can start`, "quote the text", starts("?"), false},
	{"did not find URI escaped octet", "tags (!) are not allowed", "remove the tag", anyOf("!"), false},
	{"did not find expected tag URI", "tags (!) are not allowed", "remove the tag", anyOf("!"), false},
	{"did not find expected '!'", "tags (!) are not allowed", "remove the tag", anyOf("!"), false},
	{"did not find expected whitespace or line break", "a character that cannot start a value", "quote the text", starts("!&*"), false},
	{"did not find expected comment or line break", "text after | or >", "start the text on the next line", starts("|>"), false},
	{"directive", noDirectives, "remove the line", nil, false},
	{"incompatible YAML document", noDirectives, "remove the line", nil, false},
}

const noDirectives = "directives (%) are not allowed"

var unknownAnchor = regexp.MustCompile(`unknown anchor '(.*)' referenced`)

var lineOf = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// A syntax error costs further parses of the file to find its line. These are the
// largest files in bytes for which it is searched among all lines, and among the
// two that are likely; for larger ones the parser's own line is reported, which
// may be that of the enclosing value.
const (
	searched = 16 << 10
	tried    = 64 << 10
)

// syntax reports a syntax error of the YAML parser. The parser tells only a
// line, and that of the enclosing value. The true line is taken to be the first
// one with which the file fails in the same way.
func (d *document) syntax(err error) {
	message := lineOf.ReplaceAllString(err.Error(), "")
	r := rule{what: "not YAML: " + clip(message), hint: "check this line and the one before it"}
	for _, known := range rules {
		if strings.Contains(message, known.says) {
			r = known
			break
		}
	}
	if nesting := strings.Contains(message, "exceeded max depth"); nesting || r.says == "did not find expected node content" {
		if line, offset := d.tooDeep(); nesting || line > 0 {
			d.faultAt(line, offset+1, fmt.Sprintf("nested deeper than %d levels", d.limits.Depth), "flatten it")
			return
		}
	}
	line := d.failingLine(err, r)
	text := d.line(line)
	if i := len(text) - len(strings.TrimLeft(text, " \t")); strings.Contains(text[:i], "\t") {
		d.faultAt(line, strings.IndexByte(text, '\t')+1, "a tab in the indentation", "indent with spaces")
		return
	}
	at := -1
	if r.at != nil {
		at = r.at(text)
	}
	if strings.HasPrefix(r.says, "did not find expected ','") && at < 0 {
		// The brackets of the line match: it is an entry that does not end.
		r.what, r.hint, at = "an entry goes on where it should end", `put a comma, or quote the text if it contains ": "`, entryColon(text)
	}
	if at < 0 {
		at = indent(text)
	}
	if strings.HasPrefix(text[at:], ":") && at == indent(text) {
		r.what, r.hint = `a ":" without a key before it`, "write the key"
	}
	d.faultAt(line, utf8.RuneCountInString(text[:at])+1, r.what, r.hint)
}

// failingLine finds the line of a syntax error.
func (d *document) failingLine(err error, r rule) int {
	d.index()
	last := len(d.starts)
	if last > 1 && d.starts[last-1] == len(d.data) {
		last-- // nothing stands after the last line end
	}
	if r.what == noDirectives {
		for i := range d.starts {
			if strings.HasPrefix(d.line(i+1), "%") {
				return i + 1
			}
		}
	}
	if len(d.data) > tried {
		if m := unknownAnchor.FindStringSubmatch(err.Error()); m != nil { // told without a line
			line, _ := d.locate(max(bytes.Index(d.data, []byte("*"+m[1])), 0))
			return line
		}
		return told(err, r, last)
	}
	// The parser tells no line at all for values that start on the first one; a
	// blank line before it mends that.
	shifted := append([]byte("\n"), d.data...)
	docs, err := readYAML(shifted)
	if err == nil {
		return docs[len(docs)-1].Line // no file is known for which the blank line matters
	}
	fails := func(line int) bool {
		end := len(shifted)
		if line < len(d.starts) {
			end = d.starts[line] + 1
		}
		_, e := readYAML(shifted[:end])
		return e != nil && e.Error() == err.Error()
	}
	if len(d.data) <= searched {
		return 1 + sort.Search(last-1, func(i int) bool { return fails(i + 1) })
	}
	if line := max(told(err, r, last)-1, 1); fails(line) {
		return line
	}
	line := d.consumed(shifted, last)
	if line > 1 && fails(line-1) {
		line--
	}
	return line
}

// told returns the line that the parser tells.
func told(err error, r rule, last int) int {
	line := 1
	if m := lineOf.FindStringSubmatch(err.Error()); m != nil && m[1] != "" {
		line, _ = strconv.Atoi(m[1])
		if r.begun {
			line++
		}
	}
	return min(max(line, 1), last)
}

// consumed returns the number of lines that the parser has read when it fails.
func (d *document) consumed(shifted []byte, last int) int {
	r := &lineReader{rest: shifted}
	_, _ = readAll(yaml.NewDecoder(r))
	return min(max(r.lines-1, 1), last)
}

// lineReader hands out one line at a time and counts them.
type lineReader struct {
	rest  []byte
	lines int
	left  int // of the line that is being handed out
}

func (r *lineReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	if r.left == 0 {
		r.lines++
		r.left = len(r.rest)
		if i := bytes.IndexByte(r.rest, '\n'); i >= 0 {
			r.left = i + 1
		}
	}
	n := copy(p, r.rest[:r.left])
	r.rest, r.left = r.rest[n:], r.left-n
	return n, nil
}

// tooDeep finds the first bracket, dash or question mark below the deepest
// allowed level; line 0: there is none.
func (d *document) tooDeep() (line, offset int) {
	d.index()
	depth := 0
	for n := range d.starts {
		text := d.line(n + 1)
		inline := 0
		for i := range len(text) {
			switch text[i] {
			case '[', '{':
				depth++
			case ']', '}':
				depth--
			case '-', '?':
				if i+1 == len(text) || text[i+1] == ' ' {
					inline++
				}
			}
			if depth+inline > d.limits.Depth {
				return n + 1, i
			}
		}
	}
	return 0, 0
}

func indent(line string) int {
	if i := len(line) - len(strings.TrimLeft(line, " \t")); i < len(line) {
		return i
	}
	return 0
}

// secondColon finds the ": " that makes a mapping inside of a value.
func secondColon(line string) int {
	var quoted byte
	seen := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quoted != 0:
			if c == quoted {
				quoted = 0
			}
		case c == '"' || c == '\'':
			quoted = c
		case c == ':' && (i+1 == len(line) || line[i+1] == ' ' || line[i+1] == '\t'):
			if seen {
				return i
			}
			seen = true
		}
	}
	return strings.LastIndexByte(line, ':')
}

// lastOpen finds the last opening bracket that is not closed on its line.
func lastOpen(open, shut byte) func(string) int {
	return func(line string) int {
		var stack []int
		for i := 0; i < len(line); i++ {
			switch line[i] {
			case open:
				stack = append(stack, i)
			case shut:
				if len(stack) > 0 {
					stack = stack[:len(stack)-1]
				}
			}
		}
		if len(stack) == 0 {
			return -1
		}
		return stack[len(stack)-1]
	}
}

// openQuote finds the quote that is not closed on its line.
func openQuote(line string) int {
	at, quoted := -1, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quoted == '"' && c == '\\':
			i++
		case quoted != 0 && c == quoted:
			quoted, at = 0, -1
		case quoted == 0 && (c == '"' || c == '\''):
			quoted, at = c, i
		}
	}
	return at
}

// reserved finds a character that YAML keeps for itself at the start of a value.
func reserved(line string) int { return starts("@`%|>\t")(line) }

// entryColon finds the second ": " of one entry of a list or mapping in
// brackets.
func entryColon(line string) int {
	seen := false
	for i := range len(line) {
		switch line[i] {
		case ',', '{', '[', '}', ']':
			seen = false
		case ':':
			if !strings.HasPrefix(line[i+1:], " ") {
				continue
			}
			if seen {
				return i
			}
			seen = true
		}
	}
	return -1
}

// missing finds where a value should stand in brackets and does not: a comma
// after an opening bracket or another comma, a closing bracket that closes
// nothing, or else the last bracket that is left open.
func missing(line string) int {
	var open []int
	last := byte(':')
	for i := range len(line) {
		c := line[i]
		switch c {
		case ' ', '\t':
			continue
		case '[', '{':
			open = append(open, i)
		case ',':
			if strings.IndexByte("[{,", last) >= 0 {
				return i
			}
		case ']', '}':
			if len(open) == 0 {
				return i
			}
			open = open[:len(open)-1]
		}
		last = c
	}
	if len(open) > 0 {
		return open[len(open)-1]
	}
	return -1
}

// starts finds one of the characters where a value can start.
func starts(chars string) func(string) int {
	return func(line string) int {
		for i := range len(line) {
			if strings.IndexByte(chars, line[i]) >= 0 && (i == 0 || strings.IndexByte(" [{,\t", line[i-1]) >= 0) {
				return i
			}
		}
		return -1
	}
}

func anyOf(chars string) func(string) int {
	return func(line string) int { return strings.IndexAny(line, chars) }
}

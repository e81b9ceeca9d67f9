package config

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// rule says in plain words what a message of the YAML parser means, and how to
// find the column, which the parser does not tell.
type rule struct {
	says string // part of the parser's message
	what string
	hint string
	at   func(line string) int // byte offset in the line; nil: its first character
}

var rules = []rule{
	{"mapping values are not allowed", `a ":" where no key can stand`, `quote the text if it contains ": ", or check the indentation`, secondColon},
	{"did not find expected key", "the indentation fits none of the open levels", "line it up with the keys above it", nil},
	{"did not find expected '-' indicator", "the indentation fits none of the open levels", "start the entry with -, or line it up with the keys above it", nil},
	{"did not find expected ',' or ']'", "the [ is not closed", "close it with ], and put commas between the entries", lastOpen('[', ']')},
	{"did not find expected ',' or '}'", "the { is not closed", "close it with }, and put commas between the entries", lastOpen('{', '}')},
	{"found unexpected end of stream", "the quote is not closed", "close it", openQuote},
	{"could not find expected ':'", `a key without ":"`, "write key: value", nil},
	{"found character that cannot start any token", "a character that cannot start a value", "quote the text", reserved},
	{"found unknown escape character", `an unknown escape after \`, `use single quotes, or write \\`, anyOf(`\`)},
	{"did not find expected hexdecimal number", `an incomplete escape after \`, `use single quotes, or write \\`, anyOf(`\`)},
	{"did not find expected alphabetic or numeric character", "a value that starts with * or &", "quote the text", anyOf("*&")},
	{"unknown anchor", "aliases (*) are not allowed", "write the value out here", anyOf("*")},
	{"exceeded max depth", "nested deeper than 64 levels", "flatten it", nil},
	{"block sequence entries are not allowed", `a "-" where no list can start`, "start the list on a line of its own", anyOf("-")},
	{"did not find expected <document start>", "more text after the end of the document", "remove it, or check the indentation", nil},
	{"undefined tag handle", "tags (!) are not allowed", "remove the tag", anyOf("!")},
	{"while scanning a tag", "tags (!) are not allowed", "remove the tag", anyOf("!")},
	{"tab character", "a tab in the indentation", "indent with spaces", anyOf("\t")},
}

var lineOf = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// bisected is the largest file in bytes for which the line of a syntax error is
// searched by parsing parts of it; above it the parser's own line is reported.
const bisected = 128 << 10

// syntax reports a syntax error of the YAML parser. The parser tells only a
// line, and that of the enclosing value, so the line is searched: it is the
// first one with which the file fails in the same way.
func (d *document) syntax(err error) {
	message := err.Error()
	m := lineOf.FindStringSubmatch(message)
	line := 1
	if m != nil && m[1] != "" {
		line, _ = strconv.Atoi(m[1])
	}
	d.index()
	if len(d.data) <= bisected {
		line = d.firstFailing(message)
	}
	line = min(max(line, 1), len(d.starts))
	text := d.line(line)
	if i := len(text) - len(strings.TrimLeft(text, " \t")); strings.Contains(text[:i], "\t") {
		d.faultAt(line, strings.IndexByte(text, '\t')+1, "a tab in the indentation", "indent with spaces")
		return
	}
	for _, r := range rules {
		if !strings.Contains(message, r.says) {
			continue
		}
		at := -1
		if r.at != nil {
			at = r.at(text)
		}
		if at < 0 {
			at = indent(text)
		}
		what, hint := r.what, r.hint
		if r.says == "exceeded max depth" {
			line, at = d.tooDeep()
			text = d.line(line)
		}
		d.faultAt(line, utf8.RuneCountInString(text[:min(at, len(text))])+1, what, hint)
		return
	}
	if m != nil {
		message = message[len(m[0]):]
	}
	d.faultAt(line, utf8.RuneCountInString(text[:indent(text)])+1, "not YAML: "+clip(message), "check this line and the one before it")
}

// firstFailing returns the first line with which the file fails with the
// message.
func (d *document) firstFailing(message string) int {
	lo, hi := 1, len(d.starts)
	for lo < hi {
		mid := (lo + hi) / 2
		if _, err := readYAML(d.data[:d.starts[mid]]); err != nil && err.Error() == message {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// tooDeep finds the first bracket or dash below the deepest allowed level.
func (d *document) tooDeep() (line, offset int) {
	depth := 0
	for n := range d.starts {
		text := d.line(n + 1)
		dashes := 0
		for i := 0; i < len(text); i++ {
			switch text[i] {
			case '[', '{':
				depth++
			case ']', '}':
				depth--
			case '-', '?':
				dashes++
			}
			if depth > d.limits.Depth || dashes > d.limits.Depth {
				return n + 1, i
			}
		}
	}
	return 1, 0
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
func reserved(line string) int {
	for i := 0; i < len(line); i++ {
		if strings.IndexByte("@`%|>\t", line[i]) >= 0 && (i == 0 || strings.IndexByte(" [{,:-?\t", line[i-1]) >= 0) {
			return i
		}
	}
	return -1
}

func anyOf(chars string) func(string) int {
	return func(line string) int { return strings.IndexAny(line, chars) }
}

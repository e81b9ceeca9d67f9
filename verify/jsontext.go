package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
)

// fenceRE is a block of code in Markdown: its language and what is in it.
var fenceRE = regexp.MustCompile("(?m)^[ \t]*```([A-Za-z0-9+#_-]*)[^\n`]*\n((?s:.*?))^[ \t]*```[ \t]*$")

// FindJSON finds the JSON value in an answer: the whole text, else the last block of
// code that is one, else the last object or array in the text. how says which, or
// why there is none. A lone word or number within prose is not looked for.
func FindJSON(text string) (value []byte, how string, ok bool) {
	whole := []byte(trim(text))
	if _, err := decodeJSON(whole); err == nil {
		return whole, "the whole answer", true
	}
	blocks := fenceRE.FindAllStringSubmatch(text, -1)
	for i := len(blocks) - 1; i >= 0; i-- {
		b := []byte(trim(blocks[i][2]))
		if _, err := decodeJSON(b); err == nil {
			return b, "a block of code", true
		}
	}
	if b := lastValue(whole); b != nil {
		return b, "within the text", true
	}
	return nil, "there is no JSON in the answer", false
}

// maxDepth bounds the nesting of JSON that is looked at.
const maxDepth = 64

// decodeJSON decodes one value that is all of b, with numbers as they are written.
func decodeJSON(b []byte) (any, error) {
	depth := 0
	d := json.NewDecoder(bytes.NewReader(b))
	for { // depth first: Decode alone would go down 10,000 levels
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > maxDepth {
				return nil, errors.New("nested too deep")
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	d = json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

// maxTries bounds how many brackets that begin no value are looked behind, each to
// the end of the text at worst.
const maxTries = 64

// lastValue finds the last object in b, or array of objects, texts or arrays, that
// nothing encloses. A [1] in prose is a footnote, not an answer.
func lastValue(b []byte) []byte {
	var last []byte
	for from, tries := 0, 0; tries < maxTries; {
		i := bytes.IndexAny(b[from:], "{[")
		if i < 0 {
			break
		}
		from += i
		if b[from] == '[' {
			if next := bytes.TrimLeft(b[from+1:], " \t\r\n"); len(next) == 0 || !bytes.ContainsRune([]byte(`{["`), rune(next[0])) {
				from++
				continue
			}
		}
		if end := closing(b, from); end > 0 && valid(b[from:end]) {
			last, from = b[from:end], end
			continue
		}
		from++
		tries++
	}
	return last
}

// closing returns the index after the bracket that closes the one at start, or 0.
func closing(b []byte, start int) int {
	depth, quoted := 0, false
	for i := start; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case quoted:
			quoted = c != '"' && c != '\n' // strings of JSON end with their line
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

func valid(b []byte) bool {
	_, err := decodeJSON(b)
	return err == nil
}

// code finds the answer in the last block of code, else in the whole text if there
// is no block.
func (e Expected) code(text string) Result {
	how, found := "the whole answer", text
	if blocks := fenceRE.FindAllStringSubmatch(text, -1); len(blocks) > 0 {
		how, found = "the last block of code", blocks[len(blocks)-1][2]
	} else if strings.Contains(text, "```") {
		return Result{How: "a block of code is not closed"}
	}
	if trim(found) == "" {
		return Result{How: "there is no code in the answer"}
	}
	return compared(lines(found) == lines(e.Value), head(trim(found), 200), how)
}

// lines is a text without white space at line ends and empty lines around it.
func lines(s string) string {
	all := strings.Split(s, "\n")
	for i := range all {
		all[i] = strings.TrimRight(all[i], " \t\r")
	}
	return strings.Trim(strings.Join(all, "\n"), "\n")
}

package corpus

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is the deepest nesting of objects and arrays in one row.
const maxDepth = 64

// cursor reads one JSON text strictly (RFC 8259): UTF-8 only, no lone
// surrogates, no repeated keys in objects that it is asked to read.
//
// Note: encoding/json replaces invalid UTF-8 and lone surrogates by U+FFFD,
// matches keys without regard to case and lets the last of two equal keys win.
// Each of them changes a prompt without a word.
type cursor struct {
	data  []byte
	pos   int
	depth int
}

// syntaxError is a fault at a byte of the row.
type syntaxError struct {
	at   int
	what string
	hint string
}

func (e *syntaxError) Error() string { return e.what }

func (c *cursor) fail(at int, format string, args ...any) error {
	return &syntaxError{at: at, what: fmt.Sprintf(format, args...)}
}

func (c *cursor) space() {
	for c.pos < len(c.data) {
		switch c.data[c.pos] {
		case ' ', '\t', '\n', '\r':
			c.pos++
		default:
			return
		}
	}
}

// peek returns the first byte of the next token, 0 at the end.
func (c *cursor) peek() byte {
	c.space()
	if c.pos < len(c.data) {
		return c.data[c.pos]
	}
	return 0
}

// kind names what the next value is, for messages.
func (c *cursor) kind() string {
	switch b := c.peek(); {
	case b == '{':
		return "an object"
	case b == '[':
		return "a list"
	case b == '"':
		return "a string"
	case b == 't' || b == 'f':
		return "a truth value"
	case b == 'n':
		return "null"
	case b == '-' || b >= '0' && b <= '9':
		return "a number"
	case c.pos >= len(c.data):
		return "the end of the row"
	default:
		return describe(b)
	}
}

func describe(b byte) string {
	switch {
	case b < 0x20 || b == 0x7f:
		return fmt.Sprintf("control character 0x%02x", b)
	case b >= 0x80:
		return fmt.Sprintf("byte 0x%02x", b)
	default:
		return strconv.QuoteRune(rune(b))
	}
}

// end reports trailing bytes.
func (c *cursor) end() error {
	if c.peek(); c.pos < len(c.data) {
		return c.fail(c.pos, "%s after the end of the object", describe(c.data[c.pos]))
	}
	return nil
}

func (c *cursor) enter() error {
	if c.depth++; c.depth > maxDepth {
		return c.fail(c.pos, "nested deeper than %d levels", maxDepth)
	}
	c.pos++
	return nil
}

// object reads an object and calls member for each key; member consumes the
// value.
func (c *cursor) object(member func(key string) error) error {
	if c.peek() != '{' {
		return c.fail(c.pos, "want an object, got %s", c.kind())
	}
	if err := c.enter(); err != nil {
		return err
	}
	var seen keys
	for first := true; ; first = false {
		switch b := c.peek(); {
		case b == '}' && first:
			c.pos++
			c.depth--
			return nil
		case b != '"':
			return c.fail(c.pos, "want a key in quotes, got %s", c.kind())
		}
		at := c.pos
		key, err := c.text()
		if err != nil {
			return err
		}
		if !seen.add(key) {
			return c.fail(at, "key %s twice", quote(key))
		}
		if c.peek() != ':' {
			return c.fail(c.pos, "want ':' after key %s, got %s", quote(key), c.kind())
		}
		c.pos++
		if err := member(key); err != nil {
			return err
		}
		switch c.peek() {
		case ',':
			c.pos++
		case '}':
			c.pos++
			c.depth--
			return nil
		default:
			return c.fail(c.pos, "want ',' or '}', got %s", c.kind())
		}
	}
}

// list reads an array and calls element for each element; element consumes it.
func (c *cursor) list(element func() error) error {
	if c.peek() != '[' {
		return c.fail(c.pos, "want a list, got %s", c.kind())
	}
	if err := c.enter(); err != nil {
		return err
	}
	if c.peek() == ']' {
		c.pos++
		c.depth--
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		switch c.peek() {
		case ',':
			c.pos++
		case ']':
			c.pos++
			c.depth--
			return nil
		default:
			return c.fail(c.pos, "want ',' or ']', got %s", c.kind())
		}
	}
}

// skip reads any value and forgets it. The recursion ends at maxDepth.
func (c *cursor) skip() error {
	switch b := c.peek(); {
	case b == '{':
		return c.object(func(string) error { return c.skip() })
	case b == '[':
		return c.list(c.skip)
	case b == '"':
		_, err := c.text()
		return err
	case b == '-' || b >= '0' && b <= '9':
		_, err := c.number()
		return err
	default:
		for _, word := range []string{"true", "false", "null"} {
			if bytes.HasPrefix(c.data[c.pos:], []byte(word)) {
				c.pos += len(word)
				return nil
			}
		}
		return c.fail(c.pos, "want a value, got %s", c.kind())
	}
}

// null consumes a null, if there is one.
func (c *cursor) null() bool {
	c.space()
	if bytes.HasPrefix(c.data[c.pos:], []byte("null")) {
		c.pos += 4
		return true
	}
	return false
}

// number reads a number as it is written.
func (c *cursor) number() (string, error) {
	c.space()
	start := c.pos
	digits := func() int {
		from := c.pos
		for c.pos < len(c.data) && c.data[c.pos] >= '0' && c.data[c.pos] <= '9' {
			c.pos++
		}
		return c.pos - from
	}
	take := func(set string) bool {
		if c.pos < len(c.data) && bytes.IndexByte([]byte(set), c.data[c.pos]) >= 0 {
			c.pos++
			return true
		}
		return false
	}
	take("-")
	whole := c.pos
	if n := digits(); n == 0 || n > 1 && c.data[whole] == '0' {
		return "", c.fail(start, "not a number")
	}
	if take(".") && digits() == 0 {
		return "", c.fail(start, "not a number")
	}
	if take("eE") {
		take("+-")
		if digits() == 0 {
			return "", c.fail(start, "not a number")
		}
	}
	return string(c.data[start:c.pos]), nil
}

// text reads a string.
func (c *cursor) text() (string, error) {
	if c.peek() != '"' {
		return "", c.fail(c.pos, "want a string, got %s", c.kind())
	}
	start := c.pos
	c.pos++
	from := c.pos
	var out []byte // only when there is an escape
	for c.pos < len(c.data) {
		switch b := c.data[c.pos]; {
		case b == '"':
			part := c.data[from:c.pos]
			c.pos++
			if out == nil {
				return string(part), nil
			}
			return string(append(out, part...)), nil
		case b == '\\':
			if out == nil {
				out = make([]byte, 0, min(2*(c.pos-from)+64, len(c.data)-from))
			}
			out = append(out, c.data[from:c.pos]...)
			var err error
			if out, err = c.escape(out); err != nil {
				return "", err
			}
			from = c.pos
		case b < 0x20:
			return "", c.fail(c.pos, "%s inside a string", describe(b))
		case b < utf8.RuneSelf:
			c.pos++
		default:
			r, n := utf8.DecodeRune(c.data[c.pos:])
			if r == utf8.RuneError && n == 1 {
				return "", &syntaxError{at: c.pos, what: fmt.Sprintf("byte 0x%02x is not UTF-8", b), hint: "convert the file first, for example: iconv -f latin1 -t utf-8"}
			}
			c.pos += n
		}
	}
	return "", c.fail(start, "string without an end")
}

// escape reads one escape sequence at the cursor and appends what it means.
func (c *cursor) escape(out []byte) ([]byte, error) {
	at := c.pos
	if c.pos++; c.pos >= len(c.data) {
		return nil, c.fail(at, "string without an end")
	}
	b := c.data[c.pos]
	c.pos++
	switch b {
	case '"', '\\', '/':
		return append(out, b), nil
	case 'b':
		return append(out, '\b'), nil
	case 'f':
		return append(out, '\f'), nil
	case 'n':
		return append(out, '\n'), nil
	case 'r':
		return append(out, '\r'), nil
	case 't':
		return append(out, '\t'), nil
	case 'u':
		r, ok := c.hex4()
		if ok && utf16.IsSurrogate(r) && bytes.HasPrefix(c.data[c.pos:], []byte(`\u`)) {
			c.pos += 2
			var low rune
			if low, ok = c.hex4(); ok {
				r = utf16.DecodeRune(r, low)
				ok = r != utf8.RuneError
			}
		}
		if !ok || utf16.IsSurrogate(r) {
			return nil, c.fail(at, "broken \\u escape (half of a surrogate pair, or not four hex digits)")
		}
		return utf8.AppendRune(out, r), nil
	default:
		return nil, c.fail(at, "unknown escape: backslash and %s", describe(b))
	}
}

func (c *cursor) hex4() (rune, bool) {
	if len(c.data)-c.pos < 4 {
		return 0, false
	}
	var r rune
	for _, b := range c.data[c.pos : c.pos+4] {
		switch {
		case b >= '0' && b <= '9':
			r = r<<4 | rune(b-'0')
		case b >= 'a' && b <= 'f':
			r = r<<4 | rune(b-'a'+10)
		case b >= 'A' && b <= 'F':
			r = r<<4 | rune(b-'A'+10)
		default:
			return 0, false
		}
	}
	c.pos += 4
	return r, true
}

// keys remembers the keys of one object: a short list, and a map once it is
// long, so that an object of a million keys costs no million squared.
type keys struct {
	few  []string
	many map[string]struct{}
}

func (k *keys) add(key string) bool {
	if k.many == nil {
		for _, have := range k.few {
			if have == key {
				return false
			}
		}
		if k.few = append(k.few, key); len(k.few) == 16 {
			k.many = make(map[string]struct{}, 64)
			for _, have := range k.few {
				k.many[have] = struct{}{}
			}
		}
		return true
	}
	if _, ok := k.many[key]; ok {
		return false
	}
	k.many[key] = struct{}{}
	return true
}

// quote shows foreign text in a message: quoted, without control characters,
// and short.
func quote(s string) string {
	const limit = 40
	if len(s) <= limit {
		return strconv.Quote(s)
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "…"
}

package llm

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/bits"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// The primitives of the scanner: each consumes one piece of JSON at c.i, or
// sets c.bad and then consumes nothing that matters.

// maxDepth is how deep values that are skipped may nest; laxDepth where no other
// parser comes behind, a little less than in encoding/json.
const (
	maxDepth = 32
	laxDepth = 9900
)

func (c *chunk) space() {
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case ' ', '\t', '\n', '\r':
			c.i++
		default:
			return
		}
	}
}

func (c *chunk) eat(b byte) bool {
	if c.i < len(c.b) && c.b[c.i] == b {
		c.i++
		return true
	}
	return false
}

// enter begins an object and gives its first key, up to behind the colon; more
// is false at the object's end, and when it is broken.
func (c *chunk) enter() (key []byte, more bool) {
	if !c.eat('{') {
		c.bad = true
		return nil, false
	}
	if c.space(); c.eat('}') {
		return nil, false
	}
	return c.member()
}

func (c *chunk) next() (key []byte, more bool) {
	if i := c.i; i+1 < len(c.b) && c.b[i] == ',' && c.b[i+1] == '"' && !c.bad { // as most servers write it
		c.i++
		return c.member()
	}
	if c.space(); c.bad || c.eat('}') {
		return nil, false
	}
	if !c.eat(',') {
		c.bad = true
		return nil, false
	}
	c.space()
	return c.member()
}

func (c *chunk) member() (key []byte, more bool) {
	key, escaped := c.rawString()
	if i := c.i; i+1 < len(c.b) && c.b[i] == ':' && c.b[i+1] > ' ' && !escaped && !c.bad {
		c.i++
		return key, true
	}
	if escaped && c.lax {
		key, escaped = c.unescape(key), false
	}
	c.space()
	if c.bad || escaped || !c.eat(':') {
		c.bad = true
		return nil, false
	}
	c.space()
	return key, true
}

func (c *chunk) enterArray() (more bool) {
	if !c.eat('[') {
		c.bad = true
		return false
	}
	c.space()
	return !c.eat(']')
}

func (c *chunk) nextElement() (more bool) {
	if c.space(); c.bad || c.eat(']') {
		return false
	}
	if !c.eat(',') {
		c.bad = true
		return false
	}
	c.space()
	return true
}

// count skips an array and tells how many elements it has.
func (c *chunk) count() (n int64) {
	for more := c.enterArray(); more; more = c.nextElement() {
		c.skip(0)
		n++
	}
	return n
}

// null consumes a null if there is one.
func (c *chunk) null() bool {
	if c.i < len(c.b) && c.b[c.i] == 'n' {
		c.literal("null")
		return true
	}
	return false
}

func (c *chunk) literal(word string) {
	if len(c.b)-c.i < len(word) || string(c.b[c.i:c.i+len(word)]) != word {
		c.bad = true
		return
	}
	c.i += len(word)
}

// plainByte marks the bytes that stand for themselves in a JSON string.
var plainByte = func() (is [256]bool) {
	for b := range is {
		is[b] = b >= ' ' && b != '"' && b != '\\'
	}
	return is
}()

// rawString consumes a string and returns what is between its quotes.
func (c *chunk) rawString() (raw []byte, escaped bool) {
	if !c.eat('"') {
		c.bad = true
		return nil, false
	}
	b := c.b
	for i := plainRun(b, c.i); i < len(b); i = plainRun(b, i+1) {
		switch b[i] {
		case '"':
			raw = b[c.i:i]
			c.i = i + 1
			return raw, escaped
		case '\\':
			escaped = true
			if i++; i == len(b) {
				break
			}
			switch b[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
				continue
			case 'u':
				if _, ok := hex4(b, i+1); ok {
					i += 4
					continue
				}
			}
		}
		break // a control character, a broken escape
	}
	c.bad = true
	return nil, false
}

// plainRun returns the index of the first byte at or after i that does not stand
// for itself in a JSON string, len(b) if there is none. It looks at eight bytes
// at a time (Mycroft's test for a zero byte): of the lanes it marks, the lowest
// is right.
func plainRun(b []byte, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		v := binary.LittleEndian.Uint64(b[i:])
		quote, slash := v^('"'*ones), v^('\\'*ones)
		if m := ((v-' '*ones)&^v | (quote-ones)&^quote | (slash-ones)&^slash) & tops; m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for i < len(b) && plainByte[b[i]] {
		i++
	}
	return i
}

// str consumes a string or null and returns its text.
func (c *chunk) str() []byte {
	if c.null() {
		return nil
	}
	raw, escaped := c.rawString()
	if escaped {
		raw = c.unescape(raw)
	}
	if !utf8.Valid(raw) {
		raw = c.repair(raw)
	}
	return raw
}

// repair puts text into scratch with U+FFFD for each byte that is not UTF-8.
func (c *chunk) repair(raw []byte) []byte {
	c.has |= hasInvalid
	from := len(c.scratch)
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		c.scratch = utf8.AppendRune(c.scratch, r)
		raw = raw[size:]
	}
	return c.scratch[from:len(c.scratch):len(c.scratch)]
}

func hex4(b []byte, i int) (rune, bool) {
	if len(b)-i < 4 {
		return 0, false
	}
	var r rune
	for _, d := range b[i : i+4] {
		switch {
		case '0' <= d && d <= '9':
			d -= '0'
		case 'a' <= d && d <= 'f':
			d -= 'a' - 10
		case 'A' <= d && d <= 'F':
			d -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

// unescape puts the text of a string with valid escapes into scratch. A half of
// a surrogate pair that stands alone becomes U+FFFD.
func (c *chunk) unescape(raw []byte) []byte {
	from := len(c.scratch)
	out := c.scratch
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++
		switch raw[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, _ := hex4(raw, i+1)
			i += 4
			if utf16.IsSurrogate(r) {
				low, ok := rune(0), false
				if len(raw)-i > 6 && raw[i+1] == '\\' && raw[i+2] == 'u' {
					low, ok = hex4(raw, i+3)
				}
				if r = utf16.DecodeRune(r, low); ok && r != utf8.RuneError {
					i += 6
				} else {
					r = utf8.RuneError
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, raw[i])
		}
	}
	c.scratch = out
	return out[from:len(out):len(out)]
}

// integer consumes an integer. A number with a fraction or an exponent, or of
// many digits, is unusual here.
func (c *chunk) integer() (n int64) {
	from := c.i
	c.number()
	if c.bad {
		return 0
	}
	text, negative := c.b[from:c.i], false
	if text[0] == '-' {
		text, negative = text[1:], true
	}
	n, ok := digits(text)
	c.bad = !ok || n > maxNumber
	if negative {
		return -n
	}
	return n
}

// maxNumber is the largest count taken as it is: floats hold it exactly.
const maxNumber = 1 << 53

// number consumes a number of JSON's grammar.
func (c *chunk) number() {
	run := func() bool {
		from := c.i
		for c.i < len(c.b) && '0' <= c.b[c.i] && c.b[c.i] <= '9' {
			c.i++
		}
		return c.i > from
	}
	c.eat('-')
	if !c.eat('0') && !run() {
		c.bad = true
		return
	}
	if c.eat('.') && !run() {
		c.bad = true
		return
	}
	if c.eat('e') || c.eat('E') {
		if !c.eat('+') {
			c.eat('-')
		}
		if !run() {
			c.bad = true
		}
	}
}

// skip consumes any value, checking its grammar.
func (c *chunk) skip(depth int) {
	if c.i == len(c.b) || depth >= maxDepth && !(c.lax && depth < laxDepth) {
		c.bad = true
		return
	}
	switch c.b[c.i] {
	case '"':
		c.rawString()
	case '{':
		for _, more := c.enter(); more; _, more = c.next() {
			c.skip(depth + 1)
		}
	case '[':
		for more := c.enterArray(); more; more = c.nextElement() {
			c.skip(depth + 1)
		}
	case 't':
		c.literal("true")
	case 'f':
		c.literal("false")
	case 'n':
		c.literal("null")
	default:
		c.number()
	}
}

// The reading of APIs without a second parser: every shape of valid JSON is
// taken, in one pass.

// open begins with a whole event or body.
func (c *chunk) open(b []byte) {
	c.reset(b)
	c.lax = true
	c.space()
}

// close ends it, and tells what was wrong.
func (c *chunk) close() error {
	c.space()
	switch {
	case !c.bad && c.i == len(c.b):
		return nil
	case !json.Valid(c.b):
		return errors.New("an event that is not JSON")
	}
	return errors.New("an event of a shape that the API does not have")
}

func (c *chunk) peek() byte {
	if c.i < len(c.b) {
		return c.b[c.i]
	}
	return 0
}

// object reports whether an object comes next; any other value is skipped.
func (c *chunk) object() bool {
	if c.peek() == '{' {
		return true
	}
	c.skip(0)
	return false
}

// array begins an array and reports whether there is a first element; any other
// value is skipped.
func (c *chunk) array() bool {
	if c.peek() == '[' {
		return c.enterArray()
	}
	c.skip(0)
	return false
}

// raw consumes any value and returns it as it is written; nil if it is broken.
func (c *chunk) raw() []byte {
	from := c.i
	if c.skip(0); c.bad {
		return nil
	}
	return c.b[from:c.i]
}

// word returns a string; any other value is skipped.
func (c *chunk) word() []byte {
	if c.peek() == '"' {
		return c.str()
	}
	c.skip(0)
	return nil
}

// amount reads a count of usage. One that makes no sense is marked.
func (c *chunk) amount(n *int64) {
	raw := c.raw()
	if c.bad || string(raw) == "null" {
		return
	}
	v, ok := digits(raw)
	if !ok || v > maxNumber {
		v, ok = number(raw)
	}
	if !ok {
		c.has |= hasBadUsage
		return
	}
	*n = v
}

// usageObject reports whether an object with usage comes next. A value that is
// neither one nor null is marked.
func (c *chunk) usageObject() bool {
	if c.null() {
		return false
	}
	c.has |= hasUsage
	if c.peek() != '{' {
		c.has |= hasBadUsage
	}
	return c.object()
}

// amountIn reads one count of an object.
func (c *chunk) amountIn(name string, n *int64) {
	if !c.object() {
		return
	}
	for key, more := c.enter(); more; key, more = c.next() {
		if string(key) == name {
			c.amount(n)
		} else {
			c.skip(0)
		}
	}
}

// wordIn returns one string of an object.
func (c *chunk) wordIn(name string) (word []byte) {
	if !c.object() {
		return nil
	}
	for key, more := c.enter(); more; key, more = c.next() {
		if string(key) == name {
			word = c.word()
		} else {
			c.skip(0)
		}
	}
	return word
}

// index reads the number of a choice, a block or an item; −1: none that makes
// sense.
func (c *chunk) index() int64 {
	raw := c.raw()
	n, ok := digits(raw)
	if c.bad || !ok || n > maxNumber {
		return -1
	}
	return n
}

// What the one answer says of which these APIs send.

func (c *chunk) say(text []byte) {
	if len(text) > 0 {
		gather(&c.content, &c.texts[0], text)
		c.payload += len(text)
		c.has |= hasContent
	}
}

func (c *chunk) think(text []byte) {
	if len(text) > 0 {
		gather(&c.reasoning, &c.texts[1], text)
		c.payload += len(text)
		c.has |= hasReasoning
	}
}

func (c *chunk) call(d toolDelta) {
	if n := len(d.name) + len(d.args); n > 0 {
		c.payload += n
		c.has |= hasTool
	}
	c.tools = append(c.tools, d)
}

// begun marks that the answer has begun.
func (c *chunk) begun() {
	c.seen = 1
	c.has |= hasDelta
}

// ended marks that the answer is complete; the reason may be unknown.
func (c *chunk) ended(reason []byte) {
	c.seen, c.finished, c.finish = 1, 1, reason
	c.has |= hasFinish
}

// over marks that nothing follows, by the API's own mark.
func (c *chunk) over() {
	c.seen, c.finished = 1, 1
	c.has |= hasDone
}

// failed marks an error of which the whole object tells, unless there is one
// with a value of its own.
func (c *chunk) failed() {
	if c.err == nil {
		c.err = c.b
	}
	c.has |= hasError
}

// spend reads a time that the server tells of itself, in whole units. One of 0
// is a time too; what is no number is none.
func (c *chunk) spend(name string, unit time.Duration) {
	n := int64(-1)
	had := c.has
	if c.amount(&n); n >= 0 && n <= int64(maxSpend/unit) {
		c.spent = append(c.spent, spent{name, time.Duration(n) * unit})
	}
	c.has = had // not usage
}

// maxSpend is the longest time that a server is believed.
const maxSpend = 1000 * time.Hour

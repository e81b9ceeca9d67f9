package llm

import (
	"bytes"
	"errors"
	"math"
	"time"
)

// DefaultMaxEvent is the default limit of one event, 16 MiB.
const DefaultMaxEvent = 16 << 20

// ErrEventTooLarge says that a line or the joined data of one event is longer
// than the decoder's limit.
var ErrEventTooLarge = errors.New("event above the size limit")

// Event is one event of a stream, or one of its comments. Its slices belong to
// the decoder and are valid only until the callback returns.
type Event struct {
	Name    []byte // the event field; empty: a plain message
	Data    []byte // the data lines joined by LF; for a comment, its text
	ID      []byte // the last event id of the stream
	Emit    int64  // number of an "emit N" comment in the event's block; 0: none
	Read    uint32 // ordinal of the read that completed the event
	Comment bool   // a comment, no event
	Tail    bool   // from End: the stream stopped before the event's blank line
}

// Decoder reads server-sent events by the rules of the WHATWG HTML standard
// (section 9.2.6): lines end in CR, LF or CRLF wherever the input is cut, one
// leading byte order mark is dropped, data lines join with LF. It is fed with
// whatever the socket gave and holds back only what is not complete. Its output
// does not depend on where the input was cut.
//
// A comment is handed on at the end of its line, so that a caller can count
// keep-alives; only "emit N" is kept and put on the block's event. Data is not
// checked for UTF-8: cuts never break a character, so bytes that are invalid
// here were invalid when sent.
//
// The zero Decoder is ready. It is not safe for concurrent use. An event that
// lies whole in one chunk costs no allocation and no copy.
type Decoder struct {
	Max int // limit of a line and of an event's data in bytes; 0: DefaultMaxEvent

	plain    bool   // no fields: each line that is not empty is an event's data
	line     []byte // start of a line that is not complete
	store    []byte // owned bytes behind data
	data     []byte // data lines so far: in store, or borrowed from the chunk
	borrowed bool
	lines    int // data lines in this block
	name, id []byte
	emit     int64
	retry    time.Duration
	bom      int  // matched bytes of the mark; past 3: settled
	skipLF   bool // the last byte was CR: a following LF belongs to it
	ending   bool // End was called
	ev       Event
	err      error
}

const byteOrderMark = "\xef\xbb\xbf"

// Reset makes the decoder ready for another stream; it keeps small buffers.
func (d *Decoder) Reset() {
	keep := func(b []byte) []byte {
		if cap(b) > 256<<10 {
			return nil
		}
		return b[:0]
	}
	*d = Decoder{Max: d.Max, line: keep(d.line), store: keep(d.store), name: keep(d.name), id: keep(d.id)}
}

// Retry returns the reconnection time that the stream asked for; 0: none.
func (d *Decoder) Retry() time.Duration { return d.retry }

// Feed decodes the next bytes of the stream, which came with the given read,
// and calls yield for each event and comment that they complete. It stops at
// the first error, its own or yield's, and then returns that error for ever.
func (d *Decoder) Feed(chunk []byte, read uint32, yield func(*Event) error) error {
	if d.err != nil {
		return d.err
	}
	p := d.start(chunk)
	nextLF := -1 // index of the first LF at or after i; len(p): there is none
	for i := 0; i < len(p); {
		if d.skipLF {
			d.skipLF = false
			if p[i] == '\n' {
				i++
				continue
			}
		}
		if nextLF < i {
			if nextLF = bytes.IndexByte(p[i:], '\n'); nextLF < 0 {
				nextLF = len(p)
			} else {
				nextLF += i
			}
		}
		end := nextLF
		if cr := bytes.IndexByte(p[i:nextLF], '\r'); cr >= 0 {
			end = i + cr
			d.skipLF = true
		}
		if end == len(p) {
			if err := d.hold(p[i:]); err != nil {
				return err
			}
			break
		}
		line := p[i:end]
		i = end + 1
		owned := len(d.line) > 0
		if owned {
			if err := d.hold(line); err != nil {
				return err
			}
			line = d.line
		}
		if err := d.take(line, owned, read, yield); err != nil {
			d.err = err
			return err
		}
		d.line = d.line[:0]
	}
	if d.borrowed {
		d.own()
	}
	return nil
}

// End tells the decoder that the stream has ended. By the standard an event
// without its blank line is dropped; End hands it to yield with Tail set, and
// the caller decides. Comments and incomplete lines without data give nothing.
func (d *Decoder) End(read uint32, yield func(*Event) error) error {
	if d.err != nil {
		return d.err
	}
	if 0 < d.bom && d.bom < len(byteOrderMark) {
		d.line = append(d.line, byteOrderMark[:d.bom]...)
	}
	d.ending = true
	if len(d.line) > 0 && d.line[0] != ':' {
		if err := d.take(d.line, true, read, yield); err != nil {
			d.err = err
			return err
		}
		d.line = d.line[:0]
	}
	if d.lines == 0 {
		return nil
	}
	return d.dispatch(read, true, yield)
}

// start drops a leading byte order mark, which may come in pieces.
func (d *Decoder) start(p []byte) []byte {
	for d.bom < len(byteOrderMark) && len(p) > 0 {
		if p[0] != byteOrderMark[d.bom] {
			d.line = append(d.line, byteOrderMark[:d.bom]...)
			d.bom = len(byteOrderMark)
			break
		}
		d.bom++
		p = p[1:]
	}
	return p
}

func (d *Decoder) limit() int {
	if d.Max > 0 {
		return d.Max
	}
	return DefaultMaxEvent
}

// hold keeps a piece of a line until the rest comes. It grows by doubling up to
// the limit, never past it, so that the limit also bounds the memory.
func (d *Decoder) hold(piece []byte) error {
	n := len(d.line) + len(piece)
	if n > d.limit() {
		d.err = ErrEventTooLarge
		d.line, d.store, d.data = nil, nil, nil
		return d.err
	}
	d.line = append(room(d.line, len(piece), d.limit()), piece...)
	return nil
}

// room returns b with space for extra more bytes, its capacity doubled at most
// up to limit.
func room(b []byte, extra, limit int) []byte {
	n := len(b) + extra
	if n <= cap(b) {
		return b
	}
	return append(make([]byte, 0, max(n, min(2*cap(b), limit))), b...)
}

// take processes one line without its end. An owned line lies in d.line.
func (d *Decoder) take(line []byte, owned bool, read uint32, yield func(*Event) error) error {
	if len(line) == 0 {
		return d.dispatch(read, false, yield)
	}
	if len(line) > d.limit() {
		return ErrEventTooLarge
	}
	if d.plain {
		d.ev = Event{Data: line, Read: read, Tail: d.ending}
		return yield(&d.ev)
	}
	colon := bytes.IndexByte(line, ':')
	if colon == 0 {
		return d.comment(line[1:], read, yield)
	}
	field, value := line, line[len(line):]
	if colon > 0 {
		field, value = line[:colon], line[colon+1:]
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
	}
	switch string(field) {
	case "data":
		return d.addData(value, owned)
	case "event":
		d.name = append(d.name[:0], value...)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			d.id = append(d.id[:0], value...)
		}
	case "retry":
		if ms, ok := digits(value); ok {
			d.retry = time.Duration(min(ms, int64(24*time.Hour/time.Millisecond))) * time.Millisecond
		}
	}
	return nil
}

func (d *Decoder) addData(value []byte, owned bool) error {
	d.lines++
	if d.lines == 1 {
		if owned {
			// The line's buffer becomes the data's: a copy of 16 MiB less.
			n := copy(d.line, value)
			d.line, d.store = d.store[:0], d.line[:n]
			d.data = d.store
			return nil
		}
		d.data, d.borrowed = value, true
		return nil
	}
	if len(d.data)+1+len(value) > d.limit() {
		return ErrEventTooLarge
	}
	if d.borrowed {
		d.own()
	}
	d.data = append(room(d.data, 1+len(value), d.limit()), '\n')
	d.data = append(d.data, value...)
	d.store = d.data
	return nil
}

// own copies borrowed data out of the chunk.
func (d *Decoder) own() {
	d.store = append(room(d.store[:0], len(d.data), d.limit()), d.data...)
	d.data, d.borrowed = d.store, false
}

func (d *Decoder) comment(text []byte, read uint32, yield func(*Event) error) error {
	if len(text) > 0 && text[0] == ' ' {
		text = text[1:]
	}
	if number, ok := bytes.CutPrefix(text, []byte("emit ")); ok {
		if n, ok := digits(number); ok {
			d.emit = n
			return nil
		}
	}
	d.ev = Event{Data: text, ID: d.id, Read: read, Comment: true}
	return yield(&d.ev)
}

// dispatch ends a block: without a data line there is no event.
func (d *Decoder) dispatch(read uint32, tail bool, yield func(*Event) error) error {
	lines := d.lines
	d.ev = Event{Name: d.name, Data: d.data, ID: d.id, Emit: d.emit, Read: read, Tail: tail}
	d.lines, d.emit, d.borrowed, d.data = 0, 0, false, nil
	d.name = d.name[:0]
	if lines == 0 {
		return nil
	}
	return yield(&d.ev)
}

// digits reads a number that is ASCII digits and nothing else.
func digits(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 19 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' || n > (math.MaxInt64-int64(c-'0'))/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

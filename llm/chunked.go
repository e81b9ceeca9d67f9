package llm

import (
	"bytes"
	"errors"
)

// Limits of chunked framing: extensions and trailers carry nothing for us.
const (
	maxExtension = 16 << 10 // bytes of all extensions of a body
	maxTrailer   = 64 << 10
)

var errChunked = errors.New("broken chunked framing")

// chunked undoes chunked transfer coding (RFC 9112, section 7.1), wherever the
// input is cut. It is as strict as the grammar: lines end in CRLF.
type chunked struct {
	state    chunkState
	left     int64 // bytes of the current chunk that are still to come
	digits   int   // of the size
	overhead int   // bytes of extensions, then of trailers
	empty    bool  // the current trailer line has no byte yet
}

type chunkState uint8

const (
	chunkSize    chunkState = iota // the digits of the size
	chunkBlank                     // space behind the size
	chunkExt                       // extensions, up to CR
	chunkSizeLF                    // LF after the size
	chunkData                      // left bytes
	chunkDataCR                    // CR after the data
	chunkDataLF                    // LF after the data
	chunkTrailer                   // a trailer line, up to CR
	chunkLF                        // LF after a trailer line
	chunkDone
)

func (c *chunked) done() bool { return c.state == chunkDone }

// next returns the first run of data in p and what of p lies behind it. Data is
// empty when p held none.
func (c *chunked) next(p []byte) (data, rest []byte, err error) {
	for i := 0; i < len(p); {
		switch c.state {
		case chunkData:
			n := int(min(c.left, int64(len(p)-i)))
			c.left -= int64(n)
			if c.left == 0 {
				c.state = chunkDataCR
			}
			return p[i : i+n], p[i+n:], nil
		case chunkDone:
			return nil, p[i:], nil
		case chunkExt, chunkTrailer:
			n := bytes.IndexByte(p[i:], '\r')
			if n < 0 {
				n = len(p) - i
			}
			if err := c.skip(p[i : i+n]); err != nil {
				return nil, nil, err
			}
			if i += n; i < len(p) {
				i++
				c.state++ // chunkSizeLF, chunkLF
			}
		default:
			if err := c.step(p[i]); err != nil {
				return nil, nil, err
			}
			i++
		}
	}
	return nil, nil, nil
}

// skip checks bytes that carry nothing.
func (c *chunked) skip(p []byte) error {
	limit := maxExtension
	if c.state == chunkTrailer {
		limit = maxTrailer
	}
	c.overhead += len(p)
	c.empty = c.empty && len(p) == 0
	if c.overhead > limit || !fieldValue(p) {
		return errChunked
	}
	return nil
}

func (c *chunked) step(b byte) error {
	switch c.state {
	case chunkSize:
		return c.size(b)
	case chunkBlank:
		switch b {
		case ' ', '\t':
			if c.overhead++; c.overhead > maxExtension {
				return errChunked
			}
		case ';':
			c.state = chunkExt
		case '\r':
			c.state = chunkSizeLF
		default:
			return errChunked
		}
	case chunkSizeLF:
		if b != '\n' {
			return errChunked
		}
		if c.digits, c.state = 0, chunkData; c.left == 0 {
			c.state, c.overhead, c.empty = chunkTrailer, 0, true
		}
	case chunkDataCR:
		if b != '\r' {
			return errChunked
		}
		c.state = chunkDataLF
	case chunkDataLF:
		if b != '\n' {
			return errChunked
		}
		c.state = chunkSize
	case chunkLF:
		if b != '\n' {
			return errChunked
		}
		if c.state = chunkTrailer; c.empty {
			c.state = chunkDone
		}
		c.empty = true
	}
	return nil
}

func (c *chunked) size(b byte) error {
	switch {
	case '0' <= b && b <= '9':
		b -= '0'
	case 'a' <= b && b <= 'f':
		b -= 'a' - 10
	case 'A' <= b && b <= 'F':
		b -= 'A' - 10
	case c.digits == 0:
		return errChunked
	case b == '\r':
		c.state = chunkSizeLF
		return nil
	case b == ';':
		c.state = chunkExt
		return nil
	case b == ' ' || b == '\t':
		c.state = chunkBlank
		return nil
	default:
		return errChunked
	}
	if c.digits++; c.digits > 15 {
		return errChunked
	}
	c.left = c.left<<4 | int64(b)
	return nil
}

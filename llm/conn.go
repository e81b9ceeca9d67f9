package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/assay-llm/assay/record"
)

// conn is one connection, and the exchange on it. It belongs to one caller at a
// time; an idle one belongs to the pool and holds no buffer.
type conn struct {
	w     *http1
	sock  *sock
	rw    net.Conn  // sock, or TLS over it
	cut   func()    // ends a read or write under way
	since time.Time // when it became idle; zero: never used nor pooled

	// Of the exchange.
	ctx      context.Context //nolint:containedctx // lives for one exchange
	stop     func() bool     // ends the watch on ctx
	answered bool            // a byte of the answer came
	base     uint32          // reads before this exchange
	buf      *[readBuffer]byte
	r, n     int // unread bytes are buf[r:n]
	total    time.Time
	stall    time.Duration
	last     time.Time // last byte from the server, or the end of our writing
	armed    time.Time // read deadline that is set; zero: none yet

	// Of its body.
	framing framing
	left    int64
	chunks  chunked
	closes  bool
}

type framing uint8

const (
	framingNone    framing = iota // no body, or it has ended
	framingLength                 // left bytes
	framingChunked                // until chunks is done
	framingClose                  // until the connection ends
)

var buffers = sync.Pool{New: func() any { return new([readBuffer]byte) }}

// longAgo is a deadline that has passed, under any clock.
var longAgo = time.Unix(1, 0)

// roundTrip writes the request and reads the head of the final answer.
func (c *conn) roundTrip(ctx context.Context, q *call) (head, error) {
	reused := c.since != (time.Time{})
	*c = conn{
		w: c.w, sock: c.sock, rw: c.rw, cut: c.cut, since: c.since, base: c.sock.reads,
		ctx: ctx, total: q.total, stall: c.w.t.Stall, buf: buffers.Get().(*[readBuffer]byte),
	}
	if ctx.Done() != nil {
		c.stop = context.AfterFunc(ctx, c.cut)
	}
	q.rec.Reused = reused
	msg := c.w.message(q)
	send := time.Now()
	c.last = send
	if err := c.arm(true); err != nil {
		return head{}, err
	}
	q.rec.Send = q.instant(send)
	_, werr := c.rw.Write(msg)
	c.last = time.Now()
	q.rec.Sent = q.instant(c.last)
	if werr != nil {
		return c.unsent(werr, reused, q)
	}
	if q.leave {
		return head{}, ErrPlanned
	}
	return c.readHead(q)
}

// unsent looks for an answer that came before the request was whole, such as a
// 413 of a server that then closed. Without one the request was not sent.
func (c *conn) unsent(werr error, reused bool, q *call) (head, error) {
	if err := c.ctx.Err(); err != nil {
		return head{}, err
	}
	now := time.Now()
	if isTimeout(werr) {
		if err := c.expired(now); err != nil {
			return head{}, err
		}
		return head{}, errStall
	}
	q.rec.Sent = 0
	c.stall, c.total = 0, now.Add(drainTime)
	if h, err := c.readHead(q); err == nil {
		c.total, c.stall, c.closes = q.total, c.w.t.Stall, true
		c.armed = time.Time{}
		return h, nil
	}
	if reused && !c.answered {
		return head{}, fmt.Errorf("writing the request: %w", errors.Join(errLost, werr))
	}
	return head{}, &failure{record.Write, fmt.Errorf("writing the request: %w", werr)}
}

func (c *conn) readHead(q *call) (head, error) {
	for range 16 { // interim answers are few
		scanned := 0
		for {
			end, next, err := headEnd(c.buf[c.r:c.n], scanned)
			if err != nil {
				return head{}, &failure{record.Malformed, err}
			}
			if end > 0 {
				h, err := parseHead(c.buf[c.r : c.r+end])
				if err != nil {
					return head{}, &failure{record.Malformed, err}
				}
				c.r += end
				if h.status >= 200 {
					q.rec.Header = q.instant(c.sock.at)
					c.frame(h, q)
					return h, nil
				}
				if h.status == 101 {
					return head{}, fail(record.Malformed, "the server switched protocols unasked (101)")
				}
				break
			}
			scanned = next
			if err := c.fill(); err != nil {
				if err == io.EOF {
					err = errLost
				}
				return head{}, err
			}
		}
	}
	return head{}, fail(record.Malformed, "more than 16 interim answers (1xx)")
}

// frame sets how the body ends.
func (c *conn) frame(h head, q *call) {
	c.closes = h.closes
	switch {
	case h.status == 204 || h.status == 304 || h.length == 0:
		c.framing = framingNone
	case h.chunked:
		c.framing, c.chunks = framingChunked, chunked{}
	case h.length > 0:
		c.framing, c.left = framingLength, h.length
	default:
		c.framing, c.closes = framingClose, true
	}
}

func (c *conn) next() (fragment, error) {
	for {
		if c.framing == framingNone {
			return fragment{}, io.EOF
		}
		if c.r < c.n {
			p, err := c.unframe()
			if err != nil {
				return fragment{}, err
			}
			if len(p) > 0 {
				return fragment{p: p, at: c.sock.at, lag: c.sock.lag(), read: c.sock.reads - c.base}, nil
			}
			continue
		}
		if err := c.fill(); err != nil {
			if err == io.EOF && c.framing == framingClose {
				c.framing = framingNone
				return fragment{}, io.EOF
			}
			if err == io.EOF {
				err = errLost
			}
			return fragment{}, err
		}
	}
}

// unframe takes the next run of body bytes out of the buffer.
func (c *conn) unframe() (p []byte, err error) {
	in := c.buf[c.r:c.n]
	switch c.framing {
	case framingLength:
		p = in[:min(c.left, int64(len(in)))]
		c.r += len(p)
		if c.left -= int64(len(p)); c.left == 0 {
			c.framing = framingNone
		}
	case framingChunked:
		var rest []byte
		if p, rest, err = c.chunks.next(in); err != nil {
			return nil, &failure{record.Malformed, err}
		}
		c.r = c.n - len(rest)
		if c.chunks.done() {
			c.framing = framingNone
		}
	case framingClose:
		p = in
		c.r = c.n
	}
	return p, nil
}

// fill reads once more. Unread bytes stay.
func (c *conn) fill() error {
	if c.r == c.n {
		c.r, c.n = 0, 0
	} else if c.n == len(c.buf) {
		c.n = copy(c.buf[:], c.buf[c.r:])
		c.r = 0
	}
	if c.n == len(c.buf) {
		return fail(record.Malformed, "a response head of more than %d bytes", maxHead)
	}
	exact := false
	for range 64 { // a reader that gives neither bytes nor an error is broken
		if err := c.arm(exact); err != nil {
			return err
		}
		n, err := c.rw.Read(c.buf[c.n:])
		if n > 0 {
			c.answered = true
			c.n += n
			c.last = c.sock.at
			return nil
		}
		if err == nil {
			continue
		}
		if e := c.ctx.Err(); e != nil {
			return e
		}
		if !isTimeout(err) {
			return err
		}
		if err := c.expired(time.Now()); err != nil {
			return err
		}
		exact = true
	}
	return io.ErrNoProgress
}

// until returns when to give up waiting; zero: never.
func (c *conn) until() time.Time {
	if c.stall <= 0 {
		return c.total
	}
	if t := c.last.Add(c.stall); c.total.IsZero() || t.Before(c.total) {
		return t
	}
	return c.total
}

// arm sets the read deadline, but only when it has become much too early: a
// deadline costs as much as parsing an event. One that fires early is set again
// exactly. The context is asked behind it, so that a cancellation, which sets a
// deadline in the past, is not lost.
func (c *conn) arm(exact bool) error {
	limit := c.until()
	if !exact && !c.armed.IsZero() && limit.Sub(c.armed) <= c.stall/4 {
		return nil
	}
	if !limit.IsZero() || c.armed.IsZero() {
		c.rw.SetDeadline(limit)
	}
	c.armed = limit
	if c.armed.IsZero() {
		c.armed = longAgo
	}
	return c.ctx.Err()
}

// expired names the limit that has passed; nil: none has.
func (c *conn) expired(now time.Time) error {
	if !c.total.IsZero() && !now.Before(c.total) {
		return errTotal
	}
	if c.stall > 0 && !now.Before(c.last.Add(c.stall)) {
		return errStall
	}
	return nil
}

// abort ends the exchange and the connection.
func (c *conn) abort() { c.release(false) }

func (c *conn) release(keep bool) {
	keep = keep && c.drain()
	if c.stop != nil && !c.stop() {
		keep = false // the deadline in the past may still be on its way
	}
	buffers.Put(c.buf)
	keep = keep && !c.closes && c.r == c.n
	c.buf, c.ctx, c.stop, c.r, c.n = nil, nil, nil, 0, 0
	if keep {
		c.w.put(c)
	} else {
		c.rw.Close()
	}
}

// drain reads the rest of a body that is expected to end at once.
func (c *conn) drain() bool {
	if c.framing == framingNone {
		return true
	}
	if c.closes || c.framing == framingClose {
		return false
	}
	c.total, c.stall = time.Now().Add(drainTime), 0
	c.armed = time.Time{}
	for left := drainBytes; left > 0; {
		f, err := c.next()
		if err != nil {
			return err == io.EOF
		}
		left -= len(f.p)
	}
	return false
}

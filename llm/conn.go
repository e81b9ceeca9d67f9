package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/assay-llm/assay/record"
)

// conn is one connection, and the exchange on it. It belongs to one caller at a
// time; an idle one belongs to the pool and holds no buffer.
type conn struct {
	w     *http1
	sock  *sock
	rw    net.Conn  // sock, or TLS over it
	plain bool      // rw is sock, which can be written and read in one go
	cut   func()    // ends a read or write under way
	since time.Time // when it became idle; zero: never used nor pooled

	// Of the exchange.
	ctx      context.Context //nolint:containedctx // lives for one exchange
	watch    *watch          // of ctx; nil: it never ends
	after    *conn           // in the list of watch
	before   *conn
	answered bool   // a byte of the answer came
	base     uint32 // reads before this exchange
	buf      buffer
	total    time.Time
	stall    time.Duration
	look     time.Time // when to try a read although nothing wakes us; zero: never
	last     time.Time // last byte from the server, or the end of our writing
	armed    time.Time // read deadline that is set, also beyond the exchange; zero: none yet; longAgo: set to none

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

// longAgo is a deadline that has passed, under any clock.
var longAgo = time.Unix(1, 0)

// roundTrip writes the request and reads the head of the final answer.
func (c *conn) roundTrip(ctx context.Context, q *call) (head, error) {
	reused := c.since != (time.Time{})
	*c = conn{
		w: c.w, sock: c.sock, rw: c.rw, plain: c.plain, cut: c.cut, since: c.since, base: c.sock.reads, armed: c.armed,
		ctx: ctx, total: q.total, stall: c.w.t.Stall,
	}
	c.w.watches.add(ctx, c)
	q.rec.Reused = reused
	msg := c.w.message(q)
	if c.plain && !q.leave {
		return c.writeAndRead(msg, reused, q)
	}
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

// lookAfter is how long the answer may take until we look whether something came
// before the request was written, such as the end of the connection.
const lookAfter = time.Second

// writeAndRead is what roundTrip does on a plain socket.
func (c *conn) writeAndRead(msg []byte, reused bool, q *call) (head, error) {
	c.last = q.now
	c.look = q.now.Add(lookAfter)
	if limit := c.until(); !c.armedFor(limit, q.now) {
		c.armed = time.Time{}
	}
	if err := c.arm(false); err != nil {
		return head{}, err
	}
	w, n, err := c.sock.exchange(msg, &c.buf)
	if w.start.IsZero() && isTimeout(w.err) && c.expired(time.Now()) == nil {
		now := time.Now()
		w = writing{start: now, end: now} // we stood still for longer than lookAfter: try again, below
	}
	if !w.start.IsZero() {
		q.rec.Send, c.last = q.instant(w.start), w.end
	}
	whole := w.n == len(msg)
	if w.err == nil && !whole {
		c.look = time.Time{}
		if err := c.arm(true); err != nil {
			return head{}, err
		}
		_, w.err = c.rw.Write(msg[w.n:])
		c.last = time.Now()
	}
	q.rec.Sent = q.instant(c.last)
	if w.err != nil {
		return c.unsent(w.err, reused, q)
	}
	if whole {
		if _, err := c.took(n, err); err != nil {
			return head{}, ended(err)
		}
	}
	return c.readHead(q)
}

// armedFor reports whether the deadline that is set will do for a limit as seen
// now: it may be a quarter early, but not late. Setting one costs as much as
// reading a head.
func (c *conn) armedFor(limit, now time.Time) bool {
	if limit.IsZero() {
		return c.armed.Equal(longAgo)
	}
	early := limit.Sub(c.armed)
	return early >= 0 && early <= limit.Sub(now)/4
}

// ended names the end of the connection inside the answer.
func ended(err error) error {
	if err == io.EOF {
		return errLost
	}
	return err
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
			in := c.buf.unread()
			end, next, err := headEnd(in, scanned)
			if err != nil {
				return head{}, &failure{record.Malformed, err}
			}
			if end > 0 {
				h, err := parseHead(in[:end])
				if err != nil {
					return head{}, &failure{record.Malformed, err}
				}
				c.buf.r += end
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
				return head{}, ended(err)
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
		if c.buf.r < c.buf.n {
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
			return fragment{}, ended(err)
		}
	}
}

// unframe takes the next run of body bytes out of the buffer.
func (c *conn) unframe() (p []byte, err error) {
	in := c.buf.unread()
	switch c.framing {
	case framingLength:
		p = in[:min(c.left, int64(len(in)))]
		c.buf.r += len(p)
		if c.left -= int64(len(p)); c.left == 0 {
			c.framing = framingNone
		}
	case framingChunked:
		var rest []byte
		if p, rest, err = c.chunks.next(in); err != nil {
			return nil, &failure{record.Malformed, err}
		}
		c.buf.r = c.buf.n - len(rest)
		if c.chunks.done() {
			c.framing = framingNone
		}
	case framingClose:
		p = in
		c.buf.r = c.buf.n
	}
	return p, nil
}

// fill reads once more. Unread bytes stay.
func (c *conn) fill() error {
	c.buf.settle()
	if len(c.buf.unread()) == readBuffer {
		return fail(record.Malformed, "a response head of more than %d bytes", maxHead)
	}
	exact := false
	for range 64 { // a reader that gives neither bytes nor an error is broken
		if err := c.arm(exact); err != nil {
			return err
		}
		var n int
		var err error
		if c.plain {
			n, err = c.sock.fill(&c.buf)
		} else {
			n, err = c.rw.Read(c.buf.space())
		}
		if done, err := c.took(n, err); done {
			return err
		}
		exact = true
	}
	return io.ErrNoProgress
}

// took takes over what a read gave and reports whether that was bytes or an end.
func (c *conn) took(n int, err error) (done bool, _ error) {
	if n > 0 {
		c.answered = true
		c.buf.n += n
		c.last, c.look = c.sock.at, time.Time{}
		return true, nil
	}
	if err == nil {
		return false, nil
	}
	if e := c.ctx.Err(); e != nil {
		return true, e
	}
	if !isTimeout(err) {
		return true, err
	}
	c.look = time.Time{}
	err = c.expired(time.Now())
	return err != nil, err
}

// until returns when to give up waiting, or to look; zero: never.
func (c *conn) until() time.Time {
	limit := c.total
	sooner := func(t time.Time) {
		if limit.IsZero() || t.Before(limit) {
			limit = t
		}
	}
	if c.stall > 0 {
		sooner(c.last.Add(c.stall))
	}
	if !c.look.IsZero() {
		sooner(c.look)
	}
	return limit
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
	if !limit.IsZero() || !c.armed.Equal(longAgo) {
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
	if !c.w.watches.remove(c) {
		keep = false // a deadline in the past is set
	}
	keep = keep && !c.closes && c.buf.r == c.buf.n
	c.buf.drop()
	c.ctx = nil
	if keep {
		c.w.put(c, c.last)
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

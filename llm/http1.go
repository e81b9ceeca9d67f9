package llm

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/assay-llm/assay/record"
)

// http1 is HTTP/1.1 on connections of our own: one write a request, a stamp
// right behind every read, no goroutine but the caller's.
type http1 struct {
	t      Target
	addr   string
	tls    *tls.Config // nil: plain
	post   []byte      // head of a POST up to the fields that differ
	get    []byte
	mu     sync.Mutex
	idle   []*conn // last in, first out
	limit  int
	closed bool
}

func newHTTP1(t Target) (*http1, error) {
	u, err := parseURL(t.URL)
	if err != nil {
		return nil, err
	}
	post, models := endpoints(u, t.API)
	w := &http1{t: t, addr: hostPort(u), limit: t.MaxIdle}
	if u.Scheme == "https" {
		w.tls = t.tlsConfig(u.Hostname())
		w.tls.NextProtos = []string{"http/1.1"}
	}
	fields := "Host: " + u.Host + "\r\n"
	for _, f := range t.fields() {
		fields += f[0] + ": " + f[1] + "\r\n"
	}
	w.post = []byte("POST " + post.RequestURI() + " HTTP/1.1\r\n" + fields + "Content-Type: application/json\r\n")
	w.get = []byte("GET " + models.RequestURI() + " HTTP/1.1\r\n" + fields)
	return w, nil
}

// headRoom is the free space that a call leaves before its body.
func (w *http1) headRoom(id string) int {
	return max(len(w.post), len(w.get)) + len("X-Request-Id: ") + len(id) + len("\r\nContent-Length: ") + 20 + len("\r\n\r\n")
}

// message puts the head right before the body, so that both leave in one write.
func (w *http1) message(q *call) []byte {
	prefix := w.post
	if q.get {
		prefix = w.get
	}
	var digits [20]byte
	length := strconv.AppendInt(digits[:0], int64(len(q.body())), 10)
	n := len(prefix) + len("X-Request-Id: \r\n") + len(q.id) + len("\r\n")
	if !q.get {
		n += len("Content-Length: \r\n") + len(length)
	}
	b := append(q.buf[q.gap-n:q.gap-n], prefix...)
	b = append(append(append(b, "X-Request-Id: "...), q.id...), "\r\n"...)
	if !q.get {
		b = append(append(append(b, "Content-Length: "...), length...), "\r\n"...)
	}
	_ = append(b, "\r\n"...)
	return q.buf[q.gap-n:]
}

func (w *http1) exchange(ctx context.Context, q *call) (stream, head, error) {
	c := w.take()
	if c != nil {
		h, err := c.roundTrip(ctx, q)
		if err == nil {
			return c, h, nil
		}
		c.abort()
		// The one safe retry: the server closed the idle connection before it
		// can have answered. Anything else may have been worked on.
		if c.answered || ctx.Err() != nil || !isLost(err) {
			return nil, head{}, err
		}
		q.rec.Flags |= record.FlagRetried
	}
	start := time.Now()
	c, err := w.dial(ctx, q.total)
	q.rec.ConnStart, q.rec.ConnEnd, q.rec.Reused = q.instant(start), q.instant(time.Now()), false
	if err != nil {
		return nil, head{}, err
	}
	h, err := c.roundTrip(ctx, q)
	if err != nil {
		c.abort()
		return nil, head{}, err
	}
	return c, h, nil
}

// take returns the connection that was used last, or nil. One that lay idle is
// looked at before it is trusted.
func (w *http1) take() *conn {
	for {
		w.mu.Lock()
		if len(w.idle) == 0 {
			w.mu.Unlock()
			return nil
		}
		c := w.idle[len(w.idle)-1]
		w.idle[len(w.idle)-1] = nil
		w.idle = w.idle[:len(w.idle)-1]
		w.mu.Unlock()
		age := time.Since(c.since)
		if age < w.t.IdleTimeout && (age < time.Second || !stale(c.sock.Conn)) {
			return c
		}
		c.rw.Close()
	}
}

// put keeps an idle connection, and lets go of the oldest when it is too old.
func (w *http1) put(c *conn) {
	c.since = time.Now()
	w.mu.Lock()
	var drop *conn
	switch {
	case w.closed || len(w.idle) >= w.limit:
		drop = c
	default:
		w.idle = append(w.idle, c)
		if old := w.idle[0]; c.since.Sub(old.since) > w.t.IdleTimeout {
			drop = old
			copy(w.idle, w.idle[1:])
			w.idle[len(w.idle)-1] = nil
			w.idle = w.idle[:len(w.idle)-1]
		}
	}
	w.mu.Unlock()
	if drop != nil {
		drop.rw.Close()
	}
}

func (w *http1) close() {
	w.mu.Lock()
	idle := w.idle
	w.idle, w.closed = nil, true
	w.mu.Unlock()
	for _, c := range idle {
		c.rw.Close()
	}
}

// openers is how many connections open at a time: enough to hide the round
// trip, few enough for a listener's backlog.
const openers = 32

func (w *http1) open(ctx context.Context, n int) (int, error) {
	w.mu.Lock()
	w.limit = max(w.limit, n)
	n -= len(w.idle)
	had := len(w.idle)
	w.mu.Unlock()
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		next   int
		opened int
		first  error
	)
	for range min(n, openers) {
		wg.Go(func() {
			for {
				mu.Lock()
				if next == n || first != nil {
					mu.Unlock()
					return
				}
				next++
				mu.Unlock()
				c, err := w.dial(ctx, time.Time{})
				if err == nil {
					w.put(c)
				}
				mu.Lock()
				if err != nil && first == nil {
					first = err
				} else if err == nil {
					opened++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return had + opened, first
}

// dial opens a connection, by the earlier of the dial limit and the deadline.
func (w *http1) dial(ctx context.Context, total time.Time) (*conn, error) {
	limit, late := time.Now().Add(w.t.DialTimeout), error(nil)
	if !total.IsZero() && total.Before(limit) {
		limit, late = total, errTotal
	}
	dctx, cancel := context.WithDeadline(ctx, limit)
	defer cancel()
	expired := func(outcome record.Outcome, what string, err error) error {
		if e := ctx.Err(); e != nil {
			return e
		}
		if dctx.Err() != nil || isTimeout(err) {
			if late != nil {
				return late
			}
			return fail(outcome, "%s: no answer within %v", what, w.t.DialTimeout)
		}
		return nil
	}
	c, err := w.t.Dial(dctx, "tcp", w.addr)
	if err != nil {
		if e := expired(record.Dial, "connecting to "+w.addr, err); e != nil {
			return nil, e
		}
		return nil, dialFailure(err)
	}
	s := newSock(c)
	if w.tls == nil {
		return w.conn(s, s), nil
	}
	secure := tls.Client(s, w.tls)
	if err := secure.HandshakeContext(dctx); err != nil {
		s.Close()
		if e := expired(record.TLS, "TLS handshake with "+w.addr, err); e != nil {
			return nil, e
		}
		return nil, &failure{record.TLS, fmt.Errorf("TLS handshake with %s: %w", w.addr, err)}
	}
	return w.conn(s, secure), nil
}

func (w *http1) conn(s *sock, rw net.Conn) *conn {
	return &conn{w: w, sock: s, rw: rw, cut: func() { rw.SetDeadline(longAgo) }}
}

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

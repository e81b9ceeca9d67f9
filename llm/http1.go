package llm

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/assay-llm/assay/record"
)

// http1 is HTTP/1.1 on connections of our own: one write a request, a stamp
// right behind every read, no goroutine but the caller's.
type http1 struct {
	t       Target
	addr    string
	tls     *tls.Config // nil: plain
	post    []byte      // head of a POST up to the fields that differ
	whole   []byte      // the same for an answer that is not streamed
	get     []byte
	watches watches
	mu      sync.Mutex
	idle    []*conn // last in, first out
	limit   int
	closed  bool
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
	head := func(u *url.URL) []byte {
		return []byte("POST " + u.RequestURI() + " HTTP/1.1\r\n" + fields + "Content-Type: application/json\r\n")
	}
	w.post, w.whole = head(post), head(t.dialect().unstreamed(post))
	w.get = []byte("GET " + models.RequestURI() + " HTTP/1.1\r\n" + fields)
	return w, nil
}

// headRoom is the free space that a call leaves before its body.
func (w *http1) headRoom(id string) int {
	return max(len(w.post), len(w.whole), len(w.get)) + len("X-Request-Id: ") + len(id) + len("\r\nContent-Length: ") + 20 + len("\r\n\r\n")
}

// message puts the head right before the body, so that both leave in one write.
func (w *http1) message(q *call) []byte {
	prefix := w.post
	switch {
	case q.get:
		prefix = w.get
	case q.whole:
		prefix = w.whole
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
	c := w.take(q.now)
	if c != nil {
		h, err := c.roundTrip(ctx, q)
		if err == nil {
			q.sent()
			return c, h, nil
		}
		c.abort()
		// The one safe retry: the server closed the idle connection before it
		// can have answered. Anything else may have been worked on.
		if c.answered || ctx.Err() != nil || !isLost(err) {
			return nil, head{}, err
		}
		q.rec.Flags |= record.FlagRetried
		q.rec.Send, q.rec.Sent = 0, 0
	}
	start := time.Now()
	c, err := w.dial(ctx, q.total)
	q.now = time.Now()
	q.rec.ConnStart, q.rec.ConnEnd, q.rec.Reused = q.instant(start), q.instant(q.now), false
	if err != nil {
		return nil, head{}, err
	}
	h, err := c.roundTrip(ctx, q)
	if err != nil {
		c.abort()
		return nil, head{}, err
	}
	q.sent()
	return c, h, nil
}

// take returns the connection that was used last, or nil. One that lay idle is
// looked at before it is trusted.
func (w *http1) take(now time.Time) *conn {
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
		age := now.Sub(c.since)
		if age < w.t.IdleTimeout && (age < time.Second || !stale(c.sock.Conn)) {
			return c
		}
		c.rw.Close()
	}
}

// put keeps a connection that is idle from now on, and lets go of the oldest
// when it is too old.
func (w *http1) put(c *conn, now time.Time) {
	c.since = now
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
	w.watches.close()
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
					w.put(c, time.Now())
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
			if _, ok := errors.AsType[*net.DNSError](err); ok {
				outcome = record.DNS
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
	plain := rw == net.Conn(s) && s.raw.attached()
	return &conn{w: w, sock: s, rw: rw, plain: plain, cut: func() { rw.SetDeadline(longAgo) }}
}

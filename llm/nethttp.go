package llm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-llm/assay/record"
)

// netHTTP carries requests by net/http: HTTP/2, and proxies. Its stamps are
// taken when a read of the body returns, which is later than the socket's, and
// there are none of the kernel.
type netHTTP struct {
	t           Target
	rt          *http.Transport
	post, whole string
	models      string
}

func newNetHTTP(t Target) (*netHTTP, error) {
	u, err := parseURL(t.URL)
	if err != nil {
		return nil, err
	}
	post, models := endpoints(u, t.API)
	w := &netHTTP{t: t, post: post.String(), whole: t.dialect().unstreamed(post).String(), models: models.String()}
	w.rt = &http.Transport{
		DialContext:            w.dial,
		TLSClientConfig:        t.tlsConfig(""),
		TLSHandshakeTimeout:    t.DialTimeout,
		DisableCompression:     true,
		MaxIdleConns:           t.MaxIdle,
		MaxIdleConnsPerHost:    t.MaxIdle,
		IdleConnTimeout:        t.IdleTimeout,
		MaxResponseHeaderBytes: maxHead,
		ReadBufferSize:         readBuffer,
		WriteBufferSize:        readBuffer,
		Protocols:              new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerConnection: 64 << 20,
			MaxReceiveBufferPerStream:     4 << 20, // the server is never held back by us
		},
	}
	switch {
	case t.Protocol != ProtocolHTTP2:
		w.rt.Protocols.SetHTTP1(true)
	case u.Scheme == "http":
		w.rt.Protocols.SetUnencryptedHTTP2(true)
	default:
		w.rt.Protocols.SetHTTP2(true)
	}
	if t.Proxy != "" {
		p, err := url.Parse(t.Proxy)
		if err != nil {
			return nil, errors.New("proxy: not a URL")
		}
		w.rt.Proxy = http.ProxyURL(p)
	}
	return w, nil
}

func (w *netHTTP) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, w.t.DialTimeout)
	defer cancel()
	c, err := w.t.Dial(ctx, network, addr)
	if err != nil {
		return nil, dialFailure(err)
	}
	return c, nil
}

func (w *netHTTP) close() { w.rt.CloseIdleConnections() }

// open makes the one connection that HTTP/2 needs, by asking for the models.
func (w *netHTTP) open(ctx context.Context, _ int) (int, error) {
	rec := new(record.Record)
	now := time.Now()
	s, _, err := w.exchange(ctx, &call{get: true, id: []byte("open"), epoch: now, rec: rec, total: now.Add(w.t.DialTimeout)})
	if err != nil {
		return 0, err
	}
	s.release(true)
	return 1, nil
}

// moments are the stamps of one exchange. net/http calls back from several
// goroutines, some of them after the exchange.
type moments struct {
	mu                                sync.Mutex
	connStart, connEnd, send, written time.Time
	reused                            bool
	sent                              func() // called when the request is written
}

func (m *moments) trace() *httptrace.ClientTrace {
	set := func(t *time.Time, once bool) {
		now := time.Now()
		m.mu.Lock()
		defer m.mu.Unlock()
		if !once || t.IsZero() {
			*t = now
		}
	}
	return &httptrace.ClientTrace{
		GetConn: func(string) { set(&m.connStart, true) },
		GotConn: func(i httptrace.GotConnInfo) {
			set(&m.connEnd, false)
			m.mu.Lock()
			m.reused = i.Reused
			m.send = m.connEnd
			m.mu.Unlock()
		},
		WroteRequest: func(i httptrace.WroteRequestInfo) {
			set(&m.written, false)
			if m.sent != nil && i.Err == nil {
				m.sent()
			}
		},
	}
}

func (m *moments) put(q *call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := func(t time.Time) record.Instant {
		if t.IsZero() {
			return 0
		}
		return q.instant(t)
	}
	q.rec.Reused = m.reused
	if !m.reused {
		q.rec.ConnStart, q.rec.ConnEnd = at(m.connStart), at(m.connEnd)
	}
	q.rec.Send = at(m.send)
	if !m.written.Before(m.send) { // else it is the end of a first try that was sent again
		q.rec.Sent = at(m.written)
	}
}

func (w *netHTTP) exchange(ctx context.Context, q *call) (stream, head, error) {
	inner, cancel := context.WithCancelCause(ctx)
	b := &netBody{cancel: cancel, ctx: ctx, inner: inner, total: q.total, stall: w.t.Stall}
	b.timer = time.AfterFunc(time.Hour, b.expire)
	b.wait()
	m, sends := new(moments), new(atomic.Int32)
	if q.leave {
		m.sent = func() { cancel(ErrPlanned) }
	}
	req, err := w.request(httptrace.WithClientTrace(inner, m.trace()), q, sends)
	if err != nil {
		b.release(false)
		return nil, head{}, &failure{record.ClientFault, err}
	}
	resp, err := w.rt.RoundTrip(req)
	at := time.Now()
	m.put(q)
	if sends.Load() > 1 {
		q.rec.Flags |= record.FlagRetried
	}
	if err != nil {
		err = b.classify(err)
		b.release(false)
		return nil, head{}, err
	}
	q.rec.Header = q.instant(at)
	if q.rec.Sent == 0 || q.rec.Sent > q.rec.Header {
		// Written before it was answered, but net/http says so later.
		q.rec.Sent = q.rec.Header
	}
	b.body = resp.Body
	h := head{status: resp.StatusCode, length: resp.ContentLength}
	for name, values := range resp.Header {
		for _, v := range values {
			_ = h.field([]byte(name), []byte(v)) // framing is net/http's
		}
	}
	h.chunked = false
	if h.status < 400 {
		h.retryAfter = ""
	}
	return b, h, nil
}

func (w *netHTTP) request(ctx context.Context, q *call, sends *atomic.Int32) (*http.Request, error) {
	method, target, body := http.MethodPost, w.post, io.Reader(bytes.NewReader(q.body()))
	switch {
	case q.get:
		method, target, body = http.MethodGet, w.models, nil
	case q.whole:
		target = w.whole
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, errors.New("building the request")
	}
	if !q.get {
		// net/http sends again what no server can have worked on, as behind a
		// GOAWAY: allowed once, as on our own connections. The copy outlives the
		// exchange, since net/http may read it until later.
		data := bytes.Clone(q.body())
		req.Body = &sentBody{data: bytes.NewReader(data), sends: sends}
		req.GetBody = func() (io.ReadCloser, error) {
			return &sentBody{data: bytes.NewReader(data), sends: sends}, nil
		}
		req.Header.Set("Content-Type", "application/json")
	}
	for _, f := range w.t.fields() {
		req.Header.Set(f[0], f[1])
	}
	req.Header.Set("X-Request-Id", string(q.id))
	return req, nil
}

// sentBody is a request's body that counts how often it is sent.
type sentBody struct {
	data  *bytes.Reader // not embedded: its WriteTo would pass Read by
	sends *atomic.Int32
	begun bool
}

var errSentTwice = errors.New("sent twice already")

func (b *sentBody) Read(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		if b.sends.Add(1) > 2 {
			return 0, errSentTwice
		}
	}
	return b.data.Read(p)
}

func (*sentBody) Close() error { return nil }

// netBody is the body of an answer that came by net/http.
type netBody struct {
	body   io.ReadCloser
	cancel context.CancelCauseFunc
	ctx    context.Context //nolint:containedctx // the caller's, for one exchange
	inner  context.Context //nolint:containedctx // cancelled by the timer too
	timer  *time.Timer
	total  time.Time
	stall  time.Duration
	buf    *[readBuffer]byte
	reads  uint32
	ended  bool
}

func (b *netBody) expire() {
	cause := errStall
	if !b.total.IsZero() && !time.Now().Before(b.total) {
		cause = errTotal
	}
	b.cancel(cause)
}

// wait sets the timer for the next byte.
func (b *netBody) wait() {
	left := 100 * 365 * 24 * time.Hour
	if b.stall > 0 {
		left = b.stall
	}
	if !b.total.IsZero() {
		left = min(left, time.Until(b.total))
	}
	b.timer.Reset(max(left, 0))
}

func (b *netBody) next() (fragment, error) {
	if b.ended {
		return fragment{}, io.EOF
	}
	if b.buf == nil {
		b.buf = buffers.Get().(*[readBuffer]byte)
	}
	for {
		b.wait()
		n, err := b.body.Read(b.buf[:])
		at := time.Now()
		if err == io.EOF {
			b.ended = true
		}
		if n > 0 {
			b.reads++
			return fragment{p: b.buf[:n], at: at, lag: -1, read: b.reads}, nil
		}
		if err == io.EOF {
			return fragment{}, io.EOF
		}
		if err != nil {
			return fragment{}, b.classify(err)
		}
	}
}

// classify turns an error of net/http into ours.
func (b *netBody) classify(err error) error {
	if e := b.ctx.Err(); e != nil {
		return e
	}
	if cause := context.Cause(b.inner); cause == errStall || cause == errTotal || cause == ErrPlanned {
		return cause
	}
	if _, ok := errors.AsType[*failure](err); ok {
		return err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "dial" || op.Op == "proxyconnect") {
		return dialFailure(err)
	}
	switch {
	case isGoaway(err), errors.Is(err, errSentTwice):
		return &failure{record.Goaway, err}
	case isTLS(err):
		return &failure{record.TLS, err}
	case isTimeout(err):
		return &failure{record.Dial, err}
	case isLost(err), strings.Contains(err.Error(), "stream error"), strings.Contains(err.Error(), "client connection lost"),
		strings.Contains(err.Error(), "server closed"), strings.Contains(err.Error(), "connection broken"):
		return errors.Join(errLost, err)
	}
	return &failure{record.Malformed, err}
}

func (b *netBody) release(keep bool) {
	if keep && b.body != nil {
		b.total, b.stall = time.Now().Add(drainTime), 0
		for left := drainBytes; left > 0; {
			f, err := b.next()
			if err != nil {
				break
			}
			left -= len(f.p)
		}
	}
	b.timer.Stop()
	if b.body != nil {
		b.body.Close()
	}
	b.cancel(nil)
	if b.buf != nil {
		buffers.Put(b.buf)
		b.buf = nil
	}
}

package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assay-llm/assay/record"
)

// Client asks one target. It is safe for concurrent use. Do runs in the caller's
// goroutine and starts none on HTTP/1.1.
type Client struct {
	t    Target
	name string
	wire wire
	room int // for a head before a body, without the id
}

// NewClient returns a client of a target; it opens no connection yet. The error
// holds every fault of the target.
func NewClient(t Target) (*Client, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	t = t.withDefaults()
	t.Headers = maps.Clone(t.Headers)
	u, err := parseURL(t.URL)
	if err != nil {
		return nil, err
	}
	c := &Client{t: t}
	c.name = fmt.Sprintf("%s://%s (%s)", u.Scheme, u.Host, t.API)
	if t.Protocol == ProtocolHTTP2 || t.Proxy != "" {
		c.wire, err = newNetHTTP(t)
		return c, err
	}
	w, err := newHTTP1(t)
	if err != nil {
		return nil, err
	}
	c.wire, c.room = w, w.headRoom("")
	return c, nil
}

// String names the target without path, query or secrets.
func (c *Client) String() string { return c.name }

// Protocol returns "HTTP/1.1" or "HTTP/2".
func (c *Client) Protocol() string {
	if c.t.Protocol == ProtocolHTTP2 {
		return "HTTP/2"
	}
	return "HTTP/1.1"
}

// Open opens connections until n lie idle, so that no request pays for a dial.
// It returns how many there are and the first error. HTTP/2 opens one.
func (c *Client) Open(ctx context.Context, n int) (opened int, err error) {
	if n <= 0 {
		return 0, nil
	}
	opened, err = c.wire.open(ctx, n)
	if err != nil {
		return opened, fmt.Errorf("opening connections to %s: %w", c.name, err)
	}
	return opened, nil
}

// Close closes the idle connections. Requests under way end undisturbed, and
// their connections are closed then.
func (c *Client) Close() error {
	c.wire.close()
	return nil
}

// requests pools the buffers that requests are built in.
var requests = sync.Pool{New: func() any { return new([]byte) }}

// Do sends one request and reads its answer to the end. What became of it goes
// on rec, which belongs to the call until it returns: everything but Due, Admit
// and what was asked; its Events start empty, in the capacity that they have. Times count from epoch, an instant of time.Now at the
// run's start. Each call ends in exactly one outcome; a cancelled context ends
// it at once, as client_cancelled if its cause is ErrPlanned, else interrupted.
//
// Do retries only one case, once: a kept connection that fails before any byte
// of the answer (the server had closed it); rec then has FlagRetried.
func (c *Client) Do(ctx context.Context, epoch time.Time, req *Request, rec *record.Record) Answer {
	now := time.Now()
	if req.Stream && c.t.speak.unstream {
		whole := *req
		whole.Stream, req, rec.Stream = false, &whole, false
	}
	t := tallies.Get().(*tally)
	t.id = appendRequestID(t.id[:0], rec)
	t.call = call{epoch: epoch, rec: rec, whole: !req.Stream, leave: req.LeaveSent, id: t.id, now: now}
	q := &t.call
	if c.t.Timeout > 0 {
		q.total = now.Add(c.t.Timeout)
	}
	q.gap = c.room + len(q.id)
	q.mem = requests.Get().(*[]byte)
	b := *q.mem
	if cap(b) < q.gap {
		b = make([]byte, q.gap, q.gap+4<<10)
	}
	var err error
	b, err = c.t.appendRequest(b[:q.gap], req)
	q.buf = b

	t.begin(&c.t, q, req)
	if err == nil {
		err = ctx.Err()
	} else {
		err = &failure{record.ClientFault, err}
	}
	if err == nil {
		err = c.exchange(ctx, q, t)
	}
	t.finish(ctx, err)
	a := t.answer()
	q.sent()
	t.end()
	return a
}

func (c *Client) exchange(ctx context.Context, q *call, t *tally) error {
	s, h, err := c.wire.exchange(ctx, q)
	if err != nil {
		return err
	}
	body := s
	if h.gzip {
		body = &gunzip{stream: s}
	}
	err = t.read(body, h)
	s.release(err == nil || h.status > 299)
	return err
}

// maxModels bounds the list of models that Probe reads.
const maxModels = 4 << 20

// Probe asks for the list of models, to tell early whether anybody answers at
// the target. The error names the cause and a next step. A server without such
// a list is alive too.
func (c *Client) Probe(ctx context.Context) error {
	rec := new(record.Record)
	now := time.Now()
	q := call{get: true, id: []byte("probe"), now: now, epoch: now, rec: rec, total: now.Add(c.t.DialTimeout)}
	q.gap = c.room + len(q.id)
	q.buf = make([]byte, q.gap)
	s, h, err := c.wire.exchange(ctx, &q)
	if err != nil {
		return c.probeError(ctx, err)
	}
	t := &tally{t: &c.t, q: &q, rec: rec, req: new(Request)}
	err = t.readBody(s, maxModels)
	s.release(err == nil)
	said := parseError(t.body)
	switch {
	case h.status == 401 || h.status == 403:
		return fmt.Errorf("%s refuses the key (HTTP %d): %s\n  hint: give the variant's key, as env:NAME or file:PATH", c.name, h.status, t.clean(said.message))
	case h.status == 404 || h.status == 405 || h.status == 501, c.t.speak.asIs && h.status < 500:
		return nil // no list, but somebody answers
	case h.status > 299:
		return fmt.Errorf("%s answers HTTP %d to %s: %s\n  hint: is the server still loading its model?", c.name, h.status, "GET models", t.clean(said.message))
	case err != nil && !errors.Is(err, io.EOF):
		return c.probeError(ctx, err)
	case !json.Valid(t.body):
		return fmt.Errorf("%s answers with something else than JSON\n  hint: is this the URL of an OpenAI-compatible server?", c.name)
	}
	return nil
}

func (c *Client) probeError(ctx context.Context, err error) error {
	hint := "is the server running, and the URL right?"
	switch outcomeOf(ctx, err, false) {
	case record.DNS:
		hint = "check the host's name in the URL"
	case record.TLS:
		hint = "is it https? a private certificate needs ca, or skip_verify"
	case record.ClientFault:
		hint = "this machine lacks descriptors, memory or ports: see ulimit -n"
	case record.Malformed:
		hint = "is this the URL of an OpenAI-compatible server?"
	}
	return fmt.Errorf("asking %s: %w\n  hint: %s", c.name, err, hint)
}

var secretName = regexp.MustCompile(`(?i)auth|key|token|secret|cookie|password`)

// fields returns the header fields of every request but those of framing.
func (t *Target) fields() [][2]string {
	f := [][2]string{
		{"Accept", t.dialect().accept},
		{"Accept-Encoding", "identity"},
	}
	f = append(f, t.dialect().auth(t)...)
	agent := true
	for _, name := range slices.Sorted(maps.Keys(t.Headers)) {
		f = append(f, [2]string{name, t.Headers[name]})
		agent = agent && !strings.EqualFold(name, "User-Agent")
	}
	if agent {
		f = append(f, [2]string{"User-Agent", "assay"})
	}
	return f
}

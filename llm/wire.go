package llm

import (
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"time"

	"github.com/assay-llm/assay/record"
)

// wire carries requests: this package's own HTTP/1.1, or net/http.
type wire interface {
	// exchange sends a request and reads the head of its answer. It stamps
	// connection, send and header on the call's record. A stream that it gives
	// must be released.
	exchange(ctx context.Context, q *call) (stream, head, error)
	// open makes up to n idle connections.
	open(ctx context.Context, n int) (int, error)
	close()
}

// stream is the body of one answer.
type stream interface {
	// next waits for more of the body; io.EOF after the last of it. The bytes are
	// valid until the following call.
	next() (fragment, error)
	// release ends the exchange. With keep the connection may serve another
	// request if the body has ended, or ends at once.
	release(keep bool)
}

// fragment is a piece of a body that came with one read.
type fragment struct {
	p    []byte
	at   time.Time     // when the read returned
	lag  time.Duration // see sock.lag
	read uint32        // ordinal of the read in this answer, from 1
}

// call is one request on its way.
type call struct {
	get   bool   // GET of the list of models instead of the POST
	whole bool   // the answer is not to be streamed
	leave bool   // end with ErrPlanned when it is sent
	buf   []byte // free space of length gap for a head, then the body
	gap   int
	mem   *[]byte // where buf comes from; nil: nowhere
	id    []byte
	now   time.Time // when the call began
	total time.Time // give up at; zero: never
	epoch time.Time
	rec   *record.Record
}

// sent lets go of the request's memory, once it will not be sent again.
func (q *call) sent() {
	if q.mem == nil {
		return
	}
	if cap(q.buf) <= 1<<20 {
		*q.mem = q.buf[:0]
		requests.Put(q.mem)
	}
	q.mem, q.buf = nil, nil
}

func (q *call) body() []byte { return q.buf[q.gap:] }

func (q *call) instant(t time.Time) record.Instant { return record.At(t.Sub(q.epoch)) }

// Bounds of waiting for the end of a body whose content is complete: the time
// is off the record, and a connection is not worth more.
const (
	drainTime  = 10 * time.Millisecond
	drainBytes = 64 << 10
)

// maxRatio bounds how much more may come out of a compressed body than went in.
const (
	maxRatio   = 100
	ratioSlack = 64 << 10
)

// gunzip undoes gzip of a whole body with one decompressor, as servers flush it
// event by event. Its bytes carry the stamp of the read that completed them.
type gunzip struct {
	stream
	z       *gzip.Reader
	buf     []byte
	last    fragment
	rest    []byte // of last, not yet decompressed
	in, out int64
}

// Read gives the decompressor the next compressed bytes.
func (g *gunzip) Read(p []byte) (int, error) {
	if len(g.rest) == 0 {
		f, err := g.stream.next()
		if err != nil {
			return 0, err
		}
		g.last, g.rest = f, f.p
	}
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	g.in += int64(n)
	return n, nil
}

func (g *gunzip) next() (fragment, error) {
	if g.z == nil {
		z, err := gzip.NewReader(g)
		if err != nil {
			return fragment{}, g.classify(err)
		}
		g.z, g.buf = z, make([]byte, readBuffer)
	}
	for {
		n, err := g.z.Read(g.buf)
		g.out += int64(n)
		if g.out > maxRatio*g.in+ratioSlack {
			return fragment{}, fail(record.BodyTooLarge, "a gzip body that grows more than %d times", maxRatio)
		}
		if n > 0 {
			f := g.last
			f.p = g.buf[:n]
			return f, nil
		}
		if err != nil {
			return fragment{}, g.classify(err)
		}
	}
}

func (g *gunzip) classify(err error) error {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), corrupt:
		return fail(record.Malformed, "a broken gzip body: %w", err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fail(record.Truncated, "the gzip body is not whole")
	}
	return err
}

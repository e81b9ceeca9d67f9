package llm

import (
	"bytes"
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-llm/assay/record"
)

// TestStandingStillBeforeSendingIsNoStall holds that a client which did not run
// between the call and the write sends late, and does not blame the server.
func TestStandingStillBeforeSendingIsNoStall(t *testing.T) {
	s := serve(t, answer(eventA+eventStop+eventDone))
	w := client(t, Target{URL: s.url()}).wire.(*http1)
	k, err := w.dial(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	rec, now := record.Record{}, time.Now()
	q := &call{id: []byte("x"), now: now.Add(-2 * lookAfter), epoch: now.Add(-time.Hour), rec: &rec}
	q.gap = w.headRoom("x")
	q.buf = append(make([]byte, q.gap), "{}"...)
	h, err := k.roundTrip(t.Context(), q)
	if err != nil || h.status != 200 {
		t.Fatalf("status %d, %v", h.status, err)
	}
	k.release(false)
	if late, ok := rec.Send.Sub(record.At(time.Hour)); !ok || late < 0 || rec.Sent < rec.Send {
		t.Errorf("send at %v, sent at %v", rec.Send, rec.Sent)
	}
}

// TestEndBeforeTheRequestIsFound holds that an end of the connection that came
// before the request was written, and wakes nobody, is found soon.
func TestEndBeforeTheRequestIsFound(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only a socket on Linux can be asked whether the end is there")
	}
	s := serve(t, func(n int, p *peer) {
		for {
			if h, _ := p.request(); h == nil {
				return
			}
			io.WriteString(p, plain("200 OK", "text/event-stream", eventA+eventStop+eventDone))
			if n == 0 { // says that it is done, and goes on reading
				_ = p.Conn.(*net.TCPConn).CloseWrite()
				_, _ = io.Copy(io.Discard, p)
				return
			}
		}
	})
	c := client(t, Target{URL: s.url(), Stall: time.Minute})
	w := c.wire.(*http1)
	if rec, _ := ask(t, t.Context(), c, chat("x")); rec.Outcome != record.OK {
		t.Fatalf("first request: %s (%s)", rec.Outcome, rec.Detail)
	}
	for !stale(w.idle[0].sock.Conn) {
		runtime.Gosched()
	}
	w.idle[0].since = time.Now() // so that nobody looks before
	start := time.Now()
	rec, _ := ask(t, t.Context(), c, chat("x"))
	if rec.Outcome != record.OK || rec.Flags&record.FlagRetried == 0 {
		t.Errorf("%s (%s), flags %v; want a second try", rec.Outcome, rec.Detail, rec.Flags.Names())
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("found after %v", took)
	}
}

// TestLargeRequestIsSentWhole holds that a request which no socket takes at once
// arrives whole.
func TestLargeRequestIsSentWhole(t *testing.T) {
	sizes := make(chan int, 1)
	s := serve(t, func(_ int, p *peer) {
		_, body := p.request()
		sizes <- bytes.Count(body, []byte("word "))
		io.WriteString(p, plain("200 OK", "text/event-stream", eventA+eventStop+eventDone))
	})
	c := client(t, Target{URL: s.url()})
	rec, _ := ask(t, t.Context(), c, chat(strings.Repeat("word ", 4<<20)))
	if n := <-sizes; n != 4<<20 || rec.Outcome != record.OK || rec.Sent <= rec.Send {
		t.Errorf("%d words came, %s (%s), sent from %v to %v", n, rec.Outcome, rec.Detail, rec.Send, rec.Sent)
	}
}

// TestWatchesCutTheirOwn holds that the end of a context cuts all its exchanges
// and no others, and that nothing of it is kept.
func TestWatchesCutTheirOwn(t *testing.T) {
	const each = 5
	var asked sync.WaitGroup
	asked.Add(3 * each)
	s := serve(t, func(_ int, p *peer) {
		p.request()
		asked.Done()
		_, _ = io.Copy(io.Discard, p) // never answers
	})
	c := client(t, Target{URL: s.url()})
	w := c.wire.(*http1)
	outcomes := make([][]record.Outcome, 3)
	ctx, cancel := make([]context.Context, 3), make([]context.CancelFunc, 3)
	var ended [3]sync.WaitGroup
	for i := range 3 {
		ctx[i], cancel[i] = context.WithCancel(t.Context())
		outcomes[i] = make([]record.Outcome, each)
	}
	for j := range each { // the contexts take turns
		for i := range 3 {
			ended[i].Go(func() {
				rec, _ := ask(t, ctx[i], c, chat("x"))
				outcomes[i][j] = rec.Outcome
			})
		}
	}
	asked.Wait()
	for _, i := range []int{1, 0, 2} {
		cancel[i]()
		ended[i].Wait()
		for _, o := range outcomes[i] {
			if o != record.Interrupted {
				t.Errorf("context %d: outcome %q, want interrupted", i, o)
			}
		}
		for k := range 3 {
			if err := ctx[k].Err(); err == nil && outcomes[k][0] != "" {
				t.Errorf("context %d is alive, and its request %s", k, outcomes[k][0])
			}
		}
	}
	w.watches.close()
	if w.watches.current != nil || len(w.idle) != 0 {
		t.Errorf("watch %v kept, %d idle connections", w.watches.current, len(w.idle))
	}
}

// TestBufferIsLent holds that only unread bytes keep memory.
func TestBufferIsLent(t *testing.T) {
	var b buffer
	if len(b.unread()) != 0 || len(b.space()) != readBuffer {
		t.Fatalf("an empty buffer has %d bytes and space for %d", len(b.unread()), len(b.mem))
	}
	b.n += copy(b.space(), "abcdef")
	b.r = 2
	b.settle()
	if got := string(b.unread()); got != "cdef" {
		t.Errorf("unread %q, want cdef", got)
	}
	b.n += len(b.space())
	if got := string(b.unread()[:4]); got != "cdef" || len(b.space()) != 2 {
		t.Errorf("a full buffer begins with %q and has space for %d", got, len(b.space()))
	}
	if b.r != 0 || len(b.unread()) != readBuffer-2 {
		t.Errorf("%d bytes unread from %d", len(b.unread()), b.r)
	}
	b.r = b.n
	if b.settle(); b.mem != nil {
		t.Error("a buffer that was read keeps its memory")
	}
}

package llm

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assay-llm/assay/record"
)

// TestRetryRule holds the one case in which a request is sent twice.
func TestRetryRule(t *testing.T) {
	good := plain("200 OK", "text/event-stream", eventA+eventStop+eventDone)
	for _, tt := range []struct {
		name     string
		second   string // what a kept connection gets for its second request, before it is closed
		third    string // what the next connection gets
		want     record.Outcome
		retried  bool
		requests int32
	}{
		{"closed while idle", "", good, record.OK, true, 3},
		{"closed twice", "", "", record.ResetBefore, true, 3},
		{"after a byte", "H", good, record.ResetBefore, false, 2},
		{"after a head", streamHead, good, record.ResetBefore, false, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var requests atomic.Int32
			s := serve(t, func(n int, p *peer) {
				for i := 0; ; i++ {
					if h, _ := p.request(); h == nil {
						return
					}
					requests.Add(1)
					switch {
					case n == 0 && i == 0:
						io.WriteString(p, good)
					case n == 0:
						io.WriteString(p, tt.second)
						return
					default:
						io.WriteString(p, tt.third)
						return
					}
				}
			})
			c := client(t, Target{URL: s.url()})
			if rec, _ := ask(t, t.Context(), c, chat("x")); rec.Outcome != record.OK {
				t.Fatalf("first request: %s (%s)", rec.Outcome, rec.Detail)
			}
			rec, _ := ask(t, t.Context(), c, chat("x"))
			if rec.Outcome != tt.want || rec.Flags&record.FlagRetried != 0 != tt.retried {
				t.Errorf("outcome %s (%s), flags %v; want %s, retried %v", rec.Outcome, rec.Detail, rec.Flags.Names(), tt.want, tt.retried)
			}
			if rec.Reused == tt.retried || rec.ConnStart.Set() != tt.retried {
				t.Errorf("reused %v, dialled %v after a retry %v", rec.Reused, rec.ConnStart.Set(), tt.retried)
			}
			if n := requests.Load(); n != tt.requests {
				t.Errorf("the server got %d requests, want %d", n, tt.requests)
			}
		})
	}
}

// TestStaleConnectionIsNotUsed holds that a connection which the server closed
// while it lay idle for long is not written to at all, where the system can tell.
func TestStaleConnectionIsNotUsed(t *testing.T) {
	s := serve(t, bare(plain("200 OK", "text/event-stream", eventA+eventStop+eventDone)))
	c := client(t, Target{URL: s.url()})
	w := c.wire.(*http1)
	if n, err := c.Open(t.Context(), 1); n != 1 || err != nil {
		t.Fatalf("Open = %d, %v", n, err)
	}
	if stale(w.idle[0].sock.Conn) {
		t.Fatal("a fresh connection is stale")
	}
	s.mu.Lock()
	for len(s.conns) == 0 {
		s.mu.Unlock()
		runtime.Gosched()
		s.mu.Lock()
	}
	s.conns[0].Close()
	s.mu.Unlock()
	one := make([]byte, 1)
	w.idle[0].sock.Conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := w.idle[0].sock.Conn.Read(one); err != io.EOF {
		t.Fatalf("the server's end did not close: %v", err)
	}
	w.idle[0].since = time.Now().Add(-2 * time.Second)
	rec, _ := ask(t, t.Context(), c, chat("x"))
	if rec.Outcome != record.OK {
		t.Fatalf("outcome %s (%s)", rec.Outcome, rec.Detail)
	}
	if runtime.GOOS == "linux" && rec.Flags&record.FlagRetried != 0 {
		t.Error("a dead connection was used")
	}
}

// TestConnectionIsKeptOnlyWhole holds which connections serve another request.
func TestConnectionIsKeptOnlyWhole(t *testing.T) {
	events := eventA + eventStop + eventDone
	for _, tt := range []struct {
		name, send string
		keep       bool
	}{
		{"length", plain("200 OK", "text/event-stream", events), true},
		{"chunks", streamHead + chunked1(events) + lastChunk, true},
		{"refusal", plain("503 Busy", "text/plain", "busy"), true},
		{"told to close", plain("200 OK", "text/event-stream", events, "Connection: close\r\n"), false},
		{"HTTP/1.0", "HTTP/1.0" + strings.TrimPrefix(plain("200 OK", "text/event-stream", events), "HTTP/1.1"), false},
		{"bytes behind the body", plain("200 OK", "text/event-stream", events) + "HTTP/1.1", false},
		{"body not ended", streamHead + chunked1(events), false},
		{"broken event", streamHead + chunked1("data: {\n\n") + lastChunk, false},
	} {
		var connections atomic.Int32
		s := serve(t, func(_ int, p *peer) {
			connections.Add(1)
			for {
				if h, _ := p.request(); h == nil {
					return
				}
				io.WriteString(p, tt.send)
			}
		})
		c := client(t, Target{URL: s.url()})
		for i := range 2 {
			if rec, _ := ask(t, t.Context(), c, chat("x")); rec.Reused != (tt.keep && i == 1) {
				t.Errorf("%s: request %d: reused %v, want kept %v", tt.name, i, rec.Reused, tt.keep)
			}
		}
		if n := connections.Load(); (n == 1) != tt.keep {
			t.Errorf("%s: %d connections, want kept %v", tt.name, n, tt.keep)
		}
	}
}

// TestCancellationIsNotLost holds the two races with a cancellation: one that
// came before the deadline of a read was set, and one that comes when the answer
// is complete, and must not cut the connection's next request.
func TestCancellationIsNotLost(t *testing.T) {
	s := serve(t, answer(eventA+eventStop+eventDone))
	c := client(t, Target{URL: s.url()})
	w := c.wire.(*http1)
	k, err := w.dial(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k.cut()
	k.ctx, k.stall, k.last = ctx, time.Minute, time.Now()
	if err := k.arm(true); err != context.Canceled {
		t.Errorf("arm behind a cancellation = %v, want %v", err, context.Canceled)
	}
	w.watches.add(ctx, k)
	w.watches.cut(k.watch)
	k.release(true)
	if len(w.idle) != 0 {
		t.Error("a connection that is being cut was kept")
	}
}

func TestOpenConnectsBeforehand(t *testing.T) {
	var accepted atomic.Int32
	s := serve(t, func(n int, p *peer) {
		accepted.Add(1)
		answer(eventA+eventStop+eventDone)(n, p)
	})
	c := client(t, Target{URL: s.url(), MaxIdle: 3})
	for range 2 { // the second call finds them there
		if n, err := c.Open(t.Context(), 50); n != 50 || err != nil {
			t.Fatalf("Open = %d, %v; want 50", n, err)
		}
	}
	for range 3 {
		if rec, _ := ask(t, t.Context(), c, chat("x")); !rec.Reused || rec.ConnStart.Set() {
			t.Errorf("reused %v, dial at %v", rec.Reused, rec.ConnStart)
		}
	}
	if n := accepted.Load(); n > 50 {
		t.Errorf("%d connections, want 50", n)
	}
	if n := len(c.wire.(*http1).idle); n != 50 {
		t.Errorf("%d idle connections, want 50", n)
	}
	c.Close()
	if n := len(c.wire.(*http1).idle); n != 0 {
		t.Errorf("%d idle connections after Close", n)
	}
	s.stop()
	if n, err := c.Open(t.Context(), 2); n != 0 || err == nil {
		t.Errorf("Open = %d, %v with the server gone", n, err)
	}
}

func TestIdleConnectionsAreBounded(t *testing.T) {
	s := serve(t, answer(eventA+eventStop+eventDone))
	c := client(t, Target{URL: s.url(), MaxIdle: 2, IdleTimeout: time.Minute})
	w := c.wire.(*http1)
	for range 5 {
		k, err := w.dial(t.Context(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		w.put(k, time.Now())
	}
	if len(w.idle) != 2 {
		t.Errorf("%d idle connections, want 2", len(w.idle))
	}
	for _, k := range w.idle {
		k.since = time.Now().Add(-2 * time.Minute)
	}
	if k := w.take(time.Now()); k != nil || len(w.idle) != 0 {
		t.Errorf("take gave a connection that is too old, or kept one: %v, %d", k, len(w.idle))
	}
	k, err := w.dial(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if w.put(k, time.Now()); len(w.idle) != 0 {
		t.Error("a connection was kept after Close")
	}
}

// TestKernelStamps holds that on Linux sockets each event knows how long it lay
// in the kernel. The kernel begins to stamp some time after the first socket of
// the system asks for it, so the first events may have none.
func TestKernelStamps(t *testing.T) {
	s := serve(t, answer(eventA+eventStop+eventDone))
	c := client(t, Target{URL: s.url()})
	if !newSock(mustDial(t, s)).raw.attached() {
		t.Skip("no kernel stamps on this system")
	}
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		rec, _ := ask(t, t.Context(), c, chat("x"))
		if lag := rec.First().Lag; lag >= 0 {
			if lag > 10*time.Second {
				t.Errorf("lag %v", lag)
			}
			return
		}
	}
	t.Error("no event had a kernel stamp for 5 s")
}

func mustDial(t *testing.T, s *rawServer) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestLagUnderTLS holds that the stamps of TLS are the socket's.
func TestLagUnderTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(sse))
	t.Cleanup(s.Close)
	c := client(t, Target{URL: s.URL, SkipVerify: true})
	attached := false
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		rec, _ := ask(t, t.Context(), c, chat("x"))
		if rec.First().Lag >= 0 {
			return
		}
		for _, k := range c.wire.(*http1).idle {
			attached = k.sock.raw.attached()
		}
		if !attached {
			t.Skip("no kernel stamps on this system")
		}
	}
	t.Error("no event had a kernel stamp for 5 s")
}

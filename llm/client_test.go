package llm

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-llm/assay/record"
)

// bare is a server that takes one request a connection, sends the bytes, and
// closes.
func bare(send string) func(int, *peer) {
	return func(_ int, p *peer) {
		p.request()
		io.WriteString(p, send)
	}
}

func chunked1(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

// TestOutcomes holds the class of everything that can happen to one request on a
// fresh connection.
func TestOutcomes(t *testing.T) {
	good := streamHead + chunked1(eventA+eventStop+eventDone) + lastChunk
	for _, tt := range []struct {
		name   string
		handle func(int, *peer)
		target Target
		req    *Request
		want   record.Outcome
		status int
		code   string
		detail string
	}{
		{name: "ok", handle: bare(good), want: record.OK, status: 200},
		{name: "interim answers", handle: bare("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + good), want: record.OK, status: 200},
		{name: "until close", handle: bare("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + eventA + eventStop + eventDone), want: record.OK, status: 200},
		{name: "until close, truncated", handle: bare("HTTP/1.0 200 OK\r\n\r\n" + eventA), want: record.Truncated, status: 200},
		{name: "with a length", handle: bare(plain("200 OK", "text/event-stream", eventA+eventStop+eventDone)), want: record.OK, status: 200},
		{name: "shorter than its length", handle: bare("HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" + eventA), want: record.ResetMid, status: 200, detail: "ended inside the answer"},
		{name: "nothing", handle: bare(""), want: record.ResetBefore},
		{name: "half a head", handle: bare("HTTP/1.1 200 OK\r\nCont"), want: record.ResetBefore},
		{name: "end before the first token", handle: bare(streamHead + chunked1(": ping\n\n")), want: record.ResetBefore, status: 200},
		{name: "end inside", handle: bare(streamHead + chunked1(eventA)), want: record.ResetMid, status: 200},
		{name: "end after finish", handle: bare(streamHead + chunked1(eventA+eventStop)), want: record.ResetMid, status: 200},
		{name: "end after done", handle: bare(streamHead + chunked1(eventA+eventStop+eventDone)), want: record.OK, status: 200},
		{name: "reset before", handle: func(_ int, p *peer) { p.request(); p.reset() }, want: record.ResetBefore},
		{name: "reset inside", handle: func(_ int, p *peer) {
			p.request()
			io.WriteString(p, streamHead+chunked1(eventA))
			p.in.ReadByte() // until the test has read the event and closes, or never
		}, target: Target{Timeout: 50 * time.Millisecond}, want: record.TotalTimeout, status: 200, detail: "deadline"},
		{name: "not HTTP", handle: bare("220 mail.example.org ESMTP\r\n\r\n"), want: record.Malformed, detail: "HTTP server"},
		{name: "two lengths", handle: bare("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"), want: record.Malformed, detail: "Content-Length"},
		{name: "broken chunk", handle: bare(streamHead + "zz\r\n"), want: record.Malformed, status: 200, detail: "chunked"},
		{name: "broken chunk after a token", handle: bare(streamHead + chunked1(eventA) + "-1\r\n"), want: record.Malformed, status: 200},
		{name: "switching", handle: bare("HTTP/1.1 101 Switching Protocols\r\n\r\n"), want: record.Malformed, detail: "101"},
		{name: "endless interim", handle: bare(strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 20)), want: record.Malformed, detail: "interim"},
		{name: "coding", handle: bare(plain("200 OK", "text/event-stream", "xxx", "Content-Encoding: br\r\n")), want: record.Malformed, status: 200, detail: `"br"`},
		{name: "event too large", handle: bare(streamHead + chunked1(eventA+"data: "+strings.Repeat("x", 2000))), target: Target{MaxEvent: 1000}, want: record.EventTooLarge, status: 200},
		{name: "answer too large", handle: bare(streamHead + chunked1(strings.Repeat(eventA, 100))), target: Target{MaxBody: 1000}, want: record.BodyTooLarge, status: 200},
		{name: "204", handle: bare("HTTP/1.1 204 No Content\r\n\r\n"), want: record.Truncated, status: 204},
		{name: "redirect", handle: bare("HTTP/1.1 301 Moved\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"), want: record.HTTPOther, status: 301, detail: "final URL"},
		{name: "400", handle: bare(plain("400 Bad", "application/json", `{"error":{"message":"too long","type":"invalid_request_error","code":null}}`)), want: record.HTTP4xx, status: 400, code: "invalid_request_error", detail: "HTTP 400: too long"},
		{name: "429", handle: bare(plain("429 Slow", "application/json", `{"error":{"message":"slow down","code":"rate_limit"}}`, "Retry-After: 2\r\n", "Retry-After: -1\r\n")), want: record.HTTP4xx, status: 429, code: "rate_limit", detail: "(retry-after: 2, -1)"},
		{name: "503", handle: bare("HTTP/1.1 503 Busy\r\n\r\nbusy\x1b[31m\nnow"), want: record.HTTP5xx, status: 503, detail: `busy\x1b[31m\nnow`},
		{name: "500 cut", handle: bare("HTTP/1.1 500 X\r\nContent-Length: 100\r\n\r\nabc"), want: record.HTTP5xx, status: 500, detail: "abc"},
		{name: "JSON instead of a stream", handle: bare(plain("200 OK", "application/json", `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`)), want: record.Malformed, status: 200, detail: "set stream: false"},
		{name: "error instead of a stream", handle: bare(plain("200 OK", "application/json", `{"error":{"message":"x","code":7}}`)), want: record.ErrorEvent, status: 200, code: "7"},
		{name: "whole answer", handle: bare(plain("200 OK", "application/json", `{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`)), req: new(Request), want: record.OK, status: 200},
		{name: "early refusal of a large body", handle: func(_ int, p *peer) {
			io.WriteString(p, plain("413 Too Large", "text/plain", "no", "Connection: close\r\n"))
			p.Conn.(*net.TCPConn).CloseWrite()
			io.Copy(io.Discard, io.LimitReader(p.in, 1<<20))
		}, req: chat(strings.Repeat("x", 8<<20)), want: record.HTTP4xx, status: 413},
		{name: "stall", handle: func(_ int, p *peer) { p.request(); p.in.ReadByte() }, target: Target{Stall: 30 * time.Millisecond}, want: record.StallTimeout, detail: "stall"},
		{name: "not encodable", handle: bare(good), req: &Request{Extra: map[string]any{"x": func() {}}}, want: record.ClientFault, detail: "field x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, tt.handle)
			tt.target.URL = s.url()
			req := tt.req
			if req == nil {
				req = chat("what is the weather like today?")
			}
			rec, _ := ask(t, t.Context(), client(t, tt.target), req)
			if rec.Outcome != tt.want || rec.Status != tt.status || rec.Code != tt.code || !strings.Contains(rec.Detail, tt.detail) {
				t.Errorf("outcome %s, status %d, code %q, detail %q; want %s, %d, %q, …%s…", rec.Outcome, rec.Status, rec.Code, rec.Detail, tt.want, tt.status, tt.code, tt.detail)
			}
			if rec.Flags&record.FlagRetried != 0 {
				t.Error("sent again on a fresh connection")
			}
		})
	}
}

// TestDialOutcomes holds the class of everything that happens before a byte.
func TestDialOutcomes(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	opError := func(e syscall.Errno) error { return &net.OpError{Op: "dial", Net: "tcp", Err: e} }
	for _, tt := range []struct {
		name string
		err  error // of Dial; nil: dial the closed port
		url  string
		want record.Outcome
	}{
		{name: "refused", want: record.Dial},
		{name: "no such host", err: &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}}, want: record.DNS},
		{name: "descriptors", err: opError(syscall.EMFILE), want: record.ClientFault},
		{name: "descriptors of the system", err: opError(syscall.ENFILE), want: record.ClientFault},
		{name: "ports", err: opError(syscall.EADDRNOTAVAIL), want: record.ClientFault},
		{name: "memory", err: opError(syscall.ENOMEM), want: record.ClientFault},
		{name: "unreachable", err: opError(syscall.EHOSTUNREACH), want: record.Dial},
		{name: "handshake", url: "https://", want: record.Dial},
	} {
		for _, protocol := range []string{ProtocolHTTP1, ProtocolHTTP2} {
			target := Target{URL: "http://" + closed.Addr().String(), Protocol: protocol}
			if tt.url != "" {
				target.URL = tt.url + closed.Addr().String()
			}
			if tt.err != nil {
				target.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, tt.err }
			}
			rec, _ := ask(t, t.Context(), client(t, target), chat("x"))
			if rec.Outcome != tt.want {
				t.Errorf("%s, %s: outcome %s (%s), want %s", tt.name, protocol, rec.Outcome, rec.Detail, tt.want)
			}
			if rec.Send.Set() || rec.Header.Set() {
				t.Errorf("%s, %s: sent without a connection", tt.name, protocol)
			}
		}
	}
}

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
		w.put(k)
	}
	if len(w.idle) != 2 {
		t.Errorf("%d idle connections, want 2", len(w.idle))
	}
	for _, k := range w.idle {
		k.since = time.Now().Add(-2 * time.Minute)
	}
	if k := w.take(); k != nil || len(w.idle) != 0 {
		t.Errorf("take gave a connection that is too old, or kept one: %v, %d", k, len(w.idle))
	}
}

// TestNothingLeaks holds that after many requests that end in every way there
// are as many goroutines as before, and no buffer is used twice.
func TestNothingLeaks(t *testing.T) {
	before := runtime.NumGoroutine()
	s := serve(t, func(_ int, p *peer) {
		for {
			h, body := p.request()
			if h == nil {
				return
			}
			text := strings.Repeat(strings.TrimPrefix(h.Get("X-Request-Id"), "v/w/0/"), 5)
			switch {
			case bytes.Contains(body, []byte("reset")):
				io.WriteString(p, streamHead+chunked1(content(text)))
				p.reset()
				return
			case bytes.Contains(body, []byte("hang")):
				io.WriteString(p, streamHead+chunked1(content(text)))
				p.in.ReadByte()
				return
			default:
				io.WriteString(p, streamHead)
				p.chunks(content(text), eventStop, eventDone)
				io.WriteString(p, lastChunk)
			}
		}
	})
	c, err := NewClient(Target{URL: s.url(), Stall: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]record.Outcome{"good": record.OK, "reset": record.ResetMid, "hang": record.StallTimeout, "cancel": record.ClientCancelled}
	done := make(chan struct{})
	for worker := range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			for i, kind := range slices.Repeat([]string{"good", "reset", "good", "hang", "cancel"}, 6) {
				ctx, cancel := context.WithCancelCause(t.Context())
				prompt := kind
				if kind == "cancel" {
					prompt = "hang"
					time.AfterFunc(10*time.Millisecond, func() { cancel(ErrPlanned) })
				}
				rec := record.Record{Variant: "v", Workload: "w", Shot: int64(worker*1000 + i)}
				a := c.Do(ctx, time.Now(), chat(prompt), &rec)
				cancel(nil)
				if rec.Outcome != kinds[kind] && !(kind == "reset" && rec.Outcome == record.ResetBefore) {
					t.Errorf("%s: %s (%s)", kind, rec.Outcome, rec.Detail)
				}
				if want := strings.Repeat(fmt.Sprint(rec.Shot), 5); kind == "good" && a.Text != want {
					t.Errorf("text %q, want %q", a.Text, want)
				}
			}
		}()
	}
	for range 8 {
		<-done
	}
	c.Close()
	s.stop()
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before+1 && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before+1 {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

// pipeTarget is a target in memory, whose server handles each connection.
func pipeTarget(handle func(n int, p *peer)) Target {
	n := 0
	return Target{URL: "http://memory", Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func(n int) {
			defer theirs.Close()
			handle(n, &peer{Conn: theirs, in: newReader(theirs)})
		}(n)
		n++
		return ours, nil
	}}
}

// TestTimes holds the instants of a slow answer, to the nanosecond, in a bubble
// and on connections that are no sockets.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := pipeTarget(func(_ int, p *peer) {
			for {
				if h, _ := p.request(); h == nil {
					return
				}
				time.Sleep(110 * time.Millisecond)
				io.WriteString(p, streamHead)
				time.Sleep(40 * time.Millisecond)
				p.chunks(`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n")
				time.Sleep(150 * time.Millisecond)
				p.chunks(string(AppendEvent(nil, time.Now().Add(-time.Millisecond).UnixNano(), []byte(`{"choices":[{"index":0,"delta":{"content":"a"}}]}`))))
				time.Sleep(100 * time.Millisecond)
				p.chunks(eventA + eventA)
				time.Sleep(time.Millisecond)
				p.chunks(eventStop)
				p.chunks(eventUsage)
				p.chunks(eventDone)
				time.Sleep(time.Minute) // W11: the socket stays open
				io.WriteString(p, lastChunk)
			}
		})
		dial := target.Dial
		target.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			time.Sleep(10 * time.Millisecond)
			return dial(ctx, network, addr)
		}
		c := client(t, target)
		epoch := time.Now().Add(-50 * time.Millisecond)
		rec := record.Record{}
		c.Do(t.Context(), epoch, chat("x"), &rec)
		checkRecord(t, &rec)
		ms := func(n float64) record.Instant { return record.At(time.Duration(n * float64(time.Millisecond))) }
		for _, tt := range []struct {
			name      string
			got, want record.Instant
		}{
			{"dial starts", rec.ConnStart, ms(50)}, {"dial ends", rec.ConnEnd, ms(60)}, {"send", rec.Send, ms(60)}, {"sent", rec.Sent, ms(60)},
			{"header", rec.Header, ms(170)}, {"role", rec.Events[0].At, ms(210)}, {"first", rec.First().At, ms(360)}, {"first emitted", rec.First().Emit, ms(359)},
			{"last", rec.Last().At, ms(460)}, {"end", rec.EOF, ms(461)},
		} {
			if tt.got != tt.want {
				t.Errorf("%s at %v, want %v", tt.name, time.Duration(tt.got-1), time.Duration(tt.want-1))
			}
		}
		if rec.Outcome != record.OK || rec.Flags&record.FlagCoalesced == 0 || rec.First().Lag >= 0 {
			t.Errorf("outcome %s, flags %v, lag %v", rec.Outcome, rec.Flags.Names(), rec.First().Lag)
		}
		if since := time.Since(epoch); since > 500*time.Millisecond {
			t.Errorf("Do came back after %v", since)
		}
		c.Close()
		time.Sleep(2 * time.Minute) // the server's minute
	})
}

// TestLimitsOfTime holds each limit and cancellation, exactly.
func TestLimitsOfTime(t *testing.T) {
	for _, tt := range []struct {
		name   string
		target Target
		send   func(p *peer)
		ctx    func(context.Context) (context.Context, context.CancelFunc)
		want   record.Outcome
		after  time.Duration
	}{
		{name: "stall before the head", target: Target{Stall: 3 * time.Second}, want: record.StallTimeout, after: 3 * time.Second},
		{name: "comments are signs of life", target: Target{Stall: 3 * time.Second}, send: func(p *peer) {
			io.WriteString(p, streamHead)
			for range 5 {
				time.Sleep(2900 * time.Millisecond)
				p.chunks(": ping\n\n")
			}
		}, want: record.StallTimeout, after: 17500 * time.Millisecond},
		{name: "many bytes, then none", target: Target{Stall: 3 * time.Second}, send: func(p *peer) {
			io.WriteString(p, streamHead)
			for range 2000 {
				time.Sleep(time.Millisecond)
				p.chunks(eventA)
			}
		}, want: record.StallTimeout, after: 5 * time.Second},
		{name: "whole request", target: Target{Timeout: 7 * time.Second, Stall: 2 * time.Second}, send: func(p *peer) {
			io.WriteString(p, streamHead)
			for range 100 {
				time.Sleep(time.Second)
				p.chunks(eventA)
			}
		}, want: record.TotalTimeout, after: 7 * time.Second},
		{name: "no limit", target: Target{Timeout: -1, Stall: -1}, send: func(p *peer) {
			time.Sleep(24 * time.Hour)
			io.WriteString(p, streamHead)
			io.WriteString(p, chunked1(eventA+eventStop+eventDone)+lastChunk)
		}, want: record.OK, after: 24 * time.Hour},
		{name: "as planned", ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(ErrPlanned) })
			return ctx, func() { cancel(nil) }
		}, want: record.ClientCancelled, after: time.Second},
		{name: "stopped", ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, want: record.Interrupted, after: time.Second},
		{name: "end of the drain", ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, want: record.Interrupted, after: time.Second},
		{name: "stopped before", ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		}, want: record.Interrupted},
	} {
		for _, protocol := range []string{ProtocolHTTP1, "net/http"} {
			t.Run(tt.name+", "+protocol, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					memory := pipeTarget(func(_ int, p *peer) {
						p.request()
						if tt.send != nil {
							tt.send(p)
						}
						p.in.ReadByte()
					})
					target := tt.target
					target.URL, target.Dial = memory.URL, memory.Dial
					c := client(t, target)
					if protocol != ProtocolHTTP1 {
						w, err := newNetHTTP(c.t)
						if err != nil {
							t.Fatal(err)
						}
						c.wire = w
					}
					ctx := t.Context()
					if tt.ctx != nil {
						var cancel context.CancelFunc
						ctx, cancel = tt.ctx(ctx)
						defer cancel()
					}
					start := time.Now()
					rec, _ := ask(t, ctx, c, chat("x"))
					if got := time.Since(start); rec.Outcome != tt.want || got != tt.after {
						t.Errorf("%s (%s) after %v, want %s after %v", rec.Outcome, rec.Detail, got, tt.want, tt.after)
					}
					c.Close()
					time.Sleep(48 * time.Hour) // until the server has noticed
				})
			})
		}
	}
}

func TestDialLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		for _, tt := range []struct {
			target Target
			want   record.Outcome
			after  time.Duration
		}{
			{Target{DialTimeout: 3 * time.Second}, record.Dial, 3 * time.Second},
			{Target{DialTimeout: 3 * time.Second, Timeout: time.Second}, record.TotalTimeout, time.Second},
			{Target{}, record.Dial, 10 * time.Second},
		} {
			tt.target.URL, tt.target.Dial = "http://memory", hang
			start := time.Now()
			rec, _ := ask(t, t.Context(), client(t, tt.target), chat("x"))
			if got := time.Since(start); rec.Outcome != tt.want || got != tt.after {
				t.Errorf("%s (%s) after %v, want %s after %v", rec.Outcome, rec.Detail, got, tt.want, tt.after)
			}
		}
		// A handshake that never ends.
		ours, theirs := net.Pipe()
		defer theirs.Close()
		go io.Copy(io.Discard, theirs)
		start := time.Now()
		rec, _ := ask(t, t.Context(), client(t, Target{URL: "https://memory", Dial: func(context.Context, string, string) (net.Conn, error) { return ours, nil }}), chat("x"))
		if got := time.Since(start); rec.Outcome != record.TLS || got != 10*time.Second {
			t.Errorf("handshake: %s (%s) after %v", rec.Outcome, rec.Detail, got)
		}
	})
}

// TestGzipStream holds W25: one gzip stream, flushed after each event, cut
// anywhere; each event keeps the arrival of the piece that completed it.
func TestGzipStream(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	var ends []int
	for _, e := range []string{eventA, eventA, eventStop, eventDone} {
		io.WriteString(z, e)
		z.Flush()
		ends = append(ends, b.Len())
	}
	z.Close()
	all := b.Bytes()
	for cut := 1; cut < len(all); cut++ {
		s := &pieces{rest: [][]byte{all[:cut], all[cut:]}, at: time.Now()}
		rec := record.Record{}
		req := chat("")
		q := &call{epoch: s.at, rec: &rec}
		target := Target{}.withDefaults()
		y := tallies.Get().(*tally)
		y.begin(&target, q, req)
		y.finish(t.Context(), y.read(&gunzip{stream: s}, head{status: 200, sse: true}))
		y.end()
		if rec.Outcome != record.OK || len(rec.Events) != 4 {
			t.Fatalf("cut at %d: %s (%s), %d events", cut, rec.Outcome, rec.Detail, len(rec.Events))
		}
		for i, e := range rec.Events {
			want := uint32(1)
			if ends[i] > cut {
				want = 2
			}
			if e.Read != want && !(want == 1 && ends[i]-cut > -6) { // the flush's own marker may lie behind the cut
				t.Errorf("cut at %d: event %d, ending at %d, is of read %d", cut, i, ends[i], e.Read)
			}
		}
	}
	for _, tt := range []struct {
		name, body string
		want       record.Outcome
	}{
		{"bomb", zip(strings.Repeat(": ping\n\n", 4<<20)), record.BodyTooLarge},
		{"broken", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff", record.Malformed},
		{"no gzip at all", eventA, record.Malformed},
		{"cut", zip(eventA + eventStop + eventDone)[:30], record.Truncated},
		{"good", zip(eventA + eventStop + eventDone), record.OK},
	} {
		s := serve(t, bare(plain("200 OK", "text/event-stream", tt.body, "Content-Encoding: gzip\r\n")))
		rec, _ := ask(t, t.Context(), client(t, Target{URL: s.url()}), chat("x"))
		if rec.Outcome != tt.want {
			t.Errorf("%s: %s (%s), want %s", tt.name, rec.Outcome, rec.Detail, tt.want)
		}
	}
}

func zip(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return b.String()
}

// TestSecretsStayOut holds that neither key nor prompt reaches a record.
func TestSecretsStayOut(t *testing.T) {
	const key, prompt = "sk-very-secret-0123456789", "My diagnosis is a secret that nobody may read in any report."
	for _, body := range []string{
		`{"error":{"message":"bad key: Bearer ` + key + `","code":"` + key + `"}}`,
		`{"error":{"message":"` + strings.Repeat("x", 495) + key + `"}}`,
		`{"detail":[{"input":{"content":"` + prompt + `"}}]}`,
		`{"error":{"message":"got 'diagnosis is a secret that nobody may read in any'"}}`,
		`{"error":{"message":"cookie hush-hush-hush"}}`,
	} {
		for _, send := range []string{plain("401 No", "application/json", body), streamHead + chunked1("data: "+body+"\n\n"+"event: error\ndata: "+body+"\n\n") + lastChunk} {
			s := serve(t, bare(send))
			c := client(t, Target{URL: s.url(), Key: key, Headers: map[string]string{"X-Session-Cookie": "hush-hush-hush"}})
			rec, _ := ask(t, t.Context(), c, chat(prompt))
			all := fmt.Sprintf("%+v", rec)
			for _, secret := range []string{key[:12], "diagnosis", "hush-hush"} {
				if strings.Contains(all, secret) {
					t.Errorf("%q in the record: %s", secret, all)
				}
			}
			if strings.Contains(c.String(), key) {
				t.Error("the client's name holds the key")
			}
		}
	}
}

// TestRequestOnTheWire holds what a server gets, in one piece.
func TestRequestOnTheWire(t *testing.T) {
	type got struct {
		head http.Header
		body []byte
		path string
	}
	requests := make(chan got, 1)
	s := serve(t, func(_ int, p *peer) {
		req, err := http.ReadRequest(p.in)
		if err != nil {
			return
		}
		body, _ := io.ReadAll(req.Body)
		requests <- got{req.Header, body, req.RequestURI}
		io.WriteString(p, plain("200 OK", "text/event-stream", eventA+eventStop+eventDone))
	})
	temperature, seed := 0.5, int64(7)
	c := client(t, Target{URL: s.url() + "/?api-version=1", Model: "m", Key: "k", Headers: map[string]string{"X-Tenant": "t"}})
	req := chat("hi \"\n\u2028\xff")
	req.MaxTokens, req.Temperature, req.Seed, req.Stop, req.IgnoreEOS = 5, &temperature, &seed, []string{"a", "b"}, true
	req.Extra = map[string]any{"min_tokens": 5, "temperature": 1}
	rec := record.Record{Variant: "candidate", Workload: "chat rooms", Block: 2, Shot: 17, Phase: record.WarmUp}
	c.Do(t.Context(), time.Now(), req, &rec)
	g := <-requests
	if g.path != "/v1/chat/completions?api-version=1" {
		t.Errorf("path %s", g.path)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer k", "X-Tenant": "t", "X-Request-Id": "warm-up/candidate/chat_rooms/2/17", "Accept-Encoding": "identity",
		"Content-Type": "application/json", "User-Agent": "assay", "Content-Length": fmt.Sprint(len(g.body)),
	} {
		if g.head.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, g.head.Get(name), want)
		}
	}
	const want = `{"model":"m","messages":[{"role":"user","content":"hi \"\n\u2028\ufffd"}],"max_tokens":5,"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true,"seed":7,"stop":["a","b"],"min_tokens":5,"temperature":1}`
	if string(g.body) != want || !json.Valid(g.body) {
		t.Errorf("body %s, want %s", g.body, want)
	}
	if id := RequestID(&rec); id != "warm-up/candidate/chat_rooms/2/17" {
		t.Errorf("RequestID = %s", id)
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

// sse is a handler of net/http that streams an answer and tells the protocol.
func sse(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	if r.URL.Path == "/v1/models" {
		w.Header().Set("Content-Type", "application/json")
		w.Write(AppendModels(nil, 1, "m"))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range []string{content(r.Proto), eventStop, eventUsage, eventDone} {
		io.WriteString(w, e)
		w.(http.Flusher).Flush()
	}
}

func TestTLSAndHTTP2(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(sse))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	ca := pemOf(s.Certificate())
	plaintext := httptest.NewUnstartedServer(http.HandlerFunc(sse))
	plaintext.Config.ErrorLog = s.Config.ErrorLog
	plaintext.Config.Protocols = new(http.Protocols)
	plaintext.Config.Protocols.SetUnencryptedHTTP2(true)
	plaintext.Config.Protocols.SetHTTP1(true)
	plaintext.Start()
	t.Cleanup(plaintext.Close)
	for _, tt := range []struct {
		name   string
		target Target
		want   record.Outcome
		proto  string
	}{
		{"TLS", Target{URL: s.URL, CA: ca}, record.OK, "HTTP/1.1"},
		{"TLS unverified", Target{URL: s.URL, SkipVerify: true}, record.OK, "HTTP/1.1"},
		{"TLS of a stranger", Target{URL: s.URL}, record.TLS, ""},
		{"TLS to a plain port", Target{URL: "https" + strings.TrimPrefix(plaintext.URL, "http")}, record.TLS, ""},
		{"plain to a TLS port", Target{URL: "http" + strings.TrimPrefix(s.URL, "https")}, record.HTTP4xx, ""},
		{"h2", Target{URL: s.URL, CA: ca, Protocol: ProtocolHTTP2}, record.OK, "HTTP/2.0"},
		{"h2 of a stranger", Target{URL: s.URL, Protocol: ProtocolHTTP2}, record.TLS, ""},
		{"h2c", Target{URL: plaintext.URL, Protocol: ProtocolHTTP2}, record.OK, "HTTP/2.0"},
	} {
		c := client(t, tt.target)
		for i := range 2 {
			rec, a := ask(t, t.Context(), c, chat("x"))
			if rec.Outcome != tt.want || a.Text != tt.proto {
				t.Errorf("%s: %s (%s) by %q, want %s by %q", tt.name, rec.Outcome, rec.Detail, a.Text, tt.want, tt.proto)
			}
			if tt.want != record.OK {
				continue
			}
			if n, _ := rec.Output.N(); n != 2 || rec.Reused != (i > 0) || rec.ConnEnd.Set() != (i == 0) || !rec.Send.Set() || !rec.Sent.Set() || !rec.Header.Set() {
				t.Errorf("%s: request %d: %+v", tt.name, i, rec)
			}
		}
		if n, err := c.Open(t.Context(), 2); (err == nil) != (tt.want == record.OK || tt.want == record.HTTP4xx) || err == nil && n == 0 {
			t.Errorf("%s: Open = %d, %v", tt.name, n, err)
		}
		if err := c.Probe(t.Context()); (err == nil) != (tt.want == record.OK) {
			t.Errorf("%s: Probe: %v", tt.name, err)
		}
	}
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

// TestGoaway holds W30 on frames of our own: what a server says it has not
// worked on is sent once more on a new connection, never a third time.
func TestGoaway(t *testing.T) {
	frame := func(kind, flags byte, id uint32, payload string) string {
		return string([]byte{0, 0, byte(len(payload)), kind, flags, byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}) + payload
	}
	for _, tt := range []struct {
		name  string
		good  int // the connection that answers
		want  record.Outcome
		times int32
	}{{"sent again", 1, record.OK, 2}, {"not a third time", 99, record.Goaway, 2}} {
		t.Run(tt.name, func(t *testing.T) {
			var requests atomic.Int32
			s := serve(t, func(n int, p *peer) {
				io.CopyN(io.Discard, p.in, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
				io.WriteString(p, frame(4, 0, 0, ""))
				for {
					h := make([]byte, 9)
					if _, err := io.ReadFull(p.in, h); err != nil {
						return
					}
					io.CopyN(io.Discard, p.in, int64(h[0])<<16|int64(h[1])<<8|int64(h[2]))
					if h[3] == 0 && h[4]&1 != 0 { // DATA with END_STREAM: the request is whole
						requests.Add(1)
						if n < tt.good {
							io.WriteString(p, frame(7, 0, 0, "\x00\x00\x00\x00\x00\x00\x00\x00")) // GOAWAY, nothing processed
							continue
						}
						io.WriteString(p, frame(1, 4, 1, "\x88")) // :status 200
						for _, e := range []string{eventA, eventStop, eventDone} {
							io.WriteString(p, frame(0, 0, 1, e))
						}
						io.WriteString(p, frame(0, 1, 1, ""))
					}
				}
			})
			rec, _ := ask(t, t.Context(), client(t, Target{URL: s.url(), Protocol: ProtocolHTTP2, Timeout: 10 * time.Second}), chat("x"))
			if rec.Outcome != tt.want || rec.Flags&record.FlagRetried == 0 {
				t.Errorf("%s (%s), flags %v; want %s", rec.Outcome, rec.Detail, rec.Flags.Names(), tt.want)
			}
			if n := requests.Load(); n != tt.times {
				t.Errorf("sent %d times, want %d", n, tt.times)
			}
		})
	}
}

func TestProxy(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(sse))
	t.Cleanup(secure.Close)
	open := httptest.NewServer(http.HandlerFunc(sse))
	t.Cleanup(open.Close)
	var connects, forwards atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			forwards.Add(1)
			sse(w, r)
			return
		}
		connects.Add(1)
		up, err := net.Dial("tcp", r.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		down, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			up.Close()
			return
		}
		io.WriteString(down, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { io.Copy(up, down); up.Close() }()
		io.Copy(down, up)
		down.Close()
	}))
	t.Cleanup(proxy.Close)
	for _, tt := range []struct {
		target Target
		want   record.Outcome
	}{
		{Target{URL: secure.URL, CA: pemOf(secure.Certificate()), Proxy: proxy.URL}, record.OK},
		{Target{URL: open.URL, Proxy: proxy.URL}, record.OK},
		{Target{URL: open.URL, Proxy: "http://127.0.0.1:1"}, record.Dial},
	} {
		if rec, _ := ask(t, t.Context(), client(t, tt.target), chat("x")); rec.Outcome != tt.want {
			t.Errorf("%s by %s: %s (%s), want %s", tt.target.URL, tt.target.Proxy, rec.Outcome, rec.Detail, tt.want)
		}
	}
	if connects.Load() != 1 || forwards.Load() != 1 {
		t.Errorf("%d tunnels, %d forwards; want 1 and 1", connects.Load(), forwards.Load())
	}
}

func TestProbe(t *testing.T) {
	for _, tt := range []struct{ send, want string }{
		{plain("200 OK", "application/json", `{"object":"list","data":[]}`), ""},
		{plain("404 No", "text/plain", "nope"), ""},
		{plain("401 No", "application/json", `{"error":{"message":"wrong key sk-secret"}}`), "refuses the key (HTTP 401): wrong key [key]\nhint: give the variant's key"},
		{plain("503 No", "application/json", `{"error":{"message":"loading"}}`), "HTTP 503 to GET models: loading\nhint:"},
		{plain("200 OK", "text/html", "<html>"), "something else than JSON\nhint:"},
		{"SSH-2.0\r\n\r\n", "is this an HTTP server?\nhint: is this the URL"},
		{"", "hint: is the server running"},
	} {
		s := serve(t, bare(tt.send))
		err := client(t, Target{URL: s.url(), Key: "sk-secret"}).Probe(t.Context())
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40q: Probe = %v, want %q", tt.send, err, tt.want)
		}
	}
	refuse := Target{URL: "http://memory", Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.DNSError{Err: "no such host", Name: "memory"}
	}}
	if err := client(t, refuse).Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "check the host's name") {
		t.Errorf("Probe = %v", err)
	}
}

// TestLargestEvent holds W01 through the whole client: 16 MiB pass, a byte more
// does not, and the heap does not hold much more than the event twice.
func TestLargestEvent(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 32 MiB")
	}
	for _, extra := range []int{0, 1} {
		frame := content("")
		text := strings.Repeat("x", DefaultMaxEvent-len(frame)+2+extra)
		s := serve(t, bare("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"+content(text)+eventStop+eventDone))
		rec, a := ask(t, t.Context(), client(t, Target{URL: s.url()}), chat("x"))
		want := []record.Outcome{record.OK, record.EventTooLarge}[extra]
		if rec.Outcome != want {
			t.Errorf("%d bytes more: %s (%s), want %s", extra, rec.Outcome, rec.Detail, want)
		}
		if extra == 0 && (rec.OutputBytes != int64(len(text)) || !a.Clipped || len(a.Text) != 1<<20) {
			t.Errorf("%d bytes of output, kept %d, clipped %v", rec.OutputBytes, len(a.Text), a.Clipped)
		}
	}
}

func TestAnswerIsClippedAtACharacter(t *testing.T) {
	req := &Request{Stream: true}
	body := content("aé") + content("é") + content("z") + eventStop + eventDone
	rec, a := replay(t, &Target{KeepText: 4}, req, head{status: 200, sse: true}, &pieces{rest: [][]byte{[]byte(body)}})
	if a.Text != "aé" || !a.Clipped || rec.OutputBytes != 6 {
		t.Errorf("text %q, clipped %v, %d bytes", a.Text, a.Clipped, rec.OutputBytes)
	}
	whole, _ := replay(t, &Target{}, req, head{status: 200, sse: true}, &pieces{rest: [][]byte{[]byte(body)}})
	if whole.Body != rec.Body || len(rec.Body) != 64 {
		t.Errorf("digest %s clipped, %s whole", rec.Body, whole.Body)
	}
}

func TestTokensFromEvents(t *testing.T) {
	body := content("a") + content("b") + eventStop + eventDone
	for _, tt := range []struct {
		body  string
		want  record.Count
		flags string
	}{
		{body, record.Tokens(2), "usage_missing tokens_from_events"},
		{content("a") + content("b") + eventStop + strings.ReplaceAll(eventUsage, `"completion_tokens":2`, `"completion_tokens":2,"x":1`) + eventDone, record.Tokens(2), ""},
	} {
		rec, _ := replay(t, &Target{TokensFromEvents: true}, &Request{Stream: true}, head{status: 200}, &pieces{rest: splitAfter(tt.body)})
		if rec.Output != tt.want || strings.Join(rec.Flags.Names(), " ") != tt.flags {
			t.Errorf("output %d, flags %v; want %d, %s", rec.Output, rec.Flags.Names(), tt.want, tt.flags)
		}
	}
}

func splitAfter(s string) (all [][]byte) {
	for _, e := range strings.SplitAfter(s, "\n\n") {
		all = append(all, []byte(e))
	}
	return all
}

func TestOutcomeOfCancelledWriteNeverBlamesTheServer(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ErrPlanned)
	for _, err := range []error{context.Canceled, errLost, io.ErrUnexpectedEOF, net.ErrClosed, errors.Join(errLost, syscall.ECONNRESET)} {
		if got := outcomeOf(ctx, err, true); got != record.ClientCancelled {
			t.Errorf("outcomeOf(%v) = %s, want %s", err, got, record.ClientCancelled)
		}
	}
	if got := outcomeOf(ctx, fail(record.HTTP5xx, "x"), false); got != record.HTTP5xx {
		t.Errorf("an answer that came is %s, want %s", got, record.HTTP5xx)
	}
}

package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
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

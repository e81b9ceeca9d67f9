package llm

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

// rawServer answers each connection by a function that has the bare socket.
type rawServer struct {
	net.Listener
	wg sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

// serve starts a server on loopback. Handle is called once a connection, with
// the connection's ordinal from 0.
func serve(t testing.TB, handle func(n int, c *peer)) *rawServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &rawServer{Listener: l}
	s.wg.Go(func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.mu.Unlock()
			s.wg.Go(func() {
				defer c.Close()
				handle(n, &peer{Conn: c, in: bufio.NewReader(c)})
			})
		}
	})
	t.Cleanup(s.stop)
	return s
}

func (s *rawServer) stop() {
	s.Close()
	s.mu.Lock()
	for _, c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

func (s *rawServer) url() string { return "http://" + s.Addr().String() }

// peer is the server's end of a connection.
type peer struct {
	net.Conn
	in *bufio.Reader
}

// request reads one request; nil at the connection's end.
func (p *peer) request() (head http.Header, body []byte) {
	req, err := http.ReadRequest(p.in)
	if err != nil {
		return nil, nil
	}
	body, err = io.ReadAll(req.Body)
	if err != nil {
		return nil, nil
	}
	return req.Header, body
}

// chunks writes each piece as one chunk of a body, in a write of its own.
func (p *peer) chunks(pieces ...string) {
	for _, s := range pieces {
		fmt.Fprintf(p, "%x\r\n%s\r\n", len(s), s)
	}
}

// stop resets the connection.
func (p *peer) reset() {
	p.Conn.(*net.TCPConn).SetLinger(0)
	p.Close()
}

const (
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	lastChunk  = "0\r\n\r\n"
	eventA     = `data: {"choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n"
	eventStop  = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	eventUsage = `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}` + "\n\n"
	eventDone  = "data: [DONE]\n\n"
)

// answer is a server that sends one fixed body to every request.
func answer(body string) func(int, *peer) {
	return func(_ int, p *peer) {
		for {
			if h, _ := p.request(); h == nil {
				return
			}
			io.WriteString(p, streamHead)
			p.chunks(body)
			io.WriteString(p, lastChunk)
		}
	}
}

func plain(status, contentType, body string, fields ...string) string {
	return "HTTP/1.1 " + status + "\r\nContent-Type: " + contentType + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n" +
		strings.Join(fields, "") + "\r\n" + body
}

func chat(text string) *Request {
	return &Request{Messages: []corpus.Message{{Role: "user", Content: text}}, Stream: true}
}

func client(t testing.TB, target Target) *Client {
	t.Helper()
	c, err := NewClient(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// ask sends one request and checks what holds for every record.
func ask(t testing.TB, ctx context.Context, c *Client, req *Request) (record.Record, Answer) {
	t.Helper()
	rec := record.Record{Variant: "v", Workload: "w", Stream: req.Stream}
	a := c.Do(ctx, time.Now(), req, &rec)
	checkRecord(t, &rec)
	return rec, a
}

func checkRecord(t testing.TB, r *record.Record) {
	t.Helper()
	if r.Outcome == "" {
		t.Error("no outcome")
	}
	if !r.EOF.Set() {
		t.Error("no EOF")
	}
	if (r.Outcome == record.OK) != (r.Detail == "") {
		t.Errorf("outcome %s with detail %q", r.Outcome, r.Detail)
	}
	if len(r.Detail) > 512 || len(r.Code) > 512 {
		t.Errorf("unbounded: detail %d, code %d bytes", len(r.Detail), len(r.Code))
	}
	last, read := record.Instant(0), uint32(0)
	for _, at := range []record.Instant{r.ConnStart, r.ConnEnd, r.Send, r.Sent} {
		if at.Set() {
			if at < last {
				t.Errorf("instants out of order: %d after %d", at, last)
			}
			last = at
		}
	}
	for i, e := range r.Events {
		if !e.At.Set() || e.At < last || e.Read < read {
			t.Errorf("event %d at %d (read %d) after %d (read %d)", i, e.At, e.Read, last, read)
		}
		last, read = e.At, e.Read
		if e.Kind.Payload() != (e.Bytes > 0) {
			t.Errorf("event %d: kind %v with %d bytes", i, e.Kind, e.Bytes)
		}
	}
	if r.EOF < last {
		t.Errorf("EOF at %d before the last event at %d", r.EOF, last)
	}
}

func TestDoStreamsAnAnswer(t *testing.T) {
	s := serve(t, answer(eventA+eventA+eventStop+eventUsage+eventDone))
	c := client(t, Target{URL: s.url(), Model: "m"})
	for i := range 10 {
		rec, a := ask(t, t.Context(), c, chat("hi"))
		if rec.Outcome != record.OK || a.Text != "aa" || rec.Finish != "stop" {
			t.Fatalf("outcome %s (%s), text %q, finish %q", rec.Outcome, rec.Detail, a.Text, rec.Finish)
		}
		if rec.Reused != (i > 0) {
			t.Errorf("request %d: reused %v", i, rec.Reused)
		}
		if read := rec.Events[0].Read; read < 1 || read > 3 { // head, body and end are written apart
			t.Errorf("request %d: the first event is of read %d of its answer", i, read)
		}
		if n, _ := rec.Output.N(); n != 2 {
			t.Errorf("output %d tokens", n)
		}
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

func newReader(c net.Conn) *bufio.Reader { return bufio.NewReader(c) }

func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

package llm

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assay-llm/assay/record"
)

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

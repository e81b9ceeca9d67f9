package load_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/load"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/sim"
)

// TestNullServerAnswersAtOnce sends the real client to a null server: every
// answer is complete, of the asked shape, and comes when it should.
func TestNullServerAnswersAtOnce(t *testing.T) {
	for _, shape := range []record.Shape{
		{Stream: true, Events: 16, EventBytes: 4, Gap: 5 * time.Millisecond},
		{Stream: true, Events: 1, EventBytes: 300},
		{Stream: false, Events: 32, EventBytes: 4},
		{Stream: true}, // the zero shape has one event of one byte
	} {
		t.Run(fmt.Sprintf("%+v", shape), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { askNull(t, shape) })
		})
	}
}

func askNull(t *testing.T, shape record.Shape) {
	network := sim.NewNetwork()
	l, err := network.Listen("null:80")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- load.ServeNull(ctx, l, shape) }()
	client, err := llm.NewClient(llm.Target{URL: "http://null:80", Dial: network.DialContext, KeepText: -1})
	if err != nil {
		t.Fatal(err)
	}
	events, bytes := max(shape.Events, 1), max(shape.EventBytes, 1)
	recs := fly(t, client, fmt.Sprintf("{arrivals: {poisson: 200/s}, requests: 50, prompts: {synthetic: 900}, output: %d, stream: %t}", events, shape.Stream), 1)
	for _, r := range recs {
		got := 0
		for i := range r.Events {
			if r.Events[i].Kind.Payload() {
				got++
			}
		}
		ttft, _ := r.First().At.Sub(r.Send)
		whole, _ := r.EOF.Sub(r.Send)
		want := events
		if !shape.Stream {
			want = 1
		}
		if out, known := r.Output.N(); r.Outcome != record.OK || !known || out != int64(events) || got != want || r.OutputBytes != int64(events*bytes) ||
			ttft != 0 || whole != time.Duration(events-1)*shape.Gap {
			t.Fatalf("%s (%s): %d tokens in %d events and %d bytes, first after %v, all after %v", r.Outcome, r.Detail, out, got, r.OutputBytes, ttft, whole)
		}
	}
	stop() // while kept connections are open
	if err := <-served; err != nil {
		t.Errorf("told to stop, the server ends with %v", err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

// TestNullServerSurvivesBadRequests closes the connection of each, and no other.
func TestNullServerSurvivesBadRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := sim.NewNetwork()
		l, err := network.Listen("null:80")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- load.ServeNull(ctx, l, record.Shape{Events: 1}) }()
		say := func(request string) string {
			c, err := network.DialContext(ctx, "tcp", "null:80")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(time.Second))
			_, _ = io.WriteString(c, request) // it may hang up before the end
			line, _ := bufio.NewReader(c).ReadString('\n')
			return line
		}
		for _, bad := range []string{
			"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
			strings.Repeat("a", 9000), "GET / HTTP/1.1\r\n" + strings.Repeat("a: b\r\n", 20_000), "POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nshort",
		} {
			if line := say(bad); line != "" {
				t.Errorf("%.40q is answered with %q", bad, line)
			}
		}
		for _, good := range []string{"GET /cpu HTTP/1.1\r\n\r\n", "POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}"} {
			if line := say(good); line != "HTTP/1.1 200 OK\r\n" {
				t.Errorf("%.40q is answered with %q", good, line)
			}
		}
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// FuzzNullServer hands any bytes to a null server: it answers whole requests, and
// ends.
func FuzzNullServer(f *testing.F) {
	f.Add([]byte("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}GET /cpu HTTP/1.1\r\n\r\n"))
	f.Add([]byte("\r\n\r\n\n\n"))
	f.Add([]byte("x\nContent-Length:1073741824\n\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		synctest.Test(t, func(t *testing.T) {
			network := sim.NewNetwork()
			l, err := network.Listen("null:80")
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			served := make(chan error, 1)
			go func() { served <- load.ServeNull(ctx, l, record.Shape{Events: 1}) }()
			c, err := network.DialContext(ctx, "tcp", "null:80")
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				_, _ = io.Copy(c, bytes.NewReader(in))
				_ = c.SetReadDeadline(time.Now().Add(time.Second))
			}()
			out, _ := io.ReadAll(c)
			if whole := bytes.Count(out, []byte("HTTP/1.1 200 OK\r\n")); 2*whole > bytes.Count(in, []byte("\n")) {
				t.Errorf("%q is answered %d times", in, whole)
			}
			_ = c.Close()
			stop()
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	})
}

//go:build linux

package main

import (
	"bytes"
	"container/heap"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-llm/assay/pace"
)

// What the null server sends: the sizes and shapes of a real one.
const (
	eventJSON = `data: {"id":"chatcmpl-9f2c0b7e5d6a4c1f8e3b2a1d0c9b8a7f","object":"chat.completion.chunk","created":1790000000,"model":"m","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	finalJSON = `data: {"id":"chatcmpl-9f2c0b7e5d6a4c1f8e3b2a1d0c9b8a7f","object":"chat.completion.chunk","created":1790000000,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":%d,"total_tokens":%d}}` + "\n\n"
	tinyJSON  = `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}`

	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	lastChunk  = "0\r\n\r\n"
)

// null is the server. A request's path says what it answers:
//
//	/tiny                  a small JSON body
//	/stream/EVENTS/MICROS  a stream with a gap between events; 0: flat out
//	/stamped/EVENTS/MICROS the same with the emit time in each event
//	/hold/EVENTS           so many events at once, then nothing
//	/held                  how many streams are held
type null struct {
	tiny  []byte
	pacer pacer
	held  atomic.Int64

	mu    sync.Mutex
	whole map[int][]byte // streams by their number of events
}

// serveNull serves on a free port, prints the address and ends when in does.
func serveNull(ctx context.Context, in io.Reader, out io.Writer) error {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	n := &null{whole: make(map[int][]byte)}
	n.tiny = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(tinyJSON), tinyJSON)
	n.pacer.waiter = pace.New()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go n.pacer.run(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		_ = l.Close()
	}()
	fmt.Fprintln(out, l.Addr())
	for {
		c, err := l.Accept()
		if err != nil {
			return nil // closed: the connections end with the process
		}
		go n.serve(c)
	}
}

// serve answers request after request.
func (n *null) serve(c net.Conn) {
	defer c.Close()
	buf := make([]byte, 4<<10)
	for have := 0; ; {
		size := requestSize(buf[:have])
		if size == 0 {
			if have == len(buf) {
				return
			}
			k, err := c.Read(buf[have:])
			if err != nil {
				return
			}
			have += k
			continue
		}
		if err := n.answer(c, buf[:size]); err != nil {
			return
		}
		have = copy(buf, buf[size:have])
	}
}

// requestSize returns the length of the request that starts b; 0: it is not whole.
func requestSize(b []byte) int {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return 0
	}
	body := 0
	if _, value, ok := bytes.Cut(b[:end], []byte("Content-Length: ")); ok {
		for _, d := range value {
			if d < '0' || d > '9' {
				break
			}
			body = 10*body + int(d-'0')
		}
	}
	if size := end + 4 + body; size <= len(b) {
		return size
	}
	return 0
}

func (n *null) answer(c net.Conn, request []byte) error {
	if bytes.HasPrefix(request, []byte("POST /tiny/")) {
		_, err := c.Write(n.tiny)
		return err
	}
	line, _, _ := bytes.Cut(request, []byte(" HTTP/1.1"))
	_, path, _ := strings.Cut(string(line), "/")
	part := append(strings.Split(path, "/"), "", "")
	events, _ := strconv.Atoi(part[1])
	micros, _ := strconv.Atoi(part[2])
	switch part[0] {
	case "held":
		text := strconv.FormatInt(n.held.Load(), 10)
		_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
		return err
	case "hold":
		b := []byte(streamHead)
		for range events {
			b = appendChunk(b, eventJSON)
		}
		if _, err := c.Write(b); err != nil {
			return err
		}
		n.held.Add(1)
		defer n.held.Add(-1)
		_, err := c.Read(b) // until the client is gone
		return err
	case "stream", "stamped":
		if micros == 0 {
			_, err := c.Write(n.stream(events))
			return err
		}
		if _, err := io.WriteString(c, streamHead); err != nil {
			return err
		}
		return n.pacer.send(c, events, time.Duration(micros)*time.Microsecond, part[0] == "stamped")
	}
	_, err := io.WriteString(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
	return err
}

// stream returns a whole answer of so many events.
func (n *null) stream(events int) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.whole[events]
	if b == nil {
		b = []byte(streamHead)
		for range events {
			b = appendChunk(b, eventJSON)
		}
		b = appendEnd(b, events)
		n.whole[events] = b
	}
	return b
}

func appendChunk(b []byte, data string) []byte {
	b = append(strconv.AppendInt(b, int64(len(data)), 16), "\r\n"...)
	return append(append(b, data...), "\r\n"...)
}

func appendEnd(b []byte, events int) []byte {
	b = appendChunk(b, fmt.Sprintf(finalJSON, events, events+5))
	return append(appendChunk(b, "data: [DONE]\n\n"), lastChunk...)
}

// pacer writes the events of all streams that have a gap. One goroutine does, so
// that the server takes as little of the machine as it can.
type pacer struct {
	waiter *pace.Waiter
	mu     sync.Mutex
	due    queue
	seen   int
}

// paced is a stream under way.
type paced struct {
	c       net.Conn
	at      time.Time // of the next event
	gap     time.Duration
	left    int
	events  int
	stamped bool
	done    chan error
}

// nap bounds how often the pacer wakes, and how long a new stream waits for it.
const (
	nap     = 200 * time.Microsecond
	longNap = time.Millisecond
)

// send has the events written and waits for the last. The streams' first events
// are spread over the gap.
func (p *pacer) send(c net.Conn, events int, gap time.Duration, stamped bool) error {
	s := &paced{c: c, gap: gap, left: events, events: events, stamped: stamped, done: make(chan error, 1)}
	p.mu.Lock()
	p.seen++
	phase := time.Duration(p.seen*618_034%1_000_000) * gap / 1_000_000 // the golden ratio spreads any number evenly
	s.at = time.Now().Add(phase)
	heap.Push(&p.due, s)
	p.mu.Unlock()
	return <-s.done
}

func (p *pacer) run(ctx context.Context) {
	defer p.waiter.Close()
	var b []byte
	for {
		now := time.Now()
		wake := now.Add(longNap)
		for {
			p.mu.Lock()
			if len(p.due) == 0 || p.due[0].at.After(now) {
				if len(p.due) > 0 && p.due[0].at.Before(wake) {
					wake = p.due[0].at
				}
				p.mu.Unlock()
				break
			}
			s := heap.Pop(&p.due).(*paced)
			p.mu.Unlock()
			if b = p.event(b[:0], s); s.left > 0 {
				p.mu.Lock()
				heap.Push(&p.due, s)
				p.mu.Unlock()
			}
		}
		if soonest := now.Add(nap); wake.Before(soonest) {
			wake = soonest
		}
		if p.waiter.Until(ctx, wake) != nil {
			return
		}
	}
}

// event writes one event, and the end behind the last.
func (p *pacer) event(b []byte, s *paced) []byte {
	s.left--
	s.at = s.at.Add(s.gap)
	if s.stamped {
		b = appendChunk(b, fmt.Sprintf(": emit %d\n%s", time.Now().UnixNano(), eventJSON))
	} else {
		b = appendChunk(b, eventJSON)
	}
	if s.left == 0 {
		b = appendEnd(b, s.events)
	}
	_, err := s.c.Write(b)
	if err != nil {
		s.left = 0
	}
	if s.left == 0 {
		s.done <- err
	}
	return b
}

// queue is a heap by the instant of the next event.
type queue []*paced

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(*paced)) }
func (q *queue) Pop() any {
	old := *q
	s := old[len(old)-1]
	*q = old[:len(old)-1]
	return s
}

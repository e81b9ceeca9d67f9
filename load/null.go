package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/assay-llm/assay/host"
	"github.com/assay-llm/assay/record"
)

// ServeNull answers every request on l at once with an answer of that shape, as
// OpenAI's chat API words it, until ctx ends; then it closes l and every
// connection, and returns nil. It computes nothing, so that what a client
// measures of it is the client, the kernel and the loopback. A GET of /cpu says
// how much CPU time its process took so far, in nanoseconds; negative if unknown.
//
// It is for a client on the same machine, not for others: it has no time limits.
func ServeNull(ctx context.Context, l net.Listener, shape record.Shape) error {
	n := newNull(shape)
	var mu sync.Mutex
	open := make(map[net.Conn]bool)
	stop := context.AfterFunc(ctx, func() {
		_ = l.Close()
		mu.Lock()
		defer mu.Unlock()
		for c := range open {
			_ = c.Close()
		}
	})
	defer stop()
	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			if err == nil {
				_ = c.Close()
			}
			return nil
		}
		switch {
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("serving nothing: %w", err)
		case err != nil: // no descriptor left, or the client gave up
			time.Sleep(5 * time.Millisecond)
			continue
		}
		mu.Lock()
		open[c] = true
		mu.Unlock()
		if ctx.Err() != nil { // it ended before the connection was known
			_ = c.Close()
		}
		serving.Go(func() {
			n.serve(c)
			_ = c.Close()
			mu.Lock()
			defer mu.Unlock()
			delete(open, c)
		})
	}
}

// null is a server's answer, made ahead.
type null struct {
	events int
	gap    time.Duration
	head   []byte // of a stream
	event  []byte // one, as a chunk
	last   []byte // the last one and all that ends the answer
	whole  []byte // the answer, if it is not a stream
}

func newNull(shape record.Shape) *null {
	n := &null{events: max(shape.Events, 1), gap: shape.Gap}
	text := strings.Repeat("x", max(shape.EventBytes, 1))
	usage := fmt.Sprintf(`"usage":{"prompt_tokens":1,"completion_tokens":%d,"total_tokens":%d}`, n.events, n.events+1)
	if !shape.Stream {
		body := fmt.Sprintf(`{"id":"null","object":"chat.completion","created":0,"model":"null","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"length"}],%s}`,
			strings.Repeat(text, n.events), usage)
		n.whole = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		return n
	}
	chunk := func(data string) string {
		data = "data: " + data + "\n\n"
		return fmt.Sprintf("%x\r\n%s\r\n", len(data), data)
	}
	delta := func(delta, finish string) string {
		return chunk(fmt.Sprintf(`{"id":"null","object":"chat.completion.chunk","created":0,"model":"null","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, delta, finish))
	}
	content := delta(fmt.Sprintf(`{"content":%q}`, text), "null")
	n.head = []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + delta(`{"role":"assistant","content":""}`, "null"))
	n.event = []byte(content)
	n.last = []byte(content + delta(`{}`, `"length"`) +
		chunk(`{"id":"null","object":"chat.completion.chunk","created":0,"model":"null","choices":[],`+usage+`}`) + chunk("[DONE]") + "0\r\n\r\n")
	return n
}

// serve answers the requests of one connection until it ends.
func (n *null) serve(c net.Conn) {
	in := bufio.NewReaderSize(c, 8<<10)
	for {
		cpu, err := skipRequest(in)
		switch {
		case err != nil:
			return
		case cpu:
			text := strconv.FormatInt(int64(host.CPUTime()), 10)
			_, err = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
		case n.whole != nil:
			_, err = c.Write(n.whole)
		default:
			err = n.stream(c)
		}
		if err != nil {
			return
		}
	}
}

// stream writes one answer, each event at its time.
func (n *null) stream(c net.Conn) error {
	start := time.Now()
	if _, err := c.Write(n.head); err != nil {
		return err
	}
	for i := range n.events {
		time.Sleep(time.Until(start.Add(time.Duration(i) * n.gap)))
		data := n.event
		if i+1 == n.events {
			data = n.last
		}
		if _, err := c.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// maxNullHead and maxNullBody bound what the null server reads of one request.
const (
	maxNullHead = 64 << 10
	maxNullBody = 1 << 30
)

// skipRequest reads one request, and reports whether it asks for the CPU time.
func skipRequest(in *bufio.Reader) (cpu bool, err error) {
	body, read := int64(0), 0
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return false, err // the end, or a line beyond all measure
		}
		if read += len(line); read > maxNullHead {
			return false, errors.New("the head is too long")
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case first && len(line) == 0:
			return false, errors.New("no request line")
		case first:
			cpu = bytes.HasPrefix(line, []byte("GET /cpu "))
			continue
		case len(line) == 0:
			_, err = io.CopyN(io.Discard, in, body)
			return cpu, err
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if strings.EqualFold(string(name), "content-length") {
			body, err = strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
			if err != nil || body < 0 || body > maxNullBody {
				return false, fmt.Errorf("content-length %q", value)
			}
		}
	}
}

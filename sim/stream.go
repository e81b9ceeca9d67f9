package sim

import (
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/assay-llm/assay/llm"
)

// stream writes the answer as server-sent events, one write and one flush each.
func (a *answer) stream(st *stream) {
	a.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	a.w.Header().Set("Cache-Control", "no-cache")
	a.header()
	if !a.write(nil) {
		return
	}
	spoilAt := int64(-1)
	if a.entry.Fault.inside() {
		// After at least one token, where there are two.
		spoilAt = min(1+int64(a.detail%uint64(max(a.total-1, 1))), a.total-1)
	}
	var spare []Emission
	for {
		pending, ok := a.next(st, spare)
		if !ok {
			if a.entry.End == EndStopped {
				a.emit(llm.AppendError(nil, http.StatusServiceUnavailable, "server_error", errStopped.Error()))
				a.entry.End = EndStopped
			}
			return
		}
		for i := range pending {
			em := &pending[i]
			if em.Index == spoilAt && !a.spoil() {
				return
			}
			a.take(em)
			if !a.token(em) {
				return
			}
			if em.Finish != "" {
				a.finishStream()
				return
			}
		}
		spare = pending
	}
}

// inside reports whether the fault strikes between two tokens of a stream.
func (f Fault) inside() bool {
	switch f {
	case FaultErrorInside, FaultReset, FaultCut, FaultStall, FaultTruncate, FaultMalformed, FaultHuge:
		return true
	}
	return false
}

// token enters a token into the current event, and writes the event when it is
// full; false means that the client has left.
func (a *answer) token(em *Emission) bool {
	if !a.role {
		a.role = true
		if a.request.API == llm.APIChat {
			c := a.chunk
			c.Role = "assistant"
			a.everyUsage(&c, 0)
			if !a.event(&c) {
				return false
			}
		}
	}
	text := a.show(em.Text)
	if a.entry.Fault == FaultEmpty {
		text = ""
	}
	a.held = append(a.held, text...)
	a.heldTokens++
	if a.heldTokens < max(int64(a.s.config.TokensPerEvent), 1) && em.Finish == "" && a.produced != a.reasoning {
		return true
	}
	return a.payload(em.Finish)
}

// payload writes the event of the tokens that are held.
func (a *answer) payload(finish Finish) bool {
	if len(a.held) == 0 && finish == "" { // nothing, or all behind a stop string
		return true
	}
	c := a.chunk
	thinking := a.produced <= a.reasoning
	if thinking {
		c.Reasoning = string(a.held)
	} else {
		c.Content = string(a.held)
	}
	c.Finish = string(finish)
	a.everyUsage(&c, a.produced)
	if finish != "" && a.s.config.Usage == usageFinish {
		c.Usage, c.Timings = a.usage(a.produced), a.timings()
	}
	if !a.event(&c) {
		return false
	}
	if len(a.held) > 0 {
		a.entry.Events++
		a.entry.TextBytes += int64(len(a.held))
	}
	if a.entry.Fault != FaultEmpty {
		a.entry.Output, a.entry.Reasoning = a.produced, min(a.produced, a.reasoning)
	}
	a.entry.Finish = finish
	a.held, a.heldTokens = a.held[:0], 0
	return true
}

// everyUsage puts the cumulative usage on a chunk where the dialect wants that.
func (a *answer) everyUsage(c *llm.Chunk, produced int64) {
	if a.request.ContinuousUsage && a.s.config.Usage != usageNever || a.s.config.Usage == usageEvery && a.request.IncludeUsage {
		c.Usage = a.usage(produced)
	}
}

// finishStream writes what comes after the last token.
func (a *answer) finishStream() {
	asked := a.request.IncludeUsage && a.s.config.Usage != usageNever && a.s.config.Usage != usageFinish
	if asked {
		if u := a.usage(a.produced); u != nil {
			c := a.chunk
			c.UsageOnly, c.Usage, c.Timings = true, u, a.timings()
			if !a.event(&c) {
				return
			}
		}
	}
	if a.entry.Fault != FaultNoDone {
		a.buf = llm.AppendDone(a.buf[:0])
		if !a.write(a.buf) {
			return
		}
	}
	a.entry.End = EndComplete
	if a.spoilt || a.entry.Fault == FaultEmpty {
		a.entry.End = EndFault
	}
}

func (a *answer) event(c *llm.Chunk) bool {
	a.data = llm.AppendChunk(a.data[:0], c)
	now, ok := a.emit(a.data)
	if c.Content != "" || c.Reasoning != "" {
		if a.entry.First == 0 {
			a.entry.First = now
		}
		a.entry.Last = now
	}
	return ok
}

// emit writes one event under the instant at which it is written.
func (a *answer) emit(data []byte) (now int64, ok bool) {
	now = time.Now().UnixNano()
	a.buf = llm.AppendEvent(a.buf[:0], now, data)
	return now, a.write(a.buf)
}

// spoil lets the fault strike; false means that the answer is over.
func (a *answer) spoil() bool {
	if !a.payload("") { // what came before it is written first
		return false
	}
	switch a.entry.Fault {
	case FaultErrorInside:
		a.data = llm.AppendError(a.data[:0], http.StatusInternalServerError, "server_error", "injected: error inside the stream")
		if _, ok := a.emit(a.data); ok && a.write(llm.AppendDone(a.buf[:0])) {
			a.entry.End = EndFault
		}
		return false
	case FaultReset:
		a.reset()
		return false
	case FaultCut:
		a.cutOff()
		return false
	case FaultStall:
		return a.wait()
	case FaultTruncate:
		a.entry.End = EndFault
		return false
	case FaultMalformed:
		a.spoilt = true
		c := a.chunk
		c.Content = "broken"
		a.data = llm.AppendChunk(a.data[:0], &c)
		_, ok := a.emit(a.data[:len(a.data)-20]) // an object that does not end
		return ok
	case FaultHuge:
		a.spoilt = true
		return a.huge()
	}
	return true
}

// huge writes one event of more than a client should accept, without ever
// holding all of it.
func (a *answer) huge() bool {
	c := a.chunk
	const mark = "huge"
	c.Content = mark
	a.data = llm.AppendChunk(a.data[:0], &c)
	head, tail, _ := strings.Cut(string(llm.AppendEvent(nil, time.Now().UnixNano(), a.data)), mark)
	piece := strings.Repeat(mark, 8<<10)
	n, err := io.WriteString(a.w, head)
	a.entry.Bytes += int64(n)
	for written := 0; written < hugeBytes && err == nil; written += n {
		n, err = io.WriteString(a.w, piece)
		a.entry.Bytes += int64(n)
	}
	if err != nil {
		a.entry.End = EndLeft
		return false
	}
	return a.write([]byte(tail))
}

// hijack takes the connection away from net/http. A stream of HTTP/2 has none of
// its own and is reset by the panic, which net/http expects.
func (a *answer) hijack() net.Conn {
	a.entry.End = EndFault
	conn, _, err := http.NewResponseController(a.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return conn
}

// reset breaks the connection as a crashed server does.
func (a *answer) reset() {
	conn := a.hijack()
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = t.NetConn()
	}
	if l, ok := conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = l.SetLinger(0) // at worst the connection ends in good order
	}
	_ = conn.Close()
}

// cutOff ends the connection in good order in the middle of an event, and of the
// body.
func (a *answer) cutOff() {
	conn := a.hijack()
	n, _ := io.WriteString(conn, "1000\r\n: emit 1\ndata: {\"id\":\"")
	a.entry.Bytes += int64(n)
	_ = conn.Close()
}

// garbage answers as a proxy that has lost its server does.
func (a *answer) garbage() {
	a.w.Header().Set("Content-Type", "text/html")
	a.header()
	a.spoilt = true
	if a.write([]byte("<!doctype html><title>502</title><h1>Bad gateway</h1>\n")) {
		a.entry.End = EndFault
	}
}

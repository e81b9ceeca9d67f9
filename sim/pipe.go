package sim

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// errNobody is a write's answer when the other end was closed.
var errNobody = errors.New("the other end is closed")

// half is one direction of a connection: a bounded queue of bytes with a
// reading and a writing end.
type half struct {
	limit   int
	latency time.Duration

	mu        sync.Mutex
	cond      sync.Cond // any change
	buf       []byte    // buf[off:] is not read yet
	off       int
	flying    []flight // with latency: the tail of buf that has not arrived yet
	underway  int      // bytes of flying
	readBy    deadline
	writeBy   deadline
	readShut  bool // the reading end was shut for reading: it reads end of file
	readGone  bool // the reading end is closed
	writeShut bool // the writing end was shut: end of file after the bytes
	writeGone bool // the writing end is closed
	broken    bool // reset
	eofAt     time.Time
	resetAt   time.Time
}

// flight is a stretch of bytes on its way.
type flight struct {
	bytes int
	at    time.Time // of arrival
}

type deadline struct {
	timer   *time.Timer
	expired bool
}

func newHalf(limit int, latency time.Duration) *half {
	h := &half{limit: limit, latency: latency}
	h.cond.L = &h.mu
	return h
}

func (h *half) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cond.Broadcast()
}

// departLocked returns the instant at which something that leaves now arrives
// (zero: at once), and sees to it that the waiting ends look then.
func (h *half) departLocked() time.Time {
	h.cond.Broadcast()
	if h.latency <= 0 {
		return time.Time{}
	}
	at := time.Now().Add(h.latency)
	time.AfterFunc(h.latency, h.wake)
	return at
}

// arrivedLocked returns how many unread bytes the reader may have now.
func (h *half) arrivedLocked() int {
	if len(h.flying) > 0 {
		now := time.Now()
		for len(h.flying) > 0 && !now.Before(h.flying[0].at) {
			h.underway -= h.flying[0].bytes
			h.flying = h.flying[1:]
		}
	}
	return len(h.buf) - h.off - h.underway
}

func passed(at time.Time) bool { return at.IsZero() || !time.Now().Before(at) }

func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.readGone:
			return 0, net.ErrClosed
		case h.readBy.expired:
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case h.readShut:
			return 0, io.EOF
		}
		if ready := h.arrivedLocked(); ready > 0 {
			n := copy(p, h.buf[h.off:h.off+ready])
			h.off += n
			if h.off == len(h.buf) {
				h.buf, h.off = h.buf[:0], 0
			}
			h.cond.Broadcast()
			return n, nil
		}
		switch {
		case h.broken && passed(h.resetAt):
			return 0, os.NewSyscallError("read", syscall.ECONNRESET)
		case h.writeShut && h.underway == 0 && passed(h.eofAt):
			return 0, io.EOF
		}
		h.cond.Wait()
	}
}

func (h *half) write(p []byte) (n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.writeGone:
			return n, net.ErrClosed
		case h.writeBy.expired:
			return n, os.ErrDeadlineExceeded
		case h.writeShut, h.broken && passed(h.resetAt):
			return n, os.NewSyscallError("write", syscall.EPIPE)
		case h.readGone:
			return len(p), errNobody
		case h.readShut: // received and thrown away
			return len(p), nil
		case n == len(p):
			return n, nil
		}
		if room := h.limit - (len(h.buf) - h.off); room > 0 {
			part := p[n:min(len(p), n+room)]
			h.appendLocked(part)
			n += len(part)
			if at := h.departLocked(); !at.IsZero() {
				h.flying = append(h.flying, flight{bytes: len(part), at: at})
				h.underway += len(part)
			}
			continue
		}
		h.cond.Wait()
	}
}

// appendLocked adds bytes at the end; the read part is dropped when the array
// would have to grow for it.
func (h *half) appendLocked(p []byte) {
	if h.off > 0 && len(h.buf)+len(p) > cap(h.buf) {
		h.buf = h.buf[:copy(h.buf, h.buf[h.off:])]
		h.off = 0
	}
	h.buf = append(h.buf, p...)
}

// endRead shuts the reading end, for good if gone, and reports whether it left
// bytes unread.
func (h *half) endRead(gone bool) (unread bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	unread = h.arrivedLocked() > 0
	h.readShut = true
	h.readGone = h.readGone || gone
	h.buf, h.off, h.flying, h.underway = nil, 0, nil, 0
	h.readBy.stop()
	h.cond.Broadcast()
	return unread
}

// endWrite shuts the writing end, for good if gone.
func (h *half) endWrite(gone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.writeShut {
		h.writeShut = true
		h.eofAt = h.departLocked()
	}
	h.writeGone = h.writeGone || gone
	h.writeBy.stop()
	h.cond.Broadcast()
}

// reset breaks the direction; both ends meet it when it arrives.
func (h *half) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.broken {
		h.broken = true
		h.resetAt = h.departLocked()
	}
}

func (h *half) setDeadline(d *deadline, t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d.stop()
	d.expired = false
	if !t.IsZero() {
		wait := time.Until(t)
		d.expired = wait <= 0
		if !d.expired {
			var timer *time.Timer
			timer = time.AfterFunc(wait, func() {
				h.mu.Lock()
				defer h.mu.Unlock()
				if d.timer == timer { // not replaced meanwhile
					d.expired = true
					h.cond.Broadcast()
				}
			})
			d.timer = timer
		}
	}
	h.cond.Broadcast()
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

package llm

import (
	"net"
	"time"
)

// sock is a connection whose reads are stamped the moment they return, under
// whatever protocol lies above it.
type sock struct {
	net.Conn
	at     time.Time // when the last read returned
	kernel int64     // the kernel's receive stamp of its last segment, Unix nanoseconds; 0: unknown
	reads  uint32    // reads that gave bytes
	raw    kernelReader

	// Whether the wall clock, by which the kernel stamps, was set meanwhile.
	ahead time.Duration // how far it had gone ahead of the monotonic clock at the last read
	doubt time.Time     // kernel stamps of reads before it may be of before a step
}

// clockBase is an instant to tell by whether the wall clock was set since; which one makes
// no difference.
var clockBase = time.Now()

// ahead returns how far the wall clock has gone ahead of the monotonic clock since
// clockBase: nearly nothing, unless it was set.
func ahead(t time.Time) time.Duration {
	return time.Duration(t.UnixNano()-clockBase.UnixNano()) - t.Sub(clockBase)
}

// A wall clock that is slewed is never so far off between two reads as one that was
// set; nor are the two readings that make one time.Time, on a busy machine. Smaller steps
// spoil the lag of the reads under way and no other.
const (
	leastStep = 500 * time.Millisecond
	doubtFor  = time.Second // behind a step: bytes may have lain in the kernel since before it
)

func newSock(c net.Conn) *sock {
	s := &sock{Conn: c, ahead: ahead(time.Now())}
	s.raw.attach(c)
	return s
}

// Read reads once and stamps.
func (s *sock) Read(p []byte) (n int, err error) {
	if s.raw.attached() {
		n, s.kernel, err = s.raw.read(p)
	} else {
		n, err = s.Conn.Read(p)
	}
	s.took(n)
	return n, err
}

// fill reads once more into b, and stamps. While nothing is there to be read, b
// needs no memory. Only for a sock whose reader is attached.
func (s *sock) fill(b *buffer) (n int, err error) {
	n, s.kernel, err = s.raw.fill(b)
	s.took(n)
	return n, err
}

// exchange writes msg and then reads once into b, as fill does. Only for a sock
// whose reader is attached.
func (s *sock) exchange(msg []byte, b *buffer) (w writing, n int, err error) {
	w, n, s.kernel, err = s.raw.exchange(msg, b)
	s.took(n)
	return w, n, err
}

// took stamps what a read gave.
func (s *sock) took(n int) {
	s.at = time.Now()
	if n > 0 {
		s.reads++
	}
	if now := ahead(s.at); (now - s.ahead).Abs() > leastStep {
		s.ahead, s.doubt = now, s.at.Add(doubtFor)
	}
}

// writing is what became of a message: n bytes of it went out. Without an error
// and short of the whole, the socket would not take more at once. A zero start
// means that it was not tried.
type writing struct {
	n          int
	start, end time.Time
	err        error
}

// lag returns how long the last bytes lay in the kernel before the read
// returned; negative: unknown. Both stamps are of the wall clock: where that was
// set between them, the lag is unknown. The instants of events are of the
// monotonic clock, and never depend on it.
func (s *sock) lag() time.Duration {
	if s.kernel == 0 || s.at.Before(s.doubt) {
		return -1
	}
	return max(time.Duration(s.at.UnixNano()-s.kernel), -1)
}

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
}

func newSock(c net.Conn) *sock {
	s := &sock{Conn: c}
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
// returned; negative: unknown. Both stamps are of the wall clock, so a step of
// that clock between them makes the lag unknown or wrong, never an event's time.
func (s *sock) lag() time.Duration {
	if s.kernel == 0 {
		return -1
	}
	return max(time.Duration(s.at.UnixNano()-s.kernel), -1)
}

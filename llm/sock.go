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
	s.at = time.Now()
	if n > 0 {
		s.reads++
	}
	return n, err
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

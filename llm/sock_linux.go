//go:build linux && (amd64 || arm64 || riscv64 || ppc64le || s390x || loong64)

package llm

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelReader reads a TCP socket by recvmsg, which tells when the kernel
// received the bytes. The stamp is of the last segment that the read returns;
// the first reads of a connection may have none.
type kernelReader struct {
	conn syscall.RawConn
	try  func(fd uintptr) bool // one closure for all reads

	// Of the read under way.
	p   []byte
	b   *buffer // nil: into p
	msg []byte  // to be written before; nil: nothing
	out writing
	n   int
	at  int64
	err error
	oob [64]byte
	iov unix.Iovec
	hdr unix.Msghdr
}

func (k *kernelReader) attached() bool { return k.conn != nil }

func (k *kernelReader) attach(c net.Conn) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	var set error
	if err := raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	}); err != nil || set != nil {
		return
	}
	k.conn, k.try = raw, k.recv
}

func (k *kernelReader) read(p []byte) (n int, at int64, err error) {
	if len(p) == 0 {
		return 0, 0, nil
	}
	k.p = p
	return k.once()
}

// fill reads into b, which gets memory when the read is tried and gives it back
// when there is nothing to read.
func (k *kernelReader) fill(b *buffer) (n int, at int64, err error) {
	k.b = b
	return k.once()
}

// exchange writes msg, and when it is out reads once into b. Both happen under
// one turn of the poller: nobody asks for the answer before it can be there. That
// costs a system call less than a write and a read of their own, and is the
// reason why a caller must look again after a while: what came before msg was
// written wakes nobody.
func (k *kernelReader) exchange(msg []byte, b *buffer) (w writing, n int, at int64, err error) {
	k.b, k.msg, k.out = b, msg, writing{}
	n, at, err = k.once()
	switch w = k.out; {
	case w.start.IsZero():
		w.err = err
		return w, 0, 0, nil
	case w.n < len(msg):
		return w, 0, 0, nil // and err is of a read that was not tried
	}
	return w, n, at, err
}

func (k *kernelReader) once() (n int, at int64, err error) {
	k.n, k.at, k.err = 0, 0, nil
	err = k.conn.Read(k.try)
	k.p, k.b, k.msg, k.iov.Base = nil, nil, nil, nil
	switch {
	case err != nil:
		return 0, 0, err
	case k.err != nil:
		return 0, 0, os.NewSyscallError("recvmsg", k.err)
	case k.n == 0:
		return 0, 0, io.EOF
	}
	return k.n, k.at, nil
}

// write tries to write the message and reports whether it is out.
func (k *kernelReader) write(fd uintptr) bool {
	k.out.start = time.Now()
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(&k.msg[0])), uintptr(len(k.msg)), unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			k.out.n = int(n)
		case unix.EINTR:
			continue
		case unix.EAGAIN:
		default:
			k.out.err = os.NewSyscallError("sendto", errno)
		}
		break
	}
	k.out.end = k.out.start.Add(time.Since(k.out.start)) // one clock less to read
	return k.out.n == len(k.msg)
}

// recv reports whether it is done; false waits until the socket is readable. It
// calls the system itself: unix.Recvmsg allocates, twice an event. The sockets do
// not block, so the scheduler need not hear of the calls.
func (k *kernelReader) recv(fd uintptr) bool {
	if len(k.msg) > 0 {
		out := k.write(fd)
		k.msg = nil
		return !out
	}
	p := k.p
	if k.b != nil {
		p = k.b.space()
	}
	for {
		k.iov.Base = &p[0]
		k.iov.SetLen(len(p))
		k.hdr = unix.Msghdr{Iov: &k.iov, Control: &k.oob[0]}
		k.hdr.SetIovlen(1)
		k.hdr.SetControllen(len(k.oob))
		n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&k.hdr)), 0)
		switch errno {
		case 0:
			k.n, k.at = int(n), stampOf(k.oob[:min(int(k.hdr.Controllen), len(k.oob))])
			return true
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			if k.b != nil {
				k.b.settle()
			}
			return false
		}
		k.err = errno
		return true
	}
}

// stampOf finds the timespec of SCM_TIMESTAMPNS; 0: there is none. All systems
// of this file have 64-bit words: a control message is its length (8), level
// (4) and type (4), then its data, padded to 8.
func stampOf(oob []byte) int64 {
	ne := binary.NativeEndian
	for len(oob) >= unix.SizeofCmsghdr {
		size := int(ne.Uint64(oob))
		if size < unix.SizeofCmsghdr || size > len(oob) {
			return 0
		}
		if ne.Uint32(oob[8:]) == unix.SOL_SOCKET && ne.Uint32(oob[12:]) == unix.SCM_TIMESTAMPNS && size >= unix.SizeofCmsghdr+16 {
			data := oob[unix.SizeofCmsghdr:]
			return int64(ne.Uint64(data))*1e9 + int64(ne.Uint64(data[8:]))
		}
		oob = oob[min((size+7)&^7, len(oob)):]
	}
	return 0
}

// stale reports whether an idle connection has something to read: its end, or
// bytes that nobody asked for. It does not wait.
func stale(c net.Conn) bool {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return true
	}
	readable := true
	if err := raw.Control(func(fd uintptr) {
		var one [1]byte
		_, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		readable = err != unix.EAGAIN
	}); err != nil {
		return true
	}
	return readable
}

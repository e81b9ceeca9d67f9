//go:build linux && (amd64 || arm64 || riscv64 || ppc64le || s390x || loong64)

package llm

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"syscall"
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
	n   int
	at  int64
	err error
	oob [64]byte
	iov unix.Iovec
	msg unix.Msghdr
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
	k.p, k.n, k.at, k.err = p, 0, 0, nil
	err = k.conn.Read(k.try)
	k.p, k.iov.Base = nil, nil
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

// recv reports whether it is done; false waits until the socket is readable. It
// calls the system itself: unix.Recvmsg allocates, twice an event.
func (k *kernelReader) recv(fd uintptr) bool {
	for {
		k.iov.Base = &k.p[0]
		k.iov.SetLen(len(k.p))
		k.msg = unix.Msghdr{Iov: &k.iov, Control: &k.oob[0]}
		k.msg.SetIovlen(1)
		k.msg.SetControllen(len(k.oob))
		n, _, errno := unix.Syscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&k.msg)), 0)
		switch errno {
		case 0:
			k.n, k.at = int(n), stampOf(k.oob[:min(int(k.msg.Controllen), len(k.oob))])
			return true
		case unix.EINTR:
			continue
		case unix.EAGAIN:
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

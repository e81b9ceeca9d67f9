package sim

import (
	"context"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// socketBuffer is what a connection holds in each direction before a write
// blocks, as a kernel's send and receive buffers together would.
const socketBuffer = 256 << 10

// backlog is the number of connections that a listener holds until they are
// accepted; a dial beyond it waits.
const backlog = 1024

// Network is a network in memory: listeners and connections that behave as TCP
// over loopback does on Linux (bounded buffers, deadlines, half close, reset),
// without a system call. Its blocking operations are durable in the sense of
// testing/synctest, so a client and a server that talk over it run in virtual
// time. Make one with NewNetwork; the fields are set before its first use. Safe
// for concurrent use.
type Network struct {
	Latency time.Duration // one way; a dial takes twice as much; zero: none
	Buffer  int           // bytes held in each direction of a connection; zero: 256 KiB

	mu        sync.Mutex
	listeners map[string]*listener
	port      int // last port given out for port 0 and for dialling ends
}

// NewNetwork returns an empty network without latency.
func NewNetwork() *Network {
	return &Network{listeners: map[string]*listener{}, port: 49151}
}

// Listen announces addr ("host:port"; the network knows no names and no wild
// cards, so dial exactly this address). Port 0 picks a free port. An address in
// use gives EADDRINUSE.
func (n *Network) Listen(addr string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Err: err}
	}
	if port == "0" {
		addr = n.ephemeralLocked(host)
	}
	if n.listeners[addr] != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: address(addr), Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}
	}
	l := &listener{net: n, addr: address(addr)}
	l.cond.L = &l.mu
	n.listeners[addr] = l
	return l, nil
}

func (n *Network) ephemeralLocked(host string) string {
	for {
		n.port++
		if n.port > 65535 {
			n.port = 49152
		}
		addr := net.JoinHostPort(host, strconv.Itoa(n.port))
		if n.listeners[addr] == nil {
			return addr
		}
	}
}

// DialContext connects to a listener of the network; network must be a kind of
// tcp. Without a listener it fails with ECONNREFUSED. It has the shape of
// http.Transport.DialContext.
func (n *Network) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: address(addr), Err: err}
	}
	switch network {
	case "tcp", "tcp4", "tcp6":
	default:
		return fail(net.UnknownNetworkError(network))
	}
	if n.Latency > 0 {
		trip := time.NewTimer(2 * n.Latency)
		defer trip.Stop()
		select {
		case <-ctx.Done():
			return fail(ctx.Err())
		case <-trip.C:
		}
	}
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	n.mu.Lock()
	l := n.listeners[addr]
	local := address(n.ephemeralLocked("127.0.0.1"))
	n.mu.Unlock()
	if l == nil {
		return fail(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	}
	client, server := n.pair(local, address(addr))
	if err := l.offer(ctx, server); err != nil {
		return fail(err)
	}
	return client, nil
}

func (n *Network) pair(local, remote address) (client, server *conn) {
	limit := n.Buffer
	if limit <= 0 {
		limit = socketBuffer
	}
	up, down := newHalf(limit, n.Latency), newHalf(limit, n.Latency)
	client = &conn{in: down, out: up, local: local, remote: remote}
	server = &conn{in: up, out: down, local: remote, remote: local}
	return client, server
}

// address is an address of a Network.
type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }

type listener struct {
	net  *Network
	addr address

	mu      sync.Mutex
	cond    sync.Cond
	pending []*conn
	closed  bool
}

func (l *listener) Addr() net.Addr { return l.addr }

func (l *listener) Accept() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.pending) == 0 && !l.closed {
		l.cond.Wait()
	}
	if l.closed {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
	}
	c := l.pending[0]
	l.pending = l.pending[1:]
	l.cond.Broadcast()
	return c, nil
}

func (l *listener) offer(ctx context.Context, c *conn) error {
	stop := context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.cond.Broadcast()
	})
	defer stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.pending) >= backlog && !l.closed && ctx.Err() == nil {
		l.cond.Wait()
	}
	switch {
	case l.closed:
		return os.NewSyscallError("connect", syscall.ECONNREFUSED)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	l.pending = append(l.pending, c)
	l.cond.Broadcast()
	return nil
}

// Close stops listening; connections that nobody accepted are reset.
func (l *listener) Close() error {
	l.net.mu.Lock()
	if l.net.listeners[string(l.addr)] == l {
		delete(l.net.listeners, string(l.addr))
	}
	l.net.mu.Unlock()

	l.mu.Lock()
	pending, closed := l.pending, l.closed
	l.pending, l.closed = nil, true
	l.cond.Broadcast()
	l.mu.Unlock()
	if closed {
		return &net.OpError{Op: "close", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
	}
	for _, c := range pending {
		_ = c.SetLinger(0) // never fails on a connection of this network
		_ = c.Close()
	}
	return nil
}

// conn is one end of a connection.
type conn struct {
	in, out       *half
	local, remote address

	mu     sync.Mutex
	closed bool
	abort  bool // Close resets
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) failed(op string, err error) error {
	if err == nil || err == io.EOF { // io.Reader's contract: the bare value
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.in.read(p)
	return n, c.failed("read", err)
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.out.write(p)
	if err == errNobody {
		// The other end is closed: as with TCP the write succeeds, and the
		// answer to it is a reset that the next call meets.
		c.in.reset()
		c.out.reset()
		return n, nil
	}
	return n, c.failed("write", err)
}

// SetLinger with 0 makes Close reset the connection instead of ending it in
// good order; other values change nothing, since what was written has already
// arrived in the other end's buffer.
func (c *conn) SetLinger(seconds int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abort = seconds == 0
	return nil
}

// CloseWrite ends the outgoing direction; the other end reads to its end.
func (c *conn) CloseWrite() error {
	if c.isClosed() {
		return c.failed("close", net.ErrClosed)
	}
	c.out.endWrite(false)
	return nil
}

// CloseRead ends the incoming direction for this end only.
func (c *conn) CloseRead() error {
	if c.isClosed() {
		return c.failed("close", net.ErrClosed)
	}
	c.in.endRead(false)
	return nil
}

func (c *conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Close closes both directions. As on Linux it resets the connection when
// received bytes were left unread.
func (c *conn) Close() error {
	c.mu.Lock()
	closed, abort := c.closed, c.abort
	c.closed = true
	c.mu.Unlock()
	if closed {
		return c.failed("close", net.ErrClosed)
	}
	unread := c.in.endRead(true)
	if abort || unread { // before the end, or the other end might see that first
		c.in.reset()
		c.out.reset()
	}
	c.out.endWrite(true)
	return nil
}

func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

func (c *conn) SetReadDeadline(t time.Time) error {
	if c.isClosed() {
		return c.failed("set", net.ErrClosed)
	}
	c.in.setDeadline(&c.in.readBy, t)
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	if c.isClosed() {
		return c.failed("set", net.ErrClosed)
	}
	c.out.setDeadline(&c.out.writeBy, t)
	return nil
}

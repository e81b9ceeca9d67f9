package sim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// dialer makes connected pairs: (the end that dialled, the accepted end).
type dialer func(t *testing.T) (client, server net.Conn)

func overTCP(t *testing.T) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skipf("no loopback: %v", err)
	}
	defer l.Close()
	return connect(t, l, (&net.Dialer{}).DialContext)
}

func overNetwork(t *testing.T) (client, server net.Conn) {
	t.Helper()
	n := NewNetwork()
	l, err := n.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return connect(t, l, n.DialContext)
}

func overSlowNetwork(t *testing.T) (client, server net.Conn) {
	t.Helper()
	n := NewNetwork()
	n.Latency = 2 * time.Millisecond
	l, err := n.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return connect(t, l, n.DialContext)
}

func connect(t *testing.T, l net.Listener, dial func(context.Context, string, string) (net.Conn, error)) (client, server net.Conn) {
	t.Helper()
	client, err := dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// TestConnConformance runs one suite over real TCP and over the network in
// memory: what holds for the one holds for the other.
func TestConnConformance(t *testing.T) {
	for name, dial := range map[string]dialer{"tcp": overTCP, "network": overNetwork, "latency": overSlowNetwork} {
		for _, test := range []struct {
			name string
			run  func(t *testing.T, client, server net.Conn)
		}{
			{"echo", conformEcho},
			{"bulk both ways", conformBulk},
			{"half close", conformHalfClose},
			{"close reads on to the end", conformClose},
			{"reset", conformReset},
			{"close with unread bytes resets", conformUnread},
			{"write to a closed end", conformWriteClosed},
			{"read deadline", conformReadDeadline},
			{"write deadline when the buffers are full", conformWriteDeadline},
			{"past deadline wins over data", conformPastDeadline},
			{"deadline moves", conformDeadlineMoves},
			{"close wakes readers", conformCloseWakes},
			{"use after close", conformAfterClose},
			{"addresses", conformAddresses},
			{"many readers and writers", conformRace},
		} {
			t.Run(name+"/"+test.name, func(t *testing.T) {
				client, server := dial(t)
				test.run(t, client, server)
			})
		}
	}
}

func write(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if n, err := c.Write([]byte(s)); n != len(s) || err != nil {
		t.Fatalf("Write = %d, %v; want %d, nil", n, err, len(s))
	}
}

func read(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("read %q, %v; want %q", got, err, want)
	}
}

func conformEcho(t *testing.T, client, server net.Conn) {
	for _, s := range []string{"a", "hello", strings.Repeat("x", 10_000)} {
		write(t, client, s)
		read(t, server, s)
		write(t, server, s)
		read(t, client, s)
	}
	if n, err := client.Write(nil); n != 0 || err != nil {
		t.Errorf("Write(nil) = %d, %v", n, err)
	}
	if n, err := client.Read(nil); n != 0 || err != nil {
		t.Errorf("Read(nil) = %d, %v", n, err)
	}
}

func conformBulk(t *testing.T, client, server net.Conn) {
	const size = 3 << 20
	data := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	var wg sync.WaitGroup
	for _, c := range []net.Conn{client, server} {
		wg.Go(func() {
			if n, err := c.Write(data); n != size || err != nil {
				t.Errorf("Write = %d, %v", n, err)
			}
		})
		wg.Go(func() {
			got := make([]byte, size)
			if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, data) {
				t.Errorf("read differs, %v", err)
			}
		})
	}
	wg.Wait()
}

func conformHalfClose(t *testing.T, client, server net.Conn) {
	write(t, client, "question")
	if err := client.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(server); string(got) != "question" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	write(t, server, "answer")
	server.Close()
	if got, err := io.ReadAll(client); string(got) != "answer" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := client.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("Write after CloseWrite: %v, want EPIPE", err)
	}
}

func conformClose(t *testing.T, client, server net.Conn) {
	write(t, server, "the end")
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(client); string(got) != "the end" || err != nil {
		t.Errorf("read %q, %v; want all bytes, then end of file", got, err)
	}
}

func conformReset(t *testing.T, client, server net.Conn) {
	write(t, server, "before")
	read(t, client, "before")
	write(t, server, "unread")
	if err := server.(interface{ SetLinger(int) error }).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	server.Close()
	got, err := io.ReadAll(client)
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read %q, %v; want ECONNRESET", got, err)
	}
	if _, err := client.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("Write after a reset: %v, want EPIPE", err)
	}
}

func conformUnread(t *testing.T, client, server net.Conn) {
	write(t, client, "not read")
	buf := make([]byte, 1)
	if _, err := server.Read(buf); err != nil { // one byte of eight: the rest is there
		t.Fatal(err)
	}
	server.Close()
	if _, err := client.Read(buf); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read: %v, want ECONNRESET", err)
	}
}

func conformWriteClosed(t *testing.T, client, server net.Conn) {
	server.Close()
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("read: %v, want EOF", err)
	}
	write(t, client, "into the void") // answered by a reset
	client.SetReadDeadline(time.Now().Add(10 * time.Second))
	for {
		_, err := client.Write([]byte("x"))
		if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
			return
		}
		if err != nil {
			t.Fatalf("second write: %v, want EPIPE or ECONNRESET", err)
		}
	}
}

func timedOut(err error) bool {
	var ne net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) && errors.As(err, &ne) && ne.Timeout()
}

func conformReadDeadline(t *testing.T, client, server net.Conn) {
	client.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
	if _, err := client.Read(make([]byte, 1)); !timedOut(err) {
		t.Errorf("read: %v, want a timeout", err)
	}
	client.SetReadDeadline(time.Time{})
	write(t, server, "late")
	read(t, client, "late")
}

func conformWriteDeadline(t *testing.T, client, server net.Conn) {
	client.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	chunk := make([]byte, 1<<20)
	total := 0
	for total < 1<<30 {
		n, err := client.Write(chunk)
		total += n
		if err != nil {
			if !timedOut(err) {
				t.Errorf("write: %v, want a timeout", err)
			}
			client.SetWriteDeadline(time.Time{})
			client.Close()
			if n, err := io.Copy(io.Discard, server); n != int64(total) || err != nil {
				t.Errorf("read %d bytes, %v; want the %d that Write counted", n, err, total)
			}
			return
		}
	}
	t.Error("a gigabyte fits in the buffers: they are not bounded")
}

func conformPastDeadline(t *testing.T, client, server net.Conn) {
	write(t, server, "data")
	buf := make([]byte, 1)
	if _, err := client.Read(buf); err != nil { // it has arrived
		t.Fatal(err)
	}
	client.SetDeadline(time.Now().Add(-time.Second))
	if _, err := client.Read(buf); !timedOut(err) {
		t.Errorf("read: %v, want a timeout", err)
	}
	if _, err := client.Write(buf); !timedOut(err) {
		t.Errorf("write: %v, want a timeout", err)
	}
	client.SetDeadline(time.Time{})
	read(t, client, "ata")
}

func conformDeadlineMoves(t *testing.T, client, server net.Conn) {
	client.SetReadDeadline(time.Now().Add(time.Hour))
	done := make(chan error, 1)
	go func() {
		_, err := client.Read(make([]byte, 1))
		done <- err
	}()
	client.SetReadDeadline(time.Now()) // the usual way to stop a reader
	if err := <-done; !timedOut(err) {
		t.Errorf("read: %v, want a timeout", err)
	}
}

func conformCloseWakes(t *testing.T, client, server net.Conn) {
	done := make(chan error, 1)
	go func() {
		_, err := client.Read(make([]byte, 1))
		done <- err
	}()
	client.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("read: %v, want net.ErrClosed", err)
	}
}

func conformAfterClose(t *testing.T, client, server net.Conn) {
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	for op, err := range map[string]error{
		"close":    client.Close(),
		"deadline": client.SetDeadline(time.Now()),
		"read":     func() error { _, err := client.Read(make([]byte, 1)); return err }(),
		"write":    func() error { _, err := client.Write([]byte("x")); return err }(),
	} {
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s after Close: %v, want net.ErrClosed", op, err)
		}
	}
}

func conformAddresses(t *testing.T, client, server net.Conn) {
	if got, want := client.RemoteAddr().String(), server.LocalAddr().String(); got != want {
		t.Errorf("the client's remote address is %s, the server's local one %s", got, want)
	}
	if got, want := server.RemoteAddr().String(), client.LocalAddr().String(); got != want {
		t.Errorf("the server's remote address is %s, the client's local one %s", got, want)
	}
	if _, _, err := net.SplitHostPort(client.LocalAddr().String()); err != nil {
		t.Error(err)
	}
}

func conformRace(t *testing.T, client, server net.Conn) {
	const writers, lines = 4, 200
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range lines {
				if _, err := client.Write([]byte("12345678")); err != nil {
					t.Error(err)
					return
				}
				client.SetReadDeadline(time.Now().Add(time.Minute))
			}
		})
	}
	var mu sync.Mutex
	total := 0
	server.SetReadDeadline(time.Now().Add(30 * time.Second))
	for range 3 {
		wg.Go(func() {
			buf := make([]byte, 64)
			for {
				n, err := server.Read(buf)
				mu.Lock()
				total += n
				done := total == writers*lines*8
				mu.Unlock()
				if done {
					server.SetReadDeadline(time.Now()) // stops the others
				}
				if done || err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	if total != writers*lines*8 {
		t.Errorf("read %d bytes, want %d", total, writers*lines*8)
	}
}

func TestNetworkRefusesAndListensOnce(t *testing.T) {
	n := NewNetwork()
	if _, err := n.DialContext(t.Context(), "tcp", "127.0.0.1:80"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial without a listener: %v, want ECONNREFUSED", err)
	}
	if _, err := n.DialContext(t.Context(), "udp", "127.0.0.1:80"); !errors.As(err, new(net.UnknownNetworkError)) {
		t.Errorf("dial udp: %v, want an unknown network", err)
	}
	l, err := n.Listen("127.0.0.1:80")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Listen("127.0.0.1:80"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("second listen: %v, want EADDRINUSE", err)
	}
	if _, err := n.Listen("no port"); err == nil {
		t.Error("Listen accepted an address without a port")
	}
	c, err := n.DialContext(t.Context(), "tcp", "127.0.0.1:80")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // nobody accepted c
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read on a connection that nobody accepted: %v, want ECONNRESET", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept after Close: %v, want net.ErrClosed", err)
	}
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second Close: %v, want net.ErrClosed", err)
	}
	if _, err = n.Listen("127.0.0.1:80"); err != nil {
		t.Errorf("listen after Close: %v", err)
	}
}

func TestNetworkBacklogBlocksAndRespectsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNetwork()
		l, err := n.Listen("127.0.0.1:80")
		if err != nil {
			t.Fatal(err)
		}
		for range backlog {
			if _, err := n.DialContext(t.Context(), "tcp", "127.0.0.1:80"); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := n.DialContext(ctx, "tcp", "127.0.0.1:80"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dial beyond the backlog: %v, want the deadline", err)
		}
		if got := time.Since(start); got != time.Second {
			t.Errorf("it took %v, want 1s", got)
		}
		l.Close()
	})
}

func TestNetworkLatencyIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNetwork()
		n.Latency = 15 * time.Millisecond
		l, err := n.Listen("127.0.0.1:80")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		start := time.Now()
		client, server := connect(t, l, n.DialContext)
		since := func(what string, want time.Duration) {
			t.Helper()
			if got := time.Since(start); got != want {
				t.Errorf("%s after %v, want %v", what, got, want)
			}
		}
		since("dialled", 30*time.Millisecond)
		write(t, client, "one")
		time.Sleep(5 * time.Millisecond)
		write(t, client, "two")
		read(t, server, "one")
		since("first bytes", 45*time.Millisecond)
		read(t, server, "two")
		since("second bytes", 50*time.Millisecond)
		write(t, server, "bye")
		server.Close()
		if got, err := io.ReadAll(client); string(got) != "bye" || err != nil {
			t.Errorf("read %q, %v", got, err)
		}
		since("end", 65*time.Millisecond)
	})
}

func TestNetworkBufferBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNetwork()
		n.Buffer = 1000
		l, err := n.Listen("127.0.0.1:80")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		client, server := connect(t, l, n.DialContext)
		var wg sync.WaitGroup
		wrote := 0
		wg.Go(func() { wrote, _ = client.Write(make([]byte, 1500)) })
		synctest.Wait()
		if wrote != 0 {
			t.Errorf("Write of 1,500 bytes into a buffer of 1,000 returned")
		}
		read(t, server, string(make([]byte, 500)))
		wg.Wait()
		if wrote != 1500 {
			t.Errorf("wrote %d bytes, want 1,500", wrote)
		}
	})
}

// TestNetworkCarriesEveryByte sends random pieces through connections of random
// sizes, and reads them in others.
func TestNetworkCarriesEveryByte(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pieces := rapid.SliceOfN(rapid.IntRange(0, 5000), 1, 30).Draw(rt, "writes")
		reads := rapid.SliceOfN(rapid.IntRange(1, 3000), 1, 10).Draw(rt, "reads")
		buffer := rapid.IntRange(1, 4000).Draw(rt, "buffer")
		latency := rapid.SampledFrom([]time.Duration{0, time.Millisecond}).Draw(rt, "latency")
		pause := rapid.SampledFrom([]time.Duration{0, 300 * time.Microsecond}).Draw(rt, "pause")
		synctest.Test(t, func(t *testing.T) {
			n := NewNetwork()
			n.Buffer, n.Latency = buffer, latency
			l, err := n.Listen("127.0.0.1:80")
			if err != nil {
				rt.Fatal(err)
			}
			defer l.Close()
			client, server := connect(t, l, n.DialContext)
			var want, got bytes.Buffer
			var wg sync.WaitGroup
			wg.Go(func() {
				for i, size := range pieces {
					p := make([]byte, size)
					for j := range p {
						p[j] = byte(i*31 + j)
					}
					want.Write(p)
					if wrote, err := client.Write(p); wrote != size || err != nil {
						rt.Errorf("Write = %d, %v; want %d", wrote, err, size)
					}
					time.Sleep(pause)
				}
				client.Close()
			})
			for i := 0; ; i++ {
				p := make([]byte, reads[i%len(reads)])
				k, err := server.Read(p)
				got.Write(p[:k])
				if err == io.EOF {
					break
				}
				if err != nil || k == 0 {
					rt.Errorf("Read = %d, %v", k, err)
					break
				}
			}
			wg.Wait()
			if !bytes.Equal(got.Bytes(), want.Bytes()) {
				rt.Errorf("%d bytes went in, %d came out, or others", want.Len(), got.Len())
			}
		})
	})
}

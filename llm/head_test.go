package llm

import (
	"bufio"
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readHeadOf runs both steps over a whole input: n is 0 while it is incomplete.
func readHeadOf(b []byte) (h head, n int, err error) {
	n, _, err = headEnd(b, 0)
	if err != nil || n == 0 {
		return head{}, 0, err
	}
	h, err = parseHead(b[:n])
	return h, n, err
}

func TestResponseHead(t *testing.T) {
	ok := func(h head) head {
		if h.status == 0 {
			h.status = 200
		}
		return h
	}
	for _, tt := range []struct {
		in   string
		want head
		err  string
	}{
		{in: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", want: ok(head{length: 5})},
		{in: "HTTP/1.1 200 \r\n\r\n", want: ok(head{length: -1})},
		{in: "HTTP/1.1 200\r\n\r\n", want: ok(head{length: -1})},
		{in: "HTTP/1.0 200 OK\r\n\r\n", want: ok(head{length: -1, closes: true})},
		{in: "HTTP/1.1 200 OK\r\nConnection: x, Close\r\n\r\n", want: ok(head{length: -1, closes: true})},
		{in: "HTTP/1.1 200 OK\r\nTRANSFER-ENCODING: Chunked\r\ncontent-type: Text/Event-Stream; charset=utf-8\r\n\r\n", want: ok(head{length: -1, chunked: true, sse: true})},
		{in: "HTTP/1.1 200 OK\r\nContent-Type: application/problem+json\r\nContent-Encoding: gzip\r\n\r\n", want: ok(head{length: -1, json: true, gzip: true})},
		{in: "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n", want: ok(head{length: -1, encoding: "br"})},
		{in: "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Encoding: gzip\r\n\r\n", want: ok(head{length: -1, gzip: true, encoding: "gzip"})},
		{in: "HTTP/1.1 429 Too Many\r\nRetry-After: 2\r\nRetry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\n\r\n", want: head{status: 429, length: -1, retryAfter: "2, Wed, 21 Oct 2026 07:28:00 GMT"}},
		{in: "HTTP/1.1 200 OK\r\nRetry-After: 2\r\n\r\n", want: ok(head{length: -1})},

		{in: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", err: "more than one Content-Length"},
		{in: "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n", err: "not a number"},
		{in: "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", err: "not a number"},
		{in: "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", err: "not a number"},
		{in: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", err: "both"},
		{in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", err: "other than chunked"},
		{in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", err: "other than chunked"},
		{in: "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", err: "HTTP/1.0"},
		{in: "HTTP/1.1 200 OK\nContent-Length: 5\n\n", err: "LF without CR"},
		{in: "HTTP/1.1 200 OK\r\nA: b\n\r\n", err: "LF without CR"},
		{in: "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", err: "not a field"},
		{in: "HTTP/1.1 200 OK\r\nA : b\r\n\r\n", err: "not a field"},
		{in: "HTTP/1.1 200 OK\r\nAb\r\n\r\n", err: "not a field"},
		{in: "HTTP/1.1 200 OK\r\n: b\r\n\r\n", err: "not a field"},
		{in: "HTTP/1.1 200 OK\r\nA: b\x00c\r\n\r\n", err: "control character"},
		{in: "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", err: "control character"},
		{in: "HTTP/2 200\r\n\r\n", err: "status line"},
		{in: "HTTP/1.1 20 OK\r\n\r\n", err: "status line"},
		{in: "HTTP/1.1 2000 OK\r\n\r\n", err: "status line"},
		{in: "HTTP/1.1 099 OK\r\n\r\n", err: "status line"},
		{in: "SSH-2.0-OpenSSH_9.2\r\n\r\n", err: "status line"},
		{in: "\r\n\r\n", err: "status line"},
		{in: "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", 100) + "\r\n", want: ok(head{length: -1})},
		{in: "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", 101) + "\r\n", err: "more than 100 fields"},
		{in: "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("b", maxHead) + "\r\n\r\n", err: "more than 65536 bytes"},
		{in: "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("b", maxHead+1), err: "more than 65536 bytes"},
	} {
		got, n, err := readHeadOf([]byte(tt.in))
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%.80q: error %v, want one with %q", tt.in, err, tt.err)
			}
			continue
		}
		if err != nil || n != len(tt.in) {
			t.Errorf("%.80q: read %d of %d bytes, %v", tt.in, n, len(tt.in), err)
		}
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(head{})); diff != "" {
			t.Errorf("%.80q (-want +got):\n%s", tt.in, diff)
		}
	}
}

// checkHead holds that an accepted head is one to net/http too, with the same
// framing, and that the end is found wherever the input is cut.
func checkHead(t testing.TB, in []byte) {
	t.Helper()
	h, n, err := readHeadOf(in)
	from := 0
	for i := range in { // as it comes, byte by byte
		end, next, e := headEnd(in[:i+1], from)
		if e != nil {
			if err == nil {
				t.Errorf("%q: accepted whole, but refused byte by byte: %v", in, e)
			}
			return
		}
		if end > 0 {
			if err == nil && end != n {
				t.Errorf("%q: ends at %d whole, at %d byte by byte", in, n, end)
			}
			break
		}
		from = next
	}
	if err != nil || n == 0 {
		return
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(in[:n])), &http.Request{Method: "POST"})
	if err != nil {
		t.Errorf("%q: accepted, but net/http says %v", in[:n], err)
		return
	}
	length := h.length
	if h.chunked {
		length = -1
	}
	if bodyless := h.status < 200 || h.status == 204 || h.status == 304; !bodyless && resp.ContentLength != length {
		t.Errorf("%q: length %d, net/http says %d", in[:n], length, resp.ContentLength)
	}
	if resp.StatusCode != h.status || len(resp.TransferEncoding) > 0 != h.chunked {
		t.Errorf("%q: status %d chunked %v, net/http says %d %v", in[:n], h.status, h.chunked, resp.StatusCode, resp.TransferEncoding)
	}
}

func FuzzResponseHead(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
		"HTTP/1.0 404 Not Found\r\nA: b\r\n\r\nbody", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\nA: b\n\n", "HTTP/1.1 429 X\r\nRetry-After: 2\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) { checkHead(t, in) })
}

// dechunk undoes chunked coding with the input cut at random.
func dechunk(in []byte, rng *rand.Rand) (body []byte, rest int, done bool, err error) {
	var c chunked
	pos := 0
	for pos < len(in) && !c.done() {
		n := 1 + rng.IntN(len(in)-pos)
		for p := in[pos : pos+n]; ; {
			data, left, err := c.next(p)
			if err != nil {
				return body, 0, false, err
			}
			body = append(body, data...)
			if p = left; len(p) == 0 || c.done() {
				pos += n - len(p)
				break
			}
		}
	}
	return body, len(in) - pos, c.done(), nil
}

func TestChunked(t *testing.T) {
	for _, tt := range []struct {
		in, want string
		rest     int
		done     bool
		fails    bool
	}{
		{in: "5\r\nhello\r\n0\r\n\r\n", want: "hello", done: true},
		{in: "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\nmore", want: "hello world", rest: 4, done: true},
		{in: "A;ext=1; b=\"c\"\r\n0123456789\r\n00 \r\nTrailer: x\r\nOther: y\r\n\r\n", want: "0123456789", done: true},
		{in: "a\r\n01234", want: "01234"},
		{in: "0\r\n\r\n", done: true},
		{in: "5\r\nhello\r\n", want: "hello"},
		{in: "\r\n", fails: true},
		{in: "g\r\n", fails: true},
		{in: "-1\r\n", fails: true},
		{in: "0x5\r\nhello\r\n", fails: true},
		{in: "5\nhello\n0\n\n", fails: true},
		{in: "5\r\nhelloX\r\n", want: "hello", fails: true},
		{in: "5\r\nhello\n", want: "hello", fails: true},
		{in: "5;a\nb\r\nhello\r\n", fails: true},
		{in: "1000000000000000\r\n", fails: true},
		{in: "5;" + strings.Repeat("x", maxExtension+1) + "\r\nhello\r\n", fails: true},
		{in: "0\r\n" + strings.Repeat("A: b\r\n", maxTrailer/4+1) + "\r\n", fails: true},
	} {
		rng := rand.New(rand.NewPCG(1, 1))
		for range 50 {
			body, rest, done, err := dechunk([]byte(tt.in), rng)
			if string(body) != tt.want || rest != tt.rest || done != tt.done || (err != nil) != tt.fails {
				t.Errorf("%.60q: body %q, rest %d, done %v, %v", tt.in, body, rest, done, err)
				break
			}
		}
	}
}

// FuzzChunked holds that the result does not depend on the cuts, and that
// net/http's reader accepts what is accepted, with the same body.
// blankBeforeExtension is a size of a chunk with a blank between it and its extension.
var blankBeforeExtension = regexp.MustCompile(`[0-9a-fA-F][ \t]+;`)

func FuzzChunked(f *testing.F) {
	for _, s := range []string{"5\r\nhello\r\n0\r\n\r\n", "5;x=y\r\nhello\r\n0\r\nA: b\r\n\r\nrest", "ffffffffffffff\r\n", "0\r\n\r\n", "1 \r\na\r\n", "1 ;x\r\na\r\n0 ;\r\n\r\n"} {
		f.Add([]byte(s), uint64(1))
	}
	f.Fuzz(func(t *testing.T, in []byte, cuts uint64) {
		body, rest, done, err := dechunk(in, rand.New(rand.NewPCG(cuts, 0)))
		whole, rest2, done2, err2 := dechunk(in, rand.New(rand.NewPCG(cuts+1, 1)))
		if done != done2 || (err != nil) != (err2 != nil) || rest != rest2 || !bytes.Equal(body, whole) {
			t.Errorf("%q: cut in two ways: %q %v %v, %q %v %v", in, body, done, err, whole, done2, err2)
		}
		if !done {
			return
		}
		want, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(in)))
		if err != nil && blankBeforeExtension.Match(in) {
			return // RFC 9112, 7.1.1, wants the blank read and dropped; net/http refuses it
		}
		if err != nil || !bytes.Equal(want, body) {
			t.Errorf("%q: body %q; net/http says %q, %v", in, body, want, err)
		}
	})
}

package llm

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/assay-llm/assay/record"
)

// ErrPlanned is how a request ends by Request.LeaveSent or LeaveAfter, and the cause (context.WithCancelCause) of a cancellation that the
// workload asked for: the outcome is then client_cancelled. Any other cause,
// also none, is the end of the run: interrupted.
var ErrPlanned = errors.New("cancelled as planned")

// failure is an error that knows the class in which its request ends.
type failure struct {
	outcome record.Outcome
	err     error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func fail(o record.Outcome, format string, args ...any) error {
	return &failure{o, fmt.Errorf(format, args...)}
}

// Errors of the wire that become different outcomes by the state of the answer.
var (
	errStall = errors.New("no byte from the server for the stall limit")
	errTotal = errors.New("not done by the deadline of the request")
	errLost  = errors.New("the connection ended inside the answer")
)

// outcomeOf gives the class of an error that ended a request. Payload tells
// whether output had arrived. What broke because of our own cancellation is not
// the server's fault.
func outcomeOf(ctx context.Context, err error, payload bool) record.Outcome {
	if errors.Is(err, ErrPlanned) {
		return record.ClientCancelled
	}
	cancelled := record.Interrupted
	if errors.Is(context.Cause(ctx), ErrPlanned) {
		cancelled = record.ClientCancelled
	}
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return cancelled
	}
	for _, e := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EADDRNOTAVAIL} {
		if errors.Is(err, e) {
			return record.ClientFault
		}
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f.outcome
	}
	switch {
	case errors.Is(err, errStall):
		return record.StallTimeout
	case errors.Is(err, errTotal):
		return record.TotalTimeout
	case errors.Is(err, ErrEventTooLarge):
		return record.EventTooLarge
	case isGoaway(err):
		return record.Goaway
	case isLost(err) && ctx.Err() != nil:
		return cancelled
	case isLost(err) && payload:
		return record.ResetMid
	case isLost(err):
		return record.ResetBefore
	}
	return record.Malformed
}

func isLost(err error) bool {
	if errors.Is(err, errLost) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed) {
		return true
	}
	_, op := errors.AsType[*net.OpError](err)
	_, no := errors.AsType[syscall.Errno](err)
	return op || no
}

// isGoaway knows net/http's HTTP/2 errors by their text: their types are not
// exported.
func isGoaway(err error) bool {
	s := err.Error()
	return strings.Contains(s, "GOAWAY") || strings.Contains(s, "REFUSED_STREAM") || strings.Contains(s, "http2: Transport: cannot retry err")
}

// dialFailure classes an error of name, connection or handshake.
func dialFailure(err error) error {
	if _, ok := errors.AsType[*failure](err); ok {
		return err
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return &failure{record.DNS, err}
	}
	return &failure{record.Dial, err}
}

func isTLS(err error) bool {
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	_, verify := errors.AsType[*tls.CertificateVerificationError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	return record || alert || verify || host || unknown || strings.Contains(err.Error(), "tls: ")
}

func isTimeout(err error) bool {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}

// maxDetail bounds Detail and Code of a record, in bytes.
const maxDetail = 512

// printable makes text of a server fit for a terminal and a table: one line,
// valid UTF-8, control characters escaped, at most maxDetail bytes.
func printable(s string) string {
	if len(s) <= maxDetail && fieldValue(s) && strings.IndexFunc(s, func(r rune) bool { return r == '\t' || r >= utf8.RuneSelf }) < 0 {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		if b.Len() > maxDetail-16 {
			b.WriteString("…")
			break
		}
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r < ' ' || r >= 0x7f && r < 0xa0:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r == '\u2028' || r == '\u2029' || r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == '\ufeff':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

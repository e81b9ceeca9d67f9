package llm

import (
	"bytes"
	"errors"
	"fmt"
)

// Limits of a response head.
const (
	maxHead   = 64 << 10
	maxFields = 100
)

// head is what matters of a response's status line and fields.
type head struct {
	status     int
	length     int64 // Content-Length; −1: not given
	chunked    bool
	closes     bool // the connection ends with this answer
	sse, json  bool // by Content-Type
	gzip       bool
	encoding   string // a content coding that is not supported
	retryAfter string // as sent; kept for statuses of 400 and more
	told       told
}

// headEnd looks for the empty line that ends a head, in b from the offset where
// the last call stopped. End is 0 as long as there is none.
func headEnd(b []byte, from int) (end, next int, err error) {
	for i := from; ; {
		lf := bytes.IndexByte(b[i:], '\n')
		if lf < 0 {
			if len(b) > maxHead {
				return 0, 0, fmt.Errorf("a response head of more than %d bytes", maxHead)
			}
			return 0, i, nil
		}
		lf += i
		if lf == 0 || b[lf-1] != '\r' {
			return 0, 0, errors.New("a line of the response head ends in LF without CR")
		}
		if lf+1 > maxHead {
			return 0, 0, fmt.Errorf("a response head of more than %d bytes", maxHead)
		}
		if lf == i+1 {
			return lf + 1, 0, nil
		}
		i = lf + 1
	}
}

// parseHead reads a whole head, up to and with its empty line, as RFC 9112
// demands, and stricter where leniency has led to smuggling: no folded lines, no
// space before a colon, one length at most, no length beside a transfer coding.
func parseHead(b []byte) (h head, err error) {
	h.length = -1
	line, b := cutLine(b)
	old, err := h.statusLine(line)
	if err != nil {
		return h, err
	}
	h.closes = old
	for fields := 0; ; fields++ {
		if line, b = cutLine(b); len(line) == 0 {
			break
		}
		if fields == maxFields {
			return h, fmt.Errorf("more than %d fields in the response head", maxFields)
		}
		colon := bytes.IndexByte(line, ':')
		if colon < 0 || !token(line[:colon]) {
			return h, errors.New("a line of the response head is not a field")
		}
		value := bytes.Trim(line[colon+1:], " \t")
		if !fieldValue(value) {
			return h, errors.New("a control character in the response head")
		}
		if err := h.field(line[:colon], value); err != nil {
			return h, err
		}
	}
	switch {
	case h.chunked && h.length >= 0:
		return h, errors.New("both Content-Length and Transfer-Encoding in the response")
	case h.chunked && old:
		return h, errors.New("Transfer-Encoding in an HTTP/1.0 response")
	}
	if h.status < 400 {
		h.retryAfter = ""
	}
	return h, nil
}

func cutLine(b []byte) (line, rest []byte) {
	i := bytes.Index(b, []byte("\r\n"))
	if i < 0 {
		return nil, nil
	}
	return b[:i], b[i+2:]
}

var errStatusLine = errors.New("not an HTTP/1.1 status line; is this an HTTP server?")

// statusLine parses "HTTP/1.1 200 OK"; old tells HTTP/1.0.
func (h *head) statusLine(line []byte) (old bool, err error) {
	if len(line) < len("HTTP/1.1 200") || string(line[:7]) != "HTTP/1." || line[8] != ' ' || line[7] != '0' && line[7] != '1' {
		return false, errStatusLine
	}
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return false, errStatusLine
		}
		h.status = h.status*10 + int(c-'0')
	}
	if h.status < 100 || len(line) > 12 && line[12] != ' ' || !fieldValue(line[9:]) {
		return false, errStatusLine
	}
	return line[7] == '0', nil
}

func (h *head) field(name, value []byte) error {
	if len(name) > 2 && name[0]|0x20 == 'x' && name[1] == '-' {
		h.told.field(name, value)
		return nil
	}
	switch len(name) { // most fields are skipped by their length alone
	case len("Connection"):
		if is(name, "connection") && hasToken(value, "close") {
			h.closes = true
		}
	case len("Retry-After"):
		if is(name, "retry-after") && len(h.retryAfter) < 128 {
			if h.retryAfter != "" {
				h.retryAfter += ", "
			}
			h.retryAfter += string(value[:min(len(value), 128)])
		}
	case len("Content-Type"):
		if is(name, "content-type") {
			media, _, _ := bytes.Cut(value, []byte(";"))
			media = bytes.TrimSpace(media)
			h.sse = is(media, "text/event-stream")
			h.json = is(media, "application/json") || is(media[max(0, len(media)-len("+json")):], "+json")
		}
	case len("Content-Length"):
		if is(name, "content-length") {
			n, ok := digits(value)
			if !ok {
				return errors.New("a Content-Length that is not a number")
			}
			if h.length >= 0 {
				return errors.New("more than one Content-Length")
			}
			h.length = n
		}
	case len("Content-Encoding"):
		if is(name, "content-encoding") {
			switch {
			case is(value, "identity") || len(value) == 0:
			case (is(value, "gzip") || is(value, "x-gzip")) && !h.gzip && h.encoding == "":
				h.gzip = true
			default:
				h.encoding = string(value[:min(len(value), 64)])
			}
		}
	case len("Transfer-Encoding"):
		if is(name, "transfer-encoding") {
			if h.chunked || !is(value, "chunked") {
				return errors.New("a Transfer-Encoding other than chunked")
			}
			h.chunked = true
		}
	}
	return nil
}

// is compares to a lower-case ASCII word without regard to case.
func is(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// hasToken reports whether a comma-separated list holds the word.
func hasToken(list []byte, lower string) bool {
	for len(list) > 0 {
		var item []byte
		item, list, _ = bytes.Cut(list, []byte(","))
		if is(bytes.Trim(item, " \t"), lower) {
			return true
		}
	}
	return false
}

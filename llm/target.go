package llm

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The protocols that a Target names.
const (
	ProtocolHTTP1 = "http/1.1" // this package's own client; the default
	ProtocolHTTP2 = "h2"       // net/http's HTTP/2: over TLS for https, with prior knowledge for http
)

// Target says whom a Client asks, and how. Only URL is required; the zero value
// of every other field works.
type Target struct {
	URL        string            // http://host:port, with or without /v1 or the full path
	API        string            // APIChat (default), or another of the API constants
	Template   *Template         // of APITemplate
	Model      string            // "" leaves the field out of requests
	Key        string            // sent as Authorization: Bearer; never shown
	Headers    map[string]string // added to every request; they cannot replace the client's own
	Protocol   string            // "" or ProtocolHTTP1, or ProtocolHTTP2
	Proxy      string            // http(s)://host:port; "": none, the environment is not asked
	CA         []byte            // PEM certificates to trust instead of the system's
	SkipVerify bool              // accept any certificate

	NoUsage          bool // do not ask for usage in streams (stream_options.include_usage)
	TokensFromEvents bool // a server without usage sends one token an event: count events

	// Dial opens connections; nil: a net.Dialer. Connections that are not TCP
	// sockets work, without kernel stamps.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	Timeout     time.Duration // of a whole request from the call of Do; 0: 10 minutes; negative: none
	Stall       time.Duration // without a byte from the server; 0: 2 minutes; negative: none
	DialTimeout time.Duration // of name, connection and handshake; 0: 10 seconds

	MaxEvent    int           // bytes of one event; 0: DefaultMaxEvent
	MaxBody     int64         // bytes of a whole answer; 0: 64 MiB
	MaxIdle     int           // kept connections; 0: 16,384
	IdleTimeout time.Duration // age at which a kept connection is closed instead of used; 0: 90 seconds
	KeepText    int           // bytes of generated text that an Answer holds; 0: 1 MiB; negative: none

	speak *dialect // of the API, once known
}

// withDefaults returns the target with every zero limit replaced.
func (t Target) withDefaults() Target {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
		*d = max(*d, 0)
	}
	set(&t.Timeout, 10*time.Minute)
	set(&t.Stall, 2*time.Minute)
	set(&t.DialTimeout, 10*time.Second)
	set(&t.IdleTimeout, 90*time.Second)
	if t.API == "" {
		t.API = APIChat
	}
	t.speak = t.dialect()
	if t.MaxEvent <= 0 {
		t.MaxEvent = DefaultMaxEvent
	}
	if t.MaxBody <= 0 {
		t.MaxBody = 64 << 20
	}
	if t.MaxIdle <= 0 {
		t.MaxIdle = 16 << 10
	}
	if t.KeepText == 0 {
		t.KeepText = 1 << 20
	}
	t.KeepText = max(t.KeepText, 0)
	if t.Dial == nil {
		t.Dial = new(net.Dialer).DialContext
	}
	return t
}

// Validate reports every fault of the target at once.
func (t Target) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if _, err := parseURL(t.URL); err != nil {
		faults = append(faults, err)
	}
	if t.API != "" && !slices.Contains(apis, t.API) {
		fault("api %q: want one of %s", t.API, strings.Join(apis, ", "))
	}
	switch {
	case t.API == APITemplate && t.Template == nil:
		fault("template: it is missing; say what to send and where in an answer to look")
	case t.API != APITemplate && t.Template != nil:
		fault("template: it goes with api %s only", APITemplate)
	case t.Template != nil:
		if err := t.Template.Validate(); err != nil {
			for line := range strings.Lines(err.Error()) {
				fault("template: %s", strings.TrimSpace(line))
			}
		}
	}
	if t.Protocol != "" && t.Protocol != ProtocolHTTP1 && t.Protocol != ProtocolHTTP2 {
		fault("protocol %q: want %s or %s", t.Protocol, ProtocolHTTP1, ProtocolHTTP2)
	}
	if t.Proxy != "" {
		if u, err := url.Parse(t.Proxy); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			fault("proxy: want http://host:port or https://host:port")
		} else if t.Protocol == ProtocolHTTP2 && strings.HasPrefix(t.URL, "http://") {
			fault("proxy: HTTP/2 without TLS does not pass a proxy; use https or protocol %s", ProtocolHTTP1)
		}
	}
	if !fieldValue(t.Key) || strings.TrimSpace(t.Key) != t.Key {
		fault("key: it holds a space at an end or a control character, such as the line break at the end of a file")
	}
	for _, name := range slices.Sorted(maps.Keys(t.Headers)) {
		if t.Key != "" && t.credential(name) {
			fault("header %s: there is a key too, which is sent in it; give one of them", name)
		}
		if err := checkHeader(name, t.Headers[name]); err != nil {
			faults = append(faults, err)
		}
	}
	if len(t.CA) > 0 && !x509.NewCertPool().AppendCertsFromPEM(t.CA) {
		fault("ca: no PEM certificate in it")
	}
	return errors.Join(faults...)
}

// credential reports whether the key is sent in a field of this name.
func (t *Target) credential(name string) bool {
	d := dialectOf(t.API, "")
	return d != nil && slices.ContainsFunc(d.auth(t), func(f [2]string) bool { return strings.EqualFold(f[0], name) })
}

// ownHeaders are the fields that the client alone sets: those that frame the
// message or belong to one hop, and those that the measurement depends on.
var ownHeaders = []string{
	"Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Te", "Trailer", "Connection", "Keep-Alive", "Proxy-Connection",
	"Proxy-Authorization", "Upgrade", "Expect", "Accept-Encoding", "Accept", "X-Request-Id",
}

func checkHeader(name, value string) error {
	if name == "" || !token(name) {
		return fmt.Errorf("header %q: not a field name", name)
	}
	if !fieldValue(value) {
		return fmt.Errorf("header %s: its value holds a control character", name)
	}
	if slices.Contains(ownHeaders, textproto.CanonicalMIMEHeaderKey(name)) {
		return fmt.Errorf("header %s: the client sets it itself; leave it out", name)
	}
	return nil
}

var tokenBytes = func() (is [256]bool) {
	for c := range is {
		is[c] = c > ' ' && c < 0x7f && !strings.ContainsRune(`"(),/:;<=>?@[\]{}`, rune(c))
	}
	return is
}()

// token reports whether s is a token of RFC 9110, section 5.6.2.
func token[T string | []byte](s T) bool {
	for i := range len(s) {
		if !tokenBytes[s[i]] {
			return false
		}
	}
	return len(s) > 0
}

// fieldValue reports whether s may stand in a header field: no control
// characters but tab.
func fieldValue[T string | []byte](s T) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return nil, errors.New("url: it is missing; give http://host:port of an OpenAI-compatible server")
	case err != nil:
		return nil, errors.New("url: not a URL; give http://host:port of an OpenAI-compatible server")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("url: scheme %q; want http:// or https://", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("url: no host in it")
	case u.User != nil:
		return nil, errors.New("url: it holds a password; give it as the key or a header")
	case u.Fragment != "":
		return nil, errors.New("url: a fragment (#…) is never sent; leave it out")
	}
	return u, nil
}

// hostPort returns the address to dial.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

func (t Target) tlsConfig(host string) *tls.Config {
	c := &tls.Config{
		ServerName:         host,
		InsecureSkipVerify: t.SkipVerify, //nolint:gosec // the user's explicit choice, off by default
		MinVersion:         tls.VersionTLS12,
		ClientSessionCache: tls.NewLRUClientSessionCache(64),
	}
	if len(t.CA) > 0 {
		c.RootCAs = x509.NewCertPool()
		c.RootCAs.AppendCertsFromPEM(t.CA)
	}
	return c
}

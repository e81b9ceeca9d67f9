package baseline

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/assay-llm/assay/config"
)

// An Address says where a registry is: the path of an SQLite file, or
// postgres://user:password@host:port/database. Its password is shown nowhere. The
// zero Address is no place.
type Address struct {
	path string   // of an SQLite file; "": not one
	url  *url.URL // of a PostgreSQL database; nil: not one
	from string   // the reference that it came from; "": it was written out
}

// Locate reads an address: a path, a URL, or a reference to one of them: env:NAME
// or file:PATH.
func Locate(text string, getenv func(string) string) (Address, error) {
	var a Address
	if IsReference(text) {
		secret, err := config.ParseSecret(text)
		if err != nil {
			return a, fmt.Errorf("reading the address of the registry: %w", err)
		}
		if getenv == nil {
			getenv = func(string) string { return "" }
		}
		a.from = text
		if text, err = secret.Resolve(getenv, os.ReadFile); err != nil {
			return a, fmt.Errorf("reading the address of the registry: %w", err)
		}
		if IsReference(text) {
			return a, fmt.Errorf("the address of the registry, %s, refers to another reference\n  hint: put the path or the URL itself there", a.from)
		}
	}
	scheme, _, is := strings.Cut(text, "://")
	switch {
	case text == "":
		return a, errors.New("the address of the registry is empty\n  hint: name a file such as runs/baselines.db, or postgres://host/database")
	case !is:
		a.path = text
		return a, nil
	case scheme != "postgres" && scheme != "postgresql":
		return a, fmt.Errorf("the registry is at %.20q, which is neither a file nor PostgreSQL\n  hint: name a file such as runs/baselines.db, or postgres://host/database", scheme+"://")
	}
	u, err := url.Parse(text)
	if err != nil || strings.ContainsAny(text, "\x00\n\r") {
		// The error of url.Parse quotes the URL with its password.
		return a, errors.New("the address of the registry is not a URL\n  hint: write postgres://user@host:port/database; percent-encode odd characters of the password")
	}
	a.url = u
	return a, nil
}

// IsReference reports whether the text refers to an address that stands elsewhere.
func IsReference(text string) bool {
	return strings.HasPrefix(text, "env:") || strings.HasPrefix(text, "file:") && !strings.HasPrefix(text, "file://")
}

// HasPassword reports whether the address itself holds a password.
func (a Address) HasPassword() bool { return len(a.secrets()) > 0 }

// String shows the address without its password; one that was referred to, by the
// reference.
func (a Address) String() string {
	switch {
	case a.from != "":
		return a.from
	case a.url == nil:
		return a.path
	}
	u := *a.url
	if q := u.Query(); q.Has("password") {
		q.Set("password", "xxxxx")
		u.RawQuery = q.Encode()
	}
	return u.Redacted()
}

// secrets are the texts that no message may have in it.
func (a Address) secrets() []string {
	if a.url == nil {
		return nil
	}
	var out []string
	if p, ok := a.url.User.Password(); ok {
		out = append(out, p, url.QueryEscape(p), url.PathEscape(p))
	}
	for key, values := range a.url.Query() {
		if strings.Contains(key, "password") {
			out = append(out, values...)
		}
	}
	var some []string
	for _, s := range out {
		if s != "" {
			some = append(some, s)
		}
	}
	return some
}

// hide takes the secrets out of an error of the driver. The error that wraps them is
// lost on purpose.
func (a Address) hide(err error) error {
	if err == nil || !a.HasPassword() && a.from == "" {
		return err
	}
	text := err.Error()
	secrets := a.secrets()
	if a.from != "" && a.url != nil {
		secrets = append(secrets, a.url.String())
	}
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, "xxxxx")
	}
	return errors.New(text)
}

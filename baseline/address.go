package baseline

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
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
	case connection(text):
		return a, errors.New("the address of the registry is a connection string, which may hold a password and is not shown\n  hint: write postgres://user:password@host:port/database into an environment variable, and env:NAME here")
	case text == "":
		return a, errors.New("the address of the registry is empty\n  hint: name a file such as runs/baselines.db, or postgres://host/database")
	case !is:
		a.path = text
		return a, nil
	case scheme != "postgres" && scheme != "postgresql":
		return a, fmt.Errorf("the registry is at %.20q, which is neither a file nor PostgreSQL\n  hint: name a file such as runs/baselines.db, or postgres://host/database", scheme+"://")
	}
	u, err := url.Parse(text)
	if err != nil || strings.ContainsAny(text, "\x00\n\r") || torn(u) {
		// The error of url.Parse quotes the URL with its password.
		return a, errors.New("the address of the registry is not a URL\n  hint: write postgres://user@host:port/database; percent-encode odd characters of the password")
	}
	a.url = u
	return a, nil
}

// keyword finds a name of libpq's connection strings before an equals sign, and
// userinfo the name and password of a URL that has no scheme.
var (
	keyword  = regexp.MustCompile(`(?i)(^|[\s;'"])(host|hostaddr|port|dbname|database|user|username|passfile|service|\w*password|\w*passwd|pwd|ssl\w+)\s*=`)
	userinfo = regexp.MustCompile(`^[^/\\@]+:[^/\\@]+@`)
)

// connection reports whether a text is meant for a driver and is no URL: as a path it
// would be shown, with its password.
func connection(text string) bool {
	scheme, rest, _ := strings.Cut(strings.ToLower(strings.TrimSpace(text)), ":")
	if (scheme == "postgres" || scheme == "postgresql") && !strings.HasPrefix(rest, "//") {
		return true
	}
	before, _, _ := strings.Cut(text, "://")
	return keyword.MatchString(before) || userinfo.MatchString(text) && !strings.HasPrefix(rest, "//")
}

// torn reports whether an odd character of a password may have cut the URL in two, so
// that the rest of it stands where it would be shown.
func torn(u *url.URL) bool {
	q, err := url.ParseQuery(u.RawQuery)
	for key := range q {
		if strings.Contains(key, "@") {
			return true
		}
	}
	return err != nil || u.Fragment != "" || strings.Contains(u.Path, "@")
}

// IsReference reports whether the text refers to an address that stands elsewhere.
func IsReference(text string) bool {
	return strings.HasPrefix(text, "env:") || strings.HasPrefix(text, "file:") && !strings.HasPrefix(text, "file://")
}

// HasPassword reports whether the address itself holds a password.
func (a Address) HasPassword() bool { return len(a.secrets()) > 0 }

// String shows the address without user, password and options; one that was referred
// to, by the reference.
func (a Address) String() string {
	switch {
	case a.from != "":
		return a.from
	case a.url == nil:
		return a.path
	}
	u := *a.url
	if u.User != nil {
		u.User = url.User(hidden)
	}
	if u.RawQuery != "" {
		u.RawQuery = hidden
	}
	return u.String()
}

// hidden stands for what is not shown.
const hidden = "xxxxx"

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
		if strings.Contains(strings.ToLower(key), "password") {
			for _, v := range values {
				out = append(out, v, url.QueryEscape(v), url.PathEscape(v))
			}
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
	if a.url != nil {
		text = strings.ReplaceAll(text, a.url.String(), a.String())
	}
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, hidden)
	}
	return errors.New(text)
}

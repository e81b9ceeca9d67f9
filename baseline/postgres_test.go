package baseline

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// serverVariable holds the URL of a server for tests; see scripts/postgres/run.sh.
const serverVariable = "ASSAY_POSTGRES"

func server(t *testing.T) *url.URL {
	t.Helper()
	text := os.Getenv("ASSAY_POSTGRES")
	if text == "" {
		t.Skipf("%s is not set: make test-postgres starts a server", serverVariable)
	}
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

var schemas atomic.Int64

// freshSchema gives each test a schema of its own.
func freshSchema(t *testing.T) Address {
	u := server(t)
	name := fmt.Sprintf("assay_%d_%d", os.Getpid(), schemas.Add(1))
	db, err := sql.Open("pgx", u.String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "CREATE SCHEMA "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = db.Exec("DROP SCHEMA " + name + " CASCADE")
		_ = db.Close()
	})
	mine := *u
	q := mine.Query()
	q.Set("search_path", name)
	mine.RawQuery = q.Encode()
	return Address{url: &mine}
}

func TestPostgres(t *testing.T) {
	server(t)
	conform(t, freshSchema)
}

// TestPostgresHidesThePassword: whatever the server says, the password is in no
// message.
func TestPostgresHidesThePassword(t *testing.T) {
	u := server(t)
	for name, change := range map[string]func(*url.URL){
		"wrong password": func(u *url.URL) { u.User = url.UserPassword("assay", "s3cr%t wrong") },
		"no such base":   func(u *url.URL) { u.Path = "/nowhere" },
		"no server":      func(u *url.URL) { u.RawQuery = "host=/nonexistent" },
		"bad option":     func(u *url.URL) { u.RawQuery += "&connect_timeout=soon" },
	} {
		mine := *u
		change(&mine)
		password, _ := mine.User.Password()
		t.Setenv("REGISTRY_URL", mine.String())
		for _, text := range []string{mine.String(), "env:REGISTRY_URL"} {
			at, err := Locate(text, os.Getenv)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Open(t.Context(), at)
			if err == nil || !strings.Contains(err.Error(), "hint: ") {
				t.Errorf("%s: %v; want an error with a next step", name, err)
				continue
			}
			for _, secret := range []string{password, url.QueryEscape(password), url.PathEscape(password)} {
				if strings.Contains(err.Error(), secret) || strings.Contains(at.String(), secret) {
					t.Errorf("%s: the password is shown: %v", name, err)
				}
			}
		}
	}
}

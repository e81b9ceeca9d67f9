package baseline

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestForeignFiles: what is not a registry, or a damaged one, is refused with a next
// step, and left byte for byte as it is.
func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.db")
	r, err := Create(t.Context(), Address{path: good})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 40 {
		mustAdd(t, r, made(chat, n, 1000, 500))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "other.db")
	db, err := sql.Open("sqlite", other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE bills (id INTEGER); INSERT INTO bills VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	foreign, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"text":           []byte("version: 1\nvalues: {}\n"),
		"long text":      bytes.Repeat([]byte("no database at all\n"), 1000),
		"of another":     foreign,
		"cut in half":    whole[:len(whole)/2],
		"cut after 1000": whole[:1000],
		"header only":    whole[:100],
		"noise":          append(append(bytes.Clone(whole[:200]), bytes.Repeat([]byte{0xa5}, 9000)...), whole[9200:]...),
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".db")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Create(t.Context(), Address{path: path})
		if err == nil {
			_, err = r.List(t.Context())
			_ = r.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "hint: ") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v; want an error with the path and a next step", name, err)
		}
		after, failed := os.ReadFile(path)
		if failed != nil || !bytes.Equal(after, data) {
			t.Errorf("%s: the file is changed: %d bytes, were %d (%v)", name, len(after), len(data), failed)
		}
	}
}

func TestNoFile(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(t.Context(), Address{path: filepath.Join(dir, "none.db")})
	if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "assay baseline add") {
		t.Errorf("Open of nothing: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "none.db")); err == nil {
		t.Error("Open makes a file")
	}
	if _, err := Create(t.Context(), Address{path: dir}); err == nil || !strings.Contains(err.Error(), "no plain file") {
		t.Errorf("Create of a folder: %v", err)
	}
	empty := filepath.Join(dir, "empty.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	create(t, Address{path: empty})
}

func TestLocate(t *testing.T) {
	getenv := func(name string) string {
		return map[string]string{"REGISTRY": "postgres://bob:s3cr%40t@db.example:5433/bench?sslmode=require", "FILE": "runs/b.db", "LOOP": "env:LOOP", "DSN": "host=db password=s3cret"}[name]
	}
	for text, want := range map[string]string{
		"runs/baselines.db":                            "runs/baselines.db",
		"env:FILE":                                     "env:FILE",
		"env:REGISTRY":                                 "env:REGISTRY",
		"postgres://bob@db/bench":                      "postgres://xxxxx@db/bench",
		"postgresql://bob:s3cr%40t@db/bench":           "postgresql://xxxxx@db/bench",
		"postgres://db/bench?user=bob&password=s3cr@t": "postgres://db/bench?xxxxx",
		"postgres://b@db/bench?sslpassword=s3cr":       "postgres://xxxxx@db/bench?xxxxx",
		"postgres://db/bench?PassWord=s3cr":            "postgres://db/bench?xxxxx",
		"runs/host=a.db":                               "runs/host=a.db",
	} {
		a, err := Locate(text, getenv)
		if err != nil || a.String() != want {
			t.Errorf("Locate(%q) is shown as %q, %v; want %q", text, a, err, want)
		}
		if got := strings.Contains(text, "s3cr") || text == "env:REGISTRY"; got != a.HasPassword() {
			t.Errorf("Locate(%q).HasPassword() = %t", text, a.HasPassword())
		}
	}
	for text, want := range map[string]string{
		"":                                  "empty",
		"env:LOOP":                          "another reference",
		"env:NOTHING":                       "NOTHING",
		"mysql://root:s3cret@db/x":          "neither",
		"postgres://bob:s3cret@[::1/x":      "not a URL",
		"postgres://bob:s3cret%zz@db/bench": "not a URL",
		"file:/nonexistent/url":             "file",
		"host=db.example password=s3cret":   "env:NAME",
		"password = 's3cret' host = db":     "env:NAME",
		"user=bob sslpassword=s3cret":       "env:NAME",
		"DBNAME=x PASSWORD=s3cret":          "env:NAME",
		"\tpassword=s3cret":                 "env:NAME",
		"env:DSN":                           "env:NAME",
		"password=s3cret postgres://db/x":   "env:NAME",
		"bob:s3cret@db://x":                 "env:NAME",
		"bob:s3cret@db/x":                   "env:NAME",
		"postgres:bob:s3cret@db/x":          "env:NAME",
		"postgres:/bob:s3cret@db/x":         "env:NAME",
		"postgres://bob:12/s3cret@db/x":     "not a URL",
		"postgres://bob:12#s3cret@db/x":     "not a URL",
		"postgres://bob:12?s3cret@db/x":     "not a URL",
		"postgres://db/x?password=s3cret;a": "not a URL",
	} {
		_, err := Locate(text, getenv)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("Locate(%q): %v; want %q and no password", text, err, want)
		}
	}
}

package baseline

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// Registry is an open registry. It may be used by several goroutines and
// processes at once. The zero Registry is of no use: see Open and Create.
type Registry struct {
	db      *sql.DB
	dialect goose.Dialect
	at      Address
}

// ErrNone says that there is no registry at an address.
var ErrNone = errors.New("there is no registry")

// Open opens a registry that exists. Of a file that does not, the error is ErrNone.
func Open(ctx context.Context, at Address) (*Registry, error) { return open(ctx, at, false) }

// Create opens a registry, and makes it if there is none.
func Create(ctx context.Context, at Address) (*Registry, error) { return open(ctx, at, true) }

func open(ctx context.Context, at Address, create bool) (*Registry, error) {
	r := &Registry{at: at, dialect: goose.DialectPostgres}
	var err error
	if at.url != nil {
		if r.db, err = sql.Open("pgx", at.url.String()); err == nil {
			err = r.db.PingContext(ctx)
		}
	} else {
		r.dialect = goose.DialectSQLite3
		err = r.openFile(ctx, create)
	}
	if err == nil {
		r.db.SetMaxOpenConns(4)
		err = r.migrate(ctx)
	}
	if err == nil {
		return r, nil
	}
	if r.db != nil {
		_ = r.db.Close()
	}
	return nil, r.trouble("opening", err)
}

// trouble says what went wrong with which registry, and the next step.
func (r *Registry) trouble(doing string, err error) error {
	var newer *NewerError
	if errors.Is(err, ErrNone) || errors.As(err, &newer) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s the registry %s: %w", doing, r.at, err)
	}
	err = r.at.hide(err)
	text := err.Error()
	hint := "check that the server is up, and that the URL, the user and the rights are right"
	switch {
	case strings.Contains(text, "hint: "):
		return fmt.Errorf("%s the registry %s: %w", doing, r.at, err)
	case r.dialect == goose.DialectPostgres:
	case strings.Contains(text, "not a database"):
		hint = "name the file of a registry; this one is something else, and was left as it is"
	case strings.Contains(text, "malformed"):
		hint = "the file is damaged, and was left as it is: restore it from a copy, or read what is left with sqlite3 FILE .recover"
	case strings.Contains(text, "locked"):
		hint = "another process holds it for too long; try again"
	default:
		hint = "check the path, the rights and the room on the disk"
	}
	return fmt.Errorf("%s the registry %s: %w\n  hint: %s", doing, r.at, err, hint)
}

// Close lets go of the registry.
func (r *Registry) Close() error { return r.db.Close() }

// String says where the registry is, without a password.
func (r *Registry) String() string { return r.at.String() }

// ours marks the file of a registry: "ASAY".
const ours = 0x41534159

// dsn is the name of the file for the driver.
func dsn(path string, pragmas ...string) string {
	q := url.Values{"_pragma": append([]string{"busy_timeout(10000)"}, pragmas...), "_txlock": {"immediate"}}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}

// openFile opens an SQLite file. A file that is not a registry is left as it is:
// it is looked at before anything that could write.
func (r *Registry) openFile(ctx context.Context, create bool) error {
	path := r.at.path
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !create:
		return fmt.Errorf("%w\n  hint: assay baseline add RUN makes one, and assay run SUITE --registry %s", ErrNone, path)
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("it is no plain file\n  hint: name a file such as runs/baselines.db")
	}
	if err := claim(ctx, path); err != nil {
		return err
	}
	r.db, err = sql.Open("sqlite", dsn(path, "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)"))
	return err
}

// claim makes an empty file a registry's, and refuses one of another program.
func claim(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", dsn(path))
	if err != nil {
		return err
	}
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var id, tables int64
	if err := tx.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return err
	}
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(&tables); err != nil {
		return err
	}
	switch {
	case id == ours:
		return nil
	case id != 0 || tables > 0:
		return errors.New("it is a database of another program, and was left as it is\n  hint: name another file, such as runs/baselines.db")
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", ours)); err != nil {
		return err
	}
	return tx.Commit()
}

// turn is the lock of PostgreSQL by which writers take turns; in SQLite every
// transaction is immediate.
const turn = 0x6173736179_01

// write runs f in a transaction; writers take turns.
func (r *Registry) write(ctx context.Context, doing string, f func(tx *sql.Tx) error) error {
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return r.trouble(doing, err)
	}
	defer func() { _ = tx.Rollback() }()
	if r.dialect == goose.DialectPostgres {
		if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", int64(turn)); err != nil {
			return r.trouble(doing, err)
		}
	}
	var mistake *Mistake
	switch err := f(tx); {
	case errors.As(err, &mistake):
		return err
	case err != nil:
		return r.trouble(doing, err)
	}
	if err := tx.Commit(); err != nil {
		return r.trouble(doing, err)
	}
	return nil
}

// Mistake is the user's: a snapshot that is not there, a step that is not allowed.
type Mistake struct{ what, hint string }

// Error says what is wrong and the next step.
func (m *Mistake) Error() string { return m.what + "\n  hint: " + m.hint }

// unix and when turn instants into numbers and back.
func unix(at time.Time) int64 { return at.UnixNano() }

func when(ns int64) time.Time { return time.Unix(0, ns).UTC() }

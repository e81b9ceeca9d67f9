package baseline

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// versions is the table that says how far the schema is.
const versions = "assay_baseline_version"

// appendOnly has the database refuse to change or delete a row. It is the part of
// the schema that the two databases write differently.
var appendOnly = map[goose.Dialect][]string{
	goose.DialectSQLite3: {
		`CREATE TRIGGER assay_snapshot_update BEFORE UPDATE ON assay_snapshot BEGIN SELECT RAISE(ABORT, 'the registry is append-only'); END`,
		`CREATE TRIGGER assay_snapshot_delete BEFORE DELETE ON assay_snapshot BEGIN SELECT RAISE(ABORT, 'the registry is append-only'); END`,
		`CREATE TRIGGER assay_event_update BEFORE UPDATE ON assay_event BEGIN SELECT RAISE(ABORT, 'the registry is append-only'); END`,
		`CREATE TRIGGER assay_event_delete BEFORE DELETE ON assay_event BEGIN SELECT RAISE(ABORT, 'the registry is append-only'); END`,
	},
	goose.DialectPostgres: {
		`CREATE FUNCTION assay_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'the registry is append-only'; END $$`,
		`CREATE TRIGGER assay_snapshot_only BEFORE UPDATE OR DELETE OR TRUNCATE ON assay_snapshot FOR EACH STATEMENT EXECUTE FUNCTION assay_append_only()`,
		`CREATE TRIGGER assay_event_only BEFORE UPDATE OR DELETE OR TRUNCATE ON assay_event FOR EACH STATEMENT EXECUTE FUNCTION assay_append_only()`,
	},
}

// migrate brings the schema up to date. Several processes may do so at once: what
// one of them loses, it finds done when it looks again.
func (r *Registry) migrate(ctx context.Context) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	only := goose.NewGoMigration(2, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		for _, text := range appendOnly[r.dialect] {
			if _, err := tx.ExecContext(ctx, text); err != nil {
				return err
			}
		}
		return nil
	}}, nil)
	p, err := goose.NewProvider(r.dialect, r.db, files, goose.WithTableName(versions), goose.WithGoMigrations(only), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		done, err := up(ctx, p)
		var newer *NewerError
		if done || errors.As(err, &newer) || try == migrateTries || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(try) * 10 * time.Millisecond):
		}
	}
}

const migrateTries = 20

func up(ctx context.Context, p *goose.Provider) (done bool, err error) {
	now, known, err := p.GetVersions(ctx)
	if err != nil {
		return false, err
	}
	if now > known {
		return false, &NewerError{now, known}
	}
	if now < known {
		_, err = p.Up(ctx)
	}
	return err == nil, err
}

// NewerError says that a newer version of this program made the registry.
type NewerError struct{ Version, Known int64 }

// Error says which schema there is, and the next step.
func (e *NewerError) Error() string {
	return fmt.Sprintf("its schema has version %d, and this program knows %d\n  hint: use the newer version of assay that made it", e.Version, e.Known)
}

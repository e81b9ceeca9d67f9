package baseline

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// State is where a snapshot stands. It goes one way: candidate, active, retired.
type State string

// The states of a snapshot, and the event that makes one the anchor of its key.
const (
	Candidate State = "candidate"
	Active    State = "active"
	Retired   State = "retired"

	anchored State = "anchor"
)

// Entry is a snapshot with where it stands.
type Entry struct {
	Snapshot
	State    State   `json:"state"`
	Anchor   bool    `json:"anchor"`
	Baseline bool    `json:"baseline"`         // the active one of its key that was promoted last
	Events   []Event `json:"events,omitempty"` // oldest first; of Find only
}

// Event is something that happened to a snapshot.
type Event struct {
	Seq      int64     `json:"seq"`
	Snapshot string    `json:"snapshot"`
	What     State     `json:"what"` // candidate, active, retired, or anchor: it became that
	At       time.Time `json:"at"`
	Who      string    `json:"who"`
	Reason   string    `json:"reason"`
}

// Change says who changes something, when and why.
type Change struct {
	Who    string
	At     time.Time
	Reason string
	Keep   int  // of Promote: how many stay active in all; 0 means DefaultKeep, the least is LeastKeep
	Anchor bool // of Promote: it becomes the anchor of its key, too

	Demand []string // of Promote: checks that the snapshot must have figures of
}

// How many snapshots of a key stay active: those that were promoted last.
const (
	DefaultKeep = 5
	LeastKeep   = 3
)

const longestReason = 2000

func (c Change) check() error {
	switch {
	case strings.TrimSpace(c.Reason) == "":
		return &Mistake{"a reason is missing", `say why, for those who ask later: --reason "…"`}
	case len(c.Reason) > longestReason || !plain(c.Reason):
		return &Mistake{fmt.Sprintf("the reason is no plain text of at most %d bytes on one line", longestReason), "shorten it"}
	case c.Who == "" || len(c.Who) > longest || !plain(c.Who):
		return &Mistake{fmt.Sprintf("nobody knows who changes it: %.40q is no plain name", c.Who), "say --by NAME"}
	case c.Keep != 0 && c.Keep < LeastKeep:
		return &Mistake{fmt.Sprintf("keeping %d active snapshots leaves too few to fall back on", c.Keep), fmt.Sprintf("write --keep %d or more", LeastKeep)}
	}
	return nil
}

const columns = "s.id, s.workload, s.family, s.model_precision, s.engine, s.hardware, s.run, s.path, s.variant, s.suite, s.records, s.assay, s.taken, s.quarantine"

// state of the snapshot s, and whether it is its key's anchor and baseline.
const standing = `
 (SELECT e.what FROM assay_event e WHERE e.snapshot = s.id AND e.what <> 'anchor' ORDER BY e.seq DESC LIMIT 1) AS state,
 COALESCE((SELECT max(e.seq) FROM assay_event e WHERE e.snapshot = s.id AND e.what = 'anchor'), 0) AS anchored,
 COALESCE((SELECT max(e.seq) FROM assay_event e WHERE e.snapshot = s.id AND e.what = 'active'), 0) AS promoted`

func scan(rows *sql.Rows, figures bool) (e Entry, anchored, promoted int64, err error) {
	var taken int64
	var body string
	to := []any{&e.ID, &e.Key.Workload, &e.Key.Family, &e.Key.Precision, &e.Key.Engine, &e.Key.Hardware, &e.Run, &e.Path, &e.Variant, &e.Suite, &e.Records, &e.Assay, &taken, &e.Quarantine, &e.State, &anchored, &promoted}
	if figures {
		to = append(to, &body)
	}
	if err := rows.Scan(to...); err != nil {
		return e, 0, 0, err
	}
	e.Taken = when(taken)
	if figures {
		err = e.fill(body)
	}
	return e, anchored, promoted, err
}

// fill reads the figures of a snapshot.
func (e *Entry) fill(body string) error {
	if err := json.Unmarshal([]byte(body), &e.Figures); err != nil {
		return fmt.Errorf("reading the figures of the snapshot %s: %w", e.ID, err)
	}
	for _, f := range e.Figures {
		if len(f.Levels) == 0 {
			return fmt.Errorf("reading the figures of the snapshot %s: %s on %s has no value", e.ID, f.Quantity, f.Workload)
		}
	}
	return nil
}

// querier is a database or a transaction in it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// entries reads snapshots in the order in which they were added. where holds
// conditions on s, with the arguments $1 and so on.
func entries(ctx context.Context, db querier, figures bool, where string, args ...any) ([]Entry, error) {
	what := columns + "," + standing
	if figures {
		what += ", s.figures"
	}
	rows, err := db.QueryContext(ctx, "SELECT "+what+" FROM assay_snapshot s WHERE "+where+" ORDER BY s.seq", args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	type place struct {
		at   int
		last int64
	}
	anchors, baselines := map[Key]place{}, map[Key]place{}
	var out []Entry
	for rows.Next() {
		e, anchored, promoted, err := scan(rows, figures)
		if err != nil {
			return nil, err
		}
		if anchored > anchors[e.Key].last {
			anchors[e.Key] = place{len(out), anchored}
		}
		if e.State == Active && promoted > baselines[e.Key].last {
			baselines[e.Key] = place{len(out), promoted}
		}
		out = append(out, e)
	}
	for _, p := range anchors {
		out[p.at].Anchor = true
	}
	for _, p := range baselines {
		out[p.at].Baseline = true
	}
	return out, rows.Err()
}

// List returns every snapshot, in the order in which they were added, without
// figures and events.
func (r *Registry) List(ctx context.Context) ([]Entry, error) {
	out, err := entries(ctx, r.db, false, "1 = 1")
	if err != nil {
		return nil, r.trouble("reading", err)
	}
	return out, nil
}

const ofKey = "s.workload = $1 AND s.family = $2 AND s.model_precision = $3 AND s.engine = $4 AND s.hardware = $5"

func (k Key) args() []any { return []any{k.Workload, k.Family, k.Precision, k.Engine, k.Hardware} }

// Find returns the snapshot of that id, or of an id that begins so, or of that run.
// If there is none or there are several, the error is a *Mistake.
func (r *Registry) Find(ctx context.Context, name string) (Entry, error) {
	e, err := find(ctx, r.db, name)
	var mistake *Mistake
	switch {
	case errors.As(err, &mistake):
		return e, err
	case err != nil:
		return e, r.trouble("reading", err)
	}
	if e.Events, err = events(ctx, r.db, "e.snapshot = $1", e.ID); err != nil {
		return e, r.trouble("reading", err)
	}
	return e, nil
}

// find looks one snapshot up, among all of its key: only so it is known whether it
// is the baseline.
func find(ctx context.Context, db querier, name string) (Entry, error) {
	if name == "" || !plain(name) {
		return Entry{}, &Mistake{fmt.Sprintf("%.40q names no snapshot", name), "assay baseline list shows them"}
	}
	rows, err := db.QueryContext(ctx, "SELECT s.id FROM assay_snapshot s WHERE s.run = $1 OR substr(s.id, 1, length($1)) = $1 ORDER BY s.seq LIMIT 10", name)
	if err != nil {
		return Entry{}, err
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return Entry{}, err
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		return Entry{}, err
	}
	switch len(ids) {
	case 0:
		return Entry{}, &Mistake{fmt.Sprintf("the registry has no snapshot %.40q", name), "assay baseline list shows them"}
	case 1:
	default:
		return Entry{}, &Mistake{fmt.Sprintf("%.40q is of several snapshots", name), "name one of them: " + strings.Join(ids, ", ")}
	}
	_ = rows.Close()
	all, err := entries(ctx, db, true, "EXISTS (SELECT 1 FROM assay_snapshot o WHERE o.id = $1 AND o.workload = s.workload AND o.family = s.family AND o.model_precision = s.model_precision AND o.engine = s.engine AND o.hardware = s.hardware) AND (s.id = $1 OR EXISTS (SELECT 1 FROM assay_event e WHERE e.snapshot = s.id AND e.what IN ('active', 'anchor')))", ids[0])
	for _, e := range all {
		if e.ID == ids[0] {
			return e, err
		}
	}
	return Entry{}, err
}

func events(ctx context.Context, db querier, where string, args ...any) ([]Event, error) {
	rows, err := db.QueryContext(ctx, "SELECT e.seq, e.snapshot, e.what, e.at, e.who, e.reason FROM assay_event e WHERE "+where+" ORDER BY e.seq", args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Event
	for rows.Next() {
		var e Event
		var at int64
		if err := rows.Scan(&e.Seq, &e.Snapshot, &e.What, &at, &e.Who, &e.Reason); err != nil {
			return nil, err
		}
		e.At = when(at)
		out = append(out, e)
	}
	return out, rows.Err()
}

// Add appends a snapshot as a candidate. One that is there already stays as it is,
// and added is false.
func (r *Registry) Add(ctx context.Context, s Snapshot, c Change) (added bool, err error) {
	if err := errors.Join(s.Key.Validate(), c.check()); err != nil {
		return false, err
	}
	if s.ID != s.digest() {
		return false, &Mistake{"the snapshot is not what it says", "take it anew from the run: assay baseline add RUN"}
	}
	body, err := json.Marshal(s.Figures)
	if err != nil {
		return false, fmt.Errorf("writing the figures of %s: %w", s.Run, err)
	}
	err = r.write(ctx, "adding to", func(tx *sql.Tx) error {
		there, err := events(ctx, tx, "e.snapshot = $1", s.ID)
		if err != nil || len(there) > 0 {
			return err
		}
		if err := insert(ctx, tx, s, string(body)); err != nil {
			return err
		}
		added = true
		return happen(ctx, tx, s.ID, Candidate, c, c.Reason)
	})
	return added && err == nil, err
}

func insert(ctx context.Context, tx *sql.Tx, s Snapshot, figures string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO assay_snapshot (seq, id, workload, family, model_precision, engine, hardware, run, path, variant, suite, records, assay, taken, quarantine, figures)
		SELECT COALESCE(max(seq), 0) + 1, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, CAST($13 AS BIGINT), $14, $15 FROM assay_snapshot`,
		s.ID, s.Key.Workload, s.Key.Family, s.Key.Precision, s.Key.Engine, s.Key.Hardware, s.Run, s.Path, s.Variant, s.Suite, s.Records, s.Assay, unix(s.Taken), s.Quarantine, figures)
	return err
}

func happen(ctx context.Context, tx *sql.Tx, id string, what State, c Change, reason string) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO assay_event (seq, snapshot, what, at, who, reason)
		SELECT COALESCE(max(seq), 0) + 1, $1, $2, CAST($3 AS BIGINT), $4, $5 FROM assay_event`, id, string(what), unix(c.At), c.Who, reason)
	return err
}

-- One schema for SQLite and PostgreSQL. Instants are nanoseconds since 1970 in UTC.
-- Rows are appended and never changed: 00002 makes the database refuse to.

-- +goose Up
CREATE TABLE assay_snapshot (
    seq        BIGINT PRIMARY KEY,
    id         TEXT   NOT NULL UNIQUE,
    workload   TEXT   NOT NULL,
    family     TEXT   NOT NULL,
    model_precision TEXT NOT NULL,
    engine     TEXT   NOT NULL,
    hardware   TEXT   NOT NULL,
    run        TEXT   NOT NULL,
    path       TEXT   NOT NULL,
    variant    TEXT   NOT NULL,
    suite      TEXT   NOT NULL,
    records    TEXT   NOT NULL,
    assay      TEXT   NOT NULL,
    taken      BIGINT NOT NULL,
    quarantine TEXT   NOT NULL, -- why it is never used; empty: it is sound
    figures    TEXT   NOT NULL  -- JSON
);
CREATE INDEX assay_snapshot_key ON assay_snapshot (workload, family, model_precision, engine, hardware, seq);
CREATE INDEX assay_snapshot_run ON assay_snapshot (run);

CREATE TABLE assay_event (
    seq      BIGINT PRIMARY KEY,
    snapshot TEXT   NOT NULL REFERENCES assay_snapshot (id),
    what     TEXT   NOT NULL CHECK (what IN ('candidate', 'active', 'anchor', 'retired')),
    at       BIGINT NOT NULL,
    who      TEXT   NOT NULL,
    reason   TEXT   NOT NULL
);
CREATE INDEX assay_event_snapshot ON assay_event (snapshot, seq);
-- Each state is entered once at most. The anchor may move away and back.
CREATE UNIQUE INDEX assay_event_once ON assay_event (snapshot, what) WHERE what <> 'anchor';

// Package baseline keeps what earlier runs measured, and holds the next run
// against it.
//
// A [Snapshot] is what one run found of one variant: figures with their
// intervals, the digests of what they came from, and the [Key] that says which
// runs may be compared with it at all: the same workload, model family,
// precision, engine and hardware class. A [Registry] is a file of SQLite or a
// PostgreSQL database that snapshots and what happened to them are appended to.
// Nothing in it is ever changed or deleted, and the database itself refuses to.
//
// A snapshot begins as a candidate; somebody promotes it to active, with a
// reason, and later it is retired. The one that was promoted last is the
// baseline of its key; those before it stay active, [DefaultKeep] in all unless
// told otherwise, so that a baseline that turns out to be bad can be retired and
// the one before it holds again. The first one of a key that was promoted is its
// anchor. It stays until somebody moves it, so that a slow drift, which each new
// baseline takes along, is found by its distance from there. Runs that failed,
// or that proved nothing, are quarantined: kept and shown, never promoted, and in
// no history.
//
// After a run [Registry.Standing] gives what to compare with, and
// [Delta.Results] judges: by contract clauses whose limits refer to the
// reference, on the run's own records, with the interval of the snapshot beside
// that of the run. The gates that block fail; those that mark put a mark on the
// candidate. No baseline, too few requests, an interval that reaches over the
// limit: inconclusive.
//
// [Screens] looks at the whole history of a key. Tukey's fence says that a run
// is unusual, with the rate at which it says so of unchanged runs; only an
// effect that is large enough, and evidence that it lasts, make it a shift. A
// screen never decides a grade. [Backtest] replays a history: how often each
// gate and fence would have fired, and how often on runs that were good enough to
// be promoted.
//
// Only Registry does input and output. It may be used by several goroutines and
// several processes at once: writers take turns.
package baseline

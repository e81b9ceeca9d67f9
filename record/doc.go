// Package record holds the one datum of Assay, and keeps it.
//
// A [Record] is what became of one request: when it was due, when its bytes
// left and came, how it ended, what the server said about it. The load driver
// makes Records from a plan; everything that Assay shows is computed from them.
//
// The flow: a driver fills a Record and hands it to a [Writer]; the Writer
// appends it to a journal with checksums, syncing in groups; at the end of the
// run the journal is sealed into one Parquet file, a row a request. A [Reader]
// reads either. After a crash Repair cuts a torn tail and says exactly what it
// kept and what it cut.
//
// Numbers: every time is nanoseconds on the run's monotonic clock, counted from
// the run's epoch. What did not happen or is not known has a zero [Instant] or
// [Count], which are distinct from 0. [Metrics] is the catalogue of definitions
// that read numbers off a Record; the definitions of other tools are [Views] of
// the same Record.
//
// Record is pure data and may be copied. The package reads no clock of its own
// but for the Writer's commit interval, and touches files only through [FS].
package record

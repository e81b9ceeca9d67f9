// Package record holds the one datum of Assay, and keeps it.
//
// A [Record] is what became of one request: when it was due, when its bytes
// left and came, how it ended, what the server said about it. The load driver
// makes Records from a plan; everything that Assay shows is computed from them.
//
// The flow: a driver fills a Record and hands it to a [Writer]; the Writer
// appends it to a journal with checksums, syncing in groups; at the end of the
// run the journal is sealed into one Parquet file, a row a request. [Open] reads
// either and gives identical Records. After a crash [Mend] cuts a torn tail and
// says exactly what it kept and what it cut, and [Seal] finishes the run. Both
// forms have a page in docs/format.
//
// What is promised: a record is durable when [Writer.Sync] has returned after it
// was appended, or a commit interval later; what is not durable may be lost in a
// crash, but nothing is ever given back changed. Reading never writes. A run
// directory has one writer.
//
// Numbers: every time is nanoseconds on the run's monotonic clock, counted from
// the run's epoch. What did not happen or is not known has a zero [Instant] or
// [Count], which are distinct from 0. [Metrics] is the catalogue of definitions
// that read numbers off a Record; the definitions of other tools are [Views] of
// the same Record.
//
// What comes back from a file is the Record in its normal form: an empty map or
// slice is nil, an unknown lag is −1, bytes that are not UTF-8 are U+FFFD.
//
// Record is pure data and may be copied. The package reads no clock of its own
// but for the Writer's commit interval, and touches files only through [FS].
package record

// Package interop reads the result files of other load tools into runs of
// Assay, and writes runs of Assay in the shapes of those tools.
//
// [Import] takes the files of one tool (vLLM's `bench serve`, guidellm, AIPerf,
// inference-perf, SGLang's bench_serving) and gives a [Run]: a manifest in the
// state "imported" and the records that the files tell of. [Export] goes the
// other way: it reads a tool's numbers off the records by that tool's own
// definitions ([record.Views]) and writes them as that tool would.
//
// What is promised:
//
//   - A record carries what its file tells and nothing else. What the file does
//     not say stays missing: an instant that is not there is a zero Instant, and a
//     failed request has no latency, although vLLM writes 0.0 for it.
//   - A file without requests (inference-perf's report, vLLM without
//     --save-detailed) gives no records. Its aggregates stand in the notes, in its
//     own words, for they cannot be tested, compared or given an interval.
//   - Imported numbers keep their tool's definitions. The notes say which, and
//     which comparisons they forbid; the same stands in the client's certificate,
//     so that a comparison of two runs shows it.
//   - Nobody certified the client of an imported run. It proves nothing: a contract
//     over it is inconclusive.
//   - Nothing is dropped silently: Run counts the rows that were read and those
//     that made no sense, with the reason.
//
// Time: most tools keep no schedule. Where a file has one (vLLM's queue times,
// guidellm's targeted starts, AIPerf's credits) the records are due by it. Where it
// has none, a request counts as due when its tool let it go, and the first byte
// sent stays unknown, so that no lag of 0 is invented. Where a file has no start
// times at all, every request lies at the epoch and no window is given: latencies
// can be read, rates cannot. Of a stream of which only the first and last token
// are known, an event at no known time stands for those between, so that no gap is
// made up. Times are whole nanoseconds; a file's seconds are rounded to the nearest.
//
// The package is pure: it reads from an io.Reader and writes to an io.Writer.
// Files are hostile input: their size, their rows and their events are bounded,
// and every fault names the file, the line and the place in the JSON.
package interop

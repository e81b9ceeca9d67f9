// Package report shows what a run found: as a table on a terminal, as JSON, as
// Markdown for a pull request, as JUnit for a CI server, and as one HTML file
// that makes no network request and runs no script.
//
// # Flow
//
// [Build] turns a manifest, its records and its verdict into a [Document], which
// is all that any renderer shows: figures with their intervals, changes of the
// candidate against the baseline, the clauses beside the figures that they are
// about, distributions, series over time, the check of the arrivals, the
// client's certificate, footnotes. A renderer ([Text], [Markdown], [JUnit],
// [JSON], [HTML]) lays the document out and measures nothing. Every figure of the
// tables is printed once, by Build, so that two renderings of one run cannot
// disagree in a digit.
//
// [Compare] does the same for two variants, of one run or of two, metric by
// metric, and adds what difference the records could have shown at all. It
// judges nothing: that is what a contract is for.
//
// # How numbers read
//
// Intervals are two-sided at 95 %. A clause is decided at its own confidence,
// and its reason says with which bound. A row has one unit; numbers have three
// significant figures. What is missing prints as "–" with a footnote, never as
// 0. "∞" stands for a quantile that lies among the failed requests: they count
// as slower than any other.
//
// # What is hostile
//
// Names of models, variants and workloads, error texts and engine settings come
// from outside. Build strips escape sequences, control and bidirectional
// characters from every text in a document, and each renderer escapes what its
// format would read as markup.
//
// The package does no I/O but to the writer handed in, reads no clock, and its
// output is a function of its input. Its functions are safe for concurrent use
// on values that nobody changes.
package report

// Package bench runs a suite from end to end and keeps what came of it.
//
// A [Suite] says what to test. [Run] follows one datum through the house: it
// starts the simulated engines that the suite asks for, makes one plan a
// workload, lets the variants take turns on it block by block (A B B A), writes
// every record to the run directory's journal, watches the client, seals the
// records into one Parquet file, judges them by the contract, and writes verdict
// and report. [Open] reads a run directory back and computes the same verdict
// and report from its records.
//
// [FindCapacity] makes many runs, at one rate each, and says between which two the
// capacity of a service lies.
//
// The run directory is the result; nothing that a report shows is kept only in
// memory. It holds manifest.json, records.parquet (records.journal while the run
// is alive, or after a crash), verdict.json, report.json and report.html.
package bench

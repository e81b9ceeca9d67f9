// Package engine reads what an inference engine says about itself: its
// Prometheus metrics, in one vocabulary for vLLM, SGLang, TGI, TensorRT-LLM,
// Triton, llama.cpp and, for GPUs, dcgm-exporter; and it empties the engine's
// prefix cache on request.
//
// The flow: a [Source] is an engine's metrics endpoint. [Source.Connect] scrapes
// it once, tells the engine by the names of its families and compares them with
// the list that this program was written against: the metric contract, checked in
// under families/. [Source.During] scrapes while something is measured: once
// before, about every second in between, once after. Each scrape is a
// [Snapshot]: values by the names of [Quantities]. [Between] takes the difference
// of a series of snapshots, [Summarize] adds up the windows of one variant and
// workload, and [Reconcile] sets the client's own records beside it. [Append]
// keeps snapshots in engine.jsonl, which docs/format/engine.md describes. [Judge]
// says what a canary prompt shows of the prefix cache.
//
// What is promised: a value that cannot be read is missing, never 0. A family that
// the engine does not have leaves its quantities out. One that was renamed is
// read under its old name, with a warning. One whose type changed is not read, and
// an error says so. NaN and infinities are missing. A counter that fell, in any of its
// series, was reset; its difference over that window is missing. Gauges are given
// as time means and extremes over the window, since one reading of a gauge says
// nothing about a window.
//
// Semantics that bite, and are encoded in the tables: counters are summed over the
// replicas behind one endpoint, but the use of the KV cache is the worst of them;
// SGLang's tensor-parallel ranks repeat the same numbers and only rank 0 counts;
// llama.cpp counts only prompt tokens that it computed; TGI times prefill by the batch,
// not by the request. Quantities that are not the same have names that are not
// the same.
//
// An endpoint behind a load balancer shows a random replica at each scrape. Its
// counters then seem to jump back, and the package says that they were reset.
//
// The package sends no credentials, follows no redirect, and reads a bounded
// answer. What an engine says is material to show and compare, never trusted.
package engine

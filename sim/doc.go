// Package sim is a simulated inference engine and a simulated network.
//
// Whoever measures LLM services needs one whose truth is known: how long each
// step took, when each token left, what was cached, which request was made to
// fail. This package is that service, in layers that can be used alone:
//
//   - [Engine] is the scheduler and the hardware model as a pure step machine:
//     requests go in with a time, emissions come out with theirs. It batches
//     continuously under a token budget, prefills in chunks, pages its KV cache
//     with prefix reuse and preempts by recomputation, as vLLM's V1 scheduler
//     does. It has no clock and no goroutine; equal inputs give equal outputs.
//   - [Server] is an http.Handler that speaks the OpenAI protocol and drives an
//     Engine by package time. Over a real listener it is a stand-in for a real
//     engine; over a [Network] in a testing/synctest bubble it runs in virtual
//     time, an hour of load in seconds.
//   - [Network] is a network in memory that behaves as TCP does.
//   - [Player] sends a plan to an Engine without server, network, client and
//     clock, and writes the records that a perfect client would have measured. A
//     minute of load takes some hundredths of a second, so that a gate can be tried
//     on thousands of runs. Tests of package load hold it to what the real client
//     measures in virtual time, to the nanosecond.
//
// # What is known about every request
//
// Each event of a stream is preceded by a comment line with the instant, in Unix
// nanoseconds, at which the server wrote it (": emit 1764525600000000000"), so
// that a client's stamps can be checked against the truth. The [Server] keeps an
// account of every request in its ledger. Faults are drawn from the request's id
// and the seed: the same request meets the same fate in every run.
//
// # What it is not
//
// It is no language model: the text is words without sense, equal for equal
// prompts and seeds. The step-time model is a roofline with published
// constants (see [Config]), good to some per cent for the engines that it was
// fitted to and not a prediction for others. It counts the time of steps only:
// tokenising, HTTP and the engine's own process boundaries, which cost a real
// server some milliseconds before the first token, take none. There is no
// speculative decoding, no priorities, no swapping of KV blocks to the host, one
// data-parallel rank.
package sim

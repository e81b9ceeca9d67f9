// Package stat turns series of numbers into estimates with intervals, and says
// when the data give none. It knows nothing of language models: a latency and a
// shoe size are the same to it.
//
// # Flow
//
// A [Sample] holds observations in time order. Its methods, and the functions
// [Share] and [Rate], give an [Estimate]: a value, two bounds, the confidence,
// the number of observations and how many independent ones they are worth, how
// it was computed, and warnings. Two estimates combine into a [Ratio] or a
// [Difference], again an Estimate. What keeps a number from being trusted is
// data in it (an infinite bound, a [Warning]), never a log line or an error;
// errors are for input that is not observations at all. [CheckArrivals] stands
// apart: it judges whether instants are a Poisson process.
//
// Everything here is a pure function of its arguments, and safe for concurrent
// use.
//
// # What is promised
//
// A bound of a quantile is an observation whose rank the binomial distribution
// allows, whatever the distribution of the values. Where no such rank exists
// the bound is infinite and a warning says how many observations it takes
// ([NeedAbove]); the maximum never stands in for a bound. A point estimate is
// Hyndman and Fan's type 7.
//
// Observations that failed have no value but exceed every limit. They count as
// +Inf in every rank; a quantile may truthfully be +Inf. Means leave them out
// and warn.
//
// Requests share a queue, so they depend on their neighbours, and an interval
// that takes them as independent is far too short: at rho = 0.9 (below) the "95
// %" interval of p95 misses the truth in 46 % of samples. Every interval is
// therefore built on the effective number of observations: n over the variance
// inflation, which is read from the autocorrelations (for a quantile, those of
// "does not exceed it"), enlarged for being an estimate itself, and never below
// 1. Independent data mostly keep their full n. Long memory costs bounds
// instead of truth: a series that drifts through its whole length has none.
//
// # One-sided use
//
// Each tail of a two-sided interval holds at most half of what confidence
// leaves. A one-sided bound at confidence c is thus the bound of the two-sided
// interval at 2c-1: to decide "p99 is within the limit" at 95 %, ask for
// Quantile(0.99, 0.90) and compare Hi with the limit; the decision is wrong at
// most 5 % of the time, and needs NeedAbove(0.99, 0.90) = 299 observations.
//
// # Measured error rates
//
// Of 10,000 seeded samples a cell (TestErrorRates with ASSAY_SLOW=1), in
// percent: how often the 95 % interval misses the truth, an infinite bound
// counted as no miss; and how often a limit at the exact truth is passed or
// failed on the one-sided 95 % bound. Lognormal AR(1) processes, and the time
// in an M/M/1 queue.
//
//	TABLE
//
// Where fewer than half of the samples have both bounds (p95 or p99 of strongly
// dependent data), those that do have them are the ones whose dependence
// happened to look weak, and their closed intervals miss more often than 5 %;
// all samples together do not.
package stat

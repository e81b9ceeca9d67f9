// Package anytime compares two variants with tests that may be looked at as
// often as one likes: at every second, after every session, until the answer is
// there. The error rate holds over all looks together. A test with a fixed
// sample size that is looked at again and again does not have it: at 200 looks a
// nominal 5 % become 36 %.
//
// # Flow
//
// A test is a struct with the margin in it ([Quantile], [Exceedance],
// [Proportion], [Mean], [Paired]). Given the counts, histograms or moments of
// both variants, it returns [Evidence]: e-values against "the candidate is within
// the margin" and against "it is not", as logarithms. [Evidence.Fails] and
// [Evidence.Passes] turn it into decisions; as long as both are false, it is
// undecided, and that is an answer, too. [Mismatch] asks first whether the
// sessions were assigned as planned. Each test has a Need, the sessions that it
// takes to decide.
//
//	e, err := anytime.Quantile{P: 0.95, Margin: 1.1}.Test(candidate, baseline)
//	switch {
//	case e.Fails(0.05): // at least 10 % slower, wrong in at most 5 % of releases
//	case e.Passes(0.05): // within 10 %, wrong in at most 5 %
//	default: // more sessions
//	}
//
// # The unit is the session
//
// What was assigned to a variant at random is one observation: a session with
// all its requests. Requests of a session resemble each other; counted one by
// one, a nominal error rate of 5 % becomes 17 to 28 %. So a histogram takes a
// session as one observation of several values, a count is of sessions with
// an event, and moments are of sums over sessions.
//
// # Ramps
//
// When the weights of the variants change, close the step: keep its last
// Evidence, start with empty counts, and multiply ([Evidence.Times]). Pooling
// the steps compares a candidate that served mostly at rush hour with a
// baseline that served mostly before; in a ramp from 5 % to 50 % while the
// latency doubles, the pooled test fails an equal candidate every time.
//
// # What is assumed
//
// Quantile, Exceedance, Proportion, Paired and Mismatch assume independent
// sessions (given the past) and nothing of their distribution; their error rates
// hold at any size. Mean is asymptotic. Measured error rates and power are in
// docs/error-rates.md.
//
// Everything here is a pure function of its arguments, safe for concurrent use,
// except for the accumulators Moments and Paired.
package anytime

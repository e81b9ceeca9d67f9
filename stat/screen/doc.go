// Package screen looks for the unusual in a series of aggregates, as one
// throughput an hour or one p99 a build: a point outside of a [Fence], a level
// that changes ([Changes], [ShareChange]), a share that decays with length
// ([TrialChange], [TrialSag], [EffectiveLength]), and where to try next ([Bisection]).
//
// What it finds is a hint where to look, not a verdict. A fence misfires at the
// rate that its documentation states, again at every point; twenty series with a
// point an hour give several false alarms a day. Confirm with a test whose error
// rate holds (package anytime or compare), with a margin that matters.
//
// Everything here is a pure function of its arguments, and safe for concurrent
// use.
package screen

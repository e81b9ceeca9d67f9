// Package workload plans what is sent, and when.
//
// A [Spec] is a workload of a suite. [New] turns it into a [Plan], which yields
// one [Shot] for each request:
//
//	spec ─┐
//	sets ─┤
//	seed ─┼─► New ─► Plan ─► All, Stripe, WarmUp ─► Shot ─► (package load)
//	salt ─┘
//
// # One plan, however many workers
//
// A plan is a pure function of its inputs, byte for byte, on any machine and for
// any number of workers. Every random choice of shot i is read from a
// counter-based generator (Philox4x32-10) keyed by the seed, the workload's
// name, what is chosen, and i: nothing depends on who asks, in which order, or
// how often. Each choice has a [Stream] of its own, so that a longer output
// moves no arrival and another rate changes no prompt. Plans need memory for
// the set only; they may have 10⁹ shots.
//
// Peers that draw from one generator per worker repeat each gap once a worker
// when the workers share its seed, and send another load for each number of
// workers when they do not.
//
// # When
//
// In an open loop requests are due by a schedule, whatever the server does. A
// schedule is a rate over time (fixed, a ramp, stairs, bursts, pulses, a day, or
// random states) and a process: evenly spaced (constant), independent users
// (Poisson), or gaps of a gamma or Weibull distribution; each goes with each.
// All come from the closed form of the integral of the rate, never from adding up
// gaps that were rounded, so the ten-millionth request is as exact as the first;
// see arrivals.go, rate.go and renewal.go.
//
// In a closed loop virtual users wait for their answer and their think time
// before they ask again. Users start one after the other, not in one burst; see
// [Arrivals].Stagger. Latencies of a closed loop flatter a server that stalls,
// since a stalled server is asked less.
//
// With [Sessions], an arrival or a user starts a dialogue. The plan knows every
// turn but its instant, which follows from the answer before it; package load
// adds what was said.
//
// # What
//
// Prompts are cases of a corpus.Set or synthetic text of a given distribution of
// lengths. Requests may share prefixes in groups. Every prompt starts with the
// run's salt (unless the spec turns it off): the same seed otherwise makes the
// same prompts again, and a server that kept its prefix cache from an earlier
// run answers up to 50 times faster than it would to new users. Variants that
// are one server under two names need plans with different salts for the same
// reason. Warm-up shots have texts and a salt of their own, so that they warm
// the machine and not the measured prompts.
//
// The package is pure: no clock, no files, no network and no goroutines; package
// load does what is planned here.
package workload

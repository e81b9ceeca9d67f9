// Package contract judges records: it holds what a candidate must meet, and
// says with evidence whether it does.
//
// A [Contract] is a list of clauses. A clause is one comparison,
//
//	STAT(METRIC) CMP LIMIT
//
// such as p99(ttft) <= 800ms, or p95(tpot) <= baseline * 1.05, or
// share(failed) <= baseline + 0.5 points; or a group of clauses: all, any, not,
// or at least so many (count); or a [Joint] clause, which trades objectives for
// each other behind vetoes.
// STAT is pNN, mean, share, rate, count, max, min, or estimate; METRIC is a name of
// the catalogue of package record, or of what a check writes. It is one comparison and not a programming
// language, so that it can be checked before a run: [Lint] refuses a clause
// that a run as planned cannot decide.
//
// # Three grades
//
// [Evaluate] gives each clause one [Grade]. The quantity is estimated with a
// one-sided bound at the contract's confidence, 95 % unless it says otherwise:
//
//   - pass: the bound on the bad side is within the limit. The chance to pass a
//     candidate that lies exactly at the limit is at most 5 %.
//   - fail: the bound on the good side is beyond the limit. The chance to fail
//     one that lies exactly at the limit is at most 5 %.
//   - inconclusive: neither was shown; the reason says what is missing.
//
// Inconclusive is the zero grade. No data, too few data, a client that dropped
// requests, a metric that nothing measures, an empty contract: inconclusive.
// A verdict is the worst of its clauses: fail, then inconclusive, then pass.
// A group of which k of n members must pass judges each at the confidence
// 1 − (1 − c)/(n − k + 1) (union bound over the members of which one must be
// bad), since more chances to pass would else be more chances to pass wrongly.
// A not is carried down to the comparisons, which are turned round: what was
// not shown does not show the contrary.
//
// # What counts
//
// Only measured requests count, never those of the warm-up. A quantile is about
// all requests that were given a fair try: one that failed has no latency and
// counts as worse than any limit. A mean, and a share of something other than
// failing, cannot count failed requests so; above 2 % of them they are
// inconclusive. When a limit refers to the baseline, a pass must hold even if
// the failed requests of the baseline had been its best ones, and a baseline of
// which more than 2 % failed passes nobody.
//
// Requests that the client dropped are no evidence of anything; more than one
// in a thousand of them leave the clause inconclusive. Requests cancelled as
// planned are left out. Completed requests that should have a value and have
// none (no token counts from the server) leave the clause inconclusive above
// 2 %; those that cannot have one by definition (the TPOT of a single token) are
// neutral, with a note above 2 %.
//
// # Checks
//
// The values of checks ([Checked]) have names of two parts, CHECK.VALUE, which
// [Contract.Declare] holds against what the suite declares. A clause on one is
// judged on the records of that check, and a clause on anything else never on
// records of a check, unless on says so.
//
// Both variants answered the same cases, so a difference is one of pairs:
// Tango's score interval where cases are independent and say yes or no, else the
// mean over clusters, which are the sessions of the records. A case without its
// value, for whatever reason, is missing: the interval is widened to where it
// would lie with everything missing at its worst and at its best, so that a
// clause is decided only where both agree. If one variant lacks more than the
// other (McNemar's test), the clause is inconclusive. A check that could not run
// is an inconclusive result of its own ([KindCheck]).
//
// A number of a whole check has an estimate, estimate(CHECK.VALUE), which the check
// made itself, with intervals at many confidences ([record.Estimate]); so is its change
// against the baseline, since only the check knows what is paired.
//
// # Facts and windows
//
// A count, a maximum and a minimum are facts of the run and have no interval.
// A maximum says nothing about the next request, so it needs a min beside it.
//
// A window says how live traffic is judged. A run is judged as a whole, with a
// note; but since a count grows with the run, a count with a window is decided
// only by a run that is long enough for a pass, or short enough for a fail.
//
// Different workloads are never pooled: a clause is judged on each that it
// matches, and the worst counts.
//
// # Live traffic
//
// A clause with a [Live] is also a rule. [Contract.Next] looks at what was
// [Observed] in each rule's window and gives the [Decision]s: which rules begin to
// act, and which are taken back. It is a function of state, evidence and instant,
// so that a log replays to the same decisions. Evidence is [Series]: raw values
// or counts, of a [History] of records or of whoever counts as it serves. Missing
// evidence never makes a rule recover. A comparison with a baseline that runs
// beside is a test of package stat/anytime over the sessions of a [Step], so its
// error rate holds however often one looks; its [Proof] is part of the [State]. A [Test] holds a contract against evidence
// in a file. [Presets] are contracts that come built in; what they name beyond
// the catalogue of package record is declared here, and without data until
// somebody measures it.
//
// The package is pure: it reads no file, no clock and no wire, and starts no
// goroutine. Its functions are safe for concurrent use on values that nobody
// changes.
package contract

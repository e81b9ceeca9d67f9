// Package audit finds out, from outside, whether an endpoint makes itself look
// faster or better than it is: whether it caches answers, cuts prompts or
// answers short, charges for tokens that it did not generate, sends a first token
// that is none, answers worse when it is busy, or leaves out what was asked.
//
// # Flow
//
// [Run] asks one [llm.Target] a few hundred questions, one at a time but for the
// phase under load, and gives a [Report]. Each question has a salt of its own,
// so that no cache helps but where a probe asks for one. What became of each is
// an exchange: the record with its stamps, the text, and the server's own claims.
// Six probes read the exchanges. A [Probe] is a list of [Check]s and as good as
// its worst one; the report is as good as its worst probe.
//
// # How a check decides
//
// A check counts answers that show something (a repeated prompt that was more
// than a tenth faster; a code that was not found) and tests the count exactly,
// without assuming a distribution of times:
//
//   - fail: so many are improbable for an honest server. The chance that an
//     honest server fails anything at all is at most 5 % for the whole audit:
//     each probe gets a sixth of it and divides it among its checks
//     (Bonferroni).
//   - pass: so few are improbable, at 5 %, for a server that does it.
//   - otherwise inconclusive, which is also the zero Grade: no data, too few,
//     answers that failed, a model that cannot do the task when nothing else is
//     going on, a client that was unfit to take times.
//
// The null hypothesis of times is exchangeability: on an honest server the first
// and the third answer to one prompt might as well have come in the other order,
// so that "more than a tenth faster" happens in at most half of the pairs,
// whatever the noise. Questions that form a pair are asked near each other in
// time, drift and load hit both.
//
// # What it cannot see
//
// An endpoint that knows the auditor's questions can treat them well: their
// words vary with the seed, their form does not. A vendor who counts prompt and
// output tokens with the same wrong ruler is not seen by comparing them. A model
// that is too weak for its context looks like a context that is cut; usage tells
// them apart, if it is honest.
package audit

// Package haystack makes long texts with something hidden in them, asks for it, and
// reads whether an answer has found it.
//
// A [Probe] is a text of a wished length with a question behind it. What is asked
// for, the needles, stands at a chosen depth between sentences that are generated from a
// seed, ledger lines, log entries, talk and prose, in English or Chinese, of which no two
// are equal; or between those of a text of the caller's. Needles are drawn anew for
// every probe, so that neither a memorised book nor a cache of prefixes knows them.
// The text of one seed is the same for all lengths, as far as it goes.
//
// The kinds of probes ask for different abilities: to find one value among like ones
// ([Retrieval]) or several ([MultiKey]), to know which of several is the latest
// ([Update]), to count ([Count]), to follow a name over a long way ([Coreference]), to
// notice that the text disagrees with itself ([Contradiction]), and to say that what is
// asked for is not there ([Absent]). The last is the control of all others: a model that
// always names something finds every needle.
//
// [Probe.Read] is a reader by rules that a person can repeat. What it takes for an
// answer is a code of seven digits, a count, or a name; other numbers than codes do
// not occur in the generated text with seven digits. It judges no meaning.
//
// [Probe.Perturb] replaces words near a place by others of the same length, the
// needles never, so that one can see which part of a text matters for an answer without
// looking into the model.
//
// Everything here is a pure function of its arguments, and safe for concurrent use.
package haystack

// Package corpus holds prompts: what a request asks, and what is known about the
// right answer.
//
// A [Case] is one prompt or dialogue. A [Set] is a list of cases with a digest
// over their content, so that two runs can tell whether they asked the same
// questions. [Read] imports a set from JSON Lines (or a JSON array) in one of
// three formats:
//
//   - "assay", ours: {"id", "prompt" or "messages", "max_tokens", "expect",
//     "labels"}. Unknown keys are refused, since a misspelt "max_tokens" that is
//     silently ignored changes what is measured.
//   - "sharegpt": {"id", "conversations": [{"from", "value"}]}. The first human
//     turn, with a system turn before it, becomes the case; the answer that
//     follows it becomes Expect. Assistant turns before the first human one are
//     left out: they are the rest of an answer whose question is lost.
//   - "openai": {"messages": [{"role", "content"}]}, as fine-tuning files and
//     request logs have it, or one line of a batch file {"custom_id", "body"}. A
//     last assistant message becomes Expect. Other keys are ignored.
//
// Two more are sets of questions with answers for checks: "qa" with {"question",
// "answer"}, of which GSM8K's result after "####" is what is expected, and "ifeval"
// with the rows of that benchmark. Three are CSV files of requests that are to be
// refused, or that only look like them: "advbench", "harmbench" and "xstest", whose
// cases have the labels harm (safe or unsafe) and category.
//
// Imported text is hostile until proven otherwise. The reader is a strict JSON
// reader of its own: invalid UTF-8, lone surrogates, repeated keys, trailing
// bytes and nesting beyond 64 levels are faults, not repairs, and nothing is
// ever evaluated. One row may have 64 MiB, a file 1 GiB and a set a million
// cases; whatever the input, memory stays in proportion to what was read. A bad
// row names its line. Up to one row in a thousand may be bad: such rows are
// left out, counted and listed in the Set. More of them fail the import, since
// the set would no longer be the set that its name promises.
//
// A set may also be a [Trace]: what was asked of a service and when, without its
// texts, in the published formats "azure", "burstgpt" and "mooncake"; or
// [Traffic], a model of clients in that of "servegen". The same rules hold: strict
// grammars, faults with lines, one bad row in a thousand.
//
// [Words] makes synthetic text of about a given number of tokens for workloads
// that need a length and no meaning.
//
// The package is pure: it reads from an io.Reader that the caller opens, and
// has no clock, no files, no global state and no goroutines.
package corpus

// Package dimension is the catalogue of checks: a file and a value each.
//
// A check here asks every variant the same cases, reads each answer by rules that
// a person can repeat, and writes numbers on the records of the cases, named
// CHECK.VALUE. It grades nothing: contracts do, by those numbers, paired by case
// and clustered by what the cases have in common.
//
//   - attention: where a model looks, by a dump of its attention weights; it asks nobody.
//   - consistency: how far several answers to one question agree.
//   - context: what is found in long prompts, by length, depth and kind of question.
//   - exact: questions with one right answer: numbers, choices, texts, JSON, code.
//   - hallucination: what answers make up, beside abstaining.
//   - instructions: whether an answer does what the prompt says of its form (IFEval).
//   - safety: harmful requests and harmless ones that look alike: what is complied
//     with and what is refused.
//   - shape: the outward form of answers: empty, cut, refused, JSON, language, length.
//   - reference: what answers share with the reference in words and characters.
//   - dialogue: whether dialogues keep what was said, and ask for what is open.
//   - drift: how far answers move when the same is asked in other words or with errors.
//   - noise: whether the intent of a message is recognised with noise.
//   - similarity: whether answers say the same as others, by meaning and by facts.
//   - likelihood: the probabilities that a model gives to fixed texts: how far variants
//     are apart, how far back the context is used, whether a long one harms.
//
// Two rules hold for all of them. A question without an answer (a failed request)
// has no numbers: it is missing, which contracts bound by the worst and the best
// that it could have been. And an answer in which nothing was found to judge is
// not wrong either, unless the suite says so: "unparsed" is a number of its own.
package dimension

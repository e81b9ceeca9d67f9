// Package overlap scores texts by the words and characters that they share with
// references: BLEU, chrF, TER and ROUGE, to the last digit as the reference
// implementations sacrebleu 2.6.0 and rouge_score 0.1.2 do, with intervals and
// paired tests that they lack.
//
// # What it is for
//
// A tripwire on cases with a reference answer, and a detector of rewritten
// text; never a verdict on quality. On 100 documents and 16 systems judged by
// experts, ROUGE-L orders single summaries with a Kendall correlation of 0.14.
//
// # The way of a number
//
// A [Metric] is a struct of options. A [Tally] adds segments to it and keeps,
// for each cluster of segments that depend on each other, the sums of the
// sufficient statistics: matches, n-grams and lengths for BLEU, say. Scores of a
// corpus are not means of scores of sentences, so whatever resamples does it
// with these: [Tally.Estimate] for an interval, [Compare] for two systems on
// the same segments. [Metric.Score] of one segment's statistics is the score of
// that sentence.
//
// Each score has a signature ([Tally.Signature]); those with different ones
// must not be compared.
//
// # What is refused
//
// Streams of unequal length, segments without a reference, and ROUGE's own
// tokenizer on text that is not in ASCII letters: it deletes everything else,
// so that two equal texts in Chinese score 0. [Letters] tells which tokenizers
// fit a text.
//
// # Time
//
// All but TER, ROUGE-L and ROUGE-Lsum take time in proportion to the text.
// These compare all words with all others, and refuse texts of more than 16,384
// words.
//
// Everything is a pure function of its arguments. A tally is for one goroutine.
package overlap

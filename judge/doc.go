// Package judge uses a language model as a measuring instrument: it asks for
// verdicts from a closed menu, refuses what is none, and finds out what the
// verdicts are worth.
//
// # One verdict
//
// A [Criterion] is a question with a menu of two to five levels. [Judge.Point]
// asks it about one answer, [Judge.Compare] which of two answers is better, in
// both orders, by two independent calls. The result is a [Mark] or a [Preference].
// Each criterion is a call of its own, so the order of criteria cannot leak; the
// order of the levels and the names of the two answers are drawn anew for each
// call from the judge's seed.
//
// The judge is asked for one JSON object {"reason", "verdict"}, the reason first.
// What is not exactly that gets one second try that says what was wrong, and is
// then unscored: never a default, never a zero, never "wrong". Unscored marks are
// excluded from means, counted, and bounded by the worst and the best that they
// could have been ([Count]); with more than 2 % of them nothing is concluded.
//
// # Answers are hostile
//
// What is judged was written by whom it is about. It stands byte for byte between
// lines that hold a code. The code is a keyed hash of everything in the question,
// the answer included, so no text can hold its own. Nothing is ever parsed as a
// template; a prompt is concatenated. The verdict is the last JSON object that
// stands outside of all fences and is no echo of the material. The second try
// repeats nothing of the first answer, which may hold an echo.
//
// Text that tries to talk to the judge ([Suspicions]) is not asked about at all:
// its mark is invalid, and a person has to look.
//
// # What a judge is worth
//
// [Calibrate] holds a judge against people's labels and writes an [Instrument]
// report: sensitivity and specificity, alone and by variant, agreement beside that
// of people among themselves, bias by position ([PositionBias]) and length
// ([ControlLength]), repeatability, drift ([FindDrift]), what attacks achieve, and
// what the judged shares are after correction. Package agree has the statistics.
//
// Everything but the asking is a pure function. A Judge is safe for concurrent
// use if its asker is.
package judge

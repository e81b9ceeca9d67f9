// Package verify reads what an answer says and holds it against what was asked,
// without a model: numbers, choices, texts, JSON and code; the 25 instructions of
// IFEval; the outward shape of a text; whether it does what was asked or refuses.
//
// Finding the answer in the text is half of the work, and where evaluations go
// wrong unseen: a program that finds no number must not say that the number is
// wrong, let alone right. So extraction has a result of its own. [Expected.Check]
// gives Right, Wrong or [Unparsed], which is the zero value, and says where the
// answer stood. An [Instruction] is followed, not followed or Undetermined: a text
// too short to tell its language does not count as one in the language.
//
// [Behave] tells refusals from compliance where the rules are sure, and is Unclear
// where they are not: then a judge has to read.
//
// Texts are hostile: everything here takes time in proportion to the text, or
// bounds what it looks at and says so, and nothing in a text is evaluated. All
// functions are pure and safe for concurrent use.
//
// What this package does not do: judge meaning. A text that is right in other
// words than Expected is Wrong or Unparsed here; that is a judge's business.
package verify

// Package perturb writes a text again so that it means the same and looks
// different: in other words, in another order, more or less politely, with typing
// errors, with characters that sound or look alike, in another script. A model
// that understands a request answers both alike; how much it does not is what
// the checks drift and noise measure.
//
// # How
//
// [Apply] takes a [Family], a text and what draws are keyed by, and gives a
// [Result]. It is a pure function: equal arguments give equal results, on every
// machine. A family first lists all places of the text that it could change, each
// with one replacement; then it draws some of them, by the rate.
//
// # What is never changed
//
// Numbers in digits and in words, codes and identifiers, links, code, placeholders,
// quotations, names, and words of negation and of logic ("only", "before"): an answer
// may rightly depend on them. Two families move them with their sentence (reorder)
// or write digits wider (width), and change none. What the result says of these
// facts is compared with what the text said, so that an error that makes "not" of
// "note" is no result either.
//
// # Validity
//
// A Result is valid if all this held and the text is different. Where a family
// finds nothing to change the Result is not valid and says why: it must not count as
// a perturbation that a model withstood. Valid does not mean that a person would
// find the same meaning: no table proves that. Have people look at a sample of each
// family (assay perturb writes one), and report the share that kept its meaning.
//
// The tables are in tables/, one for each kind of fact, with what they hold in their
// first lines.
package perturb

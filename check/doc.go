// Package check is the plug between a model that answers and the judgements
// about its answers.
//
// A check asks questions of a variant through an [Asker] and reads the
// [Answer]s. It never sees a connection: who answers, how often a failed request
// is tried again, what it may cost and what is already known are the business of
// whoever hands it the Asker. So the same check runs against a real endpoint, a
// recorded one and one that is made wrong on purpose.
//
// A question that got no answer has an Answer that says so in its Outcome. It is
// never an empty text, and never counts as right or wrong: checks count it as
// missing.
package check

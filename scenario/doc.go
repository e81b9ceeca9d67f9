// Package scenario says what a dialogue must keep in mind, and reads from replies
// whether it was kept: without a model, and by rules that a person can repeat.
//
// A [Scenario] is a list of turns of a user. Each turn says what it does to the
// state of the dialogue: it sets slots, cancels some, or implies a value without
// naming it ("the same plan as before", "the other account"). [Read] reads a file of
// them and reports everything that is wrong with it by file, line and column;
// [Generate] makes scenarios of four domains in English and Chinese from a seed, so
// that nobody can have learned them. Both end in the same thing: a checked scenario
// whose state is known at every turn.
//
// # The state
//
// The state is a graph. A node is one value of a slot with the turn that introduced
// it and the turn that superseded it; an edge says from which node a value was
// derived. What a turn implies is looked up in that graph, and is one of four:
//
//   - unique: the value that the slot has now. It has to be used.
//   - derivable: the value of another slot, scope or time, which one edge leads to.
//     It has to be used, too.
//   - ambiguous: several values fit. The assistant has to ask.
//   - missing: no value fits. It has to ask.
//
// [Scenario.Needs] lists them with their depth: how many turns back the value was
// said. [Scenario.State] lists the values that hold after a turn, each with the
// phase of its life: activated, persisting, updated, cancelled or contradicted.
//
// # Reading replies
//
// [Scenario.Judge] reads a reply. A value counts as asserted if it stands in the
// reply in any of its forms (a date, an amount, a number in digits or words, an
// alias; English or Chinese) and is neither denied nor told as what was before:
// "from Basic to Plus" asserts Plus. Each pair of a constraint and a turn is
// satisfied, violated or not exercised. A reply that does not touch a constraint
// says nothing about it, and that is not counted as kept.
//
// [Scenario.Probe] is a side question about the state, to be asked on a branch that
// is not appended to the dialogue; [Scenario.ReadState] reads its answer slot by slot.
//
// # Over many dialogues
//
// [Consistency] is the response consistency score of one dialogue, [FitDepth] the
// depth at which implied values begin to be lost, and [FindLoss] the slot and the
// turn from which one of two variants knows less than the other.
//
// Everything here is a pure function of its arguments, and safe for concurrent use.
// Replies are hostile: of each at most 32 KiB are read, in time proportional to them.
package scenario

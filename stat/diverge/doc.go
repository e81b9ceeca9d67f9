// Package diverge measures how far distributions of answers are apart, and how far
// the answers to one question are.
//
// # Which one
//
// Two known distributions: [Between]. Two of which a server tells only the most
// likely tokens: [Between] is not for these; [Within] bounds what it would say.
// Samples that fall into classes, such as comply and refuse: [Drift] for two
// groups of samples, [Classes] for one. Samples that are sequences of tokens:
// [Hamming]. One text that both models score token by token: [OfText].
//
// # The floor
//
// A distance of samples is never 0: with 5 classes and 5 samples a side, a model
// is 0.3 away from itself by 1 − cosine + KL. So [Drift] and [Hamming] say how far
// the samples would be apart if nothing had changed, from dealing them anew
// within each question, and only what exceeds that counts.
//
// All logarithms are natural. Everything is a pure function of its arguments, and
// safe for concurrent use. What draws random numbers takes a seed.
package diverge

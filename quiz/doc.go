// Package quiz makes questions whose right answers are known, from a seed: for
// checks that have no file of cases, and cannot use one that models have learnt.
//
// [Questions] are small tasks with one right answer in a form that is easy to find:
// sums told as a story, facts that the prompt states, choices, lists and JSON
// extracted from a note. [Inquiries] are questions about invented places, each with a
// passage that either has the answer or, for every fourth, does not. Both come in
// English and Chinese. Nothing in them is true of the world, so an answer rests on the
// prompt or on nothing.
//
// They are easy on purpose. A check asks them to see answers change, not to rank
// models, and an error of a model shows only where it is not at its limit anyway.
//
// The same arguments give the same questions, byte for byte. All functions are pure and
// safe for concurrent use.
package quiz

import "math/rand/v2"

// Languages are the languages that questions can be asked in.
func Languages() []string { return []string{"en", "zh"} }

func source(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// some draws k different elements in a random order.
func some[T any](r *rand.Rand, from []T, k int) []T {
	out := make([]T, 0, k)
	for _, i := range r.Perm(len(from))[:k] {
		out = append(out, from[i])
	}
	return out
}

// apart draws k different numbers from lo to hi.
func apart(r *rand.Rand, k, lo, hi int) []int {
	out := make([]int, 0, k)
	for _, i := range r.Perm(hi - lo + 1)[:k] {
		out = append(out, lo+i)
	}
	return out
}

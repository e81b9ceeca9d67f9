// Package lock writes down what a run depends on, and says how far two runs that
// depend on different things can be compared.
//
// A [Lock] is a list of facts in parts: the program, what is asked and by which seeds,
// the data, each variant with its engine, flags, weights, tokenizer and template, the
// client's machine. A [Fact] is a value or the reason why there is none: what could not
// be learnt is never left out and never empty. Some facts are volatile (the name of the
// machine, the serial number of a GPU, the patch level of the kernel): they stand in a
// part of their own, and [Lock.Digest] leaves them out, so that equal environments have
// equal digests.
//
// [Compare] sets two locks side by side, fact by fact. Each difference has a [Class] by
// a fixed policy, and the worst of them is the class of the pair. [Enforce] decides
// whether something may run under a lock.
//
// The package is pure: who reads files, asks servers and looks at the machine is package
// bench. The file is strict YAML, read and written by package config.
package lock

// Package attention reads dumps of attention weights and says where a model looks:
// how evenly, how far back, whether at what matters, and from which position on that
// changes, if it does.
//
// A dump is NDJSON, a row a query:
//
//	{"layer": 3, "head": 7, "query": 512, "weights": [0.31, 0.002, …]}
//	{"layer": 3, "head": 7, "query": 513, "top": [[0, 0.31], [498, 0.2]], "keys": 514}
//
// weights are those of the keys from 0 on, which sum to 1. A row may have the greatest
// only, as pairs of key and weight; keys is then how many there are, query+1 if left
// out. Servers do not give attention away: the file comes of one's own forward passes.
//
// [Read] drops the sinks first, keys that models park attention at whatever the text
// says: the first four, and any that has more than a fifth of a head's attention on
// average. What is left of a row is made to sum to 1. Its evenness is the entropy
// divided by the logarithm of the number of its keys, 0 at one key and 1 for all
// alike; of a row that has the greatest weights only it is known within bounds, and
// used if they are close. Heads that look at the needle, the keys that matter, more
// than three times as much as chance on the shorter contexts are retrieval heads; the
// course of the evenness over the position is theirs, or of all heads if there are
// none. Where it changes by a step of 0.05 or more there is a break (by package screen,
// without the drift that comes with the number of keys), and none is an answer.
//
// A dump is hostile input: lines, rows and keys are bounded, and what is no attention
// is refused with its line. Everything is a pure function of its arguments, and safe
// for concurrent use.
package attention

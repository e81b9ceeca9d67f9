// Package capability finds out what an endpoint provably does, by asking it.
//
// An API's documentation is no proof: servers take fields and ignore them, give
// probabilities where log-probabilities belong, serve stale ones from a prefix cache,
// cut a prompt without a word, and answer the same seed differently under load. A
// metric that rests on such a field would be a number about nothing. [Probe] asks
// about a hundred and fifty short questions and says of each capability whether it was
// seen (check.Proven), was asked for and did not come (check.Absent), or whether what
// was seen proves nothing (check.Unknown), with one sentence of what was seen. Checks
// choose their estimators by it.
//
// Proven means seen now. A report is of one fingerprint of an endpoint: its model and
// what it calls itself; [Report.Current] tells whether a kept one may still be used.
package capability

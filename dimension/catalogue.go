package dimension

import "github.com/assay-llm/assay/check"

// Catalogue returns the checks, in the order in which help lists them. The list is
// the caller's; the checks are not to be changed.
func Catalogue() []*check.Check {
	return []*check.Check{Attention, Consistency, Context, Dialogue, Drift, Exact, Fidelity, Hallucination, Instructions, Likelihood, Noise, Reference, Safety, Shape, Similarity}
}

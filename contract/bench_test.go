package contract

import (
	"testing"

	"github.com/assay-llm/assay/record"
)

// BenchmarkEvaluate judges five clauses on 2 × 100,000 requests.
func BenchmarkEvaluate(b *testing.B) {
	rng := source(5)
	w := world{n: 100_000, sigma: 0.2, rho: 0.3, slower: 1, fails: 0.002}
	br, bw := w.records("baseline", rng)
	cr, cw := w.records("candidate", rng)
	e := Evidence{Records: append(br, cr...), Windows: []record.Window{bw, cw}, Baseline: "baseline", Candidate: "candidate"}
	c := &Contract{}
	for _, s := range []string{"p99(ttft) <= 800ms", "p95(tpot) <= baseline * 1.05", "share(failed) <= baseline + 0.5 points", "rate(output_tokens) >= baseline * 0.88", "mean(e2e) <= 2s"} {
		c.Clauses = append(c.Clauses, Clause{Need: need(b, s)})
	}
	b.ReportAllocs()
	for b.Loop() {
		Evaluate(c, e)
	}
	b.ReportMetric(float64(len(e.Records)*b.N)/b.Elapsed().Seconds(), "records/s")
}

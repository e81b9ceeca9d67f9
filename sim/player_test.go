package sim_test

import (
	"testing"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/sim"
	"github.com/assay-llm/assay/workload"
)

// BenchmarkPlayer plays a minute of eight requests a second.
func BenchmarkPlayer(b *testing.B) {
	const length = time.Minute
	spec := workload.Spec{
		Arrivals: workload.Arrivals{Poisson: &workload.Rate{Fixed: 8}}, For: config.Duration(length),
		Prompts: workload.Prompts{Synthetic: workload.Fixed(config.Count(512))}, Output: workload.Fixed(config.Count(64)),
	}
	b.ReportAllocs()
	for b.Loop() {
		plan, err := workload.New("chat", spec, nil, 1, "salt")
		if err != nil {
			b.Fatal(err)
		}
		p, err := sim.NewPlayer(sim.Config{Jitter: 0.1})
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		p.Sink = func(*record.Record) { n++ }
		part := p.Part(plan, 1)
		part.Block(0)
		part.Close()
		if n < 300 {
			b.Fatalf("%d requests", n)
		}
	}
	b.ReportMetric(length.Seconds()*float64(b.N)/b.Elapsed().Seconds(), "s/s")
}

package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
)

// made is a synthetic run: two variants on a Poisson workload in four blocks,
// the candidate slower per token.
type made struct {
	seed     uint64
	requests int // a variant
	blocks   int
	rate     float64 // of the Poisson arrivals, per second
	tokens   int     // of an answer; 0: random
	failing  float64 // share of failed requests
	slower   float64 // of the candidate, per token
	usage    bool
	variants []string
}

func usual() made {
	return made{seed: 7, requests: 600, blocks: 4, rate: 8, failing: .004, slower: 1.12, usage: true, variants: []string{"baseline", "candidate"}}
}

func (s made) build() (*record.Manifest, []record.Record) {
	rng := rand.New(rand.NewPCG(s.seed, 1))
	m := &record.Manifest{
		Schema: record.ManifestSchema, ID: "20261130T120000-0a1b2c", Name: "chat-int4", Assay: "v0.1.0", Seed: 42, Salt: "5eed5a17",
		Start: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), State: "done", SuiteFile: "suite.yaml", Digest: "00ff00ff",
		Suite: "version: 1\nname: chat-int4\nseed: 42\nvariants:\n  baseline: {url: \"http://127.0.0.1:8000\"}\n",
		Host:  map[string]string{"cpu": "EPYC 7B13", "cores": "2", "memory": "8 GiB", "kernel": "6.1", "go": "go1.26"},
	}
	for _, v := range s.variants {
		m.Variants = append(m.Variants, record.VariantInfo{Name: v, URL: "http://127.0.0.1:8000", Model: "llama-3.1-8b-" + v, API: "chat", Protocol: "HTTP/1.1", Engine: map[string]string{"engine": "sim", "config": "step:\n  base: 8ms"}})
	}
	m.Workloads = []record.WorkloadInfo{{Name: "chat", Arrivals: fmt.Sprintf("Poisson %g/s", s.rate), Open: true, Process: &record.Process{Kind: "poisson", Rate: []record.RatePiece{{Rate: s.rate}}}, Planned: int64(s.requests), WarmUp: 10, Plan: "abcd", Rate: s.rate, Peak: 2 * s.rate, Ceiling: ceiling()}}
	var records []record.Record
	start := time.Second
	each := 0
	if s.blocks > 0 {
		each = s.requests / s.blocks
	}
	for block := range s.blocks {
		length := time.Duration(float64(each) / s.rate * 1e9)
		for i := range s.variants {
			if block%2 == 1 {
				i = len(s.variants) - 1 - i
			}
			m.Windows = append(m.Windows, record.Window{Variant: s.variants[i], Workload: "chat", Block: block, Start: record.At(start), End: record.At(start + length)})
			for range each {
				due := start + time.Duration(rng.Float64()*float64(length))
				records = append(records, s.record(rng, int64(len(records)), i, block, due))
			}
			start += length + time.Second
		}
	}
	record.Sort(records)
	m.Elapsed = start
	m.Ledger = record.Ledger(records)
	m.Client = certificate(int(start / time.Second))
	for i, v := range s.variants {
		m.Engines = append(m.Engines, engineSide(v, i))
	}
	return m, records
}

func (s made) record(rng *rand.Rand, shot int64, variant, block int, due time.Duration) record.Record {
	send := due + time.Duration(50e3+rng.Float64()*250e3)
	r := record.Record{
		Shot: shot, Variant: s.variants[variant], Workload: "chat", Block: block, Stream: true, Outcome: record.OK, Status: 200,
		Due: record.At(due), Admit: record.At(due), Send: record.At(send), Sent: record.At(send + 20e3), Finish: "stop", Reused: true,
		Labels: map[string]string{"tier": []string{"gold", "free"}[rng.IntN(2)]},
	}
	if rng.Float64() < s.failing {
		r.Outcome, r.Status, r.Detail, r.Finish = record.HTTP5xx, 503, "overloaded", ""
		r.EOF = record.At(send + 5e6)
		return r
	}
	n := s.tokens
	if n == 0 {
		n = 24 + rng.IntN(41)
	}
	t := send + time.Duration(200e6*math.Exp(.25*rng.NormFloat64()))
	step := 14e6
	if variant == 1 {
		step *= s.slower
	}
	for i := range n {
		r.Events = append(r.Events, record.Event{At: record.At(t), Kind: record.KindContent, Read: uint32(i), Bytes: 4, Lag: -1})
		t += time.Duration(step * (1 + .05*rng.NormFloat64()))
	}
	r.EOF = record.At(t)
	if s.usage {
		r.Prompt, r.Output, r.Cached = record.Tokens(int64(180+rng.IntN(60))), record.Tokens(int64(n)), record.Tokens(int64(rng.IntN(2)))
	}
	return r
}

// engineSide is what an engine told. That of the candidate was restarted once, and
// does not tell how it decodes.
func engineSide(variant string, i int) record.EngineSide {
	side := record.EngineSide{Variant: variant, Workload: "chat", Engine: "vllm", Windows: 4, Scrapes: 80, Seconds: 76, Values: map[string]float64{
		"client_ttft_seconds_mean": .2064, "ttft_seconds_mean": .2049, "queue_seconds_mean": .0012, "prefill_seconds_mean": .2021, "decode_seconds_mean": .6125,
		"running_mean": 6.41, "running_max": 14, "waiting_mean": 0, "waiting_max": 2, "kv_usage_ratio_max": .3125, "prefix_hit_ratio": .0042,
		"usage_cached_ratio": .0041, "preemptions": 0, "prompt_tokens": 126000,
	}}
	if i > 0 {
		side.Lost = map[string]string{"preemptions": "the counter was reset within a window: the engine restarted, or another replica answered"}
		for _, name := range []string{"preemptions", "decode_seconds_mean"} {
			delete(side.Values, name)
		}
	}
	return side
}

// ceiling is that of a client on a small machine.
func ceiling() *record.Ceiling {
	return &record.Ceiling{
		Shape:    record.Shape{Stream: true, Events: 64, EventBytes: 4, Gap: 3906250, PromptBytes: 1024},
		Requests: 1086, Low: 944, High: 1292, Events: 69_504, Streams: 269, EndedBy: "the client sent late: p99 of its own lag is 16.1ms, above 5ms",
		Repeats: 3, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Took: 14 * time.Second, Cores: 2, Client: 0.48, Server: 0.41, Stamps: true,
		Overhead: &record.Overhead{Rate: 384, TTFTP50: 210 * time.Microsecond, TTFTP99: 1300 * time.Microsecond, LagP99: 400 * time.Microsecond, CPU: 640 * time.Microsecond},
	}
}

func certificate(seconds int) record.Certificate {
	c := record.Certificate{Fit: true}
	for i := range seconds {
		c.Seconds = append(c.Seconds, record.ClientSecond{
			Second: i, Sent: 8, InFlight: 5, SendLagP50: 80e3, SendLagP99: time.Duration(250e3 + 50e3*math.Sin(float64(i)/5)), SendLagMax: 400e3,
			StampLagP99: 40e3, StampLagMax: 90e3, Stall: time.Duration(1e6 + 1e6*math.Cos(float64(i)/9)), CPU: .12 + .03*math.Sin(float64(i)/7), Descriptors: 24, Limit: 1024, SchedP99: 30e3, GCPauseMax: 60e3,
		})
	}
	return c
}

// agreed is a contract of the given needs.
func agreed(t testing.TB, needs ...string) *contract.Contract {
	t.Helper()
	c := &contract.Contract{Version: 1, Name: "house"}
	for _, s := range needs {
		id, text := "", s
		for i := range s {
			if s[i] == ':' {
				id, text = s[:i], s[i+1:]
				break
			}
		}
		n, err := contract.ParseNeed(text)
		if err != nil {
			t.Fatal(err)
		}
		c.Clauses = append(c.Clauses, contract.Clause{ID: id, Need: n})
	}
	return c
}

// document builds the run and judges it by the house's contract.
func (s made) document(t testing.TB) *Document {
	t.Helper()
	m, records := s.build()
	return Build(m, records, judged(t, m, records))
}

func judged(t testing.TB, m *record.Manifest, records []record.Record) *contract.Verdict {
	t.Helper()
	c := agreed(t, "first-token:p99(ttft) <= 800ms", "no-slower:p95(tpot) <= baseline * 1.05", "healthy:share(failed) <= baseline + 0.5 points", "rare:p99.9(ttft) <= 2s")
	gold := agreed(t, "gold:p95(ttft) <= 400ms").Clauses[0]
	gold.Where = map[string]string{"tier": "gold"}
	c.Clauses = append(c.Clauses, gold)
	e := contract.Evidence{Records: records, Windows: m.Windows, Unfit: m.Client.Reasons}
	for i, v := range m.Variants {
		if i == 0 && len(m.Variants) > 1 {
			e.Baseline = v.Name
		} else {
			e.Candidate = v.Name
		}
	}
	v := contract.Evaluate(c, e)
	return &v
}

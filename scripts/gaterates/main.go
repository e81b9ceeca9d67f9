// Gaterates measures how often a whole suite decides wrongly, and how often it
// finds what is there, on the simulated engine, and writes docs/gate-rates.md.
//
//	go run ./scripts/gaterates -o docs/gate-rates.md    # 1,000 suites, some minutes on two cores
//	go run ./scripts/gaterates -suites 40 -planted 40   # a glance, to the standard output
//
// It ends with status 1 when more than 1 % of the suites of identical variants fail.
package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/sim"
)

// suite is what a team might gate a release with. It may stop early.
const suite = `version: 1
name: gate
stop: early
variants:
  baseline: {sim: {step: {base: 8ms, sequence: 20us, prefill: 10us}, jitter: 5%, faults: {error_before: 0.2%}}}
  candidate: {sim: {step: {base: 8ms, sequence: 20us, prefill: 10us}, jitter: 5%, faults: {error_before: 0.2%}}}
workloads:
  chat:
    arrivals: {poisson: 10/s}
    for: 6m
    prompts: {synthetic: {uniform: {min: 90, max: 130}}}
    output: {uniform: {min: 16, max: 40}}
contract:
  clauses:
    - {id: pace, need: p95(tpot) <= baseline * 1.025}
    - {id: first-token, need: p99(ttft) <= baseline * 1.05}
    - {id: errors, need: share(failed) <= baseline + 0.4 points}
    - {id: quality, need: mean(self_consistency) >= baseline - 0.01}
`

// blocks of the suite, and after which of them it is looked at.
const blocks = 12

var looks = contract.Looks(blocks)

// scenario is one kind of candidate.
type scenario struct {
	name string
	diff bench.Difference // zero: identical

	suites, pass, fail int
	used               float64   // part of the planned requests, summed
	fixedPass          []int     // judged once after each look's blocks
	fixedFail          []int     // the same
	usedOf             []float64 // part of the requests by then, summed
	fixed              int       // suites that were judged once
}

func scenarios() []*scenario {
	list := []*scenario{
		{name: "identical"},
		{name: "TPOT +5 %", diff: bench.Difference{Metric: "tpot", Factor: 1.05}},
		{name: "TTFT +10 %, and so its p99", diff: bench.Difference{Metric: "ttft", Factor: 1.10}},
		{name: "errors +1 point", diff: bench.Difference{Metric: "failed", Shift: 0.01}},
		{name: "quality −2 points", diff: bench.Difference{Metric: "self_consistency", Shift: -0.02}},
	}
	for _, s := range list {
		s.fixedPass, s.fixedFail, s.usedOf = make([]int, len(looks)), make([]int, len(looks)), make([]float64, len(looks))
	}
	return list
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("gaterates", flag.ContinueOnError)
	flags.SetOutput(stderr)
	suites := flags.Int("suites", 1000, "suites of identical variants")
	planted := flags.Int("planted", 200, "of them, suites into which differences are planted")
	seed := flags.Uint64("seed", 1, "seed")
	out := flags.String("o", "", "file to write instead of the standard output: docs/gate-rates.md")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	start := time.Now()
	list, err := measure(*suites, *planted, *seed, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "gaterates:", err)
		return 4
	}
	fmt.Fprintf(stderr, "gaterates: %v with %d processors\n", time.Since(start).Round(time.Second), runtime.GOMAXPROCS(0))
	text := page(list, *suites, *planted, *seed)
	if *out == "" {
		fmt.Fprint(stdout, text)
	} else if err := os.WriteFile(*out, []byte(text), 0o644); err != nil {
		fmt.Fprintln(stderr, "gaterates: writing the page:", err)
		return 4
	}
	if same := list[0]; float64(same.fail) > allowed*float64(same.suites) {
		fmt.Fprintf(stderr, "gaterates: %d of %d suites of identical variants fail, and at most 1 %% may\n", same.fail, same.suites)
		return 1
	}
	return 0
}

// allowed is the share of suites of identical variants that may fail.
const allowed = 0.01

// measure judges the suites, as many at a time as there are processors.
func measure(suites, planted int, seed uint64, stderr io.Writer) ([]*scenario, error) {
	s, err := bench.Parse("gate.yaml", []byte(suite), "")
	if err != nil {
		return nil, err
	}
	list := scenarios()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	next := 0
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				stop := i >= suites || failed != nil
				if !stop && i > 0 && i%100 == 0 {
					fmt.Fprintf(stderr, "gaterates: %d of %d suites\n", i, suites)
				}
				mu.Unlock()
				if stop {
					return
				}
				if err := judge(s, list, i, i < planted, seed, &mu); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return list, failed
}

// judge plays suite i and judges it, with every difference if it is one of those.
func judge(s *bench.Suite, list []*scenario, i int, planted bool, seed uint64, mu *sync.Mutex) error {
	random := rand.New(rand.NewPCG(seed, uint64(i)))
	v, _ := s.Variants.Get(bench.Baseline)
	seeds := map[string]uint64{bench.Baseline: random.Uint64(), bench.Candidate: random.Uint64()}
	e, err := s.Play(random.Uint64()>>11, func(variant string) sim.Config {
		c := *v.Sim
		c.Seed = seeds[variant]
		return c
	})
	if err != nil {
		return err
	}
	score(e, random.Uint64())
	for _, sc := range list {
		if sc.diff != (bench.Difference{}) && !planted {
			continue
		}
		changed := e
		if sc.diff != (bench.Difference{}) {
			changed.Records = bench.Plant(e.Records, bench.Candidate, "", sc.diff, random.Uint64())
		}
		verdict, used := bench.JudgeEarly(s.Contract.Contract, changed, looks)
		var once []contract.Grade
		var parts []float64
		for k := range looks {
			if k+1 < len(looks) && !planted {
				continue
			}
			g, part := bench.JudgeAfter(s.Contract.Contract, changed, looks[k])
			once, parts = append(once, g.Grade), append(parts, part)
		}
		mu.Lock()
		sc.add(verdict.Grade, used, once, parts)
		mu.Unlock()
	}
	return nil
}

func (sc *scenario) add(g contract.Grade, used float64, once []contract.Grade, parts []float64) {
	sc.suites++
	sc.used += used
	switch g {
	case contract.Pass:
		sc.pass++
	case contract.Fail:
		sc.fail++
	}
	if len(once) < len(looks) { // only at its end
		return
	}
	sc.fixed++
	for k, g := range once {
		sc.usedOf[k] += parts[k]
		switch g {
		case contract.Pass:
			sc.fixedPass[k]++
		case contract.Fail:
			sc.fixedFail[k]++
		}
	}
}

// score gives every answer a score between 0 and 1, as a check would: half of its
// variance is the prompt's, which is the same for both variants.
func score(e contract.Evidence, seed uint64) {
	const mean, spread = 0.7, 0.1
	for i := range e.Records {
		r := &e.Records[i]
		if !r.Success() {
			continue
		}
		prompt := rand.New(rand.NewPCG(seed, uint64(r.Shot))).NormFloat64()
		own := rand.New(rand.NewPCG(seed^uint64(len(r.Variant)), uint64(r.Shot)+1<<32)).NormFloat64()
		r.Values = map[string]float64{"self_consistency": math.Min(1, math.Max(0.02, mean+spread*(prompt+own)))}
	}
}

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/sim"
	"github.com/assay-llm/assay/workload"
)

// loadFlags describe one variant and one workload. Names that users of other
// tools know are accepted beside ours; see aliases.
type loadFlags struct {
	runFlags
	url, model, key, api string
	simulate             string
	rate                 float64
	process              string
	concurrency, cap     int64
	duration             time.Duration
	requests, warmup     int64
	input, output        int64
	prompts, format      string
	ignoreEOS, noStream  bool
	temperature          float64
	needs                []string
}

// aliases are the flags of vLLM's, guidellm's and AIPerf's load tools that mean
// the same as one of ours.
var aliases = map[string]string{
	"base-url": "url", "target": "url",
	"request-rate": "rate", "rate-type": "arrivals", "arrival-pattern": "arrivals",
	"max-concurrency": "cap", "num-prompts": "requests", "request-count": "requests", "max-requests": "requests",
	"max-seconds": "duration", "benchmark-duration": "duration",
	"random-input-len": "input-tokens", "synthetic-input-tokens-mean": "input-tokens",
	"random-output-len": "output-tokens", "output-tokens-mean": "output-tokens",
	"num-warmups": "warmup", "warmup-request-count": "warmup",
	"random-seed": "seed", "dataset-path": "prompts", "backend": "api", "endpoint-type": "api",
}

func normalize(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if ours, ok := aliases[name]; ok {
		name = ours
	}
	return pflag.NormalizedName(name)
}

func newLoad(c *console) *cobra.Command {
	var f loadFlags
	cmd := &cobra.Command{
		Use:   "load --url URL --model MODEL",
		Short: "Quick load test of one endpoint, without a suite",
		Long: `Load sends one workload to one endpoint and reports what came of it. It judges
only what --need demands. Flags of vllm bench serve, guidellm and AIPerf that
mean the same are understood (--request-rate, --max-concurrency, --num-prompts,
--random-input-len, --random-output-len, --benchmark-duration and others).`,
		Example: `  assay load --url http://127.0.0.1:8000/v1 --model llama --rate 8 --duration 60s
  assay load --sim '{step: 10ms}' --concurrency 16 --requests 500 --need 'p95(ttft) <= 300ms'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := f.suite(cmd)
			if err != nil {
				return usage(err)
			}
			return c.measure(cmd.Context(), cmd, s, &f.runFlags)
		},
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.url, "url", "", "http(s)://host:port/v1 of an OpenAI-compatible server")
	flags.StringVar(&f.model, "model", "", "model name sent with each request")
	flags.StringVar(&f.key, "key", "", "API key: env:NAME or file:PATH")
	flags.StringVar(&f.api, "api", "", "chat (default) or completions")
	flags.StringVar(&f.simulate, "sim", "", "measure a simulated engine of this configuration instead of a URL; {} for the default")
	flags.Float64Var(&f.rate, "rate", 0, "open loop: requests a second")
	flags.StringVar(&f.process, "arrivals", "poisson", "open loop: poisson or constant")
	flags.Int64Var(&f.concurrency, "concurrency", 0, "closed loop: virtual users")
	flags.Int64Var(&f.cap, "cap", 0, "open loop: most requests in flight; more wait, and are counted")
	flags.DurationVar(&f.duration, "duration", 0, "how long to send; 30s if neither this nor --requests is given")
	flags.Int64Var(&f.requests, "requests", 0, "how many requests to send")
	flags.Int64Var(&f.warmup, "warmup", 5, "requests before the measured ones")
	flags.Int64Var(&f.input, "input-tokens", 256, "length of synthetic prompts")
	flags.Int64Var(&f.output, "output-tokens", 128, "limit of output tokens; 0: the server's default")
	flags.StringVar(&f.prompts, "prompts", "", "JSONL file of prompts instead of synthetic ones")
	flags.StringVar(&f.format, "format", "", "format of the prompts: assay, sharegpt or openai; found out if left out")
	flags.BoolVar(&f.ignoreEOS, "ignore-eos", false, "ask the server to go on to the limit of output tokens")
	flags.BoolVar(&f.noStream, "no-stream", false, "ask for unstreamed answers")
	flags.Float64Var(&f.temperature, "temperature", -1, "sampling temperature; the server's default if left out")
	flags.StringArrayVar(&f.needs, "need", nil, "a clause to judge by, such as 'p99(ttft) <= 800ms'; may be repeated")
	flags.SetNormalizeFunc(normalize)
	return cmd
}

// suite makes the suite that the flags describe. It goes through the same
// reader as a file, so that the same rules hold; a fault names the flag's place
// in that suite.
func (f *loadFlags) suite(cmd *cobra.Command) (*bench.Suite, error) {
	if f.rate == 0 && f.concurrency == 0 {
		return nil, errors.New("neither a rate nor a concurrency is given\n  hint: add --rate 8 for an open loop or --concurrency 16 for a closed one")
	}
	v := bench.Variant{URL: f.url, Model: f.model, API: f.api}
	if f.key != "" {
		key, err := config.ParseSecret(f.key)
		if err != nil {
			return nil, fmt.Errorf("--key %w", err)
		}
		v.Key = key
	}
	if f.simulate != "" {
		v.Sim = new(sim.Config)
		if err := config.Decode("--sim", []byte(f.simulate), v.Sim); err != nil {
			return nil, err
		}
	}
	if v.URL == "" && v.Sim == nil {
		return nil, errors.New("no endpoint is given\n  hint: add --url http://127.0.0.1:8000/v1, or --sim '{}' for a simulated engine")
	}
	w, err := f.workload(cmd)
	if err != nil {
		return nil, err
	}
	s := bench.Suite{Version: 1, Name: "load"}
	s.Variants.Set("target", v)
	s.Workloads.Set("load", w)
	if len(f.needs) > 0 {
		s.Contract.Contract = &contract.Contract{Version: 1, Name: "flags"}
		for _, need := range f.needs {
			parsed, err := contract.ParseNeed(need)
			if err != nil {
				return nil, fmt.Errorf("--need %q: %w", need, err)
			}
			s.Contract.Contract.Clauses = append(s.Contract.Contract.Clauses, contract.Clause{Need: parsed})
		}
	}
	text, err := config.Encode(s)
	if err != nil {
		return nil, err
	}
	suite, err := bench.Parse("load", text, filepath.Dir(f.prompts))
	var faults config.Faults
	if errors.As(err, &faults) { // the lines are of a file that the user never saw
		return nil, fmt.Errorf("%s: %s\n  hint: %s", faults[0].Path, faults[0].What, faults[0].Hint)
	}
	return suite, err
}

func (f *loadFlags) workload(cmd *cobra.Command) (workload.Spec, error) {
	w := workload.Spec{
		For: config.Duration(f.duration), Requests: config.Count(f.requests), WarmUp: workload.WarmUp{Requests: config.Count(f.warmup)},
		Cap: config.Count(f.cap), IgnoreEOS: f.ignoreEOS,
	}
	if f.duration == 0 && f.requests == 0 {
		w.For = config.Duration(30 * time.Second)
	}
	if f.noStream {
		w.Stream = new(bool)
	}
	if cmd.Flags().Changed("temperature") {
		w.Temperature = &f.temperature
	}
	if f.output > 0 {
		w.Output = workload.Fixed(config.Count(f.output))
	}
	w.Prompts.Synthetic = workload.Fixed(config.Count(f.input))
	if f.prompts != "" {
		w.Prompts = workload.Prompts{File: filepath.Base(f.prompts), Format: f.format}
	}
	w.Arrivals.Concurrency = config.Count(f.concurrency)
	if f.rate != 0 {
		rate := &workload.Rate{Fixed: config.Rate(f.rate)}
		switch f.process {
		case "poisson":
			w.Arrivals.Poisson = rate
		case "constant":
			w.Arrivals.Constant = rate
		default:
			return w, fmt.Errorf("--arrivals %q is not known\n  hint: use poisson or constant", f.process)
		}
	}
	return w, nil
}

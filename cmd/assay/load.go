package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/sim"
	"github.com/assay-llm/assay/workload"
)

// loadFlags describe one variant and one workload. Names that users of other
// tools know are accepted beside ours; see aliases and strangers.
type loadFlags struct {
	runFlags
	address
	capacityFlags
	model, key, api     string
	headers             []string
	simulate            string
	rate                rateValue
	process             string
	burstiness          float64
	concurrency, cap    int64
	duration            durationValue
	requests, warmup    int64
	input, output       int64
	prompts, format     string
	turns               int64
	think               durationValue
	cancel              percentValue
	cancelAfter         durationValue
	ignoreEOS           bool
	streaming, noStream bool
	temperature         float64
	needs               []string
}

func newLoad(c *console) *cobra.Command {
	var f loadFlags
	cmd := &cobra.Command{
		Use:   "load --url URL --model MODEL",
		Short: "Quick load test of one endpoint, without a suite",
		Long: `Load sends one workload to one endpoint and reports what came of it. It judges
only what --need demands. With --find-capacity it searches for the highest rate
that meets every need, with --sweep or --sweep-concurrency it measures one point
after the other. Flags of vllm bench serve, guidellm and AIPerf that
mean the same are understood (--request-rate, --max-concurrency, --num-prompts,
--random-input-len, --random-output-len, --benchmark-duration and others; the
whole list is in docs/interop.md).`,
		Example: `  assay load --url http://127.0.0.1:8000/v1 --model llama --rate 8 --duration 60s
  assay load --sim '{step: 10ms}' --concurrency 16 --requests 500 --need 'p95(ttft) <= 300ms'
  assay load --url http://127.0.0.1:8000/v1 --model llama --find-capacity --need 'p99(ttft) <= 800ms' --need 'share(failed) <= 1%'`,
		Args: f.only,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := f.suite(cmd)
			if err != nil {
				return usage(err)
			}
			warnings, err := f.lint(s)
			if err != nil {
				return usage(err)
			}
			if f.asked() { // each probe is as long as its rate wants
				return c.capacity(cmd.Context(), cmd, s, &f)
			}
			for _, warning := range warnings {
				c.notice("warning: %s", warning)
			}
			return c.measure(cmd.Context(), cmd, s, &f.runFlags)
		},
	}
	f.define(cmd)
	return cmd
}

// define adds the flags to a command.
func (f *loadFlags) define(cmd *cobra.Command) {
	f.runFlags.add(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&f.url, "url", "u", "", "http(s)://host:port/v1 of an OpenAI-compatible server")
	flags.StringVar(&f.host, "host", "127.0.0.1", "host of the server, instead of a URL")
	flags.IntVar(&f.port, "port", 8000, "port of the server, instead of a URL")
	flags.StringVarP(&f.model, "model", "m", "", "model name sent with each request")
	flags.StringVar(&f.key, "key", "", "API key: env:NAME or file:PATH")
	flags.StringArrayVarP(&f.headers, "header", "H", nil, "header of each request as NAME:VALUE; the value may be env:NAME or file:PATH, and of a secret it must be; may be repeated")
	flags.StringVar(&f.api, "api", "", "chat (default) or completions")
	flags.StringVar(&f.simulate, "sim", "", "measure a simulated engine of this configuration instead of a URL; {} for the default")
	flags.Var(&f.rate, "rate", "open loop: requests a second, as 8, 8/s or 300/min; inf with --cap is a closed loop")
	flags.StringVar(&f.process, "arrivals", "poisson", "open loop: poisson, constant, or gamma with --burstiness")
	flags.Float64Var(&f.burstiness, "burstiness", 1, "open loop: shape of gamma gaps; 1 is poisson, below is burstier, above is more even")
	flags.Int64Var(&f.concurrency, "concurrency", 0, "closed loop: virtual users")
	flags.Int64Var(&f.cap, "cap", 0, "open loop: most requests in flight; more wait, and are counted. Without a rate: the same as --concurrency")
	flags.Var(&f.duration, "duration", "how long to send, as 90s, 5m or a number of seconds; 30s if neither this nor --requests is given")
	flags.Int64Var(&f.requests, "requests", 0, "how many requests to send")
	flags.Int64Var(&f.warmup, "warmup", 5, "requests before the measured ones")
	flags.Int64Var(&f.input, "input-tokens", 256, "length of synthetic prompts")
	flags.Int64Var(&f.output, "output-tokens", 128, "limit of output tokens; 0: the server's default")
	flags.StringVar(&f.prompts, "prompts", "", "JSONL file of prompts instead of synthetic ones")
	flags.StringVar(&f.format, "format", "", "format of the prompts: assay, sharegpt or openai; found out if left out")
	flags.Int64Var(&f.turns, "turns", 0, "sessions of so many turns: each arrival, or user, goes on with its dialogue and the answers that came")
	flags.Var(&f.think, "think", "pause between an answer and the next turn or, in a closed loop without --turns, the user's next request")
	flags.Var(&f.cancel, "cancel", "share of the requests that the client cancels, as 5% or 5")
	flags.Var(&f.cancelAfter, "cancel-after", "how long after they were due they are cancelled; left out: as soon as they are sent")
	flags.BoolVar(&f.ignoreEOS, "ignore-eos", false, "ask the server to go on to the limit of output tokens")
	flags.BoolVar(&f.streaming, "streaming", false, "ask for streamed answers, as is done anyway")
	flags.BoolVar(&f.noStream, "no-stream", false, "ask for unstreamed answers")
	flags.Float64Var(&f.temperature, "temperature", -1, "sampling temperature; the server's default if left out")
	flags.StringArrayVar(&f.needs, "need", nil, "a clause to judge by, such as 'p99(ttft) <= 800ms'; may be repeated")
	f.capacityFlags.add(flags)
	addStrangers(flags)
	flags.SetNormalizeFunc(normalize)
}

// suite makes the suite that the flags describe. It goes through the same
// reader as a file, so that the same rules hold; faults name the flags.
func (f *loadFlags) suite(cmd *cobra.Command) (*bench.Suite, error) {
	if err := f.refuse(cmd); err != nil {
		return nil, err
	}
	if err := f.prepare(cmd, f); err != nil {
		return nil, err
	}
	w, err := f.workload(cmd)
	if err != nil {
		return nil, err
	}
	v, err := f.variant(cmd)
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
	if faults, ok := errors.AsType[config.Faults](err); ok { // the lines are of a file that the user never saw
		return nil, f.inFlags(faults)
	}
	if err != nil {
		return nil, fmt.Errorf("%w\n  hint: give a file of prompts as --prompts sets/support.jsonl", err)
	}
	return suite, nil
}

// variant is whom the flags name.
func (f *loadFlags) variant(cmd *cobra.Command) (bench.Variant, error) {
	v := bench.Variant{Model: f.model, API: f.api}
	if theirs, ok := apis[f.api]; ok {
		v.API = theirs
	}
	var err error
	if v.URL, err = f.address.of(cmd); err != nil {
		return v, err
	}
	if f.key != "" {
		if v.Key, err = config.ParseSecret(f.key); err != nil {
			return v, errors.New("--key " + inHints.Replace(hinted(err).Error()))
		}
	}
	if f.simulate != "" {
		v.Sim = new(sim.Config)
		if err := config.Decode("--sim", []byte(f.simulate), v.Sim); err != nil {
			return v, err
		}
	}
	if v.URL == "" && v.Sim == nil {
		return v, errors.New("no endpoint is given\n  hint: add --url http://127.0.0.1:8000/v1, or --sim '{}' for a simulated engine")
	}
	v.Headers = map[string]string{}
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, ":")
		if name, value = strings.TrimSpace(name), strings.TrimSpace(value); !ok || name == "" || value == "" {
			return v, errors.New("--header wants a name and a value (what was given is not shown)\n  hint: write --header NAME:VALUE, or --header NAME:env:VARIABLE for a secret")
		}
		if _, twice := v.Headers[name]; twice {
			return v, fmt.Errorf("--header gives %s twice\n  hint: keep one of them", name)
		}
		v.Headers[name] = value
	}
	return v, nil
}

func (f *loadFlags) workload(cmd *cobra.Command) (workload.Spec, error) {
	w := workload.Spec{
		For: config.Duration(f.duration), Requests: config.Count(f.requests), WarmUp: workload.WarmUp{Requests: config.Count(f.warmup)},
		IgnoreEOS: f.ignoreEOS,
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
	if f.output != 0 {
		w.Output = workload.Fixed(config.Count(f.output))
	}
	w.Prompts.Synthetic = workload.Fixed(config.Count(f.input))
	if f.prompts != "" {
		w.Prompts = workload.Prompts{File: filepath.Base(f.prompts), Format: f.format}
	}
	f.users(&w)
	return w, f.arrivals(cmd, &w)
}

// users say how the users behave: whether they go on, think, and hang up.
func (f *loadFlags) users(w *workload.Spec) {
	pause := workload.Pause{}
	if f.think > 0 {
		pause = workload.Fixed(config.Duration(f.think))
	}
	if f.turns != 0 {
		w.Sessions = &workload.Sessions{Turns: workload.Fixed(config.Count(f.turns)), Think: pause}
	} else {
		w.Arrivals.Think = pause
	}
	if f.cancel != 0 {
		c := workload.Cancel{Share: config.Percent(f.cancel), During: "prefill"}
		if f.cancelAfter > 0 {
			c.During, c.After = "", workload.Fixed(config.Duration(f.cancelAfter))
		}
		w.Cancel = workload.Cancels{c}
	}
}

// arrivals say when requests are sent: by a rate, or by users who wait for their
// answers. A cap without a rate that it could cap is a number of users, as it is
// for vLLM.
func (f *loadFlags) arrivals(cmd *cobra.Command, w *workload.Spec) error {
	open := cmd.Flags().Changed("rate") && !f.rate.inf
	users, most := f.concurrency, f.cap
	if !open && users == 0 {
		users, most = f.cap, 0
	}
	w.Cap = config.Count(most)
	switch {
	case open && users != 0:
		return errors.New("--rate and --concurrency are of different loops\n  hint: keep --rate for an open loop or --concurrency for a closed one; --cap N limits what a rate has in flight")
	case users != 0:
		if f.burstiness != 1 {
			return errors.New("--burstiness goes with a rate\n  hint: add --rate 8, or remove it")
		}
		w.Arrivals.Concurrency = config.Count(users)
		return nil
	case f.rate.inf:
		return errors.New("--rate inf without a cap sends everything at once\n  hint: write --concurrency N for so many users, each waiting for its answer")
	case !open:
		return errors.New("neither a rate nor a concurrency is given\n  hint: add --rate 8 for an open loop or --concurrency 16 for a closed one")
	}
	return f.gaps(w)
}

// gaps place the requests of a rate.
func (f *loadFlags) gaps(w *workload.Spec) error {
	rate := workload.Rate{Fixed: f.rate.rate}
	switch {
	case f.process == "constant" && f.burstiness != 1:
		return errors.New("--burstiness does not go with --arrivals constant\n  hint: keep one of them")
	case f.process == "constant":
		w.Arrivals.Constant = &rate
	case f.process == "gamma" && f.burstiness == 1:
		return errors.New("--arrivals gamma wants the shape of the gaps\n  hint: add --burstiness 0.25, which is bursty, or --burstiness 4, which is even")
	case f.process != "poisson" && f.process != "gamma":
		hint := "use poisson or constant, or gamma with --burstiness"
		if f.process == "sweep" {
			hint = "write --sweep 1/s,2/s,4/s, or --find-capacity with what must hold"
		} else if f.process == "concurrent" || f.process == "synchronous" || f.process == "throughput" {
			hint = "write --concurrency N for a closed loop"
		}
		return fmt.Errorf("--arrivals %q is not known\n  hint: %s", f.process, hint)
	case f.burstiness != 1:
		w.Arrivals.Gamma = &workload.Renewal{Rate: rate, Shape: f.burstiness}
	default:
		w.Arrivals.Poisson = &rate
	}
	return nil
}

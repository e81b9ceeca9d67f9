package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/assay-llm/assay/config"
)

// aliases are the flags of vLLM's, guidellm's and AIPerf's load tools that mean
// the same as one of ours.
var aliases = map[string]string{
	"base-url": "url", "target": "url",
	"request-rate": "rate", "rate-type": "arrivals", "arrival-pattern": "arrivals",
	"max-concurrency": "cap", "num-prompts": "requests", "request-count": "requests", "max-requests": "requests",
	"sweep-request-rate": "sweep", "sweep-max-concurrency": "sweep-concurrency",
	"max-seconds": "duration", "for": "duration", "benchmark-duration": "duration",
	"random-input-len": "input-tokens", "synthetic-input-tokens-mean": "input-tokens", "isl": "input-tokens",
	"random-output-len": "output-tokens", "output-tokens-mean": "output-tokens", "osl": "output-tokens",
	"num-warmups": "warmup", "warmup-request-count": "warmup",
	"conversation-turn-mean": "turns", "session-turns-mean": "turns",
	"request-cancellation-rate": "cancel", "request-cancellation-delay": "cancel-after",
	"random-seed": "seed", "dataset-path": "prompts", "backend": "api", "backend-type": "api", "endpoint-type": "api",
}

func normalize(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if ours, ok := aliases[name]; ok {
		name = ours
	}
	return pflag.NormalizedName(name)
}

// apis are other tools' names of the APIs.
var apis = map[string]string{
	"openai-chat": "chat", "openai_http": "chat",
	"openai": "completions", "vllm": "completions", // as vLLM means them
	"openai-embeddings": "embeddings", "vllm-rerank": "rerank",
}

// stranger is a flag of another tool that means nothing here. It takes any
// value and keeps none of it, since it may be a secret.
type stranger struct{ hint string }

func (*stranger) Set(string) error { return nil }
func (*stranger) String() string   { return "" }
func (*stranger) Type() string     { return "string" }

// strangers tell users of other tools what to do instead.
var strangers = map[string]string{
	"goodput":                      "demand it: --need 'p99(ttft) <= 200ms' --need 'p99(tpot) <= 50ms'",
	"api-key":                      "put the key into an environment variable and write --key env:NAME (its value is not shown)",
	"tokenizer":                    "leave it out: the server counts the tokens",
	"processor":                    "leave it out: the server counts the tokens",
	"dataset-name":                 "leave it out: --input-tokens N makes synthetic prompts, and --prompts FILE reads a set (ShareGPT's and OpenAI's formats, too)",
	"data":                         "write --input-tokens N and --output-tokens N for synthetic prompts, or --prompts FILE for a set",
	"extra-inputs":                 "write --ignore-eos or --temperature T for these; a suite with api: template can send any field",
	"profile":                      "write --rate R for an open loop or --concurrency N for a closed one",
	"constraint":                   "write --duration 60s or --requests N",
	"endpoint":                     "write --api chat or --api completions; the path follows from it",
	"random-range-ratio":           "describe the lengths in a suite, such as prompts: {synthetic: {uniform: {min: 100, max: 200}}}",
	"percentile-metrics":           "leave it out: the report has every metric",
	"metric-percentiles":           "leave it out: the report has p50, p95 and p99, and records.parquet has every request",
	"save-result":                  "leave it out: every run is kept in --runs; assay export RUN --as vllm writes vLLM's file",
	"save-detailed":                "leave it out: every run is kept in --runs; assay export RUN --as vllm writes vLLM's file",
	"result-filename":              "leave it out: every run is kept in --runs; assay export RUN --as vllm -o FILE writes vLLM's file",
	"result-dir":                   "write --runs DIR",
	"conversation-turn-delay-mean": "write --think 500ms; AIPerf's number is of milliseconds",
	"output-path":                  "leave it out: every run is kept in --runs; assay export RUN --as guidellm -o FILE writes guidellm's file",
	"output-artifact-dir":          "write --runs DIR",
	"num-runs":                     "write a suite: its blocks repeat a workload, and assay run SUITE runs it",
	"num-profile-runs":             "write a suite: its blocks repeat a workload, and assay run SUITE runs it",
}

// addStrangers adds them, out of the help's sight.
func addStrangers(flags *pflag.FlagSet) {
	for name, hint := range strangers {
		f := flags.VarPF(&stranger{hint}, name, "", "not a flag of assay: "+hint)
		f.Hidden = true
		if strings.HasPrefix(name, "save-") {
			f.NoOptDefVal = "true"
		}
	}
}

// only refuses strangers, and then arguments: some strangers take several values,
// of which all but the first are left as arguments.
func (f *loadFlags) only(cmd *cobra.Command, args []string) error {
	var err error
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if s, ok := flag.Value.(*stranger); ok && err == nil {
			err = usage(fmt.Errorf("--%s is a flag of another tool\n  hint: %s", flag.Name, s.hint))
		}
	})
	if err != nil || len(args) == 0 {
		return err
	}
	hint := "see assay load --help"
	if slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "://") }) { // not repeated: it may hold a password
		hint = "give the address as --url"
	}
	return usage(fmt.Errorf("assay load wants flags only, got %d more arguments\n  hint: %s", len(args), hint))
}

// refuse refuses what was given as 0, which for a flag that is left out means
// something else, and what contradicts itself.
func (f *loadFlags) refuse(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	for _, n := range []struct {
		flag string
		zero bool
		hint string
	}{
		{"rate", f.rate.rate == 0 && !f.rate.inf, "write --rate 8, or --concurrency 16 for a closed loop"},
		{"concurrency", f.concurrency == 0, "write --concurrency 16, or --rate 8 for an open loop"},
		{"cap", f.cap == 0, "leave it out, or write --cap 64"},
		{"turns", f.turns == 0, "leave it out, or write --turns 4"},
		{"duration", f.duration == 0, "write --duration 30s"},
		{"requests", f.requests == 0, "write --requests 1000, or --duration 30s"},
	} {
		if given(n.flag) && n.zero {
			return fmt.Errorf("--%s 0 sends nothing\n  hint: %s", n.flag, n.hint)
		}
	}
	switch {
	case !(f.burstiness > 0) || math.IsInf(f.burstiness, 0):
		return errors.New("--burstiness wants a number above 0\n  hint: 1 is poisson, 0.25 is bursty")
	case given("cancel-after") && f.cancel == 0:
		return errors.New("--cancel-after says when, and nothing says how many requests are cancelled\n  hint: add --cancel 5%")
	case f.streaming && f.noStream:
		return errors.New("--streaming and --no-stream contradict each other\n  hint: keep one of them")
	}
	return nil
}

// address is where the server is.
type address struct {
	url, host string
	port      int
}

// of returns the URL; "" if none is given.
func (a *address) of(cmd *cobra.Command) (string, error) {
	given := cmd.Flags().Changed
	switch {
	case !given("host") && !given("port"):
		return a.url, nil
	case a.url != "":
		return "", errors.New("--url stands beside --host or --port\n  hint: keep --url")
	case a.port < 1 || a.port > 65535:
		return "", fmt.Errorf("--port %d is no port\n  hint: write one from 1 to 65535", a.port)
	case strings.ContainsAny(a.host, "/@?#"):
		return "", errors.New("--host wants the name or the address of a host\n  hint: give a whole address as --url")
	}
	return "http://" + net.JoinHostPort(strings.Trim(a.host, "[]"), strconv.Itoa(a.port)) + "/v1", nil
}

// rateValue is a rate of requests: 8 and 8/s are the same, and inf is vLLM's word
// for no rate at all.
type rateValue struct {
	rate config.Rate
	inf  bool
}

// Set reads it.
func (r *rateValue) Set(s string) (err error) {
	v, bare := number(s)
	if r.inf = bare && math.IsInf(v, 1); r.inf {
		return nil
	}
	if bare {
		s = strconv.FormatFloat(v, 'f', -1, 64) + "/s"
	}
	r.rate, err = config.ParseRate(s)
	return hinted(err)
}

// String returns what Set reads; "" for none.
func (r *rateValue) String() string {
	switch {
	case r.inf:
		return "inf"
	case r.rate == 0:
		return ""
	}
	return r.rate.String()
}

// Type names it in the help.
func (*rateValue) Type() string { return "rate" }

// durationValue is a length of time; a bare number is one of seconds, as it is
// for other tools.
type durationValue config.Duration

// Set reads it.
func (d *durationValue) Set(s string) error {
	if v, bare := number(s); bare {
		s = strconv.FormatFloat(v, 'f', -1, 64) + "s"
	}
	v, err := config.ParseDuration(s)
	*d = durationValue(v)
	return hinted(err)
}

// String returns what Set reads; "" for none.
func (d *durationValue) String() string {
	if *d == 0 {
		return ""
	}
	return config.Duration(*d).String()
}

// Type names it in the help.
func (*durationValue) Type() string { return "duration" }

// percentValue is a share; a bare number is one of percent, as it is for AIPerf.
type percentValue config.Percent

// Set reads it.
func (p *percentValue) Set(s string) error {
	if _, bare := number(s); bare {
		s += "%"
	}
	v, err := config.ParsePercent(s)
	*p = percentValue(v)
	return hinted(err)
}

// String returns what Set reads; "" for none.
func (p *percentValue) String() string {
	if *p == 0 {
		return ""
	}
	return config.Percent(*p).String()
}

// Type names it in the help.
func (*percentValue) Type() string { return "percent" }

// number reads a number without a unit.
func number(s string) (v float64, bare bool) {
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil && !math.IsNaN(v)
}

// hinted puts the next step of config's parsers, which stands in parentheses at
// the end, on a line of its own.
func hinted(err error) error {
	if err == nil {
		return nil
	}
	text, inside := strings.CutSuffix(err.Error(), ")")
	if at := strings.LastIndex(text, " ("); inside && at > 0 {
		return errors.New(text[:at] + "\n  hint: " + text[at+2:])
	}
	return err
}

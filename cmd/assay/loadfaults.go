package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
)

// places are the paths of a suite that flags fill in, the longest first, and
// what to do instead of the suite's own hint, if that speaks of keys.
var places = []struct{ path, flag, hint string }{
	{"variants.target.url", "--url", ""},
	{"variants.target.model", "--model", ""},
	{"variants.target.key", "--key", ""},
	{"variants.target.api", "--api", "use chat, completions, messages, responses, ollama, tgi, embeddings or rerank"},
	{"variants.target.headers", "--header", ""},
	{"variants.target.sim", "--sim", ""},
	{"workloads.load.arrivals.concurrency", "--concurrency", "write such as --concurrency 16; for more load use --rate"},
	{"workloads.load.arrivals.think", "--think", "add --concurrency 16 or --turns 4, or remove --think: an open loop of single requests does not wait for answers"},
	{"workloads.load.sessions.think", "--think", "write such as --think 2s"},
	{"workloads.load.sessions", "--turns", "write such as --turns 4"},
	{"workloads.load.cancel.after", "--cancel-after", "write such as --cancel-after 2s"},
	{"workloads.load.cancel", "--cancel", "write such as --cancel 5%"},
	{"workloads.load.arrivals.gamma.shape", "--burstiness", ""},
	{"workloads.load.arrivals.gamma", "--rate", "write such as --rate 8"},
	{"workloads.load.arrivals.poisson", "--rate", "write such as --rate 8"},
	{"workloads.load.arrivals.constant", "--rate", "write such as --rate 8"},
	{"workloads.load.arrivals", "--rate or --concurrency", "write such as --rate 8 or --concurrency 16"},
	{"workloads.load.for", "--duration", "write such as --duration 5m"},
	{"workloads.load.requests", "--requests", "write such as --requests 1000"},
	{"workloads.load.warmup", "--warmup", ""},
	{"workloads.load.prompts.synthetic", "--input-tokens", "write such as --input-tokens 512"},
	{"workloads.load.prompts.format", "--format", ""},
	{"workloads.load.prompts", "--prompts", ""},
	{"workloads.load.output", "--output-tokens", "write such as --output-tokens 128"},
	{"workloads.load.temperature", "--temperature", ""},
	{"workloads.load.cap", "--cap", "raise --cap or lower --concurrency"},
}

// inHints and inFaults make flags of what hints and faults say of keys.
var (
	inHints = strings.NewReplacer(
		"write requests: ", "write --requests ", "write for: ", "write --duration ", "or more in the workload", "or more", " in the workload", "",
		"format: ", "--format ", "write stream: true", "remove --no-stream", "remove the clause", "remove it",
		"add a variant named baseline, or write", "compare with a baseline by a suite and assay run, or write",
		"name a JSONL file in the suite's folder or below it", "name a JSONL file, such as --prompts sets/support.jsonl",
		"write env:NAME; replace the secret if this file was shared", "write env:NAME as the value; the shell's history may hold what was typed",
	)
	inFaults = strings.NewReplacer("workload load plans", "this load plans", "workload load lasts", "this load lasts", "workload load does", "this load does")
)

// inFlags says what is wrong with the suite that the flags make, by flag.
func (f *loadFlags) inFlags(faults []config.Fault) error {
	texts := make([]string, len(faults))
	for i, fault := range faults {
		texts[i] = f.inFlag(fault)
	}
	return errors.New(strings.Join(texts, "\nassay: "))
}

func (f *loadFlags) inFlag(fault config.Fault) string {
	name, hint := fault.Path, inHints.Replace(fault.Hint)
	within := func(path string) bool {
		rest, ok := strings.CutPrefix(fault.Path, path)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	}
	for _, p := range places {
		if within(p.path) {
			if name = p.flag; p.hint != "" {
				hint = p.hint
			}
			if header, ok := strings.CutPrefix(fault.Path, "variants.target.headers."); ok {
				name += " " + header
			}
			break
		}
	}
	for i, need := range f.needs {
		if within(fmt.Sprintf("contract.clauses[%d]", i)) {
			name = fmt.Sprintf("--need %q", need)
		}
	}
	if hint == "" {
		hint = "see assay load --help"
	}
	return name + ": " + inFaults.Replace(fault.What) + "\n  hint: " + hint
}

// hopeless are the faults of clauses that no run of the flags can decide, however
// long it is.
var hopeless = []string{contract.CodeUnmeasured, contract.CodeNoBaseline, contract.CodeNoStream}

// lint looks for what --need demands and the load cannot decide: an error if more
// of it would not help, else warnings.
func (f *loadFlags) lint(s *bench.Suite) (warnings []string, err error) {
	faults, err := s.Lint()
	if err != nil {
		return nil, err
	}
	var never []config.Fault
	for _, fault := range faults {
		if slices.Contains(hopeless, fault.Code) {
			never = append(never, fault)
		} else {
			warnings = append(warnings, f.inFlag(fault))
		}
	}
	if len(never) > 0 {
		return nil, f.inFlags(never)
	}
	return warnings, nil
}

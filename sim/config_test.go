package sim

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/assay-llm/assay/config"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

func TestConfigReads(t *testing.T) {
	off := false
	for text, want := range map[string]Config{
		"step: 10ms":                      {Step: Step{Base: 10e6}},
		"step: {base: 9ms, prefill: 5us}": {Step: Step{Base: 9e6, Prefill: 5e3}},
		"{step: 10ms, tpot: +8%}":         {Step: Step{Base: 10e6}, TPOT: 0.08},
		"{model: 8b, gpu: h100, weights: fp8, gpus: 2}": {
			Model: Model{Name: "8b", Shape: shapes["8b"]}, GPU: "h100", Weights: "fp8", GPUs: 2,
		},
		"model: {layers: 2, hidden: 64, heads: 4, kv_heads: 2, head_dim: 16, ffn: 128, vocab: 1000}": {
			Model: Model{Shape: Shape{Layers: 2, Hidden: 64, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 128, Vocab: 1000}},
		},
		"{max_seqs: 64, token_budget: 4k, kv_blocks: 1k, block_tokens: 32, prefix_cache: false, queue_limit: 10, context: 8k}": {
			MaxSeqs: 64, TokenBudget: 4000, KVBlocks: 1000, BlockTokens: 32, PrefixCache: &off, QueueLimit: 10, Context: 8000,
		},
		"{prefill: -10%, ttft: 20%, jitter: 5%, seed: 7, reasoning: 40%, tokens_per_event: 4, usage: every, start: 30s, name: x}": {
			Prefill: -0.1, TTFT: 0.2, Jitter: 0.05, Seed: 7, Reasoning: 0.4, TokensPerEvent: 4, Usage: "every", Start: 30e9, Name: "x",
		},
		"{output: {default: 64, stop: 5%}, faults: {error_before: 1%, stall: 0.5%, for: 3s}}": {
			Output: Output{Default: 64, Stop: 0.05}, Faults: Faults{Error: 0.01, Stall: 0.005, For: 3e9},
		},
	} {
		var got Config
		if err := config.Decode("sim.yaml", []byte(text), &got); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if _, err := NewEngine(got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		written, err := config.Encode(got)
		if err != nil {
			t.Errorf("%s: writing it back: %v", text, err)
			continue
		}
		var again Config
		if err := config.Decode("again.yaml", written, &again); err != nil {
			t.Errorf("%s: reading back\n%s%v", text, written, err)
		}
		if diff := cmp.Diff(got, again); diff != "" {
			t.Errorf("%s: round trip through\n%s(-want +got):\n%s", text, written, diff)
		}
		if err := validate(t, text); err != nil {
			t.Errorf("%s: its schema refuses it: %v", text, err)
		}
	}
}

// validate checks a document against the schema that config makes of Config.
func validate(t *testing.T, text string) error {
	t.Helper()
	schema, err := config.Schema(Config{}, "https://example.org/sim.json", "sim")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("sim.json", parsed); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("sim.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return compiled.Validate(instance)
}

func TestConfigFaults(t *testing.T) {
	for text, want := range map[string]string{
		"model: 9b":                      "sim.yaml:1:8: model: unknown model \"9b\"",
		"{model: 8b, step: 10ms}":        "sim.yaml:1:19: step: step and model exclude each other",
		"gpu: h100":                      "sim.yaml:1:6: gpu: it says nothing without a model",
		"{model: 8b, gpu: h1000}":        "sim.yaml:1:18: gpu: unknown value \"h1000\"",
		"{model: 70b, gpu: h100}":        "sim.yaml:1:9: model: it does not fit on 1 × h100 in bf16",
		"{model: 8b, gpus: 65}":          "sim.yaml:1:19: gpus: 65 is out of range",
		"{model: 8b, weights: gguf}":     "sim.yaml:1:22: weights: unknown value \"gguf\"",
		"step: {prefill: 1us}":           "step: a step without a base time never ends a wait",
		"ttft: -5%":                      "sim.yaml:1:7: ttft: -5% is out of range",
		"tpot: -95%":                     "sim.yaml:1:7: tpot: -95% is out of range",
		"token_budget: 100":              "sim.yaml:1:15: token_budget: 100 tokens are fewer than the 256 sequences",
		"{kv_blocks: 10, context: 1k}":   "sim.yaml:1:26: context: a request of 1000 tokens does not fit",
		"usage: sometimes":               "sim.yaml:1:8: usage: unknown value \"sometimes\"",
		"faults: {reset: 60%, cut: 50%}": "sim.yaml:1:9: faults: the shares add up to 110%",
		"faults: {reset: 160%}":          "sim.yaml:1:17: faults.reset: 160% is out of range",
		"faults: {explode: 1%}":          "sim.yaml:1:10: faults.explode: unknown key",
		"output: {stop: 101%}":           "sim.yaml:1:16: output.stop: 101% is out of range",
		"reasoning: 2":                   "sim.yaml:1:12: reasoning:",
		"max_seqs: 0.5":                  "sim.yaml:1:11: max_seqs:",
		"kv_blocks: 999999999":           "sim.yaml:1:12: kv_blocks: 999999999 is out of range",
	} {
		var c Config
		err := config.Decode("sim.yaml", []byte(text), &c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestConfigValidateTellsAllAtOnce(t *testing.T) {
	c := Config{TPOT: 200, TTFT: -1, Usage: "x", MaxSeqs: -4, Start: -1, Model: Model{Name: "none"}, Faults: Faults{For: -1}, Step: Step{Base: 1e6}}
	err := c.Validate()
	if err == nil {
		t.Fatal("Validate accepts nonsense")
	}
	for _, key := range []string{"tpot", "ttft", "usage", "max_seqs", "start", "model", "faults.for", "step"} {
		if !strings.Contains(err.Error(), key+": ") {
			t.Errorf("no word about %s:\n%v", key, err)
		}
	}
	for _, make := range []func() error{
		func() error { _, err := NewEngine(c); return err },
		func() error { _, err := NewServer(c); return err },
	} {
		if make() == nil {
			t.Error("an engine is made of nonsense")
		}
	}
	if err := (Config{}).Validate(); err != nil {
		t.Errorf("the zero Config: %v", err)
	}
}

func TestKnownModelsFitTheirGPUs(t *testing.T) {
	for _, test := range []struct {
		c    Config
		want int64 // tokens of KV cache, by hand: (memory − weights) / bytes a token
	}{
		{Config{Model: Model{Name: "8b"}}, 403_000},                 // (68.8 − 16.06 GB) / 131,072
		{Config{Model: Model{Name: "70b"}, GPUs: 4}, 409_000},       // (275.2 − 141.1 GB) / 327,680
		{Config{Model: Model{Name: "8b"}, Weights: "fp8"}, 455_000}, // 9.08 GB of weights
	} {
		e := mustEngine(t, test.c)
		got := int64(e.p.blocks) * e.p.blockTokens
		if d := float64(got)/float64(test.want) - 1; d > 0.02 || d < -0.02 {
			t.Errorf("%+v holds %d tokens, want about %d", test.c.Model.Name, got, test.want)
		}
	}
}

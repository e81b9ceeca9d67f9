package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-llm/assay/config"
)

// Config describes a simulated engine. The zero Config works and is quick: a step
// takes 8 ms whatever it holds, so an answer of 64 tokens takes half a second.
type Config struct {
	Name string `yaml:"name" doc:"model id that the server answers to; others get 404. Default: any, listed as sim"`

	Step    Step   `yaml:"step" doc:"fixed time of a step, instead of a model: 10ms, or {base: 8ms, sequence: 20us, prefill: 5us}. Default 8ms"`
	Model   Model  `yaml:"model" doc:"compute step times from a model's shape: 1b, 8b, 70b, or {layers: …}"`
	GPU     string `yaml:"gpu" doc:"accelerator of the model. Default h100"`
	GPUs    int    `yaml:"gpus" doc:"accelerators that share the model by tensor parallelism. Default 1"`
	Weights string `yaml:"weights" doc:"format of the weights: bf16, fp8 or int4. Default bf16"`

	MaxSeqs     config.Count `yaml:"max_seqs" doc:"sequences in one step at most. Default 256"`
	TokenBudget config.Count `yaml:"token_budget" doc:"tokens computed in one step at most; longer prompts are prefilled in chunks. Default 2048"`
	KVBlocks    config.Count `yaml:"kv_blocks" doc:"blocks of the KV cache. Default: what fits beside the model's weights; 16384 for a fixed step"`
	BlockTokens config.Count `yaml:"block_tokens" doc:"tokens of one block. Default 16"`
	PrefixCache *bool        `yaml:"prefix_cache" doc:"reuse the blocks of equal beginnings of prompts. Default true"`
	Scheduling  string       `yaml:"scheduling" oneof:"fcfs,priority" doc:"which waiting request is admitted first: the oldest (fcfs), or the one of the lowest priority field and then the oldest (priority). Default fcfs"`
	QueueLimit  config.Count `yaml:"queue_limit" doc:"waiting requests at most; more get 429. Default 10000"`
	Context     config.Count `yaml:"context" doc:"prompt and output tokens of one request at most. Default 131072, or what the KV cache holds"`

	TPOT    config.Percent `yaml:"tpot" doc:"change of the time that decoding takes of a step: +8% is a slower engine"`
	Prefill config.Percent `yaml:"prefill" doc:"change of the time that prompts add to a step"`
	TTFT    config.Percent `yaml:"ttft" doc:"delays every token of a request by this share of its time to first token; not negative"`
	Jitter  config.Percent `yaml:"jitter" doc:"spread of step times: sigma of a lognormal factor of mean 1"`
	Seed    uint64         `yaml:"seed" doc:"draws text, stops, faults and jitter; equal seeds give equal answers to equal prompts"`

	Output         Output          `yaml:"output" doc:"how long answers are"`
	Reasoning      config.Percent  `yaml:"reasoning" doc:"share of each answer's tokens that is sent as reasoning first"`
	TokensPerEvent config.Count    `yaml:"tokens_per_event" doc:"tokens gathered in one event of a stream. Default 1"`
	Usage          string          `yaml:"usage" doc:"where a stream reports usage: final (a chunk of its own, when asked for), finish (on the last chunk, always), every (cumulative on each chunk), never. Default final"`
	Start          config.Duration `yaml:"start" doc:"time that the engine takes to load; until then it answers 503"`
	Faults         Faults          `yaml:"faults" doc:"share of requests that meet each fault, drawn from the request's id"`
}

// Step is a fixed step time: a base, and what a sequence and a token of prompt
// add to it. In a file a bare duration is the base.
type Step struct {
	Base     config.Duration `yaml:"base" doc:"time of every step"`
	Sequence config.Duration `yaml:"sequence" doc:"added for each sequence in the step"`
	Prefill  config.Duration `yaml:"prefill" doc:"added for each token of prompt in the step"`
}

// DecodeConfig reads a duration or a mapping.
func (s *Step) DecodeConfig(n *config.Node) {
	if n.IsScalar() {
		n.Decode(&s.Base)
		return
	}
	type plain Step
	n.Decode((*plain)(s))
}

// MarshalYAML writes what DecodeConfig reads.
func (s Step) MarshalYAML() (any, error) {
	if s.Sequence == 0 && s.Prefill == 0 {
		return s.Base, nil
	}
	type plain Step
	return plain(s), nil
}

// ConfigSchema describes both forms.
func (s Step) ConfigSchema() map[string]any {
	duration := map[string]any{"type": "string", "pattern": durationPattern}
	return map[string]any{"anyOf": []any{duration, map[string]any{
		"type": "object", "additionalProperties": false,
		"properties": map[string]any{"base": duration, "sequence": duration, "prefill": duration},
	}}}
}

const durationPattern = `^([0-9]+(\.[0-9]+)?(h|m|s|ms|[uµμ]s|ns))+$`

// Model is a model by name or by shape. The zero Model is none.
type Model struct {
	Name  string // one of the known models, or empty
	Shape Shape
}

// DecodeConfig reads a known model's name or a shape.
func (m *Model) DecodeConfig(n *config.Node) {
	if !n.IsScalar() {
		n.Decode(&m.Shape)
		return
	}
	n.Decode(&m.Name)
	var ok bool
	if m.Shape, ok = shapes[m.Name]; !ok {
		n.Fault(fmt.Sprintf("unknown model %q", m.Name), "use "+oneOf(names(shapes))+", or give the shape: {layers: …, hidden: …}")
	}
}

// MarshalYAML writes what DecodeConfig reads.
func (m Model) MarshalYAML() (any, error) {
	if m.Name != "" {
		return m.Name, nil
	}
	return m.Shape, nil
}

// ConfigSchema describes both forms.
func (m Model) ConfigSchema() map[string]any {
	positive := map[string]any{"type": "integer", "minimum": 1}
	fields := []string{"layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab"}
	properties := map[string]any{}
	for _, f := range fields {
		properties[f] = positive
	}
	return map[string]any{"anyOf": []any{
		map[string]any{"enum": names(shapes)},
		map[string]any{"type": "object", "additionalProperties": false, "properties": properties, "required": fields},
	}}
}

// Output says how long answers are: exactly as long as asked, unless a stop is
// drawn.
type Output struct {
	Default config.Count   `yaml:"default" doc:"tokens of an answer whose request sets no limit. Default 128"`
	Stop    config.Percent `yaml:"stop" doc:"share of answers that end by themselves, somewhere before their limit, unless the request ignores the end of text"`
}

func oneOf(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}

// params is a Config with its defaults, in the units of the engine.
type params struct {
	model         stepModel
	sequences     int
	budget        int64
	blocks        int
	blockTokens   int64
	prefixCache   bool
	queue         int
	byPriority    bool
	context       int64
	decodeFactor  float64 // of the time of decoding
	prefillFactor float64 // of the time that prompts add
	firstDelay    float64 // share of the time to first token
	jitter        float64
	seed          uint64
}

// The dialects of usage in a stream.
const (
	usageFinal  = "final"
	usageFinish = "finish"
	usageEvery  = "every"
	usageNever  = "never"
)

// The orders of the queue.
const (
	scheduleFCFS     = "fcfs"
	schedulePriority = "priority"
)

const (
	maxBlocks  = 1 << 24
	maxContext = 131072
)

// complaint is one fault of a Config at a key; an empty hint needs none.
type complaint struct{ key, what, hint string }

// Validate reports everything that is wrong with the configuration.
func (c Config) Validate() error {
	_, err := c.params()
	return err
}

// CheckConfig reports at the keys what Validate reports.
func (c *Config) CheckConfig(n *config.Node) {
	_, list := c.resolve()
	for _, f := range list {
		at := n
		for key := range strings.SplitSeq(f.key, ".") {
			if next := at.At(key); next.Exists() {
				at = next
			}
		}
		at.Fault(f.what, f.hint)
	}
}

func (c Config) params() (params, error) {
	p, list := c.resolve()
	var errs []error
	for _, f := range list {
		if f.hint != "" {
			f.what += "; " + f.hint
		}
		errs = append(errs, fmt.Errorf("%s: %s", f.key, f.what))
	}
	return p, errors.Join(errs...)
}

// resolve fills in the defaults and lists the faults.
func (c Config) resolve() (params, []complaint) {
	var list []complaint
	var complain complainer = func(key, hint, format string, args ...any) {
		list = append(list, complaint{key, fmt.Sprintf(format, args...), hint})
	}
	p := params{
		sequences:     int(complain.count("max_seqs", c.MaxSeqs, 256, 1<<20)),
		budget:        complain.count("token_budget", c.TokenBudget, 2048, 1<<24),
		blockTokens:   complain.count("block_tokens", c.BlockTokens, 16, 1<<16),
		prefixCache:   c.PrefixCache == nil || *c.PrefixCache,
		queue:         int(complain.count("queue_limit", c.QueueLimit, 10_000, 1<<24)),
		byPriority:    c.Scheduling == schedulePriority,
		decodeFactor:  1 + complain.share("tpot", c.TPOT, -0.9, 99),
		prefillFactor: 1 + complain.share("prefill", c.Prefill, -0.9, 99),
		firstDelay:    complain.share("ttft", c.TTFT, 0, 99),
		jitter:        complain.share("jitter", c.Jitter, 0, 2),
		seed:          c.Seed,
	}
	if p.budget < int64(p.sequences) {
		complain("token_budget", "raise token_budget or lower max_seqs", "%d tokens are fewer than the %d sequences of a step", p.budget, p.sequences)
	}
	complain.share("reasoning", c.Reasoning, 0, 1)
	complain.share("output.stop", c.Output.Stop, 0, 1)
	complain.count("output.default", c.Output.Default, 1, maxContext)
	complain.count("tokens_per_event", c.TokensPerEvent, 1, 1<<16)
	complain.choice("usage", c.Usage, usageFinal, usageFinish, usageEvery, usageNever)
	complain.choice("scheduling", c.Scheduling, scheduleFCFS, schedulePriority)
	complain.choice("gpu", c.GPU, names(accelerators)...)
	complain.choice("weights", c.Weights, names(weightFormats)...)
	if c.Start < 0 {
		complain("start", "", "it is negative")
	}
	c.Faults.check(complain)
	var fits int64
	p.model, fits = c.steps(p.blockTokens, complain)
	p.blocks = int(complain.count("kv_blocks", c.KVBlocks, fits, maxBlocks))
	holds := int64(p.blocks) * p.blockTokens
	p.context = complain.count("context", c.Context, min(maxContext, holds), maxBlocks)
	if p.context > holds {
		complain("context", "raise kv_blocks or lower context", "a request of %d tokens does not fit in a KV cache of %d", p.context, holds)
	}
	return p, list
}

// complainer takes the faults of a Config as they are found.
type complainer func(key, hint, format string, args ...any)

func (f complainer) count(key string, v config.Count, byDefault, most int64) int64 {
	switch {
	case v == 0:
		return byDefault
	case v < 0 || int64(v) > most:
		f(key, fmt.Sprintf("use a number from 1 to %d", most), "%d is out of range", v)
		return byDefault
	}
	return int64(v)
}

func (f complainer) share(key string, v config.Percent, least, most float64) float64 {
	if !(float64(v) >= least && float64(v) <= most) { // also NaN
		f(key, fmt.Sprintf("use a value from %v%% to %v%%", least*100, most*100), "%v%% is out of range", float64(v)*100)
		return 0
	}
	return float64(v)
}

func (f complainer) choice(key, v string, list ...string) {
	if v != "" && !slices.Contains(list, v) {
		f(key, "use "+oneOf(list), "unknown value %q", v)
	}
}

// fixedBlocks is the KV cache of an engine without a model, in blocks.
const fixedBlocks = 16384

// steps returns the step-time model, and the blocks of KV cache that it leaves
// room for.
func (c Config) steps(blockTokens int64, complain complainer) (stepModel, int64) {
	if c.Model == (Model{}) {
		return c.fixedSteps(complain), fixedBlocks
	}
	if c.Step != (Step{}) {
		complain("step", "remove one of them", "step and model exclude each other")
	}
	shape, ok := c.Model.shape(complain)
	gpu, weights, devices := cmp.Or(c.GPU, "h100"), cmp.Or(c.Weights, "bf16"), cmp.Or(c.GPUs, 1)
	a, known := accelerators[gpu]
	bytes, format := weightFormats[weights]
	if devices < 1 || devices > 64 {
		complain("gpus", "use a number from 1 to 64", "%d is out of range", devices)
		ok = false
	}
	if !ok || !known || !format { // said already
		return linear{base: 1}, 1
	}
	m := newRoofline(shape, a, bytes, devices)
	tokens := m.kvTokens(shape, a, bytes, devices)
	if tokens < blockTokens {
		complain("model", "use more gpus, a larger gpu or smaller weights", "it does not fit on %d × %s in %s", devices, gpu, weights)
		return m, 1
	}
	return m, min(tokens/blockTokens, maxBlocks)
}

func (c Config) fixedSteps(complain complainer) stepModel {
	for _, f := range []struct {
		key string
		set bool
	}{{"gpu", c.GPU != ""}, {"gpus", c.GPUs != 0}, {"weights", c.Weights != ""}} {
		if f.set {
			complain(f.key, "add model, or remove "+f.key, "it says nothing without a model")
		}
	}
	s := c.Step
	if s == (Step{}) {
		s.Base = config.Duration(8e6)
	}
	if s.Base < 0 || s.Sequence < 0 || s.Prefill < 0 {
		complain("step", "", "a time is negative")
	} else if s.Base < 1000 {
		complain("step", "set step.base to 1us or more", "a step without a base time never ends a wait")
	}
	return linear{base: float64(s.Base) / 1e9, sequence: float64(s.Sequence) / 1e9, prefill: float64(s.Prefill) / 1e9}
}

// shape returns the shape that the model has by name or by itself.
func (m Model) shape(complain complainer) (s Shape, ok bool) {
	if m.Name != "" {
		if s, ok = shapes[m.Name]; !ok {
			complain("model", "use "+oneOf(names(shapes))+", or give the shape", "unknown model %q", m.Name)
		}
		return s, ok
	}
	s = m.Shape
	for _, v := range []int{s.Layers, s.Hidden, s.Heads, s.KVHeads, s.HeadDim, s.FFN, s.Vocab} {
		if v < 1 || v > 1<<22 {
			complain("model", "give each of layers, hidden, heads, kv_heads, head_dim, ffn and vocab", "a size of the shape is %d", v)
			return s, false
		}
	}
	return s, true
}

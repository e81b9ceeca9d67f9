package workload

import (
	"math"

	"github.com/assay-llm/assay/config"
)

// Spec is one workload of a suite, as the document has it. Its zero value is not
// valid: arrivals, prompts and an end are needed. CheckConfig and Validate hold
// the rules that go across fields.
type Spec struct {
	Arrivals    Arrivals          `yaml:"arrivals,required" doc:"when requests are sent: {poisson: 8/s}, {constant: 5/s}, {concurrency: 16, think: 2s}, {ramp: …} or {stairs: …}"`
	For         config.Duration   `yaml:"for" doc:"how long requests are sent; this or requests must be given, and the first of them ends it"`
	Requests    config.Count      `yaml:"requests" doc:"how many requests are sent, warm-up left out"`
	Prompts     Prompts           `yaml:"prompts,required" doc:"what is asked: {synthetic: 512} or {file: sets/support.jsonl}"`
	Output      Length            `yaml:"output" doc:"limit of output tokens (max_tokens) of each request; overrides that of a set's cases. Left out: the case's, else the server's"`
	IgnoreEOS   bool              `yaml:"ignore_eos" doc:"ask the server to go on to the limit of output tokens, so that both variants do the same work"`
	Prefix      Prefix            `yaml:"prefix" doc:"text that groups of requests share at their start, to exercise prefix caches"`
	Salt        *bool             `yaml:"salt" doc:"start every prompt with a text of this run, so that no prefix cache of an earlier run flatters it; true by default"`
	WarmUp      WarmUp            `yaml:"warmup" doc:"requests before the measured ones, with prompts of their own"`
	Stream      *bool             `yaml:"stream" doc:"ask for a streamed answer; true by default"`
	Temperature *float64          `yaml:"temperature" min:"0" max:"2" doc:"sampling temperature; left out: the server's default"`
	Cap         config.Count      `yaml:"cap" doc:"most requests in flight; those over it wait, and are counted. Left out: no cap of the workload's own"`
	Drain       config.Duration   `yaml:"drain" doc:"how long to wait for answers after the last request was sent"`
	Labels      map[string]string `yaml:"labels" doc:"labels of every record, for the scopes of clauses"`
}

// Arrivals say when requests are sent. Exactly one of Constant, Poisson, Ramp,
// Stairs (an open loop: the schedule does not wait for answers) and Concurrency
// (a closed loop: each virtual user sends its next request after the answer to
// its last) is set. Ramp and Stairs stand for a Rate of that shape, with
// Process "poisson" unless it says "constant".
type Arrivals struct {
	Constant    *Rate            `yaml:"constant" doc:"evenly spaced requests: a rate, {ramp: …} or {stairs: …}"`
	Poisson     *Rate            `yaml:"poisson" doc:"independent users: exponential gaps at a rate, {ramp: …} or {stairs: …}"`
	Ramp        *Ramp            `yaml:"ramp" doc:"a rate that changes linearly over the duration"`
	Stairs      *Stairs          `yaml:"stairs" doc:"a rate that goes up or down in steps"`
	Process     string           `yaml:"process" oneof:"constant,poisson" doc:"how a ramp or stairs place their requests; poisson by default"`
	Concurrency config.Count     `yaml:"concurrency" doc:"number of virtual users of a closed loop"`
	Think       Pause            `yaml:"think" doc:"pause of a user between an answer and its next request"`
	Stagger     *config.Duration `yaml:"stagger" doc:"time over which users make their first requests, evenly; by default the mean think time plus 50ms a user, at most a tenth of for, at most 30s"`
}

// Rate is the rate of an open loop: Fixed, unless there is a Ramp or Stairs. In a
// suite it is a bare rate or a mapping of the shape's name.
type Rate struct {
	Fixed  config.Rate
	Ramp   *Ramp   `yaml:"ramp" doc:"a rate that changes linearly over the duration"`
	Stairs *Stairs `yaml:"stairs" doc:"a rate that goes up or down in steps"`
}

// Ramp is a rate that changes linearly from From at the start to To at the end.
type Ramp struct {
	From config.Rate `yaml:"from,required" doc:"rate at the start"`
	To   config.Rate `yaml:"to,required" doc:"rate at the end of for"`
}

// Stairs is a rate that starts at From, moves by Step towards To at the end of
// every Every, and stays at To.
type Stairs struct {
	From  config.Rate     `yaml:"from,required" doc:"rate of the first step"`
	Step  config.Rate     `yaml:"step,required" doc:"difference between steps; always positive, also downwards"`
	Every config.Duration `yaml:"every,required" doc:"length of a step"`
	To    config.Rate     `yaml:"to,required" doc:"rate of the last step, which lasts to the end"`
}

// maxSteps bounds the steps of stairs.
const maxSteps = 10_000

// steps returns the number of steps before the last rate is reached.
func (s *Stairs) steps() int {
	n := math.Ceil(math.Abs(float64(s.To-s.From))/float64(s.Step) - 1e-9)
	if !(n <= maxSteps) { // also NaN and ±Inf
		return maxSteps + 1
	}
	return int(n)
}

// length returns how long the steps take, the last one included.
func (s *Stairs) length() config.Duration { return config.Duration(s.steps()+1) * s.Every }

// rate returns the rate of step k, k < steps().
func (s *Stairs) rate(k int) float64 {
	step := float64(s.Step)
	if s.To < s.From {
		step = -step
	}
	return float64(s.From) + float64(float64(k)*step)
}

// Prompts say what is asked. Exactly one of Synthetic and File is set.
type Prompts struct {
	Synthetic Length `yaml:"synthetic" doc:"text of common words, of so many tokens"`
	File      string `yaml:"file" doc:"a set of cases: JSON Lines, or a JSON list"`
	Format    string `yaml:"format" oneof:"assay,sharegpt,openai" doc:"format of the file; found out by default"`
	Order     string `yaml:"order" oneof:"shuffled,sequential" doc:"order of the cases; shuffled by default, anew for each round through the set"`
}

// Prefix is text that requests share at their start. Each request belongs to one
// of Groups groups, drawn evenly; a group's text is the same in every request,
// every variant and every run of the seed.
type Prefix struct {
	Tokens config.Count `yaml:"tokens,required" doc:"length of the shared text"`
	Groups config.Count `yaml:"groups" doc:"number of different texts; 1 by default"`
}

// WarmUp are requests that do not count.
type WarmUp struct {
	Requests config.Count `yaml:"requests,required" doc:"number of requests before the measured ones"`
}

// DecodeConfig reads a bare rate or a mapping with ramp or stairs.
func (r *Rate) DecodeConfig(n *config.Node) {
	*r = Rate{}
	if !n.IsMapping() {
		n.Decode(&r.Fixed)
		return
	}
	type shape Rate // without DecodeConfig
	if n.Decode((*shape)(r)) && (r.Ramp == nil) == (r.Stairs == nil) {
		n.Fault("wants a rate, a ramp or stairs", "write one of them, such as 8/s")
	}
}

// MarshalYAML returns the form that DecodeConfig reads.
func (r Rate) MarshalYAML() (any, error) {
	if r.Ramp == nil && r.Stairs == nil {
		return r.Fixed, nil
	}
	type shape Rate
	return shape(r), nil
}

// ConfigSchema describes the forms of a rate.
func (Rate) ConfigSchema() map[string]any {
	return map[string]any{"oneOf": []any{
		config.SchemaOf(config.Rate(0)),
		only("ramp", config.SchemaOf(Ramp{})),
		only("stairs", config.SchemaOf(Stairs{})),
	}}
}

// only describes a mapping of one key.
func only(key string, value any) map[string]any {
	return map[string]any{"type": "object", "properties": map[string]any{key: value}, "required": []string{key}, "additionalProperties": false}
}

// ConfigSchema describes the forms of a distribution.
func (d Dist[T]) ConfigSchema() map[string]any {
	list := map[string]any{"type": "array", "items": config.SchemaOf(d.Value), "minItems": 1}
	return map[string]any{"oneOf": []any{
		config.SchemaOf(d.Value),
		list,
		only("fixed", config.SchemaOf(d.Value)),
		only("uniform", config.SchemaOf(uniformSpec[T]{})),
		only("normal", config.SchemaOf(normalSpec[T]{})),
		only("lognormal", config.SchemaOf(logNormalSpec[T]{})),
		only("exponential", map[string]any{"oneOf": []any{config.SchemaOf(d.Value), config.SchemaOf(exponentialSpec[T]{})}}),
		only("empirical", map[string]any{"oneOf": []any{list, config.SchemaOf(empiricalSpec[T]{})}}),
	}}
}

// open returns the process and the rate of an open loop; rate is nil for a
// closed one.
func (a *Arrivals) open() (poisson bool, rate *Rate) {
	switch {
	case a.Poisson != nil:
		return true, a.Poisson
	case a.Constant != nil:
		return false, a.Constant
	case a.Ramp != nil || a.Stairs != nil:
		return a.Process != "constant", &Rate{Ramp: a.Ramp, Stairs: a.Stairs}
	}
	return false, nil
}

// isTrue reads a switch that is on by default.
func isTrue(b *bool) bool { return b == nil || *b }

package workload

import (
	"github.com/assay-llm/assay/config"
)

// Spec is one workload of a suite, as the document has it. Its zero value is not
// valid: arrivals and prompts (or a mix), or a preset, and an end are needed. CheckConfig and Validate hold
// the rules that go across fields.
type Spec struct {
	Preset      string            `yaml:"preset" oneof:"chat,rag-qa,code-completion,agent,long-tail,batch" doc:"a named workload, which fills in arrivals, prompts, output, prefix and correlation where they are left out"`
	Arrivals    Arrivals          `yaml:"arrivals" doc:"when requests are sent: {poisson: 8/s}, {constant: 5/s}, {gamma: {rate: 8/s, cv: 2}}, {bursts: …}, {concurrency: 16, think: 2s} and others"`
	For         config.Duration   `yaml:"for" doc:"how long requests are sent; this or requests must be given, and the first of them ends it"`
	Requests    config.Count      `yaml:"requests" doc:"how many requests are sent, warm-up left out; of sessions, how many turns are planned"`
	Prompts     Prompts           `yaml:"prompts" doc:"what is asked: {synthetic: 512} or {file: sets/support.jsonl}"`
	Output      Length            `yaml:"output" doc:"limit of output tokens (max_tokens) of each request; overrides that of a set's cases. Left out: the case's, else the server's"`
	Correlation float64           `yaml:"correlation" min:"-1" max:"1" doc:"rank correlation (Spearman) between the lengths of synthetic prompts and of outputs; 0 if left out"`
	IgnoreEOS   bool              `yaml:"ignore_eos" doc:"ask the server to go on to the limit of output tokens, so that both variants do the same work"`
	Prefix      Prefix            `yaml:"prefix" doc:"text that groups of requests share at their start, to exercise prefix caches"`
	Salt        *bool             `yaml:"salt" doc:"start every prompt with a text of this run, so that no prefix cache of an earlier run flatters it; true by default"`
	Mix         []Part            `yaml:"mix" doc:"parts with a tenant, a share of the requests and prompts of their own, instead of prompts"`
	Sessions    *Sessions         `yaml:"sessions" doc:"users who ask more than once: {turns: 4, think: 20s}; each arrival, or each user of a closed loop, starts a session"`
	Cancel      Cancels           `yaml:"cancel" doc:"users who hang up: {share: 5%, after: 3s}, {share: 5%, during: prefill}, {share: 5%, after_tokens: 20}, or a list of such"`
	Jitter      Pause             `yaml:"jitter" doc:"delay of each request on its way to the server, as of a slow uplink: 20ms, or {pareto: {min: 5ms, alpha: 1.5, max: 2s}}; at most 1m"`
	Priority    int64             `yaml:"priority" min:"-1000000" max:"1000000" doc:"priority of the requests for engines that schedule by it, lower first as in vLLM; not sent if 0"`
	WarmUp      WarmUp            `yaml:"warmup" doc:"requests before the measured ones, with prompts of their own"`
	Stream      *bool             `yaml:"stream" doc:"ask for a streamed answer; true by default"`
	Temperature *float64          `yaml:"temperature" min:"0" max:"2" doc:"sampling temperature; left out: the server's default"`
	Cap         config.Count      `yaml:"cap" doc:"most requests in flight; those over it wait, and are counted. Left out: no cap of the workload's own"`
	Drain       config.Duration   `yaml:"drain" doc:"how long to wait for answers after the last request was sent"`
	Labels      map[string]string `yaml:"labels" doc:"labels of every record, for the scopes of clauses"`
}

// Arrivals say when requests are sent. Exactly one of the forms is set:
//
//   - an open loop, whose schedule does not wait for answers, by its process
//     (Constant, Poisson, Gamma, Weibull), each at a [Rate];
//   - an open loop by the shape of its rate alone (Ramp, Stairs, Bursts, Pulses,
//     Diurnal, MMPP), with Process "poisson" unless it says "constant". Pulses
//     are "constant" unless it says "poisson";
//   - an open loop by a Replay of the trace that the prompts come from;
//   - a closed loop of Concurrency virtual users, each of which sends its next
//     request after the answer to its last.
type Arrivals struct {
	Constant    *Rate            `yaml:"constant" doc:"evenly spaced requests: a rate, or a shape such as {ramp: …} or {bursts: …}"`
	Poisson     *Rate            `yaml:"poisson" doc:"independent users: exponential gaps at a rate, or a shape such as {ramp: …} or {bursts: …}"`
	Gamma       *Renewal         `yaml:"gamma" doc:"gaps of a gamma distribution: {rate: 8/s, cv: 2} is burstier than poisson, a cv below 1 is smoother"`
	Weibull     *Renewal         `yaml:"weibull" doc:"gaps of a Weibull distribution: {rate: 8/s, cv: 2}"`
	Ramp        *Ramp            `yaml:"ramp" doc:"a rate that changes linearly over the duration"`
	Stairs      *Stairs          `yaml:"stairs" doc:"a rate that goes up or down in steps"`
	Bursts      *Bursts          `yaml:"bursts" doc:"a rate that is switched on and off"`
	Pulses      *Pulses          `yaml:"pulses" doc:"many requests at one instant, again and again"`
	Diurnal     *Diurnal         `yaml:"diurnal" doc:"a rate that goes up and down like the days"`
	MMPP        *MMPP            `yaml:"mmpp" doc:"a rate that jumps between states at random"`
	Replay      *Replay          `yaml:"replay" doc:"the instants of the trace that prompts.file is: {} or {speed: 2}"`
	Process     string           `yaml:"process" oneof:"constant,poisson" doc:"how a shape of rate places its requests; poisson by default, constant for pulses"`
	Concurrency config.Count     `yaml:"concurrency" doc:"number of virtual users of a closed loop"`
	Think       Pause            `yaml:"think" doc:"pause of a user between an answer and its next request"`
	Stagger     *config.Duration `yaml:"stagger" doc:"time over which users make their first requests, evenly; by default the mean think time plus 50ms a user, at most a tenth of for, at most 30s"`
}

// Prompts say what is asked. Exactly one of Synthetic and File is set.
type Prompts struct {
	Synthetic Length `yaml:"synthetic" doc:"text of common words, of so many tokens"`
	File      string `yaml:"file" doc:"a set of cases (JSON Lines, or a JSON list), or a trace: lengths, and blocks that prompts share"`
	Format    string `yaml:"format" oneof:"assay,sharegpt,openai,qa,ifeval,azure,burstgpt,mooncake,servegen" doc:"format of the file; found out by default"`
	Order     string `yaml:"order" oneof:"shuffled,sequential" doc:"order of the cases; shuffled by default, anew for each round through the set. A replay keeps that of the trace"`
}

// Prefix is text that requests share at their start. Each request belongs to one
// of Groups groups, drawn evenly; a group's text is the same in every request,
// every variant and every run of the seed. Exactly one of Tokens, Share and Hit is
// set.
type Prefix struct {
	Tokens config.Count   `yaml:"tokens" doc:"length of the shared text, which comes before the prompt"`
	Share  config.Percent `yaml:"share" doc:"share of each synthetic prompt that is its group's text, instead of tokens"`
	Hit    config.Percent `yaml:"hit" doc:"share of all prompt tokens that a prefix cache without limit finds, in blocks of 16 tokens; the share of each synthetic prompt that is its group's text follows from it"`
	Groups config.Count   `yaml:"groups" doc:"number of different texts; 1 by default"`
	Reuse  config.Count   `yaml:"reuse" doc:"requests after which a group is replaced by a new one, as dialogues end and others begin; never if left out"`
}

// Sessions make a dialogue of what would be one request: an arrival of an open
// loop, or a user of a closed one, asks several turns, each a think time after
// the answer to the turn before. When a turn is due therefore depends on the run;
// all else is planned.
type Sessions struct {
	Turns   Length       `yaml:"turns" doc:"requests of a session; of a set of dialogues at most its user messages, and all of them if left out"`
	Think   Pause        `yaml:"think" doc:"pause between an answer and the next turn; none if left out"`
	History *bool        `yaml:"history" doc:"each turn carries the dialogue so far, with the answers that came; true by default"`
	Context config.Count `yaml:"context" doc:"a session ends before a turn whose prompt and answer could need more tokens than this; 2M if left out"`
}

// WarmUp are requests that do not count.
type WarmUp struct {
	Requests config.Count `yaml:"requests,required" doc:"number of requests before the measured ones"`
}

// ConfigSchema asks for a preset, or for arrivals and prompts, beside what the
// fields ask for.
func (Spec) ConfigSchema() map[string]any {
	type specFields Spec // without ConfigSchema
	return map[string]any{"allOf": []any{config.SchemaOf(specFields{})}, "anyOf": []any{
		map[string]any{"required": []any{"preset"}},
		map[string]any{"required": []any{"arrivals", "prompts"}},
		map[string]any{"required": []any{"arrivals", "mix"}},
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
		only("pareto", config.SchemaOf(paretoSpec[T]{})),
		only("quantiles", config.SchemaOf(quantilesSpec[T]{})),
		only("empirical", map[string]any{"oneOf": []any{list, config.SchemaOf(empiricalSpec[T]{})}}),
	}}
}

// isTrue reads a switch that is on by default.
func isTrue(b *bool) bool { return b == nil || *b }

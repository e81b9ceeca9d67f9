package config

import (
	"strings"
)

// sample is a document with everything that a document can have.
type sample struct {
	Version    int                 `yaml:"version,required" min:"1" max:"1" doc:"of this format"`
	Name       string              `yaml:"name,required" doc:"what it is called"`
	Seed       *uint64             `yaml:"seed" doc:"of the random numbers"`
	Confidence Percent             `yaml:"confidence" min:"50%" max:"<100%"`
	Variants   Map[sampleVariant]  `yaml:"variants,required"`
	Workloads  Map[sampleWorkload] `yaml:"workloads"`
	Labels     map[string]string   `yaml:"labels"`
	Extra      map[string]any      `yaml:"extra"`
	Tags       []string            `yaml:"tags"`
	Verbose    bool                `yaml:"verbose"`
	sampleBounds
	Noise sampleNoise `yaml:",inline"`

	Runs int // not part of the document
}

type sampleBounds struct {
	Memory Bytes `yaml:"memory" max:"1TiB"`
	Tokens Count `yaml:"tokens"`
	Small  int8  `yaml:"small"`
}

type sampleNoise struct {
	Sigma float64 `yaml:"sigma" min:"0" max:"2"`
	Mean  float32 `yaml:"mean"`
}

type sampleVariant struct {
	URL     string    `yaml:"url" doc:"where it answers"`
	API     string    `yaml:"api" oneof:"chat,completions"`
	Key     Secret    `yaml:"key"`
	Timeout Duration  `yaml:"timeout" min:">0s" max:"1h"`
	Sim     *struct{} `yaml:"sim"`
	Tpot    Percent   `yaml:"tpot"`
}

func (v *sampleVariant) CheckConfig(n *Node) {
	switch {
	case v.URL == "" && v.Sim == nil:
		n.Fault("has neither url nor sim", "add url: http://…")
	case v.URL != "" && v.Sim != nil:
		n.At("sim").Fault("stands beside url", "keep one of the two")
	case v.URL != "" && !strings.Contains(v.URL, "://"):
		n.At("url").FaultIn(len(v.URL), "ends without a scheme", "start it with http://")
	case v.Sim != nil && !v.Key.IsZero():
		n.At("url").Fault("is missing, but there is a key", "add url: http://…")
	}
}

type sampleWorkload struct {
	Arrivals sampleArrivals `yaml:"arrivals,required"`
	For      Duration       `yaml:"for"`
	Lengths  []Count        `yaml:"lengths"`
	Share    float64        `yaml:"share" min:"0" max:"1"`
}

// sampleArrivals is a union: {poisson: 5/s} or {users: 3}.
type sampleArrivals struct {
	Poisson Rate
	Users   uint16
}

func (a *sampleArrivals) DecodeConfig(n *Node) {
	ps := n.Pairs()
	if len(ps) != 1 {
		n.Fault("wants one of poisson and users, got "+n.Kind().String(), "write {poisson: 5/s}")
		return
	}
	switch p := ps[0]; p.Key {
	case "poisson":
		p.Value.Decode(&a.Poisson)
	case "users":
		p.Value.Decode(&a.Users)
	default:
		p.KeyNode.Fault("is no process of arrivals", "use poisson or users")
	}
}

func (a sampleArrivals) MarshalYAML() (any, error) {
	if a.Users > 0 {
		return map[string]any{"users": a.Users}, nil
	}
	return map[string]any{"poisson": a.Poisson}, nil
}

func (sampleArrivals) ConfigSchema() map[string]any {
	one := func(name string, v any) map[string]any {
		return map[string]any{
			"type": "object", "additionalProperties": false, "required": []any{name},
			"properties": map[string]any{name: SchemaOf(v)},
		}
	}
	return map[string]any{"oneOf": []any{one("poisson", Rate(0)), one("users", uint16(0))}}
}

const goodSample = `# everything
version: 1
name: chat-int4
seed: 42
confidence: 95%
variants:
  zeta: {url: "http://127.0.0.1:8000/v1", api: chat, key: env:KEY, timeout: 1m30s}
  alpha:
    sim: {}
    tpot: +8%
workloads:
  chat:
    arrivals: {poisson: 300/min}
    for: 5m
    lengths: [12, 1k, "32k"]
    share: 0.25
labels: {tier: gold, "1": "2", on: 'off'}
extra: {a: 1, b: 1.5, c: [x, true, null], d: {e: f}}
tags: [a, b b, 2024-01-01]
verbose: true
memory: 1.5GiB
tokens: 4k
small: -128
sigma: 1e-3
mean: 2
`

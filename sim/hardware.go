package sim

import (
	"math"
	"slices"
	"time"
)

// Shape is a dense transformer with grouped-query attention and a gated
// feed-forward network: what its step time depends on.
type Shape struct {
	Layers  int `yaml:"layers,required" doc:"number of layers"`
	Hidden  int `yaml:"hidden,required" doc:"width of the residual stream"`
	Heads   int `yaml:"heads,required" doc:"query heads"`
	KVHeads int `yaml:"kv_heads,required" doc:"key and value heads"`
	HeadDim int `yaml:"head_dim,required" doc:"width of a head"`
	FFN     int `yaml:"ffn,required" doc:"inner width of the feed-forward network"`
	Vocab   int `yaml:"vocab,required" doc:"size of the vocabulary"`
}

// shapes are published configurations: Llama 3.2 1B, Llama 3.1 8B and 70B.
var shapes = map[string]Shape{
	"1b":  {Layers: 16, Hidden: 2048, Heads: 32, KVHeads: 8, HeadDim: 64, FFN: 8192, Vocab: 128256},
	"8b":  {Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 8, HeadDim: 128, FFN: 14336, Vocab: 128256},
	"70b": {Layers: 80, Hidden: 8192, Heads: 64, KVHeads: 8, HeadDim: 128, FFN: 28672, Vocab: 128256},
}

// layerWeights returns the parameters of the matrices of one layer.
func (s Shape) layerWeights() float64 {
	d, h := float64(s.Hidden), float64(s.HeadDim)
	attention := d*float64(s.Heads+2*s.KVHeads)*h + float64(s.Heads)*h*d
	return attention + 3*d*float64(s.FFN)
}

// accelerator has the dense peaks of a device by its vendor's data sheet.
type accelerator struct {
	bf16   float64 // TFLOP/s (fp16 where there is no bf16)
	fp8    float64 // TFLOP/s of fp8, else int8; 0: none, weights are widened
	memory float64 // GB/s
	size   float64 // GB
	link   float64 // GB/s, both directions of NVLink or its like; 0: PCIe only
}

var accelerators = map[string]accelerator{
	"a100-40":   {312, 624, 1555, 40, 600},
	"a100":      {312, 624, 2039, 80, 600},
	"h100":      {989, 1979, 3350, 80, 900},
	"h100-pcie": {756, 1513, 2000, 80, 0},
	"h100-nvl":  {835, 1671, 3938, 94, 600},
	"h200":      {989, 1979, 4800, 141, 900},
	"b200":      {2250, 4500, 8000, 180, 1800},
	"l40s":      {362, 733, 864, 48, 0},
	"l4":        {121, 242, 300, 24, 0},
	"a10":       {125, 250, 600, 24, 0},
	"t4":        {65, 130, 320, 16, 0},
	"rtx4090":   {165, 330, 1008, 24, 0},
	"rtx3090":   {71, 0, 936, 24, 0},
	"mi300x":    {1307, 2615, 5300, 192, 896},
}

// weightFormats maps a format to bytes per weight: of the layers, with the
// scales of 4-bit groups of 32.
var weightFormats = map[string]float64{"bf16": 2, "fp8": 1, "int4": 0.5 + 2.0/32}

func names[V any](table map[string]V) []string {
	var list []string
	for name := range table {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// load is what one step computes, in the terms of the step-time models.
type load struct {
	decodes  int     // sequences that compute one token behind a complete prompt
	prefills int     // prompts, or parts of them, that are computed
	tokens   int64   // tokens computed
	sampled  int     // positions of which the next token is sampled
	attended float64 // Σ over computed tokens of the context each attends to
	context  float64 // tokens of KV cache that are read
}

// addChunk adds n tokens of one sequence that has `before` tokens computed.
func (l *load) addChunk(n, before int64) {
	l.tokens += n
	l.attended += float64(n)*float64(before) + float64(n)*float64(n+1)/2
	l.context += float64(before + n)
}

// stepModel gives the time of a step.
type stepModel interface {
	seconds(l load) float64
}

// linear is the fixed step time: a base, and costs per sequence and per token of
// prompt.
type linear struct{ base, sequence, prefill float64 } // seconds

func (m linear) seconds(l load) float64 {
	prompt := float64(l.tokens - int64(l.decodes))
	return m.base + m.sequence*float64(l.decodes+l.prefills) + m.prefill*prompt
}

// Constants of the roofline. Fitted on public sweeps of vLLM 0.11 with
// Llama-3-8B on one H100 (inference-perf, KubeCon NA 2025); the memory
// efficiency and the exponent agree with Vidur's kernel measurements on A100 and
// H100 (mean error 3 to 9 %), where whole GEMMs alone reach .74 of peak compute.
const (
	computeEfficiency = 0.58
	memoryEfficiency  = 0.76
	kneeExponent      = 1.5     // soft maximum of compute and memory time
	stepOverhead      = 1.36e-3 // seconds a step
	sequenceOverhead  = 10e-6   // seconds a sequence in the step
	prefillOverhead   = 0.2e-3  // seconds a prompt prefilled in the step

	linkEfficiency = 0.6  // all-reduce bandwidth against half the link's figure, Vidur's H100 measurements at 64 MB
	pcieLink       = 32   // GB/s each way, where there is no other link
	usableMemory   = 0.9  // vLLM's gpu_memory_utilization
	activations    = 0.04 // share of the memory for activations and graphs
)

// roofline is the step time of a Shape on one or more accelerators:
//
//	t = ((F/(P·ηc))^p + (B/(BW·ηm))^p)^(1/p) + comm + o0 + o1·sequences + o2·prefills
//
// F counts the matrices (2 FLOP a weight and token), attention (4·heads·dim a
// token and attended token) and the head (a sampled position); B counts the
// weights once a step, the head, the KV cache read and written.
type roofline struct {
	flopsToken, flopsAttended, flopsSampled float64
	bytesWeights, bytesKV                   float64 // a step; a token
	compute, memory                         float64 // attainable FLOP/s and B/s of all devices

	reduces      float64 // all-reduces a step
	reduceLag    float64 // seconds each
	reduceSecond float64 // seconds a token of one all-reduce
}

func newRoofline(s Shape, a accelerator, bytesPerWeight float64, devices int) roofline {
	peak := a.bf16
	if bytesPerWeight == weightFormats["fp8"] && a.fp8 > 0 {
		peak = a.fp8
	}
	n := float64(devices)
	layers := float64(s.Layers)
	m := roofline{
		flopsToken:    2 * s.layerWeights() * layers,
		flopsAttended: 4 * float64(s.Heads) * float64(s.HeadDim) * layers,
		flopsSampled:  2 * float64(s.Hidden) * float64(s.Vocab),
		bytesWeights:  bytesPerWeight*s.layerWeights()*layers + 2*float64(s.Hidden)*float64(s.Vocab),
		bytesKV:       2 * float64(s.KVHeads) * float64(s.HeadDim) * 2 * layers,
		compute:       peak * 1e12 * computeEfficiency * n,
		memory:        a.memory * 1e9 * memoryEfficiency * n,
	}
	if devices > 1 {
		link := a.link / 2 * linkEfficiency
		if a.link == 0 {
			link = pcieLink * linkEfficiency
		}
		m.reduces = 2 * layers
		m.reduceLag = (5*(n-1) + 2) * 1e-6 // 7 µs for 2 and 37 µs for 8 devices at 2 kB
		m.reduceSecond = 2 * float64(s.Hidden) * 2 * (n - 1) / n / (link * 1e9)
	}
	return m
}

func (m roofline) seconds(l load) float64 {
	tokens := float64(l.tokens)
	flops := m.flopsToken*tokens + m.flopsAttended*l.attended + m.flopsSampled*float64(l.sampled)
	bytes := m.bytesWeights + m.bytesKV*(l.context+tokens)
	soft := math.Pow(math.Pow(flops/m.compute, kneeExponent)+math.Pow(bytes/m.memory, kneeExponent), 1/kneeExponent)
	comm := m.reduces * (m.reduceLag + m.reduceSecond*tokens)
	return soft + comm + stepOverhead + sequenceOverhead*float64(l.decodes+l.prefills) + prefillOverhead*float64(l.prefills)
}

// kvTokens returns how many tokens of KV cache fit beside the weights; it is
// negative when the weights alone do not fit.
func (m roofline) kvTokens(s Shape, a accelerator, bytesPerWeight float64, devices int) int64 {
	embedding := 2 * float64(s.Hidden) * float64(s.Vocab)
	room := a.size*1e9*(usableMemory-activations)*float64(devices) - m.bytesWeights - embedding
	return int64(room / m.bytesKV)
}

// seconds64 turns seconds of a model into a duration; a model that overflows
// gives an hour, which is never reached by a sound configuration.
func seconds64(s float64) time.Duration {
	if !(s < 3600) {
		return time.Hour
	}
	return time.Duration(math.Round(max(s, 0) * 1e9))
}

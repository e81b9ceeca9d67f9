package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
)

// A shape is what a model's cost depends on, and the seed of its weights.
type shape struct {
	dim, layers, heads, kvHeads, ffn int
	vocab, context                   int // tokens
	sharpness                        float64
	seed                             uint64
	matrix                           kind
}

// validate reports every fault at once.
func (s shape) validate() error {
	var faults []error
	within := func(name string, v, least, most int) {
		if v < least || v > most {
			faults = append(faults, fmt.Errorf("%s %d: want %d to %d", name, v, least, most))
		}
	}
	within("dim", s.dim, blockLen, 1<<14)
	within("layers", s.layers, 1, 256)
	within("heads", s.heads, 1, 256)
	within("kv", s.kvHeads, 1, 256)
	within("ffn", s.ffn, blockLen, 1<<16)
	within("vocab", s.vocab, smallestVocabulary, 1<<18)
	within("ctx", s.context, 16, 1<<20)
	if !(s.sharpness > 0 && s.sharpness <= 100) {
		faults = append(faults, fmt.Errorf("sharp %v: want a number above 0, up to 100", s.sharpness))
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	if s.dim%(2*s.heads) != 0 {
		faults = append(faults, fmt.Errorf("dim %d: want a multiple of %d, twice the heads", s.dim, 2*s.heads))
	}
	if s.heads%s.kvHeads != 0 {
		faults = append(faults, fmt.Errorf("heads %d: want a multiple of kv (%d)", s.heads, s.kvHeads))
	}
	if s.matrix == q8_0 && (s.dim%blockLen != 0 || s.ffn%blockLen != 0) {
		faults = append(faults, fmt.Errorf("dim %d, ffn %d: want multiples of %d for q8_0", s.dim, s.ffn, blockLen))
	}
	return errors.Join(faults...)
}

// network makes the model.
//
// Dimension 0 of the residual stream is a constant: every embedding has the
// same value there, and no layer writes to it. The output matrix reads it to
// push every token down that is not text: unknown, control and byte tokens. So
// the text is always valid UTF-8, and an answer ends at its limit only.
func network(s shape) model {
	const (
		constant = 2.0   // value of dimension 0
		never    = -60.0 // its weight in the logit of a token that is not text
	)
	v := newVocabulary(s.vocab)
	w := weights{seed: s.seed, matrix: s.matrix}
	head := s.dim / s.heads
	byDim, byFFN := 1/math.Sqrt(float64(s.dim)), 1/math.Sqrt(float64(s.ffn))

	w.normal("token_embd.weight", s.dim, s.vocab, 1, func(_ int, row []float32) { row[0] = constant })
	w.ones("output_norm.weight", s.dim)
	w.normal("output.weight", s.dim, s.vocab, s.sharpness*byDim, func(token int, row []float32) {
		row[0] = 0
		if v.types[token] != textToken {
			row[0] = never
		}
	})
	silent := func(row int, values []float32) {
		if row == 0 {
			clear(values)
		}
	}
	for i := range s.layers {
		layer := func(name string) string { return fmt.Sprintf("blk.%d.%s.weight", i, name) }
		w.ones(layer("attn_norm"), s.dim)
		w.normal(layer("attn_q"), s.dim, s.dim, byDim, nil)
		w.normal(layer("attn_k"), s.dim, s.kvHeads*head, byDim, nil)
		w.normal(layer("attn_v"), s.dim, s.kvHeads*head, byDim, nil)
		w.normal(layer("attn_output"), s.dim, s.dim, byDim, silent)
		w.ones(layer("ffn_norm"), s.dim)
		w.normal(layer("ffn_gate"), s.dim, s.ffn, byDim, nil)
		w.normal(layer("ffn_up"), s.dim, s.ffn, byDim, nil)
		w.normal(layer("ffn_down"), s.ffn, s.dim, byFFN, silent)
	}
	return model{properties: properties(s, v), tensors: w.tensors}
}

func properties(s shape, v vocabulary) []property {
	return []property{
		{"general.architecture", "llama"},
		{"general.name", fmt.Sprintf("random %d", s.seed)},
		{"general.file_type", s.matrix.fileType()},
		{"general.alignment", uint32(alignment)},
		{"llama.context_length", uint32(s.context)},
		{"llama.embedding_length", uint32(s.dim)},
		{"llama.block_count", uint32(s.layers)},
		{"llama.feed_forward_length", uint32(s.ffn)},
		{"llama.attention.head_count", uint32(s.heads)},
		{"llama.attention.head_count_kv", uint32(s.kvHeads)},
		{"llama.attention.layer_norm_rms_epsilon", float32(1e-5)},
		{"llama.rope.dimension_count", uint32(s.dim / s.heads)},
		{"llama.rope.freq_base", float32(10_000)},
		{"llama.vocab_size", uint32(s.vocab)},
		{"tokenizer.ggml.model", "llama"},
		{"tokenizer.ggml.pre", "default"},
		{"tokenizer.ggml.tokens", v.tokens},
		{"tokenizer.ggml.scores", v.scores},
		{"tokenizer.ggml.token_type", v.types},
		{"tokenizer.ggml.unknown_token_id", uint32(0)},
		{"tokenizer.ggml.bos_token_id", uint32(1)},
		{"tokenizer.ggml.eos_token_id", uint32(2)},
		{"tokenizer.ggml.add_bos_token", true},
		{"tokenizer.ggml.add_eos_token", false},
	}
}

// weights collects tensors. Each has a stream of random numbers of its own.
type weights struct {
	seed    uint64
	matrix  kind
	tensors []tensor
}

func (w *weights) ones(name string, n int) {
	w.tensors = append(w.tensors, tensor{name: name, cols: n, kind: f32, fill: func(_ int, into []float32) {
		for i := range into {
			into[i] = 1
		}
	}})
}

// normal adds a matrix of normal numbers; fix, if any, then changes each row.
func (w *weights) normal(name string, cols, rows int, deviation float64, fix func(row int, values []float32)) {
	random := rand.New(rand.NewPCG(w.seed, uint64(len(w.tensors))))
	w.tensors = append(w.tensors, tensor{name: name, cols: cols, rows: rows, kind: w.matrix, fill: func(row int, into []float32) {
		for i := range into {
			into[i] = float32(random.NormFloat64() * deviation)
		}
		if fix != nil {
			fix(row, into)
		}
	}})
}

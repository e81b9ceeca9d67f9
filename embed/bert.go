package embed

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// window is how many tokens are read at once, the two marks of the ends among them:
// what sentence-transformers trained these models with.
const window = 256

// Model is a BERT encoder with mean pooling. It is read-only once loaded, and safe
// for concurrent use.
type Model struct {
	tokens             *wordPiece
	words, places, typ tensor
	norm               layerNorm
	layers             []layer
	heads, width       int
}

type linear struct{ weight, bias tensor } // y = x·weightᵀ + bias

type layerNorm struct {
	scale, shift tensor
	epsilon      float32
}

type layer struct {
	query, key, value, out linear
	attended               layerNorm
	up, down               linear
	done                   layerNorm
}

// Load reads a model from a folder with model.safetensors, tokenizer.json and
// config.json, as sentence-transformers publishes encoders.
func Load(dir fs.FS) (*Model, error) {
	m, err := load(dir)
	if err != nil {
		return nil, fmt.Errorf("loading the embedder: %w", err)
	}
	return m, nil
}

// bertConfig is what config.json says of the shape of the network.
type bertConfig struct {
	Type       string  `json:"model_type"`
	Activation string  `json:"hidden_act"`
	Width      int     `json:"hidden_size"`
	Inner      int     `json:"intermediate_size"`
	Heads      int     `json:"num_attention_heads"`
	Layers     int     `json:"num_hidden_layers"`
	Places     int     `json:"max_position_embeddings"`
	Words      int     `json:"vocab_size"`
	Epsilon    float32 `json:"layer_norm_eps"`
	Relative   string  `json:"position_embedding_type"`
}

func (c bertConfig) validate() error {
	switch {
	case c.Type != "bert" || c.Activation != "gelu" || c.Relative != "" && c.Relative != "absolute":
		return fmt.Errorf("config.json describes %s with %s: only BERT with gelu and absolute positions is computed here; use a server for other embedders", c.Type, c.Activation)
	case c.Heads < 1 || c.Width < 1 || c.Width%c.Heads != 0 || c.Layers < 1 || c.Layers > 100 || c.Places < window || c.Epsilon <= 0:
		return fmt.Errorf("config.json: %d layers, %d heads, width %d, %d positions, epsilon %g make no network", c.Layers, c.Heads, c.Width, c.Places, c.Epsilon)
	}
	return nil
}

func load(dir fs.FS) (*Model, error) {
	var c bertConfig
	data, err := fs.ReadFile(dir, "config.json")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("reading config.json: %w", err)
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	f, err := dir.Open("tokenizer.json")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m := &Model{heads: c.Heads, width: c.Width}
	if m.tokens, err = readTokenizer(f); err != nil {
		return nil, err
	}
	w, err := dir.Open("model.safetensors")
	if err != nil {
		return nil, err
	}
	defer w.Close()
	all, err := readSafetensors(w)
	if err != nil {
		return nil, fmt.Errorf("reading model.safetensors: %w", err)
	}
	return m, m.assemble(c, all)
}

// assemble takes the tensors by their names, each with the shape that it must have.
func (m *Model) assemble(c bertConfig, all map[string]tensor) error {
	var fault error
	take := func(name string, rows, cols int) tensor {
		t, ok := all[name]
		if fault == nil && (!ok || t.rows != rows || t.cols != cols) {
			fault = fmt.Errorf("model.safetensors has no float32 tensor %s of %d by %d", name, rows, cols)
		}
		return t
	}
	dense := func(name string, out, in int) linear {
		return linear{take(name+".weight", out, in), take(name+".bias", 1, out)}
	}
	norm := func(name string) layerNorm {
		return layerNorm{take(name+".weight", 1, c.Width), take(name+".bias", 1, c.Width), c.Epsilon}
	}
	m.words = take("embeddings.word_embeddings.weight", c.Words, c.Width)
	m.places = take("embeddings.position_embeddings.weight", c.Places, c.Width)
	m.typ = take("embeddings.token_type_embeddings.weight", 2, c.Width)
	m.norm = norm("embeddings.LayerNorm")
	for i := range c.Layers {
		at := fmt.Sprintf("encoder.layer.%d.", i)
		m.layers = append(m.layers, layer{
			query: dense(at+"attention.self.query", c.Width, c.Width), key: dense(at+"attention.self.key", c.Width, c.Width),
			value: dense(at+"attention.self.value", c.Width, c.Width), out: dense(at+"attention.output.dense", c.Width, c.Width),
			attended: norm(at + "attention.output.LayerNorm"),
			up:       dense(at+"intermediate.dense", c.Inner, c.Width), down: dense(at+"output.dense", c.Width, c.Inner),
			done: norm(at + "output.LayerNorm"),
		})
	}
	for _, id := range m.tokens.ids {
		if fault == nil && (id < 0 || id >= c.Words) {
			fault = fmt.Errorf("tokenizer.json has the id %d, and there are %d words", id, c.Words)
		}
	}
	return fault
}

// Embed returns the unit vector of each text: the mean over its tokens. A text of
// more than 254 tokens is read in windows, whose means are weighted by their
// tokens; nothing of it is dropped.
func (m *Model) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		ids := m.tokens.encode(text)
		sum := make([]float32, m.width)
		for first := true; first || len(ids) > 0; first = false {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			n := min(len(ids), window-2)
			m.pool(sum, ids[:n])
			ids = ids[n:]
		}
		out[i] = unit(sum)
	}
	return out, nil
}

// pool adds the states of a window's tokens to sum.
func (m *Model) pool(sum []float32, ids []int) {
	seq := append(append(append(make([]int, 0, len(ids)+2), m.tokens.begin), ids...), m.tokens.end)
	n, w := len(seq), m.width
	x := make([]float32, n*w)
	for i, id := range seq {
		row := x[i*w : (i+1)*w]
		word, place := m.words.data[id*w:], m.places.data[i*w:]
		for k := range row {
			row[k] = word[k] + place[k] + m.typ.data[k]
		}
	}
	m.norm.apply(x, n, w)
	for i := range m.layers {
		m.layers[i].apply(x, n, w, m.heads)
	}
	for i := range n {
		for k, v := range x[i*w : (i+1)*w] {
			sum[k] += v
		}
	}
}

// apply computes one layer in place (Devlin et al. 2018, post-norm).
func (l *layer) apply(x []float32, n, w, heads int) {
	q, k, v := l.query.apply(x, n), l.key.apply(x, n), l.value.apply(x, n)
	d := w / heads
	mixed, scores := make([]float32, n*w), make([]float32, n*n)
	view := func(data []float32, h int) blas32.General {
		return blas32.General{Rows: n, Cols: d, Stride: w, Data: data[h*d:]}
	}
	s := blas32.General{Rows: n, Cols: n, Stride: n, Data: scores}
	for h := range heads {
		blas32.Gemm(blas.NoTrans, blas.Trans, float32(1/math.Sqrt(float64(d))), view(q, h), view(k, h), 0, s)
		for i := range n {
			softmax(scores[i*n : (i+1)*n])
		}
		blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, s, view(v, h), 0, view(mixed, h))
	}
	add(x, l.out.apply(mixed, n))
	l.attended.apply(x, n, w)
	up := l.up.apply(x, n)
	for i, z := range up {
		up[i] = float32(float64(z) / 2 * (1 + math.Erf(float64(z)/math.Sqrt2)))
	}
	add(x, l.down.apply(up, n))
	l.done.apply(x, n, w)
}

func (l *linear) apply(x []float32, n int) []float32 {
	out, in := l.weight.rows, l.weight.cols
	y := make([]float32, n*out)
	for i := range n {
		copy(y[i*out:], l.bias.data)
	}
	blas32.Gemm(blas.NoTrans, blas.Trans, 1, blas32.General{Rows: n, Cols: in, Stride: in, Data: x},
		blas32.General{Rows: out, Cols: in, Stride: in, Data: l.weight.data}, 1, blas32.General{Rows: n, Cols: out, Stride: out, Data: y})
	return y
}

func (l *layerNorm) apply(x []float32, n, w int) {
	for i := range n {
		row := x[i*w : (i+1)*w]
		var mean, variance float64
		for _, v := range row {
			mean += float64(v)
		}
		mean /= float64(w)
		for _, v := range row {
			variance += (float64(v) - mean) * (float64(v) - mean)
		}
		scale := 1 / math.Sqrt(variance/float64(w)+float64(l.epsilon))
		for k, v := range row {
			row[k] = float32((float64(v)-mean)*scale)*l.scale.data[k] + l.shift.data[k]
		}
	}
}

func softmax(x []float32) {
	top := x[0]
	for _, v := range x {
		top = max(top, v)
	}
	var sum float64
	for i, v := range x {
		e := math.Exp(float64(v - top))
		x[i] = float32(e)
		sum += e
	}
	for i := range x {
		x[i] = float32(float64(x[i]) / sum)
	}
}

func add(x, y []float32) {
	for i := range x {
		x[i] += y[i]
	}
}

// unit scales a vector to length 1; that of nothing stays zero.
func unit(x []float32) []float32 {
	var squares float64
	for _, v := range x {
		squares += float64(v) * float64(v)
	}
	if squares == 0 {
		return x
	}
	scale := float32(1 / math.Sqrt(squares))
	for i := range x {
		x[i] *= scale
	}
	return x
}

package embed

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/assay-llm/assay/check"
)

const tinyTokenizer = `{"normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
"pre_tokenizer": {"type": "BertPreTokenizer"}, "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
"vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "##b": 4, "!": 5, "b": 6, "中": 7}}}`

const tinyConfig = `{"model_type": "bert", "hidden_act": "gelu", "hidden_size": 4, "intermediate_size": 6, "num_attention_heads": 2,
"num_hidden_layers": 1, "max_position_embeddings": 256, "vocab_size": 8, "layer_norm_eps": 1e-12}`

// tiny is a folder with a network of eight words whose weights are random.
func tiny() fstest.MapFS {
	rng := rand.New(rand.NewPCG(1, 2))
	shapes := map[string][]int{
		"embeddings.word_embeddings.weight": {8, 4}, "embeddings.position_embeddings.weight": {256, 4}, "embeddings.token_type_embeddings.weight": {2, 4},
		"embeddings.LayerNorm.weight": {4}, "embeddings.LayerNorm.bias": {4},
	}
	for name, shape := range map[string][2]int{
		"attention.self.query": {4, 4}, "attention.self.key": {4, 4}, "attention.self.value": {4, 4}, "attention.output.dense": {4, 4},
		"intermediate.dense": {6, 4}, "output.dense": {4, 6},
	} {
		shapes["encoder.layer.0."+name+".weight"] = shape[:]
		shapes["encoder.layer.0."+name+".bias"] = []int{shape[0]}
	}
	for _, name := range []string{"attention.output.LayerNorm", "output.LayerNorm"} {
		shapes["encoder.layer.0."+name+".weight"], shapes["encoder.layer.0."+name+".bias"] = []int{4}, []int{4}
	}
	return fstest.MapFS{
		"config.json": {Data: []byte(tinyConfig)}, "tokenizer.json": {Data: []byte(tinyTokenizer)},
		"model.safetensors": {Data: safetensors(shapes, func() float32 { return float32(rng.NormFloat64()) })},
	}
}

func safetensors(shapes map[string][]int, next func() float32) []byte {
	header := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	var body []byte
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		n := 1
		for _, d := range shapes[name] {
			n *= d
		}
		header[name] = map[string]any{"dtype": "F32", "shape": shapes[name], "data_offsets": []int{len(body), len(body) + 4*n}}
		for range n {
			body = binary.LittleEndian.AppendUint32(body, math.Float32bits(next()))
		}
	}
	h, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(h))), h, body)
}

func TestWordPiece(t *testing.T) {
	w, err := readTokenizer(strings.NewReader(tinyTokenizer))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]int{
		"": nil, "ab": {3, 4}, "ÁB!": {3, 4, 5}, "a中b": {3, 7, 6}, "ac": {0}, "a\u200bb": {3, 4}, "a\x00 b": {3, 6},
		"[CLS]": {0, 0, 0}, strings.Repeat("a", 101): {0},
	} {
		if got := w.encode(text); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestLongTextsAreReadInWindows(t *testing.T) {
	m, err := Load(tiny())
	if err != nil {
		t.Fatal(err)
	}
	short, long := strings.Repeat("a b ", 127), strings.Repeat("a b ", 127)+strings.Repeat("! ", 254)
	v, err := m.Embed(t.Context(), []string{short, long, strings.Repeat("! ", 254), ""})
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range v {
		if n := Cosine(x, x); math.Abs(n-1) > 1e-6 {
			t.Errorf("vector %d has the length %v", i, n)
		}
	}
	// Both halves have 254 tokens, so the whole lies halfway between them but for
	// their lengths before scaling.
	if a, b := Cosine(v[0], v[1]), Cosine(v[2], v[1]); a >= 1-1e-6 || b >= 1-1e-6 || a < Cosine(v[0], v[2]) || b < Cosine(v[0], v[2]) {
		t.Errorf("the whole has cosines of %v and %v with its halves, which have %v: a half was dropped", a, b, Cosine(v[0], v[2]))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Embed(ctx, []string{"a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
}

func TestLoadRefuses(t *testing.T) {
	replace := func(name, old, new string) fstest.MapFS {
		d := tiny()
		d[name] = &fstest.MapFile{Data: bytes.Replace(d[name].Data, []byte(old), []byte(new), 1)}
		return d
	}
	without := tiny()
	delete(without, "tokenizer.json")
	half := tiny()
	half["model.safetensors"] = &fstest.MapFile{Data: half["model.safetensors"].Data[:len(half["model.safetensors"].Data)-50]}
	infinite := tiny()
	infinite["model.safetensors"] = &fstest.MapFile{Data: safetensors(map[string][]int{"x": {1}}, func() float32 { return float32(math.Inf(1)) })}
	for _, c := range []struct {
		name string
		dir  fstest.MapFS
		want string
	}{
		{"no tokenizer", without, "tokenizer.json"},
		{"another activation", replace("config.json", `"gelu"`, `"silu"`), "only BERT with gelu"},
		{"heads that do not divide", replace("config.json", `"num_attention_heads": 2`, `"num_attention_heads": 3`), "make no network"},
		{"another tokenizer", replace("tokenizer.json", `"WordPiece"`, `"BPE"`), "only BERT's WordPiece"},
		{"no special token", replace("tokenizer.json", `"[CLS]": 1`, `"x": 1`), `no token "[CLS]"`},
		{"an id beyond the words", replace("tokenizer.json", `"中": 7`, `"中": 8`), "the id 8, and there are 8 words"},
		{"a tensor of another shape", replace("config.json", `"intermediate_size": 6`, `"intermediate_size": 5`), "no float32 tensor encoder.layer.0.intermediate.dense.weight of 5 by 4"},
		{"a cut file", half, "cut or broken"},
		{"a weight that is none", infinite, "number 0 is +Inf"},
		{"no weights at all", fstest.MapFS{"config.json": tiny()["config.json"], "tokenizer.json": tiny()["tokenizer.json"], "model.safetensors": {Data: []byte("<html>404 not found")}}, "is it a safetensors file?"},
	} {
		if _, err := Load(c.dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want an error with %q", c.name, err, c.want)
		}
	}
}

func FuzzSafetensors(f *testing.F) {
	f.Add(safetensors(map[string][]int{"a": {2, 3}, "b": {4}}, func() float32 { return 1 }))
	f.Add([]byte("\x10\x00\x00\x00\x00\x00\x00\x00{\"a\":{}}        "))
	f.Fuzz(func(t *testing.T, in []byte) {
		all, err := readSafetensors(bytes.NewReader(in))
		if err != nil {
			return
		}
		for name, x := range all {
			if len(x.data) != x.rows*x.cols || len(x.data)*4 > len(in) {
				t.Errorf("tensor %q of %d by %d has %d numbers from %d bytes", name, x.rows, x.cols, len(x.data), len(in))
			}
		}
	})
}

func FuzzTokenizer(f *testing.F) {
	f.Add(tinyTokenizer, "aB! 中")
	f.Fuzz(func(_ *testing.T, file, text string) {
		if w, err := readTokenizer(strings.NewReader(file)); err == nil {
			w.encode(text)
		}
	})
}

// fixed is an embedder by table.
type fixed func(text string) []float32

func (f fixed) Embed(_ context.Context, texts []string) ([][]float32, error) {
	var out [][]float32
	for _, t := range texts {
		out = append(out, f(t))
	}
	return out, nil
}

var _ check.Embedder = fixed(nil)

func TestScore(t *testing.T) {
	e := fixed(func(text string) []float32 {
		return map[string][]float32{"One.": {1, 0}, "Two.": {0, 1}, "Half.": {1, 1}}[text]
	})
	half := math.Sqrt(.5)
	for _, c := range []struct {
		answer, reference string
		scale             Scale
		want              Match
	}{
		{"One. Two.", "Two. One.", Scale{}, Match{1, 1, 1}},
		{"One.", "One. Two.", Scale{}, Match{1, .5, 2. / 3}},
		{"One. Two.", "One.", Scale{}, Match{.5, 1, 2. / 3}},
		{"Half.", "One.", Scale{}, Match{half, half, half}},
		{"Half.", "One.", Scale{Mean: .5}, Match{2*half - 1, 2*half - 1, 2*half - 1}},
		{"Two.", "One.", Scale{Mean: .5}, Match{-1, -1, 0}},
	} {
		m, ok, err := Score(t.Context(), e, c.scale, []string{c.answer}, []string{c.reference})
		if err != nil || !ok[0] || math.Abs(m[0].Precision-c.want.Precision)+math.Abs(m[0].Recall-c.want.Recall)+math.Abs(m[0].F-c.want.F) > 1e-6 {
			t.Errorf("%q against %q: %+v, %v, %v; want %+v", c.answer, c.reference, m, ok, err, c.want)
		}
	}
	if m, ok, err := Score(t.Context(), e, Scale{}, []string{" ", "One."}, []string{"One.", ""}); err != nil || ok[0] || ok[1] {
		t.Errorf("of empty texts: %+v, %v, %v; want no scores", m, ok, err)
	}
	if _, _, err := Score(t.Context(), e, Scale{}, []string{"One."}, nil); err == nil {
		t.Error("an answer without a reference was scored")
	}
	for name, bad := range map[string]fixed{
		"NaN":     func(string) []float32 { return []float32{float32(math.NaN()), 0} },
		"nothing": func(string) []float32 { return nil },
		"lengths": func(s string) []float32 { return make([]float32, 1+len(s)%2) },
	} {
		if _, _, err := Score(t.Context(), bad, Scale{}, []string{"One."}, []string{"Half."}); err == nil {
			t.Errorf("an embedder with %s was believed", name)
		}
	}
}

func TestCalibrate(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var texts []string
	for i := range 400 {
		texts = append(texts, fmt.Sprint("text ", i))
	}
	// A common part of length 3 and a part of their own of length 4 in 64 dimensions: cosine 9/25.
	e := fixed(func(text string) []float32 {
		r := rand.New(rand.NewPCG(uint64(len(text)), uint64(text[len(text)-1])<<16+uint64(text[len(text)-2])<<8+uint64(text[len(text)-3])))
		v := make([]float32, 65)
		for i := 1; i < len(v); i++ {
			v[i] = float32(r.NormFloat64())
		}
		unit(v)
		for i := range v {
			v[i] *= 4
		}
		v[0] = 3
		return v
	})
	s, err := Calibrate(t.Context(), e, texts, rng)
	if err != nil || s.Pairs != 500 || math.Abs(s.Mean-9./25) > .02 || math.Abs(s.SD-16./25/8) > .02 {
		t.Errorf("%+v, %v; want 500 pairs of mean 0.36 and standard deviation 0.08", s, err)
	}
	if s.Of(1) != 1 || math.Abs(s.Of(s.Mean)) > 1e-12 {
		t.Errorf("1 and the mean are %v and %v on the scale; want 1 and 0", s.Of(1), s.Of(s.Mean))
	}
	if _, err := Calibrate(t.Context(), e, append(texts[:15], texts[:15]...), rng); err == nil || !strings.Contains(err.Error(), "15 different texts are too few") {
		t.Errorf("15 texts: %v", err)
	}
	same := fixed(func(string) []float32 { return []float32{1, 2} })
	if _, err := Calibrate(t.Context(), same, texts, rng); err == nil || !strings.Contains(err.Error(), "tells nothing apart") {
		t.Errorf("an embedder that knows one vector: %v", err)
	}
}

func TestDrift(t *testing.T) {
	before, err := Probe(t.Context(), Hashing(0))
	if err != nil {
		t.Fatal(err)
	}
	if err := before.Drift(before); err != nil {
		t.Errorf("the same embedder: %v", err)
	}
	other, _ := Probe(t.Context(), Hashing(256))
	if err := other.Drift(before); err == nil || !strings.Contains(err.Error(), "it is another one") {
		t.Errorf("another length: %v", err)
	}
	moved := fixed(func(text string) []float32 {
		v, _ := Hashing(0).Embed(context.Background(), []string{text})
		if text == "今天天气很好，我们去公园。" {
			v[0][7] += .1
		}
		return v[0]
	})
	now, _ := Probe(t.Context(), moved)
	if err := now.Drift(before); err == nil || !strings.Contains(err.Error(), "今天天气很好") {
		t.Errorf("an embedder that moved one text: %v; want it named", err)
	}
	if err := now.Drift(Fingerprint{}); err == nil {
		t.Error("nothing before, and no drift")
	}
}

func TestHashing(t *testing.T) {
	v, err := Hashing(0).Embed(t.Context(), []string{"the refund was approved", "The refund was approved", "the refund is approved", "bananas are yellow", ""})
	if err != nil {
		t.Fatal(err)
	}
	if a, b, c := Cosine(v[0], v[1]), Cosine(v[0], v[2]), Cosine(v[0], v[3]); a < 1-1e-6 || b < .5 || b > .95 || c > .3 {
		t.Errorf("cosines %v, %v, %v; want 1, something between, and little", a, b, c)
	}
	if Cosine(v[0], v[4]) != 0 {
		t.Errorf("nothing has a cosine of %v", Cosine(v[0], v[4]))
	}
}

// TestMeaning says what MiniLM sees, and what it does not: that is what facts are for.
func TestMeaning(t *testing.T) {
	m := miniLM(t)
	v, err := m.Embed(t.Context(), []string{"The refund was approved.", "Your money will be paid back.", "The refund was not approved.", "Bananas are yellow when they are ripe."})
	if err != nil {
		t.Fatal(err)
	}
	same, negated, unrelated := Cosine(v[0], v[1]), Cosine(v[0], v[2]), Cosine(v[0], v[3])
	t.Logf("in other words %.2f, negated %.2f, unrelated %.2f", same, negated, unrelated)
	if same < .4 || unrelated > .2 || negated < .7 {
		t.Errorf("cosines %.2f, %.2f, %.2f: want above 0.4, above 0.7 and below 0.2", same, negated, unrelated)
	}
}

func BenchmarkMiniLM(b *testing.B) {
	m := miniLM(b)
	texts := []string{"The capital of France is Paris, and it has been so for a long time; nobody has ever proposed to move it, except once or twice."}
	for b.Loop() {
		if _, err := m.Embed(b.Context(), texts); err != nil {
			b.Fatal(err)
		}
	}
}

// What is published as a calibration changes no cosine.
func TestOverNormChangesNoCosine(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	draw := func() []float32 {
		v := make([]float32, 64)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	for range 50 {
		a, b, power := draw(), draw(), 3*r.Float64()
		if before, after := Cosine(a, b), Cosine(OverNorm(a, power), b); math.Abs(before-after) > 1e-6 {
			t.Errorf("power %v: a cosine of %v becomes %v", power, before, after)
		}
	}
	if v := OverNorm([]float32{3, 4}, 1); math.Abs(float64(v[0])-0.6) > 1e-7 || math.Abs(float64(v[1])-0.8) > 1e-7 {
		t.Errorf("a vector of length 5 becomes %v", v)
	}
	if v := OverNorm([]float32{0, 0}, 1); v[0] != 0 || v[1] != 0 {
		t.Errorf("a vector of zeros becomes %v", v)
	}
}

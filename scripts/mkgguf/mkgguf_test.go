package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func tiny(seed uint64, matrix kind) shape {
	return shape{dim: 64, layers: 2, heads: 4, kvHeads: 2, ffn: 96, vocab: 600, context: 128, sharpness: 3, seed: seed, matrix: matrix}
}

func write(t *testing.T, s shape) []byte {
	t.Helper()
	if err := s.validate(); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	n, err := writeModel(&b, network(s))
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("writeModel = %d, %v with %d bytes written", n, err, b.Len())
	}
	return b.Bytes()
}

func TestSameFlagsGiveTheSameFile(t *testing.T) {
	for _, matrix := range []kind{f32, q8_0} {
		a, b, other := write(t, tiny(1, matrix)), write(t, tiny(1, matrix)), write(t, tiny(2, matrix))
		if sha256.Sum256(a) != sha256.Sum256(b) {
			t.Errorf("type %d: the same seed gave two files", matrix)
		}
		if sha256.Sum256(a) == sha256.Sum256(other) {
			t.Errorf("type %d: another seed gave the same file", matrix)
		}
		if len(a) != len(other) {
			t.Errorf("type %d: two seeds gave files of %d and %d bytes", matrix, len(a), len(other))
		}
	}
}

// A reader reads GGUF back, on its own account of the format.
type reader struct {
	t *testing.T
	b []byte
	n int
}

func (r *reader) take(n int) []byte {
	r.t.Helper()
	if n < 0 || n > len(r.b)-r.n {
		r.t.Fatalf("at byte %d: want %d more, there are %d", r.n, n, len(r.b)-r.n)
	}
	r.n += n
	return r.b[r.n-n : r.n]
}
func (r *reader) u32() uint32    { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) u64() int       { return int(binary.LittleEndian.Uint64(r.take(8))) }
func (r *reader) string() string { return string(r.take(r.u64())) }
func (r *reader) value(of uint32) any {
	switch of {
	case 4, 5:
		return r.u32()
	case 6:
		return math.Float32frombits(r.u32())
	case 7:
		return r.take(1)[0] == 1
	case 8:
		return r.string()
	case 9:
		of, n := r.u32(), r.u64()
		all := make([]any, n)
		for i := range all {
			all[i] = r.value(of)
		}
		return all
	}
	r.t.Fatalf("at byte %d: type %d", r.n, of)
	return nil
}

type placed struct {
	dims   []int
	kind   uint32
	offset int
}

func read(t *testing.T, b []byte) (meta map[string]any, tensors map[string]placed, data []byte) {
	t.Helper()
	r := &reader{t: t, b: b}
	if magic, version := string(r.take(4)), r.u32(); magic != "GGUF" || version != 3 {
		t.Fatalf("magic %q, version %d", magic, version)
	}
	nt, np := r.u64(), r.u64()
	meta, tensors = map[string]any{}, map[string]placed{}
	for range np {
		key := r.string()
		meta[key] = r.value(r.u32())
	}
	for range nt {
		name := r.string()
		p := placed{dims: make([]int, r.u32())}
		for i := range p.dims {
			p.dims[i] = r.u64()
		}
		p.kind, p.offset = r.u32(), r.u64()
		tensors[name] = p
	}
	return meta, tensors, b[(r.n+31)/32*32:]
}

func TestFileReadsBack(t *testing.T) {
	s := tiny(3, q8_0)
	meta, tensors, data := read(t, write(t, s))
	for key, want := range map[string]any{
		"general.architecture": "llama", "general.file_type": uint32(7), "llama.embedding_length": uint32(64), "llama.block_count": uint32(2),
		"llama.attention.head_count": uint32(4), "llama.attention.head_count_kv": uint32(2), "llama.feed_forward_length": uint32(96),
		"llama.rope.dimension_count": uint32(16), "llama.context_length": uint32(128), "tokenizer.ggml.add_bos_token": true,
	} {
		if meta[key] != want {
			t.Errorf("%s = %v, want %v", key, meta[key], want)
		}
	}
	if got, want := len(tensors), 3+9*s.layers; got != want {
		t.Errorf("%d tensors, want %d", got, want)
	}
	for name, dims := range map[string][]int{
		"token_embd.weight": {64, 600}, "output.weight": {64, 600}, "output_norm.weight": {64}, "blk.0.attn_q.weight": {64, 64},
		"blk.1.attn_k.weight": {64, 32}, "blk.1.ffn_down.weight": {96, 64}, "blk.0.ffn_up.weight": {64, 96},
	} {
		if got := tensors[name].dims; !slices.Equal(got, dims) {
			t.Errorf("%s has the shape %v, want %v", name, got, dims)
		}
	}
	end := 0
	for name, p := range tensors {
		if p.offset%32 != 0 {
			t.Errorf("%s starts at %d, which is not aligned", name, p.offset)
		}
		n := 1
		for _, d := range p.dims {
			n *= d
		}
		size := n * 4
		if p.kind == 8 {
			size = n / 32 * 34
		}
		end = max(end, (p.offset+size+31)/32*32)
	}
	if end != len(data) {
		t.Errorf("the tensors end at %d, the data at %d", end, len(data))
	}
}

// The constant dimension is what keeps answers valid and as long as asked.
func TestOnlyTextCanBeWritten(t *testing.T) {
	s := tiny(4, f32)
	meta, tensors, data := read(t, write(t, s))
	types := meta["tokenizer.ggml.token_type"].([]any)
	at := func(name string, row int) float32 {
		p := tensors[name]
		return math.Float32frombits(binary.LittleEndian.Uint32(data[p.offset+4*row*p.dims[0]:]))
	}
	for token := range s.vocab {
		if got := at("token_embd.weight", token); got != 2 {
			t.Fatalf("embedding %d starts with %v", token, got)
		}
		if got, barred := at("output.weight", token), types[token] != uint32(textToken); (got < -50) != barred {
			t.Errorf("token %d of type %v has the weight %v", token, types[token], got)
		}
	}
	for _, name := range []string{"blk.0.attn_output.weight", "blk.1.attn_output.weight", "blk.0.ffn_down.weight", "blk.1.ffn_down.weight"} {
		p := tensors[name]
		if row := data[p.offset : p.offset+4*p.dims[0]]; !bytes.Equal(row, make([]byte, len(row))) {
			t.Errorf("%s writes to the constant dimension", name)
		}
	}
}

func TestVocabularyIsReachable(t *testing.T) {
	for _, n := range []int{smallestVocabulary, 512, 2048, 32000} {
		v := newVocabulary(n)
		if len(v.tokens) != n || len(v.scores) != n || len(v.types) != n {
			t.Fatalf("newVocabulary(%d) has %d tokens, %d scores, %d types", n, len(v.tokens), len(v.scores), len(v.types))
		}
		known := map[string]bool{}
		for i, token := range v.tokens {
			if known[token] {
				t.Errorf("of %d: token %q is there twice", n, token)
			}
			known[token] = true
			if v.types[i] != textToken {
				continue
			}
			if !utf8.ValidString(token) {
				t.Errorf("of %d: token %q is not UTF-8", n, token)
			}
			// Joining the token's last letter to what is before it must be possible.
			if word, ok := strings.CutPrefix(token, wordStart); ok && word != "" {
				if last := len(word) - 1; !known[wordStart+word[:last]] || !known[word[last:]] {
					t.Errorf("of %d: token %q cannot be reached by joining", n, token)
				}
			}
		}
	}
}

// value decodes a half-precision number by its definition.
func value(h uint16) float64 {
	sign := 1 - 2*float64(h>>15)
	exponent, fraction := int(h>>10&31), float64(h&1023)/1024
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -14)
	case 31:
		if fraction > 0 {
			return math.NaN()
		}
		return sign * math.Inf(1)
	}
	return sign * math.Ldexp(1+fraction, exponent-15)
}

func TestHalfIsNearest(t *testing.T) {
	for h := range uint16(0x7c00) { // every finite positive number, and the midpoint to the next
		for _, sign := range []uint16{0, 0x8000} {
			if got := half(float32(value(h | sign))); got != h|sign {
				t.Fatalf("half(%v) = %#04x, want %#04x", value(h|sign), got, h|sign)
			}
		}
		next := value(h + 1)
		if h+1 == 0x7c00 {
			next = 65536
		}
		middle := float32((value(h) + next) / 2)
		if got, want := half(middle), h+h&1; got != want {
			t.Fatalf("half(%v), between %#04x and the next, = %#04x, want %#04x", middle, h, got, want)
		}
		if got := half(math.Nextafter32(middle, 0)); got != h {
			t.Fatalf("half just under %v = %#04x, want %#04x", middle, got, h)
		}
	}
	if got := value(half(float32(math.NaN()))); !math.IsNaN(got) {
		t.Errorf("half(NaN) = %v", got)
	}
	if got := half(float32(math.Inf(-1))); got != 0xfc00 {
		t.Errorf("half(-Inf) = %#04x", got)
	}
}

func TestQ8StaysWithinHalfAStep(t *testing.T) {
	row := make([]float32, 3*blockLen)
	for i := range row[:2*blockLen] { // the third block is all zeros
		row[i] = float32(math.Sin(float64(i)) * float64(i))
	}
	var b bytes.Buffer
	e := &encoder{w: &b}
	e.q8(row)
	for i, want := range row {
		block := b.Bytes()[i/blockLen*(2+blockLen):]
		scale := value(binary.LittleEndian.Uint16(block))
		got := scale * float64(int8(block[2+i%blockLen]))
		// Half a step, and the scale itself is rounded to 11 bits.
		if bound := scale/2 + 127*scale*0x1p-11; math.Abs(got-float64(want)) > bound {
			t.Errorf("value %d: %v became %v, more than %v off", i, want, got, bound)
		}
	}
}

func TestBadFlags(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"", "want -o FILE.gguf and no other argument"},
		{"-o x.gguf y", "want -o FILE.gguf and no other argument"},
		{"-o x -type q4", `type "q4": want f32 or q8_0`},
		{"-o x -dim 0 -layers -1", "dim 0: want 32 to 16384\nlayers -1: want 1 to 256"},
		{"-o x -heads 6 -kv 3", "dim 256: want a multiple of 12, twice the heads"},
		{"-o x -kv 3", "heads 8: want a multiple of kv (3)"},
		{"-o x -ffn 100 -type q8_0", "dim 256, ffn 100: want multiples of 32 for q8_0"},
		{"-o x -vocab 10", fmt.Sprintf("vocab 10: want %d to 262144", smallestVocabulary)},
		{"-o x -sharp NaN", "sharp NaN: want a number above 0, up to 100"},
	} {
		var out bytes.Buffer
		err := run(strings.Fields(tc.args), &out, &out)
		if err == nil || err.Error() != tc.want {
			t.Errorf("mkgguf %s: %v, want %s", tc.args, err, tc.want)
		}
	}
}

func TestFileIsWholeOrAbsent(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "m.gguf")
	var out bytes.Buffer
	args := strings.Fields("-dim 64 -layers 1 -heads 4 -kv 2 -ffn 96 -vocab 400 -seed 5 -o")
	if err := run(append(args, name), &out, &out); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%s: 82112 parameters in 12 tensors, %d bytes\n", name, info.Size()); out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
	if err := run(append(args, filepath.Join(dir, "absent", "m.gguf")), &out, &out); err == nil {
		t.Error("a file in a folder that does not exist was written")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

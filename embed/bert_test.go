package embed

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// miniLM loads all-MiniLM-L6-v2.
func miniLM(t testing.TB) *Model {
	t.Helper()
	dir := os.Getenv("ASSAY_MODELS")
	if dir == "" {
		t.Skip("ASSAY_MODELS does not name the installed models: run make test-models")
	}
	m, err := Load(os.DirFS(filepath.Join(dir, "all-minilm-l6-v2")))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMiniLM holds tokens and vectors against another implementation:
// testdata/minilm.jsonl was computed with Hugging Face's tokenizers 0.23.3 and
// onnxruntime 1.32.0 on the ONNX form of the same weights (langchain4j 0.36.2), mean
// over the tokens, unit length. (Of 20,000 random texts 93 had other tokens, each with
// characters that Unicode assigned after the tables of one of the two.)
func TestMiniLM(t *testing.T) {
	m := miniLM(t)
	f, err := os.Open("testdata/minilm.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n, worst := 0, 0.0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var want struct {
			Text   string
			IDs    []int
			Vector []float64
		}
		if err := json.Unmarshal(lines.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		ids := slices.Concat([]int{m.tokens.begin}, m.tokens.encode(want.Text), []int{m.tokens.end})
		if !slices.Equal(ids, want.IDs) {
			t.Errorf("tokens of %q: %v, want %v", want.Text, ids, want.IDs)
			continue
		}
		if want.Vector == nil { // longer than a window
			continue
		}
		got, err := m.Embed(t.Context(), []string{want.Text})
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range want.Vector {
			worst = max(worst, math.Abs(float64(got[0][i])-x))
		}
		n++
	}
	t.Logf("%d texts, largest difference of a coordinate %.1g", n, worst)
	if n < 20 || worst > 1e-4 {
		t.Errorf("%d texts differ by up to %g; want 20 or more and at most 1e-4", n, worst)
	}
}

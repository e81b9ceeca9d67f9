package corpus

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestWordsHaveTheAskedLength(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int64{-1, 0, 1, 2, 8, 9, 17, 100, 12345} {
		text := Words(rng, n)
		if got, want := int64(len(strings.Fields(text))+strings.Count(text, ".")), max(0, n); got != want {
			t.Errorf("Words(%d) has %d words and full stops, want %d", n, got, want)
		}
		if text != strings.TrimSpace(text) || strings.Contains(text, "  ") {
			t.Errorf("Words(%d) has stray blanks", n)
		}
	}
}

func TestWordsAreDeterministic(t *testing.T) {
	// The digest pins the words themselves: a change of the list or of the
	// draws changes every synthetic prompt, and so every plan.
	sum := sha256.Sum256([]byte(Words(rand.New(rand.NewPCG(1, 2)), 1000)))
	if got, want := hex.EncodeToString(sum[:8]), "7e200135fa3d5618"; got != want {
		t.Errorf("digest of 1,000 words = %s, want %s", got, want)
	}
	b := AppendWords([]byte("x "), rand.New(rand.NewPCG(3, 4)), 50)
	if want := "x " + Words(rand.New(rand.NewPCG(3, 4)), 50); string(b) != want {
		t.Errorf("AppendWords = %q, want %q", b, want)
	}
}

func TestWordsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for i := range 1000 {
		text := Words(rand.New(rand.NewPCG(5, uint64(i))), 16)
		if seen[text] {
			t.Fatalf("text %d came twice: %q", i, text)
		}
		seen[text] = true
	}
	listed := map[string]bool{}
	for _, w := range words {
		if listed[w] {
			t.Errorf("the word %q is listed twice", w)
		}
		listed[w] = true
	}
}

func BenchmarkWords(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	var buf []byte
	for b.Loop() {
		buf = AppendWords(buf[:0], rng, 1000)
	}
	b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
}

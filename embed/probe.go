package embed

import (
	"context"
	"fmt"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/record"
)

// probes are the texts by which an embedder is known again: of several languages,
// lengths and kinds, since a new version may differ in one of them alone.
var probes = []string{
	"The refund was approved.", "The refund was not approved.", "How do I reset my password?", "A cat sits on the mat.",
	"func main() { fmt.Println(\"hello\") }", "3.14159", "2024-05-17T12:00:00Z", "SELECT name FROM users WHERE id = 7;",
	"今天天气很好，我们去公园。", "请取消我的订阅。", "Der Vertrag endet am Monatsende.", "Je voudrais réserver une table pour deux.",
	"Сегодня очень хорошая погода.", "こんにちは世界", "naïve café", "😀", "a", "ALL CAPITALS, AND PUNCTUATION!!!",
	"Photosynthesis turns light into chemical energy that plants store as sugar.",
	"If the package has not arrived within ten working days, contact support with your order number, and we will send it again or return the money.",
}

// SameCosine is how near each probe's vector must be to what it was.
const SameCosine = record.SameCosine

// Fingerprint is what an embedder makes of the probes.
type Fingerprint struct {
	Vectors [][]float32 `json:"vectors"`
}

// Probe asks an embedder for its fingerprint.
func Probe(ctx context.Context, e check.Embedder) (Fingerprint, error) {
	v, err := vectors(ctx, e, probes)
	return Fingerprint{v}, err
}

// Drift compares a fingerprint with an earlier one. The error names the text that moved
// most: scores of the two embedders are not comparable.
func (f Fingerprint) Drift(before Fingerprint) error {
	if len(f.Vectors) != len(before.Vectors) || len(f.Vectors) == 0 {
		return fmt.Errorf("a fingerprint of %d texts, and one of %d before: probe the embedder anew", len(f.Vectors), len(before.Vectors))
	}
	if a, b := len(f.Vectors[0]), len(before.Vectors[0]); a != b {
		return fmt.Errorf("the embedder has vectors of %d numbers, and had %d: it is another one", a, b)
	}
	least, at := 2.0, 0
	for i := range f.Vectors {
		if len(f.Vectors[i]) != len(before.Vectors[i]) {
			return fmt.Errorf("the vectors of %q have different lengths", probes[min(i, len(probes)-1)])
		}
		if c := Cosine(f.Vectors[i], before.Vectors[i]); c < least {
			least, at = c, i
		}
	}
	if least < SameCosine {
		return fmt.Errorf("the embedder has changed: %q has a cosine of %.4f with what it was, below %v", probes[min(at, len(probes)-1)], least, SameCosine)
	}
	return nil
}

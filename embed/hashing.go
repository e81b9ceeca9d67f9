package embed

import (
	"context"
	"hash/fnv"
	"math"
	"strings"
)

// Hashing is an embedder without weights: the counts of a text's character 3-grams
// and words, hashed into so many dimensions, damped by the square root and scaled to
// length 1. It sees wording and not meaning. 0 and less count as 512 dimensions.
type Hashing int

// Embed returns the vector of each text. It never fails but for its context.
func (h Hashing) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	n := int(h)
	if n <= 0 {
		n = 512
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v := make([]float32, n)
		for _, word := range strings.Fields(strings.ToLower(text)) {
			count(v, word)
			runes := []rune(" " + word + " ")
			for k := 0; k+3 <= len(runes); k++ {
				count(v, string(runes[k:k+3]))
			}
		}
		for k, x := range v {
			v[k] = float32(math.Copysign(math.Sqrt(math.Abs(float64(x))), float64(x)))
		}
		out[i] = unit(v)
	}
	return out, nil
}

// count adds a feature with a sign of its own, so that collisions cancel instead of
// adding up (Weinberger et al. 2009).
func count(v []float32, feature string) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(feature))
	sum := h.Sum64()
	sign := float32(1)
	if sum>>63 == 1 {
		sign = -1
	}
	v[sum%uint64(len(v))] += sign
}

package embed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/verify"
)

// Scale is what an embedder says of texts that have nothing to do with each other.
// The zero Scale takes cosines as they are.
type Scale struct {
	Mean  float64 `json:"mean"` // cosine of unrelated texts
	SD    float64 `json:"sd"`
	Pairs int     `json:"pairs"`
}

// The pairs that Calibrate wants, and those without which it refuses.
const (
	calibrationPairs = 500
	leastTexts       = 16
)

// Calibrate measures the cosine of unrelated texts: of pairs of different texts of
// one suite, drawn at random, 500 if there are so many. Texts of one suite share
// their subject, so they are nearer than any two texts would be; that is the scale
// on which answers to one question are to be read. Fewer than 16 different texts are
// refused.
func Calibrate(ctx context.Context, e check.Embedder, texts []string, rng *rand.Rand) (Scale, error) {
	seen := make(map[string]bool)
	var unique []string
	for _, t := range texts {
		if !seen[t] && t != "" {
			seen[t] = true
			unique = append(unique, t)
		}
	}
	if len(unique) < leastTexts {
		return Scale{}, fmt.Errorf("%d different texts are too few to tell how alike unrelated ones are: %d are needed", len(unique), leastTexts)
	}
	if most := 4 * calibrationPairs; len(unique) > most { // each pair wants two texts; more cost and add nothing
		rng.Shuffle(len(unique), func(i, j int) { unique[i], unique[j] = unique[j], unique[i] })
		unique = unique[:most]
	}
	v, err := vectors(ctx, e, unique)
	if err != nil {
		return Scale{}, err
	}
	var s Scale
	var squares float64
	for range min(calibrationPairs, len(unique)*(len(unique)-1)/2) {
		i := rng.IntN(len(v))
		j := rng.IntN(len(v) - 1)
		if j >= i {
			j++
		}
		c := Cosine(v[i], v[j])
		s.Pairs++
		d := c - s.Mean
		s.Mean += d / float64(s.Pairs)
		squares += d * (c - s.Mean)
	}
	s.SD = math.Sqrt(squares / float64(s.Pairs-1))
	if s.Mean > .99 {
		return s, fmt.Errorf("unrelated texts have a cosine of %.3f: this embedder tells nothing apart", s.Mean)
	}
	return s, nil
}

// Of puts a cosine on the scale: 0 is what unrelated texts have on average, 1 the
// same text. It may be below 0.
func (s Scale) Of(cosine float64) float64 { return (cosine - s.Mean) / (1 - s.Mean) }

// Match is how far two texts say the same, sentence by sentence: the precision is
// the mean over the sentences of the answer of their best match in the reference,
// the recall that over the sentences of the reference, each weighted by its
// characters and on the scale of the embedder; F is their harmonic mean, 0 if one
// of them is not above 0. It is built as BERTScore is (Zhang et al. 2020) with
// sentences for tokens, and is not comparable with it.
type Match struct{ Precision, Recall, F float64 }

// Score compares answers with references, pair by pair. ok is false for a pair with
// an empty text, which has no score.
func Score(ctx context.Context, e check.Embedder, scale Scale, answers, references []string) (matches []Match, ok []bool, err error) {
	if len(answers) != len(references) {
		return nil, nil, fmt.Errorf("%d answers and %d references: want a reference for each", len(answers), len(references))
	}
	index := make(map[string]int) // a sentence is embedded once
	var all []string
	split := func(text string) []int {
		var at []int
		for _, s := range verify.SplitSentences(text) {
			if _, ok := index[s]; !ok {
				index[s] = len(all)
				all = append(all, s)
			}
			at = append(at, index[s])
		}
		return at
	}
	a, r := make([][]int, len(answers)), make([][]int, len(answers))
	for i := range answers {
		a[i], r[i] = split(answers[i]), split(references[i])
	}
	v, err := vectors(ctx, e, all)
	if err != nil {
		return nil, nil, err
	}
	matches, ok = make([]Match, len(answers)), make([]bool, len(answers))
	for i := range answers {
		if len(a[i]) == 0 || len(r[i]) == 0 {
			continue
		}
		ok[i] = true
		m := Match{Precision: scale.Of(best(v, all, a[i], r[i])), Recall: scale.Of(best(v, all, r[i], a[i]))}
		if m.Precision > 0 && m.Recall > 0 {
			m.F = 2 * m.Precision * m.Recall / (m.Precision + m.Recall)
		}
		matches[i] = m
	}
	return matches, ok, nil
}

// best is the mean best cosine of the sentences of one text among those of another.
func best(v [][]float32, texts []string, of, among []int) float64 {
	var sum, weight float64
	for _, i := range of {
		most := -1.0
		for _, j := range among {
			most = max(most, Cosine(v[i], v[j]))
		}
		w := float64(len([]rune(texts[i])))
		sum += w * most
		weight += w
	}
	return sum / weight
}

// vectors asks for the vectors of texts, some at a time, and refuses what cannot be
// compared.
func vectors(ctx context.Context, e check.Embedder, texts []string) ([][]float32, error) {
	const batch = 64
	var out [][]float32
	for from := 0; from < len(texts); from += batch {
		part := texts[from:min(from+batch, len(texts))]
		v, err := e.Embed(ctx, part)
		if err != nil {
			return nil, fmt.Errorf("embedding %d texts: %w", len(part), err)
		}
		if len(v) != len(part) {
			return nil, fmt.Errorf("the embedder gave %d vectors for %d texts", len(v), len(part))
		}
		for _, x := range v {
			if err := sound(x, out); err != nil {
				return nil, err
			}
			out = append(out, x)
		}
	}
	return out, nil
}

func sound(x []float32, before [][]float32) error {
	if len(x) == 0 || len(before) > 0 && len(x) != len(before[0]) {
		return fmt.Errorf("the embedder gave a vector of %d numbers among others of another length", len(x))
	}
	var squares float64
	for _, v := range x {
		squares += float64(v) * float64(v)
	}
	if math.IsNaN(squares) || math.IsInf(squares, 0) {
		return errors.New("the embedder gave a vector with numbers that are none")
	}
	return nil
}

// Cosine is that of the angle between two vectors of one length; 0 if one is zero.
func Cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		dot += x * y
		aa += x * x
		bb += y * y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return max(-1, min(1, dot/math.Sqrt(aa*bb)))
}

// OverNorm divides a vector by a power of its length, as published for the
// calibration of retrieval: v/‖v‖^power, where 1 makes its length 1.
//
// It is here to be compared with. A cosine does not see it at all; only an index
// that ranks by dot products does, and only where the vectors of documents are
// divided: a query's own length changes no order. [Calibrate] makes scores of
// different embedders comparable.
func OverNorm(v []float32, power float64) []float32 {
	var squares float64
	for _, x := range v {
		squares += float64(x) * float64(x)
	}
	out := make([]float32, len(v))
	if squares == 0 {
		return out
	}
	by := math.Pow(squares, -power/2)
	for i, x := range v {
		out[i] = float32(float64(x) * by)
	}
	return out
}

package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
)

// Bounds of one batch: servers refuse more inputs or longer bodies.
const (
	batchTexts = 64
	batchBytes = 256 << 10
	maxLength  = 1 << 16 // numbers of one vector
)

// Embedder embeds with one endpoint of OpenAI's embeddings API. It is safe for
// concurrent use. Close it after use.
type Embedder struct {
	client *llm.Client
	epoch  time.Time
	number atomic.Int64
	name   string
}

// NewEmbedder returns an embedder of a target; it opens no connection yet.
func NewEmbedder(name string, t llm.Target) (*Embedder, error) {
	t.API, t.KeepText, t.MaxBody = llm.APIEmbeddings, -1, maxAnswer
	c, err := llm.NewClient(t)
	if err != nil {
		return nil, fmt.Errorf("embedding with %s: %w", name, err)
	}
	return &Embedder{client: c, epoch: time.Now(), name: name}, nil
}

// Close closes the connections.
func (e *Embedder) Close() error { return e.client.Close() }

// Embed returns a vector for each text. All have one length and finite numbers,
// and none is all zeros; else there is an error. An error of the endpoint is a
// *check.FailureError.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, 0, len(texts))
	for len(out) < len(texts) {
		vectors, err := e.batch(ctx, next(texts[len(out):]))
		if err != nil {
			return nil, err
		}
		if len(out) > 0 && len(vectors[0]) != len(out[0]) {
			return nil, fmt.Errorf("embedding with %s: vectors of %d and of %d numbers", e.name, len(out[0]), len(vectors[0]))
		}
		out = append(out, vectors...)
	}
	return out, nil
}

// next cuts the next batch off the texts: at least one.
func next(texts []string) []string {
	n, size := 0, 0
	for n < len(texts) && n < batchTexts && (n == 0 || size+len(texts[n]) <= batchBytes) {
		size += len(texts[n])
		n++
	}
	return texts[:n]
}

func (e *Embedder) batch(ctx context.Context, texts []string) ([][]float32, error) {
	req := &llm.Request{KeepBody: true, Extra: map[string]any{"encoding_format": "float"}}
	for _, s := range texts {
		req.Messages = append(req.Messages, corpus.Message{Content: s})
	}
	rec := record.Record{Variant: e.name, Workload: "check", Shot: e.number.Add(1)}
	got := e.client.Do(ctx, e.epoch, req, &rec)
	switch {
	case ctx.Err() != nil && rec.Outcome.Group() == record.GroupDropped:
		return nil, context.Cause(ctx)
	case rec.Outcome != record.OK:
		return nil, &check.FailureError{Endpoint: e.name, Outcome: rec.Outcome, Status: rec.Status, Detail: rec.Detail}
	}
	vectors, err := readVectors(got.Body, len(texts))
	if err != nil {
		return nil, fmt.Errorf("embedding with %s: %w", e.name, err)
	}
	return vectors, nil
}

// readVectors reads n vectors, in the order of their indices.
func readVectors(data []byte, n int) ([][]float32, error) {
	var b struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, errors.New("the answer has not the shape of OpenAI's API, with vectors of numbers")
	}
	if len(b.Data) != n {
		return nil, fmt.Errorf("%d vectors for %d texts", len(b.Data), n)
	}
	out := make([][]float32, n)
	for _, d := range b.Data {
		switch {
		case d.Index < 0 || d.Index >= n || out[d.Index] != nil:
			return nil, fmt.Errorf("the index %d is not one of %d different ones", d.Index, n)
		case len(d.Embedding) == 0 || len(d.Embedding) > maxLength:
			return nil, fmt.Errorf("a vector of %d numbers", len(d.Embedding))
		case len(d.Embedding) != len(b.Data[0].Embedding):
			return nil, fmt.Errorf("vectors of %d and of %d numbers", len(b.Data[0].Embedding), len(d.Embedding))
		case !useful(d.Embedding):
			return nil, errors.New("a vector without direction: all its numbers are 0")
		}
		out[d.Index] = d.Embedding
	}
	return out, nil
}

// useful reports whether a vector has a direction. JSON has no NaN and no
// infinity, and float32 is refused by its decoder beyond its range.
func useful(v []float32) bool {
	var sum float64
	for _, x := range v {
		sum += math.Abs(float64(x))
	}
	return sum > 0
}

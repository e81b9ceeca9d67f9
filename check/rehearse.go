package check

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/assay-llm/assay/record"
)

// mostSampled bounds the questions of one check and endpoint that are kept from a
// rehearsal.
const mostSampled = 64

// rehearsed is what one check asked of one endpoint in a rehearsal.
type rehearsed struct {
	check  string
	peer   string // name of the endpoint
	asked  map[string]bool
	bytes  int64      // of all prompts
	limits int64      // of output tokens, of all
	sample []Question // drawn by their keys, so that variants share them
	keys   []string   // of the sample, ascending
}

// size is the number of different questions.
func (h *rehearsed) size() int { return len(h.asked) }

// rehearsal runs checks on answers that are made up, to learn what they would ask.
type rehearsal struct {
	seed uint64

	mu    sync.Mutex
	now   string // the check that is running
	parts []*rehearsed
}

// rehearse runs all checks on made-up answers. Nothing is sent, and nothing that
// they find is kept.
func rehearse(ctx context.Context, c Config) (*rehearsal, error) {
	h := &rehearsal{seed: c.Seed}
	c.Memory, c.Private, c.Keep, c.Progress, c.Budget, c.Retries = nil, nil, nil, nil, Budget{}, -1
	c.Variants, c.Checks = slices.Clone(c.Variants), slices.Clone(c.Checks)
	for i := range c.Variants {
		v := &c.Variants[i]
		v.Asker = &understudy{h, variantName(*v)}
	}
	c.Judge = func(e Endpoint) (Asker, error) { return &understudy{h, e.Name()}, nil }
	c.Embedder = func(Endpoint) (Embedder, error) { return madeVectors{}, nil }
	for i := range c.Checks {
		c.Checks[i].Busy = false // what is asked under load must be asked then
		d := *c.Checks[i].Check
		run := d.Run
		d.Run = func(ctx context.Context, p *Pass) error {
			h.mu.Lock()
			h.now = d.Name
			h.mu.Unlock()
			return run(ctx, p)
		}
		c.Checks[i].Check = &d
	}
	r := newRunner(c)
	r.rehearsal = true
	_, err := r.all(ctx)
	return h, err
}

// part is what the running check asks of an endpoint.
func (h *rehearsal) part(peer string) *rehearsed {
	for _, p := range h.parts {
		if p.check == h.now && p.peer == peer {
			return p
		}
	}
	p := &rehearsed{check: h.now, peer: peer, asked: make(map[string]bool)}
	h.parts = append(h.parts, p)
	return p
}

// enter notes a question.
func (h *rehearsal) enter(peer string, q *Question) {
	key := Key("", q) // without the endpoint: the same for all variants
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.part(peer)
	if p.asked[key] {
		return
	}
	p.asked[key] = true
	p.bytes += q.bytes()
	p.limits += q.MaxTokens
	rank := h.rank(key)
	at, _ := slices.BinarySearch(p.keys, rank)
	if at >= mostSampled {
		return
	}
	p.keys = slices.Insert(p.keys, at, rank)
	p.sample = slices.Insert(p.sample, at, *q)
	if len(p.keys) > mostSampled {
		p.keys, p.sample = p.keys[:mostSampled], p.sample[:mostSampled]
	}
}

// rank orders questions as if at random, but the same for all endpoints.
func (h *rehearsal) rank(key string) string {
	b := binary.LittleEndian.AppendUint64([]byte("rehearsal"), h.seed)
	sum := sha256.Sum256(append(b, key...))
	return string(sum[:8])
}

// understudy answers in place of an endpoint, at once and nothing to the point.
type understudy struct {
	h    *rehearsal
	peer string
}

// Ask notes the question.
func (u *understudy) Ask(ctx context.Context, q *Question) (*Answer, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	u.h.enter(u.peer, q)
	sum := sha256.Sum256([]byte(Key(u.peer, q)))
	text := fmt.Sprintf("It is not known here; see note %d of section %d.", sum[0], sum[1])
	if len(q.Schema) > 0 {
		text = "{}"
	}
	a := &Answer{
		Outcome: record.OK, Status: 200, Text: text, Finish: "stop",
		Prompt: record.Tokens((q.bytes() + 3) / 4), Output: record.Tokens(int64(len(text)+3) / 4),
	}
	if q.TopLogprobs > 0 { // a check that is given none would ask otherwise
		a.Tokens = []Token{{Text: "A", Top: []Alternative{{Text: "A"}}}}
	}
	return a, nil
}

// madeVectors embeds by counting letters: good enough to go on.
type madeVectors struct{}

// Embed returns one vector for each text.
func (madeVectors) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		v := make([]float32, 32)
		v[0] = 1
		for _, r := range strings.ToLower(text) {
			v[r%32]++
		}
		out[i] = v
	}
	return out, nil
}

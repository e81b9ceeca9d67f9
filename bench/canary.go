package bench

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/assay-llm/assay/corpus"
	metrics "github.com/assay-llm/assay/engine"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
)

// canaryTokens is the length of a canary: eight blocks and a part of one, of the
// largest blocks that engines use by default.
const canaryTokens = 8*64 + 33

// empty has the engine empty its prefix cache, if the suite says so, and proves
// with a canary that it did. What came of it is in the manifest, and among the notes.
func (r *run) empty(ctx context.Context, v *variant, workload string) {
	switch {
	case !v.spec.ResetCache:
		return
	case v.engine.source == nil:
		r.note("the prefix cache of %s is as it was: its engine is not known, since it shows no metrics", v.name)
		return
	case !v.engine.source.CanReset():
		r.note("the prefix cache of %s is as it was: its engine, %s, cannot empty it on request", v.name, v.engine.source.Engine())
		return
	}
	// A nonce begins the canary, so that no block of it can be in a cache. It is not of
	// the plan, and its records are not kept.
	text := freshSalt() + " " + corpus.Words(rand.New(rand.NewPCG(rand.Uint64(), 0)), canaryTokens)
	p := record.CacheProof{Variant: v.name, Workload: workload}
	p.First = r.canary(ctx, v, text)
	p.Again = r.canary(ctx, v, text)
	said, ok := v.engine.source.ResetCache(ctx)
	p.Said = said
	p.After = r.canary(ctx, v, text)
	metrics.Judge(&p)
	if !ok && p.State == metrics.Cold { // whatever emptied it, it was not asked to
		p.State, p.Why = metrics.Unknown, "the engine did not take the request to empty it"
	}
	r.manifest.Caches = append(r.manifest.Caches, p)
	state := map[string]string{metrics.Cold: "proven cold", metrics.Warm: "NOT COLD", metrics.Unknown: "not proven cold"}[p.State]
	r.note("prefix cache of %s before %s: %s: %s; %s", v.name, workload, state, said, p.Why)
	if p.State != metrics.Cold {
		r.opts.Notice("prefix cache of %s before %s: %s", v.name, workload, state)
	}
}

// canary sends the text once, with nothing beside it, and says what came from the cache.
func (r *run) canary(ctx context.Context, v *variant, text string) (p record.CacheProbe) {
	var rec record.Record
	span := v.engine.source.During(ctx, r.epoch, time.Hour, func() {
		v.client.Do(ctx, r.epoch, &llm.Request{Prompt: text, MaxTokens: 1, Stream: true}, &rec)
	})
	if p.Outcome = rec.Outcome; !rec.Success() {
		return p
	}
	p.Prompt, p.Cached = rec.Prompt, rec.Cached
	if hits, ok := metrics.Between(span).Values["prefix_hit_tokens"]; ok {
		p.Counted = record.Tokens(int64(hits))
	}
	if first := rec.First(); first != nil {
		if ttft, ok := first.At.Sub(rec.Send); ok {
			p.TTFT = record.Tokens(int64(ttft))
		}
	}
	return p
}

package sim

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// catchUp is how late a driver may call Step without slowing the engine: the
// next step then begins at the end of the last one. A driver later than that was
// stopped, and the engine with it: its next step begins when it is called.
const catchUp = 20 * time.Millisecond

// glance is how long after an arrival an idle engine looks at its queue. A step
// takes in what arrived before it began and nothing that arrives as it begins,
// so that what happens does not depend on which of two equal instants a driver
// handles first.
const glance = time.Nanosecond

// ErrQueueFull refuses a request because the queue has reached its limit.
var ErrQueueFull = errors.New("the queue is full")

// Request is one request to the engine.
type Request struct {
	Prompt    []Token // at least one; owned by the engine after Submit
	MaxTokens int64   // output tokens to generate; at least 1
	StopAfter int64   // ends with FinishStop after this many tokens; 0: only the limit ends it
	Priority  int64   // lower is admitted sooner, if the configuration schedules by priority
	Draw      uint64  // what the text is drawn from; equal draws give equal texts
}

// Finish says why a sequence ended, in the words of the protocol.
type Finish string

// The ways to end. The zero Finish has not ended.
const (
	FinishLength Finish = "length"
	FinishStop   Finish = "stop"
)

// Handle names a request within its engine.
type Handle uint64

// Emission is one generated token.
type Emission struct {
	Request Handle
	At      time.Duration // when the token left: the end of its step, and later by the share of Config.TTFT
	Index   int64         // of the token in the answer, from 0
	Text    string
	Finish  Finish        // set on the last token
	Cached  int64         // prompt tokens that came from the prefix cache when the request was first scheduled
	Queued  time.Duration // from arrival to the start of the step that first scheduled it
}

// Stats is the engine's state and what it has counted since it was made. Prompt
// and Generated count tokens as vLLM does: a prompt when its request gives the
// first token.
type Stats struct {
	Running, Waiting        int
	BlocksUsed, BlocksTotal int

	Steps, StepTokens            int64 // steps ended; tokens they computed
	Prompt, Cached, Generated    int64 // tokens
	PrefixQueries, PrefixHits    int64 // tokens looked up in the prefix cache, and found
	Preemptions                  int64
	Submitted, Finished, Cancels int64 // requests
}

// Engine is the step loop of an inference engine as a pure machine: it knows
// times only as offsets that its driver passes in, which must not go backwards
// (an earlier one is taken as the latest). Each step takes one token of every
// sequence that decodes, then parts of prompts in the order of arrival, until the
// token budget is spent. Make one with NewEngine. Not safe for concurrent use.
type Engine struct {
	p    params
	kv   *pool
	now  time.Duration
	last Handle

	live    map[Handle]*sequence
	waiting []*sequence
	running []*sequence // in the order in which they were scheduled

	stepping bool
	end      time.Duration // of the step under way
	step     load

	delayed delayed // emissions that leave later than their step (Config.TTFT)
	out     []Emission
	stats   Stats
	onStep  func(l load) // nil, or called at the end of each step
}

type sequence struct {
	handle    Handle
	request   Request
	arrival   time.Duration
	generated int64
	computed  int64 // tokens whose keys and values are in the cache
	planned   int64 // tokens of the step under way
	cached    int64
	started   bool // has been scheduled once
	queued    time.Duration
	cancelled bool
	rank      int64         // lower is admitted sooner; 0 for all unless by priority
	delay     time.Duration // of every emission, set at the first

	state  uint64   // of the hash chain over all tokens so far
	chain  []uint64 // its value at the end of each full block
	tokens int64    // prompt and generated
	blocks []int32
	sealed int // blocks that carry their name
}

// NewEngine returns an engine, or every fault of the configuration.
func NewEngine(c Config) (*Engine, error) {
	p, err := c.params()
	if err != nil {
		return nil, fmt.Errorf("configuring the simulated engine: %w", err)
	}
	return newEngine(p), nil
}

func newEngine(p params) *Engine {
	return &Engine{p: p, kv: newPool(p.blocks, p.prefixCache), live: map[Handle]*sequence{}}
}

// Submit queues a request that arrives now. It refuses one that can never run,
// and with ErrQueueFull one that finds the queue at its limit.
func (e *Engine) Submit(r Request, now time.Duration) (Handle, error) {
	e.now = max(e.now, now)
	total := int64(len(r.Prompt)) + r.MaxTokens
	switch {
	case len(r.Prompt) == 0:
		return 0, errors.New("the prompt is empty")
	case r.MaxTokens < 1:
		return 0, fmt.Errorf("max_tokens is %d; at least 1 is needed", r.MaxTokens)
	case r.MaxTokens > e.p.context || total > e.p.context:
		return 0, fmt.Errorf("the context holds %d tokens, but the prompt has %d and %d are asked for", e.p.context, len(r.Prompt), r.MaxTokens)
	case len(e.waiting) >= e.p.queue:
		return 0, ErrQueueFull
	}
	e.last++
	s := &sequence{handle: e.last, request: r, arrival: e.now}
	for _, t := range r.Prompt {
		e.extend(s, t)
	}
	s.request.Prompt = nil // its hashes are all that is needed
	e.live[s.handle] = s
	if e.p.byPriority {
		s.rank = r.Priority
	}
	e.enqueue(s, false)
	e.stats.Submitted++
	return s.handle, nil
}

// enqueue puts a sequence into the queue: before those of a higher rank, behind
// those of a lower one; in front of or behind its equals.
func (e *Engine) enqueue(s *sequence, front bool) {
	i := len(e.waiting)
	for i > 0 && (e.waiting[i-1].rank > s.rank || front && e.waiting[i-1].rank == s.rank) {
		i--
	}
	e.waiting = slices.Insert(e.waiting, i, s)
}

// candidate returns the place in the queue of the next sequence to admit to a step
// that starts then; −1: none had arrived before.
func (e *Engine) candidate(start time.Duration) int {
	if !e.p.byPriority {
		if len(e.waiting) > 0 && e.waiting[0].arrival < start {
			return 0
		}
		return -1
	}
	return slices.IndexFunc(e.waiting, func(s *sequence) bool { return s.arrival < start })
}

// promptLen follows from the token counts, since the prompt itself is not kept.
func (s *sequence) promptLen() int64 { return s.tokens - s.generated }

func (e *Engine) extend(s *sequence, t Token) {
	s.state = mix(s.state, uint64(t))
	s.tokens++
	if s.tokens%e.p.blockTokens == 0 {
		s.chain = append(s.chain, max(s.state, 1)) // 0 means no name
	}
}

// Cancel ends a request whose client has left; it emits nothing more. Its blocks
// are free at the end of the step under way. It reports whether the request was
// still live.
func (e *Engine) Cancel(h Handle) bool {
	s := e.live[h]
	if s == nil {
		return false
	}
	delete(e.live, h)
	e.stats.Cancels++
	s.cancelled = true
	if i := slices.Index(e.waiting, s); i >= 0 {
		e.waiting = slices.Delete(e.waiting, i, i+1)
	} else if !e.stepping {
		e.sweep()
	}
	return true
}

// Next returns when Step should be called next; ok is false while there is
// nothing to do until the next Submit.
func (e *Engine) Next() (at time.Duration, ok bool) {
	switch {
	case e.stepping:
		at, ok = e.end, true
	case len(e.waiting) > 0:
		oldest := e.waiting[0]
		if e.p.byPriority {
			oldest = slices.MinFunc(e.waiting, func(a, b *sequence) int { return cmp.Compare(a.arrival, b.arrival) })
		}
		at, ok = oldest.arrival+glance, true
	}
	if len(e.delayed) > 0 && (!ok || e.delayed[0].At < at) {
		at, ok = e.delayed[0].At, true
	}
	return at, ok
}

// Step brings the engine to the given time and returns the tokens that have left
// by then, in order of time. The slice is valid until the next call.
func (e *Engine) Step(now time.Duration) []Emission {
	e.now = max(e.now, now)
	e.out = e.out[:0]
	for e.stepping && e.end <= e.now {
		e.release(e.end)
		e.finish()
		start := e.end
		if e.now-e.end > catchUp {
			start = e.now
		}
		e.begin(start)
	}
	if !e.stepping {
		e.begin(e.now)
	}
	e.release(e.now)
	return e.out
}

// Stats returns the engine's state and counters.
func (e *Engine) Stats() Stats {
	s := e.stats
	s.Running, s.Waiting = len(e.running), len(e.waiting)
	s.BlocksUsed, s.BlocksTotal = e.kv.used(), len(e.kv.blocks)
	return s
}

// ResetPrefixCache forgets what is cached, as vLLM's /reset_prefix_cache does.
func (e *Engine) ResetPrefixCache() { e.kv.clear() }

// begin schedules a step that starts at the given time, if there is work.
func (e *Engine) begin(start time.Duration) {
	budget := e.p.budget
	preempted := false
	var all, decode load
	for i := 0; i < len(e.running) && budget > 0; i++ {
		s := e.running[i]
		n := min(s.tokens-s.computed, budget)
		grown := e.grow(s, n)
		for !grown && i < len(e.running) {
			preempted = true
			e.preempt()
			grown = i < len(e.running) && e.grow(s, n)
		}
		if grown {
			budget -= e.plan(s, n, &all, &decode)
		}
	}
	for !preempted && budget > 0 && len(e.running) < e.p.sequences {
		k := e.candidate(start)
		if k < 0 || !e.admit(e.waiting[k], budget, start) {
			break
		}
		s := e.waiting[k]
		if k == 0 {
			e.waiting = e.waiting[1:]
		} else {
			e.waiting = slices.Delete(e.waiting, k, k+1)
		}
		e.running = append(e.running, s)
		budget -= e.plan(s, min(s.tokens-s.computed, budget), &all, &decode)
	}
	if all.tokens == 0 {
		return
	}
	e.step = all
	e.stepping = true
	e.end = start + e.stepTime(all, decode)
}

// plan enters a sequence into the step.
func (e *Engine) plan(s *sequence, n int64, all, decode *load) int64 {
	s.planned = n
	if s.generated > 0 && s.computed+n == s.tokens && n == 1 {
		all.decodes++
		decode.decodes++
		decode.sampled++
		decode.addChunk(n, s.computed)
	} else {
		all.prefills++
	}
	if s.computed+n == s.tokens {
		all.sampled++
	}
	all.addChunk(n, s.computed)
	return n
}

// stepTime splits the step into what decoding alone would take and what the
// prompts add, so that each part can be made slower on its own.
func (e *Engine) stepTime(all, decode load) time.Duration {
	alone := 0.0
	if decode.decodes > 0 {
		alone = e.p.model.seconds(decode)
	}
	seconds := alone*e.p.decodeFactor + max(0, e.p.model.seconds(all)-alone)*e.p.prefillFactor
	if e.p.jitter > 0 {
		z := normal(e.p.seed, uint64(e.stats.Steps))
		seconds *= math.Exp(e.p.jitter*z - e.p.jitter*e.p.jitter/2) // mean 1
	}
	return seconds64(seconds)
}

// normal draws the jitter of a step. Folded in once, numbers that follow each other
// would give draws that do so, too.
func normal(seed, step uint64) float64 {
	return math.Sqrt2 * math.Erfinv(2*uniform(mix(mix(seed^0x6a6974746572, step), step))-1)
}

// grow gives a running sequence the blocks for n more tokens.
func (e *Engine) grow(s *sequence, n int64) bool {
	need := e.blocksFor(s.computed+n) - len(s.blocks)
	if need > 0 {
		blocks, ok := e.kv.take(s.blocks, nil, need)
		if !ok {
			return false
		}
		s.blocks = blocks
	}
	e.seal(s, s.computed+n)
	return true
}

func (e *Engine) blocksFor(tokens int64) int {
	return int((tokens + e.p.blockTokens - 1) / e.p.blockTokens)
}

// admit looks a sequence up in the prefix cache and gives it blocks for its
// first chunk. At least the last token is always computed, since its output is
// what the next token is sampled from.
func (e *Engine) admit(s *sequence, budget int64, start time.Duration) bool {
	usable := s.chain[:min(int64(len(s.chain)), (s.tokens-1)/e.p.blockTokens)]
	hit := e.kv.cached(usable)
	computed := int64(hit) * e.p.blockTokens
	n := min(s.tokens-computed, budget)
	blocks, ok := e.kv.take(s.blocks, usable[:hit], e.blocksFor(computed+n)-hit)
	if !ok {
		return false
	}
	s.blocks, s.computed, s.sealed = blocks, computed, hit
	if !s.started {
		s.started = true
		s.cached, s.queued = computed, start-s.arrival
		if e.p.prefixCache {
			e.stats.PrefixQueries += s.tokens
			e.stats.PrefixHits += computed
		}
	}
	e.seal(s, computed+n)
	return true
}

// seal names the blocks that will be full once `computed` tokens are.
func (e *Engine) seal(s *sequence, computed int64) {
	for full := int(computed / e.p.blockTokens); s.sealed < full; s.sealed++ {
		e.kv.seal(s.blocks[s.sealed], s.chain[s.sealed])
	}
}

// preempt sends the youngest running sequence back to the head of the queue, or of
// those of its priority. It
// will be computed again, prompt and output.
func (e *Engine) preempt() {
	s := e.running[len(e.running)-1]
	e.running = e.running[:len(e.running)-1]
	e.free(s)
	e.enqueue(s, true)
	e.stats.Preemptions++
}

func (e *Engine) free(s *sequence) {
	e.kv.release(s.blocks)
	s.blocks, s.computed, s.planned, s.sealed = s.blocks[:0], 0, 0, 0
}

// finish ends the step under way.
func (e *Engine) finish() {
	e.stepping = false
	e.stats.Steps++
	e.stats.StepTokens += e.step.tokens
	if e.onStep != nil {
		e.onStep(e.step)
	}
	for _, s := range e.running {
		s.computed += s.planned
		sample := s.planned > 0 && s.computed == s.tokens && !s.cancelled
		s.planned = 0
		if sample {
			e.sample(s)
		}
	}
	e.sweep()
}

// sample generates the next token of a sequence.
func (e *Engine) sample(s *sequence) {
	text, id := wordAt(s.request.Draw, s.generated)
	if s.generated == 0 {
		e.stats.Prompt += s.promptLen()
		e.stats.Cached += s.cached
		s.delay = time.Duration(float64(e.end-s.arrival) * e.p.firstDelay)
	}
	em := Emission{Request: s.handle, At: e.end + s.delay, Index: s.generated, Text: text, Cached: s.cached, Queued: s.queued}
	e.extend(s, id)
	s.generated++
	e.stats.Generated++
	switch s.generated {
	case s.request.StopAfter:
		em.Finish = FinishStop
	case s.request.MaxTokens:
		em.Finish = FinishLength
	}
	if s.delay > 0 {
		heap.Push(&e.delayed, em)
	} else {
		e.emit(em)
	}
}

func (e *Engine) emit(em Emission) {
	s := e.live[em.Request]
	if s == nil { // cancelled
		return
	}
	if em.Finish != "" {
		delete(e.live, em.Request)
		e.stats.Finished++
	}
	e.out = append(e.out, em)
}

// release emits what was delayed and has left by the given time.
func (e *Engine) release(until time.Duration) {
	for len(e.delayed) > 0 && e.delayed[0].At <= until {
		e.emit(heap.Pop(&e.delayed).(Emission))
	}
}

// sweep takes sequences that have ended out of the batch.
func (e *Engine) sweep() {
	kept := e.running[:0]
	for _, s := range e.running {
		ended := s.generated == s.request.MaxTokens || s.request.StopAfter > 0 && s.generated == s.request.StopAfter
		if ended || s.cancelled {
			e.free(s)
		} else {
			kept = append(kept, s)
		}
	}
	clear(e.running[len(kept):])
	e.running = kept
}

// delayed is a heap of emissions by time, then by order of generation.
type delayed []Emission

func (d delayed) Len() int { return len(d) }
func (d delayed) Less(i, j int) bool {
	a, b := &d[i], &d[j]
	if a.At != b.At {
		return a.At < b.At
	}
	if a.Request != b.Request {
		return a.Request < b.Request
	}
	return a.Index < b.Index
}
func (d delayed) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *delayed) Push(x any)   { *d = append(*d, x.(Emission)) }
func (d *delayed) Pop() any {
	old := *d
	x := old[len(old)-1]
	*d = old[:len(old)-1]
	return x
}

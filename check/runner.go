package check

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/assay-llm/assay/record"
)

// The defaults of Config.
const (
	defaultPerEndpoint = 8
	defaultOverall     = 32
	defaultRetries     = 2
	defaultBackoff     = time.Second
	longestBackoff     = 30 * time.Second
)

// mostInRow is how many questions in a row an endpoint may leave unanswered, all
// their tries included, before it is asked no more.
const mostInRow = 10

// runner is one call of Run.
type runner struct {
	c         Config
	done      map[string]*Outcome // by check; written between checks only
	peers     map[string]*peer    // by the name of the endpoint
	slots     chan struct{}       // questions under way
	rehearsal bool                // answers are made up

	mu      sync.Mutex
	at      Progress
	spent   Spending
	flights map[string]*flight // questions under way, by key
	paid    map[string]bool    // keys of the answers that this run counts as spent
	err     error              // why answers are not kept
}

// peer is one endpoint.
type peer struct {
	name     string // identity, for keys and bills
	asker    Asker
	embedder Embedder
	price    Price
	slots    chan struct{}

	mu    sync.Mutex
	inRow int // questions without an answer since the last one with
}

func newRunner(c Config) *runner {
	c.PerEndpoint = cmp.Or(c.PerEndpoint, defaultPerEndpoint)
	c.Overall = cmp.Or(c.Overall, defaultOverall)
	c.Retries = cmp.Or(c.Retries, defaultRetries)
	c.Backoff = cmp.Or(c.Backoff, defaultBackoff)
	r := &runner{
		c: c, done: make(map[string]*Outcome), peers: make(map[string]*peer),
		slots: make(chan struct{}, c.Overall), flights: make(map[string]*flight), paid: make(map[string]bool),
	}
	if c.Memory == nil {
		r.c.Memory = Held()
	}
	if c.Private == nil {
		r.c.Private = Held()
	}
	for _, v := range c.Variants {
		r.peers[variantName(v)] = &peer{name: variantName(v), asker: v.Asker, price: v.Price, slots: make(chan struct{}, c.PerEndpoint)}
	}
	for _, d := range c.Checks {
		for _, e := range Endpoints(d.Config) {
			if r.peers[e.Name()] == nil {
				r.peers[e.Name()] = &peer{name: e.Name(), price: e.Price, slots: make(chan struct{}, c.PerEndpoint)}
			}
		}
	}
	return r
}

// variantName identifies a variant. Its name is part of it: two variants of one
// server are asked separately, since their difference is what is looked for.
func variantName(v Variant) string { return fmt.Sprintf("variant %s (%s)", v.Name, v.Model) }

// workers is how many shots are under way at a time.
func (r *runner) workers() int {
	return min(r.c.Overall, r.c.PerEndpoint*max(len(r.c.Variants), 1))
}

func (r *runner) pass(d Declared) *Pass {
	p := &Pass{
		Config: d.Config, Seed: r.c.Seed, Salt: r.c.Salt, Rehearsal: r.rehearsal, check: d.Check, run: r, bill: &bill{by: make(map[string]*Spending)},
		declared: make(map[string]Value), signs: make(map[string]Signature), used: make(map[string]bool), judges: make(map[string]bool),
	}
	for _, v := range r.c.Variants {
		p.Variants = append(p.Variants, &Subject{
			Name: v.Name, Model: v.Model, Can: v.Can,
			Asker: &asker{run: r, peer: r.peers[variantName(v)], bill: p.bill},
		})
	}
	return p
}

// peer returns an endpoint to ask, connected to at its first use.
func (r *runner) peer(e Endpoint) (*peer, error) {
	return r.connected(e, "judges", r.c.Judge == nil, func(p *peer) error {
		if p.asker != nil {
			return nil
		}
		a, err := r.c.Judge(e)
		if err == nil {
			p.asker = a
		}
		return err
	})
}

// embedder returns an endpoint that embeds, connected to at its first use.
func (r *runner) embedder(e Endpoint) (*peer, error) {
	return r.connected(e, "embedders", r.c.Embedder == nil, func(p *peer) error {
		if p.embedder != nil {
			return nil
		}
		a, err := r.c.Embedder(e)
		if err == nil {
			p.embedder = a
		}
		return err
	})
}

// connected returns an endpoint that a configuration names after connect was called
// with it.
func (r *runner) connected(e Endpoint, kind string, none bool, connect func(*peer) error) (*peer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.peers[e.Name()]
	switch {
	case p == nil:
		return nil, fmt.Errorf("the configuration does not name %s", e.Name())
	case none:
		return nil, fmt.Errorf("%s cannot be asked: nobody connects to %s here", e.Name(), kind)
	}
	if err := connect(p); err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", e.Name(), err)
	}
	return p, nil
}

func (r *runner) progress(at Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at.Index, at.Of, at.Spent = r.at.Index, r.at.Of, r.spent
	if r.c.Progress != nil {
		r.c.Progress(at)
	}
}

func (r *runner) keep(digest, text string) {
	if r.c.Keep != nil {
		r.c.Keep(digest, text)
	}
}

func (r *runner) broken() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// charge adds to what was spent.
func (r *runner) charge(p *peer, b *bill, s Spending) {
	r.mu.Lock()
	r.spent.add(s)
	r.mu.Unlock()
	b.add(p.name, s)
}

// afford returns an error if nothing more may be spent.
func (r *runner) afford() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.c.Budget.over(r.spent) {
		return &BudgetError{r.c.Budget, r.spent}
	}
	return nil
}

// flight is one question under way.
type flight struct {
	done   chan struct{} // closed when answer is there, or err
	answer *Answer
	err    error
}

// asker asks one endpoint on behalf of one check.
type asker struct {
	run  *runner
	peer *peer
	bill *bill
}

// Ask answers from memory, or asks. Of several that ask the same at a time one
// does, and the others wait for its answer.
func (a *asker) Ask(ctx context.Context, q *Question) (*Answer, error) {
	key := Key(a.peer.name, q)
	for {
		f, mine := a.run.flight(key)
		if mine {
			f.answer, f.err = a.first(ctx, key, q)
			a.run.land(key, f)
			return f.answer, f.err
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if f.err == nil {
			a.run.charge(a.peer, a.bill, Spending{Reused: 1})
			return f.answer, nil
		}
	}
}

// flight returns the question of that key, and whether it is the caller's to ask.
func (r *runner) flight(key string) (f *flight, mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f = r.flights[key]; f != nil {
		return f, false
	}
	f = &flight{done: make(chan struct{})}
	r.flights[key] = f
	return f, true
}

func (r *runner) land(key string, f *flight) {
	r.mu.Lock()
	delete(r.flights, key)
	r.mu.Unlock()
	close(f.done)
}

// first answers a question that nobody else is asking. What an earlier process
// of the run paid for counts as spent, as if it had been asked now.
func (a *asker) first(ctx context.Context, key string, q *Question) (*Answer, error) {
	answer, err := a.run.recall(key, q.Private)
	if err != nil {
		return nil, err
	}
	if answer != nil {
		a.pay(key, q, answer)
		return answer, nil
	}
	free, err := a.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer free()
	if answer, err = a.try(ctx, q); err != nil {
		return nil, err
	}
	if err := a.run.save(key, a.peer.name, answer, q.Private); err != nil {
		return nil, err
	}
	a.pay(key, q, answer)
	return answer, nil
}

func (a *asker) pay(key string, q *Question, answer *Answer) {
	if a.run.settled(key) {
		a.run.charge(a.peer, a.bill, Spending{Reused: 1})
		return
	}
	s := a.peer.price.charge(q, answer)
	s.Requests = 1 + int64(answer.Retries)
	s.Failed = int64(answer.Retries)
	if answer.Outcome != record.OK {
		s.Failed++
	}
	a.run.charge(a.peer, a.bill, s)
}

// settled reports whether the answer was counted as spent before, and counts it.
func (r *runner) settled(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.paid[key]
	r.paid[key] = true
	return was
}

// enter waits for a place, and says that the endpoint and the budget allow one
// more question.
func (a *asker) enter(ctx context.Context) (free func(), err error) {
	for _, slots := range []chan struct{}{a.peer.slots, a.run.slots} {
		select {
		case slots <- struct{}{}:
			defer func() {
				if err != nil {
					<-slots
				}
			}()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := a.run.afford(); err != nil {
		return nil, err
	}
	if n := a.peer.silent(); n >= mostInRow {
		return nil, fmt.Errorf("%s left %d questions in a row without an answer, and is asked no more", a.peer.name, n)
	}
	return func() {
		<-a.run.slots
		<-a.peer.slots
	}, nil
}

func (p *peer) silent() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inRow
}

// drain is how long a question that is under way is let finish when the run is
// stopped, so that what was paid for is not asked again.
const drain = 10 * time.Second

// drained returns a context that ends some time after ctx.
func drained(ctx context.Context) (later context.Context, free func()) {
	later, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(drain):
			cancel(context.Cause(ctx))
		case <-later.Done():
		}
	})
	return later, func() {
		stop()
		cancel(nil)
	}
}

// try asks until there is an answer, or no further try is due.
func (a *asker) try(ctx context.Context, q *Question) (*Answer, error) {
	wait := a.run.c.Backoff
	under, free := drained(ctx)
	defer free()
	for try := 0; ; try++ {
		answer, err := a.peer.asker.Ask(under, q)
		switch {
		case under.Err() != nil:
			return nil, context.Cause(under)
		case err != nil && ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, err
		case answer == nil:
			return nil, errors.New("an asker gave neither answer nor error")
		}
		answer.Retries = try
		again := transient(answer.Outcome, answer.Status)
		if !again || try >= a.run.c.Retries {
			a.peer.heard(!again)
			return answer, nil
		}
		if err := pause(ctx, wait); err != nil {
			return nil, err
		}
		wait = min(2*wait, longestBackoff)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *peer) heard(answered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inRow++; answered {
		p.inRow = 0
	}
}

// transient reports whether asking again may help: the answer did not come, or
// was cut. An answer that came whole is never asked for again, however bad.
func transient(o record.Outcome, status int) bool {
	switch o {
	case record.DNS, record.Dial, record.Write, record.HTTP5xx, record.ResetBefore, record.ResetMid, record.Truncated, record.StallTimeout, record.TotalTimeout, record.Goaway, record.ErrorEvent, record.ClientFault:
		return true
	case record.HTTP4xx:
		return status == 429 || status == 408
	}
	return false
}

// memory is where answers are kept.
func (r *runner) memory(private bool) Memory {
	if private {
		return r.c.Private
	}
	return r.c.Memory
}

// recall returns the answer that is known, or nil.
func (r *runner) recall(key string, private bool) (*Answer, error) {
	a, ok, err := r.memory(private).Recall(key)
	switch {
	case err != nil:
		return nil, r.fail(fmt.Errorf("reading an answer that was kept: %w", err))
	case !ok:
		return nil, nil
	}
	return a, nil
}

func (r *runner) save(key, endpoint string, a *Answer, private bool) error {
	if err := r.memory(private).Save(key, endpoint, a); err != nil {
		return r.fail(fmt.Errorf("keeping an answer: %w", err))
	}
	return nil
}

// Held returns a Memory that lasts as long as the process.
func Held() Memory { return &memory{answers: make(map[string]*Answer)} }

type memory struct {
	mu      sync.Mutex
	answers map[string]*Answer
}

func (m *memory) Recall(key string) (*Answer, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, ok := m.answers[key]
	return a, ok, nil
}

func (m *memory) Save(key, _ string, a *Answer) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers[key] = a
	return nil
}

func (r *runner) fail(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
	return err
}

// embedder embeds with one endpoint on behalf of one check. Each vector is
// remembered by itself.
type embedder struct {
	run  *runner
	peer *peer
	bill *bill
}

// Embed answers from memory what is known, and asks for the rest in one request.
func (e *embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make(map[string][]float32, len(texts))
	var ask []string
	for _, text := range texts {
		if _, twice := vectors[text]; twice {
			continue
		}
		a, err := e.run.recall(vectorKey(e.peer.name, text), false)
		if err != nil {
			return nil, err
		}
		vectors[text] = nil
		if a == nil {
			ask = append(ask, text)
			continue
		}
		if vectors[text], err = unpack(a.Text); err != nil {
			return nil, fmt.Errorf("reading a vector that was kept: %w", err)
		}
		e.pay(text)
	}
	if err := e.ask(ctx, ask, vectors); err != nil {
		return nil, err
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = vectors[text]
	}
	return out, nil
}

// ask puts the vectors of texts that nobody embedded before beside the others.
func (e *embedder) ask(ctx context.Context, texts []string, to map[string][]float32) error {
	if len(texts) == 0 {
		return nil
	}
	free, err := (&asker{run: e.run, peer: e.peer, bill: e.bill}).enter(ctx)
	if err != nil {
		return err
	}
	defer free()
	got, err := e.try(ctx, texts)
	if err == nil && len(got) != len(texts) {
		err = fmt.Errorf("%s gave %d vectors for %d texts", e.peer.name, len(got), len(texts))
	}
	if err != nil {
		return err
	}
	for i, text := range texts {
		a := &Answer{Outcome: record.OK, Text: pack(got[i])}
		if err := e.run.save(vectorKey(e.peer.name, text), e.peer.name, a, false); err != nil {
			return err
		}
		to[text] = got[i]
		e.pay(text)
	}
	return nil
}

// try embeds until there are vectors, or no further try is due.
func (e *embedder) try(ctx context.Context, texts []string) ([][]float32, error) {
	wait := e.run.c.Backoff
	for try := 0; ; try++ {
		got, err := e.peer.embedder.Embed(ctx, texts)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err == nil:
			e.peer.heard(true)
			return got, nil
		}
		e.run.charge(e.peer, e.bill, Spending{Requests: 1, Failed: 1})
		f, ok := errors.AsType[*FailureError](err)
		if !ok || !transient(f.Outcome, f.Status) {
			return nil, err
		}
		if try >= e.run.c.Retries {
			e.peer.heard(false)
			return nil, err
		}
		if err := pause(ctx, wait); err != nil {
			return nil, err
		}
		wait = min(2*wait, longestBackoff)
	}
}

// pay counts a text as one request, however many were sent together, so that the
// bill does not depend on where a run was interrupted.
func (e *embedder) pay(text string) {
	if e.run.settled(vectorKey(e.peer.name, text)) {
		e.run.charge(e.peer, e.bill, Spending{Reused: 1})
		return
	}
	s := e.peer.price.charge(&Question{Prompt: text}, &Answer{Outcome: record.OK, Output: record.Tokens(0)})
	s.Requests = 1
	e.run.charge(e.peer, e.bill, s)
}

func vectorKey(endpoint, text string) string {
	return Key("vector of "+endpoint, &Question{Prompt: text})
}

// pack writes a vector as text: base64 of little-endian float32.
func pack(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}

func unpack(s string) ([]float32, error) {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(b)%4 != 0 {
		return nil, errors.New("it is no vector")
	}
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v, nil
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

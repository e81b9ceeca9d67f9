package check

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

// Pass is what a running check is given: its configuration, whom to ask, and
// where to put what it finds. Its methods are safe for concurrent use; its fields
// are read only.
type Pass struct {
	Config   any        // decoded; of the type that Check.Config returns
	Variants []*Subject // whom to ask, the baseline first if there is one
	Seed     uint64     // of the run
	Salt     string     // of the run: a text that no earlier run has, to stand before prompts that no cache shall know; "": none is wanted

	// Rehearsal: the answers are made up, and nothing but what is asked counts. A
	// check may leave out what costs it time.
	Rehearsal bool

	check *Check
	run   *runner
	bill  *bill

	mu       sync.Mutex
	trials   []*Trial
	asked    int
	planned  int
	declared map[string]Value
	signs    map[string]Signature
	wholes   []record.Estimate
	used     map[string]bool // digests of the sets that were handed out
	judges   map[string]bool // endpoints that were handed out
	findings []Finding
	figures  []Figure
	notes    []string
	cluster  string // what cases have in common
	data     any
}

// Subject is one variant as a check sees it.
type Subject struct {
	Name  string
	Model string       // as the suite names it
	Asker Asker        // with the limits, the budget and the memory of the run
	Can   Capabilities // what it was seen to do
}

// Shot is one question that every variant is asked, and what its records say of
// it. Shots of a check differ in Case, Turn, Label or Question.Replicate.
type Shot struct {
	Case    string // id of the case
	Cluster string // what is independent of each other: a dialogue, a document; the case if ""
	Turn    int    // in a dialogue, from 0
	Labels  map[string]string

	Question Question
	// Questions are by variant, where they differ, as when own answers are sent
	// back; nil: all are asked Question. Replicate is Question's.
	Questions []Question
}

// Trial is what became of a Shot.
type Trial struct {
	Shot    Shot
	Answers []*Answer // by variant, as in Pass.Variants; none is nil

	p      *Pass
	mu     sync.Mutex
	values []map[string]float64 // by variant
}

// Set writes a number of a declared value on the record of one variant. NaN and
// infinities are not numbers: they leave the value missing. It panics if the
// check did not declare the value, or the number lies outside of its bounds.
func (t *Trial) Set(variant int, value string, x float64) {
	v := t.p.value(value)
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return
	}
	if v.Whole {
		panic(fmt.Sprintf("check: %s is a number of the whole check, and of no case", t.p.name(value)))
	}
	if least, most, ok := v.Bounds(); ok && (x < least || x > most) || v.YesNo && x != 0 && x != 1 {
		panic(fmt.Sprintf("check: %s is %v, outside of its bounds", t.p.name(value), x))
	}
	t.put(variant, t.p.name(value), x)
}

// Exempt says that one variant's record has, by definition, no number of a
// declared value, such as the validity of JSON where none was asked for.
func (t *Trial) Exempt(variant int, value string) {
	t.p.value(value)
	t.put(variant, record.Exempt(t.p.name(value)), 1)
}

func (t *Trial) put(variant int, name string, x float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.values[variant] == nil {
		t.values[variant] = make(map[string]float64)
	}
	t.values[variant][name] = x
}

func (p *Pass) name(value string) string { return p.check.Name + "." + value }

func (p *Pass) value(name string) Value {
	v, ok := p.declared[name]
	if !ok {
		panic(fmt.Sprintf("check: %s writes %s, which it does not declare", p.check.Name, name))
	}
	return v
}

// Ask asks every variant every shot, several shots at a time. The variants get a
// shot one right after the other, in an order that changes from shot to shot. It
// returns the trials in the order of the shots. The error is of the asking: the
// run was stopped, or its budget is spent; then it returns the trials that were
// asked by then.
func (p *Pass) Ask(ctx context.Context, shots []Shot) ([]*Trial, error) {
	p.Plan(len(shots))
	trials := make([]*Trial, len(shots))
	err := p.Each(ctx, len(shots), func(ctx context.Context, i int) (err error) {
		trials[i], err = p.askOne(ctx, shots[i])
		return err
	})
	return slices.DeleteFunc(trials, func(t *Trial) bool { return t == nil }), err
}

// AskOne asks every variant one shot, for checks whose questions rest on earlier
// answers. See Ask.
func (p *Pass) AskOne(ctx context.Context, shot Shot) (*Trial, error) {
	p.Plan(1)
	return p.askOne(ctx, shot)
}

func (p *Pass) askOne(ctx context.Context, shot Shot) (*Trial, error) {
	if shot.Questions != nil && len(shot.Questions) != len(p.Variants) {
		panic(fmt.Sprintf("check: %s gives %d questions for %d variants", p.check.Name, len(shot.Questions), len(p.Variants)))
	}
	t := &Trial{Shot: shot, Answers: make([]*Answer, len(p.Variants)), p: p, values: make([]map[string]float64, len(p.Variants))}
	for _, i := range p.order(shot) {
		q := shot.Question
		if shot.Questions != nil {
			q = shot.Questions[i]
			q.Replicate = shot.Question.Replicate
		}
		a, err := p.Variants[i].Asker.Ask(ctx, &q)
		if err != nil {
			return nil, err
		}
		t.Answers[i] = a
	}
	p.mu.Lock()
	p.trials = append(p.trials, t)
	p.asked++
	at := Progress{Check: p.check.Name, Asked: p.asked, Planned: p.planned}
	p.mu.Unlock()
	p.run.progress(at)
	return t, nil
}

// order draws the order of the variants from the seed and the shot, so that it
// is the same however the run is interrupted.
func (p *Pass) order(s Shot) []int {
	return p.Rand("order", s.Case, strconv.Itoa(s.Turn), strconv.Itoa(s.Question.Replicate)).Perm(len(p.Variants))
}

// Plan announces n shots, for the progress of those that are asked one by one.
func (p *Pass) Plan(n int) {
	p.mu.Lock()
	p.planned = max(p.planned, p.asked) + n
	p.mu.Unlock()
}

// Each calls do for 0 to n−1, several at a time, and returns when all calls did.
// After an error it begins no further one; it returns the first error.
func (p *Pass) Each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		next   int
		failed error
	)
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		if failed == nil && ctx.Err() != nil {
			failed = context.Cause(ctx)
		}
		if failed != nil || next >= n {
			return 0, false
		}
		next++
		return next - 1, true
	}
	for range min(n, p.run.workers()) {
		wg.Go(func() {
			for i, ok := take(); ok; i, ok = take() {
				if err := contain(func() error { return do(ctx, i) }); err != nil {
					mu.Lock()
					if failed == nil {
						failed = err
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return failed
}

// Rand returns a source of random numbers that depends on the run's seed, the
// check and the names alone.
func (p *Pass) Rand(names ...string) *rand.Rand {
	h := fnv.New64a()
	for _, s := range append([]string{root(p.check.Name)}, names...) {
		_, _ = fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return rand.New(rand.NewPCG(p.Seed, h.Sum64())) //nolint:gosec // it has to be repeatable
}

// Judge returns an asker of an endpoint that the configuration names. It shares
// the limits, the budget and the memory of the run.
func (p *Pass) Judge(e Endpoint) (Asker, error) {
	peer, err := p.run.peer(e)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.judges[e.Name()] = true
	p.mu.Unlock()
	return &asker{run: p.run, peer: peer, bill: p.bill}, nil
}

// Can tells what an endpoint that the configuration names was seen to do.
func (p *Pass) Can(e Endpoint) Capabilities {
	if p.run.c.Can == nil {
		return nil
	}
	return p.run.c.Can(e)
}

// Embedder returns an embedder of an endpoint that the configuration names.
func (p *Pass) Embedder(e Endpoint) (Embedder, error) {
	peer, err := p.run.embedder(e)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.judges[e.Name()] = true
	p.mu.Unlock()
	return &embedder{run: p.run, peer: peer, bill: p.bill}, nil
}

// Set returns the cases that the configuration names. They are shared and
// read-only; their digest becomes part of the signature of the check's values.
func (p *Pass) Set(ref SetRef) (*corpus.Set, error) {
	set, ok := p.run.c.Sets[ref.File]
	if !ok {
		return nil, fmt.Errorf("there is no set %s", ref.File)
	}
	p.mu.Lock()
	p.used[set.Digest] = true
	p.mu.Unlock()
	return set, nil
}

// File returns what is in a file that the configuration names. It is shared and
// read-only; its digest becomes part of the signature of the check's values.
func (p *Pass) File(ref FileRef) ([]byte, error) {
	data, ok := p.run.c.Files[ref]
	if !ok {
		return nil, fmt.Errorf("there is no file %s", ref)
	}
	sum := sha256.Sum256(data)
	p.mu.Lock()
	p.used[hex.EncodeToString(sum[:])] = true
	p.mu.Unlock()
	return data, nil
}

// Report adds a finding.
func (p *Pass) Report(f Finding) {
	p.mu.Lock()
	p.findings = append(p.findings, f)
	p.mu.Unlock()
}

// Note adds a sentence that a reader of the check's numbers must know.
func (p *Pass) Note(format string, args ...any) {
	p.mu.Lock()
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
	p.mu.Unlock()
}

// Sign says how the numbers of a declared value come about; Value is its name
// within the check. What is left empty the driver fills in as far as it knows:
// the digest of the sets that the check took, the endpoints that it asked, how
// many records there are and how many lack the number.
func (p *Pass) Sign(s Signature) {
	p.value(s.Value)
	p.mu.Lock()
	p.signs[s.Value] = s
	p.mu.Unlock()
}

// Clustered says what the cases of the check have in common where their Cluster
// says so, such as the label that names it; "session" if nobody says it.
func (p *Pass) Clustered(by string) {
	p.mu.Lock()
	p.cluster = by
	p.mu.Unlock()
}

// Publish keeps data for the report and for checks that read this one. It must
// be fit for encoding/json, and is not changed afterwards.
func (p *Pass) Publish(data any) {
	p.mu.Lock()
	p.data = data
	p.mu.Unlock()
}

// Keep stores a text beside the run, for a person to look at, and returns the
// hex SHA-256 by which a Finding refers to it.
func (p *Pass) Keep(text string) string {
	sum := sha256.Sum256([]byte(text))
	digest := hex.EncodeToString(sum[:])
	p.run.keep(digest, text)
	return digest
}

// Read returns the outcome of another check, one of Check.Reads; ok is false if
// the suite does not have it.
func (p *Pass) Read(name string) (o *Outcome, ok bool) {
	if !slices.Contains(p.check.Reads, name) {
		panic(fmt.Sprintf("check: %s reads %s, which it does not declare", p.check.Name, name))
	}
	o, ok = p.run.done[name]
	return o, ok
}

// records writes down every trial, in an order that does not depend on time.
// Records of one shot have one number, by which they are paired.
func (p *Pass) records() []record.Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.SortStableFunc(p.trials, compareTrials)
	out := make([]record.Record, 0, len(p.trials)*len(p.Variants))
	for i, t := range p.trials {
		for k, a := range t.Answers {
			r := t.record(a)
			r.Shot, r.Variant, r.Workload = int64(i), p.Variants[k].Name, p.check.Name
			r.Values = maps.Clone(t.values[k])
			out = append(out, r)
		}
	}
	return out
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/assay-llm/assay/ask"
	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
)

// checks runs the checks of the suite, after all load is over, and appends the
// records of what they asked.
func (r *run) checks(ctx context.Context) error {
	if len(r.suite.Checks) == 0 {
		return nil
	}
	memory, err := openAnswers(r.dir)
	if err != nil {
		return err
	}
	var open []io.Closer
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	c, err := r.asking(ctx, &open)
	if err != nil {
		return errors.Join(err, memory.close())
	}
	c.Memory, c.Keep, c.Private = memory, memory.keep, check.Held()
	if r.sealer != nil {
		c.Private = r.sealer.Memory(memory)
	}
	var outcomes []*check.Outcome
	if err = r.foresee(ctx, c); err == nil {
		started := time.Now()
		outcomes, err = check.Run(ctx, c)
		if f := r.manifest.Foreseen; err == nil && f != nil && f.Time > 0 && r.past == nil && !r.suite.underLoad() { // what is asked under load was not announced
			f.Took = time.Since(started)
		}
	}
	if failed := memory.close(); failed != nil {
		err = errors.Join(err, fmt.Errorf("keeping the answers: %w", failed))
	}
	if err != nil {
		return err
	}
	return r.enter(outcomes)
}

// leastForeseen is how many questions are worth a sample of them before: fewer are
// asked as soon as the sample.
const leastForeseen = 60

// foresee tells what the checks will cost before they ask.
func (r *run) foresee(ctx context.Context, c check.Config) error {
	if r.past != nil {
		return nil // what was told at first stands, and of what was asked by then no time can be learnt
	}
	f, err := check.Plan(ctx, c)
	if err != nil {
		return err
	}
	if f.Requests >= leastForeseen {
		r.opts.Notice("checks will ask %s at most; a sample of them tells how long that takes", f)
		g, err := check.Foresee(ctx, c)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			r.opts.Notice("how long the checks take is not known: %v", err) // if it lasts, the checks say so, too
		default:
			f = g
		}
	}
	r.opts.Notice("checks: %s", f)
	r.manifest.Foreseen = &record.Foreseen{
		Requests: f.Requests, PromptTokens: f.PromptTokens, OutputTokens: f.OutputTokens, Sampled: f.Sampled, Time: f.Time, Spread: f.Spread,
	}
	return nil
}

// asking is what the checks of the suite need to run. What it opens it adds to open.
func (r *run) asking(ctx context.Context, open *[]io.Closer) (check.Config, error) {
	c := r.suite.checking(r.manifest.Seed)
	c.Salt, c.Progress = r.manifest.Salt, r.progress()
	for _, v := range r.baselineFirst() {
		a, err := ask.New(v.name, v.target)
		if err != nil {
			return c, err
		}
		*open = append(*open, a)
		known := check.Variant{Name: v.name, Model: v.spec.Model, Asker: a}
		if r.wants() {
			known.Can = r.capabilities(ctx, v.target)
		}
		if p := v.spec.Price; p != nil {
			known.Price = check.Price{Prompt: p.Input, Output: p.Output}
		}
		c.Variants = append(c.Variants, known)
	}
	c.Load = r.underLoad
	if n := len(r.manifest.Gaps); n > 0 {
		c.LoadKey = fmt.Sprintf(", after %d stops", n)
	}
	c.Can = func(e check.Endpoint) check.Capabilities {
		t, err := r.judgeTarget(e)
		if err != nil {
			return nil // connecting to it says why
		}
		return r.capabilities(ctx, t)
	}
	c.Judge = func(e check.Endpoint) (check.Asker, error) {
		t, err := r.judgeTarget(e)
		if err != nil {
			return nil, err
		}
		a, err := ask.New(e.Model, t)
		if err == nil {
			*open = append(*open, a)
		}
		return a, err
	}
	c.Embedder = func(e check.Endpoint) (check.Embedder, error) {
		t, err := r.judgeTarget(e)
		if err != nil {
			return nil, err
		}
		a, err := ask.NewEmbedder(e.Model, t)
		if err == nil {
			*open = append(*open, a)
		}
		return a, err
	}
	return c, nil
}

// checking is what the suite says of its checks and of how they ask.
func (s *Suite) checking(seed uint64) check.Config {
	c := check.Config{
		Seed: seed, Sets: s.sets, Files: s.files, PerEndpoint: s.Asking.PerEndpoint, Overall: s.Asking.Overall,
		Budget: check.Budget{Tokens: int64(s.Asking.Budget.Tokens), Money: s.Asking.Budget.Money},
	}
	if n := s.Asking.Retries; n != nil {
		if c.Retries = *n; *n == 0 {
			c.Retries = -1
		}
	}
	for _, d := range s.Checks {
		c.Checks = append(c.Checks, d.Declared)
	}
	return c
}

// wants reports whether a check of the suite wants to know what variants can do.
func (r *run) wants() bool {
	return slices.ContainsFunc(r.suite.Checks, func(d CheckRef) bool { return len(d.Check.Needs)+len(d.Check.Wants) > 0 })
}

func (r *run) capabilities(ctx context.Context, t llm.Target) check.Capabilities {
	if r.opts.Capabilities == nil {
		return nil
	}
	return r.opts.Capabilities(ctx, t)
}

// baselineFirst returns the variants with the baseline before the others.
func (r *run) baselineFirst() (out []*variant) {
	for _, v := range r.variants {
		if v.name == Baseline {
			out = append([]*variant{v}, out...)
			continue
		}
		out = append(out, v)
	}
	return out
}

// judgeTarget resolves an endpoint that a check names.
func (r *run) judgeTarget(e check.Endpoint) (llm.Target, error) {
	t := llm.Target{URL: e.URL, Model: e.Model}
	if r.opts.virtual != nil {
		t.Dial = r.opts.virtual.dial
	}
	var err error
	if !e.Key.IsZero() {
		t.Key, err = r.secret(e.Key)
	}
	return t, err
}

// secret resolves a reference of the suite; files are beside the suite.
func (r *run) secret(s config.Secret) (string, error) {
	getenv := r.opts.Getenv
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	return s.Resolve(getenv, func(name string) ([]byte, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(r.suite.file), name)
		}
		return os.ReadFile(name)
	})
}

// seal is what private answers are kept with; nil: they are not kept.
func (r *run) seal() (*check.Seal, error) {
	if r.suite.Asking.Seal.IsZero() {
		return nil, nil
	}
	secret, err := r.secret(r.suite.Asking.Seal)
	if err != nil {
		return nil, fmt.Errorf("resolving asking.seal: %w", err)
	}
	return check.NewSeal(secret)
}

// progress tells of the checks, not more often than people read.
func (r *run) progress() func(check.Progress) {
	var last time.Time
	return func(p check.Progress) {
		if p.Asked < p.Planned && time.Since(last) < 10*time.Second {
			return
		}
		last = time.Now()
		r.opts.Notice("check %s (%d of %d): %d of %d cases asked, %d tokens", p.Check, p.Index, p.Of, p.Asked, p.Planned, p.Spent.Tokens())
	}
}

// enter appends the records of the checks and keeps what became of them. Records
// that the journal of a resumed run has already are left out: they are the same.
func (r *run) enter(outcomes []*check.Outcome) error {
	for _, o := range outcomes {
		for i := range o.Records {
			rec := &o.Records[i]
			if r.past != nil && r.past.asked[shotOf(rec)] {
				continue
			}
			if err := r.writer.Append(rec); err != nil {
				return fmt.Errorf("keeping the records of the check %s: %w", o.Check, err)
			}
		}
		if o.Why != "" {
			r.opts.Notice("check %s proves nothing: %s", o.Check, o.Why)
		}
	}
	return writeOutcomes(r.dir, outcomes)
}

// shot names a record among those of a run's checks.
type shot struct {
	variant, workload string
	number            int64
}

func shotOf(r *record.Record) shot { return shot{r.Variant, r.Workload, r.Shot} }

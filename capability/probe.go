package capability

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/assay-llm/assay/check"
)

// Schema names the JSON form of a Report.
const Schema = "assay.capabilities/1"

// kept is how long a report is believed: servers are updated without a new name.
const kept = 7 * 24 * time.Hour

// Report is what an endpoint was seen to do.
type Report struct {
	Schema      string    `json:"schema"`
	URL         string    `json:"url"`         // of the API, without what may be a secret
	Model       string    `json:"model"`       // as asked for
	Served      string    `json:"served"`      // as the answers call it
	Fingerprint string    `json:"fingerprint"` // system_fingerprint; "": none
	Window      int64     `json:"window"`      // tokens of context that the server tells; 0: it does not
	At          time.Time `json:"at"`
	Findings    []Finding `json:"findings"`
	Requests    int64     `json:"requests"` // that it took
	Tokens      int64     `json:"tokens"`   // by the server's count
}

// Finding is what was seen of one capability.
type Finding struct {
	Capability check.Capability `json:"capability"`
	check.Proof
}

// Capabilities returns the findings as checks want them.
func (r *Report) Capabilities() check.Capabilities {
	all := make(check.Capabilities, len(r.Findings))
	for _, f := range r.Findings {
		all[f.Capability] = f.Proof
	}
	return all
}

// Current reports whether a kept report may be used of an endpoint that calls itself
// so now.
func (r *Report) Current(served, fingerprint string, now time.Time) bool {
	age := now.Sub(r.At)
	return r.Schema == Schema && r.Served == served && r.Fingerprint == fingerprint && age > -time.Minute && age < kept
}

// Options say how to probe. The zero value works.
type Options struct {
	Say       func(what string) // called before each capability is looked at; nil: nobody listens
	Repeats   int               // of each question about determinism on an idle endpoint, half as many under load; 0: 5
	Overlong  int64             // longest context window, in tokens, that is worth filling; 0: 32,768, negative: none
	Neighbors int               // requests that are under way as load; 0: 4
}

// probe is one probing under way.
type probe struct {
	end       Endpoint
	opts      Options
	client    *http.Client
	root, api string
	report    *Report
	requests  atomic.Int64
	tokens    atomic.Int64
}

// An UnreachableError says that the endpoint gave no answer to the simplest question.
type UnreachableError struct{ Err error }

// Error says what happened, and the next step.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("asking for one word: %v\n  hint: check that the server is up and that its url, model and key are right", e.Err)
}

// Unwrap returns what happened.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Hello asks for one word, and returns what the endpoint calls itself.
func Hello(ctx context.Context, e Endpoint) (served, fingerprint string, err error) {
	p, err := newProbe(e, Options{})
	if err != nil {
		return "", "", err
	}
	a, err := p.hello(ctx)
	if err != nil {
		return "", "", err
	}
	return a.Model, a.Fingerprint, nil
}

func newProbe(e Endpoint, o Options) (*probe, error) {
	root, api, err := e.base()
	if err != nil {
		return nil, err
	}
	p := &probe{end: e, opts: o, client: e.Client, root: root, api: api}
	if p.client == nil {
		p.client = &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 64, MaxConnsPerHost: 64}}
	}
	if p.opts.Say == nil {
		p.opts.Say = func(string) {}
	}
	if p.opts.Repeats <= 0 {
		p.opts.Repeats = 5
	}
	if p.opts.Neighbors <= 0 {
		p.opts.Neighbors = 4
	}
	if p.opts.Overlong == 0 {
		p.opts.Overlong = 32 << 10
	}
	return p, nil
}

func (p *probe) hello(ctx context.Context) (*answer, error) {
	a, r, err := p.chat(ctx, "Say hello.", map[string]any{"max_tokens": 4})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, &UnreachableError{err}
	case !r.ok():
		return nil, &UnreachableError{errors.New(r.why())}
	}
	return a, nil
}

// Probe asks an endpoint and reports what it was seen to do. An *UnreachableError means
// that it does not answer at all; else every capability has a finding, and what broke
// on the way is Unknown.
func Probe(ctx context.Context, e Endpoint, o Options) (*Report, error) {
	p, err := newProbe(e, o)
	if err != nil {
		return nil, err
	}
	first, err := p.hello(ctx)
	if err != nil {
		return nil, err
	}
	p.report = &Report{Schema: Schema, URL: p.api, Model: e.Model, Served: first.Model, Fingerprint: first.Fingerprint, At: time.Now().UTC()}
	p.report.Window = p.window(ctx)
	steps := []struct {
		of   []check.Capability
		look func(context.Context) ([]check.Proof, error)
	}{
		{[]check.Capability{check.CapChoices}, p.choices},
		{[]check.Capability{check.CapLogprobs, check.CapLogprobsRaw}, p.logprobs},
		{[]check.Capability{check.CapPromptLogprobs}, p.promptLogprobs},
		{[]check.Capability{check.CapTokenizer, check.CapLogitBias}, p.tokenizer},
		{[]check.Capability{check.CapSchema}, p.schema},
		{[]check.Capability{check.CapTools}, p.tools},
		{[]check.Capability{check.CapSeed, check.CapSeedLoaded, check.CapDeterminism, check.CapDeterminismLoad}, p.determinism},
		{[]check.Capability{check.CapRefusesOverlong}, p.overlong},
	}
	for _, s := range steps {
		p.opts.Say(string(s.of[0]))
		proofs, err := s.look(ctx)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		for i, c := range s.of {
			f := Finding{Capability: c}
			switch {
			case err != nil:
				f.Detail = "the probe broke off: " + err.Error()
			case i < len(proofs):
				f.Proof = proofs[i]
			}
			p.report.Findings = append(p.report.Findings, f)
		}
	}
	p.report.Requests, p.report.Tokens = p.requests.Load(), p.tokens.Load()
	return p.report, nil
}

func proven(level int, format string, args ...any) check.Proof {
	return check.Proof{Standing: check.Proven, Level: level, Detail: fmt.Sprintf(format, args...)}
}

func absent(format string, args ...any) check.Proof {
	return check.Proof{Standing: check.Absent, Detail: fmt.Sprintf(format, args...)}
}

func unknown(format string, args ...any) check.Proof {
	return check.Proof{Detail: fmt.Sprintf(format, args...)}
}

// failed says what a request that was not granted proves: a refusal that the
// capability is absent, anything else nothing.
func failed(r reply) check.Proof {
	if r.refused() {
		return absent("%s", r.why())
	}
	return unknown("%s", r.why())
}

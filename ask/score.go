package ask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
)

// The ways to ask for the log-probabilities of a prompt.
const (
	wayEcho   = iota // echo and logprobs: OpenAI's own, vLLM, SGLang
	wayPrompt        // prompt_logprobs: vLLM
	ways
)

// newScorer makes a client of the completions API beside a chat API.
func newScorer(t llm.Target) (*llm.Client, error) {
	t.API = llm.APICompletions
	if u, err := url.Parse(t.URL); err == nil {
		if path, ok := strings.CutSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions"); ok {
			u.Path = path + "/completions"
			t.URL = u.String()
		}
	}
	return llm.NewClient(t)
}

// score asks for the log-probabilities of the prompt, at first in one way and,
// if that gives none, in the other.
func (a *Asker) score(ctx context.Context, q *check.Question) (*check.Answer, error) {
	if a.scorer == nil || len(q.Messages) > 0 || q.Prompt == "" || len(q.Schema) > 0 {
		return &check.Answer{Outcome: record.ClientFault, Detail: "a prompt that is no dialogue is scored by the completions API of OpenAI; there is not both here"}, nil
	}
	first := a.way.Load()
	for i := range int32(ways) {
		way := (first + i) % ways
		rec := record.Record{Variant: a.name, Workload: "check", Shot: a.number.Add(1)}
		got := a.scorer.Do(ctx, a.epoch, scoring(q, way), &rec)
		if ctx.Err() != nil && rec.Outcome.Group() == record.GroupDropped {
			return nil, context.Cause(ctx)
		}
		out := scored(&rec, &got, q, way)
		if len(out.Scored) > 0 {
			a.way.Store(way)
			return out, nil
		}
		if spoken := out.Outcome == record.OK || out.Outcome == record.HTTP4xx && rec.Status != 429 && rec.Status != 408; !spoken || i == ways-1 {
			return out, nil
		}
	}
	panic("ask: no way of scoring was tried")
}

// scoring is the request of one way. One token has to be generated, since many
// servers refuse to generate none.
func scoring(q *check.Question, way int32) *llm.Request {
	r := &llm.Request{Prompt: q.Prompt, MaxTokens: 1, Temperature: q.Temperature, TopP: q.TopP, Seed: q.Seed, KeepBody: true, Extra: make(map[string]any)}
	n := max(q.TopLogprobs, 1)
	if way == wayEcho {
		r.Extra["echo"], r.Extra["logprobs"] = true, n
	} else {
		r.Extra["prompt_logprobs"] = n
	}
	return r
}

// scored reads the answer of one way. The text of the answer is that of one token
// nobody asked for.
func scored(rec *record.Record, got *llm.Answer, q *check.Question, way int32) *check.Answer {
	out := &check.Answer{
		Outcome: rec.Outcome, Status: rec.Status, Detail: rec.Detail, Finish: rec.Finish,
		Prompt: rec.Prompt, Output: rec.Output, Model: got.Model, Fingerprint: got.Fingerprint,
	}
	if filtered(rec) {
		out.Outcome, out.Finish = record.Filtered, "content_filter"
		return out
	}
	if out.Outcome == record.LengthMismatch || out.Outcome == record.EmptyOutput {
		out.Outcome, out.Detail = record.OK, ""
	}
	if rec.Status/100 != 2 || out.Outcome != record.OK {
		return out
	}
	tokens, err := scores(got.Body, way)
	if err == nil {
		out.Scored, err = placed(tokens, q)
	}
	if err != nil {
		out.Outcome, out.Detail = record.Malformed, err.Error()
	}
	return out
}

// token is one token of a prompt as it came; its log-probability may be missing.
type token struct {
	text    string
	logprob *float64
	top     []check.Alternative
}

// scores reads the tokens out of a body; none if it has none.
func scores(data []byte, way int32) ([]token, error) {
	var b struct {
		Choices []struct {
			Index          int             `json:"index"`
			Logprobs       json.RawMessage `json:"logprobs"`
			PromptLogprobs json.RawMessage `json:"prompt_logprobs"`
		} `json:"choices"`
		PromptLogprobs json.RawMessage `json:"prompt_logprobs"` // some have it beside the choices
	}
	if json.Unmarshal(data, &b) != nil || len(b.Choices) == 0 {
		return nil, errors.New("reading the scores: the answer has not the shape of OpenAI's API")
	}
	c := &b.Choices[0]
	if way == wayEcho {
		return echoed(c.Logprobs)
	}
	if len(c.PromptLogprobs) == 0 || string(c.PromptLogprobs) == "null" {
		c.PromptLogprobs = b.PromptLogprobs
	}
	return prompted(c.PromptLogprobs)
}

// echoed reads the lists of a completion that repeats its prompt.
func echoed(raw json.RawMessage) ([]token, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var w struct {
		Tokens        []string             `json:"tokens"`
		TokenLogprobs []*float64           `json:"token_logprobs"`
		TopLogprobs   []map[string]float64 `json:"top_logprobs"`
	}
	if json.Unmarshal(raw, &w) != nil || len(w.Tokens) != len(w.TokenLogprobs) {
		return nil, errors.New("reading the scores: logprobs have not the shape of OpenAI's completions API")
	}
	if len(w.Tokens) > maxTokens {
		return nil, fmt.Errorf("reading the scores: log-probabilities of %d tokens; the limit is %d", len(w.Tokens), maxTokens)
	}
	out := make([]token, len(w.Tokens))
	for i, text := range w.Tokens {
		out[i] = token{text: text, logprob: w.TokenLogprobs[i]}
		if i < len(w.TopLogprobs) {
			for text, p := range w.TopLogprobs[i] {
				out[i].top = append(out[i].top, check.Alternative{Text: text, Logprob: p})
			}
		}
	}
	return out, nil
}

// prompted reads vLLM's list: null for the first token, then an object by token
// id, of which the first is the prompt's own token. A JSON object has no order by
// rights, but this one is written and read in order.
func prompted(raw json.RawMessage) ([]token, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	wrong := errors.New("reading the scores: prompt_logprobs have not the shape of vLLM's API")
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, wrong
	}
	var out []token
	for d.More() {
		if len(out) >= maxTokens {
			return nil, fmt.Errorf("reading the scores: log-probabilities of more than %d tokens", maxTokens)
		}
		switch t, err := d.Token(); {
		case err != nil:
			return nil, wrong
		case t == nil:
			out = append(out, token{})
			continue
		case t != json.Delim('{'):
			return nil, wrong
		}
		var at token
		for d.More() {
			var e struct {
				Logprob *float64 `json:"logprob"`
				Text    *string  `json:"decoded_token"`
			}
			if _, err := d.Token(); err != nil || d.Decode(&e) != nil || e.Logprob == nil || e.Text == nil {
				return nil, wrong
			}
			if at.logprob == nil {
				at.text, at.logprob = *e.Text, e.Logprob
			}
			at.top = append(at.top, check.Alternative{Text: *e.Text, Logprob: *e.Logprob})
		}
		if _, err := d.Token(); err != nil || at.logprob == nil {
			return nil, wrong
		}
		out = append(out, at)
	}
	return out, nil
}

// placed finds where each token's text begins in the prompt. What a server puts
// before it, and the token that it generated, are not the prompt's. Of a first
// token the text may be missing, as in vLLM's list: then the others end the prompt.
func placed(tokens []token, q *check.Question) ([]check.Scored, error) {
	if len(tokens) == 0 {
		return nil, nil
	}
	var all strings.Builder
	for _, t := range tokens {
		all.WriteString(t.text)
	}
	at := -strings.Index(all.String(), q.Prompt)
	if at > 0 {
		if tokens[0].text != "" || !strings.HasSuffix(q.Prompt, all.String()) {
			return nil, errors.New("reading the scores: the texts of the tokens do not make up the prompt")
		}
		at = len(q.Prompt) - all.Len()
	}
	var out []check.Scored
	for i, t := range tokens {
		if at >= len(q.Prompt) {
			break
		}
		if t.logprob == nil && i > 0 && at > 0 {
			return nil, fmt.Errorf("reading the scores: token %d has no log-probability", i)
		}
		if t.logprob != nil && at >= 0 {
			if !(*t.logprob <= 1e-6) || math.IsInf(*t.logprob, 0) {
				return nil, fmt.Errorf("reading the scores: %g at token %d is no log-probability", *t.logprob, i)
			}
			out = append(out, check.Scored{At: at, Token: check.Token{Text: t.text, Logprob: *t.logprob, Top: alternatives(t.top, q.TopLogprobs)}})
		}
		at += len(t.text)
	}
	return out, nil
}

// alternatives sorts them, the likeliest first, and keeps as many as were wanted: the
// one that stands there, which servers add, is not one of them by rights.
func alternatives(top []check.Alternative, wanted int) []check.Alternative {
	if wanted == 0 {
		return nil
	}
	slices.SortFunc(top, func(a, b check.Alternative) int {
		if a.Logprob != b.Logprob {
			return int(math.Copysign(1, b.Logprob-a.Logprob))
		}
		return strings.Compare(a.Text, b.Text)
	})
	return top[:min(len(top), wanted, maxAlternatives)]
}

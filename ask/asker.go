package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
)

// maxAnswer bounds the body of one answer: 4,000 tokens with 20 alternatives each
// take about 8 MiB.
const maxAnswer = 32 << 20

// Asker asks one endpoint. It is safe for concurrent use. Close it after use.
type Asker struct {
	client *llm.Client
	scorer *llm.Client // of the completions API, which scores prompts; nil: the server has none
	api    string
	epoch  time.Time
	number atomic.Int64
	way    atomic.Int32 // of scoring, which worked last
	name   string
}

// New returns an asker of a target; it opens no connection yet. Name stands for
// the target in the ids of requests.
func New(name string, t llm.Target) (*Asker, error) {
	t.KeepText, t.MaxBody = maxAnswer, maxAnswer
	if t.API == "" {
		t.API = llm.APIChat
	}
	if t.API == llm.APIEmbeddings || t.API == llm.APIRerank {
		return nil, fmt.Errorf("asking %s: the API %s answers no questions", name, t.API)
	}
	c, err := llm.NewClient(t)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", name, err)
	}
	a := &Asker{client: c, api: t.API, epoch: time.Now(), name: name}
	if a.openAI() {
		if a.scorer, err = newScorer(t); err != nil {
			return nil, errors.Join(fmt.Errorf("asking %s: %w", name, err), c.Close())
		}
	}
	return a, nil
}

// Close closes the connections.
func (a *Asker) Close() error {
	if a.scorer != nil {
		return errors.Join(a.client.Close(), a.scorer.Close())
	}
	return a.client.Close()
}

// Ask sends the question once. The error is that the context ended.
func (a *Asker) Ask(ctx context.Context, q *check.Question) (*check.Answer, error) {
	if q.Score {
		return a.score(ctx, q)
	}
	req, err := a.request(q)
	if err != nil {
		return &check.Answer{Outcome: record.ClientFault, Detail: err.Error()}, nil
	}
	rec := record.Record{Variant: a.name, Workload: "check", Shot: a.number.Add(1)}
	got := a.client.Do(ctx, a.epoch, req, &rec)
	if ctx.Err() != nil && rec.Outcome.Group() == record.GroupDropped {
		return nil, context.Cause(ctx)
	}
	return a.answer(&rec, &got, q), nil
}

// openAI reports whether the API is one of OpenAI's two.
func (a *Asker) openAI() bool { return a.api == llm.APIChat || a.api == llm.APICompletions }

// request translates a question. What the API cannot express is an error: left
// out, another question would be asked.
func (a *Asker) request(q *check.Question) (*llm.Request, error) {
	r := &llm.Request{
		Messages: q.Messages, Prompt: q.Prompt, MaxTokens: q.MaxTokens, Temperature: q.Temperature, TopP: q.TopP,
		Seed: q.Seed, Stop: q.Stop, KeepBody: true, Extra: make(map[string]any),
	}
	if q.TopLogprobs > 0 {
		switch a.api {
		case llm.APIChat:
			r.Extra["logprobs"], r.Extra["top_logprobs"] = true, q.TopLogprobs
		case llm.APICompletions:
			r.Extra["logprobs"] = q.TopLogprobs
		default:
			return nil, fmt.Errorf("the API %s has no log-probabilities", a.api)
		}
	}
	if len(q.Schema) > 0 {
		if !a.openAI() {
			return nil, fmt.Errorf("the API %s has no JSON schema", a.api)
		}
		if !json.Valid(q.Schema) {
			return nil, errors.New("the JSON schema is not JSON")
		}
		r.Extra["response_format"] = map[string]any{
			"type":        "json_schema",
			"json_schema": map[string]any{"name": "answer", "strict": true, "schema": q.Schema},
		}
	}
	return r, nil
}

// answer puts together what the record and the body say.
func (a *Asker) answer(rec *record.Record, got *llm.Answer, q *check.Question) *check.Answer {
	out := &check.Answer{
		Outcome: rec.Outcome, Status: rec.Status, Detail: rec.Detail, Text: got.Text, Finish: rec.Finish,
		Prompt: rec.Prompt, Output: rec.Output, Model: got.Model, Fingerprint: got.Fingerprint,
	}
	switch {
	case filtered(rec):
		out.Outcome, out.Finish = record.Filtered, "content_filter"
		return out
	case rec.Outcome == record.LengthMismatch:
		out.Outcome, out.Detail = record.OK, "" // how many tokens a length is, is the load test's to hold
	}
	if !a.openAI() || rec.Status/100 != 2 || out.Outcome != record.OK && out.Outcome != record.EmptyOutput {
		return out
	}
	if err := read(got.Body, out); err != nil {
		out.Outcome, out.Detail = record.Malformed, err.Error()
		return out
	}
	if q.TopLogprobs == 0 {
		out.Tokens = nil // nobody asked
	}
	return out
}

// filterCodes are the error codes by which services say that their filter
// refused.
var filterCodes = []string{"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation", "content_filter_error", "moderation_blocked", "data_inspection_failed"}

// filtered reports whether a filter refused: the request with a status of 4xx, or
// the answer with its finish_reason.
func filtered(rec *record.Record) bool {
	if rec.Outcome == record.HTTP4xx {
		return slices.Contains(filterCodes, rec.Code)
	}
	return rec.Finish == "content_filter"
}

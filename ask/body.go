package ask

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-llm/assay/check"
)

// Bounds on the log-probabilities of one answer.
const (
	maxTokens       = 1 << 17
	maxAlternatives = 64
)

// body is the JSON of an answer of OpenAI's chat or completions API, as far as
// package llm does not keep it.
type body struct {
	Choices []choice `json:"choices"`
}

type choice struct {
	Index    int             `json:"index"`
	Text     *string         `json:"text"` // of a completion
	Message  *message        `json:"message"`
	Logprobs json.RawMessage `json:"logprobs"`
}

type message struct {
	Content json.RawMessage `json:"content"` // a string, null, or a list of parts
	Refusal *string         `json:"refusal"`
}

// read takes the text, the refusal and the log-probabilities of the first choice
// out of a body. Text and refusal are kept apart, which package llm joins.
func read(data []byte, a *check.Answer) error {
	var b body
	if err := json.Unmarshal(data, &b); err != nil {
		return errors.New("reading the answer: it has not the shape of OpenAI's API")
	}
	i := slices.IndexFunc(b.Choices, func(c choice) bool { return c.Index == 0 })
	if i < 0 {
		return errors.New("reading the answer: it has no first choice")
	}
	c := &b.Choices[i]
	switch {
	case c.Message != nil:
		text, err := content(c.Message.Content)
		if err != nil {
			return err
		}
		a.Text = text
		if c.Message.Refusal != nil {
			a.Refusal = *c.Message.Refusal
		}
	case c.Text != nil:
		a.Text = *c.Text
	}
	tokens, err := logprobs(c.Logprobs)
	if err != nil {
		return err
	}
	a.Tokens = tokens
	return nil
}

// content reads a message's content: the texts of its parts are joined.
func content(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s, nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", errors.New("reading the answer: its content is no text")
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String(), nil
}

// wireLogprobs has both shapes: of a chat (content) and of a completion (three
// lists).
type wireLogprobs struct {
	Content []struct {
		Token   string   `json:"token"`
		Logprob *float64 `json:"logprob"`
		Top     []struct {
			Token   string   `json:"token"`
			Logprob *float64 `json:"logprob"`
		} `json:"top_logprobs"`
	} `json:"content"`

	Tokens        []string             `json:"tokens"`
	TokenLogprobs []*float64           `json:"token_logprobs"`
	TopLogprobs   []map[string]float64 `json:"top_logprobs"`
}

// logprobs reads the tokens with their log-probabilities; nil if there are none,
// or one of them is missing.
func logprobs(raw json.RawMessage) ([]check.Token, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var w wireLogprobs
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, errors.New("reading the answer: its logprobs have not the shape of OpenAI's API")
	}
	if n := max(len(w.Content), len(w.Tokens)); n > maxTokens {
		return nil, fmt.Errorf("reading the answer: log-probabilities of %d tokens; the limit is %d", n, maxTokens)
	}
	if len(w.Content) > 0 {
		return w.chat(), nil
	}
	return w.completion(), nil
}

func (w *wireLogprobs) chat() []check.Token {
	out := make([]check.Token, len(w.Content))
	for i, t := range w.Content {
		if t.Logprob == nil {
			return nil
		}
		out[i] = check.Token{Text: t.Token, Logprob: *t.Logprob}
		for _, o := range t.Top[:min(len(t.Top), maxAlternatives)] {
			if o.Logprob == nil {
				return nil
			}
			out[i].Top = append(out[i].Top, check.Alternative{Text: o.Token, Logprob: *o.Logprob})
		}
	}
	return out
}

// completion reads the older shape. Its alternatives are a JSON object, which has
// no order: they are sorted, the likeliest first.
func (w *wireLogprobs) completion() []check.Token {
	if len(w.Tokens) == 0 || len(w.Tokens) != len(w.TokenLogprobs) {
		return nil
	}
	out := make([]check.Token, len(w.Tokens))
	for i, text := range w.Tokens {
		if w.TokenLogprobs[i] == nil {
			return nil
		}
		out[i] = check.Token{Text: text, Logprob: *w.TokenLogprobs[i]}
		if i >= len(w.TopLogprobs) {
			continue
		}
		for text, p := range w.TopLogprobs[i] {
			out[i].Top = append(out[i].Top, check.Alternative{Text: text, Logprob: p})
		}
		slices.SortFunc(out[i].Top, func(a, b check.Alternative) int {
			if a.Logprob != b.Logprob {
				return int(math.Copysign(1, b.Logprob-a.Logprob))
			}
			return strings.Compare(a.Text, b.Text)
		})
		out[i].Top = out[i].Top[:min(len(out[i].Top), maxAlternatives)]
	}
	return out
}

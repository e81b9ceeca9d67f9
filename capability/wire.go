package capability

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	maxReply = 32 << 20
	timeout  = 2 * time.Minute // of one request
)

// Endpoint is what is probed: a server with OpenAI's APIs.
type Endpoint struct {
	URL     string // http(s)://host:port, with or without /v1
	Model   string
	Key     string            // sent as Authorization: Bearer; never shown
	Headers map[string]string // added to every request

	Client *http.Client // nil: one of its own
}

// base returns the root of the server and of its API.
func (e Endpoint) base() (root, api string, err error) {
	u, err := url.Parse(e.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", "", fmt.Errorf("%q is no address of a server\n  hint: write it as http://host:port/v1", e.URL)
	}
	path := strings.TrimRight(u.Path, "/")
	for _, end := range []string{"/chat/completions", "/completions"} {
		path = strings.TrimSuffix(path, end)
	}
	before, isV1 := strings.CutSuffix(path, "/v1")
	root = u.Scheme + "://" + u.Host + before
	if path != "" && !isV1 {
		return root, root, nil
	}
	return root, root + "/v1", nil
}

// reply is what came back of a request.
type reply struct {
	status int
	body   []byte
}

func (r reply) ok() bool { return r.status/100 == 2 }

// refused reports whether the server says that it does not do this, rather than that
// it is unwell.
func (r reply) refused() bool { return r.status/100 == 4 && r.status != 429 && r.status != 408 }

// why is the server's own message, bounded and on one line.
func (r reply) why() string {
	var e struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	text := ""
	if json.Unmarshal(r.body, &e) == nil {
		var inner struct{ Message string }
		switch {
		case json.Unmarshal(e.Error, &inner) == nil && inner.Message != "":
			text = inner.Message
		case json.Unmarshal(e.Error, &text) == nil && text != "":
		case e.Message != "":
			text = e.Message
		default:
			_ = json.Unmarshal(e.Detail, &text)
		}
	}
	text = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c > 0x2027 && c < 0x2030 {
			return ' '
		}
		return c
	}, text)
	if len(text) > 160 {
		text = strings.ToValidUTF8(text[:160], "") + "…"
	}
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", r.status, text))
}

// send posts a body, or gets if there is none. The error is of the connection.
func (p *probe) send(ctx context.Context, address string, body map[string]any) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	method, text := http.MethodGet, []byte(nil)
	if body != nil {
		method = http.MethodPost
		var err error
		if text, err = json.Marshal(body); err != nil {
			return reply{}, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(text))
	if err != nil {
		return reply{}, err
	}
	for k, v := range p.end.Headers {
		req.Header.Set(k, v)
	}
	req.Header.Set("Content-Type", "application/json")
	if p.end.Key != "" {
		req.Header.Set("Authorization", "Bearer "+p.end.Key)
	}
	resp, err := p.client.Do(req)
	p.requests.Add(1)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the address, which may have a key in it
		}
		return reply{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	if err != nil {
		return reply{}, fmt.Errorf("reading the answer: %w", err)
	}
	if len(data) > maxReply {
		return reply{}, fmt.Errorf("an answer of more than %d bytes", maxReply)
	}
	return reply{resp.StatusCode, data}, nil
}

// chat asks one question of the chat API. Fields of more win over the usual ones.
func (p *probe) chat(ctx context.Context, text string, more map[string]any) (*answer, reply, error) {
	body := map[string]any{"messages": []any{map[string]any{"role": "user", "content": text}}, "max_tokens": 24, "temperature": 0}
	if p.end.Model != "" {
		body["model"] = p.end.Model
	}
	for k, v := range more {
		body[k] = v
	}
	r, err := p.send(ctx, p.api+"/chat/completions", body)
	if err != nil {
		return nil, r, err
	}
	a := new(answer)
	if r.ok() {
		if err := json.Unmarshal(r.body, a); err != nil || len(a.Choices) == 0 {
			return nil, r, errors.New("the answer has not the shape of OpenAI's chat API")
		}
		p.tokens.Add(max(0, a.Usage.Total))
	}
	return a, r, nil
}

// answer is a chat answer, or a completion, as far as probes read it.
type answer struct {
	Model       string `json:"model"`
	Fingerprint string `json:"system_fingerprint"`
	Choices     []struct {
		Index   int    `json:"index"`
		Text    string `json:"text"` // of a completion
		Message struct {
			Content   *string           `json:"content"`
			ToolCalls []json.RawMessage `json:"tool_calls"`
		} `json:"message"`
		Logprobs struct {
			Content []struct {
				Token   string   `json:"token"`
				Logprob *float64 `json:"logprob"`
				Top     []struct {
					Token   string   `json:"token"`
					Logprob *float64 `json:"logprob"`
				} `json:"top_logprobs"`
			} `json:"content"`
			Tokens        []string   `json:"tokens"`
			TokenLogprobs []*float64 `json:"token_logprobs"`
		} `json:"logprobs"`
		PromptLogprobs []map[string]struct {
			Logprob float64 `json:"logprob"`
		} `json:"prompt_logprobs"`
	} `json:"choices"`
	PromptLogprobs []map[string]struct { // of vLLM's chat API, beside the choices
		Logprob float64 `json:"logprob"`
	} `json:"prompt_logprobs"`
	Usage struct {
		Prompt int64 `json:"prompt_tokens"`
		Total  int64 `json:"total_tokens"`
	} `json:"usage"`
}

func (a *answer) text() string {
	if len(a.Choices) == 0 {
		return ""
	}
	if c := a.Choices[0]; c.Message.Content != nil {
		return *c.Message.Content
	}
	return a.Choices[0].Text
}

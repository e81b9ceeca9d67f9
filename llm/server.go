package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

// The two families of the API.
const (
	APIChat        = "chat"        // POST /v1/chat/completions
	APICompletions = "completions" // POST /v1/completions
)

// ChatRequest is what a client asks of a server, of either family: Messages are
// of a chat, Prompt is of a legacy completion. Fields that a server of this
// project has no use for are not kept.
type ChatRequest struct {
	API             string // APIChat or APICompletions, by whether messages or a prompt came
	Model           string
	Messages        []corpus.Message
	Prompt          string
	MaxTokens       int64 // 0: not said
	Stream          bool
	IncludeUsage    bool // stream_options.include_usage
	ContinuousUsage bool // stream_options.continuous_usage_stats
	IgnoreEOS       bool
	N               int64 // answers asked for, at least 1
	Temperature     *float64
	TopP            *float64
	Seed            *int64
	Stop            []string
	Priority        int64 // vLLM's: lower is sooner
}

// Limits of a request that a server accepts.
const (
	MaxRequestBytes = 64 << 20
	maxMessages     = 100_000
)

// wireRequest has the request's JSON shape. Some fields come in several types.
type wireRequest struct {
	Model    string `json:"model"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Prompt              json.RawMessage `json:"prompt"`
	MaxTokens           *int64          `json:"max_tokens"`
	MaxCompletionTokens *int64          `json:"max_completion_tokens"`
	Stream              bool            `json:"stream"`
	StreamOptions       *struct {
		IncludeUsage    bool `json:"include_usage"`
		ContinuousUsage bool `json:"continuous_usage_stats"`
	} `json:"stream_options"`
	IgnoreEOS   bool            `json:"ignore_eos"`
	N           *int64          `json:"n"`
	Temperature *float64        `json:"temperature"`
	TopP        *float64        `json:"top_p"`
	Seed        *int64          `json:"seed"`
	Stop        json.RawMessage `json:"stop"`
	Priority    int64           `json:"priority"`
}

// ParseRequest reads the body of a chat or completions request. Unknown fields
// are skipped; what is known must have its type. The error is fit to be sent
// back with status 400.
func ParseRequest(body []byte) (*ChatRequest, error) {
	if len(body) > MaxRequestBytes {
		return nil, fmt.Errorf("request of %d bytes: the limit is %d", len(body), MaxRequestBytes)
	}
	var w wireRequest
	if err := json.Unmarshal(body, &w); err != nil {
		return nil, fmt.Errorf("parsing request: %w", err)
	}
	r := &ChatRequest{
		Model: w.Model, Stream: w.Stream, IgnoreEOS: w.IgnoreEOS, N: 1,
		Temperature: w.Temperature, TopP: w.TopP, Seed: w.Seed, Priority: w.Priority,
	}
	if w.StreamOptions != nil {
		r.IncludeUsage, r.ContinuousUsage = w.StreamOptions.IncludeUsage, w.StreamOptions.ContinuousUsage
	}
	for _, n := range []*int64{w.MaxTokens, w.MaxCompletionTokens} {
		if n != nil {
			r.MaxTokens = *n
		}
	}
	if r.MaxTokens < 0 {
		return nil, fmt.Errorf("max_tokens: %d is negative", r.MaxTokens)
	}
	if w.N != nil {
		r.N = *w.N
	}
	if r.N < 1 || r.N > 128 {
		return nil, fmt.Errorf("n: %d is not between 1 and 128", r.N)
	}
	var err error
	if r.Stop, err = parseStop(w.Stop); err != nil {
		return nil, err
	}
	if err := r.parseInput(&w); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *ChatRequest) parseInput(w *wireRequest) error {
	chat, prompt := len(w.Messages) > 0, len(w.Prompt) > 0 && string(w.Prompt) != "null"
	switch {
	case chat && prompt:
		return errors.New("messages and prompt exclude each other")
	case !chat && !prompt:
		return errors.New("neither messages nor prompt")
	case len(w.Messages) > maxMessages:
		return fmt.Errorf("messages: %d are more than %d", len(w.Messages), maxMessages)
	}
	if prompt {
		r.API = APICompletions
		if json.Unmarshal(w.Prompt, &r.Prompt) == nil {
			return nil
		}
		var many []string
		if json.Unmarshal(w.Prompt, &many) != nil || len(many) != 1 {
			return errors.New("prompt: want one string, or a list of one string")
		}
		r.Prompt = many[0]
		return nil
	}
	r.API = APIChat
	r.Messages = make([]corpus.Message, len(w.Messages))
	for i, m := range w.Messages {
		text, err := parseContent(m.Content)
		if err != nil {
			return fmt.Errorf("messages[%d].content: %w", i, err)
		}
		r.Messages[i] = corpus.Message{Role: m.Role, Content: text}
	}
	return nil
}

// parseContent reads a message's content: a string, null, or a list of parts of
// which the text ones are joined.
func parseContent(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", errors.New("neither a string nor a list of parts")
	}
	var b []byte
	for i, p := range parts {
		if p.Type != "text" {
			return "", fmt.Errorf("part %d has type %q: only text is supported", i, p.Type)
		}
		b = append(b, p.Text...)
	}
	return string(b), nil
}

func parseStop(raw json.RawMessage) ([]string, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}, nil
	}
	var many []string
	if json.Unmarshal(raw, &many) != nil {
		return nil, errors.New("stop: neither a string nor a list of strings")
	}
	return many, nil
}

// Usage is a server's account of tokens.
type Usage struct {
	Prompt, Output    int64
	Cached, Reasoning record.Count // unknown: the detail is not sent
}

// Chunk is one piece of a streamed answer as a server sends it, or a whole
// answer that is not streamed.
type Chunk struct {
	API       string // APIChat (also "") or APICompletions
	ID        string
	Model     string
	Created   int64  // seconds since 1970
	Index     int    // of the choice
	Role      string // on the first chunk of a chat
	Content   string
	Reasoning string // reasoning_content of a chat
	Finish    string // finish_reason; "" is sent as null
	Usage     *Usage
	UsageOnly bool               // choices is [], as on the last chunk with usage
	Timings   map[string]float64 // vLLM's per-request metrics by wire name, such as queue_time_ms; nil: not sent
}

// AppendChunk appends the chunk's JSON as a stream carries it.
func AppendChunk(b []byte, c *Chunk) []byte {
	object := "chat.completion.chunk"
	if c.API == APICompletions {
		object = "text_completion"
	}
	return c.append(b, object, "delta")
}

// AppendAnswer appends the JSON of a whole answer that is not streamed.
func AppendAnswer(b []byte, c *Chunk) []byte {
	object := "chat.completion"
	if c.API == APICompletions {
		object = "text_completion"
	}
	return c.append(b, object, "message")
}

func (c *Chunk) append(b []byte, object, body string) []byte {
	b = appendString(append(b, `{"id":`...), c.ID)
	b = appendString(append(b, `,"object":`...), object)
	b = strconv.AppendInt(append(b, `,"created":`...), c.Created, 10)
	b = appendString(append(b, `,"model":`...), c.Model)
	b = append(b, `,"choices":[`...)
	if !c.UsageOnly {
		b = strconv.AppendInt(append(b, `{"index":`...), int64(c.Index), 10)
		if c.API == APICompletions {
			b = appendString(append(b, `,"text":`...), c.Content)
		} else {
			b = c.appendDelta(b, body)
		}
		b = append(b, `,"logprobs":null,"finish_reason":`...)
		if c.Finish == "" {
			b = append(b, "null}"...)
		} else {
			b = append(appendString(b, c.Finish), '}')
		}
	}
	b = append(b, ']')
	if c.Usage != nil {
		b = appendUsage(append(b, `,"usage":`...), c.Usage)
	}
	if c.Timings != nil {
		if m, err := json.Marshal(c.Timings); err == nil {
			b = append(append(b, `,"metrics":`...), m...)
		}
	}
	return append(b, '}')
}

func (c *Chunk) appendDelta(b []byte, body string) []byte {
	b = append(b, ',', '"')
	b = append(append(b, body...), `":{`...)
	comma := func(name string) {
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), name...), `":`...)
	}
	if c.Role != "" {
		comma("role")
		b = appendString(b, c.Role)
	}
	if c.Reasoning != "" {
		comma("reasoning_content")
		b = appendString(b, c.Reasoning)
	}
	if c.Content != "" || c.Role != "" && c.Reasoning == "" {
		comma("content")
		b = appendString(b, c.Content)
	}
	return append(b, '}')
}

func appendUsage(b []byte, u *Usage) []byte {
	b = strconv.AppendInt(append(b, `{"prompt_tokens":`...), u.Prompt, 10)
	b = strconv.AppendInt(append(b, `,"completion_tokens":`...), u.Output, 10)
	b = strconv.AppendInt(append(b, `,"total_tokens":`...), u.Prompt+u.Output, 10)
	if n, ok := u.Cached.N(); ok {
		b = strconv.AppendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), n, 10)
		b = append(b, '}')
	}
	if n, ok := u.Reasoning.N(); ok {
		b = strconv.AppendInt(append(b, `,"completion_tokens_details":{"reasoning_tokens":`...), n, 10)
		b = append(b, '}')
	}
	return append(b, '}')
}

// AppendEvent appends one server-sent event with the given data, which must
// hold no line break. If emit is positive a comment tells it as the instant, in
// Unix nanoseconds, at which the server wrote the event.
func AppendEvent(b []byte, emit int64, data []byte) []byte {
	if emit > 0 {
		b = append(strconv.AppendInt(append(b, ": emit "...), emit, 10), '\n')
	}
	return append(append(append(b, "data: "...), data...), "\n\n"...)
}

// AppendDone appends the event that ends a stream.
func AppendDone(b []byte) []byte { return append(b, "data: [DONE]\n\n"...) }

// AppendError appends the JSON of an error, as a body or as an event's data.
// Code is an HTTP status.
func AppendError(b []byte, code int, kind, message string) []byte {
	b = appendString(append(b, `{"error":{"message":`...), message)
	b = appendString(append(b, `,"type":`...), kind)
	b = strconv.AppendInt(append(b, `,"param":null,"code":`...), int64(code), 10)
	return append(b, "}}"...)
}

// AppendModels appends the JSON of GET /v1/models.
func AppendModels(b []byte, created int64, models ...string) []byte {
	b = append(b, `{"object":"list","data":[`...)
	for i, m := range models {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"id":`...), m)
		b = strconv.AppendInt(append(b, `,"object":"model","created":`...), created, 10)
		b = append(b, `,"owned_by":"assay"}`...)
	}
	return append(b, "]}"...)
}

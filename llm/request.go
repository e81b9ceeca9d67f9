package llm

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

// Request is what a client asks: one dialogue or prompt, and how to answer it.
// Fields at their zero value are left to the server, but for Stream.
type Request struct {
	Messages    []corpus.Message // of a chat; joined by line breaks for a target of completions
	Prompt      string           // of a completion; one user message for a target of chat
	MaxTokens   int64
	Stream      bool
	IgnoreEOS   bool
	Temperature *float64
	TopP        *float64
	Seed        *int64
	Stop        []string
	Extra       map[string]any // further fields, as encoding/json writes them; they win over the ones above
}

// appendRequest appends the request's JSON.
func (t *Target) appendRequest(b []byte, r *Request) ([]byte, error) {
	for _, f := range []*float64{r.Temperature, r.TopP} {
		if f != nil && (math.IsNaN(*f) || math.IsInf(*f, 0)) {
			return b, fmt.Errorf("encoding request: %v is no temperature or top_p", *f)
		}
	}
	start := len(b)
	b = append(b, '{')
	field := func(name string) bool {
		if _, ok := r.Extra[name]; ok {
			return false
		}
		if len(b) > start+1 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), name...), `":`...)
		return true
	}
	if t.Model != "" && field("model") {
		b = appendString(b, t.Model)
	}
	if t.API == APICompletions {
		if field("prompt") {
			b = appendPrompt(b, r)
		}
	} else if field("messages") {
		b = appendMessages(b, r)
	}
	if r.MaxTokens > 0 && field("max_tokens") {
		b = strconv.AppendInt(b, r.MaxTokens, 10)
	}
	if r.Stream {
		if field("stream") {
			b = append(b, "true"...)
		}
		if !t.NoUsage && field("stream_options") {
			b = append(b, `{"include_usage":true}`...)
		}
	}
	if r.IgnoreEOS && field("ignore_eos") {
		b = append(b, "true"...)
	}
	if r.Temperature != nil && field("temperature") {
		b = strconv.AppendFloat(b, *r.Temperature, 'g', -1, 64)
	}
	if r.TopP != nil && field("top_p") {
		b = strconv.AppendFloat(b, *r.TopP, 'g', -1, 64)
	}
	if r.Seed != nil && field("seed") {
		b = strconv.AppendInt(b, *r.Seed, 10)
	}
	if len(r.Stop) > 0 && field("stop") {
		b = append(b, '[')
		for i, s := range r.Stop {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, s)
		}
		b = append(b, ']')
	}
	if len(r.Extra) == 0 {
		return append(b, '}'), nil
	}
	for _, name := range slices.Sorted(maps.Keys(r.Extra)) {
		v, err := json.Marshal(r.Extra[name])
		if err != nil {
			return b, fmt.Errorf("encoding request field %s: %w", name, err)
		}
		if len(b) > start+1 {
			b = append(b, ',')
		}
		b = append(append(appendString(b, name), ':'), v...)
	}
	return append(b, '}'), nil
}

func appendMessages(b []byte, r *Request) []byte {
	messages := r.Messages
	if len(messages) == 0 {
		messages = []corpus.Message{{Role: "user", Content: r.Prompt}}
	}
	b = append(b, '[')
	for i := range messages {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"role":`...), messages[i].Role)
		b = appendString(append(b, `,"content":`...), messages[i].Content)
		b = append(b, '}')
	}
	return append(b, ']')
}

func appendPrompt(b []byte, r *Request) []byte {
	if r.Prompt != "" || len(r.Messages) == 0 {
		return appendString(b, r.Prompt)
	}
	texts := make([]string, len(r.Messages))
	for i := range r.Messages {
		texts[i] = r.Messages[i].Content
	}
	return appendString(b, strings.Join(texts, "\n"))
}

// quotes reports whether text of a server repeats a stretch of the prompt.
func (r *Request) quotes(s string) bool {
	const window = 24 // any quote of twice this holds one whole aligned window
	quoted := func(prompt string) bool {
		if len(prompt) >= 8 && len(prompt) < 2*window && strings.Contains(s, prompt) {
			return true
		}
		for i := 0; i+window <= len(s); i += window {
			if strings.Contains(prompt, s[i:i+window]) {
				return true
			}
		}
		return false
	}
	if quoted(r.Prompt) {
		return true
	}
	return slices.ContainsFunc(r.Messages, func(m corpus.Message) bool { return quoted(m.Content) })
}

// RequestID returns the X-Request-Id of a record's request, by which a server's
// own ledger is reconciled with the records: variant/workload/block/shot, behind
// "warm-up/" for a shot of the warm-up. Bytes that do not belong in a header are
// replaced.
func RequestID(r *record.Record) string { return string(appendRequestID(nil, r)) }

func appendRequestID(b []byte, r *record.Record) []byte {
	if r.Phase == record.WarmUp {
		b = append(b, "warm-up/"...)
	}
	name := func(s string) {
		for i := range min(len(s), 128) {
			if c := s[i]; c > ' ' && c < 0x7f && c != '/' {
				b = append(b, c)
			} else {
				b = append(b, '_')
			}
		}
		b = append(b, '/')
	}
	name(r.Variant)
	name(r.Workload)
	b = append(strconv.AppendInt(b, int64(r.Block), 10), '/')
	return strconv.AppendInt(b, r.Shot, 10)
}

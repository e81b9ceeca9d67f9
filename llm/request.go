package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

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
	Priority    int64          // for engines that schedule by it; 0: none, and not sent
	LeaveSent   bool           // hang up as soon as the request is sent, as ErrPlanned
	LeaveAfter  int64          // hang up once so many tokens of a stream came, as ErrPlanned; 0: never
	KeepBody    bool           // keep the whole body of an answer that is not streamed, as Answer.Body
	Extra       map[string]any // further fields, as encoding/json writes them; they win over the ones above
}

// appendRequest appends the request's JSON.
func (t *Target) appendRequest(b []byte, r *Request) ([]byte, error) {
	for _, f := range []*float64{r.Temperature, r.TopP} {
		if f != nil && (math.IsNaN(*f) || math.IsInf(*f, 0)) {
			return b, fmt.Errorf("encoding request: %v is no temperature or top_p", *f)
		}
	}
	if r.Priority != 0 && !t.dialect().ranks {
		return b, errors.New("encoding request: this API has no priority; leave it out, or give it as an extra field")
	}
	return t.dialect().body(b, t, r)
}

func appendChat(b []byte, t *Target, r *Request) ([]byte, error) {
	o := newObject(b, r.Extra)
	o.model(t)
	if o.field("messages") {
		o.b = appendDialogue(o.b, r.dialogue())
	}
	return o.openAI(t, r)
}

func appendCompletion(b []byte, t *Target, r *Request) ([]byte, error) {
	o := newObject(b, r.Extra)
	o.model(t)
	if o.field("prompt") {
		o.b = appendPrompt(o.b, r)
	}
	return o.openAI(t, r)
}

// openAI appends what the two families have in common.
func (o *object) openAI(t *Target, r *Request) ([]byte, error) {
	if r.MaxTokens > 0 {
		o.integer("max_tokens", r.MaxTokens)
	}
	if r.Stream {
		o.literal("stream", "true")
		if !t.NoUsage {
			o.literal("stream_options", `{"include_usage":true}`)
		}
	}
	if r.IgnoreEOS {
		o.literal("ignore_eos", "true")
	}
	o.number("temperature", r.Temperature)
	o.number("top_p", r.TopP)
	if r.Seed != nil {
		o.integer("seed", *r.Seed)
	}
	if r.Priority != 0 {
		o.integer("priority", r.Priority)
	}
	o.list("stop", r.Stop)
	return o.end()
}

// object writes the fields of a JSON object; those of extra, which the caller
// of Do gave, win.
type object struct {
	b     []byte
	start int
	extra map[string]any
}

func newObject(b []byte, extra map[string]any) object {
	return object{b: append(b, '{'), start: len(b), extra: extra}
}

// field begins a field, unless extra has it.
func (o *object) field(name string) bool {
	if _, ok := o.extra[name]; ok {
		return false
	}
	o.comma()
	o.b = append(append(append(o.b, '"'), name...), `":`...)
	return true
}

func (o *object) comma() {
	if len(o.b) > o.start+1 {
		o.b = append(o.b, ',')
	}
}

func (o *object) model(t *Target) {
	if t.Model != "" {
		o.text("model", t.Model)
	}
}

func (o *object) text(name, s string) {
	if o.field(name) {
		o.b = appendString(o.b, s)
	}
}

func (o *object) literal(name, json string) {
	if o.field(name) {
		o.b = append(o.b, json...)
	}
}

func (o *object) integer(name string, n int64) {
	if o.field(name) {
		o.b = strconv.AppendInt(o.b, n, 10)
	}
}

func (o *object) number(name string, f *float64) {
	if f != nil && o.field(name) {
		o.b = strconv.AppendFloat(o.b, *f, 'g', -1, 64)
	}
}

func (o *object) list(name string, texts []string) {
	if len(texts) == 0 || !o.field(name) {
		return
	}
	o.b = append(o.b, '[')
	for i, s := range texts {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = appendString(o.b, s)
	}
	o.b = append(o.b, ']')
}

// end appends the extra fields and closes the object.
func (o *object) end() ([]byte, error) {
	if len(o.extra) == 0 {
		return append(o.b, '}'), nil
	}
	for _, name := range slices.Sorted(maps.Keys(o.extra)) {
		v, err := json.Marshal(o.extra[name])
		if err != nil {
			return o.b, fmt.Errorf("encoding request field %s: %w", name, err)
		}
		o.comma()
		o.b = append(append(appendString(o.b, name), ':'), v...)
	}
	return append(o.b, '}'), nil
}

// dialogue returns the messages, or the prompt as the one message of a user.
func (r *Request) dialogue() []corpus.Message {
	if len(r.Messages) == 0 {
		return []corpus.Message{{Role: "user", Content: r.Prompt}}
	}
	return r.Messages
}

func appendDialogue(b []byte, messages []corpus.Message) []byte {
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
	return appendString(b, joinText(r.Messages))
}

// joinText joins the texts of messages by line breaks.
func joinText(messages []corpus.Message) string {
	if len(messages) == 1 {
		return messages[0].Content
	}
	texts := make([]string, len(messages))
	for i := range messages {
		texts[i] = messages[i].Content
	}
	return strings.Join(texts, "\n")
}

// quotes reports whether text of a server repeats a stretch of the prompt, also
// in other case, spaced out, or percent-encoded.
func (r *Request) quotes(s string) bool {
	const window = 16 // letters and digits: any quote of twice this holds one whole aligned window
	texts := []string{letters(s)}
	if plain, err := url.QueryUnescape(s); err == nil && plain != s {
		texts = append(texts, letters(plain))
	}
	quoted := func(prompt string) bool {
		prompt = letters(prompt)
		for _, s := range texts {
			if len(prompt) >= 8 && len(prompt) < 2*window && strings.Contains(s, prompt) {
				return true
			}
			for i := 0; i+window <= len(s); i += window {
				if strings.Contains(prompt, s[i:i+window]) {
					return true
				}
			}
		}
		return false
	}
	if quoted(r.Prompt) {
		return true
	}
	return slices.ContainsFunc(r.Messages, func(m corpus.Message) bool { return quoted(m.Content) })
}

// letters keeps the letters and digits of a text, in lower case.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
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

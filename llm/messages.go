package llm

import (
	"strings"

	"github.com/assay-llm/assay/corpus"
)

// Anthropic's Messages.

// messagesLimit is the limit of tokens that is sent when the caller has none:
// the API demands one.
const messagesLimit = 4096

func messagesAuth(t *Target) (fields [][2]string) {
	version := true
	for name := range t.Headers {
		version = version && !strings.EqualFold(name, "anthropic-version")
	}
	if version {
		fields = append(fields, [2]string{"anthropic-version", "2023-06-01"})
	}
	if t.Key != "" {
		fields = append(fields, [2]string{"x-api-key", t.Key})
	}
	return fields
}

// appendAnthropic appends a request. System messages before the dialogue go
// into a field of their own; the API has no such role.
func appendAnthropic(b []byte, t *Target, r *Request) ([]byte, error) {
	o := newObject(b, r.Extra)
	o.model(t)
	limit := r.MaxTokens
	if limit <= 0 {
		limit = messagesLimit
	}
	o.integer("max_tokens", limit)
	system, dialogue := splitSystem(r)
	if len(system) > 0 && o.field("system") {
		o.b = appendString(o.b, joinText(system))
	}
	if o.field("messages") {
		o.b = appendDialogue(o.b, dialogue)
	}
	if r.Stream {
		o.literal("stream", "true")
	}
	if r.IgnoreEOS {
		o.literal("ignore_eos", "true")
	}
	o.number("temperature", r.Temperature)
	o.number("top_p", r.TopP)
	o.list("stop_sequences", r.Stop)
	return o.end()
}

// splitSystem cuts the system messages off the front of a dialogue, unless there
// is nothing else.
func splitSystem(r *Request) (system, dialogue []corpus.Message) {
	dialogue = r.dialogue()
	n := 0
	for n < len(dialogue)-1 && dialogue[n].Role == "system" {
		n++
	}
	return dialogue[:n], dialogue[n:]
}

// readMessages reads an event or a whole message.
func readMessages(c *chunk, name, data []byte) error {
	c.open(data)
	if !c.object() {
		return c.close()
	}
	var (
		m     message
		kind  = name
		block = messageBlock{index: -1}
	)
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case "type":
			kind = c.word()
		case "index":
			block.index = c.index()
		case "delta", "content_block":
			c.messageBlock(&block)
		case "message":
			if c.object() {
				for key, more := c.enter(); more; key, more = c.next() {
					c.messageField(key, &m)
				}
			}
		default:
			c.messageField(key, &m)
		}
	}
	if err := c.close(); err != nil {
		return err
	}
	c.takeMessage(kind, &m, &block)
	return nil
}

// message is what an event or a whole answer says of the message.
type message struct {
	stop  []byte
	parts bool // there is a list of content
}

// messageBlock is a block of content, or a piece of one.
type messageBlock struct {
	index                     int64
	kind, id, name            []byte
	text, thinking, arguments []byte
	input                     []byte // arguments as an object
	stop                      []byte // of message_delta
}

// messageField reads a field of a whole message or of message_start.
func (c *chunk) messageField(key []byte, m *message) {
	switch string(key) {
	case "stop_reason":
		m.stop = c.word()
	case "usage":
		c.messageUsage()
	case "error":
		c.setError(c.raw())
	case "content":
		m.parts = m.parts || c.peek() == '['
		for more := c.array(); more; more = c.nextElement() {
			b := messageBlock{index: int64(len(c.tools))}
			c.messageBlock(&b)
			c.takeBlock(&b)
		}
	default:
		c.skip(0)
	}
}

func (c *chunk) messageBlock(b *messageBlock) {
	if !c.object() {
		return
	}
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case "type":
			b.kind = c.word()
		case "text":
			b.text = c.str()
		case "thinking":
			b.thinking = c.str()
		case "partial_json":
			b.arguments = c.str()
		case "id":
			b.id = c.word()
		case "name":
			b.name = c.word()
		case "input":
			b.input = c.raw()
		case "stop_reason":
			b.stop = c.word()
		default:
			c.skip(0)
		}
	}
}

// messageUsage reads usage: the prompt in three parts, of which the cached one
// and the one written to the cache may be missing.
func (c *chunk) messageUsage() {
	if !c.usageObject() {
		return
	}
	u := &c.usage
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case "input_tokens":
			c.amount(&u.fresh)
		case "cache_creation_input_tokens":
			c.amount(&u.written)
		case "cache_read_input_tokens":
			c.amount(&u.cached)
		case "output_tokens":
			c.amount(&u.output)
		default:
			c.skip(0)
		}
	}
}

// takeMessage says what an event of this kind means.
func (c *chunk) takeMessage(kind []byte, m *message, b *messageBlock) {
	switch string(kind) {
	case "message_start":
		c.begun()
		c.usage.output = -1 // counted before the answer is there
	case "content_block_start", "content_block_delta":
		c.begun()
		c.takeBlock(b)
	case "message_delta":
		c.begun()
		if len(b.stop) > 0 {
			c.ended(messagesFinish(b.stop))
		}
	case "message_stop":
		c.over()
	case "message":
		c.begun()
		if len(m.stop) > 0 {
			c.ended(messagesFinish(m.stop))
		}
		if !m.parts {
			c.seen, c.finished = 0, 0 // no answer
		}
	case "ping":
		c.has |= hasPing
	case "error":
		c.failed()
	}
}

// takeBlock takes over a block, or a piece of one. Blocks of other kinds, such
// as results of the server's own tools, are no output of the model.
func (c *chunk) takeBlock(b *messageBlock) {
	switch string(b.kind) {
	case "text", "text_delta":
		c.say(b.text)
	case "thinking", "thinking_delta", "redacted_thinking":
		c.think(b.thinking)
		c.has |= hasHidden
	case "tool_use", "server_tool_use", "mcp_tool_use":
		d := toolDelta{index: b.index, id: b.id, name: b.name}
		if len(b.input) > 0 && b.input[0] == '{' && hasElement(b.input) {
			d.args = b.input
		}
		c.call(d)
	case "input_json_delta":
		c.call(toolDelta{index: b.index, args: b.arguments})
	}
}

// messagesFinish gives the reason in the words of the other APIs.
func messagesFinish(reason []byte) []byte {
	switch string(reason) {
	case "end_turn", "stop_sequence":
		return finishStop
	case "max_tokens", "model_context_window_exceeded":
		return finishLength
	case "tool_use":
		return finishTools
	case "refusal":
		return finishFilter
	}
	return reason
}

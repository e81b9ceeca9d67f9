package llm

import "bytes"

// OpenAI's Responses.

// appendResponses appends a request. The API knows neither stop sequences nor a
// seed: the first are refused, as an answer would be another one without them.
func appendResponses(b []byte, t *Target, r *Request) ([]byte, error) {
	if len(r.Stop) > 0 {
		return b, errNoStop
	}
	o := newObject(b, r.Extra)
	o.model(t)
	if o.field("input") {
		o.b = appendDialogue(o.b, r.dialogue())
	}
	if r.MaxTokens > 0 {
		o.integer("max_output_tokens", r.MaxTokens)
	}
	if r.Stream {
		o.literal("stream", "true")
	}
	if r.IgnoreEOS {
		o.literal("ignore_eos", "true")
	}
	o.number("temperature", r.Temperature)
	o.number("top_p", r.TopP)
	o.literal("store", "false") // nothing of a measurement stays on the server
	return o.end()
}

// response is what an event or a whole answer says of the response.
type response struct {
	status, reason []byte
	list           bool // there is a list of output
	tools          bool // with a call of a function
}

// responseItem is an item of output that is a call; others say what they say in
// their parts.
type responseItem struct {
	kind, id, name, arguments []byte
}

// readResponses reads an event or a whole response.
func readResponses(c *chunk, name, data []byte) error {
	c.open(data)
	if !c.object() {
		return c.close()
	}
	var (
		kind  = name
		r     response
		item  responseItem
		delta []byte
		index = int64(-1)
	)
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case "type":
			kind = c.word()
		case "output_index":
			index = c.index()
		case "delta":
			delta = c.word()
		case "item":
			item = c.responseItem(false)
		case "logprobs":
			for more := c.array(); more; more = c.nextElement() {
				c.skip(0)
				c.listed++
			}
		case "response":
			if c.object() {
				for key, more := c.enter(); more; key, more = c.next() {
					c.responseField(key, &r, false)
				}
			}
		default:
			c.responseField(key, &r, true)
		}
	}
	if err := c.close(); err != nil {
		return err
	}
	if !c.takeDelta(kind, delta, index, &item) {
		c.takeResponse(kind, &r)
	}
	return nil
}

// responseField reads a field of a response. The output of one that comes in an
// event has been streamed already: only a whole one counts.
func (c *chunk) responseField(key []byte, r *response, whole bool) {
	switch string(key) {
	case "status":
		r.status = c.word()
	case "error":
		c.setError(c.raw())
	case "incomplete_details":
		r.reason = c.wordIn("reason")
	case "usage":
		c.responseUsage()
	case "output":
		r.list = r.list || c.peek() == '['
		for more := c.array(); more; more = c.nextElement() {
			item := c.responseItem(whole)
			if string(item.kind) != "function_call" {
				continue
			}
			r.tools = true
			if whole {
				c.call(toolDelta{index: int64(len(c.tools)), id: item.id, name: item.name, args: item.arguments})
			}
		}
	default:
		c.skip(0)
	}
}

func (c *chunk) responseItem(whole bool) (item responseItem) {
	if !c.object() {
		return item
	}
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case "type":
			item.kind = c.word()
		case "call_id":
			item.id = c.word()
		case "name":
			item.name = c.word()
		case "arguments":
			item.arguments = c.word()
		case "content", "summary":
			for more := c.array(); more; more = c.nextElement() {
				c.responsePart(whole)
			}
		default:
			c.skip(0)
		}
	}
	return item
}

func (c *chunk) responsePart(whole bool) {
	if !c.object() {
		return
	}
	var kind, text []byte
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case "type":
			kind = c.word()
		case "text", "refusal":
			text = c.str()
		default:
			c.skip(0)
		}
	}
	switch string(kind) {
	case "output_text", "refusal":
		if whole {
			c.say(text)
		}
	case "reasoning_text", "summary_text":
		if whole {
			c.think(text)
		}
	}
}

func (c *chunk) responseUsage() {
	if !c.usageObject() {
		return
	}
	u := &c.usage
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case "input_tokens":
			c.amount(&u.prompt)
		case "output_tokens":
			c.amount(&u.output)
		case "total_tokens":
			c.amount(&u.total)
		case "input_tokens_details":
			c.amountIn("cached_tokens", &u.cached)
		case "output_tokens_details":
			c.amountIn("reasoning_tokens", &u.reasoning)
		default:
			c.skip(0)
		}
	}
}

// takeDelta takes over a piece of output, if the event is one. The events that
// repeat the whole of a text at its end (.done) are none.
func (c *chunk) takeDelta(kind, delta []byte, index int64, item *responseItem) bool {
	switch string(kind) {
	case "response.output_text.delta", "response.refusal.delta":
		c.say(delta)
	case "response.reasoning_text.delta", "response.reasoning_summary_text.delta", "response.reasoning.delta":
		c.think(delta)
	case "response.function_call_arguments.delta":
		c.call(toolDelta{index: index, args: delta})
	case "response.output_item.added":
		if string(item.kind) == "function_call" {
			c.call(toolDelta{index: index, id: item.id, name: item.name, args: item.arguments})
		}
	case "response.custom_tool_call_input.delta", "response.mcp_call_arguments.delta", "response.code_interpreter_call_code.delta":
		if len(delta) > 0 { // of tools whose input need not be JSON
			c.payload += len(delta)
			c.has |= hasTool
		}
	default:
		return false
	}
	c.begun()
	return true
}

// takeResponse says what the state of a response means.
func (c *chunk) takeResponse(kind []byte, r *response) {
	status := r.status
	switch string(kind) {
	case "error":
		c.failed()
		return
	case "response.created", "response.queued", "response.in_progress":
		c.begun()
		return
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		c.has |= hasDone
		status = bytes.TrimPrefix(kind, []byte("response."))
	case "":
		if !r.list { // no answer
			return
		}
	default:
		return
	}
	c.begun()
	switch string(status) {
	case "completed":
		if c.ended(finishStop); r.tools {
			c.finish = finishTools
		}
	case "incomplete":
		switch string(r.reason) {
		case "max_output_tokens", "max_tokens", "":
			c.ended(finishLength)
		default:
			c.ended(r.reason)
		}
	case "failed":
		c.failed()
	case "cancelled":
		c.ended(finishAbort)
	}
}

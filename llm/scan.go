package llm

import "time"

// chunk is what one JSON object of an answer says: a chunk of a stream, or a
// whole body. Its byte slices lie in the scanned bytes or in scratch, and are
// valid until the next scan. Its text is valid UTF-8.
type chunk struct {
	content   []byte // of choice 0: content, text, refusal
	reasoning []byte // of choice 0
	payload   int    // bytes of generated text of all choices
	has       has
	finish    []byte // finish_reason of choice 0
	seen      uint64 // choices that appear, by index mod 64
	finished  uint64 // of these, choices with a finish_reason
	tools     []toolDelta
	listed    int64 // tokens that logprobs or token_ids list; 0: they list none
	items     items // vectors or scores
	usage     usage
	err       []byte  // raw value of "error", if it means one
	timings   []byte  // raw "timings" or "metrics"
	model     []byte  // raw "model"
	print     []byte  // raw "system_fingerprint"
	spent     []spent // times that the server tells of itself

	b       []byte
	i       int
	bad     bool
	lax     bool // take every shape of valid JSON: there is no second parser
	scratch []byte
	texts   [2][]byte // space for content and reasoning of several pieces
}

// spent is a time that a server says it took for something.
type spent struct {
	name string
	time time.Duration
}

// has marks what a chunk carries.
type has uint16

const (
	hasContent   has = 1 << iota // any choice
	hasReasoning                 // any choice
	hasTool                      // a name or arguments of a tool call
	hasDelta                     // a choice with a delta or a message
	hasFinish
	hasUsage
	hasError
	hasBadUsage // usage of a type that makes no sense
	hasInvalid  // bytes that are not UTF-8, replaced by U+FFFD
	hasDone     // nothing follows
	hasPing     // a keep-alive
	hasHidden   // reasoning of which a part may not be shown, although its tokens count
)

// usage holds the counts as sent; −1: not sent. Anthropic splits the prompt into
// three: fresh, written to the cache, and cached.
type usage struct {
	prompt, output, total, cached, reasoning int64
	fresh, written                           int64
}

var noUsage = usage{-1, -1, -1, -1, -1, -1, -1}

// toolDelta is a piece of a tool call.
type toolDelta struct {
	index    int64 // −1: not sent
	id, name []byte
	args     []byte
	whole    bool // a call of its own, with all of its arguments
}

// reset makes the chunk ready for other bytes. It goes field by field: the whole
// value at once is built aside and copied, with every event.
func (c *chunk) reset(b []byte) {
	c.content, c.reasoning, c.finish, c.err, c.timings, c.model, c.print = nil, nil, nil, nil, nil, nil, nil
	c.payload, c.has, c.seen, c.finished, c.listed = 0, 0, 0, 0, 0
	c.tools, c.spent, c.scratch = c.tools[:0], c.spent[:0], c.scratch[:0]
	c.texts[0], c.texts[1] = c.texts[0][:0], c.texts[1][:0]
	c.items = items{index: c.items.index[:0]}
	c.usage = noUsage
	c.b, c.i, c.bad, c.lax = b, 0, false, false
}

// small lets go of large space.
func (c *chunk) small() {
	c.scratch, c.texts = small(c.scratch), [2][]byte{small(c.texts[0]), small(c.texts[1])}
	if cap(c.items.index) > 32<<10 {
		c.items.index = nil
	}
}

// gather adds a piece to a text. The first piece is taken as it lies; more of
// them are put together in the text's own space, so that the cost stays linear.
func gather(text, space *[]byte, piece []byte) {
	switch {
	case len(piece) == 0:
	case len(*text) == 0:
		*text = piece
	default:
		if len(*space) == 0 {
			*space = append(*space, *text...)
		}
		*space = append(*space, piece...)
		*text = *space
	}
}

// scan reads the object in one pass without allocation. It takes only what it
// understands entirely: false means that the JSON is broken or of an unusual
// shape, and that parse must look at it. What it accepts is valid JSON, and
// parse would give the same.
func (c *chunk) scan(b []byte) bool {
	c.reset(b)
	c.space()
	var seen keys
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case "choices":
			c.once(&seen, keyChoices)
			c.choices()
		case "usage":
			c.once(&seen, keyUsage)
			c.scanUsage()
		case "error":
			c.once(&seen, keyError)
			from := c.i
			c.skip(0)
			c.setError(c.b[from:c.i])
		case "timings", "metrics":
			c.once(&seen, keyTimings)
			from := c.i
			c.skip(0)
			if !c.bad && c.b[from] == '{' {
				c.timings = c.b[from:c.i]
			}
		case "model":
			from := c.i
			c.skip(0)
			c.model = c.b[from:c.i]
		case "system_fingerprint":
			from := c.i
			c.skip(0)
			c.print = c.b[from:c.i]
		case "object":
			c.once(&seen, keyObject)
			c.bad = string(c.str()) == "error" || c.bad // an old shape of errors
		default:
			c.skip(0)
		}
	}
	c.space()
	return !c.bad && c.i == len(c.b)
}

// keys is the set of keys of interest that an object has shown. One that comes
// twice is unusual.
type keys uint32

const (
	keyChoices keys = 1 << iota
	keyUsage
	keyError
	keyTimings
	keyObject
	keyIndex
	keyDelta
	keyText
	keyFinish
	keyLogprobs
	keyTokenIDs
	keyContent
	keyRefusal
	keyReasoning
	keyReasoningContent
	keyTools
	keyPrompt
	keyOutput
	keyTotal
	keyPromptDetails
	keyOutputDetails
	keyID
	keyName
	keyArguments
	keyFunction
)

func (c *chunk) once(seen *keys, key keys) {
	c.bad = c.bad || *seen&key != 0
	*seen |= key
}

// setError keeps the value of "error" unless it means that there is none.
func (c *chunk) setError(raw []byte) {
	switch string(raw) {
	case "null", "false", `""`, "{}", "[]", "0":
		return
	}
	if len(raw) > 2 && (raw[0] == '{' || raw[0] == '[') && !hasElement(raw) {
		return
	}
	c.err = raw
	c.has |= hasError
}

// hasElement reports whether a valid array or object has more than space in it.
func hasElement(raw []byte) bool {
	for _, b := range raw[1 : len(raw)-1] {
		if b != ' ' && b != '\t' && b != '\n' && b != '\r' {
			return true
		}
	}
	return false
}

func (c *chunk) choices() {
	if c.null() {
		return
	}
	n := int64(0)
	for more := c.enterArray(); more; more = c.nextElement() {
		c.choice(n)
		n++
	}
}

// choiceText is the generated text of one choice.
type choiceText struct {
	content, refusal, text      []byte
	reasoning, reasoningContent []byte
}

func (c *chunk) choice(position int64) {
	var (
		seen   keys
		index  = position
		text   choiceText
		finish []byte
		listed int64
	)
	tools := len(c.tools)
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case "index":
			c.once(&seen, keyIndex)
			index = c.integer()
		case "delta", "message":
			c.once(&seen, keyDelta)
			c.delta(&text)
		case "text":
			c.once(&seen, keyText)
			text.text = c.str()
		case "finish_reason":
			c.once(&seen, keyFinish)
			finish = c.str()
		case "logprobs":
			c.once(&seen, keyLogprobs)
			listed = max(listed, c.logprobs())
		case "token_ids":
			c.once(&seen, keyTokenIDs)
			if !c.null() {
				listed = max(listed, c.count())
			}
		default:
			c.skip(0)
		}
	}
	if c.bad || index < 0 {
		c.bad = true
		return
	}
	c.addChoice(index, &text, tools, finish, listed)
}

// addChoice merges one choice into the chunk; its tool calls start at tools.
func (c *chunk) addChoice(index int64, t *choiceText, tools int, finish []byte, listed int64) {
	bit := uint64(1) << (index & 63)
	c.seen |= bit
	if len(finish) > 0 {
		c.finished |= bit
		c.has |= hasFinish
	}
	reasoning := t.reasoningContent
	if len(reasoning) == 0 {
		reasoning = t.reasoning // vLLM sends both, with one text
	}
	content := c.join(c.join(t.content, t.text), t.refusal)
	if len(content) > 0 {
		c.has |= hasContent
	}
	if len(reasoning) > 0 {
		c.has |= hasReasoning
	}
	c.listed += listed
	c.payload += len(content) + len(reasoning)
	for _, d := range c.tools[tools:] {
		if n := len(d.name) + len(d.args); n > 0 {
			c.payload += n
			c.has |= hasTool
		}
	}
	if index != 0 {
		c.tools = c.tools[:tools]
		return
	}
	gather(&c.content, &c.texts[0], content)
	gather(&c.reasoning, &c.texts[1], reasoning)
	if len(finish) > 0 {
		c.finish = finish
	}
}

func (c *chunk) join(a, b []byte) []byte {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	from := len(c.scratch)
	c.scratch = append(append(c.scratch, a...), b...)
	return c.scratch[from:len(c.scratch):len(c.scratch)]
}

func (c *chunk) delta(t *choiceText) {
	if c.null() {
		return
	}
	c.has |= hasDelta
	var seen keys
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case "content":
			c.once(&seen, keyContent)
			t.content = c.str()
		case "refusal":
			c.once(&seen, keyRefusal)
			t.refusal = c.str()
		case "reasoning_content":
			c.once(&seen, keyReasoningContent)
			t.reasoningContent = c.str()
		case "reasoning":
			c.once(&seen, keyReasoning)
			t.reasoning = c.str()
		case "tool_calls":
			c.once(&seen, keyTools)
			if !c.null() {
				for more := c.enterArray(); more; more = c.nextElement() {
					c.tool()
				}
			}
		case "function_call":
			c.bad = !c.null() || c.bad // an old shape
		default:
			c.skip(0)
		}
	}
}

func (c *chunk) tool() {
	d := toolDelta{index: -1}
	var seen keys
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case "index":
			c.once(&seen, keyIndex)
			if !c.null() {
				d.index = c.integer()
			}
		case "id":
			c.once(&seen, keyID)
			d.id = c.str()
		case "function":
			c.once(&seen, keyFunction)
			if !c.null() {
				c.function(&d)
			}
		default:
			c.skip(0)
		}
	}
	c.tools = append(c.tools, d)
}

func (c *chunk) function(d *toolDelta) {
	var seen keys
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case "name":
			c.once(&seen, keyName)
			d.name = c.str()
		case "arguments":
			c.once(&seen, keyArguments)
			d.args = c.str()
		default:
			c.skip(0)
		}
	}
}

// logprobs counts the tokens that a choice lists: of a chat in content, of a
// completion in tokens.
func (c *chunk) logprobs() (n int64) {
	if c.null() {
		return 0
	}
	var seen keys
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case "content", "tokens":
			c.once(&seen, keyContent)
			if !c.null() {
				n = c.count()
			}
		default:
			c.skip(0)
		}
	}
	return n
}

func (c *chunk) scanUsage() {
	if c.null() {
		return
	}
	c.has |= hasUsage
	var seen keys
	u := &c.usage
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case "prompt_tokens":
			c.once(&seen, keyPrompt)
			c.optional(&u.prompt)
		case "completion_tokens":
			c.once(&seen, keyOutput)
			c.optional(&u.output)
		case "total_tokens":
			c.once(&seen, keyTotal)
			c.optional(&u.total)
		case "prompt_tokens_details":
			c.once(&seen, keyPromptDetails)
			c.detail("cached_tokens", &u.cached)
		case "completion_tokens_details":
			c.once(&seen, keyOutputDetails)
			c.detail("reasoning_tokens", &u.reasoning)
		default:
			c.skip(0)
		}
	}
}

func (c *chunk) detail(name string, n *int64) {
	if c.null() {
		return
	}
	found := false
	for key, more := c.enter(); more; key, more = c.next() {
		if string(key) != name {
			c.skip(0)
			continue
		}
		c.bad = c.bad || found
		found = true
		c.optional(n)
	}
}

func (c *chunk) optional(n *int64) {
	if !c.null() {
		*n = c.integer()
	}
}

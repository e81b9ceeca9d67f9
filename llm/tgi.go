package llm

import "time"

// Text Generation Inference of Hugging Face, by its own two paths.

// appendTGI appends a request. The server refuses a temperature of 0 and a top_p
// of 1, which both mean what it does without them.
func appendTGI(b []byte, _ *Target, r *Request) ([]byte, error) {
	o := newObject(b, r.Extra)
	if o.field("inputs") {
		o.b = appendPrompt(o.b, r)
	}
	if o.field("parameters") {
		p := newObject(o.b, nil)
		p.literal("details", "true")
		if r.MaxTokens > 0 {
			p.integer("max_new_tokens", r.MaxTokens)
		}
		switch {
		case r.Temperature == nil:
		case *r.Temperature == 0:
			p.literal("do_sample", "false")
		default:
			p.literal("do_sample", "true")
			p.number("temperature", r.Temperature)
		}
		if r.TopP != nil && *r.TopP < 1 {
			p.number("top_p", r.TopP)
		}
		if r.Seed != nil {
			p.integer("seed", *r.Seed)
		}
		p.list("stop", r.Stop)
		o.b = append(p.b, '}')
	}
	return o.end()
}

// readTGI reads an event, which is of one token, or a whole answer.
func readTGI(c *chunk, _, data []byte) error {
	c.open(data)
	if c.peek() == '[' { // as the path / and older servers have it
		if c.array() {
			c.tgi()
			c.bad = c.nextElement() || c.bad // another answer
		}
		return c.close()
	}
	if !c.object() {
		return c.close()
	}
	c.tgi()
	return c.close()
}

// tgiToken is the token of an event.
type tgiToken struct {
	text    []byte
	special bool // of the tokenizer's own: no text
}

func (c *chunk) tgi() {
	if !c.object() {
		return
	}
	var (
		token     tgiToken
		streamed  bool
		generated []byte
		whole     bool
		failed    bool
	)
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case "token":
			if streamed = c.peek() == '{'; streamed {
				token = c.tgiToken()
			} else {
				c.skip(0)
			}
		case "generated_text":
			whole = c.peek() == '"'
			generated = c.word()
		case "details":
			c.tgiDetails()
		case "error":
			c.setError(c.raw())
			failed = c.err != nil
		default:
			c.skip(0)
		}
	}
	switch {
	case failed:
		c.err = c.b // with error_type
	case streamed:
		c.begun()
		if !token.special {
			c.say(token.text)
			c.listed = 1
		}
	case whole:
		c.begun()
		c.say(generated)
	}
}

func (c *chunk) tgiToken() (t tgiToken) {
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case "text":
			t.text = c.str()
		case "special":
			t.special = string(c.raw()) == "true"
		default:
			c.skip(0)
		}
	}
	return t
}

func (c *chunk) tgiDetails() {
	if !c.object() {
		return
	}
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case "finish_reason":
			if reason := c.word(); len(reason) > 0 {
				c.ended(tgiFinish(reason))
				c.has |= hasDone // the API has no other mark
			}
		case "generated_tokens":
			c.has |= hasUsage
			c.amount(&c.usage.output)
		case "input_length":
			c.has |= hasUsage
			c.amount(&c.usage.prompt)
		default:
			c.skip(0)
		}
	}
}

func tgiFinish(reason []byte) []byte {
	switch string(reason) {
	case "eos_token", "stop_sequence":
		return finishStop
	}
	return reason
}

// tgiFields are the header fields by which the server tells of a whole answer:
// times in milliseconds, and tokens. Its x-compute-time is not read: it repeats
// the total, in a unit that changed between versions.
var tgiFields = [...]struct {
	field, name string
}{
	{"x-total-time", "total"},
	{"x-validation-time", "validation"},
	{"x-queue-time", "queue"},
	{"x-inference-time", "inference"},
	{"x-time-per-token", "time_per_token"},
	{"x-prompt-tokens", ""},
	{"x-generated-tokens", ""},
}

const (
	tgiTimes     = 5 // of the fields
	tgiPrompt    = 5
	tgiGenerated = 6
)

// told holds the numbers of tgiFields, plus one; 0: not sent.
type told [len(tgiFields)]int64

// field keeps a header field if it is one of them.
func (n *told) field(name, value []byte) {
	for i := range tgiFields {
		if !is(name, tgiFields[i].field) {
			continue
		}
		if v, ok := digits(value); ok && v < maxNumber {
			n[i] = v + 1
		}
	}
}

// takeHead takes over what the head of an answer told.
func (t *tally) takeHead(n *told) {
	for i, v := range n[:tgiTimes] {
		if v > 0 && v-1 <= int64(maxSpend/time.Millisecond) {
			t.spent = append(t.spent, spent{tgiFields[i].name, time.Duration(v-1) * time.Millisecond})
		}
	}
	if v := n[tgiPrompt]; v > 0 {
		t.usage.prompt = v - 1
	}
	if v := n[tgiGenerated]; v > 0 {
		t.usage.output = v - 1
	}
}

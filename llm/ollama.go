package llm

import "time"

// Ollama, whose streams are JSON lines.

// ollamaGenerate names the dialect of Ollama's other path. It is no API that a
// Target can give.
const ollamaGenerate = "ollama, generate"

func appendOllamaChat(b []byte, t *Target, r *Request) ([]byte, error) {
	o := newObject(b, r.Extra)
	o.model(t)
	if o.field("messages") {
		o.b = appendDialogue(o.b, r.dialogue())
	}
	return o.ollama(r)
}

func appendOllamaPrompt(b []byte, t *Target, r *Request) ([]byte, error) {
	o := newObject(b, r.Extra)
	o.model(t)
	if o.field("prompt") {
		o.b = appendPrompt(o.b, r)
	}
	return o.ollama(r)
}

// ollama appends what both paths take. A stream is what the server gives unless
// it is told.
func (o *object) ollama(r *Request) ([]byte, error) {
	if r.Stream {
		o.literal("stream", "true")
	} else {
		o.literal("stream", "false")
	}
	if (r.MaxTokens > 0 || r.Temperature != nil || r.TopP != nil || r.Seed != nil || len(r.Stop) > 0) && o.field("options") {
		p := newObject(o.b, nil)
		if r.MaxTokens > 0 {
			p.integer("num_predict", r.MaxTokens)
		}
		p.number("temperature", r.Temperature)
		p.number("top_p", r.TopP)
		if r.Seed != nil {
			p.integer("seed", *r.Seed)
		}
		p.list("stop", r.Stop)
		o.b = append(p.b, '}')
	}
	return o.end()
}

// readOllama reads a line of a stream, or a whole answer, of either path.
func readOllama(c *chunk, _, data []byte) error {
	c.open(data)
	if !c.object() {
		return c.close()
	}
	var (
		reason []byte
		done   bool
	)
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case "message":
			c.ollamaMessage()
		case "response":
			c.begun()
			c.say(c.str())
		case "thinking":
			c.think(c.str())
		case "done":
			done = string(c.raw()) == "true"
		case "done_reason":
			reason = c.word()
		case "error":
			c.setError(c.raw())
		case "prompt_eval_count":
			c.has |= hasUsage
			c.amount(&c.usage.prompt)
		case "eval_count":
			c.has |= hasUsage
			c.amount(&c.usage.output)
		case "total_duration":
			c.spend("total", time.Nanosecond)
		case "load_duration":
			c.spend("load", time.Nanosecond)
		case "prompt_eval_duration":
			c.spend("prompt_eval", time.Nanosecond)
		case "eval_duration":
			c.spend("eval", time.Nanosecond)
		default:
			c.skip(0)
		}
	}
	if err := c.close(); err != nil {
		return err
	}
	if done {
		c.ended(reason)
		c.has |= hasDone
	}
	return nil
}

func (c *chunk) ollamaMessage() {
	if !c.object() {
		return
	}
	c.begun()
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case "content":
			c.say(c.str())
		case "thinking":
			c.think(c.str())
		case "tool_calls":
			for more := c.array(); more; more = c.nextElement() {
				c.ollamaTool()
			}
		default:
			c.skip(0)
		}
	}
}

// ollamaTool reads a call, which always comes whole.
func (c *chunk) ollamaTool() {
	if !c.object() {
		return
	}
	d := toolDelta{index: -1, whole: true}
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case "id":
			d.id = c.word()
		case "function":
			if !c.object() {
				continue
			}
			for key, more := c.enter(); more; key, more = c.next() {
				switch string(key) {
				case "name":
					d.name = c.word()
				case "arguments":
					d.args = c.raw()
				default:
					c.skip(0)
				}
			}
		default:
			c.skip(0)
		}
	}
	c.call(d)
}

package llm

import (
	"slices"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

// Embeddings and rerank: one whole answer with an item for each thing asked,
// and no tokens of output.

// inputs returns what is to be embedded: each message is an input of its own.
func (r *Request) inputs() []corpus.Message {
	if len(r.Messages) == 0 {
		return []corpus.Message{{Content: r.Prompt}}
	}
	return r.Messages
}

// documents returns the query and what is to be ranked by it: the first message
// and the others. A text alone is ranked by itself.
func (r *Request) documents() (query string, documents []corpus.Message) {
	all := r.inputs()
	if len(all) == 1 {
		return all[0].Content, all
	}
	return all[0].Content, all[1:]
}

func appendEmbeddings(b []byte, t *Target, r *Request) ([]byte, error) {
	o := newObject(b, r.Extra)
	o.model(t)
	if inputs := r.inputs(); len(inputs) == 1 {
		o.text("input", inputs[0].Content)
	} else {
		o.texts("input", inputs)
	}
	return o.end()
}

func appendRerank(b []byte, t *Target, r *Request) ([]byte, error) {
	o := newObject(b, r.Extra)
	o.model(t)
	query, documents := r.documents()
	o.text("query", query)
	o.texts("documents", documents)
	return o.end()
}

func (o *object) texts(name string, messages []corpus.Message) {
	if !o.field(name) {
		return
	}
	o.b = append(o.b, '[')
	for i := range messages {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = appendString(o.b, messages[i].Content)
	}
	o.b = append(o.b, ']')
}

// items are the vectors or scores of an answer.
type items struct {
	index  []int64 // in the order of the answer; −1: not said
	length int64   // of the first vector, in numbers or, as base64, in bytes
	ragged bool    // of other lengths
}

func readEmbeddings(c *chunk, _, data []byte) error {
	return c.readItems(data, "data", "data", (*chunk).embedding)
}

func readRerank(c *chunk, _, data []byte) error {
	return c.readItems(data, "results", "data", (*chunk).score)
}

// readItems reads an answer with a list of items under either key. The items'
// own text is its content, for the digest.
func (c *chunk) readItems(data []byte, list, also string, item func(*chunk)) error {
	c.open(data)
	if !c.object() {
		return c.close()
	}
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case list, also:
			if c.peek() == '[' {
				c.seen, c.finished = 1, 1
			}
			for more := c.array(); more; more = c.nextElement() {
				item(c)
			}
		case "usage":
			c.itemsUsage()
		case "error":
			c.setError(c.raw())
		default:
			c.skip(0)
		}
	}
	if len(c.texts[0]) > 0 {
		c.content, c.payload = c.texts[0], len(c.texts[0])
		c.has |= hasContent
	}
	return c.close()
}

// addItem takes over one item.
func (c *chunk) addItem(index int64, text []byte) {
	c.items.index = append(c.items.index, index)
	c.texts[0] = append(append(c.texts[0], text...), '\n')
}

// embedding reads one vector, of numbers or as base64. One without a number is
// no item.
func (c *chunk) embedding() {
	if !c.object() {
		return
	}
	index, length := int64(-1), int64(0)
	var text []byte
	for key, more := c.enter(); more; key, more = c.next() {
		switch {
		case string(key) == "index":
			index = c.index()
		case string(key) == "embedding" && c.peek() == '[':
			from := c.i
			for more := c.enterArray(); more; more = c.nextElement() {
				c.number() // also null, which is how some write NaN, is none
				length++
			}
			text = c.b[from:c.i]
		case string(key) == "embedding":
			text = c.word()
			length = int64(len(text))
		default:
			c.skip(0)
		}
	}
	if length == 0 {
		return
	}
	if c.items.length == 0 {
		c.items.length = length
	}
	c.items.ragged = c.items.ragged || length != c.items.length
	c.addItem(index, text)
}

// score reads the place and the score of one document.
func (c *chunk) score() {
	if !c.object() {
		return
	}
	index := int64(-1)
	var score []byte
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case "index":
			index = c.index()
		case "relevance_score", "score":
			from := c.i
			if !c.null() {
				c.number()
				score = c.b[from:c.i]
			}
		default:
			c.skip(0)
		}
	}
	if len(score) > 0 {
		c.addItem(index, score)
	}
}

// itemsUsage reads usage, all of which is of the prompt; some servers give a
// total alone, some an output of 0.
func (c *chunk) itemsUsage() {
	if !c.usageObject() {
		return
	}
	total := int64(-1)
	for key, more := c.enter(); more; key, more = c.next() {
		switch string(key) {
		case "prompt_tokens":
			c.amount(&c.usage.prompt)
		case "total_tokens":
			c.amount(&total)
		default:
			c.skip(0)
		}
	}
	if c.usage.prompt < 0 {
		c.usage.prompt = total
	}
}

func checkEmbeddings(t *tally) error {
	n := len(t.req.inputs())
	if v, ok := t.req.Extra["input"]; ok {
		n = lengthOf(v)
	}
	if t.chunk.items.ragged {
		return fail(record.Malformed, "vectors of different lengths")
	}
	return t.checkItems(n, n, "vectors")
}

func checkRerank(t *tally) error {
	_, documents := t.req.documents()
	n := len(documents)
	if v, ok := t.req.Extra["documents"]; ok {
		n = lengthOf(v)
	}
	want := n
	switch top := t.req.Extra["top_n"].(type) {
	case int:
		want = min(n, top)
	case int64:
		want = min(n, int(top))
	case float64:
		want = min(n, int(top))
	}
	return t.checkItems(want, n, "scores")
}

// lengthOf returns how many inputs a value is that the caller gave.
func lengthOf(v any) int {
	switch v := v.(type) {
	case []string:
		return len(v)
	case []any:
		return len(v)
	}
	return 1
}

// checkItems demands so many items, each for another of n inputs.
func (t *tally) checkItems(want, n int, what string) error {
	index := t.chunk.items.index
	switch {
	case len(index) < want:
		return fail(record.EmptyOutput, "%d of %d %s are missing", want-len(index), want, what)
	case len(index) > want:
		return fail(record.Malformed, "%d %s for %d inputs", len(index), what, want)
	}
	slices.Sort(index)
	for i, at := range index {
		if at < 0 && want > 1 || at >= int64(n) || i > 0 && at == index[i-1] {
			return fail(record.Malformed, "the indices of the %s do not name one input each", what)
		}
	}
	return nil
}

package corpus

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// The bounds of one case beyond its bytes. Ids and labels go into every record
// and every report.
const (
	maxID       = 256
	maxLabels   = 16
	maxLabel    = 128
	maxMessages = 10_000
	maxTokens   = 1 << 30
)

var formatNames = []string{"assay", "sharegpt", "openai", "qa", "ifeval", "advbench", "harmbench", "xstest", "azure", "burstgpt", "mooncake", "servegen"}

var formats = map[string]func(*cursor) (Case, error){
	"assay":    assayCase,
	"sharegpt": shareGPTCase,
	"openai":   openAICase,
	"qa":       qaCase,
	"ifeval":   ifevalCase,
}

func bad(hint, format string, args ...any) error {
	return &syntaxError{at: -1, what: fmt.Sprintf(format, args...), hint: hint}
}

var assayKeys = []string{"id", "prompt", "messages", "max_tokens", "expect", "labels"}

func assayCase(c *cursor) (Case, error) {
	var got Case
	has := map[string]bool{}
	err := c.object(func(key string) (err error) {
		has[key] = true
		switch key {
		case "id":
			got.ID, err = c.id()
		case "prompt":
			got.Prompt, err = c.text()
		case "messages":
			got.Messages, err = c.messages()
		case "max_tokens":
			got.MaxTokens, err = c.tokens()
		case "expect":
			got.Expect, err = c.text()
		case "labels":
			got.Labels, err = c.labels()
		default:
			return bad("keys are "+strings.Join(assayKeys, ", ")+nearest(key), "unknown key %s", quote(key))
		}
		return err
	})
	switch {
	case err != nil:
		return Case{}, err
	case has["prompt"] == has["messages"]:
		return Case{}, bad("give exactly one of them", "a case needs either a prompt or messages")
	case has["prompt"] && strings.TrimSpace(got.Prompt) == "":
		return Case{}, bad("", "the prompt is empty")
	case has["messages"]:
		return got, asked(got.Messages)
	}
	return got, nil
}

// nearest suggests the key that was meant.
func nearest(key string) string {
	fold := func(s string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(s))
	}
	for _, k := range assayKeys {
		a, b := fold(key), fold(k)
		if a == b || len(a) > 2 && (strings.HasPrefix(b, a) || strings.HasPrefix(a, b)) {
			return "; did you mean " + strconv.Quote(k) + "?"
		}
	}
	return ""
}

// asked reports messages that ask for nothing.
func asked(messages []Message) error {
	if len(messages) == 0 {
		return bad("", "the list of messages is empty")
	}
	last := messages[len(messages)-1]
	switch {
	case last.Role != "user":
		return bad("end with the user's message; the right answer goes into \"expect\"", "the last message is of role %s", quote(last.Role))
	case strings.TrimSpace(last.Content) == "":
		return bad("", "the last message is empty")
	}
	return nil
}

var shareGPTRoles = map[string]string{
	"human": "user", "user": "user", "system": "system",
	"gpt": "assistant", "chatgpt": "assistant", "assistant": "assistant", "bing": "assistant", "bard": "assistant",
}

func shareGPTCase(c *cursor) (Case, error) {
	var got Case
	var turns []Message
	has := false
	err := c.object(func(key string) (err error) {
		switch key {
		case "id":
			got.ID, err = c.id()
		case "conversations":
			has = true
			turns, err = c.turns()
		default:
			err = c.skip()
		}
		return err
	})
	if err != nil {
		return Case{}, err
	}
	if !has {
		return Case{}, bad(`ShareGPT rows are {"id": …, "conversations": [{"from": "human", "value": …}, …]}`, "no conversations")
	}
	for i, t := range turns {
		switch t.Role {
		case "system":
			if len(got.Messages) == 0 {
				got.Messages = append(got.Messages, t)
			}
			continue
		case "assistant":
			continue
		}
		got.Messages = append(got.Messages, t)
		if i+1 < len(turns) && turns[i+1].Role == "assistant" {
			got.Expect = turns[i+1].Content
		}
		return got, asked(got.Messages)
	}
	return Case{}, bad("", "the conversation has no human turn")
}

func (c *cursor) turns() ([]Message, error) {
	var turns []Message
	err := c.list(func() error {
		if len(turns) == maxMessages {
			return bad("", "more than %d turns", maxMessages)
		}
		var from string
		var m Message
		err := c.object(func(key string) (err error) {
			switch key {
			case "from":
				from, err = c.text()
			case "value":
				m.Content, err = c.text()
			default:
				err = c.skip()
			}
			return err
		})
		if err != nil {
			return err
		}
		if m.Role = shareGPTRoles[from]; m.Role == "" {
			return bad("turns are from human, gpt or system", "turn %d is from %s", len(turns)+1, quote(from))
		}
		turns = append(turns, m)
		return nil
	})
	return turns, err
}

func openAICase(c *cursor) (Case, error) {
	got, has, err := c.request(true)
	if err != nil {
		return Case{}, err
	}
	if !has {
		return Case{}, bad(`rows are {"messages": [{"role": "user", "content": …}]}`, "no messages")
	}
	if n := len(got.Messages) - 1; n > 0 && got.Messages[n].Role == "assistant" {
		got.Expect = got.Messages[n].Content
		got.Messages = got.Messages[:n]
	}
	return got, asked(got.Messages)
}

// qaCase reads a question with its answer. GSM8K's answers show the way and have the
// result behind four hashes.
func qaCase(c *cursor) (Case, error) {
	var got Case
	var question string
	has := map[string]bool{}
	err := c.object(func(key string) (err error) {
		has[key] = true
		switch key {
		case "id":
			got.ID, err = c.id()
		case "question":
			question, err = c.text()
		case "answer":
			got.Expect, err = c.text()
		case "labels":
			got.Labels, err = c.labels()
		default:
			err = c.skip()
		}
		return err
	})
	if err != nil {
		return Case{}, err
	}
	if !has["question"] || !has["answer"] {
		return Case{}, bad(`rows are {"question": …, "answer": …}`, "a case needs a question and an answer")
	}
	if _, result, ok := strings.Cut(got.Expect, "#### "); ok {
		got.Expect = strings.TrimSpace(result)
	}
	got.Messages = []Message{{Role: "user", Content: question}}
	return got, asked(got.Messages)
}

// ifevalCase reads a row of IFEval. What is expected is its instructions, as the row
// has them: {"instruction_id_list": […], "kwargs": […]}.
func ifevalCase(c *cursor) (Case, error) {
	var got Case
	var prompt, ids, kwargs string
	err := c.object(func(key string) (err error) {
		switch key {
		case "key":
			got.ID, err = c.id()
		case "prompt":
			prompt, err = c.text()
		case "instruction_id_list":
			ids, err = c.raw()
		case "kwargs":
			kwargs, err = c.raw()
		default:
			err = c.skip()
		}
		return err
	})
	if err != nil {
		return Case{}, err
	}
	if ids == "" || kwargs == "" {
		return Case{}, bad(`rows are {"key": …, "prompt": …, "instruction_id_list": […], "kwargs": […]}`, "a case needs instructions and their arguments")
	}
	got.Expect = `{"instruction_id_list":` + ids + `,"kwargs":` + kwargs + `}`
	got.Messages = []Message{{Role: "user", Content: prompt}}
	return got, asked(got.Messages)
}

// raw returns a list as it is written.
func (c *cursor) raw() (string, error) {
	if c.peek() != '[' {
		return "", c.fail(c.pos, "want a list, got %s", c.kind())
	}
	at := c.pos
	err := c.skip()
	return string(c.data[at:c.pos]), err
}

// request reads an object with messages; outer says that it may be a line of a
// batch file, whose request is in its body.
func (c *cursor) request(outer bool) (got Case, has bool, err error) {
	var inner Case
	var id string
	err = c.object(func(key string) (err error) {
		switch {
		case key == "id" || key == "custom_id":
			id, err = c.id()
		case key == "messages":
			has = true
			got.Messages, err = c.messages()
		case key == "max_tokens" || key == "max_completion_tokens":
			if !c.null() {
				got.MaxTokens, err = c.tokens()
			}
		case key == "body" && outer:
			inner, has, err = c.request(false)
		default:
			err = c.skip()
		}
		return err
	})
	if inner.Messages != nil {
		got.Messages, got.MaxTokens = inner.Messages, inner.MaxTokens
	}
	got.ID = id
	return got, has, err
}

var roles = []string{"system", "developer", "user", "assistant"}

func (c *cursor) messages() ([]Message, error) {
	var messages []Message
	err := c.list(func() error {
		if len(messages) == maxMessages {
			return bad("", "more than %d messages", maxMessages)
		}
		var m Message
		err := c.object(func(key string) (err error) {
			switch key {
			case "role":
				m.Role, err = c.text()
			case "content":
				m.Content, err = c.content()
			case "name", "refusal", "weight", "annotations":
				err = c.skip()
			default:
				if !c.null() {
					err = bad("only text is supported: role and content", "message %d has the key %s", len(messages)+1, quote(key))
				}
			}
			return err
		})
		if err != nil {
			return err
		}
		if !slices.Contains(roles, m.Role) {
			return bad("roles are "+strings.Join(roles, ", "), "message %d is of role %s", len(messages)+1, quote(m.Role))
		}
		messages = append(messages, m)
		return nil
	})
	return messages, err
}

// content reads text, or a list of text parts, which it joins.
func (c *cursor) content() (string, error) {
	if c.peek() != '[' {
		return c.text()
	}
	var all strings.Builder
	err := c.list(func() error {
		var kind, text string
		err := c.object(func(key string) (err error) {
			switch key {
			case "type":
				kind, err = c.text()
			case "text":
				text, err = c.text()
			default:
				err = c.skip()
			}
			return err
		})
		if err == nil && kind != "text" {
			err = bad("only text is supported", "a content part is of type %s", quote(kind))
		}
		all.WriteString(text)
		return err
	})
	return all.String(), err
}

// id reads an id: a string or a whole number, short and printable.
func (c *cursor) id() (string, error) {
	if b := c.peek(); b == '-' || b >= '0' && b <= '9' {
		at := c.pos
		s, err := c.number()
		if err == nil && strings.ContainsAny(s, ".eE") {
			err = c.fail(at, "the id %s is not a whole number", quote(s))
		}
		return s, err
	}
	at := c.pos
	s, err := c.text()
	switch {
	case err != nil:
		return "", err
	case len(s) > maxID:
		return "", c.fail(at, "the id is longer than %d bytes", maxID)
	case !printable(s):
		return "", c.fail(at, "the id %s has characters that cannot be printed", quote(s))
	}
	return s, nil
}

// tokens reads a positive number of tokens.
func (c *cursor) tokens() (int64, error) {
	c.space()
	at := c.pos
	if b := c.peek(); b != '-' && (b < '0' || b > '9') {
		return 0, c.fail(at, "want a number of tokens, got %s", c.kind())
	}
	s, err := c.number()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || n > maxTokens {
		return 0, c.fail(at, "want a whole number of tokens from 1 to %d, got %s", maxTokens, s)
	}
	return n, nil
}

func (c *cursor) labels() (map[string]string, error) {
	labels := map[string]string{}
	err := c.object(func(key string) error {
		c.space()
		at := c.pos
		value, err := c.text()
		switch {
		case err != nil:
			return err
		case len(labels) == maxLabels:
			return c.fail(at, "more than %d labels", maxLabels)
		case key == "" || len(key) > maxLabel || len(value) > maxLabel || !printable(key) || !printable(value):
			return c.fail(at, "the label %s is empty, longer than %d bytes or not printable", quote(key), maxLabel)
		}
		labels[key] = value
		return nil
	})
	if len(labels) == 0 {
		return nil, err
	}
	return labels, err
}

// printable reports text that can stand on one line of a report.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) })
}

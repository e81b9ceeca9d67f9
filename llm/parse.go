package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// parse reads the object with encoding/json: slower than scan, of any shape
// that some server was seen to send. An error never quotes the input.
func (c *chunk) parse(b []byte) error {
	c.reset(b)
	if !json.Valid(b) {
		return errors.New("an event that is not JSON")
	}
	if !utf8.Valid(b) {
		c.has |= hasInvalid
	}
	var top map[string]json.RawMessage
	if json.Unmarshal(b, &top) != nil {
		return nil // valid, but no object: says nothing
	}
	if raw, ok := top["error"]; ok {
		c.setError(raw)
	}
	if string(top["object"]) == `"error"` && c.err == nil {
		c.setError(b)
	}
	for _, key := range []string{"timings", "metrics"} {
		if raw := top[key]; len(raw) > 0 && raw[0] == '{' && c.timings == nil {
			c.timings = raw
		}
	}
	c.model, c.print = top["model"], top["system_fingerprint"]
	c.parseUsage(top["usage"])
	var choices []json.RawMessage
	if err := decode(top["choices"], &choices); err != nil {
		return errors.New("choices is not a list")
	}
	for i, raw := range choices {
		if err := c.parseChoice(int64(i), raw); err != nil {
			return fmt.Errorf("choices[%d]: %w", i, err)
		}
	}
	return nil
}

// decode unmarshals a value that may be missing or null.
func decode(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, into)
}

func (c *chunk) parseChoice(position int64, raw json.RawMessage) error {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil || m == nil {
		return errors.New("not an object")
	}
	index := position
	if raw, ok := m["index"]; ok {
		n, ok := number(raw)
		if !ok || n < 0 {
			return errors.New("index is not a number")
		}
		index = n
	}
	var t choiceText
	var err error
	if t.text, err = text(m["text"]); err != nil {
		return fmt.Errorf("text %w", err)
	}
	tools := len(c.tools)
	for _, key := range []string{"message", "delta"} {
		if err := c.parseDelta(m[key], &t); err != nil {
			return fmt.Errorf("%s.%w", key, err)
		}
	}
	var finish *string
	if decode(m["finish_reason"], &finish) != nil {
		return errors.New("finish_reason is not a string")
	}
	var reason []byte
	if finish != nil {
		reason = []byte(*finish)
	}
	c.addChoice(index, &t, tools, reason, max(parseLogprobs(m["logprobs"]), listLength(m["token_ids"])))
	return nil
}

func (c *chunk) parseDelta(raw json.RawMessage, t *choiceText) error {
	var m map[string]json.RawMessage
	if decode(raw, &m) != nil {
		return errors.New("it is not an object")
	}
	if m == nil {
		return nil
	}
	c.has |= hasDelta
	for _, f := range []struct {
		key  string
		into *[]byte
	}{{"content", &t.content}, {"refusal", &t.refusal}, {"reasoning_content", &t.reasoningContent}, {"reasoning", &t.reasoning}} {
		s, err := text(m[f.key])
		if err != nil {
			return fmt.Errorf("%s %w", f.key, err)
		}
		if len(s) > 0 {
			*f.into = s
		}
	}
	var calls []json.RawMessage
	if decode(m["tool_calls"], &calls) != nil {
		return errors.New("tool_calls is not a list")
	}
	for _, raw := range calls {
		if err := c.parseTool(raw); err != nil {
			return err
		}
	}
	if raw := m["function_call"]; len(raw) > 0 && string(raw) != "null" {
		d := toolDelta{index: 0}
		if err := parseFunction(raw, &d); err != nil {
			return err
		}
		c.tools = append(c.tools, d)
	}
	return nil
}

func (c *chunk) parseTool(raw json.RawMessage) error {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil || m == nil {
		return errors.New("tool_calls holds something else than objects")
	}
	d := toolDelta{index: -1}
	if raw, ok := m["index"]; ok && string(raw) != "null" {
		if d.index, ok = number(raw); !ok {
			return errors.New("tool_calls: index is not a number")
		}
	}
	var err error
	if d.id, err = text(m["id"]); err != nil {
		return fmt.Errorf("tool_calls: id %w", err)
	}
	if raw, ok := m["function"]; ok && string(raw) != "null" {
		if err := parseFunction(raw, &d); err != nil {
			return err
		}
	}
	c.tools = append(c.tools, d)
	return nil
}

func parseFunction(raw json.RawMessage, d *toolDelta) error {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return errors.New("a tool's function is not an object")
	}
	var err error
	if d.name, err = text(m["name"]); err != nil {
		return fmt.Errorf("a tool's name %w", err)
	}
	if raw := m["arguments"]; len(raw) > 0 && raw[0] == '{' {
		d.args = raw // an object instead of its text
	} else if d.args, err = text(raw); err != nil {
		return fmt.Errorf("a tool's arguments %w", err)
	}
	return nil
}

// text reads a string, null, or a list of parts of which the text is joined.
func text(raw json.RawMessage) ([]byte, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	switch raw[0] {
	case 'n':
		return nil, nil
	case '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return []byte(s), err
	case '[':
		var parts []struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(raw, &parts) != nil {
			break
		}
		var b []byte
		for _, p := range parts {
			b = append(b, p.Text...)
		}
		return b, nil
	}
	return nil, errors.New("is not a string")
}

// number reads an integer, also one written as 3.0 or 3e0.
func number(raw json.RawMessage) (int64, bool) {
	var f float64
	if len(raw) == 0 || raw[0] == 'n' || json.Unmarshal(raw, &f) != nil || f != math.Trunc(f) || math.Abs(f) > maxNumber {
		return 0, false
	}
	return int64(f), true
}

func listLength(raw json.RawMessage) int64 {
	var list []json.RawMessage
	if decode(raw, &list) != nil {
		return 0
	}
	return int64(len(list))
}

func parseLogprobs(raw json.RawMessage) int64 {
	var m map[string]json.RawMessage
	if decode(raw, &m) != nil {
		return 0
	}
	return max(listLength(m["content"]), listLength(m["tokens"]))
}

func (c *chunk) parseUsage(raw json.RawMessage) {
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	c.has |= hasUsage
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		c.has |= hasBadUsage
		return
	}
	get := func(m map[string]json.RawMessage, key string, into *int64) {
		raw, ok := m[key]
		if !ok || string(raw) == "null" {
			return
		}
		n, ok := number(raw)
		if !ok {
			c.has |= hasBadUsage
			return
		}
		*into = n
	}
	detail := func(key, name string, into *int64) {
		var d map[string]json.RawMessage
		if decode(m[key], &d) != nil {
			c.has |= hasBadUsage
			return
		}
		get(d, name, into)
	}
	u := &c.usage
	get(m, "prompt_tokens", &u.prompt)
	get(m, "completion_tokens", &u.output)
	get(m, "total_tokens", &u.total)
	detail("prompt_tokens_details", "cached_tokens", &u.cached)
	detail("completion_tokens_details", "reasoning_tokens", &u.reasoning)
}

// serverError is what an error value says of itself.
type serverError struct{ code, message string }

// parseError reads the value of "error", or the body of an error answer:
// a string, or an object with message, code, type; or anything at all.
func parseError(raw []byte) (e serverError) {
	raw = bytes.TrimSpace(raw)
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return serverError{message: s}
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil || m == nil {
		return serverError{message: string(raw)}
	}
	if inner, ok := m["error"]; ok && len(inner) > 0 && string(inner) != "null" {
		if inner[0] == '{' || inner[0] == '"' {
			if e = parseError(inner); e.code == "" {
				_ = decode(m["error_type"], &e.code) // of TGI, if it is a string
			}
			return e
		}
	}
	for _, key := range []string{"message", "detail", "error_message"} {
		if t, err := text(m[key]); err == nil && len(t) > 0 {
			e.message = string(t)
			break
		}
		if raw := m[key]; e.message == "" && len(raw) > 0 && string(raw) != "null" {
			e.message = string(raw)
			break
		}
	}
	for _, key := range []string{"code", "type"} {
		var v any
		if decode(m[key], &v) != nil || v == nil || v == "" || e.code != "" {
			continue
		}
		switch v := v.(type) {
		case string:
			e.code = v
		case float64:
			e.code = fmt.Sprint(v)
		}
	}
	if e.message == "" {
		e.message = string(raw)
	}
	return e
}

package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

// Template says how to speak to a server whose API is none of those known here:
// what to send, and where in its answers to look. The URL of the target is used
// as it is.
//
// Request is a text/template that gives JSON. Its fields are .Model, .Prompt,
// .Messages (each with .Role and .Content), .MaxTokens, .Stream, .IgnoreEOS,
// .Temperature, .TopP, .Seed and .Stop; its one function is json, which every
// value must pass to get out. It knows if, and range over .Messages and .Stop.
// What a prompt says is data and is never looked at for braces.
//
// The other fields are paths into the JSON of an event, a line or a whole
// answer: names and [numbers], as in choices[0].delta.content; [*] is every
// element, ["a.b"] a name with a dot. Of several paths the first that gives
// something counts.
type Template struct {
	Request   string   `yaml:"request,required" doc:"the JSON of a request, as a text/template; every value passes json, as in {{json .Prompt}}"`
	Framing   string   `yaml:"framing" oneof:"events,lines,body" doc:"how a stream is cut: events (server-sent), lines (of JSON) or body (there are no streams); events if left out"`
	Text      []string `yaml:"text,required" doc:"paths of the generated text, such as choices[0].delta.content"`
	Reasoning []string `yaml:"reasoning" doc:"paths of reasoning text"`
	Finish    []string `yaml:"finish" doc:"paths of the reason why the output ended"`
	Done      []string `yaml:"done" doc:"paths of what ends an answer: a value that is there and not false, null, 0 or empty; with path=value, this text"`
	Error     []string `yaml:"error" doc:"paths of an error inside an answer"`
	Prompt    []string `yaml:"prompt_tokens" doc:"paths of the number of prompt tokens"`
	Output    []string `yaml:"output_tokens" doc:"paths of the number of output tokens"`
	Cached    []string `yaml:"cached_tokens" doc:"paths of the number of prompt tokens from a cache"`
}

// The framings of a Template.
const (
	FramingEvents = "events"
	FramingLines  = "lines"
	FramingBody   = "body"
)

// Validate reports every fault of the template at once.
func (p Template) Validate() error {
	_, err := p.dialect()
	return err
}

// dialect compiles the template.
func (p Template) dialect() (*dialect, error) {
	var faults []error
	d := *dialects[APITemplate]
	switch p.Framing {
	case "", FramingEvents:
	case FramingLines:
		d.lines, d.accept = true, acceptLines
	case FramingBody:
		d.unstream, d.accept = true, acceptWhole
	default:
		faults = append(faults, fmt.Errorf("framing %q: want %s, %s or %s", p.Framing, FramingEvents, FramingLines, FramingBody))
	}
	request, err := parseRequestTemplate(p.Request)
	if err != nil {
		faults = append(faults, fmt.Errorf("request: %w", err))
	}
	d.body = request.append
	r := new(templateReader)
	for _, f := range []struct {
		name  string
		paths []string
		into  *[]templatePath
	}{
		{"text", p.Text, &r.text},
		{"reasoning", p.Reasoning, &r.reasoning},
		{"finish", p.Finish, &r.finish},
		{"done", p.Done, &r.done},
		{"error", p.Error, &r.err},
		{"prompt_tokens", p.Prompt, &r.prompt},
		{"output_tokens", p.Output, &r.output},
		{"cached_tokens", p.Cached, &r.cached},
	} {
		for _, text := range f.paths {
			path, err := parsePath(text, f.name == "done")
			if err != nil {
				faults = append(faults, fmt.Errorf("%s: path %q: %w", f.name, text, err))
			}
			*f.into = append(*f.into, path)
		}
	}
	if len(p.Text) == 0 {
		faults = append(faults, errors.New("text: no path; where is the generated text?"))
	}
	d.read = r.read
	return &d, errors.Join(faults...)
}

// requestTemplate makes requests.
type requestTemplate struct{ t *template.Template }

// templateData is what a template sees. It has no methods that it could call.
type templateData struct {
	Model, Prompt     string
	Messages          []templateMessage
	MaxTokens         int64
	Stream, IgnoreEOS bool
	Temperature, TopP *float64
	Seed              *int64
	Stop              []string
}

type templateMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func quoteJSON(v any) (string, error) {
	if s, ok := v.(string); ok {
		return string(appendString(nil, s)), nil
	}
	b, err := json.Marshal(v)
	return string(b), err
}

// parseRequestTemplate takes a template that can give nothing but JSON: it is
// held against a list of what may stand in it, and tried out.
func parseRequestTemplate(text string) (r requestTemplate, err error) {
	if strings.TrimSpace(text) == "" {
		return r, errors.New("it is missing; write the JSON to send, with {{json .Prompt}} in it")
	}
	r.t, err = template.New("request").Option("missingkey=error").Funcs(template.FuncMap{"json": quoteJSON}).Parse(text)
	if err != nil {
		return r, err
	}
	if len(r.t.Templates()) > 1 {
		return r, errors.New("it defines templates of its own")
	}
	if err := allowed(r.t.Root); err != nil {
		return r, err
	}
	// What breaks out of a string that somebody quoted by hand.
	const hostile = "\"}],{{.Model}}\\\n\u2028</script>"
	one := 0.5
	seed := int64(7)
	for _, req := range []*Request{
		{Prompt: hostile},
		{Prompt: hostile, MaxTokens: 9, Stream: true, IgnoreEOS: true, Temperature: &one, TopP: &one, Seed: &seed, Stop: []string{"x", "y"}},
	} {
		b, err := r.append(nil, &Target{Model: "m"}, req)
		if err != nil {
			return r, err
		}
		var v any
		if err := json.Unmarshal(b, &v); err != nil {
			return r, fmt.Errorf("it gives what is not JSON: %w", err)
		}
		if !holds(v, hostile) {
			return r, errors.New("it sends no prompt; write {{json .Prompt}} or {{json .Messages}}")
		}
	}
	return r, nil
}

// holds reports whether one of the strings in a JSON value is s.
func holds(v any, s string) bool {
	switch v := v.(type) {
	case string:
		return v == s
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return holds(e, s) })
	case map[string]any:
		for _, e := range v {
			if holds(e, s) {
				return true
			}
		}
	}
	return false
}

// allowed holds a template against what may stand in it.
func allowed(n parse.Node) error {
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		for _, e := range n.Nodes {
			if err := allowed(e); err != nil {
				return err
			}
		}
		return nil
	case *parse.TextNode, *parse.CommentNode:
		return nil
	case *parse.ActionNode:
		if len(n.Pipe.Decl) == 0 && !quoted(n.Pipe) {
			return fmt.Errorf("%s gets out without json; write {{json …}}", n)
		}
		return allowedPipe(n.Pipe)
	case *parse.IfNode:
		return errors.Join(allowedPipe(n.Pipe), allowed(n.List), allowed(n.ElseList))
	case *parse.RangeNode:
		if !overList(n.Pipe) {
			return fmt.Errorf("range %s: only .Messages and .Stop are ranged over", n.Pipe)
		}
		return errors.Join(allowed(n.List), allowed(n.ElseList))
	}
	return fmt.Errorf("%s has no place in a request", n)
}

// quoted reports whether what a pipeline gives has passed json.
func quoted(p *parse.PipeNode) bool {
	last := p.Cmds[len(p.Cmds)-1]
	f, ok := last.Args[0].(*parse.IdentifierNode)
	return ok && f.Ident == "json"
}

func overList(p *parse.PipeNode) bool {
	if len(p.Cmds) != 1 || len(p.Cmds[0].Args) != 1 {
		return false
	}
	f, ok := p.Cmds[0].Args[0].(*parse.FieldNode)
	return ok && len(f.Ident) == 1 && (f.Ident[0] == "Messages" || f.Ident[0] == "Stop")
}

func allowedPipe(p *parse.PipeNode) error {
	for _, cmd := range p.Cmds {
		for _, arg := range cmd.Args {
			switch arg := arg.(type) {
			case *parse.FieldNode, *parse.VariableNode, *parse.DotNode, *parse.StringNode, *parse.NumberNode, *parse.BoolNode:
			case *parse.PipeNode:
				if err := allowedPipe(arg); err != nil {
					return err
				}
			case *parse.IdentifierNode:
				if arg.Ident != "json" {
					return fmt.Errorf("function %s: json is the only one", arg.Ident)
				}
			default:
				return fmt.Errorf("%s has no place in a request", arg)
			}
		}
	}
	return nil
}

var errTemplateSize = fmt.Errorf("a request of more than %d bytes", MaxRequestBytes)

// bounded collects what a template gives.
type bounded struct{ b []byte }

func (w *bounded) Write(p []byte) (int, error) {
	if len(w.b)+len(p) > MaxRequestBytes {
		return 0, errTemplateSize
	}
	w.b = append(w.b, p...)
	return len(p), nil
}

// append appends the JSON of a request.
func (p requestTemplate) append(b []byte, t *Target, r *Request) ([]byte, error) {
	if len(r.Extra) > 0 {
		return b, errors.New("encoding request: extra fields do not go with a template; write them into it")
	}
	data := templateData{
		Model: t.Model, Prompt: r.Prompt, MaxTokens: r.MaxTokens, Stream: r.Stream, IgnoreEOS: r.IgnoreEOS,
		Temperature: r.Temperature, TopP: r.TopP, Seed: r.Seed, Stop: r.Stop,
	}
	for _, m := range r.dialogue() {
		data.Messages = append(data.Messages, templateMessage{m.Role, m.Content})
	}
	if data.Prompt == "" && len(r.Messages) > 0 {
		data.Prompt = joinText(r.Messages)
	}
	if data.Stop == nil {
		data.Stop = []string{}
	}
	start := len(b)
	w := bounded{b: b}
	if err := p.t.Execute(&w, data); err != nil {
		return b, fmt.Errorf("encoding request: %w", err)
	}
	if !json.Valid(w.b[start:]) {
		return b, errors.New("encoding request: the template gives what is not JSON")
	}
	return w.b, nil
}

// templatePath is a compiled path.
type templatePath struct {
	steps []templateStep
	value []byte // of "done": the text that means it; nil: any
}

// templateStep is a name, or the number of an element.
type templateStep struct {
	name  string
	index int64 // everyElement, or notIndex for a name
}

const (
	everyElement = -1
	notIndex     = -2
)

// parsePath compiles a path. With valued it may end in =text.
func parsePath(text string, valued bool) (p templatePath, err error) {
	rest := text
	if head, value, ok := strings.Cut(text, "="); valued && ok {
		rest, p.value = head, []byte(value)
	}
	for first := true; rest != "" || first; first = false {
		var step templateStep
		switch {
		case strings.HasPrefix(rest, "["):
			inside, after, ok := cutBracket(rest)
			if !ok {
				return p, errors.New("a bracket is not closed")
			}
			if step, err = bracketStep(inside); err != nil {
				return p, err
			}
			rest = after
		default:
			if !first {
				rest, _ = strings.CutPrefix(rest, ".")
			}
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			step = templateStep{name: rest[:end], index: notIndex}
			if rest = rest[end:]; step.name == "" {
				return p, errors.New("a name is empty")
			}
		}
		p.steps = append(p.steps, step)
		if len(rest) > 0 && rest[0] != '.' && rest[0] != '[' {
			return p, errors.New("want . or [ behind a bracket")
		}
	}
	return p, nil
}

// cutBracket cuts [inside] off, in which a string may hold brackets.
func cutBracket(s string) (inside, after string, ok bool) {
	for i, quoted := 1, false; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == ']' && !quoted:
			return s[1:i], s[i+1:], true
		}
	}
	return "", "", false
}

func bracketStep(inside string) (step templateStep, err error) {
	if inside == "*" {
		return templateStep{index: everyElement}, nil
	}
	if strings.HasPrefix(inside, `"`) {
		step.index = notIndex
		if json.Unmarshal([]byte(inside), &step.name) != nil {
			return step, fmt.Errorf("[%s] is not a quoted name", inside)
		}
		return step, nil
	}
	n, ok := digits([]byte(inside))
	if !ok {
		return step, fmt.Errorf(`[%s]: want a number, * or a quoted name`, inside)
	}
	return templateStep{index: n}, nil
}

// templateReader reads answers by paths. Each path is a pass of its own over the
// JSON: dearer than the scanners of the known APIs, and as free of allocation.
type templateReader struct {
	text, reasoning, finish, done, err []templatePath
	prompt, output, cached             []templatePath
}

// templateField says what a value that a path leads to is for.
type templateField uint8

const (
	fieldText templateField = iota
	fieldReasoning
	fieldFinish
	fieldDone
	fieldError
	fieldPrompt
	fieldOutput
	fieldCached
)

func (r *templateReader) read(c *chunk, _, data []byte) error {
	c.open(data)
	c.skip(0)
	if err := c.close(); err != nil {
		return err
	}
	c.walk(r.err, fieldError)
	c.walk(r.text, fieldText)
	c.walk(r.reasoning, fieldReasoning)
	c.walk(r.prompt, fieldPrompt)
	c.walk(r.output, fieldOutput)
	c.walk(r.cached, fieldCached)
	if c.walk(r.finish, fieldFinish) {
		c.ended(c.finish)
	}
	if c.walk(r.done, fieldDone) {
		c.over()
	}
	if c.bad {
		return errors.New("a value of another type than the template expects")
	}
	return nil
}

// walk follows the paths until one gives something.
func (c *chunk) walk(paths []templatePath, f templateField) bool {
	for i := range paths {
		c.i = 0
		c.space()
		if c.follow(paths[i].steps, &paths[i], f) {
			return true
		}
	}
	return false
}

// follow consumes a value and tells whether the path gives something in it.
func (c *chunk) follow(steps []templateStep, p *templatePath, f templateField) (found bool) {
	if len(steps) == 0 {
		return c.take(p, f)
	}
	step := &steps[0]
	switch {
	case step.index == notIndex && c.peek() == '{':
		for key, more := c.enter(); more; key, more = c.next() {
			if string(key) == step.name {
				found = c.follow(steps[1:], p, f) || found
			} else {
				c.skip(0)
			}
		}
	case step.index != notIndex && c.peek() == '[':
		n := int64(0)
		for more := c.enterArray(); more; more = c.nextElement() {
			if step.index == everyElement || step.index == n {
				found = c.follow(steps[1:], p, f) || found
			} else {
				c.skip(0)
			}
			n++
		}
	default:
		c.skip(0)
	}
	return found
}

// take takes over the value that a path leads to.
func (c *chunk) take(p *templatePath, f templateField) bool {
	switch f {
	case fieldText, fieldReasoning:
		text := c.str()
		c.begun()
		if f == fieldText {
			c.say(text)
		} else {
			c.think(text)
		}
		return len(text) > 0
	case fieldFinish:
		if c.peek() != '"' {
			return truth(c.raw()) // some say true
		}
		c.finish = c.str()
		return len(c.finish) > 0
	case fieldDone:
		if p.value == nil {
			return truth(c.raw())
		}
		if c.peek() == '"' {
			return bytes.Equal(c.str(), p.value)
		}
		return bytes.Equal(c.raw(), p.value)
	case fieldError:
		c.setError(c.raw())
		return c.err != nil
	}
	n := &c.usage.cached
	switch f {
	case fieldPrompt:
		n = &c.usage.prompt
	case fieldOutput:
		n = &c.usage.output
	}
	c.has |= hasUsage
	c.amount(n)
	return *n >= 0
}

// truth reports whether a JSON value is there and says yes.
func truth(raw []byte) bool {
	switch string(raw) {
	case "null", "false", "0", `""`, "{}", "[]":
		return false
	}
	return true
}

package llm

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func templateRows() dialectRows {
	n := record.Tokens
	const (
		a     = `data: {"type":"delta","out":[{"text":"a"},{"text":"b"}]}` + "\n\n"
		end   = `data: {"type":"end","reason":"stop","counts":{"in":5,"out":2,"hit":4}}` + "\n\n"
		still = `data: {"type":"delta","out":[]}` + "\n\n"
	)
	missing := []string{"usage_missing"}
	return dialectRows{
		target: Target{URL: "/custom/generate", API: APITemplate, Template: &Template{
			Request: `{"q":{{json .Prompt}},"live":{{json .Stream}}}`,
			Text:    []string{"out[*].text", "answer"}, Reasoning: []string{"why"}, Finish: []string{"reason"}, Done: []string{"type=end"}, Error: []string{`["an.error"]`},
			Prompt: []string{"counts.in"}, Output: []string{"counts.out"}, Cached: []string{"counts.hit"},
		}},
		paths: [2]string{"/custom/generate", "/custom/generate"},
		stream: []wireRow{
			{name: "plain", body: still + a + end, text: "ab", kinds: "?cf", finish: "stop", prompt: n(5), output: n(2), cached: n(4)},
			{name: "reasoning", body: `data: {"why":"hm"}` + "\n\n" + a + end, text: "ab", reasoning: "hm", kinds: "gcf", finish: "stop", prompt: n(5), output: n(2), cached: n(4)},
			{name: "second path", body: `data: {"out":null,"answer":"x"}` + "\n\n" + end, text: "x", kinds: "cf", finish: "stop", prompt: n(5), output: n(2), cached: n(4)},
			{name: "first path empty", body: `data: {"out":[{"text":""}],"answer":"x"}` + "\n\n" + end, text: "x", kinds: "cf", finish: "stop", prompt: n(5), output: n(2), cached: n(4)},
			{name: "done of others", body: a + eventDone, text: "ab", kinds: "cd", flags: missing},
			{name: "error", body: a + `data: {"an.error":{"code":7,"message":"x"}}` + "\n\n", outcome: record.ErrorEvent, code: "7", detail: "x", text: "ab", kinds: "ce", flags: missing},
			{name: "no error", body: `data: {"an.error":null,"answer":"x"}` + "\n\n" + end, text: "x", kinds: "cf", finish: "stop", prompt: n(5), output: n(2), cached: n(4)},
			{name: "cut", body: a, outcome: record.Truncated, detail: "after 1 events", text: "ab", kinds: "c", flags: missing},
			{name: "no output", body: end, outcome: record.EmptyOutput, detail: "without output", kinds: "f", finish: "stop", prompt: n(5), output: n(2), cached: n(4)},
			{name: "text of another type", body: `data: {"answer":7}` + "\n\n" + end, outcome: record.Malformed, detail: "another type", kinds: "?", flags: missing},
			{name: "broken JSON", body: "data: {\"answer\":\n\n" + end, outcome: record.Malformed, detail: "not JSON", kinds: "?", flags: missing},
		},
		body: []wireRow{
			{name: "answer", body: `{"answer":"x","reason":"length","counts":{"in":5,"out":2}}`, text: "x", kinds: "c", finish: "length", prompt: n(5), output: n(2), perEvent: []int64{2}},
			{name: "no reason", body: `{"answer":"x"}`, text: "x", kinds: "c", flags: []string{"no_done", "usage_missing"}},
			{name: "nothing", body: `{"other":"x"}`, outcome: record.Malformed, detail: "looks for", flags: missing},
		},
	}
}

func templateLineRows() dialectRows {
	return dialectRows{
		target: Target{URL: "/lines", API: APITemplate, Template: &Template{Request: `{"m":{{json .Messages}}}`, Framing: FramingLines, Text: []string{"[0]"}, Done: []string{"[1].done"}}},
		paths:  [2]string{"/lines", "/lines"},
		stream: []wireRow{
			{name: "plain", body: `["a",{"done":false}]` + "\n" + `["b",{"done":true}]` + "\n", text: "ab", kinds: "cc", flags: []string{"usage_missing"}},
			{name: "a line of another kind", body: `["a",{}]` + "\n" + `{"queue":3}` + "\n" + `["b",{"done":true}]` + "\n", text: "ab", kinds: "c?c", flags: []string{"usage_missing"}},
			{name: "cut", body: `["a",{"done":false}]` + "\n" + `["b"` + "\n", outcome: record.Malformed, detail: "not JSON", text: "a", kinds: "c?", flags: []string{"usage_missing"}},
		},
	}
}

func TestTemplate(t *testing.T) {
	templateRows().run(t)
	templateLineRows().run(t)
}

func TestTemplateFaultsComeTogether(t *testing.T) {
	for _, tt := range []struct {
		t    Template
		want []string
	}{
		{Template{}, []string{"request: it is missing", "text: no path"}},
		{Template{Request: `{"p":{{json .Prompt}}}`, Text: []string{"a"}}, nil},
		{Template{Request: `{"p":{{.Prompt | json}}}`, Text: []string{"a"}, Framing: FramingBody}, nil},
		{Template{Request: `{"p":{{json .Prompt}},"o":[{{range $i, $s := .Stop}}{{if $i}},{{end}}{{json $s}}{{end}}]{{/* x */}}{{if .Seed}},"seed":{{json .Seed}}{{else}}{{end}}}`, Text: []string{"a"}}, nil},
		{Template{Request: `{"p":[{{range $i, $m := .Messages}}{{if $i}},{{end}}{"r":{{json $m.Role}},"c":{{json $m.Content}}}{{end}}]}`, Text: []string{"a"}}, nil},
		{
			Template{Request: `{"p":{{json .Prompt}}`, Text: []string{"a", "a..b", "a[", "a[x]", `a["x]`, "[1]b", ""}, Done: []string{"=x"}, Framing: "xml"},
			[]string{"framing \"xml\"", "not JSON", `text: path "a..b"`, `path "a[": a bracket`, `path "a[x]"`, `a[\"x]`, `path "[1]b"`, `path "": a name`, `done: path "=x"`},
		},
	} {
		err := tt.t.Validate()
		if (err == nil) != (tt.want == nil) {
			t.Errorf("%+v: %v", tt.t, err)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in:\n%v", want, err)
			}
		}
	}
	good := templateRows().target.Template
	for _, target := range []Target{{API: APITemplate}, {Template: good}, {API: APITemplate, Template: &Template{}}} {
		target.URL = "http://h"
		if err := target.Validate(); err == nil || !strings.Contains(err.Error(), "template: ") {
			t.Errorf("%+v: %v", target, err)
		}
	}
}

// TestTemplateRefuses holds what may not stand in a template, whether it would
// break the JSON, run away, or reach beyond its data.
func TestTemplateRefuses(t *testing.T) {
	for _, request := range []string{
		`{"p":"{{.Prompt}}"}`,
		`{"p":{{json .Prompt}},"m":"{{.Model}}"}`,
		`{"p":{{json .Prompt}},"n":{{.MaxTokens}}}`,
		`{"p":{{json .Prompt}},"n":{{json (len .Stop)}}}`,
		`{"p":{{.Prompt | printf "%q"}}}`,
		`{"p":{{json .Prompt | html}}}`,
		`{"p":{{json (html .Prompt)}}}`,
		`{"p":{{json .Prompt | len | json}}}`,
		`{"p":{{json .Prompt}}}{{call .Prompt}}`,
		`{"p":{{json .Prompt}},"n":[{{range 1000000000}}1,{{end}}1]}`,
		`{"p":{{json .Prompt}},"n":[{{range .MaxTokens}}1,{{end}}1]}`,
		`{"p":{{json .Prompt}},"n":[{{range .Messages}}{{range $.Messages}}1,{{end}}{{end}}1]}`,
		`{"p":{{json .Prompt}}}{{define "x"}}{{end}}`,
		`{"p":{{json .Prompt}}}{{template "request"}}`,
		`{"p":{{json .Prompt}}}{{block "x" .}}{{end}}`,
		`{"p":{{with .Prompt}}{{json .}}{{end}}}`,
		`{"p":{{json .Prompt}}}{{if index .Stop 0}}{{end}}`,
		`{"p":{{json .Prompt}}}{{range .Stop}}{{break}}{{end}}`,
		`{"p":{{json .Key}}}`,
		`{"p":{{json .Prompt.String}}}`,
		`{"p":"fixed"}`,
		`{"p":{{json .Prompt}}`,
		`{{`,
		`{{end}}`,
		`{{/* nothing */}}`,
		``,
	} {
		if err := (Template{Request: request, Text: []string{"a"}}).Validate(); err == nil {
			t.Errorf("%s passes", request)
		} else if len(err.Error()) > 1000 {
			t.Errorf("%s: an error of %d bytes", request, len(err.Error()))
		}
	}
}

// TestTemplateKeepsPromptsData holds that a prompt is data: whatever it says, it
// arrives as one string.
func TestTemplateKeepsPromptsData(t *testing.T) {
	target := Target{URL: "http://h", API: APITemplate, Key: "sk-secret", Template: &Template{
		Request: `{"p":{{json .Prompt}},"m":[{{range $i, $m := .Messages}}{{if $i}},{{end}}{{json $m.Content}}{{end}}],"t":{{json .Temperature}}}`, Text: []string{"a"},
	}}
	if err := target.Validate(); err != nil {
		t.Fatal(err)
	}
	target = target.withDefaults()
	for _, prompt := range []string{`{{.Key}}`, `{{json .Model}}`, `"}],"x":{{template "request"}}`, `{{range 1000000000}}x{{end}}`, "\x00\xff\u2028</script>"} {
		body, err := target.appendRequest(nil, &Request{Prompt: prompt})
		var got map[string]any
		if err != nil || json.Unmarshal(body, &got) != nil {
			t.Fatalf("%q: %s, %v", prompt, body, err)
		}
		want := map[string]any{"p": valid(prompt), "m": []any{valid(prompt)}, "t": nil}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", prompt, diff)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[{}."\\a-z \[\]]{0,40}`))
		req := Request{Messages: []corpus.Message{{Role: "user", Content: text.Draw(t, "a")}, {Role: text.Draw(t, "role"), Content: text.Draw(t, "b")}}}
		body, err := target.appendRequest(nil, &req)
		var got struct{ M []string }
		if err != nil || json.Unmarshal(body, &got) != nil {
			t.Fatalf("%s, %v", body, err)
		}
		if !slices.Equal(got.M, []string{valid(req.Messages[0].Content), valid(req.Messages[1].Content)}) {
			t.Fatalf("%q became %q", req.Messages, got.M)
		}
	})
	if _, err := target.appendRequest(nil, &Request{Prompt: "p", Extra: map[string]any{"x": 1}}); err == nil {
		t.Error("extra fields are left out without a word")
	}
}

// FuzzPaths holds that any text is a path or a fault, and that any path can be
// followed into any JSON.
func FuzzPaths(f *testing.F) {
	for _, path := range []string{"choices[0].delta.content", `["a.b"][*]`, "a.b=c", "a[", "[", ".", "a]", `[""]`, `a["\u0062"]`} {
		f.Add(path, `{"choices":[{"delta":{"content":"x"}}],"a.b":["x",7],"a":{"b":"c"}}`)
	}
	f.Fuzz(func(t *testing.T, path, data string) {
		p := Template{Request: `{"p":{{json .Prompt}}}`, Text: []string{path}, Done: []string{path}, Output: []string{path}, Error: []string{path}}
		d, err := p.dialect()
		if err != nil {
			return
		}
		checkRead(t, "template "+path, d, "", []byte(data))
	})
}

func TestPaths(t *testing.T) {
	const data = `{"a":{"b":[{"c":"x"},{"c":"y"}]},"a.b":"z","":"w"}`
	for path, want := range map[string]string{
		"a.b[0].c": "x", "a.b[1].c": "y", "a.b[2].c": "", "a.b[*].c": "xy", `["a.b"]`: "z", `["a"]["b"][0]["c"]`: "x", `[""]`: "w", "a.b.c": "", "x": "", "[0]": "",
	} {
		d, err := Template{Request: `{"p":{{json .Prompt}}}`, Text: []string{path}}.dialect()
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		var c chunk
		if err := d.read(&c, nil, []byte(data)); err != nil || string(c.content) != want {
			t.Errorf("%s: %q, %v; want %q", path, c.content, err, want)
		}
	}
}

// TestTemplateProbe holds that a server which refuses a GET of its one path is
// alive, but not one that is not ready or refuses the key.
func TestTemplateProbe(t *testing.T) {
	for status, alive := range map[string]bool{"400 Bad Request": true, "405 Method Not Allowed": true, "422 No": true, "200 OK": true, "401 Unauthorized": false, "503 Busy": false} {
		s := serve(t, bare(plain(status, "text/plain", "x")))
		target := templateRows().target
		target.URL = s.url() + target.URL
		if err := client(t, target).Probe(t.Context()); (err == nil) != alive {
			t.Errorf("%s: Probe = %v", status, err)
		}
	}
}

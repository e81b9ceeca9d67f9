package llm

import (
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

const ollamaTimes = `"total_duration":5043500667,"load_duration":5025959,"prompt_eval_count":26,"prompt_eval_duration":325953000,"eval_count":2,"eval_duration":47091000}`

var ollamaServer = map[string]time.Duration{"total": 5043500667, "load": 5025959, "prompt_eval": 325953000, "eval": 47091000}

func ollamaLine(message string) string {
	return `{"model":"m","created_at":"2026-11-30T19:00:00.1Z","message":` + message + `,"done":false}` + "\n"
}

func ollamaRows() dialectRows {
	n := record.Tokens
	text := ollamaLine(`{"role":"assistant","content":"Hi"}`)
	end := `{"model":"m","created_at":"2026-11-30T19:00:05Z","message":{"role":"assistant","content":""},"done_reason":"stop","done":true,` + ollamaTimes + "\n"
	row := func(w wireRow) wireRow {
		w.prompt, w.output, w.server = n(26), n(2), ollamaServer
		return w
	}
	missing := []string{"usage_missing"}
	call := func(name string) string {
		return `{"id":"call_` + name + `","function":{"index":0,"name":"` + name + `","arguments":{"city": "Bern"}}}`
	}
	return dialectRows{
		target: Target{API: APIOllama, Model: "m"}, paths: [2]string{"/api/chat", "/api/chat"},
		stream: []wireRow{
			row(wireRow{name: "plain", body: text + text + end, text: "HiHi", kinds: "ccf", finish: "stop"}),
			row(wireRow{name: "CRLF and empty lines", body: strings.ReplaceAll(text+"\n"+text+end, "\n", "\r\n"), text: "HiHi", kinds: "ccf", finish: "stop"}),
			row(wireRow{name: "what looks like a comment or a field", body: ollamaLine(`{"role":"assistant","content":"data: [DONE]\n\n: x"}`) + end, text: "data: [DONE]\n\n: x", kinds: "cf", finish: "stop"}),
			row(wireRow{name: "thinking", body: ollamaLine(`{"role":"assistant","content":"","thinking":"hm"}`) + text + end, text: "Hi", reasoning: "hm", kinds: "gcf", finish: "stop"}),
			row(wireRow{
				name: "tools", body: ollamaLine(`{"role":"assistant","content":"","tool_calls":[`+call("a")+`,`+call("b")+`]}`) + ollamaLine(`{"role":"assistant","content":"","tool_calls":[{"function":{"name":"c","arguments":{}}}]}`) + end,
				kinds: "ttf", finish: "stop", tools: []Tool{{"call_a", "a", `{"city": "Bern"}`}, {"call_b", "b", `{"city": "Bern"}`}, {"", "c", "{}"}},
			}),
			row(wireRow{
				name: "tools without ids", body: ollamaLine(`{"content":"","tool_calls":[{"function":{"name":"a","arguments":{}}}]}`) + ollamaLine(`{"content":"","tool_calls":[{"function":{"name":"b","arguments":{}}},{"function":{"name":"c","arguments":{}}}]}`) + end,
				kinds: "ttf", finish: "stop", tools: []Tool{{"", "a", "{}"}, {"", "b", "{}"}, {"", "c", "{}"}},
			}),
			row(wireRow{name: "length", req: Request{MaxTokens: 2}, body: text + strings.Replace(end, "stop", "length", 1), text: "Hi", kinds: "cf", finish: "length"}),
			row(wireRow{name: "length, but not as asked", req: Request{MaxTokens: 3}, body: text + strings.Replace(end, "stop", "length", 1), outcome: record.LengthMismatch, detail: "3 were asked", text: "Hi", kinds: "cf", finish: "length"}),
			row(wireRow{name: "no reason", body: text + strings.Replace(end, `"done_reason":"stop",`, "", 1), text: "Hi", kinds: "cf"}),
			row(wireRow{name: "last line not ended", body: text + strings.TrimSpace(end), text: "Hi", kinds: "cf", finish: "stop", flags: []string{"no_done"}}),
			row(wireRow{name: "last text with the end", body: text + strings.Replace(end, `"content":""`, `"content":"a"`, 1), text: "Hia", kinds: "cc", finish: "stop"}),
			row(wireRow{name: "no output", body: end, outcome: record.EmptyOutput, detail: "without output", kinds: "f", finish: "stop"}),
			{name: "prompt in the cache", body: text + `{"message":{"content":""},"done":true,"done_reason":"stop","eval_count":1}` + "\n", text: "Hi", kinds: "cf", finish: "stop", output: n(1)},
			{name: "no times", body: text + `{"done":true,"done_reason":"stop","prompt_eval_count":26,"eval_count":2,"load_duration":"x"}` + "\n", text: "Hi", kinds: "cf", finish: "stop", prompt: n(26), output: n(2)},
			{name: "no counts", body: text + `{"done":true,"done_reason":"stop","total_duration":-5,"load_duration":"x"}` + "\n", text: "Hi", kinds: "cf", finish: "stop", flags: missing},
			{name: "error", body: text + `{"error":"llama runner process has terminated"}` + "\n", outcome: record.ErrorEvent, detail: "has terminated", text: "Hi", kinds: "ce", flags: missing},
			{name: "cut", body: text + text, outcome: record.Truncated, detail: "after 2 events", text: "HiHi", kinds: "cc", flags: missing},
			{name: "cut inside a line", body: text + text[:20], outcome: record.Truncated, detail: "after 1 events", text: "Hi", kinds: "c", flags: missing},
			{name: "broken line", body: text + "{\"message\":\n" + end, outcome: record.Malformed, detail: "not JSON", text: "Hi", kinds: "c?", flags: missing},
			{name: "nothing", body: "", outcome: record.Truncated, detail: "after 0 events", flags: missing},
		},
		body: []wireRow{
			row(wireRow{name: "answer", body: `{"message":{"role":"assistant","content":"Hello","thinking":"hm"},"done_reason":"stop","done":true,` + ollamaTimes, text: "Hello", reasoning: "hm", kinds: "c", finish: "stop", perEvent: []int64{2}}),
			row(wireRow{name: "not done", body: `{"message":{"content":"Hello"},"done":false,` + ollamaTimes, text: "Hello", kinds: "c", perEvent: []int64{2}, flags: []string{"no_done"}}),
			{name: "error", body: `{"error":"no such model"}`, outcome: record.ErrorEvent, detail: "no such model", kinds: "e", flags: missing},
			{name: "another API", body: `{"choices":[]}`, outcome: record.Malformed, detail: "without message", flags: missing},
			{name: "no body", body: "", outcome: record.EmptyOutput, detail: "without a body", flags: missing},
		},
	}
}

func ollamaPromptRows() dialectRows {
	n := record.Tokens
	end := `{"model":"m","response":"","done":true,"done_reason":"stop","context":[1,2],` + ollamaTimes + "\n"
	return dialectRows{
		target: Target{URL: "/api/generate", API: APIOllama, Model: "m"}, paths: [2]string{"/api/generate", "/api/generate"},
		stream: []wireRow{
			{name: "plain", body: `{"model":"m","response":"","thinking":"hm","done":false}` + "\n" + `{"model":"m","response":"a","done":false}` + "\n" + end, text: "a", reasoning: "hm", kinds: "gcf", finish: "stop", prompt: n(26), output: n(2), server: ollamaServer},
		},
		body: []wireRow{
			{name: "answer", body: strings.Replace(end, `"response":""`, `"response":"a"`, 1), text: "a", kinds: "c", finish: "stop", prompt: n(26), output: n(2), server: ollamaServer, perEvent: []int64{2}},
			{name: "empty", body: end, outcome: record.EmptyOutput, detail: "without output", kinds: "?", finish: "stop", prompt: n(26), output: n(2), server: ollamaServer},
		},
	}
}

func TestOllama(t *testing.T) {
	ollamaRows().run(t)
	ollamaPromptRows().run(t)
}

func TestOllamaRequest(t *testing.T) {
	temperature, seed := 0.0, int64(7)
	chat := Target{API: APIOllama, Model: "m"}
	checkRequests(t, []requestRow{
		{
			"chat", chat,
			Request{Messages: []corpus.Message{{Role: "user", Content: "u"}}, Stream: true, MaxTokens: 9, Temperature: &temperature, Seed: &seed, Stop: []string{"x"}},
			`{"model":"m","messages":[{"role":"user","content":"u"}],"stream":true,"options":{"num_predict":9,"temperature":0,"seed":7,"stop":["x"]}}`,
		},
		{"whole", chat, Request{Prompt: "p"}, `{"model":"m","messages":[{"role":"user","content":"p"}],"stream":false}`},
		{"extra", chat, Request{Prompt: "p", MaxTokens: 9, Extra: map[string]any{"options": map[string]any{"num_ctx": 8192}}}, `{"model":"m","messages":[{"role":"user","content":"p"}],"stream":false,"options":{"num_ctx":8192}}`},
		{"generate", Target{URL: "http://h/api/generate", API: APIOllama, Model: "m"}, Request{Messages: []corpus.Message{{Content: "a"}, {Content: "b"}}, Stream: true}, `{"model":"m","prompt":"a\nb","stream":true}`},
	})
}

// TestLinesUnderAnotherName holds that a stream of lines is one whatever its
// content type says.
func TestLinesUnderAnotherName(t *testing.T) {
	rows := ollamaRows()
	for _, h := range []head{{status: 200, json: true}, {status: 200}} {
		rec, a := replay(t, &rows.target, &Request{Stream: true}, h, &pieces{rest: [][]byte{[]byte(rows.stream[0].body)}})
		compareRow(t, rows.stream[0], &rec, a, "lines")
	}
}

// TestLinesAreBounded holds the limit of an event for JSON lines.
func TestLinesAreBounded(t *testing.T) {
	target := Target{API: APIOllama, MaxEvent: 100}
	for _, body := range []string{strings.Repeat("x", 101), ollamaLine(`{"content":"` + strings.Repeat("x", 200) + `"}`)} {
		rec, _ := replay(t, &target, &Request{Stream: true}, head{status: 200}, &pieces{rest: [][]byte{[]byte(body[:60]), []byte(body[60:])}})
		if rec.Outcome != record.EventTooLarge {
			t.Errorf("%d bytes in a line: %s (%s)", len(body), rec.Outcome, rec.Detail)
		}
	}
}

package llm

import (
	"strings"
	"testing"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

// typed is an event with the type in its data, as OpenAI has it.
func typed(kind, fields string) string {
	return event(kind, `{"type":"`+kind+`","sequence_number":1`+fields+`}`)
}

const responseEmpty = `,"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"incomplete_details":null,"output":[],"usage":null}`

func responseEnd(kind, status, more, output string) string {
	return typed(kind, `,"response":{"id":"resp_1","object":"response","status":"`+status+`",`+more+`,"output":[`+output+
		`],"usage":{"input_tokens":37,"input_tokens_details":{"cached_tokens":32},"output_tokens":11,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":48}}`)
}

func responsesRows() dialectRows {
	n := record.Tokens
	start := typed("response.created", responseEmpty) + typed("response.in_progress", responseEmpty)
	item := typed("response.output_item.added", `,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}`) +
		typed("response.content_part.added", `,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}`)
	text := typed("response.output_text.delta", `,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hi","logprobs":[]`)
	whole := `{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"HiHi","annotations":[]}]}`
	closing := typed("response.output_text.done", `,"item_id":"msg_1","output_index":0,"content_index":0,"text":"HiHi"`) +
		typed("response.content_part.done", `,"output_index":0,"part":{"type":"output_text","text":"HiHi"}`) + typed("response.output_item.done", `,"output_index":0,"item":`+whole)
	end := responseEnd("response.completed", "completed", `"error":null,"incomplete_details":null`, whole)
	call := `{"id":"fc_1","type":"function_call","call_id":"call_1","name":"weather","arguments":"{\"city\":\"Bern\"}","status":"completed"}`
	row := func(w wireRow) wireRow {
		w.prompt, w.output, w.cached, w.thought = n(37), n(11), n(32), n(4)
		return w
	}
	missing := []string{"usage_missing"}
	return dialectRows{
		target: Target{API: APIResponses, Model: "m"}, paths: [2]string{"/v1/responses", "/v1/responses"},
		stream: []wireRow{
			row(wireRow{name: "plain", body: start + item + text + text + closing + end, text: "HiHi", kinds: "rrr?cc???f", finish: "stop"}),
			row(wireRow{name: "length", body: start + text + responseEnd("response.incomplete", "incomplete", `"incomplete_details":{"reason":"max_output_tokens"}`, whole), req: Request{MaxTokens: 11}, text: "Hi", kinds: "rrcf", finish: "length"}),
			row(wireRow{
				name: "length, but not as asked", body: start + text + responseEnd("response.incomplete", "incomplete", `"incomplete_details":{"reason":"max_output_tokens"}`, whole), req: Request{MaxTokens: 12},
				outcome: record.LengthMismatch, detail: "12 were asked", text: "Hi", kinds: "rrcf", finish: "length",
			}),
			row(wireRow{name: "filter", body: start + text + responseEnd("response.incomplete", "incomplete", `"incomplete_details":{"reason":"content_filter"}`, whole), text: "Hi", kinds: "rrcf", finish: "content_filter"}),
			row(wireRow{name: "reasoning", body: start + typed("response.reasoning_summary_text.delta", `,"output_index":0,"summary_index":0,"delta":"hm"`) + typed("response.reasoning_text.delta", `,"output_index":0,"delta":"!"`) +
				typed("response.reasoning_text.done", `,"output_index":0,"text":"!"`) + text + end, text: "Hi", reasoning: "hm!", kinds: "rrgg?cf", finish: "stop"}),
			row(wireRow{name: "refusal", body: start + typed("response.refusal.delta", `,"output_index":0,"delta":"no"`) + typed("response.refusal.done", `,"refusal":"no"`) + end, text: "no", kinds: "rrc?f", finish: "stop"}),
			row(wireRow{
				name: "tools", body: start + typed("response.output_item.added", `,"output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"call_1","name":"weather","arguments":""}`) +
					typed("response.function_call_arguments.delta", `,"item_id":"fc_1","output_index":1,"delta":"{\"city\":"`) + typed("response.function_call_arguments.delta", `,"item_id":"fc_1","output_index":1,"delta":"\"Bern\"}"`) +
					typed("response.output_item.added", `,"output_index":2,"item":{"id":"fc_2","type":"function_call","call_id":"call_2","name":"time","arguments":""}`) +
					typed("response.function_call_arguments.done", `,"output_index":1,"arguments":"{\"city\":\"Bern\"}"`) + responseEnd("response.completed", "completed", `"error":null`, call),
				kinds: "rrtttt?f", finish: "tool_calls", tools: []Tool{{"call_1", "weather", `{"city":"Bern"}`}, {"call_2", "time", ""}},
			}),
			row(wireRow{name: "input of another tool", body: start + typed("response.custom_tool_call_input.delta", `,"output_index":0,"delta":"no JSON"`) + end, kinds: "rrtf", finish: "stop"}),
			row(wireRow{name: "tokens", body: start + strings.Replace(text, `"logprobs":[]`, `"logprobs":[{"token":"H"},{"token":"i"}]`, 1) + end, text: "Hi", kinds: "rrcf", finish: "stop", perEvent: []int64{2}}),
			{
				name: "failed", body: start + text + typed("response.failed", `,"response":{"status":"failed","error":{"code":"server_error","message":"it broke"},"output":[],"usage":null}`),
				outcome: record.ErrorEvent, code: "server_error", detail: "it broke", text: "Hi", kinds: "rrce", flags: missing,
			},
			{name: "failed without a reason", body: start + typed("response.failed", `,"response":{"status":"failed","error":null}`), outcome: record.ErrorEvent, code: "response.failed", detail: "response.failed", kinds: "rre", flags: missing},
			{
				name: "error", body: start + text + event("error", `{"type":"error","code":"rate_limit_exceeded","message":"slow down","param":null}`),
				outcome: record.ErrorEvent, code: "rate_limit_exceeded", detail: "slow down", text: "Hi", kinds: "rrce", flags: missing,
			},
			{name: "error without a name", body: `data: {"type":"error","code":"x","message":"y"}` + "\n\n", outcome: record.ErrorEvent, code: "x", detail: "y", kinds: "e", flags: missing},
			row(wireRow{name: "cancelled", body: start + text + responseEnd("response.cancelled", "cancelled", `"error":null`, ""), outcome: record.ErrorEvent, code: "finish_reason", detail: "gave up", text: "Hi", kinds: "rrcf", finish: "abort"}),
			{name: "cut", body: start + item + text + closing, outcome: record.Truncated, detail: "after 1 events", text: "Hi", kinds: "rrr?c???", flags: missing},
			{name: "cut inside the last event", body: start + text + end[:60], outcome: record.Truncated, detail: "after 1 events", text: "Hi", kinds: "rrc", flags: missing},
			row(wireRow{name: "last blank line missing", body: start + text + strings.TrimSuffix(end, "\n"), text: "Hi", kinds: "rrcf", finish: "stop", flags: []string{"no_done"}}),
			row(wireRow{name: "no output", body: start + responseEnd("response.completed", "completed", `"error":null`, ""), outcome: record.EmptyOutput, detail: "without output", kinds: "rrf", finish: "stop"}),
			row(wireRow{name: "delta of another type", body: start + typed("response.output_text.delta", `,"delta":{"a":1}`) + text + end, text: "Hi", kinds: "rrrcf", finish: "stop"}),
		},
		body: []wireRow{
			row(wireRow{
				name: "response", body: `{"id":"resp_1","object":"response","status":"completed","error":null,"output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"content":[]},` + whole +
					`],"usage":{"input_tokens":37,"input_tokens_details":{"cached_tokens":32},"output_tokens":11,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":48}}`,
				text: "HiHi", reasoning: "hm", kinds: "c", finish: "stop", perEvent: []int64{11},
			}),
			{
				name: "tools", body: `{"object":"response","status":"completed","output":[` + call + `],"usage":{"input_tokens":3,"output_tokens":11}}`,
				kinds: "t", finish: "tool_calls", prompt: n(3), output: n(11), perEvent: []int64{11}, tools: []Tool{{"call_1", "weather", `{"city":"Bern"}`}},
			},
			{
				name: "incomplete", req: Request{MaxTokens: 11}, body: `{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[` + whole + `],"usage":{"input_tokens":3,"output_tokens":11}}`,
				text: "HiHi", kinds: "c", finish: "length", prompt: n(3), output: n(11), perEvent: []int64{11},
			},
			{name: "still running", body: `{"status":"in_progress","output":[` + whole + `],"usage":null}`, text: "HiHi", kinds: "c", flags: []string{"no_done", "usage_missing"}},
			{name: "failed", body: `{"status":"failed","error":{"code":"server_error","message":"x"},"output":[]}`, outcome: record.ErrorEvent, code: "server_error", detail: "x", kinds: "e", flags: missing},
			{name: "empty", body: `{"status":"completed","output":[]}`, outcome: record.EmptyOutput, detail: "without output", kinds: "?", finish: "stop", flags: missing},
			{name: "another API", body: `{"choices":[]}`, outcome: record.Malformed, detail: "without output", flags: missing},
		},
	}
}

func TestResponses(t *testing.T) { responsesRows().run(t) }

func TestResponsesRequest(t *testing.T) {
	top := 0.9
	target := Target{API: APIResponses, Model: "m"}
	checkRequests(t, []requestRow{
		{
			"dialogue", target,
			Request{Messages: []corpus.Message{{Role: "system", Content: "s"}, {Role: "user", Content: "u"}}, MaxTokens: 7, Stream: true, TopP: &top},
			`{"model":"m","input":[{"role":"system","content":"s"},{"role":"user","content":"u"}],"max_output_tokens":7,"stream":true,"top_p":0.9,"store":false}`,
		},
		{"extra", target, Request{Prompt: "p", Extra: map[string]any{"store": true}}, `{"model":"m","input":[{"role":"user","content":"p"}],"store":true}`},
	})
	if _, err := target.appendRequest(nil, &Request{Prompt: "p", Stop: []string{"x"}}); err == nil {
		t.Error("stop sequences are left out without a word")
	}
}

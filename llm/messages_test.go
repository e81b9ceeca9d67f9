package llm

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

const (
	messagesStart = `{"type":"message_start","message":{"id":"msg_01","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,` +
		`"usage":{"input_tokens":12,"cache_creation_input_tokens":100,"cache_read_input_tokens":400,"output_tokens":1}}}`
	messagesPlain = `{"type":"message_start","message":{"id":"msg_01","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":12,"output_tokens":1}}}`
)

func messagesDelta(index int, delta string) string {
	return event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, delta))
}

func messagesBlock(index int, block string) string {
	return event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block))
}

func messagesEnd(reason, usage string) string {
	return event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"`+reason+`","stop_sequence":null},"usage":`+usage+`}`)
}

func messagesRows() dialectRows {
	n := record.Tokens
	start, plain := event("message_start", messagesStart), event("message_start", messagesPlain)
	ping := event("ping", `{"type":"ping"}`)
	open := messagesBlock(0, `{"type":"text","text":""}`)
	text := messagesDelta(0, `{"type":"text_delta","text":"Hi"}`)
	close := event("content_block_stop", `{"type":"content_block_stop","index":0}`)
	stop := event("message_stop", `{"type":"message_stop"}`)
	end := messagesEnd("end_turn", `{"output_tokens":2}`)
	return dialectRows{
		target: Target{API: APIMessages, Model: "m"}, paths: [2]string{"/v1/messages", "/v1/messages"},
		stream: []wireRow{
			{name: "plain", body: plain + open + ping + text + text + close + end + stop, text: "HiHi", kinds: "rrpcc?fd", finish: "stop", prompt: n(12), output: n(2)},
			{name: "cached prompt", body: start + open + text + close + end + stop, text: "Hi", kinds: "rrc?fd", finish: "stop", prompt: n(512), output: n(2), cached: n(400)},
			{name: "usage at the end again", body: event("message_start", `{"type":"message_start","message":{"content":[],"usage":{"input_tokens":0,"output_tokens":0}}}`) + open + text +
				messagesEnd("end_turn", `{"input_tokens":9,"output_tokens":2}`) + stop, text: "Hi", kinds: "rrcfd", finish: "stop", prompt: n(9), output: n(2)},
			{name: "length", req: Request{MaxTokens: 2}, body: plain + open + text + messagesEnd("max_tokens", `{"output_tokens":2}`) + stop, text: "Hi", kinds: "rrcfd", finish: "length", prompt: n(12), output: n(2)},
			{
				name: "context too short", req: Request{MaxTokens: 9}, body: plain + open + text + messagesEnd("model_context_window_exceeded", `{"output_tokens":2}`) + stop,
				outcome: record.LengthMismatch, detail: "9 were asked", text: "Hi", kinds: "rrcfd", finish: "length", prompt: n(12), output: n(2),
			},
			{
				name: "thinking", body: plain + messagesBlock(0, `{"type":"thinking","thinking":"","signature":""}`) + messagesDelta(0, `{"type":"thinking_delta","thinking":"hm"}`) +
					messagesDelta(0, `{"type":"signature_delta","signature":"EqQB"}`) + close + messagesBlock(1, `{"type":"text","text":"a"}`) + end + stop,
				text: "a", reasoning: "hm", kinds: "rrg??cfd", finish: "stop", prompt: n(12), output: n(2),
			},
			{
				name: "thinking that is not shown", body: plain + messagesBlock(0, `{"type":"thinking","thinking":""}`) + messagesDelta(0, `{"type":"signature_delta","signature":"EqQB"}`) + close +
					messagesBlock(1, `{"type":"text","text":"a"}`) + messagesEnd("end_turn", `{"output_tokens":500}`) + stop,
				text: "a", kinds: "rrr?cfd", finish: "stop", prompt: n(12), output: n(500),
			},
			{name: "more tokens than text", body: plain + text + messagesEnd("end_turn", `{"output_tokens":500}`) + stop, text: "Hi", kinds: "rcfd", finish: "stop", prompt: n(12), flags: []string{"usage_inconsistent"}},
			{name: "stop without a reason, behind the end of a block", body: plain + open + text + close + stop, text: "Hi", kinds: "rrc?d", prompt: n(12)},
			{
				name: "tools", body: plain + messagesBlock(1, `{"type":"tool_use","id":"toolu_1","name":"weather","input":{}}`) + messagesDelta(1, `{"type":"input_json_delta","partial_json":""}`) +
					messagesDelta(1, `{"type":"input_json_delta","partial_json":"{\"city\": "}`) + messagesDelta(1, `{"type":"input_json_delta","partial_json":"\"Bern\"}"}`) +
					messagesBlock(2, `{"type":"tool_use","id":"toolu_2","name":"time","input":{}}`) + messagesEnd("tool_use", `{"output_tokens":20}`) + stop,
				kinds: "rt?tttfd", finish: "tool_calls", prompt: n(12), output: n(20), tools: []Tool{{"toolu_1", "weather", `{"city": "Bern"}`}, {"toolu_2", "time", ""}},
			},
			{
				name: "broken arguments", body: plain + messagesBlock(0, `{"type":"tool_use","id":"x","name":"f","input":{}}`) + messagesDelta(0, `{"type":"input_json_delta","partial_json":"{\"a\""}`) +
					messagesEnd("tool_use", `{"output_tokens":9}`) + stop, outcome: record.Malformed, code: "tool_args_invalid", detail: "not JSON",
				kinds: "rttfd", finish: "tool_calls", prompt: n(12), output: n(9), tools: []Tool{{"x", "f", `{"a"`}},
			},
			{
				name: "error", body: plain + open + text + event("error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`),
				outcome: record.ErrorEvent, code: "overloaded_error", detail: "Overloaded", text: "Hi", kinds: "rrce", prompt: n(12),
			},
			{name: "error without a name", body: plain + `data: {"type":"error","error":{"type":"api_error","message":"x"}}` + "\n\n", outcome: record.ErrorEvent, code: "api_error", detail: "x", kinds: "re", prompt: n(12)},
			{
				name: "names only", body: event("message_start", `{"message":{"content":[]}}`) + event("content_block_delta", `{"delta":{"type":"text_delta","text":"a"}}`) + event("message_delta", `{"delta":{"stop_reason":"end_turn"}}`) + event("message_stop", `{}`),
				text: "a", kinds: "rcfd", finish: "stop", flags: []string{"usage_missing"},
			},
			{name: "cut before the end", body: plain + open + text, outcome: record.Truncated, detail: "after 1 events", text: "Hi", kinds: "rrc", prompt: n(12)},
			{name: "cut behind the reason", body: plain + open + text + end, text: "Hi", kinds: "rrcf", finish: "stop", prompt: n(12), output: n(2), flags: []string{"no_done"}},
			{name: "cut inside the last event", body: plain + open + text + end[:30], outcome: record.Truncated, detail: "after 1 events", text: "Hi", kinds: "rrc", prompt: n(12)},
			{name: "stop without a reason", body: plain + open + text + stop, text: "Hi", kinds: "rrcd", prompt: n(12)},
			{name: "no output", body: plain + open + close + messagesEnd("end_turn", `{"output_tokens":0}`) + stop, outcome: record.EmptyOutput, detail: "without output", kinds: "rr?fd", finish: "stop", prompt: n(12), output: n(0)},
			{name: "refusal", body: plain + open + text + messagesEnd("refusal", `{"output_tokens":2}`) + stop, text: "Hi", kinds: "rrcfd", finish: "content_filter", prompt: n(12), output: n(2)},
			{name: "new events", body: plain + event("content_block_hint", `{"type":"content_block_hint","x":[{}]}`) + open + text + messagesDelta(0, `{"type":"citations_delta","citation":{"a":1}}`) + end + stop, text: "Hi", kinds: "r?rc?fd", finish: "stop", prompt: n(12), output: n(2)},
			{name: "keys in another order", body: `data: {"delta":{"text":"a","t\u0079pe":"text_delta"},"index":0,"type":"content_block_delta"}` + "\n\n" + end + stop, text: "a", kinds: "cfd", finish: "stop", output: n(2)},
			{name: "text of a wrong type", body: plain + messagesDelta(0, `{"type":"text_delta","text":7}`), outcome: record.Malformed, detail: "shape", kinds: "r?", prompt: n(12)},
			{name: "broken JSON", body: plain + "data: {\"type\":\n\n", outcome: record.Malformed, detail: "not JSON", kinds: "r?", prompt: n(12)},
			{name: "usage of a wrong type", body: plain + open + text + messagesEnd("end_turn", `{"output_tokens":"two"}`) + stop, text: "Hi", kinds: "rrcfd", finish: "stop", prompt: n(12), flags: []string{"usage_inconsistent"}},
			{name: "no objects", body: "data: 7\n\n" + plain + open + text + end + stop, text: "Hi", kinds: "?rrcfd", finish: "stop", prompt: n(12), output: n(2)},
		},
		body: []wireRow{
			{
				name: "message", body: `{"id":"msg_01","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"text","text":"He"},{"type":"text","text":"llo "},{"type":"text","text":"there"}],"stop_reason":"end_turn","usage":{"input_tokens":12,"cache_creation_input_tokens":null,"cache_read_input_tokens":8,"output_tokens":4}}`,
				text: "Hello there", reasoning: "hm", kinds: "c", finish: "stop", prompt: n(20), output: n(4), cached: n(8), perEvent: []int64{4},
			},
			{
				name: "tools", body: `{"type":"message","content":[{"type":"tool_use","id":"a","name":"f","input":{"x": 1}},{"type":"tool_use","name":"g","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":12,"output_tokens":4}}`,
				kinds: "t", finish: "tool_calls", prompt: n(12), output: n(4), perEvent: []int64{4}, tools: []Tool{{"a", "f", `{"x": 1}`}, {"", "g", ""}},
			},
			{name: "no reason", body: `{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":null,"usage":{"input_tokens":12,"output_tokens":1}}`, text: "a", kinds: "c", prompt: n(12), output: n(1), perEvent: []int64{1}, flags: []string{"no_done"}},
			{name: "empty", body: `{"type":"message","content":[],"stop_reason":"end_turn","usage":{"input_tokens":12,"output_tokens":0}}`, outcome: record.EmptyOutput, detail: "without output", kinds: "?", finish: "stop", prompt: n(12), output: n(0)},
			{name: "error", body: `{"type":"error","error":{"type":"api_error","message":"x"}}`, outcome: record.ErrorEvent, code: "api_error", detail: "x", kinds: "e", flags: []string{"usage_missing"}},
			{name: "another API", body: `{"choices":[{"index":0,"message":{"content":"a"}}]}`, outcome: record.Malformed, detail: "without content", flags: []string{"usage_missing"}},
			{name: "no content", body: `{"type":"message"}`, outcome: record.Malformed, detail: "without content", flags: []string{"usage_missing"}},
		},
	}
}

func TestMessages(t *testing.T) { messagesRows().run(t) }

func TestMessagesRequest(t *testing.T) {
	temperature := 0.5
	system := []corpus.Message{{Role: "system", Content: "be brief"}, {Role: "system", Content: "be kind"}, {Role: "user", Content: "hi"}, {Role: "assistant", Content: "ho"}, {Role: "user", Content: "?"}}
	target := Target{API: APIMessages, Model: "m"}
	checkRequests(t, []requestRow{
		{
			"dialogue", target,
			Request{Messages: system, MaxTokens: 7, Stream: true, Temperature: &temperature, Stop: []string{"x"}},
			`{"model":"m","max_tokens":7,"system":"be brief\nbe kind","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"ho"},{"role":"user","content":"?"}],"stream":true,"temperature":0.5,"stop_sequences":["x"]}`,
		},
		{"prompt", target, Request{Prompt: "p"}, `{"model":"m","max_tokens":4096,"messages":[{"role":"user","content":"p"}]}`},
		{"system alone", target, Request{Messages: system[:1]}, `{"model":"m","max_tokens":4096,"messages":[{"role":"system","content":"be brief"}]}`},
		{
			"extra", target,
			Request{Prompt: "p", Extra: map[string]any{"max_tokens": 9, "thinking": map[string]any{"type": "enabled"}}},
			`{"model":"m","messages":[{"role":"user","content":"p"}],"max_tokens":9,"thinking":{"type":"enabled"}}`,
		},
	})
}

// TestMessagesHeaders holds the header fields that the API demands, by both
// ways to the wire.
func TestMessagesHeaders(t *testing.T) {
	for _, protocol := range []string{ProtocolHTTP1, "proxy"} {
		for _, version := range []string{"", "2024-01-01"} {
			heads := make(chan http.Header, 1)
			body := messagesRows().body[0].body
			s := serve(t, func(_ int, p *peer) {
				h, _ := p.request()
				heads <- h
				p.Write([]byte(plain("200 OK", "application/json", body, "Connection: close\r\n")))
			})
			target := Target{URL: s.url(), API: APIMessages, Key: "sk-secret"}
			if protocol == "proxy" {
				target.Proxy = s.url()
			}
			want := "2023-06-01"
			if version != "" {
				target.Headers, want = map[string]string{"Anthropic-Version": version}, version
			}
			rec, _ := ask(t, t.Context(), client(t, target), &Request{Prompt: "p"})
			h := <-heads
			if rec.Outcome != record.OK || strings.Join(h.Values("Anthropic-Version"), ",") != want || h.Get("X-Api-Key") != "sk-secret" || h.Get("Authorization") != "" {
				t.Errorf("%s: %s, headers %v", protocol, rec.Outcome, h)
			}
		}
	}
	for name, refused := range map[string]bool{"x-api-key": true, "anthropic-version": false, "Authorization": false} {
		target := Target{URL: "http://h", API: APIMessages, Key: "k", Headers: map[string]string{name: "other"}}
		if err := target.Validate(); (err != nil) != refused {
			t.Errorf("header %s beside a key: %v", name, err)
		}
	}
}

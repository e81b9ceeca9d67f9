package llm

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
	"github.com/google/go-cmp/cmp"
)

func tgiEvent(text string, special bool, rest string) string {
	return fmt.Sprintf(`data:{"index":1,"token":{"id":5,"text":"%s","logprob":-0.1,"special":%v},%s}`+"\n\n", text, special, rest)
}

func tgiRows() dialectRows {
	n := record.Tokens
	const open = `"generated_text":null,"details":null`
	details := func(reason string, tokens int) string {
		return fmt.Sprintf(`"generated_text":"Hi","details":{"finish_reason":"%s","generated_tokens":%d,"input_length":12,"seed":null}`, reason, tokens)
	}
	missing := []string{"usage_missing"}
	return dialectRows{
		target: Target{API: APITGI}, paths: [2]string{"/generate_stream", "/generate"},
		stream: []wireRow{
			{name: "end of text", body: tgiEvent("H", false, open) + tgiEvent("i", false, open) + tgiEvent("</s>", true, details("eos_token", 3)), text: "Hi", kinds: "ccf", finish: "stop", prompt: n(12), output: n(3), perEvent: []int64{1, 1}},
			{name: "length", req: Request{MaxTokens: 2}, body: tgiEvent("H", false, open) + tgiEvent("i", false, details("length", 2)), text: "Hi", kinds: "cc", finish: "length", prompt: n(12), output: n(2), perEvent: []int64{1, 1}},
			{name: "length, but not as asked", req: Request{MaxTokens: 5}, body: tgiEvent("Hi", false, details("length", 2)), outcome: record.LengthMismatch, detail: "5 were asked", text: "Hi", kinds: "c", finish: "length", prompt: n(12), output: n(2), perEvent: []int64{1}},
			{name: "stop sequence", body: tgiEvent("Hi", false, `"generated_text":"Hi","details":{"finish_reason":"stop_sequence","generated_tokens":1}`), text: "Hi", kinds: "c", finish: "stop", output: n(1), perEvent: []int64{1}},
			{name: "error", body: tgiEvent("H", false, open) + `data:{"error":"Request failed during generation","error_type":"generation"}` + "\n\n", outcome: record.ErrorEvent, code: "generation", detail: "failed during", text: "H", kinds: "ce", perEvent: []int64{1}, flags: missing},
			{name: "cut", body: tgiEvent("H", false, open), outcome: record.Truncated, detail: "after 1 events", text: "H", kinds: "c", perEvent: []int64{1}, flags: missing},
			{name: "no output", body: tgiEvent("</s>", true, details("eos_token", 1)), outcome: record.EmptyOutput, detail: "without output", kinds: "f", finish: "stop", prompt: n(12), output: n(1)},
			{name: "a done of others", body: tgiEvent("H", false, details("length", 1)) + eventDone, text: "H", kinds: "c", finish: "length", prompt: n(12), output: n(1), perEvent: []int64{1}},
		},
		body: []wireRow{
			{name: "answer", body: `{"generated_text":"Hi","details":{"finish_reason":"length","generated_tokens":2,"seed":1,"prefill":[],"tokens":[{"id":1,"text":"H"},{"id":2,"text":"i"}]}}`, text: "Hi", kinds: "c", finish: "length", output: n(2), perEvent: []int64{2}},
			{name: "in a list", body: `[{"generated_text":"Hi","details":{"finish_reason":"eos_token","generated_tokens":2}}]`, text: "Hi", kinds: "c", finish: "stop", output: n(2), perEvent: []int64{2}},
			{name: "no details", body: `{"generated_text":"Hi"}`, text: "Hi", kinds: "c", flags: []string{"no_done", "usage_missing"}},
			{name: "empty", body: `{"generated_text":"","details":{"finish_reason":"eos_token","generated_tokens":1}}`, outcome: record.EmptyOutput, detail: "without output", kinds: "?", finish: "stop", output: n(1)},
			{name: "error", body: `{"error":"Model is overloaded","error_type":"overloaded"}`, outcome: record.ErrorEvent, code: "overloaded", detail: "Model is overloaded", kinds: "e", flags: missing},
			{name: "empty list", body: `[]`, outcome: record.Malformed, detail: "without generated_text", flags: missing},
			{name: "two answers", body: `[{"generated_text":"a"},{"generated_text":"b"}]`, outcome: record.Malformed, detail: "shape", flags: missing},
		},
	}
}

func TestTGI(t *testing.T) { tgiRows().run(t) }

func TestTGIRequest(t *testing.T) {
	zero, half, one, seed := 0.0, 0.5, 1.0, int64(7)
	target := Target{API: APITGI, Model: "left out"}
	checkRequests(t, []requestRow{
		{
			"greedy", target,
			Request{Messages: []corpus.Message{{Content: "a"}, {Content: "b"}}, Stream: true, MaxTokens: 9, Temperature: &zero, TopP: &one, Seed: &seed, Stop: []string{"x"}},
			`{"inputs":"a\nb","parameters":{"details":true,"max_new_tokens":9,"do_sample":false,"seed":7,"stop":["x"]}}`,
		},
		{"sampled", target, Request{Prompt: "p", Temperature: &half, TopP: &half}, `{"inputs":"p","parameters":{"details":true,"do_sample":true,"temperature":0.5,"top_p":0.5}}`},
		{"extra", target, Request{Prompt: "p", Extra: map[string]any{"parameters": map[string]any{"best_of": 2}}}, `{"inputs":"p","parameters":{"best_of":2}}`},
	})
}

// TestTGITellsTimesInItsHead holds that the server's own times and counts reach
// the record, by both ways to the wire, and that no other API reads them.
func TestTGITellsTimesInItsHead(t *testing.T) {
	s := serve(t, func(_ int, p *peer) {
		req, err := http.ReadRequest(p.in)
		if err != nil {
			return
		}
		io.Copy(io.Discard, req.Body)
		if !strings.HasSuffix(req.URL.Path, "/generate") && req.URL.Path != "/api/chat" {
			io.WriteString(p, plain("404 Not Found", "text/plain", "asked for "+req.URL.Path))
			return
		}
		io.WriteString(p, plain("200 OK", "application/json", `{"generated_text":"Hi","message":{"content":"Hi"},"details":{"finish_reason":"length","generated_tokens":2},"done":true}`,
			"X-Compute-Type: 1-a100\r\nx-compute-time: 0.7\r\nx-total-time: 701\r\nX-Validation-Time: 0\r\nx-queue-time: 3\r\nx-inference-time: 698\r\nx-time-per-token: 349\r\n",
			"x-prompt-tokens: 17\r\nx-generated-tokens: 2\r\nx-other-time: 5\r\nx-queue-time: later\r\n"))
	})
	ms := time.Millisecond
	want := map[string]time.Duration{"total": 701 * ms, "validation": 0, "queue": 3 * ms, "inference": 698 * ms, "time_per_token": 349 * ms}
	for _, target := range []Target{{API: APITGI}, {API: APITGI, Proxy: s.url()}} {
		target.URL = s.url()
		rec, a := ask(t, t.Context(), client(t, target), &Request{Prompt: "p"})
		prompt, _ := rec.Prompt.N()
		if diff := cmp.Diff(want, rec.Server); diff != "" || rec.Outcome != record.OK || prompt != 17 || a.Text != "Hi" {
			t.Errorf("%s (%s), prompt of %d tokens (-want +got):\n%s", rec.Outcome, rec.Detail, prompt, diff)
		}
	}
	if rec, _ := ask(t, t.Context(), client(t, Target{URL: s.url(), API: APIOllama}), &Request{Prompt: "p"}); rec.Server != nil || rec.Prompt.Known() {
		t.Errorf("another API reads the head: %v, %v", rec.Server, rec.Prompt)
	}
}

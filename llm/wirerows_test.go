package llm

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/record"
	"github.com/google/go-cmp/cmp"
)

// vllmChunk is a content chunk as vLLM sends it.
const vllmChunk = `data: {"id":"chatcmpl-9f2c0b7e5d6a4c1f8e3b2a1d0c9b8a7f","object":"chat.completion.chunk","created":1790000000,"model":"meta-llama/Llama-3.1-8B-Instruct",` +
	`"choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}` + "\n\n"

func content(s string) string {
	return `data: {"choices":[{"index":0,"delta":{"content":"` + s + `"}}]}` + "\n\n"
}

// wireRow is what some server really sends, and the right outcome.
type wireRow struct {
	name      string
	body      string
	req       Request
	outcome   record.Outcome
	text      string
	reasoning string
	kinds     string // of the events, by initial: r c g(reasoning) t f u e p(comment) d ?
	finish    string
	code      string
	detail    string // must be in Detail
	flags     []string
	prompt    record.Count
	output    record.Count
	cached    record.Count
	thought   record.Count
	perEvent  []int64 // tokens of the payload events; nil: unknown
	tools     []Tool
	server    map[string]time.Duration
}

var kindInitials = map[record.Kind]byte{
	record.KindRole: 'r', record.KindContent: 'c', record.KindReasoning: 'g', record.KindTool: 't', record.KindFinish: 'f',
	record.KindUsage: 'u', record.KindError: 'e', record.KindComment: 'p', record.KindDone: 'd', record.KindUnknown: '?',
}

func wireRows() []wireRow {
	n := record.Tokens
	missing := []string{"usage_missing"}
	return []wireRow{
		{name: "plain", body: eventA + eventA + eventStop + eventUsage + eventDone, text: "aa", kinds: "ccfud", finish: "stop", prompt: n(5), output: n(2)},
		{name: "W01 line of 65537 bytes", body: content(strings.Repeat("x", 65537)) + eventStop + eventDone, text: strings.Repeat("x", 65537), kinds: "cfd", finish: "stop", flags: missing},
		{name: "W02 character in two pieces", body: content("\xe4\xb8\xad") + eventStop + eventDone, text: "中", kinds: "cfd", finish: "stop", flags: missing},
		{name: "W02 bytes that are no character", body: content("a\xe4b") + eventStop + eventDone, text: "a\ufffdb", kinds: "cfd", finish: "stop", flags: []string{"usage_missing", "invalid_utf8"}},
		{name: "W03 CRLF", body: strings.ReplaceAll(eventA+eventStop+eventDone, "\n", "\r\n"), text: "a", kinds: "cfd", finish: "stop", flags: missing},
		{name: "W03 CR", body: strings.ReplaceAll(eventA+eventStop+eventDone, "\n", "\r"), text: "a", kinds: "cfd", finish: "stop", flags: missing},
		{name: "W03 lines of data", body: "data: {\"choices\":[{\"index\":0,\r\ndata: \"delta\":{\"content\":\ndata:\"a\"}}]}\r\n\n" + eventStop + eventDone, text: "a", kinds: "cfd", finish: "stop", flags: missing},
		{name: "W04 mark", body: "\ufeff" + eventA + eventStop + eventDone, text: "a", kinds: "cfd", finish: "stop", flags: missing},
		{name: "W04 mark inside", body: content("\ufeffa") + eventStop + eventDone, text: "\ufeffa", kinds: "cfd", finish: "stop", flags: missing},
		{name: "W05 comments", body: ": ping\n\n:\n\nid: 7\n: OPENROUTER PROCESSING\n\n" + eventA + ": ping\n" + eventStop + ":\n\n" + eventDone, text: "a", kinds: "pppcpfpd", finish: "stop", flags: missing},
		{name: "W07 empty events", body: "data:\n\ndata: \"\"\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n" + eventA + eventStop + eventDone, text: "a", kinds: "pppcfd", finish: "stop", flags: missing},
		{name: "W08 error inside", body: eventA + eventA + `data: {"error":{"message":"x","code":503}}` + "\n\n" + eventDone, outcome: record.ErrorEvent, text: "aa", kinds: "cce", code: "503", detail: "x", flags: missing},
		{name: "W08 error as text", body: eventA + `data: {"error":"out of memory"}` + "\n\n", outcome: record.ErrorEvent, text: "a", kinds: "ce", detail: "out of memory", flags: missing},
		{name: "W08 old shape", body: `data: {"object":"error","message":"x","type":"BadRequest","code":400}` + "\n\n", outcome: record.ErrorEvent, kinds: "e", code: "400", detail: "x", flags: missing},
		{name: "W08 event error", body: eventA + "event: error\ndata: overloaded\n\n", outcome: record.ErrorEvent, text: "a", kinds: "ce", detail: "overloaded", flags: missing},
		{name: "W08 no error", body: `data: {"error":null,"choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n" + `data: {"error":false,"choices":[{"index":0,"delta":{"content":"b"}}]}` + "\n\n" +
			`data: {"error":{},"choices":[{"index":0,"delta":{"content":"c"},"finish_reason":"stop"}]}` + "\n\n" + eventDone, text: "abc", kinds: "cccd", finish: "stop", flags: missing},
		{name: "W08 gave up", body: eventA + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}` + "\n\n" + eventDone, outcome: record.ErrorEvent, text: "a", kinds: "cfd", finish: "error", code: "finish_reason", detail: "gave up", flags: missing},
		{name: "W10 no finish", body: eventA + eventA, outcome: record.Truncated, text: "aa", kinds: "cc", detail: "finish_reason", flags: missing},
		{name: "W10 no done", body: eventA + eventStop, text: "a", kinds: "cf", finish: "stop", flags: []string{"no_done", "usage_missing"}},
		{name: "W10 done without its blank line", body: eventA + eventStop + "data: [DONE]", text: "a", kinds: "cfd", finish: "stop", flags: []string{"no_done", "usage_missing"}},
		{name: "W10 cut inside an event", body: eventA + eventStop[:40], outcome: record.Truncated, text: "a", kinds: "c", detail: "finish_reason", flags: missing},
		{name: "W10 empty", body: "", outcome: record.Truncated, detail: "after 0 events", flags: missing},
		{name: "W10 only done", body: eventDone, outcome: record.EmptyOutput, kinds: "d", detail: "without output", flags: missing},
		{name: "W11 after done", body: eventA + eventStop + eventDone + eventA + "data: {broken\n\n", text: "a", kinds: "cfd", finish: "stop", flags: missing},
		{name: "W13 usage without choices", body: eventA + eventStop + `data: {"usage":{"prompt_tokens":5,"completion_tokens":1}}` + "\n\n" + eventDone, text: "a", kinds: "cfud", finish: "stop", prompt: n(5), output: n(1)},
		{name: "W13 choices null", body: eventA + eventStop + `data: {"choices":null,"usage":{"prompt_tokens":5,"completion_tokens":1}}` + "\n\n" + eventDone, text: "a", kinds: "cfud", finish: "stop", prompt: n(5), output: n(1)},
		{name: "W13 usage null on every chunk", body: strings.ReplaceAll(eventA+eventStop, `"choices"`, `"usage":null,"choices"`) + eventUsage + eventDone, text: "a", kinds: "cfud", finish: "stop", prompt: n(5), output: n(2)},
		{
			name: "W13 details", body: eventA + eventStop + `data: {"choices":[],"usage":{"prompt_tokens":50,"total_tokens":57,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":48},"completion_tokens_details":{"reasoning_tokens":3}}}` + "\n\n" + eventDone,
			text: "a", kinds: "cfud", finish: "stop", prompt: n(50), output: n(7), cached: n(48), thought: n(3),
		},
		{
			name: "W14 role first", body: `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n" + `data: {"choices":[{"index":0,"delta":{"content":null}}]}` + "\n\n" + `data: {"choices":[{"index":0,"delta":{}}]}` + "\n\n" + eventA + eventStop + eventDone,
			text: "a", kinds: "rrrcfd", finish: "stop", flags: missing,
		},
		{name: "W15 reasoning_content", body: strings.Repeat(`data: {"choices":[{"index":0,"delta":{"reasoning_content":"r"}}]}`+"\n\n", 3) + eventA + eventStop + eventDone, text: "a", reasoning: "rrr", kinds: "gggcfd", finish: "stop", flags: missing},
		{name: "W15 reasoning", body: strings.Repeat(`data: {"choices":[{"index":0,"delta":{"reasoning":"r"}}]}`+"\n\n", 3) + eventA + eventStop + eventDone, text: "a", reasoning: "rrr", kinds: "gggcfd", finish: "stop", flags: missing},
		{name: "W15 both keys", body: `data: {"choices":[{"index":0,"delta":{"reasoning":"r","reasoning_content":"r"}}]}` + "\n\n" + eventStop + eventDone, reasoning: "r", kinds: "gfd", finish: "stop", flags: missing},
		{name: "W16 one chunk", body: eventA + eventUsage + eventDone, text: "a", kinds: "cud", prompt: n(5), output: n(2)},
		{name: "W17 no usage", body: content("Hel") + content("lo") + content(" world") + eventStop + eventDone, text: "Hello world", kinds: "cccfd", finish: "stop", flags: missing},
		{name: "W19 prompt of 0", body: eventA + eventStop + `data: {"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":7}}` + "\n\n" + eventDone, text: "a", kinds: "cfud", finish: "stop", flags: []string{"usage_inconsistent"}, output: n(7)},
		{name: "W19 output of 0", body: eventA + eventStop + `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":0}}` + "\n\n" + eventDone, text: "a", kinds: "cfud", finish: "stop", flags: []string{"usage_inconsistent"}, prompt: n(5)},
		{name: "W19 nothing at all", body: eventStop + `data: {"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}` + "\n\n" + eventDone, outcome: record.EmptyOutput, detail: "without output", kinds: "fud", finish: "stop", prompt: n(0), output: n(0)},
		{name: "W19 sum", body: eventA + eventStop + `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":9}}` + "\n\n" + eventDone, text: "a", kinds: "cfud", finish: "stop", flags: []string{"usage_inconsistent"}, prompt: n(5), output: n(1)},
		{name: "W19 more cached than sent", body: eventA + eventStop + `data: {"usage":{"prompt_tokens":5,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":6}}}` + "\n\n" + eventDone, text: "a", kinds: "cfud", finish: "stop", flags: []string{"usage_inconsistent"}, prompt: n(5), output: n(1)},
		{name: "W19 fewer tokens than events", body: strings.Repeat(eventA, 4) + eventStop + eventUsage + eventDone, text: "aaaa", kinds: "ccccfud", finish: "stop", flags: []string{"usage_inconsistent"}, prompt: n(5)},
		{name: "more tokens than were asked", req: Request{MaxTokens: 2}, body: strings.Repeat(eventA, 3) + eventStop + `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":9}}` + "\n\n" + eventDone, outcome: record.LengthMismatch, text: "aaa", kinds: "cccfud", finish: "stop", detail: "2 were asked at most", prompt: n(5), output: n(9)},
		{name: "more tokens than bytes", body: strings.Repeat(eventA, 3) + eventStop + `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":200}}` + "\n\n" + eventDone, text: "aaa", kinds: "cccfud", finish: "stop", flags: []string{"usage_inconsistent"}, prompt: n(5)},
		{name: "hidden reasoning has no bytes", body: strings.Repeat(eventA, 3) + eventStop + `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":203,"completion_tokens_details":{"reasoning_tokens":200}}}` + "\n\n" + eventDone, text: "aaa", kinds: "cccfud", finish: "stop", prompt: n(5), output: n(203), thought: n(200)},
		{name: "an error in no known shape", body: eventA + `data: {"detail":"Internal Server Error"}` + "\n\n" + eventDone, outcome: record.ErrorEvent, text: "a", kinds: "c?d", detail: "no part of an answer", flags: missing},
		{name: "a strange event in a whole answer", body: eventA + `data: {"detail":"fine"}` + "\n\n" + eventStop + eventUsage + eventDone, text: "a", kinds: "c?fud", finish: "stop", prompt: n(5), output: n(2)},
		{name: "W19 negative", body: eventA + eventStop + `data: {"usage":{"prompt_tokens":-3,"completion_tokens":1}}` + "\n\n" + eventDone, text: "a", kinds: "cfud", finish: "stop", flags: []string{"usage_inconsistent"}, output: n(1)},
		{name: "W19 no numbers", body: eventA + eventStop + `data: {"usage":"none"}` + "\n\n" + eventDone, text: "a", kinds: "cfud", finish: "stop", flags: []string{"usage_missing", "usage_inconsistent"}},
		{
			name: "W20 running usage", body: counted("a", 4) + counted("b", 8) + counted("c", 10) + eventStop + `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":10}}` + "\n\n" + eventDone,
			text: "abc", kinds: "cccfud", finish: "stop", prompt: n(5), output: n(10), perEvent: []int64{4, 4, 2},
		},
		{name: "W20 running usage, no closing one", body: counted("a", 4) + counted("b", 8) + eventStop + eventDone, text: "ab", kinds: "ccfd", finish: "stop", prompt: n(5), output: n(8), perEvent: []int64{4, 4}},
		{name: "W20 usage of each chunk", body: counted("a", 1) + counted("b", 1) + counted("c", 1) + eventStop + eventDone, text: "abc", kinds: "cccfd", finish: "stop", prompt: n(5), output: n(3), perEvent: []int64{1, 1, 1}},
		{
			name: "W20 usage of each chunk, varying", body: counted("a", 4) + counted("b", 2) + counted("c", 4) + eventStop + `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":10}}` + "\n\n" + eventDone,
			text: "abc", kinds: "cccfud", finish: "stop", prompt: n(5), output: n(10), perEvent: []int64{4, 2, 4},
		},
		{name: "W20 usage of each chunk, falling", body: counted("a", 4) + counted("b", 2) + eventStop + eventDone, text: "ab", kinds: "ccfd", finish: "stop", prompt: n(5), output: n(6), perEvent: []int64{4, 2}},
		{
			name: "W20 usage of each chunk, rising", body: counted("a", 1) + counted("b", 2) + counted("c", 3) + eventStop + `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":6}}` + "\n\n" + eventDone,
			text: "abc", kinds: "cccfud", finish: "stop", prompt: n(5), output: n(6), perEvent: []int64{1, 2, 3},
		},
		{name: "W20 running usage that stands still", body: counted("a", 1) + counted("b", 1) + counted("c", 2) + eventStop + eventUsage + eventDone, text: "abc", kinds: "cccfud", finish: "stop", prompt: n(5), output: n(2), perEvent: []int64{1, 0, 1}},
		{name: "W20 logprobs", body: `data: {"choices":[{"index":0,"delta":{"content":"ab"},"logprobs":{"content":[{"token":"a"},{"token":"b"}]}}]}` + "\n\n" + eventStop + eventDone, text: "ab", kinds: "cfd", finish: "stop", flags: missing, perEvent: []int64{2}},
		{
			name: "W23 index twice in one chunk", body: toolEvent(`{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\""}},{"index":0,"function":{"arguments":":1}"}}`) + eventStop + eventDone,
			kinds: "tfd", finish: "stop", flags: missing, tools: []Tool{{"x", "f", `{"a":1}`}},
		},
		{
			name: "W23 two calls without index", body: toolEvent(`{"id":"x","function":{"name":"f","arguments":"{"}},{"id":"y","function":{"name":"g","arguments":"{}"}}`) + toolEvent(`{"id":"x","function":{"arguments":"}"}}`) + eventStop + eventDone,
			kinds: "ttfd", finish: "stop", flags: missing, tools: []Tool{{"x", "f", `{}`}, {"y", "g", `{}`}},
		},
		{
			name: "W23 by position", body: toolEvent(`{"function":{"name":"f","arguments":"{"}},{"function":{"name":"g","arguments":"["}}`) + toolEvent(`{"function":{"arguments":"}"}},{"function":{"arguments":"]"}}`) + eventStop + eventDone,
			kinds: "ttfd", finish: "stop", flags: missing, tools: []Tool{{"", "f", `{}`}, {"", "g", `[]`}},
		},
		{
			name: "W23 one after another", body: toolEvent(`{"function":{"name":"f","arguments":"{"}}`) + toolEvent(`{"function":{"arguments":"}"}}`) + toolEvent(`{"function":{"name":"g","arguments":"{}"}}`) + eventStop + eventDone,
			kinds: "tttfd", finish: "stop", flags: missing, tools: []Tool{{"", "f", `{}`}, {"", "g", `{}`}},
		},
		{
			name: "W23 one index for two ids", body: toolEvent(`{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}`) + toolEvent(`{"index":0,"id":"y","function":{"name":"g","arguments":"{}"}}`) + eventStop + eventDone,
			kinds: "ttfd", finish: "stop", flags: missing, tools: []Tool{{"x", "f", `{}`}, {"y", "g", `{}`}},
		},
		{
			name: "W23 broken arguments", body: toolEvent(`{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\""}}`) + eventStop + eventDone, outcome: record.Malformed, code: "tool_args_invalid", detail: "not JSON",
			kinds: "tfd", finish: "stop", flags: missing, tools: []Tool{{"x", "f", `{"a"`}},
		},
		{name: "broken JSON", body: eventA + "data: {\"choices\":[\n\n" + eventDone, outcome: record.Malformed, text: "a", kinds: "c?", detail: "not JSON", flags: missing},
		{name: "content of a wrong type", body: `data: {"choices":[{"index":0,"delta":{"content":7}}]}` + "\n\n", outcome: record.Malformed, kinds: "?", detail: "content", flags: missing},
		{name: "content in parts", body: `data: {"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},"finish_reason":"stop"}]}` + "\n\n" + eventDone, text: "ab", kinds: "cd", finish: "stop", flags: missing},
		{name: "escapes", body: content(`\u4e2d\ud83d\ude00\"\\\/\b\f\n\r\t\ud83dx`) + eventStop + eventDone, text: "中😀\"\\/\b\f\n\r\t\ufffdx", kinds: "cfd", finish: "stop", flags: missing},
		{name: "refusal", body: `data: {"choices":[{"index":0,"delta":{"refusal":"no"},"finish_reason":"stop"}]}` + "\n\n" + eventDone, text: "no", kinds: "cd", finish: "stop", flags: missing},
		{name: "completions", body: `data: {"choices":[{"index":0,"text":"a","finish_reason":null}]}` + "\n\n" + `data: {"choices":[{"index":0,"text":"","finish_reason":"stop"}]}` + "\n\n" + eventDone, text: "a", kinds: "cfd", finish: "stop", flags: missing},
		{name: "two choices", body: eventA + `data: {"choices":[{"index":1,"delta":{"content":"b"}}]}` + "\n\n" + eventStop + `data: {"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}` + "\n\n", text: "a", kinds: "ccff", finish: "stop", flags: []string{"no_done", "usage_missing"}},
		{name: "two choices, one unfinished", body: eventA + `data: {"choices":[{"index":1,"delta":{"content":"b"}}]}` + "\n\n" + eventStop, outcome: record.Truncated, text: "a", kinds: "ccf", finish: "stop", detail: "finish_reason", flags: missing},
		{name: "finish with the last text", body: eventA + `data: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}` + "\n\n" + eventDone, text: "ab", kinds: "ccd", finish: "stop", prompt: n(5), output: n(2)},
		{name: "empty output", body: `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n" + eventStop + eventDone, outcome: record.EmptyOutput, kinds: "rfd", finish: "stop", detail: "without output", flags: missing},
		{name: "empty output that usage denies", body: eventStop + eventUsage + eventDone, outcome: record.EmptyOutput, kinds: "fud", finish: "stop", detail: "without output", prompt: n(5), output: n(2)},
		{name: "length", req: Request{MaxTokens: 2}, body: eventA + eventA + strings.ReplaceAll(eventStop, "stop", "length") + eventUsage + eventDone, text: "aa", kinds: "ccfud", finish: "length", prompt: n(5), output: n(2)},
		{name: "length mismatch", req: Request{MaxTokens: 9}, body: eventA + eventA + strings.ReplaceAll(eventStop, "stop", "length") + eventUsage + eventDone, outcome: record.LengthMismatch, text: "aa", kinds: "ccfud", finish: "length", detail: "9 were asked", prompt: n(5), output: n(2)},
		{name: "length of two choices", req: Request{MaxTokens: 2}, body: eventA + strings.ReplaceAll(eventA, `"index":0`, `"index":1`) + strings.ReplaceAll(eventStop, "stop", "length") +
			strings.ReplaceAll(strings.ReplaceAll(eventStop, "stop", "length"), `"index":0`, `"index":1`) + `data: {"usage":{"prompt_tokens":5,"completion_tokens":4}}` + "\n\n" + eventDone, text: "a", kinds: "ccffud", finish: "length", prompt: n(5), output: n(4)},
		{name: "short output", req: Request{MaxTokens: 9, IgnoreEOS: true}, body: eventA + eventA + eventStop + eventUsage + eventDone, text: "aa", kinds: "ccfud", finish: "stop", flags: []string{"short_output"}, prompt: n(5), output: n(2)},
		{
			name: "timings of vLLM", body: eventA + eventStop + `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1},"metrics":{"time_to_first_token_ms":12.5,"queue_time_ms":0.25,"tokens_per_second":80,"x_ms":null}}` + "\n\n" + eventDone,
			text: "a", kinds: "cfud", finish: "stop", prompt: n(5), output: n(1), server: map[string]time.Duration{"time_to_first_token": 12500 * time.Microsecond, "queue_time": 250 * time.Microsecond},
		},
		{
			name: "timings of llama.cpp", body: eventA + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1},"timings":{"cache_n":0,"prompt_n":5,"prompt_ms":3.25,"predicted_n":1,"predicted_ms":2}}` + "\n\n" + eventDone,
			text: "a", kinds: "cfd", finish: "stop", prompt: n(5), output: n(1), server: map[string]time.Duration{"prompt": 3250 * time.Microsecond, "predicted": 2 * time.Millisecond},
		},
		{name: "not an object", body: "data: 7\n\ndata: null\n\n" + eventA + eventStop + eventDone, text: "a", kinds: "??cfd", finish: "stop", flags: missing},
	}
}

func counted(text string, tokens int) string {
	return `data: {"choices":[{"index":0,"delta":{"content":"` + text + `"}}],"usage":{"prompt_tokens":5,"completion_tokens":` + itoa(tokens) + "}}\n\n"
}

func toolEvent(calls string) string {
	return `data: {"choices":[{"index":0,"delta":{"tool_calls":[` + calls + `]}}]}` + "\n\n"
}

// pieces is a stream of body pieces, each of a read of its own, a millisecond apart.
type pieces struct {
	rest  [][]byte
	at    time.Time
	read  uint32
	err   error // at the end; nil: io.EOF
	spoil []byte
}

func (p *pieces) next() (fragment, error) {
	for i := range p.spoil { // what was handed out is not valid any more
		p.spoil[i] = '#'
	}
	if len(p.rest) == 0 {
		if p.err != nil {
			return fragment{}, p.err
		}
		return fragment{}, io.EOF
	}
	p.read++
	p.at = p.at.Add(time.Millisecond)
	p.spoil = slices.Clone(p.rest[0])
	p.rest = p.rest[1:]
	return fragment{p: p.spoil, at: p.at, lag: -1, read: p.read}, nil
}

func (*pieces) release(bool) {}

// replay lets a tally read an answer that comes in the given pieces.
func replay(t testing.TB, target *Target, req *Request, h head, s *pieces) (record.Record, Answer) {
	t.Helper()
	epoch := time.Now()
	s.at = epoch
	rec := record.Record{Stream: req.Stream}
	q := &call{epoch: epoch, rec: &rec}
	full := target.withDefaults()
	y := tallies.Get().(*tally)
	y.begin(&full, q, req)
	y.finish(t.Context(), y.read(s, h))
	a := y.answer()
	y.end()
	checkRecord(t, &rec)
	return rec, a
}

// outcomeRow writes what came of a row in the row's own terms.
func outcomeRow(w wireRow, r *record.Record, a Answer) wireRow {
	got := wireRow{
		name: w.name, body: w.body, req: w.req, outcome: r.Outcome, text: a.Text, reasoning: a.Reasoning, finish: r.Finish, code: r.Code,
		prompt: r.Prompt, output: r.Output, cached: r.Cached, thought: r.Reasoning, tools: a.Tools, server: r.Server,
	}
	known := true
	for _, e := range r.Events {
		got.kinds += string(kindInitials[e.Kind])
		if e.Kind.Payload() {
			k, ok := e.Tokens.N()
			known = known && ok
			got.perEvent = append(got.perEvent, k)
		}
	}
	if !known || len(got.perEvent) == 0 {
		got.perEvent = nil
	}
	for _, f := range r.Flags.Names() {
		if f != "coalesced" && f != "retried" {
			got.flags = append(got.flags, f)
		}
	}
	if got.detail = r.Detail; strings.Contains(r.Detail, w.detail) {
		got.detail = w.detail
	}
	if w.outcome == "" && r.Outcome == record.OK {
		got.outcome = ""
	}
	return got
}

func compareRow(t *testing.T, w wireRow, r *record.Record, a Answer, how string) {
	t.Helper()
	if diff := cmp.Diff(w, outcomeRow(w, r, a), cmp.AllowUnexported(wireRow{})); diff != "" {
		t.Errorf("%s, %s: detail %q (-want +got):\n%s", w.name, how, r.Detail, diff)
	}
}

// TestWireRows holds that every row has its outcome, whole, cut at every
// position, and byte by byte.
func TestWireRows(t *testing.T) {
	h := head{status: 200, sse: true}
	for _, w := range wireRows() {
		req := w.req
		req.Stream = true
		run := func(how string, in ...[]byte) {
			rec, a := replay(t, &Target{}, &req, h, &pieces{rest: in})
			compareRow(t, w, &rec, a, how)
		}
		stream := []byte(w.body)
		run("whole", stream)
		if len(stream) > 4<<10 {
			run("in two", stream[:4096], stream[4096:])
			continue
		}
		for cut := 1; cut < len(stream) && !t.Failed(); cut++ {
			run("cut at "+itoa(cut), stream[:cut], stream[cut:])
		}
		bytes := make([][]byte, len(stream))
		for i := range stream {
			bytes[i] = stream[i : i+1]
		}
		run("byte by byte", bytes...)
	}
}

// TestWireRowsOverTCP sends each row by a real socket, and checks the same.
func TestWireRowsOverTCP(t *testing.T) {
	rows := wireRows()
	next := make(chan string, 1)
	s := serve(t, func(_ int, p *peer) {
		for {
			if h, _ := p.request(); h == nil {
				return
			}
			io.WriteString(p, streamHead)
			if body := <-next; body != "" {
				p.chunks(body[:len(body)/2])
				p.chunks(body[len(body)/2:])
			}
			io.WriteString(p, lastChunk)
		}
	})
	c := client(t, Target{URL: s.url()})
	for _, w := range rows {
		req := w.req
		req.Stream = true
		req.Prompt = "what is sent does not matter here"
		next <- w.body
		rec, a := ask(t, t.Context(), c, &req)
		compareRow(t, w, &rec, a, "over TCP")
	}
}

// TestWholeAnswers holds that answers that are not streamed mean the same.
func TestWholeAnswers(t *testing.T) {
	n := record.Tokens
	usage := `,"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`
	for _, w := range []wireRow{
		{name: "chat", body: `{"choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]` + usage, text: "hello", kinds: "c", finish: "stop", prompt: n(5), output: n(2), perEvent: []int64{2}},
		{name: "completion", body: `{"choices":[{"index":0,"text":"hello","finish_reason":"stop"}]` + usage, text: "hello", kinds: "c", finish: "stop", prompt: n(5), output: n(2), perEvent: []int64{2}},
		{name: "reasoning", body: `{"choices":[{"index":0,"message":{"reasoning_content":"r","content":"a"},"finish_reason":"stop"}]` + usage, text: "a", reasoning: "r", kinds: "c", finish: "stop", prompt: n(5), output: n(2), perEvent: []int64{2}},
		{name: "tools", body: `{"choices":[{"index":0,"message":{"content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]` + usage, kinds: "t", finish: "tool_calls", prompt: n(5), output: n(2), perEvent: []int64{2}, tools: []Tool{{"x", "f", "{}"}}},
		{name: "error", body: `{"error":{"message":"x","type":"overloaded"}}`, outcome: record.ErrorEvent, kinds: "e", code: "overloaded", detail: "x", flags: []string{"usage_missing"}},
		{name: "empty", body: `{"choices":[{"index":0,"message":{"content":""},"finish_reason":"stop"}]` + usage, outcome: record.EmptyOutput, kinds: "?", finish: "stop", detail: "without output", prompt: n(5), output: n(2)},
		{name: "no body", body: "", outcome: record.EmptyOutput, detail: "without a body", flags: []string{"usage_missing"}},
		{name: "no answer", body: `{"ok":true}`, outcome: record.Malformed, detail: "without choices", flags: []string{"usage_missing"}},
		{name: "page", body: "<html>", outcome: record.Malformed, detail: "not JSON", flags: []string{"usage_missing"}},
	} {
		req := new(Request)
		body := []byte(w.body)
		for cut := range len(body) + 1 {
			rec, a := replay(t, &Target{}, req, head{status: 200, json: true}, &pieces{rest: [][]byte{body[:cut], body[cut:]}})
			compareRow(t, w, &rec, a, "cut at "+itoa(cut))
		}
	}
}

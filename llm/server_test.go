package llm

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseRequest(t *testing.T) {
	half := 0.5
	seed := int64(7)
	for _, tt := range []struct {
		in   string
		want *ChatRequest
		err  string
	}{
		{
			in: `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"assistant","content":null}],"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true},"max_tokens":5,"temperature":0.5,"seed":7,"stop":"x","ignore_eos":true,"unknown":{"a":[1]}}`,
			want: &ChatRequest{
				API: APIChat, Model: "m", Messages: []corpus.Message{{Role: "system", Content: "s"}, {Role: "user", Content: "ab"}, {Role: "assistant"}},
				Stream: true, IncludeUsage: true, ContinuousUsage: true, MaxTokens: 5, Temperature: &half, Seed: &seed, Stop: []string{"x"}, IgnoreEOS: true, N: 1,
			},
		},
		{in: `{"prompt":"p","max_completion_tokens":3,"max_tokens":5,"stop":["a","b"],"n":2,"top_p":0.5}`, want: &ChatRequest{API: APICompletions, Prompt: "p", MaxTokens: 3, Stop: []string{"a", "b"}, N: 2, TopP: &half}},
		{in: `{"prompt":["p"],"stop":null}`, want: &ChatRequest{API: APICompletions, Prompt: "p", N: 1}},
		{in: `{"prompt":["p","q"]}`, err: "list of one string"},
		{in: `{"prompt":[1,2]}`, err: "list of one string"},
		{in: `{"prompt":"p","messages":[{"role":"user","content":"x"}]}`, err: "exclude each other"},
		{in: `{}`, err: "neither messages nor prompt"},
		{in: `{"messages":[]}`, err: "neither messages nor prompt"},
		{in: `{"messages":[{"role":"user","content":7}]}`, err: "messages[0].content: neither"},
		{in: `{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, err: `part 0 has type "image_url"`},
		{in: `{"prompt":"p","max_tokens":-1}`, err: "negative"},
		{in: `{"prompt":"p","n":0}`, err: "between 1 and 128"},
		{in: `{"prompt":"p","n":129}`, err: "between 1 and 128"},
		{in: `{"prompt":"p","stop":7}`, err: "stop:"},
		{in: `{"prompt":"p","stream":"yes"}`, err: "parsing request"},
		{in: `{"prompt":`, err: "parsing request"},
		{in: strings.Repeat(" ", MaxRequestBytes+1), err: "the limit is"},
	} {
		got, err := ParseRequest([]byte(tt.in))
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%.80s: error %v, want one with %q", tt.in, err, tt.err)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%.80s: %v (-want +got):\n%s", tt.in, err, diff)
		}
	}
}

// TestRequestRoundTrip holds that a server of ours reads what a client of ours
// writes, for any text.
func TestRequestRoundTrip(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(t *rapid.T) {
		req := Request{
			Messages:  []corpus.Message{{Role: "user", Content: text.Draw(t, "content")}, {Role: text.Draw(t, "role"), Content: "x"}},
			MaxTokens: rapid.Int64Range(0, 1<<40).Draw(t, "max"), Stream: rapid.Bool().Draw(t, "stream"), IgnoreEOS: rapid.Bool().Draw(t, "ignore"),
			Stop: rapid.SliceOfN(text, 0, 3).Draw(t, "stop"),
		}
		target := Target{API: APIChat, Model: text.Draw(t, "model")}
		body, err := target.appendRequest(nil, &req)
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(body) {
			t.Fatalf("not UTF-8: %q", body)
		}
		got, err := ParseRequest(body)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		want := &ChatRequest{API: APIChat, Model: valid(target.Model), MaxTokens: req.MaxTokens, Stream: req.Stream, IncludeUsage: req.Stream, IgnoreEOS: req.IgnoreEOS, N: 1}
		for _, m := range req.Messages {
			want.Messages = append(want.Messages, corpus.Message{Role: valid(m.Role), Content: valid(m.Content)})
		}
		for _, s := range req.Stop {
			want.Stop = append(want.Stop, valid(s))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", body, diff)
		}
	})
}

// valid replaces each byte that is not UTF-8, as encoding/json does.
func valid(s string) string { return string([]rune(s)) }

// TestQuotingEqualsTheStandardLibrary holds that a string of ours reads back as
// one of encoding/json does.
func TestQuotingEqualsTheStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("\"\\\n\x00\x1f\x7f\xe2\x80\xa8\xa9\xed\xa0\xf4\xff")))).Draw(t, "bytes"))
		var got string
		if err := json.Unmarshal(appendString(nil, s), &got); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if got != valid(s) {
			t.Fatalf("%q reads back as %q", s, got)
		}
	})
}

func TestAppendRequestForTheOtherFamily(t *testing.T) {
	for _, tt := range []struct {
		target Target
		req    Request
		want   string
	}{
		{Target{API: APICompletions}, Request{Messages: []corpus.Message{{Role: "system", Content: "a"}, {Role: "user", Content: "b"}}}, `{"prompt":"a\nb"}`},
		{Target{API: APICompletions}, Request{Prompt: "p", Stream: true}, `{"prompt":"p","stream":true,"stream_options":{"include_usage":true}}`},
		{Target{API: APIChat, NoUsage: true}, Request{Prompt: "p", Stream: true}, `{"messages":[{"role":"user","content":"p"}],"stream":true}`},
		{Target{API: APIChat}, Request{Prompt: "p", Extra: map[string]any{"messages": []int{}}}, `{"messages":[]}`},
	} {
		if got, err := tt.target.appendRequest(nil, &tt.req); err != nil || string(got) != tt.want {
			t.Errorf("%s, %v; want %s", got, err, tt.want)
		}
	}
}

// TestAnswersRoundTrip holds that a client of ours reads what a server of ours
// writes.
func TestAnswersRoundTrip(t *testing.T) {
	text := "say \"hi\"\n中\u2028"
	u := &Usage{Prompt: 50, Output: 3, Cached: record.Tokens(48), Reasoning: record.Tokens(1)}
	for _, api := range []string{APIChat, APICompletions} {
		var b []byte
		event := func(c Chunk) {
			c.API, c.ID, c.Model, c.Created = api, "x", "m", 1790000000
			data := AppendChunk(nil, &c)
			if !json.Valid(data) || !checkScan(t, data) {
				t.Errorf("not scanned: %s", data)
			}
			b = AppendEvent(b, 0, data)
		}
		if api == APIChat {
			event(Chunk{Role: "assistant"})
			event(Chunk{Reasoning: "hm"})
		}
		event(Chunk{Content: text, Usage: &Usage{Prompt: 50, Output: 2}})
		event(Chunk{Content: "!", Usage: &Usage{Prompt: 50, Output: 3}})
		event(Chunk{Finish: "stop"})
		event(Chunk{UsageOnly: true, Usage: u, Timings: map[string]float64{"queue_time_ms": 1.5}})
		b = AppendDone(b)
		rec, a := replay(t, &Target{API: api}, &Request{Stream: true}, head{status: 200, sse: true}, &pieces{rest: [][]byte{b}})
		if rec.Outcome != record.OK || a.Text != text+"!" || rec.Prompt != record.Tokens(50) || rec.Output != record.Tokens(3) || rec.Cached != record.Tokens(48) ||
			rec.Reasoning != record.Tokens(1) || rec.Finish != "stop" || rec.Server["queue_time"] == 0 || rec.Last().Tokens != record.Tokens(1) {
			t.Errorf("%s: %+v, %+v", api, rec, a)
		}
		whole := AppendAnswer(nil, &Chunk{API: api, Role: "assistant", Content: text, Finish: "stop", Usage: u})
		rec, a = replay(t, &Target{API: api}, new(Request), head{status: 200, json: true}, &pieces{rest: [][]byte{whole}})
		if rec.Outcome != record.OK || a.Text != text || rec.Output != record.Tokens(3) {
			t.Errorf("%s: %+v, %+v", api, rec, a)
		}
	}
	rec, _ := replay(t, &Target{}, &Request{Stream: true}, head{status: 200, sse: true}, &pieces{rest: [][]byte{AppendEvent(nil, 5, AppendError(nil, 503, "overloaded", "no \"room\""))}})
	if rec.Outcome != record.ErrorEvent || rec.Code != "503" || !strings.Contains(rec.Detail, `no "room"`) {
		t.Errorf("%s, code %s, detail %s", rec.Outcome, rec.Code, rec.Detail)
	}
	if b := AppendModels(nil, 1, "a", "b"); !json.Valid(b) {
		t.Errorf("not JSON: %s", b)
	}
}

func FuzzRequestParse(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":{"include_usage":true}}`,
		`{"prompt":["p"],"max_tokens":5,"stop":["a"],"n":1}`, `{"messages":[{"content":[{"type":"text","text":"a"}]}]}`, `{"messages":null,"prompt":null}`, `[]`, `{"n":1e9}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := ParseRequest(body)
		if err != nil {
			return
		}
		if r.N < 1 || r.N > 128 || r.MaxTokens < 0 || (r.API == APIChat) != (len(r.Messages) > 0) {
			t.Errorf("%q gives %+v", body, r)
		}
		// What was understood can be said again and means the same.
		target := Target{API: r.API, Model: r.Model, NoUsage: !r.IncludeUsage}
		again, err := target.appendRequest(nil, &Request{
			Messages: r.Messages, Prompt: r.Prompt, MaxTokens: r.MaxTokens, Stream: r.Stream, IgnoreEOS: r.IgnoreEOS,
			Temperature: r.Temperature, TopP: r.TopP, Seed: r.Seed, Stop: r.Stop,
		})
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseRequest(again)
		if err != nil {
			t.Fatalf("%q said again is %s: %v", body, again, err)
		}
		r.N, r.ContinuousUsage, r.IncludeUsage = 1, false, r.IncludeUsage && r.Stream
		if len(r.Stop) == 0 {
			r.Stop = nil
		}
		if diff := cmp.Diff(r, back); diff != "" {
			t.Errorf("%q said again is %s (-first +again):\n%s", body, again, diff)
		}
	})
}

package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/sim"
)

// serve answers every request on a network in memory with what answer gives.
func serve(t *testing.T, answer func(path string, body map[string]any) (status int, answer string)) llm.Target {
	t.Helper()
	network := sim.NewNetwork()
	l, err := network.Listen("10.0.0.1:80")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		var body map[string]any
		if err := json.Unmarshal(data, &body); err != nil {
			t.Errorf("the request %s is not JSON: %v", data, err)
		}
		status, text := answer(r.URL.Path, body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	})}
	done := make(chan struct{})
	go func() { _ = s.Serve(l); close(done) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return llm.Target{URL: "http://10.0.0.1:80", Model: "m", Dial: network.DialContext}
}

// asked sends a question to an endpoint that answers so, and returns the answer
// and the request.
func asked(t *testing.T, api string, q check.Question, status int, answer string) (got *check.Answer, request map[string]any) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		target := serve(t, func(_ string, body map[string]any) (int, string) {
			request = body
			return status, answer
		})
		target.API = api
		a, err := New("v", target)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		if got, err = a.Ask(t.Context(), &q); err != nil {
			t.Fatal(err)
		}
	})
	return got, request
}

var hi = []corpus.Message{{Role: "user", Content: "hi"}}

const usage = `,"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}`

func TestAnswersAreReadWhole(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		body   string
		want   check.Answer
	}{
		{
			"a text", 200, `{"model":"m-1","system_fingerprint":"fp","choices":[{"index":0,"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}]` + usage + `}`,
			check.Answer{Outcome: record.OK, Text: "Yes.", Finish: "stop", Prompt: record.Tokens(7), Output: record.Tokens(2), Model: "m-1", Fingerprint: "fp"},
		},
		{
			"cut, with another number of tokens than asked", 200, `{"choices":[{"index":0,"message":{"content":"Ye"},"finish_reason":"length"}]` + usage + `}`,
			check.Answer{Outcome: record.OK, Text: "Ye", Finish: "length", Prompt: record.Tokens(7), Output: record.Tokens(2)},
		},
		{
			"a refusal of the API's", 200, `{"choices":[{"index":0,"message":{"content":null,"refusal":"I can't."},"finish_reason":"stop"}]` + usage + `}`,
			check.Answer{Outcome: record.OK, Refusal: "I can't.", Finish: "stop", Prompt: record.Tokens(7), Output: record.Tokens(2)},
		},
		{
			"nothing", 200, `{"choices":[{"index":0,"message":{"content":""},"finish_reason":"stop"}]}`,
			check.Answer{Outcome: record.EmptyOutput, Detail: "finished without output", Finish: "stop"},
		},
		{
			"the filter refuses the request", 400, `{"error":{"code":"content_filter","message":"The response was filtered"}}`,
			check.Answer{Outcome: record.Filtered, Detail: "HTTP 400: The response was filtered", Finish: "content_filter"},
		},
		{
			"the filter cuts the answer", 200, `{"choices":[{"index":0,"message":{"content":"Half a"},"finish_reason":"content_filter"}]` + usage + `}`,
			check.Answer{Outcome: record.Filtered, Text: "Half a", Finish: "content_filter", Prompt: record.Tokens(7), Output: record.Tokens(2)},
		},
		{
			"another error", 400, `{"error":{"code":"context_length_exceeded","message":"too long"}}`,
			check.Answer{Outcome: record.HTTP4xx, Detail: "HTTP 400: too long"},
		},
		{
			"parts", 200, `{"choices":[{"index":1,"message":{"content":"other"},"finish_reason":"stop"},{"index":0,"message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},"finish_reason":"stop"}]` + usage + `}`,
			check.Answer{Outcome: record.OK, Text: "ab", Finish: "stop", Prompt: record.Tokens(7), Output: record.Tokens(2)},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _ := asked(t, "", check.Question{Messages: hi, MaxTokens: 9}, tc.status, tc.body)
			tc.want.Status = tc.status
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLogprobsAreReadOrNone(t *testing.T) {
	const chat = `{"choices":[{"index":0,"message":{"content":"ab"},"finish_reason":"stop","logprobs":{"content":[%s]}}]` + usage + `}`
	two := []check.Token{
		{Text: "a", Logprob: -0.5, Top: []check.Alternative{{Text: "a", Logprob: -0.5}, {Text: "x", Logprob: -1.25}}},
		{Text: "b", Logprob: -0.25},
	}
	q := check.Question{Messages: hi, TopLogprobs: 2}
	got, _ := asked(t, "", q, 200, fmt.Sprintf(chat, `{"token":"a","logprob":-0.5,"top_logprobs":[{"token":"a","logprob":-0.5},{"token":"x","logprob":-1.25}]},{"token":"b","logprob":-0.25}`))
	if diff := cmp.Diff(two, got.Tokens); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
	got, _ = asked(t, "", q, 200, fmt.Sprintf(chat, `{"token":"a","logprob":-0.5},{"token":"b","logprob":null}`))
	if got.Outcome != record.OK || got.Tokens != nil {
		t.Errorf("with a null among them the answer is %s with %v; want ok with none", got.Outcome, got.Tokens)
	}
	got, _ = asked(t, llm.APICompletions, check.Question{Prompt: "hi", TopLogprobs: 2}, 200,
		`{"choices":[{"index":0,"text":"ab","finish_reason":"stop","logprobs":{"tokens":["a","b"],"token_logprobs":[-0.5,-0.25],"top_logprobs":[{"x":-1.25,"a":-0.5}]}}]`+usage+`}`)
	if diff := cmp.Diff(two, got.Tokens); diff != "" {
		t.Errorf("tokens of a completion (-want +got):\n%s", diff)
	}
	got, _ = asked(t, "", check.Question{Messages: hi}, 200, fmt.Sprintf(chat, `{"token":"a","logprob":-0.5}`))
	if got.Tokens != nil {
		t.Errorf("nobody asked for log-probabilities, and there are %v", got.Tokens)
	}
}

func TestQuestionsAreSentWhole(t *testing.T) {
	zero, seed := 0.0, int64(7)
	q := check.Question{Messages: hi, MaxTokens: 9, Temperature: &zero, TopP: &zero, Seed: &seed, Stop: []string{"."}, TopLogprobs: 5, Schema: json.RawMessage(`{"type":"object"}`), Replicate: 4}
	_, got := asked(t, "", q, 200, `{"choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}]}`)
	want := map[string]any{
		"model": "m", "messages": []any{map[string]any{"role": "user", "content": "hi"}}, "max_tokens": 9.0, "temperature": 0.0, "top_p": 0.0, "seed": 7.0,
		"stop": []any{"."}, "logprobs": true, "top_logprobs": 5.0,
		"response_format": map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "answer", "strict": true, "schema": map[string]any{"type": "object"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestWhatAnAPICannotSayIsNotAsked(t *testing.T) {
	for _, q := range []check.Question{{Messages: hi, TopLogprobs: 1}, {Messages: hi, Schema: json.RawMessage(`{}`)}} {
		got, sent := asked(t, llm.APIMessages, q, 200, `{}`)
		if got.Outcome != record.ClientFault || sent != nil {
			t.Errorf("the answer is %s (%s), and %v was sent; want client_fault and nothing", got.Outcome, got.Detail, sent)
		}
	}
}

func TestAnInterruptedQuestionIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := serve(t, func(string, map[string]any) (int, string) {
			time.Sleep(time.Minute)
			return 200, "{}"
		})
		a, err := New("v", target)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		got, err := a.Ask(ctx, &check.Question{Messages: hi})
		if got != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ask = %v, %v; want no answer and the end of the context", got, err)
		}
		time.Sleep(time.Hour) // the handler ends
	})
}

func TestVectorsComeInTheOrderOfTheTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var batches []int
		target := serve(t, func(path string, body map[string]any) (int, string) {
			var texts []any
			switch in := body["input"].(type) {
			case []any:
				texts = in
			case string:
				texts = []any{in}
			}
			batches = append(batches, len(texts))
			var items []string
			for i, s := range slices.Backward(texts) {
				items = append(items, fmt.Sprintf(`{"index":%d,"embedding":[%d,0.5]}`, i, len(s.(string))))
			}
			if path != "/v1/embeddings" || body["encoding_format"] != "float" {
				t.Errorf("asked %s for %v", path, body["encoding_format"])
			}
			return 200, `{"data":[` + strings.Join(items, ",") + `]}`
		})
		e, err := NewEmbedder("e", target)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		var texts []string
		for i := range 100 {
			texts = append(texts, strings.Repeat("x", 1+i))
		}
		got, err := e.Embed(t.Context(), texts)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if len(v) != 2 || v[0] != float32(1+i) {
				t.Fatalf("vector %d is %v", i, v)
			}
		}
		if !slices.Equal(batches, []int{64, 36}) {
			t.Errorf("batches of %v; want 64 and 36", batches)
		}
	})
}

func TestVectorsThatNobodyCanUseAreRefused(t *testing.T) {
	for body, want := range map[string]string{
		`{"data":[{"index":0,"embedding":[1,2]}]}`:                                    "1 vectors for 2",
		`{"data":[{"index":0,"embedding":[1,2]},{"index":0,"embedding":[1,2]}]}`:      "index 0",
		`{"data":[{"index":0,"embedding":[1,2]},{"index":2,"embedding":[1,2]}]}`:      "index 2",
		`{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[1]}]}`:        "of 2 and of 1",
		`{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[]}]}`:         "of 0 numbers",
		`{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[0,0]}]}`:      "without direction",
		`{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[1e99,0]}]}`:   "shape",
		`{"data":[{"index":0,"embedding":"AAAA"},{"index":1,"embedding":"AAAA"}]}`:    "shape",
		`{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[null,null]}]`: "shape",
	} {
		if _, err := readVectors([]byte(body), 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("readVectors(%s) = %v; want %q", body, err, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		e, err := NewEmbedder("e", serve(t, func(string, map[string]any) (int, string) { return 503, "{}" }))
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		_, err = e.Embed(t.Context(), []string{"a"})
		if f, ok := errors.AsType[*check.FailureError](err); !ok || f.Status != 503 {
			t.Errorf("Embed = %v; want a failure with status 503", err)
		}
	})
}

func FuzzBody(f *testing.F) {
	for _, s := range []string{
		`{"choices":[{"index":0,"message":{"content":"a","refusal":null},"logprobs":{"content":[{"token":"a","logprob":-1,"top_logprobs":[{"token":"b","logprob":-2}]}]}}]}`,
		`{"choices":[{"index":0,"text":"a","logprobs":{"tokens":["a"],"token_logprobs":[-1],"top_logprobs":[{"a":-1,"b":-1}]}}]}`,
		`{"data":[{"index":0,"embedding":[1,2]}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var a check.Answer
		if read(data, &a) == nil {
			for _, token := range a.Tokens {
				if math.IsNaN(token.Logprob) || math.IsInf(token.Logprob, 0) || len(token.Top) > maxAlternatives {
					t.Errorf("token %+v", token)
				}
			}
			if _, err := json.Marshal(a); err != nil { // it is kept so
				t.Error(err)
			}
		}
		vectors, err := readVectors(data, 1)
		if err == nil && (len(vectors) != 1 || !useful(vectors[0])) {
			t.Errorf("vectors %v", vectors)
		}
	})
}

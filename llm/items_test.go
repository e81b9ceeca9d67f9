package llm

import (
	"net/http"
	"strings"
	"testing"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

var threeTexts = []corpus.Message{{Role: "user", Content: "a"}, {Content: "b"}, {Content: "c"}}

func embeddingsRows() dialectRows {
	n := record.Tokens
	list := func(vectors ...string) string {
		return `{"object":"list","data":[` + strings.Join(vectors, ",") + `],"model":"m","usage":{"prompt_tokens":8,"total_tokens":8,"completion_tokens":0}}`
	}
	vector := func(index, v string) string {
		return `{"object":"embedding","index":` + index + `,"embedding":` + v + `}`
	}
	three := Request{Messages: threeTexts}
	missing := []string{"usage_missing"}
	return dialectRows{
		target: Target{API: APIEmbeddings, Model: "m"}, paths: [2]string{"/v1/embeddings", "/v1/embeddings"},
		body: []wireRow{
			{name: "one", body: list(vector("0", "[0.25, -1e-3,0]")), text: "[0.25, -1e-3,0]\n", kinds: "c", prompt: n(8)},
			{name: "three", req: three, body: list(vector("2", "[1]"), vector("0", "[2]"), vector("1", "[3]")), text: "[1]\n[2]\n[3]\n", kinds: "c", prompt: n(8)},
			{name: "base64", body: list(vector("0", `"AACAPwAAAEA="`)), text: "AACAPwAAAEA=\n", kinds: "c", prompt: n(8)},
			{name: "one without its index", body: list(`{"embedding":[1,2]}`), text: "[1,2]\n", kinds: "c", prompt: n(8)},
			{name: "many in one input", req: Request{Extra: map[string]any{"input": []any{"a", "b"}}}, body: list(vector("0", "[1]"), vector("1", "[2]")), text: "[1]\n[2]\n", kinds: "c", prompt: n(8)},
			{name: "no usage", body: `{"data":[` + vector("0", "[1]") + `]}`, text: "[1]\n", kinds: "c", flags: missing},
			{name: "one is missing", req: three, body: list(vector("0", "[1]"), vector("2", "[1]")), outcome: record.EmptyOutput, detail: "1 of 3 vectors", text: "[1]\n[1]\n", kinds: "c", prompt: n(8)},
			{name: "one is empty", req: three, body: list(vector("0", "[1]"), vector("1", "[]"), vector("2", "[1]")), outcome: record.EmptyOutput, detail: "1 of 3 vectors", text: "[1]\n[1]\n", kinds: "c", prompt: n(8)},
			{name: "none", body: list(), outcome: record.EmptyOutput, detail: "without output", kinds: "?", prompt: n(8)},
			{name: "null", body: list(vector("0", "null")), outcome: record.EmptyOutput, detail: "without output", kinds: "?", prompt: n(8)},
			{name: "too many", body: list(vector("0", "[1]"), vector("1", "[1]")), outcome: record.Malformed, detail: "2 vectors for 1", text: "[1]\n[1]\n", kinds: "c", prompt: n(8)},
			{name: "of different lengths", req: three, body: list(vector("0", "[1]"), vector("1", "[1,2]"), vector("2", "[1]")), outcome: record.Malformed, detail: "different lengths", text: "[1]\n[1,2]\n[1]\n", kinds: "c", prompt: n(8)},
			{name: "one twice", req: three, body: list(vector("0", "[1]"), vector("1", "[1]"), vector("1", "[1]")), outcome: record.Malformed, detail: "indices", text: "[1]\n[1]\n[1]\n", kinds: "c", prompt: n(8)},
			{name: "beyond the inputs", body: list(vector("1", "[1]")), outcome: record.Malformed, detail: "indices", text: "[1]\n", kinds: "c", prompt: n(8)},
			{name: "no number", body: list(vector("0", "[0.5,null]")), outcome: record.Malformed, detail: "shape", flags: missing},
			{name: "NaN", body: list(vector("0", "[NaN]")), outcome: record.Malformed, detail: "not JSON", flags: missing},
			{name: "error", body: `{"error":{"message":"too long","code":400}}`, outcome: record.ErrorEvent, code: "400", detail: "too long", kinds: "e", flags: missing},
			{name: "another API", body: `{"choices":[]}`, outcome: record.Malformed, detail: "without data", flags: missing},
		},
	}
}

func rerankRows() dialectRows {
	n := record.Tokens
	list := func(results string) string {
		return `{"id":"r","model":"m","results":[` + results + `],"usage":{"total_tokens":30}}`
	}
	three := Request{Messages: threeTexts}
	both := `{"index":1,"relevance_score":0.98,"document":{"text":"c"}},{"index":0,"relevance_score":-1e-5,"document":null}`
	missing := []string{"usage_missing"}
	return dialectRows{
		target: Target{API: APIRerank, Model: "m"}, paths: [2]string{"/v1/rerank", "/v1/rerank"},
		body: []wireRow{
			{name: "two", req: three, body: list(both), text: "0.98\n-1e-5\n", kinds: "c", prompt: n(30)},
			{name: "another key", body: `{"data":[{"index":0,"score":1}]}`, text: "1\n", kinds: "c", flags: missing},
			{name: "the best only", req: Request{Messages: threeTexts, Extra: map[string]any{"top_n": 1}}, body: list(`{"index":1,"relevance_score":0.98}`), text: "0.98\n", kinds: "c", prompt: n(30)},
			{name: "one is missing", req: three, body: list(`{"index":1,"relevance_score":0.98}`), outcome: record.EmptyOutput, detail: "1 of 2 scores", text: "0.98\n", kinds: "c", prompt: n(30)},
			{name: "one has none", req: three, body: list(`{"index":1,"relevance_score":0.98},{"index":0,"relevance_score":null}`), outcome: record.EmptyOutput, detail: "1 of 2 scores", text: "0.98\n", kinds: "c", prompt: n(30)},
			{name: "none", req: three, body: list(""), outcome: record.EmptyOutput, detail: "without output", kinds: "?", prompt: n(30)},
			{name: "one twice", req: three, body: list(`{"index":1,"relevance_score":1},{"index":1,"relevance_score":0}`), outcome: record.Malformed, detail: "indices", text: "1\n0\n", kinds: "c", prompt: n(30)},
			{name: "no index", req: three, body: list(`{"relevance_score":1},{"index":1,"relevance_score":0}`), outcome: record.Malformed, detail: "indices", text: "1\n0\n", kinds: "c", prompt: n(30)},
			{name: "no number", req: three, body: list(`{"index":0,"relevance_score":"high"}`), outcome: record.Malformed, detail: "shape", flags: missing},
			{name: "another API", body: `{"choices":[]}`, outcome: record.Malformed, detail: "without results", flags: missing},
		},
	}
}

func TestEmbeddings(t *testing.T) { embeddingsRows().run(t) }
func TestRerank(t *testing.T)     { rerankRows().run(t) }

func TestItemsRequest(t *testing.T) {
	embeddings, rerank := Target{API: APIEmbeddings, Model: "m"}, Target{API: APIRerank, Model: "m"}
	checkRequests(t, []requestRow{
		{"one", embeddings, Request{Prompt: "p", MaxTokens: 5}, `{"model":"m","input":"p"}`},
		{"three", embeddings, Request{Messages: threeTexts}, `{"model":"m","input":["a","b","c"]}`},
		{"extra", embeddings, Request{Prompt: "p", Extra: map[string]any{"input": []string{"x"}, "dimensions": 8}}, `{"model":"m","dimensions":8,"input":["x"]}`},
		{"query and documents", rerank, Request{Messages: threeTexts}, `{"model":"m","query":"a","documents":["b","c"]}`},
		{"text alone", rerank, Request{Prompt: "p"}, `{"model":"m","query":"p","documents":["p"]}`},
	})
}

// TestItemsAreNeverStreamed holds that a workload of streams asks these APIs for
// whole answers, and that the record says so.
func TestItemsAreNeverStreamed(t *testing.T) {
	bodies := make(chan string, 1)
	s := serve(t, func(_ int, p *peer) {
		req, err := http.ReadRequest(p.in)
		if err != nil {
			return
		}
		b := make([]byte, req.ContentLength)
		req.Body.Read(b)
		bodies <- string(b)
		p.Write([]byte(plain("200 OK", "application/json", `{"data":[{"index":0,"embedding":[1,2]}],"usage":{"prompt_tokens":1}}`, "Connection: close\r\n")))
	})
	req := &Request{Prompt: "p", Stream: true}
	rec, a := ask(t, t.Context(), client(t, Target{URL: s.url(), API: APIEmbeddings}), req)
	if body := <-bodies; body != `{"input":"p"}` || rec.Outcome != record.OK || rec.Stream || !req.Stream || a.Text != "[1,2]\n" {
		t.Errorf("%s: %s (%s), stream %v of %v, text %q", body, rec.Outcome, rec.Detail, rec.Stream, req.Stream, a.Text)
	}
	if rec.Output.Known() || rec.First() == nil || rec.Body == "" || rec.Finish != "" {
		t.Errorf("output %v, first %v, digest %q, finish %q", rec.Output, rec.First(), rec.Body, rec.Finish)
	}
}

package bench

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// startChat serves a small trained chat model on the real engine.
func startChat(t *testing.T) (url string) {
	t.Helper()
	wantEngine(t)
	dir := os.Getenv("ASSAY_MODELS")
	if dir == "" {
		t.Skip("ASSAY_MODELS does not name the installed models: run make test-models")
	}
	return runEngine(t, filepath.Join(dir, "SmolLM2-135M-Instruct.Q4_1.gguf"), 2048)
}

// TestChatModel holds what the checks of answers rely on: the engine writes a
// dialogue as its model was trained to read it, tells log-probabilities, and
// holds an answer to a schema.
func TestChatModel(t *testing.T) {
	url := startChat(t)
	type token struct {
		Token   string
		Logprob float64
		Top     []struct {
			Token   string
			Logprob float64
		} `json:"top_logprobs"`
	}
	var answer struct {
		Choices []struct {
			Message  struct{ Content string }
			Finish   string `json:"finish_reason"`
			Logprobs struct{ Content []token }
		}
	}
	ask := func(more string) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", strings.NewReader(`{
			"messages": [{"role": "user", "content": "Name the capital of France."}],
			"max_tokens": 60, "temperature": 0, `+more+`}`))
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		answer.Choices = nil
		if err := json.Unmarshal(body, &answer); err != nil || len(answer.Choices) != 1 {
			t.Fatalf("the engine said %s: %v", body, err)
		}
	}

	ask(`"logprobs": true, "top_logprobs": 3`)
	c := answer.Choices[0]
	if !strings.Contains(c.Message.Content, "Paris") || c.Finish != "stop" {
		t.Errorf("answer %q, finish %q; want one about Paris that stops by itself", c.Message.Content, c.Finish)
	}
	var text strings.Builder
	for _, tok := range c.Logprobs.Content {
		text.WriteString(tok.Token)
		if len(tok.Top) != 3 || tok.Top[0].Token != tok.Token || tok.Top[0].Logprob != tok.Logprob || tok.Logprob > 0 ||
			tok.Top[1].Logprob > tok.Logprob || tok.Top[2].Logprob > tok.Top[1].Logprob {
			t.Errorf("token %+v; want the likeliest of three in falling order", tok)
		}
	}
	if text.String() != c.Message.Content {
		t.Errorf("tokens spell %q, the answer is %q", text.String(), c.Message.Content)
	}

	ask(`"response_format": {"type": "json_schema", "json_schema": {"name": "capital", "schema": {
		"type": "object", "properties": {"city": {"enum": ["Lyon", "Paris"]}}}}}`)
	var city struct{ City string }
	if err := json.Unmarshal([]byte(answer.Choices[0].Message.Content), &city); err != nil || city.City != "Paris" {
		t.Errorf("answer %q; want JSON of the schema with Paris", answer.Choices[0].Message.Content)
	}
}

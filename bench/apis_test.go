package bench

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/assay-llm/assay/record"
)

// anyAPI answers each API in its own shape with "ab" and three prompt tokens.
func anyAPI(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	write := func(contentType string, pieces ...string) {
		w.Header().Set("Content-Type", contentType)
		for _, s := range pieces {
			io.WriteString(w, s)
		}
	}
	const events = "text/event-stream"
	switch r.URL.Path {
	case "/v1/messages":
		write(events, `data: {"type":"message_start","message":{"content":[],"usage":{"input_tokens":1,"cache_read_input_tokens":2,"output_tokens":1}}}`, "\n\n",
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ab"}}`, "\n\n",
			`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`, "\n\n", `data: {"type":"message_stop"}`, "\n\n")
	case "/v1/responses":
		write(events, `data: {"type":"response.output_text.delta","output_index":0,"delta":"ab"}`, "\n\n",
			`data: {"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":3,"output_tokens":2}}}`, "\n\n")
	case "/api/chat":
		write("application/x-ndjson", `{"message":{"role":"assistant","content":"ab"},"done":false}`, "\n",
			`{"message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":3,"eval_count":2}`, "\n")
	case "/generate_stream":
		write(events, `data:{"token":{"text":"a","special":false}}`, "\n\n",
			`data:{"token":{"text":"b","special":false},"generated_text":"ab","details":{"finish_reason":"eos_token","generated_tokens":2,"input_length":3}}`, "\n\n")
	case "/v1/embeddings":
		write("application/json", `{"data":[{"index":0,"embedding":[0.5,1]}],"usage":{"prompt_tokens":3,"total_tokens":3}}`)
	case "/v1/rerank":
		write("application/json", `{"results":[{"index":0,"relevance_score":0.5}],"usage":{"total_tokens":3}}`)
	case "/custom":
		var q struct{ Ask string }
		if json.Unmarshal(body, &q) != nil || q.Ask == "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		write(events, `data: {"say":"ab"}`, "\n\n", `data: {"end":true,"in":3,"out":2}`, "\n\n")
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// TestRunSpeaksEveryAPI runs a suite against each API, from the YAML to the
// sealed records.
func TestRunSpeaksEveryAPI(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(anyAPI))
	t.Cleanup(server.Close)
	for api, more := range map[string]string{
		"messages": "", "responses": "", "ollama": "", "tgi": "", "embeddings": "", "rerank": "",
		"template": `, template: {request: '{"ask":{{json .Prompt}}}', text: [say], done: [end], prompt_tokens: [in], output_tokens: [out]}`,
	} {
		path := map[string]string{"template": "/custom"}[api]
		s := parseSuite(t, "variants: {candidate: {url: "+server.URL+path+", model: m, api: "+api+more+`}}
workloads: {chat: {arrivals: {constant: 200/s}, requests: 4, prompts: {synthetic: 5}}}
`)
		r, err := Run(t.Context(), s, Options{Runs: t.TempDir()})
		if err != nil {
			t.Errorf("%s: %v", api, err)
			continue
		}
		if len(r.Records) != 4 {
			t.Errorf("%s: %d records", api, len(r.Records))
		}
		tokens := record.Tokens(2)
		whole := api == "embeddings" || api == "rerank"
		if whole {
			tokens = 0
		}
		for _, rec := range r.Records {
			if rec.Outcome != record.OK || rec.Prompt != record.Tokens(3) || rec.Output != tokens || rec.First() == nil || rec.Stream == whole {
				t.Errorf("%s: %s (%s), prompt %v, output %v, stream %v", api, rec.Outcome, rec.Detail, rec.Prompt, rec.Output, rec.Stream)
			}
		}
		if v := r.Manifest.Variants[0]; v.API != api {
			t.Errorf("%s: the manifest says %s", api, v.API)
		}
		if api == "template" && !strings.Contains(r.Manifest.Suite, "{{json .Prompt}}") {
			t.Errorf("the suite of the run lacks the template:\n%s", r.Manifest.Suite)
		}
	}
}

// TestProtocolsPage holds that the page about APIs has each of them, and an
// example that is a suite.
func TestProtocolsPage(t *testing.T) {
	data, err := os.ReadFile("../docs/protocols.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	_, rest, _ := strings.Cut(page, "```yaml\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("no example")
	}
	s := parseSuite(t, example+"workloads: {chat: {arrivals: {poisson: 8/s}, for: 5m, prompts: {synthetic: 100}}}\n")
	if v, ok := s.Variants.Get("candidate"); !ok || v.Template == nil || len(v.Template.Text) != 2 {
		t.Errorf("the example says %+v", v)
	}
	field, _ := reflect.TypeFor[Variant]().FieldByName("API")
	for api := range strings.SplitSeq(field.Tag.Get("oneof"), ",") {
		if !strings.Contains(page, "| `"+api+"`") {
			t.Errorf("%s has no row", api)
		}
	}
}

package engine

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// serveSelf serves fixed answers by "METHOD path"; a function may look at the body.
func serveSelf(t *testing.T, answers map[string]any) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch a := answers[r.Method+" "+r.URL.Path].(type) {
		case string:
			fmt.Fprint(w, a)
		case func(body string) string:
			b, _ := io.ReadAll(r.Body)
			fmt.Fprint(w, a(string(b)))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func ofText(plain, chat string) func(string) string {
	return func(body string) string {
		if strings.Contains(body, "messages") {
			return chat
		}
		return plain
	}
}

// TestAskTellsEngines holds what each engine's own answers become. Their forms are those of
// the engines' documentation and source.
func TestAskTellsEngines(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers map[string]any
		model   string
		want    map[string]string
		not     []string
	}{
		{"llama.cpp", map[string]any{
			"GET /props":     `{"default_generation_settings":{"id":0,"n_ctx":4096,"is_processing":false,"params":{"seed":4294967295,"temperature":0.8,"samplers":["top_k","min_p"]}},"total_slots":4,"model_path":"/m/a.gguf","chat_template":"{{x}}","build_info":"b6000-abc","modalities":{"vision":false}}`,
			"GET /v1/models": `{"data":[{"id":"a","owned_by":"llamacpp","meta":{"n_vocab":512,"n_params":1000,"size":2000}}]}`,
			"POST /tokenize": `{"tokens":[1,2,3]}`,
		}, "", map[string]string{
			"engine": "llama.cpp", "version": "b6000-abc", "flag n_ctx": "4096", "flag total_slots": "4", "flag sampling.temperature": "0.8",
			"flag sampling.samplers": `["top_k","min_p"]`, "model n_params": "1000", "template": digest([]byte("{{x}}")), "tokenizer": digest([]byte("1 2 3 ")),
		}, []string{"flag sampling.seed", "flag is_processing"}},
		{"vLLM", map[string]any{
			"GET /version":   `{"version":"0.9.2"}`,
			"GET /v1/models": `{"data":[{"id":"llama","owned_by":"vllm","root":"meta/llama","max_model_len":8192},{"id":"lora","owned_by":"vllm"}]}`,
			"GET /metrics":   "# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{block_size=\"16\",cache_dtype=\"fp8\",engine=\"0\",num_gpu_blocks=\"9000\"} 1\n",
			"POST /tokenize": ofText(`{"count":2,"tokens":[7,8]}`, `{"count":2,"tokens":[9,9]}`),
		}, "llama", map[string]string{
			"engine": "vllm", "version": "0.9.2", "flag cache_dtype": "fp8", "flag num_gpu_blocks": "9000", "model root": "meta/llama", "model max_model_len": "8192",
			"tokenizer": digest([]byte("7 8 ")), "template": digest([]byte("9 9 ")),
		}, []string{"flag engine", "weights"}},
		{
			"SGLang",
			map[string]any{
				"GET /get_server_info": `{"model_path":"q","version":"0.5.1","tp_size":2,"random_seed":77,"api_key":"secret","quantization":null,"internal_states":[{"a":1}],"cuda_graph_bs":[1,2]}`,
			},
			"q",
			map[string]string{"engine": "sglang", "version": "0.5.1", "flag tp_size": "2", "flag quantization": "none", "flag cuda_graph_bs": "[1,2]"},
			[]string{"flag random_seed", "flag api_key", "flag internal_states", "tokenizer", "template"},
		},
		{"TGI", map[string]any{
			"GET /info":      `{"model_id":"m","model_sha":"abc","version":"3.1.0","sha":"fff","docker_label":"sha-fff","max_concurrent_requests":128}`,
			"POST /tokenize": `[{"id":5,"text":"a"},{"id":6,"text":"b"}]`,
		}, "m", map[string]string{"engine": "tgi", "version": "3.1.0 fff", "weights": "commit abc", "image": "sha-fff", "flag max_concurrent_requests": "128", "tokenizer": digest([]byte("5 6 "))}, []string{"template"}},
		{"Ollama", map[string]any{
			"GET /api/version": `{"version":"0.17.4"}`,
			"GET /api/tags":    `{"models":[{"name":"x:latest","digest":"aaaa"},{"name":"y:latest","digest":"bbbb"}]}`,
		}, "y", map[string]string{"engine": "ollama", "version": "0.17.4", "weights": "sha256:bbbb"}, []string{"tokenizer"}},
		{"somebody else", map[string]any{"GET /version": `{"version":"7"}`, "GET /info": `{"hello":1}`, "GET /props": `[1]`}, "m", map[string]string{}, []string{"engine", "version", "weights", "tokenizer", "template", "image"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Ask(t.Context(), Door{URL: serveSelf(t, c.answers) + "/v1", Model: c.model})
			got := map[string]string{"engine": s.Engine, "version": s.Version, "weights": s.Weights, "image": s.Image, "tokenizer": s.Tokenizer, "template": s.Template}
			for k, v := range s.Flags {
				got["flag "+k] = v
			}
			for k, v := range s.Model {
				got["model "+k] = v
			}
			for key, want := range c.want {
				if got[key] != want {
					t.Errorf("%s = %q, want %q", key, got[key], want)
				}
			}
			for _, key := range c.not {
				if got[key] != "" {
					t.Errorf("%s = %q, want nothing", key, got[key])
				}
			}
		})
	}
}

// TestAskKeepsCredentials sends what the API wants to its host, and follows nobody
// elsewhere.
func TestAskKeepsCredentials(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer elsewhere.Close()
	asked := make(chan string, 64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization")
		http.Redirect(w, r, elsewhere.URL, http.StatusFound)
	}))
	defer s.Close()
	self := Ask(t.Context(), Door{URL: s.URL + "/v1", Header: http.Header{"Authorization": {"Bearer k"}}})
	if self.Engine != "" {
		t.Errorf("a redirect made an engine: %q", self.Engine)
	}
	if got := <-asked; got != "Bearer k" {
		t.Errorf("the API was asked with %q", got)
	}
}

// FuzzSelf reads whatever a server may say.
func FuzzSelf(f *testing.F) {
	for _, text := range []string{`{"default_generation_settings":{"n_ctx":1,"params":{"a":[1]}},"total_slots":1}`, `{"model_path":"x","b":{"c":null}}`, `{"model_id":"a","version":"b"}`, `{"data":[{"id":"a","meta":{"size":1}}]}`, `{"models":[1,{"name":2}]}`, `null`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o := object(data)
		q := &inquiry{said: map[string]map[string]any{}}
		for _, path := range []string{pathProps, pathSGLang, pathTGI, pathVersion, pathOllama, pathTags, pathModels} {
			q.said[path] = o
		}
		var s Self
		for _, read := range []func(*inquiry, *Self) bool{llamacpp, sglang, tgi, ollama, vllm} {
			read(q, &s)
		}
		q.models(&s)
		if len(s.Flags) > mostFlags {
			t.Errorf("%d flags are kept", len(s.Flags))
		}
	})
}

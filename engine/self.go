package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Self is what an engine says of itself beside its metrics: who it is, how it is
// configured, and what it serves. "" and nil are what it does not say.
type Self struct {
	Engine  string // "llama.cpp", "vllm", "sglang", "tgi", "ollama"; "": none of them is recognised
	Version string
	Flags   map[string]string // effective configuration; nil: it tells none
	Model   map[string]string // of the served model: what its file says of itself, its longest context

	Weights   string // digest of the weights by the engine
	Image     string // of its container by the engine
	Tokenizer string // digest of the tokens of a fixed text
	Template  string // digest of the chat template, or of a fixed chat as it is written by it

	Failures []string // what should have answered and did not, in words
}

// Door is how an engine is reached: the host of the API that is measured. What the API
// wants in its headers is sent to this host only.
type Door struct {
	URL    string // of the API: http://host:port/v1
	Model  string // as asked for
	Header http.Header
	Client *http.Client // it must not follow redirects; nil: one without proxy
}

// selfTimeout bounds one question about an engine; they are asked together.
const selfTimeout = 3 * time.Second

// probeText has what tokenizers differ in: capitals, digits, white space, code,
// accents, Chinese and an emoji.
const probeText = "The quick Brown fox can't jump 12345.678 times;\n\n\tif (x != y) { return  \"naïve\"; }  // 语言模型的分词 🙂 end"

// probeChat is written by the chat template.
var probeChat = []map[string]string{{"role": "system", "content": "Be brief."}, {"role": "user", "content": "One?"}, {"role": "assistant", "content": "Two."}, {"role": "user", "content": "Three?"}}

// Ask asks an engine about itself: a few GETs that engines are known to answer, and
// where there is one its own tokenizer. It never fails: what does not answer says
// nothing.
func Ask(ctx context.Context, d Door) Self {
	u, err := url.Parse(d.URL)
	if err != nil || u.Host == "" {
		return Self{Failures: []string{"the address of the API cannot be read"}}
	}
	q := &inquiry{door: d, root: u.Scheme + "://" + u.Host}
	if before, _, cut := strings.Cut(u.Path, "/v1"); cut { // behind a path of a gateway
		q.root += before
	}
	if q.door.Client == nil {
		q.door.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	q.ask(ctx)
	var s Self
	for _, read := range []func(*inquiry, *Self) bool{llamacpp, sglang, tgi, ollama, vllm} {
		if read(q, &s) {
			break
		}
	}
	q.models(&s)
	q.tokens(ctx, &s)
	s.Failures = append(s.Failures, q.failures...)
	return s
}

// inquiry is what was asked and what came back.
type inquiry struct {
	door     Door
	root     string
	said     map[string]map[string]any // by path: JSON objects that came with status 200
	metrics  *exposition               // nil: there are none
	failures []string
}

// The paths that engines are known by.
const (
	pathProps   = "/props"           // llama.cpp
	pathSGLang  = "/get_server_info" // SGLang
	pathTGI     = "/info"            // TGI
	pathVersion = "/version"         // vLLM
	pathOllama  = "/api/version"
	pathTags    = "/api/tags" // of Ollama
	pathModels  = "/v1/models"
)

func (q *inquiry) ask(ctx context.Context) {
	q.said = make(map[string]map[string]any)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, path := range []string{pathProps, pathSGLang, pathTGI, pathVersion, pathOllama, pathTags, pathModels, "/metrics"} {
		wg.Go(func() {
			body, err := q.send(ctx, path, nil)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				return
			}
			if path == "/metrics" {
				q.metrics, _ = parse(body) // another reader says what is wrong with them
				return
			}
			if o := object(body); o != nil {
				q.said[path] = o
			}
		})
	}
	wg.Wait()
}

// send gets a path, or posts a body to it.
func (q *inquiry) send(ctx context.Context, path string, body any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, selfTimeout)
	defer cancel()
	method, content := http.MethodGet, []byte(nil)
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return nil, err
		}
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, method, q.root+path, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Header, q.door.Header)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	a, err := q.door.Client.Do(r)
	if err != nil {
		return nil, errors.New("it cannot be reached") // the error may show a key
	}
	defer a.Body.Close()
	data, err := io.ReadAll(io.LimitReader(a.Body, maxText+1))
	switch {
	case a.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("it answers %d", a.StatusCode)
	case err != nil:
		return nil, errors.New("its answer breaks off")
	case len(data) > maxText:
		return nil, fmt.Errorf("its answer has more than %d bytes", maxText)
	}
	return data, nil
}

// object reads a JSON object with numbers as they are written; nil if it is none.
func object(data []byte) map[string]any {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var o map[string]any
	if dec.Decode(&o) != nil {
		return nil
	}
	return o
}

// text returns a scalar of an object as text; "" if it is none.
func text(o map[string]any, key string) string {
	s, _ := scalar(o[key])
	return s
}

func scalar(x any) (string, bool) {
	switch x := x.(type) {
	case string:
		return x, true
	case json.Number:
		return x.String(), true
	case bool:
		return strconv.FormatBool(x), true
	}
	return "", false
}

// mostFlags bounds what is kept of a configuration.
const mostFlags = 400

// flags keeps the scalars of an object, and digests of its lists and objects, under a
// prefix, but for the keys of which drop says that they are no configuration.
func (s *Self) flags(prefix string, o map[string]any, drop func(key string) bool) {
	if s.Flags == nil {
		s.Flags = make(map[string]string)
	}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if drop(key) || len(key) > maxName || len(s.Flags) >= mostFlags {
			continue
		}
		value, ok := scalar(o[key])
		if !ok && o[key] != nil {
			b, err := json.Marshal(o[key]) // with its keys in order
			if err != nil {
				continue
			}
			if value = string(b); len(value) > 100 {
				value = digest(b)
			}
		}
		s.Flags[prefix+key] = cmp.Or(value, "none")
	}
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// llamacpp reads /props of llama.cpp.
func llamacpp(q *inquiry, s *Self) bool {
	props := q.said[pathProps]
	settings, _ := props["default_generation_settings"].(map[string]any)
	if settings == nil || text(props, "total_slots") == "" && text(props, "build_info") == "" {
		return false
	}
	s.Engine, s.Version = "llama.cpp", text(props, "build_info")
	if t := text(props, "chat_template"); t != "" {
		s.Template = digest([]byte(t))
	}
	s.flags("", map[string]any{"n_ctx": settings["n_ctx"], "total_slots": props["total_slots"]}, never)
	// Where params stand by themselves they are the sampler's defaults; before that
	// they stood among the state of a slot.
	if params, ok := settings["params"].(map[string]any); ok {
		s.flags("sampling.", params, func(key string) bool {
			return slices.Contains([]string{"seed", "id_slot", "timings_per_token", "stream", "n_probs", "generation_prompt"}, key)
		})
	}
	if m, ok := props["modalities"].(map[string]any); ok {
		s.flags("modality.", m, never)
	}
	return true
}

func never(string) bool { return false }

// volatileSGLang are what SGLang says that differs from start to start, or is where it
// listens and what it has done.
var volatileSGLang = []string{"internal_states", "last_gen_throughput", "random_seed", "host", "port", "nccl_port", "dist_init_addr", "api_key", "admin_api_key", "prefill", "decode", "status", "version", "model_path", "tokenizer_path", "log_level", "log_level_http", "file_storage_path", "uptime", "load"}

func sglang(q *inquiry, s *Self) bool {
	info := q.said[pathSGLang]
	if text(info, "model_path") == "" {
		return false
	}
	s.Engine, s.Version = "sglang", text(info, "version")
	s.flags("", info, func(key string) bool {
		return slices.Contains(volatileSGLang, key) || strings.HasPrefix(key, "log_") || strings.Contains(key, "_key") || strings.Contains(key, "token_file")
	})
	return true
}

func tgi(q *inquiry, s *Self) bool {
	info := q.said[pathTGI]
	if text(info, "model_id") == "" || text(info, "version") == "" {
		return false
	}
	s.Engine, s.Version = "tgi", text(info, "version")
	if sha := text(info, "sha"); sha != "" {
		s.Version += " " + sha
	}
	if sha := text(info, "model_sha"); sha != "" {
		s.Weights = "commit " + sha
	}
	s.Image = text(info, "docker_label")
	s.flags("", info, func(key string) bool {
		return slices.Contains([]string{"model_id", "model_sha", "version", "sha", "docker_label"}, key)
	})
	return true
}

func ollama(q *inquiry, s *Self) bool {
	tags, ok := q.said[pathTags]["models"].([]any)
	if !ok || text(q.said[pathOllama], "version") == "" {
		return false
	}
	s.Engine, s.Version = "ollama", text(q.said[pathOllama], "version")
	for _, x := range tags {
		m, _ := x.(map[string]any)
		name := text(m, "name")
		if d := text(m, "digest"); d != "" && (name == q.door.Model || name == q.door.Model+":latest") {
			s.Weights = "sha256:" + strings.TrimPrefix(d, "sha256:")
		}
	}
	return true
}

// vllm reads what vLLM tells everybody: its version, and of its configuration what
// stands in the labels of one metric.
func vllm(q *inquiry, s *Self) bool {
	version := text(q.said[pathVersion], "version")
	var labels []sample
	if q.metrics != nil {
		labels = q.metrics.samples["vllm:cache_config_info"]
	}
	if version == "" || len(labels) == 0 && !servedBy(q.said[pathModels], "vllm") {
		return false
	}
	s.Engine, s.Version = "vllm", version
	if len(labels) > 0 {
		s.Flags = make(map[string]string)
		for _, l := range labels[0].labels {
			if l.name != "engine" {
				s.Flags[l.name] = cmp.Or(l.value, "none")
			}
		}
	}
	return true
}

func servedBy(models map[string]any, owner string) bool {
	for _, m := range list(models) {
		if text(m, "owned_by") == owner {
			return true
		}
	}
	return false
}

func list(models map[string]any) (out []map[string]any) {
	data, _ := models["data"].([]any)
	for _, x := range data {
		if m, ok := x.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// models reads what /v1/models says of the model that is asked for, or of the only
// one.
func (q *inquiry) models(s *Self) {
	all := list(q.said[pathModels])
	i := slices.IndexFunc(all, func(m map[string]any) bool { return text(m, "id") == q.door.Model })
	if i < 0 && len(all) == 1 {
		i = 0
	}
	if i < 0 {
		return
	}
	s.Model = make(map[string]string)
	meta, _ := all[i]["meta"].(map[string]any) // llama.cpp: what the file says
	for _, from := range []map[string]any{all[i], meta} {
		for _, key := range []string{"id", "root", "parent", "max_model_len", "n_vocab", "n_ctx_train", "n_embd", "n_params", "size", "vocab_type"} {
			if v := text(from, key); v != "" {
				s.Model[key] = v
			}
		}
	}
}

// tokens has the engine's own tokenizer cut a fixed text and, where it can, a fixed
// chat: what they become is how tokenizer and template behave.
func (q *inquiry) tokens(ctx context.Context, s *Self) {
	var path string
	var plain, chat map[string]any
	switch s.Engine {
	case "llama.cpp":
		path, plain = "/tokenize", map[string]any{"content": probeText, "add_special": false}
	case "vllm", "sglang":
		path = "/tokenize"
		plain = map[string]any{"prompt": probeText, "add_special_tokens": false}
		if s.Engine == "vllm" {
			chat = map[string]any{"messages": probeChat, "add_generation_prompt": true}
		}
		if q.door.Model != "" {
			plain["model"] = q.door.Model
			if chat != nil {
				chat["model"] = q.door.Model
			}
		}
	case "tgi":
		path, plain = "/tokenize", map[string]any{"inputs": probeText}
	default:
		return
	}
	var err error
	if s.Tokenizer, err = q.cut(ctx, path, plain); err != nil {
		q.failures = append(q.failures, "of its tokenizer: "+err.Error())
	}
	if chat == nil || s.Template != "" {
		return
	}
	if s.Template, err = q.cut(ctx, path, chat); err != nil {
		q.failures = append(q.failures, "of its chat template: "+err.Error())
	}
}

// cut returns the digest of the tokens that a text becomes.
func (q *inquiry) cut(ctx context.Context, path string, body map[string]any) (string, error) {
	data, err := q.send(ctx, path, body)
	if err != nil {
		return "", err
	}
	var o struct {
		Tokens []json.RawMessage `json:"tokens"`
	}
	if json.Unmarshal(data, &o) != nil {
		var tokens []struct { // TGI: a list by itself
			ID json.Number `json:"id"`
		}
		if json.Unmarshal(data, &tokens) != nil {
			return "", errors.New("its answer has no tokens")
		}
		for _, t := range tokens {
			o.Tokens = append(o.Tokens, json.RawMessage(t.ID))
		}
	}
	if len(o.Tokens) == 0 {
		return "", errors.New("its answer has no tokens")
	}
	var b bytes.Buffer
	for _, t := range o.Tokens {
		b.Write(t)
		b.WriteByte(' ')
	}
	return digest(b.Bytes()), nil
}

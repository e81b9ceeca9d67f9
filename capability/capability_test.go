package capability

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assay-llm/assay/check"
)

// server is an endpoint that can do everything, but for what is switched off or wrong.
type server struct {
	without   []string // fields that it refuses with 400
	ignores   []string // fields that it takes and does nothing with
	mode      string   // of log-probabilities: "", probabilities, logits, unsorted, null, zeros, post
	stale     bool     // prompt log-probabilities from a cache
	jitter    bool     // another answer each time
	loadBound bool     // another answer when others are under way
	oneText   bool     // one answer whatever the seed
	cuts      bool     // prompts that are too long
	window    int
	fails     int64 // answers 500 from this request on; 0: never

	now, all, scoredBefore atomic.Int64
}

func (s *server) has(body map[string]any, field string) bool {
	_, ok := body[field]
	return ok && !slices.Contains(s.ignores, field)
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	busy := s.now.Add(1) > 1
	defer s.now.Add(-1)
	n := s.all.Add(1)
	if r.URL.Path == "/v1/models" {
		fmt.Fprintf(w, `{"data": [{"id": "m", "max_model_len": %d}]}`, s.window)
		return
	}
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), 400)
		return
	}
	if s.fails > 0 && n >= s.fails {
		http.Error(w, `{"error": {"message": "out of\nmemory"}}`, 500)
		return
	}
	for _, f := range s.without {
		if _, ok := body[f]; ok || f == r.URL.Path {
			http.Error(w, `{"error": {"message": "`+f+` is not supported"}}`, 400)
			return
		}
	}
	switch r.URL.Path {
	case "/tokenize":
		var ids []string
		for i := range strings.Fields(body["prompt"].(string)) {
			ids = append(ids, fmt.Sprint(100+i))
		}
		fmt.Fprintf(w, `{"tokens": [%s]}`, strings.Join(ids, ","))
	case "/v1/completions":
		s.score(w, body)
	case "/v1/chat/completions":
		if s.loadBound && body["temperature"] == 1.0 && body["seed"] == nil && body["n"] == nil {
			<-r.Context().Done() // one of the others: it is under way until it is told to go
			return
		}
		s.chat(w, body, busy, n)
	default:
		http.NotFound(w, r)
	}
}

func (s *server) chat(w http.ResponseWriter, body map[string]any, busy bool, n int64) {
	prompt := body["messages"].([]any)[0].(map[string]any)["content"].(string)
	tokens := len(strings.Fields(prompt))
	if s.window > 0 && tokens > s.window {
		if !s.cuts {
			http.Error(w, `{"error": {"message": "the prompt is too long"}}`, 400)
			return
		}
		tokens = s.window
	}
	text := "yes to " + prompt[:min(len(prompt), 20)]
	h := fnv.New64a()
	switch temperature, _ := body["temperature"].(float64); {
	case s.jitter, s.loadBound && busy:
		text += fmt.Sprint(" ", n)
	case temperature > 0 && s.has(body, "seed") && !s.oneText:
		text += fmt.Sprint(" ", body["seed"])
	case temperature > 0 && !s.oneText:
		fmt.Fprint(h, n)
		text += fmt.Sprint(" ", h.Sum64()%1000)
	}
	choices := []any{}
	count := 1
	if k, ok := body["n"].(float64); ok && s.has(body, "n") {
		count = int(k)
	}
	if s.has(body, "logit_bias") {
		text = "no"
	}
	if s.has(body, "response_format") {
		text = `{"zebra_71": "violet"}`
	}
	for i := range count {
		m := map[string]any{"role": "assistant", "content": text}
		if s.has(body, "tools") {
			m = map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"type": "function"}}}
		}
		c := map[string]any{"index": i, "message": m}
		if s.has(body, "logprobs") {
			c["logprobs"] = map[string]any{"content": s.logprobs(body)}
		}
		choices = append(choices, c)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"model": "m-1", "system_fingerprint": "fp", "choices": choices, "usage": map[string]any{"prompt_tokens": tokens, "total_tokens": tokens + 3},
	})
}

// logprobs are those of a token of probability ½ among others of ¼, ⅛ and so on, at
// temperature 1; after sampling they are sharper or flatter.
func (s *server) logprobs(body map[string]any) []any {
	top, _ := body["top_logprobs"].(float64)
	temperature := 1.0
	if t, ok := body["temperature"].(float64); ok && s.mode == "post" && t > 0 {
		temperature = t
	}
	sum := 0.0
	for i := range 30 {
		sum += math.Exp(-float64(i+1) * math.Ln2 / temperature)
	}
	at := func(i int) any {
		x := -float64(i+1)*math.Ln2/temperature - math.Log(sum)
		switch s.mode {
		case "probabilities":
			return math.Exp(x)
		case "logits":
			return x + 20
		case "null":
			return nil
		case "zeros":
			return 0
		case "flat":
			return -.1
		}
		return x
	}
	var list []any
	for i := range int(top) {
		list = append(list, map[string]any{"token": fmt.Sprint("t", i), "logprob": at(i)})
	}
	if s.mode == "unsorted" {
		slices.Reverse(list)
	}
	return []any{map[string]any{"token": "t0", "logprob": at(0), "top_logprobs": list}}
}

func (s *server) score(w http.ResponseWriter, body map[string]any) {
	var tokens []string
	var probabilities []any
	again := s.scoredBefore.Add(1) > 1
	for i, t := range strings.SplitAfter(body["prompt"].(string), " ") {
		tokens = append(tokens, t)
		x := any(-1.5)
		if i == 0 {
			x = nil
		} else if s.stale && again && i > 20 {
			x = -.5
		}
		probabilities = append(probabilities, x)
	}
	c := map[string]any{"index": 0, "text": "x"}
	if s.has(body, "echo") {
		c["logprobs"] = map[string]any{"tokens": append(tokens, "x"), "token_logprobs": append(probabilities, -.1)}
	}
	if s.has(body, "prompt_logprobs") {
		var list []any
		for _, x := range probabilities {
			if x == nil {
				list = append(list, nil)
				continue
			}
			list = append(list, map[string]any{"17": map[string]any{"logprob": x, "rank": 3}, "9": map[string]any{"logprob": -.2, "rank": 1}})
		}
		c["prompt_logprobs"] = list
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{c}})
}

func probed(t *testing.T, s *server) *Report {
	t.Helper()
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	r, err := Probe(t.Context(), Endpoint{URL: web.URL + "/v1", Model: "m", Client: web.Client()}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestProbe(t *testing.T) {
	all := []check.Capability{
		check.CapChoices, check.CapLogprobs, check.CapLogprobsRaw, check.CapPromptLogprobs, check.CapTokenizer, check.CapLogitBias, check.CapSchema, check.CapTools,
		check.CapSeed, check.CapSeedLoaded, check.CapDeterminism, check.CapDeterminismLoad, check.CapRefusesOverlong,
	}
	for _, c := range []struct {
		name   string
		server *server
		not    map[check.Capability]check.Standing
		says   string // of a finding that is not proven
	}{
		{"it can do everything", &server{window: 512}, nil, ""},
		{"nothing beyond text", &server{without: []string{"n", "logprobs", "echo", "prompt_logprobs", "/tokenize", "response_format", "tools", "seed"}}, map[check.Capability]check.Standing{
			check.CapChoices: check.Absent, check.CapLogprobs: check.Absent, check.CapLogprobsRaw: check.Unknown, check.CapPromptLogprobs: check.Absent, check.CapTokenizer: check.Absent,
			check.CapLogitBias: check.Unknown, check.CapSchema: check.Absent, check.CapTools: check.Absent, check.CapSeed: check.Absent, check.CapSeedLoaded: check.Absent, check.CapRefusesOverlong: check.Unknown,
		}, "n is not supported"},
		{"fields are taken and ignored", &server{window: 512, ignores: []string{"n", "logprobs", "echo", "prompt_logprobs", "logit_bias", "response_format", "tools", "seed"}}, map[check.Capability]check.Standing{
			check.CapChoices: check.Absent, check.CapLogprobs: check.Absent, check.CapLogprobsRaw: check.Unknown, check.CapPromptLogprobs: check.Absent,
			check.CapLogitBias: check.Absent, check.CapSchema: check.Absent, check.CapTools: check.Absent, check.CapSeed: check.Absent, check.CapSeedLoaded: check.Absent,
		}, "a JSON schema was taken, and the answer does not obey it"},
		{"probabilities called log-probabilities", &server{window: 512, mode: "probabilities"}, map[check.Capability]check.Standing{check.CapLogprobs: check.Absent, check.CapLogprobsRaw: check.Unknown}, "numbers above 0 are no log-probabilities"},
		{"logits", &server{window: 512, mode: "logits"}, map[check.Capability]check.Standing{check.CapLogprobs: check.Absent, check.CapLogprobsRaw: check.Unknown}, "numbers above 0 are no log-probabilities"},
		{"null", &server{window: 512, mode: "null"}, map[check.Capability]check.Standing{check.CapLogprobs: check.Absent, check.CapLogprobsRaw: check.Unknown}, "is null"},
		{"zeros", &server{window: 512, mode: "zeros"}, map[check.Capability]check.Standing{check.CapLogprobs: check.Absent, check.CapLogprobsRaw: check.Unknown}, "add up to"},
		{"more than 1 in sum", &server{window: 512, mode: "flat"}, map[check.Capability]check.Standing{check.CapLogprobs: check.Absent, check.CapLogprobsRaw: check.Unknown}, "add up to 18.097"},
		{"out of order", &server{window: 512, mode: "unsorted"}, map[check.Capability]check.Standing{check.CapLogprobs: check.Absent, check.CapLogprobsRaw: check.Unknown}, "do not come in falling order"},
		{"after sampling", &server{window: 512, mode: "post"}, map[check.Capability]check.Standing{check.CapLogprobsRaw: check.Absent}, "from after sampling"},
		{"stale rows of a cache", &server{window: 512, stale: true}, map[check.Capability]check.Standing{check.CapPromptLogprobs: check.Absent}, "a cache gives stale rows"},
		{"another answer each time", &server{window: 512, jitter: true}, map[check.Capability]check.Standing{
			check.CapSeed: check.Absent, check.CapSeedLoaded: check.Absent, check.CapDeterminism: check.Absent, check.CapDeterminismLoad: check.Absent,
		}, "repeated answers at temperature 0 differ"},
		{"another answer under load", &server{window: 512, loadBound: true}, map[check.Capability]check.Standing{check.CapSeedLoaded: check.Absent, check.CapDeterminismLoad: check.Absent}, "among 4 other requests differ"},
		{"one answer for all seeds", &server{window: 512, oneText: true}, map[check.Capability]check.Standing{check.CapSeed: check.Unknown, check.CapSeedLoaded: check.Unknown}, "equal texts prove nothing"},
		{"a prompt is cut", &server{window: 512, cuts: true}, map[check.Capability]check.Standing{check.CapRefusesOverlong: check.Absent}, "was cut to 512 without a word"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := probed(t, c.server)
			said := false
			for i, f := range r.Findings {
				want, ok := c.not[f.Capability]
				if !ok {
					want = check.Proven
				}
				if f.Standing != want || f.Detail == "" || f.Capability != all[i] {
					t.Errorf("%s is %s (%s), want %s", f.Capability, f.Standing, f.Detail, want)
				}
				said = said || f.Standing != check.Proven && strings.Contains(f.Detail, c.says)
			}
			if len(r.Findings) != len(all) || c.says != "" && !said {
				t.Errorf("%d findings, want %d, one of them with %q: %+v", len(r.Findings), len(all), c.says, r.Findings)
			}
			if r.Served != "m-1" || r.Fingerprint != "fp" || r.Requests == 0 {
				t.Errorf("report %+v; want what the server calls itself", r)
			}
		})
	}
}

func TestLevelOfAlternatives(t *testing.T) {
	if f := probed(t, &server{window: 512}).Capabilities()[check.CapLogprobs]; f.Level != 20 {
		t.Errorf("%+v; want 20 alternatives", f)
	}
}

// TestFailuresProveNothing lets the server fail more and more early: what was not
// answered is unknown, and nothing is called absent that is there.
func TestFailuresProveNothing(t *testing.T) {
	for from := int64(3); from < 160; from += 7 {
		for _, f := range probed(t, &server{window: 512, fails: from}).Findings {
			if f.Standing == check.Absent {
				t.Errorf("failing from request %d on: %s is absent (%s)", from, f.Capability, f.Detail)
			}
			if strings.ContainsAny(f.Detail, "\n\x1b") {
				t.Errorf("%q has characters that cannot be printed", f.Detail)
			}
		}
	}
}

func TestUnreachable(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	_, err := Probe(t.Context(), Endpoint{URL: web.URL, Key: "sesame"}, Options{})
	if e, ok := errors.AsType[*UnreachableError](err); !ok || !strings.Contains(e.Error(), "hint:") {
		t.Errorf("a server without the API: %v", err)
	}
	web.Close()
	_, err = Probe(t.Context(), Endpoint{URL: web.URL + "/v1?key=sesame"}, Options{})
	if _, ok := errors.AsType[*UnreachableError](err); !ok || strings.Contains(err.Error(), "sesame") {
		t.Errorf("a server that is gone: %v; want no secret in it", err)
	}
	if _, err := Probe(t.Context(), Endpoint{URL: "localhost"}, Options{}); err == nil || !strings.Contains(err.Error(), "hint: write it as") {
		t.Errorf("no address: %v", err)
	}
	for in, want := range map[string]string{
		"http://a:1": "http://a:1/v1", "http://a:1/": "http://a:1/v1", "http://a/v1/": "http://a/v1", "https://a/x/v1/chat/completions": "https://a/x/v1", "http://a/openai": "http://a/openai",
	} {
		if _, got, err := (Endpoint{URL: in}).base(); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", in, got, err, want)
		}
	}
}

func TestCurrent(t *testing.T) {
	r := &Report{Schema: Schema, Served: "m", Fingerprint: "f", At: time.Unix(1e9, 0)}
	for _, c := range []struct {
		served, fingerprint string
		age                 time.Duration
		want                bool
	}{{"m", "f", time.Hour, true}, {"m", "g", time.Hour, false}, {"n", "f", time.Hour, false}, {"m", "f", 8 * 24 * time.Hour, false}, {"m", "f", -time.Hour, false}} {
		if got := r.Current(c.served, c.fingerprint, r.At.Add(c.age)); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if new(Report).Current("", "", time.Time{}) {
		t.Error("the zero report is current")
	}
}

func FuzzReply(f *testing.F) {
	f.Add([]byte(`{"error": {"message": "x"}}`), []byte(`{"choices": [{"logprobs": {"content": [{"token": "a", "logprob": -1, "top_logprobs": [{"token": "a", "logprob": -1}]}]}}]}`))
	f.Fuzz(func(t *testing.T, fail, good []byte) {
		if s := (reply{400, fail}).why(); len(s) > 200 || strings.ContainsAny(s, "\n\r\x1b") {
			t.Errorf("%q", s)
		}
		a := new(answer)
		if json.Unmarshal(good, a) == nil && len(a.Choices) > 0 {
			if p := sound(a, 5); p.Standing == check.Proven && p.Level > 5 {
				t.Errorf("%+v", p)
			}
			_, _ = echoed(a), ofPrompt(a.Choices[0].PromptLogprobs)
			_ = a.text()
		}
	})
}

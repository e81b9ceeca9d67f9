package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/ask"
	"github.com/assay-llm/assay/capability"
	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/dimension"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/sim"
)

// TestSpeakerIsADistribution: the probabilities of all words that it knows sum to at
// most 1, and its lists have the likeliest.
func TestSpeakerIsADistribution(t *testing.T) {
	for _, s := range []*speaker{newSpeaker(1, 0.007), newSpeaker(2, 0.5)} {
		s.tires = 40
		tokens, seen := tokenised("The old house and the old house by the river was 7731 metres. The old house and the old house by the river was 7731 metres. The old house and the old"), make(map[[2]string]int)
		for i := range tokens {
			if i > 1 {
				seen[[2]string{tokens[i-2], tokens[i-1]}] = i
			}
			if i == 0 {
				continue
			}
			p := s.at(tokens, i, seen)
			sum, most := 0.0, 0.0
			for _, w := range s.words {
				sum += p.of(w)
				most = max(most, p.of(w))
			}
			if _, known := s.index[p.copied]; p.copied != "" && !known {
				sum += p.of(p.copied)
				most = max(most, p.of(p.copied))
			}
			if top := p.top(5); sum > 1+1e-9 || sum < 0.5 || len(top) != 5 || math.Abs(math.Exp(top[0].Logprob)-most) > 1e-12 {
				t.Errorf("before token %d the probabilities sum to %v, and the likeliest, %v, is listed as %v", i, sum, most, top)
			}
		}
	}
}

// serve gives the scores of a prompt, in one of the two ways.
func (s *speaker) serve(echo bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Prompt   string `json:"prompt"`
			Echo     bool   `json:"echo"`
			Logprobs int    `json:"logprobs"`
			List     int    `json:"prompt_logprobs"`
		}
		data, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/v1/chat/completions" { // it says one thing only
			_, _ = io.WriteString(w, `{"model":"speaker","choices":[{"index":0,"message":{"role":"assistant","content":"the"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
			return
		}
		if r.URL.Path != "/v1/completions" || json.Unmarshal(data, &q) != nil || q.Prompt == "" {
			http.Error(w, `{"error":{"message":"there is nothing here"}}`, http.StatusNotFound)
			return
		}
		if q.Echo && !echo || q.List > 0 && echo {
			http.Error(w, `{"error":{"message":"unknown field"}}`, http.StatusBadRequest)
			return
		}
		choice := map[string]any{"index": 0, "text": " the", "finish_reason": "length"}
		tokens := []string{tokenised(q.Prompt)[0]}
		scores, tops, list := []any{nil}, []any{nil}, []any{nil}
		for _, k := range s.score(q.Prompt, max(q.Logprobs, q.List)) {
			top := map[string]float64{}
			// vLLM's own token comes first; Go writes keys in their order.
			entry := map[string]any{"0": map[string]any{"logprob": k.Logprob, "decoded_token": k.Text}}
			for i, a := range k.Top {
				top[a.Text] = a.Logprob
				if a.Text != k.Text {
					entry[fmt.Sprint(100+i)] = map[string]any{"logprob": a.Logprob, "decoded_token": a.Text}
				}
			}
			tokens, scores, tops, list = append(tokens, k.Text), append(scores, k.Logprob), append(tops, top), append(list, entry)
		}
		if q.Echo {
			choice["text"] = q.Prompt + " the"
			choice["logprobs"] = map[string]any{"tokens": append(tokens, " the"), "token_logprobs": append(scores, -1.0), "top_logprobs": append(tops, nil)}
		}
		if q.List > 0 {
			choice["prompt_logprobs"] = list
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": "1", "object": "text_completion", "model": "speaker", "choices": []any{choice},
			"usage": map[string]any{"prompt_tokens": len(tokens), "completion_tokens": 1, "total_tokens": len(tokens) + 1},
		})
	})
}

// TestLikelihoodOverTheWire: a probe proves of a server that it scores prompts, and
// the check finds over HTTP, in both ways, what it finds without it.
func TestLikelihoodOverTheWire(t *testing.T) {
	conf := func() *dimension.LikelihoodConfig {
		c := dimension.Likelihood.Config().(*dimension.LikelihoodConfig)
		c.Documents, c.Words, c.Distances, c.Passages, c.Long, c.Texts = 10, 100, []int{128, 512}, 10, 600, 1
		return c
	}
	coarse := newSpeaker(5, 0.4)
	coarse.reach = 300
	_, want, err := run(t.Context(), 9, newSpeaker(4, 0), coarse, nil, nil, check.Declared{Check: dimension.Likelihood, Config: conf()})
	if err != nil {
		t.Fatal(err)
	}
	for _, echo := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			network := sim.NewNetwork()
			var variants []check.Variant
			for i, s := range []*speaker{newSpeaker(4, 0), coarse} {
				address := fmt.Sprintf("10.0.0.%d:80", i+1)
				l, err := network.Listen(address)
				if err != nil {
					t.Fatal(err)
				}
				server := &http.Server{Handler: s.serve(echo)}
				done := make(chan struct{})
				go func() { _ = server.Serve(l); close(done) }()
				defer func() { _ = server.Close(); <-done }()
				transport := &http.Transport{DialContext: network.DialContext}
				defer transport.CloseIdleConnections()
				report, err := capability.Probe(t.Context(), capability.Endpoint{URL: "http://" + address, Client: &http.Client{Transport: transport}}, capability.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if p := report.Capabilities()[check.CapPromptLogprobs]; p.Standing != check.Proven {
					t.Fatalf("echo %v: %+v", echo, p)
				}
				a, err := ask.New("v", llm.Target{URL: "http://" + address, Dial: network.DialContext})
				if err != nil {
					t.Fatal(err)
				}
				defer a.Close()
				variants = append(variants, check.Variant{Name: []string{"baseline", "candidate"}[i], Model: []string{"clean", "planted"}[i], Asker: a, Can: report.Capabilities()})
			}
			got, err := check.Run(t.Context(), check.Config{
				Checks: []check.Declared{{Check: dimension.Likelihood, Config: conf()}}, Variants: variants, Seed: 9, Retries: -1,
			})
			if err != nil || got[0].Why != "" {
				t.Fatalf("%v, %s", err, got[0].Why)
			}
			if len(got[0].Findings) < 2 {
				t.Errorf("findings: %+v", got[0].Findings)
			}
			if diff := cmp.Diff(want[0].Findings, got[0].Findings); diff != "" {
				t.Errorf("echo %v: other findings than without the wire:\n%s", echo, diff)
			}
			for i, r := range got[0].Records {
				if diff := cmp.Diff(want[0].Records[i].Values, r.Values); diff != "" {
					t.Fatalf("echo %v: record %s:\n%s", echo, r.Case, diff)
				}
			}
		})
	}
}

package ask

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
)

func TestPromptsAreScored(t *testing.T) {
	word := func(at int, text string, p float64, top ...check.Alternative) check.Scored {
		return check.Scored{At: at, Token: check.Token{Text: text, Logprob: p, Top: top}}
	}
	const echo, list = `{"choices":[{"index":0,"text":"a b c d","finish_reason":"length","logprobs":`, `{"choices":[{"index":0,"text":" d","finish_reason":"length","prompt_logprobs":`
	for _, tc := range []struct {
		name    string
		top     int
		answer  string
		want    []check.Scored
		outcome record.Outcome
	}{
		{
			"echoed, with the token that was generated", 0,
			echo + `{"tokens":["a"," b"," c"," d"],"token_logprobs":[null,-1,-2,-3],"top_logprobs":[null,{" b":-1},{" b":-0.5},{" d":-3}]}}]` + usage + `}`,
			[]check.Scored{word(1, " b", -1), word(3, " c", -2)},
			record.OK,
		},
		{
			"echoed, with a beginning of the server's own", 0,
			echo + `{"tokens":["<s>","a"," b"," c"," d"],"token_logprobs":[null,-4,-1,-2,-3]}}]` + usage + `}`,
			[]check.Scored{word(0, "a", -4), word(1, " b", -1), word(3, " c", -2)},
			record.OK,
		},
		{
			"vLLM's list", 1,
			list + `[null,{"7":{"logprob":-3,"rank":9,"decoded_token":" b"},"5":{"logprob":-0.5,"rank":1,"decoded_token":" x"}},{"9":{"logprob":-0.2,"rank":1,"decoded_token":" c"}}]}]` + usage + `}`,
			[]check.Scored{word(1, " b", -3, check.Alternative{Text: " x", Logprob: -0.5}), word(3, " c", -0.2, check.Alternative{Text: " c", Logprob: -0.2})},
			record.OK,
		},
		{"texts of another prompt", 0, echo + `{"tokens":["a"," x"," c"],"token_logprobs":[null,-1,-2]}}]` + usage + `}`, nil, record.Malformed},
		{"a gap", 0, echo + `{"tokens":["a"," b"," c"],"token_logprobs":[null,-1,null]}}]` + usage + `}`, nil, record.Malformed},
		{"a probability", 0, echo + `{"tokens":["a"," b"," c"],"token_logprobs":[null,-1,0.3]}}]` + usage + `}`, nil, record.Malformed},
		{"no scores at all", 0, `{"choices":[{"index":0,"text":" d","finish_reason":"length"}]` + usage + `}`, nil, record.OK},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _ := asked(t, llm.APICompletions, check.Question{Prompt: "a b c", Score: true, TopLogprobs: tc.top}, 200, tc.answer)
			if got.Outcome != tc.outcome {
				t.Errorf("%v: %s", got.Outcome, got.Detail)
			}
			if diff := cmp.Diff(tc.want, got.Scored); diff != "" {
				t.Error(diff)
			}
			if got.Text != "" {
				t.Errorf("the text that was generated is kept: %q", got.Text)
			}
		})
	}
}

// The asker finds out how a server scores, and goes on like that; the scores of a
// chat's server come from its completions.
func TestTheWayOfScoringIsFoundOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var paths, ways []string
		target := serve(t, func(path string, body map[string]any) (int, string) {
			paths = append(paths, path)
			if body["echo"] == true {
				ways = append(ways, "echo")
				return 400, `{"error":{"message":"echo is not supported"}}`
			}
			ways = append(ways, "list")
			return 200, `{"choices":[{"index":0,"text":"x","finish_reason":"length","prompt_logprobs":[null,{"1":{"logprob":-1,"decoded_token":"b"}}]}]` + usage + `}`
		})
		target.URL += "/v1/chat/completions"
		a, err := New("v", target)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		for range 2 {
			got, err := a.Ask(t.Context(), &check.Question{Prompt: "ab", Score: true})
			if err != nil || len(got.Scored) != 1 || got.Scored[0].At != 1 {
				t.Fatalf("%+v, %v", got, err)
			}
		}
		if got := strings.Join(ways, " "); got != "echo list list" {
			t.Errorf("asked by %s", got)
		}
		for _, p := range paths {
			if p != "/v1/completions" {
				t.Errorf("asked at %s", p)
			}
		}
	})
}

// What is no prompt of a completion is not scored, and a server that is unwell is
// asked once.
func TestWhatIsNotScored(t *testing.T) {
	for _, q := range []check.Question{{Messages: hi, Score: true}, {Score: true}} {
		if got, _ := asked(t, "", q, 200, `{}`); got.Outcome != record.ClientFault || len(got.Scored) > 0 {
			t.Errorf("%+v: %+v", q, got)
		}
	}
	if got, _ := asked(t, llm.APIMessages, check.Question{Prompt: "a", Score: true}, 200, `{}`); got.Outcome != record.ClientFault {
		t.Errorf("of another API: %+v", got)
	}
	synctest.Test(t, func(t *testing.T) {
		n := 0
		a, err := New("v", serve(t, func(string, map[string]any) (int, string) { n++; return 503, `{}` }))
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		if got, err := a.Ask(t.Context(), &check.Question{Prompt: "a b", Score: true}); err != nil || got.Outcome == record.OK || n != 1 {
			t.Errorf("asked %d times: %+v, %v", n, got, err)
		}
	})
}

// FuzzScores: whatever a server sends, the tokens lie in the prompt, one behind the
// other, and a question is of itself with the other way.
func FuzzScores(f *testing.F) {
	f.Add([]byte(`{"choices":[{"logprobs":{"tokens":["a"," b"],"token_logprobs":[null,-1],"top_logprobs":[null,{" b":-1}]}}]}`), "a b", false)
	f.Add([]byte(`{"choices":[{"prompt_logprobs":[null,{"1":{"logprob":-1,"decoded_token":" b"}}]}]}`), "a b", true)
	f.Add([]byte(`{"choices":[{}],"prompt_logprobs":[{"1":{"logprob":-1,"decoded_token":"a b"}}]}`), "a b", true)
	f.Fuzz(func(t *testing.T, data []byte, prompt string, list bool) {
		way := int32(wayEcho)
		if list {
			way = wayPrompt
		}
		tokens, err := scores(data, way)
		if err != nil {
			return
		}
		got, err := placed(tokens, &check.Question{Prompt: prompt, TopLogprobs: 2})
		if err != nil {
			return
		}
		end := 0
		for _, s := range got {
			if s.At < end || s.At >= len(prompt) || len(s.Top) > 2 {
				t.Fatalf("%+v of %q", s, prompt)
			}
			end = s.At + len(s.Text)
		}
		if _, err := json.Marshal(got); err != nil {
			t.Fatal(err)
		}
	})
}

package llm

import (
	"strings"
	"testing"

	"github.com/assay-llm/assay/record"
)

// TestPriorityIsSentOrRefused: it is never left out silently.
func TestPriorityIsSentOrRefused(t *testing.T) {
	for api := range dialects {
		if api == ollamaGenerate || api == APITemplate {
			continue
		}
		target := Target{URL: "http://127.0.0.1", API: api, Model: "m"}
		body, err := target.appendRequest(nil, &Request{Prompt: "x", Priority: -7})
		sent := strings.Contains(string(body), `"priority":-7`)
		switch api {
		case APIChat, APICompletions:
			if err != nil || !sent {
				t.Errorf("%s: %s (%v)", api, body, err)
			}
			if q, err := ParseRequest(body); err != nil || q.Priority != -7 {
				t.Errorf("%s is read as %+v (%v)", api, q, err)
			}
			if plain, _ := target.appendRequest(nil, &Request{Prompt: "x"}); strings.Contains(string(plain), "priority") {
				t.Errorf("%s: a priority of 0 is sent: %s", api, plain)
			}
		default:
			if err == nil {
				t.Errorf("%s: %s", api, body)
			}
		}
	}
	c := client(t, Target{URL: "http://127.0.0.1:1", API: APIMessages, Model: "m"})
	if rec, _ := ask(t, t.Context(), c, &Request{Prompt: "x", MaxTokens: 1, Priority: 1}); rec.Outcome != record.ClientFault {
		t.Errorf("%s: %s", rec.Outcome, rec.Detail)
	}
}

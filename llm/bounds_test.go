package llm

import (
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

// A flood of keep-alives costs what a few thousand of them do.
func TestKeepAlivesAreNotKeptWithoutEnd(t *testing.T) {
	body := strings.Repeat(": x\n\n", 3*maxQuiet) + eventA + eventStop + eventUsage + eventDone
	rec, _ := replay(t, &Target{}, &Request{Stream: true}, head{status: 200, sse: true}, &pieces{rest: [][]byte{[]byte(body)}})
	if rec.Outcome != record.OK || len(rec.Events) > maxQuiet+2 {
		t.Errorf("%s with %d events kept", rec.Outcome, len(rec.Events))
	}
	if last := rec.Events[len(rec.Events)-1]; last.Kind != record.KindDone || rec.First() == nil {
		t.Errorf("the flood hid the answer: last event %v, first %v", last.Kind, rec.First())
	}
}

// What reached the kernel before the request left is no answer to it.
func TestAnswerBeforeItsRequest(t *testing.T) {
	sent := record.At(time.Second)
	for name, tt := range map[string]struct {
		at   time.Duration
		lag  time.Duration
		want bool
	}{
		"after":              {time.Second + 5*time.Millisecond, time.Millisecond, false},
		"before":             {time.Second + 5*time.Millisecond, 300 * time.Millisecond, true},
		"two clocks":         {time.Second + 5*time.Millisecond, 5500 * time.Microsecond, false},
		"no stamp to say so": {time.Second + 5*time.Millisecond, -1, false},
	} {
		ta := tally{rec: &record.Record{Send: sent, Events: []record.Event{{At: record.At(tt.at), Lag: tt.lag}}}}
		if got := ta.early(); got != tt.want {
			t.Errorf("%s: early = %v, want %v", name, got, tt.want)
		}
	}
}

func TestQuotesOfThePromptAreSeen(t *testing.T) {
	r := Request{Messages: []corpus.Message{{Role: "user", Content: "Patient Meier, insurance number 756.078-05-1120, complains of a headache since Monday."}}}
	for text, want := range map[string]bool{
		"bad input: insurance number 756.078-05-1120, complains of":              true,
		"BAD INPUT: INSURANCE NUMBER 756.078-05-1120, COMPLAINS OF":              true,
		"i n s u r a n c e n u m b e r 7 5 6 . 0 7 8 - 0 5 - 1 1 2 0":            true,
		"q=insurance%20number%20756.078-05-1120%2C+complains+of":                 true,
		"the model is overloaded, try again in 30 seconds or contact an admin":   false,
		"This model's maximum context length is 4096 tokens, you asked for 5000": false,
	} {
		if got := r.quotes(text); got != want {
			t.Errorf("quotes(%q) = %v, want %v", text, got, want)
		}
	}
}

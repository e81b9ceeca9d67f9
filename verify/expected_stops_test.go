package verify

import "testing"

// What is left of a phrase of quotes and stops is in every answer.
func TestNothingButStopsIsNoPhrase(t *testing.T) {
	for _, kind := range []Kind{Text, Phrase} {
		for _, value := range []string{".", "!", "\"\"", "**", "`。`"} {
			e := Expected{Kind: kind, Value: value}
			if e.Validate() == nil {
				t.Errorf("%s %q is valid", kind, value)
			}
			if r := e.Check("I cannot help with that."); r.Outcome != Unparsed {
				t.Errorf("%s %q is %s in an answer without it", kind, value, r.Outcome)
			}
		}
	}
}

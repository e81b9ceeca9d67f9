package verify

import (
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
)

func TestFacts(t *testing.T) {
	for text, want := range map[string][]Fact{
		"":                         nil,
		"Nothing of that kind.":    nil,
		"It costs $1,234.50 now.":  {{FactMoney, "1234.5 USD"}},
		"It costs 20 euros.":       {{FactMoney, "20 EUR"}},
		"一共３万元":                    {{FactMoney, "30000 CNY"}},
		"Due on 3rd of May 2024.":  {{FactDate, "2024-05-03"}},
		"Due on May 3, 2024.":      {{FactDate, "2024-05-03"}},
		"Due 2024-5-3.":            {{FactDate, "2024-05-03"}},
		"截止2024年5月3日":              {{FactDate, "2024-05-03"}},
		"Due 31/02/2024":           {{FactDate, "31/02/2024"}},
		"1.5 km in 90 minutes":     {{FactQuantity, "1500 m"}, {FactQuantity, "5400 s"}},
		"It rose by 5%.":           {{FactQuantity, "5 %"}},
		"Account A-17, GPT-4":      {{FactName, "a-17"}, {FactName, "gpt-4"}},
		"Mail a.b@c.de, 3 times.":  {{FactName, "a.b@c.de"}, {FactNumber, "3"}},
		"See https://x.y/z?q=1.":   {{FactName, "https://x.y/z?q=1"}},
		"Seats 3 and 3 and −2":     {{FactNumber, "-2"}, {FactNumber, "3"}, {FactNumber, "3"}},
		"3万 people":                {{FactNumber, "30000"}},
		"12 months of May be fine": {{FactNumber, "12"}},
	} {
		if d := diff.Diff(want, Facts(text)); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
}

func TestAgree(t *testing.T) {
	for _, c := range []struct {
		answer, reference string
		holds             bool
	}{
		{"The refund was approved.", "The refund was approved.", true},
		{"The refund was not approved.", "The refund was approved.", false},
		{"The refund wasn't approved.", "The refund was not approved.", true},
		{"退款没有批准。", "退款批准了。", false},
		{"It takes 90 min.", "It takes 1.5 hours.", true},
		{"It takes 95 min.", "It takes 1.5 hours.", false},
		{"You pay $20, and again $20.", "You pay 20 USD.", true},
		{"You pay $20.", "You pay €20.", false},
		{"It ends on 3 May 2024.", "It ends 2024-05-03.", true},
		{"It ends soon.", "It ends 2024-05-03.", false},
		{"Order A-17 has 3 parts.", "Order A-17 is there.", false},
	} {
		a := Agree(c.answer, c.reference)
		if a.Holds() != c.holds {
			t.Errorf("%q against %q: %+v; want holds %v", c.answer, c.reference, a, c.holds)
		}
		if b := Agree(c.reference, c.answer); b.Holds() != a.Holds() || b.Precision != a.Recall || b.F != a.F {
			t.Errorf("%q against %q: %+v, and %+v the other way round", c.answer, c.reference, a, b)
		}
	}
}

func FuzzFacts(f *testing.F) {
	f.Add("$1,234.50 on May 3, 2024 at a@b.c: 3万, 1.5 km, A-17, 不")
	f.Fuzz(func(t *testing.T, text string) {
		a := Agree(text, text)
		if !a.Holds() || a.F != 1 {
			t.Errorf("%q against itself: %+v", text, a)
		}
		for _, f := range Facts(text) {
			if strings.TrimSpace(f.Value) == "" {
				t.Errorf("%q: a fact of nothing: %+v", text, f)
			}
		}
	})
}

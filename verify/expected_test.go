package verify

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestCheck(t *testing.T) {
	number := func(v string) Expected { return Expected{Kind: Number, Value: v} }
	choice := func(v string, options ...string) Expected { return Expected{Kind: Choice, Value: v, Options: options} }
	for _, c := range []struct {
		e     Expected
		text  string
		want  Outcome
		found string
	}{
		{number("42"), "42", Right, "42"},
		{number("42"), "17 + 25 = 42", Right, "42"},
		{number("42"), "17 + 25 = 32\n\nSo 17 and 25 is 32.", Wrong, "32"},
		{number("42"), "I do not know.", Unparsed, ""},
		{number("42"), "", Unparsed, ""},
		{number("3"), "GPT3 says nothing", Unparsed, ""},
		{number("1234"), "It costs $1,234.00 in all.", Right, "$1,234.00"},
		{number("1234"), "#### 1234\nThat took 3 steps.", Right, "1234"},
		{number("18"), "She makes 9 * 2 = $18 a day.\n#### 18", Right, "18"},
		{number("72"), `so \boxed{72}. Check: 48 / 2 = 24`, Right, "72"},
		{number("7"), "The answer is 3 + 4 = 7, since 3 and 4 are given.", Right, "7"},
		{number("7"), "Final answer: 8", Wrong, "8"},
		{number("-3.5"), "x = −3.5", Right, "-3.5"},
		{number("0.5"), "That is 50%.", Right, "50%"},
		{number("0.5"), "1/2", Right, "1/2"},
		{number("30000"), "答案是３万。", Right, "3万"},
		{number("1e3"), "about 1e3 of them", Right, "1e3"},
		{number("3"), "3km", Unparsed, ""},
		{number("3"), "一共3个。", Right, "3"},
		{Expected{Kind: Number, Value: "3.14159", Tolerance: .01}, "3.14", Right, "3.14"},
		{Expected{Kind: Number, Value: "3.14159", Tolerance: .0001}, "3.14", Wrong, "3.14"},
		{number("42"), "The answer is not 42.", Unparsed, ""},
		{number("12"), "It is 12 or 13.", Unparsed, ""},
		{number("12"), "It is between 12 and 20.", Unparsed, ""},
		{number("20"), "It is between 12 and 20.", Unparsed, ""},
		{number("12"), "The answer is 12:30.", Unparsed, ""},
		{number("1"), "The answer is 1.000.000.", Unparsed, ""},
		{number("5"), "So 12 - 7 = 5, not 6.", Right, "5"},
		{number("42"), "I am not sure how, but 6 * 7 = 42.", Right, "42"},
		{number("0.1"), "0.1000000000000000055511151231257827", Wrong, "0.1000000000000000055511151231257827"},

		{choice("B"), "B", Right, "B"},
		{choice("B"), "(b).", Right, "B"},
		{choice("B"), "The answer is (C) because A and B are wrong.", Wrong, "C"},
		{choice("B"), "A dog is an animal. So I choose **B**.", Right, "B"},
		{choice("B"), "A good question!", Unparsed, ""},
		{choice("B"), "It is (A) or (B).", Unparsed, ""},
		{choice("B"), `{"answer": "B"}`, Right, "B"},
		{choice("B"), "答案：Ｂ", Right, "B"},
		{choice("B"), "Let me think.\nB\n", Right, "B"},
		{choice("yes", "yes", "no"), "Yes, it is.", Right, "yes"},
		{choice("yes", "yes", "no"), "There is nothing to know.", Unparsed, ""},
		{choice("yes", "yes", "no"), "Yes and no.", Unparsed, ""},
		{choice("C"), "B and C are both right", Unparsed, ""},
		{choice("A"), "Final answer: A or B", Unparsed, ""},
		{choice("A"), "The answer is A and B.", Unparsed, ""},
		{choice("A"), "The answer is a bit unclear; it could be B or C.", Unparsed, ""},
		{choice("A"), "It is **not** (A).", Unparsed, ""},
		{choice("B"), "The answer is not B.", Unparsed, ""},
		{choice("D"), "The answer cannot be D.", Unparsed, ""},
		{choice("D"), "答案不是D。", Unparsed, ""},
		{choice("A"), "The answer is A.", Right, "A"},
		{choice("C"), "The answer is **C**, because A is not possible.", Right, "C"},

		{Expected{Kind: Text, Value: "Paris"}, "  paris.\n", Right, "paris"},
		{Expected{Kind: Text, Value: "Paris"}, "It is Paris.", Wrong, "it is paris"},
		{Expected{Kind: Text, Value: "Paris"}, " \n", Unparsed, ""},
		{Expected{Kind: Phrase, Value: "Paris"}, "The capital of France is Paris.", Right, "paris"},
		{Expected{Kind: Phrase, Value: "Paris"}, "Parisians like it.", Wrong, ""},

		{Expected{Kind: JSON, Value: `{"a": 1, "b": [2]}`}, `{"b":[2.0],"a":1}`, Right, `{"b":[2.0],"a":1}`},
		{Expected{Kind: JSON, Value: `{"a": 1}`}, "Here:\n```json\n{\"a\": 2}\n```\n", Wrong, `{"a": 2}`},
		{Expected{Kind: JSON, Value: `{"a": 1}`}, `As [1] says {not this} but {"a": 1} is it.`, Right, `{"a": 1}`},
		{Expected{Kind: JSON, Value: `{"a": 1}`}, `As [1] says.`, Unparsed, ""},
		{Expected{Kind: JSON, Value: `{"a": 1}`}, `{"a": 1`, Unparsed, ""},
		{Expected{Kind: JSON, Value: `{"a": null}`}, `{}`, Wrong, "{}"},
		{Expected{Kind: JSON, Value: `{"a": "1"}`}, `{"a": 1}`, Wrong, `{"a": 1}`},

		{Expected{Kind: Code, Value: "x = 1\nprint(x)"}, "Sure:\n```python\nx = 1  \nprint(x)\n```\nDone.", Right, "x = 1  \nprint(x)"},
		{Expected{Kind: Code, Value: "x = 1"}, "```\nx = 1", Unparsed, ""},
		{Expected{Kind: Code, Value: "x = 1"}, "x = 1", Right, "x = 1"},
	} {
		r := c.e.Check(c.text)
		if r.Outcome != c.want || r.Found != c.found || r.How == "" {
			t.Errorf("%s %q of %q: %v, %q (%s); want %v, %q", c.e.Kind, c.e.Value, c.text, r.Outcome, r.Found, r.How, c.want, c.found)
		}
	}
}

func TestExpectedRefuses(t *testing.T) {
	for _, c := range []struct {
		e    Expected
		want string
	}{
		{Expected{}, `no kind ""`},
		{Expected{Kind: Number, Value: "four"}, `"four" is no number`},
		{Expected{Kind: Number, Value: "0x10"}, "is no number"},
		{Expected{Kind: Number, Value: "1e9999"}, "is no number"},
		{Expected{Kind: Number, Value: "1", Tolerance: -1}, "a tolerance of -1"},
		{Expected{Kind: Choice, Value: "F"}, `"F" is none of the options A, B, C, D, E`},
		{Expected{Kind: Text, Value: " "}, "an empty text is expected"},
		{Expected{Kind: JSON, Value: "{"}, "is no JSON"},
	} {
		if err := c.e.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v; want an error with %q", c.e, err, c.want)
		}
		if r := c.e.Check("4"); r.Outcome != Unparsed || !strings.Contains(r.How, c.want) {
			t.Errorf("%+v checks to %+v; want unparsed", c.e, r)
		}
	}
}

// TestNumbersAreFound plants a number in prose, however it is written.
func TestNumbersAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(-1e9, 1e9).Draw(t, "n")
		plain := rapid.SampledFrom([]string{"%d", "about %d of them", "x=%d;", "**%d**", "%d个", "(%d)"}).Draw(t, "how")
		text := strings.Replace(plain, "%d", itoa(n, rapid.Bool().Draw(t, "grouped")), 1)
		if r := (Expected{Kind: Number, Value: itoa(n, false)}).Check(text); r.Outcome != Right {
			t.Fatalf("%d in %q: %+v", n, text, r)
		}
		if r := (Expected{Kind: Number, Value: itoa(n+1, false)}).Check(text); r.Outcome != Wrong {
			t.Fatalf("%d in %q where %d is: %+v", n+1, text, n, r)
		}
	})
}

func itoa(n int, grouped bool) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	var digits string
	for first := true; first || n > 0; first = false {
		digits = string(rune('0'+n%10)) + digits
		n /= 10
	}
	if grouped {
		for i := len(digits) - 3; i > 0; i -= 3 {
			digits = digits[:i] + "," + digits[i:]
		}
	}
	return sign + digits
}

// TestHostileTexts ends, which it would not if anything here took time in the square
// of a text; the log has the times.
func TestHostileTexts(t *testing.T) {
	i, err := ParseInstruction("keywords:forbidden_words", []byte(`{"forbidden_words": ["aa"]}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"brackets": strings.Repeat("[{", 1<<14), "quotes": strings.Repeat(`{"`, 1<<14), "digits": strings.Repeat("1", 1<<15),
		"commas": strings.Repeat("1,", 1<<14), "words": strings.Repeat("a", 1<<15), "stars": strings.Repeat("*", 1<<15),
		"fences": strings.Repeat("```\n", 1<<13), "lines": strings.Repeat("\n- ", 1<<13), "marks": strings.Repeat("answer: ", 1<<12),
		"stops": strings.Repeat("a. ", 1<<13), "controls": strings.Repeat("\x1c\u200b", 1<<13),
	} {
		start := time.Now()
		for _, e := range []Expected{{Kind: Number, Value: "1"}, {Kind: Choice, Value: "A"}, {Kind: JSON, Value: "{}"}, {Kind: Code, Value: "x"}, {Kind: Phrase, Value: "aab"}} {
			e.Check(text)
		}
		Look(text)
		i.FollowLoosely(text)
		t.Logf("%s, %d bytes: %v", name, len(text), time.Since(start))
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("number", "42", "answer: 4,2 = 1e5%")
	f.Add("choice", "B", "**B** (C) {\"answer\": \"b\"}")
	f.Add("json", `{"a": [1]}`, "```json\n{\"a\": [1.0]}\n```")
	f.Add("code", "x", "```\nx\n```")
	f.Fuzz(func(t *testing.T, kind, value, text string) {
		e := Expected{Kind: Kind(kind), Value: value}
		r := e.Check(text)
		if r.How == "" {
			t.Errorf("%+v of %q: no reason", e, text)
		}
		if (r.Outcome == Unparsed) && r.Found != "" {
			t.Errorf("%+v of %q: unparsed, but found %q", e, text, r.Found)
		}
		if e.Validate() == nil && e.Kind != Choice && e.Kind != Code && len(value) < 200 && !strings.Contains(value, "`") {
			if r := e.Check(value); r.Outcome == Wrong {
				t.Errorf("%+v of itself: %+v", e, r)
			}
		}
	})
}

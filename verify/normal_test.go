package verify

import (
	"testing"

	"pgregory.net/rapid"
)

func TestNormal(t *testing.T) {
	for _, c := range []struct {
		e    Expected
		text string
		want string // "": none is found
	}{
		{Expected{Kind: Number}, "So the answer is 1,234.", "1234"},
		{Expected{Kind: Number}, "#### 1234.0", "1234"},
		{Expected{Kind: Number}, "答案是 0.5", "1/2"},
		{Expected{Kind: Number}, "I cannot tell.", ""},
		{Expected{Kind: Choice}, "The answer is (b).", "B"},
		{Expected{Kind: Choice}, "B or C", ""},
		{Expected{Kind: Choice, Options: []string{"yes", "no"}}, "No", "no"},
		{Expected{Kind: Text}, " **Paris.** ", "paris"},
		{Expected{Kind: Text}, "  ", ""},
		{Expected{Kind: JSON}, "Here: {\"b\": 1.0, \"a\": [2e1]}", `{"a":[20],"b":1}`},
		{Expected{Kind: JSON}, "{\"a\":[20],\"b\":1}", `{"a":[20],"b":1}`},
		{Expected{Kind: Set}, "The colours are: red, Green and blue.", "blue\ngreen\nred"},
		{Expected{Kind: Set}, "- blue\n- red\n* green", "blue\ngreen\nred"},
		{Expected{Kind: Set}, "Answer: green; blue; red; red", "blue\ngreen\nred"},
		{Expected{Kind: Set}, "颜色：红色、绿色和蓝色。", "红色\n绿色\n蓝色"},
		{Expected{Kind: Set}, `["red", "green", "blue"]`, "blue\ngreen\nred"},
		{Expected{Kind: Set}, "…", ""},
		{Expected{Kind: Code}, "```go\nx := 1  \n```", "x := 1"},
	} {
		got, ok := c.e.Normal(c.text)
		if ok != (c.want != "") || ok && got != c.want {
			t.Errorf("Normal of %q as %s: %q %v, want %q", c.text, c.e.Kind, got, ok, c.want)
		}
	}
}

func TestAlike(t *testing.T) {
	for _, c := range []struct {
		e    Expected
		a, b string
		want bool
	}{
		{Expected{Kind: Number}, "100", "101", false},
		{Expected{Kind: Number, Tolerance: .01}, "100", "101", true},
		{Expected{Kind: Number, Tolerance: .01}, "101", "100", true},
		{Expected{Kind: Number, Tolerance: .001}, "100", "101", false},
		{Expected{Kind: JSON, Tolerance: .01}, `{"a":100}`, `{"a":101}`, true},
		{Expected{Kind: Text, Tolerance: .01}, "a", "b", false},
	} {
		if got := c.e.Alike(c.a, c.b); got != c.want {
			t.Errorf("Alike(%q, %q) by %+v is %v", c.a, c.b, c.e, got)
		}
	}
}

func TestExpectedSet(t *testing.T) {
	e := Expected{Kind: Set, Value: "red, green, blue"}
	for text, want := range map[string]Outcome{
		"blue, red and green": Right, "1. green\n2. blue\n3. red": Right, "red, green": Wrong, "red, green, blue, black": Wrong, " ": Unparsed,
	} {
		if got := e.Check(text).Outcome; got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
	if (Expected{Kind: Set, Value: " , "}).Validate() == nil {
		t.Error("a set of nothing is expected, and that is no fault")
	}
}

// What is right by Check has the normal form of what is expected.
func TestNormalAgreesWithCheck(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Expected{Kind: rapid.SampledFrom(Kinds()).Draw(t, "kind"), Value: rapid.StringMatching(`[a-e0-9{}":, ]{0,12}`).Draw(t, "value")}
		text := rapid.OneOf(rapid.Just(e.Value), rapid.String()).Draw(t, "text")
		if e.Kind == Phrase || e.Validate() != nil || e.Check(text).Outcome != Right {
			return
		}
		a, okA := e.Normal(text)
		b, okB := e.Normal(e.Value)
		if !okA || !okB || a != b {
			t.Fatalf("%q is the right %s %q; their normal forms are %q %v and %q %v", text, e.Kind, e.Value, a, okA, b, okB)
		}
	})
}

func FuzzClaims(f *testing.F) {
	f.Add("It opened on 3 May 1987, says Marta Kolve.", "Opened 1987-05-03.")
	f.Add("价格是12.5元。", "¥12.5")
	f.Fuzz(func(t *testing.T, answer, source string) {
		Abstains(answer)
		for _, k := range []Kind{Number, Choice, JSON, Set} {
			(Expected{Kind: k}).Normal(answer)
		}
		for _, c := range Claims(answer, answer+"\n---\n"+source) {
			if !c.Supported {
				t.Errorf("%+v is not supported by a source that holds the whole answer %q", c, answer)
			}
		}
	})
}

func TestClaims(t *testing.T) {
	const source = "The Velsar Museum opened on 14 March 1987. It is run by Marta Kolve and has three halls. A ticket costs $12.50, a 75-minute tour more. It lies 3.4 km from the station and had 48,200 visitors."
	for _, c := range []struct {
		answer              string
		claims, unsupported int
	}{
		{"It opened on 1987-03-14.", 1, 0},
		{"It opened in 1987.", 1, 0},
		{"It opened on 15 March 1987.", 1, 1},
		{"A ticket costs 12.5 dollars.", 1, 0},
		{"A ticket costs €12.50.", 1, 1},
		{"The tour takes 75 minutes.", 1, 0},
		{"It takes an hour.", 0, 0},
		{"It is 3400 m away.", 1, 0},
		{"There are 3 halls.", 1, 0},
		{"It had 48200 visitors in 2023.", 2, 1},
		{"It is run by Marta Kolve.", 1, 0},
		{"It is run by Jonas Pettersen.", 1, 1},
		{"Jonas Pettersen", 1, 1},
		{"Marta Kolve.", 1, 0},
		{"Director Marta Kolve runs the Velsar Museum.", 2, 0},
		{"1. It opened in 1987.\n2. It has 3 halls.", 2, 0},
		{"The passage does not say.", 0, 0},
		{"", 0, 0},
		{"Yes, I think it does, and it is lovely.", 0, 0},
	} {
		claims := Claims(c.answer, source)
		unsupported := 0
		for _, x := range claims {
			if !x.Supported {
				unsupported++
			}
		}
		if len(claims) != c.claims || unsupported != c.unsupported {
			t.Errorf("%q: %+v; want %d claims, %d unsupported", c.answer, claims, c.claims, c.unsupported)
		}
	}
}

func TestAbstains(t *testing.T) {
	for text, want := range map[string]bool{
		"The passage does not say.": true, "The passage doesn't mention the price.": true, "I don't know.": true, "I'm not sure.": true, "Not mentioned in the text.": true,
		"There is no information about that.": true, "It cannot be determined from the passage.": true, "Unknown": true, "N/A": true, "I can’t tell from the text.": true,
		"I'm sorry, but I cannot help with that.": true, "文中没有提到。": true, "无法确定。": true, "不知道": true, "未知": true, "The text does not provide this information.": true,
		// What is no statement of not knowing is no abstention.
		"": false, "   ": false, "{\"answer\": ": false, "It costs $12.50.": false, "The museum does not open on Mondays.": false, "票价是12元。": false,
		"It is not far from the station.": false, "Nobody knows Marta better.": false, "The unknown soldier is buried here.": false,
	} {
		if got := Abstains(text); got != want {
			t.Errorf("Abstains(%q) is %v", text, got)
		}
	}
}

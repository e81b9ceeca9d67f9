package haystack

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func made(t testing.TB, s Spec) *Probe {
	t.Helper()
	p, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func specs(t *rapid.T) Spec {
	return Spec{
		Kind: rapid.SampledFrom(Kinds()).Draw(t, "kind"), Language: rapid.SampledFrom([]string{"en", "zh"}).Draw(t, "language"),
		Chars: rapid.IntRange(1200, 20_000).Draw(t, "chars"), Depth: rapid.Float64Range(0, 1).Draw(t, "depth"),
		Seed: rapid.Uint64().Draw(t, "seed"), Needle: rapid.Uint64().Draw(t, "needle"),
	}
}

// TestProbesHoldWhatIsAsked are the invariants of every probe.
func TestProbesHoldWhatIsAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := specs(t)
		p, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		if n := utf8.RuneCountInString(p.Text); n > s.Chars || n < s.Chars-400 {
			t.Errorf("%d characters, want up to %d", n, s.Chars)
		}
		seen := make(map[string]bool)
		for line := range strings.Lines(p.Text) {
			if seen[line] {
				t.Errorf("%q stands in it twice", line)
			}
			seen[line] = true
		}
		for _, n := range p.Needles {
			if text := p.Text[n.From:n.To]; strings.Contains(text, "\n") || strings.TrimSpace(text) == "" {
				t.Errorf("the needle is %q, want one whole line", text)
			}
		}
		for _, w := range slices.Concat(p.want, p.others) {
			if p.Kind != Count && p.Kind != Coreference && strings.Count(p.Text, w) != 1 {
				t.Errorf("%s stands in the text %d times", w, strings.Count(p.Text, w))
			}
			if strings.Contains(p.Question, w) && p.Kind != Count {
				t.Errorf("the question %q tells the answer %s", p.Question, w)
			}
		}
		if got := len(codes(p.Text)); p.Kind != Count && p.Kind != Coreference && got != len(p.want)+len(p.others) {
			t.Errorf("%d values of seven digits, want the %d that were hidden", got, len(p.want)+len(p.others))
		}
		other, err := New(s)
		if err != nil || other.Prompt() != p.Prompt() {
			t.Error("the same spec makes another probe")
		}
	})
}

// TestNeedlesStandAtTheirDepth holds that the share of the text before a needle is
// the depth, to the length of a line.
func TestNeedlesStandAtTheirDepth(t *testing.T) {
	for _, kind := range []Kind{Retrieval, Update, Contradiction, Coreference} {
		for _, depth := range []float64{0, .25, .5, .75, .9} {
			p := made(t, Spec{Kind: kind, Chars: 12_000, Depth: depth, Seed: 3, Needle: 4})
			if got := float64(p.Needles[0].From) / float64(len(p.Text)); math.Abs(got-depth) > .03 {
				t.Errorf("%s: the needle stands at %.3f, want %v", kind, got, depth)
			}
		}
	}
	p := made(t, Spec{Kind: Retrieval, Chars: 12_000, Depth: 1, Seed: 3, Needle: 4})
	if rest := strings.TrimSpace(p.Text[p.Needles[0].To:]); rest != "" {
		t.Errorf("behind a needle at depth 1 stands %q", rest)
	}
}

func TestTextOfOneSeedOnlyGrows(t *testing.T) {
	for _, language := range []string{"en", "zh"} {
		short := made(t, Spec{Kind: Retrieval, Language: language, Chars: 2000, Depth: 1, Seed: 9, Needle: 1})
		long := made(t, Spec{Kind: Retrieval, Language: language, Chars: 9000, Depth: 1, Seed: 9, Needle: 1})
		same := 0
		lines := strings.Split(long.Text, "\n")
		for line := range strings.SplitSeq(short.Text, "\n") {
			if slices.Contains(lines, line) {
				same++
			}
		}
		if all := strings.Count(short.Text, "\n"); same < all-1 {
			t.Errorf("%s: %d of %d lines are in the longer text of the same seed", language, same, all)
		}
		if other := made(t, Spec{Kind: Retrieval, Language: language, Chars: 2000, Depth: 1, Seed: 10, Needle: 1}); other.Text[:200] == short.Text[:200] {
			t.Errorf("%s: two seeds give one text", language)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for want, s := range map[string]Spec{
		`there is no kind "riddle"`:  {Kind: "riddle", Chars: 2000},
		`there is no language "fr"`:  {Language: "fr", Chars: 2000},
		"hold no needle":             {Chars: 100},
		"lies outside of the text":   {Chars: 2000, Depth: 1.5},
		"take 0 to 1":                {Chars: 2000, Depth: math.NaN()},
		"the given text has 22 char": {Chars: 2000, Text: "A short text of mine."},
		"there is no text":           {Chars: 2000, Text: " \n\n "},
	} {
		if _, err := New(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%+v): %v, want %q", s, err, want)
		}
	}
}

// TestRead are answers as models give them.
func TestRead(t *testing.T) {
	value := &Probe{Kind: Retrieval, want: []string{"4821937"}, others: []string{"7654321"}}
	four := &Probe{Kind: MultiKey, want: []string{"1111111", "2222222", "3333333", "4444444"}, others: []string{"9999999"}}
	latest := &Probe{Kind: Update, want: []string{"3333333"}, others: []string{"1111111", "2222222"}}
	count := &Probe{Kind: Count, want: []string{"7"}}
	name := &Probe{Kind: Coreference, want: []string{"Tamsin Ashdown"}, others: []string{"Odell Farrow"}}
	nameZH := &Probe{Kind: Coreference, Language: "zh", want: []string{"林静波"}, others: []string{"陈明远"}}
	both := &Probe{Kind: Contradiction, want: []string{"2222222"}, others: []string{"1111111"}}
	absent := &Probe{Kind: Absent, others: []string{"7654321"}}
	for _, c := range []struct {
		p               *Probe
		answer          string
		found, invented bool
		complete        float64
	}{
		{value, "4821937", true, false, 1},
		{value, "The access code is **4,821,937**.", true, false, 1},
		{value, "482 1937", true, false, 1},
		{value, "1. 4821937", true, false, 1},
		{value, "４８２１９３７", true, false, 1},
		{value, "<think>Is it 7654321? No.</think>4821937", true, false, 1},
		{value, "4821937 or 7654321", false, false, 1},
		{value, "48219370", false, false, 0},
		{value, "4821938", false, false, 0},
		{value, "not stated", false, false, 0},
		{value, "", false, false, 0},
		{four, "1111111, 2222222, 3333333, 4444444", true, false, 1},
		{four, "A: 1111111\nB: 2222222\nC: not stated\nD: 4444444", false, false, .75},
		{four, "2222222, 1111111, 3333333, 4444444", false, false, 1},
		{four, "9999999", false, false, 0},
		{latest, "It is 3333333.", true, false, 1},
		{latest, "It went from 1111111 to 3333333.", false, false, 1},
		{latest, "2222222", false, false, 0},
		{count, "7", true, false, 1},
		{count, "There were seven crates.", true, false, 1},
		{count, "3 + 4 = 7", true, false, 1},
		{count, "一共七箱", true, false, 1},
		{count, "十七箱", false, false, 0},
		{count, "8", false, false, 0},
		{count, "many", false, false, 0},
		{name, "Tamsin Ashdown", true, false, 1},
		{name, "It was tamsin ashdown, at dusk.", true, false, 1},
		{name, "Tamsin", false, false, .5},
		{name, "Tamsin Ashdown or Odell Farrow", false, false, 1},
		{name, "The Magpie", false, false, 0},
		{nameZH, "林静波。", true, false, 1},
		{nameZH, "是林静波签收的", true, false, 1},
		{nameZH, "陈明远", false, false, 0},
		{both, "2222222", true, false, 1},
		{both, "The text is contradictory: 1111111 at first, 2222222 later.", true, false, 1},
		{both, "1111111", false, false, 0},
		{absent, "not stated", false, false, nan},
		{absent, "未说明", false, false, nan},
		{absent, "The text does not state it; only 7654321 of another one.", false, false, nan},
		{absent, "7654321", false, true, nan},
		{absent, "It is not stated, but it may be 1234567.", false, true, nan},
		{absent, "", false, false, nan},
	} {
		got := c.p.Read(c.answer)
		same := got.Complete == c.complete || math.IsNaN(got.Complete) && math.IsNaN(c.complete)
		if got.Found != c.found || got.Invented != c.invented || !same {
			t.Errorf("%s: Read(%q) = %+v, want found %v, invented %v, complete %v", c.p.Kind, c.answer, got, c.found, c.invented, c.complete)
		}
	}
	if got := name.Read("The person is Tamsin Ashdown").F1; math.Abs(got-4./7) > 1e-12 {
		t.Errorf("F1 of two words right among five is %v, want 4/7", got)
	}
}

var nan = math.NaN()

// TestRightAnswersAreFound asks every kind with what it wants.
func TestRightAnswersAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := New(specs(t))
		if err != nil {
			t.Fatal(err)
		}
		answer := strings.Join(p.want, ", ")
		if p.Kind == Absent {
			answer = english.absent
		}
		r := p.Read(answer)
		if r.Found != (p.Kind != Absent) || r.Invented || p.Kind != Absent && r.Complete != 1 {
			t.Errorf("%s: Read(%q) = %+v", p.Kind, answer, r)
		}
		if len(p.others) > 0 && p.Read(p.others[0]).Found {
			t.Errorf("%s: %q counts as found", p.Kind, p.others[0])
		}
	})
}

func TestPerturb(t *testing.T) {
	for _, language := range []string{"en", "zh"} {
		p := made(t, Spec{Kind: Retrieval, Language: language, Chars: 8000, Depth: .5, Seed: 5, Needle: 6})
		whole := utf8.RuneCountInString(p.Text)
		n := Noise{Centre: p.Centre(), Reach: 400, Decay: 300, Strength: 1, Seed: 1}
		q := p.Perturb(n)
		if needle := q.Text[q.Needles[0].From:q.Needles[0].To]; needle != p.Text[p.Needles[0].From:p.Needles[0].To] {
			t.Errorf("%s: the needle became %q", language, needle)
		}
		if got := utf8.RuneCountInString(q.Text); got != whole {
			t.Errorf("%s: %d characters became %d", language, whole, got)
		}
		before, after := []rune(p.Text), []rune(q.Text)
		near, far, last := 0, 0, 0
		for i := range before {
			if before[i] != after[i] {
				if d := math.Abs(float64(i) - n.Centre*float64(whole)); d > 420 {
					far++
				} else {
					near++
				}
				last = i
			}
		}
		if near < 100 || far != 0 || last == 0 {
			t.Errorf("%s: %d characters within reach changed and %d beyond it", language, near, far)
		}
		n.Form = true
		if got := p.Perturb(n); strings.Join(strings.Fields(got.Text), "") != strings.Join(strings.Fields(p.Text), "") || language == "en" && got.Text == p.Text {
			t.Errorf("%s: a change of form changed words, or nothing", language)
		}
		if same := p.Perturb(Noise{Centre: .5, Seed: 3}); same.Text != p.Text {
			t.Errorf("%s: the zero Noise changed the text", language)
		}
	}
}

func TestOwnHaystack(t *testing.T) {
	text, err := os.ReadFile("../../shared/data/haystack/gatsby.txt")
	if err != nil {
		t.Skip("the novel is not here: ", err)
	}
	p := made(t, Spec{Kind: Retrieval, Chars: 40_000, Depth: .5, Seed: 2, Needle: 3, Text: string(text)})
	if got := float64(p.Needles[0].From) / float64(len(p.Text)); math.Abs(got-.5) > .02 {
		t.Errorf("the needle stands at %v, want 0.5", got)
	}
	other := made(t, Spec{Kind: Retrieval, Chars: 40_000, Depth: .5, Seed: 3, Needle: 3, Text: string(text)})
	if other.Text[:500] == p.Text[:500] {
		t.Error("two seeds begin at one place of the novel")
	}
	twice := Spec{Kind: Retrieval, Chars: 3000, Depth: .5, Text: strings.Repeat("One and the same paragraph.\n\n", 500)}
	if _, err := New(twice); err == nil || !strings.Contains(err.Error(), "the given text has 28 characters") {
		t.Errorf("a text that repeats itself: %v, want it counted once", err)
	}
}

// FuzzRead holds that no answer breaks a reader, and that what is read lies in its
// bounds.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"4821937", "not stated", "1111111, 2222222", "seven", "十七", "未说明", "Tamsin Ashdown", "</think>", "4.8-2 1,937", strings.Repeat("1,", 500)} {
		for k := range Kinds() {
			f.Add(s, uint8(k), k%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, answer string, kind uint8, zh bool) {
		s := Spec{Kind: Kinds()[int(kind)%len(Kinds())], Chars: 800, Depth: .5, Language: "en"}
		if zh {
			s.Language = "zh"
		}
		p := made(t, s)
		r := p.Read(answer)
		if r.Found && r.Complete != 1 || r.Complete < 0 || r.Complete > 1 || r.F1 < 0 || r.F1 > 1 || r.Invented && s.Kind != Absent || r.Found && s.Kind == Absent {
			t.Errorf("%s: Read(%q) = %+v", s.Kind, answer, r)
		}
	})
}

func ExampleNew() {
	p, err := New(Spec{Kind: Retrieval, Chars: 500, Depth: .5, Seed: 1, Needle: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Text[p.Needles[0].From:p.Needles[0].To])
	fmt.Println(p.Question)
	fmt.Println(p.Read("It is " + p.want[0] + ".").Found)
	// Output:
	// The access code of the Obsidian Owl vault is 5688648.
	// What is the access code of the Obsidian Owl vault? Answer with the code alone. If the text above does not state it, answer: not stated.
	// true
}

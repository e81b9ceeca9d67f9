package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
)

// rounds is how often a simulation is done: a few times in the default tests, often
// with ASSAY_SLOW=1.
func rounds(few, many int) int {
	if os.Getenv("ASSAY_SLOW") == "" {
		return few
	}
	return many
}

// script answers with the given texts in turn, and keeps the questions.
type script struct {
	answers []*check.Answer
	asked   []*check.Question
}

func (s *script) Ask(_ context.Context, q *check.Question) (*check.Answer, error) {
	s.asked = append(s.asked, q)
	a := s.answers[min(len(s.asked), len(s.answers))-1]
	return a, nil
}

func point(t *testing.T, answers ...*check.Answer) (Mark, *script) {
	t.Helper()
	s := &script{answers: answers}
	j := &Judge{Name: "j", Asker: s}
	m, err := j.Point(t.Context(), rightness, Item{Question: "2+2?"}, "4", 0)
	if err != nil {
		t.Fatal(err)
	}
	return m, s
}

// What is no verdict in the form that was asked for is asked again once, and is then
// unscored: it is never a grade, and never "wrong" (complaints about graders whose
// JSON without a verdict passed, and whose parse failures counted as incorrect).
func TestNoVerdictIsUnscored(t *testing.T) {
	for _, answer := range []string{
		"", " \n", "good", "The verdict is good.", "Verdict: good", `"good"`, "null", "[]",
		`{}`, `{"reason":"it passes"}`, `{"verdict":"good"}`, `{"pass":true,"reason":"x"}`, `{"reason":"x","verdict":""}`,
		`{"reason":"x","verdict":null}`, `{"reason":"x","verdict":true}`, `{"reason":"x","verdict":["good"]}`, `{"reason":"x","verdict":"great"}`,
		`{"reason":"x","verdict":NaN}`, `{"reason":"x","verdict":1e999}`, `{"reason":"x","verdict":5}`, `{"reason":3,"verdict":"good"}`,
		`{"reason":"x","verdict":"good","verdict":"bad"}`, `{"reason":"x","verdict":"good","score":1}`, `{"reason":"x","verdict":"good"`,
		`{"a":{"reason":"x","verdict":"good"}}`, strings.Repeat("{", 1000), strings.Repeat("x", mostAnswer+1),
		`{"reason":"a","verdict":"good"} or rather {"reason":"b","verdict":"undecided"}`,
	} {
		m, s := point(t, text(answer))
		if m.Scored() || !math.IsNaN(m.Score) || m.Level != -1 || m.Fault != Unparsable || m.Verdict != "" || m.Asked != 2 {
			t.Errorf("%.60q: got %+v", answer, m)
		}
		if len(s.asked) != 2 {
			t.Errorf("%.60q: asked %d times, want 2", answer, len(s.asked))
		}
	}
	for answer, want := range map[string]Fault{
		string(record.HTTP4xx): Unanswered, "refusal": Refused, "length": Truncated,
	} {
		a := text(`{"reason":"x","verdict":"good"}`)
		switch want {
		case Unanswered:
			a.Outcome = record.HTTP4xx
		case Refused:
			a.Refusal = "I cannot"
		case Truncated:
			a.Finish = "length"
		}
		if m, _ := point(t, a); m.Scored() || m.Fault != want {
			t.Errorf("%s: got %+v, want %s", answer, m, want)
		}
	}
}

func TestVerdictIsRead(t *testing.T) {
	for answer, want := range map[string]string{
		`{"reason":"x","verdict":"good"}`:                                                     "good",
		"```json\n{\"reason\": \"x\", \"verdict\": \"BAD\"}\n```":                             "bad",
		`First I thought {"reason":"x","verdict":"bad"}, now {"reason":"y","verdict":"good"}`: "good",
		`The set {1, 2} is fine. {"verdict":"good","reason":"a } brace and a \" quote"}`:      "good",
		`{ broken {"reason":"x","verdict":" good "}`:                                          "good",
	} {
		if m, _ := point(t, text(answer)); m.Verdict != want || m.Score != map[string]float64{"bad": 0, "good": 1}[want] || m.Asked != 1 {
			t.Errorf("%s: got %+v, want %s", answer, m, want)
		}
	}
	five := &Builtin()[0]
	j := &Judge{Asker: &script{answers: []*check.Answer{text(`{"reason":"x","verdict":4}`)}}}
	if m, err := j.Point(t.Context(), five, Item{}, "a", 0); err != nil || m.Level != 3 || m.Score != 0.75 {
		t.Errorf("a number of the menu: got %+v, %v", m, err)
	}
}

// The second try says what was wrong and repeats nothing of the first answer, which
// could hold an echo of the material.
func TestSecondTry(t *testing.T) {
	m, s := point(t, text("SECRET ECHO {"), says("now it is one", "good"))
	if m.Verdict != "good" || m.Asked != 2 {
		t.Fatalf("got %+v", m)
	}
	second := fmt.Sprint(s.asked[1].Messages)
	if strings.Contains(second, "SECRET ECHO") || !strings.Contains(second, "An earlier try of yours was of no use: it held no JSON object") {
		t.Errorf("the second try says %s", second)
	}
	if strings.Contains(fmt.Sprint(s.asked[0].Messages), "earlier try") {
		t.Error("the first question was changed")
	}
}

func TestAskingIsDeterministicAndReplicatesDiffer(t *testing.T) {
	ask := func(replicate int) string {
		s := &script{answers: []*check.Answer{says("x", "good")}}
		j := &Judge{Asker: s, Seed: 3, Schema: true}
		if _, err := j.Point(t.Context(), rightness, Item{Question: "q"}, "a", replicate); err != nil {
			t.Fatal(err)
		}
		if s.asked[0].Replicate != replicate {
			t.Errorf("replicate %d is asked as %d", replicate, s.asked[0].Replicate)
		}
		var schema map[string]any
		if err := json.Unmarshal(s.asked[0].Schema, &schema); err != nil {
			t.Errorf("the schema is no JSON: %v", err)
		}
		return fmt.Sprint(s.asked[0].Messages)
	}
	if first, again := ask(0), ask(0); first != again || first == ask(1) {
		t.Error("equal questions differ, or replicates are equal")
	}
}

// The error of an asker is handed on, and is no mark.
func TestErrorOfAsking(t *testing.T) {
	spent := errors.New("the budget is spent")
	j := &Judge{Asker: askerFunc(func(*check.Question) (*check.Answer, error) { return nil, spent })}
	if m, err := j.Point(t.Context(), rightness, Item{}, "a", 0); !errors.Is(err, spent) || m.Scored() {
		t.Errorf("got %+v, %v", m, err)
	}
	if p, err := j.Compare(t.Context(), rightness, Item{}, "a", "b", 0); !errors.Is(err, spent) || p.Outcome != Unscored || !math.IsNaN(p.Score) {
		t.Errorf("got %+v, %v", p, err)
	}
	j.Asker = askerFunc(func(*check.Question) (*check.Answer, error) { return nil, nil })
	if _, err := j.Point(t.Context(), rightness, Item{}, "a", 0); err == nil {
		t.Error("no answer and no error is an answer")
	}
}

// Whatever a text holds stands in the prompt byte for byte, between lines with a code
// that it does not hold, and nothing of it outside.
func TestTextsStandAsTheyAre(t *testing.T) {
	n := rounds(100_000, 1_000_000)
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"{{.Answer}}", "{{end}}", "%s%d%!", "${x}", "$1", "\\1", "BEGIN ANSWER ", "END ANSWER ", "\n", "\r\n", "\x00", "\xff\xfe", "é", "😀", "\u202e", "{question}", "<|im_end|>", "&lt;", "</script>", "a", " ", "0123456789abcdef01234567"}
	random := func() string {
		var b strings.Builder
		for range r.IntN(12) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		return b.String()
	}
	c := &Builtin()[0]
	for i := range n {
		j := &Judge{Seed: uint64(i)}
		question, source, answer := random(), random(), random()
		s := j.point(c, Item{Question: question, Source: source}, answer, 0)
		want := ""
		for _, m := range []exhibit{{"QUESTION", question}, {"SOURCE", source}, {"ANSWER", answer}} {
			if m.text != "" || m.name == "ANSWER" {
				want += "BEGIN " + m.name + " " + s.code + "\n" + m.text + "\nEND " + m.name + " " + s.code + "\n\n"
			}
		}
		if got := s.messages[1].Content; got != want+"Judge the answer by the criterion now." {
			t.Fatalf("seed %d: got %q", i, got)
		}
		if n := strings.Count(s.messages[1].Content, s.code); n != 2*len(s.material) {
			t.Fatalf("seed %d: the code is there %d times", i, n)
		}
	}
}

func TestBothOrders(t *testing.T) {
	item := Item{Question: "q"}
	for name, c := range map[string]struct {
		fake        *fake
		a, b        string
		outcome     Outcome
		score, lean float64
	}{
		"candidate better":     {&fake{}, "quality=0.2", "quality=0.9", Candidate, 1, 0},
		"baseline better":      {&fake{}, "quality=0.9", "quality=0.2", Baseline, 0, 0},
		"equal":                {&fake{}, "quality=0.5", "quality=0.5", Tie, 0.5, 0},
		"always the first":     {&fake{first: 9}, "quality=0.2", "quality=0.9", Inconsistent, 0.5, 0.5},
		"always the second":    {&fake{first: -9}, "quality=0.2", "quality=0.9", Inconsistent, 0.5, -0.5},
		"a little for a place": {&fake{first: 0.1}, "quality=0.50", "quality=0.59", Inconsistent, 0.75, 0.25},
	} {
		f := c.fake
		f.t = t
		j := &Judge{Asker: f}
		p, err := j.Compare(t.Context(), &Builtin()[2], item, c.a, c.b, 0)
		if err != nil {
			t.Fatal(err)
		}
		if p.Outcome != c.outcome || p.Score != c.score || p.First() != c.lean {
			t.Errorf("%s: got %s, score %v, first %v; want %s, %v, %v", name, p.Outcome, p.Score, p.First(), c.outcome, c.score, c.lean)
		}
		// Exchanged, they are the mirror image.
		q, err := j.Compare(t.Context(), &Builtin()[2], item, c.b, c.a, 0)
		if err != nil || q.Score != 1-p.Score {
			t.Errorf("%s: exchanged, the score is %v, %v; want %v", name, q.Score, err, 1-p.Score)
		}
		if f.transcript[0] == f.transcript[1] {
			t.Errorf("%s: both orders have one code", name)
		}
	}
}

// Names of answers, order of levels: each is one as often as the other.
func TestDrawsAreEven(t *testing.T) {
	j := &Judge{}
	falling, first := 0, map[string]int{}
	for i := range 1600 {
		if j.point(rightness, Item{}, "x", i).menu[0] == "good" {
			falling++
		}
		first[j.pair(&Builtin()[2], Item{}, "x", "y", i%2, i).menu[0]]++
	}
	if falling < 700 || falling > 900 {
		t.Errorf("levels fall in %d of 1600", falling)
	}
	if len(first) != 2*len(names) {
		t.Errorf("%d names are used, want %d", len(first), 2*len(names))
	}
	for n, k := range first {
		if k < 60 || k > 145 {
			t.Errorf("%s is first in %d of 1600", n, k)
		}
	}
}

// Log-probabilities: tokens that spell one verdict add up, one that could begin two
// is of neither ("1" of 10), too little mass falls back to the verdict, and what
// is no probability is not used.
func TestExpectation(t *testing.T) {
	ln := math.Log
	tokens := func(word string, top ...check.Alternative) []check.Token {
		return []check.Token{{Text: `{"reason":"r","verdict":`}, {Text: `"`}, {Text: word, Logprob: ln(0.5), Top: top}, {Text: `"}`}}
	}
	ten := &Criterion{Name: "ten", Asks: "?", Levels: []Level{{"1", "a"}, {"5", "b"}, {"10", "c"}}}
	for name, c := range map[string]struct {
		criterion *Criterion
		word      string
		top       []check.Alternative
		score     float64
		covered   float64 // NaN: none
		expected  bool
	}{
		"plain":          {rightness, "good", []check.Alternative{{Text: "good", Logprob: ln(0.6)}, {Text: "bad", Logprob: ln(0.3)}}, 2.0 / 3, 0.9, true},
		"duplicates":     {rightness, "good", []check.Alternative{{Text: "good", Logprob: ln(0.3)}, {Text: " good", Logprob: ln(0.3)}, {Text: "bad", Logprob: ln(0.3)}, {Text: "Good", Logprob: ln(0.1)}}, 0.7, 1, true},
		"begun":          {rightness, "good", []check.Alternative{{Text: "good", Logprob: ln(0.4)}, {Text: "go", Logprob: ln(0.1)}, {Text: "b", Logprob: ln(0.5)}}, 0.5, 1, true},
		"little":         {rightness, "good", []check.Alternative{{Text: "good", Logprob: ln(0.4)}, {Text: "hm", Logprob: ln(0.5)}}, 1, 0.4, false},
		"digit prefix":   {ten, "10", []check.Alternative{{Text: "1", Logprob: ln(0.5)}, {Text: "10", Logprob: ln(0.4)}, {Text: "5", Logprob: ln(0.1)}}, 1, 0.5, false},
		"ten is a token": {ten, "10", []check.Alternative{{Text: `1"`, Logprob: ln(0.5)}, {Text: "10", Logprob: ln(0.4)}, {Text: "5", Logprob: ln(0.1)}}, 0.45, 1, true},
		"not sampled":    {rightness, "good", []check.Alternative{{Text: "bad", Logprob: ln(0.5)}}, 0.5, 1, true},
		"probabilities":  {rightness, "good", []check.Alternative{{Text: "good", Logprob: 0.6}}, 1, math.NaN(), false},
		"NaN":            {rightness, "good", []check.Alternative{{Text: "good", Logprob: math.NaN()}}, 1, math.NaN(), false},
		"sum above one":  {rightness, "good", []check.Alternative{{Text: "good", Logprob: 0}, {Text: "bad", Logprob: 0}}, 1, math.NaN(), false},
		"none":           {rightness, "good", nil, 1, math.NaN(), false},
	} {
		a := says("r", c.word)
		a.Tokens = tokens(c.word, c.top...)
		j := &Judge{Asker: &script{answers: []*check.Answer{a}}, Logprobs: 20}
		m, err := j.Point(t.Context(), c.criterion, Item{}, "x", 0)
		if err != nil {
			t.Fatal(err)
		}
		same := math.IsNaN(m.Covered) && math.IsNaN(c.covered) || math.Abs(m.Covered-c.covered) < 1e-9
		if math.Abs(m.Score-c.score) > 1e-9 || !same || m.Expected != c.expected {
			t.Errorf("%s: got score %v, covered %v, expected %v; want %v, %v, %v", name, m.Score, m.Covered, m.Expected, c.score, c.covered, c.expected)
		}
	}
	// Tokens of another text say nothing.
	a := says("r", "good")
	a.Tokens = tokens("bad", check.Alternative{Text: "bad", Logprob: 0})
	if m := (&Judge{Seed: 1}).point(rightness, Item{}, "x", 0).read(a, []float64{0, 1}); m.Expected || !math.IsNaN(m.Covered) {
		t.Errorf("tokens of another text are used: %+v", m)
	}
}

// The same input is judged the same: what varies is the judge, never how it is read
// (a complaint about a score of 0 or 1 for one input).
func TestReadingIsDeterministic(t *testing.T) {
	s := (&Judge{}).point(rightness, Item{}, "x", 0)
	a := text(`{"reason":"a","verdict":"bad"} {"reason":"b","verdict":"good"}`)
	for range 100 {
		if m := s.read(a, []float64{0, 1}); m.Verdict != "good" {
			t.Fatalf("got %+v", m)
		}
	}
}

// Errors are excluded from the mean and bounded; no score is no mean, NaN is none;
// above 2 % of errors nothing is concluded (complaints about NaN in means, about
// faithfulness 1 without a verdict, and about errors as grades).
func TestTally(t *testing.T) {
	nan := math.NaN()
	fill := func(ones, zeros, errs, invalid int) (s []Score) {
		for range ones {
			s = append(s, Score{Value: 1})
		}
		for range zeros {
			s = append(s, Score{})
		}
		for range errs {
			s = append(s, Score{Value: nan, Fault: Unparsable})
		}
		for range invalid {
			s = append(s, Score{Value: nan, Fault: Suspicious})
		}
		return s
	}
	for name, c := range map[string]struct {
		scores []Score
		limit  float64
		want   contract.Grade
		mean   float64
	}{
		"good":              {fill(980, 0, 20, 0), 0.9, contract.Pass, 1},
		"bad":               {fill(100, 880, 20, 0), 0.9, contract.Fail, 100.0 / 980},
		"errors":            {fill(970, 0, 30, 0), 0.9, contract.Inconclusive, 1},
		"errors of the bad": {fill(0, 970, 30, 0), 0.9, contract.Inconclusive, 0},
		"none":              {nil, 0, contract.Inconclusive, nan},
		"no score":          {fill(0, 0, 5, 0), 0, contract.Inconclusive, nan},
		"no score, invalid": {fill(0, 0, 0, 5), 0, contract.Inconclusive, nan},
		"NaN without fault": {[]Score{{Value: nan}}, 0, contract.Inconclusive, nan},
		"attackers abstain": {fill(600, 0, 0, 400), 0.9, contract.Inconclusive, 1},
	} {
		tally := Count(c.scores, 0.95)
		if got, why := tally.AtLeast(c.limit); got != c.want || why == "" {
			t.Errorf("%s: %v (%s), want %v", name, got, why, c.want)
		}
		if got := tally.Mean.Value; got != c.mean && !(math.IsNaN(got) && math.IsNaN(c.mean)) {
			t.Errorf("%s: mean %v, want %v", name, got, c.mean)
		}
	}
	// More missing is never better.
	var last float64 = 1
	for errs := range 20 {
		tally := Count(fill(980, 20, errs, 0), 0.95)
		if tally.Worst.Lo > last {
			t.Errorf("with %d errors the worst is %v, better than %v", errs, tally.Worst.Lo, last)
		}
		last = tally.Worst.Lo
	}
}

func TestJury(t *testing.T) {
	mark := func(v string) Mark { return Mark{Verdict: v, Score: map[string]float64{"good": 1}[v], Asked: 1} }
	bad := faulty(Unparsable, "")
	for name, c := range map[string]struct {
		marks []Mark
		want  string
		score float64
	}{
		"all":           {[]Mark{mark("good"), mark("good"), mark("good")}, "good", 1},
		"two of three":  {[]Mark{mark("good"), mark("bad"), mark("good")}, "good", 1},
		"the middle":    {[]Mark{mark("bad"), {Verdict: "fair", Score: 0.5}, mark("good")}, "fair", 0.5},
		"outvoted":      {[]Mark{mark("bad"), mark("good"), mark("bad"), mark("bad"), mark("good")}, "bad", 0},
		"half":          {[]Mark{mark("good"), mark("bad")}, "", math.NaN()},
		"one of three":  {[]Mark{mark("good"), bad, bad}, "", math.NaN()},
		"two and error": {[]Mark{bad, mark("bad"), mark("bad")}, "bad", 0},
		"suspicious":    {[]Mark{mark("good"), mark("good"), suspect([]string{"x"})}, "", math.NaN()},
		"nobody":        {nil, "", math.NaN()},
	} {
		r := Rule(c.marks...)
		if r.Mark.Verdict != c.want || r.Mark.Scored() != (c.want != "") || c.want != "" && r.Mark.Score != c.score {
			t.Errorf("%s: got %+v", name, r.Mark)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	var like, random []Ruling
	for range 100 {
		v := []string{"good", "bad"}[r.IntN(2)]
		other := []string{"good", "bad"}[r.IntN(2)]
		like = append(like, Rule(mark(v), mark(v), mark([]string{v, other}[r.IntN(2)])))
		random = append(random, Rule(mark(v), mark(other), bad))
	}
	if e := Agreement(like, nil, 0.95, 1); e.Lo < 0.4 {
		t.Errorf("jurors that agree have alpha %v [%v, %v]", e.Value, e.Lo, e.Hi)
	}
	if e := Agreement(random, nil, 0.95, 1); e.Lo > 0 || e.Hi < 0 {
		t.Errorf("jurors that toss coins have alpha %v [%v, %v]", e.Value, e.Lo, e.Hi)
	}
}

// Length is what decides, not the variant: raw, the longer one wins; controlled,
// nobody does. And a true effect survives the control.
func TestLengthControl(t *testing.T) {
	draw := func(seed uint64, n int, effect, slope float64) (all []Sized) {
		r := rand.New(rand.NewPCG(seed, 1))
		for i := range n {
			longer := 80 + 100*r.NormFloat64()
			p := 1 / (1 + math.Exp(-effect-slope*math.Tanh(longer/100)))
			s := Sized{Cluster: fmt.Sprint(i / 2), Longer: longer}
			if r.Float64() < p {
				s.Score = 1
			}
			all = append(all, s)
		}
		return all
	}
	covered, n := 0, rounds(4, 40)
	for seed := range n {
		l := ControlLength(draw(uint64(seed), 400, 0, 2), 0.95, 1)
		if l.Raw.Lo < 0.6 {
			t.Errorf("raw win rate %v [%v, %v]", l.Raw.Value, l.Raw.Lo, l.Raw.Hi)
		}
		if l.Controlled.Lo <= 0.5 && 0.5 <= l.Controlled.Hi {
			covered++
		}
	}
	if float64(covered) < 0.95*float64(n)-3*math.Sqrt(0.0475*float64(n)) {
		t.Errorf("the controlled win rate covers 1/2 in %d of %d", covered, n)
	}
	if l := ControlLength(draw(1, 1000, 1, 0.5), 0.95, 1); l.Controlled.Lo < 0.6 || l.Controlled.Hi > 0.85 {
		t.Errorf("controlled win rate %v [%v, %v], want about 0.73", l.Controlled.Value, l.Controlled.Lo, l.Controlled.Hi)
	}
	if l := ControlLength([]Sized{{Score: math.NaN()}}, 0.95, 1); l.Controlled.Defined() || l.Raw.Defined() {
		t.Errorf("nothing has a win rate: %+v", l)
	}
}

func TestPositionBias(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	pair := func(first, second float64) Preference {
		m := func(order int) Mark {
			v := Candidate
			if x := r.Float64(); order == 0 && x < first || order == 1 && x >= second {
				v = Baseline
			}
			return Mark{Verdict: string(v), Score: map[Outcome]float64{Candidate: 1}[v]}
		}
		return prefer(m(0), m(1))
	}
	var even, biased []Preference
	var clusters []string
	for i := range 400 {
		even, biased = append(even, pair(0.5, 0.5)), append(biased, pair(0.65, 0.65))
		clusters = append(clusters, fmt.Sprint(i/2))
	}
	for _, c := range [][]string{nil, clusters} {
		if p := PositionBias(even, c, 0.95); p.Bias.Lo > 0 || p.Bias.Hi < 0 || p.Pairs != 400 {
			t.Errorf("even: %+v", p)
		}
		if p := PositionBias(biased, c, 0.95); p.Bias.Lo <= 0.08 || p.Bias.Hi >= 0.22 || p.Flips.Value < 0.4 {
			t.Errorf("biased by 0.15: %+v", p)
		}
	}
	if p := PositionBias([]Preference{prefer(faulty(Refused, ""), Mark{})}, nil, 0.95); p.Pairs != 0 || p.Bias.Defined() {
		t.Errorf("no pairs: %+v", p)
	}
}

func TestDrift(t *testing.T) {
	nan := math.NaN()
	make := func(up, down, same, lost int) (stored, now []float64) {
		for _, c := range []struct {
			n        int
			was, now float64
		}{{up, 0, 1}, {down, 1, 0}, {same, 1, 1}, {lost, 1, nan}} {
			for range c.n {
				stored, now = append(stored, c.was), append(now, c.now)
			}
		}
		return stored, now
	}
	for name, c := range map[string]struct {
		up, down, same, lost int
		changed, of          int
		want                 bool
	}{
		"the same":            {0, 0, 40, 0, 0, 40, false},
		"noise":               {2, 3, 35, 0, 4, 40, false},
		"milder":              {12, 0, 28, 0, 4, 40, true},
		"restless":            {10, 10, 20, 0, 2, 40, true},
		"restless, unknown":   {10, 10, 20, 0, 0, 0, true},
		"all flip":            {10, 10, 0, 0, 0, 0, true},
		"all of few flip":     {5, 5, 0, 0, 0, 0, true},
		"all of many flip":    {200, 200, 0, 0, 0, 0, true},
		"noise, unknown":      {4, 4, 32, 0, 0, 0, false},
		"hardly any retest":   {10, 10, 0, 0, 0, 2, true},
		"no answers any more": {0, 0, 30, 10, 0, 40, true},
	} {
		stored, now := make(c.up, c.down, c.same, c.lost)
		if d := FindDrift(stored, now, c.changed, c.of, 0.05); d.Drifted != c.want || d.Reason == "" {
			t.Errorf("%s: %+v", name, d)
		}
	}
	for _, c := range []struct {
		up, down, same, of int
		open               bool
	}{{2, 2, 6, 0, true}, {2, 2, 6, 10, false}, {0, 0, 10, 0, false}, {1, 0, 2, 0, true}, {4, 4, 32, 0, false}} {
		stored, now := make(c.up, c.down, c.same, 0)
		if d := FindDrift(stored, now, 0, c.of, 0.05); d.Open != c.open || d.Drifted {
			t.Errorf("%+v: %+v", c, d)
		}
	}
	// Of as many verdicts as are said to be found in four of five runs, they are.
	r := rand.New(rand.NewPCG(1, 9))
	for n, want := range map[int]float64{5: nan, 20: .418, 30: .287, 60: .147} {
		stored, now := make(0, 0, n, 0)
		size := FindDrift(stored, now, 0, 0, 0.05).Detects
		if !(math.Abs(size-want) < .001) && !(math.IsNaN(size) && math.IsNaN(want)) {
			t.Errorf("of %d verdicts a drift of %.3f is found, want %.3f", n, size, want)
		}
		found := 0
		for range 1000 {
			for i := range now {
				now[i] = stored[i]
				if r.Float64() < size {
					now[i]--
				}
			}
			if FindDrift(stored, now, 0, 0, 0.05).Drifted {
				found++
			}
		}
		if want == want && (found < 760 || found > 900) {
			t.Errorf("of %d verdicts a drift of %.3f is found in %d of 1000 runs, want 800", n, size, found)
		}
	}
	if d := FindDrift([]float64{nan}, []float64{1}, 0, 0, 0.05); d.Drifted || !math.IsNaN(d.P) {
		t.Errorf("nothing: %+v", d)
	}
	chosen := 0
	for i := range 2000 {
		if Canary(fmt.Sprint(i), 0.2, 5) {
			chosen++
		}
	}
	if chosen < 340 || chosen > 460 || !Canary("x", 1, 0) || Canary("x", 0, 0) {
		t.Errorf("%d of 2000 are canaries, want about 400", chosen)
	}
}

func TestSelfPreferenceAndNames(t *testing.T) {
	for _, c := range []struct {
		judge, variant string
		warn           bool
	}{
		{"gpt-4o", "gpt-3.5-turbo", true},
		{"Qwen/Qwen2.5-72B-Instruct", "qwen2.5:0.5b", true},
		{"meta-llama/Llama-3-8B", "mistral-7b", false},
		{"own", "own", true},
		{"custom", "other", false},
		{"foo1-mini", "o1-mini", false},
	} {
		if got := SelfPreference(c.judge, c.variant) != ""; got != c.warn {
			t.Errorf("%s judges %s: warned %v, want %v", c.judge, c.variant, got, c.warn)
		}
	}
	j := &Judge{Scrub: []string{"smol-135m"}}
	for in, want := range map[string]string{
		"I am ChatGPT, a model trained by OpenAI.": "I am [NAME], a model trained by [MAKER].",
		"As Claude, I cannot say.":                 "As [NAME], I cannot say.",
		"Hi! I'm Qwen 2.5. This is SMOL-135M.":     "Hi! I'm [NAME]. This is [NAME].",
		"The llama is an animal of the Andes.":     "The llama is an animal of the Andes.",
		"Claude Monet painted.":                    "Claude Monet painted.",
	} {
		if got, _ := j.scrub(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestRubric(t *testing.T) {
	for _, c := range Builtin() {
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
	}
	if b := Builtin(); len(b) != 4 || len(b[0].Levels) != 5 || len(b[1].Levels) != 5 || len(b[2].Levels) != 0 || len(b[3].Levels) != 3 {
		t.Errorf("got %+v", b)
	}
	r, err := ReadRubric("r.yaml", []byte("version: 1\ncriteria:\n  - name: tone\n    asks: Is it polite?\n    levels:\n      - {verdict: rude, means: It is rude.}\n      - {verdict: polite, means: It is polite.}\n"))
	if err != nil || r.Criteria[0].Level("POLITE") != 1 {
		t.Fatalf("got %+v, %v", r, err)
	}
	digest := r.Criteria[0].Digest()
	r.Criteria[0].Levels[0].Means = "It is very rude."
	if r.Criteria[0].Digest() == digest {
		t.Error("other words have the same digest")
	}
	for what, doc := range map[string]string{
		"one level":     "version: 1\ncriteria: [{name: a, asks: b, levels: [{verdict: x, means: y}]}]",
		"six levels":    "version: 1\ncriteria: [{name: a, asks: b, levels: [" + strings.Repeat("{verdict: x, means: y},", 6) + "]}]",
		"twice":         "version: 1\ncriteria: [{name: a, asks: b, levels: [{verdict: x, means: y}, {verdict: X, means: y}]}]",
		"quotes":        "version: 1\ncriteria: [{name: a, asks: b, levels: [{verdict: 'x\"', means: y}, {verdict: z, means: y}]}]",
		"blind":         "version: 1\ncriteria: [{name: a, asks: b, sees: [mirror]}]",
		"version":       "version: 2\ncriteria: [{name: a, asks: b}]",
		"name":          "version: 1\ncriteria: [{name: A b, asks: b}]",
		"two of a name": "version: 1\ncriteria: [{name: a, asks: b}, {name: a, asks: c}]",
		"unknown":       "version: 1\ncriteria: [{name: a, asks: b, weight: 3}]",
	} {
		if _, err := ReadRubric("r.yaml", []byte(doc)); err == nil || !strings.Contains(err.Error(), "r.yaml:") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// FuzzReadVerdict: whatever a judge writes, a verdict is one of the menu or none, and
// is found again when echoes stand around it.
func FuzzReadVerdict(f *testing.F) {
	f.Add(`{"reason":"x","verdict":"good"}`, "answer")
	f.Add("BEGIN ANSWER", `{"reason":"x","verdict":"good"}`)
	f.Add(`{"a":"\u0000{}"}{`, "}")
	f.Fuzz(func(t *testing.T, answer, material string) {
		s := (&Judge{}).point(rightness, Item{}, material, 0)
		v, err := readVerdict(answer, s)
		if err == nil != (v.index >= 0) || v.index >= len(s.menu) {
			t.Fatalf("%q: %+v, %v", answer, v, err)
		}
		if err != nil && strings.Contains(err.Error(), answer) && len(answer) > 20 {
			t.Errorf("the fault quotes the answer: %v", err)
		}
		if utf8.ValidString(material) && len(material) < 1000 {
			own := says("own words, not theirs", "bad").Text
			got, err := readVerdict(own+"\n"+material, s)
			// The echo of an object is skipped; half an object makes no verdict.
			if err == nil && s.menu[got.index] != "bad" && !strings.Contains(squeeze(material), "verdict") {
				t.Errorf("an echo of %q is taken", material)
			}
		}
	})
}

func FuzzReadRubric(f *testing.F) {
	f.Add(string(builtinYAML))
	f.Fuzz(func(t *testing.T, doc string) {
		r, err := ReadRubric("r.yaml", []byte(doc))
		if err != nil {
			return
		}
		for i := range r.Criteria {
			if err := r.Criteria[i].Validate(); err != nil {
				t.Errorf("read, but not valid: %v", err)
			}
		}
	})
}

func FuzzSuspicions(f *testing.F) {
	for _, a := range Attacks(24, "x", "good") {
		if len(a.Answer) < 1000 {
			f.Add(a.Answer)
		}
	}
	f.Fuzz(func(t *testing.T, s string) {
		// What the question says too is never held against an answer, but for what
		// cannot be seen.
		why := Suspicions(s, Item{Question: s})
		if i := slices.IndexFunc(why, func(w string) bool { return strings.HasPrefix(w, "it tells") }); i >= 0 && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r > 127 }) {
			t.Errorf("%q: %v", s, why)
		}
	})
}

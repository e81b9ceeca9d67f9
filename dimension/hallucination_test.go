package dimension

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/quiz"
	"github.com/assay-llm/assay/record"
)

const passages = `{"id": "right", "prompt": "The fair opened on 14 March 1987 and has 134 stands.\n\nQuestion right: how many stands are there?", "expect": "134"}
{"id": "wrong", "prompt": "The fair opened on 14 March 1987 and has 134 stands.\n\nQuestion wrong: how many stands are there?", "expect": "134"}
{"id": "part", "prompt": "The fair opened on 14 March 1987 and has 134 stands.\n\nQuestion part: tell of the stands.", "expect": "134"}
{"id": "hedge", "prompt": "The fair opened on 14 March 1987 and has 134 stands.\n\nQuestion hedge: how many stands are there?", "expect": "134"}
{"id": "quiet", "prompt": "The fair opened on 14 March 1987 and has 134 stands.\n\nQuestion quiet: how many stands are there?", "expect": "134"}
{"id": "vague", "prompt": "The fair opened on 14 March 1987 and has 134 stands.\n\nQuestion vague: how many stands are there?", "expect": "134"}
{"id": "empty", "prompt": "The fair opened on 14 March 1987 and has 134 stands.\n\nQuestion empty: how many stands are there?", "expect": "134"}
{"id": "torn", "prompt": "The fair opened on 14 March 1987 and has 134 stands.\n\nQuestion torn: how many stands are there?", "expect": "134"}
{"id": "down", "prompt": "The fair opened on 14 March 1987 and has 134 stands.\n\nQuestion down: how many stands are there?", "expect": "134"}
{"id": "fair", "prompt": "The fair opened on 14 March 1987 and has 134 stands.\n\nQuestion fair: who runs it?", "labels": {"answerable": "no"}}
{"id": "made", "prompt": "The fair opened on 14 March 1987 and has 134 stands.\n\nQuestion made: who runs it?", "labels": {"answerable": "no"}}
{"id": "mum", "prompt": "The fair opened on 14 March 1987 and has 134 stands.\n\nQuestion mum: who runs it?", "labels": {"answerable": "no"}}`

func teller(answers map[string]string) model {
	return func(q *check.Question) *check.Answer {
		_, asked, _ := strings.Cut(q.Messages[0].Content, "Question ")
		name, _, _ := strings.Cut(asked, ":")
		if answers[name] == "!" {
			return &check.Answer{Outcome: record.HTTP5xx, Status: 500, Detail: "down"}
		}
		return &check.Answer{Outcome: record.OK, Text: answers[name], Finish: "stop"}
	}
}

var told = map[string]string{
	"right": "There are 134 stands.", "wrong": "There are 150 stands.", "part": "It has 134 stands and 12 gates.", "hedge": "I am not sure, perhaps 150.",
	"quiet": "The passage does not say.", "vague": "Quite a few, I would think.", "empty": "", "torn": `{"stands": `, "down": "!",
	"fair": "The passage does not mention who runs it.", "made": "It is run by Marta Kolve.", "mum": "Somebody does.",
}

func hallucination() *HallucinationConfig {
	return &HallucinationConfig{Given: Given{Set: check.SetRef{File: "set.jsonl"}}}
}

// TestHallucination has each kind of answer once. No claim is neither 0 nor 1, only a
// statement of not knowing abstains, and what failed is no error of the model.
func TestHallucination(t *testing.T) {
	o := runWithout(t, Hallucination, hallucination(), set(t, passages), teller(told))
	for name, want := range map[string]map[string]float64{
		"unsupported": {
			"right": 0, "wrong": 1, "part": 1, "hedge": 1, "quiet": exempt, "vague": exempt, "empty": exempt, "torn": exempt, "down": nan, "fair": exempt, "made": 1, "mum": exempt,
		},
		"unsupported_share": {"right": 0, "wrong": 1, "part": .5, "quiet": exempt, "down": nan, "made": 1},
		"claims":            {"right": 1, "part": 2, "quiet": 0, "empty": 0, "down": nan},
		"wrong": {
			"right": 0, "wrong": 1, "part": 0, "hedge": 1, "quiet": exempt, "vague": nan, "empty": nan, "torn": nan, "down": nan, "fair": exempt, "made": exempt, "mum": exempt,
		},
		"abstained": {
			"right": 0, "wrong": 0, "part": 0, "hedge": 0, "quiet": 1, "vague": 0, "empty": 0, "torn": 0, "down": nan, "fair": exempt, "made": exempt, "mum": exempt,
		},
		"invented": {"right": exempt, "quiet": exempt, "fair": 0, "made": 1, "mum": nan},
	} {
		got := firsts(t, o, "baseline", name)
		for id, x := range want {
			if g := got[id]; g != x && !(math.IsNaN(g) && math.IsNaN(x)) {
				t.Errorf("%s of %s (%q) is %v, want %v", name, id, told[id], g, x)
			}
		}
	}
	if e := o.Estimates; len(e) != 1 || e[0].Number == nil || *e[0].Number != 4.0/6 || e[0].Missing != 0 {
		t.Errorf("estimates %+v; want 4 of 6 claims", e)
	}
	if got := reported(o, "answers"); len(got) != 1 || !strings.Contains(got[0], "of 8 questions 2 were answered rightly and 2 wrongly") || !strings.Contains(got[0], "1 not answered") || !strings.Contains(got[0], "3 answers could not be read") {
		t.Errorf("answers: %q", got)
	}
	if got := reported(o, "invented"); len(got) != 1 || !strings.Contains(got[0], "of 3 questions that the source does not answer 1 were answered all the same, 1 declined, 1 answers") {
		t.Errorf("invented: %q", got)
	}
	if len(o.Notes) != 1 || !strings.Contains(o.Notes[0], "6 answers make no claim") {
		t.Errorf("notes %q", o.Notes)
	}
}

// runWithout runs a check without trying failures again.
func runWithout(t *testing.T, c *check.Check, conf any, s *corpus.Set, models ...model) *check.Outcome {
	t.Helper()
	config := check.Config{Checks: []check.Declared{{Check: c, Config: conf}}, Seed: 7, Sets: map[string]*corpus.Set{"set.jsonl": s}, Retries: -1}
	for i, m := range models {
		config.Variants = append(config.Variants, check.Variant{Name: []string{"baseline", "candidate"}[i], Asker: m})
	}
	out, err := check.Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if out[0].Why != "" {
		t.Fatal(out[0].Why)
	}
	return out[0]
}

// TestPublishedForms has the forms in use that make a score of nothing, beside what
// comes of the same answers here. The forms are, in turn: no verdicts are the best
// score (deepeval's faithfulness and hallucination, promptfoo's faithfulness), what has no
// score is dropped from the mean (ragas), what cannot be parsed abstains (BFCL), and a
// failed request is the model's fault (SWE-bench Pro).
func TestPublishedForms(t *testing.T) {
	faithful := func(supported, verdicts int) float64 {
		if verdicts == 0 {
			return 1
		}
		return float64(supported) / float64(verdicts)
	}
	nanmean := func(xs ...float64) float64 {
		sum, n := 0.0, 0.0
		for _, x := range xs {
			if !math.IsNaN(x) {
				sum, n = sum+x, n+1
			}
		}
		return sum / n
	}
	abstains := func(calls []string) bool { return len(calls) == 0 }
	resolved := func(answered, right bool) float64 { return yes(answered && right) }
	if faithful(0, 0) != 1 || nanmean(1, nan, nan) != 1 || !abstains(nil) || resolved(false, true) != 0 {
		t.Fatal("these are not the forms that fail")
	}

	silent := make(map[string]string)
	for id := range told {
		silent[id] = "Well."
	}
	o := runWithout(t, Hallucination, hallucination(), set(t, passages), teller(silent))
	for _, name := range []string{"unsupported", "unsupported_share"} {
		for id, x := range firsts(t, o, "baseline", name) {
			if x != exempt {
				t.Errorf("%s of %s, an answer without claims, is %v; want none", name, id, x)
			}
		}
	}
	if e := o.Estimates; len(e) != 1 || e[0].Number != nil || e[0].None == "" {
		t.Errorf("the rate without claims is %+v; want none, with a reason", e)
	}
	for id, x := range firsts(t, o, "baseline", "abstained") {
		if x != 0 && x != exempt {
			t.Errorf("abstained of %s, an answer that says nothing, is %v; want 0", id, x)
		}
	}

	// One verdict of three: the mean of what is left would be perfect.
	o = judgedHallucination(t, hallucination(), `{"id": "a", "prompt": "A.\n\nQuestion a: ?"}
{"id": "b", "prompt": "B.\n\nQuestion b: ?"}
{"id": "c", "prompt": "C.\n\nQuestion c: ?"}`, func(answers, _ []string) string {
		if strings.Contains(answers[0], "one") {
			return "supported"
		}
		return "!no verdict"
	}, teller(map[string]string{"a": "This is one.", "b": "This is two.", "c": "This is three."}))
	missing := 0
	for _, x := range firsts(t, o, "baseline", "unsupported") {
		missing += int(yes(math.IsNaN(x)))
	}
	if missing != 2 || o.Why == "" {
		t.Errorf("%d missing (%s); want two, and nothing concluded", missing, o.Why)
	}

	down := make(map[string]string)
	for id := range told {
		down[id] = "!"
	}
	o = runWithout(t, Hallucination, hallucination(), set(t, strings.Join(strings.Split(passages, "\n")[:5], "\n")), teller(down))
	for _, name := range []string{"unsupported", "wrong", "abstained"} {
		for id, x := range firsts(t, o, "baseline", name) {
			if !math.IsNaN(x) {
				t.Errorf("%s of %s, a request that failed, is %v; want it missing", name, id, x)
			}
		}
	}
}

func TestHallucinationOfItsOwnCases(t *testing.T) {
	knows, open := make(map[string]string), make(map[string]bool)
	for _, q := range quiz.Inquiries(7, 160, nil) {
		open[q.ID] = q.Expect == ""
		switch {
		case q.Expect != "":
			knows[q.Prompt] = q.Expect
		case q.Language == "zh":
			knows[q.Prompt] = "短文没有提到。"
		default:
			knows[q.Prompt] = "The passage does not say."
		}
	}
	good := says(func(asked string) string { return knows[asked] })
	refuses := says(func(string) string { return "The passage does not say." })
	o := run(t, Hallucination, &HallucinationConfig{}, nil, good, refuses)
	if o.Why != "" || len(o.Records) != 320 {
		t.Fatalf("%q, %d records", o.Why, len(o.Records))
	}
	for name, want := range map[string][2]float64{"unsupported": {0, exempt}, "wrong": {0, exempt}, "abstained": {0, 1}} {
		for v, variant := range []string{"baseline", "candidate"} {
			for id, x := range firsts(t, o, variant, name) {
				if open[id] {
					continue // the passage does not say
				}
				if x != want[v] {
					t.Errorf("%s: %s of %s is %v, want %v", variant, name, id, x, want[v])
				}
			}
		}
	}
	for _, variant := range []string{"baseline", "candidate"} {
		for id, x := range firsts(t, o, variant, "invented") {
			if want := map[bool]float64{true: 0, false: exempt}[open[id]]; x != want {
				t.Errorf("%s: invented of %s is %v, want %v", variant, id, x, want)
			}
		}
	}
}

func judgedHallucination(t *testing.T, conf *HallucinationConfig, rows string, verdict func(answers, menu []string) string, m model) *check.Outcome {
	t.Helper()
	conf.Judge = check.Endpoint{URL: "http://judge/v1", Model: "j"}
	j := asJudge(verdict)
	out, err := check.Run(t.Context(), check.Config{
		Checks: []check.Declared{{Check: Hallucination, Config: conf}}, Seed: 7, Sets: map[string]*corpus.Set{"set.jsonl": set(t, rows)}, Retries: -1,
		Variants: []check.Variant{{Name: "baseline", Asker: m}},
		Judge:    func(check.Endpoint) (check.Asker, error) { return j, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

func TestHallucinationByJudge(t *testing.T) {
	const row = `{"id": "a", "prompt": "A text.\n\nQuestion a: what?"}`
	verdict := func(answers, _ []string) string {
		switch {
		case strings.Contains(answers[0], "true"):
			return "supported"
		case strings.Contains(answers[0], "false"):
			return "contradicted"
		case strings.Contains(answers[0], "odd"):
			return "!no verdict"
		}
		return "not_checkable"
	}
	for _, c := range []struct {
		answer             string
		unsupported, share float64
		claims             float64
		inconclusive       bool
	}{
		{"This is true. That is true. Thank you.", 0, 0, 2, false},
		{"This is true. That is false. Thank you.", 1, .5, 2, false},
		{"Thank you.", exempt, exempt, 0, false},
		{"This is true. That is odd.", nan, nan, nan, true},
		{"This is false. That is odd.", 1, nan, nan, true},
		{"One is true. Two is true. Three is true. Four is false.", 0, 0, 3, false}, // the fourth is beyond max_claims
	} {
		conf := hallucination()
		conf.MaxClaims = 3
		o := judgedHallucination(t, conf, row, verdict, teller(map[string]string{"a": c.answer}))
		for name, want := range map[string]float64{"unsupported": c.unsupported, "unsupported_share": c.share, "claims": c.claims} {
			if got := firsts(t, o, "baseline", name)["a"]; got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("%q: %s is %v, want %v", c.answer, name, got, want)
			}
		}
		if (o.Why != "") != c.inconclusive {
			t.Errorf("%q: Why %q", c.answer, o.Why)
		}
		if strings.Contains(c.answer, "Four") && !strings.Contains(strings.Join(o.Notes, "\n"), "1 sentences beyond the first 3") {
			t.Errorf("notes %q; want the sentence that was not judged", o.Notes)
		}
	}
}

func TestClosedBook(t *testing.T) {
	const rows = `{"id": "a", "prompt": "Question a: the highest mountain?", "expect": "Mount Everest"}
{"id": "b", "prompt": "Question b: the highest mountain?", "expect": "Mount Everest"}
{"id": "c", "prompt": "Question c: the highest mountain?", "expect": "Mount Everest"}
{"id": "d", "prompt": "Question d: the highest mountain?", "expect": "Mount Everest"}
{"id": "e", "prompt": "Question e: the highest mountain?", "expect": "Mount Everest"}`
	m := teller(map[string]string{"a": "It is Mount Everest.", "b": "That is Mont Blanc.", "c": "I don't know.", "d": "", "e": "I am not sure, but I think of Mont Blanc."})
	conf := hallucination()
	conf.Source = "none"
	check := func(o *check.Outcome, how string) {
		t.Helper()
		for name, want := range map[string]map[string]float64{
			"wrong":     {"a": 0, "b": 1, "c": exempt, "d": nan, "e": 1},
			"abstained": {"a": 0, "b": 0, "c": 1, "d": 0, "e": 0},
		} {
			got := firsts(t, o, "baseline", name)
			for id, x := range want {
				if g := got[id]; g != x && !(math.IsNaN(g) && math.IsNaN(x)) {
					t.Errorf("%s: %s of %s is %v, want %v", how, name, id, g, x)
				}
			}
		}
		if len(o.Estimates) != 0 {
			t.Errorf("%s: a rate of claims without a source: %+v", how, o.Estimates)
		}
	}
	check(runWithout(t, Hallucination, conf, set(t, rows), m), "by rules")
	check(judgedHallucination(t, conf, rows, func(answers, _ []string) string {
		switch {
		case strings.Contains(answers[0], "Everest"):
			return "right"
		case strings.Contains(answers[0], "Blanc"):
			return "wrong"
		}
		return "abstained"
	}, m), "by a judge")
}

// A number that a limit cut in two is none that the answer claims.
func TestCutAnswersClaimNoHalfNumbers(t *testing.T) {
	for finish, want := range map[string]float64{"stop": 1, "length": 0} {
		m := model(func(*check.Question) *check.Answer {
			return &check.Answer{Outcome: record.OK, Text: "It opened on 14 March 1987 and has 13", Finish: finish}
		})
		o := runWithout(t, Hallucination, hallucination(), set(t, strings.Split(passages, "\n")[0]), m)
		if got := firsts(t, o, "baseline", "unsupported")["right"]; got != want {
			t.Errorf("ended by %s: unsupported %v, want %v", finish, got, want)
		}
	}
}

// Further answers screen the first: what is said each time differently comes first.
func TestSamplesRankAnswers(t *testing.T) {
	rows := `{"id": "known", "prompt": "T.\n\nQuestion known: x?"}
{"id": "made", "prompt": "T.\n\nQuestion made: x?"}
{"id": "lost", "prompt": "T.\n\nQuestion lost: x?"}`
	m := model(func(q *check.Question) *check.Answer {
		want := 0.0
		if q.Replicate > 0 {
			want = 1
		}
		if *q.Temperature != want {
			t.Errorf("answer %d is asked for at %v, want %v", q.Replicate, *q.Temperature, want)
		}
		text := "it opened in the spring of that year"
		switch {
		case strings.Contains(q.Messages[0].Content, "made"):
			text = fmt.Sprintf("it opened in year%d and month%d by name%d", q.Replicate, q.Replicate, q.Replicate)
		case strings.Contains(q.Messages[0].Content, "lost") && q.Replicate == 2:
			return &check.Answer{Outcome: record.HTTP4xx, Status: 400}
		}
		return &check.Answer{Outcome: record.OK, Text: text, Finish: "stop"}
	})
	conf := hallucination()
	conf.Samples = 4
	o := runWithout(t, Hallucination, conf, set(t, rows), m)
	got := firsts(t, o, "baseline", "surprise")
	if !(got["made"] > got["known"]) || !math.IsNaN(got["lost"]) {
		t.Errorf("surprise %v; want more of what is made up, and none where an answer is missing", got)
	}
	if s := reported(o, "screen"); len(s) != 1 || !strings.Contains(s[0], "of 2 answers these are borne out least by 4 further ones: made") {
		t.Errorf("screen: %q", s)
	}
	o = judgedHallucination(t, conf, rows, func(answers, menu []string) string {
		if len(menu) == 3 { // of further answers
			return map[bool]string{true: "no", false: "yes"}[strings.Contains(answers[0], "year0")]
		}
		return "supported"
	}, m)
	if got := firsts(t, o, "baseline", "selfcheck"); got["made"] != 1 || got["known"] != 0 || !math.IsNaN(got["lost"]) || o.Why != "" {
		t.Errorf("selfcheck %v (%s); want 1, 0 and none", got, o.Why)
	}
}

func TestHallucinationConfig(t *testing.T) {
	for yaml, want := range map[string]string{
		"{}": "", "{samples: 5, temperature: 0.9}": "", "{set: a.jsonl, source: none}": "",
		"source: none":              "asks without a source",
		"{set: a.jsonl, cases: 20}": "how many cases",
		"temperature: 0.5":          "no further answers",
		"max_claims: 5":             "nobody judges",
	} {
		err := config.Decode("suite.yaml", []byte(yaml), Hallucination.Config())
		if want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", yaml, err, want)
		}
	}
}

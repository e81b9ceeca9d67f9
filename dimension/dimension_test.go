package dimension

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

// model answers by a function.
type model func(q *check.Question) *check.Answer

func (m model) Ask(_ context.Context, q *check.Question) (*check.Answer, error) { return m(q), nil }

// says is a model that gives one text by what is asked last.
func says(answer func(asked string) string) model {
	return func(q *check.Question) *check.Answer {
		text := answer(q.Messages[len(q.Messages)-1].Content)
		return &check.Answer{Outcome: record.OK, Text: text, Finish: "stop", Prompt: record.Tokens(9), Output: record.Tokens(int64(len(strings.Fields(text))))}
	}
}

func set(t *testing.T, rows string) *corpus.Set {
	t.Helper()
	s, err := corpus.Read("set.jsonl", strings.NewReader(rows), "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs one check over a set and returns its outcome.
func run(t *testing.T, c *check.Check, conf any, s *corpus.Set, models ...model) *check.Outcome {
	t.Helper()
	config := check.Config{Checks: []check.Declared{{Check: c, Config: conf}}, Seed: 7, Sets: map[string]*corpus.Set{"set.jsonl": s}}
	for i, m := range models {
		config.Variants = append(config.Variants, check.Variant{Name: []string{"baseline", "candidate"}[i], Asker: m})
	}
	out, err := check.Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

// values lists what one value is on the records of a variant, by case; NaN: missing.
func values(o *check.Outcome, variant, name string) map[string]float64 {
	all := make(map[string]float64)
	for _, r := range o.Records {
		if r.Variant != variant {
			continue
		}
		x, ok := r.Values[o.Check+"."+name]
		if !ok {
			x = math.NaN()
		}
		all[r.Case] = x
	}
	return all
}

func same(a, b map[string]float64) bool {
	if len(a) != len(b) {
		return false
	}
	for k, x := range a {
		if y, ok := b[k]; !ok || x != y && !(math.IsNaN(x) && math.IsNaN(y)) {
			return false
		}
	}
	return true
}

func asking() Asking { return Asking{Set: check.SetRef{File: "set.jsonl"}} }

var nan = math.NaN()

func TestExact(t *testing.T) {
	const sums = `{"id": "a", "question": "1+1?", "answer": "2"}
{"id": "b", "question": "2+2?", "answer": "#### 4"}
{"id": "c", "question": "3+3?", "answer": "6"}
{"id": "d", "question": "4+4?", "answer": "8"}`
	m := model(func(q *check.Question) *check.Answer {
		switch asked := q.Messages[len(q.Messages)-1].Content; asked {
		case "1+1? Be brief.":
			return &check.Answer{Outcome: record.OK, Text: "The answer is 2.", Finish: "stop"}
		case "2+2? Be brief.":
			return &check.Answer{Outcome: record.OK, Text: "2+2 = 5", Finish: "stop"}
		case "3+3? Be brief.":
			return &check.Answer{Outcome: record.OK, Text: "I cannot tell.", Finish: "stop"}
		default:
			return &check.Answer{Outcome: record.HTTP4xx, Status: 400, Detail: "no"}
		}
	})
	conf := &ExactConfig{Asking: asking(), Kind: "number"}
	conf.Suffix = " Be brief."
	o := run(t, Exact, conf, set(t, sums), m)
	if got, want := values(o, "baseline", "right"), (map[string]float64{"a": 1, "b": 0, "c": nan, "d": nan}); !same(got, want) || o.Why != "" {
		t.Errorf("right: %v (%s), want %v", got, o.Why, want)
	}
	if got, want := values(o, "baseline", "parsed"), (map[string]float64{"a": 1, "b": 1, "c": 0, "d": nan}); !same(got, want) {
		t.Errorf("parsed: %v, want %v", got, want)
	}
	if s := o.Signatures[0]; s.N != 4 || s.Missing != 2 || s.Data == "" || !strings.Contains(s.Estimator, "unparsed missing") {
		t.Errorf("signature %+v; want n 4, missing 2, the set's digest and the estimator", s)
	}
	if len(o.Findings) != 1 || o.Findings[0].Case != "c" || len(o.Notes) != 1 {
		t.Errorf("findings %+v, notes %v; want the one answer without a number", o.Findings, o.Notes)
	}

	conf.Unparsed = "wrong"
	if got := values(run(t, Exact, conf, set(t, sums), m), "baseline", "right"); got["c"] != 0 || !math.IsNaN(got["d"]) {
		t.Errorf("with unparsed: wrong: %v; want 0 for c, and d still missing", got)
	}
}

func TestExactRefusesWhatCannotBeRight(t *testing.T) {
	conf := &ExactConfig{Asking: asking(), Kind: "number"}
	var asked atomic.Bool
	o := run(t, Exact, conf, set(t, `{"id": "a", "question": "1+1?", "answer": "two"}`), func(*check.Question) *check.Answer { asked.Store(true); return new(check.Answer) })
	if !strings.Contains(o.Why, `case a of set.jsonl expects no number: "two" is no number`) || asked.Load() {
		t.Errorf("Why %q, asked %v; want the case named and nothing asked", o.Why, asked.Load())
	}
}

func TestReplicatesAreAskedAnewAndStayOneCluster(t *testing.T) {
	var mu sync.Mutex
	var seen []int
	m := model(func(q *check.Question) *check.Answer {
		mu.Lock()
		seen = append(seen, q.Replicate)
		mu.Unlock()
		if q.Temperature != nil {
			t.Errorf("a repeated question has the temperature %v; want the server's", *q.Temperature)
		}
		return &check.Answer{Outcome: record.OK, Text: fmt.Sprint(q.Replicate), Finish: "stop"}
	})
	conf := &ExactConfig{Asking: asking(), Kind: "number"}
	conf.Replicates = 4
	o := run(t, Exact, conf, set(t, `{"id": "a", "question": "1+1?", "answer": "2"}`), m)
	right := 0.0
	for _, r := range o.Records {
		right += r.Values["exact.right"]
		if r.Session != "a" {
			t.Errorf("record %+v; want the session a", r)
		}
	}
	if len(seen) != 4 || len(o.Records) != 4 || right != 1 {
		t.Errorf("%d questions, %d records, %v right; want 4, 4 and 1", len(seen), len(o.Records), right)
	}
}

func TestLimitDrawsTheSameCases(t *testing.T) {
	var rows strings.Builder
	for i := range 50 {
		fmt.Fprintf(&rows, "{\"id\": \"c%02d\", \"question\": \"%d?\", \"answer\": \"%d\"}\n", i, i, i)
	}
	conf := &ExactConfig{Asking: asking(), Kind: "number"}
	conf.Limit = 10
	var before map[string]float64
	for range 2 {
		o := run(t, Exact, conf, set(t, rows.String()), says(func(asked string) string { return asked }))
		got := values(o, "baseline", "right")
		if len(got) != 10 || before != nil && !same(got, before) {
			t.Errorf("%v; want the same ten cases each time", got)
		}
		before = got
	}
}

func TestInstructions(t *testing.T) {
	const rows = `{"key": 1, "prompt": "p1", "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"], "kwargs": [{}, {"relation": "less than", "num_words": 4}]}
{"key": 2, "prompt": "p2", "instruction_id_list": ["punctuation:no_comma", "language:response_language"], "kwargs": [{}, {"language": "de"}]}
{"key": 3, "prompt": "p3", "instruction_id_list": ["detectable_format:json_format"], "kwargs": [{}]}`
	m := says(func(asked string) string {
		return map[string]string{"p1": "one two, three four", "p2": "Ja", "p3": "Here you are:\n{\"a\": 1}"}[asked]
	})
	o := run(t, Instructions, &InstructionsConfig{asking()}, set(t, rows), m)
	for name, want := range map[string]map[string]float64{
		"strict":   {"1": 0, "2": nan, "3": 0},
		"loose":    {"1": 0, "2": nan, "3": 1},
		"followed": {"1": 0, "2": nan, "3": 0},
	} {
		if got := values(o, "baseline", name); !same(got, want) || o.Why != "" {
			t.Errorf("%s: %v (%s), want %v", name, got, o.Why, want)
		}
	}
	o = run(t, Instructions, &InstructionsConfig{asking()}, set(t, `{"id": "x", "prompt": "p"}`), m)
	if !strings.Contains(o.Why, "case x expects no instructions") {
		t.Errorf("Why %q; want the case named", o.Why)
	}
}

func TestShape(t *testing.T) {
	const rows = `{"id": "a", "prompt": "a"}
{"id": "b", "prompt": "b"}
{"id": "c", "prompt": "c"}
{"id": "d", "prompt": "d"}`
	m := model(func(q *check.Question) *check.Answer {
		a := &check.Answer{Outcome: record.OK, Finish: "stop", Output: record.Tokens(5)}
		switch q.Messages[0].Content {
		case "a":
			a.Text, a.Finish = "The answer is given here in plain English words, which are many enough to tell the language, but then it was", "length"
		case "b":
			a.Text = "```json\n{\"a\": 1}\n```"
		case "c":
			a.Text, a.Output = "", record.Count(0)
		case "d":
			a.Refusal = "I will not."
		}
		return a
	})
	o := run(t, Shape, &ShapeConfig{Asking: asking(), JSON: true, Language: "en"}, set(t, rows), m)
	for name, want := range map[string]map[string]float64{
		"empty":      {"a": 0, "b": 0, "c": 1, "d": 0},
		"truncated":  {"a": 1, "b": 0, "c": 0, "d": 0},
		"refused":    {"a": 0, "b": 0, "c": 0, "d": 1},
		"json_valid": {"a": 0, "b": 1, "c": 0, "d": 0},
		"language":   {"a": 1, "b": nan, "c": 0, "d": 0},
		"tokens":     {"a": 5, "b": 5, "c": nan, "d": 5},
	} {
		if got := values(o, "baseline", name); !same(got, want) || o.Why != "" {
			t.Errorf("%s: %v (%s), want %v", name, got, o.Why, want)
		}
	}
}

// TestLengthRules are the vectors of the rules of thumb, and the side of them on
// which they are silent.
func TestLengthRules(t *testing.T) {
	var rows strings.Builder
	for i := range 40 {
		fmt.Fprintf(&rows, "{\"id\": \"c%02d\", \"prompt\": \"%d\"}\n", i, i)
	}
	lengths := func(mean, swing int) model {
		return says(func(asked string) string {
			n := mean + swing
			if asked[len(asked)-1]%2 == 0 {
				n = mean - swing
			}
			return strings.Repeat("w ", n)
		})
	}
	conf := &ShapeConfig{Asking: asking(), Rules: []string{"length-stability", "length-sigma"}}
	for _, c := range []struct {
		name        string
		a, b        model
		want        [2]check.Severity
		first, then string
	}{
		{"the same", lengths(50, 10), lengths(50, 10), [2]check.Severity{check.Info, check.Info}, "means that differ by 0.0", "deviation of 0.0 tokens"},
		{"longer and wider", lengths(50, 10), lengths(56, 19), [2]check.Severity{check.Warning, check.Info}, "means that differ by 6.0", "deviation of 9.1 tokens"},
		{"wider alone", lengths(50, 10), lengths(55, 19), [2]check.Severity{check.Info, check.Info}, "means that differ by 5.0", "deviation of 9.1 tokens"},
		{"far wider", lengths(50, 10), lengths(50, 23), [2]check.Severity{check.Info, check.Warning}, "means that differ by 0.0", "deviation of 13.2 tokens"},
	} {
		o := run(t, Shape, conf, set(t, rows.String()), c.a, c.b)
		if len(o.Findings) != 2 {
			t.Fatalf("%s: findings %+v, notes %v; want one of each rule", c.name, o.Findings, o.Notes)
		}
		for i, part := range []string{c.first, c.then} {
			if f := o.Findings[i]; f.Severity != c.want[i] || !strings.Contains(f.Text, part) {
				t.Errorf("%s: %s %q; want %s and %q", c.name, f.Severity, f.Text, c.want[i], part)
			}
		}
	}
	if o := run(t, Shape, conf, set(t, rows.String()), lengths(50, 10)); len(o.Findings) != 0 || len(o.Notes) != 2 {
		t.Errorf("of one variant: %+v; want two notes that the rules need two", o.Findings)
	}
}

// TestPublicSets runs the checks on sets that people have, with a model that knows
// the answers, and one that says them badly.
func TestPublicSets(t *testing.T) {
	read := func(name string) *corpus.Set {
		f, err := os.Open("../../shared/data/" + name)
		if err != nil {
			t.Skip("public sets are not here: ", err)
		}
		defer f.Close()
		s, err := corpus.Read(name, f, "")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	gsm := read("gsm8k/gsm8k_test.jsonl")
	expect := make(map[string]string)
	for _, c := range gsm.Cases {
		expect[c.Messages[0].Content] = c.Expect
	}
	knows := says(func(asked string) string {
		return "First some steps: 3 * 4 = 12.\nSo the answer is **" + expect[asked] + "** units."
	})
	mute := says(func(string) string { return "Let me think about it." })
	o := run(t, Exact, &ExactConfig{Asking: asking(), Kind: "number"}, gsm, knows, mute)
	right, missing := 0, 0
	for _, r := range o.Records {
		if x, ok := r.Values["exact.right"]; !ok {
			missing++
		} else if x == 1 {
			right++
		}
	}
	if right != 1319 || missing != 1319 || o.Why != "" {
		t.Errorf("GSM8K: %d right and %d missing (%s); want 1,319 of each", right, missing, o.Why)
	}

	o = run(t, Instructions, &InstructionsConfig{asking()}, read("ifeval/input_data.jsonl"), mute)
	if len(o.Records) != 541 || o.Why != "" {
		t.Errorf("IFEval: %d records (%s), want 541", len(o.Records), o.Why)
	}
}

func TestCatalogue(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range Catalogue() {
		if c.Name == "" || strings.ToLower(c.Name) != c.Name || seen[c.Name] || c.Doc == "" || c.Config == nil || c.Run == nil {
			t.Errorf("check %+v is not whole, or its name is taken", c)
		}
		seen[c.Name] = true
		for _, v := range c.Values(c.Config()) {
			if v.Name == "" || v.Title == "" || v.Doc == "" {
				t.Errorf("%s: value %+v has no name, title or definition", c.Name, v)
			}
		}
	}
	if _, err := json.Marshal(Catalogue()[0].Values(nil)); err != nil {
		t.Error(err)
	}
}

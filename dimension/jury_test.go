package dimension

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/corpus"
)

// juried runs fidelity with a judge for each model name.
func juried(t *testing.T, criteria []string, judges map[string]check.Asker, jury []string, models ...model) *check.Outcome {
	t.Helper()
	rows, _ := subjects()
	conf := &FidelityConfig{Asking: asking(), Criteria: criteria}
	for _, name := range jury {
		conf.Judges = append(conf.Judges, check.Endpoint{URL: "http://judge/v1", Model: name})
	}
	c := check.Config{
		Checks: []check.Declared{{Check: Fidelity, Config: conf}}, Seed: 7, Sets: map[string]*corpus.Set{"set.jsonl": set(t, rows)},
		Judge: func(e check.Endpoint) (check.Asker, error) { return judges[e.Model], nil },
	}
	for i, m := range models {
		c.Variants = append(c.Variants, check.Variant{Name: []string{"baseline", "candidate"}[i], Asker: m})
	}
	out, err := check.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

func reported(o *check.Outcome, code string) (texts []string) {
	for _, f := range o.Findings {
		if f.Code == code {
			texts = append(texts, string(f.Severity)+": "+f.Text)
		}
	}
	return texts
}

// One bad juror of three moves no mark, and is named; three good ones are not.
func TestFidelityByJury(t *testing.T) {
	_, about := subjects()
	mixed := func(asked string) string {
		if len(asked)%2 == 0 {
			return about(asked) + " And that is so."
		}
		return strings.TrimSuffix(about(asked), " kg.") + "."
	}
	shorter := func(answers, menu []string) string {
		return longer([]string{answers[1], answers[0]}, menu)
	}
	broken := func(_, _ []string) string { return "!no JSON" }
	jury := []string{"one", "two", "three"}
	judges := map[string]check.Asker{"one": asJudge(longer), "two": asJudge(longer), "three": asJudge(longer)}
	good := juried(t, nil, judges, jury, says(about), says(mixed))
	if good.Why != "" || len(reported(good, "juror")) != 0 || len(reported(good, "jury")) != 1 {
		t.Fatalf("three of one mind: why %q, findings %+v", good.Why, good.Findings)
	}
	for name, third := range map[string]check.Asker{"contrary": asJudge(shorter), "broken": asJudge(broken)} {
		judges["three"] = third
		o := juried(t, nil, judges, jury, says(about), says(mixed))
		if o.Why != "" {
			t.Errorf("%s: %s", name, o.Why)
		}
		for id, want := range values(good, "candidate", "judge") {
			if got := values(o, "candidate", "judge")[id]; got != want {
				t.Errorf("%s: case %s is %v, without it %v", name, id, got, want)
			}
		}
		if got := reported(o, "juror"); len(got) != 1 || !strings.Contains(got[0], "three at http://judge/v1") {
			t.Errorf("%s: reported %q, %q", name, got, reported(o, "jury"))
		}
	}
	if got := good.Signatures[0].Estimator; !strings.Contains(got, "one at http://judge/v1, two at http://judge/v1, three at http://judge/v1") {
		t.Errorf("signed %q", got)
	}
	if n := len(good.Cost.ByEndpoint); n < 3 {
		t.Errorf("the bill has %d endpoints: %+v", n, good.Cost.ByEndpoint)
	}
	judges["two"] = asJudge(broken)
	if o := juried(t, nil, judges, jury, says(about), says(mixed)); !strings.Contains(o.Why, "none of 20 was scored") {
		t.Errorf("two broken jurors of three: %q", o.Why)
	}
}

// ends answers some questions and is then out of reach for good.
type ends struct {
	check.Asker
	left atomic.Int64
}

func (e *ends) Ask(ctx context.Context, q *check.Question) (*check.Answer, error) {
	if e.left.Add(-1) < 0 {
		return nil, errors.New("the asking ended")
	}
	return e.Asker.Ask(ctx, q)
}

// Where the asking ends, what was not marked has no number.
func TestFidelityThatEndsEarlyHasNoMarks(t *testing.T) {
	_, about := subjects()
	five := func(_, _ []string) string { return "5" }
	last := &ends{Asker: asJudge(five)}
	last.left.Store(6)
	judges := map[string]check.Asker{"one": asJudge(five), "two": asJudge(five), "three": last}
	o := juried(t, []string{"completeness"}, judges, []string{"one", "two", "three"}, says(about))
	if !strings.Contains(o.Why, "the asking ended") {
		t.Errorf("why: %q", o.Why)
	}
	marked := 0
	for id, got := range values(o, "baseline", "completeness") {
		switch {
		case got == 1:
			marked++
		case got == got:
			t.Errorf("case %s was not judged by all, and is %v", id, got)
		}
	}
	if marked != 6 {
		t.Errorf("%d cases are marked, want 6", marked)
	}
}

func TestFidelityWantsOneJudgeOrAJury(t *testing.T) {
	const one, two, three = `{url: "http://h/v1", model: a}`, `{url: "http://h/v1", model: b}`, `{url: "http://h/v1", model: c}`
	for text, want := range map[string]string{
		"": "nobody judges",
		"judge: " + one + "\njudges: [" + one + "]":                                              "a judge and a jury",
		"judges: [" + one + ", " + two + "]":                                                     "2 judges",
		"judges: [" + one + ", " + two + ", " + one + "]":                                        "on the jury twice",
		"judges: [" + one + ", " + two + ", " + three + "]\ncalibration: labels.csv":             "of one judge",
		"judge: " + one + "\ncalibrates: completeness":                                           `calibrates names "completeness"`,
		"judges: [" + one + ", " + two + ", " + three + "]":                                      "",
		"judge: " + one + "\ncriteria: [completeness]\ncalibrates: completeness\ncalibration: x": "",
	} {
		err := config.Decode("suite.yaml", []byte("set: set.jsonl\n"+text+"\n"), new(FidelityConfig))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s:\n%v, want %q", text, err, want)
		}
	}
	conf := &FidelityConfig{Judges: []check.Endpoint{{URL: "x"}, {URL: "y"}}}
	if got := check.Endpoints(conf); !slices.Equal(got, conf.Judges) {
		t.Errorf("the endpoints of a jury are %v", got)
	}
}

package dimension

import (
	"math"
	"strings"
	"testing"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/record"
)

func TestReference(t *testing.T) {
	rows, about := subjects()
	worse := func(asked string) string {
		return strings.Replace(about(asked), "Everybody knows", "It is said that", 1)
	}
	o := run(t, Reference, &ReferenceConfig{asking()}, set(t, rows), says(about), says(worse))
	if o.Why != "" || len(o.Findings) != 3 {
		t.Fatalf("%q, findings %+v; want one of each metric", o.Why, o.Findings)
	}
	for _, name := range []string{"bleu", "chrf", "rouge_l"} {
		for id, x := range values(o, "baseline", name) {
			if math.Abs(x-100) > 1e-9 {
				t.Errorf("%s of the reference itself, %s: %v", name, id, x)
			}
		}
		for id, x := range values(o, "candidate", name) {
			if x < 40 || x > 95 {
				t.Errorf("%s of other words, %s: %v", name, id, x)
			}
		}
	}
	for _, f := range o.Findings {
		if f.Figures["baseline"] <= f.Figures["candidate"] || f.Figures["p"] > .01 || !strings.Contains(f.Text, "version:") {
			t.Errorf("finding %+v; want the candidate lower, p small and a signature", f)
		}
	}
}

// TestReferenceInChinese is scored by characters: words of ASCII letters would give
// nothing, and equal texts would score 0.
func TestReferenceInChinese(t *testing.T) {
	o := run(t, Reference, &ReferenceConfig{asking()}, set(t, `{"id": "a", "prompt": "问", "expect": "今天天气很好，我们去公园。"}`), says(func(string) string { return "今天天气很好，我们去公园。" }))
	for _, name := range []string{"bleu", "chrf", "rouge_l"} {
		if got := values(o, "baseline", name)["a"]; math.Abs(got-100) > 1e-9 {
			t.Errorf("%s: %v (%s), want 100", name, got, o.Why)
		}
	}
}

func TestReferenceIsMissing(t *testing.T) {
	fails := model(func(*check.Question) *check.Answer { return &check.Answer{Outcome: record.HTTP4xx, Status: 400} })
	rows, about := subjects()
	o := run(t, Reference, &ReferenceConfig{asking()}, set(t, rows), says(about), fails)
	if len(o.Findings) != 0 || o.Signatures[0].Missing != 20 {
		t.Errorf("a candidate without answers: %+v, findings %+v; want 20 missing and no comparison", o.Signatures[0], o.Findings)
	}
	o = run(t, Reference, &ReferenceConfig{asking()}, set(t, `{"id": "a", "prompt": "p"}`), says(about))
	if !strings.Contains(o.Why, "case a of set.jsonl expects nothing") {
		t.Errorf("%q; want the case named", o.Why)
	}
}

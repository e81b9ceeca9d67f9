package dimension

import (
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

// scorer cuts a prompt at its spaces and scores each piece by a rule.
func scorer(rule func(prompt string, at int, piece string) (float64, []check.Alternative)) model {
	return model(func(q *check.Question) *check.Answer {
		a := &check.Answer{Outcome: record.OK, Finish: "length"}
		at := 0
		for _, piece := range strings.SplitAfter(q.Prompt, " ") {
			if p, top := rule(q.Prompt, at, piece); at > 0 {
				a.Scored = append(a.Scored, check.Scored{At: at, Token: check.Token{Text: piece, Logprob: p, Top: top}})
			}
			at += len(piece)
		}
		return a
	})
}

var scores = check.Capabilities{check.CapPromptLogprobs: {Standing: check.Proven}}

func likelihoods(t *testing.T, can check.Capabilities, salt string, s *corpus.Set, change func(*LikelihoodConfig), models ...model) *check.Outcome {
	t.Helper()
	conf := Likelihood.Config().(*LikelihoodConfig)
	change(conf)
	c := check.Config{Checks: []check.Declared{{Check: Likelihood, Config: conf}}, Seed: 3, Salt: salt, Sets: map[string]*corpus.Set{"set.jsonl": s}}
	for i, m := range models {
		c.Variants = append(c.Variants, check.Variant{Name: []string{"baseline", "candidate"}[i], Asker: m, Can: can})
	}
	out, err := check.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

func flatScores(p float64) model {
	return scorer(func(string, int, string) (float64, []check.Alternative) {
		return p, []check.Alternative{{Text: "a", Logprob: math.Log(0.6)}, {Text: "b", Logprob: math.Log(0.3)}}
	})
}

func TestLikelihoodNeedsScores(t *testing.T) {
	nothing := func(*LikelihoodConfig) {}
	if o := likelihoods(t, nil, "", nil, nothing, flatScores(-1), flatScores(-1)); !strings.Contains(o.Why, string(check.CapPromptLogprobs)) || len(o.Records) > 0 {
		t.Errorf("without the capability: %q, %d records", o.Why, len(o.Records))
	}
	// Proven, and then not given: every number is missing, and none is 0.
	silent := model(func(*check.Question) *check.Answer { return &check.Answer{Outcome: record.OK} })
	o := likelihoods(t, scores, "", nil, nothing, silent, silent)
	for _, r := range o.Records {
		for name := range r.Values {
			if !strings.HasSuffix(name, ".na") {
				t.Fatalf("a record without scores has %s: %v", name, r.Values)
			}
		}
	}
	if len(o.Records) == 0 || len(o.Findings) > 0 || len(o.Estimates) != 2 || o.Estimates[0].Number != nil || len(o.Notes) < 2 {
		t.Errorf("%d records, findings %+v, estimates %+v, notes %q", len(o.Records), o.Findings, o.Estimates, o.Notes)
	}
}

// The numbers of documents by hand: a variant that gives each token half the
// probability is harder by ln 2, and lists that are equal have a KL of 0.
func TestDocumentsByHand(t *testing.T) {
	s := set(t, `{"id":"a","prompt":"one two three four five six"}
{"id":"b","prompt":"seven eight nine ten eleven twelve"}`)
	o := likelihoods(t, scores, "s417", s, func(c *LikelihoodConfig) {
		c.Parts, c.Set.File = []string{"documents"}, "set.jsonl"
	}, flatScores(-1), flatScores(-1-math.Ln2))
	for _, r := range o.Records {
		want := map[string]float64{"likelihood.nll": 1, "likelihood.kl.na": 1, "likelihood.same_top.na": 1}
		if r.Variant == "candidate" {
			want = map[string]float64{"likelihood.nll": 1 + math.Ln2, "likelihood.kl": 0, "likelihood.same_top": 1}
		}
		for name, x := range want {
			if got, ok := r.Values[name]; !ok || math.Abs(got-x) > 1e-9 {
				t.Errorf("%s, %s: %s is %v, want %v", r.Variant, r.Case, name, got, x)
			}
		}
	}
	if len(o.Records) != 4 {
		t.Errorf("%d records", len(o.Records))
	}
}

// The salt of a run stands before every text, so that no cache of another run has it.
func TestTextsAreSalted(t *testing.T) {
	prompts := func(salt string) (out map[string]bool) {
		out = make(map[string]bool)
		var mu sync.Mutex
		m := model(func(q *check.Question) *check.Answer {
			if !q.Score || q.MaxTokens != 1 {
				t.Errorf("%+v asks for no scores", q)
			}
			mu.Lock()
			out[q.Prompt] = true
			mu.Unlock()
			return &check.Answer{Outcome: record.OK}
		})
		likelihoods(t, scores, salt, nil, func(c *LikelihoodConfig) { c.Parts, c.Passages = []string{"copy"}, 10 }, m)
		return out
	}
	a, b := prompts("s1"), prompts("s2")
	for p := range a {
		if !strings.HasPrefix(p, "[s1 passage-") || b[p] {
			t.Errorf("the prompt begins %q", p[:30])
		}
	}
	if len(a) != 30 || len(b) != 30 {
		t.Errorf("%d and %d prompts", len(a), len(b))
	}
}

func TestPassagesComeAgain(t *testing.T) {
	o := likelihoods(t, scores, "", nil, func(c *LikelihoodConfig) { c.Parts, c.Passages = []string{"copy"}, 10 }, scorer(func(prompt string, at int, piece string) (float64, []check.Alternative) {
		if at >= 60 && strings.Contains(prompt[:at-1], prompt[at-60:at]) {
			return -0.5, nil // it has just read what came before
		}
		return -5, nil
	}))
	if len(o.Findings) > 0 || len(o.Estimates) != 1 || o.Estimates[0].Number == nil || *o.Estimates[0].Number < 1500 {
		t.Errorf("findings %+v, estimates %+v", o.Findings, o.Estimates)
	}
	for _, r := range o.Records {
		if g := r.Values["likelihood.copied"]; g < 3 || g > 4.5 {
			t.Errorf("%s gains %v", r.Case, g)
		}
	}
	if len(o.Figures) != 1 || len(o.Figures[0].Curves) != 1 || len(o.Figures[0].Curves[0].Points) != 3 {
		t.Errorf("%+v", o.Figures)
	}
}

func TestWindowsCoverTheText(t *testing.T) {
	text := strings.Repeat("some words of a text that is long. ", 80)
	ws := textWindows(text)
	if len(ws) != 7 || ws[0].from != 0 || ws[6].to != len(text) {
		t.Fatalf("%+v", ws)
	}
	for i, w := range ws {
		if !(w.from < w.compared && w.compared < w.to) || i > 0 && w.compared != ws[i-1].to {
			t.Errorf("window %d is %+v after %+v", i, w, ws[max(i-1, 0)])
		}
	}
	if ws := textWindows("ab"); len(ws) > 0 {
		t.Errorf("%+v of two letters", ws)
	}
}

func TestLikelihoodConfigIsChecked(t *testing.T) {
	for text, want := range map[string]string{
		"distances: [128, 64]":  "rise",
		"distances: [50, 500]":  "rise",
		"distances: [500]":      "one distance",
		"parts: [all]":          "documents",
		"documents: 3":          "10",
		"distances: [200, 300]": "",
	} {
		conf := Likelihood.Config()
		err := config.Decode("suite.yaml", []byte(text+"\n"), conf)
		if got := ""; err != nil {
			got = err.Error()
			if want == "" || !strings.Contains(got, want) {
				t.Errorf("%s: %s", text, got)
			}
		} else if want != "" {
			t.Errorf("%s is taken", text)
		}
	}
	all, one := Likelihood.Config().(*LikelihoodConfig), Likelihood.Config().(*LikelihoodConfig)
	one.Parts = []string{"long"}
	names := func(c *LikelihoodConfig) (out []string) {
		for _, v := range Likelihood.Values(c) {
			out = append(out, v.Name)
		}
		return out
	}
	if diff := cmp.Diff([]string{"nll", "kl", "same_top", "copied", "excess", "reach"}, names(all)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"excess"}, names(one)); diff != "" {
		t.Error(diff)
	}
}

package dimension

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/embed"
	"github.com/assay-llm/assay/record"
)

// subjects makes a set of cases with something of its own to say about each.
func subjects() (rows string, about func(asked string) string) {
	words := strings.Fields("apples bridges clouds dragons engines forests glaciers harbours islands jackets kettles lanterns mountains needles orchards pianos quilts rivers saddles tunnels")
	n := len(words)
	text := func(i int) string {
		return fmt.Sprintf("Everybody knows %s near %s under %s beside %s weigh %d kg.", words[i], words[(i*3+5)%n], words[(i*7+2)%n], words[(i*9+11)%n], 10+i)
	}
	var b strings.Builder
	for i, w := range words {
		fmt.Fprintf(&b, "{\"id\": \"c%02d\", \"prompt\": \"%s\", \"expect\": \"%s\"}\n", i, w, text(i))
	}
	return b.String(), func(asked string) string {
		i := slices.Index(words, asked)
		if i < 0 {
			return ""
		}
		return text(i)
	}
}

func TestSimilarity(t *testing.T) {
	rows, about := subjects()
	conf := func() *SimilarityConfig {
		return &SimilarityConfig{Asking: asking(), Embedding: Embedding{Hashing: true}}
	}
	edit := func(from, to string) func(string) string {
		return func(asked string) string { return strings.ReplaceAll(about(asked), from, to) }
	}
	for _, c := range []struct {
		name               string
		candidate          func(string) string
		score, facts, same float64 // of every case: exactly 1, or less
	}{
		{"the same", about, 1, 1, 1},
		{"another number", edit("1", "2"), 0, 0, 0},
		{"negated", edit("weigh", "do not weigh"), 0, 0, 0},
		{"in grams", edit(" kg", "000 g"), 0, 1, 0},
	} {
		o := run(t, Similarity, conf(), set(t, rows), says(about), says(c.candidate))
		if o.Why != "" {
			t.Fatalf("%s: %s", c.name, o.Why)
		}
		got := values(o, "candidate", "score")["c01"] // eleven: the edit of its 1s changes it
		facts, same := values(o, "candidate", "facts")["c01"], values(o, "candidate", "same")["c01"]
		if c.score == 1 != (got > 1-1e-9) || facts != c.facts || c.same == 1 != (same == 1) && c.same == 1 {
			t.Errorf("%s: score %v, facts %v, same %v; want %v, %v, %v", c.name, got, facts, same, c.score, c.facts, c.same)
		}
		if base := values(o, "baseline", "score")["c01"]; !math.IsNaN(base) || o.Signatures[0].Missing != 0 {
			t.Errorf("%s: the baseline has %v and %d are missing; it has none by definition", c.name, base, o.Signatures[0].Missing)
		}
		if c.facts == 0 && (len(o.Findings) != 1 || o.Findings[0].Code != "facts_differ" || len(o.Findings[0].Bodies) != 2) {
			t.Errorf("%s: findings %+v; want the pair that differs most", c.name, o.Findings)
		}
	}
}

// TestSimilarityToItself gives the baseline the floor of its own repetitions.
func TestSimilarityToItself(t *testing.T) {
	rows, about := subjects()
	wavers := model(func(q *check.Question) *check.Answer {
		text := about(q.Messages[0].Content)
		if q.Replicate%2 == 1 {
			text = strings.Replace(text, "Everybody knows", "It is said", 1)
		}
		return &check.Answer{Outcome: record.OK, Text: text, Finish: "stop"}
	})
	conf := &SimilarityConfig{Asking: asking(), Embedding: Embedding{Hashing: true}}
	conf.Replicates = 2
	o := run(t, Similarity, conf, set(t, rows), wavers, wavers)
	if o.Why != "" {
		t.Fatal(o.Why)
	}
	for _, name := range []string{"baseline", "candidate"} {
		for id, x := range values(o, name, "score") {
			if !(x > .3 && x < .99) {
				t.Errorf("%s, %s: score %v; want that of texts in other words", name, id, x)
			}
		}
	}
}

func TestSimilarityIsInconclusive(t *testing.T) {
	rows, about := subjects()
	fails := model(func(*check.Question) *check.Answer { return &check.Answer{Outcome: record.HTTP4xx, Status: 400} })
	conf := &SimilarityConfig{Asking: asking(), Embedding: Embedding{Hashing: true}}
	for _, c := range []struct {
		name   string
		models []model
		want   string
	}{
		{"no second variant", []model{says(about)}, "nothing to compare"},
		{"no answers", []model{fails, fails}, "too few to tell how alike"},
		{"the same text for all", []model{says(func(string) string { return "No." }), says(about)}, "too few to tell how alike"},
	} {
		if o := run(t, Similarity, conf, set(t, rows), c.models...); !strings.Contains(o.Why, c.want) {
			t.Errorf("%s: %q; want %q", c.name, o.Why, c.want)
		}
	}
	o := run(t, Similarity, conf, set(t, rows), says(about), fails)
	for id, x := range values(o, "candidate", "score") {
		if !math.IsNaN(x) {
			t.Errorf("a candidate without answers has %v for %s", x, id)
		}
	}
	if s := o.Signatures[0]; s.N != 20 || s.Missing != 20 {
		t.Errorf("a candidate without answers: %+v; want 20 of 20 missing", s)
	}
	conf.Against = "expected"
	o = run(t, Similarity, conf, set(t, rows), says(about))
	if got := values(o, "baseline", "same"); o.Why != "" || got["c07"] != 1 {
		t.Errorf("against what is expected: %v (%s); want all the same", got, o.Why)
	}
	missing := &SimilarityConfig{Asking: asking(), Embedding: Embedding{Weights: t.TempDir()}}
	if o := run(t, Similarity, missing, set(t, rows), says(about), says(about)); !strings.Contains(o.Why, "loading the embedder") {
		t.Errorf("without weights: %q", o.Why)
	}
}

// Two texts without any facts agree on nothing, and are no evidence that facts are kept.
func TestSimilarityOfTextsWithoutFacts(t *testing.T) {
	rows, about := subjects()
	plain := func(asked string) string { return "people like " + asked }
	conf := &SimilarityConfig{Asking: asking(), Embedding: Embedding{Hashing: true}, Against: "expected"}
	for name, tc := range map[string]struct {
		expect, say func(asked string) string
		facts       float64
		exempt      bool
	}{
		"none":          {plain, func(asked string) string { return plain(asked) + " very much" }, nan, true},
		"one negates":   {plain, func(asked string) string { return "people do not like " + asked }, 0, false},
		"facts":         {about, about, 1, false},
		"facts dropped": {about, plain, 0, false},
	} {
		s := set(t, rows)
		for i := range s.Cases {
			s.Cases[i].Expect = tc.expect(s.Cases[i].Prompt)
		}
		o := run(t, Similarity, conf, s, says(tc.say))
		if o.Why != "" {
			t.Fatal(o.Why)
		}
		for _, r := range o.Records {
			_, exempt := r.Values[record.Exempt("similarity.facts")]
			if x, ok := r.Values["similarity.facts"]; exempt != tc.exempt || ok == tc.exempt || ok && x != tc.facts {
				t.Errorf("%s, %s: %v, exempt %v", name, r.Case, x, exempt)
			}
		}
	}
}

// What an embedder makes of the probes stands in the signature of what rests on it, and
// tells one embedder from another.
func TestSimilarityIsSignedByItsEmbedder(t *testing.T) {
	rows, about := subjects()
	signs := func(seed bool) []record.Signature {
		conf := &SimilarityConfig{Asking: asking(), Embedding: Embedding{Hashing: true}, Against: "expected"}
		if seed {
			conf = &SimilarityConfig{Asking: asking(), Against: "expected", Embedding: Embedding{Embedder: check.Endpoint{URL: "http://e/v1", Model: "e"}}}
		}
		c := check.Config{
			Checks: []check.Declared{{Check: Similarity, Config: conf}}, Seed: 7, Sets: map[string]*corpus.Set{"set.jsonl": set(t, rows)},
			Embedder: func(check.Endpoint) (check.Embedder, error) { return embed.Hashing(99), nil },
			Variants: []check.Variant{{Name: "baseline", Asker: says(about)}},
		}
		out, err := check.Run(t.Context(), c)
		if err != nil || out[0].Why != "" {
			t.Fatal(err, out[0].Why)
		}
		return out[0].Signatures
	}
	one, again, other := signs(false), signs(false), signs(true)
	for i, name := range []string{"score", "facts", "same"} {
		if has := one[i].Probe != ""; has != (name != "facts") {
			t.Errorf("%s has a probe: %v", name, has)
		}
		if why := one[i].Differs(&again[i]); why != "" {
			t.Errorf("%s of the same embedder: %s", name, why)
		}
	}
	other[0].Estimator, other[0].Judge = one[0].Estimator, one[0].Judge
	if why := one[0].Differs(&other[0]); !strings.Contains(why, "the embedder") {
		t.Errorf("another embedder: %q", why)
	}
}

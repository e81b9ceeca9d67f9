package dimension

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

// die answers with one of three letters by chance, equal for equal questions and
// replicates.
func die(seed uint64, sure float64) model {
	return func(q *check.Question) *check.Answer {
		h := fnv.New64a()
		text := q.Messages[len(q.Messages)-1].Content
		_, _ = fmt.Fprint(h, text, "#", q.Replicate)
		r := rand.New(rand.NewPCG(seed, h.Sum64()))
		said := "A"
		if r.Float64() > sure {
			said = string("BC"[r.IntN(2)])
		}
		return &check.Answer{Outcome: record.OK, Text: said, Finish: "stop"}
	}
}

func driftOf(o *check.Outcome, variant, family string) (r driftRow) {
	rows, _ := o.Data.([]driftRow)
	for _, r := range rows {
		if r.Variant == variant && r.Family == family {
			return r
		}
	}
	return driftRow{}
}

// TestDriftIsSilentOnAModelBesideItself holds that excess drift is 0 on average, that
// its interval contains 0, and that the published composite is not.
func TestDriftIsSilentOnAModelBesideItself(t *testing.T) {
	warned, excess, composite, rows := 0, 0.0, 0.0, 0
	const runs = 15
	for seed := range uint64(runs) {
		conf := &DriftConfig{Samples: 5, Tolerated: 0.05}
		conf.Families = []string{"synonym", "politeness"}
		o := run(t, Drift, conf, nil, die(seed, 0.7))
		if o.Why != "" {
			t.Fatal(o.Why)
		}
		for _, f := range o.Findings {
			if f.Severity != check.Info {
				warned++
			}
		}
		list, _ := o.Data.([]driftRow)
		for _, r := range list {
			excess, composite, rows = excess+r.Excess, composite+r.Composite, rows+1
			if r.e.Estimable() && (r.e.Lo > 0.1 || r.e.Hi < -0.1) {
				t.Errorf("seed %d, %s of %s: excess %s", seed, r.Family, r.Variant, withBounds(r.e))
			}
		}
	}
	if mean := excess / float64(rows); math.Abs(mean) > 0.01 {
		t.Errorf("the mean excess of %d families is %.4f; want about 0", rows, mean)
	}
	if mean := composite / float64(rows); mean < 0.12 {
		t.Errorf("1 − cosine + KL of a model and itself is %.3f with 5 samples; it should be far from 0", mean)
	} else {
		t.Logf("1 − cosine + KL of a model and itself: %.3f; mean excess %.4f", mean, excess/float64(rows))
	}
	if warned > 1 {
		t.Errorf("%d warnings in %d runs of models that nothing moves", warned, runs)
	}
}

// TestDriftOfASet has a model that refuses whoever says please, of a set with a
// policy line.
func TestDriftOfASet(t *testing.T) {
	var rows strings.Builder
	for i := range 12 {
		fmt.Fprintf(&rows, "{\"id\": \"c%02d\", \"prompt\": \"Please tell me about parcel %d.\"}\n", i, i)
	}
	m := says(func(asked string) string {
		if strings.Contains(strings.ToLower(asked), "please") && !strings.Contains(asked, "hank") {
			return "allow"
		}
		return "deny"
	})
	conf := &DriftConfig{Samples: 4, Tolerated: 0.05, Permit: []string{"allow"}, Refuse: []string{"deny"}}
	conf.Set, conf.Families, conf.Options = check.SetRef{File: "set.jsonl"}, []string{"politeness", "case"}, []string{"allow", "deny"}
	o := run(t, Drift, conf, set(t, rows.String()), m)
	polite, small := driftOf(o, "baseline", "politeness"), driftOf(o, "baseline", "case")
	if o.Why != "" || polite.Conflicts < 6 || polite.P > 0.01 || polite.Floor != 0 || small.Conflicts != 0 || small.Excess != 0 {
		t.Errorf("%s: politeness %+v, case %+v; want conflicts in most cases, and none", o.Why, polite, small)
	}
	if codes := warnings(o); codes["value_conflict"] != 1 || len(codes) != 1 {
		t.Errorf("warnings %v; want one value_conflict", codes)
	}
	for _, r := range o.Records {
		_, has := r.Values["drift.excess"]
		_, none := r.Values[record.Exempt("drift.excess")]
		first := r.Labels["family"] != "clean" && r.Labels["family"] != "again" && r.Labels["replicate"] == ""
		if has != first || none == first {
			t.Fatalf("record %s %v has excess %v, exempt %v", r.Case, r.Labels, has, none)
		}
	}

	conf.Options, conf.Permit, conf.Refuse = nil, nil, nil // by behaviour
	o = run(t, Drift, conf, set(t, rows.String()), says(func(asked string) string {
		if strings.HasPrefix(asked, "Please") {
			return "Sure, here is what I know about the parcel: it left on Monday and arrives tomorrow."
		}
		return "I'm sorry, but I cannot help with that request."
	}))
	if r := driftOf(o, "baseline", "politeness"); o.Why != "" || r.Conflicts < 3 || r.Lined != 12 {
		t.Errorf("%s: %+v; want refusals and compliance told apart", o.Why, r)
	}
}

func warnings(o *check.Outcome) map[string]int {
	codes := make(map[string]int)
	for _, f := range o.Findings {
		if f.Severity != check.Info {
			codes[f.Code]++
		}
	}
	return codes
}

// TestDriftReadsProbabilities has a model whose first token leans the other way when
// a text has a typing error.
func TestDriftReadsProbabilities(t *testing.T) {
	var mu sync.Mutex
	asked := 0
	loud := func(mass float64) model {
		return func(q *check.Question) *check.Answer {
			mu.Lock()
			asked++
			mu.Unlock()
			p := 0.9
			if strings.Contains(q.Messages[len(q.Messages)-1].Content, "hank") {
				p = 0.2
			}
			a := &check.Answer{Outcome: record.OK, Text: "A", Finish: "length"}
			if q.TopLogprobs > 0 {
				a.Tokens = []check.Token{{Text: " A", Top: []check.Alternative{{Text: " A", Logprob: math.Log(p * mass)}, {Text: "b", Logprob: math.Log((1 - p) * mass)}, {Text: "Well", Logprob: math.Log(1 - mass)}}}}
			}
			return a
		}
	}
	try := func(mass float64) *check.Outcome {
		asked = 0
		conf := &DriftConfig{Samples: 3, Tolerated: 0.05}
		conf.Cases, conf.Families = 20, []string{"politeness"}
		all := check.Config{
			Checks: []check.Declared{{Check: Drift, Config: conf}}, Seed: 7, Sets: map[string]*corpus.Set{},
			Variants: []check.Variant{{Name: "baseline", Asker: loud(mass), Can: check.Capabilities{check.CapLogprobs: {Standing: check.Proven, Level: 5}}}},
		}
		if f, err := check.Plan(t.Context(), all); err != nil || f.Requests != 60 || asked != 0 {
			t.Errorf("the plan has %d requests and asked %d (%v); want 60 and none", f.Requests, asked, err)
		}
		out, err := check.Run(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		return out[0]
	}
	o := try(0.95)
	r := driftOf(o, "baseline", "politeness")
	if o.Why != "" || asked != 60 || r.Cases != 20 || r.Floor > 1e-3 || r.Excess < 0.1 {
		t.Errorf("%s: %d requests, %+v; want three of each of 20 cases, no floor, and drift", o.Why, asked, r)
	}
	o = try(0.3)
	if want := 20 + 20*3*3; o.Why != "" || asked != want || !strings.Contains(strings.Join(o.Notes, " "), "answers are sampled") {
		t.Errorf("with little probability on the options: %s, %d requests, %v; want %d, and a note", o.Why, asked, o.Notes, want)
	}
}

func TestDriftWithoutAnswersProvesNothing(t *testing.T) {
	flaky := model(func(q *check.Question) *check.Answer {
		if q.Replicate == 1 {
			return &check.Answer{Outcome: record.HTTP4xx, Status: 400}
		}
		return &check.Answer{Outcome: record.OK, Text: "A", Finish: "stop"}
	})
	conf := &DriftConfig{Samples: 3}
	conf.Cases = 4
	o := run(t, Drift, conf, nil, flaky)
	if o.Why != errNothingDrifts.Error() {
		t.Errorf("Why %q; want that no case was answered in full", o.Why)
	}
	for _, r := range o.Records {
		if _, ok := r.Values["drift.excess"]; ok {
			t.Fatalf("a case that lacks answers has a number: %v", r.Values)
		}
	}
}

func TestCompositeScoreStandsBesideItsFloor(t *testing.T) {
	conf := &DriftConfig{Samples: 5, Score: "cosine-kl"}
	conf.Cases, conf.Families = 8, []string{"politeness"}
	o := run(t, Drift, conf, nil, die(1, 0.6))
	r := driftOf(o, "baseline", "politeness")
	if o.Why != "" || r.Drift != r.Composite || r.Floor != r.FloorComposite || !(r.Floor > 0) {
		t.Errorf("%s: %+v; want drift and floor to be of 1 − cosine + KL", o.Why, r)
	}
}

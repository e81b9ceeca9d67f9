package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
)

// fake is an endpoint that answers by a function and counts what it is asked.
type fake struct {
	name   string
	took   time.Duration
	answer func(q *Question, times int) *Answer // times that the question came before

	mu    sync.Mutex
	asked map[string]int
	log   *[]string
	now   int
	most  int
}

func (f *fake) Ask(ctx context.Context, q *Question) (*Answer, error) {
	f.mu.Lock()
	key := fmt.Sprint(q.Prompt, "#", q.Replicate)
	if f.asked == nil {
		f.asked = make(map[string]int)
	}
	times := f.asked[key]
	f.asked[key]++
	if f.log != nil {
		*f.log = append(*f.log, f.name+" "+key)
	}
	f.now++
	f.most = max(f.most, f.now)
	f.mu.Unlock()
	defer func() { f.mu.Lock(); f.now--; f.mu.Unlock() }()
	select {
	case <-time.After(f.took):
	case <-ctx.Done():
		return &Answer{Outcome: record.Interrupted}, ctx.Err()
	}
	return f.answer(q, times), nil
}

func says(text string) *Answer {
	return &Answer{Outcome: record.OK, Text: text, Finish: "stop", Prompt: record.Tokens(10), Output: record.Tokens(2)}
}

func echo(q *Question, _ int) *Answer { return says(q.Prompt) }

func shots(n int) (out []Shot) {
	for i := range n {
		out = append(out, Shot{Case: fmt.Sprintf("c%03d", i), Question: Question{Prompt: fmt.Sprintf("p%03d", i)}})
	}
	return out
}

// length writes the length of each answer.
func length(n int) *Check {
	return &Check{
		Name: "length", Values: func(any) []Value { return []Value{{Name: "bytes"}} },
		Run: func(ctx context.Context, p *Pass) error {
			trials, err := p.Ask(ctx, shots(n))
			for _, t := range trials {
				for i, a := range t.Answers {
					if a.Outcome == record.OK {
						t.Set(i, "bytes", float64(len(a.Text)))
					}
				}
			}
			return err
		},
	}
}

func pair(base, cand Asker) []Variant {
	return []Variant{{Name: "baseline", Asker: base}, {Name: "candidate", Asker: cand}}
}

func TestEveryShotIsOneRecordOfEachVariant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cand := &fake{answer: func(q *Question, _ int) *Answer {
			if q.Prompt == "p001" {
				return &Answer{Outcome: record.HTTP4xx, Status: 400, Detail: "no"}
			}
			return says("longer " + q.Prompt)
		}}
		out, err := Run(t.Context(), Config{Checks: []Declared{{Check: length(3)}}, Variants: pair(&fake{answer: echo}, cand)})
		if err != nil {
			t.Fatal(err)
		}
		o := out[0]
		if o.Why != "" || len(o.Records) != 6 {
			t.Fatalf("Why %q, %d records; want none and 6", o.Why, len(o.Records))
		}
		for i, r := range o.Records {
			want := record.Record{Shot: int64(i / 2), Variant: []string{"baseline", "candidate"}[i%2], Workload: "length", Case: fmt.Sprintf("c%03d", i/2)}
			if r.Shot != want.Shot || r.Variant != want.Variant || r.Workload != want.Workload || r.Case != want.Case || r.Session != want.Case || r.Due.Set() {
				t.Errorf("record %d is %+v; want %+v", i, r, want)
			}
		}
		if _, ok := o.Records[3].Values["length.bytes"]; ok || o.Records[3].Outcome != record.HTTP4xx {
			t.Errorf("the refused case has the outcome %s and values %v; want http_4xx and none", o.Records[3].Outcome, o.Records[3].Values)
		}
		want := []Signature{{Value: "length.bytes", Cluster: "case", N: 6, Missing: 1}}
		if diff := cmp.Diff(want, o.Signatures); diff != "" {
			t.Errorf("signatures (-want +got):\n%s", diff)
		}
	})
}

func TestVariantsAreAskedOneRightAfterTheOtherInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		var mu sync.Mutex
		both := func(name string) Asker {
			return ask(func(_ context.Context, q *Question) (*Answer, error) {
				mu.Lock()
				defer mu.Unlock()
				log = append(log, name+" "+q.Prompt)
				return says("x"), nil
			})
		}
		c := Config{Checks: []Declared{{Check: length(200)}}, Variants: pair(both("a"), both("b")), Overall: 1, Seed: 7}
		if _, err := Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		first := map[string]int{}
		for i := 0; i < len(log); i += 2 {
			if log[i][2:] != log[i+1][2:] {
				t.Fatalf("%s was followed by %s", log[i], log[i+1])
			}
			first[log[i][:1]]++
		}
		if first["a"] < 70 || first["b"] < 70 {
			t.Errorf("of 200 cases the baseline was first in %d and the candidate in %d; want about half", first["a"], first["b"])
		}
	})
}

type ask func(context.Context, *Question) (*Answer, error)

func (f ask) Ask(ctx context.Context, q *Question) (*Answer, error) { return f(ctx, q) }

func TestReplicatesAreAskedAnewAndEqualQuestionsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		var mu sync.Mutex
		stochastic := ask(func(context.Context, *Question) (*Answer, error) {
			mu.Lock()
			defer mu.Unlock()
			n++
			return says(strings.Repeat("x", n)), nil
		})
		spread := map[string]bool{}
		repeat := &Check{Name: "repeat", Run: func(ctx context.Context, p *Pass) error {
			var list []Shot
			for i := range 5 {
				list = append(list, Shot{Case: "c", Question: Question{Prompt: "same", Replicate: i}})
			}
			trials, err := p.Ask(ctx, list)
			for _, t := range trials {
				spread[t.Answers[0].Text] = true
			}
			return err
		}}
		again := &Check{Name: "again", Run: func(ctx context.Context, p *Pass) error {
			_, err := p.Ask(ctx, []Shot{{Case: "c", Question: Question{Prompt: "same", Replicate: 3}}})
			return err
		}}
		out, err := Run(t.Context(), Config{Checks: []Declared{{Check: repeat}, {Check: again}}, Variants: []Variant{{Name: "v", Asker: stochastic}}})
		if err != nil {
			t.Fatal(err)
		}
		if len(spread) != 5 || n != 5 {
			t.Errorf("5 replicates gave %d answers with %d requests; want 5 and 5", len(spread), n)
		}
		if c := out[1].Cost; c.Requests != 0 || c.Reused != 1 || c.Tokens() != 0 {
			t.Errorf("the question that was asked before cost %+v; want nothing, reused once", c.Spending)
		}
	})
}

func TestTransportIsTriedAgainAndBadAnswersAreNot(t *testing.T) {
	for _, tc := range []struct {
		answer Answer
		want   int // requests
	}{
		{Answer{Outcome: record.ResetMid}, 3},
		{Answer{Outcome: record.HTTP5xx, Status: 503}, 3},
		{Answer{Outcome: record.HTTP4xx, Status: 429}, 3},
		{Answer{Outcome: record.HTTP4xx, Status: 400}, 1},
		{Answer{Outcome: record.EmptyOutput}, 1},
		{Answer{Outcome: record.Malformed}, 1},
		{Answer{Outcome: record.OK, Text: "wrong"}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{answer: func(*Question, int) *Answer { a := tc.answer; return &a }}
			out, err := Run(t.Context(), Config{Checks: []Declared{{Check: length(1)}}, Variants: []Variant{{Name: "v", Asker: f}}})
			if err != nil {
				t.Fatal(err)
			}
			if got := f.asked["p000#0"]; got != tc.want || out[0].Cost.Requests != int64(tc.want) {
				t.Errorf("%s %d was asked %d times, %d in the bill; want %d", tc.answer.Outcome, tc.answer.Status, got, out[0].Cost.Requests, tc.want)
			}
		})
	}
}

func TestAnEndpointThatIsDownIsNotAskedForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(*Question, int) *Answer { return &Answer{Outcome: record.Dial} }}
		out, err := Run(t.Context(), Config{Checks: []Declared{{Check: length(500)}}, Variants: []Variant{{Name: "v", Asker: f}}, PerEndpoint: 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(f.asked) != mostInRow || !strings.Contains(out[0].Why, "asked no more") {
			t.Errorf("%d questions were asked, why %q; want %d and that it is asked no more", len(f.asked), out[0].Why, mostInRow)
		}
	})
}

func TestLimitsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &fake{answer: echo, took: time.Second}, &fake{answer: echo, took: time.Second}
		c := Config{Checks: []Declared{{Check: length(60)}}, Variants: pair(a, b), PerEndpoint: 3, Overall: 5}
		started := time.Now()
		if _, err := Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if a.most > 3 || b.most > 3 || a.most+b.most < 4 {
			t.Errorf("%d and %d questions were under way; want at most 3 each, and 4 together at some time", a.most, b.most)
		}
		if took := time.Since(started); took < 24*time.Second || took > 60*time.Second {
			t.Errorf("120 questions of a second took %s with 5 at a time", took)
		}
	})
}

func TestBudgetStopsTheRunAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: echo, took: time.Second} // 12 tokens a question
		second := length(5)
		second.Name = "second"
		c := Config{
			Checks:   []Declared{{Check: length(100)}, {Check: second}},
			Variants: []Variant{{Name: "v", Asker: f, Price: Price{Prompt: 1e6, Output: 2e6}}}, PerEndpoint: 4, Budget: Budget{Tokens: 120},
		}
		out, err := Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if len(out) != 2 {
			t.Fatalf("%d outcomes; want one for each declared check", len(out))
		}
		if !strings.Contains(out[0].Why, "budget of 120 tokens") {
			t.Errorf("why: %q; want the budget", out[0].Why)
		}
		// The bound is passed by what was under way: at most 4 questions.
		if spent := out[0].Cost.Tokens(); spent < 120 || spent > 120+3*12 || int64(len(out[0].Records))*12 != spent {
			t.Errorf("%d tokens were spent and %d records kept; want 120 and those under way", spent, len(out[0].Records))
		}
		if want := float64(out[0].Cost.PromptTokens) + 2*float64(out[0].Cost.OutputTokens); math.Abs(out[0].Cost.Money-want) > 1e-9 {
			t.Errorf("the bill is %v; want %v", out[0].Cost.Money, want)
		}
		// What the first asked is known; the second needs nothing new of it.
		if out[1].Cost.Requests != 0 {
			t.Errorf("after the budget was spent %d more requests were sent", out[1].Cost.Requests)
		}
	})
}

// disk is a Memory that survives a run, as a file would.
type disk struct {
	mu      sync.Mutex
	answers map[string][]byte
	full    int // saves that still succeed; negative: all
}

func (d *disk) Recall(key string) (*Answer, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, ok := d.answers[key]
	if !ok {
		return nil, false, nil
	}
	a := new(Answer)
	return a, true, json.Unmarshal(b, a)
}

func (d *disk) Save(key, _ string, a *Answer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full == 0 {
		return errors.New("no space left")
	}
	d.full--
	if d.answers == nil {
		d.answers = make(map[string][]byte)
	}
	b, err := json.Marshal(a)
	d.answers[key] = b
	return err
}

func TestAnInterruptedRunGoesOnAndAsksNothingTwice(t *testing.T) {
	jittery := func(name string, asked map[string]int, mu *sync.Mutex) Asker {
		return ask(func(ctx context.Context, q *Question) (*Answer, error) {
			h := Key(name, q)
			select {
			case <-time.After(time.Duration(h[0]) * time.Millisecond):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			mu.Lock()
			defer mu.Unlock()
			asked[name+q.Prompt]++
			return says(strings.Repeat(h[:4], 1+int(h[1]%7))), nil
		})
	}
	var mu sync.Mutex
	config := func(m Memory, asked map[string]int) Config {
		return Config{Checks: []Declared{{Check: length(80)}}, Variants: pair(jittery("a", asked, &mu), jittery("b", asked, &mu)), Memory: m, Seed: 3}
	}
	synctest.Test(t, func(t *testing.T) {
		whole, err := Run(t.Context(), config(&disk{full: -1}, map[string]int{}))
		if err != nil {
			t.Fatal(err)
		}
		for _, after := range []time.Duration{0, 100 * time.Millisecond, 400 * time.Millisecond, 700 * time.Millisecond} {
			d, asked := &disk{full: -1}, map[string]int{}
			ctx, stop := context.WithTimeout(t.Context(), after)
			if _, err := Run(ctx, config(d, asked)); err == nil {
				t.Fatalf("after %s the run was over", after)
			}
			stop()
			got, err := Run(t.Context(), config(d, asked))
			if err != nil {
				t.Fatal(err)
			}
			got[0].Cost.Time = whole[0].Cost.Time
			if diff := cmp.Diff(whole, got); diff != "" {
				t.Errorf("stopped after %s and resumed (-uninterrupted +resumed):\n%s", after, diff)
			}
			for q, n := range asked {
				if n != 1 {
					t.Errorf("stopped after %s: %s was answered %d times", after, q, n)
				}
			}
		}
	})
}

func TestNoAnswerIsUsedThatIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, err := Run(t.Context(), Config{Checks: []Declared{{Check: length(9)}}, Variants: []Variant{{Name: "v", Asker: &fake{answer: echo}}}, Memory: &disk{full: 4}})
		if err == nil || !strings.Contains(err.Error(), "no space left") || out[0].Why == "" {
			t.Errorf("error %v, why %q; want that the answers could not be kept", err, out[0].Why)
		}
		if len(out[0].Records) > 4 {
			t.Errorf("%d records of 4 answers that were kept", len(out[0].Records))
		}
	})
}

func TestAPanicIsContained(t *testing.T) {
	for name, run := range map[string]func(context.Context, *Pass) error{
		"in the check": func(context.Context, *Pass) error { panic("boom") },
		"in a shot": func(ctx context.Context, p *Pass) error {
			return p.Each(ctx, 9, func(_ context.Context, i int) error { return errors.New([]string{"boom"}[i%2]) })
		},
		"an undeclared value": func(ctx context.Context, p *Pass) error {
			trials, err := p.Ask(ctx, shots(1))
			trials[0].Set(0, "boom", 1)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			after := length(1)
			after.Name = "after"
			out, err := Run(t.Context(), Config{Checks: []Declared{{Check: &Check{Name: "broken", Run: run}}, {Check: after}}, Variants: []Variant{{Name: "v", Asker: &fake{answer: echo}}}})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out[0].Why, "boom") || out[1].Why != "" {
				t.Errorf("why: %q and %q; want the panic, and that the next check ran", out[0].Why, out[1].Why)
			}
		})
	}
}

func TestAValueOutsideItsBoundsIsRefusedAndNaNIsMissing(t *testing.T) {
	c := &Check{
		Name: "v", Values: func(any) []Value {
			return []Value{{Name: "share", YesNo: true}, {Name: "score", Most: 5}, {Name: "na"}}
		},
		Run: func(ctx context.Context, p *Pass) error {
			trials, err := p.Ask(ctx, shots(2))
			trials[0].Set(0, "score", math.NaN())
			trials[0].Exempt(0, "na")
			trials[1].Set(0, "score", 5)
			trials[1].Set(0, "share", 0.5)
			return err
		},
	}
	out, err := Run(t.Context(), Config{Checks: []Declared{{Check: c}}, Variants: []Variant{{Name: "v", Asker: &fake{answer: echo}}}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out[0].Why, "v.share is 0.5") {
		t.Errorf("why: %q; want the value outside of its bounds", out[0].Why)
	}
	var missing []int
	for _, s := range out[0].Signatures {
		missing = append(missing, s.N, s.Missing)
	}
	if want := []int{2, 2, 2, 1, 1, 1}; !slices.Equal(missing, want) {
		t.Errorf("n and missing of share, score, na: %v; want %v", missing, want)
	}
}

func TestACheckWithoutWhatItNeedsIsInconclusive(t *testing.T) {
	needy := length(1)
	needy.Needs = []Capability{CapLogprobs}
	v := Variant{Name: "candidate", Asker: &fake{answer: echo}}
	for _, tc := range []struct {
		can  Capabilities
		want string
	}{
		{nil, "which nothing proves of candidate"},
		{Capabilities{CapLogprobs: {Standing: Absent, Detail: "5 asked, none came"}}, "which candidate does not have: 5 asked"},
		{Capabilities{CapLogprobs: {Standing: Proven, Level: 5}}, ""},
	} {
		v.Can = tc.can
		out, err := Run(t.Context(), Config{Checks: []Declared{{Check: needy}}, Variants: []Variant{v}})
		if err != nil {
			t.Fatal(err)
		}
		if why := out[0].Why; (why == "") != (tc.want == "") || !strings.Contains(why, tc.want) {
			t.Errorf("with %v: why %q; want %q", tc.can, why, tc.want)
		}
	}
}

func TestChecksComeAfterThoseTheyRead(t *testing.T) {
	declare := func(name string, reads ...string) Declared {
		return Declared{Check: &Check{Name: name, Reads: reads, Run: func(_ context.Context, p *Pass) error {
			for _, r := range reads {
				if o, ok := p.Read(r); ok && o.Data != r {
					return fmt.Errorf("%s published %v", r, o.Data)
				}
			}
			p.Publish(name)
			return errors.New("ran")
		}}}
	}
	list := []Declared{declare("c", "b", "gone"), declare("b", "a"), declare("a")}
	order, err := Order(list)
	if want := []int{2, 1, 0}; err != nil || !slices.Equal(order, want) {
		t.Errorf("Order = %v, %v; want %v", order, err, want)
	}
	out, err := Run(t.Context(), Config{Checks: list})
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range out {
		if o.Check != list[i].Check.Name || o.Why != "ran" {
			t.Errorf("outcome %d is of %s: %q; want %s: ran", i, o.Check, o.Why, list[i].Check.Name)
		}
	}
	_, err = Run(t.Context(), Config{Checks: []Declared{declare("x", "a"), declare("a", "b"), declare("b", "c"), declare("c", "a")}})
	circle, ok := errors.AsType[*CircleError](err)
	if want := []string{"a", "b", "c", "a"}; !ok || !slices.Equal(circle.Names, want) {
		t.Errorf("Run = %v; want the circle %v", err, want)
	}
}

func TestKeysTellQuestionsApart(t *testing.T) {
	zero, one, seed := 0.0, 1.0, int64(0)
	list := []Question{
		{},
		{Prompt: "a"},
		{Messages: []corpus.Message{{Role: "user", Content: "a"}}},
		{Messages: []corpus.Message{{Role: "usera"}}},
		{MaxTokens: 1},
		{Temperature: &zero},
		{Temperature: &one},
		{TopP: &zero},
		{Seed: &seed},
		{Stop: []string{""}},
		{Stop: []string{"", ""}},
		{TopLogprobs: 1},
		{Score: true},
		{Schema: json.RawMessage("{}")},
		{Replicate: 1},
		{Replicate: 2},
	}
	seen := map[string]int{}
	for i := range list {
		for _, endpoint := range []string{"a", "b"} {
			k := Key(endpoint, &list[i])
			if j, twice := seen[k]; twice {
				t.Errorf("questions %d and %d have one key", i, j)
			}
			seen[k] = i
		}
	}
}

// letters embeds a text by its length, after so many failures.
type letters struct {
	texts []string
	fails int
}

func (l *letters) Embed(_ context.Context, texts []string) ([][]float32, error) {
	if l.fails--; l.fails >= 0 {
		return nil, &FailureError{Outcome: record.HTTP5xx, Status: 503}
	}
	var out [][]float32
	for _, s := range texts {
		l.texts = append(l.texts, s)
		out = append(out, []float32{float32(len(s)), 0.25})
	}
	return out, nil
}

func TestVectorsAreAskedOnce(t *testing.T) {
	type settings struct{ Embedder Endpoint }
	c := &Check{Name: "near", Run: func(ctx context.Context, p *Pass) error {
		m, err := p.Embedder(p.Config.(*settings).Embedder)
		if err != nil {
			return err
		}
		for _, texts := range [][]string{{"a", "bb", "a"}, {"bb", "ccc"}} {
			got, err := m.Embed(ctx, texts)
			if err != nil {
				return err
			}
			for i := range texts {
				if want := []float32{float32(len(texts[i])), 0.25}; !slices.Equal(got[i], want) {
					return fmt.Errorf("Embed(%s) = %v; want %v", texts[i], got[i], want)
				}
			}
		}
		return errors.New("ran")
	}}
	e := Endpoint{URL: "http://127.0.0.1/v1", Model: "mini"}
	d, l := &disk{full: -1}, &letters{fails: 2}
	for again := range int64(2) { // the second time as a resumed run
		out, err := Run(t.Context(), Config{Backoff: time.Nanosecond, Checks: []Declared{{Check: c, Config: &settings{e}}}, Embedder: func(Endpoint) (Embedder, error) { return l, nil }, Memory: d})
		if err != nil || out[0].Why != "ran" {
			t.Fatalf("%v, %v", err, out[0].Why)
		}
		if want := []string{"a", "bb", "ccc"}; !slices.Equal(l.texts, want) {
			t.Errorf("asked for %v; want %v", l.texts, want)
		}
		// The two tries in vain are of the first process alone.
		if c := out[0].Cost; c.Requests != 5-2*again || c.Failed != 2-2*again || c.Reused != 1 {
			t.Errorf("the bill has %d requests, %d failed and %d reused", c.Requests, c.Failed, c.Reused)
		}
	}
}

func TestEndpointsAndSetsAreFoundAnywhere(t *testing.T) {
	type inner struct {
		Judges []Endpoint
		Set    SetRef
	}
	x := &struct {
		Judge *Endpoint
		In    inner
		Spare Endpoint
	}{&Endpoint{URL: "a"}, inner{[]Endpoint{{URL: "b"}, {URL: "c"}}, SetRef{File: "f"}}, Endpoint{}}
	var urls []string
	for _, e := range Endpoints(x) {
		urls = append(urls, e.URL)
	}
	if want := []string{"a", "b", "c"}; !slices.Equal(urls, want) {
		t.Errorf("Endpoints = %v; want %v", urls, want)
	}
	if sets := Sets(x); len(sets) != 1 || sets[0].File != "f" {
		t.Errorf("Sets = %v; want f", sets)
	}
}

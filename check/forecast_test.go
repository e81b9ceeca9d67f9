package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-llm/assay/record"
)

// paced is an endpoint whose answers take what their tokens take.
type paced struct {
	each, prompt, output time.Duration // for a request, a token of its prompt, of its answer
	words                func(q *Question) int
	fake
}

func (p *paced) Ask(ctx context.Context, q *Question) (*Answer, error) {
	n, prompt := p.words(q), (q.bytes()+3)/4
	p.took = p.each + time.Duration(prompt)*p.prompt + time.Duration(n)*p.output
	f := fake{took: p.took, answer: func(*Question, int) *Answer {
		return &Answer{Outcome: record.OK, Text: strings.Repeat("word ", n), Finish: "stop", Prompt: record.Tokens(prompt), Output: record.Tokens(int64(n))}
	}}
	p.mu.Lock()
	p.now++
	p.mu.Unlock()
	return f.Ask(ctx, q)
}

// asks is a check that asks n questions of some length.
func asks(name string, n, bytes int) *Check {
	return &Check{
		Name: name, Values: func(any) []Value { return []Value{{Name: "x"}} },
		Run: func(ctx context.Context, p *Pass) error {
			list := make([]Shot, n)
			for i := range list {
				list[i] = Shot{Case: fmt.Sprint(name, i), Question: Question{Prompt: fmt.Sprintf("%s %04d ", name, i) + strings.Repeat("a", bytes+i*bytes/n), MaxTokens: 100}}
			}
			_, err := p.Ask(ctx, list)
			return err
		},
	}
}

// TestWhatIsForeseenComes runs checks of different kinds on endpoints of different
// speed: the time that was told beforehand is within a tenth of what it took, and the
// sample is not asked again.
func TestWhatIsForeseenComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		brief := func(q *Question) int { return 5 + len(q.Prompt)%7 }
		base := &paced{each: 40 * time.Millisecond, prompt: time.Millisecond, output: 20 * time.Millisecond, words: brief}
		slow := &paced{each: 40 * time.Millisecond, prompt: 2 * time.Millisecond, output: 30 * time.Millisecond, words: brief}
		c := Config{
			Checks:   []Declared{{Check: asks("short", 120, 40)}, {Check: asks("long", 60, 8000)}, {Check: asks("few", 9, 400)}},
			Variants: []Variant{{Name: "baseline", Asker: base}, {Name: "candidate", Asker: slow}},
			Seed:     7, PerEndpoint: 3, Memory: &memory{answers: make(map[string]*Answer)},
		}
		plan, err := Plan(t.Context(), c)
		if err != nil || plan.Requests != 2*189 || base.now+slow.now > 0 {
			t.Fatalf("planned %d requests, asked %d, %v", plan.Requests, base.now+slow.now, err)
		}
		f, err := Foresee(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		sampled := base.now + slow.now
		start := time.Now()
		outcomes, err := Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(start)
		t.Logf("foreseen %s ± %s after %d questions, took %s", f.Time, f.Spread, f.Sampled, took)
		if ratio := f.Time.Seconds() / took.Seconds(); math.Abs(ratio-1) > 0.1 {
			t.Errorf("foreseen %s, took %s", f.Time, took)
		}
		if f.Requests != 2*189 || base.now+slow.now != 2*189 || int64(sampled) != f.Sampled {
			t.Errorf("foreseen %d requests, %d sampled, %d asked of which %d before", f.Requests, f.Sampled, base.now+slow.now, sampled)
		}
		var spent Spending
		for _, o := range outcomes {
			spent.add(o.Cost.Spending)
		}
		for what, pair := range map[string][2]int64{"prompt": {f.PromptTokens, spent.PromptTokens}, "output": {f.OutputTokens, spent.OutputTokens}} {
			if r := float64(pair[0]) / float64(pair[1]); math.Abs(r-1) > 0.05 {
				t.Errorf("%s tokens: foreseen %d, were %d", what, pair[0], pair[1])
			}
		}
		if _, err := json.Marshal(f); err != nil || !strings.HasPrefix(f.String(), "378 requests, about ") {
			t.Errorf("%q, %v", f, err)
		}
	})
}

// TestARehearsalAsksNobody: checks with judges and embedders are rehearsed without
// them, and what they find then is nowhere.
func TestARehearsalAsksNobody(t *testing.T) {
	type conf struct{ Judge, Embedder Endpoint }
	c := conf{Endpoint{URL: "http://judge/v1", Model: "j"}, Endpoint{URL: "http://embedder/v1", Model: "e"}}
	kept := 0
	judged := &Check{
		Name: "judged", Config: func() any { return new(conf) }, Values: func(any) []Value { return []Value{{Name: "x"}} },
		Run: func(ctx context.Context, p *Pass) error {
			if !p.Rehearsal {
				return errors.New("asked in earnest")
			}
			e, err := p.Embedder(c.Embedder)
			if err != nil {
				return err
			}
			if v, err := e.Embed(ctx, []string{"a", "b"}); err != nil || len(v) != 2 {
				return errors.Join(errors.New("no vectors"), err)
			}
			trials, err := p.Ask(ctx, shots(5))
			if err != nil {
				return err
			}
			j, err := p.Judge(c.Judge)
			if err != nil {
				return err
			}
			for _, tr := range trials {
				p.Keep(tr.Answers[0].Text)
				if _, err := j.Ask(ctx, &Question{Prompt: tr.Answers[0].Text, MaxTokens: 9, Schema: json.RawMessage(`{}`)}); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f, err := Plan(t.Context(), Config{
		Checks: []Declared{{Check: judged, Config: &c}}, Variants: []Variant{{Name: "baseline", Asker: nil}},
		Keep: func(string, string) { kept++ }, Memory: broken{},
	})
	if err != nil || kept > 0 || len(f.Checks) != 2 || f.Checks[0].Requests != 5 || f.Checks[1].Requests != 5 || f.Checks[1].OutputLimit != 45 {
		t.Errorf("%+v, %v; %d texts were kept", f, err, kept)
	}
}

// broken is a memory that must not be asked.
type broken struct{}

func (broken) Recall(string) (*Answer, bool, error) { return nil, false, errors.New("asked") }
func (broken) Save(string, string, *Answer) error   { return errors.New("saved") }

func TestMakespan(t *testing.T) {
	ones := func(n int) []float64 { return slices.Repeat([]float64{1}, n) }
	for _, c := range []struct {
		queues               [][]float64
		workers, perEndpoint int
		least, most          float64 // the order is drawn
	}{
		{nil, 4, 2, 0, 0},
		{[][]float64{ones(10)}, 1, 1, 10, 10},
		{[][]float64{ones(10)}, 4, 4, 3, 3},                 // the last round is not full
		{[][]float64{ones(100), ones(100)}, 2, 1, 100, 160}, // two endpoints: now and then one waits for the other
		{[][]float64{ones(4), {5, 5, 5, 5}}, 2, 1, 20, 24},  // the slower endpoint holds all up
		{[][]float64{ones(8), ones(2)}, 8, 8, 2, 2},         // fewer questions for one of them
	} {
		if got := makespan(c.queues, c.workers, c.perEndpoint, rand.New(rand.NewPCG(1, 1))); got < c.least || got > c.most {
			t.Errorf("%v with %d workers, %d an endpoint: %v, want %v to %v", c.queues, c.workers, c.perEndpoint, got, c.least, c.most)
		}
	}
}

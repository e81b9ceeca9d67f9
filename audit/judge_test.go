package audit

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// TestSampleSizes holds what docs/audit.md says of each budget: the hits that
// fail and pass a comparison of times, and that the shares which are meant to be
// found are found with a power of 90 % by the standard budget.
func TestSampleSizes(t *testing.T) {
	times := test{.5, .5, falseAlarm / probes / 6}
	for _, tt := range []struct{ of, fails, passes int }{{12, 12, 2}, {20, 17, 5}, {40, 30, 14}} {
		for hits := range tt.of + 1 {
			want := contract.Inconclusive
			if hits >= tt.fails {
				want = contract.Fail
			} else if hits <= tt.passes {
				want = contract.Pass
			}
			if got := times.grade(hits, tt.of); got != want {
				t.Errorf("%d of %d: %s, want %s", hits, tt.of, got, want)
			}
		}
	}
	if power := stat.ChanceAtLeast(17, 20, .95); power < .9 {
		t.Errorf("a cache that hits 95 %% is found with a power of %.2f", power)
	}
	if got := times.grade(0, 0); got != contract.Inconclusive {
		t.Errorf("nothing to judge is %s", got)
	}
	if got := times.grade(0, 4); got != contract.Inconclusive {
		t.Errorf("0 of 4 is %s: four answers prove nothing", got)
	}
}

func TestProbeIsAsGoodAsItsWorstCheck(t *testing.T) {
	check := func(g contract.Grade, supporting bool) Check {
		return Check{Grade: g, Supporting: supporting, Reason: g.String(), Next: "do"}
	}
	for _, tt := range []struct {
		checks []Check
		want   contract.Grade
	}{
		{nil, contract.Inconclusive},
		{[]Check{check(contract.Pass, true)}, contract.Inconclusive},
		{[]Check{check(contract.Pass, false)}, contract.Pass},
		{[]Check{check(contract.Pass, false), check(contract.Inconclusive, true)}, contract.Pass},
		{[]Check{check(contract.Pass, false), check(contract.Inconclusive, false)}, contract.Inconclusive},
		{[]Check{check(contract.Inconclusive, false), check(contract.Fail, true)}, contract.Fail},
	} {
		p := Probe{Checks: tt.checks}
		p.settle()
		if p.Grade != tt.want || p.Reason == "" || (p.Grade == contract.Fail) != (p.Reason == "fail") {
			t.Errorf("%+v: %s (%s), want %s", tt.checks, p.Grade, p.Reason, tt.want)
		}
	}
	r := Report{}
	r.grade()
	if r.Grade != contract.Inconclusive {
		t.Errorf("a report without probes is %s", r.Grade)
	}
}

// TestHostileOutput holds that nothing of an answer reaches the terminal or
// betrays the key.
func TestHostileOutput(t *testing.T) {
	v := with(func(v *vendor) { v.cacheAnswers, v.spit = true, " \x1b]0;owned\a\x1b[2J sk-secret-key \u202e<script>" })
	r, err := audited(t, &v, 1, Config{Budget: Quick, Context: 2048, Target: llm.Target{Key: "sk-secret-key"}})
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	evidence := 0
	for _, p := range r.Probes {
		for _, c := range p.Checks {
			for _, e := range c.Evidence {
				evidence++
				if strings.ContainsAny(e.Says, "\x1b\a\u202e\n") {
					t.Errorf("evidence %q", e.Says)
				}
			}
		}
	}
	if strings.Contains(string(b), "sk-secret-key") || evidence == 0 {
		t.Errorf("%d pieces of evidence; the key is in the report: %v", evidence, strings.Contains(string(b), "sk-secret-key"))
	}
}

// TestDeadServer holds that a server that dies is left alone and passes nothing.
func TestDeadServer(t *testing.T) {
	v := with(func(v *vendor) { v.dies = 150 })
	r, err := audited(t, &v, 1, Config{Budget: Quick, Context: 2048})
	if err != nil {
		t.Fatal(err)
	}
	if r.Grade != contract.Inconclusive || len(r.Asked.Failures) == 0 || r.Asked.Requests > 150+maxInRow+2 {
		t.Errorf("%s after %d requests, failures %v", r.Grade, r.Asked.Requests, r.Asked.Failures)
	}
}

func TestNobodyAnswers(t *testing.T) {
	refuse := llm.Target{URL: "http://memory/v1", Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("refused")
	}}
	if _, err := Run(t.Context(), Config{Target: refuse}); err == nil || !strings.Contains(err.Error(), "hint: is the server running") {
		t.Errorf("Run = %v", err)
	}
	_, err := Run(t.Context(), Config{Target: llm.Target{URL: "http://x", API: llm.APIRerank}, Budget: "huge", Context: 3, Load: -1, Thinking: -1})
	for _, want := range []string{"api", "budget", "context", "load", "thinking"} {
		if err == nil || !strings.Contains(err.Error(), want+":") && !strings.Contains(err.Error(), want+" ") {
			t.Errorf("the fault of %s is not in %v", want, err)
		}
	}
}

// TestInterrupted holds that a cancelled audit ends at once with the cause.
func TestInterrupted(t *testing.T) {
	cause := errors.New("enough")
	v := honest()
	ctx, cancel := context.WithCancelCause(t.Context())
	asked := 0
	cfg := Config{Budget: Quick, Context: 2048, Watch: func(Progress) {
		if asked++; asked == 40 {
			cancel(cause)
		}
	}}
	if _, err := auditedIn(ctx, t, &v, 1, cfg); !errors.Is(err, cause) {
		t.Errorf("Run = %v, want %v", err, cause)
	}
	if asked > 41 {
		t.Errorf("%d requests, 40 before the end", asked)
	}
}

// TestReference holds answers to the lengths of an earlier audit.
func TestReference(t *testing.T) {
	v := honest()
	ref, err := audited(t, &v, 5, Config{Context: 2048})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		short float64
		want  contract.Grade
	}{{1, contract.Pass}, {.5, contract.Fail}} {
		then := *ref
		then.Lengths = nil
		for _, n := range ref.Lengths {
			then.Lengths = append(then.Lengths, n/tt.short)
		}
		v := honest()
		r, err := audited(t, &v, 6, Config{Context: 2048, Reference: &then})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.probe(truncatesName).Checks {
			if c.Name == "length beside the reference" && c.Grade != tt.want {
				t.Errorf("a reference %v times as long: %s, want %s (%s)", 1/tt.short, c.Grade, tt.want, c.Reason)
			}
		}
	}
}

// TestPlan holds that the budget that is told beforehand is what is asked.
func TestPlan(t *testing.T) {
	for budget := range budgets {
		v := honest()
		cfg := Config{Budget: budget, Context: 512}
		var last Progress
		cfg.Watch = func(p Progress) { last = p }
		if _, err := audited(t, &v, 3, cfg); err != nil {
			t.Fatal(err)
		}
		if p := cfg.Plan(); last.Asked != p.Requests || last.Of != p.Requests {
			t.Errorf("%s: %d requests planned, %d asked", budget, p.Requests, last.Asked)
		}
	}
}

// TestSimNeverFails audits an engine that batches, queues and prefills in chunks as
// real ones do. It cannot do tasks, and passes nothing that rests on them.
func TestSimNeverFails(t *testing.T) {
	const cached = `{model: 8b, gpu: h100, weights: fp8, jitter: 10%}`
	for _, config := range []string{
		`{}`, cached,
		`{model: 8b, gpu: h100, prefix_cache: false, token_budget: 256, max_seqs: 4, jitter: 20%}`,
		`{model: 70b, gpu: h100, gpus: 4, tokens_per_event: 3, output: {stop: 40%}, jitter: 5%}`,
		`{step: {base: 8ms, prefill: 100us}, reasoning: 30%, usage: every}`,
		`{step: 10ms, usage: never, faults: {stall: 2%, for: 2s}}`,
		`{step: 10ms, faults: {error_before: 3%, reset: 3%, truncate: 3%}}`,
	} {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			for seed := range seeds(t, 1) {
				synctest.Test(t, func(t *testing.T) {
					r := simulated(t, config, seed)
					for _, name := range []string{truncatesName, degradesName, obeysName} {
						if p := r.probe(name); p.Grade != contract.Inconclusive {
							t.Errorf("%s: %s (%s)", p.Name, p.Grade, p.Reason)
						}
					}
					if r.Grade == contract.Fail {
						t.Error(show(r))
					}
					if p := r.probe(cachesName); config == cached && !strings.Contains(p.Checks[1].Reason, "usage.cached_tokens owns up to it") {
						t.Errorf("%s: %s", p.Checks[1].Name, p.Checks[1].Reason)
					}
				})
			}
		})
	}
}

// TestPromptUsageOfShortPrompts holds that prompts which are hardly longer than the
// short ones do not tell how many tokens a word has: a real engine with a vocabulary
// of 512 failed by them.
func TestPromptUsageOfShortPrompts(t *testing.T) {
	exchangeOf := func(prompt int64) *exchange {
		x := &exchange{rec: record.Record{Outcome: record.OK}}
		x.Claimed.Prompt = record.Tokens(prompt)
		return x
	}
	for _, tt := range []struct {
		quarter, long [2]int64 // words, tokens
		want          contract.Grade
	}{
		{[2]int64{44, 180}, [2]int64{101, 348}, contract.Pass},
		{[2]int64{300, 1000}, [2]int64{1200, 4000}, contract.Pass},
		{[2]int64{300, 1000}, [2]int64{1200, 2000}, contract.Fail},
		{[2]int64{300, 1000}, [2]int64{1200, 1000}, contract.Fail},
		{[2]int64{44, 180}, [2]int64{60, 200}, contract.Inconclusive},
	} {
		var s answers
		for range 12 {
			s.recalls.short = append(s.recalls.short, recall{words: 43, tokens: 1, x: exchangeOf(169)})
			s.recalls.long = append(s.recalls.long, recall{words: tt.quarter[0], tokens: 2, x: exchangeOf(tt.quarter[1])}, recall{words: tt.long[0], tokens: 3, x: exchangeOf(tt.long[1])})
		}
		if c := new(auditor).promptUsage(&s, .001); c.Grade != tt.want {
			t.Errorf("%v, %v: %s (%s), want %s", tt.quarter, tt.long, c.Grade, c.Reason, tt.want)
		}
	}
}

func TestCounted(t *testing.T) {
	for text, want := range map[string]int{"": 0, "1 2 3": 3, "Sure: 1, 2, 3, 5": 3, "2 3": 0, "1\n2\n10\n3": 3} {
		if got := counted(text); got != want {
			t.Errorf("counted(%q) = %d, want %d", text, got, want)
		}
	}
	if hasNumber("1348 + 2 is 3480", "348") || !hasNumber("348 + 571 = 919.", "919") {
		t.Error("hasNumber takes parts of numbers, or misses whole ones")
	}
	if n := blankBytes("a word, and another.\nA line."); n != 0 {
		t.Errorf("%d blank bytes in plain text", n)
	}
	if n := blankBytes("a      \u200b\u200b"); n != 5+6 {
		t.Errorf("%d blank bytes, want 11", n)
	}
}

// TestRefusedLoadIsNoLoad holds that tasks which are solved while the load is
// refused do not pass for tasks under load.
func TestRefusedLoadIsNoLoad(t *testing.T) {
	v := with(func(v *vendor) { v.takes = 3 })
	r, err := audited(t, &v, 1, Config{Budget: Quick, Context: 2048})
	if err != nil {
		t.Fatal(err)
	}
	if p := r.probe(degradesName); p.Grade != contract.Inconclusive {
		t.Errorf("%s: %s (%s)", p.Name, p.Grade, p.Reason)
	}
}

// FuzzAnswerText reads hostile answers as the checks do.
func FuzzAnswerText(f *testing.F) {
	for _, s := range []string{"", "1 2 3", "\x1b[2J\xff\xfe 7", strings.Repeat("indeed ", 9), "</s><|im_end|>", "a\u200b\u3164  \n", "sk-key 99999999999999999999"} {
		f.Add(s)
	}
	a := &auditor{cfg: Config{Target: llm.Target{Key: "sk-key"}}}
	f.Fuzz(func(t *testing.T, text string) {
		if n := counted(text); n < 0 || n > len(text) {
			t.Errorf("counted(%q) = %d", text, n)
		}
		if n := blankBytes(text); n < 0 || n > 3*len(text) { // a byte that is no text counts as U+FFFD
			t.Errorf("blankBytes(%q) = %d", text, n)
		}
		if n := loopAtEnd(text); n > len(text) {
			t.Errorf("loopAtEnd(%q) = %d", text, n)
		}
		if q := a.quote(text); strings.Contains(q, "sk-key") || strings.ContainsAny(q, "\x1b\n") || len(q) > 700 {
			t.Errorf("quote(%q) = %s", text, q)
		}
		hasNumber(text, "12")
		endMarks.FindAllString(text, -1)
	})
}

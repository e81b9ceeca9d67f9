package contract

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/config"
)

// TestFenceFalseAlarms holds the rates that lint prints to those that are known of
// 72 windows and 1.5: 0.65 % of independent normal values, 4.4 % of lognormal
// ones with σ 0.5, 5.3 % of exponential ones, and on logarithms less.
func TestFenceFalseAlarms(t *testing.T) {
	got := simulateFence(72, 1.5)
	t.Logf("%+v", got)
	for name, c := range map[string]struct{ got, want float64 }{
		"normal": {got.normal[0], 0.0065}, "normal, below": {got.normal[1], 0.0065}, "lognormal": {got.lognormal[0], 0.044}, "exponential": {got.exponential[0], 0.053},
	} {
		runs := 1e6 / 72
		if noise := 4 * math.Sqrt(c.want*(1-c.want)/runs); math.Abs(c.got-c.want) > noise+0.0005 {
			t.Errorf("%s: %.4f, want %.4f ± %.4f", name, c.got, c.want, noise)
		}
	}
	if got.logExponential[0] > got.exponential[0]/3 {
		t.Errorf("exponential on logarithms: %.4f, want much less than %.4f", got.logExponential[0], got.exponential[0])
	}
}

const fenceRule = `
version: 1
clauses:
  - id: burst
    need: p90(ttft) <= tukey(24, 1.5)
    window: 1m
    min: 50
    live: {judge: point, do: [page]}
`

// fenceTest is traffic at which the rule looks each minute.
func fenceTest(t *testing.T, cases string) *Test {
	t.Helper()
	var test Test
	if err := config.Decode("test.yaml", []byte("version: 1\ncontract: c.yaml\ncases:\n"+cases), &test); err != nil {
		t.Fatal(err)
	}
	return &test
}

// TestFenceInTraffic: a rule with a fence holds until there are windows for one, acts on
// a burst, is not moved by what nobody told, and never passes as a run.
func TestFenceInTraffic(t *testing.T) {
	test := fenceTest(t, `
  - name: a burst after half an hour
    every: 1m
    evidence:
      - for: 30m
        candidate: {rate: 2/s, ttft: 200ms spread 0.3}
      - for: 5m
        candidate: {rate: 2/s, ttft: 900ms spread 0.3}
      - for: 30m
        candidate: {rate: 2/s, ttft: 200ms spread 0.3}
    want:
      grade: inconclusive
      reason: is about live traffic
      decisions:
        - 31m burst acting
        - 36m burst quiet
  - name: the same burst before there is a fence
    every: 1m
    evidence:
      - for: 15m
        candidate: {rate: 2/s, ttft: 200ms spread 0.3}
      - for: 5m
        candidate: {rate: 2/s, ttft: 900ms spread 0.3}
    want:
      decisions: []
  - name: half of the windows say nothing, and the fence looks past them
    every: 1m
    evidence:
      - {for: 13m, candidate: {rate: 2/s, ttft: 200ms spread 0.3}}
      - {for: 10m, candidate: {rate: 2/min, ttft: 200ms spread 0.3}}
      - {for: 13m, candidate: {rate: 2/s, ttft: 200ms spread 0.3}}
      - {for: 3m, candidate: {rate: 2/s, ttft: 900ms spread 0.3}}
    want:
      decisions:
        - 37m burst acting
`)
	c := decode(t, fenceRule)
	for _, o := range test.Run(c) {
		for _, p := range o.Problems {
			t.Errorf("%s: %s", o.Case, p)
		}
	}
}

// TestFenceReplays: a state that was written and read back between any two looks
// leads to the same decisions.
func TestFenceReplays(t *testing.T) {
	test := fenceTest(t, `
  - name: burst
    evidence:
      - for: 30m
        candidate: {rate: 2/s, ttft: 200ms spread 0.3}
      - for: 5m
        candidate: {rate: 2/s, ttft: 900ms spread 0.3}
    want: {grade: inconclusive}
`)
	c := decode(t, fenceRule)
	h := NewHistory(testEpoch, test.Cases[0].evidence())
	want := Replay(c, h, time.Minute)
	if len(want) == 0 {
		t.Fatal("nothing is decided")
	}
	var s State
	got := []Decision{}
	for at := h.Start().Add(time.Minute); !at.After(h.End().Add(time.Minute)); at = at.Add(time.Minute) {
		if at.After(h.End()) {
			at = h.End()
		}
		next, decided := c.Next(s, h, at)
		b, err := json.Marshal(next)
		if err != nil {
			t.Fatal(err)
		}
		s = State{}
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatal(err)
		}
		if got = append(got, decided...); at.Equal(h.End()) {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestAdvice: what can be decided and is bad advice all the same is told with its
// place.
func TestAdvice(t *testing.T) {
	c := decode(t, fenceRule+`
  - id: old
    joint:
      weights: seed-v1
      objectives:
        - {of: p50(ttft), better: lower}
        - {of: rate(output_tokens), better: higher}
        - {of: share(failed), better: lower, worst: 20%, best: 0%}
`)
	for _, f := range Lint(c, nil) {
		t.Error(f.Error())
	}
	var got strings.Builder
	for _, f := range Advise(c) {
		got.WriteString(f.Error() + "\n")
	}
	first, err := LoadPreset("seed-compat")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Advise(alone(first, "T07-length-deviation")) {
		got.WriteString(f.Error() + "\n")
	}
	if right, err := LoadPreset("production-17"); err != nil || len(Advise(right)) > 0 {
		t.Errorf("advice on production-17: %v, %v", Advise(right), err)
	}
	for _, want := range []string{"acts without cause in 26.8 % of windows of 32 (length deviations of 12, standard deviation 6 tokens), in 6.05 % of windows of 200", "contract.yaml:5:24: clauses[0].need: tukey(24, 1.5) is a screen", "(the fence is around logarithms)", "contract.yaml:10:5: clauses[1]: seed-v1 weighs"} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("no %q in\n%s", want, got.String())
		}
	}
}

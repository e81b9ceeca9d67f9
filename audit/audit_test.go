package audit

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/contract"
)

// seeds is how many audits of each vendor a test runs: few; if ASSAY_SLOW is set 20
// of the vendors that have more than one, and 8 of the others; if it is "full" 20 of
// all.
func seeds(t *testing.T, few uint64) uint64 {
	switch slow := os.Getenv("ASSAY_SLOW"); {
	case slow == "full", slow != "" && few > 1:
		return 20
	case slow != "":
		return 8
	}
	t.Logf("ASSAY_SLOW is not set: %d seeds instead of 20 or 8", few)
	return few
}

// honest is a vendor that does nothing wrong, on a machine of some noise.
func honest() vendor {
	return vendor{noise: .03, batching: .02, prefill: 40 * time.Microsecond}
}

func with(change func(*vendor)) vendor {
	v := honest()
	change(&v)
	return v
}

// probe returns the probe of that name.
func (r *Report) probe(name string) *Probe {
	for i := range r.Probes {
		if r.Probes[i].Name == name {
			return &r.Probes[i]
		}
	}
	return &Probe{Name: "no probe " + name}
}

// failed names the checks that failed.
func (p *Probe) failed() (names []string) {
	for _, c := range p.Checks {
		if c.Grade == contract.Fail {
			names = append(names, c.Name)
		}
	}
	return names
}

// TestCheatsAreCaught holds each way to cheat to the probe that is made for it,
// and to no other.
func TestCheatsAreCaught(t *testing.T) {
	for _, tt := range []struct {
		name   string
		v      vendor
		probe  string
		checks string // that must be among those that fail
		also   string // a probe that may fail as well
		few    uint64 // seeds of a quick test
	}{
		{"caches", with(func(v *vendor) { v.cacheAnswers = true }), cachesName, "decode at temperature 1", "", 3},
		{"caches greedy answers", with(func(v *vendor) { v.cacheAnswers, v.cacheGreedy = true, true }), cachesName, "decode at temperature 0", "", 1},
		{"caches and waits", with(func(v *vendor) { v.cacheAnswers, v.cacheSlowly = true, true }), cachesName, "equal answers at temperature 1", "", 1},
		{"caches what looks alike", with(func(v *vendor) { v.cacheAnswers, v.cacheSlowly, v.cacheAlike = true, true, true }), cachesName, "answers of similar prompts", "", 1},
		{"caches whole streams", with(func(v *vendor) { v.cacheAnswers, v.whole = true, true }), cachesName, "decode at temperature 0", "", 1},
		{"caches prefixes in silence", with(func(v *vendor) { v.prefixCache = true }), cachesName, "first token at temperature 0", "", 1},
		{"ignores the temperature", with(func(v *vendor) { v.ignoreSampler = true }), cachesName, "equal answers at temperature 1", "", 1},
		{"cuts prompts", with(func(v *vendor) { v.cutPrompt = 600 }), truncatesName, "code at the start of ", "", 3},
		{"cuts prompts and tells", with(func(v *vendor) { v.cutPrompt, v.cutUsage = 600, true }), truncatesName, "growth of prompt_tokens", "", 1},
		{"cuts the middle of prompts", with(func(v *vendor) { v.cutPrompt, v.cutMiddle = 600, true }), truncatesName, "code at the middle of ", "", 1},
		{"cuts prompts of a model that cannot", with(func(v *vendor) { v.cutPrompt, v.cutUsage, v.helpless = 600, true, true }), truncatesName, "growth of prompt_tokens", "", 1},
		{"cuts answers", with(func(v *vendor) { v.cutOutput, v.cutFinish = 50, "stop" }), truncatesName, "counting", "", 3},
		{"cuts stories", with(func(v *vendor) { v.cutOutput, v.cutFinish = 130, "stop" }), truncatesName, "hidden limit", "", 1},
		{"cuts answers at a claimed limit", with(func(v *vendor) { v.cutOutput, v.cutFinish = 20, "length" }), truncatesName, "finish_reason length", "", 1},
		{"cuts answers and lies", with(func(v *vendor) { v.cutOutput, v.cutFinish, v.cutLies = 20, "length", true }), truncatesName, "finish_reason length", padsName, 1},
		{"pads usage", with(func(v *vendor) { v.padUsage = 1.3 }), padsName, "usage of the text sent back", "", 3},
		{"pads usage beyond the bytes", with(func(v *vendor) { v.padUsage = 9 }), padsName, "possible usage", "", 1},
		{"pads with blanks", with(func(v *vendor) { v.padBlank = 20 }), padsName, "blank filler", "", 1},
		{"pads with a word", with(func(v *vendor) { v.padWord = 12 }), padsName, "repeated filler", "", 1},
		{"pads behind the end", with(func(v *vendor) { v.padBehind = true }), padsName, "one end", "", 1},
		{"fakes the first token", with(func(v *vendor) { v.fakeFirst = " " }), firstName, "first token", "", 3},
		{"fakes a first word", with(func(v *vendor) { v.fakeFirst = "Well" }), firstName, "start of streams", "", 1},
		{"fakes the first token under load", with(func(v *vendor) { v.fakeFirst, v.fakeAbove, v.prefill = " ", 8, time.Millisecond }), firstName, "first token under load", "", 1},
		{"answers junk under load", with(func(v *vendor) { v.junkAbove = 8 }), degradesName, "tasks under load", "", 3},
		{"answers short under load", with(func(v *vendor) { v.shortAbove = 8 }), degradesName, "tasks under load", "", 1},
		{"another build under load", with(func(v *vendor) { v.otherAbove = 8 }), obeysName, "one build", "", 1},
		{"another model at times", with(func(v *vendor) { v.otherModel = .1 }), obeysName, "one model", "", 1},
		{"ignores stop words", with(func(v *vendor) { v.ignoreStop = true }), obeysName, "stop words", "", 1},
		{"ignores n", with(func(v *vendor) { v.ignoreN = true }), obeysName, "n", "", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for seed := range seeds(t, tt.few) {
				v := tt.v
				r, err := audited(t, &v, seed, Config{Budget: Quick, Context: 2048})
				if err != nil {
					t.Fatal(err)
				}
				p := r.probe(tt.probe)
				hit := slices.ContainsFunc(p.failed(), func(name string) bool { return strings.HasPrefix(name, tt.checks) })
				if r.Grade != contract.Fail || p.Grade != contract.Fail || !hit {
					t.Errorf("seed %d: %s; %s is %s, failed in %q; want %q", seed, r.Grade, p.Name, p.Grade, p.failed(), tt.checks)
				}
				for _, other := range r.Probes {
					if other.Name != tt.probe && other.Name != tt.also && other.Grade == contract.Fail {
						t.Errorf("seed %d: also fails %s: %s", seed, other.Name, other.Reason)
					}
				}
				if t.Failed() {
					t.Fatal(show(r))
				}
			}
		})
	}
}

// TestHonestPass holds that vendors who do nothing wrong never fail, and that
// quiet ones pass.
func TestHonestPass(t *testing.T) {
	for _, tt := range []struct {
		name string
		v    vendor
		cfg  Config
		want contract.Grade // Pass, or Inconclusive for either
		few  uint64         // seeds of a quick test
	}{
		{"quiet", honest(), Config{}, contract.Pass, 3},
		{"chatty", with(func(v *vendor) { v.chatty = true }), Config{}, contract.Pass, 1},
		{"prefix cache told by usage", with(func(v *vendor) { v.prefixCache, v.tellCached = true, true }), Config{}, contract.Pass, 1},
		{"prefix cache declared", with(func(v *vendor) { v.prefixCache = true }), Config{CachingDeclared: true}, contract.Pass, 2},
		{"slow prefill", with(func(v *vendor) { v.prefill = 2 * time.Millisecond }), Config{}, contract.Pass, 2},
		{"batching", with(func(v *vendor) { v.batching, v.noise = .3, .1 }), Config{}, contract.Inconclusive, 2},
		{"heavy tails", with(func(v *vendor) { v.tails, v.noise = .03, .2 }), Config{}, contract.Inconclusive, 2},
		{"very noisy", with(func(v *vendor) { v.noise, v.tails, v.prefill = .7, .05, time.Microsecond }), Config{}, contract.Inconclusive, 1},
		{"nondeterministic", with(func(v *vendor) { v.unsteady = .3 }), Config{}, contract.Inconclusive, 2},
		{"hardly deterministic", with(func(v *vendor) { v.unsteady = .7 }), Config{}, contract.Inconclusive, 2},
		{"slips now and then", with(func(v *vendor) { v.mistakes = .003 }), Config{}, contract.Inconclusive, 1},
		{"makes mistakes", with(func(v *vendor) { v.mistakes = .15 }), Config{}, contract.Inconclusive, 1},
		{"whole streams", with(func(v *vendor) { v.whole = true }), Config{}, contract.Inconclusive, 1},
		{"cannot do tasks", with(func(v *vendor) { v.helpless = true }), Config{}, contract.Inconclusive, 1},
		{"small context", with(func(v *vendor) { v.context = 1000 }), Config{}, contract.Inconclusive, 1},
		{"refuses some", with(func(v *vendor) { v.refuse = .1 }), Config{}, contract.Inconclusive, 1},
		{"no usage", with(func(v *vendor) { v.noUsage = true }), Config{}, contract.Inconclusive, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			passed := 0
			n := seeds(t, tt.few)
			for seed := range n {
				v := tt.v
				tt.cfg.Budget, tt.cfg.Context = Quick, 2048
				r, err := audited(t, &v, seed, tt.cfg)
				if err != nil {
					t.Fatal(err)
				}
				if r.Grade == contract.Fail {
					t.Errorf("seed %d: fails: %s\n%s", seed, r.Reason, show(r))
				}
				if r.Grade == contract.Pass {
					passed++
				} else if tt.want == contract.Pass {
					t.Logf("seed %d: %s\n%s", seed, r.Reason, show(r))
				}
			}
			if tt.want == contract.Pass && passed < int(n*3/4) {
				t.Errorf("passed %d of %d times", passed, n)
			}
			t.Logf("passed %d of %d times", passed, n)
		})
	}
}

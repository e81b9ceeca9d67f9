package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/stat"
)

const (
	obeysName = "leaves out what was asked"
	obeysAsks = "are stop words and n kept, and is it one model all the time?"
)

// obeys are questions with parameters that are easily dropped.
type obeys struct{ stops, many []*exchange }

// stopWord stands in every count to lowCount but once, and never at its start.
const stopWord = "4"

func (a *auditor) askObeys(ctx context.Context) (o obeys) {
	k, rng := &asker{a, "parameters"}, a.rng(10)
	for range a.n.obey {
		o.stops = append(o.stops, k.ask(ctx, question{prompt: salt(rng) + countTo(lowCount), max: taskTokens, stop: []string{stopWord}}))
		if api := a.cfg.Target.API; api == "" || api == llm.APIChat || api == llm.APICompletions {
			o.many = append(o.many, k.ask(ctx, question{prompt: salt(rng) + "Write a sentence about a " + topic(rng) + ".", max: taskTokens, temperature: 1, n: 2}))
		}
	}
	return o
}

func (a *auditor) judgeObeys(s *answers) Probe {
	p := Probe{Name: obeysName, Asks: obeysAsks}
	alpha := falseAlarm / probes / 4
	p.Checks = append(p.Checks, a.stopsThere(s, alpha), manyAnswers(s.obeys.many, alpha), a.oneModel(alpha), a.oneBuild(alpha))
	return p
}

// stopsThere holds that a stop word is not in the text.
func (a *auditor) stopsThere(s *answers, alpha float64) Check {
	var t tally
	for _, x := range s.obeys.stops {
		if x.usable() {
			t.add(x, strings.Contains(x.Text, stopWord), fmt.Sprintf("told to stop at %q: %s", stopWord, a.quote(x.Text)))
		}
	}
	c := test{.1, .5, alpha}.check("stop words", "does the text end before a stop word?", &t, "stop words are ignored", "cut the text yourself; what is behind is paid for")
	if ordinary := s.counts.low; c.Grade == contract.Pass && !slices.ContainsFunc(ordinary, func(x *exchange) bool { return x.usable() && strings.Contains(x.Text, stopWord) }) {
		c.Grade, c.Reason, c.Next = contract.Inconclusive, "the model does not write the stop word without being stopped either", ableNext
	}
	return c
}

// manyAnswers holds that n: 2 gets two answers, or is refused.
func manyAnswers(all []*exchange, alpha float64) Check {
	const name, asks = "n", "does n: 2 get two answers?"
	var t tally
	refused := 0
	for _, x := range all {
		switch {
		case x == nil:
		case x.refused():
			refused++
		case x.usable():
			t.add(x, x.Choices < 2, fmt.Sprintf("%d answers came", x.Choices))
		}
	}
	if t.of == 0 {
		c := undecided(name, asks, "the API has no n", "")
		if refused > 0 {
			c.Grade, c.Reason = contract.Pass, "it is refused openly"
		}
		c.Supporting = true
		return c
	}
	c := test{.1, .5, alpha}.check(name, asks, &t, "n is ignored: one answer comes instead of two", "ask twice")
	c.Supporting = true
	return c
}

// oneModel holds that all answers name one model.
func (a *auditor) oneModel(alpha float64) Check {
	const name, asks = "one model", "do all answers name the same model?"
	mode := mostly(a.all, func(x *exchange) string { return x.Model })
	var t tally
	for _, x := range a.all {
		if x.usable() && x.Model != "" {
			t.add(x, x.Model != mode, fmt.Sprintf("answered by %s, others by %s", a.quote(x.Model), a.quote(mode)))
		}
	}
	if t.of == 0 {
		c := undecided(name, asks, "answers name no model", "")
		c.Supporting = true
		return c
	}
	return test{.02, .3, alpha}.check(name, asks, &t, "answers come from different models", "ask for a name that is one version")
}

// oneBuild looks for another build that answers under load, by Fisher's test.
func (a *auditor) oneBuild(alpha float64) Check {
	c := Check{Name: "one build", Asks: "does the same system_fingerprint answer idle and under load?", Supporting: true}
	idle := func(x *exchange) string {
		if x.loaded {
			return ""
		}
		return x.Fingerprint
	}
	mode := mostly(a.all, idle)
	var same, n [2]int
	var others tally
	for _, x := range a.all {
		if !x.usable() || x.Fingerprint == "" {
			continue
		}
		at := 0
		if x.loaded {
			at = 1
			others.add(x, x.Fingerprint != mode, fmt.Sprintf("build %s under load; idle mostly %s", a.quote(x.Fingerprint), a.quote(mode)))
		}
		n[at]++
		if x.Fingerprint == mode {
			same[at]++
		}
	}
	if n[0] == 0 || n[1] == 0 {
		c.Reason = "answers name no build"
		return c
	}
	c.Figures = []Figure{share("of the usual build idle", same[0], n[0]), share("of the usual build under load", same[1], n[1])}
	c.Grade, c.Reason = contract.Pass, fmt.Sprintf("%d of %d under load, %d of %d idle", same[1], n[1], same[0], n[0])
	if stat.ChanceFewer(same[1], n[1], same[0], n[0]) <= alpha {
		c.Grade, c.Evidence, c.Next = contract.Fail, others.evidence, "ask the vendor what answers under load; measure its quality under load"
		c.Reason = "another build answers under load: " + c.Reason + " are of the usual one"
	}
	return c
}

// mostly is the most frequent name that is not empty; the first of equals.
func mostly(all []*exchange, of func(*exchange) string) string {
	count := map[string]int{}
	for _, x := range all {
		if name := of(x); x.usable() && name != "" {
			count[name]++
		}
	}
	best := ""
	for _, name := range slices.Sorted(maps.Keys(count)) {
		if count[name] > count[best] {
			best = name
		}
	}
	return best
}

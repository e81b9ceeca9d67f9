package dimension

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/scenario"
)

// place finds out which turn of which scenario is asked, and whether it is the side
// question after it.
func place(list []*scenario.Scenario, q *check.Question) (s *scenario.Scenario, turn int, side bool) {
	var users []string
	for _, m := range q.Messages {
		if m.Role == "user" {
			users = append(users, m.Content)
		}
	}
	i := slices.IndexFunc(list, func(s *scenario.Scenario) bool { return s.Turns[0].User == users[0] })
	s, turn = list[i], len(users)-1
	if turn < len(s.Turns) && s.Turns[turn].User == users[turn] {
		return s, turn, false
	}
	return s, turn - 1, true
}

// stateOf is a right answer to the side question.
func stateOf(s *scenario.Scenario, t int, change func(h scenario.Held) any) string {
	object := make(map[string]any)
	for _, h := range s.State(t) {
		object[h.Slot] = change(h)
	}
	b, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func valueOf(h scenario.Held) any {
	if h.Value == "" {
		return nil
	}
	return h.Value
}

func text(s string) *check.Answer {
	return &check.Answer{Outcome: record.OK, Text: s, Finish: "stop", Prompt: record.Tokens(9), Output: record.Tokens(9)}
}

// secretary knows everything, and answers as the reference does.
func secretary(list []*scenario.Scenario) model {
	return func(q *check.Question) *check.Answer {
		s, t, side := place(list, q)
		if side {
			return text(stateOf(s, t, valueOf))
		}
		return text(s.Turns[t].Assistant)
	}
}

// means are those of every value over the records of a variant; n counts them, and
// missing those that lack the value without being exempt.
func means(o *check.Outcome, variant string) (mean map[string]float64, n, missing map[string]int) {
	mean, n, missing = make(map[string]float64), make(map[string]int), make(map[string]int)
	for _, r := range o.Records {
		if r.Variant != variant {
			continue
		}
		for _, v := range o.Values {
			name := o.Check + "." + v.Name
			x, ok := r.Values[name]
			_, exempt := r.Values[record.Exempt(name)]
			switch {
			case ok:
				mean[v.Name] += x
				n[v.Name]++
			case !exempt:
				missing[v.Name]++
			}
		}
	}
	for name := range mean {
		mean[name] /= float64(n[name])
	}
	return mean, n, missing
}

func TestDialogueOfOneWhoKnowsEverything(t *testing.T) {
	list := scenario.Generate(scenario.Spec{N: 12}, 7)
	o := run(t, Dialogue, &DialogueConfig{Mode: "both"}, nil, secretary(list), secretary(list))
	if o.Why != "" || len(o.Findings) != 0 {
		t.Fatalf("%s, %+v", o.Why, o.Findings)
	}
	got, n, missing := means(o, "candidate")
	for name, want := range map[string]float64{"expected": 1, "auto_satisfied": 1, "needless_clarification": 0, "clarified": 1, "false_assumption": 0, "forbidden": 0, "kept": 1, "state": 1, "state_read": 1} {
		if n[name] == 0 || math.Abs(got[name]-want) > 1e-12 || missing[name] > 0 {
			t.Errorf("%s: %v of %d, %d missing; want %v", name, got[name], n[name], missing[name], want)
		}
	}
	if n["rcs"] < 16 || got["rcs"] <= .7 || got["rcs"] >= 1 || missing["rcs"] > 0 || got["rcs_least"] > got["rcs"] || got["distinct"] <= .5 {
		t.Errorf("rcs %v, least %v, distinct %v of %d, %d missing", got["rcs"], got["rcs_least"], got["distinct"], n["rcs"], missing["rcs"])
	}
	if n["kept"] >= n["exercised"] || got["exercised"] >= .9 {
		t.Errorf("kept has %d numbers, exercised %d of mean %v: what is not exercised counts as kept", n["kept"], n["exercised"], got["exercised"])
	}
	data := o.Data.(dialogueData)
	if data.Scenarios != 12 || len(data.Variants) != 4 || len(data.Propagation) != 4 || data.Propagation[0].Change != 0 {
		t.Errorf("%+v", data)
	}
	for _, v := range data.Variants {
		if v.Depth.At != nil || !strings.HasPrefix(v.Depth.Why, "all ") || v.Implied.Used != v.Implied.Implied || v.State[0].Right != v.State[0].N {
			t.Errorf("%s %s: %+v", v.Variant, v.Replay, v)
		}
	}
	if _, err := json.Marshal(data); err != nil {
		t.Error(err)
	}
	for _, e := range o.Estimates {
		if e.Number == nil || strings.HasPrefix(e.Value, "dialogue.depth_") && e.Change == "" && (*e.Number < 4 || e.Intervals[0].Hi != nil) || e.Value == "dialogue.spread" && *e.Number != 0 {
			t.Errorf("%+v", e)
		}
	}
	if len(o.Estimates) != 9 {
		t.Errorf("%d estimates, want depth, of two replays, and spread, each of two variants and their change", len(o.Estimates))
	}
	if len(o.Figures) != 2 || len(o.Figures[0].Curves) != 4 {
		t.Errorf("%d figures", len(o.Figures))
	}
	for _, s := range o.Signatures {
		if len(s.Data) != 64 || !strings.Contains(s.Estimator, "scripted live") {
			t.Errorf("signature %+v", s)
		}
	}
}

// TestSideQuestionsAreNotAppended looks at what is sent: in scripted replay the
// reference's replies, in live replay one's own, in neither a side question of an
// earlier turn.
func TestSideQuestionsAreNotAppended(t *testing.T) {
	list := scenario.Generate(scenario.Spec{N: 4}, 7)
	for _, mode := range []string{"scripted", "live"} {
		var mu sync.Mutex
		longest := 0
		m := model(func(q *check.Question) *check.Answer {
			s, turn, side := place(list, q)
			mu.Lock()
			defer mu.Unlock()
			for i, a := range q.Messages {
				if a.Role == "assistant" {
					want := s.Turns[(i-2)/2].Assistant
					if mode == "live" {
						want = fmt.Sprint("Own reply ", (i-2)/2)
					}
					if a.Content != want {
						t.Errorf("%s, message %d: %q, want %q", mode, i, a.Content, want)
					}
				}
			}
			if want := int64(10); !side && q.MaxTokens != want || side && q.MaxTokens < 96 {
				t.Errorf("turn %d, side %v: at most %d tokens", turn, side, q.MaxTokens)
			}
			if q.Messages[0].Role != "system" || q.Messages[0].Content != s.System {
				t.Errorf("begins with %+v", q.Messages[0])
			}
			want := 2 + 2*turn
			if side {
				want += 2
			}
			if longest = max(longest, len(q.Messages)); len(q.Messages) != want {
				t.Errorf("%s, turn %d, side %v: %d messages, want %d", mode, turn, side, len(q.Messages), want)
			}
			return text(fmt.Sprint("Own reply ", turn))
		})
		if o := run(t, Dialogue, &DialogueConfig{Count: 4, Mode: mode, MaxTokens: 10}, nil, m); o.Why != "" || longest < 8 {
			t.Errorf("%s: %q, %d messages", mode, o.Why, longest)
		}
	}
}

// TestWhatFollowsAFailureIsMissing: in live replay a variant whose reply is missing has
// no numbers from there on; the other has.
func TestWhatFollowsAFailureIsMissing(t *testing.T) {
	list := scenario.Generate(scenario.Spec{N: 12}, 7)
	fine := secretary(list)
	fails := model(func(q *check.Question) *check.Answer {
		if s, turn, side := place(list, q); turn == 1 && !side && s.Domain == "travel" {
			return &check.Answer{Outcome: record.HTTP4xx, Status: 400, Detail: "no"}
		}
		return fine(q)
	})
	for mode, want := range map[string]int{"live": 0, "scripted": 1} {
		o := run(t, Dialogue, &DialogueConfig{Mode: mode}, nil, fine, fails)
		after := 0
		for _, r := range o.Records {
			if r.Variant == "candidate" && r.Labels["domain"] == "travel" && r.Turn > 1 && r.Labels["asks"] == "state" {
				if _, ok := r.Values["dialogue.state"]; ok {
					after++
				}
			}
		}
		if _, _, missing := means(o, "candidate"); missing["exercised"] == 0 || missing["rcs"] == 0 || (after > 0) != (want > 0) {
			t.Errorf("%s: missing %v, %d states after the failure", mode, missing, after)
		}
		if _, _, missing := means(o, "baseline"); missing["exercised"] > 0 {
			t.Errorf("%s: the baseline lacks %v", mode, missing)
		}
	}
}

// TestErrorsSpread: a model that loses the thread after a slip of its own is worse when
// its own replies are sent back, and so is told.
func TestErrorsSpread(t *testing.T) {
	list := scenario.Generate(scenario.Spec{N: 100}, 7)
	good := secretary(list)
	slips := model(func(q *check.Question) *check.Answer {
		s, turn, side := place(list, q)
		if side {
			return good(q)
		}
		lost := slices.ContainsFunc(q.Messages, func(m corpus.Message) bool { return m.Role == "assistant" && m.Content == "What?" })
		if lost || turn == 1 && len(s.Turns[0].User)%2 == 0 {
			return text("What?")
		}
		return good(q)
	})
	o := run(t, Dialogue, &DialogueConfig{Count: 100, Mode: "both", Probes: new(bool)}, nil, good, slips)
	i := slices.IndexFunc(o.Estimates, func(e record.Estimate) bool { return e.Value == "dialogue.spread" && e.Change != "" })
	if i < 0 || *o.Estimates[i].Number > -.15 || o.Estimates[i].Intervals[0].Hi == nil || *o.Estimates[i].Intervals[0].Hi >= 0 {
		t.Fatalf("%+v", o.Estimates[i])
	}
	for _, d := range o.Data.(dialogueData).Propagation {
		if (d.Change < 0) != (d.Variant == "candidate") {
			t.Errorf("%+v", d)
		}
	}
}

// TestFaultsInDialoguesAreFound: each by its own finding, a lost slot at its turn.
func TestFaultsInDialoguesAreFound(t *testing.T) {
	conf := func() *DialogueConfig { return &DialogueConfig{Count: 24, Domains: []string{"travel"}} }
	list := scenario.Generate(scenario.Spec{N: 24, Domains: []string{"travel"}}, 7)
	good := secretary(list)
	for _, c := range []struct {
		code, text string
		model      model
	}{
		{"slot_lost", "slot city is lost from turn 3 on", func(q *check.Question) *check.Answer {
			s, turn, side := place(list, q)
			if !side {
				return good(q)
			}
			return text(stateOf(s, turn, func(h scenario.Held) any {
				if h.Slot == "city" && turn >= 2 {
					return nil
				}
				return valueOf(h)
			}))
		}},
		{"slot_lost", "the state as a whole is lost from turn 4 on", func(q *check.Question) *check.Answer {
			s, turn, side := place(list, q)
			if !side {
				return good(q)
			}
			return text(stateOf(s, turn, func(h scenario.Held) any {
				if turn >= 3 {
					return "forgotten"
				}
				return valueOf(h)
			}))
		}},
		{"constraint_dropped", "drops constraints after an update", func(q *check.Question) *check.Answer {
			s, turn, side := place(list, q)
			if !side {
				return good(q)
			}
			return text(stateOf(s, turn, func(h scenario.Held) any {
				if len(h.Old) > 0 {
					return h.Old[0]
				}
				return valueOf(h)
			}))
		}},
		{"constraint_violated", "says otherwise than what holds", func(q *check.Question) *check.Answer {
			s, turn, side := place(list, q)
			if side {
				return good(q)
			}
			cities := []string{"Lisbon", "Vienna", "里斯本", "维也纳"} // what it adds to every reply
			return text(s.Turns[turn].Assistant + fmt.Sprintf(" %s, %s.", cities[len(s.ID)%2], cities[2+len(s.ID)%2]))
		}},
		{"false_assumption", "goes on without asking", func(q *check.Question) *check.Answer {
			if s, turn, side := place(list, q); !side && slices.ContainsFunc(s.Needs(turn), func(n scenario.Need) bool { return n.Resolution.Open() }) {
				return text("It is done.")
			}
			return good(q)
		}},
		{"needless_clarification", "asks for what follows", func(q *check.Question) *check.Answer {
			if s, turn, side := place(list, q); !side {
				for _, n := range s.Needs(turn) {
					if k, _ := s.Slots.Get(n.Slot); !n.Resolution.Open() {
						return text("Could you tell me the " + k.Names[0] + "?")
					}
				}
			}
			return good(q)
		}},
	} {
		o := run(t, Dialogue, conf(), nil, good, c.model)
		i := slices.IndexFunc(o.Findings, func(f check.Finding) bool { return f.Code == c.code })
		if i < 0 {
			t.Errorf("%s is not found: %+v", c.code, o.Findings)
			continue
		}
		f := o.Findings[i]
		if !strings.Contains(f.Text, c.text) || f.Severity != check.Warning || f.Variant != "candidate" || f.Hint == "" || len(f.Bodies) != 1 || f.Case == "" {
			t.Errorf("%s: %+v", c.code, f)
		}
		if c.code != "slot_lost" && slices.ContainsFunc(o.Findings, func(f check.Finding) bool { return f.Code == "slot_lost" }) {
			t.Errorf("%s is taken for a loss, too: %+v", c.code, o.Findings)
		}
	}
}

// TestPublishedFormsFail holds the published scores beside these on a model that says
// the same again and again.
func TestPublishedFormsFail(t *testing.T) {
	list := scenario.Generate(scenario.Spec{N: 12}, 7)
	parrot := says(func(string) string { return "Of course, I have noted everything for you." })
	o := run(t, Dialogue, new(DialogueConfig), nil, secretary(list), parrot)
	got, n, _ := means(o, "candidate")
	if n["rcs"] == 0 || got["rcs"] > .05 || got["distinct"] > .4 {
		t.Errorf("rcs %v, distinct %v; similarity alone would give 1", got["rcs"], got["distinct"])
	}
	// It asserts no value, so nothing of what it says contradicts a constraint: with "not
	// violated" for kept, as published, all but the required ones count.
	var kept, violated, exercised int
	for _, v := range o.Data.(dialogueData).Variants {
		if v.Variant == "candidate" {
			for _, p := range v.Phases {
				kept, violated, exercised = kept+p.Satisfied+p.NotExercised, violated+p.Violated, exercised+p.Satisfied+p.Violated
			}
		}
	}
	if published := float64(kept) / float64(kept+violated); published < .5 || got["kept"] > .25 {
		t.Errorf("published %v, here %v of %d exercised", published, got["kept"], exercised)
	}
	if !slices.ContainsFunc(o.Notes, func(n string) bool { return strings.Contains(n, "0 were read from prose, and ") }) {
		t.Errorf("notes %q; want how many side questions have no answer that can be read", o.Notes)
	}
	if got["state_read"] != 0 || n["state"] != 0 {
		t.Errorf("state %v of %d: an answer that says nothing is no state", got["state"], n["state"])
	}
}

func TestScenariosOfAFile(t *testing.T) {
	const file = "version: 1\nscenarios:\n  - id: one\n    slots: {plan: {kind: enum, values: [Gold, Silver]}}\n    turns:\n" +
		"      - {user: Gold please, sets: {plan: Gold}, expect: {mentions: {plan: Gold}}%s}\n"
	ask := func(doc string, conf *DialogueConfig) *check.Outcome {
		conf.Scenarios = "s.yaml"
		out, err := check.Run(t.Context(), check.Config{
			Checks: []check.Declared{{Check: Dialogue, Config: conf}}, Seed: 1, Sets: map[string]*corpus.Set{}, Files: map[check.FileRef][]byte{"s.yaml": []byte(doc)},
			Variants: []check.Variant{{Name: "baseline", Asker: says(func(string) string { return "Gold it is." })}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return out[0]
	}
	o := ask(fmt.Sprintf(file, ""), new(DialogueConfig))
	if !strings.Contains(o.Why, "write mode: live") {
		t.Errorf("scripted without a script: %q", o.Why)
	}
	o = ask(fmt.Sprintf(file, ""), &DialogueConfig{Mode: "live", Probes: new(bool)})
	got, n, _ := means(o, "baseline")
	if o.Why != "" || got["expected"] != 1 || n["state"] != 0 || n["rcs"] != 0 || len(o.Records) != 1 {
		t.Errorf("%q: %v, %d records", o.Why, got, len(o.Records))
	}
	if o = ask(strings.ReplaceAll(fmt.Sprintf(file, ""), "Silver]", "Gold]"), new(DialogueConfig)); !strings.Contains(o.Why, "s.yaml:4:") {
		t.Errorf("a faulty file: %q", o.Why)
	}
}

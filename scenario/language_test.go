package scenario

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/config"
)

// example reads the scenarios of the examples.
func example(t testing.TB) []*Scenario {
	t.Helper()
	const name = "../examples/dialogue/scenarios.yaml"
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	list, err := Read(name, data)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// read reads the body of one scenario.
func read(t testing.TB, slots, turns string) *Scenario {
	t.Helper()
	list, err := Read("s.yaml", []byte("version: 1\nscenarios:\n  - id: one\n    slots: "+slots+"\n    turns:\n"+turns))
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

func TestTheStateIsKnownAtEveryTurn(t *testing.T) {
	s := example(t)[0]
	if len(s.Needs(2)) != 1 {
		t.Fatalf("needs of turn 3: %+v", s.Needs(2))
	}
	for turn, want := range map[int]Need{
		2: {Slot: "plan", Resolution: Derivable, Value: "Plus", Depth: 2},
		3: {Slot: "seats", Resolution: Derivable, Value: "12", Depth: 3}, // of the whole dialogue, for another scope
		4: {Slot: "account", Resolution: Ambiguous, Fits: []string{"A-2", "A-3"}},
		6: {Slot: "cycle", Resolution: Ambiguous, Fits: []string{"yearly", "monthly"}, Claimed: true},
	} {
		if d := cmp.Diff([]Need{want}, s.Needs(turn)); d != "" {
			t.Errorf("turn %d: %s", turn+1, d)
		}
	}
	if got := example(t)[1].Needs(3); len(got) != 1 || got[0].Resolution != Missing || !got[0].Resolution.Open() {
		t.Errorf("an address that nobody told: %+v", got)
	}
	want := []Held{
		{Slot: "plan", Value: "Plus", Phase: Updated, Old: []string{"Basic"}},
		{Slot: "cycle", Value: "yearly", Phase: Updated, Old: []string{"monthly"}},
		{Slot: "seats", Value: "12", Phase: Persisting},
		{Slot: "fee", Value: "USD 49", Phase: Persisting},
		{Slot: "start", Phase: Cancelled, Old: []string{"2027-03-05"}},
		{Slot: "account", Value: "A-3", Phase: Activated},
	}
	if d := cmp.Diff(want, s.State(5)); d != "" {
		t.Error(d)
	}
	if i := slices.IndexFunc(s.State(3), func(h Held) bool { return h.Slot == "seats" }); s.State(3)[i].Scope != "wife" {
		t.Errorf("in her scope: %+v", s.State(3)[i])
	}
	if slices.ContainsFunc(s.State(4), func(h Held) bool { return h.Slot == "account" }) {
		t.Error("what is open has a value")
	}
}

func TestOtherScopesAreLookedAtLast(t *testing.T) {
	const slots = "{hotel: {kind: text}}"
	one := read(t, slots, `
      - {user: a, scope: outward, sets: {hotel: Ritz}}
      - {user: b, implies: {hotel: {from: hotel}}}
`)
	if n := one.Needs(1)[0]; n.Resolution != Derivable || n.Value != "Ritz" {
		t.Errorf("one hotel in another scope: %+v", n)
	}
	two := read(t, slots, `
      - {user: a, scope: outward, sets: {hotel: Ritz}}
      - {user: b, scope: return, sets: {hotel: Savoy}}
      - {user: c, implies: {hotel: {from: hotel}}}
      - {user: d, scope: return, implies: {hotel: {from: hotel}}}
`)
	if n := two.Needs(2)[0]; n.Resolution != Ambiguous || !slices.Equal(n.Fits, []string{"Ritz", "Savoy"}) {
		t.Errorf("two hotels: %+v", n)
	}
	if n := two.Needs(3)[0]; n.Resolution != Unique || n.Value != "Savoy" || n.Depth != 2 {
		t.Errorf("the hotel of this scope: %+v", n)
	}
}

func TestFaultsSayWhereAndWhatNext(t *testing.T) {
	const head = "version: 1\nscenarios:\n  - id: one\n    slots: {plan: {kind: enum, values: [A, B]}, num: {kind: number}, tier: {kind: enum, values: [X, Y]}}\n    turns:\n"
	const first = "      - {user: hello, sets: {plan: A, num: 3, tier: X}, expect: {mentions: {plan: A}}}\n"
	for _, c := range []struct{ name, body, want string }{
		{"unknown key", first + "      - {user: x, set: {plan: B}}\n", `s.yaml:7:19: scenarios[0].turns[1].set: unknown key`},
		{"unknown slot", first + "      - {user: x, sets: {plna: B}}\n", `s.yaml:7:32: scenarios[0].turns[1].sets.plna: names "plna", which is no slot of this scenario`},
		{"no such choice", first + "      - {user: x, sets: {plan: C}}\n", `has "C", which is no enum of plan`},
		{"no number", first + "      - {user: x, sets: {num: many}}\n", `has "many", which is no number of num`},
		{"used before it is introduced", "      - {user: x, implies: {plan: {from: plan}}}\n" + first, `refers to plan, which has no value at that turn`},
		{"a later turn", first + "      - {user: x, implies: {plan: {from: plan, as_of: 3}}}\n      - {user: z}\n", `refers to turn "3", which is no turn before this one`},
		{"a turn that is none", first + "      - {user: x, implies: {plan: {from: plan, as_of: begin}}}\n", `refers to turn "begin"`},
		{"another kind", first + "      - {user: x, implies: {tier: {from: plan}}}\n", `takes "A" from plan, which is no value of tier`},
		{"nothing to cancel", first + "      - {user: x, cancels: [num]}\n      - {user: z, cancels: [num]}\n", `cancels num, which has no value here`},
		{"sets and cancels", first + "      - {user: x, cancels: [num], sets: {num: 4}}\n", `cancels num, which the same turn sets`},
		{"sets and implies", first + "      - {user: x, implies: {num: {from: num}}, sets: {num: 4}}\n", `implies num, which the turn sets as well`},
		{"one value is not ambiguous", first + "      - {user: x, implies: {plan: {ambiguous: [A]}}}\n", `leaves nothing open with one value`},
		{"twice the same", first + "      - {user: x, implies: {plan: {contradicts: A}}}\n", `names the value "A" twice`},
		{"not missing", first + "      - {user: x, implies: {plan: missing}}\n", `plan is said to be missing, but it has a value here`},
		{"two sources", first + "      - {user: x, implies: {plan: {from: plan, missing: true}}}\n", `wants one source, got 2`},
		{"against the state", first + "      - {user: x, expect: {mentions: {plan: B}}}\n", `expects B of plan, which is A here`},
		{"forbids the state", first + "      - {user: x, expect: {not: {plan: A}}}\n", `forbids A of plan, which is its value here`},
		{"mentions what is open", first + "      - {user: x, implies: {plan: {ambiguous: [A, B]}}, expect: {mentions: {plan: A}}}\n", `which the reply has to ask for`},
		{"forbids what it must ask", first + "      - {user: x, implies: {plan: {ambiguous: [A, B]}}, forbids: [ask(plan)]}\n", `forbids to ask for plan, which the reply has to ask for`},
		{"clarifies nothing open", first + "      - {user: x, expect: {clarifies: plan}}\n", `wants a question for plan, which nothing in the turn leaves open`},
		{"forbids in other words", first + "      - {user: x, forbids: [plan]}\n", `has "plan", which forbids nothing`},
		{"an empty expectation", first + "      - {user: x, expect: {}}\n", `expects nothing`},
		{"nothing is expected", "      - {user: hello, sets: {plan: A, num: 3, tier: X}}\n", `expects nothing of any reply, so there is nothing to judge`},
		{"an unused slot", "      - {user: hello, sets: {plan: A, num: 3}, expect: {mentions: {plan: A}}}\n", `is a slot that no turn speaks of`},
	} {
		_, err := Read("s.yaml", []byte(head+c.body))
		var faults config.Faults
		if !errors.As(err, &faults) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", c.name, err, c.want)
			continue
		}
		for _, f := range faults {
			if f.Hint == "" || f.Line < 2 || f.Column < 1 {
				t.Errorf("%s: no place or no next step: %v", c.name, f)
			}
		}
	}
}

func TestSlotsAreChecked(t *testing.T) {
	for slots, want := range map[string]string{
		"{plan: {kind: enum, values: [A]}}":           "has 1 values, of which nothing can be told apart",
		"{plan: {kind: number, values: [1, 2]}}":      "lists values, but a slot of kind number reads them by itself",
		"{plan: {kind: enum, values: [A, [B, a]]}}":   `has the form "a" of another value, too`,
		"{plan: {kind: colour}}":                      "kind",
		"{plan: {kind: enum, values: [A, {b: c}]}}":   "wants a value, got a mapping",
		"{plan: {kind: enum, values: [A, [], null]}}": "wants",
	} {
		_, err := Read("s.yaml", []byte("version: 1\nscenarios:\n  - id: one\n    slots: "+slots+"\n    turns: [{user: x, sets: {plan: A}, expect: {mentions: {plan: A}}}]\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", slots, err, want)
		}
	}
}

func TestManyFaultsAreCounted(t *testing.T) {
	doc := "version: 1\nscenarios:\n  - id: one\n    slots: {n: {kind: number}}\n    turns:\n" + strings.Repeat("      - {user: x, sets: {m: 1}}\n", 60)
	_, err := Read("s.yaml", []byte(doc))
	var faults config.Faults
	if !errors.As(err, &faults) || len(faults) != config.MaxFaults || !strings.Contains(faults[len(faults)-1].What, "more faults") {
		t.Errorf("%d faults: %v", len(faults), err)
	}
	if _, err := Read("s.yaml", []byte("version: 1\nscenarios:\n  - {id: a, slots: {n: {kind: number}}, turns: [{user: x, sets: {n: 1}, expect: {mentions: {n: 1}}}]}\n  - {id: a, slots: {n: {kind: number}}, turns: [{user: x, sets: {n: 1}, expect: {mentions: {n: 1}}}]}\n")); err == nil || !strings.Contains(err.Error(), "is the id of an earlier scenario") {
		t.Errorf("two of one id: %v", err)
	}
}

// TestTheExampleHoldsItself: the reference replies of the examples do all that is
// expected.
func TestTheExampleHoldsItself(t *testing.T) {
	for _, s := range example(t) {
		if !s.Scripted() {
			t.Errorf("%s has turns without a reference reply", s.ID)
		}
		for i, turn := range s.Turns {
			if r := s.Judge(i, turn.Assistant); len(r.Misses) > 0 {
				t.Errorf("%s, turn %d, %s: %v", s.ID, i+1, turn.Assistant, r.Misses)
			}
		}
	}
}

// FuzzRead reads any text: it never panics, and what it accepts it writes and reads
// again to the same state.
func FuzzRead(f *testing.F) {
	data, err := os.ReadFile("../examples/dialogue/scenarios.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	text, err := Write(Generate(Spec{N: 2}, 1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("version: 1\nscenarios:\n  - {id: a, slots: {n: {kind: date}}, turns: [{user: x, sets: {n: 3月5日}, implies: {n: missing}, expect: {mentions: {n: 1}}}]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := Read("f.yaml", data)
		if err != nil {
			return
		}
		text, err := Write(list)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Read("f.yaml", text)
		if err != nil {
			t.Fatalf("what was written is not read: %v\n%s", err, text)
		}
		for i, s := range list {
			for k := range s.Turns {
				if d := cmp.Diff(s.State(k), again[i].State(k)); d != "" {
					t.Fatal(d)
				}
				s.Judge(k, s.Turns[k].User+" "+s.Turns[k].Assistant)
				s.ReadState(k, s.Turns[k].User)
			}
		}
	})
}

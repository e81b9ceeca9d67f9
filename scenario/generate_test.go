package scenario

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestASeedGivesOneSetOfScenarios(t *testing.T) {
	a, err := Write(Generate(Spec{N: 16}, 5))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Write(Generate(Spec{N: 16}, 5))
	if err != nil || string(a) != string(b) {
		t.Errorf("two sets of one seed (%v)", err)
	}
	list, err := Read("g.yaml", a)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range Generate(Spec{N: 16}, 5) {
		for k := range s.Turns {
			if d := cmp.Diff(s.State(k), list[i].State(k)); d != "" {
				t.Errorf("%s, turn %d, written and read: %s", s.ID, k+1, d)
			}
			if d := cmp.Diff(s.Needs(k), list[i].Needs(k)); d != "" {
				t.Errorf("%s, turn %d, written and read: %s", s.ID, k+1, d)
			}
		}
	}
	if more := Generate(Spec{N: 20}, 5); more[15].Turns[0].User != list[15].Turns[0].User {
		t.Error("more scenarios change those before")
	}
}

// TestNoTwoScenariosAreAlike: of 400 seeds no dialogue comes twice, and no first turn,
// which is what a model could remember.
func TestNoTwoScenariosAreAlike(t *testing.T) {
	dialogues, first := make(map[string]bool), make(map[string]int)
	twice := 0
	for seed := range uint64(400) {
		for _, s := range Generate(Spec{N: 8}, seed) {
			var text strings.Builder
			for _, turn := range s.Turns {
				text.WriteString(turn.User + "\n")
			}
			if dialogues[text.String()] {
				t.Errorf("seed %d: %s came before", seed, text.String())
			}
			dialogues[text.String()] = true
			if first[s.Turns[0].User]++; first[s.Turns[0].User] > 1 {
				twice++
			}
		}
	}
	if twice > len(first)/20 {
		t.Errorf("%d of %d first turns came before", twice, len(first))
	}
}

// TestScenariosHoldAllThatIsToBeMeasured: every domain and language has every kind of
// need and phase, dialogues of 3 to 8 turns, and values from far back.
func TestScenariosHoldAllThatIsToBeMeasured(t *testing.T) {
	for _, domain := range Domains() {
		for _, language := range []string{"en", "zh"} {
			seen := make(map[string]int)
			for _, s := range Generate(Spec{N: 60, Domains: []string{domain}, Languages: []string{language}}, 11) {
				if s.Domain != domain || s.Language != language || !strings.HasPrefix(s.ID, domain+"-"+language) || s.System == "" || !s.Scripted() {
					t.Fatalf("made %s: %s %s", s.ID, s.Domain, s.Language)
				}
				needs := 0
				seen[fmt.Sprint("turns ", len(s.Turns))]++
				for k := range s.Turns {
					for _, n := range s.Needs(k) {
						needs++
						seen[n.Resolution.String()]++
						if n.Depth >= 4 {
							seen["deep"]++
						}
					}
					for _, h := range s.State(k) {
						seen[string(h.Phase)]++
					}
				}
				if needs == 0 {
					t.Errorf("%s implies nothing", s.ID)
				}
			}
			for _, want := range []string{
				"unique", "derivable", "ambiguous", "missing", "deep", "activated", "persisting", "updating", "updated", "cancelled", "contradicted",
				"turns 3", "turns 4", "turns 5", "turns 6", "turns 7", "turns 8",
			} {
				if seen[want] == 0 {
					t.Errorf("%s in %s never has %s: %v", domain, language, want, seen)
				}
			}
		}
	}
	if n := len(Generate(Spec{N: 3, Least: 5, Most: 5}, 1)[2].Turns); n != 5 {
		t.Errorf("%d turns, want 5", n)
	}
}

// TestNamesOfSlotsDoNotMatter: slots under other names, in another order, are read the
// same.
func TestNamesOfSlotsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Generate(Spec{N: 8}, rapid.Uint64().Draw(t, "seed"))[rapid.IntRange(0, 7).Draw(t, "which")]
		names := rapid.Permutation(s.Slots.Keys()).Draw(t, "order")
		to := make(map[string]string)
		for i, n := range names {
			to[n] = fmt.Sprintf("xq%d", i)
		}
		o := renamed(s, names, to)
		reply := func(k int) string {
			var parts []string
			for _, h := range s.State(k) {
				if rapid.Bool().Draw(t, "says") {
					v := h.Value
					if len(h.Old) > 0 && rapid.Bool().Draw(t, "old") {
						v = h.Old[0]
					}
					parts = append(parts, v)
				}
			}
			return strings.Join(append(parts, s.Turns[k].Assistant), " · ")
		}
		for k := range s.Turns {
			text := reply(k)
			a, b := s.Judge(k, text), o.Judge(k, text)
			if len(a.Misses) != len(b.Misses) || len(a.Kept) != len(b.Kept) {
				t.Fatalf("%q: %v and %v", text, a.Misses, b.Misses)
			}
			for _, x := range a.Kept {
				i := slices.IndexFunc(b.Kept, func(y Kept) bool { return y.Slot == to[x.Slot] })
				if i < 0 || b.Kept[i].Standing != x.Standing || b.Kept[i].Phase != x.Phase {
					t.Fatalf("%q: %+v and %+v", text, x, b.Kept)
				}
			}
		}
	})
}

// renamed is a scenario whose slots have other names, in another order.
func renamed(s *Scenario, order []string, to map[string]string) *Scenario {
	o := &Scenario{ID: s.ID, Language: s.Language, Domain: s.Domain, System: s.System}
	for _, name := range order {
		slot, _ := s.Slots.Get(name)
		slot.Names = append([]string{name, strings.ReplaceAll(name, "_", " ")}, slot.Names...) // what replies may call it stays
		o.Slots.Set(to[name], slot)
	}
	for _, turn := range s.Turns {
		n := Turn{Name: turn.Name, User: turn.User, Assistant: turn.Assistant, Scope: turn.Scope}
		for k, v := range turn.Sets.All() {
			n.Sets.Set(to[k], v)
		}
		for k, v := range turn.Implies.All() {
			if v.From != "" {
				v.From = to[v.From]
			}
			n.Implies.Set(to[k], v)
		}
		for _, k := range turn.Cancels {
			n.Cancels = append(n.Cancels, to[k])
		}
		for _, f := range turn.Forbids {
			n.Forbids = append(n.Forbids, "ask("+to[strings.TrimSuffix(strings.TrimPrefix(f, "ask("), ")")]+")")
		}
		if e := turn.Expect; e != nil {
			n.Expect = &Expect{Clarifies: to[e.Clarifies]}
			for k, v := range e.Mentions.All() {
				n.Expect.Mentions.Set(to[k], v)
			}
			for k, v := range e.Not.All() {
				n.Expect.Not.Set(to[k], v)
			}
		}
		o.Turns = append(o.Turns, n)
	}
	if faults := o.compile(nil); len(faults) > 0 {
		panic(faults)
	}
	return o
}

// FuzzReplies reads hostile replies: it ends, and never panics.
func FuzzReplies(f *testing.F) {
	list := Generate(Spec{N: 8}, 2)
	f.Add("from Gold to Silver, or A-2? 三百个 ￥1,000 2027年1月1日", uint8(1))
	f.Add(strings.Repeat("{[\"", 300)+"is not $1,,,2.", uint8(4))
	f.Add("\xff\xfe 从从从 which do you mean?", uint8(7))
	f.Fuzz(func(t *testing.T, reply string, which uint8) {
		s := list[int(which)%len(list)]
		k := int(which) / len(list) % len(s.Turns)
		for _, u := range s.Judge(k, reply).Used {
			if u.Right && u.Asked || u.Asked && u.Assumed {
				t.Errorf("%q: %+v", reply, u)
			}
		}
		if kept, of := s.Retained(k, reply); kept > of {
			t.Errorf("%q retains %d of %d", reply, kept, of)
		}
		s.ReadState(k, reply)
		s.Residue(reply)
	})
}

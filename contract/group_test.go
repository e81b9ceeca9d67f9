package contract

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-llm/assay/config"
)

// TestTruthTable: a group is graded pass or fail exactly when every way in which
// the inconclusive members could turn out gives that answer.
func TestTruthTable(t *testing.T) {
	var grades func(n int) [][]Grade
	grades = func(n int) [][]Grade {
		if n == 0 {
			return [][]Grade{nil}
		}
		var out [][]Grade
		for _, rest := range grades(n - 1) {
			for _, g := range []Grade{Inconclusive, Pass, Fail} {
				out = append(out, append(slices.Clone(rest), g))
			}
		}
		return out
	}
	for n := 1; n <= 4; n++ {
		for k := 1; k <= n; k++ {
			for _, gs := range grades(n) {
				most, least := 0, 0
				for _, g := range gs {
					if g == Pass {
						least++
					}
					if g != Fail {
						most++
					}
				}
				want := Inconclusive
				switch {
				case least >= k:
					want = Pass
				case most < k:
					want = Fail
				}
				if got := atLeast(k, gs...); got != want {
					t.Errorf("%d of %v: %s, want %s", k, gs, got, want)
				}
				if all := Worst(gs...); k == n && all != want {
					t.Errorf("all of %v: Worst is %s, atLeast %s", gs, all, want)
				}
			}
		}
	}
}

// TestOppositeTwice: the opposite of the opposite demands the same.
func TestOppositeTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyClause(3).Draw(t, "clause")
		grade := map[string]bool{}
		for _, text := range needs {
			grade[text] = rapid.Bool().Draw(t, text)
		}
		holds := truth(c, grade)
		if got := truth(opposite(c), grade); got == holds {
			t.Fatalf("the opposite holds as the clause does: %v", got)
		}
		if got := truth(opposite(opposite(c)), grade); got != holds {
			t.Fatalf("the opposite of the opposite: %v, want %v", got, holds)
		}
	})
}

// needs are comparisons that are true or false as the test wants.
var needs = []string{"p99(ttft) <= 800ms", "p50(tpot) < 10ms", "rate(requests) >= 3/s", "share(completed) > 90%"}

func anyClause(depth int) *rapid.Generator[Clause] {
	return rapid.Custom(func(t *rapid.T) Clause {
		kind := "need"
		if depth > 0 {
			kind = rapid.SampledFrom([]string{"need", "all", "any", "not", "count"}).Draw(t, "kind")
		}
		members := func() []Clause { return rapid.SliceOfN(anyClause(depth-1), 1, 3).Draw(t, "members") }
		switch kind {
		case "all":
			return Clause{All: members()}
		case "any":
			return Clause{Any: members()}
		case "not":
			m := anyClause(depth-1).Draw(t, "member")
			return Clause{Not: &m}
		case "count":
			of := members()
			return Clause{Count: &Quorum{AtLeast: rapid.IntRange(1, len(of)).Draw(t, "least"), Of: of}}
		}
		n, err := ParseNeed(rapid.SampledFrom(needs).Draw(t, "need"))
		if err != nil {
			t.Fatal(err)
		}
		return Clause{Need: n}
	})
}

// truth evaluates a clause in two-valued logic, by the text of its comparisons.
func truth(c Clause, holds map[string]bool) bool {
	kind, members, k := c.group()
	if kind == "" {
		if is, ok := holds[c.Need.String()]; ok {
			return is
		}
		c.Need.Compare = c.Need.Compare.opposite()
		return !holds[c.Need.String()]
	}
	n := 0
	for _, m := range demanded(kind, members) {
		if truth(m, holds) {
			n++
		}
	}
	return n >= k
}

func TestUnionBound(t *testing.T) {
	rate := func(pass, fail float64) Result { return Result{WrongPass: pass, WrongFail: fail} }
	members := []Result{rate(.01, .02), rate(.03, .01), rate(.02, .05)}
	for _, tc := range []struct {
		k          int
		pass, fail float64
	}{{1, .06, .05}, {2, .05, .07}, {3, .03, .08}} {
		pass, fail := unionBound(members, tc.k)
		if math.Abs(pass-tc.pass) > 1e-12 || math.Abs(fail-tc.fail) > 1e-12 {
			t.Errorf("%d of 3: %v and %v, want %v and %v", tc.k, pass, fail, tc.pass, tc.fail)
		}
	}
}

// TestLintInGroups: lint reaches into every kind of group and points there.
func TestLintInGroups(t *testing.T) {
	c := decode(t, "version: 1\nclauses:\n  - not:\n      need: p99(ttft) <= 800ms\n  - count:\n      at_least: 1\n      of:\n        - need: max(tpot) <= 1s\n")
	got := Lint(c, nil)
	want := []config.Fault{{Line: 4, Column: 23, Path: "clauses[0].not.need"}, {Line: 8, Column: 17, Path: "clauses[1].count.of[0].need"}}
	if len(got) != len(want) {
		t.Fatalf("got %v", got)
	}
	for i, f := range got {
		if f.Line != want[i].Line || f.Column != want[i].Column || f.Path != want[i].Path {
			t.Errorf("%s, want %d:%d %s", f.Error(), want[i].Line, want[i].Column, want[i].Path)
		}
	}
}

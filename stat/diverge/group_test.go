package diverge

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestGroup(t *testing.T) {
	at := []float64{0, 1, 2, 10, 1.5, 2.9} // alike up to a distance of 1
	alike := func(i, j int) bool { return math.Abs(at[i]-at[j]) <= 1 }
	if got, want := Group(len(at), alike, true), []int{0, 0, 0, 1, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("chained: %v, want %v", got, want)
	}
	if got, want := Group(len(at), alike, false), []int{0, 0, 1, 2, 1, 3}; !slices.Equal(got, want) {
		t.Errorf("complete: %v, want %v: 0 and 2 differ, and must not be one class", got, want)
	}
	if got := Counts([]int{0, 1, 0, 2}); !slices.Equal(got, []int{2, 1, 1}) {
		t.Errorf("counts %v", got)
	}
	if got := Group(0, alike, false); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

func TestGroupInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "n")
		at := rapid.SliceOfN(rapid.IntRange(0, 12), n, n).Draw(t, "at")
		width := rapid.IntRange(0, 3).Draw(t, "width")
		asked := make(map[[2]int]bool)
		alike := func(i, j int) bool {
			if i >= j || asked[[2]int{i, j}] {
				t.Fatalf("asked of %d and %d: want each pair once, in order", i, j)
			}
			asked[[2]int{i, j}] = true
			return max(at[i]-at[j], at[j]-at[i]) <= width
		}
		chained := Group(n, alike, true)
		clear(asked)
		complete := Group(n, alike, false)
		for i := range n {
			for j := range i {
				near := max(at[i]-at[j], at[j]-at[i]) <= width
				switch {
				case near && chained[i] != chained[j]:
					t.Fatalf("%v: %d and %d are alike and in two chained classes %v", at, j, i, chained)
				case !near && complete[i] == complete[j]:
					t.Fatalf("%v: %d and %d differ and are in one class of %v", at, j, i, complete)
				case complete[i] == complete[j] && chained[i] != chained[j]:
					t.Fatalf("%v: one class of %v is two of %v", at, complete, chained)
				case width == 0 && (complete[i] == complete[j]) != (chained[i] == chained[j]):
					t.Fatalf("%v: equality is transitive, but the classes are %v and %v", at, complete, chained)
				}
			}
		}
	})
}

func TestAllRight(t *testing.T) {
	for _, c := range []struct {
		right, n, k int
		want        float64
	}{{5, 5, 5, 1}, {4, 5, 5, 0}, {4, 5, 3, 0.4}, {3, 5, 1, 0.6}, {2, 5, 3, 0}, {0, 5, 1, 0}} {
		if got, err := AllRight(c.right, c.n, c.k); err != nil || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("AllRight(%d, %d, %d) = %v, %v; want %v", c.right, c.n, c.k, got, err, c.want)
		}
	}
	for _, k := range []int{0, 6} { // of fewer samples than k it is undefined, and not 1
		if got, err := AllRight(5, 5, k); err == nil || !math.IsNaN(got) {
			t.Errorf("of k = %d: %v, %v; want NaN and an error", k, got, err)
		}
	}
}

// TestModalShareFlatters shows what the published rule rests on: a share that is too
// great by chance, where the agreement is not.
func TestModalShareFlatters(t *testing.T) {
	p := []float64{.4, .3, .3}
	var modal, agreement float64
	var walk func(counts []int, left int, chance float64)
	walk = func(counts []int, left int, chance float64) {
		if left == 0 {
			s, err := Classes(counts)
			if err != nil {
				t.Fatal(err)
			}
			modal, agreement = modal+chance*s.Modal, agreement+chance*s.Agreement
			return
		}
		for k := range counts {
			counts[k]++
			walk(counts, left-1, chance*p[k])
			counts[k]--
		}
	}
	walk(make([]int, len(p)), 5, 1)
	if modal < .5 || math.Abs(agreement-.34) > 1e-12 {
		t.Errorf("the modal share of .4 reads %.3f, and the agreement of .34 reads %.6f; want above .5, and .34", modal, agreement)
	}
}

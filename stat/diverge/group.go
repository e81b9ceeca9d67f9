package diverge

import (
	"fmt"
	"math"
)

// Group puts samples of one question into classes by a relation that says which two
// are alike, such as saying the same. alike is called at most once for each pair, i
// before j. The classes are numbered by their first sample.
//
// Complete linkage, the default, lets a sample into a class only if it is like all
// that are in it, in the order of the samples: no two of a class differ. With chain,
// whatever is alike through others is one class (the components of the graph, as
// union-find makes them): that does not depend on any order, and may put samples
// together that differ. Of a relation that is transitive both are the same.
func Group(n int, alike func(i, j int) bool, chain bool) []int {
	class := make([]int, n)
	known := make(map[[2]int]bool)
	same := func(i, j int) bool {
		is, ok := known[[2]int{i, j}]
		if !ok {
			is = alike(i, j)
			known[[2]int{i, j}] = is
		}
		return is
	}
	next := 0
	for j := range class {
		class[j] = -1
		for c := 0; c < next; c++ {
			if !admits(class[:j], c, j, same, chain) {
				continue
			}
			if class[j] < 0 {
				class[j] = c
			} else if chain { // j joins what was two
				for i := range j {
					if class[i] == c {
						class[i] = class[j]
					}
				}
			}
			if !chain {
				break
			}
		}
		if class[j] < 0 {
			class[j] = next
			next++
		}
	}
	return numbered(class)
}

// admits reports whether sample j belongs to class c: is like all of it, or like one.
func admits(class []int, c, j int, same func(i, j int) bool, chain bool) bool {
	some := false
	for i := range class {
		if class[i] != c {
			continue
		}
		switch is := same(i, j); {
		case is && chain:
			return true
		case !is && !chain:
			return false
		default:
			some = some || is
		}
	}
	return some
}

// numbered gives classes the numbers 0, 1, … in the order of their first samples.
func numbered(class []int) []int {
	to := make(map[int]int)
	out := make([]int, len(class))
	for i, c := range class {
		if _, ok := to[c]; !ok {
			to[c] = len(to)
		}
		out[i] = to[c]
	}
	return out
}

// Counts is how many samples each class has, for [Classes].
func Counts(class []int) []int {
	var counts []int
	for _, c := range class {
		for len(counts) <= c {
			counts = append(counts, 0)
		}
		counts[c]++
	}
	return counts
}

// AllRight estimates without bias the probability that k answers to one question
// are all right, from right ones among n: C(right, k) / C(n, k), which is written
// pass^k. It is not the k-th power of a share, which is too great.
func AllRight(right, n, k int) (float64, error) {
	if k < 1 || k > n || right < 0 || right > n {
		return math.NaN(), fmt.Errorf("the chance that %d are all right, of %d right among %d: want 1 to n answers", k, right, n)
	}
	p := 1.0
	for i := range k {
		p *= float64(right-i) / float64(n-i)
		if right <= i {
			return 0, nil
		}
	}
	return p, nil
}

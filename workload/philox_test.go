package workload

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// Known answers: kat_vectors of Random123 1.14 (D. E. Shaw Research), rows
// "philox4x32 10".
func TestPhiloxKnownAnswers(t *testing.T) {
	const f = 0xffffffff
	tests := []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{f, f, f, f}, [2]uint32{f, f}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0}, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	}
	for _, tt := range tests {
		if got := philox(tt.counter, tt.key); got != tt.want {
			t.Errorf("philox(%x, %x) = %x, want %x", tt.counter, tt.key, got, tt.want)
		}
	}
}

func TestStreamSequences(t *testing.T) {
	s := NewStream(42, "chat", "arrivals")
	for _, i := range []int64{0, 1, 1 << 40, math.MaxInt64} {
		src := s.At(i)
		if got, want := src.Uint64(), s.Uint64(i); got != want {
			t.Errorf("first number of sequence %d = %x, want %x", i, got, want)
		}
	}
	// All these are different sequences; 64-bit numbers of 4,000 draws repeat
	// with probability 10⁻¹².
	seen := map[uint64]string{}
	for _, k := range []struct {
		what string
		s    Stream
		i    int64
	}{
		{"base", NewStream(1, "a", "b"), 0},
		{"seed", NewStream(2, "a", "b"), 0},
		{"name", NewStream(1, "a", "c"), 0},
		{"names joined", NewStream(1, "ab", ""), 0},
		{"one name", NewStream(1, "ab"), 0},
		{"next", NewStream(1, "a", "b"), 1},
		{"far", NewStream(1, "a", "b"), 1 << 32},
	} {
		src := k.s.At(k.i)
		for range 500 {
			x := src.Uint64()
			if other, twice := seen[x]; twice {
				t.Fatalf("sequences %q and %q share a number", k.what, other)
			}
			seen[x] = k.what
		}
	}
}

func TestSourceDrivesRand(t *testing.T) {
	src := NewStream(7, "x").At(3)
	rng := rand.New(&src)
	const n = 100_000
	sum, squares := 0.0, 0.0
	for range n {
		u := rng.Float64()
		sum += u
		squares += u * u
	}
	mean, second := sum/n, squares/n
	if math.Abs(mean-0.5) > 4*math.Sqrt(1.0/12/n) || math.Abs(second-1.0/3) > 4*math.Sqrt(4.0/45/n) {
		t.Errorf("moments of 100,000 uniforms = %v, %v, want 1/2, 1/3 within 4 standard errors", mean, second)
	}
}

func TestLnIsTheLogarithm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(1e-300, 1e300).Draw(t, "x")
		if rapid.Bool().Draw(t, "unit") {
			x = rapid.Float64Range(0x1p-53, 1-0x1p-53).Draw(t, "u")
		}
		got, want := ln(x), math.Log(x)
		if math.Abs(got-want) > 2*math.Abs(math.Nextafter(want, math.Inf(1))-want) {
			t.Fatalf("ln(%v) = %v, want %v", x, got, want)
		}
	})
	if ln(1) != 0 {
		t.Errorf("ln(1) = %v", ln(1))
	}
}

func TestPermutationIsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3000).Draw(t, "n")
		round := rapid.Int64Range(0, 1<<40).Draw(t, "round")
		p := newPermutation(n, NewStream(rapid.Uint64().Draw(t, "seed"), "order"))
		seen := make([]bool, n)
		for j := range n {
			at := p.at(round, uint64(j))
			if at >= uint64(n) || seen[at] {
				t.Fatalf("at(%d, %d) = %d of %d came twice or is out of range", round, j, at, n)
			}
			seen[at] = true
		}
	})
}

// TestPermutationIsEven counts all orders of four cases over many seeds: each
// is as frequent as any other (chi-square, 23 degrees of freedom).
func TestPermutationIsEven(t *testing.T) {
	for _, n := range []int{3, 4} {
		counts := map[[4]uint64]int{}
		const draws = 24_000
		for seed := range uint64(draws / 4) {
			p := newPermutation(n, NewStream(seed, "order"))
			for round := range int64(4) {
				var order [4]uint64
				for j := range n {
					order[j] = p.at(round, uint64(j))
				}
				counts[order]++
			}
		}
		orders := 6.0
		if n == 4 {
			orders = 24
		}
		chi := 0.0
		for _, c := range counts {
			d := float64(c) - draws/orders
			chi += d * d / (draws / orders)
		}
		// 99.9 % points: 20.5 for 5 degrees of freedom, 49.7 for 23.
		if limit := map[int]float64{3: 20.5, 4: 49.7}[n]; float64(len(counts)) != orders || chi > limit {
			t.Errorf("%d cases: %d of %v orders, chi-square %.1f, want all and at most %v", n, len(counts), orders, chi, limit)
		}
	}
}

// TestPermutationHasNoNeighbours checks that neighbours are as rarely kept
// together as chance has it: once in a permutation, in the mean.
func TestPermutationHasNoNeighbours(t *testing.T) {
	const n, rounds = 400, 400
	p := newPermutation(n, NewStream(1, "order"))
	kept := 0
	for round := range int64(rounds) {
		for j := range uint64(n - 1) {
			if p.at(round, j+1) == p.at(round, j)+1 {
				kept++
			}
		}
	}
	// Poisson with mean 400 × 399/400; 5 standard deviations are 100.
	if kept < 300 || kept > 500 {
		t.Errorf("%d neighbours stayed together in %d rounds, want about %d", kept, rounds, rounds)
	}
}

func BenchmarkPhilox(b *testing.B) {
	s := NewStream(1, "x")
	var sum uint64
	i := int64(0)
	for b.Loop() {
		sum += s.Uint64(i)
		i++
	}
	_ = sum
}

package stat

import (
	"bytes"
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite golden files")

func histogramOf(t testing.TB, values ...float64) *Histogram {
	t.Helper()
	var h Histogram
	for _, x := range values {
		if err := h.Add(x); err != nil {
			t.Fatal(err)
		}
	}
	return &h
}

var anyValue = rapid.OneOf(rapid.Float64Range(0, 1e-12), rapid.Float64Range(0, 10), rapid.Float64Range(0, 1e13),
	rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, 2, 1.5, math.Inf(1), math.MaxFloat64, math.SmallestNonzeroFloat64}))

// The distribution function at edges is that of the values themselves.
func TestHistogramIsExactAtEdges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(anyValue, 0, 60).Draw(t, "xs")
		var h Histogram
		for _, x := range xs {
			if err := h.Add(x); err != nil {
				t.Fatal(err)
			}
		}
		at := edge(rapid.IntRange(0, overBucket).Draw(t, "edge"))
		want := 0.0
		for _, x := range xs {
			if x < at {
				want++
			}
		}
		if lo, hi := h.Below(at); lo != want || hi != want {
			t.Fatalf("Below(%v) = %v to %v, want %v", at, lo, hi, want)
		}
		x := anyValue.Draw(t, "x")
		want = 0
		for _, v := range xs {
			if v < x {
				want++
			}
		}
		if lo, hi := h.Below(x); lo > want || hi < want {
			t.Fatalf("Below(%v) = %v to %v, want %v within", x, lo, hi, want)
		}
	})
}

func TestHistogramQuantileIsWithinItsError(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, scale := range []float64{1e-6, 1, 1e6} {
		xs := make([]float64, 5000)
		for i := range xs {
			xs[i] = scale * math.Exp(2*r.NormFloat64())
		}
		h := histogramOf(t, xs...)
		slices.Sort(xs)
		for _, p := range []float64{0, 0.001, 0.5, 0.95, 0.99, 1} {
			want := xs[max(0, int(math.Ceil(p*float64(len(xs))))-1)]
			if got := h.Quantile(p); math.Abs(got/want-1) > 1.0/128 {
				t.Errorf("p%v = %v, want %v within 1/128", p, got, want)
			}
		}
	}
}

func TestHistogramMergesAndSubtracts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sessions := rapid.SliceOfN(rapid.SliceOfN(anyValue, 1, 20), 0, 20)
		draw := func(name string) *Histogram {
			var h Histogram
			for _, s := range sessions.Draw(t, name) {
				if err := h.Add(s...); err != nil {
					t.Fatal(err)
				}
			}
			return &h
		}
		a, b := draw("a"), draw("b")
		both := a.Clone()
		if err := both.Merge(b); err != nil {
			t.Fatal(err)
		}
		if both.N() != a.N()+b.N() {
			t.Fatalf("N = %v, want %v", both.N(), a.N()+b.N())
		}
		if err := both.Sub(b); err != nil {
			t.Fatal(err)
		}
		got, want := slices.Collect(both.Buckets()), slices.Collect(a.Buckets())
		if diff := cmp.Diff(want, got); diff != "" || both.N() != a.N() {
			t.Fatalf("a+b-b is not a:\n%s", diff)
		}
		sum := uint64(0)
		for _, n := range a.count {
			sum += n
		}
		if sum != a.total || a.total%unit != 0 {
			t.Fatalf("the counts add up to %d units, N is %d", sum, a.total)
		}
	})
}

func TestHistogramSessionWeighsOne(t *testing.T) {
	var h Histogram
	if err := errors.Join(h.Add(1, 1, 4), h.Add(4), h.Add(1, 4)); err != nil {
		t.Fatal(err)
	}
	if lo, hi := h.Below(2); math.Abs(lo-(2.0/3+0.5)) > 1e-12 || lo != hi || h.N() != 3 {
		t.Errorf("sum of fractions below 2 is %v to %v of %v, want 7/6 of 3", lo, hi, h.N())
	}
}

func TestHistogramRefusesWhatItCannotHold(t *testing.T) {
	h := histogramOf(t, 1, 2)
	before := h.Clone()
	for name, err := range map[string]error{
		"NaN":              h.Add(math.NaN()),
		"negative":         h.Add(1, -1),
		"empty":            h.Add(),
		"more than there":  h.Sub(histogramOf(t, 2, 3)),
		"same value twice": h.Sub(histogramOf(t, 2, 2)),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if diff := cmp.Diff(slices.Collect(before.Buckets()), slices.Collect(h.Buckets())); diff != "" {
		t.Errorf("an error changed the histogram:\n%s", diff)
	}
	var zero Histogram
	if got := zero.Quantile(0.5); !math.IsNaN(got) {
		t.Errorf("the median of nothing is %v", got)
	}
	if got := histogramOf(t, 1, math.Inf(1)).Quantile(0.9); !math.IsInf(got, 1) {
		t.Errorf("p90 of 1 and a failure is %v, want +Inf", got)
	}
}

func TestHistogramMemoryIsBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var h Histogram
	for range 50_000 {
		if err := h.Add(math.Float64frombits(r.Uint64() >> 1 % 0x7ff0000000000000)); err != nil {
			t.Fatal(err)
		}
	}
	if got := 8 * cap(h.count); got > 2*8*(overBucket+1) {
		t.Errorf("%d bytes of counts", got)
	}
	if got := testing.AllocsPerRun(100, func() { _ = h.Add(0.25) }); got != 0 {
		t.Errorf("adding allocates %v times", got)
	}
}

// The encoding outlives the process: version 1 is read for ever.
func TestHistogramReadsVersion1(t *testing.T) {
	want := histogramOf(t, 0, 1e-13, 0.25, 0.25, 1, 1.01, 3e12, math.Inf(1))
	if err := want.Add(0.5, 2, 8); err != nil {
		t.Fatal(err)
	}
	const file = "testdata/histogram-1.bin"
	if *update {
		data, err := want.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var h Histogram
	if err := h.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Collect(want.Buckets()), slices.Collect(h.Buckets())); diff != "" || h.N() != 9 {
		t.Errorf("N = %v, buckets:\n%s", h.N(), diff)
	}
	data[1]++
	if err := h.UnmarshalBinary(data); !errors.Is(err, ErrHistogram) || h.N() != 9 {
		t.Errorf("version 2: %v, N = %v", err, h.N())
	}
}

func FuzzHistogram(f *testing.F) {
	data, err := histogramOf(f, 0, 1, 2, math.Inf(1)).MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("H\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var h Histogram
		if err := h.UnmarshalBinary(data); err != nil {
			if !errors.Is(err, ErrHistogram) || h.N() != 0 {
				t.Fatalf("%v, N = %v", err, h.N())
			}
			return
		}
		again, err := h.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var h2 Histogram
		if err := h2.UnmarshalBinary(again); err != nil {
			t.Fatal(err)
		}
		third, err := h2.MarshalBinary()
		if err != nil || !bytes.Equal(again, third) {
			t.Fatalf("not a fixed point: %x, %x, %v", again, third, err)
		}
	})
}

func BenchmarkHistogramAdd(b *testing.B) {
	var h Histogram
	x := 0.001
	for b.Loop() {
		if x *= 1.1; x > 100 {
			x = 0.001
		}
		_ = h.Add(x)
	}
}

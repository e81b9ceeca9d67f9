package load

import (
	"maps"
	"math/bits"
	"slices"
	"time"
)

// histogram counts durations in log-linear buckets, 32 an octave: what it gives
// back is at most 3.2 % too large. Most seconds fill a few buckets, so that they
// are kept sparse. It feeds displays; verdicts use the records. The zero
// histogram is empty.
type histogram struct {
	counts map[int32]int64
	n      int64
	max    time.Duration
}

const subBuckets = 32 // of units of 1,024 ns

func bucket(d time.Duration) int32 {
	v := uint64(max(d, 0)) >> 10
	if v < subBuckets {
		return int32(v)
	}
	shift := bits.Len64(v) - 6
	return int32(shift*subBuckets) + int32(v>>shift)
}

// upper returns the smallest duration above the bucket.
func upper(i int32) time.Duration {
	if i < subBuckets {
		return time.Duration(i+1) << 10
	}
	shift := i/subBuckets - 1
	return time.Duration(i%subBuckets+subBuckets+1) << (shift + 10)
}

func (h *histogram) add(d time.Duration) {
	if h.counts == nil {
		h.counts = make(map[int32]int64)
	}
	h.counts[bucket(d)]++
	h.n++
	h.max = max(h.max, d)
}

// quantile returns the upper edge of the bucket that holds the p-quantile;
// negative when nothing was counted.
func (h *histogram) quantile(p float64) time.Duration {
	if h.n == 0 {
		return -1
	}
	rank := int64(p*float64(h.n-1)) + 1
	for _, i := range slices.Sorted(maps.Keys(h.counts)) {
		if rank -= h.counts[i]; rank <= 0 {
			return min(upper(i), h.max)
		}
	}
	return h.max
}

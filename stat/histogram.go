package stat

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
)

const (
	lowest     = -40 // buckets begin at 2^lowest ...
	highest    = 40  // ... and end below 2^highest
	mantissa   = 6   // 64 buckets an octave
	keyShift   = 52 - mantissa
	lowestKey  = (1023 + lowest) << mantissa
	overBucket = (highest-lowest)<<mantissa + 1
	// unit is one observation: it divides evenly by 1 to 16, so that the values
	// of one session share it exactly.
	unit = 720720

	histogramMagic   = 'H'
	histogramVersion = 1
)

// ErrHistogram is wrapped by every error of reading an encoded Histogram.
var ErrHistogram = errors.New("not a histogram of a known version")

// Histogram counts observations in log-linear buckets: 64 of equal width to an
// octave, from 2^-40 to 2^40 of whatever unit the values have, one bucket
// for what is smaller (zero included) and one for what is greater, +Inf
// included. Two histograms of any data have the same bucket edges. So they
// add up ([Histogram.Merge]) and subtract ([Histogram.Sub]) without error, and
// the empirical distribution function at an edge is exact, not an
// approximation: a count of values below an edge is what sorting them would
// give. Only a value itself is known to its bucket: [Histogram.Quantile] is off
// by at most 0.8 %.
//
// An observation may consist of several values, as the turns of a session are:
// it weighs 1 in all, split evenly over them. The histogram then holds, for
// each x, the sum over sessions of the fraction of their values that are at
// most x, which is what tests need whose unit is the session.
//
// It takes at most 41 kB, 5 kB for data within a factor of 1,000. The zero
// Histogram is empty and usable. It must not be used from several goroutines
// at once while one of them changes it.
//
// Note: t-digest and KLL sketches are smaller, but cannot be subtracted, and
// their distribution function is nowhere exact.
type Histogram struct {
	first int      // bucket of counts[0]
	count []uint64 // in units
	total uint64   // in units
}

// Bucket is a range of values and how many observations lie in it.
type Bucket struct {
	Lo, Hi float64 // Lo <= value < Hi; value = +Inf too where Hi is +Inf
	Count  float64 // whole, unless observations of several values were added
}

// bucketOf gives the bucket of a value that is not negative.
func bucketOf(x float64) int {
	switch i := int(math.Float64bits(x)>>keyShift) - lowestKey + 1; {
	case i < 1:
		return 0
	case i > overBucket:
		return overBucket
	default:
		return i
	}
}

// edge is the least value of a bucket; that of the bucket after the last is
// +Inf.
func edge(bucket int) float64 {
	switch {
	case bucket <= 0:
		return 0
	case bucket > overBucket:
		return math.Inf(1)
	}
	return math.Float64frombits(uint64(bucket-1+lowestKey) << keyShift)
}

// Add counts one observation: a value, or the values of one session, which
// share the weight of 1. Values are numbers that are not negative, or +Inf for
// one beyond any value. With NaN, a negative value or no value at all it is an
// error and nothing is counted: leave out what was not measured.
func (h *Histogram) Add(observation ...float64) error {
	if len(observation) == 0 {
		return errors.New("adding to a histogram: an observation without values; leave out what was not measured")
	}
	for _, x := range observation {
		if !(x >= 0) {
			return fmt.Errorf("adding to a histogram: %v; values are numbers from 0 to +Inf, so leave out what was not measured", x)
		}
	}
	if h.total > math.MaxUint64-unit {
		return errors.New("adding to a histogram: it is full")
	}
	k, given := uint64(len(observation)), uint64(0)
	for i, x := range observation {
		upTo := uint64(i+1) * unit / k // in all, exactly unit
		h.at(bucketOf(math.Abs(x)), upTo-given)
		given = upTo
	}
	h.total += unit
	return nil
}

// at adds to a bucket and widens the window of counts when needed.
func (h *Histogram) at(bucket int, units uint64) {
	switch {
	case len(h.count) == 0:
		h.first, h.count = bucket, []uint64{0}
	case bucket < h.first:
		h.count = append(make([]uint64, h.first-bucket, h.first-bucket+len(h.count)), h.count...)
		h.first = bucket
	case bucket >= h.first+len(h.count):
		h.count = append(h.count, make([]uint64, bucket-h.first-len(h.count)+1)...)
	}
	h.count[bucket-h.first] += units
}

// N is the number of observations.
func (h *Histogram) N() float64 { return float64(h.total) / unit }

// Merge adds the observations of another histogram.
func (h *Histogram) Merge(o *Histogram) error {
	if h.total > math.MaxUint64-o.total {
		return errors.New("merging histograms: the sum is too large")
	}
	total := h.total + o.total
	for i, n := range slices.Clone(o.count) {
		if n > 0 {
			h.at(o.first+i, n)
		}
	}
	h.total = total
	return nil
}

// Sub takes away the observations of another histogram, all of which must have
// been added to h before: a sliding window subtracts what it leaves behind.
// Otherwise it is an error and h stays as it was.
func (h *Histogram) Sub(o *Histogram) error {
	for i, n := range o.count {
		if n > h.of(o.first+i) {
			return fmt.Errorf("subtracting histograms: more observations from %v to %v than there are; subtract only what was added", edge(o.first+i), edge(o.first+i+1))
		}
	}
	total := h.total - o.total
	for i, n := range slices.Clone(o.count) {
		if n > 0 {
			h.count[o.first+i-h.first] -= n
		}
	}
	h.total = total
	return nil
}

// of is the count of a bucket in units.
func (h *Histogram) of(bucket int) uint64 {
	if i := bucket - h.first; i >= 0 && i < len(h.count) {
		return h.count[i]
	}
	return 0
}

// Clone gives a copy that shares nothing with h.
func (h *Histogram) Clone() *Histogram {
	return &Histogram{first: h.first, count: slices.Clone(h.count), total: h.total}
}

// Buckets goes through the buckets that hold something, in ascending order.
func (h *Histogram) Buckets() iter.Seq[Bucket] {
	return func(yield func(Bucket) bool) {
		for i, n := range h.count {
			if n > 0 && !yield(Bucket{edge(h.first + i), edge(h.first + i + 1), float64(n) / unit}) {
				return
			}
		}
	}
}

// Below brackets the number of observations below x: those in the buckets that
// end at x or before, and those in the buckets that begin before x. The two are
// equal where x is an edge.
func (h *Histogram) Below(x float64) (atLeast, atMost float64) {
	if !(x > 0) {
		return 0, 0
	}
	b, sure := bucketOf(x), uint64(0)
	for i, n := range h.count {
		if h.first+i >= b {
			break
		}
		sure += n
	}
	maybe := sure
	if edge(b) < x {
		maybe += h.of(b)
	}
	return float64(sure) / unit, float64(maybe) / unit
}

// Quantile gives the p-quantile, the least value that at least a share p of the
// observations do not exceed, as the middle of its bucket: off by at most
// 1/128 of itself. It is +Inf where the quantile is beyond 2^40, 0 where it is
// below 2^-40, and NaN without observations or with p outside [0, 1]. For
// bounds use [Sample.Quantile].
func (h *Histogram) Quantile(p float64) float64 {
	if h.total == 0 || !(p >= 0 && p <= 1) {
		return math.NaN()
	}
	want, sum := p*float64(h.total)*(1-1e-12), uint64(0)
	for i, n := range h.count {
		sum += n
		if sum == 0 || float64(sum) < want {
			continue
		}
		switch b := h.first + i; b {
		case 0:
			return 0
		case overBucket:
			return math.Inf(1)
		default:
			return (edge(b) + edge(b+1)) / 2
		}
	}
	return math.NaN()
}

// MarshalBinary encodes the histogram: the byte 'H', the version 1, and for
// each bucket that holds something, in ascending order, two unsigned varints
// (as in encoding/binary): its distance from the bucket before, the first one
// counted from bucket -1, and its count in units of 1/720720 observation.
// Bucket 0 holds what is below 2^-40; bucket 1+64*o+m what lies in
// [2^(o-40)*(1+m/64), 2^(o-40)*(1+(m+1)/64)); bucket 5121 what is 2^40 or more.
func (h *Histogram) MarshalBinary() ([]byte, error) {
	out, last := []byte{histogramMagic, histogramVersion}, -1
	for i, n := range h.count {
		if n > 0 {
			out = binary.AppendUvarint(out, uint64(h.first+i-last))
			out = binary.AppendUvarint(out, n)
			last = h.first + i
		}
	}
	return out, nil
}

// UnmarshalBinary replaces h by an encoded histogram. It refuses, with an error
// that wraps [ErrHistogram] and h as it was, everything that MarshalBinary
// does not write. It takes no more memory than any histogram, whatever the
// bytes.
func (h *Histogram) UnmarshalBinary(data []byte) error {
	if len(data) < 2 || data[0] != histogramMagic || data[1] != histogramVersion {
		return fmt.Errorf("reading a histogram: it does not begin with 'H' and version %d: %w", histogramVersion, ErrHistogram)
	}
	var n Histogram
	last, rest := -1, data[2:]
	for len(rest) > 0 {
		at := len(data) - len(rest)
		gap, a := binary.Uvarint(rest)
		if a <= 0 || gap < 1 || gap > overBucket+1 || last+int(gap) > overBucket {
			return fmt.Errorf("reading a histogram: byte %d begins no distance to a bucket: %w", at, ErrHistogram)
		}
		units, b := binary.Uvarint(rest[a:])
		if b <= 0 || units == 0 || units > math.MaxUint64-n.total {
			return fmt.Errorf("reading a histogram: byte %d begins no count: %w", at+a, ErrHistogram)
		}
		last += int(gap)
		n.at(last, units)
		n.total += units
		rest = rest[a+b:]
	}
	if n.total%unit != 0 {
		return fmt.Errorf("reading a histogram: the counts add up to no whole number of observations: %w", ErrHistogram)
	}
	*h = n
	return nil
}

package stat

import (
	"cmp"
	"math"
	"slices"
)

// ordered sorts a series and tells where each value stood in it. NaN is not
// allowed. Long series are sorted by digits, which takes a third of the time that
// comparisons take, and gives the places for nothing; very long ones have no places.
func ordered(series []float64) (sorted []float64, place []int32) {
	if len(series) > mostPlaced {
		sorted = slices.Clone(series)
		slices.Sort(sorted)
		return sorted, nil
	}
	items := make([]item, len(series))
	for i, x := range series {
		items[i] = item{keyOf(x), int32(i)}
	}
	if len(items) < leastByDigits {
		slices.SortFunc(items, func(a, b item) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.place, b.place)) })
	} else {
		items = byDigits(items)
	}
	sorted, place = make([]float64, len(items)), make([]int32, len(items))
	for i, it := range items {
		sorted[i], place[i] = series[it.place], it.place
	}
	return sorted, place
}

// item is a value's key and place.
type item struct {
	key   uint64
	place int32
}

// keyOf maps values to integers in the same order.
func keyOf(x float64) uint64 {
	b := math.Float64bits(x)
	if b>>63 == 1 {
		return ^b
	}
	return b | 1<<63
}

const (
	mostPlaced    = 1 << 20 // above so many values their places take too much memory
	leastByDigits = 2048    // below so many values comparisons are faster
	digitBits     = 11
	digits        = 6 // of a key of 64 bits
)

// byDigits sorts from the lowest digit to the highest, each pass keeping the order
// of the one before. It skips digits that all keys share.
func byDigits(items []item) []item {
	var counts [digits][1 << digitBits]int32
	for _, it := range items {
		for d := range digits {
			counts[d][it.key>>(d*digitBits)&(1<<digitBits-1)]++
		}
	}
	other := make([]item, len(items))
	for d := range digits {
		at := &counts[d]
		if at[items[0].key>>(d*digitBits)&(1<<digitBits-1)] == int32(len(items)) {
			continue
		}
		sum := int32(0)
		for i, n := range at {
			at[i], sum = sum, sum+n
		}
		for _, it := range items {
			digit := it.key >> (d * digitBits) & (1<<digitBits - 1)
			other[at[digit]] = it
			at[digit]++
		}
		items, other = other, items
	}
	return items
}

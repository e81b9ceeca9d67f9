package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/bits"
)

// philox is Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel Random
// Numbers: As Easy as 1, 2, 3" (SC'11): a keyed bijection of 128-bit counters
// whose outputs pass BigCrush. Draw i needs no draw before it.
func philox(c [4]uint32, k [2]uint32) [4]uint32 {
	const (
		m0, m1 = 0xd2511f53, 0xcd9e8d57
		w0, w1 = 0x9e3779b9, 0xbb67ae85
	)
	c0, c1, c2, c3, k0, k1 := c[0], c[1], c[2], c[3], k[0], k[1]
	for range 10 {
		p, q := uint64(c0)*m0, uint64(c2)*m1
		c0, c1, c2, c3 = uint32(q>>32)^c1^k0, uint32(q), uint32(p>>32)^c3^k1, uint32(p)
		k0 += w0
		k1 += w1
	}
	return [4]uint32{c0, c1, c2, c3}
}

// Stream is a named family of random sequences: sequence i of a stream is a
// pure function of (seed, names, i). Streams of different names are
// independent, so a draw more in one moves nothing in another. The zero Stream
// is a stream too, but not one that NewStream returns. A Stream is a value and
// safe for concurrent use.
type Stream struct{ key [2]uint32 }

// NewStream returns the stream of these names. Its key is the hash of the seed
// and the names, each with its length: two streams share a key with probability
// 2⁻⁶⁴.
func NewStream(seed uint64, names ...string) Stream {
	b := binary.LittleEndian.AppendUint64([]byte("assay.stream/1"), seed)
	for _, n := range names {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(n)))
		b = append(b, n...)
	}
	sum := sha256.Sum256(b)
	return Stream{key: [2]uint32{binary.LittleEndian.Uint32(sum[:]), binary.LittleEndian.Uint32(sum[4:])}}
}

// At returns sequence i of the stream, at its start.
func (s Stream) At(i int64) Source { return Source{key: s.key, i: uint64(i)} }

// Uint64 returns the first number of sequence i.
func (s Stream) Uint64(i int64) uint64 {
	x := philox([4]uint32{uint32(i), uint32(uint64(i) >> 32), 0, 0}, s.key)
	return uint64(x[0]) | uint64(x[1])<<32
}

// uniform returns the first number of sequence i as one of the 2⁵² midpoints of
// (0, 1): never 0, never 1, and exact in a float64.
func (s Stream) uniform(i int64) float64 {
	return (float64(s.Uint64(i)>>12) + 0.5) / (1 << 52)
}

// below returns the first number of sequence i as a number in [0, n), n > 0. Its
// bias is at most n/2⁶⁴.
func (s Stream) below(i int64, n uint64) uint64 {
	hi, _ := bits.Mul64(s.Uint64(i), n)
	return hi
}

// Source is one sequence of a Stream. It implements rand.Source of
// math/rand/v2 and has 2⁶⁴ numbers. It is not safe for concurrent use.
type Source struct {
	key   [2]uint32
	i     uint64 // which sequence
	next  uint64 // which block of it comes next
	spare uint64
	full  bool // spare is the second half of the last block
}

// Uint64 returns the next number.
func (s *Source) Uint64() uint64 {
	if s.full {
		s.full = false
		return s.spare
	}
	x := philox([4]uint32{uint32(s.i), uint32(s.i >> 32), uint32(s.next), uint32(s.next >> 32)}, s.key)
	s.next++
	s.spare, s.full = uint64(x[2])|uint64(x[3])<<32, true
	return uint64(x[0]) | uint64(x[1])<<32
}

// unit is the fixed point of accumulated exponential gaps: sums of integers are
// exact in any order, and 2³⁰ mean gaps still fit with room to spare.
const (
	unitBits = 33
	unit     = 1 << unitBits
)

// exponential returns draw i as an exponential variate of mean 1, in units of
// 2⁻³³.
func (s Stream) exponential(i int64) uint64 {
	return uint64(math.Round(float64(-ln(s.uniform(i)) * unit)))
}

// ln is the natural logarithm of a positive normal number, by the algorithm of
// FreeBSD's e_log.c (error < 1 ulp), which package math uses too.
//
// Note: math.Log is assembly on some processors, and the compiler may fuse a
// product with a sum on others; both move the last bit. Each explicit
// conversion here forbids that, so that one seed gives one plan everywhere.
func ln(x float64) float64 {
	const (
		ln2Hi = 6.93147180369123816490e-01
		ln2Lo = 1.90821492927058770002e-10
		l1    = 6.666666666666735130e-01
		l2    = 3.999999999940941908e-01
		l3    = 2.857142874366239149e-01
		l4    = 2.222219843214978396e-01
		l5    = 1.818357216161805012e-01
		l6    = 1.531383769920937332e-01
		l7    = 1.479819860511658591e-01
	)
	f1, exp := math.Frexp(x)
	if f1 < math.Sqrt2/2 {
		f1 *= 2
		exp--
	}
	f, k := f1-1, float64(exp)
	s := f / (2 + f)
	s2 := float64(s * s)
	s4 := float64(s2 * s2)
	t1 := float64(s2 * (l1 + float64(s4*(l3+float64(s4*(l5+float64(s4*l7)))))))
	t2 := float64(s4 * (l2 + float64(s4*(l4+float64(s4*l6)))))
	half := float64(0.5 * float64(f*f))
	return float64(k*ln2Hi) - ((half - (float64(s*(half+(t1+t2))) + float64(k*ln2Lo))) - f)
}

// permutation is a bijection of [0, n), drawn anew for each round: a Feistel
// network over the least power of two that holds n, walked until it lands below
// n (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002).
// It needs no memory and no order of access, so workers can share it.
type permutation struct {
	n    uint64
	bits uint
	key  Stream
}

func newPermutation(n int, key Stream) permutation {
	return permutation{n: uint64(n), bits: uint(max(2, bits.Len64(uint64(n)-1))), key: key}
}

// at returns where position j of the given round goes. A walk visits each value
// at most once and the domain is less than twice n (four values for n = 1 and
// 2), so it ends, after two steps in the mean at worst.
func (p permutation) at(round int64, j uint64) uint64 {
	for {
		if j = p.mix(round, j); j < p.n {
			return j
		}
	}
}

// mix is the Feistel network: ten rounds, with halves that differ by a bit when
// the width is odd.
func (p permutation) mix(round int64, x uint64) uint64 {
	low := p.bits / 2
	high := p.bits - low
	a, b := x>>low, x&(1<<low-1) // a has high bits, b has low bits
	for r := range uint32(10) {
		f := philox([4]uint32{uint32(round), uint32(uint64(round) >> 32), uint32(b), r}, p.key.key)
		a ^= uint64(f[0]) & (1<<high - 1)
		a, b = b, a
		low, high = high, low
	}
	return a<<low | b
}

package overlap

import (
	"hash/maphash"
	"math/bits"
	"unicode/utf8"
)

// seed keys the hashes of this process, so that nobody can choose words that
// collide. No result depends on it.
var (
	seed    = maphash.MakeSeed()
	pairKey = maphash.Comparable(seed, 0) | 1
)

// vocabulary numbers the words of one segment.
type vocabulary struct {
	slots []slot
	mark  uint32 // slots of another mark are empty
	text  []byte
	ends  []int
}

type slot struct {
	hash uint32
	mark uint32
	id   uint32
}

// reset forgets all words.
func (v *vocabulary) reset() {
	if v.mark++; v.mark == 0 || len(v.slots) > 1<<16 {
		v.slots, v.mark = nil, 1
	}
	v.text, v.ends = v.text[:0], v.ends[:0]
}

// words appends the numbers of the words of a text, which are between spaces.
func (v *vocabulary) words(dst []uint32, text []byte) []uint32 {
	for from := 0; from < len(text); {
		to := from
		next := len(text)
		for to < len(text) {
			if c := text[to]; c < utf8.RuneSelf {
				if asciiSpace[c] {
					next = to + 1
					break
				}
				to++
				continue
			}
			r, n := utf8.DecodeRune(text[to:])
			if isSpace(r) {
				next = to + n
				break
			}
			to += n
		}
		if to > from {
			dst = append(dst, v.word(text[from:to]))
		}
		from = next
	}
	return dst
}

func (v *vocabulary) word(w []byte) uint32 {
	if 2*(len(v.ends)+1) > len(v.slots) {
		v.grow()
	}
	h := uint32(maphash.Bytes(seed, w))
	for i := h; ; i++ {
		s := &v.slots[i&uint32(len(v.slots)-1)]
		if s.mark != v.mark {
			*s = slot{h, v.mark, uint32(len(v.ends))}
			v.text = append(v.text, w...)
			v.ends = append(v.ends, len(v.text))
			return s.id
		}
		if s.hash == h && string(v.at(s.id)) == string(w) {
			return s.id
		}
	}
}

func (v *vocabulary) at(id uint32) []byte {
	from := 0
	if id > 0 {
		from = v.ends[id-1]
	}
	return v.text[from:v.ends[id]]
}

func (v *vocabulary) grow() {
	old := v.slots
	v.slots = make([]slot, max(64, 2*len(old)))
	for _, s := range old {
		if s.mark != v.mark {
			continue
		}
		i := s.hash
		for v.slots[i&uint32(len(v.slots)-1)].mark == v.mark {
			i++
		}
		v.slots[i&uint32(len(v.slots)-1)] = s
	}
}

// ngrams counts the n-grams that a hypothesis shares with references. An n-gram
// is numbered by its place in a table, where it lies under the number of its
// first n-1 words and its last word: no n-gram is compared or hashed as a whole.
type ngrams struct {
	slots []ngram
	shift int // of a hash, to a place in slots
	mark  uint32
	hyp   []uint32
	refs  [][]uint32
	out   []int
}

// ngram counts one: in the hypothesis, in the reference at hand, and most in
// any reference.
type ngram struct {
	key            uint64
	mark           uint32 // another mark than that of the table: the place is empty
	hyp, ref, most uint32
	at             uint32 // which reference is at hand
}

// lost numbers n-grams that have no match, nor has what they begin.
const lost = ^uint32(0)

// matches returns, for n from 1 to order, how many n-grams of the hypothesis
// have a partner in the references: each at most as often as in the reference
// that has most of it. The result is valid until the next call.
func (g *ngrams) matches(hyp []uint32, refs [][]uint32, order int) []int {
	g.hyp = resize(g.hyp, len(hyp))
	for len(g.refs) < len(refs) {
		g.refs = append(g.refs, nil)
	}
	for k, r := range refs {
		g.refs[k] = resize(g.refs[k], len(r))
	}
	g.out = g.out[:0]
	for n := 1; n <= order; n++ {
		found := g.order(n, hyp, refs)
		g.out = append(g.out, found)
		if found == 0 {
			for len(g.out) < order {
				g.out = append(g.out, 0)
			}
		}
		if len(g.out) == order {
			break
		}
	}
	return g.out
}

// order counts the n-grams, given the numbers of the (n-1)-grams in g.hyp and
// g.refs, where it leaves those of the n-grams.
func (g *ngrams) order(n int, hyp []uint32, refs [][]uint32) int {
	g.reset(len(hyp))
	numbers := g.hyp
	for i := 0; i+n <= len(hyp); i++ {
		if n == 1 {
			numbers[i] = 0
		} else if numbers[i] == lost || numbers[i+1] == lost {
			numbers[i] = lost
			continue
		}
		at, _ := g.find(numbers[i], hyp[i+n-1], true)
		g.slots[at].hyp++
		numbers[i] = at
	}
	found := 0
	for k, ref := range refs {
		numbers := g.refs[k]
		for i := 0; i+n <= len(ref); i++ {
			if n == 1 {
				numbers[i] = 0
			} else if numbers[i] == lost || numbers[i+1] == lost {
				numbers[i] = lost
				continue
			}
			at, ok := g.find(numbers[i], ref[i+n-1], false)
			if numbers[i] = at; !ok {
				numbers[i] = lost
				continue
			}
			c := &g.slots[at]
			if c.at != uint32(k)+1 {
				c.at, c.ref = uint32(k)+1, 0
			}
			if c.ref++; c.ref > c.most {
				if c.most = c.ref; c.most <= c.hyp {
					found++
				}
			}
		}
	}
	for i := 0; i+n <= len(hyp); i++ {
		if at := numbers[i]; at != lost && g.slots[at].most == 0 {
			numbers[i] = lost
		}
	}
	return found
}

// reset makes room for so many n-grams.
func (g *ngrams) reset(n int) {
	size := 64
	for size < 2*n {
		size *= 2
	}
	// A table for one long segment would cost all that follow their cache.
	if g.mark++; g.mark == 0 || len(g.slots) < size || len(g.slots) > max(1<<12, 16*size) {
		g.slots, g.mark = make([]ngram, size), 1
		g.shift = 64 - bits.TrailingZeros(uint(size))
	}
}

// find looks for the place of an n-gram, which it takes if so told. Multiplying by a
// secret odd number is universal hashing: nobody can choose text that collides.
func (g *ngrams) find(prefix, last uint32, take bool) (at uint32, ok bool) {
	key := uint64(prefix)<<32 | uint64(last)
	slots := g.slots
	for i := key * pairKey >> g.shift; ; i++ {
		i &= uint64(len(slots) - 1)
		s := &slots[i]
		if s.mark != g.mark {
			if take {
				*s = ngram{key: key, mark: g.mark}
			}
			return uint32(i), take
		}
		if s.key == key {
			return uint32(i), true
		}
	}
}

func resize(s []uint32, n int) []uint32 {
	if cap(s) < n {
		return make([]uint32, n, 2*n)
	}
	return s[:n]
}

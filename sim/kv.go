package sim

// pool is a paged KV cache: blocks of a fixed number of tokens, counted by
// reference, the unreferenced ones in the order in which they will be reused. A
// full block may carry the hash of all tokens up to its end; while it is not
// reused, a later prompt with the same beginning finds it there.
type pool struct {
	blocks  []block
	free    int   // length of the list
	first   int32 // least recently used; none when empty
	last    int32
	caching bool
	sealed  map[uint64]int32
}

type block struct {
	refs       int32
	prev, next int32 // in the free list
	hash       uint64
}

const none = int32(-1)

func newPool(size int, caching bool) *pool {
	p := &pool{blocks: make([]block, size), first: none, last: none, caching: caching, sealed: map[uint64]int32{}}
	for i := range p.blocks {
		p.push(int32(i))
	}
	return p
}

func (p *pool) used() int { return len(p.blocks) - p.free }

// cached returns how many leading blocks of the chain are in the cache.
func (p *pool) cached(chain []uint64) int {
	if !p.caching {
		return 0
	}
	for i, h := range chain {
		if _, ok := p.sealed[h]; !ok {
			return i
		}
	}
	return len(chain)
}

// take returns the cached blocks of a chain, of which all are in the cache,
// followed by n fresh ones; ok is false, and nothing changed, when there are
// not enough.
func (p *pool) take(dst []int32, chain []uint64, n int) (blocks []int32, ok bool) {
	idle := 0
	for _, h := range chain {
		if p.blocks[p.sealed[h]].refs == 0 {
			idle++
		}
	}
	if p.free-idle < n {
		return dst, false
	}
	for _, h := range chain {
		id := p.sealed[h]
		if p.blocks[id].refs == 0 {
			p.unlink(id)
		}
		p.blocks[id].refs++
		dst = append(dst, id)
	}
	for range n {
		id := p.first
		p.unlink(id)
		b := &p.blocks[id]
		if b.hash != 0 {
			delete(p.sealed, b.hash)
			b.hash = 0
		}
		b.refs = 1
		dst = append(dst, id)
	}
	return dst, true
}

// seal names a block that will be full by the end of the step. Of two blocks
// with the same content the first keeps the name.
func (p *pool) seal(id int32, hash uint64) {
	if !p.caching || p.blocks[id].hash != 0 {
		return
	}
	if _, taken := p.sealed[hash]; !taken {
		p.sealed[hash] = id
		p.blocks[id].hash = hash
	}
}

// release drops a sequence's references, its last block first, so that the
// beginnings of sequences, which are what others share, stay longest.
func (p *pool) release(blocks []int32) {
	for i := len(blocks) - 1; i >= 0; i-- {
		b := &p.blocks[blocks[i]]
		b.refs--
		if b.refs == 0 {
			p.push(blocks[i])
		}
	}
}

// clear forgets all names: nothing is found in the cache any more.
func (p *pool) clear() {
	clear(p.sealed)
	for i := range p.blocks {
		p.blocks[i].hash = 0
	}
}

func (p *pool) push(id int32) {
	b := &p.blocks[id]
	b.prev, b.next = p.last, none
	if p.last == none {
		p.first = id
	} else {
		p.blocks[p.last].next = id
	}
	p.last = id
	p.free++
}

func (p *pool) unlink(id int32) {
	b := &p.blocks[id]
	if b.prev == none {
		p.first = b.next
	} else {
		p.blocks[b.prev].next = b.next
	}
	if b.next == none {
		p.last = b.prev
	} else {
		p.blocks[b.next].prev = b.prev
	}
	p.free--
}

package llm

import "sync"

// readBuffer is the size of one read: large, so that the server is never held
// back by us.
const readBuffer = 64 << 10

var buffers = sync.Pool{New: func() any { return new([readBuffer]byte) }}

// buffer is what a connection has read and not yet used. Its memory is lent: ten
// thousand streams that wait for their next token need none, and a few buffers
// that go from hand to hand stay in the processor's cache. The zero buffer is
// empty.
type buffer struct {
	mem  *[readBuffer]byte // nil: none
	r, n int               // unread bytes are mem[r:n]
}

func (b *buffer) unread() []byte {
	if b.mem == nil {
		return nil
	}
	return b.mem[b.r:b.n]
}

// space returns where the next read may write to. It is empty when the buffer is
// full of unread bytes.
func (b *buffer) space() []byte {
	switch {
	case b.mem == nil:
		b.mem = buffers.Get().(*[readBuffer]byte)
	case b.r == b.n:
		b.r, b.n = 0, 0
	case b.n == len(b.mem):
		b.n = copy(b.mem[:], b.mem[b.r:])
		b.r = 0
	}
	return b.mem[b.n:]
}

// settle gives the memory back if nothing in it is unread.
func (b *buffer) settle() {
	if b.r == b.n {
		b.drop()
	}
}

func (b *buffer) drop() {
	if b.mem != nil {
		buffers.Put(b.mem)
	}
	*b = buffer{}
}

package check

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"math"
)

// Key names a question to an endpoint: the hex SHA-256 of the endpoint's
// identity and of everything that is asked, the replicate included. Answers are
// remembered under it, so two repetitions of one question are never served by
// one answer.
func Key(endpoint string, q *Question) string {
	k := keyer{sha256.New()}
	k.text("assay.question/1")
	k.text(endpoint)
	k.number(uint64(len(q.Messages)))
	for _, m := range q.Messages {
		k.text(m.Role)
		k.text(m.Content)
	}
	k.text(q.Prompt)
	k.number(uint64(q.MaxTokens))
	k.real(q.Temperature)
	k.real(q.TopP)
	if k.flag(q.Seed != nil); q.Seed != nil {
		k.number(uint64(*q.Seed))
	}
	k.number(uint64(len(q.Stop)))
	for _, s := range q.Stop {
		k.text(s)
	}
	k.number(uint64(q.TopLogprobs))
	k.text(string(q.Schema))
	k.number(uint64(q.Replicate))
	if q.Score {
		k.text("score") // at the end, so that other questions keep the keys that they had
	}
	if q.Private { // others have the keys that they had before there were any
		k.text("private")
	}
	return hex.EncodeToString(k.h.Sum(nil))
}

// keyer writes numbers and texts with their lengths, so that no two questions
// have one encoding.
type keyer struct{ h hash.Hash }

func (k keyer) number(n uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	k.h.Write(b[:])
}

func (k keyer) text(s string) {
	k.number(uint64(len(s)))
	k.h.Write([]byte(s))
}

func (k keyer) flag(is bool) {
	n := uint64(0)
	if is {
		n = 1
	}
	k.number(n)
}

func (k keyer) real(x *float64) {
	if k.flag(x != nil); x != nil {
		k.number(math.Float64bits(*x))
	}
}

package corpus

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"slices"
)

// Message is one turn of a dialogue.
type Message struct {
	Role    string // system, developer, user or assistant
	Content string // valid UTF-8
}

// Case is one prompt or dialogue with what is expected of it. It has either
// Messages or a Prompt. A Case of a Set is read-only: sets are shared.
type Case struct {
	ID        string            // unique in its set
	Messages  []Message         // for chat; the last one is the user's
	Prompt    string            // for completions; exclusive with Messages
	MaxTokens int64             // limit of output tokens that this case asks for; 0: none
	Expect    string            // reference answer; "": none
	Labels    map[string]string // free dimensions; nil: none
}

// Set is a list of cases in the order of their file, or a trace. It is immutable
// after Read, and then safe for concurrent use.
type Set struct {
	Name  string
	Cases []Case
	Trace *Trace // of a trace, which has no Cases; else nil

	// Traffic is a model of clients (servegen), which has neither Cases nor a Trace.
	Traffic *Traffic

	Digest string // hex SHA-256 over the content of all cases or rows in order; the name is no part of it

	Format  string   // the format that was read: assay, sharegpt, openai, qa, ifeval, advbench, harmbench, xstest, azure, burstgpt, mooncake or servegen
	Skipped int      // bad rows that were left out: at most one in a thousand
	Faults  []*Fault // the first of them, at most 10
}

// digest returns the hex SHA-256 of the cases' canonical encoding: a version
// tag, the number of cases, then every field as a length and bytes. Lengths
// make it injective: no two sets of different content have one encoding.
func digest(cases []Case) string {
	d := digester{h: sha256.New()}
	d.text("assay.set/1")
	d.number(uint64(len(cases)))
	for i := range cases {
		c := &cases[i]
		d.text(c.ID)
		d.number(uint64(len(c.Messages)))
		for _, m := range c.Messages {
			d.text(m.Role)
			d.text(m.Content)
		}
		d.text(c.Prompt)
		d.number(uint64(c.MaxTokens))
		d.text(c.Expect)
		d.number(uint64(len(c.Labels)))
		for _, k := range slices.Sorted(maps.Keys(c.Labels)) {
			d.text(k)
			d.text(c.Labels[k])
		}
	}
	d.flush()
	return hex.EncodeToString(d.h.Sum(nil))
}

// digester feeds a hash in chunks: a call for each short field would cost more
// than the hashing.
type digester struct {
	h   hash.Hash
	buf []byte
}

func (d *digester) number(n uint64) { d.buf = binary.AppendUvarint(d.buf, n) }

func (d *digester) text(s string) {
	d.number(uint64(len(s)))
	d.buf = append(d.buf, s...)
	if len(d.buf) >= 1<<14 {
		d.flush()
	}
}

func (d *digester) flush() {
	d.h.Write(d.buf)
	d.buf = d.buf[:0]
}

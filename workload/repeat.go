package workload

import (
	"hash/maphash"

	"github.com/assay-llm/assay/corpus"
)

// The bounds of Repeats.
const (
	repeatShots = 10_000
	repeatBytes = 16 << 20
	repeatBlock = 64 // bytes: about a block of 16 tokens
	answerBytes = 8  // of a token of an answer that a dialogue goes on with, rather too many
)

// Repeats returns the share of the prompts' text that stands at the beginning of an
// earlier prompt of the same plan, in whole blocks of 64 bytes: about the share of prompt
// tokens that a prefix cache without limit finds again although it was empty before. It
// looks at the first 10,000 measured shots, or 16 MiB of text. A dialogue that goes on
// repeats all that was said in it.
func (p *Plan) Repeats() float64 {
	seed := maphash.MakeSeed()
	seen := make(map[uint64]bool)
	before := make(map[string]int) // bytes of the dialogues so far, by session
	var repeated, total, shots int
	for s := range p.Stripe(0, 1) {
		if shots++; shots > repeatShots || total > repeatBytes {
			break
		}
		text := promptText(&s)
		if s.History && s.Turn > 0 {
			repeated += before[s.Session]
			total += before[s.Session] + len(text)
		} else {
			total += len(text)
			repeated += repeatedBytes(seed, seen, text)
		}
		if s.Turns > 0 {
			before[s.Session] += len(text) + answerBytes*int(s.MaxTokens)
		}
	}
	if total == 0 {
		return 0
	}
	return float64(repeated) / float64(total)
}

// promptText is what a shot asks, as one text.
func promptText(s *Shot) []byte {
	text := []byte(s.Prompt)
	for _, m := range s.Messages {
		text = append(appendMessage(text, m), '\n')
	}
	return text
}

func appendMessage(b []byte, m corpus.Message) []byte {
	b = append(append(b, m.Role...), ':')
	return append(b, m.Content...)
}

// repeatedBytes returns how many bytes at the beginning of a text, in whole blocks, began an
// earlier one, and enters its blocks. A block is known by all that stands before its end.
func repeatedBytes(seed maphash.Seed, seen map[uint64]bool, text []byte) (repeated int) {
	var h maphash.Hash
	h.SetSeed(seed)
	known := true
	for end := repeatBlock; end <= len(text); end += repeatBlock {
		_, _ = h.Write(text[end-repeatBlock : end])
		sum := h.Sum64()
		if known = known && seen[sum]; known {
			repeated = end
		}
		seen[sum] = true
	}
	return repeated
}

package sim

import (
	"math/bits"
	"unicode/utf8"
)

// Token identifies a token: equal texts of tokens have equal ids.
type Token uint32

const (
	maxWord   = 12 // bytes of ASCII letters in one token
	maxDigits = 3
)

// Tokens cuts text into tokens by a fixed rule: a run of ASCII letters makes one
// token for each 12 of them, a run of digits one for each 3, every other
// character one; a single space belongs to the letters, digits or character that
// follow it. It is not the tokenisation of any model, but common English words
// cost one token each as they do in most, and it is the same everywhere.
func Tokens(text string) []Token {
	tokens := make([]Token, 0, len(text)/5+1)
	for len(text) > 0 {
		n := tokenLen(text)
		tokens = append(tokens, tokenID(text[:n]))
		text = text[n:]
	}
	return tokens
}

// tokenLen returns the bytes of the first token of a text that is not empty.
func tokenLen(text string) int {
	start := 0
	if text[0] == ' ' && len(text) > 1 && text[1] != ' ' {
		start = 1
	}
	is, most := isLetter, maxWord
	if isDigit(text[start]) {
		is, most = isDigit, maxDigits
	}
	n := start
	for n < len(text) && n-start < most && is(text[n]) {
		n++
	}
	if n == start {
		_, size := utf8.DecodeRuneInString(text[start:])
		n += size
	}
	return n
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }

func tokenID(s string) Token {
	h := uint32(2166136261) // FNV-1a
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return Token(h)
}

// mix folds b into the state a; the order matters.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xe7037ed1a0b428db)
	return hi ^ lo ^ bits.RotateLeft64(a, 23)
}

// uniform turns a hash into a number in (0, 1).
func uniform(h uint64) float64 { return (float64(h>>12) + 0.5) / (1 << 52) }

// stringHash folds a string into a state.
func stringHash(state uint64, s string) uint64 {
	state = mix(state, uint64(len(s)))
	for i := range len(s) {
		state = mix(state, uint64(s[i]))
	}
	return state
}

// word is one word of the engine's vocabulary, in the two spellings that it has
// in a text: at the beginning, and after another.
type word struct {
	first, next     string
	firstID, nextID Token
}

// vocabulary holds words of one token each.
var vocabulary = func() []word {
	list := []string{
		"the", "of", "and", "to", "in", "is", "that", "for", "it", "as", "was", "with", "be", "by", "on", "not",
		"he", "this", "are", "or", "his", "from", "at", "which", "but", "have", "an", "had", "they", "you", "were", "their",
		"one", "all", "we", "can", "her", "has", "there", "been", "if", "more", "when", "will", "would", "who", "so", "no",
		"she", "other", "its", "may", "these", "what", "them", "than", "some", "him", "time", "into", "only", "could", "new", "then",
		"do", "any", "about", "made", "must", "over", "such", "first", "also", "after", "most", "should", "where", "many", "before", "through",
		"well", "between", "because", "each", "much", "those", "even", "being", "how", "under", "very", "people", "work", "make", "water", "long",
		"here", "both", "against", "day", "world", "still", "own", "see", "same", "year", "part", "found", "use", "life", "place", "great",
		"number", "state", "house", "while", "without", "again", "point", "however", "system", "high", "small", "light", "during", "right", "hand", "order",
	}
	words := make([]word, len(list))
	for i, w := range list {
		words[i] = word{first: w, next: " " + w, firstID: tokenID(w), nextID: tokenID(" " + w)}
	}
	return words
}()

// wordAt returns the text and the id of output token i of an answer drawn from
// the given state.
func wordAt(draw uint64, i int64) (string, Token) {
	w := &vocabulary[mix(draw, uint64(i))>>40%uint64(len(vocabulary))]
	if i == 0 {
		return w.first, w.firstID
	}
	return w.next, w.nextID
}

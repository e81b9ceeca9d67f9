package embed

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

const (
	maxVocabulary = 64 << 20 // bytes of tokenizer.json
	maxWord       = 100      // characters; a longer word is unknown
)

// wordPiece splits texts as BERT does: clean, lower, split at spaces and
// punctuation, then the longest known pieces from the left.
type wordPiece struct {
	ids           map[string]int
	lower, accent bool // letters are lowered; accents stay
	unknown       int
	begin, end    int // [CLS] and [SEP]
}

// readTokenizer reads tokenizer.json of a BERT model. What this package does not do is
// refused: other ids would give other vectors, and nobody would see it.
func readTokenizer(r io.Reader) (*wordPiece, error) {
	var f struct {
		Normalizer struct {
			Type    string `json:"type"`
			Clean   bool   `json:"clean_text"`
			Chinese bool   `json:"handle_chinese_chars"`
			Strip   *bool  `json:"strip_accents"`
			Lower   bool   `json:"lowercase"`
		} `json:"normalizer"`
		Pre   struct{ Type string } `json:"pre_tokenizer"`
		Model struct {
			Type    string         `json:"type"`
			Unknown string         `json:"unk_token"`
			Prefix  string         `json:"continuing_subword_prefix"`
			Max     int            `json:"max_input_chars_per_word"`
			Vocab   map[string]int `json:"vocab"`
		} `json:"model"`
	}
	if err := json.NewDecoder(io.LimitReader(r, maxVocabulary)).Decode(&f); err != nil {
		return nil, fmt.Errorf("reading tokenizer.json: %w", err)
	}
	n, m := f.Normalizer, f.Model
	if n.Type != "BertNormalizer" || !n.Clean || !n.Chinese || f.Pre.Type != "BertPreTokenizer" || m.Type != "WordPiece" || m.Prefix != "##" || m.Max != maxWord {
		return nil, fmt.Errorf("tokenizer.json is of the kind %s, %s, %s: only BERT's WordPiece is read here; use a server for other embedders", n.Type, f.Pre.Type, m.Type)
	}
	w := &wordPiece{ids: m.Vocab, lower: n.Lower, accent: !n.Lower}
	if n.Strip != nil {
		w.accent = !*n.Strip
	}
	for token, at := range map[string]*int{m.Unknown: &w.unknown, "[CLS]": &w.begin, "[SEP]": &w.end} {
		id, ok := m.Vocab[token]
		if !ok {
			return nil, fmt.Errorf("tokenizer.json has no token %q", token)
		}
		*at = id
	}
	return w, nil
}

// encode returns the ids of a text, without the marks of its ends. The names of
// special tokens in a text are text.
func (w *wordPiece) encode(text string) []int {
	var ids []int
	for _, word := range w.words(text) {
		ids = w.pieces(ids, word)
	}
	return ids
}

func (w *wordPiece) words(text string) []string {
	text = cleaned(text)
	if !w.accent {
		text = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Mn, r) {
				return -1
			}
			return r
		}, norm.NFD.String(text))
	}
	if w.lower {
		text = lowered(text)
	}
	var words []string
	start := -1
	for i, r := range text {
		switch {
		case unicode.IsSpace(r), punctuation(r):
			if start >= 0 {
				words = append(words, text[start:i])
				start = -1
			}
			if !unicode.IsSpace(r) {
				words = append(words, string(r))
			}
		case start < 0:
			start = i
		}
	}
	if start >= 0 {
		words = append(words, text[start:])
	}
	return words
}

// lowered lowers each character as Unicode's full mapping does: of U+0130 that is two.
func lowered(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == 'İ' {
			b.WriteString("i\u0307")
			continue
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// cleaned drops controls, makes every space one kind, and sets Chinese characters
// apart.
func cleaned(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == 0 || r == 0xfffd:
		case r == '\t' || r == '\n' || r == '\r' || unicode.IsSpace(r):
			b.WriteByte(' ')
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs) || unassigned(r):
		case chinese(r):
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unassigned(r rune) bool {
	return !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.C)
}

// chinese covers the blocks that BERT's own code lists.
func chinese(r rune) bool {
	return r >= 0x4e00 && r <= 0x9fff || r >= 0x3400 && r <= 0x4dbf || r >= 0x20000 && r <= 0x2a6df || r >= 0x2a700 && r <= 0x2b73f ||
		r >= 0x2b740 && r <= 0x2b81f || r >= 0x2b920 && r <= 0x2ceaf || r >= 0xf900 && r <= 0xfaff || r >= 0x2f800 && r <= 0x2fa1f
}

// punctuation is that of Unicode and all ASCII that is neither letter nor digit.
func punctuation(r rune) bool {
	if r < 0x80 {
		return r > ' ' && r < 0x7f && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	return unicode.IsPunct(r)
}

// pieces appends the ids of one word: its longest known pieces from the left, or
// the unknown token if a part of it is in no piece.
func (w *wordPiece) pieces(ids []int, word string) []int {
	runes := []rune(word)
	if len(runes) > maxWord {
		return append(ids, w.unknown)
	}
	from := len(ids)
	for start := 0; start < len(runes); {
		end := len(runes)
		for ; end > start; end-- {
			piece := string(runes[start:end])
			if start > 0 {
				piece = "##" + piece
			}
			if id, ok := w.ids[piece]; ok {
				ids = append(ids, id)
				break
			}
		}
		if end == start {
			return append(ids[:from], w.unknown)
		}
		start = end
	}
	return ids
}

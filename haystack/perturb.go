package haystack

import (
	"math"
	"math/rand/v2"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Noise says which words of a text are replaced: one x characters from the centre
// with probability Strength·exp(−x/Decay), none beyond Reach. The zero Noise
// replaces nothing.
type Noise struct {
	Centre   float64 // share of the characters of the text before it, 0 to 1
	Reach    float64 // characters to each side
	Decay    float64 // characters; 0: no decay
	Strength float64 // probability at the centre, 0 to 1
	Form     bool    // change spaces and line ends instead of words
	Seed     uint64
}

// Centre is the share of the characters of the text that stand before the needle, to
// its middle: where a [Noise] hits it. Of several needles it is the first.
func (p *Probe) Centre() float64 {
	if len(p.Needles) == 0 {
		return 0
	}
	n := p.Needles[0]
	before := utf8.RuneCountInString(p.Text[:n.From]) + utf8.RuneCountInString(p.Text[n.From:n.To])/2
	return float64(before) / float64(utf8.RuneCountInString(p.Text))
}

// Perturb returns the probe with words near a place replaced by others of the same
// number of letters, in Chinese each character by another; the needles stay. With
// Form, words stay, and what is between them becomes two spaces, a tab or a line end.
func (p *Probe) Perturb(n Noise) *Probe {
	rng := rand.New(rand.NewPCG(n.Seed, 0x9e47)) //nolint:gosec // it has to be repeatable
	total := utf8.RuneCountInString(p.Text)
	centre := n.Centre * float64(total)
	hit := func(at, size int) bool {
		x := math.Abs(float64(at) + float64(size)/2 - centre)
		chance := n.Strength
		if n.Decay > 0 {
			chance *= math.Exp(-x / n.Decay)
		}
		return x <= n.Reach && rng.Float64() < chance
	}
	out := *p
	out.Needles = nil
	var text strings.Builder
	from, at := 0, 0 // bytes and characters of what is written
	plain := func(to int) {
		for _, piece := range pieces(p.Text[from:to], p.Language == "zh") {
			size := utf8.RuneCountInString(piece)
			switch {
			case !hit(at, size):
				text.WriteString(piece)
			case n.Form:
				text.WriteString(reformed(piece, rng))
			default:
				text.WriteString(replaced(piece, p.Language == "zh", rng))
			}
			at += size
		}
		from = to
	}
	for _, s := range p.Needles {
		plain(s.From)
		start := text.Len()
		text.WriteString(p.Text[s.From:s.To])
		out.Needles = append(out.Needles, Span{start, text.Len()})
		at += utf8.RuneCountInString(p.Text[s.From:s.To])
		from = s.To
	}
	plain(len(p.Text))
	out.Text = text.String()
	return &out
}

// pieces cuts a text into words and what is between them; in Chinese each
// character is a word.
func pieces(s string, zh bool) (out []string) {
	class := func(r rune) int {
		switch {
		case unicode.IsDigit(r):
			return 0
		case unicode.IsLetter(r):
			return 1
		case unicode.IsSpace(r):
			return 2
		}
		return 3
	}
	start, last := 0, -1
	for i, r := range s {
		c := class(r)
		if i > start && (c != last || zh && c == 1) {
			out = append(out, s[start:i])
			start = i
		}
		last = c
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}

// replaced is another word of as many letters, or a number of as many digits.
// What is neither stays.
func replaced(piece string, zh bool, rng *rand.Rand) string {
	first, _ := utf8.DecodeRuneInString(piece)
	switch {
	case unicode.IsDigit(first):
		return strings.Map(func(rune) rune { return '0' + rune(rng.IntN(10)) }, piece)
	case !unicode.IsLetter(first):
		return piece
	case zh:
		return string(fillerHan[rng.IntN(len(fillerHan))])
	}
	n := utf8.RuneCountInString(piece)
	words := filler[min(n, len(filler)-1)]
	if len(words) == 0 || n >= len(filler) {
		return strings.Repeat("o", n)
	}
	w := words[rng.IntN(len(words))]
	if unicode.IsUpper(first) {
		return strings.ToUpper(w[:1]) + w[1:]
	}
	return w
}

// reformed is another white space where there was one.
func reformed(piece string, rng *rand.Rand) string {
	if strings.TrimSpace(piece) != "" {
		return piece
	}
	return []string{"  ", "\n", "\t", " \n"}[rng.IntN(4)]
}

// filler are words by their number of letters.
var filler = [][]string{
	{},
	{"a", "i"},
	{"as", "by", "if", "on", "so", "up"},
	{"and", "but", "far", "how", "our", "yet"},
	{"also", "back", "even", "once", "over", "some"},
	{"about", "again", "every", "other", "still", "under"},
	{"across", "almost", "behind", "indeed", "really", "toward"},
	{"already", "another", "between", "however", "perhaps", "usually"},
	{"although", "anything", "somewhat", "together", "whatever"},
	{"elsewhere", "generally", "otherwise", "sometimes", "therefore"},
	{"afterwards", "altogether", "eventually", "ordinarily"},
	{"accordingly", "furthermore", "practically", "undoubtedly"},
	{"considerable", "nevertheless", "occasionally"},
}

var fillerHan = []rune("的了是在有就也都而及与着或之其此当已从向再又很更只才便且若则")

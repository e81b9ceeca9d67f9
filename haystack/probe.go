package haystack

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"
)

// Kind is what a probe asks for.
type Kind string

// The kinds.
const (
	Retrieval     Kind = "retrieval"     // the value of one key, at the depth
	MultiKey      Kind = "multi_key"     // the values of four keys around the depth, among four others
	Update        Kind = "update"        // the latest of three values of one key; the latest stands at the depth
	Count         Kind = "count"         // how often something happened, all over the text
	Coreference   Kind = "coreference"   // the name, given at the depth, of whom the end speaks of by a nickname
	Contradiction Kind = "contradiction" // a key with a value at the depth and another one further on
	Absent        Kind = "absent"        // the value of a key that is not there, while another's is
)

// Kinds lists all kinds.
func Kinds() []Kind {
	return []Kind{Retrieval, MultiKey, Update, Count, Coreference, Contradiction, Absent}
}

// Spec says which probe is wanted. Chars is required.
type Spec struct {
	Kind     Kind    // ""  stands for Retrieval
	Language string  // en or zh; "": en
	Chars    int     // characters (runes) of the text, needles included
	Depth    float64 // where the needle stands, from 0, the begin of the text, to 1
	Seed     uint64  // of the text around the needles
	Needle   uint64  // seed of the needles
	Text     string  // a haystack of the caller's instead of a generated one
}

// Span is a stretch of bytes of a text, To excluded.
type Span struct{ From, To int }

// Probe is a text with a question.
type Probe struct {
	Kind     Kind
	Language string
	Text     string
	Question string
	Needles  []Span // of Text: what the answer rests on, in its order

	want   []string // what an answer has to have, in this order
	others []string // of the same kind, and wrong
	intro  string
}

// Prompt is the text with the question behind it, as one message.
func (p *Probe) Prompt() string {
	return p.intro + "\n\n" + p.Text + "\n" + p.Question
}

// least is how many characters a text must have to hold the needles of any kind.
const least = 400

// New makes a probe. A haystack of the caller's that is shorter than the wished text
// is an error: nothing is repeated.
func New(s Spec) (*Probe, error) {
	s.Kind, s.Language = cmp.Or(s.Kind, Retrieval), cmp.Or(s.Language, "en")
	t := &english
	switch s.Language {
	case "en":
	case "zh":
		t = &chinese
	default:
		return nil, fmt.Errorf("making a haystack: there is no language %q; take en or zh", s.Language)
	}
	if s.Chars < least {
		return nil, fmt.Errorf("making a haystack: %d characters hold no needle; take %d or more", s.Chars, least)
	}
	if !(s.Depth >= 0 && s.Depth <= 1) {
		return nil, fmt.Errorf("making a haystack: depth %v lies outside of the text; take 0 to 1", s.Depth)
	}
	p := &Probe{Kind: s.Kind, Language: s.Language, intro: t.intro}
	b := builder{t: t, rng: rand.New(rand.NewPCG(s.Needle, 0x6ed1e)), zh: s.Language == "zh"} //nolint:gosec // it has to be repeatable
	plan, ok := planners[s.Kind]
	if !ok {
		return nil, fmt.Errorf("making a haystack: there is no kind %q; take one of %v", s.Kind, Kinds())
	}
	p.Question = plan(&b, p, s.Depth)
	src, err := b.source(s)
	if err != nil {
		return nil, fmt.Errorf("making a haystack: %w", err)
	}
	return p, b.weave(p, s.Chars, src)
}

func (b *builder) source(s Spec) (source, error) {
	if s.Text == "" {
		return generated(b.t, b.zh, s.Seed), nil
	}
	return given(own(s.Text), s.Seed)
}

// placed is a sentence and where it is to stand.
type placed struct {
	text  string
	depth float64
	hides bool // it is a needle, not a decoy
}

// builder plans what is hidden.
type builder struct {
	t      *tongue
	zh     bool
	rng    *rand.Rand
	placed []placed
	codes  map[string]bool
	keys   []string
}

// put plans a sentence. Sentences of one depth keep their order.
func (b *builder) put(depth float64, hides bool, format string, args ...any) {
	b.placed = append(b.placed, placed{fmt.Sprintf(format, args...) + "\n", math.Min(1, math.Max(0, depth)), hides})
}

// number draws a value of seven digits that was not drawn before.
func (b *builder) number() string {
	if b.codes == nil {
		b.codes = make(map[string]bool)
	}
	for {
		s := fmt.Sprint(1_000_000 + b.rng.IntN(9_000_000))
		if !b.codes[s] {
			b.codes[s] = true
			return s
		}
	}
}

// key draws the two parts of a key whose first was not drawn before.
func (b *builder) key() (name, kind string) {
	if b.keys == nil {
		b.keys = slices.Clone(b.t.keys)
		b.rng.Shuffle(len(b.keys), func(i, j int) { b.keys[i], b.keys[j] = b.keys[j], b.keys[i] })
	}
	name, b.keys = b.keys[0], b.keys[1:]
	return name, b.t.kinds[b.rng.IntN(len(b.t.kinds))]
}

func (b *builder) called(name, kind string) string {
	if b.zh {
		return name + kind
	}
	return name + " " + kind
}

// planners plan the needles of each kind around a depth, and give the question.
var planners = map[Kind]func(b *builder, p *Probe, depth float64) string{
	Retrieval: func(b *builder, p *Probe, depth float64) string {
		name, kind := b.key()
		p.want = []string{b.number()}
		b.put(depth, true, b.t.code, name, kind, p.want[0])
		b.decoys(p, 1)
		return fmt.Sprintf(b.t.askCode, b.called(name, kind))
	},
	MultiKey: func(b *builder, p *Probe, depth float64) string {
		var names []string
		for range 4 {
			name, kind := b.key()
			p.want = append(p.want, b.number())
			b.put(depth+.1*(b.rng.Float64()-.5), true, b.t.code, name, kind, p.want[len(p.want)-1])
			names = append(names, b.called(name, kind))
		}
		b.decoys(p, 4)
		last := len(names) - 1
		return fmt.Sprintf(b.t.askCodes, strings.Join(names[:last], b.t.join)+b.t.and+names[last])
	},
	Update: func(b *builder, p *Probe, depth float64) string {
		name, kind := b.key()
		at := []float64{depth * b.rng.Float64(), depth * b.rng.Float64()}
		slices.Sort(at)
		for _, d := range at {
			p.others = append(p.others, b.number())
			b.put(d, false, b.t.notice, name, kind, p.others[len(p.others)-1])
		}
		p.want = []string{b.number()}
		b.put(depth, true, b.t.notice, name, kind, p.want[0])
		return fmt.Sprintf(b.t.askQuota, b.called(name, kind))
	},
	Count: func(b *builder, p *Probe, _ float64) string {
		n := 3 + b.rng.IntN(6)
		goods, bays := b.rng.Perm(len(b.t.goods)), b.rng.Perm(99)
		for i := range n {
			b.put(b.rng.Float64(), true, b.t.crate, b.t.goods[goods[0]], 1+bays[i])
		}
		for i := range 1 + b.rng.IntN(4) {
			b.put(b.rng.Float64(), false, b.t.crate, b.t.goods[goods[1]], 1+bays[n+i])
		}
		p.want = []string{fmt.Sprint(n)}
		return fmt.Sprintf(b.t.askCount, b.t.goods[goods[0]])
	},
	Coreference: func(b *builder, p *Probe, depth float64) string {
		first, last, alias := b.rng.Perm(len(b.t.names)), b.rng.Perm(len(b.t.surnames)), b.rng.Perm(len(b.t.aliases))
		for i := range 3 {
			one, two := b.t.names[first[i]], b.t.surnames[last[i]]
			if b.zh {
				one, two = two, one
			}
			full, at := one+" "+two, depth
			if b.zh {
				full = one + two
			}
			if i == 0 {
				p.want = []string{full}
			} else {
				at = b.rng.Float64()
				p.others = append(p.others, full)
			}
			b.put(math.Min(at, .9), i == 0, b.t.person, one, two, b.t.aliases[alias[i]])
		}
		b.put(.97, true, b.t.signed, b.t.aliases[alias[0]])
		return b.t.askName
	},
	Contradiction: func(b *builder, p *Probe, depth float64) string {
		name, kind := b.key()
		p.others, p.want = []string{b.number()}, []string{b.number()}
		b.put(depth, true, b.t.tonnage, name, kind, p.others[0])
		b.put(depth+(1-depth)*b.rng.Float64(), true, b.t.tonnage, name, kind, p.want[0])
		return fmt.Sprintf(b.t.askTonnage, b.called(name, kind))
	},
	Absent: func(b *builder, p *Probe, depth float64) string {
		name, kind := b.key()
		other, otherKind := b.key()
		p.others = []string{b.number()}
		b.put(depth, false, b.t.code, other, otherKind, p.others[0])
		return fmt.Sprintf(b.t.askCode, b.called(name, kind))
	},
}

// decoys hide values of keys that nobody asks for.
func (b *builder) decoys(p *Probe, n int) {
	for range n {
		name, kind := b.key()
		p.others = append(p.others, b.number())
		b.put(b.rng.Float64(), false, b.t.code, name, kind, p.others[len(p.others)-1])
	}
}

// weave takes units up to the size and puts the sentences between them, each where
// its share of the characters stands before it.
func (b *builder) weave(p *Probe, chars int, src source) error {
	slices.SortStableFunc(b.placed, func(x, y placed) int { return cmp.Compare(x.depth, y.depth) })
	left := chars
	for _, s := range b.placed {
		left -= utf8.RuneCountInString(s.text)
	}
	var units []unit
	total := 0
	for {
		u, ok := src()
		if !ok {
			return fmt.Errorf("making a haystack: the given text has %d characters, and %d are needed; give a longer one, or ask for shorter contexts", total, left)
		}
		if total+u.size > left && len(units) > 0 {
			break
		}
		units = append(units, u)
		total += u.size
	}
	var text strings.Builder
	seen, next := 0, 0
	place := func(upTo float64) {
		for next < len(b.placed) && b.placed[next].depth*float64(total) <= upTo {
			s := b.placed[next]
			if s.hides {
				p.Needles = append(p.Needles, Span{text.Len(), text.Len() + len(s.text) - 1})
			}
			text.WriteString(s.text)
			next++
		}
	}
	for _, u := range units {
		place(float64(seen) + float64(u.size)/2) // the nearer end of the unit
		text.WriteString(u.text)
		seen += u.size
	}
	place(math.Inf(1))
	p.Text = text.String()
	return nil
}

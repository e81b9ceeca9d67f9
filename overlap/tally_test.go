package overlap

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-llm/assay/stat"
)

var all = []Metric{
	BLEU{},
	BLEU{Tokenizer: Intl, EffectiveOrder: true},
	BLEU{Tokenizer: Zh, Smoothing: Floor},
	BLEU{Tokenizer: ZhFixed},
	BLEU{Tokenizer: Char, Smoothing: AddK, Lowercase: true},
	CHRF{},
	CHRF{WordOrder: 2, Whitespace: true},
	CHRF{Epsilon: true, Lowercase: true},
	TER{},
	TER{Normalized: true, NoPunctuation: true, Asian: true},
	ROUGE{Type: "1"},
	ROUGE{Type: "2", Stem: true},
	ROUGE{Type: "L", Tokenizer: Zh},
	ROUGE{Type: "Lsum", Tokenizer: Char},
	ROUGE{Type: "Lsum", Stem: true},
}

// noisy makes texts of which a share of the words is not the reference's.
func noisy(seed uint64, n int, share float64) []Segment {
	rng := rand.New(rand.NewPCG(seed, 0))
	ref := rand.New(rand.NewPCG(99, 0))
	out := make([]Segment, n)
	for i := range out {
		var h, r []string
		for range 8 + ref.IntN(12) {
			w := fmt.Sprint("w", ref.IntN(50))
			r = append(r, w)
			if rng.Float64() < share {
				w = fmt.Sprint("w", rng.IntN(50))
			}
			h = append(h, w)
		}
		out[i] = Segment{Hypothesis: strings.Join(h, " "), References: []string{strings.Join(r, " ")}}
	}
	return out
}

// best is the score of a text beside itself.
func best(m Metric) float64 {
	switch m.(type) {
	case TER:
		return 0
	case ROUGE:
		return 1
	}
	return 100
}

func TestNothingIsBetterThanTheReference(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := rapid.SampledFrom(all).Draw(r, "metric")
		n := rapid.IntRange(1, 3).Draw(r, "references")
		word := rapid.SampledFrom([]string{"a", "b", "The", "dog", "1,000.5", "你", "好", "。", "x!", "İ", "\n", "&amp;"})
		text := rapid.Map(rapid.SliceOfN(word, 6, 20), func(w []string) string { return strings.Join(w, " ") })
		s := Segment{Hypothesis: text.Draw(r, "hypothesis")}
		for range n {
			s.References = append(s.References, text.Draw(r, "reference"))
		}
		tally := tallied(t, m, nil)
		got := m.Score(added(t, tally, s.Hypothesis, s.References))
		least, most := 0.0, best(m)*(1+1e-12)
		if m.LessIsBetter() {
			most = math.Inf(1)
		}
		if !(got >= least && got <= most) {
			r.Errorf("%s %+v of %q is %v", m.Name(), m, s, got)
		}
		if b, ok := m.(BLEU); ok {
			if p := b.Parts(tally.Statistics()); !(p.Penalty >= 0 && p.Penalty <= 1) {
				r.Errorf("penalty is %v", p.Penalty)
			}
		}
		ref := s.References[0] + " four more words here"
		if got := m.Score(added(t, tally, ref, []string{ref})); math.Abs(got-best(m)) > 1e-9 {
			// Tercom tokenizes references twice.
			if x, ok := m.(TER); !ok || !x.Normalized {
				r.Errorf("%s %+v of %q beside itself is %v", m.Name(), m, ref, got)
			}
		}
		// The order of references tells nothing, but between equally good ones.
		slices.Reverse(s.References)
		if again := m.Score(added(t, tally, s.Hypothesis, s.References)); math.Abs(again-got) > 1e-9 {
			r.Errorf("%s of %q is %v, and %v with the references the other way round", m.Name(), s, got, again)
		}
	})
}

// A penalty upside down would give 5 of 7 words a score above 1.
func TestBrevityIsPunished(t *testing.T) {
	tally := tallied(t, BLEU{}, plain([]string{"the cat sat on the"}, []string{"the cat sat on the mat today"}))
	got, err := tally.Score()
	if want := 100 * math.Exp(1-7./5); err != nil || math.Abs(got-want) > 1e-9 {
		t.Errorf("BLEU of 5 words of 7 is %v, want %v, %v", got, want, err)
	}
}

// Garbage after a right first sentence must not vanish.
func TestGarbageAfterTheFirstSentenceCounts(t *testing.T) {
	ref := "The dog bit the man."
	got, err := tallied(t, BLEU{}, plain([]string{ref + " Completely unrelated garbage follows here. More of it."}, []string{ref})).Score()
	if err != nil || got > 40 {
		t.Errorf("BLEU is %v, %v, want about 32", got, err)
	}
}

func TestUnequalStreamsAreRefused(t *testing.T) {
	a := "a"
	_, err := Align([]string{"x", "y"}, []*string{&a, &a}, []*string{&a})
	if err == nil || !strings.Contains(err.Error(), "references 2 has 1 segments, but there are 2 hypotheses") {
		t.Errorf("error is %v", err)
	}
	all, err := Align([]string{"a", "b"}, []*string{&a, nil}, []*string{nil, &a})
	if err != nil || len(all[0].References) != 1 || len(all[1].References) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	all, err = Align([]string{"a", "b"}, []*string{&a, &a}, []*string{nil, &a})
	if err != nil {
		t.Fatal(err)
	}
	if got := tallied(t, CHRF{}, all).Signature(); !strings.HasPrefix(got, "nrefs:var|") {
		t.Errorf("signature is %s", got)
	}
	if _, err := tallied(t, BLEU{}, nil).Add(Segment{Hypothesis: "a"}); err == nil {
		t.Error("a segment without a reference is scored")
	}
}

func TestRougeRefusesWhatItCannotRead(t *testing.T) {
	zh := plain([]string{"你好，世界。"}, []string{"你好，世界。"})
	tally := tallied(t, ROUGE{Type: "1"}, zh)
	if got, err := tally.Score(); err == nil || !math.IsNaN(got) || !strings.Contains(err.Error(), "take the tokenizer zh") {
		t.Errorf("ROUGE of equal Chinese texts is %v, %v", got, err)
	}
	if _, err := tally.Estimate(Resampling{}); err == nil {
		t.Error("there is an interval of nothing")
	}
	for _, k := range []Tokenizer{Zh, ZhFixed, Char, Intl} {
		got, err := tallied(t, ROUGE{Type: "1", Tokenizer: k}, zh).Score()
		if err != nil || got != 1 {
			t.Errorf("ROUGE of equal Chinese texts with %s is %v, %v", k, got, err)
		}
	}
	de := plain([]string{"Über die Straße gehört man größere Äpfel"}, []string{"Über die Straße gehört man größere Äpfel"})
	if got, err := tallied(t, ROUGE{Type: "1"}, de).Score(); err != nil || got != 1 {
		t.Errorf("ROUGE of German is %v, %v", got, err)
	}
}

func TestTokenizersByScript(t *testing.T) {
	for _, c := range []struct {
		text        string
		bleu, rouge Tokenizer
		ter         string
	}{
		{"The dog bit the man.", T13a, Native, "true {false false false false}"},
		{"Die größeren Früchte dieses Baumes hängen leider weiter oben", T13a, Native, "true {false false false false}"},
		{"Человек укусил собаку", T13a, Intl, "true {false false false false}"},
		{"개가 사람을 물었다", T13a, Intl, "true {false false false false}"},
		{"狗咬了人。OK", Zh, Zh, "true {true false true false}"},
		{"犬が人を噛んだ。", Char, Char, "false {false false false false}"},
		{"สุนัขกัดคน", Char, Char, "false {false false false false}"},
		{"1234 !?", T13a, Native, "true {false false false false}"},
	} {
		var l Letters
		l.Add(c.text)
		m, ok := l.TER()
		if got := fmt.Sprint(ok, " ", m); l.BLEU() != c.bleu || l.ROUGE() != c.rouge || got != c.ter {
			t.Errorf("%q: %s, %s, %s", c.text, l.BLEU(), l.ROUGE(), got)
		}
	}
}

func TestZhFixed(t *testing.T) {
	var k tokenizing
	for _, c := range []struct{ in, zh, fixed string }{
		{"a“b”—c", "a “ b ” — c", "a“b”—c"},
		{"𠀀𠀁x", "𠀀𠀁x", "𠀀 𠀁 x"},
		{"你好x", "你 好 x", "你 好 x"},
	} {
		if zh, fixed := words(k.run(Zh, c.in)), words(k.run(ZhFixed, c.in)); zh != c.zh || fixed != c.fixed {
			t.Errorf("%q is %q and %q", c.in, zh, fixed)
		}
	}
}

// Twice the same segments under the same cluster names tell nothing new.
func TestRepeatsInAClusterDoNotNarrowTheInterval(t *testing.T) {
	once := noisy(1, 60, 0.3)
	for i := range once {
		once[i].Cluster = fmt.Sprint(i)
	}
	for _, m := range all[:1] {
		a, err := tallied(t, m, once).Estimate(Resampling{Repeats: 1000})
		if err != nil {
			t.Fatal(err)
		}
		b, err := tallied(t, m, slices.Concat(once, once)).Estimate(Resampling{Repeats: 1000})
		if err != nil {
			t.Fatal(err)
		}
		near := func(x, y float64) bool { return math.Abs(x-y) < 0.1*(a.Hi-a.Lo) }
		if !near(a.Lo, b.Lo) || !near(a.Hi, b.Hi) || b.N != 120 || b.Effective != 60 {
			t.Errorf("%s: %v, and twice: %v", m.Name(), a, b)
		}
	}
}

func TestIntervalsThatTheDataDoNotAllow(t *testing.T) {
	e, err := tallied(t, BLEU{}, noisy(1, 10, 0.3)).Estimate(Resampling{})
	if err != nil || !math.IsInf(e.Lo, -1) || len(e.Warnings) == 0 || math.IsNaN(e.Value) {
		t.Errorf("interval of 10 segments is %+v, %v", e, err)
	}
	e, err = tallied(t, BLEU{}, noisy(1, 50, 0)).Estimate(Resampling{})
	if err != nil || !math.IsInf(e.Lo, -1) || len(e.Warnings) == 0 || math.Abs(e.Value-100) > 1e-9 {
		t.Errorf("interval of perfect texts is %+v, %v", e, err)
	}
	e, err = tallied(t, BLEU{}, noisy(1, 50, 0.3)).Estimate(Resampling{})
	if err != nil || !(e.Lo < e.Value && e.Value < e.Hi) || e.N != 50 {
		t.Errorf("interval is %+v, %v", e, err)
	}
}

// A tally of many segments keeps a bounded number of clusters, and their sum.
func TestMemoryIsBounded(t *testing.T) {
	tally := tallied(t, ROUGE{Type: "1"}, nil)
	for i := range 3 * mostClusters {
		tally.add([]string{"", fmt.Sprint(i)}[i%2], 1, []float64{1, 1, 1, 1})
	}
	again := tally.cluster("1")
	if tally.Clusters() != mostClusters || tally.segments != 3*mostClusters || tally.Statistics()[3] != 3*mostClusters || again != 1 {
		t.Errorf("%d clusters of %d segments, sum %v", tally.Clusters(), tally.segments, tally.Statistics())
	}
}

func TestWhatAMetricRefuses(t *testing.T) {
	for _, m := range []Metric{
		BLEU{Tokenizer: "moses"},
		BLEU{Smoothing: "x"},
		BLEU{Value: 1},
		BLEU{Order: -1},
		BLEU{Smoothing: Floor, Value: math.NaN()},
		CHRF{Order: 99},
		CHRF{WordOrder: -1},
		CHRF{Beta: -2},
		TER{Asian: true},
		ROUGE{},
		ROUGE{Type: "0"},
		ROUGE{Type: "W"},
		ROUGE{Type: "L", Tokenizer: T13a},
		ROUGE{Type: "L", Tokenizer: Zh, Stem: true},
	} {
		if _, err := NewTally(m); err == nil {
			t.Errorf("%s %+v is taken", m.Name(), m)
		}
	}
	long := strings.Repeat("a ", mostWords+1)
	for _, m := range []Metric{TER{}, ROUGE{Type: "L"}, ROUGE{Type: "Lsum"}} {
		if _, err := tallied(t, m, nil).Add(Segment{Hypothesis: "a", References: []string{long}}); err == nil || !strings.Contains(err.Error(), "16384 words") {
			t.Errorf("%s of a long text: %v", m.Name(), err)
		}
	}
}

// FuzzScores: no text makes a metric panic or leave its range, and no text but
// what is not UTF-8 is better than the reference.
func FuzzScores(f *testing.F) {
	for _, s := range [][2]string{{"", ""}, {"a b c d", "d c b a"}, {"你好，世界", "你好 世界"}, {"&amp;lt; -\n\n-'s 1,0.0-", "İΣ'\x1c\xff"}, {strings.Repeat("a ", 60), strings.Repeat("a b ", 40)}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, hyp, ref string) {
		if len(hyp)+len(ref) > 1<<11 {
			t.Skip("long texts are slow to compare")
		}
		for _, m := range all {
			tally := tallied(t, m, nil)
			got := m.Score(added(t, tally, hyp, []string{ref, hyp, ""}))
			if top := best(m); !(got >= 0) || !m.LessIsBetter() && got > top*(1+1e-12) {
				t.Errorf("%s %+v of %q beside %q is %v", m.Name(), m, hyp, ref, got)
			}
			if b, ok := m.(BLEU); ok {
				b.EffectiveOrder = true // or else few words beside themselves are 0
				m = b
			}
			if self := m.Score(added(t, tally, hyp, []string{hyp})); utf8.ValidString(hyp) && !m.LessIsBetter() && m.Score(added(t, tally, ref, []string{hyp})) > self*(1+1e-9)+1e-9 {
				t.Errorf("%s of %q is better than of %q itself, which is %v", m.Name(), ref, hyp, self)
			}
			if b, ok := m.(BLEU); ok {
				if p := b.Parts(tally.Statistics()); !(p.Penalty <= 1) {
					t.Errorf("penalty is %v", p.Penalty)
				}
			}
		}
	})
}

// FuzzPorter: a stem is no longer than its word and one letter.
func FuzzPorter(f *testing.F) {
	for _, w := range []string{"", "y", "yyyyyyyy", "relational", "skies", "ing", "eed", "alli", "logi", "0000s"} {
		f.Add(w)
	}
	f.Fuzz(func(t *testing.T, w string) {
		if got := porter(w); len(got) > len(w)+1 || len(w) > 3 && got == "" {
			t.Errorf("porter(%q) = %q", w, got)
		}
	})
}

// BenchmarkHostileTER is a text whose words repeat, which leaves most to try.
func BenchmarkHostileTER(b *testing.B) {
	var h, r strings.Builder
	rng := rand.New(rand.NewPCG(1, 1))
	for range mostWords {
		h.WriteString([]string{"a ", "b ", "c "}[rng.IntN(3)])
		r.WriteString([]string{"a ", "b ", "c "}[rng.IntN(3)])
	}
	tally := tallied(b, TER{}, nil)
	for b.Loop() {
		if _, err := tally.Add(Segment{Hypothesis: h.String(), References: []string{r.String()}}); err != nil {
			b.Fatal(err)
		}
	}
}

// The order of segments and the names of clusters tell nothing.
func TestOrderAndNamesTellNothing(t *testing.T) {
	segments := noisy(1, 120, 0.3)
	for i := range segments {
		segments[i].Cluster = fmt.Sprint("doc", i%40)
	}
	renamed, shuffled := slices.Clone(segments), slices.Clone(segments)
	for i := range renamed {
		renamed[i].Cluster += " of another name"
	}
	rand.New(rand.NewPCG(5, 5)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for _, m := range all {
		var got []stat.Estimate
		for _, s := range [][]Segment{segments, renamed, shuffled} {
			e, err := tallied(t, m, s).Estimate(Resampling{Repeats: 1000})
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e)
		}
		if d := cmp.Diff(got[0], got[1]); d != "" {
			t.Errorf("%s with other names of clusters: %s", m.Name(), d)
		}
		// Other draws, but of the same clusters.
		near := func(x, y float64) bool { return math.Abs(x-y) < 0.15*(got[0].Hi-got[0].Lo) }
		if math.Abs(got[0].Value-got[2].Value) > 1e-9 || !near(got[0].Lo, got[2].Lo) || !near(got[0].Hi, got[2].Hi) {
			t.Errorf("%s in another order: %v and %v", m.Name(), got[0], got[2])
		}
	}
}

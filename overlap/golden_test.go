package overlap

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The files sacrebleu_*.jsonl, rouge_scores.jsonl and porter_nltk.tsv in
// testdata were written by sacrebleu 2.6.0, rouge_score 0.1.2 and NLTK 3.8.

// lines calls f with each line of a file.
func lines(t *testing.T, name string, f func(line int, text []byte)) {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	in := bufio.NewScanner(file)
	in.Buffer(nil, 1<<24)
	n := 0
	for in.Scan() {
		n++
		f(n, in.Bytes())
	}
	if err := in.Err(); err != nil || n == 0 {
		t.Fatalf("reading %s: %d lines, %v", name, n, err)
	}
}

func unmarshal(t *testing.T, text []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(text, to); err != nil {
		t.Fatal(err)
	}
}

// words joins the words of a text by single spaces.
func words(b []byte) string { return strings.Join(strings.FieldsFunc(string(b), isSpace), " ") }

func TestTokenizersAreSacrebleus(t *testing.T) {
	lines(t, "sacrebleu_tokenizers.jsonl", func(n int, text []byte) {
		var want map[string]string
		unmarshal(t, text, &want)
		in := want["in"]
		var tok tokenizing
		got := map[string]string{"in": in, "rstrip": trimRight(in), "lower": string(appendLower(nil, in))}
		for _, k := range []Tokenizer{T13a, Zh, Intl} {
			got[string(k)] = words(tok.run(k, in))
		}
		got["char"] = strings.TrimSuffix(string(tok.run(Char, trimRight(in))), " ")
		for k, m := range map[string]TER{
			"ter_default": {}, "ter_norm": {Normalized: true}, "ter_nopunct": {NoPunctuation: true}, "ter_norm_asian": {Normalized: true, Asian: true},
			"ter_norm_nopunct_asian": {Normalized: true, NoPunctuation: true, Asian: true}, "ter_case": {CaseSensitive: true},
		} {
			got[k] = words(tok.tercom(m, in))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("line %d: %s", n, d)
		}
	})
}

// A config is one of sacrebleu's, under the names of its arguments.
type config struct {
	Tokenize       Tokenizer `json:"tokenize"`
	SmoothMethod   Smoothing `json:"smooth_method"`
	SmoothValue    float64   `json:"smooth_value"`
	MaxNgramOrder  int       `json:"max_ngram_order"`
	EffectiveOrder bool      `json:"effective_order"`
	Lowercase      bool      `json:"lowercase"`
	CharOrder      int       `json:"char_order"`
	WordOrder      int       `json:"word_order"`
	Beta           int       `json:"beta"`
	Whitespace     bool      `json:"whitespace"`
	EpsSmoothing   bool      `json:"eps_smoothing"`
	Normalized     bool      `json:"normalized"`
	NoPunct        bool      `json:"no_punct"`
	AsianSupport   bool      `json:"asian_support"`
	CaseSensitive  bool      `json:"case_sensitive"`
	Type           string    `json:"type"`
	Stem           bool      `json:"stem"`
}

func (c config) metric(kind string) Metric {
	switch kind {
	case "bleu":
		return BLEU{c.Tokenize, c.SmoothMethod, c.SmoothValue, c.MaxNgramOrder, c.EffectiveOrder, c.Lowercase}
	case "chrf":
		return CHRF{c.CharOrder, c.WordOrder, c.Beta, c.Lowercase, c.Whitespace, c.EpsSmoothing}
	case "ter":
		return TER{c.Normalized, c.NoPunct, c.AsianSupport, c.CaseSensitive}
	}
	return ROUGE{Type: c.Type, Stem: c.Stem}
}

// tallied adds all segments.
func tallied(t testing.TB, m Metric, segments []Segment) *Tally {
	t.Helper()
	out, err := NewTally(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range segments {
		if _, err := out.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

type golden struct {
	Cfg        config
	Score, BP  float64
	Counts     []float64
	Totals     []float64
	Precisions []float64
	SysLen     float64 `json:"sys_len"`
	RefLen     float64 `json:"ref_len"`
	Edits      *float64
	Sig        string
}

func TestScoresAreSacrebleus(t *testing.T) {
	scores := 0
	lines(t, "sacrebleu_scores.jsonl", func(n int, text []byte) {
		var c struct {
			Hyps            []string
			Refs            [][]*string
			BLEU, CHRF, TER []golden
		}
		unmarshal(t, text, &c)
		segments, err := Align(c.Hyps, c.Refs...)
		if err != nil {
			t.Fatal(err)
		}
		for kind, all := range map[string][]golden{"bleu": c.BLEU, "chrf": c.CHRF, "ter": c.TER} {
			for _, want := range all {
				scores++
				m := want.Cfg.metric(kind)
				tally := tallied(t, m, segments)
				got, err := tally.Score()
				if err != nil || !(math.Abs(got-want.Score) <= 1e-8) {
					t.Errorf("line %d, %s %+v: score %v, want %v, %v", n, kind, want.Cfg, got, want.Score, err)
				}
				// Sacrebleu does not tell the order.
				if got := strings.Replace(tally.Signature(), "|order:2", "", 1); got != want.Sig {
					t.Errorf("line %d, %s: signature %s, want %s", n, kind, got, want.Sig)
				}
				if b, ok := m.(BLEU); ok {
					want := Parts{want.Score, want.Counts, want.Totals, want.Precisions, want.BP, want.SysLen, want.RefLen}
					near := cmp.Comparer(func(x, y float64) bool { return math.Abs(x-y) <= 1e-8 })
					if d := cmp.Diff(want, b.Parts(tally.Statistics()), near); d != "" {
						t.Errorf("line %d, %+v: %s", n, m, d)
					}
				}
				if want.Edits != nil && tally.Statistics()[0] != *want.Edits {
					t.Errorf("line %d, %+v: %v edits, want %v", n, m, tally.Statistics()[0], *want.Edits)
				}
			}
		}
	})
	if scores < 42*29 {
		t.Errorf("compared %d scores, want all of 42 corpora", scores)
	}
}

func TestScoresAreRougeScores(t *testing.T) {
	lines(t, "rouge_scores.jsonl", func(n int, text []byte) {
		var c struct {
			Target, Prediction string
			Scores             map[string]struct{ P, R, F float64 }
		}
		unmarshal(t, text, &c)
		if len(c.Scores) != 10 {
			t.Fatalf("line %d has %d scores, want 10", n, len(c.Scores))
		}
		for name, want := range c.Scores {
			kind, stem := strings.CutSuffix(strings.TrimPrefix(name, "rouge"), "_stem")
			got := tallied(t, ROUGE{Type: kind, Stem: stem}, []Segment{{Hypothesis: c.Prediction, References: []string{c.Target}}}).Statistics()
			for i, w := range []float64{want.P, want.R, want.F} {
				if !(math.Abs(got[i]-w) <= 1e-12) {
					t.Errorf("line %d: %s is %v, want %v", n, name, got, want)
				}
			}
		}
	})
}

func TestStemsAreNLTKs(t *testing.T) {
	lines(t, "porter_nltk.tsv", func(n int, text []byte) {
		f := strings.Split(string(text), "\t")
		if n > 1 && porter(f[0]) != f[1] {
			t.Errorf("porter(%q) = %q, want %q", f[0], porter(f[0]), f[1])
		}
	})
}

// plain makes segments with one reference each.
func plain(hyps, refs []string) []Segment {
	out := make([]Segment, len(hyps))
	for i := range hyps {
		out[i] = Segment{Hypothesis: hyps[i], References: []string{refs[i]}}
	}
	return out
}

// Constants of sacrebleu's own tests; raw_corpus_bleu there is raw.
func TestConstantsOfSacrebleu(t *testing.T) {
	raw := BLEU{Tokenizer: None, Smoothing: Floor, Value: 0.01, EffectiveOrder: true}
	dog := []Segment{
		{Hypothesis: "The dog bit the man.", References: []string{"The dog bit the man.", "The dog had bit the man."}},
		{Hypothesis: "It wasn't surprising.", References: []string{"It was not unexpected.", "No one was surprised."}},
		{Hypothesis: "The man had just bitten him.", References: []string{"The man bit him first.", "The man had bitten the dog."}},
	}
	one := func(hyp, ref string) []Segment { return plain([]string{hyp}, []string{ref}) }
	eps := CHRF{Beta: 3, Epsilon: true}
	eff := CHRF{Beta: 3}
	for _, c := range []struct {
		from      string
		metric    Metric
		segments  []Segment
		want, eps float64
	}{
		{"test_raw_bleu", raw, one("this is a fest", "this is a test"), 22.3606797749979, 1e-8},
		{"test_raw_bleu", raw, one("this is a fest", "no match whatever here ok"), 0, 0},
		{"test_effective_order", raw, one("test", "a test"), 36.78794411714425, 1e-8},
		{"test_effective_order", raw, one("a test", "a test"), 100, 1e-8},
		{"test_effective_order", raw, one("a little test", "a test"), 3.218297948685433, 1e-8},
		{"test_max_ngram_order", BLEU{Order: 1}, dog, 77.65, 0.005},
		{"test_max_ngram_order", BLEU{Order: 2}, dog, 60.50, 0.005},
		{"test_max_ngram_order", BLEU{Order: 3}, dog, 53.93, 0.005},
		{"test_max_ngram_order", BLEU{Order: 4}, dog, 48.53, 0.005},
		{"test_max_ngram_order", BLEU{Order: 5}, dog, 46.14, 0.005},
		{"test_max_ngram_order", BLEU{Order: 6}, dog, 43.28, 0.005},
		{"README", BLEU{}, dog, 48.530827, 1e-6},
		{"README", BLEU{Tokenizer: None}, dog, 49.1919566, 1e-7},
		{"README", BLEU{Tokenizer: Intl}, dog, 43.91623493, 1e-8},
		{"own", BLEU{Tokenizer: Char}, dog, 72.6106, 1e-4},
		{"README", CHRF{}, dog, 59.7275, 1e-4},
		{"README", CHRF{WordOrder: 2}, dog, 59.1531, 1e-4},
		{"own", TER{}, dog, 40, 1e-8},
		{"test_chrf.py", eps, plain([]string{"aa"}, []string{"ab"}), 8.3333, 1e-4},
		{"test_chrf.py", eps, plain([]string{"a", "b"}, []string{"a", "c"}), 8.3333, 1e-4},
		{"test_chrf.py", eps, plain([]string{"a"}, []string{"a"}), 16.6667, 1e-4},
		{"test_chrf.py", eps, plain([]string{"a b c"}, []string{"abc"}), 50, 1e-4},
		{"test_chrf.py", eff, plain([]string{"a"}, []string{"a"}), 100, 1e-4},
		{"test_chrf.py", eff, plain([]string{"a b c"}, []string{"abc"}), 100, 1e-4},
		{"test_chrf.py", eff, plain([]string{"a", "b"}, []string{"a", "c"}), 50, 1e-4},
		{"test_chrf.py", eff, plain([]string{"aa"}, []string{"ab"}), 25, 1e-4},
		{"test_chrf.py", eff, plain([]string{""}, []string{""}), 0, 0},
		{"test_ter.py", TER{}, one("aaaa bbbb cccc dddd", "aaaa bbbb cccc dddd"), 0, 0},
		{"test_ter.py", TER{}, one("eeee ffff gggg hhhh", "aaaa bbbb cccc dddd"), 100, 0},
		{"test_ter.py", TER{}, one("", "a"), 100, 0},
		{"test_ter.py", TER{}, one("a", ""), 100, 0},
		{"test_ter.py", TER{}, one("", ""), 0, 0},
		{"test_ter.py", TER{}, one("d e f g h a b c", "a b c d e f g h"), 100. / 8, 1e-12},
	} {
		got, err := tallied(t, c.metric, c.segments).Score()
		if err != nil || !(math.Abs(got-c.want) <= c.eps) {
			t.Errorf("%s: %s %+v = %v, want %v, %v", c.from, c.metric.Name(), c.metric, got, c.want, err)
		}
	}
}

// Constants of sacrebleu's test_statistics and test_degenerate_statistics.
func TestConstantsOfBLEUStatistics(t *testing.T) {
	got := tallied(t, BLEU{Tokenizer: None}, plain([]string{"test1 test2 a b c d"}, []string{"x test1 test2 a b y"})).Statistics()
	if n := got[:2]; !slices.Equal(n, []float64{6, 6}) || !slices.Equal(got[2:6], []float64{4, 3, 2, 1}) || !slices.Equal(got[6:], []float64{6, 5, 4, 3}) {
		t.Errorf("statistics are %v", got)
	}
	for _, c := range []struct {
		matches, totals []float64
		offset          float64
	}{
		{[]float64{0, 0, 0, 0}, []float64{4, 4, 2, 1}, 0.01},
		{[]float64{0, 0, 0, 0}, []float64{10, 11, 12, 0}, 0.01},
		{[]float64{0, 0, 0, 0}, []float64{0, 0, 0, 0}, 0.01},
		{[]float64{0, 0, 0, 0}, []float64{6, 5, 4, 3}, 0},
	} {
		m := BLEU{Smoothing: Floor, Value: c.offset}
		if got := m.Score(slices.Concat([]float64{4, 4}, c.matches, c.totals)); got != 0 {
			t.Errorf("BLEU of %v is %v, want 0", c, got)
		}
	}
	if got := (BLEU{Smoothing: Unsmooth}).Score([]float64{6, 6, 6, 5, 4, 0, 6, 5, 4, 3}); !(got < 1e-100) {
		t.Errorf("BLEU with no match of length 4 and no smoothing is %v, want 0", got)
	}
}

// Constants of rouge_score's rouge_scorer_test.py.
func TestConstantsOfRouge(t *testing.T) {
	lsum := ROUGE{Type: "Lsum"}
	for _, c := range []struct {
		metric   ROUGE
		hyp, ref string
		want     [3]float64
	}{
		{lsum, "w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", "w1 w2 w3 w4 w5", [3]float64{0.4, 0.8, 0.5333}},
		{ROUGE{Type: "1"}, "testing two", "testing one two", [3]float64{1, 2. / 3, 0.8}},
		{ROUGE{Type: "2"}, "testing two", "testing one two", [3]float64{0, 0, 0}},
		{ROUGE{Type: "L"}, "testing two", "testing one two", [3]float64{1, 2. / 3, 0.8}},
	} {
		got := tallied(t, c.metric, plain([]string{c.hyp}, []string{c.ref})).Statistics()
		for i := range c.want {
			if !(math.Abs(got[i]-c.want[i]) <= 1e-4) {
				t.Errorf("%+v of %q is %v, want %v", c.metric, c.hyp, got, c.want)
			}
		}
	}
}

func ExampleTally() {
	t, err := NewTally(BLEU{})
	if err != nil {
		panic(err)
	}
	for _, s := range []Segment{
		{Hypothesis: "The dog bit the man.", References: []string{"The dog bit the man.", "The dog had bit the man."}},
		{Hypothesis: "It wasn't surprising.", References: []string{"It was not unexpected.", "No one was surprised."}},
		{Hypothesis: "The man had just bitten him.", References: []string{"The man bit him first.", "The man had bitten the dog."}},
	} {
		if _, err := t.Add(s); err != nil {
			panic(err)
		}
	}
	score, err := t.Score()
	fmt.Printf("%.2f %v %s\n", score, err, t.Signature())
	// Output: 48.53 <nil> nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0
}

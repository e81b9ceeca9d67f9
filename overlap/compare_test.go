package overlap

import (
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// right and wrong score 1 and 0 by ROUGE-1.
func outcomes(t *testing.T, right ...bool) *Tally {
	t.Helper()
	var all []Segment
	for _, r := range right {
		s := Segment{Hypothesis: "no", References: []string{"yes"}}
		if r {
			s.Hypothesis = "yes"
		}
		all = append(all, s)
	}
	return tallied(t, ROUGE{Type: "1"}, all)
}

// With 8 pairs better and 2 worse the sign test has p = 112/1024. A test that
// counts only greater differences would say 0.021.
func TestTiesCountAgainstTheDifference(t *testing.T) {
	var a, b []bool
	for i := range 10 {
		a, b = append(a, i < 8), append(b, i >= 8)
	}
	c, err := Compare(outcomes(t, a...), outcomes(t, b...), Resampling{})
	if err != nil || c.P != 112./1024 || c.Error != 0 || c.Trials != 1024 {
		t.Errorf("exact test is %+v, %v, want p = %v", c, err, 112./1024)
	}
	for range 20 {
		a, b = append(a, true), append(b, true)
	}
	c, err = Compare(outcomes(t, a...), outcomes(t, b...), Resampling{Seed: 1})
	if err != nil || !(math.Abs(c.P-112./1024) < 4*c.Error) || c.Error == 0 || c.Trials != 10_000 {
		t.Errorf("test by draws is %+v, %v, want p = %v", c, err, 112./1024)
	}
}

func TestSwappingSystemsMirrorsTheComparison(t *testing.T) {
	a, b := noisy(1, 40, 0.2), noisy(2, 40, 0.4)
	for _, m := range []Metric{BLEU{}, CHRF{}, TER{}, ROUGE{Type: "L"}} {
		x, err := Compare(tallied(t, m, a), tallied(t, m, b), Resampling{Trials: 500, Repeats: 1000})
		if err != nil {
			t.Fatal(err)
		}
		y, err := Compare(tallied(t, m, b), tallied(t, m, a), Resampling{Trials: 500, Repeats: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if x.Difference.Value != -y.Difference.Value || x.P != y.P || !(math.Abs(x.Difference.Lo+y.Difference.Hi) < 0.2*(x.Difference.Hi-x.Difference.Lo)) {
			t.Errorf("%s: %+v and %+v", m.Name(), x, y)
		}
	}
}

func TestWhatCannotBeCompared(t *testing.T) {
	same := tallied(t, BLEU{}, noisy(1, 40, 0.2))
	for _, c := range []struct {
		other *Tally
		want  string
	}{
		{tallied(t, BLEU{Tokenizer: Char}, noisy(1, 40, 0.2)), "different scores"},
		{tallied(t, BLEU{}, noisy(1, 39, 0.2)), "other segments"},
		{tallied(t, BLEU{}, nil), "no segment"},
	} {
		if _, err := Compare(same, c.other, Resampling{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error is %v, want %q", err, c.want)
		}
	}
	c, err := Compare(same, same, Resampling{Trials: 100, Repeats: 1000})
	if err != nil || c.P != 1 || c.Difference.Value != 0 || !math.IsInf(c.Difference.Hi, 1) {
		t.Errorf("a system beside itself is %+v, %v, want p = 1 and no interval", c, err)
	}
}

// TestSizeOfRandomisation: of two systems that do not differ, 5 % have a p of
// at most 0.05, also when the segments of a document depend on each other.
func TestSizeOfRandomisation(t *testing.T) {
	const runs = 400
	rng := rand.New(rand.NewPCG(7, 7))
	small := 0
	for range runs {
		a, b := tallied(t, BLEU{}, nil), tallied(t, BLEU{}, nil)
		for doc := range 20 {
			good := [2]float64{rng.Float64(), rng.Float64()}
			for range 5 {
				for k, tally := range []*Tally{a, b} {
					n := float64(12 + rng.IntN(10))
					m := math.Round(n * good[k])
					tally.add(strconv.Itoa(doc), 1, []float64{n, 15, m, m / 2, m / 4, m / 8, n, n - 1, n - 2, n - 3})
				}
			}
		}
		if p, _, _ := randomise(BLEU{}, a, b, math.Abs(a.metric.Score(a.Statistics())-b.metric.Score(b.Statistics())), Resampling{Trials: 199, Seed: rng.Uint64()}); p <= 0.05 {
			small++
		}
	}
	// 4 standard errors of a share of 0.05.
	if share := float64(small) / runs; math.Abs(share-0.05) > 4*math.Sqrt(0.05*0.95/runs) {
		t.Errorf("p is at most 0.05 in %v of cases without a difference", share)
	}
}

// TestAgainstWMT17 compares p-values with those of MultEval, as sacrebleu's
// test_significance.py has them, and with sacrebleu's own.
func TestAgainstWMT17(t *testing.T) {
	const dir = "../../shared/data/wmt/"
	text, err := os.ReadFile(dir + "wmt17_ende_significance.json")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("statistics of WMT17 are not beside the repository")
	} else if err != nil {
		t.Fatal(err)
	}
	var known struct {
		Results []struct {
			System string
			BLEU   float64  `json:"bleu_none"`
			P      *float64 `json:"p_ar_10000"`
		}
	}
	if err := json.Unmarshal(text, &known); err != nil {
		t.Fatal(err)
	}
	multeval := map[string]float64{
		"FBK.4870": 0.0218, "KIT.4950": 0.0410, "LMU-nmt-reranked": 0.09029, "LMU-nmt-single": 0.58494, "online-B": 0.94111,
		"RWTH": 0.0207, "SYSTRAN": 0.59914, "xmu": 0.71073,
	}
	tallies := wmt(t, dir+"wmt17_ende_bleu_none_segstats.csv.gz")
	base := tallies[known.Results[0].System]
	for i, want := range known.Results {
		got := tallies[want.System]
		if score, err := got.Score(); err != nil || math.Abs(score-want.BLEU) > 1e-8 {
			t.Errorf("%s: BLEU %v, want %v, %v", want.System, score, want.BLEU, err)
		}
		if i == 0 {
			continue
		}
		diff := got.metric.Score(got.Statistics()) - base.metric.Score(base.Statistics())
		p, se, _ := randomise(got.metric, got, base, math.Abs(diff), Resampling{Trials: 4000})
		other := 0.0001
		for name, p := range multeval {
			if strings.Contains(want.System, name) {
				other = p
			}
		}
		// They drew 10,000 times, MultEval on differently split words.
		eps := 4*se*math.Sqrt(1.4) + 3e-4
		if math.Abs(p-*want.P) > eps || math.Abs(p-other) > eps+0.005 {
			t.Errorf("%s: p is %v ± %v, want sacrebleu's %v and MultEval's %v", want.System, p, se, *want.P, other)
		}
		t.Logf("%s: difference %.3f, p %.4f ± %.4f, sacrebleu %.4f, MultEval %.4f", want.System, diff, p, se, *want.P, other)
	}
}

func wmt(t *testing.T, name string) map[string]*Tally {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*Tally{}
	in := csv.NewReader(z)
	for row, err := in.Read(); !errors.Is(err, io.EOF); row, err = in.Read() {
		if err != nil {
			t.Fatal(err)
		}
		if row[0] == "system" {
			continue
		}
		stats := make([]float64, 10)
		for i := range stats {
			if stats[i], err = strconv.ParseFloat(row[2+i], 64); err != nil {
				t.Fatal(err)
			}
		}
		if out[row[0]] == nil {
			out[row[0]] = tallied(t, BLEU{Tokenizer: None}, nil)
		}
		out[row[0]].add("", 1, stats)
	}
	return out
}

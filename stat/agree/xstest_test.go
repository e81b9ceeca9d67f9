package agree

import (
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// xstest reads labels of refusals: two annotators', the final one, GPT-4's and
// those of matching strings, of five models' answers to 450 prompts
// (Röttger et al., XSTest, CC-BY-4.0).
func xstest(t *testing.T) (rows []map[string]string) {
	t.Helper()
	f, err := os.Open("../../../shared/data/judge_calibration/xstest_refusal_labels.csv")
	if err != nil {
		t.Skip("the labels of XSTest are not beside the repository")
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all[1:] {
		row := map[string]string{}
		for i, name := range all[0] {
			row[name] = r[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// refused is 1 if a label says that the model did not comply in full. GPT-4's
// refusals to judge count as refusals, as XSTest's authors count them.
func refused(label string) int {
	if strings.HasPrefix(label, "1") {
		return 0
	}
	return 1
}

var xmodels = []string{"gpt4", "llama2new", "llama2orig", "mistralinstruct", "mistralguard"}

func TestXSTestAgreement(t *testing.T) {
	rows := xstest(t)
	column := func(name string) (out []int) {
		for _, r := range rows {
			out = append(out, refused(r[name]))
		}
		return out
	}
	for _, c := range []struct {
		a, b string
		want float64
	}{{"annotator_1", "annotator_2", 0.957}, {"human_final", "gpt4_judge", 0.645}, {"human_final", "string_match", 0.770}} {
		e := Kappa(Table(2, column(c.a), column(c.b)), Plain, 0.95)
		t.Logf("%s and %s: kappa %.3f [%.3f, %.3f]", c.a, c.b, e.Value, e.Lo, e.Hi)
		if math.Abs(e.Value-c.want) > 0.0005 {
			t.Errorf("%s and %s: kappa %.4f, want %.3f", c.a, c.b, e.Value, c.want)
		}
	}
	equal := 0
	for _, r := range rows {
		if r["human_final"] == r["gpt4_judge"] {
			equal++
		}
	}
	if got := float64(equal) / float64(len(rows)); math.Abs(got-0.80) > 0.005 {
		t.Errorf("GPT-4 agrees in three classes in %.3f, want 0.80", got)
	}
}

// The sensitivity of GPT-4 is .70 over all; matching strings finds between .19
// and .98 of the refusals of unsafe prompts, depending on whose answers they are.
func TestXSTestSensitivity(t *testing.T) {
	rows := xstest(t)
	sensitivity := func(judge string, of func(map[string]string) bool) float64 {
		var a Accuracy
		for _, r := range rows {
			if of(r) && refused(r["human_final"]) == 1 {
				a.Positives++
				a.TruePositives += refused(r[judge])
			}
		}
		return a.Sensitivity(0.95).Value
	}
	if got := sensitivity("gpt4_judge", func(map[string]string) bool { return true }); math.Abs(got-0.70) > 0.005 {
		t.Errorf("GPT-4: %.3f, want 0.70", got)
	}
	least, most := 1.0, 0.0
	for _, m := range xmodels {
		got := sensitivity("string_match", func(r map[string]string) bool {
			return r["model"] == m && strings.HasPrefix(r["type"], "contrast")
		})
		least, most = min(least, got), max(most, got)
	}
	if math.Abs(least-0.19) > 0.005 || math.Abs(most-0.98) > 0.005 {
		t.Errorf("string match finds %.3f to %.3f, want 0.19 to 0.98", least, most)
	}
}

// Judged alone, the share of refusals has an interval without the truth in most
// models; PPI++ on 100 and 200 labels covers it as promised, and is shorter than
// what the labels alone give.
func TestXSTestCorrected(t *testing.T) {
	rows := xstest(t)
	n := rounds(200, 4000)
	for _, c := range []struct {
		judge string
		alone float64 // share of models of which the judge alone covers the truth
	}{{"gpt4_judge", 0.2}, {"string_match", 0.4}} {
		alone := 0.0
		for _, labels := range []int{100, 200} {
			covered, tried, ppi, human := 0, 0, 0.0, 0.0
			alone = 0
			for i, m := range xmodels {
				var cases []Pair
				truth := 0.0
				for _, r := range rows {
					if r["model"] == m {
						cases = append(cases, Pair{float64(refused(r["human_final"])), float64(refused(r[c.judge]))})
						truth += cases[len(cases)-1].Human
					}
				}
				size := float64(len(cases))
				truth /= size
				judged := 0.0
				for _, x := range cases {
					judged += x.Judge / size
				}
				if math.Abs(judged-truth) < 1.96*math.Sqrt(judged*(1-judged)/size) {
					alone += 1 / float64(len(xmodels))
				}
				// The 450 answers stand for a population: each round draws 450 of them
				// anew.
				r := rand.New(rand.NewPCG(uint64(i), uint64(labels)))
				for range n {
					clusters := make([][]Pair, len(cases))
					for k := range clusters {
						x := cases[r.IntN(len(cases))]
						if k >= labels {
							x.Human = math.NaN()
						}
						clusters[k] = []Pair{x}
					}
					e, l := PPI(clusters, 0.95), PPI(clusters[:labels], 0.95)
					ppi, human = ppi+e.Hi-e.Lo, human+l.Hi-l.Lo
					tried++
					if e.Lo <= truth && truth <= e.Hi {
						covered++
					}
				}
			}
			got := float64(covered) / float64(tried)
			t.Logf("%s, %d labels: covers %.3f, %.0f %% shorter than labels alone", c.judge, labels, got, 100*(1-ppi/human))
			if slack := 3 * math.Sqrt(0.0475/float64(tried)); got < 0.93-slack || got > 0.97+slack {
				t.Errorf("%s, %d labels: covers %.3f", c.judge, labels, got)
			}
			if ppi > 0.9*human {
				t.Errorf("%s, %d labels: width %.2f of that of labels alone", c.judge, labels, ppi/human)
			}
		}
		if math.Abs(alone-c.alone) > 1e-9 {
			t.Errorf("%s alone covers the truth in %.1f of the models, want %.1f", c.judge, alone, c.alone)
		}
	}
}

// Over the answers of all five models, 100 labels and GPT-4 give an interval a
// quarter shorter than the labels alone.
func TestXSTestPooled(t *testing.T) {
	rows := xstest(t)
	n := rounds(40, 1000)
	r := rand.New(rand.NewPCG(9, 9))
	ppi, human := 0.0, 0.0
	for range n {
		clusters := make([][]Pair, len(rows))
		for k, at := range r.Perm(len(rows)) {
			x := Pair{float64(refused(rows[at]["human_final"])), float64(refused(rows[at]["gpt4_judge"]))}
			if k >= 100 {
				x.Human = math.NaN()
			}
			clusters[k] = []Pair{x}
		}
		e, l := PPI(clusters, 0.95), PPI(clusters[:100], 0.95)
		ppi, human = ppi+e.Hi-e.Lo, human+l.Hi-l.Lo
	}
	if shorter := 1 - ppi/human; shorter < 0.21 || shorter > 0.30 {
		t.Errorf("%.3f shorter than labels alone, want 0.21 to 0.30", shorter)
	} else {
		t.Logf("%.0f %% shorter than labels alone", 100*shorter)
	}
}

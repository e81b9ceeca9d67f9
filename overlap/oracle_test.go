package overlap

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"unicode"
)

// oracle runs scripts/overlap/oracle.py and calls f with each line.
func oracle(t *testing.T, f func(line []byte), args ...string) {
	t.Helper()
	python := os.Getenv("ASSAY_PYTHON")
	if python == "" {
		t.Skip("ASSAY_PYTHON is not set: make test-python installs sacrebleu and rouge_score and sets it")
	}
	cmd := exec.CommandContext(t.Context(), python, append([]string{"../scripts/overlap/oracle.py"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(out)
	in.Buffer(nil, 1<<26)
	for in.Scan() {
		f(in.Bytes())
	}
	if err := in.Err(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}

func number(t *testing.T, variable, otherwise string) (string, int) {
	s := os.Getenv(variable)
	if s == "" {
		s = otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return s, n
}

// TestScoresOfRandomTexts compares every configuration on fresh texts: 200 of
// them in make test, 10,000 in make scores-oracle.
func TestScoresOfRandomTexts(t *testing.T) {
	var tallies map[string][]*Tally
	seed, _ := number(t, "ASSAY_PAIRS_SEED", "1")
	until, want := number(t, "ASSAY_PAIRS", "200")
	pairs, scores := 0, 0
	oracle(t, func(line []byte) {
		if tallies == nil {
			var configs map[string][]config
			unmarshal(t, line, &configs)
			tallies = map[string][]*Tally{}
			for kind, all := range configs {
				for _, c := range all {
					tallies[kind] = append(tallies[kind], tallied(t, c.metric(kind), nil))
				}
			}
			return
		}
		var p struct {
			Hyp             string
			Refs            []string
			BLEU, CHRF, TER []float64
			ROUGE           [][]float64
		}
		unmarshal(t, line, &p)
		pairs++
		check := func(m Metric, got, want, eps float64) {
			if scores++; !(math.Abs(got-want) <= eps) {
				t.Errorf("%s %+v of %q beside %q is %v, want %v", m.Name(), m, p.Hyp, p.Refs, got, want)
			}
		}
		for kind, want := range map[string][]float64{"bleu": p.BLEU, "chrf": p.CHRF, "ter": p.TER} {
			for i, w := range want {
				check(tallies[kind][i].metric, tallies[kind][i].metric.Score(added(t, tallies[kind][i], p.Hyp, p.Refs)), w, 1e-8)
			}
		}
		for i, want := range p.ROUGE {
			got := added(t, tallies["rouge"][i], p.Hyp, p.Refs)
			for k, w := range want {
				check(tallies["rouge"][i].metric, got[k], w, 1e-12)
			}
		}
	}, seed, "0", until)
	if pairs != want {
		t.Errorf("compared %d pairs, want %d", pairs, want)
	}
	t.Logf("%d scores of %d pairs, seed %s", scores, pairs, seed)
}

func added(t *testing.T, tally *Tally, hyp string, refs []string) []float64 {
	s, err := tally.Add(Segment{Hypothesis: hyp, References: refs})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCharactersAreAsInPython(t *testing.T) {
	n := 0
	oracle(t, func(line []byte) {
		var c struct {
			Rune          rune
			Class, Lower  string
			Space, Passed bool
		}
		unmarshal(t, line, &c)
		n++
		class := ""
		switch {
		case unicode.IsPunct(c.Rune):
			class = "P"
		case unicode.IsSymbol(c.Rune):
			class = "S"
		case unicode.IsNumber(c.Rune):
			class = "N"
		}
		if lower := string(appendLower(nil, string(c.Rune))); class != c.Class || lower != c.Lower || isSpace(c.Rune) != c.Space || (cased(c.Rune) || caseIgnorable(c.Rune)) != c.Passed {
			got, _ := json.Marshal([]any{class, lower, isSpace(c.Rune), cased(c.Rune), caseIgnorable(c.Rune)})
			t.Errorf("%s: here %s", line, got)
		}
	}, "runes")
	if n < 90_000 {
		t.Errorf("compared %d characters, want all of Unicode 3.2", n)
	}
}

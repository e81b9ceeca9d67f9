package stat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// golden are values of SciPy 1.10.1 and statsmodels 0.13.5.
type golden struct {
	Quantiles struct {
		Norm, T, Chi2, Beta map[string]float64
	}
	Proportions map[string]struct{ Wilson, Beta [2]float64 } `json:"prop_ci95"`
	Differences map[string]struct{ Newcomb [2]float64 }      `json:"two_indep_diff_ci95"`
	RuleOfThree map[string]struct {
		Exact float64 `json:"exact_upper95_one_sided"`
	} `json:"rule_of_three"`
}

func loadGolden(t *testing.T) golden {
	t.Helper()
	data, err := os.ReadFile("../../shared/data/golden/stats.json")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the golden values are not beside this tree")
	}
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Proportions) == 0 || len(g.Differences) == 0 || len(g.RuleOfThree) == 0 || len(g.Quantiles.T) == 0 {
		t.Fatal("the golden values lack a section")
	}
	return g
}

func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > relative*math.Max(math.Abs(want), 1e-9) {
		t.Errorf("%s = %.12g, want %.12g", what, got, want)
	}
}

func floats(t *testing.T, s string) []float64 {
	t.Helper()
	var out []float64
	for _, f := range strings.Split(s, "|") {
		x, err := strconv.ParseFloat(f, 64)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, x)
	}
	return out
}

// The distributions come from a library; every interval rests on them.
func TestDistributionsAgreeWithSciPy(t *testing.T) {
	q := loadGolden(t).Quantiles
	for k, want := range q.Norm {
		near(t, "normal "+k, distuv.UnitNormal.Quantile(floats(t, k)[0]), want, 1e-9)
	}
	for k, want := range q.T {
		f := floats(t, k)
		near(t, "t "+k, studentT(f[1], f[0]), want, 1e-8)
	}
	for k, want := range q.Chi2 {
		f := floats(t, k)
		near(t, "chi2 "+k, distuv.ChiSquared{K: f[1]}.Quantile(f[0]), want, 1e-8)
	}
	for k, want := range q.Beta {
		f := floats(t, k)
		near(t, "beta "+k, distuv.Beta{Alpha: f[1], Beta: f[2]}.Quantile(f[0]), want, 1e-8)
	}
}

func TestShareAgreesWithStatsmodels(t *testing.T) {
	z := distuv.UnitNormal.Quantile(0.975)
	for name, want := range loadGolden(t).Proportions {
		var k, n float64
		if _, err := fmt.Sscanf(name, "%g/%g", &k, &n); err != nil {
			t.Fatal(err)
		}
		lo, hi := wilson(k/n, n, z)
		near(t, name+" Wilson lower", lo, want.Wilson[0], 1e-9)
		near(t, name+" Wilson upper", hi, want.Wilson[1], 1e-9)
		lo, hi = clopperPearson(k/n, n, 0.025)
		near(t, name+" Clopper-Pearson lower", lo, want.Beta[0], 1e-8)
		near(t, name+" Clopper-Pearson upper", hi, want.Beta[1], 1e-8)
		if n < minJudged {
			continue
		}
		e := Share(evenly(int(k), int(n)), 0.95)
		near(t, name+" lower", e.Lo, math.Min(want.Wilson[0], want.Beta[0]), 1e-8)
		near(t, name+" upper", e.Hi, math.Max(want.Wilson[1], want.Beta[1]), 1e-8)
	}
}

// The one-sided upper bound of no failure in n is exact.
func TestShareOfNoneIsExact(t *testing.T) {
	for name, want := range loadGolden(t).RuleOfThree {
		n, err := strconv.Atoi(name)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "0/"+name, Share(make([]float64, n), 0.90).Hi, want.Exact, 1e-8)
	}
}

func TestDifferenceOfSharesIsNewcombes(t *testing.T) {
	z := distuv.UnitNormal.Quantile(0.975)
	for name, want := range loadGolden(t).Differences {
		var k1, n1, k2, n2 float64
		if _, err := fmt.Sscanf(name, "%g/%g-%g/%g", &k1, &n1, &k2, &n2); err != nil {
			t.Fatal(err)
		}
		estimate := func(k, n float64) Estimate {
			lo, hi := wilson(k/n, n, z)
			return Estimate{Value: k / n, Lo: lo, Hi: hi, Confidence: 0.95}
		}
		e := Difference(estimate(k1, n1), estimate(k2, n2))
		near(t, name+" lower", e.Lo, want.Newcomb[0], 1e-9)
		near(t, name+" upper", e.Hi, want.Newcomb[1], 1e-9)
	}
}

// evenly puts k ones at even distances among n, so that no dependence shows.
func evenly(k, n int) []float64 {
	x := make([]float64, n)
	for i := range n {
		if (i+1)*k/n > i*k/n {
			x[i] = 1
		}
	}
	return x
}

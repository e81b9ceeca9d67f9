package diverge

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func load(t *testing.T, name string, to any) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, to); err != nil {
		t.Fatal(err)
	}
}

func softmax(logits []float64) []float64 {
	out, sum := make([]float64, len(logits)), 0.0
	for i, x := range logits {
		out[i] = math.Exp(x - slices.Max(logits))
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// The values of kl.json were computed with numpy and torch.
func TestDistancesAgreeWithPublished(t *testing.T) {
	var g struct {
		Seed struct {
			Clean     [][]float64 `json:"logits_clean"`
			Pert      [][]float64 `json:"logits_pert"`
			Cos       []float64
			KL        []float64 `json:"kl_clean_pert"`
			Reverse   []float64 `json:"kl_pert_clean"`
			JS        []float64 `json:"js_nats"`
			TV        []float64
			Hellinger []float64 `json:"hellinger2"`
			Score     float64   `json:"drift_score_seed"`
		} `json:"seed_drift"`
	}
	load(t, "kl.json", &g)
	if len(g.Seed.Clean) == 0 {
		t.Fatal("there are no distributions")
	}
	score := 0.0
	for i := range g.Seed.Clean {
		d, err := Between(softmax(g.Seed.Clean[i]), softmax(g.Seed.Pert[i]))
		if err != nil {
			t.Fatal(err)
		}
		near(t, "cosine", d.Cosine, g.Seed.Cos[i])
		near(t, "KL", d.KL, g.Seed.KL[i])
		near(t, "reverse KL", d.Reverse, g.Seed.Reverse[i])
		near(t, "JS", d.JS, g.Seed.JS[i])
		near(t, "TV", d.TV, g.Seed.TV[i])
		near(t, "Hellinger", d.Hellinger2, g.Seed.Hellinger[i])
		score += d.Composite() / float64(len(g.Seed.Clean))
	}
	near(t, "1 − cosine + KL", score, g.Seed.Score)
}

func TestClassesAgreeWithPublished(t *testing.T) {
	var g struct {
		Entropy []struct {
			Counts      []int
			Entropy     float64
			Modal       float64 `json:"modal_share"`
			Agreement   float64 `json:"pairwise_agreement_unbiased"`
			MillerMadow float64 `json:"miller_madow"`
		} `json:"cluster_entropy_nats"`
	}
	load(t, "consistency.json", &g)
	if len(g.Entropy) == 0 {
		t.Fatal("there are no counts")
	}
	for _, c := range g.Entropy {
		s, err := Classes(c.Counts)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "entropy", s.Entropy, c.Entropy)
		near(t, "modal share", s.Modal, c.Modal)
		near(t, "agreement", s.Agreement, c.Agreement)
		near(t, "Miller and Madow's", s.MillerMadow, c.MillerMadow)
	}
	if s, err := Classes([]int{1, 0}); err != nil || !math.IsNaN(s.Agreement) {
		t.Errorf("one sample agrees: %+v, %v", s, err)
	}
	for _, c := range [][]int{nil, {0}, {-1, 2}} {
		if _, err := Classes(c); err == nil {
			t.Errorf("%v is taken", c)
		}
	}
}

func TestHammingAgreesWithPublished(t *testing.T) {
	var g struct {
		MMD struct {
			X, Y [][]int
			MMD2 float64
		} `json:"mmd_hamming"`
	}
	load(t, "consistency.json", &g)
	sorted := func(rows [][]int) [][][]int {
		out := make([][][]int, 2)
		for _, r := range rows {
			out[r[0]] = append(out[r[0]], r[1:])
		}
		return out
	}
	e, err := Hamming(sorted(g.MMD.X), sorted(g.MMD.Y), 1)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "MMD", e.Observed, g.MMD.MMD2)
	if math.Abs(e.Floor) > 0.01 || e.P > 0.05 {
		t.Errorf("%+v", e)
	}
}

// TestBoundsHold: whatever the distributions are, the truth lies within.
func TestBoundsHold(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(3, 40).Draw(r, "outcomes")
		k := rapid.IntRange(1, n).Draw(r, "listed")
		logits := rapid.SliceOfN(rapid.Float64Range(-6, 6), n, n)
		base := logits.Draw(r, "p")
		p := softmax(base)
		other := logits.Draw(r, "q")
		if rapid.Bool().Draw(r, "near") {
			for i := range other {
				other[i] = base[i] + other[i]/10
			}
		}
		q := softmax(other)
		truth, err := Between(p, q)
		if err != nil {
			r.Fatal(err)
		}
		b, err := Within(top(p, k), top(q, k))
		if err != nil {
			r.Fatal(err)
		}
		const eps = 1e-4 // of what is left for rounding
		if b.KL > truth.KL+eps || b.LeastTV > truth.TV+eps || b.MostTV < truth.TV-eps || b.LeastJS > truth.JS+eps || b.MostJS < truth.JS-eps {
			r.Errorf("%+v does not hold for %+v", b, truth)
		}
		if coarse := merged(p, q, top(p, k), top(q, k)); b.KL < coarse-eps {
			r.Errorf("KL of at least %v, but merging gives %v", b.KL, coarse)
		}
		entropy := 0.0
		for _, x := range p {
			entropy -= x * math.Log(x)
		}
		if least, most, err := Entropy(top(p, k), n); err != nil || least > entropy+1e-9 || most < entropy-1e-9 {
			r.Errorf("entropy %v is not within %v and %v, %v", entropy, least, most, err)
		}
	})
}

// top lists the k likeliest outcomes.
func top(p []float64, k int) map[string]float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if p[a] > p[b] {
			return -1
		}
		return 1
	})
	out := map[string]float64{}
	for _, i := range order[:k] {
		out[fmt.Sprint(i)] = p[i]
	}
	return out
}

// merged is KL of the outcomes in both lists and the rest as one.
func merged(p, q []float64, a, b map[string]float64) float64 {
	out, restP, restQ := 0.0, 0.0, 0.0
	for i := range p {
		_, in := a[fmt.Sprint(i)]
		if _, also := b[fmt.Sprint(i)]; in && also {
			out += term(p[i], q[i])
		} else {
			restP += p[i]
			restQ += q[i]
		}
	}
	return out + term(restP, math.Max(restQ, 1e-300))
}

func TestWhatIsNoDistribution(t *testing.T) {
	for _, c := range [][2][]float64{{nil, nil}, {{1}, {0.5, 0.5}}, {{0.5, 0.4}, {0.5, 0.5}}, {{0.5, 0.5}, {1.5, -0.5}}, {{math.NaN(), 1}, {0.5, 0.5}}} {
		if _, err := Between(c[0], c[1]); err == nil {
			t.Errorf("%v is taken", c)
		}
	}
	fine := map[string]float64{"a": 0.5}
	for _, c := range []map[string]float64{{"a": 0}, {"a": 0.7, "b": 0.7}, {"a": math.NaN()}, {"a": -1}} {
		if _, err := Within(c, fine); err == nil {
			t.Errorf("%v is taken", c)
		}
		if _, err := Within(fine, c); err == nil {
			t.Errorf("%v is taken", c)
		}
		if _, _, err := Entropy(c, 10); err == nil {
			t.Errorf("%v is taken", c)
		}
	}
	for _, c := range [][2][][]int{{nil, nil}, {{{1, 2}}, nil}, {{{1}}, {{1}}}, {{{0, 0}}, {{1, 1}}}, {{{1, -1}}, {{1, 1}}}, {{{1, 1, 1}}, {{1, 1}}}} {
		if _, err := Drift(c[0], c[1], nil, 1); err == nil {
			t.Errorf("%v is taken", c)
		}
	}
	if _, err := Hamming([][][]int{{{1}}}, [][][]int{{{1}, {2}}}, 1); err == nil {
		t.Error("one sequence is taken")
	}
}

// drawn draws samples of one distribution for each question.
func drawn(r *rand.Rand, questions, n int, p []float64) [][]int {
	out := make([][]int, questions)
	for i := range out {
		out[i] = make([]int, len(p))
		for range n {
			u, k := r.Float64(), 0
			for ; k < len(p)-1 && u >= p[k]; k++ {
				u -= p[k]
			}
			out[i][k]++
		}
	}
	return out
}

// TestDriftOfNothing: a model beside itself is far away, and has no excess; p is
// at most 0.05 in about 5 %.
func TestDriftOfNothing(t *testing.T) {
	seeds := 60
	if os.Getenv("ASSAY_SLOW") != "" {
		seeds = 400
	}
	r := rand.New(rand.NewPCG(1, 1))
	p := []float64{0.6, 0.2, 0.1, 0.05, 0.05}
	small, excess, least := 0, 0.0, 1.0
	for range seeds {
		e, err := Drift(drawn(r, 10, 5, p), drawn(r, 10, 5, p), nil, r.Uint64())
		if err != nil {
			t.Fatal(err)
		}
		if e.P <= 0.05 {
			small++
		}
		excess += e.Value() / float64(seeds)
		least = math.Min(least, e.Observed)
	}
	t.Logf("p at most 0.05 in %d of %d, mean excess %v, least distance %v", small, seeds, excess, least)
	if rate := float64(small) / float64(seeds); rate > 0.05+4*math.Sqrt(0.05*0.95/float64(seeds)) || math.Abs(excess) > 0.01 || least < 0.1 {
		t.Errorf("p at most 0.05 in %v, mean excess %v, least distance %v", rate, excess, least)
	}
}

func TestDriftOfSomething(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	found := 0
	for range 20 {
		e, err := Drift(drawn(r, 20, 10, []float64{0.8, 0.1, 0.1}), drawn(r, 20, 10, []float64{0.4, 0.5, 0.1}), nil, r.Uint64())
		if err != nil {
			t.Fatal(err)
		}
		if e.P <= 0.05 && e.Value() > 0 && len(e.Each) == 20 {
			found++
		}
		mean := 0.0
		for _, x := range e.Each {
			mean += x / 20
		}
		near(t, "the mean of each question's excess", mean, e.Value())
	}
	if found < 20 {
		t.Errorf("found %d of 20 drifts", found)
	}
}

// Equal servers are told apart in 5 %.
func TestHammingOfNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	draw := func() [][][]int {
		out := make([][][]int, 4)
		for i := range out {
			for range 5 {
				s := make([]int, 6+r.IntN(3))
				for k := range s {
					s[k] = r.IntN(3)
				}
				out[i] = append(out[i], s)
			}
		}
		return out
	}
	const seeds = 60
	small := 0
	for range seeds {
		e, err := Hamming(draw(), draw(), r.Uint64())
		if err != nil {
			t.Fatal(err)
		}
		if e.P <= 0.05 {
			small++
		}
	}
	if small > 10 {
		t.Errorf("p is at most 0.05 in %d of %d", small, seeds)
	}
}

// The cosine of logarithms is near 1 for distributions that have nothing in common.
func TestLogCosineAsPublished(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	draw := func() []float64 {
		x := make([]float64, 32_000)
		for i := range x {
			x[i] = 3 * r.NormFloat64()
		}
		return softmax(x)
	}
	p, q := draw(), draw()
	d, err := Between(p, q)
	if err != nil {
		t.Fatal(err)
	}
	if c := LogCosine(p, q); c < 0.95 || c > 0.97 || d.Cosine > 0.02 || d.KL < 7 {
		t.Errorf("of logarithms %v, of probabilities %v, KL %v", c, d.Cosine, d.KL)
	}
	near(t, "of a distribution and itself", LogCosine(p, p), 1)
}

package record

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// vectors are as a model gives them: of so many numbers, of differing length.
func vectors(r *rand.Rand, n, dims int) [][]float32 {
	out := make([][]float32, n)
	for i := range out {
		out[i] = make([]float32, dims)
		for k := range out[i] {
			out[i][k] = float32(r.NormFloat64() * 3)
		}
	}
	return out
}

// turned are the vectors, each moved so that its cosine with what it was is this.
func turned(r *rand.Rand, v [][]float32, cosine float64) [][]float32 {
	out := make([][]float32, len(v))
	for i := range v {
		norm, along, other := 0.0, 0.0, make([]float64, len(v[i]))
		for k := range other {
			other[k] = r.NormFloat64()
			norm += float64(v[i][k]) * float64(v[i][k])
			along += other[k] * float64(v[i][k])
		}
		length := 0.0
		for k := range other {
			other[k] -= along / norm * float64(v[i][k])
			length += other[k] * other[k]
		}
		tangent := math.Sqrt(1/cosine/cosine-1) * math.Sqrt(norm/length)
		out[i] = make([]float32, len(v[i]))
		for k := range other {
			out[i][k] = float32(float64(v[i][k]) + tangent*other[k])
		}
	}
	return out
}

// The sketch of an embedder's probes tells one that moved a text by a cosine of 0.9998
// from one that did by 0.99998, and knows it again in any scale.
func TestAnEmbedderIsKnownBySketches(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, dims := range []int{32, 384, 4096} {
		v := vectors(r, 20, dims)
		was := Signature{Value: "similarity.score", Probe: Sketch(v)}
		if len(was.Probe) > 7000 {
			t.Errorf("the sketch has %d characters", len(was.Probe))
		}
		scaled := vectors(r, 20, dims)
		for i := range v {
			for k := range v[i] {
				scaled[i][k] = v[i][k] * float32(i+2)
			}
		}
		for name, tc := range map[string]struct {
			now   [][]float32
			moved bool
		}{
			"the same":        {v, false},
			"scaled":          {scaled, false},
			"rounding":        {turned(r, v, 0.99998), false},
			"a little":        {turned(r, v, 0.9998), true},
			"another":         {vectors(r, 20, dims), true},
			"other dimension": {vectors(r, 20, dims+1), true},
			"other texts":     {v[:10], true},
		} {
			why := was.Differs(&Signature{Value: "similarity.score", Probe: Sketch(tc.now)})
			if (why != "") != tc.moved {
				t.Errorf("%d numbers, %s: %q", dims, name, why)
			}
		}
		one := turned(r, v[:1], 0.999)
		if why := was.Differs(&Signature{Probe: Sketch(append(one, v[1:]...))}); !strings.Contains(why, "cosine of about 0.99") {
			t.Errorf("one text of twenty moved: %q", why)
		}
	}
	if Sketch([][]float32{{0, 0}}) != "" || Sketch([][]float32{{float32(math.NaN())}}) != "" || Sketch(nil) != "" {
		t.Error("there is a sketch of nothing")
	}
}

func TestSignaturesDifferByWhatMakesNumbers(t *testing.T) {
	digest := strings.Repeat("0123456789abcdef", 4)
	s := Signature{Value: "a.b", Data: digest, Judge: "j", Estimator: "e", Cluster: "case", N: 10, Missing: 1}
	for want, change := range map[string]func(*Signature){
		"": func(o *Signature) { o.N, o.Missing = 99, 0 },
		"the cases: 0123456789ab…, and was none": func(o *Signature) { o.Data = "" },
		"who judges: j, and was k":               func(o *Signature) { o.Judge = "k" },
		"how it is computed: e, and was f":       func(o *Signature) { o.Estimator = "f" },
		"what depends on each other":             func(o *Signature) { o.Cluster = "session" },
		"probed in one of the runs only":         func(o *Signature) { o.Probe = "AAAA" },
	} {
		o := s
		change(&o)
		if got := s.Differs(&o); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%q; want %q", got, want)
		}
	}
	for _, bad := range []string{"!", "AAAA", strings.Repeat("A", 342)} {
		s.Probe, bad = strings.Repeat("A", 342), bad+"B"
		if why := s.Differs(&Signature{Data: s.Data, Judge: s.Judge, Estimator: s.Estimator, Cluster: s.Cluster, Probe: bad}); why == "" {
			t.Errorf("the probe %q is the same", bad)
		}
	}
}

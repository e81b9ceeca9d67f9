package attention

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// whole is a row with all weights.
func whole(layer, head, query int, weights []float64) string {
	data, err := json.Marshal(map[string]any{"layer": layer, "head": head, "query": query, "weights": weights})
	if err != nil {
		panic(err)
	}
	return string(data) + "\n"
}

// attend makes weights of noisy logits; a greater scale is less even.
func attend(r *rand.Rand, keys int, scale float64, more func(key int) float64) []float64 {
	w, sum := make([]float64, keys), 0.0
	for k := range w {
		w[k] = math.Exp(scale * r.NormFloat64())
		if more != nil {
			w[k] *= more(k)
		}
		sum += w[k]
	}
	for k := range w {
		w[k] /= sum
	}
	return w
}

// dumped has a head of each layer, whose attention is as even as scale says of the query.
func dumped(seed uint64, queries int, scale func(query int) float64) string {
	r := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	for layer := range 2 {
		for q := 40; q < queries; q += 4 {
			b.WriteString(whole(layer, 0, q, attend(r, q+1, scale(q), nil)))
		}
	}
	return b.String()
}

func TestBreakOfEvenness(t *testing.T) {
	found, silent := 0, 0
	const seeds = 8
	for seed := range uint64(seeds) {
		at := 160 + 4*rand.New(rand.NewPCG(seed, 2)).IntN(30)
		d, err := Read([]byte(dumped(seed, 400, func(q int) float64 {
			if q >= at {
				return 2
			}
			return 1
		})), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Breaks) == 1 && max(d.Breaks[0]-at, at-d.Breaks[0]) <= 8 {
			found++
		}
		none, err := Read([]byte(dumped(seed, 400, func(int) float64 { return 0.2 })), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(none.Breaks) == 0 {
			silent++
		}
		// What is published says the first position, whatever is there.
		if p := none.Published(0.5); p != 40 {
			t.Errorf("the published form says %d", p)
		}
	}
	t.Logf("found %d, silent %d of %d", found, silent, seeds)
	if found < seeds-1 || silent < seeds-2 {
		t.Errorf("found %d, silent %d of %d", found, silent, seeds)
	}
}

func TestHeadsByHand(t *testing.T) {
	var b strings.Builder
	for q := 10; q < 30; q++ {
		// Half on the first key, and the rest even on the last two.
		w := make([]float64, q+1)
		w[0], w[q], w[q-1] = 0.5, 0.25, 0.25
		b.WriteString(whole(1, 2, q, w))
	}
	d, err := Read([]byte(b.String()), Options{})
	if err != nil || len(d.Heads) != 1 {
		t.Fatalf("%+v, %v", d, err)
	}
	h, want := d.Heads[0], 0.0
	for q := 10; q < 30; q++ {
		want += math.Ln2 / math.Log(float64(q+1-4)) / 20
	}
	if h.Layer != 1 || h.Head != 2 || h.Rows != 20 || math.Abs(*h.Evenness-want) > 1e-9 || math.Abs(*h.Distance-0.5) > 1e-9 || h.Needle != nil || h.Retrieval {
		t.Errorf("%+v with %v, %v; want an evenness of %v", h, *h.Evenness, *h.Distance, want)
	}
}

// A column with a third of the attention is a sink, unless it is what matters.
func TestSinksAndRetrievalHeads(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var b strings.Builder
	for q := 60; q < 120; q++ {
		for head, key := range []int{20, 30} { // the first looks at a comma, the second at the needle
			b.WriteString(whole(0, head, q, attend(r, q+1, 0.3, func(k int) float64 {
				if k == key {
					return 40
				}
				return 1
			})))
		}
	}
	d, err := Read([]byte(b.String()), Options{Needle: Span{29, 32}})
	if err != nil {
		t.Fatal(err)
	}
	if h := d.Heads[0]; !slices.Equal(h.Sinks, []int{20}) || h.Retrieval {
		t.Errorf("%+v", h)
	}
	if h := d.Heads[1]; len(h.Sinks) > 0 || !h.Retrieval || *h.Needle < 0.2 {
		t.Errorf("%+v", h)
	}
	if len(d.Course) != 60 {
		t.Errorf("the course has %d positions", len(d.Course))
	}
}

// The greatest weights alone tell nearly the same, or nothing.
func TestRowsThatListSome(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	var all, part, little strings.Builder
	for q := 60; q < 100; q++ {
		w := attend(r, q+1, 1.5, nil)
		all.WriteString(whole(0, 0, q, w))
		order := make([]int, len(w))
		for k := range order {
			order[k] = k
		}
		slices.SortFunc(order, func(a, b int) int {
			if w[a] > w[b] {
				return -1
			}
			return 1
		})
		for n, to := range map[int]*strings.Builder{40: &part, 3: &little} {
			var top [][2]float64
			for _, k := range order[:n] {
				top = append(top, [2]float64{float64(k), w[k]})
			}
			data, _ := json.Marshal(map[string]any{"layer": 0, "head": 0, "query": q, "top": top})
			to.Write(append(data, '\n'))
		}
	}
	var even [3]*Dump
	for i, b := range []*strings.Builder{&all, &part, &little} {
		d, err := Read([]byte(b.String()), Options{})
		if err != nil {
			t.Fatal(err)
		}
		even[i] = d
	}
	if a, b := *even[0].Heads[0].Evenness, *even[1].Heads[0].Evenness; math.Abs(a-b) > 0.03 || even[1].Heads[0].Narrow > 0 {
		t.Errorf("whole %v, in part %v", a, b)
	}
	if h := even[2].Heads[0]; h.Evenness != nil || h.Distance != nil || h.Narrow != 40 || len(even[2].Course) > 0 || len(even[2].Breaks) > 0 {
		t.Errorf("of three weights: %+v", h)
	}
}

func TestWhatIsNoAttention(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "no rows",
		"{}":                             "line 1",
		"[1,2]":                          "line 1",
		`{"layer":0,"head":0,"query":1}`: "weights or top",
		`{"layer":0,"head":0,"query":1,"weights":[0.5,0.5],"top":[]}`:                                                "not both",
		`{"layer":0,"head":0,"query":1,"weights":[0.5,0.9]}`:                                                         "sum",
		`{"layer":0,"head":0,"query":1,"weights":[0.1,0.1]}`:                                                         "sum",
		`{"layer":0,"head":0,"query":1,"weights":[-0.5,1.5]}`:                                                        "weight",
		`{"layer":0,"head":0,"query":1,"top":[[5,0.5]]}`:                                                             "key",
		`{"layer":0,"head":0,"query":1,"top":[[0,0.5],[0,0.4]]}`:                                                     "once",
		`{"layer":0,"head":0,"query":1,"top":[[0.5,0.5]]}`:                                                           "key",
		`{"layer":-1,"head":0,"query":1,"top":[[0,0.5]]}`:                                                            "numbers from 0",
		`{"layer":0,"head":0,"query":99999999,"top":[[0,0.5]]}`:                                                      "numbers from 0",
		`{"layer":0,"head":0,"query":1,"top":[[0,0.5]],"more":1}`:                                                    "more",
		"{\"layer\":0,\"head\":0,\"query\":0,\"weights\":[1]}\n{\"layer\":0,\"head\":0,\"query\":0,\"weights\":[1]}": "twice",
	} {
		if _, err := Read([]byte(text), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := Read([]byte(dumped(1, 60, func(int) float64 { return 1 })), Options{Needle: Span{5, 5}}); err == nil {
		t.Error("an empty needle is taken")
	}
}

// FuzzRead: whatever a file says, what is read is within its bounds, and fit for JSON.
func FuzzRead(f *testing.F) {
	f.Add([]byte(dumped(1, 52, func(int) float64 { return 1 })), 2, 5)
	f.Add([]byte(`{"layer":0,"head":0,"query":9,"top":[[7,0.5],[8,0.4]]}`), 0, 0)
	f.Add([]byte(`{"layer":0,"head":0,"query":9,"top":[[0,1]],"keys":16777216}`), 3, 4)
	f.Fuzz(func(t *testing.T, data []byte, from, to int) {
		d, err := Read(data, Options{Needle: Span{from, to}})
		if err != nil {
			return
		}
		for _, h := range d.Heads {
			if h.Evenness != nil && !(*h.Evenness >= -1e-9 && *h.Evenness <= 1) || h.Needle != nil && !(*h.Needle >= 0 && *h.Needle <= 1+1e-9) || h.Distance != nil && *h.Distance < 0 {
				t.Fatalf("%+v", h)
			}
		}
		if _, err := json.Marshal(d); err != nil {
			t.Fatal(err)
		}
	})
}

func ExampleRead() {
	var b strings.Builder
	for q := 64; q < 128; q++ { // even attention to the 32 last keys, from 100 on to the 4 last
		near := 32
		if q >= 100 {
			near = 4
		}
		w := make([]float64, q+1)
		for k := range near {
			w[q-k] = 1 / float64(near)
		}
		b.WriteString(whole(0, 0, q, w))
	}
	d, err := Read([]byte(b.String()), Options{Sinks: -1})
	fmt.Println(d.Breaks, err)
	// Output: [100] <nil>
}

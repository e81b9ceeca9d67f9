package corpus

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
)

// pack makes an archive of files in the order of their names.
func pack(t testing.TB, compress bool, files map[string]string) []byte {
	t.Helper()
	var plain bytes.Buffer
	w := tar.NewWriter(&plain)
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !compress {
		return plain.Bytes()
	}
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(plain.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// small are two clients of two windows.
func small() map[string]string {
	return map[string]string{
		"m/chunk-0-trace.csv":    "0,0,0,,0,0\r\n600,1.5,2,Gamma,0.25,1.2\r\n",
		"m/chunk-0-dataset.json": `{"0": {"input_tokens": "{3: 0.25, 10: 0.75}", "output_tokens": "{0: 0.1, 1: 0.4, 7: 5e-1}", "reason_ratio": "{0.5: 1}"}}`,
		"m/chunk-7-trace.csv":    "0,2,1,Weibull,1.1,0.4\n600,4,0.9,,0,0\n",
		"m/chunk-7-dataset.json": `{"600": {"input_tokens": "{5: 1.0}", "output_tokens": "{6: 1.0}"}, "0": {"input_tokens": "{}", "output_tokens": "{}"}}`,
		"m/README.md":            "ignored",
	}
}

func TestReadServeGen(t *testing.T) {
	const minute = 60 * second
	want := &Traffic{
		Source: "ServeGen, Alibaba, Apache-2.0",
		Clients: []Client{
			{
				Name:    "client-0",
				Windows: []Window{{Length: 10 * minute}, {Length: 10 * minute, Rate: 1.5, CV: 2, Family: "gamma", Shape: 0.25}},
				Lengths: []Lengths{{Input: Table{[]int32{3, 10}, []float64{0.25, 1}}, Output: Table{[]int32{1, 1, 7}, []float64{0.1, 0.5, 1}}}},
			},
			{
				Name: "client-7",
				Windows: []Window{
					{Length: 10 * minute, CV: 1, Family: "weibull", Shape: 1.1},
					{Length: 10 * minute, Rate: 4, CV: 0.9, Lengths: 1},
				},
				Lengths: []Lengths{{}, {Input: Table{[]int32{5}, []float64{1}}, Output: Table{[]int32{6}, []float64{1}}}},
			},
		},
	}
	var digests []string
	for _, compress := range []bool{false, true} {
		set, err := Read("x.tar", bytes.NewReader(pack(t, compress, small())), "servegen")
		if err != nil {
			t.Fatal(err)
		}
		if d := diff.Diff(want, set.Traffic); d != "" || set.Format != "servegen" {
			t.Errorf("format %s, differs (-want +got):\n%s", set.Format, d)
		}
		digests = append(digests, set.Digest)
	}
	if digests[0] != digests[1] {
		t.Error("the digest depends on the compression")
	}
	other := small()
	other["m/chunk-7-trace.csv"] = "0,2,1,Weibull,1.1,0.4\n600,4.5,0.9,,0,0\n"
	if set, err := Read("x.tar", bytes.NewReader(pack(t, true, other)), "servegen"); err != nil || set.Digest == digests[0] {
		t.Errorf("another rate has the same digest: %v", err)
	}
}

func TestTableAt(t *testing.T) {
	table := Table{[]int32{3, 10, 20}, []float64{0.25, 0.75, 1}}
	for u, want := range map[float64]int32{0x1p-53: 3, 0.25: 3, 0.2501: 10, 0.75: 10, 0.76: 20, 1 - 0x1p-53: 20} {
		if got := table.At(u); got != want {
			t.Errorf("At(%v) = %d, want %d", u, got, want)
		}
	}
}

func TestServeGenFaults(t *testing.T) {
	change := func(name, text string) []byte {
		files := small()
		files["m/"+name] = text
		return pack(t, true, files)
	}
	dataset := func(input string) []byte {
		return change("chunk-0-dataset.json", `{"0": {"input_tokens": "`+input+`", "output_tokens": "{1: 1}"}}`)
	}
	const at = "x: chunk-0-dataset.json:1: column 24: \"input_tokens\": "
	without := small()
	delete(without, "m/chunk-0-trace.csv")
	var many strings.Builder
	for i := range maxWindows + 1 {
		fmt.Fprintf(&many, "%d,1,1,,0,0\n", i)
	}
	for name, tt := range map[string]struct {
		in   []byte
		want string
	}{
		"many windows":     {change("chunk-0-trace.csv", many.String()), "x: chunk-0-trace.csv:100001: more than 100000 windows"},
		"empty":            {nil, "x: no client asks anything"},
		"text":             {[]byte("0,0,0,,0,0\n"), "x: the archive is broken"},
		"half":             {change("a", "")[:200], "x: the archive is broken"},
		"gzip of nothing":  {[]byte("\x1f\x8b"), "x: not a gzip file"},
		"one file alone":   {pack(t, false, without), "x: client 0 has no chunk-0-trace.csv"},
		"evaluated":        {dataset(`__import__('os').system('id')`), at + "not a table"},
		"call inside":      {dataset(`{1: open('x')}`), at + "not tokens and their probability"},
		"nested":           {dataset(`{1: {2: 3}}`), at + "not tokens and their probability"},
		"no sum":           {dataset(`{1: 0.5}`), at + "the probabilities add up to 0.5, not to 1"},
		"negative":         {dataset(`{1: -1, 2: 2}`), at + "-1 is no probability"},
		"fraction":         {dataset(`{1.5: 1}`), at + "want whole tokens"},
		"huge":             {dataset(`{3e9: 1}`), at + "want whole tokens"},
		"infinite":         {dataset(`{1: 1e999}`), at + "not tokens and their probability"},
		"twice":            {dataset(`{5: 0.5, 5: 0.5}`), at + "5 tokens are there twice"},
		"no JSON":          {change("chunk-0-dataset.json", "{'0': {}}"), "x: chunk-0-dataset.json:1: column 2: want a key in quotes"},
		"no window":        {change("chunk-0-dataset.json", `{"noon": {}}`), "x: chunk-0-dataset.json:1: not the start of a window"},
		"few fields":       {change("chunk-0-trace.csv", "0,1,1,Gamma,1\n"), "x: chunk-0-trace.csv:1: want 6 fields, got 5"},
		"family":           {change("chunk-0-trace.csv", "0,1,1,Pareto,1,1\n"), `x: chunk-0-trace.csv:1: unknown family "Pareto"`},
		"shape":            {change("chunk-0-trace.csv", "0,1,1,Gamma,0,1\n"), "x: chunk-0-trace.csv:1: the shape 0 of the gamma distribution is out of range"},
		"rate":             {change("chunk-0-trace.csv", "0,-1,1,,0,0\n"), `x: chunk-0-trace.csv:1: want a number of at least 0, got "-1"`},
		"order":            {change("chunk-0-trace.csv", "0,1,1,,0,0\n0,1,1,,0,0\n"), "x: chunk-0-trace.csv:2: the window is not after the one before it"},
		"a client of both": {change("n/chunk-0-trace.csv", "0,1,1,,0,0\n"), "x: chunk-0-trace.csv: this client is there twice"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := Read("x", bytes.NewReader(tt.in), "servegen")
			if err == nil || set != nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v, %v, want %s", set, err, tt.want)
			}
		})
	}
	// A small archive that unpacks to more than is allowed.
	bomb := pack(t, true, map[string]string{"a": strings.Repeat("0", 2<<20)})
	if _, err := readServeGen(bounds{file: 1 << 20}, "x", bytes.NewReader(bomb)); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("a bomb of %d bytes: %v", len(bomb), err)
	}
}

// weighted are values with weights.
type weighted struct{ x, w float64 }

func (t Table) mass(i int) float64 {
	if i == 0 {
		return t.Cumulative[0]
	}
	return t.Cumulative[i] - t.Cumulative[i-1]
}

// weightedQuantile is the least value that has at least p of the weight.
func weightedQuantile(xs []weighted, p float64) float64 {
	slices.SortFunc(xs, func(a, b weighted) int { return cmp.Compare(a.x, b.x) })
	sum := 0.0
	for _, x := range xs {
		sum += x.w
	}
	at := 0.0
	for _, x := range xs {
		if at += x.w; at >= p*sum {
			return x.x
		}
	}
	return xs[len(xs)-1].x
}

// TestServeGenMatchesItsSummary: the numbers of workload_presets.json come out of
// our import, weighted by rate and window.
func TestServeGenMatchesItsSummary(t *testing.T) {
	text, err := os.ReadFile(traces + "workload_presets.json")
	if err != nil {
		t.Skipf("public traces are not here: %v", err)
	}
	var all struct {
		ServeGen map[string]json.RawMessage `json:"servegen"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		file, model, input string
		clients, windows   int
	}{
		{"servegen_reason_deepseek-r1.tar.gz", "deepseek-r1", "input_tokens", 73, 144},
		{"servegen_multimodal_mm-image.tar.gz", "mm-image", "text_tokens", 35, 144},
	} {
		set := public(t, tt.file, "servegen")
		if n := len(set.Traffic.Clients); n != tt.clients || set.Skipped != 0 {
			t.Errorf("%s: %d clients, %d bad windows", tt.model, n, set.Skipped)
		}
		got := serveGenFigures(t, set.Traffic, tt.input, tt.windows)
		var summary any
		dec := json.NewDecoder(bytes.NewReader(all.ServeGen[tt.model]))
		dec.UseNumber()
		if err := dec.Decode(&summary); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		flat("", summary, want)
		compared := 0
		for path, w := range want {
			g, ok := got[path]
			if !ok {
				continue
			}
			compared++
			digits := 0
			if _, part, dot := strings.Cut(w, "."); dot {
				digits = len(part)
			}
			var number float64
			fmt.Sscan(w, &number)
			if math.Abs(g-number) > 0.5001*math.Pow(10, -float64(digits)) {
				t.Errorf("%s: %s = %v, want %s", tt.model, path, g, w)
			}
		}
		if compared < 20 {
			t.Errorf("%s: only %d numbers compared", tt.model, compared)
		}
	}
}

func serveGenFigures(t *testing.T, traffic *Traffic, input string, windows int) map[string]float64 {
	out := map[string]float64{"clients": float64(len(traffic.Clients))}
	total := make([]float64, windows)
	shares := make([]float64, len(traffic.Clients))
	var cvs []weighted
	tables := map[string][]weighted{}
	sum, gt1, gt2 := 0.0, 0.0, 0.0
	for i, c := range traffic.Clients {
		if len(c.Windows) != windows {
			t.Fatalf("%s has %d windows", c.Name, len(c.Windows))
		}
		for k, w := range c.Windows {
			switch w.Family {
			case "gamma":
				out["windows.gamma"]++
			case "weibull":
				out["windows.weibull"]++
			}
			if w.Rate == 0 {
				continue
			}
			total[k] += w.Rate
			shares[i] += w.Rate
			sum += w.Rate
			cvs = append(cvs, weighted{w.CV, w.Rate})
			if w.CV > 1 {
				gt1 += w.Rate
			}
			if w.CV > 2 {
				gt2 += w.Rate
			}
		}
		weight := make([]float64, len(c.Lengths))
		for _, w := range c.Windows {
			weight[w.Lengths] += w.Rate
		}
		for k, l := range c.Lengths {
			for name, table := range map[string]Table{input: l.Input, "output_tokens": l.Output} {
				for j, v := range table.Values {
					if weight[k] > 0 {
						tables[name] = append(tables[name], weighted{float64(v), weight[k] * table.mass(j)})
					}
				}
			}
		}
	}
	mean, _ := moments(total)
	out["rate_rps.mean"], out["rate_rps.min"], out["rate_rps.max"] = mean, slices.Min(total), slices.Max(total)
	out["rate_share_cv_gt1"], out["rate_share_cv_gt2"] = gt1/sum, gt2/sum
	slices.SortFunc(shares, func(a, b float64) int { return cmp.Compare(b, a) })
	top := 0.0
	for i, s := range shares {
		top += s / sum
		switch i + 1 {
		case 1, 5, 10:
			out[fmt.Sprintf("top%d_share", i+1)] = top
		}
		if _, done := out["clients_for_90pct"]; top >= 0.9 && !done {
			out["clients_for_90pct"] = float64(i + 1)
		}
	}
	for _, p := range []float64{10, 50, 90, 99} {
		out[fmt.Sprintf("client_window_cv.p%v", p)] = weightedQuantile(cvs, p/100)
	}
	for name, xs := range tables {
		m, w := 0.0, 0.0
		for _, x := range xs {
			m += x.x * x.w
			w += x.w
		}
		m /= w
		v := 0.0
		for _, x := range xs {
			v += (x.x - m) * (x.x - m) * x.w / w
		}
		out[name+".mean"], out[name+".cv"] = m, math.Sqrt(v)/m
		for _, p := range []float64{5, 25, 50, 75, 90, 95, 99, 99.9} {
			out[fmt.Sprintf("%s.p%v", name, p)] = weightedQuantile(xs, p/100)
		}
		out[name+".max"] = xs[len(xs)-1].x
	}
	return out
}

// FuzzServeGenTable: a table that is read is a distribution.
func FuzzServeGenTable(f *testing.F) {
	for _, s := range []string{"{}", "{45: 0.5, 46: 5e-1}", "{0: 1}", "{0: 0.5, 1: 0.5}", "{1: __import__('os')}", "{1: 0.5,}", "{5:1}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		table, err := tableOf(in, true)
		if err != nil || len(table.Values) == 0 {
			return
		}
		n := len(table.Values)
		if len(table.Cumulative) != n || table.Cumulative[n-1] != 1 || !slices.IsSorted(table.Values) || !slices.IsSorted(table.Cumulative[:n-1]) || table.Values[0] < 1 {
			t.Fatalf("%q: %+v", in, table)
		}
		for _, u := range []float64{0x1p-53, 0.3, 0.9999, 1 - 0x1p-53} {
			if !slices.Contains(table.Values, table.At(u)) {
				t.Fatalf("%q: At(%v) = %d", in, u, table.At(u))
			}
		}
	})
}

// FuzzReadServeGen: an archive of any two files is read or refused.
func FuzzReadServeGen(f *testing.F) {
	s := small()
	f.Add([]byte(s["m/chunk-0-trace.csv"]), []byte(s["m/chunk-0-dataset.json"]))
	f.Add([]byte(s["m/chunk-7-trace.csv"]), []byte(s["m/chunk-7-dataset.json"]))
	f.Add([]byte("600,1,1,,0,0"), []byte(`{"7": {"text_tokens": "{1: 1}", "output_tokens": "{2: 1}", "image_count": "{1: 1}"}}`))
	f.Fuzz(func(t *testing.T, trace, dataset []byte) {
		set, err := Read("x", bytes.NewReader(pack(t, false, map[string]string{"chunk-0-trace.csv": string(trace), "chunk-0-dataset.json": string(dataset)})), "servegen")
		if err != nil {
			return
		}
		for _, c := range set.Traffic.Clients {
			for _, w := range c.Windows {
				l := c.Lengths[w.Lengths]
				if w.Length <= 0 || !(w.Rate >= 0) || w.Rate > 0 && (len(l.Input.Values) == 0 || len(l.Output.Values) == 0) || w.Family != "" && !(w.Shape >= minShape) {
					t.Fatalf("a window that cannot be sent: %+v", w)
				}
			}
		}
	})
}

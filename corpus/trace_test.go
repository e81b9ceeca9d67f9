package corpus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const traces = "../../shared/data/traces/"

// public reads one of the public traces, which are not part of the repository.
func public(t testing.TB, file, format string) *Set {
	t.Helper()
	f, err := os.Open(traces + file)
	if err != nil {
		t.Skipf("public traces are not here: %v", err)
	}
	defer f.Close()
	set, err := Read(file, f, format)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// column takes a number of each row.
func column(t *Trace, of func(Row) float64) []float64 {
	out := make([]float64, len(t.Rows))
	for i, r := range t.Rows {
		out[i] = of(r)
	}
	return out
}

func input(r Row) float64  { return float64(r.Input) }
func output(r Row) float64 { return float64(r.Output) }

// gaps are the seconds between rows.
func gaps(t *Trace) []float64 {
	var out []float64
	for i := 1; i < len(t.Rows); i++ {
		out = append(out, float64(t.Rows[i].At-t.Rows[i-1].At)/1e9)
	}
	return out
}

func moments(xs []float64) (mean, cv float64) {
	for _, x := range xs {
		mean += x / float64(len(xs))
	}
	v := 0.0
	for _, x := range xs {
		v += (x - mean) * (x - mean) / float64(len(xs))
	}
	return mean, math.Sqrt(v) / mean
}

// quantile is the linear interpolation of the order statistics (type 7).
func quantile(xs []float64, p float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	at := p * float64(len(s)-1)
	i := int(at)
	if i+1 >= len(s) {
		return s[len(s)-1]
	}
	return s[i] + (at-float64(i))*(s[i+1]-s[i])
}

// ranks gives ties their mean rank.
func ranks(xs []float64) []float64 {
	order := make([]int, len(xs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case xs[a] < xs[b]:
			return -1
		case xs[a] > xs[b]:
			return 1
		}
		return 0
	})
	out := make([]float64, len(xs))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && xs[order[j]] == xs[order[i]] {
			j++
		}
		for k := i; k < j; k++ {
			out[order[k]] = float64(i+j-1) / 2
		}
		i = j
	}
	return out
}

func spearman(xs, ys []float64) float64 {
	a, b := ranks(xs), ranks(ys)
	ma, _ := moments(a)
	mb, _ := moments(b)
	num, va, vb := 0.0, 0.0, 0.0
	for i := range a {
		num += (a[i] - ma) * (b[i] - mb)
		va += (a[i] - ma) * (a[i] - ma)
		vb += (b[i] - mb) * (b[i] - mb)
	}
	return num / math.Sqrt(va*vb)
}

// blockHits returns the share of blocks that were asked before, and their number.
func blockHits(t *Trace) (share float64, unique, all int) {
	seen := map[uint32]bool{}
	for _, r := range t.Rows {
		for _, b := range r.Blocks {
			seen[b] = true
			all++
		}
	}
	return 1 - float64(len(seen))/float64(all), len(seen), all
}

// perBin are the counts of whole bins of so many seconds.
func perBin(t *Trace, seconds float64) []float64 {
	out := make([]float64, int(float64(t.Span())/1e9/seconds)+1)
	for _, r := range t.Rows {
		out[int(float64(r.At)/1e9/seconds)]++
	}
	return out
}

// figures are the numbers of a published summary, by their path within it.
func figures(t *testing.T, set *Set) map[string]float64 {
	tr := set.Trace
	iats := gaps(tr)
	_, cv := moments(iats)
	out := map[string]float64{
		"n": float64(len(tr.Rows)), "span_s": float64(tr.Span()) / 1e9, "rate_rps": float64(len(tr.Rows)) / (float64(tr.Span()) / 1e9), "iat_cv": cv,
		"iat_s.p50": quantile(iats, 0.5), "iat_s.p99": quantile(iats, 0.99), "iat_s.max": slices.Max(iats),
		"spearman_in_out": spearman(column(tr, input), column(tr, output)),
	}
	for name, xs := range map[string][]float64{"input_tokens": column(tr, input), "output_tokens": column(tr, output)} {
		out[name+".mean"], out[name+".cv"] = moments(xs)
		out[name+".max"] = slices.Max(xs)
		for _, p := range []float64{5, 10, 25, 50, 75, 90, 95, 99, 99.9} {
			out[fmt.Sprintf("%s.p%v", name, p)] = quantile(xs, p/100)
		}
		logs := make([]float64, len(xs))
		for i, x := range xs {
			logs[i] = math.Log(x)
		}
		mu, c := moments(logs)
		out[name+".lognormal.mu"], out[name+".lognormal.sigma"] = mu, mu*c
	}
	for bin, name := range map[float64]string{1: "per_second", 60: "per_minute"} {
		counts := perBin(tr, bin)
		m, c := moments(counts)
		if out[name+".max"] = slices.Max(counts); bin == 60 {
			whole := counts[:len(counts)-1] // the last minute is cut off
			out[name+".min"] = slices.Min(whole)
			m, c = moments(whole)
			out[name+".max"] = slices.Max(whole)
		}
		out[name+".mean"], out[name+".dispersion_index"] = m, m*c*c
	}
	if tr.BlockTokens > 0 {
		share, unique, all := blockHits(tr)
		out["prefix_cache.block_tokens"] = float64(tr.BlockTokens)
		out["prefix_cache.ideal_block_hit"], out["prefix_cache.unique_blocks"], out["prefix_cache.blocks"] = share, float64(unique), float64(all)
	}
	return out
}

// flat lists the numbers of a JSON object by their path.
func flat(prefix string, v any, out map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			flat(strings.TrimPrefix(prefix+"."+k, "."), x, out)
		}
	case json.Number:
		out[prefix] = v.String()
	}
}

// elsewhere are numbers of the summaries that are not of the files: fits of
// distributions, papers, and cache simulations.
func elsewhere(path string) bool {
	for _, part := range []string{"iat_gamma", "iat_weibull", ".gamma.", "paper", "lru", "2plus", "autocorr"} {
		if strings.Contains(path, part) {
			return true
		}
	}
	return false
}

// TestTracesMatchTheirSummaries: every number of workload_presets.json that is a
// direct count of a file here comes out of our import of it, to the digits that
// it is given with.
func TestTracesMatchTheirSummaries(t *testing.T) {
	text, err := os.ReadFile(traces + "workload_presets.json")
	if err != nil {
		t.Skipf("public traces are not here: %v", err)
	}
	var summaries map[string]any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&summaries); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		file, format, summary string
		least                 int
	}{
		{"AzureLLMInferenceTrace_code.csv", "azure", "azure_code_2023", 38},
		{"AzureLLMInferenceTrace_conv.csv", "azure", "azure_conv_2023", 38},
		{"mooncake_fast25_conversation_trace.jsonl", "mooncake", "mooncake_conversation", 30},
		{"mooncake_fast25_synthetic_trace.jsonl", "mooncake", "mooncake_synthetic", 28},
	} {
		set := public(t, tt.file, "")
		if set.Format != tt.format || set.Skipped != 0 || set.Trace.Unanswered != 0 {
			t.Errorf("%s: format %s, %d bad rows, %d unanswered", tt.file, set.Format, set.Skipped, set.Trace.Unanswered)
		}
		want := map[string]string{}
		flat("", summaries[tt.summary], want)
		got := figures(t, set)
		compared := 0
		for path, w := range want {
			if elsewhere(path) {
				continue
			}
			g, ok := got[path]
			if !ok {
				t.Errorf("%s: nothing to compare %s with", tt.summary, path)
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
				t.Errorf("%s: %s = %v, want %s", tt.summary, path, g, w)
			}
		}
		if compared < tt.least {
			t.Errorf("%s: only %d numbers compared", tt.summary, compared)
		}
	}
}

func TestTracesKeepTheirRows(t *testing.T) {
	for _, tt := range []struct {
		file     string
		rows     int
		together int
		source   string
	}{
		{"AzureLLMInferenceTrace_code.csv", 8819, -1, "CC-BY-4.0"},
		{"AzureLLMInferenceTrace_conv.csv", 19366, -1, "CC-BY-4.0"},
		{"mooncake_fast25_conversation_trace.jsonl", 12031, 12031 - 1180, "Apache-2.0"},
		{"mooncake_fast25_synthetic_trace.jsonl", 3993, -1, "Apache-2.0"},
	} {
		set := public(t, tt.file, "")
		tr := set.Trace
		if len(tr.Rows) != tt.rows || tt.together >= 0 && tr.Together != tt.together || !strings.Contains(tr.Source, tt.source) || len(set.Cases) != 0 {
			t.Errorf("%s: %d rows, %d together, source %q", tt.file, len(tr.Rows), tr.Together, tr.Source)
		}
		if !slices.IsSortedFunc(tr.Rows, func(a, b Row) int { return int(a.At - b.At) }) || tr.Rows[0].At != 0 {
			t.Errorf("%s is not in order from 0", tt.file)
		}
	}
	// The second row of the file with seven digits: 51.9999 ms after the first is
	// 04.0319600 − 03.9799600.
	if at := public(t, "AzureLLMInferenceTrace_code.csv", "azure").Trace.Rows[1].At; at != 52_000_000 {
		t.Errorf("the second row is at %d ns, want 52 ms", at)
	}
}

const burst = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n" +
	"5,ChatGPT,472,18,490,Conversation log\n" +
	"45.25,ChatGPT,1087,230,1317,Conversation log\n" +
	"118,GPT-4,417,0,417,API log\n" +
	"118,GPT-4,417,276,693,API log\r\n"

func TestReadBurstGPT(t *testing.T) {
	set, err := Read("b.csv", strings.NewReader(burst), "")
	if err != nil {
		t.Fatal(err)
	}
	want := &Trace{
		Rows: []Row{
			{At: 0, Input: 472, Output: 18},
			{At: 40_250_000_000, Input: 1087, Output: 230},
			{At: 113_000_000_000, Input: 417, Output: 276, Tenant: 1},
		},
		Tenants: []string{"ChatGPT, Conversation log", "GPT-4, API log"}, Source: "BurstGPT, HPMLL, CC-BY-4.0", Unanswered: 1,
	}
	if d := cmp.Diff(want, set.Trace); d != "" || set.Format != "burstgpt" {
		t.Errorf("format %s, differs (-want +got):\n%s", set.Format, d)
	}
	// The newer release has sessions, in other places.
	newer := "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n" +
		"5,1,2,ChatGPT,472,18,490,Conversation log\n"
	if set, err := Read("b.csv", strings.NewReader(newer), "burstgpt"); err != nil || set.Trace.Rows[0].Input != 472 {
		t.Errorf("newer release: %v", err)
	}
}

// TestCivilAgreesWithTheCalendar compares with package time, which the package
// itself may not import.
func TestCivilAgreesWithTheCalendar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(0, 7_289_000_000).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "fraction")).UTC()
		for _, form := range []string{"2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.000000000Z", "2006-01-02 15:04:05.000000000+00:00"} {
			text := at.Format(form)
			if got, err := civil(text); err != nil || got != at.UnixNano() {
				t.Fatalf("civil(%s) = %d, %v, want %d", text, got, err, at.UnixNano())
			}
		}
	})
}

func TestTraceFaults(t *testing.T) {
	const azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n"
	row := func(s string) string { return azure + s + "\n" }
	mooncake := func(s string) string {
		return `{"timestamp": 0, "input_length": 513, "output_length": 5, "hash_ids": [0, 1]}` + "\n" + s
	}
	for name, tt := range map[string]struct{ format, in, want string }{
		"empty":            {"azure", "", "x: no rows with an answer: the trace is empty"},
		"header only":      {"azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n", "x: no rows with an answer: the trace is empty"},
		"no column":        {"azure", "TIMESTAMP,ContextTokens\n", `x:1: there is no column "generatedtokens"`},
		"column twice":     {"azure", "TIMESTAMP,ContextTokens,GeneratedTokens,TIMESTAMP\n", `x:1: the column "timestamp" is there twice`},
		"LFS pointer":      {"burstgpt", "version https://git-lfs.github.com/spec/v1\noid sha256:4bb\n", `x:1: there is no column "timestamp"`},
		"few fields":       {"azure", row("2023-11-16 18:17:04,5"), "x:3: want 3 fields, got 2"},
		"many fields":      {"azure", row("2023-11-16 18:17:04,5,6,7"), "x:3: want 3 fields, got 4"},
		"quotes":           {"azure", row(`"2023-11-16 18:17:04",5,6`), "x:3: quotes have no place in this table"},
		"no day":           {"azure", row("2023-02-29 18:17:04,5,6"), `x:3: not a timestamp: "2023-02-29 18:17:04"`},
		"leap second":      {"azure", row("2023-12-31 23:59:60,5,6"), `x:3: not a timestamp: "2023-12-31 23:59:60"`},
		"zone":             {"azure", row("2023-12-31 23:59:00+02:00,5,6"), `x:3: not a timestamp: "2023-12-31 23:59:00+02:00"`},
		"too fine":         {"azure", row("2023-11-16 18:17:04.0000000001,5,6"), `x:3: not a timestamp: "2023-11-16 18:17:04.0000000001"`},
		"no prompt":        {"azure", row("2023-11-16 18:17:04,0,6"), `x:3: want tokens of the prompt from 1 to 2000000, got "0"`},
		"negative":         {"azure", row("2023-11-16 18:17:04,5,-6"), `x:3: want tokens of the answer from 0 to 2000000, got "-6"`},
		"not whole":        {"azure", row("2023-11-16 18:17:04,5.5,6"), `x:3: want tokens of the prompt from 1 to 2000000, got "5.5"`},
		"huge":             {"azure", row("2023-11-16 18:17:04,5,99999999999999999999"), `x:3: want tokens of the answer from 0 to 2000000, got "99999999999999999999"`},
		"back in time":     {"azure", row("2023-11-16 18:17:03,5,6"), "x:3: the row is earlier than the one before it"},
		"years later":      {"azure", row("2025-11-16 18:17:03,5,6"), "x:3: the row is more than a year later than the first"},
		"not seconds":      {"burstgpt", burst + "noon,ChatGPT,1,1,2,API log\n", `x:6: not a number of seconds: "noon"`},
		"only failures":    {"burstgpt", "Timestamp,Request tokens,Response tokens\n1,5,0\n", "x: no rows with an answer: the trace is empty"},
		"name of a bell":   {"burstgpt", burst + "500,\a,1,1,2,API log\n", `x:6: the name`},
		"hashes too few":   {"mooncake", mooncake(`{"timestamp": 0, "input_length": 1025, "output_length": 5, "hash_ids": [0, 1]}`), "x:2: 2 hash_ids do not fit an input_length of 1025, want 3"},
		"hash not whole":   {"mooncake", mooncake(`{"timestamp": 0, "input_length": 5, "output_length": 5, "hash_ids": [1.5]}`), `x:2: column 70: want a whole number from 0 to 4294967294, got "1.5"`},
		"hash of a string": {"mooncake", mooncake(`{"timestamp": 0, "input_length": 5, "output_length": 5, "hash_ids": ["1"]}`), "x:2: column 70: not a number"},
		"no timestamp":     {"mooncake", mooncake(`{"input_length": 5, "output_length": 5, "hash_ids": [1]}`), "x:2: the timestamp is missing"},
		"exponent":         {"mooncake", mooncake(`{"timestamp": 1e3, "input_length": 5, "output_length": 5, "hash_ids": [1]}`), "x:2: the timestamp is missing, or not a number of milliseconds"},
		"key twice":        {"mooncake", mooncake(`{"timestamp": 1, "timestamp": 2, "input_length": 5, "output_length": 5}`), "x:2: column 18: key \"timestamp\" twice"},
		"code":             {"mooncake", mooncake(`__import__("os").system("true")`), "x:2: column 1: want an object"},
		"list":             {"mooncake", `[{"timestamp": 1}]`, "x:1: a list is no trace of format mooncake"},
		"Parquet":          {"azure", "PAR1", "x:1: the file is in Parquet format"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := Read("x", strings.NewReader(tt.in), tt.format)
			if err == nil || set != nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v, %v, want %s", set, err, tt.want)
			}
		})
	}
}

// TestTraceToleratesOneBadRowInAThousand: bad rows are left out, counted and named
// by their lines, but not more than one in a thousand.
func TestTraceToleratesOneBadRowInAThousand(t *testing.T) {
	file := func(rows int, bad ...int) string {
		var b strings.Builder
		b.WriteString("TIMESTAMP,ContextTokens,GeneratedTokens\r\n")
		for i := range rows {
			if slices.Contains(bad, i) {
				b.WriteString("2023-11-16 18:17:03,nothing,5\r\n")
				continue
			}
			fmt.Fprintf(&b, "2023-11-16 %02d:%02d:%02d.5,7,5\r\n", i/3600, i/60%60, i%60)
		}
		return strings.TrimSuffix(b.String(), "\r\n")
	}
	set, err := Read("x", strings.NewReader(file(2000, 3, 1999)), "")
	if err != nil || len(set.Trace.Rows) != 1998 || set.Skipped != 2 || set.Faults[1].Line != 2001 {
		t.Errorf("got %v, %v; want 1998 rows and a bad one on line 2001", set, err)
	}
	if _, err := Read("x", strings.NewReader(file(1999, 3, 1998)), ""); err == nil || !strings.Contains(err.Error(), "2 of the 1999 rows read are bad") {
		t.Errorf("2 bad rows of 1999: %v", err)
	}
}

func TestTraceBounds(t *testing.T) {
	most := bounds{row: 100, file: 10_000, cases: 50}
	head := "TIMESTAMP,ContextTokens,GeneratedTokens\n"
	for in, want := range map[string]string{
		head + strings.Repeat("2023-11-16 18:17:04,5,6\n", 51): "x:52: more than 50 rows",
		head + strings.Repeat("5", 200):                        "x:2: the row is longer than",
		head + strings.Repeat("\n", 20_000):                    "x: the file is larger than",
	} {
		if _, err := readTrace(most, "x", strings.NewReader(in), "azure"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestTraceMemory: a row costs its fields and its blocks, whatever its text.
func TestTraceMemory(t *testing.T) {
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": 1024, "output_length": 5, "hash_ids": [%d, %d], "padding": "%s"}`+"\n", i, i, i+1, strings.Repeat("x", 500))
	}
	in := b.String()
	allocated := testing.AllocsPerRun(1, func() {
		if _, err := Read("x", strings.NewReader(in), ""); err != nil {
			t.Fatal(err)
		}
	})
	if perRow := allocated / 20_000; perRow > 16 {
		t.Errorf("%.1f allocations a row", perRow)
	}
}

func TestTraceDigestIsOfTheContent(t *testing.T) {
	digest := func(in string) string {
		set, err := Read("x", strings.NewReader(in), "")
		if err != nil {
			t.Fatal(err)
		}
		return set.Digest
	}
	base := digest(burst)
	if digest(strings.ReplaceAll(burst, "\n", "\r\n")) != base || digest(strings.Replace(burst, "\n5,", "\n5.000,", 1)) != base {
		t.Error("the digest depends on how the file is written")
	}
	for _, change := range [][2]string{{"45.25", "45.26"}, {"472", "473"}, {"276", "277"}, {"API log\r", "api\r"}} {
		if digest(strings.Replace(burst, change[0], change[1], 1)) == base {
			t.Errorf("%v does not change the digest", change)
		}
	}
	const moon = `{"timestamp": 0, "input_length": 513, "output_length": 5, "hash_ids": [0, 1]}`
	if digest(moon) == digest(strings.Replace(moon, "1]", "2]", 1)) {
		t.Error("hash_ids do not change the digest")
	}
}

func TestReadReturnsErrorsOfATracesReader(t *testing.T) {
	in := io.MultiReader(strings.NewReader(burst), &failing{})
	if set, err := Read("x", in, ""); err == nil || set != nil || !strings.Contains(err.Error(), "disk on fire") {
		t.Errorf("got %v, %v", set, err)
	}
}

type failing struct{}

func (*failing) Read([]byte) (int, error) { return 0, fmt.Errorf("disk on fire") }

// fuzzTrace: what is read is sound and in order, and its digest is stable;
// messages are printable.
func fuzzTrace(f *testing.F, format string, seeds ...string) {
	for _, s := range append(seeds, "", "[", "\ufeff", "\x1f\x8b", "TIMESTAMP,ContextTokens,GeneratedTokens\n") {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		set, err := Read("x", bytes.NewReader(in), format)
		if err != nil {
			if s := err.Error(); set != nil || !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\n' }) {
				t.Fatalf("a set, or a message that is not printable: %v, %q", set, s)
			}
			return
		}
		tr := set.Trace
		if tr == nil || len(tr.Rows) == 0 || tr.Rows[0].At != 0 || set.Skipped*tolerance > len(tr.Rows)+tr.Unanswered+set.Skipped {
			t.Fatalf("not a trace: %+v", set)
		}
		before := int64(0)
		for i, r := range tr.Rows {
			if r.At < before || r.At > maxSpan || r.Input < 1 || r.Output < 1 || r.Tenant < 0 || r.Tenant > 0 && int(r.Tenant) >= len(tr.Tenants) {
				t.Fatalf("row %d is not sound: %+v", i, r)
			}
			if r.Blocks != nil && int64(len(r.Blocks)) != (int64(r.Input)+tr.BlockTokens-1)/tr.BlockTokens {
				t.Fatalf("row %d has %d blocks for %d tokens", i, len(r.Blocks), r.Input)
			}
			before = r.At
		}
		again, err := Read("y", iotest.OneByteReader(bytes.NewReader(in)), format)
		if err != nil || again.Digest != set.Digest {
			t.Fatalf("reading byte by byte: %v", err)
		}
	})
}

func FuzzReadAzure(f *testing.F) {
	fuzzTrace(f, "azure", "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n2024-05-10 00:00:00.009930+00:00,5,6")
}

func FuzzReadBurstGPT(f *testing.F) { fuzzTrace(f, "burstgpt", burst) }

func FuzzReadMooncake(f *testing.F) {
	fuzzTrace(f, "mooncake", `{"timestamp": 0, "input_length": 513, "output_length": 5, "hash_ids": [0, 1]}`+"\n"+`{"timestamp": 27000.5, "input_length": 3, "output_length": 0}`)
}

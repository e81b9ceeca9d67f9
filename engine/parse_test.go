package engine

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	e := mustParse(t, strings.Join([]string{
		"# HELP a what it is", "# TYPE a counter", "# a remark", "",
		`a{x="1",y="a \"b\" \\ \n c",} 4 1395066363000`,
		`a { y = "2" , x = "1" } 5`,
		"  b\t7.5e-1  ", "c +Inf", "d -0", "e{} 1\r",
		"# TYPE f counter", `f_total 3 # {trace_id="x"} 1 2`, "# EOF",
		"# TYPE g HISTOGRAM", "g_count 1",
	}, "\n"))
	if e.series != 8 || e.typeOf("a") != "counter" || e.typeOf("f_total") != "counter" || e.typeOf("g") != "histogram" || e.typeOf("b") != "" {
		t.Errorf("%d series, types %v", e.series, e.types)
	}
	if v, _ := e.samples["a"][0].label("y"); v != "a \"b\" \\ \n c" {
		t.Errorf("label %q", v)
	}
	if _, ok := e.samples["a"][0].label("z"); ok {
		t.Error("a label that is not there was found")
	}
	for name, want := range map[string]float64{"a": 4, "b": .75, "d": 0, "e": 1, "f_total": 3} {
		if got := e.samples[name][0].value; got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if v := e.samples["c"][0].value; !math.IsNaN(v) {
		t.Errorf("an infinity is %v, want unknown", v)
	}
	if e.has("h") || !e.has("g") || !e.has("b") {
		t.Error("has")
	}
}

func TestParseRefuses(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	var labels strings.Builder
	for i := range maxLabels + 1 {
		fmt.Fprintf(&labels, "l%d=\"\",", i)
	}
	for name, c := range map[string]struct{ text, want string }{
		"page":             {"<html><body>404</body></html>", "line 1"},
		"json":             {`{"error":"no"}`, "does not begin with a name"},
		"no value":         {"a", "does not begin with a name and a value"},
		"no value, labels": {`a{x="1"}`, "no value"},
		"two times":        {"a 1 2 3", "more than a value"},
		"word":             {"a one", "not a number"},
		"hex":              {"a 0x10", "not a number"},
		"underscore":       {"a 1_0", "not a number"},
		"bad time":         {"a 1 now", "not a number"},
		"digit first":      {"1a 1", "does not begin with a name"},
		"open labels":      {`a{x="1" 1`, "without , or }"},
		"open text":        {`a{x="1} 1`, "no end"},
		"open escape":      {`a{x="1\`, "no end"},
		"escape":           {`a{x="\t"} 1`, "escape"},
		"no quotes":        {`a{x=1} 1`, "quotes"},
		"colon in a label": {`a{x:y="1"} 1`, "not a label"},
		"label twice":      {`a{x="1",x="2"} 1`, "label"},
		"series twice":     {"a{x=\"1\",y=\"2\"} 1\na{y=\"2\",x=\"1\"} 2", "line 2"},
		"type twice":       {"# TYPE a counter\n# TYPE a gauge", "declared"},
		"type of nothing":  {"# TYPE a", "TYPE"},
		"no UTF-8":         {"a{x=\"\xff\"} 1", "UTF-8"},
		"long line":        {"# " + long, "more than"},
		"long name":        {strings.Repeat("n", maxName+1) + " 1", "name"},
		"long label":       {`a{x="` + strings.Repeat("v", maxLabel+1) + `"} 1`, "more than"},
		"many labels":      {"a{" + labels.String() + "} 1", "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
			if err != nil && len(err.Error()) > 400 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
	if _, err := parse(make([]byte, maxText+1)); err == nil {
		t.Error("too much text was taken")
	}
	var many strings.Builder
	for i := range maxSeries + 1 {
		fmt.Fprintf(&many, "a%d 1\n", i)
	}
	if _, err := parse([]byte(many.String())); err == nil || !strings.Contains(err.Error(), "series") {
		t.Errorf("too many series: %v", err)
	}
}

// TestParseReadsWhatIsWritten writes any series and reads it back.
func TestParseReadsWhatIsWritten(t *testing.T) {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-zA-Z_:][a-zA-Z0-9_:]{0,20}`).Draw(t, "name")
		keys := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-zA-Z_][a-zA-Z0-9_]{0,8}`), 0, 5, rapid.ID[string]).Draw(t, "labels")
		value := rapid.Float64().Draw(t, "value")
		var parts, values []string
		for _, k := range keys {
			v := rapid.String().Draw(t, "text")
			if len(v) > maxLabel {
				t.Skip("too long")
			}
			values = append(values, v)
			parts = append(parts, k+`="`+quote.Replace(v)+`"`)
		}
		e, err := parse([]byte(name + "{" + strings.Join(parts, ",") + "} " + strconv.FormatFloat(value, 'g', -1, 64) + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		s := e.samples[name][0]
		if s.value != value && !(math.IsNaN(s.value) && (math.IsInf(value, 0) || math.IsNaN(value))) {
			t.Fatalf("value %v, want %v", s.value, value)
		}
		for i, k := range keys {
			if got, ok := s.label(k); !ok || got != values[i] {
				t.Fatalf("label %s = %q, want %q", k, got, values[i])
			}
		}
	})
}

// FuzzParse holds that any text is refused or read, that every dialect reads what was
// taken without inventing a number, and that nothing differs from itself.
func FuzzParse(f *testing.F) {
	for _, d := range dialects {
		for _, text := range fixture(f, d.name) {
			f.Add([]byte(text))
		}
	}
	f.Add([]byte("a{x=\"\\\\\"} NaN 1 # {}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := parse(data)
		if err != nil {
			return
		}
		if len(data) == 0 && e.series > 0 {
			t.Fatal("series from nothing")
		}
		for _, d := range dialects {
			d.check(e)
			x := d.snapshot(e, nil)
			for name, v := range x.Values {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Fatalf("%s: %s = %v", d.name, name, v)
				}
			}
			y := d.snapshot(e, x)
			if len(y.Resets) > 0 {
				t.Fatalf("%s: the same scrape twice resets %v", d.name, y.Resets)
			}
			x.Edge, y.Edge = edgeStart, edgeEnd
			for name, v := range Between(Span{Snapshots: []*Snapshot{x, y}}).Values {
				if grows(name) && v != 0 {
					t.Fatalf("%s: %s grew by %v between equal scrapes", d.name, name, v)
				}
			}
		}
	})
}

// BenchmarkScrape reads a page as large as that of an engine with four replicas.
func BenchmarkScrape(b *testing.B) {
	var page strings.Builder
	for _, f := range dialects[0].list {
		fmt.Fprintf(&page, "# HELP %s what it is\n# TYPE %s %s\n", f.name, f.name, f.kind)
		for engine := range 4 {
			labels := fmt.Sprintf(`engine="%d",model_name="meta-llama/Llama-3.1-8B-Instruct"`, engine)
			if f.kind != "histogram" {
				fmt.Fprintf(&page, "%s{%s} 12345\n", f.name, labels)
				continue
			}
			for le := range 20 {
				fmt.Fprintf(&page, "%s_bucket{%s,le=\"%d\"} %d\n", f.name, labels, le, le)
			}
			fmt.Fprintf(&page, "%s_sum{%s} 12345\n%s_count{%s} 20\n", f.name, labels, f.name, labels)
		}
	}
	data := []byte(page.String())
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		e, err := parse(data)
		if err != nil {
			b.Fatal(err)
		}
		dialects[0].snapshot(e, nil)
	}
}

package config

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const mega = 1 << 20

// hostile makes documents that are small to write and could be dear to read.
var hostile = map[string]func() string{
	"billion laughs": func() string {
		doc := "a: &a [x,x,x,x,x,x,x,x,x]\n"
		for c := 'b'; c <= 'z'; c++ {
			doc += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 9), ","))
		}
		return doc
	},
	"10^5 [":                func() string { return strings.Repeat("[", 1e5) },
	"10^5 {":                func() string { return strings.Repeat("{", 1e5) },
	"10^5 dashes":           func() string { return strings.Repeat("- ", 1e5) },
	"9,990 [":               func() string { return strings.Repeat("[", 9990) },
	"9,990 [ closed":        func() string { return strings.Repeat("[", 9990) + strings.Repeat("]", 9990) },
	"9,990 {":               func() string { return strings.Repeat("{", 9990) },
	"9,990 dashes":          func() string { return strings.Repeat("- ", 9990) },
	"30,000 [{":             func() string { return strings.Repeat("- [{", 3e4) },
	"1 MB of ?":             func() string { return strings.Repeat("? ", mega/2) },
	"90,000 ?":              func() string { return strings.Repeat("?\n", 9e4) },
	"50 MB scalar":          func() string { return "a: " + strings.Repeat("x", 50*mega) },
	"4 MB scalar":           func() string { return "a: " + strings.Repeat("x", 4*mega-3) },
	"4 MB number":           func() string { return "a: " + strings.Repeat("1", 4*mega-3) },
	"4 MB quoted":           func() string { return `a: "` + strings.Repeat("x", 4*mega-5) + `"` },
	"4 MB escapes":          func() string { return `a: "` + strings.Repeat(`\x41`, mega-2) + `"` },
	"1 MB scalar":           func() string { return "a: " + strings.Repeat("x", mega-3) },
	"1 MB words":            func() string { return "a: " + strings.Repeat("xx ", mega/3-1) },
	"4 MB words":            func() string { return "a: " + strings.Repeat("xx ", 4*mega/3-1) },
	"4 MB CJK":              func() string { return "a: " + strings.Repeat("汉", 4*mega/3-1) },
	"4 MB spaces":           func() string { return "a: " + strings.Repeat(" ", 4*mega-3) },
	"4 MB blank lines":      func() string { return strings.Repeat("\n", 4*mega) },
	"4 MB comments":         func() string { return strings.Repeat("#\n", 2*mega) },
	"4 MB comment":          func() string { return "a: 1 #" + strings.Repeat("x", 4*mega-6) },
	"4 MB key":              func() string { return strings.Repeat("a", 4*mega-3) + ": 1" },
	"4 MB documents":        func() string { return strings.Repeat("---\n", mega) },
	"4 MB folded":           func() string { return "a: >\n" + strings.Repeat(" x\n\n", mega-2) },
	"180,000 lines of text": func() string { return "a: |\n" + strings.Repeat(" xxxxxxxxxxxxxxxxxx\n", 180_000) },
	"180,000 plain lines":   func() string { return "a:\n" + strings.Repeat(" xxxxxxxxxxxxxxxxxx\n", 180_000) },
	"open quote":            func() string { return `a: "` + strings.Repeat("xxxxxxxxxxxxxxxxxx\n", 180_000) },
	"99,000 items":          func() string { return strings.Repeat("- a\n", 99_000) },
	"99,000 flow items":     func() string { return "[" + strings.Repeat("a,", 99_000) + "]" },
	"99,000 flow keys":      func() string { return "{" + strings.Repeat("a,", 99_000) + "}" },
	"49,000 pairs":          func() string { return "[" + strings.Repeat("a: b,", 49_000) + "]" },
	"49,000 unknown keys": func() string {
		var b strings.Builder
		for i := range 49_000 {
			fmt.Fprintf(&b, "k%d: 1\n", i)
		}
		return b.String()
	},
	"49,000 equal keys":  func() string { return strings.Repeat("a: 1\n", 49_000) },
	"33,000 comments":    func() string { return strings.Repeat("a:\n #c\n", 33_000) },
	"90,000 anchors":     func() string { return strings.Repeat("- &a x\n", 90_000) },
	"90,000 aliases":     func() string { return "- &a x\n" + strings.Repeat("- *a\n", 90_000) },
	"90,000 tags":        func() string { return strings.Repeat("- !!str x\n", 90_000) },
	"directives":         func() string { return strings.Repeat("%TAG ! x\n", 90_000) },
	"deep indentation":   func() string { return indented(2800) },
	"late syntax error":  func() string { return strings.Repeat("a: xxxxxxxxxxxxxxxx\n", 90_000) + "b: c: d\n" },
	"syntax error, 64 K": func() string { return strings.Repeat("a: 1\n", 13_000) + "b: c: d\n" },
	"syntax error, 16 K": func() string { return strings.Repeat("a: 1\n", 3200) + "b: c: d\n" },
	"one line, error":    func() string { return "a: b: " + strings.Repeat("x", 4*mega-6) },
	"cycle":              func() string { return "a: &a [*a]\n" },
}

func indented(levels int) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// harmlessOnes are the documents above that are large and otherwise good for a
// struct with the text a: they must be accepted.
var harmlessOnes = []string{"1 MB scalar", "1 MB words", "180,000 lines of text", "180,000 plain lines"}

type anyText struct {
	A string `yaml:"a"`
}

// The bounds of a hostile document. The documented 100 ms are processor time of
// an idle machine; the time here tells them from a pass that is quadratic, which
// takes 10 s and more. A busy machine gets three tries.
const (
	boundTime  = 3 * time.Second
	boundBytes = 64 * mega
)

func TestHostileDocumentsAreCheap(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector multiplies what is measured here")
	}
	for name, make := range hostile {
		data := []byte(make())
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		var v anyText
		err := Decode("x.yaml", data, &v)
		elapsed := time.Since(start)
		runtime.ReadMemStats(&after)
		allocated := int64(after.TotalAlloc - before.TotalAlloc)
		t.Logf("%-22s %6.1f ms %5.1f MB allocated", name, float64(elapsed.Microseconds())/1000, float64(allocated)/mega)
		for try := 1; try < 3 && elapsed > boundTime; try++ {
			start = time.Now()
			_ = Decode("x.yaml", data, &v)
			elapsed = time.Since(start)
		}
		if elapsed > boundTime {
			t.Errorf("%s: took %v", name, elapsed)
		}
		if allocated > boundBytes {
			t.Errorf("%s: allocated %d MB, want at most %d", name, allocated/mega, boundBytes/mega)
		}
		if good := slices.Contains(harmlessOnes, name); good && err != nil {
			t.Errorf("%s: refused: %v", name, err)
		} else if !good {
			if err == nil {
				t.Errorf("%s: accepted", name)
			} else {
				checkPlaces(t, data, err)
			}
		}
		if err != nil && len(err.Error()) > 64<<10 {
			t.Errorf("%s: a message of %d bytes", name, len(err.Error()))
		}
	}
}

// TestHostileDocumentsFitInMemory measures the largest size that a process ever
// has which decodes one of the documents that allocate the most.
func TestHostileDocumentsFitInMemory(t *testing.T) {
	if name := os.Getenv("CONFIG_HOSTILE"); name != "" {
		var v anyText
		_ = Decode("x.yaml", []byte(hostile[name]()), &v)
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s", status)
		return
	}
	if raceEnabled {
		t.Skip("the race detector multiplies what is measured here")
	}
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("the largest size of a process is read from Linux")
	}
	peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`)
	for _, name := range []string{"180,000 plain lines", "99,000 flow keys", "33,000 comments", "49,000 unknown keys"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^TestHostileDocumentsFitInMemory$")
		cmd.Env = append(os.Environ(), "CONFIG_HOSTILE="+name)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		m := peak.FindSubmatch(out)
		if m == nil {
			t.Fatalf("%s: no size in %s", name, out)
		}
		kb, err := strconv.Atoi(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-22s process of %d MB at most", name, kb>>10)
		if kb<<10 > boundBytes {
			t.Errorf("%s: a process of %d MB, want at most %d", name, kb>>10, boundBytes/mega)
		}
	}
}

func TestLimitsCanBeSet(t *testing.T) {
	limits := Limits{Bytes: 40, Depth: 3, Nodes: 9}
	for doc, want := range map[string]string{
		"a: x":                          "",
		"a: {b: {}}":                    "",
		"a: [b, c, d]":                  "",
		"a: " + strings.Repeat("x", 40): "x.yaml:1:1: the file is larger than 40B",
		"a: {b: {c: 1}}":                "x.yaml:1:9: nested deeper than 3 levels",
		"a: [b, c, d, e, f, g, h, i]":   "x.yaml:1:23: the document has more than 9 values",
		",,,,,,,,,,,":                   "x.yaml:1:10: the document has more than 9 values and comments",
		strings.Repeat("\n", 19):        "x.yaml:19:1: the document has more than 18 lines",
	} {
		var v map[string]any
		got := ""
		if err := Decode("x.yaml", []byte(doc), &v, Within(limits)); err != nil {
			got, _, _ = strings.Cut(err.Error(), "\n")
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", doc, got, want)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	data := []byte(goodSample)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		var v sample
		if err := Decode("x.yaml", data, &v); err != nil {
			b.Fatal(err)
		}
	}
}

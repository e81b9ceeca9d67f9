package lock

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/config"
)

// base is what a run on two H100 depends on.
const base = `version: 1
suite: chat
program: {version: v0.3.0, binary: "sha256:01", go: go1.26.8, modules: "sha256:02"}
test: {workload chat: "sha256:03", check exact: "sha256:04", contract: "sha256:05", blocks: "4", stop: at the end}
seeds: {run: "7", plan chat: "sha256:06"}
data: {support.jsonl: "sha256:07"}
variants:
  candidate:
    model: llama-3.1-8b
    api: chat
    protocol: http/1.1
    request: "sha256:08"
    engine: vllm
    engine.version: 0.9.2
    engine.flag.cache_dtype: auto
    engine.flag.num_gpu_blocks: "27000"
    weights: "sha256:09"
    tokenizer: "sha256:0a"
    template: "sha256:0b"
    image: "sha256:0c"
    hardware.cpu: AMD EPYC x96
    gpu.model: 2 x NVIDIA H100 80GB HBM3
    gpu.power_limit: 2 x 700.00 W
    gpu.clock_limit: 2 x 1980 MHz
    gpu.driver: 2 x 590.48.01
client: {os: linux, arch: amd64, cores: "96", cpu: AMD EPYC, kernel: "6.8"}
volatile: {host: gpu-17, kernel: 6.8.0-31-generic, candidate url: "http://127.0.0.1:8000/v1", candidate gpu serials: "1650522003820, 1650522003821"}
`

func parsed(t *testing.T, text string) *Lock {
	t.Helper()
	l, err := Parse("test.lock", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// changed is the base with texts replaced, each of which must be there.
func changed(t *testing.T, pairs ...string) *Lock {
	t.Helper()
	text := base
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("there is no %q to replace", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return parsed(t, text)
}

// TestPairsHaveTheRightClass holds the policy by prepared pairs.
func TestPairsHaveTheRightClass(t *testing.T) {
	for _, c := range []struct {
		name   string
		change []string
		class  Class
		first  string // field that the reason names
	}{
		{"identical", nil, Identical, ""},
		{"host name and kernel patch only", []string{"gpu-17", "gpu-18", "6.8.0-31", "6.8.0-40"}, Equivalent, "volatile.host"},
		{"GPU serial number", []string{"1650522003821", "1650522003900"}, Equivalent, "volatile.candidate gpu serials"},
		{"power and clock limit", []string{"2 x 700.00 W", "2 x 500.00 W", "2 x 1980 MHz", "2 x 1410 MHz", "gpu-17", "gpu-18"}, Correctable, "variants.candidate.gpu.clock_limit"},
		{"GPU model", []string{"H100 80GB HBM3", "A100-SXM4-80GB", "2 x 700.00 W", "2 x 400.00 W"}, Incomparable, "variants.candidate.gpu.model"},
		{"data set", []string{"sha256:07", "sha256:77"}, Incomparable, "data.support.jsonl"},
		{"prompt template", []string{"sha256:0b", "sha256:bb"}, Incomparable, "variants.candidate.template"},
		{"flag", []string{"cache_dtype: auto", "cache_dtype: fp8"}, Incomparable, "variants.candidate.engine.flag.cache_dtype"},
		{"flag that the other does not list", []string{"    engine.flag.cache_dtype: auto\n", ""}, Incomparable, "variants.candidate.engine.flag.cache_dtype"},
		{"seed", []string{`run: "7"`, `run: "8"`, "sha256:06", "sha256:66"}, Correctable, "seeds.plan chat"},
		{"contract", []string{"sha256:05", "sha256:55"}, Correctable, "test.contract"},
		{"build of assay", []string{"v0.3.0", "v0.4.0"}, Correctable, "program.version"},
		{"Go", []string{"go1.26.8", "go1.26.9"}, Equivalent, "program.go"},
		{"a variant more", []string{"client:", "  baseline: {model: llama-3.1-8b}\nclient:"}, Incomparable, "variants.baseline.model"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := parsed(t, base), changed(t, c.change...)
			for range 2 {
				d := Compare(a, b)
				if d.Class != c.class || !d.Proven() {
					t.Errorf("class %v (%s), proven %t; want %v", d.Class, d.Reason, d.Proven(), c.class)
				}
				if c.first != "" && !strings.HasPrefix(d.Reason, c.first+" differs: ") {
					t.Errorf("reason %q; want it to name %s", d.Reason, c.first)
				}
				if same := a.Digest() == b.Digest(); same != (c.class <= Equivalent) {
					t.Errorf("the digests are equal: %t, of %v", same, c.class)
				}
				a, b = b, a // the class has no direction
			}
		})
	}
}

// TestWhatIsUnderTestMayDiffer leaves out what the sides are compared for, and nothing else.
func TestWhatIsUnderTestMayDiffer(t *testing.T) {
	b := changed(t, "sha256:09", "sha256:99", "cache_dtype: auto", "cache_dtype: fp8", "0.9.2", "0.9.3")
	if d := Compare(parsed(t, base), b, "weights", "engine"); d.Class != Identical || len(d.Differ) != 3 || d.Reason != "only what is under test differs" {
		t.Errorf("class %v with %d differences: %s", d.Class, len(d.Differ), d.Reason)
	}
	if d := Compare(parsed(t, base), b, "weights"); d.Class != Incomparable || !strings.HasPrefix(d.Reason, "variants.candidate.engine.flag.cache_dtype") {
		t.Errorf("class %v: %s", d.Class, d.Reason)
	}
	data := changed(t, "sha256:07", "sha256:77")
	if d := Compare(parsed(t, base), data, "data", "support.jsonl"); d.Class != Incomparable {
		t.Errorf("data may differ by name: %v", d.Class)
	}
}

// TestUnknownIsNeverEqual holds that what nobody knows proves nothing.
func TestUnknownIsNeverEqual(t *testing.T) {
	unknown := []string{`weights: "sha256:09"`, `weights: {unknown: it does not tell}`}
	u := changed(t, unknown...)
	for name, d := range map[string]Comparison{"both": Compare(u, u), "one": Compare(parsed(t, base), u), "the other": Compare(u, parsed(t, base))} {
		if d.Class != Equivalent || d.Proven() || len(d.Unknown) != 1 || d.Unknown[0].Path != "variants.candidate.weights" {
			t.Errorf("%s: class %v, unknown %v", name, d.Class, d.Unknown)
		}
	}
	// An engine that stopped telling its flags has not lost each of them.
	silent := changed(t, "    engine.flag.cache_dtype: auto\n    engine.flag.num_gpu_blocks: \"27000\"\n", "    engine.flags: {unknown: it does not tell}\n")
	d := Compare(parsed(t, base), silent)
	if d.Class != Equivalent || len(d.Differ) != 0 || len(d.Unknown) != 3 {
		t.Errorf("class %v, differ %v, unknown %v", d.Class, d.Differ, d.Unknown)
	}
}

// TestEnforce refuses what differs and what is not told any more, notes what is benign,
// and says what the lock cannot hold.
func TestEnforce(t *testing.T) {
	paths := func(all []Field) (out []string) {
		for _, f := range all {
			out = append(out, f.Path)
		}
		return out
	}
	held := changed(t, `template: "sha256:0b"`, `template: {unknown: it did not tell}`)
	now := changed(t, "gpu-17", "gpu-18", "0.9.2", "0.9.3", `tokenizer: "sha256:0a"`, "tokenizer: {unknown: it does not answer}")
	e := Enforce(held, now)
	for _, c := range []struct {
		name string
		got  []Field
		want []string
	}{
		{"refused", e.Refused, []string{"variants.candidate.engine.version", "variants.candidate.tokenizer"}},
		{"noted", e.Noted, []string{"volatile.host"}},
		{"not held", e.Unheld, []string{"variants.candidate.template"}},
	} {
		if diff := cmp.Diff(c.want, paths(c.got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if f := e.Refused[0]; f.A.Value != "0.9.2" || f.B.Value != "0.9.3" {
		t.Errorf("expected %v, found %v", f.A, f.B)
	}
}

// TestLockReadsWhatItWrites, and its digest does not follow the order of keys, comments
// or what is volatile.
func TestLockReadsWhatItWrites(t *testing.T) {
	l := changed(t, `weights: "sha256:09"`, "weights: {unknown: 'it says: no'}")
	text, err := l.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again := parsed(t, string(text))
	if diff := cmp.Diff(l, again); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	if l.Digest() != parsed(t, string(text)+"# a comment\n").Digest() {
		t.Error("a comment changes the digest")
	}
	doc, err := l.JSON()
	if err != nil || !json.Valid(doc) || !bytes.Contains(doc, []byte(`"weights":{"unknown":"it says: no"}`)) {
		t.Errorf("JSON %s: %v", doc, err)
	}
}

func TestParseIsStrict(t *testing.T) {
	for name, text := range map[string]string{
		"another version": strings.Replace(base, "version: 1", "version: 2", 1),
		"an unknown part": base + "extra: {}\n",
		"a number":        strings.Replace(base, `run: "7"`, "run: 7", 1),
		"an empty fact":   strings.Replace(base, "api: chat", `api: ""`, 1),
		"two reasons":     strings.Replace(base, "api: chat", "api: {unknown: a, known: b}", 1),
		"no suite":        strings.Replace(base, "suite: chat\n", "", 1),
	} {
		var faults config.Faults
		if _, err := Parse("x.lock", []byte(text)); !errors.As(err, &faults) {
			t.Errorf("%s: %v, want a fault", name, err)
		}
	}
}

// TestKnownIsPrintable: what servers say cannot break a line, and stays short.
func TestKnownIsPrintable(t *testing.T) {
	if f := Known("a\nb\x1b[31m\u202e"); f.Value != "a b [31m" {
		t.Errorf("kept as %q", f.Value)
	}
	if f := Known(""); f.Value != "none" {
		t.Errorf("nothing is %q", f.Value)
	}
	long := Known(strings.Repeat("x", 1000))
	if len(long.Value) > longest || !strings.Contains(long.Value, "sha256:") || long == Known(strings.Repeat("x", 1001)) {
		t.Errorf("a long value is kept as %q", long.Value)
	}
	if f := NotKnown("%s", strings.Repeat("y", 1000)); len(f.Unknown) > longest+4 {
		t.Errorf("a long reason is kept as %q", f.Unknown)
	}
}

// FuzzParse takes anything for a lock file; what it reads it can write and read again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(base))
	f.Add([]byte("version: 1\nsuite: x\nvariants: {a: {b: {unknown: c}}}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := Parse("x.lock", text)
		if err != nil {
			return
		}
		out, err := l.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("y.lock", out)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if l.Digest() != again.Digest() || Compare(l, again).Class > Equivalent {
			t.Errorf("read back it is another lock:\n%s", out)
		}
	})
}

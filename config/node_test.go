package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// probe is a Decoder that calls what the test says.
type probe struct{ look func(n *Node) }

func (p *probe) DecodeConfig(n *Node) { p.look(n) }

// look decodes a document whose top is handed to a function.
func look(t *testing.T, doc string, f func(n *Node)) error {
	t.Helper()
	called := false
	err := Decode("x.yaml", []byte(doc), &probe{func(n *Node) { called = true; f(n) }})
	if !called {
		t.Fatalf("the decoder was not called: %v", err)
	}
	return err
}

func TestNodesAreWalkedWithoutTheLibrary(t *testing.T) {
	doc := "a: 1\n\"b c\": [x, \"2\", ~, true, {d: .inf}]\ne: |\n  text\n"
	var got []string
	var walk func(n *Node)
	walk = func(n *Node) {
		got = append(got, fmt.Sprintf("%d:%d %s %s %q quoted=%v", n.Line(), n.Column(), n.Path(), n.Kind(), n.Scalar(), n.Quoted()))
		for _, p := range n.Pairs() {
			got = append(got, fmt.Sprintf("%d:%d key %s", p.KeyNode.Line(), p.KeyNode.Column(), p.Key))
			walk(p.Value)
		}
		for _, item := range n.Items() {
			walk(item)
		}
	}
	if err := look(t, doc, walk); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`1:1  a mapping "" quoted=false`,
		`1:1 key a`,
		`1:4 a a number "1" quoted=false`,
		`2:1 key b c`,
		`2:8 ["b c"] a list "" quoted=false`,
		`2:9 ["b c"][0] text "x" quoted=false`,
		`2:12 ["b c"][1] text "2" quoted=true`,
		`2:17 ["b c"][2] no value "~" quoted=false`,
		`2:20 ["b c"][3] a boolean "true" quoted=false`,
		`2:26 ["b c"][4] a mapping "" quoted=false`,
		`2:27 key d`,
		`2:30 ["b c"][4].d a number ".inf" quoted=false`,
		`3:1 key e`,
		`3:4 e text "text\n" quoted=true`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("walk (-want +got):\n%s", diff)
	}
}

func TestAbsentNodesHaveAPlace(t *testing.T) {
	err := look(t, "v:\n  a: {b: 1}\n", func(n *Node) {
		a := n.At("v").At("a")
		if !a.Exists() || !n.Has("v") || n.Has("w") || a.At("b").Has("c") {
			t.Error("At finds what is not there, or not what is")
		}
		none := a.At("c").At("d")
		if none.Exists() || none.Kind() != Null || none.Scalar() != "" || none.Pairs() != nil || none.Items() != nil || none.Quoted() || none.File() != "x.yaml" {
			t.Error("an absent node is not empty")
		}
		none.Fault("is missing", "add it")
		var i int
		if !none.Decode(&i) || i != 0 {
			t.Errorf("an absent node decodes to %d, want nothing", i)
		}
	})
	if want := "x.yaml:2:6: v.a.c.d: is missing\n  hint: add it"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestFaultsPointIntoText(t *testing.T) {
	for _, c := range []struct{ doc, want string }{
		{"a: p99(ttft) <= x", "x.yaml:1:17: a: here"},
		{"a: 'p99(ttft) <= x'", "x.yaml:1:18: a: here"},
		{`a: "p99(ttft) <= x"`, "x.yaml:1:18: a: here"},
		{"{ключ: 1, a: p99(ttft) <= x}", "x.yaml:1:27: a: here"},
		{"a: |\n  p99(ttft) <= x\n", "x.yaml:1:4: a: here"},
		{`a: "p99\u0028ttft) <= x"`, "x.yaml:1:4: a: here"},
		{"a: p99(ttft)\n  <= x", "x.yaml:1:4: a: here"},
	} {
		err := look(t, c.doc, func(n *Node) { n.At("a").FaultIn(13, "here", "") })
		if got := fmt.Sprint(err); got != c.want {
			t.Errorf("%q: got %s, want %s", c.doc, got, c.want)
		}
	}
}

func TestFaultsFoundLater(t *testing.T) {
	var top *Node
	var v sample
	if err := Decode("sample.yaml", []byte(goodSample), &v, Root(&top)); err != nil {
		t.Fatal(err)
	}
	got := top.At("workloads").At("chat").Mark("is too short", "make it longer").Error()
	if want := "sample.yaml:13:5: workloads.chat: is too short\n  hint: make it longer"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err := Decode("x.yaml", nil, &v, Root(&top)); err == nil || top != nil {
		t.Errorf("an empty document has the node %v and the error %v", top, err)
	}
}

func TestFaultsAreErrors(t *testing.T) {
	var v sample
	err := fmt.Errorf("loading: %w", Decode("x.yaml", []byte("version: 2\n"), &v))
	f, ok := errors.AsType[Fault](err)
	if !ok || f.Path != "name" || f.Line != 1 {
		t.Errorf("the first fault is %+v, %v, want the missing name on line 1", f, ok)
	}
	fs, ok := errors.AsType[Faults](err)
	if !ok || len(fs) != 3 {
		t.Errorf("got %d faults, want 3: %v", len(fs), err)
	}
}

func TestManyFaultsAreCounted(t *testing.T) {
	for _, n := range []int{MaxFaults, MaxFaults + 1, gathered, gathered + 1, 20_000} {
		var b strings.Builder
		b.WriteString("version: 1\nname: x\nvariants: {a: {sim: {}}}\n")
		for i := range n {
			fmt.Fprintf(&b, "unknown%d: 1\n", i)
		}
		var v sample
		err := Decode("x.yaml", []byte(b.String()), &v)
		fs, _ := errors.AsType[Faults](err)
		checkPlaces(t, []byte(b.String()), err)
		if n == MaxFaults {
			if len(fs) != MaxFaults {
				t.Errorf("%d faults for %d unknown keys", len(fs), n)
			}
			continue
		}
		if len(fs) != MaxFaults+1 {
			t.Fatalf("%d faults for %d unknown keys, want %d and a count", len(fs), n, MaxFaults)
		}
		want := fmt.Sprintf("and %d more faults", n-MaxFaults)
		if n == MaxFaults+1 {
			want = "and 1 more fault"
		}
		if got := fs[MaxFaults].What; got != want {
			t.Errorf("the last of %d faults says %q, want %q", n, got, want)
		}
	}
}

func TestProgramsWithImpossibleTypesPanic(t *testing.T) {
	for name, f := range map[string]func(){
		"not a pointer": func() { _ = Decode("x", []byte("a: 1"), struct{}{}) },
		"channel": func() {
			_ = Decode("x", []byte("a: 1"), &struct {
				A chan int `yaml:"a"`
			}{})
		},
		"key not string": func() {
			_ = Decode("x", []byte("a: {}"), &struct {
				A map[int]int `yaml:"a"`
			}{})
		},
		"interface": func() {
			_ = Decode("x", []byte("a: 1"), &struct {
				A error `yaml:"a"`
			}{})
		},
		"inlined map": func() {
			_ = Decode("x", []byte("a: 1"), &struct {
				A map[string]int `yaml:",inline"`
			}{})
		},
		"no name": func() {
			_ = Decode("x", []byte("a: 1"), &struct {
				A int `yaml:",required"`
			}{})
		},
		"same name twice": func() {
			_ = Decode("x", []byte("a: 1"), &struct {
				A, B int `yaml:"a"`
			}{})
		},
		"unknown option": func() {
			_ = Decode("x", []byte("a: 1"), &struct {
				A int `yaml:"a,flow"`
			}{})
		},
		"limit of a text": func() {
			_ = Decode("x", []byte("a: b"), &struct {
				A string `yaml:"a" min:"1"`
			}{})
		},
		"limit no number": func() {
			_ = Decode("x", []byte("a: 1"), &struct {
				A int `yaml:"a" min:"one"`
			}{})
		},
	} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.HasPrefix(fmt.Sprint(r), "config: ") {
					t.Errorf("%s: recovered %v, want a panic that says config: …", name, r)
				}
			}()
			f()
		}()
	}
}

type level struct{ n int }

func (l *level) UnmarshalText(b []byte) error {
	if string(b) != "high" {
		return errors.New("is no level")
	}
	l.n = 9
	return nil
}

func TestTextUnmarshalersAreRead(t *testing.T) {
	var v struct {
		A, B level `yaml:"-"`
		C    level `yaml:"c"`
		D    level `yaml:"d"`
		E    level `yaml:"e"`
	}
	err := Decode("x.yaml", []byte("c: high\nd: low\ne: 3\n"), &v)
	want := "x.yaml:2:4: d: is no level\n  hint: correct the text\nx.yaml:3:4: e: wants text, got the number 3\n  hint: write \"3\""
	if fmt.Sprint(err) != want || v.C.n != 9 {
		t.Errorf("got %v and %v, want %s", v, err, want)
	}
}

// shorthand is a text or a mapping; it reads the mapping by the usual rules.
type shorthand struct {
	Name string `yaml:"name,required" oneof:"gold"`
	N    *int8  `yaml:"n" max:"5"`
}

func (s *shorthand) DecodeConfig(n *Node) {
	if n.Kind() == Text {
		s.Name, _ = n.Text()
		return
	}
	type plain shorthand
	n.Decode((*plain)(s))
}

func (s *shorthand) CheckConfig(n *Node) {
	if s.Name == "off" {
		n.Fault("is off", "switch it on")
	}
}

func TestDecodersUseTheUsualRules(t *testing.T) {
	for doc, want := range map[string]string{
		"a: x":                   "",
		"a: 'off'":               "x.yaml:1:4: a: is off\n  hint: switch it on",
		"a: no":                  "x.yaml:1:4: a: wants text, got no, which other YAML readers take for false\n  hint: write \"no\"",
		"a: {name: gold, n: -3}": "",
		"a: {n: 6}":              "x.yaml:1:4: a.name: is missing\n  hint: add name: gold\nx.yaml:1:8: a.n: must be at most 5, got 6\n  hint: write 5 or less",
		"a: {name: silver}":      "x.yaml:1:11: a.name: wants gold, got the text \"silver\"\n  hint: use gold",
		"a: [x]":                 "x.yaml:1:4: a: wants a mapping, got a list\n  hint: start with name: …",
		"a: {name: gold, n: }":   "x.yaml:1:20: a.n: wants a whole number, got no value\n  hint: write a whole number such as 12",
	} {
		var v struct {
			A shorthand `yaml:"a"`
		}
		got := ""
		if err := Decode("x.yaml", []byte(doc), &v); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", doc, got, want)
		}
	}
}

// TestInlinedCheckersAreCalledOnce has one rule in an inlined struct, which an
// embedding struct also has by promotion.
func TestInlinedCheckersAreCalledOnce(t *testing.T) {
	var v struct {
		Bounds `yaml:",inline"`
		Other  Bounds2 `yaml:",inline"`
	}
	err := Decode("x.yaml", []byte("low: 3\nhigh: 2\nleast: 3\nmost: 2\n"), &v)
	want := "x.yaml:1:1: is empty: 3 to 2\nx.yaml:1:1: has nothing between 3 and 2"
	got := ""
	if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

type Bounds struct {
	Low  int `yaml:"low"`
	High int `yaml:"high"`
}

func (b *Bounds) CheckConfig(n *Node) {
	if b.Low > b.High {
		n.Fault(fmt.Sprintf("is empty: %d to %d", b.Low, b.High), "")
	}
}

type Bounds2 struct {
	Least int `yaml:"least"`
	Most  int `yaml:"most"`
}

func (b *Bounds2) CheckConfig(n *Node) {
	if b.Least > b.Most {
		n.Fault(fmt.Sprintf("has nothing between %d and %d", b.Least, b.Most), "")
	}
}

func TestDefaultsStandUnlessGiven(t *testing.T) {
	v := sample{Verbose: true, Tags: []string{"a"}, Name: "old"}
	if err := Decode("x.yaml", []byte("version: 1\nname: new\nvariants: {a: {sim: {}}}\n"), &v); err != nil {
		t.Fatal(err)
	}
	if !v.Verbose || len(v.Tags) != 1 || v.Name != "new" {
		t.Errorf("got %+v, want the defaults and the new name", v)
	}
}

// TestFaultsShowNoControlCharacters feeds what a document holds into the
// messages of a decoder that does not quote it.
func TestFaultsShowNoControlCharacters(t *testing.T) {
	err := look(t, `a: "x\e[31m\ny\u202e"`, func(n *Node) {
		s := n.At("a").Scalar()
		n.At("a").Fault("is "+s, "not "+s)
	})
	if got, want := fmt.Sprint(err), `x.yaml:1:4: a: is x\x1b[31m\ny\u202e`+"\n  hint: not "+`x\x1b[31m\ny\u202e`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

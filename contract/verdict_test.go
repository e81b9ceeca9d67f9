package contract

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

func TestZeroValuesAreInconclusive(t *testing.T) {
	var g Grade
	if g != Inconclusive || g.String() != "inconclusive" || Grade(200).String() != "inconclusive" {
		t.Errorf("the zero grade is %s, grade 200 is %s", g, Grade(200))
	}
	if v := (Verdict{}); v.Grade != Inconclusive {
		t.Errorf("the zero verdict is %s", v.Grade)
	}
	full := Evidence{Records: newFull(300), Candidate: "candidate"}
	for name, c := range map[string]*Contract{
		"nil": nil, "empty": {}, "a clause without a need": {Clauses: []Clause{{}}},
		"an empty group":       {Clauses: []Clause{{All: []Clause{}}}},
		"a group of nothing":   {Clauses: []Clause{{Any: []Clause{{}}}}},
		"a senseless trust":    {Confidence: 0.3, Clauses: []Clause{{Need: need(t, "p50(ttft) <= 1s")}}},
		"a trust of certainty": {Confidence: 1, Clauses: []Clause{{Need: need(t, "p50(ttft) <= 1s")}}},
		"need and group":       {Clauses: []Clause{{Need: need(t, "p50(ttft) <= 1s"), All: []Clause{{Need: need(t, "p50(ttft) <= 1s")}}}}},
	} {
		if v := Evaluate(c, full); v.Grade != Inconclusive || v.Reason == "" {
			t.Errorf("%s: %s (%s), want inconclusive with a reason", name, v.Grade, v.Reason)
		}
	}
}

func newFull(n int) []record.Record {
	b := newBatch("candidate", "chat")
	b.n = n
	return b.records(source(1))
}

func need(t testing.TB, s string) Need {
	t.Helper()
	n, err := ParseNeed(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestWorst(t *testing.T) {
	for _, tc := range []struct {
		in          []Grade
		worst, best Grade
	}{
		{nil, Inconclusive, Inconclusive},
		{[]Grade{Pass}, Pass, Pass},
		{[]Grade{Fail}, Fail, Fail},
		{[]Grade{Pass, Inconclusive}, Inconclusive, Pass},
		{[]Grade{Inconclusive, Fail}, Fail, Inconclusive},
		{[]Grade{Pass, Fail}, Fail, Pass},
		{[]Grade{Fail, Fail}, Fail, Fail},
		{[]Grade{Pass, Grade(9)}, Inconclusive, Pass},
		{[]Grade{Fail, Grade(9)}, Fail, Inconclusive},
	} {
		if got := Worst(tc.in...); got != tc.worst {
			t.Errorf("Worst(%v) = %s, want %s", tc.in, got, tc.worst)
		}
		if got := atLeast(1, tc.in...); got != tc.best {
			t.Errorf("atLeast(1, %v) = %s, want %s", tc.in, got, tc.best)
		}
	}
}

func TestGradeText(t *testing.T) {
	for _, g := range []Grade{Inconclusive, Pass, Fail} {
		text, _ := g.MarshalText()
		var back Grade
		if err := back.UnmarshalText(text); err != nil || back != g {
			t.Errorf("%s reads back as %s (%v)", g, back, err)
		}
	}
	g := Pass
	if err := g.UnmarshalText([]byte("ok")); err == nil {
		t.Error(`"ok" is read as a grade`)
	}
}

// TestVerdictJSON: every verdict of the archives survives JSON, without a
// number that JSON has not.
func TestVerdictJSON(t *testing.T) {
	each(t, "testdata/verdict", func(t *testing.T, in map[string]string) map[string]string {
		v := Evaluate(decode(t, in["contract.yaml"]), parseEvidence(t, in["evidence"]))
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var back Verdict
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(v, back, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("round trip (-before +after):\n%s", diff)
		}
		return nil
	})
}

// TestVerdictSchema pins the JSON form: a change here is a new schema.
func TestVerdictSchema(t *testing.T) {
	v := Evaluate(&Contract{Name: "c", Clauses: []Clause{{Need: need(t, "p99(ttft) <= baseline * 1.05"), Severity: "critical"}}},
		Evidence{Records: append(newFull(30), record.Record{Variant: "base", Workload: "chat", Outcome: record.HTTP5xx}), Baseline: "base", Candidate: "candidate"})
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/verdict.json"
	if *update {
		if err := os.WriteFile(file, append(b, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSpace(string(want)), string(b)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFigureJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, -1, math.MaxFloat64, 5e-324}))
		f := Figure{stat.Estimate{
			Value: number.Draw(t, "value"), Lo: number.Draw(t, "lo"), Hi: number.Draw(t, "hi"),
			Confidence: rapid.Float64Range(0, 1).Draw(t, "confidence"), N: rapid.IntRange(0, 1e6).Draw(t, "n"),
			Effective: rapid.Float64Range(0, 1e6).Draw(t, "effective"), Over: rapid.IntRange(0, 100).Draw(t, "over"),
			Method: rapid.String().Draw(t, "method"), Warnings: []stat.Warning{{Code: "few", Text: "few"}},
		}}
		b, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		var back Figure
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(f, back, cmpopts.EquateNaNs()); diff != "" {
			t.Fatalf("round trip (-before +after):\n%s", diff)
		}
	})
}

// TestExampleContract decodes the contract that users are shown, and judges it:
// what this version does not measure stays inconclusive, and nothing passes on
// nothing.
func TestExampleContract(t *testing.T) {
	data, err := os.ReadFile("../../shared/examples/contract.yaml")
	if err != nil {
		t.Skip("the example is not here: ", err)
	}
	c := decode(t, string(data))
	e := parseEvidence(t, "baseline chat n=1000 sigma=0.1\ncandidate chat n=1000 sigma=0.1\n")
	got := map[string]Grade{}
	for _, r := range Evaluate(c, e).Clauses {
		got[r.ID] = r.Grade
	}
	want := map[string]Grade{"first-token": Pass, "no-slower": Pass, "no-more-errors": Pass, "as-good": Inconclusive, "throughput": Pass, "engine-stable": Inconclusive}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("grades (-want +got):\n%s", diff)
	}
	var unmeasured []string
	for _, f := range Lint(c, []Planned{{Workload: "chat", Requests: 1000, Variants: []string{"baseline", "candidate"}, Streaming: true, Usage: true}}) {
		unmeasured = append(unmeasured, f.Path)
	}
	if diff := cmp.Diff([]string{"clauses[3].need", "clauses[5].any[0].need", "clauses[5].any[1].need"}, unmeasured); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	out, err := config.Encode(c)
	if err != nil || !strings.Contains(string(out), "stop-admission") || !strings.Contains(string(out), "p95(tpot) <= baseline * 1.05") {
		t.Errorf("written back without its parts (%v):\n%s", err, out)
	}
}

// TestSchema: the schema for editors accepts what decodes, and refuses the
// plainest mistakes.
func TestSchema(t *testing.T) {
	text, err := config.Schema(Contract{}, "https://assay.example/contract", "contract")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("contract.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("contract.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		json string
		ok   bool
	}{
		{`{"version": 1, "clauses": [{"need": "p99(ttft) <= 800ms", "on": "chat", "window": "1h", "severity": "info"}]}`, true},
		{`{"version": 1, "confidence": "99%", "clauses": [{"any": [{"need": "share(failed) <= baseline + 0.5 points", "on": ["a", "b"]}], "live": {"do": ["shrink 50%"]}}]}`, true},
		{`{"version": 1}`, false},
		{`{"version": 1, "clauses": [{"need": "ttft <= 800ms"}]}`, false},
		{`{"version": 1, "clauses": [{"any": [{"ned": "p99(ttft) <= 800ms"}]}]}`, false},
		{`{"version": 1, "clauses": [{"not": {"need": "p99(ttft) <= 800ms"}}]}`, true},
		{`{"version": 1, "clauses": [{"not": [{"need": "p99(ttft) <= 800ms"}]}]}`, false},
		{`{"version": 1, "clauses": [{"count": {"at_least": 1, "of": [{"need": "p99(ttft) <= 800ms"}]}}]}`, true},
		{`{"version": 1, "clauses": [{"count": {"of": 2}}]}`, false},
		{`{"version": 1, "clauses": [{"need": "p99(ttft) <= 800ms", "severity": "mild"}]}`, false},
	} {
		instance, err := jsonschema.UnmarshalJSON(strings.NewReader(tc.json))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(instance); (err == nil) != tc.ok {
			t.Errorf("%s: %v, want accepted: %v", tc.json, err, tc.ok)
		}
	}
}

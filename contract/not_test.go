package contract

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/record"
)

// TestNotIsOfTheClauseAsAWhole: a clause holds if it does on every workload, so its
// contrary is that it does not on one of them. Not the contrary on each: "not (all
// are slow)" does not demand that all are fast.
func TestNotIsOfTheClauseAsAWhole(t *testing.T) {
	evidence := func(slow ...bool) Evidence {
		e := Evidence{Candidate: "candidate"}
		for i, is := range slow {
			traffic := Traffic{Rate: 2, Workload: fmt.Sprintf("w%d", i), Labels: map[string]string{"tenant": fmt.Sprintf("t%d", i)}}
			if is {
				traffic.TTFT = Spread{Value: 800e6, dim: duration}
			}
			e.Records = append(e.Records, traffic.records("candidate", 0, 300*time.Second, int64(len(e.Records)))...)
			e.Windows = append(e.Windows, record.Window{Variant: "candidate", Workload: traffic.Workload, Start: 1, End: record.At(300 * time.Second)})
		}
		return e
	}
	const live = ", window: 5m, live: {do: [page]}"
	for _, tc := range []struct {
		clause string
		want   map[string]Grade // by which workloads are slow
	}{
		{"not: {need: p90(ttft) >= 500ms}", map[string]Grade{"00": Pass, "01": Pass, "10": Pass, "11": Fail}},
		{"by: tenant, not: {need: p90(ttft) >= 500ms}", map[string]Grade{"00": Pass, "01": Pass, "10": Pass, "11": Fail}},
		{"on: w0, not: {need: p90(ttft) >= 500ms}", map[string]Grade{"00": Pass, "01": Pass, "10": Fail, "11": Fail}},
		{"not: {not: {need: p90(ttft) >= 500ms}}", map[string]Grade{"00": Fail, "01": Fail, "10": Fail, "11": Pass}},
		{"not: {any: [{need: p90(ttft) >= 500ms}, {need: p90(ttft) <= 1ms}]}", map[string]Grade{"00": Pass, "01": Pass, "10": Pass, "11": Fail}},
		{"all: [{not: {need: p90(ttft) >= 500ms}}, {need: p90(ttft) >= 100ms}]", map[string]Grade{"00": Pass, "01": Pass, "11": Fail}},
	} {
		c := decode(t, "version: 1\nclauses: [{"+tc.clause+live+"}]\n")
		for slow, want := range tc.want {
			e := evidence(slow[0] == '1', slow[1] == '1')
			v := Evaluate(c, e)
			if v.Grade != want {
				t.Errorf("%s on %s: %s, want %s: %s", tc.clause, slow, v.Grade, want, v.Reason)
			}
			h := NewHistory(testEpoch, e)
			s, ds := c.Next(State{}, h, testEpoch.Add(300*time.Second))
			acts := len(c.InForce(s)) > 0
			if acts != (want == Fail) || acts && (len(ds) != 1 || ds[0].Rule != "c1") {
				t.Errorf("%s on %s: the rule decides %v, want one of the clause as a whole if it fails", tc.clause, slow, ds)
			}
		}
	}
	// Of two workloads of which nothing is known, nothing is shown.
	c := decode(t, "version: 1\nclauses: [{on: [w0, w9], not: {need: p90(ttft) >= 500ms}"+live+"}]\n")
	if v := Evaluate(c, evidence(true)); v.Grade != Inconclusive || !strings.Contains(v.Reason, "w9") {
		t.Errorf("one is slow and one unknown: %s: %s", v.Grade, v.Reason)
	}
	if v := Evaluate(c, evidence(false)); v.Grade != Pass {
		t.Errorf("one is fast and one unknown: %s: %s", v.Grade, v.Reason)
	}
	r := Evaluate(c, evidence(false)).Clauses[0].Results[0]
	if r.Kind != KindSome || r.WrongPass > 0.05+1e-9 || r.Results[0].Confidence != 0.975 {
		t.Errorf("got kind %s, wrong pass %v and confidence %v: two chances to pass must be paid for", r.Kind, r.WrongPass, r.Results[0].Confidence)
	}
}

package contract

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/stat"
)

// thresholdTests reads the test files of production-17.
func thresholdTests(t *testing.T) map[string]*Test {
	t.Helper()
	files, err := filepath.Glob("testdata/thresholds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files: %v", err)
	}
	tests := map[string]*Test{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		test := new(Test)
		if err := config.Decode(file, data, test); err != nil {
			t.Fatal(err)
		}
		tests[strings.TrimSuffix(filepath.Base(file), ".yaml")] = test
	}
	return tests
}

// production is the preset with a reference for T17.
func production(t *testing.T) *Contract {
	t.Helper()
	c, err := LoadPreset("production-17")
	if err != nil {
		t.Fatal(err)
	}
	c.Reference.Values = []Registered{{Quantity: need(t, "p99(ttft) <= 1s").Quantity, Value: 250e6}}
	return c
}

// alone is the contract with one clause of it.
func alone(c *Contract, id string) *Contract {
	only := *c
	only.Clauses = nil
	for _, clause := range c.named() {
		if clause.ID == id {
			only.Clauses = append(only.Clauses, clause)
		}
	}
	return &only
}

// TestReplay: the same log gives the same decisions byte for byte, also when the
// state was written down and read back after every look.
func TestReplay(t *testing.T) {
	for _, id := range []string{"T04-error-surge", "T06-stability-fuse", "T17-tenant-interference"} {
		c := alone(production(t), id)
		tc := thresholdTests(t)[id].Cases[0]
		var logs []string
		for _, stored := range []bool{false, false, true} {
			h := NewHistory(testEpoch, tc.evidence())
			var s State
			log := []Decision{}
			for at := h.Start().Add(time.Minute); !at.After(h.End()); at = at.Add(time.Minute) {
				var d []Decision
				s, d = c.Next(s, h, at)
				log = append(log, d...)
				if !stored {
					continue
				}
				b, err := json.Marshal(s)
				if err != nil {
					t.Fatal(err)
				}
				s = State{}
				if err := json.Unmarshal(b, &s); err != nil {
					t.Fatal(err)
				}
			}
			b, err := json.Marshal(log)
			if err != nil {
				t.Fatal(err)
			}
			logs = append(logs, string(b))
		}
		if len(logs[0]) < 100 || logs[0] != logs[1] || logs[0] != logs[2] {
			t.Errorf("%s: replays differ, or decide nothing (-first +stored):\n%s", id, cmp.Diff(logs[0], logs[2]))
		}
	}
}

// TestMissingDataRecoversNothing: when the evidence ends while a threshold acts, it
// acts on.
func TestMissingDataRecoversNothing(t *testing.T) {
	c := production(t)
	for id, test := range thresholdTests(t) {
		e := test.Cases[0].evidence()
		every := test.Cases[0].every()
		only := alone(c, id)
		h := NewHistory(testEpoch, e)
		var s State
		acting := false
		at := h.Start()
		for ; !acting && at.Before(h.End()); at = at.Add(every) {
			var ds []Decision
			s, ds = only.Next(s, h, at)
			for _, d := range ds {
				acting = acting || d.To == Acting
			}
		}
		cut := h.instant(at.Add(-every))
		e.Records = e.Records[:0:0]
		for _, r := range test.Cases[0].evidence().Records {
			if r.Due <= cut {
				e.Records = append(e.Records, r)
			}
		}
		h = NewHistory(testEpoch, e)
		for range 100 {
			var ds []Decision
			s, ds = only.Next(s, h, at)
			for _, d := range ds {
				if d.To == Quiet || d.To == Recovering {
					t.Errorf("%s: %s without evidence: %s", id, d.To, d.Reason)
				}
			}
			at = at.Add(max(every, 2*time.Minute))
		}
		if len(only.InForce(s)) == 0 {
			t.Errorf("%s does not act, or no longer", id)
		}
	}
}

// scripted answers each look with the next of its values of p50(ttft), in
// milliseconds; 0 is no data.
type scripted struct {
	values []float64
	at     time.Time
}

func (s scripted) Labels(string, time.Time) []string { return nil }

func (s scripted) Steps(time.Time, time.Time) []Step { return nil }

func (s scripted) See(a Ask) Series {
	i := int(a.At.Sub(s.at) / time.Minute)
	if i < 0 || i >= len(s.values) || s.values[i] == 0 {
		return Series{}
	}
	values := make([]float64, 50)
	for i := range values {
		values[i] = s.values[int(a.At.Sub(s.at)/time.Minute)] * 1e6
	}
	return Series{N: 50, Values: values}
}

// TestPhases moves one rule through its phases, a value a minute.
func TestPhases(t *testing.T) {
	const rule = "version: 1\nclauses:\n  - id: r\n    need: p50(ttft) <= 100ms\n    window: 5m\n    live:\n      do: [hold]\n"
	for _, tc := range []struct {
		name, more string
		values     []float64
		want       string
	}{
		{"at once", "", []float64{50, 200, 50, 50}, "1 acting, 2 quiet"},
		{"for", "      for: 2m\n", []float64{200, 200, 200, 50}, "0 pending, 2 acting, 3 quiet"},
		{"for, broken off", "      for: 2m\n", []float64{200, 200, 50, 200, 200, 50}, "0 pending, 2 quiet, 3 pending, 5 quiet"},
		{"hysteresis", "      recover: {when: {need: p50(ttft) <= 80ms, window: 5m}}\n", []float64{200, 90, 90, 70}, "0 acting, 3 quiet"},
		{"recovery for", "      recover: {for: 2m}\n", []float64{200, 50, 50, 200, 50, 50, 50}, "0 acting, 1 recovering, 3 acting, 4 recovering, 6 quiet"},
		{"recovery between the limits starts anew", "      recover: {for: 2m, when: {need: p50(ttft) <= 80ms, window: 5m}}\n", []float64{200, 50, 90, 50, 50, 50}, "0 acting, 1 recovering, 2 acting, 3 recovering, 5 quiet"},
		{"no data holds what is pending", "      for: 2m\n", []float64{200, 0, 0, 200, 200, 50}, "0 pending, 4 acting, 5 quiet"},
		{"no data recovers nothing", "      recover: {for: 2m}\n", []float64{200, 50, 0, 50, 50, 50}, "0 acting, 1 recovering, 2 acting, 3 recovering, 5 quiet"},
		{"no data acts", "      for: 1m\n      no_data: act\n", []float64{50, 0, 0, 50}, "1 pending, 2 acting, 3 quiet"},
		{"no data ends what is pending", "      for: 2m\n      no_data: quiet\n", []float64{200, 0, 200, 200, 200, 0}, "0 pending, 1 quiet, 2 pending, 4 acting"},
		{"cool-down", "      cooldown: 3m\n", []float64{200, 50, 200, 200, 200, 50}, "0 acting, 1 quiet, 4 acting, 5 quiet"},
		{"latch", "      latch: 2 in 1h\n", []float64{200, 50, 200, 50, 50}, "0 acting, 1 quiet, 2 latched"},
		{"latch by flapping", "      latch: 2 in 1h\n      recover: {for: 2m}\n", []float64{200, 50, 200, 50, 50}, "0 acting, 1 recovering, 2 latched"},
		{"a latch forgets", "      latch: 2 in 2m\n", []float64{200, 50, 50, 200, 50}, "0 acting, 1 quiet, 3 acting, 4 quiet"},
		{"by hand", "      recover: {by: hand}\n", []float64{200, 50, 50, 50}, "0 acting"},
	} {
		c := decode(t, rule+tc.more)
		start := testEpoch.Add(time.Minute)
		var s State
		var got []string
		for i := range tc.values {
			var ds []Decision
			s, ds = c.Next(s, scripted{tc.values, start}, start.Add(time.Duration(i)*time.Minute))
			for _, d := range ds {
				line := d.line(start)
				got = append(got, strings.Replace(strings.Replace(line, "m r ", " ", 1), "0s r ", "0 ", 1))
			}
		}
		if text := strings.Join(got, ", "); text != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, text, tc.want)
		}
	}
}

// TestRelease: a person ends what no evidence ends.
func TestRelease(t *testing.T) {
	c := decode(t, "version: 1\nclauses: [{id: r, need: p50(ttft) <= 100ms, window: 5m, severity: critical, live: {do: [trunk, page], recover: {by: hand}}}]\n")
	s, d := c.Next(State{}, scripted{[]float64{200}, testEpoch}, testEpoch)
	if len(d) != 1 || !cmp.Equal(d[0].Do, []Action{"trunk", "page"}) || !cmp.Equal(c.InForce(s), []Action{"trunk", "page"}) {
		t.Fatalf("got %+v, in force %v", d, c.InForce(s))
	}
	before := s
	s, released := c.Release(s, "r", testEpoch.Add(time.Hour))
	if released == nil || !cmp.Equal(released.Undo, []Action{"trunk", "page"}) || len(c.InForce(s)) != 0 {
		t.Errorf("got %+v, in force %v", released, c.InForce(s))
	}
	if len(c.InForce(before)) != 2 {
		t.Error("the state before was changed")
	}
	if _, again := c.Release(s, "r", testEpoch.Add(time.Hour)); again != nil {
		t.Errorf("released twice: %+v", again)
	}
}

// TestNextLooksForward: a look at an instant that was already looked at, or before,
// decides nothing.
func TestNextLooksForward(t *testing.T) {
	c := decode(t, "version: 1\nclauses: [{need: p50(ttft) <= 100ms, window: 5m, live: {do: [hold]}}]\n")
	seen := scripted{[]float64{50, 200}, testEpoch}
	s, _ := c.Next(State{}, seen, testEpoch.Add(time.Minute))
	for _, at := range []time.Duration{time.Minute, 0, -time.Hour} {
		if again, d := c.Next(s, seen, testEpoch.Add(at)); d != nil || !cmp.Equal(again, s) {
			t.Errorf("a look at %v decides %v", at, d)
		}
	}
}

// TestStateVersion: a state of another version is refused.
func TestStateVersion(t *testing.T) {
	var s State
	if err := json.Unmarshal([]byte(`{"version": 3, "rules": {}}`), &s); err == nil || !strings.Contains(err.Error(), "versions 1 to 2, not 3") {
		t.Errorf("got %v", err)
	}
}

// TestHang: requests that wait for longer than the limit count before they end.
func TestHang(t *testing.T) {
	c := decode(t, "version: 1\nclauses: [{id: r, need: p99(ttft) <= 800ms, window: 5m, min: 100, live: {do: [page]}}]\n")
	tc := TestCase{Every: config.Duration(time.Minute), Evidence: []Stretch{
		{For: config.Duration(10 * time.Minute), Candidate: &Traffic{Rate: 2}},
		{For: config.Duration(10 * time.Minute), Candidate: &Traffic{Rate: 2, Hung: 1}},
	}}
	h := NewHistory(testEpoch, tc.evidence())
	var s State
	for at := testEpoch.Add(time.Minute); at.Before(testEpoch.Add(20 * time.Minute)); at = at.Add(time.Minute) {
		var ds []Decision
		if s, ds = c.Next(s, h, at); len(ds) > 0 {
			if ds[0].To != Acting || at.Sub(testEpoch) > 15*time.Minute {
				t.Errorf("got %+v", ds)
			}
			return
		}
	}
	t.Error("a total hang was not noticed")
}

// TestSurvivorsAreNoEvidence: when many requests fail, what those that were answered
// are is no evidence about all; failing itself is.
func TestSurvivorsAreNoEvidence(t *testing.T) {
	c := decode(t, "version: 1\nclauses: [{id: r, need: share(truncated) <= 20%, window: 5m, live: {do: [page], for: 1m, no_data: act}}, {id: f, need: share(failed) <= 90%, window: 5m, live: {do: [page], no_data: act}}]\n")
	tc := TestCase{Evidence: []Stretch{{For: config.Duration(10 * time.Minute), Candidate: &Traffic{Rate: 2, Failed: 0.5}}}}
	got := Replay(c, NewHistory(testEpoch, tc.evidence()), 30*time.Second)
	if len(got) == 0 || !got[len(got)-1].Blind {
		t.Errorf("got %+v, want that the share of truncated answers is unknown", got)
	}
	for _, d := range got {
		if d.Clause == "f" {
			t.Errorf("the share of failed requests is known: %+v", d)
		}
	}
}

// TestHistogramsAreEvidence: a histogram of values decides as the values do, to the
// width of its buckets.
func TestHistogramsAreEvidence(t *testing.T) {
	rng := source(7)
	var h stat.Histogram
	raw := Series{N: 1010, Over: 10}
	for range 1000 {
		x := 200e6 * math.Exp(0.5*rng.NormFloat64())
		raw.Values = append(raw.Values, x)
		if err := h.Add(x); err != nil {
			t.Fatal(err)
		}
	}
	binned := Series{N: raw.N, Over: raw.Over, Histogram: &h}
	for _, text := range []string{"p50(ttft) <= 1s", "p95(ttft) <= 1s", "p95(ttft) >= 1ms", "p99(ttft) <= 1s", "mean(ttft) <= 1s"} {
		q := need(t, text)
		m, _, err := q.Quantity.metric()
		if err != nil {
			t.Fatal(err)
		}
		a, b := raw.measure(q.Quantity, m, 0.9, q.Compare.upper()).est, binned.measure(q.Quantity, m, 0.9, q.Compare.upper()).est
		for name, pair := range map[string][2]float64{"value": {a.Value, b.Value}, "lower bound": {a.Lo, b.Lo}, "upper bound": {a.Hi, b.Hi}} {
			if x, y := pair[0], pair[1]; x != y && !(math.Abs(x/y-1) < 0.017) { // a bucket, and a little interpolation
				t.Errorf("%s of %s: %v of the values, %v of the histogram", name, text, x, y)
			}
		}
	}
}

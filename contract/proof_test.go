package contract

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// counters answer as those of a gateway do: a histogram of all sessions so far, kept
// every second, of which two are subtracted.
type counters struct {
	start    time.Time
	steps    []Step
	sessions map[string][]stat.Histogram // by part, after so many seconds
	inFlight map[string]float64
}

func (c *counters) Labels(string, time.Time) []string { return nil }

func (c *counters) Steps(from, at time.Time) []Step {
	var out []Step
	for i, s := range c.steps {
		if !s.Since.After(at) && (i+1 == len(c.steps) || c.steps[i+1].Since.After(from)) {
			out = append(out, s)
		}
	}
	return out
}

func (c *counters) See(a Ask) Series {
	all := c.sessions[a.Variant]
	second := func(t time.Time) int { return min(max(int(t.Sub(c.start)/time.Second), 0), len(all)-1) }
	h := all[second(a.To)].Clone()
	if err := h.Sub(&all[second(a.From)]); err != nil {
		panic(err)
	}
	if !a.Sessions {
		return Series{N: int64(math.Round(h.N())), Histogram: h}
	}
	return Series{N: int64(math.Round(h.N())), Best: h, Worst: h, InFlight: c.inFlight[a.Variant]}
}

// serve adds traffic of so many seconds: requests a second, of sessions that are
// assigned by weight, whose latency is lognormal.
func (c *counters) serve(rng *rand.Rand, seconds, rate int, weight, load, slower float64) {
	if c.sessions == nil {
		c.sessions = map[string][]stat.Histogram{"candidate": {{}}, baselineName: {{}}}
	}
	c.steps = append(c.steps, Step{c.start.Add(time.Duration(len(c.sessions["candidate"])-1) * time.Second), weight})
	for range seconds {
		now := map[string]*stat.Histogram{}
		for part, all := range c.sessions {
			now[part] = all[len(all)-1].Clone()
		}
		for range rate {
			part, x := baselineName, 200e6*load*math.Exp(0.5*rng.NormFloat64())
			if rng.Float64() < weight {
				part, x = "candidate", slower*x
			}
			if err := now[part].Add(x); err != nil {
				panic(err)
			}
		}
		for part, h := range now {
			c.sessions[part] = append(c.sessions[part], *h)
		}
	}
}

// watch looks every so many seconds, and says after how many the rules first acted, 0 for
// never, and what all decisions were.
func watch(c *Contract, seen *counters, every int) (acted int, log []Decision) {
	var s State
	for i := every; i < len(seen.sessions["candidate"]); i += every {
		var ds []Decision
		s, ds = c.Next(s, seen, seen.start.Add(time.Duration(i)*time.Second))
		for _, d := range ds {
			if d.To == Acting && acted == 0 {
				acted = i
			}
		}
		log = append(log, ds...)
	}
	return acted, log
}

const againstBaseline = "version: 1\nclauses: [{id: r, need: %s, window: 5m, min: 100, live: {do: [hold]%s}}]\n"

func hour(seed uint64, slower float64) *counters {
	c := &counters{start: testEpoch}
	c.serve(source(seed), 3600, 4, 0.5, 1, slower)
	return c
}

// TestPeekingCostsNothing: over an hour of identical traffic that is looked at every
// second a rule acts in at most its 5 %, where the bound of each look acts far more
// often; a candidate beyond the margin is found.
func TestPeekingCostsNothing(t *testing.T) {
	t.Parallel()
	slow := os.Getenv("ASSAY_SLOW") != ""
	for _, tc := range []struct {
		need, judge string
		hours       int
	}{
		{"p95(e2e) <= baseline", "evidence", 40},
		{"p50(e2e) <= baseline", "evidence", 20},
		{"p95(e2e) <= baseline", "bound", 5},
	} {
		if !slow {
			if tc.hours = 1; tc.judge == "bound" {
				continue
			}
		}
		rule := decode(t, fmt.Sprintf(againstBaseline, tc.need, ", judge: "+tc.judge))
		alarms := 0
		for i := range tc.hours {
			if at, _ := watch(rule, hour(uint64(i), 1), 1); at > 0 {
				alarms++
			}
		}
		t.Logf("%s, judged by %s: a false alarm in %d of %d hours of identical traffic, looked at every second", tc.need, tc.judge, alarms, tc.hours)
		// With 5 % each, 40 hours have more than 5 of them once in 70 times.
		if limit := tc.hours / 8; tc.judge == "evidence" && alarms > limit {
			t.Errorf("%s: %d of %d hours have a false alarm, want at most %d", tc.need, alarms, tc.hours, limit)
		} else if tc.judge == "bound" && alarms == 0 {
			t.Errorf("%s: a bound at every look has no false alarm either: the test shows nothing", tc.need)
		}
	}
	rule := decode(t, fmt.Sprintf(againstBaseline, "p95(e2e) <= baseline * 1.18", ""))
	at, log := watch(rule, hour(1, 1.6), 5)
	if at == 0 || at > 1200 {
		t.Errorf("a candidate 1.6 times as slow was found after %d s", at)
	}
	t.Logf("1.6 times as slow: found after %d s: %v", at, log[0].Reason)
}

// TestChangeIsFoundWhateverWasBefore: an hour in which all was well does not hide
// what comes after.
func TestChangeIsFoundWhateverWasBefore(t *testing.T) {
	t.Parallel()
	seen := hour(3, 1)
	seen.serve(source(4), 1800, 4, 0.5, 1, 2)
	seen.steps = seen.steps[:1]
	at, log := watch(decode(t, fmt.Sprintf(againstBaseline, "p95(e2e) <= baseline * 1.18", "")), seen, 10)
	if at < 3600 || at > 3600+900 {
		t.Errorf("a candidate that turned twice as slow after an hour was found after %d s: %v", at, log)
	}
	t.Logf("found %d s after the change", at-3600)
}

// TestRampIsNotPooledLive: a ramp from 5 % to 50 % while the load doubles every
// latency. One step, as if the weights had not changed, acts on an equal candidate;
// a step for each weight does not, and finds one that is slower.
func TestRampIsNotPooledLive(t *testing.T) {
	t.Parallel()
	rule := decode(t, strings.Replace(fmt.Sprintf(againstBaseline, "p95(e2e) <= baseline * 1.1", ""), "window: 5m", "window: 24h", 1))
	ramp := func(seed uint64, slower float64) *counters {
		c := &counters{start: testEpoch}
		rng := source(seed)
		c.serve(rng, 600, 16, 0.05, 1, slower)
		c.serve(rng, 600, 16, 0.5, 2, slower)
		return c
	}
	for seed := range uint64(3) {
		if at, log := watch(rule, ramp(seed, 1), 5); at > 0 {
			t.Errorf("seed %d: an equal candidate fails after %d s: %v", seed, at, log)
		}
		pooled := ramp(seed, 1)
		pooled.steps = []Step{{Since: pooled.start}}
		if at, _ := watch(rule, pooled, 5); at == 0 {
			t.Errorf("seed %d: pooled, an equal candidate does not fail: the test shows nothing", seed)
		}
		if at, _ := watch(rule, ramp(seed, 1.5), 5); at == 0 {
			t.Errorf("seed %d: a candidate 1.5 times as slow is not found", seed)
		}
	}
}

// TestStepsMultiply: what one step shows in part, two show together.
func TestStepsMultiply(t *testing.T) {
	rule := decode(t, strings.Replace(fmt.Sprintf(againstBaseline, "p95(e2e) <= baseline * 1.1", ""), "window: 5m", "window: 24h", 1))
	seen := &counters{start: testEpoch}
	rng := source(8)
	seen.serve(rng, 300, 4, 0.5, 1, 1.25)
	seen.serve(rng, 300, 4, 0.4, 1, 1.25)
	var s State
	s, _ = rule.Next(s, seen, seen.start.Add(150*time.Second))
	s, _ = rule.Next(s, seen, seen.start.Add(299*time.Second))
	first := s.Rules["r"].Proofs["r"]
	if first.Fail != 0 || first.Starts != 0 || !first.Step.Equal(seen.start) {
		t.Errorf("the first step is closed too early: %+v", first)
	}
	s, _ = rule.Next(s, seen, seen.start.Add(301*time.Second))
	closed := s.Rules["r"].Proofs["r"]
	if !(closed.Fail > 0) || closed.Starts != 1 || !closed.Step.Equal(seen.steps[1].Since) || !closed.From.Equal(seen.start) {
		t.Errorf("the first step is not closed: %+v", closed)
	}
	s, _ = rule.Next(s, seen, seen.start.Add(302*time.Second))
	if again := s.Rules["r"].Proofs["r"]; !cmp.Equal(closed, again) {
		t.Errorf("the first step is closed twice: %+v", again)
	}
}

// TestStoredStateReplays: a log that is looked at from a stored state in the middle gives
// the same decisions, byte for byte, as one that is looked at without a break.
func TestStoredStateReplays(t *testing.T) {
	rule := decode(t, fmt.Sprintf(againstBaseline, "p95(e2e) <= baseline * 1.18", ", for: 30s, recover: {for: 1m}"))
	seen := &counters{start: testEpoch}
	rng := source(9)
	seen.serve(rng, 300, 16, 0.4, 1, 1)
	seen.serve(rng, 300, 16, 0.5, 1, 2)
	seen.serve(rng, 600, 16, 0.5, 1, 1)
	_, whole := watch(rule, seen, 5)
	if len(whole) < 4 {
		t.Fatalf("the log decides too little: %v", whole)
	}
	want, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{5, 300, 305, 650} {
		var s State
		var log []Decision
		for i := 5; i < len(seen.sessions["candidate"]); i += 5 {
			var ds []Decision
			s, ds = rule.Next(s, seen, seen.start.Add(time.Duration(i)*time.Second))
			log = append(log, ds...)
			if i == cut {
				stored, err := json.Marshal(s)
				if err != nil {
					t.Fatal(err)
				}
				s = State{}
				if err := json.Unmarshal(stored, &s); err != nil {
					t.Fatal(err)
				}
			}
		}
		got, err := json.Marshal(log)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("restarted after %d s:\n%s", cut, cmp.Diff(string(want), string(got)))
		}
	}
}

// TestWrongSplitDecidesNothing: sessions that were not assigned as planned show
// neither that a rule is violated nor that it is met.
func TestWrongSplitDecidesNothing(t *testing.T) {
	for _, slower := range []float64{1, 2} {
		seen := &counters{start: testEpoch}
		seen.serve(source(10), 600, 16, 0.5, 1, slower)
		rule := decode(t, fmt.Sprintf(againstBaseline, "p95(e2e) <= baseline * 1.18", ""))
		w := func() look {
			w := watcher{contract: rule, seen: seen, at: testEpoch.Add(600 * time.Second), confidence: 0.95, proofs: map[string]Proof{}}
			return w.clause(rule.named()[0], terms{confidence: 0.95, wrongFail: 0.05}.with(rule.Clauses[0]), place{}, false)
		}
		want := Pass
		if slower == 2 {
			want = Fail
		}
		if l := w(); l.grade != want {
			t.Errorf("%v times as slow, as planned: %s: %s", slower, l.grade, l.reason)
		}
		seen.steps[0].Weight = 0.4
		if l := w(); l.grade != Inconclusive || !l.blind || !strings.Contains(l.reason, "not assigned as planned") {
			t.Errorf("%v times as slow, with a wrong split: %s: %s", slower, l.grade, l.reason)
		}
		seen.steps[0].Weight = 0.5
		seen.inFlight = map[string]float64{"candidate": 4, baselineName: 6}
		if l := w(); l.grade != Inconclusive || !l.blind || !strings.Contains(l.reason, "in flight per replica") {
			t.Errorf("%v times as slow, on emptier replicas: %s: %s", slower, l.grade, l.reason)
		}
		seen.inFlight["candidate"] = 5
		if l := w(); l.grade != want {
			t.Errorf("%v times as slow, on replicas about as busy: %s: %s", slower, l.grade, l.reason)
		}
	}
}

// TestHangAgainstBaseline: nothing of the candidate is answered any more, and nothing of it
// completes; it is seen by the age of what is in flight.
func TestHangAgainstBaseline(t *testing.T) {
	for _, text := range []string{"p95(ttft) <= baseline * 1.5", "p95(ttft) <= baseline + 300ms"} {
		c := decode(t, fmt.Sprintf(againstBaseline, text, ""))
		const change = 10 * time.Minute
		tc := TestCase{Evidence: []Stretch{
			{For: 600e9, Baseline: &Traffic{Rate: 2}, Candidate: &Traffic{Rate: 2}},
			{For: 600e9, Baseline: &Traffic{Rate: 2}, Candidate: &Traffic{Rate: 2, Hung: 1}},
		}}
		h := tc.history(tc.evidence())
		var s State
		for at := time.Second; ; at += time.Second {
			var ds []Decision
			if s, ds = c.Next(s, h, testEpoch.Add(at)); len(ds) > 0 {
				if at < change || at > change+2*time.Minute {
					t.Errorf("%s: acts %v after the hang: %+v", text, at-change, ds[0])
				}
				t.Logf("%s: a total hang is seen after %v", text, at-change)
				break
			}
			if at > change+10*time.Minute {
				t.Errorf("%s: a total hang was not noticed", text)
				break
			}
		}
	}
}

// TestSharesAndMeansAgainstBaseline: each statistic that has a test is decided on both
// sides of its margin, and equal variants violate nothing.
func TestSharesAndMeansAgainstBaseline(t *testing.T) {
	value := func(text string) Spread {
		p := parser{text: []rune(text)}
		a, err := p.amount("")
		if err != nil {
			t.Fatal(err)
		}
		return Spread{Value: a.value, dim: a.dim, Sd: 0.05}
	}
	for _, tc := range []struct {
		need      string
		good, bad Traffic
	}{
		{"share(failed) <= baseline + 2 points", Traffic{Failed: 0.01}, Traffic{Failed: 0.08}},
		{"share(failed) <= baseline * 2", Traffic{Failed: 0.01}, Traffic{Failed: 0.08}},
		{"share(completed) >= baseline - 2 points", Traffic{Failed: 0.01}, Traffic{Failed: 0.08}},
		{"share(completed) >= baseline * 0.8", Traffic{Failed: 0.01}, Traffic{Failed: 0.4}},
		{"mean(similarity) >= baseline - 0.05", Traffic{Values: map[string]Spread{"similarity": value("0.9")}}, Traffic{Values: map[string]Spread{"similarity": value("0.8")}}},
		{"mean(e2e) <= baseline * 1.1", Traffic{TTFT: value("200ms")}, Traffic{TTFT: value("400ms")}},
		{"mean(e2e) <= baseline + 50ms", Traffic{TTFT: value("200ms")}, Traffic{TTFT: value("400ms")}},
		{"mean(user_rate) >= baseline * 0.8", Traffic{TPOT: value("10ms")}, Traffic{TPOT: value("20ms")}},
		{"p20(user_rate) >= baseline * 0.8", Traffic{TPOT: value("10ms")}, Traffic{TPOT: value("20ms")}},
		{"p90(ttft) <= baseline + 20ms", Traffic{TTFT: value("200ms")}, Traffic{TTFT: value("300ms")}},
	} {
		c := decode(t, fmt.Sprintf(againstBaseline, tc.need, ""))
		for _, candidate := range []Traffic{tc.good, tc.bad} {
			base := tc.good
			base.Rate, candidate.Rate = 4, 4
			e := TestCase{Evidence: []Stretch{{For: 1800e9, Weight: 0.5, Baseline: &base, Candidate: &candidate}}}
			h := e.history(e.evidence())
			w := watcher{contract: c, seen: h, at: testEpoch.Add(31 * time.Minute), confidence: 0.95, proofs: map[string]Proof{}}
			l := w.clause(c.named()[0], terms{confidence: 0.95, wrongFail: 0.05}.with(c.Clauses[0]), place{workload: "load"}, false)
			want := Pass
			if !cmp.Equal(candidate, base, cmp.AllowUnexported(Spread{})) {
				want = Fail
			}
			if l.grade != want {
				t.Errorf("%s: got %s, want %s: %s", tc.need, l.grade, want, l.reason)
			}
		}
	}
}

// TestSessionsAreTheUnit: the turns of a session resemble each other. Counted one by one
// they would make equal variants differ; a session is one observation, and belongs
// to the step in which it began.
func TestSessionsAreTheUnit(t *testing.T) {
	e := Evidence{Baseline: baselineName, Candidate: "candidate"}
	add := func(variant, session string, due, latency time.Duration, outcome record.Outcome) {
		e.Records = append(e.Records, record.Record{
			Variant: variant, Session: session, Due: record.At(due), Outcome: outcome, EOF: record.At(due + latency),
			Events: []record.Event{{At: record.At(due + latency), Kind: record.KindContent}},
		})
	}
	add("candidate", "a", 1*time.Second, 100*time.Millisecond, record.OK)
	add("candidate", "a", 5*time.Second, 100*time.Millisecond, record.OK)
	add("candidate", "a", 9*time.Second, 10*time.Second, record.OK) // in flight at 12 s
	add("candidate", "b", 6*time.Second, 100*time.Millisecond, record.OK)
	add("candidate", "c", 7*time.Second, 100*time.Millisecond, record.HTTP5xx)
	h := NewHistory(testEpoch, e)
	at := func(seconds int) time.Time { return testEpoch.Add(time.Duration(seconds) * time.Second) }
	s := h.See(Ask{Metric: "ttft", Variant: "candidate", From: at(0), To: at(12), At: at(12), Sessions: true})
	if s.N != 4 || s.Over != 1 || s.Pending != 1 || s.Best.N() != 3 || s.Worst.N() != 3 {
		t.Errorf("got %+v of %v sessions", s, s.Best.N())
	}
	below, _ := s.Best.Below(2e9)
	worst, _ := s.Worst.Below(2e9)
	if math.Abs(below-5./3) > 1e-5 || math.Abs(worst-5./3) > 1e-5 { // its age, 3 s, is beyond 2 s either way
		t.Errorf("%v and %v sessions are below 2 s, want 5/3 twice", below, worst)
	}
	best, _ := s.Best.Below(5e9)
	if worst, _ = s.Worst.Below(5e9); math.Abs(best-2) > 1e-5 || math.Abs(worst-5./3) > 1e-5 {
		t.Errorf("%v and %v sessions are below 5 s, want 2 and 5/3", best, worst)
	}
	if s := h.See(Ask{Metric: "ttft", Variant: "candidate", From: at(4), To: at(12), At: at(12), Sessions: true}); s.Best.N() != 2 {
		t.Errorf("%v sessions began after 4 s, want 2", s.Best.N())
	}
}

// TestSessionsKeepTheErrorRate: eight turns of a session that resemble each other, in
// two variants that are the same, looked at every ten seconds while sessions go on.
// With sessions as the unit nothing acts; their requests taken one by one do.
func TestSessionsKeepTheErrorRate(t *testing.T) {
	if os.Getenv("ASSAY_SLOW") == "" {
		t.Skip("ASSAY_SLOW is not set: the runs take half a minute")
	}
	const runs = 12
	rule := decode(t, fmt.Sprintf(againstBaseline, "p50(e2e) <= baseline", ""))
	talks := func(seed uint64, named bool) *History {
		rng := source(seed)
		e := Evidence{Baseline: baselineName, Candidate: "candidate"}
		for i := range 1200 { // one in half a second
			variant, session := baselineName, ""
			if rng.IntN(2) == 0 {
				variant = "candidate"
			}
			if named {
				session = fmt.Sprint(i)
			}
			habit := math.Exp(0.8 * rng.NormFloat64())
			for turn := range 8 {
				due := time.Duration(i)*time.Second/2 + time.Duration(turn)*5*time.Second
				done := record.At(due + time.Duration(200e6*habit*math.Exp(0.3*rng.NormFloat64())))
				e.Records = append(e.Records, record.Record{
					Variant: variant, Session: session, Turn: turn, Due: record.At(due), Outcome: record.OK, EOF: done,
					Events: []record.Event{{At: done, Kind: record.KindContent}},
				})
			}
		}
		h := NewHistory(testEpoch, e)
		h.Split(testEpoch, 0.5)
		return h
	}
	alarms := map[bool]int{}
	for i := range uint64(runs) {
		for _, named := range []bool{true, false} {
			for _, d := range Replay(rule, talks(i, named), 10*time.Second) {
				if d.To == Acting {
					alarms[named]++
					break
				}
			}
		}
	}
	t.Logf("false alarms in %d runs: %d by session, %d by request", runs, alarms[true], alarms[false])
	if alarms[true] > 2 { // with 5 % each, more than 2 of 12 come once in 50 times
		t.Errorf("by session %d of %d runs have a false alarm", alarms[true], runs)
	}
	if alarms[false] == 0 {
		t.Error("requests taken one by one have no false alarm either: the test shows nothing")
	}
}

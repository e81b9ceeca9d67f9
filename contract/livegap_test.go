package contract

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// judged is what a contract's only rule says of evidence at an instant.
func judged(t *testing.T, text string, seen Observed, at time.Time) look {
	t.Helper()
	c := decode(t, text).named()[0]
	w := watcher{contract: &Contract{}, seen: seen, at: at, confidence: 0.95, proofs: map[string]Proof{}, judge: c.Live.Judge}
	return w.clause(c, terms{confidence: 0.95, wrongFail: 0.05}.with(c), place{}, c.Live.Judge == "point")
}

// TestCountOfFewPassesNothing: that one request did not fail says nothing about
// how many fail in five minutes; that many of few did is a fact.
func TestCountOfFewPassesNothing(t *testing.T) {
	at := testEpoch.Add(5 * time.Minute)
	seen := func(n int, failed float64) Observed {
		tc := TestCase{Evidence: []Stretch{{For: 300e9, Candidate: &Traffic{Rate: 1}}}}
		e := tc.evidence()
		e.Records = e.Records[:n]
		for i := range int(failed) {
			e.Records[i].Outcome = record.HTTP5xx
		}
		return NewHistory(testEpoch, e)
	}
	for _, judge := range []string{"bound", "point"} {
		const rule = "version: 1\nclauses: [{need: count(failed) <= 3, window: 5m, %s live: {do: [hold], judge: %s}}]\n"
		for _, tc := range []struct {
			n      int
			failed float64
			min    string
			want   Grade
		}{{1, 0, "", Inconclusive}, {19, 0, "", Inconclusive}, {20, 0, "", Pass}, {5, 4, "", Fail}, {3, 0, "min: 3,", Pass}} {
			if l := judged(t, fmt.Sprintf(rule, tc.min, judge), seen(tc.n, tc.failed), at); l.grade != tc.want || l.blind != (tc.want == Inconclusive) {
				t.Errorf("judged by %s, %d requests, %v failed: %s (blind %v): %s", judge, tc.n, tc.failed, l.grade, l.blind, l.reason)
			}
		}
	}
}

// TestTokensOfFailedRequestsAreNoService: answers that break off send tokens, too; a
// rate that counts them shows no throughput.
func TestTokensOfFailedRequestsAreNoService(t *testing.T) {
	at := testEpoch.Add(5 * time.Minute)
	for _, tc := range []struct {
		broken int // every so many
		want   Grade
	}{{0, Pass}, {100, Pass}, {4, Inconclusive}} {
		e := TestCase{Evidence: []Stretch{{For: 300e9, Candidate: &Traffic{Rate: 5}}}}.evidence()
		for i := range e.Records {
			if tc.broken > 0 && i%tc.broken == 0 {
				e.Records[i].Outcome = record.ResetMid
			}
		}
		l := judged(t, "version: 1\nclauses: [{need: rate(output_tokens) >= 50/s, window: 5m, live: {do: [hold]}}]\n", NewHistory(testEpoch, e), at)
		if l.grade != tc.want {
			t.Errorf("one of %d breaks off: %s: %s", tc.broken, l.grade, l.reason)
		}
	}
}

// always answers every question with the same Series.
type always struct{ Series }

func (s always) Labels(string, time.Time) []string { return nil }
func (s always) Steps(time.Time, time.Time) []Step { return nil }
func (s always) See(Ask) Series                    { return s.Series }

// TestCountsAreNotUnrolled: a gateway that tells of a billion requests costs no more
// memory than one that tells of a few, and shows no more than it told.
func TestCountsAreNotUnrolled(t *testing.T) {
	var h stat.Histogram
	for i := range 1000 {
		if err := h.Add(100e6 * (1 + float64(i)/1000)); err != nil {
			t.Fatal(err)
		}
	}
	for range 21 { // two thousand million observations
		if err := h.Merge(h.Clone()); err != nil {
			t.Fatal(err)
		}
	}
	n := int64(h.N())
	for text, s := range map[string]Series{
		"share(failed) <= 2%":   {N: n, Total: float64(n) / 100, Seconds: 300},
		"share(failed) <= 0.5%": {N: n, Total: float64(n) / 100, Seconds: 300},
		"p99(ttft) <= 300ms":    {N: n, Histogram: &h, Seconds: 300},
		"p99(ttft) <= 100ms":    {N: n, Histogram: &h, Seconds: 300},
		"p99(ttft) <= 301ms":    {N: n + n/20, Over: n / 20, Histogram: &h, Seconds: 300},
	} {
		want := Pass
		if text == "share(failed) <= 0.5%" || text == "p99(ttft) <= 100ms" || s.Over > 0 {
			want = Fail
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		l := judged(t, "version: 1\nclauses: [{need: "+text+", window: 5m, live: {do: [hold]}}]\n", always{s}, testEpoch.Add(5*time.Minute))
		runtime.ReadMemStats(&after)
		if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; l.grade != want || mb > 200 {
			t.Errorf("%s of %d requests: %s: %s; %d MB", text, n, l.grade, l.reason, mb)
		}
	}
	for _, s := range []Series{{N: math.MaxInt64, Total: 1}, {N: 10, Total: -5}, {N: 10, Total: 11}, {N: 10, Total: math.NaN()}, {N: 10, Total: 0.5}} {
		if l := judged(t, "version: 1\nclauses: [{need: share(failed) <= 100%, window: 5m, live: {do: [hold]}}]\n", always{s}, testEpoch.Add(5*time.Minute)); l.grade == Pass && s.N == 10 {
			t.Errorf("%+v passes: %s", s, l.reason)
		}
	}
}

// TestMinimumOfAnExtremeCountsValues: answers of one token have no TPOT, so they are
// no part of the hundred that a maximum of it must rest on.
func TestMinimumOfAnExtremeCountsValues(t *testing.T) {
	c := decode(t, "version: 1\nclauses: [{need: max(tpot) <= 20ms, min: 100}]\n")
	for values, want := range map[int]Grade{1: Inconclusive, 99: Inconclusive, 100: Pass} {
		e := TestCase{Evidence: []Stretch{{For: 200e9, Candidate: &Traffic{Rate: 1}}}}.evidence()
		for i := range e.Records[values:] {
			r := &e.Records[values+i]
			r.Output, r.Events = record.Tokens(1), r.Events[:1]
		}
		if v := Evaluate(c, e); v.Grade != want {
			t.Errorf("%d of 200 answers have a TPOT: %s: %s", values, v.Grade, v.Reason)
		}
	}
}

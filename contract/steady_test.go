package contract

import (
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/record"
)

// stretch makes the requests of a window of one minute, one every so often, each
// in flight as long as took says for its due offset.
func stretch(every time.Duration, took func(due time.Duration) time.Duration) ([]record.Record, record.Window) {
	const begin = 10 * time.Second
	w := record.Window{Variant: "v", Workload: "w", Start: record.At(begin), End: record.At(begin + time.Minute)}
	var records []record.Record
	for due := time.Duration(0); due < time.Minute; due += every {
		at := record.At(begin + due)
		r := record.Record{Shot: int64(len(records)), Variant: "v", Workload: "w", Due: at, Send: at, Outcome: record.OK}
		r.Events = []record.Event{{At: at + record.Instant(took(due)/2), Kind: record.KindContent}}
		r.EOF = at + record.Instant(took(due))
		records = append(records, r)
	}
	return records, w
}

func pointers(records []record.Record) (out []*record.Record) {
	for i := range records {
		out = append(out, &records[i])
	}
	return out
}

func TestFindSteady(t *testing.T) {
	const s = time.Second
	steady := func(time.Duration) time.Duration { return s }
	for _, c := range []struct {
		name     string
		users    int
		took     func(due time.Duration) time.Duration
		found    bool
		from, to time.Duration // of the window
		why      string
		grows    bool
	}{
		{name: "steady", took: steady, found: true, from: 2 * s, to: 4 * s, why: "first answers"},
		{name: "slow at first", took: func(d time.Duration) time.Duration {
			if d < 12*s {
				return 4 * s
			}
			return s
		}, found: true, from: 12 * s, to: 18 * s},
		{name: "slow for too long", took: func(d time.Duration) time.Duration {
			if d < 33*s {
				return 4 * s
			}
			return s
		}, why: "had not become steady by the middle"},
		{name: "answers as long as the stretch", took: func(time.Duration) time.Duration { return 20 * s }, why: "more than half of the 1m0s"},
		{name: "ever longer", took: func(d time.Duration) time.Duration { return s/2 + d/4 }, why: "had not become steady", grows: true},
		{name: "closed, a slow first wave", users: 8, took: func(d time.Duration) time.Duration {
			if d < 8*s/4 {
				return 9 * s
			}
			return s
		}, found: true, from: 9 * s, to: 15 * s},
	} {
		records, w := stretch(s/4, c.took)
		got := FindSteady(pointers(records), w, c.users, 0.9)
		from, _ := got.From.Sub(w.Start)
		if got.Found != c.found || !strings.Contains(got.Why, c.why) || c.found && (from < c.from || from > c.to) {
			t.Errorf("%s: %+v, from %v; want found: %t from %v to %v, %q", c.name, got, from, c.found, c.from, c.to, c.why)
		}
		if grows := got.Drift.Lo > 0; grows != c.grows {
			t.Errorf("%s: a drift of %v [%v, %v]; want growth: %t", c.name, got.Drift.Value, got.Drift.Lo, got.Drift.Hi, c.grows)
		}
		if c.users > 0 && got.Drift.Defined() {
			t.Errorf("%s: a closed loop has a drift of %v", c.name, got.Drift.Value)
		}
	}
}

func TestFindSteadyOfNothing(t *testing.T) {
	_, w := stretch(time.Second, func(time.Duration) time.Duration { return 1 })
	if got := FindSteady(nil, w, 0, 0.9); got.Found || got.Drift.Defined() || got.Why == "" {
		t.Errorf("no records: %+v", got)
	}
	if got := FindSteady(nil, record.Window{}, 0, 0.9); got.Found {
		t.Errorf("no window: %+v", got)
	}
}

// TestInFlightIsExact holds the averages against Little's law: their sum is the
// time that all requests spent in flight within the window.
func TestInFlightIsExact(t *testing.T) {
	records, w := stretch(130*time.Millisecond, func(d time.Duration) time.Duration { return d % (7 * time.Second) })
	records[3].EOF = 0 // never ended
	want := 0.0
	for i := range records {
		end := min(w.End, records[i].EOF)
		if records[i].EOF == 0 {
			end = w.End
		}
		want += float64(end - records[i].Due)
	}
	got := 0.0
	for _, x := range inFlight(within(pointers(records), w), w) {
		got += x * float64(time.Minute) / levels
	}
	if math.Abs(got-want) > 1e-6*want {
		t.Errorf("%v ns in flight, want %v", got, want)
	}
}

// TestSinceOnlyCutsAPrefix demands that no later record is lost.
func TestSinceOnlyCutsAPrefix(t *testing.T) {
	records, w := stretch(time.Second, func(time.Duration) time.Duration { return 1 })
	e := Evidence{Records: records, Windows: []record.Window{w}}
	from := w.Start + record.Instant(20*time.Second)
	got := e.Since(from)
	if len(got.Records) != 40 || got.Records[0].Due != from || got.Windows[0].Start != from || got.Windows[0].End != w.End {
		t.Errorf("%d records from %v, window %+v", len(got.Records), got.Records[0].Due, got.Windows[0])
	}
	if len(e.Records) != 60 || e.Windows[0].Start != w.Start {
		t.Error("the evidence itself was cut")
	}
}

func TestLeaning(t *testing.T) {
	records, w := stretch(time.Second, func(time.Duration) time.Duration { return time.Second })
	for need, want := range map[string]Grade{
		"p99(ttft) <= 800ms": Pass, "p99(ttft) <= 100ms": Fail, "share(failed) <= 1%": Pass, "mean(tpot) <= 1s": Inconclusive,
	} {
		n, err := ParseNeed(need)
		if err != nil {
			t.Fatal(err)
		}
		v := Evaluate(&Contract{Version: 1, Clauses: []Clause{{Need: n}}}, Evidence{Records: records, Windows: []record.Window{w}})
		if got := v.Leaning(); got != want {
			t.Errorf("%s leans to %v, want %v (%v)", need, got, want, v.Reason)
		}
	}
	if got := (Verdict{}).Leaning(); got != Inconclusive {
		t.Errorf("nothing leans to %v", got)
	}
}

// TestSteadyOfAbsurdUsers reads a number of users that a damaged manifest may hold.
func TestSteadyOfAbsurdUsers(t *testing.T) {
	r := record.Record{Phase: record.Measured, Outcome: record.OK, Due: record.At(0), EOF: record.At(time.Second)}
	w := record.Window{Start: record.At(0), End: record.At(time.Minute)}
	before := new(runtime.MemStats)
	runtime.ReadMemStats(before)
	FindSteady([]*record.Record{&r}, w, 1<<26, 0.9)
	after := new(runtime.MemStats)
	runtime.ReadMemStats(after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 10<<20 {
		t.Errorf("one request took %d MiB", took>>20)
	}
}

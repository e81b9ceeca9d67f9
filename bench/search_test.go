package bench

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/report"
)

// service is one whose probes come out as they should: those near its capacity
// decide nothing, and above a ceiling the client cannot send.
type service struct {
	capacity, ceiling float64
	doubt             float64 // rates within this factor of the capacity are undecided
}

func (s service) probe(rate float64, hold time.Duration) report.Probe {
	p := report.Probe{Rate: rate, For: hold, Outcome: report.Undecided, Leaning: "pass"}
	if rate > s.capacity {
		p.Leaning = "fail"
	}
	switch {
	case rate > s.ceiling:
		p.Outcome = report.Unfit
	case rate*s.doubt <= s.capacity:
		p.Outcome, p.Proven = report.Holds, &rate
	case rate > s.capacity*s.doubt:
		p.Outcome = report.Fails
	}
	return p
}

// find searches with so many probes, and returns them with the reason to end.
func (s service) find(q Search) ([]report.Probe, string) {
	q.defaults()
	var done []report.Probe
	for {
		at, over := q.next(done)
		if over != "" {
			return done, over
		}
		done = append(done, s.probe(at.rate, at.hold))
	}
}

// TestSearchEnds demands of every search that it ends in time, stays within its
// bounds, never puts an end of the bracket on the wrong side, and comes as near to
// the capacity as the service lets it.
func TestSearchEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := service{
			capacity: math.Exp(rapid.Float64Range(-3, 6).Draw(t, "log capacity")), ceiling: math.Inf(1),
			doubt: rapid.Float64Range(1, 1.5).Draw(t, "doubt"),
		}
		if rapid.Bool().Draw(t, "has ceiling") {
			s.ceiling = s.capacity * math.Exp(rapid.Float64Range(-2, 2).Draw(t, "log ceiling"))
		}
		q := Search{Start: rapid.Float64Range(0.1, 50).Draw(t, "start"), Probes: rapid.IntRange(3, 60).Draw(t, "probes"), MaxRate: 1000}
		done, over := s.find(q)
		if len(done) > q.Probes || over == "" {
			t.Fatalf("%d probes of %d, %q", len(done), q.Probes, over)
		}
		for _, p := range done {
			if !(p.Rate > 0 && p.Rate <= q.MaxRate) || p.For < 30*time.Second || p.For > 2*time.Minute {
				t.Fatalf("a probe at %v for %v", p.Rate, p.For)
			}
			if n := times(done, p.Rate); n > 2 {
				t.Fatalf("%d probes at %v", n, p.Rate)
			}
		}
		lo, hi, contradicted := bracket(done)
		if contradicted || lo != nil && *lo > s.capacity || hi != nil && *hi < s.capacity {
			t.Fatalf("bracket [%v, %v] of %v, contradicted: %t", lo, hi, s.capacity, contradicted)
		}
		if !strings.HasPrefix(over, "neighbouring") {
			return
		}
		if bound := min(s.capacity/s.doubt, s.ceiling) / 1.051; lo == nil || *lo < bound {
			t.Fatalf("%s: the lower end is %v of %v, doubt %v, ceiling %v", over, lo, s.capacity, s.doubt, s.ceiling)
		}
		if bound := s.capacity * s.doubt * 1.051; hi != nil && *hi > bound {
			t.Fatalf("%s: the upper end is %v of %v, doubt %v, ceiling %v", over, *hi, s.capacity, s.doubt, s.ceiling)
		}
	})
}

// TestSearchSteps pins the way of a few searches.
func TestSearchSteps(t *testing.T) {
	for _, c := range []struct {
		name string
		s    service
		q    Search
		want string
		over string
	}{
		{"a sharp edge", service{10, math.Inf(1), 1}, Search{Start: 4}, "4 8 16 11.3 9.51 10.4 9.93", "neighbouring"},
		{"downwards", service{1, math.Inf(1), 1}, Search{Start: 4}, "4 2 1 1.41 1.19 1.09 1.04", "neighbouring"},
		{"no rate at all", service{0, math.Inf(1), 1}, Search{Start: 1, Probes: 100}, "1 0.5 0.25 0.125 0.0625 0.0312 0.0156 0.00781 0.00391 0.00195 0.000977", "rates down to"},
		{"every rate", service{1e9, math.Inf(1), 1}, Search{Start: 10, MaxRate: 30}, "10 20 30", "highest rate allowed"},
		{"the client's limit", service{1e9, 15, 1}, Search{Start: 10}, "10 20 20 14.1 16.8 16.8 15.4 15.4 14.8", "neighbouring"},
		{"an unfit client", service{1e9, 0, 1}, Search{Start: 10}, "10 10 5 5", "unfit in all four probes"},
	} {
		done, over := c.s.find(c.q)
		var rates []string
		for _, p := range done {
			rates = append(rates, fmt.Sprintf("%.3g", p.Rate))
		}
		if got := strings.Join(rates, " "); got != c.want || !strings.Contains(over, c.over) {
			t.Errorf("%s: %s (%s), want %s (%s)", c.name, got, over, c.want, c.over)
		}
	}
}

func TestBracketOfProbesThatContradict(t *testing.T) {
	s := service{capacity: 10, ceiling: math.Inf(1), doubt: 1}
	done := []report.Probe{s.probe(4, 0), s.probe(16, 0), s.probe(8, 0)}
	done[1].Outcome, done[1].Proven = report.Holds, &done[1].Rate
	done[2].Outcome, done[2].Proven = report.Fails, nil
	lo, hi, contradicted := bracket(done)
	if !contradicted || lo == nil || *lo != 4 || hi == nil || *hi != 8 {
		t.Errorf("bracket [%v, %v], contradicted: %t; want [4, 8] and true", lo, hi, contradicted)
	}
	d := &report.Capacity{Probes: done, Confidence: 0.95}
	if conclude(d); d.Grade != "inconclusive" || !strings.Contains(d.Reason, "contradict") {
		t.Errorf("%s: %s", d.Grade, d.Reason)
	}
}

// TestSearchSeesNothing stops where no probe gives a figure to go by.
func TestSearchSeesNothing(t *testing.T) {
	q := Search{}
	q.defaults()
	blind := report.Probe{Rate: 1, Outcome: report.Undecided, Leaning: "inconclusive", Reason: "no tokens are counted"}
	twice := blind
	twice.Rate = 2
	if _, over := q.next([]report.Probe{blind, twice}); !strings.Contains(over, "no tokens are counted") {
		t.Errorf("two blind probes: %q", over)
	}
}

// TestGoodputNeedsTheValue counts no request as good whose server hides what the
// limit is about; one that can have no such value is.
func TestGoodputNeedsTheValue(t *testing.T) {
	var clauses []contract.Clause
	for _, need := range []string{"p99(tpot) <= 50ms", "p99(ttft) <= 1s"} {
		n, err := contract.ParseNeed(need)
		if err != nil {
			t.Fatal(err)
		}
		clauses = append(clauses, contract.Clause{Need: n})
	}
	answer := func(output record.Count) *record.Record {
		return &record.Record{
			Outcome: record.OK, Stream: true, Due: record.At(0), Send: record.At(0), EOF: record.At(300 * time.Millisecond), Output: output,
			Events: []record.Event{{At: record.At(100 * time.Millisecond), Kind: record.KindContent}, {At: record.At(300 * time.Millisecond), Kind: record.KindContent}},
		}
	}
	single := answer(record.Tokens(1))
	single.Events = single.Events[:1]
	for _, tt := range []struct {
		name string
		r    *record.Record
		want bool
	}{
		{"ten tokens in 0.2 s", answer(record.Tokens(10)), true},
		{"three tokens in 0.2 s", answer(record.Tokens(3)), false},
		{"no usage", answer(record.Count(0)), false},
		{"one token", single, true},
	} {
		if got := within(tt.r, clauses); got != tt.want {
			t.Errorf("%s: good %t, want %t", tt.name, got, tt.want)
		}
	}
}

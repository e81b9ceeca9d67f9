package load

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-llm/assay/record"
)

func TestHistogramBoundsItsError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, int64(time.Hour)), 1, 200).Draw(t, "values")
		p := rapid.Float64Range(0, 1).Draw(t, "p")
		var h histogram
		for _, v := range values {
			h.add(time.Duration(v))
		}
		slices.Sort(values)
		want := time.Duration(values[int(p*float64(len(values)-1))])
		got := h.quantile(p)
		if got < want || float64(got) > float64(want)*1.032+1024 {
			t.Errorf("quantile(%v) = %v, want %v up to 3.2 %% and 1 µs more", p, got, want)
		}
	})
	if got := new(histogram).quantile(.5); got >= 0 {
		t.Errorf("quantile of nothing = %v, want a negative", got)
	}
}

// healthy returns n records of a fit client, 100 a second.
func healthy(n int) []record.Record {
	rng := rand.New(rand.NewPCG(1, 2))
	recs := make([]record.Record, n)
	for i := range recs {
		due := time.Duration(i) * 10 * time.Millisecond
		send := due + time.Duration(rng.IntN(800))*time.Microsecond
		first := send + 50*time.Millisecond
		recs[i] = record.Record{
			Shot: int64(i), Outcome: record.OK, Reused: true, Due: record.At(due), Admit: record.At(due), Send: record.At(send), EOF: record.At(first),
			Events: []record.Event{{At: record.At(first), Kind: record.KindContent, Lag: time.Duration(rng.IntN(200)) * time.Microsecond}},
		}
	}
	return recs
}

func TestCertificateNamesWhatIsWrong(t *testing.T) {
	quiet := []record.ClientSecond{{CPU: .2, Stall: 8 * time.Millisecond, Descriptors: 20, Limit: 1024}}
	tests := []struct {
		name    string
		spoil   func(recs []record.Record, seconds *[]record.ClientSecond)
		reasons []string // beginnings; none: fit
	}{
		{"healthy", func([]record.Record, *[]record.ClientSecond) {}, nil},
		{"late in 2 %", func(recs []record.Record, _ *[]record.ClientSecond) {
			for i := 0; i < len(recs); i += 50 {
				recs[i].Send += record.Instant(6 * time.Millisecond)
			}
		}, []string{"the client sent late: p99 of its own lag is 6"}},
		{"dialling is not the client's lag", func(recs []record.Record, _ *[]record.ClientSecond) {
			for i := range recs {
				recs[i].Reused = false
				recs[i].ConnStart = recs[i].Due
				recs[i].ConnEnd = recs[i].Due + record.Instant(time.Second)
				recs[i].Send += record.Instant(time.Second)
			}
		}, nil},
		{"late stamps", func(recs []record.Record, _ *[]record.ClientSecond) {
			for i := 0; i < len(recs); i += 50 {
				recs[i].Events[0].Lag = 7 * time.Millisecond
			}
		}, []string{"the client stamped late"}},
		{"stamps without a kernel time are no lag", func(recs []record.Record, _ *[]record.ClientSecond) {
			for i := range recs {
				recs[i].Events[0].Lag = -1
			}
		}, nil},
		{"own failures", func(recs []record.Record, _ *[]record.ClientSecond) {
			for i := range 5 {
				recs[i].Outcome, recs[i].Detail = record.ClientFault, "too many open files"
			}
		}, []string{"the client itself failed 5 of 1000 requests (too many open files)"}},
		{"one failure in a thousand", func(recs []record.Record, _ *[]record.ClientSecond) { recs[3].Outcome = record.ClientFault }, nil},
		{"dropped", func(recs []record.Record, _ *[]record.ClientSecond) {
			for i := range 2 {
				recs[i].Outcome = record.ClientOverload
			}
		}, []string{"the client dropped 2 of 1000"}},
		{"held back", func(recs []record.Record, _ *[]record.ClientSecond) {
			for i := range 20 {
				recs[i].Flags |= record.FlagDelayedByCap
			}
		}, []string{"the cap on requests in flight held back 20 of 1000"}},
		{"server failures are not the client's", func(recs []record.Record, _ *[]record.ClientSecond) {
			for i := range recs {
				recs[i].Outcome = record.HTTP5xx
			}
		}, nil},
		{"stall", func(_ []record.Record, s *[]record.ClientSecond) {
			*s = append(*s, record.ClientSecond{Second: 4, Stall: 300 * time.Millisecond, CPU: .1})
		}, []string{"the client stood still for 300ms in second 4"}},
		{"busy for six seconds", func(_ []record.Record, s *[]record.ClientSecond) {
			for i := range 6 {
				*s = append(*s, record.ClientSecond{Second: i + 1, CPU: .97})
			}
		}, []string{"the client took more than 85 % of its CPU for 6 s"}},
		{"busy for five seconds", func(_ []record.Record, s *[]record.ClientSecond) {
			for i := range 5 {
				*s = append(*s, record.ClientSecond{Second: i + 1, CPU: .97})
			}
		}, nil},
		{"descriptors", func(_ []record.Record, s *[]record.ClientSecond) {
			*s = append(*s, record.ClientSecond{Second: 2, Descriptors: 60, Limit: 64})
		}, []string{"the client had 60 of its 64 descriptors open in second 2"}},
		{"not watched", func(_ []record.Record, s *[]record.ClientSecond) { *s = nil }, []string{"the client was not watched"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			recs, seconds := healthy(1000), slices.Clone(quiet)
			tt.spoil(recs, &seconds)
			got := slices.Concat(lagReasons(recs), lossReasons(recs), processReasons(seconds))
			if len(got) != len(tt.reasons) {
				t.Fatalf("reasons %q, want %q", got, tt.reasons)
			}
			for i, want := range tt.reasons {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("reason %q, want one that begins with %q", got[i], want)
				}
			}
		})
	}
}

func TestLongAnswersAllowMoreLag(t *testing.T) {
	recs := healthy(1000)
	for i := range recs {
		recs[i].Send += record.Instant(8 * time.Millisecond)
		recs[i].Events[0].At += record.Instant(time.Second)
	}
	if got := lagReasons(recs); got != nil {
		t.Errorf("8 ms of lag beside a TTFT of 1 s gives %q, want none: it is below 2 %%", got)
	}
}

func TestMonitorBinsBySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMonitor(time.Now(), true)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for _, r := range healthy(1000) {
			m.observe(&r)
		}
		if err := m.Run(ctx); err != nil {
			t.Fatal(err)
		}
		c := m.Certificate(healthy(1000))
		if !c.Fit {
			t.Errorf("reasons %q, want none", c.Reasons)
		}
		sent := int64(0)
		for i, s := range c.Seconds[:10] {
			sent += s.Sent
			if s.Second != i || s.Sent != 100 || s.SendLagP99 > time.Millisecond || s.StampLagMax < 0 || s.CPU >= 0 {
				t.Errorf("second %d: %+v", i, s)
			}
		}
		if sent != 1000 {
			t.Errorf("%d sent, want 1000", sent)
		}
	})
}

func TestMeterReadsThisProcess(t *testing.T) {
	var m meter
	m.read()
	for until := time.Now().Add(20 * time.Millisecond); time.Now().Before(until); {
	}
	f := m.read()
	if f.cpu <= 0 || f.cpu > 1.5 {
		t.Errorf("CPU share %v of a process that only worked", f.cpu)
	}
	if f.limit == 0 || f.descriptors == 0 {
		t.Errorf("descriptors %d of %d", f.descriptors, f.limit)
	}
	if f.gcMax < 0 || f.schedP99 < 0 {
		t.Errorf("GC pause %v, scheduler %v: the runtime has both", f.gcMax, f.schedP99)
	}
}

// TestMonitorForgetsWhatItHasShown holds the memory of long runs: old seconds keep what is
// shown of them, and no more.
func TestMonitorForgetsWhatItHasShown(t *testing.T) {
	m := NewMonitor(time.Now(), true)
	at := func(s int, lag time.Duration) *record.Record {
		due := record.At(time.Duration(s) * time.Second)
		return &record.Record{Due: due, Send: due + record.Instant(lag), Outcome: record.OK, EOF: due + 1e9, Events: []record.Event{{At: due + 1e6, Lag: lag}}}
	}
	for s := range 1000 {
		for i := range 20 {
			m.observe(at(s, time.Duration(1+i)*time.Millisecond))
		}
	}
	held := 0
	for _, s := range m.seconds {
		if s.send != nil {
			held++
		}
	}
	if held > openSeconds+2 || len(m.open) != held {
		t.Errorf("%d seconds still have histograms, %d in line", held, len(m.open))
	}
	m.observe(at(3, time.Second)) // of a request that took very long
	rows := m.rows()
	if len(rows) != 1001 { // the answers of the last second ended in the next
		t.Fatalf("%d rows", len(rows))
	}
	for i, row := range rows[:1000] {
		if row.SendLagP50 < 10*time.Millisecond || row.SendLagP50 > 12*time.Millisecond || row.StampLagP99 < 19*time.Millisecond || row.Sent < 20 {
			t.Errorf("second %d: %+v", i, row)
		}
	}
	if rows[4].SendLagMax != time.Second || rows[3].SendLagMax > 25*time.Millisecond {
		t.Errorf("the largest lags are %v and %v", rows[4].SendLagMax, rows[3].SendLagMax)
	}
}

package contract

import (
	"math"
	"testing"
	"time"

	"github.com/assay-llm/assay/record"
)

// A request that failed was sent when it was sent: its lag is a number like any
// other, while its TTFT is worse than any limit.
func TestFailedRequestsKeepWhatDoesNotDependOnTheAnswer(t *testing.T) {
	var recs []record.Record
	for i := range 400 {
		due := time.Duration(i) * 10 * time.Millisecond
		r := record.Record{
			Shot: int64(i), Variant: "candidate", Workload: "w", Outcome: record.OK, Stream: true,
			Due: record.At(due), Send: record.At(due + time.Millisecond), EOF: record.At(due + 50*time.Millisecond),
			Events: []record.Event{{At: record.At(due + 40*time.Millisecond), Kind: record.KindContent}},
		}
		if i%10 == 0 {
			r.Outcome, r.Events = record.HTTP5xx, nil
		}
		recs = append(recs, r)
	}
	e := Evidence{Records: recs, Candidate: "candidate"}
	lag, _, err := Measure(e, Quantity{Stat: "quantile", P: .99, Metric: "lag"}, "candidate", "w", nil, .9)
	if err != nil || lag.Value != 1e6 || lag.N != 400 || lag.Over != 0 {
		t.Errorf("p99(lag) = %v of %d, %d over, %v; want 1e6 ns of all 400", lag.Value, lag.N, lag.Over, err)
	}
	ttft, _, err := Measure(e, Quantity{Stat: "quantile", P: .99, Metric: "ttft"}, "candidate", "w", nil, .9)
	if err != nil || !math.IsInf(ttft.Value, 1) || ttft.Over != 40 {
		t.Errorf("p99(ttft) = %v, %d over, %v; want +Inf with 40 over", ttft.Value, ttft.Over, err)
	}
}

// A month of measuring has slices that do not overflow an int64 on the way.
func TestRateOfALongWindow(t *testing.T) {
	end := 40 * 24 * time.Hour
	e := Evidence{
		Windows: []record.Window{{Variant: "candidate", Workload: "w", Start: record.At(0), End: record.At(end)}},
	}
	for i := range 40 * 24 {
		at := time.Duration(i) * time.Hour
		e.Records = append(e.Records, record.Record{
			Variant: "candidate", Workload: "w", Outcome: record.OK, Due: record.At(at), Send: record.At(at), EOF: record.At(at + time.Second),
			Events: []record.Event{{At: record.At(at + time.Second), Kind: record.KindContent}},
		})
	}
	got, _, err := Measure(e, Quantity{Stat: "rate", Metric: "requests"}, "candidate", "w", nil, .9)
	if want := 1.0 / 3600; err != nil || math.Abs(got.Value-want) > 1e-9 {
		t.Errorf("rate(requests) = %v/s, %v; want %v", got.Value, err, want)
	}
}

package contract

import (
	"testing"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/record"
)

// served returns n records of a variant: one token at 50 ms and fifteen more,
// 10 ms apart, 50 requests a second. Change spoils them one by one.
func served(variant string, n int, change func(i int, r *record.Record)) []record.Record {
	recs := make([]record.Record, n)
	for i := range recs {
		due := time.Duration(i) * 20 * time.Millisecond
		r := record.Record{
			Shot: int64(i), Variant: variant, Workload: "w", Outcome: record.OK, Stream: true, MaxTokens: 16, Finish: "length",
			Due: record.At(due), Send: record.At(due), EOF: record.At(due + 200*time.Millisecond), Output: record.Tokens(16),
		}
		for k := range 16 {
			at := due + 50*time.Millisecond + time.Duration(k)*10*time.Millisecond
			r.Events = append(r.Events, record.Event{At: record.At(at), Kind: record.KindContent, Bytes: 4})
		}
		change(i, &r)
		recs[i] = r
	}
	return recs
}

// slow stretches the gaps of an answer to 120 ms.
func slow(r *record.Record) {
	first := r.Events[0].At
	for k := range r.Events {
		r.Events[k].At = first + record.Instant(time.Duration(k)*120*time.Millisecond)
	}
}

// TestNoWayToPassWithoutServing holds verdicts that once passed and must not.
func TestNoWayToPassWithoutServing(t *testing.T) {
	reset := func(r *record.Record) { r.Outcome = record.ResetMid }
	tests := []struct {
		name                string
		n                   int
		candidate, baseline func(i int, r *record.Record)
		needs               []string
	}{
		{
			"every stream breaks after its tokens", 800, func(_ int, r *record.Record) { reset(r) }, nil,
			[]string{"rate(output_tokens) >= 100/s", "rate(sent) >= 10/s", "count(output_tokens) >= 100", "rate(output_tokens) >= baseline * 0.8", "p99(lag) <= 5ms"},
		},
		{
			"the slowest do not tell their tokens", 800, func(i int, r *record.Record) {
				if i%70 == 0 {
					slow(r)
					r.Output, r.Flags = 0, record.FlagUsageMissing
				}
			}, nil,
			[]string{"p99(tpot) <= 30ms", "p99(ntpot) <= 30ms", "mean(tpot) <= 30ms", "mean(tpot) <= baseline * 1.3", "p99(itl) <= 30ms"},
		},
		{
			"a third come in one event", 800, func(i int, r *record.Record) {
				if i%3 == 0 {
					r.Events = r.Events[:1]
					r.Events[0].At += record.Instant(3 * time.Second)
					r.Events[0].Tokens = record.Tokens(16)
				}
			}, nil,
			[]string{"p99(tpot) <= 30ms", "p99(itl) <= 30ms", "p99(icl) <= 30ms", "p99(gap.max) <= 30ms", "mean(tpot) <= 30ms"},
		},
		{
			"a proxy holds every stream back", 800, func(_ int, r *record.Record) {
				last := r.Events[len(r.Events)-1].At
				for k := range r.Events {
					r.Events[k].At = last + record.Instant(k*1000)
				}
			}, nil,
			[]string{"p95(tpot) <= 30ms", "p99(icl) <= 30ms", "mean(tpot) <= baseline * 1.05", "p99(gap.max) <= 1s"},
		},
		{
			"answers cut short", 800, func(i int, r *record.Record) {
				if i%4 != 0 {
					r.Events, r.Output = r.Events[:4], record.Tokens(4)
					r.Finish, r.Flags = "stop", record.FlagShortOutput
				}
			}, nil,
			[]string{"p95(e2e) <= 1s", "p90(e2e) <= baseline * 1.05", "rate(requests) >= baseline * 0.9"},
		},
		{
			"both fail alike", 800, func(i int, r *record.Record) {
				if i%2 == 0 {
					reset(r)
				}
			}, func(i int, r *record.Record) {
				if i%2 == 1 {
					reset(r)
				}
			}, []string{"share(failed) <= baseline + 10 points", "share(completed) >= baseline - 10 points"},
		},
		{"one request", 1, func(int, *record.Record) {}, nil, []string{"count(failed) <= 0", "count(output_tokens) >= 1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fine := func(int, *record.Record) {}
			if tt.baseline == nil {
				tt.baseline = fine
			}
			end := record.At(time.Duration(tt.n) * 20 * time.Millisecond)
			e := Evidence{Baseline: "baseline", Candidate: "candidate"}
			for _, v := range []string{"baseline", "candidate"} {
				e.Windows = append(e.Windows, record.Window{Variant: v, Workload: "w", Start: record.At(0), End: end})
			}
			e.Records = append(served("baseline", tt.n, tt.baseline), served("candidate", tt.n, tt.candidate)...)
			good := e
			good.Records = append(served("baseline", 800, fine), served("candidate", 800, fine)...)
			for _, text := range tt.needs {
				need, err := ParseNeed(text)
				if err != nil {
					t.Fatal(err)
				}
				c := &Contract{Clauses: []Clause{{Need: need}}}
				if v := Evaluate(c, e); v.Grade == Pass {
					t.Errorf("%s passes: %s", text, v.Reason)
				}
				if v := Evaluate(c, good); tt.n > 1 && v.Grade != Pass {
					t.Errorf("%s does not pass a good service: %s", text, v.Reason)
				}
			}
		})
	}
}

func TestConfidenceIsWorthTheWord(t *testing.T) {
	for text, ok := range map[string]bool{"95%": true, "80%": true, "79%": false, "50.0001%": false, "99.99%": true, "100%": false} {
		var c Contract
		err := config.Decode("c.yaml", []byte("version: 1\nconfidence: "+text+"\nclauses: [{need: p50(ttft) <= 1s}]\n"), &c)
		if sound := err == nil && len(Lint(&c, nil)) == 0; sound != ok {
			t.Errorf("confidence %s: sound %v (%v), want %v", text, sound, err, ok)
		}
	}
}

// A fast engine is not taken for a proxy that buffers: its first token is early
// in the answer, or its gaps are its pace.
func TestFastEnginesAreNotHeldBack(t *testing.T) {
	for name, gap := range map[string]time.Duration{"0.1 ms a token behind a short prefill": 100 * time.Microsecond, "0.3 ms a token behind a long one": 300 * time.Microsecond} {
		first := 200 * time.Microsecond
		if gap > 200*time.Microsecond {
			first = 50 * time.Millisecond
		}
		recs := served("candidate", 400, func(_ int, r *record.Record) {
			for k := range r.Events {
				r.Events[k].At = r.Send + record.Instant(first+time.Duration(k)*gap)
			}
		})
		need, err := ParseNeed("p95(tpot) <= 30ms")
		if err != nil {
			t.Fatal(err)
		}
		v := Evaluate(&Contract{Clauses: []Clause{{Need: need}}}, Evidence{Records: recs, Candidate: "candidate"})
		if v.Grade != Pass {
			t.Errorf("%s: %s: %s", name, v.Grade, v.Reason)
		}
	}
}

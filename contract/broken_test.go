package contract

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/config"
)

// TestBrokenContracts pins the exact message of every kind of mistake, with its
// position: what the reader refuses, and what lint does.
func TestBrokenContracts(t *testing.T) {
	positioned := regexp.MustCompile(`^contract\.yaml:[0-9]+:[0-9]+: `)
	total := 0
	each(t, "testdata/broken", func(t *testing.T, in map[string]string) map[string]string {
		out := map[string]string{}
		for name, data := range in {
			base, ok := strings.CutSuffix(name, ".yaml")
			if !ok {
				continue
			}
			total++
			var c Contract
			var faults strings.Builder
			if err := config.Decode("contract.yaml", []byte(data), &c); err != nil {
				faults.WriteString(err.Error() + "\n")
			} else {
				for _, f := range Lint(&c, parsePlan(t, in[base+".plan"])) {
					if f.Code == "" {
						t.Errorf("%s: a fault without a code: %s", name, f.Error())
					}
					faults.WriteString(f.Error() + "\n")
				}
			}
			if !positioned.MatchString(faults.String()) {
				t.Errorf("%s has no fault with a position: %q", name, faults.String())
			}
			out[base+".fault"] = faults.String()
		}
		return out
	})
	if total < 50 {
		t.Errorf("only %d contracts", total)
	}
}

// TestBrokenNeeds pins the exact message of every mistake in a need.
func TestBrokenNeeds(t *testing.T) {
	for _, tc := range []struct{ need, want string }{
		{"", "column 1: expected a statistic such as p99, mean or share, found the end\n  hint: " + shape},
		{"ttft <= 800ms", "column 1: there is no statistic \"ttft\"\n  hint: statistics are pNN, mean, share, rate, count, max, min, estimate"},
		{"avg(ttft) <= 800ms", "column 1: there is no statistic \"avg\"\n  hint: did you mean mean?"},
		{"maen(ttft) <= 800ms", "column 1: there is no statistic \"maen\"\n  hint: did you mean mean?"},
		{"P99(ttft) <= 800ms", "column 1: there is no statistic \"P99\"\n  hint: did you mean p99?"},
		{"p999(ttft) <= 800ms", "column 1: p999 is not between p0 and p100\n  hint: did you mean p99.9?"},
		{"p100(ttft) <= 800ms", "column 1: p100 is not between p0 and p100\n  hint: write max for the largest value of the run"},
		{"p0(ttft) <= 800ms", "column 1: p0 is not a quantile that a sample can bound\n  hint: write min for the smallest value of the run"},
		{"p99.(ttft) <= 800ms", "column 1: p99. is not a percentile\n  hint: write p50, p95, p99 or p99.9"},
		{"p99 ttft <= 800ms", "column 5: expected ( after p99, found \"ttft\"\n  hint: " + shape},
		{"p99() <= 800ms", "column 5: expected a metric such as ttft, found \")\"\n  hint: metrics are " + strings.Join(metricNames(nil), ", ")},
		{"p99(ttft <= 800ms", "column 10: expected ) after ttft, found \"<\"\n  hint: " + shape},
		{"p99(ttff) <= 800ms", "column 5: there is no metric \"ttff\"\n  hint: did you mean ttft?"},
		{"p99(ttft) 800ms", "column 11: expected <=, <, >= or >, found \"800ms\"\n  hint: " + shape},
		{"p99(ttft) == 800ms", "column 11: there is no comparison \"==\"\n  hint: a measured quantity is never exactly equal to a limit; write <=, <, >= or >"},
		{"p99(ttft) ≤ 800ms", "column 11: there is no comparison \"≤\"\n  hint: write <="},
		{"p99(ttft) <=", "column 13: expected a limit such as 800ms, 2%, 30/s or baseline * 1.05, found the end\n  hint: " + shape},
		{"p99(ttft) <= 800", "column 14: p99(ttft) is measured in time, but the limit 800 is not\n  hint: write a limit such as 800ms"},
		{"p99(ttft) <= 800 msec", "column 18: there is no unit \"msec\"\n  hint: write ms, as in 800ms"},
		{"p99(ttft) <= 2 seconds", "column 16: there is no unit \"seconds\"\n  hint: write s, as in 2s"},
		{"p99(ttft) <= 2 min", "column 16: there is no unit \"min\"\n  hint: write m, as in 2m"},
		{"p99(ttft) <= 5 parsecs", "column 16: there is no unit \"parsecs\"\n  hint: units are ns, us, ms, s, m, h, %, points, /s, /min, tokens, requests"},
		{"share(failed) <= 2 percent", "column 20: there is no unit \"percent\"\n  hint: write %, as in 2%"},
		{"share(failed) <= baseline + 2 pp", "column 31: there is no unit \"pp\"\n  hint: write points, as in 0.5 points"},
		{"rate(requests) >= 5 rps", "column 21: there is no unit \"rps\"\n  hint: write /s, as in 30/s"},
		{"rate(output_tokens) >= 5 tok/s", "column 26: there is no unit \"tok/s\"\n  hint: write /s, as in 30/s"},
		{"p99(ttft) <= 9999999999999999ms", "column 14: the number is out of range\n  hint: write a limit that a run can reach, such as 800ms"},
		{"p99(ttft) => 800ms", "column 11: there is no comparison \"=>\"\n  hint: write >="},
		{"p95(tpot) <= baseline * 5 per cent", "column 27: there is no unit \"per\"\n  hint: units are ns, us, ms, s, m, h, %, points, /s, /min, tokens, requests"},
		{"p99(ttft) <= 1,000ms", "column 15: expected a number without separators\n  hint: write 1000, with a point for decimals"},
		{"p99(ttft) <= .5s", "column 14: expected a limit such as 800ms, 2%, 30/s or baseline * 1.05, found \".5s\"\n  hint: " + shape},
		{"p99(ttft) <= 2%", "column 14: p99(ttft) is measured in time, but the limit 2% is not\n  hint: write a limit such as 800ms, or baseline * 1.05 for a limit against the baseline"},
		{"p99(ttft) <= 800ms and p50(ttft) <= 1s", "column 20: expected the end, found \"and\"\n  hint: a need is one comparison; write two clauses, or a group with all or any"},
		{"p95(tpot) <= basline * 1.05", "column 14: expected a quantity or baseline, found \"basline\"\n  hint: did you mean baseline?"},
		{"p95(tpot) <= candidate", "column 14: expected a quantity or baseline, found \"candidate\"\n  hint: a limit is a quantity such as 800ms, or baseline * 1.05, or baseline + 0.5 points"},
		{"p95(tpot) <= baseline + 5%", "column 25: baseline + 5% can be read in two ways\n  hint: write baseline * 1.05 for a share of the baseline, or baseline + 5 points for percentage points"},
		{"share(failed) <= baseline - 0.5%", "column 29: baseline - 0.5% can be read in two ways\n  hint: write baseline * 0.995 for a share of the baseline, or baseline - 0.5 points for percentage points"},
		{"p95(tpot) <= baseline * 5%", "column 25: the factor 5% has a unit\n  hint: write baseline * 1.05 for 5% more"},
		{"p95(tpot) <= baseline * 105%", "column 25: the factor 105% has a unit\n  hint: write baseline * 1.05"},
		{"p95(tpot) <= baseline * 2ms", "column 25: the factor 2ms has a unit\n  hint: write a plain number, as in baseline * 1.05"},
		{"p95(tpot) <= baseline * 0", "column 25: the factor must be above 0\n  hint: write baseline * 1.05"},
		{"p95(tpot) <= baseline / 2", "column 23: a limit does not divide\n  hint: write baseline * 0.95"},
		{"p95(tpot) <= baseline 1.05", "column 23: expected *, + or - after baseline, found \"1.05\"\n  hint: write baseline * 1.05 or baseline + 0.5 points"},
		{"p95(tpot) <= 1.05 * baseline", "column 14: expected baseline first\n  hint: write baseline * 1.05"},
		{"p95(tpot) <= baseline + 2 points", "column 14: p95(tpot) is measured in time, but the limit baseline + 2 points is not\n  hint: write a limit such as 800ms"},
		{"share(failed) <= baseline + 2ms", "column 18: share(failed) is a share: a difference of shares is written in points\n  hint: write baseline + 0.5 points"},
		{"share(failed) <= 0.02", "column 18: share(failed) is measured in per cent, but the limit 0.02 is not\n  hint: write a limit such as 2%"},
		{"share(failed) <= 0.5 points", "column 18: share(failed) is measured in per cent, but the limit 0.5 points is not\n  hint: points are differences; write 0.5%"},
		{"share(ttft) <= 2%", "column 1: share needs a metric that is yes or no for each request; ttft is not\n  hint: such metrics are failed, completed, truncated"},
		{"rate(ttft) >= 2/s", "column 1: rate needs a metric that adds up over time; ttft does not\n  hint: such metrics are output_tokens, prompt_tokens, offered, sent, requests"},
		{"count(ttft) <= 2", "column 1: count needs a metric that can be counted; ttft is a value of each request\n  hint: write a quantile such as p95(ttft)"},
		{"p99(failed) <= 2%", "column 1: failed is yes or no for each request: it has a share, not a p99\n  hint: write share(failed)"},
		{"mean(failed) <= 2%", "column 1: failed is yes or no for each request: it has a share, not a mean\n  hint: write share(failed)"},
		{"p99(output_tokens) >= 2", "column 1: output_tokens adds up over time: it has a rate, not a p99\n  hint: write rate(output_tokens)"},
		{"rate(output_tokens) >= 30", "column 24: rate(output_tokens) is measured in tokens per second, but the limit 30 is not\n  hint: write a limit such as 30/s"},
		{"count(failed) <= baseline", "column 18: a count has no interval, so it cannot be held against a baseline\n  hint: write a share, a rate or a quantile such as p99"},
		{strings.Repeat("p", maxNeed+1), "column 1: a need of 501 characters; the limit is 500\n  hint: write one comparison, such as p99(ttft) <= 800ms"},
	} {
		_, err := ParseNeed(tc.need)
		got := "no error"
		if err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("ParseNeed(%q) (-want +got):\n%s", tc.need, diff)
		}
	}
}

func TestParseNeed(t *testing.T) {
	q := func(p float64, metric string) Quantity { return Quantity{"quantile", p, metric} }
	for _, tc := range []struct {
		need, text string
		quantity   Quantity
		compare    Compare
		baseline   bool
		factor     float64
		value      float64
	}{
		{"p99(ttft) <= 800ms", "", q(0.99, "ttft"), "<=", false, 0, 800e6},
		{" p99.9 ( ttft )<1.5s ", "p99.9(ttft) < 1.5s", q(0.999, "ttft"), "<", false, 0, 1.5e9},
		{"median(e2e) <= 1m30s", "p50(e2e) <= 1m30s", q(0.5, "e2e"), "<=", false, 0, 90e9},
		{"p5(user_rate) >= 30/s", "", q(0.05, "user_rate"), ">=", false, 0, 30},
		{"p5(user_rate) >= 30 tokens/s", "", q(0.05, "user_rate"), ">=", false, 0, 30},
		{"rate(requests) > 300/min", "", Quantity{"rate", 0, "requests"}, ">", false, 0, 5},
		{"share(failed) <= 2 %", "share(failed) <= 2%", Quantity{"share", 0, "failed"}, "<=", false, 0, 0.02},
		{"count(failed) < 12", "", Quantity{"count", 0, "failed"}, "<", false, 0, 12},
		{"max(gap.max) <= 200 us", "max(gap.max) <= 200us", Quantity{"max", 0, "gap.max"}, "<=", false, 0, 200e3},
		{"p95(tpot) <= baseline", "", q(0.95, "tpot"), "<=", true, 1, 0},
		{"p95(tpot)<=baseline*1.05", "p95(tpot) <= baseline * 1.05", q(0.95, "tpot"), "<=", true, 1.05, 0},
		{"p95(tpot) <= baseline + 20ms", "", q(0.95, "tpot"), "<=", true, 1, 20e6},
		{"share(failed) <= baseline + 0.5 points", "", Quantity{"share", 0, "failed"}, "<=", true, 1, 0.005},
		{"share(completed) >= baseline - 1 point", "", Quantity{"share", 0, "completed"}, ">=", true, 1, -0.01},
		{"mean(value.bleu-4) >= baseline - 2 points", "", Quantity{"mean", 0, "value.bleu-4"}, ">=", true, 1, -2},
		{"mean(value.drift) >= -0.5", "", Quantity{"mean", 0, "value.drift"}, ">=", false, 0, -0.5},
		{"mean(fidelity.judge) >= baseline - 2 points", "", Quantity{"mean", 0, "fidelity.judge"}, ">=", true, 1, -2},
		{"p50(output_length) <= 512 tokens", "", q(0.5, "output_length"), "<=", false, 0, 512},
	} {
		n, err := ParseNeed(tc.need)
		if err != nil {
			t.Errorf("ParseNeed(%q): %v", tc.need, err)
			continue
		}
		want := tc.text
		if want == "" {
			want = tc.need
		}
		got := []any{n.String(), n.Quantity, n.Compare, n.Limit.Baseline, n.Limit.Factor, n.Limit.Value}
		if diff := cmp.Diff([]any{want, tc.quantity, tc.compare, tc.baseline, tc.factor, tc.value}, got); diff != "" {
			t.Errorf("ParseNeed(%q) (-want +got):\n%s", tc.need, diff)
		}
	}
}

func FuzzParseNeed(f *testing.F) {
	for _, s := range []string{"p99(ttft) <= 800ms", "p95(tpot)<=baseline*1.05", "share(failed) <= baseline + 0.5 points", "max(ttft) < 1m30s", "rate(requests) >= 30 requests/s", "p99.9(value.x-y) > -2", "p5(ttft) <= 1µs", "estimate(long.length) >= 0.9", "estimate(a.b) >= baseline * 0.9", "estimate(ttft) < 1s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseNeed(s)
		if err != nil {
			e, ok := err.(*NeedError)
			if !ok || e.Column < 1 || e.Column > len([]rune(s))+1 || e.What == "" {
				t.Fatalf("ParseNeed(%q): error %#v", s, err)
			}
			return
		}
		again, err := ParseNeed(n.String())
		if err != nil {
			t.Fatalf("ParseNeed(%q) reads as %q, which does not parse: %v", s, n, err)
		}
		n.at, again.at = columns{}, columns{}
		if n != again {
			t.Fatalf("ParseNeed(%q) = %#v; its text %q gives %#v", s, n, n, again)
		}
	})
}

func FuzzContract(f *testing.F) {
	f.Add("version: 1\nclauses:\n  - need: p99(ttft) <= 800ms\n")
	f.Add("version: 1\nconfidence: 99%\nclauses:\n  - id: a\n    any:\n      - need: count(failed) < 3\n        window: 1h\n      - all: [{need: share(failed) <= 2%, where: {a: b}}]\n    live: {for: 1m, do: [hold, shrink 50%], no_data: act, judge: point, cooldown: 2m, latch: 3 in 1h, recover: {for: 5m, by: hand, when: {need: count(failed) < 1}}}\n    severity: critical\n")
	f.Add("version: 1\nclauses: [{need: 'p99(ttft) <= 800ms', on: [a, b], min: 3, confidence: 90%, window: 100 requests}]\n")
	f.Fuzz(func(t *testing.T, data string) {
		var c Contract
		if err := config.Decode("contract.yaml", []byte(data), &c); err != nil {
			return
		}
		Lint(&c, []Planned{{Workload: "chat", Requests: 100, Variants: []string{"baseline", "candidate"}}})
		if v := Evaluate(&c, Evidence{Candidate: "candidate"}); v.Grade != Inconclusive || v.Reason == "" {
			t.Fatalf("judged on nothing: %s, %s", v.Grade, v.Reason)
		}
		out, err := config.Encode(&c)
		if err != nil {
			t.Fatalf("encoding: %v", err)
		}
		var again Contract
		if err := config.Decode("contract.yaml", out, &again); err != nil {
			t.Fatalf("what was encoded does not decode: %v\n%s", err, out)
		}
		c.node, again.node = nil, nil
		strip := func(c *Contract) {
			walk(c.Clauses, nil, func(c *Clause, _ *config.Node) { c.Need.at = columns{} })
		}
		strip(&c)
		strip(&again)
		if diff := cmp.Diff(c, again, cmp.AllowUnexported(Contract{}, Clause{}, Need{}, Limit{}, columns{}, Registered{}), cmp.Comparer(func(a, b *config.Node) bool { return a == b })); diff != "" {
			t.Fatalf("round trip (-first +second):\n%s", diff)
		}
	})
}

func FuzzTest(f *testing.F) {
	f.Add("version: 1\ncontract: preset production-17\nreference: {p99(ttft): 1s}\ncases:\n  - name: a\n    evidence: [{for: 1m, candidate: {rate: 1/s, ttft: 300ms spread 0.5, values: {a: -1, b: 3%}}}]\n    want: {grade: pass, decisions: []}\n")
	f.Add("version: 1\ncontract: {version: 1, clauses: [{need: p50(ttft) <= 1s, window: 1m, live: {do: [hold]}}]}\ncases:\n  - name: a\n    evidence: [{from: 1m, for: 1m, baseline: {rate: 1/s, hung: 50%}}]\n    want: {reason: x}\n")
	f.Fuzz(func(t *testing.T, data string) {
		var test Test
		if err := config.Decode("test.yaml", []byte(data), &test); err != nil || test.Contract.InPlace == nil {
			return
		}
		made := 0.0
		for _, c := range test.Cases {
			for _, s := range c.Evidence {
				made += time.Duration(s.For).Seconds()
			}
		}
		if made > 600 || len(test.Cases) > 3 {
			return // sound, and slow
		}
		for _, o := range test.Run(test.Contract.InPlace) {
			if o.Pass != (len(o.Problems) == 0) {
				t.Fatalf("%+v", o)
			}
		}
	})
}

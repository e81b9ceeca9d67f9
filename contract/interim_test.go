package contract

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/record"
)

func TestLooks(t *testing.T) {
	for blocks, want := range map[int][]int{
		1: {1}, 2: {2}, 3: {3}, 4: {2, 4}, 5: {2, 5}, 8: {2, 4, 6, 8}, 12: {2, 4, 6, 8, 10, 12}, 16: {2, 4, 8, 10, 12, 16}, 1000: {166, 332, 500, 666, 832, 1000},
	} {
		if got := Looks(blocks); !slices.Equal(got, want) {
			t.Errorf("Looks(%d) = %v, want %v", blocks, got, want)
		}
	}
}

// TestLooksShareTheChanceOfError: together they never have more than what one look has.
func TestLooksShareTheChanceOfError(t *testing.T) {
	for of := 1; of <= 2*interimLooks; of++ {
		sum := 0.0
		for number := range of + 2 { // none before the first, and none behind the last
			share := Interim{number, of}.share()
			if number >= 1 && number <= of && share <= 0 {
				t.Errorf("look %d of %d has a share of %v", number, of, share)
			}
			sum += share
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Errorf("the shares of %d looks add up to %v", of, sum)
		}
	}
	if got := (Interim{}).confidence(0.95); got != 0.95 {
		t.Errorf("the only look has a confidence of %v", got)
	}
}

// partOf is what is there after so many of 12 blocks of a run of two variants.
func partOf(e Evidence, blocks int) Evidence {
	part := Evidence{Baseline: e.Baseline, Candidate: e.Candidate}
	end := map[string]record.Instant{}
	for _, w := range e.Windows {
		d, _ := w.End.Sub(w.Start)
		w.End = record.At(d * time.Duration(blocks) / 12)
		end[w.Variant] = w.End
		part.Windows = append(part.Windows, w)
	}
	for i := range e.Records {
		if r := &e.Records[i]; blocks == 12 || r.Due < end[r.Variant] {
			part.Records = append(part.Records, *r)
		}
	}
	return part
}

// sequence judges a run as one that may stop early, and says after which part of it it
// stopped. If it is naive, every look has the whole chance of a wrong grade.
func sequence(c *Contract, e Evidence, naive bool) (Verdict, float64) {
	looks := Looks(12)
	for i, blocks := range looks {
		part := partOf(e, blocks)
		if !naive {
			part.Interim = map[string]Interim{"chat": {i + 1, len(looks)}}
		}
		v := Evaluate(c, part)
		if over, here := v.Settled("chat"); over || here || i == len(looks)-1 {
			return v, float64(blocks) / 12
		}
	}
	panic("unreachable")
}

// TestErrorRatesOfRunsThatStop simulates runs that are looked at six times, of systems
// whose truth is known: all looks together must not fail a candidate that is within its
// limit, nor pass one that is not, more often than 1 in 20, nor do either with one
// exactly at it. They must find what is far from the limit with a part of the requests.
// ASSAY_SLOW=1 simulates 120 runs of each, ASSAY_SLOW=1000 as many; its log is the table
// in docs/runs.md, with what looks without a share of the chance would do.
func TestErrorRatesOfRunsThatStop(t *testing.T) {
	runs := 30
	if n, err := strconv.Atoi(os.Getenv("ASSAY_SLOW")); err == nil {
		runs = max(n, 120)
	}
	iid, tied := world{n: 600, sigma: 0.1, slower: 1}, world{n: 900, sigma: 0.1, rho: 0.5, slower: 1}
	wide, leaky := world{n: 900, sigma: 0.5, slower: 1}, world{n: 1200, sigma: 0.1, slower: 1, fails: 0.03}
	slow := func(w world, by float64) world { w.slower *= by; return w }
	leak := func(w world, to float64) world { w.fails = to; return w }
	const at, within, beyond = Inconclusive, Pass, Fail // where the candidate is: the grade that it deserves
	for _, tc := range []struct {
		need, candidate string
		baseline, cand  world
		right           Grade
		least, part     float64 // of right grades; of the requests, at most on average
	}{
		{"p95(tpot) <= baseline * 1.05", "at the limit", iid, slow(iid, 1.05), at, 0, 1},
		{"p95(tpot) <= baseline * 1.05", "equal", iid, iid, within, 0.5, 1},
		{"p95(tpot) <= baseline * 1.05", "10 % slower", iid, slow(iid, 1.1), beyond, 0.5, 1},
		{"p95(tpot) <= baseline * 1.05", "25 % slower", iid, slow(iid, 1.25), beyond, 0.95, 0.5},
		{"p90(ttft) <= baseline * 1.05, dependent", "at the limit", tied, slow(tied, 1.05), at, 0, 1},
		{"p90(ttft) <= baseline * 1.05, dependent", "25 % slower", tied, slow(tied, 1.25), beyond, 0.95, 0.6},
		{"mean(ttft) <= baseline * 1.2, heavy tail", "at the limit", wide, slow(wide, 1.2), at, 0, 1},
		{"mean(ttft) <= baseline * 1.2, heavy tail", "equal", wide, wide, within, 0.95, 0.6},
		{"share(failed) <= 3%", "at the limit", leaky, leaky, at, 0, 1},
		{"share(failed) <= 3%", "1 % fail", leaky, leak(leaky, 0.01), within, 0.8, 0.9},
		{"share(failed) <= 3%", "6 % fail", leaky, leak(leaky, 0.06), beyond, 0.8, 0.8},
		{"share(failed) <= baseline", "equal: at the limit", leaky, leaky, at, 0, 1},
	} {
		t.Run(tc.need+" "+tc.candidate, func(t *testing.T) {
			text, _, _ := strings.Cut(tc.need, ",")
			c := &Contract{Clauses: []Clause{{Need: need(t, text)}}}
			rng, parts := source(12), 0.0
			var early, once, naive [3]float64 // of each grade
			for range runs {
				br, bw := tc.baseline.records("baseline", rng)
				cr, cw := tc.cand.records("candidate", rng)
				e := Evidence{Records: append(br, cr...), Windows: []record.Window{bw, cw}, Baseline: "baseline", Candidate: "candidate"}
				v, part := sequence(c, e, false)
				parts += part / float64(runs)
				early[v.Grade] += 1 / float64(runs)
				once[Evaluate(c, e).Grade] += 1 / float64(runs)
				if runs >= 300 { // for contrast alone
					v, _ := sequence(c, e, true)
					naive[v.Grade] += 1 / float64(runs)
				}
				if v.WrongPass != 0.05 || v.WrongFail != 0.05 {
					t.Fatalf("it states error rates of %v and %v", v.WrongPass, v.WrongFail)
				}
			}
			t.Logf("| `%s` | %s | %.1f %% | %.1f %% | %.0f %% | %.1f %% | %.1f %% | %.1f %% | %.1f %% |", tc.need, tc.candidate, 100*early[Pass], 100*early[Fail], 100*parts, 100*once[Pass], 100*once[Fail], 100*naive[Pass], 100*naive[Fail])
			most := 0.05 + 3*math.Sqrt(0.05*0.95/float64(runs))
			for _, wrong := range []Grade{Pass, Fail} {
				if wrong != tc.right && early[wrong] > most {
					t.Errorf("%s in %.1f %% of %d runs, want at most %.1f %%", wrong, 100*early[wrong], runs, 100*most)
				}
			}
			if tc.right != at && early[tc.right] < tc.least || parts > tc.part+1e-9 {
				t.Errorf("%s in %.1f %% of %d runs with %.0f %% of the requests, want %.0f %% with at most %.0f %%", tc.right, 100*early[tc.right], runs, 100*parts, 100*tc.least, 100*tc.part)
			}
		})
	}
}

func TestLate(t *testing.T) {
	c := decode(t, `version: 1
clauses:
  - {id: tail, need: p99(ttft) <= 1s}
  - {id: most, need: max(ttft) <= 1s, min: 10}
  - {id: some, need: count(completed) >= 10}
  - {id: few, any: [{id: errors, need: count(failed) <= 3}, {id: share, need: share(failed) <= 1%}]}
  - {id: each, by: tenant, need: p50(ttft) <= 1s}
`)
	if got, want := c.Late(), []string{"most", "errors", "each"}; !slices.Equal(got, want) {
		t.Errorf("Late() = %v, want %v", got, want)
	}
}

func evidenceOf(batches ...batch) Evidence {
	e := Evidence{Baseline: "baseline", Candidate: "candidate"}
	for _, b := range batches {
		e.Records, e.Windows = append(e.Records, b.records(source(1))...), append(e.Windows, b.window())
	}
	return e
}

// TestJointLooks: a trade-off is judged at the confidence of its look, and states the
// error rate of all of them.
func TestJointLooks(t *testing.T) {
	c := traded(t, `
objectives:
  - {of: p50(ttft), better: lower, weight: 1}
  - {of: p50(tpot), better: lower, weight: 1}
margin: 20%
`)
	base, cand := newBatch("baseline", "chat"), newBatch("candidate", "chat")
	base.n, cand.n, base.sigma, cand.sigma = 400, 400, 0.3, 0.3
	e := evidenceOf(base, cand)
	once := Evaluate(c, e).Clauses[0]
	e.Interim = map[string]Interim{"chat": {1, 3}}
	first := Evaluate(c, e).Clauses[0]
	if first.Kind != KindJoint || first.Confidence != (Interim{1, 3}).confidence(0.95) || first.Look == nil || first.WrongPass != once.WrongPass || once.Look != nil {
		t.Errorf("%s at %v with error rates of %v, look %v; once %v", first.Kind, first.Confidence, first.WrongPass, first.Look, once.WrongPass)
	}
	if a, b := first.Joint.Utility, once.Joint.Utility; !(a.Lo < b.Lo && a.Hi > b.Hi) {
		t.Errorf("at the first look [%v, %v], at the only one [%v, %v]", a.Lo, a.Hi, b.Lo, b.Hi)
	}
	delete(e.Interim, "chat")
	if v := Evaluate(c, e); v.Grade != Inconclusive {
		t.Errorf("without a look: %s (%s)", v.Grade, v.Reason)
	}
}

// TestEarlyGrades: what the rest of the run could change is not decided before its end.
func TestEarlyGrades(t *testing.T) {
	quick, slow := newBatch("baseline", "chat"), newBatch("candidate", "chat")
	quick.n, slow.n = 400, 400
	slow.labels = map[string]string{"tenant": "a"}
	evidence := evidenceOf(quick, slow)
	for _, tt := range []struct {
		need, more string
		early, end Grade
	}{
		{"p50(ttft) <= 1s", "", Pass, Pass},
		{"p50(ttft) <= 100ms", "", Fail, Fail},
		{"p50(ttft) <= 1s", "by: tenant", Inconclusive, Pass},
		{"p50(ttft) <= 100ms", "by: tenant", Fail, Fail},
		{"count(completed) <= 500", "", Inconclusive, Pass},
		{"count(completed) <= 300", "", Fail, Fail},
		{"count(completed) >= 300", "", Pass, Pass},
		{"count(completed) >= 500", "", Inconclusive, Fail},
		{"max(ttft) <= 100ms", "min: 10", Fail, Fail},
		{"min(ttft) >= 100ms", "min: 10", Inconclusive, Pass},
		{"min(ttft) >= 1s", "min: 10", Fail, Fail},
		{"min(ttft) <= 1s", "min: 10", Pass, Pass},
		{"min(ttft) >= 10s", "min: 1000", Inconclusive, Inconclusive},
	} {
		text := "version: 1\nclauses:\n  - need: " + tt.need + "\n"
		if tt.more != "" {
			text += "    " + tt.more + "\n"
		}
		c := decode(t, text)
		for look, want := range map[Interim]Grade{{2, 3}: tt.early, {3, 3}: tt.end, {0, 3}: Inconclusive} {
			e := evidence
			e.Interim = map[string]Interim{"chat": look}
			v := Evaluate(c, e)
			if v.Grade != want {
				t.Errorf("%s %s at look %d of %d: %s (%s), want %s", tt.need, tt.more, look.Number, look.Of, v.Grade, v.Reason, want)
			}
			if _, here := v.Settled("chat"); here != (want != Inconclusive) {
				t.Errorf("%s %s at look %d of %d: settled %v", tt.need, tt.more, look.Number, look.Of, here)
			}
		}
		e := evidence
		e.Interim = map[string]Interim{} // of a run that may stop, of which nobody says where it stands
		if v := Evaluate(c, e); v.Grade != Inconclusive || !strings.Contains(v.Reason, "not looked at") {
			t.Errorf("%s without a look: %s (%s)", tt.need, v.Grade, v.Reason)
		}
	}
}

func TestSettled(t *testing.T) {
	const trade = "[{joint: {margin: %s, vetoes: [{need: p50(ttft) <= 1s}], objectives: [{of: p50(ttft), better: lower, weight: 1}, {of: p50(tpot), better: lower, weight: 1}]}}]"
	one, other := newBatch("candidate", "chat"), newBatch("candidate", "batch")
	one.n, other.n, one.sigma = 400, 400, 0.3
	first, both := evidenceOf(one), evidenceOf(one, other)
	looks := map[string]Interim{"chat": {1, 2}, "batch": {1, 2}}
	for _, tt := range []struct {
		clauses    string
		e          Evidence
		workload   string
		unfit      bool
		over, here bool
	}{
		{"[{need: p50(ttft) <= 1s}]", first, "chat", false, false, true},
		{"[{need: p50(ttft) <= 1s}]", first, "batch", false, false, false},
		{"[{need: p50(ttft) <= 1s}]", first, "chat", true, false, false},
		{"[{need: p50(ttft) <= 100ms}]", first, "chat", false, true, true},
		{"[{need: p50(ttft) <= 100ms}]", first, "chat", true, false, false},
		{"[{need: p50(ttft) <= 1s, on: batch}]", first, "chat", false, false, false},
		{"[{need: p50(ttft) <= 1s, on: batch}, {need: p50(ttft) <= 1s, on: chat}]", first, "chat", false, false, true},
		{"[{need: p50(ttft) <= 1s, on: batch}, {need: p50(ttft) <= 1s, on: chat}]", both, "batch", false, false, true},
		{"[{need: p50(ttft) <= 1s}, {need: p99.9(ttft) <= 1s}]", first, "chat", false, false, false},
		{"[{need: p50(ttft) <= 1s}, {need: p50(ttft) <= 1s, where: {tier: gold}}]", first, "chat", false, false, false},
		{"[{any: [{need: p50(ttft) <= 1s}, {need: p50(ttft) <= 100ms}]}]", first, "chat", false, false, true},
		{"[{any: [{need: p50(ttft) <= 1s}, {need: count(failed) <= 3}]}]", first, "chat", false, false, false},
		{fmt.Sprintf(trade, "50%"), first, "chat", false, false, true},
		{fmt.Sprintf(trade, "1%"), first, "chat", false, false, false}, // an equal candidate passes its vetoes, and is not decided
	} {
		e := tt.e
		if strings.Contains(tt.clauses, "joint") {
			base := newBatch("baseline", "chat")
			base.n, base.sigma = 400, 0.3
			e.Records, e.Windows = append(slices.Clone(e.Records), base.records(source(2))...), append(slices.Clone(e.Windows), base.window())
		}
		if e.Interim = looks; tt.unfit {
			e.Unfit = []string{"it is not fit"}
		}
		v := Evaluate(decode(t, fmt.Sprintf("version: 1\nclauses: %s\n", tt.clauses)), e)
		if over, here := v.Settled(tt.workload); over != tt.over || here != tt.here {
			t.Errorf("%s on %s: over %v, here %v, want %v, %v (%s)", tt.clauses, tt.workload, over, here, tt.over, tt.here, v.Reason)
		}
	}
}

// TestChecksAreJudgedOnce: a check is no load that is cut into blocks. Of a run that may
// stop early it is judged when it is done, and not before.
func TestChecksAreJudgedOnce(t *testing.T) {
	e := cases(200, 1, "quality.right", func(int) (float64, float64) { return 1, 1 })
	e.Interim = map[string]Interim{"chat": {2, 6}}
	if r := checkedResult(t, "share(quality.right) >= baseline - 5 points", e); r.Grade != Pass || r.Confidence != 0.95 || r.Look != nil {
		t.Errorf("a check that is done: %s at %v, look %v (%s)", r.Grade, r.Confidence, r.Look, r.Reason)
	}
	e.Interim["quality"] = Interim{Of: 1}
	if r := checkedResult(t, "share(quality.right) >= baseline - 5 points", e); r.Grade != Inconclusive {
		t.Errorf("a check that is not: %s (%s)", r.Grade, r.Reason)
	}
}

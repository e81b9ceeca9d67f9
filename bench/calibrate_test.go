package bench

import (
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/report"
	"github.com/assay-llm/assay/sim"
)

// chat is a suite whose engines have noise of their own, and failures.
const chat = `
variants:
  baseline: {sim: {step: {base: 4ms, sequence: 100us, prefill: 5us}, jitter: 15%, faults: {error_before: 0.3%}}}
  candidate: {sim: {step: 4ms}}
workloads:
  chat:
    arrivals: {poisson: 30/s}
    for: 10s
    prompts: {synthetic: [50, 400]}
    output: {uniform: {min: 10, max: 40}}
`

// TestPlayedSuiteTakesTurns: a suite that is played has the records and windows of
// one that runs: variants take turns A B B A, each block after the one before.
func TestPlayedSuiteTakesTurns(t *testing.T) {
	s := parseSuite(t, chat+`
  talk:
    arrivals: {concurrency: 4}
    requests: 80
    prompts: {synthetic: 20}
    output: 8
    sessions: {turns: 4}
    warmup: {requests: 3}
`)
	e, err := s.Play(7, nil)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for i, w := range e.Windows {
		order = append(order, w.Workload[:1]+w.Variant[:1])
		if i > 0 && w.Start < e.Windows[i-1].End {
			t.Errorf("window %d of %s begins before that of %s ended", i, w.Variant, e.Windows[i-1].Variant)
		}
		for _, r := range e.Records {
			if r.Phase == record.Measured && r.Due >= w.Start && r.Due < w.End && (r.Variant != w.Variant || r.Workload != w.Workload || r.Block != w.Block) {
				t.Fatalf("shot %d of %s in the window of %s", r.Shot, r.Variant, w.Variant)
			}
		}
	}
	if got, want := strings.Join(order, " "), "cb cc cc cb cb cc cc cb tb tc tc tb tb tc tc tb"; got != want {
		t.Errorf("the variants took turns %s, want %s", got, want)
	}
	counts := map[string]int{}
	for _, r := range e.Records {
		counts[r.Workload+" "+r.Variant+" "+r.Phase.String()]++
	}
	if counts["talk candidate measured"] != 80 || counts["talk baseline warm-up"] != 3 || counts["chat baseline measured"] < 250 || counts["chat baseline measured"] != counts["chat candidate measured"] {
		t.Errorf("requests: %v", counts)
	}
	again, err := s.Play(7, nil)
	if err != nil || !reflect.DeepEqual(e, again) {
		t.Errorf("equal seeds gave other evidence, %v", err)
	}
}

func TestPlayRefusesEndpoints(t *testing.T) {
	s := parseSuite(t, strings.Replace(chat, "{sim: {step: 4ms}}", "{url: 'http://127.0.0.1:1/v1', model: m}", 1))
	if _, err := s.Play(1, nil); err == nil || !strings.Contains(err.Error(), "only simulated engines are played") {
		t.Errorf("playing an endpoint: %v", err)
	}
	s = parseSuite(t, strings.Replace(chat, "{sim: {step: 4ms}}", "{sim: {step: 4ms}, timeout: 5s}", 1))
	if _, err := s.Play(1, nil); err == nil || !strings.Contains(err.Error(), "limits timeout and stall") {
		t.Errorf("playing a limit of the client: %v", err)
	}
}

// scored gives each record a score and a yes or no, as checks do.
func scored(records []record.Record) {
	for i := range records {
		records[i].Values = map[string]float64{"similarity": 0.9 + 0.001*float64(i%50), "value_conflict": float64(i % 2)}
	}
}

// TestPlantedDifferenceIsTheOneAsked: every metric in which a difference can be
// planted moves by it, and the baseline's records stay as they are.
func TestPlantedDifferenceIsTheOneAsked(t *testing.T) {
	s := parseSuite(t, chat)
	e, err := s.Play(3, func(string) sim.Config { return *mustVariant(t, s, "baseline").Sim })
	if err != nil {
		t.Fatal(err)
	}
	scored(e.Records)
	before := slices.Clone(e.Records)
	for _, test := range []struct {
		need   string // whose quantity moves
		d      Difference
		factor float64
		shift  float64
		within float64
	}{
		{"p95(tpot) <= 1s", Difference{Metric: "tpot", Factor: 1.05}, 1.05, 0, 1e-6},
		{"mean(itl) <= 1s", Difference{Metric: "itl", Factor: 1.2}, 1.2, 0, 1e-6},
		{"p90(gap.max) <= 1s", Difference{Metric: "gap.max", Factor: 1.5}, 1.5, 0, 1e-6},
		{"mean(user_rate) >= 1/s", Difference{Metric: "user_rate", Factor: 0.8}, 0.8, 0, 1e-6},
		{"p95(ttft) <= 1s", Difference{Metric: "ttft", Factor: 1.1}, 1.1, 0, 1e-6},
		{"p95(ttft) <= 1s", Difference{Metric: "ttft", Factor: 0.9}, 0.9, 0, 1e-6},
		{"p95(e2e) <= 1s", Difference{Metric: "e2e", Factor: 1.3}, 1.3, 0, 1e-6},
		{"mean(ntpot) <= 1s", Difference{Metric: "ntpot", Factor: 1.3}, 1.3, 0, 1e-6},
		{"share(failed) <= 1%", Difference{Metric: "failed", Shift: 0.05}, 1, 0.05, 0.025},
		{"share(completed) >= 1%", Difference{Metric: "completed", Shift: -0.05}, 1, -0.05, 0.025},
		{"mean(similarity) >= 0.5", Difference{Metric: "similarity", Shift: -0.02}, 1, -0.02, 1e-9},
		{"share(value_conflict) <= 10%", Difference{Metric: "value_conflict", Shift: 0.1, Share: true}, 1, 0.1, 0.06},
		{"share(value_conflict) <= 10%", Difference{Metric: "value_conflict", Shift: -0.1, Share: true}, 1, -0.1, 0.06},
	} {
		n, err := contract.ParseNeed(test.need)
		if err != nil {
			t.Fatal(err)
		}
		measure := func(records []record.Record) float64 {
			e := contract.Evidence{Records: records, Windows: e.Windows}
			est, _, err := contract.Measure(e, n.Quantity, "candidate", "chat", nil, 0.9)
			if err != nil || !est.Defined() {
				t.Fatalf("%s: %v, %v", test.need, est, err)
			}
			return est.Value
		}
		planted := Plant(e.Records, "candidate", "", test.d, 1)
		if got, want := measure(planted), measure(e.Records)*test.factor+test.shift; math.Abs(got-want) > test.within*math.Max(1, math.Abs(want)) {
			t.Errorf("%s with %+v is %v, want %v", test.need, test.d, got, want)
		}
		if !reflect.DeepEqual(before, e.Records) {
			t.Fatalf("planting %+v changed the records that it was given", test.d)
		}
		for i := range planted {
			if planted[i].Variant == "baseline" && !reflect.DeepEqual(planted[i], e.Records[i]) {
				t.Fatalf("planting %+v changed the baseline", test.d)
			}
		}
		if !plantable(test.d.Metric) {
			t.Errorf("%s can be planted, but is not said to be", test.d.Metric)
		}
	}
	for _, metric := range []string{"requests", "lag", "cached", "output_tokens"} {
		if plantable(metric) {
			t.Errorf("%s is said to be plantable", metric)
		}
	}
}

func mustVariant(t *testing.T, s *Suite, name string) Variant {
	t.Helper()
	v, ok := s.Variants.Get(name)
	if !ok {
		t.Fatalf("no variant %s", name)
	}
	return v
}

// calibrated tries the clauses on the chat suite.
func calibrated(t *testing.T, clauses string, c Calibration) *report.Calibration {
	t.Helper()
	s := parseSuite(t, chat+"contract:\n  clauses:\n"+clauses)
	d, err := CalibrateSuite(t.Context(), s, c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func clauseOf(t *testing.T, d *report.Calibration, id string) report.Calibrated {
	t.Helper()
	for _, k := range d.Clauses {
		if k.ID == id {
			return k
		}
	}
	t.Fatalf("no clause %s", id)
	return report.Calibrated{}
}

// TestCalibrateTellsWhatTrafficSupports: thresholds with room are supported, those
// in the noise, without a margin, beyond what the baseline does, or about what
// nobody measures are not; each with the reason, and with the requests that it takes.
func TestCalibrateTellsWhatTrafficSupports(t *testing.T) {
	d := calibrated(t, `
    - {id: roomy, need: median(tpot) <= baseline * 1.15}
    - {id: slo, need: p90(ttft) <= 1s}
    - {id: tight, need: median(tpot) <= baseline * 1.002}
    - {id: bare, need: median(tpot) <= baseline}
    - {id: missed, need: p50(ttft) <= 1ms}
    - {id: unmeasured, need: mean(similarity) >= 0.87}
    - id: both
      all: [{need: median(ttft) <= 1s}, {need: median(ttft) <= 1ms}]
    - id: either
      any: [{need: median(ttft) <= 1ms}, {need: median(ttft) <= 1s}]
`, Calibration{Repeats: 80, Seed: 5})
	for id, want := range map[string]struct {
		grade  contract.Grade
		reason string
	}{
		"roomy":      {contract.Pass, "of 80 identical candidates pass, and 0 of 80 fail"},
		"slo":        {contract.Pass, "80 of 80"},
		"tight":      {contract.Fail, "where 80 % should: it takes more requests to show that nothing changed; about "},
		"bare":       {contract.Fail, "it leaves no margin"},
		"missed":     {contract.Fail, "80 of 80 identical candidates fail, where 5 % may: the threshold lies inside the noise; the baseline itself does not meet it"},
		"unmeasured": {contract.Fail, "nothing of it is measured"},
		"both.1":     {contract.Pass, ""},
		"both.2":     {contract.Fail, ""},
		"either":     {contract.Inconclusive, "too few repeats to say whether it is at most 2.5 %"},
	} {
		if k := clauseOf(t, d, id); k.Grade != want.grade || !strings.Contains(k.Reason, want.reason) {
			t.Errorf("%s is %v: %s", id, k.Grade, k.Reason)
		}
	}
	if d.Grade != contract.Fail || d.Identical.Fail != 80 || len(d.Clauses) != 9 {
		t.Errorf("%v: %s; %+v", d.Grade, d.Reason, d.Identical)
	}
	tight, roomy := clauseOf(t, d, "tight"), clauseOf(t, d, "roomy")
	if tight.Needed == nil || *tight.Needed < 2*tight.Requests || roomy.Needed == nil || *roomy.Needed > roomy.Requests {
		t.Errorf("tight needs %v, roomy %v of %d", tight.Needed, roomy.Needed, roomy.Requests)
	}
	// What is at the limit neither passes nor fails more often than stated; what is
	// far beyond is found; in between the curve rises.
	if roomy.MDE == nil || *roomy.MDE < 1.15 || *roomy.MDE > 1.3 || len(roomy.Curve) < 6 {
		t.Fatalf("the curve of roomy: %+v, detects %v", roomy.Curve, roomy.MDE)
	}
	last := 0
	for _, p := range roomy.Curve {
		if p.Effect == roomy.Limit && (p.PassShare.Lo > 0.05 || p.FailShare.Lo > 0.05) {
			t.Errorf("at the limit %d pass and %d fail of %d", p.Pass, p.Fail, p.Repeats)
		}
		if p.Fail+3 < last {
			t.Errorf("the larger effect %v is found less often: %d after %d", p.Effect, p.Fail, last)
		}
		last = p.Fail
	}
	if last < 76 {
		t.Errorf("the largest effect is found %d times of 80", last)
	}
}

// TestJudgeEarly: a run that may stop is judged look by look, as bench.Run does it,
// and what was not sent by then plays no part.
func TestJudgeEarly(t *testing.T) {
	s := parseSuite(t, "stop: early\nblocks: 12\n"+chat+"contract:\n  clauses:\n    - {id: pace, need: median(tpot) <= baseline * 1.10}\n")
	v := *mustVariant(t, s, "baseline").Sim
	e, err := s.Play(3, func(name string) sim.Config { v.Seed++; return v })
	if err != nil {
		t.Fatal(err)
	}
	looks := s.looks()
	same, used := JudgeEarly(s.Contract.Contract, e, looks)
	if same.Grade != contract.Pass || used > 0.7 || len(looks) != 6 {
		t.Errorf("an identical candidate: %v (%s) after %.2f of the requests", same.Grade, same.Reason, used)
	}
	slow := e
	slow.Records = Plant(e.Records, "candidate", "", Difference{Metric: "tpot", Factor: 1.5}, 1)
	bad, used := JudgeEarly(s.Contract.Contract, slow, looks)
	if bad.Grade != contract.Fail || used > 0.6 {
		t.Errorf("half as slow again: %v (%s) after %.2f of the requests", bad.Grade, bad.Reason, used)
	}
	late := slow
	late.Records = slices.Clone(e.Records)
	for i, r := range slow.Records { // only what comes after the stop is slow
		if r.Block >= 10 {
			late.Records[i] = r
		}
	}
	if again, _ := JudgeEarly(s.Contract.Contract, late, looks); !reflect.DeepEqual(again, same) {
		t.Errorf("what was never sent changed the verdict: %s", again.Reason)
	}
	if once, used := JudgeEarly(s.Contract.Contract, e, nil); used != 1 || !reflect.DeepEqual(once, contract.Evaluate(s.Contract.Contract, e)) {
		t.Errorf("without looks: %v after %.2f", once.Grade, used)
	}
}

// TestCalibrateRepeats: few repeats say neither, equal seeds say the same.
func TestCalibrateRepeats(t *testing.T) {
	clauses := "    - {id: roomy, need: median(tpot) <= baseline * 1.10}\n"
	few := calibrated(t, clauses, Calibration{Repeats: 20, Seed: 5})
	if few.Grade != contract.Inconclusive || !strings.Contains(few.Reason, "too few repeats") {
		t.Errorf("%v: %s", few.Grade, few.Reason)
	}
	if again := calibrated(t, clauses, Calibration{Repeats: 20, Seed: 5}); !diff.Equal(few, again) {
		t.Errorf("equal seeds: %s", diff.Diff(few, again))
	}
	strict := calibrated(t, clauses, Calibration{Repeats: 80, Seed: 5, FalseAlarms: 0.01})
	if strict.Grade != contract.Inconclusive || !strings.Contains(strict.Reason, "with none failing it takes") {
		t.Errorf("%v: %s", strict.Grade, strict.Reason)
	}
}

// TestCalibrateNeeds holds the extrapolated number of requests against runs of that
// size: identical candidates then pass in about 80 % of them.
func TestCalibrateNeeds(t *testing.T) {
	if os.Getenv("ASSAY_SLOW") == "" {
		t.Skip("plays some hundred runs; set ASSAY_SLOW=1")
	}
	clauses := "    - {id: tight, need: median(tpot) <= baseline * 1.02}\n"
	small := calibrated(t, clauses, Calibration{Repeats: 100, Seed: 5})
	k := clauseOf(t, small, "tight")
	if k.Needed == nil {
		t.Fatalf("%+v", k)
	}
	s := parseSuite(t, chat+"contract:\n  clauses:\n"+clauses)
	spec, _ := s.Workloads.Get("chat")
	length := time.Duration(float64(spec.For) * float64(*k.Needed) / float64(k.Requests))
	text := strings.Replace(chat, "for: 10s", "for: "+length.Round(time.Second).String(), 1)
	d, err := CalibrateSuite(t.Context(), parseSuite(t, text+"contract:\n  clauses:\n"+clauses), Calibration{Repeats: 100, Seed: 6})
	if err != nil {
		t.Fatal(err)
	}
	if got := clauseOf(t, d, "tight"); got.Identical.Pass < 65 || got.Identical.Pass > 95 {
		t.Errorf("with %d requests, where %d were said to be needed, %d of 100 pass", got.Requests, *k.Needed, got.Identical.Pass)
	}
	t.Logf("%d requests: %d of 100 pass; needed %d; with them %d pass", k.Requests, k.Identical.Pass, *k.Needed, clauseOf(t, d, "tight").Identical.Pass)
}

// recorded is a run that was played, as if it had been measured.
func recorded(t *testing.T, workload string, contractText string) *Result {
	t.Helper()
	s := parseSuite(t, "variants: {baseline: {sim: {step: 4ms, jitter: 15%}}, candidate: {sim: {step: 4ms, jitter: 15%, seed: 9}}}\nworkloads:\n  w: "+workload+"\ncontract:\n  clauses:\n"+contractText)
	e, err := s.Play(11, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &record.Manifest{
		State: StateDone, Client: record.Certificate{Fit: true}, Windows: e.Windows, Ledger: record.Ledger(e.Records),
		Variants: []record.VariantInfo{{Name: "baseline"}, {Name: "candidate"}},
	}
	return &Result{Dir: "runs/x", Manifest: m, Records: e.Records, contract: s.Contract.Contract}
}

// TestHalvesOfARun: halves share no session, together they are the whole variant, and
// a block of time stays together.
func TestHalvesOfARun(t *testing.T) {
	r := recorded(t, "{arrivals: {poisson: 20/s}, requests: 1200, prompts: {synthetic: 20}, output: 12, sessions: {turns: 3, think: 200ms}}", `
    - {id: pace, need: median(tpot) <= baseline * 1.10}
    - {id: throughput, need: rate(requests) >= baseline * 0.9}
`)
	for _, by := range []string{BySession, ByBlock} {
		d, err := CalibrateRun(t.Context(), r, nil, Calibration{Repeats: 20, Seed: 2, By: by})
		if err != nil {
			t.Fatal(err)
		}
		if k := clauseOf(t, d, "pace"); k.Identical.Pass != 20 || k.Requests < 550 || k.Requests > 650 {
			t.Errorf("by %s: %v with %d requests: %s", by, k.Grade, k.Requests, k.Reason)
		}
		if len(d.Skipped) != 1 || !strings.Contains(d.Skipped[0], "throughput") || d.Variant != "baseline" || d.Unit != by {
			t.Errorf("by %s: skipped %q, variant %s, unit %s", by, d.Skipped, d.Variant, d.Unit)
		}
	}
	units, err := drawUnits(r.Records, "baseline", ByBlock)
	if err != nil || len(units) != runBlocks {
		t.Fatalf("%d blocks, %v", len(units), err)
	}
	seen := map[int]bool{}
	var ends []record.Instant
	for _, u := range units {
		sessions := map[string]bool{}
		for _, i := range u {
			seen[i] = true
			sessions[r.Records[i].Session] = true
		}
		ends = append(ends, r.Records[u[0]].Due)
		if len(sessions) < 8 {
			t.Errorf("a block of %d sessions", len(sessions))
		}
	}
	if len(seen) != 1200 || !slices.IsSorted(ends) {
		t.Errorf("%d records in blocks, in order: %t", len(seen), slices.IsSorted(ends))
	}
}

func TestCalibrateRunRefuses(t *testing.T) {
	open := "{arrivals: {poisson: 20/s}, requests: 100, prompts: {synthetic: 20}, output: 4}"
	few := recorded(t, "{arrivals: {concurrency: 4}, requests: 200, prompts: {synthetic: 20}, output: 4}", "    - {need: median(tpot) <= baseline * 1.1}\n")
	unfit := recorded(t, open, "    - {need: median(tpot) <= baseline * 1.1}\n")
	unfit.Manifest.Client = record.Certificate{Reasons: []string{"the client stood still"}}
	rates := recorded(t, open, "    - {need: rate(requests) >= 1/s}\n")
	bare := recorded(t, open, "    - {need: rate(requests) >= 1/s}\n")
	bare.contract = nil
	for why, r := range map[string]*Result{"has 4 sessions": few, "the client stood still": unfit, "half of a run has not": rates, "judged by no contract": bare} {
		if _, err := CalibrateRun(t.Context(), r, nil, Calibration{Repeats: 20}); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// TestSelfLikeness: the spread of a check's values and of the means of batches.
func TestSelfLikeness(t *testing.T) {
	r := recorded(t, "{arrivals: {poisson: 20/s}, requests: 2000, prompts: {synthetic: 20}, output: 4}", "    - {need: mean(similarity) >= 0.9}\n")
	for i := range r.Records { // 0.5 for one in ten, else 1: mean 0.95, sd 0.15
		v := 1.0
		if i%10 == 3 {
			v = 0.5
		}
		r.Records[i].Values = map[string]float64{"similarity": v}
	}
	d, err := CalibrateRun(t.Context(), r, nil, Calibration{Repeats: 20, Seed: 1, Batch: 100})
	if err != nil || len(d.Alike) != 2 {
		t.Fatalf("%+v, %v", d.Alike, err)
	}
	for _, a := range d.Alike {
		// The mean of 100 has a standard deviation of 0.015: 1 % of them lie 2.33 of it below.
		if a.N != 2000 || math.Abs(a.Mean-0.95) > 0.01 || a.P5 != 0.5 || a.P50 != 1 || math.Abs(a.BatchP1-(a.Mean-0.035)) > 0.008 {
			t.Errorf("%+v", a)
		}
	}
}

package baseline

import (
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
)

// service is what the records of a run are made of: a closed loop of one user whose
// requests take about so long, with a tail.
type service struct {
	requests int
	typical  time.Duration
	tail     time.Duration // of 3 % of the requests, on top
	failed   int           // of each hundred
	seed     uint64
}

// run makes the records of a run, and what a snapshot takes.
func (s service) run(id string, k Key) Source {
	rng := rand.New(rand.NewPCG(s.seed, 7))
	at := time.Duration(0)
	var records []record.Record
	for i := range s.requests {
		took := time.Duration(float64(s.typical) * (0.9 + 0.2*rng.Float64()))
		if rng.IntN(100) < 3 {
			took += s.tail
		}
		r := record.Record{
			Shot: int64(i), Variant: "candidate", Workload: "chat", Stream: true, MaxTokens: 2,
			Due: record.At(at), Send: record.At(at), Sent: record.At(at), Header: record.At(at + took/2), EOF: record.At(at + took),
			Outcome: record.OK, Status: 200, Finish: "length", Prompt: record.Tokens(10), Output: record.Tokens(2),
			Events: []record.Event{
				{At: record.At(at + took/2), Kind: record.KindContent, Bytes: 4, Lag: -1},
				{At: record.At(at + took), Kind: record.KindContent, Bytes: 4, Lag: -1},
			},
		}
		if i%100 < s.failed {
			r.Outcome, r.Status, r.Events, r.Output = record.HTTP5xx, 500, nil, 0
		}
		records = append(records, r)
		at += took
	}
	m := &record.Manifest{
		Schema: record.ManifestSchema, ID: id, State: "done", Start: day, Elapsed: at, Digest: "5e",
		Variants:  []record.VariantInfo{{Name: "candidate"}},
		Workloads: []record.WorkloadInfo{{Name: "chat"}},
		Windows:   []record.Window{{Variant: "candidate", Workload: "chat", Start: record.At(0), End: record.At(at)}},
	}
	return Source{
		Manifest: m, Evidence: contract.Evidence{Records: records, Windows: m.Windows, Candidate: "candidate"},
		Path: "runs/" + id, Records: strings.Repeat("0", 63) + id[len(id)-1:], Key: k, Also: Policy{}.Filled().Quantities(),
	}
}

func take(t *testing.T, s Source) Snapshot {
	t.Helper()
	snap, err := Take(s)
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// against judges one run by the snapshot of another.
func judged(t *testing.T, baseline, candidate Source, p Policy) contract.Result {
	t.Helper()
	r := create(t, Address{path: filepath.Join(t.TempDir(), "r.db")})
	if b := take(t, baseline); b.Quarantine == "" {
		mustAdd(t, r, b)
		mustPromote(t, r, by("first"), b)
	} else {
		t.Logf("quarantined: %s", b.Quarantine)
	}
	d := Compare(t.Context(), r, take(t, candidate), p)
	results := d.Results(p, candidate.Evidence)
	// What is written down gives the same results again.
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var back Delta
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(results, back.Results(p, candidate.Evidence), cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("read back, the delta gives other results:\n%s", diff)
	}
	if len(results) != 1 {
		t.Fatalf("%d results", len(results))
	}
	return results[0]
}

// TestDefaultGates: 12 % less throughput blocks, 85 ms more at the p99 mark, and
// what cannot be shown is inconclusive.
func TestDefaultGates(t *testing.T) {
	const ms = time.Millisecond
	base := service{requests: 3000, typical: 100 * ms, tail: 50 * ms, seed: 1}
	slower := func(by float64) service {
		s := base
		s.typical, s.seed = time.Duration(float64(s.typical)*by), 2
		return s
	}
	for name, tc := range map[string]struct {
		baseline, candidate service
		grade               contract.Grade
		mark                string
		want                string
	}{
		"unchanged":          {base, slower(1), contract.Pass, "", "all 2 gates pass"},
		"5 % slower":         {base, slower(1.05), contract.Pass, "", "all 2 gates pass"},
		"25 % slower":        {base, slower(1.25), contract.Fail, "", "throughput"},
		"faster":             {base, slower(0.7), contract.Pass, "", "all 2 gates pass"},
		"at the limit":       {base, slower(1 / 0.88), contract.Inconclusive, "", "throughput"},
		"a longer tail":      {base, service{requests: 3000, typical: 97 * ms, tail: 250 * ms, seed: 3}, contract.Pass, "high-risk", "marked high-risk"},
		"too few for p99":    {base, service{requests: 250, typical: 100 * ms, seed: 4}, contract.Inconclusive, "", "p99"},
		"too few of all":     {base, service{requests: 150, typical: 100 * ms, seed: 5}, contract.Inconclusive, "", "only 150 requests"},
		"a small baseline":   {service{requests: 60, typical: 100 * ms, seed: 6}, base, contract.Inconclusive, "", "there is no comparison: baseline: "},
		"a failing baseline": {service{requests: 3000, typical: 100 * ms, failed: 5, seed: 7}, base, contract.Inconclusive, "", "no active baseline"},
	} {
		r := judged(t, tc.baseline.run("a", chat), tc.candidate.run("b", chat), Policy{})
		if r.Grade != tc.grade || r.Mark != tc.mark || !strings.Contains(r.Reason, tc.want) {
			t.Errorf("%s: %s, mark %q: %s; want %s, mark %q, with %q", name, r.Grade, r.Mark, r.Reason, tc.grade, tc.mark, tc.want)
		}
		for _, g := range r.Results {
			if g.Grade != contract.Inconclusive && (g.Change == nil || g.Baseline == nil || g.Baseline.Lo == g.Baseline.Hi) {
				t.Errorf("%s: %s is decided without an interval of the reference", name, g.ID)
			}
		}
	}
}

// TestMarkSoftensNoFailedService: a mark takes a proven change for a risk. That
// requests were not answered is no such change, whatever is marked, and what proves
// nothing stays inconclusive.
func TestMarkSoftensNoFailedService(t *testing.T) {
	const ms = time.Millisecond
	sound := service{requests: 3000, typical: 100 * ms, tail: 50 * ms, seed: 1}
	failing := func(percent int) service {
		s := sound
		s.failed, s.seed = percent, 2
		return s
	}
	slow := service{requests: 3000, typical: 97 * ms, tail: 250 * ms, seed: 3}
	p99, failed, rate, median := "p99(e2e) <= reference + 85ms", "share(failed) <= reference + 1 points", "rate(output_tokens) >= reference * 0.88", "p50(e2e) <= reference * 0.5"
	for name, tc := range map[string]struct {
		need      string
		candidate service
		grade     contract.Grade
		mark      string
	}{
		"a longer tail":             {p99, slow, contract.Pass, "high-risk"},
		"3 % failed":                {p99, failing(3), contract.Fail, ""},
		"all failed, tail":          {p99, failing(100), contract.Fail, ""},
		"all failed, share":         {failed, failing(100), contract.Fail, ""},
		"all failed, rate":          {rate, failing(100), contract.Fail, ""},
		"a third failed, median":    {median, failing(33), contract.Fail, ""},
		"5 % failed, which is said": {failed, failing(5), contract.Pass, "high-risk"},
		"no requests":               {p99, service{}, contract.Inconclusive, ""},
		"too few":                   {p99, service{requests: 250, typical: 100 * ms, seed: 4}, contract.Inconclusive, ""},
	} {
		src := tc.candidate.run("b", chat)
		for _, on := range []contract.Names{nil, {"chat"}} {
			d := Delta{Key: chat, References: []Reference{{Role: RoleBaseline, Snapshot: take(t, sound.run("a", chat))}}}
			p := Policy{Gates: []Gate{{ID: "gate", Need: must(tc.need), On: on, Mark: "high-risk"}}}
			if r := d.Results(p, src.Evidence)[0]; r.Grade != tc.grade || r.Mark != tc.mark {
				t.Errorf("%s on %v: %s, mark %q: %s; want %s, mark %q", name, on, r.Grade, r.Mark, r.Reason, tc.grade, tc.mark)
			}
		}
	}
}

// TestFailedRequestsOfABaseline do not make the next run look good: its p99 is that
// of the requests that were served.
func TestFailedRequestsOfABaseline(t *testing.T) {
	base := service{requests: 3000, typical: 100 * time.Millisecond, failed: 2, seed: 1}
	s := take(t, base.run("a", chat))
	if s.Quarantine != "" {
		t.Fatal(s.Quarantine)
	}
	f, ok := s.Figure(contract.Quantity{Stat: "quantile", P: 0.99, Metric: "e2e"}, "chat")
	if !ok || f.Value() > 120e6 {
		t.Errorf("the p99 is %v, %t; want that of the served", f.Value(), ok)
	}
	if f, ok := s.Figure(contract.Quantity{Stat: "share", Metric: "failed"}, "chat"); !ok || f.Value() != 0.02 {
		t.Errorf("the share of failed requests is %v, %t", f.Value(), ok)
	}
}

func TestQuarantine(t *testing.T) {
	sound := service{requests: 300, typical: 100 * time.Millisecond, seed: 1}
	for want, change := range map[string]func(*Source){
		"":                        func(s *Source) { s.Verdict = &contract.Verdict{Grade: contract.Pass} },
		"it proves nothing":       func(s *Source) { s.Evidence.Unfit = []string{"the client was unfit"} },
		"its verdict is fail":     func(s *Source) { s.Verdict = &contract.Verdict{Grade: contract.Fail, Reason: "slow"} },
		"its verdict is inconclu": func(s *Source) { s.Verdict = &contract.Verdict{} },
		"5.0 % of its requests":   func(s *Source) { x := sound; x.failed = 5; s.Evidence = x.run("a", chat).Evidence },
	} {
		s := sound.run("a", chat)
		change(&s)
		if got := take(t, s).Quarantine; !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("quarantined as %q; want %q", got, want)
		}
	}
}

// TestNeverAcrossKeys: a run is not compared with one of another hardware class, even
// where a file says so.
func TestNeverAcrossKeys(t *testing.T) {
	src := service{requests: 3000, typical: 100 * time.Millisecond, seed: 1}.run("a", chat)
	d := Delta{Key: chat, References: []Reference{{Role: RoleBaseline, Snapshot: take(t, src)}}}
	if got := d.Results(Policy{}, src.Evidence)[0]; got.Grade != contract.Pass {
		t.Fatalf("the same key: %s: %s", got.Grade, got.Reason)
	}
	d.Key.Hardware = "l40s x1"
	if got := d.Results(Policy{}, src.Evidence)[0]; got.Grade != contract.Inconclusive || !strings.Contains(got.Reason, "never compared") {
		t.Errorf("another hardware class: %s: %s", got.Grade, got.Reason)
	}
}

// TestPolicy: thresholds are configurable, a confidence beyond the registered
// intervals decides nothing, and what could not work is refused at its place.
func TestPolicy(t *testing.T) {
	decode := func(text string) (Policy, error) {
		var p Policy
		err := config.Decode("suite.yaml", []byte(text), &p)
		return p, err
	}
	p, err := decode("at: r.db\ngates:\n  - {id: strict, need: rate(output_tokens) >= reference * 0.99, confidence: 99%}\n")
	if err != nil {
		t.Fatal(err)
	}
	base, cand := service{requests: 3000, typical: 100 * time.Millisecond, seed: 1}, service{requests: 3000, typical: 106 * time.Millisecond, seed: 2}
	if r := judged(t, base.run("a", chat), cand.run("b", chat), p); r.Grade != contract.Fail {
		t.Errorf("6 %% slower against a limit of 1 %%: %s: %s", r.Grade, r.Reason)
	}
	p.Gates[0].Confidence = 0.999
	if r := judged(t, base.run("a", chat), cand.run("b", chat), p); r.Grade != contract.Inconclusive || !strings.Contains(r.Reason, "registered at 99 %") {
		t.Errorf("at 99.9 %%: %s: %s", r.Grade, r.Reason)
	}
	for text, want := range map[string]string{
		"at: postgres://bob:s3cret@db/x":                               "at: holds a password",
		"at: host=db password=s3cret":                                  "at: is no address",
		"at: mysql://db/x":                                             "at: is no address",
		"at: r.db\ngates: [{id: a, need: p99(ttft) <= 1s}]":            "nothing registered",
		"at: r.db\ngates: [{id: a, need: p99(ttft) <= baseline + 1s}]": "nothing registered",
		"at: r.db\ngates: [{id: a, need: p99(ttft) <= reference}, {id: a, need: p99(ttft) <= reference}]": "stands twice",
		"at: r.db\ngates: [{id: a, need: p99(ttft) <= reference, confidence: 99.9%}]":                     "confidence",
		"at: r.db\nwindow: 5": "window",
	} {
		if _, err := decode(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}

// TestScreens: a run outside of the fence is told with the rate of false alarms; only
// a lasting and large change is a shift; the quarantined and the later are no history.
func TestScreens(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	var history []Snapshot
	for n := range 60 {
		history = append(history, made(chat, n, 1000*(1+0.01*rng.NormFloat64()), 500))
	}
	sick := made(chat, 60, 1, 9000)
	sick.Quarantine = "it proves nothing"
	later := made(chat, 900, 1, 9000)
	history = append(history, sick, later)
	find := func(ss []Screen) Screen {
		for _, s := range ss {
			if s.Quantity.Metric == "output_tokens" {
				return s
			}
		}
		t.Fatal("throughput is not screened")
		return Screen{}
	}
	usual := find(Screens(history, made(chat, 61, 1001, 500), Policy{}))
	if usual.Points != 60 || usual.Outside || usual.Shifted || usual.telling() {
		t.Errorf("an ordinary run: %+v", usual)
	}
	odd := find(Screens(history, made(chat, 61, 900, 500), Policy{}))
	if !odd.Outside || odd.Shifted || odd.Alarms < 0.005 || odd.Alarms > 0.03 || odd.Looked != 36 || !strings.Contains(odd.String(), "proves nothing") {
		t.Errorf("one odd run: %+v: %s", odd, odd)
	}
	for n := range 10 {
		history = append(history, made(chat, 61+n, 900*(1+0.01*rng.NormFloat64()), 500))
	}
	lasts := find(Screens(history, made(chat, 71, 900, 500), Policy{}))
	if !lasts.Shifted || *lasts.Effect > 0.95 || !strings.Contains(lasts.String(), "has shifted") {
		t.Errorf("after ten such runs: %+v: %s", lasts, lasts)
	}
	if small := find(Screens(history, made(chat, 71, 900, 500), Policy{Effect: 0.2})); small.Shifted {
		t.Errorf("a shift of 10 %% is told, though 20 %% are asked for: %s", small)
	}
	few := find(Screens(history[:10], made(chat, 71, 900, 500), Policy{}))
	if few.Outside || few.Lo != nil || !strings.Contains(few.Why, "it takes 24") {
		t.Errorf("with ten runs: %+v", few)
	}
}

func TestMajor(t *testing.T) {
	for in, want := range map[string]string{"vLLM 0.9.2": "vllm 0", "vllm": "vllm", "TensorRT-LLM v1.2": "tensorrt-llm 1", "sim": "sim", "": "", "my engine x": "my engine x"} {
		if got := Major(in); got != want {
			t.Errorf("Major(%q) = %q, want %q", in, got, want)
		}
	}
}

// checkedRun is a run that has a check, too, whose estimate and share are so.
func checkedRun(id string, estimate, right float64, sign record.Signature) Source {
	s := service{requests: 300, typical: 100 * time.Millisecond, seed: 1}.run(id, chat)
	sign.Value = "quality.corrected"
	c := contract.Checked{Name: "quality", Signatures: []record.Signature{sign}, Metrics: []record.Metric{
		{Name: "quality.corrected", Title: "corrected", Unit: record.Proportion, Higher: true, Check: "quality", Whole: true, Most: 1},
		record.Written(record.Metric{Name: "quality.right", Title: "right", Unit: record.Proportion, Higher: true, Indicator: true, Check: "quality", Most: 1}),
	}}
	e := record.Estimate{Value: "quality.corrected", Variant: "candidate", Number: &estimate, N: 300}
	for i, confidence := range record.Confidences() {
		lo, hi := estimate-0.004*float64(i), estimate+0.004*float64(i)
		e.Intervals = append(e.Intervals, record.Interval{Confidence: confidence, Lo: &lo, Hi: &hi})
	}
	c.Estimates = []record.Estimate{e}
	for i := range 300 {
		yes := 0.0
		if float64(i) < 300*right {
			yes = 1
		}
		s.Evidence.Records = append(s.Evidence.Records, record.Record{Shot: int64(i), Variant: "candidate", Workload: "quality", Case: id, Session: id + string(rune('a'+i)), Outcome: record.OK, Values: map[string]float64{"quality.right": yes}})
	}
	s.Evidence.Checks = []contract.Checked{c}
	return s
}

// What checks found is registered with how it came about, and a number of another
// signature is not held against it.
func TestChecksAreHeldAgainstARegisteredBaseline(t *testing.T) {
	p := Policy{Gates: []Gate{
		{ID: "corrected", Need: must("estimate(quality.corrected) >= reference - 5 points")},
		{ID: "right", Need: must("share(quality.right) >= reference - 10 points")},
	}}
	sign := record.Signature{Data: "d", Judge: "j", Estimator: "PPI++"}
	other := sign
	other.Judge = "k"
	broken := checkedRun("b", 0.8, 0.9, sign)
	broken.Evidence.Checks[0].Why = "its judge drifted"
	for name, tc := range map[string]struct {
		candidate Source
		want      contract.Grade
		reason    string
	}{
		"the same":      {checkedRun("b", 0.8, 0.9, sign), contract.Pass, "all 2 gates pass"},
		"worse":         {checkedRun("b", 0.6, 0.9, sign), contract.Fail, "corrected"},
		"less right":    {checkedRun("b", 0.8, 0.6, sign), contract.Fail, "right"},
		"another judge": {checkedRun("b", 0.8, 0.9, other), contract.Inconclusive, "who judges: k, and was j"},
		"broken":        {broken, contract.Inconclusive, "its judge drifted"},
	} {
		tc.candidate.Also = p.Quantities()
		base := checkedRun("a", 0.8, 0.9, sign)
		base.Also = p.Quantities()
		r := judged(t, base, tc.candidate, p)
		if r.Grade != tc.want || !strings.Contains(r.Reason, tc.reason) {
			t.Errorf("%s: %s: %s; want %s with %q", name, r.Grade, r.Reason, tc.want, tc.reason)
		}
	}
	for _, f := range take(t, checkedRun("a", 0.8, 0.9, sign)).Figures {
		if f.Workload == "chat" && strings.HasPrefix(f.Quantity.Metric, "quality") {
			t.Errorf("%s is registered of the workload chat", f.Quantity)
		}
	}
}

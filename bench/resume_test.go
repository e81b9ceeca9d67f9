package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/workload"
)

const resumableSuite = `
seed: 11
variants:
  baseline: {url: URL}
  candidate: {url: URL}
blocks: 2
workloads:
  open:
    arrivals: {poisson: 100/s}
    for: 1s
    prompts: {synthetic: 20}
    output: 12
    warmup: {requests: 3}
  closed:
    arrivals: {concurrency: 4, stagger: 10ms}
    requests: 40
    prompts: {synthetic: 20}
    output: 4
`

// killAt runs a suite until the engine has seen n requests, and returns a copy of the run
// directory as a kill at that moment leaves it, with a torn record at the end of the journal.
// (What the run still sends until it has stopped was on its way when it was killed.)
func killAt(t *testing.T, e *engine, n int, run func(ctx context.Context) (*Result, error), dir func() string) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	to := t.TempDir()
	var seen atomic.Int64
	e.onEach(func(int) {
		if seen.Add(1) != int64(n) {
			return
		}
		for _, name := range []string{"manifest.json", "records.journal", watchedName, "engine.jsonl"} {
			data, err := os.ReadFile(filepath.Join(dir(), name))
			if errors.Is(err, os.ErrNotExist) && name != "manifest.json" {
				continue
			}
			if name == "records.journal" {
				data = append(data, data[min(16, len(data)):min(16+rand.IntN(60), len(data))]...)
			}
			if err = errors.Join(err, os.WriteFile(filepath.Join(to, name), data, 0o644)); err != nil {
				t.Error(err)
			}
		}
		stop()
	})
	defer e.onEach(nil)
	if r, err := run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("not stopped at request %d: %v, %v", n, r != nil, err)
	}
	return to
}

// stoppable is a suite on a server of its own, whose requests the server sees.
func stoppable(t *testing.T) (*engine, *Suite) {
	t.Helper()
	e := newEngine(t, fast)
	return e, parseSuite(t, strings.ReplaceAll(resumableSuite, "URL", e.URL+"/v1"))
}

// goOn resumes a run by a suite.
func goOn(ctx context.Context, dir string, s *Suite) (*Result, error) {
	r, err := Resumable(dir)
	if err != nil {
		return nil, err
	}
	r.Suite = s
	return r.Resume(ctx, Options{})
}

// TestKilledRunGoesOn kills runs at points all over, resumes them, kills some again, and
// holds the union against the server's own account.
func TestKilledRunGoesOn(t *testing.T) {
	for _, kills := range [][]int{{2}, {40}, {90, 160}, {150}, {230, 1}, {200, 60}, {275}} {
		t.Run(fmt.Sprint(kills), func(t *testing.T) {
			t.Parallel()
			e, s := stoppable(t)
			watch := new(Watch)
			o := Options{Runs: t.TempDir(), Watch: watch}
			dir := killAt(t, e, kills[0], func(ctx context.Context) (*Result, error) { return Run(ctx, s, o) }, func() string {
				step, _ := watch.Step()
				return step.Dir
			})
			for _, n := range kills[1:] {
				at := dir
				dir = killAt(t, e, n, func(ctx context.Context) (*Result, error) { return goOn(ctx, at, s) }, func() string { return at })
			}
			open, err := Open(dir)
			if err != nil || open.Manifest.Client.Fit {
				t.Fatalf("a killed run: fit, or not to be opened: %v", err)
			}
			r, err := goOn(t.Context(), dir, s)
			if err != nil {
				t.Fatal(err)
			}
			if r.Manifest.State != StateDone || len(r.Manifest.Gaps) != len(kills) {
				t.Errorf("state %s, gaps %+v", r.Manifest.State, r.Manifest.Gaps)
			}
			checkUnion(t, r, e)
			checkGaps(t, r)
			checkLedgerOf(t, r)
			if _, err := goOn(t.Context(), dir, s); err == nil || !strings.Contains(err.Error(), "complete") {
				t.Errorf("a complete run: %v", err)
			}
		})
	}
}

// checkGaps wants windows that leave the gaps and the warm-ups behind them out, and a
// warm-up behind each gap.
func checkGaps(t *testing.T, r *Result) {
	t.Helper()
	for _, g := range r.Manifest.Gaps {
		if g.To <= g.From || !g.Killed {
			t.Errorf("gap %+v", g)
		}
		warm, measured := record.Instant(0), record.Instant(0)
		for i := range r.Records {
			rec := &r.Records[i]
			switch {
			case rec.Due < g.To:
			case rec.Phase == record.WarmUp && warm == 0:
				warm = rec.Due
			case rec.Phase == record.Measured && measured == 0:
				measured = rec.Due
			}
			if rec.Due < g.To && rec.EOF >= g.To {
				t.Errorf("the answer of shot %d spans the gap", rec.Shot)
			}
		}
		for _, w := range r.Manifest.Windows {
			if w.Start < g.To && w.End > g.From {
				t.Errorf("window %+v reaches into the gap %+v", w, g)
			}
			if w.Start >= g.To && w.Workload == "open" && warm > w.Start {
				t.Errorf("window %+v begins before the warm-up at %d", w, warm)
			}
		}
	}
	for i, w := range r.Manifest.Windows {
		if !w.End.Set() || w.End < w.Start {
			t.Errorf("window %d is %+v", i, w)
		}
	}
}

// checkLedgerOf wants the ledger to be that of the records, on reading them again too.
func checkLedgerOf(t *testing.T, r *Result) {
	t.Helper()
	again, err := Open(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, why := range again.unfit() {
		if strings.Contains(why, "accounts for") || strings.Contains(why, "watched") || strings.Contains(why, "torn") {
			t.Error(why)
		}
	}
}

// checkUnion holds the records against the plan and against the server's own ledger:
// every planned request once, sent once, or marked where it was sent again.
func checkUnion(t *testing.T, r *Result, e *engine) {
	t.Helper()
	type key struct {
		place
		shot int64
	}
	got := make(map[key]*record.Record)
	for i := range r.Records {
		rec := &r.Records[i]
		if rec.Phase != record.Measured {
			continue
		}
		k := key{place{rec.Variant, rec.Workload}, rec.Shot}
		if got[k] != nil {
			t.Errorf("%v is there twice", k)
		}
		got[k] = rec
	}
	served := make(map[string]int)
	for _, entry := range e.sim.Ledger() {
		served[entry.ID]++
	}
	s := parseSuiteOf(t, r.Manifest)
	prompts := e.prompts()
	planned, again := 0, 0
	for i, v := range r.Manifest.Variants {
		for name, spec := range s.Workloads.All() {
			p, err := workload.New(name, spec, nil, r.Manifest.Seed, saltOf(r.Manifest.Salt, i))
			if err != nil {
				t.Fatal(err)
			}
			for shot := range p.All() {
				planned++
				rec := got[key{place{v.Name, name}, shot.Index}]
				if rec == nil {
					t.Errorf("%s %s: shot %d has no record", v.Name, name, shot.Index)
					continue
				}
				if sent := prompts[llm.RequestID(rec)]; sent != shot.Messages[0].Content {
					t.Errorf("%s %s: shot %d asked %q, the plan has %q", v.Name, name, shot.Index, sent, shot.Messages[0].Content)
				}
				n := served[llm.RequestID(rec)]
				marked := rec.Flags&record.FlagReissued != 0
				if marked {
					again++
				}
				// A first try that was cut after longer than its repetition took is the one that counts.
				outlasted := rec.Outcome == record.TotalTimeout && strings.Contains(rec.Detail, "sent again")
				if n < 1 || n > 1 && !marked && !outlasted {
					t.Errorf("%s %s: shot %d was served %d times, marked %v", v.Name, name, shot.Index, n, marked)
				}
			}
		}
	}
	if planned != len(got) {
		t.Errorf("%d measured records of %d planned requests", len(got), planned)
	}
	t.Logf("%d planned, %d marked as sent again", planned, again)
}

func parseSuiteOf(t *testing.T, m *record.Manifest) *Suite {
	t.Helper()
	s, err := Parse("x", []byte(m.Suite), "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestInterruptedRunGoesOn interrupts a run in its drain, so that some answers are cut,
// and goes on with its sealed records, by the suite in its manifest.
func TestInterruptedRunGoesOn(t *testing.T) {
	e := newEngine(t, fast)
	s := parseSuite(t, strings.ReplaceAll(`
variants:
  candidate: {url: URL}
workloads:
  open:
    arrivals: {constant: 100/s}
    for: 1s
    drain: 1ms
    prompts: {synthetic: 20}
    output: 60
`, "URL", e.URL+"/v1"))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	e.onEach(func(n int) {
		if n == 50 {
			stop()
		}
	})
	first, err := Run(ctx, s, Options{Runs: t.TempDir()})
	if !errors.Is(err, context.Canceled) || first == nil || first.Manifest.State != StateInterrupted {
		t.Fatalf("not interrupted: %v", err)
	}
	e.onEach(nil)
	cut := 0
	for i := range first.Records {
		if first.Records[i].Outcome == record.Interrupted {
			cut++
		}
	}
	if cut == 0 {
		t.Error("nothing was cut, so that nothing is proven")
	}
	stopped, err := Resumable(first.Dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := stopped.Resume(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkUnion(t, r, e)
	checkLedgerOf(t, r)
	for i := range r.Records {
		if rec := &r.Records[i]; rec.Outcome == record.Interrupted {
			t.Errorf("shot %d is still interrupted", rec.Shot)
		}
	}
	if g := r.Manifest.Gaps; len(g) != 1 || g[0].Killed {
		t.Errorf("gaps %+v", g)
	}
	if n := len(r.Manifest.Engines); n != 1 || r.Manifest.Engines[0].Windows != 2 {
		t.Errorf("the engine's account is %+v, want one of two windows", r.Manifest.Engines)
	}
}

// TestResumeRefusesWhatHasChanged names each thing that does not fit.
func TestResumeRefusesWhatHasChanged(t *testing.T) {
	const suite = `
variants: {candidate: {url: "http://127.0.0.1:9/v1", model: m}}
workloads: {w: {arrivals: {constant: 1/s}, for: 1s, prompts: {synthetic: 5}, output: 1}}
contract: {clauses: [{need: p50(ttft) <= 1s}]}
`
	for _, tt := range []struct {
		name, old, new string // of the suite
		change         func(m *record.Manifest)
		want           string
	}{
		{"url", "127.0.0.1:9", "127.0.0.1:10", nil, "the target has changed: url of candidate was http://127.0.0.1:9/v1 and is http://127.0.0.1:10/v1"},
		{"model", "model: m", "model: o", nil, "the target has changed: model of candidate was m and is o"},
		{"key", "model: m", "model: m, timeout: 9s", nil, "the suite has changed: variant candidate"},
		{"contract", "<= 1s", "<= 2s", nil, "the contract has changed"},
		{"workload", "output: 1", "output: 2", nil, "the suite has changed: workload w"},
		{"plan", "", "", func(m *record.Manifest) { m.Workloads[0].Plan = "other" }, "the plan of workload w has changed"},
		{"done", "", "", func(m *record.Manifest) { m.State = StateDone }, "the run is complete"},
		{"imported", "", "", func(m *record.Manifest) { m.State = StateImported }, "imported from the file of another tool"},
		{"state", "", "", func(m *record.Manifest) { m.State = "odd" }, "a state that this program does not know"},
		{"format", "", "", func(m *record.Manifest) { m.Schema = "assay.manifest/9" }, "the format of another version of assay"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := parseSuite(t, suite)
			r := newRun(s, Options{Runs: t.TempDir(), Seed: ptr(uint64(5))})
			if err := errors.Join(r.prepare(), r.open(), r.writer.Close()); err != nil {
				t.Fatal(err)
			}
			if tt.change != nil {
				tt.change(r.manifest)
				if err := r.checkpoint(); err != nil {
					t.Fatal(err)
				}
			}
			_, err := goOn(t.Context(), r.dir, parseSuite(t, strings.Replace(suite, tt.old, tt.new, 1)))
			var refused *ResumeError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "hint: ") {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
	t.Run("held", func(t *testing.T) {
		s := parseSuite(t, suite)
		r := newRun(s, Options{Runs: t.TempDir()})
		if err := errors.Join(r.prepare(), r.open()); err != nil {
			t.Fatal(err)
		}
		defer r.writer.Close()
		if _, err := goOn(t.Context(), r.dir, s); err == nil || !strings.Contains(err.Error(), "another process is at work on it") {
			t.Errorf("%v, want that another process is at work", err)
		}
	})
	t.Run("unknown block", func(t *testing.T) {
		s := parseSuite(t, suite)
		r := newRun(s, Options{Runs: t.TempDir()})
		if err := errors.Join(r.prepare(), r.open()); err != nil {
			t.Fatal(err)
		}
		measured := &record.Record{Variant: "candidate", Workload: "w", Outcome: record.OK}
		if err := errors.Join(r.writer.Append(measured), r.writer.Close()); err != nil {
			t.Fatal(err)
		}
		var refused *ResumeError
		if _, err := goOn(t.Context(), r.dir, s); !errors.As(err, &refused) || !strings.Contains(err.Error(), "records of a block that its manifest does not know") {
			t.Errorf("%v, want that a block is not known", err)
		}
	})
	t.Run("overtaken", func(t *testing.T) {
		s := parseSuite(t, suite)
		r := newRun(s, Options{Runs: t.TempDir()})
		if err := errors.Join(r.prepare(), r.open(), r.writer.Close()); err != nil {
			t.Fatal(err)
		}
		stopped, err := Resumable(r.dir)
		if err != nil {
			t.Fatal(err)
		}
		r.manifest.State = StateDone // by another process
		if err := r.checkpoint(); err != nil {
			t.Fatal(err)
		}
		stopped.Suite = s
		var refused *ResumeError
		if _, err := stopped.Resume(t.Context(), Options{}); !errors.As(err, &refused) || !strings.Contains(err.Error(), "another process has gone on with it") {
			t.Errorf("%v, want that another process went on", err)
		}
	})
	if _, err := Resumable(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no manifest.json in it") {
		t.Errorf("an empty folder: %v", err)
	}
}

// TestAResumedRunIsJudgedAsOneThatWasNotStopped stops a run at the half (ASSAY_SLOW: at a
// tenth and at nine tenths, too), by a kill and by an interruption, in virtual time: each grade is
// that of a run that went on in one piece, and its rate is about the same.
func TestAResumedRunIsJudgedAsOneThatWasNotStopped(t *testing.T) {
	const length = 60 * time.Second
	suite := `
seed: 4
variants:
  baseline: {url: "http://sim/v1", metrics: off}
  candidate: {url: "http://sim/v1", metrics: off}
workloads:
  w:
    arrivals: {poisson: 12/s}
    for: 60s
    prompts: {synthetic: 20}
    output: 10
    warmup: {requests: 5}
contract:
  clauses:
    - {id: passes, need: p90(ttft) <= 100ms}
    - {id: fails, need: p50(ttft) <= 1ms}
    - {id: rate, need: rate(output_tokens) >= 80/s}
    - {id: against, need: mean(tpot) <= baseline * 1.05}
`
	grades := func(r *Result) (all []string, rate float64) {
		for _, c := range r.Verdict.Clauses {
			all = append(all, c.ID+" "+c.Grade.String())
			if c.ID == "rate" {
				rate = c.Candidate.Value
			}
		}
		return all, rate
	}
	once := func(t *testing.T, at time.Duration, kill bool) (r *Result) {
		synctest.Test(t, func(t *testing.T) {
			o := bubble(t, "{step: 5ms, jitter: 20%, prefix_cache: false}")
			s := parseSuite(t, suite)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			dir := ""
			if at > 0 {
				o.Watch = new(Watch)
				time.AfterFunc(at, func() {
					step, _ := o.Watch.Step()
					if dir = step.Dir; kill {
						dir = t.TempDir()
						for _, name := range []string{"manifest.json", "records.journal", watchedName} {
							data, err := os.ReadFile(filepath.Join(step.Dir, name))
							if err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), data, 0o644)); err != nil {
								t.Error(err)
							}
						}
					}
					stop()
				})
			}
			var err error
			r, err = Run(ctx, s, o)
			if at == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			time.Sleep(time.Hour) // in a bubble
			stopped, err := Resumable(dir)
			if err != nil {
				t.Fatal(err)
			}
			stopped.Suite, o.Watch = s, nil
			if r, err = stopped.Resume(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		})
		return r
	}
	want, rate := grades(once(t, 0, false))
	if fmt.Sprint(want) != "[passes pass fails fail rate pass against pass]" {
		t.Fatalf("the run in one piece: %v", want)
	}
	parts := []int{50}
	if os.Getenv("ASSAY_SLOW") != "" {
		parts = []int{10, 50, 90}
	}
	for _, part := range parts {
		for _, kill := range []bool{true, false} {
			r := once(t, 2*length*time.Duration(part)/100, kill)
			got, resumed := grades(r)
			if fmt.Sprint(got) != fmt.Sprint(want) || resumed < .9*rate || resumed > 1.1*rate {
				t.Errorf("stopped at %d %% (killed %v): %v at %.1f tokens/s, in one piece %v at %.1f (%s)", part, kill, got, resumed, want, rate, r.Verdict.Reason)
			}
			if measured := r.Manifest.Ledger; len(measured) != 4 || measured[0].Offered+measured[2].Offered < 1000 {
				t.Errorf("ledger %+v", measured)
			}
			if len(r.Report.Notes) == 0 || !strings.Contains(r.Report.Notes[0], "and resumed 1h0m") {
				t.Errorf("notes %q do not begin with the gap", r.Report.Notes)
			}
			t.Logf("stopped at %d %% (killed %v): %.1f tokens/s, in one piece %.1f; %.150s", part, kill, resumed, rate, r.Report.Notes[0])
		}
	}
}

// TestDamagedHealthIsNoHealth: seconds of the client that cannot be read may be those
// in which it was unfit.
func TestDamagedHealthIsNoHealth(t *testing.T) {
	const good, torn = `{"second":0}` + "\n" + `{"second":2}` + "\n", `{"second":3`
	for _, tt := range []struct {
		text string
		fit  bool
	}{
		{good, true},
		{good + torn, true}, // a kill tears the last line, and time tells what it missed
		{`{"second":0}` + "\n" + `{"second":1,"cpu` + "\x00\n" + `{"second":2}` + "\n", false},
		{`{"second":-1}` + "\n" + good, false},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, watchedName), []byte(tt.text), 0o644); err != nil {
			t.Fatal(err)
		}
		var p past
		var err error
		if p.seconds, p.damaged, err = readWatched(dir); err != nil {
			t.Fatal(err)
		}
		p.signs(&record.Manifest{State: StateRunning})
		p.killed = true
		if why := p.unwatched(); (why == "") != tt.fit || len(p.seconds) != 2 {
			t.Errorf("%q: unfit because %q, %d seconds; want fit: %t", tt.text, why, len(p.seconds), tt.fit)
		}
	}
}

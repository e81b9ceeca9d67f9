package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
)

// earlySuite is a suite that may stop early, on two engines.
func earlySuite(t *testing.T, clauses, more string) *Suite {
	t.Helper()
	return parseSuite(t, fmt.Sprintf(`
seed: 4
stop: early
variants:
  baseline: {url: "http://sim/v1", metrics: off, price: {input: 1, output: 4}}
  candidate: {url: "http://sim2/v1", metrics: off, price: {input: 1, output: 4}}
workloads:
  w: {arrivals: {poisson: 20/s}, for: 60s, prompts: {synthetic: 20}, output: 10, warmup: {requests: 5}%s
contract:
  clauses:
%s
`, more, clauses))
}

// Engines with noise: the second is slower by a quarter.
const (
	noisy  = "{step: 5ms, jitter: 20%, prefix_cache: false}"
	slower = "{step: 6250us, jitter: 20%, prefix_cache: false, seed: 9}"
)

// stops says which workloads stopped after how many blocks.
func stops(m *record.Manifest) string {
	var all []string
	for _, s := range m.Stops {
		all = append(all, fmt.Sprintf("%s %d/%d", s.Workload, s.Blocks, s.Planned))
	}
	return strings.Join(all, ", ")
}

// TestRunsStopEarly runs suites in virtual time that are decided before their end, and
// such that are not.
func TestRunsStopEarly(t *testing.T) {
	const tpot = "    - {id: tpot, need: mean(tpot) <= baseline * 1.1}\n"
	second := "}\n  x: {arrivals: {poisson: 20/s}, for: 60s, prompts: {synthetic: 20}, output: 10"
	for _, tt := range []struct {
		name, candidate, clauses, more string
		grade                          contract.Grade
		stops                          string
	}{
		{"a slow one fails", slower, tpot, "}", contract.Fail, "w 2/12"},
		{"an equal one passes", noisy, tpot, "}", contract.Pass, "w 2/12"},
		{"a fail ends all workloads", slower, tpot, second + "}", contract.Fail, "w 2/12, x 0/12"},
		{"a pass ends one workload at a time", noisy, tpot, second + "}", contract.Pass, "w 2/12, x 2/12"},
		{"a fail at the last look ends the other workload", slower, tpot, second + "}", contract.Fail, "x 0/2"},
		{"one clause is left", noisy, tpot + "    - {id: all, need: max(ttft) <= 1s, min: 100}\n", "}", contract.Pass, ""},
		{"one clause is left, but another fails", slower, tpot + "    - {id: all, need: max(ttft) <= 1s, min: 100}\n", "}", contract.Fail, "w 2/12"},
		{"a workload without a clause goes on", noisy, "    - {id: tpot, need: mean(tpot) <= baseline * 1.1, on: x}\n", second + "}", contract.Pass, "x 2/12"},
		{"too few", noisy, "    - {id: tail, need: p99.9(ttft) <= 1s}\n", "}", contract.Inconclusive, ""},
		{"a client that holds requests back proves nothing", noisy, tpot, ", cap: 1}", contract.Inconclusive, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := bubble(t, noisy, tt.candidate)
				notices := ""
				o.Notice = func(format string, a ...any) { notices += fmt.Sprintf(format, a...) + "\n" }
				s := earlySuite(t, tt.clauses, tt.more)
				blocks := 12
				if tt.stops == "x 0/2" { // one look at each workload
					s.Blocks, blocks = 2, 2
				}
				r, err := Run(t.Context(), s, o)
				if err != nil {
					t.Fatal(err)
				}
				if r.Verdict.Grade != tt.grade || stops(r.Manifest) != tt.stops || r.Manifest.State != StateDone {
					t.Errorf("%s (%s), stopped %q, %s; want %s, %q", r.Verdict.Grade, r.Verdict.Reason, stops(r.Manifest), r.Manifest.State, tt.grade, tt.stops)
				}
				if late := strings.Contains(notices, "before its end nothing can pass all"); late != strings.Contains(tt.clauses, "max") {
					t.Errorf("notices: %s", notices)
				}
				for _, s := range r.Manifest.Stops {
					if s.Look > 0 && !strings.Contains(notices, s.Workload+" stops early") {
						t.Errorf("%s stopped without a word: %s", s.Workload, notices)
					}
					sent := int64(0)
					for _, row := range r.Manifest.Ledger {
						if row.Workload == s.Workload && row.Phase == record.Measured.String() && row.Variant == Baseline {
							sent += row.Offered
						}
					}
					if s.Requests != sent || s.Unsent != 2*(planOf(r.Manifest, s.Workload)-sent) || s.Saved != time.Duration(blocks-s.Blocks)*120*time.Second/time.Duration(blocks) {
						t.Errorf("%+v; %d were sent", s, sent)
					}
				}
				if c := r.Verdict.Clauses[0]; c.Shortfall > 0 && (c.Cost == nil || c.Cost.Time < time.Second || c.Cost.Money == nil || !(*c.Cost.Money > 0)) {
					t.Errorf("%d requests are missing, for %+v", c.Shortfall, c.Cost)
				}
				if tt.name == "too few" && r.Verdict.Clauses[0].Shortfall == 0 {
					t.Error("nobody says how many requests are missing")
				}
				checkSameWhenOpened(t, r)
			})
		})
	}
}

func planOf(m *record.Manifest, workload string) int64 {
	for _, w := range m.Workloads {
		if w.Name == workload {
			return w.Planned
		}
	}
	return -1
}

// TestAResumedRunStopsAsOneThatWasNotKilled kills runs that stop early before they do,
// and at the moment when they do: they stop where one in one piece does.
func TestAResumedRunStopsAsOneThatWasNotKilled(t *testing.T) {
	suite := func(t *testing.T) *Suite {
		return earlySuite(t, "    - {id: tpot, need: mean(tpot) <= baseline * 1.1}\n", "}")
	}
	once := func(t *testing.T, at time.Duration) (r *Result) {
		synctest.Test(t, func(t *testing.T) {
			o := bubble(t, noisy, slower)
			s := suite(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			dir := t.TempDir()
			if at > 0 {
				o.Watch = new(Watch)
				time.AfterFunc(at, func() {
					step, _ := o.Watch.Step()
					for _, name := range []string{"manifest.json", "records.journal", watchedName} {
						data, err := os.ReadFile(filepath.Join(step.Dir, name))
						if err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), data, 0o644)); err != nil {
							t.Error(err)
						}
					}
					stop()
				})
			}
			var err error
			if r, err = Run(ctx, s, o); at == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			time.Sleep(time.Hour) // in a bubble
			stopped, err := Resumable(dir)
			if err != nil {
				t.Fatal(err)
			}
			plain := *s
			plain.Stop = "" // a flag has set it
			stopped.Suite, o.Watch = &plain, nil
			if r, err = stopped.Resume(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		})
		return r
	}
	whole := once(t, 0)
	if whole.Verdict.Grade != contract.Fail || len(whole.Manifest.Stops) == 0 {
		t.Fatalf("in one piece: %s, stopped %q: %s", whole.Verdict.Grade, stops(whole.Manifest), whole.Verdict.Reason)
	}
	end := whole.Manifest.Elapsed
	for _, at := range []time.Duration{end / 3, 2 * end / 3, end - time.Second} {
		r := once(t, at)
		if diff := cmp.Diff(stops(whole.Manifest), stops(r.Manifest)); diff != "" || r.Verdict.Grade != whole.Verdict.Grade {
			t.Errorf("stopped at %v of %v: %s, stopped %q, in one piece %s, %q (%s)", at, end, r.Verdict.Grade, stops(r.Manifest), whole.Verdict.Grade, stops(whole.Manifest), r.Verdict.Reason)
		}
	}
}

// TestAStopIsKept resumes a run that had written down that it stops, but not that it is
// over: nothing more is sent.
func TestAStopIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := bubble(t, noisy, slower)
		s := earlySuite(t, "    - {id: tpot, need: mean(tpot) <= baseline * 1.1}\n", "}")
		r, err := Run(t.Context(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		m := *r.Manifest
		m.State = StateInterrupted
		if err := record.WriteManifest(record.OS(), r.Dir, &m); err != nil {
			t.Fatal(err)
		}
		if open, err := Open(r.Dir); err != nil || open.Verdict.Grade != contract.Inconclusive {
			t.Errorf("an interrupted run: %v, %v", open.Verdict.Grade, err)
		}
		stopped, err := Resumable(r.Dir)
		if err != nil {
			t.Fatal(err)
		}
		stopped.Suite = s
		again, err := stopped.Resume(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if again.Verdict.Grade != contract.Fail || len(again.Records) != len(r.Records) || stops(again.Manifest) != stops(&m) {
			t.Errorf("%s, %d records, stopped %q; before %d records, %q (%s)", again.Verdict.Grade, len(again.Records), stops(again.Manifest), len(r.Records), stops(&m), again.Verdict.Reason)
		}
	})
}

// TestRunsThatStopErrAsSeldomAsTheySay runs whole suites in virtual time whose candidate is
// exactly at the margin of a clause on its speed: a tenth slower in every step.
func TestRunsThatStopErrAsSeldomAsTheySay(t *testing.T) {
	if os.Getenv("ASSAY_SLOW") == "" {
		t.Skip("takes 20 s: set ASSAY_SLOW=1")
	}
	const runs = 60
	grades := make(map[contract.Grade]int)
	early := 0
	for seed := range uint64(runs) {
		synctest.Test(t, func(t *testing.T) {
			o := bubble(t, fmt.Sprintf("{step: 5ms, jitter: 20%%, prefix_cache: false, seed: %d}", 2*seed+1), fmt.Sprintf("{step: 5500us, jitter: 20%%, prefix_cache: false, seed: %d}", 2*seed+2))
			o.Seed = &seed
			r, err := Run(t.Context(), earlySuite(t, "    - {id: tpot, need: mean(tpot) <= baseline * 1.1}\n", "}"), o)
			if err != nil {
				t.Fatal(err)
			}
			grades[r.Verdict.Grade]++
			early += len(r.Manifest.Stops)
		})
	}
	t.Logf("of %d runs exactly at the margin %d pass and %d fail; %d stopped early", runs, grades[contract.Pass], grades[contract.Fail], early)
	const most = 8 // 5 % of 60 and three standard deviations
	if grades[contract.Pass] > most || grades[contract.Fail] > most || grades[contract.Inconclusive] == 0 {
		t.Errorf("%v, want at most %d of either", grades, most)
	}
}

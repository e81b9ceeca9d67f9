package bench

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-llm/assay/baseline"
	"github.com/assay-llm/assay/contract"
)

// registrySuite keeps one user busy, so that throughput follows from the engine.
const registrySuite = `
seed: 4
variants:
  candidate: {url: "http://sim/v1", model: m, metrics: off, about: {precision: fp8, engine: sim 1.2, hardware: HARDWARE}}
workloads:
  chat: {arrivals: {concurrency: 1}, requests: 400, prompts: {synthetic: 20}, output: 10}
registry: {at: "AT"}
`

// registered runs the suite in virtual time against an engine of that speed.
// REGISTRY in its environment is the address where.
func registered(t *testing.T, at, where, engine string, change ...string) *Result {
	t.Helper()
	var r *Result
	runs := filepath.Join(t.TempDir(), "runs")
	synctest.Test(t, func(t *testing.T) {
		o := bubble(t, engine)
		o.Runs = runs
		o.Getenv = func(name string) string { return map[string]string{"USER": "ada", "REGISTRY": where}[name] }
		text := strings.NewReplacer(change...).Replace(registrySuite)
		s := parseSuite(t, strings.NewReplacer("AT", at, "HARDWARE", "h100 x1").Replace(text))
		var err error
		if r, err = Run(t.Context(), s, o); err != nil {
			t.Fatal(err)
		}
		checkSameWhenOpened(t, r)
	})
	return r
}

func promote(t *testing.T, at string, r *Result) {
	t.Helper()
	address, err := baseline.Locate(at, nil)
	if err != nil {
		t.Fatal(err)
	}
	reg, err := baseline.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer reg.Close()
	if _, _, err := reg.Promote(t.Context(), r.delta.Snapshot, baseline.Change{Who: "ada", At: time.Now(), Reason: "release"}); err != nil {
		t.Fatal(err)
	}
}

// TestRunsAreHeldAgainstTheRegistry: without a baseline a run is inconclusive; then an
// equal one passes, a slower one fails and is quarantined, and one of other hardware
// is compared with nothing.
func TestRunsAreHeldAgainstTheRegistry(t *testing.T) {
	at := filepath.Join(t.TempDir(), "runs", "baselines.db")
	const engine = "{step: 5ms, jitter: 20%, prefix_cache: false}"
	first := registered(t, at, at, engine)
	if first.Verdict.Grade != contract.Inconclusive || !strings.Contains(first.Verdict.Reason, "no active baseline") || !first.Judged() {
		t.Errorf("without a baseline: %s: %s", first.Verdict.Grade, first.Verdict.Reason)
	}
	promote(t, at, first)
	equal := registered(t, at, at, strings.Replace(engine, "}", ", seed: 3}", 1))
	if equal.Verdict.Grade != contract.Pass || !strings.Contains(equal.Verdict.Reason, "against the baseline and anchor "+first.delta.Snapshot) {
		t.Errorf("an equal run: %s: %s", equal.Verdict.Grade, equal.Verdict.Reason)
	}
	slow := registered(t, at, at, strings.Replace(engine, "5ms", "6500us", 1))
	if slow.Verdict.Grade != contract.Fail || !strings.Contains(slow.Verdict.Reason, "throughput") {
		t.Errorf("a slower run: %s: %s", slow.Verdict.Grade, slow.Verdict.Reason)
	}
	if s, err := slow.Snapshot("", About{}); err != nil || !strings.HasPrefix(s.Quarantine, "it failed: against the baseline") {
		t.Errorf("a slower run is quarantined as %q, %v", s.Quarantine, err)
	}
	marked := registered(t, at, at, engine, `at: "AT"`, `at: "AT", gates: [{id: p50, need: p50(e2e) <= reference - 20ms, mark: high-risk}]`)
	if marked.Verdict.Grade != contract.Pass || len(marked.Report.Alerts) == 0 || !strings.HasPrefix(marked.Report.Alerts[0], "THE CANDIDATE IS MARKED HIGH-RISK") {
		t.Errorf("a marked run: %s: %s, alerts %q", marked.Verdict.Grade, marked.Verdict.Reason, marked.Report.Alerts)
	}
	other := registered(t, at, at, engine, "HARDWARE", "l40s x1")
	if other.Verdict.Grade != contract.Inconclusive || !strings.Contains(other.Verdict.Reason, "l40s x1") {
		t.Errorf("on other hardware: %s: %s", other.Verdict.Grade, other.Verdict.Reason)
	}
	unknown := registered(t, at, at, engine, ", hardware: HARDWARE", "")
	if unknown.Verdict.Grade != contract.Inconclusive || !strings.Contains(unknown.Verdict.Reason, "the hardware class is not known") {
		t.Errorf("on unknown hardware: %s: %s", unknown.Verdict.Grade, unknown.Verdict.Reason)
	}
	// The contract and the baseline are one verdict; the worst counts.
	both := registered(t, at, at, engine, "registry:", "contract: {clauses: [{id: fast, need: p50(e2e) <= 1ms}]}\nregistry:")
	if both.Verdict.Grade != contract.Fail || len(both.Verdict.Clauses) != 2 {
		t.Errorf("with a contract: %s: %s", both.Verdict.Grade, both.Verdict.Reason)
	}
	if s, err := both.Snapshot("", About{}); err != nil || !strings.HasPrefix(s.Quarantine, "its verdict is fail") {
		t.Errorf("a run that failed its contract is quarantined as %q, %v", s.Quarantine, err)
	}

	// By reference, and with another seed: the same key.
	again := registered(t, "env:REGISTRY", at, engine, "seed: 4", "seed: 5")
	if again.delta.Registry != "env:REGISTRY" || again.Verdict.Grade != contract.Pass {
		t.Errorf("by reference: %q, %s: %s", again.delta.Registry, again.Verdict.Grade, again.Verdict.Reason)
	}
}

// TestTheRegistryIsOpenedBeforeAnythingIsSent: a wrong address, or a file that is none,
// ends the run before it begins; one that breaks meanwhile leaves it inconclusive.
func TestTheRegistryIsOpenedBeforeAnythingIsSent(t *testing.T) {
	text := filepath.Join(t.TempDir(), "notes.db")
	if err := os.WriteFile(text, []byte("not a database, but rather a text of more than a hundred bytes, so that it is read as one: .........\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{text: "not a database", "postgres://u:s3cret@[::1/x": "not a URL", "env:NONE": "NONE is not set"} {
		o := Options{Runs: filepath.Join(t.TempDir(), "runs"), Registry: at}
		s := parseSuite(t, strings.NewReplacer("AT", "x.db", "http://sim/v1", "http://127.0.0.1:1/v1", "HARDWARE", "x").Replace(registrySuite))
		_, err := Run(t.Context(), s, o)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v; want %q", at, err, want)
		}
		if _, err := os.Stat(o.Runs); err == nil {
			t.Errorf("%s: a run was begun", at)
		}
	}

	at := filepath.Join(t.TempDir(), "baselines.db")
	first := registered(t, at, at, "{step: 5ms}")
	if err := os.WriteFile(at, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &run{suite: &Suite{Registry: first.policy}, opts: Options{}}
	if err := r.located(); err != nil {
		t.Fatal(err)
	}
	r.register(context.Background(), first)
	first.judge()
	if first.Verdict.Grade != contract.Inconclusive || !strings.Contains(first.Verdict.Reason, at) {
		t.Errorf("a registry that broke: %s: %s", first.Verdict.Grade, first.Verdict.Reason)
	}
}

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/report"
	"github.com/assay-llm/assay/sim"
)

// engine is a simulated engine behind a handler that sees every request first.
type engine struct {
	*httptest.Server
	sim  *sim.Server
	mu   sync.Mutex
	seen map[string]string // prompt by request id
	keys map[string]bool   // values of the header X-API-Key
	each func(n int)       // called with the number of each request, from 1; may be nil
}

func newEngine(t *testing.T, c sim.Config) *engine {
	t.Helper()
	s, err := sim.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{sim: s, seen: make(map[string]string), keys: make(map[string]bool)}
	e.Server = httptest.NewServer(e)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		e.CloseClientConnections()
		e.Close()
		stop()
		<-done
	})
	return e
}

// ServeHTTP notes what was asked and lets the simulated engine answer.
func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		var q struct {
			Messages []struct{ Content string }
		}
		_ = json.Unmarshal(body, &q)
		e.mu.Lock()
		if len(q.Messages) > 0 {
			e.seen[r.Header.Get("X-Request-Id")] = q.Messages[0].Content
		}
		e.keys[r.Header.Get("X-API-Key")] = true
		n, each := len(e.seen), e.each
		e.mu.Unlock()
		if each != nil {
			each(n)
		}
	}
	e.sim.ServeHTTP(w, r)
}

func (e *engine) prompts() map[string]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.seen)
}

func (e *engine) onEach(each func(n int)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.each = each
}

func parseSuite(t *testing.T, text string) *Suite {
	t.Helper()
	s, err := Parse("suite.yaml", []byte("version: 1\nname: x\n"+text), "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ptr[T any](v T) *T { return &v }

// fast is a simulated engine with steps of 1 ms.
var fast = sim.Config{Step: sim.Step{Base: config.Duration(time.Millisecond)}}

const twoWorkloads = `
seed: 7
variants:
  baseline: {sim: {step: 2ms}}
  candidate: {sim: {step: 2ms, tpot: +100%, seed: 1}}
workloads:
  open:
    arrivals: {poisson: 60/s}
    for: 1s
    prompts: {synthetic: 20}
    output: 8
    warmup: {requests: 4}
  closed:
    arrivals: {concurrency: 3, stagger: 10ms}
    requests: 25
    prompts: {synthetic: 20}
    output: 4
    labels: {tier: gold}
contract:
  clauses:
    - {id: slower, need: mean(tpot) <= baseline * 1.05, on: open}
    - {id: quick, need: median(ttft) <= 5s, on: closed}
`

// TestRunFromSuiteToVerdict follows a run through its directory.
func TestRunFromSuiteToVerdict(t *testing.T) {
	s := parseSuite(t, twoWorkloads)
	watch := new(Watch)
	r, err := Run(t.Context(), s, Options{Runs: t.TempDir(), Watch: watch})
	if err != nil {
		t.Fatal(err)
	}
	m := r.Manifest
	if m.State != StateDone || m.Seed != 7 || filepath.Base(r.Dir) != m.ID {
		t.Errorf("state %q, seed %d, id %q in %s", m.State, m.Seed, m.ID, r.Dir)
	}
	for _, name := range []string{"manifest.json", "records.parquet", "verdict.json", "report.json", "report.html"} {
		if info, err := os.Stat(filepath.Join(r.Dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(r.Dir, "records.journal")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the journal is still there: %v", err)
	}
	if step, ok := watch.Step(); !ok || step.Block != 8 || step.Blocks != 8 || step.Dir != r.Dir {
		t.Errorf("last step %+v, want block 8 of 8", step)
	}
	checkWindows(t, m.Windows, []string{"open", "closed"}, 4)
	checkLedger(t, r, 1)
	checkSameWhenOpened(t, r)

	if r.Verdict.Grade == contract.Pass {
		t.Errorf("an engine that takes twice as long passes: %s", r.Verdict.Reason)
	}
	if !m.Client.Fit {
		t.Logf("the client was not fit on this machine: %v", m.Client.Reasons)
	} else if c := r.Verdict.Clauses; c[0].Grade != contract.Fail || c[1].Grade != contract.Pass {
		t.Errorf("clauses %s (%s) and %s (%s), want fail and pass", c[0].Grade, c[0].Reason, c[1].Grade, c[1].Reason)
	}
}

// checkWindows wants the variants to take turns, A B B A, one at a time.
func checkWindows(t *testing.T, windows []record.Window, workloads []string, blocks int) {
	t.Helper()
	var want, got []string
	for _, w := range workloads {
		for b := range blocks {
			order := []string{Baseline, Candidate}
			if b%2 == 1 {
				slices.Reverse(order)
			}
			for _, v := range order {
				want = append(want, w+" "+v)
			}
		}
	}
	var last record.Instant
	for _, w := range windows {
		got = append(got, w.Workload+" "+w.Variant)
		if w.Start <= last || w.End < w.Start {
			t.Errorf("window %+v overlaps the one before, which ends at %d", w, last)
		}
		last = w.End
	}
	if d := diff.Diff(want, got); d != "" {
		t.Errorf("turns (-want +got):\n%s", d)
	}
}

// checkLedger accounts for every planned shot of every variant: one record each,
// due in the window of its block.
func checkLedger(t *testing.T, r *Result, openWorkloads int) {
	t.Helper()
	m := r.Manifest
	if d := diff.Diff(record.Ledger(r.Records), m.Ledger); d != "" {
		t.Errorf("ledger (-records +manifest):\n%s", d)
	}
	offered := make(map[string]int64)
	for _, row := range m.Ledger {
		if row.Offered != row.Completed+row.Failed+row.Dropped {
			t.Errorf("%+v does not add up", row)
		}
		offered[row.Variant+" "+row.Workload+" "+row.Phase] = row.Offered
	}
	for _, v := range m.Variants {
		for _, w := range m.Workloads {
			if got := offered[v.Name+" "+w.Name+" measured"]; got != w.Planned || got == 0 {
				t.Errorf("%s on %s: %d offered, %d planned", v.Name, w.Name, got, w.Planned)
			}
			if got := offered[v.Name+" "+w.Name+" warm-up"]; got != w.WarmUp {
				t.Errorf("%s on %s: %d for warming up, %d planned", v.Name, w.Name, got, w.WarmUp)
			}
		}
	}
	type key struct {
		variant, workload string
		phase             record.Phase
		shot              int64
	}
	seen := make(map[key]bool)
	for i := range r.Records {
		rec := &r.Records[i]
		k := key{rec.Variant, rec.Workload, rec.Phase, rec.Shot}
		if seen[k] {
			t.Errorf("%+v has two records", k)
		}
		seen[k] = true
		if rec.Phase == record.WarmUp {
			continue
		}
		inside := slices.ContainsFunc(m.Windows, func(w record.Window) bool {
			return w.Variant == rec.Variant && w.Workload == rec.Workload && w.Block == rec.Block && rec.Due >= w.Start && rec.Due <= w.End
		})
		if !inside {
			t.Errorf("%+v of block %d is due outside of its window", k, rec.Block)
		}
	}
	if i := slices.IndexFunc(m.Workloads, func(w record.WorkloadInfo) bool { return w.Open }); i < 0 && openWorkloads > 0 {
		t.Error("no workload is an open loop")
	}
}

// checkSameWhenOpened opens the directory: verdict and report are those of Run,
// byte by byte, and nothing is written.
func checkSameWhenOpened(t *testing.T, r *Result) *Result {
	t.Helper()
	before := list(t, r.Dir)
	o, err := Open(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := asReport(t, o), asReport(t, r); !bytes.Equal(got, want) {
		t.Errorf("report (-run +open):\n%s", diff.Diff(string(want), string(got)))
	}
	if kept, err := os.ReadFile(filepath.Join(r.Dir, "report.json")); err != nil || !bytes.Equal(kept, asReport(t, o)) {
		t.Errorf("report.json is not the report of the records: %v", err)
	}
	if o.Judged() != r.Judged() {
		t.Errorf("judged %v when run, %v when opened", r.Judged(), o.Judged())
	}
	if r.Judged() {
		want, err1 := json.Marshal(r.Verdict)
		got, err2 := json.Marshal(o.Verdict)
		if err1 != nil || err2 != nil || !bytes.Equal(want, got) {
			t.Errorf("verdict (-run +open): %v %v\n%s", err1, err2, diff.Diff(string(want), string(got)))
		}
	}
	if d := diff.Diff(before, list(t, r.Dir)); d != "" {
		t.Errorf("opening changed the directory:\n%s", d)
	}
	return o
}

func asReport(t *testing.T, r *Result) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := report.JSON(&b, r.Report); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// list returns the files of a folder with their sizes and times.
func list(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = info.ModTime().String() + " " + info.Mode().String()
	}
	return files
}

// TestVariantsOfOneServer sends both variants to one server: their prompts
// differ by the salt alone, a seed and a salt repeat a run to the byte, and
// another run has another salt.
func TestVariantsOfOneServer(t *testing.T) {
	run := func(t *testing.T, o Options) (*Result, map[string]string) {
		e := newEngine(t, fast)
		s := parseSuite(t, "variants:\n  baseline: {url: "+e.URL+"}\n  candidate: {url: "+e.URL+`}
workloads: {chat: {arrivals: {constant: 100/s}, requests: 20, prompts: {synthetic: {uniform: {min: 5, max: 30}}}, output: 2, warmup: {requests: 2}}}
blocks: 2
`)
		o.Runs = t.TempDir()
		r, err := Run(t.Context(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		checkLedger(t, r, 1)
		if r.Judged() || r.Report.Grade != "" {
			t.Errorf("a suite without a contract was judged: %q", r.Report.Grade)
		}
		if _, err := os.Stat(filepath.Join(r.Dir, "verdict.json")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a verdict without a contract: %v", err)
		}
		checkSameWhenOpened(t, r)
		return r, e.prompts()
	}
	first, prompts := run(t, Options{Seed: ptr(uint64(11))})
	if len(prompts) != 2*(20+2) {
		t.Errorf("%d prompts arrived, want 44", len(prompts))
	}
	for id, theirs := range prompts {
		rest, ok := strings.CutPrefix(id, "baseline/")
		if !ok {
			continue
		}
		ours := prompts["candidate/"+rest]
		if len(ours) != len(theirs) || ours == theirs {
			t.Errorf("%s: prompts of %d and %d bytes, want the same length and another text", rest, len(theirs), len(ours))
		}
		if a, b := strings.Replace(theirs, first.Manifest.Salt+"a", "", 1), strings.Replace(ours, first.Manifest.Salt+"b", "", 1); a != b && !strings.HasPrefix(rest, "warm-up") {
			t.Errorf("%s: they differ by more than the salt:\n%q\n%q", rest, a, b)
		}
	}
	second, again := run(t, Options{Seed: ptr(uint64(11)), Salt: &first.Manifest.Salt})
	if d := diff.Diff(prompts, again); d != "" {
		t.Errorf("the same seed and salt give other prompts:\n%s", d)
	}
	third, other := run(t, Options{Seed: ptr(uint64(11))})
	if third.Manifest.Salt == first.Manifest.Salt || other["baseline/chat/0/0"] == prompts["baseline/chat/0/0"] {
		t.Errorf("another run has the same salt %q", third.Manifest.Salt)
	}
	fourth, _ := run(t, Options{Seed: ptr(uint64(12))})
	plan := func(r *Result) string { return r.Manifest.Workloads[0].Plan }
	if plan(first) != plan(second) || plan(first) != plan(third) || plan(first) == plan(fourth) {
		t.Errorf("plans %s, %s and %s of one seed, %s of another", plan(first), plan(second), plan(third), plan(fourth))
	}
}

// TestInterruptedRun keeps what there is and judges nothing, wherever it is told
// to stop.
func TestInterruptedRun(t *testing.T) {
	for _, c := range []struct {
		name   string
		at     int // request at which it is told to stop
		warmup int
	}{{"measuring", 30, 2}, {"warming up", 5, 100}} {
		t.Run(c.name, func(t *testing.T) {
			e := newEngine(t, fast)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			stopped := errors.New("told to stop")
			e.onEach(func(n int) {
				if n == c.at {
					cancel(stopped)
				}
			})
			s := parseSuite(t, "variants: {candidate: {url: "+e.URL+fmt.Sprintf(`}}
workloads: {chat: {arrivals: {constant: 100/s}, for: 1h, prompts: {synthetic: 5}, output: 2, warmup: {requests: %d}}}
contract: {clauses: [{need: median(ttft) <= 1h}, {need: share(failed) <= 50%%}]}
`, c.warmup))
			r, err := Run(ctx, s, Options{Runs: t.TempDir()})
			if !errors.Is(err, stopped) || r == nil {
				t.Fatalf("Run = %v, %v, want a result and the cause", r, err)
			}
			if r.Manifest.State != StateInterrupted || r.Verdict.Grade != contract.Inconclusive || !strings.Contains(r.Verdict.Reason, "interrupted") {
				t.Errorf("state %s, grade %s: %s", r.Manifest.State, r.Verdict.Grade, r.Verdict.Reason)
			}
			if n := len(r.Records); n < c.at || n > c.at+200 {
				t.Errorf("%d records, told to stop at request %d", n, c.at)
			}
			if d := diff.Diff(record.Ledger(r.Records), r.Manifest.Ledger); d != "" {
				t.Error(d)
			}
			checkSameWhenOpened(t, r)
		})
	}
}

// TestInterruptedBeforeItBegan leaves no run behind.
func TestInterruptedBeforeItBegan(t *testing.T) {
	e := newEngine(t, fast)
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("told to stop")
	cancel(stopped)
	s := parseSuite(t, "variants: {candidate: {url: "+e.URL+"}}\nworkloads: {chat: {arrivals: {constant: 100/s}, for: 1h, prompts: {synthetic: 5}}}\n")
	runs := t.TempDir()
	if r, err := Run(ctx, s, Options{Runs: runs}); r != nil || !errors.Is(err, stopped) {
		t.Errorf("Run = %v, %v, want the cause", r, err)
	}
	if files := list(t, runs); len(files) > 0 {
		t.Errorf("a run was left behind: %v", files)
	}
}

// TestUnreachableVariant names the variant and leaves no run behind.
func TestUnreachableVariant(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"bad key"}}`, http.StatusUnauthorized)
	}))
	t.Cleanup(refusing.Close)
	for name, url := range map[string]string{"closed port": url, "refused key": refusing.URL} {
		t.Run(name, func(t *testing.T) {
			s := parseSuite(t, "variants:\n  baseline: {sim: {}}\n  candidate: {url: "+url+"}\nworkloads: {chat: {arrivals: {constant: 100/s}, for: 1s, prompts: {synthetic: 5}}}\n")
			runs := filepath.Join(t.TempDir(), "runs")
			r, err := Run(t.Context(), s, Options{Runs: runs})
			target, ok := errors.AsType[*TargetError](err)
			if !ok || target.Variant != Candidate || r != nil {
				t.Fatalf("Run = %v, %v, want a *TargetError of candidate", r, err)
			}
			if text := err.Error(); !strings.HasPrefix(text, "reaching candidate: ") || strings.Count(text, "hint: ") != 1 {
				t.Errorf("the error does not tell the variant and one next step:\n%s", text)
			}
			if files := list(t, runs); len(files) > 0 {
				t.Errorf("a run was left behind: %v", files)
			}
		})
	}
}

// TestServerThatDies counts the requests that it leaves as failed. Half a run is
// one event: it need not suffice for a fail, but nothing passes.
func TestServerThatDies(t *testing.T) {
	e := newEngine(t, fast)
	e.onEach(func(n int) {
		if n >= 40 { // from here on nobody answers
			_ = e.Listener.Close()
			panic(http.ErrAbortHandler)
		}
	})
	s := parseSuite(t, "variants: {candidate: {url: "+e.URL+`}}
workloads: {chat: {arrivals: {constant: 100/s}, requests: 120, prompts: {synthetic: 5}, output: 2}}
contract: {clauses: [{id: errors, need: share(failed) <= 5%}, {id: first, need: p90(ttft) <= 10s}]}
`)
	r, err := Run(t.Context(), s, Options{Runs: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	checkLedger(t, r, 1)
	row := r.Manifest.Ledger[0]
	if r.Manifest.State != StateDone || row.Failed < 70 || row.Completed < 20 {
		t.Errorf("state %s, ledger %+v", r.Manifest.State, row)
	}
	for _, c := range r.Verdict.Clauses {
		if c.Grade == contract.Pass || c.Counts[0].Failed != int(row.Failed) {
			t.Errorf("%s: %s: %s (%+v)", c.ID, c.Grade, c.Reason, c.Counts)
		}
	}
	checkSameWhenOpened(t, r)
}

// TestRunThatCannotBeSealed keeps the journal and judges nothing.
func TestRunThatCannotBeSealed(t *testing.T) {
	e := newEngine(t, fast)
	watch := new(Watch)
	e.onEach(func(n int) {
		if step, ok := watch.Step(); ok && n == 5 { // the name of the new file is taken
			if err := os.Mkdir(filepath.Join(step.Dir, "records.parquet.tmp"), 0o777); err != nil {
				t.Error(err)
			}
		}
	})
	s := parseSuite(t, "variants: {candidate: {url: "+e.URL+`}}
workloads: {chat: {arrivals: {constant: 100/s}, requests: 50, prompts: {synthetic: 5}, output: 2}}
contract: {clauses: [{need: median(ttft) <= 1h}]}
`)
	r, err := Run(t.Context(), s, Options{Runs: t.TempDir(), Watch: watch})
	if err == nil || r == nil || !strings.Contains(err.Error(), "sealing the records") {
		t.Fatalf("Run = %v, %v, want a result and why it was not sealed", r, err)
	}
	if r.Manifest.State != StateFailed || r.Verdict.Grade != contract.Inconclusive || len(r.Records) != 50 {
		t.Errorf("state %s, grade %s (%s), %d records", r.Manifest.State, r.Verdict.Grade, r.Verdict.Reason, len(r.Records))
	}
	if _, err := os.Stat(filepath.Join(r.Dir, "records.journal")); err != nil {
		t.Errorf("the journal is gone: %v", err)
	}
	checkSameWhenOpened(t, r)

	if err := os.Remove(filepath.Join(r.Dir, "records.parquet.tmp")); err != nil {
		t.Fatal(err)
	}
	if done, err := Mend(r.Dir); err != nil || done.Repair.Torn() {
		t.Fatalf("Mend = %+v, %v", done, err)
	}
	o := checkSameWhenOpened(t, r)
	if _, err := os.Stat(filepath.Join(r.Dir, "records.parquet")); err != nil || o.Manifest.State != StateFailed || len(o.Records) != 50 {
		t.Errorf("after mending: %v, state %s, %d records", err, o.Manifest.State, len(o.Records))
	}
}

// TestSecretsStayOut looks for a key in every file of a run.
func TestSecretsStayOut(t *testing.T) {
	e := newEngine(t, fast)
	s := parseSuite(t, "variants: {candidate: {url: "+e.URL+`, key: "env:KEY", headers: {X-API-Key: "env:HEADER", X-Trace: on-call}}}
workloads: {chat: {arrivals: {constant: 100/s}, requests: 5, prompts: {synthetic: 5}, output: 2}}
`)
	runs := t.TempDir()
	_, err := Run(t.Context(), s, Options{Runs: runs})
	if want := "preparing candidate: reading the key: resolving the secret env:KEY: the environment variable KEY is not set or empty; set it"; err == nil || err.Error() != want {
		t.Errorf("Run without the key = %v, want %s", err, want)
	}
	if files := list(t, runs); len(files) > 0 {
		t.Errorf("a run was left behind: %v", files)
	}
	env := map[string]string{"KEY": "sk-hunter2", "HEADER": "hunter3"}
	r, err := Run(t.Context(), s, Options{Runs: runs, Getenv: func(name string) string { return env[name] }})
	if err != nil {
		t.Fatal(err)
	}
	if !e.keys["hunter3"] || len(e.keys) != 1 {
		t.Errorf("the server saw the header values %v", e.keys)
	}
	for name := range list(t, r.Dir) {
		data, err := os.ReadFile(filepath.Join(r.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte("hunter")) {
			t.Errorf("%s holds a secret", name)
		}
	}
}

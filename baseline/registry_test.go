package baseline

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

var day = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var chat = Key{Workload: strings.Repeat("ab", 32), Family: "llama-3.1-8b", Precision: "fp8", Engine: "vllm 0", Hardware: "h100-sxm x1"}

// made is a snapshot of the n-th day with a throughput in tokens/s and a p99 in ms,
// known to 2 % at 90 % confidence.
func made(k Key, n int, throughput, p99 float64) Snapshot {
	s := Snapshot{
		Key: k, Run: fmt.Sprintf("run-%05d", n), Path: fmt.Sprintf("runs/run-%05d", n), Variant: "candidate",
		Suite: "5e", Records: fmt.Sprintf("%064x", n), Assay: "v0", Taken: day.AddDate(0, 0, n),
		Figures: []Figure{
			figure(contract.Quantity{Stat: "rate", Metric: "output_tokens"}, record.TokensPerSecond, throughput),
			figure(contract.Quantity{Stat: "quantile", P: 0.99, Metric: "e2e"}, record.Nanoseconds, p99*1e6),
		},
	}
	s.ID = s.digest()
	return s
}

func figure(q contract.Quantity, u record.Unit, v float64) Figure {
	f := Figure{Quantity: q, Workload: "chat", Unit: u}
	for i, level := range levels {
		w := 0.02 * v * float64(2+i) / 2
		f.Levels = append(f.Levels, contract.Figure{Estimate: stat.Estimate{Value: v, Lo: v - w, Hi: v + w, Confidence: level, N: 1000, Effective: 1000, Method: "made"}})
	}
	return f
}

func by(reason string) Change { return Change{Who: "ada", At: day, Reason: reason} }

func mustAdd(t *testing.T, r *Registry, ss ...Snapshot) {
	t.Helper()
	for _, s := range ss {
		if added, err := r.Add(t.Context(), s, by("nightly")); err != nil || !added {
			t.Fatalf("Add(%s) = %t, %v", s.Run, added, err)
		}
	}
}

func mustPromote(t *testing.T, r *Registry, c Change, ss ...Snapshot) {
	t.Helper()
	for _, s := range ss {
		if _, _, err := r.Promote(t.Context(), s.ID, c); err != nil {
			t.Fatalf("Promote(%s): %v", s.Run, err)
		}
	}
}

func create(t *testing.T, at Address) *Registry {
	t.Helper()
	r, err := Create(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// states is what a registry holds, in a form that can be read.
func states(t *testing.T, r *Registry) []string {
	t.Helper()
	all, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range all {
		s := e.Run + " " + string(e.State)
		if e.Anchor {
			s += " anchor"
		}
		if e.Baseline {
			s += " baseline"
		}
		out = append(out, s)
	}
	return out
}

// TestSQLite holds SQLite against the conformance suite; TestPostgres does so with
// PostgreSQL.
func TestSQLite(t *testing.T) {
	conform(t, func(t *testing.T) Address {
		return Address{path: filepath.Join(t.TempDir(), "runs", "odd ?#%41 'name\".db")}
	})
}

// conform is what every database must do. fresh gives the address of a new registry.
func conform(t *testing.T, fresh func(*testing.T) Address) {
	t.Run("life", func(t *testing.T) { life(t, fresh(t)) })
	t.Run("rolling", func(t *testing.T) { rolling(t, fresh(t)) })
	t.Run("refusals", func(t *testing.T) { refusals(t, fresh(t)) })
	t.Run("append-only", func(t *testing.T) { appendOnlyHolds(t, fresh(t)) })
	t.Run("odd names", func(t *testing.T) { oddNames(t, fresh(t)) })
	t.Run("newer schema", func(t *testing.T) { newerSchema(t, fresh(t)) })
	t.Run("connections", func(t *testing.T) { connections(t, fresh(t)) })
	t.Run("processes", func(t *testing.T) { processes(t, fresh(t)) })
	t.Run("ten thousand", func(t *testing.T) { tenThousand(t, fresh(t)) })
	t.Run("backtest", func(t *testing.T) { driftFound(t, fresh(t)) })
}

func life(t *testing.T, at Address) {
	r := create(t, at)
	a, b, other := made(chat, 1, 1000, 500), made(chat, 2, 1010, 505), made(Key{chat.Workload, chat.Family, chat.Precision, chat.Engine, "l40s x1"}, 3, 400, 900)
	sick := made(chat, 4, 10, 9000)
	sick.Quarantine = "its verdict is fail: chat: too slow"
	mustAdd(t, r, a, b, other, sick)
	if added, err := r.Add(t.Context(), a, by("again")); err != nil || added {
		t.Errorf("adding a run twice = %t, %v; want false and no error", added, err)
	}
	s, err := r.Standing(t.Context(), chat, 72)
	if err != nil || s.Baseline != nil || s.Anchor != nil || len(s.History) != 2 {
		t.Errorf("before any promotion Standing = %+v, %v; want a history of 2 and nothing else", s, err)
	}
	mustPromote(t, r, by("first"), a, other)
	mustPromote(t, r, by("faster"), b)
	if diff := cmp.Diff([]string{"run-00001 active anchor", "run-00002 active baseline", "run-00003 active anchor baseline", "run-00004 candidate"}, states(t, r)); diff != "" {
		t.Error(diff)
	}
	s, err = r.Standing(t.Context(), chat, 72)
	if err != nil || s.Baseline.ID != b.ID || s.Anchor.ID != a.ID {
		t.Fatalf("Standing = %+v, %v", s, err)
	}
	if diff := cmp.Diff(b, s.Baseline.Snapshot); diff != "" {
		t.Errorf("the snapshot came back changed:\n%s", diff)
	}
	if diff := cmp.Diff([]Snapshot{a, b}, s.History); diff != "" {
		t.Errorf("the history has the quarantined run or another hardware in it:\n%s", diff)
	}

	// The baseline turns out to be bad: the one before it holds again.
	if _, err := r.Retire(t.Context(), b.Run, by("a warm cache")); err != nil {
		t.Fatal(err)
	}
	if s, err = r.Standing(t.Context(), chat, 72); err != nil || s.Baseline == nil || s.Baseline.ID != a.ID {
		t.Errorf("after retiring the baseline Standing = %+v, %v; want that before it", s, err)
	}
	e, err := r.Find(t.Context(), b.ID[:7])
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	for _, v := range e.Events {
		events = append(events, fmt.Sprint(v.What, " ", v.Who, " ", v.Reason, " ", v.At.Equal(day)))
	}
	if diff := cmp.Diff([]string{"candidate ada nightly true", "active ada faster true", "retired ada a warm cache true"}, events); diff != "" {
		t.Error(diff)
	}
}

// rolling: the last ones stay active, the anchor beside them, and it can be moved.
func rolling(t *testing.T, at Address) {
	r := create(t, at)
	var all []Snapshot
	for n := range 6 {
		all = append(all, made(chat, n, 1000, 500))
	}
	mustAdd(t, r, all...)
	c := by("weekly")
	c.Keep = LeastKeep
	mustPromote(t, r, c, all[:5]...)
	want := []string{"run-00000 active anchor", "run-00001 retired", "run-00002 active", "run-00003 active", "run-00004 active baseline", "run-00005 candidate"}
	if diff := cmp.Diff(want, states(t, r)); diff != "" {
		t.Error(diff)
	}
	c.Anchor = true
	mustPromote(t, r, c, all[2], all[5])
	want = []string{"run-00000 retired", "run-00001 retired", "run-00002 active", "run-00003 active", "run-00004 active", "run-00005 active anchor baseline"}
	if diff := cmp.Diff(want, states(t, r)); diff != "" {
		t.Error(diff)
	}
}

func refusals(t *testing.T, at Address) {
	r := create(t, at)
	a, b, sick := made(chat, 1, 1000, 500), made(chat, 2, 1000, 500), made(chat, 3, 10, 9000)
	sick.Quarantine = "it proves nothing: the client was unfit"
	mustAdd(t, r, a, b, sick)
	mustPromote(t, r, by("first"), a, b)
	promote := func(name string, c Change) error { _, _, err := r.Promote(t.Context(), name, c); return err }
	retire := func(name string, c Change) error { _, err := r.Retire(t.Context(), name, c); return err }
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"no reason":      {promote(a.ID, by(" ")), "--reason"},
		"nobody":         {promote(a.ID, Change{At: day, Reason: "x"}), "--by"},
		"odd reason":     {promote(a.ID, by("one\ntwo")), "one line"},
		"keep two":       {promote(a.ID, Change{Who: "ada", Reason: "x", Keep: 2}), "--keep 3"},
		"quarantined":    {promote(sick.ID, by("I like it")), "quarantined: it proves nothing"},
		"active already": {promote(b.ID, by("again")), "active already"},
		"nothing":        {promote("ffffffffffff", by("x")), "assay baseline list"},
		"odd name":       {promote("\x1b[31m", by("x")), "names no snapshot"},
		"anchor":         {retire(a.ID, by("old")), "--anchor"},
	} {
		var mistake *Mistake
		if tc.err == nil || !errors.As(tc.err, &mistake) || !strings.Contains(tc.err.Error(), tc.want) || !strings.Contains(tc.err.Error(), "hint: ") {
			t.Errorf("%s: %v; want a mistake with %q and a next step", name, tc.err, tc.want)
		}
	}
	if err := retire(b.ID, by("bad")); err != nil {
		t.Fatal(err)
	}
	if err := promote(b.ID, by("after all")); err == nil || !strings.Contains(err.Error(), "does not come back") {
		t.Errorf("promoting a retired one: %v", err)
	}
	if _, err := r.Find(t.Context(), ""); err == nil {
		t.Error("an empty name finds something")
	}
	forged := a
	forged.Records = "00"
	if _, err := r.Add(t.Context(), forged, by("x")); err == nil {
		t.Error("a snapshot whose id is of other records is taken")
	}
}

// appendOnlyHolds: the database itself refuses to change or delete what is there.
func appendOnlyHolds(t *testing.T, at Address) {
	r := create(t, at)
	a := made(chat, 1, 1000, 500)
	mustAdd(t, r, a)
	mustPromote(t, r, by("first"), a)
	before := states(t, r)
	texts := []string{
		"UPDATE assay_snapshot SET figures = '[]'", "DELETE FROM assay_snapshot", "UPDATE assay_event SET what = 'retired'", "DELETE FROM assay_event",
		"INSERT INTO assay_event (seq, snapshot, what, at, who, reason) VALUES (99, '" + a.ID + "', 'active', 0, 'x', 'x')",
		"INSERT INTO assay_event (seq, snapshot, what, at, who, reason) VALUES (99, '" + a.ID + "', 'golden', 0, 'x', 'x')",
		"INSERT INTO assay_event (seq, snapshot, what, at, who, reason) VALUES (99, 'nobody', 'retired', 0, 'x', 'x')",
	}
	if r.dialect == goose.DialectPostgres {
		texts = append(texts, "TRUNCATE assay_event", "TRUNCATE assay_snapshot CASCADE")
	}
	for _, text := range texts {
		if _, err := r.db.ExecContext(t.Context(), text); err == nil {
			t.Errorf("the database does: %s", text)
		}
	}
	if diff := cmp.Diff(before, states(t, r)); diff != "" {
		t.Error(diff)
	}
}

func oddNames(t *testing.T, at Address) {
	r := create(t, at)
	for i, odd := range []string{"a'b\"; DROP TABLE assay_event; --", "模型 8b 🦙", `c:\runs\%s %00`, strings.Repeat("x", longest), "' OR 1=1"} {
		k := chat
		k.Family = odd
		s := made(k, i, 1000, 500)
		s.Path, s.Variant = "runs/"+odd, odd
		s.ID = s.digest()
		mustAdd(t, r, s)
		mustPromote(t, r, by("of "+odd), s)
		got, err := r.Standing(t.Context(), k, 5)
		if err != nil || got.Baseline == nil {
			t.Fatalf("%q: %+v, %v", odd, got, err)
		}
		if diff := cmp.Diff(s, got.Baseline.Snapshot); diff != "" {
			t.Errorf("%q:\n%s", odd, diff)
		}
	}
	for _, odd := range []string{"", "two\nlines", "\x1b[2J", "null\x00", "\xff", "\u202egnp", strings.Repeat("x", longest+1)} {
		k := chat
		k.Hardware = odd
		if _, err := r.Add(t.Context(), made(k, 9, 1, 1), by("x")); err == nil || !strings.Contains(err.Error(), "--hardware") {
			t.Errorf("hardware %q: %v; want a refusal that names --hardware", odd, err)
		}
	}
}

func newerSchema(t *testing.T, at Address) {
	r := create(t, at)
	a := made(chat, 1, 1000, 500)
	mustAdd(t, r, a)
	if _, err := r.db.ExecContext(t.Context(), "INSERT INTO "+versions+" (version_id, is_applied) VALUES (7, true)"); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), at)
	var newer *NewerError
	if !errors.As(err, &newer) || !strings.Contains(err.Error(), "version 7") || !strings.Contains(err.Error(), "hint: ") {
		t.Errorf("opening a registry of a newer version: %v", err)
	}
	if got := states(t, r); len(got) != 1 {
		t.Errorf("afterwards it holds %v", got)
	}
}

// connections: adding, promoting and reading at once over connections of their own.
func connections(t *testing.T, at Address) {
	const writers, each = 4, 8
	failed := make(chan error, writers)
	for w := range writers {
		go func() { failed <- work(context.WithoutCancel(t.Context()), at, w, each) }()
	}
	for range writers {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	whole(t, at, writers*each)
}

// work adds snapshots and promotes each.
func work(ctx context.Context, at Address, w, each int) error {
	r, err := Create(ctx, at)
	if err != nil {
		return err
	}
	for i := range each {
		s := made(chat, 100*w+i, 1000, 500)
		if _, err := r.Add(ctx, s, by("racing")); err != nil {
			return errors.Join(err, r.Close())
		}
		if _, err := r.Add(ctx, made(chat, 5000+i, 1000, 500), by("all add this one")); err != nil {
			return errors.Join(err, r.Close())
		}
		if _, _, err := r.Promote(ctx, s.ID, by("racing")); err != nil {
			return errors.Join(err, r.Close())
		}
	}
	return r.Close()
}

// whole checks what writers left behind: all of theirs, one anchor, one baseline, no
// gap in the order of events, and each state entered once.
func whole(t *testing.T, at Address, promoted int) {
	t.Helper()
	r := create(t, at)
	all, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var anchors, baselines, active, retired, candidates int
	for _, e := range all {
		switch e.State {
		case Active:
			active++
		case Retired:
			retired++
		case Candidate:
			candidates++
		}
		if e.Anchor {
			anchors++
		}
		if e.Baseline {
			baselines++
		}
	}
	if anchors != 1 || baselines != 1 || active != DefaultKeep+1 || active+retired != promoted || candidates != 8 {
		t.Errorf("%d anchors, %d baselines, %d active, %d retired, %d candidates of %d", anchors, baselines, active, retired, candidates, promoted)
	}
	happened, err := events(t.Context(), r.db, "1 = 1")
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range happened {
		if e.Seq != int64(i+1) {
			t.Fatalf("event %d has the number %d", i+1, e.Seq)
		}
	}
}

const workerVariable = "ASSAY_REGISTRY_WORKER"

// TestWorker is what the processes of another test do.
func TestWorker(t *testing.T) {
	n, at, ok := strings.Cut(os.Getenv(workerVariable), " ")
	if !ok {
		t.Skip("only for the processes of the conformance suite")
	}
	a, err := Locate(at, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := 0
	_, _ = fmt.Sscan(n, &w)
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	if err := work(t.Context(), a, w, 8); err != nil {
		t.Fatal(err)
	}
}

// processes does as connections, in processes of their own, which begin at once
// with a registry that is not there yet.
func processes(t *testing.T, at Address) {
	text := at.path
	if at.url != nil {
		text = at.url.String()
	}
	type worker struct {
		cmd *exec.Cmd
		out *strings.Builder
		in  func() error
	}
	var workers []worker
	for w := range 3 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWorker$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", workerVariable, w, text))
		out := new(strings.Builder)
		cmd.Stderr = out
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		ready, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(ready)
		for lines.Scan() && lines.Text() != "ready" {
		}
		go func() {
			for lines.Scan() {
			}
		}()
		workers = append(workers, worker{cmd, out, in.Close})
	}
	for _, w := range workers {
		_ = w.in()
	}
	for i, w := range workers {
		if err := w.cmd.Wait(); err != nil {
			t.Errorf("process %d: %v\n%s", i, err, w.out)
		}
	}
	whole(t, at, 3*8)
}

// tenThousand: a large registry is listed, and its last snapshots are found, fast.
func tenThousand(t *testing.T, at Address) {
	r := create(t, at)
	const many = 10_000
	tx, err := r.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, tx, many)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	all, err := r.List(t.Context())
	if err != nil || len(all) != many {
		t.Fatalf("%d listed, %v", len(all), err)
	}
	listed := time.Since(start)
	start = time.Now()
	s, err := r.Standing(t.Context(), chat, 72)
	if err != nil || len(s.History) != 72 || s.History[71].Run != "run-09999" || s.Baseline != nil {
		t.Fatalf("Standing has a history of %d, baseline %v, %v", len(s.History), s.Baseline, err)
	}
	if _, err := r.Find(t.Context(), "run-07777"); err != nil {
		t.Error(err)
	}
	stood := time.Since(start)
	t.Logf("10,000 snapshots: listed in %v, the standing and one in %v", listed, stood)
	// A generous bound, for busy machines: it is far from what a full read for each row would take.
	if listed > 5*time.Second || stood > 5*time.Second {
		t.Errorf("10,000 snapshots are listed in %v, and the standing is found in %v", listed, stood)
	}
}

// fill adds many snapshots at once, as Add does.
func fill(t *testing.T, tx *sql.Tx, many int) {
	t.Helper()
	for n := range many {
		s := made(chat, n, 1000, 500)
		if err := insert(t.Context(), tx, s, "[]"); err != nil {
			t.Fatal(err)
		}
		if err := happen(t.Context(), tx, s.ID, Candidate, by("nightly"), "nightly"); err != nil {
			t.Fatal(err)
		}
	}
}

// driftFound: 1 % a week passes against every rolling baseline, and is found by the
// distance from the anchor; runs that do not change are not.
func driftFound(t *testing.T, at Address) {
	r := create(t, at)
	throughput := 1000.0
	for week := range 30 {
		s := made(chat, 7*week, throughput, 500)
		mustAdd(t, r, s)
		mustPromote(t, r, by("weekly"), s)
		throughput *= 0.99
	}
	got, err := r.Backtest(t.Context(), Policy{At: "x"})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]Row{}
	for _, row := range got.Rows {
		rows[row.ID+" "+row.As] = row
	}
	if row := rows["throughput gate, baseline"]; row.Tally.Fired != 0 || row.Tally.Undecided != 1 {
		t.Errorf("against the rolling baseline: %+v; want nothing but the first run undecided", row.Tally)
	}
	if row := rows["throughput gate, anchor"]; row.Tally.Fired < 12 || row.Tally.Fired > 17 || row.Last == "" {
		t.Errorf("against the anchor: %+v; want it to fire from about week 14 on", row.Tally)
	}
	if row := rows["p99 mark, anchor"]; row.Tally.Fired != 0 {
		t.Errorf("the p99, which does not change: %+v", row.Tally)
	}
	if row := rows["throughput shift"]; row.Tally.Fired == 0 {
		t.Errorf("the lasting change of throughput is not seen: %+v", row.Tally)
	}
	if row := rows["p99 shift"]; row.Tally.Fired != 0 || row.Tally.Undecided != 24 {
		t.Errorf("the p99 does not shift: %+v; want 24 runs without enough history", row.Tally)
	}
	if !slices.ContainsFunc(got.Rows, func(r Row) bool { return r.Tally.False != nil }) {
		t.Error("no row tells false alarms")
	}
}

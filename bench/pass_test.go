package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
)

// The run that every test below spoils: two healthy variants, 400 requests each,
// and a contract of every statistic, all of which pass.
const soundContract = `version: 1
name: x
seed: 1
variants: {baseline: {sim: {}}, candidate: {sim: {}}}
workloads: {chat: {arrivals: {constant: 20/s}, for: 20s, prompts: {synthetic: 10}, output: 10}}
contract:
  clauses:
    - {id: p99, need: p99(ttft) <= 200ms}
    - {id: mean, need: mean(tpot) <= baseline * 1.5}
    - {id: share, need: share(failed) <= 5%}
    - {id: rate, need: rate(output_tokens) >= baseline * 0.5}
    - {id: done, need: share(completed) >= 90%}
    - {id: count, need: count(failed) < 10}
    - {id: either, any: [{need: p95(e2e) <= 5s}, {need: median(ntpot) <= 1s}]}
`

func soundManifest(t *testing.T) (*record.Manifest, []record.Record) {
	t.Helper()
	m := &record.Manifest{
		ID: "20260101T000000-000000", Name: "x", State: StateDone, Suite: soundContract,
		Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Elapsed: 45 * time.Second,
		Variants:  []record.VariantInfo{{Name: Baseline}, {Name: Candidate}},
		Workloads: []record.WorkloadInfo{{Name: "chat", Open: true, Planned: 400}},
		Client:    record.Certificate{Fit: true, Seconds: []record.ClientSecond{{}}},
	}
	const ms = time.Millisecond
	var records []record.Record
	for v, name := range []string{Baseline, Candidate} {
		for block := range 4 {
			// A B B A in blocks of 5 s.
			turn := 2*block + v
			if block%2 == 1 {
				turn = 2*block + 1 - v
			}
			begin := time.Duration(turn) * 5500 * ms
			m.Windows = append(m.Windows, record.Window{Variant: name, Workload: "chat", Block: block, Start: record.At(begin), End: record.At(begin + 5*time.Second)})
			for i := range 100 {
				due := begin + time.Duration(i)*50*ms
				wobble := time.Duration((i*7919+block*31)%13) * ms
				r := record.Record{
					Shot: int64(block*100 + i), Variant: name, Workload: "chat", Block: block, Stream: true,
					Due: record.At(due), Admit: record.At(due), Send: record.At(due), Sent: record.At(due), Header: record.At(due + 20*ms),
					Outcome: record.OK, Status: 200, Finish: "length", Prompt: record.Tokens(10), Output: record.Tokens(10), OutputBytes: 50,
				}
				for k := range 10 {
					r.Events = append(r.Events, record.Event{At: record.At(due + 50*ms + wobble + time.Duration(k)*(10*ms+wobble/10)), Lag: -1, Read: uint32(k), Bytes: 5, Kind: record.KindContent})
				}
				r.EOF = r.Events[9].At
				records = append(records, r)
			}
		}
	}
	slices.SortFunc(m.Windows, func(a, b record.Window) int { return int(a.Start - b.Start) })
	record.Sort(records)
	m.Ledger = record.Ledger(records)
	return m, records
}

// lay writes a run directory: a sealed one, or one whose writer was killed.
func lay(t *testing.T, m *record.Manifest, records []record.Record, seal bool) string {
	t.Helper()
	dir := t.TempDir()
	w, err := record.Create(record.OS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		if err := w.Append(&records[i]); err != nil {
			t.Fatal(err)
		}
	}
	end := w.Close
	if seal {
		end = w.Seal
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if err := record.WriteManifest(record.OS(), dir, m); err != nil {
		t.Fatal(err)
	}
	return dir
}

// fail makes a request one that failed.
func fail(r *record.Record) {
	r.Outcome, r.Status, r.Finish, r.Events = record.HTTP5xx, 500, "", nil
	r.Prompt, r.Output, r.OutputBytes = 0, 0, 0
}

func ofCandidate(records []record.Record, change func(*record.Record)) {
	for i := range records {
		if records[i].Variant == Candidate {
			change(&records[i])
		}
	}
}

func without(records []record.Record, drop func(*record.Record) bool) []record.Record {
	return slices.DeleteFunc(records, func(r record.Record) bool { return drop(&r) })
}

// TestNothingSpoiltPasses spoils a run that passes in every way that leaves it
// without proof. None may pass; those that prove nothing at all must be
// inconclusive.
func TestNothingSpoiltPasses(t *testing.T) {
	type spoil = func(m *record.Manifest, rs []record.Record) []record.Record
	all := func(change func(*record.Record)) spoil {
		return func(m *record.Manifest, rs []record.Record) []record.Record {
			ofCandidate(rs, change)
			m.Ledger = record.Ledger(rs)
			return rs
		}
	}
	only := func(drop func(*record.Record) bool) spoil {
		return func(m *record.Manifest, rs []record.Record) []record.Record {
			rs = without(rs, drop)
			m.Ledger = record.Ledger(rs)
			return rs
		}
	}
	state := func(change func(*record.Manifest)) spoil {
		return func(m *record.Manifest, rs []record.Record) []record.Record { change(m); return rs }
	}
	for _, c := range []struct {
		name   string
		spoil  spoil
		proves bool // it proves something: a fail is right too
	}{
		{"no records", only(func(*record.Record) bool { return true }), false},
		{"no candidate", only(func(r *record.Record) bool { return r.Variant == Candidate }), false},
		{"no baseline", only(func(r *record.Record) bool { return r.Variant == Baseline }), false},
		{"only warm-up", all(func(r *record.Record) { r.Phase = record.WarmUp }), false},
		{"every request failed", all(fail), true},
		{"a third failed", all(func(r *record.Record) {
			if r.Shot%3 == 0 {
				fail(r)
			}
		}), true},
		{"every request dropped", all(func(r *record.Record) { fail(r); r.Outcome, r.Send, r.Sent = record.ClientOverload, 0, 0 }), false},
		{"every request cancelled", all(func(r *record.Record) { fail(r); r.Outcome = record.ClientCancelled }), false},
		{"no outcome", all(func(r *record.Record) { r.Outcome = "" }), true},
		{"an outcome that nobody knows", all(func(r *record.Record) { r.Outcome = "fine" }), true},
		{"no usage", all(func(r *record.Record) { r.Output, r.Prompt, r.Flags = 0, 0, record.FlagUsageMissing }), false},
		{"no events", all(func(r *record.Record) { r.Events = nil }), false},
		{"no due instants", all(func(r *record.Record) { r.Due = 0 }), false},
		{"no instants at all", all(func(r *record.Record) {
			r.Due, r.Send, r.Sent, r.EOF = 0, 0, 0, 0
			for i := range r.Events {
				r.Events[i].At = 0
			}
		}), true},
		{"no windows", state(func(m *record.Manifest) { m.Windows = nil }), false},
		{"unfit", state(func(m *record.Manifest) { m.Client = record.Certificate{Reasons: []string{"the client sent late"}} }), false},
		{"unfit without a reason", state(func(m *record.Manifest) { m.Client = record.Certificate{} }), false},
		{"fit with a reason", state(func(m *record.Manifest) { m.Client.Reasons = []string{"the client sent late"} }), false},
		{"interrupted", state(func(m *record.Manifest) { m.State = StateInterrupted }), false},
		{"failed", state(func(m *record.Manifest) { m.State = StateFailed }), false},
		{"running", state(func(m *record.Manifest) { m.State = StateRunning }), false},
		{"no state", state(func(m *record.Manifest) { m.State = "" }), false},
		{"a state that nobody knows", state(func(m *record.Manifest) { m.State = "paused" }), false},
		{"no ledger", state(func(m *record.Manifest) { m.Ledger = nil }), false},
		{"failed requests taken out", func(m *record.Manifest, rs []record.Record) []record.Record {
			ofCandidate(rs, func(r *record.Record) {
				if r.Shot%3 == 0 {
					fail(r)
				}
			})
			m.Ledger = record.Ledger(rs)
			return without(rs, func(r *record.Record) bool { return !r.Success() })
		}, false},
		{"other variants", state(func(m *record.Manifest) { m.Variants = []record.VariantInfo{{Name: "a"}, {Name: "b"}} }), false},
		{"a baseline that comes last", func(m *record.Manifest, rs []record.Record) []record.Record {
			for i := range rs {
				if rs[i].Variant == Candidate {
					rs[i].Variant = "v2"
					rs[i].Due += record.Instant(-time.Second) // every answer takes a second more
				}
			}
			m.Variants = []record.VariantInfo{{Name: "v2"}, {Name: Baseline}}
			m.Ledger = record.Ledger(rs)
			return rs
		}, true},
		{"a second variant without records", state(func(m *record.Manifest) {
			m.Variants = []record.VariantInfo{{Name: Baseline}, {Name: "v2"}}
		}), false},
		{"no variants", state(func(m *record.Manifest) { m.Variants = nil }), false},
		{"no contract", state(func(m *record.Manifest) { m.Suite, _, _ = strings.Cut(m.Suite, "contract:") }), false},
		{"no suite", state(func(m *record.Manifest) { m.Suite = "" }), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, records := soundManifest(t)
			records = c.spoil(m, records)
			r, err := Open(lay(t, m, records, true))
			if err != nil {
				t.Fatal(err)
			}
			if g := r.Verdict.Grade; g == contract.Pass || !c.proves && g != contract.Inconclusive || r.Report.Grade == contract.Pass.String() {
				t.Errorf("%s: %s; the report says %q", g, r.Verdict.Reason, r.Report.Grade)
			}
			if r.Judged() && r.Verdict.Reason == "" {
				t.Error("no reason is given")
			}
			if text := string(asReport(t, r)); strings.Contains(text, "NaN") || strings.Contains(text, `"+Inf`) {
				t.Error("the report holds a NaN or an infinity")
			}
		})
	}
}

// TestSoundRunPasses shows that the run above passes before it is spoilt, and so
// that the test can fail.
func TestSoundRunPasses(t *testing.T) {
	m, records := soundManifest(t)
	r, err := Open(lay(t, m, records, true))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Verdict.Clauses {
		if c.Grade != contract.Pass {
			t.Errorf("%s: %s: %s", c.ID, c.Grade, c.Reason)
		}
	}
	if r.Verdict.Grade != contract.Pass || r.Report.Grade != contract.Pass.String() {
		t.Errorf("%s: %s", r.Verdict.Grade, r.Verdict.Reason)
	}
}

// TestValuesThatAreNoNumbers puts numbers that are none into what checks found.
func TestValuesThatAreNoNumbers(t *testing.T) {
	for name, v := range map[string]float64{"NaN": math.NaN(), "+Inf": math.Inf(1), "-Inf": math.Inf(-1)} {
		for _, need := range []string{"mean(value.q) >= 0 points", "mean(value.q) <= 1000 points", "median(value.q) >= baseline - 1 points"} {
			m, records := soundManifest(t)
			m.Suite, _, _ = strings.Cut(m.Suite, "contract:")
			m.Suite += "contract: {clauses: [{need: " + need + "}]}\n"
			ofCandidate(records, func(r *record.Record) { r.Values = map[string]float64{"q": v} })
			r := &Result{Manifest: m, Records: records}
			s, err := Parse("x", []byte(m.Suite), "")
			if err != nil {
				t.Fatal(err)
			}
			r.contract = s.Contract.Contract
			r.judge()
			if r.Verdict.Grade == contract.Pass {
				t.Errorf("%s of %s passes: %s", need, name, r.Verdict.Reason)
			}
			if _, err := json.Marshal(r.Verdict); err != nil {
				t.Errorf("%s of %s: %v", need, name, err)
			}
		}
	}
}

// TestKilledRun opens a run whose process was killed in the middle of a write:
// every whole record is there, the rest is told to the byte, and nothing is
// judged, also not after it was mended.
func TestKilledRun(t *testing.T) {
	for _, cut := range []int64{0, 1, 10, 200} {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			m, records := soundManifest(t)
			m.State, m.Client, m.Ledger = StateRunning, record.Certificate{}, nil
			dir := lay(t, m, records, false)
			journal := filepath.Join(dir, "records.journal")
			info, err := os.Stat(journal)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(journal, info.Size()-cut); err != nil {
				t.Fatal(err)
			}
			files := list(t, dir)
			r, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if after := list(t, dir); len(after) != len(files) {
				t.Errorf("opening changed the directory: %v, then %v", files, after)
			}
			want := len(records)
			if cut > 0 {
				want = int(r.Repair.Records)
				if want != len(records)-1 && cut < 200 || want >= len(records) {
					t.Errorf("%d of %d records are intact after %d bytes were lost", want, len(records), cut)
				}
				if !r.Repair.Torn() || r.Repair.Kept+r.Repair.Cut != info.Size()-cut {
					t.Errorf("%+v does not account for %d bytes", r.Repair, info.Size()-cut)
				}
			}
			if len(r.Records) != want {
				t.Errorf("%d records, want %d", len(r.Records), want)
			}
			if r.Verdict.Grade != contract.Inconclusive || r.Verdict.Reason == "" {
				t.Errorf("%s: %s", r.Verdict.Grade, r.Verdict.Reason)
			}
			offered := int64(0)
			for _, row := range r.Manifest.Ledger {
				offered += row.Offered
			}
			if offered != int64(want) {
				t.Errorf("the ledger has %d of %d", offered, want)
			}

			done, err := Mend(dir)
			if err != nil || done.Repair != r.Repair || !done.Sealed || done.Records != int64(want) {
				t.Fatalf("Mend = %+v, %v, want %d records and %+v", done, err, want, r.Repair)
			}
			if _, err := os.Stat(filepath.Join(dir, "records.parquet")); err != nil {
				t.Errorf("the mended run is not sealed: %v", err)
			}
			o, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if o.Verdict.Grade != contract.Inconclusive || o.Repair.Torn() || len(o.Records) != want || o.Manifest.State == StateRunning {
				t.Errorf("after mending: %s, %+v, %d records, state %s", o.Verdict.Grade, o.Repair, len(o.Records), o.Manifest.State)
			}
			if again, err := Mend(dir); err != nil || again.Repair.Torn() {
				t.Errorf("mending twice = %+v, %v", again, err)
			}
		})
	}
}

// TestOpenWithoutARun says what is missing.
func TestOpenWithoutARun(t *testing.T) {
	_, err := Open(t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "no manifest.json in it\n  hint: ") {
		t.Errorf("Open = %v, want what is missing and a hint", err)
	}
	m, records := soundManifest(t)
	dir := lay(t, m, records, true)
	if err := os.Remove(filepath.Join(dir, "records.parquet")); err != nil {
		t.Fatal(err)
	}
	if r, err := Open(dir); err == nil {
		t.Errorf("a run without records opens: %s", r.Verdict.Grade)
	}
	if _, err := Mend(t.TempDir()); err == nil {
		t.Error("a folder without a run is mended")
	}
}

// TestRoles says who is judged, and against whom.
func TestRoles(t *testing.T) {
	for _, c := range []struct{ variants, baseline, candidate, problem string }{
		{"baseline candidate", Baseline, Candidate, ""},
		{"candidate baseline", Baseline, Candidate, ""},
		{"candidate", "", Candidate, ""},
		{"baseline", "", Baseline, ""},
		{"target", "", "target", ""},
		{"v2 baseline", Baseline, "v2", ""},
		{"v1 candidate", "", Candidate, ""},
		{"v1 baseline v2 candidate", Baseline, Candidate, ""},
		{"v1 v2", "", "", "none of the variants v1, v2 is named candidate"},
		{"baseline v1 v2", Baseline, "", "none of the variants v1, v2 is named candidate"},
	} {
		b, v, p := roles(strings.Fields(c.variants))
		if b != c.baseline || v != c.candidate || p != c.problem {
			t.Errorf("roles(%s) = %q, %q, %q, want %q, %q, %q", c.variants, b, v, p, c.baseline, c.candidate, c.problem)
		}
	}
}

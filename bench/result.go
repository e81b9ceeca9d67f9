package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/assay-llm/assay/baseline"
	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/interop"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/report"
)

// The states of a run.
const (
	StateRunning     = "running"
	StateDone        = "done"
	StateInterrupted = "interrupted"
	StateFailed      = "failed"
	StateImported    = interop.State // from the file of another tool
)

// Result is a run with its judgement: what its directory holds.
type Result struct {
	Dir      string
	Manifest *record.Manifest
	Records  []record.Record // in order of their due instants
	Repair   record.Repair   // what a torn journal lost; zero for a sealed run
	Verdict  contract.Verdict
	Report   *report.Document
	Outcomes []*check.Outcome // of the checks, without their records, which are among Records

	contract *contract.Contract
	prices   map[string]contract.Price
	declared []CheckRef         // of the suite
	checks   []contract.Checked // what the contract must know of them
	own      contract.Verdict   // by the contract alone; Verdict has the delta to the baseline beside it
	policy   *baseline.Policy   // of the registry; nil: the run has none
	delta    *baseline.Delta    // what it is compared with; nil: the run has no registry
	looks    []int              // of a run that may stop early: after which blocks it was looked at; nil: it is judged once
}

// Open reads a run directory, writes nothing, and judges its records anew.
func Open(dir string) (*Result, error) {
	m, err := record.ReadManifest(record.OS(), dir)
	if errors.Is(err, fs.ErrNotExist) && IsCapacity(dir) {
		return nil, fmt.Errorf("opening the run %s: it is a search for capacity or a sweep\n  hint: leave it out, or name its runs: %s", dir, filepath.Join(dir, "probes", "*"))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("opening the run %s: no manifest.json in it\n  hint: name a run directory, such as runs/ID", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the run %s: %w", dir, err)
	}
	records, repair, err := readRecords(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the records of %s: %w", dir, err)
	}
	r := &Result{Dir: dir, Manifest: m, Records: records, Repair: repair}
	if m.Suite != "" {
		s := new(Suite)
		if err := config.Decode(filepath.Join(dir, "manifest.json#suite"), []byte(m.Suite), s); err != nil {
			return nil, fmt.Errorf("reading the suite of %s: %w", dir, err)
		}
		r.contract, r.looks, r.prices, r.declared, r.checks, r.policy = s.Contract.Contract, s.looks(), s.prices(), s.Checks, s.checked(), s.Registry
	}
	if m.State == StateRunning {
		m.Client = uncertified
		m.Ledger = record.Ledger(records)
	}
	if r.Outcomes, err = readOutcomes(dir); err != nil {
		return nil, err
	}
	if err := r.readDelta(); err != nil {
		return nil, err
	}
	r.judge()
	return r, nil
}

// readRecords reads the records of a run, in order of their due instants; of requests
// that a resumed run sent again, the try that counts.
func readRecords(dir string) ([]record.Record, record.Repair, error) {
	records, repair, err := record.ReadAll(record.OS(), dir)
	if err != nil {
		return nil, repair, err
	}
	record.Sort(records)
	records, _ = record.Final(records)
	return records, repair, nil
}

// Evidence is what a contract is judged on: the run's records, and why they prove
// nothing, if so.
func (r *Result) Evidence() contract.Evidence {
	m := r.Manifest
	e := contract.Evidence{Records: r.Records, Windows: m.Windows, Checks: evidenceOf(r.checks, r.Outcomes), Unfit: r.unfit(), Interim: interims(m, r.looks)}
	e.Prices = r.prices
	e.Engine = heard(r.Dir)
	var names []string
	for _, v := range m.Variants {
		names = append(names, v.Name)
	}
	var problem string
	if e.Baseline, e.Candidate, problem = roles(names); problem != "" {
		e.Unfit = append(e.Unfit, problem)
	}
	return e
}

// judge computes verdict and report from records, manifest and what the run was
// compared with.
func (r *Result) judge() {
	m, e := r.Manifest, r.Evidence()
	var v *contract.Verdict
	if r.contract != nil {
		r.Verdict = contract.Evaluate(r.contract, e)
		r.own, v = r.Verdict, &r.Verdict
	}
	if r.delta != nil {
		if v == nil {
			r.Verdict = contract.Verdict{Candidate: e.Candidate, Unfit: e.Unfit}
		}
		r.Verdict, v = r.Verdict.With(r.delta.Results(*r.policy, e)...), &r.Verdict
	}
	r.Report = report.Build(m, r.Records, v, outcomesOf(r.declared, r.Outcomes)...)
}

// roles says which variant a contract judges, and against which: candidate
// against baseline, or the only one beside the baseline, or the only one. Any
// other choice could pass one variant for another.
func roles(variants []string) (baseline, candidate, problem string) {
	others := slices.DeleteFunc(slices.Clone(variants), func(v string) bool { return v == Baseline })
	if len(others) < len(variants) {
		baseline = Baseline
	}
	switch {
	case slices.Contains(others, Candidate):
		candidate = Candidate
	case len(others) == 1:
		candidate = others[0]
	case len(others) == 0:
		baseline, candidate = "", baseline
	default:
		problem = fmt.Sprintf("none of the variants %s is named candidate", strings.Join(others, ", "))
	}
	return baseline, candidate, problem
}

// unfit says why the whole run proves nothing. What it does not know is no
// reason to trust: only a run that is done, by a client that is certified, with
// the records that its manifest accounts for, proves anything.
func (r *Result) unfit() []string {
	m := r.Manifest
	reasons := append([]string(nil), m.Client.Reasons...)
	if !m.Client.Fit && len(reasons) == 0 {
		reasons = append(reasons, "nobody certified the client")
	}
	switch m.State {
	case StateDone:
	case StateRunning: // said by the certificate
	case StateInterrupted:
		reasons = append(reasons, "the run was interrupted before its plan was done (assay run --resume RUN goes on with it)")
	case StateImported:
		reasons = append(reasons, "the run was imported from the file of another tool: nobody certified its client, and its numbers have that tool's definitions")
	case StateFailed:
		reasons = append(reasons, "the run failed before its plan was done")
	default:
		reasons = append(reasons, fmt.Sprintf("the run is in a state that this program does not know: %q", m.State))
	}
	if r.Repair.Torn() {
		reasons = append(reasons, "the journal is torn: "+r.Repair.String())
	}
	same := func(a, b record.LedgerRow) bool { return reflect.DeepEqual(a, b) }
	if !slices.EqualFunc(m.Ledger, record.Ledger(r.Records), same) {
		reasons = append(reasons, "the records are not those that the manifest accounts for")
	}
	return reasons
}

// Judged reports whether a contract or a baseline was there to judge the run by.
func (r *Result) Judged() bool { return r.contract != nil || r.delta != nil }

// ReportPath is where the page of the run lies.
func (r *Result) ReportPath() string { return filepath.Join(r.Dir, "report.html") }

// write keeps verdict and report beside the records.
func (r *Result) write() error {
	var page, doc bytes.Buffer
	if err := report.HTML(&page, r.Report); err != nil {
		return fmt.Errorf("making the report: %w", err)
	}
	if err := report.JSON(&doc, r.Report); err != nil {
		return fmt.Errorf("making the report: %w", err)
	}
	files := map[string][]byte{"report.html": page.Bytes(), "report.json": doc.Bytes()}
	if r.Judged() {
		verdict, err := json.MarshalIndent(r.Verdict, "", "  ")
		if err != nil {
			return fmt.Errorf("writing the verdict: %w", err)
		}
		files["verdict.json"] = append(verdict, '\n')
	}
	if r.delta != nil {
		delta, err := json.MarshalIndent(r.delta, "", "  ")
		if err != nil {
			return fmt.Errorf("writing the comparison: %w", err)
		}
		files[deltaName] = append(delta, '\n')
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(r.Dir, name), data, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}

// Mended is what Mend found and did.
type Mended struct {
	Records int64         // in the run's sealed table
	Sealed  bool          // by Mend, now; false: the run had ended by itself
	Repair  record.Repair // what was cut; zero when nothing was
}

// Mend repairs the torn journal of a run that was killed, seals its records,
// writes into the manifest how the run ended, and says what was kept and cut. Of a
// sealed run that ended by itself it changes nothing.
func Mend(dir string) (Mended, error) {
	m, err := record.ReadManifest(record.OS(), dir)
	if err != nil {
		return Mended{}, fmt.Errorf("mending the run %s: %w\n  hint: name a run directory, such as runs/ID", dir, err)
	}
	repair, err := record.Mend(record.OS(), dir) // fails while the run still goes on
	if err != nil {
		return Mended{}, err
	}
	if err := record.Seal(record.OS(), dir); err != nil {
		return Mended{Repair: repair}, fmt.Errorf("sealing the records of %s: %w", dir, err)
	}
	records, _, err := readRecords(dir)
	if err != nil {
		return Mended{Repair: repair}, fmt.Errorf("reading the records of %s: %w", dir, err)
	}
	done := Mended{Records: int64(len(records)), Repair: repair}
	if m.State != StateRunning && !repair.Torn() {
		return done, nil
	}
	done.Sealed = true
	m.Ledger = record.Ledger(records)
	m.State = StateFailed
	m.Client = record.Certificate{Reasons: []string{"the run was killed: nobody certified its client"}}
	m.Notes = append(m.Notes, "the run was killed; its journal was mended: "+repair.String())
	if err := record.WriteManifest(record.OS(), dir, m); err != nil {
		return done, fmt.Errorf("writing the manifest of %s: %w", dir, err)
	}
	return done, nil
}

// uncertified is the certificate of a client that was killed before it had one.
var uncertified = record.Certificate{Reasons: []string{"the run still goes on, or was killed (then assay run --resume RUN goes on with it, assay mend RUN ends it): nobody certified its client"}}

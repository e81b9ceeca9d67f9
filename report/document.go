package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
)

// Schema names the JSON form of a Document.
const Schema = "assay.report/1"

// confidence of every two-sided interval that a report shows. Clauses are
// decided at their own.
const confidence = 0.95

// Document is everything that any renderer shows of one run. Its JSON form is
// stable under [Schema] and holds no NaN and no infinity. Instants are
// nanoseconds since the run's epoch, times are nanoseconds. All text in it is
// free of control characters, escape sequences and bidirectional controls.
// A Document is read-only: renderers share it.
type Document struct {
	Schema    string               `json:"schema"`
	Run       Run                  `json:"run"`
	Grade     string               `json:"grade"`            // pass, fail, inconclusive, or "" without a contract
	Reason    string               `json:"reason"`           // one sentence
	Alerts    []string             `json:"alerts,omitempty"` // what must be known before any number
	Verdict   *contract.Verdict    `json:"verdict"`
	Baseline  string               `json:"baseline,omitempty"`  // variant that changes refer to; "" with one variant
	Candidate string               `json:"candidate,omitempty"` // variant whose changes are shown
	Variants  []record.VariantInfo `json:"variants"`
	Workloads []Workload           `json:"workloads"`
	Ledger    []record.LedgerRow   `json:"ledger"`
	Client    Client               `json:"client"`
	Series    []Series             `json:"series"`
	Host      map[string]string    `json:"host,omitempty"`
	Notes     []string             `json:"notes,omitempty"`
	Footnotes []string             `json:"footnotes,omitempty"` // Marks count them from 1
	Suite     string               `json:"suite,omitempty"`     // resolved, as YAML
}

// Run says which run this is, and how to repeat it.
type Run struct {
	ID        string           `json:"id"`
	Name      string           `json:"name"`
	Assay     string           `json:"assay"`
	Seed      uint64           `json:"seed"`
	Salt      string           `json:"salt"`
	Start     time.Time        `json:"start"`
	Elapsed   time.Duration    `json:"elapsed_ns"`
	State     string           `json:"state"`
	SuiteFile string           `json:"suite_file,omitempty"`
	Digest    string           `json:"suite_digest,omitempty"`
	Gaps      []record.Gap     `json:"gaps,omitempty"`     // between a stop and the resumption
	Foreseen  *record.Foreseen `json:"foreseen,omitempty"` // what the checks were expected to cost
	Stops     []record.Stop    `json:"stops,omitempty"`    // workloads that ended before their plan was done, since they were decided
	Lock      *record.LockInfo `json:"lock,omitempty"`     // what the run depends on
}

// Workload is what was measured on one workload.
type Workload struct {
	record.WorkloadInfo
	Counts   []contract.Counts `json:"counts"` // of measured requests, in the order of the variants
	Rows     []Row             `json:"rows"`
	Curves   []Curve           `json:"curves"`
	Arrivals []Arrivals        `json:"arrivals_check,omitempty"`
	Engine   []EngineRow       `json:"engine_side,omitempty"`
	Steady   []Steady          `json:"steady_state,omitempty"`
	Marks    []int             `json:"marks,omitempty"` // footnotes on the workload as a whole
	Check    *Checked          `json:"check,omitempty"` // the workload is a check, and has no times
}

// Row is one quantity: a cell a variant, the change of the candidate, and the
// clauses about it.
type Row struct {
	Name     string            `json:"name"`            // "TTFT p99"
	Scope    string            `json:"scope,omitempty"` // only requests with these labels; "": all
	Doc      string            `json:"doc,omitempty"`
	Quantity contract.Quantity `json:"quantity"`
	Unit     record.Unit       `json:"unit"`  // of the figures
	Cells    []Cell            `json:"cells"` // in the order of the variants
	Change   *Change           `json:"change,omitempty"`
	Clauses  []Judged          `json:"clauses,omitempty"`
}

// Cell is a figure as measured and as printed.
type Cell struct {
	Variant string          `json:"variant"`
	Figure  contract.Figure `json:"figure"`
	Shown   Shown           `json:"shown"`
}

// Change is the candidate against the baseline, as measured and as printed.
type Change struct {
	Is     contract.ChangeKind `json:"is"`
	Figure contract.Figure     `json:"figure"`
	Shown  Shown               `json:"shown"`
}

// Shown is a figure as every renderer prints it, so that they cannot disagree.
type Shown struct {
	Value    string `json:"value"`              // "412 ms"; "–": there is none; "∞": beyond any value
	Interval string `json:"interval,omitempty"` // "[391, 440]", in the unit of Value
	Marks    []int  `json:"marks,omitempty"`    // footnotes, from 1
}

// Judged is a clause beside the row that it is about.
type Judged struct {
	ID    string         `json:"id"`
	Need  string         `json:"need"` // "≤ 800 ms"
	Grade contract.Grade `json:"grade"`
}

// Curve is an empirical distribution: exact order statistics, thinned.
type Curve struct {
	Metric  string      `json:"metric"`
	Title   string      `json:"title"`
	Unit    record.Unit `json:"unit"`
	Variant string      `json:"variant"`
	N       int         `json:"n"`    // observations, failed requests included
	Over    int         `json:"over"` // failed requests: beyond every point
	Points  []Point     `json:"points"`
}

// Point says that Share of the observations are at most Value.
type Point struct {
	Value float64 `json:"value"`
	Share float64 `json:"share"`
}

// Series is what one variant did over the run, warm-up included, in bins of
// equal length from the epoch.
type Series struct {
	Variant   string    `json:"variant"`
	Bin       int       `json:"bin_seconds"`
	Sent      []int     `json:"sent"`                          // requests whose first byte was written in the bin
	Completed []int     `json:"completed"`                     // by the end of their answers
	Failed    []int     `json:"failed"`                        // by the instant they were given up
	InFlight  []int     `json:"in_flight"`                     // most at once in the bin
	Tokens    []float64 `json:"output_tokens_per_s,omitempty"` // absent: the server tells no token counts
}

// Client is the load client's certificate, with a line for people.
type Client struct {
	record.Certificate
	Line       string         `json:"line"`
	SendLagP99 *time.Duration `json:"send_lag_p99_ns"` // the client's own, of all measured requests; null: none was sent
}

// Build gathers everything that a report shows. The verdict may be nil when
// there is no contract. Build changes neither manifest, records nor verdict.
//
// Outcomes are those of the checks that the run declared, each shown as a workload
// of its name.
func Build(m *record.Manifest, records []record.Record, v *contract.Verdict, outcomes ...*check.Outcome) *Document {
	if m == nil {
		m = new(record.Manifest)
	}
	d := &Document{
		Schema: Schema,
		Run: Run{
			ID: m.ID, Name: m.Name, Assay: m.Assay, Seed: m.Seed, Salt: m.Salt, Start: m.Start, Elapsed: m.Elapsed,
			State: m.State, SuiteFile: m.SuiteFile, Digest: m.Digest, Gaps: m.Gaps, Stops: m.Stops, Foreseen: m.Foreseen, Lock: m.Lock,
		},
		Verdict: v, Ledger: m.Ledger, Host: m.Host, Notes: slices.Concat(gapNotes(m, records), stopNotes(m, v), foreseenNotes(m), m.Notes), Suite: m.Suite,
	}
	b := builder{doc: d, records: records, windows: m.Windows, outcomes: outcomes, checks: declared(outcomes)}
	b.name(m)
	b.judged()
	for _, w := range b.workloads(m) {
		if o := b.outcome(w.Name); o != nil {
			d.Workloads = append(d.Workloads, b.checked(o))
			continue
		}
		measured := b.workload(w)
		b.engineRows(&measured, m.Engines)
		d.Workloads = append(d.Workloads, measured)
	}
	d.Alerts = append(marks(v), b.alerts(m)...)
	d.Client = client(m, records, d)
	d.Series = series(d.Variants, records)
	d.Footnotes = b.notes.texts
	return scrub(d)
}

// builder holds what the parts of a Document share while it is built.
type builder struct {
	doc     *Document
	records []record.Record
	windows []record.Window
	notes   footnotes

	outcomes []*check.Outcome
	checks   []contract.Checked
}

// footnotes numbers texts from 1, equal texts alike.
type footnotes struct{ texts []string }

func (f *footnotes) mark(text string) int {
	i := slices.Index(f.texts, text)
	if i < 0 {
		f.texts = append(f.texts, text)
		i = len(f.texts) - 1
	}
	return i + 1
}

// add appends the mark of text to marks, once.
func (f *footnotes) add(marks []int, text string) []int {
	if n := f.mark(text); !slices.Contains(marks, n) {
		marks = append(marks, n)
	}
	return marks
}

// name lists the variants and says which two are compared.
func (b *builder) name(m *record.Manifest) {
	d := b.doc
	d.Variants = slices.Clone(m.Variants)
	has := func(name string) bool {
		return slices.ContainsFunc(d.Variants, func(v record.VariantInfo) bool { return v.Name == name })
	}
	for i := range b.records {
		name := b.records[i].Variant
		if i > 0 && name == b.records[i-1].Variant || has(name) {
			continue
		}
		d.Variants = append(d.Variants, record.VariantInfo{Name: name})
	}
	if d.Verdict != nil && has(d.Verdict.Candidate) {
		d.Candidate = d.Verdict.Candidate
		if has(d.Verdict.Baseline) {
			d.Baseline = d.Verdict.Baseline
		}
	}
	if d.Candidate == "" && has("candidate") {
		d.Candidate = "candidate"
	}
	if d.Candidate == "" && len(d.Variants) > 0 {
		d.Candidate = d.Variants[len(d.Variants)-1].Name
	}
	if d.Baseline == "" && has("baseline") {
		d.Baseline = "baseline"
	}
	if d.Baseline == "" {
		for _, v := range d.Variants {
			if v.Name != d.Candidate {
				d.Baseline = v.Name
				break
			}
		}
	}
	if d.Baseline == d.Candidate {
		d.Baseline = ""
	}
}

func (b *builder) judged() {
	d := b.doc
	if d.Verdict == nil {
		d.Reason = "no contract: nothing was judged"
		return
	}
	d.Grade, d.Reason = d.Verdict.Grade.String(), d.Verdict.Reason
}

// workloads lists those of the manifest, then those that only records know.
func (b *builder) workloads(m *record.Manifest) []record.WorkloadInfo {
	out := slices.Clone(m.Workloads)
	for _, o := range b.outcomes {
		out = append(out, record.WorkloadInfo{Name: o.Check, Planned: -1})
	}
	for i := range b.records {
		name := b.records[i].Workload
		if !slices.ContainsFunc(out, func(w record.WorkloadInfo) bool { return w.Name == name }) {
			out = append(out, record.WorkloadInfo{Name: name, Planned: -1})
		}
	}
	return out
}

// marks tells what a gate has put on the candidate without failing it.
func marks(v *contract.Verdict) (out []string) {
	if v == nil {
		return nil
	}
	for _, c := range v.Clauses {
		if c.Mark == "" {
			continue
		}
		why := c.Reason
		for _, r := range c.Results {
			if r.Mark != "" {
				why = r.ID + " " + r.Reason
				break
			}
		}
		out = append(out, fmt.Sprintf("THE CANDIDATE IS MARKED %s by %s: %s", strings.ToUpper(c.Mark), c.ID, why))
	}
	return out
}

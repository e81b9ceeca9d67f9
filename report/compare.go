package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// CompareSchema names the JSON form of a Comparison.
const CompareSchema = "assay.comparison/1"

// Side is one variant of one run.
type Side struct {
	Label    string // how people call it
	Manifest *record.Manifest
	Records  []record.Record
	Variant  string
}

// Comparison is two sides, metric by metric. It judges nothing. Its JSON form is
// stable under [CompareSchema] and holds no NaN and no infinity.
type Comparison struct {
	Schema    string         `json:"schema"`
	A         Compared       `json:"a"`
	B         Compared       `json:"b"`
	Warnings  []string       `json:"warnings"` // why the two may not be comparable
	Workloads []CompareTable `json:"workloads"`
	Footnotes []string       `json:"footnotes,omitempty"` // Marks count them from 1
	Notes     []string       `json:"notes,omitempty"`     // on the comparison as a whole
}

// Compared says what a side is.
type Compared struct {
	Label   string `json:"label"`
	Run     string `json:"run"`
	Variant string `json:"variant"`
	Model   string `json:"model,omitempty"`
	URL     string `json:"url,omitempty"`
	Seed    uint64 `json:"seed"`
	State   string `json:"state"`
	Fit     bool   `json:"client_fit"`
}

// CompareTable is one workload that both sides have.
type CompareTable struct {
	Name   string            `json:"name"`
	Counts []contract.Counts `json:"counts"` // of A, then of B
	Rows   []CompareRow      `json:"rows"`
	Marks  []int             `json:"marks,omitempty"`
}

// CompareRow is one quantity on both sides.
type CompareRow struct {
	Name       string            `json:"name"`
	Doc        string            `json:"doc,omitempty"`
	Quantity   contract.Quantity `json:"quantity"`
	Unit       record.Unit       `json:"unit"`
	A          Cell              `json:"a"`
	B          Cell              `json:"b"`
	Change     Change            `json:"change"`     // of B against A
	Detectable *float64          `json:"detectable"` // least true change found with a power of 80 %: relative for a ratio, else in Unit; null: none, however large
	Least      Shown             `json:"detectable_shown"`
	Word       string            `json:"word"` // higher, lower, or no difference shown
}

// The words of a comparison: what B is against A.
const (
	wordHigher = "higher"
	wordLower  = "lower"
	wordNone   = "no difference shown"
)

// Compare measures both sides on every workload that they share.
func Compare(a, b Side) *Comparison {
	for _, s := range []*Side{&a, &b} {
		if s.Manifest == nil {
			s.Manifest = new(record.Manifest)
		}
	}
	c := &Comparison{Schema: CompareSchema, A: a.describe(), B: b.describe(), Warnings: []string{}, Workloads: []CompareTable{}}
	var notes footnotes
	theirs := b.workloads()
	var common []string
	for _, name := range a.workloads() {
		if !slices.Contains(theirs, name) {
			c.warn("workload %s was measured for %s only", name, a.Label)
			continue
		}
		common = append(common, name)
	}
	for _, name := range theirs {
		if !slices.Contains(a.workloads(), name) {
			c.warn("workload %s was measured for %s only", name, b.Label)
		}
	}
	c.comparable(a, b, common)
	for _, name := range common {
		c.Workloads = append(c.Workloads, compareWorkload(a, b, name, &notes))
	}
	if len(common) == 0 {
		c.warn("the two sides have no workload in common")
	}
	lines := 0
	for _, w := range c.Workloads {
		lines += len(w.Rows)
	}
	if lines > 1 {
		c.Notes = append(c.Notes, fmt.Sprintf("each line has a chance of 5 %% to show a difference where there is none: of %d such lines about %s", lines, plain(float64(lines)*(1-confidence), 2)))
	}
	c.Footnotes = notes.texts
	return scrub(c)
}

func (c *Comparison) warn(format string, a ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, a...))
}

func (s Side) describe() Compared {
	m := s.Manifest
	d := Compared{Label: s.Label, Run: m.ID, Variant: s.Variant, Seed: m.Seed, State: m.State, Fit: m.Client.Fit}
	if v, ok := s.info(); ok {
		d.Model, d.URL = v.Model, v.URL
	}
	return d
}

func (s Side) info() (record.VariantInfo, bool) {
	for _, v := range s.Manifest.Variants {
		if v.Name == s.Variant {
			return v, true
		}
	}
	return record.VariantInfo{}, false
}

// workloads are those of the manifest and those that have records of the side.
func (s Side) workloads() (names []string) {
	for _, w := range s.Manifest.Workloads {
		names = append(names, w.Name)
	}
	for i := range s.Records {
		r := &s.Records[i]
		if r.Variant == s.Variant && r.Phase == record.Measured && !slices.Contains(names, r.Workload) {
			names = append(names, r.Workload)
		}
	}
	return names
}

// comparable says what else differs than the variant.
func (c *Comparison) comparable(a, b Side, common []string) {
	m, n := a.Manifest, b.Manifest
	for _, s := range []Side{a, b} {
		for _, text := range (&builder{records: s.Records}).alerts(s.Manifest) {
			c.warn("%s: %s", s.Label, text)
		}
		if !s.Manifest.Client.Fit {
			why := "it was never certified"
			if r := s.Manifest.Client.Reasons; len(r) > 0 {
				why = strings.Join(r, "; ")
			}
			c.warn("the client of %s was unfit: %s", s.Label, why)
		}
		if st := s.Manifest.State; st != "done" {
			c.warn("the run of %s is not done: %s", s.Label, orElse(st, "state unknown"))
		}
		if len(s.Manifest.Stops) > 0 {
			c.warn("the run of %s stopped early, at a moment that depends on what it measured: its intervals are those of a run of a fixed size, and right less often than they say", s.Label)
		}
	}
	if m.ID == n.ID && m.ID != "" {
		return // one run: one plan, one seed, one host
	}
	if m.Seed != n.Seed {
		c.warn("the seeds differ: %d and %d", m.Seed, n.Seed)
	}
	if m.Assay != n.Assay {
		c.warn("the versions of assay differ: %s and %s", orElse(m.Assay, "unknown"), orElse(n.Assay, "unknown"))
	}
	for _, name := range common {
		x, y := planOf(m, name), planOf(n, name)
		if x.Plan != y.Plan {
			c.warn("workload %s: the plans differ (%s and %s), so the two were not asked the same", name, orElse(x.Arrivals, "unknown"), orElse(y.Arrivals, "unknown"))
		}
	}
	keys := maps.Clone(m.Host)
	if keys == nil {
		keys = map[string]string{}
	}
	maps.Copy(keys, n.Host)
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if m.Host[k] != n.Host[k] {
			c.warn("the hosts differ in %s: %s and %s", k, orElse(m.Host[k], "unknown"), orElse(n.Host[k], "unknown"))
		}
	}
	c.warn("the two runs were not interleaved: a drift of the machine between them looks like a difference")
}

func planOf(m *record.Manifest, workload string) record.WorkloadInfo {
	for _, w := range m.Workloads {
		if w.Name == workload {
			return w
		}
	}
	return record.WorkloadInfo{}
}

// builder measures the side alone.
func (s Side) builder() *builder {
	return &builder{doc: &Document{Variants: []record.VariantInfo{{Name: s.Variant}}, Candidate: s.Variant}, records: s.only(), windows: s.Manifest.Windows}
}

func (s Side) only() []record.Record {
	return slices.DeleteFunc(slices.Clone(s.Records), func(r record.Record) bool { return r.Variant != s.Variant })
}

func compareWorkload(a, b Side, name string, notes *footnotes) CompareTable {
	t := CompareTable{Name: name}
	x, y := a.builder(), b.builder()
	t.Counts = append(x.counts(name), y.counts(name)...)
	t.Counts[0].Variant, t.Counts[1].Variant = a.Label, b.Label
	absent := map[string][]string{}
	var whys []string
	for _, q := range shown {
		row, why := compareRow(x, y, a, b, name, q, notes)
		if why == "" {
			t.Rows = append(t.Rows, row)
			continue
		}
		if absent[why] == nil {
			whys = append(whys, why)
		}
		absent[why] = append(absent[why], row.Name)
	}
	for _, why := range whys {
		t.Marks = notes.add(t.Marks, "not shown: "+strings.Join(absent[why], ", ")+": "+why)
	}
	return t
}

func compareRow(x, y *builder, a, b Side, workload string, q contract.Quantity, notes *footnotes) (CompareRow, string) {
	m, _ := record.Find(q.Metric)
	row := CompareRow{Name: title(q), Doc: m.Doc, Quantity: q, Word: wordNone}
	row.A, row.Unit = x.cell(workload, q, a)
	row.B, row.Unit = y.cell(workload, q, b)
	if !row.A.Figure.Defined() && !row.B.Figure.Defined() {
		return row, absence([]Cell{row.A, row.B})
	}
	s := scaleOf(row.Unit, row.A.Figure.Value, row.B.Figure.Value)
	for _, c := range []*Cell{&row.A, &row.B} {
		c.Shown.Value, c.Shown.Interval = s.figure(c.Figure.Estimate)
		c.Shown.Marks = notes.figure(c.Figure.Estimate)
	}
	row.Change = *notes.change(row.Unit, q.Stat, row.B.Figure.Estimate, row.A.Figure.Estimate)
	row.judge(notes)
	return row, ""
}

// cell measures a quantity of the side.
func (b *builder) cell(workload string, q contract.Quantity, s Side) (Cell, record.Unit) {
	est, unit := b.measure(q, s.Variant, workload)
	return Cell{Variant: s.Label, Figure: contract.Figure{Estimate: est}}, unit
}

// judge fills in the word and what could have been detected.
func (r *CompareRow) judge(notes *footnotes) {
	est := r.Change.Figure.Estimate
	c := changeScale(r.Change.Is, r.Unit, est)
	switch {
	case !est.Defined():
	case est.Lo > c.zero:
		r.Word = wordHigher
	case est.Hi < c.zero:
		r.Word = wordLower
	}
	least := stat.Detectable(est)
	why := ""
	switch {
	case math.IsInf(least, 0) || math.IsNaN(least):
		why = "without both bounds of the change there is no least detectable one"
	case least == 0:
		why = "an interval without width does not tell what could be detected"
	}
	if why != "" {
		r.Least = Shown{Value: missing, Marks: notes.add(nil, why)}
		return
	}
	r.Detectable = &least
	r.Least.Value = "±" + fixed(least*c.by, places(least*c.by, 2)) + c.unit
}

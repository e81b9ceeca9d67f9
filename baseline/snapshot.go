package baseline

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// Snapshot is what one run found of one variant. Take makes one; it is not
// changed afterwards.
type Snapshot struct {
	ID         string    `json:"id"` // twelve hex digits of a SHA-256 over run, variant, records and key
	Key        Key       `json:"key"`
	Run        string    `json:"run"`  // the run's id
	Path       string    `json:"path"` // where its directory was
	Variant    string    `json:"variant"`
	Suite      string    `json:"suite_digest"`
	Records    string    `json:"records_digest"` // hex SHA-256 of the records' file
	Assay      string    `json:"assay"`          // version of the program that measured
	Taken      time.Time `json:"taken"`          // when the run began
	Quarantine string    `json:"quarantine,omitempty"`
	Figures    []Figure  `json:"figures,omitempty"`
}

// Figure is one quantity of a snapshot, on one workload. A quantile is that of the
// requests that were served: those that failed must not make the next run look
// good.
type Figure struct {
	Quantity contract.Quantity `json:"quantity"`
	Workload string            `json:"workload"`
	Unit     record.Unit       `json:"unit"`
	Levels   []contract.Figure `json:"levels"` // the value with its intervals at 90 % and 98 %, two-sided

	Signature *record.Signature `json:"signature,omitempty"` // how a value of a check came about
}

// levels are the two-sided confidences that figures are kept at: their ends are
// one-sided bounds at 95 and 99 %.
var levels = []float64{0.9, 0.98}

// Value is the point estimate; NaN if there is none.
func (f Figure) Value() float64 { return f.Levels[0].Value }

// Source is what a snapshot is taken of.
type Source struct {
	Manifest *record.Manifest
	Evidence contract.Evidence // with why the run proves nothing, if so
	Verdict  *contract.Verdict // of the run's own contract; nil: it had none
	Path     string
	Records  string // digest
	Key      Key
	Also     []contract.Quantity // beyond the usual ones: those of the gates
}

// usual are the quantities that every snapshot keeps.
func usual() []contract.Quantity {
	out := []contract.Quantity{
		{Stat: "rate", Metric: "output_tokens"}, {Stat: "rate", Metric: "requests"}, {Stat: "share", Metric: "failed"},
	}
	for _, m := range []string{"ttft", "tpot", "e2e"} {
		for _, p := range []float64{0.5, 0.95, 0.99} {
			out = append(out, contract.Quantity{Stat: "quantile", P: p, Metric: m})
		}
	}
	return out
}

// mostValues bounds the values of checks that a snapshot keeps.
const mostValues = 100

// Take makes a snapshot of the candidate of a run.
func Take(s Source) (Snapshot, error) {
	if err := s.Key.Validate(); err != nil {
		return Snapshot{}, err
	}
	m := s.Manifest
	if y := m.Start.Year(); y < 1970 || y > 2200 {
		return Snapshot{}, fmt.Errorf("taking a snapshot of %.80q: its manifest does not say when it began\n  hint: measure again with this version", s.Path)
	}
	out := Snapshot{
		Key: s.Key, Run: m.ID, Path: strings.ToValidUTF8(s.Path, "\ufffd"), Variant: s.Evidence.Candidate,
		Suite: m.Digest, Records: s.Records, Assay: m.Assay, Taken: m.Start.UTC(),
	}
	for _, text := range []string{out.Run, out.Variant, out.Path} {
		if text == "" || !plain(text) {
			return Snapshot{}, fmt.Errorf("taking a snapshot of %.80q: the name of its run, variant or folder is missing, or is no plain text\n  hint: move the run to a folder with a plain name", s.Path)
		}
	}
	served := s.Evidence
	served.Records = slices.DeleteFunc(slices.Clone(served.Records), func(r record.Record) bool { return r.Outcome.Group() == record.GroupFailed })
	failed := 0.0
	for _, w := range workloads(m, out.Variant) {
		for _, q := range quantities(s, out.Variant, w) {
			from := s.Evidence
			if q.Stat == "quantile" {
				from = served
			}
			f := Figure{Quantity: q, Workload: w}
			for _, level := range levels {
				e, unit, err := contract.Measure(from, q, out.Variant, w, nil, level)
				if err != nil {
					return Snapshot{}, fmt.Errorf("taking a snapshot of %s: %w", s.Path, err)
				}
				f.Unit, f.Levels = unit, append(f.Levels, contract.Figure{Estimate: usable(e)})
			}
			if q.Metric == "failed" && q.Stat == "share" {
				failed = max(failed, f.Value())
			}
			out.Figures = append(out.Figures, f)
		}
	}
	if err := out.check(s); err != nil {
		return Snapshot{}, err
	}
	out.Quarantine = quarantine(s, failed)
	out.ID = out.digest()
	return out, nil
}

// check adds what the checks of the run found of the variant: the means and shares of
// their values, what they estimated as a whole, and what gates ask for. A check that
// proves nothing has no figures.
func (s *Snapshot) check(from Source) error {
	for _, c := range from.Evidence.Checks {
		if c.Why != "" {
			continue
		}
		for _, q := range checked(c, from.Also) {
			f := Figure{Quantity: q, Workload: c.Name}
			if i := slices.IndexFunc(c.Signatures, func(s record.Signature) bool { return s.Value == q.Metric }); i >= 0 {
				f.Signature = &c.Signatures[i]
			}
			for _, level := range levels {
				e, unit, err := contract.Measure(from.Evidence, q, s.Variant, c.Name, nil, level)
				if err != nil {
					return fmt.Errorf("taking a snapshot of %s: %w", from.Path, err)
				}
				f.Unit, f.Levels = unit, append(f.Levels, contract.Figure{Estimate: usable(e)})
			}
			s.Figures = append(s.Figures, f)
		}
	}
	return nil
}

// checked are the quantities that are kept of a check.
func checked(c contract.Checked, also []contract.Quantity) (out []contract.Quantity) {
	for _, m := range c.Metrics[:min(len(c.Metrics), mostValues)] {
		q := contract.Quantity{Stat: "mean", Metric: m.Name}
		switch {
		case m.Whole:
			q.Stat = "estimate"
		case m.Indicator:
			q.Stat = "share"
		}
		out = append(out, q)
		for _, a := range also {
			if a.Metric == m.Name && a != q {
				out = append(out, a)
			}
		}
	}
	return out
}

// usable takes the value away from an estimate that is no evidence.
func usable(e stat.Estimate) stat.Estimate {
	for _, w := range e.Warnings {
		if w.Code == "gap" {
			return stat.Estimate{Value: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1), Confidence: e.Confidence, N: e.N, Method: e.Method, Warnings: []stat.Warning{{Code: stat.CodeUndefined, Text: w.Text}}}
		}
	}
	return e
}

// workloads lists the workloads of the run that the variant was measured on.
func workloads(m *record.Manifest, variant string) []string {
	var out []string
	for _, w := range m.Workloads {
		if slices.ContainsFunc(m.Windows, func(x record.Window) bool { return x.Workload == w.Name && x.Variant == variant }) {
			out = append(out, w.Name)
		}
	}
	return out
}

// quantities are the usual ones, those of the gates and the means of the values
// that checks wrote.
func quantities(s Source, variant, workload string) []contract.Quantity {
	out := append(usual(), slices.DeleteFunc(slices.Clone(s.Also), func(q contract.Quantity) bool { return ofCheck(s.Evidence.Checks, q.Metric) })...)
	values := map[string]bool{}
	for i := range s.Evidence.Records {
		r := &s.Evidence.Records[i]
		if r.Variant != variant || r.Workload != workload {
			continue
		}
		for name := range r.Values {
			if values[name] || len(values) >= mostValues || !plain(name) {
				continue
			}
			values[name] = true
			out = append(out, contract.Quantity{Stat: "mean", Metric: "value." + name})
		}
	}
	slices.SortFunc(out, func(a, b contract.Quantity) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}

// ofCheck reports whether a check writes the metric.
func ofCheck(checks []contract.Checked, metric string) bool {
	return slices.ContainsFunc(checks, func(c contract.Checked) bool {
		return slices.ContainsFunc(c.Metrics, func(m record.Metric) bool { return m.Name == metric })
	})
}

// mostFailed is the share of failed requests beyond which a run is no yardstick.
const mostFailed = 0.02

// quarantine says why a run is kept and never used; "" if it is sound.
func quarantine(s Source, failed float64) string {
	switch v := s.Verdict; {
	case len(s.Evidence.Unfit) > 0:
		return "it proves nothing: " + s.Evidence.Unfit[0]
	case v != nil && v.Grade != contract.Pass:
		return fmt.Sprintf("its verdict is %s: %s", v.Grade, v.Reason)
	case failed > mostFailed:
		return fmt.Sprintf("%.1f %% of its requests failed: it is no yardstick", 100*failed)
	}
	return ""
}

func (s Snapshot) digest() string {
	b, err := json.Marshal([]any{s.Run, s.Variant, s.Records, s.Key})
	if err != nil {
		panic("baseline: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

// Figure returns the figure of a quantity on a workload.
func (s Snapshot) Figure(q contract.Quantity, workload string) (Figure, bool) {
	i := slices.IndexFunc(s.Figures, func(f Figure) bool { return f.Quantity == q && f.Workload == workload })
	if i < 0 {
		return Figure{}, false
	}
	return s.Figures[i], true
}

// reference is the snapshot as the registered values of a contract. What could not
// be measured has no value there, and says why.
func (s Snapshot) reference() contract.Reference {
	var out contract.Reference
	for _, f := range s.Figures {
		v := contract.Registered{Quantity: f.Quantity, Workload: f.Workload, Value: f.Value(), Signature: f.Signature}
		for _, l := range f.Levels {
			v.Figures = append(v.Figures, l.Estimate)
		}
		out.Values = append(out.Values, v)
	}
	return out
}

package baseline

import (
	"context"
	"slices"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/stat"
)

// BacktestSchema names the JSON form of a Backtested.
const BacktestSchema = "assay.baseline-backtest/1"

// Backtested is what gates and fences would have done to a registry's history.
type Backtested struct {
	Schema      string `json:"schema"`
	Registry    string `json:"registry"`
	Snapshots   int    `json:"snapshots"`
	Quarantined int    `json:"quarantined"` // of them; they are not replayed
	Rows        []Row  `json:"rows"`
}

// Row is one gate against one reference, or one fence.
type Row struct {
	ID      string         `json:"id"`
	As      string         `json:"as"` // gate or mark, against baseline or anchor; fence; shift
	Need    string         `json:"need"`
	Tally   contract.Tally `json:"tally"`          // false alarms are those on runs that were promoted, by then or later
	Nominal float64        `json:"nominal"`        // the rate of false alarms at the limit, or of a fence on independent points, at most
	Why     string         `json:"why,omitempty"`  // of the last undecided one
	Last    string         `json:"last,omitempty"` // the last snapshot that it fired on
	fired   []bool         // on those promoted
}

// Backtest replays the history of a registry in the order in which it happened: each
// sound snapshot is held against what was the baseline and the anchor of its key
// when it was added, figure against figure, and against the fence of those before.
func (r *Registry) Backtest(ctx context.Context, p Policy) (Backtested, error) {
	p = p.Filled()
	out := Backtested{Schema: BacktestSchema, Registry: r.String(), Rows: []Row{}}
	all, err := entries(ctx, r.db, true, "1 = 1")
	if err != nil {
		return out, r.trouble("reading", err)
	}
	happened, err := events(ctx, r.db, "1 = 1")
	if err != nil {
		return out, r.trouble("reading", err)
	}
	replay(&out, all, happened, p)
	return out, nil
}

// keyed is where the replay of a key stands.
type keyed struct {
	active  []string // ids in the order of promotion
	anchor  string
	history []Snapshot
}

func replay(out *Backtested, all []Entry, happened []Event, p Policy) {
	byID, promoted := map[string]*Entry{}, map[string]bool{}
	for i := range all {
		byID[all[i].ID] = &all[i]
		if all[i].Quarantine != "" {
			out.Quarantined++
		}
	}
	out.Snapshots = len(all)
	for _, e := range happened {
		promoted[e.Snapshot] = promoted[e.Snapshot] || e.What == Active
	}
	rows := newRows(p)
	keys := map[Key]*keyed{}
	for _, e := range happened {
		s, ok := byID[e.Snapshot]
		if !ok {
			continue
		}
		k := keys[s.Key]
		if k == nil {
			k = new(keyed)
			keys[s.Key] = k
		}
		switch e.What {
		case Candidate:
			if s.Quarantine == "" {
				rows.run(k, byID, s.Snapshot, p, promoted[s.ID])
				k.history = append(k.history, s.Snapshot)
			}
		case Active:
			k.active = append(k.active, s.ID)
		case Retired:
			k.active = slices.DeleteFunc(k.active, func(id string) bool { return id == s.ID })
		case anchored:
			k.anchor = s.ID
		}
	}
	for _, row := range rows {
		row.Tally.False = contract.ShareOf(row.fired)
		out.Rows = append(out.Rows, *row)
	}
}

// rows are, for each gate, that against the baseline, that against the anchor, its
// fence and its shift.
type rows []*Row

const rowsOfGate = 4

func newRows(p Policy) rows {
	var out rows
	for _, g := range p.Gates {
		as := "gate"
		if g.Mark != "" {
			as = "mark"
		}
		confidence := float64(g.Confidence)
		if confidence == 0 {
			confidence = contract.DefaultConfidence
		}
		need := g.Need.String()
		out = append(out,
			&Row{ID: g.ID, As: as + ", baseline", Need: need, Nominal: round(1 - confidence)},
			&Row{ID: g.ID, As: as + ", anchor", Need: need, Nominal: round(1 - confidence)},
			&Row{ID: g.ID, As: "fence", Need: g.Need.Quantity.String(), Nominal: alarms(p.Window, p)},
			&Row{ID: g.ID, As: "shift", Need: g.Need.Quantity.String(), Nominal: 1.0 / lasting},
		)
	}
	return out
}

// run holds one snapshot against what there was.
func (rs rows) run(k *keyed, byID map[string]*Entry, s Snapshot, p Policy, good bool) {
	for i, g := range p.Gates {
		of := rs[rowsOfGate*i:]
		baseline := ""
		if n := len(k.active); n > 0 {
			baseline = k.active[n-1]
		}
		for j, id := range []string{baseline, k.anchor} {
			grade, why := contract.Inconclusive, "there was no baseline yet"
			if ref := byID[id]; ref != nil {
				grade, why = against(g, s, ref.Snapshot)
			}
			of[j].count(s.ID, grade == contract.Fail, grade == contract.Inconclusive, why, good)
		}
		outside, shifted, why := screened(g, s, k.history, p)
		of[2].count(s.ID, outside, why != "", why, good)
		of[3].count(s.ID, shifted, why != "", why, good)
	}
}

func (r *Row) count(id string, fired, undecided bool, why string, good bool) {
	r.Tally.Runs++
	switch {
	case undecided:
		r.Tally.Undecided++
		r.Why = why
		return
	case fired:
		r.Tally.Fired++
		r.Last = id
	}
	if good {
		r.fired = append(r.fired, fired)
	}
}

// against holds the figures of a snapshot against those of another one, on every
// workload of the gate.
func against(g Gate, s, ref Snapshot) (contract.Grade, string) {
	confidence := float64(g.Confidence)
	if confidence == 0 {
		confidence = contract.DefaultConfidence
	}
	var grades []contract.Grade
	why := "the snapshot has no such figure"
	for _, f := range s.Figures {
		if f.Quantity != g.Need.Quantity || len(g.On) > 0 && !slices.Contains(g.On, f.Workload) {
			continue
		}
		o, ok := ref.Figure(f.Quantity, f.Workload)
		if !ok {
			grades = append(grades, contract.Inconclusive)
			why = "the reference has no such figure"
			continue
		}
		if f.Signature != nil && o.Signature != nil {
			if differs := f.Signature.Differs(o.Signature); differs != "" {
				grades, why = append(grades, contract.Inconclusive), "the figures came about in different ways: "+differs
				continue
			}
		}
		_, grade := g.Need.Against(f.Unit, f.at(2*confidence-1), o.at(2*confidence-1))
		if grade == contract.Inconclusive {
			why = "the intervals reach over the limit, or there are none"
		}
		grades = append(grades, grade)
	}
	if len(grades) == 0 {
		return contract.Inconclusive, why
	}
	return contract.Worst(grades...), why
}

// at is the figure at a confidence that is not less; without one, it has no bounds.
func (f Figure) at(confidence float64) stat.Estimate {
	for _, l := range f.Levels {
		if l.Confidence >= confidence-1e-9 {
			return l.Estimate
		}
	}
	return usable(stat.Estimate{Warnings: []stat.Warning{{Code: "gap", Text: "its interval is registered at a lower confidence"}}})
}

// screened asks the fence and the shift of the gate's quantity, on any workload.
func screened(g Gate, s Snapshot, history []Snapshot, p Policy) (outside, shifted bool, why string) {
	if len(history) > p.Window {
		history = history[len(history)-p.Window:]
	}
	why = "the snapshot has no such figure"
	for _, f := range s.Figures {
		if f.Quantity != g.Need.Quantity || len(g.On) > 0 && !slices.Contains(g.On, f.Workload) {
			continue
		}
		l := glance(f, series(history, f.Quantity, f.Workload), p)
		if why = l.Why; why != "" {
			return false, false, why
		}
		outside, shifted = outside || l.Outside, shifted || l.Shifted
	}
	return outside, shifted, why
}

func round(x float64) float64 { return float64(int(x*1e6+0.5)) / 1e6 }

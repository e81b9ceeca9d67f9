package contract

import (
	"cmp"
	"slices"
	"time"

	"github.com/assay-llm/assay/stat"
)

// Label says what is known of a recorded run.
type Label string

// The labels of recorded runs. An unlabelled run tells how often a clause fires,
// not whether it should.
const (
	Unlabelled Label = ""
	Good       Label = "good" // nothing was wrong: a clause that fires is a false alarm
	Bad        Label = "bad"  // something was: a clause that does not fire missed it
)

// Recorded is a run to hold a contract against.
type Recorded struct {
	Name     string
	Label    Label
	Evidence Evidence
}

// Backtested is what a contract would have done to recorded runs.
type Backtested struct {
	Contract string          `json:"contract,omitempty"`
	Runs     []BacktestRun   `json:"runs"`
	Clauses  []ClauseHistory `json:"clauses"`
}

// BacktestRun is one run as the whole contract judges it.
type BacktestRun struct {
	Run    string   `json:"run"`
	Label  Label    `json:"label,omitempty"`
	Grade  Grade    `json:"grade"`
	Reason string   `json:"reason"`
	Unfit  []string `json:"unfit,omitempty"` // why the run proves nothing: no clause counts it
}

// ClauseHistory is how often one clause would have fired: as a gate, when it fails;
// as a live rule, when it acts.
type ClauseHistory struct {
	ID    string `json:"id"`
	Need  string `json:"need,omitempty"`
	Gate  Tally  `json:"gate"`
	Rule  *Tally `json:"rule,omitempty"`  // null: the clause has no live rule
	Times int    `json:"times,omitempty"` // how often the live rule began to act, in all runs
}

// Tally counts runs. Undecided are those in which the clause was inconclusive as a
// gate, or in which a live rule was inconclusive at every look: that it did not
// fire there says nothing, so the shares are of the others.
type Tally struct {
	Runs      int     `json:"runs"` // that prove anything
	Decided   int     `json:"decided"`
	Fired     int     `json:"fired"`
	Undecided int     `json:"undecided"`
	Because   string  `json:"because,omitempty"`      // of the first undecided run: its name, and what was missing
	False     *Figure `json:"false_alarms,omitempty"` // share of the decided good runs in which it fired, at 95 %, Clopper and Pearson; null: there is none
	Found     *Figure `json:"found,omitempty"`        // share of the decided bad runs in which it fired; null: there is none
}

// Backtest holds the contract against recorded runs. Live rules look every so often.
func Backtest(c *Contract, runs []Recorded, every time.Duration) Backtested {
	out := Backtested{Contract: c.Name, Runs: []BacktestRun{}, Clauses: []ClauseHistory{}}
	var gates, rules []*counter
	clauses := c.named()
	for range clauses {
		gates, rules = append(gates, new(counter)), append(rules, new(counter))
	}
	times := make([]int, len(clauses))
	for _, r := range runs {
		v := Evaluate(c, r.Evidence)
		out.Runs = append(out.Runs, BacktestRun{r.Name, r.Label, v.Grade, v.Reason, v.Unfit})
		if len(v.Unfit) > 0 {
			continue
		}
		acted, undecided := watched(c, r.Evidence, every)
		for i, clause := range clauses {
			why := ""
			if v.Clauses[i].Grade == Inconclusive {
				why = r.Name + ": " + v.Clauses[i].Reason
			}
			gates[i].add(r.Label, v.Clauses[i].Grade == Fail, why)
			if why = undecided[clause.ID]; acted[clause.ID] > 0 {
				why = "" // it did fire, on whatever grounds
			} else if why != "" {
				why = r.Name + ": " + why
			}
			rules[i].add(r.Label, acted[clause.ID] > 0, why)
			times[i] += acted[clause.ID]
		}
	}
	for i, clause := range clauses {
		h := ClauseHistory{ID: clause.ID, Need: clause.Need.String(), Gate: gates[i].tally()}
		if !clause.Live.IsZero() {
			t := rules[i].tally()
			h.Rule, h.Times = &t, times[i]
		}
		out.Clauses = append(out.Clauses, h)
	}
	return out
}

// watched replays a run: how often each rule began to act, and, of those that were
// inconclusive at every look, the last reason.
func watched(c *Contract, e Evidence, every time.Duration) (acted map[string]int, undecided map[string]string) {
	acted, undecided = map[string]int{}, map[string]string{}
	decided := map[string]bool{}
	replay(c, NewHistory(testEpoch, e), every, func(clause string, l look) {
		if decided[clause] = decided[clause] || l.grade != Inconclusive; decided[clause] {
			delete(undecided, clause)
		} else {
			undecided[clause] = l.reason
		}
	}, func(d Decision) {
		if (d.To == Acting || d.To == Latched) && len(d.Do) > 0 {
			acted[d.Clause]++
		}
	})
	return acted, undecided
}

// counter counts runs by label.
type counter struct {
	fired, undecided int
	because          string
	all, good, bad   []bool // fired, by decided run
}

func (c *counter) add(l Label, fired bool, undecided string) {
	if undecided != "" {
		c.undecided++
		c.because = cmp.Or(c.because, undecided)
		return
	}
	if fired {
		c.fired++
	}
	c.all = append(c.all, fired)
	switch l {
	case Good:
		c.good = append(c.good, fired)
	case Bad:
		c.bad = append(c.bad, fired)
	}
}

func (c *counter) tally() Tally {
	n := len(c.all)
	return Tally{n + c.undecided, n, c.fired, c.undecided, c.because, ShareOf(c.good), ShareOf(c.bad)}
}

// ShareOf is the share of runs in which something fired, with the exact 95 %
// interval of Clopper and Pearson; nil of no run.
func ShareOf(fired []bool) *Figure {
	if len(fired) == 0 {
		return nil
	}
	k := len(slices.DeleteFunc(slices.Clone(fired), func(f bool) bool { return !f }))
	return &Figure{stat.ExactShare(k, len(fired), 0.95)}
}

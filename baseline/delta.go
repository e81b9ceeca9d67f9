package baseline

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/assay-llm/assay/contract"
)

// Schema names the JSON form of a Delta.
const Schema = "assay.delta/1"

// Delta is what a run is compared with, as it stood when the run ended: with it and
// the run's records the same results come out again. Its JSON form is stable under
// Schema.
type Delta struct {
	Schema     string      `json:"schema"`
	Registry   string      `json:"registry"` // where it is, without a password
	Key        Key         `json:"key"`
	Snapshot   string      `json:"snapshot,omitempty"` // id under which this run was added; "": it was not
	Problem    string      `json:"problem,omitempty"`  // why there is nothing to compare with
	References []Reference `json:"references"`
	Screens    []Screen    `json:"screens"`
}

// Reference is a snapshot that a run is compared with.
type Reference struct {
	Role     string    `json:"role"` // baseline, anchor, or both
	Since    time.Time `json:"since"`
	Snapshot Snapshot  `json:"snapshot"`
}

// The roles of a reference.
const (
	RoleBaseline = "baseline"
	RoleAnchor   = "anchor"
	RoleBoth     = "baseline and anchor"
)

// Compare reads what the snapshot of a run is to be compared with, and screens it
// against the history of its key. What fails becomes the delta's Problem.
func Compare(ctx context.Context, r *Registry, s Snapshot, p Policy) Delta {
	p = p.Filled()
	d := Delta{Schema: Schema, Registry: r.String(), Key: s.Key, References: []Reference{}, Screens: []Screen{}}
	at, err := r.Standing(ctx, s.Key, p.Window+1)
	if err != nil {
		d.Problem = err.Error()
		return d
	}
	both := at.Baseline != nil && at.Anchor != nil && at.Baseline.ID == at.Anchor.ID
	switch {
	case at.Baseline == nil:
		d.Problem = fmt.Sprintf("the registry %s has no active baseline of %s: add a sound run and promote it (assay baseline promote)", r, s.Key)
	case both:
		d.refer(RoleBoth, at.Baseline)
	default:
		d.refer(RoleBaseline, at.Baseline)
	}
	if at.Anchor != nil && !both {
		d.refer(RoleAnchor, at.Anchor)
	}
	if s.Quarantine == "" {
		d.Screens = Screens(at.History, s, p)
	}
	return d
}

func (d *Delta) refer(role string, e *Entry) {
	d.References = append(d.References, Reference{Role: role, Since: e.Taken, Snapshot: e.Snapshot})
}

// Results judges a run by the gates of the policy: one result for the baseline and
// one for the anchor, with those of the gates below it. Without a baseline the one
// result is inconclusive and says why. The evidence is that of the whole run.
func (d *Delta) Results(p Policy, e contract.Evidence) []contract.Result {
	p = p.Filled()
	var out []contract.Result
	if d.Problem != "" || len(d.References) == 0 {
		why := d.Problem
		if why == "" {
			why = "the registry gave nothing to compare with"
		}
		out = append(out, contract.Result{ID: "delta.baseline", Kind: contract.KindClause, Grade: contract.Inconclusive, Reason: why})
	}
	e.Baseline = ""
	for _, ref := range d.References {
		out = append(out, ref.result(d.Key, p, e))
	}
	for _, s := range d.Screens {
		if len(out) > 0 && s.telling() {
			out[0].Notes = append(out[0].Notes, s.String())
		}
	}
	return out
}

// result judges the run against one snapshot.
func (ref Reference) result(k Key, p Policy, e contract.Evidence) contract.Result {
	id := "delta." + RoleBaseline
	if ref.Role == RoleAnchor {
		id = "delta." + RoleAnchor
	}
	if ref.Snapshot.Key != k {
		return contract.Result{ID: id, Kind: contract.KindClause, Grade: contract.Inconclusive, Reason: fmt.Sprintf("the snapshot %s is of %s, and the run of %s: they are never compared", ref.Snapshot.ID, ref.Snapshot.Key, k)}
	}
	c := contract.Contract{Name: id, Reference: ref.Snapshot.reference()}
	for _, g := range p.Gates {
		c.Clauses = append(c.Clauses, g.clause())
	}
	v := contract.Evaluate(&c, e)
	r := contract.Result{ID: id, Kind: contract.KindAll, WrongPass: v.WrongPass, WrongFail: v.WrongFail, Results: v.Clauses[:len(p.Gates)]} // checks that prove nothing stand in the run's own verdict
	marks := ""
	var grades []contract.Grade
	for i := range r.Results {
		g := &r.Results[i]
		if mark := p.Gates[i].Mark; mark != "" && soften(g, mark) {
			marks = mark
		}
		grades = append(grades, g.Grade)
	}
	r.Grade = contract.Worst(grades...)
	against := fmt.Sprintf("against the %s %s of %s", ref.Role, ref.Snapshot.ID, ref.Snapshot.Taken.Format(time.DateOnly))
	switch {
	case r.Grade != contract.Pass:
		for _, g := range r.Results {
			if g.Grade == r.Grade {
				r.Reason = fmt.Sprintf("%s: %s: %s", against, g.ID, g.Reason)
				break
			}
		}
	case marks != "":
		r.Reason = fmt.Sprintf("%s nothing blocks; it is marked %s", against, marks)
	default:
		r.Reason = fmt.Sprintf("%s: all %d gates pass", against, len(r.Results))
	}
	r.Mark = marks
	return r
}

// mostUnserved is the share of failed requests beyond which nothing is a mark only.
const mostUnserved = 0.1

// unserved says why a gate that fails is more than a change to be marked: what it
// judges was not answered. It is "" for a proven change of a service that answers.
func unserved(r *contract.Result) string {
	if len(r.Counts) == 0 || r.Candidate == nil || r.Change == nil {
		return "there is no change that is known"
	}
	c := r.Counts[0]
	switch asked := c.Completed + c.Failed; {
	case c.Completed == 0 || float64(c.Failed) > mostUnserved*float64(asked):
		return fmt.Sprintf("%d of %d requests failed", c.Failed, asked)
	case math.IsInf(r.Candidate.Value, 0) || math.IsNaN(r.Candidate.Value):
		return fmt.Sprintf("the figure has no finite value: %d of %d requests failed", c.Failed, asked)
	}
	return ""
}

// soften makes a mark of a gate that fails, workload by workload, if it is a proven
// change of a service that answers.
func soften(r *contract.Result, mark string) bool {
	if r.Kind == contract.KindEach {
		var grades []contract.Grade
		was, why := false, ""
		for i := range r.Results {
			if soften(&r.Results[i], mark) {
				was = true
				why = "on " + r.Results[i].Scope + ": " + r.Results[i].Reason
			}
			grades = append(grades, r.Results[i].Grade)
		}
		if !was {
			return false
		}
		r.Mark, r.Grade, r.Reason = mark, contract.Worst(grades...), why
		for _, m := range r.Results {
			if r.Grade != contract.Pass && m.Grade == r.Grade {
				r.Reason += "; on " + m.Scope + ": " + m.Reason
				break
			}
		}
		return true
	}
	if r.Grade != contract.Fail {
		return false
	}
	if why := unserved(r); why != "" {
		r.Reason += "; no mark softens it, because " + why
		return false
	}
	r.Mark, r.Grade, r.Reason = mark, contract.Pass, "marked "+mark+", blocks nothing: "+r.Reason
	return true
}

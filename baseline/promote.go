package baseline

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// Promote makes a candidate the baseline of its key. The first of a key becomes
// its anchor, too; a later one only if the change says so, and then an active one
// may be named as well. Those that were promoted longest ago are retired, but the
// anchor, which does not count: see Change.Keep. It returns the ids of the retired.
func (r *Registry) Promote(ctx context.Context, name string, c Change) (promoted Entry, retired []string, err error) {
	if err := c.check(); err != nil {
		return promoted, nil, err
	}
	err = r.write(ctx, "promoting in", func(tx *sql.Tx) error {
		retired = nil
		e, err := find(ctx, tx, name)
		if err != nil {
			return err
		}
		promoted = e
		switch {
		case e.Quarantine != "":
			return &Mistake{fmt.Sprintf("the snapshot %s is quarantined: %s", e.ID, e.Quarantine), "measure again, and add that run"}
		case e.State == Retired:
			return &Mistake{fmt.Sprintf("the snapshot %s is retired, and does not come back", e.ID), "measure again, and add that run"}
		case e.State == Active && !c.Anchor:
			return &Mistake{fmt.Sprintf("the snapshot %s is active already", e.ID), "with --anchor it becomes the anchor of its key, too"}
		case e.Anchor && c.Anchor:
			return &Mistake{fmt.Sprintf("the snapshot %s is the anchor already", e.ID), "name another one"}
		}
		if lacks := e.lacks(c.Demand); len(lacks) > 0 {
			return &Mistake{fmt.Sprintf("the snapshot %s has no figures of %s, which are demanded of it", e.ID, strings.Join(lacks, ", ")), "run a suite with these checks, and add that run"}
		}
		if e.State == Candidate {
			if err := happen(ctx, tx, e.ID, Active, c, c.Reason); err != nil {
				return err
			}
		}
		of, err := promotedOf(ctx, tx, e.Key)
		if err != nil {
			return err
		}
		if c.Anchor || !slices.ContainsFunc(of, func(o Entry) bool { return o.Anchor }) {
			if err := happen(ctx, tx, e.ID, anchored, c, c.Reason); err != nil {
				return err
			}
			if of, err = promotedOf(ctx, tx, e.Key); err != nil {
				return err
			}
		}
		retired, err = retireOld(ctx, tx, of, c)
		if err != nil {
			return err
		}
		promoted, err = find(ctx, tx, e.ID)
		return err
	})
	return promoted, retired, err
}

// promotedOf lists what was ever promoted of a key, in the order of promotion.
func promotedOf(ctx context.Context, tx *sql.Tx, k Key) ([]Entry, error) {
	all, err := entries(ctx, tx, false, ofKey+" AND EXISTS (SELECT 1 FROM assay_event e WHERE e.snapshot = s.id AND e.what = 'active')", k.args()...)
	if err != nil {
		return nil, err
	}
	order, err := events(ctx, tx, "e.what = 'active'")
	if err != nil {
		return nil, err
	}
	rank := make(map[string]int64, len(order))
	for _, o := range order {
		rank[o.Snapshot] = o.Seq
	}
	slices.SortFunc(all, func(a, b Entry) int { return int(rank[a.ID] - rank[b.ID]) })
	return all, nil
}

// retireOld retires all active ones but the last Keep and the anchor.
func retireOld(ctx context.Context, tx *sql.Tx, of []Entry, c Change) ([]string, error) {
	keep := c.Keep
	if keep == 0 {
		keep = DefaultKeep
	}
	var out []string
	for i := len(of) - 1; i >= 0; i-- {
		e := of[i]
		if e.State != Active || e.Anchor {
			continue
		}
		if keep--; keep >= 0 {
			continue
		}
		if err := happen(ctx, tx, e.ID, Retired, c, "others were promoted since"); err != nil {
			return nil, err
		}
		out = append(out, e.ID)
	}
	slices.Reverse(out)
	return out, nil
}

// Retire takes a snapshot out of use: a candidate that nobody wants, or a baseline
// that turned out to be bad. The active one that was promoted before it is the
// baseline then. An anchor must first be moved.
func (r *Registry) Retire(ctx context.Context, name string, c Change) (Entry, error) {
	var out Entry
	if err := c.check(); err != nil {
		return out, err
	}
	err := r.write(ctx, "retiring in", func(tx *sql.Tx) error {
		e, err := find(ctx, tx, name)
		switch {
		case err != nil:
			return err
		case e.State == Retired:
			return &Mistake{fmt.Sprintf("the snapshot %s is retired already", e.ID), "assay baseline list shows the others"}
		case e.Anchor:
			return &Mistake{fmt.Sprintf("the snapshot %s is the anchor of its key", e.ID), "first make another one the anchor: assay baseline promote ID --anchor --reason …"}
		}
		if err := happen(ctx, tx, e.ID, Retired, c, c.Reason); err != nil {
			return err
		}
		out, err = find(ctx, tx, e.ID)
		return err
	})
	return out, err
}

// Standing is what the next run of a key is compared with.
type Standing struct {
	Baseline *Entry     // nil: there is none
	Anchor   *Entry     // nil: there is none
	History  []Snapshot // sound ones in the order in which they were taken, the last ones
}

// Standing reads what there is of a key. The history ends with the last window
// snapshots.
func (r *Registry) Standing(ctx context.Context, k Key, window int) (Standing, error) {
	var out Standing
	promoted, err := entries(ctx, r.db, true, ofKey+" AND EXISTS (SELECT 1 FROM assay_event e WHERE e.snapshot = s.id AND e.what IN ('active', 'anchor'))", k.args()...)
	if err != nil {
		return out, r.trouble("reading", err)
	}
	for i := range promoted {
		if promoted[i].Baseline {
			out.Baseline = &promoted[i]
		}
		if promoted[i].Anchor {
			out.Anchor = &promoted[i]
		}
	}
	args := append(k.args(), window)
	last, err := entries(ctx, r.db, true, ofKey+" AND s.seq IN (SELECT s.seq FROM assay_snapshot s WHERE "+ofKey+" AND s.quarantine = '' ORDER BY s.taken DESC, s.seq DESC LIMIT $6)", args...)
	if err != nil {
		return out, r.trouble("reading", err)
	}
	for _, e := range last {
		out.History = append(out.History, e.Snapshot)
	}
	byTime(out.History)
	return out, nil
}

func byTime(s []Snapshot) {
	slices.SortStableFunc(s, func(a, b Snapshot) int { return a.Taken.Compare(b.Taken) })
}

// lacks names the checks that the snapshot has no figures of.
func (s Snapshot) lacks(checks []string) (out []string) {
	for _, c := range checks {
		if !slices.ContainsFunc(s.Figures, func(f Figure) bool { return f.Workload == c }) {
			out = append(out, c)
		}
	}
	return out
}

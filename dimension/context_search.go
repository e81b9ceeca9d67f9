package dimension

import (
	"context"
	"fmt"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/haystack"
	"github.com/assay-llm/assay/stat/screen"
)

// contextSearch is what an adaptive run found.
type contextSearch struct {
	Set    []int64 `json:"set"`  // lengths from which on the share may be lower; the last is 0 where there may be no break
	None   float64 `json:"none"` // probability that there is no break
	Tries  []int   `json:"tries"`
	Tokens float64 `json:"tokens"`      // of its tries
	Grid   float64 `json:"grid_tokens"` // what a grid of 40 tries at each length would have cost
	Known  bool    `json:"known"`       // it ended because it was sure, and not because its budget did
}

// atOnce is how many questions are asked before the search decides anew.
const atOnce = 4

// search looks for the breakpoint of every variant. All variants are asked the same:
// what one wants to know helps the others, and stays paired.
func (r *contextRun) search(ctx context.Context) error {
	lengths := make([]float64, len(r.lengths))
	for i, l := range r.lengths {
		lengths[i] = float64(l)
	}
	searches := make([]*screen.Bisection, len(r.p.Variants))
	for v := range searches {
		var err error
		if searches[v], err = screen.NewBisection(lengths, 0, 0); err != nil {
			return err
		}
	}
	lost := make([]int, len(r.p.Variants))
	err := r.turns(ctx, searches, lost)
	r.conclude(err == nil)
	r.searched(searches, err == nil)
	return err
}

// turns asks what the searches want to know, one search after the other.
func (r *contextRun) turns(ctx context.Context, searches []*screen.Bisection, lost []int) error {
	text, turn := 0, 0
	for {
		at, who, ok := 0, 0, false
		for range searches {
			who = turn % len(searches)
			turn++
			if at, ok = searches[who].Next(); ok && lost[who] < 3 {
				break
			}
			ok = false
		}
		if !ok {
			return nil
		}
		var shots []check.Shot
		var plan []contextAsked
		for i := range atOnce {
			present := r.conf.present()
			kinds := []haystack.Kind{present[text%len(present)]}
			if i == 0 && r.conf.asks(haystack.Absent) {
				kinds = append(kinds, haystack.Absent)
			}
			for _, kind := range kinds {
				shot, asked, err := r.shot(kind, text, at, (text*3+at)%len(r.depths))
				if err != nil {
					return err
				}
				shots, plan = append(shots, shot), append(plan, asked)
			}
			text++
		}
		asked, err := r.ask(ctx, shots, plan)
		r.asked = append(r.asked, asked...)
		heard := false
		for i := range asked {
			a := &asked[i]
			for v := range searches {
				if a.fates[v] == fateAnswered && a.probe.Kind != haystack.Absent {
					heard = heard || v == who
					if err := searches[v].Add(a.length, a.found[v]); err != nil {
						return err
					}
				}
			}
		}
		if lost[who]++; heard {
			lost[who] = 0 // else it may ask for what the server never answers
		}
		if err != nil {
			return err
		}
	}
}

// searched says what the searches found.
func (r *contextRun) searched(searches []*screen.Bisection, whole bool) {
	const level = .02 // measured on planted faults: at .03 a search cries wolf three times as often, at .01 it stops too early to be heard
	for v, b := range searches {
		f := b.Found()
		out := &r.data.Variants[v]
		out.Search = &contextSearch{None: f.None(), Tries: f.Tries, Tokens: f.Tokens, Known: f.Known}
		for _, l := range r.lengths {
			out.Search.Grid += 40 * float64(l)
		}
		for _, at := range f.Set {
			if at < len(r.lengths) {
				out.Search.Set = append(out.Search.Set, r.lengths[at])
			} else {
				out.Search.Set = append(out.Search.Set, 0)
			}
		}
		switch {
		case !whole:
		case f.None() < level && f.At < len(r.lengths) && f.At > 0:
			first, last := f.Set[0], f.Set[len(f.Set)-1]
			if last == len(r.lengths) {
				last = len(r.lengths) - 1
			}
			r.p.Report(check.Finding{
				Severity: check.Warning, Code: "breakpoint", Variant: out.Variant,
				Text: fmt.Sprintf("the share found breaks between %d and %d tokens: about %.0f %% before, %.0f %% beyond (no break has the probability %.2g; %.0f tokens were asked, %.0f %% of a grid)",
					r.lengths[first-1], r.lengths[last], 100*f.Before, 100*f.After, f.None(), f.Tokens, 100*f.Tokens/out.Search.Grid),
				Hint:    fmt.Sprintf("keep prompts up to %d tokens, or look at what changes there: a sliding window, a scaled position encoding, a cache of fewer bits", r.lengths[first-1]),
				Figures: map[string]float64{"upto": float64(r.lengths[f.At-1]), "from": float64(r.lengths[f.At]), "before": f.Before, "after": f.After, "none": f.None(), "tokens": f.Tokens},
			})
		case f.Known:
			r.p.Note("%s: the share found has no breakpoint over length (probability %.2g)", out.Variant, f.None())
		default:
			r.p.Note("%s: the search for a breakpoint ended undecided after %.0f tokens; give it more with texts in a full run, or fewer lengths", out.Variant, f.Tokens)
		}
	}
}

package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/report"
)

// The units by which halves of a run are drawn.
const (
	BySession = "session"
	ByBlock   = "block"
)

const (
	leastUnits = 20 // fewer sessions or blocks make no two halves that tell anything
	runBlocks  = 40 // blocks of time that each workload of a run is cut into
)

// CalibrateRun tries a contract on random halves of one variant of a run: of the
// baseline, or of the only one. A nil contract is the run's own.
//
// The halves share no session (or no block of time) and are as alike as two
// variants that are the same: what differs between them is chance alone, with the
// dependence that requests of one session (or of one block) have on each other.
// Both are from one run, so that nothing in them tells how much the service drifts
// from run to run.
func CalibrateRun(ctx context.Context, r *Result, k *contract.Contract, c Calibration) (*report.Calibration, error) {
	if k == nil {
		k = r.contract
	}
	if k == nil {
		return nil, errors.New("calibrating the run: it was judged by no contract\n  hint: name one with --contract FILE")
	}
	if why := r.unfit(); len(why) > 0 {
		return nil, fmt.Errorf("calibrating the run: it proves nothing: %s", why[0])
	}
	e := r.Evidence()
	variant := cmp.Or(e.Baseline, e.Candidate)
	p := Pairs{Name: r.Dir, Source: "run", Variant: variant, Unit: cmp.Or(c.By, BySession), Records: r.Records}
	units, err := drawUnits(r.Records, variant, p.Unit)
	if err != nil {
		return nil, err
	}
	p.Units = len(units)
	var windows []record.Window
	for _, w := range r.Manifest.Windows {
		if w.Variant == variant {
			for _, side := range []string{Baseline, Candidate} {
				w.Variant = side
				windows = append(windows, w)
			}
		}
	}
	p.Notes = append(p.Notes, fmt.Sprintf("each side is a half of the %s of one run: what the service does differently in another run is not in it", p.Unit+"s"))
	p.Draw = func(i int) (contract.Evidence, error) {
		out := contract.Evidence{Windows: windows, Baseline: Baseline, Candidate: Candidate}
		order := rand.New(rand.NewPCG(c.Seed, uint64(i))).Perm(len(units))
		for n, at := range order[:len(order)/2*2] {
			side := Baseline
			if n%2 == 1 {
				side = Candidate
			}
			for _, i := range units[at] {
				rec := r.Records[i]
				rec.Variant = side
				out.Records = append(out.Records, rec)
			}
		}
		record.Sort(out.Records)
		return out, nil
	}
	return Calibrate(ctx, k, p, c)
}

// drawUnits returns the records of each session or block of the variant.
func drawUnits(records []record.Record, variant, by string) ([][]int, error) {
	sessions := map[string][]int{}
	var first []string // in order of their first due instants
	perWorkload := map[string]int{}
	for i := range records {
		r := &records[i]
		if r.Variant != variant || r.Phase != record.Measured {
			continue
		}
		key := r.Workload + "\x00" + r.Session
		if r.Session == "" {
			key = fmt.Sprintf("%s\x00\x00%d", r.Workload, r.Shot)
		}
		if _, ok := sessions[key]; !ok {
			first = append(first, key)
			perWorkload[r.Workload]++
		}
		sessions[key] = append(sessions[key], i)
	}
	if by == ByBlock {
		blocks := map[string][]int{}
		var names []string
		seen := map[string]int{}
		for _, key := range first {
			workload, _, _ := strings.Cut(key, "\x00")
			block := fmt.Sprintf("%s\x00%d", workload, seen[workload]*runBlocks/perWorkload[workload])
			seen[workload]++
			if _, ok := blocks[block]; !ok {
				names = append(names, block)
			}
			blocks[block] = append(blocks[block], sessions[key]...)
		}
		sessions, first = blocks, names
	}
	units := make([][]int, 0, len(first))
	for _, key := range first {
		units = append(units, sessions[key])
	}
	if len(units) < leastUnits {
		return nil, fmt.Errorf("calibrating the run: %s has %d %ss, and at least %d are needed for two halves\n  hint: use a longer run, or one with more sessions", variant, len(units), by, leastUnits)
	}
	return units, nil
}

// halvable leaves out the clauses that half of a run says nothing about.
func halvable(clauses []contract.Clause) (kept []contract.Clause, skipped []string) {
	for _, c := range clauses {
		if q, ok := wholeQuantity(c); ok {
			skipped = append(skipped, fmt.Sprintf("%s is not calibrated: half of a run has not the run's %s", c.ID, q))
			continue
		}
		kept = append(kept, c)
	}
	return kept, skipped
}

// wholeQuantity returns a quantity in the clause that is one of the run as a whole.
func wholeQuantity(c contract.Clause) (string, bool) {
	members := slices.Concat(c.All, c.Any)
	if c.Not != nil {
		members = append(members, *c.Not)
	}
	if c.Count != nil {
		members = append(members, c.Count.Of...)
	}
	for _, m := range members {
		if q, ok := wholeQuantity(m); ok {
			return q, true
		}
	}
	q := c.Need.Quantity
	return q.String(), slices.Contains([]string{"rate", "count", "max", "min"}, q.Stat)
}

// knownDifferences are those that every contract is tried on: as many of them as it
// reads anything of.
func knownDifferences(k *contract.Contract) []known {
	list := []known{
		{what: "TPOT +5 %", diffs: []Difference{{Metric: "tpot", Factor: 1.05}}},
		{what: "TTFT +10 %", diffs: []Difference{{Metric: "ttft", Factor: 1.10}}},
		{what: "failed +1 point", diffs: []Difference{{Metric: "failed", Shift: 0.01}}},
	}
	checks := map[string]Difference{}
	var walk func(clauses []contract.Clause)
	walk = func(clauses []contract.Clause) {
		for _, c := range clauses {
			walk(slices.Concat(c.All, c.Any))
			if c.Not != nil {
				walk([]contract.Clause{*c.Not})
			}
			if c.Count != nil {
				walk(c.Count.Of)
			}
			q := c.Need.Quantity
			if _, measured := record.Find(q.Metric); measured || q.Metric == "" || q.Stat != "share" && q.Stat != "mean" && q.Stat != "quantile" {
				continue
			}
			d := Difference{Metric: q.Metric, Shift: -0.02, Share: q.Stat == "share"}
			if c.Need.Compare == "<=" || c.Need.Compare == "<" {
				d.Shift = 0.02
			}
			checks[q.Metric] = d
		}
	}
	walk(k.Clauses)
	for _, metric := range slices.Sorted(maps.Keys(checks)) {
		d := checks[metric]
		sign := "−"
		if d.Shift > 0 {
			sign = "+"
		}
		list = append(list, known{what: metric + " " + sign + "2 points", diffs: []Difference{d}})
	}
	return list
}

// alike says how the values of checks spread that are on the records of a run: one
// by one, and by the mean of a batch of whole sessions.
func alike(records []record.Record, c Calibration) []report.SelfLikeness {
	type key struct{ metric, variant string }
	values := map[key]map[string][]float64{} // by session
	for i := range records {
		r := &records[i]
		if r.Phase != record.Measured {
			continue
		}
		session := r.Session
		if session == "" {
			session = fmt.Sprintf("\x00%d", r.Shot)
		}
		for metric, v := range r.Values {
			k := key{metric, r.Variant}
			if values[k] == nil {
				values[k] = map[string][]float64{}
			}
			values[k][session] = append(values[k][session], v)
		}
	}
	out := []report.SelfLikeness{}
	for k, sessions := range values {
		var all []float64
		for _, s := range slices.Sorted(maps.Keys(sessions)) {
			all = append(all, sessions[s]...)
		}
		means := batchMeans(sessions, c)
		slices.Sort(all)
		out = append(out, report.SelfLikeness{
			Metric: k.metric, Variant: k.variant, N: len(all), Mean: mean(all), P1: order(all, .01), P5: order(all, .05), P50: order(all, .5),
			Batch: c.Batch, BatchP1: order(means, .01), BatchP5: order(means, .05),
		})
	}
	slices.SortFunc(out, func(a, b report.SelfLikeness) int {
		return cmp.Or(cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.Variant, b.Variant))
	})
	return out
}

// batchMeans draws batches of whole sessions and returns their means.
func batchMeans(sessions map[string][]float64, c Calibration) []float64 {
	random := rand.New(rand.NewPCG(c.Seed, 0x6261746368))
	names := slices.Sorted(maps.Keys(sessions))
	means := make([]float64, 0, 1000)
	for range cap(means) {
		sum, n := 0.0, 0
		for n < c.Batch {
			for _, v := range sessions[names[random.IntN(len(names))]] {
				sum += v
				n++
			}
		}
		means = append(means, sum/float64(n))
	}
	return means
}

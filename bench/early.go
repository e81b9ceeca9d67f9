package bench

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
)

// stopEarly is the value of a suite's stop.
const stopEarly = "early"

// StopEarly lets a run of the suite stop as soon as its contract is decided, as
// stop: early in the suite does. It is an error if there is no contract.
func (s *Suite) StopEarly() error {
	if s.Contract.Contract == nil {
		return errors.New("stopping early: the suite has no contract that could be decided\n  hint: add contract: to the suite")
	}
	s.Stop = stopEarly
	return nil
}

// blocks is how many blocks every workload is cut into.
func (s *Suite) blocks() int {
	switch alone := s.Variants.Len() == 1; {
	case alone && s.Stop == "":
		return 1 // nobody to take turns with, and nobody who looks
	case s.Blocks > 0:
		return s.Blocks
	case s.Stop != "":
		return earlyBlocks
	}
	return defaultBlocks
}

// looks says after which blocks the evidence is looked at; nil if it is judged once.
func (s *Suite) looks() []int {
	if s.Stop == "" || s.Contract.Contract == nil {
		return nil
	}
	return contract.Looks(s.blocks())
}

// late names the clauses that keep a run that may stop early from passing early.
func (s *Suite) late() []string {
	if s.looks() == nil {
		return nil
	}
	return s.Contract.Contract.Late()
}

// doneBlocks is how many blocks of a workload all variants have been measured in.
func doneBlocks(m *record.Manifest, workload string, blocks int) int {
	type part struct {
		variant string
		block   int
	}
	over := make(map[part]bool)
	for _, w := range m.Windows {
		if w.Workload == workload && !w.Cut {
			over[part{w.Variant, w.Block}] = true
		}
	}
	for b := range blocks {
		for _, v := range m.Variants {
			if !over[part{v.Name, b}] {
				return b
			}
		}
	}
	return blocks
}

// interims says at which look every workload stands, by the windows alone, so that
// whoever opens the run judges it as it was judged.
func interims(m *record.Manifest, looks []int) map[string]contract.Interim {
	if looks == nil {
		return nil
	}
	at := make(map[string]contract.Interim)
	for _, w := range m.Workloads {
		done := doneBlocks(m, w.Name, looks[len(looks)-1])
		number := 0
		for number < len(looks) && looks[number] <= done {
			number++
		}
		at[w.Name] = contract.Interim{Number: number, Of: len(looks)}
	}
	return at
}

// stopped reports whether a workload needs no more requests.
func (r *run) stopped(workload string) bool {
	return slices.ContainsFunc(r.manifest.Stops, func(s record.Stop) bool { return s.Workload == workload })
}

// look judges what is on disk, if it is time for it after so many blocks of a
// workload, and reports whether the workload is to stop. A look that does not work
// out decides nothing.
func (r *run) look(workload string, done int) (stop bool) {
	looks := r.suite.looks()
	number := slices.Index(looks, done) + 1
	last := number == len(looks)
	later := r.manifest.Workloads[r.workloadIndex(workload)+1:]
	if number == 0 || last && len(later) == 0 || r.stopped(workload) {
		return false
	}
	if slices.ContainsFunc(r.manifest.Windows, func(w record.Window) bool {
		return w.Workload == workload && w.Block >= done || slices.ContainsFunc(later, func(l record.WorkloadInfo) bool { return l.Name == w.Workload })
	}) {
		return false // it was taken before the run was killed, and decided nothing
	}
	v, records, err := r.soFar(looks)
	if err != nil {
		r.note("a look at %s after %d blocks failed, and the run went on: %v", workload, done, err)
		return false
	}
	over, here := v.Settled(workload)
	if !over && (last || !here) {
		return false
	}
	at := record.Stop{Workload: workload, Why: v.Reason, Look: number, Looks: len(looks), Blocks: done, Planned: looks[len(looks)-1]}
	if !over {
		at.Why = "every clause on it is decided"
	}
	if !last {
		r.stop(at, records)
	}
	for i := 0; over && i < len(later); i++ {
		at.Workload, at.Look, at.Blocks, at.Why = later[i].Name, 0, 0, "the contract had failed on "+workload
		r.stop(at, records)
	}
	r.mark()
	return true
}

func (r *run) workloadIndex(name string) int {
	return slices.IndexFunc(r.manifest.Workloads, func(w record.WorkloadInfo) bool { return w.Name == name })
}

// soFar judges the run as if it were over.
func (r *run) soFar(looks []int) (contract.Verdict, []record.Record, error) {
	records, repair, err := readRecords(r.dir)
	if err != nil {
		return contract.Verdict{}, nil, fmt.Errorf("reading the records back: %w", err)
	}
	m := *r.manifest
	m.State, m.Ledger = StateDone, record.Ledger(records)
	m.Client = r.certificate(records)
	so := Result{Dir: r.dir, Manifest: &m, Records: records, Repair: repair, contract: r.suite.Contract.Contract, looks: looks, checks: r.suite.checked()}
	e := so.Evidence()
	for _, c := range e.Checks { // which are judged once, at the end
		e.Interim[c.Name] = contract.Interim{Of: 1}
	}
	return contract.Evaluate(so.contract, e), records, nil
}

// stop writes down that a workload ended before its plan was done, and tells.
func (r *run) stop(s record.Stop, records []record.Record) {
	w := r.manifest.Workloads[r.workloadIndex(s.Workload)]
	for i := range records {
		if rec := &records[i]; rec.Workload == s.Workload && rec.Phase == record.Measured && rec.Variant == r.variants[0].name {
			s.Requests++
		}
	}
	if w.Planned > 0 {
		s.Unsent = max(0, w.Planned-s.Requests) * int64(len(r.variants))
	}
	for _, v := range r.variants {
		s.Saved += time.Duration(float64(v.plans[s.Workload].For()) * float64(s.Planned-s.Blocks) / float64(s.Planned))
	}
	r.manifest.Stops = append(r.manifest.Stops, s)
	if s.Look > 0 {
		r.opts.Notice("%s stops early, at look %d of %d: %s", s.Workload, s.Look, s.Looks, s.Why)
	}
}

// JudgeEarly judges the evidence of a whole run as if the run had been looked at after
// so many blocks, and had stopped when its contract was decided. It returns the verdict
// at the end, and the part of the measured requests that were sent by then. Without
// looks it judges once.
func JudgeEarly(k *contract.Contract, e contract.Evidence, looks []int) (contract.Verdict, float64) {
	if len(looks) == 0 {
		return contract.Evaluate(k, e), 1
	}
	var workloads []string
	for _, w := range e.Windows {
		if !slices.Contains(workloads, w.Workload) {
			workloads = append(workloads, w.Workload)
		}
	}
	blocks := map[string]int{} // of each workload that were sent
	so := e
	so.Interim = map[string]contract.Interim{}
	for _, w := range workloads {
		so.Interim[w] = contract.Interim{Of: len(looks)}
	}
	var v contract.Verdict
	for _, w := range workloads {
		over, here := false, false
		for i, done := range looks {
			blocks[w] = done
			so.Interim[w] = contract.Interim{Number: i + 1, Of: len(looks)}
			so.Records, so.Windows = sentBy(e, blocks)
			v = contract.Evaluate(k, so)
			if over, here = v.Settled(w); over || here {
				break
			}
		}
		if over {
			break
		}
	}
	return v, float64(measured(so.Records)) / float64(max(1, measured(e.Records)))
}

// JudgeAfter judges once what was measured in the first blocks of each workload, as a
// run that is that short would have been judged, and returns the part of the measured
// requests that it has.
func JudgeAfter(k *contract.Contract, e contract.Evidence, done int) (contract.Verdict, float64) {
	blocks := map[string]int{}
	for _, w := range e.Windows {
		blocks[w.Workload] = done
	}
	so := e
	so.Records, so.Windows = sentBy(e, blocks)
	return contract.Evaluate(k, so), float64(measured(so.Records)) / float64(max(1, measured(e.Records)))
}

// sentBy returns what was measured in the first blocks of each workload.
func sentBy(e contract.Evidence, blocks map[string]int) (records []record.Record, windows []record.Window) {
	for i := range e.Records {
		if r := &e.Records[i]; r.Block < blocks[r.Workload] {
			records = append(records, *r)
		}
	}
	for _, w := range e.Windows {
		if w.Block < blocks[w.Workload] {
			windows = append(windows, w)
		}
	}
	return records, windows
}

func measured(records []record.Record) (n int) {
	for i := range records {
		if records[i].Phase == record.Measured {
			n++
		}
	}
	return n
}

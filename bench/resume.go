package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/contract"
	metrics "github.com/assay-llm/assay/engine"
	"github.com/assay-llm/assay/load"
	"github.com/assay-llm/assay/record"
)

// A ResumeError says why a run cannot be resumed.
type ResumeError struct {
	Dir  string
	What string
	Hint string
	Err  error // the cause, if another error is; may be nil
}

// Error says what does not fit, and one next step.
func (e *ResumeError) Error() string {
	return fmt.Sprintf("resuming %s: %s\n  hint: %s", e.Dir, e.What, e.Hint)
}

// Unwrap returns the cause.
func (e *ResumeError) Unwrap() error { return e.Err }

// place is where in a run something was measured.
type place struct{ variant, workload string }

// past is the part of a resumed run that is behind it.
type past struct {
	seconds []record.ClientSecond
	damaged int // more seconds, of which nothing can be read
	plans   map[place]*load.Past
	killed  bool           // rather than interrupted
	asked   map[shot]bool  // records of checks
	last    record.Instant // last sign of life
	until   record.Instant // end of the last second in which the client was watched
}

// A Stopped is a run that was interrupted or killed and has something left to do.
type Stopped struct {
	Dir   string
	Suite *Suite // by which it goes on: the run's own, unless the caller puts another in its place

	manifest *record.Manifest
}

// Resumable finds out whether a run can be resumed, and its suite: from where the run
// had it, else from the run's manifest. The error is a *ResumeError when the run is
// over or is none of this version.
func Resumable(dir string) (*Stopped, error) {
	m, err := unfinished(dir)
	if err != nil {
		return nil, err
	}
	s, err := suiteOf(m)
	if err != nil {
		return nil, err
	}
	return &Stopped{Dir: dir, Suite: s, manifest: m}, nil
}

// Resume goes on with the run in its own directory, with its seed and its salt, so that
// what remains of the plan is as it was to the byte. Of the options it takes neither Runs,
// Seed nor Salt. The error is a *ResumeError when anything has changed that the run's
// numbers depend on, or another process is at work on it.
func (s *Stopped) Resume(ctx context.Context, o Options) (*Result, error) {
	m, dir := s.manifest, s.Dir
	o.Seed, o.Salt = &m.Seed, &m.Salt
	suite := *s.Suite
	if was := new(Suite); config.Decode("manifest.json#suite", []byte(m.Suite), was) == nil {
		suite.Stop = was.Stop // which a flag may have set, as the profile
		if was.Profile != suite.Profile && suite.Profile == "" {
			if err := suite.AddProfile(was.Profile); err != nil {
				return nil, err
			}
		}
	}
	r := newRun(&suite, o)
	r.dir = dir
	if err := r.prepare(); err != nil {
		return nil, err
	}
	if what := changed(m, r.manifest); what != "" {
		return nil, &ResumeError{dir, what, "put it back as it was, or begin a new run", nil}
	}
	if err := s.still(); err != nil { // before a sealed table is opened again
		return nil, err
	}
	writer, repair, err := record.Reopen(record.OS(), dir)
	switch {
	case errors.Is(err, record.ErrLocked):
		return nil, &ResumeError{dir, "another process is at work on it", "wait for it to end, or stop it first", err}
	case errors.Is(err, record.ErrNewer):
		return nil, &ResumeError{dir, "its records are in the format of another version of assay", "resume it with the version that made it, " + m.Assay, err}
	case err != nil:
		return nil, fmt.Errorf("resuming %s: %w", dir, err)
	}
	r.writer = writer
	if err := s.still(); err != nil {
		return nil, errors.Join(err, writer.Close())
	}
	if err := r.recall(m, repair); err != nil {
		return nil, errors.Join(fmt.Errorf("resuming %s: %w", dir, err), writer.Close())
	}
	result, err := r.execute(ctx)
	if result == nil {
		err = errors.Join(err, writer.Close()) // harmless when it is sealed
	}
	return result, err
}

// still reports that another process went on with the run between the look at its
// manifest and the lock on its records: what the manifest said is over.
func (s *Stopped) still() error {
	now, err := record.ReadManifest(record.OS(), s.Dir)
	if err != nil {
		return fmt.Errorf("resuming %s: %w", s.Dir, err)
	}
	if !reflect.DeepEqual(now, s.manifest) {
		return &ResumeError{s.Dir, "another process has gone on with it meanwhile", "see what became of it with assay report " + s.Dir, nil}
	}
	return nil
}

// unfinished returns the manifest of a run that has something left to do.
func unfinished(dir string) (*record.Manifest, error) {
	m, err := record.ReadManifest(record.OS(), dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &ResumeError{dir, "no manifest.json in it", "name a run directory, such as runs/ID", err}
	case errors.Is(err, record.ErrNewer):
		return nil, &ResumeError{dir, "its manifest is in the format of another version of assay", "resume it with the version that made it, or begin a new run", err}
	case err != nil:
		return nil, fmt.Errorf("resuming %s: %w", dir, err)
	}
	switch m.State {
	case StateRunning, StateInterrupted, StateFailed:
		return m, nil
	case StateDone:
		return nil, &ResumeError{dir, "the run is complete", "see it with assay report " + dir, nil}
	case StateImported:
		return nil, &ResumeError{dir, "the run was imported from the file of another tool", "begin a new run", nil}
	}
	return nil, &ResumeError{dir, fmt.Sprintf("the run is in a state that this program does not know: %q", m.State), "resume it with the version that made it, " + m.Assay, nil}
}

// suiteOf reads the suite of a run from its file, or from the manifest when the file
// is gone or there never was one.
func suiteOf(m *record.Manifest) (*Suite, error) {
	if info, err := os.Stat(m.SuiteFile); err == nil && info.Mode().IsRegular() {
		return Load(m.SuiteFile)
	}
	dir := filepath.Dir(m.SuiteFile)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = ""
	}
	return Parse(m.SuiteFile, []byte(m.Suite), dir)
}

// changed says what differs between a run as it was begun and as it would go on: all
// that its numbers depend on; "" if nothing does.
func changed(was, now *record.Manifest) string {
	if was.Digest != now.Digest {
		return changedSuite(was, now)
	}
	for i, w := range now.Workloads {
		if i >= len(was.Workloads) || was.Workloads[i].Plan != w.Plan {
			return fmt.Sprintf("the plan of workload %s has changed: its prompts are others, or this version of assay plans otherwise (the run was begun by %s)", w.Name, was.Assay)
		}
	}
	return ""
}

// changedSuite says which part of the suite differs.
func changedSuite(was, now *record.Manifest) string {
	var a, b Suite
	if config.Decode("manifest.json#suite", []byte(was.Suite), &a) != nil || config.Decode("suite", []byte(now.Suite), &b) != nil {
		return "the suite has changed"
	}
	if !sameText(a.Contract, b.Contract) {
		return "the contract has changed"
	}
	for name, v := range a.Variants.All() {
		w, ok := b.Variants.Get(name)
		switch {
		case !ok:
			return "the suite has changed: it has no variant " + name + " any more"
		case v.URL != w.URL:
			return fmt.Sprintf("the target has changed: url of %s was %s and is %s", name, v.URL, w.URL)
		case v.Model != w.Model:
			return fmt.Sprintf("the target has changed: model of %s was %s and is %s", name, v.Model, w.Model)
		case !sameText(v, w):
			return "the suite has changed: variant " + name
		}
	}
	for name, v := range a.Workloads.All() {
		w, ok := b.Workloads.Get(name)
		if !ok || !sameText(v, w) {
			return "the suite has changed: workload " + name
		}
	}
	return "the suite has changed"
}

// sameText reports whether two parts of a suite are written alike.
func sameText(a, b any) bool {
	x, errA := config.Encode(a)
	y, errB := config.Encode(b)
	return errA == nil && errB == nil && string(x) == string(y)
}

// recall reads what the stopped run left: it makes the run's manifest that of the
// stopped one, with the gap, and finds out where each plan stands.
func (r *run) recall(m *record.Manifest, repair record.Repair) error {
	p := &past{plans: make(map[place]*load.Past), asked: make(map[shot]bool)}
	declared := r.suite.checked()
	for _, v := range r.variants {
		for name := range r.suite.Workloads.All() {
			p.plans[place{v.name, name}] = &load.Past{Ended: make(map[int64]load.Ended)}
		}
	}
	r.monitor = load.NewMonitor(time.Time{}, false)
	reader, err := record.Open(record.OS(), r.dir)
	if err != nil {
		return err
	}
	for rec, err := range reader.All() {
		if err != nil {
			return err
		}
		if slices.ContainsFunc(declared, func(c contract.Checked) bool { return c.Name == rec.Workload }) {
			p.asked[shotOf(rec)] = true
			continue
		}
		if rec.Phase == record.Measured && !slices.ContainsFunc(m.Windows, func(w record.Window) bool {
			return w.Variant == rec.Variant && w.Workload == rec.Workload && w.Block == rec.Block
		}) {
			return &ResumeError{r.dir, "it has records of a block that its manifest does not know", "begin a new run", nil}
		}
		r.monitor.Recall(rec)
		p.enter(rec)
	}
	if p.seconds, p.damaged, err = readWatched(r.dir); err != nil {
		return fmt.Errorf("reading %s: %w", watchedName, err)
	}
	p.killed = m.State == StateRunning || m.Elapsed == 0
	p.signs(m)
	r.past = p
	old := *m
	old.Variants = r.manifest.Variants // a simulated engine has another port now
	old.Gaps = append(slices.Clone(m.Gaps), record.Gap{From: p.last, Killed: p.killed})
	if repair.Torn() {
		old.Gaps[len(m.Gaps)].Repair = repair.String()
	}
	r.differs("program", old.Assay, Version())
	for _, fact := range []string{"cpu", "cores", "memory", "kernel"} {
		r.differs(fact, old.Host[fact], r.manifest.Host[fact])
	}
	old.Notes = append(slices.Clone(m.Notes), r.manifest.Notes...)
	old.State, old.Client, old.Ledger, old.Engines = StateRunning, record.Certificate{}, nil, nil
	r.manifest = &old
	r.stands(p)
	return nil
}

// differs notes that the resumed part has another circumstance than the one before.
func (r *run) differs(what, was, is string) {
	if was != is {
		r.note("resumed with another %s: it was %s and is %s", what, was, is)
	}
}

// enter takes note of a record.
func (p *past) enter(rec *record.Record) {
	p.last = max(p.last, rec.Due, rec.EOF)
	plan := p.plans[place{rec.Variant, rec.Workload}]
	switch {
	case plan == nil:
	case rec.Phase == record.WarmUp:
		plan.WarmedUp = true
	default:
		if e, again := plan.Ended[rec.Shot]; !again || e.Cut {
			took, _ := rec.EOF.Sub(rec.Due)
			plan.Ended[rec.Shot] = load.Ended{At: rec.EOF, Took: took, Cut: rec.Outcome == record.Interrupted}
		}
	}
}

// signs finds the last sign of life of the process that stopped, and until when its
// client was watched.
func (p *past) signs(m *record.Manifest) {
	for _, w := range m.Windows {
		p.last = max(p.last, w.Start, w.End)
	}
	if n := len(p.seconds); n > 0 {
		p.until = record.At(time.Duration(p.seconds[n-1].Second+1) * time.Second)
		p.last = max(p.last, p.until)
	}
	if !p.killed {
		p.last = max(p.last, record.At(m.Elapsed))
		p.until = p.last // the last seconds are in the manifest
		p.seconds = append(p.seconds, m.Client.Seconds...)
	}
}

// lingering is for how long at most a process that was killed can have gone on behind
// its last sign of life: those come every second.
const lingering = 2 * time.Second

// mostLost is how long at most a record waits for its commit to the journal, twice.
const mostLost = 100 * time.Millisecond

// stands finds out how far each plan is, by the windows. The one in which the run was
// killed ends where the client was last watched.
func (r *run) stands(p *past) {
	r.manifest.Windows = slices.Clone(r.manifest.Windows)
	for i := range r.manifest.Windows {
		if w := &r.manifest.Windows[i]; !w.End.Set() {
			w.End = max(w.Start, p.until)
		}
	}
	for at, plan := range p.plans {
		for plan.Block < r.suite.blocks() && r.blockOver(at.variant, at.workload, plan.Block) {
			plan.Block++
		}
		for i := range r.manifest.Windows {
			w := r.manifest.Windows[i]
			if w.Variant != at.variant || w.Workload != at.workload {
				continue
			}
			if w.Block != plan.Block {
				if u := w.Unasked; u != nil {
					plan.Unasked += u.NoAnswer + u.Context + u.Over
				}
				continue
			}
			r.manifest.Windows[i].Unasked = nil // the window that goes on counts them
			plan.Next(w, r.death(w))
		}
		if p.killed {
			plan.Lost = mostLost
		}
	}
}

// death returns the latest at which the process that began a window can have sent
// anything.
func (r *run) death(w record.Window) (at record.Instant) {
	for _, g := range r.manifest.Gaps {
		if at = g.From; g.Killed {
			at += record.Instant(lingering)
		}
		if g.From >= w.Start {
			break
		}
	}
	return at
}

// blockOver reports whether a block was measured to its end.
func (r *run) blockOver(variant, workload string, block int) bool {
	return slices.ContainsFunc(r.manifest.Windows, func(w record.Window) bool {
		return w.Variant == variant && w.Workload == workload && w.Block == block && !w.Cut
	})
}

// over reports whether all blocks were.
func (r *run) over(variant, workload string, blocks int) bool {
	for b := range blocks {
		if !r.blockOver(variant, workload, b) {
			return false
		}
	}
	return true
}

// rejoin begins the resumed part: the run's clock goes on by the wall clock, behind
// the last sign of life in any case.
func (r *run) rejoin() error {
	m := r.manifest
	last, _ := r.past.last.Offset()
	away := max(time.Since(m.Start), last+time.Second)
	r.epoch = time.Now().Add(-away)
	m.Gaps[len(m.Gaps)-1].To = record.At(away)
	r.monitor.Restore(r.epoch, r.past.seconds)
	if err := r.reheard(); err != nil {
		return err
	}
	return r.checkpoint()
}

// reheard reads back what the engines said before the stop. What they said in a block
// that was killed is lost, and with it every sum over the workload.
func (r *run) reheard() error {
	data, err := wholeLines(filepath.Join(r.dir, metrics.FileName))
	if err != nil {
		return fmt.Errorf("reading %s: %w", metrics.FileName, err)
	}
	snapshots, _, err := metrics.Read(bytes.NewReader(data))
	if err != nil {
		r.note("what the engines said before the stop cannot be read: %v", err)
	}
	spans := metrics.Spans(snapshots)
	for _, v := range r.variants {
		for name := range r.suite.Workloads.All() {
			for _, e := range []*ear{&v.engine, &v.gpus} {
				if e.source != nil {
					e.recall(spans, v.name, name, r.windows(v.name, name))
				}
			}
		}
	}
	return nil
}

// windows counts those of a variant and workload.
func (r *run) windows(variant, workload string) (n int) {
	for _, w := range r.manifest.Windows {
		if w.Variant == variant && w.Workload == workload {
			n++
		}
	}
	return n
}

// recall enters the spans of one variant and workload that this ear heard.
func (e *ear) recall(spans []metrics.Span, variant, workload string, windows int) {
	for _, s := range spans {
		x := s.Snapshots[0]
		if x.Variant == variant && x.Workload == workload && x.Engine == e.source.Engine() {
			e.heard[workload] = append(e.heard[workload], metrics.Fold(s))
		}
	}
	for len(e.heard[workload]) < windows {
		e.heard[workload] = append(e.heard[workload], metrics.Heard{})
	}
}

// seek puts a driver where the stopped run was, and ends the window that the stop cut
// where everything that was due has a record.
func (r *run) seek(d *load.Driver, variant, workload string) {
	if r.past == nil {
		return
	}
	plan := r.past.plans[place{variant, workload}]
	whole := d.Seek(*plan)
	if !plan.Window.Start.Set() {
		return
	}
	for i := range r.manifest.Windows {
		if w := &r.manifest.Windows[i]; w.Variant == variant && w.Workload == workload && w.Block == plan.Block && w.Start == plan.Window.Start {
			w.End = max(w.Start, whole)
		}
	}
}

// unwatched says for how long nobody watched the client before the run stopped, if that
// is more than a kill explains, or that what was watched cannot be read; "" if neither.
func (p *past) unwatched() string {
	if p == nil {
		return ""
	}
	if p.damaged > 0 {
		return fmt.Sprintf("what the client was like in %d of the seconds before the run stopped cannot be read: %s is damaged", p.damaged, watchedName)
	}
	d, ok := p.last.Sub(max(p.until, record.At(0)))
	if ok && d > lingering {
		return fmt.Sprintf("the client was not watched in the last %v before the run stopped", d.Round(100*time.Millisecond))
	}
	return ""
}

package record

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// life is what a run promised before it ended.
type life struct {
	all      []Record
	created  bool // Create returned
	acked    int  // records that Sync or the commit interval made durable
	sealed   bool // Seal returned
	manifest int  // the last version of the manifest that was written
}

const lifeDir = "runs/a"

// live is one run on the disk d: it appends, syncs, waits for the commit
// interval, writes its manifest and seals, until something fails.
func live(d *disk, seed uint64) (l life) {
	rng := rand.New(rand.NewPCG(seed, 9))
	l.all = streams(seed, 6+rng.IntN(10), 3)
	if rng.IntN(2) == 0 { // somebody else made the directory, and did not sync it
		if d.Mkdir("runs") != nil || d.Mkdir(lifeDir) != nil {
			return l
		}
		d.root.pending, d.root.durable = nil, maps.Clone(d.root.now) // "runs" itself is old
	}
	w, err := Create(d, lifeDir)
	if err != nil {
		return l
	}
	defer w.Close()
	l.created = true
	for i := range l.all {
		if w.Append(&l.all[i]) != nil {
			return l
		}
		switch rng.IntN(4) {
		case 0:
			if w.Sync() != nil {
				return l
			}
			l.acked = i + 1
		case 1:
			time.Sleep(2 * commitDelay) // in a bubble
			synctest.Wait()
			w.mu.Lock()
			tainted := w.err != nil
			w.mu.Unlock()
			if tainted {
				return l
			}
			l.acked = i + 1
		}
		if i == 3 || i == 5 {
			if WriteManifest(d, lifeDir, &Manifest{Name: fmt.Sprint(i)}) != nil {
				return l
			}
			l.manifest = i
		}
	}
	if seed%4 == 3 {
		if w.Close() == nil {
			l.acked = len(l.all)
		}
		return l
	}
	if w.Seal() == nil {
		l.acked, l.sealed = len(l.all), true
	}
	return l
}

// kept checks the promises of a life on a disk after the power came back.
func (l life) kept(d *disk) error {
	m, err := ReadManifest(d, lifeDir)
	switch {
	case err != nil && (!errors.Is(err, fs.ErrNotExist) || l.manifest > 0):
		return fmt.Errorf("manifest %d: %w", l.manifest, err)
	case err == nil && m.Name < fmt.Sprint(l.manifest):
		return fmt.Errorf("manifest %d is lost, there is %s", l.manifest, m.Name)
	}
	r, err := Open(d, lifeDir)
	if errors.Is(err, fs.ErrNotExist) && !l.created {
		return nil
	}
	if err != nil {
		return err
	}
	if l.created && r.end < headerSize && !r.sealed {
		return errors.New("the journal was created without its header")
	}
	got, _, err := ReadAll(d, lifeDir)
	if err != nil {
		return err
	}
	if len(got) < l.acked {
		return fmt.Errorf("%d records were acked, %d are left", l.acked, len(got))
	}
	if diff := diffRecords(l.all[:len(got)], got); diff != "" {
		return fmt.Errorf("the records changed:\n%s", diff)
	}
	if l.sealed && (!r.sealed || d.get(lifeDir+"/"+journalName) != nil) {
		return errors.New("the run was sealed, and is no more")
	}
	return nil
}

// recovered brings a run to its end after a crash: mend, then seal. It returns
// what is promised now.
func (l life) recovered(d *disk) (life, error) {
	if r, err := Open(d, lifeDir); errors.Is(err, fs.ErrNotExist) {
		return l, nil
	} else if err != nil {
		return l, err
	} else {
		l.acked, l.created = int(r.records), true
	}
	repair, err := Mend(d, lifeDir)
	if err != nil {
		return l, err
	}
	if repair.Torn() {
		// What Mend says is done must be done, wherever the power goes next.
		for range 4 {
			later := d.image()
			if r, err := Open(later, lifeDir); err != nil {
				return l, err
			} else if r.Report().Torn() {
				return l, fmt.Errorf("mended, and torn again: %v", r.Report())
			}
			if n := len(later.get(lifeDir + "/" + cutName)); int64(n) != repair.Cut {
				return l, fmt.Errorf("%d bytes were cut, the copy has %d", repair.Cut, n)
			}
		}
	}
	if err := Seal(d, lifeDir); err != nil {
		return l, err
	}
	l.sealed = true
	return l, nil
}

// crash lets a run live until operation stopAt, takes the power away, and checks
// what is left; then it recovers, with a second failure in the middle of that,
// and checks again. It returns the disk of the first life.
func crash(t *testing.T, seed uint64, stopAt int, skip string) (d *disk, err error) {
	synctest.Test(t, func(t *testing.T) {
		d = newDisk(seed*10007 + uint64(stopAt))
		d.stopAt, d.skip = stopAt, skip
		l := live(d, seed)
		err = l.afterwards(d)
	})
	return d, err
}

// operations returns how many operations the whole life of that seed has.
func operations(t *testing.T, seed uint64) (n int) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(seed)
		live(d, seed)
		n = d.op
	})
	return n
}

func (l life) afterwards(d *disk) error {
	// The process was killed, but the machine lives: the page cache is all there,
	// and recovery is the first to meet a power failure.
	killed := d.rng.IntN(2) == 0
	if !killed {
		d = d.image()
		if err := l.kept(d); err != nil {
			return fmt.Errorf("after the crash: %w", err)
		}
	}
	d.revive(1 + d.rng.IntN([]int{4, 20}[d.rng.IntN(2)]))
	after, err := l.recovered(d)
	if err != nil && !d.stopped() {
		return fmt.Errorf("recovering: %w", err)
	}
	if err == nil {
		l = after
	} else if !killed { // what was on the disk then was durable
		l.acked = max(l.acked, min(after.acked, len(l.all)))
	}
	d = d.image()
	if err := l.kept(d); err != nil {
		return fmt.Errorf("after the second crash: %w", err)
	}
	d.revive(0)
	l, err = l.recovered(d)
	if err != nil {
		return fmt.Errorf("recovering again: %w", err)
	}
	if err := l.kept(d.image()); err != nil {
		return fmt.Errorf("after recovery: %w", err)
	}
	return nil
}

func TestPowerFailureLosesNothingThatWasAcked(t *testing.T) {
	t.Parallel()
	points, want := 0, 1000
	for seed := uint64(1); points < want; seed++ {
		for stopAt := range operations(t, seed) + 1 { // the last is after the end
			if _, err := crash(t, seed, 1+stopAt, ""); err != nil {
				t.Fatalf("seed %d, operation %d: %v", seed, 1+stopAt, err)
			}
			points++
		}
	}
	t.Logf("%d crash points", points)
}

// TestEverySyncIsNeeded takes each sync of the package away in turn: the test
// above must then fail, or it proves nothing, or the sync is for nothing.
func TestEverySyncIsNeeded(t *testing.T) {
	t.Parallel()
	sites := map[string]bool{}
	for seed := range uint64(4) {
		for stopAt := 1; stopAt < operations(t, seed)+3; stopAt += 2 {
			d, err := crash(t, seed, stopAt, "")
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(sites, d.sites)
		}
	}
	if len(sites) < 15 {
		t.Errorf("only %d places sync: %v", len(sites), sites)
	}
	for _, site := range slices.Sorted(maps.Keys(sites)) {
		tried, err := 0, error(nil)
		for seed := uint64(1); seed < 500 && err == nil; seed++ {
			// The end of a life, where the files change places, is the dangerous part;
			// a few points of the rest with it.
			n := operations(t, seed) + 1 // after the end
			for back := 0; back < n && err == nil; back += 1 + back/2 {
				tried++
				_, err = crash(t, seed, n-back, site)
			}
		}
		if err == nil {
			t.Errorf("without %s nothing was lost in %d crashes", site, tried)
		} else {
			t.Logf("%s: after %d crashes: %v", site, tried, strings.SplitN(err.Error(), "\n", 2)[0])
		}
	}
}

// TestFailingDiskTaintsTheRun fails each operation in turn, with a full disk and
// with a failing sync.
func TestFailingDiskTaintsTheRun(t *testing.T) {
	for _, fail := range []struct {
		err   error
		kinds string
	}{{syscall.ENOSPC, "write create mkdir rename"}, {syscall.EIO, "sync syncdir write rename remove"}} {
		for n := 1; ; n++ {
			var hit string
			synctest.Test(t, func(t *testing.T) {
				d := newDisk(uint64(n))
				count := 0
				d.fault = func(_ int, kind, name string) error {
					if !strings.Contains(" "+fail.kinds+" ", " "+kind+" ") {
						return nil
					}
					if count++; count == n {
						hit = kind + " " + name
						return fail.err
					}
					return nil
				}
				l, err := liveOnce(d)
				d.fault = nil
				if hit == "" {
					if err != nil {
						t.Fatal(err)
					}
					return
				}
				if !errors.Is(err, fail.err) {
					t.Fatalf("%s: the run ended with %v", hit, err)
				}
				d.revive(0)
				if err := l.kept(d.image()); err != nil {
					t.Fatalf("%s: %v", hit, err)
				}
				if l, err = l.recovered(d); err != nil {
					t.Fatalf("%s: recovering: %v", hit, err)
				}
				if err := l.kept(d.image()); err != nil {
					t.Fatalf("%s: recovered: %v", hit, err)
				}
			})
			if hit == "" {
				t.Logf("%v: %d operations failed in turn", fail.err, n-1)
				break
			}
		}
	}
}

// liveOnce is a run that must notice every failure: it ends with the first error.
func liveOnce(d *disk) (l life, err error) {
	l.all = streams(5, 8, 3)
	w, err := Create(d, lifeDir)
	if err != nil {
		return l, err
	}
	l.created = true
	for i := range l.all {
		if err := w.Append(&l.all[i]); err != nil {
			return l, errors.Join(err, sticky(w, err))
		}
		if i%3 == 2 {
			if err := w.Sync(); err != nil {
				return l, errors.Join(err, sticky(w, err))
			}
			l.acked = i + 1
		}
	}
	if err := w.Seal(); err != nil {
		return l, err
	}
	l.sealed, l.acked = true, len(l.all)
	return l, nil
}

// sticky returns an error unless the Writer stays with its first one and leaves
// the disk alone.
func sticky(w *Writer, first error) error {
	d, _ := w.fsys.(*disk)
	before := d.op
	for name, err := range map[string]error{"Append": w.Append(&Record{}), "Sync": w.Sync(), "Close": w.Close()} {
		if !errors.Is(err, first) && err.Error() != first.Error() {
			return fmt.Errorf("%s forgot the failure: %w", name, err)
		}
	}
	if d.op != before {
		return errors.New("a tainted Writer wrote")
	}
	return nil
}

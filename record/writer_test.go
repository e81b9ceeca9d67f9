package record

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// durable returns how many records a power failure now would leave at worst.
func durable(t *testing.T, d *disk) int {
	t.Helper()
	d.mu.Lock()
	data := d.find("run/" + journalName).synced
	d.mu.Unlock()
	records, repair, err := ReadAll(torn(data), "run")
	if err != nil || repair.Torn() {
		t.Fatal(repair, err)
	}
	return len(records)
}

func TestRecordsAreDurableWithinTheCommitInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(1)
		w, err := Create(d, "run")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if err := w.Append(&Record{Shot: int64(i)}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if n := durable(t, d); n != 0 {
			t.Errorf("%d records are durable before their commit: they were not grouped", n)
		}
		time.Sleep(commitDelay - 10*time.Millisecond)
		synctest.Wait()
		if n := durable(t, d); n != 10 {
			t.Errorf("%d of 10 records are durable %v after the first", n, commitDelay)
		}
		ops := d.op
		time.Sleep(time.Hour)
		if d.op != ops {
			t.Error("a Writer without work wrote")
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAThousandRecordsCommitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(1)
		w, err := Create(d, "run")
		if err != nil {
			t.Fatal(err)
		}
		for i := range commitCount {
			if err := w.Append(&Record{Shot: int64(i)}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait() // and no time passes
		if n := durable(t, d); n != commitCount {
			t.Errorf("%d records are durable", n)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAppendWaitsForADiskThatIsFarBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDisk(1)
		gate := make(chan struct{})
		w, err := Create(gatedFS{d, gate}, "run")
		if err != nil {
			t.Fatal(err)
		}
		big := Record{Detail: string(make([]byte, 8<<20))}
		done := 0
		var wg sync.WaitGroup
		wg.Go(func() {
			for range 20 {
				if err := w.Append(&big); err != nil {
					t.Error(err)
				}
				done++
			}
		})
		time.Sleep(time.Hour)
		synctest.Wait()
		if done > maxPending/len(big.Detail)+4 {
			t.Errorf("%d records of 8 MiB are held in memory", done)
		}
		close(gate)
		wg.Wait()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if n := durable(t, d); n != 20 {
			t.Errorf("%d of 20 records are durable", n)
		}
	})
}

// gatedFS is a disk whose journal does not write a record before gate is closed.
type gatedFS struct {
	*disk
	gate chan struct{}
}

type gatedFile struct {
	File
	gate chan struct{}
}

func (g gatedFS) Create(name string) (File, error) {
	f, err := g.disk.Create(name)
	return gatedFile{f, g.gate}, err
}

func (g gatedFile) Write(b []byte) (int, error) {
	if len(b) > headerSize {
		<-g.gate
	}
	return g.File.Write(b)
}

func TestWriterIsSafeForConcurrentUse(t *testing.T) {
	const workers, each = 8, 300
	d := newDisk(1)
	w, err := Create(d, "run")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for i := range each {
				r := Record{Shot: int64(i), Session: fmt.Sprint(worker), Labels: map[string]string{"w": fmt.Sprint(worker)}}
				if err := w.Append(&r); err != nil {
					t.Error(err)
				}
				if i%50 == 0 {
					if err := w.Sync(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if err := w.Seal(); err != nil {
		t.Fatal(err)
	}
	got, _, err := ReadAll(d, "run")
	if err != nil {
		t.Fatal(err)
	}
	next := map[string]int64{}
	for _, r := range got {
		if r.Shot != next[r.Session] || r.Labels["w"] != r.Session {
			t.Fatalf("worker %s: shot %d after %d", r.Session, r.Shot, next[r.Session])
		}
		next[r.Session]++
	}
	if len(got) != workers*each {
		t.Errorf("%d records, want %d", len(got), workers*each)
	}
}

func TestClosedWriterRefuses(t *testing.T) {
	d := newDisk(1)
	w, err := Create(d, "run")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Append(&Record{Shot: 7}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Append(&Record{}); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Append = %v", err)
	}
	if err := w.Seal(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Seal = %v", err)
	}
	if err := w.Sync(); err != nil {
		t.Errorf("Sync of what Close made durable = %v", err)
	}
	if n := durable(t, d); n != 1 {
		t.Errorf("%d records", n)
	}
	if err := Seal(d, "run"); err != nil { // what Close left can be sealed later
		t.Error(err)
	}
}

func TestCreateNeverOverwrites(t *testing.T) {
	all := streams(1, 3, 2)
	data, _ := journalOf(all)
	for name, d := range map[string]*disk{"journal": torn(data), "table": sealed(t, all)} {
		if _, err := Create(d, "run"); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: Create = %v", name, err)
		}
		if got, _, err := ReadAll(d, "run"); err != nil || len(got) != 3 {
			t.Errorf("%s: %d records, %v", name, len(got), err)
		}
	}
}

// TestSecondWriterIsRefused is on the real file system, with its real locks.
func TestSecondWriterIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs", "a")
	w, err := Create(OS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Append(&Record{Shot: 1}); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	for name, try := range map[string]func() error{
		"Create": func() error { _, err := Create(OS(), dir); return err },
		"Mend":   func() error { _, err := Mend(OS(), dir); return err },
		"Seal":   func() error { return Seal(OS(), dir) },
	} {
		if err := try(); !errors.Is(err, ErrLocked) {
			t.Errorf("%s beside a writer = %v, want ErrLocked", name, err)
		}
	}
	if waited := time.Since(begin); waited > time.Second {
		t.Errorf("the refusals took %v", waited)
	}
	if err := w.Seal(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != parquetName {
		t.Errorf("a sealed run has %v, %v", entries, err)
	}
	if _, err := Mend(OS(), dir); err != nil {
		t.Errorf("the lock outlived its holder: %v", err)
	}
}

func TestOneWriterWinsEveryRace(t *testing.T) {
	rounds := 200
	if os.Getenv("ASSAY_SLOW") == "1" {
		rounds = 1000
	}
	base := t.TempDir()
	for round := range rounds {
		dir := filepath.Join(base, fmt.Sprint(round))
		var wg sync.WaitGroup
		won := make(chan error, 3)
		for writer := range 3 {
			wg.Go(func() {
				w, err := Create(OS(), dir)
				if err != nil {
					if !errors.Is(err, ErrLocked) && !errors.Is(err, fs.ErrExist) {
						t.Error(err)
					}
					return
				}
				won <- errors.Join(w.Append(&Record{Shot: int64(writer)}), w.Close())
			})
		}
		wg.Wait()
		close(won)
		n := 0
		for err := range won {
			if n++; err != nil {
				t.Error(err)
			}
		}
		got, repair, err := ReadAll(OS(), dir)
		if n != 1 || len(got) != 1 || repair.Torn() || err != nil {
			t.Fatalf("round %d: %d writers, %d records, %v, %v", round, n, len(got), repair, err)
		}
	}
}

func TestRunOnTheRealFileSystem(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "er", "run")
	all := streams(1, 50, 20)
	w, err := Create(OS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if err := w.Append(&all[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, journalName)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data[:len(data)-3], 0o644); err != nil {
		t.Fatal(err)
	}
	repair, err := Mend(OS(), dir)
	if err != nil || repair.Records != 49 || repair.Reason != "torn record" {
		t.Fatalf("Mend = %+v, %v", repair, err)
	}
	if err := Seal(OS(), dir); err != nil {
		t.Fatal(err)
	}
	got, _, err := ReadAll(OS(), dir)
	if diff := diffRecords(all[:49], got); err != nil || diff != "" {
		t.Fatal(err, diff)
	}
	if cut, err := os.ReadFile(filepath.Join(dir, cutName)); err != nil || int64(len(cut)) != repair.Cut {
		t.Errorf("the copy of what was cut has %d bytes, %v", len(cut), err)
	}
}

func TestAppendDoesNotAllocate(t *testing.T) {
	w, err := Create(OS(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r := streams(1, 2, 100)[1]
	r.Values = map[string]float64{"bleu": 0.5, "chrf": 0.25}
	for range 3000 { // the buffers reach their size
		if err := w.Append(&r); err != nil {
			t.Fatal(err)
		}
	}
	got := testing.AllocsPerRun(2000, func() {
		if err := w.Append(&r); err != nil {
			t.Fatal(err)
		}
	})
	if got >= 1 && !raceEnabled {
		t.Errorf("Append allocates %v times", got)
	}
}

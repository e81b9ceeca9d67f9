package record

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"
)

// The group commit. A record waits at most commitDelay for its commit to begin,
// which leaves as long again for the disk to stay within 50 ms; commitCount
// records begin one at once.
const (
	commitDelay = 25 * time.Millisecond
	commitCount = 1000
	maxPending  = 64 << 20 // bytes appended but not yet written; Append waits at that
)

// Writer appends records to the journal of one run. Its methods are safe for
// concurrent use. One goroutine of its own commits; Close and Seal wait for it.
//
// The first failure to write or to sync is final: the Writer returns it from
// every later call and never tries again, since after a failed fsync nobody
// knows what the disk holds. The run is tainted then; what was durable before
// is still in the journal.
type Writer struct {
	fsys   FS
	dir    string
	file   File
	unlock func() error
	commit chan struct{} // 1: a commit is asked for now
	first  chan struct{} // 1: a record waits for the commit interval
	stop   chan struct{}
	syncer sync.WaitGroup
	scrap  sync.Pool // *frame

	mu       sync.Mutex
	progress sync.Cond // durable, err or closed has changed
	pending  []byte    // frames not yet given to the file
	waiting  int       // records in pending
	spare    []byte    // the buffer that pending is swapped with
	appended int64     // records
	durable  int64     // records
	closed   bool
	closeErr error
	err      error // the first failure
}

// frame is the scratch space in which one Append encodes.
type frame struct {
	encoder
	bytes []byte
}

// Create begins the records of a run in dir, which is made if it is missing.
// Records that are already there are never overwritten: the error is fs.ErrExist
// then, and ErrLocked when another writer is at work.
func Create(fsys FS, dir string) (*Writer, error) {
	w, err := create(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("creating the records of %s: %w", dir, err)
	}
	return w, nil
}

func create(fsys FS, dir string) (_ *Writer, err error) {
	if err := makeDir(fsys, dir); err != nil {
		return nil, err
	}
	unlock, err := fsys.Lock(filepath.Join(dir, lockName))
	if err != nil {
		return nil, lockError(dir, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, unlock())
		}
	}()
	for _, name := range []string{parquetName, journalName} {
		if there, err := exists(fsys, filepath.Join(dir, name)); err != nil {
			return nil, err
		} else if there {
			return nil, fmt.Errorf("%s: %w\n  hint: every run has a directory of its own", name, fs.ErrExist)
		}
	}
	file, err := createJournal(fsys, dir)
	if err != nil {
		return nil, err
	}
	return newWriter(fsys, dir, file, unlock), nil
}

// newWriter starts a Writer on a journal that is open for writing behind its end.
func newWriter(fsys FS, dir string, file File, unlock func() error) *Writer {
	w := &Writer{
		fsys: fsys, dir: dir, file: file, unlock: unlock,
		commit: make(chan struct{}, 1), first: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	w.scrap.New = func() any { return new(frame) }
	w.progress.L = &w.mu
	w.syncer.Go(w.run)
	return w
}

// createJournal makes a durable journal without records.
func createJournal(fsys FS, dir string) (_ File, err error) {
	name := filepath.Join(dir, journalName)
	file, err := fsys.Create(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil { // nothing is in it, so that a second try may make it anew
			err = errors.Join(err, file.Close(), discard(fsys, name))
		}
	}()
	if _, err := file.Write(journalHeader()); err != nil {
		return nil, err
	}
	if err := file.Sync(); err != nil {
		return nil, err
	}
	return file, fsys.SyncDir(dir)
}

// Append adds a record to the journal. It copies what it needs: the caller may
// change r afterwards. The record is durable after the next commit, which begins
// within 25 ms or with the 1,000th record, whichever is first, or after Sync.
// Append waits only when the disk is 64 MiB behind.
//
// A record that cannot be kept (see [Record.Validate]) is refused with an error
// that does not taint the run.
func (w *Writer) Append(r *Record) error {
	if err := r.Validate(); err != nil {
		return fmt.Errorf("appending a record: %w", err)
	}
	f := w.scrap.Get().(*frame)
	defer w.scrap.Put(f)
	f.bytes = f.appendRecord(appendFrameHead(f.bytes[:0]), r)
	if size := len(f.bytes) - frameHead; size > maxFrame {
		f.bytes = nil
		return fmt.Errorf("appending a record: %d bytes are more than %d", size, maxFrame)
	}
	closeFrame(f.bytes)

	w.mu.Lock()
	defer w.mu.Unlock()
	for w.err == nil && !w.closed && len(w.pending) > maxPending {
		w.progress.Wait()
	}
	if err := w.usableLocked(); err != nil {
		return err
	}
	w.pending = append(w.pending, f.bytes...)
	w.appended++
	w.waiting++
	switch w.waiting {
	case 1:
		signal(w.first)
	case commitCount:
		signal(w.commit)
	}
	return nil
}

func (w *Writer) usableLocked() error {
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return fmt.Errorf("appending to the records of %s: %w", w.dir, fs.ErrClosed)
	}
	return nil
}

// signal leaves a token in a channel of capacity 1, if there is none.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Sync returns when everything appended before is durable, or with the error
// that taints the run.
func (w *Writer) Sync() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	target := w.appended
	if w.durable < target && w.err == nil && !w.closed {
		signal(w.commit)
	}
	for w.durable < target && w.err == nil && !w.closed {
		w.progress.Wait()
	}
	if w.err == nil && w.durable < target {
		return fmt.Errorf("syncing the records of %s: %w", w.dir, fs.ErrClosed)
	}
	return w.err
}

// run commits until stop is closed, and then once more.
func (w *Writer) run() {
	timer := time.NewTimer(commitDelay)
	defer timer.Stop()
	for {
		select {
		case <-w.stop:
			w.flush()
			return
		case <-w.commit:
		case <-w.first:
			timer.Reset(commitDelay)
			select {
			case <-w.stop:
				w.flush()
				return
			case <-w.commit:
			case <-timer.C:
			}
		}
		w.flush()
	}
}

// flush writes what is pending and syncs it. Only the syncer calls it.
func (w *Writer) flush() {
	w.mu.Lock()
	batch, count := w.pending, w.waiting
	w.pending, w.spare, w.waiting = w.spare[:0], nil, 0
	tainted := w.err != nil
	w.mu.Unlock()
	if tainted || count == 0 {
		return
	}
	_, err := w.file.Write(batch)
	if err == nil {
		err = w.file.Sync()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.err = fmt.Errorf("writing the records of %s: %w\n  hint: this run cannot be trusted beyond its last commit; make room or mend the disk and run it again", w.dir, err)
		w.pending = nil
	} else {
		w.durable += int64(count)
	}
	w.spare = batch[:0]
	w.progress.Broadcast()
}

// Close commits what was appended and closes the journal without sealing it. It
// waits for the syncer. A second Close returns what the first did.
func (w *Writer) Close() error {
	return w.finish(nil)
}

// Seal commits what was appended, turns the journal into records.parquet and
// removes it; the Writer is closed afterwards, whatever the outcome. After a
// failure the journal is still there, and [Seal] can try again.
func (w *Writer) Seal() error {
	w.mu.Lock()
	closed := w.closed
	w.mu.Unlock()
	if closed {
		return fmt.Errorf("sealing the records of %s: %w", w.dir, fs.ErrClosed)
	}
	return w.finish(func() error {
		if err := seal(w.fsys, w.dir); err != nil {
			return fmt.Errorf("sealing the records of %s: %w", w.dir, err)
		}
		return nil
	})
}

// finish ends the Writer; then, if all is well, does last before the lock goes.
func (w *Writer) finish(last func() error) error {
	w.mu.Lock()
	if w.closed {
		defer w.mu.Unlock()
		return w.closeErr
	}
	w.closed = true
	w.progress.Broadcast()
	w.mu.Unlock()

	close(w.stop)
	w.syncer.Wait()
	closing := w.file.Close()

	w.mu.Lock()
	err := w.err
	if err == nil && closing != nil {
		w.err = fmt.Errorf("closing the records of %s: %w", w.dir, closing)
		err = w.err
	}
	w.mu.Unlock()
	if err == nil && last != nil {
		err = last()
	}
	err = errors.Join(err, w.unlock())

	w.mu.Lock()
	defer w.mu.Unlock()
	w.closeErr = err
	return err
}

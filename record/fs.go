package record

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// The files of a run directory that this package owns.
const (
	journalName  = "records.journal"
	parquetName  = "records.parquet"
	cutName      = "records.journal.cut" // what Mend took off the journal
	lockName     = "records.lock"
	manifestName = "manifest.json"
	temporary    = ".tmp" // suffix of a file that is not yet the file
)

// FS is the few file operations that this package needs, with the durability
// that each of them has on its own: none, until Sync or SyncDir returns. [OS] is
// the real one; a test puts a file system in its place that loses power, fills
// up or fails.
type FS interface {
	// Mkdir makes one directory; the error is fs.ErrExist when there is one and
	// fs.ErrNotExist when its parent is missing.
	Mkdir(dir string) error
	// Open opens a file for reading.
	Open(name string) (File, error)
	// Create makes or empties a file, for writing and reading.
	Create(name string) (File, error)
	// Edit opens an existing file for writing and reading, at its start.
	Edit(name string) (File, error)
	// Append opens an existing file for writing behind its end, and reading.
	Append(name string) (File, error)
	Rename(from, to string) error
	Remove(name string) error
	// SyncDir makes the directory's entries durable: files made in it, renamed
	// into it and removed from it.
	SyncDir(dir string) error
	// Lock takes a lock that dies with the process, or fails at once when
	// another holder has it. The lock is a file of that name; unlock removes it.
	Lock(name string) (unlock func() error, err error)
}

// File is an open file of an [FS].
type File interface {
	io.ReaderAt
	io.Writer
	io.Closer
	Size() (int64, error)
	Truncate(size int64) error
	// Sync makes the file's bytes durable, but not its entry in the directory.
	Sync() error
}

// ErrLocked is what FS.Lock, and so Create, Seal and Mend, return when another
// writer holds the run directory.
var ErrLocked = errors.New("another writer holds the run's records")

// OS returns the operating system's files.
func OS() FS { return osFS{} }

type osFS struct{}

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func wrapFile(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) Mkdir(dir string) error         { return os.Mkdir(dir, 0o755) }
func (osFS) Open(name string) (File, error) { return wrapFile(os.Open(name)) }
func (osFS) Create(name string) (File, error) {
	return wrapFile(os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644))
}

func (osFS) Edit(name string) (File, error) { return wrapFile(os.OpenFile(name, os.O_RDWR, 0)) }
func (osFS) Append(name string) (File, error) {
	return wrapFile(os.OpenFile(name, os.O_RDWR|os.O_APPEND, 0))
}
func (osFS) Rename(from, to string) error           { return os.Rename(from, to) }
func (osFS) Remove(name string) error               { return os.Remove(name) }
func (osFS) SyncDir(dir string) error               { return syncDir(dir) }
func (osFS) Lock(name string) (func() error, error) { return lockFile(name) }

// makeDir makes dir and the parents it lacks, each durable in its own parent.
// The entry of dir is synced even if dir was there before: whoever made it may
// not have synced it.
func makeDir(fsys FS, dir string) error {
	dir = filepath.Clean(dir)
	parent := filepath.Dir(dir)
	err := fsys.Mkdir(dir)
	if errors.Is(err, fs.ErrNotExist) && parent != dir {
		if err := makeDir(fsys, parent); err != nil {
			return err
		}
		err = fsys.Mkdir(dir)
	}
	if errors.Is(err, fs.ErrExist) {
		// A parent that may not be read cannot be synced; the directory is not ours then.
		if err := fsys.SyncDir(parent); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		return nil
	}
	if err != nil {
		return err
	}
	return fsys.SyncDir(parent)
}

// writeFile puts a file in place in one step: after a crash there is either what
// was there before or all of the new content. If check is given, it may refuse
// the file, by its temporary name, before that.
func writeFile(fsys FS, dir, name string, content func(w io.Writer) error, check func(tmp string) error) (err error) {
	tmp := filepath.Join(dir, name+temporary)
	f, err := fsys.Create(tmp)
	if err != nil {
		return err
	}
	defer func() {
		if f != nil {
			f.Close()
		}
		if err != nil {
			err = errors.Join(err, discard(fsys, tmp))
		}
	}()
	if err := content(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	err, f = f.Close(), nil
	if err != nil {
		return err
	}
	if check != nil {
		if err := check(tmp); err != nil {
			return err
		}
	}
	if err := fsys.Rename(tmp, filepath.Join(dir, name)); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}

// discard removes a file that is no longer wanted, if it is there.
func discard(fsys FS, name string) error {
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// exists reports whether a file can be opened for reading.
func exists(fsys FS, name string) (bool, error) {
	f, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}

// locked runs do while holding the directory's single-writer lock.
func locked(fsys FS, dir string, do func() error) error {
	unlock, err := fsys.Lock(filepath.Join(dir, lockName))
	if err != nil {
		return lockError(dir, err)
	}
	return errors.Join(do(), unlock())
}

func lockError(dir string, err error) error {
	if errors.Is(err, ErrLocked) {
		return fmt.Errorf("locking %s: %w\n  hint: wait for the run to end, or choose another directory", dir, err)
	}
	return fmt.Errorf("locking %s: %w", dir, err)
}

package record

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
)

// Reader reads the records of a run directory, sealed or not, in the order in
// which they were appended. It never writes. It holds no file open between
// calls, and is safe for concurrent use.
type Reader struct {
	fsys    FS
	dir     string
	sealed  bool
	records int64  // as Open found them
	end     int64  // of the journal: offset behind the last intact record
	report  Repair // of the journal
}

// Open finds the records of a run: records.parquet if it is there, which is only
// ever whole, else the journal, of which it checks every record. The journal of a
// run that is still going is read as far as it is written: its last record may
// look torn. Damage in the journal is no error: see [Reader.Report].
func Open(fsys FS, dir string) (*Reader, error) {
	r := &Reader{fsys: fsys, dir: dir}
	// A journal that goes away between the two looks was sealed meanwhile.
	for range 2 {
		for _, try := range []func() error{r.openTable, r.openJournal} {
			if err := try(); err == nil {
				return r, nil
			} else if !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("opening the records of %s: %w", dir, err)
			}
		}
	}
	return nil, notFound(dir)
}

func (r *Reader) openTable() (err error) {
	name := filepath.Join(r.dir, parquetName)
	f, err := r.fsys.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	t, err := openTable(name, f)
	if err != nil {
		return err
	}
	r.sealed, r.records = true, t.stated.records
	return nil
}

func (r *Reader) openJournal() (err error) {
	name := filepath.Join(r.dir, journalName)
	f, err := r.fsys.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return err
	}
	found, err := inspect(name, f, size, new(decoder), nil)
	r.records, r.end, r.report = found.records, found.end, found.repair
	return err
}

// Report returns what a torn journal holds; it is zero when there is no damage.
func (r *Reader) Report() Repair { return r.report }

// All iterates over the intact records. The caller owns each. An error ends the
// iteration: the records before it are good, but they are not all; of a sealed
// file that is damaged the last records may be given before the error.
func (r *Reader) All() iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		stopped := false
		give := func(rec *Record) bool {
			stopped = !yield(rec, nil)
			return !stopped
		}
		var err error
		if !r.sealed {
			err = r.readJournal(give)
		}
		// A journal that has gone since Open was sealed: the same records.
		if r.sealed || errors.Is(err, fs.ErrNotExist) {
			err = readTable(r.fsys, filepath.Join(r.dir, parquetName), give, nil)
		}
		if err != nil && !stopped {
			yield(nil, err)
		}
	}
}

var errStopped = errors.New("stopped")

func (r *Reader) readJournal(yield func(*Record) bool) (err error) {
	name := filepath.Join(r.dir, journalName)
	if r.records == 0 {
		return nil
	}
	f, err := r.fsys.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	found, err := inspect(name, f, r.end, new(decoder), func(rec *Record) error {
		if !yield(rec) {
			return errStopped
		}
		return nil
	})
	if errors.Is(err, errStopped) {
		return nil
	}
	if err == nil && found.records != r.records {
		return fmt.Errorf("reading %s: it changed under the reader: %d records, not %d", name, found.records, r.records)
	}
	return err
}

// ReadAll opens a run and returns all its intact records, with what was torn.
func ReadAll(fsys FS, dir string) ([]Record, Repair, error) {
	r, err := Open(fsys, dir)
	if err != nil {
		return nil, Repair{}, err
	}
	records := make([]Record, 0, min(max(r.records, 0), 1<<20))
	for rec, err := range r.All() {
		if err != nil {
			return nil, r.report, err
		}
		records = append(records, *rec)
	}
	return records, r.report, nil
}

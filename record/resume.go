package record

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
)

// Reopen goes on with the records of a run that stopped: it takes the single-writer
// lock, mends a torn journal as [Mend] does, turns a sealed table back into a
// journal, and returns a Writer that appends behind what is there. The error is
// ErrLocked while the run still goes on.
func Reopen(fsys FS, dir string) (w *Writer, repair Repair, err error) {
	unlock, err := fsys.Lock(filepath.Join(dir, lockName))
	if err != nil {
		return nil, Repair{}, fmt.Errorf("reopening the records of %s: %w", dir, lockError(dir, err))
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("reopening the records of %s: %w", dir, errors.Join(err, unlock()))
		}
	}()
	sealed, err := exists(fsys, filepath.Join(dir, parquetName))
	if err != nil {
		return nil, Repair{}, err
	}
	if sealed {
		err = unseal(fsys, dir)
	} else {
		repair, err = mend(fsys, dir)
	}
	if err != nil {
		return nil, repair, err
	}
	file, err := fsys.Append(filepath.Join(dir, journalName))
	if err != nil {
		return nil, repair, err
	}
	return newWriter(fsys, dir, file, unlock), repair, nil
}

// unseal puts the journal of a sealed table in its place. Until the journal is
// whole and durable the table stays; where both are found, the table wins.
func unseal(fsys FS, dir string) error {
	table := filepath.Join(dir, parquetName)
	if err := knownColumns(fsys, table); err != nil {
		return err
	}
	err := writeFile(fsys, dir, journalName, func(w io.Writer) error {
		if _, err := w.Write(journalHeader()); err != nil {
			return err
		}
		var f frame
		var failed error
		err := readTable(fsys, table, func(r *Record) bool {
			f.bytes = f.appendRecord(appendFrameHead(f.bytes[:0]), r)
			closeFrame(f.bytes)
			_, failed = w.Write(f.bytes)
			return failed == nil
		}, nil)
		return errors.Join(err, failed)
	}, nil)
	if err != nil {
		return err
	}
	if err := fsys.Remove(table); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}

// knownColumns refuses a table with columns that a journal of this version would lose.
func knownColumns(fsys FS, name string) (err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	t, err := openTable(name, f)
	if err != nil {
		return err
	}
	for _, path := range t.file.Schema().Columns() {
		if _, ok := tableSchema.Lookup(path...); !ok {
			return newerError(name, "with a column "+strings.Join(path, "."))
		}
	}
	return nil
}

// tried names one planned request.
type tried struct {
	variant, workload string
	shot              int64
}

// Final leaves out of records the tries of measured requests that a stop of the
// run cut and that were repeated when it was resumed, so that each planned request
// is there once. It keeps the order and returns how many it left out.
//
// A try that was cut after longer than its repetition took in all does not get away
// with the luck of a second chance: it counts, as not done in time, and the
// repetition is left out.
func Final(records []Record) (final []Record, out int) {
	last := make(map[tried]int) // the try that counts: the last, but rather one that was not cut
	for i := range records {
		if r := &records[i]; r.Phase == Measured && r.Flags&FlagReissued != 0 {
			last[tried{r.Variant, r.Workload, r.Shot}] = -1
		}
	}
	if len(last) == 0 {
		return records, 0
	}
	for i := range records {
		r := &records[i]
		k := tried{r.Variant, r.Workload, r.Shot}
		if best, again := last[k]; again && r.Phase == Measured && (best < 0 || records[best].Outcome == Interrupted) {
			last[k] = i
		}
	}
	slow := outlasted(records, last)
	for i := range records {
		r := &records[i]
		k := tried{r.Variant, r.Workload, r.Shot}
		best, again := last[k]
		if cut, is := slow[k]; again && r.Phase == Measured && is {
			if i == cut {
				final = append(final, *r)
				f := &final[len(final)-1]
				f.Outcome = TotalTimeout
				f.Detail = fmt.Sprintf("not done after %v, when the run was stopped; sent again it took %v", lasted(r), lasted(&records[best]))
				continue
			}
			if i == best || r.Outcome == Interrupted {
				out++
				continue
			}
		}
		if again && best != i && r.Phase == Measured && r.Outcome == Interrupted {
			out++
			continue
		}
		final = append(final, *r)
	}
	return final, out
}

// outlasted finds, of the requests that were sent again, those of which a try was cut
// after longer than the one that counts took, and the longest of such tries.
func outlasted(records []Record, last map[tried]int) map[tried]int {
	slow := make(map[tried]int)
	for i := range records {
		r := &records[i]
		k := tried{r.Variant, r.Workload, r.Shot}
		best, again := last[k]
		if !again || r.Phase != Measured || r.Outcome != Interrupted || best < 0 || !records[best].Success() || lasted(r) <= lasted(&records[best]) {
			continue
		}
		if longest, ok := slow[k]; !ok || lasted(r) > lasted(&records[longest]) {
			slow[k] = i
		}
	}
	return slow
}

// lasted is how long a request was under way from its due instant; 0: not known.
func lasted(r *Record) time.Duration {
	d, _ := r.EOF.Sub(r.Due)
	return d
}

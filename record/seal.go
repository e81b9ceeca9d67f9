package record

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// A row group is written out when it has this many rows or cells: what bounds
// the memory of sealing, whatever the number of records.
const (
	groupRows  = 64 << 10
	groupCells = 2 << 20
	batchRows  = 64
)

// Seal turns the journal of a run that has ended into records.parquet, as
// [Writer.Seal] does. It finishes a sealing that a crash cut short; of a sealed
// run it changes nothing. A torn journal is refused: [Mend] it first.
//
// The order makes every crash harmless: the table is written beside the journal
// under a temporary name, synced, read back and compared, renamed, and its entry
// synced, before the journal is removed. Where both files are found the table is
// whole, since its name was given to it last, and it wins.
func Seal(fsys FS, dir string) error {
	if err := locked(fsys, dir, func() error { return seal(fsys, dir) }); err != nil {
		return fmt.Errorf("sealing the records of %s: %w", dir, err)
	}
	return nil
}

// seal does the work of Seal. The caller holds the lock.
func seal(fsys FS, dir string) error {
	table, journal := filepath.Join(dir, parquetName), filepath.Join(dir, journalName)
	sealed, err := exists(fsys, table)
	if err != nil {
		return err
	}
	left, err := exists(fsys, journal)
	switch {
	case err != nil:
		return err
	case !sealed && !left:
		return notFound(dir)
	case !sealed:
		err = sealJournal(fsys, dir)
	case left:
		// A crash came between the rename and the removal. Nobody knows that the
		// rename is durable, nor how long ago that was.
		if err := verifyTable(fsys, table, nil); err != nil {
			return fmt.Errorf("%w\n  hint: the journal is still there: move %s away and seal again", err, table)
		}
		err = fsys.SyncDir(dir)
	default:
		return fsys.SyncDir(dir)
	}
	if err != nil {
		return err
	}
	if err := fsys.Remove(journal); err != nil {
		return err
	}
	return fsys.SyncDir(dir)
}

// sealJournal puts records.parquet in place beside the journal.
func sealJournal(fsys FS, dir string) (err error) {
	name := filepath.Join(dir, journalName)
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return err
	}
	var written summary
	return writeFile(fsys, dir, parquetName, func(w io.Writer) error {
		t := newTableWriter(w)
		dec := new(decoder)
		found, err := inspect(name, f, size, dec, t.append)
		switch {
		case err != nil:
			return err
		case found.repair.Torn():
			return fmt.Errorf("%s: %s\n  hint: mend it first", name, found.repair)
		case dec.unknown:
			return fmt.Errorf("%s: some records have fields that would be lost: %w\n  hint: seal it with the version of assay that made it", name, ErrNewer)
		}
		written, err = t.close()
		return err
	}, func(tmp string) error { return verifyTable(fsys, tmp, &written) })
}

// verifyTable reads a table from end to end and compares it with its own
// digest, and with what was meant to be written, if that is given.
func verifyTable(fsys FS, name string, want *summary) error {
	var got summary
	err := readTable(fsys, name, func(*Record) bool { return true }, &got)
	if err != nil {
		return err
	}
	if want != nil && got != *want {
		return fmt.Errorf("reading %s back: %d records with digest %s, not %d with %s", name, got.records, got.digest, want.records, want.digest)
	}
	return nil
}

// summary tells the records of a table from any others.
type summary struct {
	records int64
	digest  string // hex SHA-256
}

// digester sums records: each canonical encoding behind its length.
type digester struct {
	encoder
	hash    hash.Hash
	bytes   []byte
	records int64
}

func newDigester() *digester { return &digester{hash: sha256.New()} }

func (d *digester) add(r *Record) {
	d.bytes = d.appendRecord(append(d.bytes[:0], 0, 0, 0, 0, 0, 0, 0, 0), r)
	binary.LittleEndian.PutUint64(d.bytes, uint64(len(d.bytes)-8))
	d.hash.Write(d.bytes)
	d.records++
}

func (d *digester) sum() summary {
	return summary{d.records, hex.EncodeToString(d.hash.Sum(nil))}
}

// tableWriter writes records as rows. It holds one row group.
//
// Note: zstd would save a twentieth of the size, but its encoders pass their
// memory around through channels, which must not cross synctest bubbles.
type tableWriter struct {
	out        *parquet.GenericWriter[any]
	sum        *digester
	rows       []parquet.Row
	cells      cells
	groupRows  int
	groupCells int
}

func newTableWriter(w io.Writer) *tableWriter {
	return &tableWriter{
		sum: newDigester(),
		out: parquet.NewGenericWriter[any](w, tableSchema,
			parquet.Compression(&parquet.Snappy),
			parquet.CreatedBy("assay", tableVersion, ""),
			parquet.WriteBufferSize(1<<20)),
	}
}

func (t *tableWriter) append(r *Record) error {
	t.sum.add(r)
	if len(t.rows) < cap(t.rows) {
		t.cells.row = t.rows[:len(t.rows)+1][len(t.rows)][:0] // the memory of an earlier batch
	} else {
		t.cells.row = nil
	}
	for i := range leaves {
		leaves[i].put(&t.cells, r, i)
	}
	t.rows = append(t.rows, t.cells.row)
	t.groupRows++
	t.groupCells += len(t.cells.row)
	if len(t.rows) < batchRows && t.groupCells < groupCells {
		return nil
	}
	if err := t.flush(); err != nil {
		return err
	}
	if t.groupRows < groupRows && t.groupCells < groupCells {
		return nil
	}
	t.groupRows, t.groupCells = 0, 0
	return t.out.Flush()
}

func (t *tableWriter) flush() error {
	_, err := t.out.WriteRows(t.rows)
	t.rows, t.cells.arena = t.rows[:0], t.cells.arena[:0]
	return err
}

func (t *tableWriter) close() (summary, error) {
	if err := t.flush(); err != nil {
		return summary{}, err
	}
	sum := t.sum.sum()
	t.out.SetKeyValueMetadata(metaSchema, tableVersion)
	t.out.SetKeyValueMetadata(metaRecords, strconv.FormatInt(sum.records, 10))
	t.out.SetKeyValueMetadata(metaDigest, sum.digest)
	t.out.SetKeyValueMetadata(metaColumns, columnsDigest(tableSchema))
	t.out.SetKeyValueMetadata(metaKinds, strings.Join(kindNames[:], ","))
	return sum, t.out.Close()
}

// guard turns a panic of the Parquet library, which some damaged files cause,
// into an error.
func guard(name string, do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if err != nil && !errors.Is(err, ErrNewer) {
			err = fmt.Errorf("reading %s: %w", name, err)
		}
	}()
	return do()
}

// table is an open records.parquet.
type table struct {
	name   string
	file   *parquet.File
	plan   []*leaf // by column of the file; nil: not read
	whole  bool    // the columns are this version's, no more and no fewer
	stated summary
}

func openTable(name string, f File) (*table, error) {
	t := &table{name: name}
	err := guard(name, func() error {
		size, err := f.Size()
		if err != nil {
			return err
		}
		t.file, err = parquet.OpenFile(f, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(64<<10))
		if err != nil {
			return err
		}
		return t.match()
	})
	return t, err
}

// match finds the columns of this version in the file. A column that is not
// there is unknown in every record; one that is not known is not read.
func (t *table) match() error {
	version, ok := t.file.Lookup(metaSchema)
	if !ok {
		return fmt.Errorf("it has no %s: it is not a run's records", metaSchema)
	}
	if version != tableVersion {
		return newerError(t.name, version)
	}
	n, _ := t.file.Lookup(metaRecords)
	var err error
	if t.stated.records, err = strconv.ParseInt(n, 10, 64); err != nil {
		return fmt.Errorf("%s: %w", metaRecords, err)
	}
	if t.stated.digest, _ = t.file.Lookup(metaDigest); len(t.stated.digest) != 2*sha256.Size {
		return fmt.Errorf("%s is not a digest", metaDigest)
	}
	if stated, _ := t.file.Lookup(metaColumns); stated != columnsDigest(t.file.Schema()) {
		return fmt.Errorf("its columns do not match %s: the file is damaged", metaColumns)
	}
	columns := t.file.Schema().Columns()
	t.plan = make([]*leaf, len(columns))
	t.whole = len(columns) == len(leaves)
	last := -1
	for i := range leaves {
		want, _ := tableSchema.Lookup(leaves[i].path...)
		have, ok := t.file.Schema().Lookup(leaves[i].path...)
		if !ok {
			t.whole = false
			continue
		}
		if have.Node.Type().Kind() != want.Node.Type().Kind() || have.MaxDefinitionLevel != want.MaxDefinitionLevel || have.MaxRepetitionLevel != want.MaxRepetitionLevel || have.ColumnIndex <= last {
			return fmt.Errorf("column %s is not what %s says", strings.Join(leaves[i].path, "."), tableVersion)
		}
		last = have.ColumnIndex
		if leaves[i].take != nil {
			t.plan[have.ColumnIndex] = &leaves[i]
		}
	}
	return nil
}

// record reads one row.
func (t *table) record(k *taker, row parquet.Row, r *Record) error {
	*r = Record{}
	for len(row) > 0 {
		column, n := row[0].Column(), 1
		for n < len(row) && row[n].Column() == column {
			n++
		}
		if column < 0 || column >= len(t.plan) {
			return errors.New("a row has a column that the file has not")
		}
		if l := t.plan[column]; l != nil {
			if err := l.take(k, r, row[:n]); err != nil {
				return fmt.Errorf("column %s: %w", strings.Join(l.path, "."), err)
			}
		}
		row = row[n:]
	}
	return nil
}

// readTable hands each record of the file to yield until that returns false. At
// the end it compares the records with the digest in the file, so that no number
// is read that was not written. If sum is given it gets what was read.
func readTable(fsys FS, name string, yield func(*Record) bool, sum *summary) (err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	t, err := openTable(name, f)
	if err != nil {
		return err
	}
	d, k := newDigester(), new(taker)
	for _, group := range t.file.RowGroups() {
		more, err := t.readGroup(group, k, d, yield)
		if err != nil || !more {
			return err
		}
	}
	got := d.sum()
	if got.records != t.stated.records || t.whole && got.digest != t.stated.digest {
		return fmt.Errorf("reading %s: the records do not match their digest: the file is damaged", name)
	}
	if sum != nil {
		*sum = got
	}
	return nil
}

func (t *table) readGroup(group parquet.RowGroup, k *taker, d *digester, yield func(*Record) bool) (more bool, err error) {
	var rows parquet.Rows
	if err := guard(t.name, func() error { rows = group.Rows(); return nil }); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, guard(t.name, rows.Close)) }()
	batch := make([]parquet.Row, batchRows)
	records := make([]*Record, 0, batchRows)
	for {
		end := false
		records = records[:0]
		// Only the library runs under guard: a panic of yield is its caller's own.
		err := guard(t.name, func() error {
			n, err := rows.ReadRows(batch)
			if end = errors.Is(err, io.EOF); err != nil && !end {
				return err
			}
			if n == 0 && !end {
				return io.ErrNoProgress
			}
			for _, row := range batch[:n] {
				r := new(Record)
				if err := t.record(k, row, r); err != nil {
					return fmt.Errorf("record %d: %w", d.records, err)
				}
				d.add(r)
				records = append(records, r)
			}
			return nil
		})
		if err != nil {
			return false, err
		}
		for _, r := range records {
			if !yield(r) {
				return false, nil
			}
		}
		if end {
			return true, nil
		}
	}
}

package record

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// Repair says exactly what a torn journal holds. The zero Repair is that of
// records without damage.
type Repair struct {
	Records  int64  `json:"records"`  // intact records before the damage: those that are kept
	Kept     int64  `json:"kept"`     // bytes before the damage
	Cut      int64  `json:"cut"`      // bytes from the damage to the end
	Offset   int64  `json:"offset"`   // where the damage begins
	Reason   string `json:"reason"`   // what is wrong there; "" when nothing is
	Stranded int64  `json:"stranded"` // intact records behind the damage: counted, not trusted, not kept
}

// Torn reports whether there is damage.
func (r Repair) Torn() bool { return r.Reason != "" }

// String says it in one line.
func (r Repair) String() string {
	if !r.Torn() {
		return "no damage"
	}
	s := fmt.Sprintf("%s at offset %d: %d records (%d bytes) kept, %d bytes cut", r.Reason, r.Offset, r.Records, r.Kept, r.Cut)
	if r.Stranded > 0 {
		s += fmt.Sprintf(", among them %d intact records that lie behind the damage", r.Stranded)
	}
	return s
}

// survey is what a journal holds.
type survey struct {
	records int64 // intact
	end     int64 // offset behind the last intact record
	repair  Repair
}

// inspect reads a journal to its end or to the first damage, and hands each
// intact record to each, if it is given.
func inspect(name string, f io.ReaderAt, size int64, dec *decoder, each func(*Record) error) (survey, error) {
	s := newScanner(name, f, size)
	var found survey
	bad, err := s.header()
	for bad == "" && err == nil {
		var payload []byte
		if payload, bad, err = s.next(); err != nil || bad != "" || payload == nil {
			break
		}
		r := new(Record)
		if e := dec.record(payload, r); e != nil {
			bad = damage("bad content: " + e.Error())
			break
		}
		s.accept()
		found.records++
		if each != nil {
			err = each(r)
		}
	}
	found.end = s.at
	if err != nil || bad == "" {
		return found, err
	}
	found.repair = Repair{Records: found.records, Kept: s.at, Cut: size - s.at, Offset: s.at, Reason: string(bad)}
	found.repair.Stranded, err = stranded(f, s.at+1, size)
	if err != nil {
		err = fmt.Errorf("reading %s behind offset %d: %w", name, s.at, err)
	}
	return found, err
}

// Mend cuts the damaged end off the journal of a run that has ended, so that it
// can be sealed, and returns what it kept and cut. The bytes cut are kept beside
// it as records.journal.cut. A journal without damage, or a sealed run, is left
// as it is. It takes the single-writer lock.
//
// Everything behind the first damage is cut, even what looks intact: a journal
// with a hole would give numbers that are silently those of fewer requests.
func Mend(fsys FS, dir string) (repair Repair, err error) {
	err = locked(fsys, dir, func() error {
		sealed, err := exists(fsys, filepath.Join(dir, parquetName))
		if err != nil || sealed {
			return err
		}
		repair, err = mend(fsys, dir)
		return err
	})
	if err != nil {
		return Repair{}, fmt.Errorf("mending the records of %s: %w", dir, err)
	}
	return repair, nil
}

func mend(fsys FS, dir string) (_ Repair, err error) {
	name := filepath.Join(dir, journalName)
	f, err := fsys.Edit(name)
	if err != nil {
		return Repair{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return Repair{}, err
	}
	found, err := inspect(name, f, size, new(decoder), nil)
	repair := found.repair
	if err != nil || !repair.Torn() {
		return repair, err
	}
	// The copy is in place before a byte is cut.
	err = writeFile(fsys, dir, cutName, func(w io.Writer) error {
		_, err := io.Copy(w, io.NewSectionReader(f, repair.Offset, repair.Cut))
		return err
	}, nil)
	if err != nil {
		return Repair{}, fmt.Errorf("keeping a copy of the bytes to cut: %w", err)
	}
	if err := f.Truncate(repair.Kept); err != nil {
		return Repair{}, err
	}
	if repair.Kept == 0 { // not even the header was whole
		if _, err := f.Write(journalHeader()); err != nil {
			return Repair{}, err
		}
	}
	return repair, f.Sync()
}

// notFound says that a directory has no records.
func notFound(dir string) error {
	return fmt.Errorf("opening the records of %s: neither %s nor %s is there: %w", dir, parquetName, journalName, fs.ErrNotExist)
}

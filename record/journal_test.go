package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// torn puts the bytes on a disk as a run's journal.
func torn(data []byte) *disk {
	d := newDisk(1)
	d.put("run/"+journalName, data)
	return d
}

// mustHold checks that a journal gives exactly the first n of the records, that
// looking does not change it, and that mending and sealing keep just these.
func mustHold(t *testing.T, data []byte, all []Record, want Repair) {
	t.Helper()
	d := torn(data)
	d.frozen = true
	got, repair, err := ReadAll(d, "run")
	if err != nil {
		t.Fatalf("%+v: %v", want, err)
	}
	if diff := cmp.Diff(want, repair); diff != "" {
		t.Fatalf("repair (-want +got):\n%s", diff)
	}
	n := len(all)
	if want.Torn() {
		n = int(want.Records)
	}
	if diff := diffRecords(all[:n], got); diff != "" {
		t.Fatalf("%+v: records (-want +got):\n%s", want, diff)
	}
	if len(d.wrote) > 0 {
		t.Fatalf("reading wrote: %v", d.wrote)
	}
	d.frozen = false
	if want.Torn() {
		if err := Seal(d, "run"); err == nil || !strings.Contains(err.Error(), "mend it first") {
			t.Fatalf("Seal of a torn journal = %v", err)
		}
	}
	if repair, err = Mend(d, "run"); err != nil || repair != want {
		t.Fatalf("Mend = %+v, %v, want %+v", repair, err, want)
	}
	if cut := d.get("run/" + cutName); !bytes.Equal(cut, data[len(data)-int(want.Cut):]) {
		t.Fatalf("the copy has %d bytes, not the %d that were cut", len(cut), want.Cut)
	}
	if again, err := Mend(d, "run"); err != nil || again.Torn() {
		t.Fatalf("second Mend = %+v, %v", again, err)
	}
	got, repair, err = ReadAll(d, "run")
	if err != nil || repair.Torn() || len(got) != n {
		t.Fatalf("after Mend: %d records, %v, %v", len(got), repair, err)
	}
}

func TestTornJournalGivesExactlyTheIntactRecords(t *testing.T) {
	all := streams(1, 8, 6)
	data, ends := journalOf(all)
	size := int64(len(data))
	change := func(do func(b []byte) []byte) []byte { return do(bytes.Clone(data)) }
	last, third := ends[6], ends[2] // offsets at which the last and the fourth record begin
	at := func(offset, n int64, reason string, stranded int64) Repair {
		return Repair{Records: n, Kept: offset, Cut: size - offset, Offset: offset, Reason: reason, Stranded: stranded}
	}
	grown := func(r Repair, by int64) Repair { r.Cut += by; return r }
	whole := at(size, 8, "", 0)
	for _, test := range []struct {
		name string
		data []byte
		want Repair
	}{
		{"clean", data, Repair{}},
		{"torn last record", data[:size-1], grown(at(last, 7, "torn record", 0), -1)},
		{"torn last frame head", data[:last+7], Repair{Records: 7, Kept: last, Cut: 7, Offset: last, Reason: "torn record"}},
		{"torn header", data[:9], Repair{Cut: 9, Reason: "torn header"}},
		{"nothing", nil, Repair{Reason: "torn header"}},
		{"bad header", change(func(b []byte) []byte { b[3] ^= 1; return b }), at(0, 0, "bad header", 8)},
		{"bad header checksum", change(func(b []byte) []byte { b[13] ^= 1; return b }), at(0, 0, "bad header", 8)},
		{"bad marker", change(func(b []byte) []byte { b[third] ^= 1; return b }), at(third, 3, "bad marker", 4)},
		{"bad length", change(func(b []byte) []byte { b[third+4] ^= 1; return b }), at(third, 3, "bad checksum", 4)},
		{"length zero", change(func(b []byte) []byte { clear(b[third+4 : third+8]); return b }), at(third, 3, "bad length", 4)},
		{"huge length", change(func(b []byte) []byte { binary.LittleEndian.PutUint32(b[third+4:], 1<<31); return b }), at(third, 3, "bad length", 4)},
		{"length beyond the end", change(func(b []byte) []byte { binary.LittleEndian.PutUint32(b[third+4:], 1<<20); return b }), at(third, 3, "torn record", 4)},
		{"bad checksum", change(func(b []byte) []byte { b[third+9] ^= 1; return b }), at(third, 3, "bad checksum", 4)},
		{"bad payload", change(func(b []byte) []byte { b[third+40] ^= 1; return b }), at(third, 3, "bad checksum", 4)},
		{"bad content", change(func(b []byte) []byte {
			b[third+frameHead] = 0x09 // the first field as a fixed64
			closeFrame(b[third:ends[3]])
			return b
		}), at(third, 3, "bad content: field 1 has wire type 1, not 0", 4)},
		{"zeros behind", append(bytes.Clone(data), make([]byte, 5000)...), grown(Repair{Records: 8, Kept: whole.Kept, Offset: size, Reason: "zero bytes"}, 5000)},
		{"noise behind", append(bytes.Clone(data), "noise"...), grown(Repair{Records: 8, Kept: whole.Kept, Offset: size, Reason: "bad marker"}, 5)},
		{"a hole in the middle", slices.Delete(bytes.Clone(data), int(third+20), int(third+40)), grown(at(third, 3, "bad checksum", 4), -20)},
	} {
		t.Run(test.name, func(t *testing.T) { mustHold(t, test.data, all, test.want) })
	}
}

func TestNewerJournalIsNotTouched(t *testing.T) {
	data, _ := journalOf(streams(1, 2, 3))
	binary.LittleEndian.PutUint32(data[8:], 2)
	binary.LittleEndian.PutUint32(data[12:], sum32(data[:12]))
	d := torn(data)
	d.frozen = true
	if _, err := Open(d, "run"); !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "hint: use the version of assay that made them") {
		t.Errorf("Open = %v", err)
	}
	if _, err := Mend(d, "run"); !errors.Is(err, ErrNewer) {
		t.Errorf("Mend = %v", err)
	}
	d.frozen = false
	if err := Seal(d, "run"); !errors.Is(err, ErrNewer) || !bytes.Equal(d.get("run/"+journalName), data) {
		t.Errorf("Seal = %v", err)
	}
}

func TestSealKeepsAJournalWithFieldsThatItDoesNotKnow(t *testing.T) {
	data, ends := journalOf(streams(1, 2, 3))
	frame := appendFrameHead(nil)
	frame = append(frame, data[ends[0]+frameHead:ends[1]]...)
	frame = append(frame, 0xc0, 0x3e, 0x01) // field 1000
	closeFrame(frame)
	d := torn(append(data, frame...))
	got, repair, err := ReadAll(d, "run")
	if err != nil || repair.Torn() || len(got) != 3 {
		t.Fatalf("ReadAll = %d records, %v, %v", len(got), repair, err)
	}
	if err := Seal(d, "run"); !errors.Is(err, ErrNewer) {
		t.Errorf("Seal = %v, want ErrNewer", err)
	}
	if d.get("run/"+journalName) == nil || d.get("run/"+parquetName) != nil || d.get("run/"+parquetName+temporary) != nil {
		t.Error("a refused seal left something else than the journal")
	}
}

func TestTruncationAtEveryOffset(t *testing.T) {
	t.Parallel()
	all := streams(2, 220, 60)
	data, ends := journalOf(all)
	if len(data) < 64<<10 {
		t.Fatalf("the journal has only %d bytes", len(data))
	}
	d := torn(nil)
	file := d.find("run/" + journalName)
	d.frozen = true
	for size := range int64(len(data) + 1) {
		n, whole := slices.BinarySearch(ends, size) // records before the cut
		if whole {
			n++
		}
		// Frames do not depend on each other: for most offsets a journal of the last
		// record before the cut says as much as all of it, in a hundredth of the time.
		first, from := 0, int64(headerSize)
		if n > 1 && size%1009 != 0 {
			first, from = n-1, ends[n-2]
		}
		end, cut := from, size
		if n > 0 {
			end = ends[n-1]
		}
		want := Repair{}
		switch {
		case size < headerSize:
			file.data = data[:size]
			want = Repair{Cut: size, Reason: "torn header"}
		default:
			file.data = append(slices.Clip(data[:headerSize]), data[from:size]...)
			end, cut = end-from+headerSize, size-from+headerSize
			if end < cut {
				want = Repair{Records: int64(n - first), Kept: end, Cut: cut - end, Offset: end, Reason: "torn record"}
			}
		}
		got, repair, err := ReadAll(d, "run")
		if err != nil || repair != want {
			t.Fatalf("cut at %d: %v, %+v, want %+v", size, err, repair, want)
		}
		if diff := diffRecords(all[first:n], got); diff != "" {
			t.Fatalf("cut at %d:\n%s", size, diff)
		}
	}
	if len(d.wrote) > 0 {
		t.Errorf("reading wrote: %v", d.wrote)
	}
}

func TestBitFlipsNeverChangeANumber(t *testing.T) {
	t.Parallel()
	all := streams(3, 60, 12)
	data, ends := journalOf(all)
	rng := rand.New(rand.NewPCG(3, 3))
	for range 2000 {
		bit := rng.IntN(8 * len(data))
		data[bit/8] ^= 1 << (bit % 8)
		offset := int64(bit / 8)
		got, repair, err := ReadAll(torn(data), "run")
		if err != nil {
			t.Fatalf("bit %d: %v", bit, err)
		}
		hit, _ := slices.BinarySearch(ends, offset+1) // the record that was hit
		begin, behind := int64(headerSize), int64(len(all)-hit-1)
		switch {
		case offset < headerSize:
			begin, hit, behind = 0, 0, int64(len(all))
		case hit > 0:
			begin = ends[hit-1]
		}
		want := Repair{Records: int64(hit), Kept: begin, Cut: int64(len(data)) - begin, Offset: begin, Reason: repair.Reason, Stranded: behind}
		if repair != want || !repair.Torn() {
			t.Fatalf("bit %d: %+v, want %+v", bit, repair, want)
		}
		if diff := diffRecords(all[:hit], got); diff != "" {
			t.Fatalf("bit %d: %s", bit, diff)
		}
		data[bit/8] ^= 1 << (bit % 8)
	}
}

func TestCountingStrandedRecordsIsBounded(t *testing.T) {
	// Every fourth byte begins a frame that claims all the rest.
	data := bytes.Repeat(frameMarker[:], 256<<10)
	for i := 0; i+8 < len(data); i += 8 {
		binary.LittleEndian.PutUint32(data[i+4:], uint32(len(data)-i-frameHead))
	}
	n, err := stranded(bytes.NewReader(data), 0, int64(len(data)))
	if n != 0 || err != nil {
		t.Errorf("stranded = %d, %v", n, err)
	}
}

func TestOpenOfNothingSaysSo(t *testing.T) {
	d := newDisk(1)
	if err := d.Mkdir("run"); err != nil {
		t.Fatal(err)
	}
	want := "opening the records of run: neither records.parquet nor records.journal is there: file does not exist"
	if _, err := Open(d, "run"); !errors.Is(err, fs.ErrNotExist) || err.Error() != want {
		t.Errorf("Open = %v", err)
	}
	if err := Seal(d, "run"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Seal = %v", err)
	}
	if _, err := Mend(d, "run"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Mend = %v", err)
	}
}

func TestReaderStopsWhenToldTo(t *testing.T) {
	all := streams(1, 10, 3)
	data, _ := journalOf(all)
	for name, d := range map[string]*disk{"journal": torn(data), "table": sealed(t, all)} {
		r, err := Open(d, "run")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, err := range r.All() {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == 3 {
				break
			}
		}
		if n != 3 {
			t.Errorf("%s: %d records", name, n)
		}
	}
}

func TestReaderOutlivesTheJournal(t *testing.T) {
	all := streams(1, 10, 3)
	data, _ := journalOf(all)
	d := torn(data)
	r, err := Open(d, "run")
	if err != nil {
		t.Fatal(err)
	}
	if err := Seal(d, "run"); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range r.All() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != len(all) {
		t.Errorf("%d records, want %d", n, len(all))
	}
}

func FuzzJournal(f *testing.F) {
	all := streams(4, 4, 4)
	data, ends := journalOf(all)
	f.Add(data)
	f.Add(data[:ends[2]+5])
	f.Add(append(bytes.Clone(data[:ends[1]]), data[ends[2]:]...))
	f.Add(append(bytes.Clone(data), make([]byte, 100)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := torn(data)
		before, repair, err := ReadAll(d, "run")
		if err != nil {
			if errors.Is(err, ErrNewer) {
				return
			}
			t.Fatal(err)
		}
		if repair.Torn() && (repair.Kept+repair.Cut != int64(len(data)) || repair.Records != int64(len(before))) {
			t.Fatalf("%+v for %d bytes and %d records", repair, len(data), len(before))
		}
		if mended, err := Mend(d, "run"); err != nil || mended != repair {
			t.Fatalf("Mend = %+v, %v, want %+v", mended, err, repair)
		}
		after, repair, err := ReadAll(d, "run")
		if err != nil || repair.Torn() {
			t.Fatal(repair, err)
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatal(diff)
		}
	})
}

func sum32(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

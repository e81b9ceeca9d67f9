package record

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

func TestSealedWinsOverTheJournal(t *testing.T) {
	all := streams(1, 20, 5)
	whole, _ := journalOf(all)
	other, _ := journalOf(all[:3])
	d := sealed(t, all)
	for name, journal := range map[string][]byte{"the same journal": whole, "a torn one": whole[:len(whole)-9], "another": other} {
		d.put("run/"+journalName, journal)
		got, repair, err := ReadAll(d, "run")
		if diff := diffRecords(all, got); err != nil || repair.Torn() || diff != "" {
			t.Fatalf("%s: %v, %v\n%s", name, repair, err, diff)
		}
		if repair, err := Mend(d, "run"); err != nil || repair.Torn() {
			t.Errorf("%s: Mend of a sealed run = %v, %v", name, repair, err)
		}
		if err := Seal(d, "run"); err != nil { // finishes what a crash cut short
			t.Errorf("%s: %v", name, err)
		}
		if d.get("run/"+journalName) != nil {
			t.Errorf("%s is still there", name)
		}
		if err := Seal(d, "run"); err != nil {
			t.Errorf("sealing a sealed run: %v", err)
		}
	}
}

func TestSealKeepsTheJournalBesideADamagedTable(t *testing.T) {
	all := streams(1, 20, 5)
	d := sealed(t, all)
	journal, _ := journalOf(all)
	d.put("run/"+journalName, journal)
	table := d.get("run/" + parquetName)
	table[len(table)/3] ^= 0x10
	if err := Seal(d, "run"); err == nil || !strings.Contains(err.Error(), "hint: the journal is still there") {
		t.Errorf("Seal = %v", err)
	}
	if !bytes.Equal(d.get("run/"+journalName), journal) {
		t.Error("the journal is gone")
	}
}

func TestDamagedTableNeverGivesOtherRecords(t *testing.T) {
	t.Parallel()
	all := streams(1, 100, 20)
	d := sealed(t, all)
	table := d.get("run/" + parquetName)
	rng := rand.New(rand.NewPCG(1, 4))
	noticed, same := 0, 0
	check := func(what string, data []byte) {
		d.put("run/"+parquetName, data)
		got, _, err := ReadAll(d, "run")
		if err != nil {
			noticed++
			return
		}
		if same++; diffRecords(all, got) != "" {
			t.Fatalf("%s: %d other records without an error", what, len(got))
		}
	}
	for range 1000 {
		data := bytes.Clone(table)
		bit := rng.IntN(8 * len(data))
		data[bit/8] ^= 1 << (bit % 8)
		check(fmt.Sprint("bit ", bit), data)
	}
	for range 200 {
		n := rng.IntN(len(table))
		check(fmt.Sprint("cut at ", n), table[:n])
	}
	t.Logf("%d damaged files were noticed, %d gave the right records (only derived columns, indexes or statistics were hit)", noticed, same)
	if noticed < 600 {
		t.Errorf("only %d damaged files were noticed", noticed)
	}
}

func TestOtherTablesAreRefused(t *testing.T) {
	make := func(meta map[string]string) []byte {
		var b bytes.Buffer
		w := parquet.NewGenericWriter[any](&b, tableSchema)
		for k, v := range meta {
			w.SetKeyValueMetadata(k, v)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	digest, columns := newDigester().sum().digest, columnsDigest(tableSchema)
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"not parquet", []byte("PAR1 hello PAR1"), "reading run/records.parquet"},
		{"empty", nil, "reading run/records.parquet"},
		{"somebody else's", make(nil), "it has no assay.schema: it is not a run's records"},
		{"newer", make(map[string]string{metaSchema: "assay.records/2"}), "written in a newer format"},
		{"no count", make(map[string]string{metaSchema: tableVersion}), "assay.records: strconv"},
		{"no digest", make(map[string]string{metaSchema: tableVersion, metaRecords: "0"}), "assay.sha256 is not a digest"},
		{"other columns", make(map[string]string{metaSchema: tableVersion, metaRecords: "0", metaDigest: digest}), "its columns do not match"},
		{"too few", make(map[string]string{metaSchema: tableVersion, metaRecords: "1", metaDigest: digest, metaColumns: columns}), "do not match their digest"},
		{"right", make(map[string]string{metaSchema: tableVersion, metaRecords: "0", metaDigest: digest, metaColumns: columns}), ""},
	} {
		d := newDisk(1)
		d.put("run/"+parquetName, test.data)
		_, _, err := ReadAll(d, "run")
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

// TestTableOfAnotherRevisionIsRead reads a file with a column that this version
// does not know, and without one that it does.
func TestTableOfAnotherRevisionIsRead(t *testing.T) {
	type revision struct {
		Shot    int64  `parquet:"shot,delta"`
		Variant string `parquet:"variant,dict"`
		Later   string `parquet:"later"`
		Outcome string `parquet:"outcome,dict"`
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[revision](&b)
	if _, err := w.Write([]revision{{7, "candidate", "?", "ok"}}); err != nil {
		t.Fatal(err)
	}
	w.SetKeyValueMetadata(metaSchema, tableVersion)
	w.SetKeyValueMetadata(metaRecords, "1")
	w.SetKeyValueMetadata(metaDigest, strings.Repeat("0", 64))
	w.SetKeyValueMetadata(metaColumns, columnsDigest(w.Schema()))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	d := newDisk(1)
	d.put("run/"+parquetName, b.Bytes())
	got, _, err := ReadAll(d, "run")
	if err != nil {
		t.Fatal(err)
	}
	if diff := diffRecords([]Record{{Shot: 7, Variant: "candidate", Outcome: OK}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSealingIsDeterministic(t *testing.T) {
	all := streams(1, 100, 5)
	for i := range all {
		all[i].Labels = map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}
	}
	first, second := sealed(t, all).get("run/"+parquetName), sealed(t, all).get("run/"+parquetName)
	if !bytes.Equal(first, second) {
		t.Error("the same records give different files")
	}
}

// TestRowGroupsBoundMemory seals more than fits into what it may hold: a row of
// this kind takes about 4 kB while it is in a row group's buffers.
func TestRowGroupsBoundMemory(t *testing.T) {
	n := 100_000
	if os.Getenv("ASSAY_SLOW") == "1" {
		n = 1_000_000
	}
	dir := t.TempDir()
	w, err := Create(OS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	r := streams(1, 2, 10)[1]
	for i := range n {
		r.Shot, r.Due = int64(i), At(0)+Instant(i)*1000
		if err := w.Append(&r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	watch := &heapFS{FS: OS()}
	watch.look()
	before := watch.peak
	if err := Seal(watch, dir); err != nil {
		t.Fatal(err)
	}
	held := (watch.peak - before) >> 20
	t.Logf("sealing %d records held at most %d MiB", n, held)
	if held > 64 && !raceEnabled {
		t.Errorf("sealing %d records held %d MiB", n, held)
	}
	f, err := os.Open(filepath.Join(dir, parquetName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	table, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	if groups := len(table.RowGroups()); groups < 1+n/groupRows {
		t.Errorf("%d row groups for %d records", groups, n)
	}
	count := int64(0)
	reader, err := Open(OS(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for got, err := range reader.All() {
		if err != nil || got.Shot != count {
			t.Fatal(count, got, err)
		}
		count++
	}
	if count != int64(n) {
		t.Errorf("%d of %d records", count, n)
	}
}

// heapFS looks at the live heap whenever a megabyte of a file is written.
type heapFS struct {
	FS
	peak int64
}

type heapFile struct {
	File
	watch   *heapFS
	written int
}

func (h *heapFS) look() {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	h.peak = max(h.peak, int64(m.HeapAlloc))
}

func (h *heapFS) Create(name string) (File, error) {
	f, err := h.FS.Create(name)
	return &heapFile{File: f, watch: h}, err
}

func (f *heapFile) Write(b []byte) (int, error) {
	if f.written += len(b); f.written >= 1<<20 {
		f.written = 0
		f.watch.look()
	}
	return f.File.Write(b)
}

// type7 is the quantile of Hyndman and Fan's type 7, interpolated in the way of
// numpy, and in that of DuckDB, which may differ in the last bit.
func type7(sorted []float64, p float64) (numpy, duck float64) {
	h := p * float64(len(sorted)-1)
	i := int(h)
	a, b, t := sorted[i], sorted[min(i+1, len(sorted)-1)], h-float64(i)
	numpy = a + (b-a)*t
	if t >= 0.5 {
		numpy = b - (b-a)*(1-t)
	}
	return numpy, a*(1-t) + b*t
}

const duckQuery = `
import duckdb, pandas, sys
f = sys.argv[1]
q = "select quantile_cont(ttft_ns, 0.99) from '%s' where phase = 'measured'" % f
print(repr(duckdb.sql(q).fetchall()[0][0]))
d = pandas.read_parquet(f)
print(repr(float(d[d.phase == "measured"].ttft_ns.quantile(0.99))))
print(len(d), int(d.ttft_ns.isna().sum()))
print(duckdb.sql("select sum(len(event_at_ns)), sum(list_sum(event_bytes)), count(*) filter (labels['tier'] = 'gold') from '%s'" % f).fetchall()[0])
`

func TestParquetOpensInDuckDB(t *testing.T) {
	python := os.Getenv("ASSAY_PYTHON")
	if python == "" {
		t.Skip("ASSAY_PYTHON is not set: make test-python installs DuckDB and pandas and sets it")
	}
	all := streams(9, 5000, 30)
	rng := rand.New(rand.NewPCG(9, 9))
	var ttft []float64
	undefined, events, bytes := 0, 0, 0
	for i := range all {
		r := &all[i]
		switch rng.IntN(10) {
		case 0:
			r.Outcome = StallTimeout
		case 1:
			r.Phase = WarmUp
		default:
			for j := range r.Events {
				r.Events[j].At += Instant(rng.Int64N(1e9))
			}
		}
		m, _ := Find("ttft")
		if v := m.Values(r, nil); !r.Success() || len(v) == 0 {
			undefined++
		} else if r.Phase == Measured {
			ttft = append(ttft, v[0])
		}
		events += len(r.Events)
		for _, e := range r.Events {
			bytes += int(e.Bytes)
		}
	}
	slices.Sort(ttft)
	numpy, duck := type7(ttft, 0.99)
	d := sealed(t, all)
	file := filepath.Join(t.TempDir(), parquetName)
	if err := os.WriteFile(file, d.get("run/"+parquetName), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), python, "-c", duckQuery, file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	// DuckDB's releases differ in how they round the same formula.
	if got, err := strconv.ParseFloat(lines[0], 64); err != nil || got != duck && got != numpy && got != math.Nextafter(numpy, got) {
		t.Errorf("DuckDB: p99 of ttft_ns = %s, want %.17g within one unit in the last place", lines[0], numpy)
	}
	if got, err := strconv.ParseFloat(lines[1], 64); err != nil || got != numpy {
		t.Errorf("pandas: p99 of ttft_ns = %s, want %.17g", lines[1], numpy)
	}
	if got, want := lines[2], fmt.Sprint(len(all), " ", undefined); got != want {
		t.Errorf("rows and nulls = %s, want %s", got, want)
	}
	if got, want := lines[3], fmt.Sprintf("(%d, %d, %d)", events, bytes, len(all)); got != want {
		t.Errorf("events, bytes, labels = %s, want %s", got, want)
	}
}

func TestManifestIsReplacedInOneStep(t *testing.T) {
	d := newDisk(1)
	if err := d.Mkdir("run"); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadManifest(d, "run"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadManifest of nothing = %v", err)
	}
	m := &Manifest{ID: "1", Name: "a", Seed: 1<<64 - 1, Ledger: []LedgerRow{{ByOutcome: map[Outcome]int64{OK: 3}}}, Windows: []Window{{Start: At(1), End: At(2)}}}
	for _, state := range []string{"running", "done"} {
		m.State = state
		if err := WriteManifest(d, "run", m); err != nil {
			t.Fatal(err)
		}
		got, err := ReadManifest(d, "run")
		if err != nil || got.Schema != "assay.manifest/1" || got.State != state || got.Seed != m.Seed || got.Ledger[0].ByOutcome[OK] != 3 || got.Windows[0] != m.Windows[0] {
			t.Errorf("ReadManifest = %+v, %v", got, err)
		}
	}
	if m.Schema != "" {
		t.Error("WriteManifest changed the manifest")
	}
	m.Client.Seconds = []ClientSecond{{CPU: nan()}}
	if err := WriteManifest(d, "run", m); err == nil {
		t.Error("a NaN was written")
	}
	if got, err := ReadManifest(d, "run"); err != nil || got.State != "done" {
		t.Errorf("a refused manifest replaced the good one: %v", err)
	}
	d.put("run/"+manifestName, []byte(`{"schema":"assay.manifest/2"}`))
	if _, err := ReadManifest(d, "run"); !errors.Is(err, ErrNewer) {
		t.Errorf("newer: %v", err)
	}
	d.put("run/"+manifestName, []byte(`{"schema":"assay.manifest/1","later":[1],"state":"done"}`))
	if got, err := ReadManifest(d, "run"); err != nil || got.State != "done" {
		t.Errorf("an unknown field: %v", err)
	}
}

func nan() float64 { return (&[1]float64{})[0] / (&[1]float64{})[0] }

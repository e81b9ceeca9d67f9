package record

import (
	"os"
	"path/filepath"
	"testing"
)

func BenchmarkAppend(b *testing.B) {
	w, err := Create(OS(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	records := streams(1, 64, 200)
	events, n := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		r := &records[n%len(records)]
		if err := w.Append(r); err != nil {
			b.Fatal(err)
		}
		events += len(r.Events)
		n++
	}
	seconds := b.Elapsed().Seconds()
	if err := w.Sync(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(w.dir, journalName))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(n)/seconds, "records/s")
	b.ReportMetric(float64(events)/seconds, "events/s")
	b.ReportMetric(float64(info.Size())/float64(events), "B/event")
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
}

func benchmarkSeal(b *testing.B, tokens int) {
	records := streams(1, 20_000, tokens)
	data, _ := journalOf(records)
	var size int
	for b.Loop() {
		d := torn(data)
		if err := Seal(d, "run"); err != nil {
			b.Fatal(err)
		}
		size = len(d.get("run/" + parquetName))
	}
	b.ReportMetric(float64(len(records)*b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(size)/float64(len(records)), "B/row")
}

func BenchmarkSealWithoutEvents(b *testing.B) { benchmarkSeal(b, 0) }
func BenchmarkSealWithEvents(b *testing.B)    { benchmarkSeal(b, 100) }

func BenchmarkRead(b *testing.B) {
	records := streams(1, 20_000, 20)
	data, _ := journalOf(records)
	for name, d := range map[string]*disk{"journal": torn(data), "table": sealed(b, records)} {
		b.Run(name, func(b *testing.B) {
			r, err := Open(d, "run")
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				for _, err := range r.All() {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(len(records)*b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

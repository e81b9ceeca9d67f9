//go:build unix

package record

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cpu returns the CPU time of the process: the machine may be busy with others.
func cpu(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// perCPU reports n things a second of CPU time since began.
func perCPU(b *testing.B, began time.Duration, n int, unit string) {
	b.ReportMetric(float64(n)/(cpu(b)-began).Seconds(), unit+"/cpu-s")
}

func BenchmarkAppend(b *testing.B) {
	w, err := Create(OS(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	records := streams(1, 64, 200)
	events, n := 0, 0
	b.ReportAllocs()
	began := cpu(b)
	for b.Loop() {
		r := &records[n%len(records)]
		if err := w.Append(r); err != nil {
			b.Fatal(err)
		}
		events += len(r.Events)
		n++
	}
	if err := w.Sync(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(w.dir, journalName))
	if err != nil {
		b.Fatal(err)
	}
	perCPU(b, began, n, "records")
	perCPU(b, began, events, "events")
	b.ReportMetric(float64(info.Size())/float64(events), "B/event")
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
}

func benchmarkSeal(b *testing.B, tokens int) {
	records := streams(1, 20_000, tokens)
	data, _ := journalOf(records)
	var size int
	began := cpu(b)
	for b.Loop() {
		d := torn(data)
		if err := Seal(d, "run"); err != nil {
			b.Fatal(err)
		}
		size = len(d.get("run/" + parquetName))
	}
	perCPU(b, began, len(records)*b.N, "rows")
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
			began := cpu(b)
			for b.Loop() {
				for _, err := range r.All() {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			perCPU(b, began, len(records)*b.N, "records")
		})
	}
}

package load

import (
	"math"
	"runtime"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/assay-llm/assay/host"
	"github.com/assay-llm/assay/record"
)

// meter reads the process's own figures; each reading covers the time since the
// one before. The zero meter has read nothing.
type meter struct {
	wall    time.Time
	cpu     time.Duration
	samples []metrics.Sample
	gc      []uint64
	sched   []uint64
}

// figures are one reading; what the system does not tell is negative.
type figures struct {
	cpu                float64
	gcMax, schedP99    time.Duration
	descriptors, limit int64
}

func (f figures) into(s *record.ClientSecond) {
	s.CPU, s.GCPauseMax, s.SchedP99, s.Descriptors, s.Limit = f.cpu, f.gcMax, f.schedP99, f.descriptors, f.limit
}

func (m *meter) read() figures {
	f := figures{cpu: -1}
	now := time.Now()
	cpu := host.CPUTime()
	if wall := now.Sub(m.wall); !m.wall.IsZero() && cpu >= 0 && wall > 0 {
		f.cpu = float64(cpu-m.cpu) / float64(wall) / float64(runtime.GOMAXPROCS(0))
	}
	m.wall, m.cpu = now, cpu
	if m.samples == nil {
		m.samples = []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}, {Name: "/sched/latencies:seconds"}}
	}
	metrics.Read(m.samples)
	f.gcMax, m.gc = since(m.samples[0], m.gc, 1)
	f.schedP99, m.sched = since(m.samples[1], m.sched, .99)
	f.descriptors, f.limit = host.Descriptors()
	return f
}

// since returns the p-quantile of what a runtime histogram counted since the
// counts before, and the counts now. It is 0 when nothing was counted: no pause,
// no wait. It is negative when the runtime has no such histogram.
func since(s metrics.Sample, before []uint64, p float64) (time.Duration, []uint64) {
	if s.Value.Kind() != metrics.KindFloat64Histogram {
		return -1, nil
	}
	h := s.Value.Float64Histogram()
	now := slices.Clone(h.Counts)
	total := uint64(0)
	for i, c := range now {
		if i < len(before) {
			c -= before[i]
		}
		total += c
	}
	rank := uint64(math.Ceil(p * float64(total)))
	seen := uint64(0)
	for i, c := range now {
		if i < len(before) {
			c -= before[i]
		}
		if seen += c; c > 0 && seen >= rank {
			edge := h.Buckets[i+1]
			if math.IsInf(edge, 1) {
				edge = h.Buckets[i]
			}
			return time.Duration(edge * 1e9), now
		}
	}
	return 0, now
}

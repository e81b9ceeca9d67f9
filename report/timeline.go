package report

import (
	"fmt"
	"math"
	"time"

	"github.com/assay-llm/assay/record"
)

// timeCharts draws what the variants did over the run.
func timeCharts(d *Document) (charts []chart, binText string) {
	bin := 1
	if len(d.Series) > 0 {
		bin = d.Series[0].Bin
	}
	per := func(of func(s *Series, i int) float64) []trace {
		var out []trace
		for i := range d.Series {
			s := &d.Series[i]
			t := trace{name: s.Variant, class: d.class(s.Variant), values: make([]float64, len(s.Sent))}
			for j := range t.values {
				t.values[j] = math.NaN()
				if s.active(j) {
					t.values[j] = of(s, j)
				}
			}
			out = append(out, t)
		}
		return out
	}
	rate := func(n int) float64 { return float64(n) / float64(bin) }
	failed := make([]trace, 0, len(d.Series))
	for i := range d.Series {
		s := &d.Series[i]
		t := trace{name: s.Variant + ", failed", class: "cf", bars: true, values: make([]float64, len(s.Failed))}
		for j, n := range s.Failed {
			t.values[j] = rate(n)
		}
		failed = append(failed, t)
	}
	charts = []chart{
		overTime("Requests sent per second", "req/s", bin, per(func(s *Series, i int) float64 { return rate(s.Sent[i]) })),
		overTime("Requests completed and failed per second", "req/s", bin, append(per(func(s *Series, i int) float64 { return rate(s.Completed[i]) }), failed...)),
		overTime("Output tokens per second", "tok/s", bin, per(func(s *Series, i int) float64 {
			if s.Tokens == nil {
				return math.NaN()
			}
			return s.Tokens[i]
		})),
		overTime("Requests in flight", "requests", bin, per(func(s *Series, i int) float64 { return float64(s.InFlight[i]) })),
	}
	binText = "Second by second."
	if bin > 1 {
		binText = fmt.Sprintf("In steps of %d s.", bin)
	}
	return charts, binText
}

// active reports whether the variant did anything in the bin.
func (s *Series) active(i int) bool {
	return s.Sent[i]+s.Completed[i]+s.Failed[i]+s.InFlight[i] > 0
}

// clientCharts draws the client's health, second by second.
func clientCharts(seconds []record.ClientSecond) []chart {
	if len(seconds) == 0 {
		return nil
	}
	last := 0
	for _, s := range seconds {
		last = max(last, s.Second)
	}
	// A second of a hostile manifest may lie anywhere: bound what is drawn.
	bin := max(1, (last+mostBins)/mostBins)
	series := func(of func(s record.ClientSecond) float64) []float64 {
		out := make([]float64, last/bin+1)
		for i := range out {
			out[i] = math.NaN()
		}
		for _, s := range seconds {
			if v := of(s); s.Second >= 0 && v >= 0 && !math.IsInf(v, 0) {
				i := s.Second / bin
				if math.IsNaN(out[i]) || v > out[i] {
					out[i] = v
				}
			}
		}
		return out
	}
	ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
	charts := []chart{
		overTime("Lag, p99 of each second", "ms", bin, []trace{
			{name: "sending", class: "c0", values: series(func(s record.ClientSecond) float64 { return ms(s.SendLagP99) })},
			{name: "stamping", class: "c1", values: series(func(s record.ClientSecond) float64 { return ms(s.StampLagP99) })},
		}),
		overTime("CPU time, of what the client could have had", "%", bin, []trace{
			{name: "CPU", class: "c0", values: series(func(s record.ClientSecond) float64 { return 100 * s.CPU })},
		}),
		overTime("Longest stall of the process", "ms", bin, []trace{
			{name: "stall", class: "c0", values: series(func(s record.ClientSecond) float64 { return ms(s.Stall) })},
		}),
		overTime("Pauses", "ms", bin, []trace{
			{name: "scheduler p99", class: "c0", values: series(func(s record.ClientSecond) float64 { return ms(s.SchedP99) })},
			{name: "longest GC", class: "c1", values: series(func(s record.ClientSecond) float64 { return ms(s.GCPauseMax) })},
		}),
	}
	for i := range charts {
		charts[i].Legend = names(charts[i].Lines)
	}
	return charts
}

// names is the legend of a chart that has several lines.
func names(lines []line) (out []legend) {
	if len(lines) < 2 {
		return nil
	}
	for _, l := range lines {
		out = append(out, legend{l.Tip, l.Class})
	}
	return out
}

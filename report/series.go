package report

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/assay-llm/assay/record"
)

// The bounds on what a report draws.
const (
	mostPoints = 400  // of a curve
	mostBins   = 1200 // of a series
)

// drawn are the metrics whose distributions are drawn.
var drawn = []string{"ttft", "tpot", "e2e", "gap.max"}

// curves reads the distributions of a workload, variant by variant.
func (b *builder) curves(workload string) []Curve {
	var out []Curve
	for _, name := range drawn {
		m, _ := record.Find(name)
		for _, v := range b.doc.Variants {
			var values []float64
			failed, gave := 0, 0
			for i := range b.records {
				r := &b.records[i]
				if r.Phase != record.Measured || r.Workload != workload || r.Variant != v.Name {
					continue
				}
				if !r.Success() {
					if r.Outcome.Group() == record.GroupFailed {
						failed++
					}
					continue
				}
				if r.Flags&record.FlagCancelPlanned != 0 {
					continue // in no distribution
				}
				before := len(values)
				values = m.Values(r, values)
				gave += min(1, len(values)-before)
			}
			values = slices.DeleteFunc(values, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
			if len(values) == 0 {
				continue
			}
			out = append(out, Curve{
				Metric: name, Title: m.Title, Unit: m.Unit, Variant: v.Name,
				N: len(values) + failed, Over: failed, Points: thin(values, failed),
			})
		}
	}
	return out
}

// thin keeps at most mostPoints order statistics: evenly spread ranks, and
// towards the top ranks that halve what is left, so that the tail keeps its
// shape. Every point is exact. It sorts values.
func thin(values []float64, over int) []Point {
	slices.Sort(values)
	n := len(values)
	ranks := make([]int, 0, mostPoints)
	if n <= mostPoints {
		for i := range n {
			ranks = append(ranks, i)
		}
	} else {
		const tail = mostPoints / 4
		even := mostPoints - tail
		for i := range even {
			ranks = append(ranks, i*(n-1)/(even-1))
		}
		// From 10 % of the observations down to one, in equal ratios.
		for i := range tail {
			left := float64(n) / 10 * math.Pow(10/float64(n), float64(i)/(tail-1))
			ranks = append(ranks, max(0, n-max(1, int(math.Round(left)))))
		}
		slices.Sort(ranks)
		ranks = slices.Compact(ranks)
	}
	points := make([]Point, len(ranks))
	for i, k := range ranks {
		points[i] = Point{Value: values[k], Share: float64(k+1) / float64(n+over)}
	}
	return points
}

// series counts what each variant did over the run.
func series(variants []record.VariantInfo, records []record.Record) []Series {
	var last time.Duration
	for i := range records {
		r := &records[i]
		for _, t := range []record.Instant{r.Send, r.EOF} {
			if at, ok := t.Offset(); ok {
				last = max(last, at)
			}
		}
	}
	seconds := int(last/time.Second) + 1
	bin := (seconds + mostBins - 1) / mostBins
	bins := (seconds + bin - 1) / bin
	out := make([]Series, 0, len(variants))
	for _, v := range variants {
		out = append(out, seriesOf(v.Name, records, bin, bins))
	}
	return out
}

func seriesOf(variant string, records []record.Record, bin, bins int) Series {
	s := Series{Variant: variant, Bin: bin, Sent: make([]int, bins), Completed: make([]int, bins), Failed: make([]int, bins), InFlight: make([]int, bins)}
	tokens, known := make([]float64, bins), false
	amount, _ := record.Find("output_tokens")
	index := func(t record.Instant) (int, bool) {
		at, ok := t.Offset()
		return min(int(at/(time.Duration(bin)*time.Second)), bins-1), ok
	}
	var edges []edge
	for i := range records {
		r := &records[i]
		if r.Variant != variant {
			continue
		}
		sent, ok := index(r.Send)
		if ok {
			s.Sent[sent]++
		}
		end, ended := index(r.EOF)
		if ok && ended {
			edges = append(edges, edge{r.Send, 1}, edge{r.EOF, -1})
		}
		switch g := r.Outcome.Group(); {
		case !ended:
		case g == record.GroupCompleted:
			s.Completed[end]++
		case g == record.GroupFailed:
			s.Failed[end]++
		}
		amount.Amount(r, func(at record.Instant, k float64) {
			if j, ok := index(at); ok && !math.IsNaN(k) && !math.IsInf(k, 0) {
				tokens[j] += k / float64(bin)
				known = true
			}
		})
	}
	inFlight(s.InFlight, edges, index)
	if known {
		s.Tokens = tokens
	}
	return s
}

// edge is where the number in flight changes.
type edge struct {
	at record.Instant
	by int
}

// inFlight fills in the most at once in every bin.
func inFlight(bins []int, edges []edge, index func(record.Instant) (int, bool)) {
	slices.SortFunc(edges, func(a, b edge) int {
		if a.at != b.at {
			return int(min(max(a.at-b.at, -1), 1))
		}
		return a.by - b.by
	})
	now, bin := 0, 0
	for _, e := range edges {
		i, _ := index(e.at)
		for bin < i {
			bin++
			bins[bin] = now // what the bin began with
		}
		now = max(0, now+e.by)
		bins[i] = max(bins[i], now)
	}
}

// client says in a line whether the client was fit.
func client(m *record.Manifest, records []record.Record, d *Document) Client {
	c := Client{Certificate: m.Client}
	c.Seconds = slices.Clone(c.Seconds)
	for i := range c.Seconds {
		if cpu := c.Seconds[i].CPU; math.IsNaN(cpu) || math.IsInf(cpu, 0) {
			c.Seconds[i].CPU = -1 // not measured
		}
	}
	var lags []time.Duration
	for i := range records {
		if r := &records[i]; r.Phase == record.Measured {
			if lag, ok := r.OwnLag(); ok {
				lags = append(lags, lag)
			}
		}
	}
	lag := "no request was sent"
	if n := len(lags); n > 0 {
		slices.Sort(lags)
		p99 := lags[min(n-1, int(math.Ceil(.99*float64(n)))-1)]
		c.SendLagP99 = &p99
		lag = "own send lag p99 " + span(p99)
	}
	switch {
	case c.Fit && len(d.Workloads) > 0 && !slices.ContainsFunc(d.Workloads, func(w Workload) bool { return w.Check == nil }):
		c.Line = "no load was sent, so that nothing rests on the client's fitness"
	case c.Fit:
		c.Line = "client healthy (" + lag + ")"
	case len(c.Reasons) == 0:
		c.Line = "client unfit: it was never certified"
	default:
		c.Line = "client unfit: " + c.Reasons[0]
		if more := len(c.Reasons) - 1; more > 0 {
			c.Line += fmt.Sprintf("; and %d more", more)
		}
	}
	if hits := cacheHits(d); hits != "" {
		c.Line += " · prefix-cache hits " + hits
	}
	if s := d.Run.State; s != "" && s != "done" {
		c.Line += " · run " + s
	}
	return c
}

// cacheHits quotes the cached share of each variant where only one workload
// could be meant.
func cacheHits(d *Document) string {
	if len(d.Workloads) != 1 {
		return ""
	}
	for _, row := range d.Workloads[0].Rows {
		if row.Quantity.Metric != "cached" || row.Quantity.Stat != "mean" {
			continue
		}
		text := ""
		for i, c := range row.Cells {
			if i > 0 {
				text += " / "
			}
			text += c.Shown.Value
		}
		return text
	}
	return ""
}

package contract

import (
	"fmt"
	"slices"
	"time"

	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// amounts checks that the records tell their amounts.
func (s *scope) amounts(r *reading, m record.Metric) {
	t, ok := s.told[m.Name]
	if !ok {
		for _, rec := range s.records {
			if rec.Success() && !told(m, rec) {
				t.missing++
			}
		}
		for _, rec := range s.cancelled {
			if rec.First() != nil && !told(m, rec) {
				t.untold++
			}
		}
		s.told[m.Name] = t
	}
	s.counts.Missing, s.counts.Undefined, s.counts.Aside = t.missing, 0, 0
	if t.untold > 0 && m.Name == "output_tokens" {
		r.notes = append(r.notes, fmt.Sprintf("the server does not tell the tokens of %s that were cancelled as planned, which are not counted", count(t.untold, "request")))
	}
	s.lack(r, m)
}

func told(m record.Metric, r *record.Record) (is bool) {
	m.Amount(r, func(record.Instant, float64) { is = true })
	return is
}

// rate estimates an amount per second over slices of the windows.
func (s *scope) rate(m record.Metric, confidence float64) reading {
	var r reading
	s.amounts(&r, m)
	in, ok := s.sliced[m.Name]
	if !ok {
		in = s.slice(m)
		s.sliced[m.Name] = in
	}
	if len(in.amounts) == 0 {
		gap := fmt.Sprintf("no stretch of at least 1 s in which %s was measured", s.variant)
		return none(gap, confidence)
	}
	r.est = neverSeen(stat.Rate(in.amounts, in.seconds, confidence), m, in.seconds)
	if r.gap == "" && len(in.amounts) < rateSlices {
		r.gap = fmt.Sprintf("only %s of %s; a rate needs %d for a bound", count(len(in.amounts), "second"), s.variant, rateSlices)
		r.more = about(float64(s.counts.judged()) / float64(len(in.amounts)) * float64(rateSlices-len(in.amounts)))
	}
	return r
}

// slice adds up an amount in slices of the windows.
func (s *scope) slice(m record.Metric) *slicedAmount {
	var starts, ends []record.Instant
	in := new(slicedAmount)
	for _, w := range s.windows {
		d, ok := w.End.Sub(w.Start)
		if !ok || d < leastSlice {
			continue
		}
		k := min(int(d/leastSlice), mostSlices)
		edge := func(i int) time.Duration { // d·i/k, which d·i could overflow
			n, whole := time.Duration(i), time.Duration(k)
			return d/whole*n + d%whole*n/whole
		}
		for i := range k {
			from, to := edge(i), edge(i+1)
			starts, ends = append(starts, w.Start+record.Instant(from)), append(ends, w.Start+record.Instant(to))
			in.amounts = append(in.amounts, 0)
			in.seconds = append(in.seconds, (to - from).Seconds())
		}
	}
	for _, records := range [][]*record.Record{s.records, s.cancelled} {
		for _, rec := range records {
			m.Amount(rec, func(at record.Instant, amount float64) {
				i, found := slices.BinarySearch(starts, at)
				if !found {
					i--
				}
				if i >= 0 && at < ends[i] {
					in.amounts[i] += amount
				}
			})
		}
	}
	return in
}

// count is the exact number of events or the exact amount of the run.
func (s *scope) count(m record.Metric, confidence float64) reading {
	var r reading
	total, n := 0.0, len(s.records)
	if m.Indicator {
		for _, x := range s.values(m) {
			total += x
		}
	} else {
		s.amounts(&r, m)
		known, ok := s.totals[m.Name]
		if !ok {
			for _, rec := range slices.Concat(s.records, s.cancelled) {
				m.Amount(rec, func(_ record.Instant, amount float64) { known += amount })
			}
			s.totals[m.Name] = known
		}
		total = known
	}
	r.est = exact(total, n, 0, confidence)
	return r
}

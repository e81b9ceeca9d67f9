package contract

import (
	"fmt"
	"math"
	"slices"

	"github.com/assay-llm/assay/record"
)

// values reads the metric off the records, in order of time: of indicators all,
// of others those that completed, with a NaN in the place of each request that
// failed or completed without the value that it should have. It counts the
// completed ones that gave nothing.
func (s *scope) values(m record.Metric) []float64 {
	r, ok := s.read[m.Name]
	if !ok {
		r.values = s.valuesOf(m)
		r.missing, r.undefined, r.aside = s.counts.Missing, s.counts.Undefined, s.counts.Aside
		if len(r.values) <= mostShared {
			s.read[m.Name] = r
		}
	}
	s.counts.Missing, s.counts.Undefined, s.counts.Aside = r.missing, r.undefined, r.aside
	return r.values
}

func (s *scope) valuesOf(m record.Metric) []float64 {
	s.counts.Missing, s.counts.Undefined, s.counts.Aside = 0, 0, 0
	to := make([]float64, 0, s.room(m))
	for _, r := range s.records {
		if !m.Indicator && m.Check == "" && !r.Success() {
			if !m.Always {
				to = append(to, math.NaN())
				continue
			}
		}
		if aside(m, r) {
			s.counts.Aside++
			continue
		}
		before := len(to)
		to = m.Values(r, to)
		finite := slices.DeleteFunc(to[before:], func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
		to = to[:before+len(finite)]
		if len(finite) > 0 {
			continue
		}
		switch {
		case m.Check != "":
			if _, exempt := r.Values[record.Exempt(m.Name)]; exempt {
				s.counts.Undefined++
				continue
			}
			if s.counts.Missing++; !m.Indicator {
				to = append(to, math.NaN())
			}
		case !r.Success(): // of a metric that does not depend on the answer
		case undefined(m.Name, r):
			s.counts.Undefined++
		default:
			s.counts.Missing++
			if !m.Indicator {
				to = append(to, math.NaN())
			}
		}
	}
	return to
}

// room is about how many values the metric gives: of a pool of gaps they are too many to
// grow a slice by and by.
func (s *scope) room(m record.Metric) int {
	if m.Name != "itl" && m.Name != "icl" {
		return len(s.records)
	}
	n := 0
	for _, r := range s.records {
		if k, ok := r.Output.N(); ok && m.Name == "itl" {
			n += int(min(k, 1<<20))
		} else {
			n += len(r.Events)
		}
	}
	return n
}

// aside reports whether a completed record is left out of a distribution since
// the workload planned to cancel it. Of such requests only those complete that are
// quick or short enough: to count them, without the others, would flatter. Which
// are planned to be cancelled is drawn before anything is sent, so the rest says
// what all of them would have said.
func aside(m record.Metric, r *record.Record) bool {
	return !m.Indicator && !m.Always && r.Success() && r.Flags&record.FlagCancelPlanned != 0
}

// undefined reports whether the metric has, by its definition, no value for
// the completed record; otherwise a value that is not there is missing.
func undefined(metric string, r *record.Record) bool {
	switch metric {
	case "connect":
		return r.Reused
	case "cached":
		n, ok := r.Prompt.N()
		return ok && n == 0
	case "tpot", "user_rate", "icl", "itl", "ttst", "gap.max":
		if !r.Stream {
			return true
		}
		n, ok := r.Output.N()
		return ok && n <= 1
	}
	return false
}

// lack says what is missing among the completed requests: a gap if it is too
// much, else a note.
func (s *scope) lack(r *reading, m record.Metric) {
	c := s.counts
	c.Completed -= c.Aside
	without := c.Missing + c.Undefined
	switch {
	case c.Completed == 0 || without == 0:
	case float64(c.Missing) > maxMissing*float64(c.Completed):
		r.gap = fmt.Sprintf("%d of %s of %s have no %s%s", c.Missing, count(c.Completed, "completed request"), s.variant, m.Title, s.why(m))
	case c.Undefined == c.Completed:
		r.gap = fmt.Sprintf("none of %s of %s can have a %s%s", count(c.Completed, "completed request"), s.variant, m.Title, s.why(m))
	case without == c.Completed:
		r.gap = fmt.Sprintf("none of %s of %s has a %s%s", count(c.Completed, "completed request"), s.variant, m.Title, s.why(m))
	case float64(without) > maxMissing*float64(c.Completed):
		r.notes = append(r.notes, fmt.Sprintf("%d of %s of %s have no %s and are left out", without, count(c.Completed, "completed request"), s.variant, m.Title))
	}
}

// why names the likely cause of missing values.
func (s *scope) why(m record.Metric) string {
	if d, ok := declaredMetric(m.Name); ok {
		return ": it needs " + d.needs
	}
	usage, plain := 0, 0
	for _, r := range s.records {
		if !r.Success() {
			continue
		}
		if r.Flags&record.FlagUsageMissing != 0 || !r.Output.Known() {
			usage++
		}
		if !r.Stream {
			plain++
		}
	}
	switch all := s.counts.Completed; {
	case 2*plain > all && needsStream(m.Name):
		return ": answers were not streamed"
	case 2*usage > all && needsUsage(m.Name):
		return ": the server sends no usage"
	case s.counts.Undefined == all && needsStream(m.Name):
		return ": they have one token each"
	}
	return ""
}

// needsUsage reports whether the metric rests on the server's token counts.
func needsUsage(metric string) bool {
	switch metric {
	case "tpot", "itl", "ntpot", "user_rate", "prompt_length", "output_length", "cached", "output_tokens", "prompt_tokens":
		return true
	}
	return false
}

package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-llm/assay/record"
)

// gapNotes say for how long nobody worked at the run, between which requests, and
// what was sent again.
func gapNotes(m *record.Manifest, records []record.Record) (notes []string) {
	for i, g := range m.Gaps {
		end := record.Instant(0) // of the part behind the gap
		if i+1 < len(m.Gaps) {
			end = m.Gaps[i+1].To
		}
		notes = append(notes, gapNote(g, end, records)+afresh(m))
	}
	return notes
}

func gapNote(g record.Gap, end record.Instant, records []record.Record) string {
	var before, after *record.Record
	again, warm := 0, 0
	for i := range records {
		r := &records[i]
		switch {
		case r.Due >= g.To && end.Set() && r.Due >= end:
		case r.Phase == record.WarmUp:
			if r.Due >= g.To {
				warm++
			}
		case r.Due < g.To:
			if before == nil || r.Due >= before.Due {
				before = r
			}
		default:
			if after == nil || r.Due < after.Due {
				after = r
			}
			if r.Flags&record.FlagReissued != 0 {
				again++
			}
		}
	}
	from, _ := g.From.Offset()
	s := "the run was interrupted"
	if g.Killed {
		s = "the run was killed"
	}
	if from > 0 {
		s += fmt.Sprintf(" after %s", about(from))
	} else {
		s += " before it had sent any load"
	}
	if away, ok := g.To.Sub(g.From); ok {
		s += fmt.Sprintf(" and resumed %s later", about(away))
	}
	if before != nil || after != nil {
		s += fmt.Sprintf(", between %s and %s", requestName(before), requestName(after))
	}
	s += "; "
	if warm > 0 {
		s += fmt.Sprintf("it began with a warm-up of %d again; ", warm)
	}
	s += "rates and windows leave that time out"
	if again > 0 {
		s += fmt.Sprintf("; %d requests that were or may have been under way were sent again (flag reissued), and a prefix cache may have known them", again)
	}
	if g.Repair != "" {
		s += "; the journal was mended: " + g.Repair
	}
	return s
}

// requestName says which request a record is of.
func requestName(r *record.Record) string {
	if r == nil {
		return "no request"
	}
	return fmt.Sprintf("request %d of %s (%s)", r.Shot, r.Workload, r.Variant)
}

// about is a time in words, to a second or so.
func about(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// afresh says that simulated engines do not outlive the run.
func afresh(m *record.Manifest) string {
	var sims []string
	for _, v := range m.Variants {
		if v.Engine["engine"] == "sim" {
			sims = append(sims, v.Name)
		}
	}
	if len(sims) == 0 {
		return ""
	}
	slices.Sort(sims)
	return "; the simulated engine of " + strings.Join(sims, " and ") + " began afresh, with a cold cache"
}

package report

import (
	"fmt"
	"time"

	"github.com/assay-llm/assay/record"
)

// Ceiling says what the client could carry on its host, and what ended it.
func Ceiling(c *record.Ceiling) string { return ceilingRate(c) + ceilingEnd(c) }

// ceilingRate is the ceiling with the spread of its repeats.
func ceilingRate(c *record.Ceiling) string {
	s := plain(c.Requests, 3) + " requests/s"
	if c.AtLeast {
		s = "at least " + s
	}
	if c.Repeats > 1 {
		s += fmt.Sprintf(" (%s to %s in %d repeats)", plain(c.Low, 3), plain(c.High, 3), c.Repeats)
	}
	return s
}

// ceilingEnd says how much that is in events, and which resource ended it.
func ceilingEnd(c *record.Ceiling) (s string) {
	if c.Shape.Stream {
		s += fmt.Sprintf(" of %d events: %s events/s, %s streams at once", c.Shape.Events, plain(c.Events, 3), plain(c.Streams, 3))
	}
	if c.EndedBy != "" {
		s += "; ended by: " + c.EndedBy
	}
	if c.Client >= 0 && c.Server >= 0 {
		s += fmt.Sprintf(" (client %.0f %%, null server %.0f %% of %d CPUs)", c.Client*100, c.Server*100, c.Cores)
	}
	return s
}

// ceilingLines say for each workload how far from its end the client was at the
// planned peak, and what it and the loopback add to each request. In full they
// say how that was measured, or why it was not.
func ceilingLines(d *Document, full bool) []string {
	var lines []string
	for i := range d.Workloads {
		w := &d.Workloads[i].WorkloadInfo
		line := fmt.Sprintf("ceiling of this client for the shape of %s: ", w.Name)
		switch {
		case w.Ceiling != nil:
			lines = append(lines, line+ceilingLine(w, full))
		case full && w.Why != "":
			lines = append(lines, line+w.Why)
		}
	}
	return lines
}

func ceilingLine(w *record.WorkloadInfo, full bool) string {
	c := w.Ceiling
	s := ceilingRate(c)
	if w.Peak > 0 && c.Requests > 0 {
		s += fmt.Sprintf("; planned peak %s %%", plain(100*w.Peak/c.Requests, 2))
	}
	if w.Why != "" {
		s += " (" + w.Why + ")"
	}
	o := c.Overhead
	if o != nil {
		s += fmt.Sprintf("; client and loopback add %s to a first token, %s at p99, subtracted nowhere", span(o.TTFTP50), span(o.TTFTP99))
	}
	if !full {
		return s
	}
	if o != nil {
		s += fmt.Sprintf(" (at %s requests/s", plain(o.Rate, 2))
		if o.CPU >= 0 {
			s += fmt.Sprintf(", where a request takes %s of the client's CPU", span(o.CPU))
		}
		s += ")"
	}
	return s + "; measured " + c.At.UTC().Format(time.DateTime) + " UTC: " + Ceiling(c)
}

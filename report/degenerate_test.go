package report

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
)

// notNumber returns what a number that is none looks like when nobody took care;
// "" if out holds none.
func notNumber(out []byte) string {
	for _, bad := range []string{"NaN", "Inf", "%!", "null ms", "<nil>", "9223372036854775807", "9223372036854775808", "e+0", "e+1"} {
		if bytes.Contains(out, []byte(bad)) {
			return bad
		}
	}
	return ""
}

// degenerate are runs that have nothing to show, or nothing but the same.
func degenerate() map[string]func() (*record.Manifest, []record.Record) {
	of := func(change func(s *made), records func(m *record.Manifest, r []record.Record) []record.Record) func() (*record.Manifest, []record.Record) {
		return func() (*record.Manifest, []record.Record) {
			s := usual()
			s.requests = 80
			if change != nil {
				change(&s)
			}
			m, r := s.build()
			if records != nil {
				r = records(m, r)
				m.Ledger = record.Ledger(r)
			}
			return m, r
		}
	}
	each := func(f func(r *record.Record)) func(*record.Manifest, []record.Record) []record.Record {
		return func(_ *record.Manifest, rs []record.Record) []record.Record {
			for i := range rs {
				f(&rs[i])
			}
			return rs
		}
	}
	return map[string]func() (*record.Manifest, []record.Record){
		"nothing":       func() (*record.Manifest, []record.Record) { return nil, nil },
		"zero":          func() (*record.Manifest, []record.Record) { return new(record.Manifest), []record.Record{{}} },
		"no requests":   of(nil, func(*record.Manifest, []record.Record) []record.Record { return nil }),
		"all failed":    of(func(s *made) { s.failing = 1 }, nil),
		"all dropped":   of(nil, each(func(r *record.Record) { r.Outcome, r.Events, r.Send, r.EOF = record.ClientOverload, nil, 0, 0 })),
		"all warm-up":   of(nil, each(func(r *record.Record) { r.Phase = record.WarmUp })),
		"cancelled":     of(nil, each(func(r *record.Record) { r.Outcome = record.ClientCancelled })),
		"not ended":     of(nil, each(func(r *record.Record) { r.Outcome, r.EOF = "", 0 })),
		"one token":     of(func(s *made) { s.tokens = 1 }, nil),
		"no usage":      of(func(s *made) { s.usage = false }, nil),
		"not streamed":  of(func(s *made) { s.tokens = 1 }, each(func(r *record.Record) { r.Stream = false })),
		"no windows":    of(nil, func(m *record.Manifest, r []record.Record) []record.Record { m.Windows = nil; return r }),
		"one record":    of(nil, func(_ *record.Manifest, r []record.Record) []record.Record { return r[:1] }),
		"one variant":   of(func(s *made) { s.variants = s.variants[:1] }, nil),
		"five variants": of(func(s *made) { s.variants = []string{"a", "b", "c", "d", "e"} }, nil),
		"no client": of(nil, func(m *record.Manifest, r []record.Record) []record.Record {
			m.Client = record.Certificate{}
			m.State = "running"
			return r
		}),
		"all the same": of(nil, each(func(r *record.Record) {
			r.Send = r.Due
			for i := range r.Events {
				r.Events[i].At = r.Due + record.Instant(i)*1e6
			}
			r.EOF = r.Due + record.Instant(len(r.Events))*1e6
		})),
		"no time at all": of(nil, each(func(r *record.Record) {
			r.Send, r.EOF = r.Due, r.Due
			for i := range r.Events {
				r.Events[i].At = r.Due
			}
		})),
		"a far instant": of(nil, func(m *record.Manifest, r []record.Record) []record.Record {
			r[3].EOF = record.At(1<<62 - 1)
			r[4].Send = record.At(1 << 61)
			m.Client.Seconds[0].Second = 1 << 60
			m.Client.Seconds[1].Second = -5
			return r
		}),
		"an unknown workload": of(nil, each(func(r *record.Record) { r.Workload, r.Variant = "other", "stranger" })),
	}
}

func TestDegenerateRuns(t *testing.T) {
	for name, build := range degenerate() {
		t.Run(name, func(t *testing.T) {
			m, records := build()
			verdicts := []*contract.Verdict{nil, {}}
			if m != nil {
				verdicts = append(verdicts, judged(t, m, records))
			}
			for _, v := range verdicts {
				d := Build(m, records, v)
				for format, write := range renderers {
					if format == "report.json" {
						write = JSON
					}
					out := render(t, write, d)
					if bad := notNumber(out); bad != "" {
						t.Errorf("%s holds %s:\n%s", format, bad, out)
					}
				}
				checkXML(t, render(t, JUnit, d))
				checkPage(t, name, string(render(t, HTML, d)))
				if j := render(t, JSON, d); !json.Valid(j) {
					t.Errorf("the JSON is not valid: %s", j)
				}
				noteless(t, d)
			}
			for _, variant := range []string{"baseline", "", "no such"} {
				c := Compare(Side{"a", m, records, "baseline"}, Side{"b", m, records, variant})
				for format, write := range comparers {
					out := render(t, write, c)
					if bad := notNumber(out); bad != "" {
						t.Errorf("%s holds %s:\n%s", format, bad, out)
					}
				}
			}
		})
	}
}

// noteless demands a footnote of every figure without a value or an interval.
func noteless(t *testing.T, d *Document) {
	t.Helper()
	check := func(row string, s Shown) {
		whole := s.Interval != "" && s.Value != missing
		for _, r := range s.Interval {
			whole = whole && string(r) != missing && string(r) != infinity
		}
		if !whole && len(s.Marks) == 0 {
			t.Errorf("%s: %q %q has no footnote", row, s.Value, s.Interval)
		}
		for _, n := range s.Marks {
			if n < 1 || n > len(d.Footnotes) {
				t.Errorf("%s: footnote %d of %d", row, n, len(d.Footnotes))
			}
		}
	}
	for _, w := range d.Workloads {
		for _, r := range w.Rows {
			for _, c := range r.Cells {
				check(r.Name, c.Shown)
			}
			if r.Change != nil {
				check(r.Name, r.Change.Shown)
			}
		}
	}
}

func TestMissingIsNeverZero(t *testing.T) {
	s := usual()
	s.usage = false
	d := s.document(t)
	for _, r := range d.Workloads[0].Rows {
		if r.Quantity.Metric == "output_tokens" || r.Quantity.Metric == "cached" || r.Quantity.Metric == "prompt_length" {
			t.Errorf("a server that tells no tokens has a row %s: %v", r.Name, r.Cells[0].Shown)
		}
	}
	if len(d.Workloads[0].Marks) == 0 {
		t.Error("no footnote says what is not shown")
	}
	if d.Series[0].Tokens != nil {
		t.Error("a server that tells no tokens has a series of them")
	}
}

func TestNothingSentIsZero(t *testing.T) {
	s := usual()
	s.failing = 1
	d := s.document(t)
	found := false
	for _, r := range d.Workloads[0].Rows {
		if r.Quantity.Metric == "requests" || r.Quantity.Metric == "output_tokens" {
			found = true
			if v := r.Cells[0].Figure.Value; v != 0 {
				t.Errorf("%s of a server that failed every request is %v", r.Name, v)
			}
		}
	}
	if !found {
		t.Error("a server that failed every request has no rates, but 0 is what it gave")
	}
}

func TestBuildIsBounded(t *testing.T) {
	m, records := usual().build()
	records[0].EOF = record.At(100 * 365 * 24 * time.Hour)
	for _, s := range Build(m, records, nil).Series {
		if len(s.Sent) > mostBins {
			t.Errorf("a series has %d bins, more than %d", len(s.Sent), mostBins)
		}
	}
}

// TestUnaskedTurnsAreTold: what a session was not asked stands in every form of
// the report.
func TestUnaskedTurnsAreTold(t *testing.T) {
	m, records := usual().build()
	for i := range m.Windows {
		m.Windows[i].Unasked = &record.Unasked{NoAnswer: 2, Over: 3}
	}
	d := Build(m, records, nil)
	n := 0
	for _, w := range m.Windows {
		if w.Variant == "candidate" {
			n++
		}
	}
	want := []byte(plain(float64(2*n), 3) + " after a turn without an answer to go on with, " + plain(float64(3*n), 3) + " since the time to ask was over")
	var text, markdown bytes.Buffer
	if err := Text(&text, d, TextOptions{Width: 400}); err != nil {
		t.Fatal(err)
	}
	if err := Markdown(&markdown, d); err != nil {
		t.Fatal(err)
	}
	for _, out := range [][]byte{text.Bytes(), markdown.Bytes()} {
		if !bytes.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

package interop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/assay-llm/assay/record"
)

// Exports returns the formats that can be written.
func Exports() []Format { return []Format{VLLM, AIPerf, GuideLLM} }

// Selection says what of a run to export.
type Selection struct {
	Variant  string // "": the candidate, or the last
	Workload string // "": all of them; vLLM's shape holds only one
}

// Exported says what was written.
type Exported struct {
	Variant string
	Rows    int      // requests written
	LeftOut int      // requests that the shape has no place for
	Notes   []string // what a reader of the file must know
}

// Export writes the measured requests of one variant in the shape of a tool, with
// that tool's definitions: vLLM's detailed result, AIPerf's profile_export.jsonl
// (with the warm-up, which it marks) or guidellm's JSON. What the run does not
// know is null or left out, never 0, except where the tool itself writes 0.0: the
// TTFT, latency and output length of a failed request in vLLM's file.
//
// Requests that the client never gave a fair try (dropped, interrupted) are left
// out of vLLM's shape and counted. Prompts and answers are not in a run.
func Export(w io.Writer, f Format, m *record.Manifest, records []record.Record, s Selection) (Exported, error) {
	out, err := newExport(m, records, s)
	if err != nil {
		return Exported{}, err
	}
	b := bufio.NewWriter(w)
	switch f {
	case VLLM:
		err = out.vllm(b)
	case AIPerf:
		err = out.aiperf(b)
	case GuideLLM:
		err = out.guidellm(b)
	default:
		return Exported{}, fmt.Errorf("exporting as %q: no such shape\n  hint: use vllm, aiperf or guidellm", clean(string(f), 40))
	}
	if err == nil {
		err = b.Flush()
	}
	if err != nil {
		return Exported{}, fmt.Errorf("exporting as %s: %w", f, err)
	}
	return out.done, nil
}

// export is one export under way.
type export struct {
	manifest *record.Manifest
	of       record.VariantInfo
	names    []string // workloads with records, in the manifest's order
	records  []*record.Record
	done     Exported
}

func newExport(m *record.Manifest, records []record.Record, s Selection) (*export, error) {
	x := &export{manifest: m}
	var variants []string
	for _, v := range m.Variants {
		variants = append(variants, v.Name)
		if v.Name == s.Variant || s.Variant == "" && (x.of.Name != "candidate") {
			x.of = v
		}
	}
	if len(m.Variants) == 0 || s.Variant != "" && x.of.Name != s.Variant {
		return nil, fmt.Errorf("exporting: the run has no variant %q\n  hint: it has %s", clean(s.Variant, 60), strings.Join(variants, ", "))
	}
	x.done.Variant = x.of.Name
	var all []string
	for _, w := range m.Workloads {
		all = append(all, w.Name)
	}
	for i := range records {
		r := &records[i]
		if r.Variant != x.of.Name || s.Workload != "" && r.Workload != s.Workload {
			continue
		}
		x.records = append(x.records, r)
		if !slices.Contains(x.names, r.Workload) {
			x.names = append(x.names, r.Workload)
		}
	}
	if len(x.records) == 0 {
		if s.Workload != "" && !slices.Contains(all, s.Workload) {
			return nil, fmt.Errorf("exporting: the run has no workload %q\n  hint: it has %s", clean(s.Workload, 60), strings.Join(all, ", "))
		}
		return nil, fmt.Errorf("exporting: the run has no request of %s\n  hint: an import of aggregates has none; import a file with requests", x.of.Name)
	}
	if m.State == State {
		x.done.Notes = append(x.done.Notes, fmt.Sprintf("the run was imported from %s: only what that file told is written", m.Host["imported_from"]))
	}
	return x, nil
}

// measured returns the measured requests of a workload that were given a fair try.
func (x *export) measured(workload string) []*record.Record {
	var out []*record.Record
	for _, r := range x.records {
		switch {
		case r.Workload != workload || r.Phase != record.Measured:
		case r.Outcome.Group() == record.GroupDropped:
			x.done.LeftOut++
		default:
			out = append(out, r)
		}
	}
	return out
}

// views are the definitions of other tools by their names.
var views = func() map[Format]record.View {
	out := make(map[Format]record.View)
	for _, v := range record.Views() {
		out[Format(v.Name)] = v
	}
	return out
}()

// maybe is a number that may be missing, and then is null.
type maybe struct {
	v  float64
	ok bool
}

func some(v float64) maybe { return maybe{v, !math.IsNaN(v) && !math.IsInf(v, 0)} }

// of reads a number of a view, in units of so many nanoseconds.
func of(numbers map[string]float64, name string, unit float64) maybe {
	v, ok := numbers[name]
	if !ok {
		return maybe{}
	}
	return some(v / unit)
}

func (m maybe) MarshalJSON() ([]byte, error) {
	if !m.ok {
		return []byte("null"), nil
	}
	return json.Marshal(m.v)
}

// span is b − a in units of so many nanoseconds.
func span(b, a record.Instant, unit float64) maybe {
	d, ok := b.Sub(a)
	if !ok {
		return maybe{}
	}
	return some(float64(d) / unit)
}

func offset(t record.Instant, unit float64) maybe { return span(t, record.At(0), unit) }

func whole(c record.Count) any {
	if n, ok := c.N(); ok {
		return n
	}
	return nil
}

const (
	second      = float64(time.Second)
	millisecond = float64(time.Millisecond)
)

// problem is the error text of a request that failed.
func problem(r *record.Record) string {
	text := string(r.Outcome)
	if r.Outcome == "" {
		text = "not ended"
	}
	if r.Status != 0 {
		text += fmt.Sprintf(" %d", r.Status)
	}
	if r.Detail != "" {
		text += ": " + r.Detail
	}
	return text
}

// field is one key of an object that is written in order.
type field struct {
	key   string
	value any
}

// write writes an object with its keys in order, and a line each.
func write(w io.Writer, fields []field) error {
	for i, f := range fields {
		key, err := json.Marshal(f.key)
		if err != nil {
			return err
		}
		value, err := json.Marshal(f.value)
		if err != nil {
			return err
		}
		open := ",\n "
		if i == 0 {
			open = "{"
		}
		if _, err := fmt.Fprintf(w, "%s%s: %s", open, key, value); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, "}\n")
	return err
}

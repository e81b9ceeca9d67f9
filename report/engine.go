package report

import (
	"math"
	"slices"
	"strings"

	"github.com/assay-llm/assay/record"
)

// EngineRow is one figure that the engines told of themselves, to stand beside the
// client's rows: a cell a variant. The client's TTFT is among them, since the two
// only mean something next to each other.
type EngineRow struct {
	Name   string       `json:"name"`
	Figure string       `json:"figure"` // its name in docs/format/engine.md
	Doc    string       `json:"doc"`
	Unit   record.Unit  `json:"unit"`  // of the values
	Cells  []EngineCell `json:"cells"` // in the order of the variants
}

// EngineCell is a figure of one engine as told and as printed.
type EngineCell struct {
	Variant string   `json:"variant"`
	Value   *float64 `json:"value"` // null: not known
	Shown   Shown    `json:"shown"`
}

// engineFigures are the figures that a report shows, of all that a manifest has.
var engineFigures = []struct {
	name, figure, doc string
	unit              record.Unit
	by                float64 // to the unit
}{
	{"client TTFT, mean", "client_ttft_seconds_mean", "the client's time from the first byte sent to the first token", record.Nanoseconds, 1e9},
	{"engine TTFT, mean", "ttft_seconds_mean", "the engine's time from the arrival of a request to its first token", record.Nanoseconds, 1e9},
	{"of it in the queue", "queue_seconds_mean", "from arrival to the most recent start of the first step", record.Nanoseconds, 1e9},
	{"of it in prefill", "prefill_seconds_mean", "from the start of the first step to the first token", record.Nanoseconds, 1e9},
	{"engine decode, mean", "decode_seconds_mean", "from the first token to the last, time of preemption included", record.Nanoseconds, 1e9},
	{"running, mean", "running_mean", "requests in the running batch, mean over time", "", 1},
	{"running, most", "running_max", "the most requests in the running batch", "", 1},
	{"waiting, mean", "waiting_mean", "requests that wait to be scheduled, mean over time", "", 1},
	{"waiting, most", "waiting_max", "the most requests that waited to be scheduled", "", 1},
	{"KV cache, most", "kv_usage_ratio_max", "the largest share of the KV cache in use, of the fullest replica", record.Proportion, 1},
	{"prefix hits", "prefix_hit_ratio", "share of the prompt tokens, or blocks, looked up in the prefix cache that were there", record.Proportion, 1},
	{"cached, by usage", "usage_cached_ratio", "share of the prompt tokens that came from a cache, as the answers' usage tells", record.Proportion, 1},
	{"GPU busy, mean", "gpu_busy_ratio_mean", "share of the time in which a kernel ran; it says little of how busy the GPU was", record.Proportion, 1},
	{"GPU memory busy, mean", "gpu_dram_active_ratio_mean", "share of the cycles in which the GPU's memory moved data", record.Proportion, 1},
	{"GPU power, mean", "gpu_power_watts_mean", "power draw, sum of the GPUs", "W", 1},
	{"energy per output token", "gpu_joules_per_output_token", "energy of the GPUs over the output tokens of the measured requests", "J", 1},
	{"preemptions", "preemptions", "requests sent back to the queue for want of KV blocks", "", 1},
}

// engineRows enters what the engines told on a workload. A figure that no engine
// told is left out; one that some engine did not tell is missing there. A footnote says
// why, if that is known.
func (b *builder) engineRows(w *Workload, sides []record.EngineSide) {
	sides = slices.DeleteFunc(slices.Clone(sides), func(s record.EngineSide) bool { return s.Workload != w.Name })
	absent := map[string][]string{}
	var whys []string
	for _, f := range engineFigures {
		row := EngineRow{Name: f.name, Figure: f.figure, Doc: f.doc, Unit: f.unit}
		var values []float64
		lost := make([]string, len(b.doc.Variants)) // why a variant has no value
		for i, v := range b.doc.Variants {
			c := EngineCell{Variant: v.Name}
			x, why, ok := told(sides, v.Name, f.figure)
			if ok {
				x *= f.by
				c.Value = &x
				values = append(values, x)
			} else if why != "" {
				lost[i] = why
			}
			row.Cells = append(row.Cells, c)
		}
		lost = b.together(lost)
		if len(values) == 0 {
			for i, why := range lost {
				if why == "" || slices.Contains(lost[:i], why) {
					continue
				}
				if absent[why] == nil {
					whys = append(whys, why)
				}
				absent[why] = append(absent[why], f.name)
			}
			continue
		}
		s := scaleOf(f.unit, values...)
		for i := range row.Cells {
			row.Cells[i].Shown = shownOfEngine(row.Cells[i].Value, s)
			if lost[i] != "" {
				row.Cells[i].Shown.Marks = b.notes.add(nil, lost[i])
			}
		}
		w.Engine = append(w.Engine, row)
	}
	for _, why := range whys {
		w.Marks = b.notes.add(w.Marks, "not shown of the engine: "+strings.Join(absent[why], "; ")+". "+why)
	}
}

// together says of each variant why it has no value, and of which others that is so: a
// reason that all share is one footnote.
func (b *builder) together(whys []string) []string {
	out := make([]string, len(whys))
	for i, why := range whys {
		if why == "" {
			continue
		}
		var names []string
		for j, v := range b.doc.Variants {
			if whys[j] == why {
				names = append(names, v.Name)
			}
		}
		out[i] = listed(names) + ": " + why
	}
	return out
}

// listed joins words: "a, b and c".
func listed(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// shownOfEngine writes a figure; one without a unit is a number of requests.
func shownOfEngine(v *float64, s scale) Shown {
	switch {
	case v == nil:
		return Shown{Value: missing}
	case s.unit == "":
		return Shown{Value: plain(*v, 3)}
	}
	return Shown{Value: s.print(*v)}
}

// told returns a figure of one variant's engine, or why it is not known.
func told(sides []record.EngineSide, variant, figure string) (v float64, why string, ok bool) {
	for _, s := range sides {
		if s.Variant != variant {
			continue
		}
		if v, ok = s.Values[figure]; ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
			return v, "", true
		}
		base := strings.TrimSuffix(strings.TrimSuffix(figure, "_mean"), "_max")
		for _, name := range []string{figure, base, base + "_sum", base + "_count"} {
			if why := s.Lost[name]; why != "" {
				return 0, why, false
			}
		}
	}
	return 0, "", false
}

// engineGrid lays the figures of the engines out as a table.
func engineGrid(d *Document, w *Workload) *grid {
	g := new(grid)
	head := []string{"  engine"}
	for _, v := range d.Variants {
		head = append(head, shorten(v.Name, 32))
	}
	g.add(texts(head...))
	for _, r := range w.Engine {
		row := texts("  " + r.Name)
		for _, c := range r.Cells {
			row = append(row, figureCell(c.Shown))
		}
		g.add(row)
	}
	return g
}

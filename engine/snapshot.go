package engine

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-llm/assay/record"
)

// Snapshot is what an engine said at one moment. It is a line of engine.jsonl.
type Snapshot struct {
	Variant  string         `json:"variant"`
	Workload string         `json:"workload"`
	Block    int            `json:"block"`
	Edge     string         `json:"edge,omitempty"` // start or end: the first and the last of a window; settling: behind the last request, but not yet the end
	Engine   string         `json:"engine"`
	At       record.Instant `json:"at_ns"`   // when the answer was there
	Took     time.Duration  `json:"took_ns"` // asking to answer
	// Values are in the vocabulary. What is not known is not in it. A histogram
	// gives NAME_sum and NAME_count.
	Values  map[string]float64  `json:"values"`
	Buckets map[string][]Bucket `json:"buckets,omitempty"` // of histograms; at edges only
	Resets  []string            `json:"resets,omitempty"`  // counters of which a series fell since the snapshot before

	series map[string]map[string]float64 // counters by name and series, to see one of them fall
}

// The edges of a window. A snapshot within it has none.
const (
	edgeStart    = "start"
	edgeEnd      = "end"
	edgeSettling = "settling"
)

// Bucket says how many observations were at most Bound. The last bucket of a
// histogram, without a bound, is NAME_count and is left out.
type Bucket struct {
	Bound float64 `json:"le"`
	Count float64 `json:"n"`
}

// Contract is how an engine's families differ from those that this program was written for.
type Contract struct {
	Engine  string   `json:"engine"`
	Missing []string `json:"missing,omitempty"` // families that are not there; what they would tell is unknown
	Renamed []string `json:"renamed,omitempty"` // "new name is called old name": read all the same
	Changed []string `json:"changed,omitempty"` // families of another type: not read
	Unknown []string `json:"unknown,omitempty"` // quantities that this engine could tell, and does not
}

// detect tells the engine by the names of its families; nil: none that is known.
func detect(e *exposition) *dialect {
	names := make(map[string]bool)
	for name := range e.types {
		names[name] = true
	}
	for name := range e.samples {
		names[name] = true
	}
	var best *dialect
	most := 0
	for _, d := range dialects {
		n := 0
		for name := range names {
			if strings.HasPrefix(name, d.prefix) || d.old != "" && strings.HasPrefix(name, d.old) {
				n++
			}
		}
		if n > most {
			best, most = d, n
		}
	}
	return best
}

// names returns what a family may be called, the present name first.
func (d *dialect) names(name string, was []string) []string {
	names := append([]string{name}, was...)
	if bare, ok := strings.CutPrefix(name, d.prefix); ok && d.old != "" {
		names = append(names, d.old+bare)
	}
	return names
}

// find returns the name under which a family is there, or "".
func (d *dialect) find(e *exposition, name string, was []string) string {
	for _, n := range d.names(name, was) {
		if e.has(n) {
			return n
		}
	}
	return ""
}

// changed returns the type of a family if it is another than the contract's.
// A family whose type nobody tells is taken for what it should be.
func (d *dialect) changed(e *exposition, name, found string) string {
	is := e.typeOf(found)
	if is == "" || is == "untyped" || is == "unknown" || is == d.kindOf(name) {
		return ""
	}
	return is
}

// check compares an exposition with the contract.
func (d *dialect) check(e *exposition) Contract {
	c := Contract{Engine: d.name}
	aliases := make(map[string][]string)
	for _, r := range d.rules {
		aliases[r.theirs] = append(aliases[r.theirs], r.was...)
	}
	for _, f := range d.list {
		found := d.find(e, f.name, aliases[f.name])
		switch {
		case found == "" && f.optional:
		case found == "":
			c.Missing = append(c.Missing, f.name)
		default:
			if found != f.name {
				c.Renamed = append(c.Renamed, f.name+" is called "+found)
			}
			if is := d.changed(e, f.name, found); is != "" {
				c.Changed = append(c.Changed, f.name+" is a "+cleaned(is)+", not a "+f.kind)
			}
		}
	}
	values := d.read(e).values
	for _, r := range d.rules {
		_, has := values[r.ours]
		_, sums := values[r.ours+"_sum"]
		if !has && !sums {
			c.Unknown = append(c.Unknown, r.ours)
		}
	}
	return c
}

// cleaned makes a word of another's program fit to be shown.
func cleaned(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_:-. ", r) {
			return r
		}
		return '?'
	}, s)
	return s[:min(len(s), 60)]
}

// reading is what a dialect finds in one exposition.
type reading struct {
	values  map[string]float64
	buckets map[string][]Bucket
	series  map[string]map[string]float64 // counters, by series
}

// read reads every quantity of the dialect.
func (d *dialect) read(e *exposition) reading {
	out := reading{make(map[string]float64), make(map[string][]Bucket), make(map[string]map[string]float64)}
	for i := range d.rules {
		r := &d.rules[i]
		name := d.find(e, r.theirs, r.was)
		if name == "" || d.changed(e, r.theirs, name) != "" {
			continue
		}
		scale := r.scale
		if scale == 0 {
			scale = 1
		}
		if byName[r.ours] != Histogram {
			out.put(r.ours, d.value(e, r, name, scale))
			continue
		}
		out.put(r.ours+"_sum", d.series(e, r, name+"_sum", scale))
		out.put(r.ours+"_count", d.series(e, r, name+"_count", 1))
		if b := d.histogram(e, r, name, scale); b != nil {
			out.buckets[r.ours] = b
		}
	}
	return out
}

// series is some series of a family that count, and how they become one number.
type series struct {
	parts map[string]float64 // scaled, by their keys; NaN: unknown
	fold  fold
}

func (out *reading) put(name string, s series) {
	v := s.number()
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	out.values[name] = v
	if grows(name) {
		out.series[name] = s.parts
	}
}

// number folds the series; NaN when there is none, or when one of them is unknown.
func (s series) number() float64 {
	v, total := math.NaN(), 0.0
	for _, key := range slices.Sorted(maps.Keys(s.parts)) { // in order, so that sums repeat to the last bit
		x := s.parts[key]
		if math.IsNaN(x) {
			return x
		}
		total += x
		if s.fold == most && !(x <= v) || s.fold == least && !(x >= v) {
			v = x
		}
	}
	switch {
	case len(s.parts) == 0:
	case s.fold == sum:
		v = total
	case s.fold == mean:
		v = total / float64(len(s.parts))
	}
	return v
}

// value reads a gauge or a counter: the family, or the product or sum that the rule makes of several.
func (d *dialect) value(e *exposition, r *rule, name string, scale float64) series {
	if r.info[0] != "" {
		return d.product(e, r, name)
	}
	s := d.series(e, r, name+r.part, scale)
	for _, more := range r.plus {
		if found := d.find(e, more, nil); found != "" && d.changed(e, more, found) == "" {
			maps.Copy(s.parts, d.series(e, r, found, scale).parts)
		}
	}
	if r.times != "" {
		by := d.series(e, &rule{fold: most}, d.find(e, r.times, nil), 1).number()
		for key := range s.parts {
			s.parts[key] *= by
		}
	}
	return s
}

// product reads an info family, whose value is 1 and whose labels are the facts.
func (d *dialect) product(e *exposition, r *rule, name string) series {
	s := series{parts: make(map[string]float64), fold: r.fold}
	for _, x := range e.samples[name] {
		if !d.counts(r, &x) {
			continue
		}
		v := 1.0
		for _, l := range r.info {
			text, _ := x.label(l)
			n, err := strconv.ParseFloat(text, 64)
			if err != nil || !(n > 0) {
				n = math.NaN()
			}
			v *= n
		}
		s.parts[x.key(name)] = v
	}
	return s
}

// series collects the samples of a name that count for a rule.
func (d *dialect) series(e *exposition, r *rule, name string, scale float64) series {
	s := series{parts: make(map[string]float64), fold: r.fold}
	for i := range e.samples[name] {
		x := &e.samples[name][i]
		if !d.counts(r, x) {
			continue
		}
		v := x.value
		if r.limit > 0 && v > r.limit {
			v = math.NaN()
		}
		s.parts[x.key(name)] = v * scale
	}
	return s
}

// counts reports whether a series counts for a rule.
func (d *dialect) counts(r *rule, s *sample) bool {
	for _, l := range r.where {
		if v, ok := s.label(l.name); !ok || v != l.value {
			return false
		}
	}
	for _, l := range d.one {
		if v, ok := s.label(l.name); ok && v != l.value {
			return false
		}
	}
	return true
}

// histogram adds up the buckets of the series that count; nil when they do not fit
// together.
func (d *dialect) histogram(e *exposition, r *rule, name string, scale float64) []Bucket {
	counts := make(map[float64]float64)
	times := make(map[float64]int)
	for i := range e.samples[name+"_bucket"] {
		x := &e.samples[name+"_bucket"][i]
		if !d.counts(r, x) {
			continue
		}
		text, _ := x.label("le")
		bound, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(bound) || math.IsNaN(x.value) {
			return nil
		}
		if !math.IsInf(bound, 0) {
			counts[bound] += x.value
			times[bound]++
		}
	}
	var out []Bucket
	bounds := slices.Sorted(maps.Keys(counts))
	for _, bound := range bounds {
		b := Bucket{bound * scale, counts[bound]}
		if n := len(out); n > 0 && (b.Count < out[n-1].Count || times[bound] != times[bounds[0]]) {
			return nil
		}
		out = append(out, b)
	}
	return out
}

// snapshot reads an exposition, given the snapshot before it.
func (d *dialect) snapshot(e *exposition, before *Snapshot) *Snapshot {
	r := d.read(e)
	s := &Snapshot{Engine: d.name, Values: r.values, Buckets: r.buckets, series: r.series}
	if before == nil {
		return s
	}
	start, knew := before.Values["start_time_seconds"]
	restarted := knew && s.Values["start_time_seconds"] > start
	for _, name := range slices.Sorted(maps.Keys(before.series)) {
		if restarted || fell(before.series[name], s.series[name]) {
			s.Resets = append(s.Resets, name)
		}
	}
	return s
}

// fell reports whether a series of a counter has less than before, or is gone.
func fell(before, now map[string]float64) bool {
	for key, v := range before {
		if n, ok := now[key]; !ok || n < v {
			return true
		}
	}
	return false
}

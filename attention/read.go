package attention

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/assay-llm/assay/stat/diverge"
	"github.com/assay-llm/assay/stat/screen"
)

// Bounds on a dump.
const (
	maxLine  = 64 << 20
	maxRows  = 4 << 20
	maxKeys  = 1 << 24
	maxHeads = 1 << 16
)

const (
	sinkShare = 0.2  // of a head's attention, on average
	sinkRows  = 8    // rows that a key must be in to be told a sink by it
	wide      = 0.1  // bounds of an evenness that are further apart tell nothing
	listed    = 0.9  // of its attention a row must list for a distance
	timesEven = 3    // as much as chance, of retrieval heads
	slack     = 1e-3 // of weights in sixteen bits
	side      = 8    // positions on either side of a break
	leastStep = 0.05 // of evenness, that is a break
	surely    = 5    // as many standard errors it is great
)

// Span is a stretch of keys, To excluded. The zero Span is none.
type Span struct{ From, To int }

// Options say how to read a dump. The zero Options work.
type Options struct {
	Sinks  int  // first keys that are sinks; 0: 4, negative: none
	Needle Span // keys that matter
}

// Head is where one head looks, on average over its rows.
type Head struct {
	Layer     int      `json:"layer"`
	Head      int      `json:"head"`
	Rows      int      `json:"rows"`
	Sinks     []int    `json:"sinks,omitempty"`  // beside the first keys
	Evenness  *float64 `json:"evenness"`         // 0 to 1; null: no row tells
	Distance  *float64 `json:"distance"`         // keys back; null: no row tells
	Needle    *float64 `json:"needle,omitempty"` // share of its attention
	Retrieval bool     `json:"retrieval"`
	Narrow    int      `json:"narrow,omitempty"` // rows that list too little to tell an evenness

	short, even float64 // sums over the shorter contexts: attention to the needle, and what chance has
}

// Point is the evenness at one position.
type Point struct {
	Query    int     `json:"query"`
	Evenness float64 `json:"evenness"`
	Entropy  float64 `json:"entropy"` // nats
}

// Dump is what a dump says.
type Dump struct {
	Heads  []Head  `json:"heads"`
	Course []Point `json:"course"` // over retrieval heads, or over all; of the positions that all of them have
	Breaks []int   `json:"breaks"` // positions at which the evenness has another level; empty: none
}

// Published is the position of a break as published: the argmax over positions of
// whether the entropy rises by more than the threshold, which is the first one if it
// does nowhere. See [screen.SteepRise].
func (d *Dump) Published(threshold float64) int {
	if len(d.Course) == 0 {
		return 0
	}
	entropies := make([]float64, len(d.Course))
	for i, p := range d.Course {
		entropies[i] = p.Entropy
	}
	return d.Course[screen.SteepRise(entropies, threshold)].Query
}

// row is one line.
type row struct {
	Layer   *int         `json:"layer"`
	Head    *int         `json:"head"`
	Query   *int         `json:"query"`
	Weights []float64    `json:"weights"`
	Top     [][2]float64 `json:"top"`
	Keys    int          `json:"keys"`
}

type headID struct{ layer, head int }

// Read reads a dump.
func Read(data []byte, o Options) (*Dump, error) {
	if o.Needle != (Span{}) && !(o.Needle.From >= 0 && o.Needle.From < o.Needle.To) {
		return nil, fmt.Errorf("reading attention: the needle from key %d to %d is empty", o.Needle.From, o.Needle.To)
	}
	r := &reader{options: o, heads: make(map[headID]*collected)}
	switch {
	case o.Sinks == 0:
		r.options.Sinks = 4
	case o.Sinks < 0:
		r.options.Sinks = 0
	}
	for _, take := range []func(*collected, *row) error{r.weigh, r.measure} {
		if err := each(data, func(line int, x *row) error {
			id := headID{*x.Layer, *x.Head}
			h := r.heads[id]
			if h == nil {
				if len(r.heads) >= maxHeads {
					return fmt.Errorf("more than %d heads", maxHeads)
				}
				h = &collected{columns: make(map[int]column), queries: make(map[int]bool)}
				r.heads[id] = h
			}
			return take(h, x)
		}); err != nil {
			return nil, fmt.Errorf("reading attention: %w", err)
		}
	}
	if len(r.heads) == 0 {
		return nil, errors.New("reading attention: the file has no rows; see the package's documentation for their form")
	}
	return r.dump()
}

// each decodes the lines.
func each(data []byte, take func(line int, x *row) error) error {
	n, rows := 0, 0
	for len(data) > 0 {
		n++
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if rows++; len(line) > maxLine || rows > maxRows {
			return fmt.Errorf("line %d: more than %d rows, or than %d bytes of one; dump fewer heads or positions", n, maxRows, maxLine)
		}
		var x row
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&x); err != nil {
			return fmt.Errorf("line %d: it is no row of attention: %w", n, err)
		}
		if err := x.check(); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if err := take(n, &x); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return nil
}

// check says what is no attention, and puts both forms into Top.
func (x *row) check() error {
	if x.Layer == nil || x.Head == nil || x.Query == nil || *x.Layer < 0 || *x.Head < 0 || *x.Query < 0 || *x.Query >= maxKeys {
		return errors.New("a row has a layer, a head and a query, which are numbers from 0")
	}
	if (x.Weights == nil) == (x.Top == nil) {
		return errors.New("a row has weights or top, and not both")
	}
	if x.Weights != nil {
		if x.Keys != 0 && x.Keys != len(x.Weights) {
			return fmt.Errorf("%d weights of %d keys", len(x.Weights), x.Keys)
		}
		x.Keys = len(x.Weights)
		for k, w := range x.Weights {
			x.Top = append(x.Top, [2]float64{float64(k), w})
		}
	}
	if x.Keys = cmp.Or(x.Keys, *x.Query+1); x.Keys < 1 || x.Keys > maxKeys || len(x.Top) > x.Keys {
		return fmt.Errorf("%d weights of %d keys", len(x.Top), x.Keys)
	}
	sum, seen := 0.0, make(map[float64]bool, len(x.Top))
	for _, t := range x.Top {
		if k, w := t[0], t[1]; k != math.Trunc(k) || k < 0 || k >= float64(x.Keys) || seen[k] || !(w >= 0 && w <= 1+slack) {
			return fmt.Errorf("key %v with weight %v, of %d keys; each key comes once, with a weight from 0 to 1", k, w, x.Keys)
		}
		seen[t[0]] = true
		sum += t[1]
	}
	if sum > 1+slack || sum <= 0 || x.Weights != nil && sum < 1-10*slack {
		return fmt.Errorf("the weights sum to %v; those of all keys sum to 1, those of some to less", sum)
	}
	return nil
}

type column struct {
	sum  float64
	rows int
}

// collected is one head while it is read.
type collected struct {
	columns map[int]column
	queries map[int]bool
	sinks   map[int]bool
	rows    []measured
}

// measured is one row.
type measured struct {
	query, keys                                 int
	entropy, evenness, distance, needle, chance float64 // NaN: not known
}

type reader struct {
	options Options
	heads   map[headID]*collected
}

// weigh sums what each key gets.
func (r *reader) weigh(h *collected, x *row) error {
	if h.queries[*x.Query] {
		return fmt.Errorf("layer %d, head %d has query %d twice", *x.Layer, *x.Head, *x.Query)
	}
	h.queries[*x.Query] = true
	for _, t := range x.Top {
		c := h.columns[int(t[0])]
		h.columns[int(t[0])] = column{c.sum + t[1], c.rows + 1}
	}
	return nil
}

func (r *reader) inNeedle(key int) bool {
	return key >= r.options.Needle.From && key < r.options.Needle.To
}

// measure reads a row without its sinks.
func (r *reader) measure(h *collected, x *row) error {
	if h.sinks == nil {
		h.sinks = make(map[int]bool)
		for k, c := range h.columns {
			if k >= r.options.Sinks && c.rows >= sinkRows && 2*c.rows >= len(h.queries) && c.sum > sinkShare*float64(c.rows) && !r.inNeedle(k) {
				h.sinks[k] = true
			}
		}
	}
	m := measured{query: *x.Query, entropy: math.NaN(), evenness: math.NaN(), distance: math.NaN(), needle: math.NaN()}
	m.keys = x.Keys - min(r.options.Sinks, x.Keys)
	for k := range h.sinks {
		if k < x.Keys {
			m.keys--
		}
	}
	total, all := 0.0, 1.0
	var kept [][2]float64
	for _, t := range x.Top {
		if k := int(t[0]); k < r.options.Sinks || h.sinks[k] {
			all -= t[1]
			continue
		}
		if t[1] > 0 {
			kept = append(kept, t)
			total += t[1]
		}
	}
	if x.Weights != nil {
		all = total // rounded, they sum to nearly 1
	}
	if all = math.Max(all, total); m.keys >= 2 && total > slack {
		m.fill(x, kept, total, all, r)
	}
	h.rows = append(h.rows, m)
	return nil
}

// fill computes what the kept weights say, of which all is the sum with what is not
// listed.
func (m *measured) fill(x *row, kept [][2]float64, total, all float64, r *reader) {
	list := make(map[string]float64, len(kept))
	m.needle = 0
	distance := 0.0
	for _, t := range kept {
		k, w := int(t[0]), t[1]/all
		list[fmt.Sprint(k)] = w
		distance += t[1] / total * math.Abs(float64(m.query-k))
		if r.inNeedle(k) {
			m.needle += w
		}
	}
	if n := min(r.options.Needle.To, x.Keys) - max(r.options.Needle.From, r.options.Sinks); n > 0 {
		m.chance = float64(n) / float64(m.keys)
	}
	if total >= listed*all {
		m.distance = distance
	}
	if len(kept) > m.keys {
		return
	}
	least, most, err := diverge.Entropy(list, m.keys)
	if err != nil {
		return
	}
	if scale := math.Log(float64(m.keys)); most-least <= wide*scale {
		m.entropy = (least + most) / 2
		m.evenness = math.Min(m.entropy/scale, 1)
	}
}

// dump puts the heads together.
func (r *reader) dump() (*Dump, error) {
	d := &Dump{Breaks: []int{}}
	ids := make([]headID, 0, len(r.heads))
	for id := range r.heads {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b headID) int { return cmp.Or(cmp.Compare(a.layer, b.layer), cmp.Compare(a.head, b.head)) })
	some := false
	for _, id := range ids {
		h := r.heads[id].head(id)
		h.Retrieval = h.even > 0 && h.short > timesEven*h.even
		some = some || h.Retrieval
		d.Heads = append(d.Heads, h)
	}
	type sum struct {
		evenness, entropy float64
		heads             int
	}
	at, heads := make(map[int]sum), 0
	for i, id := range ids {
		if some && !d.Heads[i].Retrieval {
			continue
		}
		heads++
		for _, m := range r.heads[id].rows {
			if !math.IsNaN(m.evenness) {
				s := at[m.query]
				at[m.query] = sum{s.evenness + m.evenness, s.entropy + m.entropy, s.heads + 1}
			}
		}
	}
	for query, s := range at {
		// A position that some heads lack would be at another level for that.
		if n := float64(s.heads); s.heads == heads {
			d.Course = append(d.Course, Point{query, s.evenness / n, s.entropy / n})
		}
	}
	slices.SortFunc(d.Course, func(a, b Point) int { return cmp.Compare(a.Query, b.Query) })
	breaks, err := breaks(d.Course)
	if err != nil {
		return nil, fmt.Errorf("reading attention: %w", err)
	}
	d.Breaks = append(d.Breaks, breaks...)
	return d, nil
}

// breaks are the positions at which the evenness changes by a step. It also drifts
// with the number of keys, whatever the model does: the median slope over ln of the
// position, which steps do not move, is taken out first.
func breaks(course []Point) (out []int, err error) {
	if len(course) < 2*side {
		return nil, nil
	}
	slopes := make([]float64, 0, len(course))
	log := func(i int) float64 { return math.Log(float64(course[i].Query + 1)) }
	for i := side; i < len(course); i++ {
		slopes = append(slopes, (course[i].Evenness-course[i-side].Evenness)/(log(i)-log(i-side)))
	}
	slices.Sort(slopes)
	series := make([]float64, len(course))
	for i, p := range course {
		series[i] = p.Evenness - slopes[len(slopes)/2]*log(i)
	}
	cuts, err := screen.Changes(series, 0)
	if err != nil {
		return nil, err
	}
	step := func(at int) float64 {
		before, after := series[max(at-side, 0):at], series[at:min(at+side, len(series))]
		size := math.Abs(average(before) - average(after))
		if size < surely*math.Hypot(scatter(before), scatter(after)) {
			return 0 // where attention is sharp it differs much from position to position
		}
		return size
	}
	for i := 0; i < len(cuts); {
		// Of cuts close to each other the one with the greatest step counts.
		best := cuts[i]
		for first := cuts[i]; i < len(cuts) && cuts[i] < first+side; i++ {
			if step(cuts[i]) > step(best)+1e-9 {
				best = cuts[i]
			}
		}
		if step(best) >= leastStep {
			out = append(out, course[best].Query)
		}
	}
	return out, nil
}

// scatter is the standard error of the mean of numbers; of one it is not known.
func scatter(x []float64) float64 {
	if len(x) < 2 {
		return math.Inf(1)
	}
	sum, mean := 0.0, average(x)
	for _, y := range x {
		sum += (y - mean) * (y - mean)
	}
	n := float64(len(x))
	return math.Sqrt(sum / (n - 1) / n)
}

// average is the mean of numbers.
func average(x []float64) (mean float64) {
	for _, y := range x {
		mean += y / float64(len(x))
	}
	return mean
}

// head is the mean over rows.
func (h *collected) head(id headID) Head {
	out := Head{Layer: id.layer, Head: id.head, Rows: len(h.rows)}
	for k := range h.sinks {
		out.Sinks = append(out.Sinks, k)
	}
	slices.Sort(out.Sinks)
	slices.SortFunc(h.rows, func(a, b measured) int { return cmp.Compare(a.query, b.query) })
	mean := func(rows []measured, of func(m measured) float64) *float64 {
		sum, n := 0.0, 0.0
		for _, m := range rows {
			if x := of(m); !math.IsNaN(x) {
				sum, n = sum+x, n+1
			}
		}
		if n == 0 {
			return nil
		}
		sum /= n
		return &sum
	}
	for _, m := range h.rows {
		if math.IsNaN(m.evenness) {
			out.Narrow++
		}
	}
	out.Evenness = mean(h.rows, func(m measured) float64 { return m.evenness })
	out.Distance = mean(h.rows, func(m measured) float64 { return m.distance })
	// The shorter contexts are the first quarter of the rows in which there is a needle.
	var with []measured
	for _, m := range h.rows {
		if m.chance > 0 && !math.IsNaN(m.needle) {
			with = append(with, m)
		}
	}
	out.Needle = mean(with, func(m measured) float64 { return m.needle })
	for _, m := range with[:min(len(with), max(len(with)/4, 1))] {
		out.short, out.even = out.short+m.needle, out.even+m.chance
	}
	return out
}

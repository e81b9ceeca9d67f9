package bench

import (
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/assay-llm/assay/record"
)

// Difference makes the records of a variant worse, or better, by a known effect.
// The zero Difference changes nothing.
type Difference struct {
	Metric string  // as contracts spell it
	Factor float64 // of times and rates of one request: each value is multiplied by it; 0: 1
	Shift  float64 // of a share: the part of all requests that change sides; of a check's score: added to each
	Share  bool    // the check's value is 0 or 1
}

// The groups of metrics whose times can be stretched: the way to the first token,
// the pace after it, or both.
var (
	ofFirst = []string{"ttft", "ttft.service", "ttfa", "ttfb"}
	ofPace  = []string{"tpot", "itl", "icl", "ttst", "gap.max"}
	ofAll   = []string{"e2e", "e2e.service", "ntpot"}
)

// timed reports whether a difference in the metric is a factor on times.
func timed(metric string) bool {
	return slices.Contains(ofFirst, metric) || slices.Contains(ofPace, metric) || slices.Contains(ofAll, metric) || metric == "user_rate"
}

// plantable reports whether a difference in the metric can be planted into records.
func plantable(metric string) bool {
	_, measured := record.Find(metric)
	return timed(metric) || metric == "failed" || metric == "completed" || !measured // a check's value
}

// Plant returns the records with the difference in those measured of the variant
// on the workload ("": on all). The records given are not changed; those without a difference
// are shared.
func Plant(records []record.Record, variant, workload string, d Difference, seed uint64) []record.Record {
	random := rand.New(rand.NewPCG(seed, 0x706c616e74))
	out := slices.Clone(records)
	mine := func(r *record.Record) bool {
		return r.Variant == variant && r.Phase == record.Measured && (workload == "" || r.Workload == workload) && r.Outcome.Group() != record.GroupDropped
	}
	share := d.turned(out, mine)
	for i := range out {
		r := &out[i]
		if !mine(r) {
			continue
		}
		switch {
		case d.Metric == "failed", d.Metric == "completed":
			if u := random.Float64(); r.Success() == (d.worse() > 0) && u < share {
				flip(r)
			}
		case timed(d.Metric):
			d.stretch(r)
		default:
			d.revalue(r, random.Float64() < share)
		}
	}
	return out
}

// worse is the part of all requests that come to fail; negative: that no longer do.
func (d Difference) worse() float64 {
	if d.Metric == "completed" {
		return -d.Shift
	}
	return d.Shift
}

// turned is the chance with which a record on the side that loses changes sides, so
// that the share of all moves by Shift.
func (d Difference) turned(records []record.Record, mine func(*record.Record) bool) float64 {
	all, side := 0.0, 0.0
	for i := range records {
		r := &records[i]
		if !mine(r) {
			continue
		}
		switch v, ok := r.Values[d.Metric]; {
		case d.Metric == "failed" || d.Metric == "completed":
			all++
			if r.Success() == (d.worse() > 0) {
				side++
			}
		case ok:
			all++
			if (v == 0) == (d.Shift > 0) {
				side++
			}
		}
	}
	if side == 0 {
		return 0
	}
	if d.Shift < 0 {
		return min(1, -d.Shift*all/side)
	}
	return min(1, d.Shift*all/side)
}

// flip makes a failure of a success and the other way round, as far as a record can
// tell of what was not there.
func flip(r *record.Record) {
	if !r.Success() {
		r.Outcome, r.Status, r.Detail = record.OK, http.StatusOK, ""
		return
	}
	r.Outcome, r.Status, r.Detail = record.HTTP5xx, http.StatusInternalServerError, "planted"
	r.Events, r.Output, r.OutputBytes, r.Finish = nil, 0, 0, ""
}

// stretch multiplies the times of a record that the metric is about.
func (d Difference) stretch(r *record.Record) {
	first := r.First()
	if first == nil || d.Factor == 0 {
		return
	}
	f, start := d.Factor, first.At // the instant from which on times are stretched
	shift := time.Duration(0)      // of the start
	switch {
	case d.Metric == "user_rate":
		f = 1 / f
	case slices.Contains(ofPace, d.Metric):
	default:
		from := r.Due
		if d.Metric == "ttft.service" || d.Metric == "ttfb" || d.Metric == "e2e.service" {
			from = r.Send
		}
		anchor := start
		if d.Metric == "ttfb" {
			anchor = r.Header
		} else if answer := r.FirstAnswer(); d.Metric == "ttfa" && answer != nil {
			anchor = answer.At
		}
		if way, ok := anchor.Sub(from); ok {
			shift = time.Duration(float64(way) * (f - 1))
		}
		if !slices.Contains(ofAll, d.Metric) {
			f = 1
		}
	}
	move := func(t record.Instant) record.Instant {
		if since, ok := t.Sub(start); ok && since > 0 {
			t = start + record.Instant(float64(since)*f)
		}
		return t + record.Instant(shift)
	}
	if d.Metric == "ttfb" {
		r.Header = move(r.Header)
	}
	if !r.Stream {
		r.Header = move(r.Header)
	}
	r.EOF = move(r.EOF)
	r.Events = slices.Clone(r.Events)
	for i := range r.Events {
		r.Events[i].At = move(r.Events[i].At)
	}
}

// revalue changes a check's value.
func (d Difference) revalue(r *record.Record, turn bool) {
	v, ok := r.Values[d.Metric]
	switch {
	case !ok:
		return
	case !d.Share:
		v += d.Shift
	case turn && (v == 0) == (d.Shift > 0):
		v = 1 - v
	default:
		return
	}
	r.Values = maps.Clone(r.Values)
	r.Values[d.Metric] = v
}

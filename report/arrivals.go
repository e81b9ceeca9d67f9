package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/stat"
)

// Arrivals says whether the actual send times of an open workload are the process
// that was planned. A rate that varies is evened out first, by its integral, so
// that CV and dispersion are those of the process and not of the rate's course.
type Arrivals struct {
	Variant    string  `json:"variant"`
	N          int     `json:"n"`
	Stretches  int     `json:"stretches"`     // blocks that were joined
	Outside    int     `json:"outside"`       // sent after their block's end, left out
	Seconds    float64 `json:"seconds"`       // length of the joined time axis
	Why        string  `json:"why,omitempty"` // why there is no check; the figures below are then absent
	Rate       float64 `json:"rate_per_s,omitempty"`
	CV         *Band   `json:"cv,omitempty"`         // coefficient of variation of the gaps
	Dispersion *Band   `json:"dispersion,omitempty"` // variance over mean of the counts per bin
	PerBin     float64 `json:"per_bin,omitempty"`    // mean count of a bin
	Kind       string  `json:"process,omitempty"`    // that was planned, if there is a test for it: poisson, gamma, weibull
	Gaps       *Fit    `json:"gaps,omitempty"`       // of gamma and Weibull: their distribution against the planned one
	Course     *Fit    `json:"course,omitempty"`     // of the rate over the run, against the planned one
	AsPlanned  *bool   `json:"as_planned,omitempty"` // whether everything that is tested is within what 99 % of true processes have; absent: no test
}

// Band is a figure, what the schedule of the same requests has, and, where it is
// known, the range that 99 % of true processes have.
type Band struct {
	Value   float64  `json:"value"`
	Planned *float64 `json:"planned,omitempty"`
	Lo      *float64 `json:"lo,omitempty"`
	Hi      *float64 `json:"hi,omitempty"`
}

// Fit is the greatest distance between two cumulative distributions, with the
// probability of a greater one.
type Fit struct {
	Distance float64 `json:"distance"`
	P        float64 `json:"p"`
}

// lateBy bounds what the lateness of the client may explain of a distribution of
// gaps. A client that is later than that at the 99th percentile is told by its
// certificate.
const lateBy = time.Millisecond

// arrivals checks the send times of every variant.
func (b *builder) arrivals(info record.WorkloadInfo) []Arrivals {
	if !info.Open {
		return nil
	}
	var out []Arrivals
	for _, v := range b.doc.Variants {
		out = append(out, b.arrivalsOf(info, v.Name))
	}
	return out
}

func (b *builder) arrivalsOf(info record.WorkloadInfo, variant string) Arrivals {
	axis := joined(b.windows, info.Name, variant)
	a := Arrivals{Variant: variant, Stretches: len(axis), Seconds: axis.length().Seconds()}
	var sent []arrival
	for i := range b.records {
		r := &b.records[i]
		// The later turns of a session come when the answer before has.
		if r.Phase != record.Measured || r.Workload != info.Name || r.Variant != variant || r.Turn > 0 || !r.Send.Set() {
			continue
		}
		if x, ok := axis.place(r); ok {
			sent = append(sent, x)
		} else {
			a.Outside++
		}
	}
	a.N = len(sent)
	if len(axis) == 0 {
		a.Why = "no stretch of time in which it was measured"
		return a
	}
	if err := a.check(info.Process, sent, axis.length()); err != nil {
		return Arrivals{Variant: variant, N: a.N, Stretches: a.Stretches, Outside: a.Outside, Seconds: a.Seconds, Why: err.Error()}
	}
	return a
}

// stretch is a block of a variant on its joined time axis. The blocks of a variant
// are stretches of one planned process with other variants' turns between them:
// laid end to end they are that process.
type stretch struct {
	record.Window
	from time.Duration
}

type stretches []stretch

func joined(windows []record.Window, workload, variant string) stretches {
	var axis stretches
	for _, w := range windows {
		if d, ok := w.End.Sub(w.Start); ok && d > 0 && w.Variant == variant && w.Workload == workload {
			axis = append(axis, stretch{w, 0})
		}
	}
	slices.SortFunc(axis, func(x, y stretch) int { return int(min(max(x.Start-y.Start, -1), 1)) })
	for i := 1; i < len(axis); i++ {
		axis[i].from = axis[:i].length()
	}
	return axis
}

func (axis stretches) length() time.Duration {
	if len(axis) == 0 {
		return 0
	}
	last := axis[len(axis)-1]
	d, _ := last.End.Sub(last.Start)
	return last.from + d
}

// arrival is one request on the joined axis.
type arrival struct{ due, send time.Duration }

// place finds a request that was sent within a block.
func (axis stretches) place(r *record.Record) (arrival, bool) {
	sent := r.Send - record.Instant(r.Jitter) // as if nothing had been planned to hold it up
	k := slices.IndexFunc(axis, func(s stretch) bool { return sent >= s.Start && sent < s.End })
	if k < 0 {
		return arrival{}, false
	}
	since, _ := sent.Sub(axis[k].Start)
	x := arrival{axis[k].from + since, axis[k].from + since}
	if late, ok := sent.Sub(r.Due); ok {
		x.due = min(max(0, x.send-late), axis.length())
	}
	return x, true
}

// check fills in the figures.
func (a *Arrivals) check(p *record.Process, sent []arrival, length time.Duration) error {
	at := func(t time.Duration) float64 { return t.Seconds() }
	if p != nil {
		at = p.Expected
	}
	end := at(length)
	var sends, dues []float64
	var late []time.Duration
	for _, x := range sent {
		sends, dues = append(sends, at(x.send)), append(dues, at(x.due))
		late = append(late, x.send-x.due)
	}
	got, err := stat.CheckArrivals(sends, end)
	if err != nil {
		return err
	}
	planned, err := stat.CheckArrivals(dues, end)
	if err != nil {
		return err
	}
	for _, x := range []float64{got.CV, got.Dispersion, planned.CV, planned.Dispersion, got.KS} {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("the arrivals give no figures")
		}
	}
	a.Rate, a.PerBin = float64(a.N)/a.Seconds, float64(a.N)*got.Bin/end
	a.CV = &Band{Value: got.CV, Planned: &planned.CV}
	a.Dispersion = &Band{Value: got.Dispersion, Planned: &planned.Dispersion}
	switch {
	case p == nil:
		return nil
	case p.Kind == "poisson":
		a.CV.Lo, a.CV.Hi = &got.CVLo, &got.CVHi
		a.Dispersion.Lo, a.Dispersion.Hi = &got.DispersionLo, &got.DispersionHi
		a.Kind, a.Course, a.AsPlanned = p.Kind, &Fit{got.KS, got.KSP}, &got.Poisson
		return nil
	}
	slices.SortFunc(sent, func(x, y arrival) int { return int(x.send - y.send) })
	slices.Sort(late)
	tolerance := min(late[len(late)*99/100], lateBy)
	instants := make([]stat.Instants, len(sent))
	for i, x := range sent {
		instants[i] = stat.Instants{Lo: at(max(0, x.send-tolerance)), Hi: at(x.send)}
	}
	fit, err := stat.CheckRenewal(instants, end, stat.Gaps{Kind: p.Kind, Shape: p.Shape})
	if err != nil {
		return nil // too few for a verdict; the figures stand
	}
	a.Kind, a.Gaps, a.Course, a.AsPlanned = p.Kind, &Fit{fit.KS, fit.KSP}, &Fit{fit.Drift, fit.DriftP}, &fit.Fits
	return nil
}

// word is the verdict on the process.
func (a Arrivals) word() string {
	if a.AsPlanned == nil {
		return "no test"
	}
	name := map[string]string{"poisson": "Poisson", "gamma": "gamma", "weibull": "Weibull"}[a.Kind]
	if *a.AsPlanned {
		return name + " as planned"
	}
	return "not " + name + " as planned"
}

// arrivalsText is the check of the send times in one sentence.
func arrivalsText(a Arrivals) string {
	if a.Why != "" {
		return "not checked: " + strings.TrimPrefix(a.Why, "checking arrivals: ")
	}
	s := fmt.Sprintf("%s: %s sent in %s at %s; ", a.word(), fixed(float64(a.N), 0), scaleOf(record.Nanoseconds, a.Seconds*1e9).print(a.Seconds*1e9), scaleOf(contract.RequestsPerSecond).print(a.Rate))
	s += fmt.Sprintf("CV of the gaps %s, dispersion %s", bandText(a.CV), bandText(a.Dispersion))
	if a.Gaps != nil {
		s += ", p of the gaps " + fitText(a.Gaps)
	}
	if a.Course != nil {
		s += ", p of the rate " + fitText(a.Course)
	}
	if a.Stretches > 1 {
		s += fmt.Sprintf("; %d blocks joined", a.Stretches)
	}
	return s
}

func bandText(b *Band) string {
	if b == nil {
		return missing
	}
	s := fixed(b.Value, 3)
	switch {
	case b.Lo != nil:
		s += " (99 % band " + fixed(*b.Lo, 3) + " to " + fixed(*b.Hi, 3) + ")"
	case b.Planned != nil:
		s += " (planned " + fixed(*b.Planned, 3) + ")"
	}
	return s
}

func fitText(f *Fit) string {
	if f == nil {
		return missing
	}
	return shareText(f.P)
}

package record

import (
	"sort"
	"time"
)

// Process is the arrival process that an open loop was to send: what the actual
// send times are tested against.
type Process struct {
	Kind  string      `json:"kind"`            // poisson, gamma or weibull
	Shape float64     `json:"shape,omitempty"` // of gamma and Weibull gaps
	Rate  []RatePiece `json:"rate"`            // the planned rate over the schedule, from its start on
}

// RatePiece is a stretch of a planned rate, up to the next one: a straight line.
type RatePiece struct {
	At       time.Duration `json:"at_ns"`    // its start on the schedule
	Expected float64       `json:"expected"` // requests expected before it
	Rate     float64       `json:"per_s"`    // at its start
	Slope    float64       `json:"per_s2,omitempty"`
}

// Expected returns the number of requests expected from the schedule's start to t:
// the integral of the rate.
func (p *Process) Expected(t time.Duration) float64 {
	i := sort.Search(len(p.Rate), func(i int) bool { return p.Rate[i].At > t }) - 1
	if i < 0 {
		return 0
	}
	r := p.Rate[i]
	sec := (t - r.At).Seconds()
	return r.Expected + (r.Rate+r.Slope*sec/2)*sec
}

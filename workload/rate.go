package workload

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/assay-llm/assay/config"
)

// Rate is the rate of an open loop over time: Fixed, unless one of the shapes is
// set. In a suite it is a bare rate or a mapping of the shape's name.
type Rate struct {
	Fixed   config.Rate
	Ramp    *Ramp    `yaml:"ramp" doc:"a rate that changes linearly over the duration"`
	Stairs  *Stairs  `yaml:"stairs" doc:"a rate that goes up or down in steps"`
	Bursts  *Bursts  `yaml:"bursts" doc:"a rate that is switched on and off"`
	Pulses  *Pulses  `yaml:"pulses" doc:"many requests at one instant, again and again"`
	Diurnal *Diurnal `yaml:"diurnal" doc:"a rate that goes up and down like the days"`
	MMPP    *MMPP    `yaml:"mmpp" doc:"a rate that jumps between states at random"`
}

// shape is the course of a rate over time. Its pieces are straight lines whose
// integral and its inverse have closed forms.
type shape interface {
	// walk returns an iterator over the pieces from the start on; states is the
	// stream of a shape that has random pieces. A shape without end repeats.
	walk(end float64, states Stream) func() (piece, bool)
	// mean is the mean rate over the first end nanoseconds, of a random shape the
	// expected one in the long run.
	mean(end float64) float64
	// pace is the mean length of a piece in nanoseconds, +Inf if they are few.
	pace() float64
	String() string
}

// piece is a stretch of a rate.
type piece struct {
	length      float64 // nanoseconds; +Inf: without end
	rate, slope float64 // rate at its start, per second; slope in 1/s²
	pulse       float64 // requests at its very start
	window      int     // of a client's traffic, which of its windows
}

// shape returns the shape of the rate. That of a fixed rate is the rate.
func (r *Rate) shape() shape {
	if all := r.shapes(); len(all) > 0 {
		return all[0].shape
	}
	return fixedRate(r.Fixed)
}

type namedShape struct {
	name  string
	shape shape
}

// shapes lists the shapes that are set.
func (r *Rate) shapes() (all []namedShape) {
	add := func(name string, set bool, s shape) {
		if set {
			all = append(all, namedShape{name, s})
		}
	}
	add("ramp", r.Ramp != nil, r.Ramp)
	add("stairs", r.Stairs != nil, r.Stairs)
	add("bursts", r.Bursts != nil, r.Bursts)
	add("pulses", r.Pulses != nil, r.Pulses)
	add("diurnal", r.Diurnal != nil, r.Diurnal)
	add("mmpp", r.MMPP != nil, r.MMPP)
	return all
}

// String describes the rate: "8/s", "ramp 1/s to 10/s", "stairs 1/s to 10/s by 1/s every 30s".
func (r *Rate) String() string { return r.shape().String() }

const shapeNames = "ramp, stairs, bursts, pulses, diurnal or mmpp"

// DecodeConfig reads a bare rate or a mapping of one shape.
func (r *Rate) DecodeConfig(n *config.Node) {
	*r = Rate{}
	if !n.IsMapping() {
		n.Decode(&r.Fixed)
		return
	}
	type plain Rate // without DecodeConfig
	if n.Decode((*plain)(r)) && len(r.shapes()) != 1 {
		n.Fault("wants a rate or one shape: "+shapeNames, "write one of them, such as 8/s")
	}
}

// MarshalYAML returns the form that DecodeConfig reads.
func (r Rate) MarshalYAML() (any, error) {
	if len(r.shapes()) == 0 {
		return r.Fixed, nil
	}
	type plain Rate
	return plain(r), nil
}

// ConfigSchema describes the forms of a rate.
func (Rate) ConfigSchema() map[string]any {
	return map[string]any{"oneOf": []any{
		config.SchemaOf(config.Rate(0)),
		only("ramp", config.SchemaOf(Ramp{})),
		only("stairs", config.SchemaOf(Stairs{})),
		only("bursts", config.SchemaOf(Bursts{})),
		only("pulses", config.SchemaOf(Pulses{})),
		only("diurnal", config.SchemaOf(Diurnal{})),
		only("mmpp", config.SchemaOf(MMPP{})),
	}}
}

// endless yields pieces one after the other, again and again.
func endless(pieces ...piece) func() (piece, bool) {
	k := -1
	return func() (piece, bool) {
		k = (k + 1) % len(pieces)
		return pieces[k], true
	}
}

// once yields pieces one after the other.
func once(n int, at func(k int) piece) func() (piece, bool) {
	k := -1
	return func() (piece, bool) {
		if k++; k >= n {
			return piece{}, false
		}
		return at(k), true
	}
}

// fixedRate is the shape of a rate that does not change.
type fixedRate config.Rate

func (r fixedRate) walk(float64, Stream) func() (piece, bool) {
	return once(1, func(int) piece { return piece{length: math.Inf(1), rate: float64(r)} })
}
func (r fixedRate) mean(float64) float64 { return float64(r) }
func (r fixedRate) pace() float64        { return math.Inf(1) }
func (r fixedRate) String() string       { return config.Rate(r).String() }

// Ramp is a rate that changes linearly from From at the start to To at the end.
type Ramp struct {
	From config.Rate `yaml:"from,required" doc:"rate at the start"`
	To   config.Rate `yaml:"to,required" doc:"rate at the end of for"`
}

func (r *Ramp) walk(end float64, _ Stream) func() (piece, bool) {
	from, to := float64(r.From), float64(r.To)
	return once(1, func(int) piece { return piece{length: end, rate: from, slope: float64(to-from) / (end / 1e9)} })
}
func (r *Ramp) mean(float64) float64 { return float64(r.From)/2 + float64(r.To)/2 }
func (r *Ramp) pace() float64        { return math.Inf(1) }
func (r *Ramp) String() string       { return fmt.Sprintf("ramp %v to %v", r.From, r.To) }

// Stairs is a rate that starts at From, moves by Step towards To at the end of
// every Every, and stays at To.
type Stairs struct {
	From  config.Rate     `yaml:"from,required" doc:"rate of the first step"`
	Step  config.Rate     `yaml:"step,required" doc:"difference between steps; always positive, also downwards"`
	Every config.Duration `yaml:"every,required" doc:"length of a step"`
	To    config.Rate     `yaml:"to,required" doc:"rate of the last step, which lasts to the end"`
}

// maxSteps bounds the steps of stairs.
const maxSteps = 10_000

// steps returns the number of steps before the last rate is reached.
func (s *Stairs) steps() int {
	n := math.Ceil(math.Abs(float64(s.To-s.From))/float64(s.Step) - 1e-9)
	if !(n <= maxSteps) { // also NaN and ±Inf
		return maxSteps + 1
	}
	return int(n)
}

// length returns how long the steps take, the last one included.
func (s *Stairs) length() config.Duration { return config.Duration(s.steps()+1) * s.Every }

// rate returns the rate of step k, k < steps().
func (s *Stairs) rate(k int) float64 {
	step := float64(s.Step)
	if s.To < s.From {
		step = -step
	}
	return float64(s.From) + float64(float64(k)*step)
}

func (s *Stairs) walk(float64, Stream) func() (piece, bool) {
	n := s.steps()
	return once(n+1, func(k int) piece {
		if k == n {
			return piece{length: math.Inf(1), rate: float64(s.To)}
		}
		return piece{length: float64(s.Every), rate: s.rate(k)}
	})
}

func (s *Stairs) mean(end float64) float64 {
	return expected(s.walk(end, Stream{}), end)
}
func (s *Stairs) pace() float64 { return math.Inf(1) }
func (s *Stairs) String() string {
	return fmt.Sprintf("stairs %v to %v by %v every %v", s.From, s.To, s.Step, s.Every)
}

// expected is the mean rate of pieces over the first end nanoseconds; of pieces
// without end that of the last.
func expected(next func() (piece, bool), end float64) float64 {
	sum, at := 0.0, 0.0
	for at < end {
		p, ok := next()
		if !ok {
			break
		}
		if math.IsInf(end, 1) && math.IsInf(p.length, 1) {
			return p.rate
		}
		length := min(p.length, end-at)
		sum += segment{piece: p}.inside(length)
		at += length
	}
	return sum / (end / 1e9)
}

// Bursts is a rate that is On for a while and Off for a while, starting with on.
type Bursts struct {
	Rate config.Rate     `yaml:"rate,required" doc:"rate while on"`
	Base config.Rate     `yaml:"base" doc:"rate while off; 0/s if left out"`
	On   config.Duration `yaml:"on,required" doc:"how long a burst lasts; the first one starts at once"`
	Off  config.Duration `yaml:"off,required" doc:"how long the quiet after it lasts"`
}

func (b *Bursts) walk(float64, Stream) func() (piece, bool) {
	return endless(piece{length: float64(b.On), rate: float64(b.Rate)}, piece{length: float64(b.Off), rate: float64(b.Base)})
}

func (b *Bursts) mean(end float64) float64 {
	period := float64(b.On) + float64(b.Off)
	if math.IsInf(end, 1) {
		return (float64(b.Rate)*float64(b.On) + float64(b.Base)*float64(b.Off)) / period
	}
	whole := math.Floor(end / period)
	on := whole*float64(b.On) + min(end-whole*period, float64(b.On))
	return (float64(b.Rate)*on + float64(b.Base)*(end-on)) / end
}
func (b *Bursts) pace() float64 { return (float64(b.On) + float64(b.Off)) / 2 }
func (b *Bursts) String() string {
	s := fmt.Sprintf("bursts of %v for %v, ", b.Rate, b.On)
	if b.Base > 0 {
		return s + fmt.Sprintf("then %v for %v", b.Base, b.Off)
	}
	return s + fmt.Sprintf("then nothing for %v", b.Off)
}

// Pulses are Requests at one instant, the first at the start and then every
// Every, over a rate of Base.
type Pulses struct {
	Requests config.Count    `yaml:"requests,required" doc:"requests that are due at the same instant; with process poisson their mean number"`
	Every    config.Duration `yaml:"every,required" doc:"time from one pulse to the next; the first one is at the start"`
	Base     config.Rate     `yaml:"base" doc:"rate of the requests between pulses; 0/s if left out"`
}

func (p *Pulses) walk(float64, Stream) func() (piece, bool) {
	return endless(piece{length: float64(p.Every), rate: float64(p.Base), pulse: float64(p.Requests)})
}

func (p *Pulses) mean(end float64) float64 {
	if math.IsInf(end, 1) {
		return float64(p.Base) + float64(p.Requests)/(float64(p.Every)/1e9)
	}
	return float64(p.Base) + float64(p.Requests)*math.Ceil(end/float64(p.Every))/(end/1e9)
}
func (p *Pulses) pace() float64 { return float64(p.Every) }
func (p *Pulses) String() string {
	s := fmt.Sprintf("pulses of %d every %v", int64(p.Requests), p.Every)
	if p.Base > 0 {
		s += fmt.Sprintf(" over %v", p.Base)
	}
	return s
}

// Diurnal is a rate with a period: a sinusoid around Mean, or straight lines
// through Rates, which are evenly spaced over the period and start again after
// the last.
//
// Note: the sinusoid is drawn by 96 straight lines a period (a quarter of an hour
// each, of a day). Its mean over a period is exact, its values within 0.06 % of
// the swing; in return the inverse of its integral has a closed form.
type Diurnal struct {
	Mean   config.Rate     `yaml:"mean" doc:"mean rate of a sinusoid; goes with swing"`
	Swing  config.Percent  `yaml:"swing" doc:"how far the sinusoid goes up and down from its mean, at most 100%"`
	Peak   config.Duration `yaml:"peak" doc:"where in the period the sinusoid is highest; half of the period if left out"`
	Rates  []config.Rate   `yaml:"rates" doc:"rates at evenly spaced instants of the period, such as 24 hours, instead of a sinusoid"`
	Period config.Duration `yaml:"period" doc:"length of the period; 24h if left out. 24m plays a day at sixty times its speed"`
	Start  config.Duration `yaml:"start" doc:"where in the period the workload starts; 0s if left out"`
}

const sinusoidPieces = 96

func (d *Diurnal) period() float64 {
	if d.Period > 0 {
		return float64(d.Period)
	}
	return float64(24 * time.Hour)
}

// points returns the rates at evenly spaced instants of the period.
func (d *Diurnal) points() []float64 {
	if len(d.Rates) > 0 {
		points := make([]float64, len(d.Rates))
		for i, r := range d.Rates {
			points[i] = float64(r)
		}
		return points
	}
	peak := 0.5
	if d.Peak > 0 {
		peak = float64(d.Peak) / d.period()
	}
	points := make([]float64, sinusoidPieces)
	for i := range points {
		up := steady(math.Cos(2 * math.Pi * (float64(i)/sinusoidPieces - peak)))
		points[i] = max(0, float64(d.Mean)*(1+float64(float64(d.Swing)*up)))
	}
	return points
}

// steady drops the last bits of a number of the order of 1, in which processors
// differ.
func steady(x float64) float64 { return math.Round(x*(1<<40)) / (1 << 40) }

func (d *Diurnal) walk(float64, Stream) func() (piece, bool) {
	points := d.points()
	length := d.period() / float64(len(points))
	line := func(k int) piece {
		from, to := points[k], points[(k+1)%len(points)]
		return piece{length: length, rate: from, slope: float64(to-from) / (length / 1e9)}
	}
	k := min(int(float64(d.Start)/length), len(points)-1)
	first := line(k)
	if gone := max(0, float64(d.Start)-float64(float64(k)*length)); gone > 0 {
		first.rate = max(0, first.rate+float64(first.slope*(gone/1e9)))
		first.length = max(0, length-gone)
	}
	started := false
	return func() (piece, bool) {
		if !started {
			started = true
			return first, true
		}
		k = (k + 1) % len(points)
		return line(k), true
	}
}

func (d *Diurnal) mean(end float64) float64 {
	if math.IsInf(end, 1) || end/d.period() > 1000 {
		sum := 0.0
		for _, p := range d.points() {
			sum += p
		}
		return sum / float64(len(d.points()))
	}
	return expected(d.walk(end, Stream{}), end)
}

func (d *Diurnal) pace() float64 {
	return d.period() / float64(max(len(d.Rates), 1))
}

func (d *Diurnal) String() string {
	period := config.Duration(d.period())
	if len(d.Rates) > 0 {
		return fmt.Sprintf("diurnal, %d rates over %v", len(d.Rates), period)
	}
	return fmt.Sprintf("diurnal %v ± %v over %v", d.Mean, d.Swing, period)
}

// MMPP is a rate that stays in a state for a random, exponential time and then
// jumps to one of the other states, all alike. With Poisson arrivals it is a
// Markov-modulated Poisson process. The first state is drawn by the share of time
// that each has in the long run.
type MMPP struct {
	States []State `yaml:"states,required" doc:"two states or more: [{rate: 2/s, dwell: 30s}, {rate: 40/s, dwell: 5s}]"`
}

// State is one state of an MMPP.
type State struct {
	Rate  config.Rate     `yaml:"rate,required" doc:"rate in this state"`
	Dwell config.Duration `yaml:"dwell,required" doc:"mean time in this state"`
}

func (m *MMPP) walk(_ float64, states Stream) func() (piece, bool) {
	total := 0.0
	for _, s := range m.States {
		total += float64(s.Dwell)
	}
	at, k := 0, int64(-1)
	return func() (piece, bool) {
		k++
		// Number 0 of sequence k is the time, number 1 the jump.
		source := states.At(k)
		time, jump := midpoint(source.Uint64()), midpoint(source.Uint64())
		if k == 0 {
			for jump *= total; at < len(m.States)-1 && jump >= float64(m.States[at].Dwell); at++ {
				jump -= float64(m.States[at].Dwell)
			}
		} else {
			next := min(int(jump*float64(len(m.States)-1)), len(m.States)-2)
			if next >= at {
				next++
			}
			at = next
		}
		s := m.States[at]
		return piece{length: math.Round(float64(-ln(time) * float64(s.Dwell))), rate: float64(s.Rate)}, true
	}
}

// mean holds since a jump to any other state is as likely: all states are
// visited alike often.
func (m *MMPP) mean(float64) float64 {
	sum, total := 0.0, 0.0
	for _, s := range m.States {
		sum += float64(s.Rate) * float64(s.Dwell)
		total += float64(s.Dwell)
	}
	return sum / total
}

func (m *MMPP) pace() float64 {
	total := 0.0
	for _, s := range m.States {
		total += float64(s.Dwell)
	}
	return total / float64(len(m.States))
}

func (m *MMPP) String() string {
	var parts []string
	for _, s := range m.States {
		parts = append(parts, fmt.Sprintf("%v for %v", s.Rate, s.Dwell))
	}
	if len(parts) > 4 {
		parts = append(parts[:3], fmt.Sprintf("%d more", len(parts)-3))
	}
	return "states of " + strings.Join(parts, ", ")
}

// stateful reports whether the shape is random itself.
func (r *Rate) stateful() bool { return r.MMPP != nil }

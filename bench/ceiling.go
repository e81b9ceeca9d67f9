package bench

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/bits"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/workload"
)

// Calibrator finds the ceiling of this host's client for a shape: the highest rate
// at which the client's own certificate calls it fit, before a server that
// computes nothing. It drives the client of real runs, with real records and a
// real journal.
type Calibrator struct {
	// Null returns a process that serves load.ServeNull on loopback, writes its
	// URL as the first line, and ends with its standard input. It is another
	// process so that its CPU time is not the client's.
	Null  func(ctx context.Context, shape record.Shape) *exec.Cmd
	Cache string                        // folder that keeps ceilings; "": none are kept
	Dir   string                        // where journals are written
	Say   func(format string, a ...any) // how it goes; nil: to nobody
	Quick time.Duration                 // after this time a measurement is not repeated; 0: 12 s
}

const (
	wholeAnswer = 250 * time.Millisecond // how long an answer takes, at most by choice
	leastGap    = 2 * time.Millisecond   // shorter gaps would come in one read, and cheaper
	mostGap     = 20 * time.Millisecond
	mostEvents  = 128  // of a measured answer
	someEvents  = 256  // of an answer whose length the server decides
	eventBytes  = 4    // of text: about a token
	shotsAsked  = 64   // of a plan, to know its shape
	topRate     = 50e3 // requests per second that are tried, …
	topEvents   = 1e6  // … and events: a client that carries them is near no end
)

// ShapeOf returns the shape of a plan, rounded up: events to a power of two, a
// prompt's bytes to one of four, so that plans that differ little share a ceiling.
func ShapeOf(p *workload.Plan) record.Shape {
	var prompts, tokens, n int
	s := record.Shape{EventBytes: eventBytes}
	for shot := range p.All() {
		s.Stream = s.Stream || shot.Stream
		prompts += len(shot.Prompt)
		for i := range shot.Messages {
			prompts += len(shot.Messages[i].Content)
		}
		k := int(shot.MaxTokens)
		if k == 0 {
			k = someEvents
		}
		tokens += k
		if n++; n == shotsAsked {
			break
		}
	}
	s.Events, s.PromptBytes = powerOf(1, tokens/max(n, 1)), powerOf(2, prompts/max(n, 1))
	return paced(s)
}

// DefaultShape is that of a short chat.
func DefaultShape() record.Shape {
	return paced(record.Shape{Stream: true, Events: 64, EventBytes: eventBytes, PromptBytes: 1024})
}

// paced fills in how fast the null server sends.
func paced(s record.Shape) record.Shape {
	s.Gap = 0
	if s.Stream {
		s.Gap = min(max(wholeAnswer/time.Duration(s.Events), leastGap), mostGap)
	}
	return s
}

// powerOf returns the least power of two, in steps of so many bits, that is n or more.
func powerOf(step, n int) int {
	length := bits.Len(uint(max(n, 1) - 1))
	return 1 << ((length + step - 1) / step * step)
}

// measurable returns the shape that is sent for s: of a long answer the first
// part, whose events cost what the others do. Rates of requests then have to be
// divided by scale.
func measurable(s record.Shape) (_ record.Shape, scale float64) {
	if !s.Stream || s.Events <= mostEvents {
		return s, 1
	}
	scale = float64(s.Events) / mostEvents
	s.Events = mostEvents
	return paced(s), scale
}

const defaultQuick = 12 * time.Second

// Measure finds the ceiling for a shape, three times if there is time (about
// fifteen seconds in all), and keeps it.
func (c *Calibrator) Measure(ctx context.Context, shape record.Shape) (*record.Ceiling, error) {
	return c.with(ctx, shape, func(g *rig, scale float64) (*record.Ceiling, error) {
		begin := time.Now()
		s := c.search(ctx, g, scale)
		var found []climb
		for range 3 {
			one, err := s.climb(found)
			if err != nil {
				return nil, err
			}
			found = append(found, one)
			if time.Since(begin) > cmp.Or(c.Quick, defaultQuick) {
				break
			}
		}
		return s.sum(found), nil
	})
}

// Probe finds out whether the ceiling lies at a rate or above, in a second or two
// if so, and keeps what it found; else it measures the ceiling.
func (c *Calibrator) Probe(ctx context.Context, shape record.Shape, rate float64) (*record.Ceiling, error) {
	return c.with(ctx, shape, func(g *rig, scale float64) (*record.Ceiling, error) {
		return c.search(ctx, g, scale).probe(rate)
	})
}

func (c *Calibrator) search(ctx context.Context, g *rig, scale float64) *search {
	most := topRate
	if g.shape.Stream {
		most = min(most, topEvents/float64(g.shape.Events))
	}
	return &search{
		first: firstRate(g.shape), most: most, scale: scale, say: c.say,
		try: func(rate float64) (trial, error) { return g.try(ctx, rate, sendFor) },
	}
}

func (c *Calibrator) say(format string, a ...any) {
	if c.Say != nil {
		c.Say(format, a...)
	}
}

// with sets the rig up, warms it, has a ceiling found and keeps it.
func (c *Calibrator) with(ctx context.Context, shape record.Shape, find func(*rig, float64) (*record.Ceiling, error)) (_ *record.Ceiling, err error) {
	begin := time.Now()
	sent, scale := measurable(shape)
	g, err := newRig(ctx, c.Null, sent, c.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	if _, err := g.try(ctx, firstRate(sent), sendFor/2); err != nil { // pages, connections, caches
		return nil, err
	}
	ceiling, err := find(g, scale)
	if err != nil {
		return nil, err
	}
	ceiling.Shape, ceiling.At, ceiling.Took, ceiling.Cores = shape, begin.UTC().Truncate(time.Second), time.Since(begin), runtime.GOMAXPROCS(0)
	if c.Cache != "" && !disturbed(ceiling) {
		if err := c.Keep(ceiling); err != nil {
			c.say("the ceiling is not kept for later: %v", err)
		}
	}
	return ceiling, nil
}

// firstRate is a rate that any client should carry.
func firstRate(s record.Shape) float64 {
	return math.Round(max(4000/float64(s.Events+20), 10))
}

// search looks for a ceiling by trials.
type search struct {
	try   func(rate float64) (trial, error)
	first float64 // the rate to begin with
	most  float64 // the rate to end with
	scale float64
	say   func(format string, a ...any)
}

// climb is the end of one search: the highest rate that was fit, and the next
// higher one, which was not; its rate is 0 if none was.
type climb struct {
	fit, unfit trial
	trials     []trial
}

// sure tries a rate again if the client is unfit, and once more if the CPUs were
// idle meanwhile: another process may have taken them for a moment.
func (s *search) sure(rate float64) (t trial, err error) {
	for try := range 3 {
		if t, err = s.try(rate); err != nil {
			return t, err
		}
		if t.fit || try > 0 && !idle(t.client, t.server, runtime.GOMAXPROCS(0)) {
			break
		}
	}
	if t.fit {
		s.say("%.0f requests/s: fit", rate/s.scale)
	} else {
		s.say("%.0f requests/s: unfit: %s", rate/s.scale, t.reason)
	}
	return t, nil
}

// probe tries a rate at once, unless it is beyond reason: a client that is not fit
// for it, or cannot be asked, has its ceiling found.
func (s *search) probe(rate float64) (*record.Ceiling, error) {
	if rate *= s.scale; rate <= s.most {
		t, err := s.sure(rate)
		if err != nil {
			return nil, err
		}
		if t.fit {
			return s.sum([]climb{{fit: t}}), nil
		}
	}
	one, err := s.climb(nil)
	if err != nil {
		return nil, err
	}
	return s.sum([]climb{one}), nil
}

// climb finds the ceiling: by doubling and halving the first time, and after that
// in steps around where it was before, small ones at first.
func (s *search) climb(before []climb) (climb, error) {
	rate, step, near := s.first, 2.0, 1.2
	if n := len(before); n > 0 {
		rate, step = before[n-1].fit.rate, 1.15
	}
	var c climb
	look := func() error {
		t, err := s.sure(rate)
		if err != nil {
			return err
		}
		if c.trials = append(c.trials, t); len(c.trials) > 2 {
			step = min(step*step, 2)
		}
		if t.fit {
			c.fit = t
		} else {
			c.unfit = t
		}
		return nil
	}
	for c.fit.rate == 0 || c.unfit.rate == 0 {
		if err := look(); err != nil {
			return c, err
		}
		if c.fit.rate > 0 && c.unfit.rate == 0 {
			if rate *= step; rate > s.most {
				return c, nil
			}
		} else if c.fit.rate == 0 {
			if rate /= step; rate < 1 {
				return c, &LimitError{
					What: "the client is unfit on this host at any rate: " + c.unfit.reason,
					Hint: "use an idle machine or more cores; assay doctor says more",
				}
			}
		}
	}
	for c.unfit.rate > c.fit.rate*near {
		rate = math.Sqrt(c.fit.rate * c.unfit.rate)
		if err := look(); err != nil {
			return c, err
		}
	}
	return c, nil
}

// sum makes one ceiling of the repeats.
func (s *search) sum(found []climb) *record.Ceiling {
	slices.SortFunc(found, func(a, b climb) int { return cmp.Compare(a.fit.rate, b.fit.rate) })
	middle := found[(len(found)-1)/2]
	c := &record.Ceiling{
		Requests: middle.fit.rate / s.scale, Low: found[0].fit.rate / s.scale, High: found[len(found)-1].fit.rate / s.scale,
		Events: middle.fit.events, Streams: middle.fit.streams, EndedBy: middle.unfit.reason, AtLeast: middle.unfit.rate == 0,
		Repeats: len(found), Client: middle.unfit.client, Server: middle.unfit.server, Stamps: middle.fit.stamps,
	}
	if c.AtLeast {
		c.Client, c.Server = middle.fit.client, middle.fit.server
	}
	for _, one := range found {
		for _, t := range one.trials {
			if t.fit && t.rate <= middle.fit.rate/2 && (c.Overhead == nil || t.over.Rate > c.Overhead.Rate) {
				o := t.over
				c.Overhead = &o
			}
		}
	}
	if c.Overhead == nil && c.AtLeast { // twice what is planned, and fit
		o := middle.fit.over
		c.Overhead = &o
	}
	if c.Overhead != nil {
		c.Overhead.Rate /= s.scale
		if c.Overhead.CPU >= 0 {
			c.Overhead.CPU = time.Duration(float64(c.Overhead.CPU) * s.scale)
		}
	}
	return c
}

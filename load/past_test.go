package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/workload"
)

// mortal runs a plan that is killed again and again, and keeps what a run directory does.
type mortal struct {
	t       *testing.T
	plan    *workload.Plan
	blocks  int
	epoch   time.Time
	kept    map[int64]*record.Record // final records by shot
	cut     map[int64]*record.Record // of those that were stopped
	sent    map[int64]int            // how often the server saw a shot
	windows []record.Window
	deaths  []record.Instant // in them
	over    []bool           // blocks
}

// talker is a sender whose answers have a text, so that sessions go on.
type talker func(rec *record.Record) time.Duration

func (s talker) Do(ctx context.Context, epoch time.Time, req *llm.Request, rec *record.Record) llm.Answer {
	sender(s).Do(ctx, epoch, req, rec)
	return llm.Answer{Text: "yes"}
}

var errKilled = errors.New("killed")

// live runs until the server has answered so many requests, then dies: what ends later
// leaves no record, or a cut one if the run is only interrupted. It reports whether the
// plan is done.
func (m *mortal) live(answers int, interrupted bool) (done bool) {
	ctx, kill := context.WithCancelCause(m.t.Context())
	defer kill(nil)
	var mu sync.Mutex
	var died time.Time
	past := m.past(interrupted)
	serve := talker(func(r *record.Record) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		m.sent[r.Shot]++
		return time.Duration(1+r.Shot*7919%300) * time.Millisecond
	})
	keep := func(r *record.Record, _ llm.Answer) error {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case !died.IsZero() && !interrupted:
		case r.Outcome == record.Interrupted:
			m.cut[r.Shot] = r
		default:
			if m.kept[r.Shot] != nil {
				m.t.Errorf("shot %d has two final records", r.Shot)
			}
			m.kept[r.Shot] = r
		}
		if answers--; answers == 0 {
			died = time.Now()
			kill(errKilled)
		}
		return nil
	}
	d, err := New(Config{Plan: m.plan, Variant: "v", Client: serve, Sink: keep, Virtual: true, Epoch: m.epoch, Blocks: m.blocks, Drain: time.Millisecond})
	if err != nil {
		m.t.Fatal(err)
	}
	defer d.Close()
	if past != nil {
		whole := d.Seek(*past)
		for i := range m.windows {
			if w := &m.windows[i]; past.Window.Start.Set() && w.Start == past.Window.Start && w.Block == past.Block {
				w.End = max(w.Start, whole)
			}
		}
	}
	for i := range m.blocks {
		if m.over[i] {
			continue
		}
		w := d.Opening(i)
		got, err := d.Block(ctx, i)
		if got.From != w.From || got.Start != w.Start {
			m.t.Errorf("the window opens at %+v, Opening said %+v", got, w)
		}
		if err != nil {
			if !interrupted {
				got.End = max(got.Start, record.At(died.Sub(m.epoch))) // the last sign of life
			}
			m.windows, m.deaths = append(m.windows, got), append(m.deaths, record.At(died.Sub(m.epoch)))
			return false
		}
		m.over[i] = true
		m.windows, m.deaths = append(m.windows, got), append(m.deaths, 0)
	}
	return true
}

// past is what a run that goes on would find.
func (m *mortal) past(interrupted bool) *Past {
	if len(m.windows) == 0 {
		return nil
	}
	p := &Past{Ended: make(map[int64]Ended)}
	for m.over[p.Block] {
		p.Block++
	}
	for i, w := range m.windows {
		if w.Block != p.Block {
			p.Unasked += unasked(w)
		} else {
			m.windows[i].Unasked = nil
			p.Next(w, m.deaths[i])
		}
	}
	for shot, r := range m.cut {
		p.Ended[shot] = Ended{At: r.EOF, Cut: true}
	}
	for shot, r := range m.kept {
		p.Ended[shot] = Ended{At: r.EOF}
	}
	time.Sleep(time.Hour) // the gap, in a bubble
	return p
}

func unasked(w record.Window) int64 {
	if u := w.Unasked; u != nil {
		return u.NoAnswer + u.Context + u.Over
	}
	return 0
}

// TestSeekGoesOnWhereTheRunStopped kills runs of every kind at random points, and wants
// each shot once, marked where it was sent twice, and what remains as it was planned.
func TestSeekGoesOnWhereTheRunStopped(t *testing.T) {
	for name, yaml := range map[string]string{
		"open by time":    "{arrivals: {poisson: 40/s}, for: 6s, prompts: {synthetic: 5}, output: 1}",
		"open by count":   "{arrivals: {gamma: {rate: 40/s, shape: 0.5}}, requests: 240, prompts: {synthetic: 5}, output: 1}",
		"closed by count": "{arrivals: {concurrency: 5, think: 20ms}, requests: 240, prompts: {synthetic: 5}, output: 1}",
		"open sessions":   "{arrivals: {poisson: 20/s}, requests: 240, prompts: {synthetic: 5}, output: 1, sessions: {turns: {uniform: {min: 1, max: 6}}, think: 200ms}}",
		"users' sessions": "{arrivals: {concurrency: 5}, requests: 240, prompts: {synthetic: 5}, output: 1, sessions: {turns: {uniform: {min: 1, max: 6}}, think: 50ms}}",
		"closed by time":  "{arrivals: {concurrency: 5, think: 20ms}, for: 6s, prompts: {synthetic: 5}, output: 1}",
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(t, yaml)
			for seed := range uint64(40) {
				synctest.Test(t, func(t *testing.T) {
					rng := rand.New(rand.NewPCG(seed, 5))
					m := &mortal{
						t: t, plan: p, blocks: 1 + int(seed%3), epoch: time.Now(),
						kept: map[int64]*record.Record{}, cut: map[int64]*record.Record{}, sent: map[int64]int{},
					}
					m.over = make([]bool, m.blocks)
					lives := 1
					for !m.live(1+rng.IntN(150), seed%2 == 0) {
						if lives++; lives > 500 {
							t.Fatal("it never comes to an end")
						}
					}
					m.check(lives)
					if t.Failed() {
						t.Fatalf("seed %d, %d lives", seed, lives)
					}
				})
			}
		})
	}
}

func (m *mortal) check(lives int) {
	t := m.t
	n, sessions := int64(0), m.plan.Spec().Sessions != nil
	left := int64(0)
	for _, w := range m.windows {
		left += unasked(w)
	}
	for shot := range m.cut {
		if m.kept[shot] == nil {
			left++
		}
	}
	if all := int64(len(m.kept)) + left; m.plan.Planned() >= 0 && all != m.plan.Planned() {
		t.Errorf("%d records and %d turns not asked of %d planned", len(m.kept), left, m.plan.Planned())
	}
	for shot := range m.plan.All() {
		r := m.kept[shot.Index]
		if r == nil {
			if sessions {
				continue
			}
			if m.plan.Planned() >= 0 {
				t.Errorf("shot %d has no record", shot.Index)
				continue
			}
			break
		}
		n++
		if again := r.Flags&record.FlagReissued != 0; m.sent[shot.Index] > 1 && !again {
			t.Errorf("shot %d was sent %d times and is not marked", shot.Index, m.sent[shot.Index])
		}
	}
	if int64(len(m.kept)) < n || lives == 1 && n == 0 {
		t.Errorf("%d records, %d of the plan", len(m.kept), n)
	}
	var total time.Duration
	for i, w := range m.windows {
		d, ok := w.End.Sub(w.Start)
		if !ok || d < 0 || i > 0 && w.Start < m.windows[i-1].End {
			t.Errorf("window %d: %+v %+v", i, w, m.windows[max(0, i-1)])
		}
		total += d
		if m.plan.Open() {
			m.checkWindow(w)
		}
	}
	if length := time.Duration(m.plan.Spec().For); !m.plan.Open() && length > 0 && total != length {
		t.Errorf("the users were measured for %v, want %v", total, length)
	}
}

// checkWindow wants the shots of a window at the times of the plan.
func (m *mortal) checkWindow(w record.Window) {
	for shot := range m.plan.All() {
		r := m.kept[shot.Index]
		if r == nil || r.Due < w.Start || r.Due >= w.End || shot.Turn > 0 {
			continue
		}
		if at, _ := r.Due.Sub(w.Start); at != shot.Due-w.From {
			m.t.Errorf("shot %d is due %v behind the start of %+v, want %v", shot.Index, at, w, shot.Due-w.From)
		}
	}
}

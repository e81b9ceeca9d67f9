package load

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/workload"
)

// sender answers each request after a time of its choice, as a server would
// that can take any load.
type sender func(rec *record.Record) time.Duration

func (s sender) Do(ctx context.Context, epoch time.Time, _ *llm.Request, rec *record.Record) llm.Answer {
	now := func() record.Instant { return record.At(time.Since(epoch)) }
	rec.Send, rec.Sent, rec.Reused = now(), now(), true
	timer := time.NewTimer(s(rec))
	defer timer.Stop()
	select {
	case <-timer.C:
		rec.Outcome = record.OK
		rec.Events = []record.Event{{At: now(), Kind: record.KindContent, Lag: -1}}
	case <-ctx.Done():
		rec.Outcome = record.Interrupted
	}
	rec.EOF = now()
	return llm.Answer{}
}

func takes(d time.Duration) sender { return func(*record.Record) time.Duration { return d } }

// sink keeps records.
type sink struct {
	mu   sync.Mutex
	recs []*record.Record
}

func (s *sink) add(r *record.Record, _ llm.Answer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recs = append(s.recs, r)
	return nil
}

// sorted returns the records in order of their shots.
func (s *sink) sorted() []*record.Record {
	slices.SortFunc(s.recs, func(a, b *record.Record) int { return cmp.Compare(a.Shot, b.Shot) })
	return s.recs
}

func plan(t *testing.T, yaml string) *workload.Plan {
	t.Helper()
	var spec workload.Spec
	if err := config.Decode("w.yaml", []byte(yaml), &spec); err != nil {
		t.Fatal(err)
	}
	p, err := workload.New("w", spec, nil, 7, "salt")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// drive runs every block of a plan in virtual time, and returns the records in
// order of their shots and the windows. It must be called in a bubble.
func drive(t *testing.T, cfg Config) ([]*record.Record, []record.Window) {
	t.Helper()
	var kept sink
	cfg.Variant, cfg.Virtual, cfg.Epoch = "v", true, time.Now()
	if cfg.Sink == nil {
		cfg.Sink = kept.add
	}
	d, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var windows []record.Window
	for i := range max(cfg.Blocks, 1) {
		w, err := d.Block(t.Context(), i)
		if err != nil {
			t.Fatalf("block %d: %v", i, err)
		}
		windows = append(windows, w)
	}
	return kept.sorted(), windows
}

func offset(t *testing.T, at record.Instant) time.Duration {
	t.Helper()
	d, ok := at.Offset()
	if !ok {
		t.Error("an instant that should have happened did not")
	}
	return d
}

func TestOpenLoopSendsWhenTheScheduleSays(t *testing.T) {
	for _, arrivals := range []string{"constant: 50/s", "poisson: 50/s", "ramp: {from: 1/s, to: 80/s}", "stairs: {from: 5/s, step: 5/s, every: 5s, to: 30/s}"} {
		synctest.Test(t, func(t *testing.T) {
			p := plan(t, "{arrivals: {"+arrivals+"}, for: 30s, prompts: {synthetic: 5}, output: 1}")
			// Every tenth answer takes 20 s: an open loop must not care.
			recs, windows := drive(t, Config{Plan: p, Client: sender(func(r *record.Record) time.Duration {
				if r.Shot%10 == 0 {
					return 20 * time.Second
				}
				return time.Millisecond
			})})
			i := 0
			for shot := range p.All() {
				r := recs[i]
				if r.Shot != shot.Index || offset(t, r.Due) != shot.Due || r.Send != r.Due {
					t.Fatalf("%s: shot %d due %v: record of shot %d due %v sent %v", arrivals, shot.Index, shot.Due, r.Shot, r.Due, r.Send)
				}
				i++
			}
			if i != len(recs) {
				t.Errorf("%s: %d records of %d shots", arrivals, len(recs), i)
			}
			if got := offset(t, windows[0].End) - offset(t, windows[0].Start); got != 30*time.Second {
				t.Errorf("%s: window of %v, want 30s", arrivals, got)
			}
		})
	}
}

func TestBlocksCoverThePlanOnce(t *testing.T) {
	for _, yaml := range []string{
		"{arrivals: {poisson: 20/s}, for: 31s, prompts: {synthetic: 5}, output: 1}",
		"{arrivals: {poisson: 20/s}, requests: 601, prompts: {synthetic: 5}, output: 1}",
		"{arrivals: {constant: 20/s}, requests: 400, for: 1m, prompts: {synthetic: 5}, output: 1}",
		"{arrivals: {concurrency: 7}, requests: 601, prompts: {synthetic: 5}, output: 1}",
		"{arrivals: {concurrency: 7, think: 30ms}, for: 31s, prompts: {synthetic: 5}, output: 1}",
	} {
		synctest.Test(t, func(t *testing.T) {
			p := plan(t, yaml)
			recs, windows := drive(t, Config{Plan: p, Client: takes(40 * time.Millisecond), Blocks: 4})
			perUser := map[string]int{}
			blocks := map[int]int{}
			for i, r := range recs {
				if p.Open() && r.Shot != int64(i) {
					t.Fatalf("%s: record %d is of shot %d", yaml, i, r.Shot)
				}
				if r.Turn != perUser[r.Session] && !p.Open() {
					t.Fatalf("%s: turn %d of %s follows turn %d", yaml, r.Turn, r.Session, perUser[r.Session]-1)
				}
				perUser[r.Session]++
				blocks[r.Block]++
			}
			if n := p.Planned(); n >= 0 && int64(len(recs)) != n {
				t.Errorf("%s: %d records, planned %d", yaml, len(recs), n)
			}
			for b := range 4 {
				if share := float64(blocks[b]) / float64(len(recs)); share < .15 || share > .35 {
					t.Errorf("%s: block %d has %d of %d records", yaml, b, blocks[b], len(recs))
				}
				if b > 0 && windows[b].Start < windows[b-1].End {
					t.Errorf("%s: window %d starts before window %d ends", yaml, b, b-1)
				}
			}
		})
	}
}

func TestCapDelaysAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := plan(t, "{arrivals: {constant: 10/s}, requests: 100, prompts: {synthetic: 5}, output: 1}")
		recs, _ := drive(t, Config{Plan: p, Client: takes(500 * time.Millisecond), Cap: 1, Drain: time.Hour})
		for i, r := range recs {
			due := time.Duration(i) * 100 * time.Millisecond
			if offset(t, r.Due)-offset(t, recs[0].Due) != due {
				t.Fatalf("shot %d is due at %v, want %v: the cap must not move the schedule", i, offset(t, r.Due), due)
			}
			wait := offset(t, r.Send) - offset(t, r.Due)
			if want := time.Duration(i) * 400 * time.Millisecond; wait != want {
				t.Errorf("shot %d waited %v, want %v", i, wait, want)
			}
			if delayed := r.Flags&record.FlagDelayedByCap != 0; delayed != (i > 0) {
				t.Errorf("shot %d: delayed by cap: %v", i, delayed)
			}
		}
	})
}

func TestHungServerIsATimeoutOfTheServer(t *testing.T) {
	for _, yaml := range []string{
		"{arrivals: {constant: 10/s}, for: 10s, prompts: {synthetic: 5}, output: 1}",
		"{arrivals: {concurrency: 5}, for: 10s, prompts: {synthetic: 5}, output: 1}",
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			recs, _ := drive(t, Config{Plan: plan(t, yaml), Client: takes(time.Hour), Drain: 3 * time.Second})
			if took := time.Since(begin); took != 13*time.Second {
				t.Errorf("%s: took %v, want the 10s of the schedule and 3s of drain", yaml, took)
			}
			if len(recs) == 0 {
				t.Fatalf("%s: no records", yaml)
			}
			for _, r := range recs {
				if r.Outcome != record.TotalTimeout || r.Outcome.Group() != record.GroupFailed {
					t.Fatalf("%s: shot %d ended as %s (%s), want %s", yaml, r.Shot, r.Outcome, r.Detail, record.TotalTimeout)
				}
			}
		})
	}
}

func TestInterruptStopsSendingDrainsAndAccounts(t *testing.T) {
	stop := errors.New("stop")
	for _, yaml := range []string{
		"{arrivals: {constant: 10/s}, for: 1h, prompts: {synthetic: 5}, output: 1}",
		"{arrivals: {concurrency: 5}, for: 1h, prompts: {synthetic: 5}, output: 1}",
	} {
		synctest.Test(t, func(t *testing.T) {
			var kept sink
			d, err := New(Config{
				Plan: plan(t, yaml), Epoch: time.Now(), Virtual: true, Sink: kept.add, Drain: 2 * time.Second, Cap: 40,
				Client: sender(func(r *record.Record) time.Duration {
					if r.Shot%5 == 4 {
						return time.Hour
					}
					return 700 * time.Millisecond
				}),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(10010*time.Millisecond, func() { cancel(stop) })
			begin := time.Now()
			if _, err := d.Block(ctx, 0); !errors.Is(err, stop) {
				t.Errorf("Block = %v, want %v", err, stop)
			}
			if took := time.Since(begin); took > 12100*time.Millisecond {
				t.Errorf("%s: took %v after a stop at 10s and 2s of drain", yaml, took)
			}
			seen := map[int64]bool{}
			var done, cut int
			for _, r := range kept.sorted() {
				if seen[r.Shot] {
					t.Errorf("%s: two records of shot %d", yaml, r.Shot)
				}
				seen[r.Shot] = true
				switch r.Outcome {
				case record.OK:
					done++
				case record.Interrupted:
					cut++
				default:
					t.Errorf("%s: shot %d ended as %s", yaml, r.Shot, r.Outcome)
				}
			}
			if done == 0 || cut == 0 {
				t.Errorf("%s: %d done and %d cut, want some of each", yaml, done, cut)
			}
			if strings.Contains(yaml, "constant") && len(seen) != 100 {
				t.Errorf("%d records, want one for each of the 100 shots that came due", len(seen))
			}
		})
	}
}

func TestClosedLoopWaitsForAnswerAndThinkTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := plan(t, "{arrivals: {concurrency: 3, think: 250ms}, for: 60s, prompts: {synthetic: 5}, output: 1}")
		recs, _ := drive(t, Config{Plan: p, Client: takes(time.Second)})
		last := map[string]record.Instant{}
		for _, r := range recs {
			if before := last[r.Session]; before.Set() {
				if pause, _ := r.Due.Sub(before); pause != 250*time.Millisecond {
					t.Errorf("%s turn %d is due %v after the answer, want 250ms", r.Session, r.Turn, pause)
				}
			}
			last[r.Session] = r.EOF
		}
		if len(last) != 3 {
			t.Errorf("%d users, want 3", len(last))
		}
	})
}

// refuser fails every request at once.
type refuser struct{}

func (refuser) Do(_ context.Context, epoch time.Time, _ *llm.Request, rec *record.Record) llm.Answer {
	rec.Outcome = record.Dial
	rec.EOF = record.At(time.Since(epoch))
	return llm.Answer{}
}

func TestClosedLoopHoldsBackFromADeadServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recs, _ := drive(t, Config{Plan: plan(t, "{arrivals: {concurrency: 2}, for: 60s, prompts: {synthetic: 5}, output: 1}"), Client: refuser{}})
		// Five pauses of .05 to .8 s, then one a second, for each of two users.
		if n := len(recs); n < 100 || n > 130 {
			t.Errorf("%d requests to a dead server in a minute, want about 2 a second", n)
		}
		for _, r := range recs {
			if lag, _ := r.EOF.Sub(r.Due); lag > time.Millisecond {
				t.Fatalf("shot %d: the pause counts as latency: %v", r.Shot, lag)
			}
		}
	})
}

func TestWarmUpIsMarkedAndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept sink
		flying, most := 0, 0
		var mu sync.Mutex
		cfg := Config{
			Plan:  plan(t, "{arrivals: {constant: 10/s}, for: 10s, prompts: {synthetic: 5}, output: 1, warmup: {requests: 50}}"),
			Epoch: time.Now(), Virtual: true,
			Client: sender(func(*record.Record) time.Duration {
				mu.Lock()
				defer mu.Unlock()
				flying++
				most = max(most, flying)
				return time.Second
			}),
		}
		cfg.Sink = func(r *record.Record, a llm.Answer) error {
			mu.Lock()
			flying--
			mu.Unlock()
			return kept.add(r, a)
		}
		d, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if err := d.WarmUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, r := range kept.recs {
			if r.Phase != record.WarmUp {
				t.Errorf("shot %d of the warm-up is marked %s", r.Shot, r.Phase)
			}
		}
		if len(kept.recs) != 50 || most > warmUpUsers {
			t.Errorf("%d records with %d at once, want 50 with at most %d", len(kept.recs), most, warmUpUsers)
		}
	})
}

func TestSinkErrorStopsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("disk full")
		n := 0
		var mu sync.Mutex
		d, err := New(Config{
			Plan:   plan(t, "{arrivals: {constant: 10/s}, for: 1h, prompts: {synthetic: 5}, output: 1}"),
			Client: takes(10 * time.Millisecond), Epoch: time.Now(), Virtual: true,
			Sink: func(*record.Record, llm.Answer) error {
				mu.Lock()
				defer mu.Unlock()
				if n++; n == 20 {
					return full
				}
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		begin := time.Now()
		if _, err := d.Block(t.Context(), 0); !errors.Is(err, full) {
			t.Errorf("Block = %v, want %v", err, full)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("stopped after %v", took)
		}
	})
}

func TestLiveAgreesWithRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var live Live
		recs, _ := drive(t, Config{
			Plan:   plan(t, "{arrivals: {constant: 10/s}, for: 10s, prompts: {synthetic: 5}, output: 1}"),
			Client: takes(200 * time.Millisecond), Live: &live,
		})
		s := live.Snapshot()
		if s.Done != int64(len(recs)) || s.InFlight != 0 || s.Failed != 0 || s.Dropped != 0 {
			t.Errorf("Snapshot = %+v, want %d done and nothing else", s, len(recs))
		}
		if s.TTFT < 200*time.Millisecond || s.TTFT > 207*time.Millisecond {
			t.Errorf("TTFT = %v, want 200ms within 3.2 %%", s.TTFT)
		}
		if s.TPOT >= 0 {
			t.Errorf("TPOT = %v, want none", s.TPOT)
		}
	})
}

func TestNewRefusesHalfAConfig(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("New accepted the zero Config")
	}
}

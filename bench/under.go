package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/assay-llm/assay/check"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/load"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/workload"
)

// Under has a check asked a second time while a workload of the suite runs against every
// variant.
type Under struct {
	Workload string      `yaml:"workload,required" doc:"the workload of the suite that runs meanwhile, with its prompts and outputs"`
	Rate     config.Rate `yaml:"rate,required" min:">0/s" doc:"at which it arrives at each variant, as Poisson arrivals, instead of its own: 5/s"`
}

// What makes the load of a check the load that it was to be.
const (
	underSettle = 2 * time.Second  // of load before the first question, so that the engine has met it
	underLeast  = 20               // requests due while questions were asked; fewer say nothing about a rate
	underSent   = .95              // share of the requests due that went out in time …
	underLate   = time.Second      // (no later than so)
	underServed = .95              // … and of those that ended that were served
	underBehind = 30 * time.Second // of the load that may be under way; beyond it the server is overloaded
	underFor    = 24 * time.Hour   // longest schedule
)

// spec is the workload as it runs under the check: open, at the rate, without an end and
// a warm-up of its own.
func (u *Under) spec(w workload.Spec) workload.Spec {
	w.Arrivals = workload.Arrivals{Poisson: &workload.Rate{Fixed: u.Rate}}
	w.For, w.Requests, w.WarmUp, w.Drain = config.Duration(underFor), 0, workload.WarmUp{}, config.Duration(time.Second)
	return w
}

// underPlan is what is sent to a variant while a check runs under load: a plan of its own,
// whose prompts no other part of the run has.
func (r *run) underPlan(name string, u *Under, variant int) (*workload.Plan, error) {
	w, ok := r.suite.Workloads.Get(u.Workload)
	if !ok {
		return nil, fmt.Errorf("the suite has no workload %s", u.Workload)
	}
	salt := saltOf(r.manifest.Salt, variant)
	if salt != "" {
		salt += "u"
	}
	return workload.New(name+check.BusySuffix, u.spec(w), r.suite.sets, r.manifest.Seed, salt)
}

// underLoad reports whether a check of the suite runs under load, too.
func (s *Suite) underLoad() bool {
	return slices.ContainsFunc(s.Checks, func(c CheckRef) bool { return c.Under != nil })
}

// checkUnder reports loads that cannot be made, before anything is sent.
func (r *run) checkUnder() error {
	for _, c := range r.suite.Checks {
		if c.Under == nil {
			continue
		}
		if _, err := r.underPlan(c.Check.Name, c.Under, 0); err != nil {
			return &SetupError{fmt.Errorf("planning the load under %s: %w", c.Check.Name, err)}
		}
	}
	return nil
}

// underLoad keeps the load of a check up while it is asked. It returns a
// *check.LoadError when the load was not what it was to be.
func (r *run) underLoad(ctx context.Context, name string, during func(context.Context) error) error {
	var u *Under
	for _, c := range r.suite.Checks {
		if c.Check.Name == name {
			u = c.Under
		}
	}
	l := &underway{run: r, name: name, under: u}
	dir := filepath.Join(r.dir, "under", name)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil { // what a stopped run left is of another load
		return fmt.Errorf("making the folder of the load under %s: %w", name, err)
	}
	writer, err := record.Create(record.OS(), dir)
	if err != nil {
		return fmt.Errorf("opening the journal of the load under %s: %w", name, err)
	}
	l.writer = writer
	r.opts.Notice("check %s again, while %s arrives at %s at each variant", name, u.Workload, u.Rate)
	err = l.keepUp(ctx, during)
	if sealed := writer.Seal(); sealed != nil {
		err = errors.Join(err, fmt.Errorf("sealing the records of the load under %s: %w", name, sealed))
	}
	return err
}

// underway is one load under way.
type underway struct {
	run    *run
	name   string
	under  *Under
	writer *record.Writer

	mu       sync.Mutex
	arrivals []arrival
}

// arrival is what the judgement of the load needs of one request.
type arrival struct {
	variant   string
	due, sent record.Instant
	outcome   record.Outcome
}

// keepUp begins the load on every variant, calls during when it has settled, ends it, and
// judges it over that time.
func (l *underway) keepUp(ctx context.Context, during func(context.Context) error) error {
	r := l.run
	loading, stop := context.WithCancel(ctx)
	var others sync.WaitGroup
	defer others.Wait()
	defer stop()
	plans := make([]*workload.Plan, len(r.variants))
	begun := make([]time.Time, len(r.variants))
	ended := make([]error, len(r.variants))
	live := make([]load.Live, len(r.variants))
	for i, v := range r.variants {
		var err error
		if plans[i], err = r.underPlan(l.name, l.under, i); err != nil {
			return err
		}
		d, err := load.New(load.Config{
			Plan: plans[i], Variant: v.name, Client: v.client, Epoch: r.epoch, Cap: int(plans[i].Spec().Cap), Drain: time.Second,
			Sink: l.take, Live: &live[i], Virtual: r.opts.virtual != nil,
		})
		if err != nil {
			return err
		}
		if _, err := v.client.Open(ctx, connections(plans[i], plans[i].Spec())); err != nil && ctx.Err() == nil {
			r.opts.Notice("opening connections to %s ahead of time: %v", v.name, err)
		}
		begun[i] = time.Now()
		others.Go(func() {
			w, err := d.Block(loading, 0)
			if start, ok := w.Start.Offset(); ok {
				l.mu.Lock()
				begun[i] = r.epoch.Add(start)
				l.mu.Unlock()
			}
			ended[i] = errors.Join(err, d.Close())
		})
	}
	var err error
	select {
	case <-time.After(underSettle):
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	from := time.Now()
	if err == nil {
		err = l.within(ctx, live, during)
	}
	to := time.Now()
	stop()
	others.Wait()
	if err != nil {
		return err
	}
	for i, v := range r.variants {
		if why := l.unfit(v.name, plans[i], begun[i], from, to, ended[i]); why != "" {
			return &check.LoadError{Why: fmt.Sprintf("%s at %s on %s: %s", l.under.Workload, l.under.Rate, v.name, why)}
		}
	}
	return nil
}

// within calls during, and cuts it short when a variant cannot keep up with the load: its
// queue would only grow, and each question wait longer than the one before.
func (l *underway) within(ctx context.Context, live []load.Live, during func(context.Context) error) error {
	asking, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	done := make(chan error, 1)
	go func() { done <- during(asking) }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
		}
		for i := range live {
			if n := live[i].Snapshot().InFlight; float64(n) > underBehind.Seconds()*float64(l.under.Rate)+underLeast {
				cut(&check.LoadError{Why: fmt.Sprintf("%s at %s on %s: it does not keep up, %d requests are under way; lower the rate", l.under.Workload, l.under.Rate, l.run.variants[i].name, n)})
			}
		}
	}
}

// take keeps a record of the load, apart from those that are measured.
func (l *underway) take(rec *record.Record, _ llm.Answer) error {
	if rec.Turn == 0 { // later turns are due when the answers before them came
		l.mu.Lock()
		l.arrivals = append(l.arrivals, arrival{rec.Variant, rec.Due, rec.Send, rec.Outcome})
		l.mu.Unlock()
	}
	return l.writer.Append(rec)
}

// unfit says why the load of a variant was not at its rate while questions were asked, from
// one instant to another; "" if it was.
func (l *underway) unfit(variant string, p *workload.Plan, begun, from, to time.Time, err error) string {
	if err != nil && !errors.Is(err, context.Canceled) {
		return "it broke off: " + err.Error()
	}
	due := 0
	for shot := range p.All() {
		at := begun.Add(shot.Due)
		if at.After(to) {
			break
		}
		if shot.Turn == 0 && !at.Before(from) {
			due++
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	sent, over, served := 0, 0, 0
	for _, a := range l.arrivals {
		at, ok := a.due.Offset()
		if t := l.run.epoch.Add(at); !ok || a.variant != variant || t.Before(from) || t.After(to) {
			continue
		}
		if late, ok := a.sent.Sub(a.due); ok && late <= underLate {
			sent++
		}
		if a.outcome == record.Interrupted {
			continue // cut at the end of the load
		}
		if over++; a.outcome.Group() != record.GroupFailed {
			served++
		}
	}
	switch {
	case due < underLeast:
		return fmt.Sprintf("only %d requests were due while questions were asked, fewer than %d: raise the rate, or ask more cases", due, underLeast)
	case float64(sent) < underSent*float64(due):
		return fmt.Sprintf("%d of %d requests went out in time", sent, due)
	case over > 0 && float64(served) < underServed*float64(over):
		return fmt.Sprintf("%d of %d requests were served", served, over)
	}
	return ""
}

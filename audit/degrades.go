package audit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/stat"
)

const (
	degradesName = "degrades under load"
	degradesAsks = "are answers as right, and as long, when it is busy?"
)

// allowedDrop is how much lower the share of right answers may be under load.
const allowedDrop = .1

// task has one right answer, and is asked idle and under load with other salts.
type task struct {
	answer       string
	number       bool
	idle, loaded *exchange
}

func (t *task) right(x *exchange) bool {
	if t.number {
		return hasNumber(x.Text, t.answer)
	}
	return contains(x.Text, t.answer)
}

// askTasks asks half of the tasks, then all of them under load, then the other
// half: what drifts hits both.
func (a *auditor) askTasks(ctx context.Context) (tasks []task, under []*exchange) {
	k, rng := &asker{a, "task"}, a.rng(9)
	tasks = make([]task, a.n.task)
	texts := make([]string, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		if t.number = i%2 == 0; t.number {
			texts[i], t.answer = sum(rng)
		} else {
			t.answer = newCode(rng)
			texts[i] = repeat(t.answer)
		}
	}
	ask := func(i int) *exchange { return k.ask(ctx, question{prompt: salt(rng) + texts[i], max: taskTokens}) }
	half := len(tasks) / 2
	for i := range half {
		tasks[i].idle = ask(i)
	}
	stop := a.load(ctx)
	for i := range tasks {
		tasks[i].loaded = ask(i)
	}
	under = stop()
	for i := half; i < len(tasks); i++ {
		tasks[i].idle = ask(i)
	}
	return tasks, under
}

// load keeps so many stories in flight until stop is called, which waits for the
// workers and gives the first story of each: of all stories, those that end before
// the load does are the shorter ones. It returns once each worker has sent and a
// moment has passed.
func (a *auditor) load(ctx context.Context) (stop func() []*exchange) {
	a.setLoaded(true)
	busy, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	first := make([]*exchange, a.cfg.Load)
	for i := range first {
		k, rng := &asker{a, loadProbe}, rand.New(rand.NewPCG(a.cfg.Seed, uint64(1000+i)))
		ask := func(ctx context.Context) *exchange {
			return k.ask(ctx, question{prompt: story(rng), max: storyTokens, temperature: 1, seed: int64(rng.Uint32()) + 1})
		}
		wg.Go(func() {
			first[i] = ask(ctx) // read to its end, whenever the load is over
			for wait := leastWait; busy.Err() == nil; {
				if ask(busy).usable() {
					wait = leastWait
					continue
				}
				sleep(busy, wait) // a server that refuses is not to be hammered
				wait = min(2*wait, mostWait)
			}
		})
	}
	sleep(ctx, settle)
	return func() []*exchange {
		cancel()
		wg.Wait()
		a.setLoaded(false)
		return first
	}
}

// loadProbe names the requests of the load.
const loadProbe = "load"

// settle is how long the load runs before tasks are asked; a worker that was
// refused waits from leastWait on, twice as long each time, up to mostWait.
const (
	settle    = time.Second
	leastWait = 100 * time.Millisecond
	mostWait  = 5 * time.Second
)

func (a *auditor) setLoaded(on bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.loaded = on
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func (a *auditor) judgeDegrades(s *answers) Probe {
	p := Probe{Name: degradesName, Asks: degradesAsks}
	alpha := falseAlarm / probes / 2
	c := a.tasksUnderLoad(s.tasks, alpha)
	if taken := answered(s.loadOf); c.Grade == contract.Pass && 2*taken < a.cfg.Load {
		c.Grade, c.Next = contract.Inconclusive, "audit with a --load that it takes"
		c.Reason = fmt.Sprintf("of %d requests in flight as load only %d were answered: it was not under load", a.cfg.Load, taken)
	}
	p.Checks = append(p.Checks, c, lengthUnderLoad(s, alpha))
	return p
}

// tasksUnderLoad is McNemar's exact test on tasks of which one of both answers is
// right. It passes when a drop of more than allowedDrop is ruled out.
func (a *auditor) tasksUnderLoad(tasks []task, alpha float64) Check {
	c := Check{Name: "tasks under load", Asks: fmt.Sprintf("are tasks solved as well with %d requests in flight?", a.cfg.Load)}
	var lost, won, idle, loaded, n int
	var wrong tally
	for i := range tasks {
		t := &tasks[i]
		if !t.idle.usable() || !t.loaded.usable() {
			continue
		}
		n++
		was, is := t.right(t.idle), t.right(t.loaded)
		if was {
			idle++
		}
		if is {
			loaded++
		}
		wrong.add(t.loaded, was && !is, fmt.Sprintf("asked for %s, it says %s under load, and %s idle (%s)", t.answer, a.quote(t.loaded.Text), a.quote(t.idle.Text), t.idle.id))
		if was && !is {
			lost++
		} else if is && !was {
			won++
		}
	}
	c.Figures = []Figure{share("right idle", idle, n), share("right under load", loaded, n), share("lost under load", lost, n), share("won under load", won, n)}
	const sure = 1 - passWrong // the two bounds together are wrong in passWrong at most
	most := stat.ExactShare(lost, n, sure).Hi - stat.ExactShare(won, n, sure).Lo
	switch {
	case 5*n < 4*len(tasks):
		c.Reason, c.Next = fmt.Sprintf("only %d of %d tasks were answered both idle and under load", n, len(tasks)), "see why requests failed, or audit with a smaller --load"
	case stat.ChanceAtLeast(lost, lost+won, .5) <= alpha:
		c.Grade, c.Evidence = contract.Fail, wrong.evidence
		c.Reason = fmt.Sprintf("answers get worse under load: %d of %d right, and %d idle", loaded, n, idle)
		c.Next = "measure quality under the load that you expect, not idle"
	case 10*idle < 7*n:
		c.Reason, c.Next = fmt.Sprintf("the model solves %d of %d tasks when idle: it cannot do what would show it", idle, n), ableNext
	case most <= allowedDrop:
		c.Grade, c.Reason = contract.Pass, fmt.Sprintf("%d of %d right under load, %d idle", loaded, n, idle)
	default:
		c.Reason = fmt.Sprintf("%d of %d right under load, %d idle: a drop of up to %.0f %% is not ruled out", loaded, n, idle, 100*most)
		c.Next, c.Evidence = "audit again with --budget thorough", wrong.evidence
	}
	return c
}

// lengthUnderLoad compares the lengths of stories idle and under load.
func lengthUnderLoad(s *answers, alpha float64) Check {
	c := Check{Name: "length under load", Asks: "are answers within 10 % of their length when idle?", Supporting: true}
	sameLength(&c, lengths(s.loadOf), lengths(s.stories), alpha, "answers have another length under load than idle")
	return c
}

// answered counts the exchanges that have an answer.
func answered(all []*exchange) (n int) {
	for _, x := range all {
		if x.usable() {
			n++
		}
	}
	return n
}

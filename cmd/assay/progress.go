package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/assay-llm/assay/bench"
)

// How often progress is shown: on a terminal, and as lines elsewhere.
const (
	refresh   = 200 * time.Millisecond
	lineEvery = 10 * time.Second
)

// follow shows how a run goes until the returned function is called.
func (c *console) follow(ctx context.Context, w *bench.Watch, s *bench.Suite, quiet bool) (done func()) {
	if quiet {
		return func() {}
	}
	c.notice("%s: %s; %s", s.Name, list("variant", s.Variants.Keys()), list("workload", s.Workloads.Keys()))
	width := terminal(c.err)
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		every := lineEvery
		if width > 0 {
			every = refresh
		}
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				if errors.Is(context.Cause(ctx), errInterrupted) {
					c.notice("stopping: nothing more is sent, and what is in flight may finish; again to stop at once")
				}
				return
			case <-tick.C:
			}
			line := progress(w, time.Now())
			switch {
			case line == "":
			case width > 0:
				fmt.Fprintf(c.err, "\r\x1b[K%s", clip(line, width-1))
			default:
				c.notice("%s", strings.TrimSpace(line))
			}
		}
	})
	return func() {
		stop()
		wg.Wait()
		if width > 0 {
			fmt.Fprint(c.err, "\r\x1b[K")
		}
	}
}

// progress is one line on where a run stands; "" before it began.
func progress(w *bench.Watch, now time.Time) string {
	step, ok := w.Step()
	if !ok {
		return ""
	}
	live := w.Live.Snapshot()
	where := fmt.Sprintf("  %s  %s", step.Workload, step.Variant)
	if step.WarmUp {
		where += "  warming up"
	} else if step.Blocks > 1 {
		where += fmt.Sprintf("  block %d/%d", step.Block, step.Blocks)
	}
	elapsed := now.Sub(step.Start)
	line := fmt.Sprintf("%s  %s", where, elapsed.Round(time.Second))
	if step.Length > 0 {
		line += fmt.Sprintf(" of about %s", step.Length.Round(time.Second))
	}
	line += fmt.Sprintf("   in flight %d   done %d   failed %d", live.InFlight, live.Done, live.Failed)
	if live.Dropped > 0 {
		line += fmt.Sprintf("   dropped %d", live.Dropped)
	}
	if live.Cancelled > 0 {
		line += fmt.Sprintf("   cancelled %d", live.Cancelled)
	}
	if live.TTFT >= 0 {
		line += fmt.Sprintf("   TTFT %s", milliseconds(live.TTFT))
	}
	if live.TPOT >= 0 {
		line += fmt.Sprintf("   TPOT %s", milliseconds(live.TPOT))
	}
	return line
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.3g ms", float64(d)/float64(time.Millisecond))
}

func clip(s string, width int) string {
	if r := []rune(s); len(r) > width && width > 0 {
		return string(r[:width])
	}
	return s
}

// list says "variant a" or "variants a, b".
func list(noun string, names []string) string {
	if len(names) != 1 {
		noun += "s"
	}
	return noun + " " + strings.Join(names, ", ")
}

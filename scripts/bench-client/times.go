//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/load"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/workload"
)

// quantile is a distribution of times in short.
type quantile struct {
	N   int           `json:"n"`
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
	Max time.Duration `json:"max_ns"`
}

func quantilesOf(d []time.Duration) quantile {
	if len(d) == 0 {
		return quantile{}
	}
	slices.Sort(d)
	at := func(p float64) time.Duration { return d[int(p*float64(len(d)-1))] }
	return quantile{N: len(d), P50: at(.5), P99: at(.99), Max: d[len(d)-1]}
}

// stamps compares the instants on the records with the server's emit times. An
// error has no sign: a stamp before the emit time is as wrong as one behind it.
func stamps(ctx context.Context, w work) (sample, error) {
	c, err := opened(ctx, w)
	if err != nil {
		return sample{}, err
	}
	defer c.Close()
	var (
		mu    sync.Mutex
		times = make(map[string][]time.Duration)
		epoch = time.Now()
	)
	events, _ := w.streamed()
	s, err := repeat(w, func(conn int, n int64) (int64, error) {
		rec := &record.Record{Shot: n, Variant: "own", Workload: "bench", Block: conn, Stream: true, MaxTokens: events}
		k, err := ask(ctx, c, epoch, rec)
		mu.Lock()
		defer mu.Unlock()
		for i := range rec.Events {
			e := &rec.Events[i]
			late, ok := e.At.Sub(e.Emit)
			if !ok || !e.Kind.Payload() {
				continue
			}
			first := e == rec.First()
			note := func(name string, d time.Duration) { times[name] = append(times[name], d.Abs()) }
			note("own event", late)
			if first {
				note("own first", late)
			}
			if e.Lag < 0 {
				continue
			}
			note("kernel event", late-e.Lag)
			if i+1 == len(rec.Events) || rec.Events[i+1].Read != e.Read {
				note("kernel last", late-e.Lag)
			}
			if first {
				note("kernel first", late-e.Lag)
			}
		}
		return k, err
	})
	s.Times = make(map[string]quantile)
	for name, d := range times {
		s.Times[name] = quantilesOf(d)
	}
	return s, err
}

// drive sends a workload as a run does: the plan, the driver, its monitor, and a
// journal on disk. Each sees every record.
func drive(ctx context.Context, w work, spec workload.Spec, each func(*record.Record)) error {
	c, err := opened(ctx, w)
	if err != nil {
		return err
	}
	defer c.Close()
	spec.Prompts = workload.Prompts{Synthetic: workload.Fixed[config.Count](8)}
	spec.Output = workload.Fixed[config.Count](1)
	spec.Stream = new(bool)
	plan, err := workload.New("bench", spec, nil, 1, "salt")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(w.Scratch, "journal")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	journal, err := record.Create(record.OS(), filepath.Join(dir, "run"))
	if err != nil {
		return err
	}
	defer journal.Close()
	epoch := time.Now()
	defer load.Slack()() // as every run has it
	monitor := load.NewMonitor(epoch, false)
	watch, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { _ = monitor.Run(watch) })
	defer wg.Wait()
	defer stop()
	var mu sync.Mutex
	d, err := load.New(load.Config{
		Plan: plan, Variant: "own", Client: c, Epoch: epoch, Monitor: monitor,
		Sink: func(r *record.Record, _ llm.Answer) error {
			if !r.Success() {
				return fmt.Errorf("shot %d: %s: %s", r.Shot, r.Outcome, r.Detail)
			}
			mu.Lock()
			each(r)
			mu.Unlock()
			return journal.Append(r)
		},
	})
	if err != nil {
		return err
	}
	defer d.Close()
	_, err = d.Block(ctx, 0)
	return err
}

// driver is our client in a closed loop of the load driver.
func driver(ctx context.Context, w work) (sample, error) {
	var s sample
	spec := workload.Spec{Arrivals: workload.Arrivals{Concurrency: config.Count(w.Conns)}, For: config.Duration(w.Length)}
	start := cpu()
	err := drive(ctx, w, spec, func(*record.Record) { s.Requests++ })
	s.CPU = cpu() - start
	return s, err
}

// lateness is how late an open loop sends. What is sent in the first half second
// warms the process up.
func lateness(ctx context.Context, w work) (sample, error) {
	const warm = 500 * time.Millisecond
	var late []time.Duration
	n, first := 0, record.Instant(0)
	spec := workload.Spec{Arrivals: workload.Arrivals{Constant: &workload.Rate{Fixed: config.Rate(w.Rate)}}, For: config.Duration(w.Length + warm)}
	err := drive(ctx, w, spec, func(r *record.Record) {
		if n++; first == 0 || r.Due < first {
			first = r.Due
		}
		since, _ := r.Due.Sub(first)
		if d, ok := r.Send.Sub(r.Due); ok && since >= warm {
			late = append(late, d)
		}
	})
	return sample{Requests: int64(n), Times: map[string]quantile{"late": quantilesOf(late)}}, err
}

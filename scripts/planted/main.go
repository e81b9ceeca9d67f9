// Planted measures how often the checks of answers find a fault that is there, say
// where it is, and stay silent where there is none, and writes
// docs/planted-faults.md.
//
//	go run ./scripts/planted -o docs/planted-faults.md        # 100 seeds a fault
//	go run ./scripts/planted -seeds 5 -only dialogue          # a glance, to the standard output
//
// It ends with status 1 when a fault is found in fewer than 95 % of the seeds,
// placed right in fewer than 90 %, or its clean twin silent in fewer than 95 %.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(measure(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func measure(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("planted", flag.ContinueOnError)
	fs.SetOutput(stderr)
	seeds := fs.Int("seeds", 100, "seeds of each fault, and of its clean twin")
	only := fs.String("only", "", "measure faults of this check only")
	out := fs.String("o", "", "file to write; standard output if empty")
	if err := fs.Parse(args); err != nil {
		return 2
	}
	if fs.NArg() > 0 || *seeds < 1 {
		fmt.Fprintln(stderr, "planted: wants -seeds of 1 or more, and no arguments")
		return 2
	}
	var rows []row
	for _, f := range faults() {
		if *only != "" && f.check != *only {
			continue
		}
		started := time.Now()
		r, err := f.measure(ctx, *seeds)
		if err != nil {
			fmt.Fprintf(stderr, "planted: %s: %s: %v\n", f.check, f.name, err)
			return 1
		}
		rows = append(rows, r)
		fmt.Fprintf(stderr, "%s: %s: found %d, placed %d, silent %d of %d, in %s\n", f.check, f.name, r.found, r.placed, r.silent, r.seeds, time.Since(started).Round(time.Second))
	}
	if len(rows) == 0 {
		fmt.Fprintln(stderr, "planted: there is no fault to measure; leave -only out to measure all")
		return 2
	}
	var page strings.Builder
	render(&page, rows, *seeds)
	if err := write(*out, stdout, page.String()); err != nil {
		fmt.Fprintln(stderr, "planted:", err)
		return 1
	}
	if bad := missed(rows); len(bad) > 0 {
		fmt.Fprintf(stderr, "planted: not as well as they should be: %s\n", strings.Join(bad, "; "))
		return 1
	}
	return 0
}

func write(file string, stdout io.Writer, page string) error {
	if file == "" {
		_, err := io.WriteString(stdout, page)
		return err
	}
	return os.WriteFile(file, []byte(page), 0o644)
}

// row is one fault over its seeds.
type row struct {
	fault
	seeds, found, placed, silent int
}

// measure plays every seed twice: with the fault, and without.
func (f fault) measure(ctx context.Context, seeds int) (row, error) {
	r := row{fault: f, seeds: seeds}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs error
		next = make(chan uint64)
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := range next {
				with, err := f.play(ctx, seed, true)
				without, other := f.play(ctx, seed, false)
				mu.Lock()
				if err = errors.Join(err, other); err != nil {
					errs = errors.Join(errs, fmt.Errorf("seed %d: %w", seed, err))
				}
				r.found += one(with.found)
				r.placed += one(with.found && with.placed)
				r.silent += one(!without.found)
				mu.Unlock()
			}
		})
	}
	for seed := range uint64(seeds) {
		next <- seed + 1
	}
	close(next)
	wg.Wait()
	return r, errs
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// missed names the faults whose figures are below what is promised.
func missed(rows []row) (bad []string) {
	for _, r := range rows {
		name := r.check + ", " + r.name
		if 100*r.found < 95*r.seeds {
			bad = append(bad, fmt.Sprintf("%s is found in %d of %d", name, r.found, r.seeds))
		}
		if r.where != "" && 100*r.placed < 90*r.seeds {
			bad = append(bad, fmt.Sprintf("%s is placed in %d of %d", name, r.placed, r.seeds))
		}
		if 100*r.silent < 95*r.seeds {
			bad = append(bad, fmt.Sprintf("the clean twin of %s is silent in %d of %d", name, r.silent, r.seeds))
		}
	}
	return bad
}

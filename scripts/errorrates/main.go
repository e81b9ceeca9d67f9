// Errorrates measures how often the statistical tests decide wrongly and how
// often they find what is there, by seeded simulation, and writes
// docs/error-rates.md. Naive rules stand beside them for contrast.
//
//	go run ./scripts/errorrates            # the whole table, some minutes on two cores
//	go run ./scripts/errorrates -runs 50   # a glance, to the standard output
//
// It ends with status 1 when a test of ours decides wrongly more often than it
// says by more than the simulation's own error.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("errorrates", flag.ContinueOnError)
	flags.SetOutput(stderr)
	runs := flags.Int("runs", fullRuns, "simulated releases for each cell")
	seed := flags.Uint64("seed", 1, "seed")
	out := flags.String("o", "", "file to write instead of the standard output: docs/error-rates.md")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	start := time.Now()
	results := simulate(settings{runs: *runs, seed: *seed, sizes: []int{100, 300, 1000, 3000, 10_000}, progress: stderr})
	extra := checks(*runs, *seed)
	text := page(results, extra, *runs, *seed)
	fmt.Fprintf(stderr, "errorrates: %v with %d processors\n", time.Since(start).Round(time.Second), runtime.GOMAXPROCS(0))
	if *out == "" {
		fmt.Fprint(stdout, text)
	} else if err := os.WriteFile(*out, []byte(text), 0o644); err != nil {
		fmt.Fprintln(stderr, "errorrates: writing the page:", err)
		return 4
	}
	bad := violations(results)
	for _, c := range extra {
		if w := c.wrong(); w != "" && !c.naive {
			bad = append(bad, w)
		}
	}
	for _, v := range bad {
		fmt.Fprintln(stderr, "errorrates:", v)
	}
	if len(bad) > 0 {
		return 1
	}
	return 0
}

// Originals measures published rules and formulas on the inputs where they fail,
// beside what is used here instead, and the power of the latter, by seeded
// simulation. It writes docs/originals.md.
//
//	go run ./scripts/originals -o docs/originals.md   # the page, a minute or two on two cores
//	go run ./scripts/originals -runs 50               # a glance, to the standard output
//
// It ends with status 1 when something of ours does not do what the page says of
// it, by more than the simulation's own error.
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
)

const fullRuns = 1000

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("originals", flag.ContinueOnError)
	flags.SetOutput(stderr)
	runs := flags.Int("runs", fullRuns, "simulations for each cell")
	seed := flags.Uint64("seed", 1, "seed")
	out := flags.String("o", "", "file to write instead of the standard output: docs/originals.md")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() > 0 || *runs < 2 {
		fmt.Fprintln(stderr, "originals: wants -runs of 2 or more, and no arguments")
		return 2
	}
	text, bad := page(*runs, *seed)
	if *out == "" {
		fmt.Fprint(stdout, text)
	} else if err := os.WriteFile(*out, []byte(text), 0o644); err != nil {
		fmt.Fprintln(stderr, "originals: writing the page:", err)
		return 4
	}
	if len(bad) > 0 {
		fmt.Fprintf(stderr, "originals: not as they should be: %s\n", strings.Join(bad, "; "))
		return 1
	}
	return 0
}

// source is one of the program's sources of random numbers.
func source(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

// must takes the error of a call whose arguments this program chose.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// The exit codes are those of assay.
const (
	exitOK          = 0
	exitUsage       = 2
	exitNotMeasured = 4
	exitInterrupted = 130
)

// run measures, or does what a process of its own is started for.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		if part := parts[args[0]]; part != nil {
			if err := part(ctx, args[1:], stdin, stdout); err != nil {
				fmt.Fprintln(stderr, "bench-client:", args[0]+":", err)
				return exitNotMeasured
			}
			return exitOK
		}
	}
	flags := flag.NewFlagSet("bench-client", flag.ContinueOnError)
	flags.SetOutput(stderr)
	asJSON := flags.Bool("json", false, "print one JSON object")
	rounds := flags.Int("rounds", 5, "rounds of each comparison; the median is judged")
	wrk := flags.String("wrk", "", "path of wrk")
	profile := flags.String("profile", "", "directory for a CPU profile of each process that measures")
	only := flags.String("only", "", "comma-separated: requests, streams, flat, memory, allocs, stamps, lateness; all by default")
	if err := flags.Parse(args); err != nil {
		return exitUsage
	}
	b := &bench{rounds: max(*rounds, 1), wrk: *wrk, profile: *profile, log: stderr}
	if err := b.measure(ctx, *only); err != nil {
		fmt.Fprintln(stderr, "bench-client:", err)
		if ctx.Err() != nil {
			return exitInterrupted
		}
		return exitUsage
	}
	r := report{Schema: "assay.bench-client/1", Machine: thisMachine(), Rounds: b.rounds, Rows: b.rows}
	r.judge()
	var err error
	if *asJSON {
		err = r.json(stdout)
	} else {
		err = r.text(stdout)
	}
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "bench-client:", err)
		return exitNotMeasured
	case r.count(notMeasured) > 0:
		return exitNotMeasured
	}
	return exitOK
}

// parts are what this program does in processes of its own.
var parts = map[string]func(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error{
	"serve": func(ctx context.Context, _ []string, stdin io.Reader, stdout io.Writer) error {
		return serveNull(ctx, stdin, stdout)
	},
	"client": func(ctx context.Context, args []string, _ io.Reader, stdout io.Writer) error {
		var w work
		if err := json.Unmarshal([]byte(strings.Join(args, "")), &w); err != nil {
			return err
		}
		do := clients[w.Kind]
		if do == nil {
			return fmt.Errorf("no client %q", w.Kind)
		}
		stop, err := w.profile()
		if err != nil {
			return err
		}
		s, err := do(ctx, w)
		if err = errors.Join(err, stop()); err != nil {
			return err
		}
		return json.NewEncoder(stdout).Encode(s)
	},
	"burn": func(_ context.Context, _ []string, stdin io.Reader, _ io.Writer) error {
		for range runtime.NumCPU() {
			go func() {
				for n := uint64(1); n != 0; n += 2 { // odd numbers: it ends with the process
				}
			}()
		}
		_, err := io.Copy(io.Discard, stdin)
		return err
	},
}

// helper is a part that runs until it is closed.
type helper struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(ctx context.Context, part string) (*helper, error) {
	h := &helper{cmd: exec.CommandContext(ctx, "/proc/self/exe", part)}
	h.cmd.Stderr = os.Stderr
	in, err := h.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	h.in, h.out = in, bufio.NewReader(out)
	return h, h.cmd.Start()
}

func (h *helper) close() {
	_ = h.in.Close()
	_ = h.cmd.Wait()
}

// client runs a client in a process of its own.
func client(ctx context.Context, w work) (sample, error) {
	args, err := json.Marshal(w)
	if err != nil {
		return sample{}, err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "client", string(args))
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return sample{}, fmt.Errorf("%s: %w: %.300s", w.Kind, err, strings.TrimSpace(said.String()))
	}
	var s sample
	if err := json.Unmarshal(out, &s); err != nil {
		return sample{}, err
	}
	return s, nil
}

var errNoWrk = errors.New("wrk is missing: run this by make bench-client, or give -wrk PATH")

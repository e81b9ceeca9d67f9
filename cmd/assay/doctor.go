package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/host"
	"github.com/assay-llm/assay/load"
	"github.com/assay-llm/assay/record"
)

func newDoctor(c *console) *cobra.Command {
	var root, runs string
	var noLoad, asJSON, quiet bool
	var asked capabilityFlags
	cmd := &cobra.Command{
		Use:   "doctor [SUITE]",
		Short: "Say whether this host is a fit place to measure from",
		Long: `Doctor reads what the system tells about its limits, and drives the load client
against a server that computes nothing, at higher and higher rates, until the
client's own certificate calls it unfit: the ceiling of this host for the shape of
the suite's workloads, or of a short chat. It is kept for a week, and run and load
refuse a plan whose peak is above half of it. It takes about fifteen seconds.

Each finding is ok, warn, fail or unknown, with the next step. Doctor exits with 4
if one is fail.

With --url it looks at an endpoint instead: which capabilities it provably has
(log-probabilities, seeds, schemas …), by about 130 short requests. What it finds is
kept for a week, for as long as the endpoint calls itself the same.`,
		Example: "  assay doctor\n  assay doctor suite.yaml --json\n  assay doctor --url http://127.0.0.1:8000/v1 --model llama",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if asked.url != "" {
				if len(args) > 0 {
					return usage(errors.New("--url and a suite are two questions\n  hint: give one of them"))
				}
				return asked.capabilities(c, cmd, asJSON, quiet)
			}
			for _, name := range []string{"model", "key", "fresh"} {
				if cmd.Flags().Changed(name) {
					return usage(fmt.Errorf("--%s is of an endpoint, and none is named\n  hint: name it by --url, or leave --%[1]s out to look at the host", name))
				}
			}
			o := bench.DoctorOptions{Runs: runs}
			if len(args) == 1 {
				s, err := bench.Load(args[0])
				if err != nil {
					return usage(err)
				}
				o.Suite = s
			}
			if root != "" {
				if info, err := os.Stat(root); err != nil || !info.IsDir() {
					return usage(fmt.Errorf("--root %s is no folder\n  hint: name the folder in which proc and sys of the host lie, such as /host", root))
				}
				o.Root = os.DirFS(root)
			}
			if !noLoad {
				o.Calibrator = c.calibrator(runs)
				if quiet {
					o.Calibrator.Say = nil
				}
			}
			d, err := bench.Doctor(cmd.Context(), o)
			if err != nil {
				return &exit{exitUnmeasured, err}
			}
			if asJSON {
				err = json.NewEncoder(c.out).Encode(d)
			} else {
				err = c.diagnosis(d)
			}
			if err == nil && d.State == host.Failed {
				err = &exit{code: exitUnmeasured}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&root, "root", "", "folder in which proc and sys lie, for a host that is mounted elsewhere")
	cmd.Flags().StringVar(&runs, "runs", "runs", "folder of the run directories, whose disk is examined")
	cmd.Flags().StringVarP(&asked.url, "url", "u", "", "http(s)://host:port/v1 of an endpoint whose capabilities to show, instead of the host")
	cmd.Flags().StringVarP(&asked.model, "model", "m", "", "model name sent to the endpoint")
	cmd.Flags().StringVar(&asked.key, "key", "", "API key of the endpoint: env:NAME or file:PATH")
	cmd.Flags().BoolVar(&asked.fresh, "fresh", false, "probe the endpoint even if a report of it is kept")
	cmd.Flags().BoolVar(&noLoad, "no-load", false, "only look; measure no ceiling")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object (assay.doctor/1, or assay.capabilities/1 of an endpoint)")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "no progress")
	return cmd
}

// diagnosis prints what was found, for people.
func (c *console) diagnosis(d *bench.Diagnosis) error {
	counts := map[host.State]int{}
	var b strings.Builder
	show := func(findings []host.Finding) {
		for _, f := range findings {
			counts[f.State]++
			fmt.Fprintf(&b, "%-7s  %-13s  %s\n", f.State, f.ID, f.Text)
			if f.Next != "" {
				fmt.Fprintf(&b, "%24s next: %s\n", "", f.Next)
			}
		}
	}
	show(d.Findings)
	for _, l := range d.Loads {
		name := l.Workload
		if name == "" {
			name = "a short chat"
		}
		s := l.Shape
		fmt.Fprintf(&b, "\n%s: prompts of %d bytes, answers of %d events, streamed: %t\n", name, s.PromptBytes, s.Events, s.Stream)
		show(l.Findings)
	}
	word := "a fit place to measure from"
	switch {
	case counts[host.Failed] > 0:
		word = "no fit place to measure from"
	case counts[host.Warning] > 0:
		word = "a place to measure from with care"
	case counts[host.Uncertain] > 0:
		word = "a fit place to measure from as far as is known"
	}
	fmt.Fprintf(&b, "\n%s: %d ok, %d warn, %d fail, %d unknown\n", word, counts[host.OK], counts[host.Warning], counts[host.Failed], counts[host.Uncertain])
	_, err := c.out.Write([]byte(b.String()))
	return err
}

// calibrator finds the ceiling of this program, with itself as the null server.
func (c *console) calibrator(runs string) *bench.Calibrator {
	cal := &bench.Calibrator{Null: nullProcess, Dir: runs, Say: c.notice}
	if dir, err := os.UserCacheDir(); err == nil {
		cal.Cache = filepath.Join(dir, "assay")
	}
	return cal
}

// nullProcess is this program as a null server. It is called assay whatever its
// name: the tests' binary is assay then, too.
func nullProcess(ctx context.Context, shape record.Shape) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	text, err := json.Marshal(shape)
	if err != nil {
		panic("doctor: a shape is plain numbers: " + err.Error())
	}
	cmd := exec.CommandContext(ctx, self, nullName, string(text))
	cmd.Args[0] = "assay"
	return cmd
}

const nullName = "null-server"

// newNull serves load.ServeNull until its standard input ends.
func newNull(c *console) *cobra.Command {
	return &cobra.Command{
		Use:    nullName + " SHAPE",
		Short:  "Answer every request at once, for doctor",
		Hidden: true,
		Args:   exactly(1, "a shape as JSON"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var shape record.Shape
			if err := json.Unmarshal([]byte(args[0]), &shape); err != nil {
				return usage(fmt.Errorf("reading the shape: %w\n  hint: assay doctor starts this itself", err))
			}
			l, err := new(net.ListenConfig).Listen(cmd.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				return &exit{exitUnmeasured, err}
			}
			if _, err := fmt.Fprintf(c.out, "http://%s\n", l.Addr()); err != nil {
				return err
			}
			ctx, stop := context.WithCancel(cmd.Context())
			defer stop()
			go func() {
				_, _ = c.in.Read(make([]byte, 1)) // until the end
				stop()
			}()
			return load.ServeNull(ctx, l, shape)
		},
	}
}

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/assay-llm/assay/bench"
	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/sim"
)

func newSim(c *console) *cobra.Command {
	var listen, file, text string
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Serve a simulated engine behind an OpenAI-compatible API",
		Long: `Sim serves a simulated engine (continuous batching, chunked prefill, paged KV cache,
prefix cache) on /v1/chat/completions, /v1/completions, /v1/models, /health,
/metrics (vLLM's names) and /ledger (its own account of every request). Each
event carries the engine's true emit time in a comment.`,
		Example: `  assay sim --config engine.yaml
  assay sim --engine '{model: 8b, gpu: h100, tpot: +8%}' --listen 127.0.0.1:8001`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			engine, err := engineOf(file, text)
			if err != nil {
				return usage(err)
			}
			if _, _, err := net.SplitHostPort(listen); err != nil {
				return usage(fmt.Errorf("--listen %q is no address\n  hint: write HOST:PORT, such as 127.0.0.1:8001", listen))
			}
			server, err := sim.NewServer(engine)
			if err != nil {
				return usage(err)
			}
			l, err := new(net.ListenConfig).Listen(cmd.Context(), "tcp", listen)
			if err != nil {
				return &exit{exitUnmeasured, unheard(listen, err)}
			}
			if _, err := fmt.Fprintf(c.out, "http://%s/v1\n", l.Addr()); err != nil {
				return err
			}
			c.notice("serving a simulated engine; stop it with Ctrl-C")
			if err := bench.ServeSim(cmd.Context(), l, server); err != nil {
				return &exit{exitUnmeasured, err}
			}
			return nil // told to stop, and stopped
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8000", "address to listen on; port 0 takes a free one. It has no authentication: keep it on loopback")
	cmd.Flags().StringVar(&file, "config", "", "YAML file of the engine's configuration")
	cmd.Flags().StringVar(&text, "engine", "", "the engine's configuration in place, such as '{step: 10ms}'")
	cmd.MarkFlagsMutuallyExclusive("config", "engine")
	return cmd
}

// engineOf reads the engine's configuration from a file, or the text in place.
func engineOf(file, text string) (engine sim.Config, err error) {
	name, data := "--engine", []byte(text)
	if file != "" {
		data, err = os.ReadFile(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return engine, fmt.Errorf("reading the engine's configuration %s: there is no such file\n  hint: name a YAML file such as engine.yaml, or write --engine '{step: 10ms}'", file)
		case err != nil:
			return engine, fmt.Errorf("reading the engine's configuration: %w\n  hint: name a YAML file such as engine.yaml, or write --engine '{step: 10ms}'", err)
		}
		name = file
	}
	if len(data) > 0 {
		err = config.Decode(name, data, &engine)
	}
	return engine, err
}

// unheard says why nobody can listen at an address.
func unheard(listen string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listening on %s: the port is taken\n  hint: stop what listens there, or take a free port with --listen 127.0.0.1:0", listen)
	}
	return fmt.Errorf("listening on %s: %w\n  hint: write --listen HOST:PORT with an address of this machine, such as 127.0.0.1:8001", listen, err)
}

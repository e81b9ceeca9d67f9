package main

import (
	"fmt"
	"net"
	"os"

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
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var engine sim.Config
			name, data := "--engine", []byte(text)
			if file != "" {
				var err error
				if data, err = os.ReadFile(file); err != nil {
					return usage(fmt.Errorf("reading the engine's configuration: %w", err))
				}
				name = file
			}
			if len(data) > 0 {
				if err := config.Decode(name, data, &engine); err != nil {
					return usage(err)
				}
			}
			server, err := sim.NewServer(engine)
			if err != nil {
				return usage(err)
			}
			l, err := new(net.ListenConfig).Listen(cmd.Context(), "tcp", listen)
			if err != nil {
				return &exit{exitUnmeasured, fmt.Errorf("listening: %w", err)}
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

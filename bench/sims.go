package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/assay-llm/assay/sim"
)

// serveSim serves a simulated engine on loopback until ctx ends and returns its
// URL. The engine's goroutines are done when wait returns.
func serveSim(ctx context.Context, c sim.Config) (url string, wait func() error, err error) {
	engine, err := sim.NewServer(c)
	if err != nil {
		return "", nil, fmt.Errorf("making the simulated engine: %w", err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listening for the simulated engine: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- ServeSim(ctx, l, engine) }()
	return "http://" + l.Addr().String() + "/v1", func() error { return <-done }, nil
}

// ServeSim serves a simulated engine on a listener until ctx ends, and closes
// the listener. What is in flight then is cut.
func ServeSim(ctx context.Context, l net.Listener, engine *sim.Server) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server := &http.Server{
		Handler: engine, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
	}
	steps := make(chan error, 1)
	go func() { steps <- engine.Run(ctx) }()
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-served:
	}
	told := ctx.Err() != nil
	stop()
	closed, stepped := server.Close(), <-steps
	if told { // whatever ended then ended because it was told to
		return nil
	}
	return errors.Join(err, closed, stepped)
}

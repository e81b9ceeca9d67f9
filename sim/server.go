package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/pace"
)

// Server is a simulated engine behind the OpenAI protocol. It is an http.Handler
// for
//
//	POST /v1/chat/completions   GET /v1/models   GET /metrics   POST /reset_prefix_cache
//	POST /v1/completions        GET /health      GET /ledger
//
// Run drives the engine; without it requests wait. Answers are always greedy:
// temperature and top_p change nothing, except that a request's seed with a
// positive temperature gives other text. Make one with NewServer. Safe for
// concurrent use.
type Server struct {
	// Waiter paces the steps; nil is the most exact one of the system. Inside a
	// testing/synctest bubble it must be pace.Plain(). Set it before Run.
	Waiter *pace.Waiter

	config Config
	name   string
	limit  int64 // output tokens of a request that does not say
	epoch  time.Time
	mux    http.ServeMux
	ids    atomic.Int64
	wake   chan struct{} // a request has come
	ledger ledger

	mu        sync.Mutex
	engine    *Engine
	streams   map[Handle]*stream
	metrics   *metrics
	interrupt func() // wakes Run from untilOrWoken
	stopped   bool
}

// NewServer returns a server whose engine starts to load now, or every fault of
// the configuration.
func NewServer(c Config) (*Server, error) {
	engine, err := NewEngine(c)
	if err != nil {
		return nil, err
	}
	s := &Server{
		config:  c,
		name:    c.Name,
		limit:   int64(c.Output.Default),
		epoch:   time.Now(),
		wake:    make(chan struct{}, 1),
		engine:  engine,
		streams: map[Handle]*stream{},
		metrics: newMetrics(),

		interrupt: func() {},
	}
	if s.name == "" {
		s.name = "sim"
	}
	if s.limit == 0 {
		s.limit = 128
	}
	engine.onStep = func(l load) { s.metrics.stepTokens.add(float64(l.tokens)) }
	s.mux.HandleFunc("POST /v1/chat/completions", s.serveGenerate)
	s.mux.HandleFunc("POST /v1/completions", s.serveGenerate)
	s.mux.HandleFunc("GET /v1/models", s.serveModels)
	s.mux.HandleFunc("GET /health", s.serveHealth)
	s.mux.HandleFunc("GET /metrics", s.serveMetrics)
	s.mux.HandleFunc("GET /ledger", s.serveLedger)
	s.mux.HandleFunc("POST /reset_prefix_cache", s.serveReset)
	return s, nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Run steps the engine until the context ends, and returns the context's cause.
// Requests that are then in flight are ended with an error. It is called once.
func (s *Server) Run(ctx context.Context) error {
	waiter := s.Waiter
	if waiter == nil {
		waiter = pace.New()
		defer waiter.Close()
	}
	defer s.stop()
	for ctx.Err() == nil {
		at, ok, stepping := s.advance()
		switch {
		case stepping: // nothing that comes meanwhile makes it end sooner
			if err := waiter.Until(ctx, s.epoch.Add(at)); err != nil {
				return err
			}
		case ok:
			s.untilOrWoken(ctx, waiter, s.epoch.Add(at))
		default:
			select {
			case <-ctx.Done():
			case <-s.wake:
			}
		}
	}
	return context.Cause(ctx)
}

// untilOrWoken waits until the instant or the next request. It is for an idle
// engine that has tokens left to hand out, which come as exactly as others.
func (s *Server) untilOrWoken(ctx context.Context, waiter *pace.Waiter, at time.Time) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.interrupt = cancel
	s.mu.Unlock()
	select {
	case <-s.wake: // came before the interrupt was in place
	default:
		_ = waiter.Until(ctx, at) // why it ended is seen by the caller
	}
}

// advance brings the engine to the present, hands out what it emitted, and says
// when it wants to be called next.
func (s *Server) advance() (at time.Duration, ok, stepping bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	emissions := s.engine.Step(time.Since(s.epoch))
	for i := range emissions {
		em := &emissions[i]
		st := s.streams[em.Request]
		s.metrics.observe(st, em)
		if em.Finish != "" {
			delete(s.streams, em.Request)
		}
		st.push(em)
	}
	at, ok = s.engine.Next()
	return at, ok, s.engine.stepping
}

// stop ends what is in flight; nothing is taken any more.
func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for h, st := range s.streams {
		s.engine.Cancel(h)
		delete(s.streams, h)
		st.kill()
	}
}

// stream carries a request's emissions from the step loop to the goroutine that
// writes them. The loop never waits for it: what a slow reader has not taken is
// kept, at most as many emissions as the request asked tokens for.
type stream struct {
	handle  Handle
	arrival time.Duration
	prompt  int64
	limit   int64

	first, last time.Duration // of emissions; the step loop's

	ready chan struct{} // something is pending, or the stream is dead

	mu      sync.Mutex
	pending []Emission
	dead    bool
}

func (st *stream) push(em *Emission) {
	st.mu.Lock()
	st.pending = append(st.pending, *em)
	st.mu.Unlock()
	st.signal()
}

func (st *stream) kill() {
	st.mu.Lock()
	st.dead = true
	st.mu.Unlock()
	st.signal()
}

func (st *stream) signal() {
	select {
	case st.ready <- struct{}{}:
	default:
	}
}

// take exchanges the pending emissions for an empty slice.
func (st *stream) take(spare []Emission) (pending []Emission, dead bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	pending, st.pending = st.pending, spare[:0]
	return pending, st.dead
}

// errStopped refuses a request of a server whose Run has ended.
var errStopped = errors.New("the engine is stopped")

// submit hands a request to the engine.
func (s *Server) submit(r Request) (*stream, error) {
	st := &stream{prompt: int64(len(r.Prompt)), limit: r.MaxTokens, ready: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, errStopped
	}
	st.arrival = time.Since(s.epoch)
	h, err := s.engine.Submit(r, st.arrival)
	if err != nil {
		return nil, err
	}
	st.handle = h
	s.streams[h] = st
	select {
	case s.wake <- struct{}{}:
	default:
	}
	s.interrupt()
	return st, nil
}

// abandon cancels a stream whose answer will not be written to its end.
func (s *Server) abandon(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.engine.Cancel(st.handle) {
		delete(s.streams, st.handle)
		s.metrics.aborted++
	}
}

// loading reports whether the engine is still starting.
func (s *Server) loading() bool { return time.Since(s.epoch) < time.Duration(s.config.Start) }

func (s *Server) serveHealth(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	stopped := s.stopped
	s.mu.Unlock()
	if stopped || s.loading() {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (s *Server) serveModels(w http.ResponseWriter, _ *http.Request) {
	if s.loading() {
		writeError(w, http.StatusServiceUnavailable, "the model is loading")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(llm.AppendModels(nil, s.epoch.Unix(), s.name)) // the client may be gone
}

func (s *Server) serveReset(http.ResponseWriter, *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engine.ResetPrefixCache()
}

// writeError answers with an error in the protocol's form and returns the bytes
// of its body.
func writeError(w http.ResponseWriter, status int, message string) int {
	kind := "invalid_request_error"
	switch {
	case status >= 500:
		kind = "server_error"
	case status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	n, _ := w.Write(llm.AppendError(nil, status, kind, message)) // the client may be gone
	return n
}

// serveGenerate reads, judges and enters a request, and has it answered.
func (s *Server) serveGenerate(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("X-Request-Id")
	if id == "" || len(id) > 256 {
		id = "sim-" + strconv.FormatInt(s.ids.Add(1), 10)
	}
	fault, detail := s.config.Faults.draw(s.config.Seed, id)
	a := &answer{s: s, w: w, left: r.Context().Done(), detail: detail, entry: Entry{ID: id, Arrival: time.Now().UnixNano(), Fault: fault}}
	number := s.ledger.open(a.entry)
	defer func() { s.ledger.close(number, a.entry) }()
	w.Header().Set("X-Request-Id", id)

	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, llm.MaxRequestBytes))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		a.refuse(http.StatusRequestEntityTooLarge, fmt.Sprintf("the request has more than %d bytes", tooLarge.Limit))
		return
	} else if err != nil {
		a.entry.End = EndLeft
		return
	}
	if s.loading() {
		a.refuse(http.StatusServiceUnavailable, "the model is loading")
		return
	}
	a.request, err = llm.ParseRequest(body)
	switch {
	case err != nil:
		a.refuse(http.StatusBadRequest, err.Error())
	case strings.HasSuffix(r.URL.Path, "chat/completions") != (a.request.API == llm.APIChat):
		a.refuse(http.StatusBadRequest, "messages belong to chat/completions, a prompt to completions")
	case a.request.N != 1:
		a.refuse(http.StatusBadRequest, "n must be 1")
	case len(a.request.Stop) > maxStops:
		a.refuse(http.StatusBadRequest, fmt.Sprintf("stop: at most %d", maxStops))
	case s.config.Name != "" && a.request.Model != s.config.Name:
		a.refuse(http.StatusNotFound, fmt.Sprintf("the model %q does not exist", a.request.Model))
	default:
		a.entry.API, a.entry.Stream = a.request.API, a.request.Stream
		a.serve()
	}
}

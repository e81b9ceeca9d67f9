package engine

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/assay-llm/assay/record"
)

const (
	timeout     = 2 * time.Second // of a scrape
	resetting   = 30 * time.Second
	settleTries = 6 // scrapes at the end of a span until the engine is idle …
	settlePause = 100 * time.Millisecond
	maxFailures = 5 // failures that are kept as text
)

// Every is the usual time between two scrapes.
const Every = time.Second

// Source is the metrics endpoint of one engine. Make one with NewSource and
// Connect it before anything else. Its methods are called by one goroutine at a time.
type Source struct {
	url     string
	client  *http.Client
	dialect *dialect
	last    *Snapshot
}

// MetricsURL returns where an engine that serves an OpenAI-compatible API at
// target has its metrics: /metrics at the root of the same host.
func MetricsURL(target string) string {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/metrics"}).String()
}

// CheckURL reports what is wrong with the address of metrics.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("is not the address of metrics; write http://host:port/metrics, or off")
	case u.User != nil:
		return errors.New("holds a password, which would be kept with the run; metrics are read without credentials")
	}
	return nil
}

// NewSource returns the source at an address. certificates are PEM and stand in for
// the system's; nil: the system's.
func NewSource(address string, certificates []byte) (*Source, error) {
	if err := CheckURL(address); err != nil {
		return nil, fmt.Errorf("the address of metrics %w", err)
	}
	t := &http.Transport{MaxIdleConns: 1, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10}
	if certificates != nil {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(certificates) {
			return nil, errors.New("no certificate for the address of metrics")
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	return &Source{url: address, client: &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// URL returns the address.
func (s *Source) URL() string { return s.url }

// Engine returns the engine's name; "" before Connect.
func (s *Source) Engine() string {
	if s.dialect == nil {
		return ""
	}
	return s.dialect.name
}

// Close closes the connection.
func (s *Source) Close() { s.client.CloseIdleConnections() }

// Connect scrapes once, tells the engine and checks its families.
func (s *Source) Connect(ctx context.Context) (Contract, error) {
	e, err := s.fetch(ctx)
	if err != nil {
		return Contract{}, err
	}
	d := detect(e)
	if d == nil {
		return Contract{}, fmt.Errorf("reading %s: its families are of no engine that is known", s.url)
	}
	s.dialect = d
	return d.check(e), nil
}

// fetch asks for the metrics.
func (s *Source) fetch(ctx context.Context) (*exposition, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, http.NoBody)
	if err != nil {
		return nil, err
	}
	q.Header.Set("Accept", "text/plain;version=0.0.4")
	a, err := s.client.Do(q)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reading %s: it answers %d", s.url, a.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(a.Body, maxText+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", s.url, err)
	}
	e, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", s.url, err)
	}
	return e, nil
}

// scrape takes a snapshot; epoch is that of the run.
func (s *Source) scrape(ctx context.Context, epoch time.Time) (*Snapshot, error) {
	asked := time.Now()
	e, err := s.fetch(ctx)
	if err != nil {
		return nil, err
	}
	x := s.dialect.snapshot(e, s.last)
	now := time.Now()
	x.At, x.Took = record.At(now.Sub(epoch)), now.Sub(asked)
	s.last = x
	return x, nil
}

// During runs do, with a scrape before it, one about every interval while it runs,
// and one behind it when the engine is idle again, or after half a second. Scrapes that
// fail do not stop it. The context is for the scrapes before the end; the last one is taken
// even if the context has ended.
func (s *Source) During(ctx context.Context, epoch time.Time, every time.Duration, do func()) Span {
	var span Span
	var within packer
	s.last = nil // what happened between two spans is nobody's
	take := func(ctx context.Context, edge string) *Snapshot {
		x, err := s.scrape(ctx, epoch)
		if err != nil {
			if span.Failed++; span.Failed <= maxFailures {
				span.Failures = append(span.Failures, err.Error())
			}
			return nil
		}
		if x.Edge = edge; edge == "" {
			within.add(x)
		} else {
			span.Snapshots = append(span.Snapshots, x)
		}
		return x
	}
	take(ctx, edgeStart)
	scraping, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-scraping.Done():
				return
			case <-tick.C:
			}
			if scraping.Err() == nil {
				take(context.WithoutCancel(scraping), "") // cut short it would count as a failure
			}
		}
	}()
	do()
	stop()
	<-done
	span.Snapshots = append(span.Snapshots, within.unpack()...)
	s.settle(context.WithoutCancel(ctx), take)
	return span
}

// settle takes the last snapshot: of an idle engine, if it becomes idle soon.
// Engines count a request only when they have seen its end.
func (s *Source) settle(ctx context.Context, take func(context.Context, string) *Snapshot) {
	var last *Snapshot
	for try := range settleTries {
		if try > 0 {
			<-time.After(settlePause) // short and few: not worth a way out
		}
		x := take(ctx, edgeEnd)
		if x == nil {
			continue
		}
		if last != nil {
			last.Edge, last.Buckets = edgeSettling, nil
		}
		last = x
		if x.Values["running"] == 0 && x.Values["waiting"] == 0 {
			return
		}
	}
}

// CanReset reports whether the engine is of a kind that can empty its prefix cache
// on request. Call it after Connect.
func (s *Source) CanReset() bool { return s.dialect.reset != "" }

// ResetCache asks the engine, after Connect, to empty its prefix cache and says in a sentence what
// it answered. ok means that the engine says it did, which is not proof.
func (s *Source) ResetCache(ctx context.Context) (said string, ok bool) {
	if !s.CanReset() {
		return "its engine, " + s.dialect.name + ", cannot empty its prefix cache on request", false
	}
	path := s.dialect.reset
	ctx, cancel := context.WithTimeout(ctx, resetting)
	defer cancel()
	status, body, err := s.post(ctx, path)
	var answer struct {
		Success *bool `json:"success"`
	}
	known := json.Unmarshal(body, &answer) == nil && answer.Success != nil
	switch {
	case err != nil:
		return "asking it to empty its prefix cache: " + err.Error(), false
	case status == http.StatusNotFound && path == "/reset_prefix_cache":
		return "it does not take POST " + path + "; vLLM does with VLLM_SERVER_DEV_MODE=1", false
	case status != http.StatusOK:
		return fmt.Sprintf("it answers %d to POST %s: its prefix cache is as it was", status, path), false
	case known && !*answer.Success:
		return "it refuses to empty its prefix cache, as blocks are in use", false
	case known:
		return "it says that it emptied its prefix cache", true
	}
	return "it took POST " + path + ", which some versions also answer so when they refuse", true
}

// post sends nothing to a path of the host.
func (s *Source) post(ctx context.Context, path string) (status int, body []byte, err error) {
	u, err := url.Parse(s.url)
	if err != nil {
		return 0, nil, err
	}
	u.Path, u.RawQuery = path, ""
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	a, err := s.client.Do(q)
	if err != nil {
		return 0, nil, err
	}
	defer a.Body.Close()
	body, err = io.ReadAll(io.LimitReader(a.Body, 64<<10))
	return a.StatusCode, body, err
}

// Words says in sentences what a reader of a run must know about the contract;
// nothing when all is as it should be.
func (c *Contract) Words() []string {
	var out []string
	say := func(what string, names []string) {
		if len(names) > 0 {
			more := ""
			if len(names) > 6 {
				more = fmt.Sprintf(" and %d more", len(names)-6)
				names = names[:6]
			}
			out = append(out, what+": "+strings.Join(names, ", ")+more)
		}
	}
	say("error: metrics of another type, which are not read", c.Changed)
	say("metrics under other names, which are read", c.Renamed)
	say("metrics that are not there, so that what they tell is unknown", c.Missing)
	return out
}

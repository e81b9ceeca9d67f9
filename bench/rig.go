package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/host"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/load"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/workload"
)

// rig is the real client before a null server, to be driven at one rate after
// another.
type rig struct {
	shape  record.Shape
	url    string
	client *llm.Client
	dir    string // of the journals
	tries  int
	stop   func() error // ends the null server
}

// trial is what came of one rate.
type trial struct {
	rate    float64 // planned
	fit     bool
	reason  string  // why not
	events  float64 // with payload, per second
	streams float64 // in flight, on average
	client  float64 // share of all CPUs' time; negative: unknown
	server  float64
	stamps  bool
	over    record.Overhead
}

// sendFor is how long a trial sends.
const sendFor = 700 * time.Millisecond

// newRig starts the null server and makes a client of it. The journals go into a
// folder below dir that close removes.
func newRig(ctx context.Context, null func(context.Context, record.Shape) *exec.Cmd, shape record.Shape, dir string) (_ *rig, err error) {
	g := &rig{shape: shape}
	if g.url, g.stop, err = startNull(null(ctx, shape)); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	if dir, err = host.Existing(dir); err != nil {
		return nil, err
	}
	if g.dir, err = os.MkdirTemp(dir, ".assay-doctor-*"); err != nil {
		return nil, fmt.Errorf("making a folder for the journals: %w", err)
	}
	if g.client, err = llm.NewClient(llm.Target{URL: g.url, Model: "null", KeepText: -1}); err != nil {
		return nil, err
	}
	return g, nil
}

func (g *rig) close() error {
	var err error
	if g.client != nil {
		err = g.client.Close()
	}
	if g.dir != "" {
		err = errors.Join(err, os.RemoveAll(g.dir))
	}
	return errors.Join(err, g.stop())
}

// startNull starts a process that serves load.ServeNull, and reads its address
// from the first line that it writes. It ends with its standard input.
func startNull(cmd *exec.Cmd) (url string, stop func() error, err error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, fmt.Errorf("starting the null server: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, fmt.Errorf("starting the null server: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("starting the null server: %w", err)
	}
	stop = func() error {
		err := in.Close()
		return errors.Join(err, cmd.Wait())
	}
	line, err := bufio.NewReader(io.LimitReader(out, 256)).ReadString('\n')
	if url = strings.TrimSpace(line); err != nil || !strings.HasPrefix(url, "http://127.0.0.1:") {
		return "", nil, errors.Join(fmt.Errorf("the null server said %q instead of its address", line), err, stop())
	}
	return url, stop, nil
}

// serverCPU asks the null server for the CPU time of its process.
func (g *rig) serverCPU(ctx context.Context) time.Duration {
	ctx, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"/cpu", nil)
	if err != nil {
		return -1
	}
	ask.Close = true
	answer, err := http.DefaultClient.Do(ask)
	if err != nil {
		return -1
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 32))
	if err != nil {
		return -1
	}
	ns, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return -1
	}
	return time.Duration(ns)
}

// spec is the workload of a trial: independent users at a rate.
func (g *rig) spec(rate float64, send time.Duration) workload.Spec {
	return workload.Spec{
		Arrivals: workload.Arrivals{Poisson: &workload.Rate{Fixed: config.Rate(rate)}}, For: config.Duration(send),
		Prompts: workload.Prompts{Synthetic: workload.Fixed(config.Count(max(g.shape.PromptBytes/wordBytes, 1)))},
		Output:  workload.Fixed(config.Count(g.shape.Events)), Stream: &g.shape.Stream,
	}
}

const wordBytes = 5 // of a synthetic prompt's token, about

// try sends at a rate and says whether the client was fit for it.
func (g *rig) try(ctx context.Context, rate float64, send time.Duration) (trial, error) {
	g.tries++
	plan, err := workload.New("doctor", g.spec(rate, send), nil, uint64(g.tries), "")
	if err != nil {
		return trial{}, err
	}
	dir := filepath.Join(g.dir, strconv.Itoa(g.tries))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return trial{}, fmt.Errorf("keeping a journal: %w", err)
	}
	writer, err := record.Create(record.OS(), dir)
	if err != nil {
		return trial{}, fmt.Errorf("keeping a journal: %w", err)
	}
	defer func() { _ = writer.Close() }()
	if _, err := g.client.Open(ctx, int(min(rate*g.answer().Seconds()*1.5+8, 2048))); err != nil && ctx.Err() != nil {
		return trial{}, context.Cause(ctx)
	}
	defer load.Slack()() // as a run has it
	epoch := time.Now()
	monitor := load.NewMonitor(epoch, false)
	var mu sync.Mutex
	var records []record.Record
	driver, err := load.New(load.Config{
		Plan: plan, Variant: "null", Client: g.client, Epoch: epoch, Monitor: monitor, Drain: 2 * time.Second,
		Sink: func(r *record.Record, _ llm.Answer) error {
			err := writer.Append(r)
			mu.Lock()
			defer mu.Unlock()
			records = append(records, *r)
			return err
		},
	})
	if err != nil {
		return trial{}, err
	}
	defer driver.Close()
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	watched := make(chan error, 1)
	go func() { watched <- monitor.Run(watching) }()
	server, client := g.serverCPU(ctx), host.CPUTime()
	_, err = driver.Block(ctx, 0)
	took := time.Since(epoch)
	client, server = spent(client, host.CPUTime()), spent(server, g.serverCPU(ctx))
	stop()
	<-watched
	if err != nil {
		return trial{}, fmt.Errorf("driving the client: %w", err)
	}
	t := judgeTrial(records, monitor.Certificate(records), took, client, server)
	t.rate, t.over.Rate = rate, float64(len(records))/send.Seconds()
	t.events, t.streams = t.events/send.Seconds(), t.streams/send.Seconds()
	return t, nil
}

// spent is the CPU time between two readings; negative when one is unknown.
func spent(from, to time.Duration) time.Duration {
	if from < 0 || to < 0 {
		return -1
	}
	return to - from
}

// answer is how long the null server takes for an answer.
func (g *rig) answer() time.Duration {
	if !g.shape.Stream {
		return 0
	}
	return time.Duration(g.shape.Events-1) * g.shape.Gap
}

// most CPU that the client may take in a trial. The certificate of a run allows as
// much for five seconds; a trial is shorter.
const maxTrialCPU = 0.85

// judgeTrial makes a trial of its records, which took so long in all, and of the
// CPU time that the two processes took. Events and streams are left as sums.
func judgeTrial(records []record.Record, c record.Certificate, took, client, server time.Duration) trial {
	t := trial{client: -1, server: -1, over: record.Overhead{CPU: -1}}
	var ttft, lags []time.Duration
	var busy time.Duration
	failed, events, why := 0, 0, ""
	for i := range records {
		r := &records[i]
		if r.Outcome.Group() == record.GroupFailed {
			failed++
			why = string(r.Outcome) + ": " + r.Detail
		}
		if d, ok := r.EOF.Sub(r.Send); ok {
			busy += d
		}
		if lag, ok := r.OwnLag(); ok {
			lags = append(lags, lag)
		}
		if first := r.First(); first != nil {
			if d, ok := first.At.Sub(r.Due); ok {
				ttft = append(ttft, d)
			}
		}
		for j := range r.Events {
			if r.Events[j].Kind.Payload() {
				events++
			}
			t.stamps = t.stamps || r.Events[j].Lag >= 0
		}
	}
	t.events, t.streams = float64(events), busy.Seconds()
	if n := len(records); n > 0 && client >= 0 {
		t.over.CPU = client / time.Duration(n)
	}
	t.over.TTFTP50, t.over.TTFTP99, t.over.LagP99 = order(ttft, .5), order(ttft, .99), order(lags, .99)
	cpus := float64(took) * float64(runtime.GOMAXPROCS(0))
	if client >= 0 {
		t.client = float64(client) / cpus
	}
	if server >= 0 {
		t.server = float64(server) / cpus
	}
	switch {
	case !c.Fit:
		t.reason = c.Reasons[0]
	case t.client > maxTrialCPU:
		t.reason = fmt.Sprintf("the client took %.0f %% of its CPU", t.client*100)
	case float64(failed) > 0.001*float64(len(records)):
		t.reason = fmt.Sprintf("%d of %d requests failed (%s)", failed, len(records), why)
	case len(records) == 0:
		t.reason = "nothing was sent"
	}
	t.fit = t.reason == ""
	return t
}

// order returns an order statistic of d, which it sorts; 0 when d is empty.
func order[T time.Duration | float64](d []T, p float64) T {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[int(p*float64(len(d)-1))]
}

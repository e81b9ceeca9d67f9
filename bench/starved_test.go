package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/load"
	"github.com/assay-llm/assay/record"
	"github.com/assay-llm/assay/sim"
)

// role is the environment variable by which the test binary is told to be a
// client or a server in a process of its own.
const role = "ASSAY_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "client":
		os.Exit(beClient(os.Args[1], os.Args[2]))
	case "server":
		os.Exit(beServer())
	case "null":
		os.Exit(beNull(os.Args[1]))
	}
	os.Exit(m.Run())
}

// told is what a client process says of its run.
type told struct {
	Dir, State, Error string
	Grade, Reason     string
	Fit               bool
	Reasons           []string
}

// beClient runs a suite, says when it starts to send, and what came of it.
func beClient(suite, runs string) int {
	s, err := Load(suite)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, stop := context.WithCancel(context.Background())
	watch, watched := new(Watch), make(chan struct{})
	go func() {
		defer close(watched)
		poll := time.NewTicker(5 * time.Millisecond)
		defer poll.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-poll.C:
				if s, ok := watch.Step(); ok && !s.WarmUp {
					fmt.Println("sending")
					return
				}
			}
		}
	}()
	r, err := Run(ctx, s, Options{Runs: runs, Watch: watch})
	stop()
	<-watched
	var t told
	if err != nil {
		t.Error = err.Error()
	}
	if r != nil {
		t.Dir, t.State, t.Grade, t.Reason = r.Dir, r.Manifest.State, r.Verdict.Grade.String(), r.Verdict.Reason
		t.Fit, t.Reasons = r.Manifest.Client.Fit, r.Manifest.Client.Reasons
	}
	if err := json.NewEncoder(os.Stdout).Encode(t); err != nil {
		return 2
	}
	return 0
}

// beServer serves a simulated engine, says where, and ends with its standard
// input.
func beServer() int {
	engine, err := sim.NewServer(sim.Config{MaxSeqs: 512})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	fmt.Println(l.Addr())
	if err := ServeSim(ctx, l, engine); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// beNull is a null server of that shape, says where, and ends with its standard
// input.
func beNull(text string) int {
	var shape record.Shape
	err := json.Unmarshal([]byte(text), &shape)
	var l net.Listener
	if err == nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err == nil {
		ctx, stop := context.WithCancel(context.Background())
		go func() {
			defer stop()
			_, _ = io.Copy(io.Discard, os.Stdin)
		}()
		fmt.Printf("http://%s\n", l.Addr())
		err = load.ServeNull(ctx, l, shape)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// startServer starts a simulated engine in a process of its own and returns its
// URL.
func startServer(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), role+"=server"), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + strings.TrimSpace(line)
}

// starvation is a way to take from a client what it needs.
type starvation struct {
	name    string
	rate    int // requests per second
	output  int // tokens of an answer, of 8 ms each
	shell   string
	starve  func(ctx context.Context, p *os.Process)
	reasons []string // one of them stands in the certificate; none: it is healthy
}

var starvations = []starvation{
	{name: "healthy", rate: 40, output: 30},
	{name: "fifth of a CPU", rate: 40, output: 30, starve: duty(10*time.Millisecond, 40*time.Millisecond), reasons: []string{"sent late", "stamped late"}},
	{name: "stopped for 300 ms", rate: 40, output: 30, starve: pause(time.Second, 300*time.Millisecond), reasons: []string{"stood still for"}},
	{name: "64 descriptors", rate: 120, output: 125, shell: "ulimit -n 64", reasons: []string{"the client itself failed", "of its 64 descriptors"}},
}

// after reports whether the time passed before the context ended.
func after(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// duty lets the process run and stops it, in turns.
func duty(runs, stops time.Duration) func(context.Context, *os.Process) {
	return func(ctx context.Context, p *os.Process) {
		for {
			_ = p.Signal(syscall.SIGSTOP)
			again := after(ctx, stops)
			_ = p.Signal(syscall.SIGCONT)
			if !again || !after(ctx, runs) {
				return
			}
		}
	}
}

// pause stops the process once.
func pause(wait, stop time.Duration) func(context.Context, *os.Process) {
	return func(ctx context.Context, p *os.Process) {
		if after(ctx, wait) {
			_ = p.Signal(syscall.SIGSTOP)
			after(ctx, stop)
			_ = p.Signal(syscall.SIGCONT)
		}
	}
}

// witness is how late a process that does nothing else wakes up: what the rest
// of the machine does to a client.
type witness struct{ p99, most time.Duration }

// quiet reports whether a client beside the witness must have been healthy: its
// certificate allows two of its hundred requests to be later than this.
func (w witness) quiet() bool { return w.most < 5*time.Millisecond }

// watch wakes up every 2 ms until the context ends.
func watch(ctx context.Context) witness {
	const beat = 2 * time.Millisecond
	var late []time.Duration
	for due := time.Now().Add(beat); after(ctx, time.Until(due)); due = due.Add(beat) {
		d := time.Since(due)
		late = append(late, d)
		due = due.Add(d.Truncate(beat)) // beats that were slept through are one lateness
	}
	if len(late) == 0 {
		return witness{}
	}
	slices.Sort(late)
	return witness{late[len(late)*99/100], late[len(late)-1]}
}

// run runs one client to its end, with a witness beside it if it is healthy.
func (s *starvation) run(t *testing.T, url string) (out told, beside witness) {
	t.Helper()
	dir := t.TempDir()
	suite := filepath.Join(dir, "suite.yaml")
	text := fmt.Sprintf(`version: 1
name: starved
variants: {candidate: {url: %s}}
workloads: {chat: {arrivals: {poisson: %d/s}, for: 2500ms, prompts: {synthetic: 30}, output: %d, warmup: {requests: 4}}}
contract: {clauses: [{need: median(ttft) <= 10s}]}
`, url, s.rate, s.output)
	if err := os.WriteFile(suite, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], suite, filepath.Join(dir, "runs"))
	if s.shell != "" {
		cmd = exec.CommandContext(t.Context(), "sh", "-c", s.shell+`; exec "$0" "$@"`, os.Args[0], suite, filepath.Join(dir, "runs"))
	}
	cmd.Env, cmd.Stderr = append(os.Environ(), role+"=client"), os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	starved := make(chan struct{})
	lines := bufio.NewReader(pipe)
	if line, err := lines.ReadString('\n'); err != nil || line != "sending\n" {
		t.Errorf("the client said %q, %v", line, err)
	}
	go func() {
		defer close(starved)
		if s.starve != nil {
			s.starve(ctx, cmd.Process)
		} else {
			beside = watch(ctx)
		}
	}()
	err = json.NewDecoder(lines).Decode(&out)
	stop()
	<-starved
	if ended := cmd.Wait(); err != nil || ended != nil {
		t.Fatalf("the client ended with %v: %v", ended, err)
	}
	return out, beside
}

// judge says what is wrong with what a client said of its run.
func (s *starvation) judge(t *testing.T, out told, beside witness) bool {
	t.Helper()
	bad := false
	complain := func(format string, a ...any) {
		bad = true
		t.Errorf(format, a...)
	}
	if out.Error != "" || out.State != StateDone {
		complain("state %q: %s", out.State, out.Error)
	}
	if len(s.reasons) == 0 {
		switch {
		case out.Fit && out.Grade == contract.Pass.String():
			return !bad
		case out.Fit || beside.quiet() || out.Grade != contract.Inconclusive.String():
			complain("a healthy client has no verdict: %s: %s", out.Grade, out.Reason)
		}
		t.Logf("a busy machine starved this client, and a witness beside it was late by %v at p99 and %v at most: %s", beside.p99, beside.most, out.Reason)
		return false
	}
	reasons := strings.Join(out.Reasons, "; ")
	named := false
	for _, r := range s.reasons {
		named = named || strings.Contains(reasons, r)
	}
	if out.Fit || out.Grade != contract.Inconclusive.String() || !named {
		complain("fit %v, %s for %q, want inconclusive for %q", out.Fit, out.Grade, reasons, s.reasons)
	}
	if r, err := Open(out.Dir); err != nil || r.Verdict.Grade != contract.Inconclusive {
		complain("when opened: %v, %v", r, err)
	}
	return !bad
}

// TestStarvedClients starves a client in three ways: each time it is refused a
// verdict, for the right reason. A healthy client gets its verdict each time. A
// client is not healthy if others keep the machine so busy that a witness, which
// does nothing but wake up, is late too: such runs are told, and not counted.
func TestStarvedClients(t *testing.T) {
	if os.Getenv("ASSAY_SLOW") == "" {
		t.Skip("41 runs of 3 s: set ASSAY_SLOW=1, or run make test-slow")
	}
	url := startServer(t)
	const runs, ofEach = 20, 7 // healthy ones, and starved ones of each kind
	good, all := make(map[string]int), make(map[string]int)
	for i := range runs {
		for _, s := range starvations {
			if s.reasons != nil && i >= ofEach {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", s.name, i), func(t *testing.T) {
				all[s.name]++
				out, beside := s.run(t, url)
				if s.judge(t, out, beside) {
					good[s.name]++
				}
				if i == 0 {
					t.Logf("%s: %s", out.Grade, out.Reason)
				}
			})
		}
	}
	for _, s := range starvations {
		t.Logf("%s: as it should be in %d of %d runs", s.name, good[s.name], all[s.name])
	}
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"assay": main})
}

// TestScripts pins what commands print and how they exit.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			examples, err := filepath.Abs("../../examples")
			env.Setenv("EXAMPLES", examples)
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, "cache"))
			return err
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "made": made, "waitfor": waitFor, "setglob": setGlob,
			"ceiling": plantCeiling, "receive": receive,
		},
	})
}

// exits runs a program and demands its exit code: exits CODE PROGRAM [ARG...].
// Live runs also allow 3 ("1|3"): a machine that is too busy to measure gets no
// verdict, as it should. Verdicts are pinned on runs that "made" wrote.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE[|CODE] PROGRAM [ARG...]")
	}
	code := "0"
	var ended *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &ended) {
		code = fmt.Sprint(ended.ExitCode())
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if !slices.Contains(strings.Split(args[0], "|"), code) {
		ts.Fatalf("%s exits with %s, want %s", args[1], code, args[0])
	}
}

// waitFor waits until a file of that pattern holds something.
func waitFor(ts *testscript.TestScript, _ bool, args []string) {
	give := time.After(30 * time.Second)
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		files, err := filepath.Glob(ts.MkAbs(args[0]))
		ts.Check(err)
		if slices.ContainsFunc(files, func(f string) bool {
			info, err := os.Stat(f)
			return err == nil && info.Size() > 200
		}) {
			return
		}
		select {
		case <-tick.C:
		case <-give:
			ts.Fatalf("no %s after 30 s", args[0])
		}
	}
}

// setGlob sets a variable to the one file of a pattern: setglob NAME PATTERN.
func setGlob(ts *testscript.TestScript, _ bool, args []string) {
	files, err := filepath.Glob(ts.MkAbs(args[1]))
	ts.Check(err)
	if len(files) != 1 {
		ts.Fatalf("%s names %d files, want 1", args[1], len(files))
	}
	ts.Setenv(args[0], files[0])
}

// receive starts a server that keeps what is posted to it: receive NAME FILE STATUS…
// sets NAME to its address, and appends the body of every post to FILE. It answers
// with the statuses in turn, the last one for ever.
func receive(ts *testscript.TestScript, _ bool, args []string) {
	file, statuses := ts.MkAbs(args[1]), args[2:]
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, err := io.ReadAll(r.Body)
		ts.Check(err)
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		ts.Check(err)
		_, err = fmt.Fprintf(f, "%s %s\n", r.URL.Path, body)
		ts.Check(errors.Join(err, f.Close()))
		status, err := strconv.Atoi(statuses[0])
		ts.Check(err)
		if len(statuses) > 1 {
			statuses = statuses[1:]
		}
		w.WriteHeader(status)
	}))
	ts.Defer(s.Close)
	ts.Setenv(args[0], s.URL+"/services/SECRET")
}

// TestSimServesAndStops drives one command by another, as two terminals would.
func TestSimServesAndStops(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancelCause(t.Context())
	out, in := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"sim", "--listen", "127.0.0.1:0", "--engine", "{step: 2ms}"}, nil, in, io.Discard, func(string) string { return "" })
	}()
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var report, notes bytes.Buffer
	args := []string{
		"load", "--url", strings.TrimSpace(url), "--model", "any", "--request-rate", "50", "--num-prompts", "40",
		"--random-output-len", "4", "--runs", t.TempDir(), "--json",
	}
	if got := run(t.Context(), args, nil, &report, &notes, os.Getenv); got != exitPass && got != exitInconclusive {
		t.Errorf("load exits with %d:\n%s", got, &notes)
	}
	if !strings.Contains(report.String(), `"assay.report/1"`) {
		t.Errorf("load --json printed %.200q", report.String())
	}
	stop(errInterrupted)
	if got := <-code; got != exitPass {
		t.Errorf("sim, told to stop, exits with %d, want 0", got)
	}
}

func TestSimSaysThatThePortIsTaken(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var notes bytes.Buffer
	if got := run(t.Context(), []string{"sim", "--listen", l.Addr().String()}, nil, io.Discard, &notes, os.Getenv); got != exitUnmeasured {
		t.Errorf("sim exits with %d, want %d", got, exitUnmeasured)
	}
	if got := notes.String(); !strings.Contains(got, "the port is taken\n  hint: ") {
		t.Errorf("sim says %q", got)
	}
}

// TestDocumentedCommands runs every "$ assay" line of the documentation, in the
// root of the repository. A line says how it ends with "# exits N".
func TestDocumentedCommands(t *testing.T) {
	if os.Getenv("ASSAY_SLOW") == "" {
		t.Skip("ASSAY_SLOW is not set: this runs every documented command, which takes a minute")
	}
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	dir := t.TempDir()
	for _, file := range append(files, "../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(text), "\n") {
			command, ok := strings.CutPrefix(strings.TrimPrefix(line, "$ go run ./cmd/assay "), "$ assay ")
			if rest, is := strings.CutPrefix(line, "$ go run ./cmd/assay "); is {
				command, ok = rest, true
			}
			if !ok || seen[command] {
				continue
			}
			seen[command] = true
			t.Run(fmt.Sprintf("%s:%d", filepath.Base(file), n+1), func(t *testing.T) { documented(t, command, dir) })
		}
	}
	if len(seen) < 5 {
		t.Errorf("only %d documented commands found", len(seen))
	}
}

// age returns when a run directory got its manifest, or a search its account.
func age(t *testing.T, dir string) time.Time {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, "manifest.json"))
	if errors.Is(err, fs.ErrNotExist) {
		info, err = os.Stat(filepath.Join(dir, "capacity.json"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

// documented runs one line through a shell, so that quotes and pipes mean what
// they mean to the reader. RUN stands for the last run directory.
func documented(t *testing.T, command, runs string) {
	command, ends, _ := strings.Cut(command, "# exits ")
	want := "0"
	if ends != "" {
		want = strings.TrimSpace(ends)
	}
	last, err := filepath.Glob(filepath.Join(runs, "*-*"))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(last, func(a, b string) int { return age(t, a).Compare(age(t, b)) }) // two may begin in one millisecond
	for i, name := range []string{"RUN", "OLD"} {
		if at := len(last) - 1 - i; at >= 0 {
			command = strings.ReplaceAll(command, "runs/"+name, last[at])
		}
	}
	if first, _, _ := strings.Cut(command, " "); first == "run" || first == "load" || first == "import" {
		command += " --runs " + runs // not into the repository
	}
	bin := filepath.Join(t.TempDir(), "assay")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, bin); err != nil { // the test binary is assay when it is called so
		t.Fatal(err)
	}
	for try := 1; ; try++ {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", `assay() { "$ASSAY" "$@"; }; assay `+command)
		cmd.Dir = "../.."
		cmd.Env = append(os.Environ(), "ASSAY="+bin)
		out, err := cmd.CombinedOutput()
		got := "0"
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			got = fmt.Sprint(ended.ExitCode())
		} else if err != nil {
			t.Fatal(err)
		}
		busy := got == "3" && strings.Contains(string(out), "client unfit") // as in exits
		switch {
		case got == want:
			return
		case !busy:
			t.Fatalf("assay %s exits with %s, want %s:\n%s", command, got, want, out)
		case try == 3:
			t.Logf("assay %s got no verdict: the machine is too busy to measure", command)
			return
		}
	}
}

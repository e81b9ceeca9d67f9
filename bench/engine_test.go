package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"

	"github.com/assay-llm/assay/contract"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
)

// stories is a small trained model; its greedy answer to "Once upon a time" is
// published with it.
const (
	stories     = "../../shared/data/models/stories260K.gguf"
	storiesText = ", there was a little girl named Lily. She loved to play outside in the park. One day, she saw a big, red ball."
)

// realEngine is llama.cpp in a process of its own.
type realEngine struct {
	url     string // http://127.0.0.1:PORT
	trained bool   // the model is stories; else its weights are random
}

// startEngine starts the engine that ASSAY_ENGINE names, with the trained model
// if it is there, else with one of random weights.
func startEngine(t *testing.T) *realEngine {
	t.Helper()
	wantEngine(t)
	e := &realEngine{trained: true}
	model, err := filepath.Abs(stories)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(model); err != nil {
		e.trained, model = false, filepath.Join(t.TempDir(), "random.gguf")
		make := exec.CommandContext(t.Context(), "go", "run", "-C", "../scripts/mkgguf", ".", "-dim", "64", "-layers", "2", "-heads", "4", "-kv", "2", "-ffn", "192", "-vocab", "512", "-ctx", "512", "-o", model)
		if out, err := make.CombinedOutput(); err != nil {
			t.Fatalf("making a model: %v\n%s", err, out)
		}
	}
	e.url = runEngine(t, model, 512)
	return e
}

// wantEngine skips the test where no engine is installed.
func wantEngine(t *testing.T) {
	t.Helper()
	home := os.Getenv("ASSAY_ENGINE")
	if home == "" {
		t.Skip("ASSAY_ENGINE does not name an installed engine: run make test-engine")
	}
	if _, err := os.Stat(home); err != nil {
		t.Fatalf("ASSAY_ENGINE: %v", err)
	}
}

// runEngine serves the weights of a file with a context of so many tokens until
// the test ends, and returns the server's URL. template is a file of a chat template.
func runEngine(t *testing.T, model string, context int, template ...string) string {
	t.Helper()
	cmd := exec.Command("../scripts/engine/run.sh", append([]string{model, "0", "4", strconv.Itoa(context)}, template...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
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
	t.Cleanup(func() { // the server ends when its standard input closes
		_ = in.Close()
		late := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the engine ended with %v:\n%s", err, said.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening ")
	if err != nil || !ok {
		t.Fatalf("the engine said %q, %v:\n%s", line, err, said.String())
	}
	return "http://" + address
}

// metrics are the engine's own counters.
func (e *realEngine) metrics(t *testing.T) map[string]float64 {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	m := make(map[string]float64)
	for line := range strings.Lines(string(body)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil {
			m[strings.TrimPrefix(name, "llamacpp:")] = v
		}
	}
	if _, ok := m["tokens_predicted_total"]; !ok {
		t.Fatalf("no counters in:\n%s", body)
	}
	return m
}

// reconcile holds every record against what the engine says of the same request
// and the sums against its counters, which grew from before to now.
func (e *realEngine) reconcile(t *testing.T, records []record.Record, before map[string]float64) {
	t.Helper()
	var prompt, cached, output int64
	for i := range records {
		r := &records[i]
		if !r.Success() {
			t.Errorf("shot %d: %s (%d %s): %s", r.Shot, r.Outcome, r.Status, r.Code, r.Detail)
			continue
		}
		p, ok1 := r.Prompt.N()
		n, ok2 := r.Output.N()
		held, ok3 := r.Cached.N()
		if !ok3 || held < 0 || held >= p {
			t.Errorf("shot %d: %d of %d prompt tokens from the cache", r.Shot, held, p)
		}
		if !ok1 || !ok2 || n < 1 || n > r.MaxTokens || p < 1 {
			t.Errorf("shot %d: %d prompt and %d output tokens of at most %d", r.Shot, p, n, r.MaxTokens)
		}
		if finish := r.Finish; finish != "length" && finish != "stop" || finish == "length" && n != r.MaxTokens {
			t.Errorf("shot %d: finish %q after %d of %d tokens", r.Shot, finish, n, r.MaxTokens)
		}
		prompt, cached, output = prompt+p, cached+held, output+n
		e.timings(t, r)
	}
	after := e.metrics(t)
	if d := after["prompt_tokens_total"] - before["prompt_tokens_total"]; d != float64(prompt-cached) {
		t.Errorf("by the records %d prompt tokens were computed, the engine counted %v", prompt-cached, d)
	}
	if d := after["prompt_tokens_cached_total"] - before["prompt_tokens_cached_total"]; d != float64(cached) {
		t.Errorf("by the records %d prompt tokens came from the cache, the engine counted %v", cached, d)
	}
	if d := after["tokens_predicted_total"] - before["tokens_predicted_total"]; d != float64(output) {
		t.Errorf("the records have %d output tokens, the engine counted %v", output, d)
	}
	t.Logf("%d records, %d prompt tokens (%d of them cached) and %d output tokens, as the engine counts them", len(records), prompt, cached, output)
}

// timings holds the engine's clock against ours: what it measures lies within
// what we measure.
func (e *realEngine) timings(t *testing.T, r *record.Record) {
	t.Helper()
	predicted, ok := r.Server["predicted"]
	prefill, ok2 := r.Server["prompt"]
	queue, ok3 := r.Server["queue"]
	if !ok || !ok2 || !ok3 {
		t.Errorf("shot %d: no timings of the engine: %v", r.Shot, r.Server)
		return
	}
	e2e, ok := r.EOF.Sub(r.Send)
	if !ok || e2e < queue+prefill+predicted {
		t.Errorf("shot %d: the engine took %v + %v + %v, we saw it take %v", r.Shot, queue, prefill, predicted, e2e)
	}
	if first := r.First(); r.Stream && first != nil {
		if ttft, ok := first.At.Sub(r.Send); !ok || ttft < queue+prefill {
			t.Errorf("shot %d: the first token came after %v, before its prefill was done (%v + %v)", r.Shot, ttft, queue, prefill)
		}
	}
}

// TestEngineReconciles runs suites against the real engine over both APIs, with
// and without streams, open and closed, and at twice the streams that it has
// sequences for.
func TestEngineReconciles(t *testing.T) {
	e := startEngine(t)
	const open, closed = "{constant: 20/s}", "{concurrency: 2, stagger: 50ms}"
	for _, c := range []struct {
		name, api, arrivals string
		stream              bool
		requests, output    int
	}{
		{"chat streamed", llm.APIChat, open, true, 30, 12},
		{"chat whole", llm.APIChat, open, false, 30, 12},
		{"completions streamed", llm.APICompletions, closed, true, 30, 12},
		{"completions whole", llm.APICompletions, closed, false, 30, 12},
		{"saturated", llm.APIChat, "{concurrency: 8, stagger: 10ms}", true, 40, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := e.metrics(t)
			s := parseSuite(t, fmt.Sprintf(`variants: {candidate: {url: %s, api: %s}}
workloads: {w: {arrivals: %s, requests: %d, prompts: {synthetic: {uniform: {min: 5, max: 30}}}, output: %d, temperature: 0, stream: %v, warmup: {requests: 2}}}
contract: {clauses: [{id: errors, need: count(failed) < 1}, {id: quick, need: median(e2e) <= 1h}, {id: impossible, need: median(e2e) <= 1us}]}
`, e.url, c.api, c.arrivals, c.requests, c.output, c.stream))
			r, err := Run(t.Context(), s, Options{Runs: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			checkLedger(t, r, 0)
			e.reconcile(t, r.Records, before)
			checkSameWhenOpened(t, r)
			if r.Verdict.Grade == contract.Pass {
				t.Errorf("an answer within a microsecond passes: %s", r.Verdict.Reason)
			}
			for i := range r.Records {
				rec := &r.Records[i]
				payload := 0
				for _, ev := range rec.Events {
					if ev.Kind.Payload() {
						payload++
					}
				}
				if n, _ := rec.Output.N(); c.stream && (payload < 1 || int64(payload) > n) || !c.stream && payload != 1 {
					t.Errorf("shot %d: %d payload events for %d tokens", rec.Shot, payload, n)
				}
			}
		})
	}
}

// TestEnginePrefixHits has all requests of a user group begin alike: the hit ratio
// of the report is the engine's own, and with the salt of a run a second run of
// the same seed finds nothing but what it put there itself.
func TestEnginePrefixHits(t *testing.T) {
	e := startEngine(t)
	for _, c := range []struct {
		name, prefix string
		least, most  float64 // hit ratio
	}{
		{"shared beginning", "prefix: {tokens: 100, groups: 1}, ", .5, 1},
		{"the same seed again", "prefix: {tokens: 100, groups: 1}, ", .5, 1},
		{"nothing shared", "", 0, .1},
		{"nothing shared, the same seed again", "", 0, .1},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := e.metrics(t)
			s := parseSuite(t, fmt.Sprintf(`seed: 7
variants: {candidate: {url: %s, api: completions}}
workloads: {w: {arrivals: {concurrency: 2, stagger: 50ms}, requests: 40, prompts: {synthetic: 40}, %soutput: 4, temperature: 0}}
contract: {clauses: [{id: errors, need: count(failed) < 1}]}
`, e.url, c.prefix))
			r, err := Run(t.Context(), s, Options{Runs: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			e.reconcile(t, r.Records, before)
			after := e.metrics(t)
			hit := after["prompt_tokens_cached_total"] - before["prompt_tokens_cached_total"]
			all := hit + after["prompt_tokens_total"] - before["prompt_tokens_total"]
			if n := len(r.Manifest.Engines); n != 1 {
				t.Fatalf("%d accounts of the engine, want 1", n)
			}
			got := r.Manifest.Engines[0].Values["prefix_hit_ratio"]
			if want := hit / all; got != want || want < c.least || want > c.most {
				t.Errorf("the report says %v of the prompt tokens came from the cache, the engine %v of %v; want from %v to %v", got, hit, all, c.least, c.most)
			}
		})
	}
}

func (e *realEngine) client(t *testing.T, api string) *llm.Client {
	t.Helper()
	c, err := llm.NewClient(llm.Target{URL: e.url, API: api})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestEngineText asks for the greedy text: over every path of the client it is
// the published one.
func TestEngineText(t *testing.T) {
	e := startEngine(t)
	zero, texts := 0.0, make(map[string]string)
	for _, api := range []string{llm.APIChat, llm.APICompletions} {
		for _, stream := range []bool{true, false} {
			rec := new(record.Record)
			a := e.client(t, api).Do(t.Context(), time.Now(), &llm.Request{Prompt: "Once upon a time", MaxTokens: 64, Stream: stream, Temperature: &zero}, rec)
			if !rec.Success() || a.Clipped || rec.OutputBytes != int64(len(a.Text)) {
				t.Errorf("%s: %s: %s (%d bytes of %d)", api, rec.Outcome, rec.Detail, len(a.Text), rec.OutputBytes)
			}
			texts[fmt.Sprintf("%s, stream %v", api, stream)] = a.Text
		}
	}
	want := texts["chat, stream true"]
	if e.trained {
		want = storiesText
	} else {
		t.Log("the published text is not checked: " + stories + " is not there, and the weights are random")
	}
	for how, text := range texts {
		if len(text) < len(want) || text[:len(want)] != want || want == "" {
			t.Errorf("%s (-want +got):\n%s", how, diff.Diff(want, text))
		}
	}
}

// TestEngineRefuses asks for more than the context holds: a fault of the client,
// with the engine's own code.
func TestEngineRefuses(t *testing.T) {
	e := startEngine(t)
	for _, stream := range []bool{true, false} {
		rec := new(record.Record)
		e.client(t, llm.APIChat).Do(t.Context(), time.Now(), &llm.Request{Prompt: strings.Repeat("Once upon a time ", 300), MaxTokens: 8, Stream: stream}, rec)
		if rec.Outcome != record.HTTP4xx || rec.Status != 400 || rec.Code != "context_length_exceeded" || len(rec.Events) != 0 {
			t.Errorf("stream %v: %s %d %q: %s", stream, rec.Outcome, rec.Status, rec.Code, rec.Detail)
		}
	}
}

// TestEngineIsFreed cancels as many requests as the engine has sequences, in the
// middle of their answers: the next ones are served.
func TestEngineIsFreed(t *testing.T) {
	e := startEngine(t)
	c := e.client(t, llm.APICompletions)
	zero := 0.0
	long := &llm.Request{Prompt: "Once upon a time", MaxTokens: 500, Stream: true, IgnoreEOS: true, Temperature: &zero}
	for i := range 8 {
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := time.AfterFunc(time.Duration(2+i)*time.Millisecond, func() { cancel(llm.ErrPlanned) })
		rec := new(record.Record)
		c.Do(ctx, time.Now(), long, rec)
		stop.Stop()
		cancel(nil)
		if rec.Outcome != record.ClientCancelled {
			t.Errorf("request %d: %s: %s", i, rec.Outcome, rec.Detail)
		}
	}
	for i := range 4 {
		rec := new(record.Record)
		c.Do(t.Context(), time.Now(), &llm.Request{Prompt: "Once upon a time", MaxTokens: 5, Stream: true, Temperature: &zero}, rec)
		if !rec.Success() {
			t.Errorf("request %d after them: %s: %s", i, rec.Outcome, rec.Detail)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		m := e.metrics(t)
		if m["requests_processing"] == 0 && m["requests_deferred"] == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the engine is still at work: %v", m)
		}
	}
}

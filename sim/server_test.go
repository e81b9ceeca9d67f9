package sim

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-llm/assay/config"
	"github.com/assay-llm/assay/pace"
	"github.com/google/go-cmp/cmp"
)

// rig is a server on a network in memory, with a client.
type rig struct {
	*Server
	net    *Network
	client *http.Client
}

// inBubble runs a test in virtual time against a server.
func inBubble(t *testing.T, c Config, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := NewServer(c)
		if err != nil {
			t.Fatal(err)
		}
		s.Waiter = pace.Plain()
		n := NewNetwork()
		l, err := n.Listen("sim:80")
		if err != nil {
			t.Fatal(err)
		}
		hs := &http.Server{Handler: s}
		transport := &http.Transport{DialContext: n.DialContext, MaxIdleConnsPerHost: 1000, DisableCompression: true}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = hs.Serve(l) })
		wg.Go(func() { _ = s.Run(ctx) })
		test(t, &rig{Server: s, net: n, client: &http.Client{Transport: transport}})
		cancel()
		transport.CloseIdleConnections()
		hs.Close()
		wg.Wait()
	})
}

// got is one answer as a careful client saw it.
type got struct {
	Status int
	Header http.Header
	Events []gotEvent
	Body   string
	Err    error
}

type gotEvent struct {
	Data string
	Emit time.Time
	At   time.Time
}

func (g *got) text() string {
	var text strings.Builder
	for _, e := range g.Events {
		var chunk struct {
			Choices []struct {
				Text  string
				Delta struct{ Content, Reasoning_content string }
			}
		}
		if json.Unmarshal([]byte(e.Data), &chunk) == nil && len(chunk.Choices) > 0 {
			c := chunk.Choices[0]
			text.WriteString(c.Text + c.Delta.Reasoning_content + c.Delta.Content)
		}
	}
	return text.String()
}

// payload returns the events with text.
func (g *got) payload() (events []gotEvent) {
	for _, e := range g.Events {
		if (&got{Events: []gotEvent{e}}).text() != "" {
			events = append(events, e)
		}
	}
	return events
}

func (r *rig) post(t *testing.T, id, path, body string) *got {
	return r.postWith(t.Context(), id, path, body)
}

func (r *rig) postWith(ctx context.Context, id, path, body string) *got {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://sim:80"+path, strings.NewReader(body))
	if err != nil {
		return &got{Err: err}
	}
	req.Header.Set("X-Request-Id", id)
	resp, err := r.client.Do(req)
	if err != nil {
		return &got{Err: err}
	}
	defer resp.Body.Close()
	g := &got{Status: resp.StatusCode, Header: resp.Header}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		b, err := io.ReadAll(resp.Body)
		g.Body, g.Err = string(b), err
		return g
	}
	g.Events, g.Err = readEvents(resp.Body)
	return g
}

func readEvents(r io.Reader) (events []gotEvent, err error) {
	br := bufio.NewReaderSize(r, 64<<10)
	var e gotEvent
	for {
		line, err := br.ReadString('\n')
		if err == io.EOF {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "":
			e.At = time.Now()
			events = append(events, e)
			e = gotEvent{}
		case strings.HasPrefix(line, ": emit "):
			ns, err := strconv.ParseInt(line[len(": emit "):], 10, 64)
			if err != nil {
				return events, err
			}
			e.Emit = time.Unix(0, ns)
		case strings.HasPrefix(line, "data: "):
			e.Data = line[len("data: "):]
		default:
			return events, fmt.Errorf("line %.40q", line)
		}
	}
}

const chatBody = `{"model":"m","messages":[{"role":"user","content":"one two three"}],"max_tokens":5,"stream":true,"stream_options":{"include_usage":true}}`

func TestServerStreamsChat(t *testing.T) {
	inBubble(t, Config{Step: Step{Base: 10e6}}, func(t *testing.T, r *rig) {
		start := time.Now()
		g := r.post(t, "shot-1", "/v1/chat/completions", chatBody)
		if g.Err != nil || g.Status != 200 || g.Header.Get("X-Request-Id") != "shot-1" {
			t.Fatalf("%d %v %v", g.Status, g.Header, g.Err)
		}
		if len(g.Events) != 8 {
			t.Fatalf("%d events, want role, 5 tokens, usage and [DONE]: %+v", len(g.Events), g.Events)
		}
		for i, e := range g.Events[:7] {
			want := 10 * time.Millisecond * time.Duration(max(1, min(i, 5)))
			if got := e.At.Sub(start) - glance; got != want {
				t.Errorf("event %d came after %v, want %v", i, got, want)
			}
			if !e.Emit.Equal(e.At) {
				t.Errorf("event %d says it was written at %v, came at %v", i, e.Emit, e.At)
			}
		}
		if !strings.Contains(g.Events[0].Data, `"role":"assistant"`) || len(g.payload()) != 5 {
			t.Errorf("first event %s, %d events with text", g.Events[0].Data, len(g.payload()))
		}
		if !strings.Contains(g.Events[5].Data, `"finish_reason":"length"`) {
			t.Errorf("the last token's event has no finish: %s", g.Events[5].Data)
		}
		if !strings.Contains(g.Events[6].Data, `"usage":{"prompt_tokens":6,"completion_tokens":5,"total_tokens":11`) {
			t.Errorf("usage: %s", g.Events[6].Data)
		}
		if g.Events[7].Data != "[DONE]" {
			t.Errorf("last event: %s", g.Events[7].Data)
		}
		if n := len(Tokens(g.text())); n != 5 {
			t.Errorf("the text %q has %d tokens, want 5", g.text(), n)
		}
		want := Entry{
			ID: "shot-1", API: "chat", Stream: true, Arrival: start.UnixNano(),
			First: g.payload()[0].Emit.UnixNano(), Last: g.payload()[4].Emit.UnixNano(),
			Prompt: 6, Output: 5, Events: 5, TextBytes: int64(len(g.text())), Status: 200, Finish: FinishLength, End: EndComplete,
		}
		synctest.Wait()
		entry := r.Ledger()[0]
		want.Bytes, entry.Bytes = 0, entry.Bytes-int64(bodyLen(g))
		if diff := cmp.Diff(want, entry); diff != "" {
			t.Errorf("the ledger differs (-want +got; bytes: beyond those received):\n%s", diff)
		}
	})
}

// bodyLen is the length of the body that gave the events.
func bodyLen(g *got) (n int) {
	for _, e := range g.Events {
		n += len("data: \n\n") + len(e.Data)
		if !e.Emit.IsZero() {
			n += len(": emit \n") + len(strconv.FormatInt(e.Emit.UnixNano(), 10))
		}
	}
	return n + len(g.Body)
}

func TestServerWholeAnswerEqualsStream(t *testing.T) {
	for name, path := range map[string]string{
		`"messages":[{"role":"user","content":"one two three"}]`: "/v1/chat/completions",
		`"prompt":"one two three"`:                               "/v1/completions",
	} {
		inBubble(t, Config{Reasoning: 0.5, TokensPerEvent: 3}, func(t *testing.T, r *rig) {
			streamed := r.post(t, "a", path, `{`+name+`,"max_tokens":20,"stream":true}`)
			whole := r.post(t, "b", path, `{`+name+`,"max_tokens":20}`)
			var answer struct {
				Choices []struct {
					Text          string
					Finish_reason string
					Message       struct{ Content, Reasoning_content string }
				}
				Usage struct{ Completion_tokens, Prompt_tokens int }
			}
			if err := json.Unmarshal([]byte(whole.Body), &answer); err != nil || len(answer.Choices) != 1 {
				t.Fatalf("%v: %s", err, whole.Body)
			}
			c := answer.Choices[0]
			text := c.Text + c.Message.Reasoning_content + c.Message.Content
			if text != streamed.text() || len(Tokens(text)) != 20 || answer.Usage.Completion_tokens != 20 || c.Finish_reason != "length" {
				t.Errorf("whole answer %s, streamed text %q", whole.Body, streamed.text())
			}
			if path == "/v1/completions" {
				if n := len(streamed.payload()); n != 7 { // 6 of 3 tokens, one of 2
					t.Errorf("%d events, want 7", n)
				}
				return
			}
			if n := len(Tokens(c.Message.Reasoning_content)); n != 10 {
				t.Errorf("%d tokens of reasoning, want 10", n)
			}
			if n := len(streamed.payload()); n != 8 { // 3 3 3 1 | 3 3 3 1
				t.Errorf("%d events, want 8: none holds both reasoning and answer", n)
			}
		})
	}
}

func TestServerUsageDialects(t *testing.T) {
	const asked, silent = `,"stream_options":{"include_usage":true}`, ``
	for _, test := range []struct {
		dialect, options string
		want             []string // completion tokens on each event, "-" where there is no usage
	}{
		{"", asked, []string{"-", "-", "-", "2", "-"}},
		{"", silent, []string{"-", "-", "-", "-"}},
		{"finish", silent, []string{"-", "-", "2", "-"}},
		{"every", asked, []string{"0", "1", "2", "2", "-"}},
		{"every", silent, []string{"-", "-", "-", "-"}},
		{"never", asked, []string{"-", "-", "-", "-"}},
		{"", `,"stream_options":{"include_usage":true,"continuous_usage_stats":true}`, []string{"0", "1", "2", "2", "-"}},
	} {
		inBubble(t, Config{Usage: test.dialect}, func(t *testing.T, r *rig) {
			g := r.post(t, "a", "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"max_tokens":2,"stream":true`+test.options+`}`)
			var got []string
			for _, e := range g.Events {
				_, after, ok := strings.Cut(e.Data, `"completion_tokens":`)
				if !ok {
					after = "-,"
				}
				count, _, _ := strings.Cut(after, ",")
				got = append(got, count)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("usage %q with options %q:\n%s", test.dialect, test.options, diff)
			}
		})
	}
}

func TestServerStops(t *testing.T) {
	inBubble(t, Config{Seed: 3}, func(t *testing.T, r *rig) {
		body := func(more string) string {
			return `{"prompt":"tell me","max_tokens":30,"stream":true,"stream_options":{"include_usage":true}` + more + `}`
		}
		full := r.post(t, "a", "/v1/completions", body("")).text()
		words := strings.Fields(full)
		stop := words[9] + " " + words[10] // spans two tokens
		want, _, _ := strings.Cut(full, stop)
		g := r.post(t, "b", "/v1/completions", body(`,"stop":[`+strconv.Quote(stop)+`]`))
		if got := g.text(); got != want {
			t.Errorf("with stop %q: %q, want %q", stop, got, want)
		}
		last := g.Events[len(g.Events)-2].Data
		if !strings.Contains(last, fmt.Sprintf(`"completion_tokens":%d,`, len(strings.Fields(want))+2)) {
			t.Errorf("usage counts the stop's tokens: %s", last)
		}
	})
	inBubble(t, Config{Output: Output{Stop: 1}}, func(t *testing.T, r *rig) {
		lengths := map[int]bool{}
		for i := range 20 {
			g := r.post(t, "a", "/v1/completions", fmt.Sprintf(`{"prompt":"question %d","max_tokens":50,"stream":true}`, i))
			if !strings.Contains(g.Events[len(g.Events)-2].Data, `"finish_reason":"stop"`) && len(g.payload()) < 50 {
				t.Errorf("%d tokens without a stop", len(g.payload()))
			}
			lengths[len(g.payload())] = true
			g = r.post(t, "b", "/v1/completions", fmt.Sprintf(`{"prompt":"question %d","max_tokens":50,"stream":true,"ignore_eos":true}`, i))
			if len(g.payload()) != 50 {
				t.Errorf("%d tokens although told to ignore the end of text", len(g.payload()))
			}
		}
		if len(lengths) < 5 {
			t.Errorf("drawn lengths: %v", lengths)
		}
	})
}

func TestServerTextFollowsSeedAndPrompt(t *testing.T) {
	ask := func(c Config, prompt, more string) (text string) {
		inBubble(t, c, func(t *testing.T, r *rig) {
			text = r.post(t, "a", "/v1/completions", `{"prompt":"`+prompt+`","max_tokens":20,"stream":true`+more+`}`).text()
		})
		return text
	}
	base := ask(Config{Seed: 1}, "hello", "")
	if got := ask(Config{Seed: 1, Model: Model{Name: "8b"}, TPOT: 0.08}, "hello", `,"temperature":0,"seed":4`); got != base {
		t.Errorf("a slower engine says %q, want %q", got, base)
	}
	for name, got := range map[string]string{
		"seed":        ask(Config{Seed: 2}, "hello", ""),
		"prompt":      ask(Config{Seed: 1}, "hullo", ""),
		"sampling on": ask(Config{Seed: 1}, "hello", `,"temperature":0.7,"seed":4`),
	} {
		if got == base {
			t.Errorf("another %s gives the same text", name)
		}
	}
}

// TestServerMinuteOfLoad runs a minute of open-loop load in virtual time and
// checks each time to the nanosecond and each book against the other.
func TestServerMinuteOfLoad(t *testing.T) {
	inBubble(t, Config{Step: Step{Base: 10e6}}, func(t *testing.T, r *rig) {
		const rate, output = 20, 32
		rng := rand.New(rand.NewPCG(1, 1))
		start := time.Now()
		var wg sync.WaitGroup
		var mu sync.Mutex
		answers := map[string]*got{}
		sent := map[string]time.Time{}
		for n := 0; ; n++ {
			time.Sleep(time.Duration(rng.ExpFloat64() / rate * 1e9))
			if time.Since(start) > time.Minute {
				break
			}
			id := strconv.Itoa(n)
			wg.Go(func() {
				at := time.Now()
				g := r.post(t, id, "/v1/completions", fmt.Sprintf(`{"prompt":"number %d","max_tokens":%d,"stream":true}`, n, output))
				mu.Lock()
				defer mu.Unlock()
				answers[id], sent[id] = g, at
			})
		}
		wg.Wait()
		synctest.Wait()
		for id, g := range answers {
			events := g.payload()
			if g.Err != nil || len(events) != output {
				t.Fatalf("request %s: %d events, %v", id, len(events), g.Err)
			}
			// It waits for the step under way, then takes one.
			if ttft := events[0].At.Sub(sent[id]); ttft <= 10*time.Millisecond || ttft > 20*time.Millisecond {
				t.Errorf("request %s: TTFT %v, want 10 to 20 ms", id, ttft)
			}
			for i := 1; i < output; i++ {
				if gap := events[i].At.Sub(events[i-1].At); gap != 10*time.Millisecond {
					t.Errorf("request %s: gap %d is %v, want 10 ms", id, i, gap)
				}
			}
		}
		entries := r.Ledger()
		if len(entries) != len(answers) || len(entries) < 1000 {
			t.Errorf("%d requests, %d in the ledger", len(answers), len(entries))
		}
		for _, e := range entries {
			if g := answers[e.ID]; e.End != EndComplete || e.Output != output || int(e.Bytes) != bodyLen(g) {
				t.Errorf("ledger %+v, received %d bytes", e, bodyLen(g))
			}
		}
	})
}

func TestServerLeaversFreeTheirBlocks(t *testing.T) {
	inBubble(t, Config{Step: Step{Base: 10e6}}, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithTimeout(t.Context(), 45*time.Millisecond)
		defer cancel()
		g := r.postWith(ctx, "gone", "/v1/completions", `{"prompt":"x","max_tokens":10000,"stream":true}`)
		if !errors.Is(g.Err, context.DeadlineExceeded) || len(g.payload()) != 4 {
			t.Fatalf("%d events, %v", len(g.payload()), g.Err)
		}
		time.Sleep(10 * time.Millisecond) // one step
		synctest.Wait()
		r.mu.Lock()
		stats, streams := r.engine.Stats(), len(r.streams)
		r.mu.Unlock()
		if stats.BlocksUsed != 0 || stats.Running != 0 || stats.Cancels != 1 || streams != 0 {
			t.Errorf("a step after the client left: %+v, %d streams", stats, streams)
		}
		if e := r.Ledger()[0]; e.End != EndLeft || e.Output != 4 {
			t.Errorf("ledger: %+v", e)
		}
	})
}

func TestServerDelaysTheFirstTokenOnly(t *testing.T) {
	times := func(c Config) (list []time.Duration) {
		inBubble(t, c, func(t *testing.T, r *rig) {
			// Each arrives when the engine is idle, and the delayed tokens of
			// the one before are still to be handed out.
			answers := make([]*got, 3)
			starts := make([]time.Time, 3)
			var wg sync.WaitGroup
			for i := range answers {
				wg.Go(func() {
					time.Sleep(time.Duration(i) * 32 * time.Millisecond)
					starts[i] = time.Now()
					answers[i] = r.post(t, "a", "/v1/completions", `{"prompt":"x","max_tokens":3,"stream":true}`)
				})
			}
			wg.Wait()
			for i, g := range answers {
				for _, e := range g.payload() {
					list = append(list, e.At.Sub(starts[i]))
				}
			}
		})
		return list
	}
	plain, slow := times(Config{Step: Step{Base: 10e6}}), times(Config{Step: Step{Base: 10e6}, TTFT: 0.5})
	for i := range plain {
		if got, want := slow[i].Round(time.Microsecond), plain[i].Round(time.Microsecond)+5*time.Millisecond; got != want {
			t.Errorf("event %d after %v, want %v: half of the time to first token later", i, got, want)
		}
	}
	if len(plain) != 9 || len(slow) != 9 {
		t.Errorf("%d and %d events, want 9", len(plain), len(slow))
	}
}

func TestServerOverHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := NewServer(Config{Faults: Faults{Reset: 0.5}})
		if err != nil {
			t.Fatal(err)
		}
		s.Waiter = pace.Plain()
		n := NewNetwork()
		l, err := n.Listen("sim:80")
		if err != nil {
			t.Fatal(err)
		}
		var protocols http.Protocols
		protocols.SetUnencryptedHTTP2(true)
		hs := &http.Server{Handler: s, Protocols: &protocols}
		transport := &http.Transport{DialContext: n.DialContext, Protocols: &protocols}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = hs.Serve(l) })
		wg.Go(func() { _ = s.Run(ctx) })
		r := &rig{Server: s, client: &http.Client{Transport: transport}}
		for i := range 10 {
			g := r.post(t, strconv.Itoa(i), "/v1/completions", `{"prompt":"x","max_tokens":8,"stream":true}`)
			synctest.Wait()
			e := r.Ledger()[i]
			if want := e.Fault == FaultReset; (g.Err != nil) != want || (e.End == EndFault) != want {
				t.Errorf("fault %q: %d events, %v, end %s", e.Fault, len(g.payload()), g.Err, e.End)
			}
		}
		cancel()
		transport.CloseIdleConnections()
		hs.Close()
		wg.Wait()
	})
}

func TestServerSlowReaderDelaysNobody(t *testing.T) {
	inBubble(t, Config{Step: Step{Base: 10e6}}, func(t *testing.T, r *rig) {
		r.net.Buffer = 2 << 10
		conn, err := r.net.DialContext(t.Context(), "tcp", "sim:80")
		if err != nil {
			t.Fatal(err)
		}
		body := `{"prompt":"slow","max_tokens":1000,"stream":true}`
		fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: sim\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
		time.Sleep(5 * time.Second) // its buffers are full long before
		start := time.Now()
		g := r.post(t, "quick", "/v1/completions", `{"prompt":"x","max_tokens":10,"stream":true}`)
		if took := time.Since(start); took > 110*time.Millisecond || len(g.payload()) != 10 {
			t.Errorf("beside a reader that does not read, 10 steps of 10 ms took %v: %v", took, g.Err)
		}
		time.Sleep(10 * time.Second)
		all, err := io.ReadAll(conn) // nothing was lost meanwhile
		conn.Close()
		if n := bytes.Count(all, []byte("data: {")); n != 1000 || err != nil {
			t.Errorf("the slow reader got %d of 1,000 events, %v", n, err)
		}
	})
}

func TestServerRefuses(t *testing.T) {
	inBubble(t, Config{Name: "m", KVBlocks: 16}, func(t *testing.T, r *rig) {
		for _, test := range []struct {
			name, path, body string
			status           int
			want             string
		}{
			{"not JSON", "/v1/chat/completions", `{`, 400, "parsing request"},
			{"no prompt", "/v1/completions", `{"model":"m"}`, 400, "neither messages nor prompt"},
			{"wrong family", "/v1/completions", `{"model":"m","messages":[{"role":"user","content":"x"}]}`, 400, "messages belong to chat/completions"},
			{"two answers", "/v1/completions", `{"model":"m","prompt":"x","n":2}`, 400, "n must be 1"},
			{"wrong model", "/v1/completions", `{"model":"n","prompt":"x"}`, 404, "does not exist"},
			{"too long", "/v1/completions", `{"model":"m","prompt":"x","max_tokens":1000}`, 400, "the context holds 256 tokens"},
			{"absurdly long", "/v1/completions", `{"model":"m","prompt":"x","stop":["a"],"max_tokens":9223372036854775807}`, 400, "the context holds 256 tokens"},
			{"too many stops", "/v1/completions", `{"model":"m","prompt":"x","stop":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17"]}`, 400, "at most 16"},
			{"unknown path", "/v1/embeddings", `{}`, 404, ""},
		} {
			g := r.post(t, "a", test.path, test.body)
			if g.Err != nil || g.Status != test.status || !strings.Contains(g.Body, test.want) {
				t.Errorf("%s: %d %s %v; want %d, %q", test.name, g.Status, g.Body, g.Err, test.status, test.want)
			}
		}
		synctest.Wait()
		for _, e := range r.Ledger() {
			if e.End != EndRefused || e.Status < 400 || e.Bytes == 0 {
				t.Errorf("ledger: %+v", e)
			}
		}
	})
}

func TestServerQueueLimit(t *testing.T) {
	inBubble(t, Config{MaxSeqs: 1, QueueLimit: 1, Step: Step{Base: 10e6}}, func(t *testing.T, r *rig) {
		var wg sync.WaitGroup
		statuses := make([]int, 4)
		for i := range statuses {
			wg.Go(func() {
				statuses[i] = r.post(t, strconv.Itoa(i), "/v1/completions", `{"prompt":"x","max_tokens":10}`).Status
			})
			time.Sleep(15 * time.Millisecond)
		}
		wg.Wait()
		if want := []int{200, 200, 429, 429}; !slices.Equal(statuses, want) {
			t.Errorf("statuses %v, want %v", statuses, want)
		}
	})
}

func TestServerStartsSlowly(t *testing.T) {
	inBubble(t, Config{Start: config.Duration(30 * time.Second)}, func(t *testing.T, r *rig) {
		health := func() int {
			resp, err := r.client.Get("http://sim:80/health")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			return resp.StatusCode
		}
		ask := func() int { return r.post(t, "a", "/v1/completions", `{"prompt":"x"}`).Status }
		if h, a := health(), ask(); h != 503 || a != 503 {
			t.Errorf("while loading: health %d, answer %d; want 503", h, a)
		}
		time.Sleep(30 * time.Second)
		if h, a := health(), ask(); h != 200 || a != 200 {
			t.Errorf("after loading: health %d, answer %d; want 200", h, a)
		}
	})
}

func TestServerStopEndsWhatIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := NewServer(Config{})
		if err != nil {
			t.Fatal(err)
		}
		s.Waiter = pace.Plain()
		n := NewNetwork()
		l, _ := n.Listen("sim:80")
		hs := &http.Server{Handler: s}
		go hs.Serve(l)
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		transport := &http.Transport{DialContext: n.DialContext}
		r := &rig{Server: s, client: &http.Client{Transport: transport}}
		var streamed, whole *got
		var wg sync.WaitGroup
		wg.Go(func() { streamed = r.post(t, "a", "/v1/completions", `{"prompt":"x","max_tokens":1000,"stream":true}`) })
		wg.Go(func() { whole = r.post(t, "b", "/v1/completions", `{"prompt":"x","max_tokens":1000}`) })
		time.Sleep(time.Second)
		cancel(cause)
		wg.Wait()
		if err := <-ended; !errors.Is(err, cause) {
			t.Errorf("Run = %v, want the context's cause", err)
		}
		if last := streamed.Events[len(streamed.Events)-1]; !strings.Contains(last.Data, `"error"`) || streamed.Err != nil {
			t.Errorf("the stream ends with %s, %v", last.Data, streamed.Err)
		}
		if whole.Status != 503 {
			t.Errorf("the whole answer has status %d, want 503", whole.Status)
		}
		if g := r.post(t, "c", "/v1/completions", `{"prompt":"x"}`); g.Status != 503 {
			t.Errorf("after the end: status %d, want 503", g.Status)
		}
		transport.CloseIdleConnections()
		hs.Close()
	})
}

func TestServerOnRealClock(t *testing.T) {
	s, err := NewServer(Config{Step: Step{Base: 2e6}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skipf("no loopback: %v", err)
	}
	hs := &http.Server{Handler: s}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = hs.Serve(l) })
	wg.Go(func() { _ = s.Run(ctx) })
	defer wg.Wait()
	defer hs.Close()
	defer cancel()
	start := time.Now()
	resp, err := http.Post("http://"+l.Addr().String()+"/v1/chat/completions", "application/json", strings.NewReader(chatBody))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	events, err := readEvents(resp.Body)
	g := got{Events: events}
	if err != nil || len(g.payload()) != 5 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	if took := g.payload()[4].At.Sub(start); took < 10*time.Millisecond || took > 10*time.Second {
		t.Errorf("5 steps of 2 ms took %v", took)
	}
	for _, e := range g.payload() {
		if e.Emit.After(e.At) || e.Emit.Before(start.Add(-time.Second)) {
			t.Errorf("an event came at %v, but says it was written at %v", e.At, e.Emit)
		}
	}
}

func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		chatBody,
		`{"prompt":"x","max_tokens":3,"stop":["a","the"],"temperature":1,"seed":-5}`,
		`{"prompt":["x"],"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":null}]}`,
		`{"prompt":"","max_tokens":0}`, `{"max_tokens":-1}`, `[]`, `{"prompt":"x","stop":""}`,
	} {
		f.Add("/v1/chat/completions", seed, "id")
		f.Add("/v1/completions", seed, "")
	}
	s, err := NewServer(Config{Step: Step{Base: 1000}, Context: 300, Faults: Faults{Malformed: 0.2, Empty: 0.2, Truncate: 0.2}})
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	f.Cleanup(func() { cancel(); <-ended })
	f.Fuzz(func(t *testing.T, path, body, id string) {
		if path != "/v1/completions" {
			path = "/v1/chat/completions"
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
		if err != nil {
			t.Skip("not a request that could be written")
		}
		req.Header["X-Request-Id"] = []string{id}
		w := &recorder{header: http.Header{}}
		s.ServeHTTP(w, req)
		switch {
		case w.status >= 500 || w.status < 200:
			t.Errorf("status %d for %q", w.status, body)
		case w.status >= 400 && !json.Valid(w.body.Bytes()):
			t.Errorf("an error that is not JSON: %s", w.body.Bytes())
		}
	})
}

// recorder is a ResponseWriter in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header { return w.header }
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}
func (w *recorder) Write(b []byte) (int, error) { w.WriteHeader(200); return w.body.Write(b) }
func (w *recorder) Flush()                      {}

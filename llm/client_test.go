package llm

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/record"
)

// TestNothingLeaks holds that after many requests that end in every way there
// are as many goroutines as before, and no buffer is used twice.
func TestNothingLeaks(t *testing.T) {
	before := runtime.NumGoroutine()
	s := serve(t, func(_ int, p *peer) {
		for {
			h, body := p.request()
			if h == nil {
				return
			}
			text := strings.Repeat(strings.TrimPrefix(h.Get("X-Request-Id"), "v/w/0/"), 5)
			switch {
			case bytes.Contains(body, []byte("reset")):
				io.WriteString(p, streamHead+chunked1(content(text)))
				p.reset()
				return
			case bytes.Contains(body, []byte("hang")):
				io.WriteString(p, streamHead+chunked1(content(text)))
				p.in.ReadByte()
				return
			default:
				io.WriteString(p, streamHead)
				p.chunks(content(text), eventStop, eventDone)
				io.WriteString(p, lastChunk)
			}
		}
	})
	c, err := NewClient(Target{URL: s.url(), Stall: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]record.Outcome{"good": record.OK, "reset": record.ResetMid, "hang": record.StallTimeout, "cancel": record.ClientCancelled}
	done := make(chan struct{})
	for worker := range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			for i, kind := range slices.Repeat([]string{"good", "reset", "good", "hang", "cancel"}, 6) {
				ctx, cancel := context.WithCancelCause(t.Context())
				prompt := kind
				if kind == "cancel" {
					prompt = "hang"
					time.AfterFunc(10*time.Millisecond, func() { cancel(ErrPlanned) })
				}
				rec := record.Record{Variant: "v", Workload: "w", Shot: int64(worker*1000 + i)}
				a := c.Do(ctx, time.Now(), chat(prompt), &rec)
				cancel(nil)
				if rec.Outcome != kinds[kind] && !(kind == "reset" && rec.Outcome == record.ResetBefore) {
					t.Errorf("%s: %s (%s)", kind, rec.Outcome, rec.Detail)
				}
				if want := strings.Repeat(fmt.Sprint(rec.Shot), 5); kind == "good" && a.Text != want {
					t.Errorf("text %q, want %q", a.Text, want)
				}
			}
		}()
	}
	for range 8 {
		<-done
	}
	c.Close()
	s.stop()
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before+1 && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before+1 {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

// TestGzipStream holds W25: one gzip stream, flushed after each event, cut
// anywhere; each event keeps the arrival of the piece that completed it.
func TestGzipStream(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	var ends []int
	for _, e := range []string{eventA, eventA, eventStop, eventDone} {
		io.WriteString(z, e)
		z.Flush()
		ends = append(ends, b.Len())
	}
	z.Close()
	all := b.Bytes()
	for cut := 1; cut < len(all); cut++ {
		s := &pieces{rest: [][]byte{all[:cut], all[cut:]}, at: time.Now()}
		rec := record.Record{}
		req := chat("")
		q := &call{epoch: s.at, rec: &rec}
		target := Target{}.withDefaults()
		y := tallies.Get().(*tally)
		y.begin(&target, q, req)
		y.finish(t.Context(), y.read(&gunzip{stream: s}, head{status: 200, sse: true}))
		y.end()
		if rec.Outcome != record.OK || len(rec.Events) != 4 {
			t.Fatalf("cut at %d: %s (%s), %d events", cut, rec.Outcome, rec.Detail, len(rec.Events))
		}
		for i, e := range rec.Events {
			want := uint32(1)
			if ends[i] > cut {
				want = 2
			}
			if e.Read != want && !(want == 1 && ends[i]-cut > -6) { // the flush's own marker may lie behind the cut
				t.Errorf("cut at %d: event %d, ending at %d, is of read %d", cut, i, ends[i], e.Read)
			}
		}
	}
	for _, tt := range []struct {
		name, body string
		want       record.Outcome
	}{
		{"bomb", zip(strings.Repeat("\n", 32<<20)), record.BodyTooLarge},
		{"broken", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff", record.Malformed},
		{"no gzip at all", eventA, record.Malformed},
		{"cut", zip(eventA + eventStop + eventDone)[:30], record.Truncated},
		{"good", zip(eventA + eventStop + eventDone), record.OK},
	} {
		s := serve(t, bare(plain("200 OK", "text/event-stream", tt.body, "Content-Encoding: gzip\r\n")))
		rec, _ := ask(t, t.Context(), client(t, Target{URL: s.url()}), chat("x"))
		if rec.Outcome != tt.want {
			t.Errorf("%s: %s (%s), want %s", tt.name, rec.Outcome, rec.Detail, tt.want)
		}
	}
}

func zip(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, s)
	z.Close()
	return b.String()
}

// TestRequestOnTheWire holds what a server gets, in one piece.
func TestRequestOnTheWire(t *testing.T) {
	type got struct {
		head http.Header
		body []byte
		path string
	}
	requests := make(chan got, 1)
	s := serve(t, func(_ int, p *peer) {
		req, err := http.ReadRequest(p.in)
		if err != nil {
			return
		}
		body, _ := io.ReadAll(req.Body)
		requests <- got{req.Header, body, req.RequestURI}
		io.WriteString(p, plain("200 OK", "text/event-stream", eventA+eventStop+eventDone))
	})
	temperature, seed := 0.5, int64(7)
	c := client(t, Target{URL: s.url() + "/?api-version=1", Model: "m", Key: "k", Headers: map[string]string{"X-Tenant": "t"}})
	req := chat("hi \"\n\u2028\xff")
	req.MaxTokens, req.Temperature, req.Seed, req.Stop, req.IgnoreEOS = 5, &temperature, &seed, []string{"a", "b"}, true
	req.Extra = map[string]any{"min_tokens": 5, "temperature": 1}
	rec := record.Record{Variant: "candidate", Workload: "chat rooms", Block: 2, Shot: 17, Phase: record.WarmUp}
	c.Do(t.Context(), time.Now(), req, &rec)
	g := <-requests
	if g.path != "/v1/chat/completions?api-version=1" {
		t.Errorf("path %s", g.path)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer k", "X-Tenant": "t", "X-Request-Id": "warm-up/candidate/chat_rooms/2/17", "Accept-Encoding": "identity",
		"Content-Type": "application/json", "User-Agent": "assay", "Content-Length": fmt.Sprint(len(g.body)),
	} {
		if g.head.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, g.head.Get(name), want)
		}
	}
	const want = `{"model":"m","messages":[{"role":"user","content":"hi \"\n\u2028\ufffd"}],"max_tokens":5,"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true,"seed":7,"stop":["a","b"],"min_tokens":5,"temperature":1}`
	if string(g.body) != want || !json.Valid(g.body) {
		t.Errorf("body %s, want %s", g.body, want)
	}
	if id := RequestID(&rec); id != "warm-up/candidate/chat_rooms/2/17" {
		t.Errorf("RequestID = %s", id)
	}
}

func TestProbe(t *testing.T) {
	for _, tt := range []struct{ send, want string }{
		{plain("200 OK", "application/json", `{"object":"list","data":[]}`), ""},
		{plain("404 No", "text/plain", "nope"), ""},
		{plain("401 No", "application/json", `{"error":{"message":"wrong key sk-secret"}}`), "refuses the key (HTTP 401): wrong key [key]\n  hint: give the variant's key"},
		{plain("503 No", "application/json", `{"error":{"message":"loading"}}`), "HTTP 503 to GET models: loading\n  hint:"},
		{plain("200 OK", "text/html", "<html>"), "something else than JSON\n  hint:"},
		{"SSH-2.0\r\n\r\n", "is this an HTTP server?\n  hint: is this the URL"},
		{"", "hint: is the server running"},
	} {
		s := serve(t, bare(tt.send))
		err := client(t, Target{URL: s.url(), Key: "sk-secret"}).Probe(t.Context())
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40q: Probe = %v, want %q", tt.send, err, tt.want)
		}
	}
	refuse := Target{URL: "http://memory", Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.DNSError{Err: "no such host", Name: "memory"}
	}}
	if err := client(t, refuse).Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "check the host's name") {
		t.Errorf("Probe = %v", err)
	}
}

// TestLargestEvent holds W01 through the whole client: 16 MiB pass, a byte more
// does not, and the heap does not hold much more than the event twice.
func TestLargestEvent(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 32 MiB")
	}
	for _, extra := range []int{0, 1} {
		frame := content("")
		text := strings.Repeat("x", DefaultMaxEvent-len(frame)+2+extra)
		s := serve(t, bare("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"+content(text)+eventStop+eventDone))
		rec, a := ask(t, t.Context(), client(t, Target{URL: s.url()}), chat("x"))
		want := []record.Outcome{record.OK, record.EventTooLarge}[extra]
		if rec.Outcome != want {
			t.Errorf("%d bytes more: %s (%s), want %s", extra, rec.Outcome, rec.Detail, want)
		}
		if extra == 0 && (rec.OutputBytes != int64(len(text)) || !a.Clipped || len(a.Text) != 1<<20) {
			t.Errorf("%d bytes of output, kept %d, clipped %v", rec.OutputBytes, len(a.Text), a.Clipped)
		}
	}
}

func TestAnswerIsClippedAtACharacter(t *testing.T) {
	req := &Request{Stream: true}
	body := content("aé") + content("é") + content("z") + eventStop + eventDone
	rec, a := replay(t, &Target{KeepText: 4}, req, head{status: 200, sse: true}, &pieces{rest: [][]byte{[]byte(body)}})
	if a.Text != "aé" || !a.Clipped || rec.OutputBytes != 6 {
		t.Errorf("text %q, clipped %v, %d bytes", a.Text, a.Clipped, rec.OutputBytes)
	}
	whole, _ := replay(t, &Target{}, req, head{status: 200, sse: true}, &pieces{rest: [][]byte{[]byte(body)}})
	if whole.Body != rec.Body || len(rec.Body) != 64 {
		t.Errorf("digest %s clipped, %s whole", rec.Body, whole.Body)
	}
}

// TestAnswerKeepsTheServersClaims holds that what cannot be true is kept as said,
// and that the first of several names counts.
func TestAnswerKeepsTheServersClaims(t *testing.T) {
	chunk := func(model, rest string) string {
		return `data: {"model":` + model + `,"system_fingerprint":"fp_1",` + rest + "}\n\n"
	}
	body := chunk(`null`, `"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]`) +
		chunk(`"m\u001b[1m"`, `"choices":[{"index":0,"finish_reason":"stop"},{"index":1,"finish_reason":"stop"}]`) +
		chunk(`"other"`, `"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":900,"prompt_tokens_details":{"cached_tokens":7}}`) + eventDone
	rec, a := replay(t, &Target{KeepText: 99}, &Request{Stream: true}, head{status: 200, sse: true}, &pieces{rest: [][]byte{[]byte(body)}})
	n := record.Tokens
	if want := (Claim{Prompt: n(0), Output: n(900), Cached: n(7)}); a.Claimed != want || a.Choices != 2 || a.Fingerprint != "fp_1" || strings.ContainsRune(a.Model, 0x1b) || !strings.HasPrefix(a.Model, "m") {
		t.Errorf("claimed %+v of %d choices, model %q, fingerprint %q", a.Claimed, a.Choices, a.Model, a.Fingerprint)
	}
	if rec.Prompt.Known() || rec.Cached.Known() {
		t.Errorf("the record believes %v prompt and %v cached tokens", rec.Prompt, rec.Cached)
	}
	_, none := replay(t, &Target{KeepText: -1}, &Request{Stream: true}, head{status: 200, sse: true}, &pieces{rest: [][]byte{[]byte(body)}})
	if none.Model != "" || none.Text != "" {
		t.Errorf("kept %q of model %q although no text is to be kept", none.Text, none.Model)
	}
}

func TestTokensFromEvents(t *testing.T) {
	body := content("a") + content("b") + eventStop + eventDone
	for _, tt := range []struct {
		body  string
		want  record.Count
		flags string
	}{
		{body, record.Tokens(2), "usage_missing tokens_from_events"},
		{content("a") + content("b") + eventStop + strings.ReplaceAll(eventUsage, `"completion_tokens":2`, `"completion_tokens":2,"x":1`) + eventDone, record.Tokens(2), ""},
	} {
		rec, _ := replay(t, &Target{TokensFromEvents: true}, &Request{Stream: true}, head{status: 200}, &pieces{rest: splitAfter(tt.body)})
		if rec.Output != tt.want || strings.Join(rec.Flags.Names(), " ") != tt.flags {
			t.Errorf("output %d, flags %v; want %d, %s", rec.Output, rec.Flags.Names(), tt.want, tt.flags)
		}
	}
}

func splitAfter(s string) (all [][]byte) {
	for _, e := range strings.SplitAfter(s, "\n\n") {
		all = append(all, []byte(e))
	}
	return all
}

package llm

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/assay-llm/assay/record"
)

// TestWholeAnswerWithoutFinishIsFlagged holds that complete JSON is a terminal,
// and that a reader can see when it is the only one.
func TestWholeAnswerWithoutFinishIsFlagged(t *testing.T) {
	n := record.Tokens
	usage := `,"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`
	for _, w := range []wireRow{
		{name: "null", body: `{"choices":[{"index":0,"message":{"content":"hello"},"finish_reason":null}]` + usage, flags: []string{"no_done"}},
		{name: "none", body: `{"choices":[{"index":0,"message":{"content":"hello"}}]` + usage, flags: []string{"no_done"}},
		{name: "of one choice", body: `{"choices":[{"index":0,"message":{"content":"hello"},"finish_reason":"stop"},{"index":1,"message":{"content":"b"}}]` + usage, finish: "stop", flags: []string{"no_done"}},
		{name: "said", body: `{"choices":[{"index":0,"message":{"content":"hello"},"finish_reason":"stop"}]` + usage, finish: "stop"},
	} {
		w.text, w.kinds, w.prompt, w.output, w.perEvent = "hello", "c", n(5), n(2), []int64{2}
		rec, a := replay(t, &Target{}, new(Request), head{status: 200, json: true}, &pieces{rest: [][]byte{[]byte(w.body)}})
		compareRow(t, w, &rec, a, "whole")
	}
}

// TestTokensOfEveryChoiceCount holds that with n > 1 an event has the tokens of
// all choices in it, as it has their bytes.
func TestTokensOfEveryChoiceCount(t *testing.T) {
	body := `data: {"choices":[{"index":0,"delta":{"content":"a"},"token_ids":[1]},{"index":1,"delta":{"content":"bcd"},"token_ids":[2,3]}]}` + "\n\n" +
		`data: {"choices":[{"index":1,"delta":{"content":"e"},"token_ids":[4]}]}` + "\n\n" + eventDone
	w := wireRow{name: "two choices", body: body, text: "a", kinds: "ccd", flags: []string{"usage_missing"}, perEvent: []int64{3, 1}}
	rec, a := replay(t, &Target{}, chat(""), head{status: 200, sse: true}, &pieces{rest: [][]byte{[]byte(body)}})
	compareRow(t, w, &rec, a, "whole")
	if rec.Events[0].Bytes != 4 || rec.OutputBytes != 5 {
		t.Errorf("%d bytes in the first event, %d in all", rec.Events[0].Bytes, rec.OutputBytes)
	}
}

// event is a server-sent event with a name, as the typed streams have them.
func event(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }

// dialectRows are what servers of one API send, streamed and whole.
type dialectRows struct {
	target       Target
	paths        [2]string // of streamed and of whole requests
	stream, body []wireRow
}

// run holds every row, cut at every position, byte by byte, and by a real
// socket.
func (d dialectRows) run(t *testing.T) {
	t.Helper()
	lines := d.target.dialect().lines
	for i, rows := range [][]wireRow{d.stream, d.body} {
		h := head{status: 200, sse: i == 0 && !lines, json: i == 1}
		for _, w := range rows {
			req := w.req
			req.Stream = i == 0
			run := func(how string, in ...[]byte) {
				rec, a := replay(t, &d.target, &req, h, &pieces{rest: in})
				compareRow(t, w, &rec, a, how)
			}
			body := []byte(w.body)
			run("whole", body)
			for cut := 1; cut < len(body) && !t.Failed(); cut++ {
				run("cut at "+itoa(cut), body[:cut], body[cut:])
			}
			bytes := make([][]byte, len(body))
			for i := range body {
				bytes[i] = body[i : i+1]
			}
			run("byte by byte", bytes...)
			d.overTCP(t, w, i)
		}
	}
}

// overTCP asks a server on a socket by Client.Do.
func (d dialectRows) overTCP(t *testing.T, w wireRow, which int) {
	t.Helper()
	contentType := []string{"text/event-stream", "application/json"}[which]
	if which == 0 && d.target.dialect().lines {
		contentType = "application/x-ndjson"
	}
	s := serve(t, func(_ int, p *peer) {
		req, err := http.ReadRequest(p.in)
		if err != nil {
			return
		}
		io.Copy(io.Discard, req.Body)
		if req.URL.Path != d.paths[which] {
			io.WriteString(p, plain("404 Not Found", "text/plain", "asked for "+req.URL.Path))
			return
		}
		io.WriteString(p, "HTTP/1.1 200 OK\r\nContent-Type: "+contentType+"\r\nTransfer-Encoding: chunked\r\n\r\n")
		if w.body != "" {
			p.chunks(w.body[:len(w.body)/2])
			p.chunks(w.body[len(w.body)/2:])
		}
		io.WriteString(p, lastChunk)
	})
	target := d.target
	target.URL = s.url() + target.URL
	req := w.req
	req.Stream = which == 0
	rec, a := ask(t, t.Context(), client(t, target), &req)
	compareRow(t, w, &rec, a, "over TCP")
	s.stop()
}

// dialectSeeds are the objects of all rows.
func dialectSeeds() []string {
	var seeds []string
	for _, d := range allDialectRows() {
		for _, w := range append(slices.Clone(d.stream), d.body...) {
			for line := range strings.Lines(w.body) {
				line = strings.TrimPrefix(strings.TrimSpace(line), "data: ")
				if strings.HasPrefix(line, "{") || strings.HasPrefix(line, "[") {
					seeds = append(seeds, line)
				}
			}
		}
	}
	return append(seeds, chunkSeeds()...)
}

// checkRead holds what is true of every reader of every API: it takes valid JSON
// only, does not change its input, gives UTF-8, and counts the payload that it
// gives.
func checkRead(t testing.TB, api string, d *dialect, name string, data []byte) {
	t.Helper()
	var c chunk
	given := bytes.Clone(data)
	err := d.read(&c, []byte(name), data)
	if !bytes.Equal(given, data) {
		t.Errorf("%s changed its input %q", api, given)
	}
	if err != nil {
		if strings.Contains(err.Error(), "not JSON") && json.Valid(data) {
			t.Errorf("%s: %q is JSON: %v", api, data, err)
		}
		return
	}
	if !json.Valid(data) {
		t.Errorf("%s takes %q, which is not JSON", api, data)
	}
	if !utf8.Valid(c.content) || !utf8.Valid(c.reasoning) {
		t.Errorf("%s: %q gives text that is not UTF-8: %q, %q", api, data, c.content, c.reasoning)
	}
	n := len(c.content) + len(c.reasoning)
	for _, tool := range c.tools {
		n += len(tool.name) + len(tool.args)
	}
	if c.payload < n || (c.payload > 0) != (c.has&(hasContent|hasReasoning|hasTool) != 0) {
		t.Errorf("%s: %q: payload of %d bytes, %d given, has %b", api, data, c.payload, n, c.has)
	}
	if c.finished&^c.seen != 0 {
		t.Errorf("%s: %q: choices %b end, %b are there", api, data, c.finished, c.seen)
	}
}

func readers() map[string]*dialect {
	all := make(map[string]*dialect)
	for name, d := range dialects {
		if d.read != nil {
			all[name] = d
		}
	}
	for _, p := range []*Template{templateRows().target.Template, templateLineRows().target.Template} {
		d, err := p.dialect()
		if err != nil {
			panic(err)
		}
		all["template, "+p.Framing] = d
	}
	return all
}

// FuzzDialects feeds every reader with objects of every API.
func FuzzDialects(f *testing.F) {
	for _, s := range dialectSeeds() {
		f.Add("", []byte(s))
	}
	f.Add("", []byte(`{"type":"message","content":[{"type":"tool_use","input":{`))
	f.Add("", []byte(`["b",`))
	f.Add("message_delta", []byte(`{"delta":{"stop_reason":"end_turn"},"index":-1}`))
	f.Add("response.failed", []byte(`{"response":{"error":{"code":7}}}`))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		for api, d := range readers() {
			checkRead(t, api, d, name, data)
		}
	})
}

// TestReadersTakeDamage damages objects at random.
func TestReadersTakeDamage(t *testing.T) {
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 0))
	seeds, all := dialectSeeds(), readers()
	for range 20_000 {
		b := []byte(seeds[rng.IntN(len(seeds))])
		for range rng.IntN(4) {
			if len(b) == 0 {
				break
			}
			i := rng.IntN(len(b))
			switch rng.IntN(4) {
			case 0:
				b[i] = `{}[]",:\u0019ntf eE.-`[rng.IntN(21)]
			case 1:
				b = append(b[:i], b[i+1:]...)
			case 2:
				other := seeds[rng.IntN(len(seeds))]
				b = append(b[:i:i], other[rng.IntN(len(other)+1):]...)
			case 3:
				b[i] = byte(rng.IntN(256))
			}
		}
		for api, d := range all {
			checkRead(t, api, d, "", b)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// usualEvents are the events that come once a token.
func usualEvents() map[string]string {
	return map[string]string{
		"chat":      vllmChunk,
		"messages":  event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" tok\u00e9n"}}`),
		"responses": typed("response.output_text.delta", `,"item_id":"msg_1","output_index":0,"content_index":0,"delta":" token","logprobs":[]`),
		"ollama":    `{"model":"m","created_at":"2026-11-30T19:00:00.000000001Z","message":{"role":"assistant","content":" token"},"done":false}` + "\n",
		"tgi":       `data:{"index":1,"token":{"id":29871,"text":" token","logprob":-0.12,"special":false},"generated_text":null,"details":null}` + "\n\n",
		"template":  `data: {"type":"delta","out":[{"text":" token"}],"count":5}` + "\n\n",
	}
}

func usualTarget(api string) Target {
	target := Target{API: api}
	if api == APITemplate {
		target.Template = templateRows().target.Template
	}
	return target.withDefaults()
}

// TestUsualEventsDoNotAllocate is the bar of the hot path for every API.
func TestUsualEventsDoNotAllocate(t *testing.T) {
	for api, usual := range usualEvents() {
		target := usualTarget(api)
		rec := record.Record{Events: make([]record.Event, 0, 4096)}
		q := &call{epoch: time.Now(), rec: &rec}
		y := tallies.New().(*tally)
		y.begin(&target, q, &Request{Stream: true})
		y.dec.plain = target.speak.lines
		y.text, y.reasoning = make([]byte, 0, 1<<20), make([]byte, 0, 1<<20)
		y.frag = fragment{at: time.Now(), read: 1}
		stream := []byte(usual)
		feed := func() {
			if err := y.dec.Feed(stream, 1, y.event); err != nil {
				t.Fatal(err)
			}
		}
		feed()
		if rec.Events[0].Kind != record.KindContent {
			t.Errorf("%s: the event is %v", api, rec.Events[0].Kind)
		}
		if n := testing.AllocsPerRun(200, feed); n != 0 {
			t.Errorf("%s: %v allocations for an event, want 0", api, n)
		}
	}
}

func BenchmarkDialects(b *testing.B) {
	for _, api := range slices.Sorted(maps.Keys(usualEvents())) {
		b.Run(api, func(b *testing.B) {
			usual := []byte(usualEvents()[api])
			target := usualTarget(api)
			target.KeepText = 0
			rec := record.Record{}
			y := tallies.New().(*tally)
			y.begin(&target, &call{epoch: time.Now(), rec: &rec}, &Request{Stream: true})
			y.dec.plain = target.speak.lines
			y.frag = fragment{at: time.Now(), read: 1}
			b.SetBytes(int64(len(usual)))
			b.ReportAllocs()
			for b.Loop() {
				rec.Events = rec.Events[:0]
				if err := y.dec.Feed(usual, 1, y.event); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// requestRow is what a request becomes on the wire.
type requestRow struct {
	name   string
	target Target
	req    Request
	want   string
}

func checkRequests(t *testing.T, rows []requestRow) {
	t.Helper()
	for _, tt := range rows {
		got, err := tt.target.appendRequest(nil, &tt.req)
		if err != nil || string(got) != tt.want || !json.Valid(got) {
			t.Errorf("%s: %s, %v; want %s", tt.name, got, err, tt.want)
		}
	}
}

// TestUnsteadyNumbersAreRefused holds that no API is asked with what JSON lacks.
func TestUnsteadyNumbersAreRefused(t *testing.T) {
	bad := math.NaN()
	for api := range dialects {
		target := Target{API: api}
		if _, err := target.appendRequest(nil, &Request{Prompt: "p", Temperature: &bad}); err == nil {
			t.Errorf("%s: a temperature of %v passes", api, bad)
		}
	}
}

func allDialectRows() []dialectRows {
	return []dialectRows{messagesRows(), responsesRows(), ollamaRows(), ollamaPromptRows(), tgiRows(), embeddingsRows(), rerankRows(), templateRows(), templateLineRows()}
}

// TestPathsOfAPIs holds where each API is asked, whatever people give as URL.
func TestPathsOfAPIs(t *testing.T) {
	for _, tt := range []struct{ in, api, post, whole, models string }{
		{"http://h", APIMessages, "/v1/messages", "/v1/messages", "/v1/models"},
		{"http://h/anthropic/v1", APIMessages, "/anthropic/v1/messages", "/anthropic/v1/messages", "/anthropic/v1/models"},
		{"http://h/v1/messages/", APIMessages, "/v1/messages", "/v1/messages", "/v1/models"},
		{"http://h/v1", APIResponses, "/v1/responses", "/v1/responses", "/v1/models"},
		{"http://h", APIOllama, "/api/chat", "/api/chat", "/api/tags"},
		{"http://h/api", APIOllama, "/api/chat", "/api/chat", "/api/tags"},
		{"http://h/x/api/chat", APIOllama, "/x/api/chat", "/x/api/chat", "/x/api/tags"},
		{"http://h/api/generate/", APIOllama, "/api/generate", "/api/generate", "/api/tags"},
		{"http://h", APITGI, "/generate_stream", "/generate", "/info"},
		{"http://h/x/generate", APITGI, "/x/generate_stream", "/x/generate", "/x/info"},
		{"http://h/x/generate_stream/", APITGI, "/x/generate_stream", "/x/generate", "/x/info"},
		{"http://h/v1", APIEmbeddings, "/v1/embeddings", "/v1/embeddings", "/v1/models"},
		{"http://h/v2/rerank", APIRerank, "/v2/rerank", "/v2/rerank", "/v2/models"},
		{"http://h", APIRerank, "/v1/rerank", "/v1/rerank", "/v1/models"},
	} {
		u, err := url.Parse(tt.in)
		if err != nil {
			t.Fatal(err)
		}
		post, models := endpoints(u, tt.api)
		whole := dialectOf(tt.api, u.Path).unstreamed(post)
		if post.Path != tt.post || whole.Path != tt.whole || models.Path != tt.models {
			t.Errorf("%s, %s: %s, %s, %s; want %s, %s, %s", tt.in, tt.api, post.Path, whole.Path, models.Path, tt.post, tt.whole, tt.models)
		}
	}
}

// TestFirstTokenOfEveryAPI holds, to the nanosecond, that what comes before the
// output makes no first token, that what comes behind it moves no last one, and
// that nobody waits for a socket that stays open.
func TestFirstTokenOfEveryAPI(t *testing.T) {
	for api, parts := range map[string]struct{ before, token, end string }{
		APIMessages:  {event("message_start", messagesPlain) + messagesBlock(0, `{"type":"text","text":""}`), messagesDelta(0, `{"type":"text_delta","text":"a"}`), messagesEnd("end_turn", `{"output_tokens":2}`) + event("message_stop", `{"type":"message_stop"}`)},
		APIResponses: {typed("response.created", responseEmpty), typed("response.output_text.delta", `,"delta":"a"`), typed("response.output_text.done", `,"text":"aa"`) + responseEnd("response.completed", "completed", `"error":null`, "")},
		APIOllama:    {"\n", ollamaLine(`{"content":"a"}`), `{"message":{"content":""},"done":true,` + ollamaTimes + "\n"},
		APITGI:       {": keep-alive\n\n", tgiEvent("a", false, `"details":null`), tgiEvent("</s>", true, `"generated_text":"aa","details":{"finish_reason":"eos_token","generated_tokens":3}`)},
	} {
		t.Run(api, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				target := pipeTarget(func(_ int, p *peer) {
					p.request()
					io.WriteString(p, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
					for _, piece := range []string{parts.before, parts.token, parts.token, parts.end} {
						time.Sleep(100 * time.Millisecond)
						p.chunks(piece)
					}
					time.Sleep(time.Minute)
				})
				target.API = api
				c := client(t, target)
				rec, a := ask(t, t.Context(), c, &Request{Prompt: "p", Stream: true})
				first, _ := rec.First().At.Sub(rec.Send)
				last, _ := rec.Last().At.Sub(rec.Send)
				end, _ := rec.EOF.Sub(rec.Send)
				if rec.Outcome != record.OK || a.Text != "aa" || first != 200*time.Millisecond || last != 300*time.Millisecond || end != 400*time.Millisecond {
					t.Errorf("%s (%s): %q, first after %v, last after %v, end after %v", rec.Outcome, rec.Detail, a.Text, first, last, end)
				}
				c.Close()
				time.Sleep(2 * time.Minute) // the server's minute
			})
		})
	}
}

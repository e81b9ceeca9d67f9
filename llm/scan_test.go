package llm

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// said is what a chunk says, in values of its own.
type said struct {
	Content, Reasoning, Finish, Err, Timings string
	Model, Print                             string
	Payload                                  int
	Has                                      has
	Seen, Finished                           uint64
	Listed                                   int64
	Usage                                    usage
	Tools                                    []saidTool
}

type saidTool struct {
	Index          int64
	ID, Name, Args string
}

func (c *chunk) said() said {
	s := said{
		string(c.content), string(c.reasoning), string(c.finish), string(c.err), string(c.timings), string(c.model), string(c.print),
		c.payload, c.has &^ hasInvalid, c.seen, c.finished, c.listed, c.usage, nil,
	}
	for _, d := range c.tools {
		s.Tools = append(s.Tools, saidTool{d.index, string(d.id), string(d.name), string(d.args)})
	}
	return s
}

// checkScan holds that what the scanner accepts is JSON, and means to the slow
// parser the same.
func checkScan(t testing.TB, data []byte) (accepted bool) {
	t.Helper()
	var fast, slow chunk
	given := bytes.Clone(data)
	if !fast.scan(data) {
		return false
	}
	if !bytes.Equal(given, data) {
		t.Errorf("scan changed its input %q", given)
	}
	if !json.Valid(data) {
		t.Errorf("scan accepts %q, which is not JSON", data)
	}
	if err := slow.parse(data); err != nil {
		t.Errorf("scan accepts %q, parse does not: %v", data, err)
		return true
	}
	if diff := cmp.Diff(slow.said(), fast.said(), cmp.AllowUnexported(usage{})); diff != "" {
		t.Errorf("%q (-parse +scan):\n%s", data, diff)
	}
	return true
}

// TestScannerTakesTheUsualShapes holds that the fast way is taken for what
// engines send, and agrees with the slow one for all of the corpus.
func TestScannerTakesTheUsualShapes(t *testing.T) {
	for _, data := range chunkSeeds() {
		checkScan(t, []byte(data))
	}
	for _, data := range []string{
		vllmChunk[len("data: "):],
		`{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`,
		`{"choices":[{"index":0,"delta":{"content":"\u4e2d\ud83d\ude00\n"}}],"usage":{"prompt_tokens":5,"total_tokens":6,"completion_tokens":1}}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"f","arguments":""}}]}}]}`,
		`{"choices":[],"usage":{"prompt_tokens":5,"total_tokens":6,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":4,"audio_tokens":null},"completion_tokens_details":null}}`,
		`{"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"created":1790000000,"id":"chatcmpl-x","model":"m","system_fingerprint":"b1","object":"chat.completion.chunk","usage":{"completion_tokens":2,"prompt_tokens":5,"total_tokens":7},"timings":{"prompt_ms":1.5e0,"predicted_per_second":-2}}`,
		` { "choices" : [ { "index" : 0 , "delta" : { "content" : "a" } } ] } `,
	} {
		if !checkScan(t, []byte(data)) {
			t.Errorf("not scanned: %s", data)
		}
	}
}

// chunkSeeds are the objects of the corpus, and unusual ones.
func chunkSeeds() []string {
	var seeds []string
	for _, w := range wireRows() {
		for _, line := range strings.Split(w.body, "\n") {
			if data, ok := strings.CutPrefix(line, "data: "); ok && len(data) < 4096 {
				seeds = append(seeds, data)
			}
		}
	}
	return append(seeds,
		`{"a":1,"a":2}`, `{"choices":[],"choices":[{}]}`, `{"\u0063hoices":[{}]}`, `{"choices":[{"index":1e0}]}`, `{"choices":[{"index":-1}]}`,
		`{"choices":{}}`, `{"choices":[null]}`, `{"choices":[{"delta":[]}]}`, `{"choices":[{"delta":{"content":{}}}]}`,
		`{"choices":[{"delta":{"content":"a","content":"b"}}]}`, `{"usage":{"prompt_tokens":1.5}}`, `{"usage":{"prompt_tokens":9007199254740993}}`,
		`{"usage":[]}`, `{"x":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}`, `{"x":01}`, `{"x":1.}`, `{"x":-}`, `{"x":1e+}`, `{"x":tru}`,
		`{"x":"\u12g4"}`, `{"x":"\x"}`, "{\"x\":\"\t\"}", `{"x":"`, `{"x"`, `{"x":1,}`, `{,}`, `{"x":1}}`, `{"error":0}`, `{"error":{ }}`, `{"error":[]}`, `{"error":""}`,
		`{"choices":[{"delta":{"content":"`+"\xe4"+`","refusal":"`+"\xb8\xad"+`"}}]}`, `{"choices":[{"delta":{"content":"\ud83d\ud83d\ude00"}}]}`,
		`{"choices":[{"delta":{"function_call":{"name":"f","arguments":"{}"}}}]}`, `{"choices":[{"logprobs":{"tokens":["a","b"]},"text":"ab"}]}`,
		`{"choices":[{"token_ids":[1,2],"text":"ab"}]}`, `{"choices":[{"index":0,"text":"a"},{"index":64,"text":"b","finish_reason":"stop"}]}`,
		`{"timings":{"a_ms":1},"metrics":{"b_ms":2}}`, `{"object":null}`, `{"object":7}`, `{}`, ` `, ``, `[]`, `null`)
}

// TestScannerMutations damages objects of the corpus at random.
func TestScannerMutations(t *testing.T) {
	seed := uint64(7)
	rng := rand.New(rand.NewPCG(seed, 0))
	seeds := chunkSeeds()
	accepted := 0
	for range 60_000 {
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
		if checkScan(t, b) {
			accepted++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if accepted < 10_000 {
		t.Errorf("only %d of 60,000 objects were scanned: the test has lost its point", accepted)
	}
}

func FuzzScanner(f *testing.F) {
	for _, s := range chunkSeeds() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		checkScan(t, data)
		parseError(data)
		timingsOf(data)
	})
}

func TestParseError(t *testing.T) {
	for _, tt := range []struct{ in, code, message string }{
		{`{"error":{"message":"m","type":"t","code":"c"}}`, "c", "m"},
		{`{"error":{"message":"m","type":"t","code":null}}`, "t", "m"},
		{`{"error":{"message":"m","code":429}}`, "429", "m"},
		{`{"error":"m"}`, "", "m"},
		{`{"object":"error","message":"m","code":40001}`, "40001", "m"},
		{`{"detail":"Not Found"}`, "", "Not Found"},
		{`{"detail":[{"loc":["body"],"msg":"x"}]}`, "", `[{"loc":["body"],"msg":"x"}]`},
		{`"m"`, "", "m"},
		{` <html>busy</html> `, "", "<html>busy</html>"},
		{``, "", ""},
		{`{"error":null}`, "", `{"error":null}`},
	} {
		if got := parseError([]byte(tt.in)); got.code != tt.code || got.message != tt.message {
			t.Errorf("parseError(%s) = %q, %q; want %q, %q", tt.in, got.code, got.message, tt.code, tt.message)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	data := []byte(vllmChunk[len("data: "):])
	var c chunk
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if !c.scan(data) {
			b.Fatal("not scanned")
		}
	}
}

// TestResetForgetsEverything holds that no field of a chunk outlives it: each is
// dirty before, and none after.
func TestResetForgetsEverything(t *testing.T) {
	x := []byte("x")
	c := chunk{
		content: x, reasoning: x, payload: 1, has: hasContent, finish: x, seen: 1, finished: 1,
		tools: []toolDelta{{}}, listed: 1, items: items{index: []int64{1}, length: 1, ragged: true},
		usage: usage{1, 1, 1, 1, 1, 1, 1}, err: x, timings: x, model: x, print: x, spent: []spent{{}},
		b: x, i: 1, bad: true, lax: true, scratch: x, texts: [2][]byte{x, x},
	}
	dirty := reflect.ValueOf(c)
	for i := range dirty.NumField() {
		if dirty.Field(i).IsZero() {
			t.Errorf("the test leaves %s clean", dirty.Type().Field(i).Name)
		}
	}
	c.reset(nil)
	if c.usage != noUsage || len(c.items.index) != 0 || c.items.length != 0 || c.items.ragged || len(c.texts[0])+len(c.texts[1]) != 0 {
		t.Errorf("usage %v, items %v, texts %q", c.usage, c.items, c.texts)
	}
	clean := reflect.ValueOf(c)
	for i := range clean.NumField() {
		f, name := clean.Field(i), clean.Type().Field(i).Name
		switch {
		case name == "usage", name == "items", name == "texts":
		case f.Kind() == reflect.Slice && f.Len() > 0, f.Kind() != reflect.Slice && !f.IsZero():
			t.Errorf("%s is not reset", name)
		}
	}
}

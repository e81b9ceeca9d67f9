package llm_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/assay-llm/assay/corpus"
	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/record"
)

func ExampleDecoder() {
	var d llm.Decoder
	print := func(e *llm.Event) error {
		fmt.Printf("read %d: comment %v: %q\n", e.Read, e.Comment, e.Data)
		return nil
	}
	for i, chunk := range []string{"data: one\r", "\n\r\ndata: tw", "o\n: ping\n\n"} {
		if err := d.Feed([]byte(chunk), uint32(i+1), print); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// read 2: comment false: "one"
	// read 3: comment true: "ping"
	// read 3: comment false: "two"
}

func ExampleClient_Do() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, c := range []llm.Chunk{
			{Role: "assistant"},
			{Content: "Hello"},
			{Content: " there"},
			{Finish: "stop"},
			{UsageOnly: true, Usage: &llm.Usage{Prompt: 9, Output: 2}},
		} {
			w.Write(llm.AppendEvent(nil, 0, llm.AppendChunk(nil, &c)))
		}
		w.Write(llm.AppendDone(nil))
	}))
	defer server.Close()

	client, err := llm.NewClient(llm.Target{URL: server.URL, Model: "m"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	var rec record.Record
	answer := client.Do(context.Background(), time.Now(), &llm.Request{
		Messages: []corpus.Message{{Role: "user", Content: "Say hello."}}, Stream: true,
	}, &rec)
	tokens, _ := rec.Output.N()
	fmt.Printf("%s: %q, %d tokens, finish %s\n", rec.Outcome, answer.Text, tokens, rec.Finish)
	// Output: ok: "Hello there", 2 tokens, finish stop
}

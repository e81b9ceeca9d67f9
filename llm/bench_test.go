//go:build unix

package llm

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/assay-llm/assay/record"
)

// stampedChunk is an event as the simulated engine sends it.
const stampedChunk = ": emit 1790000000000000000\n" + vllmChunk

// BenchmarkEvents measures what one event costs the client behind the read:
// unframing, decoding, scanning, digesting, recording.
func BenchmarkEvents(b *testing.B) {
	for _, tt := range []struct{ name, event string }{
		{"plain", vllmChunk},
		{"stamped", stampedChunk},
		{"usage", strings.Replace(vllmChunk, `}]}`, `}],"usage":{"prompt_tokens":512,"total_tokens":640,"completion_tokens":128}}`, 1)},
		{"escaped", strings.Replace(vllmChunk, " token", `\u4e2d\n`, 1)},
	} {
		b.Run(tt.name, func(b *testing.B) {
			frame := []byte(chunked1(tt.event))
			target := Target{KeepText: -1}.withDefaults()
			rec := record.Record{}
			q := &call{epoch: time.Now(), rec: &rec}
			y := tallies.New().(*tally)
			y.begin(&target, q, &Request{Stream: true})
			y.frag = fragment{at: time.Now(), read: 1}
			var chunks chunked
			b.SetBytes(int64(len(frame)))
			b.ReportAllocs()
			for b.Loop() {
				rec.Events, y.counts, y.countsSent, y.payloads = rec.Events[:0], y.counts[:0], 0, 0
				for p := frame; len(p) > 0; {
					data, rest, err := chunks.next(p)
					if err == nil {
						err = y.dec.Feed(data, 1, y.event)
					}
					if err != nil {
						b.Fatal(err)
					}
					p = rest
				}
			}
		})
	}
}

// TestEventsDoNotAllocate is the bar of the hot path.
func TestEventsDoNotAllocate(t *testing.T) {
	target := Target{}.withDefaults()
	rec := record.Record{Events: make([]record.Event, 0, 4096)}
	q := &call{epoch: time.Now(), rec: &rec}
	y := tallies.New().(*tally)
	y.begin(&target, q, &Request{Stream: true})
	y.text = make([]byte, 0, 1<<20)
	y.frag = fragment{at: time.Now(), read: 1}
	stream := []byte(stampedChunk + strings.Replace(vllmChunk, " token", `\u4e2d\n`, 1) + ": ping\n\n")
	feed := func() {
		if err := y.dec.Feed(stream, 1, y.event); err != nil {
			t.Fatal(err)
		}
	}
	feed()
	if n := testing.AllocsPerRun(200, feed); n != 0 {
		t.Errorf("%v allocations for three events, want 0", n)
	}
	if len(rec.Events) < 600 || rec.Events[0].Emit == 0 {
		t.Errorf("%d events, the first emitted at %v", len(rec.Events), rec.Events[0].Emit)
	}
}

func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRequests compares small unstreamed requests on 16 kept connections
// by CPU time, client and server together, with net/http's client in the same
// run against the same raw server.
func BenchmarkRequests(b *testing.B) {
	body := `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}`
	reply := []byte(plain("200 OK", "application/json", body))
	s := serve(b, func(_ int, p *peer) {
		buf := make([]byte, 64<<10)
		for n := 0; ; { // answers each request that came in one piece, without parsing it
			k, err := p.Conn.Read(buf)
			if n += k; err != nil {
				return
			}
			if buf[k-1] == '}' {
				n = 0
				p.Conn.Write(reply)
			}
		}
	})
	const workers = 16
	parallel := func(b *testing.B, each func() error) {
		start := cpu()
		var wg sync.WaitGroup
		share := b.N/workers + 1
		for range workers {
			wg.Go(func() {
				for range share {
					if err := each(); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		used := cpu() - start
		b.ReportMetric(float64(share*workers)/used.Seconds(), "requests/CPU-s")
		b.ReportMetric(float64(used.Microseconds())/float64(share*workers), "CPU-µs/request")
	}
	b.Run("own", func(b *testing.B) {
		c := client(b, Target{URL: s.url(), Model: "m"})
		req := chat("hello")
		req.Stream = false
		b.ReportAllocs()
		parallel(b, func() error {
			var rec record.Record
			if c.Do(b.Context(), time.Now(), req, &rec); rec.Outcome != record.OK {
				return fmt.Errorf("%s: %s", rec.Outcome, rec.Detail)
			}
			return nil
		})
	})
	b.Run("net-http", func(b *testing.B) {
		rt := &http.Transport{MaxIdleConnsPerHost: workers}
		defer rt.CloseIdleConnections()
		request := `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
		b.ReportAllocs()
		parallel(b, func() error {
			req, err := http.NewRequest(http.MethodPost, s.url()+"/v1/chat/completions", strings.NewReader(request))
			if err != nil {
				return err
			}
			resp, err := rt.RoundTrip(req)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			return err
		})
	})
}

func BenchmarkAppendRequest(b *testing.B) {
	target := Target{API: APIChat, Model: "m"}
	req := chat(strings.Repeat("The quick brown fox says \"hello\" to the lazy dog.\n", 40))
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = target.appendRequest(buf[:0], req)
		b.SetBytes(int64(len(buf)))
	}
}

package llm

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-llm/assay/record"
)

// pipeTarget is a target in memory, whose server handles each connection.
func pipeTarget(handle func(n int, p *peer)) Target {
	n := 0
	return Target{URL: "http://memory", Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func(n int) {
			defer theirs.Close()
			handle(n, &peer{Conn: theirs, in: newReader(theirs)})
		}(n)
		n++
		return ours, nil
	}}
}

// TestTimes holds the instants of a slow answer, to the nanosecond, in a bubble
// and on connections that are no sockets.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := pipeTarget(func(_ int, p *peer) {
			for {
				if h, _ := p.request(); h == nil {
					return
				}
				time.Sleep(110 * time.Millisecond)
				io.WriteString(p, streamHead)
				time.Sleep(40 * time.Millisecond)
				p.chunks(`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n")
				time.Sleep(150 * time.Millisecond)
				p.chunks(string(AppendEvent(nil, time.Now().Add(-time.Millisecond).UnixNano(), []byte(`{"choices":[{"index":0,"delta":{"content":"a"}}]}`))))
				time.Sleep(100 * time.Millisecond)
				p.chunks(eventA + eventA)
				time.Sleep(time.Millisecond)
				p.chunks(eventStop)
				p.chunks(eventUsage)
				p.chunks(eventDone)
				time.Sleep(time.Minute) // W11: the socket stays open
				io.WriteString(p, lastChunk)
			}
		})
		dial := target.Dial
		target.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			time.Sleep(10 * time.Millisecond)
			return dial(ctx, network, addr)
		}
		c := client(t, target)
		epoch := time.Now().Add(-50 * time.Millisecond)
		rec := record.Record{}
		c.Do(t.Context(), epoch, chat("x"), &rec)
		checkRecord(t, &rec)
		ms := func(n float64) record.Instant { return record.At(time.Duration(n * float64(time.Millisecond))) }
		for _, tt := range []struct {
			name      string
			got, want record.Instant
		}{
			{"dial starts", rec.ConnStart, ms(50)},
			{"dial ends", rec.ConnEnd, ms(60)},
			{"send", rec.Send, ms(60)},
			{"sent", rec.Sent, ms(60)},
			{"header", rec.Header, ms(170)},
			{"role", rec.Events[0].At, ms(210)},
			{"first", rec.First().At, ms(360)},
			{"first emitted", rec.First().Emit, ms(359)},
			{"last", rec.Last().At, ms(460)},
			{"end", rec.EOF, ms(461)},
		} {
			if tt.got != tt.want {
				t.Errorf("%s at %v, want %v", tt.name, time.Duration(tt.got-1), time.Duration(tt.want-1))
			}
		}
		if rec.Outcome != record.OK || rec.Flags&record.FlagCoalesced == 0 || rec.First().Lag >= 0 {
			t.Errorf("outcome %s, flags %v, lag %v", rec.Outcome, rec.Flags.Names(), rec.First().Lag)
		}
		if since := time.Since(epoch); since > 500*time.Millisecond {
			t.Errorf("Do came back after %v", since)
		}
		c.Close()
		time.Sleep(2 * time.Minute) // the server's minute
	})
}

// TestLimitsOfTime holds each limit and cancellation, exactly.
func TestLimitsOfTime(t *testing.T) {
	for _, tt := range []struct {
		name   string
		target Target
		send   func(p *peer)
		ctx    func(context.Context) (context.Context, context.CancelFunc)
		want   record.Outcome
		after  time.Duration
	}{
		{name: "stall before the head", target: Target{Stall: 3 * time.Second}, want: record.StallTimeout, after: 3 * time.Second},
		{name: "comments are signs of life", target: Target{Stall: 3 * time.Second}, send: func(p *peer) {
			io.WriteString(p, streamHead)
			for range 5 {
				time.Sleep(2900 * time.Millisecond)
				p.chunks(": ping\n\n")
			}
		}, want: record.StallTimeout, after: 17500 * time.Millisecond},
		{name: "many bytes, then none", target: Target{Stall: 3 * time.Second}, send: func(p *peer) {
			io.WriteString(p, streamHead)
			for range 2000 {
				time.Sleep(time.Millisecond)
				p.chunks(eventA)
			}
		}, want: record.StallTimeout, after: 5 * time.Second},
		{name: "whole request", target: Target{Timeout: 7 * time.Second, Stall: 2 * time.Second}, send: func(p *peer) {
			io.WriteString(p, streamHead)
			for range 100 {
				time.Sleep(time.Second)
				p.chunks(eventA)
			}
		}, want: record.TotalTimeout, after: 7 * time.Second},
		{name: "no limit", target: Target{Timeout: -1, Stall: -1}, send: func(p *peer) {
			time.Sleep(24 * time.Hour)
			io.WriteString(p, streamHead)
			io.WriteString(p, chunked1(eventA+eventStop+eventDone)+lastChunk)
		}, want: record.OK, after: 24 * time.Hour},
		{name: "as planned", ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(ErrPlanned) })
			return ctx, func() { cancel(nil) }
		}, want: record.ClientCancelled, after: time.Second},
		{name: "stopped", ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, want: record.Interrupted, after: time.Second},
		{name: "end of the drain", ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, want: record.Interrupted, after: time.Second},
		{name: "stopped before", ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		}, want: record.Interrupted},
	} {
		for _, protocol := range []string{ProtocolHTTP1, "net/http"} {
			t.Run(tt.name+", "+protocol, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					memory := pipeTarget(func(_ int, p *peer) {
						p.request()
						if tt.send != nil {
							tt.send(p)
						}
						p.in.ReadByte()
					})
					target := tt.target
					target.URL, target.Dial = memory.URL, memory.Dial
					c := client(t, target)
					if protocol != ProtocolHTTP1 {
						w, err := newNetHTTP(c.t)
						if err != nil {
							t.Fatal(err)
						}
						c.wire = w
					}
					ctx := t.Context()
					if tt.ctx != nil {
						var cancel context.CancelFunc
						ctx, cancel = tt.ctx(ctx)
						defer cancel()
					}
					start := time.Now()
					rec, _ := ask(t, ctx, c, chat("x"))
					if got := time.Since(start); rec.Outcome != tt.want || got != tt.after {
						t.Errorf("%s (%s) after %v, want %s after %v", rec.Outcome, rec.Detail, got, tt.want, tt.after)
					}
					if tt.after == 0 && (rec.Send.Set() || rec.ConnStart.Set()) {
						t.Error("dialled or sent although it was stopped before")
					}
					c.Close()
					time.Sleep(48 * time.Hour) // until the server has noticed
				})
			})
		}
	}
}

func TestDialLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		for _, tt := range []struct {
			target Target
			want   record.Outcome
			after  time.Duration
		}{
			{Target{DialTimeout: 3 * time.Second}, record.Dial, 3 * time.Second},
			{Target{DialTimeout: 3 * time.Second, Timeout: time.Second}, record.TotalTimeout, time.Second},
			{Target{}, record.Dial, 10 * time.Second},
		} {
			tt.target.URL, tt.target.Dial = "http://memory", hang
			start := time.Now()
			rec, _ := ask(t, t.Context(), client(t, tt.target), chat("x"))
			if got := time.Since(start); rec.Outcome != tt.want || got != tt.after {
				t.Errorf("%s (%s) after %v, want %s after %v", rec.Outcome, rec.Detail, got, tt.want, tt.after)
			}
		}
		// A handshake that never ends.
		ours, theirs := net.Pipe()
		defer theirs.Close()
		go io.Copy(io.Discard, theirs)
		start := time.Now()
		rec, _ := ask(t, t.Context(), client(t, Target{URL: "https://memory", Dial: func(context.Context, string, string) (net.Conn, error) { return ours, nil }}), chat("x"))
		if got := time.Since(start); rec.Outcome != record.TLS || got != 10*time.Second {
			t.Errorf("handshake: %s (%s) after %v", rec.Outcome, rec.Detail, got)
		}
	})
}

package sim

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// BenchmarkServerStreams runs streams over loopback TCP and reports, for each
// event, how long after its emit stamp it was read by a client that does nothing
// else, how far the gaps between the stamps are from the step time, and what an
// event costs client and server together.
func BenchmarkServerStreams(b *testing.B) {
	for _, streams := range []int{1, 100} {
		b.Run(fmt.Sprintf("streams=%d", streams), func(b *testing.B) { benchmarkStreams(b, streams) })
	}
}

func benchmarkStreams(b *testing.B, streams int) {
	const step = 10 * time.Millisecond
	s, err := NewServer(Config{Step: Step{Base: 10e6}})
	if err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Skipf("no loopback: %v", err)
	}
	hs := &http.Server{Handler: s}
	ctx, cancel := context.WithCancel(b.Context())
	var serving, reading sync.WaitGroup
	serving.Go(func() { _ = hs.Serve(l) })
	serving.Go(func() { _ = s.Run(ctx) })
	defer serving.Wait()
	defer hs.Close()
	defer cancel()
	var mu sync.Mutex
	var transit, gaps []float64 // microseconds
	before := cpu()
	events := 0
	for range b.N {
		for range streams {
			reading.Go(func() {
				t, g := readRaw(b, l.Addr().String(), step)
				mu.Lock()
				defer mu.Unlock()
				transit, gaps = append(transit, t...), append(gaps, g...)
				events += len(t)
			})
		}
		reading.Wait()
	}
	for name, list := range map[string][]float64{"transit": transit, "gap-error": gaps} {
		slices.Sort(list)
		for _, p := range []float64{0.5, 0.99, 1} {
			b.ReportMetric(list[int(p*float64(len(list)-1))], fmt.Sprintf("%s-p%v-us", name, p*100))
		}
	}
	b.ReportMetric(float64((cpu()-before).Microseconds())/float64(events), "cpu-us/event")
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}

// cpu is the processor time of this process.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// readRaw reads one stream of 300 tokens and returns the time of each event from
// its stamp to its arrival, and by how much the gaps of the stamps miss the step.
func readRaw(b *testing.B, addr string, step time.Duration) (transit, gaps []float64) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.Error(err)
		return nil, nil
	}
	defer conn.Close()
	body := `{"prompt":"x","max_tokens":300,"stream":true}`
	fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: sim\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
	buf := make([]byte, 64<<10)
	const digits = 19
	var last int64
	for {
		n, err := conn.Read(buf)
		now := time.Now().UnixNano()
		for rest := buf[:n]; ; {
			_, after, ok := bytes.Cut(rest, []byte(": emit "))
			if !ok || len(after) < digits {
				break
			}
			emit, err := strconv.ParseInt(string(after[:digits]), 10, 64)
			if err != nil {
				b.Error(err)
				return transit, gaps
			}
			rest = after[digits:]
			transit = append(transit, float64(now-emit)/1e3)
			if last > 0 {
				gaps = append(gaps, math.Abs(float64(emit-last-int64(step)))/1e3)
			}
			last = emit
		}
		if err != nil {
			return transit, gaps
		}
	}
}

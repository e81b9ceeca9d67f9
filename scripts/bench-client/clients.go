//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/assay-llm/assay/llm"
	"github.com/assay-llm/assay/load"
	"github.com/assay-llm/assay/record"
)

// sample is what one process of a client found.
type sample struct {
	Requests int64               `json:"requests,omitempty"`
	Events   int64               `json:"events,omitempty"`
	CPU      time.Duration       `json:"cpu_ns,omitempty"`
	Mallocs  int64               `json:"mallocs,omitempty"`
	Memory   int64               `json:"memory,omitempty"` // bytes
	Times    map[string]quantile `json:"times,omitempty"`
}

// work is what a client process is asked to do.
type work struct {
	Kind    string        `json:"kind"`
	Addr    string        `json:"addr"`
	Path    string        `json:"path"`   // what the null server answers
	Conns   int           `json:"conns"`  // connections, each with a goroutine
	Each    int64         `json:"each"`   // requests a connection; 0: until the time is over
	Length  time.Duration `json:"length"` // of measuring
	Rate    float64       `json:"rate"`   // requests a second
	Scratch string        `json:"scratch"`
	Profile string        `json:"profile"` // directory for a CPU profile; "": none
}

// profile begins the CPU profile of this process, if there is to be one.
func (w *work) profile() (stop func() error, err error) {
	if w.Profile == "" {
		return func() error { return nil }, nil
	}
	f, err := os.CreateTemp(w.Profile, strings.ReplaceAll(w.Kind+w.Path, "/", "-")+"-*.pprof")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}

// clients are the processes that measure, by kind.
var clients = map[string]func(context.Context, work) (sample, error){
	"own":      own,
	"driver":   driver,
	"net/http": plainHTTP,
	"bare":     bare,
	"memory":   memory,
	"stamps":   stamps,
	"lateness": lateness,
}

// prompt is what every request asks.
const prompt = "hello"

func target(w work) llm.Target {
	return llm.Target{URL: "http://" + w.Addr + w.Path, Model: "m", KeepText: -1}
}

// opened returns a client with all connections open.
func opened(ctx context.Context, w work) (*llm.Client, error) {
	c, err := llm.NewClient(target(w))
	if err != nil {
		return nil, err
	}
	_, err = c.Open(ctx, w.Conns)
	return c, err
}

// streamed reports whether the answers are streams, and of how many events.
func (w *work) streamed() (events int64, ok bool) {
	part := strings.Split(w.Path, "/")
	if part[1] == "tiny" {
		return 1, false
	}
	events, _ = strconv.ParseInt(part[2], 10, 64)
	return events, true
}

// cpu returns the CPU time of this process, user and system.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// repeat has every connection make its requests and sums up. Do returns the
// number of payload events of one request.
func repeat(w work, do func(conn int, n int64) (events int64, err error)) (sample, error) {
	var (
		wg     sync.WaitGroup
		over   atomic.Bool
		s      sample
		mu     sync.Mutex
		faults error
		before runtime.MemStats
		after  runtime.MemStats
	)
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := cpu()
	if w.Each == 0 {
		defer time.AfterFunc(w.Length, func() { over.Store(true) }).Stop()
	}
	for i := range w.Conns {
		wg.Go(func() {
			n, events := int64(0), int64(0)
			for ; !over.Load() && (w.Each == 0 || n < w.Each); n++ {
				k, err := do(i, n)
				if err != nil {
					mu.Lock()
					faults = errors.Join(faults, err)
					mu.Unlock()
					over.Store(true)
					return
				}
				events += k
			}
			mu.Lock()
			s.Requests += n
			s.Events += events
			mu.Unlock()
		})
	}
	wg.Wait()
	s.CPU = cpu() - start
	runtime.ReadMemStats(&after)
	s.Mallocs = int64(after.Mallocs - before.Mallocs)
	return s, faults
}

// own is our client as the driver calls it: a new record for each request.
func own(ctx context.Context, w work) (sample, error) {
	c, err := opened(ctx, w)
	if err != nil {
		return sample{}, err
	}
	defer c.Close()
	defer load.Slack()() // as every run has it
	epoch := time.Now()
	events, stream := w.streamed()
	return repeat(w, func(conn int, n int64) (int64, error) {
		rec := &record.Record{Shot: n, Variant: "own", Workload: "bench", Block: conn, Stream: stream, MaxTokens: events}
		return ask(ctx, c, epoch, rec)
	})
}

// ask makes one request and returns the number of its payload events.
func ask(ctx context.Context, c *llm.Client, epoch time.Time, rec *record.Record) (int64, error) {
	c.Do(ctx, epoch, &llm.Request{Prompt: prompt, MaxTokens: rec.MaxTokens, Stream: rec.Stream}, rec)
	if !rec.Success() {
		return 0, fmt.Errorf("request %d: %s: %s", rec.Shot, rec.Outcome, rec.Detail)
	}
	n := int64(0)
	for i := range rec.Events {
		if rec.Events[i].Kind.Payload() {
			n++
		}
	}
	if n != rec.MaxTokens {
		return 0, fmt.Errorf("request %d: %d events of output, the server sent %d", rec.Shot, n, rec.MaxTokens)
	}
	return n, nil
}

// body is the request of the clients that are compared with ours.
const body = `{"model":"m","messages":[{"role":"user","content":"` + prompt + `"}],"max_tokens":1}`

// chatRequest and chatAnswer are the JSON of the client on net/http.
type (
	chatRequest struct {
		Model     string        `json:"model"`
		Messages  []chatMessage `json:"messages"`
		MaxTokens int64         `json:"max_tokens"`
	}
	chatMessage struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	chatAnswer struct {
		Choices []struct {
			Message chatMessage `json:"message"`
			Finish  string      `json:"finish_reason"`
		} `json:"choices"`
		Usage struct {
			Prompt int64 `json:"prompt_tokens"`
			Output int64 `json:"completion_tokens"`
			Total  int64 `json:"total_tokens"`
		} `json:"usage"`
	}
)

// plainHTTP is a plain client on net/http that does the same work: it encodes
// the request, limits its time, notes when it was sent, when the answer began and
// when it ended, decodes it and digests the text.
func plainHTTP(ctx context.Context, w work) (sample, error) {
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: w.Conns}, Timeout: 10 * time.Minute}
	defer c.CloseIdleConnections()
	url := "http://" + w.Addr + w.Path + "/v1/chat/completions"
	return repeat(w, func(int, int64) (int64, error) {
		b, err := json.Marshal(chatRequest{Model: "m", Messages: []chatMessage{{"user", prompt}}, MaxTokens: 1})
		if err != nil {
			return 0, err
		}
		var sent, began time.Time
		trace := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			WroteRequest:         func(httptrace.WroteRequestInfo) { sent = time.Now() },
			GotFirstResponseByte: func() { began = time.Now() },
		})
		req, err := http.NewRequestWithContext(trace, http.MethodPost, url, bytes.NewReader(b))
		if err != nil {
			return 0, err
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := c.Do(req)
		if err != nil {
			return 0, err
		}
		b, err = io.ReadAll(resp.Body)
		ended := time.Now()
		resp.Body.Close()
		if err != nil {
			return 0, err
		}
		var answer chatAnswer
		if err := json.Unmarshal(b, &answer); err != nil {
			return 0, err
		}
		if resp.StatusCode != 200 || len(answer.Choices) != 1 || answer.Usage.Output != 1 || began.After(ended) || sent.IsZero() {
			return 0, fmt.Errorf("HTTP %d: %.100q", resp.StatusCode, b)
		}
		digest := sha256.Sum256([]byte(answer.Choices[0].Message.Content))
		if hex.EncodeToString(digest[:]) == "" {
			return 0, errors.New("no digest")
		}
		return 1, nil
	})
}

// bare reads streams and counts bytes: the floor of a goroutine a stream.
func bare(ctx context.Context, w work) (sample, error) {
	conns := make([]net.Conn, w.Conns)
	for i := range conns {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", w.Addr)
		if err != nil {
			return sample{}, err
		}
		defer c.Close()
		conns[i] = c
	}
	events, _ := w.streamed()
	request := fmt.Sprintf("POST %s/v1/chat/completions HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", w.Path, w.Addr, len(body), body)
	var total atomic.Int64
	s, err := repeat(w, func(conn int, _ int64) (int64, error) {
		c := conns[conn]
		if _, err := io.WriteString(c, request); err != nil {
			return 0, err
		}
		buf := make([]byte, 64<<10)
		for bytesRead := 0; ; {
			n, err := c.Read(buf)
			bytesRead += n
			if err != nil {
				return 0, err
			}
			if bytes.HasSuffix(buf[:n], []byte(lastChunk)) {
				total.Add(int64(bytesRead))
				return events, nil
			}
		}
	})
	if least := s.Events * int64(len(eventJSON)); err == nil && total.Load() < least {
		err = fmt.Errorf("%d bytes came, %d at least were sent", total.Load(), least)
	}
	return s, err
}

// memory opens streams that stay open and tells what they take.
func memory(ctx context.Context, w work) (sample, error) {
	c, err := llm.NewClient(target(w))
	if err != nil {
		return sample{}, err
	}
	defer c.Close()
	const tokens = 128 // that each stream asks for
	empty, err := resident()
	if err != nil {
		return sample{}, err
	}
	if _, err := c.Open(ctx, w.Conns); err != nil {
		return sample{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	epoch := time.Now()
	records := make([]record.Record, w.Conns)
	for i := range records {
		wg.Go(func() {
			records[i] = record.Record{Shot: int64(i), Variant: "own", Workload: "bench", Stream: true, MaxTokens: tokens}
			c.Do(ctx, epoch, &llm.Request{Prompt: prompt, MaxTokens: tokens, Stream: true}, &records[i])
		})
	}
	defer wg.Wait()
	defer cancel()
	if err := allHeld(ctx, w); err != nil {
		return sample{}, err
	}
	full, err := resident()
	if err != nil {
		return sample{}, err
	}
	cancel()
	wg.Wait()
	events := int64(0)
	for i := range records {
		if o := records[i].Outcome; o != record.Interrupted {
			return sample{}, fmt.Errorf("stream %d ended as %s: %s", i, o, records[i].Detail)
		}
		events += int64(len(records[i].Events))
	}
	return sample{Requests: int64(w.Conns), Events: events, Memory: full - empty}, nil
}

// allHeld waits until the server holds all streams and they have been read.
func allHeld(ctx context.Context, w work) error {
	held := 0
	for range 600 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.Addr+"/held", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
		if held, err = strconv.Atoi(string(b)); err != nil {
			return err
		}
		if held == w.Conns {
			time.Sleep(400 * time.Millisecond)
			return nil
		}
	}
	return fmt.Errorf("the server holds %d of %d streams after a minute", held, w.Conns)
}

// resident returns the resident set of this process after garbage collection.
func resident() (int64, error) {
	debug.FreeOSMemory()
	runtime.GC()
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			kB, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(value, "kB")), 10, 64)
			return kB << 10, err
		}
	}
	return 0, errors.New("no VmRSS in /proc/self/status")
}

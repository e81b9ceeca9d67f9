//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// bench measures part after part and collects the rows of the table.
type bench struct {
	rounds  int
	wrk     string // its path; "": there is none
	profile string
	log     io.Writer

	addr    string // of the null server
	scratch string
	rows    []row
}

// section is a part of the table.
type section struct {
	name    string
	measure func(*bench, context.Context)
}

// sections are the parts of the table, in order.
var sections = []section{
	{"requests", (*bench).requests},
	{"streams", (*bench).streams},
	{"flat", (*bench).flat},
	{"memory", (*bench).memory},
	{"allocs", (*bench).allocs},
	{"stamps", (*bench).stamps},
	{"lateness", (*bench).lateness},
}

// measure measures the sections that only names; all if it is empty.
func (b *bench) measure(ctx context.Context, only string) error {
	var names []string
	for name := range strings.SplitSeq(only, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(sections, func(s section) bool { return s.name == name }) {
			return fmt.Errorf("-only %s: there is no part %q", only, name)
		}
	}
	dir, err := os.MkdirTemp("", "bench-client")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.scratch = dir
	for _, s := range sections {
		if len(names) > 0 && !slices.Contains(names, s.name) {
			continue
		}
		fmt.Fprintln(b.log, "bench-client: measuring", s.name)
		// A server of its own: what an earlier part left in it must not matter.
		server, err := start(ctx, "serve")
		if err != nil {
			return err
		}
		addr, err := server.out.ReadString('\n')
		if err == nil {
			b.addr = strings.TrimSpace(addr)
			s.measure(b, ctx)
		}
		server.close()
		if err != nil {
			return fmt.Errorf("starting the null server: %w", err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// client runs a client; what it could not do is told and counts as not measured.
func (b *bench) client(ctx context.Context, w work) (sample, bool) {
	w.Addr, w.Scratch, w.Profile = b.addr, b.scratch, b.profile
	s, err := client(ctx, w)
	if err != nil {
		fmt.Fprintln(b.log, "bench-client:", err)
	}
	return s, err == nil
}

// perSecond returns how many there were in a second of CPU time; 0: unknown.
func perSecond(n int64, cpu time.Duration) float64 {
	if n <= 0 || cpu <= 0 {
		return 0
	}
	return float64(n) / cpu.Seconds()
}

// series is what a quantity was in each round that gave it.
type series []float64

func (s *series) add(v float64) {
	if v > 0 {
		*s = append(*s, v)
	}
}

// addRatio adds a ratio of two numbers that are both known.
func (s *series) addRatio(a, b float64) {
	if a > 0 && b > 0 {
		s.add(a / b)
	}
}

const requestTime = 2 * time.Second

func (b *bench) requests(ctx context.Context) {
	var own, whole, overWrk, overHTTP series
	w := work{Path: "/tiny", Conns: 64, Length: requestTime}
	for range b.rounds {
		rate := func(kind string) float64 {
			w.Kind = kind
			s, _ := b.client(ctx, w)
			return perSecond(s.Requests, s.CPU)
		}
		us := rate("own")
		wrk, err := b.runWrk(ctx, w)
		if err != nil {
			fmt.Fprintln(b.log, "bench-client:", err)
		}
		own.add(us)
		overWrk.addRatio(us, wrk)
		overHTTP.addRatio(us, rate("net/http"))
		whole.add(rate("driver"))
	}
	b.rows = append(b.rows,
		newRow("requests per CPU-second, against wrk", "×", overWrk).atLeast(0.8),
		newRow("requests per CPU-second, against net/http", "×", overHTTP).atLeast(4),
		newRow("requests per CPU-second", "", own),
		newRow("requests per CPU-second, with driver and journal", "", whole),
	)
}

// wrkScript makes wrk send what the clients here send.
const wrkScript = "wrk.method = \"POST\"\nwrk.body = [[" + body + "]]\nwrk.headers[\"Content-Type\"] = \"application/json\"\n"

var wrkCount = regexp.MustCompile(`(\d+) requests in `)

// runWrk returns wrk's requests per second of its CPU time.
func (b *bench) runWrk(ctx context.Context, w work) (float64, error) {
	if b.wrk == "" {
		return 0, errNoWrk
	}
	script := filepath.Join(b.scratch, "post.lua")
	if err := os.WriteFile(script, []byte(wrkScript), 0o600); err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, b.wrk, "-t1", "-c"+strconv.Itoa(w.Conns), fmt.Sprintf("-d%ds", w.Length/time.Second), "-s", script,
		"http://"+b.addr+w.Path+"/v1/chat/completions")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("running wrk: %w: %.200s", err, out)
	}
	n, err := wrkRequests(string(out))
	if err != nil {
		return 0, err
	}
	return perSecond(n, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()), nil
}

// wrkRequests reads the number of requests off wrk's report.
func wrkRequests(out string) (int64, error) {
	m := wrkCount.FindStringSubmatch(out)
	if m == nil || strings.Contains(out, "Non-2xx") || strings.Contains(out, "Socket errors") {
		return 0, fmt.Errorf("wrk's report is of no use: %.300q", out)
	}
	return strconv.ParseInt(m[1], 10, 64)
}

func (b *bench) streams(ctx context.Context) {
	var each, ratio series
	w := work{Path: "/stream/150/20000", Conns: 1000, Each: 1} // 3 s of 50 events a second
	for range b.rounds {
		rate := func(kind string) float64 {
			w.Kind = kind
			s, _ := b.client(ctx, w)
			return perSecond(s.Events, s.CPU)
		}
		own, floor := rate("own"), rate("bare")
		ratio.addRatio(floor, own)
		each.addRatio(1e6, own)
	}
	b.rows = append(b.rows,
		newRow("CPU per event at 1,000 streams × 50/s, against a bare read loop", "×", ratio).atMost(1.2),
		newRow("CPU per event at 1,000 streams × 50/s", "µs", each),
	)
}

func (b *bench) flat(ctx context.Context) {
	var rate series
	for range b.rounds {
		s, _ := b.client(ctx, work{Kind: "own", Path: "/stream/1000/0", Conns: 100, Length: time.Second})
		rate.add(perSecond(s.Events, s.CPU))
	}
	b.rows = append(b.rows, newRow("events per CPU-second, flat out", "", rate).atLeast(2.5e6))
}

func (b *bench) memory(ctx context.Context) {
	var each series
	w := work{Kind: "memory", Path: "/hold/8", Conns: 10_000}
	if s, ok := b.client(ctx, w); ok {
		each.add(float64(s.Memory) / float64(s.Requests))
	}
	b.rows = append(b.rows, newRow("memory per stream, 10,000 open", "B", each).atMost(16_000))
}

// allocs takes the slope from short to long streams, so that what a request
// costs once does not count.
func (b *bench) allocs(ctx context.Context) {
	var slope series
	w := work{Kind: "own", Path: "/stream/100/0", Conns: 50, Each: 20}
	short, ok := b.client(ctx, w)
	w.Path = "/stream/1000/0"
	if long, also := b.client(ctx, w); ok && also && long.Events > short.Events {
		slope = series{max(float64(long.Mallocs-short.Mallocs), 0) / float64(long.Events-short.Events)}
	}
	b.rows = append(b.rows, newRow("allocations per event", "", slope).atMost(0.005))
}

func (b *bench) stamps(ctx context.Context) {
	for _, busy := range []bool{false, true} {
		where := ""
		var burner *helper
		if busy {
			where = ", all cores busy"
			h, err := start(ctx, "burn")
			if err != nil {
				fmt.Fprintln(b.log, "bench-client: starting the burners:", err)
				continue
			}
			burner = h
		}
		w := work{Kind: "stamps", Path: "/stamped/100/10000", Conns: 100, Length: 5 * time.Second}
		s, _ := b.client(ctx, w)
		if burner != nil {
			burner.close()
		}
		for _, what := range []struct {
			name, of string
			judged   bool
		}{
			{"kernel first", "error of the first token, kernel's stamp, p99", true},
			{"kernel event", "error of every event, kernel's stamp, p99", true},
			{"kernel last", "error of the last event of each read, kernel's stamp, p99", false},
			{"own first", "error of the first token, own clock, p99", false},
			{"own event", "error of every event, own clock, p99", false},
		} {
			r := newRow(what.of+where, "µs", p99(s.Times[what.name]))
			if what.judged {
				r = r.atMost(100)
			}
			b.rows = append(b.rows, r)
		}
	}
}

func (b *bench) lateness(ctx context.Context) {
	for _, rate := range []float64{100, 1000, 5000, 20_000} {
		s, _ := b.client(ctx, work{Kind: "lateness", Path: "/tiny", Conns: 256, Length: 4 * time.Second, Rate: rate})
		name := "send lateness at " + number(rate, "requests/s")
		half, tail := newRow(name+", p50", "µs", p50(s.Times["late"])), newRow(name+", p99", "µs", p99(s.Times["late"]))
		if rate == 1000 {
			half, tail = half.atMost(100), tail.atMost(500)
		}
		b.rows = append(b.rows, half, tail)
	}
}

// p50 and p99 are quantiles in microseconds; nothing when there are too few
// observations for them.
func p50(q quantile) []float64 { return micros(q, q.P50, 30) }
func p99(q quantile) []float64 { return micros(q, q.P99, 299) }

func micros(q quantile, d time.Duration, least int) []float64 {
	if q.N < least {
		return nil
	}
	return []float64{float64(d) / 1e3}
}

package host

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-llm/assay/pace"
)

// fine is a host that nothing is wrong with.
var (
	fine = Facts{
		Quota: math.Inf(1), Throttled: 0, MemoryLimit: 16 << 30, MemoryFree: 12 << 30, Ports: 28232, TimeWait: 3, TimeWaitReuse: 2,
		AcceptQueue: 4096, Pressure: 0.01, Clock: "tsc", Governors: []string{"performance"},
	}
	tried = Measured{
		OS: "linux", Cores: 8, Open: 12, Limit: 20000, Dir: "/runs", Free: 100 << 30, Sync: time.Millisecond,
		WakeP50: 60 * time.Microsecond, WakeP99: 200 * time.Microsecond, Stamps: Yes,
	}
	small = Need{Streams: 100, Sure: true, Rate: 10, Records: 1 << 20}
)

// TestExamine changes one thing of a host that is fine, and demands that this
// alone is found.
func TestExamine(t *testing.T) {
	type change = func(f *Facts, m *Measured, n *Need)
	tests := []struct {
		name, id string
		state    State
		text     string // of the finding
		change   change
	}{
		{"nothing", "", OK, "", func(*Facts, *Measured, *Need) {}},
		{"too many streams", "descriptors", Failed, "20000 descriptors at most; 19937 requests in flight need 20001", func(_ *Facts, _ *Measured, n *Need) { n.Streams = 19_937 }},
		{"streams up to the limit", "", OK, "", func(_ *Facts, _ *Measured, n *Need) { n.Streams = 19_936 }},
		{"streams that may never be", "descriptors", Warning, "if that many ever are", func(_ *Facts, _ *Measured, n *Need) { n.Streams, n.Sure = 20_000, false }},
		{"the server in this process", "descriptors", Failed, "10000 requests in flight need 20064", func(_ *Facts, _ *Measured, n *Need) { n.Streams, n.Double = 10_000, true }},
		{"unknown descriptors", "descriptors", Uncertain, "not known", func(_ *Facts, m *Measured, _ *Need) { m.Limit = -1 }},
		{"few ports", "ports", Failed, "90 ephemeral ports", func(f *Facts, _ *Measured, n *Need) { f.Ports, n.Rate = 90, 1 }},
		{"unknown TIME_WAIT", "time_wait", Uncertain, "not known", func(f *Facts, _ *Measured, _ *Need) { f.TimeWait = -1 }},
		{"a fast load", "time_wait", Warning, "allow 471 requests/s, and 500 are planned", func(_ *Facts, _ *Measured, n *Need) { n.Rate = 500 }},
		{"a fast load with reuse", "", OK, "", func(f *Facts, _ *Measured, n *Need) { n.Rate, f.TimeWaitReuse = 500, 1 }},
		{"ports that wait", "time_wait", Warning, "20000 sockets in TIME_WAIT", func(f *Facts, _ *Measured, _ *Need) { f.TimeWait = 20_000 }},
		{"much to keep", "memory", Warning, "8 GiB", func(_ *Facts, _ *Measured, n *Need) { n.Records = 8 << 30 }},
		{"too much to keep", "memory", Failed, "13 GiB", func(_ *Facts, _ *Measured, n *Need) { n.Records = 13 << 30 }},
		{"unknown memory", "memory", Uncertain, "not known", func(f *Facts, _ *Measured, _ *Need) { f.MemoryFree = -1 }},
		{"a quota below the cores", "cpus", Warning, "quota of 4 CPUs is below the 8", func(f *Facts, _ *Measured, _ *Need) { f.Quota = 4 }},
		{"a fifth of a CPU", "cpus", Failed, "quota is 0.2 CPU", func(f *Facts, _ *Measured, _ *Need) { f.Quota = 0.2 }},
		{"one core", "cpus", Warning, "one CPU", func(_ *Facts, m *Measured, _ *Need) { m.Cores = 1 }},
		{"throttled", "throttling", Warning, "throttled for 2s", func(f *Facts, _ *Measured, _ *Need) { f.Quota, f.Throttled = 8, 2*time.Second }},
		{"throttled, who knows", "throttling", Uncertain, "not known", func(f *Facts, _ *Measured, _ *Need) { f.Quota, f.Throttled = 8, -1 }},
		{"a busy machine", "pressure", Warning, "31.0 %", func(f *Facts, _ *Measured, _ *Need) { f.Pressure = 0.31 }},
		{"unknown pressure", "pressure", Uncertain, "not known", func(f *Facts, _ *Measured, _ *Need) { f.Pressure = -1 }},
		{"a saving governor", "governor", Warning, "performance, powersave", func(f *Facts, _ *Measured, _ *Need) { f.Governors = []string{"performance", "powersave"} }},
		{"no governor", "governor", Uncertain, "no frequency governor", func(f *Facts, _ *Measured, _ *Need) { f.Governors = nil }},
		{"late timers", "timer", Warning, "3ms at p99", func(_ *Facts, m *Measured, _ *Need) { m.WakeP99 = 3 * time.Millisecond }},
		{"a slow clock", "clock", Warning, "hpet", func(f *Facts, _ *Measured, _ *Need) { f.Clock = "hpet" }},
		{"no stamps", "kernel_stamps", Warning, "does not stamp", func(_ *Facts, m *Measured, _ *Need) { m.Stamps = No }},
		{"stamps, who knows", "kernel_stamps", Uncertain, "not tried", func(_ *Facts, m *Measured, _ *Need) { m.Stamps = Unknown }},
		{"little space", "disk", Warning, "512 MiB free in /runs", func(_ *Facts, m *Measured, _ *Need) { m.Free = 512 << 20 }},
		{"no space", "disk", Failed, "1 MiB free", func(_ *Facts, m *Measured, _ *Need) { m.Free = 1 << 20 }},
		{"unknown space", "disk", Uncertain, "not known", func(_ *Facts, m *Measured, _ *Need) { m.Free = -1 }},
		{"a slow disk", "fsync", Warning, "takes 250ms", func(_ *Facts, m *Measured, _ *Need) { m.Sync = 250 * time.Millisecond }},
		{"an fsync that failed", "fsync", Uncertain, "not measured", func(_ *Facts, m *Measured, _ *Need) { m.Sync = -1 }},
		{"a short queue", "accept_queue", Warning, "somaxconn is 16", func(f *Facts, _ *Measured, _ *Need) { f.AcceptQueue = 16 }},
		{"an unknown queue", "accept_queue", Uncertain, "not known", func(f *Facts, _ *Measured, _ *Need) { f.AcceptQueue = -1 }},
	}
	for _, tt := range tests {
		f, m, n := fine, tried, small
		tt.change(&f, &m, &n)
		found := false
		for _, got := range append(Examine(f, m), Fit(f, m, n)...) {
			if got.ID == tt.id {
				found = true
				if got.State != tt.state || !strings.Contains(got.Text, tt.text) {
					t.Errorf("%s: %s is %s: %q, want %s: …%q", tt.name, got.ID, got.State, got.Text, tt.state, tt.text)
				}
			} else if got.State != OK {
				t.Errorf("%s: %s is %s: %q", tt.name, got.ID, got.State, got.Text)
			}
			if (got.State == OK) != (got.Next == "") {
				t.Errorf("%s: %s is %s with the next step %q", tt.name, got.ID, got.State, got.Next)
			}
		}
		if !found && tt.id != "" {
			t.Errorf("%s: nothing is found under %s", tt.name, tt.id)
		}
	}
}

// A host of which nothing is known is fine in nothing.
func TestUnknownIsNeverFine(t *testing.T) {
	m := Measured{Cores: 4, Open: -1, Limit: -1, Free: -1, Sync: -1, WakeP50: -1, WakeP99: -1}
	for _, got := range append(Examine(unknowns, m), Fit(unknowns, m, small)...) {
		if got.State != Uncertain || got.Next == "" {
			t.Errorf("%s is %s: %s", got.ID, got.State, got.Text)
		}
	}
}

func TestMeasureIsDoneInTheNearestFolder(t *testing.T) {
	dir := t.TempDir()
	waiter := pace.New()
	defer waiter.Close()
	m, err := Measure(t.Context(), filepath.Join(dir, "not", "yet"), waiter)
	if err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if m.Dir != dir || m.Sync < 0 || m.WakeP50 < 0 || m.WakeP99 < m.WakeP50 || m.Cores < 1 || len(left) > 0 || err != nil {
		t.Errorf("measured %+v, left %v, %v", m, left, err)
	}
	if _, err := Measure(t.Context(), filepath.Join(dir, "a\x00b"), waiter); err == nil {
		t.Error("a folder that cannot be is taken")
	}
}

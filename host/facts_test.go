package host

import (
	"io/fs"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func files(all map[string]string) fs.FS {
	m := fstest.MapFS{}
	for name, text := range all {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

// machine is what a machine without limits tells.
var machine = map[string]string{
	"proc/self/cgroup":                                                "0::/user.slice/session-1.scope\n",
	"proc/meminfo":                                                    "MemTotal:       16384000 kB\nMemFree:         1000000 kB\nMemAvailable:   12000000 kB\n",
	"proc/sys/net/ipv4/ip_local_port_range":                           "32768\t60999\n",
	"proc/sys/net/ipv4/tcp_tw_reuse":                                  "2\n",
	"proc/sys/net/core/somaxconn":                                     "4096\n",
	"proc/net/sockstat":                                               "sockets: used 200\nTCP: inuse 5 orphan 0 tw 31 alloc 8 mem 1\nUDP: inuse 2 mem 0\n",
	"proc/pressure/cpu":                                               "some avg10=25.00 avg60=1.00 avg300=0.50 total=12345\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
	"sys/fs/cgroup/user.slice/cpu.max":                                "max 100000\n",
	"sys/fs/cgroup/user.slice/cpu.stat":                               "usage_usec 5\nthrottled_usec 0\n",
	"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor":            "powersave\n",
	"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor":            "performance\n",
	"sys/devices/system/cpu/cpu2/cpufreq/scaling_governor":            "powersave\n",
	"sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
}

// with returns the files of the machine with others over them; "" takes one away.
func with(changes map[string]string) fs.FS {
	all := map[string]string{}
	for _, m := range []map[string]string{machine, changes} {
		for name, text := range m {
			all[name] = text
			if text == "" {
				delete(all, name)
			}
		}
	}
	return files(all)
}

func TestReadOfAMachine(t *testing.T) {
	want := Facts{
		Quota: math.Inf(1), Throttled: 0, MemoryLimit: 16384000 << 10, MemoryFree: 12000000 << 10,
		Ports: 28232, TimeWait: 31, TimeWaitReuse: 2, AcceptQueue: 4096, Pressure: 0.25,
		Clock: "tsc", Governors: []string{"performance", "powersave"},
	}
	if diff := cmp.Diff(want, Read(with(nil))); diff != "" {
		t.Errorf("Read (-want +got):\n%s", diff)
	}
}

// unknowns are the facts of a host that tells nothing.
var unknowns = Facts{Quota: -1, Throttled: -1, MemoryLimit: -1, MemoryFree: -1, Ports: -1, TimeWait: -1, TimeWaitReuse: -1, AcceptQueue: -1, Pressure: -1}

func TestNothingIsUnknownNotZero(t *testing.T) {
	if diff := cmp.Diff(unknowns, Read(files(nil))); diff != "" {
		t.Errorf("Read of nothing (-want +got):\n%s", diff)
	}
	odd := map[string]string{}
	for name := range machine {
		odd[name] = "\x1b[31m -7 nonsense " + strings.Repeat("9", 400) + "\n\x00::"
	}
	if diff := cmp.Diff(unknowns, Read(files(odd))); diff != "" {
		t.Errorf("Read of nonsense (-want +got):\n%s", diff)
	}
}

func TestReadFindsTheLeastLimitOfACgroup(t *testing.T) {
	const own = "sys/fs/cgroup/user.slice/session-1.scope"
	tests := []struct {
		name      string
		files     map[string]string
		quota     float64
		throttled time.Duration
		limit     int64
		free      int64
	}{
		{
			"its own",
			map[string]string{own + "/cpu.max": "150000 100000", own + "/cpu.stat": "nr_throttled 3\nthrottled_usec 2500\n", own + "/memory.max": "1073741824", own + "/memory.current": "73741824"},
			1.5, 2500 * time.Microsecond, 1 << 30, 1000000000,
		},
		{
			"one above",
			map[string]string{own + "/cpu.max": "400000 100000", "sys/fs/cgroup/user.slice/cpu.max": "20000 100000", own + "/memory.max": "max", "sys/fs/cgroup/user.slice/memory.max": "500", "sys/fs/cgroup/user.slice/memory.current": "900"},
			0.2, 0, 500, 0,
		},
		{
			"of a container, whose path is the host's",
			map[string]string{"proc/self/cgroup": "0::/../../kubepods/pod1", "sys/fs/cgroup/cpu.max": "200000 100000", "sys/fs/cgroup/cpu.stat": "throttled_usec 7"},
			2, 7 * time.Microsecond, 16384000 << 10, 12000000 << 10,
		},
		{
			"of version 1",
			map[string]string{
				"proc/self/cgroup": "5:cpu,cpuacct:/docker/1\n7:memory:/docker/1\n", "sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us": "50000", "sys/fs/cgroup/cpu/docker/1/cpu.cfs_period_us": "100000",
				"sys/fs/cgroup/cpu/docker/1/cpu.stat": "nr_throttled 1\nthrottled_time 42\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
				"sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "1048576", "sys/fs/cgroup/memory/docker/1/memory.usage_in_bytes": "48576",
				"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
			},
			0.5, 42, 1 << 20, 1000000,
		},
		{"of nobody", map[string]string{"proc/self/cgroup": "", "proc/meminfo": ""}, -1, -1, -1, -1},
	}
	for _, tt := range tests {
		f := Read(with(tt.files))
		if f.Quota != tt.quota || f.Throttled != tt.throttled || f.MemoryLimit != tt.limit || f.MemoryFree != tt.free {
			t.Errorf("%s: quota %v throttled %v memory %d free %d, want %v %v %d %d", tt.name, f.Quota, f.Throttled, f.MemoryLimit, f.MemoryFree, tt.quota, tt.throttled, tt.limit, tt.free)
		}
	}
}

// FuzzRead puts the same odd text into every file: whatever it is, no fact is
// beyond what it can be, and nothing is shown that is not plain.
func FuzzRead(f *testing.F) {
	f.Add("0::/a/b")
	f.Add("5:cpu,cpuacct:/\n7:memory:/x")
	f.Add("MemTotal: 9223372036854775807 kB\nMemAvailable: 1 kB")
	f.Add("max 100000")
	f.Add("some avg10=NaN")
	f.Add("TCP: tw")
	f.Add("60999 32768")
	names := []string{
		"sys/fs/cgroup/cpu.max", "sys/fs/cgroup/cpu.stat", "sys/fs/cgroup/memory.max", "sys/fs/cgroup/a/b/cpu.max",
		"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "sys/fs/cgroup/cpu/cpu.cfs_period_us", "sys/fs/cgroup/memory/x/memory.limit_in_bytes",
	}
	for name := range machine {
		names = append(names, name)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all := fstest.MapFS{}
		for _, name := range names {
			all[name] = &fstest.MapFile{Data: []byte(text)}
		}
		for _, cgroup := range []string{text, "0::/a/b", "1:cpu:/\n2:memory:/x"} {
			all["proc/self/cgroup"] = &fstest.MapFile{Data: []byte(cgroup)}
			got := Read(all)
			if got.Quota != -1 && !(got.Quota > 0) || got.Throttled < -1 || got.MemoryLimit < -1 || got.MemoryFree < -1 || got.Ports == 0 || got.Ports > 1<<16 ||
				got.TimeWait < -1 || got.AcceptQueue < -1 || got.Pressure != -1 && !(got.Pressure >= 0 && got.Pressure <= 1) {
				t.Errorf("%q: %+v", text, got)
			}
			for _, shown := range append(got.Governors, got.Clock) {
				if strings.ContainsFunc(shown, func(r rune) bool { return r < '!' || r > '~' }) {
					t.Errorf("%q shows %q", text, shown)
				}
			}
			for _, finding := range append(Examine(got, Measured{}), Fit(got, Measured{}, Need{Streams: 10, Records: -1})...) {
				if finding.Text == "" || (finding.State == OK) != (finding.Next == "") {
					t.Errorf("%q: %+v", text, finding)
				}
			}
		}
	})
}

package host

import (
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Facts are what the files of a host tell. A figure that they do not tell is
// negative, a text empty. The zero Facts are not those of any host: use Read.
type Facts struct {
	Quota     float64       // CPUs that the cgroup may use; +Inf: as many as there are
	Throttled time.Duration // that the cgroup was held back by its quota since it was made

	MemoryLimit int64 // bytes that the process may have: the cgroup's limit or the machine's memory
	MemoryFree  int64 // bytes that are available of it

	Ports         int64   // ephemeral ports: connections to one address at once
	TimeWait      int64   // sockets in TIME_WAIT now
	TimeWaitReuse int64   // net.ipv4.tcp_tw_reuse: 0 never, 1 always, 2 on loopback
	AcceptQueue   int64   // net.core.somaxconn
	Pressure      float64 // share of the last 10 s in which some task waited for a CPU, 0 to 1

	Clock     string   // current clock source
	Governors []string // of the CPUs' frequencies, sorted, each once
}

// maxFile bounds what is read of one file, maxDepth the cgroups that are visited
// on the way to the root, maxCPUs the CPUs whose governor is asked.
const (
	maxFile  = 64 << 10
	maxDepth = 32
	maxCPUs  = 1024
)

// reader reads small files of a host.
type reader struct{ fsys fs.FS }

// text returns a file without the space around it; "" if it cannot be read.
func (r reader) text(name string) string {
	if !fs.ValidPath(name) {
		return ""
	}
	f, err := r.fsys.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number returns a file that is one number; −1 if it is not.
func (r reader) number(name string) int64 { return number(r.text(name)) }

// number reads a whole number that is not negative; −1 for anything else.
func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// value returns the number behind a key in a file of lines "key value" or "key:
// value kB"; −1 if there is none.
func (r reader) value(name, key string) int64 {
	for line := range strings.Lines(r.text(name)) {
		if f := strings.Fields(line); len(f) >= 2 && strings.TrimSuffix(f[0], ":") == key {
			return number(f[1])
		}
	}
	return -1
}

// Read reads what /proc and /sys below a root tell of this process's host. It
// never fails: what it cannot read is unknown.
func Read(root fs.FS) Facts {
	r := reader{root}
	f := Facts{
		TimeWaitReuse: r.number("proc/sys/net/ipv4/tcp_tw_reuse"),
		AcceptQueue:   r.number("proc/sys/net/core/somaxconn"),
		Ports:         r.ports(),
		TimeWait:      r.timeWait(),
		Pressure:      r.pressure(),
		Clock:         word(r.text("sys/devices/system/clocksource/clocksource0/current_clocksource")),
		Governors:     r.governors(),
	}
	f.Quota, f.Throttled = r.quota()
	f.MemoryLimit, f.MemoryFree = r.memory()
	return f
}

// word returns a name that may be shown, or "": a file may hold anything.
func word(s string) string {
	bad := func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-_.", c)
	}
	if len(s) > 64 || strings.ContainsFunc(s, bad) {
		return ""
	}
	return s
}

func (r reader) ports() int64 {
	f := strings.Fields(r.text("proc/sys/net/ipv4/ip_local_port_range"))
	if len(f) != 2 {
		return -1
	}
	low, high := number(f[0]), number(f[1])
	if low < 0 || high < low || high > math.MaxUint16 {
		return -1
	}
	return high - low + 1
}

// timeWait reads "TCP: inuse 5 orphan 0 tw 3 alloc 8 mem 1".
func (r reader) timeWait() int64 {
	for line := range strings.Lines(r.text("proc/net/sockstat")) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != "TCP:" {
			continue
		}
		if i := slices.Index(f, "tw"); i > 0 && i+1 < len(f) {
			return number(f[i+1])
		}
	}
	return -1
}

// pressure reads "some avg10=1.53 avg60=… avg300=… total=…" in percent.
func (r reader) pressure() float64 {
	for line := range strings.Lines(r.text("proc/pressure/cpu")) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "some" {
			continue
		}
		text, ok := strings.CutPrefix(f[1], "avg10=")
		if v, err := strconv.ParseFloat(text, 64); ok && err == nil && v >= 0 && v <= 100 {
			return v / 100
		}
	}
	return -1
}

func (r reader) governors() []string {
	var all []string
	for i := range maxCPUs {
		g := word(r.text("sys/devices/system/cpu/cpu" + strconv.Itoa(i) + "/cpufreq/scaling_governor"))
		if g == "" {
			break
		}
		all = append(all, g)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// cgroups returns the folders of the process's cgroup of version 2, or of a
// controller of version 1, from its own up to the root. In a container the path
// may be one of the host that is not there; the root is then the container's.
func (r reader) cgroups(controller string) []string {
	base, own := "", ""
	for line := range strings.Lines(r.text("proc/self/cgroup")) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(f) != 3:
		case controller == "" && f[0] == "0" && f[1] == "":
			base, own = "sys/fs/cgroup", f[2]
		case controller != "" && slices.Contains(strings.Split(f[1], ","), controller):
			base, own = "sys/fs/cgroup/"+controller, f[2]
		}
	}
	if base == "" {
		return nil
	}
	var all []string
	for p := path.Clean("/" + own); len(all) < maxDepth; p = path.Dir(p) {
		all = append(all, strings.TrimSuffix(base+p, "/"))
		if p == "/" {
			return all
		}
	}
	return append(all, base)
}

// quota returns the least CPU quota on the way to the root, and how long the
// cgroup that has it was throttled.
func (r reader) quota() (cpus float64, throttled time.Duration) {
	cpus, throttled = -1, -1
	take := func(quota string, period int64, held time.Duration) {
		n, limit := number(quota), math.Inf(1)
		switch {
		case quota == "max" || quota == "-1":
		case n > 0 && period > 0:
			limit = float64(n) / float64(period)
		default:
			return
		}
		if cpus < 0 || limit < cpus {
			cpus, throttled = limit, held
		}
	}
	held := func(n int64, unit time.Duration) time.Duration {
		if n < 0 || n > math.MaxInt64/int64(unit) {
			return -1
		}
		return time.Duration(n) * unit
	}
	for _, dir := range r.cgroups("") {
		if f := strings.Fields(r.text(dir + "/cpu.max")); len(f) == 2 {
			take(f[0], number(f[1]), held(r.value(dir+"/cpu.stat", "throttled_usec"), time.Microsecond))
		}
	}
	for _, dir := range r.cgroups("cpu") {
		take(r.text(dir+"/cpu.cfs_quota_us"), r.number(dir+"/cpu.cfs_period_us"), held(r.value(dir+"/cpu.stat", "throttled_time"), 1))
	}
	return cpus, throttled
}

// memory returns what the process may have and what is left of it, by the
// machine and by every cgroup on the way to the root.
func (r reader) memory() (limit, free int64) {
	kilo := func(key string) int64 {
		if n := r.value("proc/meminfo", key); n >= 0 && n < math.MaxInt64>>10 {
			return n << 10
		}
		return -1
	}
	limit, free = kilo("MemTotal"), kilo("MemAvailable")
	take := func(most, used int64) {
		if most <= 0 || limit >= 0 && most >= limit {
			return // "max", or more than there is
		}
		limit = most
		if used >= 0 && (free < 0 || most-used < free) {
			free = max(most-used, 0)
		}
	}
	for _, dir := range r.cgroups("") {
		take(r.number(dir+"/memory.max"), r.number(dir+"/memory.current"))
	}
	for _, dir := range r.cgroups("memory") {
		take(r.number(dir+"/memory.limit_in_bytes"), r.number(dir+"/memory.usage_in_bytes"))
	}
	return limit, free
}

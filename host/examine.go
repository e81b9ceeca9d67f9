package host

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// The states of a Finding. Unknown is not OK: nobody could look.
type State string

// The states.
const (
	OK        State = "ok"
	Warning   State = "warn"
	Failed    State = "fail"
	Uncertain State = "unknown"
)

// Finding is what an examination found about one thing.
type Finding struct {
	ID    string `json:"id"`             // stable, for programs
	State State  `json:"state"`          //
	Text  string `json:"text"`           // what was found, with figures
	Next  string `json:"next,omitempty"` // the next step, unless it is fine
}

// Need is what a load asks of its host.
type Need struct {
	Streams int64   // requests that can be in flight at once, each on a connection of its own
	Sure    bool    // that many will be: a closed loop, or a cap that was asked for
	Double  bool    // the server is in this process too: each connection takes two descriptors
	Rate    float64 // requests per second at most; 0: not planned
	Records int64   // bytes of memory that the records will take; negative: unknown
}

// Reserve is how many descriptors a client needs beside its connections: its
// journal, its timers, its binary and standard files.
const Reserve = 64

// DescriptorsFor returns how many descriptors so many streams take.
func (n Need) DescriptorsFor(streams int64) int64 {
	if n.Double {
		streams *= 2
	}
	return streams + Reserve
}

const (
	slowSync    = 100 * time.Millisecond // an fsync that holds a group commit up
	lateWake    = time.Millisecond       // p99 of a waiter that is no use for a schedule
	littleSpace = 1 << 30                // bytes; a run of 10^6 streams takes about as much
	noSpace     = 64 << 20               // bytes
	pressed     = 0.05                   // share of the time in which tasks wait for a CPU
	timeWait    = 60                     // seconds that Linux keeps a closed connection's port
	smallQueue  = 128                    // connections that may wait to be accepted
)

// Examine judges what a host tells about itself, whatever the load.
func Examine(f Facts, m Measured) []Finding {
	return []Finding{
		cpus(f, m), throttling(f), pressure(f), governor(f), timer(m), clock(f), stamps(m), disk(m), commit(m), acceptQueue(f),
	}
}

// Fit holds what a host tells against what a load needs.
func Fit(f Facts, m Measured, n Need) []Finding {
	return append(Limits(f, m, n), timeWaits(f, n), memory(f, n))
}

// Limits holds against a load only the limits of what can be in flight: those that
// it is refused for before it starts. What is unknown refuses nothing.
func Limits(f Facts, m Measured, n Need) []Finding {
	return []Finding{descriptors(m, n), ports(f, n)}
}

func unknown(id, text, next string) Finding { return Finding{id, Uncertain, text, next} }

const inLinux = "on Linux /proc tells; elsewhere ask the system's own tools"

func descriptors(m Measured, n Need) Finding {
	const id = "descriptors"
	if m.Limit < 0 {
		return unknown(id, "the limit of open descriptors is not known", "see how many connections the system allows a process")
	}
	need := n.DescriptorsFor(n.Streams)
	text := fmt.Sprintf("%d descriptors at most; %d requests in flight need %d", m.Limit, n.Streams, need)
	next := fmt.Sprintf("raise the hard limit (ulimit -Hn %d, or LimitNOFILE= of the service), or have fewer requests in flight", need)
	switch {
	case need <= m.Limit:
		return Finding{id, OK, text, ""}
	case n.Sure:
		return Finding{id, Failed, text, next}
	}
	return Finding{id, Warning, text + ", if that many ever are", next}
}

func ports(f Facts, n Need) Finding {
	const id = "ports"
	if f.Ports < 0 {
		return unknown(id, "the range of ephemeral ports is not known", inLinux)
	}
	text := fmt.Sprintf("%d ephemeral ports: so many connections to one address at once; the load can have %d in flight", f.Ports, n.Streams)
	next := "widen net.ipv4.ip_local_port_range, or have fewer requests in flight"
	switch {
	case n.Streams <= f.Ports:
		return Finding{id, OK, text, ""}
	case n.Sure:
		return Finding{id, Failed, text, next}
	}
	return Finding{id, Warning, text, next}
}

func timeWaits(f Facts, n Need) Finding {
	const id = "time_wait"
	if f.Ports < 0 || f.TimeWait < 0 {
		return unknown(id, "how many ports wait in TIME_WAIT is not known", inLinux)
	}
	most := float64(f.Ports) / timeWait
	text := fmt.Sprintf("%d sockets in TIME_WAIT; to a server that closes each connection, %d ports allow %.0f requests/s", f.TimeWait, f.Ports, most)
	switch {
	case f.TimeWait*2 > f.Ports:
		return Finding{id, Warning, text, "wait a minute for what ran before, or widen net.ipv4.ip_local_port_range"}
	case f.TimeWaitReuse == 1 || n.Rate <= most:
		return Finding{id, OK, text, ""}
	}
	return Finding{id, Warning, fmt.Sprintf("%s, and %.0f are planned", text, n.Rate), "have the server keep connections open, or set net.ipv4.tcp_tw_reuse to 1"}
}

func acceptQueue(f Facts) Finding {
	const id = "accept_queue"
	switch {
	case f.AcceptQueue < 0:
		return unknown(id, "net.core.somaxconn is not known", inLinux)
	case f.AcceptQueue < smallQueue:
		return Finding{id, Warning, fmt.Sprintf("net.core.somaxconn is %d: a server here drops connections that come at once", f.AcceptQueue), "set net.core.somaxconn to 4096, if the server runs on this host"}
	}
	return Finding{id, OK, fmt.Sprintf("net.core.somaxconn is %d (it matters for a server on this host)", f.AcceptQueue), ""}
}

func cpus(f Facts, m Measured) Finding {
	const id = "cpus"
	switch {
	case f.Quota < 0:
		return unknown(id, fmt.Sprintf("%d CPUs; whether a quota limits them is not known", m.Cores), inLinux)
	case f.Quota < 1:
		return Finding{id, Failed, fmt.Sprintf("the cgroup's quota is %.2g CPU: the client stands still for part of every period", f.Quota), "give the client a CPU at least (cpu.max, --cpus, resources.limits.cpu)"}
	case f.Quota < float64(m.Cores):
		return Finding{id, Warning, fmt.Sprintf("the cgroup's quota of %.3g CPUs is below the %d that the client runs on: it can be held back in bursts", f.Quota, m.Cores), "raise the quota, or set GOMAXPROCS to it"}
	case m.Cores == 1:
		return Finding{id, Warning, "one CPU: garbage collection and other processes delay what is sent and stamped", "use a machine with two CPUs or more"}
	}
	limit := fmt.Sprintf("a quota of %.3g", f.Quota)
	if math.IsInf(f.Quota, 1) {
		limit = "no quota"
	}
	return Finding{id, OK, fmt.Sprintf("%d CPUs, %s", m.Cores, limit), ""}
}

func throttling(f Facts) Finding {
	const id = "throttling"
	switch {
	case math.IsInf(f.Quota, 1):
		return Finding{id, OK, "no quota that could throttle", ""}
	case f.Throttled < 0:
		return unknown(id, "whether the cgroup was throttled is not known", inLinux)
	case f.Throttled > 0:
		return Finding{id, Warning, fmt.Sprintf("the cgroup was throttled for %v since it was made", f.Throttled.Round(time.Millisecond)), "raise the quota, or see that nothing else runs in the cgroup"}
	}
	return Finding{id, OK, "the cgroup was never throttled", ""}
}

func pressure(f Facts) Finding {
	const id = "pressure"
	text := fmt.Sprintf("tasks waited for a CPU in %.1f %% of the last 10 s", f.Pressure*100)
	switch {
	case f.Pressure < 0:
		return unknown(id, "how much others use the CPUs is not known (/proc/pressure/cpu)", "see that the machine is idle, with top")
	case f.Pressure > pressed:
		return Finding{id, Warning, text, "stop what else runs here: measure from an idle machine"}
	}
	return Finding{id, OK, text, ""}
}

// size writes bytes for people.
func size(n int64) string {
	for _, u := range []struct {
		unit string
		size int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}} {
		if n >= u.size {
			return fmt.Sprintf("%.3g %s", float64(n)/float64(u.size), u.unit)
		}
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

func memory(f Facts, n Need) Finding {
	const id = "memory"
	if f.MemoryLimit < 0 || f.MemoryFree < 0 {
		return unknown(id, "how much memory there is, is not known", inLinux)
	}
	text := fmt.Sprintf("%s of %s available", size(f.MemoryFree), size(f.MemoryLimit))
	if n.Records < 0 {
		return Finding{id, OK, text, ""}
	}
	text += fmt.Sprintf("; the records of the load take about %s", size(n.Records))
	switch next := "send fewer requests, or ask for shorter answers, or use a machine with more memory"; {
	case n.Records > f.MemoryFree:
		return Finding{id, Failed, text, next}
	case n.Records*2 > f.MemoryFree:
		return Finding{id, Warning, text, next}
	}
	return Finding{id, OK, text, ""}
}

func timer(m Measured) Finding {
	const id = "timer"
	text := fmt.Sprintf("a wait ends %v late at the median, %v at p99", short(m.WakeP50), short(m.WakeP99))
	switch {
	case m.WakeP50 < 0:
		return unknown(id, "how late timers are was not measured", "measure it here: assay doctor")
	case m.WakeP99 > lateWake:
		return Finding{id, Warning, text, "stop what else runs here; in a virtual machine, ask for CPUs of its own"}
	}
	return Finding{id, OK, text, ""}
}

// short rounds a time to what is worth reading.
func short(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

// quickClocks are clock sources that are read without a system call.
var quickClocks = []string{"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "riscv_clocksource", "timebase"}

func clock(f Facts) Finding {
	const id = "clock"
	switch {
	case f.Clock == "":
		return unknown(id, "the clock source is not known", inLinux)
	case slices.Contains(quickClocks, f.Clock):
		return Finding{id, OK, "clock source " + f.Clock, ""}
	}
	return Finding{id, Warning, "clock source " + f.Clock + ": each stamp may cost a system call", "see why the kernel gave up on a better one: dmesg | grep -i clocksource"}
}

func disk(m Measured) Finding {
	const id = "disk"
	text := fmt.Sprintf("%s free in %s", size(m.Free), m.Dir)
	switch next := "make room there, or keep runs elsewhere: --runs"; {
	case m.Free < 0:
		return unknown(id, "how much space is free for the runs is not known", "see that there is 1 GiB at least")
	case m.Free < noSpace:
		return Finding{id, Failed, text, next}
	case m.Free < littleSpace:
		return Finding{id, Warning, text, next}
	}
	return Finding{id, OK, text, ""}
}

func commit(m Measured) Finding {
	const id = "fsync"
	text := fmt.Sprintf("an fsync in %s takes %v", m.Dir, short(m.Sync))
	switch {
	case m.Sync < 0:
		return unknown(id, "the time of an fsync was not measured", "see that the folder of the runs may be written to, or name another: --runs")
	case m.Sync > slowSync:
		return Finding{id, Warning, text + ": a crash can lose more than the last 50 ms of records", "keep runs on a faster disk: --runs"}
	}
	return Finding{id, OK, text, ""}
}

func stamps(m Measured) Finding {
	const id = "kernel_stamps"
	switch m.Stamps {
	case Yes:
		return Finding{id, OK, "the kernel stamps what a socket receives: the client's own delay is known for each event", ""}
	case No:
		return Finding{id, Warning, "the kernel does not stamp what a socket receives: the client's own delay is in every time and cannot be told apart", "measure from Linux, over HTTP/1.1 and without a proxy"}
	}
	return unknown(id, "whether the kernel stamps what a socket receives was not tried", "measure a ceiling too: assay doctor without --no-load")
}

func governor(f Facts) Finding {
	const id = "governor"
	text := "the CPUs' frequency governor: " + strings.Join(f.Governors, ", ")
	switch {
	case len(f.Governors) == 0:
		return unknown(id, "no frequency governor is visible, as in most virtual machines", "if the host is yours, see that it is performance")
	case slices.Equal(f.Governors, []string{"performance"}):
		return Finding{id, OK, text, ""}
	}
	return Finding{id, Warning, text + ": a CPU that was idle starts slowly", "set it to performance: cpupower frequency-set -g performance"}
}

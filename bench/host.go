package bench

import (
	"bufio"
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// hostFacts says what this machine is, as far as it tells.
func hostFacts() map[string]string {
	facts := map[string]string{
		"os": runtime.GOOS, "arch": runtime.GOARCH, "go": runtime.Version(),
		"cores": strconv.Itoa(runtime.NumCPU()), "gomaxprocs": strconv.Itoa(runtime.GOMAXPROCS(0)),
	}
	add := func(name, file, key string) {
		if v := field(file, key); v != "" {
			facts[name] = v
		}
	}
	add("cpu", "/proc/cpuinfo", "model name")
	add("memory", "/proc/meminfo", "MemTotal")
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		facts["kernel"] = strings.TrimSpace(string(b))
	}
	return facts
}

// field returns the value of the first "key : value" line of a small file.
func field(file, key string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		if k, v, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// Version returns the program's version: that of its module, or the commit that
// it was built from, or "devel".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}

//go:build unix

package host

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime returns the CPU time that the process took so far; negative if unknown.
func CPUTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return -1
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Descriptors returns how many descriptors the process has open and how many it
// may have; negative if unknown. Go has raised the limit to the hard one by then.
func Descriptors() (open, limit int64) {
	open, limit = -1, -1
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) == nil {
		limit = int64(min(l.Cur, 1<<62))
	}
	dir, err := os.Open("/dev/fd")
	if err != nil {
		return open, limit
	}
	defer dir.Close()
	if names, err := dir.Readdirnames(-1); err == nil {
		open = int64(len(names)) - 1 // less the directory's own
	}
	return open, limit
}

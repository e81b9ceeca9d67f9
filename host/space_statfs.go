//go:build linux || darwin || freebsd

package host

import (
	"math"

	"golang.org/x/sys/unix"
)

// freeSpace returns how many bytes may be written to the file system of a folder;
// negative if unknown.
func freeSpace(dir string) int64 {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return -1
	}
	blocks, size := uint64(s.Bavail), uint64(s.Bsize)
	if size > 0 && blocks > math.MaxInt64/size {
		return math.MaxInt64
	}
	return int64(blocks * size)
}

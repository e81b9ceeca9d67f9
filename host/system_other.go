//go:build !unix

package host

import "time"

// CPUTime is not known on this system.
func CPUTime() time.Duration { return -1 }

// Descriptors is not known on this system.
func Descriptors() (open, limit int64) { return -1, -1 }

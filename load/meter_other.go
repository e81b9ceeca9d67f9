//go:build !unix

package load

import "time"

func cpuTime() time.Duration { return -1 }

func descriptors() (open, limit int64) { return -1, -1 }

//go:build !(linux || darwin || freebsd)

package host

// freeSpace is not known on this system.
func freeSpace(string) int64 { return -1 }

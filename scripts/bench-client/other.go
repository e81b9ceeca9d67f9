//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench-client: it needs Linux: kernel receive stamps, /proc and wrk of Debian")
	os.Exit(4)
}
